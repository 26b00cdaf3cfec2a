/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_HEIRS_H
#define MANAGER_HEIRS_H

/** @file heirs.h  The processes that look after targets whose monitor is gone (agentd/heir). */

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/config.h"

/** What they are started with; all is borrowed. */
struct heir_setup {
	const char *program;
	const char *records; /**< Directory of undo records. */
	const struct config *config;
	bool verbose;
};

/** Have done what an earlier agent left undone, and wait for that: the only time that somebody does. */
void heir_take_over(const struct heir_setup *setup);
/**
 * Start the one that waits for the monitor's end.
 * @return its pid; 0: there is none, and the next start does its work.
 */
pid_t heir_start(const struct heir_setup *setup, pid_t monitor);

#endif /* MANAGER_HEIRS_H */
