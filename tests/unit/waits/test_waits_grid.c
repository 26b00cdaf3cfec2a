/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/grid.h"
#include "waits/sass.h"

#define LINES_MAX 20u

/* What waits_grid_read() makes of a record with these two words; the rest of it does not matter. */
static int read_words(uint32_t word, uint32_t groups, size_t size, struct waits_grid *ret)
{
	uint8_t record[WAITS_GRID_BYTES];

	memset(record, 0xa5, sizeof(record));
	for (unsigned i = 0; i < 4; i++) {
		record[32 + i] = (uint8_t)(word >> 8 * i);
		record[40 + i] = (uint8_t)(groups >> 8 * i);
	}
	return waits_grid_read(record, size, ret);
}

static void records_are_read(void)
{
	static const struct {
		uint32_t word, groups;
		struct waits_grid want;
	} rows[] = {
		{ 0x00000001, 2, { 1, 2, 0 } },
		{ 0x00050027, 40, { 39, 40, 5 } },
		/* All have come, and the last one has not counted the rounds on yet. */
		{ 0x00050028, 40, { 40, 40, 5 } },
		{ 0xffff0000, 65535, { 0, 65535, 65535 } },
	};
	struct waits_grid g;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, read_words(rows[i].word, rows[i].groups, WAITS_GRID_BYTES, &g), 0);
		TEST_ROW_EQ(i, g.has, rows[i].want.has);
		TEST_ROW_EQ(i, g.expects, rows[i].want.expects);
		TEST_ROW_EQ(i, g.generation, rows[i].want.generation);
	}
}

static void other_memory_is_no_record(void)
{
	struct waits_grid g;

	TEST_EQ(read_words(0x00050029, 40, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x00050000, 0, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x00050000, 65536, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x0005ffff, UINT32_MAX, WAITS_GRID_BYTES, &g), -EINVAL);
	TEST_EQ(read_words(0x00050027, 40, WAITS_GRID_BYTES - 1, &g), -EINVAL);
	TEST_EQ(read_words(0x00050027, 40, 0, &g), -EINVAL);
}

static void only_a_change_of_the_upper_half_is_polled(void)
{
	const struct waits_word good = { .bytes = 4, .op = WAITS_COMPARE_NE, .mask = 0xffff0000, .with = 0x50000 };
	struct waits_word other = good;

	TEST_EQ(waits_grid_is_word(&good), true);
	other.mask = 0xffff;
	TEST_EQ(waits_grid_is_word(&other), false);
	other = good;
	other.op = WAITS_COMPARE_EQ;
	TEST_EQ(waits_grid_is_word(&other), false);
	other = good;
	other.bytes = 8;
	TEST_EQ(waits_grid_is_word(&other), false);
}

/* ------------------------------------------------------------------ NVIDIA's ----------------- */

struct code {
	const char *arch;
	uint64_t words[LINES_MAX][2];
};

