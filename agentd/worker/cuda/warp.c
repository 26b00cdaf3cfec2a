/* SPDX-License-Identifier: MIT */
#include "agentd/worker/cuda/warp.h"

#include <stdlib.h>
#include <string.h>

#include "agentd/worker/cuda/exception.h"

static uint32_t first_of(uint32_t lanes)
{
	return lanes ? (uint32_t)__builtin_ctz(lanes) : 0;
}

uint32_t cuda_warp_first_lane(const struct cuda_warp *w)
{
	uint32_t active = w->whole->active_lanes & w->lanes;

	return first_of(active ? active : w->lanes);
}

uint32_t cuda_warp_exception(const struct cuda_warp *w, uint32_t lane)
{
	uint32_t active = w->whole->active_lanes & w->lanes;

	if (active >> lane & 1)
		return w->exceptions[lane];
	for (uint32_t left = active; left; left &= left - 1)
		if (w->exceptions[first_of(left)])
			return 0;
	return w->exceptions[lane];
}

/* So it is with most warps, and a device has thousands. */
static bool has_no_exception(const struct cuda_warp *w)
{
	uint32_t any = 0;

	for (uint32_t left = w->lanes; left; left &= left - 1)
		any |= w->exceptions[first_of(left)];
	return !any;
}

uint32_t cuda_warp_speaker(const struct cuda_warp *w)
{
	if (has_no_exception(w))
		return cuda_warp_first_lane(w);
	for (uint32_t left = w->lanes; left; left &= left - 1)
		if (cuda_warp_exception(w, first_of(left)))
			return first_of(left);
	return cuda_warp_first_lane(w);
}

bool cuda_warp_shows(const struct cuda_warp *w, uint32_t code)
{
	for (uint32_t left = w->lanes; left; left &= left - 1) {
		uint32_t of_lane = cuda_warp_exception(w, first_of(left));

		if (of_lane && (!code || of_lane == code))
			return true;
	}
	return false;
}

void cuda_warp_fill_wave(const struct cuda_warp *w, uint32_t speaker, struct wave *ret)
{
	const struct cuda_exception *e = cuda_exception(cuda_warp_exception(w, speaker));
	const struct cudbgshim_warp *whole = w->whole;

	*ret = (struct wave){
		.pc = whole->has & CUDBGSHIM_WARP_ERROR_PC && e ? whole->error_pc : w->pcs[speaker],
		.exec = whole->active_lanes,
		.dispatch = whole->grid_id,
		.gpu_id = w->gpu_id,
		.unit = w->sm,
		.index = w->index,
		.workgroup = { whole->block.x, whole->block.y, whole->block.z },
		.state = e || w->broken ? RPC_WAVE_STATE_STOPPED : RPC_WAVE_STATE_RUNNING,
		.lanes = (uint8_t)__builtin_popcount(whole->active_lanes),
		.width = w->n_lanes < 64 ? (uint8_t)w->n_lanes : 64,
		.has_dispatch = true,
		.has_workgroup = true,
	};
	if (e) {
		ret->reasons = e->reason;
		ret->exception = e->text;
	} else if (w->broken) {
		ret->reasons = STOP_REASON_BIT(whole->has & CUDBGSHIM_WARP_BREAKPOINT ?
						       RPC_STOP_REASON_BREAKPOINT :
						       RPC_STOP_REASON_TRAP);
	}
}

bool cuda_is_cluster(const struct cudbgshim_dim3 *size)
{
	return size->x > 1 || size->y > 1 || size->z > 1;
}

bool cuda_warp_cluster(const struct cuda_warp *w, const struct cudbgshim_grid *g, uint32_t ret[3])
{
	const bool has = w->whole->has & CUDBGSHIM_WARP_CLUSTER_DIM;
	const struct cudbgshim_dim3 *size = has ? &w->whole->cluster_dim : &g->cluster_dim;

	if (!has && cuda_is_cluster(&g->preferred_cluster_dim) &&
	    memcmp(&g->preferred_cluster_dim, size, sizeof(*size)) != 0)
		return false;
	if (cuda_is_cluster(size))
		memcpy(ret, (uint32_t[]){ size->x ? size->x : 1, size->y ? size->y : 1, size->z ? size->z : 1 },
		       sizeof(*size));
	return true;
}

/* ------------------------------------------------------------------ parts -------------------- */

bool cuda_warp_is_apart(const struct cuda_warp *w)
{
	uint64_t pc = w->pcs[cuda_warp_first_lane(w)];

	for (uint32_t left = w->lanes; left; left &= left - 1)
		if (w->pcs[first_of(left)] != pc)
			return true;
	return false;
}

