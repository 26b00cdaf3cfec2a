/* SPDX-License-Identifier: MIT */
#ifndef WAITS_RCCL_H
#define WAITS_RCCL_H

/**
 * @file rccl.h
 * What RCCL of ROCm 5.4 to 6.0 gives its kernels: which communicator, and which operations of it.
 * All of it is what the process wrote, so that nothing is taken that does not fit together.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the arguments, of a communicator with what is read of its first channel, and of the
 * work of a workgroup. */
#define WAITS_RCCL_ARGUMENTS 24u
#define WAITS_RCCL_COMM      96u
#define WAITS_RCCL_WORK      256u
/** Most channels of a communicator, and ranks that are believed. */
#define WAITS_RCCL_CHANNELS_MAX 32u
#define WAITS_RCCL_RANKS_MAX    65536u

/** What a kernel was given. */
struct waits_rccl_launch {
	uint64_t comm; /**< Address of the communicator. */
	uint64_t work; /**< Address of the work of the first workgroup; the others' follow. */
	uint32_t n;    /**< Workgroups: one for each channel. */
};

/** A communicator as one of its ranks has it. */
struct waits_rccl_comm {
	uint32_t rank, ranks;
	uint32_t previous, next; /**< Ranks beside it in the ring of the first channel. */
};

/** Whether a kernel's symbol says that it has these arguments; others lay them out otherwise. */
bool waits_rccl_is_kernel(const char *symbol);

/** @return 0, -EINVAL: these are no such arguments. */
int waits_rccl_launch_read(const void *bytes, size_t size, struct waits_rccl_launch *ret);

/**
 * Read a communicator.
 * @param address  Where it lies.
 * @return 0, -EINVAL: it is none, or of another release.
 */
int waits_rccl_comm_read(const void *bytes, size_t size, uint64_t address,
			 struct waits_rccl_comm *ret);

/**
 * Read the number of the operation that a workgroup executes.
 * @param ret  The same in all ranks: a communicator counts its operations.
 * @return 0, -ENOENT: there are several, or it has no such number, as sends and receives; -EINVAL:
 * it is no work.
 */
int waits_rccl_work_read(const void *bytes, size_t size, uint64_t *ret);

#endif /* WAITS_RCCL_H */
