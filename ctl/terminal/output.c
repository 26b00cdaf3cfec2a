/* SPDX-License-Identifier: MIT */
/*
 * Data is collected in memory.  A file is written under a temporary name beside its own and renamed
 * at the end, so that its reader never sees a part of it.
 */
#include "ctl/terminal/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "ctl/terminal/pager.h"
#include "ctl/terminal/screen.h"
#include "protocol/rpc_format.h"

/* Bytes of text from which on output_flush() writes to the temporary file. */
#define SPILL_SIZE ((size_t)1 << 20)

void output_init(struct output *o)
{
	*o = (struct output){ .fd = -1, .pager = true, .legend = true };
	out_init(&o->text, 0);
}

/* Close the file; one that has not got its name yet is removed. */
static void close_file(struct output *o)
{
	if (o->path && o->fd >= 0)
		close(o->fd);
	o->fd = -1;
	if (o->temp[0])
		unlink(o->temp);
	o->temp[0] = '\0';
}

void output_deinit(struct output *o)
{
	close_file(o);
	out_deinit(&o->text);
}

void output_drop(struct output *o)
{
	out_reset(&o->text);
	close_file(o);
}

int output_set_json(struct output *o, const char *mode)
{
	if (!strcmp(mode, "pretty"))
		o->json = OUTPUT_JSON_PRETTY;
	else if (!strcmp(mode, "short"))
		o->json = OUTPUT_JSON_SHORT;
	else if (!strcmp(mode, "off"))
		o->json = OUTPUT_JSON_OFF;
	else if (!mode[0])
		o->json =
			isatty(STDOUT_FILENO) && !o->path ? OUTPUT_JSON_PRETTY : OUTPUT_JSON_SHORT;
	else
		return -EINVAL;
	return 0;
}

/* Whether the locale's characters are more than ASCII, by the variables that setlocale() reads. */
static bool is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (!str_is_empty(value))
			return strcasestr(value, "UTF-8") || strcasestr(value, "UTF8");
	}
	return false;
}

void output_set_width(struct output *o)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width = 0;

	o->ascii = !is_utf8();
	if (!str_is_empty(columns) && str_to_u64(columns, 1, UINT_MAX, &width) == 0 && !o->path)
		o->width = (unsigned)width;
	else
		o->width = !o->path && isatty(STDOUT_FILENO) ? screen_get_size().cols : 0;
}

int output_json(struct output *o, const char *text, size_t size)
{
	/* In a stream each document is one line. */
	bool pretty = o->json == OUTPUT_JSON_PRETTY && !o->stream;
	int r = rpc_format(&o->text, text, size, pretty ? RPC_FORMAT_PRETTY : RPC_FORMAT_SHORT);

	out_char(&o->text, '\n');
	return r < 0 ? r : out_error(&o->text);
}

void output_begin_stream(struct output *o)
{
	o->stream = true;
	o->pager = false;
}

/*
 * Find the name behind symbolic links: the file is replaced, and not the link.  A file that does
 * not exist yet keeps the name that was given.
 */
static int resolve(struct output *o)
{
	if (realpath(o->path, o->final))
		return 0;
	if (errno != ENOENT)
		return -errno;
	if (strlen(o->path) >= sizeof(o->final))
		return -ENAMETOOLONG;
	strcpy(o->final, o->path);
	return 0;
}

/*
 * Whether the file is written in place.  Devices and pipes cannot be replaced by a rename, and a
 * stream is to be followed while it grows.  A link that is left leads to nothing with a name:
 * /dev/stdout does when that file was removed.
 */
static bool writes_in_place(const struct output *o)
{
	struct stat st;

	return o->stream || (lstat(o->final, &st) == 0 && !S_ISREG(st.st_mode));
}

static int open_temp(struct output *o)
{
	mode_t mask;

	if ((size_t)snprintf(o->temp, sizeof(o->temp), "%s.XXXXXX", o->final) >= sizeof(o->temp)) {
		o->temp[0] = '\0';
		return -ENAMETOOLONG;
	}
	o->fd = mkostemp(o->temp, O_CLOEXEC);
	if (o->fd < 0) {
		o->temp[0] = '\0';
		return -errno;
	}
	/*
	 * mkostemp() makes a file for its owner alone; it gets the mode that open() would give it.
	 * The mask can only be read by setting it.
	 */
	mask = umask(0);
	umask(mask);
	return fchmod(o->fd, 0666 & ~mask) < 0 ? -errno : 0;
}

static int open_file(struct output *o)
{
	int r;

	if (o->fd >= 0)
		return 0;
	if (!o->path) {
		o->fd = STDOUT_FILENO;
		return 0;
	}
	r = resolve(o);
	if (r < 0)
		return r;
	if (!writes_in_place(o))
		return open_temp(o);
	o->fd = open(o->final, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	return o->fd < 0 ? -errno : 0;
}

/* Write what was collected, and open the file first if that was not done. */
static int deliver(struct output *o)
{
	int r = out_error(&o->text);

	if (r == 0)
		r = open_file(o);
	if (r == 0 && o->text.size) {
		o->delivered = true;
		r = fd_write_all(o->fd, o->text.data, o->text.size);
	}
	out_reset(&o->text);
	return r;
}

int output_flush(struct output *o)
{
	if (o->stream || (o->path && o->text.size >= SPILL_SIZE))
		return deliver(o);
	return 0;
}

/* Whether to start a pager: only when the text does not fit the window of a terminal. */
static bool wants_pager(const struct output *o)
{
	struct winsize ws;
	size_t lines = 0;

	if (!o->pager || o->path || !isatty(STDOUT_FILENO) || o->text.error)
		return false;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 || !ws.ws_row)
		return false;
	for (size_t i = 0; i < o->text.size; i++)
		lines += o->text.data[i] == '\n';
	return lines >= ws.ws_row;
}

int output_finish(struct output *o)
{
	int r;

	/* A pager that could not be started leaves the text to standard output. */
	if (wants_pager(o) && pager_show(o->text.data, o->text.size) == 0) {
		o->delivered = true;
		out_reset(&o->text);
		return 0;
	}
	r = deliver(o);
	if (r < 0 || !o->path)
		return r;
	/* Some file systems tell only here that there was no room. */
	r = close(o->fd) < 0 ? -errno : 0;
	o->fd = -1;
	if (r < 0 || !o->temp[0])
		return r;
	if (rename(o->temp, o->final) < 0)
		return -errno;
	o->temp[0] = '\0';
	return 0;
}
