/* SPDX-License-Identifier: MIT */
#include "base/out.h"
#include "store/internal.h"
#include "testlib.h"

static int decode(const char *text, struct store_meta *ret)
{
	size_t n = strlen(text);

	return store_meta_decode(test_tail_dup(text, n), n, ret);
}

static void metadata_come_back(void)
{
	struct store_meta m = { .id = "20261121T091733-3f9a2c41", .time_us = UINT64_MAX, .pid = 7, .uid = UINT32_MAX,
				.count = 3, .comm = "a\"\\\n\x01 \xc3\xa9", .kernel = "void f<int>(int)" };
	struct store_meta back;
	auto_out struct out o;

	out_init(&o, 0);
	store_meta_encode(&o, &m);
	TEST_EQ_FATAL(store_meta_decode(o.data, o.size, &back), 0);
	TEST_EQ(memcmp(&m, &back, sizeof(m)), 0);
	CU_ASSERT_PTR_NULL(memchr(o.data, '\n', o.size));
}

static void later_versions_may_add(void)
{
	struct store_meta m;

	TEST_EQ(decode("{ \"schema\" : \"gpu-agent.record/1\", \"x\":-1.5e3, \"y\":null, \"z\":\"\\u00e9\", \"pid\":5 }", &m), 0);
	TEST_EQ(m.pid, 5);
	TEST_EQ(m.count, 1);
}

static void mistakes_are_refused(void)
{
#define HEAD "{\"schema\":\"gpu-agent.record/1\""
	static const char *const rows[] = {
		"", "{", "{}", "[]", "{\"pid\":1}", "{\"schema\":\"other\"}", HEAD, HEAD ",}", HEAD "}x",
		HEAD ",\"pid\":4294967296}", HEAD ",\"pid\":-1}", HEAD ",\"pid\":\"1\"}", HEAD ",\"pid\":}",
		HEAD ",\"time_us\":18446744073709551616}", HEAD ",\"comm\":1}", HEAD ",\"comm\":\"0123456789abcdef\"}",
		HEAD ",\"comm\":\"a\nb\"}", HEAD ",\"comm\":\"\xff\"}", HEAD ",\"comm\":\"\\x\"}", HEAD ",\"comm\":\"\\u00\"}",
		HEAD ",\"comm\":\"\\ud800\"}", HEAD ",\"comm\":\"\\u0000\"}", HEAD ",\"x\":[1]}", HEAD ",\"x\":{}}", HEAD ",\"x\"}",
		HEAD ",\"comm\":\"", HEAD ",\"comm\":\"\\",
	};
#undef HEAD

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct store_meta m;

		TEST_ROW_EQ(i, decode(rows[i], &m), -EBADMSG);
	}
}

static void names_are_taken_apart(void)
{
	const struct store_meta m = { .id = "20240229T235959-00c0ffee", .pid = 12, .uid = 1000, .comm = "a.b/c d",
				      .rule = "r%", .key = "k", .boot_id = "00ff" };
	char stem[NAME_MAX + 1], file[NAME_MAX + 1];
	struct name n;

	name_stem(&m, stem);
	TEST_EQ(strncmp(stem, "20240229T235959-00c0ffee.u1000.p12.a%2Eb%2Fc%20d.r%25.", 51), 0);
	for (int kind = NAME_RECORD; kind < NAME_KIND_COUNT; kind++) {
		name_file(stem, (enum name_kind)kind, kind == NAME_PIN, file);
		name_parse(file, &n);
		TEST_EQ(n.kind, kind);
		TEST_EQ(n.unfinished, kind == NAME_PIN);
		TEST_STR(n.facts.name, stem);
		TEST_STR(n.facts.id, m.id);
		TEST_EQ(n.facts.uid, 1000);
		TEST_EQ(n.facts.pid, 12);
		TEST_EQ(n.facts.time_s, 1709251199);
		TEST_EQ(n.facts.key_hash, name_key_hash("k"));
	}
}

/* Names of greatest length still fit, with every byte escaped. */
static void long_names_fit(void)
{
	struct store_meta m = { .id = "20240229T235959-00c0ffee", .pid = INT32_MAX, .uid = UINT32_MAX,
				.boot_id = "0123456789abcdef0123456789abcdef" };
	char stem[NAME_MAX + 1], file[NAME_MAX + 1];
	struct name n;

	memset(m.comm, '\xff', sizeof(m.comm) - 1);
	memset(m.rule, '.', sizeof(m.rule) - 1);
	name_stem(&m, stem);
	name_file(stem, NAME_CORE_ZST, true, file);
	name_parse(file, &n);
	TEST_EQ(n.kind, NAME_CORE_ZST);
	TEST_STR(n.facts.name, stem);
	CU_ASSERT_PTR_NOT_NULL(strstr(file, "0123456789abcdef0123456789abcdef.core.zst"));
}

