/* SPDX-License-Identifier: MIT */
/* Any graph has an answer; each byte pair is an edge. */
#include <stdlib.h>

#include "fuzzlib.h"
#include "waits/graph.h"

#define NODES 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct waits_node nodes[NODES];
	struct waits_edge *edges = calloc(size / 2 + 1, sizeof(*edges));
	struct waits_solution s;
	int r;

	for (uint32_t i = 0; i < NODES; i++)
		nodes[i] = (struct waits_node){ .is_wait = i < size && data[i] & 64,
						.end = (enum waits_end)(i % WAITS_END_CIRCLE) };
	for (size_t i = 0; i < size / 2; i++)
		edges[i] = (struct waits_edge){ .from = data[2 * i] % NODES, .to = data[2 * i + 1] % NODES,
						.confidence = (enum waits_confidence)(data[2 * i] / NODES % 3),
						.any = data[2 * i + 1] >> 7 };
	r = waits_graph_solve(nodes, NODES, edges, size / 2, &s);
	for (size_t i = 0; r == 0 && i < s.n_causes; i++) {
		const struct waits_cause *c = &s.causes[i];

		if (!c->n || c->first + c->n > NODES || !c->waits || c->waits > NODES || s.nodes[c->first] >= NODES)
			__builtin_trap();
		if (i && s.causes[i - 1].end > c->end)
			__builtin_trap();
	}
	waits_solution_deinit(&s);
	free(edges);
	return 0;
}
