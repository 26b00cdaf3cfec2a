/* SPDX-License-Identifier: MIT */
/*
 * The part of a capture that runs while the queues stand still: it copies headers, then control
 * stacks, then the waves themselves.
 */
#include "agentd/worker/kfd/waves.h"
#include "base/clock.h"

/*
 * Most bytes of one control stack.  The kernel's formula gives 40 KiB for the largest devices
 * (kfd_queue_ctx_save_restore_size()).
 */
#define STACK_MAX (UINT32_C(1) << 20)

bool wave_capture_is_late(struct wave_capture *w)
{
	bool late = w->late || clock_now_ns() >= w->deadline_ns;

	if (late)
		w->late = true;
	return late;
}

void wave_batch_flush(struct wave_batch *b)
{
	if (!b->n || wave_capture_is_late(b->w)) {
		b->n = 0;
		return;
	}
	memory_read_pieces(b->memory, b->pieces, b->n);
	for (size_t i = 0; i < b->n; i++)
		*b->done[i] = b->pieces[i].ok;
	b->n = 0;
}

void wave_batch_add(struct wave_batch *b, uint64_t address, void *buf, uint32_t size, bool *done)
{
	*done = false;
	b->pieces[b->n] = (struct memory_piece){ .address = address, .buf = buf, .size = size };
	b->done[b->n++] = done;
	if (b->n == WAVES_SHARE)
		wave_batch_flush(b);
}

/* Copy headers, and the packet counters as they are now that the queues stand still. */
static void copy_headers(struct wave_capture *w, struct wave_batch *b, uint32_t round)
{
	for (size_t i = 0; i < w->n_areas; i++)
		if (queue_capture_is_in(w->areas[i].capture, round))
			wave_batch_add(b, w->areas[i].address, w->areas[i].raw_header,
				       KFDTRAP_WAVE_HEADER_SIZE, &w->areas[i].got);
	for (size_t i = 0; i < w->n_captures; i++) {
		struct queue_capture *l = &w->captures[i];

		if (!queue_capture_is_in(l, round) || l->queue->type != RPC_QUEUE_TYPE_COMPUTE_AQL)
			continue;
		wave_batch_add(b, l->queue->read_pointer, &l->read, sizeof(l->read), &l->has_read);
		wave_batch_add(b, l->queue->write_pointer, &l->write, sizeof(l->write),
			       &l->has_write);
	}
	wave_batch_flush(b);
}

/* @return whether the area has a control stack worth copying. */
static bool judge_header(struct wave_capture *w, struct save_area *a)
{
	if (!a->got) {
		a->state = w->late ? SAVE_AREA_NOT_READ : SAVE_AREA_HEADER_UNREADABLE;
		return false;
	}
	a->problem = kfdtrap_wave_header_parse(a->raw_header, a->capture->queue->save_area_bytes,
					       &a->header);
	if (a->problem) {
		a->state = SAVE_AREA_BROKEN;
		return false;
	}
	if (a->header.control_stack_size > STACK_MAX ||
	    a->header.control_stack_size > STACKS_MAX - w->stacks_size) {
		a->state = SAVE_AREA_STACK_TOO_LARGE;
		return false;
	}
	a->stack = w->stacks_size;
	w->stacks_size += a->header.control_stack_size;
	return true;
}

/*
 * Ask for the packets that are not done, from the oldest one on: one piece of the ring, or two if
 * they go on at its start.
 */
static void add_packets(struct queue_capture *l, struct wave_batch *b)
{
	const struct rpc_queue *q = l->queue;
	uint64_t ring = q->ring_bytes / SYMBOLS_AQL_PACKET_SIZE, slot;

	/* The target can write both counters: the queue may be empty, or they make no sense. */
	if (!l->has_read || !l->has_write || !ring || l->write <= l->read)
		return;
	slot = l->read % ring;
	l->n_packets =
		l->write - l->read < PACKETS_MAX ? (uint32_t)(l->write - l->read) : PACKETS_MAX;
	if (l->n_packets > ring)
		l->n_packets = (uint32_t)ring;
	l->n_straight = ring - slot < l->n_packets ? (uint32_t)(ring - slot) : l->n_packets;
	wave_batch_add(b, q->ring_base + slot * SYMBOLS_AQL_PACKET_SIZE, l->packets,
		       l->n_straight * SYMBOLS_AQL_PACKET_SIZE, &l->has_straight);
	if (l->n_packets > l->n_straight)
		wave_batch_add(
			b, q->ring_base, l->packets + l->n_straight * SYMBOLS_AQL_PACKET_SIZE,
			(l->n_packets - l->n_straight) * SYMBOLS_AQL_PACKET_SIZE, &l->has_wrapped);
}

/* Copy control stacks, and in the same calls the packets that may have started the waves. */
static void copy_stacks(struct wave_capture *w, struct wave_batch *b, uint32_t round)
{
	for (size_t i = 0; i < w->n_captures; i++)
		if (queue_capture_is_in(&w->captures[i], round))
			add_packets(&w->captures[i], b);
	for (size_t i = 0; i < w->n_areas; i++) {
		struct save_area *a = &w->areas[i];

		if (!queue_capture_is_in(a->capture, round) || !judge_header(w, a))
			continue;
		/* The state holds until find_waves() sees that the batch has read the stack. */
		wave_batch_add(b, a->address + a->header.control_stack_offset, w->stacks + a->stack,
			       a->header.control_stack_size, &a->got);
		a->state = SAVE_AREA_STACK_UNREADABLE;
	}
	wave_batch_flush(b);
}

