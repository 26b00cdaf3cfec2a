/* SPDX-License-Identifier: MIT */
#ifndef HOOK_FILE_H
#define HOOK_FILE_H

/**
 * @file file.h
 * May a file be run as a hook?  It may if nobody but root and the user that it runs as can change
 * it, or put another file in its place.
 */

#include <stddef.h>
#include <sys/types.h>

/**
 * Walk to a file, one directory at a time, with the rights of this process, and judge every step.
 * No step may be a symbolic link, belong to anybody but root and @p uid, or be writable by a group
 * or by others.  The file must be a regular one that this process may execute.
 * @param why     Says what is wrong, and with which part of the path.
 * @param ret_fd  O_PATH descriptor of the file that was judged, for execveat().
 * @return 0, -EPERM (judged and refused), -errno.
 */
int hook_file_open(const char *path, uid_t uid, char *why, size_t why_size, int *ret_fd);

#endif /* HOOK_FILE_H */
