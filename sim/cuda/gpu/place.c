/* SPDX-License-Identifier: MIT */
/*
 * What the program does with its GPU: contexts, modules, launches.  Each tells the debugger, if one
 * listens.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#include "base/cleanup.h"

/* Modules begin at multiples of this address. */
#define CODE_GAP UINT64_C(0x100000)

/* ---- contexts ---- */

struct sim_context *sim_context_add(struct sim_process *p, uint32_t dev, uint32_t tid)
{
	struct sim_context *c = malloc(sizeof(*c)), **at = &p->contexts;

	if (!c)
		return NULL;
	*c = (struct sim_context){ NULL, p->next_handle, dev, tid };
	p->next_handle += 0x100;
	while (*at)
		at = &(*at)->next;
	*at = c;
	if (sim_events_wanted(p)) {
		event_context(&p->sync, CUDBGABI_EVENT_CTX_CREATE, c);
		if (!(p->capabilities & CUDBGABI_CAPABILITY_NO_CONTEXT_PUSH_POP_EVENTS))
			event_context(&p->sync, CUDBGABI_EVENT_CTX_PUSH, c);
		sim_events_announce(p, tid);
	}
	return c;
}

/* Find a context by its handle; NULL if there is none. */
static struct sim_context *context_find(struct sim_process *p, uint64_t handle)
{
	for (struct sim_context *c = p->contexts; c; c = c->next)
		if (c->handle == handle)
			return c;
	return NULL;
}

/* ---- modules ---- */

/* Free a module, also one that was not loaded to the end. */
static void module_free(struct sim_module *m)
{
	cubin_unload(m);
	free(m);
}

void sim_modules_free(struct sim_process *p)
{
	while (p->modules) {
		struct sim_module *m = p->modules;

		p->modules = m->next;
		module_free(m);
	}
}

/* Tell the debugger of a module, in one event or two. */
static void module_announce(struct sim_process *p, const struct sim_module *m,
			    const struct sim_context *c)
{
	if (!sim_events_wanted(p))
		return;
	event_module(&p->sync, CUDBGABI_EVENT_ELF_IMAGE_LOADED, m);
	if (p->capabilities & CUDBGABI_CAPABILITY_LAZY_FUNCTION_LOADING)
		event_functions(&p->sync, m);
	sim_events_announce(p, c->tid);
}

int sim_module_add(struct sim_process *p, uint64_t context, const void *image, size_t size,
		   bool system, struct sim_module **ret)
{
	struct sim_context *c = context_find(p, context);
	struct sim_module *m, **at = &p->modules;
	uint64_t end;
	int r;

	if (!c)
		return -ENOENT;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	r = cubin_load(image, size, p->next_code, m, &end);
	if (r) {
		module_free(m);
		return r;
	}
	m->handle = p->next_handle;
	m->image_handle = p->next_handle + 0x10;
	p->next_handle += 0x100;
	p->next_code = (end + CODE_GAP) & ~(CODE_GAP - 1);
	m->context = context;
	m->dev = c->dev;
	m->system = system;
	for (size_t i = 0; i < m->n_functions; i++) {
		m->functions[i].handle = p->next_handle;
		p->next_handle += 0x10;
	}
	while (*at)
		at = &(*at)->next;
	*at = m;
	module_announce(p, m, c);
	*ret = m;
	return 0;
}

/* End the grids that run functions of a module. */
static void module_grids_finish(struct sim_process *p, const struct sim_module *m)
{
	struct sim_grid *g = p->grids;

	while (g) {
		struct sim_grid *next = g->next;

		if (g->module == m)
			sim_grid_finish(p, g->id);
		g = next;
	}
}

int sim_module_remove(struct sim_process *p, uint64_t handle)
{
	for (struct sim_module **at = &p->modules; *at; at = &(*at)->next) {
		struct sim_module *m = *at;

		if (m->handle != handle)
			continue;
		/*
		 * Real handles are addresses, which an allocator gives out again: a debugger must
		 * not take a new module for an old one.
		 */
		if (p->next_handle == m->handle + 0x100 + 0x10 * m->n_functions)
			p->next_handle = m->handle;
		module_grids_finish(p, m);
		if (sim_events_wanted(p)) {
			event_module(&p->sync, CUDBGABI_EVENT_ELF_IMAGE_UNLOADED, m);
			sim_events_announce(p, CUDBGABI_NO_TID);
		}
		*at = m->next;
		module_free(m);
		return 0;
	}
	return -ENOENT;
}

