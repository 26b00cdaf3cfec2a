/* SPDX-License-Identifier: MIT */
/* The life of the simulated driver: GPUs, processes, files, and what time brings. */
#include "sim.h"
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Time between two looks at whether processes still have their address space. */
#define CHECK_INTERVAL_NS UINT64_C(20000000)
/* More processes than this are a crowd: between two looks at them passes as many times as long as one takes. */
#define CROWD	   64u
#define CROWD_REST 64u

void sim_init(struct sim *s, const struct sim_os *os, const struct kernel_profile *kernel)
{
	memset(s, 0, sizeof(*s));
	s->os = os;
	s->kernel = kernel;
	s->process_bound = kernel->process_bound;
	s->enable_unwinds = kernel->enable_unwinds;
	s->progress_ms = 5;
	/* Address-space ids begin where the driver's do. */
	s->next_pasid = 0x8000;
	TAILQ_INIT(&s->processes);
	TAILQ_INIT(&s->pending);
	TAILQ_INIT(&s->injections);
}

int sim_gpu_add(struct sim *s, const struct gpu_profile *profile)
{
	struct sim_gpu *g;
	uint32_t i = (uint32_t)s->n_gpus, id;

	if (s->n_gpus == SIM_GPUS_MAX)
		return -ENOSPC;
	g = &s->gpus[i];
	g->profile = profile;
	/* Any 16-bit number but zero that no other GPU has will do. */
	id = (0x1f35u + i * 0x2c91u + profile->device_id) & 0xffff;
	while (!id || sim_gpu_find(s, id))
		id = (id + 0x101u) & 0xffff;
	g->gpu_id = id;
	s->n_gpus++;
	g->node = i + 1;
	g->location_id = (3 + i) << 8;
	g->drm_minor = 128 + i;
	return 0;
}

struct sim_gpu *sim_gpu_find(struct sim *s, uint32_t gpu_id)
{
	for (size_t i = 0; i < s->n_gpus; i++)
		if (s->gpus[i].gpu_id == gpu_id)
			return &s->gpus[i];
	return NULL;
}

struct sim_process *sim_process_find(struct sim *s, int tgid)
{
	struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (p->tgid == tgid && !p->gone && p->context == SIM_CONTEXT_PRIMARY)
			return p;
	/* To the driver, processes are address spaces. */
	TAILQ_FOREACH(p, &s->processes, link)
		if (!p->gone && p->context == SIM_CONTEXT_PRIMARY && s->os->shares_memory(p->tgid, tgid))
			return p;
	return NULL;
}

struct sim_process *sim_context_find(struct sim *s, uint32_t pasid)
{
	struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (p->pasid == pasid && !p->gone)
			return p;
	return NULL;
}

/* Make a context of a process, which takes a grip on the present address space. */
static struct sim_process *process_new(struct sim *s, int tgid, uint16_t context, int *ret_error)
{
	struct sim_process *p = calloc(1, sizeof(*p));

	if (!p) {
		*ret_error = -ENOMEM;
		return NULL;
	}
	p->hold = SIM_HOLD_NULL;
	p->dbg_fd = -1;
	p->tgid = tgid;
	p->context = context;
	*ret_error = s->os->hold(tgid, &p->hold);
	if (*ret_error) {
		free(p);
		return NULL;
	}
	p->pasid = s->next_pasid++;
	p->next_event = 1;
	TAILQ_INIT(&p->queues);
	TAILQ_INIT(&p->events);
	TAILQ_INIT(&p->memory);
	p->n_devices = s->n_gpus;
	for (size_t i = 0; i < s->n_gpus; i++)
		p->devices[i].gpu = &s->gpus[i];
	TAILQ_INSERT_TAIL(&s->processes, p, link);
	if (s->on_process)
		s->on_process(s->on_process_data, p, true);
	return p;
}

/* While any GPU is being reset, the device cannot be opened. */
static bool gpu_in_reset(const struct sim *s)
{
	for (size_t i = 0; i < s->n_gpus; i++)
		if (s->gpus[i].resetting)
			return true;
	return false;
}

