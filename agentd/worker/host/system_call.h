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

#endif /* WORKER_HOST_SYSTEM_CALL_H */
