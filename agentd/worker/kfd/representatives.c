/* SPDX-License-Identifier: MIT */
/*
 * Registers of one wave from each place where waves are, from the same stop as all waves.  Which
 * waves will stand for their groups is not known yet then: of those that agree in device, address,
 * state and reasons the first one is taken.
 */
#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/kfd/registers.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "base/cleanup.h"

/* As many groups as anybody looks at one by one. */
#define EXAMPLES_MAX 64u

/* Waves that agree in all of it are at the same place. */
struct stand {
	const struct target_device *device;
	uint64_t pc;
	uint32_t stop_reasons;
	bool stopped, halted;
};

struct examples {
	uint8_t *bytes; /* EXAMPLES_MAX times RECORD_MAX; what is never touched costs nothing */
	struct stand places[EXAMPLES_MAX];
	struct record records[EXAMPLES_MAX];
	size_t n;
	size_t n_copied; /* or tried */
	bool too_many;
};

static bool is_known(const struct examples *e, const struct stand *p)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct stand *q = &e->places[i];

		if (q->pc == p->pc && q->device == p->device && q->stopped == p->stopped &&
		    q->halted == p->halted && q->stop_reasons == p->stop_reasons)
			return true;
	}
	return false;
}

static void consider(struct examples *e, const struct record *found)
{
	const struct stand p = { .device = found->area->look->device,
				 .pc = found->state.pc,
				 .stop_reasons = found->state.stop_reasons,
				 .stopped = found->state.stopped,
				 .halted = found->state.halted };
	struct record *r = &e->records[e->n];

	if (is_known(e, &p))
		return;
	if (e->n == EXAMPLES_MAX) {
		e->too_many = true;
		return;
	}
	*r = *found;
	r->bytes = e->bytes + e->n * RECORD_MAX;
	e->places[e->n++] = p;
}

/* @param faults  Only waves that stopped for a reason, or only others. */
static void look_through(struct work *w, struct examples *e, const struct area *a, bool faults)
{
	const struct kfdtrap_wave_context context = work_context(w, a);
	struct record found = { .area = a };
	struct kfdtrap_wave_iter iter;
	size_t at = a->first;

	work_walk(w, a, &iter);
	for (; kfdtrap_wave_next(&iter, &found.layout) && !w->late; at++)
		if (w->copied[at] &&
		    !kfdtrap_wave_read_state(a->look->arch, &context, &found.layout,
					     w->hot + at * KFDTRAP_WAVE_HOT_SIZE, &found.state) &&
		    (found.state.stop_reasons != 0) == faults)
			consider(e, &found);
}

/* On any thread of the pool. */
static void copy_one(void *ctx, size_t i)
{
	struct work *w = ctx;
	struct examples *e = w->more_ctx;

	record_copy(w, &e->records[e->n_copied + i]);
}

/* Those that stopped for a reason first: there must be room for them. */
static void copy_examples(struct work *w, uint32_t round)
{
	struct examples *e = w->more_ctx;

	for (int faults = 1; faults >= 0; faults--)
		for (size_t i = 0; i < w->n_areas && !w->late; i++)
			if (look_is_in(w->areas[i].look, round) && w->areas[i].state == AREA_READ)
				look_through(w, e, &w->areas[i], faults);
	thread_pool_run(w->k->pool, copy_one, w, e->n - e->n_copied);
	e->n_copied = e->n;
}

static int fill(struct work *w, const struct examples *e, struct target_waves *ret)
{
	static const struct target_registers_wanted all = { .banks = UINT32_MAX,
							    .count = UINT32_MAX };

	ret->registers = rpc_arena_array(w->arena, e->n, sizeof(*ret->registers));
	for (size_t i = 0; ret->registers && i < e->n; i++) {
		struct wave *wave = record_wave(ret, &e->records[i]);
		struct rpc_wave *converted = wave ? waves_convert(w->arena, wave, NULL, 1) : NULL;
		struct rpc_wave_registers *to = &ret->registers[ret->n_registers];

		if (!e->records[i].got || !converted)
			continue;
		record_fill(w->arena, &e->records[i], &all, to);
		to->wave = *converted;
		ret->n_registers++;
	}
	return rpc_arena_error(w->arena);
}

int kfd_examples(struct work *w, struct target_waves *ret, struct agent_err *err)
{
	auto_free uint8_t *bytes = malloc(EXAMPLES_MAX * RECORD_MAX);
	auto_free struct examples *e = calloc(1, sizeof(*e));
	int r;

	if (!bytes || !e)
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	e->bytes = bytes;
	w->more = copy_examples;
	w->more_ctx = e;
	r = work_run(w, ret, err);
	if (r == 0 && fill(w, e, ret) < 0)
		r = agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	if (e->too_many)
		work_add_missing(
			w,
			"registers: waves are at more places than those of which they are taken");
	ret->missing = w->missing;
	ret->n_missing = w->n_missing;
	return r;
}
