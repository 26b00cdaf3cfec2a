/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_HANDSHAKE_H
#define AGENTD_HANDSHAKE_H

/**
 * @file handshake.h
 * Threads that wait inside AMDKFD_IOC_RUNTIME_ENABLE for the answer of a debugger.
 *
 * A debugger that is attached answers.  If there is none, only a stop of the thread makes the call
 * return; the program then repeats the call, which waits no more (measured on Linux 6.12).
 *
 * The kernel tells only a process that may trace the thread whether the thread waits, and it checks
 * that right at each read (proc_pid_syscall() in fs/proc/base.c): neither an open descriptor nor a
 * session of ptrace helps.  So a worker that has given up its rights cannot tell whether a thread
 * waits in a process that has more rights, or that is not dumpable.  "Not known" is not "nobody
 * waits": a process that has the rights must look.
 */

#include <stdint.h>
#include <sys/types.h>

/**
 * Count the threads that wait.
 * @return their number, 0 if the process is gone; -EPERM: no thread that this process may look at
 *         waits, but there are others.
 */
int handshake_waiting(pid_t pid);

/**
 * Look at all threads once, and stop each thread that waits for a moment.
 * @param deadline_ns  When to give up waiting for the stops; monotonic.
 * @param released     Increased by one for each thread that did stop.
 * @return the number of threads that waited, or -errno: -ENOENT (the process is gone), -EPERM as
 *         above.
 */
int handshake_release(pid_t pid, uint64_t deadline_ns, int *released);

#endif /* AGENTD_HANDSHAKE_H */
