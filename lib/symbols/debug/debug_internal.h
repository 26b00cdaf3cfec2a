/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_DEBUG_INTERNAL_H
#define SYMBOLS_DEBUG_INTERNAL_H

/**
 * @file debug_internal.h
 * What the files of debug_info.h share.  Each loop over the bytes of the image is charged by
 * debug_spend() between debug_enter() and debug_leave(), or ends by a bound of its own.
 */

#include <dwarf.h>
#include <libelf.h>

#include "symbols/debug/budget.h"
#include "symbols/debug_info.h"
#include "symbols/debug/pieces.h"

#define DEPTH_MAX 256
/*
 * Rows of all line programs that are read.  One byte of a program makes a row at most, for which libdw 0.188 needs
 * 130 bytes in between.
 */
#define LINE_ROWS_MAX ((size_t)4 << 20)

struct line_table;

/** A piece of code that a compile unit covers, or one of its functions. */
struct debug_span {
	struct piece piece;
	size_t unit;
};

/** Spans of all units. */
struct debug_span_list {
	struct debug_span *items;
	size_t n, capacity;
	size_t n_sorted; /**< So many can be searched by pieces_around(). */
};

/** A piece of code that a function, an inlined function, or a block covers. */
struct debug_area {
	struct piece piece;
	Dwarf_Off die, parent; /**< The entry itself, and the enclosing scope or 0. */
	int tag;
};

/** A compile unit. */
struct debug_unit {
	Dwarf_Off die, end;
	bool tried_scopes, tried_lines, has_lines;
	bool is_cut; /**< There was no time for all of its scopes. */
	struct debug_area *scopes;
	size_t n_scopes, capacity;
};

struct debug_info {
	Elf *elf;
	Dwarf *dw;
	bool is_cuda;
	/** All line tables of a cubin, most of which have no compile unit. */
	struct line_table *tables;
	bool tried_tables;
	const uint8_t *info; /**< Content of .debug_info, expanded; libdw points into it. */
	size_t info_size;
	const uint8_t *lines; /**< Content of .debug_line, expanded; NULL: it has none, and libdw is not asked. */
	size_t lines_size;
	bool lines_cut; /**< A line program was too large to be read. */
	struct debug_unit *units;
	size_t n_units, unit_capacity;
	struct debug_span_list spans;	  /**< Pieces of code as the units tell them. */
	struct debug_span_list functions; /**< Functions of the first n_searched units. */
	size_t n_searched;
	size_t n_scopes, n_rows; /**< Counts for all units together. */
	struct budget budget;
	bool was_spent; /**< For a question there was too little. */
	bool gave_up;	/**< Not all units were searched. */
};

/** Charge one step.  @return false when nothing more may be read for this question. */
static inline bool debug_spend(struct debug_info *d)
{
	return budget_spend(&d->budget);
}
/** Begin a question. */
void debug_enter(struct debug_info *d);
/** End a question. */
void debug_leave(struct debug_info *d);

/** A walk over the address ranges that a DIE covers. */
struct debug_ranges {
	Dwarf_Die *die;
	ptrdiff_t at;
	Dwarf_Addr base, low, high;
};
/** @return false at the end. */
bool debug_next_range(struct debug_info *d, struct debug_ranges *w);
/** Add a span, unless there are too many.  @return 0, -ENOMEM. */
int debug_add_span(struct debug_span_list *l, struct debug_span s);
/** Make a list ready for pieces_around(). */
void debug_sort_spans(struct debug_span_list *l);
/** Read the line tables of a cubin, once.  @return 0, an error of line_table_create(). */
int debug_open_tables(struct debug_info *d);

/** Read the scopes of a unit, once. */
void debug_read_scopes(struct debug_info *d, struct debug_unit *u);
/** Find the unit that says it covers the address; NULL. */
struct debug_unit *debug_find_unit(struct debug_info *d, uint64_t address);
/**
 * Find the scopes around the address, outermost first; the function is chain[0].
 * @param chain  Room for DEPTH_MAX.
 */
size_t debug_find_chain(const struct debug_unit *u, uint64_t address, const struct debug_area **chain);
/**
 * Find the unit with the tightest function around the address.  When a linker keeps one of several
 * equal functions, all their units claim it, and only one of them has its lines.
 */
struct debug_unit *debug_search(struct debug_info *d, uint64_t address, bool *ret_has_line);
/** May another unit be searched for its functions? */
bool debug_may_search(struct debug_info *d);
/** Add the functions of the next unit. */
void debug_search_unit(struct debug_info *d);
/** Find the unit of an address by one way or the other; NULL. */
struct debug_unit *debug_unit_of(struct debug_info *d, uint64_t address);

/** Has an address a line, as its unit tells? */
bool debug_has_line(struct debug_info *d, struct debug_unit *u, uint64_t address);

#endif /* SYMBOLS_DEBUG_INTERNAL_H */
