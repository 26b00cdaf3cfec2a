/* SPDX-License-Identifier: MIT */
/* Queues: creation, destruction, suspension, and the pretence of work. */
#include "sim.h"
#include "memory.h"
#include "waves.h"
#include "work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kfd/packet/aql.h"

/* Place in a signal (amd_signal_t of ROCr's amd_hsa_signal.h). */
#define SIGNAL_VALUE 8u

bool sim_queue_is_running(const struct sim_queue *q)
{
	const struct sim_gpu *g = q->device->gpu;

	return !q->suspended && !q->device->evicted && !g->resetting && !g->lost &&
	       q->args.queue_percentage && q->args.ring_base_address;
}

/* ---- creation and change ---- */

/* The checks that creation and update share. */
static bool ring_is_valid(uint32_t ring_size, uint32_t percentage, uint32_t priority)
{
	/* The upper bytes of the percentage carry a target XCC. */
	return (percentage & 0xff) <= 100 && priority <= 15 &&
	       (!ring_size || !(ring_size & (ring_size - 1)));
}

static int check_create(const struct kfdabi_create_queue_args *a)
{
	const uint64_t end = sim_user_end();

	if (!ring_is_valid(a->ring_size, a->queue_percentage, a->queue_priority) ||
	    a->queue_type > KFDABI_QUEUE_TYPE_SDMA_BY_ENGINE_ID)
		return -EINVAL;
	if (a->ring_base_address >= end || a->read_pointer_address >= end || a->write_pointer_address >= end ||
	    a->eop_buffer_address >= end || a->ctx_save_restore_address >= end)
		return -EFAULT;
	return 0;
}

/* Ids are used again: the lowest free one is next. */
static uint32_t lowest_free_id(struct sim_process *p)
{
	uint32_t id = 0;

	while (sim_queue_find(p, id))
		id++;
	return id;
}

int sim_queue_create(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_create_queue_args *a = call->arg;
	struct sim_device *d;
	struct sim_queue *q;
	int r = check_create(a);

	if (r)
		return r;
	d = sim_device_find(p, a->gpu_id);
	if (!d || (a->queue_type == KFDABI_QUEUE_TYPE_SDMA_BY_ENGINE_ID && s->kernel->minor < 17))
		return -EINVAL;
	if (d->gpu->lost || d->gpu->resetting)
		return -EIO;
	if (lowest_free_id(p) >= KFDABI_MAX_QUEUES_PER_PROCESS)
		return -ENOMEM;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->id = lowest_free_id(p);
	q->type = a->queue_type;
	if (q->type == KFDABI_QUEUE_TYPE_SDMA_BY_ENGINE_ID)
		q->type = KFDABI_QUEUE_TYPE_SDMA;
	q->device = d;
	q->args = *a;
	/*
	 * Every queue is new from birth, with or without a debugger, and cannot be suspended until
	 * a debugger has cleared that.
	 */
	q->latched = KFDABI_EC_MASK(KFDABI_EC_QUEUE_NEW);
	TAILQ_INSERT_TAIL(&p->queues, q, link);
	a->queue_id = q->id;
	a->doorbell_offset = sim_memory_doorbells(p, d->gpu) + q->id * 8u;
	sim_raise(s, p, q, NULL, KFDABI_EC_MASK(KFDABI_EC_QUEUE_NEW), true);
	return 0;
}

int sim_queue_update(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_update_queue_args *a = call->arg;
	struct sim_queue *q = sim_queue_find(p, a->queue_id);

	if (!ring_is_valid(a->ring_size, a->queue_percentage, a->queue_priority))
		return -EINVAL;
	/* The driver's word for a queue that does not exist (pqm_update_queue_properties()). */
	if (!q || a->ring_base_address >= sim_user_end())
		return -EFAULT;
	q->args.ring_base_address = a->ring_base_address;
	q->args.ring_size = a->ring_size;
	q->args.queue_percentage = a->queue_percentage;
	q->args.queue_priority = a->queue_priority;
	return 0;
}

int sim_queue_set_cu_mask(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_set_cu_mask_args *a = call->arg;
	struct sim_queue *q = sim_queue_find(p, a->queue_id);

	if (!a->num_cu_mask || a->num_cu_mask % 32 || !q)
		return -EINVAL;
	if (q->device->gpu->profile->cu_mask_excludes_debug && p->debugged)
		return -EBUSY;
	q->has_cu_mask = true;
	return 0;
}

