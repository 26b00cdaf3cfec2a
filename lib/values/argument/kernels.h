/* SPDX-License-Identifier: MIT */
#ifndef VALUES_ARGUMENT_KERNELS_H
#define VALUES_ARGUMENT_KERNELS_H

/** @file kernels.h  Where the kernels of a cubin have their parameters, by the address of their code. */

#include <stddef.h>
#include <stdint.h>

struct symbols_image;

/** Where the parameters of a kernel lie, by its code. */
struct values_kernel {
	uint64_t entry;
	uint16_t base, size; /**< In the parameter space and in constant bank 0; bytes. */
};

/** The kernels of an image, in ascending order of their entries. */
struct values_kernels {
	struct values_kernel *list;
	size_t n, capacity;
};

/** List the kernels of a relocated image.  @return 0, -ENOMEM; release it in any case. */
int values_kernels_find(const struct symbols_image *i, struct values_kernels *ret);
/** Free the list; it is empty then, as a zeroed one. */
void values_kernels_deinit(struct values_kernels *k);
/** @return the kernel that begins at the address; NULL: nothing is known of it. */
const struct values_kernel *values_kernels_at(const struct values_kernels *k, uint64_t entry);

#endif /* VALUES_ARGUMENT_KERNELS_H */
