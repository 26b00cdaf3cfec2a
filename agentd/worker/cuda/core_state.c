/* SPDX-License-Identifier: MIT */
/* The rows of a core of a CUDA process, out of the debugger API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/cuda/core_write.h"
#include "base/clock.h"
#include "symbols/image.h"

#define BANKS_MAX      32u
/* Most bytes of a space whose length is not known; no chip has more for a block or a lane. */
#define SPACE_MAX  (256u << 10)
#define SPACE_STEP (16u << 10)
#define SPACE_UNIT 16u
#define STACK_POINTER 1u /* of the calling convention since sm_20 */
/* Offsets in constant bank 0 where code of sm_75 to sm_89 finds the windows; of sm_90 only the local one. */
#define SHARED_WINDOW 0x18u
#define LOCAL_WINDOW  0x20u
/* Most bytes that are compared there, and how often it is tried: each takes two calls while devices stand still. */
#define WINDOW_LOOK 64u
#define WINDOWS_MAX 16u
/* CUDBGGridStatus */
#define GRID_ACTIVE   2u
#define GRID_SLEEPING 3u
#define ORIGIN_CPU 0u
#define NOWHERE UINT32_MAX

/* ------------------------------------------------------------------ before the stop ---------- */

static void fill_device(const struct cuda_device *from, uint32_t id, struct cudacore_device *to)
{
	const struct cudbgshim_device *f = &from->facts;
	unsigned number = 0;

	sscanf(f->sm_type, "sm_%u", &number);
	to->name = from->d.name;
	to->type = f->chip;
	to->sm_type = f->sm_type;
	to->id = id;
	to->pci_bus = f->pci_bus;
	to->pci_device = f->pci_device;
	to->sm_count = f->n_sms;
	to->warps_per_sm = f->n_warps;
	to->lanes_per_warp = f->n_lanes;
	to->registers_per_lane = f->n_registers;
	to->predicates_per_lane = f->n_predicates;
	to->sm_major = number / 10;
	to->sm_minor = number % 10;
	to->instruction_bytes = number >= 70 ? 16 : 8;
	to->uniform_registers = f->n_uniform_registers;
	to->uniform_predicates = f->n_uniform_predicates;
}

static struct corefile_blob read_image(struct cuda_core *k, const struct cuda_module *m,
				       bool relocated)
{
	uint8_t *data = m->size && m->size <= SYMBOLS_IMAGE_BYTES_MAX ? cuda_core_copy(k, m->size) : NULL;

	if (!data ||
	    cudbgshim_get_elf_image(k->c->shim, m->dev, m->handle, relocated, data, m->size) < 0)
		return (struct corefile_blob){ 0 };
	return (struct corefile_blob){ .data = data, .size = m->size };
}

static int add_modules(struct cuda_core *k, uint32_t row, uint64_t context)
{
	const struct target_cuda *c = k->c;

	for (size_t i = 0; i < c->n_modules; i++) {
		struct cudacore_module *m;

		if (c->modules[i].context != context)
			continue;
		m = cudacore_add(&k->core, CUDACORE_MODULES, row);
		if (!m)
			return -ENOMEM;
		m->handle = c->modules[i].module;
		m->relocated = read_image(k, &c->modules[i], true);
		m->image = read_image(k, &c->modules[i], false);
		k->no_image += !m->relocated.size;
	}
	return 0;
}

static int add_contexts(struct cuda_core *k, uint32_t device)
{
	const struct target_cuda *c = k->c;
	int r = 0;

	for (size_t i = 0; i < c->n_contexts && r == 0; i++) {
		struct cudacore_context *x;

		if (c->contexts[i].dev != device)
			continue;
		x = cudacore_add(&k->core, CUDACORE_CONTEXTS, device);
		if (!x)
			return -ENOMEM;
		x->id = c->contexts[i].handle;
		x->device_row = device;
		r = add_modules(k, k->core.n[CUDACORE_CONTEXTS] - 1, x->id);
	}
	return r;
}