int sim_queue_wave_state(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	struct kfdabi_get_queue_wave_state_args *a = call->arg;
	struct sim_queue *q = sim_queue_find(p, a->queue_id);

	/* As above (pqm_get_wave_state()). */
	if (!q)
		return -EFAULT;
	if (!sim_queue_is_compute(q) || sim_queue_is_running(q))
		return -EINVAL;
	sim_save_areas_write(s, p);
	sim_waves_used(q, &a->ctl_stack_used_size, &a->save_area_used_size);
	return 0;
}

/* ---- destruction ---- */

/* Free a queue; the debugger hears only on which GPU. */
static void queue_remove(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	struct sim_device *d = q->device;

	TAILQ_REMOVE(&p->queues, q, link);
	sim_waves_clear(q);
	free(q);
	sim_raise(s, p, NULL, d, KFDABI_EC_MASK(KFDABI_EC_DEVICE_QUEUE_DELETE), true);
}

int sim_queue_destroy(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_destroy_queue_args *a = call->arg;
	struct sim_queue *q = sim_queue_find(p, a->queue_id);

	if (!q)
		return -EINVAL;
	if (q->suspended) {
		if (q->destroying && s->kernel->destroy_restarts)
			return -EBUSY;
		q->destroying = true;
		call->queue_id = q->id;
		return sim_call_park(s, call, SIM_WAIT_DESTROY, p);
	}
	queue_remove(s, p, q);
	return 0;
}

/*
 * Complete the calls that waited to destroy a queue which is suspended no longer.  The list changes
 * with each, so that the search starts again.
 */
static void wake_destroyers(struct sim *s, struct sim_process *p)
{
	struct sim_call *call;
	struct sim_queue *q;

again:
	TAILQ_FOREACH(call, &s->pending, link) {
		if (call->wait != SIM_WAIT_DESTROY || call->target != p)
			continue;
		q = sim_queue_find(p, call->queue_id);
		if (q && q->suspended)
			continue;
		if (q)
			queue_remove(s, p, q);
		sim_call_finish(s, call, q ? 0 : -EINVAL);
		goto again;
	}
}

void sim_queues_free(struct sim *s, struct sim_process *p)
{
	struct sim_queue *q;

	while ((q = TAILQ_FIRST(&p->queues))) {
		TAILQ_REMOVE(&p->queues, q, link);
		sim_waves_clear(q);
		free(q);
	}
}

static void set_suspended(const struct sim *s, struct sim_queue *q, bool suspended)
{
	const uint64_t now = s->os->now_ns();

	if (q->suspended && !suspended)
		q->suspended_ns += now - q->since_ns;
	if (!q->suspended)
		q->since_ns = now;
	q->suspended = suspended;
}

uint64_t sim_queue_suspended_ns(const struct sim *s, const struct sim_queue *q)
{
	return q->suspended_ns + (q->suspended ? s->os->now_ns() - q->since_ns : 0);
}

void sim_queues_resume_all(struct sim *s, struct sim_process *p)
{
	struct sim_queue *q;

	TAILQ_FOREACH(q, &p->queues, link) {
		set_suspended(s, q, false);
		sim_waves_run(s, p, q);
	}
	if (!p->gone)
		wake_destroyers(s, p);
}

/* ---- suspend and resume ---- */

/* The ids of a call, with their verdicts, which are bits of the ids. */
struct id_array {
	uint32_t ids[KFDABI_MAX_QUEUES_PER_PROCESS];
	uint32_t n;
};

#define NOT_LISTED UINT32_MAX

static uint32_t array_index(const struct id_array *a, uint32_t id)
{
	for (uint32_t i = 0; i < a->n; i++)
		if ((a->ids[i] & ~KFDABI_QUEUE_INVALID) == id)
			return i;
	return NOT_LISTED;
}

/* Read the ids; each is marked as invalid until a queue is found. */
static int array_load(struct sim *s, const struct sim_call *call, uint64_t ptr, uint32_t n,
		      struct id_array *ret)
{
	ret->n = n;
	if (!n)
		return 0;
	if (n > KFDABI_MAX_QUEUES_PER_PROCESS)
		return -EINVAL;
	if (s->os->mem_read(call->tid, ptr, ret->ids, n * sizeof(ret->ids[0])))
		return -EFAULT;
	for (uint32_t i = 0; i < n; i++)
		ret->ids[i] |= KFDABI_QUEUE_INVALID;
	return 0;
}

static void array_store(struct sim *s, const struct sim_call *call, uint64_t ptr,
			const struct id_array *a)
{
	/* A fault here is not reported to the caller, as in the driver. */
	if (a->n && !s->silent)
		s->os->mem_write(call->tid, ptr, a->ids, a->n * sizeof(a->ids[0]));
}

/* Use up one of the failures that a test asked for. */
static bool take_failure(uint32_t *count)
{
	if (!*count)
		return false;
	--*count;
	return true;
}

