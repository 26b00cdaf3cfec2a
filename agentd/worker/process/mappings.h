/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_MAPPINGS_H
#define WORKER_PROCESS_MAPPINGS_H

/** @file mappings.h  /proc/PID/maps, line by line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** One mapping of a process. */
struct mapping {
	uint64_t begin, end; /**< Addresses; never empty. */
	uint64_t offset;     /**< Offset in the file, in bytes. */
	bool readable, writable, executable;
	const char *path; /**< The file as the kernel writes it; empty for ordinary memory. */
};

/** Called for each mapping, in ascending order; @p m is valid during the call. */
typedef void (*mappings_fn)(void *arg, const struct mapping *m);

/**
 * Parse the text of a /proc/PID/maps file; lines of another form, or without an end, are skipped.
 * @param text  Is changed: a NUL stands where lines end.
 */
void mappings_parse(char *text, size_t size, mappings_fn fn, void *arg);
/**
 * Open /proc/PID/maps.  The kernel judges the right to read when the file is opened.
 * @return a descriptor that the caller closes, or -errno.
 */
int mappings_open(pid_t pid);
/** Read the mappings as they are now.  @return 0, -EFBIG, -ENOMEM, -errno of lseek(2), read(2). */
int mappings_read(int fd, mappings_fn fn, void *arg);

#endif /* WORKER_PROCESS_MAPPINGS_H */
