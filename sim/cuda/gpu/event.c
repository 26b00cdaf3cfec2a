/* SPDX-License-Identifier: MIT */
/* Event queues.  Payloads are written field by field: 92 bytes, byte-packed, the kind first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* A payload that is being written. */
struct packer {
	uint8_t bytes[SIM_EVENT_SIZE];
	size_t size;
};

static void put32(struct packer *k, uint32_t v)
{
	memcpy(k->bytes + k->size, &v, 4);
	k->size += 4;
}

static void put64(struct packer *k, uint64_t v)
{
	memcpy(k->bytes + k->size, &v, 8);
	k->size += 8;
}

static void put_dim(struct packer *k, const struct sim_dim *d)
{
	put32(k, d->x);
	put32(k, d->y);
	put32(k, d->z);
}

void sim_queue_deinit(struct sim_queue *q)
{
	free(q->events);
	*q = (struct sim_queue){ 0 };
}

const uint8_t *sim_queue_peek(const struct sim_queue *q)
{
	return q->first < q->n ? q->events[q->first] : NULL;
}

void sim_queue_pop(struct sim_queue *q)
{
	if (++q->first < q->n)
		return;
	q->first = q->n = 0;
}

/* Double the room of a queue, up to a bound that no debugger should reach. */
static int queue_grow(struct sim_queue *q)
{
	size_t capacity = q->capacity ? q->capacity * 2 : 64;
	void *events;

	if (q->capacity >= SIM_EVENTS_MAX)
		return -ENOSPC;
	events = realloc(q->events, capacity * SIM_EVENT_SIZE);
	if (!events)
		return -ENOMEM;
	q->events = events;
	q->capacity = capacity;
	return 0;
}

int sim_queue_push(struct sim_queue *q, uint32_t kind, const void *payload, size_t size)
{
	uint8_t *e;

	if (q->n == q->capacity) {
		int r = queue_grow(q);

		if (r)
			return r;
	}
	e = q->events[q->n++];
	memset(e, 0, SIM_EVENT_SIZE);
	memcpy(e, &kind, 4);
	if (size)
		memcpy(e + 4, payload, size);
	return 0;
}

void event_context(struct sim_queue *q, uint32_t kind, const struct sim_context *c)
{
	struct packer k = { .size = 0 };

	put32(&k, c->dev);
	put32(&k, c->tid);
	put64(&k, c->handle);
	sim_queue_push(q, kind, k.bytes, k.size);
}

void event_module(struct sim_queue *q, uint32_t kind, const struct sim_module *m)
{
	struct packer k = { .size = 0 };

	put32(&k, m->dev);
	put64(&k, m->context);
	put64(&k, m->handle);
	put64(&k, m->size);
	put64(&k, m->image_handle);
	if (kind == CUDBGABI_EVENT_ELF_IMAGE_LOADED)
		put32(&k, m->system ? CUDBGABI_ELF_IMAGE_PROPERTIES_SYSTEM : 0);
	sim_queue_push(q, kind, k.bytes, k.size);
}

void event_functions(struct sim_queue *q, const struct sim_module *m)
{
	struct packer k = { .size = 0 };

	put32(&k, m->dev);
	put32(&k, (uint32_t)m->n_functions);
	put64(&k, m->context);
	put64(&k, m->handle);
	sim_queue_push(q, CUDBGABI_EVENT_FUNCTIONS_LOADED, k.bytes, k.size);
}

/* What follows device and thread in KERNEL_READY. */
static void grid_ready(struct packer *k, const struct sim_grid *g)
{
	put64(k, g->id);
	put64(k, g->context);
	put64(k, g->module->handle);
	put64(k, g->function->handle);
	put64(k, g->function->address);
	put_dim(k, &g->grid);
	put_dim(k, &g->block);
	put32(k, g->type);
	put64(k, g->parent);
	put32(k, g->origin);
}

/* What follows device and thread in KERNEL_FINISHED. */
static void grid_finished(struct packer *k, const struct sim_grid *g)
{
	put64(k, g->context);
	put64(k, g->module->handle);
	put64(k, g->function->handle);
	put64(k, g->function->address);
	put64(k, g->id);
}

void event_grid(struct sim_queue *q, uint32_t kind, const struct sim_grid *g)
{
	struct packer k = { .size = 0 };

	put32(&k, g->dev);
	put32(&k, g->tid);
	if (kind == CUDBGABI_EVENT_KERNEL_READY)
		grid_ready(&k, g);
	else
		grid_finished(&k, g);
	sim_queue_push(q, kind, k.bytes, k.size);
}

bool sim_events_wanted(const struct sim_process *p)
{
	/* A launched program keeps events for the debugger that is still to come. */
	bool listening = p->phase == PHASE_ATTACHED || (p->launched && p->phase == PHASE_ENGINE);

	return listening && p->ipc_flag && !p->broken_api;
}

void sim_events_announce(struct sim_process *p, uint32_t tid)
{
	if (sim_queue_peek(&p->sync))
		p->owes_ack = true;
	p->sim->os->notify(p, tid, 0);
}
