/* SPDX-License-Identifier: MIT */
#include "testlib.h"
#include "values/argument/signature.h"

struct list {
	char text[2048];
	size_t n, stop_at;
};

static int add(void *arg, const char *type, size_t size)
{
	struct list *l = arg;
	size_t used = strlen(l->text);

	snprintf(l->text + used, sizeof(l->text) - used, "[%.*s]", (int)size, type);
	return ++l->n == l->stop_at ? 7 : 0;
}

static void splits_parameters(void)
{
	static const struct {
		const char *name;
		int result;
		const char *types;
	} rows[] = {
		{ "scale(int const*, int, float)", 0, "[int const*][int][float]" },
		{ "void tk<double>(double*, double const*, double, bool, short)", 0,
		  "[double*][double const*][double][bool][short]" },
		{ "f()", 0, "" },
		{ "f(int) [clone .kd]", 0, "[int]" },
		{ "f(std::array<int, 4>, int)", 0, "[std::array<int, 4>][int]" },
		{ "f(void (*)(int, int), char)", 0, "[void (*)(int, int)][char]" },
		{ "f(int (&) [4], int)", 0, "[int (&) [4]][int]" },
		{ "void run<main::{lambda(int, int)#1}>(main::{lambda(int, int)#1})", 0,
		  "[main::{lambda(int, int)#1}]" },
		{ "bool operator<(vec<int>, vec<int>)", 0, "[vec<int>][vec<int>]" },
		{ "ns::(anonymous namespace)::f(int)", 0, "[int]" },
		{ "decltype ((a)->b) f<int>(int)", 0, "[int]" },
		{ "embedding", -ENOENT, "" },
		{ "", -ENOENT, "" },
		{ ")", -EBADMSG, "" },
		{ "(int)", -EBADMSG, "" },
		{ "f(int", -ENOENT, "" },
		{ "f(int...", -EBADMSG, "" },
		{ "f(int, )", -EBADMSG, "[int]" },
		{ "f(,int)", -EBADMSG, "" },
		{ "f(a<b, c)", -EBADMSG, "" },
		{ "f(a>b)", -EBADMSG, "" },
		{ "f[int)", -EBADMSG, "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct list l = { .n = 0 };

		TEST_ROW_EQ(i, values_signature_each(test_tail_dup(rows[i].name, strlen(rows[i].name) + 1), add, &l),
			    rows[i].result);
		TEST_ROW_STR(i, l.text, rows[i].types);
	}
}

static void stops_when_told(void)
{
	struct list l = { .stop_at = 2 };

	TEST_EQ(values_signature_each("f(int, char, long)", add, &l), 7);
	TEST_STR(l.text, "[int][char]");
}

TEST_SUITE(values_signature, TEST(splits_parameters), TEST(stops_when_told));
