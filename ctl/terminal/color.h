/* SPDX-License-Identifier: MIT */
#ifndef CTL_TERMINAL_COLOR_H
#define CTL_TERMINAL_COLOR_H

/** @file color.h  When to colour, and the few styles there are. */

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
 * @param mode  "auto", "always", "never"; NULL is auto.
 * @param is_tty  What auto goes by after NO_COLOR, CLICOLOR_FORCE and TERM=dumb were asked.
 * @param ret_on  Whether to colour.
 * @return 0, -EINVAL (no such mode).
 */
int color_decide(const char *mode, bool is_tty, bool *ret_on);

/** Escape sequences around a text of that style; "" when @p on is false or the style is plain. */
const char *color_begin(enum color_style style, bool on);
const char *color_end(enum color_style style, bool on);

#endif /* CTL_TERMINAL_COLOR_H */
