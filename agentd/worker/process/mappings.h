/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_MAPPINGS_H
#define WORKER_PROCESS_MAPPINGS_H

/** @file mappings.h  /proc/PID/maps, line by line. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct mapping {
	uint64_t begin, end; /**< Not empty. */
	uint64_t offset;     /**< In the file. */
	bool readable, writable;
	const char *path; /**< As the kernel writes it; empty for ordinary memory. */
};

typedef void (*mappings_fn)(void *arg, const struct mapping *m);

/** @param text  NUL-terminated; changed.  Lines of another form are skipped. */
void mappings_parse(char *text, mappings_fn fn, void *arg);
/**
 * The kernel judges the right to read when the file is opened.
 * @return descriptor, -errno.
 */
int mappings_open(pid_t pid);
/** As they are now.  @return 0, -EFBIG, -ENOMEM, -errno of read(2). */
int mappings_read(int fd, mappings_fn fn, void *arg);

#endif /* WORKER_PROCESS_MAPPINGS_H */
