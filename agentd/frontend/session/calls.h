/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_CALLS_H
#define FRONTEND_SESSION_CALLS_H

/** @file calls.h  Requests that a session's worker answers. */

#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/session/session.h"

/**
 * Forward a request to the worker; from now on this file answers it, with an error if need be.
 * @param flags       IPC_FLAG_*, besides those that follow from session and client.
 * @param timeout_ms  The client gets an error when there is no answer for so long.
 */
void calls_send(struct session *s, struct request *r, const char *params, size_t size,
		uint32_t flags, uint32_t timeout_ms);
/**
 * Forward a request with a socket, for a method that answers with its other end: the worker writes to
 * one, the client reads from the other, and neither sends anything back.
 */
void calls_send_stream(struct session *s, struct request *r, const char *params, size_t size,
		       uint32_t flags, uint32_t timeout_ms);
/** Pass the worker's answer to a request on. */
void calls_answered(struct session *s, struct ipc_message *m);
/** Hand what an inspect worker has learned to the request that it serves. */
void calls_looked(struct session *s, const struct ipc_message *m);
/** Fail the request whose answer is lost, because there was no descriptor for its memfd. */
void calls_lost_answer(struct session *s, const struct ipc_head *head);
/** Fail all requests: the worker will answer none any more. */
void calls_end(struct session *s);

#endif /* FRONTEND_SESSION_CALLS_H */
