/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_FACTS_H
#define WORKER_PROCESS_FACTS_H

/** @file facts.h  What /proc tells about a process, for lists and snapshots. */

#include "agentd/access.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/** Where /proc/PID/exe points.  @return malloc'ed, or NULL. */
char *process_facts_exe(pid_t pid);

/** Everything but vendor, gpu_ids, queues, session and debuggable. */
void process_facts_fill(struct rpc_arena *a, const struct access_target *facts,
			struct rpc_process *ret);

/** cgroup_container() of a /proc/PID/cgroup text.  @return in the arena, or NULL. */
char *process_facts_container(struct rpc_arena *a, const char *cgroup, size_t size);

#endif /* WORKER_PROCESS_FACTS_H */
