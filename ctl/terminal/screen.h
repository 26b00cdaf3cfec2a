/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_SCREEN_H
#define CTL_TERMINAL_SCREEN_H

/**
 * @file screen.h
 * The whole terminal for one program, and the way back.
 *
 * Only cursor addressing and erasing of ECMA-48 are used, and the alternate screen, which a terminal
 * without one ignores.  There is one terminal: state is global, one thread.
 */

#include <stdbool.h>
#include <stddef.h>

struct out;

struct screen_size {
	unsigned rows, cols; /**< At least 1. */
};

/** Standard input and output are a terminal that understands cursor addressing. */
bool screen_is_possible(void);
/**
 * Keys arrive at once and unseen; the alternate screen is on.  Again after something else may have
 * changed the terminal: what is restored later stays what the first call found.
 * @return 0, -errno.
 */
int screen_open(void);
/** Give everything back; nothing happens when it is not open.  Async-signal-safe. */
void screen_close(void);
/** 24 by 80 where the terminal does not tell. */
struct screen_size screen_get_size(void);

/** Start a frame. */
void screen_begin(struct out *o);
/**
 * One row, cut to @p cols columns; the rest of the row is erased.
 * @param text  No line break; the only escape sequences in it are those of ctl/terminal/color.h.
 */
void screen_row(struct out *o, unsigned row, unsigned cols, const char *text, size_t size);

#endif /* CTL_TERMINAL_SCREEN_H */