static void other_names_are_foreign(void)
{
	static const char *const rows[] = {
		"", ".", "index", "core", "20240229T235959-00c0ffee.record",
		"20241329T235959-00c0ffee.u0.p1.a..0000000000000000..record",
		"20240229T245959-00c0ffee.u0.p1.a..0000000000000000..record",
		"20240229T235959-00C0FFEE.u0.p1.a..0000000000000000..record",
		"20240229T235959-00c0ffee.u4294967296.p1.a..0000000000000000..record",
		"20240229T235959-00c0ffee.u0.p2147483648.a..0000000000000000..record",
		"20240229T235959-00c0ffee.u.p1.a..0000000000000000..record",
		"20240229T235959-00c0ffee.u0.p1.a b..0000000000000000..record",
		"20240229T235959-00c0ffee.u0.p1.a%..0000000000000000..record",
		"20240229T235959-00c0ffee.u0.p1.a..00000000000000000..record",
		"20240229T235959-00c0ffee.u0.p1.a..0000000000000000.xyz.record",
		"20240229T235959-00c0ffee.u0.p1.a..0000000000000000..recordx",
		"20240229T235959-00c0ffee.u0.p1.a..0000000000000000..core.zst.x",
		"..20240229T235959-00c0ffee.u0.p1.a..0000000000000000..core",
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct name n;

		name_parse(rows[i], &n);
		TEST_ROW_EQ(i, n.kind, NAME_FOREIGN);
	}
}

#define NO_END UINT64_MAX

static void matches_choose(void)
{
	const struct store_meta m = { .id = "20240229T235959-00c0ffee", .pid = 12, .uid = 0, .comm = "sh", .kernel = "k",
				      .reason = "requested", .time_us = 100 };
	static const struct {
		const char *matches[3];
		uint64_t since, until;
		bool fits;
	} rows[] = {
		{ { 0 }, 0, NO_END, true },
		{ { "PID=12" }, 0, NO_END, true },
		{ { "pid=13" }, 0, NO_END, false },
		{ { "PID=13", "PID=12" }, 0, NO_END, true },
		{ { "PID=12", "UID=1" }, 0, NO_END, false },
		{ { "NAME=sh" }, 0, NO_END, true },
		{ { "NAME=k" }, 0, NO_END, true },
		{ { "NAME=x" }, 0, NO_END, false },
		{ { "RECORD=20240229" }, 0, NO_END, true },
		{ { "RECORD=" }, 0, NO_END, false },
		{ { "COMM=sh", "REASON=requested", "UID=0" }, 0, NO_END, true },
		{ { "RULE=" }, 0, NO_END, true },
		{ { 0 }, 100, 100, true },
		{ { 0 }, 101, NO_END, false },
		{ { 0 }, 0, 99, false },
		{ { 0 }, 0, 0, false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct store_filter f = { .matches = rows[i].matches,
					  .since_us = rows[i].since,
					  .until_us = rows[i].until,
					  .has_until = rows[i].until != NO_END };

		while (f.n_matches < 3 && rows[i].matches[f.n_matches])
			TEST_ROW_EQ(i, store_match_check(rows[i].matches[f.n_matches++]), 0);
		TEST_ROW_EQ(i, store_match(&f, &m), rows[i].fits);
	}
	CU_ASSERT_FALSE(store_match(&(struct store_filter){ .matches = (const char *[]){ "NAME=" }, .n_matches = 1 },
				    &(struct store_meta){ .pid = 1 }));
	TEST_EQ(store_match_check("PID"), -EINVAL);
	TEST_EQ(store_match_check("COLOR=red"), -EINVAL);
	TEST_EQ(store_match_check("=x"), -EINVAL);
}

TEST_SUITE(store_meta, TEST(metadata_come_back), TEST(later_versions_may_add), TEST(mistakes_are_refused),
	   TEST(names_are_taken_apart), TEST(long_names_fit), TEST(other_names_are_foreign), TEST(matches_choose));
