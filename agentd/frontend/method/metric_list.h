/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_METHOD_METRIC_LIST_H
#define FRONTEND_METHOD_METRIC_LIST_H

/** @file metric_list.h  Builds the metrics of agent.metrics, sample by sample. */

#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/** A list in an arena, whose error tells of what did not fit.  Starts as METRIC_LIST(arena). */
struct metric_list {
	struct rpc_arena *arena;
	struct rpc_metric *metrics;
	size_t n;
	size_t room, sample_room; /**< Of metrics, and of the samples of the last one. */
};

#define METRIC_LIST(a) ((struct metric_list){ .arena = (a) })

/** What distinguishes a sample; without a name, or with the value NULL, the label is left out. */
struct metric_label {
	const char *name, *value;
};
#define METRIC_LABELS_MAX 2

/** Begin a metric; the strings are borrowed.  @param unit  NULL: none. */
void metric_begin(struct metric_list *l, const char *name, enum rpc_metric_type type, const char *unit,
		  const char *help);
/**
 * Add a number to the metric that was begun last.
 * @param suffix  Put behind its name: "_total", "".
 * @param labels  METRIC_LABELS_MAX of them, whose values are borrowed; NULL: none.
 */
void metric_u64(struct metric_list *l, const char *suffix, const struct metric_label *labels, uint64_t value);
/** The same for a time, which is told in seconds. */
void metric_us(struct metric_list *l, const char *suffix, const struct metric_label *labels, uint64_t us);

#endif /* FRONTEND_METHOD_METRIC_LIST_H */
