/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_SESSION_READERS_H
#define FRONTEND_SESSION_READERS_H

/**
 * @file readers.h
 * For how long queues of a target may stand still for clients that may only look, remembered from one
 * session on the target to the next: who detaches and attaches again gets nothing new.
 */

#include "agentd/frontend/session/session.h"

/** Remembered for so long after the last change. */
#define READERS_KEEP_S 60

/** Note what the worker of a session has told. */
void readers_note(struct session *s, const struct ipc_message *m);
/** Tell the worker of a new session what is remembered of its target. */
void readers_hand_over(struct session *s);
void readers_deinit(struct sessions *all);

#endif /* FRONTEND_SESSION_READERS_H */
