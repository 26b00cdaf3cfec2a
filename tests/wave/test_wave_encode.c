/* SPDX-License-Identifier: MIT */
/* The encoder against the format description's worked example, and against its own limits. */
#include "testlib.h"
#include "sim/kfd/wave/wave_encode.h"

/* Two waves of one group on gfx942: 8 + 8 vector registers, 64 SGPRs, 512 bytes of LDS. */
static void example(struct wave_desc waves[2])
{
	memset(waves, 0, 2 * sizeof(*waves));
	for (uint32_t i = 0; i < 2; i++)
		waves[i] = (struct wave_desc){
			.vgprs = 8, .acc_vgprs = 8, .sgprs = 64, .lds_size = 512,
			.first = i == 0, .last = i == 1, .scratch_slot = i,
			.launch_written = true, .packet_slot = 5, .group = { 3, 0, 0 },
			.wave_in_group = i, .handler_written = true, .stopped = true,
			.trap_id = 2, .pc = 0x7f0012345678 + 4 * i, .exec = 0xff,
			.vcc = 0x1122334455667788 + i, .flat_scratch = 0x99aabbcc,
			.seed = 77 + i,
		};
}

static const struct wave_silicon *gfx942(void)
{
	return wave_silicon_find(90402);
}

static uint32_t word_at(const struct wave_save *s, uint32_t offset)
{
	uint32_t v;

	memcpy(&v, s->bytes + (offset - s->header[0]), 4);
	return v;
}

static void matches_the_worked_example(void)
{
	const struct wave_save_options o = { 10, 0x1000, 0x4000 };
	static const uint32_t header[] = { 0xfec, 0x14, 0x3580, 0x2580 };
	struct wave_desc waves[2];
	struct wave_save s;

	example(waves);
	TEST_EQ_FATAL(wave_save_create(gfx942(), &o, waves, 2, &s), 0);
	for (size_t i = 0; i < 4; i++)
		TEST_ROW_EQ(i, s.header[i], header[i]);
	TEST_EQ(s.size, 0x3580 - 0xfec);
	TEST_EQ(word_at(&s, 0xff4), 0x81000301u);
	TEST_EQ(word_at(&s, 0xff8), 0x00020000u);
	TEST_EQ(word_at(&s, 0xffc), 0x00010001u);
	TEST_EQ(s.base[0], 0x21c0);
	TEST_EQ(s.base[1], 0x1000);
	TEST_EQ(word_at(&s, 0x3340), wave_pattern(77, WAVE_LDS, 0, 0));
	TEST_EQ(word_at(&s, 0x3318) & 0x7e000000u, 0x44000000u);
	TEST_EQ(word_at(&s, 0x332c), 0x80000140u);
	TEST_EQ(word_at(&s, 0x216c), 0x80000141u);
	TEST_EQ(word_at(&s, 0x3320), 3);
	TEST_EQ(word_at(&s, 0x32c4), 0x12345678u);
	TEST_EQ(word_at(&s, 0x2104), 0x1234567cu);
	TEST_EQ(word_at(&s, 0x32cc), 0xff);
	TEST_EQ(word_at(&s, 0x32d4), 1u << 13 | 1u << 18);
	TEST_EQ(word_at(&s, 0x31c0), wave_pattern(77, WAVE_SGPR, 0, 0));
	TEST_EQ(word_at(&s, 0x32a8), 0x99aabbccu);
	TEST_EQ(word_at(&s, 0x20f8), 0x55667789u);
	TEST_EQ(word_at(&s, 0x29c0), wave_pattern(77, WAVE_ACC, 0, 0));
	TEST_EQ(word_at(&s, 0x21c0 + 3 * 256 + 7 * 4), wave_pattern(77, WAVE_VGPR, 3, 7));
	wave_save_destroy(&s);
}

