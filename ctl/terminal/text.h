/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_TEXT_H
#define CTL_TERMINAL_TEXT_H

/** @file text.h  Text for people: safe printing of strangers' names, sizes, hex dumps. */

#include <stddef.h>
#include <stdint.h>

struct out;

/**
 * Append a name that a target process chose.  Control characters, invalid UTF-8 and characters
 * that reorder text become visible escapes, so that nothing can steer the terminal.
 */
void text_escape(struct out *o, const char *s, size_t size);
/** Columns that escaped text takes on a terminal (one per code point). */
size_t text_columns(const char *s, size_t size);

/** `512`, `64 KiB`, `1.5 GiB`: at most one decimal, exact sizes stay exact. */
void text_size(struct out *o, uint64_t bytes);

/** `350 ms`, `2.0 s`. */
void text_duration(struct out *o, uint64_t ms);

/** Address, sixteen bytes, their ASCII view; one line per 16-byte row, as `hexdump -C` lays it. */
void text_hexdump(struct out *o, uint64_t address, const uint8_t *data, size_t size);

#endif /* CTL_TERMINAL_TEXT_H */
