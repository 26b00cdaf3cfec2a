/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "ctl/terminal/color.h"
#include "ctl/terminal/output.h"
#include "ctl/terminal/table.h"
#include "base/nearest.h"
#include "ctl/terminal/text.h"
#include "testlib.h"

/* What a process calls itself must not reach the terminal as anything but letters. */
static void escapes_names(void)
{
	static const struct {
		const char *in, *want;
	} rows[] = {
		{ "plain", "plain" },
		{ "", NULL },
		{ "\x1b[2J", "\\x1b[2J" },
		{ "a\nb\tc\r", "a\\nb\\tc\\x0d" },
		{ "\x7f", "\\x7f" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "\xc2\x9b", "\\u009b" },		/* CSI in one character */
		{ "a\xe2\x80\xae" "b", "a\\u202eb" },	/* right-to-left override */
		{ "\xef\xbb\xbf", "\\ufeff" },
		{ "\xef\xbf\xbf", "\\uffff" },	/* no character, and none in XML */
		{ "\xff\xc3", "\\xff\\xc3" },		/* no UTF-8 */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },	/* surrogate */
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t n = strlen(rows[i].in);
		auto_out struct out o;

		out_init(&o, 0);
		text_escape(&o, n ? test_tail_dup(rows[i].in, n) : "", n);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

static void prints_sizes(void)
{
	static const struct {
		uint64_t in;
		const char *want;
	} rows[] = {
		{ 0, "0" },
		{ 1023, "1023" },
		{ 1024, "1 KiB" },
		{ 1536, "1.5 KiB" },
		{ 65536, "64 KiB" },
		{ UINT64_C(206158430208), "192 GiB" },
		{ UINT64_MAX, "15.9 EiB" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o;

		out_init(&o, 0);
		text_size(&o, rows[i].in);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

static void decodes_base64(void)
{
	static const struct {
		const char *in;
		int r;
		const char *want;
	} rows[] = {
		{ "", 0, "" },		  { "Zg==", 0, "f" },	  { "Zm8=", 0, "fo" },
		{ "Zm9v", 0, "foo" },	  { "Zm9vYg==", 0, "foob" }, { "Zm9", -EINVAL, NULL },
		{ "Zg=a", -EINVAL, NULL }, { "Z===", -EINVAL, NULL }, { "====", -EINVAL, NULL },
		{ "Zh==", -EINVAL, NULL }, { "Zm9=", -EINVAL, NULL }, { "Zm\n=", -EINVAL, NULL },
		{ "Zg==Zg==", -EINVAL, NULL },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t n = strlen(rows[i].in), size = 77;
		char *text = n ? test_tail_dup(rows[i].in, n) : test_tail_alloc(1);
		uint8_t *bytes = test_tail_alloc(n / 4 * 3 + 1);

		TEST_ROW_EQ(i, base64_decode(text, n, bytes, &size), rows[i].r);
		TEST_ROW_EQ(i, size, rows[i].want ? strlen(rows[i].want) : 77);
		if (rows[i].want)
			TEST_ROW_EQ(i, memcmp(bytes, rows[i].want, size), 0);
	}
}

static void dumps_hex(void)
{
	auto_out struct out o;
	uint8_t bytes[18];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)('@' + i);
	bytes[3] = 0xff;
	out_init(&o, 0);
	text_hexdump(&o, 0x7f00, test_tail_dup(bytes, sizeof(bytes)), sizeof(bytes));
	TEST_STR(o.data,
		 "0000000000007f00  40 41 42 ff 44 45 46 47  48 49 4a 4b 4c 4d 4e 4f  |@AB.DEFGHIJKLMNO|\n"
		 "0000000000007f10  50 51                                             |PQ|\n");
}

static void measures_typing_mistakes(void)
{
	static const struct {
		const char *a, *b;
		size_t want;
	} rows[] = {
		{ "list", "list", 0 },	   { "lsit", "list", 1 },	 { "lis", "list", 1 },
		{ "lists", "list", 1 },	   { "snapshto", "snapshot", 1 }, { "abc", "", 3 },
		{ "rpc", "events", 6 },    { "0123456789012345678901234567890123", "list", 31 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, nearest_distance(rows[i].a, rows[i].b), rows[i].want);
}

static const struct table_column columns[] = { { "ID", true }, { "NAME", false }, { "X", false } };

/* Numbers to the right, text to the left, no blanks at the end, wide letters count once. */
static void aligns_columns(void)
{
	auto_table struct table t;
	auto_out struct out o;

	out_init(&o, 0);
	table_init(&t, columns, TEST_COUNT(columns));
	table_u64(&t, 7);
	table_str(&t, "\xc3\xbc");
	table_str(&t, NULL);
	table_hex(&t, 0x123);
	table_str(&t, "longer");
	table_size(&t, 4096);
	TEST_EQ(table_print(&t, &o, &(struct table_form){ .legend = true }), 0);
	TEST_STR(o.data, "   ID  NAME    X\n"
			 "    7  \xc3\xbc       -\n"
			 "0x123  longer  4 KiB\n");
	out_reset(&o);
	TEST_EQ(table_print(&t, &o, &(struct table_form){ 0 }), 0);
	TEST_STR(o.data, "    7  \xc3\xbc       -\n0x123  longer  4 KiB\n");
}

static void colours_without_moving_columns(void)
{
	auto_table struct table t;
	auto_out struct out o;

	out_init(&o, 0);
	table_init(&t, columns, TEST_COUNT(columns));
	table_u64(&t, 1);
	table_style(&t, COLOR_BAD, "a\x1b");
	table_style(&t, COLOR_PLAIN, "b");
	TEST_EQ(table_print(&t, &o, &(struct table_form){ .color = true }), 0);
	TEST_STR(o.data, "1  \x1b[31ma\\x1b\x1b[0m  b\n");
}

/* A table without rows is its titles; one that ran out of memory is an error. */
static void empty_and_broken_tables(void)
{
	auto_table struct table t;
	auto_out struct out o;

	out_init(&o, 0);
	table_init(&t, columns, TEST_COUNT(columns));
	TEST_EQ(table_print(&t, &o, &(struct table_form){ .legend = true }), 0);
	TEST_STR(o.data, "ID  NAME  X\n");
	t.text.limit = 3;
	table_str(&t, "four");
	TEST_EQ(table_print(&t, &o, &(struct table_form){ .legend = true }), -EFBIG);
}

/* Print a table whose cells are given row by row. */
static void check_table(const struct table_column *c, size_t n_columns, const char *const *cells, size_t n,
			struct table_form form, const char *note, const char *want)
{
	auto_table struct table t;
	auto_out struct out o;

	out_init(&o, 0);
	table_init(&t, c, n_columns);
	for (size_t i = 0; i < n; i++)
		table_str(&t, cells[i]);
	if (note)
		table_note(&t, "%s", note);
	TEST_EQ(table_print(&t, &o, &form), 0);
	TEST_STR(o.data, want);
}

static const struct table_column narrow[] = {
	{ .title = "N", .right = true },
	{ .title = "NAME", .importance = 2, .min = 6 },
	{ .title = "PCI", .importance = 1 },
	{ .title = "GPU", .right = true, .same = "all on GPU" },
	{ .title = "WHERE", .importance = 3, .min = 12, .wrap = true },
};
static const char *const narrow_cells[] = {
	"1", "abcdefghij", "03:00.0", "0", "a.c:15 twice <- step <- shape",
	"22", "k", "04:00.0", "0", "b.c:7",
};

static void check_narrow(unsigned width, bool ascii, const char *note, const char *want)
{
	check_table(narrow, TEST_COUNT(narrow), narrow_cells, TEST_COUNT(narrow_cells),
		    (struct table_form){ .width = width, .legend = true, .ascii = ascii }, note, want);
}

/*
 * What matters least goes first: a column without a minimum disappears, the next is cut, and the
 * most important one goes on below its row.  What all rows share is told once.
 */
static void fits_the_terminal(void)
{
	check_narrow(0, false, NULL,
	       " N  NAME        PCI      WHERE\n"
	       " 1  abcdefghij  03:00.0  a.c:15 twice <- step <- shape\n"
	       "22  k           04:00.0  b.c:7\n"
	       "all on GPU 0\n");
	check_narrow(45, false, "more with --verbose",
	       " N  NAME        WHERE\n"
	       " 1  abcdefghij  a.c:15 twice <- step <- shape\n"
	       "22  k           b.c:7\n"
	       "all on GPU 0; more with --verbose\n");
	check_narrow(30, false, "more with --verbose",
	       " N  NAME    WHERE\n"
	       " 1  abcde\xe2\x80\xa6  a.c:15 twice\n"
	       "              <- step <- shape\n"
	       "22  k       b.c:7\n"
	       "all on GPU 0; more with\n"
	       "  --verbose\n");
	/* Where there is no room for the minimum: less than that, then fewer columns. */
	check_narrow(20, false, NULL,
	       " N  NAME    WHERE\n"
	       " 1  abcde\xe2\x80\xa6  a.c:15\n"
	       "              twice\n"
	       "              <- ste\n"
	       "              p\n"
	       "              <- sha\n"
	       "              pe\n"
	       "22  k       b.c:7\n"
	       "all on GPU 0\n");
	check_narrow(16, false, NULL,
	       " N  WHERE\n"
	       " 1  a.c:15 twice\n"
	       "      <- step\n"
	       "      <- shape\n"
	       "22  b.c:7\n"
	       "all on GPU 0\n");
	check_narrow(9, false, NULL,
	       " N  WHERE\n"
	       " 1  a.c:1\n      5\n      twi\n      ce\n      <- \n      ste\n      p\n      <-\xe2\x80\xa6\n"
	       "22  b.c:7\n"
	       "all on\n"
	       "  GPU 0\n");
	check_narrow(25, true, NULL,
	       " N  NAME    WHERE\n"
	       " 1  abc...  a.c:15 twice\n"
	       "              <- step\n"
	       "              <- shape\n"
	       "22  k       b.c:7\n"
	       "all on GPU 0\n");
}

/* A script finds every column where it was, and one line for each row, however narrow the terminal. */
static void loses_nothing_without_titles(void)
{
	check_table(narrow, TEST_COUNT(narrow), narrow_cells, TEST_COUNT(narrow_cells),
		    (struct table_form){ .width = 20 }, "a note",
		    " 1  abcdefghij  03:00.0  0  a.c:15 twice <- step <- shape\n"
		    "22  k           04:00.0  0  b.c:7\n");
}

/* A cell keeps its indentation, its eighth line is the last one, and characters stay whole. */
static void breaks_long_cells(void)
{
	static const struct table_column one[] = { { .title = "X", .importance = 1, .min = 4, .wrap = true } };
	static const char *const cell[] = { "  \xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc b c d e f g h i j k l m n o p" };

	check_table(one, 1, cell, 1, (struct table_form){ .width = 8, .legend = true }, NULL,
		    "X\n"
		    "  \xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\n"
		    "    b c\n    d e\n    f g\n    h i\n    j k\n    l m\n    n o\xe2\x80\xa6\n");
}

static void wraps_sentences(void)
{
	static const struct {
		const char *in;
		size_t width;
		const char *want;
	} rows[] = {
		{ "one two three", 0, "one two three\n" },
		{ "one two three", 13, "one two three\n" },
		{ "one two three", 12, "one two\n  three\n" },
		{ "one  two  three", 5, "one\n  two\n  three\n" },
		{ "aaaaaaaaa b", 4, "aaaaaaaaa\n  b\n" },
		{ "", 4, "\n" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o;

		out_init(&o, 0);
		text_wrap(&o, rows[i].in, strlen(rows[i].in), rows[i].width, 2);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

static void decides_on_colour(void)
{
	static const struct {
		const char *mode, *no_color, *force, *term;
		bool tty;
		int r;
		bool want;
	} rows[] = {
		{ NULL, NULL, NULL, "xterm", true, 0, true },
		{ "auto", NULL, NULL, "xterm", false, 0, false },
		{ NULL, NULL, NULL, "dumb", true, 0, false },
		{ NULL, NULL, NULL, NULL, true, 0, true },
		{ NULL, "1", NULL, "xterm", true, 0, false },
		{ NULL, "", NULL, "xterm", true, 0, true },
		{ NULL, NULL, "1", "dumb", false, 0, true },
		{ NULL, NULL, "0", "xterm", false, 0, false },
		{ NULL, "1", "1", "xterm", true, 0, false },
		{ "always", "1", NULL, "dumb", false, 0, true },
		{ "never", NULL, "1", "xterm", true, 0, false },
		{ "Never", NULL, NULL, "xterm", true, -EINVAL, true },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		bool on = true;

		unsetenv("NO_COLOR");
		unsetenv("CLICOLOR_FORCE");
		unsetenv("TERM");
		if (rows[i].no_color)
			setenv("NO_COLOR", rows[i].no_color, 1);
		if (rows[i].force)
			setenv("CLICOLOR_FORCE", rows[i].force, 1);
		if (rows[i].term)
			setenv("TERM", rows[i].term, 1);
		TEST_ROW_EQ(i, color_decide(rows[i].mode, rows[i].tty, &on), rows[i].r);
		TEST_ROW_EQ(i, on, rows[i].want);
	}
}

static char directory[] = "/tmp/test_ctl_format.XXXXXX";

static void check_file(const char *path, const char *want)
{
	auto_free char *text = NULL;
	size_t size;

	TEST_EQ_FATAL(fd_read_file(path, 4096, &text, &size), 0);
	TEST_STR(text, want);
}

/* The file changes when all is there, and not before. */
static void replaces_files_at_the_end(void)
{
	struct output o;
	char path[64];
	struct stat st;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	output_init(&o);
	o.path = path;
	out_str(&o.text, "one\n");
	TEST_EQ(output_flush(&o), 0);
	TEST_EQ(access(path, F_OK), -1);
	TEST_EQ(output_finish(&o), 0);
	check_file(path, "one\n");
	TEST_EQ(stat(path, &st), 0);
	TEST_EQ(st.st_mode & 0111, 0);

	out_str(&o.text, "two\n");
	output_drop(&o);
	output_deinit(&o);
	check_file(path, "one\n");
	unlink(path);
	TEST_EQ(rmdir(directory), 0);
}

/* Large texts do not pile up in memory, and a dropped one leaves nothing behind. */
static void spills_large_texts(void)
{
	static char line[65536];
	struct output o;
	char path[64];

	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	memset(line, 'x', sizeof(line));
	output_init(&o);
	o.path = path;
	for (int i = 0; i < 64; i++) {
		out_bytes(&o.text, line, sizeof(line));
		TEST_ROW_EQ(i, output_flush(&o), 0);
		CU_ASSERT_TRUE(o.text.size < 2 << 20);
	}
	CU_ASSERT_TRUE(o.temp[0]);
	output_drop(&o);
	output_deinit(&o);
	TEST_EQ(rmdir(directory), 0);
}

static void formats_documents(void)
{
	static const char text[] = "{ \"a\" : [1, 2] }";
	struct output o;

	output_init(&o);
	TEST_EQ(output_set_json(&o, "yaml"), -EINVAL);
	TEST_EQ(o.json, OUTPUT_JSON_OFF);
	TEST_EQ(output_set_json(&o, "short"), 0);
	TEST_EQ(output_json(&o, text, strlen(text)), 0);
	TEST_STR(o.text.data, "{\"a\":[1,2]}\n");
	out_reset(&o.text);
	TEST_EQ(output_set_json(&o, "pretty"), 0);
	TEST_EQ(output_json(&o, text, strlen(text)), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.text.data, "\n  \"a\": "));
	out_reset(&o.text);
	output_begin_stream(&o);
	TEST_EQ(output_json(&o, text, strlen(text)), 0);
	TEST_STR(o.text.data, "{\"a\":[1,2]}\n");
	TEST_EQ(output_json(&o, "{", 1), -EINVAL);
	output_deinit(&o);
}

TEST_SUITE(ctl_format, TEST(escapes_names), TEST(prints_sizes), TEST(decodes_base64),
	   TEST(dumps_hex), TEST(measures_typing_mistakes), TEST(aligns_columns),
	   TEST(colours_without_moving_columns), TEST(empty_and_broken_tables),
	   TEST(fits_the_terminal), TEST(loses_nothing_without_titles), TEST(breaks_long_cells), TEST(wraps_sentences),
	   TEST(decides_on_colour), TEST(replaces_files_at_the_end), TEST(spills_large_texts),
	   TEST(formats_documents));
