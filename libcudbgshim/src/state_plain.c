/* SPDX-License-Identifier: MIT */
/* Reads the state of a device warp by warp, which every driver can do. */
#include "internal.h"

#include <errno.h>

#include "calls_warp.h"

static int read_warp(struct cudbgshim *s, const struct cudbgshim_place *at,
		     struct cudbgshim_state *state)
{
	size_t i = cudbgshim_state_index(state, at->sm, at->warp);
	struct cudbgshim_warp *w = &state->warps[i];
	struct cudbgshim_lanes lanes;
	int r = cudbgshim_read_warp(s, at, w, &lanes);

	if (r < 0)
		return r;
	if (w->valid_lanes & ~low_bits(state->n_lanes))
		return -EPROTO;
	memcpy(state->lane_pc + i * state->n_lanes, lanes.pc, state->n_lanes * sizeof(*lanes.pc));
	memcpy(state->lane_exception + i * state->n_lanes, lanes.exception,
	       state->n_lanes * sizeof(*lanes.exception));
	if (!HAS(s, getWarpHitBreakpoint) || !(state->broken_warps[at->sm] >> at->warp & 1))
		return 0;
	r = cudbgshim_get_hit_breakpoint(s, at, &w->breakpoint);
	if (!r)
		w->has |= CUDBGSHIM_WARP_BREAKPOINT;
	return r < 0 ? r : 0;
}

static int read_sm(struct cudbgshim *s, uint32_t dev, uint32_t sm, struct cudbgshim_state *state)
{
	struct cudbgshim_place at = { .dev = dev, .sm = sm };
	uint64_t valid, broken;
	int r = cudbgshim_read_valid_warps(s, dev, sm, &valid);

	if (r < 0 || !valid)
		return r;
	if (valid & ~low_bits(state->n_warps))
		return -EPROTO;
	r = cudbgshim_read_broken_warps(s, dev, sm, &broken);
	if (r < 0)
		return r;
	state->valid_warps[sm] = valid;
	state->broken_warps[sm] = broken & valid;
	for (; valid; valid &= valid - 1) {
		at.warp = (uint32_t)__builtin_ctzll(valid);
		r = read_warp(s, &at, state);
		if (r < 0)
			return r;
	}
	return 0;
}

int cudbgshim_state_read_plain(struct cudbgshim *s, uint32_t dev, struct cudbgshim_state *state)
{
	int r;

	cudbgshim_state_clear(state);
	r = cudbgshim_read_exception_sms(s, dev, state->n_sms, state->exception_sms);
	for (uint32_t sm = 0; !r && sm < state->n_sms; sm++)
		r = read_sm(s, dev, sm, state);
	if (r < 0)
		cudbgshim_state_clear(state);
	return r;
}