/* @return the lanes that are where one is, and execute if it does. */
static uint32_t lanes_with(const struct cuda_warp *w, uint32_t lane)
{
	uint32_t active = w->whole->active_lanes, found = 0;

	for (uint32_t left = w->lanes; left; left &= left - 1) {
		uint32_t other = first_of(left);

		if (w->pcs[other] == w->pcs[lane] && (active >> other & 1) == (active >> lane & 1))
			found |= UINT32_C(1) << other;
	}
	return found;
}

static uint32_t lane_of_part(const struct cuda_warp *w, uint32_t lanes)
{
	for (uint32_t left = lanes; left; left &= left - 1)
		if (cuda_warp_exception(w, first_of(left)))
			return first_of(left);
	return first_of(lanes);
}

/* What the lanes of a part did is told of them, and what stopped the warp of those that execute. */
static void fill_part(const struct cuda_warp *w, uint32_t lanes, const struct wave *wave,
		      struct wave *ret)
{
	uint32_t lane = lane_of_part(w, lanes);
	const struct cuda_exception *e = cuda_exception(cuda_warp_exception(w, lane));

	*ret = *wave;
	ret->pc = w->pcs[lane];
	ret->lane = (uint8_t)lane;
	ret->exec = lanes;
	ret->lanes = (uint8_t)__builtin_popcount(lanes);
	ret->is_part = true;
	ret->waits = !(w->whole->active_lanes & lanes);
	if (e) {
		ret->reasons = e->reason;
		ret->exception = e->text;
	} else if (wave->exception || ret->waits) {
		ret->reasons = 0;
		ret->exception = NULL;
	}
}

void cuda_warp_add_parts(const struct cuda_warp *w, uint32_t speaker, struct cuda_parts *p,
			 struct wave *ret)
{
	uint32_t masks[CUDBGSHIM_MAX_LANES], n = 0;
	struct wave_parts *parts;

	if (!cuda_warp_is_apart(w))
		return;
	masks[n++] = lanes_with(w, speaker);
	for (uint32_t left = w->lanes & ~masks[0]; left; left &= ~masks[n++])
		masks[n] = lanes_with(w, first_of(left));
	if (n > WAVES_PARTS_MAX - p->n) {
		p->left_out++;
		return;
	}
	parts = rpc_arena_array(p->arena, 1, sizeof(*parts));
	if (parts)
		parts->list = rpc_arena_array(p->arena, n, sizeof(*parts->list));
	if (!parts || !parts->list)
		return;
	for (; parts->n < n; parts->n++)
		fill_part(w, masks[parts->n], ret, &parts->list[parts->n]);
	/* The address of the exception may be another one than where the lanes are by now. */
	parts->list[0].pc = ret->pc;
	parts->list[0].lane = (uint8_t)speaker;
	for (uint32_t i = 0; i < n; i++)
		parts->list[i].parts = parts;
	ret->parts = parts;
	p->n += n;
}

const char *cuda_parts_missing(const struct cuda_parts *p)
{
	if (!p->left_out)
		return NULL;
	return rpc_arena_printf(p->arena,
				"parts of waves: more than %u, so %u %s told as if all of %s "
				"lanes were at one place",
				WAVES_PARTS_MAX, p->left_out,
				p->left_out == 1 ? "wave is" : "waves are",
				p->left_out == 1 ? "its" : "their");
}

/* ------------------------------------------------------------------ numbers ------------------ */

void cuda_warp_add_number(uint32_t n_lanes, struct cudbgshim_dim3 block_dim, uint32_t lane,
			  struct cudbgshim_dim3 thread, struct wave *ret)
{
	uint64_t number =
		thread.x + (uint64_t)block_dim.x * (thread.y + (uint64_t)block_dim.y * thread.z);

	const uint64_t threads = (uint64_t)block_dim.x * block_dim.y * block_dim.z;

	if (!n_lanes || number < lane)
		return;
	ret->group_waves = threads <= UINT16_MAX ? (uint16_t)((threads + n_lanes - 1) / n_lanes) : 0;
	number = (number - lane) / n_lanes;
	ret->has_wave_in_group = number <= UINT8_MAX;
	ret->wave_in_group = (uint8_t)number;
}

bool cuda_arch_is_sm_90_or_newer(const char *sm_type)
{
	return !strncmp(sm_type, "sm_", 3) && strtoul(sm_type + 3, NULL, 10) >= 90;
}
