/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_METADATA_H
#define SYMBOLS_METADATA_H

/**
 * @file metadata.h
 * The note NT_AMDGPU_METADATA of an AMD code object: what the compiler says of each kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols_kernel {
	const char *name; /**< Borrowed from the note, not terminated; never NULL. */
	size_t name_size;
	const char *symbol; /**< Name of the descriptor ("NAME.kd"); the same. */
	size_t symbol_size;
	/* UINT32_MAX: not said. */
	uint32_t group_segment_bytes, private_segment_bytes, kernarg_segment_bytes;
	uint32_t sgprs, vgprs, agprs;
	uint32_t wavefront_size;
};

/**
 * Find one kernel.
 * @param note    Description of the note.
 * @param symbol  Name of its descriptor, "NAME.kd".
 * @return 0, -ENOENT, -EBADMSG (broken before it was found).
 */
int symbols_metadata_find(const void *note, size_t size, const char *symbol,
			  struct symbols_kernel *ret);

/**
 * Call @p visit for each kernel until it returns non-zero, which is then returned.
 * @return 0, -EBADMSG.
 */
int symbols_metadata_each(const void *note, size_t size,
			  int (*visit)(void *arg, const struct symbols_kernel *k), void *arg);

#endif /* SYMBOLS_METADATA_H */
