/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_LEASE_H
#define FRONTEND_SESSION_LEASE_H

/**
 * @file lease.h
 * The writer lease of a session: who gets it, who may take it from its holder, and what follows.
 *
 * A lease is broken in this order: the holder has it no more; the worker undoes what a holder may not
 * leave behind; the holder is told; the new holder is answered.  A worker that does not say in time that all is
 * undone is killed, and the kernel lets the target run: nobody keeps queues stopped by hanging.
 */

#include "agentd/frontend/rpc/request.h"
#include "agentd/frontend/session/attachment.h"

/** A holder that lost a target, and is not root, can get it back after this time. */
#define LEASE_LOCK_MS 10000
/** An administrator who is silent has so long to say no when the owner of the target asks for the lease. */
#define LEASE_ASK_MS 10000

/** How far a client goes to get the lease. */
enum lease_want {
	LEASE_FREE,	  /**< Only when nobody has it. */
	/**
	 * Also from a holder that has asked for nothing but more time for long.  An administrator is asked
	 * first by an owner who is none, which fails.
	 */
	LEASE_FROM_SILENT,
	LEASE_BY_FORCE,	   /**< From any holder. */
};

/**
 * Make @p a the holder.
 * @param r  The request that is sent to the worker next: its answer means that all is undone.  It is
 *           noted in the request from whom the lease was taken.
 * @return 0, or negative with @p err, which names the holder and what this caller can do.
 */
int lease_take(struct attachment *a, enum lease_want want, struct request *r,
	       struct agent_err *err);
/** Take the lease from @p a, if it has it: what its client changed is undone. */
void lease_give_back(struct attachment *a);
/** Note a call of @p a on its session: it is a sign of life, or asks for more time for the lease. */
void lease_note_call(struct attachment *a, enum rpc_method method);
/**
 * Note that the worker has answered @p call_id: what it was told before that call is done.
 * @return false when that is not done: the answer is not true, and the worker is killed.
 */
bool lease_answered(struct session *s, uint64_t call_id);
/** Note that the session is over: a client that has lost the lease and does not know it is told. */
void lease_over(struct session *s);
/** Callback of a session's undo_timer: what a loser of the lease did is not undone in time. */
void lease_undo_expired(int fd, short what, void *session);
/** @return the milliseconds since @p a asked for anything but more time. */
uint64_t lease_idle_ms(const struct attachment *a);

/** Answer @p r with the worker's result and with who lost the lease for it, if anybody did. */
void lease_reply(struct request *r, struct ipc_message *m);
/**
 * Answer @p r, which took the lease, when the worker was killed because it did not answer it.
 * @return false: @p r took none, or the session ended for another reason.
 */
bool lease_reply_killed(struct session *s, struct request *r);

#endif /* FRONTEND_SESSION_LEASE_H */
