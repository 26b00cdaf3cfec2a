/* SPDX-License-Identifier: MIT */
/* Calls that look at grids, warps and lanes of a suspended device. */
#include "internal.h"

#include <errno.h>
#include <string.h>

#include "calls_warp.h"

/* ------------------------------------------------------------------ grids -------------------- */

int cudbgshim_get_grid(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
		       struct cudbgshim_grid *ret_grid)
{
	struct cudbgabi_grid_info in = { 0 };
	int r;

	/* Older slots fill a prefix of the struct; the rest stays 0. */
	if (HAS(s, getGridInfo))
		r = CALL(s, getGridInfo, dev, grid_id, &in);
	else if (HAS(s, getGridInfo120))
		r = CALL(s, getGridInfo120, dev, grid_id, &in);
	else
		r = CALL(s, getGridInfo55, dev, grid_id, &in);
	if (r < 0)
		return r;
	*ret_grid = (struct cudbgshim_grid){
		.id = in.grid_id,
		.context = in.context,
		.module = in.module,
		.function = in.function,
		.entry = in.function_entry,
		.parent = HAS(s, getBindlessConstAddress) ? 0 : in.parent_grid_id,
		.dev = in.dev,
		.tid = in.tid,
		.type = in.type,
		.origin = in.origin,
		.grid_dim = dim3_of(in.grid_dim),
		.block_dim = dim3_of(in.block_dim),
		.cluster_dim = dim3_of(in.cluster_dim),
		.preferred_cluster_dim = dim3_of(in.preferred_cluster_dim),
	};
	return 0;
}

int cudbgshim_get_grid_status(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
			      uint32_t *ret_status)
{
	uint32_t status = CUDBGABI_GRID_STATUS_INVALID;

	RETURN_VALUE(CALL(s, getGridStatus, dev, grid_id, &status), ret_status, status);
}

/* ------------------------------------------------------------------ masks and indices -------- */

int cudbgshim_read_valid_warps(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t *ret_mask)
{
	uint64_t mask = 0;

	RETURN_VALUE(CALL(s, readValidWarps, dev, sm, &mask), ret_mask, mask);
}

int cudbgshim_read_broken_warps(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t *ret_mask)
{
	uint64_t mask = 0;

	RETURN_VALUE(CALL(s, readBrokenWarps, dev, sm, &mask), ret_mask, mask);
}

int cudbgshim_get_block_dim(struct cudbgshim *s, const struct cudbgshim_place *at,
			    struct cudbgshim_dim3 *ret_dim)
{
	struct cudbgabi_dim3 dim = { 0 };

	RETURN_VALUE(CALL(s, getBlockDim, WARP_ARGS(at), &dim), ret_dim, dim3_of(dim));
}

/* ------------------------------------------------------------------ whole warps -------------- */

struct cudbgshim_dim3 cudbgshim_thread_of_lane(struct cudbgshim_dim3 base, uint32_t lane,
					       struct cudbgshim_dim3 block_dim)
{
	uint64_t x = (uint64_t)base.x + lane, y = base.y, z = base.z;

	if (block_dim.x) {
		y += x / block_dim.x;
		x %= block_dim.x;
	}
	if (block_dim.y) {
		z += y / block_dim.y;
		y %= block_dim.y;
	}
	return (struct cudbgshim_dim3){ (uint32_t)x, (uint32_t)y, (uint32_t)z };
}

/* Compute the thread of lane 0 from that of some lane; 0 where there is none. */
static struct cudbgshim_dim3 thread_of_base(struct cudbgshim_dim3 thread, uint32_t lane,
					    struct cudbgshim_dim3 dim)
{
	uint64_t x = dim.x ? dim.x : 1, y = dim.y ? dim.y : 1;
	uint64_t linear = ((uint64_t)thread.z * y + thread.y) * x + thread.x;

	linear = linear > lane ? linear - lane : 0;
	return (struct cudbgshim_dim3){ (uint32_t)(linear % x), (uint32_t)(linear / x % y),
					(uint32_t)(linear / x / y) };
}

