/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_SCREEN_H
#define CTL_TERMINAL_SCREEN_H

/**
 * @file screen.h
 * Takes the whole terminal for one program, and gives it back.
 *
 * Only cursor addressing and erasing of ECMA-48 are used, and the alternate screen, which a
 * terminal without one ignores.  There is one terminal, so that the state is global; one thread may
 * use it.
 */

#include <stdbool.h>
#include <stddef.h>

struct out;

struct screen_size {
	unsigned rows, cols; /**< At least 1. */
};

/** Whether standard input and output are a terminal that understands cursor addressing. */
bool screen_is_possible(void);
/**
 * Take the terminal: keys arrive at once and unseen, and the alternate screen is on.  It is called
 * again after something else may have changed the terminal; screen_close() restores what the first
 * call found.
 * @return 0, -errno.
 */
int screen_open(void);
/** Give the terminal back; nothing happens when it is not open.  Async-signal-safe. */
void screen_close(void);
/** The size of the terminal; 24 by 80 where the terminal does not tell. */
struct screen_size screen_get_size(void);

/** Append what begins a frame: the cursor goes to the first row. */
void screen_begin(struct out *o);
/**
 * Append one row, cut to @p cols columns; the rest of the row is erased.
 * @param row   Counted from 1.
 * @param text  No line break; the only escape sequences in it are those of ctl/terminal/color.h.
 */
void screen_row(struct out *o, unsigned row, unsigned cols, const char *text, size_t size);

#endif /* CTL_TERMINAL_SCREEN_H */
