/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_METADATA_H
#define SYMBOLS_METADATA_H

/**
 * @file metadata.h
 * Reads the note NT_AMDGPU_METADATA of an AMD code object: what the compiler says about each
 * kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The compiler's notes about a kernel. */
struct symbols_kernel {
	const char *name; /**< Name, borrowed from the note, not terminated; never NULL. */
	size_t name_size;
	const char *symbol; /**< Name of the descriptor ("NAME.kd"), borrowed likewise. */
	size_t symbol_size;
	/* The members below are UINT32_MAX when the note does not tell them. */
	uint32_t group_segment_bytes, private_segment_bytes, kernarg_segment_bytes;
	uint32_t sgprs, vgprs, agprs;
	uint32_t wavefront_size;
};

/**
 * Find one kernel.
 * @param note    Description of the note.
 * @param symbol  Name of its descriptor, "NAME.kd".
 * @return 0, -ENOENT, -EBADMSG (the note is broken in front of the kernel).
 */
int symbols_metadata_find(const void *note, size_t size, const char *symbol,
			  struct symbols_kernel *ret);

/**
 * Call @p visit for each kernel until it returns non-zero, which is then returned.
 * @return 0, -EBADMSG, a result of @p visit.
 */
int symbols_metadata_each(const void *note, size_t size,
			  int (*visit)(void *arg, const struct symbols_kernel *k), void *arg);

#endif /* SYMBOLS_METADATA_H */
