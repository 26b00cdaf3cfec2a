/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_CORE_FILE_H
#define WORKER_TARGET_CORE_FILE_H

/**
 * @file core_file.h
 * A core file as a target: it answers whatever a process that stands still would answer.
 *
 * Nothing in the file is believed (corefile/amdgpu/read.h, cuda_read.h): what makes no sense is
 * left out and listed as missing.
 */

#include "agentd/worker/target/target.h"
#include "corefile/corefile.h"

/** The mapped core file, and what is known about it from elsewhere. */
struct core_bytes {
	const void *data;
	size_t size;
	const char *name; /**< The file's name, for people; NULL: not known. */
	uint64_t time_us; /**< The last change of the file, in microseconds since 1970. */
};

/**
 * Make a target of a core file, with the back end that knows its format.
 * @param bytes  Borrowed as long as the target lives, with what it points to.
 * @param ret    Release with target_destroy(); there is nothing to undo.
 * @return 0, or negative with @p err: the file is no core, or says nothing; the message has the
 *         offset.
 */
int target_core_create(const struct worker_options *o, const struct core_bytes *bytes,
		       struct target **ret, struct agent_err *err);

/* Only the back ends use the rest of this header. */

/** What core files of both formats have in common. */
struct core_file {
	struct core_bytes bytes;
	struct rpc_arena arena; /**< Holds what lives as long as the target. */
	struct target_origin origin;
	/**
	 * Process, devices and queues as the agent that wrote the file saw them; NULL: no agent
	 * did.
	 */
	const struct rpc_gpu_snapshot_result *head;
};

/** Begin with an empty arena.  @param bytes  What it points to is borrowed. */
void core_file_init(struct core_file *f, const struct core_bytes *bytes);
/** Free the arena. */
void core_file_deinit(struct core_file *f);
/**
 * Read the head that the agent has put into the file: a document of gpu.snapshot without waves.  A
 * text that is none is ignored, and so is a second one.
 */
void core_file_set_head(struct core_file *f, const void *text, size_t size);
/**
 * Fill in f->origin: from the head, if there is one, else from the arguments.
 * @param format    Static.
 * @param writer    The program that wrote the file; NULL: not known.
 * @param problems  What the reader of the format had to leave out.
 * @return 0, -ENOMEM.
 */
int core_file_describe(struct core_file *f, const char *format, const char *writer,
		       const struct corefile_problems *problems);
/** @return the queue of the head with this id; NULL: it has none, or there is no head. */
const struct rpc_queue *core_file_queue(const struct core_file *f, uint32_t queue_id);
/** Add what no core format tells of a device, its name and PCI address for one, from the head. */
void core_file_complete_device(const struct core_file *f, struct rpc_device *d);

/** Say that the file cannot be read, and where.  @return negative with @p err. */
int core_file_refuse(const struct core_file *f, int r, const struct corefile_problem *why,
		     struct agent_err *err);

/** Make a target of a core file in AMD's format.  @return as target_core_create(). */
int core_kfd_create(const struct worker_options *o, const struct core_bytes *bytes,
		    struct target **ret, struct agent_err *err);
/** Make a target of a core file in NVIDIA's format.  @return as target_core_create(). */
int core_cuda_create(const struct worker_options *o, const struct core_bytes *bytes,
		     struct target **ret, struct agent_err *err);

#endif /* WORKER_TARGET_CORE_FILE_H */
