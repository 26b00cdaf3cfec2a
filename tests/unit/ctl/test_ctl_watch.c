/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "ctl/watch.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

static const char table[] = "GPU  PC\n"
			    "  7  0x1\n"
			    "  7  0x2\n"
			    "  7  0x3\n"
			    "  7  0x4\n";

/* A frame with control sequences made readable: row changes as "|", erasing as "~". */
static char *frame(struct screen_size size, const struct watch_state *s, const char *head_text,
		   const char *table_text)
{
	static char text[8192];
	struct watch_head head = { 0 };
	struct out o, rows;
	char *to = text;

	out_init(&o, 0);
	out_init(&head.text, 0);
	out_init(&rows, 0);
	out_str(&head.text, head_text);
	out_str(&head.text, head_text[0] ? "\n" : "");
	/* The test's way to say where the headline ends. */
	head.headline = strcspn(head_text, "|");
	if (head_text[head.headline])
		head.text.data[head.headline] = '\n';
	out_str(&rows, table_text);
	watch_frame(&o, size, s, &head, &rows);
	CU_ASSERT_FATAL(out_error(&o) == 0 && o.size < sizeof(text));
	for (size_t i = 0; i < o.size; i++) {
		if (o.data[i] != '\x1b') {
			*to++ = o.data[i];
			continue;
		}
		while (i < o.size && (o.data[i] < 'A' || o.data[i] > 'z' || o.data[i] == '['))
			i++;
		if (o.data[i] == 'H' || o.data[i] == 'K')
			*to++ = o.data[i] == 'H' ? '|' : '~';
	}
	*to = '\0';
	out_deinit(&o);
	out_deinit(&head.text);
	out_deinit(&rows);
	return text;
}

