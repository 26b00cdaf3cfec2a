/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_CHILD_H
#define AGENTD_CHILD_H

/** @file child.h  A forked child becomes one of the agent's programs: what fails ends it, with 127.  Waiting for it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * Is this the program of a worker, of whichever agent?  A worker opens devices and maps drivers only to look at
 * others, so that it is nobody's target.
 * @param exe  What /proc/PID/exe points to: the file that the process executes, which it cannot choose as it can its
 *             name.  One that was replaced since, as upgrades do, counts, too.
 */
bool child_is_worker(const char *exe);
/**
 * Find the directory of the agent's programs, which lie side by side, in the build tree as after
 * installation.
 * @param ret  @p size bytes, for what stands before the last slash of this program's path.
 * @return 0, -errno.
 */
int child_find_directory(char *ret, size_t size);
/** Put each descriptor at its place; from[i] < 0 leaves place i alone.  At most four. */
void child_place_fds(const int from[], const int to[], size_t n);
/**
 * Take what is meant for CUDA programs out of the environment, for all that is executed from now on.  NVIDIA's
 * library obeys dozens of variables, which a shell that the agent is started from has set for programs:
 * CUDA_VISIBLE_DEVICES would hide devices of the target, CUDBG_USE_LEGACY_DEBUGGER choose another engine than
 * the target's, CUDA_MPS_PIPE_DIRECTORY make the worker a client of MPS.
 */
void child_clean_environment(void);
/** Have the kernel, when memory runs out, end this process before most others. */
void child_die_first(void);
/**
 * Execute @p program, without the terminal of whoever started us: TIOCSTI would type into it.
 * @param blocked  The one signal that it finds blocked; 0: none.
 */
_Noreturn void child_exec(const char *program, const char *const argv[], int blocked);

/**
 * Wait for a child, and reap it.
 * @param deadline_ns  See base/clock.h; one that has passed is a look.
 * @param ret_status   As waitpid(2) says it.
 * @return 0, -ETIMEDOUT: it is still to be reaped, -ECHILD: it is no child, or was reaped.
 */
int child_wait(pid_t pid, uint64_t deadline_ns, int *ret_status);

#endif /* AGENTD_CHILD_H */
