/* SPDX-License-Identifier: MIT */
#include "protocol/rpc_arena.h"
#include "testlib.h"

/* Pieces of all sizes: aligned, zeroed, apart from each other. */
static void pieces_do_not_overlap(void)
{
	auto_rpc_arena struct rpc_arena a;
	unsigned char *p[300];
	size_t size[300];

	rpc_arena_init(&a, 0);
	for (size_t i = 0; i < TEST_COUNT(p); i++) {
		size[i] = i % 7 ? test_random() % 500 : test_random() % 9000;
		p[i] = rpc_arena_alloc(&a, size[i]);
		CU_ASSERT_PTR_NOT_NULL_FATAL(p[i]);
		TEST_ROW_EQ(i, (uintptr_t)p[i] % 16, 0);
		for (size_t k = 0; k < size[i]; k++)
			if (p[i][k])
				CU_FAIL("not zeroed");
		memset(p[i], (int)(i & 0xff), size[i]);
	}
	for (size_t i = 0; i < TEST_COUNT(p); i++)
		for (size_t k = 0; k < size[i]; k++)
			if (p[i][k] != (i & 0xff)) {
				TEST_ROW_EQ(i, p[i][k], i & 0xff);
				return;
			}
}

/* The limit counts all pieces; the failure is remembered, and a reset forgets it. */
static void the_limit_holds(void)
{
	auto_rpc_arena struct rpc_arena a;

	rpc_arena_init(&a, 100);
	CU_ASSERT_PTR_NOT_NULL(rpc_arena_alloc(&a, 60));
	TEST_EQ(rpc_arena_error(&a), 0);
	CU_ASSERT_PTR_NULL(rpc_arena_alloc(&a, 60));
	TEST_EQ(rpc_arena_error(&a), -EFBIG);
	CU_ASSERT_PTR_NOT_NULL(rpc_arena_alloc(&a, 16));
	TEST_EQ(rpc_arena_error(&a), -EFBIG);
	rpc_arena_reset(&a);
	TEST_EQ(rpc_arena_error(&a), 0);
	CU_ASSERT_PTR_NOT_NULL(rpc_arena_alloc(&a, 100));
	CU_ASSERT_PTR_NULL(rpc_arena_alloc(&a, SIZE_MAX));
	CU_ASSERT_PTR_NULL(rpc_arena_array(&a, SIZE_MAX / 2, 4));
	CU_ASSERT_PTR_NULL(rpc_arena_strndup(&a, "", SIZE_MAX));
}

static void memory_is_zero_after_a_reset(void)
{
	auto_rpc_arena struct rpc_arena a;
	char *p;

	rpc_arena_init(&a, 0);
	memset(rpc_arena_alloc(&a, 1000), 0xff, 1000);
	rpc_arena_alloc(&a, 100000);
	rpc_arena_reset(&a);
	p = rpc_arena_alloc(&a, 1000);
	for (size_t i = 0; i < 1000; i++)
		if (p[i])
			CU_FAIL("not zeroed");
	rpc_arena_reset(&a);
	rpc_arena_reset(&a);
	TEST_EQ(a.used, 0);
}

static void texts_are_copied(void)
{
	auto_rpc_arena struct rpc_arena a;

	rpc_arena_init(&a, 0);
	TEST_STR(rpc_arena_strndup(&a, test_tail_dup("abc", 3), 3), "abc");
	TEST_STR(rpc_arena_strdup(&a, "x"), "x");
	CU_ASSERT_PTR_NULL(rpc_arena_strdup(&a, NULL));
	TEST_STR(rpc_arena_printf(&a, "%d-%s", 7, "y"), "7-y");
	CU_ASSERT_PTR_NOT_NULL(rpc_arena_array(&a, 0, 8));
	TEST_EQ(rpc_arena_error(&a), 0);
}

TEST_SUITE(rpc_arena, TEST(pieces_do_not_overlap), TEST(the_limit_holds),
	   TEST(memory_is_zero_after_a_reset), TEST(texts_are_copied));
