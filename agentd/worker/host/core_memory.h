/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_CORE_MEMORY_H
#define WORKER_HOST_CORE_MEMORY_H

/**
 * @file core_memory.h
 * The memory of a process as its core has it, with the files that it had loaded.
 *
 * A core leaves out what lies in files.  Such a file is read below this worker's own root directory, if its first page
 * is the one that the core shows, and only those parts that are loaded without a right to write.
 */

#include "agentd/worker/host/memory_guard.h"
#include "corefile/amdgpu/model.h"
#include "corefile/process.h"

/** Files that are open at once. */
#define CORE_FILES_OPEN 64
/** Parts of a file that nobody writes. */
#define CORE_PARTS_MAX 8

/** A file that was mapped from its first byte on. */
struct core_loaded {
	uint64_t base;
	const char *path;
	enum { CORE_FILE_UNTRIED, CORE_FILE_SAME, CORE_FILE_OTHER, CORE_FILE_NONE } state;
	int error; /**< Why it could not be opened; 0: it is another one. */
	int fd;
	struct {
		uint64_t begin, end;
	} parts[CORE_PARTS_MAX]; /**< Offsets in the file. */
	size_t n_parts;
};

struct core_memory {
	const struct amdcore *core;
	int root_fd; /**< Where paths begin; -1: no file is read. */
	struct corefile_mappings mappings;
	struct core_loaded **owners; /**< malloc'ed: of each mapping the file; NULL: its first byte was not mapped. */
	struct core_loaded *loaded;  /**< malloc'ed. */
	size_t n_loaded;
	uint64_t vdso; /**< Where the kernel's own library is; 0: not known. */
	struct core_loaded *open[CORE_FILES_OPEN];
	size_t n_opened; /**< Ever. */
};

/** Take what the notes say of files.  @param core  Borrowed.  @return 0, -ENOMEM. */
int core_memory_init(struct core_memory *m, const struct amdcore *core, int root_fd);
void core_memory_deinit(struct core_memory *m);
/** List the files, for what looks into each.  @return 0, -ENOMEM. */
int core_memory_list(const struct core_memory *m, struct memory_guard *g);
/** struct hoststack_memory, `read`; @p ctx is a struct core_memory. */
int core_memory_read(void *ctx, const struct hoststack_piece *pieces, size_t n);
/** How many files were not read although they were wanted.  @param ret_first  One of them. */
size_t core_memory_not_read(const struct core_memory *m, const struct core_loaded **ret_first);

#endif /* WORKER_HOST_CORE_MEMORY_H */
