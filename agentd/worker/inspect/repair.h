/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_REPAIR_H
#define WORKER_INSPECT_REPAIR_H

/**
 * @file repair.h
 * A repair worker: a dead session worker has left a GPU of its target suspended, which only a new session can
 * resume.  Every session does that as it attaches; this one does nothing else.
 */

#include "agentd/worker/process/options.h"

/**
 * Attach, if the record in IPC_FD_UNDO is about this process, and detach.
 * @return 0 if nothing is left to do.
 */
int repair_run(const struct worker_options *o);

#endif /* WORKER_INSPECT_REPAIR_H */
