/* SPDX-License-Identifier: MIT */
/* A GPU for the fake driver: plain calls, and an encoder of batches written from the format. */
#include "tests/unit/cudbgshim/cudbgshim_gpu.h"

struct gpu gpu;
static struct gpu sent;

const struct cudbgabi_dim3 gpu_cluster_dim = { 2, 1, 1 };

#define IN_CLUSTER(w) ((w)->grid & 1)

static struct gpu_warp *warp_at(struct gpu *g, uint32_t sm, uint32_t warp)
{
	return &g->warps[sm * g->n_warps + warp];
}

void gpu_reset(uint32_t n_sms, uint32_t n_warps, uint32_t n_lanes)
{
	free(gpu.warps);
	free(sent.warps);
	gpu = (struct gpu){ .n_sms = n_sms,
			    .n_warps = n_warps,
			    .n_lanes = n_lanes,
			    .n_known = 8,
			    .block_dim = { 48, 2, 4 },
			    .sent = &sent };
	gpu.warps = calloc((size_t)n_sms * n_warps, sizeof(*gpu.warps));
	sent = gpu;
	sent.warps = calloc((size_t)n_sms * n_warps, sizeof(*gpu.warps));
}

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(test_random() % n);
}

static void random_warp(struct gpu_warp *w)
{
	uint32_t all = gpu.n_lanes == 32 ? UINT32_MAX : (UINT32_C(1) << gpu.n_lanes) - 1;
	uint32_t linear = random_below(gpu.block_dim.x * 2);

	*w = (struct gpu_warp){ .grid = 1 + random_below(4), .pc = { 0 } };
	w->block = (struct cudbgabi_dim3){ random_below(100), random_below(9), random_below(3) };
	w->base.x = linear % gpu.block_dim.x;
	w->base.y = linear / gpu.block_dim.x;
	/* Sometimes without lane 0, from which the others are counted. */
	w->valid = random_below(4) ? all : ((uint32_t)test_random() & all) | 2u;
	w->active = (uint32_t)test_random() & w->valid;
	for (uint32_t lane = 0; lane < gpu.n_lanes; lane++)
		w->pc[lane] = test_random();
	if (random_below(4) == 0)
		w->exception = 1 + random_below(36);
	w->has_error_pc = w->exception && random_below(2);
	w->error_pc = w->has_error_pc ? test_random() : 0;
	w->has_target = w->exception == CUDBGABI_EXCEPTION_CLUSTER_BLOCK_NOT_PRESENT;
	w->target.y = w->has_target ? 7 : 0;
	w->cluster_idx.x = IN_CLUSTER(w) ? random_below(2) : 0;
	w->syscall = w->valid & (uint32_t)test_random() & (uint32_t)test_random();
	w->breakpoint = random_below(3) ? 0 : 0x1000 + random_below(9);
}

static void random_sm(uint32_t sm)
{
	uint64_t all = gpu.n_warps == 64 ? UINT64_MAX : (UINT64_C(1) << gpu.n_warps) - 1;

	gpu.valid[sm] = random_below(3) ? test_random() & all : 0;
	gpu.broken[sm] = gpu.valid[sm] & test_random();
	for (uint32_t warp = 0; warp < gpu.n_warps; warp++)
		if (gpu.valid[sm] >> warp & 1)
			random_warp(warp_at(&gpu, sm, warp));
}

static void random_exceptions(void)
{
	for (uint32_t sm = 0; sm < gpu.n_sms; sm++) {
		gpu.exception_sms[sm / 64] &= ~(UINT64_C(1) << sm % 64);
		gpu.exception_sms[sm / 64] |= (test_random() & 1) << sm % 64;
	}
}

void gpu_fill(void)
{
	for (uint32_t sm = 0; sm < gpu.n_sms; sm++)
		random_sm(sm);
	random_exceptions();
}