/*
 * Suspend on a GPU with MES: there is one removal per queue, and the first failure ends the walk on
 * this GPU.
 */
static uint32_t suspend_on_mes(struct sim *s, struct sim_process *p, struct sim_device *d,
			       struct id_array *a, uint64_t clear)
{
	struct sim_queue *q;
	uint32_t done = 0, i;

	TAILQ_FOREACH(q, &p->queues, link) {
		if (q->device != d || (i = array_index(a, q->id)) == NOT_LISTED)
			continue;
		if (!q->suspended) {
			if ((q->latched & KFDABI_EC_MASK(KFDABI_EC_QUEUE_NEW)) || q->destroying)
				continue;
			/* The queue is marked although it failed: a second attempt "succeeds". */
			set_suspended(s, q, true);
			if (d->gpu->resetting || d->gpu->lost || take_failure(&q->fail_suspend)) {
				a->ids[i] |= KFDABI_QUEUE_ERROR;
				break;
			}
		}
		a->ids[i] &= ~KFDABI_QUEUE_INVALID;
		q->latched &= ~clear;
		done++;
	}
	return done;
}

/* Suspend on a GPU with HWS: all queues are marked, then the whole GPU is preempted once. */
static uint32_t suspend_on_hws(struct sim *s, struct sim_process *p, struct sim_device *d,
			       struct id_array *a, uint64_t clear)
{
	struct sim_queue *q;
	uint32_t marked = 0, i;
	bool failed;

	TAILQ_FOREACH(q, &p->queues, link) {
		if (q->device != d || (i = array_index(a, q->id)) == NOT_LISTED)
			continue;
		if (!q->suspended &&
		    ((q->latched & KFDABI_EC_MASK(KFDABI_EC_QUEUE_NEW)) || q->destroying))
			continue;
		set_suspended(s, q, true);
		a->ids[i] &= ~KFDABI_QUEUE_INVALID;
		marked++;
	}
	if (!marked)
		return 0;
	failed = d->gpu->resetting || d->gpu->lost || take_failure(&d->gpu->fail_suspend);
	TAILQ_FOREACH(q, &p->queues, link) {
		if (q->device != d || (i = array_index(a, q->id)) == NOT_LISTED)
			continue;
		if (failed)
			a->ids[i] |= KFDABI_QUEUE_ERROR;
		else
			q->latched &= ~clear;
	}
	return failed ? 0 : marked;
}

int sim_queues_suspend(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_dbg_args *args = call->arg;
	uint64_t ptr = args->suspend.queue_array_ptr, clear = args->suspend.exception_mask;
	struct id_array a;
	uint32_t done = 0;
	int r;

	if (args->suspend.num_queues && !ptr)
		return -EINVAL;
	r = array_load(s, call, ptr, args->suspend.num_queues, &a);
	if (r)
		return r;
	p->suspends += a.n > 0;
	for (size_t i = 0; i < p->n_devices; i++) {
		struct sim_device *d = &p->devices[i];

		if (s->has_partial && i >= s->partial)
			break;
		done += d->gpu->profile->mes ? suspend_on_mes(s, p, d, &a, clear)
					     : suspend_on_hws(s, p, d, &a, clear);
	}
	if (done)
		sim_save_areas_write(s, p);
	array_store(s, call, ptr, &a);
	return (int)done;
}

/* Resume queues on a GPU; a null array stands for every queue of the process. */
static uint32_t resume_on_device(struct sim *s, struct sim_process *p, struct sim_device *d,
				 struct id_array *a)
{
	bool mes = d->gpu->profile->mes, failed = false;
	struct sim_queue *q;
	uint32_t done = 0, i = 0;

	if (!mes)
		failed = d->gpu->resetting || d->gpu->lost || take_failure(&d->gpu->fail_resume);
	TAILQ_FOREACH(q, &p->queues, link) {
		if (q->device != d || (a && (i = array_index(a, q->id)) == NOT_LISTED))
			continue;
		if (mes && q->suspended &&
		    (d->gpu->resetting || d->gpu->lost || take_failure(&q->fail_resume))) {
			if (a)
				a->ids[i] |= KFDABI_QUEUE_ERROR;
			break;
		}
		set_suspended(s, q, false);
		sim_waves_run(s, p, q);
		if (a)
			a->ids[i] &= ~KFDABI_QUEUE_INVALID;
		if (a && failed)
			a->ids[i] |= KFDABI_QUEUE_ERROR;
		done++;
	}
	return failed ? 0 : done;
}

