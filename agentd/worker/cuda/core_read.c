/* SPDX-License-Identifier: MIT */
/* A CUDA core as a target: devices, contexts, waves and code. */
#include "agentd/worker/cuda/core_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/snapshot/registers.h"
#include "base/str.h"
#include "corefile/cuda/read.h"
#include "corefile/cuda/write.h"
#include "symbols/image.h"

#define VENDOR_NVIDIA 0x10de

/* ------------------------------------------------------------------ devices, contexts -------- */

static void fill_device(const struct core_cuda *c, struct rpc_arena *a, uint32_t i,
			struct rpc_device *d)
{
	const struct cudacore_device *f = &c->core.devices[i];

	*d = (struct rpc_device){
		.gpu_id = i,
		.name = rpc_arena_printf(a, "%.127s", f->name[0] ? f->name : f->type),
		.arch = rpc_arena_printf(a, "%.15s", f->sm_type),
		.pci = rpc_arena_printf(a, "0000:%02x:%02x.0", f->pci_bus & 0xff,
					f->pci_device & 0x1f),
		.vendor_id = VENDOR_NVIDIA,
		.units = f->sm_count,
		.max_waves = f->sm_count * f->warps_per_sm,
		.debuggable = true,
	};
	core_file_complete_device(&c->file, d);
}

static int core_devices(struct target *t, struct rpc_arena *a, struct target_device **ret,
			size_t *ret_n, struct agent_err *err)
{
	const struct core_cuda *c = core_cuda_of(t);
	uint32_t n = c->core.n[CUDACORE_DEVICES];
	struct target_device *list = rpc_arena_array(a, n, sizeof(*list));

	if (!list)
		return agent_err_no_memory(err, "read the core");
	for (uint32_t i = 0; i < n; i++)
		fill_device(c, a, i, &list[i].rpc);
	if (rpc_arena_error(a) < 0)
		return agent_err_no_memory(err, "read the core");
	*ret = list;
	*ret_n = n;
	return 0;
}

/* Waves are called by a queue: of a core without contexts, one for each device that has any. */
static bool has_stand_in(const struct core_cuda *c, uint32_t device)
{
	const struct cudacore_device *d = &c->core.devices[device];

	for (uint32_t i = d->sms.first; !d->contexts.n && i < d->sms.first + d->sms.n; i++)
		if (c->core.sms[i].blocks.n)
			return true;
	return false;
}

