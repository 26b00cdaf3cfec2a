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
/* As many as one thread copies in less time than it takes to wake another one, on a machine that is busy. */
#define SHARE 16u

/* Waves that agree in all these members are at the same place. */
struct stand {
	const struct target_device *device;
	uint64_t pc;
	uint32_t stop_reasons;
	bool stopped, halted;
};

/* The first wave at each place. */
struct stands {
	struct stand places[REPRESENTATIVES_MAX];
	struct saved_wave records[REPRESENTATIVES_MAX];
	size_t n;
	size_t n_taken; /* How many were chosen, or found no room. */
	bool too_many;
};

/* The waves chosen so far, and their copies. */
struct representatives {
	/* REPRESENTATIVES_MAX times SAVED_WAVE_MAX; pages that are never touched cost nothing. */
	uint8_t *bytes;
	struct stands faults, others; /* Waves that stopped for a reason, and the others. */
	struct saved_wave *chosen[REPRESENTATIVES_MAX];
	size_t n;
	size_t n_copied; /* How many were copied, or could not be. */
	bool too_many;
};

static bool is_known(const struct stands *s, const struct stand *p)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct stand *q = &s->places[i];

		if (q->pc == p->pc && q->device == p->device && q->stopped == p->stopped &&
		    q->halted == p->halted && q->stop_reasons == p->stop_reasons)
			return true;
	}
	return false;
}

static void consider(struct stands *s, const struct wave_cursor *c)
{
	const struct stand p = { .device = c->area->capture->device,
				 .pc = c->state.pc,
				 .stop_reasons = c->state.stop_reasons,
				 .stopped = c->state.stopped,
				 .halted = c->state.halted };

	if (is_known(s, &p))
		return;
	if (s->n == REPRESENTATIVES_MAX) {
		s->too_many = true;
		return;
	}
	s->records[s->n] = (struct saved_wave){ .area = c->area, .layout = c->layout, .state = c->state };
	s->places[s->n++] = p;
}

/* The queues stand still meanwhile, so that each wave is decoded once. */
static void look_through(struct wave_capture *w, struct representatives *e, const struct save_area *a)
{
	struct wave_cursor c;

	wave_cursor_init(&c, w, a);
	while (!w->late && wave_cursor_next(&c))
		if (c.copied && !c.problem)
			consider(c.state.stop_reasons ? &e->faults : &e->others, &c);
}

static void choose(struct representatives *e, struct stands *s)
{
	for (; s->n_taken < s->n && e->n < REPRESENTATIVES_MAX; s->n_taken++) {
		e->chosen[e->n] = &s->records[s->n_taken];
		e->chosen[e->n]->bytes = e->bytes + e->n * SAVED_WAVE_MAX;
		e->n++;
	}
	e->too_many |= s->too_many || s->n_taken < s->n;
	s->n_taken = s->n;
}

/* Copy a few waves, on any thread of the pool. */
static void copy_share(void *ctx, size_t i)
{
	struct wave_capture *w = ctx;
	struct representatives *e = w->ctx;
	size_t begin = e->n_copied + i * SHARE, n = e->n - begin;

	saved_waves_copy(w, e->chosen + begin, n < SHARE ? n : SHARE);
}

/* Waves that stopped for a reason are chosen first, so that there is room for them. */
static void copy_examples(struct wave_capture *w, uint32_t round)
{
	struct representatives *e = w->ctx;

	for (size_t i = 0; i < w->n_areas && !w->late; i++)
		if (queue_capture_is_in(w->areas[i].capture, round) && w->areas[i].state == SAVE_AREA_READ)
			look_through(w, e, &w->areas[i]);
	choose(e, &e->faults);
	choose(e, &e->others);
	thread_pool_run(w->k->pool, copy_share, w, (e->n - e->n_copied + SHARE - 1) / SHARE);
	e->n_copied = e->n;
}

static int fill(struct wave_capture *w, const struct representatives *e, struct target_waves *ret)
{
	ret->registers = rpc_arena_array(w->arena, e->n, sizeof(*ret->registers));
	for (size_t i = 0; ret->registers && i < e->n; i++) {
		const struct registers_builder b = { w->arena, &registers_all,
						     &ret->registers[ret->n_registers] };
		const struct wave *wave = saved_wave_wave(ret, e->chosen[i]);

		if (!e->chosen[i]->got || !wave || registers_set_wave(&b, wave) < 0)
			continue;
		saved_wave_fill(w->arena, e->chosen[i], &registers_all, b.ret);
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
