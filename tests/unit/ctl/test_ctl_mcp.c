/* SPDX-License-Identifier: MIT */
/* The server for assistants: messages, commands, pages, what is kept, and for how long a process may be stopped. */
#include "base/out.h"
#include "ctl/mcp/keep.h"
#include "ctl/mcp/message.h"
#include "ctl/mcp/page.h"
#include "ctl/mcp/stops.h"
#include "ctl/mcp/tools.h"
#include "testlib.h"

#define SECOND UINT64_C(1000000000)

static const struct mcp_options options = { .socket = "/run/a.sock", .directory = "/var/d", .allow_control = true };

/* ------------------------------------------------------------------ messages ----------------- */

static void reads_messages(void)
{
	static const struct {
		const char *text;
		int code;
		enum mcp_kind kind;
		const char *id, *method;
	} rows[] = {
		{ "{\"method\":\"ping\",\"jsonrpc\":\"2.0\",\"id\":0}", 0, MCP_REQUEST, "0", "ping" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"a b\",\"method\":\"ping\",\"params\":{}}", 0, MCP_REQUEST, "\"a b\"", "ping" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"x\"}", 0, MCP_REQUEST, "9007199254740993", "x" },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", 0, MCP_NOTIFICATION, "", "n" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{}}", 0, MCP_RESPONSE, "3", "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", MCP_INVALID_REQUEST, 0, "", "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", MCP_INVALID_REQUEST, 0, "", "" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":4,\"method\":\"ping\"}", MCP_INVALID_REQUEST, 0, "4", "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":5}", MCP_INVALID_REQUEST, 0, "4", "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\",\"params\":[]}", MCP_INVALID_PARAMS, 0, "4", "ping" },
		{ "[{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"ping\"}]", MCP_INVALID_REQUEST, 0, "", "" },
		{ "7", MCP_INVALID_REQUEST, 0, "", "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,", MCP_PARSE_ERROR, 0, "", "" },
		{ "{\"id\":4} {}", MCP_PARSE_ERROR, 0, "", "" },
		{ "\"\xff\"", MCP_PARSE_ERROR, 0, "", "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct mcp_problem problem = { 0 };
		struct mcp_message m;
		int r = mcp_message_parse(rows[i].text, strlen(rows[i].text), &m, &problem);

		TEST_ROW_EQ(i, r, rows[i].code ? -EINVAL : 0);
		TEST_ROW_EQ(i, problem.code, rows[i].code);
		TEST_ROW_STR(i, m.id, rows[i].id);
		TEST_ROW_STR(i, m.method, rows[i].method);
		if (r == 0)
			TEST_ROW_EQ(i, m.kind, rows[i].kind);
		else
			TEST_ROW_EQ(i, problem.text[0] != '\0', 1);
	}
}

/* ------------------------------------------------------------------ commands ----------------- */

/* The command line of a call in one line, or what is wrong with its arguments. */
static void command_of(const char *name, const char *arguments, struct out *ret)
{
	struct mcp_value values[MCP_ARGS_MAX];
	struct mcp_command cmd;
	const struct mcp_tool *tool = mcp_tool_find(name, &options);
	const struct mcp_input in = { tool, values, &options };

	if (!tool) {
		out_str(ret, "no tool");
		return;
	}
	if (mcp_args_read(tool->args, (struct dap_json){ arguments, strlen(arguments) }, values, ret) < 0 ||
	    mcp_tool_build(&in, &cmd, ret) < 0)
		return;
	/* Socket, time and how it is printed are the same in all. */
	out_str(ret, cmd.argv[1]);
	for (size_t i = 6; i < cmd.n; i++)
		out_fmt(ret, " %s", cmd.argv[i]);
}

