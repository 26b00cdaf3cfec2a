/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_PLACE_H
#define CTL_DOCUMENT_PLACE_H

/**
 * @file place.h
 * Where the waves of a group are, as texts: for people, and as keys to compare groups of two
 * documents.
 *
 * Texts live in the arena and may hold what the target process chose: escape them before printing.
 * They are NULL when memory is exhausted.
 */

#include <stdbool.h>
#include <stddef.h>

#include "rpc_gen.h"

/** Why the waves are stopped, as `memory_violation,trap`; "" without a reason. */
const char *place_reasons(struct rpc_arena *a, const struct rpc_group *g);

/** The innermost location in a few words: `reduce.cl:41 in sum`, or an address and the kernel. */
const char *place_name(struct rpc_arena *a, const struct rpc_group *g);
/** Whether place_name() is a source line. */
bool place_is_line(const struct rpc_group *g);

/**
 * The same without the kernel, and with what is inlined there and who called it, from the inside out:
 * `reduce.cl:41 add <- fold`.  A function that is the kernel itself is not named again.
 */
const char *place_where(struct rpc_arena *a, const struct rpc_group *g);
/** The same with the kernel and its arguments at the end, `<- sum (n=160)`, where they are known. */
const char *place_where_arguments(struct rpc_arena *a, const struct rpc_group *g);
/** `sum(n=160), reduce.cl:41`, as place_of_kernel() but with the arguments. */
const char *place_of_group(struct rpc_arena *a, const struct rpc_group *g);
/** `sum, reduce.cl:41` for a sentence; the address where there is no line. */
const char *place_of_kernel(struct rpc_arena *a, const struct rpc_kernel *kernel,
			    const struct rpc_frame *frames, size_t n_frames, uint64_t pc);
/** A name of the schema, or of the vendor, in words: `memory violation`, `warp illegal address`; NULL of NULL. */
const char *place_words(struct rpc_arena *a, const char *name);
/** What the waves do, in words: `memory violation`, `running`. */
const char *place_state(struct rpc_arena *a, const struct rpc_group *g);

/** `on multiprocessor 3 of device 0, in waves that have exited, at reduce.cu:41 sum` */
const char *place_exited(struct rpc_arena *a, const struct rpc_exited_exception *e);

/**
 * The nodes of a group in a tree, from the kernel inwards.
 * @param ret  Array in the arena.
 * @return how many there are, at least one; 0 when memory is exhausted.
 */
size_t place_path(struct rpc_arena *a, const struct rpc_group *g, const char *const **ret);
/** Order paths of place_path() so that all below a node are neighbours, a shorter one first, as strcmp(). */
int place_compare_paths(const char *const *x, size_t n_x, const char *const *y, size_t n_y);

/**
 * The key of a group: location, state and reasons.  Groups of two documents are the same group when
 * their keys are equal.
 * @param device  Whether groups on different devices are different groups.
 */
const char *place_key(struct rpc_arena *a, const struct rpc_group *g, bool device);
/**
 * The key of kernel and reasons alone, wherever in the kernel; without a kernel that has no name.
 */
const char *place_kernel_key(struct rpc_arena *a, const struct rpc_group *g);

#endif /* CTL_DOCUMENT_PLACE_H */
