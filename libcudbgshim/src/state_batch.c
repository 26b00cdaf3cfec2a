/* SPDX-License-Identifier: MIT */
/*
 * Decodes the batched answer of slot 130: device, SMs, warps, lanes, depth first, without ids.
 *
 * Each record is a fixed part and, for each set bit of its flag word, in ascending order, that
 * attribute's bytes.  Strides come from slot 129 and not from our structs: both parts may grow, and
 * bits may come that we do not know.  A record exists for what is both updated and valid; what is
 * updated and not valid has gone; what is not updated stays as it was.
 */
#include "internal.h"

#include <errno.h>

#include "base/reader.h"
#include "calls_warp.h"

/* Largest buffer; a device with all limits exhausted needs some 12 MiB. */
#define MAX_BUFFER_SIZE (UINT32_C(64) << 20)
#define MAX_STRIDE      UINT32_C(4096)

struct decoder {
	struct cudbgshim_state *state;
	const struct cudbgshim_layout *layout;
	struct reader r;
};

/* ------------------------------------------------------------------ records and attributes --- */

/* @return the next @p size bytes as a reader of their own. */
static struct reader take(struct decoder *d, uint32_t size)
{
	struct reader part = reader_slice(&d->r, d->r.pos, size);

	reader_skip(&d->r, size);
	return part;
}

/* Mark the answer as bad: a part was shorter than what it has to hold, or a value is impossible. */
static int refuse(struct decoder *d, size_t at)
{
	if (!d->r.bad) {
		d->r.bad = true;
		d->r.bad_at = at;
	}
	return -EPROTO;
}

typedef void attribute_fn(struct reader *value, unsigned int bit, void *target);

static int read_attributes(struct decoder *d, const struct cudbgshim_layout_level *level,
			   uint32_t flags, attribute_fn *read, void *target)
{
	for (; flags; flags &= flags - 1) {
		unsigned int bit = (unsigned int)__builtin_ctz(flags);
		size_t at = d->r.pos;
		struct reader value = take(d, level->attribute[bit]);

		if (read)
			read(&value, bit, target);
		if (reader_is_bad(&value))
			return refuse(d, at);
	}
	return 0;
}

static struct cudbgshim_dim3 read_dim3(struct reader *r)
{
	uint32_t x = reader_u32(r), y = reader_u32(r), z = reader_u32(r);

	return (struct cudbgshim_dim3){ x, y, z };
}

/* ------------------------------------------------------------------ lanes -------------------- */

static int read_lane(struct decoder *d, size_t lane_index, bool has_flags)
{
	const struct cudbgshim_layout_level *level = &d->layout->lane;
	size_t at = d->r.pos;
	struct reader fixed = take(d, level->size);

	d->state->lane_pc[lane_index] = reader_u64(&fixed);
	if (reader_is_bad(&fixed))
		return refuse(d, at);
	if (!has_flags)
		return 0;
	return read_attributes(d, level, reader_u32(&d->r), NULL, NULL);
}

/* ------------------------------------------------------------------ warps -------------------- */

struct warp_record {
	struct cudbgshim_warp warp;
	uint32_t lane_update, exception;
};

