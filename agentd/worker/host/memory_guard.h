/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_MEMORY_GUARD_H
#define WORKER_HOST_MEMORY_GUARD_H

/**
 * @file memory_guard.h
 * A process's memory without what must not be read: mappings of devices, where a read may have effects.
 */

#include <stdbool.h>

#include "agentd/worker/process/memory.h"
#include "hoststack/memory.h"

/** So many files are known. */
#define MEMORY_GUARD_FILES_MAX 8192u

/** What may be read. */
struct memory_guard {
	const struct memory *memory;
	int maps_fd; /**< -1: its files are those that were added. */
	bool is_indirect; /**< process_vm_readv() is refused. */
	uint32_t n_refreshed;
	struct guard_range {
		uint64_t begin, end;
	} *ranges; /**< malloc'ed, ascending. */
	size_t n, capacity;
	struct guard_file {
		uint64_t begin;
		char *path; /**< malloc'ed. */
		bool has_code; /**< It is known to have some. */
	} *files; /**< malloc'ed, ascending: those that are mapped from their first byte on. */
	size_t n_files, files_capacity;
	bool is_cut; /**< There are more files. */
	int error;
};

/** Add a file that is mapped from its first byte on; in the order of addresses.  @return 0, -ENOMEM. */
int memory_guard_add_file(struct memory_guard *g, uint64_t begin, const char *path);
/** Read the mappings.  @return 0 or -errno. */
int memory_guard_refresh(struct memory_guard *g);
void memory_guard_deinit(struct memory_guard *g);
/** struct hoststack_memory, `read`; @p ctx is a struct memory_guard. */
int memory_guard_read(void *ctx, const struct hoststack_piece *pieces, size_t n);

#endif /* WORKER_HOST_MEMORY_GUARD_H */
