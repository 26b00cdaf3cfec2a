/* SPDX-License-Identifier: MIT */
#ifndef MONITOR_WORKERS_H
#define MONITOR_WORKERS_H

/**
 * @file workers.h
 * The workers, and what is watched like them: starting, deadlines, messages, reaping.
 */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "agentd/config.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/manager_monitor.h"
#include "agentd/ipc/monitor_frontend.h"
#include "agentd/ipc/monitor_judge.h"
#include "agentd/ipc/monitor_worker.h"
#include "agentd/monitor/rescues.h"
#include "agentd/programs.h"
#include "agentd/ipc/undo_record.h"

/** Longest time that a worker may take to settle. */
#define WORKERS_TIMEOUT_MS_MAX 60000

struct worker {
	struct worker *next;
	uint32_t id;
	uint32_t session; /**< Number of its session; 0: it has none. */
	enum ipc_kind kind;
	pid_t pid;
	int guard_fd; /**< Our end of the guard socket; -1 after end of file. */
	pid_t target;
	int target_pidfd; /**< -1: it has no target. */
	int undo_fd;	  /**< Of session workers: what outlives them (ipc/child.h); -1: none. */
	char record[UNDO_RECORD_NAME_MAX]; /**< Name of undo_fd's file. */
	uid_t target_uid; /**< Of session workers: who owns records about the target. */
	uid_t owner;	  /**< Client who caused it. */
	uid_t charge;	  /**< User whose quotas it uses up, */
	bool by_admin;	  /**< and whether that is the quota of administrators. */
	uint64_t kill_at; /**< Guard deadline (monotonic ns); 0 when disarmed. */
	gid_t target_gid;
	char rule[IPC_RULE_NAME_SIZE]; /**< Watches its target; or "". */
	enum ipc_vendor vendor; /**< Of a target that a rule watches. */
	bool has_broker;  /**< It has got its connect broker. */
	bool reaped;	  /**< Its pid may be another process by now. */
	bool by_rule;	  /**< A rule's idea, not charged to anybody. */
	uint32_t producer; /**< It is a store, or reads threads, for records of that worker; 0: it is for a client. */
	enum ipc_how how; /**< What to report when it was our doing. */
	bool was_killed;  /**< By us. */
	uint64_t used_ns; /**< In the second that began then */
	uint32_t n_used;  /**< it has told so often that it is used. */
	struct ipc_used unsaid; /**< What the judge has not heard of that, for want of room; client 0: of several. */
	int stop_signal;  /**< It stands still by this signal; 0: it runs. */
	uint64_t stop_end; /**< While it does: when it is killed for that (monotonic ns). */
	uint64_t look_at; /**< Of those that are gone: when their targets are looked at (monotonic ns). */
};

/** What workers are started with, and who hears of them; all pointers are borrowed. */
struct workers_setup {
	const struct config *config;
	const struct programs *programs;
	const char *records; /**< Directory of undo records. */
	uid_t store_uid; /**< The store runs as this user. */
	gid_t store_gid;
	bool user_mode, verbose;
	bool permissive; /**< NVIDIA's library may make calls that are not on its list; they are logged. */
	/**
	 * A child asks for something.
	 * @param take_fd  -1: nothing came along; what is left in it is closed.
	 * @return 0, -EPROTO: it may not.
	 */
	int (*ask)(void *ctx, struct worker *k, const union ipc_child_message *m,
		   size_t size, int *take_fd);
	/** A process did not get what a dead worker owed it. */
	void (*on_owed)(void *ctx);
	/** The programs were replaced; told once. */
	void (*on_replaced)(void *ctx);
	void *ctx;
};

struct workers {
	struct worker *first;
	struct worker *looks; /**< Those that ended, one of each target that is to be looked at. */
	uint32_t last_id, last_session;
	int32_t others[MONITOR_OTHERS]; /**< The agent's processes that are not its children; 0: none. */
	struct rescues rescues; /**< Of targets of dead workers. */
	struct rescue_setup rescue_setup;
	struct workers_setup setup;
	uint64_t repairs_at; /**< See repairs_deadline(). */
	bool are_left; /**< Nobody waits for them any more; see workers_leave(). */
	bool replaced; /**< The programs were replaced, and the manager knows. */
};