int cuda_core_add_devices(struct cuda_core *k)
{
	struct target_cuda *c = k->c;
	int r = 0;

	for (uint32_t dev = 0; dev < c->n_devices; dev++) {
		struct cudacore_device *d = cudacore_add(&k->core, CUDACORE_DEVICES, 0);

		if (!d)
			return -ENOMEM;
		fill_device(&c->devices[dev], dev, d);
	}
	for (uint32_t dev = 0; dev < c->n_devices && r == 0; dev++) {
		r = add_contexts(k, dev);
		for (uint32_t sm = 0; sm < c->devices[dev].facts.n_sms && r == 0; sm++) {
			struct cudacore_sm *row = cudacore_add(&k->core, CUDACORE_SMS, dev);

			if (row)
				row->id = sm;
			r = row ? 0 : -ENOMEM;
		}
	}
	return r;
}

/* ------------------------------------------------------------------ grids -------------------- */

/* Debuggers take no grid without its context and code. */
static bool has_code(const struct cudacore *c, uint32_t device, const struct cudbgshim_grid *g)
{
	const struct cudacore_range *contexts = &c->devices[device].contexts;

	for (uint32_t i = contexts->first; i < contexts->first + contexts->n; i++) {
		const struct cudacore_range *modules = &c->contexts[i].modules;

		for (uint32_t j = modules->first; c->contexts[i].id == g->context &&
						  j < modules->first + modules->n; j++)
			if (c->modules[j].handle == g->module && c->modules[j].relocated.size)
				return true;
	}
	return false;
}

static void copy_dim(uint32_t to[3], const struct cudbgshim_dim3 *from)
{
	to[0] = from->x;
	to[1] = from->y;
	to[2] = from->z;
}

static void fill_grid(struct cuda_core *k, uint32_t device, const struct cudbgshim_grid *g,
		      struct cudacore_grid *to)
{
	uint32_t status = 0;

	to->id = g->id;
	to->context_id = g->context;
	to->function = g->function;
	to->function_entry = g->entry;
	to->module_handle = g->module;
	to->kernel_type = g->type;
	/* Its parent is a grid without warps here, which debuggers would miss. */
	to->origin = ORIGIN_CPU;
	to->parent_id = g->parent;
	copy_dim(to->grid_dim, &g->grid_dim);
	copy_dim(to->block_dim, &g->block_dim);
	copy_dim(to->cluster_dim, &g->cluster_dim);
	copy_dim(to->preferred_cluster_dim, &g->preferred_cluster_dim);
	to->host_tid = g->tid == CUDBGSHIM_NO_TID ? 0 : g->tid;
	if (cudbgshim_get_grid_status(k->c->shim, device, g->id, &status) < 0 ||
	    (status != GRID_ACTIVE && status != GRID_SLEEPING))
		status = GRID_ACTIVE; /* it has warps */
	to->status = status;
}

/* The parameters alone, where the image of the kernel says which they are. */
static void add_params(struct cuda_core *k, const struct cudbgshim_place *at,
		       const struct cudbgshim_grid *g, struct cudacore_grid *to)
{
	const struct values_kernel *kernel = cuda_arguments_of(k->c, at->dev, g);
	uint8_t *bytes = kernel ? cuda_core_copy(k, kernel->size) : NULL;

	if (!bytes || !cuda_arguments_read(k->c, at, g->id, kernel, bytes))
		return;
	to->params = (struct corefile_blob){ .data = bytes, .size = kernel->size };
	to->params_offset = kernel->base;
}

/* Parameters of a kernel are in bank 0, at the addresses that they have in their own space. */
static void find_params(const struct cudacore *c, uint64_t bank, uint32_t size,
			struct cudacore_grid *g)
{
	for (uint32_t i = c->n_memory; i-- > 0;)
		if (c->memory[i].address == bank && c->memory[i].blob.size == size)
			g->params = c->memory[i].blob;
}

