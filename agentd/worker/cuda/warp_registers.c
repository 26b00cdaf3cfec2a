/* SPDX-License-Identifier: MIT */
/* Registers of one warp as the wire says them, whether a driver or a core has them. */
#include <string.h>

#include "agentd/worker/cuda/exception.h"
#include "agentd/worker/cuda/warp.h"
#include "agentd/worker/snapshot/registers.h"

struct filling {
	struct registers_builder b;
	const struct cuda_registers_source *from;
	/* Lanes with values: a core may have rows of more lanes than it says. */
	uint32_t n_lanes, lanes;
};

static uint32_t count_of(const struct cuda_registers_source *from, enum cuda_words what)
{
	bool is_predicate = what == CUDA_WORDS_PREDICATES ||
			    what == CUDA_WORDS_UNIFORM_PREDICATES;
	uint32_t most = is_predicate ? CUDA_PREDICATES_MAX : CUDA_REGISTERS_MAX;

	return from->n[what] < most ? from->n[what] : most;
}

static void fill_special(const struct filling *f, struct rpc_wave_registers *ret)
{
	struct rpc_scalar_register *list = rpc_arena_array(f->b.arena, 8, sizeof(*list));
	const struct cuda_warp *w = f->from->warp;
	size_t *n = &ret->n_special;
	uint32_t cc;

	ret->special = list;
	/* The address of the exception is a register of its own. */
	registers_add(list, n, "pc", 64, w->pcs[cuda_warp_speaker(w)]);
	registers_add(list, n, "active_lanes", 32, w->whole->active_lanes);
	registers_add(list, n, "valid_lanes", 32, w->whole->valid_lanes);
	if (w->whole->has & CUDBGSHIM_WARP_ERROR_PC)
		registers_add(list, n, "error_pc", 64, w->whole->error_pc);
	if (w->whole->has & CUDBGSHIM_WARP_SYSCALL_LANES)
		registers_add(list, n, "syscall_lanes", 32, w->whole->syscall_lanes);
	if (f->from->read(f->from->ctx, CUDA_WORDS_CC, cuda_warp_first_lane(w), 0, 1, &cc) == 1)
		registers_add(list, n, "cc", 32, cc);
}

static void add_uniform(const struct filling *f, enum cuda_words what, const char *letters)
{
	uint32_t words[CUDA_REGISTERS_MAX], n = count_of(f->from, what);
	int got = n ? f->from->read(f->from->ctx, what, 0, 0, n, words) : 0;

	for (int i = 0; i < got; i++)
		registers_add(f->b.ret->scalar, &f->b.ret->n_scalar,
			      rpc_arena_printf(f->b.arena, "%s%d", letters, i), 32, words[i]);
}

/* Fill in what has one value for the warp. */
static void fill_scalar(const struct filling *f, struct rpc_wave_registers *ret)
{
	uint32_t n = count_of(f->from, CUDA_WORDS_UNIFORM_REGISTERS) +
		     count_of(f->from, CUDA_WORDS_UNIFORM_PREDICATES);

	ret->scalar = rpc_arena_array(f->b.arena, n, sizeof(*ret->scalar));
	add_uniform(f, CUDA_WORDS_UNIFORM_REGISTERS, "UR");
	add_uniform(f, CUDA_WORDS_UNIFORM_PREDICATES, "UP");
}

#define MISSING_MAX 3u /* Registers, predicates, exceptions. */

static void add_missing(const struct filling *f, const char *text)
{
	struct rpc_wave_registers *ret = f->b.ret;

	if (!ret->missing)
		ret->missing = rpc_arena_array(f->b.arena, MISSING_MAX, sizeof(*ret->missing));
	if (!ret->missing || !text)
		return;
	ret->has_missing = true;
	ret->missing[ret->n_missing++] = text;
}

