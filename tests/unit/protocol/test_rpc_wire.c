/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "protocol/rpc_wire.h"
#include "testlib.h"

#define BODY_MAX 32

/* Feed everything in pieces of that size, and write down what comes out. */
static void run(const char *input, size_t size, size_t piece, struct out *log)
{
	struct rpc_wire w;
	const char *body;
	size_t n;
	int r = 0;

	rpc_wire_init(&w, BODY_MAX);
	for (size_t at = 0; at < size && r >= 0; at += piece) {
		size_t left = size - at < piece ? size - at : piece;

		TEST_EQ(rpc_wire_feed(&w, test_tail_dup(input + at, left), left), 0);
		while ((r = rpc_wire_next(&w, &body, &n)) > 0) {
			if (r == RPC_WIRE_TOO_LARGE)
				out_str(log, "LARGE|");
			else
				out_fmt(log, "%.*s|", (int)n, body);
		}
		TEST_EQ_FATAL(w.size - w.head <= RPC_WIRE_HEADER_MAX + left, 1);
	}
	if (r >= 0) {
		r = rpc_wire_finish(&w, &body, &n);
		if (r == RPC_WIRE_BODY)
			out_fmt(log, "%.*s|", (int)n, body);
	}
	if (r < 0) {
		out_fmt(log, "FATAL %s", rpc_wire_problem(&w));
		TEST_EQ(rpc_wire_next(&w, &body, &n), -EPROTO);
	}
	rpc_wire_deinit(&w);
}

struct row {
	const char *input, *want;
};

/* Whatever the sizes of the pieces, the same messages come out. */
static void walk(const struct row *rows, size_t n)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 4096 };

	for (size_t i = 0; i < n; i++)
		for (size_t p = 0; p < TEST_COUNT(pieces); p++) {
			auto_out struct out log;

			out_init(&log, 0);
			out_str(&log, "");
			run(rows[i].input, strlen(rows[i].input), pieces[p], &log);
			TEST_ROW_STR(i, log.data, rows[i].want);
		}
}