/** Must stay where it is. */
void workers_init(struct workers *w, const struct workers_setup *setup);
/** All have to end: targets that are to be looked at are so at once. */
void workers_look_now(struct workers *w);
/** What is owed to their targets stays written down. */
void workers_deinit(struct workers *w);

/** In the child: become a program, or return.  @param guard  Its end of the guard socket. */
typedef void (*workers_exec_fn)(const struct workers *w, const void *data, int guard);
/**
 * Start a process.
 * @param like  Kind, target, owner and session of the new entry.
 * @param start_ms  It is killed unless it disarms its guard by then.
 * @return 0 or -errno, -ESTALE: the agent's programs were replaced; on success it is the first of the list.
 */
int workers_fork(struct workers *w, const struct worker *like, uint32_t start_ms,
		 workers_exec_fn exec, const void *data, struct worker **ret);
/**
 * Start a worker; whether it may be is decided (authorise.h).
 * @param take_pidfd  Of the target; -1: it has none.  Left alone after a failure.
 * @param ret_channel  For front.
 * @return 0 or -errno.
 */
int workers_start(struct workers *w, const struct ipc_start *start, const struct ipc_identity *client,
		  int *take_pidfd, struct worker **ret, int *ret_channel);
/**
 * The same for one that works with a record that is there.
 * @param take_undo  The record; as @p take_pidfd.
 * @param record     Its name; "": it is no file.
 */
int workers_start_with(struct workers *w, const struct ipc_start *start, const struct ipc_identity *client,
		       int *take_pidfd, int *take_undo, const char *record, struct worker **ret, int *ret_channel);
/**
 * Start a reader of threads (IPC_KIND_HOST) for a record about the target of a session's worker, with the rights of
 * the target's owner, who will read the record.
 * @param channel  On which that worker asks; borrowed.
 * @return 0, -EBUSY: it has enough of them; -errno.
 */
int workers_start_reader(struct workers *w, const struct worker *session, int channel);
/** Start a look for GPU processes.  @return 0, -errno. */
int workers_look(struct workers *w, uint32_t *ret_id);

/** The session worker of that process, or NULL. */
struct worker *workers_find_target(struct workers *w, pid_t pid);
/** One of the agent's own processes? */
bool workers_is_own(const struct workers *w, pid_t pid);
/** @return how many there are of that kind, of all users. */
uint32_t workers_count(const struct workers *w, enum ipc_kind kind);

/** Tell a worker whom it may serve.  @return 0, -EAGAIN: it is too busy to hear it; -errno. */
int workers_let_in(struct worker *worker, const struct ipc_let_in *m);
/** @param rule  Without a name: none watches any more.  @return 0, -ESRCH, -errno. */
int workers_tell_rule(struct workers *w, uint32_t worker, const struct ipc_rule *rule);
/** Kill it unless it disarms within that time.  @return false: nobody needs so long. */
bool workers_arm(struct worker *worker, uint32_t ms);
/** It has settled, or is through with what could hang: no deadline holds for it. */
void workers_disarm(struct worker *worker);

/** Guard socket of @p worker is readable. */
void workers_guard(struct workers *w, struct worker *worker);
/** Kill those whose deadline passed, and have targets looked at.  @return next deadline, 0 when there is none. */
uint64_t workers_deadlines(struct workers *w);
/** Kill a worker that does not answer, and report it as stuck.  @param id  One that is gone is no mistake. */
void workers_kill(struct workers *w, uint32_t id);
/** SIGTERM (release everything and go), or SIGKILL, to all but those that repair. */
void workers_signal(struct workers *w, int sig);
/**
 * A child was reaped.
 * @param ret Message for front.
 * @return false when it was no worker, but another child of this module.
 */
bool workers_reaped(struct workers *w, pid_t pid, int wait_status, struct ipc_ended *ret);
/**
 * A child was stopped by a signal, or goes on.  A worker runs as its target's user, whose processes may
 * do that to it: one that is not let go in time is killed, which lets the target go.
 */
void workers_paused(struct workers *w, pid_t pid, int wait_status);
/** They are not waited for: what may lie in their targets is left to recovery. */
void workers_leave(struct workers *w);

#endif /* MONITOR_WORKERS_H */
