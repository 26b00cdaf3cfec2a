/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_RPC_REQUEST_H
#define FRONTEND_RPC_REQUEST_H

/**
 * @file request.h
 * One message of a client: taking it apart, answering it at once or later, batches.
 */

#include "agentd/frontend/net/conn.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/link.h"
#include "rpc_gen.h"

struct batch;
struct event;
struct event_base;
struct request;
struct start_ops;

/** Write the message that answers @p r with an error, for a client that speaks no JSON-RPC. */
typedef void request_put_error(struct request *r, const struct agent_err *err, struct out *text);

/** How requests for one method ended. */
struct request_count {
	uint64_t ok;
	uint64_t failed[RPC_ERROR_COUNT]; /**< By the place of the error in rpc_errors. */
	uint64_t total_ns; /**< From each request to its answer. */
};

/** What all requests share. */
struct requests {
	struct event_base *base;
	/** Takes over a request whose method is known. */
	void (*run)(struct request *r, const char *params, size_t size);
	void *owner; /**< For run(). */
	uint64_t n;  /**< That were answered or refused. */
	/** By method, and at the end those that named none. */
	struct request_count counts[RPC_METHOD_COUNT + 1];
};

/** A JSON-RPC request on its way to an answer. */
struct request {
	LIST_ENTRY(request) in_conn;
	LIST_ENTRY(request) in_owner; /**< starts->waiting or ->starting, session->calls, ->leavers or ->comers. */
	bool has_owner;
	void *owner; /**< What that list belongs to, where somebody asks; request_own() forgets it. */
	struct requests *all;
	struct conn *conn; /**< NULL when the client has gone. */
	struct batch *batch; /**< NULL outside batches. */
	char *id;	   /**< JSON text; NULL for notifications. */
	request_put_error *put_error; /**< NULL: as JSON-RPC has it. */
	enum rpc_method method;
	uint64_t since_ns; /**< When it was received. */
	struct event *timer;

	char *params; /**< Text for a process that is being started. */
	size_t params_size; /**< Of that, or of what was sent to a worker. */
	int answer_fd; /**< Goes to the client with the result; -1: none. */

	/* A process is being started for it (start.h). */
	const struct start_ops *start_ops;
	enum ipc_kind start_kind;
	uint32_t start_id;
	bool start_stops;  /**< The worker is to stop threads. */
	bool start_judge;  /**< Nothing is to be started: may the client still do what it does? */
	bool judged;	   /**< That was asked for this request. */
	bool is_first;	   /**< Nothing else of its client is served before (conn_wait()). */
	uint32_t start_ms; /**< It may take so long, */
	uint64_t start_end_ns; /**< until then. */
	uint32_t pid;  /**< Its target: of session.attach, host.stacks. */
	int early_fd;  /**< What an adapter has to read first; -1: none. */

	/** Told of the answer before the client is; @p err NULL: it is @p result.  Or NULL. */
	void (*answered)(struct request *r, const char *result, size_t size, const struct agent_err *err);
	/** Told what the look for this request leaves for the next.  Or NULL. */
	void (*looked)(struct request *r, const char *data, size_t size);
	void *listing; /**< For both. */

	/* A worker has it (session/calls.h). */
	uint64_t call_id;
	uint32_t timeout_ms;

	/* It wants to be the holder of a lease (session/lease.h). */
	bool control; /**< session.attach asked for that. */
	int want;     /**< How much: enum lease_want. */
	bool has_taken; /**< Somebody lost the lease for it. */
	struct rpc_taken_control taken;
	uint64_t taken_since_ns; /**< His queues were suspended then; 0: none, or .taken tells how long. */
};

/** What the generated dispatcher hands through to the handlers. */
struct rpc_call {
	struct request *request;
	struct conn *conn;
};

/** One body as it came from the wire: a request, a notification or a batch. */
void request_receive(struct requests *all, struct conn *c, const char *body, size_t size);
/** Answer for a message that has no usable id. */
void request_refuse(struct requests *all, struct conn *c, const struct agent_err *err);

/**
 * Something to be answered later that no method stands for.
 * @param id  JSON text.  @return NULL without memory.
 */
struct request *request_begin(struct requests *all, struct conn *c, const char *id, size_t id_size,
			      request_put_error *put_error);
/** Is a descriptor to go to the client with an answer that waits? */
bool request_brings_fd(const struct conn *c);

/**
 * Keep a copy of the params, for a process that is being started.
 * @return 0, or negative with @p err.
 */
int request_keep_params(struct request *r, const char *params, size_t size, struct agent_err *err);

/** Answer and free. */
void request_reply(struct request *r, const char *result, size_t size);
/** The same with what a worker sent; a large text is taken out of @p m instead of copied. */
void request_reply_message(struct request *r, struct ipc_message *m);
void request_fail(struct request *r, const struct agent_err *err);
/** Answer with an error object's text. */
void request_fail_text(struct request *r, const char *error, size_t size);

/** Free it; nothing is said. */
void request_drop(struct request *r);

/** Serve nothing else of its client until it is answered, or until request_go_on(). */
void request_wait(struct request *r);
void request_go_on(struct request *r);

/** Hand the request to its next owner; it leaves the previous one. */
void request_own(struct request *r, struct request_list *owner);
/** Fail the request with `timeout` unless answered within this time; @p expired is told first. */
int request_deadline(struct request *r, uint32_t ms, void (*expired)(int, short, void *));
/** The client went away: the answer will be dropped. */
void request_orphan(struct request *r);

#endif /* FRONTEND_RPC_REQUEST_H */
