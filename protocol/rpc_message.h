/* SPDX-License-Identifier: MIT */
#ifndef RPC_MESSAGE_H
#define RPC_MESSAGE_H

/**
 * @file rpc_message.h
 * JSON-RPC 2.0 envelopes: requests and batches in, replies in, all kinds out.
 *
 * Parsed messages borrow from the body that they were parsed from.  Texts of ids, params, results
 * and errors are raw JSON, so that they can be forwarded without being built up and taken apart.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"

struct out;

#define RPC_BATCH_MAX  64
#define RPC_METHOD_MAX 64  /**< Room for a method name; longer ones are no method. */
#define RPC_ID_MAX     256 /**< Longest id accepted, as JSON text. */

struct rpc_request {
	const char *id; /**< JSON text, "null" included; NULL for a notification. */
	size_t id_size;
	char method[RPC_METHOD_MAX];
	const char *params; /**< JSON text of an object; NULL when there are none. */
	size_t params_size;
	int32_t code;	     /**< 0, or why this is no request: answer it with that error, */
	const char *problem; /**< this message, */
	const char *hint;    /**< this hint (or NULL), and id, or the id null if id is NULL. */
};

struct rpc_message {
	bool batch;
	size_t n;
	struct rpc_request *requests; /**< one, or several in a batch. */
	struct rpc_request one;
};

/**
 * Take a body apart.
 * @param ret  Release with rpc_message_deinit(), also after a failure.
 * @param err  On failure: parse_error, invalid_request (empty or over-long batch) or internal;
 *             answer it with the id null.
 * @return 0 (single requests may still be bad, see rpc_request.code), -EINVAL, -ENOMEM.
 */
int rpc_message_parse(const char *body, size_t size, struct rpc_message *ret,
		      struct agent_err *err);
/** Accepts a zeroed object. */
void rpc_message_deinit(struct rpc_message *m);

/** It has an id, or it is so broken that nobody can tell whether it was meant to have one. */
bool rpc_request_wants_reply(const struct rpc_request *r);
/** The error that answers a bad request (code not 0). */
void rpc_request_error(const struct rpc_request *r, struct agent_err *ret);

enum rpc_reply_kind { RPC_REPLY_RESULT, RPC_REPLY_ERROR, RPC_REPLY_NOTIFICATION };

/** What an agent sends. */
struct rpc_reply {
	enum rpc_reply_kind kind;
	const char *id; /**< JSON text; NULL for notifications. */
	size_t id_size;
	char method[RPC_METHOD_MAX]; /**< Of a notification. */
	const char *value;	     /**< JSON text of result, error object or params; or NULL. */
	size_t value_size;
};

/** @return 0, -EINVAL (not JSON, or not such a message). */
int rpc_reply_parse(const char *body, size_t size, struct rpc_reply *ret);

/* Message texts.  An id of NULL is written as null.  Nothing written contains a line break. */

/** Text of a request; params_size 0 leaves params out. */
void rpc_message_request(struct out *o, uint64_t id, const char *method, const char *params,
			 size_t params_size);
void rpc_message_result(struct out *o, const char *id, size_t id_size, const char *result,
			size_t result_size);
/** The same in pieces: begin, text of the result, end. */
void rpc_message_result_begin(struct out *o, const char *id, size_t id_size);
void rpc_message_result_end(struct out *o);
void rpc_message_error(struct out *o, const char *id, size_t id_size, const struct agent_err *err);
/** `{...,"params":`; the text of the params and a closing brace follow. */
void rpc_message_notification_begin(struct out *o, const char *method);
/** Notifications of the schema have typed functions in rpc_gen.h. */
void rpc_message_notification(struct out *o, const char *method, const char *params,
			      size_t params_size);

#endif /* RPC_MESSAGE_H */
