/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_RECOVERY_RESCUE_H
#define MONITOR_RECOVERY_RESCUE_H

/**
 * @file rescue.h
 * What becomes of the target of a worker that is gone: another worker undoes what that one did and gives
 * the answer that it owes; where it cannot, the thread that waits is stopped for a moment (release.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Longest life of a process that runs rescue_run(), unless the kernel cannot end it. */
#define RESCUE_LIFE_S 23

/** The target of a worker that is gone. */
struct orphan {
	pid_t target;
	int pidfd;	  /**< Of the target. */
	int undo_fd;	  /**< What the worker wrote down; -1: nothing. */
	uint32_t session; /**< Number of the worker's session. */
	uid_t owner;	  /**< For whom it worked. */
	bool stuck;	  /**< It had to be killed. */
};

/** What a rescue needs of the process that has it done. */
struct rescue_host {
	const char *records; /**< Directory of undo records. */
	/** In a child: execute a worker that rescues @p o, and gives up by itself after @p timeout_ms. */
	void (*exec)(const void *ctx, const struct orphan *o, uint32_t timeout_ms);
	const void *ctx;
};

/** In a child: bring the target back to where it would be without the worker. */
_Noreturn void rescue_run(const struct rescue_host *h, const struct orphan *o);

/** The children that do so. */
struct rescues {
	struct rescue *first;
};

/**
 * Start one.
 * @param o       While its undo_fd is not empty nobody else may attach: taken, and -1 then.
 * @param record  Name of undo_fd's file, removed in the end; "": it has none.
 * @return 0 or -errno.
 */
int rescues_start(struct rescues *r, const struct rescue_host *h, struct orphan *o, const char *record);
/** Is something owed to @p target? */
bool rescues_owe(const struct rescues *r, pid_t target);
/**
 * A child was reaped, perhaps one of these.
 * @return true when its target did not get what it was owed.
 */
bool rescues_reaped(struct rescues *r, const struct rescue_host *h, pid_t pid, int wait_status);
/** They go on; a record in which something is owed stays. */
void rescues_deinit(struct rescues *r, const struct rescue_host *h);

#endif /* MONITOR_RECOVERY_RESCUE_H */
