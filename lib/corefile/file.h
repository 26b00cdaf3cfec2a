/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_FILE_H
#define COREFILE_FILE_H

/**
 * @file file.h
 * A file that is either there and whole or not there: it is written without a name and named when
 * done.
 *
 * A process that is killed half-way leaves nothing (on file systems that have O_TMPFILE), or one
 * hidden file `.NAME.XXXXXX`.  The kernel's core_pattern has no part in it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** A file that is being written. */
struct corefile_file {
	int fd;	    /**< Descriptor to write to; owned. */
	int dir_fd; /**< Directory that the file will be in; owned. */
	char name[256];
	char hidden[280]; /**< Temporary name in the directory; empty when the file has none. */
};

#define COREFILE_FILE_NULL { .fd = -1, .dir_fd = -1 }

/**
 * Begin a file.
 * @param dir_fd  Directory of the file; borrowed.
 * @param name    Name that the file gets there when it is committed: one path component.
 * @param mode    Permissions, to which the umask is applied.
 * @param ret     Release with corefile_file_close().
 * @return 0, -EINVAL (@p name), -EACCES, -ENOSPC, -EROFS, other -errno of open(2).
 */
int corefile_file_open(int dir_fd, const char *name, mode_t mode, struct corefile_file *ret);
/**
 * Begin a file by a path that somebody gave.  Symbolic links in it are followed now, and what a
 * rename must not replace (a device, pipe, socket or directory) is refused.
 * @param replace  Whether an existing file may be replaced; if not, it is an error now already, and
 *                 not only when all is written.
 * @return as corefile_file_open(); -EEXIST, -EISDIR, -ENOTSUP (a device, pipe or socket), -errno of
 *         stat(2).
 */
int corefile_file_open_path(const char *path, mode_t mode, bool replace, struct corefile_file *ret);
/**
 * Tell how many bytes its file system still has for unprivileged users.
 * @return 0 or -errno.
 */
int corefile_file_space(const struct corefile_file *f, uint64_t *ret_bytes);
/**
 * Tell how much may be written into a file system, but for a part that is left to others.
 * @param fd  A file on it.
 * @param ret_bytes  UINT64_MAX when it has no limit that it tells.
 * @return 0, -errno of fstatvfs(3).
 */
int corefile_space(int fd, unsigned keep_percent, uint64_t *ret_bytes);
/**
 * Bring everything to the disk, then give the file its name.
 * @param replace  A file of that name goes away in the same step; without it, -EEXIST.
 * @return 0, -EEXIST, -EIO, -ENOSPC, other -errno of fsync(2), linkat(2), renameat2(2).
 */
int corefile_file_commit(struct corefile_file *f, bool replace);
/** Close the file; unless it was committed, nothing of it stays.  Accepts COREFILE_FILE_NULL. */
void corefile_file_close(struct corefile_file *f);

/**
 * A core that is mapped for reading: a plain file as it is, a compressed one (zstd, gzip) expanded.
 * When somebody shortens the file while it is mapped, its reader dies of SIGBUS.
 */
struct corefile_map {
	const void *data;
	size_t size;
	uint64_t damaged_at; /**< After -EBADMSG: how far into the compressed file the reader came. */
};

/**
 * Map a core.
 * @param fd       Regular file; borrowed, may be closed afterwards.
 * @param scratch_fd  An empty file, which gets what a compressed one expands to; borrowed.
 * @param max      Most bytes that a compressed file may expand to.
 * @param ret      Release with corefile_map_close(); on failure only `damaged_at` changes.
 * @return 0, -EINVAL (not a regular file, or empty), -EBADMSG (damaged zstd or gzip), -EFBIG,
 *         -ENOMEM, -errno of writing to the scratch file.
 */
int corefile_map_open(int fd, int scratch_fd, uint64_t max, struct corefile_map *ret);
/** Unmap a core.  Accepts a zeroed object. */
void corefile_map_close(struct corefile_map *m);

#endif /* COREFILE_FILE_H */
