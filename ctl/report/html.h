/* SPDX-License-Identifier: MIT */
#ifndef CTL_REPORT_HTML_H
#define CTL_REPORT_HTML_H

/**
 * @file html.h
 * Elements of a page.  Strangers' texts become harmless twice: characters that steer or reorder text
 * become visible escapes, as on a terminal, and those that HTML gives a meaning become references.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

/** Bytes of a text that a cell shows at first; more can be opened. */
#define HTML_CELL_MAX 160
/** Bytes of a text that can be opened: the document has all of a longer one. */
#define HTML_LONG_MAX 4096

/** Append a text of a stranger; NULL is nothing. */
void html_text(struct out *o, const char *s);
/** The same with at most @p max bytes and an ellipsis behind them. */
void html_cut(struct out *o, const char *s, size_t max);
/** The same, where an element of its own may stand: a long text is cut, and up to HTML_LONG_MAX can be opened. */
void html_long(struct out *o, const char *s);
/**
 * Append JSON as the content of a script element that is no script: the same document for every reader of
 * JSON, but without `<`, `>`, `&` and characters that reorder text.
 */
void html_data(struct out *o, const char *json, size_t size);

/** Begin a section with a heading.  @param id  A name for links, unique in the page. */
void html_section(struct out *o, const char *id, const char *heading);
/** End it. */
void html_section_end(struct out *o);

/** A column of a table. */
struct html_column {
	const char *title; /**< NULL: the column is left out. */
	bool number;	   /**< Its cells stand at the right. */
};
/** Begin a table, in a box that scrolls where the page is narrow.  @param caption  What it is, unique in the page. */
void html_table(struct out *o, const char *caption, const struct html_column *columns, size_t n);
void html_table_end(struct out *o);
/** Append a cell with a text of a stranger; NULL leaves it empty. */
void html_cell(struct out *o, const char *s);
/** The same in a class of the style. */
void html_cell_class(struct out *o, const char *class_name, const char *s);
/** Append a cell with a number. */
void html_cell_u64(struct out *o, uint64_t v);
/** The same, empty where there is none. */
void html_cell_u64_if(struct out *o, bool has, uint64_t v);
/** Append a bar in a cell: how much of a whole. */
void html_cell_share(struct out *o, uint64_t part, uint64_t whole);

/** The style of all pages: style.c. */
extern const char html_style[];

#endif /* CTL_REPORT_HTML_H */