static void plants_registers(void)
{
	const struct wave_save_options o = { 10, 0x1000, 0x4000 };
	const struct wave_plant plants[] = {
		{ WAVE_VGPR, 3, 7, 0xaaaa0001 },	{ WAVE_ACC, 7, WAVE_ALL_LANES, 0xaaaa0002 },
		{ WAVE_SGPR, 4, 0, 0xaaaa0003 },	{ WAVE_LDS, 127, 0, 0xaaaa0004 },
		{ WAVE_VGPR, 8, 0, 0xaaaa0005 }, /* not allocated */
		{ WAVE_VGPR, 0, 64, 0xaaaa0006 }, /* no such lane */
	};
	struct wave_desc waves[2];
	struct wave_save s;

	example(waves);
	waves[0].plants = plants;
	waves[0].n_plants = TEST_COUNT(plants);
	TEST_EQ_FATAL(wave_save_create(gfx942(), &o, waves, 2, &s), 0);
	TEST_EQ(word_at(&s, 0x21c0 + 3 * 256 + 7 * 4), 0xaaaa0001u);
	TEST_EQ(word_at(&s, 0x29c0 + 7 * 256), 0xaaaa0002u);
	TEST_EQ(word_at(&s, 0x29c0 + 7 * 256 + 63 * 4), 0xaaaa0002u);
	TEST_EQ(word_at(&s, 0x31c0 + 4 * 4), 0xaaaa0003u);
	TEST_EQ(word_at(&s, 0x3540 - 4), 0xaaaa0004u);
	TEST_EQ(wave_value(&waves[0], WAVE_ACC, 7, 12), 0xaaaa0002u);
	TEST_EQ(wave_value(&waves[0], WAVE_ACC, 6, 12), wave_pattern(77, WAVE_ACC, 6, 12));
	wave_save_destroy(&s);
}

static void refuses_what_does_not_fit(void)
{
	static const struct {
		struct wave_save_options options;
		int want;
	} rows[] = {
		{ { 10, 0x1000, 0x3580 }, 0 },	     { { 10, 0x1000, 0x357c }, -ENOSPC },
		{ { 10, 0x3c, 0x4000 }, 0 },	     { { 10, 0x38, 0x4000 }, -ENOSPC },
		{ { 10, 0x1002, 0x4000 }, -EINVAL }, { { 10, 0x4004, 0x4000 }, -EINVAL },
	};
	struct wave_desc waves[2];
	struct wave_save s;

	example(waves);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		int r = wave_save_create(gfx942(), &rows[i].options, waves, 2, &s);

		TEST_ROW_EQ(i, r, rows[i].want);
		if (!r)
			wave_save_destroy(&s);
	}
}

static void refuses_impossible_waves(void)
{
	struct wave_desc good[2], w;

	example(good);
	TEST_EQ(wave_is_possible(gfx942(), &good[0]), true);
#define BAD(field, value)                                                                          \
	do {                                                                                       \
		w = good[0];                                                                       \
		w.field = value;                                                                   \
		TEST_EQ(wave_is_possible(gfx942(), &w), false);                                    \
	} while (0)
	BAD(vgprs, 0);
	BAD(vgprs, 6);
	BAD(vgprs, 260);
	BAD(acc_vgprs, 4);
	BAD(shared_vgprs, 8);
	BAD(sgprs, 128);
	BAD(sgprs, 20);
	BAD(lds_size, 100);
	BAD(lds_size, 512 * 256);
	BAD(engine, 4);
	BAD(scratch_slot, 512);
	BAD(wave32, true);
	BAD(wgp_takeover, true);
	BAD(handler_written, false);
	BAD(pc, 2);
#undef BAD
}

