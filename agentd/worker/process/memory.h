/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_MEMORY_H
#define WORKER_PROCESS_MEMORY_H

/**
 * @file memory.h
 * Reading a target's memory through /proc/PID/mem, the one file that serves host memory and GPU
 * mappings alike.
 *
 * Once a larger read fails, each page is read on its own: a transfer that crosses the end of a GPU
 * buffer fails as a whole instead of being short.  Nothing is ever written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Where the memory of one process is read from. */
struct memory {
	int fd;	   /**< /proc/PID/mem, owned; -1 when closed. */
	pid_t pid; /**< 0: memory_read_pieces() uses the file alone. */
	ssize_t (*pread)(int fd, void *buf, size_t size, off_t offset); /**< NULL: the real one. */
	/** Serves memory that a core file holds, in place of `fd`; answers as memory_read(). */
	ssize_t (*read)(const void *source, uint64_t address, void *buf, size_t size);
	const void *source;
};

#define MEMORY_NULL { .fd = -1 }

/** Open /proc/PID/mem; the kernel judges the right to read then.  @return 0 or -errno. */
int memory_open(struct memory *m, pid_t pid);
/** Close the file; accepts a closed one. */
void memory_close(struct memory *m);

/**
 * Read bytes, from the first on.
 * @return the number of bytes, fewer than @p size if the rest is not readable; -EFAULT (nothing is
 *         readable there), -ESRCH (the address space is gone), -EBADF (closed), other -errno.
 */
ssize_t memory_read(const struct memory *m, uint64_t address, void *buf, size_t size);
/** Read all of it; if that fails @p buf holds any bytes.  @return 0, -EFAULT, other -errno. */
int memory_read_exact(const struct memory *m, uint64_t address, void *buf, size_t size);

/** Most pieces that one system call can fetch. */
#define MEMORY_PIECES_MAX 1024

/** One of many small reads. */
struct memory_piece {
	uint64_t address;
	void *buf;
	uint32_t size;
	bool ok; /**< Out: all of it was read. */
};

/**
 * Read small pieces from many places, each all or nothing.  One system call reads up to
 * MEMORY_PIECES_MAX of them as long as they lie in ordinary memory; pieces elsewhere are read one
 * by one through the file.
 *
 * A piece costs as much as its page does, unless it lies right below the piece before it: such
 * neighbours share the cost.  If the process has capabilities that this one has dropped (root's
 * has), all pieces are read through the file, at twice the cost.
 */
void memory_read_pieces(const struct memory *m, struct memory_piece *pieces, size_t n);

#endif /* WORKER_PROCESS_MEMORY_H */
