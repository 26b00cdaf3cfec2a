/* SPDX-License-Identifier: MIT */
/* Compute queues: packets one after the other, each completed before the next. */
#include "work.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "memory.h"
#include "sim/kfd/packet/aql.h"
#include "sim/kfd/packet/copy_kernel.h"
#include "waves.h"

/* Packets of a queue before others have their turn. */
#define BURST 256
/* Waves that a held dispatch has at most; hardware holds as many as fit, which says no more. */
#define HELD_WAVES_MAX 512u
#define WORKGROUP_MAX  1024u
/* Places in a signal (amd_signal_t of ROCr's amd_hsa_signal.h). */
#define SIGNAL_VALUE   8u
#define SIGNAL_MAILBOX 16u
#define SIGNAL_EVENT   24u
#define SIGNAL_START   32u

/* What becomes of a packet. */
enum outcome {
	DONE,
	WAITS, /* It stays the oldest one. */
	BROKEN, /* The queue has been stopped. */
};

/* One packet at work. */
struct work {
	struct sim *s;
	struct sim_process *p;
	struct sim_queue *q;
	const struct sim_gpu *gpu;
	struct aql_packet packet;
};

void sim_work_fault(struct sim *s, struct sim_process *p, struct sim_queue *q, uint64_t va)
{
	const struct kfdabi_memory_exception_data data = { .not_present = 1,
							   .va = va & ~UINT64_C(4095),
							   .gpu_id = q->device->gpu->gpu_id };

	q->broken = true;
	sim_interrupt_fault(s, p, q->device, &data);
}

static enum outcome fault(struct work *w, uint64_t va)
{
	sim_work_fault(w->s, w->p, w->q, va);
	return BROKEN;
}

static enum outcome refuse(struct work *w, uint32_t code)
{
	w->q->broken = true;
	sim_interrupt_queue(w->s, w->p, w->q, KFDABI_EC_MASK(code));
	return BROKEN;
}

static int get(struct work *w, uint64_t va, void *buf, size_t size)
{
	return sim_memory_read(w->s, w->p, w->gpu, va, buf, size);
}

static int put(struct work *w, uint64_t va, const void *buf, size_t size)
{
	return sim_memory_write(w->s, w->p, w->gpu, va, buf, size);
}

/* ---- signals ---- */

/* Decrement a signal, and wake who waits for it. */
static enum outcome signal_complete(struct work *w, uint64_t signal)
{
	uint64_t times[2] = { w->s->os->now_ns() / 10, w->s->os->now_ns() / 10 + 1 }, mailbox;
	struct sim_event *e;
	uint32_t event;
	int64_t value;

	if (get(w, signal + SIGNAL_MAILBOX, &mailbox, sizeof(mailbox)) ||
	    get(w, signal + SIGNAL_EVENT, &event, sizeof(event)) ||
	    put(w, signal + SIGNAL_START, times, sizeof(times)) ||
	    get(w, signal + SIGNAL_VALUE, &value, sizeof(value)))
		return fault(w, signal);
	value--;
	if (put(w, signal + SIGNAL_VALUE, &value, sizeof(value)))
		return fault(w, signal);
	if (!mailbox)
		return DONE;
	if (put(w, mailbox, &(uint64_t){ event }, sizeof(uint64_t)))
		return fault(w, mailbox);
	e = sim_event_find(w->p, event);
	if (e)
		sim_event_signal(w->s, w->p, e);
	return DONE;
}

static enum outcome do_barrier(struct work *w)
{
	int64_t values[AQL_SIGNALS] = { 0 };

	for (size_t i = 0; i < AQL_SIGNALS; i++) {
		uint64_t signal = w->packet.signals[i];

		if (signal && get(w, signal + SIGNAL_VALUE, &values[i], sizeof(values[i])))
			return fault(w, signal);
	}
	return aql_barrier_is_open(&w->packet, values) ? DONE : WAITS;
}

/* ---- dispatches ---- */

/* One of the runtime's own kernels: what it is to do is done. */
static enum outcome do_copy_kernel(struct work *w)
{
	uint8_t arguments[COPY_KERNEL_ARGUMENTS];
	struct copy_kernel k;
	int r;

	if (get(w, w->packet.kernarg, arguments, sizeof(arguments)))
		return fault(w, w->packet.kernarg);
	if (copy_kernel_parse(arguments, sizeof(arguments), w->packet.grid[0], &k))
		return DONE;
	if (k.fills)
		r = sim_memory_fill(w->s, w->p, w->gpu, k.to, k.word, k.size);
	else
		r = sim_memory_copy(w->s, w->p, w->gpu, k.to, k.from, k.size);
	return r ? fault(w, k.to) : DONE;
}

