/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_CODE_H
#define HOSTSTACK_CODE_H

/**
 * @file code.h
 * What a frame is called: function, file and line, from its code object.
 *
 * Many threads run the same functions, so what was read of a code object is kept.  Each use reads the object itself
 * again, and compares: another one may lie there by now.
 */

#include <stdbool.h>

#include "hoststack/walk.h"

/** A place as people name it; the strings belong to the cache. */
struct hoststack_place {
	const char *function, *file;
	uint32_t line; /**< 0: it has none. */
	bool is_entry; /**< As of its frame. */
};

/** Code objects that were read. */
struct hoststack_codes {
	struct hoststack_code *slots; /**< malloc'ed. */
	size_t n, capacity;
	struct hoststack_code **replaced; /* Places that were told may still name these. */
	size_t n_replaced;
};

/**
 * Name a frame.  Zero @p c before the first call.
 * @return 0; -EBADMSG (what the frame points to is no code object, or the instruction not one of its own); -EFAULT;
 *         -ENOMEM; what hoststack_read() returns.
 */
int hoststack_codes_name(struct hoststack_codes *c, struct hoststack_memory *m, const struct hoststack_python *p,
			 const struct hoststack_frame *f, struct hoststack_place *ret);
void hoststack_codes_free(struct hoststack_codes *c);

#endif /* HOSTSTACK_CODE_H */