static void read_warp_attribute(struct reader *value, unsigned int bit, void *target)
{
	struct warp_record *record = target;
	struct cudbgshim_warp *w = &record->warp;

	switch (bit) {
	case CUDBGABI_WARP_ATTR_LANE_UPDATE_MASK:
		record->lane_update = reader_u32(value);
		break;
	case CUDBGABI_WARP_ATTR_EXCEPTION:
		record->exception = reader_u32(value);
		break;
	case CUDBGABI_WARP_ATTR_ERROR_PC:
		w->error_pc = reader_u64(value);
		w->has |= CUDBGSHIM_WARP_ERROR_PC;
		break;
	case CUDBGABI_WARP_ATTR_CLUSTER_IDX:
		w->cluster_idx = read_dim3(value);
		w->has |= CUDBGSHIM_WARP_CLUSTER;
		break;
	case CUDBGABI_WARP_ATTR_CLUSTER_DIM:
		w->cluster_dim = read_dim3(value);
		w->has |= CUDBGSHIM_WARP_CLUSTER_DIM;
		break;
	case CUDBGABI_WARP_ATTR_CLUSTER_EXCEPTION_TARGET_BLOCK_IDX:
		w->cluster_target = read_dim3(value);
		w->has |= CUDBGSHIM_WARP_CLUSTER_TARGET;
		break;
	case CUDBGABI_WARP_ATTR_IN_SYSCALL_LANES:
		w->syscall_lanes = reader_u32(value);
		w->has |= CUDBGSHIM_WARP_SYSCALL_LANES;
		break;
	case CUDBGABI_WARP_ATTR_HIT_BREAKPOINT_HANDLE:
		w->breakpoint = reader_u64(value);
		w->has |= CUDBGSHIM_WARP_BREAKPOINT;
		break;
	default:
		break;
	}
}

static int read_lanes(struct decoder *d, size_t index, const struct warp_record *record,
		      uint32_t known_lanes, bool has_flags)
{
	struct cudbgshim_state *state = d->state;
	uint32_t valid = record->warp.valid_lanes;
	int r;

	for (uint32_t lane = 0; lane < state->n_lanes; lane++) {
		size_t i = index * state->n_lanes + lane;
		bool is_valid = valid >> lane & 1;

		state->lane_exception[i] = is_valid ? record->exception : CUDBGABI_EXCEPTION_NONE;
		if (!is_valid) {
			state->lane_pc[i] = 0;
		} else if (record->lane_update >> lane & 1) {
			r = read_lane(d, i, has_flags);
			if (r < 0)
				return r;
		} else if (!(known_lanes >> lane & 1)) {
			return refuse(d, d->r.pos);
		}
	}
	return 0;
}

static int read_warp(struct decoder *d, size_t index, bool was_valid)
{
	const struct cudbgshim_layout_level *level = &d->layout->warp;
	struct cudbgshim_warp *into = &d->state->warps[index];
	uint32_t known_lanes = was_valid ? into->valid_lanes : 0, flags;
	struct warp_record record = { .lane_update = UINT32_MAX };
	size_t at = d->r.pos;
	struct reader fixed = take(d, level->size);
	int r;

	record.warp.grid_id = reader_u64(&fixed);
	record.warp.block = read_dim3(&fixed);
	record.warp.base_thread = read_dim3(&fixed);
	record.warp.valid_lanes = reader_u32(&fixed);
	record.warp.active_lanes = reader_u32(&fixed);
	flags = reader_u32(&fixed);
	if (reader_is_bad(&fixed) || (record.warp.valid_lanes & ~low_bits(d->state->n_lanes)))
		return refuse(d, at);
	r = read_attributes(d, level, flags, read_warp_attribute, &record);
	if (r < 0)
		return r;
	warp_normalise(&record.warp);
	*into = record.warp;
	return read_lanes(d, index, &record, known_lanes,
			  flags >> CUDBGABI_WARP_ATTR_LANE_ATTRIBUTES & 1);
}

static void forget_warp(struct cudbgshim_state *state, size_t index)
{
	size_t lanes = index * state->n_lanes;

	state->warps[index] = (struct cudbgshim_warp){ 0 };
	memset(state->lane_pc + lanes, 0, state->n_lanes * sizeof(*state->lane_pc));
	memset(state->lane_exception + lanes, 0, state->n_lanes * sizeof(*state->lane_exception));
}

/* ------------------------------------------------------------------ SMs ---------------------- */

static void forget_sm(struct cudbgshim_state *state, uint32_t sm)
{
	for (uint64_t gone = state->valid_warps[sm]; gone; gone &= gone - 1)
		forget_warp(state,
			    cudbgshim_state_index(state, sm, (uint32_t)__builtin_ctzll(gone)));
	state->valid_warps[sm] = 0;
	state->broken_warps[sm] = 0;
}

