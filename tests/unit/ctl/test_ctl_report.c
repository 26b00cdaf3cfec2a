/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "ctl/report/html.h"
#include "ctl/report/report.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

static void escapes_what_html_and_terminals_obey(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "plain", "plain" },
		{ "</title><script>", "&lt;/title&gt;&lt;script&gt;" },
		{ "\" onload='x' & y", "&quot; onload=&#39;x&#39; &amp; y" },
		{ "a\x1b[2J\nb", "a\\x1b[2J\\nb" },
		{ "\xe2\x80\xae"
		  "abc",
		  "\\u202e"
		  "abc" },
		{ "\xff", "\\xff" },
		{ "\xc3\xa9", "\xc3\xa9" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		html_text(&o, rows[i].text);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

/* No character is cut in two, and what is whole has no ellipsis. */
static void cuts_between_characters(void)
{
	static const struct {
		const char *text;
		size_t max;
		const char *want;
	} rows[] = {
		{ "abc", 3, "abc" },
		{ "abcd", 3, "abc\xe2\x80\xa6" },
		{ "ab\xc3\xa9", 3, "ab\xe2\x80\xa6" },
		{ "ab\xc3\xa9", 4, "ab\xc3\xa9" },
		{ "<<<", 1, "&lt;\xe2\x80\xa6" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		html_cut(&o, rows[i].text, rows[i].max);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

/* A long text can be opened, and nothing of it is lost. */
static void keeps_long_texts(void)
{
	char text[HTML_CELL_MAX + 2];
	auto_out struct out o = { 0 };

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	html_long(&o, text);
	CU_ASSERT_PTR_NOT_NULL(strstr(o.data, "</summary>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(strstr(o.data, "</summary>"), text));
}

/* The document stays the same for a reader of JSON, and cannot end its element. */
static void data_cannot_leave_its_element(void)
{
	static const char json[] = "{\"a\":\"</script><!--&\",\"b\":\"\xe2\x80\xae\xe2\x80\xa8\xc3\xa9\"}";
	auto_out struct out o = { 0 };

	html_data(&o, json, sizeof(json) - 1);
	TEST_STR(o.data, "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\",\"b\":\"\\u202e\\u2028\xc3\xa9\"}");
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static void names_what_is_wrong_first(void)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o = { 0 };
	struct snapshot_build b;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "q0:5/12 g100:64@0/5 g200:2@0/5! missing=queue 0: lost");
	TEST_EQ_FATAL(report_write(&arena, &o, &(struct report_input){ .snapshot = &b.s }), 0);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(o.data, "<h1><span class=\"tag bad\">FAULT</span> memory violation: 2 waves at 0x200"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.data, "<li>queue 0: lost</li>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(o.data, "5 of 12 taken"));
	TEST_EQ(count(o.data, "<script"), 1);
	TEST_EQ(count(o.data, "</section>"), count(o.data, "<section"));
}

/* A queue's indices are what a process wrote: no bar is longer than its box. */
static void bars_are_bounded(void)
{
	static const struct {
		uint64_t part, whole;
		const char *want;
	} rows[] = {
		{ 0, 0, "class=\"is\" width=\"0\"" },
		{ 1, 2, "class=\"is\" width=\"60\"" },
		{ UINT64_MAX, UINT64_MAX, "class=\"is\" width=\"120\"" },
		{ 9, 3, "class=\"is\" width=\"0\"" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		html_cell_share(&o, rows[i].part, rows[i].whole);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.data, rows[i].want));
	}
}

static void refuses_ranks_that_make_no_sense(void)
{
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o = { 0 };
	struct snapshot_build b;

	rpc_arena_init(&arena, 0);
	snapshot_build(&b, 1, "g100:64@0/5");
	b.groups[0].ranks = "7";
	TEST_EQ(report_write(&arena, &o, &(struct report_input){ .snapshot = &b.s, .merged = true }), -EINVAL);
}

/* Whoever answers in NCCL's place is a stranger. */
static void what_nccl_says_is_on_the_page(void)
{
	for (int merged = 0; merged < 2; merged++) {
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o = { 0 };
		struct rpc_nccl_rank odd = { .rank = 1, .state = RPC_NCCL_RANK_STATE_BEHIND, .operation = "All<b>Reduce",
					     .has_launched = true, .launched = 117 };
		struct rpc_nccl_operation operation = { .name = "All<b>Reduce", .most = 118 };
		struct rpc_nccl_communicator list[] = {
			{ .hash = 0xdef, .ranks = 2 },
			{ .hash = 0xabc, .ranks = 4, .odd = &odd, .n_odd = 1, .odd_count = 1,
			  .operations = &operation, .n_operations = 1 },
		};
		struct rpc_nccl_told told = { .communicators = list, .n_communicators = 2, .communicators_count = 5 };
		struct rpc_rank ranks[] = { { .name = "rank<0>", .host = "h", .has_told_by_nccl = true, .told_by_nccl = told },
					    { .name = "rank1", .host = "h" } };
		struct snapshot_build b;

		rpc_arena_init(&arena, 0);
		snapshot_build(&b, 1, "g100:64@0/5");
		b.groups[0].ranks = "0";
		b.s.why.told_by_nccl = merged ? (struct rpc_nccl_told){ 0 } : told;
		b.s.has_why = b.s.why.has_told_by_nccl = !merged;
		b.s.ranks = ranks;
		b.s.n_ranks = merged ? 2 : 0;
		TEST_EQ_FATAL(report_write(&arena, &o,
					   &(struct report_input){ .snapshot = &b.s, .merged = merged }), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.data, ">What NCCL says of itself</h2>"));
		CU_ASSERT_PTR_NOT_NULL(strstr(o.data, "<td>0xabc</td>"));
		CU_ASSERT_PTR_NOT_NULL(strstr(o.data, "All&lt;b&gt;Reduce launched"));
		CU_ASSERT_PTR_NULL(strstr(o.data, "<b>"));
		TEST_EQ(strstr(o.data, "<td>rank&lt;0&gt;</td>") != NULL, merged);
		TEST_EQ(strstr(o.data, "<td>0xabc</td>") < strstr(o.data, "<td>0xdef</td>"), true);
		CU_ASSERT_PTR_NOT_NULL(strstr(o.data, "3 more communicators are not in the document."));
	}
}

TEST_SUITE(ctl_report, TEST(escapes_what_html_and_terminals_obey), TEST(cuts_between_characters),
	   TEST(keeps_long_texts), TEST(data_cannot_leave_its_element), TEST(names_what_is_wrong_first),
	   TEST(bars_are_bounded), TEST(what_nccl_says_is_on_the_page), TEST(refuses_ranks_that_make_no_sense));
