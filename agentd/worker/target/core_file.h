/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_CORE_FILE_H
#define WORKER_TARGET_CORE_FILE_H

/**
 * @file core_file.h
 * A core file as a target: whatever can be asked of a process that stands still can be asked of it.
 *
 * Nothing in the file is believed (corefile/amdgpu_read.h, cuda_read.h): what makes no sense is left
 * out and told as missing.
 */

#include "agentd/worker/target/target.h"
#include "corefile/corefile.h"

struct core_bytes {
	const void *data;
	size_t size;
	const char *name; /**< For people; NULL: not known. */
	uint64_t time_us; /**< Of the last change of the file, since 1970. */
};

/**
 * @param bytes  Borrowed as long as the target lives, with what it points to.
 * @param ret    Release with target_destroy(); there is nothing to undo.
 * @return 0, or negative with @p err: no core, or one that says nothing; the message has the offset.
 */
int target_core_create(const struct worker_options *o, const struct core_bytes *bytes,
		       struct target **ret, struct agent_err *err);

/* For the back ends, target_core_*.c. */

/** What both formats have in common. */
struct core_file {
	struct core_bytes bytes;
	struct rpc_arena arena; /**< For what lives as long as the target. */
	struct target_origin origin;
	/** Process, devices and queues as the agent saw them that wrote the file; NULL: another did. */
	const struct rpc_gpu_snapshot_result *head;
};

void core_file_init(struct core_file *f, const struct core_bytes *bytes);
void core_file_deinit(struct core_file *f);
/** Take what the agent has put into the file: a document of gpu.snapshot without waves. */
void core_file_set_head(struct core_file *f, const void *text, size_t size);
/**
 * What is known of where it comes from; with a head, that.
 * @param format    Static.
 * @param writer    NULL: not known.
 * @param problems  What the reader of the format had to leave out.
 * @return 0, -ENOMEM.
 */
int core_file_describe(struct core_file *f, const char *format, const char *writer,
		       const struct corefile_problems *problems);
/** Of the head; NULL: it has no such one. */
const struct rpc_device *core_file_device(const struct core_file *f, uint32_t gpu_id);
const struct rpc_queue *core_file_queue(const struct core_file *f, uint32_t queue_id);
/** What no format has of a device: name and address, if the head tells. */
void core_file_complete_device(const struct core_file *f, struct target_device *d);

/** The file cannot be read.  @return negative. */
int core_file_refuse(const struct core_file *f, int r, const struct corefile_problem *why,
		     struct agent_err *err);

/** @return 0, or negative with @p err. */
int core_kfd_create(const struct worker_options *o, const struct core_bytes *bytes,
		    struct target **ret, struct agent_err *err);
int core_cuda_create(const struct worker_options *o, const struct core_bytes *bytes,
		     struct target **ret, struct agent_err *err);

#endif /* WORKER_TARGET_CORE_FILE_H */