void gpu_change(void)
{
	uint32_t sm = random_below(gpu.n_sms), warp = random_below(gpu.n_warps);
	struct gpu_warp *w = warp_at(&gpu, sm, warp);

	random_exceptions();
	switch (random_below(5)) {
	case 0:
		random_sm(sm);
		break;
	case 1:
		gpu.valid[sm] = 0;
		gpu.broken[sm] = 0;
		break;
	case 2:
		gpu.valid[sm] ^= UINT64_C(1) << warp;
		gpu.broken[sm] &= gpu.valid[sm];
		random_warp(w);
		break;
	case 3:
		for (uint32_t lane = 0; lane < gpu.n_lanes; lane += 3)
			w->pc[lane] += 16;
		break;
	default:
		w->exception = w->exception ? 0 : CUDBGABI_EXCEPTION_WARP_MMU_FAULT;
		break;
	}
}

/* ------------------------------------------------------------------ plain calls -------------- */

#define SHOW_COUNT(vendor_name, member)                                                            \
	static uint32_t show_##vendor_name(uint32_t dev, uint32_t *n)                              \
	{                                                                                          \
		*n = gpu.member;                                                                   \
		return 0;                                                                          \
	}
SHOW_COUNT(getNumSMs, n_sms)
SHOW_COUNT(getNumWarps, n_warps)
SHOW_COUNT(getNumLanes, n_lanes)

static uint32_t show_valid(uint32_t dev, uint32_t sm, uint64_t *mask)
{
	*mask = gpu.valid[sm];
	return 0;
}

static uint32_t show_broken(uint32_t dev, uint32_t sm, uint64_t *mask)
{
	*mask = gpu.broken[sm];
	return 0;
}

static uint32_t show_exceptions(uint32_t dev, uint64_t *mask, uint32_t n_words)
{
	memcpy(mask, gpu.exception_sms, n_words * sizeof(*mask));
	return 0;
}

static uint32_t show_exceptions_80(uint32_t dev, uint64_t *mask)
{
	*mask = gpu.exception_sms[0];
	return 0;
}

static uint32_t show_block_dim(uint32_t dev, uint32_t sm, uint32_t warp, struct cudbgabi_dim3 *dim)
{
	*dim = gpu.block_dim;
	return 0;
}

static uint32_t show_cluster_dim(uint32_t dev, uint64_t grid, struct cudbgabi_dim3 *dim)
{
	*dim = grid & 1 ? gpu_cluster_dim : (struct cudbgabi_dim3){ 1, 1, 1 };
	return 0;
}

static uint32_t show_breakpoint(uint32_t dev, uint32_t sm, uint32_t warp, uint64_t *handle)
{
	*handle = warp_at(&gpu, sm, warp)->breakpoint;
	return 0;
}

static struct cudbgabi_dim3 thread_of(const struct gpu_warp *w, uint32_t lane)
{
	uint32_t linear = w->base.y * gpu.block_dim.x + w->base.x + lane;
	uint32_t row = linear / gpu.block_dim.x;

	return (struct cudbgabi_dim3){ linear % gpu.block_dim.x, row % gpu.block_dim.y,
				       row / gpu.block_dim.y };
}

/* @p size bytes of the newest struct: what an older slot knows of it. */
static uint32_t show_warp(uint32_t sm, uint32_t warp, void *state, size_t size)
{
	const struct gpu_warp *w = warp_at(&gpu, sm, warp);
	struct cudbgabi_warp_state out = {
		.grid_id = w->grid,
		.error_pc = w->error_pc,
		.block_idx = w->block,
		.valid_lanes = w->valid,
		.active_lanes = w->active,
		.error_pc_valid = w->has_error_pc,
		.cluster_idx = w->cluster_idx,
		.cluster_dim = IN_CLUSTER(w) ? gpu_cluster_dim : (struct cudbgabi_dim3){ 0 },
		.cluster_exception_target_block_idx_valid = w->has_target,
		.cluster_exception_target_block_idx = w->target,
		.in_syscall_lanes = w->syscall,
	};

	if (!(gpu.valid[sm] >> warp & 1))
		return CUDBGABI_ERROR_INVALID_WARP;
	for (uint32_t lane = 0; lane < gpu.n_lanes; lane++)
		out.lane[lane] = (struct cudbgabi_lane_state){ w->pc[lane], thread_of(w, lane),
							       w->exception };
	memcpy(state, &out, size);
	return 0;
}

