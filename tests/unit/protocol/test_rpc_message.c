/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "protocol/rpc_editor.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"
#include "testlib.h"

/* "id method params" of every request, or its error. */
static void describe(const char *text, struct out *o)
{
	struct rpc_message m;
	struct agent_err err;
	char *body = test_tail_dup(text, strlen(text));
	int r = rpc_message_parse(body, strlen(text), &m, &err);

	out_str(o, m.batch ? "batch" : "");
	if (r < 0)
		out_fmt(o, "error %d %s", (int)err.code, err.message);
	for (size_t i = 0; !r && i < m.n; i++) {
		const struct rpc_request *q = &m.requests[i];

		out_fmt(o, "%s<%.*s ", rpc_request_wants_reply(q) ? "" : "silent", (int)q->id_size,
			q->id ? q->id : "");
		if (q->code)
			out_fmt(o, "%d %s>", (int)q->code, q->problem);
		else
			out_fmt(o, "%s %.*s>", q->method, (int)q->params_size,
				q->params ? q->params : "");
	}
	rpc_message_deinit(&m);
}

struct row {
	const char *text, *want;
};

static void walk(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		auto_out struct out o;

		out_init(&o, 0);
		describe(rows[i].text, &o);
		TEST_ROW_STR(i, o.data, rows[i].want);
	}
}

#define V "\"jsonrpc\":\"2.0\""

