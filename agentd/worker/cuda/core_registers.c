/* SPDX-License-Identifier: MIT */
/* A CUDA core as a target: registers and memory of one warp, instructions. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "agentd/worker/convergence/convergence.h"
#include "agentd/worker/cuda/core_read.h"
#include "base/elf_view.h"

/* ------------------------------------------------------------------ registers ---------------- */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* @return how many of them the core has; the others are 0. */
static int copy_words(const struct corefile_blob *b, uint32_t first, uint32_t n, uint32_t *words)
{
	size_t size;

	memset(words, 0, n * sizeof(*words));
	size = core_cuda_copy(b, (uint64_t)first * sizeof(*words), words, n * sizeof(*words));
	for (uint32_t i = 0; i < n; i++)
		words[i] = le32toh(words[i]);
	return (int)(size / sizeof(*words));
}

static int read_words(const void *ctx, enum cuda_words what, uint32_t lane, uint32_t first,
		      uint32_t n, uint32_t *words)
{
	static const struct cudacore_lane none;
	const struct core_cuda_warp *w = ctx;
	const struct cudacore_lane *l = w->lanes[lane] ? w->lanes[lane] : &none;

	switch (what) {
	case CUDA_WORDS_REGISTERS:
		return copy_words(&l->registers, first, n, words);
	case CUDA_WORDS_PREDICATES:
		return copy_words(&l->predicates, first, n, words);
	case CUDA_WORDS_UNIFORM_REGISTERS:
		return copy_words(&w->row->uniform_registers, first, n, words);
	case CUDA_WORDS_UNIFORM_PREDICATES:
		return copy_words(&w->row->uniform_predicates, first, n, words);
	case CUDA_WORDS_CC:
		/*
		 * The field is 0 for chips without the register, as all since Volta are: every
		 * record has the field.
		 */
		*words = l->cc_register;
		return l != &none;
	case CUDA_WORDS_THREAD:
		memcpy(words, l->thread, sizeof(l->thread));
		return (int)n;
	}
	return 0;
}

/* Count the registers that are there: before R525 no core says how many the kernel uses. */
static uint32_t count_registers(const struct core_cuda_warp *w)
{
	const struct cudacore_lane *l = w->lanes[cuda_warp_first_lane(&w->view)];
	uint64_t there = l ? l->registers.size / sizeof(uint32_t) : 0;

	if (w->row->n_registers)
		return w->row->n_registers;
	return there < CUDA_REGISTERS_MAX ? (uint32_t)there : CUDA_REGISTERS_MAX;
}

static struct cudbgshim_grid grid_of(const struct cudacore_grid *g)
{
	if (!g)
		return (struct cudbgshim_grid){ 0 };
	return (struct cudbgshim_grid){ .entry = g->function_entry,
					.grid_dim = core_cuda_dim(g->grid_dim),
					.block_dim = core_cuda_dim(g->block_dim),
					.cluster_dim = core_cuda_dim(g->cluster_dim),
					.preferred_cluster_dim = core_cuda_dim(g->preferred_cluster_dim) };
}

/* A block says which cluster it is in from R525 on, and how large that is from R565 on. */
static void set_cluster(const struct cudacore_block *b, const struct cudbgshim_grid *g, struct core_cuda_warp *ret)
{
	struct cudbgshim_dim3 size = core_cuda_dim(b->cluster_dim);

	if (b->age < CUDACORE_LAYOUT_R525 || (!cuda_is_cluster(&size) && !cuda_is_cluster(&g->cluster_dim)))
		return;
	ret->whole.has |= CUDBGSHIM_WARP_CLUSTER;
	ret->whole.cluster_idx = core_cuda_dim(b->cluster_index);
	if (!cuda_is_cluster(&size))
		return;
	ret->whole.has |= CUDBGSHIM_WARP_CLUSTER_DIM;
	ret->whole.cluster_dim = size;
}

