/* SPDX-License-Identifier: MIT */
#ifndef SPAWN_WORKER_ENV_H
#define SPAWN_WORKER_ENV_H

/**
 * @file worker_env.h
 * The environment of workers: the same whoever starts the agent, and from wherever.
 */

#define WORKER_ENV_MAX 16

/**
 * HOME, JOURNAL_STREAM, LD_LIBRARY_PATH, TMPDIR and the options of sanitizers, as far as they are set.
 * @param ret  For execve(); the strings stay those of environ.
 */
void worker_env_make(char *ret[WORKER_ENV_MAX]);

#endif /* SPAWN_WORKER_ENV_H */
