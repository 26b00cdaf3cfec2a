/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_ARGUMENTS_H
#define WORKER_SNAPSHOT_ARGUMENTS_H

/**
 * @file arguments.h
 * What the kernels of groups were launched with: their code objects say where each argument lies,
 * the capture has the bytes, or says where they are.
 */

#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/snapshot/groups.h"

/** Most sentences of arguments_fill(). */
#define ARGUMENTS_MISSING_MAX 16

struct arguments_from {
	const struct target_waves *waves;
	const struct rpc_queue *queues;
	size_t n_queues;
	bool all; /**< Of many dispatches, not only of the first few; and hidden arguments. */
};

/** Sentences about what is missing, in the arena. */
struct arguments_missing {
	const char *list[ARGUMENTS_MISSING_MAX];
	size_t n;
};

/**
 * Add the arguments of kernels to groups, the first groups first.
 * @param groups  The same groups, as group_waves() gave them.
 * @param to      Gets `arguments`; in the arena of the set.
 * @return 0, -ENOMEM.
 */
int arguments_fill(struct code_set *s, const struct arguments_from *from, const struct group *groups,
		   struct rpc_group *to, size_t n, struct arguments_missing *missing);

#endif /* WORKER_SNAPSHOT_ARGUMENTS_H */
