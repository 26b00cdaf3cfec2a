/* SPDX-License-Identifier: MIT */
/* Notes of a process's core: what makes no sense is left out or refused, and what does comes back. */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "corefile/pack.h"
#include "corefile/process.h"
#include "corefile/x86_64.h"
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
	for (size_t i = 0; i < COREFILE_X86_64_WORDS; i++)
		pack_u64(b + 112 + 8 * i, 1000 + i);
	TEST_EQ(corefile_thread_read(&corefile_x86_64, b, sizeof(b), &t), 0);
	TEST_EQ(t.tid == 4242 && t.registers[COREFILE_R15] == 1000 && t.registers[COREFILE_RIP] == 1016 &&
	      t.registers[COREFILE_RSP] == 1019, true);
	TEST_EQ(corefile_thread_read(&corefile_x86_64, b, sizeof(b) - 1, &t), -EBADMSG);
	memset(b, 'x', sizeof(b));
	pack_u32(b + 16, 7);
	pack_u32(b + 24, 9);
	TEST_EQ(corefile_process_read(b, 136, &p), 0);
	TEST_EQ(p.uid == 7 && p.pid == 9 && !strcmp(p.comm, "xxxxxxxxxxxxxxxx"), true);
	TEST_EQ(corefile_process_read(b, 135, &p), -EBADMSG);
}

static void thread_of_aarch64(void)
{
	uint8_t b[392] = { 0 };
	struct corefile_thread t;

	pack_u32(b + 32, 4242);
	for (size_t i = 0; i < 34; i++)
		pack_u64(b + 112 + 8 * i, 1000 + i);
	TEST_EQ(corefile_thread_read(&corefile_aarch64, b, sizeof(b), &t), 0);
	TEST_EQ(t.tid, 4242);
	TEST_EQ(t.registers[corefile_aarch64.stack_pointer], 1031);
	TEST_EQ(t.registers[corefile_aarch64.instruction], 1032);
	TEST_EQ(t.registers[corefile_aarch64.dwarf[30]], 1030);
	TEST_EQ(corefile_thread_read(&corefile_aarch64, b, sizeof(b) - 1, &t), -EBADMSG);
	TEST_EQ(corefile_processor_find(EM_AARCH64) == &corefile_aarch64, true);
	TEST_EQ(corefile_processor_find(EM_X86_64) == &corefile_x86_64, true);
	TEST_EQ(corefile_processor_find(EM_AMDGPU) == NULL, true);
}

/* Who was blocked in which call: 29 is ioctl of aarch64, 22 epoll_pwait. */
static void calls_that_waited(void)
{
	static const uint8_t at[] = { 0, 0, 0, 0, 1, 0, 0, 0xd4 }, behind[] = { 1, 0, 0, 0xd4, 0, 0, 0, 0 };
	uint64_t words[COREFILE_WORDS_MAX] = { 3, 0x4b0c, 7 };
	uint64_t x86[COREFILE_WORDS_MAX] = { [COREFILE_RAX] = (uint64_t)-COREFILE_ERESTARTSYS, [COREFILE_ORIG_RAX] = 16,
					     [COREFILE_RDI] = 3, [COREFILE_RSI] = 4, [COREFILE_RDX] = 5 };
	struct corefile_call c = { 0 };

	words[8] = 29;
	TEST_EQ(corefile_aarch64.has_waited(words, at, &c), true);
	TEST_EQ(c.number == 29 && c.arguments[0] == 3 && c.arguments[1] == 0x4b0c && c.arguments[2] == 7, true);
	TEST_EQ(corefile_aarch64.has_waited(words, behind, &c), false);
	TEST_EQ(corefile_aarch64.has_waited(words, NULL, &c), false);
	words[0] = (uint64_t)-EINTR;
	words[8] = 22;
	TEST_EQ(corefile_aarch64.has_waited(words, at, &c), false);
	TEST_EQ(corefile_aarch64.has_waited(words, behind, &c), true);
	TEST_EQ(c.number == 22 && c.arguments[0] == 0 && c.arguments[1] == 0x4b0c, true);
	TEST_EQ(corefile_x86_64.has_waited(x86, NULL, &c), true);
	TEST_EQ(c.number == 16 && c.arguments[0] == 3 && c.arguments[1] == 4 && c.arguments[2] == 5, true);
	x86[COREFILE_RAX] = 0;
	TEST_EQ(corefile_x86_64.has_waited(x86, NULL, &c), false);
}

TEST_SUITE(corefile_process, TEST(mappings), TEST(thread_and_process), TEST(thread_of_aarch64),
	   TEST(calls_that_waited));