static void makes_commands(void)
{
	static const struct {
		const char *name, *arguments, *want;
	} rows[] = {
		{ "list", "{}", "list" },
		{ "doctor", "{\"pid\":12}", "doctor -- 12" },
		{ "doctor", "{\"pid\":\"12\"}", "doctor -- 12" },
		{ "doctor", "{\"pid\":12.0}", "doctor -- 12" },
		{ "doctor", "{\"pid\":12.5}", "argument \"pid\" must be a whole number from 1 to 4194304" },
		{ "doctor", "{\"pid\":-1}", "argument \"pid\" must be a whole number from 1 to 4194304" },
		{ "doctor", "{\"pid\":99999999999999999999}", "argument \"pid\" must be a whole number from 1 to 4194304" },
		{ "doctor", "{}", "argument \"pid\" is missing" },
		{ "doctor", "{\"pid\":1,\"Pid\":2}", "unknown argument \"Pid\"; there are pid, cursor, max_bytes" },
		{ "doctor", "[1]", "arguments must be an object" },
		{ "snapshot", "{\"pid\":1}", "snapshot --max-stop=100ms --json=short -- 1" },
		/* No more than --max-stop of the server allows, or a second. */
		{ "snapshot", "{\"pid\":1,\"max_stop_ms\":7000,\"host\":true}", "snapshot --max-stop=1000ms --json=short --host -- 1" },
		{ "snapshot", "{\"pid\":1,\"host\":1}", "argument \"host\" must be true or false" },
		{ "snapshot", "{\"pid\":1,\"record\":\"x\"}", "give either \"pid\" or \"record\"" },
		{ "snapshot", "{\"record\":\"--help\"}", "cores -- info --help" },
		{ "why", "{\"pid\":1,\"again_ms\":500}", "why --max-stop=100ms --twice=500 -- 1" },
		{ "diff", "{\"before\":\"s1\",\"after\":\"s2\"}", "diff /dev/fd/3 /dev/fd/4" },
		{ "diff", "{\"before\":\"s1\"}", "give either \"pid\", or both \"before\" and \"after\"" },
		{ "wave", "{\"pid\":1,\"wave\":3}", "variables --max-stop=100ms -- 1 3" },
		{ "wave", "{\"pid\":1,\"wave\":\"0:1:2\",\"expression\":\"-x\"}", "print --max-stop=100ms -- 1 0:1:2 -x" },
		{ "wave", "{\"pid\":1,\"wave\":\"a\\nb\"}", "argument \"wave\" must be a string of 1 to 200 printable bytes" },
		{ "wave", "{\"pid\":1,\"wave\":\"1\",\"show\":\"all\"}", "argument \"show\" must be one of variables|registers|lanes" },
		{ "memory", "{\"pid\":1,\"address\":\"0x10\",\"bytes\":4}", "memory --max-stop=100ms -- 1 0x10 4" },
		{ "memory", "{\"pid\":1,\"address\":16}", "argument \"address\" must be a string such as \"0x7f0000001000\"" },
		{ "disassemble", "{\"pid\":1}", "give either \"wave\" or \"address\"" },
		{ "job_report", "{\"pids\":[3,4]}", "job --max-stop=100ms --deadline=10000ms --pids=3,4" },
		{ "job_report", "{\"pids\":[3,\"x\"]}", "argument \"pids\" must be an array of 1 to 64 process ids" },
		{ "job_report", "{\"pids\":[]}", "argument \"pids\" must be an array of 1 to 64 process ids" },
		{ "job_report", "{\"all\":false}", "give one of \"pids\", \"slurm\" and \"all\": true" },
		{ "suspend", "{\"pid\":1,\"lease_ms\":50}", "suspend --json=short --until-eof --lease=50ms -- 1" },
		{ "suspend", "{\"pid\":1}", "argument \"lease_ms\" is missing" },
		{ "kill", "{\"pid\":1}", "no tool" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		command_of(rows[i].name, rows[i].arguments, &o);
		TEST_ROW_STR(i, o.data ? o.data : "", rows[i].want);
	}
}

/* Who has not allowed control is not offered it, and the tools that are offered say the truth of themselves. */
static void offers_what_is_allowed(void)
{
	static const struct mcp_options looks = { .socket = "/s", .directory = "/d" }, control = { .allow_control = true };
	const struct mcp_tool *tool;
	size_t n = 0;

	for (size_t i = 0; (tool = mcp_tool_at(i)); i++) {
		bool offered = mcp_tool_is_offered(tool, &looks);

		n += offered;
		TEST_ROW_EQ(i, tool->changes, !offered);
		TEST_ROW_EQ(i, tool->destroys, !offered);
		TEST_ROW_EQ(i, mcp_tool_find(tool->name, &looks) == tool, offered);
	}
	TEST_EQ(n, 10);
	TEST_EQ(mcp_tool_find("suspend", &control) != NULL, 1);
	TEST_EQ(mcp_tool_find("dump", &control) != NULL, 0);
	TEST_EQ(mcp_tool_find("dump", &options) != NULL, 1);
}

/* ------------------------------------------------------------------ pages -------------------- */

static void cleans_texts(void)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "a\tb\nc\n", "a\tb\nc\n" },
		{ "\033[31mred\r", "?[31mred?" },
		{ "caf\303\251 \346\227\245", "caf\303\251 \346\227\245" },
		{ "a\342\200\256b\342\201\246c", "a?b?c" },	     /* U+202E, U+2066 */
		{ "a\342\200\213b\363\240\201\201c", "a?b?c" }, /* U+200B, U+E0041 */
		{ "\302\205\377", "??" },			     /* U+0085, no UTF-8 */
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o = { 0 };

		page_clean(&o, rows[i].text, strlen(rows[i].text));
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

/* What says the same to a parser, and shows itself to who reads. */
static void escapes_in_json(void)
{
	static const char text[] = "{\"a\\n\": \"x\342\200\256y\363\240\201\201\303\251\177\"}\n";
	auto_out struct out o = { 0 };

	page_json(&o, text, sizeof(text) - 1);
	TEST_STR(o.data, "{\"a\\n\": \"x\\u202ey\\udb40\\udc41\303\251\\u007f\"}\n");
}

