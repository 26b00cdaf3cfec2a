/* SPDX-License-Identifier: MIT */
/* Loops of NVIDIA's devices that poll memory: words that ptxas 13.0 made, and what is no such loop. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/sass.h"
#include "waits/sass_poll.h"

#define LINES_MAX 8u

struct loop {
	const char *arch;
	uint64_t words[LINES_MAX][2];
};

/* while (*flag != v): of a register, for sm_90. */
static const struct loop plain = { "sm_90", {
	{ 0x0000040404037981, 0x003ea2000c1f5900 }, /* LDG.E.STRONG.SYS R3, desc[UR4][R4.64+0x4] */
	{ 0x0000000000007946, 0x000fe20003800000 }, /* YIELD */
	{ 0x000000020300720c, 0x024fda0003f05270 }, /* ISETP.NE.AND P0, PT, R3, R2, PT */
	{ 0xfffffffc00f00947, 0x000fec000383ffff }, /* @P0 BRA back */
} };

static size_t size_of(const struct loop *l)
{
	size_t n = 0;

	while (n < LINES_MAX && l->words[n][0])
		n++;
	return n * WAITS_SASS_BYTES;
}

static int find(const struct loop *l, struct waits_sass_poll *ret)
{
	size_t at = 0;

	return waits_sass_poll_find(l->arch, l->words, size_of(l), &at, ret);
}

/* Registers hold 0x100 more than their number, uniform ones 0x200, and arguments 0x1000 more than their place. */
static bool get(const void *ctx, const struct waits_sass_operand *o, uint32_t *ret)
{
	static const uint32_t first[] = { [WAITS_SASS_REGISTER] = 0x100, [WAITS_SASS_UNIFORM] = 0x200,
					  [WAITS_SASS_BANK] = 0x1000 };

	*ret = first[o->kind] + o->value;
	return !ctx;
}

