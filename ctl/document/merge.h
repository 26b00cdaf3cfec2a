/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_MERGE_H
#define CTL_DOCUMENT_MERGE_H

/**
 * @file merge.h
 * Merges snapshots of many processes, one for each rank of a job, into one document.
 *
 * Waves of different ranks are one group when they are at the same location for the same reasons,
 * on whatever device.  The result has the shape of a snapshot and says which ranks each group has,
 * so that merged documents can be merged again: in any order and any grouping, the same documents
 * give the same result.  Cost and memory go with the number of groups, not of waves.
 */

#include <stdbool.h>
#include <stddef.h>

#include "ctl/document/document.h"
#include "ctl/terminal/table.h"

#define MERGE_RANKS_MAX 65536		    /**< Most ranks in one result. */
#define MERGE_MEMORY_MAX ((size_t)1 << 30)  /**< Bytes that one merge may need. */

struct merge;

/** Begin a merge.  @return NULL when memory is exhausted; release with merge_destroy(). */
struct merge *merge_create(void);
/** Free a merge and its result; NULL is allowed. */
void merge_destroy(struct merge *m);

/**
 * Add a document, which is not needed afterwards.  A failure adds nothing of the document.
 * @return 0, or negative with @p err: invalid_params (a rank that is there already, a list of ranks
 *         that makes no sense), too_large, internal.
 */
int merge_add(struct merge *m, const struct document *d, struct agent_err *err);
/** Note in the result that something could not be read.  @return 0, -ENOMEM, -EFBIG. */
int merge_add_missing(struct merge *m, const char *text);
/** How many ranks were added so far. */
size_t merge_ranks(const struct merge *m);
/** Whether all ranks of a merged document are there already. */
bool merge_has(const struct merge *m, const struct rpc_gpu_snapshot_result *s);

/**
 * Put the result together; nothing may be added afterwards.
 * @param ret  Lives as long as @p m.
 * @return 0, -EINVAL (no document was added), -ENOMEM, -EFBIG.
 */
int merge_finish(struct merge *m, struct rpc_gpu_snapshot_result *ret);

/** A set of ranks, with one bit for each. */
struct merge_set {
	uint64_t *words; /**< In an arena. */
	size_t n;	 /**< How many ranks the set has room for. */
};

/** Make an empty set for the ranks below @p n.  @return 0, -ENOMEM or -EFBIG (arena). */
int merge_set_init(struct rpc_arena *a, size_t n, struct merge_set *ret);
/** Whether rank @p i, which must be below s->n, is in the set. */
bool merge_set_has(const struct merge_set *s, size_t i);
/** Add rank @p i, which must be below s->n. */
void merge_set_add(struct merge_set *s, size_t i);
/** Take rank @p i, which must be below s->n, out of the set. */
void merge_set_remove(struct merge_set *s, size_t i);
/** Add the ranks of another set of the same size. */
void merge_set_join(struct merge_set *s, const struct merge_set *other);
/** How many ranks are in the set. */
size_t merge_set_count(const struct merge_set *s);
/** The ranks of a set as `0-6,9`, in the arena; NULL when memory is exhausted. */
const char *merge_set_print(struct rpc_arena *a, const struct merge_set *s);
/**
 * Add the ranks of a list such as `0-6,9`, which must rise.
 * @return 0, -EINVAL (not such a list, or beyond the set; some ranks may have been added).
 */
int merge_set_parse(const char *text, struct merge_set *s);

/** Do two processes say that they are of one job, of as many?  Launchers do not all name it. */
bool merge_is_same_job(const struct rpc_process_rank *a, const struct rpc_process_rank *b);
/**
 * Say which ranks of a job are not in a merged document, where all that are in it agree on how many there are.
 * @return "" where none is absent, or nobody knows; NULL when memory is exhausted.
 */
const char *merge_absent(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s);

/**
 * Name the ranks that differ: fill rpc_rank.odd.
 * @param sets  The ranks of each group of @p s.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int merge_find_odd(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s,
		   const struct merge_set *sets);

/** A few ranks by their names, many as merge_set_print() has them, all as `all`; NULL when memory is exhausted. */
const char *merge_set_names(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *set);
/** The same with `ranks` where they are positions. */
const char *merge_ranks_text(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *set);
/** What ranks of a job that wait for each other are said to do, in an arena. */
struct merge_waits {
	const char *circle;  /**< The first circle of different operations; NULL: there is none that is known. */
	const char *awaited; /**< Who is waited for by all, and is in no operation; NULL: that is not known. */
	const char *late;    /**< Who was not looked at in time, so that neither was looked for; NULL: nobody. */
	bool has_graph;	     /**< With circle or awaited. */
	struct rpc_rank_graph graph; /**< The same as nodes and edges, in the arena. */
};
/**
 * Find ranks that wait for each other in different collective operations, or else all for ranks that are in none.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int merge_circle(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, struct merge_waits *ret);
/**
 * The ranks of each group of a merged document.
 * @param ret  As many sets as there are groups.
 * @return 0, -EINVAL (a list of ranks makes no sense), -ENOMEM, -EFBIG (arena).
 */
int merge_group_sets(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, struct merge_set **ret);

/** One of the sentences that say what is wrong with a job. */
struct merge_line {
	/** `FAULT`, `MAYBE`, `WAITS` or `ODD`; "": it goes on; NULL: nothing is wrong that a tag would name. */
	const char *tag;
	bool good; /**< All ranks do the same, and no fault was found. */
	const char *text; /**< In the arena; it may hold what a process chose, so escape it. */
};
/**
 * Say what is wrong, faults first, then what ranks of one communicator do not agree on, who waits in a circle and for
 * whom all wait, then every odd rank.
 * @param sets  The ranks of each group of @p s.
 * @param ret   At least one line.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int merge_headline(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
		   struct merge_line **ret, size_t *ret_n);

/** Make the threads of one process those of a merged document with one rank.  @return 0, -ENOMEM, -EFBIG (arena). */
int merge_host_rank(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s);
/** Where the ranks of a document are in the result. */
struct merge_part {
	const struct rpc_gpu_snapshot_result *s;
	const size_t *ranks; /**< The place of each of its ranks. */
};
/**
 * Put the threads of documents together, and name ranks that are odd by them.
 * @param ret  Has all ranks, in which merge_find_odd() has named others.
 * @return 0, -EINVAL (a list of ranks makes no sense), -ENOMEM, -EFBIG (arena).
 */
int merge_host(struct rpc_arena *a, const struct merge_part *parts, size_t n, struct rpc_gpu_snapshot_result *ret);

/**
 * Say how two ranks differ in the kernels that they are in: neither of two is the odd one.
 * @param s         Of exactly two ranks.
 * @param sets      The ranks of each group of @p s.
 * @param ret_text  In the arena; NULL if they are in the same kernels.
 * @return 0, -ENOMEM, -EFBIG (arena).
 */
int merge_compare_two(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s,
		      const struct merge_set *sets, const char **ret_text);

/**
 * Append a merged document as a tree: kernel, frames, and how many ranks and waves each node has.
 * @return 0, -EINVAL (a list of ranks makes no sense), -ENOMEM, -EFBIG.
 */
int merge_print(struct rpc_arena *a, struct out *o, const struct rpc_gpu_snapshot_result *s,
		const struct table_form *form);

#endif /* CTL_DOCUMENT_MERGE_H */
