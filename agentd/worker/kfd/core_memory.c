/* SPDX-License-Identifier: MIT */
/*
 * The pieces of a core, and the copies of memory that changes when the queues run again.  Room for
 * the copies is made before the stop, as one mapping; the thread pool fills it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/worker/kfd/core_write.h"
#include "base/clock.h"
#include "base/page.h"
#include "base/vec.h"

/* Most bytes of a ring that is copied; no runtime asks for a larger one. */
#define RING_MAX UINT64_C(16 << 20)
/* Bytes that are copied of the arguments of a dispatch: the limit of compilers that have one. */
#define KERNARG_BYTES 4096u
/*
 * Most packets of all queues whose arguments are copied during the stop.  The limit is there
 * because the search for a place takes time in proportion to the number of pieces.
 */
#define ARGUMENTS_MAX 1024u
/* How much a thread of the pool copies before it looks at the clock again. */
#define JOB_BYTES ((size_t)1 << 20)
/* Most bytes of the room that get pages before the stop: the registers of some 10,000 waves. */
#define READY_MAX	  (UINT64_C(256) << 20)
#define READY_BYTES	  (UINT64_C(8) << 20)
#define READY_MS	  200
/* Of a stop that others share, what is theirs in any case: they copy a few bytes of each wave. */
#define WAVES_PART 4
#define NS_PER_MS  UINT64_C(1000000)
/* Linux 5.14 has it, but the glibc of Debian 12 does not name it in all modes. */
#define MADV_POPULATE_WRITE 23

/* A part of a piece that one thread copies. */
struct kfd_core_job {
	size_t piece;
	uint64_t offset;
	size_t size, done;
};

/* ------------------------------------------------------------------ pieces ------------------- */

static struct kfd_core_piece *add_piece(struct kfd_core *c, uint64_t begin, uint64_t end)
{
	if (vec_reserve(&c->pieces, c->n_pieces, 1, &c->capacity, sizeof(*c->pieces)) < 0) {
		c->no_memory = true;
		return NULL;
	}
	c->pieces[c->n_pieces] = (struct kfd_core_piece){ .address = begin, .size = end - begin };
	return &c->pieces[c->n_pieces++];
}

/* @return the first address from @p begin on that is in the core already; @p end if none is. */
static uint64_t free_until(const struct kfd_core *c, uint64_t begin, uint64_t end)
{
	for (size_t i = 0; i < c->n_pieces; i++) {
		const struct kfd_core_piece *p = &c->pieces[i];

		if (p->address + p->size > begin && p->address < end)
			end = p->address > begin ? p->address : begin;
	}
	return end;
}

/* @return the end of the piece that @p begin is in; @p begin if it is in none. */
static uint64_t taken_until(const struct kfd_core *c, uint64_t begin)
{
	for (size_t i = 0; i < c->n_pieces; i++) {
		const struct kfd_core_piece *p = &c->pieces[i];

		if (p->address <= begin && begin < p->address + p->size)
			return p->address + p->size;
	}
	return begin;
}

/*
 * Add the pages of a range that are not in the core yet.
 * @param copy  Called for each new piece, which it may take out again; NULL: it is read later.
 */
static void add_range(struct kfd_core *c, uint64_t address, uint64_t size,
		      void (*copy)(struct kfd_core *c, struct kfd_core_piece *p))
{
	uint64_t begin = page_down(address), end;

	if (!size || size > UINT64_MAX - address || !page_up(address + size))
		return;
	end = page_up(address + size);
	while (begin < end) {
		uint64_t stop = free_until(c, begin, end);
		struct kfd_core_piece *p = stop > begin ? add_piece(c, begin, stop) : NULL;

		if (p && copy)
			copy(c, p);
		if (stop > begin && !p)
			return;
		begin = stop > begin ? stop : taken_until(c, begin);
	}
}

void kfd_core_add(struct kfd_core *c, uint64_t address, uint64_t size)
{
	add_range(c, address, size, NULL);
}

