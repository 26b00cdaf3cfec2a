/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROCESS_RANK_H
#define WORKER_PROCESS_RANK_H

/**
 * @file rank.h
 * Which process of a job this is, as its launcher has told it in the environment.
 *
 * Only the variables of the table in rank.c are looked at: others may be secret.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** Bytes of the environment that are read. */
#define RANK_ENVIRONMENT_MAX ((size_t)1 << 20)

/** A process of a job. */
struct rank {
	const char *from; /**< The variable that names the rank; static.  NULL: no launcher has set one. */
	uint32_t rank;
	bool has_local, has_world;
	uint32_t local_rank, world_size;
	char job[128]; /**< Harmless text; empty: not told. */
};

/**
 * Read the text of /proc/PID/environ: NAME=VALUE, each with a NUL behind it.  What is no number is not there.
 * Launchers that start others stand behind them in the table, so that the innermost one counts.
 */
void rank_parse(const char *text, size_t size, struct rank *ret);
/** Open /proc/PID/environ, for which the kernel judges the right.  @return a descriptor, or -errno. */
int rank_open(pid_t pid);
/** Read and parse it.  @return 0 or -errno. */
int rank_read(int fd, struct rank *ret);

#endif /* WORKER_PROCESS_RANK_H */