/* What a warp of it can tell. */
static void add_banks(struct cuda_core *k, const struct cudbgshim_place *at, uint32_t grid)
{
	uint64_t id = k->core.grids[grid].id, address;
	uint32_t size;

	for (uint32_t bank = 0; bank < BANKS_MAX; bank++) {
		struct cudacore_bank *b;

		if (cudbgshim_get_const_bank(k->c->shim, at, id, bank, &address, &size) < 0 ||
		    !size)
			continue;
		cuda_core_add_memory(k, address, size, at);
		if (bank == 0 && !k->core.grids[grid].params.size)
			find_params(&k->core, address, size, &k->core.grids[grid]);
		b = cudacore_add(&k->core, CUDACORE_BANKS, grid);
		if (b) {
			b->address = address;
			b->size = size;
			b->id = bank;
		}
		k->no_memory |= !b;
	}
}

/* @return its row, or NOWHERE for one that no debugger would take. */
static uint32_t find_grid(struct cuda_core *k, const struct cudbgshim_place *at, uint64_t id)
{
	const struct cudacore_range *known = &k->core.devices[at->dev].grids;
	struct cudbgshim_resources resources;
	struct cudacore_grid *row;
	struct cudbgshim_grid g;

	for (uint32_t i = known->first + known->n; i-- > known->first;)
		if (k->core.grids[i].id == id)
			return i;
	if (cudbgshim_get_grid(k->c->shim, at->dev, id, &g) < 0 || !has_code(&k->core, at->dev, &g))
		return NOWHERE;
	row = cudacore_add(&k->core, CUDACORE_GRIDS, at->dev);
	if (!row) {
		k->no_memory = true;
		return NOWHERE;
	}
	g.id = id;
	fill_grid(k, at->dev, &g, row);
	if (cudbgshim_read_resources(k->c->shim, at, &resources) == 0)
		row->n_registers = resources.n_registers;
	add_params(k, at, &g, row);
	add_banks(k, at, k->core.n[CUDACORE_GRIDS] - 1);
	return k->core.n[CUDACORE_GRIDS] - 1;
}

/* ------------------------------------------------------------------ warps and lanes ---------- */

static int add_lanes(struct cuda_core *k, const struct cuda_warp *w, uint32_t row,
		     const struct cudacore_grid *g)
{
	const struct cudbgshim_dim3 dim = { g->block_dim[0], g->block_dim[1], g->block_dim[2] };

	for (uint32_t left = w->lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left);
		struct cudbgshim_dim3 thread =
			cudbgshim_thread_of_lane(w->whole->base_thread, lane, dim);
		struct cudacore_lane *l = cudacore_add(&k->core, CUDACORE_LANES, row);

		if (!l)
			return -ENOMEM;
		l->number = lane;
		l->virtual_pc = w->pcs[lane];
		l->exception = w->exceptions[lane];
		copy_dim(l->thread, &thread);
	}
	return 0;
}

/* Add a warp to the block that was added last. */
static int add_warp(struct cuda_core *k, const struct cudbgshim_place *at, uint32_t grid)
{
	uint32_t block = k->core.n[CUDACORE_BLOCKS] - 1;
	struct cudacore_warp *to = cudacore_add(&k->core, CUDACORE_WARPS, block);
	struct cudbgshim_lanes lanes;
	struct cuda_warp w;

	if (!to)
		return -ENOMEM;
	cuda_warp_of(&k->c->devices[at->dev], at->sm, at->warp, &w);
	cuda_warp_ask_exceptions(k->c, &w, &lanes);
	to->id = at->warp;
	to->valid_lanes = w.whole->valid_lanes;
	to->active_lanes = w.whole->active_lanes;
	to->broken = w.broken;
	to->error_pc_valid = !!(w.whole->has & CUDBGSHIM_WARP_ERROR_PC);
	to->error_pc = w.whole->error_pc;
	to->syscall_lanes = w.whole->syscall_lanes;
	return add_lanes(k, &w, k->core.n[CUDACORE_WARPS] - 1, &k->core.grids[grid]);
}

