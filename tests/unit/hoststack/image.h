/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_HOSTSTACK_IMAGE_H
#define TESTS_UNIT_HOSTSTACK_IMAGE_H

#include <errno.h>
#include <string.h>

#include "hoststack/memory.h"

/** Read a process that is @p size bytes at @p base, and nothing else.  @return 0, -EFAULT. */
static inline int image_read(const uint8_t *bytes, size_t size, uint64_t base, const struct hoststack_piece *pieces,
			     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pieces[i].address < base || pieces[i].address - base > size ||
		    pieces[i].size > size - (pieces[i].address - base))
			return -EFAULT;
		memcpy(pieces[i].buf, bytes + (pieces[i].address - base), pieces[i].size);
	}
	return 0;
}

#endif
