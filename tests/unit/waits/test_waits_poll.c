/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "testlib.h"
#include "waits/poll.h"

/*
 * Loops as clang 22 compiles them at -O2 (the sources are those of tests/peers/test_waits.py): all instructions
 * from the target of the branch back to that branch.  Those that make their address anew in each round are of clang 14,
 * whose source is wait_for_peer() of sim/scenes/amd/train.hip.
 */
enum source { FLAG_EQ, FLAG_GE, FLAG_U64, FLAG_NZ, FLAG_SGE, FLAG_BIT, PERLANE, PERLANE_GE, LOCK, GRIDSYNC, REMADE };

static const struct loop {
	enum waits_family family;
	enum source source;
	size_t n;
	uint32_t words[16];
} loops[] = {
	{ WAITS_GFX9, FLAG_EQ, 6, /* gfx90a */
	  { 0xbf8cc07f, 0xdc518000, 0x01000000, 0xbf8c0f70, 0x7d9a0202, 0xbf87fffa } },
	{ WAITS_GFX9, FLAG_GE, 10, /* gfx90a */
	  { 0xbf8e0002, 0xdc518000, 0x01000000, 0xbf8c0f70, 0xe0a40000, 0x00000000, 0xe0fc0000, 0x00000000,
	    0x7d980202, 0xbf87fff6 } },
	{ WAITS_GFX9, FLAG_U64, 10, /* gfx90a */
	  { 0xbf8e0002, 0xdc558000, 0x02000000, 0xbf8c0f70, 0xe0a40000, 0x00000000, 0xe0fc0000, 0x00000000,
	    0x7dda0402, 0xbf87fff6 } },
	{ WAITS_GFX9, FLAG_NZ, 8, /* gfx90a */
	  { 0xbf8cc07f, 0xdc518000, 0x01000000, 0xbf8c0f70, 0xe0fc0000, 0x00000000, 0x7d940280, 0xbf87fff8 } },
	{ WAITS_GFX9, FLAG_SGE, 6, /* gfx90a */
	  { 0xbf8cc07f, 0xdc51800c, 0x01000000, 0xbf8c0f70, 0x7d880202, 0xbf87fffa } },
	{ WAITS_GFX9, FLAG_BIT, 7, /* gfx90a */
	  { 0xbf8e0001, 0xdc51800c, 0x01000000, 0xbf8c0f70, 0x26020284, 0x7d940280, 0xbf87fff9 } },
	{ WAITS_GFX9, PERLANE, 7, /* gfx90a */
	  { 0xdc518000, 0x027f0000, 0xbf8c0f70, 0x7d940402, 0x8780006a, 0x89fe007e, 0xbf89fff9 } },
	{ WAITS_GFX9, PERLANE_GE, 12, /* gfx90a */
	  { 0xbf8e0001, 0xdc558000, 0x027f0000, 0xbf8c0f70, 0xe0a40000, 0x00000000, 0xe0fc0000, 0x00000000,
	    0x7dd60402, 0x8780006a, 0x89fe007e, 0xbf89fff4 } },
	{ WAITS_GFX9, LOCK, 10, /* gfx90a */
	  { 0xbf8cc07f, 0xdd058000, 0x02000001, 0xbf8c0f70, 0xe0fc0000, 0x00000000, 0x7d940480, 0x8782026a,
	    0x89fe027e, 0xbf89fff6 } },
	{ WAITS_GFX9, GRIDSYNC, 9, /* gfx90a */
	  { 0xbf8e0001, 0xdc518000, 0x02000000, 0xbf8c0f70, 0x2a040302, 0x7d920404, 0x8782026a, 0x89fe027e,
	    0xbf89fff7 } },
	{ WAITS_GFX9, FLAG_EQ, 6, /* gfx942 */
	  { 0xbf8cc07f, 0xde518000, 0x01020000, 0xbf8c0f70, 0x7d9a0204, 0xbf87fffa } },
	{ WAITS_GFX9, FLAG_GE, 8, /* gfx942 */
	  { 0xbf8e0002, 0xde518000, 0x01020000, 0xbf8c0f70, 0xe0a4c000, 0x00000000, 0x7d980204, 0xbf87fff8 } },
	{ WAITS_GFX9, FLAG_U64, 8, /* gfx942 */
	  { 0xbf8e0002, 0xde558000, 0x02000000, 0xbf8c0f70, 0xe0a4c000, 0x00000000, 0x7dda0402, 0xbf87fff8 } },
	{ WAITS_GFX9, FLAG_NZ, 8, /* gfx942 */
	  { 0xbf8cc07f, 0xde508000, 0x01000000, 0xbf8c0f70, 0xe0a48000, 0x00000000, 0x7d940280, 0xbf87fff8 } },
	{ WAITS_GFX9, FLAG_SGE, 6, /* gfx942 */
	  { 0xbf8cc07f, 0xde51800c, 0x01020000, 0xbf8c0f70, 0x7d880204, 0xbf87fffa } },
	{ WAITS_GFX9, FLAG_BIT, 7, /* gfx942 */
	  { 0xbf8e0001, 0xde51800c, 0x01000000, 0xbf8c0f70, 0x26020284, 0x7d940280, 0xbf87fff9 } },
	{ WAITS_GFX9, PERLANE, 7, /* gfx942 */
	  { 0xde518000, 0x027f0000, 0xbf8c0f70, 0x7d940402, 0x8780006a, 0x89fe007e, 0xbf89fff9 } },
	{ WAITS_GFX9, PERLANE_GE, 10, /* gfx942 */
	  { 0xbf8e0001, 0xde558000, 0x027f0000, 0xbf8c0f70, 0xe0a4c000, 0x00000000, 0x7dd60402, 0x8780006a,
	    0x89fe007e, 0xbf89fff6 } },
	{ WAITS_GFX9, LOCK, 10, /* gfx942 */
	  { 0xbf8cc07f, 0xdd058000, 0x02000001, 0xbf8c0f70, 0xe0a48000, 0x00000000, 0x7d940480, 0x8782026a,
	    0x89fe027e, 0xbf89fff6 } },
	{ WAITS_GFX9, GRIDSYNC, 9, /* gfx942 */
	  { 0xbf8e0001, 0xde508000, 0x02000000, 0xbf8c0f70, 0x2a040302, 0x7d920404, 0x8782026a, 0x89fe027e,
	    0xbf89fff7 } },
	{ WAITS_GFX10, FLAG_EQ, 6, /* gfx1030 */
	  { 0xbf8cc07f, 0xdc319000, 0x01000000, 0xbf8c3f70, 0x7d8a0202, 0xbf87fffa } },
	{ WAITS_GFX10, FLAG_GE, 10, /* gfx1030 */
	  { 0xbf8e0002, 0xdc319000, 0x01000000, 0xbf8c3f70, 0xe1c80000, 0x00000000, 0xe1c40000, 0x00000000,
	    0x7d880202, 0xbf87fff6 } },
	{ WAITS_GFX10, FLAG_U64, 10, /* gfx1030 */
	  { 0xbf8e0002, 0xdc359000, 0x01000000, 0xbf8c3f70, 0xe1c80000, 0x00000000, 0xe1c40000, 0x00000000,
	    0x7dca0202, 0xbf87fff6 } },
	{ WAITS_GFX10, FLAG_NZ, 10, /* gfx1030 */
	  { 0xbf8cc07f, 0xdc319000, 0x01000000, 0xbf8c3f70, 0xe1c80000, 0x00000000, 0xe1c40000, 0x00000000,
	    0x7d840280, 0xbf87fff6 } },
	{ WAITS_GFX10, FLAG_SGE, 6, /* gfx1030 */
	  { 0xbf8cc07f, 0xdc31900c, 0x01000000, 0xbf8c3f70, 0x7d080202, 0xbf87fffa } },
	{ WAITS_GFX10, FLAG_BIT, 7, /* gfx1030 */
	  { 0xbf8e0001, 0xdc31900c, 0x01000000, 0xbf8c3f70, 0x36020284, 0x7d840280, 0xbf87fff9 } },
	{ WAITS_GFX10, PERLANE, 7, /* gfx1030 */
	  { 0xdc319000, 0x027d0000, 0xbf8c3f70, 0x7d840400, 0x8801016a, 0x8a7e017e, 0xbf89fff9 } },
	{ WAITS_GFX10, PERLANE_GE, 12, /* gfx1030 */
	  { 0xbf8e0001, 0xdc359000, 0x027d0000, 0xbf8c3f70, 0xe1c80000, 0x00000000, 0xe1c40000, 0x00000000,
	    0x7dc60402, 0x8800006a, 0x8a7e007e, 0xbf89fff4 } },
	{ WAITS_GFX10, LOCK, 12, /* gfx1030 */
	  { 0xbf8cc07f, 0xdcc58000, 0x02000001, 0xbf8c3f70, 0xe1c80000, 0x00000000, 0xe1c40000, 0x00000000,
	    0x7d840480, 0x8802026a, 0x8a7e027e, 0xbf89fff4 } },
	{ WAITS_GFX10, GRIDSYNC, 10, /* gfx1030 */
	  { 0xbf8e0001, 0xdc319000, 0x02000000, 0xbf8c3f70, 0x3a040302, 0x7d8204ff, 0x0000ffff, 0x8802026a,
	    0x8a7e027e, 0xbf89fff6 } },
	{ WAITS_GFX11, FLAG_EQ, 6, /* gfx1100 */
	  { 0xbf89fc07, 0xdc524000, 0x01020000, 0xbf8903f7, 0x7c9a0200, 0xbfa4fffa } },
	{ WAITS_GFX11, FLAG_GE, 10, /* gfx1100 */
	  { 0xbf830002, 0xdc524000, 0x01020000, 0xbf8903f7, 0xe0b00000, 0x00000000, 0xe0ac0000, 0x00000000,
	    0x7c980200, 0xbfa4fff6 } },
	{ WAITS_GFX11, FLAG_U64, 10, /* gfx1100 */
	  { 0xbf830002, 0xdc564000, 0x01000000, 0xbf8903f7, 0xe0b00000, 0x00000000, 0xe0ac0000, 0x00000000,
	    0x7cba0202, 0xbfa4fff6 } },
	{ WAITS_GFX11, FLAG_NZ, 10, /* gfx1100 */
	  { 0xbf89fc07, 0xdc524000, 0x01000000, 0xbf8903f7, 0xe0b00000, 0x00000000, 0xe0ac0000, 0x00000000,
	    0x7c940280, 0xbfa4fff6 } },
	{ WAITS_GFX11, FLAG_SGE, 6, /* gfx1100 */
	  { 0xbf89fc07, 0xdc52400c, 0x01020000, 0xbf8903f7, 0x7c880200, 0xbfa4fffa } },
	{ WAITS_GFX11, FLAG_BIT, 8, /* gfx1100 */
	  { 0xbf830001, 0xdc52400c, 0x01000000, 0xbf8903f7, 0x36020284, 0xbf870001, 0x7c940280, 0xbfa4fff8 } },
	{ WAITS_GFX11, PERLANE, 8, /* gfx1100 */
	  { 0xdc524000, 0x027c0000, 0xbf8903f7, 0x7c940400, 0x8c01016a, 0xbf870009, 0x917e017e, 0xbfa6fff8 } },
	{ WAITS_GFX11, PERLANE_GE, 13, /* gfx1100 */
	  { 0xbf830001, 0xdc564000, 0x027c0000, 0xbf8903f7, 0xe0b00000, 0x00000000, 0xe0ac0000, 0x00000000,
	    0x7cb60402, 0x8c00006a, 0xbf870009, 0x917e007e, 0xbfa6fff3 } },
	{ WAITS_GFX11, LOCK, 13, /* gfx1100 */
	  { 0xbf89fc07, 0xdcd24000, 0x02000001, 0xbf8903f7, 0xe0b00000, 0x00000000, 0xe0ac0000, 0x00000000,
	    0x7c940480, 0x8c02026a, 0xbf870009, 0x917e027e, 0xbfa6fff3 } },
	{ WAITS_GFX11, GRIDSYNC, 11, /* gfx1100 */
	  { 0xbf830001, 0xdc524000, 0x02000000, 0xbf8903f7, 0x3a040302, 0xbf8704a1, 0x7c9204ff, 0x0000ffff,
	    0x8c02026a, 0x917e027e, 0xbfa6fff5 } },
	{ WAITS_GFX12, FLAG_EQ, 7, /* gfx1201 */
	  { 0xbfc70000, 0xee050000, 0x000c0001, 0x00000000, 0xbfc00000, 0x7c9a0202, 0xbfa4fff9 } },
	{ WAITS_GFX12, FLAG_GE, 10, /* gfx1201 */
	  { 0xbf830002, 0xee050000, 0x000c0001, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x000c0000, 0x00000000,
	    0x7c980202, 0xbfa4fff6 } },
	{ WAITS_GFX12, FLAG_U64, 10, /* gfx1201 */
	  { 0xbf830002, 0xee054000, 0x000c0001, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x000c0000, 0x00000000,
	    0x7cba0202, 0xbfa4fff6 } },
	{ WAITS_GFX12, FLAG_NZ, 10, /* gfx1201 */
	  { 0xbfc70000, 0xee050000, 0x00080001, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x00080000, 0x00000000,
	    0x7c940280, 0xbfa4fff6 } },
	{ WAITS_GFX12, FLAG_SGE, 7, /* gfx1201 */
	  { 0xbfc70000, 0xee050000, 0x000c0001, 0x00000c00, 0xbfc00000, 0x7c880202, 0xbfa4fff9 } },
	{ WAITS_GFX12, FLAG_BIT, 9, /* gfx1201 */
	  { 0xbf830001, 0xee050000, 0x000c0001, 0x00000c00, 0xbfc00000, 0x36020284, 0xbf870001, 0x7c940280,
	    0xbfa4fff7 } },
	{ WAITS_GFX12, PERLANE, 10, /* gfx1201 */
	  { 0xee05007c, 0x000c0002, 0x00000000, 0xbfc00000, 0x7c940402, 0xbf88ff9e, 0x8c00006a, 0xbf88ff9e,
	    0x917e007e, 0xbfa6fff6 } },
	{ WAITS_GFX12, PERLANE_GE, 14, /* gfx1201 */
	  { 0xbf830001, 0xee05407c, 0x000c0002, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x000c0000, 0x00000000,
	    0x7cb60402, 0xbf88ff9e, 0x8c00006a, 0xbf88ff9e, 0x917e007e, 0xbfa6fff2 } },
	{ WAITS_GFX12, LOCK, 13, /* gfx1201 */
	  { 0xbfc70000, 0xee0d0000, 0x00180002, 0x00000001, 0xbfc00000, 0xee0ac07c, 0x00080000, 0x00000000,
	    0x7c940480, 0x8c02026a, 0xbf870009, 0x917e027e, 0xbfa6fff3 } },
	{ WAITS_GFX12, GRIDSYNC, 14, /* gfx1201 */
	  { 0xbf830001, 0xee050000, 0x00080002, 0x00000000, 0xbfc00000, 0x3a040302, 0xbf870001, 0x7c9204ff,
	    0x0000ffff, 0xbf88ff9e, 0x8c02026a, 0xbf88ff9e, 0x917e027e, 0xbfa6fff2 } },
	{ WAITS_GFX12_5, FLAG_EQ, 7, /* gfx1250 */
	  { 0xbfc70000, 0xee050000, 0x000c0001, 0x00000000, 0xbfc00000, 0x7c9a0202, 0xbfa4fff9 } },
	{ WAITS_GFX12_5, FLAG_GE, 10, /* gfx1250 */
	  { 0xbf830002, 0xee050000, 0x000c0001, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x000c0000, 0x00000000,
	    0x7c980202, 0xbfa4fff6 } },
	{ WAITS_GFX12_5, FLAG_U64, 10, /* gfx1250 */
	  { 0xbf830002, 0xee054000, 0x000c0002, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x000c0000, 0x00000000,
	    0x7cba0402, 0xbfa4fff6 } },
	{ WAITS_GFX12_5, FLAG_NZ, 10, /* gfx1250 */
	  { 0xbfc70000, 0xee050000, 0x00080001, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x00080000, 0x00000000,
	    0x7c940280, 0xbfa4fff6 } },
	{ WAITS_GFX12_5, FLAG_SGE, 7, /* gfx1250 */
	  { 0xbfc70000, 0xee050000, 0x000c0001, 0x00000c00, 0xbfc00000, 0x7c880202, 0xbfa4fff9 } },
	{ WAITS_GFX12_5, FLAG_BIT, 9, /* gfx1250 */
	  { 0xbf830001, 0xee050000, 0x000c0001, 0x00000c00, 0xbfc00000, 0x36020284, 0xbf870001, 0x7c940280,
	    0xbfa4fff7 } },
	{ WAITS_GFX12_5, PERLANE, 9, /* gfx1250 */
	  { 0xee05007c, 0x000c0002, 0x00000000, 0xbfc00000, 0x7c940402, 0x8c00006a, 0xbf870009, 0x917e007e,
	    0xbfa6fff7 } },
	{ WAITS_GFX12_5, PERLANE_GE, 13, /* gfx1250 */
	  { 0xbf830001, 0xee05407c, 0x000c0002, 0x00000000, 0xbfc00000, 0xee0ac07c, 0x000c0000, 0x00000000,
	    0x7cb60402, 0x8c00006a, 0xbf870009, 0x917e007e, 0xbfa6fff3 } },
	{ WAITS_GFX12_5, LOCK, 13, /* gfx1250 */
	  { 0xbfc70000, 0xee0d0000, 0x00180003, 0x00000002, 0xbfc00000, 0xee0ac07c, 0x00080000, 0x00000000,
	    0x7c940680, 0x8c02026a, 0xbf870009, 0x917e027e, 0xbfa6fff3 } },
	{ WAITS_GFX12_5, GRIDSYNC, 12, /* gfx1250 */
	  { 0xbf830001, 0xee050000, 0x00080002, 0x00000000, 0xbfc00000, 0x3a040302, 0xbf8704a1, 0x7c9204ff,
	    0x0000ffff, 0x8c02026a, 0x917e027e, 0xbfa6fff4 } },
	{ WAITS_GFX9, REMADE, 10, /* gfx90a: v_pk_mov_b32 v[4:5], s[2:3], s[2:3] op_sel:[0,1] */
	  { 0xd3b35004, 0x18000402, 0xbf8e0001, 0xdc510000, 0x04000004, 0xbf8c0070, 0x7d86080b, 0x8788086a, 0x89fe087e,
	    0xbf89fff6 } },
	{ WAITS_GFX9, REMADE, 10, /* gfx900: v_mov_b32 v5, s3; v_mov_b32 v4, s2 */
	  { 0x7e0a0203, 0x7e080202, 0xbf8e0001, 0xdc510000, 0x04000004, 0xbf8c0070, 0x7d86080b, 0x8788086a, 0x89fe087e,
	    0xbf89fff6 } },
	{ WAITS_GFX10, REMADE, 10, /* gfx1030 */
	  { 0x7e0a0203, 0x7e080202, 0xbf8e0001, 0xdc311000, 0x047d0004, 0xbf8c0070, 0x7d06080b, 0x8808086a, 0x8a7e087e,
	    0xbf89fff6 } },
};

