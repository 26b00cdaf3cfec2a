/* SPDX-License-Identifier: MIT */
#ifndef AGENTD_IPC_MONITOR_JUDGE_H
#define AGENTD_IPC_MONITOR_JUDGE_H

/**
 * @file monitor_judge.h
 * Messages between the monitor and the judge, which stands between the monitor and the frontend.
 *
 * What the frontend asks for (monitor_frontend.h) goes to the judge.  A message that names a client
 * goes on to the monitor inside one of those below, with what the judge knows about the client, if the
 * client may have what is asked for.  Notes go on as they are.  What the monitor tells the frontend
 * passes through the judge, too: everything keeps its order.
 */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/monitor_frontend.h"
#include "agentd/ipc/monitor_rules.h"
#include "agentd/ipc/monitor_worker.h"

/** The judge: the socket pairs to the frontend and to the manager, and the listening socket; besides IPC_FD_MONITOR. */
#define JUDGE_FD_FRONT	 5
#define JUDGE_FD_LISTEN	 6
#define JUDGE_FD_MANAGER 7

/** Longest text of /proc/PID/cgroup that is taken, with its NUL. */
#define JUDGE_CGROUP_MAX (64 * 1024 + 1)

/** The first word of every message: its sender, its struct, and the descriptors that come along. */
enum judge_type {
	/* judge -> monitor */
	JUDGE_START = 0x800 + 1, /**< struct judge_start; of a target: pidfd; an adapter: as IPC_START has them. */
	JUDGE_HOOKS,  /**< struct judge_hooks; the document of a test. */
	JUDGE_FACTS,  /**< struct judge_facts, with so much of `cgroup` as is used. */
	JUDGE_WATCH,  /**< struct judge_watch; pidfd, if the status is 0. */
	JUDGE_FALLEN, /**< struct judge_fallen: the frontend is of no use any more. */
	/* monitor -> judge; all others of the monitor's messages are for the frontend */
	JUDGE_RULES,	  /**< struct judge_rules: at the start and after a reload. */
	JUDGE_READ,	  /**< struct judge_read; JUDGE_FACTS answers. */
	JUDGE_WATCH_ASKED, /**< struct judge_watch, without facts; JUDGE_WATCH answers. */
	JUDGE_STOP,	  /**< struct judge_stop: accept nobody and ask nobody any more. */
	JUDGE_USED,	  /**< struct judge_used. */
	JUDGE_RECORD_USED, /**< struct judge_record_used. */
};

/** Who a client is, as the judge has read it from its socket and its process. */
struct ipc_identity {
	uint64_t user_ns; /**< Number of its user namespace; 0: not known. */
	int32_t pid;
	uint32_t uid, gid;
	uint32_t charge;   /**< User whose quotas it uses up. */
	uint32_t admin;	   /**< 1: it is an administrator, */
	uint32_t observer; /**< or may look at everybody's. */
	uint32_t near;	   /**< 1: it lives in the agent's namespaces of users and processes. */
	uint32_t pad;
};

/** What the judge has found out about a process that somebody may have. */
struct ipc_target_facts {
	uint32_t rights; /**< enum ipc_right of who asks. */
	uint32_t uid, gid; /**< Its real ids. */
	char comm[16];
};

/** A client may have what it asks for, as far as that depends on who it is. */
struct judge_start {
	uint32_t type;
	uint32_t pad;
	struct ipc_start start;
	struct ipc_identity client;
	struct ipc_target_facts target; /**< If that kind has one (IPC_KIND_HAS_TARGET). */
};

/** A client asks about hooks, or for a test of one. */
struct judge_hooks {
	uint32_t type;
	uint32_t pad;
	struct ipc_identity client;
	struct ipc_hooks asked;
};

/** Groups, and the user that strangers' descriptors are closed as. */
struct judge_rules {
	uint32_t type;
	struct access_rules groups;
	uint32_t uid, gid;
};

/** The rules process asks about a process. */
struct judge_read {
	uint32_t type;
	uint32_t pid;
	uint32_t run; /**< Of the rules process; comes back. */
};

/** The answer. */
struct judge_facts {
	uint32_t type;
	uint32_t run;
	struct rules_facts facts;
	char cgroup[JUDGE_CGROUP_MAX]; /**< Of this no more is sent than the text with its NUL. */
};

_Static_assert(offsetof(struct judge_facts, cgroup) == offsetof(struct judge_facts, facts) + sizeof(struct rules_facts),
	       "the text follows the facts, as in RULES_FACTS");

/** The rules process wants a rule to watch a process; the answer says whether the agent may, and who it is. */
struct judge_watch {
	uint32_t type;
	uint32_t run;	/**< Of the rules process. */
	int32_t status; /**< 0, -EPERM, -ESRCH, -errno. */
	uint32_t pad;
	struct rules_watch asked;
	struct ipc_target_facts target;
};

/** The frontend has closed its socket, takes no messages, or asked for what it may not. */
struct judge_fallen {
	uint32_t type;
	int32_t status; /**< -EPROTO: the last of these; other -errno. */
};

/** A client uses a session; the judge knows who it is, and writes it down. */
struct judge_used {
	uint32_t type;
	uint32_t worker, session, pid; /**< Where; and the target. */
	uint32_t uid;		       /**< Whose process that is. */
	uint32_t pad;
	struct ipc_used used;
};

/** The client of a store uses a record of another user. */
struct judge_record_used {
	uint32_t type;
	uint32_t worker; /**< The store. */
	struct ipc_record_used used;
};

/** The agent stops. */
struct judge_stop {
	uint32_t type;
};

/**
 * @param limit  Most of anything that clients use.
 * @return how many of them are for everybody; the others are kept for administrators.
 */
static inline uint32_t ipc_common_part(uint32_t limit)
{
	enum { PART = 16 };

	return limit < 2 ? limit : limit < PART ? limit - 1 : limit - limit / PART;
}

#endif /* AGENTD_IPC_MONITOR_JUDGE_H */
