/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_WRITE_H
#define COREFILE_CUDA_WRITE_H

/**
 * @file cuda_write.h
 * A CUDA core that the vendor's debugger opens, as a file that can be asked for its bytes.
 *
 * Blobs stay where they are, or are fetched when they are asked for, so that nothing is copied that a
 * write(2) can take from where it lies.  Tables, names and section headers of lanes are made when
 * they are asked for: some 100 bytes are kept of a warp, besides the core.  Tables come first, then
 * registers, then images and memory, then names, then the section table.
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
	uint64_t lost;	/**< Of them, zeros in place of what the source did not give. */
	uint32_t sections;
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
/**
 * What a core that was read lacks, into its problems: of the above, what would be shown if it were there;
 * and blocks without warps, active grids without blocks.  Those of one kind are counted, not listed.
 * @return 0, -ENOMEM.
 */
int cudacore_find_gaps(struct cudacore *c);

struct cudacore_image;

/**
 * Neighbouring memory ranges become one section: debuggers cannot read across two.
 * @param c       cudacore_check() passes.  Borrowed, as all that it points to.
 * @param source  For blobs without data; NULL if none.  Borrowed.
 * @param ret     Release with cudacore_image_destroy().
 * @param error   Why -EINVAL.
 * @return 0, -EINVAL (memory ranges that overlap), -EFBIG (2 EiB), -ENOMEM.
 */
int cudacore_image_create(const struct cudacore *c, enum cudacore_layout layout,
			  const struct corefile_source *source, struct cudacore_image **ret,
			  struct corefile_problem *error);
/** NULL is allowed. */
void cudacore_image_destroy(struct cudacore_image *i);

/** Bytes of the whole file. */
uint64_t cudacore_image_size(const struct cudacore_image *i);
/** With those that are empty or hold names. */
uint32_t cudacore_image_sections(const struct cudacore_image *i);
/**
 * Where the bytes from @p offset on lie, as many as lie together.
 * @return NULL when cudacore_image_read() has to be asked; good as long as image and core are.
 */
const void *cudacore_image_at(const struct cudacore_image *i, uint64_t offset, uint64_t *ret_size);
/**
 * From where a blob's source does not give any more, zeros stand for the rest.  Its section, whose
 * header lies behind, ends there, unless it is a lane's, or merged of several and this is not the last.
 * @param ret_lost  Grows by their number, once; NULL allowed.
 * @return bytes given: fewer than asked at the end of the file only.
 */
size_t cudacore_image_read(struct cudacore_image *i, uint64_t offset, void *buf, size_t size,
			   uint64_t *ret_lost);

/**
 * Check, and write all of it from the beginning to the end.
 * @param fd   Borrowed; see sink.h.
 * @param ret  Also filled in on failure; NULL allowed.
 * @return 0, -EINVAL (cudacore_check()), -ECANCELED, -ENOMEM, -ENOSPC, other -errno of write(2);
 *         @p error says more.
 */
int cudacore_write(const struct cudacore *c, const struct cudacore_write_options *o, int fd,
		   struct cudacore_written *ret, struct corefile_problem *error);

#endif /* COREFILE_CUDA_WRITE_H */
