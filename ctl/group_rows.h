/* SPDX-License-Identifier: MIT */
#ifndef CTL_GROUP_ROWS_H
#define CTL_GROUP_ROWS_H

/**
 * @file group_rows.h
 * The rows in which groups of waves are shown: of one snapshot, or of two that were compared.
 * Texts live in the arena.
 */

#include <stdbool.h>
#include <stddef.h>

#include "ctl/document/gpu_names.h"
#include "ctl/terminal/table.h"
#include "rpc_gen.h"

struct group_row {
	const struct rpc_group *group;
	/**
	 * Position in the list of groups, from 1 on, which `waves --group` takes; 0: it is in the
	 * earlier snapshot only.
	 */
	size_t number;
	const char *waves; /**< How many; `127 (-1)` where that has changed. */
	const char *state; /**< What they do, in words. */
};

struct group_rows {
	struct group_row *list;
	size_t n;
};

/** The groups of a snapshot, in its order.  @return 0, -ENOMEM, -EFBIG (arena). */
int group_rows_of_snapshot(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s,
			   struct group_rows *ret);

/**
 * The same with what has become of them; groups that are gone come last.  Rows have the numbers of
 * the later snapshot, in its order.
 * @param after     The later snapshot.
 * @param still_us  As in struct headline_input.
 * @return as above.
 */
int group_rows_of_comparison(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *after,
			     const struct rpc_comparison *cmp, const uint64_t *still_us,
			     struct group_rows *ret);

/** Whose words are used, and how much is told. */
struct group_rows_view {
	enum rpc_vendor vendor;
	const struct gpu_names *gpus;
	bool arguments; /**< Those of all kernels, not of faulted ones alone. */
	bool verbose; /**< With the median of active lanes, workgroups, and the name of a wave. */
	bool legend;  /**< As in struct table_form. */
};

/**
 * Begin the table of rows and add them; release it with table_deinit(), also after a failure.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int group_rows_table(struct rpc_arena *a, const struct group_rows *rows,
		     const struct group_rows_view *view, struct table *ret);

/** The name of a wave as args_wave() reads it: `QUEUE:UNIT:INDEX`. */
const char *group_rows_wave(struct rpc_arena *a, const struct rpc_wave_ref *r);

#endif /* CTL_GROUP_ROWS_H */