struct sim_process *sim_process_create(struct sim *s, int tgid, int *ret_error)
{
	if ((s->kernel->contexts && !s->n_gpus) || gpu_in_reset(s)) {
		*ret_error = -EINVAL;
		return NULL;
	}
	return process_new(s, tgid, SIM_CONTEXT_PRIMARY, ret_error);
}

struct sim_device *sim_device_find(struct sim_process *p, uint32_t gpu_id)
{
	for (size_t i = 0; i < p->n_devices; i++)
		if (p->devices[i].gpu->gpu_id == gpu_id)
			return &p->devices[i];
	return NULL;
}

struct sim_queue *sim_queue_find(struct sim_process *p, uint32_t id)
{
	struct sim_queue *q;

	TAILQ_FOREACH(q, &p->queues, link)
		if (q->id == id)
			return q;
	return NULL;
}

/* A process that has gone stays as long as files are open: their calls must fail, not crash. */
static void process_free_if_unused(struct sim *s, struct sim_process *p)
{
	if (!p->gone || p->n_files)
		return;
	TAILQ_REMOVE(&s->processes, p, link);
	free(p);
}

/* End the sessions of a debugger that has gone, as far as it counted them. */
static void forget_debugger(struct sim *s, struct sim_process *debugger)
{
	struct sim_process *t;

	TAILQ_FOREACH(t, &s->processes, link) {
		if (t->debugger != debugger)
			continue;
		if (t->debugged && !t->gone && debugger->n_debugging)
			sim_trap_disable(s, t);
		/*
		 * Here the driver keeps a pointer to what it has freed, and may write through it.
		 */
		t->debugger = NULL;
	}
}

/* The address space ended: do what the driver's notifier does. */
static void process_end(struct sim *s, struct sim_process *p)
{
	p->gone = true;
	sim_call_process_gone(s, p);
	forget_debugger(s, p);
	if (p->debugged) {
		sim_trap_deactivate(s, p);
		p->debugged = false;
	}
	p->debugger = NULL;
	if (p->dbg_fd >= 0)
		s->os->fd_close(p->dbg_fd);
	p->dbg_fd = -1;
	sim_queues_free(s, p);
	sim_events_free(p);
	sim_memory_end(s, p);
	if (s->on_process)
		s->on_process(s->on_process_data, p, false);
	s->os->release(&p->hold);
	process_free_if_unused(s, p);
}

/* @return whether it has ended; then it may be freed, and others with it. */
static bool end_if_over(struct sim *s, struct sim_process *p)
{
	if (p->gone || s->os->holds(&p->hold))
		return false;
	process_end(s, p);
	return true;
}

void sim_check_processes(struct sim *s)
{
	const uint64_t round = ++s->check_round;
	struct sim_process *p, *next;

	for (p = TAILQ_FIRST(&s->processes); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->checked == round)
			continue;
		p->checked = round;
		/* Ending one may complete calls and free others: start over, with those that were not looked at yet. */
		if (end_if_over(s, p))
			next = TAILQ_FIRST(&s->processes);
	}
}

void sim_check_process(struct sim *s, int pidfd)
{
	struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (!p->gone && p->hold.pidfd == pidfd) {
			end_if_over(s, p);
			return;
		}
}

void sim_check_context(struct sim *s, struct sim_process *p)
{
	if (p)
		end_if_over(s, p);
}

void sim_check_target(struct sim *s, int tgid)
{
	struct sim_process *p;

	do
		p = sim_process_find(s, tgid);
	while (p && end_if_over(s, p));
	if (p)
		sim_check_context(s, p->debugger);
}

/* Of those with that number: none that has ended is to be taken for the one that has the number now. */
static void check_number(struct sim *s, int tgid)
{
	struct sim_process *p, *next;

	for (p = TAILQ_FIRST(&s->processes); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->tgid == tgid && end_if_over(s, p))
			next = TAILQ_FIRST(&s->processes);
	}
}

void sim_check_crowd(struct sim *s)
{
	const uint64_t begin = s->os->now_ns();
	uint32_t n = 0;
	struct sim_process *p;

	if (begin < s->crowd_until_ns)
		return;
	sim_check_processes(s);
	TAILQ_FOREACH(p, &s->processes, link)
		n++;
	s->crowd_until_ns = n <= CROWD ? 0 : s->os->now_ns() + CROWD_REST * (s->os->now_ns() - begin);
}

