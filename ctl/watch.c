/* SPDX-License-Identifier: MIT */
/*
 * The live view without terminal and agent: keys change a state, and a snapshot and a state make a
 * frame.
 */
#include "ctl/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/document/place.h"
#include "ctl/terminal/text.h"

/*
 * Rows around the table: below the head the interval, an empty row and the table's title, and the
 * keys below the table.
 */
#define ROWS_ABOVE 3
#define ROWS_BELOW 1
/* Queues run at least this many times as long as they stand still for snapshots. */
#define RUN_FACTOR 20

static const char *const sort_names[] = {
	[WATCH_SORT_FAULTS] = "faults first",
	[WATCH_SORT_WAVES] = "waves",
	[WATCH_SORT_PLACE] = "place",
};

static const char help[] = "KEY         WHAT IT DOES\n"
			   "q           quit\n"
			   "p, space    pause: no snapshots are taken\n"
			   "s           sort by faults first, waves, place\n"
			   "d           devices and queues, or waves\n"
			   "up, down    one row\n"
			   "page keys   one page\n"
			   "?           this text\n";

/* ------------------------------------------------------------------ keys --------------------- */

/* Scroll to a row, but not beyond the last page. */
static enum watch_action move_to(struct watch_state *s, size_t scroll, size_t rows, size_t window)
{
	size_t last = rows > window ? rows - window : 0;

	s->scroll = scroll < last ? scroll : last;
	return WATCH_REDRAW;
}

/* The difference, or 0 when it would be negative. */
static size_t less(size_t a, size_t b)
{
	return a > b ? a - b : 0;
}

static enum watch_action letter(struct watch_state *s, char c)
{
	switch (c) {
	case 'q':
	case 'Q':
	case '\x04': /* Ctrl-D. */
		return WATCH_QUIT;
	case 'p':
	case 'P':
	case ' ':
		s->paused = !s->paused;
		return WATCH_REDRAW;
	case 's':
	case 'S':
		s->sort = (s->sort + 1) % WATCH_SORT_COUNT;
		return WATCH_RENDER;
	case 'd':
	case 'D':
		s->devices = !s->devices;
		s->scroll = 0;
		return WATCH_RENDER;
	case '?':
	case 'h':
		s->help = !s->help;
		return WATCH_REDRAW;
	default:
		return WATCH_NOTHING;
	}
}

enum watch_action watch_key(struct watch_state *s, const char *typed, size_t size, size_t rows,
			    size_t window, size_t *ret_n)
{
	static const struct {
		const char *bytes;
		int by; /* How far: rows, or pages if the next member is set. */
		bool pages;
	} keys[] = {
		{ "\x1b[A", -1, false }, { "\x1b[B", 1, false }, { "\x1bOA", -1, false },
		{ "\x1bOB", 1, false },	 { "\x1b[5~", -1, true }, { "\x1b[6~", 1, true },
	};

	if (*typed != '\x1b') {
		*ret_n = 1;
		return letter(s, *typed);
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t n = strlen(keys[i].bytes), step = keys[i].pages ? window : 1;

		/* A beginning of a sequence may be all that has arrived. */
		if (strncmp(typed, keys[i].bytes, n < size ? n : size) != 0)
			continue;
		/* An Escape alone is such a beginning too, and waits for the next key. */
		*ret_n = n <= size ? n : 0;
		if (n > size)
			return WATCH_NOTHING;
		return move_to(s, keys[i].by < 0 ? less(s->scroll, step) : s->scroll + step, rows,
			       window);
	}
	*ret_n = 1;
	return WATCH_NOTHING;
}

uint32_t watch_interval(uint32_t asked_ms, uint64_t stopped_us)
{
	uint64_t needed_ms = stopped_us > UINT64_C(1000) * UINT32_MAX / RUN_FACTOR
				     ? UINT32_MAX
				     : (stopped_us * RUN_FACTOR + 999) / 1000;

	return needed_ms > asked_ms ? (uint32_t)needed_ms : asked_ms;
}

/* ------------------------------------------------------------------ order -------------------- */

/* A row with its key and its position, which keeps the order stable. */
struct ranked {
	const char *key;
	size_t was;
	struct group_row row;
};

static int compare_waves(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->row.group->waves != b->row.group->waves)
		return a->row.group->waves > b->row.group->waves ? -1 : 1;
	return a->was < b->was ? -1 : 1;
}

static int compare_places(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;
	int c = strcmp(a->key, b->key);

	return c ? c : a->was < b->was ? -1 : 1;
}

int watch_sort_rows(struct rpc_arena *a, struct group_rows *rows, enum watch_sort sort)
{
	struct ranked *list;

	if (sort == WATCH_SORT_FAULTS || !rows->n)
		return 0;
	list = rpc_arena_array(a, rows->n, sizeof(*list));
	if (!list)
		return rpc_arena_error(a);
	for (size_t i = 0; i < rows->n; i++) {
		list[i] = (struct ranked){ place_key(a, rows->list[i].group, true), i, rows->list[i] };
		if (!list[i].key)
			return rpc_arena_error(a);
	}
	qsort(list, rows->n, sizeof(*list), sort == WATCH_SORT_WAVES ? compare_waves : compare_places);
	for (size_t i = 0; i < rows->n; i++)
		rows->list[i] = list[i].row;
	return 0;
}