static void add_named(struct wave_capture *w, const struct save_area *a,
		      const struct kfdtrap_wave_layout *layout)
{
	uint32_t offset;

	if (!w->named || !layout->first ||
	    !kfdtrap_wave_named_barriers_find(a->capture->arch, layout, &offset))
		return;
	w->named[w->n_named++] =
		(struct named_copy){ .address = a->address + offset, .wave = w->n_hot };
}

/* One thread does the walk, since the place of a wave depends on all waves before it. */
static void find_waves_of(struct wave_capture *w, struct save_area *a)
{
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;

	a->first = w->n_hot;
	a->first_named = w->n_named;
	wave_capture_walk(w, a, &iter);
	for (; kfdtrap_wave_next(&iter, &layout); w->n_hot++) {
		w->places[w->n_hot] = a->address + kfdtrap_wave_hot_offset(&layout);
		add_named(w, a, &layout);
	}
	/* Only a proper end confirms the waves before it. */
	a->problem = iter.problem;
	a->state = a->problem ? SAVE_AREA_BROKEN : SAVE_AREA_READ;
}

static void find_waves(struct wave_capture *w, uint32_t round)
{
	for (size_t i = 0; i < w->n_areas; i++) {
		struct save_area *a = &w->areas[i];

		if (!queue_capture_is_in(a->capture, round) ||
		    a->state != SAVE_AREA_STACK_UNREADABLE)
			continue;
		if (a->got)
			find_waves_of(w, a);
		else if (w->late)
			a->state = SAVE_AREA_NOT_READ;
	}
}

/*
 * Copy the arguments of the oldest dispatches of each queue: when a kernel has ended, the program
 * uses that memory again.
 */
static void copy_arguments_of(struct wave_capture *w, struct wave_batch *b,
			      const struct queue_capture *l)
{
	for (uint32_t i = 0; i < l->n_packets && i < ARGUMENT_COPIES_OF_QUEUE; i++) {
		struct argument_copy *copy = &w->arguments[w->n_arguments];
		uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];
		struct symbols_aql_packet p;

		if (w->n_arguments == ARGUMENT_COPIES_MAX || !queue_capture_packet(l, i, bytes) ||
		    symbols_aql_decode(bytes, sizeof(bytes), &p) < 0 || !p.kernel_object ||
		    !p.kernarg_address)
			continue;
		*copy = (struct argument_copy){ .capture = l, .dispatch = l->read + i };
		wave_batch_add(b, p.kernarg_address,
			       w->argument_bytes + w->n_arguments * ARGUMENT_COPY_BYTES,
			       ARGUMENT_COPY_BYTES, &copy->got);
		w->n_arguments++;
	}
}

static void copy_arguments(struct wave_capture *w, struct wave_batch *b, uint32_t round)
{
	for (size_t i = 0; i < w->n_captures; i++)
		if (queue_capture_is_in(&w->captures[i], round))
			copy_arguments_of(w, b, &w->captures[i]);
	wave_batch_flush(b);
}

/* The waves of one round, in shares of WAVES_SHARE. */
struct shares {
	struct wave_capture *w;
	const struct memory *memory; /* The memory that they are read from. */
	size_t first;                /* The first wave that was found in this round. */
	size_t first_named;          /* The same of the named barriers. */
};

/* Copy one share, on any thread of the pool. */
static void copy_share(void *ctx, size_t i)
{
	const struct shares *s = ctx;
	struct wave_capture *w = s->w;
	size_t begin = s->first + i * WAVES_SHARE, end = begin + WAVES_SHARE;
	struct wave_batch b = { .w = w, .memory = s->memory };

	if (end > w->n_hot)
		end = w->n_hot;
	for (size_t k = begin; k < end; k++)
		wave_batch_add(&b, w->places[k], w->hot + k * KFDTRAP_WAVE_HOT_SIZE,
			       KFDTRAP_WAVE_HOT_SIZE, &w->copied[k]);
	wave_batch_flush(&b);
}

/* Copy the named barriers of workgroups, in shares of as many. */
static void copy_named_share(void *ctx, size_t i)
{
	const struct shares *s = ctx;
	struct wave_capture *w = s->w;
	size_t begin = s->first_named + i * WAVES_SHARE, end = begin + WAVES_SHARE;
	struct wave_batch b = { .w = w, .memory = s->memory };

	for (size_t k = begin; k < end && k < w->n_named; k++)
		wave_batch_add(&b, w->named[k].address, w->named[k].words,
			       sizeof(w->named[k].words), &w->named[k].got);
	wave_batch_flush(&b);
}

static size_t shares_of(size_t n)
{
	return (n + WAVES_SHARE - 1) / WAVES_SHARE;
}

static bool has_queues(const struct wave_capture *w, uint32_t round)
{
	for (size_t i = 0; i < w->n_captures; i++)
		if (queue_capture_is_in(&w->captures[i], round))
			return true;
	return false;
}

void wave_capture_copy(struct wave_capture *w, uint32_t round)
{
	const struct memory *memory = &w->k->t.memory;
	struct wave_batch b = { .w = w, .memory = memory };
	struct shares s = {
		.w = w, .memory = memory, .first = w->n_hot, .first_named = w->n_named
	};

	/* Where nothing is to be copied, nothing comes too late. */
	if (!has_queues(w, round) || wave_capture_is_late(w))
		return;
	copy_headers(w, &b, round);
	copy_stacks(w, &b, round);
	find_waves(w, round);
	copy_arguments(w, &b, round);
	if (w->take)
		s.memory = w->take(w, round);
	thread_pool_run(w->k->pool, copy_share, &s, shares_of(w->n_hot - s.first));
	if (w->n_named > s.first_named)
		thread_pool_run(w->k->pool, copy_named_share, &s,
				shares_of(w->n_named - s.first_named));
}
