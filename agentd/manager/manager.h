/* SPDX-License-Identifier: MIT */
#ifndef MANAGER_H
#define MANAGER_H

/** @file manager.h  Everything that the manager holds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/closers.h"
#include "agentd/config.h"
#include "agentd/manager/front.h"
#include "agentd/manager/monitor_child.h"
#include "agentd/manager/rules_child.h"
#include "agentd/manager/watchdog.h"
#include "agentd/programs.h"

struct manager {
	struct config config; /**< What the rules process has read. */
	struct rules_ids ids;
	char rule_names[RULES_NAMES_MAX][IPC_RULE_NAME_SIZE];
	uint32_t n_rules, rules_generation;
	struct rules_child rules;
	struct monitor_child monitor;
	struct programs programs;
	int programs_fd; /**< Of programs_watch(), or negative. */
	bool replaced;   /**< The programs were, and the log says so. */
	char records[sizeof(((struct config *)0)->socket) + 8];
	int listen_fd;
	bool own_socket; /**< We made the socket file. */
	struct front front;
	bool front_is_ready;
	int signal_fd;
	struct closers closers;
	pid_t heir_pid; /**< 0: none. */
	struct watchdog watchdog; /**< For the frontend, the judge and the monitor. */
	uint32_t front_pong; /**< The frontend has answered the ping of this number, and the judge passed it on. */
	uint64_t stop_at;  /**< Stopping: SIGKILL comes then. */
	bool is_asked_idle; /**< The frontend is idle, and the rules process owes what that means. */
	bool failed; /**< A process ended although nobody asked it to. */
};

/** Tell the judge, or the frontend through it.  @param fd  To go along, borrowed; or -1. */
void manager_tell_front(struct manager *s, const void *msg, size_t size, int fd);
/** It takes messages again. */
void manager_flush_front(struct manager *s);
/** Give the frontend up that takes none.  @return when that is due (monotonic ns); 0: all are sent. */
uint64_t manager_front_deadline(struct manager *s);
/** The frontend, or the judge, is of no use any more: stop, unless that is what the agent does anyway. */
void manager_front_gone(struct manager *s, int error);
/** It breaks the protocol, or takes no messages; it is reaped later, if it has not been yet. */
void manager_kill_monitor(struct manager *s);
/** Tell the monitor.  @param data  NULL: the message has none. */
void manager_tell_monitor(struct manager *s, uint32_t type, uint32_t number, const void *data, size_t size);
/** Tell it which processes the agent has besides its own, and which run of the rules process this is. */
void manager_tell_agent(struct manager *s);

/** Tell the monitor, the judge and the frontend what the configuration has for them, and the names of all rules. */
void manager_tell_config(struct manager *s);
/** The frontend serves; when the monitor has begun as well, the agent is ready. */
void manager_front_is_ready(struct manager *s);
/** The monitor has begun: clients may come. */
void manager_monitor_is_ready(struct manager *s);
/** The programs of the agent were replaced: say so, once. */
void manager_were_replaced(struct manager *s);

/** Have the configuration read again; one with a mistake changes nothing. */
void manager_reload(struct manager *s);
/**
 * The rules process says what it has read, at its start or after a reload.
 * @param take_state  For the next rules process; -1: there is none.
 * @return 0, -EPROTO: nobody has asked.
 */
int manager_take_config(struct manager *s, struct rules_config *c, int take_state);
/** The rules process was reaped: answer those who wait for it. */
void manager_rules_ended(struct manager *s, int wait_status);
/** No rules process is started again: its program is of another build.  Answer those who wait for one. */
void manager_rules_stay_ended(struct manager *s);
/** The frontend has no connection: stop, unless something keeps the agent. */
void manager_idle(struct manager *s);
/** The rules process says whether hooks run, because it was asked or because it is to stop.  @return 0, -EPROTO. */
int manager_take_busy(struct manager *s, bool busy);

/** Begin to stop. */
void manager_stop(struct manager *s);
/** A process that the agent needs is of no use any more: stop, and fail. */
void manager_fail(struct manager *s);
/** Escalate while stopping.  @return false when nothing is left to wait for. */
bool manager_stop_step(struct manager *s);
/** Close the socket to both: clients' sockets may be in what the judge has not received. */
void manager_close_front(struct manager *s);

#endif /* MANAGER_H */
