/* SPDX-License-Identifier: MIT */
#include <link.h>

#include "symbols/code_list.h"
#include "symbols/uri.h"
#include "testlib.h"

/* A target's memory: one range at BASE; the structures are glibc's own. */
#define BASE 0x7f0000001000u
#define N    64

static struct {
	struct r_debug debug;
	struct link_map maps[N];
	char text[N][64];
} target;

static size_t readable = sizeof(target);

static uint64_t address_of(const void *p)
{
	return BASE + (uint64_t)((const char *)p - (const char *)&target);
}

static ssize_t fake_read(void *arg, uint64_t address, void *buf, size_t size)
{
	CU_ASSERT_EQUAL(arg, &target);
	if (address < BASE || address - BASE >= readable)
		return -EFAULT;
	if (size > readable - (address - BASE))
		size = readable - (size_t)(address - BASE);
	memcpy(buf, (const char *)&target + (address - BASE), size);
	return (ssize_t)size;
}

static const struct symbols_memory memory = { fake_read, &target };

static void plant(size_t n)
{
	memset(&target, 0, sizeof(target));
	readable = sizeof(target);
	target.debug.r_version = 10;
	target.debug.r_brk = 0x1234;
	target.debug.r_state = RT_CONSISTENT;
	target.debug.r_map = n ? (struct link_map *)address_of(&target.maps[0]) : NULL;
	for (size_t i = 0; i < n; i++) {
		snprintf(target.text[i], sizeof(target.text[i]), "file:///opt/%zu.co", i);
		target.maps[i].l_addr = 0x10000 * i;
		target.maps[i].l_name = (char *)address_of(target.text[i]);
		if (i + 1 < n)
			target.maps[i].l_next = (struct link_map *)address_of(&target.maps[i + 1]);
	}
}

static void expect(enum symbols_code_list_end end, size_t n)
{
	struct symbols_code_list l = { 0 };

	TEST_EQ_FATAL(symbols_code_list_read(&memory, BASE, &l), 0);
	TEST_EQ(l.r_version, 10);
	TEST_EQ(l.r_brk, 0x1234);
	TEST_EQ(l.end, end);
	TEST_EQ(l.n_items, n);
	for (size_t i = 0; i < l.n_items && i < N; i++) {
		char want[32];

		snprintf(want, sizeof(want), "file:///opt/%zu.co", i);
		TEST_ROW_STR(i, l.items[i].uri, want);
		TEST_ROW_EQ(i, l.items[i].bias, 0x10000 * i);
		TEST_ROW_EQ(i, l.items[i].entry, address_of(&target.maps[i]));
	}
	symbols_code_list_deinit(&l);
	TEST_EQ(l.n_items, 0);
}

static void reads_lists(void)
{
	for (size_t n = 0; n <= N; n += 7) {
		plant(n);
		expect(SYMBOLS_CODE_LIST_COMPLETE, n);
	}
}

/* Back to any entry, from any entry: each is reported once. */
static void ends_at_cycles(void)
{
	for (size_t n = 1; n < 20; n++)
		for (size_t back = 0; back < n; back++) {
			plant(n);
			target.maps[n - 1].l_next =
				(struct link_map *)address_of(&target.maps[back]);
			expect(SYMBOLS_CODE_LIST_CYCLE, n);
		}
}

static void ends_where_memory_does(void)
{
	plant(5);
	target.maps[2].l_next = (struct link_map *)0xdead0000;
	expect(SYMBOLS_CODE_LIST_UNREADABLE, 3);
	target.maps[2].l_next = (struct link_map *)(UINTPTR_MAX - 4);
	expect(SYMBOLS_CODE_LIST_UNREADABLE, 3);
}

/* A name that cannot be read does not hide the entry behind it. */
static void keeps_entries_without_name(void)
{
	struct symbols_code_list l;

	plant(4);
	target.maps[0].l_name = NULL;
	target.maps[1].l_name = (char *)0xdead0000;
	target.maps[2].l_name = (char *)address_of(target.text[N - 1]);
	memset(target.text[N - 1], 'x', sizeof(target.text[0])); /* ends at unreadable memory */
	TEST_EQ_FATAL(symbols_code_list_read(&memory, BASE, &l), 0);
	TEST_EQ_FATAL(l.n_items, 4);
	for (size_t i = 0; i < 3; i++)
		TEST_ROW_STR(i, l.items[i].uri, "");
	TEST_STR(l.items[3].uri, "file:///opt/3.co");
	symbols_code_list_deinit(&l);
}

static void says_when_it_is_changing(void)
{
	struct symbols_code_list l;

	plant(2);
	target.debug.r_state = RT_ADD;
	TEST_EQ(symbols_code_list_read(&memory, BASE, &l), SYMBOLS_CODE_LIST_CHANGING);
	target.debug.r_state = RT_DELETE;
	TEST_EQ(symbols_code_list_read(&memory, BASE, &l), SYMBOLS_CODE_LIST_CHANGING);
}

static void refuses_what_is_no_list(void)
{
	struct symbols_code_list l;

	plant(2);
	target.debug.r_version = 7;
	TEST_EQ(symbols_code_list_read(&memory, BASE, &l), -EPROTONOSUPPORT);
	TEST_EQ(symbols_code_list_read(&memory, 0x1000, &l), -EFAULT);
	TEST_EQ(symbols_code_list_read(&memory, UINT64_MAX - 8, &l), -EFAULT);
	readable = 20;
	TEST_EQ(symbols_code_list_read(&memory, BASE, &l), -EFAULT);
}

/* A list without end whose entries all differ. */
static ssize_t endless_read(void *arg, uint64_t address, void *buf, size_t size)
{
	uint64_t words[5] = { 10, 0x1000, 0, 0, 0 };

	if (size == 40) {
		if (address >= 0x1000) {
			words[1] = 0x900;
			words[3] = address + 40;
		}
		memcpy(buf, words, 40);
	} else {
		memset(buf, 'u', size);
		if (*(const bool *)arg)
			((char *)buf)[size - 1] = '\0';
	}
	return (ssize_t)size;
}

static void limits_endless_lists(void)
{
	bool terminated = true;
	struct symbols_memory m = { endless_read, &terminated };
	struct symbols_code_list l;

	TEST_EQ_FATAL(symbols_code_list_read(&m, 0x100, &l), 0);
	TEST_EQ(l.end, SYMBOLS_CODE_LIST_TOO_MANY);
	TEST_EQ(l.n_items, SYMBOLS_CODE_LIST_MAX);
	TEST_EQ(strlen(l.items[l.n_items - 1].uri), 255);
	symbols_code_list_deinit(&l);

	terminated = false;
	TEST_EQ_FATAL(symbols_code_list_read(&m, 0x100, &l), 0);
	TEST_EQ(l.n_items, SYMBOLS_CODE_LIST_MAX);
	TEST_STR(l.items[0].uri, "");
	symbols_code_list_deinit(&l);
}

TEST_SUITE(symbols_list, TEST(reads_lists), TEST(ends_at_cycles), TEST(ends_where_memory_does),
	   TEST(keeps_entries_without_name), TEST(says_when_it_is_changing),
	   TEST(refuses_what_is_no_list), TEST(limits_endless_lists));
