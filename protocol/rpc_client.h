/* SPDX-License-Identifier: MIT */
#ifndef RPC_CLIENT_H
#define RPC_CLIENT_H

/**
 * @file rpc_client.h
 * A blocking client of the agent: one connection, one call at a time, a deadline for each.
 *
 * The typed calls are in the generated rpc_client_gen.h.  Context: one thread per client.  Nothing
 * here raises SIGPIPE.  Failures fill an agent_err, whose exit status is agent_err_exit():
 * AGENT_ERR_UNREACHABLE when there is no agent or it went away, timeout when it did not answer in
 * time, else what the agent said.  After a timeout the connection stays usable, unless the request
 * was sent only in part; the late reply is dropped when it comes.
 */

#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"
#include "protocol/rpc_arena.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"

struct rpc_client;

#define RPC_CLIENT_TIMEOUT_MS	     30000	      /**< Time for a call, until changed. */
#define RPC_CLIENT_REPLY_MAX	     ((size_t)256 << 20) /**< Bytes of the longest reply. */
#define RPC_CLIENT_NOTIFICATIONS_MAX 4096	      /**< Kept unread; older ones are dropped. */

/**
 * Connect to the agent, for which at most five seconds are spent.
 * @param path    Path of the agent's socket; `@name` is an abstract one.
 * @param ret_c   Release with rpc_client_close().
 * @return 0, or negative with @p err (code AGENT_ERR_UNREACHABLE).
 */
int rpc_client_open(const char *path, struct rpc_client **ret_c, struct agent_err *err);
/**
 * Make a client of a stream socket that is connected already.
 * @param take_fd  Becomes non-blocking; the client owns it on success, the caller after a failure.
 * @return as rpc_client_open().
 */
int rpc_client_open_fd(int take_fd, struct rpc_client **ret_c, struct agent_err *err);
/** Close the connection and free the client; NULL is allowed. */
void rpc_client_close(struct rpc_client *c);

/** Set the time that calls made from now on may take; 0 means RPC_CLIENT_TIMEOUT_MS. */
void rpc_client_set_timeout(struct rpc_client *c, uint32_t timeout_ms);
/**
 * The client's socket, to poll() beside other descriptors; borrowed.
 * Notifications that arrived with an answer are kept by the client and do not make it readable.
 */
int rpc_client_fd(const struct rpc_client *c);

/**
 * A function that waits for the client's descriptor in place of poll(), for a program that has
 * other descriptors to serve.  It must not call this client.
 * @return 0 (ready, or look again), -ETIMEDOUT, -ECANCELED (give up: calls then fail so, and the
 *         late reply is dropped as after a timeout), another -errno.
 */
typedef int (*rpc_client_wait_fn)(void *data, int fd, short events, uint64_t deadline_ns);
/**
 * Set how calls wait from now on.
 * @param wait  NULL for poll().
 * @param data  Handed to @p wait as it is; borrowed.
 */
void rpc_client_set_wait(struct rpc_client *c, rpc_client_wait_fn wait, void *data);

/**
 * Call a method and wait for its answer, which rpc_client_last_result() then gives.
 * @param method  Any name.
 * @param params  JSON text of an object; size 0 sends none.
 * @return 0, -EPROTO or another negative value with @p err.
 */
int rpc_client_call(struct rpc_client *c, const char *method, const char *params,
		    size_t params_size, struct agent_err *err);
/** Raw JSON text of the last call's result, valid until the next call; NULL if that failed. */
const char *rpc_client_last_result(const struct rpc_client *c, size_t *ret_size);
/** Raw JSON text of the last call's error object; NULL if the agent sent none. */
const char *rpc_client_last_error(const struct rpc_client *c, size_t *ret_size);

/**
 * The descriptor that came with the last call's answer, for a method that gives one.
 * @return the descriptor, which the caller then owns, or -1 if none came.  None comes through a
 *         forwarded socket.
 */
int rpc_client_take_fd(struct rpc_client *c);

/**
 * Call a method with C structures; the generated calls are made of this.
 * @param params  Structure of the method's parameters; NULL sends none.
 * @param arena   Holds the strings and arrays of the result.
 * @param ret     Structure of the method's result; contents unspecified on failure.
 * @return 0, or negative with @p err; -ENOMEM or -EFBIG from the arena may come without one.
 */
int rpc_client_call_typed(struct rpc_client *c, enum rpc_method m, const void *params,
			  struct rpc_arena *arena, void *ret, struct agent_err *err);

struct rpc_client_notification {
	char method[RPC_METHOD_MAX];
	const char *params; /**< JSON text, "" if there are none; valid until the next call. */
	size_t params_size;
};

/**
 * The next notification, waiting for it until the deadline.
 * @param deadline_ns  See base/clock.h; 0 does not wait.
 * @return 0, -ETIMEDOUT (none came; @p err is untouched), or another negative value with @p err.
 */
int rpc_client_next_notification(struct rpc_client *c, uint64_t deadline_ns,
				 struct rpc_client_notification *ret, struct agent_err *err);
/**
 * Decode the bytes of a reply such as that of memory.read.
 * @param text     In base64.
 * @param size     How many bytes the reply says that they are.
 * @param method   For the error.
 * @param ret      In @p arena, with room for one byte more.
 * @return 0, or negative with @p err: the reply holds no such bytes, or the arena is exhausted.
 */
int rpc_client_bytes(const char *text, uint64_t size, const char *method, struct rpc_arena *arena,
		     uint8_t **ret, struct agent_err *err);
/**
 * Decode the params of a notification, with members that this client does not know.
 * @param structure  That of the params, for example &rpc_gpu_resumed_params_struct.
 * @param ret        Strings and arrays live in @p arena; contents unspecified on failure.
 * @return 0, or negative: they do not fit the schema, or -ENOMEM, -EFBIG (arena).
 */
int rpc_client_decode(const struct rpc_client_notification *n, const struct rpc_struct *structure,
		      struct rpc_arena *arena, void *ret);
/** How many notifications were dropped because the program did not fetch them in time. */
uint64_t rpc_client_dropped(const struct rpc_client *c);

#endif /* RPC_CLIENT_H */
