/* SPDX-License-Identifier: MIT */
#ifndef VALUES_ARGUMENT_ARGUMENTS_H
#define VALUES_ARGUMENT_ARGUMENTS_H

/**
 * @file arguments.h
 * The arguments of a kernel: where each of them lies in what was passed at its launch, what it is
 * called, and what its bytes mean.
 *
 * Offsets and sizes are those that the compiler noted for whoever launches the kernel, so they are
 * there without debug information and right at every instruction.  Names and types are the best that
 * is known: of the debug information, of the notes, of the kernel's C++ name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "values/scalar.h"

struct symbols_image;

/** Most arguments of a kernel that are told. */
#define VALUES_ARGUMENTS_MAX 256u
/** Most bytes of an argument that are shown. */
#define VALUES_ARGUMENT_BYTES_MAX 64u
#define VALUES_ARGUMENT_NAME_MAX 128u
#define VALUES_ARGUMENT_TYPE_MAX 256u

struct values_argument {
	/** Printable; `arg0`, `arg1`, ... where no name is known. */
	char name[VALUES_ARGUMENT_NAME_MAX];
	char type[VALUES_ARGUMENT_TYPE_MAX]; /**< Printable; "" where it is not known. */
	struct values_scalar scalar; /**< VALUES_RAW: of unknown type, or with parts. */
	uint32_t offset; /**< From the first argument on. */
	bool hidden;	 /**< The compiler has added it (AMD). */
};

struct values_arguments {
	struct values_argument *list;
	size_t n;
	size_t n_all; /**< Arguments that there are; those beyond VALUES_ARGUMENTS_MAX are not in the list. */
	/** Bytes of all: of the kernarg segment (AMD), of the parameters (NVIDIA). */
	uint32_t size;
};

/**
 * List the arguments of a kernel.
 * @param kernel  Its address in the file, as for symbols_image_kernel().
 * @param hidden  Also those that the compiler has added.
 * @param ret     Release with values_arguments_deinit() in any case.
 * @return 0, -ENOENT (nothing is noted about the kernel), -EBADMSG (what is noted is broken),
 *         -ENOMEM.
 */
int values_arguments_find(struct symbols_image *i, uint64_t kernel, bool hidden,
			  struct values_arguments *ret);
/** Free the list; a zeroed object is allowed. */
void values_arguments_deinit(struct values_arguments *a);

/**
 * Append the value of an argument.
 * @param bytes  As many as it has, or VALUES_ARGUMENT_BYTES_MAX if it has more.
 */
void values_argument_print(const struct values_argument *a, const void *bytes, struct out *o);

#endif /* VALUES_ARGUMENT_ARGUMENTS_H */
