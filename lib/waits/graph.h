/* SPDX-License-Identifier: MIT */
#ifndef WAITS_GRAPH_H
#define WAITS_GRAPH_H

/**
 * @file graph.h
 * Who waits for whom, and where that ends: in somebody who does not come, or in a circle.
 *
 * The largest number of waves is usually the victim, so ends are ranked by what they are, and only then by
 * how many waits lead to them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/confidence.h"

/** What a node is when it waits for nobody; in the order in which ends are told. */
enum waits_end {
	WAITS_END_STOPPED,     /**< A wave that stopped or halted, and does not go on. */
	WAITS_END_GONE,	       /**< Nobody: they have ended. */
	WAITS_END_NOT_STARTED, /**< Nobody: they were never started. */
	WAITS_END_HOST,	       /**< The host, a copy engine, another process. */
	WAITS_END_STILL,       /**< A wave that two looks saw alike. */
	WAITS_END_CIRCLE,      /**< Set by waits_graph_solve(): they wait for each other. */
	WAITS_END_RUNS,	       /**< A wave that runs. */
	WAITS_END_UNKNOWN,
	WAITS_END_COUNT,
};

/** A node. */
struct waits_node {
	bool is_wait;	    /**< It counts in waits_cause.waits. */
	enum waits_end end; /**< Looked at where no edge that counts leads on. */
};

/** From one who waits to one who is waited for. */
struct waits_edge {
	uint32_t from, to;
	enum waits_confidence confidence;
	/** One of several would do: whoever waits so accuses nobody, and nothing is followed beyond. */
	bool any;
};

/** An end. */
struct waits_cause {
	enum waits_end end;
	uint32_t first, n; /**< The nodes in waits_solution.nodes: one, or those of a circle. */
	uint32_t waits;	   /**< Waits that lead there, those of the circle included. */
	/** Of the best way from any wait: as weak as its weakest edge. */
	enum waits_confidence confidence;
};

struct waits_solution {
	struct waits_cause *causes; /**< The most likely one first. */
	size_t n_causes;
	uint32_t *nodes;
};

/**
 * Find the ends that at least one wait leads to.
 * The time is linear in nodes and edges for each 64 ends.
 * @param ret  Release with waits_solution_deinit() in any case.
 * @return 0, -EINVAL (an edge of no node), -ENOMEM.
 */
int waits_graph_solve(const struct waits_node *nodes, size_t n_nodes, const struct waits_edge *edges, size_t n_edges,
		      struct waits_solution *ret);
/** Free a solution; accepts a zeroed one. */
void waits_solution_deinit(struct waits_solution *s);

#endif /* WAITS_GRAPH_H */
