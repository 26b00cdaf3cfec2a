/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_DEBUG_FILE_H
#define WORKER_HOST_DEBUG_FILE_H

/**
 * @file debug_file.h
 * Separate debug files: names of functions that a loaded file does not export.
 *
 * They are looked for by build id, below the root of the process and then below that of the agent.  Else the
 * section .gnu_debuglink of the loaded file leads to one, below the root of the process alone: that file is opened for
 * this, has to have the headers that were loaded, and says which checksum its debug file has.
 *
 * A process in a container may have put there what it likes: no symbolic link is followed, nothing is looked up where
 * the file system is not one of those that keep files themselves, only a plain file is opened, and it is read within
 * bounds of bytes and time.  That does not keep a file system from never answering, so whoever asks has to have done
 * all else before.  For a core only those of this machine are looked for, and whoever asks waits for them without a
 * deadline, as for files of libraries.
 */

#include "hoststack/elf.h"
#include "hoststack/native/symbols.h"

/** Most that are open, most modules for which one is looked for, and most bytes whose checksums are made. */
#define DEBUG_FILES_MAX	  64
#define DEBUG_MODULES_MAX 1024
#define DEBUG_CHECKED_MAX (UINT64_C(256) << 20)

struct debug_file;
struct native_module;

/** Files that were looked for. */
struct debug_files {
	int root_fd; /**< Root of the process; borrowed; -1: it has none. */
	struct debug_file *list; /* malloc'ed. */
	size_t n, n_open;
	uint64_t checked; /* Bytes. */
};

/**
 * Name a function.
 * @param address, function, ret_begin  As for native_symbols_name(), in the process.
 * @param process  Its memory, and the time that there is.
 * @param module   Lives as long as the files do.
 * @return a name that lives as long as the files do; NULL: no debug file has one.
 */
const char *debug_files_name(struct debug_files *d, struct hoststack_memory *process,
			     const struct native_module *module, uint64_t address, uint64_t function,
			     uint64_t *ret_begin);
void debug_files_deinit(struct debug_files *d);

#endif /* WORKER_HOST_DEBUG_FILE_H */