#define SHOW_WARP(vendor_name, size)                                                               \
	static uint32_t show_##vendor_name(uint32_t dev, uint32_t sm, uint32_t warp,               \
					   struct cudbgabi_warp_state *state)                      \
	{                                                                                          \
		return show_warp(sm, warp, state, size);                                           \
	}
SHOW_WARP(readWarpState60, 808)
SHOW_WARP(readWarpState120, 820)
SHOW_WARP(readWarpState127, 848)
SHOW_WARP(readWarpState, 852)

/* ------------------------------------------------------------------ batches ------------------ */

struct writer {
	uint8_t *buf;
	size_t size, pos;
};

static void put(struct writer *out, const void *data, size_t size)
{
	CU_ASSERT_TRUE_FATAL(size <= out->size - out->pos);
	memcpy(out->buf + out->pos, data, size);
	out->pos += size;
}

static void put_u32(struct writer *out, uint32_t value)
{
	put(out, &value, sizeof(value));
}

static void put_u64(struct writer *out, uint64_t value)
{
	put(out, &value, sizeof(value));
}

/* Bytes that a decoder of today cannot know. */
static void put_unknown(struct writer *out, size_t size)
{
	static const uint8_t unknown[64] = { 0xee, 0xee, 0xee };

	put(out, unknown, size);
}

#define EXTRA_BIT  20u
#define EXTRA_SIZE 12u

struct cudbgshim_layout gpu_layout(void)
{
	static const uint32_t warp_sizes[] = { 4, 0, 4, 8, 12, 12, 12, 4, 8 };
	uint32_t mask = (gpu.n_sms + 63) / 64 * 8;
	struct cudbgshim_layout l = {
		.buffer_size = 16u << 20,
		.device = { .size = 8 + gpu.padding, .attribute = { mask, mask, mask } },
		.sm = { .size = 20 + gpu.padding, .attribute = { 8 } },
		.warp = { .size = 44 + gpu.padding },
		.lane = { .size = 8 + gpu.padding },
	};

	for (uint32_t bit = 0; bit <= gpu.n_known; bit++)
		l.warp.attribute[bit] = warp_sizes[bit];
	if (gpu.extras) {
		l.device.attribute[EXTRA_BIT] = EXTRA_SIZE;
		l.sm.attribute[EXTRA_BIT] = EXTRA_SIZE;
		l.warp.attribute[EXTRA_BIT] = EXTRA_SIZE;
		l.lane.attribute[EXTRA_BIT] = EXTRA_SIZE;
	}
	return l;
}

static uint32_t extra_flag(void)
{
	return gpu.extras ? UINT32_C(1) << EXTRA_BIT : 0;
}

static void put_extra(struct writer *out)
{
	if (gpu.extras)
		put_unknown(out, EXTRA_SIZE);
}

static bool lanes_differ(const struct gpu_warp *a, const struct gpu_warp *b)
{
	return memcmp(a->pc, b->pc, sizeof(a->pc)) != 0;
}

static bool warps_differ(const struct gpu_warp *a, const struct gpu_warp *b)
{
	return lanes_differ(a, b) || a->grid != b->grid || a->valid != b->valid ||
	       a->active != b->active || a->exception != b->exception ||
	       a->breakpoint != b->breakpoint || a->syscall != b->syscall ||
	       memcmp(&a->block, &b->block, sizeof(a->block)) ||
	       memcmp(&a->base, &b->base, sizeof(a->base));
}

