/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

/**
 * @file demangle.h
 * Turns C++ names into what people read.
 */

#include <stdbool.h>
#include <stddef.h>

/** Length from which on names stay as they are: the demangler's stack use grows with them. */
#define SYMBOLS_MANGLED_MAX 4096

/**
 * Write the readable form of a name; a name that is not mangled, or too long, is copied.
 *
 * A short mangled name can stand for an endless readable one: whatever does not fit is not even
 * computed, and the result then ends in "...".
 * @return true if it was demangled.
 */
bool symbols_demangle(const char *raw, char *buf, size_t size);

#endif /* SYMBOLS_DEMANGLE_H */
