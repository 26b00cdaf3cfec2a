/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_MONITOR_RULES_H
#define AGENTD_IPC_MONITOR_RULES_H

/**
 * @file monitor_rules.h
 * Messages between the monitor and the rules process, on one SOCK_SEQPACKET pair (struct ipc_link).
 *
 * The head's `type` is an enum rules_type.  A message with a struct has it as its text; one without
 * has at most a value, in the head's `number`.  The rules process may wait for the answer to a
 * question, and does nothing else meanwhile.  The monitor never waits for the rules process.
 */

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "agentd/config.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/monitor_frontend.h"
#include "agentd/ipc/monitor_worker.h"

/** The rules process: sealed memory with what its predecessor had read; besides IPC_FD_MONITOR. */
#define RULES_FD_STATE 6

/** Most rules that there are. */
#define RULES_NAMES_MAX 64

enum rules_type {
	/* monitor -> rules */
	RULES_RELOAD = 0x500 + 1, /**< The configuration is to be read again; RULES_CONFIG answers. */
	RULES_HINT,    /**< Something happened that may have to do with a GPU process. */
	RULES_FOUND,   /**< struct rules_found: a look has found a process. */
	/** struct rules_found: a worker has a rule of an earlier rules process, which has died. */
	RULES_HELD,
	RULES_ENDED,   /**< struct rules_ended. */
	RULES_RELEASE, /**< number: a worker whose process no rule is to watch, until a reload. */
	RULES_FAULT,   /**< struct rules_fault; one descriptor, sealed: the document of a hook. */
	RULES_HOOKS,   /**< struct rules_hooks; a descriptor, if a test has a document. */
	RULES_IDLE,    /**< Does a hook run or wait?  RULES_BUSY answers. */
	RULES_STOP,    /**< Hooks are to end; RULES_BUSY says when they have. */
	/* monitor -> rules: answers */
	RULES_LOOKING, /**< struct rules_looking, to RULES_LOOK. */
	RULES_FACTS,   /**< struct rules_facts and a text, to RULES_READ. */
	RULES_WATCHED, /**< struct rules_watched, to RULES_WATCH. */
	/* rules -> monitor */
	/**
	 * struct rules_config: what was read, at start and for each RULES_RELOAD.  One descriptor if it
	 * is in order: sealed memory that the next rules process gets as RULES_FD_STATE.
	 */
	RULES_CONFIG,
	RULES_LOOK,    /**< Start a look for GPU processes. */
	RULES_READ,    /**< number: a process about which the rules process asks. */
	RULES_WATCH,   /**< struct rules_watch: let a rule watch a process. */
	RULES_LET_GO,  /**< number: a worker that no rule holds any more. */
	RULES_HOOKED,  /**< struct ipc_hooked, for the frontend; with it a memfd when it went well. */
	RULES_BUSY,    /**< number: 1 if a hook runs or waits, else 0. */
};

/** Users and groups of the configuration, by their numbers. */
struct rules_ids {
	struct access_rules groups;
	uid_t front_uid; /**< Of the frontend, of the store, and of whoever closes what strangers sent. */
	gid_t front_gid;
	gid_t socket_gid; /**< It may connect; ACCESS_NO_GROUP after a reload, and where there is none. */
};

/** The configuration. */
struct rules_config {
	int32_t status;	  /**< 0, or -errno: what is wrong is in the log, and the rest means nothing. */
	uint32_t n_rules; /**< To RULES_NAMES_MAX. */
	struct rules_ids ids;
	struct config config;
	char names[RULES_NAMES_MAX][IPC_RULE_NAME_SIZE];
};

/** A process that may be one for a rule. */
struct rules_found {
	uint32_t pid;
	uint32_t vendor; /**< enum ipc_vendor; ANY with RULES_FOUND: what it has mapped was not read to the end. */
	uint32_t worker; /**< RULES_HELD: the worker that has it. */
};

/** A worker has ended. */
struct rules_ended {
	uint32_t worker;
	uint32_t clean; /**< 1: it was not killed and had no error: a look has seen everything. */
};

/** A worker has something for the hook of its rule. */
struct rules_fault {
	char rule[IPC_RULE_NAME_SIZE];
	pid_t pid; /**< The target, and its real ids. */
	uid_t uid;
	gid_t gid;
	struct ipc_fault fault; /**< As it came from the worker. */
};

/** A client asks about hooks, or for a test of one. */
struct rules_hooks {
	struct ipc_hooks asked; /**< As it came from the frontend. */
	/* The client, as its socket and its process say who it is. */
	pid_t pid;
	uid_t uid;
	gid_t gid;
	uint32_t admin; /**< 1: it is an administrator. */
};

/** A look was started. */
struct rules_looking {
	int32_t status;	 /**< 0, -errno. */
	uint32_t worker; /**< The worker that looks. */
};

/** What rules ask about a process; a text follows, that of /proc/PID/cgroup. */
struct rules_facts {
	int32_t status;	 /**< 0, -ESRCH, -errno: there is nothing else. */
	uint32_t uid;	 /**< The real one. */
	uint32_t has_cgroup; /**< 0: it could not be read; else the text ends with a NUL. */
	char exe[PATH_MAX];  /**< As /proc/PID/exe has it; "": it could not be read. */
};

/** A rule is to watch a process. */
struct rules_watch {
	uint32_t pid;
	uint32_t vendor; /**< enum ipc_vendor; it comes back in RULES_HELD. */
	struct ipc_rule rule;
};

/** Does it? */
struct rules_watched {
	int32_t status; /**< 0, -EPERM, -EBUSY (being rescued), -EMFILE (too many sessions), -errno. */
	struct ipc_watch watch;
};

#endif /* AGENTD_IPC_MONITOR_RULES_H */