int core_cuda_fill_registers(const struct core_cuda *c, const struct cudacore_warp *row,
			     const struct wave *wave, const struct target_registers_wanted *what,
			     struct rpc_arena *a, struct rpc_wave_registers *ret)
{
	const struct cudacore_device *d = &c->core.devices[wave->gpu_id];
	const struct cudacore_block *b = &c->core.blocks[row->block];
	const struct cudacore_grid *grid = core_cuda_grid(c, wave->gpu_id, b->grid_id);
	struct cudbgshim_grid g = grid_of(grid);
	struct core_cuda_warp w;
	struct cuda_registers_source from = {
		.warp = &w.view,
		.n = { [CUDA_WORDS_PREDICATES] = d->predicates_per_lane,
		       [CUDA_WORDS_UNIFORM_REGISTERS] = d->uniform_registers,
		       [CUDA_WORDS_UNIFORM_PREDICATES] = d->uniform_predicates },
		.is_counted = true,
		.shared_bytes = row->age >= CUDACORE_LAYOUT_R570 ? row->shared_bytes :
								   (uint32_t)b->shared.size,
		.read = read_words,
		.ctx = &w,
	};

	core_cuda_warp_of(c, row, &w);
	from.n[CUDA_WORDS_REGISTERS] = count_registers(&w);
	from.grid = grid ? &g : NULL;
	set_cluster(b, &g, &w);
	return cuda_warp_fill_registers(&from, wave, what, a, ret);
}

/* ------------------------------------------------------------------ what warps wait for ------ */

struct stored {
	struct core_cuda_warp warp;
	const struct cudacore_block *block;
	const struct cudacore_grid *grid; /* NULL: it is not in the core. */
};

static bool copy_registers(const void *ctx, bool is_uniform, uint32_t lane, uint32_t first, uint32_t n, uint32_t *ret)
{
	const struct stored *s = ctx;
	const enum cuda_words what = is_uniform ? CUDA_WORDS_UNIFORM_REGISTERS : CUDA_WORDS_REGISTERS;

	return read_words(&s->warp, what, lane, first, n, ret) == (int)n;
}

static bool copy_shared(const void *ctx, uint32_t lane, uint32_t address, void *buf, uint32_t size)
{
	const struct stored *s = ctx;

	(void)lane;
	return core_cuda_copy(&s->block->shared, address, buf, size) == size;
}

static bool find_cluster(const void *ctx, uint32_t ret[3])
{
	struct stored s = *(const struct stored *)ctx;
	struct cudbgshim_grid g = grid_of(s.grid);

	s.warp.view.whole = &s.warp.whole;
	set_cluster(s.block, &g, &s.warp);
	return s.grid && cuda_warp_cluster(&s.warp.view, &g, ret);
}

static const struct core_cuda_module *module_at(struct core_cuda *c, const struct wave *w)
{
	for (uint32_t i = 0; i < c->core.n[CUDACORE_MODULES]; i++) {
		const struct core_cuda_module *m = &c->modules[i];

		core_cuda_look(c, i);
		if (c->core.contexts[c->core.modules[i].context].device == w->gpu_id &&
		    w->pc >= m->start && w->pc < m->end)
			return m;
	}
	return NULL;
}

int core_cuda_read_mbarriers(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			     struct target_waves *ret, const char **ret_missing)
{
	struct mbarriers m;

	if (mbarriers_begin(&m, a, ret) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++) {
		struct stored s = { .block = &c->core.blocks[w->warps[i]->block],
				    .grid = core_cuda_grid(c, w->waves[i].gpu_id, w->waves[i].dispatch) };
		const struct mbarrier_source from = { copy_registers, copy_shared, find_cluster, &s };
		const struct core_cuda_module *m_at = module_at(c, &w->waves[i]);

		core_cuda_warp_of(c, w->warps[i], &s.warp);
		mbarriers_add(&m, i, s.warp.pcs, s.warp.view.lanes, m_at ? &m_at->mbarriers : NULL, &from, false);
	}
	*ret_missing = mbarriers_missing(&m, a);
	return 0;
}

