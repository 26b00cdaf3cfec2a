/* SPDX-License-Identifier: MIT */
#ifndef HEIR_RELEASE_H
#define HEIR_RELEASE_H

/**
 * @file release.h
 * Who waits for a debugger that died, and the last help for them.
 *
 * The kernel resumes queues and drops ptrace by itself.  What it does not do is wake a thread that
 * waits inside AMDKFD_IOC_RUNTIME_ENABLE for the debugger's answer.  A new session can still give
 * that answer, which is what a rescue worker does.  Where it cannot, a stop of the thread makes the call
 * return (measured on Linux 6.12; see docs/ARCHITECTURE.md).  That leaves the answer owed: the kernel
 * takes the program's next RUNTIME_ENABLE under a debugger for the one that was interrupted, raises no
 * event for it, and waits (runtime_enable() in kfd_chardev.c).
 *
 * The last two functions wait: run them in a child process.
 */

#include <sys/types.h>

/** The kernel may still be taking the dead worker's session down. */
#define RELEASE_LOOKS 5
/** Its session was over before: who comes now does not wait, and who waits does so, or is about to. */
#define RELEASE_LOOKS_ENDED 2

/**
 * Threads of the target inside RUNTIME_ENABLE.  Whoever traces it is alive and answers by himself: then
 * there is none.
 * @return number of threads, or -EPERM: that cannot be seen.
 */
int release_waiting(pid_t target);

/**
 * The same, as soon as there is one that stays there.
 * @param looks  So many have to find none; some milliseconds lie between two.
 * @return number of threads, or -EPERM: that cannot be seen.
 */
int release_look(pid_t target, int pidfd, int looks);

/**
 * Stop each of them for a moment, until there is none; waits at most a second.
 * @return number of threads released, or -errno.
 */
int release_stop(pid_t target, int pidfd);

#endif /* HEIR_RELEASE_H */
