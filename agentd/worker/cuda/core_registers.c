/* SPDX-License-Identifier: MIT */
/* A CUDA core as a target: registers and memory of one warp, instructions. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "agentd/worker/cuda/core_read.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "corefile/elf_read.h"

#define REGISTERS_MAX  256u
#define PREDICATES_MAX 32u
#define LANES_MAX      32u
#define CALLERS_MAX    64u

/* ------------------------------------------------------------------ registers ---------------- */

struct filling {
	const struct core_cuda *c;
	const struct cudacore_warp *warp;
	const struct cudacore_block *block;
	const struct cudacore_device *device;
	const struct cudacore_lane *lanes[LANES_MAX]; /* by their number; NULL: not valid */
	const struct target_registers_wanted *what;
	struct rpc_arena *a;
};

static bool is_wanted(const struct filling *f, enum rpc_register_bank bank)
{
	return f->what->banks >> bank & 1;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* @return 0 behind the end of what the core has. */
static uint32_t word_of(const struct corefile_blob *b, uint32_t i)
{
	uint32_t v = 0;

	core_cuda_copy(b, (uint64_t)i * sizeof(v), &v, sizeof(v));
	return le32toh(v);
}

static uint32_t words_in(const struct corefile_blob *b)
{
	return b->size / 4 < REGISTERS_MAX ? (uint32_t)(b->size / 4) : REGISTERS_MAX;
}

static void find_lanes(struct filling *f)
{
	const struct cudacore_range *r = &f->warp->lanes;

	for (uint32_t i = r->first; i < r->first + r->n; i++) {
		const struct cudacore_lane *l = &f->c->core.lanes[i];

		if (l->number < LANES_MAX && f->warp->valid_lanes >> l->number & 1)
			f->lanes[l->number] = l;
	}
}

static const struct cudacore_lane *first_lane(const struct filling *f)
{
	uint32_t mask = f->warp->active_lanes & f->warp->valid_lanes;

	if (!mask)
		mask = f->warp->valid_lanes;
	return mask ? f->lanes[__builtin_ctz(mask)] : NULL;
}

static void add_scalar(struct rpc_scalar_register *list, size_t *n, const char *name, uint32_t bits,
		       uint64_t value)
{
	if (list)
		list[(*n)++] = (struct rpc_scalar_register){ .name = name, .bits = bits,
							     .value = value };
}

static void fill_special(struct filling *f, const struct wave *w, struct rpc_wave_registers *ret)
{
	struct rpc_scalar_register *list = rpc_arena_array(f->a, 8, sizeof(*list));
	const struct cudacore_lane *l = first_lane(f), *speaker;
	size_t *n = &ret->n_special;
	uint32_t exception;

	speaker = core_cuda_speaker(&f->c->core, f->warp, &exception);
	ret->special = list;
	/* Where the exception was is a register of its own. */
	add_scalar(list, n, "pc", 64, speaker ? speaker->virtual_pc : w->pc);
	add_scalar(list, n, "active_lanes", 32, f->warp->active_lanes);
	add_scalar(list, n, "valid_lanes", 32, f->warp->valid_lanes);
	if (f->warp->error_pc_valid)
		add_scalar(list, n, "error_pc", 64, f->warp->error_pc);
	if (f->warp->age >= CUDACORE_LAYOUT_R575)
		add_scalar(list, n, "syscall_lanes", 32, f->warp->syscall_lanes);
	if (l)
		add_scalar(list, n, "cc", 32, l->cc_register);
}

/* Uniform registers and predicates: one value for the warp. */
static void fill_scalar(struct filling *f, struct rpc_wave_registers *ret)
{
	const struct corefile_blob *regs = &f->warp->uniform_registers;
	const struct corefile_blob *preds = &f->warp->uniform_predicates;
	uint32_t n = min_u32(f->device->uniform_registers, words_in(regs));
	uint32_t n_p = min_u32(min_u32(f->device->uniform_predicates, PREDICATES_MAX),
			       words_in(preds));

	ret->scalar = rpc_arena_array(f->a, n + n_p, sizeof(*ret->scalar));
	for (uint32_t i = 0; i < n; i++)
		add_scalar(ret->scalar, &ret->n_scalar, rpc_arena_printf(f->a, "UR%u", i), 32,
			   word_of(regs, i));
	for (uint32_t i = 0; i < n_p; i++)
		add_scalar(ret->scalar, &ret->n_scalar, rpc_arena_printf(f->a, "UP%u", i), 32,
			   word_of(preds, i));
}

static bool fill_lanes(struct filling *f, struct rpc_vector_register *r, bool predicate, uint32_t i)
{
	uint32_t n = min_u32(f->device->lanes_per_warp, LANES_MAX);

	r->name = rpc_arena_printf(f->a, predicate ? "P%u" : "R%u", i);
	r->lanes = rpc_arena_array(f->a, n, sizeof(*r->lanes));
	if (!r->lanes)
		return false;
	r->n_lanes = n;
	for (uint32_t lane = 0; lane < n; lane++)
		if (f->lanes[lane])
			r->lanes[lane] = word_of(predicate ? &f->lanes[lane]->predicates :
							     &f->lanes[lane]->registers,
						 i);
	return true;
}

static void fill_vector(struct filling *f, struct rpc_wave_registers *ret)
{
	uint32_t first = min_u32(f->what->first, ret->vector_count);
	uint32_t n = min_u32(ret->vector_count - first, f->what->count);
	uint32_t n_p = f->what->first ? 0 : min_u32(f->device->predicates_per_lane, PREDICATES_MAX);
	struct rpc_vector_register *list = rpc_arena_array(f->a, n + n_p, sizeof(*list));

	for (uint32_t i = 0; list && i < n + n_p; i++)
		if (!fill_lanes(f, &list[i], i >= n, i < n ? first + i : i - n))
			return;
	ret->vector = list;
	ret->n_vector = list ? n + n_p : 0;
}

static uint32_t *three(struct rpc_arena *a, uint32_t x, uint32_t y, uint32_t z)
{
	uint32_t *list = rpc_arena_array(a, 3, sizeof(*list));

	if (list) {
		list[0] = x;
		list[1] = y;
		list[2] = z;
	}
	return list;
}

static void fill_work_items(struct filling *f, const struct cudacore_grid *g,
			    struct rpc_wave_registers *ret)
{
	const uint32_t *block = f->block->index, *dim = g->block_dim;

	ret->has_work_items = true;
	ret->work_items = rpc_arena_array(f->a, LANES_MAX, sizeof(*ret->work_items));
	for (uint32_t lane = 0; ret->work_items && lane < LANES_MAX; lane++) {
		const struct cudacore_lane *l = f->lanes[lane];
		const struct cuda_exception *e;

		if (!l)
			continue;
		e = cuda_exception(cudacore_lane_exception(&f->c->core,
							   (uint32_t)(l - f->c->core.lanes)));
		ret->work_items[ret->n_work_items++] = (struct rpc_work_item){
			.lane = lane,
			.n_in_group = 3,
			.in_group = three(f->a, l->thread[0], l->thread[1], l->thread[2]),
			.n_global = 3,
			.global = three(f->a, block[0] * dim[0] + l->thread[0],
					block[1] * dim[1] + l->thread[1],
					block[2] * dim[2] + l->thread[2]),
			.has_pc = true,
			.pc = l->virtual_pc,
			.exception = e ? e->text : NULL,
		};
	}
}

static void fill_packet(struct filling *f, const struct wave *w, struct rpc_wave_registers *ret)
{
	const struct cudacore_grid *g = core_cuda_grid(f->c, w->gpu_id, f->block->grid_id);

	if (!g)
		return;
	ret->has_packet = true;
	ret->packet = (struct rpc_dispatch_packet){
		.kernel_object = g->function_entry,
		.n_workgroup_size = 3,
		.workgroup_size = three(f->a, g->block_dim[0], g->block_dim[1], g->block_dim[2]),
		.n_grid_size = 3,
		.grid_size = three(f->a, g->grid_dim[0] * g->block_dim[0],
				   g->grid_dim[1] * g->block_dim[1],
				   g->grid_dim[2] * g->block_dim[2]),
		.group_segment_bytes = ret->lds_bytes,
	};
	if (f->what->work_items)
		fill_work_items(f, g, ret);
}

/* Before R525 nobody says how many the kernel uses: those that are there. */
static uint32_t count_registers(const struct filling *f)
{
	const struct cudacore_lane *l = first_lane(f);

	if (f->warp->n_registers)
		return min_u32(f->warp->n_registers, REGISTERS_MAX);
	return l ? words_in(&l->registers) : 0;
}

int core_cuda_fill_registers(const struct core_cuda *c, const struct cudacore_warp *w,
			     const struct wave *wave, const struct target_registers_wanted *what,
			     struct rpc_arena *a, struct rpc_wave_registers *ret)
{
	const struct cudacore_block *b = &c->core.blocks[w->block];
	struct filling f = { .c = c, .warp = w, .block = b, .what = what, .a = a,
			     .device = &c->core.devices[wave->gpu_id] };
	/* The reply points into it. */
	struct wave *kept = rpc_arena_array(a, 1, sizeof(*kept));
	struct rpc_wave *converted;

	if (!kept)
		return -ENOMEM;
	*kept = *wave;
	converted = waves_convert(a, kept, NULL, 1);
	if (!converted)
		return -ENOMEM;
	find_lanes(&f);
	*ret = (struct rpc_wave_registers){
		.wave = *converted,
		.vector_count = count_registers(&f),
		.lds_bytes = w->age >= CUDACORE_LAYOUT_R570 ? w->shared_bytes :
							      (uint32_t)b->shared.size,
		.scratch = true,
	};
	if (is_wanted(&f, RPC_REGISTER_BANK_SPECIAL))
		fill_special(&f, wave, ret);
	if (is_wanted(&f, RPC_REGISTER_BANK_SCALAR))
		fill_scalar(&f, ret);
	if (is_wanted(&f, RPC_REGISTER_BANK_VECTOR))
		fill_vector(&f, ret);
	fill_packet(&f, wave, ret);
	return rpc_arena_error(a);
}

/* ------------------------------------------------------------------ finding it --------------- */

static int find(const struct core_cuda *c, const struct rpc_wave_name *n, struct rpc_arena *a,
		const struct wave **ret_wave, const struct cudacore_warp **ret_warp,
		struct agent_err *err)
{
	struct core_cuda_waves w;

	if (wave_name_check(n, "params.wave", err) < 0)
		return -EINVAL;
	if (core_cuda_make_waves(c, a, &w) < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	for (size_t i = 0; i < w.n; i++)
		if (wave_is_named(&w.waves[i], n)) {
			*ret_wave = &w.waves[i];
			*ret_warp = w.warps[i];
			return 0;
		}
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, "find the wave",
			     "gpu-agentctl waves lists those there are",
			     "queue %u, unit %u has no such wave", n->queue_id, n->unit);
}

int core_cuda_registers(struct target *t, const struct target_waves_from *from,
			const struct target_registers_wanted *what, struct rpc_arena *a,
			struct rpc_wave_registers *ret, uint64_t *ret_stopped_us,
			struct agent_err *err)
{
	const struct core_cuda *c = core_cuda_of(t);
	const struct cudacore_warp *warp;
	const struct wave *wave;
	int r = find(c, what->wave, a, &wave, &warp, err);

	*ret_stopped_us = 0;
	if (r < 0)
		return r;
	if (core_cuda_fill_registers(c, warp, wave, what, a, ret) < 0 ||
	    core_cuda_read_callers(c, warp, a, &ret->callers, &ret->n_callers) == -ENOMEM)
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
	ret->has_callers = ret->n_callers;
	return 0;
}

/* ------------------------------------------------------------------ callers ------------------ */

/* By their level, in whatever order they are; of two for the same level the last counts. */
static uint64_t find_levels(const struct core_cuda *c, const struct cudacore_lane *l,
			    uint64_t addresses[CALLERS_MAX])
{
	uint64_t found = 0;

	for (uint32_t i = l->frames.first; i < l->frames.first + l->frames.n; i++) {
		const struct cudacore_frame *f = &c->core.frames[i];

		if (f->level >= CALLERS_MAX)
			continue;
		addresses[f->level] = f->return_address;
		found |= UINT64_C(1) << f->level;
	}
	return found;
}

int core_cuda_read_callers(const struct core_cuda *c, const struct cudacore_warp *w,
			   struct rpc_arena *a, struct rpc_caller **ret, size_t *ret_n)
{
	uint64_t addresses[CALLERS_MAX], found;
	uint32_t exception, depth, n;
	const struct cudacore_lane *l = core_cuda_speaker(&c->core, w, &exception);

	*ret = NULL;
	*ret_n = 0;
	if (!l)
		return 0;
	found = find_levels(c, l, addresses);
	depth = min_u32(l->call_depth, CALLERS_MAX);
	n = ~found ? min_u32(depth, (uint32_t)__builtin_ctzll(~found)) : depth;
	if (n) {
		*ret = rpc_arena_array(a, n, sizeof(**ret));
		if (!*ret)
			return -ENOMEM;
	}
	for (; *ret_n < n; (*ret_n)++)
		(*ret)[*ret_n] = (struct rpc_caller){ .address = addresses[*ret_n] };
	return n < depth ? -ENODATA : 0;
}

/* ------------------------------------------------------------------ instructions ------------- */

static size_t read_section(const struct corefile_elf *e, uint32_t i, uint64_t address, void *buf,
			   size_t size)
{
	struct corefile_blob b;
	Elf64_Shdr s;

	corefile_elf_section(e, i, &s);
	if (!(s.sh_flags & SHF_EXECINSTR) || address < s.sh_addr ||
	    address - s.sh_addr >= s.sh_size)
		return 0;
	b.data = corefile_elf_bytes(e, &s, &b.size);
	return b.data ? core_cuda_copy(&b, address - s.sh_addr, buf, size) : 0;
}

size_t core_cuda_read_code(const struct core_cuda *c, uint64_t address, void *buf, size_t size)
{
	size_t n = 0;

	for (uint32_t row = 0; n == 0 && row < c->core.n[CUDACORE_MODULES]; row++) {
		const struct corefile_blob *image = &c->core.modules[row].relocated;
		struct corefile_elf e;

		if (corefile_elf_open(image->data, image->size, &e, NULL) < 0)
			continue;
		for (uint32_t i = 0; n == 0 && i < e.n_sections; i++)
			n = read_section(&e, i, address, buf, size);
	}
	return n;
}

/* ------------------------------------------------------------------ memory ------------------- */

static const struct cudacore_lane *lane_of(const struct core_cuda *c, const struct cudacore_warp *w,
					   uint32_t number)
{
	for (uint32_t i = w->lanes.first; i < w->lanes.first + w->lanes.n; i++)
		if (c->core.lanes[i].number == number)
			return &c->core.lanes[i];
	return NULL;
}

int core_cuda_wave_memory(struct target *t, const struct target_waves_from *from,
			  const struct target_wave_memory *what, struct rpc_arena *a,
			  struct agent_err *err)
{
	const struct core_cuda *c = core_cuda_of(t);
	const struct cudacore_lane *lane = NULL;
	const struct cudacore_warp *warp;
	const struct wave *wave;
	uint64_t at = what->address;
	size_t n = 0;
	int r = find(c, what->wave, a, &wave, &warp, err);

	if (r < 0)
		return r;
	if (what->space == RPC_MEMORY_SPACE_LDS)
		n = core_cuda_copy(&c->core.blocks[warp->block].shared, at, what->buf, what->size);
	else
		lane = lane_of(c, warp, what->lane);
	/* The local space of a lane need not begin where the core does. */
	if (lane && at >= lane->local_address)
		n = core_cuda_copy(&lane->local, at - lane->local_address, what->buf, what->size);
	if (!n)
		return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, "read memory", NULL,
				     "the core has nothing at 0x%llx of that memory",
				     (unsigned long long)at);
	return (int)n;
}
