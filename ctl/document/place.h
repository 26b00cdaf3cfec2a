/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_PLACE_H
#define CTL_DOCUMENT_PLACE_H

/**
 * @file place.h
 * Where the waves of a group are, as texts: to compare groups of two documents, and for people.
 *
 * Texts live in the arena and may hold what the target process chose: escape them before printing.
 * NULL when memory is exhausted.
 */

#include <stdbool.h>
#include <stddef.h>

#include "rpc_gen.h"

/** `memory_violation,trap`; "" without a reason. */
const char *place_reasons(struct rpc_arena *a, const struct rpc_group *g);

/** The innermost place in a few words: `reduce.cl:41 in sum`, or an address in it. */
const char *place_name(struct rpc_arena *a, const struct rpc_group *g);
/** Whether place_name() is a source line. */
bool place_is_line(const struct rpc_group *g);

/** `on multiprocessor 3 of device 0, in waves that have exited, at reduce.cu:41 sum` */
const char *place_exited(struct rpc_arena *a, const struct rpc_exited_exception *e);

/** From the kernel inwards; at least one.  @param ret  Array in the arena. */
size_t place_path(struct rpc_arena *a, const struct rpc_group *g, const char *const **ret);

/**
 * Groups of two documents are the same group when their keys are equal: place, state and reasons,
 * and the device if @p device is set.
 */
const char *place_key(struct rpc_arena *a, const struct rpc_group *g, bool device);
/** The same for kernel and reasons alone, wherever in the kernel; "" for a kernel of no name. */
const char *place_kernel_key(struct rpc_arena *a, const struct rpc_group *g);

#endif /* CTL_DOCUMENT_PLACE_H */
