/* SPDX-License-Identifier: MIT */
#include "symbols/uri.h"
#include "testlib.h"

static int parse(const char *text, struct symbols_uri *ret)
{
	size_t n = strlen(text);

	return symbols_uri_parse(n ? test_tail_dup(text, n) : text, n, ret);
}

/* Every form of the grammar, as runtimes write it. */
static void reads_what_runtimes_write(void)
{
	static const struct {
		const char *text, *path;
		uint64_t pid, offset, size;
		bool has_size;
	} rows[] = {
		{ "file:///opt/a.out#offset=8192&size=40960", "/opt/a.out", 0, 8192, 40960, true },
		{ "file:///opt/a.out?offset=8192&size=40960", "/opt/a.out", 0, 8192, 40960, true },
		{ "file:///opt/a.out", "/opt/a.out", 0, 0, 0, false },
		{ "file:///opt/a.out#offset=16", "/opt/a.out", 0, 16, 0, false },
		{ "file:///opt/a.out#size=0x10&offset=010", "/opt/a.out", 0, 8, 16, true },
		{ "file:///a%20b%23%3F%25.co", "/a b#?%.co", 0, 0, 0, false },
		{ "file:///%c3%A4", "/\xc3\xa4", 0, 0, 0, false },
		{ "memory://4242#offset=0x7f0000001000&size=5320", "", 4242, 0x7f0000001000, 5320,
		  true },
		{ "memory://1?offset=4096&size=0X20", "", 1, 4096, 32, true },
		{ "file:///x#offset=0&size=0xffffffffffffffff", "/x", 0, 0, UINT64_MAX, true },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct symbols_uri u;

		memset(&u, 0xaa, sizeof(u));
		TEST_ROW_EQ(i, parse(rows[i].text, &u), 0);
		TEST_ROW_EQ(i, u.kind, rows[i].pid ? SYMBOLS_URI_MEMORY : SYMBOLS_URI_FILE);
		TEST_ROW_STR(i, u.path, rows[i].path);
		TEST_ROW_EQ(i, u.pid, rows[i].pid);
		TEST_ROW_EQ(i, u.offset, rows[i].offset);
		TEST_ROW_EQ(i, u.has_size, rows[i].has_size);
		TEST_ROW_EQ(i, u.size, rows[i].size);
	}
}

/* Anything else is refused with its reason, and the result is left alone. */
static void refuses_the_rest(void)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = {
		{ "", -EPROTONOSUPPORT },
		{ "/opt/a.out", -EPROTONOSUPPORT },
		{ "http://x/", -EPROTONOSUPPORT },
		{ "file:/x", -EPROTONOSUPPORT },
		{ "file://", -EINVAL },
		{ "file://#offset=1", -EINVAL },
		{ "file:///a%00b", -EINVAL },
		{ "file:///a%2", -EINVAL },
		{ "file:///a%", -EINVAL },
		{ "file:///a%g0", -EINVAL },
		{ "file:///a#offset", -EINVAL },
		{ "file:///a#offset=", -EINVAL },
		{ "file:///a#offset=1&offset=2", -EINVAL },
		{ "file:///a#size=1&size=2", -EINVAL },
		{ "file:///a#offset=1&other=2", -EINVAL },
		{ "file:///a#offset=0x", -EINVAL },
		{ "file:///a#offset=08", -EINVAL },
		{ "file:///a#offset=-1", -EINVAL },
		{ "file:///a#offset= 1", -EINVAL },
		{ "file:///a#offset=18446744073709551616", -ERANGE },
		{ "file:///a#size=0", -ERANGE },
		{ "file:///a#offset=2&size=0xffffffffffffffff", -ERANGE },
		{ "memory://#offset=1&size=1", -EINVAL },
		{ "memory://0#offset=1&size=1", -ERANGE },
		{ "memory://4294967296#offset=1&size=1", -ERANGE },
		{ "memory://12#offset=1", -EINVAL },
		{ "memory://12#size=1", -EINVAL },
		{ "memory://12", -EINVAL },
		{ "memory://self#offset=1&size=1", -EINVAL },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct symbols_uri u = { .pid = 77 };

		TEST_ROW_EQ(i, parse(rows[i].text, &u), rows[i].want);
		TEST_ROW_EQ(i, u.pid, 77);
	}
}

/* The longest path fits, one byte more does not. */
static void limits_the_path(void)
{
	char text[7 + SYMBOLS_URI_PATH_MAX + 2] = "file://", *huge = test_tail_alloc(SYMBOLS_URI_MAX + 1);
	struct symbols_uri u;

	memset(text + 7, 'x', SYMBOLS_URI_PATH_MAX + 1);
	TEST_EQ(symbols_uri_parse(text, 7 + SYMBOLS_URI_PATH_MAX, &u), 0);
	TEST_EQ(strlen(u.path), SYMBOLS_URI_PATH_MAX);
	TEST_EQ(symbols_uri_parse(text, 7 + SYMBOLS_URI_PATH_MAX + 1, &u), -ENAMETOOLONG);
	memset(huge, 'x', SYMBOLS_URI_MAX + 1);
	TEST_EQ(symbols_uri_parse(huge, SYMBOLS_URI_MAX + 1, &u), -ENAMETOOLONG);
}

TEST_SUITE(symbols_uri, TEST(reads_what_runtimes_write), TEST(refuses_the_rest),
	   TEST(limits_the_path));
