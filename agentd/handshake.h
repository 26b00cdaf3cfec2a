/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_HANDSHAKE_H
#define AGENTD_HANDSHAKE_H

/**
 * @file handshake.h
 * Threads that wait inside AMDKFD_IOC_RUNTIME_ENABLE for the answer of a debugger.
 *
 * A debugger that is there answers.  Without one only a stop of the thread makes the call return;
 * the program then repeats it, which waits no more (measured on Linux 6.12).
 *
 * Whether a thread waits, the kernel tells those who may trace it, and judges that at each read
 * (proc_pid_syscall() in fs/proc/base.c): neither an open descriptor nor a session of ptrace helps.
 * So a worker that has given up its rights cannot see it of a process that has more, or that is not
 * dumpable.  Not to know is not the same as that nobody waits: who has the rights must look.
 */

#include <stdint.h>
#include <sys/types.h>

/** @return threads that wait; -EPERM: none of those that we may look at, and there are others. */
int handshake_waiting(pid_t pid);

/**
 * One look at all threads; each that waits is stopped for a moment.
 * @param deadline_ns  Monotonic, for the stops.
 * @param released     Counts those that did stop.
 * @return threads found waiting, or -errno: the process is gone (-ENOENT), or -EPERM as above.
 */
int handshake_release(pid_t pid, uint64_t deadline_ns, int *released);

#endif /* AGENTD_HANDSHAKE_H */