static void put_warp(struct writer *out, bool full, const struct gpu_warp *w,
		     const struct gpu_warp *old, bool was_valid)
{
	uint32_t flags = extra_flag(), update = 0;
	const uint32_t known = (UINT32_C(2) << gpu.n_known) - 1;

	for (uint32_t lane = 0; lane < gpu.n_lanes; lane++)
		if (full || !was_valid || !(old->valid >> lane & 1) || w->pc[lane] != old->pc[lane])
			update |= UINT32_C(1) << lane;
	flags |= full ? 0 : 1u << CUDBGABI_WARP_ATTR_LANE_UPDATE_MASK;
	flags |= gpu.extras ? 1u << CUDBGABI_WARP_ATTR_LANE_ATTRIBUTES : 0;
	flags |= w->exception ? 1u << CUDBGABI_WARP_ATTR_EXCEPTION : 0;
	flags |= w->has_error_pc ? 1u << CUDBGABI_WARP_ATTR_ERROR_PC : 0;
	flags |= IN_CLUSTER(w) ? known & (3u << CUDBGABI_WARP_ATTR_CLUSTER_IDX) : 0;
	flags |= w->has_target
			 ? known & (1u << CUDBGABI_WARP_ATTR_CLUSTER_EXCEPTION_TARGET_BLOCK_IDX)
			 : 0;
	flags |= known & (1u << CUDBGABI_WARP_ATTR_IN_SYSCALL_LANES);
	flags |= w->breakpoint ? known & (1u << CUDBGABI_WARP_ATTR_HIT_BREAKPOINT_HANDLE) : 0;

	put_u64(out, w->grid);
	put(out, &w->block, sizeof(w->block));
	put(out, &w->base, sizeof(w->base));
	put_u32(out, w->valid);
	put_u32(out, w->active);
	put_u32(out, flags);
	put_unknown(out, gpu.padding);
	for (uint32_t bit = 0; bit < 9; bit++) {
		if (!(flags >> bit & 1))
			continue;
		switch (bit) {
		case 0:
			put_u32(out, update);
			break;
		case 2:
			put_u32(out, w->exception);
			break;
		case 3:
			put_u64(out, w->error_pc);
			break;
		case 4:
			put(out, &w->cluster_idx, 12);
			break;
		case 5:
			put(out, &gpu_cluster_dim, 12);
			break;
		case 6:
			put(out, &w->target, 12);
			break;
		case 7:
			put_u32(out, w->syscall);
			break;
		case 8:
			put_u64(out, w->breakpoint);
			break;
		default:
			break;
		}
	}
	put_extra(out);
	for (uint32_t lane = 0; lane < gpu.n_lanes; lane++) {
		if (!(w->valid & update & UINT32_C(1) << lane))
			continue;
		put_u64(out, w->pc[lane]);
		put_unknown(out, gpu.padding);
		if (gpu.extras) {
			put_u32(out, extra_flag());
			put_extra(out);
		}
	}
}

static uint64_t warps_to_send(uint32_t sm, bool full)
{
	uint64_t mask = 0;

	for (uint32_t warp = 0; warp < gpu.n_warps; warp++)
		if (full || ((gpu.valid[sm] ^ sent.valid[sm]) >> warp & 1) ||
		    ((gpu.broken[sm] ^ sent.broken[sm]) >> warp & 1) ||
		    warps_differ(warp_at(&gpu, sm, warp), warp_at(&sent, sm, warp)))
			mask |= UINT64_C(1) << warp;
	return mask;
}

static void put_sm(struct writer *out, uint32_t sm, bool full)
{
	uint64_t update = warps_to_send(sm, full);

	put_u64(out, gpu.valid[sm]);
	put_u64(out, gpu.broken[sm]);
	put_u32(out, extra_flag() | (full ? 0 : 1u << CUDBGABI_SM_ATTR_WARP_UPDATE_MASK));
	put_unknown(out, gpu.padding);
	if (!full)
		put_u64(out, update);
	put_extra(out);
	for (uint32_t warp = 0; warp < gpu.n_warps; warp++)
		if (gpu.valid[sm] & update & UINT64_C(1) << warp)
			put_warp(out, full, warp_at(&gpu, sm, warp), warp_at(&sent, sm, warp),
				 sent.valid[sm] >> warp & 1);
}

