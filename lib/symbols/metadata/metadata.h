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
	/** Its arguments, still packed, for symbols_metadata_arguments(); borrowed likewise. */
	const uint8_t *arguments;
	size_t arguments_size, n_arguments;
};

/** Where the value of an argument comes from: `.value_kind` of the note. */
enum symbols_argument_kind {
	SYMBOLS_ARGUMENT_BY_VALUE,
	SYMBOLS_ARGUMENT_BUFFER, /**< An address in global or constant memory. */
	SYMBOLS_ARGUMENT_LDS,	 /**< An offset in the LDS of the workgroup. */
	SYMBOLS_ARGUMENT_OBJECT, /**< The address of an image, a sampler, a pipe or a queue. */
	SYMBOLS_ARGUMENT_HIDDEN, /**< The compiler has added it. */
	SYMBOLS_ARGUMENT_OTHER,	 /**< The note does not say, or says what is not known here. */
};

/** One argument of a kernel.  Texts are borrowed from the note, not terminated, and never NULL. */
struct symbols_argument {
	const char *name; /**< Only OpenCL's `-cl-kernel-arg-info` notes it. */
	size_t name_size;
	const char *type; /**< As in the source, by the same option. */
	size_t type_size;
	const char *value_kind;
	size_t value_kind_size;
	enum symbols_argument_kind kind;
	uint32_t offset, size; /**< In the kernarg segment; UINT32_MAX when the note does not tell. */
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

/**
 * Call @p visit for each argument, in the order of the source and hidden ones behind, until it
 * returns non-zero, which is then returned.
 * @param k  As the functions above gave it, while the note is there.
 * @return 0, -EBADMSG, a result of @p visit.
 */
int symbols_metadata_arguments(const struct symbols_kernel *k,
			       int (*visit)(void *arg, const struct symbols_argument *a), void *arg);

#endif /* SYMBOLS_METADATA_H */
