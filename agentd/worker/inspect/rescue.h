/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_RESCUE_H
#define WORKER_INSPECT_RESCUE_H

/**
 * @file rescue.h
 * A rescue worker: it brings a target whose session worker died back to where it would be without a
 * session, by what the dead worker has left in the memory IPC_FD_UNDO.  The kernel undoes by itself
 * what it did for the session.  A rescue worker does the rest: it changes the target's own memory
 * back, and gives the target the answers and faults that it is owed.
 */

#include "agentd/worker/process/options.h"

/**
 * Let the back end that wrote the memory rescue the target.
 * @return 0 if nothing is left to do.
 */
int rescue_run(const struct worker_options *o);

#endif /* WORKER_INSPECT_RESCUE_H */
