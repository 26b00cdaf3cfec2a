/* SPDX-License-Identifier: MIT */
#ifndef CTL_SNAPSHOT_SHOW_H
#define CTL_SNAPSHOT_SHOW_H

/**
 * @file snapshot_show.h
 * Prints one snapshot, or two that were compared, on a page: what is wrong, whose process it is,
 * what its waves do, and its queues.  Live processes, core files and saved documents look alike.
 */

#include <stdbool.h>
#include <stdint.h>

struct ctl;
struct rpc_comparison;
struct rpc_gpu_snapshot_result;
struct rpc_wave_registers;

/** What is on a page. */
struct snapshot_page {
	const struct rpc_gpu_snapshot_result *snapshot; /**< The later one, where there are two. */
	const struct rpc_comparison *comparison; /**< NULL where there is one. */
	const uint64_t *still_us; /**< As in struct headline_input. */
	bool queues_only;	  /**< Nobody looked at the waves. */
	bool arguments;		  /**< Those of all kernels, not of faulted ones alone. */
	bool advise;		  /**< Name --again, where that tells more. */
	const struct rpc_wave_registers *faulted; /**< As in struct headline_input. */
	uint64_t faulted_stopped_us; /**< How long queues stood still to read that. */
};

/**
 * Append the whole page; -v adds devices, runtime, and more columns.  In a session on an NVIDIA
 * process a faulted warp is asked for its lanes, so that ctl_print_result() must not follow.
 * @return 0, negative with err.
 */
int snapshot_show(struct ctl *c, const struct snapshot_page *page);

/* Parts of it, for views that arrange them in another way. */

/** Append what is wrong, in one line or several.  @return 0, negative with err. */
int snapshot_show_headline(struct ctl *c, const struct snapshot_page *page);
/** Append whose snapshot it is, and what its taking cost. */
void snapshot_show_header(struct ctl *c, const struct snapshot_page *page);
/** Append the table of groups, or that there are none.  @return 0, negative with err. */
struct group_rows;
int snapshot_show_groups(struct ctl *c, const struct snapshot_page *page, const struct group_rows *rows);

#endif /* CTL_SNAPSHOT_SHOW_H */
