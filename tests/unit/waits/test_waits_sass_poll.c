/* SPDX-License-Identifier: MIT */
/* Loops of NVIDIA's devices that poll memory: words that ptxas 12.4 and 13.0 made, and what is no such loop. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/sass.h"
#include "waits/sass_poll.h"

#define LINES_MAX 12u

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

/* The same for sm_70, where lanes that go on meet at the end. */
static const struct loop meets = { "sm_70", {
	{ 0x0000000002007381, 0x000ea400001f6900 }, /* LDG.E.STRONG.SYS R0, [R2] */
	{ 0x00005c0000007a0c, 0x004fd80003f05270 }, /* ISETP.NE.AND P0, PT, R0, c[0x0][0x170], PT */
	{ 0x0000008000008947, 0x000fea0003800000 }, /* @!P0 BRA out */
	{ 0x000000fffffff389, 0x000fe200000e00ff }, /* @!PT SHFL.IDX PT, RZ, RZ, RZ, RZ */
	{ 0x0000000000007806, 0x000fe200038e0100 }, /* VOTE.ANY R0, PT, PT */
	{ 0x0000000000007946, 0x000fe20003800000 }, /* YIELD */
	{ 0x00000000fffffb82, 0x000fe20000000800 }, /* @!PT LDC RZ, c[0x0][RZ] */
	{ 0x0000000000057806, 0x000fc800038e0100 }, /* VOTE.ANY R5, PT, PT */
	{ 0x0000000500ff7212, 0x000fd80007800cff }, /* LOP3.LUT P0, RZ, R0, R5, RZ, 0xc, !PT */
	{ 0xffffff6100008947, 0x000fea000383ffff }, /* @!P0 BRA.U back */
	{ 0xffffff8000007947, 0x000fea000383ffff }, /* BRA to the first vote */
} };

/* And for sm_75, which has uniform registers. */
static const struct loop votes = { "sm_75", {
	{ 0x0000000002007984, 0x001e240000005800 }, /* LDS.U R0, [R2.X4] */
	{ 0x00005a0000007a0c, 0x001fd80003f05270 }, /* ISETP.NE.AND P0, PT, R0, c[0x0][0x168], PT */
	{ 0x0000006000008947, 0x000fea0003800000 }, { 0x0000000000007806, 0x000fe200038e0100 },
	{ 0x0000000000007946, 0x000fe20003800000 }, /* YIELD */
	{ 0x0000000000047886, 0x000fe400038e0100 }, /* VOTEU.ANY UR4, UPT, PT */
	{ 0x0000000400ff7c12, 0x000fd8000f800cff }, /* LOP3.LUT P0, RZ, R0, UR4, RZ, 0xc, !PT */
	{ 0xffffff8100008947, 0x000fea000383ffff }, { 0xffffffa000007947, 0x000fea000383ffff },
} };

static size_t size_of(const struct loop *l)
{
	size_t n = 0;

	while (n < LINES_MAX && l->words[n][0])
		n++;
	return n * WAITS_SASS_BYTES;
}

static int find_any(const struct loop *l, struct waits_sass_polls *ret)
{
	size_t at = 0;

	return waits_sass_poll_find(l->arch, l->words, size_of(l), &at, ret);
}

