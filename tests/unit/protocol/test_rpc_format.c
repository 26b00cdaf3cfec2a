/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "protocol/rpc_format.h"
#include "protocol/rpc_scan.h"
#include "testlib.h"

static int format(struct out *o, const char *text, enum rpc_format how)
{
	size_t size = strlen(text);

	out_reset(o);
	return rpc_format(o, test_tail_dup(text, size), size, how);
}

static void documents_are_indented(void)
{
	static const struct {
		const char *text, *pretty, *compact;
	} rows[] = {
		{ " {\"a\" : [ 1 , 2.50,\"x\\n\" ] ,\"b\":{ }, \"c\":[\n]} ",
		  "{\n  \"a\": [\n    1,\n    2.50,\n    \"x\\n\"\n  ],\n  \"b\": {},\n  \"c\": []\n}",
		  "{\"a\":[1,2.50,\"x\\n\"],\"b\":{},\"c\":[]}" },
		{ "7", "7", "7" },
		{ "[[],{\"x\":null}]", "[\n  [],\n  {\n    \"x\": null\n  }\n]", "[[],{\"x\":null}]" },
		{ "\"\"", "\"\"", "\"\"" },
		{ "[true,false]", "[\n  true,\n  false\n]", "[true,false]" },
	};
	auto_out struct out o;

	out_init(&o, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, format(&o, rows[i].text, RPC_FORMAT_PRETTY), 0);
		TEST_ROW_STR(i, o.data, rows[i].pretty);
		TEST_ROW_EQ(i, format(&o, rows[i].text, RPC_FORMAT_SHORT), 0);
		TEST_ROW_STR(i, o.data, rows[i].compact);
		TEST_ROW_EQ(i, format(&o, rows[i].pretty, RPC_FORMAT_SHORT), 0);
		TEST_ROW_STR(i, o.data, rows[i].compact);
	}
}

/* Exactly RFC 8259: one row per way of not being JSON. */
static void what_is_not_json_is_refused(void)
{
	static const char *const rows[] = {
		"", " ", "{", "}", "[", "]", "{]", "[}", "{,}", "[,]", "[1,]", "{\"a\":1,}", "{\"a\"}",
		"{\"a\":}", "{a:1}", "{1:1}", "{\"a\" 1}", "[1 2]", "1 2", "{} {}", "nul", "True",
		"NaN", "Infinity", "-Infinity", "+1", "-", "01", "-01", "1.", ".1", "1e", "1e+", "0x1",
		"'a'", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "\"\t\"",
		"\"\x80\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc3\"",
		"// x\n1", "/* x */1", "\xef\xbb\xbf{}", "{\"a\\u0000b\":1}", "[1]]", "\"a\"\"b\"",
		"tru", "truex", "\v1",
	};
	auto_out struct out o;

	out_init(&o, 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, format(&o, rows[i], RPC_FORMAT_SHORT), -EINVAL);
	/* A NUL byte is no white space either. */
	TEST_EQ(rpc_format(&o, "1\0", 2, RPC_FORMAT_SHORT), -EINVAL);
}

static void depth_and_output_are_bounded(void)
{
	char deep[2 * RPC_SCAN_DEPTH_MAX + 3];
	auto_out struct out o;

	for (unsigned extra = 0; extra < 2; extra++) {
		size_t n = RPC_SCAN_DEPTH_MAX + extra;

		memset(deep, '[', n);
		memset(deep + n, ']', n);
		out_init(&o, 0);
		TEST_ROW_EQ(extra, rpc_format(&o, deep, 2 * n, RPC_FORMAT_PRETTY),
			    extra ? -EINVAL : 0);
		out_deinit(&o);
	}
	out_init(&o, 4);
	TEST_EQ(format(&o, "[1,2,3]", RPC_FORMAT_SHORT), -EFBIG);
}

static void integers_beyond_64_bits_are_found(void)
{
	static const struct {
		const char *text;
		bool huge;
	} rows[] = {
		{ "18446744073709551615", false }, { "18446744073709551616", true },
		{ "-9223372036854775808", false }, { "-9223372036854775809", true },
		{ "99999999999999999999e1", false }, { "99999999999999999999.5", false },
		{ "0", false }, { "-0", false }, { "1e99", false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, rpc_scan_is_huge_integer(rows[i].text, strlen(rows[i].text)),
			    rows[i].huge);
}

static void escapes_are_resolved(void)
{
	static const struct {
		const char *text, *want;
		bool ok;
	} rows[] = {
		{ "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "a\"\\/\b\f\n\r\t", true },
		{ "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true },
		{ "\"\\ud83d\"", "\xef\xbf\xbd", true },
		{ "\"\\ude00\\ud83d\"", "\xef\xbf\xbd\xef\xbf\xbd", true },
		{ "\"\\ud83d\\n\"", "\xef\xbf\xbd\n", true },
		{ "\"\xe2\x82\xac\"", "\xe2\x82\xac", true },
		{ "\"a\\u0000b\"", "a", false },
		{ "\"0123456789abcde\"", "0123456789abcde", true },
		{ "\"0123456789abcdef\"", "0123456789abcde", false },
		{ "\"0123456789abcd\\u20ac\"", "0123456789abcd", false },
		{ "\"\"", "", true },
	};
	char buf[16];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);

		TEST_ROW_EQ(i, rpc_scan_string(test_tail_dup(rows[i].text, size), size, buf, sizeof(buf)),
			    rows[i].ok);
		TEST_ROW_STR(i, buf, rows[i].want);
	}
}

TEST_SUITE(rpc_format, TEST(documents_are_indented), TEST(what_is_not_json_is_refused),
	   TEST(depth_and_output_are_bounded), TEST(integers_beyond_64_bits_are_found),
	   TEST(escapes_are_resolved));
