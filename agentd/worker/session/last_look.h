/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_LAST_LOOK_H
#define WORKER_SESSION_LAST_LOOK_H

/**
 * @file last_look.h
 * What the last stop for a client that may only look has shown, for those that come when none may be
 * stopped (readers.h).
 */

#include "rpc_gen.h"

struct last_look;

/** Keep the groups of a snapshot in place of those before, or none where they are too many. */
void last_look_keep(struct last_look **l, const struct rpc_gpu_snapshot_result *seen);
/**
 * Tell them.
 * @param l    NULL: there is nothing to tell.
 * @param ret  Lasts as long as the arena.
 * @return whether @p ret was filled in.
 */
bool last_look_tell(const struct last_look *l, struct rpc_arena *a, struct rpc_last_look *ret);
/** @param l  NULL is allowed. */
void last_look_free(struct last_look *l);

#endif /* WORKER_SESSION_LAST_LOOK_H */