/* What each of the sources waits for. */
static const struct {
	enum waits_compare op;
	uint8_t bytes;
	bool sleeps, each_lane, is_lock, is_signed;
	int32_t offset;
} expected[] = {
	[FLAG_EQ] = { WAITS_COMPARE_EQ, 4, .offset = 0 },
	[FLAG_GE] = { WAITS_COMPARE_GE, 4, .sleeps = true },
	[FLAG_U64] = { WAITS_COMPARE_EQ, 8, .sleeps = true },
	[FLAG_NZ] = { WAITS_COMPARE_NE, 4, .offset = 0 },
	[FLAG_SGE] = { WAITS_COMPARE_GE, 4, .is_signed = true, .offset = 12 },
	[FLAG_BIT] = { WAITS_COMPARE_NE, 4, .sleeps = true, .offset = 12 },
	[PERLANE] = { WAITS_COMPARE_EQ, 4, .each_lane = true },
	[PERLANE_GE] = { WAITS_COMPARE_GE, 8, .sleeps = true, .each_lane = true },
	[LOCK] = { WAITS_COMPARE_EQ, 4, .each_lane = true, .is_lock = true },
	[GRIDSYNC] = { WAITS_COMPARE_GT, 4, .sleeps = true, .each_lane = true },
	[REMADE] = { WAITS_COMPARE_GE, 4, .sleeps = true, .each_lane = true, .is_signed = true },
};

