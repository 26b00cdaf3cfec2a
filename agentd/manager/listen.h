/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_LISTEN_H
#define MANAGER_LISTEN_H

/** @file listen.h  The daemon's own listening socket, when no manager hands one over. */

#include <stddef.h>
#include <sys/types.h>

/**
 * Bind and listen; a stale socket file is replaced, a live one is not.
 * @param gid    Group that may connect (mode 0660), or (gid_t)-1 for the owner only (0600).
 * @param error  What went wrong, and with which path.
 * @return 0, -EADDRINUSE (another daemon answers there), -errno.
 */
int listen_open(const char *path, gid_t gid, int *ret_fd, char *error, size_t error_size);

#endif /* MANAGER_LISTEN_H */