static int core_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret,
		       size_t *ret_n, struct agent_err *err)
{
	const struct core_cuda *c = core_cuda_of(t);
	uint32_t n = c->core.n[CUDACORE_CONTEXTS], n_devices = c->core.n[CUDACORE_DEVICES];
	struct rpc_queue *list = rpc_arena_array(a, (size_t)n + n_devices, sizeof(*list));

	if (!list)
		return agent_err_no_memory(err, "read the core");
	for (uint32_t i = 0; i < n; i++) {
		const struct cudacore_context *x = &c->core.contexts[i];
		const struct rpc_queue *known = core_file_queue(&c->file, c->numbers[i]);

		list[i] = (struct rpc_queue){ .queue_id = c->numbers[i],
					      .gpu_id = x->device,
					      .type = RPC_QUEUE_TYPE_CONTEXT,
					      .has_context = true,
					      .context = x->id,
					      .suspended = known && known->suspended };
	}
	for (uint32_t dev = 0; dev < n_devices; dev++)
		if (has_stand_in(c, dev))
			list[n++] = (struct rpc_queue){ .queue_id = c->stand_ins[dev],
							.gpu_id = dev,
							.type = RPC_QUEUE_TYPE_CONTEXT };
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ------------------------------------------------------------------ finding rows ------------- */

static int compare_keys(const void *x, const void *y)
{
	const struct core_cuda_key *a = x, *b = y;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static int compare_key_only(const void *x, const void *y)
{
	const struct core_cuda_key *a = x, *b = y;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* @return the row of a key; UINT32_MAX if there is none. */
static uint32_t find_row(const struct core_cuda_key *keys, uint32_t n, uint32_t device, uint64_t id)
{
	const struct core_cuda_key wanted = { .device = device, .id = id }, *found =
		n ? bsearch(&wanted, keys, n, sizeof(*keys), compare_key_only) : NULL;

	return found ? found->row : UINT32_MAX;
}

const struct cudacore_grid *core_cuda_grid(const struct core_cuda *c, uint32_t device, uint64_t id)
{
	uint32_t row = find_row(c->grids, c->core.n[CUDACORE_GRIDS], device, id);

	return row == UINT32_MAX ? NULL : &c->core.grids[row];
}

/* @return the queue_id of a grid's context; without a context, that of the first of its device. */
static uint32_t queue_of(const struct core_cuda *c, uint32_t device, const struct cudacore_grid *g)
{
	uint32_t row = g ? find_row(c->contexts, c->core.n[CUDACORE_CONTEXTS], device, g->context_id) :
			   UINT32_MAX;

	if (row == UINT32_MAX && c->core.devices[device].contexts.n)
		row = c->core.devices[device].contexts.first;
	return row == UINT32_MAX ? c->stand_ins[device] : c->numbers[row];
}

static int index_rows(struct core_cuda *c)
{
	const struct cudacore *core = &c->core;
	uint32_t n_grids = core->n[CUDACORE_GRIDS], n_contexts = core->n[CUDACORE_CONTEXTS];

	c->grids = calloc((size_t)n_grids + 1, sizeof(*c->grids));
	c->contexts = calloc((size_t)n_contexts + 1, sizeof(*c->contexts));
	c->numbers = calloc((size_t)n_contexts + 1, sizeof(*c->numbers));
	c->modules = calloc((size_t)core->n[CUDACORE_MODULES] + 1, sizeof(*c->modules));
	c->stand_ins = calloc((size_t)core->n[CUDACORE_DEVICES] + 1, sizeof(*c->stand_ins));
	if (!c->grids || !c->contexts || !c->numbers || !c->modules || !c->stand_ins)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_grids; i++)
		c->grids[i] = (struct core_cuda_key){ core->grids[i].id, core->grids[i].device, i };
	for (uint32_t i = 0; i < n_contexts; i++) {
		const struct cudacore_context *x = &core->contexts[i];

		c->contexts[i] = (struct core_cuda_key){ x->id, x->device, i };
		c->numbers[i] = i;
	}
	qsort(c->grids, n_grids, sizeof(*c->grids), compare_keys);
	qsort(c->contexts, n_contexts, sizeof(*c->contexts), compare_keys);
	return 0;
}

/* Give contexts the numbers that they had when the process was alive. */
static void take_numbers(struct core_cuda *c)
{
	const struct rpc_gpu_snapshot_result *head = c->file.head;

	for (size_t i = 0; head && i < head->n_queues; i++) {
		uint32_t row = find_row(c->contexts, c->core.n[CUDACORE_CONTEXTS],
					head->queues[i].gpu_id, head->queues[i].context);

		if (row != UINT32_MAX && head->queues[i].queue_id != UINT32_MAX)
			c->numbers[row] = head->queues[i].queue_id;
	}
}

/* Number the stand-ins after all contexts. */
static void number_stand_ins(struct core_cuda *c)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < c->core.n[CUDACORE_CONTEXTS]; i++)
		if (c->numbers[i] >= next)
			next = c->numbers[i] + 1;
	for (uint32_t i = 0; i < c->core.n[CUDACORE_DEVICES]; i++)
		c->stand_ins[i] = next++;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* Of two rows for the same lane the first counts. */
static void find_lanes(const struct core_cuda *c, struct core_cuda_warp *w)
{
	const struct cudacore_range *r = &w->row->lanes;

	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		const struct cudacore_lane *l = &c->core.lanes[i];

		if (l->number >= CUDBGSHIM_MAX_LANES || w->lanes[l->number])
			continue;
		w->lanes[l->number] = l;
		w->pcs[l->number] = l->virtual_pc;
		w->exceptions[l->number] = cudacore_lane_exception(&c->core, i);
		w->view.lanes |= UINT32_C(1) << l->number;
	}
}

void core_cuda_warp_of(const struct core_cuda *c, const struct cudacore_warp *row,
		       struct core_cuda_warp *ret)
{
	const struct cudacore_block *b = &c->core.blocks[row->block];
	const struct cudacore_sm *sm = &c->core.sms[b->sm];