static int set_base_thread(struct cudbgshim *s, const struct cudbgshim_place *at,
			   const struct cudbgabi_warp_state *in, struct cudbgshim_warp *w)
{
	struct cudbgshim_dim3 block_dim;
	uint32_t lane;
	int r;

	if (!w->valid_lanes)
		return 0;
	lane = (uint32_t)__builtin_ctz(w->valid_lanes);
	w->base_thread = dim3_of(in->lane[lane].thread_idx);
	if (lane == 0)
		return 0;
	r = cudbgshim_get_block_dim(s, at, &block_dim);
	if (!r)
		w->base_thread = thread_of_base(w->base_thread, lane, block_dim);
	return r;
}

static bool is_cluster(struct cudbgshim_dim3 dim)
{
	return dim.x > 1 || dim.y > 1 || dim.z > 1;
}

void warp_normalise(struct cudbgshim_warp *w)
{
	if ((w->has & CUDBGSHIM_WARP_CLUSTER_DIM) && !is_cluster(w->cluster_dim))
		w->has &= ~(CUDBGSHIM_WARP_CLUSTER | CUDBGSHIM_WARP_CLUSTER_DIM);
	if (!w->breakpoint)
		w->has &= ~CUDBGSHIM_WARP_BREAKPOINT;
	if (!(w->has & CUDBGSHIM_WARP_ERROR_PC))
		w->error_pc = 0;
	if (!(w->has & CUDBGSHIM_WARP_CLUSTER))
		w->cluster_idx = (struct cudbgshim_dim3){ 0 };
	if (!(w->has & CUDBGSHIM_WARP_CLUSTER_DIM))
		w->cluster_dim = (struct cudbgshim_dim3){ 0 };
	if (!(w->has & CUDBGSHIM_WARP_CLUSTER_TARGET))
		w->cluster_target = (struct cudbgshim_dim3){ 0 };
	if (!(w->has & CUDBGSHIM_WARP_BREAKPOINT))
		w->breakpoint = 0;
	w->active_lanes &= w->valid_lanes;
	w->syscall_lanes &= w->has & CUDBGSHIM_WARP_SYSCALL_LANES ? w->valid_lanes : 0;
}

/*
 * Tell whether a warp is in a cluster.  Slot 123 gives an index within a cluster also to warps in
 * none, and only the grid knows.  The cluster's dimensions stay out of the warp, as they do in the
 * batched state of those releases.
 */
static int set_cluster_120(struct cudbgshim *s, const struct cudbgshim_place *at,
			   struct cudbgshim_warp *w)
{
	struct cudbgabi_dim3 dim = { 0 };
	int r = CALL(s, getClusterDim120, at->dev, w->grid_id, &dim);

	if (!r && is_cluster(dim3_of(dim)))
		w->has |= CUDBGSHIM_WARP_CLUSTER;
	/*
	 * Some warps run grids that the driver itself does not know, so a failure here is ignored.
	 */
	return s->over ? r : 0;
}

/* Convert a warp.  Members beyond the slot's struct are 0 in @p in, and their bits stay clear. */
static int convert_warp(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t slot,
			const struct cudbgabi_warp_state *in, struct cudbgshim_warp *w)
{
	int r = 0;

	*w = (struct cudbgshim_warp){
		.grid_id = in->grid_id,
		.error_pc = in->error_pc,
		.block = dim3_of(in->block_idx),
		.cluster_idx = dim3_of(in->cluster_idx),
		.cluster_dim = dim3_of(in->cluster_dim),
		.cluster_target = dim3_of(in->cluster_exception_target_block_idx),
		.valid_lanes = in->valid_lanes,
		.active_lanes = in->active_lanes,
		.syscall_lanes = in->in_syscall_lanes,
	};
	if (in->error_pc_valid)
		w->has |= CUDBGSHIM_WARP_ERROR_PC;
	if (in->cluster_exception_target_block_idx_valid)
		w->has |= CUDBGSHIM_WARP_CLUSTER_TARGET;
	if (slot >= SLOT_readWarpState127)
		w->has |= CUDBGSHIM_WARP_CLUSTER | CUDBGSHIM_WARP_CLUSTER_DIM;
	if (slot >= SLOT_readWarpState)
		w->has |= CUDBGSHIM_WARP_SYSCALL_LANES;
	if (slot == SLOT_readWarpState120)
		r = set_cluster_120(s, at, w);
	if (!r)
		r = set_base_thread(s, at, in, w);
	return r;
}

