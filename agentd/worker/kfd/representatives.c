/* SPDX-License-Identifier: MIT */
/*
 * Registers of one wave from each place where waves are, from the same stop as all waves.  The
 * groups are not known yet during the stop, so the first one of all waves that agree in device, pc,
 * state and reasons is taken.
 */
#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/kfd/registers.h"
#include "agentd/worker/snapshot/registers.h"
#include "base/cleanup.h"

/* As many groups as a person looks at one by one. */
#define REPRESENTATIVES_MAX 64u

/* Waves that agree in all these members are at the same place. */
struct stand {
	const struct target_device *device;
	uint64_t pc;
	uint32_t stop_reasons;
	bool stopped, halted;
};

/* The waves chosen so far, and their copies. */
struct representatives {
	/* REPRESENTATIVES_MAX times SAVED_WAVE_MAX; pages that are never touched cost nothing. */
	uint8_t *bytes;
	struct stand places[REPRESENTATIVES_MAX];
	struct saved_wave records[REPRESENTATIVES_MAX];
	size_t n;
	size_t n_copied; /* How many were copied, or could not be. */
	bool too_many;
};

static bool is_known(const struct representatives *e, const struct stand *p)
{
	for (size_t i = 0; i < e->n; i++) {
		const struct stand *q = &e->places[i];

		if (q->pc == p->pc && q->device == p->device && q->stopped == p->stopped &&
		    q->halted == p->halted && q->stop_reasons == p->stop_reasons)
			return true;
	}
	return false;
}

static void consider(struct representatives *e, const struct wave_cursor *c)
{
	const struct stand p = { .device = c->area->capture->device,
				 .pc = c->state.pc,
				 .stop_reasons = c->state.stop_reasons,
				 .stopped = c->state.stopped,
				 .halted = c->state.halted };

	if (is_known(e, &p))
		return;
	if (e->n == REPRESENTATIVES_MAX) {
		e->too_many = true;
		return;
	}
	e->records[e->n] = (struct saved_wave){ .area = c->area,
						.layout = c->layout,
						.state = c->state,
						.bytes = e->bytes + e->n * SAVED_WAVE_MAX };
	e->places[e->n++] = p;
}

/* @param faults  Consider only waves that stopped for a reason, or only the others. */
static void look_through(struct wave_capture *w, struct representatives *e,
			 const struct save_area *a, bool faults)
{
	struct wave_cursor c;

	wave_cursor_init(&c, w, a);
	while (!w->late && wave_cursor_next(&c))
		if (c.copied && !c.problem && (c.state.stop_reasons != 0) == faults)
			consider(e, &c);
}

/* Copy one wave, on any thread of the pool. */
static void copy_one(void *ctx, size_t i)
{
	struct wave_capture *w = ctx;
	struct representatives *e = w->ctx;

	saved_wave_copy(w, &e->records[e->n_copied + i]);
}

/* Waves that stopped for a reason are chosen first, so that there is room for them. */
static void copy_examples(struct wave_capture *w, uint32_t round)
{
	struct representatives *e = w->ctx;

	for (int faults = 1; faults >= 0; faults--)
		for (size_t i = 0; i < w->n_areas && !w->late; i++)
			if (queue_capture_is_in(w->areas[i].capture, round) &&
			    w->areas[i].state == SAVE_AREA_READ)
				look_through(w, e, &w->areas[i], faults);
	thread_pool_run(w->k->pool, copy_one, w, e->n - e->n_copied);
	e->n_copied = e->n;
}

static int fill(struct wave_capture *w, const struct representatives *e, struct target_waves *ret)
{
	ret->registers = rpc_arena_array(w->arena, e->n, sizeof(*ret->registers));
	for (size_t i = 0; ret->registers && i < e->n; i++) {
		const struct registers_builder b = { w->arena, &registers_all,
						     &ret->registers[ret->n_registers] };
		const struct wave *wave = saved_wave_wave(ret, &e->records[i]);

		if (!e->records[i].got || !wave || registers_set_wave(&b, wave) < 0)
			continue;
		saved_wave_fill(w->arena, &e->records[i], &registers_all, b.ret);
		ret->n_registers++;
	}
	return rpc_arena_error(w->arena);
}

int kfd_representatives(struct wave_capture *w, struct target_waves *ret, struct agent_err *err)
{
	auto_free uint8_t *bytes = malloc(REPRESENTATIVES_MAX * SAVED_WAVE_MAX);
	auto_free struct representatives *e = calloc(1, sizeof(*e));
	int r;

	if (!bytes || !e)
		return agent_err_no_memory(err, NULL);
	e->bytes = bytes;
	w->more = copy_examples;
	w->ctx = e;
	r = wave_capture_run(w, ret, err);
	if (r == 0 && fill(w, e, ret) < 0)
		r = agent_err_no_memory(err, NULL);
	if (e->too_many)
		wave_capture_missing(
			w,
			"registers: waves are at more places than those of which they are taken");
	ret->missing = w->missing;
	ret->n_missing = w->n_missing;
	return r;
}