	*ret = (struct core_cuda_warp){
		.view = { .whole = &ret->whole,
			  .pcs = ret->pcs,
			  .exceptions = ret->exceptions,
			  .gpu_id = sm->device,
			  .sm = sm->id,
			  .index = row->id,
			  .n_lanes = c->core.devices[sm->device].lanes_per_warp,
			  .broken = row->broken },
		.whole = { .grid_id = b->grid_id,
			   .error_pc = row->error_pc,
			   .block = core_cuda_dim(b->index),
			   .valid_lanes = row->valid_lanes,
			   .active_lanes = row->active_lanes,
			   .syscall_lanes = row->syscall_lanes },
		.row = row,
	};
	if (row->error_pc_valid)
		ret->whole.has |= CUDBGSHIM_WARP_ERROR_PC;
	if (row->age >= CUDACORE_LAYOUT_R575)
		ret->whole.has |= CUDBGSHIM_WARP_SYSCALL_LANES;
	find_lanes(c, ret);
}

static void fill_wave(const struct core_cuda *c, const struct cudacore_warp *row,
		      uint32_t leader, struct cuda_parts *parts, struct wave *ret)
{
	const struct cudacore_grid *g;
	const struct cudacore_lane *l;
	struct core_cuda_warp w;
	uint32_t speaker;

	core_cuda_warp_of(c, row, &w);
	speaker = cuda_warp_speaker(&w.view);
	cuda_warp_fill_wave(&w.view, speaker, ret);
	g = core_cuda_grid(c, w.view.gpu_id, w.whole.grid_id);
	l = w.lanes[speaker];
	ret->queue_id = queue_of(c, w.view.gpu_id, g);
	ret->kernel_handle = g ? g->function_entry : 0;
	/* The first lane need not be there. */
	if (g && l)
		cuda_warp_add_number(w.view.n_lanes, core_cuda_dim(g->block_dim), speaker,
				     core_cuda_dim(l->thread), ret);
	ret->leader = leader;
	cuda_warp_add_parts(&w.view, speaker, parts, ret);
}

/* Slots of a multiprocessor; what is in none of them, or in one that is taken, is left out. */
static void find_slots(const struct core_cuda *c, const struct cudacore_sm *sm,
		       const struct cudacore_warp *slots[CORE_CUDA_SLOTS], uint32_t *ret_left_out)
{
	memset(slots, 0, CORE_CUDA_SLOTS * sizeof(*slots));
	for (uint32_t b = sm->blocks.first; b < sm->blocks.first + sm->blocks.n; b++) {
		const struct cudacore_range *r = &c->core.blocks[b].warps;

		for (uint32_t i = r->first; i < r->first + r->n; i++) {
			const struct cudacore_warp *w = &c->core.warps[i];

			if (w->id < CORE_CUDA_SLOTS && !slots[w->id])
				slots[w->id] = w;
			else
				(*ret_left_out)++;
		}
	}
}

static bool same_block(const struct core_cuda *c, const struct cudacore_warp *x,
		       const struct cudacore_warp *y)
{
	const struct cudacore_block *a = &c->core.blocks[x->block], *b = &c->core.blocks[y->block];

	return a->grid_id == b->grid_id && memcmp(a->index, b->index, sizeof(a->index)) == 0;
}

/* All warps of a block are on the same multiprocessor; they come one behind the other. */
static void add_sm(struct core_cuda_waves *ret, const struct core_cuda *c,
		   const struct cudacore_sm *sm)
{
	const struct cudacore_warp *slots[CORE_CUDA_SLOTS];

	find_slots(c, sm, slots, &ret->left_out);
	for (uint32_t first = 0; first < CORE_CUDA_SLOTS; first++) {
		const struct cudacore_warp *head = slots[first];
		uint32_t leader = (uint32_t)ret->n;

		for (uint32_t i = first; head && i < CORE_CUDA_SLOTS; i++) {
			if (!slots[i] || !same_block(c, head, slots[i]))
				continue;
			fill_wave(c, slots[i], leader, &ret->parts, &ret->waves[ret->n]);
			ret->warps[ret->n++] = slots[i];
			slots[i] = NULL;
		}
	}
}

int core_cuda_make_waves(const struct core_cuda *c, const uint32_t *sm, struct rpc_arena *a,
			 struct core_cuda_waves *ret)
{
	uint32_t n = sm ? 0 : c->core.n[CUDACORE_WARPS];

	for (uint32_t i = 0; i < c->core.n[CUDACORE_SMS] && n < c->core.n[CUDACORE_WARPS]; i++)
		n += c->core.sms[i].id == *sm ? CORE_CUDA_SLOTS : 0;
	*ret = (struct core_cuda_waves){ .waves = rpc_arena_array(a, n, sizeof(*ret->waves)),
					 .warps = rpc_arena_array(a, n, sizeof(*ret->warps)),
					 .parts = { .arena = a } };
	if (!ret->waves || !ret->warps)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->core.n[CUDACORE_SMS]; i++)
		if (!sm || c->core.sms[i].id == *sm)
			add_sm(ret, c, &c->core.sms[i]);
	return 0;
}

