/* SPDX-License-Identifier: MIT */
#ifndef TRACER_TRACER_H
#define TRACER_TRACER_H

/** @file tracer.h  The one process that a tracer is for, and those of its threads that it holds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/worker_tracer.h"
#include "cudbgshim_target.h"

#define TRACER_THREADS_MAX 72
#define TRACER_SYS	   (&cudbgshim_tracer_direct)

struct tracer {
	struct ipc_tracer_target target;
	pid_t held[TRACER_THREADS_MAX]; /**< Threads that are seized. */
	size_t n_held;
	uint64_t hold_until; /**< While there are any. */
	bool is_over;	     /**< Nothing is executed any more: answer, and end. */
	uint8_t block[IPC_TRACER_SAMPLE_MAX];
};

/** Read a file of /proc/PID.  @return its length, -errno; the text ends with NUL. */
ssize_t tracer_read_text(const char *name, char *buf, size_t size);
/**
 * Is it the process that the worker was allowed to attach to, with the same users and the same program?
 * The list of mappings was opened then.  It is empty when the program that it is of is no more.
 */
bool tracer_is_unchanged(const struct tracer *t);
/** @param want  Field 22 of /proc/PID/stat. */
bool tracer_has_start_time(uint64_t want);

/** @return where a thread stands in `held`; n_held: it is not held. */
size_t tracer_find(const struct tracer *t, pid_t tid);
void tracer_forget(struct tracer *t, size_t i);
/**
 * Fetch the stop of one thread.  Whichever thread calls exec, the kernel then tells of the process, as the number of
 * its first thread.
 */
struct cudbgshim_stop tracer_look_at(struct tracer *t, pid_t tid);
/** Fetch the stops of all threads.  @return that of @p tid. */
struct cudbgshim_stop tracer_look_at_all(struct tracer *t, pid_t tid);
/** Seize a thread of the process.  @return 0, -errno; -ESTALE: the process has changed, and the tracer is over. */
int tracer_seize(struct tracer *t, pid_t tid);

/**
 * Stop a thread, read its registers and the top of its stack into the block, and let it go (sample.c).
 * What cannot be done within a deadline is ended by the end of this process, at which the kernel lets the thread go.
 * @return 0 with the answer's other members, -errno.
 */
int tracer_sample(struct tracer *t, const struct ipc_tracer_call *c, struct ipc_tracer_answer *ret);

#endif /* TRACER_TRACER_H */
