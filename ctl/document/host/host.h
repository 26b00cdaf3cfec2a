/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_HOST_HOST_H
#define CTL_DOCUMENT_HOST_HOST_H

/**
 * @file host.h
 * The threads of a process beside what its GPUs do, in one document.
 *
 * Texts live in the arena and may hold what the target process chose: escape them before printing.
 * They are NULL when memory is exhausted.
 */

#include <stdbool.h>
#include <stddef.h>

#include "rpc_gen.h"

/** Put threads into a snapshot; what they lack it lacks then.  @return 0, -ENOMEM, -EFBIG (arena). */
int host_add(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s, const struct rpc_host_stacks_result *host);
/** Note that something is missing of a snapshot: `what: why`.  @return 0, -ENOMEM, -EFBIG (arena). */
int host_miss(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s, const char *what, const char *why);

/** Whether the main thread of a process is in a group of it. */
bool host_is_main(const struct rpc_thread_group *g, uint32_t pid);
/** Whether any of the same threads has run since an earlier look.  @return false when nobody knows. */
bool host_find_ran(const struct rpc_thread_group *was, const struct rpc_thread_group *is, bool *ret_ran);

/** The key of a group: what its threads do, and their frames, whichever threads and processes they are. */
const char *host_key(struct rpc_arena *a, const struct rpc_thread_group *g);
/** The innermost frame of Python, `hang.py:12 train_step`; "" without one. */
const char *host_python(struct rpc_arena *a, const struct rpc_thread_group *g);
/** The innermost native frame that has a name, `pthread_cond_wait in libc.so.6`; "" without one. */
const char *host_native(struct rpc_arena *a, const struct rpc_thread_group *g);
/** What the threads are there for, in words. */
const char *host_role(struct rpc_arena *a, enum rpc_thread_role role);
/** What they wait for on a GPU: ` for dispatch 1042 of queue 5`. */
void host_put_wait(struct out *o, const struct rpc_thread_wait *w);
/** What they do: `blocked in futex, GPU wait`. */
const char *host_state(struct rpc_arena *a, const struct rpc_thread_group *g);

/**
 * Order the groups of a snapshot's threads for people: where the GPUs have no waves and their queues no packets, the
 * threads come first that should give them work, and otherwise those that wait for them; threads that only serve come
 * last.
 * @param ret  Positions in the list of groups.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int host_order(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, size_t **ret);

/** Compare the threads of two snapshots, where both have them.  @return 0, -ENOMEM, -EFBIG (arena). */
int host_compare(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		 const struct rpc_gpu_snapshot_result *after, struct rpc_comparison *ret);

#endif /* CTL_DOCUMENT_HOST_HOST_H */
