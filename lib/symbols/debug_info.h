/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_DEBUG_INFO_H
#define SYMBOLS_DEBUG_INFO_H

/**
 * @file debug_info.h
 * Finds source positions, inline chains and the DIEs behind them in DWARF sections.  Internal, and
 * for lib/values.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

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
/** As symbols_image_source(). */
int debug_info_source(struct debug_info *d, uint64_t address, const char *file, const char **ret, size_t *ret_size);

/** As symbols_image_parameters(), of the function that is around the address. */
int debug_info_parameters(struct debug_info *d, uint64_t address,
			  int (*visit)(void *arg, const struct symbols_parameter *p), void *arg);

/** A function, an inlined function or a block around an address. */
struct debug_scope {
	uint64_t low, high; /**< The piece of its code that has the address. */
	Dwarf_Off die;
	int tag; /**< DW_TAG_subprogram, DW_TAG_inlined_subroutine, DW_TAG_lexical_block. */
};
/**
 * Find the scopes around an address, outermost first: a function, then what lies in it.
 * @return how many there are, at most @p max; 0 also when a limit was hit.
 */
size_t debug_info_scopes(struct debug_info *d, uint64_t address, struct debug_scope *ret,
			 size_t max);
/**
 * Find the first instruction behind the prologue of a function.
 * @return its address; @p low when the lines do not tell.
 */
uint64_t debug_info_body(struct debug_info *d, uint64_t low, uint64_t high);

/**
 * Open the DIE of a compile unit.
 * @param at  0 for the first one of the image, then 1...
 * @return false when there are no more.
 */
bool debug_info_unit(struct debug_info *d, size_t at, Dwarf_Die *ret);
/** Open a DIE.  @return false when there is none at the offset. */
bool debug_info_die(struct debug_info *d, Dwarf_Off offset, Dwarf_Die *ret);
/** May attributes of a DIE be asked for?  In a hostile file it, or its abstract instances, may have very many. */
bool debug_info_is_small(Dwarf_Die *die);
/** Is the file a cubin? */
bool debug_info_is_cuda(const struct debug_info *d);
/** Read a DIE's string, its own or that of its abstract instance.  NULL: none, or it has no end. */
const char *debug_info_string(struct debug_info *d, Dwarf_Die *die, unsigned attribute);
/**
 * Find the content of a section, expanded.
 * @param kind  What follows ".debug_" in its name.
 * @return NULL when there is none.
 */
const uint8_t *debug_info_section(struct debug_info *d, const char *kind, size_t *ret_size);

/** A walk over the children of a DIE, in the order of the file, so that it always ends. */
struct debug_children {
	struct debug_info *d;
	Dwarf_Off at, end;
	size_t depth;
	uint32_t steps; /**< So many DIEs may still be looked at. */
};
/** Begin; @p steps bounds the DIEs that are passed, those of grandchildren included. */
void debug_children_init(struct debug_children *c, struct debug_info *d, Dwarf_Die *parent,
			 uint32_t steps);
/** @return false at the end, at a broken DIE, and (c->steps is 0) at the bound. */
bool debug_children_next(struct debug_children *c, Dwarf_Die *ret);

#endif /* SYMBOLS_DEBUG_INFO_H */
