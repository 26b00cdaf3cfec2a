/* SPDX-License-Identifier: MIT */
/* Sources in line tables of DWARF 5.  Files that clang has written are in tests/dap/test_dap_sources.py. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/debug/line_source.h"
#include "testlib.h"

#define HEADER_32 "\x05\x00\x08\x00"
#define PROGRAM	  "\x04\x01\x01\xfb\x0e\x01" /* No opcode has a length. */
/* Directories: path as string. */
#define DIRECTORIES "\x01\x01\x08\x03/src\0sub\0/opt\0"
/* Files: path as string, directory as a number, the source as string. */
#define FILES_FORMAT "\x03\x01\x08\x02\x0b\x81\x40\x08"
#define STRINGS(s) s, sizeof(s) - 1

struct table {
	uint8_t bytes[65536];
	size_t size;
};

static void add(struct table *t, const void *bytes, size_t size)
{
	CU_ASSERT_FATAL(t->size + size <= sizeof(t->bytes));
	memcpy(t->bytes + t->size, bytes, size);
	t->size += size;
}

/* Make a table with these lists behind its header. */
static void make(struct table *t, const void *lists, size_t size)
{
	uint32_t length = (uint32_t)(4 + 4 + 6 + size), header = (uint32_t)(6 + size);

	t->size = 0;
	add(t, &length, sizeof(length));
	add(t, HEADER_32, 4);
	add(t, &header, sizeof(header));
	add(t, PROGRAM, 6);
	add(t, lists, size);
}

/* Each section ends at an unmapped page. */
static int find(const struct table *t, const char *strings, size_t size, const char *file, const char **ret)
{
	const struct line_sections s = {
		.line = { test_tail_dup(t->bytes, t->size), t->size },
		.line_str = { size ? test_tail_dup(strings, size) : NULL, size },
	};
	size_t n = 0;
	int r = line_source_find(&s, 0, file, ret, &n);

	if (r == 0)
		TEST_EQ(n, strlen(*ret));
	return r;
}

static const char three_files[] = DIRECTORIES FILES_FORMAT "\x05"
	"a.cl\0\0one\n\0"
	"b.h\0\1two\n\0"
	"c.h\0\2three\n\0"
	"/d.h\0\1four\n\0"
	"e.h\0\2\0";

static void paths_are_those_of_the_list(void)
{
	static const struct {
		const char *file, *text;
	} rows[] = {
		{ "/src/a.cl", "one\n" },   { "/src/sub/b.h", "two\n" }, { "/opt/c.h", "three\n" },
		{ "/d.h", "four\n" },	    { "/opt/e.h", NULL },	 { "a.cl", NULL },
		{ "/src/sub/d.h", NULL },   { "/src/b.h", NULL },	 { "/src/opt/c.h", NULL },
		{ "/src/a.clx", NULL },	    { "/src/a.c", NULL },	 { "", NULL },
	};
	struct table t;

	make(&t, STRINGS(three_files));
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const char *text = NULL;

		TEST_ROW_EQ(i, find(&t, NULL, 0, rows[i].file, &text), rows[i].text ? 0 : -ENOENT);
		if (rows[i].text)
			TEST_ROW_STR(i, text, rows[i].text);
	}
}

static void strings_lie_in_their_section(void)
{
	/* The path is at 0, the source at 7, in the form line_strp. */
	static const char lists[] = "\x01\x01\x08\x01/src\0\x03\x01\x1f\x02\x0b\x81\x40\x1f\x01\0\0\0\0\0\x07\0\0\0";
	struct table t;
	const char *text;

	make(&t, STRINGS(lists));
	TEST_EQ(find(&t, STRINGS("k.hip\0\0text\0"), "/src/k.hip", &text), 0);
	TEST_STR(text, "text");
	/* It has no end, or is not there. */
	TEST_EQ(find(&t, STRINGS("k.hip\0\0text"), "/src/k.hip", &text), -ENOENT);
	TEST_EQ(find(&t, STRINGS("k.hip\0"), "/src/k.hip", &text), -ENOENT);
	TEST_EQ(find(&t, NULL, 0, "/src/k.hip", &text), -ENOENT);
}