void kfd_core_add_copy(struct kfd_core *c, uint64_t address, uint64_t size, uint8_t *data)
{
	uint64_t begin = address, end = size <= UINT64_MAX - address ? address + size : address;

	while (begin < end) {
		uint64_t stop = free_until(c, begin, end);
		struct kfd_core_piece *p = stop > begin ? add_piece(c, begin, stop) : NULL;

		if (stop > begin && !p)
			return;
		if (p)
			p->data = data + (begin - address);
		begin = p ? stop : taken_until(c, begin);
	}
}

/* ------------------------------------------------------------------ room --------------------- */

uint64_t kfd_core_likely_size(const struct kfd_core *c, uint64_t area, uint64_t size)
{
	struct kfdtrap_wave_header h;
	uint8_t bytes[KFDTRAP_WAVE_HEADER_SIZE];
	uint64_t last;

	if (memory_read(&c->k->t.memory, area, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
	    kfdtrap_wave_header_parse(bytes, size, &h) != KFDTRAP_WAVE_OK)
		return size;
	last = (uint64_t)h.control_stack_size + h.wave_state_size;
	/* The kernel writes the offsets when it suspends the queue, even if that has no waves. */
	if (!last)
		return h.wave_state_offset ? 0 : size;
	return last + last / 4 > size ? size : page_up(last + last / 4);
}

/* Compute how much room fits everything, and how much is likely to be enough. */
static void room_for(const struct kfd_core *c, const struct target_waves_from *from,
		     uint64_t *ret_all, uint64_t *ret_likely)
{
	*ret_all = *ret_likely = 0;
	for (size_t i = 0; i < from->n_queues && *ret_all < KFD_CORE_COPIED_MAX; i++) {
		const struct rpc_queue *q = &from->queues[i];
		uint64_t dies = 1, rest = q->ring_bytes <= RING_MAX ? page_up(q->ring_bytes) : 0;

		for (size_t d = 0; d < from->n_devices; d++)
			if (from->devices[d].rpc.gpu_id == q->gpu_id)
				dies = device_dies(&from->devices[d]);
		rest += (dies + 1) * 4 * page_bytes();
		*ret_all += dies * page_up(q->save_area_bytes) + rest +
			    PACKETS_MAX * (page_up(KERNARG_BYTES) + page_bytes());
		*ret_likely += rest;
		for (uint64_t d = 0; d < dies; d++) {
			uint64_t size = kfd_core_likely_size(c, q->save_area + d * q->save_area_bytes,
							     q->save_area_bytes);

			/* A queue that had no waves may have any number of them now. */
			*ret_likely += size ? size : q->save_area_bytes;
		}
	}
	if (*ret_all > KFD_CORE_COPIED_MAX)
		*ret_all = KFD_CORE_COPIED_MAX;
}

/* Let the kernel provide zeroed pages now, so that the copying does not wait for them. */
static void make_ready(void *ctx, size_t i)
{
	const struct kfd_core *c = ctx;
	uint64_t at = i * READY_BYTES, left = c->store_size - at;

	/* Pages that are missing cost time later, but nothing else. */
	if (clock_now_ns() >= c->deadline_ns)
		return;
	if (left > READY_BYTES)
		left = READY_BYTES;
	if (madvise(c->store + at, left, MADV_POPULATE_WRITE) == 0)
		return;
	for (uint64_t page = 0; page < left; page += page_bytes())
		((volatile uint8_t *)c->store)[at + page] = 0;
}

void kfd_core_make_room(struct kfd_core *c, const struct target_waves_from *from)
{
	uint64_t size, ready;

	room_for(c, from, &size, &ready);
	if (!c->k->pool)
		c->k->pool = thread_pool_create(SIZE_MAX);
	/* The sandbox bounds the address space, so a smaller room has to do where this fails. */
	for (; size > page_bytes(); size = page_up(size / 2)) {
		c->store = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (c->store != MAP_FAILED)
			break;
		c->store = NULL;
	}
	if (!c->store)
		return;
	c->store_size = size;
	/* Large pages mean fewer page faults; a kernel without them refuses, which does no harm. */
	madvise(c->store, size, MADV_HUGEPAGE);
	ready = ready < READY_MAX ? ready : READY_MAX;
	ready = ready < size ? ready : size;
	c->deadline_ns = clock_deadline_ms(READY_MS);
	thread_pool_run(c->k->pool, make_ready, c, (ready + READY_BYTES - 1) / READY_BYTES);
}

void kfd_core_trim(struct kfd_core *c)
{
	free(c->jobs);
	c->jobs = NULL;
	c->n_jobs = c->jobs_capacity = 0;
	if (c->store && c->store_used < c->store_size)
		munmap(c->store + c->store_used, c->store_size - c->store_used);
	if (!c->store_used)
		c->store = NULL;
	c->store_size = c->store_used;
}

/* ------------------------------------------------------------------ copying ------------------ */

static bool add_jobs(struct kfd_core *c, const struct kfd_core_piece *p)
{
	size_t n = (p->size + JOB_BYTES - 1) / JOB_BYTES;

	if (vec_reserve(&c->jobs, c->n_jobs, n, &c->jobs_capacity, sizeof(*c->jobs)) < 0)
		return false;
	for (uint64_t at = 0; at < p->size; at += JOB_BYTES)
		c->jobs[c->n_jobs++] = (struct kfd_core_job){
			.piece = (size_t)(p - c->pieces),
			.offset = at,
			.size = p->size - at < JOB_BYTES ? (size_t)(p->size - at) : JOB_BYTES,
		};
	return true;
}

/* Give the newest piece a place in the room and jobs, or take it out of the core again. */
static void want_copy(struct kfd_core *c, struct kfd_core_piece *p)
{
	if (p->size > c->store_size - c->store_used) {
		c->too_much = true;
		c->n_pieces--;
		return;
	}
	if (!add_jobs(c, p)) {
		c->no_memory = true;
		c->n_pieces--;
		return;
	}
	p->data = c->store + c->store_used;
	c->store_used += p->size;
}

/* Copy one job, on any thread of the pool.  A page that is not readable ends the copy of a job. */
static void copy_job(void *ctx, size_t i)
{
	struct kfd_core *c = ctx;
	struct kfd_core_job *j = &c->jobs[i];
	const struct kfd_core_piece *p = &c->pieces[j->piece];
	struct memory_piece m = { .address = p->address + j->offset, .buf = p->data + j->offset,
				  .size = (uint32_t)j->size };
	ssize_t n;

	if (clock_now_ns() >= c->deadline_ns) {
		__atomic_store_n(&c->late, true, __ATOMIC_RELAXED);
		return;
	}
	memory_read_pieces(&c->k->t.memory, &m, 1);
	n = m.ok ? (ssize_t)j->size : memory_read(&c->k->t.memory, m.address, m.buf, j->size);
	j->done = n > 0 ? (size_t)n : 0;
}

/* Cut each piece off where the first of its jobs did not come to an end. */
static void settle(struct kfd_core *c, size_t first_piece)
{
	size_t kept = first_piece, job = 0;

	for (size_t i = first_piece; i < c->n_pieces; i++) {
		struct kfd_core_piece *p = &c->pieces[i];
		uint64_t size = 0;
		bool whole = true;

		for (; job < c->n_jobs && c->jobs[job].piece == i; job++) {
			size += whole ? c->jobs[job].done : 0;
			whole = whole && c->jobs[job].done == c->jobs[job].size;
		}
		p->size = page_down(size);
		if (p->size)
			c->pieces[kept++] = *p;
	}
	c->n_pieces = kept;
	c->n_jobs = 0;
}

static void want_area(struct kfd_core *c, const struct save_area *a)
{
	const struct kfdtrap_wave_header *h = &a->header;

	if (a->state == SAVE_AREA_NOT_READ || a->state == SAVE_AREA_HEADER_UNREADABLE)
		return;
	add_range(c, a->address, KFDTRAP_WAVE_HEADER_SIZE, want_copy);
	/* Control stack and waves lie next to each other; a broken header may say anything. */
	if (h->wave_state_offset > h->control_stack_offset &&
	    h->wave_state_offset <= a->capture->queue->save_area_bytes)
		add_range(c, a->address + h->control_stack_offset,
			  h->wave_state_offset - h->control_stack_offset, want_copy);
}

static void want_arguments_of(struct kfd_core *c, const struct queue_capture *l, size_t *left)
{
	for (uint32_t i = 0; i < l->n_packets && *left; i++) {
		struct symbols_aql_packet p;
		uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];

		if (!queue_capture_packet(l, i, bytes) ||
		    symbols_aql_decode(bytes, sizeof(bytes), &p) < 0)
			continue;
		if (!p.kernel_object || !p.kernarg_address)
			continue;
		add_range(c, p.kernarg_address, KERNARG_BYTES, want_copy);
		--*left;
	}
}

