/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LOOK_H
#define WORKER_LOOK_H

/**
 * @file look.h
 * A look: tells spawn, which parses nothing that strangers write, the processes that use GPUs.  It
 * touches none of them.
 */

#include "agentd/worker/options.h"

/** @return exit status. */
int look_run(const struct worker_options *o);

#endif /* WORKER_LOOK_H */
