/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_DISCOVER_H
#define WORKER_INSPECT_DISCOVER_H

/**
 * @file discover.h
 * A look: tells spawn, which parses nothing that strangers write, the processes that use GPUs.  It
 * touches none of them.
 */

#include "agentd/worker/process/options.h"

/** @return exit status. */
int discover_run(const struct worker_options *o);

#endif /* WORKER_INSPECT_DISCOVER_H */