/* Unload the modules of a context. */
static void context_modules_remove(struct sim_process *p, uint64_t context)
{
	struct sim_module *m = p->modules;

	while (m) {
		struct sim_module *next = m->next;

		if (m->context == context)
			sim_module_remove(p, m->handle);
		m = next;
	}
}

int sim_context_remove(struct sim_process *p, uint64_t handle)
{
	for (struct sim_context **at = &p->contexts; *at; at = &(*at)->next) {
		struct sim_context *c = *at;

		if (c->handle != handle)
			continue;
		context_modules_remove(p, handle);
		if (sim_events_wanted(p)) {
			event_context(&p->sync, CUDBGABI_EVENT_CTX_DESTROY, c);
			sim_events_announce(p, c->tid);
		}
		*at = c->next;
		free(c);
		return 0;
	}
	return -ENOENT;
}

struct sim_function *sim_function_find(struct sim_process *p, uint64_t handle, const char *name,
				       struct sim_module **ret_module)
{
	for (struct sim_module *m = p->modules; m; m = m->next)
		for (size_t i = 0; i < m->n_functions; i++) {
			struct sim_function *f = &m->functions[i];

			if (name ? strcmp(f->name, name) != 0 : f->handle != handle)
				continue;
			*ret_module = m;
			return f;
		}
	return NULL;
}

/* A device function lies inside its kernel: the smallest function counts. */
struct sim_function *sim_function_at(struct sim_process *p, uint64_t address,
				     struct sim_module **ret_module)
{
	struct sim_function *best = NULL;

	for (struct sim_module *m = p->modules; m; m = m->next)
		for (size_t i = 0; i < m->n_functions; i++) {
			struct sim_function *f = &m->functions[i];

			if (address < f->address || address - f->address >= f->size)
				continue;
			if (best && best->size <= f->size)
				continue;
			best = f;
			*ret_module = m;
		}
	return best;
}

/* ---- grids ---- */

struct sim_grid *sim_grid_find(struct sim_process *p, uint64_t id)
{
	for (struct sim_grid *g = p->grids; g; g = g->next)
		if (g->id == id)
			return g;
	return NULL;
}

/* The coordinates of the nth block. */
static struct sim_dim block_index(const struct sim_dim *grid, uint64_t n)
{
	return (struct sim_dim){ (uint32_t)(n % grid->x), (uint32_t)(n / grid->x % grid->y),
				 (uint32_t)(n / grid->x / grid->y) };
}

/* The coordinates of a block's cluster; zeros without clusters. */
static struct sim_dim cluster_index(const struct sim_grid *g, const struct sim_dim *block)
{
	if (!g->cluster.x)
		return (struct sim_dim){ 0 };
	return (struct sim_dim){ block->x / g->cluster.x, block->y / g->cluster.y,
				 block->z / g->cluster.z };
}

/* Make the nth warp of a block; the last one may have fewer lanes. */
static void warp_fill(struct sim_warp *w, struct sim_grid *g, uint64_t block, uint32_t n,
		      uint32_t threads)
{
	uint32_t left = threads - n * SIM_LANES;

	memset(w, 0, sizeof(*w));
	w->grid = g;
	w->block = block_index(&g->grid, block);
	w->cluster = cluster_index(g, &w->block);
	w->base_thread = n * SIM_LANES;
	w->valid = w->active = left >= SIM_LANES ? UINT32_MAX : (UINT32_C(1) << left) - 1;
	w->pc = w->idle_pc = g->function->address;
	w->changed = true;
}

