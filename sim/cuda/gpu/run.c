/* SPDX-License-Identifier: MIT */
/*
 * Running, stopping, breakpoints, exceptions.  Warps move when they are looked at: how far, the
 * time tells.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define NS_PER_TICK UINT64_C(1000000)

/* Move a warp within a piece of code, whose end leads to its beginning; one outside of it stays. */
static void warp_advance(struct sim_warp *w, uint64_t code, uint64_t size, uint64_t n_instructions)
{
	uint64_t offset = w->pc - code;

	size = size / SIM_INSTRUCTION * SIM_INSTRUCTION;
	if (size && offset < size)
		w->pc = code + (offset + n_instructions % (size / SIM_INSTRUCTION) * SIM_INSTRUCTION) % size;
}

/* Move a warp in the loop of its grid, or else through its function. */
static void warp_run(struct sim_warp *w, uint64_t n_instructions)
{
	const struct sim_grid *g = w->grid;

	if (g->loop_size)
		warp_advance(w, g->loop_at, g->loop_size, n_instructions);
	else
		warp_advance(w, g->function->address, g->function->size, n_instructions);
}

/* Whether something keeps a grid from ending. */
static bool grid_is_stuck(struct sim_process *p, const struct sim_grid *g)
{
	const struct sim_device *d = &p->devices[g->dev];

	for (size_t i = 0; i < (size_t)d->n_sms * d->n_warps; i++)
		if (d->warps[i].grid == g && (d->warps[i].broken || d->warps[i].exception))
			return true;
	return false;
}

/*
 * End a grid and launch it anew as often as it has had time for: the same blocks on the same SMs, under
 * another id.  A debugger hears nothing of it, as with grids that the GPU launches.
 */
static void grid_repeat(struct sim_process *p, struct sim_grid *g)
{
	const struct sim_device *d = &p->devices[g->dev];
	uint64_t since = d->resumed_ns > g->launched_ns ? d->resumed_ns : g->launched_ns, n;

	g->ran_ns += p->sim->os->now_ns() - since;
	n = g->ran_ns / g->repeat_ns;
	if (!n || grid_is_stuck(p, g))
		return;
	g->ran_ns %= g->repeat_ns;
	g->id = p->next_grid + n - 1;
	p->next_grid += n;
	for (uint32_t sm = 0; sm < d->n_sms; sm++)
		for (uint32_t i = 0; i < d->n_warps; i++)
			if (sim_warp_at(p, g->dev, sm, i)->grid == g)
				sim_warp_touch(p, g->dev, sm, sim_warp_at(p, g->dev, sm, i));
}

/* Move the warps of a device by the time that it has run. */
static void device_advance(struct sim_process *p, uint32_t dev)
{
	struct sim_device *d = &p->devices[dev];
	uint64_t ticks = (p->sim->os->now_ns() - d->resumed_ns) / NS_PER_TICK;

	for (struct sim_grid *g = p->grids; g; g = g->next)
		if (g->dev == dev && g->repeat_ns)
			grid_repeat(p, g);
	for (uint32_t sm = 0; sm < d->n_sms; sm++)
		for (uint32_t i = 0; i < d->n_warps; i++) {
			struct sim_warp *w = sim_warp_at(p, dev, sm, i);

			if (!w->grid || !w->grid->progress || w->broken || w->exception)
				continue;
			/* However short the run was, something has happened. */
			warp_run(w, w->grid->progress * (ticks ? ticks : 1));
			sim_warp_touch(p, dev, sm, w);
		}
}

void sim_device_suspend(struct sim_process *p, uint32_t dev)
{
	if (p->devices[dev].suspended)
		return;
	if (!p->devices[dev].left)
		device_advance(p, dev);
	p->devices[dev].suspended = true;
	p->devices[dev].left = false;
}

void sim_device_leave(struct sim_process *p, uint32_t dev)
{
	p->devices[dev].left |= p->devices[dev].suspended;
	p->devices[dev].suspended = false;
}

/* Let warps leave their breakpoints, by executing what is there. */
static void device_leave_breakpoints(struct sim_process *p, uint32_t dev)
{
	struct sim_device *d = &p->devices[dev];

	for (uint32_t sm = 0; sm < d->n_sms; sm++)
		for (uint32_t i = 0; i < d->n_warps; i++) {
			struct sim_warp *w = sim_warp_at(p, dev, sm, i);

			if (!w->grid || !w->broken || w->exception)
				continue;
			w->broken = false;
			w->breakpoint = 0;
			w->pc += SIM_INSTRUCTION;
			sim_warp_touch(p, dev, sm, w);
		}
}

