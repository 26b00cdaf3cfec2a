/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_FRONT_H
#define MANAGER_FRONT_H

/** @file front.h  The two processes that serve clients: the frontend, and the judge behind it. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/config.h"
#include "agentd/ipc/outbox.h"

struct front {
	pid_t pid, judge_pid; /**< 0: it has ended. */
	struct outbox box;    /**< To the judge. */
};

#define FRONT_NULL { .box = OUTBOX_NULL }

/** What they are started with. */
struct front_setup {
	const char *program, *judge;
	const struct config *config;
	int listen_fd; /**< For the judge, as is its end of the pair to the monitor; borrowed. */
	int monitor;
	uid_t uid; /**< The frontend becomes this user. */
	gid_t gid;
	bool user_mode, verbose;
};

/** Start both.  @return 0, -errno. */
int front_start(struct front *f, const struct front_setup *setup);

#endif /* MANAGER_FRONT_H */
