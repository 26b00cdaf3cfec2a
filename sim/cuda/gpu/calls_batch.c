/* SPDX-License-Identifier: MIT */
/*
 * Whole states in one buffer: readWarpState in its four sizes, getDeviceInfo.
 *
 * They are written field by field from the description, not from the structures that clients use,
 * so that an error in those shows.
 */
#include <string.h>

#include "sim.h"

static void put32(struct out *o, uint32_t v)
{
	out_bytes(o, &v, sizeof(v));
}

static void put64(struct out *o, uint64_t v)
{
	out_bytes(o, &v, sizeof(v));
}

static void put_dim(struct out *o, const struct sim_dim *d)
{
	put32(o, d->x);
	put32(o, d->y);
	put32(o, d->z);
}

/* Append bytes that mean nothing. */
static void pad(struct out *o, uint32_t n)
{
	static const uint8_t filler[256] = { [0 ... 255] = 0xa5 };

	out_bytes(o, filler, n < sizeof(filler) ? n : sizeof(filler));
}

/* ---- readWarpState ---- */

/* Append the state of a lane; zeros for one that is not valid. */
static void put_lane(struct out *o, const struct sim_warp *w, uint32_t lane)
{
	static const struct sim_dim nothing;
	struct sim_dim t;

	if (!(w->valid >> lane & 1)) {
		put64(o, 0);
		put_dim(o, &nothing);
		put32(o, 0);
		return;
	}
	t = sim_thread_idx(w, lane);
	put64(o, sim_lane_pc(w, lane));
	put_dim(o, &t);
	put32(o, sim_lane_exception(w, lane));
}

/* Answer with the first bytes of a state: each release has appended members. */
static uint32_t warp_state(struct call *c, size_t size)
{
	const struct sim_warp *w = c->warp;
	auto_out struct out o = { 0 };

	out_init(&o, 4096);
	put64(&o, w->grid->id);
	put64(&o, w->error_pc);
	put_dim(&o, &w->block);
	put32(&o, w->valid);
	put32(&o, w->active);
	put32(&o, w->error_pc_valid);
	for (uint32_t i = 0; i < SIM_LANES; i++)
		put_lane(&o, w, i);
	put_dim(&o, &w->cluster);
	put_dim(&o, &w->grid->cluster);
	put32(&o, w->target_valid);
	put_dim(&o, &w->target_block);
	put32(&o, w->in_syscall);
	if (out_error(&o))
		return CUDBGABI_ERROR_INTERNAL;
	call_out(c, o.data, size);
	return CUDBGABI_SUCCESS;
}

static uint32_t warp_state60(struct call *c)
{
	return warp_state(c, 808);
}
static uint32_t warp_state120(struct call *c)
{
	return warp_state(c, 820);
}
static uint32_t warp_state127(struct call *c)
{
	return warp_state(c, 848);
}
static uint32_t warp_state129(struct call *c)
{
	return warp_state(c, 852);
}

/* ---- getDeviceInfo ---- */

/* Sizes of the records without what may have been added. */
#define DEVICE_FIXED 8u
#define SM_FIXED     20u
#define WARP_FIXED   44u
#define LANE_FIXED   8u
#define UNKNOWN_BIT  20u /* A warp attribute of some later release. */

/* Bytes of a mask of SMs. */
static uint32_t sm_mask_size(const struct sim_device *d)
{
	return (d->n_sms + 63) / 64 * 8;
}

/* The size of a warp attribute; 0 if the release does not know its bit. */
static uint32_t warp_attr_size(const struct sim_process *p, uint32_t bit)
{
	static const uint8_t sizes[] = { 4, 0, 4, 8, 12, 12, 12, 4, 8 };

	if (bit == UNKNOWN_BIT)
		return p->script.unknown_attr;
	/*
	 * NVIDIA's header of 12.4 ends with bit 4; bits 5 and 6 came with the warp state of 12.7.
	 */
	if (bit >= sizeof(sizes) || ((bit == 5 || bit == 6) && p->release < 1207) ||
	    (bit == 7 && p->release < 1209) || (bit == 8 && p->release < 1302))
		return 0;
	return sizes[bit];
}

