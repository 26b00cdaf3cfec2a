/* SPDX-License-Identifier: MIT */
#ifndef CONNECT_BROKER_H
#define CONNECT_BROKER_H

/**
 * @file broker.h
 * Answers a worker's calls of socket(2), bind(2), listen(2) and connect(2), which the kernel lets wait for us
 * (seccomp_unotify(2)), and lets those pass that are not on the worker's list where the agent was started with
 * --permissive.
 *
 * The worker may hold somebody else's code: nothing that it sends is believed, and what could block on
 * it blocks this process alone, which works for no other worker.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/connect/sockets.h"
#include "agentd/ipc/connect.h"

/** So many different calls of a permissive worker are logged. */
#define BROKER_LOGGED_MAX 64

struct broker {
	int channel; /**< To the worker; borrowed. */
	struct sockets sockets;
	pid_t target;
	int target_pidfd;
	int notify_fd; /**< The worker's calls. */
	int memory_fd; /**< The worker's memory. */
	uint64_t net_dev, net_ino;
	uint32_t label; /**< 0: none was claimed yet. */
	unsigned claims;
	bool permissive; /**< Calls that are not on the worker's list are logged, and made. */
	unsigned n_logged;
	uint64_t logged[BROKER_LOGGED_MAX];
	struct seccomp_notif *request;
	struct seccomp_notif_resp *answer;
};

#define BROKER_NULL { .sockets = SOCKETS_NULL, .target_pidfd = -1, .notify_fd = -1, .memory_fd = -1 }

/** Make what takes system calls that the sandbox has not.  @return 0, -errno. */
int broker_prepare(struct broker *b);
/**
 * Take what the monitor says first, and the target's network namespace where this process may enter it.
 * @return 0, -EPROTO, -ETIMEDOUT, -EPIPE, other -errno.
 */
int broker_meet_monitor(struct broker *b);
/** Take what the worker says first, and answer.  @return as broker_meet_monitor(). */
int broker_meet_worker(struct broker *b);
/** Serve until the worker ends.  @return 0; -EPROTO: the worker breaks the protocol; other -errno. */
int broker_serve(struct broker *b);
void broker_deinit(struct broker *b);

#endif /* CONNECT_BROKER_H */
