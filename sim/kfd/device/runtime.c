/* SPDX-License-Identifier: MIT */
/* The application's side: the handshake of the runtime with a debugger, events, apertures. */
#include "sim.h"
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- RUNTIME_ENABLE ---- */

/*
 * Wait for the debugger.  A surplus send lets the call pass at once; a repeated call after a
 * signal waits again without a second event.
 */
static int handshake(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	if (p->handshake) {
		sim_runtime_answered(p);
		return 0;
	}
	return sim_call_park(s, call, SIM_WAIT_RUNTIME, p);
}

void sim_runtime_answered(struct sim_process *p)
{
	p->handshake--;
	p->runtime_retry = false;
	/* Kept while the debugger is waited for (kfd_chardev.c:runtime_disable). */
	if (p->runtime.runtime_state == KFDABI_RUNTIME_STATE_DISABLED)
		p->runtime.ttmp_setup = 0;
}

/* Switch the runtime on.  A call that was repeated after a signal only waits again. */
static int runtime_on(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_runtime_enable_args *a = call->arg;

	if (!p->runtime_retry) {
		if (p->runtime.runtime_state != KFDABI_RUNTIME_STATE_DISABLED)
			return -EBUSY;
		if (!TAILQ_EMPTY(&p->queues))
			return -EEXIST;
		p->runtime.runtime_state = KFDABI_RUNTIME_STATE_ENABLED;
		p->runtime.r_debug = a->r_debug;
		p->runtime.ttmp_setup = !!(a->mode_mask & KFDABI_RUNTIME_ENABLE_MODE_TTMP_SAVE);
		if (p->debugged) {
			sim_trap_activate(s, p);
			sim_raise(s, p, NULL, NULL, KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME),
				  true);
		}
	}
	return p->debugged ? handshake(s, call, p) : 0;
}

/* Switch the runtime off; a debugger is told and waited for as well. */
static int runtime_off(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	bool was_enabled = p->runtime.runtime_state == KFDABI_RUNTIME_STATE_ENABLED;

	p->runtime.runtime_state = KFDABI_RUNTIME_STATE_DISABLED;
	p->runtime.r_debug = 0;
	if (!p->debugged) {
		p->runtime.ttmp_setup = 0;
		return 0;
	}
	if (was_enabled)
		sim_trap_deactivate(s, p);
	if (!p->runtime_retry)
		sim_raise(s, p, NULL, NULL, KFDABI_EC_MASK(KFDABI_EC_PROCESS_RUNTIME), true);
	return handshake(s, call, p);
}

int sim_runtime_enable(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_runtime_enable_args *a = call->arg;

	return a->mode_mask & KFDABI_RUNTIME_ENABLE_MODE_ENABLE ? runtime_on(s, call, p)
								 : runtime_off(s, call, p);
}

/* ---- events ---- */

/* Where a process would map the page of signals, as the driver tells (KFD_MMAP_TYPE_EVENTS). */
#define EVENT_PAGE_OFFSET (UINT64_C(2) << 62)

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

int sim_event_destroy(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_event_args *a = call->arg;
	struct sim_event *e = sim_event_find(p, a->event_id);

	if (!e)
		return -EINVAL;
	TAILQ_REMOVE(&p->events, e, link);
	free(e);
	sim_call_wake(s, SIM_WAIT_EVENTS, p);
	return 0;
}

void sim_event_signal(struct sim *s, struct sim_process *p, struct sim_event *e)
{
	e->signaled = true;
	e->age++;
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
			e->signaled = true;
			e->age++;
		}
	sim_call_wake(s, SIM_WAIT_EVENTS, p);
}

/* The address of one element of the caller's array. */
static uint64_t event_address(const struct kfdabi_wait_events_args *a, uint32_t i)
{
	return a->events_ptr + (uint64_t)i * sizeof(struct kfdabi_event_data);
}

/* Hand the outcome of signaled events to the waiter, and reset those that want it. */
static int events_collect(struct sim *s, struct sim_call *call)
{
	struct kfdabi_wait_events_args *a = call->arg;
	struct kfdabi_event_data data;
	struct sim_event *e;

	for (uint32_t i = 0; i < a->num_events; i++) {
		if (s->os->mem_read(call->tid, event_address(a, i), &data, sizeof(data)))
			return -EFAULT;
		e = sim_event_find(call->target, data.event_id);
		if (!e || !e->signaled)
			continue;
		if (e->type == KFDABI_EVENT_MEMORY)
			data.u.memory = e->memory;
		else if (e->type == KFDABI_EVENT_SIGNAL && s->kernel->minor >= 14)
			data.u.last_event_age = e->age;
		if (e->auto_reset)
			e->signaled = false;
		if (s->os->mem_write(call->tid, event_address(a, i), &data, sizeof(data)))
			return -EFAULT;
	}
	a->wait_result = KFDABI_WAIT_COMPLETE;
	return 0;
}

