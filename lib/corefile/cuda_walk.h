/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_WALK_H
#define COREFILE_CUDA_WALK_H

/** @file cuda_walk.h  Every section of a core about to be written, by its number. */

#include "corefile/cuda_layout.h"

/** Parts of the file; a section lies in one of them, whatever its number. */
enum cuda_part { CUDA_PART_TABLES, CUDA_PART_REGISTERS, CUDA_PART_BULK, CUDA_PART_COUNT };

struct cuda_section {
	uint32_t number, type, link, info, entry_size, align;
	uint64_t address, size;
	enum cuda_part part;
	const char *name; /**< Its beginning; the rest is the walk's suffix. */
	size_t name_size;

	/* What it holds is one of these. */
	const struct cuda_table *table; /**< Rows [first, first + n). */
	const struct corefile_blob *blob;
	/** Else memory ranges [first, first + n) of the walk's order. */
	uint32_t first, n;
};

struct cuda_walk {
	const struct cudacore *core;
	enum cudacore_layout layout;
	/** Memory ranges, neighbours together. */
	const struct cudacore_memory *const *memory;
	int (*visit)(struct cuda_walk *w, const struct cuda_section *s);
	/** In place of walking over what is below a warp, nearly all there is; NULL: do that. */
	int (*warp)(struct cuda_walk *w, uint32_t row, uint32_t link, uint32_t info);

	bool only_tables; /**< Pass over blobs, and names are not complete. */
	uint32_t number;  /**< Of the last section. */
	uint8_t first_blob[CUDACORE_TABLE_COUNT + 1]; /**< Of each table's rows, in cuda_blobs. */
	char suffix[96];
	size_t suffix_size;
};

/** @return 0, or the first negative result of visit(). */
int cuda_walk(struct cuda_walk *w);
/** Only what is below a warp; number and suffix are those of cuda_walk::warp. */
int cuda_walk_warp(struct cuda_walk *w, uint32_t row, uint32_t link, uint32_t info);

#endif /* COREFILE_CUDA_WALK_H */
