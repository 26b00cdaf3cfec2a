/* SPDX-License-Identifier: MIT */
/* Exceptions: latching, notification, queries, and the way to the application's runtime. */
#include "sim.h"

#include <errno.h>
#include <stddef.h>

void sim_notify(struct sim *s, struct sim_process *p, int writer)
{
	if (p->dbg_fd < 0)
		return;
	p->notifications++;
	s->os->notify(p->dbg_fd, writer);
}

bool sim_raise(struct sim *s, struct sim_process *p, struct sim_queue *q, struct sim_device *d,
	       uint64_t mask, bool in_target_context)
{
	if (!p->debugged)
		return false;
	/*
	 * Exceptions are latched whether subscribed or not; the mask only decides about the byte.
	 */
	if (q)
		q->latched |= mask;
	else if (d)
		d->latched |= mask;
	else
		p->latched |= mask;
	if (!(mask & p->enabled_mask))
		return false;
	sim_notify(s, p, in_target_context ? p->tgid : 0);
	return true;
}

void sim_forward_queue_error(struct sim *s, struct sim_process *p, struct sim_queue *q,
			     uint64_t mask)
{
	struct kfdabi_save_area_header h;
	struct sim_event *e;
	uint64_t word;

	/* The header of the save area says where the error word and the event are. */
	if (!q->args.ctx_save_restore_address ||
	    s->os->mem_read(p->tgid, q->args.ctx_save_restore_address, &h, sizeof(h)) ||
	    !h.err_payload_addr ||
	    s->os->mem_read(p->tgid, h.err_payload_addr, &word, sizeof(word)))
		return;
	word |= mask;
	if (s->os->mem_write(p->tgid, h.err_payload_addr, &word, sizeof(word)))
		return;
	e = sim_event_find(p, h.err_event_id);
	if (e)
		sim_event_signal(s, p, e);
}

/* Without a record the runtime learns only that there was a fault. */
void sim_forward_fault(struct sim *s, struct sim_process *p, struct sim_device *d)
{
	struct kfdabi_memory_exception_data data = { .imprecise = 1, .gpu_id = d->gpu->gpu_id };

	d->evicted = true;
	sim_events_signal_memory(s, p, d->has_fault ? &d->fault : &data);
}

void sim_interrupt_queue(struct sim *s, struct sim_process *p, struct sim_queue *q, uint64_t mask)
{
	bool taken = sim_raise(s, p, q, NULL, mask, false);

	if (!taken && p->runtime.runtime_state == KFDABI_RUNTIME_STATE_ENABLED)
		sim_forward_queue_error(s, p, q, mask);
}

void sim_interrupt_fault(struct sim *s, struct sim_process *p, struct sim_device *d,
			 const struct kfdabi_memory_exception_data *fault)
{
	const uint64_t mask = KFDABI_EC_MASK(KFDABI_EC_DEVICE_MEMORY_VIOLATION);

	/* Later faults do not replace the record. */
	if (p->debugged && !d->has_fault) {
		d->fault = *fault;
		d->has_fault = true;
	}
	if (sim_raise(s, p, NULL, d, mask, false))
		return;
	d->evicted = true;
	sim_events_signal_memory(s, p, fault);
}

/* Queues come first, then GPUs, then the process; the first source with an enabled bit is told. */
int sim_query_event(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint64_t clear = a->query_event.exception_mask;
	uint64_t *latched = NULL;
	struct sim_queue *q;

	a->query_event.exception_mask = 0;
	a->query_event.gpu_id = a->query_event.queue_id = 0;
	TAILQ_FOREACH(q, &p->queues, link) {
		if (!(q->latched & p->enabled_mask))
			continue;
		latched = &q->latched;
		a->query_event.gpu_id = q->device->gpu->gpu_id;
		a->query_event.queue_id = q->id;
		break;
	}
	for (size_t i = 0; i < p->n_devices && !latched; i++)
		if (p->devices[i].latched & p->enabled_mask) {
			latched = &p->devices[i].latched;
			a->query_event.gpu_id = p->devices[i].gpu->gpu_id;
		}
	if (!latched && (p->latched & p->enabled_mask))
		latched = &p->latched;
	if (!latched)
		return -EAGAIN;
	/* All latched bits are told, also those that are not enabled. */
	a->query_event.exception_mask = *latched;
	*latched &= ~clear;
	return 0;
}

/* Find the latched bits that a code and an id speak of; NULL if there is no such source. */
static uint64_t *source_find(struct sim_process *p, uint32_t code, uint32_t id,
			     struct sim_device **ret_device)
{
	uint64_t mask = code && code < KFDABI_EC_MAX ? KFDABI_EC_MASK(code) : 0;
	struct sim_queue *q;

	*ret_device = NULL;
	if (mask & KFDABI_EC_MASK_QUEUE) {
		q = sim_queue_find(p, id);
		return q ? &q->latched : NULL;
	}
	if (mask & KFDABI_EC_MASK_DEVICE) {
		*ret_device = sim_device_find(p, id);
		return *ret_device ? &(*ret_device)->latched : NULL;
	}
	return mask & KFDABI_EC_MASK_PROCESS ? &p->latched : NULL;
}

int sim_query_info(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_dbg_args *a = call->arg;
	uint32_t code = a->query_info.exception_code, size = 0;
	const void *data = NULL;
	struct sim_device *d;
	uint64_t *latched;

	/* Codes that have no data want a pointer as well. */
	if (!a->query_info.info_ptr)
		return -EINVAL;
	latched = source_find(p, code, a->query_info.source_id, &d);
	if (!latched)
		return -EINVAL;
	if (!(*latched & KFDABI_EC_MASK(code)))
		return -ENODATA;
	if (code == KFDABI_EC_PROCESS_RUNTIME) {
		data = &p->runtime;
		size = sizeof(p->runtime);
	} else if (code == KFDABI_EC_DEVICE_MEMORY_VIOLATION && s->memory_info_fixed) {
		/*
		 * Released drivers never set the length of this record, so that nothing is copied;
		 * tests can ask for a driver that does.
		 */
		data = &d->fault;
		size = sizeof(d->fault);
	}
	if (size && a->query_info.info_size &&
	    s->os->mem_write(call->tid, a->query_info.info_ptr, data,
			     a->query_info.info_size < size ? a->query_info.info_size : size))
		return -EFAULT;
	a->query_info.info_size = size;
	if (a->query_info.clear_exception) {
		*latched &= ~KFDABI_EC_MASK(code);
		if (code == KFDABI_EC_DEVICE_MEMORY_VIOLATION)
			d->has_fault = false;
	}
	return 0;
}
