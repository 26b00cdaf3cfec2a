/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_CODE_LIST_H
#define SYMBOLS_CODE_LIST_H

/**
 * @file code_list.h
 * Reads the list of loaded code objects that an AMD runtime keeps for debuggers: a `struct r_debug`
 * and a chain of `struct link_map`, both written by the target and therefore not to be trusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/memory.h"

#define SYMBOLS_CODE_LIST_MAX	    16384	      /**< Most entries that are read. */
#define SYMBOLS_CODE_LIST_URI_BYTES ((size_t)16 << 20) /**< Most bytes of all URIs together. */

/** First version of the structure that we know how to read. */
#define SYMBOLS_R_VERSION_MIN 8
/** Last one known; later ones are read alike, which may be wrong. */
#define SYMBOLS_R_VERSION_KNOWN 11

/** Why a list ended. */
enum symbols_code_list_end {
	SYMBOLS_CODE_LIST_COMPLETE,
	SYMBOLS_CODE_LIST_CYCLE,      /**< An entry points back into the list. */
	/** One of the limits above was hit, and the rest was left out. */
	SYMBOLS_CODE_LIST_TOO_MANY,
	SYMBOLS_CODE_LIST_UNREADABLE, /**< An entry is not in readable memory. */
	SYMBOLS_CODE_LIST_END_COUNT,
};

/** A code object in the list. */
struct symbols_code {
	uint64_t entry; /**< Address of its link_map, which tells entries apart. */
	uint64_t bias;	/**< Address in memory = address in ELF + bias. */
	const char *uri; /**< Never NULL; empty when it could not be read.  Not checked. */
};

/** The list as it was read. */
struct symbols_code_list {
	int32_t r_version;
	uint64_t r_brk; /**< Address of the function that the runtime calls around each change. */
	enum symbols_code_list_end end;
	size_t n_items;
	struct symbols_code *items;
	char *text; /**< The bytes that the URIs point into. */
};

/** Result of symbols_code_list_read(): the list is being changed right now, so look again later. */
#define SYMBOLS_CODE_LIST_CHANGING 1

/**
 * Read the list.
 * @param r_debug  Address of the structure.
 * @param ret      Release with symbols_code_list_deinit().
 * @return 0, also for a list that ends badly (see end); SYMBOLS_CODE_LIST_CHANGING;
 *         -EPROTONOSUPPORT (older than SYMBOLS_R_VERSION_MIN), -EFAULT or another errno of read
 *         (the structure itself is unreadable), -ENOMEM.
 */
int symbols_code_list_read(const struct symbols_memory *m, uint64_t r_debug,
			   struct symbols_code_list *ret);
/** Free a list; a zeroed object is accepted. */
void symbols_code_list_deinit(struct symbols_code_list *l);

#endif /* SYMBOLS_CODE_LIST_H */