static bool read_stack(const struct core_cuda *c, const struct cudacore_warp *w,
		       struct rpc_arena *a, struct wave *wave)
{
	struct wave_stack stack = { 0 };
	int r = core_cuda_read_callers(c, w, a, &stack.callers, &stack.n);

	wave->stack = stack.n ? rpc_arena_array(a, 1, sizeof(stack)) : NULL;
	if (wave->stack)
		*wave->stack = stack;
	return r == 0;
}

static void read_stacks(const struct core_cuda *c, const struct core_cuda_waves *w,
			struct rpc_arena *a, struct target_waves *ret)
{
	struct wave *chosen[WAVES_REPRESENTATIVES_MAX];
	size_t n = waves_choose_representatives(w->waves, w->n, chosen), cut = 0;

	for (size_t i = 0; i < n; i++)
		cut += !read_stack(c, w->warps[chosen[i] - w->waves], a, chosen[i]);
	if (cut)
		ret->missing[ret->n_missing++] =
			rpc_arena_printf(a, "core file: outer callers in %zu call stacks", cut);
}

static void read_examples(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			  struct target_waves *ret)
{
	struct wave *chosen[WAVES_REPRESENTATIVES_MAX];
	size_t n = waves_choose_representatives(w->waves, w->n, chosen);

	ret->registers = rpc_arena_array(a, n, sizeof(*ret->registers));
	for (size_t i = 0; ret->registers && i < n; i++)
		if (core_cuda_fill_registers(c, w->warps[chosen[i] - w->waves], chosen[i],
					     &registers_all, a,
					     &ret->registers[ret->n_registers]) == 0)
			ret->n_registers++;
}

/* Grids that have warps and are in no table. */
static const char *unknown_grids(const struct core_cuda *c, const struct core_cuda_waves *w,
				 struct rpc_arena *a)
{
	uint64_t first = 0;
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		if (!core_cuda_grid(c, w->waves[i].gpu_id, w->waves[i].dispatch) && !n++)
			first = w->waves[i].dispatch;
	return n ? rpc_arena_printf(a, "core file: grid %llu and others that %zu warps belong to are not in it",
				    (unsigned long long)first, n) :
		   NULL;
}

static bool is_shown(const struct core_cuda *c, const struct cudacore_sm *sm)
{
	struct core_cuda_warp view;

	for (uint32_t b = sm->blocks.first; b < sm->blocks.first + sm->blocks.n; b++) {
		const struct cudacore_range *warps = &c->core.blocks[b].warps;

		for (uint32_t w = warps->first; w < warps->first + warps->n; w++) {
			core_cuda_warp_of(c, &c->core.warps[w], &view);
			if (cuda_warp_shows(&view.view, sm->exception))
				return true;
		}
	}
	return false;
}

/* Exceptions of multiprocessors that no lane on them shows: their warps have exited. */
static int find_exited(const struct core_cuda *c, struct rpc_arena *a, struct target_waves *ret)
{
	const struct cudacore *core = &c->core;
	uint32_t n = 0;

	for (uint32_t i = 0; i < core->n[CUDACORE_SMS]; i++)
		n += core->sms[i].exception != 0;
	ret->exited = rpc_arena_array(a, n, sizeof(*ret->exited));
	if (!ret->exited)
		return -ENOMEM;
	for (uint32_t i = 0; i < core->n[CUDACORE_SMS]; i++) {
		const struct cudacore_sm *sm = &core->sms[i];

		if (sm->exception && !is_shown(c, sm))
			ret->exited[ret->n_exited++] = cuda_exception_exited(
				sm->device, sm->id, sm->exception, sm->error_pc_valid ? sm->error_pc : 0);
	}
	return 0;
}

static int core_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
		      struct target_waves *ret, struct agent_err *err)
{
	struct core_cuda *c = core_cuda_of(t);
	struct core_cuda_waves w;
	const char *unknown, *cut, *barriers = NULL, *lanes = NULL, *spins[SPINS_MISSING_MAX] = { NULL };

