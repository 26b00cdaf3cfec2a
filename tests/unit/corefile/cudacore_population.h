/* SPDX-License-Identifier: MIT */
#ifndef CUDACORE_POPULATION_H
#define CUDACORE_POPULATION_H

/** @file cudacore_population.h  CUDA cores for tests: made up, sound, and compared. */

#include "corefile/cuda/model.h"
#include "corefile/cuda/write.h"

/** How much of everything at most. */
struct population {
	uint32_t devices, sms, blocks, warps, memory;
};

/** Random in every field; cudacore_check() passes.  Bytes come from one static pool. */
void population_fill(struct cudacore *c, const struct population *most);

/** A file in memory; grows as the test changes it. */
struct population_file {
	uint8_t *data;
	size_t size;
};

/** Write to an anonymous file, then copy; asserts success. */
struct population_file population_write(const struct cudacore *c,
					const struct cudacore_write_options *o);

/**
 * Field by field, as far as @p layout has fields; asserts.  Memory is compared as bytes at
 * addresses: neighbours were merged.
 */
void population_compare(const struct cudacore *got, const struct cudacore *want,
			enum cudacore_layout layout);

#endif /* CUDACORE_POPULATION_H */