static int find(const struct loop *l, size_t at, struct waits_poll *ret)
{
	return waits_poll_find(l->family, (const uint8_t *)l->words, l->n * 4, at, ret);
}

/* Of each register a value of its own. */
static bool number(void *ctx, bool is_vector, unsigned int reg, unsigned int lane, uint32_t *ret)
{
	(void)ctx;
	*ret = (is_vector ? 0x100 + 0x1000 * lane : 0) + reg;
	return true;
}

static bool nothing(void *ctx, bool is_vector, unsigned int reg, unsigned int lane, uint32_t *ret)
{
	(void)ctx, (void)is_vector, (void)reg, (void)lane, (void)ret;
	return false;
}

static void loops_of_the_compiler_are_known(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		const struct loop *l = &loops[i];
		struct waits_poll p;

		if (find(l, 0, &p) != 0) {
			TEST_ROW_EQ(i, 0, 1);
			continue;
		}
		TEST_ROW_EQ(i, p.begin, 0);
		TEST_ROW_EQ(i, p.end, l->n * 4);
		TEST_ROW_EQ(i, p.op, expected[l->source].op);
		TEST_ROW_EQ(i, p.bytes, expected[l->source].bytes);
		TEST_ROW_EQ(i, p.sleeps, expected[l->source].sleeps);
		TEST_ROW_EQ(i, p.each_lane, expected[l->source].each_lane);
		TEST_ROW_EQ(i, p.is_lock, expected[l->source].is_lock);
		TEST_ROW_EQ(i, p.is_signed, expected[l->source].is_signed);
		TEST_ROW_EQ(i, p.place.offset, expected[l->source].offset);
		TEST_ROW_EQ(i, p.mask.kind, l->source == FLAG_BIT ? WAITS_OPERAND_CONSTANT : WAITS_OPERAND_NONE);
		TEST_ROW_EQ(i, p.toggle.kind, l->source == GRIDSYNC ? WAITS_OPERAND_VECTOR : WAITS_OPERAND_NONE);
	}
}