/* Whether a GPU has any of the queues. */
static bool device_is_asked(struct sim_process *p, const struct sim_device *d,
			    const struct id_array *a)
{
	const struct sim_queue *q;

	TAILQ_FOREACH(q, &p->queues, link)
		if (q->device == d && (!a || array_index(a, q->id) != NOT_LISTED))
			return true;
	return false;
}

int sim_queues_resume(struct sim *s, struct sim_call *call, struct sim_process *p)
{
	const struct kfdabi_dbg_args *args = call->arg;
	uint64_t ptr = args->resume.queue_array_ptr;
	struct id_array array = { .n = 0 }, *a = ptr ? &array : NULL;
	uint32_t done = 0;
	int r;

	if (a) {
		r = array_load(s, call, ptr, args->resume.num_queues, a);
		if (r)
			return r;
	}
	for (size_t i = 0; i < p->n_devices; i++) {
		if (!device_is_asked(p, &p->devices[i], a))
			continue;
		if (s->has_partial && i >= s->partial)
			break;
		done += resume_on_device(s, p, &p->devices[i], a);
	}
	if (a)
		array_store(s, call, ptr, a);
	wake_destroyers(s, p);
	return (int)done;
}

/* ---- work ---- */

/* Whether a packet waits: a barrier for its signals, or a place in the ring for who writes it. */
static bool packet_waits(struct sim *s, struct sim_process *p, const struct aql_packet *packet)
{
	int64_t values[AQL_SIGNALS] = { 0 };

	if (packet->kind == AQL_INVALID)
		return true;
	if (packet->kind != AQL_BARRIER_AND && packet->kind != AQL_BARRIER_OR && packet->kind != AQL_BARRIER_VALUE)
		return false;
	for (size_t i = 0; i < AQL_SIGNALS; i++)
		if (packet->signals[i])
			s->os->mem_read(p->tgid, packet->signals[i] + SIGNAL_VALUE, &values[i], sizeof(values[i]));
	return !aql_barrier_is_open(packet, values);
}

static void tell_signal(struct sim *s, struct sim_process *p, uint64_t signal)
{
	int64_t value;

	if (!signal || s->os->mem_read(p->tgid, signal + SIGNAL_VALUE, &value, sizeof(value)))
		return;
	value--;
	s->os->mem_write(p->tgid, signal + SIGNAL_VALUE, &value, sizeof(value));
}

/* @return whether the packet at the read index is one that a queue takes. */
static bool read_packet(struct sim *s, struct sim_process *p, struct sim_queue *q, uint64_t rd, struct aql_packet *ret)
{
	uint32_t slots = q->args.ring_size / AQL_PACKET_SIZE;
	uint8_t bytes[AQL_PACKET_SIZE];
	uint64_t at;

	if (!sim_queue_is_compute(q) || !slots)
		return false;
	at = q->args.ring_base_address + rd % slots * AQL_PACKET_SIZE;
	return !s->os->mem_read(p->tgid, at, bytes, sizeof(bytes)) && !aql_packet_parse(bytes, sizeof(bytes), ret);
}

/* Consume one packet, as far as indices in the target's memory tell. */
static void queue_progress(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	struct aql_packet packet = { .kind = AQL_DISPATCH };
	uint64_t rd, wr;

	if (!q->args.read_pointer_address || !q->args.write_pointer_address ||
	    s->os->mem_read(p->tgid, q->args.read_pointer_address, &rd, sizeof(rd)) ||
	    s->os->mem_read(p->tgid, q->args.write_pointer_address, &wr, sizeof(wr)) || rd >= wr)
		return;
	if (read_packet(s, p, q, rd, &packet) && packet_waits(s, p, &packet))
		return;
	rd++;
	if (s->os->mem_write(p->tgid, q->args.read_pointer_address, &rd, sizeof(rd)))
		return;
	q->packets++;
	tell_signal(s, p, packet.completion);
}

static void queue_work(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	if (!p->has_memory) {
		if (!sim_waves_hold_packet(q))
			queue_progress(s, p, q);
	} else if (sim_queue_is_compute(q)) {
		sim_work_compute(s, p, q);
	} else {
		sim_work_copies(s, p, q);
	}
}

void sim_queues_progress(struct sim *s)
{
	struct sim_process *p;
	struct sim_queue *q;

	TAILQ_FOREACH(p, &s->processes, link) {
		/*
		 * A process that has just called exec must not receive writes meant for its
		 * predecessor.
		 */
		if (p->gone || TAILQ_EMPTY(&p->queues) || !s->os->holds(&p->hold))
			continue;
		TAILQ_FOREACH(q, &p->queues, link)
			if (sim_queue_is_running(q))
				queue_work(s, p, q);
	}
}