static int add_block(struct cuda_core *k, const struct cudbgshim_warp *w, uint32_t sm)
{
	struct cudacore_block *b = cudacore_add(&k->core, CUDACORE_BLOCKS, sm);

	if (!b)
		return -ENOMEM;
	b->grid_id = w->grid_id;
	copy_dim(b->index, &w->block);
	copy_dim(b->cluster_index, &w->cluster_idx);
	copy_dim(b->cluster_dim, &w->cluster_dim);
	return 0;
}

static bool is_takeable(const struct cudbgshim_warp *w)
{
	return w->active_lanes && !(w->active_lanes & ~w->valid_lanes);
}

/* Warps of the block that the first of @p left belongs to.  @return 0, -ENOMEM. */
static int add_warps_of_block(struct cuda_core *k, const struct cudbgshim_state *s,
			      struct cudbgshim_place at, uint32_t sm_row, uint64_t *left)
{
	const struct cudbgshim_warp *warps = &s->warps[cudbgshim_state_index(s, at.sm, 0)];
	uint64_t block = cuda_warps_of_block(warps, *left);
	bool has_block = false;
	uint32_t grid;
	int r = 0;

	*left &= ~block;
	at.warp = (uint32_t)__builtin_ctzll(block);
	grid = find_grid(k, &at, warps[at.warp].grid_id);
	for (; block && r == 0; block &= block - 1) {
		at.warp = (uint32_t)__builtin_ctzll(block);
		if (grid == NOWHERE || !is_takeable(&warps[at.warp])) {
			k->left_out++;
			continue;
		}
		if (!has_block)
			r = add_block(k, &warps[at.warp], sm_row);
		has_block = true;
		if (r == 0)
			r = add_warp(k, &at, grid);
	}
	return r;
}

static void add_sm_exception(struct cuda_core *k, const struct cudbgshim_state *s, uint32_t dev,
			     uint32_t sm, struct cudacore_sm *row)
{
	bool has_error_pc = false;
	uint64_t error_pc = 0;
	uint32_t exception;

	if (!(s->exception_sms[sm / 64] >> sm % 64 & 1) ||
	    cudbgshim_read_sm_exception(k->c->shim, dev, sm, &exception, &error_pc, &has_error_pc) <
		    0)
		return;
	row->exception = exception;
	row->error_pc_valid = has_error_pc;
	row->error_pc = error_pc;
}

static int add_device(struct cuda_core *k, uint32_t dev)
{
	struct cuda_device *d = &k->c->devices[dev];
	const struct cudbgshim_state *s;
	int r = k->read >> dev & 1 ? 0 : cuda_read_state(k->c, d);

	if (r < 0)
		return r;
	s = d->state;
	for (uint32_t sm = 0; sm < s->n_sms && r == 0; sm++) {
		uint32_t row = k->core.devices[dev].sms.first + sm;
		uint64_t left = s->valid_warps[sm];

		add_sm_exception(k, s, dev, sm, &k->core.sms[row]);
		while (left && r == 0)
			r = add_warps_of_block(
				k, s, (struct cudbgshim_place){ .dev = dev, .sm = sm }, row, &left);
	}
	return r;
}

/* ------------------------------------------------------------------ registers ---------------- */

/* Offsets of code in its function: many lanes stand at few places. */
struct offsets {
	struct {
		uint64_t pc, offset;
		uint32_t dev;
	} known[64];
};

static uint64_t offset_of(struct cuda_core *k, const struct cudbgshim_place *at, uint64_t pc,
			  struct offsets *o)
{
	typeof(o->known[0]) *e = &o->known[pc / 16 % 64];

	if (e->pc != pc || e->dev != at->dev) {
		e->pc = pc;
		e->dev = at->dev;
		e->offset = 0;
		(void)cudbgshim_read_pc(k->c->shim, at, &e->offset);
	}
	return e->offset;
}

static struct corefile_blob words(struct cuda_core *k, const uint32_t *values, uint32_t n)
{
	uint32_t *to = n ? cuda_core_copy_words(k, n) : NULL;