/* What ptxas 13.0 makes of cooperative_groups::this_grid().sync(): what matters of it, in its order. */
static const struct code syncs[] = {
	{ "sm_80", {
		{ 0x00002300ff057624, 0x000fc800078e00ff }, /* IMAD.MOV.U32 R5, RZ, RZ, c[0x0][0x8c] */
		{ 0x00002400ff047624, 0x000fcc00078e00ff }, /* IMAD.MOV.U32 R4, RZ, RZ, c[0x0][0x90] */
		{ 0x000004090409098a, 0x000ea800081ee1cc }, /* @P0 ATOM.E.ADD.STRONG.GPU PT, R9, [R4.64+0x4], R9 */
		{ 0x00001f0809077589, 0x004e2400000e0000 }, /* SHFL.IDX PT, R7, R9, R8, 0x1f */
		{ 0x000000080a077c24, 0x001fca000f8e0207 }, /* IMAD R7, R10, UR8, R7 */
		{ 0x0000040c04087980, 0x000ea2000c10f900 }, /* LD.E.STRONG.GPU R8, [R4.64+0x4] */
		{ 0x0000000000007946, 0x000fe20003800000 }, /* YIELD */
		{ 0x0000000708097212, 0x004fe200078e3cff }, /* LOP3.LUT R9, R8, R7, RZ, 0x3c, !PT */
		{ 0x00000000ff00798f, 0x000fca0002000000 }, /* CCTL.IVALL */
		{ 0xffffffff0900780c, 0x000fda0003f04270 }, /* ISETP.GT.AND P0, PT, R9, -0x1, PT */
		{ 0xffffffa000000947, 0x000fea000383ffff }, /* @P0 BRA back */
	} },
	{ "sm_90", {
		{ 0x0000120000067ab9, 0x000fc60000000800 }, /* ULDC UR6, c[0x0][0x48] */
		{ 0x0000110000077ab9, 0x000fe20000000800 }, /* ULDC UR7, c[0x0][0x44] */
		{ 0x00000007ff077e24, 0x000fe2000f8e00ff }, /* IMAD.U32 R7, RZ, RZ, UR7 */
		{ 0x00000006ff067e24, 0x000fc8000f8e00ff }, /* IMAD.U32 R6, RZ, RZ, UR6 */
		{ 0x000004090609198a, 0x000ea200081ee1c4 }, /* @P1 ATOM.E.ADD, R9, desc[UR4][R6.64+0x4], R9 */
		{ 0x0000000800007224, 0x001fce00078e020b }, /* IMAD R0, R0, R8, R11 */
		{ 0x0000040406097980, 0x000ea8000c10f900 }, { 0x00000000ff00798f, 0x004fe20002000000 },
		{ 0x0000000000007946, 0x000fea0003800000 }, { 0x0000000009097212, 0x000fc800078e3cff },
		{ 0xffffffff0900780c, 0x000fda0003f04270 }, { 0xfffffffc00e80947, 0x000fea000383ffff },
	} },
	/* Of which the constants are at a place that is computed. */
	{ "sm_100", {
		{ 0x00004b000c0c77ac, 0x000e220008000800 }, { 0x00004a800d0d77ac, 0x000e620008000800 },
		{ 0x0000000cff047e24, 0x000fe2000f8e00ff }, { 0x0000000d00057c02, 0x000fd60008000f00 },
		{ 0x800004070407198a, 0x000ea200081ef10a }, { 0x0000000609067c24, 0x001fce000f8e0206 },
		{ 0x0000040a04077980, 0x000ea8000c10f900 }, { 0x00000000ff00798f, 0x004fe20002000000 },
		{ 0x0000000000007946, 0x000fea0003800000 }, { 0x0000000607077212, 0x000fc800078e3cff },
		{ 0xffffffff0700780c, 0x000fda0003f24270 }, { 0xfffffffc00e81947, 0x000fea000383ffff },
	} },
	{ "sm_75", {
		{ 0x00002300000f7ab9, 0x000fe20000000800 }, /* ULDC UR15, c[0x0][0x8c] */
		{ 0x00002400000e7ab9, 0x000fd00000000800 }, /* ULDC UR14, c[0x0][0x90] */
		{ 0x00000405ff05098a, 0x000ea800081f414e }, /* @P0 ATOM.E.ADD.STRONG.GPU PT, R5, [UR14+0x4], R5 */
		{ 0x0000000509047c24, 0x001fca000f8e0204 }, { 0x0000040eff057980, 0x000ea4000c114900 },
		{ 0x0000000405067212, 0x004fe200078e3cff }, { 0x00000000ff00798f, 0x000fca0002000000 },
		{ 0xffffffff0600780c, 0x000fd80003f04270 }, { 0x0000006000008947, 0x000fea0003800000 },
		{ 0x0000000000057806, 0x000fe200038e0100 }, { 0x0000000000007946, 0x000fe20003800000 },
		{ 0x0000000000047886, 0x000fe400038e0100 }, { 0x0000000405ff7c12, 0x000fd8000f800cff },
		{ 0xffffff6100008947, 0x000fea000383ffff }, { 0xffffffa000007947, 0x000fea000383ffff },
	} },
	/* Each round loads the address anew: its word, and the votes, overwrite it. */
	{ "sm_70", {
		{ 0x0000240000027a02, 0x000fe20000000f00 }, /* MOV R2, c[0x0][0x90] */
		{ 0x00002300ff037624, 0x000fe400078e00ff }, /* IMAD.MOV.U32 R3, RZ, RZ, c[0x0][0x8c] */
		{ 0x000004090203038a, 0x000ea800001f41ff }, /* @P0 ATOM.E.ADD.STRONG.GPU PT, R3, [R2+0x4], R9 */
		{ 0x0000000c04047224, 0x002fca00078e020b }, { 0x0000240000027a02, 0x000fe20000000f00 },
		{ 0x00002300ff037624, 0x000fd000078e00ff }, { 0x0000000402037980, 0x000ea40000114900 },
		{ 0x0000000403057212, 0x004fe200078e3cff }, { 0x00000000ff00798f, 0x000fca0002000000 },
		{ 0xffffffff0500780c, 0x000fd80003f04270 }, { 0x0000008000008947, 0x000fea0003800000 },
		{ 0x000000fffffff389, 0x000fe200000e00ff }, { 0x0000000000027806, 0x000fe200038e0100 },
		{ 0x0000000000007946, 0x000fe20003800000 }, { 0x00000000fffffb82, 0x000fe20000000800 },
		{ 0x0000000000037806, 0x000fc800038e0100 }, { 0x0000000302ff7212, 0x000fd80007800cff },
		{ 0xffffff2100008947, 0x001fea000383ffff }, { 0xffffff8000007947, 0x000fea000383ffff },
	} },
	{ "sm_120", {
		{ 0x00004b000a0a77ac, 0x000ea20008000800 }, { 0x00004a800b0b77ac, 0x000e620008000800 },
		{ 0x0000000a00047c02, 0x004fe20008000f00 }, { 0x0000000b00057c02, 0x002fc60008000f00 },
		{ 0x800004070407198a, 0x000ea200081ef10c }, { 0x0000000409067c24, 0x001fce000f8e0206 },
		{ 0x0000040c04077980, 0x000ea8000c10f900 }, { 0x00000000ff00798f, 0x004fe20002000000 },
		{ 0x0000000000007946, 0x000fea0003800000 }, { 0x0000000607077212, 0x000fca00078e3cff },
		{ 0xffffffff0700780c, 0x000fda0003f24270 }, { 0xfffffffc00e81947, 0x000fea000383ffff },
	} },
};

