/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_AMDGPU_WRITE_H
#define COREFILE_AMDGPU_WRITE_H

/**
 * @file amdgpu_write.h
 * Makes an AMDGPU core from the model, as a file that can be asked for its bytes in any order.
 *
 * Headers and notes are made once and kept; memory is fetched when it is asked for.  So the process
 * that has the memory need not have the file, and no write ever waits in the middle.
 */

#include "corefile/amdgpu/model.h"

/** A file that is not written yet. */
struct amdcore_image;

/**
 * Plan the file.
 * @param c    The model, whose segments must not overlap.  Borrowed, as all that it points to.
 * @param ret  Release with amdcore_image_destroy().
 * @return 0, -EINVAL (segments out of order, tables whose entries are not a multiple of 8 bytes,
 *         more than 2^32 of anything), -ENOMEM.
 */
int amdcore_image_create(const struct amdcore *c, struct amdcore_image **ret);
/** Release an image; NULL is allowed. */
void amdcore_image_destroy(struct amdcore_image *i);

/** @return the bytes of the whole file. */
uint64_t amdcore_image_size(const struct amdcore_image *i);
/**
 * Make bytes of the file.
 * @param source    Gives the memory that is not at hand; what it cannot give becomes zeros.
 * @param ret_lost  Is increased by the number of those zeros; NULL allowed.
 * @return bytes given: fewer than asked at the end of the file only.
 */
size_t amdcore_image_read(const struct amdcore_image *i, const struct corefile_source *source,
			  uint64_t offset, void *buf, size_t size, uint64_t *ret_lost);

#endif /* COREFILE_AMDGPU_WRITE_H */
