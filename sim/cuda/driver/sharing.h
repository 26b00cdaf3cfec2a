/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_SHARING_H
#define CUDASIM_SHARING_H

/**
 * @file sharing.h
 * How processes with a CUDA driver give each other their descriptor of the device of unified memory, as driver 580
 * does (docs/reference/cudbg.md, section 4): each listens on a name of its own, and takes only processes of its user.
 * A debugger needs the descriptor of the process that it debugs.
 */

#include <stdbool.h>
#include <sys/types.h>

/** Listen on this process's name, once.  @return 0 or -errno: cuInit() does not go on without. */
int sharing_serve(void);
/** In a debugger: the socket on which process @p pid sends its descriptor.  @return descriptor or -errno. */
int sharing_open(pid_t pid);
/** @return whether this process listens: whether its driver is initialised. */
bool sharing_is_served(void);
/** In the debuggee: send it there.  @return 0 or -errno. */
int sharing_send(void);
/**
 * In a debugger: take the descriptor that was sent to sharing_open(), and one from the process itself.
 * @return 0 or -errno.
 */
int sharing_take(int from, pid_t pid);

#endif /* CUDASIM_SHARING_H */
