/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_NATIVE_H
#define WORKER_HOST_NATIVE_H

/**
 * @file native.h
 * Native frames of the threads that wait.  They are told only if the thread has not run from before its registers
 * were read until after its stack was.
 */

#include "agentd/worker/host/debug_file.h"
#include "agentd/worker/host/memory_guard.h"
#include "agentd/worker/host/task.h"
#include "hoststack/native/unwind.h"
#include "rpc_gen.h"

/** One frame, for people. */
struct native_place {
	const char *function; /**< As the file exports it, or its debug file has it; NULL: not known. */
	uint64_t offset;      /**< From the function's beginning. */
	const char *module, *build_id; /**< NULL: the code is of no file; or that has none. */
	uint64_t address;	       /**< In the file's own addresses; of no file, in the process. */
	bool is_internal; /**< The file does not export the function. */
	struct native_frame frame;
};

/** The native frames of one thread. */
struct native_stack {
	enum rpc_native_end end;
	struct native_place *places; /**< malloc'ed; their texts are those of the reader. */
	size_t n;
	uint64_t reached; /**< The stack pointer of the last frame. */
	bool is_mixed;	  /**< Outer frames are of a later moment than inner ones. */
	bool was_stopped; /**< The thread stood still for it. */
	uint64_t switches; /**< How often the thread had been on a processor when it was read. */
};

/** What reads them. */
struct native_reader {
	struct native_unwinder unwinder;
	struct native_module *modules; /**< malloc'ed. */
	size_t n_modules;
	struct debug_files debug;
};

/**
 * Look up what the process has loaded.
 * @param machine  What it runs on: EM_...
 * @param root_fd  Root of the process, for debug files; borrowed; -1: it has none.
 * @return 0, -errno.
 */
int native_reader_init(struct native_reader *r, uint16_t machine, struct memory_guard *guard,
		       struct hoststack_memory *memory, int root_fd);
/**
 * Read one thread, which was looked at a moment ago.
 * @return 1: it was read, or tells why not; 0: it has run meanwhile, and may be looked at again; -ENOMEM; what
 *         hoststack_read() returns if nothing more can be read.
 */
int native_reader_read(struct native_reader *r, const struct tasks *tasks, const struct task *task,
		       struct native_stack *ret);
/**
 * Read a thread of which all registers and a copy of the stack are of one moment.
 * @param begin  Address of the copy's first byte.
 * @return 0; -ENOMEM; what hoststack_read() returns if nothing more can be read.
 */
int native_reader_read_copy(struct native_reader *r, const struct native_registers *registers, uint64_t begin,
			    const void *bytes, size_t size, struct native_stack *ret);
/**
 * Name the function of a frame that its file does not export, from a debug file.  A file system may never answer.
 * @return whether there is a name now.
 */
bool native_reader_name(struct native_reader *r, struct native_place *place);
void native_reader_deinit(struct native_reader *r);

#endif /* WORKER_HOST_NATIVE_H */