static int call_warp_state(struct cudbgshim *s, const struct cudbgshim_place *at,
			   struct cudbgabi_warp_state *in)
{
	if (HAS(s, readWarpState))
		return CALL(s, readWarpState, WARP_ARGS(at), in);
	if (HAS(s, readWarpState127))
		return CALL(s, readWarpState127, WARP_ARGS(at), in);
	if (HAS(s, readWarpState120))
		return CALL(s, readWarpState120, WARP_ARGS(at), in);
	return CALL(s, readWarpState60, WARP_ARGS(at), in);
}

int cudbgshim_read_warp(struct cudbgshim *s, const struct cudbgshim_place *at,
			struct cudbgshim_warp *ret_warp, struct cudbgshim_lanes *ret_lanes)
{
	struct cudbgabi_warp_state in = { 0 };
	struct cudbgshim_warp w;
	int r = call_warp_state(s, at, &in);

	if (!r)
		r = convert_warp(s, at, s->last.slot, &in, &w);
	if (r < 0)
		return r;
	warp_normalise(&w);
	*ret_warp = w;
	*ret_lanes = (struct cudbgshim_lanes){ 0 };
	for (uint32_t lane = 0; lane < CUDBGSHIM_MAX_LANES; lane++) {
		if (!(w.valid_lanes >> lane & 1))
			continue;
		ret_lanes->pc[lane] = in.lane[lane].virtual_pc;
		ret_lanes->exception[lane] = in.lane[lane].exception;
	}
	return 0;
}

_Static_assert(sizeof(struct cudbgabi_cbu_warp_state) == sizeof(uint32_t[CUDBGSHIM_CONVERGENCE_WORDS]),
	       "it is words");

int cudbgshim_read_convergence(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t warps,
			       uint32_t (*ret_words)[CUDBGSHIM_CONVERGENCE_WORDS])
{
	struct cudbgabi_cbu_warp_state in[CUDBGABI_MAX_WARPS];
	const uint32_t n = (uint32_t)__builtin_popcountll(warps);
	int r;

	memset(in, 0xff, sizeof(in));
	r = CALL(s, getCbuWarpState, dev, sm, warps, in, n);
	if (r < 0)
		return r;
	memcpy(ret_words, in, n * sizeof(in[0]));
	return 0;
}

int cudbgshim_get_hit_breakpoint(struct cudbgshim *s, const struct cudbgshim_place *at,
				 uint64_t *ret_handle)
{
	uint64_t handle = CUDBGABI_BREAKPOINT_INVALID;
	int r = CALL(s, getWarpHitBreakpoint, WARP_ARGS(at), &handle);

	if (r < 0)
		return r;
	if (handle == CUDBGABI_BREAKPOINT_INVALID)
		return CUDBGSHIM_NONE;
	*ret_handle = handle;
	return 0;
}

/* ------------------------------------------------------------------ lanes -------------------- */

int cudbgshim_read_pc(struct cudbgshim *s, const struct cudbgshim_place *at, uint64_t *ret_pc)
{
	uint64_t pc = 0;

	RETURN_VALUE(CALL(s, readPC, LANE_ARGS(at), &pc), ret_pc, pc);
}

int cudbgshim_read_resources(struct cudbgshim *s, const struct cudbgshim_place *at,
			     struct cudbgshim_resources *ret_resources)
{
	struct cudbgabi_warp_resources in = { 0 };
	int r = CALL(s, readWarpResources, WARP_ARGS(at), &in);

	if (r < 0)
		return r;
	*ret_resources = (struct cudbgshim_resources){ in.shared_mem_size, in.num_registers };
	return 0;
}

int cudbgshim_get_barrier(struct cudbgshim *s, const struct cudbgshim_place *at,
			  uint32_t *ret_scope, char *text, size_t size)
{
	uint32_t scope = CUDBGSHIM_BARRIER_SCOPE_UNKNOWN, used = 0;
	int r;

	memset(text, 0, size);
	r = CALL(s, getHardwareBarrierInfo, LANE_ARGS(at), &scope, text, (uint32_t)size, &used);
	text[size - 1] = '\0';
	RETURN_VALUE(r, ret_scope, scope);
}
