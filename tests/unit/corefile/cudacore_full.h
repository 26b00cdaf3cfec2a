/* SPDX-License-Identifier: MIT */
#ifndef CUDACORE_FULL_H
#define CUDACORE_FULL_H

/** @file cudacore_full.h  The core of a GPU of the largest kind with every slot taken, and what may read it. */

#include <stdint.h>

#include "corefile/cuda/model.h"
#include "corefile/cuda/write.h"

#define FULL_SMS	132u
#define FULL_WARPS	64u
#define FULL_LANES	32u
#define FULL_LANES_ALL	(FULL_SMS * FULL_WARPS * FULL_LANES)
#define FULL_REGISTERS	64u
#define FULL_FRAMES	2u
#define FULL_LIMIT_KIB	(400l << 10)

/** One such device, with nothing in it. */
void cudacore_full_add_device(struct cudacore *c);
/** What its lanes hold. */
uint64_t cudacore_full_pc(uint32_t lane);
uint32_t cudacore_full_register(uint64_t lane, uint32_t i);

/** @return 0, -errno of cudacore_write(). */
int cudacore_full_write(int fd, struct cudacore_written *ret);
/**
 * In a process of its own, so that the high-water mark is its own: asserts that @p work returns 0
 * and stays below FULL_LIMIT_KIB.
 */
void cudacore_full_run(const char *what, int (*work)(int fd), int fd);

#endif /* CUDACORE_FULL_H */