static void loops_are_told_with_address_and_condition(void)
{
	static const struct {
		struct loop l;
		enum waits_sass_space space;
		struct waits_word w;
	} rows[] = {
		{ { "sm_80", { { 0x0000000402047981, 0x000ea4000c1f5900 }, { 0x00005a0004007a0c, 0x004fda0003f05270 },
			       { 0xffffffd000000947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 4, WAITS_COMPARE_EQ, false, 0x1168, UINT32_MAX } },
		/* ld.acquire, of any memory: LD, CCTL.IVALL, ISETP.GE.U32, and the branch if that is not so. */
		{ { "sm_90", { { 0x0000000402007980, 0x001ea8000c115900 }, { 0x00000000ff00798f, 0x004fe20002000000 },
			       { 0x0000000600007c0c, 0x000fda000bf06070 },
			       { 0xfffffffc00f08947, 0x000fea000383ffff } } },
		  WAITS_SASS_GENERIC,
		  { 0x10300000102, 4, WAITS_COMPARE_GE, false, 0x206, UINT32_MAX } },
		{ { "sm_100", { { 0x0000000402007981, 0x1ea4000c1f5900 }, { 0x0000000600007c0c, 0x4fda000bf04270 },
				{ 0xfffffffc00f48947, 0xfea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 4, WAITS_COMPARE_GT, true, 0x206, UINT32_MAX } },
		/* 64 bits: two compares. */
		{ { "sm_90", { { 0x0000000402047981, 0x001ea4000c1f5b00 }, { 0x0000000604007c0c, 0x004fc8000bf06070 },
			       { 0x0000000705007c0c, 0x000fda000bf06100 },
			       { 0xfffffffc00f08947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 8, WAITS_COMPARE_GE, false, 0x20700000206, UINT64_MAX } },
		/* Bits of it, and whether the highest one has turned: a barrier of the grid. */
		{ { "sm_90", { { 0x0000000402007981, 0x001ea4000c1f5900 }, { 0x0000000600ff7c12, 0x004fda000f80c0ff },
			       { 0xfffffffc00f48947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 4, WAITS_COMPARE_NE, false, 0, 0x206 } },
		{ { "sm_90", { { 0x0000000402007980, 0x001ea8000c10f900 }, { 0x00000000ff00798f, 0x004fe20002000000 },
			       { 0x0000000600007c12, 0x000fc8000f8e3cff }, { 0xffffffff0000780c, 0x000fda0003f04270 },
			       { 0xfffffffc00ec0947, 0x000fea000383ffff } } },
		  WAITS_SASS_GENERIC,
		  { 0x10300000102, 4, WAITS_COMPARE_NE, false, 0, 0x80000000 } },
		/* Shared memory: LDS R0, [UR4+0x8] */
		{ { "sm_90", { { 0x00000804ff007984, 0x003e240008000800 }, { 0x0000000500007c0c, 0x001fda000bf06070 },
			       { 0xfffffffc00f48947, 0x000fea000383ffff } } },
		  WAITS_SASS_SHARED,
		  { 0x20c, 4, WAITS_COMPARE_GE, false, 0x205, UINT32_MAX } },
		/* A lock: MOV R6, RZ; NANOSLEEP; ATOMG.E.CAS.STRONG.GPU PT, R0, [R2], R6, R7 */
		{ { "sm_80", { { 0x000000ff00067202, 0x000fe20000000f00 }, { 0x000000140000795d, 0x000fe80003800000 },
			       { 0x00000006020073a9, 0x000ea400001ee107 }, { 0x000000ff0000720c, 0x004fda0003f05270 },
			       { 0xffffffb000000947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 4, WAITS_COMPARE_EQ, false, 0, UINT32_MAX } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waits_sass_poll p = { 0 };
		struct waits_word w = { 0 };

		TEST_ROW_EQ(i, find(&rows[i].l, &p), 0);
		TEST_ROW_EQ(i, waits_sass_poll_word(&p, get, NULL, &w), 0);
		TEST_ROW_EQ(i, p.space, rows[i].space);
		TEST_ROW_EQ(i, w.address, rows[i].w.address);
		TEST_ROW_EQ(i, w.bytes, rows[i].w.bytes);
		TEST_ROW_EQ(i, w.op, rows[i].w.op);
		TEST_ROW_EQ(i, w.is_signed, rows[i].w.is_signed);
		TEST_ROW_EQ(i, w.with, rows[i].w.with);
		TEST_ROW_EQ(i, w.mask, rows[i].w.mask);
		TEST_ROW_EQ(i, p.is_lock, i == ARRAY_SIZE(rows) - 1);
		TEST_ROW_EQ(i, p.sleeps, i == ARRAY_SIZE(rows) - 1);
		TEST_ROW_EQ(i, p.begin == 0 && p.end == size_of(&rows[i].l), true);
		/* An operand that is not known. */
		TEST_ROW_EQ(i, waits_sass_poll_word(&p, get, &p, &w), -ENODATA);
	}
}

/* Each bit that says what an instruction does changes what is told, or nothing is told. */
static void no_bit_is_left_out(void)
{
	struct waits_sass_poll whole, p;
	const size_t n = size_of(&plain) / WAITS_SASS_BYTES;

	TEST_EQ(find(&plain, &whole), 0);
	TEST_EQ(whole.base[0].value == 4 && whole.base[1].value == 5 && whole.offset == 4, true);
	TEST_EQ(whole.with[0].value, 2);
	for (size_t i = 0; i < n; i++)
		for (unsigned int bit = 0; bit < 105; bit++) {
			const size_t row = i * 128 + bit;
			struct loop l = plain;
			/* Of the load which descriptor, of YIELD all but its kind, and of != the sign. */
			const bool is_free = (i == 0 && bit >= 32 && bit < 40) || (i == 1 && bit >= 12) ||
					     (i == 2 && bit == 64 + 9);

			l.words[i][bit / 64] ^= UINT64_C(1) << bit % 64;
			memset(&p, 0, sizeof(p));
			if (find(&l, &p) == 0)
				TEST_ROW_EQ(row, !memcmp(&p, &whole, sizeof(p)), is_free);
			else
				TEST_ROW_EQ(row, is_free, false);
		}
}

static void what_may_do_more_is_not_told(void)
{
	static const uint64_t others[][2] = {
		{ 0x0000000402007986, 0x000fe2000c101904 }, /* STG.E [R2.64], R4 */
		{ 0x0000000402077981, 0x000ea4000c1f5900 }, /* another load */
		{ 0x0000000000007b1d, 0x000fec0000010000 }, /* BAR.SYNC */
		{ 0xffffffff00007948, 0x000fea0003800000 }, /* WARPSYNC */
		{ 0x0000000000007941, 0x000fea0003800000 }, /* BSYNC */
		{ 0x000000000000094d, 0x000fea0003800000 }, /* @P0 EXIT */
		{ 0x0000000100057836, 0x000fe20000000000 }, /* VIADD R5, R0, 0x1: half of the address */
		{ 0x000000ff00057202, 0x000fe20000000f00 }, /* MOV R5, RZ: the same */
		{ 0x000000ff00027202, 0x000fe20000000f00 }, /* MOV R2, RZ: what is compared with */
		{ 0xfffffffc00f81947, 0x000fea000383ffff }, /* @P1 BRA back */
	};

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct waits_sass_poll p;
		struct loop l = { .arch = "sm_90" };

		/* In front of the compare; the branch leads back one instruction more. */
		memcpy(l.words, plain.words, sizeof(plain.words));
		memcpy(l.words[1], others[i], sizeof(others[i]));
		TEST_ROW_EQ(i, find(&l, &p), -ENOENT);
	}
}

static void unknown_devices_and_ends_are_refused(void)
{
	static const char *const archs[] = { "sm_75", "sm_70", "sm_130", "", NULL };
	struct waits_sass_poll p;
	struct loop l = plain;

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		l.arch = archs[i];
		TEST_ROW_EQ(i, find(&l, &p), -ENOTSUP);
	}
	for (size_t size = 0; size < size_of(&plain); size++) {
		const void *code = test_tail_dup(plain.words, size);
		size_t at = 0;

		TEST_ROW_EQ(size, waits_sass_poll_find("sm_90", code, size, &at, &p), -ENOENT);
	}
}

TEST_SUITE(waits_sass_poll, TEST(loops_are_told_with_address_and_condition), TEST(no_bit_is_left_out),
	  TEST(what_may_do_more_is_not_told), TEST(unknown_devices_and_ends_are_refused));
