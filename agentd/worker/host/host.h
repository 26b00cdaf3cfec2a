/* SPDX-License-Identifier: MIT */
#ifndef WORKER_HOST_H
#define WORKER_HOST_H

/**
 * @file host.h
 * A worker that answers host.stacks.
 *
 * The judge has let the client look at the process.  Here its files are opened, it is made sure that it still is
 * what was judged, and the rights are given up before anything of it is read that it wrote itself.
 */

#include "agentd/worker/process/options.h"

/** Answer one call.  @return exit status. */
int host_run(const struct worker_options *o);

#endif /* WORKER_HOST_H */
