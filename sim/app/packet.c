/* SPDX-License-Identifier: MIT */
/* Packets that a script writes one by one, and the signals that they wait for and give. */
#include "app.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of an AQL packet, and places in it (HSA, Platform System Architecture, 2.9). */
#define PACKET_SIZE   64u
#define AT_SIGNALS    8u
#define AT_VALUE      16u
#define AT_MASK	      24u
#define AT_CONDITION  32u
#define AT_COMPLETION 56u
#define BARRIER_BIT   0x100u
#define FORMAT_VALUE  0x20000u

/* A signal, as amd_hsa_signal.h of ROCr has it. */
struct app_signal {
	int64_t kind, value;
	uint64_t mailbox, event, words[4];
	struct app_signal *next;
	char name[32];
};

static struct app_signal *find(const struct app *a, const char *name)
{
	struct app_signal *s = a->signals;

	while (s && strcmp(s->name, name))
		s = s->next;
	return s;
}

int device_signal_set(struct app *a, const char *name, int64_t value)
{
	struct app_signal *s = find(a, name);

	if (!s) {
		s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);
		if (!s)
			return -ENOMEM;
		memset(s, 0, sizeof(*s));
		s->kind = 1;
		strncpy(s->name, name, sizeof(s->name) - 1);
		s->next = a->signals;
		a->signals = s;
	}
	__atomic_store_n(&s->value, value, __ATOMIC_RELEASE);
	return 0;
}

int device_signal_event(struct app *a, const char *name, uint32_t *ret_event)
{
	struct app_signal *s = find(a, name);
	int r = !s ? -ENOENT : s->event ? 0 : device_event_create(a, ret_event);

	if (r)
		return r;
	if (!s->event) {
		/* It would be a slot of the driver's page of events. */
		s->mailbox = (uint64_t)(uintptr_t)s + offsetof(struct app_signal, words);
		s->event = *ret_event;
	}
	*ret_event = (uint32_t)s->event;
	return 0;
}

int device_signal_find(const struct app *a, const char *name, uint64_t *ret)
{
	struct app_signal *s = find(a, name);

	*ret = (uint64_t)(uintptr_t)s;
	return s ? 0 : -ENOENT;
}

static struct simapp_queue *find_queue(struct app *a, uint32_t id)
{
	for (uint32_t i = 0; i < a->process.status->n_queues; i++)
		if (a->process.status->queues[i].alive && a->process.status->queues[i].queue_id == id)
			return &a->process.status->queues[i];
	return NULL;
}

/* The header comes last, as a runtime publishes it. */
static void write_body(uint8_t *to, const struct app_packet *p)
{
	memset(to + 4, 0, PACKET_SIZE - 4);
	memcpy(to + AT_SIGNALS, p->signals, sizeof(p->signals));
	if (p->kind == APP_PACKET_VALUE) {
		memcpy(to + AT_VALUE, &p->value, sizeof(p->value));
		memcpy(to + AT_MASK, &p->mask, sizeof(p->mask));
		memcpy(to + AT_CONDITION, &p->condition, sizeof(p->condition));
	}
}

int device_packet_write(struct app *a, uint32_t id, uint64_t at, const struct app_packet *p)
{
	static const uint32_t heads[] = { [APP_PACKET_INVALID] = 1, [APP_PACKET_KERNEL] = 2, [APP_PACKET_AND] = 3,
					  [APP_PACKET_OR] = 5, [APP_PACKET_VALUE] = FORMAT_VALUE };
	uint32_t head = heads[p->kind] | (p->barrier ? BARRIER_BIT : 0);
	struct simapp_queue *q = find_queue(a, id);
	uint8_t *to;

	if (!q || !q->ring_size)
		return -ENOENT;
	to = (uint8_t *)(uintptr_t)q->ring + at % (q->ring_size / PACKET_SIZE) * PACKET_SIZE;
	if (p->kind == APP_PACKET_KERNEL)
		/* The dimensions of a kernel stay. */
		head |= (uint32_t)to[2] << 16 | (uint32_t)to[3] << 24;
	else
		write_body(to, p);
	memcpy(to + AT_COMPLETION, &p->completion, sizeof(p->completion));
	__atomic_store_n((uint32_t *)(void *)to, head, __ATOMIC_RELEASE);
	return 0;
}

int device_queue_pending(struct app *a, uint32_t id, uint64_t n)
{
	struct simapp_queue *q = find_queue(a, id);

	if (!q)
		return -ENOENT;
	*(volatile uint64_t *)(uintptr_t)q->write_index_addr = *(volatile uint64_t *)(uintptr_t)q->read_index_addr + n;
	return 0;
}
