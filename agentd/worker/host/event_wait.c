/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/event_wait.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "symbols/aql.h"

/* AMDKFD_IOC_WAIT_EVENTS, its arguments, and what they point to (linux/kfd_ioctl.h). */
#define WAIT_EVENTS	 UINT64_C(0xc0184b0c)
#define ARGUMENTS_SIZE	 16
#define ARGUMENTS_EVENTS 0
#define ARGUMENTS_COUNT	 8
#define ARGUMENTS_ALL	 12
#define EVENT_SIZE	 48
#define EVENT_ID	 40
/* The driver itself knows no more events in a process (KFDABI_SIGNAL_EVENT_LIMIT). */
#define EVENTS_MAX 4096

/* The completion signal of each kind of packet, AMD's own ones included (hsa.h, hsa_ven_amd_aqlprofile.h). */
#define PACKET_SIGNAL 56
/* amd_signal_t (amd_hsa_signal.h of ROCr); of this kind are all that programs make. */
#define SIGNAL_SIZE	64
#define SIGNAL_KIND	0
#define SIGNAL_USER	1
#define SIGNAL_VALUE	8
#define SIGNAL_MAILBOX	16
#define SIGNAL_EVENT	24
/* Reads of one system call. */
#define BATCH 256

bool event_wait_is_request(uint64_t request)
{
	return request == WAIT_EVENTS;
}

int event_wait_read(struct hoststack_memory *m, uint64_t arguments, struct event_wait *ret)
{
	uint8_t bytes[ARGUMENTS_SIZE], event[EVENT_SIZE];
	struct event_wait w = { 0 };
	int r = hoststack_read(m, arguments, bytes, sizeof(bytes));
	uint64_t at;

	if (r < 0)
		return r;
	at = hoststack_number(bytes, ARGUMENTS_EVENTS, 8);
	w.asked = (uint32_t)hoststack_number(bytes, ARGUMENTS_COUNT, 4);
	w.all = hoststack_number(bytes, ARGUMENTS_ALL, 4) != 0;
	if (!w.asked || w.asked > EVENTS_MAX)
		return -EINVAL;
	for (; w.n < w.asked && w.n < EVENT_WAIT_MAX && r == 0; w.n++) {
		r = hoststack_read(m, at + (uint64_t)w.n * EVENT_SIZE, event, sizeof(event));
		w.events[w.n] = (uint32_t)hoststack_number(event, EVENT_ID, 4);
	}
	if (r == 0)
		*ret = w;
	return r;
}

bool event_wait_is_service(const struct event_wait *w)
{
	return w->asked > 1 && !w->all;
}

/* ------------------------------------------------------------------ packets ------------------ */

static int add_packet(struct event_packets *p, const struct event_packet *packet)
{
	if (vec_reserve(&p->list, p->n, 1, &p->capacity, sizeof(*p->list)) < 0)
		return -ENOMEM;
	p->list[p->n++] = *packet;
	return 0;
}

/* What the program has written there may be no signal at all. */
static int add_signals(struct event_packets *p, struct event_packet *packets, uint8_t (*signals)[SIGNAL_SIZE],
		       size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		packets[i].event = (uint32_t)hoststack_number(signals[i], SIGNAL_EVENT, 4);
		packets[i].value = (int64_t)hoststack_number(signals[i], SIGNAL_VALUE, 8);
		/* Without a mailbox nobody is woken by it. */
		if (hoststack_number(signals[i], SIGNAL_KIND, 8) == SIGNAL_USER &&
		    hoststack_number(signals[i], SIGNAL_MAILBOX, 8) && packets[i].event)
			r = add_packet(p, &packets[i]);
	}
	return r;
}

static int read_signals(struct hoststack_memory *m, struct event_packets *p, struct event_packet *packets, size_t n)
{
	uint8_t signals[BATCH][SIGNAL_SIZE];
	struct hoststack_piece pieces[BATCH];
	int r;

	for (size_t i = 0; i < n; i++)
		pieces[i] = (struct hoststack_piece){ packets[i].signal, signals[i], SIGNAL_SIZE };
	r = n ? hoststack_read_pieces(m, pieces, n) : 0;
	if (r == 0)
		return add_signals(p, packets, signals, n);
	if (hoststack_is_over(r))
		return r;
	/* One of them is not readable: the others are. */
	for (size_t i = 0; i < n; i++) {
		r = hoststack_read_pieces(m, &pieces[i], 1);
		if (r == 0)
			r = add_signals(p, &packets[i], &signals[i], 1);
		if (hoststack_is_over(r))
			return r;
	}
	return 0;
}

/* Up to BATCH packets from one position on. */
static int read_batch(struct hoststack_memory *m, const struct event_queue *q, uint64_t from, size_t n,
		      struct event_packets *p)
{
	const uint64_t slots = q->ring_bytes / SYMBOLS_AQL_PACKET_SIZE;
	struct event_packet packets[BATCH];
	struct hoststack_piece pieces[BATCH];
	size_t used = 0;
	int r;

	for (size_t i = 0; i < n; i++) {
		packets[i] = (struct event_packet){ q->queue_id, q->gpu_id, .dispatch = from + i };
		pieces[i] = (struct hoststack_piece){
			q->ring + (from + i) % slots * SYMBOLS_AQL_PACKET_SIZE + PACKET_SIGNAL,
			&packets[i].signal, sizeof(packets[i].signal)
		};
	}
	r = hoststack_read_pieces(m, pieces, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (packets[i].signal)
			packets[used++] = packets[i];
	return read_signals(m, p, packets, used);
}

int event_packets_read(struct hoststack_memory *m, const struct event_queue *q, struct event_packets *p)
{
	const uint64_t slots = q->ring_bytes / SYMBOLS_AQL_PACKET_SIZE;
	uint64_t begin, end;
	int r = hoststack_read_u64(m, q->read_index, &begin);

	if (r == 0)
		r = hoststack_read_u64(m, q->write_index, &end);
	if (r < 0)
		return r;
	if (!slots || (slots & (slots - 1)) || end < begin || end - begin > slots)
		return -EINVAL;
	if (end - begin > EVENT_PACKETS_MAX) {
		p->is_cut = true;
		end = begin + EVENT_PACKETS_MAX;
	}
	for (uint64_t n; begin < end && r == 0; begin += n) {
		n = end - begin < BATCH ? end - begin : BATCH;
		r = read_batch(m, q, begin, (size_t)n, p);
	}
	return r;
}

static bool has_event(const struct event_wait *w, uint32_t event)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->events[i] == event)
			return true;
	return false;
}

const struct event_packet *event_packets_find(const struct event_packets *p, const struct event_wait *w)
{
	for (size_t i = 0; i < p->n; i++)
		/* Of several events that are waited for together, one that is done keeps nobody. */
		if (has_event(w, p->list[i].event) && (w->asked == 1 || p->list[i].value > 0))
			return &p->list[i];
	return NULL;
}

void event_packets_deinit(struct event_packets *p)
{
	free(p->list);
	*p = (struct event_packets){ 0 };
}
