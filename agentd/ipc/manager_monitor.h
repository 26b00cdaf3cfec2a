/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_MANAGER_MONITOR_H
#define AGENTD_IPC_MANAGER_MONITOR_H

/**
 * @file manager_monitor.h
 * Messages between the manager (gpu-agentd) and the monitor, on one SOCK_SEQPACKET pair (struct ipc_link).
 *
 * The head's `type` is one of those below, or one of monitor_rules.h: what the rules process wants of
 * workers, and what it is to hear of them, the manager passes on.  The head's `number` is then the run of
 * the rules process, where an answer to another run would be a mistake: RULES_LOOK, RULES_LOOKING,
 * RULES_HELD and RULES_WATCHED.  Neither waits for the other one.
 */

#include <stdint.h>
#include <sys/types.h>

#include "agentd/config.h"
#include "agentd/ipc/monitor_rules.h"

/** The monitor finds these: the pair to the manager, and the one to the judge. */
#define MONITOR_FD_MANAGER 4
#define MONITOR_FD_JUDGE   5

enum monitor_type {
	/* manager -> monitor; besides RULES_LOOK and RULES_LET_GO */
	MONITOR_CONFIG = 0x900 + 1, /**< struct monitor_config: first of all, and after a reload. */
	MONITOR_AGENT, /**< struct monitor_agent; where the run is a new one, RULES_HELD for each watched process. */
	MONITOR_PING,  /**< number: a new one each time; MONITOR_PONG answers. */
	MONITOR_STOP,  /**< Release every target, and end. */
	/*
	 * monitor -> manager; besides RULES_HINT, RULES_FOUND, RULES_HELD, RULES_ENDED, RULES_FAULT,
	 * RULES_LOOKING and RULES_WATCHED
	 */
	MONITOR_READY, /**< Workers can be started. */
	MONITOR_PONG,  /**< number: of the ping. */
	MONITOR_OWED,  /**< A process did not get what a dead worker owed it. */
	MONITOR_REPLACED, /**< The agent's programs were replaced: nothing new is started. */
};

/** What workers are started with. */
struct monitor_config {
	struct config config;
	uid_t front_uid; /**< The store, and whoever closes what strangers sent, run as that user. */
	gid_t front_gid;
	uint32_t user_mode, permissive, verbose; /**< 1: so the command line says.  They do not change. */
};

#define MONITOR_OTHERS 4

/** The agent's processes that the monitor has not started; nobody debugs them. */
struct monitor_agent {
	uint32_t run; /**< Of the rules process. */
	int32_t others[MONITOR_OTHERS]; /**< Process ids; 0: none. */
};

#endif /* AGENTD_IPC_MANAGER_MONITOR_H */
