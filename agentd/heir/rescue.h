/* SPDX-License-Identifier: MIT */
#ifndef HEIR_RESCUE_H
#define HEIR_RESCUE_H

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
	bool ended;	  /**< It had ended its session before; no more than a look is owed. */
};

/** What every rescue needs; all is borrowed. */
struct rescue_host {
	const char *records; /**< Directory of undo records. */
	const char *worker;  /**< The program. */
	const char *kfd_device, *kfd_sysfs, *cuda_library;
	bool verbose;
};

/** In a process of its own: bring the target back to where it would be without the worker. */
_Noreturn void rescue_run(const struct rescue_host *h, const struct orphan *o);

#endif /* HEIR_RESCUE_H */
