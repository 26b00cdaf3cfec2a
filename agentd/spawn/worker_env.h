/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_WORKER_ENV_H
#define SPAWN_WORKER_ENV_H

/**
 * @file worker_env.h
 * The environment of workers: that of the agent, without what is meant for CUDA programs.
 */

/** Take those variables out of environ.  For a child that is about to execute a worker. */
void worker_env_clean(void);

#endif /* SPAWN_WORKER_ENV_H */
