/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "protocol/agent_err.h"
#include "rpc_gen.h"
#include "testlib.h"

static void set_fills_and_returns_negative(void)
{
	struct agent_err err;

	TEST_EQ(agent_err_set(&err, RPC_ERROR_NOT_PERMITTED, EPERM, "ptrace seize", "become root",
			      "process %d", 7),
		-EPERM);
	TEST_EQ(err.code, RPC_ERROR_NOT_PERMITTED);
	TEST_EQ(err.err, EPERM);
	TEST_STR(err.op, "ptrace seize");
	TEST_STR(err.message, "process 7");
	TEST_STR(err.hint, "become root");
	CU_ASSERT_FALSE(err.has_resumed);
	TEST_EQ(agent_err_set(NULL, RPC_ERROR_BUSY, 0, NULL, NULL, "x"), -EPROTO);
	TEST_EQ(agent_err_set(NULL, RPC_ERROR_BUSY, EBUSY, NULL, NULL, "x"), -EBUSY);
}

/* The error may be rewritten from its own texts. */
static void set_may_quote_itself(void)
{
	struct agent_err err;

	agent_err_set(&err, RPC_ERROR_FAILED, EIO, "read", "wait", "inner");
	agent_err_set(&err, RPC_ERROR_BUSY, 0, err.op, err.hint, "outer: %s", err.message);
	TEST_STR(err.message, "outer: inner");
	TEST_STR(err.op, "read");
	TEST_STR(err.hint, "wait");
}

static void prepend_adds_context(void)
{
	struct agent_err err = { 0 };

	agent_err_prepend(&err, "nothing");
	TEST_EQ(err.code, 0);
	TEST_STR(err.message, "");
	agent_err_set(&err, RPC_ERROR_FAILED, EIO, NULL, NULL, "cannot read");
	agent_err_prepend(&err, "queue %d", 3);
	TEST_STR(err.message, "queue 3: cannot read");
	agent_err_prepend(NULL, "x");
}

/* Long texts are cut between characters, never inside one. */
static void long_texts_are_cut(void)
{
	char text[1001];
	struct agent_err err;

	for (size_t i = 0; i < 1000; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[1000] = '\0';
	agent_err_set(&err, RPC_ERROR_FAILED, 0, text, text, "x%s", text);
	TEST_EQ(strlen(err.message), 239);
	TEST_EQ(strlen(err.op), 30);
	TEST_EQ(strlen(err.hint), 238);
	agent_err_prepend(&err, "%s", text);
	TEST_EQ(strlen(err.message) <= 239, 1);
}

static const struct {
	struct agent_err err;
	const char *text;
} rows[] = {
	{ { .code = -32002, .err = EPERM, .op = "seize", .message = "no", .hint = "root" },
	  "{\"code\":-32002,\"message\":\"no\",\"data\":{\"name\":\"not_permitted\",\"errno\":\"EPERM\","
	  "\"op\":\"seize\",\"hint\":\"root\"}}" },
	{ { .code = -32005, .message = "late", .has_resumed = true, .resumed = true },
	  "{\"code\":-32005,\"message\":\"late\",\"data\":{\"name\":\"timeout\",\"resumed\":true}}" },
	{ { .code = -32005, .message = "soon", .retry_ms = 4294967295 },
	  "{\"code\":-32005,\"message\":\"soon\",\"data\":{\"name\":\"timeout\",\"retry_ms\":4294967295}}" },
	{ { .code = -32000, .err = 524, .vendor = -2, .message = "a \"b\"", .has_resumed = true },
	  "{\"code\":-32000,\"message\":\"a \\\"b\\\"\",\"data\":{\"name\":\"failed\",\"errno\":\"E524\","
	  "\"vendor\":-2,\"resumed\":false}}" },
	{ { .code = AGENT_ERR_UNREACHABLE, .err = ENOENT, .message = "none" },
	  "{\"code\":1,\"message\":\"none\",\"data\":{\"name\":\"unreachable\",\"errno\":\"ENOENT\"}}" },
};

static void errors_survive_the_wire(void)
{
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_out struct out o;
		struct agent_err back;

		out_init(&o, 0);
		agent_err_encode(&o, &rows[i].err);
		TEST_ROW_STR(i, o.data, rows[i].text);
		TEST_ROW_EQ(i, agent_err_decode_text(o.data, o.size, &back), 0);
		TEST_ROW_EQ(i, back.code, rows[i].err.code);
		TEST_ROW_EQ(i, back.err, rows[i].err.err);
		TEST_ROW_EQ(i, back.vendor, rows[i].err.vendor);
		TEST_ROW_STR(i, back.op, rows[i].err.op);
		TEST_ROW_STR(i, back.message, rows[i].err.message);
		TEST_ROW_STR(i, back.hint, rows[i].err.hint);
		TEST_ROW_EQ(i, back.has_resumed, rows[i].err.has_resumed);
		TEST_ROW_EQ(i, back.retry_ms, rows[i].err.retry_ms);
		TEST_ROW_EQ(i, back.resumed, rows[i].err.resumed);
	}
}

