/* SPDX-License-Identifier: MIT */
#ifndef CTL_MCP_PAGE_H
#define CTL_MCP_PAGE_H

/**
 * @file page.h
 * Text for an assistant: free of what hides or reorders letters, and in pieces of a bounded size.  Pure functions.
 */

#include <stddef.h>

struct out;

/** Bytes of the longest line; the rest of a longer one is left out, and counted. */
#define PAGE_LINE_MAX 2000

/**
 * Append a text without what a terminal obeys, what reorders letters (U+202A to U+202E, U+2066 to U+2069 and the
 * marks), and what nobody sees (zero-width letters, tags); each becomes '?'.  Line breaks and tabs stay.
 */
void page_clean(struct out *o, const char *text, size_t size);
/**
 * Append JSON in which the same characters are \uXXXX: it says the same, and hides nothing from who reads the text.
 * @param text  JSON without a mistake, in which they stand only in strings.
 */
void page_json(struct out *o, const char *text, size_t size);
/**
 * Where the piece that begins at @p offset ends: behind the last line that fits, or within a line that does not.
 * @param max  At least 4.
 * @return at most @p size, and more than @p offset unless that is the end.
 */
size_t page_end(const char *text, size_t size, size_t offset, size_t max);

#endif /* CTL_MCP_PAGE_H */
