/* SPDX-License-Identifier: MIT */
#ifndef WAITS_COLLECTIVE_H
#define WAITS_COLLECTIVE_H

/** @file collective.h  Which collective operation of NCCL or RCCL a kernel or device function is of, by its name. */

#include <stdbool.h>
#include <stddef.h>

/** A piece of the name; NULL: the name does not say it. */
struct waits_word_of_name {
	const char *text;
	size_t size;
};

/** What a name tells. */
struct waits_collective {
	/**
	 * The device function that executes: the operation is what its name says.  Many operations share a kernel,
	 * which is named after one of them.
	 */
	bool is_function;
	/** "AllReduce", "RING", "LL", "Sum", "f32". */
	struct waits_word_of_name operation, algorithm, protocol, reduction, type;
};

/**
 * Tell a name, mangled or not.
 * @param ret  Points into the name.
 * @return 0, -ENOENT: it is no such name.
 */
int waits_collective_read(const char *name, struct waits_collective *ret);

#endif /* WAITS_COLLECTIVE_H */
