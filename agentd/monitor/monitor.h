/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_H
#define MONITOR_H

/** @file monitor.h  Everything that the privileged process holds. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/closers.h"
#include "agentd/config.h"
#include "agentd/monitor/front.h"
#include "agentd/monitor/programs.h"
#include "agentd/monitor/rules_child.h"
#include "agentd/monitor/watchdog.h"
#include "agentd/monitor/workers.h"

struct monitor {
	struct config config; /**< What the rules process has read. */
	struct rules_ids ids;
	char rule_names[RULES_NAMES_MAX][IPC_RULE_NAME_SIZE];
	uint32_t n_rules, rules_generation;
	struct rules_child rules;
	struct workers workers;
	struct programs programs;
	int programs_fd; /**< Of programs_watch(), or negative. */
	char records[sizeof(((struct config *)0)->socket) + 8];
	int listen_fd;
	bool own_socket; /**< We made the socket file. */
	struct front front;
		int signal_fd;
	struct closers closers;
	pid_t recovery_pid; /**< The recovery process; 0: none. */
	struct watchdog watchdog; /**< For front. */
	uint64_t stop_at;  /**< Stopping: SIGKILL comes then. */
	bool is_asked_idle; /**< The frontend is idle, and the rules process owes what that means. */
	bool left_workers; /**< To the kernel, which does not end them. */
	bool front_failed; /**< The frontend ended although nobody asked it to. */
};

/** Tell the judge, or the frontend through it.  @param fd  To go along, borrowed; or -1. */
void monitor_tell_front(struct monitor *s, const void *msg, size_t size, int fd);
/** It takes messages again. */
void monitor_flush_front(struct monitor *s);
/** Give the frontend up that takes none.  @return when that is due (monotonic ns); 0: all are sent. */
uint64_t monitor_front_deadline(struct monitor *s);
/** The frontend, or the judge, is of no use any more: stop, unless that is what the agent does anyway. */
void monitor_front_gone(struct monitor *s, int error);

/** Tell the judge and the frontend what the configuration has for them, and the names of all rules. */
void monitor_tell_config(struct monitor *s);

/** Have the configuration read again; one with a mistake changes nothing. */
void monitor_reload(struct monitor *s);
/**
 * The rules process says what it has read, at its start or after a reload.
 * @param take_state  For the next rules process; -1: there is none.
 * @return 0, -EPROTO: nobody has asked.
 */
int monitor_take_config(struct monitor *s, struct rules_config *c, int take_state);
/** The rules process was reaped: answer those who wait for it. */
void monitor_rules_ended(struct monitor *s, int wait_status);
/** No rules process is started again: its program is of another build.  Answer those who wait for one. */
void monitor_rules_stay_ended(struct monitor *s);
/** Tell a new rules process what its predecessor had watched. */
void monitor_tell_held(struct monitor *s);
/** The frontend has no connection: stop, unless something keeps the agent. */
void monitor_idle(struct monitor *s);
/** The rules process says whether hooks run, because it was asked or because it is to stop.  @return 0, -EPROTO. */
int monitor_take_busy(struct monitor *s, bool busy);

/** Begin to stop. */
void monitor_stop(struct monitor *s);
/** The frontend is of no use any more: stop, and fail. */
void monitor_front_failed(struct monitor *s);
/** Escalate while stopping.  @return false when nothing is left to wait for. */
bool monitor_stop_step(struct monitor *s);
/** Close the socket to both: clients' sockets may be in what the judge has not received. */
void monitor_close_front(struct monitor *s);

#endif /* MONITOR_H */