int sim_open(struct sim *s, int tgid, struct sim_file *ret_file)
{
	struct sim_process *p;
	int r = -EINVAL;

	sim_check_crowd(s);
	check_number(s, tgid);
	if ((s->kernel->contexts && !s->n_gpus) || gpu_in_reset(s))
		return -EINVAL;
	p = sim_process_find(s, tgid);
	if (!p)
		p = sim_process_create(s, tgid, &r);
	if (!p)
		return r;
	p->n_files++;
	/* Whoever shares the memory of another may open the device, and do nothing with it. */
	*ret_file = (struct sim_file){ .process = p, .tgid = p->tgid };
	return 0;
}

void sim_close(struct sim *s, struct sim_file *file)
{
	struct sim_process *p = file->process;

	if (!p)
		return;
	file->process = NULL;
	p->n_files--;
	/* A secondary context lives as long as its file, the primary as the address space. */
	if (p->context != SIM_CONTEXT_PRIMARY && !p->gone && !p->n_files)
		process_end(s, p);
	else if (!end_if_over(s, p))
		process_free_if_unused(s, p);
	sim_check_crowd(s);
}

static bool has_context(struct sim *s, int tgid, uint16_t context)
{
	struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (p->tgid == tgid && !p->gone && p->context == context)
			return true;
	return false;
}

int sim_context_create(struct sim *s, struct sim_call *call)
{
	struct sim_process *p, *old = call->file->process;
	uint16_t context = 0;
	int r;

	if (old->context != SIM_CONTEXT_PRIMARY)
		return -EINVAL;
	/* The kernel gives them the lowest number that is free. */
	while (context < SIM_CONTEXT_PRIMARY && has_context(s, old->tgid, context))
		context++;
	if (context == SIM_CONTEXT_PRIMARY)
		return -ENOSPC;
	p = process_new(s, old->tgid, context, &r);
	if (!p)
		return r;
	p->n_files = 1;
	call->file->process = p;
	old->n_files--;
	return 0;
}

void sim_interrupt_all(struct sim *s)
{
	struct sim_call *call;

	while ((call = TAILQ_FIRST(&s->pending))) {
		if (call->target && call->target->busy == call)
			call->target->busy = NULL;
		sim_call_finish(s, call, -EINTR);
	}
}

void sim_deinit(struct sim *s)
{
	struct sim_injection *i;
	struct sim_process *p;

	if (!s->os)
		return;
	while ((p = TAILQ_FIRST(&s->processes))) {
		p->n_files = 0;
		if (p->gone) {
			TAILQ_REMOVE(&s->processes, p, link);
			free(p);
		} else {
			process_end(s, p);
		}
	}
	while ((i = TAILQ_FIRST(&s->injections))) {
		TAILQ_REMOVE(&s->injections, i, link);
		free(i);
	}
}

/* Whether any queue may have something to do. */
static bool has_running_queue(const struct sim *s)
{
	const struct sim_process *p;

	TAILQ_FOREACH(p, &s->processes, link)
		if (!p->gone && !TAILQ_EMPTY(&p->queues))
			return true;
	return false;
}

uint64_t sim_next_deadline(const struct sim *s)
{
	const struct sim_call *call;
	uint64_t next = UINT64_MAX;

	TAILQ_FOREACH(call, &s->pending, link)
		if (call->deadline_ns && call->deadline_ns < next)
			next = call->deadline_ns;
	if (!TAILQ_EMPTY(&s->processes) && s->next_check_ns < next)
		next = s->next_check_ns;
	if (s->progress_ms && has_running_queue(s) && s->next_progress_ns < next)
		next = s->next_progress_ns;
	return next;
}

void sim_tick(struct sim *s)
{
	uint64_t now = s->os->now_ns();

	if (now >= s->next_check_ns) {
		sim_check_crowd(s);
		s->next_check_ns = now + CHECK_INTERVAL_NS;
		if (s->next_check_ns < s->crowd_until_ns)
			s->next_check_ns = s->crowd_until_ns;
	}
	if (s->progress_ms && now >= s->next_progress_ns) {
		s->next_progress_ns = now + s->progress_ms * UINT64_C(1000000);
		sim_queues_progress(s);
	}
	sim_call_tick(s, now);
}