/* The attributes that a warp has in this answer. */
static uint32_t warp_flags(const struct sim_process *p, const struct sim_warp *w, bool update)
{
	uint32_t flags = 0;

	if (update)
		flags |= 1u << 0;
	if (p->script.grow_lane)
		flags |= 1u << 1;
	if (w->exception)
		flags |= 1u << 2;
	if (w->error_pc_valid)
		flags |= 1u << 3;
	if (w->grid->cluster.x)
		flags |= p->release >= 1207 ? 3u << 4 : 1u << 4;
	if (w->target_valid && p->release >= 1207)
		flags |= 1u << 6;
	if (p->release >= 1209)
		flags |= 1u << 7;
	if (p->release >= 1302 && w->breakpoint)
		flags |= 1u << 8;
	if (p->script.unknown_attr)
		flags |= 1u << UNKNOWN_BIT;
	return flags;
}

static void put_warp_attribute(struct out *o, const struct sim_process *p, const struct sim_warp *w,
			       uint32_t bit)
{
	switch (bit) {
	case 0:
		put32(o, w->valid);
		break;
	case 2:
		put32(o, w->exception);
		break;
	case 3:
		put64(o, w->error_pc);
		break;
	case 4:
		put_dim(o, &w->cluster);
		break;
	case 5:
		put_dim(o, &w->grid->cluster);
		break;
	case 6:
		put_dim(o, &w->target_block);
		break;
	case 7:
		put32(o, w->in_syscall);
		break;
	case 8:
		put64(o, w->breakpoint);
		break;
	case UNKNOWN_BIT:
		pad(o, p->script.unknown_attr);
		break;
	default:
		break; /* Bit 1 has no data of its own. */
	}
}

/* Append the valid lanes: addresses alone, or with a word of flags each. */
static void put_lanes(struct out *o, const struct sim_process *p, const struct sim_warp *w,
		      bool flag_words)
{
	uint64_t pcs[SIM_LANES];
	size_t n = 0;

	for (uint32_t lane = 0; lane < SIM_LANES; lane++)
		if (w->valid >> lane & 1)
			pcs[n++] = sim_lane_pc(w, lane);
	if (!flag_words && !p->script.grow_lane) {
		out_bytes(o, pcs, n * sizeof(pcs[0]));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		put64(o, pcs[i]);
		pad(o, p->script.grow_lane);
		if (flag_words)
			put32(o, 0);
	}
}

/* Append a warp with its attributes and lanes. */
static void put_warp(struct out *o, const struct sim_process *p, const struct sim_warp *w,
		     bool update)
{
	struct sim_dim base = sim_thread_idx(w, 0);
	uint32_t flags = warp_flags(p, w, update);

	put64(o, w->grid->id);
	put_dim(o, &w->block);
	put_dim(o, &base);
	put32(o, w->valid);
	put32(o, w->active);
	put32(o, flags);
	pad(o, p->script.grow_warp);
	for (uint32_t bit = 0; bit < 32; bit++)
		if (flags >> bit & 1)
			put_warp_attribute(o, p, w, bit);
	put_lanes(o, p, w, flags & 1u << 1);
}

/* Append an SM; in an update only the warps that have changed. */
static void put_sm(struct out *o, struct sim_process *p, uint32_t dev, uint32_t sm, bool update)
{
	struct sim_device *d = &p->devices[dev];
	struct sim_warp *w = sim_warp_at(p, dev, sm, 0);
	uint64_t valid = 0, broken = 0, changed = 0;

	for (uint32_t i = 0; i < d->n_warps; i++) {
		valid |= (uint64_t)(w[i].grid != NULL) << i;
		broken |= (uint64_t)(w[i].grid && w[i].broken) << i;
		changed |= (uint64_t)w[i].changed << i;
	}
	put64(o, valid);
	put64(o, broken);
	put32(o, update);
	pad(o, p->script.grow_sm);
	if (update)
		put64(o, changed);
	for (uint32_t i = 0; i < d->n_warps; i++)
		if (w[i].grid && (!update || w[i].changed))
			put_warp(o, p, &w[i], update);
}