/* Wherever the wave was saved; behind a first word that is none of an instruction, nothing is said. */
static void a_wave_may_be_anywhere_in_the_loop(void)
{
	size_t found = 0, refused = 0;

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		for (size_t at = 0; at < loops[i].n * 4; at += 4) {
			struct waits_poll p;

			if (find(&loops[i], at, &p) == 0)
				found++;
			else
				refused++;
		}
	TEST_EQ(found > 5 * ARRAY_SIZE(loops), true);
	TEST_EQ(refused > ARRAY_SIZE(loops), true);
}

/* A store, a barrier, a call, a move of the word, another load, what is unknown: then nothing is said of the loop. */
static void other_instructions_are_not_explained(void)
{
	static const uint32_t strange[] = { 0xdc708000, 0xbf8a0000, 0xbe801e00, 0xbf810000, 0x00000000, 0x7e020301,
					    0xbe804ec1, 0xd8d80000, 0x68000101, 0xffffffff };
	struct waits_poll p;

	for (size_t k = 0; k < ARRAY_SIZE(strange); k++)
		for (size_t at = 0; at < 6; at++) {
			struct loop l = { WAITS_GFX9, FLAG_EQ, 6, { 0 } };

			memcpy(l.words, loops[0].words, sizeof(l.words));
			/* The operand words of the load, and what follows it, may be any. */
			if (at == 2)
				continue;
			l.words[at] = strange[k];
			TEST_ROW_EQ(k * 8 + at, find(&l, 0, &p), -ENOENT);
		}
	TEST_EQ(waits_poll_find(WAITS_FAMILY_COUNT, (const uint8_t *)loops[0].words, 24, 0, &p), -ENOTSUP);
	TEST_EQ(waits_poll_find(WAITS_GFX9, (const uint8_t *)loops[0].words, 20, 0, &p), -ENOENT);
	TEST_EQ(waits_poll_find(WAITS_GFX9, (const uint8_t *)loops[0].words, 24, 24, &p), -ENOENT);
	/* Words of another generation. */
	TEST_EQ(waits_poll_find(WAITS_GFX11, (const uint8_t *)loops[0].words, 24, 0, &p), -ENOENT);
}

