/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CORE_OUTPUT_H
#define WORKER_CORE_OUTPUT_H

/**
 * @file core_output.h
 * A core on its way into a file that a client has opened, a slice at a time.
 *
 * The client may be anybody's enemy: only regular files on local disks are taken, for those alone
 * take what is written without waiting for somebody, and without memory of ours for what they hold.
 */

#include "agentd/worker/target.h"

struct core_output;

struct core_output_state {
	uint64_t position; /**< Bytes of the core that are on their way, before compression. */
	uint64_t lost;	   /**< Of them, zeros in place of memory that cannot be read. */
	bool done;
};

/**
 * @param take_fd  Closed on failure, and by core_output_destroy().
 * @param bytes    Of the core: what target_ops.core_read gives from 0 on.
 * @return 0, or negative with @p err: unsupported for a file that is not taken.
 */
int core_output_create(int take_fd, bool zstd, uint64_t bytes, struct core_output **ret,
		       struct agent_err *err);
/** NULL is allowed.  What was written stays in the file. */
void core_output_destroy(struct core_output *o);
/**
 * Write until the deadline, some MiB at least; stops nothing.
 * @return 0, or negative with @p err; there is no use in going on then.
 */
int core_output_write(struct core_output *o, struct target *t, uint64_t deadline_ns,
		      struct core_output_state *ret, struct agent_err *err);

#endif /* WORKER_CORE_OUTPUT_H */
