/* SPDX-License-Identifier: MIT */
/* Context save areas, byte by byte.  Every expected number was worked out by hand. */
#include "tests/unit/kfdtrap/kfdtrap_wave_area.h"

/* ------------------------------------------------------------------ worked example ----------- */

static const uint8_t example_header[KFDTRAP_WAVE_HEADER_SIZE] = {
	0xec, 0x0f, 0, 0, 0x14, 0, 0, 0, 0x80, 0x35, 0, 0, 0x80, 0x25, 0, 0,
	0, 0x40, 0, 0, 0, 0x10, 0, 0, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
	0x2a, 0, 0, 0, 0xff, 0, 0, 0,
};

static const uint8_t example_stack[20] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x03, 0x00, 0x81, 0x00, 0x00, 0x02, 0x00, 0x01, 0x00, 0x01, 0x00,
};

static void example_layouts(struct kfdtrap_wave_layout layouts[2])
{
	const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(90402);
	uint8_t *stack = test_tail_dup(example_stack, sizeof(example_stack));
	struct kfdtrap_wave_header header;
	struct kfdtrap_wave_iter iter;

	CU_ASSERT_PTR_NOT_NULL_FATAL(arch);
	TEST_EQ(kfdtrap_wave_header_parse(example_header, 0x4000, &header), KFDTRAP_WAVE_OK);
	TEST_EQ(header.control_stack_offset, 0xfec);
	TEST_EQ(header.debug_offset, 0x4000);
	TEST_EQ(header.debug_size, 0x1000);
	TEST_EQ(header.err_payload_addr, 0x0102030405060708);
	TEST_EQ(header.err_event_id, 42);
	TEST_EQ(header.reserved, 255);
	kfdtrap_wave_iter_init(&iter, arch, &header, stack, sizeof(example_stack), 2);
	TEST_EQ_FATAL(kfdtrap_wave_next(&iter, &layouts[0]), true);
	TEST_EQ_FATAL(kfdtrap_wave_next(&iter, &layouts[1]), true);
	TEST_EQ(kfdtrap_wave_next(&iter, &layouts[1]), false);
	TEST_EQ(iter.problem, KFDTRAP_WAVE_OK);
	TEST_EQ(iter.n_waves, 2);
}

/* Two waves of one workgroup on gfx942, as AMD's own library decoded them. */
static void worked_example_has_the_documented_offsets(void)
{
	static const struct {
		uint32_t top, ttmp, hwreg, s0, a0, v0;
	} rows[2] = {
		{ 0x3580, 0x3300, 0x32c0, 0x31c0, 0x29c0, 0x21c0 },
		{ 0x21c0, 0x2140, 0x2100, 0x2000, 0x1800, 0x1000 },
	};
	struct kfdtrap_wave_layout layouts[2];

	example_layouts(layouts);
	for (unsigned int i = 0; i < 2; i++) {
		const struct kfdtrap_wave_layout *l = &layouts[i];

		TEST_ROW_EQ(i, l->index, i);
		TEST_ROW_EQ(i, l->leader, 0);
		TEST_ROW_EQ(i, l->top_offset, rows[i].top);
		TEST_ROW_EQ(i, l->ttmp_offset, rows[i].ttmp);
		TEST_ROW_EQ(i, l->hwreg_offset, rows[i].hwreg);
		TEST_ROW_EQ(i, kfdtrap_wave_hot_offset(l), rows[i].hwreg);
		TEST_ROW_EQ(i, l->sgpr_offset, rows[i].s0);
		TEST_ROW_EQ(i, l->acc_vgpr_offset, rows[i].a0);
		TEST_ROW_EQ(i, l->vgpr_offset, rows[i].v0);
		TEST_ROW_EQ(i, l->lds_offset, 0x3340);
		TEST_ROW_EQ(i, l->lds_size, 512);
		TEST_ROW_EQ(i, l->n_sgpr, 64);
		TEST_ROW_EQ(i, l->n_vgpr, 8);
		TEST_ROW_EQ(i, l->n_acc_vgpr, 8);
		TEST_ROW_EQ(i, l->n_shared_vgpr, 0);
		TEST_ROW_EQ(i, l->lanes, 64);
		TEST_ROW_EQ(i, l->scratch_slot, i);
		TEST_ROW_EQ(i, l->first, i == 0);
		TEST_ROW_EQ(i, l->last, i == 1);
		TEST_ROW_EQ(i, l->state_word, 0x81000301);
		TEST_ROW_EQ(i, l->wave_word, i == 0 ? 0x20000 : 0x10001);
	}
}