/* An address that the loop itself moves on is that of a scan, and not of one word. */
static void an_address_that_changes_is_not_one_word(void)
{
	struct loop l = { WAITS_GFX9, FLAG_EQ, 7,
			  /* global_load_dword v1, v0, s[0:1]; v_xor_b32 v0, v0, v1; v_cmp_ne_u32 vcc, s2, v1 */
			  { 0xdc518000, 0x01000000, 0xbf8c0f70, 0x2a000300, 0x7d9a0202, 0xbf87fffa } };
	struct waits_poll p;

	TEST_EQ(find(&l, 0, &p), -ENOENT);
	l.words[3] = 0xbf800000;
	TEST_EQ(find(&l, 0, &p), 0);
	/* What it is compared with is the word itself. */
	l.words[4] = 0x7d9a0301;
	TEST_EQ(find(&l, 0, &p), -ENOENT);
}

/* Of registers that the loop leaves alone it is the same address in each round, wherever in it the wave is. */
static void an_address_that_is_made_anew_is_the_same(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		/* The moves are 4 or 8 bytes, the sleep is 4 and the load 8. */
		for (size_t at = 0; at <= 12; at += at == 0 && loops[i].words[0] == 0xd3b35004 ? 8 : 4) {
			struct waits_poll p;
			struct waits_word w;

			if (loops[i].source != REMADE)
				continue;
			n++;
			TEST_EQ_FATAL(find(&loops[i], at, &p), 0);
			TEST_EQ(waits_poll_word(&p, number, NULL, 7, &w), 0);
			TEST_EQ(w.address, 0x300000002);
			TEST_EQ(w.with, 11);
		}
	TEST_EQ(n, 3 + 4 + 4);
}

/* The loop of gfx900 with other words at its begin, where the moves are, or elsewhere. */
static int find_made(uint32_t first, uint32_t second, size_t at, uint32_t word, struct waits_poll *ret)
{
	const size_t of_gfx900 = ARRAY_SIZE(loops) - 2;
	struct loop l = loops[of_gfx900];

	l.words[0] = first;
	l.words[1] = second;
	l.words[at] = word;
	return find(&l, 0, ret);
}

