/* SPDX-License-Identifier: MIT */
/* Where the registers of a wave are, and what they are called. */
#include "tests/unit/kfdtrap/kfdtrap_wave_area.h"

/* Where gfx9 keeps FLAT_SCRATCH and VCC depends on how many scalar registers were saved. */
static void gfx9_aliases_follow_the_count(void)
{
	static const struct {
		uint32_t n_sgpr, n_plain, flat_scratch, vcc;
	} rows[] = {
		{ 0, 0, 0, 0 },	     { 16, 10, 10, 14 },     { 32, 26, 26, 30 },
		{ 64, 58, 58, 62 },  { 96, 90, 90, 94 },     { 112, 102, 102, 106 },
	};
	const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(90006);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct kfdtrap_wave_layout l = { .lanes = 64, .n_sgpr = (uint16_t)rows[i].n_sgpr,
						 .sgpr_offset = 0x1000, .hwreg_offset = 0x2000 };
		bool any = rows[i].n_sgpr != 0;
		uint32_t offset = 0, size = 0, n = 0;

		while (kfdtrap_wave_register_find(arch, &l, KFDTRAP_WAVE_BANK_SGPR, n, &offset, &size))
			TEST_ROW_EQ(i, offset, 0x1000 + 4 * n++);
		TEST_ROW_EQ(i, n, rows[i].n_plain);
		TEST_ROW_EQ(i, kfdtrap_wave_register_find(arch, &l, KFDTRAP_WAVE_BANK_SPECIAL,
							  KFDTRAP_WAVE_FLAT_SCRATCH, &offset, &size), any);
		TEST_ROW_EQ(i, offset, any ? 0x1000 + 4 * rows[i].flat_scratch : 0);
		TEST_ROW_EQ(i, kfdtrap_wave_register_find(arch, &l, KFDTRAP_WAVE_BANK_SPECIAL,
							  KFDTRAP_WAVE_VCC, &offset, &size), any);
		TEST_ROW_EQ(i, offset, any ? 0x1000 + 4 * rows[i].vcc : 0);
		TEST_ROW_EQ(i, kfdtrap_wave_register_find(arch, &l, KFDTRAP_WAVE_BANK_SPECIAL,
							  KFDTRAP_WAVE_XNACK_MASK, &offset, &size), true);
		TEST_ROW_EQ(i, offset, 0x201c);
		TEST_ROW_EQ(i, size, 8);
	}
}

/* Slot of each special register in the HWREG block, or -1; VCC is slot 106 of the scalar ones. */
static void specials_have_their_slots(void)
{
	static const struct {
		uint32_t version;
		int8_t slots[KFDTRAP_WAVE_SPECIAL_COUNT];
	} rows[] = {
		{ 90000, { 0, 1, 3, 62, 58, 7, 5, 9, 6, -1, -1, -1, -1 } },
		{ 90402, { 0, 1, 3, 62, 58, 7, 5, 9, 6, -1, -1, -1, -1 } },
		{ 100100, { 0, 1, 3, 106, 9, 7, 5, 8, 6, -1, -1, -1, -1 } },
		{ 100300, { 0, 1, 3, 106, 9, -1, 5, 8, 6, -1, -1, -1, -1 } },
		{ 110000, { 0, 1, 3, 106, 9, -1, 5, 8, 6, -1, -1, -1, -1 } },
		{ 120000, { 0, 1, 3, 106, 9, -1, 13, 8, -1, 5, 6, 11, 12 } },
		{ 120500, { 0, 1, 3, 106, 9, 7, 13, 8, -1, 5, 6, 11, 12 } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		bool gfx9 = rows[i].version < 100000, low_half = rows[i].version == 120500;
		struct kfdtrap_wave_layout l = { .lanes = gfx9 ? 64 : 32,
						 .n_sgpr = gfx9 ? 64 : low_half ? 112 : 128,
						 .sgpr_offset = 0x1000, .hwreg_offset = 0x2000 };
		const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(rows[i].version);

		for (uint32_t n = 0; n < KFDTRAP_WAVE_SPECIAL_COUNT; n++) {
			bool in_sgprs = n == KFDTRAP_WAVE_VCC || (gfx9 && n == KFDTRAP_WAVE_FLAT_SCRATCH);
			int slot = rows[i].slots[n];
			uint32_t offset = 0, size = 0;

			TEST_ROW_EQ(i, kfdtrap_wave_register_find(arch, &l, KFDTRAP_WAVE_BANK_SPECIAL, n,
								  &offset, &size), slot >= 0);
			if (slot < 0)
				continue;
			TEST_ROW_EQ(i, offset, (in_sgprs ? 0x1000 : 0x2000) + 4 * slot);
			if (n == KFDTRAP_WAVE_VCC || n == KFDTRAP_WAVE_EXEC)
				TEST_ROW_EQ(i, size, gfx9 ? 8 : 4);
			else if (n == KFDTRAP_WAVE_PC || n == KFDTRAP_WAVE_FLAT_SCRATCH)
				TEST_ROW_EQ(i, size, 8);
			else if (n == KFDTRAP_WAVE_XNACK_MASK)
				TEST_ROW_EQ(i, size, gfx9 ? 8 : 4);
			else
				TEST_ROW_EQ(i, size, 4);
		}
	}
}

static void banks_end_where_the_wave_ends(void)
{
	static const struct {
		enum kfdtrap_wave_bank bank;
		uint32_t number;
		bool found;
		uint32_t offset, size;
	} rows[] = {
		{ KFDTRAP_WAVE_BANK_SGPR, 105, true, 0x1000 + 420, 4 },
		{ KFDTRAP_WAVE_BANK_SGPR, 106, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_SGPR, UINT32_MAX, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_VGPR, 23, true, 0x10000 + 23 * 256, 256 },
		{ KFDTRAP_WAVE_BANK_VGPR, 24, true, 0x20000, 128 },
		{ KFDTRAP_WAVE_BANK_VGPR, 31, true, 0x20000 + 7 * 128, 128 },
		{ KFDTRAP_WAVE_BANK_VGPR, 32, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_VGPR, UINT32_MAX, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_ACC_VGPR, 0, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_TTMP, 15, true, 0x3000 + 60, 4 },
		{ KFDTRAP_WAVE_BANK_TTMP, 16, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_SPECIAL_COUNT, false, 0, 0 },
		{ KFDTRAP_WAVE_BANK_COUNT, 0, false, 0, 0 },
		{ (enum kfdtrap_wave_bank)77, 0, false, 0, 0 },
	};
	const struct kfdtrap_wave_layout l = { .lanes = 64, .n_sgpr = 128, .n_vgpr = 24,
					       .n_shared_vgpr = 8, .sgpr_offset = 0x1000,
					       .ttmp_offset = 0x3000, .vgpr_offset = 0x10000,
					       .shared_vgpr_offset = 0x20000 };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint32_t offset = 0, size = 0;

		TEST_ROW_EQ(i, kfdtrap_wave_register_find(kfdtrap_wave_arch_find(100100), &l, rows[i].bank,
							  rows[i].number, &offset, &size), rows[i].found);
		TEST_ROW_EQ(i, offset, rows[i].offset);
		TEST_ROW_EQ(i, size, rows[i].size);
	}
}