/*
 * Copy the arguments of the dispatches that waves can come from: when a kernel ends, the program
 * that waits for it uses that memory again.  They come last and are limited, because the target
 * writes the packets, which must not take the room of the waves.  Arguments without room are read
 * when the queues run again, so too_much stays as it was.
 */
static void want_arguments(struct kfd_core *c, const struct wave_capture *w, uint32_t round)
{
	bool too_much = c->too_much;
	size_t left = ARGUMENTS_MAX;

	for (size_t i = 0; i < w->n_captures; i++)
		if (queue_capture_is_in(&w->captures[i], round) &&
		    w->captures[i].queue->type == RPC_QUEUE_TYPE_COMPUTE_AQL)
			want_arguments_of(c, &w->captures[i], &left);
	c->too_much = too_much;
}

static int by_address(const void *a, const void *b)
{
	const struct kfd_core_piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

void kfd_core_sort_pieces(struct kfd_core *c)
{
	if (c->n_pieces)
		qsort(c->pieces, c->n_pieces, sizeof(*c->pieces), by_address);
}

static const struct kfd_core_piece *find_piece(const struct kfd_core *c, uint64_t address)
{
	size_t begin = 0, end = c->n_pieces;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;
		const struct kfd_core_piece *p = &c->pieces[middle];

		if (address < p->address)
			end = middle;
		else if (address - p->address < p->size)
			return p;
		else
			begin = middle + 1;
	}
	return NULL;
}

