/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_ATTACHMENT_H
#define FRONTEND_SESSION_ATTACHMENT_H

/** @file attachment.h  The place of a connection in a session. */

#include "agentd/frontend/rpc/notices.h"
#include "agentd/frontend/session/session.h"

/** What a connection holds of a session. */
struct attachment {
	LIST_ENTRY(attachment) in_conn;
	LIST_ENTRY(attachment) in_session;
	struct conn *conn;
	struct session *session;
	enum ipc_right rights;
	uint32_t number; /**< How the worker calls this client. */
	struct notices notices;
	bool established; /**< The worker has answered session.attach. */
	uint64_t user_ns;	/**< Number of the client's user namespace; 0: not known. */
	uint64_t asked_ns;	/**< When it asked for something else than more time for its lease. */
	uint64_t locked_end_ns; /**< It gets no writer lease before; 0: it may. */
};

/** NULL when this connection does not hold the session of this id. */
struct attachment *attachment_find(struct conn *c, const char *id);
/** NULL when this connection does not hold that session, over or not. */
struct attachment *attachment_of(struct session *s, const struct conn *c);
/** An existing one is kept.  @return NULL when out of memory. */
struct attachment *attachment_create(struct session *s, struct conn *conn, enum ipc_right rights);
/** The last one to leave ends the session; a writer's lease ends. */
void attachment_leave(struct attachment *a);
/** Without a word to the session, which is over. */
void attachment_free(struct attachment *a);
/** May it change anything?  @return 0, or negative with @p err. */
int attachment_check_control(const struct attachment *a, struct agent_err *err);

#endif /* FRONTEND_SESSION_ATTACHMENT_H */
