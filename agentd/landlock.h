/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_LANDLOCK_H
#define AGENTD_LANDLOCK_H

/**
 * @file landlock.h
 * Where in the file system a process may still read or write (landlock(7)).
 *
 * A system-call filter cannot see paths.  The kernel's Landlock does, and bounds a process that can
 * be talked into opening files.  It is not for processes that trace: whoever is confined may neither
 * trace nor look into a process that is not.
 *
 * A kernel without Landlock, or one that was started without it, is no failure: the process then has the
 * bounds of its user and of its system-call filter, as the manual says.
 */

#include <stdbool.h>

/** @return the version of the kernel's interface, from 1 on; 0: this kernel has none. */
int landlock_version(void);

/**
 * Let this process, and those it starts, only read, whatever is in the file system.
 * No-new-privileges must be set.
 * @return 0, also where the kernel has no Landlock; -errno.
 */
int landlock_read_only(void);

/**
 * Let this process do with files what lies beneath one directory, and open nothing else.
 * @param dir_fd  -1: there is no such directory, so nothing can be opened.
 * @return as landlock_read_only().
 */
int landlock_keep_beneath(int dir_fd);

/**
 * Let this process open and change no file, use no TCP, and signal no other process.  Unix sockets stay
 * as they are.
 * @return as landlock_read_only().
 */
int landlock_forbid_files(void);

#endif /* AGENTD_LANDLOCK_H */
