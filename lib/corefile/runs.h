/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_RUNS_H
#define COREFILE_RUNS_H

/** @file runs.h  Where a core has pages of zeros, which need neither be sent nor written. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CORE_PAGE_BYTES 4096u
/** A shorter hole costs more system calls than it saves. */
#define CORE_HOLE_MIN (4 * CORE_PAGE_BYTES)

static inline bool core_is_zero(const uint8_t *p, size_t size)
{
	return p[0] == 0 && memcmp(p, p + 1, size - 1) == 0;
}

/** Length of the run at p of whole pages that are all zero (or all not). */
static inline size_t core_page_run(const uint8_t *p, size_t size, bool zero)
{
	size_t n = 0;

	while (size - n >= CORE_PAGE_BYTES && core_is_zero(p + n, CORE_PAGE_BYTES) == zero)
		n += CORE_PAGE_BYTES;
	return n;
}

/**
 * The run that begins at @p p, where a page of the core does.
 * @param after_hole  Then a hole of any length goes on.
 * @param ret_hole    It is of zeros, and long enough to be left out.
 * @return its length; @p size at most, not 0.
 */
static inline size_t core_run(const uint8_t *p, size_t size, bool after_hole, bool *ret_hole)
{
	size_t data = 0, zeros;

	*ret_hole = false;
	while (data < size) {
		zeros = core_page_run(p + data, size - data, true);
		if (zeros >= CORE_HOLE_MIN || (zeros && data == 0 && after_hole)) {
			*ret_hole = data == 0;
			return data ? data : zeros;
		}
		data += zeros;
		data = size - data < CORE_PAGE_BYTES ? size
						     : data + core_page_run(p + data, size - data, false);
	}
	return data;
}

#endif /* COREFILE_RUNS_H */
