/* SPDX-License-Identifier: MIT */
/* Barrier objects in shared memory: words that ptxas and cicc made, and what is no such word. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/mbarrier.h"
#include "waits/sass.h"

#define NONE WAITS_MBARRIER_NO_REGISTER

/* As the device would write it. */
static uint64_t word_of(bool phase, uint32_t expected, uint32_t pending, int32_t tx)
{
	const uint64_t all = UINT64_C(1) << 20;

	return (uint64_t)phase << 63 | ((all - pending) & (all - 1)) << 43 | ((uint64_t)tx & 0x3fffff) << 21 |
	       ((all - expected) & (all - 1)) << 1;
}

/* As ptxas 13.0 encodes mbarrier.try_wait and mbarrier.test_wait; nvdisasm 12.4 has the same operands for sm_90. */
static void waits_are_told_with_their_operands(void)
{
	static const struct {
		const char *arch;
		uint64_t low, high;
		int r;
		uint8_t address, uniform, phase;
		int32_t offset;
	} rows[] = {
		{ "sm_90", 0x00002800070075a7, 0x000e64000800017f, 0, 7, NONE, 0, 0x28 },
		{ "sm_90", 0x00003005070075a7, 0x002e64000800017f, 0, 7, NONE, 5, 0x30 },
		{ "sm_90", 0x00001000ff0075a7, 0x000e64000800014a, 0, NONE, 10, 0, 0x10 },
		{ "sm_90", 0xfffff802ff0075a7, 0x000e24000800014a, 0, NONE, 10, 2, -8 },
		{ "sm_90", 0x000008ffff0075a7, 0x000e24000800014a, 0, NONE, 10, NONE, 8 },
		{ "sm_100", 0x00002800070075a7, 0x000e6400080011ff, 0, 7, NONE, 0, 0x28 },
		{ "sm_121", 0x00001000ff0075a7, 0x000e64000800110a, 0, NONE, 10, 0, 0x10 },
		/* One that does not wait, one that only some execute, an arrival, a barrier. */
		{ "sm_90", 0x00001000070075a7, 0x000e22000800007f, -ENOENT, 0, 0, 0, 0 },
		{ "sm_90", 0x00002800070085a7, 0x000e64000800017f, -ENOENT, 0, 0, 0, 0 },
		{ "sm_90", 0x000018ff07ff79a7, 0x0001e2000810003f, -ENOENT, 0, 0, 0, 0 },
		{ "sm_90", 0x0046000000007b1d, 0x000fe20000010000, -ENOENT, 0, 0, 0, 0 },
		/* No such instruction, or none that is known. */
		{ "sm_89", 0x00002800070075a7, 0x000e64000800017f, -ENOTSUP, 0, 0, 0, 0 },
		{ "sm_130", 0x00002800070075a7, 0x000e64000800017f, -ENOTSUP, 0, 0, 0, 0 },
		{ NULL, 0x00002800070075a7, 0x000e64000800017f, -ENOTSUP, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint64_t words[2] = { rows[i].low, rows[i].high };
		struct waits_mbarrier_wait w = { 0 };
		size_t at = 0;

		TEST_ROW_EQ(i, waits_mbarrier_find(rows[i].arch, words, sizeof(words), &at, &w), rows[i].r);
		TEST_ROW_EQ(i, waits_mbarrier_known(rows[i].arch), rows[i].r != -ENOTSUP);
		TEST_ROW_EQ(i, w.address_register, rows[i].address);
		TEST_ROW_EQ(i, w.uniform_register, rows[i].uniform);
		TEST_ROW_EQ(i, w.phase_register, rows[i].phase);
		TEST_ROW_EQ(i, w.offset, rows[i].offset);
		TEST_ROW_EQ(i, w.behind, 0);
	}
}

/* Two waits as ptxas 13.0 writes them, the second one with a time limit: code in front of it is nobody's. */
static void what_belongs_to_a_wait_is_told(void)
{
	static const uint64_t code[][2] = {
		{ 0x0000001f09007819, 0x008fce00000006ff }, /* SHF.L.U32 R0, R9, 0x1f, RZ */
		{ 0x00000000070075a7, 0x000e24000800017f }, /* SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ], R0 */
		{ 0xfffffffc00f48947, 0x001fea000383ffff }, /* @!P0 BRA back */
		{ 0x0000000000007941, 0x000fea0003800000 }, /* BSYNC B0 */
		{ 0x00002800070075a7, 0x001064000800017f }, /* SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ+0x28], R0 */
		{ 0x009896800000895d, 0x002fea0003900000 }, /* @!P0 NANOSLEEP.SYNCS 0x989680 */
		{ 0x00002800070085a7, 0x000e64000800007f }, /* @!P0 SYNCS.PHASECHK.TRANS64 P0, [R7+URZ+0x28], R0 */
		{ 0x00000000ff00098f, 0x002fe20002000000 }, /* @P0 CCTL.IVALL */
		{ 0xfffffffc00ec8947, 0x000fea000383ffff }, /* @!P0 BRA back */
		{ 0xfffffffc00d07947, 0x000fea000383ffff }, /* BRA elsewhere */
	};
	struct waits_mbarrier_wait w;
	size_t at = 0;

	TEST_EQ(waits_mbarrier_find("sm_90", code, sizeof(code), &at, &w), 0);
	TEST_EQ(at == 16 && w.offset == 0 && w.behind == 1, true);
	at += WAITS_SASS_BYTES;
	TEST_EQ(waits_mbarrier_find("sm_90", code, sizeof(code), &at, &w), 0);
	TEST_EQ(at == 64 && w.offset == 0x28 && w.behind == 4, true);
	/* Cut off, it has fewer; and behind it is no other one. */
	TEST_EQ(waits_mbarrier_find("sm_90", code, 7 * 16 + 15, &at, &w), 0);
	TEST_EQ(at == 64 && w.behind == 2, true);
	at += WAITS_SASS_BYTES;
	TEST_EQ(waits_mbarrier_find("sm_90", code, sizeof(code), &at, &w), -ENOENT);
	at = sizeof(code) + 16;
	TEST_EQ(waits_mbarrier_find("sm_90", code, sizeof(code), &at, &w), -ENOENT);
}

/* A test of another object does not belong to a wait, and a branch that is always taken ends it. */
static void what_is_of_another_wait_is_not_told(void)
{
	uint64_t code[][2] = {
		{ 0x00002800070075a7, 0x001064000800017f },
		{ 0x00003000070085a7, 0x000e64000800007f }, /* @!P0 SYNCS.PHASECHK.TRANS64 P0, [R7+URZ+0x30], R0 */
		{ 0xfffffffc00d07947, 0x000fea000383ffff },
	};
	struct waits_mbarrier_wait w;
	size_t at = 0;

	TEST_EQ(waits_mbarrier_find("sm_90", code, sizeof(code), &at, &w) || w.behind, 0);
	memcpy(code[1], code[2], sizeof(code[1]));
	TEST_EQ(waits_mbarrier_find("sm_90", code, sizeof(code), &at, &w), 0);
	TEST_EQ(w.behind, 1);
}

static void objects_are_decoded(void)
{
	struct waits_mbarrier m;

	/* What ptxas makes of mbarrier.init with 1, 2 and 32. */
	TEST_EQ(waits_mbarrier_read(0x7ffff800001ffffe, &m), 0);
	TEST_EQ(!m.phase && m.expected == 1 && m.pending == 1 && m.tx == 0, true);
	TEST_EQ(waits_mbarrier_read(0x7ffff000001ffffc, &m), 0);
	TEST_EQ(!m.phase && m.expected == 2 && m.pending == 2 && m.tx == 0, true);
	TEST_EQ(waits_mbarrier_read(0x7fff0000001fffc0, &m), 0);
	TEST_EQ(!m.phase && m.expected == 32 && m.pending == 32 && m.tx == 0, true);
	TEST_EQ(waits_mbarrier_blocks(&m, 0) && !waits_mbarrier_blocks(&m, UINT32_C(1) << 31), true);
	TEST_EQ(waits_mbarrier_read(word_of(true, 12, 8, 0), &m), 0);
	TEST_EQ(waits_mbarrier_blocks(&m, UINT32_C(1) << 31) && !waits_mbarrier_blocks(&m, 0), true);
}

static void any_object_comes_back(void)
{
	uint64_t seed = 1;
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < 1000000; i++) {
		uint32_t expected, pending;
		struct waits_mbarrier m;
		int32_t tx;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		expected = 1 + (uint32_t)(seed >> 40) % WAITS_MBARRIER_EXPECTED_MAX;
		pending = (uint32_t)(seed >> 20) % (expected + 1);
		tx = seed >> 63 ? 0 : (int32_t)(seed >> 33 & 0x1fffff) - 0xfffff;
		if (tx == 0x100000 || (!pending && !tx))
			continue;
		wrong += waits_mbarrier_read(word_of(seed >> 62 & 1, expected, pending, tx), &m) < 0 ||
			 m.phase != (seed >> 62 & 1) || m.expected != expected || m.pending != pending || m.tx != tx;
	}
	TEST_EQ(wrong, 0);
}

static void what_is_no_object_is_refused(void)
{
	uint32_t passed = 0;
	uint64_t seed = 7;
	const uint64_t words[] = {
		0, UINT64_MAX, 0x7f5c00000000, /* a pointer */
		0x3f8000003f800000, /* two floats */
		word_of(false, 0, 0, 0), word_of(false, 1, 2, 0), /* more than are expected */
		word_of(false, 4, 0, 0), /* just ending */
		word_of(false, 16385, 1, 0), word_of(false, 1, 1, 0x100000), word_of(false, 1, 1, -0x100000),
	};
	struct waits_mbarrier m;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		TEST_ROW_EQ(i, waits_mbarrier_read(words[i], &m), -EINVAL);
	for (unsigned int i = 0; i < 1000000; i++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		passed += waits_mbarrier_read(seed, &m) == 0;
	}
	TEST_EQ(passed < 1000, true);
}

TEST_SUITE(waits_mbarrier, TEST(waits_are_told_with_their_operands), TEST(what_belongs_to_a_wait_is_told),
	   TEST(what_is_of_another_wait_is_not_told), TEST(objects_are_decoded), TEST(any_object_comes_back),
	   TEST(what_is_no_object_is_refused));