/* @return whether its first loop is one of a grid. */
static bool is_grid(const struct code *c)
{
	struct waits_sass_polls p;
	size_t n = 0, at = 0;

	while (n < LINES_MAX && c->words[n][0])
		n++;
	return waits_sass_poll_find(c->arch, c->words, n * WAITS_SASS_BYTES, &at, &p) == 0 &&
	       waits_grid_is_loop(c->arch, c->words, n * WAITS_SASS_BYTES, &p.any[0]);
}

static void loops_of_cooperative_launches_are_told(void)
{
	struct code c;

	for (size_t i = 0; i < TEST_COUNT(syncs); i++)
		TEST_ROW_EQ(i, is_grid(&syncs[i]), true);
	/* MOV R5, c[0x0][0x8c], as ptxas 12.4 has it too. */
	c = syncs[0];
	memcpy(c.words[0], (uint64_t[]){ 0x0000230000057a02, 0x000fe40000000f00 }, sizeof(c.words[0]));
	TEST_EQ(is_grid(&c), true);
	/* Other registers, and a branch part of whose distance lies where others name a register. */
	memcpy(c.words[3], (uint64_t[]){ 0x0000000000040947, 0x001fea0003800000 }, sizeof(c.words[3]));
	TEST_EQ(is_grid(&c), true);
}

