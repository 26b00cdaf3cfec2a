/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/built_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const built_in_names[VALUE_BUILT_IN_COUNT] = {
	"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "clusterIdx", "clusterDim",
};

const char *value_built_in_name(enum value_built_in what)
{
	return built_in_names[what];
}

bool value_built_in_is_there(const struct value_request *k, enum value_built_in what)
{
	return (what != VALUE_CLUSTER_INDEX && what != VALUE_CLUSTER_SIZE) || k->registers.has_cluster;
}

struct values_type *value_built_in_type(enum value_built_in what, struct values_types *types)
{
	return values_type_named(types, what == VALUE_WARP_SIZE ? "int" : "dim3");
}

enum value_built_in value_built_in_find(const char *name)
{
	size_t i = 0;

	while (i < VALUE_BUILT_IN_COUNT && strcmp(built_in_names[i], name) != 0)
		i++;
	return (enum value_built_in)i;
}

static const char *read_thread_index(const struct rpc_wave_registers *r, uint32_t lane, uint32_t words[3])
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].lane == lane && r->work_items[i].n_in_group == 3) {
			memcpy(words, r->work_items[i].in_group, 3 * sizeof(*words));
			return NULL;
		}
	return r->n_work_items ? "nothing runs in the lane" : "neither the wave nor its dispatch tells it";
}

static const char *read_three(const uint32_t *from, size_t n, uint32_t words[3])
{
	if (n != 3)
		return "neither the wave nor its dispatch tells it";
	memcpy(words, from, 3 * sizeof(*words));
	return NULL;
}

/* Workgroups of the grid; the last one along an axis may have fewer work-items. */
static const char *read_grid_size(const struct rpc_wave_registers *r, uint32_t words[3])
{
	const struct rpc_dispatch_packet *p = &r->packet;

	if (!r->has_packet || p->n_workgroup_size != 3 || p->n_grid_size != 3)
		return "the wave's dispatch is not known";
	for (unsigned i = 0; i < 3; i++) {
		if (!p->workgroup_size[i] || p->grid_size[i] == UINT32_MAX)
			return "its dispatch does not tell it";
		words[i] = p->grid_size[i] / p->workgroup_size[i] + (p->grid_size[i] % p->workgroup_size[i] != 0);
	}
	return NULL;
}

static const char *read_cluster(const struct rpc_wave_registers *r, const uint32_t *from, size_t n, uint32_t words[3])
{
	if (!r->has_cluster)
		return "the wave is in no cluster, or nothing tells of one";
	return read_three(from, n, words);
}

static const char *read_words(const struct rpc_wave_registers *r, enum value_built_in what, uint32_t lane,
			      uint32_t words[3])
{
	switch (what) {
	case VALUE_THREAD_INDEX:
		return read_thread_index(r, lane, words);
	case VALUE_BLOCK_INDEX:
		return read_three(r->wave.ref.workgroup, r->wave.ref.n_workgroup, words);
	case VALUE_BLOCK_SIZE:
		if (!r->has_packet)
			return "the wave's dispatch is not known";
		return read_three(r->packet.workgroup_size, r->packet.n_workgroup_size, words);
	case VALUE_GRID_SIZE:
		return read_grid_size(r, words);
	case VALUE_CLUSTER_INDEX:
		return read_cluster(r, r->cluster.index, r->cluster.n_index, words);
	case VALUE_CLUSTER_SIZE:
		return read_cluster(r, r->cluster.size, r->cluster.n_size, words);
	default:
		words[0] = r->wave.width;
		return NULL;
	}
}

int value_built_in_read(const struct value_request *k, enum value_built_in what, uint32_t lane,
			struct values_types *types, struct values_result *ret, const char **ret_reason)
{
	uint32_t words[3] = { 0 };

	*ret_reason = read_words(&k->registers, what, lane, words);
	ret->type = value_built_in_type(what, types);
	ret->size = what == VALUE_WARP_SIZE ? sizeof(words[0]) : sizeof(words);
	ret->bytes = malloc(sizeof(words));
	if (!ret->bytes)
		return -ENOMEM;
	memcpy(ret->bytes, words, ret->size);
	if (!*ret_reason)
		return 0;
	ret->lack = VALUES_UNAVAILABLE;
	ret->known = calloc(1, ret->size);
	return ret->known ? 0 : -ENOMEM;
}