static void worked_example_finds_registers(void)
{
	static const struct {
		enum kfdtrap_wave_bank bank;
		uint32_t number, offsets[2], size;
	} rows[] = {
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_M0, { 0x32c0, 0x2100 }, 4 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_PC, { 0x32c4, 0x2104 }, 8 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_EXEC, { 0x32cc, 0x210c }, 8 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_STATUS, { 0x32d4, 0x2114 }, 4 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_TRAPSTS, { 0x32d8, 0x2118 }, 4 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_MODE, { 0x32e4, 0x2124 }, 4 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_FLAT_SCRATCH, { 0x32a8, 0x20e8 }, 8 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_VCC, { 0x32b8, 0x20f8 }, 8 },
		{ KFDTRAP_WAVE_BANK_TTMP, 6, { 0x3318, 0x2158 }, 4 },
		{ KFDTRAP_WAVE_BANK_TTMP, 11, { 0x332c, 0x216c }, 4 },
		{ KFDTRAP_WAVE_BANK_SGPR, 57, { 0x32a4, 0x20e4 }, 4 },
		{ KFDTRAP_WAVE_BANK_VGPR, 3, { 0x24c0, 0x1300 }, 256 },
		{ KFDTRAP_WAVE_BANK_ACC_VGPR, 7, { 0x30c0, 0x1f00 }, 256 },
	};
	const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(90402);
	struct kfdtrap_wave_layout layouts[2];
	uint32_t offset, size;

	example_layouts(layouts);
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		for (unsigned int w = 0; w < 2; w++) {
			offset = size = 0;
			TEST_ROW_EQ(i, kfdtrap_wave_register_find(arch, &layouts[w], rows[i].bank,
								  rows[i].number, &offset, &size),
				    true);
			TEST_ROW_EQ(i, offset, rows[i].offsets[w]);
			TEST_ROW_EQ(i, size, rows[i].size);
		}
}

/* Stopped with trap 2 in packet 5, workgroup (3, 0, 0): an assert. */
static void worked_example_has_the_documented_state(void)
{
	const struct kfdtrap_wave_context context = { .ttmp_setup = 1, .r_version = 11 };
	const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(90402);
	struct kfdtrap_wave_layout layouts[2];
	struct kfdtrap_wave_state s;
	uint64_t id;

	example_layouts(layouts);
	for (unsigned int w = 0; w < 2; w++) {
		uint8_t *hot = test_tail_alloc(KFDTRAP_WAVE_HOT_SIZE);

		memset(hot, 0, KFDTRAP_WAVE_HOT_SIZE);
		put32(hot + 4, 0x12345678);
		put32(hot + 8, 0x7f30);
		put32(hot + 64 + 6 * 4, 0x44000000);
		put32(hot + 64 + 8 * 4, 3);
		put32(hot + 64 + 11 * 4, 0x80000140 | w);
		TEST_EQ(kfdtrap_wave_read_state(arch, &context, &layouts[w], hot, &s), 0);
		TEST_EQ(s.pc, 0x7f3012345678);
		TEST_EQ(s.stopped, true);
		TEST_EQ(s.parked, false);
		TEST_EQ(s.halted, false);
		TEST_EQ(s.trap_id, 2);
		TEST_EQ(s.stop_reasons, KFDTRAP_WAVE_STOP_ASSERT);
		TEST_EQ(s.packet, 5);
		TEST_EQ(s.workgroup[0], 3);
		TEST_EQ(s.workgroup[1], 0);
		TEST_EQ(s.workgroup[2], 0);
		TEST_EQ(s.wave_in_group, w);
		TEST_EQ(s.valid, 0x1f);
		TEST_EQ(kfdtrap_wave_dispatch_id(5, 6, 4096, s.packet, &id), 0);
		TEST_EQ(id, 5);
	}
}

/* ------------------------------------------------------------------ layouts ------------------ */

