/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_FACTS_H
#define WORKER_PROCESS_FACTS_H

/** @file process_facts.h  What /proc tells about a process, for lists and snapshots. */

#include "agentd/access.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/** Where /proc/PID/exe points.  @return malloc'ed, or NULL. */
char *process_facts_exe(pid_t pid);

/** Everything but vendor, gpu_ids, queues, session and debuggable. */
void process_facts_fill(struct rpc_arena *a, const struct access_target *facts,
			struct rpc_process *ret);

/**
 * The part of a /proc/PID/cgroup that names a container: the innermost component with a run of 64
 * hex digits (an OCI container id), or below "lxc" or "lxc.payload.NAME".
 * @return in the arena, or NULL.
 */
char *process_facts_container(struct rpc_arena *a, const char *cgroup, size_t size);

#endif /* WORKER_PROCESS_FACTS_H */
