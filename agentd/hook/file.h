/* SPDX-License-Identifier: MIT */
#ifndef HOOK_FILE_H
#define HOOK_FILE_H

/**
 * @file file.h
 * Whether a file may be run as a hook: nobody but root and the user it runs as can change it, or put
 * another one in its place.
 */

#include <stddef.h>
#include <sys/types.h>

/**
 * Walk to a file, one directory at a time, with the rights of this process, and judge every step:
 * no symbolic link, owned by root or @p uid, not writable by a group or by others; the file a
 * regular one that this process may execute.
 * @param why     What is wrong, and with which part of the path.
 * @param ret_fd  O_PATH descriptor of the file that was judged, for execveat().
 * @return 0, -EPERM (judged and refused), -errno.
 */
int hook_file_open(const char *path, uid_t uid, char *why, size_t why_size, int *ret_fd);

#endif /* HOOK_FILE_H */