/* One wave that is a workgroup, for each generation: counts, and how deep below the top. */
static void each_generation_has_its_layout(void)
{
	static const struct {
		uint32_t version, state, wave;
		uint16_t lanes, n_vgpr, n_acc, n_shared, n_sgpr, se;
		uint32_t slot, lds_size, lds, ttmp, hwreg, sgpr, shared, acc, vgpr;
	} rows[] = {
		{ 90000, 0x80000685, 0x39123, 64, 24, 0, 0, 32, 2, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 0, 8000 },
		{ 90002, 0x80000685, 0x39123, 64, 24, 0, 0, 32, 2, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 0, 8000 },
		{ 90004, 0x80000685, 0x39123, 64, 24, 0, 0, 32, 2, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 0, 8000 },
		{ 90006, 0x80000685, 0x39123, 64, 24, 0, 0, 32, 2, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 0, 8000 },
		/* The ninth bit of the LDS field: 256 + 3 units. */
		{ 90006, 0x80020685, 0x39123, 64, 24, 0, 0, 32, 2, 0x123, 132608, 132672, 132736,
		  132800, 132928, 0, 0, 139072 },
		{ 90008, 0x80000685, 0x3a923, 64, 24, 24, 0, 32, 5, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 8000, 14144 },
		{ 90010, 0x81000685, 0x38d23, 64, 8, 40, 0, 32, 6, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 12096, 14144 },
		{ 90400, 0x81000685, 0x38723, 64, 8, 40, 0, 32, 3, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 12096, 14144 },
		{ 90401, 0x81000685, 0x38723, 64, 8, 40, 0, 32, 3, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 12096, 14144 },
		{ 90402, 0x81000685, 0x38723, 64, 8, 40, 0, 32, 3, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 12096, 14144 },
		/* All registers architectural: no accumulation block. */
		{ 90402, 0x8b000685, 0x38723, 64, 48, 0, 0, 32, 3, 0x123, 1536, 1600, 1664, 1728,
		  1856, 0, 0, 14144 },
		{ 90500, 0x81000685, 0x38723, 64, 8, 40, 0, 32, 3, 0x123, 3840, 3904, 3968, 4032,
		  4160, 0, 14400, 16448 },
		{ 100100, 0x88000c05, 0x22001b23, 64, 24, 0, 16, 128, 2, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		{ 100103, 0x89000c05, 0x22001b23, 32, 48, 0, 16, 128, 2, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		{ 100300, 0x88000c05, 0x22001b23, 64, 24, 0, 16, 128, 2, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		{ 100306, 0x89000c05, 0x22001b23, 32, 48, 0, 16, 128, 2, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		{ 110000, 0x88000c05, 0x26001b23, 64, 24, 0, 16, 128, 6, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		{ 110003, 0x89000c05, 0x26001b23, 32, 48, 0, 16, 128, 6, 0x323, 1536, 1536,
		  1600, 1664, 2176, 4224, 0, 10368 },
		{ 110503, 0x89000c05, 0x26001b23, 32, 48, 0, 16, 128, 6, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		{ 120000, 0x88000c05, 0x26001b23, 64, 24, 0, 16, 128, 6, 0x323, 1536, 1536, 1600,
		  1664, 2176, 4224, 0, 10368 },
		/* A whole work-group processor's LDS, whatever the units say. */
		{ 120001, 0x89000c45, 0x26001b23, 32, 48, 0, 16, 128, 6, 0x323, 131072, 131072,
		  131136, 131200, 131712, 133760, 0, 139904 },
		/* Always 32 lanes; 259 LDS units of 1024. */
		{ 120500, 0x80040c05, 0x06003b23, 32, 96, 0, 0, 112, 6, 0x323, 265216, 265216,
		  265792, 265728, 266240, 0, 0, 278528 },
		{ 120501, 0x81040c05, 0x06003b23, 32, 96, 0, 0, 112, 6, 0x323, 265216, 265216,
		  265792, 265728, 266240, 0, 0, 278528 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(rows[i].version);
		/* Remains of packets look like waves; the second state word looks like anything. */
		uint32_t words[] = { 0, 0x30000, 0x40000000, rows[i].state, 0x40000000, rows[i].wave };
		bool one_word = rows[i].version < 100000;
		struct kfdtrap_wave_header h = header_for(TEST_COUNT(words), rows[i].vgpr);
		struct kfdtrap_wave_layout l;
		struct kfdtrap_wave_iter iter;

		CU_ASSERT_PTR_NOT_NULL_FATAL(arch);
		if (!one_word)
			words[4] = 0x30000000;
		kfdtrap_wave_iter_init(&iter, arch, &h, tail_words(words, TEST_COUNT(words)),
				       sizeof(words), 1);
		TEST_ROW_EQ(i, kfdtrap_wave_next(&iter, &l), true);
		TEST_ROW_EQ(i, iter.problem, 0);
		TEST_ROW_EQ(i, l.lanes, rows[i].lanes);
		TEST_ROW_EQ(i, l.n_vgpr, rows[i].n_vgpr);
		TEST_ROW_EQ(i, l.n_acc_vgpr, rows[i].n_acc);
		TEST_ROW_EQ(i, l.n_shared_vgpr, rows[i].n_shared);
		TEST_ROW_EQ(i, l.n_sgpr, rows[i].n_sgpr);
		TEST_ROW_EQ(i, l.shader_engine, rows[i].se);
		TEST_ROW_EQ(i, l.scratch_slot, rows[i].slot);
		TEST_ROW_EQ(i, l.scratch_enabled && l.first && l.last, true);
		TEST_ROW_EQ(i, l.lds_size, rows[i].lds_size);
		TEST_ROW_EQ(i, TOP - l.lds_offset, rows[i].lds);
		TEST_ROW_EQ(i, TOP - l.ttmp_offset, rows[i].ttmp);
		TEST_ROW_EQ(i, TOP - l.hwreg_offset, rows[i].hwreg);
		TEST_ROW_EQ(i, TOP - l.sgpr_offset, rows[i].sgpr);
		if (l.n_shared_vgpr)
			TEST_ROW_EQ(i, TOP - l.shared_vgpr_offset, rows[i].shared);
		if (l.n_acc_vgpr)
			TEST_ROW_EQ(i, TOP - l.acc_vgpr_offset, rows[i].acc);
		TEST_ROW_EQ(i, TOP - l.vgpr_offset, rows[i].vgpr);
		TEST_ROW_EQ(i, kfdtrap_wave_next(&iter, &l), false);
		TEST_ROW_EQ(i, iter.problem, 0);
	}
}

/* Numbers that no generation has, between and around those that one has. */
static void unknown_generations_are_refused(void)
{
	static const uint32_t versions[] = { 0,	     80003,  90001,  90003,  90011,  90013,
					     90403,  90501,  100000, 100104, 100200, 100307,
					     110004, 110100, 110504, 120002, 120502, UINT32_MAX };

	for (size_t i = 0; i < TEST_COUNT(versions); i++)
		TEST_ROW_EQ(i, kfdtrap_wave_arch_find(versions[i]) == NULL, true);
}

/* The LDS belongs to the first wave; the state can change between groups, and repeat. */
static void groups_share_the_leaders_lds(void)
{
	const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(90000);
	const uint32_t words[] = { 0, 0, 0x80000200 | 2 << 6, 0x20000, 0, 0x80000200 | 2 << 6,
				   0x10000, 0x80000000 | 2 << 6, 0x30000 };
	/* 64 + 128 + 128 + 4 * 256 = 1344 for each of four waves, and one unit of LDS. */
	struct kfdtrap_wave_header h = header_for(TEST_COUNT(words), 4 * 1344 + 512);
	static const struct {
		uint32_t leader, lds_size, depth;
	} rows[] = { { 0, 512, 1856 }, { 0, 512, 3200 }, { 0, 512, 4544 }, { 3, 0, 5888 } };
	struct kfdtrap_wave_layout l;
	struct kfdtrap_wave_iter iter;

	kfdtrap_wave_iter_init(&iter, arch, &h, tail_words(words, TEST_COUNT(words)), sizeof(words),
			       100);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, kfdtrap_wave_next(&iter, &l), true);
		TEST_ROW_EQ(i, l.leader, rows[i].leader);
		TEST_ROW_EQ(i, l.lds_size, rows[i].lds_size);
		if (l.lds_size)
			TEST_ROW_EQ(i, l.lds_offset, TOP - 64 - 512);
		TEST_ROW_EQ(i, TOP - l.vgpr_offset, rows[i].depth);
	}
	TEST_EQ(kfdtrap_wave_next(&iter, &l), false);
	TEST_EQ(iter.problem, 0);
}

TEST_SUITE(kfdtrap_wave, TEST(worked_example_has_the_documented_offsets),
	   TEST(worked_example_finds_registers), TEST(worked_example_has_the_documented_state),
	   TEST(each_generation_has_its_layout), TEST(unknown_generations_are_refused),
	   TEST(groups_share_the_leaders_lds));
