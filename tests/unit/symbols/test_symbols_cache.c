/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "symbols/cache.h"
#include "testlib.h"

DEFINE_AUTO(struct symbols_cache *, symbols_cache_destroy);

static char *file;
static size_t file_size;

static void load_file(void)
{
	if (!file)
		TEST_EQ_FATAL(fd_read_file("tests/data/codeobj/spin-gfx90a.co", 1 << 20, &file,
					   &file_size),
			      0);
}

static struct symbols_image *add(struct symbols_cache *c, const struct symbols_key *key)
{
	struct symbols_image *image = NULL;

	TEST_EQ_FATAL(symbols_cache_add(c, key, file, file_size, &image), 0);
	return image;
}

static void finds_by_build_id(void)
{
	auto_call(symbols_cache_destroyp) struct symbols_cache *c = NULL;
	struct symbols_key a = { { 1, 2, 3 }, 3, "file:///a", 1, 1 }, b = { { 1, 2, 3 }, 3, "file:///b" },
			   other = { { 1, 2, 4 }, 3, "file:///a", 1, 1 }, longer = { { 1, 2, 3 }, 4 };
	struct symbols_image *image;

	load_file();
	TEST_EQ_FATAL(symbols_cache_create(1 << 20, &c), 0);
	image = add(c, &a);
	CU_ASSERT_PTR_EQUAL(symbols_cache_get(c, &b), image);
	CU_ASSERT_PTR_NULL(symbols_cache_get(c, &other));
	CU_ASSERT_PTR_NULL(symbols_cache_get(c, &longer));
	symbols_cache_put(c, image);
	symbols_cache_put(c, image);
	symbols_cache_put(c, NULL);
}

/* Without build-id, all of place, size and stamp have to agree. */
static void finds_by_place(void)
{
	auto_call(symbols_cache_destroyp) struct symbols_cache *c = NULL;
	struct symbols_key a = { .uri = "file:///a", .size = 5, .stamp = 6 };
	const struct symbols_key others[] = {
		{ .uri = "file:///b", .size = 5, .stamp = 6 }, { .uri = "file:///a", .size = 4, .stamp = 6 },
		{ .uri = "file:///a", .size = 5, .stamp = 7 }, { .size = 5, .stamp = 6 },
		{ { 1 }, 1, "file:///a", 5, 6 },
	};
	char *uri = strdup(a.uri);
	struct symbols_image *image;

	load_file();
	TEST_EQ_FATAL(symbols_cache_create(1 << 20, &c), 0);
	a.uri = uri;
	image = add(c, &a);
	free(uri);
	a.uri = "file:///a";
	for (size_t i = 0; i < TEST_COUNT(others); i++)
		CU_ASSERT_PTR_NULL(symbols_cache_get(c, &others[i]));
	CU_ASSERT_PTR_EQUAL(symbols_cache_get(c, &a), image);
	symbols_cache_put(c, image);
	symbols_cache_put(c, image);
}

/* The least recently used goes; what is in use stays, whatever the budget. */
static void stays_within_its_budget(void)
{
	auto_call(symbols_cache_destroyp) struct symbols_cache *c = NULL;
	struct symbols_key key = { .uri = "x" };
	struct symbols_image *kept;
	size_t one;

	load_file();
	TEST_EQ_FATAL(symbols_cache_create(4 * file_size, &c), 0);
	key.stamp = 1000;
	kept = add(c, &key);
	one = symbols_cache_bytes(c);
	for (uint64_t i = 0; i < 20; i++) {
		key.stamp = i;
		symbols_cache_put(c, add(c, &key));
		key.stamp = 0; /* used again and again, hence never the oldest */
		symbols_cache_put(c, symbols_cache_get(c, &key));
		CU_ASSERT_TRUE(symbols_cache_bytes(c) <= 4 * file_size);
	}
	TEST_EQ(symbols_cache_count(c), 4 * file_size / one);
	CU_ASSERT_PTR_NOT_NULL(symbols_cache_get(c, &key));
	symbols_cache_put(c, symbols_cache_get(c, &key));
	key.stamp = 19;
	CU_ASSERT_PTR_NOT_NULL(symbols_cache_get(c, &key));
	key.stamp = 10;
	CU_ASSERT_PTR_NULL(symbols_cache_get(c, &key));
	key.stamp = 1000;
	CU_ASSERT_PTR_EQUAL(symbols_cache_get(c, &key), kept);
	symbols_cache_put(c, kept);
	symbols_cache_put(c, kept);
	for (key.stamp = 0; key.stamp < 20; key.stamp++) {
		struct symbols_image *image = symbols_cache_get(c, &key);

		symbols_cache_put(c, image);
		if (key.stamp == 0 || key.stamp == 19)
			symbols_cache_put(c, image);
	}
}

static void refuses_what_is_no_image(void)
{
	auto_call(symbols_cache_destroyp) struct symbols_cache *c = NULL;
	struct symbols_key key = { .uri = "x" };
	struct symbols_image *image;

	TEST_EQ_FATAL(symbols_cache_create(1 << 20, &c), 0);
	TEST_EQ(symbols_cache_add(c, &key, "text", 4, &image), -ENOEXEC);
	TEST_EQ(symbols_cache_count(c), 0);
}

TEST_SUITE(symbols_cache, TEST(finds_by_build_id), TEST(finds_by_place),
	   TEST(stays_within_its_budget), TEST(refuses_what_is_no_image));