/* ------------------------------------------------------------------ for which lanes ---------- */

struct apart {
	const struct core_cuda *c;
	const struct core_cuda_waves *waves;
};

/* Cores before R575 have no masks, nor has one of a process whose driver did not tell them. */
static bool is_apart(const void *ctx, uint32_t wave)
{
	const struct core_cuda_waves *w = ((const struct apart *)ctx)->waves;
	const struct cudacore_warp *row = w->warps[wave];

	return wave_n_parts(&w->waves[wave]) && row->valid_lanes & ~row->active_lanes &&
	       row->barriers.size >= TARGET_CONVERGENCE_BARRIERS * sizeof(uint32_t);
}

static int read_convergence(const void *ctx, struct target_convergence *to, uint32_t n)
{
	const struct apart *p = ctx;

	for (uint32_t i = 0; i < n; i++) {
		const struct cudacore_warp *row = p->waves->warps[to[i].wave];
		uint32_t *at = to[i].words;
		struct core_cuda_warp w;

		core_cuda_warp_of(p->c, row, &w);
		*at++ = row->cbu_active;
		*at++ = row->cbu_exited;
		*at++ = row->cbu_collective;
		copy_words(&row->barriers, 0, TARGET_CONVERGENCE_BARRIERS, at);
		at += TARGET_CONVERGENCE_BARRIERS;
		for (uint32_t lane = 0; lane < CUDBGSHIM_MAX_LANES; lane++)
			*at++ = w.lanes[lane] ? w.lanes[lane]->cbu_state : 0;
	}
	return 0;
}

_Static_assert(3 + TARGET_CONVERGENCE_BARRIERS + CUDBGSHIM_MAX_LANES == TARGET_CONVERGENCE_WORDS, "all words are read");

const char *core_cuda_read_convergence(const struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
				       struct target_waves *ret)
{
	const struct apart apart = { .c = c, .waves = w };
	const struct convergence_source from = { is_apart, read_convergence, &apart };

	return convergence_read(&from, UINT64_MAX, a, ret);
}

/* ------------------------------------------------------------------ finding it --------------- */

/* Search where the name says, or everywhere.  @return 0, -ENOENT, -ENOMEM. */
static int search(const struct core_cuda *c, const struct rpc_wave_name *n, const uint32_t *sm, struct rpc_arena *a,
		  const struct wave **ret_wave, const struct cudacore_warp **ret_warp)
{
	struct core_cuda_waves w;

	if (core_cuda_make_waves(c, sm, a, &w) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < w.n; i++)
		if (wave_is_named(&w.waves[i], n)) {
			*ret_wave = &w.waves[i];
			*ret_warp = w.warps[i];
			return 0;
		}
	return -ENOENT;
}

static int find(const struct core_cuda *c, const struct rpc_wave_name *n, struct rpc_arena *a,
		const struct wave **ret_wave, const struct cudacore_warp **ret_warp,
		struct agent_err *err)
{
	int r;

	if (wave_name_check(n, "params.wave", err) < 0)
		return -EINVAL;
	r = search(c, n, &n->unit, a, ret_wave, ret_warp);
	/* What a wave works on names it wherever it is. */
	if (r == -ENOENT && wave_name_lasts(n))
		r = search(c, n, NULL, a, ret_wave, ret_warp);
	if (r == -ENOENT)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, "find the wave",
				     "gpu.snapshot with waves lists those there are",
				     "queue %u, unit %u has no such wave", n->queue_id, n->unit);
	return r < 0 ? agent_err_no_memory(err, NULL) : 0;
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
		return agent_err_no_memory(err, NULL);
	ret->has_callers = ret->n_callers;
	return 0;
}

