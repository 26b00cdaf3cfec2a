/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "protocol/rpc_codec.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"
#include "testlib.h"

/* A structure with one member of every kind, to reach what the schema does not use today. */
struct leaf {
	uint32_t id;
	size_t n_below;
	struct leaf *below;
};

extern const struct rpc_struct leaf_struct;

static const struct rpc_member leaf_members[] = {
	{ .name = "id", .kind = RPC_KIND_U32, .offset = offsetof(struct leaf, id), .max = UINT32_MAX },
	{ .name = "below",
	  .kind = RPC_KIND_STRUCT,
	  .array = true,
	  .offset = offsetof(struct leaf, below),
	  .n_offset = offsetof(struct leaf, n_below),
	  .max_items = 2,
	  .structure = &leaf_struct },
};

const struct rpc_struct leaf_struct = { "leaf", leaf_members, 2, sizeof(struct leaf) };

static const struct rpc_enum_value color_values[] = { { "red", 0, "" }, { "blue", 4294967295, "" } };
static const struct rpc_enum color_enum = { "color", color_values, 2 };

struct all {
	bool has_flag;
	bool flag;
	uint32_t u32;
	bool has_u64;
	uint64_t u64;
	bool has_i64;
	int64_t i64;
	bool has_hex;
	uint64_t hex;
	const char *text;
	const char *json;
	bool has_color;
	uint32_t color;
	bool has_leaf;
	struct leaf leaf;
	bool has_texts;
	size_t n_texts;
	const char **texts;
};

