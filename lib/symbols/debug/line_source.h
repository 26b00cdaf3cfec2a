/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_LINE_SOURCE_H
#define SYMBOLS_LINE_SOURCE_H

/**
 * @file line_source.h
 * Finds the text of a source in a line table of DWARF 5.  Internal.
 *
 * clang -gembed-source puts it there, as DW_LNCT_LLVM_source (0x2001; LLVM's
 * BinaryFormat/Dwarf.def).  libdw 0.188 passes it over, and does not tell where it was.
 */

#include <stddef.h>
#include <stdint.h>

/** The content of a section; NULL and 0 where there is none. */
struct line_section {
	const uint8_t *data;
	size_t size;
};

/** What a line table consists of. */
struct line_sections {
	struct line_section line, line_str, str;
};

/**
 * Find the text of a source.
 * @param at        Where the table begins in .debug_line.
 * @param file      Its path as libdw tells it: with the directory, unless the name is absolute.
 * @param ret       Borrowed from the sections; it ends with a NUL.
 * @param ret_size  Its bytes without that.
 * @return 0, -ENOENT (the table has no such file, or not its text), -EBADMSG (it is broken), -ENOMEM.
 */
int line_source_find(const struct line_sections *s, uint64_t at, const char *file, const char **ret,
		     size_t *ret_size);

#endif /* SYMBOLS_LINE_SOURCE_H */
