/* SPDX-License-Identifier: MIT */
/*
 * Calls in flight: the command table, waiting, the per-process lock, injected behaviour.
 *
 * The driver runs operations on one target under that process' lock.  Here nothing sleeps, so
 * the lock is only visible when an injected delay or block stretches an operation: other calls on
 * the same target then wait for their turn and start from the beginning.
 */
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int sim_call_park(struct sim *s, struct sim_call *call, enum sim_wait wait,
		  struct sim_process *target)
{
	call->wait = wait;
	call->target = target;
	TAILQ_INSERT_TAIL(&s->pending, call, link);
	return SIM_LATER;
}

/* Take a call off the list of those that wait. */
static void call_unpark(struct sim *s, struct sim_call *call)
{
	TAILQ_REMOVE(&s->pending, call, link);
	call->wait = SIM_WAIT_NONE;
	call->deadline_ns = 0;
	sim_waiters_free(call);
}

void sim_call_finish(struct sim *s, struct sim_call *call, int result)
{
	if (call->wait != SIM_WAIT_NONE)
		call_unpark(s, call);
	call->complete(call, result);
}

/* Run a call from the beginning, and complete it unless it waits. */
static void call_run(struct sim *s, struct sim_call *call)
{
	int r = sim_dispatch(s, call);

	if (r != SIM_LATER)
		call->complete(call, r);
}

void sim_submit(struct sim *s, struct sim_call *call)
{
	call->wait = SIM_WAIT_NONE;
	call->target = NULL;
	call->waiters = NULL;
	call->n_waiters = 0;
	call->deadline_ns = 0;
	call->again = call->injected = call->finished = call->hard = false;
	sim_check_crowd(s);
	/* In a crowd they are seldom looked at; what answers a call is about is no older than the call. */
	sim_check_context(s, call->file->process);
	call_run(s, call);
}

/*
 * The first parked call that waits for this.  Lists change while calls complete, so callers search
 * again.
 */
static struct sim_call *find_parked(struct sim *s, enum sim_wait wait,
				    const struct sim_process *target)
{
	struct sim_call *call;

	TAILQ_FOREACH(call, &s->pending, link)
		if (call->wait == wait && (!target || call->target == target))
			return call;
	return NULL;
}

/* Let a parked call start from the beginning. */
static void rerun(struct sim *s, struct sim_call *call)
{
	call_unpark(s, call);
	call->again = true;
	call_run(s, call);
}

/* Run the calls that wait for a target, until one of them takes the lock for longer. */
static void run_waiters(struct sim *s, struct sim_process *target)
{
	struct sim_call *next;

	while (!target->busy && (next = find_parked(s, SIM_WAIT_TURN, target)))
		rerun(s, next);
}

void sim_call_unlock(struct sim *s, struct sim_call *call)
{
	struct sim_process *target = call->target;

	if (!target || target->busy != call)
		return;
	target->busy = NULL;
	run_waiters(s, target);
}

/* Complete a call whose effects are done and that still holds its target. */
static void finish_held(struct sim *s, struct sim_call *call, int result)
{
	call_unpark(s, call);
	sim_call_unlock(s, call);
	call->complete(call, result);
}

void sim_call_wake(struct sim *s, enum sim_wait wait, const struct sim_process *target)
{
	struct sim_call *call, *next;
	int result = 0;

	if (wait == SIM_WAIT_EVENTS) {
		for (call = TAILQ_FIRST(&s->pending); call; call = next) {
			next = TAILQ_NEXT(call, link);
			if (call->wait == wait && call->target == target &&
			    sim_events_ready(s, call, &result))
				sim_call_finish(s, call, result);
		}
		return;
	}
	/* Each send lets one waiter go; surplus sends are remembered. */
	call = find_parked(s, SIM_WAIT_RUNTIME, target);
	if (call && call->target->handshake) {
		sim_runtime_answered(call->target);
		sim_call_finish(s, call, 0);
	}
}

struct sim_injection *sim_injection_get(struct sim *s, const char *op)
{
	struct sim_injection *i;

	TAILQ_FOREACH(i, &s->injections, link)
		if (!strcmp(i->op, op))
			return i;
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	memccpy(i->op, op, 0, sizeof(i->op) - 1);
	TAILQ_INSERT_TAIL(&s->injections, i, link);
	return i;
}

/*
 * Take one use of what was asked for @p op; a copy, so that the last use may free the original.
 * Without any, all members are zero.
 */
static struct sim_injection injection_take(struct sim *s, const char *op)
{
	struct sim_injection *i, copy = { 0 };

	TAILQ_FOREACH(i, &s->injections, link)
		if (!strcmp(i->op, op))
			break;
	if (!i || (i->skip && i->skip--))
		return copy;
	copy = *i;
	if (!i->count || !--i->count) {
		TAILQ_REMOVE(&s->injections, i, link);
		free(i);
	}
	return copy;
}

