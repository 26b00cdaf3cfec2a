/* SPDX-License-Identifier: MIT */
/* Events of the application, and calls that wait for them, as in the driver's kfd_events.c. */
#include "sim.h"
#include "memory.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Where a process would map the page of signals, as the driver tells (KFD_MMAP_TYPE_EVENTS). */
#define EVENT_PAGE_OFFSET (UINT64_C(2) << 62)
/* The first interface that tells who waits how often an event was signaled. */
#define MINOR_OF_AGES 14

struct sim_event *sim_event_find(struct sim_process *p, uint32_t id)
{
	struct sim_event *e;

	TAILQ_FOREACH(e, &p->events, link)
		if (e->id == id)
			return e;
	return NULL;
}

void sim_events_free(struct sim_process *p)
{
	struct sim_event *e;

	while ((e = TAILQ_FIRST(&p->events))) {
		TAILQ_REMOVE(&p->events, e, link);
		free(e);
	}
}

/*
 * The page of signals, which the application has allocated.  Its handle stands where the driver
 * later tells the offset of that page.
 */
static int set_event_page(struct sim_process *p, uint64_t handle)
{
	const struct sim_memory *m;

	if (p->event_page)
		return -EINVAL;
	m = sim_memory_find(p, handle);
	if (!m || m->size < KFDABI_SIGNAL_EVENT_LIMIT * 8u)
		return -EINVAL;
	p->event_page = handle;
	return 0;
}

int sim_event_create(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_create_event_args *a = call->arg;
	struct sim_event *e;
	int r = a->event_page_offset ? set_event_page(p, a->event_page_offset) : 0;

	if (r)
		return r;
	/* Ids are never used again here. */
	if (p->next_event > KFDABI_SIGNAL_EVENT_LIMIT)
		return -ENOSPC;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->id = p->next_event++;
	e->type = a->event_type;
	e->auto_reset = a->auto_reset;
	e->age = 1;
	TAILQ_INSERT_TAIL(&p->events, e, link);
	a->event_id = e->id;
	a->event_trigger_data = e->id;
	a->event_slot_index = e->id;
	/* The runtime gives a signal a mailbox only if this is not zero. */
	if (e->type == KFDABI_EVENT_SIGNAL)
		a->event_page_offset = EVENT_PAGE_OFFSET;
	return 0;
}

/* The next call that waits for events of a process, behind @p call; NULL: the first. */
static struct sim_call *next_waiting(const struct sim *s, const struct sim_process *p, struct sim_call *call)
{
	call = call ? TAILQ_NEXT(call, link) : TAILQ_FIRST(&s->pending);
	while (call && (call->wait != SIM_WAIT_EVENTS || call->target != p))
		call = TAILQ_NEXT(call, link);
	return call;
}

int sim_event_destroy(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_event_args *a = call->arg;
	struct sim_event *e = sim_event_find(p, a->event_id);

	if (!e)
		return -EINVAL;
	for (call = next_waiting(s, p, NULL); call; call = next_waiting(s, p, call))
		for (uint32_t i = 0; i < call->n_waiters; i++)
			if (call->waiters[i].event == e)
				call->waiters[i].event = NULL;
	TAILQ_REMOVE(&p->events, e, link);
	free(e);
	sim_call_wake(s, SIM_WAIT_EVENTS, p);
	return 0;
}

/*
 * All who wait have it, whether it resets itself or not; one that does stays signaled where nobody waits.  Who is woken
 * waits for it no longer, though it may wait for others (autoremove_wake_function in the kernel).
 */
static void set_event(struct sim *s, struct sim_process *p, struct sim_event *e)
{
	bool is_awaited = false;

	for (struct sim_call *call = next_waiting(s, p, NULL); call; call = next_waiting(s, p, call))
		for (uint32_t i = 0; i < call->n_waiters; i++) {
			struct sim_waiter *w = &call->waiters[i];

			if (w->event != e || !w->is_queued)
				continue;
			w->is_queued = false;
			is_awaited = w->is_activated = true;
		}
	e->signaled = !e->auto_reset || !is_awaited;
	e->age++;
}

void sim_event_signal(struct sim *s, struct sim_process *p, struct sim_event *e)
{
	set_event(s, p, e);
	sim_call_wake(s, SIM_WAIT_EVENTS, p);
}

int sim_event_set(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_event_args *a = call->arg;
	struct sim_event *e = sim_event_find(p, a->event_id);

	if (!e || e->type != KFDABI_EVENT_SIGNAL)
		return -EINVAL;
	sim_event_signal(s, p, e);
	return 0;
}

int sim_event_reset(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_event_args *a = call->arg;
	struct sim_event *e = sim_event_find(p, a->event_id);

	if (!e || e->type != KFDABI_EVENT_SIGNAL)
		return -EINVAL;
	e->signaled = false;
	return 0;
}

