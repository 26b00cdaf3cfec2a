/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_WRITE_H
#define COREFILE_CUDA_WRITE_H

/**
 * @file cuda_write.h
 * Makes a CUDA core that the vendor's debugger opens, as a file that can be asked for its bytes.
 *
 * Blobs stay where they are, or are fetched when they are asked for, so that nothing is copied that
 * a write(2) can take from where it lies.  Tables, names and section headers of lanes are made when
 * they are asked for: some 100 bytes are kept per warp, besides the core.  Tables come first, then
 * registers, then images and memory, then names, then the section table.
 */

#include "corefile/cuda/model.h"

/** How cudacore_write() writes. */
struct cudacore_write_options {
	/** Age of the records; cuda-gdb 11.8 reads R346 and R400 only. */
	enum cudacore_layout layout;
	bool zstd;		     /**< Compress the whole file to one zstd frame. */
	/** Gives the blobs without data; NULL if there are none. */
	const struct corefile_source *source;
	/**
	 * Called after each piece; may be NULL.
	 * @return false to cancel.
	 */
	bool (*progress)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

/** The result of cudacore_write(). */
struct cudacore_written {
	uint64_t bytes; /**< Size before compression. */
	uint64_t lost;	/**< Number of them that are zeros because the source did not give them. */
	uint32_t sections;
};

/**
 * Would debuggers open this core?  They cannot bear the following (cuda-gdb 12.4 aborts on some of
 * it):
 * - no device; a device whose id is not its position, without a name, type or `sm_NN`; more than 64
 *   warps per SM or 32 lanes per warp; not exactly one row for each of its SMs;
 * - a grid whose context, module with relocated image, status or (origin 1) parent is missing;
 * - a block without its grid; two warps in one slot of an SM;
 * - a warp without an active lane, with active lanes that are not valid, or whose lanes are not
 *   those of its valid mask;
 * - a lane whose frames are not levels 0 ... call depth - 1, in this order;
 * - memory ranges that overlap, which only cudacore_image_create() finds.
 *
 * @param error  section: enum cudacore_table, or COREFILE_NO_SECTION for memory; offset: the row.
 * @return 0, -EINVAL with @p error, -ENOMEM.
 */
int cudacore_check(const struct cudacore *c, struct corefile_problem *error);
/**
 * Add to the problems of a core that was read what it lacks: what cudacore_check() asks for and
 * would be shown if it were there, blocks without warps, and active grids without blocks.  Problems
 * of one kind are one entry that tells how many there are.
 * @return 0, -ENOMEM.
 */
int cudacore_find_gaps(struct cudacore *c);

/** A file that is not written yet. */
struct cudacore_image;

/**
 * Plan the file.  Neighbouring memory ranges become one section, because debuggers cannot read
 * across two.
 * @param c       A core that passes cudacore_check().  Borrowed, as all that it points to.
 * @param source  Gives the blobs without data; NULL if there are none.  Borrowed.
 * @param ret     Release with cudacore_image_destroy().
 * @param error   Says why -EINVAL; NULL allowed.
 * @return 0, -EINVAL (memory ranges that overlap), -EFBIG (2 EiB), -ENOMEM.
 */
int cudacore_image_create(const struct cudacore *c, enum cudacore_layout layout,
			  const struct corefile_source *source, struct cudacore_image **ret,
			  struct corefile_problem *error);
/** Release an image; NULL is allowed. */
void cudacore_image_destroy(struct cudacore_image *i);

/** @return the bytes of the whole file. */
uint64_t cudacore_image_size(const struct cudacore_image *i);
/** @return the number of sections, with those that are empty or hold names. */
uint32_t cudacore_image_sections(const struct cudacore_image *i);
/**
 * Find where the bytes from @p offset on lie in memory.
 * @param ret_size  How many bytes lie together there.
 * @return NULL when cudacore_image_read() has to be asked; else valid as long as image and core
 *         are.
 */
const void *cudacore_image_at(const struct cudacore_image *i, uint64_t offset, uint64_t *ret_size);
/**
 * Make bytes of the file.  Where a blob's source gives no more, zeros stand for the rest.  The
 * blob's section is then shortened in its header, which lies behind, unless the section belongs to
 * a lane, or is merged of several ranges of which this is not the last.
 * @param ret_lost  Is increased by the number of those zeros, once; NULL allowed.
 * @return bytes given: fewer than asked at the end of the file only.
 */
size_t cudacore_image_read(struct cudacore_image *i, uint64_t offset, void *buf, size_t size,
			   uint64_t *ret_lost);

/**
 * Check a core and write all of it from the beginning to the end.
 * @param fd   Borrowed; as corefile_sink_create() wants it.
 * @param ret  Also filled in on failure; NULL allowed.
 * @return 0, -EINVAL (cudacore_check()), -ECANCELED, -ENOMEM, -ENOSPC, other -errno of write(2); @p
 *         error, if not NULL, says more.
 */
int cudacore_write(const struct cudacore *c, const struct cudacore_write_options *o, int fd,
		   struct cudacore_written *ret, struct corefile_problem *error);

#endif /* COREFILE_CUDA_WRITE_H */
