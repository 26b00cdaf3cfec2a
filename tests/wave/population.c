/* SPDX-License-Identifier: MIT */
#include "population.h"

#include <string.h>

#define DISPATCH_INFO_ALWAYS 0x400u

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static uint32_t below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((next(state) >> 32) % n);
}

static bool one_in(uint64_t *state, uint32_t n)
{
	return below(state, n) == 0;
}

/* Mostly small: large ones only cost time. */
static uint32_t count(uint64_t *state, uint32_t granule, uint32_t max_blocks)
{
	uint32_t most = one_in(state, 40) ? max_blocks : max_blocks < 4 ? max_blocks : 4;

	return granule * (1 + below(state, most));
}

static void shape(const struct wave_silicon *g, uint64_t *state, struct wave_desc *w)
{
	w->wave32 = g->vgpr_granule32 && (!g->vgpr_granule || one_in(state, 2));
	w->vgprs = w->wave32 ? count(state, g->vgpr_granule32, g->vgprs_max / g->vgpr_granule32)
			     : count(state, g->vgpr_granule, g->vgprs_max / g->vgpr_granule);
	if (g->acc == WAVE_ACC_AS_ARCH)
		w->acc_vgprs = w->vgprs;
	/* Together a multiple of 8. */
	if (g->acc == WAVE_ACC_OWN)
		w->acc_vgprs = 8 * below(state, one_in(state, 40) ? 32 : 4) + w->vgprs % 8;
	if (g->shared_blocks.width && one_in(state, 3))
		w->shared_vgprs = 8 * below(state, 16);
	w->sgprs = g->sgpr_blocks.width ? 16 * (1 + below(state, 7)) : g->sgprs;
	if (!one_in(state, 3))
		w->lds_size = g->lds_unit * below(state, 8);
	if (one_in(state, 200))
		w->lds_size = g->lds_unit * ((1u << g->lds_units.width) - 1);
	w->wgp_takeover = g->wgp_takeover.width && one_in(state, 100);
}

static void place(const struct wave_silicon *g, uint64_t *state, struct wave_desc *w)
{
	if (g->engine.width)
		w->engine = below(state, 1u << g->engine.width);
	w->scratch_slot = below(state, 1u << g->scratch_slot.width);
	w->scratch_enabled = one_in(state, 2);
	w->restate = one_in(state, 6);
	w->events = one_in(state, 4) ? below(state, 4) : 0;
}

static void handler(const struct wave_silicon *g, uint64_t *state, struct wave_desc *w)
{
	w->stopped = one_in(state, 2);
	w->handler_written = w->stopped || g->ttmps == WAVE_TTMPS_CLASSIC || one_in(state, 2);
	w->launch_meaningless = one_in(state, 10);
	w->saved_halt = one_in(state, 4);
	w->debugger_attached = one_in(state, 2);
	w->trap_id = one_in(state, 2) ? below(state, 20) : 0;
	w->wave_id = next(state);
}

static void program(const struct wave_silicon *g, uint64_t *state, struct wave_desc *w)
{
	w->pc = next(state) & ((UINT64_C(1) << g->pc_bits) - 4);
	w->park_pc = next(state) & UINT64_C(0xfffffffffffc);
	w->exec = one_in(state, 8) ? 0 : next(state);
	w->vcc = next(state);
	w->flat_scratch = next(state);
	w->xnack_mask = next(state);
	w->m0 = (uint32_t)next(state);
	w->mode = (uint32_t)next(state);
	w->vgpr_banks = g->hwregs == WAVE_HWREGS_GFX1250 ? below(state, 64) : 0;
	/* One of four flags on average, so that reasons come alone and in company. */
	w->flags = next(state) & next(state);
	w->math = one_in(state, 2) ? below(state, 128) : 0;
	w->math_enable = one_in(state, 2) ? below(state, 128) : 0;
	w->is_noisy = !one_in(state, 3);
	w->seed = next(state);
}

bool population_has_launch_info(const struct population *p)
{
	return p->ttmp_setup || (p->debug_prop & DISPATCH_INFO_ALWAYS);
}

static struct wave_barrier barrier(uint64_t *state)
{
	if (one_in(state, 3))
		return (struct wave_barrier){ 0 };
	return (struct wave_barrier){ .members = 1 + below(state, 127), .signals = below(state, 128) };
}

static void barriers(const struct wave_silicon *g, uint64_t *state, struct wave_desc *w)
{
	w->barrier = barrier(state);
	if (g->hwregs != WAVE_HWREGS_GFX1250)
		return;
	w->cluster = barrier(state);
	for (size_t i = 0; i < WAVE_NAMED_BARRIERS; i++)
		w->named[i] = barrier(state);
}

static void group(struct population *p, uint64_t *state, size_t waves)
{
	struct wave_desc common = {
		.launch_written = population_has_launch_info(p) || one_in(state, 2),
		.group_yz = one_in(state, 2),
		.packet_slot = below(state, 1u << 25),
		.group = { (uint32_t)next(state), below(state, 65536), below(state, 65536) },
	};
	uint32_t from = below(state, 2) ? 0 : below(state, 16);

	shape(p->silicon, state, &common);
	barriers(p->silicon, state, &common);
	for (size_t i = 0; i < waves; i++) {
		struct wave_desc *w = &p->waves[p->n++];

		*w = common;
		w->first = i == 0;
		w->last = i == waves - 1;
		w->wave_in_group = from + (uint32_t)i;
		place(p->silicon, state, w);
		handler(p->silicon, state, w);
		program(p->silicon, state, w);
		/* Halted by itself, with what other waves left: nobody can tell it from one that was stopped. */
		if (p->silicon->ttmps == WAVE_TTMPS_CLASSIC && !population_has_launch_info(p) && !w->stopped)
			w->flags &= ~(UINT64_C(1) << WAVE_HALT);
	}
}

int population_create(const struct wave_silicon *g, uint64_t seed, struct population *ret)
{
	struct wave_save_options o = { .area_size = 64u << 20 };
	uint64_t state = seed;
	size_t groups;

	memset(ret, 0, sizeof(*ret));
	ret->silicon = g;
	ret->seed = seed;
	ret->r_version = 8 + below(&state, 4);
	ret->ttmp_setup = !one_in(&state, 4);
	ret->debug_prop = (uint32_t)next(&state) & 0xfff;
	groups = 1 + below(&state, 4);
	for (size_t i = 0; i < groups; i++)
		group(ret, &state, 1 + below(&state, POPULATION_WAVES_MAX / 8));
	o.r_version = ret->r_version;
	o.boundary = 0x1000 + 4 * below(&state, 1024);
	return wave_save_create(g, &o, ret->waves, ret->n, &ret->save);
}

void population_destroy(struct population *p)
{
	wave_save_destroy(&p->save);
}
