/* SPDX-License-Identifier: MIT */
/*
 * The parameters of kernels.  Only a stopped device shows them, so their bytes are copied during
 * the stop, and what they mean is found out afterwards.  Those of NCCL's kernels lead to memory of the
 * device, which is read at once.
 */
#include "agentd/worker/cuda/cuda.h"

#include "base/clock.h"

/* Time for images that are new, before the devices stop. */
#define PREPARE_MS 200
/* Most dispatches whose parameters are copied, unless all are wanted, and then. */
#define DISPATCHES_MAX     16u
#define DISPATCHES_ALL_MAX 1024u

struct copying {
	struct target_cuda *c;
	struct rpc_arena *a;
	struct target_waves *ret;
	uint64_t deadline_ns;
	size_t max;
	bool late;
};

void cuda_arguments_prepare(struct target_cuda *c)
{
	uint64_t deadline = clock_deadline_ms(PREPARE_MS);

	/* Devices that have stopped at a fault must not wait. */
	for (size_t i = 0; !c->wants_resume && i < c->n_modules && clock_now_ns() < deadline; i++)
		cuda_code_look(c, &c->modules[i]);
}

const struct values_kernel *cuda_arguments_of(struct target_cuda *c, uint32_t dev,
					      const struct cudbgshim_grid *g)
{
	for (size_t i = 0; i < c->n_modules; i++) {
		struct cuda_module *m = &c->modules[i];
		const struct values_kernel *k;

		if (m->dev != dev || m->module != g->module)
			continue;
		cuda_code_look(c, m);
		k = values_kernels_at(&m->kernels, g->entry);
		if (k)
			return k;
	}
	return NULL;
}

/* The driver shows them as a space of their own, or else as part of constant bank 0. */
bool cuda_arguments_read(struct target_cuda *c, const struct cudbgshim_place *at, uint64_t grid,
			 const struct values_kernel *k, uint8_t *buf)
{
	uint64_t bank;
	uint32_t size;

	if (cudbgshim_read_memory(c->shim, CUDBGSHIM_SPACE_PARAM, at, k->base, buf, k->size) == 0)
		return true;
	return cudbgshim_get_const_bank(c->shim, at, grid, 0, &bank, &size) == 0 &&
	       (uint64_t)k->base + k->size <= size &&
	       cudbgshim_read_memory(c->shim, CUDBGSHIM_SPACE_GLOBAL, at, bank + k->base, buf,
				     k->size) == 0;
}

static bool is_known(const struct target_waves *w, const struct wave *of)
{
	for (size_t i = w->n_arguments; i--;)
		if (w->arguments[i].dispatch == of->dispatch &&
		    w->arguments[i].gpu_id == of->gpu_id)
			return true;
	return false;
}

/* What cannot be read is in the list, too: it has no other place. */
static void copy(struct copying *y, const struct wave *w)
{
	const struct cudbgshim_place at = { .dev = w->gpu_id, .sm = w->unit, .warp = w->index };
	struct target_waves *ret = y->ret;
	struct target_arguments *to = &ret->arguments[ret->n_arguments];
	const struct values_kernel *k;
	struct cudbgshim_grid grid;
	uint8_t *buf;

	if (!w->has_dispatch || !w->kernel_handle || ret->n_arguments == y->max || is_known(ret, w))
		return;
	y->late = y->late || clock_now_ns() >= y->deadline_ns;
	if (y->late || cudbgshim_get_grid(y->c->shim, w->gpu_id, w->dispatch, &grid) < 0)
		return;
	k = cuda_arguments_of(y->c, w->gpu_id, &grid);
	buf = k ? rpc_arena_array(y->a, k->size, 1) : NULL;
	if (!buf)
		return;
	*to = (struct target_arguments){ .gpu_id = w->gpu_id,
					 .queue_id = w->queue_id,
					 .dispatch = w->dispatch };
	ret->n_arguments++;
	if (!cuda_arguments_read(y->c, &at, w->dispatch, k, buf))
		return;
	to->bytes = buf;
	to->size = k->size;
}

void cuda_arguments_copy(struct target_cuda *c, const struct target_waves_from *from,
			 uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret)
{
	struct wave *chosen[WAVES_REPRESENTATIVES_MAX];
	size_t n = waves_choose_representatives(ret->waves, ret->n_waves, chosen);
	struct copying y = { .c = c,
			     .a = a,
			     .ret = ret,
			     .deadline_ns = deadline_ns,
			     .max = from->all_arguments ? DISPATCHES_ALL_MAX : DISPATCHES_MAX };

	ret->arguments = rpc_arena_array(a, y.max, sizeof(*ret->arguments));
	if (!ret->arguments)
		return;
	for (size_t i = 0; i < n; i++)
		copy(&y, chosen[i]);
	for (size_t i = 0; from->all_arguments && i < ret->n_waves; i++)
		copy(&y, &ret->waves[i]);
	ret->budget_exceeded = ret->budget_exceeded || y.late;
}

/* ------------------------------------------------------------------ NCCL's kernels ----------- */

static bool read_memory(const void *ctx, const struct wave *w, enum nccl_memory of, uint64_t address, void *buf,
			uint32_t size)
{
	const enum cudbgshim_space space = of == NCCL_HOST ? CUDBGSHIM_SPACE_PINNED : CUDBGSHIM_SPACE_GLOBAL;
	const struct target_cuda *c = ctx;
	const struct cudbgshim_place at = { .dev = w->gpu_id, .sm = w->unit, .warp = w->index };

	return cudbgshim_read_memory(c->shim, space, &at, address, buf, size) == 0;
}

static bool read_shared(const void *ctx, const struct wave *w, uint32_t address, void *buf, uint32_t size)
{
	const struct target_cuda *c = ctx;
	const struct cudbgshim_place at = { .dev = w->gpu_id, .sm = w->unit, .warp = w->index };

	return cudbgshim_read_memory(c->shim, CUDBGSHIM_SPACE_SHARED, &at, address, buf, size) == 0;
}

static bool is_sm_90_or_newer(const void *ctx, const struct wave *w)
{
	return cuda_arch_is_sm_90_or_newer(((const struct target_cuda *)ctx)->devices[w->gpu_id].facts.sm_type);
}

void cuda_nccl_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret)
{
	struct nccl_code *code = rpc_arena_array(a, c->n_modules, sizeof(*code));
	struct nccl_source from = { .code = code, .memory = read_memory, .shared = read_shared,
				    .is_sm_90_or_newer = is_sm_90_or_newer, .ctx = c, .deadline_ns = deadline_ns };

	for (size_t i = 0; code && i < c->n_modules; i++)
		from.n_code = nccl_code_add(code, from.n_code, c->modules[i].dev, &c->modules[i].nccl);
	nccl_read(&from, a, ret);
}