	if (!to)
		return (struct corefile_blob){ 0 };
	memcpy(to, values, n * sizeof(*to));
	return (struct corefile_blob){ .data = to, .size = n * sizeof(*to) };
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void fill_frames(struct cuda_core *k, const struct cudbgshim_place *at, uint32_t lane)
{
	uint64_t addresses[CUDA_CALLERS_MAX];
	uint32_t depth, in_syscall;

	if (cudbgshim_read_call_stack(k->c->shim, at, addresses, CUDA_CALLERS_MAX, &depth,
				      &in_syscall) < 0)
		return;
	depth = least(depth, CUDA_CALLERS_MAX);
	for (uint32_t i = 0; i < depth; i++) {
		struct cudacore_frame *f = cudacore_add(&k->core, CUDACORE_FRAMES, lane);

		if (!f) {
			k->no_memory = true;
			return;
		}
		f->level = i;
		f->return_address = addresses[i];
	}
	k->core.lanes[lane].call_depth = depth;
	k->core.lanes[lane].syscall_depth = least(in_syscall, depth);
}

static bool read_space(struct cuda_core *k, enum cudbgshim_space space,
		       const struct cudbgshim_place *at, uint64_t address, uint8_t *buf, uint32_t n)
{
	return cudbgshim_read_memory(k->c->shim, space, at, address, buf, n) == 0;
}

/*
 * The driver does not say how long a space is: in ever smaller steps up to its end.  Only the first block,
 * or lane, of a grid is searched like that; each step is a call while the devices stand still.
 */
static struct corefile_blob read_to_end(struct cuda_core *k, enum cudbgshim_space space,
					const struct cudbgshim_place *at, uint64_t address,
					struct cuda_core_end *end)
{
	static uint8_t buf[SPACE_MAX];
	uint32_t n = 0, step = SPACE_STEP;
	uint8_t *to;

	if (end->address > address && end->address - address <= SPACE_MAX &&
	    read_space(k, space, at, address, buf, (uint32_t)(end->address - address))) {
		n = (uint32_t)(end->address - address);
		step = 0;
	} else if (!read_space(k, space, at, address, buf, SPACE_UNIT)) {
		return (struct corefile_blob){ 0 };
	}
	while (n + step <= SPACE_MAX && step >= SPACE_UNIT) {
		if (read_space(k, space, at, address + n, buf + n, step))
			n += step;
		else
			step /= 4;
	}
	if (n && step < SPACE_UNIT)
		end->address = address + n;
	to = n ? cuda_core_copy(k, n) : NULL;
	if (!to)
		return (struct corefile_blob){ 0 };
	memcpy(to, buf, n);
	return (struct corefile_blob){ .data = to, .size = n };
}

/* What is known of that grid's blocks, or lanes. */
static struct cuda_core_end *end_of(struct cuda_core_end *end, uint32_t dev, uint64_t grid)
{
	if (end->dev != dev || end->grid != grid)
		*end = (struct cuda_core_end){ .grid = grid, .dev = dev };
	return end;
}

/* ------------------------------------------------------------------ windows ------------------ */

/* What bank 0 of a grid has at an offset; 0: nothing. */
static uint64_t bank_word(const struct cudacore *c, const struct cudacore_grid *g, uint32_t offset)
{
	uint64_t word = 0;

	for (uint32_t i = g->banks.first; i < g->banks.first + g->banks.n; i++)
		for (uint32_t j = 0; c->banks[i].id == 0 && j < c->n_memory; j++) {
			const struct cudacore_memory *m = &c->memory[j];

			if (m->address == c->banks[i].address && m->blob.data && m->blob.size >= offset + sizeof(word))
				memcpy(&word, (const uint8_t *)m->blob.data + offset, sizeof(word));
		}
	return word;
}

/*
 * Does the driver show @p own at that generic address, and is that none of global memory?  While another device
 * runs it does not tell the latter, and bytes that are all alike would prove nothing.
 */
static bool is_seen_at(struct cuda_core *k, const struct cudbgshim_place *at, uint64_t address,
		       const struct corefile_blob *own)
{
	const uint8_t *wanted = own->data;
	uint8_t bytes[WINDOW_LOOK];
	uint32_t n = own->size < sizeof(bytes) ? (uint32_t)own->size : (uint32_t)sizeof(bytes);
	int r;

	if (!read_space(k, CUDBGSHIM_SPACE_GENERIC, at, address, bytes, n) || memcmp(bytes, wanted, n) != 0)
		return false;
	r = cudbgshim_read_memory(k->c->shim, CUDBGSHIM_SPACE_GLOBAL, at, address, bytes, n);
	return r == -EBUSY ? memcmp(wanted, wanted + 1, n - 1) != 0 : r < 0;
}

/*
 * No call says at which generic addresses shared and local memory are.  Compiled code finds them in constant
 * bank 0 (docs/reference/core-files.md), and what is there is tried before it is believed.
 * @param address  Of @p own in its space.
 */
static void find_window(struct cuda_core *k, const struct cudbgshim_place *at, uint64_t grid, bool shared,
			uint64_t address, const struct corefile_blob *own)
{
	const struct cudacore_grid *g = &k->core.grids[find_grid(k, at, grid)];

	for (uint32_t i = 0; i < k->core.n[CUDACORE_CONTEXTS] && own->size; i++) {
		struct cudacore_context *x = &k->core.contexts[i];
		uint64_t *window = shared ? &x->shared_window : &x->local_window, base;

		if (x->id != g->context_id || x->device_row != at->dev || *window || k->windows_tried == WINDOWS_MAX)
			continue;
		base = bank_word(&k->core, g, shared ? SHARED_WINDOW : LOCAL_WINDOW);
		k->windows_tried += !!base;
		if (base && is_seen_at(k, at, base + address, own))
			*window = base;
	}
}

/* ------------------------------------------------------------------ contents ----------------- */

/* What lies between the stack pointer and the end. */
static void fill_local(struct cuda_core *k, const struct cudbgshim_place *at,
		       struct cudacore_lane *l)
{
	uint64_t grid = k->core.blocks[k->core.warps[l->warp].block].grid_id;
	uint32_t pointer = 0;

