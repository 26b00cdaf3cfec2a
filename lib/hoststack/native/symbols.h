/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_SYMBOLS_H
#define HOSTSTACK_NATIVE_SYMBOLS_H

/** @file symbols.h  Functions that a loaded file exports, or that its debug file names, by address. */

#include <stdbool.h>

#include "hoststack/elf.h"

struct native_symbol;

/** Read when the first is asked for; zero it before. */
struct native_symbols {
	struct native_symbol *list; /**< malloc'ed, by address. */
	size_t n;
	bool is_read;
};

/**
 * Name the function at an address.
 * @param function  Where the function begins by its unwind table; 0: not known.  A symbol that has no size counts
 *                  there alone.
 * @param ret_begin  Where it begins by its symbol.
 * @return a name that lives as long as the symbols do; NULL: the file exports none, or it cannot be read.
 */
const char *native_symbols_name(struct native_symbols *s, struct hoststack_memory *m, const struct hoststack_elf *e,
				uint64_t address, uint64_t function, uint64_t *ret_begin);
void native_symbols_free(struct native_symbols *s);

#endif /* HOSTSTACK_NATIVE_SYMBOLS_H */