/* ------------------------------------------------------------------ callers ------------------ */

/*
 * Sort the callers by their level, in whatever order their rows are; of two rows for one level the
 * last counts.
 */
static uint64_t find_levels(const struct core_cuda *c, const struct cudacore_lane *l,
			    uint64_t addresses[CUDA_CALLERS_MAX])
{
	uint64_t found = 0;

	for (uint32_t i = l->frames.first; i < l->frames.first + l->frames.n; i++) {
		const struct cudacore_frame *f = &c->core.frames[i];

		if (f->level >= CUDA_CALLERS_MAX)
			continue;
		addresses[f->level] = f->return_address;
		found |= UINT64_C(1) << f->level;
	}
	return found;
}

int core_cuda_read_callers(const struct core_cuda *c, const struct cudacore_warp *row,
			   struct rpc_arena *a, struct rpc_caller **ret, size_t *ret_n)
{
	uint64_t addresses[CUDA_CALLERS_MAX], found;
	const struct cudacore_lane *l;
	struct core_cuda_warp w;
	uint32_t depth, n;

	*ret = NULL;
	*ret_n = 0;
	core_cuda_warp_of(c, row, &w);
	l = w.lanes[cuda_warp_speaker(&w.view)];
	if (!l)
		return 0;
	found = find_levels(c, l, addresses);
	depth = min_u32(l->call_depth, CUDA_CALLERS_MAX);
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

static size_t read_section(const struct elf_view *e, uint32_t i, uint64_t address, void *buf,
			   size_t size)
{
	Elf64_Shdr s = elf_view_section(e, i);
	struct corefile_blob b;

	if (!(s.sh_flags & SHF_EXECINSTR) || address < s.sh_addr ||
	    address - s.sh_addr >= s.sh_size)
		return 0;
	b.data = elf_view_bytes(e, &s, &b.size);
	return b.data ? core_cuda_copy(&b, address - s.sh_addr, buf, size) : 0;
}

size_t core_cuda_read_code(const struct core_cuda *c, uint64_t address, void *buf, size_t size)
{
	size_t n = 0;

	for (uint32_t row = 0; n == 0 && row < c->core.n[CUDACORE_MODULES]; row++) {
		const struct corefile_blob *image = &c->core.modules[row].relocated;
		struct elf_view e;

		if (elf_view_init(&e, image->data, image->size) < 0)
			continue;
		for (uint32_t i = 0; n == 0 && i < e.n_sections; i++)
			n = read_section(&e, i, address, buf, size);
	}
	return n;
}

/* ------------------------------------------------------------------ memory ------------------- */

/* Bytes of a window of generic addresses, as cuda-gdb has it. */
#define WINDOW_BYTES (UINT64_C(16) << 20)

/* A read of memory that a warp sees. */
struct transfer {
	const struct core_cuda *c;
	const struct target_wave_memory *what;
	const struct core_cuda_warp *warp;
	const struct cudacore_block *block;
	const struct cudacore_grid *grid; /* NULL: it is not in the core. */
	const char *problem;		  /* Why nothing was read, if more is known than that. */
};

static size_t read_shared(const struct transfer *t, uint64_t at)
{
	return core_cuda_copy(&t->block->shared, at, t->what->buf, t->what->size);
}

/* The local space of a lane need not begin where the core's copy of it does. */
static size_t copy_local(const struct cudacore_lane *lane, uint64_t at, void *buf, uint32_t size)
{
	if (!lane || at < lane->local_address)
		return 0;
	return core_cuda_copy(&lane->local, at - lane->local_address, buf, size);
}

static size_t read_local(const struct transfer *t, uint64_t at)
{
	return copy_local(t->warp->lanes[t->what->lane], at, t->what->buf, t->what->size);
}

static size_t read_bank(struct transfer *t, uint32_t bank, uint64_t at)
{
	const struct cudacore_grid *g = t->grid;

	for (uint32_t i = g ? g->banks.first : 0; g && i < g->banks.first + g->banks.n; i++) {
		const struct cudacore_bank *b = &t->c->core.banks[i];
		uint64_t left = b->id == bank && at < b->size ? b->size - at : 0;

		if (left)
			return cudacore_read_memory(&t->c->core, b->address + at, t->what->buf,
						    left < t->what->size ? (size_t)left : t->what->size);
	}
	t->problem = "of that bank of the kernel, the core has less";
	return 0;
}

/* Parameters lie in constant bank 0 as well. */
static size_t read_parameters(struct transfer *t, uint64_t at)
{
	size_t n = 0;

	if (t->grid && at >= t->grid->params_offset)
		n = core_cuda_copy(&t->grid->params, at - t->grid->params_offset, t->what->buf,
				   t->what->size);
	if (!n && t->grid)
		n = read_bank(t, 0, at);
	t->problem = NULL;
	return n;
}

static const struct cudacore_context *context_of(const struct transfer *t)
{
	for (uint32_t i = 0; t->grid && i < t->c->core.n[CUDACORE_CONTEXTS]; i++)
		if (t->c->core.contexts[i].id == t->grid->context_id &&
		    t->c->core.contexts[i].device == t->grid->device)
			return &t->c->core.contexts[i];
	return NULL;
}

static bool in_window(uint64_t base, uint64_t at)
{
	return base && at >= base && at - base < WINDOW_BYTES;
}

static size_t read_generic(struct transfer *t, uint64_t at)
{
	const struct cudacore_context *x = context_of(t);
	size_t n;

	if (x && in_window(x->shared_window, at))
		return read_shared(t, at - x->shared_window);
	if (x && in_window(x->local_window, at))
		return read_local(t, at - x->local_window);
	n = cudacore_read_memory(&t->c->core, at, t->what->buf, t->what->size);
	if (!n && (!x || !x->shared_window || !x->local_window))
		t->problem = "nor does it say at which generic addresses shared and local memory are";
	return n;
}

static size_t read_space(struct transfer *t)
{
	uint64_t at = t->what->address;

	switch (t->what->space) {
	case RPC_MEMORY_SPACE_LDS:
		return read_shared(t, at);
	case RPC_MEMORY_SPACE_SCRATCH:
		return read_local(t, at);
	case RPC_MEMORY_SPACE_PARAM:
		return read_parameters(t, at);
	case RPC_MEMORY_SPACE_CONSTANT:
		return read_bank(t, t->what->bank, at);
	case RPC_MEMORY_SPACE_GENERIC:
		return read_generic(t, at);
	case RPC_MEMORY_SPACE_CODE:
		return core_cuda_read_code(t->c, at, t->what->buf, t->what->size);
	default:
		return 0;
	}
}

/* Copy memory of several lanes.  @return the most that one has. */
static size_t copy_lanes(const struct transfer *t)
{
	const struct target_wave_memory *all = t->what;
	size_t most = 0;

	for (uint64_t left = all->lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);
		struct target_wave_memory what = *all;
		struct transfer one = *t;
		size_t n = 0;

		what.lane = lane;
		what.address = all->addresses ? all->addresses[lane] : all->address;
		what.buf = (uint8_t *)all->buf + (size_t)lane * all->size;
		one.what = &what;
		if (lane < CUDBGSHIM_MAX_LANES)
			n = read_space(&one);
		all->got[lane] = (uint32_t)n;
		most = n > most ? n : most;
	}
	return most;
}

