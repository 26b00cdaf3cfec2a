/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_RELEASE_H
#define SPAWN_RELEASE_H

/**
 * @file release.h
 * Last help for targets whose debugger died.
 *
 * The kernel resumes queues and drops ptrace by itself.  What it does not do is wake a thread that
 * waits inside AMDKFD_IOC_RUNTIME_ENABLE for the debugger's answer: only a stop of that thread
 * makes the call return (measured on Linux 6.12; see docs/ARCHITECTURE.md).
 */

#include <sys/types.h>

/**
 * Find threads of the target inside RUNTIME_ENABLE and stop each for a moment.  Waits at most a
 * second; run it in a child process.
 * @return number of threads released, or -errno.
 */
int release_handshake(pid_t target, int pidfd);

/**
 * The same for every GPU process that nobody traces: for an agent that starts after one that was
 * killed with all its workers.  Run it in a child process.
 * @param kfd_sysfs  Its directory `proc` names the processes.
 */
int release_leftovers(const char *kfd_sysfs);

#endif /* SPAWN_RELEASE_H */