static void draws_frames(void)
{
	static const struct {
		struct screen_size size;
		struct watch_state state;
		const char *want;
	} rows[] = {
		{ { 10, 60 },
		  { .asked_ms = 2000, .interval_ms = 2000 },
		  "||head~|every 2.0 s~|~|GPU  PC~|  7  0x1~|  7  0x2~|  7  0x3~|  7  0x4~|~|"
		  "q quit  p pause  s sort: faults first  d devices  ? help~" },
		/* Two rows fit; the last two are wanted. */
		{ { 7, 74 },
		  { .asked_ms = 500, .interval_ms = 700, .scroll = 99, .paused = true,
		    .sort = WATCH_SORT_WAVES, .devices = true },
		  "||head~|PAUSED  every 700 ms instead of 500 ms, so that queues run 95 % of the ti"
		  "m|~|GPU  PC~|  7  0x3~|  7  0x4~|"
		  "q quit  p go on  s sort: waves  d waves  ? help  rows 3-4 of 4~" },
		{ { 7, 6 }, { .scroll = 1 }, "||head~|every |~|GPU  P|  7  0|  7  0|q quit" },
		/* Hardly a terminal. */
		{ { 3, 40 }, { 0 }, "||head~|~|q quit  p pause  s sort: faults first  d" },
		{ { 2, 10 }, { 0 }, "||head~|q quit  p " },
		{ { 1, 2 }, { 0 }, "||he" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_STR(i, frame(rows[i].size, &rows[i].state, "head", table), rows[i].want);
	/* A long head leaves room for the table. */
	TEST_STR(frame((struct screen_size){ 10, 10 }, &(struct watch_state){ 0 }, "a|b\nc\nd\ne\nf\ng", table),
		 "||a~|b~|c~|every 0 ms|~|GPU  PC~|  7  0x1~|  7  0x2~|  7  0x3~|q quit  p ");
	CU_ASSERT(strstr(frame((struct screen_size){ 24, 80 }, &(struct watch_state){ .help = true },
			       "head", table),
			 "pause: no snapshots are taken") != NULL);
	/* Nothing to show yet. */
	TEST_STR(frame((struct screen_size){ 6, 10 }, &(struct watch_state){ 0 }, "", ""),
		 "||every 0 ms|~|~|~|~|q quit  p ");
}

/* However small the terminal is, each sentence of the headline is seen, if only its beginning. */
static void shows_the_headline(void)
{
	static const char head[] = "FAULT  one\n       goes on\n       and on\nHUNG   two\n       goes on|process\n  goes on";
	static const struct {
		unsigned rows;
		const char *want;
	} rows[] = {
		/* Room for all of it: as it is. */
		{ 15, "||FAULT  one~|       goes on~|       and on~|HUNG   two~|       goes on~|every 0 ms~|" },
		{ 10, "||FAULT  one~|HUNG   two~|process~|every 0 ms~|~|GPU  PC~|  7  0x1~|  7  0x2~|  7  0x3~|" },
		{ 6, "||FAULT  one~|HUNG   two~|" },
		{ 3, "||FAULT  one~|HUNG   two~|q quit" },
		{ 2, "||FAULT  one~|q quit" },
		{ 1, "||FAULT  one~" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *got = frame((struct screen_size){ rows[i].rows, 40 }, &(struct watch_state){ 0 }, head,
					table);

		if (strncmp(got, rows[i].want, strlen(rows[i].want)) != 0)
			TEST_ROW_STR(i, got, rows[i].want);
	}
}

/* Columns are characters, colours take none and end with the row. */
static void cuts_rows(void)
{
	static const struct {
		const char *text;
		unsigned cols;
		const char *want;
	} rows[] = {
		{ "abc", 5, "\x1b[1;1Habc\x1b[K" },
		{ "abcde", 5, "\x1b[1;1Habcde" },
		{ "abcdef", 5, "\x1b[1;1Habcde" },
		{ "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80z", 3,
		  "\x1b[1;1H\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\x1b[31mabc\x1b[0md", 2, "\x1b[1;1H\x1b[31mab\x1b[0m" },
		{ "\x1b[31ma\x1b[0mb", 5, "\x1b[1;1H\x1b[31ma\x1b[0mb\x1b[0m\x1b[K" },
		{ "", 5, "\x1b[1;1H\x1b[K" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t n = strlen(rows[i].text);
		auto_out struct out o;

		out_init(&o, 0);
		screen_row(&o, 1, rows[i].cols, n ? test_tail_dup(rows[i].text, n) : "", n);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

static void keys_change_the_state(void)
{
	static const struct {
		const char *typed;
		struct watch_state before, after;
		enum watch_action want;
		size_t n;
	} rows[] = {
		{ "q", { 0 }, { 0 }, WATCH_QUIT, 1 },
		{ "p", { 0 }, { .paused = true }, WATCH_REDRAW, 1 },
		{ " ", { .paused = true }, { 0 }, WATCH_REDRAW, 1 },
		{ "s", { 0 }, { .sort = WATCH_SORT_WAVES }, WATCH_RENDER, 1 },
		{ "s", { .sort = WATCH_SORT_PLACE }, { 0 }, WATCH_RENDER, 1 },
		{ "d", { .scroll = 5 }, { .devices = true }, WATCH_RENDER, 1 },
		{ "?", { 0 }, { .help = true }, WATCH_REDRAW, 1 },
		{ "x", { 0 }, { 0 }, WATCH_NOTHING, 1 },
		{ "\x1b[B", { 0 }, { .scroll = 1 }, WATCH_REDRAW, 3 },
		{ "\x1bOBq", { 0 }, { .scroll = 1 }, WATCH_REDRAW, 3 },
		{ "\x1b[A", { 0 }, { 0 }, WATCH_REDRAW, 3 },
		{ "\x1b[A", { .scroll = 2 }, { .scroll = 1 }, WATCH_REDRAW, 3 },
		{ "\x1b[6~", { .scroll = 3 }, { .scroll = 13 }, WATCH_REDRAW, 4 },
		{ "\x1b[6~", { .scroll = 85 }, { .scroll = 90 }, WATCH_REDRAW, 4 },
		{ "\x1b[5~", { .scroll = 3 }, { 0 }, WATCH_REDRAW, 4 },
		/* Half a key, and one that means nothing. */
		{ "\x1b", { 0 }, { 0 }, WATCH_NOTHING, 0 },
		{ "\x1b[", { 0 }, { 0 }, WATCH_NOTHING, 0 },
		{ "\x1b[6", { 0 }, { 0 }, WATCH_NOTHING, 0 },
		{ "\x1b[C", { 0 }, { 0 }, WATCH_NOTHING, 1 },
		{ "\x1bq", { 0 }, { 0 }, WATCH_NOTHING, 1 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct watch_state s = rows[i].before;
		const char *typed = test_tail_dup(rows[i].typed, strlen(rows[i].typed));
		size_t n = 77;

		TEST_ROW_EQ(i, watch_key(&s, typed, strlen(rows[i].typed), 100, 10, &n),
			    rows[i].want);
		TEST_ROW_EQ(i, n, rows[i].n);
		TEST_ROW_EQ(i, memcmp(&s, &rows[i].after, sizeof(s)), 0);
	}
}

/* Queues stand still for a twentieth of the time at most. */
static void stretches_the_interval(void)
{
	static const struct {
		uint32_t asked_ms;
		uint64_t stopped_us;
		uint32_t want;
	} rows[] = {
		{ 1000, 0, 1000 },     { 1000, 50000, 1000 }, { 1000, 50001, 1001 },
		{ 1, 400, 8 },	       { 1, 1, 1 },	      { 2000, 1000000, 20000 },
		{ 1, UINT64_MAX, UINT32_MAX },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, watch_interval(rows[i].asked_ms, rows[i].stopped_us), rows[i].want);
}

static void sorts_rows(void)
{
	static const uint64_t want[WATCH_SORT_COUNT][3] = {
		[WATCH_SORT_FAULTS] = { 0x300, 0x200, 0x100 },
		[WATCH_SORT_WAVES] = { 0x100, 0x200, 0x300 },
		[WATCH_SORT_PLACE] = { 0x100, 0x200, 0x300 },
	};

	for (int sort = 0; sort < WATCH_SORT_COUNT; sort++) {
		auto_rpc_arena struct rpc_arena arena;
		struct snapshot_build b;
		struct group_rows rows;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 1, "g300:1@0/5! g200:8@0/5 g100:9@0/5");
		TEST_ROW_EQ(sort, group_rows_of_snapshot(&arena, &b.s, &rows), 0);
		TEST_ROW_EQ(sort, watch_sort_rows(&arena, &rows, (enum watch_sort)sort), 0);
		for (size_t i = 0; i < 3; i++) {
			const struct rpc_group *g = rows.list[i].group;

			TEST_ROW_EQ(10 * sort + (int)i, g->pc, want[sort][i]);
			/* The number is the one that `waves --group` takes, whatever the order. */
			TEST_ROW_EQ(10 * sort + (int)i, rows.list[i].number, (size_t)(g - b.s.groups) + 1);
		}
	}
}

TEST_SUITE(ctl_watch, TEST(draws_frames), TEST(shows_the_headline), TEST(cuts_rows),
	   TEST(keys_change_the_state), TEST(stretches_the_interval), TEST(sorts_rows));