static void cut_at_each_byte(void)
{
	struct table whole, t;
	const char *text;

	make(&whole, STRINGS(three_files));
	for (size_t n = 0; n < whole.size; n++) {
		t = whole;
		t.size = n;
		TEST_ROW_EQ(n, find(&t, NULL, 0, "/opt/e.h", &text), -EBADMSG);
	}
}

static void lengths_that_are_wrong(void)
{
	static const struct {
		size_t at;
		const char *bytes;
		size_t size;
		int result;
	} rows[] = {
		{ 0, STRINGS("\xf0\xff\xff\xff"), -EBADMSG },
		{ 0, STRINGS("\xff\xff\xff\xff"), -EBADMSG }, /* The length of 64 bits is what follows. */
		{ 0, STRINGS("\0\0\0\0"), -EBADMSG },
		{ 4, STRINGS("\x04"), -ENOENT }, /* Another version has no sources. */
		{ 4, STRINGS("\x06"), -ENOENT },
		{ 8, STRINGS("\xff\xff\xff\xff"), -EBADMSG },
		{ 8, STRINGS("\x06"), -EBADMSG },
		{ 17, STRINGS("\xff"), -EBADMSG },		   /* Opcodes. */
		{ 18, STRINGS("\0"), -EBADMSG },		   /* Directories without a byte. */
		{ 20, STRINGS("\x7e"), -EBADMSG },		   /* A form that is none. */
		{ 21, STRINGS("\xff\xff\xff\xff\x0f"), -ENOENT }, /* More directories than are looked at. */
	};
	struct table t;
	const char *text;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		make(&t, STRINGS(three_files));
		memcpy(t.bytes + rows[i].at, rows[i].bytes, rows[i].size);
		TEST_ROW_EQ(i, find(&t, NULL, 0, "/src/a.cl", &text), rows[i].result);
	}
	TEST_EQ(line_source_find(&(struct line_sections){ 0 }, 0, "/a", &text, &t.size), -EBADMSG);
	TEST_EQ(line_source_find(&(struct line_sections){ 0 }, UINT64_MAX, "/a", &text, &t.size), -EBADMSG);
}

/* Each of very many files names one long path: nobody looks for its end each time, or compares it all. */
static void many_files_of_a_long_name(void)
{
	static const char head[] = "\x01\x01\x08\x01/d\0\x02\x01\x1f\x81\x40\x1f\x80\x80\x04";
	size_t n = (size_t)32 << 20, lists = sizeof(head) - 1 + 65535 * 8;
	auto_free char *strings = malloc(n);
	auto_free uint8_t *bytes = calloc(1, 18 + lists);
	uint32_t length = (uint32_t)(14 + lists), header = (uint32_t)(6 + lists);
	struct line_sections s = { 0 };
	uint64_t before;
	const char *text;
	size_t size;

	CU_ASSERT_FATAL(strings && bytes);
	memset(strings, 'a', n);
	strings[n - 1] = '\0';
	memcpy(bytes, &length, 4);
	memcpy(bytes + 4, HEADER_32, 4);
	memcpy(bytes + 8, &header, 4);
	memcpy(bytes + 12, PROGRAM, 6);
	memcpy(bytes + 18, head, sizeof(head) - 1);
	s.line = (struct line_section){ bytes, 18 + lists };
	s.line_str = (struct line_section){ (const uint8_t *)strings, n };
	before = test_cpu_ns();
	TEST_EQ(line_source_find(&s, 0, "/d/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &text, &size), -EBADMSG);
	CU_ASSERT(test_cpu_ns() - before < UINT64_C(2000000000));
}

TEST_SUITE(symbols_line_source, TEST(paths_are_those_of_the_list), TEST(strings_lie_in_their_section),
	   TEST(cut_at_each_byte), TEST(lengths_that_are_wrong), TEST(many_files_of_a_long_name));