static uint64_t div_up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* Plant the waves of a dispatch at its first instruction; fewer where the save area is too small. */
static void hold(struct work *w, const struct aql_kernel *k)
{
	const struct aql_packet *d = &w->packet;
	uint64_t grid[3] = { 1, 1, 1 }, size[3] = { 1, 1, 1 }, items[3] = { 1, 1, 1 };
	uint64_t threads = 1, groups = 1, in_group, n;
	char text[320];

	for (uint32_t i = 0; i < d->dimensions; i++) {
		size[i] = d->workgroup[i];
		items[i] = d->grid[i];
		threads *= size[i];
		grid[i] = div_up(d->grid[i], d->workgroup[i]);
		if (grid[i] > HELD_WAVES_MAX)
			grid[i] = HELD_WAVES_MAX;
		groups *= grid[i];
		if (groups > HELD_WAVES_MAX)
			groups = HELD_WAVES_MAX;
	}
	in_group = div_up(threads, k->wave32 ? 32 : 64);
	if (groups > HELD_WAVES_MAX / in_group)
		groups = HELD_WAVES_MAX / in_group;
	for (n = groups ? groups : 1; n; n /= 2) {
		snprintf(text, sizeof(text),
			 "spin n=%" PRIu64 " group=%" PRIu64 " grid=%" PRIu64 ",%" PRIu64 ",%" PRIu64
			 " size=%" PRIu64 ",%" PRIu64 ",%" PRIu64 " items=%" PRIu64 ",%" PRIu64 ",%" PRIu64
			 " pc=%#" PRIx64 " loop=0 wave32=%u\n",
			 n * in_group, in_group, grid[0], grid[1], grid[2], size[0], size[1], size[2], items[0],
			 items[1], items[2],
			 d->kernel_object + (uint64_t)k->entry, k->wave32);
		if (sim_waves_plant(w->p, w->q, text) != -ENOSPC)
			break;
	}
	w->q->held = true;
}

/* The code of the error that a dispatch cannot be run for; 0: it can. */
static uint32_t check_dispatch(const struct work *w)
{
	const struct aql_packet *d = &w->packet;
	uint64_t threads = 1;

	if (!d->dimensions)
		return KFDABI_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID;
	for (uint32_t i = 0; i < d->dimensions; i++) {
		if (!d->grid[i])
			return KFDABI_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID;
		threads *= d->workgroup[i];
	}
	if (!threads || threads > WORKGROUP_MAX)
		return KFDABI_EC_QUEUE_PACKET_DISPATCH_WORKGROUP_INVALID;
	if (d->group_size > w->gpu->profile->lds_kb * 1024)
		return KFDABI_EC_QUEUE_PACKET_DISPATCH_GROUP_SIZE_INVALID;
	if (!d->kernel_object)
		return KFDABI_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID;
	return 0;
}

static enum outcome do_dispatch(struct work *w)
{
	uint8_t descriptor[AQL_KERNEL_SIZE];
	uint32_t code = check_dispatch(w);
	struct aql_kernel k;

	if (code)
		return refuse(w, code);
	if (get(w, w->packet.kernel_object, descriptor, sizeof(descriptor)))
		return fault(w, w->packet.kernel_object);
	aql_kernel_parse(descriptor, sizeof(descriptor), &k);
	if (k.entry == COPY_KERNEL_ENTRY)
		return do_copy_kernel(w);
	if (!w->q->device->holds_dispatches)
		return DONE;
	hold(w, &k);
	return WAITS;
}

/* ---- the queue ---- */

static enum outcome do_packet(struct work *w, uint64_t at)
{
	uint8_t bytes[AQL_PACKET_SIZE];
	enum outcome outcome = DONE;

	if (get(w, at, bytes, sizeof(bytes)))
		return fault(w, at);
	switch (aql_packet_parse(bytes, sizeof(bytes), &w->packet)) {
	case 0:
		break;
	case -EPROTONOSUPPORT:
		return refuse(w, KFDABI_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED);
	default:
		return refuse(w, KFDABI_EC_QUEUE_PACKET_UNSUPPORTED);
	}
	switch (w->packet.kind) {
	case AQL_INVALID:
		return WAITS;
	case AQL_DISPATCH:
		outcome = do_dispatch(w);
		break;
	case AQL_BARRIER_AND:
	case AQL_BARRIER_OR:
	case AQL_BARRIER_VALUE:
		outcome = do_barrier(w);
		break;
	case AQL_COMMANDS:
		break;
	}
	return outcome;
}

/* Give a packet's place back, and tell its signal. */
static enum outcome complete(struct work *w, uint64_t at, uint64_t rd)
{
	const uint16_t invalid = AQL_HEADER_INVALID;

	if (put(w, at, &invalid, sizeof(invalid)))
		return fault(w, at);
	if (put(w, w->q->args.read_pointer_address, &rd, sizeof(rd)))
		return fault(w, w->q->args.read_pointer_address);
	w->q->packets++;
	return w->packet.completion ? signal_complete(w, w->packet.completion) : DONE;
}

/* Whether a dispatch is held still; one that no longer is to be held goes on. */
static bool is_held(struct sim_queue *q)
{
	if (q->held && !q->device->holds_dispatches) {
		sim_waves_clear(q);
		q->held = false;
	}
	return q->held || sim_waves_hold_packet(q);
}

void sim_work_compute(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	struct work w = { .s = s, .p = p, .q = q, .gpu = q->device->gpu };
	uint32_t slots = q->args.ring_size / AQL_PACKET_SIZE;
	uint64_t rd, wr;

	if (q->broken || !slots || is_held(q) ||
	    get(&w, q->args.read_pointer_address, &rd, sizeof(rd)) ||
	    get(&w, q->args.write_pointer_address, &wr, sizeof(wr)))
		return;
	for (int i = 0; i < BURST && rd < wr; i++) {
		uint64_t at = q->args.ring_base_address + rd % slots * AQL_PACKET_SIZE;

		if (do_packet(&w, at) != DONE || complete(&w, at, ++rd) != DONE)
			return;
	}
}