/* Whether an SM has any warp. */
static bool sm_active(struct sim_process *p, uint32_t dev, uint32_t sm)
{
	for (uint32_t i = 0; i < p->devices[dev].n_warps; i++)
		if (sim_warp_at(p, dev, sm, i)->grid)
			return true;
	return false;
}

/* Append the masks of SMs that the flags name. */
static void put_sm_masks(struct out *o, struct sim_process *p, uint32_t dev, uint32_t flags)
{
	struct sim_device *d = &p->devices[dev];
	uint64_t updated[SIM_SMS_MAX / 64] = { 0 }, active[SIM_SMS_MAX / 64] = { 0 },
				       faulty[SIM_SMS_MAX / 64];

	for (uint32_t sm = 0; sm < d->n_sms; sm++) {
		updated[sm / 64] |= (uint64_t)d->sm_changed[sm] << sm % 64;
		active[sm / 64] |= (uint64_t)sm_active(p, dev, sm) << sm % 64;
	}
	for (uint32_t i = 0; i < SIM_SMS_MAX / 64; i++)
		faulty[i] = sim_sm_exceptions(p, dev, i);
	if (flags & 1)
		out_bytes(o, updated, sm_mask_size(d));
	out_bytes(o, active, sm_mask_size(d));
	if (flags & 4)
		out_bytes(o, faulty, sm_mask_size(d));
}

static bool any_sm_exception(const struct sim_process *p, uint32_t dev)
{
	for (uint32_t i = 0; i < SIM_SMS_MAX / 64; i++)
		if (sim_sm_exceptions(p, dev, i))
			return true;
	return false;
}

/* Append a device; in an update only the SMs that have changed. */
static void put_device(struct out *o, struct sim_process *p, uint32_t dev, bool update)
{
	struct sim_device *d = &p->devices[dev];
	uint32_t flags = 2u | (update ? 1 : 0) | (any_sm_exception(p, dev) ? 4 : 0);

	put32(o, update);
	put32(o, flags);
	pad(o, p->script.grow_device);
	put_sm_masks(o, p, dev, flags);
	for (uint32_t sm = 0; sm < d->n_sms; sm++)
		if (sm_active(p, dev, sm) && (!update || d->sm_changed[sm]))
			put_sm(o, p, dev, sm, update);
}

/* From here on changes count against this answer. */
static void changes_forget(struct sim_device *d)
{
	memset(d->sm_changed, 0, sizeof(d->sm_changed));
	for (size_t i = 0; i < (size_t)d->n_sms * d->n_warps; i++)
		d->warps[i].changed = false;
	d->told = true;
}

static uint32_t device_info(struct call *c)
{
	uint32_t dev = (uint32_t)c->in[0];
	bool update = c->in[1] == 1 && c->dev->told && !c->p->script.always_full;
	auto_out struct out o = { 0 };

	if (c->in[1] > 1)
		return CUDBGABI_ERROR_INVALID_ARGS;
	out_init(&o, WIRE_FRAME_MAX);
	put_device(&o, c->p, dev, update);
	if (out_error(&o))
		return CUDBGABI_ERROR_INTERNAL;
	if (o.size > call_room(c, 0))
		return CUDBGABI_ERROR_BUFFER_TOO_SMALL;
	call_out(c, o.data, o.size);
	call_u32(c, (uint32_t)o.size);
	changes_forget(c->dev);
	return CUDBGABI_SUCCESS;
}

