/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_DEBUG_SYMBOLS_H
#define HOSTSTACK_NATIVE_DEBUG_SYMBOLS_H

/** @file debug_symbols.h  Symbols of a separate debug file, which has also those of functions that are not exported. */

#include "hoststack/elf.h"

/**
 * Find the symbols of a file.
 * @param m	    Bytes of the file by their position.
 * @param build_id  That it must have, hexadecimal.
 * @param ret	    For native_symbols_name(), in the file's own addresses.
 * @return 0; -ENOENT (it is of another build, or has none); -ENOMEM; what hoststack_read() returns.
 */
int native_debug_symbols_open(struct hoststack_memory *m, const char *build_id, struct hoststack_elf *ret);

#endif /* HOSTSTACK_NATIVE_DEBUG_SYMBOLS_H */
