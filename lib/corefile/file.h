/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_FILE_H
#define COREFILE_FILE_H

/**
 * @file file.h
 * A file that is either there and whole or not there: written without a name, named when done.
 *
 * A process that is killed half-way leaves nothing (file systems with O_TMPFILE), or one hidden
 * `.NAME.XXXXXX`.  The kernel's core_pattern has no part in it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct corefile_file {
	int fd;	    /**< Where to write; owned. */
	int dir_fd; /**< Owned. */
	char name[256];
	char hidden[280]; /**< Empty: the file has no name yet. */
};

#define COREFILE_FILE_NULL { .fd = -1, .dir_fd = -1 }

/**
 * @param dir_fd  Directory; borrowed.
 * @param name    What it will be called there: one component.
 * @return 0, -EINVAL (@p name), -EACCES, -ENOSPC, -EROFS, other -errno of open(2).
 */
int corefile_file_open(int dir_fd, const char *name, mode_t mode, struct corefile_file *ret);
/**
 * As above, by a path that somebody gave: behind its symbolic links, and for nothing that a rename
 * must not replace.
 * @param replace  Without it, a file of that name is an error now, and not only when all is written.
 * @return as above; -EEXIST, -EISDIR, -ENOTSUP (a device, pipe or socket), -errno of stat(2).
 */
int corefile_file_open_path(const char *path, mode_t mode, bool replace, struct corefile_file *ret);
/** Bytes that its file system still has for us. */
int corefile_file_space(const struct corefile_file *f, uint64_t *ret_bytes);
/**
 * Everything to the disk, then the name.
 * @param replace  A file of that name goes away in the same step; without it, -EEXIST.
 * @return 0, -EEXIST, -EIO, -ENOSPC, other -errno of fsync(2), linkat(2), renameat2(2).
 */
int corefile_file_commit(struct corefile_file *f, bool replace);
/** Without a commit before, nothing stays.  Accepts COREFILE_FILE_NULL. */
void corefile_file_close(struct corefile_file *f);

/**
 * A core to read: a plain file as it is, a zstd one expanded.  Whoever shortens a mapped file makes
 * its reader die of SIGBUS.
 */
struct corefile_map {
	const void *data;
	size_t size;
};

/**
 * @param fd       Regular file; borrowed, may be closed afterwards.
 * @param scratch_fd  An empty file for what a compressed one expands to; borrowed.
 * @param max      Most bytes that a compressed file may expand to.
 * @return 0, -EINVAL (not a regular file, or empty), -EBADMSG (damaged zstd), -EFBIG, -ENOMEM,
 *         -errno of writing to the scratch file.
 */
int corefile_map_open(int fd, int scratch_fd, uint64_t max, struct corefile_map *ret);
/** Accepts a zeroed object. */
void corefile_map_close(struct corefile_map *m);

#endif /* COREFILE_FILE_H */