	if (l->registers.size >= (STACK_POINTER + 1) * sizeof(pointer))
		memcpy(&pointer, (const uint32_t *)l->registers.data + STACK_POINTER,
		       sizeof(pointer));
	pointer &= ~(SPACE_UNIT - 1);
	l->local = read_to_end(k, CUDBGSHIM_SPACE_LOCAL, at, pointer, end_of(&k->local_end, at->dev, grid));
	l->local_address = pointer;
	find_window(k, at, grid, false, pointer, &l->local);
}

static int fill_lane(struct cuda_core *k, const struct cudbgshim_place *at, uint32_t lane,
		     uint32_t n_registers, bool local, struct offsets *o)
{
	const struct cudbgshim_device *d = &k->c->devices[at->dev].facts;
	struct cudacore_lane *l = &k->core.lanes[lane];
	uint32_t values[CUDA_REGISTERS_MAX], n, n_p = least(d->n_predicates, CUDA_PREDICATES_MAX);
	int r = cudbgshim_read_registers(k->c->shim, at, 0, n_registers, values, &n);

	if (r < 0)
		return r;
	l->registers = words(k, values, n);
	if (n_p && cudbgshim_read_predicates(k->c->shim, at, n_p, values) == 0)
		l->predicates = words(k, values, n_p);
	if (k->core.devices[at->dev].sm_major < 7)
		(void)cudbgshim_read_cc(k->c->shim, at, &l->cc_register);
	l->physical_pc = offset_of(k, at, l->virtual_pc, o);
	if (local)
		fill_local(k, at, l);
	fill_frames(k, at, lane);
	return 0;
}

static void fill_uniform(struct cuda_core *k, const struct cudbgshim_place *at,
			 struct cudacore_warp *w)
{
	const struct cudbgshim_device *d = &k->c->devices[at->dev].facts;
	uint32_t n = least(d->n_uniform_registers, CUDA_REGISTERS_MAX);
	uint32_t n_p = least(d->n_uniform_predicates, CUDA_PREDICATES_MAX);
	uint32_t values[CUDA_REGISTERS_MAX];