/* ------------------------------------------------------------------ what warps poll ---------- */

static bool copy_register(const void *ctx, bool is_uniform, uint32_t lane, uint32_t number, uint32_t *ret)
{
	const struct transfer *t = ctx;
	const enum cuda_words what = is_uniform ? CUDA_WORDS_UNIFORM_REGISTERS : CUDA_WORDS_REGISTERS;

	return read_words(t->warp, what, lane, number, 1, ret) == 1;
}

static bool copy_space(const void *ctx, enum rpc_memory_space space, uint32_t lane, uint64_t address, void *buf,
		       uint32_t size)
{
	const struct target_wave_memory what = { .space = space, .lane = lane, .address = address, .buf = buf,
						 .size = size };
	struct transfer t = *(const struct transfer *)ctx;

	t.what = &what;
	return read_space(&t) == size;
}

static bool copy_argument(const void *ctx, uint32_t offset, uint32_t *ret)
{
	bool good = copy_space(ctx, RPC_MEMORY_SPACE_PARAM, 0, offset, ret, sizeof(*ret));

	*ret = le32toh(*ret);
	return good;
}

static bool copy_polled(const void *ctx, enum waits_sass_space space, uint32_t lane, uint64_t address, void *buf,
			uint32_t size, bool *ret_is_host)
{
	const struct transfer *t = ctx;

	*ret_is_host = false;
	if (space == WAITS_SASS_GLOBAL)
		return cudacore_read_memory(&t->c->core, address, buf, size) == size;
	return copy_space(ctx, space == WAITS_SASS_SHARED ? RPC_MEMORY_SPACE_LDS : RPC_MEMORY_SPACE_GENERIC, lane,
			  address, buf, size);
}

