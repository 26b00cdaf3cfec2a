/* SPDX-License-Identifier: MIT */
/* Context save areas, byte by byte.  Every expected number was worked out by hand. */
#include <stdint.h>
#include <string.h>

#include "kfdtrap_wave.h"
#include "testlib.h"

#define FIRST_LAST_GFX9 0x30000u
#define TOP		0x100000u
#define AREA_SIZE	0x200000u

/* Versions with something of their own in the tables. */
static const uint32_t generations[] = {
	90000,	90008,	90010,	90402,	90500,	100100,
	100300, 110000, 120000, 120500,
};

static void put32(uint8_t *p, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

/* Words in memory order, ending at an unmapped page. */
static uint8_t *tail_words(const uint32_t *words, size_t n)
{
	uint8_t *p = test_tail_alloc(n * 4);

	for (size_t i = 0; i < n; i++)
		put32(p + 4 * i, words[i]);
	return p;
}

/* An area whose wave data end at TOP; the control stack lies right below the data. */
static struct kfdtrap_wave_header header_for(size_t n_words, uint32_t data_size)
{
	return (struct kfdtrap_wave_header){
		.control_stack_offset = TOP - data_size - (uint32_t)n_words * 4,
		.control_stack_size = (uint32_t)n_words * 4,
		.wave_state_offset = TOP,
		.wave_state_size = data_size,
	};
}

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

/* ------------------------------------------------------------------ checks ------------------- */

static void header_checks_name_what_is_wrong(void)
{
	static const struct {
		uint32_t stack_offset, stack_size, data_end, data_size;
		uint64_t area_size;
		enum kfdtrap_wave_problem want;
	} rows[] = {
		{ 0xfec, 0x14, 0x3580, 0x2580, 0x3580, KFDTRAP_WAVE_OK },
		{ 0, 0, 0, 0, 0, KFDTRAP_WAVE_OK },
		{ 0x1000, 0, 0x1000, 0, 0x4000, KFDTRAP_WAVE_OK },
		{ 40, 0x14, 60, 0, 60, KFDTRAP_WAVE_OK },
		{ 0xfec, 0x18, 0x3580, 0x2580, 0x4000, KFDTRAP_WAVE_BOUNDARY },
		{ 0xff0, 0x14, 0x3580, 0x2580, 0x4000, KFDTRAP_WAVE_BOUNDARY },
		{ 0xfec, 0x14, 0x3584, 0x2580, 0x4000, KFDTRAP_WAVE_BOUNDARY },
		{ 0xfed, 0x13, 0x3580, 0x2580, 0x4000, KFDTRAP_WAVE_CONTROL_STACK_SIZE },
		{ 39, 0x14, 59, 0, 0x4000, KFDTRAP_WAVE_CONTROL_STACK_RANGE },
		{ 0xffffffec, 0x14, 0, 0, 0x4000, KFDTRAP_WAVE_CONTROL_STACK_RANGE },
		{ 0xfffffff0, 0x14, 0x3580, 0x357c, 0x4000, KFDTRAP_WAVE_CONTROL_STACK_RANGE },
		{ 0xfec, 0x14, 0x3580, 0x2580, 0x357f, KFDTRAP_WAVE_DATA_RANGE },
		{ 0xfec, 0x14, 0x3580, 0x3581, 0x4000, KFDTRAP_WAVE_DATA_RANGE },
		{ 0xfec, 0x14, 0x10, 0xfffff010, 0x4000, KFDTRAP_WAVE_DATA_RANGE },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint8_t *bytes = test_tail_alloc(KFDTRAP_WAVE_HEADER_SIZE);
		struct kfdtrap_wave_header h;

		memset(bytes, 0xee, KFDTRAP_WAVE_HEADER_SIZE);
		put32(bytes, rows[i].stack_offset);
		put32(bytes + 4, rows[i].stack_size);
		put32(bytes + 8, rows[i].data_end);
		put32(bytes + 12, rows[i].data_size);
		TEST_ROW_EQ(i, kfdtrap_wave_header_parse(bytes, rows[i].area_size, &h), rows[i].want);
		TEST_ROW_EQ(i, h.wave_state_size, rows[i].data_size);
		TEST_ROW_EQ(i, h.reserved, 0xeeeeeeee);
	}
}

/* Each row: a control stack, what the walk says, how many waves it yields first, and at which word. */
static void walk_checks_name_what_is_wrong(void)
{
	/* gfx900: 1344 bytes per wave with 32 SGPRs and 4 VGPRs.  gfx1100: 128 + 512 + 1024. */
	static const struct {
		uint32_t version, words[6], n_words, data_size, max_waves;
		enum kfdtrap_wave_problem want;
		uint32_t n_waves, at;
	} rows[] = {
		{ 90000, { 0 }, 0, 0, 9, KFDTRAP_WAVE_OK, 0, 0 },
		{ 90000, { 0x30000 }, 1, 0, 9, KFDTRAP_WAVE_OK, 0, 0 },
		{ 90000, { 0, 0, 0x80000080, 0x30000 }, 4, 1344, 1, KFDTRAP_WAVE_OK, 1, 0 },
		{ 90000, { 0, 0, 0x30000 }, 3, 1344, 9, KFDTRAP_WAVE_STATE_MISSING, 0, 2 },
		{ 90000, { 0, 0x80000080, 0x30000 }, 3, 1344, 9, KFDTRAP_WAVE_STATE_MISSING, 0, 2 },
		{ 90000, { 0, 0, 0xc0000080, 0x30000 }, 4, 1344, 9, KFDTRAP_WAVE_STATE_MISSING, 0, 3 },
		{ 90000, { 0, 0, 0x80000080, 0x10000 }, 4, 1344, 9, KFDTRAP_WAVE_GROUP_MISSING, 0, 3 },
		{ 90000, { 0, 0, 0x80000080, 0x30000, 0 }, 5, 2688, 9, KFDTRAP_WAVE_GROUP_MISSING, 1, 4 },
		{ 90000, { 0, 0, 0x80000080, 0x30000 }, 4, 1343, 9, KFDTRAP_WAVE_DATA_EXHAUSTED, 0, 3 },
		{ 90000, { 0, 0, 0x80000080, 0x20000, 0 }, 5, 2684, 9, KFDTRAP_WAVE_DATA_EXHAUSTED, 1, 4 },
		{ 90000, { 0, 0, 0x80000080, 0x30000 }, 4, 1348, 9, KFDTRAP_WAVE_DATA_LEFT, 1, 4 },
		{ 90000, { 0 }, 0, 4, 9, KFDTRAP_WAVE_DATA_LEFT, 0, 0 },
		{ 90000, { 0, 0, 0x80000080, 0x20000, 0 }, 5, 2688, 1, KFDTRAP_WAVE_TOO_MANY, 1, 4 },
		/* 8 registers in total, 12 of them architectural. */
		{ 90010, { 0, 0, 0x82000080, 0x30000 }, 4, 9999, 9, KFDTRAP_WAVE_VGPR_COUNT, 0, 2 },
		{ 110000, { 0, 0, 0x80000000 }, 3, 0, 9, KFDTRAP_WAVE_STATE_TRUNCATED, 0, 2 },
		{ 110000, { 0, 0, 0x80000000, 0x40000000, 0x20001000 }, 5, 1664, 9, KFDTRAP_WAVE_OK, 1, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct kfdtrap_wave_header h = header_for(rows[i].n_words, rows[i].data_size);
		struct kfdtrap_wave_layout l;
		struct kfdtrap_wave_iter iter;

		kfdtrap_wave_iter_init(&iter, kfdtrap_wave_arch_find(rows[i].version), &h,
				       tail_words(rows[i].words, rows[i].n_words),
				       rows[i].n_words * 4, rows[i].max_waves);
		while (kfdtrap_wave_next(&iter, &l))
			;
		TEST_ROW_EQ(i, iter.problem, rows[i].want);
		TEST_ROW_EQ(i, iter.n_waves, rows[i].n_waves);
		if (rows[i].want != KFDTRAP_WAVE_OK)
			TEST_ROW_EQ(i, iter.problem_offset, h.control_stack_offset + 4 * rows[i].at);
		TEST_ROW_EQ(i, kfdtrap_wave_next(&iter, &l), false);
	}
}

/* A header that was refused does not become harmful by being used all the same. */
static void walk_refuses_a_bad_header(void)
{
	struct kfdtrap_wave_header h = { .control_stack_offset = 40, .control_stack_size = 20,
					 .wave_state_offset = 10, .wave_state_size = 11 };
	struct kfdtrap_wave_layout l;
	struct kfdtrap_wave_iter iter;

	kfdtrap_wave_iter_init(&iter, kfdtrap_wave_arch_find(90000), &h, example_stack, 20, 9);
	TEST_EQ(kfdtrap_wave_next(&iter, &l), false);
	TEST_EQ(iter.problem, KFDTRAP_WAVE_DATA_RANGE);
	TEST_EQ(iter.problem_offset, 40);
}

/* Walks what it is given; every wave it yields lies inside the wave data. */
static void walk_anything(const struct kfdtrap_wave_arch *arch, const struct kfdtrap_wave_header *h,
			  const uint8_t *stack, size_t size)
{
	struct kfdtrap_wave_layout l;
	struct kfdtrap_wave_iter iter;
	uint32_t top = h->wave_state_offset, bottom = top - h->wave_state_size, offset, reg_size;

	kfdtrap_wave_iter_init(&iter, arch, h, stack, size, UINT32_MAX);
	while (kfdtrap_wave_next(&iter, &l)) {
		TEST_EQ(l.top_offset, top);
		if (l.vgpr_offset < bottom || l.vgpr_offset >= top)
			TEST_EQ(l.vgpr_offset, bottom);
		top = l.vgpr_offset;
		for (unsigned int bank = 0; bank < KFDTRAP_WAVE_BANK_COUNT; bank++)
			for (uint32_t n = 0; n < 20; n++)
				if (kfdtrap_wave_register_find(arch, &l, bank, n, &offset, &reg_size) &&
				    (offset < l.vgpr_offset || offset + reg_size > l.top_offset))
					TEST_EQ(offset, l.vgpr_offset);
	}
	if (iter.problem == KFDTRAP_WAVE_OK)
		TEST_EQ(top, bottom);
}

/* Groups of 1 to 4 waves with changing states; made with the walk's own idea of sizes. */
static size_t make_stack(uint32_t version, uint32_t *words, uint32_t *ret_data_size)
{
	bool gfx9 = version < 100000;
	uint32_t first = gfx9 ? 1u << 17 : 1u << 12;
	uint32_t last = gfx9 ? 1u << 16 : version == 120500 ? 1u << 13 : 1u << 29;
	struct kfdtrap_wave_header h;
	struct kfdtrap_wave_layout l;
	struct kfdtrap_wave_iter iter;
	size_t n = 0;

	words[n++] = 0x30000;
	words[n++] = 0x80000000;
	for (uint32_t group = 0; group < 4; group++) {
		words[n++] = 0x81000000 | group << 10 | 2 << 6 | (group + 3);
		if (!gfx9)
			words[n++] = 0xdeadbeef;
		for (uint32_t wave = 0; wave <= group; wave++) {
			words[n++] = (wave == 0 ? first : 0) | (wave == group ? last : 0) | wave;
			if (wave == 1)
				words[n++] = 0x40000000;
		}
	}
	h = header_for(n, TOP - 4096);
	kfdtrap_wave_iter_init(&iter, kfdtrap_wave_arch_find(version), &h, tail_words(words, n), n * 4,
			       100);
	while (kfdtrap_wave_next(&iter, &l))
		;
	TEST_EQ(iter.n_waves, 10);
	TEST_EQ(iter.problem, KFDTRAP_WAVE_DATA_LEFT);
	*ret_data_size = TOP - l.vgpr_offset;
	return n;
}

static void truncated_stacks_are_harmless(void)
{
	for (size_t g = 0; g < TEST_COUNT(generations); g++) {
		const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(generations[g]);
		uint32_t words[64], data_size;
		size_t n = make_stack(generations[g], words, &data_size);
		struct kfdtrap_wave_layout l;

		for (size_t size = 0; size <= n * 4; size++) {
			struct kfdtrap_wave_header h = header_for(n, data_size);
			uint8_t *stack = test_tail_alloc(size);
			struct kfdtrap_wave_iter iter;

			for (size_t i = 0; i < size; i++)
				stack[i] = (uint8_t)(words[i / 4] >> i % 4 * 8);
			kfdtrap_wave_iter_init(&iter, arch, &h, stack, size, 100);
			TEST_EQ(kfdtrap_wave_next(&iter, &l), size == n * 4);
			TEST_EQ(iter.problem, size == n * 4 ? 0 : KFDTRAP_WAVE_CONTROL_STACK_SHORT);
			h = header_for(size / 4, data_size);
			walk_anything(arch, &h, stack, size);
		}
	}
}

static void flipped_bits_are_harmless(void)
{
	for (size_t g = 0; g < TEST_COUNT(generations); g++) {
		const struct kfdtrap_wave_arch *arch = kfdtrap_wave_arch_find(generations[g]);
		uint32_t words[64], data_size;
		size_t n = make_stack(generations[g], words, &data_size);
		struct kfdtrap_wave_header h = header_for(n, data_size);
		uint8_t *stack = tail_words(words, n);

		walk_anything(arch, &h, stack, n * 4);
		for (size_t bit = 0; bit < n * 32; bit++) {
			stack[bit / 8] ^= (uint8_t)(1u << bit % 8);
			walk_anything(arch, &h, stack, n * 4);
			stack[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
}

/* ------------------------------------------------------------------ state -------------------- */

struct plant {
	uint32_t hwreg[16];
	uint32_t ttmp[16];
};

static const struct kfdtrap_wave_context all_valid = { .ttmp_setup = 1, .r_version = 11 };

static enum kfdtrap_wave_problem read_planted(uint32_t version,
					      const struct kfdtrap_wave_context *context,
					      const struct plant *p, uint8_t lanes,
					      struct kfdtrap_wave_state *ret)
{
	bool ttmp_low = version >= 120500;
	uint8_t *hot = test_tail_alloc(KFDTRAP_WAVE_HOT_SIZE);
	struct kfdtrap_wave_layout l = { .lanes = lanes,
					 .ttmp_offset = ttmp_low ? 1000 : 1064,
					 .hwreg_offset = ttmp_low ? 1064 : 1000 };

	TEST_EQ(kfdtrap_wave_hot_offset(&l), 1000);
	for (unsigned int i = 0; i < 16; i++) {
		put32(hot + l.hwreg_offset - 1000 + 4 * i, p->hwreg[i]);
		put32(hot + l.ttmp_offset - 1000 + 4 * i, p->ttmp[i]);
	}
	memset(ret, 0x5a, sizeof(*ret));
	return kfdtrap_wave_read_state(kfdtrap_wave_arch_find(version), context, &l, hot, ret);
}

/*
 * The same words for all: slot n holds 0x1000n0n0 or so, which each generation reads its own way.
 * A stopped wave with trap 3; all set-up bits are on.
 */
static void each_generation_has_its_state(void)
{
	static const struct plant plant = {
		.hwreg = { 0x10, 0x11111110, 0x2222, 0x33333333, 0x44444444, 0x00052061, 0x66, 0x77,
			   0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff },
		.ttmp = { 0, 0, 0, 0, 0x44, 0x55, 0x47abcdef & ~0x20000000u, 0x77767774, 0x888888,
			  0x9, 0xaaa8, 0xc0000000 | 0x1234 << 7 | 0x15, 0, 0, 0, 0 },
	};
	static const struct {
		uint32_t version, r_version;
		uint64_t pc;
		uint32_t packet, workgroup[3], wave_in_group, valid, mode, status, priv, excp, user;
		bool stopped;
		uint32_t trap_id;
	} rows[] = {
		{ 90000, 11, 0x123477767774, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x99,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 90008, 11, 0x123477767774, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x99,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 90010, 8, 0x123477767774, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x99,
		  0x52061, 0, 0x66, 0, true, 3 },
		/* TTMP11[30:6] = 0x1000000 | 0x1234 << 1 */
		{ 90402, 11, 0x222211111110, 0x1002468, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x99,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 90500, 11, 0x222211111110, 0x1002468, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x99,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 100100, 8, 0x123477767774, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x88,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 100300, 11, 0x222211111110, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x88,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 110000, 8, 0x222211111110, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x88,
		  0x52061, 0, 0x66, 0, true, 3 },
		{ 110000, 9, 0x123477767774, 0x1abcdef, { 0x888888, 9, 0xaaa8 }, 0x15, 0x1f, 0x88,
		  0x52061, 0, 0x66, 0, true, 3 },
		/* TTMP8 without its upper bits: handler not set up, no y and z. */
		{ 120000, 11, 0x222211111110, 0x888888, { 9, 0, 0 }, 0, 0x0d, 0x88, 0xdd, 0x52061,
		  0x66, 0xbb, false, 0 },
		{ 120500, 11, 0x222211111110, 0x888888, { 9, 0, 0 }, 0, 0x0d, 0x88, 0xdd, 0x52061,
		  0x66, 0xbb, false, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct kfdtrap_wave_context c = { .ttmp_setup = 1, .r_version = rows[i].r_version };
		struct kfdtrap_wave_state s;

		TEST_ROW_EQ(i, read_planted(rows[i].version, &c, &plant, 64, &s), 0);
		TEST_ROW_EQ(i, s.pc, rows[i].pc);
		TEST_ROW_EQ(i, s.parked, rows[i].pc == 0x123477767774);
		TEST_ROW_EQ(i, s.exec, 0x4444444433333333);
		TEST_ROW_EQ(i, s.m0, 0x10);
		TEST_ROW_EQ(i, s.packet, rows[i].packet);
		for (unsigned int k = 0; k < 3; k++)
			TEST_ROW_EQ(i, s.workgroup[k], rows[i].workgroup[k]);
		TEST_ROW_EQ(i, s.wave_in_group, rows[i].wave_in_group);
		TEST_ROW_EQ(i, s.valid, rows[i].valid);
		TEST_ROW_EQ(i, s.wave_id, rows[i].valid & 0x10 ? 0x5500000044 : 0);
		TEST_ROW_EQ(i, s.mode, rows[i].mode);
		TEST_ROW_EQ(i, s.status, rows[i].status);
		TEST_ROW_EQ(i, s.state_priv, rows[i].priv);
		TEST_ROW_EQ(i, s.excp_flags, rows[i].excp);
		TEST_ROW_EQ(i, s.excp_flags_user, rows[i].user);
		TEST_ROW_EQ(i, s.trap_ctrl, rows[i].user ? 0xcc : 0);
		TEST_ROW_EQ(i, s.stopped, rows[i].stopped);
		TEST_ROW_EQ(i, s.trap_id, rows[i].trap_id);
		TEST_ROW_EQ(i, read_planted(rows[i].version, &c, &plant, 32, &s), 0);
		TEST_ROW_EQ(i, s.exec, 0x33333333);
	}
}

/* gfx12 with everything set up: y and z, wave number and trap id in other places. */
static void gfx12_reads_ttmp8(void)
{
	struct plant p = { .hwreg = { [1] = 0x1000, [5] = 0x4200, [13] = 0x61 },
			   .ttmp = { [6] = 0x64000000, [7] = 0x00070005, [8] = 0xc0000000 | 21u << 25 | 77,
				     [9] = 3, [10] = 0x2000, [11] = 0x70000000 | 0xbeef << 7 } };
	struct kfdtrap_wave_state s;

	TEST_EQ(read_planted(120001, &all_valid, &p, 32, &s), 0);
	TEST_EQ(s.pc, 0xbeef00002000);
	TEST_EQ(s.packet, 77);
	TEST_EQ(s.wave_in_group, 21);
	TEST_EQ(s.workgroup[0], 3);
	TEST_EQ(s.workgroup[1], 5);
	TEST_EQ(s.workgroup[2], 7);
	TEST_EQ(s.valid, 0x1f);
	TEST_EQ(s.trap_id, 2);
	TEST_EQ(s.halted, true);
	TEST_EQ(s.status_user, 0x41);
	TEST_EQ(s.state_priv_user, 0x4200);
	TEST_EQ(read_planted(120501, &all_valid, &p, 32, &s), 0);
	TEST_EQ(s.pc, 0x1000);
	TEST_EQ(s.parked, false);
	TEST_EQ(s.trap_id, 7);
	TEST_EQ(s.stop_reasons, KFDTRAP_WAVE_STOP_TRAP);
	p.ttmp[6] = 0x40000000;
	TEST_EQ(read_planted(120001, &all_valid, &p, 32, &s), 0);
	TEST_EQ(s.halted, false);
	TEST_EQ(s.state_priv_user, 0x200);
}

/* HALT of a stopped wave is the saved bit; of any other, the bit itself. */
static void halt_is_the_programs_own(void)
{
	static const struct {
		uint32_t status, ttmp6;
		bool stopped, halted;
		uint32_t user;
	} rows[] = {
		{ 0x00052061, 0x40000000, true, false, 0x00010041 },
		{ 0x00052061, 0x60000000, true, true, 0x00012041 },
		{ 0x00010041, 0x60000000, true, true, 0x00012041 },
		{ 0x00012041, 0x00000000, false, true, 0x00012041 },
		{ 0x00010041, 0x20000000, false, false, 0x00010041 },
	};
	static const uint32_t versions[] = { 90000, 90402, 100300, 110000 };

	for (size_t i = 0; i < TEST_COUNT(rows) * TEST_COUNT(versions); i++) {
		size_t r = i / TEST_COUNT(versions);
		struct plant p = { .hwreg = { [5] = rows[r].status },
				   .ttmp = { [6] = rows[r].ttmp6, [11] = 0x80000000 } };
		struct kfdtrap_wave_state s;

		TEST_ROW_EQ(i, read_planted(versions[i % TEST_COUNT(versions)], &all_valid, &p, 64, &s), 0);
		TEST_ROW_EQ(i, s.stopped, rows[r].stopped);
		TEST_ROW_EQ(i, s.halted, rows[r].halted);
		TEST_ROW_EQ(i, s.status_user, rows[r].user);
		TEST_ROW_EQ(i, s.state_priv_user, 0);
	}
}

/* Which of packet and workgroup can be believed: row by row of the rules in the header. */
static void dispatch_fields_need_setup(void)
{
	static const struct {
		uint32_t version, ttmp_setup, debug_prop, r_version, ttmp6, ttmp8, ttmp11;
		uint32_t valid;
	} rows[] = {
		{ 90000, 0, 0, 11, 0, 0, 0, 0x10 },
		{ 90000, 1, 0, 11, 0, 0, 0, 0x1f },
		{ 90000, 0, 0x400, 11, 0, 0, 0, 0x1f },
		{ 90000, 0, 0xbff, 11, 0, 0, 0, 0x10 },
		{ 90000, 1, 0, 10, 0x80000000, 0, 0, 0x10 },
		{ 90000, 1, 0, 9, 0x80000000, 0, 0, 0x1f },
		{ 110000, 1, 0, 10, 0x80000000, 0, 0, 0x10 },
		{ 90402, 1, 0, 11, 0, 0, 0, 0x0f },
		{ 90402, 1, 0, 11, 0x80000000, 0, 0, 0x0f },
		{ 90402, 1, 0, 11, 0x80000000, 0, 0x80000000, 0x10 },
		{ 90402, 1, 0, 9, 0x80000000, 0, 0x80000000, 0x1f },
		{ 120000, 0, 0, 11, 0, 0xc0000000, 0, 0x10 },
		{ 120000, 1, 0, 11, 0x80000000, 0xc0000000, 0, 0x1f },
		{ 120000, 1, 0, 11, 0, 0x80000000, 0, 0x1d },
		{ 120000, 1, 0, 11, 0, 0x40000000, 0, 0x0f },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct kfdtrap_wave_context c = { rows[i].ttmp_setup, rows[i].debug_prop,
						  rows[i].r_version };
		struct plant p = { .ttmp = { [6] = rows[i].ttmp6 | 5, [8] = rows[i].ttmp8 | 5,
					     [9] = 6, [11] = rows[i].ttmp11 } };
		struct kfdtrap_wave_state s;

		TEST_ROW_EQ(i, read_planted(rows[i].version, &c, &p, 64, &s), 0);
		TEST_ROW_EQ(i, s.valid, rows[i].valid);
		TEST_ROW_EQ(i, s.workgroup[0] != 0, rows[i].valid & 1);
	}
}

/* One flag and the register it is in; all enables off, then on. */
static void flags_become_stop_reasons(void)
{
	static const struct {
		uint32_t version, slot, bit, reasons, reasons_enabled;
	} rows[] = {
		{ 90000, 6, 0, 0, 0x1 },	   { 90000, 6, 6, 0, 0x40 },
		{ 90000, 6, 7, 0, 0x80 },	   { 90000, 6, 12, 0, 0x100 },
		{ 90000, 6, 13, 0, 0x200 },	   { 90000, 6, 14, 0, 0x400 },
		{ 90000, 6, 28, 0x800, 0x800 },	   { 90000, 6, 8, 0x1000, 0x1000 },
		{ 90000, 6, 11, 0x2000, 0x2000 },  { 90000, 6, 10, 0, 0 },
		{ 90000, 6, 23, 0, 0 },		   { 90000, 6, 25, 0, 0 },
		{ 90402, 6, 2, 0, 0x4 },	   { 90402, 6, 22, 0, 0 },
		{ 90402, 6, 23, 0x40000, 0x40000 }, { 90402, 6, 24, 0x40000, 0x40000 },
		{ 90402, 6, 25, 0x4000, 0x4000 },  { 100300, 6, 20, 0, 0 },
		{ 100300, 6, 5, 0, 0x20 },	   { 110000, 6, 16, 0, 0 },
		{ 110000, 6, 17, 0x40000, 0x40000 }, { 110000, 6, 18, 0x40000, 0x40000 },
		{ 110000, 6, 20, 0x4000, 0x4000 }, { 110000, 6, 3, 0, 0x8 },
		{ 120000, 11, 0, 0, 0x1 },	   { 120000, 11, 6, 0, 0x40 },
		{ 120000, 11, 7, 0, 0 },	   { 120000, 6, 0, 0, 0x80 },
		{ 120000, 6, 3, 0, 0x400 },	   { 120000, 6, 4, 0x1000, 0x1000 },
		{ 120000, 6, 12, 0x800, 0x800 },   { 120000, 6, 6, 0x2000, 0x2000 },
		{ 120000, 6, 7, 0, 0 },		   { 120000, 6, 8, 0x40000, 0x40000 },
		{ 120000, 6, 9, 0x40000, 0x40000 }, { 120000, 6, 11, 0x4000, 0x4000 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint32_t v = rows[i].version;
		unsigned int enable_slot = v >= 120000 ? 12 : v >= 100000 ? 8 : 9;
		struct plant p = { .ttmp = { [6] = 0x40000000, [8] = 0x80000000, [11] = 0x80000000 } };
		struct kfdtrap_wave_state s;

		p.hwreg[rows[i].slot] = 1u << rows[i].bit;
		TEST_ROW_EQ(i, read_planted(v, &all_valid, &p, 64, &s), 0);
		TEST_ROW_EQ(i, s.stop_reasons, rows[i].reasons);
		p.hwreg[enable_slot] = v >= 120000 ? 0xff : 0xff000;
		read_planted(v, &all_valid, &p, 64, &s);
		TEST_ROW_EQ(i, s.stop_reasons, rows[i].reasons_enabled);
		p.ttmp[6] = 0;
		read_planted(v, &all_valid, &p, 64, &s);
		TEST_ROW_EQ(i, s.stop_reasons, 0);
	}
}

static void traps_become_stop_reasons(void)
{
	static const struct {
		uint32_t trap_id, flags, reasons;
		uint64_t exceptions;
	} rows[] = {
		{ 0, 0, 0, 0 },
		{ 1, 0, KFDTRAP_WAVE_STOP_BREAKPOINT, 0x2 },
		{ 2, 0, KFDTRAP_WAVE_STOP_ASSERT, 0x1 },
		{ 3, 0, KFDTRAP_WAVE_STOP_DEBUG_TRAP, 0x2 },
		{ 4, 0, KFDTRAP_WAVE_STOP_TRAP, 0x2 },
		{ 7, 0, KFDTRAP_WAVE_STOP_TRAP, 0x2 },
		{ 15, 0, KFDTRAP_WAVE_STOP_TRAP, 0x2 },
		/* Both memory flags mean a memory violation; more than one reason adds up. */
		{ 0, 1u << 28 | 1u << 8, KFDTRAP_WAVE_STOP_MEMORY_VIOLATION, 0x10 },
		{ 2, 1u << 8 | 1u << 11,
		  KFDTRAP_WAVE_STOP_ASSERT | KFDTRAP_WAVE_STOP_ADDRESS_ERROR |
			  KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION,
		  0x29 },
		{ 0, 1u << 2, KFDTRAP_WAVE_STOP_FP_DIVIDE_BY_ZERO, 0x4 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct plant p = { .hwreg = { [6] = rows[i].flags, [9] = 0xff000 },
				   .ttmp = { [6] = 0x40000000 | rows[i].trap_id << 25 } };
		struct kfdtrap_wave_state s;

		TEST_ROW_EQ(i, read_planted(90000, &all_valid, &p, 64, &s), 0);
		TEST_ROW_EQ(i, s.stop_reasons, rows[i].reasons);
		TEST_ROW_EQ(i, kfdtrap_wave_stop_exceptions(s.stop_reasons), rows[i].exceptions);
	}
}

static void crooked_pc_and_foreign_group_are_named(void)
{
	struct plant p = { .hwreg = { [1] = 0x1002 }, .ttmp = { [6] = 0x40000000, [7] = 0x2001 } };
	struct kfdtrap_wave_state leader = { 0 }, wave;

	TEST_EQ(read_planted(100300, &all_valid, &p, 64, &wave), KFDTRAP_WAVE_PC_ALIGNMENT);
	TEST_EQ(wave.pc, 0x1002);
	TEST_EQ(read_planted(90000, &all_valid, &p, 64, &wave), KFDTRAP_WAVE_PC_ALIGNMENT);
	TEST_EQ(wave.pc, 0x2001);

	leader = wave;
	TEST_EQ(kfdtrap_wave_check_group(&leader, &wave), KFDTRAP_WAVE_OK);
	for (unsigned int axis = 0; axis < 3; axis++) {
		wave = leader;
		wave.workgroup[axis]++;
		TEST_ROW_EQ(axis, kfdtrap_wave_check_group(&leader, &wave), KFDTRAP_WAVE_GROUP_ID);
		wave.valid = KFDTRAP_WAVE_HAS_PACKET;
		TEST_ROW_EQ(axis, kfdtrap_wave_check_group(&leader, &wave), KFDTRAP_WAVE_OK);
	}
}

/* ------------------------------------------------------------------ registers ---------------- */

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

/* ------------------------------------------------------------------ arithmetic --------------- */

static void packet_slots_become_dispatch_ids(void)
{
	static const struct {
		uint64_t read, write, ring_size;
		uint32_t packet;
		enum kfdtrap_wave_problem want;
		uint64_t id;
	} rows[] = {
		{ 5, 6, 4096, 5, KFDTRAP_WAVE_OK, 5 },
		{ 130, 140, 4096, 10, KFDTRAP_WAVE_OK, 138 },
		/* The ring has wrapped since the read counter. */
		{ 190, 200, 4096, 3, KFDTRAP_WAVE_OK, 195 },
		{ 0, 64, 4096, 63, KFDTRAP_WAVE_OK, 63 },
		{ 5, 5, 4096, 5, KFDTRAP_WAVE_PACKET_ID, 0 },
		{ 5, 6, 4096, 6, KFDTRAP_WAVE_PACKET_ID, 0 },
		{ 5, 6, 4096, 4, KFDTRAP_WAVE_PACKET_ID, 0 },
		{ 9, 6, 4096, 7, KFDTRAP_WAVE_PACKET_ID, 0 },
		{ UINT64_MAX, UINT64_MAX, 4096, 3, KFDTRAP_WAVE_PACKET_ID, 0 },
		{ UINT64_MAX - 1, UINT64_MAX, 4096, 62, KFDTRAP_WAVE_OK, UINT64_MAX - 1 },
		{ 0, 99, 4096, 64, KFDTRAP_WAVE_PACKET_SLOT, 0 },
		{ 0, 99, 4096, UINT32_MAX, KFDTRAP_WAVE_PACKET_SLOT, 0 },
		{ 0, 1, 64, 0, KFDTRAP_WAVE_OK, 0 },
		{ 0, 1, 0, 0, KFDTRAP_WAVE_RING_SIZE, 0 },
		{ 0, 1, 63, 0, KFDTRAP_WAVE_RING_SIZE, 0 },
		{ 0, 1, 96, 0, KFDTRAP_WAVE_RING_SIZE, 0 },
		{ 0, 1, 192, 0, KFDTRAP_WAVE_RING_SIZE, 0 },
		{ 0, 1, UINT64_C(1) << 31, 0, KFDTRAP_WAVE_OK, 0 },
		{ 0, 1, UINT64_C(1) << 32, 0, KFDTRAP_WAVE_RING_SIZE, 0 },
		{ 0, 1, UINT64_MAX, 0, KFDTRAP_WAVE_RING_SIZE, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint64_t id = 0;

		TEST_ROW_EQ(i, kfdtrap_wave_dispatch_id(rows[i].read, rows[i].write, rows[i].ring_size,
							rows[i].packet, &id), rows[i].want);
		TEST_ROW_EQ(i, id, rows[i].id);
	}
}

/* A grid of 20 x 5 x 3 in groups of 8 x 4 x 2; the last group of each axis is partial. */
static void lanes_become_work_items(void)
{
	static const struct {
		uint32_t group[3], wave, lanes, lane;
		bool found;
		uint32_t local[3], global[3];
	} rows[] = {
		{ { 0, 0, 0 }, 0, 64, 0, true, { 0, 0, 0 }, { 0, 0, 0 } },
		{ { 0, 0, 0 }, 0, 64, 63, true, { 7, 3, 1 }, { 7, 3, 1 } },
		{ { 0, 0, 0 }, 1, 64, 0, false, { 0 }, { 0 } },
		{ { 1, 0, 0 }, 1, 32, 9, true, { 1, 1, 1 }, { 9, 1, 1 } },
		/* 4 x 1 x 1 are left: lane 3 is the last. */
		{ { 2, 1, 1 }, 0, 32, 3, true, { 3, 0, 0 }, { 19, 4, 2 } },
		{ { 2, 1, 1 }, 0, 32, 4, false, { 0 }, { 0 } },
		/* 4 x 4 x 2 */
		{ { 2, 0, 0 }, 0, 32, 31, true, { 3, 3, 1 }, { 19, 3, 1 } },
		{ { 3, 0, 0 }, 0, 32, 0, false, { 0 }, { 0 } },
		{ { 0, 0, 0 }, 0, 32, 32, false, { 0 }, { 0 } },
		{ { UINT32_MAX, 0, 0 }, 0, 32, 0, false, { 0 }, { 0 } },
		{ { 0, 0, 0 }, UINT32_MAX, 64, 63, false, { 0 }, { 0 } },
	};
	struct kfdtrap_wave_grid grid = { { 8, 4, 2 }, { 20, 5, 3 } };
	uint32_t local[3], global[3];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		memset(local, 0, sizeof(local));
		memset(global, 0, sizeof(global));
		TEST_ROW_EQ(i, kfdtrap_wave_work_item(&grid, rows[i].group, rows[i].wave, rows[i].lanes,
						      rows[i].lane, local, global), rows[i].found);
		for (unsigned int k = 0; k < 3; k++) {
			TEST_ROW_EQ(i, local[k], rows[i].local[k]);
			TEST_ROW_EQ(i, global[k], rows[i].global[k]);
		}
	}
	grid.group[1] = 0;
	TEST_EQ(kfdtrap_wave_work_item(&grid, rows[0].group, 0, 64, 0, local, global), false);
	grid = (struct kfdtrap_wave_grid){ { UINT32_MAX, UINT32_MAX, UINT32_MAX },
					   { UINT32_MAX, UINT32_MAX, UINT32_MAX } };
	TEST_EQ(kfdtrap_wave_work_item(&grid, rows[0].group, UINT32_MAX, 64, 0, local, global), true);
	TEST_EQ(local[0], 64 * UINT64_C(0xffffffff) % UINT32_MAX);
	TEST_EQ(local[1], 64);
}

static void area_sizes_follow_the_formulas(void)
{
	static const struct {
		struct kfdtrap_wave_device device;
		struct kfdtrap_wave_area_sizes want;
	} rows[] = {
		/* The limit per shader engine counts: 4 * 512 < 64 * 40. */
		{ { 90000, 256, 4, 1, 4, 1, 65536 },
		  { 2048, 20480, 22282240, 22302720, 65536, 22368256 } },
		{ { 90402, 1216, 4, 8, 4, 1, 65536 },
		  { 1520, 12288, 23191552, 23203840, 48640, 186019840 } },
		/* Real LDS: 160 KiB. */
		{ { 90500, 1024, 4, 8, 4, 1, 163840 },
		  { 1280, 12288, 22675456, 22687744, 40960, 181829632 } },
		/* The control stack is cut to 0x7000. */
		{ { 100300, 160, 2, 1, 8, 2, 65536 },
		  { 2560, 28672, 27852800, 27881472, 81920, 27963392 } },
		{ { 110000, 192, 2, 1, 12, 2, 65536 },
		  { 3072, 40960, 46006272, 46047232, 98304, 46145536 } },
		/* 16 * 0x55000 */
		{ { 110002, 32, 2, 1, 4, 2, 65536 },
		  { 512, 8192, 5570560, 5578752, 16384, 5595136 } },
		{ { 120500, 8, 4, 1, 1, 1, 0x50000 },
		  { 128, 4096, 1835008, 1839104, 4096, 1843200 } },
	};
	struct kfdtrap_wave_area_sizes s = { .waves = 77 };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, kfdtrap_wave_area_sizes(&rows[i].device, &s), true);
		TEST_ROW_EQ(i, s.waves, rows[i].want.waves);
		TEST_ROW_EQ(i, s.control_stack_size, rows[i].want.control_stack_size);
		TEST_ROW_EQ(i, s.wave_data_size, rows[i].want.wave_data_size);
		TEST_ROW_EQ(i, s.area_size, rows[i].want.area_size);
		TEST_ROW_EQ(i, s.debug_size, rows[i].want.debug_size);
		TEST_ROW_EQ(i, s.buffer_size, rows[i].want.buffer_size);
	}
}

static void area_sizes_refuse_nonsense(void)
{
	const struct kfdtrap_wave_device good = { 90402, 1216, 4, 8, 4, 1, 65536 };
	struct kfdtrap_wave_area_sizes s;

	for (unsigned int i = 0; i < 6; i++) {
		struct kfdtrap_wave_device d = good;

		(&d.gfx_target_version)[i] = 0;
		TEST_ROW_EQ(i, kfdtrap_wave_area_sizes(&d, &s), false);
	}
	TEST_EQ(kfdtrap_wave_area_sizes(&good, &s), true);
}

#define RING(waves, units) ((waves) | (uint32_t)(units) << 12)

static void scratch_follows_the_ring(void)
{
	static const struct {
		uint32_t gfx, engines, tmpring;
		uint64_t xcc_bytes;
		uint32_t xcc, engine, slot;
		enum kfdtrap_wave_problem want;
		uint64_t offset;
		uint32_t size;
		bool in_register;
	} rows[] = {
		/* 64 waves of 2 KiB in 4 engines: 16 each; (16 * 2 + 3) * 2048. */
		{ 90010, 4, RING(64, 2), 0, 0, 2, 3, KFDTRAP_WAVE_OK, 35 * 2048, 2048, false },
		{ 90402, 4, RING(64, 2), 0, 0, 2, 3, KFDTRAP_WAVE_OK, 35 * 2048, 2048, true },
		{ 90402, 4, RING(64, 2), 0, 3, 0, 0, KFDTRAP_WAVE_OK, 3 * 64 * 2048, 2048, true },
		{ 90402, 4, RING(64, 2), 0x100000, 3, 0, 1, KFDTRAP_WAVE_OK, 0x300000 + 2048, 2048, true },
		{ 100300, 4, RING(64, 1), 0, 0, 1, 0, KFDTRAP_WAVE_OK, 16 * 1024, 1024, false },
		{ 110000, 6, RING(16, 5), 0, 0, 2, 3, KFDTRAP_WAVE_OK, 35 * 1280, 1280, true },
		{ 120001, 4, RING(16, 0x20001), 0, 0, 0, 1, KFDTRAP_WAVE_OK, 0x2000100, 0x2000100, true },
		/* The 16th bit of the size is gfx12's. */
		{ 110000, 6, RING(16, 0x8000), 0, 0, 0, 0, KFDTRAP_WAVE_NO_SCRATCH, 0, 0, false },
		{ 90010, 4, RING(63, 2), 0, 0, 0, 0, KFDTRAP_WAVE_SCRATCH_RING, 0, 0, false },
		{ 90010, 4, RING(64, 2), 0, 0, 0, 16, KFDTRAP_WAVE_SCRATCH_RING, 0, 0, false },
		{ 90010, 4, RING(64, 2), 0, 0, 4, 0, KFDTRAP_WAVE_SCRATCH_RING, 0, 0, false },
		{ 90010, 4, RING(0, 2), 0, 0, 0, 0, KFDTRAP_WAVE_NO_SCRATCH, 0, 0, false },
		{ 90010, 4, RING(64, 0), 0, 0, 0, 0, KFDTRAP_WAVE_NO_SCRATCH, 0, 0, false },
		{ 90010, 0, RING(64, 2), 0, 0, 0, 0, KFDTRAP_WAVE_NO_SCRATCH, 0, 0, false },
		{ 80003, 4, RING(64, 2), 0, 0, 0, 0, KFDTRAP_WAVE_NO_SCRATCH, 0, 0, false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct kfdtrap_wave_scratch s = { .gfx_target_version = rows[i].gfx,
							.shader_engines = rows[i].engines,
							.tmpring = rows[i].tmpring,
							.base = 0x7f0000000000,
							.xcc_bytes = rows[i].xcc_bytes };
		const struct kfdtrap_wave_layout layout = { .shader_engine = (uint8_t)rows[i].engine,
							    .scratch_slot = (uint16_t)rows[i].slot,
							    .scratch_enabled = true };
		struct kfdtrap_wave_scratch_place place = { .address = s.base };

		TEST_ROW_EQ(i, kfdtrap_wave_scratch_find(&s, &layout, rows[i].xcc, &place), rows[i].want);
		TEST_ROW_EQ(i, place.address - s.base, rows[i].offset);
		TEST_ROW_EQ(i, place.size, rows[i].size);
		TEST_ROW_EQ(i, place.in_register, rows[i].in_register);
	}
}

static void waves_without_scratch_are_named(void)
{
	const struct kfdtrap_wave_scratch s = { 90010, 4, RING(64, 2), 0x1000, 0 };
	const struct kfdtrap_wave_layout none = { .scratch_enabled = false };
	struct kfdtrap_wave_scratch_place place;

	TEST_EQ(kfdtrap_wave_scratch_find(&s, &none, 0, &place), KFDTRAP_WAVE_NO_SCRATCH);
}

/* Words of all lanes side by side. */
static void private_addresses_are_interleaved(void)
{
	TEST_EQ(kfdtrap_wave_scratch_offset(64, 0, 0), 0);
	TEST_EQ(kfdtrap_wave_scratch_offset(64, 5, 3), 23);
	TEST_EQ(kfdtrap_wave_scratch_offset(64, 5, 4), 256 + 20);
	TEST_EQ(kfdtrap_wave_scratch_offset(32, 31, 9), 2 * 128 + 124 + 1);
}

TEST_SUITE(kfdtrap_wave, TEST(worked_example_has_the_documented_offsets),
	   TEST(worked_example_finds_registers), TEST(worked_example_has_the_documented_state),
	   TEST(each_generation_has_its_layout), TEST(unknown_generations_are_refused),
	   TEST(groups_share_the_leaders_lds), TEST(header_checks_name_what_is_wrong),
	   TEST(walk_checks_name_what_is_wrong), TEST(walk_refuses_a_bad_header),
	   TEST(truncated_stacks_are_harmless), TEST(flipped_bits_are_harmless),
	   TEST(each_generation_has_its_state), TEST(gfx12_reads_ttmp8), TEST(halt_is_the_programs_own),
	   TEST(dispatch_fields_need_setup), TEST(flags_become_stop_reasons),
	   TEST(traps_become_stop_reasons), TEST(crooked_pc_and_foreign_group_are_named),
	   TEST(gfx9_aliases_follow_the_count), TEST(specials_have_their_slots),
	   TEST(banks_end_where_the_wave_ends), TEST(names_are_the_assemblers),
	   TEST(packet_slots_become_dispatch_ids), TEST(lanes_become_work_items),
	   TEST(area_sizes_follow_the_formulas), TEST(area_sizes_refuse_nonsense),
	   TEST(scratch_follows_the_ring), TEST(waves_without_scratch_are_named),
	   TEST(private_addresses_are_interleaved));
