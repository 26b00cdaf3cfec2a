/* SPDX-License-Identifier: MIT */
/* Colours by the conventions of other programs, and the sequences of ECMA-48 for the styles. */
#include "ctl/terminal/color.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const char *const sequences[COLOR_STYLE_COUNT] = {
	[COLOR_PLAIN] = "",        [COLOR_HEADER] = "\x1b[1m", [COLOR_GOOD] = "\x1b[32m",
	[COLOR_WARN] = "\x1b[33m", [COLOR_BAD] = "\x1b[31m",
};

/*
 * NO_COLOR counts with any value that is not empty (no-color.org), CLICOLOR_FORCE with anything but
 * 0 (bixense.com/clicolors).  NO_COLOR is the stronger one.
 */
static bool decide_auto(bool is_tty)
{
	const char *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");

	if (!str_is_empty(getenv("NO_COLOR")))
		return false;
	if (!str_is_empty(force) && strcmp(force, "0"))
		return true;
	return is_tty && (!term || strcmp(term, "dumb"));
}

int color_decide(const char *mode, bool is_tty, bool *ret_on)
{
	if (!mode || !strcmp(mode, "auto"))
		*ret_on = decide_auto(is_tty);
	else if (!strcmp(mode, "always"))
		*ret_on = true;
	else if (!strcmp(mode, "never"))
		*ret_on = false;
	else
		return -EINVAL;
	return 0;
}

const char *color_begin(enum color_style style, bool on)
{
	return on ? sequences[style] : "";
}

const char *color_end(enum color_style style, bool on)
{
	return on && style != COLOR_PLAIN ? "\x1b[0m" : "";
}