/* get_vgpr_size_bytes() and the like of Linux's cwsr_trap_handler_gfx12.asm, for CHIP_GC_12_0_3. */
static void gfx1250_is_as_its_save_routine_writes_it(void)
{
	const struct wave_save_options o = { 12, 0x1000, 0x4000 };
	const struct wave_desc w = {
		.wave32 = true, .vgprs = 16, .sgprs = 112, .lds_size = 1024, .first = true, .last = true,
		.launch_written = true, .packet_slot = 5, .handler_written = true, .stopped = true,
		.trap_id = 2, .pc = 0x3456789abcdef0, .exec = UINT64_MAX, .vcc = 0x1122, .vgpr_banks = 0x2a,
		.mode = 0xfffff3f0, .xnack_mask = 0x55, .barrier = { 4, 3 }, .cluster = { 8, 2 },
		.named = { [0] = { 12, 4 }, [15] = { 127, 127 } },
		.flags = 1 << WAVE_BARRIER_COMPLETE | 1 << WAVE_NAMED_COMPLETE | 1 << WAVE_CLUSTER_COMPLETE, .seed = 9,
	};
	static const struct {
		uint32_t offset, want;
	} rows[] = {
		{ 0x19c0 + 4 * 8, 0x80000005 }, { 0x1a00 + 4 * 1, 0x9abcdef0 },
		{ 0x1a00 + 4 * 2, 0x54345678 }, { 0x1a00 + 4 * 3, UINT32_MAX }, { 0x1a00 + 4 * 4, 0 },
		{ 0x1a00 + 4 * 5, 0x1400c }, { 0x1a00 + 4 * 7, 0x55 }, { 0x1a00 + 4 * 8, 0xfffc03f0 | 0x2a << 12 },
		{ 0x1a00 + 4 * 14, 0x30041 }, { 0x1a00 + 4 * 15, 0x20081 }, { 0x1a80, 0x400c1 }, { 0x1a84, 0 },
		{ 0x1abc, 0x7f07f1 }, { 0x1ac0, 0 }, { 0x1800 + 4 * 106, 0x1122 },
	};
	struct wave_save s;

	TEST_EQ_FATAL(wave_save_create(wave_silicon_find(120500), &o, &w, 1, &s), 0);
	TEST_EQ(s.base[0], 0x1000);
	TEST_EQ(s.header[3], 16 * 128 + 512 + 512 + 1024);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, word_at(&s, rows[i].offset), rows[i].want);
	TEST_EQ(word_at(&s, 0x19c0 + 4 * 6) >> 29 & 3, 2);
	TEST_EQ(word_at(&s, 0x19c0 + 4 * 11) >> 28, 2);
	TEST_EQ(word_at(&s, 0x1800), wave_pattern(9, WAVE_SGPR, 0, 0));
	TEST_EQ(word_at(&s, 0x1c00), wave_pattern(9, WAVE_LDS, 0, 0));
	TEST_EQ(word_at(&s, 0x1000 + 15 * 128 + 31 * 4), wave_pattern(9, WAVE_VGPR, 15, 31));
	wave_save_destroy(&s);
}

static void only_gfx1250_has_more_barriers_and_registers(void)
{
	const struct wave_silicon *newer = wave_silicon_find(120500), *older = wave_silicon_find(120001);
	struct wave_desc good = { .wave32 = true, .vgprs = 32, .sgprs = 112 }, w;

	TEST_EQ(wave_is_possible(newer, &good), true);
#define GOOD(g, field, value, want)                                                                \
	do {                                                                                       \
		w = good;                                                                          \
		w.sgprs = (g) == newer ? 112 : 128;                                                \
		w.field = value;                                                                   \
		TEST_EQ(wave_is_possible(g, &w), want);                                            \
	} while (0)
	GOOD(newer, vgprs, 1024, true);
	GOOD(older, vgprs, 1024, false);
	GOOD(newer, vgprs, 8, false);
	GOOD(newer, wave32, false, false);
	GOOD(newer, sgprs, 128, false);
	GOOD(newer, cluster.members, 127, true);
	GOOD(newer, cluster.members, 128, false);
	GOOD(older, cluster.members, 1, false);
	GOOD(newer, named[15].members, 1, true);
	GOOD(newer, named[15].signals, 128, false);
	GOOD(older, named[15].members, 1, false);
	GOOD(newer, vgpr_banks, 63, true);
	GOOD(newer, vgpr_banks, 64, false);
	GOOD(older, vgpr_banks, 1, false);
	GOOD(newer, pc, UINT64_C(1) << 56, true);
	GOOD(newer, pc, UINT64_C(1) << 57, false);
	GOOD(newer, lds_size, 511 * 1024, true);
#undef GOOD
}

static void saves_nothing_without_waves(void)
{
	const struct wave_save_options o = { 10, 0x1000, 0x4000 };
	struct wave_save s;

	TEST_EQ_FATAL(wave_save_create(gfx942(), &o, NULL, 0, &s), 0);
	TEST_EQ(s.header[0], 0x1000);
	TEST_EQ(s.header[1], 0);
	TEST_EQ(s.header[2], 0x1000);
	TEST_EQ(s.header[3], 0);
	TEST_EQ(s.size, 0);
	wave_save_destroy(&s);
}

TEST_SUITE(wave_encode, TEST(matches_the_worked_example), TEST(plants_registers),
	   TEST(refuses_what_does_not_fit), TEST(refuses_impossible_waves),
	   TEST(gfx1250_is_as_its_save_routine_writes_it), TEST(only_gfx1250_has_more_barriers_and_registers),
	   TEST(saves_nothing_without_waves));
