/* SPDX-License-Identifier: MIT */
/* Notes of a process's core: what makes no sense is left out or refused, and what does comes back. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "corefile/pack.h"
#include "corefile/process.h"
#include "testlib.h"

#define PAGE 4096u

struct entry {
	uint64_t begin, end, page;
};

/* Pack a note of files with these names, each with its NUL.  @return its size. */
static size_t pack(uint8_t *b, const struct entry *list, size_t n, uint64_t promised, const char *names, size_t size)
{
	pack_u64(b, promised);
	pack_u64(b + 8, PAGE);
	for (size_t i = 0; i < n; i++) {
		pack_u64(b + 16 + 24 * i, list[i].begin);
		pack_u64(b + 24 + 24 * i, list[i].end);
		pack_u64(b + 32 + 24 * i, list[i].page);
	}
	memcpy(b + 16 + 24 * n, names, size);
	return 16 + 24 * n + size;
}

static void mappings(void)
{
	static const struct entry list[] = { { 0x9000, 0xa000, 2 }, { 0x5000, 0x5000, 0 }, { 0x1000, 0x3000, 0 },
					     { 0x20000, 0x30000, UINT64_MAX / PAGE } };
	static const char names[] = "/b\0/empty\0/a\0/far";
	uint8_t b[512];
	size_t size = pack(b, list, TEST_COUNT(list), TEST_COUNT(list), names, sizeof(names));
	struct corefile_mappings m = { 0 };

	TEST_EQ(corefile_mappings_read(b, size, &m), 0);
	TEST_EQ(m.n == 2, true);
	TEST_EQ(m.list[0].begin == 0x1000 && m.list[0].end == 0x3000 && m.list[0].offset == 0 && !strcmp(m.list[0].path, "/a"), true);
	TEST_EQ(m.list[1].begin == 0x9000 && m.list[1].offset == 2 * PAGE && !strcmp(m.list[1].path, "/b"), true);
	free(m.list);
	/* A name without an end, fewer names than mappings, fewer mappings than promised, and any shorter note. */
	for (size_t n = 0; n < size; n++)
		TEST_EQ(corefile_mappings_read(b, n, &m), -EBADMSG);
	size = pack(b, list, 1, UINT64_MAX / 24, names, sizeof(names));
	TEST_EQ(corefile_mappings_read(b, size, &m), -EBADMSG);
}

static void thread_and_process(void)
{
	uint8_t b[336] = { 0 };
	struct corefile_process p;
	struct corefile_thread t;

	pack_u32(b + 32, 4242);
	for (size_t i = 0; i < COREFILE_REGISTERS; i++)
		pack_u64(b + 112 + 8 * i, 1000 + i);
	TEST_EQ(corefile_thread_read(b, sizeof(b), &t), 0);
	TEST_EQ(t.tid == 4242 && t.registers[COREFILE_R15] == 1000 && t.registers[COREFILE_RIP] == 1016 &&
	      t.registers[COREFILE_RSP] == 1019, true);
	TEST_EQ(corefile_thread_read(b, sizeof(b) - 1, &t), -EBADMSG);
	memset(b, 'x', sizeof(b));
	pack_u32(b + 16, 7);
	pack_u32(b + 24, 9);
	TEST_EQ(corefile_process_read(b, 136, &p), 0);
	TEST_EQ(p.uid == 7 && p.pid == 9 && !strcmp(p.comm, "xxxxxxxxxxxxxxxx"), true);
	TEST_EQ(corefile_process_read(b, 135, &p), -EBADMSG);
}

TEST_SUITE(corefile_process, TEST(mappings), TEST(thread_and_process));