static void an_address_that_is_made_of_what_changes_is_not_told(void)
{
	enum { HIGH = 0x7e0a0203, LOW = 0x7e080202, SLEEP = 0xbf8e0001 };
	static const struct {
		uint32_t first, second, third;
	} rows[] = {
		{ HIGH, 0x7e080208, SLEEP }, /* v_mov_b32 v4, s8: the loop writes it. */
		{ HIGH, 0x7e080209, SLEEP }, /* The other half of s[8:9]. */
		{ 0x7e0a0304, LOW, SLEEP },  /* v_mov_b32 v5, v4: what was loaded. */
		{ HIGH, SLEEP, SLEEP },	     /* v4 is what was loaded. */
		{ HIGH, LOW, 0x7e080206 },   /* v_mov_b32 v4, s6, too. */
		{ HIGH, 0x7e08026a, SLEEP }, /* vcc_lo, vcc_hi, exec_lo */
		{ HIGH, 0x7e08026b, SLEEP },
		{ HIGH, 0x7e08027e, SLEEP },
		{ HIGH, 0x7e080502, SLEEP }, /* v_readfirstlane_b32 s4, v2 */
		{ HIGH, LOW, 0x68080881 },   /* v_add_u32 v4, 1, v4 */
	};
	struct waits_poll p;

	TEST_EQ(find_made(HIGH, LOW, 2, SLEEP, &p), 0);
	/* The upper half alone does not change. */
	TEST_EQ_FATAL(find_made(SLEEP, LOW, 2, SLEEP, &p), 0);
	TEST_EQ(p.place.made_of[0].kind, WAITS_OPERAND_SCALAR);
	TEST_EQ(p.place.made_of[1].kind, WAITS_OPERAND_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		TEST_ROW_EQ(i, find_made(rows[i].first, rows[i].second, 2, rows[i].third, &p), -ENOENT);
	/* v_mov_b32 v6, s2, which is for something else. */
	TEST_EQ(find_made(HIGH, LOW, 2, 0x7e0c0202, &p), 0);
	/* Behind the load, where it would be that of the next round, and the word is lost. */
	TEST_EQ(find_made(HIGH, SLEEP, 5, LOW, &p), -ENOENT);
}

/* Locks of clang 14 at -O1: v_mov_b32 v4, 1; v_mov_b32 v5, 0; global_atomic_cmpswap v4, v[0:1], v[4:5], off glc */
static void what_a_swap_writes_is_made_anew(void)
{
	enum { ELSEWHERE = 0x7e0c0281, WORD = 0x7e080281, OF_WORD = 0x7e0a0304, COMPARED = 0x7d940c80 };
	struct waits_poll other;
	struct loop locks[] = {
		{ WAITS_GFX9, FLAG_EQ, 11,
		  { WORD, 0x7e0a0280, 0xdd058000, 0x047f0400, 0xbf8c0f70, 0xe0fc0000, 0, 0x7d940880, 0x8784046a,
		    0x89fe047e, 0xbf89fff5 } },
		{ WAITS_GFX9, FLAG_EQ, 13, /* gfx90a */
		  { WORD, 0x7e0a0280, 0xdd058000, 0x047f0400, 0xbf8c0f70, 0xe0a40000, 0, 0xe0fc0000, 0, 0x7d940880,
		    0x8784046a, 0x89fe047e, 0xbf89fff3 } },
		{ WAITS_GFX10, FLAG_EQ, 13,
		  { WORD, 0x7e0a0280, 0xdcc58000, 0x047d0400, 0xbf8c3f70, 0xe1c40000, 0, 0xe1c80000, 0, 0x7d840880,
		    0x8804046a, 0x8a7e047e, 0xbf89fff3 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(locks); i++) {
		struct waits_poll p;
		struct waits_word w;

		TEST_EQ_FATAL(find(&locks[i], 0, &p), 0);
		TEST_ROW_EQ(i, p.is_lock && p.each_lane && p.load == 8, true);
		TEST_ROW_EQ(i, waits_poll_word(&p, number, NULL, 7, &w), 0);
		TEST_ROW_EQ(i, w.op == WAITS_COMPARE_EQ && !w.with, true);
		/* Behind the load, where the word is lost, or something else is; and made of the word. */
		locks[i].words[4] = WORD;
		TEST_ROW_EQ(i, find(&locks[i], 0, &p), -ENOENT);
		locks[i].words[4] = ELSEWHERE;
		TEST_ROW_EQ(i, find(&locks[i], 0, &p), 0);
		locks[i].words[1] = OF_WORD;
		TEST_ROW_EQ(i, find(&locks[i], 0, &p), -ENOENT);
	}
	/* What the loop makes is no word that it compares. */
	locks[0].words[1] = ELSEWHERE;
	locks[0].words[7] = COMPARED;
	TEST_EQ(find(&locks[0], 0, &other), -ENOENT);
}

/* v_pk_mov_b32 moves the registers that its bits say. */
static void halves_are_moved_as_the_instruction_says(void)
{
	static const struct {
		enum waits_family family;
		uint32_t low, high;
		int result;
		uint64_t address;
	} rows[] = {
		{ WAITS_GFX9, 0xd3b35004, 0x18000402, 0, 0x300000002 },
		{ WAITS_GFX9, 0xd3b34804, 0x18000402, 0, 0x200000003 },	     /* op_sel:[1,0] */
		{ WAITS_GFX9, 0xd3b34004, 0x18000c02, 0, 0x600000002 },	     /* s[2:3], s[6:7] op_sel:[0,0] */
		{ WAITS_GFX9, 0xd3b35004, 0x18020d06, 0, 0x710700007106 },   /* v[6:7], v[6:7] op_sel:[0,1] */
		{ WAITS_GFX9, 0xd3b35004, 0x18001008, -ENOENT, 0 },	     /* s[8:9], which the loop writes. */
		{ WAITS_GFX9, 0xd3b35004, 0x1800d46a, -ENOENT, 0 },	     /* vcc */
		{ WAITS_GFX9, 0xd3b35004, 0x18010280, -ENOENT, 0 },	     /* 0, 1 */
		{ WAITS_GFX9, 0xd3b35004, 0x38000402, -ENOENT, 0 },	     /* neg_lo */
		{ WAITS_GFX9, 0xd3b35004, 0x10000402, -ENOENT, 0 },	     /* op_sel_hi:[0,1] */
		{ WAITS_GFX9, 0xd3b3d004, 0x18000402, -ENOENT, 0 },	     /* clamp */
		{ WAITS_GFX9, 0xd3b350ff, 0x18000402, -ENOENT, 0 },	     /* There is no register behind v255. */
		{ WAITS_GFX10, 0xd3b35004, 0x18000402, -ENOENT, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct loop l = loops[ARRAY_SIZE(loops) - (rows[i].family == WAITS_GFX9 ? 3 : 1)];
		struct waits_poll p;
		struct waits_word w = { 0 };

		l.words[0] = rows[i].low;
		l.words[1] = rows[i].high;
		TEST_ROW_EQ(i, find(&l, 0, &p), rows[i].result);
		if (rows[i].result < 0)
			continue;
		TEST_ROW_EQ(i, waits_poll_word(&p, number, NULL, 7, &w), 0);
		TEST_ROW_EQ(i, w.address, rows[i].address);
	}
}

/* s_cbranch_vccz out of the loop, and s_branch back. */
static void a_loop_may_be_left_in_the_middle(void)
{
	struct loop l = { WAITS_GFX9, FLAG_EQ, 8,
			  { 0xdc518000, 0x01000000, 0xbf8c0f70, 0x7d940202, 0xbf870002, 0xbf8e0001, 0xbf82fff9,
			    0xbf810000 } };
	struct waits_poll p;

	TEST_EQ_FATAL(find(&l, 0, &p), 0);
	TEST_EQ(p.op, WAITS_COMPARE_EQ);
	TEST_EQ(p.sleeps, true);
	l.words[4] = 0xbf860002;
	TEST_EQ_FATAL(find(&l, 0, &p), 0);
	TEST_EQ(p.op, WAITS_COMPARE_NE);
	/* Past the sleep only: both ways stay in the loop. */
	l.words[4] = 0xbf860001;
	TEST_EQ(find(&l, 0, &p), -ENOENT);
}

/* What a branch depends on is the last that was written there. */
static void a_compare_that_is_overwritten_decides_nothing(void)
{
	static const struct loop loops_of_one[] = {
		/* v_readfirstlane_b32 s4, v1; s_cmp_eq_u32 s4, s2; s_and_b32 s5, s4, s3; s_cbranch_scc0 */
		{ WAITS_GFX9, FLAG_EQ, 7,
		  { 0xdc518000, 0x01000000, 0xbf8c0f70, 0x7e080501, 0xbf060204, 0x86050304, 0xbf84fff9 } },
		/* v_cmp_ne_u32 vcc, s2, v1; v_readfirstlane_b32 vcc_lo, v1; s_nop 0; s_cbranch_vccnz */
		{ WAITS_GFX9, FLAG_EQ, 7,
		  { 0xdc518000, 0x01000000, 0xbf8c0f70, 0x7d9a0202, 0x7ed40501, 0xbf800000, 0xbf87fff9 } },
		/* The same of vcc_hi, where the other lanes are. */
		{ WAITS_GFX9, FLAG_EQ, 7,
		  { 0xdc518000, 0x01000000, 0xbf8c0f70, 0x7d9a0202, 0x7ed60501, 0xbf800000, 0xbf87fff9 } },
	};
	static const size_t overwrites[] = { 5, 4, 4 };

	for (size_t i = 0; i < ARRAY_SIZE(loops_of_one); i++) {
		struct loop l = loops_of_one[i];
		struct waits_poll p;

		TEST_ROW_EQ(i, find(&l, 0, &p), -ENOENT);
		l.words[overwrites[i]] = 0xbf800000;
		TEST_ROW_EQ(i, find(&l, 0, &p), 0);
	}
}

static void registers_tell_the_word(void)
{
	struct waits_poll p;
	struct waits_word w;

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		TEST_EQ_FATAL(find(&loops[i], 0, &p), 0);
		TEST_ROW_EQ(i, waits_poll_word(&p, nothing, NULL, 0, &w), -ENODATA);
	}
	/* v[0:1] of lane 2, s2 as of gfx90a. */
	for (size_t i = 0; i < ARRAY_SIZE(loops); i++)
		if (loops[i].source == PERLANE && loops[i].family == WAITS_GFX9) {
			find(&loops[i], 0, &p);
			TEST_EQ_FATAL(waits_poll_word(&p, number, NULL, 2, &w), 0);
			TEST_EQ(w.address, 0x210100002100);
			TEST_EQ(w.with, 2);
		}
	find(&loops[FLAG_SGE], 0, &p);
	TEST_EQ_FATAL(waits_poll_word(&p, number, NULL, 1, &w), 0);
	TEST_EQ(w.address, 0x100000000 + 0x1100 + 12);
	TEST_EQ(w.with, 2);
	find(&loops[FLAG_BIT], 0, &p);
	TEST_EQ_FATAL(waits_poll_word(&p, number, NULL, 0, &w), 0);
	TEST_EQ(w.mask, 4);
}

/* (word ^ v1) > 0xffff is that the upper half is not as it was. */
static bool old_generation(void *ctx, bool is_vector, unsigned int reg, unsigned int lane, uint32_t *ret)
{
	(void)ctx, (void)lane;
	/* s4 is 0xffff where the loop compares with a register. */
	*ret = is_vector ? (reg == 1 ? 0x50003 : 0) : 0xffff;
	return true;
}

static void a_new_generation_is_a_change_of_bits(void)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(loops); i++) {
		struct waits_poll p;
		struct waits_word w;

		if (loops[i].source != GRIDSYNC)
			continue;
		n++;
		TEST_EQ_FATAL(find(&loops[i], 0, &p), 0);
		TEST_ROW_EQ(i, waits_poll_word(&p, old_generation, NULL, 0, &w), 0);
		TEST_ROW_EQ(i, w.op, WAITS_COMPARE_NE);
		TEST_ROW_EQ(i, w.mask, 0xffff0000);
		TEST_ROW_EQ(i, w.with, 0x50000);
		/* Against a number that is no border between bits it is not told. */
		p.with = (struct waits_operand){ .kind = WAITS_OPERAND_CONSTANT, .value = 0x1234 };
		TEST_ROW_EQ(i, waits_poll_word(&p, old_generation, NULL, 0, &w), -ENOTSUP);
		/* At least 0x10000 is the same as more than 0xffff; at least 0 is anything. */
		p.op = WAITS_COMPARE_GE;
		p.with.value = 0x10000;
		TEST_ROW_EQ(i, waits_poll_word(&p, old_generation, NULL, 0, &w), 0);
		TEST_ROW_EQ(i, w.mask, 0xffff0000);
		p.with.value = 0;
		TEST_ROW_EQ(i, waits_poll_word(&p, old_generation, NULL, 0, &w), -ENOTSUP);
	}
	TEST_EQ(n, 6);
}

static void words_compare_as_the_loop_does(void)
{
	static const struct {
		struct waits_word w;
		uint64_t memory;
		bool holds;
	} rows[] = {
		{ { .bytes = 4, .op = WAITS_COMPARE_EQ, .with = 7, .mask = UINT32_MAX }, 7, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_EQ, .with = 7, .mask = UINT32_MAX }, 8, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_GE, .with = 7, .mask = UINT32_MAX }, 0xffffffff, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_GE, .is_signed = true, .with = 7, .mask = UINT32_MAX }, 0xffffffff,
		  false },
		{ { .bytes = 4, .op = WAITS_COMPARE_LT, .is_signed = true, .with = 0, .mask = UINT32_MAX }, 0xfffffff0,
		  true },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .with = 0, .mask = 4 }, 3, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .with = 0, .mask = 4 }, 7, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .with = 0x10000, .mask = 0xffff0000 }, 0x10005, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .with = 0x10000, .mask = 0xffff0000 }, 0x20000, true },
		{ { .bytes = 8, .op = WAITS_COMPARE_LE, .with = UINT64_MAX, .mask = UINT64_MAX }, 1, true },
		{ { .bytes = 8, .op = WAITS_COMPARE_GT, .is_signed = true, .with = UINT64_MAX, .mask = UINT64_MAX }, 1,
		  true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		TEST_ROW_EQ(i, waits_word_holds(&rows[i].w, rows[i].memory), rows[i].holds);
}

