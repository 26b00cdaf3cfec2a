/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_RESCUES_H
#define MONITOR_RESCUES_H

/**
 * @file rescues.h
 * What becomes of the target of a worker that is gone: a process of another program (agentd/heir) brings
 * it back to where it would be without the worker.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/config.h"
#include "agentd/ipc/undo_record.h"

/** The target of a worker that is gone. */
struct orphan {
	pid_t target;
	int pidfd;	  /**< Of the target. */
	uint32_t session; /**< Number of the worker's session. */
	uid_t owner;	  /**< For whom it worked. */
	bool stuck;	  /**< It had to be killed. */
	bool ended;	  /**< It had ended its session before; no more than a look is owed. */
	bool is_repair;	  /**< It was to resume a GPU, and has died of that. */
};

/** What a rescue has left: a GPU of the target is suspended. */
struct rescue_left {
	pid_t target; /**< 0: nothing is left. */
	int pidfd, undo_fd;
	uid_t owner;
	bool is_repair; /**< As in struct orphan: it is not tried again. */
	char record[UNDO_RECORD_NAME_MAX];
};

/** What rescues are started with; all is borrowed. */
struct rescue_setup {
	const char *program, *records;
	const struct config *config;
	bool verbose;
};

/** The processes that do so. */
struct rescues {
	struct rescue *first;
};

/**
 * Start one.
 * @param take_undo  What the worker wrote down; while it is not empty nobody else may attach.  Taken, and -1 then.
 * @param record     Name of that file, removed in the end; "": it has none.
 * @return 0 or -errno.
 */
int rescues_start(struct rescues *r, const struct rescue_setup *setup, const struct orphan *o, int *take_undo,
		  const char *record);
/** Is something owed to @p target, or a GPU of it left suspended? */
bool rescues_owe(const struct rescues *r, pid_t target);
/**
 * A child was reaped, perhaps one of these.
 * @param ret_left  The caller's then.
 * @return true when its target did not get what it was owed.
 */
bool rescues_reaped(struct rescues *r, const char *records, pid_t pid, int wait_status, struct rescue_left *ret_left);
/** They go on; a record in which something is owed stays. */
void rescues_deinit(struct rescues *r, const char *records);

#endif /* MONITOR_RESCUES_H */