	if (n && cudbgshim_read_uniform_registers(k->c->shim, at, 0, n, values) == 0)
		w->uniform_registers = words(k, values, n);
	if (n_p && cudbgshim_read_uniform_predicates(k->c->shim, at, n_p, values) == 0)
		w->uniform_predicates = words(k, values, n_p);
}

/* Releases before 12.9 do not tell it; the masks alone say then that it is not there. */
static void fill_convergence(struct cuda_core *k, const struct cudbgshim_place *at, struct cudacore_warp *w)
{
	uint32_t state[1][CUDBGSHIM_CONVERGENCE_WORDS];
	const uint32_t *barriers = state[0] + 3, *lanes = barriers + TARGET_CONVERGENCE_BARRIERS;

	if (cudbgshim_read_convergence(k->c->shim, at->dev, at->sm, UINT64_C(1) << at->warp, state) < 0)
		return;
	w->cbu_active = state[0][0];
	w->cbu_exited = state[0][1];
	w->cbu_collective = state[0][2];
	w->barriers = words(k, barriers, TARGET_CONVERGENCE_BARRIERS);
	k->core.devices[at->dev].barriers = TARGET_CONVERGENCE_BARRIERS;
	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++)
		k->core.lanes[i].cbu_state = lanes[k->core.lanes[i].number];
}

static void fill_shared(struct cuda_core *k, const struct cudbgshim_place *at, uint32_t size,
			struct cudacore_block *b)
{
	uint8_t *to;

	if (b->shared.size)
		return;
	if (!size) {
		b->shared = read_to_end(k, CUDBGSHIM_SPACE_SHARED, at, 0,
					end_of(&k->shared_end, at->dev, b->grid_id));
		return;
	}
	to = cuda_core_copy(k, size);
	if (to && cudbgshim_read_memory(k->c->shim, CUDBGSHIM_SPACE_SHARED, at, 0, to, size) == 0)
		b->shared = (struct corefile_blob){ .data = to, .size = size };
}

static int fill_registers(struct cuda_core *k, uint32_t warp, bool faults, struct offsets *o)
{
	struct cudacore_warp *w = &k->core.warps[warp];
	struct cudacore_block *b = &k->core.blocks[w->block];
	const struct cudacore_sm *sm = &k->core.sms[b->sm];
	struct cudbgshim_place at = { .dev = sm->device, .sm = sm->id, .warp = w->id };
	struct cudbgshim_resources resources;
	uint32_t end = w->lanes.first + w->lanes.n, most = 0, fewest = UINT32_MAX;
	bool is_counted;

	is_counted = cuda_warp_resources(k->c, &at, &resources);
	resources.n_registers = least(resources.n_registers, CUDA_REGISTERS_MAX);
	w->n_registers = resources.n_registers;
	w->shared_bytes = resources.shared_size;
	fill_shared(k, &at, resources.shared_size, b);
	at.lane = w->lanes.n ? k->core.lanes[w->lanes.first].number : 0;
	find_window(k, &at, b->grid_id, true, 0, &b->shared);
	fill_uniform(k, &at, w);
	fill_convergence(k, &at, w);
	for (uint32_t i = w->lanes.first; i < end; i++) {
		uint32_t n;
		int r;

		at.lane = k->core.lanes[i].number;
		r = fill_lane(k, &at, i, resources.n_registers, faults || k->full, o);
		if (r < 0)
			return r;
		n = (uint32_t)(k->core.lanes[i].registers.size / sizeof(uint32_t));
		most = n > most ? n : most;
		fewest = least(fewest, n);
	}
	if (!is_counted && most)
		w->n_registers = most;
	k->cut += w->lanes.n && fewest < w->n_registers;
	return 0;
}

/* One block of a grid is asked for, and the others have as much; none is what most grids have. */
static uint64_t shared_size(struct cuda_core *k, const struct cudbgshim_place *at,
			    struct cudacore_block *b)
{
	struct cuda_core_end *end = end_of(&k->shared_end, at->dev, b->grid_id);
	struct cudbgshim_resources resources = { 0 };

