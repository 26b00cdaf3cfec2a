/* SPDX-License-Identifier: MIT */
#include "agentd/worker/cuda/warp.h"

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

uint32_t cuda_warp_speaker(const struct cuda_warp *w)
{
	for (uint32_t left = w->lanes; left; left &= left - 1)
		if (w->exceptions[first_of(left)])
			return first_of(left);
	return cuda_warp_first_lane(w);
}

bool cuda_warp_shows(const struct cuda_warp *w, uint32_t code)
{
	for (uint32_t left = w->lanes; left; left &= left - 1) {
		uint32_t of_lane = w->exceptions[first_of(left)];

		if (of_lane && (!code || of_lane == code))
			return true;
	}
	return false;
}

void cuda_warp_fill_wave(const struct cuda_warp *w, uint32_t speaker, struct wave *ret)
{
	const struct cuda_exception *e = cuda_exception(w->exceptions[speaker]);
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

void cuda_warp_add_number(uint32_t n_lanes, struct cudbgshim_dim3 block_dim, uint32_t lane,
			  struct cudbgshim_dim3 thread, struct wave *ret)
{
	uint64_t number =
		thread.x + (uint64_t)block_dim.x * (thread.y + (uint64_t)block_dim.y * thread.z);

	if (!n_lanes || number < lane)
		return;
	number = (number - lane) / n_lanes;
	ret->has_wave_in_group = number <= UINT8_MAX;
	ret->wave_in_group = (uint8_t)number;
}