static void read_sm_attribute(struct reader *value, unsigned int bit, void *target)
{
	uint64_t *warp_update = target;

	if (bit == CUDBGABI_SM_ATTR_WARP_UPDATE_MASK)
		*warp_update = reader_u64(value);
}

static int read_sm(struct decoder *d, uint32_t sm)
{
	struct cudbgshim_state *state = d->state;
	const struct cudbgshim_layout_level *level = &d->layout->sm;
	uint64_t update = UINT64_MAX, known = state->valid_warps[sm];
	size_t at = d->r.pos;
	struct reader fixed = take(d, level->size);
	uint64_t valid = reader_u64(&fixed), broken = reader_u64(&fixed);
	uint32_t flags = reader_u32(&fixed);
	int r;

	if (reader_is_bad(&fixed) || (valid & ~low_bits(state->n_warps)))
		return refuse(d, at);
	r = read_attributes(d, level, flags, read_sm_attribute, &update);
	if (r < 0)
		return r;
	for (uint32_t warp = 0; warp < state->n_warps; warp++) {
		size_t index = cudbgshim_state_index(state, sm, warp);
		bool was_valid = known >> warp & 1;

		if (!(valid >> warp & 1)) {
			if (was_valid)
				forget_warp(state, index);
		} else if (update >> warp & 1) {
			r = read_warp(d, index, was_valid);
			if (r < 0)
				return r;
		} else if (!was_valid) {
			return refuse(d, d->r.pos);
		}
	}
	state->valid_warps[sm] = valid;
	state->broken_warps[sm] = broken & valid;
	return 0;
}

/* ------------------------------------------------------------------ device ------------------- */

struct device_record {
	uint32_t n_words;
	uint64_t update[CUDBGSHIM_SM_WORDS], active[CUDBGSHIM_SM_WORDS];
	uint64_t exception[CUDBGSHIM_SM_WORDS];
	bool has_active;
};

static void read_device_attribute(struct reader *value, unsigned int bit, void *target)
{
	struct device_record *record = target;
	uint64_t *mask;

	switch (bit) {
	case CUDBGABI_DEVICE_ATTR_SM_UPDATE_MASK:
		mask = record->update;
		break;
	case CUDBGABI_DEVICE_ATTR_SM_ACTIVE_MASK:
		mask = record->active;
		record->has_active = true;
		break;
	case CUDBGABI_DEVICE_ATTR_SM_EXCEPTION_MASK:
		mask = record->exception;
		break;
	default:
		return;
	}
	for (uint32_t i = 0; i < record->n_words; i++)
		mask[i] = reader_u64(value);
}

static bool bit_of(const uint64_t *words, uint32_t i)
{
	return words[i / 64] >> (i % 64) & 1;
}

static int read_device(struct decoder *d)
{
	struct cudbgshim_state *state = d->state;
	const struct cudbgshim_layout_level *level = &d->layout->device;
	struct device_record record = { .n_words = (state->n_sms + 63) / 64 };
	struct reader fixed = take(d, level->size);
	uint32_t type = reader_u32(&fixed), flags = reader_u32(&fixed);
	uint32_t last = record.n_words - 1;
	uint64_t in_last = low_bits(state->n_sms - 64 * last);
	int r;

	memset(record.update, 0xff, sizeof(record.update));
	if (reader_is_bad(&fixed))
		return refuse(d, 0);
	if (type == CUDBGABI_DEVICE_INFO_FULL)
		cudbgshim_state_clear(state);
	else if (type != CUDBGABI_DEVICE_INFO_UPDATE || !state->updatable)
		return refuse(d, 0);
	r = read_attributes(d, level, flags, read_device_attribute, &record);
	if (r < 0)
		return r;
	if (!record.has_active || (record.active[last] & ~in_last))
		return refuse(d, 0);
	record.exception[last] &= in_last;
	memcpy(state->exception_sms, record.exception, sizeof(record.exception));
	for (uint32_t sm = 0; sm < state->n_sms; sm++) {
		if (!bit_of(record.update, sm))
			continue;
		if (!bit_of(record.active, sm)) {
			forget_sm(state, sm);
			continue;
		}
		r = read_sm(d, sm);
		if (r < 0)
			return r;
	}
	/* Bytes that are left over mean that some record was misread. */
	return reader_left(&d->r) || reader_is_bad(&d->r) ? refuse(d, d->r.pos) : 0;
}

