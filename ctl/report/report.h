/* SPDX-License-Identifier: MIT */
#ifndef CTL_REPORT_REPORT_H
#define CTL_REPORT_REPORT_H

/**
 * @file report.h
 * Writes a document as one self-contained page of HTML.
 *
 * The page needs no script, loads nothing, and forbids both by a policy of its own, so that even a
 * mistake here could not run what a process has put into a name.  The document itself is in it, as JSON.
 */

#include <stdbool.h>
#include <stddef.h>

#include "ctl/document/gpu_names.h"
#include "ctl/document/merge.h"
#include "ctl/document/vendor_words.h"
#include "rpc_gen.h"

/** Most bytes of JSON that a page has; a larger document is put in without its single waves, or left out. */
#define REPORT_DATA_MAX ((size_t)3 << 19)

/** Most rows of a table, and of a list: a reader has long stopped, and the document has all. */
#define REPORT_ROWS_MAX 400

/** What a page is made of. */
struct report_input {
	const struct rpc_gpu_snapshot_result *snapshot; /**< The later one, where there are two. */
	const struct rpc_comparison *comparison;	/**< NULL where there is one snapshot. */
	bool merged;					/**< It is of many processes. */
};

/**
 * Read a snapshot, merged or not, or a comparison of two, whose later snapshot is put together from it where
 * it has none.
 * @param name  Name of the file, for messages; borrowed.
 * @return 0, or negative with @p err as document_parse() has it.
 */
int report_parse(const char *name, const char *text, size_t size, struct rpc_arena *a, struct report_input *ret,
		 struct agent_err *err);

/** One page being written. */
struct report {
	struct rpc_arena *a;
	struct out *o;
	const struct rpc_gpu_snapshot_result *s;
	const struct rpc_comparison *cmp; /**< NULL where there is one snapshot. */
	bool merged;
	enum rpc_vendor vendor;
	const struct gpu_names *gpus;
	const struct merge_set *sets; /**< Of a merged document: the ranks of each group. */
};

/**
 * Append the page.
 * @return 0, -EINVAL (a list of ranks makes no sense), -ENOMEM, -EFBIG.
 */
int report_write(struct rpc_arena *a, struct out *o, const struct report_input *in);

/*
 * Parts of the page; each is a section, or nothing where the document has nothing of it.  They return
 * 0, -EINVAL, -ENOMEM or -EFBIG.
 */

int report_ranks(struct report *r);	     /**< ranks.c: where each rank is, odd ones first. */
int report_merged_groups(struct report *r);  /**< ranks.c: places, and how many ranks are there. */
int report_merged_threads(struct report *r); /**< ranks.c: main threads of ranks and others. */
int report_icicle(struct report *r);	     /**< icicle.c: kernels and what they are in, as wide as they have waves. */
int report_nccl(struct report *r);	     /**< nccl.c: what NCCL says of its communicators. */
int report_groups(struct report *r);	     /**< process.c: groups of waves. */
int report_queues(struct report *r);	     /**< process.c: queues, and how far they are. */
int report_threads(struct report *r);	     /**< process.c: threads on the processors. */
int report_devices(struct report *r);	     /**< process.c: devices. */

/** What a thread has on its stack, which can be opened: process.c. */
void report_put_stack(struct report *r, const struct rpc_thread_group *g);
/** Below a table or list of @p n, say how many are not in it, if any: process.c. */
void report_put_more(struct report *r, size_t n);
/** The vendor's word for a thing. */
static inline const char *report_word(const struct report *r, const char *neutral)
{
	return vendor_word(r->vendor, neutral);
}

#endif /* CTL_REPORT_REPORT_H */