/* @param ret_got  How many registers there are, by lane.  @return 0, or negative. */
static int add_vectors(const struct filling *f, enum cuda_words what, const char *letter,
		       uint32_t first, uint32_t n, uint32_t ret_got[CUDBGSHIM_MAX_LANES])
{
	struct rpc_wave_registers *ret = f->b.ret;
	struct rpc_vector_register *list = ret->vector + ret->n_vector;
	uint32_t words[CUDA_REGISTERS_MAX];

	for (uint32_t i = 0; i < n; i++)
		if (!registers_add_vector(&f->b, ret->vector, &ret->n_vector,
					  rpc_arena_printf(f->b.arena, "%s%u", letter, first + i),
					  f->n_lanes))
			return rpc_arena_error(f->b.arena);
	for (uint32_t left = n ? f->lanes : 0; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left);
		int got = f->from->read(f->from->ctx, what, lane, first, n, words);

		if (got < 0)
			return got;
		ret_got[lane] = (uint32_t)got;
		for (uint32_t i = 0; i < n; i++)
			list[i].lanes[lane] = words[i];
	}
	return 0;
}

/*
 * Drop what no lane has, and say which lanes lack some.  From 13.2 on the driver may give fewer than
 * were asked for, also for some lanes only, and a core has what its writer got.
 */
static void drop_unread(const struct filling *f, enum cuda_words what, uint32_t first, uint32_t n,
			const uint32_t got[CUDBGSHIM_MAX_LANES])
{
	const bool is_predicate = what == CUDA_WORDS_PREDICATES;
	struct rpc_wave_registers *ret = f->b.ret;
	uint32_t most = 0, fewest = n, lanes = 0;

	for (uint32_t left = f->lanes; left; left &= left - 1) {
		uint32_t of_lane = got[__builtin_ctz(left)];

		most = of_lane > most ? of_lane : most;
		fewest = of_lane < fewest ? of_lane : fewest;
	}
	ret->n_vector -= n - most;
	if (!is_predicate && !f->from->is_counted && most < n) {
		n = most;
		ret->vector_count = first + most;
	}
	for (uint32_t left = f->lanes; left; left &= left - 1)
		if (got[__builtin_ctz(left)] < n)
			lanes |= UINT32_C(1) << __builtin_ctz(left);
	if (!lanes)
		return;
	add_missing(f, rpc_arena_printf(f->b.arena,
					"registers from %c%u on, of lanes 0x%x: the driver does "
					"not give them",
					is_predicate ? 'P' : 'R', first + fewest, lanes));
}

static int fill_vector(const struct filling *f, struct rpc_wave_registers *ret)
{
	uint32_t first, n = registers_wanted_range(&f->b, ret->vector_count, &first);
	uint32_t n_p = f->b.what->first ? 0 : count_of(f->from, CUDA_WORDS_PREDICATES);
	uint32_t got[CUDBGSHIM_MAX_LANES] = { 0 };
	int r;

	ret->vector = rpc_arena_array(f->b.arena, n + n_p, sizeof(*ret->vector));
	if (!ret->vector)
		return rpc_arena_error(f->b.arena);
	r = add_vectors(f, CUDA_WORDS_REGISTERS, "R", first, n, got);
	if (r < 0)
		return r;
	if (n)
		drop_unread(f, CUDA_WORDS_REGISTERS, first, n, got);
	r = add_vectors(f, CUDA_WORDS_PREDICATES, "P", 0, n_p, got);
	if (r == 0 && n_p)
		drop_unread(f, CUDA_WORDS_PREDICATES, 0, n_p, got);
	return r;
}