static void lines_become_messages(void)
{
	static const struct row rows[] = {
		{ "{}\n", "{}|" },
		{ "{}\n[1]\n", "{}|[1]|" },
		{ "{}\r\n{\"a\":1}\r\n", "{}|{\"a\":1}|" },
		{ "\n \r\n\t\n{}\n\n", "{}|" },
		{ " {}\n", " {}|" },
		{ "{}", "{}|" },
		{ "{}\n{\"x\"", "{}|{\"x\"|" },
		{ "{}\n  \t", "{}|" },
		{ "GET / HTTP/1.0\n", "GET / HTTP/1.0|" },
		{ "", "" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void long_lines_are_skipped(void)
{
	static const struct row rows[] = {
		{ "{0123456789012345678901234567890}\n{}\n", "LARGE|{}|" },
		{ "{}\n{0123456789012345678901234567890123456789012345678901234567890123456789}\n{}\n",
		  "{}|LARGE|{}|" },
		{ "{012345678901234567890123456789}\n", "{012345678901234567890123456789}|" },
		{ "{0123456789012345678901234567890123456789", "LARGE|" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void headers_become_messages(void)
{
	static const struct row rows[] = {
		{ "Content-Length: 2\r\n\r\n{}", "{}|" },
		{ "content-length:2\r\n\r\n{}CONTENT-LENGTH: 3 \r\n\r\n[1]", "{}|[1]|" },
		{ "Content-Type: x; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}", "{}|" },
		{ "Content-Length: 2\n\n{}", "{}|" },
		{ "Content-Length: 3\r\n\r\n{\n}Content-Length: 2\r\nX-More: 1\r\n\r\n[]", "{\n}|[]|" },
		{ "Content-Length: 33\r\n\r\n012345678901234567890123456789012Content-Length: 2\r\n\r\n{}",
		  "LARGE|{}|" },
		{ "Content-Length: 0\r\n\r\n", "|" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void bad_headers_are_fatal(void)
{
	static const struct row rows[] = {
		{ "Content-Type: x\r\n\r\n{}", "FATAL Content-Length is missing" },
		{ "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		  "FATAL Content-Length is given twice" },
		{ "Content-Length: -1\r\n\r\n", "FATAL Content-Length is not a number" },
		{ "Content-Length: 0x10\r\n\r\n", "FATAL Content-Length is not a number" },
		{ "Content-Length:\r\n\r\n", "FATAL Content-Length is not a number" },
		{ "Content-Length: 99999999999999999999\r\n\r\n",
		  "FATAL Content-Length is not a number" },
		{ "Content-Length: 67108865\r\n\r\n", "FATAL Content-Length is larger than 64 MiB" },
		{ "Content-Length 2\r\n\r\n", "FATAL a header line has no name and colon" },
		{ "Content-Length: 2\r\n\r\n{}{}\r\n\r\n", "{}|FATAL a header line has no name and colon" },
		{ "Content-Length: 2\r\n", "FATAL the connection ended inside a header" },
		{ "Content-Length: 2\r\n\r\n{", "FATAL the connection ended inside a body" },
		{ "Content-Length: 40\r\n\r\n{", "LARGE|FATAL the connection ended inside a body" },
		{ "c", "FATAL the connection ended inside a header" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void long_header_blocks_are_fatal(void)
{
	auto_free char *input = malloc(RPC_WIRE_HEADER_MAX + 2);
	static const size_t pieces[] = { 1, 100, 8192 };

	memset(input, 'x', RPC_WIRE_HEADER_MAX + 1);
	input[0] = 'c';
	input[RPC_WIRE_HEADER_MAX + 1] = '\0';
	for (size_t i = 0; i < TEST_COUNT(pieces); i++) {
		auto_out struct out log;

		out_init(&log, 0);
		run(input, RPC_WIRE_HEADER_MAX + 1, pieces[i], &log);
		TEST_ROW_STR(i, log.data, "FATAL the headers are longer than 4096 bytes");
	}
}

/* A line without an end is followed for 64 MiB, without being kept. */
static void endless_lines_are_fatal(void)
{
	static char chunk[1 << 20];
	struct rpc_wire w;
	const char *body;
	size_t size;
	unsigned n_large = 0;
	int r = 0;

	memset(chunk, 'x', sizeof(chunk));
	rpc_wire_init(&w, 0);
	for (unsigned i = 0; i < 80 && r >= 0; i++) {
		TEST_EQ_FATAL(rpc_wire_feed(&w, chunk, sizeof(chunk)), 0);
		while ((r = rpc_wire_next(&w, &body, &size)) > 0)
			n_large += r == RPC_WIRE_TOO_LARGE;
		TEST_EQ_FATAL(w.capacity <= 4 * sizeof(chunk), 1);
	}
	TEST_EQ(r, -EPROTO);
	TEST_EQ(n_large, 1);
	TEST_STR(rpc_wire_problem(&w), "a line is longer than 64 MiB");
	rpc_wire_deinit(&w);
}

/* A client that has said something large keeps no memory while it is silent. */
static void idle_connections_keep_nothing(void)
{
	static char line[100000];
	struct rpc_wire w;
	const char *body;
	size_t size;

	memset(line, ' ', sizeof(line));
	line[0] = '{';
	line[sizeof(line) - 2] = '}';
	line[sizeof(line) - 1] = '\n';
	rpc_wire_init(&w, 0);
	TEST_EQ(rpc_wire_feed(&w, line, sizeof(line)), 0);
	TEST_EQ(rpc_wire_next(&w, &body, &size), RPC_WIRE_BODY);
	TEST_EQ(size, sizeof(line) - 1);
	TEST_EQ(rpc_wire_next(&w, &body, &size), 0);
	TEST_EQ(w.capacity, 0);
	rpc_wire_deinit(&w);
}

static void replies_are_framed_in_kind(void)
{
	static const struct {
		enum rpc_wire_mode mode;
		const char *want;
	} rows[] = { { RPC_WIRE_UNKNOWN, "{}\n" },
		     { RPC_WIRE_LINES, "{}\n" },
		     { RPC_WIRE_HEADERS, "Content-Length: 2\r\n\r\n{}" } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o;

		out_init(&o, 0);
		rpc_wire_write(&o, rows[i].mode, "{}", 2);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

TEST_SUITE(rpc_wire, TEST(lines_become_messages), TEST(long_lines_are_skipped),
	   TEST(headers_become_messages), TEST(bad_headers_are_fatal),
	   TEST(long_header_blocks_are_fatal), TEST(endless_lines_are_fatal),
	   TEST(idle_connections_keep_nothing), TEST(replies_are_framed_in_kind));