int cudbgshim_state_decode(struct cudbgshim_state *state, const struct cudbgshim_layout *layout,
			   const void *bytes, size_t size, size_t *ret_bad_at)
{
	struct decoder d = { .state = state, .layout = layout };
	int r = cudbgshim_layout_check(layout);

	reader_init(&d.r, bytes, size);
	if (!r)
		r = read_device(&d);
	if (r < 0) {
		cudbgshim_state_clear(state);
		if (ret_bad_at)
			*ret_bad_at = d.r.bad_at;
		return r;
	}
	state->updatable = true;
	return 0;
}

/* ------------------------------------------------------------------ calls -------------------- */

static bool level_is_sane(const struct cudbgshim_layout_level *level, size_t least)
{
	if (level->size < least || level->size > MAX_STRIDE)
		return false;
	for (unsigned int bit = 0; bit < 32; bit++)
		if (level->attribute[bit] > MAX_STRIDE)
			return false;
	return true;
}

int cudbgshim_layout_check(const struct cudbgshim_layout *layout)
{
	if (layout->buffer_size < sizeof(struct cudbgabi_device_info) ||
	    layout->buffer_size > MAX_BUFFER_SIZE ||
	    !level_is_sane(&layout->device, sizeof(struct cudbgabi_device_info)) ||
	    !level_is_sane(&layout->sm, sizeof(struct cudbgabi_sm_info)) ||
	    !level_is_sane(&layout->warp, sizeof(struct cudbgabi_warp_info)) ||
	    !level_is_sane(&layout->lane, sizeof(struct cudbgabi_lane_info)))
		return -EPROTO;
	return 0;
}

static void copy_level(struct cudbgshim_layout_level *level, uint32_t size, const void *attributes)
{
	level->size = size;
	memcpy(level->attribute, attributes, sizeof(level->attribute));
}

int cudbgshim_get_layout(struct cudbgshim *s, uint32_t dev, struct cudbgshim_layout *ret_layout)
{
	struct cudbgabi_device_info_sizes in = { 0 };
	struct cudbgshim_layout layout = { 0 };
	int r;

	if (!HAS(s, getDeviceInfo))
		return -ENOSYS;
	r = CALL(s, getDeviceInfoSizes, dev, &in);
	if (r < 0)
		return r;
	layout.buffer_size = in.required_buffer_size;
	copy_level(&layout.device, in.device_size, in.device_attr);
	copy_level(&layout.sm, in.sm_size, in.sm_attr);
	copy_level(&layout.warp, in.warp_size, in.warp_attr);
	copy_level(&layout.lane, in.lane_size, in.lane_attr);
	RETURN_VALUE(cudbgshim_layout_check(&layout), ret_layout, layout);
}

int cudbgshim_read_batch(struct cudbgshim *s, uint32_t dev, bool full, void *buf, uint32_t size,
			 uint32_t *ret_used)
{
	uint32_t used = 0;
	int r;

	r = CALL(s, getDeviceInfo, dev,
		 full ? CUDBGABI_DEVICE_INFO_FULL : CUDBGABI_DEVICE_INFO_UPDATE, buf, size, &used);
	if (r < 0)
		return r;
	if (used > size)
		return -EPROTO;
	*ret_used = used;
	return 0;
}
