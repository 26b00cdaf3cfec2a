/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_CODE_FILE_H
#define WORKER_PROCESS_CODE_FILE_H

/**
 * @file code_file.h
 * Files as the target sees them: below its own root directory, in its own mount namespace.
 *
 * The target chooses the names and the files.  This process opens only regular files, only for
 * reading, and with its own rights.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/** Longest path, without its NUL. */
#define CODE_FILE_PATH_MAX 4095

/**
 * Open the root directory of a process.  The caller needs the right to trace the process.
 * @return a descriptor that the caller closes, or -errno.
 */
int code_file_root(pid_t pid);

/**
 * Open a file below a root directory; neither `..` nor a symbolic link leads out of it.
 *
 * The kernel's RESOLVE_IN_ROOT would do the same, but openat2() hides its flags from a system-call
 * filter, which then could not forbid writing.
 * @param root_fd  From code_file_root(); -1: the answer is -EACCES.
 * @param path     The path from the root on, with or without leading slash.
 * @param ret_st   Facts about the file.
 * @return a descriptor that the caller closes; -ENOENT, -EACCES, -ELOOP (too many links),
 *         -ENAMETOOLONG, -EMEDIUMTYPE (not a regular file), other -errno.
 */
int code_file_open(int root_fd, const char *path, struct stat *ret_st);

/**
 * Open a regular file that was found, for reading.  The descriptor leads to it, not its name: the target may have put
 * a device or a FIFO there meanwhile, and opening that may do something already.
 * @param path_fd  Opened with O_PATH.
 * @return a descriptor that the caller closes; -EMEDIUMTYPE (not a regular file), other -errno.
 */
int code_file_open_found(int path_fd);

#endif /* WORKER_PROCESS_CODE_FILE_H */
