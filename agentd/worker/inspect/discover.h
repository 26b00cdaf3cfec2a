/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_DISCOVER_H
#define WORKER_INSPECT_DISCOVER_H

/**
 * @file discover.h
 * A worker that discovers the processes that use GPUs and tells the monitor, which itself parses nothing
 * that strangers write.  It touches none of these processes.
 */

#include "agentd/worker/process/options.h"

/** Give up rights, send an IPC_FOUND for each process, and end.  @return exit status. */
int discover_run(const struct worker_options *o);

#endif /* WORKER_INSPECT_DISCOVER_H */