size_t gpu_encode(bool full, uint8_t *buf, size_t size)
{
	struct writer out = { .buf = buf, .size = size };
	uint64_t update[4] = { 0 }, active[4] = { 0 };
	size_t mask_size = (gpu.n_sms + 63) / 64 * 8;
	struct gpu_warp *warps = sent.warps;

	for (uint32_t sm = 0; sm < gpu.n_sms; sm++) {
		uint64_t bit = UINT64_C(1) << sm % 64;

		update[sm / 64] |= warps_to_send(sm, full) ? bit : 0;
		active[sm / 64] |= gpu.valid[sm] ? bit : 0;
	}
	put_u32(&out, full ? CUDBGABI_DEVICE_INFO_FULL : CUDBGABI_DEVICE_INFO_UPDATE);
	put_u32(&out, extra_flag() | (full ? 6 : 7));
	put_unknown(&out, gpu.padding);
	if (!full)
		put(&out, update, mask_size);
	put(&out, active, mask_size);
	put(&out, gpu.exception_sms, mask_size);
	put_extra(&out);
	for (uint32_t sm = 0; sm < gpu.n_sms; sm++)
		if (update[sm / 64] & active[sm / 64] & UINT64_C(1) << sm % 64)
			put_sm(&out, sm, full);

	memcpy(warps, gpu.warps, (size_t)gpu.n_sms * gpu.n_warps * sizeof(*warps));
	sent = gpu;
	sent.warps = warps;
	return out.pos;
}

static uint32_t show_sizes(uint32_t dev, struct cudbgabi_device_info_sizes *sizes)
{
	struct cudbgshim_layout l = gpu_layout();

	sizes->required_buffer_size = l.buffer_size;
	sizes->device_size = l.device.size;
	sizes->sm_size = l.sm.size;
	sizes->warp_size = l.warp.size;
	sizes->lane_size = l.lane.size;
	memcpy(sizes->device_attr, l.device.attribute, sizeof(sizes->device_attr));
	memcpy(sizes->sm_attr, l.sm.attribute, sizeof(sizes->sm_attr));
	memcpy(sizes->warp_attr, l.warp.attribute, sizeof(sizes->warp_attr));
	memcpy(sizes->lane_attr, l.lane.attribute, sizeof(sizes->lane_attr));
	return gpu.layout_result;
}

static uint32_t show_batch(uint32_t dev, uint32_t type, void *buf, uint32_t length, uint32_t *used)
{
	bool full = type == CUDBGABI_DEVICE_INFO_FULL;

	if (gpu.batch_result)
		return gpu.batch_result;
	*(full ? &gpu.n_full : &gpu.n_update) += 1;
	*used = (uint32_t)((long)gpu_encode(full, buf, length) + gpu.skew);
	return 0;
}

void gpu_install(void)
{
	FAKE_SLOT(getNumSMs, show_getNumSMs);
	FAKE_SLOT(getNumWarps, show_getNumWarps);
	FAKE_SLOT(getNumLanes, show_getNumLanes);
	FAKE_SLOT(readValidWarps, show_valid);
	FAKE_SLOT(readBrokenWarps, show_broken);
	FAKE_SLOT(readDeviceExceptionState80, show_exceptions_80);
	FAKE_SLOT(readDeviceExceptionState, show_exceptions);
	FAKE_SLOT(getBlockDim, show_block_dim);
	FAKE_SLOT(readWarpState60, show_readWarpState60);
	if (fake.n_slots > SLOT_readWarpState120) {
		FAKE_SLOT(readWarpState120, show_readWarpState120);
		FAKE_SLOT(getClusterDim120, show_cluster_dim);
	}
	if (fake.n_slots > SLOT_getDeviceInfo) {
		FAKE_SLOT(getDeviceInfoSizes, show_sizes);
		FAKE_SLOT(getDeviceInfo, show_batch);
	}
	if (fake.n_slots > SLOT_readWarpState127)
		FAKE_SLOT(readWarpState127, show_readWarpState127);
	if (fake.n_slots > SLOT_readWarpState)
		FAKE_SLOT(readWarpState, show_readWarpState);
	if (fake.n_slots > SLOT_getWarpHitBreakpoint)
		FAKE_SLOT(getWarpHitBreakpoint, show_breakpoint);
}
