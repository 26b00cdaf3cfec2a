/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_COPY_KERNEL_H
#define KFDSIM_COPY_KERNEL_H

/**
 * @file copy_kernel.h
 * ROCr's own kernels, with which it copies from GPU to GPU and fills memory, for instance to load
 * code objects.  Nothing is executed here, so that they are known by their shape, and what they do by
 * their arguments.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Where the code of such a kernel begins: behind a header that compilers no longer make. */
#define COPY_KERNEL_ENTRY 256
/** Bytes of the longest arguments. */
#define COPY_KERNEL_ARGUMENTS 84u

/** What the kernel is to do with size bytes. */
struct copy_kernel {
	bool fills; /**< With a word; otherwise it copies. */
	uint32_t word;
	uint64_t to, from, size;
};

/**
 * Read its arguments.
 * @param threads  Of the dispatch, which they repeat.
 * @return 0, -EINVAL: these are arguments of something else.
 */
int copy_kernel_parse(const void *bytes, size_t size, uint32_t threads, struct copy_kernel *ret);

#endif /* KFDSIM_COPY_KERNEL_H */
