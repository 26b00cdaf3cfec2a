/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_MEMORY_H
#define SYMBOLS_MEMORY_H

/**
 * @file memory.h
 * How this module reads another process, a core file, or a plain file.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Memory that can be read. */
struct symbols_memory {
	/**
	 * Read bytes.
	 * @return bytes read from the first on, fewer than asked where the rest is not readable;
	 *         negative errno when nothing at all is.
	 */
	ssize_t (*read)(void *arg, uint64_t address, void *buf, size_t size);
	void *arg;
};

/**
 * Read all of a range.
 * @return 0, -EFAULT (unreadable, short, wraps around), other -errno of read.
 */
int symbols_memory_read(const struct symbols_memory *m, uint64_t address, void *buf, size_t size);

/**
 * Read a C string of at most @p max bytes, without reading far behind its end.
 * @param buf  Room for max + 1 bytes; terminated on success.
 * @return length, -EFAULT (unreadable), -ENAMETOOLONG, other -errno of read.
 */
ssize_t symbols_memory_string(const struct symbols_memory *m, uint64_t address, char *buf,
			      size_t max);

#endif /* SYMBOLS_MEMORY_H */
