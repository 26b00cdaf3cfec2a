/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_FACTS_H
#define WORKER_PROCESS_FACTS_H

/** @file facts.h  What /proc tells about a process, for lists and snapshots. */

#include "agentd/access.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/**
 * Read where /proc/PID/exe points: the path of the program file.
 * @return malloc'ed, or NULL if it cannot be read.
 */
char *process_facts_exe(pid_t pid);

/**
 * Fill in all members but vendor, gpu_ids, queues, session and debuggable.
 * @param a  Holds the strings; a string that cannot be had is NULL.
 */
void process_facts_fill(struct rpc_arena *a, const struct access_target *facts,
			struct rpc_process *ret);

/** Find the container in a /proc/PID/cgroup text.  @return its name in the arena, or NULL. */
char *process_facts_container(struct rpc_arena *a, const char *cgroup, size_t size);

/**
 * Read when a process was started: with its number that says which one it is.
 * @param ret  Field 22 of /proc/PID/stat, in ticks since the boot.
 * @return 0, -errno.
 */
int process_facts_start(pid_t pid, uint64_t *ret);

#endif /* WORKER_PROCESS_FACTS_H */