/* ------------------------------------------------------------------ frame -------------------- */

/* Append the line that says how often snapshots are taken, and why not more often. */
static void interval_line(struct out *o, const struct watch_state *s)
{
	out_str(o, s->paused ? "PAUSED  every " : "every ");
	text_duration(o, s->interval_ms);
	if (s->interval_ms > s->asked_ms) {
		out_str(o, " instead of ");
		text_duration(o, s->asked_ms);
		out_str(o, ", so that queues run 95 % of the time");
	}
}

/* Append the line of keys, and which rows are seen when not all are. */
static void keys_line(struct out *o, const struct watch_state *s, size_t scroll, size_t rows,
		      size_t window)
{
	out_fmt(o, "q quit  p %s  s sort: %s  d %s  ? %s", s->paused ? "go on" : "pause",
		sort_names[s->sort], s->devices ? "waves" : "devices", s->help ? "back" : "help");
	if (rows > window)
		out_fmt(o, "  rows %zu-%zu of %zu", scroll + 1, scroll + window, rows);
}

static size_t lines_of(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n;
}

/* The same without those that go on the line before. */
static size_t sentences_of(const char *text, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < size; i++)
		n += text[i] != ' ' && (i == 0 || text[i - 1] == '\n');
	return n;
}

/* What of the head is shown. */
struct head_view {
	size_t rows;
	bool short_lines; /* Only the beginning of each sentence. */
};

/* The table needs room as well, but no sentence of the headline may be hidden by the one before. */
static struct head_view view_head(struct screen_size size, const struct watch_head *head)
{
	const char *text = head->text.size ? head->text.data : "";
	size_t most = size.rows > 5 ? size.rows / 3 : 1, room = less(size.rows, ROWS_BELOW);
	size_t n = lines_of(text, head->text.size), facts = sentences_of(text, head->headline);

	if (n <= most || lines_of(text, head->headline) <= most)
		return (struct head_view){ n < most ? n : most, false };
	n = sentences_of(text, head->text.size);
	most = facts > most ? facts : most;
	most = most < room ? most : room ? room : 1;
	return (struct head_view){ n < most ? n : most, true };
}

size_t watch_window(struct screen_size size, const struct watch_head *head)
{
	return less(size.rows, view_head(size, head).rows + ROWS_ABOVE + ROWS_BELOW);
}

size_t watch_rows(const char *table, size_t size)
{
	return less(lines_of(table, size), 1);
}

/* Take the next line of a text; at the end of the text, an empty one. */
static void next_line(const char **at, const char *end, const char **ret, size_t *ret_size)
{
	const char *stop = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;

	if (!stop)
		stop = end;
	*ret = *at;
	*ret_size = (size_t)(stop - *at);
	*at = stop < end ? stop + 1 : end;
}

/* The rows written so far; what would be below the terminal's last row is dropped. */
struct canvas {
	struct out *o;
	struct screen_size size;
	unsigned row;
};

static void put(struct canvas *c, const char *text, size_t size)
{
	if (c->row < c->size.rows)
		screen_row(c->o, ++c->row, c->size.cols, text, size);
}

static void put_out(struct canvas *c, const struct out *o)
{
	put(c, o->size ? o->data : "", o->size);
}

static void put_head(struct canvas *c, const struct watch_head *head)
{
	const char *text = head->text.size ? head->text.data : "", *end = text + head->text.size, *line;
	const struct head_view view = view_head(c->size, head);
	size_t n;

	for (size_t left = view.rows; left && text < end;) {
		next_line(&text, end, &line, &n);
		if (view.short_lines && n && *line == ' ')
			continue;
		put(c, line, n);
		left--;
	}
}

/* Append the title, and the rows from scroll on; the window is filled with empty rows. */
static void put_table(struct canvas *c, const char *text, size_t size, size_t scroll)
{
	const char *end = text + size, *line;
	size_t n;

	next_line(&text, end, &line, &n);
	put(c, line, n);
	while (scroll--)
		next_line(&text, end, &line, &n);
	while (c->row < c->size.rows - ROWS_BELOW) {
		next_line(&text, end, &line, &n);
		put(c, line, n);
	}
}

void watch_frame(struct out *o, struct screen_size size, const struct watch_state *s,
		 const struct watch_head *head, const struct out *table)
{
	struct canvas c = { .o = o, .size = size };
	const char *text = s->help ? help : table->size ? table->data : "";
	size_t text_size = s->help ? strlen(help) : table->size;
	size_t rows = watch_rows(text, text_size), window = watch_window(size, head);
	size_t scroll = s->help ? 0 : s->scroll;
	auto_out struct out line = { 0 }, keys = { 0 };

	/* The table may have become shorter since the user scrolled. */
	if (scroll > less(rows, window))
		scroll = less(rows, window);
	interval_line(&line, s);
	keys_line(&keys, s, scroll, rows, window);
	screen_begin(o);
	put_head(&c, head);
	if (window) {
		put_out(&c, &line);
		put(&c, "", 0);
		put_table(&c, text, text_size, scroll);
	}
	while (c.row + ROWS_BELOW < size.rows)
		put(&c, "", 0);
	put_out(&c, &keys);
}
