/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_SYSTEM_CALL_H
#define WORKER_HOST_SYSTEM_CALL_H

/** @file system_call.h  The system call that a thread is blocked in, as people know it. */

#include "agentd/worker/host/task.h"
#include "protocol/rpc_arena.h"

/**
 * Name the system call that a thread is blocked in.
 * @param pid      The process, whose table of descriptors names the device of an ioctl.
 * @param machine  What it runs on: EM_...
 * @return a name in the arena; NULL: it is not known.
 */
const char *system_call_name(struct rpc_arena *a, pid_t pid, uint16_t machine, const struct task *task);
/** Is the thread blocked in the request of AMD's driver that waits for events? */
bool system_call_waits_for_events(uint16_t machine, const struct task *task);

/**
 * Does the kernel go on with the system call in which the thread is blocked when the thread was stopped for a moment,
 * so that the program does not see it?
 */
bool system_call_restarts(uint16_t machine, const struct task *task);
/** Name a system call.  @return malloc'ed; NULL: it is not known. */
char *system_call_name_of(uint16_t machine, int64_t call);

#endif /* WORKER_HOST_SYSTEM_CALL_H */
