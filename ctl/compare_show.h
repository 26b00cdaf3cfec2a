/* SPDX-License-Identifier: MIT */
#ifndef CTL_COMPARE_SHOW_H
#define CTL_COMPARE_SHOW_H

/**
 * @file compare_show.h
 * Prints a comparison of two snapshots as text or JSON, and turns it into an exit status.
 * The verbs `diff` and `snapshot --again` share it.
 */

#include <stdbool.h>

struct ctl;
struct rpc_comparison;
struct rpc_gpu_snapshot_result;

/**
 * Append a comparison to the output.
 * @param after        The later snapshot.
 * @param queues_only  Nobody looked at the waves.
 * @param arguments    As in struct snapshot_page.
 * @return exit status: 0, CTL_EXIT_NO_PROGRESS, CTL_EXIT_PARTIAL (the verdict is unknown);
 *         negative with ctl.err.
 */
int compare_show(struct ctl *c, const struct rpc_comparison *cmp,
		 const struct rpc_gpu_snapshot_result *after, bool queues_only, bool arguments);

#endif /* CTL_COMPARE_SHOW_H */
