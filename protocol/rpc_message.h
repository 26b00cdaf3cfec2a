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

#define RPC_BATCH_MAX  64  /**< Most requests in one batch. */
#define RPC_METHOD_MAX 64  /**< Room for a name with its NUL; no method has a longer one. */
#define RPC_ID_MAX     256 /**< Bytes of the longest id accepted, as JSON text. */

/** One request of a message, good or bad. */
struct rpc_request {
	const char *id; /**< JSON text, "null" included; NULL for a notification. */
	size_t id_size;
	char method[RPC_METHOD_MAX];
	const char *params; /**< JSON text of an object; NULL when there are none. */
	size_t params_size;
	int32_t code;	     /**< 0, or the error code to answer a bad request with. */
	const char *problem; /**< Message of that error; a constant. */
	const char *hint;    /**< Hint of that error, or NULL; a constant. */
};

/** The requests of one body. */
struct rpc_message {
	bool batch; /**< The body is an array; so is its answer. */
	size_t n;
	struct rpc_request *requests; /**< The member `one`, or for a batch an array of its own. */
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
/** Release what rpc_message_parse() allocated; a zeroed object is accepted. */
void rpc_message_deinit(struct rpc_message *m);

/**
 * Whether a request gets an answer: it has an id, or it is so broken that it cannot be told whether
 * it was meant to have one.
 */
bool rpc_request_wants_reply(const struct rpc_request *r);
/** Fill in the error that answers a bad request, which is one whose code is not 0. */
void rpc_request_error(const struct rpc_request *r, struct agent_err *ret);

enum rpc_reply_kind { RPC_REPLY_RESULT, RPC_REPLY_ERROR, RPC_REPLY_NOTIFICATION };

/** One message that an agent sent.  Pointers borrow from its body. */
struct rpc_reply {
	enum rpc_reply_kind kind;
	const char *id; /**< JSON text; NULL for notifications. */
	size_t id_size;
	char method[RPC_METHOD_MAX]; /**< Name of a notification; cut if it is too long. */
	const char *value;	     /**< JSON text of result, error object or params; or NULL. */
	size_t value_size;
};

/**
 * Take apart a message that an agent sent.
 * @return 0, -EINVAL (not JSON, or not such a message; @p ret is untouched).
 */
int rpc_reply_parse(const char *body, size_t size, struct rpc_reply *ret);

/*
 * The functions below append messages.  An id of NULL is written as null.  None adds a line break,
 * and JSON text that they are given must hold none: in line mode it would end the message.
 */

/** Append a request; params_size 0 leaves params out. */
void rpc_message_request(struct out *o, uint64_t id, const char *method, const char *params,
			 size_t params_size);
/** Append a reply with the JSON text of its result. */
void rpc_message_result(struct out *o, const char *id, size_t id_size, const char *result,
			size_t result_size);
/** Append the start of a reply; the text of the result and rpc_message_result_end() follow. */
void rpc_message_result_begin(struct out *o, const char *id, size_t id_size);
/** Append the end of a reply that rpc_message_result_begin() began. */
void rpc_message_result_end(struct out *o);
/** Append a reply with an error; see agent_err_encode(). */
void rpc_message_error(struct out *o, const char *id, size_t id_size, const struct agent_err *err);
/** Append `{...,"params":`; the text of the params and a closing brace follow. */
void rpc_message_notification_begin(struct out *o, const char *method);
/**
 * Append a whole notification; params_size 0 sends an empty object.
 * Notifications of the schema have typed functions in rpc_gen.h.
 */
void rpc_message_notification(struct out *o, const char *method, const char *params,
			      size_t params_size);

#endif /* RPC_MESSAGE_H */