	*ret = (struct target_waves){ .missing = rpc_arena_array(a, 6 + SPINS_MISSING_MAX, sizeof(*ret->missing)) };
	if (!ret->missing || core_cuda_make_waves(c, NULL, a, &w) < 0 || find_exited(c, a, ret) < 0)
		return agent_err_no_memory(err, "read the core");
	ret->waves = w.waves;
	ret->n_waves = w.n;
	read_stacks(c, &w, a, ret);
	if (core_cuda_read_arguments(c, &w, from->all_arguments, a, ret) < 0)
		return agent_err_no_memory(err, "read the core");
	if (from->registers)
		read_examples(c, &w, a, ret);
	if (from->mbarriers && (core_cuda_read_mbarriers(c, &w, a, ret, &barriers) < 0 ||
				core_cuda_read_spins(c, &w, a, ret, spins) < 0))
		return agent_err_no_memory(err, "read the core");
	if (from->mbarriers) {
		lanes = core_cuda_read_convergence(c, &w, a, ret);
		core_cuda_read_nccl(c, &w, a, ret);
	}
	if (lanes)
		ret->missing[ret->n_missing++] = lanes;
	if (barriers)
		ret->missing[ret->n_missing++] = barriers;
	for (size_t i = 0; i < SPINS_MISSING_MAX; i++)
		if (spins[i])
			ret->missing[ret->n_missing++] = spins[i];
	if (w.left_out)
		ret->missing[ret->n_missing++] = rpc_arena_printf(
			a, "core file: %u warps in slots that no multiprocessor has, or has once",
			w.left_out);
	unknown = unknown_grids(c, &w, a);
	if (unknown)
		ret->missing[ret->n_missing++] = unknown;
	cut = cuda_parts_missing(&w.parts);
	if (cut)
		ret->missing[ret->n_missing++] = cut;
	return rpc_arena_error(a) ? agent_err_no_memory(err, "read the core") : 0;
}

/* ------------------------------------------------------------------ code --------------------- */

static const char *arch_of(const struct core_cuda *c, uint32_t module)
{
	return c->core.devices[c->core.contexts[c->core.modules[module].context].device].sm_type;
}

/* Addresses are in the section headers, at the end of the image: it is looked at once for them. */
static void find_range(struct core_cuda *c, uint32_t row)
{
	const struct corefile_blob *b = &c->core.modules[row].relocated;
	bool has_other = c->core.modules[row].image.size != 0;
	struct core_cuda_module *m = &c->modules[row];
	struct symbols_image *image;

	m->seen = true;
	m->error = b->size > SYMBOLS_IMAGE_BYTES_MAX ? -EFBIG : 0;
	if (!b->size)
		m->error = has_other ? -EADDRNOTAVAIL : -EFAULT;
	if (m->error == 0)
		m->error = symbols_image_create(b->data, b->size, &image);
	if (m->error < 0)
		return;
	symbols_image_range(image, &m->start, &m->end);
	m->error = m->end ? 0 : -EADDRNOTAVAIL;
	if (m->error == 0)
		m->error = values_kernels_find(image, &m->kernels);
	if (m->error == 0)
		m->error = mbarrier_sites_find(image, arch_of(c, row), &m->mbarriers);
	if (m->error == 0)
		m->error = spin_sites_find(image, arch_of(c, row), &m->spins);
	if (m->error == 0)
		m->error = nccl_functions_find(image, &m->nccl);
	symbols_image_destroy(image);
}

void core_cuda_look(struct core_cuda *c, uint32_t module)
{
	if (!c->modules[module].seen)
		find_range(c, module);
}

static int core_code_list(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	struct core_cuda *c = core_cuda_of(t);
	uint32_t n = c->core.n[CUDACORE_MODULES];

	ret->objects = rpc_arena_array(a, n, sizeof(*ret->objects));
	if (!ret->objects)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct cudacore_module *m = &c->core.modules[i];

		core_cuda_look(c, i);
		ret->objects[i] = (struct code_object){
			.uri = rpc_arena_printf(a, "cuda://device/%u/module/0x%llx",
						c->core.contexts[m->context].device,
						(unsigned long long)m->handle),
			.tag = i,
			.start = c->modules[i].start,
			.end = c->modules[i].end,
		};
		if (!ret->objects[i].uri)
			return -ENOMEM;
	}
	ret->n_objects = n;
	return 0;
}

static int core_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	const struct core_cuda *c = core_cuda_of(t);

	ret->size = c->core.modules[o->tag].relocated.size;
	ret->stamp = o->tag + 1;
	return c->modules[o->tag].error;
}