void sim_device_resume(struct sim_process *p, uint32_t dev)
{
	if (!p->devices[dev].suspended)
		return;
	device_leave_breakpoints(p, dev);
	p->devices[dev].suspended = false;
	p->devices[dev].resumed_ns = p->sim->os->now_ns();
}

bool sim_all_suspended(const struct sim_process *p)
{
	for (uint32_t i = 0; i < p->n_devices; i++)
		if (!p->devices[i].suspended)
			return false;
	return true;
}

void sim_stop(struct sim_process *p)
{
	uint64_t masks[2];

	if (!sim_events_wanted(p))
		return; /* Without a debugger the rest runs on. */
	for (uint32_t i = 0; i < p->n_devices; i++)
		sim_device_suspend(p, i);
	masks[0] = sim_devices_broken(p);
	masks[1] = sim_devices_faulted(p);
	if (p->release >= 1205 && p->capabilities & CUDBGABI_CAPABILITY_SUSPEND_EVENTS)
		sim_queue_push(&p->sync, CUDBGABI_EVENT_ALL_DEVICES_SUSPENDED, masks,
			       sizeof(masks));
	sim_events_announce(p, CUDBGABI_NO_TID);
}

int sim_raise(struct sim_process *p, const uint64_t at[3], uint32_t lanes, uint32_t exception,
	      uint64_t error_pc)
{
	struct sim_warp *w = sim_warp_at(p, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);

	if (!w->grid)
		return -ENOENT;
	w->exception = exception;
	w->exception_lanes = lanes & w->valid;
	w->error_pc = error_pc;
	w->error_pc_valid = error_pc != 0;
	w->broken = true;
	sim_warp_touch(p, (uint32_t)at[0], (uint32_t)at[1], w);
	sim_stop(p);
	return 0;
}

/* ---- breakpoints ---- */

/* Let all warps that move reach a breakpoint in their function. */
static bool breakpoint_hit(struct sim_process *p, const struct sim_breakpoint *b)
{
	struct sim_device *d = &p->devices[b->dev];
	bool hit = false;

	for (uint32_t sm = 0; sm < d->n_sms; sm++)
		for (uint32_t i = 0; i < d->n_warps; i++) {
			struct sim_warp *w = sim_warp_at(p, b->dev, sm, i);

			if (!w->grid || !w->grid->progress || w->broken ||
			    b->address - w->grid->function->address >= w->grid->function->size)
				continue;
			w->pc = b->address;
			w->broken = true;
			w->breakpoint = b->handle;
			sim_warp_touch(p, b->dev, sm, w);
			hit = true;
		}
	return hit;
}

void sim_run(struct sim_process *p)
{
	bool hit = false;

	for (struct sim_breakpoint *b = p->breakpoints; b; b = b->next)
		if (b->enabled && !p->devices[b->dev].suspended && !p->devices[b->dev].left)
			hit |= breakpoint_hit(p, b);
	if (hit)
		sim_stop(p);
}

int sim_step(struct sim_process *p, const uint64_t at[3], uint32_t n)
{
	struct sim_warp *w = sim_warp_at(p, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);

	if (w->exception)
		return -EBUSY;
	w->broken = false;
	w->breakpoint = 0;
	warp_advance(w, w->grid->function->address, w->grid->function->size, n);
	sim_warp_touch(p, (uint32_t)at[0], (uint32_t)at[1], w);
	return 0;
}

int sim_breakpoint_set(struct sim_process *p, uint32_t dev, uint64_t address, uint64_t *ret_handle)
{
	struct sim_module *m;
	struct sim_breakpoint *b;

	if (!sim_function_at(p, address, &m) || m->dev != dev)
		return -ENOENT;
	b = malloc(sizeof(*b));
	if (!b)
		return -ENOMEM;
	*b = (struct sim_breakpoint){ p->breakpoints, p->next_handle++, address, dev, true };
	p->breakpoints = b;
	*ret_handle = b->handle;
	return 0;
}

int sim_breakpoint_unset(struct sim_process *p, uint32_t dev, uint64_t address)
{
	for (struct sim_breakpoint **at = &p->breakpoints; *at; at = &(*at)->next) {
		struct sim_breakpoint *b = *at;

		if (b->dev != dev || b->address != address)
			continue;
		*at = b->next;
		free(b);
		return 0;
	}
	return -ENOENT;
}
