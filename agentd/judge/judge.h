/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_JUDGE_H
#define JUDGE_JUDGE_H

/** @file judge.h  Everything that the judging process holds, and its three neighbours. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentd/access.h"
#include "agentd/closers.h"
#include "agentd/ipc/monitor_judge.h"
#include "agentd/ipc/outbox.h"
#include "agentd/judge/candidates.h"
#include "agentd/judge/clients.h"
#include "agentd/judge/names.h"
#include "agentd/judge/uses.h"

struct judge {
	struct access_rules groups;
	struct ipc_limits limits; /**< As the monitor told them last; type 0: not yet. */
	bool user_mode;
	int listen_fd, signal_fd;
	struct outbox front;   /**< Its `sock` is -1 once the frontend is of no use any more. */
	struct outbox manager;
	struct outbox monitor; /**< Its `sock` is -1 once the monitor is gone. */
	struct clients clients;
	struct candidates candidates;
	struct names names;
	struct uses uses;
	struct closers closers;
	uint64_t accept_at;  /**< Accepting failed, and is tried again then (monotonic ns); 0: it did not. */
	bool front_serves;
	bool is_front_idle;  /**< It has said so, and nobody has told it to serve on. */
	bool is_stopping;    /**< The agent stops: nobody is accepted or judged. */
	bool is_over;	     /**< The manager is gone, or wants no judge any more. */
};

/** Tell the frontend.  @param fd  To go along, borrowed; or -1. */
void judge_tell_front(struct judge *j, const void *msg, size_t size, int fd);
/** Tell the manager.  @param fd  To go along, borrowed; or -1. */
void judge_tell_manager(struct judge *j, const void *msg, size_t size, int fd);
/** Tell the monitor.  @param fd  To go along, borrowed; or -1. */
void judge_tell_monitor(struct judge *j, const void *msg, size_t size, int fd);
/** The monitor is gone: nothing is started any more, and the manager stops the agent. */
void judge_monitor_gone(struct judge *j);
/** Send what waits for any of the three.  @return when one of them is given up (monotonic ns); 0: nothing waits. */
uint64_t judge_flush(struct judge *j);
/** The frontend has gone, or broken the protocol: nothing comes from it any more. */
void judge_front_fell(struct judge *j, int error);
/** Close the frontend's socket: clients' sockets may be in what it has not received. */
void judge_close_front(struct judge *j);
/** Tell the frontend what has changed about a client. */
void judge_tell_client(void *ctx, const struct ipc_client *m);
/** What others of the agent know about a client. */
struct ipc_identity judge_identity(const struct access_peer *peer);

/** Are new clients wanted now? */
bool accept_wanted(const struct judge *j);
/** Somebody has connected. */
void accept_clients(struct judge *j);

/** Take one message of the frontend.  @return 0, -EAGAIN, -EPIPE, -EPROTO: it may not ask for that; other -errno. */
int requests_read_front(struct judge *j);
/** Take one message of the manager.  @return 0, -EAGAIN, -EPIPE, other -errno. */
int requests_read_manager(struct judge *j);
/** Take one message of the monitor.  @return 0, -EAGAIN, -EPIPE, other -errno. */
int requests_read_monitor(struct judge *j);

#endif /* JUDGE_JUDGE_H */
