/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_RULES_CHILD_H
#define MANAGER_RULES_CHILD_H

/**
 * @file rules_child.h
 * The rules process: starting it, and again when it has died, and the socket to it.
 *
 * The manager never waits for that process.  What it does not take at once waits in the link; what
 * has more waiting than the link allows, or does not answer, is killed, and another one started.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/ipc/link.h"
#include "agentd/ipc/monitor_rules.h"

/** Requests about hooks that clients wait for at a time. */
#define RULES_REQUESTS_MAX 128
/** For reading the configuration: names are looked up in a database that may be far away. */
#define RULES_ANSWER_MS 60000

struct rules_child {
	const char *program; /**< Path of gpu-agent-rules; borrowed, as is argv. */
	char *const *argv;   /**< The command line of the manager, which is its own, too. */
	bool own_socket;     /**< The manager makes the socket: its group is wanted. */
	pid_t pid;	     /**< 0: it does not run. */
	uint32_t run;	     /**< So often it was started. */
	struct ipc_link link;
	int state_fd; /**< What it has read, for the one that follows it; -1: nothing yet. */
	bool is_fresh;	    /**< It has not said yet what it has read. */
	uint64_t idle_by;   /**< RULES_IDLE was asked: it is killed unless it answers by then; 0: it was not. */
	bool has_stopped;   /**< Told to stop, it has no hook any more. */
	bool stays_ended;   /**< Its program is of another build by now. */
	unsigned reloads;   /**< Not answered yet, */
	unsigned unsent;    /**< and among them those that wait for the next process. */
	unsigned failures;  /**< In a row. */
	uint64_t started_at, restart_at; /**< Monotonic ns; 0: it is not to be started again now. */
	uint64_t answer_by; /**< It is killed unless its configuration comes by then; 0: none is awaited. */
	uint32_t requests[RULES_REQUESTS_MAX]; /**< Those that clients wait for. */
	size_t n_requests;
};

/** Nothing happens yet.  @param argv  Of the manager; NULL-terminated. */
void rules_child_init(struct rules_child *p, const char *program, char *const *argv);
/** Close the socket, at the end of which the process ends. */
void rules_child_deinit(struct rules_child *p);

/** Start the process.  @return 0, -errno. */
int rules_child_start(struct rules_child *p);
/**
 * Wait for what the first process reads, the only time that somebody waits for it.
 * @param signal_fd  A signalfd that does not block: SIGHUP is a reload, SIGTERM and SIGINT end the wait.
 * @param take       Take one message.  @return 0: that was it, -EAGAIN: there is none yet, other -errno.
 * @return 0, -EINTR, -ETIMEDOUT, what take() returned.
 */
int rules_child_await(struct rules_child *p, int signal_fd, int (*take)(void *ctx), void *ctx);
/**
 * Tell it something.  One that cannot be told is killed.
 * @param data  NULL: the message has none.
 * @param fd    Goes along, borrowed; or -1.
 * @return 0; -EPIPE: it does not run, or is about to be started again; other -errno.
 */
int rules_child_tell(struct rules_child *p, enum rules_type type, uint32_t number, const void *data, size_t size,
	       int fd);
/** Have it read the configuration again, now or as soon as it runs. */
void rules_child_reload(struct rules_child *p);
/** Ask it whether a hook runs or waits, which it says within seconds.  @return as rules_child_tell(). */
int rules_child_ask_idle(struct rules_child *p);
/** It has said what it has read, and a deadline is met.  @param take_state  For the next process; or -1. */
void rules_child_answered(struct rules_child *p, int take_state);
/** Kill it, as it breaks the protocol or does not answer; it is reaped, and started again, later. */
void rules_child_kill(struct rules_child *p);
/** @return whether it has so much to read that hooks of faults are rather not run. */
bool rules_child_is_behind(const struct rules_child *p);

/**
 * Remember a request of a client, which is owed an answer whatever happens to the process.
 * @return false: too many are remembered.
 */
bool rules_child_add_request(struct rules_child *p, uint32_t request);
/** @return false: nobody waits for an answer to this one. */
bool rules_child_take_request(struct rules_child *p, uint32_t request);

/** It was reaped, and is started again later, unless @p stopping. */
void rules_child_ended(struct rules_child *p, int wait_status, bool stopping);
/** @return whether it is to be started again now. */
bool rules_child_is_due(const struct rules_child *p);
/** It is not started again, whatever it is told; nobody waits for what it has not read. */
void rules_child_stay_ended(struct rules_child *p);
/**
 * Kill it if it does not answer, and start it again when that is due.
 * @param ret_started  A new process runs, and does not know yet what its predecessor had watched.
 * @return next deadline (monotonic ns), 0: none.
 */
uint64_t rules_child_deadlines(struct rules_child *p, bool *ret_started);
/** @return what poll() is to watch its socket for. */
short rules_child_events(const struct rules_child *p);

#endif /* MANAGER_RULES_CHILD_H */