/* One instruction of a sync is another one. */
static void other_loops_are_not(void)
{
	static const struct {
		unsigned int of, line;
		uint64_t low, high;
	} rows[] = {
		{ 0, 0, 0x00005900ff057624, 0x000fc800078e00ff }, /* The address is an argument: its upper half, */
		{ 0, 1, 0x00005800ff047624, 0x000fcc00078e00ff }, /* or its lower one. */
		{ 0, 0, 0x00002400ff057624, 0x000fc800078e00ff }, /* Twice the lower half. */
		{ 0, 1, 0x00002400ff048624, 0x000fcc00078e00ff }, /* A predicate guards it. */
		{ 0, 1, 0x00002400ff047624, 0x000fcc00078e00fe }, /* Something is added. */
		{ 0, 1, 0x00802400ff047624, 0x000fcc00078e00ff }, /* Another bank. */
		{ 0, 2, 0x000008090409098a, 0x000ea800081ee1cc }, /* It adds elsewhere, */
		{ 0, 2, 0x000004090609098a, 0x000ea800081ee1cc }, /* or to what other registers say, */
		{ 0, 2, 0x000004090409098a, 0x000ea800091ee1cc }, /* or it does not add, */
		{ 0, 2, 0x000004090409098a, 0x000ea800081ee3cc }, /* or to 64 bits, */
		{ 0, 2, 0x0000000000007918, 0x000fc00000000000 }, /* or does nothing. */
		{ 0, 3, 0x0000000402047825, 0x000fc800078e0204 }, /* IMAD.WIDE R4, R2, 0x4, R4: another address. */
		{ 0, 3, 0x0000000402047981, 0x000ea2000c1e1b00 }, /* LDG.E.64 R4, [R2.64] */
		{ 0, 3, 0x0000000402047981, 0x000ea2000c1e1d00 }, /* LDG.E.128 R4, [R2.64] */
		{ 0, 3, 0x0000000402057981, 0x000ea2000c1e1900 }, /* LDG.E R5, [R2.64] */
		{ 0, 5, 0x0000080c04087980, 0x000ea2000c10f900 }, /* Another word is polled, */
		{ 0, 5, 0x0000040c04087981, 0x000ea2000c1ef900 }, /* or one that is known to be global. */
		{ 0, 7, 0x0000000708097212, 0x004fe200078ec0ff }, /* Bits of it. */
		{ 0, 9, 0x000000000900780c, 0x000fda0003f04270 }, /* Compared with 0, */
		{ 0, 9, 0xffffffff0900780c, 0x000fda0003f04070 }, /* or without a sign, */
		{ 0, 10, 0xffffffa000008947, 0x000fea000383ffff }, /* or the other way round. */
		{ 1, 0, 0x0000840000067ab9, 0x000fc60000000800 }, /* An argument. */
		{ 1, 0, 0x0000120000067ab9, 0x000fc60000000a00 }, /* 64 bits. */
		{ 1, 2, 0x00000006ff077e24, 0x000fe2000f8e00ff }, /* Twice the lower half. */
		{ 1, 2, 0x0000000700067c82, 0x000fe20008000000 }, /* UMOV UR6, UR7 */
		{ 2, 0, 0x00004b00ff0c77ac, 0x000e220008000800 }, /* The constant of another place, */
		{ 2, 0, 0x000070000c0c77ac, 0x000e220008000800 }, /* or another one. */
		{ 3, 0, 0x00005900000f7ab9, 0x000fe20000000800 }, /* An argument, in a uniform register. */
		{ 3, 2, 0x00000405ff05098a, 0x000ea800081f414c }, /* It adds to what others say, */
		{ 3, 2, 0x000004050e05098a, 0x000ea800081f414e }, /* or to the sum of two, */
		{ 3, 2, 0x00000405ff05098a, 0x000ea800091f414e }, /* or it does not add, */
		{ 3, 2, 0x00000805ff05098a, 0x000ea800081f414e }, /* or elsewhere. */
		{ 4, 0, 0x0000580000027a02, 0x000fe20000000f00 }, /* It adds to an argument, */
		{ 4, 2, 0x000004090603038a, 0x000ea800001f41ff }, /* or to what others say, */
		{ 4, 2, 0x000004090203038a, 0x000ea800001f43ff }, /* or to 64 bits. */
		{ 4, 4, 0x0000580000027a02, 0x000fe20000000f00 }, /* An argument is polled: its lower half, */
		{ 4, 5, 0x00005900ff037624, 0x000fd000078e00ff }, /* or its upper one. */
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct code c = syncs[rows[i].of];

		c.words[rows[i].line][0] = rows[i].low;
		c.words[rows[i].line][1] = rows[i].high;
		TEST_ROW_EQ(i, is_grid(&c), false);
	}
}

