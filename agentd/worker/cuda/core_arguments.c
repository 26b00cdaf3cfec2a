/* SPDX-License-Identifier: MIT */
/* The parameters of kernels in a core: a section of the grid has them, or else constant bank 0. */
#include <errno.h>

#include "agentd/worker/cuda/core_read.h"

/* As live: no more dispatches than somebody looks at, unless all are wanted, and then. */
#define DISPATCHES_MAX     16u
#define DISPATCHES_ALL_MAX 1024u

static const struct values_kernel *find_kernel(struct core_cuda *c, const struct cudacore_grid *g)
{
	for (uint32_t i = 0; i < c->core.n[CUDACORE_MODULES]; i++) {
		const struct cudacore_module *m = &c->core.modules[i];
		const struct values_kernel *k;

		if (m->handle != g->module_handle ||
		    c->core.contexts[m->context].device_row != g->device)
			continue;
		core_cuda_look(c, i);
		k = values_kernels_at(&c->modules[i].kernels, g->function_entry);
		if (k)
			return k;
	}
	return NULL;
}

/* @return how many bytes were read. */
static size_t read_bank(const struct core_cuda *c, const struct cudacore_grid *g,
			const struct values_kernel *k, uint8_t *buf)
{
	for (uint32_t i = g->banks.first; i < g->banks.first + g->banks.n; i++)
		if (c->core.banks[i].id == 0 && (uint64_t)k->base + k->size <= c->core.banks[i].size)
			return cudacore_read_memory(&c->core, c->core.banks[i].address + k->base,
						    buf, k->size);
	return 0;
}

static void read_parameters(const struct core_cuda *c, const struct cudacore_grid *g,
			    const struct values_kernel *k, struct rpc_arena *a,
			    struct target_arguments *to)
{
	uint8_t *buf = rpc_arena_array(a, k->size, 1);
	size_t n = 0;

	if (!buf)
		return;
	if (k->base >= g->params_offset)
		n = core_cuda_copy(&g->params, k->base - g->params_offset, buf, k->size);
	if (!n)
		n = read_bank(c, g, k, buf);
	to->bytes = n ? buf : NULL;
	to->size = (uint32_t)n;
}

static bool is_known(const struct target_waves *w, const struct wave *of)
{
	for (size_t i = w->n_arguments; i--;)
		if (w->arguments[i].dispatch == of->dispatch &&
		    w->arguments[i].gpu_id == of->gpu_id)
			return true;
	return false;
}

static void add(struct core_cuda *c, const struct wave *w, size_t max, struct rpc_arena *a,
		struct target_waves *ret)
{
	const struct cudacore_grid *g;
	const struct values_kernel *k;

	if (ret->n_arguments == max || is_known(ret, w))
		return;
	g = core_cuda_grid(c, w->gpu_id, w->dispatch);
	k = g ? find_kernel(c, g) : NULL;
	if (!k)
		return;
	ret->arguments[ret->n_arguments] = (struct target_arguments){ .gpu_id = w->gpu_id,
								      .queue_id = w->queue_id,
								      .dispatch = w->dispatch };
	read_parameters(c, g, k, a, &ret->arguments[ret->n_arguments++]);
}

int core_cuda_read_arguments(struct core_cuda *c, const struct core_cuda_waves *w, bool all,
			     struct rpc_arena *a, struct target_waves *ret)
{
	struct wave *chosen[WAVES_REPRESENTATIVES_MAX];
	size_t n = waves_choose_representatives(w->waves, w->n, chosen);
	size_t max = all ? DISPATCHES_ALL_MAX : DISPATCHES_MAX;

	ret->arguments = rpc_arena_array(a, max, sizeof(*ret->arguments));
	if (!ret->arguments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		add(c, chosen[i], max, a, ret);
	for (size_t i = 0; all && i < w->n; i++)
		add(c, &w->waves[i], max, a, ret);
	return 0;
}

/* ------------------------------------------------------------------ NCCL's kernels ----------- */

struct stored {
	const struct core_cuda *c;
	const struct core_cuda_waves *w;
};

/* A core does not say which memory it was. */
static bool read_memory(const void *ctx, const struct wave *w, enum nccl_memory of, uint64_t address, void *buf,
			uint32_t size)
{
	const struct stored *s = ctx;

	(void)w;
	return of == NCCL_DEVICE && cudacore_read_memory(&s->c->core, address, buf, size) == size;
}

static bool read_shared(const void *ctx, const struct wave *w, uint32_t address, void *buf, uint32_t size)
{
	const struct stored *s = ctx;
	const struct cudacore_warp *row = s->w->warps[w - s->w->waves];

	return core_cuda_copy(&s->c->core.blocks[row->block].shared, address, buf, size) == size;
}

static bool is_sm_90_or_newer(const void *ctx, const struct wave *w)
{
	const char *arch = ((const struct stored *)ctx)->c->core.devices[w->gpu_id].sm_type;

	return arch && cuda_arch_is_sm_90_or_newer(arch);
}

void core_cuda_read_nccl(struct core_cuda *c, const struct core_cuda_waves *w, struct rpc_arena *a,
			 struct target_waves *ret)
{
	const struct stored stored = { c, w };
	const uint32_t n = c->core.n[CUDACORE_MODULES];
	struct nccl_code *code = rpc_arena_array(a, n, sizeof(*code));
	struct nccl_source from = { .code = code, .memory = read_memory, .shared = read_shared,
				    .is_sm_90_or_newer = is_sm_90_or_newer, .ctx = &stored };

	for (uint32_t i = 0; code && i < n; i++) {
		core_cuda_look(c, i);
		from.n_code = nccl_code_add(code, from.n_code, c->core.contexts[c->core.modules[i].context].device,
					    &c->modules[i].nccl);
	}
	nccl_read(&from, a, ret);
}