void sim_events_signal_memory(struct sim *s, struct sim_process *p,
			      const struct kfdabi_memory_exception_data *data)
{
	struct sim_event *e;

	TAILQ_FOREACH(e, &p->events, link)
		if (e->type == KFDABI_EVENT_MEMORY) {
			e->memory = *data;
			set_event(s, p, e);
		}
	sim_call_wake(s, SIM_WAIT_EVENTS, p);
}

/* ---- waiting ---- */

/* The address of one element of the caller's array. */
static uint64_t event_address(const struct sim_call *call, uint32_t i)
{
	const struct kfdabi_wait_events_args *a = call->arg;

	return a->events_ptr + (uint64_t)i * sizeof(struct kfdabi_event_data);
}

/* Tell what came with the events that were signaled. */
static int tell_events(struct sim *s, const struct sim_call *call)
{
	int r = 0;

	for (uint32_t i = 0; i < call->n_waiters && r == 0; i++) {
		const struct sim_waiter *w = &call->waiters[i];
		const uint64_t to = event_address(call, i) + offsetof(struct kfdabi_event_data, u);

		if (!w->is_activated)
			continue;
		if (w->event->type == KFDABI_EVENT_MEMORY)
			r = s->os->mem_write(call->tid, to, &w->event->memory, sizeof(w->event->memory));
		else if (w->has_age)
			r = s->os->mem_write(call->tid, to, &w->event->age, sizeof(w->event->age));
	}
	return r ? -EFAULT : 0;
}

bool sim_events_ready(struct sim *s, struct sim_call *call, int *ret_result)
{
	struct kfdabi_wait_events_args *a = call->arg;
	uint32_t activated = 0;

	for (uint32_t i = 0; i < call->n_waiters; i++) {
		/* An event was destroyed while it was waited for. */
		if (!call->waiters[i].event) {
			a->wait_result = KFDABI_WAIT_FAIL;
			*ret_result = -EIO;
			return true;
		}
		activated += call->waiters[i].is_activated;
	}
	/* No event at all is enough events. */
	if (activated < (a->wait_for_all ? call->n_waiters : !!call->n_waiters))
		return false;
	*ret_result = tell_events(s, call);
	a->wait_result = *ret_result ? KFDABI_WAIT_FAIL : KFDABI_WAIT_COMPLETE;
	return true;
}

/* Whoever is first has an event that resets itself.  One that was signaled since the age that is told is there, too. */
static int begin_wait(struct sim *s, const struct sim_call *call, struct sim_process *p, uint32_t i)
{
	struct sim_waiter *w = &call->waiters[i];
	struct kfdabi_event_data data;
	struct sim_event *e;

	if (s->os->mem_read(call->tid, event_address(call, i), &data, sizeof(data)))
		return -EFAULT;
	e = sim_event_find(p, data.event_id);
	if (!e)
		return -EINVAL;
	*w = (struct sim_waiter){ .event = e, .is_activated = e->signaled };
	e->signaled = e->signaled && !e->auto_reset;
	w->has_age = s->kernel->minor >= MINOR_OF_AGES && e->type == KFDABI_EVENT_SIGNAL && data.u.last_event_age;
	if (w->has_age && e->age != data.u.last_event_age)
		w->is_activated = true;
	w->is_queued = !w->is_activated;
	return 0;
}

static int wait_for_events(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_wait_events_args *a = call->arg;
	int r = 0;

	for (uint32_t i = 0; i < call->n_waiters && r == 0; i++)
		r = begin_wait(s, call, p, i);
	if (r < 0 || sim_events_ready(s, call, &r))
		return r;
	if (!a->timeout_ms) {
		a->wait_result = KFDABI_WAIT_TIMEOUT;
		return 0;
	}
	if (a->timeout_ms != UINT32_MAX)
		call->deadline_ns = s->os->now_ns() + a->timeout_ms * UINT64_C(1000000);
	return sim_call_park(s, call, SIM_WAIT_EVENTS, p);
}

int sim_events_wait(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_wait_events_args *a = call->arg;
	int r;

	if (a->num_events > KFDABI_SIGNAL_EVENT_LIMIT)
		return -EINVAL;
	call->waiters = calloc(a->num_events + 1u, sizeof(*call->waiters));
	if (!call->waiters)
		return -ENOMEM;
	call->n_waiters = a->num_events;
	call->target = p;
	r = wait_for_events(s, call, p);
	if (r != SIM_LATER)
		sim_waiters_free(call);
	return r;
}

void sim_events_interrupt(struct sim *s, struct sim_call *call)
{
	struct sim_process *p = call->target;

	/* What it has taken, and not told, is for the next one. */
	for (uint32_t i = 0; i < call->n_waiters; i++) {
		struct sim_waiter *w = &call->waiters[i];

		w->is_queued = false;
		if (w->is_activated && w->event && w->event->auto_reset)
			set_event(s, p, w->event);
	}
	sim_call_finish(s, call, -EINTR);
	sim_call_wake(s, SIM_WAIT_EVENTS, p);
}

void sim_waiters_free(struct sim_call *call)
{
	free(call->waiters);
	call->waiters = NULL;
	call->n_waiters = 0;
}
