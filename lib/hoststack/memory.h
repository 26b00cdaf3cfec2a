/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_MEMORY_H
#define HOSTSTACK_MEMORY_H

/** @file memory.h  How this module reads another process: within bounds of bytes and time. */

#include <stddef.h>
#include <stdint.h>

/** One read of several. */
struct hoststack_piece {
	uint64_t address;
	void *buf;
	size_t size;
};

/** Memory of a process, and what may still be read of it. */
struct hoststack_memory {
	/**
	 * Read pieces in their order, each as a whole.
	 * @return 0, -EFAULT (one of them is not readable), -ESRCH (the process is gone), other -errno.
	 */
	int (*read)(void *ctx, const struct hoststack_piece *pieces, size_t n);
	void *ctx;
	uint64_t bytes_left;
	uint64_t deadline_ns; /**< Monotonic; 0: there is none. */
};

/** Read one piece.  @return 0, -EFAULT, -ESRCH, -EDQUOT (no bytes are left), -ETIME (no time is), other -errno. */
int hoststack_read(struct hoststack_memory *m, uint64_t address, void *buf, size_t size);
/** Read several, in their order; the same answers. */
int hoststack_read_pieces(struct hoststack_memory *m, const struct hoststack_piece *pieces, size_t n);
/** Read a pointer; the same answers. */
int hoststack_read_u64(struct hoststack_memory *m, uint64_t address, uint64_t *ret);
/** Does this answer mean that nothing more can be read at all? */
int hoststack_is_over(int r);

/** A number of @p width bytes, 1, 2, 4 or 8, little endian, in bytes that were read. */
uint64_t hoststack_number(const uint8_t *bytes, size_t offset, size_t width);

/** To find out that a list is a circle, in constant memory (R. P. Brent, 1980). */
struct hoststack_circle {
	uint64_t mark;
	uint32_t steps, power;
};

/** @return whether this address was seen before, or will be found to be. */
int hoststack_circle_closes(struct hoststack_circle *c, uint64_t address);

#endif /* HOSTSTACK_MEMORY_H */
