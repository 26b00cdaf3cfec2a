/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/registers.h"

#include <errno.h>
#include <string.h>

#include "agentd/worker/snapshot/wave_convert.h"

const struct target_registers_wanted registers_all = { .banks = UINT32_MAX, .count = UINT32_MAX };

int registers_set_wave(const struct registers_builder *b, const struct wave *wave)
{
	struct wave *kept = rpc_arena_array(b->arena, 1, sizeof(*kept));
	struct rpc_wave *converted;

	if (!kept)
		return -ENOMEM;
	/* What was converted points into it. */
	*kept = *wave;
	converted = waves_convert(b->arena, kept, NULL, 1);
	if (!converted)
		return -ENOMEM;
	b->ret->wave = *converted;
	return 0;
}

bool registers_is_wanted(const struct registers_builder *b, enum rpc_register_bank bank)
{
	return b->what->banks >> bank & 1;
}

uint32_t registers_wanted_range(const struct registers_builder *b, uint32_t total,
				uint32_t *ret_first)
{
	uint32_t first = b->what->first < total ? b->what->first : total;

	*ret_first = first;
	return total - first < b->what->count ? total - first : b->what->count;
}

void registers_add(struct rpc_scalar_register *list, size_t *n, const char *name, uint32_t bits,
		   uint64_t value)
{
	if (list)
		list[(*n)++] = (struct rpc_scalar_register){ .name = name, .bits = bits,
							     .value = value };
}

uint64_t *registers_add_vector(const struct registers_builder *b, struct rpc_vector_register *list,
			       size_t *n, const char *name, uint32_t n_lanes)
{
	uint64_t *lanes = list ? rpc_arena_array(b->arena, n_lanes, sizeof(*lanes)) : NULL;

	if (lanes)
		list[(*n)++] = (struct rpc_vector_register){ .name = name, .n_lanes = n_lanes,
							     .lanes = lanes };
	return lanes;
}

static uint32_t *three(struct rpc_arena *a, const uint32_t from[3])
{
	uint32_t *list = rpc_arena_array(a, 3, sizeof(*list));

	if (list)
		memcpy(list, from, 3 * sizeof(*list));
	return list;
}

void registers_set_packet(const struct registers_builder *b, uint64_t kernel_object,
			  const uint32_t workgroup_size[3], const uint32_t grid_size[3])
{
	b->ret->has_packet = true;
	b->ret->packet = (struct rpc_dispatch_packet){
		.kernel_object = kernel_object,
		.n_workgroup_size = 3,
		.workgroup_size = three(b->arena, workgroup_size),
		.n_grid_size = 3,
		.grid_size = three(b->arena, grid_size),
	};
}

void registers_set_cluster(const struct registers_builder *b, const uint32_t size[3], const uint32_t index[3])
{
	b->ret->has_cluster = size || index;
	b->ret->cluster = (struct rpc_cluster){
		.has_size = size,
		.n_size = size ? 3 : 0,
		.size = size ? three(b->arena, size) : NULL,
		.has_index = index,
		.n_index = index ? 3 : 0,
		.index = index ? three(b->arena, index) : NULL,
	};
}

void registers_begin_work_items(const struct registers_builder *b, uint32_t n)
{
	b->ret->has_work_items = true;
	b->ret->work_items = rpc_arena_array(b->arena, n, sizeof(*b->ret->work_items));
}

struct rpc_work_item *registers_add_work_item(const struct registers_builder *b, uint32_t lane,
					      const uint32_t in_group[3], const uint32_t global[3])
{
	struct rpc_work_item *item = b->ret->work_items;

	if (!item)
		return NULL;
	item += b->ret->n_work_items++;
	*item = (struct rpc_work_item){ .lane = lane,
					.n_in_group = 3,
					.in_group = three(b->arena, in_group),
					.n_global = 3,
					.global = three(b->arena, global) };
	return item;
}