static ssize_t core_code_read(struct target *t, const struct code_object *o, uint64_t offset,
			      void *buf, size_t size)
{
	const struct corefile_blob *b = &core_cuda_of(t)->core.modules[o->tag].relocated;

	return (ssize_t)core_cuda_copy(b, offset, buf, size);
}

size_t core_cuda_copy(const struct corefile_blob *b, uint64_t offset, void *buf, size_t size)
{
	if (offset >= b->size)
		return 0;
	if (size > b->size - offset)
		size = (size_t)(b->size - offset);
	memcpy(buf, (const uint8_t *)b->data + offset, size);
	return size;
}

/* ------------------------------------------------------------------ opening ------------------ */

static ssize_t read_memory(const void *source, uint64_t address, void *buf, size_t size)
{
	const struct core_cuda *c = source;
	size_t n = cudacore_read_memory(&c->core, address, buf, size);

	if (!n)
		n = core_cuda_read_code(c, address, buf, size);
	return n || !size ? (ssize_t)n : -EFAULT;
}

static void core_destroy(struct target *t)
{
	struct core_cuda *c = core_cuda_of(t);

	target_deinit(t);
	for (uint32_t i = 0; c->modules && i < c->core.n[CUDACORE_MODULES]; i++) {
		values_kernels_deinit(&c->modules[i].kernels);
		mbarrier_sites_deinit(&c->modules[i].mbarriers);
		spin_sites_deinit(&c->modules[i].spins);
		nccl_functions_deinit(&c->modules[i].nccl);
	}
	cudacore_deinit(&c->core);
	core_file_deinit(&c->file);
	free(c->grids);
	free(c->contexts);
	free(c->numbers);
	free(c->stand_ins);
	free(c->modules);
	free(c);
}

static const struct target_ops target_core_cuda_ops = {
	.vendor = RPC_VENDOR_NVIDIA,
	.destroy = core_destroy,
	.devices = core_devices,
	.queues = core_queues,
	.waves = core_waves,
	.registers = core_cuda_registers,
	.wave_memory = core_cuda_wave_memory,
	.wave_spaces = CUDA_WAVE_SPACES,
	.code_list = core_code_list,
	.code_stat = core_code_stat,
	.code_read = core_code_read,
};

static void take_meta(struct core_cuda *c)
{
	const struct cudacore_meta *m = c->core.n[CUDACORE_META] ? &c->core.meta[0] : NULL;
	struct target *t = &c->t;

	t->runtime.state = RPC_RUNTIME_STATE_ENABLED;
	str_copy(t->version, sizeof(t->version), "unknown");
	if (m)
		snprintf(t->version, sizeof(t->version), "%u.%u", m->cuda_driver[0] & 0xffff,
			 m->cuda_driver[1] & 0xffff);
	if (m)
		c->file.origin.time_us = m->time_s * UINT64_C(1000000);
	if (c->file.head)
		str_copy(t->version, sizeof(t->version), c->file.head->interface_version);
}

static int take(struct core_cuda *c)
{
	int r = cudacore_find_gaps(&c->core);

	if (r == 0)
		r = index_rows(c);
	if (r < 0)
		return r;
	if (c->core.agent.size)
		core_file_set_head(&c->file, c->core.agent.data, c->core.agent.size);
	take_numbers(c);
	number_stand_ins(c);
	take_meta(c);
	return core_file_describe(&c->file, "cuda",
				  c->core.n[CUDACORE_META] ? c->core.meta[0].generator : NULL,
				  &c->core.problems);
}

int core_cuda_create(const struct worker_options *o, const struct core_bytes *bytes,
		     struct target **ret, struct agent_err *err)
{
	const struct access_target nobody = { 0 };
	struct core_cuda *c = calloc(1, sizeof(*c));
	struct corefile_problem why = { 0 };
	int r;

	if (!c)
		return agent_err_no_memory(err, "read the core");
	target_init(&c->t, &target_core_cuda_ops, o, &nobody);
	c->t.memory.read = read_memory;
	c->t.memory.source = c;
	core_file_init(&c->file, bytes);
	r = cudacore_read(bytes->data, bytes->size, &c->core, &why);
	if (r < 0) {
		core_file_refuse(&c->file, r, &why, err);
		core_destroy(&c->t);
		return r;
	}
	r = take(c);
	if (r < 0) {
		core_destroy(&c->t);
		return agent_err_no_memory(err, "read the core");
	}
	c->t.origin = &c->file.origin;
	*ret = &c->t;
	return 0;
}
