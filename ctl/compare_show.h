/* SPDX-License-Identifier: MIT */
#ifndef CTL_COMPARE_SHOW_H
#define CTL_COMPARE_SHOW_H

/**
 * @file compare_show.h
 * Prints a comparison of two snapshots as text or JSON, and turns it into an exit status.
 * The verbs `diff` and `snapshot --again` share it.
 */

struct ctl;
struct rpc_comparison;

/**
 * Append a comparison to the output.
 * @return exit status: 0, CTL_EXIT_NO_PROGRESS, CTL_EXIT_PARTIAL (the verdict is unknown);
 *         negative with ctl.err.
 */
int compare_show(struct ctl *c, const struct rpc_comparison *cmp);

#endif /* CTL_COMPARE_SHOW_H */
