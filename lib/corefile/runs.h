/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_RUNS_H
#define COREFILE_RUNS_H

/**
 * @file runs.h
 * Finds the pages of zeros in a core, which need neither be sent nor written.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Granularity of holes, in bytes. */
#define CORE_PAGE_BYTES 4096u
/** Least length of a hole; a shorter one costs more system calls than it saves. */
#define CORE_HOLE_MIN (4 * CORE_PAGE_BYTES)

/** Are all bytes zero?  @p size must not be 0. */
static inline bool core_is_zero(const uint8_t *p, size_t size)
{
	return p[0] == 0 && memcmp(p, p + 1, size - 1) == 0;
}

/** @return the length of the run at @p p of whole pages that are all zero, or that are all not. */
static inline size_t core_page_run(const uint8_t *p, size_t size, bool zero)
{
	size_t n = 0;

	while (size - n >= CORE_PAGE_BYTES && core_is_zero(p + n, CORE_PAGE_BYTES) == zero)
		n += CORE_PAGE_BYTES;
	return n;
}

/**
 * Find the run of zeros or of data that begins at @p p, which must be the start of a page of the
 * core.
 * @param after_hole  A hole precedes @p p, so that zeros of any length continue it.
 * @param ret_hole    The run consists of zeros, and is long enough to be left out.
 * @return its length: more than 0, at most @p size.
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
