/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_WORKERS_H
#define SPAWN_WORKERS_H

/**
 * @file workers.h
 * The workers: who may have one, starting, watching their deadlines, reaping.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "agentd/ipc.h"
#include "agentd/spawn/config.h"

#define WORKER_RECORD_NAME_MAX 48

struct worker {
	struct worker *next;
	uint32_t id;
	uint32_t session; /**< Number of its session; 0: it has none. */
	enum ipc_kind kind;
	pid_t pid;
	int guard_fd; /**< Our end of the guard socket; -1 after end of file. */
	pid_t target;
	int target_pidfd; /**< -1 for inspect workers. */
	int undo_fd;	  /**< Of session workers: what outlives them (ipc.h); -1: none. */
	char record[WORKER_RECORD_NAME_MAX]; /**< Name of undo_fd's file (recovery.h). */
	uid_t target_uid; /**< Of session workers: who owns records about the target. */
	uid_t owner;	  /**< Client who caused it; charged for it. */
	uint64_t kill_at; /**< Guard deadline (monotonic ns); 0 when disarmed. */
	gid_t target_gid;
	char rule[IPC_RULE_NAME_SIZE]; /**< Watches its target; or "". */
	bool reaped;	  /**< Its pid may be another process by now. */
	bool by_rule;	  /**< A rule's idea, not charged to anybody. */
	uint32_t producer; /**< Store for records of that worker; 0: for a client. */
	enum ipc_how how; /**< What to report when it was our doing. */
};

struct release {
	struct release *next;
	pid_t pid, target;
	int undo_fd; /**< While it is not empty nobody else may attach; -1: none. */
	char record[WORKER_RECORD_NAME_MAX];
};

struct workers {
	struct worker *first;
	uint32_t last_id, last_session;
	struct release *releases; /**< Children that look after targets of dead workers. */
	const struct config *config;
	const struct access_rules *rules;
	const char *program; /**< Path of gpu-agent-worker. */
	const char *store_program, *adapter_program;
	const char *records; /**< Directory of undo records. */
	uid_t store_uid; /**< It runs as this user. */
	gid_t store_gid;
	bool user_mode;
	pid_t front_pid;
	bool verbose;
	/** A look found a process. */
	void (*on_found)(void *ctx, pid_t pid, enum ipc_vendor vendor);
	/** A session worker has something for the hook of its rule. */
	void (*on_hook)(void *ctx, const struct worker *worker, const struct ipc_fault *fault,
			int document_fd);
	/** A process did not get what a dead worker owed it. */
	void (*on_owed)(void *ctx);
	void *ctx;
};

/**
 * Answer one request of front.
 * @param client_sock  Borrowed, as is @p early_fd (of an adapter; else -1).
 * @param ret_channel  For front, or -1.
 */
void workers_start(struct workers *w, const struct ipc_start *start, int client_sock, int early_fd,
		   struct ipc_started *ret, int *ret_channel);

/** Answer that there will be no worker.  @param status -errno. */
void workers_refuse(const struct ipc_start *start, int status, struct ipc_started *ret);

/**
 * Let @p rule watch a process: by the worker that it has, or a new one.
 * @param pidfd  Borrowed; holds the process.
 * @param ret_channel  For front, of a new worker; untouched otherwise.
 * @return 0, -EPERM, -EBUSY (being rescued), -EMFILE (too many sessions), -errno.
 */
int workers_watch(struct workers *w, const struct ipc_rule *rule, pid_t pid, int pidfd,
		  struct ipc_watch *ret, int *ret_channel);
/** @param rule  Without a name: none watches any more. */
int workers_tell_rule(struct workers *w, uint32_t worker, const struct ipc_rule *rule);
/** Start a look, for on_found().  @return 0, -errno. */
int workers_look(struct workers *w, uint32_t *ret_id);
/** One of the agent's own processes? */
bool workers_is_own(const struct workers *w, pid_t pid);

/** Guard socket of @p worker is readable. */
void workers_guard(struct workers *w, struct worker *worker);
/** Kill those whose deadline passed.  @return next deadline, 0 when there is none. */
uint64_t workers_deadlines(struct workers *w);
void workers_kill(struct workers *w, uint32_t id);
/** SIGTERM (release everything and go), or SIGKILL, to all. */
void workers_signal(struct workers *w, int sig);

/**
 * A child was reaped.
 * @param ret Message for front.
 * @return false when it was no worker, but another child of this module.
 */
bool workers_reaped(struct workers *w, pid_t pid, int wait_status, struct ipc_ended *ret);

/** In a child: bring the target of a dead worker back to where it would be without it. */
_Noreturn void workers_look_after(const struct workers *w, const struct worker *dead);

/** In the child: become a program, or return.  @param guard  Its end of the guard socket. */
typedef void (*workers_exec_fn)(const struct workers *w, const void *data, int guard);
/**
 * Start what is no worker, but watched and reaped as one.
 * @param like  Kind and owner of the new entry.
 * @param start_ms  It is killed unless it disarms its guard by then.
 * @return 0 or -errno; on success it is in the list.
 */
int workers_fork(struct workers *w, const struct worker *like, uint32_t start_ms,
		 workers_exec_fn exec, const void *data, struct worker **ret);

/* stores.c: the processes that work on the record store. */

/** For a client.  @return 0 or -errno. */
int stores_start(struct workers *w, const struct ipc_start *start, const struct access_peer *peer,
		 uint32_t *ret_id, int *ret_channel);
/** For what @p worker wants to store; closes its end when there is none. */
void stores_start_producer(struct workers *w, const struct worker *worker, int take_channel);

/* adapters.c: debug adapters for editors on the agent's socket. */

/** @param ret_channel  The adapter as a client.  @return 0 or -errno. */
int adapters_start(struct workers *w, const struct access_peer *peer, int client_sock, int early_fd,
		   uint32_t *ret_id, int *ret_channel);

/** They are not waited for: what may lie in their targets is left to recovery. */
void workers_leave(struct workers *w);

uint32_t workers_count(const struct workers *w, enum ipc_kind kind);
void workers_deinit(struct workers *w);

#endif /* SPAWN_WORKERS_H */