bool sim_events_ready(struct sim *s, struct sim_call *call, int *ret_result)
{
	struct kfdabi_wait_events_args *a = call->arg;
	struct kfdabi_event_data data;
	uint32_t signaled = 0;
	struct sim_event *e;

	*ret_result = 0;
	for (uint32_t i = 0; i < a->num_events; i++) {
		if (s->os->mem_read(call->tid, event_address(a, i), &data, sizeof(data))) {
			*ret_result = -EFAULT;
			return true;
		}
		e = sim_event_find(call->target, data.event_id);
		/* An event was destroyed while it was waited for. */
		if (!e) {
			a->wait_result = KFDABI_WAIT_FAIL;
			*ret_result = -EIO;
			return true;
		}
		signaled += e->signaled;
	}
	/* No event at all is enough events. */
	if (signaled < (a->wait_for_all ? a->num_events : !!a->num_events))
		return false;
	*ret_result = events_collect(s, call);
	return true;
}

/* Whether all events are there when the wait begins. */
static int events_exist(struct sim *s, const struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_wait_events_args *a = call->arg;
	struct kfdabi_event_data data;

	for (uint32_t i = 0; i < a->num_events; i++) {
		if (s->os->mem_read(call->tid, event_address(a, i), &data, sizeof(data)))
			return -EFAULT;
		if (!sim_event_find(p, data.event_id))
			return -EINVAL;
	}
	return 0;
}

int sim_events_wait(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_wait_events_args *a = call->arg;
	int r;

	if (a->num_events > KFDABI_SIGNAL_EVENT_LIMIT)
		return -EINVAL;
	r = events_exist(s, call, p);
	if (r)
		return r;
	call->target = p;
	if (sim_events_ready(s, call, &r))
		return r;
	if (!a->timeout_ms) {
		a->wait_result = KFDABI_WAIT_TIMEOUT;
		return 0;
	}
	if (a->timeout_ms != UINT32_MAX)
		call->deadline_ns = s->os->now_ns() + a->timeout_ms * UINT64_C(1000000);
	return sim_call_park(s, call, SIM_WAIT_EVENTS, p);
}

/* ---- apertures ---- */

void sim_aperture_fill(struct sim_gpu *gpu, struct kfdabi_process_apertures *ret)
{
	/* The fixed layout of gfx9 and later. */
	*ret = (struct kfdabi_process_apertures){
		.lds_base = UINT64_C(0x1000000000000),
		.lds_limit = UINT64_C(0x10000ffffffff),
		.scratch_base = UINT64_C(0x2000000000000),
		.scratch_limit = UINT64_C(0x20000ffffffff),
		.gpuvm_base = UINT64_C(0x4000),
		.gpuvm_limit = UINT64_C(0x7fffffffffff),
		.gpu_id = gpu->gpu_id,
	};
}

/* The argument has room for seven. */
int sim_apertures(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_process_apertures_args *a = call->arg;

	a->num_of_nodes = 0;
	for (size_t i = 0; i < p->n_devices && i < 7; i++)
		sim_aperture_fill(p->devices[i].gpu, &a->apertures[a->num_of_nodes++]);
	return 0;
}

int sim_apertures_new(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_process_apertures_new_args *a = call->arg;
	struct kfdabi_process_apertures ap;
	uint32_t n = a->num_of_nodes;

	if (!n) {
		a->num_of_nodes = (uint32_t)p->n_devices;
		return 0;
	}
	if (n > p->n_devices)
		n = (uint32_t)p->n_devices;
	for (uint32_t i = 0; i < n; i++) {
		sim_aperture_fill(p->devices[i].gpu, &ap);
		if (s->os->mem_write(call->tid, a->apertures_ptr + i * sizeof(ap), &ap,
				     sizeof(ap)))
			return -EFAULT;
	}
	a->num_of_nodes = n;
	return 0;
}
