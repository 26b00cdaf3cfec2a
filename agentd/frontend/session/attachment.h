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
	uint32_t number; /**< Of all that this session has had. */
	struct notices notices;
	bool established; /**< The worker has answered session.attach. */
	uint64_t user_ns;	/**< Number of the client's user namespace; 0: not known. */
	uint64_t asked_ns;	/**< When the client last asked for something else than more time for its lease. */
	uint64_t ask_end_ns; /**< The owner of the target has asked it for the lease, and may take it then; 0: not. */
	uint64_t judged_ns; /**< When the monitor last said what its client may do. */
	uint64_t locked_end_ns; /**< The client gets no writer lease before; 0: it may have one. */
};

/** @return the place of a connection in the session of this id, unless that is over; else NULL. */
struct attachment *attachment_find(struct conn *c, const char *id);
/** @return the place of a connection in a session, over or not; NULL: it has none. */
struct attachment *attachment_of(struct session *s, const struct conn *c);
/**
 * Give a connection a place in a session, or find the one that it has.
 * @param rights  Those of a new place.
 * @return NULL without memory.
 */
struct attachment *attachment_create(struct session *s, struct conn *conn, enum ipc_right rights);
/** Take a place away: the last one to leave ends the session, and a writer's lease ends. */
void attachment_leave(struct attachment *a);
/** Free a place without a word to the session, which is over. */
void attachment_free(struct attachment *a);
/** Check whether its client may change anything.  @return 0, or negative with @p err. */
int attachment_check_control(const struct attachment *a, struct agent_err *err);

#endif /* FRONTEND_SESSION_ATTACHMENT_H */
