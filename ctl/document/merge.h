/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_MERGE_H
#define CTL_DOCUMENT_MERGE_H

/**
 * @file merge.h
 * Snapshots of many processes, one for each rank of a job, as one document.
 *
 * Waves of different ranks are one group when they are at the same place for the same reasons, on
 * whatever device.  The result has the shape of a snapshot and says which ranks each group has, so
 * that merged documents can be merged again: in any order and any grouping, the same documents
 * give the same result.  Cost and memory go with the number of groups, not of waves.
 */

#include <stdbool.h>
#include <stddef.h>

#include "ctl/document/document.h"

#define MERGE_RANKS_MAX 65536
#define MERGE_MEMORY_MAX ((size_t)1 << 30)

struct merge;

/** @return NULL when memory is exhausted. */
struct merge *merge_create(void);
/** NULL is allowed. */
void merge_destroy(struct merge *m);

/**
 * Add a document, which is not needed afterwards.  After a failure nothing of it was added.
 * @return 0, or negative with @p err: invalid_params (a rank that is there already, a list of ranks
 *         that makes no sense), too_large, internal.
 */
int merge_add(struct merge *m, const struct document *d, struct agent_err *err);
/** Note in the result that something could not be read. */
int merge_add_missing(struct merge *m, const char *text);
/** Ranks added so far. */
size_t merge_ranks(const struct merge *m);

/**
 * Put it together.
 * @param ret  Lives as long as @p m.
 * @return 0, -EINVAL (no document was added), -ENOMEM, -EFBIG.
 */
int merge_finish(struct merge *m, struct rpc_gpu_snapshot_result *ret);

/** Sets of ranks: one bit each. */
struct merge_set {
	uint64_t *words; /**< In an arena. */
	size_t n;	 /**< Ranks, not words. */
};

/** Empty set; -ENOMEM or -EFBIG from the arena. */
int merge_set_init(struct rpc_arena *a, size_t n, struct merge_set *ret);
bool merge_set_has(const struct merge_set *s, size_t i);
void merge_set_add(struct merge_set *s, size_t i);
void merge_set_join(struct merge_set *s, const struct merge_set *other);
size_t merge_set_count(const struct merge_set *s);
/** `0-6,9`; NULL when memory is exhausted. */
const char *merge_set_print(struct rpc_arena *a, const struct merge_set *s);
/** @p s is empty before.  @return 0, -EINVAL (not such a list, or beyond the set). */
int merge_set_parse(const char *text, struct merge_set *s);

/**
 * Name the ranks that differ: fill rpc_rank.odd.
 * @param sets  Ranks of each group.
 */
int merge_find_odd(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s,
		   const struct merge_set *sets);

/**
 * A merged document as a tree: kernel, frames, and how many ranks and waves each node has.
 * @return 0, -EINVAL (a list of ranks makes no sense), -ENOMEM, -EFBIG.
 */
int merge_print(struct rpc_arena *a, struct out *o, const struct rpc_gpu_snapshot_result *s,
		bool legend, bool color);

#endif /* CTL_DOCUMENT_MERGE_H */
