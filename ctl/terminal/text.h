/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_TEXT_H
#define CTL_TERMINAL_TEXT_H

/** @file text.h  Writes text for people: strangers' names made safe, sizes, times, hex dumps. */

#include <stddef.h>
#include <stdint.h>

struct out;

/**
 * Append a name that a target process chose.  Control characters, invalid UTF-8 and characters
 * that reorder text become visible escapes, so that nothing can steer the terminal.
 */
void text_escape(struct out *o, const char *s, size_t size);
/** Append text of ours, then a name as text_escape() does, then text of ours. */
void text_put(struct out *o, const char *before, const char *name, const char *behind);
/** How many columns escaped text takes on a terminal, at one per code point. */
size_t text_columns(const char *s, size_t size);

/**
 * Append a sentence as one line, or as several ones of at most so many columns that are broken at
 * blanks; a longer word stays whole.
 * @param width   0: one line.
 * @param indent  Blanks in front of the second line and those after it.
 */
void text_wrap(struct out *o, const char *s, size_t size, size_t width, size_t indent);

/** Append a size: `512`, `64 KiB`, `1.5 GiB`, rounded down to at most one decimal. */
void text_size(struct out *o, uint64_t bytes);

/** Append a time: `350 ms`, `2.0 s`. */
void text_duration(struct out *o, uint64_t ms);

/** Append lines as `hexdump -C` has them: address, sixteen bytes, and the bytes as ASCII. */
void text_hexdump(struct out *o, uint64_t address, const uint8_t *data, size_t size);

#endif /* CTL_TERMINAL_TEXT_H */
