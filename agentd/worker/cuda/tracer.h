/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_TRACER_H
#define WORKER_CUDA_TRACER_H

/**
 * @file tracer.h
 * The process that traces for this one where the target's user may not (gpu-agent-tracer), as struct
 * cudbgshim_tracer.  Included in this directory only.
 *
 * What a worker with NVIDIA's library needs of /proc/PID is opened before it gives up its rights: the
 * kernel judges memory and mappings by the rights of whoever opened them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "cudbgshim_target.h"

struct cuda_tracer {
	struct cudbgshim_tracer ops; /**< Its ctx is this object, which must not move. */
	pid_t pid;		     /**< 0: there is none, and nothing is open. */
	int sock, maps_fd, auxv_fd, net_fd;
	bool is_over; /**< The target is not the program any more that it was. */
	bool is_lost; /**< The tracer has ended, or does not answer. */
};

/**
 * Start a tracer, with the rights that this process has.
 * @param start_ticks  Field 22 of /proc/PID/stat.
 * @param proc_fd      The directory /proc/PID.
 * @param pidfd        Of the target.
 * @param ret          Release with cuda_tracer_end().
 * @return 0, -errno.
 */
int cuda_tracer_start(const struct access_target *facts, uint64_t start_ticks, int proc_fd, int pidfd,
		      struct cuda_tracer *ret);
/** End it, if there is one; the kernel lets go what it still holds. */
void cuda_tracer_end(struct cuda_tracer *t);
/** @return the functions of this tracer; NULL where there is none. */
const struct cudbgshim_tracer *cuda_tracer_ops(const struct cuda_tracer *t);

/**
 * Open /proc/PID/mem to read and to write, with the rights of this process, as the user that the file
 * belongs to.
 * @return a descriptor, -errno.
 */
int cuda_open_memory(int proc_fd);
/** Read an open file of /proc from its beginning.  As fd_read_file_at(). */
int cuda_read_again(int fd, size_t max, char **ret, size_t *ret_size);

#endif /* WORKER_CUDA_TRACER_H */
