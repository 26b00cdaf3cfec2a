/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_WALK_H
#define COREFILE_CUDA_WALK_H

/**
 * @file cuda_walk.h
 * Visits every section of a core that is about to be written, in the order of section numbers.
 */

#include "corefile/cuda/layout.h"

/** Parts of the file.  A section lies in one of them, whatever its number. */
enum cuda_part { CUDA_PART_TABLES, CUDA_PART_REGISTERS, CUDA_PART_BULK, CUDA_PART_COUNT };

/** A section as visitors see it. */
struct cuda_section {
	uint32_t number, type, link, info, entry_size, align;
	uint64_t address, size;
	enum cuda_part part;
	const char *name; /**< Beginning of the name; the rest is the walk's suffix. */
	size_t name_size;

	/* The content is one of the following three. */
	const struct cuda_table *table; /**< Rows [first, first + n) of a table. */
	const struct corefile_blob *blob;
	/** Neither: memory ranges [first, first + n) of the walk's order. */
	uint32_t first, n;
};

/**
 * A walk.  The caller sets @c core, @c layout, @c memory and the callbacks; the rest is the walk's.
 */
struct cuda_walk {
	const struct cudacore *core;
	enum cudacore_layout layout;
	/** Memory ranges in the order of their addresses, so that neighbours stand together. */
	const struct cudacore_memory *const *memory;
	/**
	 * Called for each section.
	 * @return 0, or a negative number, which ends the walk.
	 */
	int (*visit)(struct cuda_walk *w, const struct cuda_section *s);
	/**
	 * Called for each warp instead of visiting what is below it, which is nearly all there is;
	 * NULL to visit that too.
	 */
	int (*warp)(struct cuda_walk *w, uint32_t row, uint32_t link, uint32_t info);

	bool only_tables; /**< Pass over blobs; names are not complete then. */
	uint32_t number;  /**< Number of the last section visited. */
	/** Position in cuda_blobs of the first blob of each table's rows. */
	uint8_t first_blob[CUDACORE_TABLE_COUNT + 1];
	char suffix[96]; /**< Labels of five levels with numbers of ten digits take 67 bytes. */
	size_t suffix_size;
};

/**
 * Visit all sections.
 * @return 0, or the first negative result of visit().
 */
int cuda_walk(struct cuda_walk *w);
/**
 * Visit only what is below a warp.  The caller has set number and suffix to what they were when
 * cuda_walk::warp was called with these arguments.
 * @return 0, or the first negative result of visit().
 */
int cuda_walk_warp(struct cuda_walk *w, uint32_t row, uint32_t link, uint32_t info);

#endif /* COREFILE_CUDA_WALK_H */
