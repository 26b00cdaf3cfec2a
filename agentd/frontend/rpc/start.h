/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_RPC_START_H
#define FRONTEND_RPC_START_H

/** @file start.h  Requests that wait for the monitor: their turn to ask it for a process, and its answer. */

#include "agentd/frontend/rpc/request.h"

struct monitor_link;

/** What becomes of a request when the monitor has answered. */
struct start_ops {
	/** The process is there.  @param take_channel  To it; -1 for a session that there was before. */
	void (*started)(struct request *r, const struct ipc_started *m, int take_channel);
	/** Why there is none.  @return 0 if there is, negative with @p err.  NULL: about a target. */
	int (*refused)(const struct ipc_started *m, struct agent_err *err);
	/** In place of both for start_judge(): whatever the answer is. */
	void (*judged)(struct request *r, const struct ipc_started *m);
};

struct starts {
	struct monitor_link *monitor;
	/** Takes the channel to a process whose request waits no longer, or got none. */
	void (*unwanted)(void *owner, const struct ipc_started *m, int take_channel);
	void *owner; /**< For unwanted(). */
	struct request_list waiting;  /**< For their turn to be sent to the monitor as IPC_START. */
	struct request_list starting; /**< Wait for IPC_STARTED, or IPC_HOOKED. */
	uint32_t n_asked; /**< IPC_START that the monitor has not answered. */
	uint32_t last_id;
};

/** Ask for a worker on behalf of @p r. */
void start_ask(struct starts *s, struct request *r, enum ipc_kind kind, uint32_t timeout_ms,
	       const struct start_ops *ops);
/**
 * Ask whether the client of @p r may still do with the process r->pid what it does; nothing is started, and
 * nothing else of the client is served before ops->judged is called.
 */
void start_judge(struct starts *s, struct request *r, uint32_t timeout_ms, const struct start_ops *ops);
/** Say of an answer why the client may not.  @return 0 if it may, negative with @p err. */
int start_refusal(const struct ipc_started *m, uint32_t pid, struct agent_err *err);
/** Once more, when another session has ended: in what is left of the time. */
void start_ask_again(struct starts *s, struct request *r);
/** For another question to the monitor: @p r waits for the answer.  @return the number to ask with. */
uint32_t start_wait(struct starts *s, struct request *r);
/** Who waits for the answer with this number, or NULL. */
struct request *start_find(struct starts *s, uint32_t id);
/** The monitor's answer to IPC_START. */
void start_answered(struct starts *s, const struct ipc_started *m, int take_channel);
/** Whatever was to be started: the agent's programs were replaced.  @return negative. */
int start_refuse_replaced(const char *op, struct agent_err *err);
/** Drop what waits for the monitor; the clients are gone already. */
void start_deinit(struct starts *s);

#endif /* FRONTEND_RPC_START_H */