static void requests_are_taken_apart(void)
{
	static const struct row rows[] = {
		{ "{" V ",\"id\":1,\"method\":\"a.b\"}", "<1 a.b >" },
		{ "{" V ",\"id\":\"x y\",\"method\":\"a.b\",\"params\":{\"p\": 1}}",
		  "<\"x y\" a.b {\"p\": 1}>" },
		{ "{" V ",\"id\":null,\"method\":\"a.b\"}", "<null a.b >" },
		{ "{" V ",\"id\":-1.5e3,\"method\":\"a.b\"}", "<-1.5e3 a.b >" },
		{ "{" V ",\"method\":\"a.b\"}", "silent< a.b >" },
		{ "{" V ",\"id\":1,\"method\":\"a.b\",\"params\":[]}", "<1 a.b >" },
		{ "{" V ",\"id\":1,\"method\":\"a.b\",\"params\":[ ]}", "<1 a.b >" },
		{ "{" V ",\"id\":1,\"method\":\"a.b\",\"params\":null}", "<1 a.b >" },
		{ " {\"method\":\"\\u0061.b\",\"id\":1,\"extra\":[{}],\"json\\u0072pc\":\"2\\u002e0\"} \n",
		  "<1 a.b >" },
		{ "{" V ",\"method\":\"$/cancelRequest\",\"params\":{\"id\":3}}",
		  "silent< $/cancelRequest {\"id\":3}>" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void bad_requests_say_why(void)
{
	static const struct row rows[] = {
		{ "{\"id\":1,\"method\":\"a.b\"}", "<1 -32600 jsonrpc must be \"2.0\">" },
		{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"a\"}", "<1 -32600 jsonrpc must be \"2.0\">" },
		{ "{" V ",\"id\":1}", "<1 -32600 method must be a string>" },
		{ "{" V ",\"method\":1,\"params\":\"bar\"}", "< -32600 method must be a string>" },
		{ "{" V ",\"id\":{},\"method\":\"a\"}",
		  "< -32600 id must be a string of at most 256 bytes, a number or null>" },
		{ "{" V ",\"id\":true,\"method\":\"a\"}",
		  "< -32600 id must be a string of at most 256 bytes, a number or null>" },
		{ "{" V ",\"id\":1,\"id\":2,\"method\":\"a\"}", "<2 -32600 a member is given twice>" },
		{ "{" V ",\"id\":1,\"method\":\"a\",\"params\":3}",
		  "<1 -32600 params must be an object>" },
		{ "{" V ",\"id\":1,\"method\":\"a\",\"params\":[1]}",
		  "<1 -32602 params: positional parameters are not supported>" },
		{ "{" V ",\"method\":\"a\",\"params\":[1]}",
		  "silent< -32602 params: positional parameters are not supported>" },
		{ "{" V ",\"id\":1,\"method\":\"gpu.queues\\u0000x\"}",
		  "<1 -32601 no method has a name longer than 63 bytes or with a NUL character>" },
		{ "{}", "< -32600 jsonrpc must be \"2.0\">" },
		{ "1", "< -32600 a request must be an object>" },
		{ "\"x\"", "< -32600 a request must be an object>" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void broken_json_is_a_parse_error(void)
{
	static const struct row rows[] = {
		{ "", "error -32700 not valid JSON at byte 0: the text ends too early" },
		{ "{", "error -32700 not valid JSON at byte 1: the text ends too early" },
		{ "{" V "} x", "error -32700 not valid JSON at byte 18: something follows the value" },
		{ "{\"a\":\"\xff\"}", "error -32700 not valid JSON at byte 6: a string is not UTF-8" },
		{ "{\"a\":NaN}", "error -32700 not valid JSON at byte 5: a value was expected" },
		{ "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "batcherror -32700 not valid JSON at byte 32: nested too deeply" },
		{ "[{" V ",\"method\":\"a\"},{", "batcherror -32700 not valid JSON at byte 33: the text ends too early" },
	};

	walk(rows, TEST_COUNT(rows));
}

static void batches_keep_their_order(void)
{
	static const struct row rows[] = {
		{ "[]", "batcherror -32600 an empty batch" },
		{ "[1,2]", "batch< -32600 a request must be an object>< -32600 a request must be an object>" },
		{ "[{" V ",\"id\":1,\"method\":\"a\"},{" V ",\"method\":\"b\"},[]]",
		  "batch<1 a >silent< b >< -32600 a request must be an object>" },
	};
	auto_out struct out o;
	struct rpc_message m;
	struct agent_err err;

	walk(rows, TEST_COUNT(rows));
	for (size_t n = 1; n <= RPC_BATCH_MAX + 1; n++) {
		out_init(&o, 0);
		for (size_t i = 0; i < n; i++)
			out_fmt(&o, "%c{" V ",\"id\":%zu,\"method\":\"m\"}", i ? ',' : '[', i);
		out_char(&o, ']');
		if (n <= RPC_BATCH_MAX) {
			TEST_ROW_EQ(n, rpc_message_parse(o.data, o.size, &m, &err), 0);
			TEST_ROW_EQ(n, m.n, n);
			TEST_ROW_EQ(n, atoi(m.requests[n - 1].id), n - 1);
		} else {
			TEST_ROW_EQ(n, rpc_message_parse(o.data, o.size, &m, &err), -EINVAL);
			TEST_STR(err.message, "a batch may hold 64 requests");
		}
		rpc_message_deinit(&m);
		out_deinit(&o);
	}
}

static void bad_requests_have_an_error_object(void)
{
	auto_out struct out o;
	struct rpc_message m;
	struct agent_err err;
	static const char text[] = "{" V ",\"id\":7,\"method\":\"a\",\"params\":[1]}";

	out_init(&o, 0);
	TEST_EQ_FATAL(rpc_message_parse(text, sizeof(text) - 1, &m, &err), 0);
	rpc_request_error(&m.requests[0], &err);
	rpc_message_error(&o, m.requests[0].id, m.requests[0].id_size, &err);
	TEST_STR(o.data, "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32602,\"message\":"
			 "\"params: positional parameters are not supported\",\"data\":{\"name\":"
			 "\"invalid_params\",\"hint\":\"send an object with the names of the "
			 "parameters\"}}}");
	rpc_message_deinit(&m);
}

static void replies_are_told_apart(void)
{
	static const struct {
		const char *text;
		int r, kind;
		const char *value;
	} rows[] = {
		{ "{" V ",\"id\":1,\"result\":{\"a\": [1]}}", 0, RPC_REPLY_RESULT, "{\"a\": [1]}" },
		{ "{" V ",\"id\":1,\"error\":{\"code\":1}}", 0, RPC_REPLY_ERROR, "{\"code\":1}" },
		{ "{" V ",\"method\":\"x.y\",\"params\":{}}", 0, RPC_REPLY_NOTIFICATION, "{}" },
		{ "{" V ",\"method\":\"x.y\"}", 0, RPC_REPLY_NOTIFICATION, "" },
		{ "{" V ",\"id\":1}", -EINVAL },
		{ "{" V ",\"id\":1,\"result\":1,\"error\":{}}", -EINVAL },
		{ "{" V ",\"id\":1,\"method\":\"x\",\"result\":1}", -EINVAL },
		{ "{" V ",\"result\":1}", -EINVAL },
		{ "{\"id\":1,\"result\":1}", -EINVAL },
		{ "[]", -EINVAL },
		{ "{" V ",\"id\":1,\"result\":1}x", -EINVAL },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);
		struct rpc_reply reply;
		char value[64];

		TEST_ROW_EQ(i, rpc_reply_parse(test_tail_dup(rows[i].text, size), size, &reply),
			    rows[i].r);
		if (rows[i].r)
			continue;
		TEST_ROW_EQ(i, reply.kind, rows[i].kind);
		snprintf(value, sizeof(value), "%.*s", (int)reply.value_size,
			 reply.value ? reply.value : "");
		TEST_ROW_STR(i, value, rows[i].value);
	}
}

static void texts_are_written(void)
{
	auto_out struct out o;

	out_init(&o, 0);
	rpc_message_request(&o, 3, "a.\"b", "{\"p\":1}", 7);
	TEST_STR(o.data, "{" V ",\"id\":3,\"method\":\"a.\\\"b\",\"params\":{\"p\":1}}");
	out_reset(&o);
	rpc_message_request(&o, 3, "a", NULL, 0);
	TEST_STR(o.data, "{" V ",\"id\":3,\"method\":\"a\"}");
	out_reset(&o);
	rpc_message_result(&o, NULL, 0, "[1]", 3);
	TEST_STR(o.data, "{" V ",\"id\":null,\"result\":[1]}");
	out_reset(&o);
	rpc_message_notification(&o, "x.y", "", 0);
	TEST_STR(o.data, "{" V ",\"method\":\"x.y\",\"params\":{}}");
	out_reset(&o);
	rpc_message_error(&o, "\"i\"", 3, NULL);
	TEST_STR(o.data, "{" V ",\"id\":\"i\",\"error\":{\"code\":-32603,\"message\":\"the agent did "
			 "not say what went wrong\",\"data\":{\"name\":\"internal\"}}}");
}

static void requests_of_editors_are_no_json_rpc(void)
{
	static const struct {
		const char *text, *seq, *command; /* NULL: it is none */
	} rows[] = {
		{ "{\"seq\":1,\"type\":\"request\",\"command\":\"initialize\"}", "1", "\"initialize\"" },
		{ " {\"arguments\":{\"type\":[1]},\"command\":\"\\u0061\",\"\\u0074ype\":\"reques\\u0074\",\"seq\":-2.5e1} ",
		  "-2.5e1", "\"\\u0061\"" },
		{ "{\"seq\":1,\"type\":\"request\",\"command\":\"a\"", NULL, NULL },
		{ "{\"seq\":1,\"type\":\"request\",\"command\":\"a\"}{}", NULL, NULL },
		{ "[{\"seq\":1,\"type\":\"request\",\"command\":\"a\"}]", NULL, NULL },
		{ "{\"seq\":\"1\",\"type\":\"request\",\"command\":\"a\"}", NULL, NULL },
		{ "{\"seq\":1,\"type\":\"event\",\"command\":\"a\"}", NULL, NULL },
		{ "{\"seq\":1,\"type\":null,\"command\":\"a\"}", NULL, NULL },
		{ "{\"seq\":1,\"type\":\"request\",\"command\":[\"a\"]}", NULL, NULL },
		{ "{\"seq\":1,\"type\":\"request\"}", NULL, NULL },
		{ "{\"type\":\"request\",\"command\":\"a\"}", NULL, NULL },
		{ "{\"seq\":1,\"type\":\"request\",\"command\":\"a\"," V "}", NULL, NULL },
		{ "\"request\"", NULL, NULL },
		{ "", NULL, NULL },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);
		struct rpc_editor_request q = { 0 };
		char got[32];
		bool is = rpc_editor_request_parse(test_tail_dup(rows[i].text, size), size, &q);

		TEST_ROW_EQ(i, is, rows[i].seq != NULL);
		if (!is)
			continue;
		snprintf(got, sizeof(got), "%.*s", (int)q.seq_size, q.seq);
		TEST_ROW_STR(i, got, rows[i].seq);
		snprintf(got, sizeof(got), "%.*s", (int)q.command_size, q.command);
		TEST_ROW_STR(i, got, rows[i].command);
	}
}

TEST_SUITE(rpc_message, TEST(requests_of_editors_are_no_json_rpc), TEST(requests_are_taken_apart),
	   TEST(bad_requests_say_why), TEST(broken_json_is_a_parse_error),
	   TEST(batches_keep_their_order), TEST(bad_requests_have_an_error_object),
	   TEST(replies_are_told_apart), TEST(texts_are_written));
