/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "base/out.h"
#include "ctl/document/document.h"
#include "tests/unit/ctl/ctl_snapshot.h"
#include "testlib.h"

/* A good document, with its first @from replaced by @to. */
static char *text_with(const char *from, const char *to)
{
	struct snapshot_build b;
	struct out o, changed;
	const char *at;
	size_t size;
	char *text;

	snapshot_build(&b, 5, "q0:5/12 g100:64@0/5 g200:2@0/5!");
	out_init(&o, 0);
	out_init(&changed, 0);
	rpc_gpu_snapshot_result_encode(&o, &b.s);
	at = strstr(o.data, from);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	out_bytes(&changed, o.data, (size_t)(at - o.data));
	out_str(&changed, to);
	out_str(&changed, at + strlen(from));
	CU_ASSERT_FATAL(out_steal(&changed, &text, &size) == 0);
	out_deinit(&o);
	return text;
}

static int parse(struct rpc_arena *arena, const char *text, size_t size, struct document *ret,
		 struct agent_err *err)
{
	*err = (struct agent_err){ 0 };
	return document_parse("a.json", size ? test_tail_dup(text, size) : "", size, arena, ret, err);
}

static void reads_what_was_saved(void)
{
	auto_free char *text = text_with("", "");
	auto_rpc_arena struct rpc_arena arena;
	struct document d;
	struct agent_err err;

	rpc_arena_init(&arena, 0);
	TEST_EQ_FATAL(parse(&arena, text, strlen(text), &d, &err), 0);
	TEST_STR(d.name, "a.json");
	TEST_EQ(d.merged, false);
	TEST_EQ(d.snapshot.process.pid, 42);
	TEST_EQ(d.snapshot.n_groups, 2);
	TEST_EQ(d.snapshot.groups[1].reasons[0], RPC_STOP_REASON_MEMORY_VIOLATION);
}

/* A newer agent may say more; anything else is refused, with the file and the place. */
static void checks_the_document(void)
{
	static const struct {
		const char *from, *to;
		const char *want; /* NULL: good */
	} rows[] = {
		{ "snapshot/1\"", "snapshot/1.7\"", NULL },
		{ "{\"schema\"", "{\"later\":[{\"x\":1}],\"schema\"", NULL },
		{ "\"waves\":64", "\"waves\":64,\"later\":{}", NULL },
		{ "snapshot/1\"", "snapshot/2\"",
		  "a.json: the document is \"gpu-agent.snapshot/2\", not gpu-agent.snapshot/1" },
		{ "snapshot/1\"", "snapshot/10\"",
		  "a.json: the document is \"gpu-agent.snapshot/10\", not gpu-agent.snapshot/1" },
		{ "snapshot/1\"", "comparison/1\"",
		  "a.json: the document is \"gpu-agent.comparison/1\", not gpu-agent.snapshot/1" },
		{ "\"schema\"", "\"scheme\"", "a.json: document: \"schema\" is missing" },
		{ "\"pc\":\"0x100\",", "", "a.json: document.groups[0]: \"pc\" is missing" },
		{ "\"waves\":64", "\"waves\":-1",
		  "a.json: document.groups[0].waves: must be between 0 and 4294967295, not -1" },
		{ "\"waves\":64", "\"waves\":64.5",
		  "a.json: document.groups[0].waves: must be an integer, not a fraction" },
		{ "memory_violation", "memory\\u0000",
		  "a.json: document.groups[1].reasons[0]: must be the name of a stop_reason" },
		{ "\"live\"", "\"merged\"",
		  "a.json: a document is merged if and only if it has a list of ranks" },
		{ "{\"schema\"", "\"schema\"", "a.json: not valid JSON: something follows the value" },
		{ "{\"schema\"", "[{\"schema\"", "a.json: not valid JSON: the text ends too early" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_free char *text = text_with(rows[i].from, rows[i].to);
		auto_rpc_arena struct rpc_arena arena;
		struct agent_err err;
		struct document d;
		int r;

		rpc_arena_init(&arena, 0);
		r = parse(&arena, text, strlen(text), &d, &err);
		TEST_ROW_EQ(i, r == 0, !rows[i].want);
		TEST_ROW_STR(i, err.message, rows[i].want ? rows[i].want : "");
		TEST_ROW_EQ(i, agent_err_exit(&err), rows[i].want ? 2 : 1);
	}
}

/* Nothing, null, another type, and every beginning of a good document. */
static void refuses_what_is_no_document(void)
{
	static const char *const texts[] = { "", "null", "[]", "1", "\"x\"", "{}", "nonsense" };
	auto_free char *good = text_with("", "");
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err;
	struct document d;

	rpc_arena_init(&arena, 0);
	for (size_t i = 0; i < TEST_COUNT(texts); i++) {
		CU_ASSERT(parse(&arena, texts[i], strlen(texts[i]), &d, &err) < 0);
		TEST_ROW_EQ(i, strncmp(err.message, "a.json: ", 8), 0);
	}
	for (size_t size = 0; size < strlen(good); size += 7)
		TEST_ROW_EQ(size, parse(&arena, good, size, &d, &err) < 0, true);
}

static void bounds_memory(void)
{
	auto_free char *text = text_with("", "");
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err;
	struct document d;

	rpc_arena_init(&arena, 256);
	TEST_EQ(parse(&arena, text, strlen(text), &d, &err), -EFBIG);
	TEST_EQ(err.code, RPC_ERROR_TOO_LARGE);
}

static void reads_files(void)
{
	auto_free char *text = text_with("", "");
	char path[] = "/tmp/test_ctl_document.XXXXXX";
	auto_rpc_arena struct rpc_arena arena;
	auto_close int fd = mkstemp(path);
	struct agent_err err = { 0 };
	struct document d;

	rpc_arena_init(&arena, 0);
	CU_ASSERT_FATAL(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	TEST_EQ(document_read(path, &arena, &d, &err), 0);
	TEST_STR(d.name, path);
	CU_ASSERT(truncate(path, (off_t)DOCUMENT_SIZE_MAX + 1) == 0);
	TEST_EQ(document_read(path, &arena, &d, &err), -EFBIG);
	TEST_EQ(err.code, RPC_ERROR_TOO_LARGE);
	CU_ASSERT(unlink(path) == 0);
	TEST_EQ(document_read(path, &arena, &d, &err), -ENOENT);
	TEST_EQ(err.code, RPC_ERROR_FAILED);
	CU_ASSERT(strstr(err.message, "No such file") != NULL);
	TEST_EQ(document_read("/", &arena, &d, &err), -EISDIR);
}

TEST_SUITE(ctl_document, TEST(reads_what_was_saved), TEST(checks_the_document),
	   TEST(refuses_what_is_no_document), TEST(bounds_memory), TEST(reads_files));