/* A loop that anything in memory ends waits for nothing. */
static void some_words_always_compare_so(void)
{
	static const struct {
		struct waits_word w;
		bool always;
	} rows[] = {
		{ { .bytes = 4, .op = WAITS_COMPARE_GE, .with = 0, .mask = UINT32_MAX }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_GE, .with = 1, .mask = UINT32_MAX }, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_GE, .is_signed = true, .with = 0, .mask = UINT32_MAX }, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_GE, .is_signed = true, .with = 0x80000000, .mask = UINT32_MAX },
		  true },
		{ { .bytes = 4, .op = WAITS_COMPARE_LE, .with = UINT32_MAX, .mask = UINT32_MAX }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_LE, .is_signed = true, .with = UINT32_MAX, .mask = UINT32_MAX },
		  false },
		{ { .bytes = 4, .op = WAITS_COMPARE_LE, .is_signed = true, .with = INT32_MAX, .mask = UINT32_MAX },
		  true },
		{ { .bytes = 8, .op = WAITS_COMPARE_LE, .with = UINT32_MAX, .mask = UINT64_MAX }, false },
		{ { .bytes = 8, .op = WAITS_COMPARE_GE, .with = 0, .mask = UINT64_MAX }, true },
		{ { .bytes = 1, .op = WAITS_COMPARE_LE, .with = UINT8_MAX, .mask = UINT8_MAX }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_LT, .with = 8, .mask = 7 }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_LT, .with = 7, .mask = 7 }, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .with = 8, .mask = 7 }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .with = 0, .mask = 4 }, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_NE, .is_signed = true, .with = 8, .mask = 7 }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_EQ, .with = 0, .mask = 4 }, false },
		{ { .bytes = 4, .op = WAITS_COMPARE_EQ, .with = 0, .mask = 0 }, true },
		{ { .bytes = 4, .op = WAITS_COMPARE_GT, .with = 0, .mask = UINT32_MAX }, false },
	};
	static const uint64_t memory[] = { 0, 1, 7, 8, 0x7fffffff, 0x80000000, UINT32_MAX, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool all = true;

		TEST_ROW_EQ(i, waits_word_always_holds(&rows[i].w), rows[i].always);
		for (size_t k = 0; k < ARRAY_SIZE(memory); k++)
			all &= waits_word_holds(&rows[i].w, memory[k]);
		TEST_ROW_EQ(i, all, rows[i].always);
	}
}

TEST_SUITE(waits_poll, TEST(loops_of_the_compiler_are_known), TEST(a_wave_may_be_anywhere_in_the_loop),
	   TEST(other_instructions_are_not_explained), TEST(an_address_that_changes_is_not_one_word),
	   TEST(an_address_that_is_made_anew_is_the_same), TEST(an_address_that_is_made_of_what_changes_is_not_told),
	   TEST(halves_are_moved_as_the_instruction_says), TEST(what_a_swap_writes_is_made_anew),
	   TEST(a_loop_may_be_left_in_the_middle),
	   TEST(a_compare_that_is_overwritten_decides_nothing), TEST(registers_tell_the_word),
	   TEST(a_new_generation_is_a_change_of_bits),
	   TEST(words_compare_as_the_loop_does), TEST(some_words_always_compare_so));