/* Of a loop that polls one word. */
static int find(const struct loop *l, struct waits_sass_poll *ret)
{
	struct waits_sass_polls p;
	int r = find_any(l, &p);

	if (r == 0 && p.n != 1)
		return -E2BIG;
	if (r == 0)
		*ret = p.any[0];
	return r;
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
		/* 8 and 16 bits, without a sign and with one: what it is compared with has to be such a word. */
		{ { "sm_90", { { 0x0000000602007981, 0x000ea2000c1f5100 }, { 0x000000ff0000780c, 0x004fda0003f05270 },
			       { 0xfffffffc00f40947, 0x000fec000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 1, WAITS_COMPARE_EQ, false, 0xff, 0xff } },
		{ { "sm_80", { { 0x0000000402007981, 0x000ea4000c1f5700 }, { 0xfffffffb0000780c, 0x004fda0003f06270 },
			       { 0xffffffd000008947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 2, WAITS_COMPARE_GE, true, 0xfffb, 0xffff } },
		{ { "sm_70", { { 0x0000000002007984, 0x001e240000001000 }, { 0x000000070000780c, 0x001fd80003f06270 },
			       { 0xffffffd000008947, 0x000fea000383ffff } } },
		  WAITS_SASS_SHARED,
		  { 0x102, 1, WAITS_COMPARE_GE, false, 7, 0xff } },
		/* A bit of a byte. */
		{ { "sm_90", { { 0x0000000602007981, 0x000ea2000c1f5100 }, { 0x0000008000ff7812, 0x004fda000780c0ff },
			       { 0xfffffffc00f48947, 0x000fec000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x10300000102, 1, WAITS_COMPARE_NE, false, 0, 0x80 } },
		/* Of an address that each round loads anew: LDC.64 R2, c[0x0][0x210]; or IMAD.MOV and MOV. */
		{ { "sm_90", { { 0x00008400ff027b82, 0x000e640000000a00 }, { 0x0000040402027981, 0x002ea4000c1f5900 },
			       { 0x000000ff0200720c, 0x004fda0003f05270 },
			       { 0xfffffffc00f08947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x121400001214, 4, WAITS_COMPARE_NE, false, 0, UINT32_MAX } },
		{ { "sm_80", { { 0x00005800ff027624, 0x000fe200078e00ff }, { 0x0000590000037a02, 0x000fca0000000f00 },
			       { 0x0000040402027981, 0x000ea4000c1f5900 }, { 0x000000ff0200720c, 0x004fda0003f05270 },
			       { 0xffffffb000008947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x116400001164, 4, WAITS_COMPARE_NE, false, 0, UINT32_MAX } },
		/* ULDC.64 UR4, c[0x0][0x160]; LD.E.STRONG.GPU R0, [UR4] */
		{ { "sm_75", { { 0x0000580000047ab9, 0x000fe40000000a00 }, { 0x00000004ff007980, 0x000ea4000c114900 },
			       { 0x00005c0000007a0c, 0x004fe20003f05270 }, { 0x00000000ff00798f, 0x000fd60002000000 },
			       { 0xffffffb000000947, 0x000fea000383ffff } } },
		  WAITS_SASS_GENERIC,
		  { 0x116400001160, 4, WAITS_COMPARE_EQ, false, 0x1170, UINT32_MAX } },
		/* LDG.E.STRONG.SYS R0, [R2.U32+UR6] */
		{ { "sm_75", { { 0x0000000602007981, 0x001ea400081f6900 }, { 0x000000ff0000720c, 0x004fd80003f05270 },
			       { 0xffffffd000008947, 0x000fea000383ffff } } },
		  WAITS_SASS_GLOBAL,
		  { 0x20700000308, 4, WAITS_COMPARE_NE, false, 0, UINT32_MAX } },
		/* LD.E.STRONG.GPU R4, [R2+-0x8], whose offset lies elsewhere than that of others. */
		{ { "sm_70", { { 0xfffffff802047980, 0x000ea40000114900 }, { 0x00005c0004007a0c, 0x004fe20003f05270 },
			       { 0xffffffd000000947, 0x000fea000383ffff } } },
		  WAITS_SASS_GENERIC,
		  { 0x103000000fa, 4, WAITS_COMPARE_EQ, false, 0x1170, UINT32_MAX } },
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

static void lanes_that_meet_are_told(void)
{
	struct waits_sass_poll p = { 0 };
	struct waits_word w = { 0 };

	TEST_EQ(find(&meets, &p), 0);
	TEST_EQ(p.begin == 0 && p.load == 0 && p.end == size_of(&meets) && p.space == WAITS_SASS_GLOBAL, true);
	TEST_EQ(waits_sass_poll_word(&p, get, NULL, &w), 0);
	TEST_EQ(w.address, 0x10300000102);
	TEST_EQ(w.op == WAITS_COMPARE_EQ && w.with == 0x1170, true);
	memset(&p, 0, sizeof(p));
	TEST_EQ(find(&votes, &p), 0);
	TEST_EQ(p.begin == 0 && p.load == 0 && p.end == size_of(&votes) && p.space == WAITS_SASS_SHARED, true);
	TEST_EQ(waits_sass_poll_word(&p, get, NULL, &w), 0);
	TEST_EQ(w.address, 0x408);
	TEST_EQ(w.op == WAITS_COMPARE_EQ && w.with == 0x1168, true);
}

/* Of how lanes meet as well, but for where they go that leave, and YIELD; and of what is asked, only that is told. */
static void no_bit_of_how_they_meet_is_left_out(void)
{
	const struct loop *const loops[] = { &meets, &votes };

	for (size_t k = 0; k < ARRAY_SIZE(loops); k++) {
		const size_t n = size_of(loops[k]) / WAITS_SASS_BYTES;
		struct waits_sass_poll whole = { 0 }, p;

		TEST_EQ(find(loops[k], &whole), 0);
		for (size_t i = 0; i < n; i++)
			for (unsigned int bit = 0; bit < 105; bit++) {
				const size_t row = (k * LINES_MAX + i) * 128 + bit;
				struct loop l = *loops[k];
				const bool is_scope = i == 0 && bit == 64 + 13 && k == 0;
				const bool is_free = is_scope ||
						     (i == 1 && bit == 64 + 9) ||
						     (i == 2 && bit >= 36 && bit < 63 &&
						      !(loops[k]->words[2][0] >> bit & 1)) ||
						     ((loops[k]->words[i][0] & 0xfff) == 0x946 && bit >= 12);

				l.words[i][bit / 64] ^= UINT64_C(1) << bit % 64;
				memset(&p, 0, sizeof(p));
				if (find(&l, &p) == 0 && is_scope) {
					TEST_ROW_EQ(row, p.of_device, !whole.of_device);
					p.of_device = whole.of_device;
				}
				if (p.bytes)
					TEST_ROW_EQ(row, !memcmp(&p, &whole, sizeof(p)), is_free);
				else
					TEST_ROW_EQ(row, is_free, false);
			}
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

struct small {
	uint64_t load, compare;
	uint32_t with;
	int want;
};

/* All words: as the device compares them, in 32 bits. */
static void ends_as_the_device_does(size_t row, const struct small *s, const struct waits_sass_poll *p,
				    const struct waits_word *w)
{
	for (uint32_t word = 0; word < 1u << 8 * w->bytes; word++) {
		const uint32_t sign = 1u << (8 * w->bytes - 1), wide = p->extends ? (word ^ sign) - sign : word;
		const bool is_signed = s->compare >> 9 & 1;
		bool ends = is_signed ? (int32_t)wide >= (int32_t)s->with : wide >= s->with;

		if (p->op == WAITS_COMPARE_EQ)
			ends = wide == s->with;
		if (waits_word_holds(w, word) != ends)
			TEST_ROW_EQ(row, word, UINT32_MAX);
	}
}

/* What no word of its size can be, and what sign it has. */
static void small_words_are_compared_as_such(void)
{
	static const struct small rows[] = {
		{ 0xc1f5100, 0x3f02270, 0x100, -ENOTSUP }, /* U8 */
		{ 0xc1f5100, 0x3f02270, 0xffffffff, -ENOTSUP },
		{ 0xc1f5100, 0x3f02270, 0xfe, 0 },
		{ 0xc1f5100, 0x3f06270, 0x80, 0 },
		{ 0xc1f5300, 0x3f02270, 0x80, -ENOTSUP }, /* S8 */
		{ 0xc1f5300, 0x3f02270, 0xffffff80, 0 },
		{ 0xc1f5300, 0x3f06070, 0xffffff80, 0 },
		{ 0xc1f5500, 0x3f02270, 0x10000, -ENOTSUP }, /* U16 */
		{ 0xc1f5500, 0x3f06070, 0xffff, 0 },
		{ 0xc1f5700, 0x3f02270, 0xffff, -ENOTSUP }, /* S16 */
		{ 0xc1f5700, 0x3f06270, 0x7fff, 0 },
		{ 0xc1f5700, 0x3f06270, 0xffff8001, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct loop l = { "sm_80", { { 0x0000000402007981, rows[i].load },
						   { 0x780c | (uint64_t)rows[i].with << 32, rows[i].compare },
						   { 0xffffffd000008947, 0x000fea000383ffff } } };
		struct waits_sass_poll p = { 0 };
		struct waits_word w = { 0 };

		TEST_ROW_EQ(i, find(&l, &p), 0);
		TEST_ROW_EQ(i, waits_sass_poll_word(&p, get, NULL, &w), rows[i].want);
		if (!rows[i].want)
			ends_as_the_device_does(i, &rows[i], &p, &w);
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

/* How lanes meet is that of older devices, and the other way round. */
static void loops_of_other_devices_are_not_told(void)
{
	struct waits_sass_poll p;
	struct loop l = meets;

	l.arch = "sm_80";
	TEST_EQ(find(&l, &p), -ENOENT);
	l = plain;
	l.arch = "sm_75";
	TEST_EQ(find(&l, &p), -ENOENT);
}

/* A loop may load what it does not compare: do { last = *q; } while (*p != v), for sm_90. */
static void the_word_that_is_compared_is_told(void)
{
	static const struct loop stamped = { "sm_90", {
		{ 0x0000000402057981, 0x022768000c1f5900 }, /* LDG.E.STRONG.SYS R5, desc[UR4][R2.64] */
		{ 0x0000000406007981, 0x004ea4000c1f5900 }, /* LDG.E.STRONG.SYS R0, desc[UR4][R6.64] */
		{ 0x0000000600007c0c, 0x004fda000bf05270 }, /* ISETP.NE.AND P0, PT, R0, UR6, PT */
		{ 0xfffffffc00f00947, 0x00afea000383ffff }, /* @P0 BRA back */
	} };
	struct loop l = stamped;
	struct waits_sass_poll p = { 0 };
	struct waits_word w = { 0 };

	TEST_EQ(find(&l, &p), 0);
	TEST_EQ(p.load, WAITS_SASS_BYTES);
	TEST_EQ(waits_sass_poll_word(&p, get, NULL, &w), 0);
	TEST_EQ(w.address, 0x10700000106);
	/* The other one, of 8 bits. */
	l.words[0][1] = 0x022768000c1f5100;
	l.words[2][0] = 0x0000000605007c0c;
	memset(&p, 0, sizeof(p));
	TEST_EQ(find(&l, &p), 0);
	TEST_EQ(p.load == 0 && p.bytes == 1, true);
	TEST_EQ(waits_sass_poll_word(&p, get, NULL, &w), -ENOTSUP);
	/* Both to one register: the last one counts. */
	l = stamped;
	l.words[0][0] = 0x0000000402007981;
	memset(&p, 0, sizeof(p));
	TEST_EQ(find(&l, &p), 0);
	TEST_EQ(p.load, WAITS_SASS_BYTES);
	/* What it is compared with is made behind the load, or the word is overwritten: MOV R2, RZ; MOV R3, RZ. */
	l = plain;
	l.words[1][0] = 0x000000ff00027202;
	l.words[1][1] = 0x000fe20000000f00;
	memset(&p, 0, sizeof(p));
	TEST_EQ(find(&l, &p), 0);
	TEST_EQ(p.with[0].kind == WAITS_SASS_CONSTANT && !p.with[0].value, true);
	l.words[1][0] = 0x000000ff00037202;
	TEST_EQ(find(&l, &p), -ENOENT);
	/* Both words with each other, or the address of one is the other. */
	l = stamped;
	l.words[2][0] = 0x000000050000720c;
	l.words[2][1] = 0x004fda0003f05270;
	TEST_EQ(find(&l, &p), -ENOENT);
	l = stamped;
	l.words[0][0] = 0x0000000402067981;
	TEST_EQ(find(&l, &p), -ENOENT);
	/* ATOMG.E.CAS stores. */
	l = stamped;
	l.words[0][0] = 0x00000008020573a9;
	l.words[0][1] = 0x000ea400001ee109;
	TEST_EQ(find(&l, &p), -ENOENT);
}

/* while (*flag < n) if (*stop) return; for sm_90, as in flags.cu. */
static const struct loop stopped = { "sm_90", {
	{ 0x0000000402007980, 0x001ea8000c10f900 }, /* LD.E.STRONG.GPU R0, desc[UR4][R2.64] */
	{ 0x0000000600007c0c, 0x000fda000bf06070 }, /* ISETP.GE.U32.AND P0, PT, R0, UR6, PT */
	{ 0x0000000000140947, 0x000fea0003800000 }, /* @P0 BRA out */
	{ 0x0000000404007980, 0x002ea8000c10f900 }, /* LD.E.STRONG.GPU R0, desc[UR4][R4.64] */
	{ 0x000000ff0000720c, 0x000fda0003f05270 }, /* ISETP.NE.AND P0, PT, R0, RZ, PT */
	{ 0xfffffffc00e88947, 0x000fea000383ffff }, /* @!P0 BRA back */
	{ 0x0000000000007918, 0x000fc00000000000 }, /* NOP; STOPPED_END */
	{ 0x0000000000007918, 0x000fc00000000000 }, { 0x000000000000794d, 0x000fea0003800000 }, /* EXIT */
} };
#define STOPPED_END 0x60u

static void any_of_several_words_ends_a_loop(void)
{
	/* @P0 EXIT instead of the branch out, and the same with the compare turned round. */
	static const uint64_t exits[] = { 0x000000000000094d, 0x000000000000894d };
	struct loop l = stopped;
	struct waits_sass_polls p;
	struct waits_word w;

	for (size_t i = 0; i <= ARRAY_SIZE(exits); i++) {
		TEST_ROW_EQ(i, find_any(&l, &p), 0);
		TEST_ROW_EQ(i, p.n, 2);
		TEST_ROW_EQ(i, p.any[0].load == 0 && p.any[1].load == 3 * WAITS_SASS_BYTES, true);
		TEST_ROW_EQ(i, p.any[1].begin == 0 && p.any[1].end == STOPPED_END, true);
		TEST_ROW_EQ(i, waits_sass_poll_word(&p.any[0], get, NULL, &w), 0);
		TEST_ROW_EQ(i, w.address, 0x10300000102);
		TEST_ROW_EQ(i, w.op, i == 2 ? WAITS_COMPARE_LT : WAITS_COMPARE_GE);
		TEST_ROW_EQ(i, w.with, 0x206);
		TEST_ROW_EQ(i, waits_sass_poll_word(&p.any[1], get, NULL, &w), 0);
		TEST_ROW_EQ(i, w.address, 0x10500000104);
		TEST_ROW_EQ(i, w.op == WAITS_COMPARE_NE && !w.with, true);
		if (i < ARRAY_SIZE(exits))
			l.words[2][0] = exits[i];
	}
}

/* Each bit of EXIT counts; and nobody leaves by another predicate, without a compare, or within the loop. */
static void who_leaves_early_has_seen_a_word(void)
{
	struct loop l = stopped;
	struct waits_sass_polls p;

	l.words[2][0] = 0x000000000000094d;
	for (unsigned int bit = 0; bit < 105; bit++) {
		struct loop other = l;

		/* The predicate turned round is another compare. */
		if (bit == 15)
			continue;
		other.words[2][bit / 64] ^= UINT64_C(1) << bit % 64;
		TEST_ROW_EQ(bit, find_any(&other, &p), -ENOENT);
	}
	/* @P0 BRA to the compare of the other word, and to the branch back. */
	l = stopped;
	l.words[2][0] = 0x0000000000040947;
	TEST_EQ(find_any(&l, &p), -ENOENT);
	l.words[2][0] = 0x0000000000080947;
	TEST_EQ(find_any(&l, &p), -ENOENT);
	/* It leads behind the loop by one instruction less than this. */
	l.words[2][0] = 0x00000000000c0947;
	TEST_EQ(find_any(&l, &p), 0);
	/* The last instruction, and what is behind all that is known. */
	l.words[2][0] = 0x0000000000140947;
	TEST_EQ(find_any(&l, &p), 0);
	l.words[2][0] = 0x0000000000180947;
	TEST_EQ(find_any(&l, &p), -ENOENT);
	/* Twice by one compare; and a branch back that none is made for. */
	l = stopped;
	memcpy(l.words[3], stopped.words[2], sizeof(l.words[3]));
	TEST_EQ(find_any(&l, &p), -ENOENT);
	l = stopped;
	memcpy(l.words[4], plain.words[1], sizeof(l.words[4]));
	TEST_EQ(find_any(&l, &p), -ENOENT);
}

/* Of all devices; forward ones, and those to what is in front of the code, are none. */
static void branches_that_lead_back_are_found(void)
{
	static const struct {
		struct loop l;
		size_t at, to;
	} rows[] = {
		{ { "sm_75", { { 0x7918, 0 }, { 0x7918, 0 }, { 0xffffffe000007947, 0x000fea000383ffff } } }, 0x20, 0x10 },
		{ { "sm_90", { { 0x7918, 0 }, { 0xfffffffc00f80947, 0x000fea000383ffff } } }, 0x10, 0 },
		{ { "sm_90", { { 0x0000000000140947, 0x000fea0003800000 }, { 0xfffffffc00fc7947, 0x000fea000383ffff } } },
		  0x10, 0x10 },
	};
	struct loop l = rows[1].l;
	size_t at = 0, to = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		at = 0;
		TEST_ROW_EQ(i, waits_sass_back_find(rows[i].l.arch, rows[i].l.words, size_of(&rows[i].l), &at, &to), 0);
		TEST_ROW_EQ(i, at, rows[i].at);
		TEST_ROW_EQ(i, to, rows[i].to);
		at += WAITS_SASS_BYTES;
		TEST_ROW_EQ(i, waits_sass_back_find(rows[i].l.arch, rows[i].l.words, size_of(&rows[i].l), &at, &to),
			    -ENOENT);
	}
	at = 0;
	TEST_EQ(waits_sass_back_find("sm_60", l.words, size_of(&l), &at, &to), -ENOTSUP);
	TEST_EQ(waits_sass_back_find("sm_90", test_tail_dup(l.words, 31), 31, &at, &to), -ENOENT);
	at = 0;
	l.words[1][0] = 0xfffffffc00f40947;
	TEST_EQ(waits_sass_back_find("sm_90", l.words, size_of(&l), &at, &to), -ENOENT);
}

/* LDG.E.STRONG.SYS R5, [R4.64+0x4]: the next round polls elsewhere. */
static void an_address_that_the_loop_writes_is_not_told(void)
{
	struct waits_sass_poll p;
	struct loop l = plain;

	l.words[0][0] = 0x0000000404057981;
	l.words[2][0] = 0x000000020500720c;
	TEST_EQ(find(&l, &p), -ENOENT);
	/* Nor what is compared with: the other half of the word. */
	l = plain;
	l.words[0][1] = 0x003ea2000c1f5b00;
	l.words[2][0] = 0x000000040300720c;
	TEST_EQ(find(&l, &p), -ENOENT);
}

static void unknown_devices_and_ends_are_refused(void)
{
	static const char *const archs[] = { "sm_60", "sm_130", "", NULL };
	struct waits_sass_polls p;
	struct loop l = plain;

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		l.arch = archs[i];
		TEST_ROW_EQ(i, find_any(&l, &p), -ENOTSUP);
	}
	for (size_t size = 0; size < size_of(&plain); size++) {
		const void *code = test_tail_dup(plain.words, size);
		size_t at = 0;

		TEST_ROW_EQ(size, waits_sass_poll_find("sm_90", code, size, &at, &p), -ENOENT);
	}
	for (size_t size = 0; size < size_of(&meets); size++) {
		const void *code = test_tail_dup(meets.words, size);
		size_t at = 0;

		TEST_ROW_EQ(size, waits_sass_poll_find("sm_70", code, size, &at, &p), -ENOENT);
	}
}

/* LDG.E.STRONG and LD.E.STRONG, .GPU and .SYS, whose numbers are others on older devices. */
static void whether_the_device_is_asked_or_the_system_is_told(void)
{
	static const struct {
		struct loop l;
		bool want;
	} rows[] = {
		{ { "sm_80", { { 0x0000000402047981, 0x000ea4000c1f5900 }, { 0x00005a0004007a0c, 0x004fda0003f05270 },
			       { 0xffffffd000000947, 0x000fea000383ffff } } }, false },
		{ { "sm_80", { { 0x0000000402047981, 0x000ea4000c1ef900 }, { 0x00005a0004007a0c, 0x004fda0003f05270 },
			       { 0xffffffd000000947, 0x000fea000383ffff } } }, true },
		{ { "sm_90", { { 0x0000000402007980, 0x001ea8000c115900 }, { 0x0000000600007c0c, 0x000fda000bf06070 },
			       { 0xfffffffc00f48947, 0x000fea000383ffff } } }, false },
		{ { "sm_90", { { 0x0000000402007980, 0x001ea8000c10f900 }, { 0x0000000600007c0c, 0x000fda000bf06070 },
			       { 0xfffffffc00f48947, 0x000fea000383ffff } } }, true },
		{ { "sm_70", { { 0xfffffff802047980, 0x000ea40000114900 }, { 0x00005c0004007a0c, 0x004fe20003f05270 },
			       { 0xffffffd000000947, 0x000fea000383ffff } } }, true },
		{ { "sm_75", { { 0x0000000602007981, 0x001ea400081f6900 }, { 0x000000ff0000720c, 0x004fd80003f05270 },
			       { 0xffffffd000008947, 0x000fea000383ffff } } }, false },
		/* In memory of the block. */
		{ { "sm_90", { { 0x00000804ff007984, 0x003e240008000800 }, { 0x0000000500007c0c, 0x001fda000bf06070 },
			       { 0xfffffffc00f48947, 0x000fea000383ffff } } }, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waits_sass_poll p = { 0 };

		TEST_ROW_EQ(i, find(&rows[i].l, &p), 0);
		TEST_ROW_EQ(i, p.of_device, rows[i].want);
	}
}

TEST_SUITE(waits_sass_poll, TEST(whether_the_device_is_asked_or_the_system_is_told),
	   TEST(loops_are_told_with_address_and_condition), TEST(lanes_that_meet_are_told),
	  TEST(no_bit_is_left_out), TEST(no_bit_of_how_they_meet_is_left_out),
	  TEST(small_words_are_compared_as_such), TEST(what_may_do_more_is_not_told),
	  TEST(the_word_that_is_compared_is_told), TEST(any_of_several_words_ends_a_loop),
	  TEST(who_leaves_early_has_seen_a_word), TEST(branches_that_lead_back_are_found),
	  TEST(an_address_that_the_loop_writes_is_not_told),
	  TEST(loops_of_other_devices_are_not_told), TEST(unknown_devices_and_ends_are_refused));
