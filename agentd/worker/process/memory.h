/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_MEMORY_H
#define WORKER_PROCESS_MEMORY_H

/**
 * @file memory.h
 * Reading a target's memory through /proc/PID/mem, the one file that serves host memory and GPU
 * mappings alike.
 *
 * Each page is read on its own once a larger read fails: a transfer that crosses the end of a GPU
 * buffer fails as a whole instead of being short.  Nothing is ever written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct memory {
	int fd;	   /**< /proc/PID/mem, owned; -1 when closed. */
	pid_t pid; /**< 0: memory_read_pieces() uses the file alone. */
	ssize_t (*pread)(int fd, void *buf, size_t size, off_t offset); /**< NULL: the real one. */
	/** In place of the file, for memory that is kept in a core; answers as memory_read(). */
	ssize_t (*read)(const void *source, uint64_t address, void *buf, size_t size);
	const void *source;
};

#define MEMORY_NULL { .fd = -1 }

/** @return 0 or -errno. */
int memory_open(struct memory *m, pid_t pid);
void memory_close(struct memory *m);

/**
 * @return bytes read, from the first on; fewer than asked when the rest is not readable.
 *         -EFAULT nothing there, -EIO, -ESRCH the address space is gone.
 */
ssize_t memory_read(const struct memory *m, uint64_t address, void *buf, size_t size);
/** All or nothing.  @return 0, -errno. */
int memory_read_exact(const struct memory *m, uint64_t address, void *buf, size_t size);

/** Pieces that one system call can fetch. */
#define MEMORY_PIECES_MAX 1024

struct memory_piece {
	uint64_t address;
	void *buf;
	uint32_t size;
	bool ok; /**< Out: all of it was read. */
};

/**
 * Read small pieces from many places, each all or nothing, up to MEMORY_PIECES_MAX in one system
 * call as long as they lie in ordinary memory; others are fetched one by one through the file.  Each
 * costs as much as its page does, unless it lies right below the one before: such ones share it.  So are all,
 * at twice the cost, of a process with capabilities that this one has dropped (root's).
 */
void memory_read_pieces(const struct memory *m, struct memory_piece *pieces, size_t n);

#endif /* WORKER_PROCESS_MEMORY_H */