/* Put a block on an SM, which must have room for all of its warps.  @return false without room. */
static bool block_place(struct sim_process *p, struct sim_grid *g, uint64_t block, uint32_t sm,
			uint32_t threads)
{
	struct sim_device *d = &p->devices[g->dev];
	uint32_t need = (threads + SIM_LANES - 1) / SIM_LANES, free_warps = 0, n = 0;

	for (uint32_t i = 0; i < d->n_warps; i++)
		free_warps += !sim_warp_at(p, g->dev, sm, i)->grid;
	if (free_warps < need)
		return false;
	for (uint32_t i = 0; i < d->n_warps && n < need; i++) {
		struct sim_warp *w = sim_warp_at(p, g->dev, sm, i);

		if (!w->grid)
			warp_fill(w, g, block, n++, threads);
	}
	d->sm_changed[sm] = true;
	return true;
}

/* Put blocks on one SM after the other until none has room.  @return how many were placed. */
static uint64_t blocks_place(struct sim_process *p, struct sim_grid *g, uint32_t first_sm)
{
	uint64_t n_blocks = (uint64_t)g->grid.x * g->grid.y * g->grid.z, placed = 0;
	uint32_t threads = g->block.x * g->block.y * g->block.z, n_sms = p->devices[g->dev].n_sms;
	uint32_t misses = 0, sm = first_sm % n_sms;

	while (placed < n_blocks && misses < n_sms) {
		if (block_place(p, g, placed, sm, threads)) {
			placed++;
			misses = 0;
		} else {
			misses++;
		}
		sm = (sm + 1) % n_sms;
	}
	return placed;
}

/* Whether an extent is one that the hardware allows. */
static bool dim_ok(const struct sim_dim *d, uint32_t max)
{
	return d->x && d->y && d->z && d->x <= max && d->y <= 65535 && d->z <= 65535;
}

int sim_grid_launch(struct sim_process *p, const struct sim_grid *model, uint32_t first_sm,
		    uint64_t *ret_id)
{
	struct sim_grid *g, **at = &p->grids;

	if (model->dev >= p->n_devices)
		return -ENODEV;
	if (!dim_ok(&model->grid, INT32_MAX) || !dim_ok(&model->block, 1024) ||
	    (uint64_t)model->block.x * model->block.y * model->block.z > 1024)
		return -EINVAL;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = *model;
	g->id = p->next_grid++;
	g->launched_ns = p->sim->os->now_ns();
	g->next = NULL;
	while (*at)
		at = &(*at)->next;
	*at = g;
	g->status = blocks_place(p, g, first_sm) ? CUDBGABI_GRID_STATUS_ACTIVE
						 : CUDBGABI_GRID_STATUS_PENDING;
	if (sim_events_wanted(p) && !p->launch_defer) {
		event_grid(&p->sync, CUDBGABI_EVENT_KERNEL_READY, g);
		sim_events_announce(p, g->tid);
	}
	*ret_id = g->id;
	return 0;
}

int sim_grid_place(struct sim_process *p, uint64_t id, uint64_t block, uint32_t sm)
{
	struct sim_grid *g = sim_grid_find(p, id);

	if (!g)
		return -ENOENT;
	if (block >= (uint64_t)g->grid.x * g->grid.y * g->grid.z || sm >= p->devices[g->dev].n_sms)
		return -EINVAL;
	if (!block_place(p, g, block, sm, g->block.x * g->block.y * g->block.z))
		return -EBUSY;
	g->status = CUDBGABI_GRID_STATUS_ACTIVE;
	return 0;
}

int sim_grid_finish(struct sim_process *p, uint64_t id)
{
	struct sim_grid **at = &p->grids, *g;
	struct sim_device *d;

	while (*at && (*at)->id != id)
		at = &(*at)->next;
	g = *at;
	if (!g)
		return -ENOENT;
	d = &p->devices[g->dev];
	for (uint32_t sm = 0; sm < d->n_sms; sm++)
		for (uint32_t i = 0; i < d->n_warps; i++) {
			struct sim_warp *w = sim_warp_at(p, g->dev, sm, i);

			if (w->grid != g)
				continue;
			memset(w, 0, sizeof(*w));
			sim_warp_touch(p, g->dev, sm, w);
		}
	if (sim_events_wanted(p)) {
		event_grid(&p->async, CUDBGABI_EVENT_KERNEL_FINISHED, g);
		sim_events_announce(p, g->tid);
	}
	*at = g->next;
	free(g);
	return 0;
}
