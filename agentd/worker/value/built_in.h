/* SPDX-License-Identifier: MIT */
#ifndef WORKER_VALUE_BUILT_IN_H
#define WORKER_VALUE_BUILT_IN_H

/**
 * @file built_in.h
 * What CUDA and HIP give each work-item or thread: threadIdx, blockIdx, blockDim, gridDim, warpSize, and
 * of blocks in clusters clusterIdx and clusterDim.  No debug information names them; the wave and its dispatch
 * tell them.
 */

#include <stdint.h>

#include "agentd/worker/value/request.h"
#include "values/expression/expression.h"

enum value_built_in {
	VALUE_THREAD_INDEX,
	VALUE_BLOCK_INDEX,
	VALUE_BLOCK_SIZE,
	VALUE_GRID_SIZE,
	VALUE_WARP_SIZE,
	VALUE_CLUSTER_INDEX,
	VALUE_CLUSTER_SIZE,
	VALUE_BUILT_IN_COUNT,
};

const char *value_built_in_name(enum value_built_in what);
/** @return whether the wave has it: most are in no cluster. */
bool value_built_in_is_there(const struct value_request *k, enum value_built_in what);
/** @return its type, of a table. */
struct values_type *value_built_in_type(enum value_built_in what, struct values_types *types);
/** @return which one a name means; VALUE_BUILT_IN_COUNT: none. */
enum value_built_in value_built_in_find(const char *name);
/**
 * Read one of a lane.
 * @param ret         Zeroed; its type is set, and bytes where it is known.
 * @param ret_reason  Why it is not known, static; else NULL.
 * @return 0, -ENOMEM.
 */
int value_built_in_read(const struct value_request *k, enum value_built_in what, uint32_t lane,
			struct values_types *types, struct values_result *ret, const char **ret_reason);

#endif /* WORKER_VALUE_BUILT_IN_H */
