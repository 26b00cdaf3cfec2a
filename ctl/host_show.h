/* SPDX-License-Identifier: MIT */
#ifndef CTL_HOST_SHOW_H
#define CTL_HOST_SHOW_H

/** @file host_show.h  Threads of a process: whole stacks, and a row for each group of them beside what its GPUs do. */

struct ctl;
struct rpc_comparison;
struct rpc_gpu_snapshot_result;
struct rpc_host_stacks_result;

/** Append whose threads they are, and all stacks.  @param before  An earlier look, or NULL. */
void host_show_stacks(struct ctl *c, const struct rpc_host_stacks_result *r,
		      const struct rpc_host_stacks_result *before);
/**
 * Append a line about the threads of a snapshot and a row for each group of them, or whole stacks with -v.
 * @param cmp  What has become of them, or NULL.
 * @return 0, negative with err.
 */
int host_show_rows(struct ctl *c, const struct rpc_gpu_snapshot_result *s, const struct rpc_comparison *cmp);

#endif /* CTL_HOST_SHOW_H */
