/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_DEBUG_INFO_H
#define SYMBOLS_DEBUG_INFO_H

/**
 * @file debug_info.h
 * Finds source positions and inline chains in DWARF sections.  Internal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/code_elf.h"
#include "symbols/image.h"

/** The debug information of one image, with what was found in it so far. */
struct debug_info;

/** Is there debug information that may be opened? */
bool debug_info_is_present(const struct elf_view *v);

/**
 * Open the debug information of an image.
 * @param v      A file whose sections are sane (code_elf_sections_are_sane()).
 * @param bytes  The bytes that @p v looks at; they must outlive the object.  When the code of a
 *               cubin has addresses and its debug information has not, it gets them here.
 * @param ret    Release with debug_info_destroy().
 * @return 0, -EBADMSG (broken), -EFBIG (a limit), -ENOMEM.
 */
int debug_info_create(const struct elf_view *v, uint8_t *bytes, struct debug_info **ret);
/**
 * Release debug information.  NULL is allowed, as for debug_info_bytes() and debug_info_state().
 */
void debug_info_destroy(struct debug_info *d);
/** @return roughly the memory that the object takes now, in bytes. */
size_t debug_info_bytes(const struct debug_info *d);
/**
 * Tell whether anything was left out.
 * @return 0, -EFBIG (a limit was hit: something was left out).
 */
int debug_info_state(const struct debug_info *d);
/** Are lines known of code between the two addresses? */
bool debug_info_has_lines(struct debug_info *d, uint64_t low, uint64_t high);

/** Add frames, innermost first; none when nothing is known about the address. */
void debug_info_locate(struct debug_info *d, uint64_t address, struct symbols_location *l);

/** As symbols_image_parameters(), of the function that is around the address. */
int debug_info_parameters(struct debug_info *d, uint64_t address,
			  int (*visit)(void *arg, const struct symbols_parameter *p), void *arg);

#endif /* SYMBOLS_DEBUG_INFO_H */