static void fill_work_items(const struct filling *f)
{
	const struct cudbgshim_dim3 *dim = &f->from->grid->block_dim;
	const struct cuda_warp *w = f->from->warp;

	registers_begin_work_items(&f->b, CUDBGSHIM_MAX_LANES);
	for (uint32_t left = w->lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left), in[3] = { 0 };
		const struct cuda_exception *e = cuda_exception(cuda_warp_exception(w, lane));
		struct rpc_work_item *item;

		(void)f->from->read(f->from->ctx, CUDA_WORDS_THREAD, lane, 0, 3, in);
		item = registers_add_work_item(&f->b, lane, in,
					       (uint32_t[]){ w->whole->block.x * dim->x + in[0],
							     w->whole->block.y * dim->y + in[1],
							     w->whole->block.z * dim->z + in[2] });
		if (!item)
			return;
		item->has_pc = true;
		item->pc = w->pcs[lane];
		item->exception = e ? e->text : NULL;
	}
}

static void fill_packet(const struct filling *f, const struct cudbgshim_grid *g)
{
	const struct cudbgshim_dim3 *dim = &g->block_dim;
	/* A grid may have more threads along x than the number can say; those along y and z are fewer. */
	uint64_t x = (uint64_t)g->grid_dim.x * dim->x;

	registers_set_packet(&f->b, g->entry, (uint32_t[]){ dim->x, dim->y, dim->z },
			     (uint32_t[]){ x < UINT32_MAX ? (uint32_t)x : UINT32_MAX, g->grid_dim.y * dim->y,
					   g->grid_dim.z * dim->z });
	f->b.ret->packet.group_segment_bytes = f->from->shared_bytes;
	if (f->b.what->work_items)
		fill_work_items(f);
}

/* @return the size of the warp's cluster; NULL: it is in none, or of one of two sizes that the kernel may have. */
static const struct cudbgshim_dim3 *cluster_size(const struct cuda_registers_source *from)
{
	const struct cudbgshim_warp *w = from->warp->whole;
	const struct cudbgshim_grid *g = from->grid;

	if (w->has & CUDBGSHIM_WARP_CLUSTER_DIM)
		return &w->cluster_dim;
	if (!g || !cuda_is_cluster(&g->cluster_dim) ||
	    (cuda_is_cluster(&g->preferred_cluster_dim) &&
	     memcmp(&g->preferred_cluster_dim, &g->cluster_dim, sizeof(g->cluster_dim))))
		return NULL;
	return &g->cluster_dim;
}

static void fill_cluster(const struct filling *f)
{
	const struct cudbgshim_dim3 *size = cluster_size(f->from);
	const struct cudbgshim_warp *w = f->from->warp->whole;

	registers_set_cluster(&f->b, size ? (uint32_t[]){ size->x, size->y, size->z } : NULL,
			      w->has & CUDBGSHIM_WARP_CLUSTER ?
				      (uint32_t[]){ w->cluster_idx.x, w->cluster_idx.y, w->cluster_idx.z } :
				      NULL);
}

int cuda_warp_fill_registers(const struct cuda_registers_source *from, const struct wave *wave,
			     const struct target_registers_wanted *what, struct rpc_arena *a,
			     struct rpc_wave_registers *ret)
{
	const struct cuda_warp *w = from->warp;
	uint32_t n_lanes = w->n_lanes < CUDBGSHIM_MAX_LANES ? w->n_lanes : CUDBGSHIM_MAX_LANES;
	const struct filling f = { .b = { a, what, ret }, .from = from, .n_lanes = n_lanes,
				   .lanes = w->lanes & (uint32_t)((UINT64_C(1) << n_lanes) - 1) };
	int r;

	*ret = (struct rpc_wave_registers){
		.vector_count = count_of(from, CUDA_WORDS_REGISTERS),
		.lds_bytes = from->shared_bytes,
		.scratch = true,
	};
	r = registers_set_wave(&f.b, wave);
	if (r < 0)
		return r;
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_SPECIAL))
		fill_special(&f, ret);
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_SCALAR))
		fill_scalar(&f, ret);
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_VECTOR))
		r = fill_vector(&f, ret);
	if (from->grid)
		fill_packet(&f, from->grid);
	fill_cluster(&f);
	if (from->no_lanes)
		add_missing(&f, "exception: which lanes raised it: the driver does not say");
	return r < 0 ? r : rpc_arena_error(a);
}
