/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_CHILD_H
#define AGENTD_CHILD_H

/** @file child.h  A forked child becomes one of the agent's programs; what fails ends it, with 127. */

#include <stddef.h>

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
 * Execute @p program, without the terminal of whoever started us: TIOCSTI would type into it.
 * @param blocked  The one signal that it finds blocked; 0: none.
 */
_Noreturn void child_exec(const char *program, const char *const argv[], int blocked);

#endif /* AGENTD_CHILD_H */