/* Errors of other servers: whatever can be used is used. */
static void foreign_errors_are_understood(void)
{
	static const struct {
		const char *text;
		int r;
		const char *message, *name;
	} foreign[] = {
		{ "{\"code\":-32601,\"message\":\"nope\"}", 0, "nope", "method_not_found" },
		{ "{\"code\":-32601}", 0, "method_not_found", "method_not_found" },
		{ "{\"code\":5,\"message\":3,\"data\":{\"errno\":7,\"op\":[],\"resumed\":1}}", 0,
		  "error", "error" },
		{ "{\"code\":-32601,\"data\":\"text\"}", 0, "method_not_found", "method_not_found" },
		{ "{\"message\":\"x\"}", -EINVAL },
		{ "{\"code\":\"x\"}", -EINVAL },
		{ "[]", -EINVAL },
		{ "null", -EINVAL },
		{ "{", -EINVAL },
	};

	for (size_t i = 0; i < TEST_COUNT(foreign); i++) {
		struct agent_err err;

		TEST_ROW_EQ(i, agent_err_decode_text(foreign[i].text, strlen(foreign[i].text), &err),
			    foreign[i].r);
		if (foreign[i].r)
			continue;
		TEST_ROW_STR(i, err.message, foreign[i].message);
		TEST_ROW_STR(i, agent_err_name(&err), foreign[i].name);
		TEST_ROW_EQ(i, err.err, 0);
		CU_ASSERT_FALSE(err.has_resumed);
	}
}

static void codes_have_exit_statuses(void)
{
	static const struct {
		int32_t code;
		int exit;
	} exits[] = { { RPC_ERROR_NO_SUCH_PROCESS, 3 }, { RPC_ERROR_NOT_PERMITTED, 4 },
		      { RPC_ERROR_NOT_DEBUGGABLE, 5 },	{ RPC_ERROR_BUSY, 6 },
		      { RPC_ERROR_TIMEOUT, 7 },		{ AGENT_ERR_UNREACHABLE, 9 },
		      { RPC_ERROR_INVALID_PARAMS, 2 },	{ RPC_ERROR_FAILED, 1 },
		      { 4711, 1 },			{ 0, 1 } };

	for (size_t i = 0; i < TEST_COUNT(exits); i++) {
		struct agent_err err = { .code = exits[i].code };

		TEST_ROW_EQ(i, agent_err_exit(&err), exits[i].exit);
	}
	CU_ASSERT_PTR_NULL(rpc_error_find(0));
	TEST_STR(rpc_error_find(-32700)->name, "parse_error");
}

TEST_SUITE(rpc_err, TEST(set_fills_and_returns_negative), TEST(set_may_quote_itself),
	   TEST(prepend_adds_context), TEST(long_texts_are_cut), TEST(errors_survive_the_wire),
	   TEST(foreign_errors_are_understood), TEST(codes_have_exit_statuses));