/* Hang a call that holds its target, until the control file or a fatal signal lets it go. */
static int call_block(struct sim *s, struct sim_call *call, struct sim_process *target, int result,
		      bool finished, bool hard)
{
	call->result = result;
	call->finished = finished;
	call->hard = hard;
	target->busy = call;
	return sim_call_park(s, call, SIM_WAIT_BLOCK, target);
}

int sim_call_locked(struct sim *s, struct sim_call *call, struct sim_process *target,
		    const char *op, int (*run)(struct sim *, struct sim_call *,
					       struct sim_process *))
{
	struct sim_injection i = { 0 };
	int r;

	if (target->busy)
		return sim_call_park(s, call, SIM_WAIT_TURN, target);
	call->op = op;
	/* A call that starts again has its injection already. */
	if (!call->injected)
		i = injection_take(s, op);
	call->injected = true;
	if (i.block_before)
		return call_block(s, call, target, 0, false, i.hard);
	s->has_partial = i.has_partial;
	s->partial = i.partial;
	s->silent = i.silent;
	r = i.error && !i.late ? -i.error : run(s, call, target);
	if (i.late && r != SIM_LATER)
		r = -i.error;
	s->has_partial = s->silent = false;
	if (r == SIM_LATER)
		return r;
	if (i.block_after)
		return call_block(s, call, target, r, true, i.hard);
	if (i.delay_ms) {
		call->result = r;
		call->deadline_ns = s->os->now_ns() + i.delay_ms * UINT64_C(1000000);
		target->busy = call;
		return sim_call_park(s, call, SIM_WAIT_DELAY, target);
	}
	return r;
}

void sim_injection_release(struct sim *s, const char *op)
{
	struct sim_injection *i, *next_i;
	struct sim_call *call, *next;

	for (i = TAILQ_FIRST(&s->injections); i; i = next_i) {
		next_i = TAILQ_NEXT(i, link);
		if (op && strcmp(i->op, op))
			continue;
		TAILQ_REMOVE(&s->injections, i, link);
		free(i);
	}
	for (call = TAILQ_FIRST(&s->pending); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->wait != SIM_WAIT_BLOCK || (op && strcmp(call->op, op)))
			continue;
		if (call->finished) {
			finish_held(s, call, call->result);
		} else {
			struct sim_process *target = call->target;

			target->busy = NULL;
			rerun(s, call);
			run_waiters(s, target);
		}
		next = TAILQ_FIRST(&s->pending);
	}
}

void sim_interrupt(struct sim *s, struct sim_call *call)
{
	struct sim_process *p;
	struct sim_queue *q;
	bool dying = s->os->is_dying(call->tid);

	switch (call->wait) {
	case SIM_WAIT_RUNTIME:
		call->target->runtime_retry = true;
		sim_call_finish(s, call, -EINTR);
		break;
	case SIM_WAIT_EVENTS:
		sim_events_interrupt(s, call);
		break;
	case SIM_WAIT_DESTROY:
		p = call->target;
		q = sim_queue_find(p, call->queue_id);
		/* Old kernels leave the mark: such a queue can never be suspended again. */
		if (q && s->kernel->destroy_restarts)
			q->destroying = false;
		sim_call_finish(s, call, -SIM_RESTART);
		break;
	case SIM_WAIT_TURN:
		if (dying)
			sim_call_finish(s, call, -EINTR);
		break;
	case SIM_WAIT_DELAY:
	case SIM_WAIT_BLOCK:
		/* The real call sleeps uninterruptibly; only a killed caller may be let go. */
		if (dying && !call->hard)
			finish_held(s, call, -EINTR);
		break;
	case SIM_WAIT_NONE:
		break;
	}
}

void sim_call_process_gone(struct sim *s, struct sim_process *p)
{
	struct sim_call *call;

again:
	TAILQ_FOREACH(call, &s->pending, link) {
		if (call->file->process == p) {
			finish_held(s, call, -EINTR);
			goto again;
		}
		if (call->target == p) {
			if (p->busy == call)
				p->busy = NULL;
			rerun(s, call);
			goto again;
		}
	}
}

void sim_call_tick(struct sim *s, uint64_t now)
{
	struct sim_call *call;

again:
	TAILQ_FOREACH(call, &s->pending, link) {
		if (!call->deadline_ns || now < call->deadline_ns)
			continue;
		if (call->wait == SIM_WAIT_EVENTS) {
			struct kfdabi_wait_events_args *a = call->arg;

			a->wait_result = KFDABI_WAIT_TIMEOUT;
			sim_call_finish(s, call, 0);
		} else {
			finish_held(s, call, call->result);
		}
		goto again;
	}
}