/* Memory without a copy is read from the target itself. */
static ssize_t read_copies(const void *source, uint64_t address, void *buf, size_t size)
{
	const struct kfd_core *c = source;
	const struct kfd_core_piece *p = find_piece(c, address);

	if (!p || size > p->size - (address - p->address))
		return memory_read(&c->k->t.memory, address, buf, size);
	memcpy(buf, p->data + (address - p->address), size);
	return (ssize_t)size;
}

const struct memory *kfd_core_copy_round(struct wave_capture *w, uint32_t round)
{
	struct kfd_core *c = w->ctx;
	size_t first = c->n_pieces;

	for (size_t i = 0; i < w->n_captures; i++) {
		const struct rpc_queue *q = w->captures[i].queue;

		if (!queue_capture_is_in(&w->captures[i], round) ||
		    q->type != RPC_QUEUE_TYPE_COMPUTE_AQL)
			continue;
		add_range(c, q->read_pointer, sizeof(uint64_t), want_copy);
		add_range(c, q->write_pointer, sizeof(uint64_t), want_copy);
		if (q->ring_bytes <= RING_MAX)
			add_range(c, q->ring_base, q->ring_bytes, want_copy);
	}
	for (size_t i = 0; i < w->n_areas; i++)
		if (queue_capture_is_in(w->areas[i].capture, round))
			want_area(c, &w->areas[i]);
	want_arguments(c, w, round);
	c->deadline_ns = w->deadline_ns;
	if (c->shares_stop)
		c->deadline_ns -= w->from->max_stop_ms * NS_PER_MS / WAVES_PART;
	thread_pool_run(c->k->pool, copy_job, c, c->n_jobs);
	w->late = w->late || (c->late && !c->shares_stop);
	settle(c, first);
	kfd_core_sort_pieces(c);
	c->copies = (struct memory){ .fd = -1, .read = read_copies, .source = c };
	return &c->copies;
}
