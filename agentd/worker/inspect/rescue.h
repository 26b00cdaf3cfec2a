/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_RESCUE_H
#define WORKER_INSPECT_RESCUE_H

/**
 * @file rescue.h
 * A rescue worker: brings a target whose session worker died back to where it would be without it,
 * by the record that the dead one left (IPC_FD_UNDO).  The kernel undoes by itself what it did for
 * us; what stands in the target's own memory is left to this.
 */

#include "agentd/worker/process/options.h"

/** @return exit status: 0 when nothing is left to do. */
int rescue_run(const struct worker_options *o);

#endif /* WORKER_INSPECT_RESCUE_H */