/* The room that the fullest GPU needs. */
static uint32_t required_size(const struct sim_process *p, const struct sim_device *d,
			      uint32_t warp_attrs)
{
	uint32_t lane = LANE_FIXED + p->script.grow_lane + 4;
	uint32_t warp = WARP_FIXED + p->script.grow_warp + warp_attrs + SIM_LANES * lane;
	uint32_t sm = SM_FIXED + p->script.grow_sm + 8 + d->n_warps * warp;

	return DEVICE_FIXED + p->script.grow_device + 3 * sm_mask_size(d) + d->n_sms * sm;
}

static uint32_t device_info_sizes(struct call *c)
{
	const struct sim_process *p = c->p;
	/*
	 * The total, then for device, SM, warp and lane the fixed size and one size for each flag.
	 */
	uint32_t words[133] = { 0 }, *at = words, total = 0;
	uint32_t *device = at + 1, *sm = at + 34, *warp = at + 67, *lane = at + 100;

	for (uint32_t bit = 0; bit < 32; bit++) {
		warp[1 + bit] = warp_attr_size(p, bit);
		total += warp[1 + bit];
	}
	device[0] = DEVICE_FIXED + p->script.grow_device;
	device[1] = device[2] = device[3] = sm_mask_size(c->dev);
	sm[0] = SM_FIXED + p->script.grow_sm;
	sm[1] = 8;
	warp[0] = WARP_FIXED + p->script.grow_warp;
	lane[0] = LANE_FIXED + p->script.grow_lane;
	words[0] = required_size(p, c->dev, total);
	call_out(c, words, sizeof(words));
	return CUDBGABI_SUCCESS;
}

/* ---- convergence barriers ---- */

static const struct sim_convergence *planted_convergence(const struct sim_process *p, uint32_t dev, uint32_t sm,
							 uint32_t warp)
{
	const struct sim_convergence *s = p->convergences;

	while (s && (s->dev != dev || s->sm != sm || s->warp != warp))
		s = s->next;
	return s;
}

static void put_convergence(struct out *o, const struct sim_warp *w)
{
	put32(o, w->active);
	put32(o, ~w->valid);
	for (uint32_t b = 0; b < 17; b++)
		put32(o, b == 1 ? w->valid & ~w->active : 0);
	for (uint32_t l = 0; l < SIM_LANES; l++)
		put32(o, !(w->valid >> l & 1) ? 0 : w->active >> l & 1 ? 1 : 9);
}

static uint32_t cbu_state(struct call *c)
{
	auto_out struct out o = { 0 };
	size_t room = call_room(c, 0) / 204;

	out_init(&o, 64 * 204);
	for (uint32_t i = 0; i < c->dev->n_warps; i++) {
		const uint32_t dev = (uint32_t)c->in[0], sm = (uint32_t)c->in[1];
		const struct sim_warp *w = sim_warp_at(c->p, dev, sm, i);
		const struct sim_convergence *planted = planted_convergence(c->p, dev, sm, i);

		/* Only the warps of the mask. */
		if (!(c->in[2] >> i & 1))
			continue;
		if (!w->grid)
			return CUDBGABI_ERROR_INVALID_WARP_MASK;
		if (!room--)
			return CUDBGABI_ERROR_BUFFER_TOO_SMALL;
		if (planted)
			out_bytes(&o, &planted->state, sizeof(planted->state));
		else
			put_convergence(&o, w);
	}
	call_out(c, o.data ? o.data : "", o.size);
	return CUDBGABI_SUCCESS;
}

call_fn *const calls_batch[SLOT_COUNT] = {
	[SLOT_readWarpState60] = warp_state60,
	[SLOT_readWarpState120] = warp_state120,
	[SLOT_readWarpState127] = warp_state127,
	[SLOT_readWarpState] = warp_state129,
	[SLOT_getDeviceInfoSizes] = device_info_sizes,
	[SLOT_getDeviceInfo] = device_info,
	[SLOT_getCbuWarpState] = cbu_state,
};
