/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_HEADLINE_H
#define CTL_DOCUMENT_HEADLINE_H

/**
 * @file headline.h
 * What is wrong with a process, in a few sentences: of one snapshot, or of two that were compared.
 *
 * One snapshot tells faults and which packets wait, but never that a queue is hung: that takes two.
 * These are pure functions; the time is linear in the size of the documents, but for what every
 * queue in the headline costs: one pass through the groups, for at most HEADLINE_MAX queues.
 */

#include <stdbool.h>
#include <stddef.h>

#include "ctl/document/gpu_names.h"
#include "rpc_gen.h"

/** Most lines; what does not fit is counted. */
#define HEADLINE_MAX 8

/** What a line says, the worst first. */
enum headline_kind {
	HEADLINE_FAULT,	 /**< Waves, a queue or a device raised an exception. */
	HEADLINE_CAUSE,	 /**< Somebody keeps waves or queues from going on, by what they wait for. */
	HEADLINE_ALSO,	 /**< And somebody else does. */
	HEADLINE_HUNG,	 /**< A queue stands still. */
	HEADLINE_HELD,	 /**< A debugger keeps a queue suspended. */
	HEADLINE_UNSURE, /**< A comparison does not tell. */
	HEADLINE_SLOW,	 /**< Waves move, but nothing gets done. */
	HEADLINE_WAITS,	 /**< Packets wait, which may be right. */
	HEADLINE_FINE,	 /**< Nothing that is known is wrong. */
};

struct headline_line {
	enum headline_kind kind;
	const char *text; /**< In the arena; it may hold what the process chose, so escape it. */
};

struct headline {
	struct headline_line lines[HEADLINE_MAX];
	size_t n;
	size_t more;	    /**< Lines that had no room, of what tables have as well. */
	size_t more_causes; /**< Causes that had none: no table has them. */
};

/** What a headline is made of. */
struct headline_input {
	const struct rpc_gpu_snapshot_result *snapshot; /**< The later one, where there are two. */
	const struct rpc_comparison *comparison; /**< NULL where there is one snapshot. */
	/**
	 * With a comparison, for each of its queues since when it has stood still, in microseconds
	 * before the later snapshot; NULL: for the time between the two.
	 */
	const uint64_t *still_us;
	bool queues_only; /**< Nobody looked at the waves. */
	/** The example of a faulting group with its lanes, which tell whose fault it is; or NULL. */
	const struct rpc_wave_registers *faulted;
};

/** What stands in front of a line, as `FAULT`; "" for HEADLINE_FINE. */
const char *headline_tag(enum headline_kind kind);

/** @return the line for causes that had no room; NULL: there is none, or no memory. */
const char *headline_more_causes(struct rpc_arena *a, const struct headline *h);

/** Make the headline: at least one line.  @return 0, -ENOMEM, -EFBIG (arena). */
int headline_make(struct rpc_arena *a, const struct headline_input *in, const struct gpu_names *gpus,
		  struct headline *ret);

#endif /* CTL_DOCUMENT_HEADLINE_H */
