/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_AMDGPU_WRITE_H
#define COREFILE_AMDGPU_WRITE_H

/**
 * @file amdgpu_write.h
 * An AMDGPU core from the model, as a file that can be asked for its bytes in any order.
 *
 * Headers and notes are made once and kept; memory is fetched when it is asked for.  So whoever has
 * the memory need not have the file, and no write ever waits in the middle.
 */

#include "corefile/amdgpu_model.h"

struct amdcore_image;

/**
 * @param c    Its segments must not overlap.  Borrowed, as all that it points to.
 * @param ret  Release with amdcore_image_destroy().
 * @return 0, -EINVAL (segments out of order, tables whose entries are not a multiple of 8 bytes,
 *         more than 2^32 of anything), -ENOMEM.
 */
int amdcore_image_create(const struct amdcore *c, struct amdcore_image **ret);
/** NULL is allowed. */
void amdcore_image_destroy(struct amdcore_image *i);

/** Bytes of the whole file. */
uint64_t amdcore_image_size(const struct amdcore_image *i);
/**
 * @param source  For memory that is not at hand; what it cannot give becomes zeros.
 * @param ret_lost  Bytes of which that is so, added to what it is; NULL allowed.
 * @return bytes given: fewer than asked at the end of the file only.
 */
size_t amdcore_image_read(const struct amdcore_image *i, const struct corefile_source *source,
			  uint64_t offset, void *buf, size_t size, uint64_t *ret_lost);

#endif /* COREFILE_AMDGPU_WRITE_H */