	if (end->is_asked)
		return end->address;
	end->is_asked = true;
	if (cudbgshim_read_resources(k->c->shim, at, &resources) == 0)
		end->address = resources.shared_size;
	if (!end->address)
		fill_shared(k, at, 0, b);
	/* An end that is nowhere: as much as was read. */
	if (!end->address)
		end->address = b->shared.size;
	return end->address;
}

/* How large they are, without what is in them: for most warps no call is needed. */
static void size_registers(struct cuda_core *k, uint32_t warp)
{
	struct cudacore_warp *w = &k->core.warps[warp];
	struct cudacore_block *b = &k->core.blocks[w->block];
	const struct cudacore_sm *sm = &k->core.sms[b->sm];
	const struct cudbgshim_device *d = &k->c->devices[sm->device].facts;
	const struct cudbgshim_place at = { .dev = sm->device, .sm = sm->id, .warp = w->id };
	uint32_t n = k->core.grids[find_grid(k, &at, b->grid_id)].n_registers;

	w->n_registers = least(n ? n : d->n_registers, CUDA_REGISTERS_MAX);
	w->uniform_registers.size = least(d->n_uniform_registers, CUDA_REGISTERS_MAX) * sizeof(uint32_t);
	w->uniform_predicates.size = least(d->n_uniform_predicates, CUDA_PREDICATES_MAX) * sizeof(uint32_t);
	if (!b->shared.size)
		b->shared.size = shared_size(k, &at, b);
	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++) {
		k->core.lanes[i].registers.size = w->n_registers * sizeof(uint32_t);
		k->core.lanes[i].predicates.size = least(d->n_predicates, CUDA_PREDICATES_MAX) * sizeof(uint32_t);
	}
}

/* @return 0, -ESHUTDOWN: the API's session is over.  Warps that the time did not last for are `unread`. */
static int size_all_registers(struct cuda_core *k)
{
	for (uint32_t i = 0; i < k->core.n[CUDACORE_WARPS]; i++) {
		k->late = k->late || clock_now_ns() >= k->deadline_ns;
		if (k->late)
			k->unread++;
		else
			size_registers(k, i);
		if (cudbgshim_is_over(k->c->shim))
			return -ESHUTDOWN;
	}
	return 0;
}

static bool is_faulty(const struct cudacore *c, const struct cudacore_warp *w)
{
	if (w->error_pc_valid || w->broken)
		return true;
	for (uint32_t i = 0; i < w->lanes.n; i++)
		if (c->lanes[w->lanes.first + i].exception)
			return true;
	return false;
}

/* Read registers, those of warps that stopped for a reason first: time may not last for all. */
static int fill_all_registers(struct cuda_core *k)
{
	struct offsets o = { 0 };
	int r;

	for (int faults = 1; faults >= 0; faults--)
		for (uint32_t i = 0; i < k->core.n[CUDACORE_WARPS]; i++) {
			if (is_faulty(&k->core, &k->core.warps[i]) != faults)
				continue;
			k->late = k->late || clock_now_ns() >= k->deadline_ns;
			r = k->late ? -ETIMEDOUT : fill_registers(k, i, faults, &o);
			if (cudbgshim_is_over(k->c->shim))
				return r;
			k->unread += r < 0;
		}
	return 0;
}

int cuda_core_add_warps(struct cuda_core *k, uint64_t devices)
{
	int r = 0;

	for (uint32_t dev = 0; dev < k->c->n_devices && r == 0; dev++) {
		if (!(devices >> dev & 1))
			continue;
		k->late = k->late || clock_now_ns() >= k->deadline_ns;
		r = k->late ? -ETIMEDOUT : add_device(k, dev);
		if (r < 0 && r != -ENOMEM && !cudbgshim_is_over(k->c->shim)) {
			k->no_state |= UINT64_C(1) << dev;
			r = 0;
		}
	}
	if (r < 0)
		return r;
	return k->estimate ? size_all_registers(k) : fill_all_registers(k);
}
