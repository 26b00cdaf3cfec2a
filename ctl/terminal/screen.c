/* SPDX-License-Identifier: MIT */
/* The terminal as a page: raw keys, the alternate screen, rows that are addressed one by one. */
#include "ctl/terminal/screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"

/* Most rows or columns that are drawn; a terminal that claims more is broken. */
#define SIZE_MAX_CELLS 1000u

/*
 * Private modes of xterm that every terminal of today knows: 1049 is the alternate screen, 25 the
 * visible cursor.
 */
static const char enter[] = "\x1b[?1049h\x1b[?25l\x1b[2J";
static const char leave[] = "\x1b[0m\x1b[?25h\x1b[?1049l";

/* How the terminal was before screen_open(); a signal handler reads it through screen_close(). */
static struct termios before;
static volatile bool is_open;

bool screen_is_possible(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && !str_is_empty(term) &&
	       strcmp(term, "dumb") != 0;
}

int screen_open(void)
{
	struct termios raw;

	if (!is_open && tcgetattr(STDIN_FILENO, &before) < 0)
		return -errno;
	raw = before;
	/* ISIG stays set, so that Ctrl-C and Ctrl-Z are signals still. */
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* It is set first: a signal between these calls must undo the half that was done. */
	is_open = true;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) < 0)
		return -errno;
	return fd_write_all(STDOUT_FILENO, enter, sizeof(enter) - 1);
}

void screen_close(void)
{
	int saved = errno;

	if (is_open) {
		is_open = false;
		/* A terminal that is gone has nothing to restore. */
		if (fd_write_all(STDOUT_FILENO, leave, sizeof(leave) - 1) == 0)
			tcsetattr(STDIN_FILENO, TCSANOW, &before);
	}
	errno = saved;
}

static unsigned bounded(unsigned n, unsigned fallback)
{
	if (!n)
		return fallback;
	return n < SIZE_MAX_CELLS ? n : SIZE_MAX_CELLS;
}

struct screen_size screen_get_size(void)
{
	struct winsize ws = { 0 };

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0)
		ws = (struct winsize){ 0 };
	return (struct screen_size){ bounded(ws.ws_row, 24), bounded(ws.ws_col, 80) };
}

void screen_begin(struct out *o)
{
	out_str(o, "\x1b[H");
}

/* The length of the control sequence at @p s; 0 if there is none. */
static size_t sequence_length(const char *s, size_t size)
{
	size_t n = 2;

	if (size < 2 || s[0] != '\x1b' || s[1] != '[')
		return 0;
	while (n < size && (s[n] < '@' || s[n] > '~'))
		n++;
	return n < size ? n + 1 : size;
}

/* The length of a character; a byte that is no UTF-8 counts as one. */
static size_t character_length(const char *s, size_t size)
{
	size_t n = str_utf8_length(s, size);

	return n ? n : 1;
}

void screen_row(struct out *o, unsigned row, unsigned cols, const char *text, size_t size)
{
	unsigned column = 0;
	bool styled = false;

	out_fmt(o, "\x1b[%u;1H", row);
	for (size_t i = 0, n; i < size; i += n) {
		n = sequence_length(text + i, size - i);
		/*
		 * Sequences take no column, and are kept also behind the last column: they may end
		 * a colour.
		 */
		if (n) {
			styled = true;
		} else {
			if (column == cols)
				break;
			n = character_length(text + i, size - i);
			column++;
		}
		out_bytes(o, text + i, n);
	}
	if (styled)
		out_str(o, "\x1b[0m");
	/*
	 * Behind the last column the cursor may still stand on the last character, which this would
	 * erase.
	 */
	if (column < cols)
		out_str(o, "\x1b[K");
}
