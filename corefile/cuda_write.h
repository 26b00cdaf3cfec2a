/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_WRITE_H
#define COREFILE_CUDA_WRITE_H

/**
 * @file cuda_write.h
 * A CUDA core that the vendor's debugger opens.
 *
 * The file is written from its beginning to its end: nothing is patched, nothing is kept per
 * section.  Tables come first, then registers, then images and memory, then names, then the
 * section table.
 */

#include "corefile/cuda_model.h"

struct cudacore_write_options {
	enum cudacore_layout layout; /**< cuda-gdb 11.8 reads R346 and R400 only. */
	bool zstd;		     /**< The whole file as one zstd frame. */
	const struct corefile_source *source; /**< For blobs without data; NULL if none. */
	/** After each piece.  @return false to cancel. */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

struct cudacore_written {
	uint64_t bytes; /**< Before compression. */
	uint32_t sections;
	/** Blobs whose bytes could not all be read.  Release with corefile_problems_deinit(). */
	struct corefile_problems unread;
};

/**
 * Would debuggers open this?  What they cannot bear (cuda-gdb 12.4 aborts on some of it):
 *  - no device; a device whose id is not its position, without a name, type or `sm_NN`; more than
 *    64 warps per SM or 32 lanes per warp; not exactly one row for each of its SMs;
 *  - a grid whose context, module with relocated image, status or (origin 1) parent is missing;
 *  - a block without its grid; two warps in one slot of an SM;
 *  - a warp without an active lane, with active lanes that are not valid, or whose lanes are not
 *    those of its valid mask;
 *  - a lane whose frames are not levels 0 ... call depth - 1, in this order;
 *  - memory ranges that overlap.
 * @param error  section: enum cudacore_table, or COREFILE_NO_SECTION for memory; offset: the row.
 * @return 0, -EINVAL with @p error, -ENOMEM.
 */
int cudacore_check(const struct cudacore *c, struct corefile_problem *error);

/** Size of the file, before compression.  @return 0, -ENOMEM. */
int cudacore_size(const struct cudacore *c, enum cudacore_layout layout, uint64_t *ret_bytes);

/**
 * Check and write.  Neighbouring memory ranges become one section: debuggers cannot read across
 * two.  A blob that its source cannot give to its end becomes a shorter section; where that lies
 * inside a merged memory section, zeros stand for what is missing.  Both are listed in
 * ret->unread.
 *
 * @param fd   Borrowed; see sink.h.
 * @param ret  Also filled in on failure; NULL allowed.
 * @return 0, -EINVAL (cudacore_check()), -ECANCELED, -ENOMEM, -ENOSPC, other -errno of write(2);
 *         @p error says more.
 */
int cudacore_write(const struct cudacore *c, const struct cudacore_write_options *o, int fd,
		   struct cudacore_written *ret, struct corefile_problem *error);

#endif /* COREFILE_CUDA_WRITE_H */
