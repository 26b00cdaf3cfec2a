/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_CALLS_H
#define FRONTEND_SESSION_CALLS_H

/** @file calls.h  Requests that a session's worker answers. */

#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/session/session.h"

/** Forward a request to the worker; it is answered from now on. */
void calls_send(struct session *s, struct request *r, const char *params, size_t size,
		uint32_t flags, uint32_t timeout_ms);
/**
 * The same with a socket, for a method that answers with its other end: the worker writes to one,
 * the client reads from the other, and neither sends anything back.
 */
void calls_send_stream(struct session *s, struct request *r, const char *params, size_t size,
		       uint32_t flags, uint32_t timeout_ms);
/** The worker's answer to one of them. */
void calls_answered(struct session *s, struct ipc_message *m);
/** The text of a message is lost: there was no descriptor for the memfd. */
void calls_lost_answer(struct session *s, const struct ipc_head *head);
/** The worker will answer none any more. */
void calls_end(struct session *s);

#endif /* FRONTEND_SESSION_CALLS_H */
