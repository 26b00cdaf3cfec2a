/* SPDX-License-Identifier: MIT */
/* Save areas that no hardware leaves: what is wrong is named, nothing is read out of bounds. */
#include "tests/unit/kfdtrap/kfdtrap_wave_area.h"

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
	static const uint8_t stack[20] = { 0 };
	struct kfdtrap_wave_header h = { .control_stack_offset = 40, .control_stack_size = 20,
					 .wave_state_offset = 10, .wave_state_size = 11 };
	struct kfdtrap_wave_layout l;
	struct kfdtrap_wave_iter iter;

	kfdtrap_wave_iter_init(&iter, kfdtrap_wave_arch_find(90000), &h, stack, sizeof(stack), 9);
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

TEST_SUITE(kfdtrap_wave_checks, TEST(header_checks_name_what_is_wrong),
	   TEST(walk_checks_name_what_is_wrong), TEST(walk_refuses_a_bad_header),
	   TEST(truncated_stacks_are_harmless), TEST(flipped_bits_are_harmless));