/* Nor where code does not say it: its beginning is missing, or the architecture is another one. */
static void what_is_not_seen_is_not_told(void)
{
	struct code c = syncs[1];

	for (unsigned int i = 0; i < 4; i++) {
		memmove(c.words[0], c.words[1], sizeof(c.words) - sizeof(c.words[0]));
		memset(c.words[LINES_MAX - 1], 0, sizeof(c.words[0]));
		TEST_ROW_EQ(i, is_grid(&c), false);
	}
	c = syncs[1];
	c.arch = "sm_100";
	TEST_EQ(is_grid(&c), false);
	c = syncs[0];
	c.arch = "sm_90";
	TEST_EQ(is_grid(&c), false);
}

static void words_of_a_workspace_are_counted(void)
{
	static const struct {
		uint32_t word;
		uint64_t blocks;
		int want;
		struct waits_grid_blocks n;
	} rows[] = {
		{ 0x00000003, 8, 0, { 3, false } },
		{ 0x80000007, 8, 0, { 7, false } },
		{ 0x7ffffff9, 8, 0, { 1, true } },
		{ 0xffffffff, 8, 0, { 7, true } },
		{ 0x7fffffff, 1 << 30, 0, { (1 << 30) - 1, true } },
		{ 0x40000000, 1 << 30, -EINVAL, { 0 } },
		{ 0x3fffffff, 1 << 30, 0, { (1 << 30) - 1, false } },
		{ 0x40000001, 1 << 30, 0, { 1, true } },
		{ 0x00000000, 1, 0, { 0, false } },
		{ 0x00000008, 8, -EINVAL, { 0 } },
		{ 0x7ffffff8, 8, -EINVAL, { 0 } },
		{ 0x00000001, 0, -EINVAL, { 0 } },
		{ 0x00000001, (1 << 30) + 1, -EINVAL, { 0 } },
		{ 0x00000001, UINT64_MAX, -EINVAL, { 0 } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct waits_grid_blocks n = { 0 };

		TEST_ROW_EQ(i, waits_grid_count(rows[i].word, rows[i].blocks, &n), rows[i].want);
		TEST_ROW_EQ(i, n.has, rows[i].n.has);
		TEST_ROW_EQ(i, n.has_first, rows[i].n.has_first);
	}
}

/* As the blocks add, in any order and round. */
static void each_order_of_arrival_is_counted(void)
{
	enum { BLOCKS = 5 };
	uint32_t word = 0;

	for (unsigned int round = 0; round < 2 * BLOCKS; round++)
		for (unsigned int i = 0; i < BLOCKS; i++) {
			const unsigned int block = (i + round) % BLOCKS;
			struct waits_grid_blocks n;

			TEST_ROW_EQ(round, waits_grid_count(word, BLOCKS, &n), 0);
			TEST_ROW_EQ(round, n.has, i);
			TEST_ROW_EQ(round, n.has_first, i > (BLOCKS - round % BLOCKS) % BLOCKS);
			word += block ? 1 : 0x80000000 - (BLOCKS - 1);
		}
	TEST_EQ(word, 0);
}

/* ------------------------------------------------------------------ a program's own ---------- */

static void barriers_of_a_program_agree_with_the_grid(void)
{
	static const struct waits_word flag = { .address = 0x1000, .bytes = 4, .op = WAITS_COMPARE_NE,
						.mask = UINT32_MAX };
	static const struct {
		struct waits_grid_poll p;
		enum waits_grid_barrier want;
	} rows[] = {
		{ { 128, 16, 16, true, true, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_FLAGS },
		/* Lanes in between have seen theirs, and flags may have a line of their own each. */
		{ { 128, 2, 2, true, true, flag, true, 0, 0x1000 + 31 * 128, 31 }, WAITS_GRID_FLAGS },
		/* What is there is not known, or other threads than those of the absent blocks poll. */
		{ { 128, 16, 16, true, true, flag, false, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, true, false, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		/* More or fewer than are absent, of several blocks, one, all of them, or nobody. */
		{ { 128, 15, 16, true, true, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 17, 16, true, true, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, false, true, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 1, 1, true, true, flag, true, 0, 0, 0 }, WAITS_GRID_NO_BARRIER },
		{ { 16, 16, 16, true, true, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 0, 0, true, true, flag, true, 0, 0x1000 + 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		/* One word of all lanes, words that lie backwards, in no row, or in each other; not known. */
		{ { 128, 16, 16, true, true, flag, true, 0, 0x1000, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, true, true, flag, true, 0, 0x1000 - 15 * 4, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, true, true, flag, true, 0, 0x1000 + 15 * 4 + 1, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, true, true, flag, true, 0, 0x1000 + 15 * 2, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, true, true, flag, true, 0, 0x1000 + 15 * 6, 15 }, WAITS_GRID_NO_BARRIER },
		{ { 128, 16, 16, true, true, flag, true, 0, 0, 0 }, WAITS_GRID_NO_BARRIER },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, waits_grid_barrier_of(&rows[i].p), rows[i].want);
}

static void counts_of_a_program_agree_with_the_grid(void)
{
	static const struct {
		uint64_t blocks, absent, with, value, mask;
		enum waits_compare op;
		enum waits_grid_barrier want;
	} rows[] = {
		{ 128, 16, 128, 112, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_COUNT },
		{ 128, 16, 128, 112, UINT32_MAX, WAITS_COMPARE_GE, WAITS_GRID_COUNT },
		{ 128, 16, 127, 112, UINT32_MAX, WAITS_COMPARE_GT, WAITS_GRID_COUNT },
		/* Who waits for the others does not count itself. */
		{ 128, 16, 127, 111, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_COUNT },
		/* For the third time. */
		{ 128, 16, 384, 368, UINT32_MAX, WAITS_COMPARE_GE, WAITS_GRID_COUNT },
		{ 128, 1, 128, 127, UINT32_MAX, WAITS_COMPARE_GE, WAITS_GRID_COUNT },
		/* Another number is wanted, or lacks. */
		{ 128, 16, 129, 113, UINT32_MAX, WAITS_COMPARE_GE, WAITS_GRID_NO_BARRIER },
		{ 128, 16, 128, 111, UINT32_MAX, WAITS_COMPARE_GE, WAITS_GRID_NO_BARRIER },
		{ 128, 16, 128, 144, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 128, 16, 112, 128, UINT32_MAX, WAITS_COMPARE_LE, WAITS_GRID_NO_BARRIER },
		/* Flags that count rounds, of a grid of which one is not there. */
		{ 128, 1, 256, 255, UINT32_MAX, WAITS_COMPARE_GE, WAITS_GRID_NO_BARRIER },
		{ 8, 1, 7, 6, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 2, 1, 1, 0, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 2, 1, 2, 1, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		/* Nobody but who waits, part of the word, and what is no count. */
		{ 17, 16, 16, 0, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 128, 16, 128, 112, 0xff, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 128, 16, 0xffffff80, 0xffffff70, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 128, 16, 128, 112, UINT32_MAX, WAITS_COMPARE_NE, WAITS_GRID_NO_BARRIER },
		{ 1, 1, 1, 0, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 0, 0, 0, 0, UINT32_MAX, WAITS_COMPARE_EQ, WAITS_GRID_NO_BARRIER },
		{ 128, 16, UINT64_MAX, UINT64_MAX - 16, UINT64_MAX, WAITS_COMPARE_GT, WAITS_GRID_NO_BARRIER },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct waits_grid_poll p = { .blocks = rows[i].blocks, .absent = rows[i].absent, .lanes = 112,
					     .has_value = true, .value = rows[i].value };

		p.word = (struct waits_word){ .address = 0x1000, .bytes = 4, .op = rows[i].op, .with = rows[i].with,
					      .mask = rows[i].mask };
		TEST_ROW_EQ(i, waits_grid_barrier_of(&p), rows[i].want);
		p.has_value = false;
		TEST_ROW_EQ(i, waits_grid_barrier_of(&p), WAITS_GRID_NO_BARRIER);
	}
}

TEST_SUITE(waits_grid, TEST(barriers_of_a_program_agree_with_the_grid), TEST(counts_of_a_program_agree_with_the_grid),
	   TEST(records_are_read), TEST(other_memory_is_no_record),
	   TEST(only_a_change_of_the_upper_half_is_polled), TEST(loops_of_cooperative_launches_are_told),
	   TEST(other_loops_are_not), TEST(what_is_not_seen_is_not_told), TEST(words_of_a_workspace_are_counted),
	   TEST(each_order_of_arrival_is_counted));