static void cuts_long_lines(void)
{
	char text[PAGE_LINE_MAX + 12];
	auto_out struct out o = { 0 };

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 2] = '\n';
	page_clean(&o, text, sizeof(text));
	TEST_EQ(o.size, PAGE_LINE_MAX + strlen("... [10 bytes more]\nx"));
	TEST_STR(o.data + PAGE_LINE_MAX, "... [10 bytes more]\nx");
}

static void pages_end_with_lines(void)
{
	static const char text[] = "one\ntwo\nthree\n\303\251\303\251\303\251\303\251";
	static const size_t ends[] = { 4, 8, 13, 14, 18, 22 };
	size_t at = 0;

	for (size_t i = 0; i < TEST_COUNT(ends); i++) {
		at = page_end(text, sizeof(text) - 1, at, 5);
		TEST_ROW_EQ(i, at, ends[i]);
	}
	TEST_EQ(page_end(text, 8, 0, 100), 8);
	TEST_EQ(page_end(text, 8, 9, 100), 8);
}

/* ------------------------------------------------------------------ memory ------------------- */

static const struct kept *add(struct keep *k, const struct mcp_tool *tool, size_t size, uint64_t now_ns)
{
	const struct kept item = { .tool = tool, .text = malloc(size), .size = size };

	return keep_add(k, &item, now_ns);
}

static void keeps_for_ten_minutes(void)
{
	struct keep k = { 0 };

	TEST_STR(add(&k, NULL, 8, SECOND)->name, "s1");
	TEST_STR(add(&k, mcp_tool_at(0), 8, 2 * SECOND)->name, "c2");
	TEST_EQ(keep_find(&k, "s1", 600 * SECOND) != NULL, 1);
	TEST_EQ(keep_find(&k, "s1", 601 * SECOND) != NULL, 0);
	TEST_EQ(keep_find(&k, "c2", 601 * SECOND) != NULL, 1);
	TEST_EQ(keep_find(&k, "", 601 * SECOND) != NULL, 0);
	keep_deinit(&k);
}

static void keeps_what_fits(void)
{
	struct keep k = { 0 };

	TEST_EQ(add(&k, NULL, KEEP_BYTES_MAX + 1, 0) == NULL, 1);
	for (int i = 0; i < KEEP_ITEMS + 1; i++)
		add(&k, NULL, 8, 0);
	TEST_EQ(k.n, KEEP_ITEMS);
	TEST_EQ(keep_find(&k, "s1", 0) != NULL, 0);
	add(&k, NULL, KEEP_BYTES_MAX, 0);
	TEST_EQ(k.n, 1);
	TEST_EQ(k.bytes, KEEP_BYTES_MAX);
	keep_deinit(&k);
	TEST_EQ(k.bytes, 0);
}

static void stops_a_twentieth(void)
{
	static struct stops s;
	uint64_t now_ns = 1000 * SECOND;

	TEST_EQ(stops_wait_ms(&s, 7, now_ns), 0);
	stops_add(&s, 7, 2 * SECOND, now_ns);
	stops_add(&s, 8, 9 * SECOND, now_ns);
	TEST_EQ(stops_wait_ms(&s, 7, now_ns), 0);
	stops_add(&s, 7, SECOND, now_ns + 10 * SECOND);
	/* The first of the two leaves the minute fifty seconds later. */
	TEST_EQ(stops_wait_ms(&s, 7, now_ns + 10 * SECOND), 50000);
	TEST_EQ(stops_wait_ms(&s, 7, now_ns + 59 * SECOND), 1000);
	TEST_EQ(stops_wait_ms(&s, 7, now_ns + 60 * SECOND), 0);
	TEST_EQ(stops_wait_ms(&s, 9, now_ns), 0);
}

/* A report of a job may stop each process, and so has to wait for each. */
static void stops_of_a_job_count_for_all(void)
{
	static struct stops s;
	uint64_t now_ns = 1000 * SECOND;

	TEST_EQ(stops_wait_ms(&s, STOPS_ANY, now_ns), 0);
	stops_add(&s, 7, SECOND, now_ns);
	stops_add(&s, 8, 2 * SECOND, now_ns);
	TEST_EQ(stops_wait_ms(&s, STOPS_ANY, now_ns), 0);
	stops_add(&s, STOPS_ANY, SECOND, now_ns + 10 * SECOND);
	TEST_EQ(stops_wait_ms(&s, 7, now_ns + 10 * SECOND), 0);
	TEST_EQ(stops_wait_ms(&s, 8, now_ns + 10 * SECOND), 50000);
	TEST_EQ(stops_wait_ms(&s, STOPS_ANY, now_ns + 10 * SECOND), 50000);
	TEST_EQ(stops_wait_ms(&s, STOPS_ANY, now_ns + 60 * SECOND), 0);
}

TEST_SUITE(ctl_mcp, TEST(reads_messages), TEST(makes_commands), TEST(offers_what_is_allowed), TEST(cleans_texts),
	   TEST(escapes_in_json), TEST(cuts_long_lines), TEST(pages_end_with_lines), TEST(keeps_for_ten_minutes),
	   TEST(keeps_what_fits), TEST(stops_a_twentieth), TEST(stops_of_a_job_count_for_all));
