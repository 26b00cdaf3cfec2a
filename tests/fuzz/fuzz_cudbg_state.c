/* SPDX-License-Identifier: MIT */
/*
 * Batched states: a first answer and, behind it, an update.
 *
 * Layout of an input: SMs, warps, lanes, padding of each fixed part, size of an attribute that
 * nobody knows, length of the first answer in 256s and in ones, one unused; then the answers.
 */
#include "cudbgshim.h"
#include "fuzzlib.h"

#define PREFIX 8u

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static struct cudbgshim_layout make_layout(uint32_t n_sms, uint32_t padding, uint32_t unknown)
{
	static const uint32_t warp_sizes[] = { 4, 0, 4, 8, 12, 12, 12, 4, 8 };
	uint32_t mask = (n_sms + 63) / 64 * 8;
	struct cudbgshim_layout l = {
		.buffer_size = 4096,
		.device = { .size = 8 + padding, .attribute = { mask, mask, mask, unknown } },
		.sm = { .size = 20 + padding, .attribute = { 8, unknown } },
		.warp = { .size = 44 + padding },
		.lane = { .size = 8 + padding, .attribute = { unknown } },
	};

	for (uint32_t bit = 0; bit < 9; bit++)
		l.warp.attribute[bit] = warp_sizes[bit];
	l.warp.attribute[20] = unknown;
	return l;
}

static uint64_t low_bits(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

/* What every state has to be, after success and after failure. */
static void check_state(const struct cudbgshim_state *state, bool is_empty)
{
	for (uint32_t sm = 0; sm < state->n_sms; sm++) {
		uint64_t valid = state->valid_warps[sm];

		check((valid & ~low_bits(state->n_warps)) == 0);
		check((state->broken_warps[sm] & ~valid) == 0);
		check(!is_empty || !valid);
		for (uint32_t warp = 0; warp < state->n_warps; warp++) {
			size_t i = cudbgshim_state_index(state, sm, warp);
			const struct cudbgshim_warp *w = &state->warps[i];
			uint32_t lanes = valid >> warp & 1 ? w->valid_lanes : 0;

			check((w->valid_lanes & ~low_bits(state->n_lanes)) == 0);
			check(((w->active_lanes | w->syscall_lanes) & ~w->valid_lanes) == 0);
			check((valid >> warp & 1) || (!w->valid_lanes && !w->grid_id && !w->has));
			for (uint32_t lane = 0; lane < state->n_lanes; lane++)
				check((lanes >> lane & 1) ||
				      (!state->lane_pc[i * state->n_lanes + lane] &&
				       !state->lane_exception[i * state->n_lanes + lane]));
		}
	}
}

static void decode(struct cudbgshim_state *state, const struct cudbgshim_layout *layout,
		   const uint8_t *data, size_t size)
{
	size_t bad_at = 0;
	int r = cudbgshim_state_decode(state, layout, data, size, &bad_at);

	check(bad_at <= size);
	check(state->updatable == (r == 0));
	check_state(state, r < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cudbgshim_state *state;
	struct cudbgshim_layout layout;
	size_t first;

	if (size < PREFIX)
		return 0;
	if (cudbgshim_state_create(data[0] % 130 + 1, data[1] % 4 + 1, data[2] % 32 + 1, &state) <
	    0)
		return 0;
	layout = make_layout(state->n_sms, data[3] % 16, data[4] % 64);
	first = (size_t)data[5] << 8 | data[6];
	data += PREFIX;
	size -= PREFIX;
	if (first > size)
		first = size;
	decode(state, &layout, data, first);
	decode(state, &layout, data + first, size - first);
	cudbgshim_state_destroy(state);
	return 0;
}