static void names_are_the_assemblers(void)
{
	static const struct {
		enum kfdtrap_wave_bank bank;
		uint32_t number;
		const char *want;
	} rows[] = {
		{ KFDTRAP_WAVE_BANK_SGPR, 4, "s4" },
		{ KFDTRAP_WAVE_BANK_VGPR, 255, "v255" },
		{ KFDTRAP_WAVE_BANK_ACC_VGPR, 0, "a0" },
		{ KFDTRAP_WAVE_BANK_TTMP, UINT32_MAX, "ttmp4294967295" },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_VCC, "vcc" },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_TRAP_CTRL, "trap_ctrl" },
		{ KFDTRAP_WAVE_BANK_SPECIAL, KFDTRAP_WAVE_SPECIAL_COUNT, "" },
		{ KFDTRAP_WAVE_BANK_COUNT, 0, "" },
	};
	char *buf = test_tail_alloc(16);

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		kfdtrap_wave_register_name(rows[i].bank, rows[i].number, buf, 16);
		TEST_ROW_STR(i, buf, rows[i].want);
	}
	for (uint32_t n = 0; n < KFDTRAP_WAVE_SPECIAL_COUNT; n++) {
		kfdtrap_wave_register_name(KFDTRAP_WAVE_BANK_SPECIAL, n, buf, 16);
		TEST_ROW_EQ(n, buf[0] != 0, true);
	}
	for (unsigned int i = 0; i < KFDTRAP_WAVE_PROBLEM_COUNT; i++)
		CU_ASSERT_PTR_NOT_NULL(kfdtrap_wave_problem_text(i));
	TEST_STR(kfdtrap_wave_problem_text(KFDTRAP_WAVE_OK), "ok");
	TEST_STR(kfdtrap_wave_problem_text(KFDTRAP_WAVE_PROBLEM_COUNT), "unknown problem");
	for (unsigned int i = 0; i < KFDTRAP_WAVE_STOP_COUNT; i++)
		CU_ASSERT_PTR_NOT_NULL(kfdtrap_wave_stop_name(i));
	TEST_STR(kfdtrap_wave_stop_name(7), "watch_0");
	TEST_STR(kfdtrap_wave_stop_name(13), "illegal_instruction");
	TEST_STR(kfdtrap_wave_stop_name(18), "trap");
	CU_ASSERT_PTR_NULL(kfdtrap_wave_stop_name(KFDTRAP_WAVE_STOP_COUNT));
}

TEST_SUITE(kfdtrap_wave_registers, TEST(gfx9_aliases_follow_the_count),
	   TEST(specials_have_their_slots), TEST(banks_end_where_the_wave_ends),
	   TEST(names_are_the_assemblers));