static bool copy_grid(const void *ctx, uint32_t ret[3])
{
	const struct transfer *t = ctx;

	if (t->grid)
		memcpy(ret, t->grid->grid_dim, 3 * sizeof(*ret));
	return t->grid;
}

int core_cuda_read_spins(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			 struct target_waves *ret, const char *ret_missing[SPINS_MISSING_MAX])
{
	struct spins s;

	if (spins_begin(&s, a, ret) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->n; i++) {
		const struct core_cuda_module *m = module_at(c, &w->waves[i]);
		struct core_cuda_warp warp;
		const struct transfer t = { .c = c, .warp = &warp, .block = &c->core.blocks[w->warps[i]->block],
					    .grid = core_cuda_grid(c, w->waves[i].gpu_id, w->waves[i].dispatch) };
		const struct spin_source from = { copy_register, copy_argument, copy_polled, copy_grid, &t };

		core_cuda_warp_of(c, w->warps[i], &warp);
		spins_add(&s, i, warp.view.pcs, warp.view.lanes, m ? &m->spins : NULL, &from, false);
	}
	spins_missing(&s, a, ret_missing);
	return 0;
}

/* ------------------------------------------------------------------ one warp's memory -------- */

int core_cuda_wave_memory(struct target *t, const struct target_waves_from *from,
			  const struct target_wave_memory *what, struct rpc_arena *a,
			  struct agent_err *err)
{
	const struct core_cuda *c = core_cuda_of(t);
	const struct cudacore_warp *row;
	const struct wave *wave;
	struct core_cuda_warp w;
	struct transfer transfer = { .c = c, .what = what, .warp = &w };
	size_t n;
	int r = find(c, what->wave, a, &wave, &row, err);

	if (r < 0)
		return r;
	if (!what->lanes && what->lane >= CUDBGSHIM_MAX_LANES)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, "read memory", NULL,
				     "params.lane: the wave has only %u lanes", CUDBGSHIM_MAX_LANES);
	core_cuda_warp_of(c, row, &w);
	transfer.block = &c->core.blocks[row->block];
	transfer.grid = core_cuda_grid(c, w.view.gpu_id, transfer.block->grid_id);
	n = what->lanes ? copy_lanes(&transfer) : read_space(&transfer);
	if (!n)
		return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, "read memory", NULL,
				     "the core has nothing at 0x%llx of that memory%s%s",
				     (unsigned long long)what->address,
				     transfer.problem ? ": " : "",
				     transfer.problem ? transfer.problem : "");
	return (int)n;
}