#define OPTIONAL(field)                                                                            \
	.optional = true, .has_flag = true, .has_offset = offsetof(struct all, has_##field),       \
	.name = #field, .offset = offsetof(struct all, field)

static const struct rpc_member all_members[] = {
	{ OPTIONAL(flag), .kind = RPC_KIND_BOOL },
	{ .name = "u32", .offset = offsetof(struct all, u32), .kind = RPC_KIND_U32, .min = 1, .max = 10 },
	{ OPTIONAL(u64), .kind = RPC_KIND_U64, .max = UINT64_MAX },
	{ OPTIONAL(i64), .kind = RPC_KIND_I64, .min = (uint64_t)INT64_MIN, .max = INT64_MAX },
	{ OPTIONAL(hex), .kind = RPC_KIND_HEX64 },
	{ .name = "text", .offset = offsetof(struct all, text), .kind = RPC_KIND_STRING,
	  .optional = true, .max_length = 4 },
	{ .name = "json", .offset = offsetof(struct all, json), .kind = RPC_KIND_JSON,
	  .optional = true },
	{ OPTIONAL(color), .kind = RPC_KIND_ENUM, .enumeration = &color_enum },
	{ OPTIONAL(leaf), .kind = RPC_KIND_STRUCT, .structure = &leaf_struct },
	{ OPTIONAL(texts), .kind = RPC_KIND_STRING, .array = true, .max_items = 3, .max_length = 2,
	  .n_offset = offsetof(struct all, n_texts) },
};

static const struct rpc_struct all_struct = { "all", all_members, TEST_COUNT(all_members),
					      sizeof(struct all) };

static int decode(const char *text, bool strict, struct rpc_arena *arena, struct all *ret,
		  struct agent_err *err)
{
	struct json_object *obj = NULL;
	struct rpc_decoder d;
	size_t size = strlen(text);
	int r;

	*err = (struct agent_err){ 0 };
	r = rpc_json_parse(test_tail_dup(text, size), size, &obj, err);
	if (strict)
		rpc_decoder_init_strict(&d, arena, err);
	else
		rpc_decoder_init_lenient(&d, "result", arena, err);
	if (!r)
		r = rpc_decode_struct(&d, &all_struct, obj, ret);
	rpc_json_put(obj);
	return r;
}

/* What is decoded and encoded again is the same text. */
static void good_values_come_back(void)
{
	static const char *const rows[] = {
		"{\"u32\":1}",
		"{\"flag\":true,\"u32\":10}",
		"{\"flag\":false,\"u32\":2,\"u64\":18446744073709551615,\"i64\":-9223372036854775808}",
		"{\"u32\":2,\"u64\":0,\"i64\":9223372036854775807,\"hex\":\"0xffffffffffffffff\"}",
		"{\"u32\":2,\"text\":\"a\\\"b\",\"json\":{\"x\":[1.50,null]}}",
		"{\"u32\":2,\"text\":\"\xc3\xa9\",\"json\":null}",
		"{\"u32\":2,\"text\":\"\",\"color\":\"blue\"}",
		("{\"u32\":2,\"leaf\":{\"id\":1,\"below\":[{\"id\":2,\"below\":[]},{\"id\":3,\"below\":"
		 "[{\"id\":4,\"below\":[]}]}]}}"),
		"{\"u32\":2,\"texts\":[]}",
		"{\"u32\":2,\"texts\":[\"a\",\"\",\"bc\"]}",
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o;
		struct agent_err err;
		struct all all;

		rpc_arena_init(&arena, 0);
		out_init(&o, 0);
		TEST_ROW_EQ(i, decode(rows[i], true, &arena, &all, &err), 0);
		TEST_ROW_STR(i, err.message, "");
		rpc_encode_struct(&o, &all_struct, &all);
		TEST_ROW_STR(i, o.data, rows[i]);
	}
}

static void bad_values_are_named(void)
{
	static const struct {
		const char *text, *message, *hint;
	} rows[] = {
		{ "{}", "params: \"u32\" is missing", "" },
		{ "[]", "params: must be an object, not an array", "" },
		{ "{\"u32\":0}", "params.u32: must be between 1 and 10, not 0", "" },
		{ "{\"u32\":-1}", "params.u32: must be between 1 and 10, not -1", "" },
		{ "{\"u32\":11}", "params.u32: must be between 1 and 10, not 11", "" },
		{ "{\"u32\":\"1\"}", "params.u32: must be an integer, not a string", "" },
		{ "{\"u32\":1.0}", "params.u32: must be an integer, not a fraction", "" },
		{ "{\"u32\":1e0}", "params.u32: must be an integer, not a fraction", "" },
		{ "{\"u32\":null}", "params.u32: must be an integer, not null", "" },
		{ "{\"u32\":true}", "params.u32: must be an integer, not a boolean", "" },
		{ "{\"u32\":1,\"u64\":-1}",
		  "params.u64: must be between 0 and 18446744073709551615, not -1", "" },
		{ "{\"u32\":1,\"i64\":9223372036854775808}",
		  "params.i64: must be between -9223372036854775808 and 9223372036854775807", "" },
		{ "{\"u32\":1,\"u64\":18446744073709551616}",
		  "not valid JSON: an integer has more than 64 bits", "" },
		{ "{\"u32\":1,\"flag\":1}", "params.flag: must be true or false, not an integer", "" },
		{ "{\"u32\":1,\"hex\":17}",
		  "params.hex: must be a string such as \"0x7f00\", not an integer",
		  "64-bit values travel as strings" },
		{ "{\"u32\":1,\"hex\":\"17\"}", "params.hex: must be 0x and 1 to 16 hexadecimal digits", "" },
		{ "{\"u32\":1,\"hex\":\"0x\"}", "params.hex: must be 0x and 1 to 16 hexadecimal digits", "" },
		{ "{\"u32\":1,\"hex\":\"0x1\\u0000\"}",
		  "params.hex: must be 0x and 1 to 16 hexadecimal digits", "" },
		{ "{\"u32\":1,\"hex\":\"0x10000000000000000\"}",
		  "params.hex: must be 0x and 1 to 16 hexadecimal digits", "" },
		{ "{\"u32\":1,\"text\":\"abcde\"}", "params.text: must have at most 4 bytes, not 5", "" },
		{ "{\"u32\":1,\"text\":\"a\\u0000b\"}", "params.text: must not contain a NUL character", "" },
		{ "{\"u32\":1,\"text\":7}", "params.text: must be a string, not an integer", "" },
		{ "{\"u32\":1,\"text\":null}", "params.text: must be a string, not null", "" },
		{ "{\"u32\":1,\"color\":\"green\"}", "params.color: must be the name of a color",
		  "one of: red, blue" },
		{ "{\"u32\":1,\"color\":0}", "params.color: must be the name of a color",
		  "one of: red, blue" },
		{ "{\"u32\":1,\"leaf\":[]}", "params.leaf: must be an object, not an array", "" },
		{ "{\"u32\":1,\"leaf\":{\"id\":1,\"below\":[{\"id\":2,\"below\":[]},{\"id\":3,\"below\":"
		  "[{\"id\":-4}]}]}}",
		  "params.leaf.below[1].below[0].id: must be between 0 and 4294967295, not -4", "" },
		{ "{\"u32\":1,\"leaf\":{\"id\":1,\"below\":[1]}}",
		  "params.leaf.below[0]: must be an object, not an integer", "" },
		{ "{\"u32\":1,\"leaf\":{\"id\":1,\"below\":[{},{},{}]}}",
		  "params.leaf.below: must have at most 2 items, not 3", "" },
		{ "{\"u32\":1,\"texts\":{}}", "params.texts: must be an array, not an object", "" },
		{ "{\"u32\":1,\"texts\":[\"a\",\"abc\"]}", "params.texts[1]: must have at most 2 bytes, not 3",
		  "" },
		{ "{\"u32\":1,\"u23\":1}", "params: unknown member \"u23\"",
		  "known: u32, flag" },
		{ "{\"u32\":1,\"leaf\":{\"id\":1,\"below\":[],\"x\":0}}",
		  "params.leaf: unknown member \"x\"", "known: id, below" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct agent_err err;
		struct all all;

		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, decode(rows[i].text, true, &arena, &all, &err), -EINVAL);
		TEST_ROW_STR(i, err.message, rows[i].message);
		if (strncmp(rows[i].hint, "known: u32", 10))
			TEST_ROW_STR(i, err.hint, rows[i].hint);
		else
			TEST_ROW_STR(i, err.hint,
				     "known: flag, u32, u64, i64, hex, text, json, color, leaf, texts");
	}
}

static void replies_may_say_more(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err;
	struct all all;

	rpc_arena_init(&arena, 0);
	TEST_EQ(decode("{\"u32\":7,\"new\":[1,{}]}", false, &arena, &all, &err), 0);
	TEST_EQ(all.u32, 7);
	TEST_EQ(decode("{\"u32\":77}", false, &arena, &all, &err), -EINVAL);
	TEST_STR(err.message, "result.u32: must be between 1 and 10, not 77");
}

/* What the schema cannot express is written so that readers refuse it, never as wrong data. */
static void wrong_values_are_visible(void)
{
	struct all all = { .u32 = 1, .has_color = true, .color = 5, .has_texts = true, .n_texts = 1,
			   .texts = (const char *[]){ NULL } };
	auto_out struct out o;

	out_init(&o, 0);
	rpc_encode_struct(&o, &all_struct, &all);
	TEST_STR(o.data, "{\"u32\":1,\"color\":null,\"texts\":[\"\"]}");
}

static void memory_is_limited(void)
{
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err;
	struct all all;

	rpc_arena_init(&arena, 32);
	TEST_EQ(decode("{\"u32\":1,\"json\":\"0123456789012345678901234567890123456789012345678901234567"
		       "89\"}", true, &arena, &all, &err),
		-EFBIG);
	TEST_EQ(err.code, RPC_ERROR_TOO_LARGE);
}

static void enums_have_names(void)
{
	enum rpc_queue_type type;

	TEST_STR(rpc_queue_type_name(RPC_QUEUE_TYPE_COMPUTE_AQL), "compute_aql");
	TEST_STR(rpc_queue_type_name(RPC_QUEUE_TYPE_UNKNOWN), "unknown");
	CU_ASSERT_PTR_NULL(rpc_queue_type_name(1000));
	TEST_EQ(rpc_queue_type_parse("unknown", &type), 0);
	TEST_EQ(type, RPC_QUEUE_TYPE_UNKNOWN);
	TEST_EQ(rpc_queue_type_parse("", &type), -EINVAL);
}

static void methods_are_found(void)
{
	for (int m = 0; m < RPC_METHOD_COUNT; m++)
		TEST_ROW_EQ(m, rpc_method_find(rpc_methods[m].name), m);
	TEST_EQ(rpc_method_find("gpu.queue"), -ENOENT);
	TEST_EQ(rpc_method_find(""), -ENOENT);
	TEST_EQ(rpc_method_find("~"), -ENOENT);
}

static void params_of_methods_are_checked(void)
{
	static const struct {
		enum rpc_method m;
		const char *text, *message, *session;
	} rows[] = {
		{ RPC_METHOD_GPU_QUEUES, "{\"session\":\"s1\"}", "", "s1" },
		{ RPC_METHOD_GPU_QUEUES, "", "params: \"session\" is missing" },
		{ RPC_METHOD_AGENT_STATUS, "", "", NULL },
		{ RPC_METHOD_AGENT_STATUS, "{}", "", NULL },
		{ RPC_METHOD_AGENT_STATUS, "{\"x\":1}", "params: unknown member \"x\"" },
		{ RPC_METHOD_AGENT_STATUS, "{", "params: not valid JSON: the text ends too early" },
		{ RPC_METHOD_AGENT_STATUS, "[]", "params: must be an object, not an array" },
		{ RPC_METHOD_SESSION_ATTACH, "{\"pid\":0}",
		  "params.pid: must be between 1 and 4194304, not 0" },
		{ RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s\",\"queues\":[0,-1]}",
		  "params.queues[1]: must be between 0 and 4294967295, not -1" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		struct agent_err err = { 0 };
		void *params = NULL;

		rpc_arena_init(&arena, 0);
		TEST_ROW_EQ(i, rpc_params_decode(rows[i].m, rows[i].text, strlen(rows[i].text),
						 &arena, &params, &err) < 0,
			    *rows[i].message != '\0');
		TEST_ROW_STR(i, err.message, rows[i].message);
		if (*rows[i].message)
			TEST_ROW_EQ(i, err.code, RPC_ERROR_INVALID_PARAMS);
		else
			TEST_ROW_STR(i, rpc_params_session(rows[i].m, params), rows[i].session);
	}
}

static int answer;

static int session_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_session_list_params *params,
			struct rpc_session_list_result *ret, struct agent_err *err)
{
	CU_ASSERT_PTR_EQUAL(ctx, &answer);
	if (answer)
		return answer;
	ret->n_sessions = 1;
	ret->sessions = rpc_arena_array(arena, 1, sizeof(*ret->sessions));
	ret->sessions[0] = (struct rpc_session_info){ .session = "s1", .pid = 7, .comm = "\xff",
						      .has_vendor = true,
						      .vendor = RPC_VENDOR_AMD };
	return 0;
}

static void dispatch_calls_the_handler(void)
{
	static const struct rpc_front_handlers handlers = { .session_list = session_list };
	static const struct {
		enum rpc_method m;
		int answer, r;
		int32_t code;
		const char *text;
	} rows[] = {
		{ RPC_METHOD_SESSION_LIST, 0, 0, 0,
		  "{\"sessions\":[{\"session\":\"s1\",\"pid\":7,\"uid\":0,\"comm\":\"\xef\xbf\xbd\",\"vendor\":"
		  "\"amd\",\"readers\":0,\"suspends\":0,\"suspended_us\":0,\"age_ms\":0}]}" },
		{ RPC_METHOD_SESSION_LIST, RPC_LATER, RPC_LATER, 0, "" },
		{ RPC_METHOD_SESSION_LIST, -EIO, -EIO, RPC_ERROR_INTERNAL, "session.list failed" },
		{ RPC_METHOD_AGENT_STATUS, 0, -EOPNOTSUPP, RPC_ERROR_UNSUPPORTED,
		  "agent.status is not available here" },
		{ RPC_METHOD_GPU_QUEUES, 0, -EOPNOTSUPP, RPC_ERROR_UNSUPPORTED,
		  "gpu.queues is not available here" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_rpc_arena struct rpc_arena arena;
		auto_out struct out o;
		struct agent_err err = { 0 };

		rpc_arena_init(&arena, 0);
		out_init(&o, 0);
		answer = rows[i].answer;
		TEST_ROW_EQ(i, rpc_front_dispatch(&handlers, &answer, NULL, &arena, rows[i].m, "", 0, &o,
						  &err),
			    rows[i].r);
		TEST_ROW_EQ(i, err.code, rows[i].code);
		TEST_ROW_STR(i, rows[i].r ? err.message : o.data, rows[i].text);
	}
}

static void dispatch_bounds_the_reply(void)
{
	static const struct rpc_front_handlers handlers = { .session_list = session_list };
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o;
	struct agent_err err = { 0 };

	answer = 0;
	rpc_arena_init(&arena, 0);
	out_init(&o, 20);
	TEST_EQ(rpc_front_dispatch(&handlers, &answer, NULL, &arena, RPC_METHOD_SESSION_LIST, "", 0, &o,
				   &err),
		-EFBIG);
	TEST_EQ(err.code, RPC_ERROR_TOO_LARGE);
}

static void notifications_are_whole_messages(void)
{
	const struct rpc_session_ended_params p = { .session = "s", .pid = 3,
						    .reason = RPC_END_REASON_EXITED };
	auto_out struct out o;

	out_init(&o, 0);
	rpc_session_ended_notification(&o, &p);
	TEST_STR(o.data, "{\"jsonrpc\":\"2.0\",\"method\":\"session.ended\",\"params\":{\"session\":\"s\","
			 "\"pid\":3,\"reason\":\"exited\"}}");
	TEST_STR(rpc_notification_find("session.ended")->name, "session.ended");
	CU_ASSERT_PTR_NULL(rpc_notification_find("x"));
}

/* A small request, from bytes to checked parameters to the text of a reply. */
static void small_requests_are_fast(void)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.detach\","
				   "\"params\":{\"session\":\"0123456789abcdef\"}}";
	enum { ROUNDS = 5000, BOUND_NS = 200000 };
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out o;
	struct rpc_message m;
	void *params;
	uint64_t start;

	rpc_arena_init(&arena, 0);
	out_init(&o, 0);
	start = test_cpu_ns();
	for (int i = 0; i < ROUNDS; i++) {
		TEST_EQ_FATAL(rpc_message_parse(text, sizeof(text) - 1, &m, NULL), 0);
		TEST_EQ_FATAL(rpc_params_decode((enum rpc_method)rpc_method_find(m.requests[0].method),
						m.requests[0].params, m.requests[0].params_size,
						&arena, &params, NULL), 0);
		rpc_message_result(&o, m.requests[0].id, m.requests[0].id_size, "{}", 2);
		rpc_message_deinit(&m);
		rpc_arena_reset(&arena);
		out_reset(&o);
	}
	/* The bound leaves room for sanitizers and a slow machine; bench/ measures. */
	start = (test_cpu_ns() - start) / ROUNDS;
	printf("  %llu ns a request\n", (unsigned long long)start);
	TEST_EQ(start < BOUND_NS, 1);
}

TEST_SUITE(rpc_params, TEST(good_values_come_back), TEST(bad_values_are_named),
	   TEST(replies_may_say_more), TEST(wrong_values_are_visible), TEST(memory_is_limited),
	   TEST(enums_have_names), TEST(methods_are_found), TEST(params_of_methods_are_checked),
	   TEST(dispatch_calls_the_handler), TEST(dispatch_bounds_the_reply),
	   TEST(notifications_are_whole_messages), TEST(small_requests_are_fast));
