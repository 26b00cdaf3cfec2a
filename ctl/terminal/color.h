/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_COLOR_H
#define CTL_TERMINAL_COLOR_H

/** @file color.h  Decides whether to colour, and knows the few styles there are. */

#include <stdbool.h>

enum color_style {
	COLOR_PLAIN,
	COLOR_HEADER,
	COLOR_GOOD,
	COLOR_WARN,
	COLOR_BAD,
	COLOR_STYLE_COUNT
};

/**
 * Decide whether to colour.
 * @param mode  "auto", "always", "never"; NULL is auto.
 * @param is_tty  Decides in mode auto, unless NO_COLOR, CLICOLOR_FORCE or TERM=dumb do.
 * @param ret_on  Whether to colour.
 * @return 0, -EINVAL (no such mode).
 */
int color_decide(const char *mode, bool is_tty, bool *ret_on);

/** The escape sequence in front of a text; "" when @p on is false or the style is plain. */
const char *color_begin(enum color_style style, bool on);
/** The escape sequence behind a text; "" when @p on is false or the style is plain. */
const char *color_end(enum color_style style, bool on);

#endif /* CTL_TERMINAL_COLOR_H */
