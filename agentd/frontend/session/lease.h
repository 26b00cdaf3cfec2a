/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_LEASE_H
#define FRONTEND_SESSION_LEASE_H

/**
 * @file lease.h
 * The writer lease of a session: who gets it, who may take it from its holder, and what follows.
 *
 * A lease is broken in this order: the holder has it no more; the worker undoes what he may not leave
 * behind; he is told; the new holder is answered.  A worker that does not say in time that all is
 * undone is killed, and the kernel lets the target run: nobody keeps queues stopped by hanging.
 */

#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/session/attachment.h"

/** A holder from whom a target was taken gets it back after this time, unless he is root. */
#define LEASE_LOCK_MS 10000

enum lease_want {
	LEASE_FREE,	  /**< Only when nobody has it. */
	LEASE_FROM_SILENT, /**< Also from a holder who has asked for nothing but more time for long. */
	LEASE_BY_FORCE,
};

/**
 * Make @p a the holder.
 * @param r  To be sent to the worker next: its answer means that all is undone.  Learns from whom the
 *           lease was taken.
 * @return 0, or negative with @p err, which names the holder and what this caller can do.
 */
int lease_take(struct attachment *a, enum lease_want want, struct request *r,
	       struct agent_err *err);
/** Nobody holds it any more, if @p a did: what it changed is undone. */
void lease_give_back(struct attachment *a);
/** A call of @p a on its session: a sign of life, or more time for the lease. */
void lease_note_call(struct attachment *a, enum rpc_method method);
/**
 * The worker has answered @p call_id: what it was told before that is done.
 * @return false when it is not, and the worker is killed: the answer is not true.
 */
bool lease_answered(struct session *s, uint64_t call_id);
/** The session is over; who has lost it by that, and does not know yet, is told. */
void lease_over(struct session *s);
/** For the timer of a session: a loss is not undone in time. */
void lease_undo_expired(int fd, short what, void *session);
/** Milliseconds since @p a asked for anything but more time. */
uint64_t lease_idle_ms(const struct attachment *a);

/** The result of @p r with who lost the lease for it, if anybody did. */
void lease_reply(struct request *r, struct ipc_message *m);
/**
 * The worker was killed because it did not answer @p r, which took the lease.
 * @return false: @p r took none, or the session ended for another reason.
 */
bool lease_reply_killed(struct session *s, struct request *r);

#endif /* FRONTEND_SESSION_LEASE_H */
