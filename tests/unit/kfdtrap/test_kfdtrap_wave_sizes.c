/* SPDX-License-Identifier: MIT */
/* Packets, work-items, sizes of save areas and scratch: arithmetic alone. */
#include "pagelib.h"
#include "tests/unit/kfdtrap/kfdtrap_wave_area.h"

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

	page_of_test = 4096;
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, kfdtrap_wave_area_sizes(&rows[i].device, &s), true);
		TEST_ROW_EQ(i, s.waves, rows[i].want.waves);
		TEST_ROW_EQ(i, s.control_stack_size, rows[i].want.control_stack_size);
		TEST_ROW_EQ(i, s.wave_data_size, rows[i].want.wave_data_size);
		TEST_ROW_EQ(i, s.area_size, rows[i].want.area_size);
		TEST_ROW_EQ(i, s.debug_size, rows[i].want.debug_size);
		TEST_ROW_EQ(i, s.buffer_size, rows[i].want.buffer_size);
	}
	page_of_test = 0;
}

/* The GPU's pages stay what they are; an area and a buffer are given out by the machine's. */
static void area_sizes_end_at_pages(void)
{
	const struct kfdtrap_wave_device device = { 90402, 1216, 4, 8, 4, 1, 65536 };
	struct kfdtrap_wave_area_sizes s = { 0 };

	page_of_test = 65536;
	TEST_EQ(kfdtrap_wave_area_sizes(&device, &s), true);
	page_of_test = 0;
	TEST_EQ(s.control_stack_size, 12288);
	TEST_EQ(s.wave_data_size, 23191552);
	TEST_EQ(s.area_size, 355 * 65536);
	TEST_EQ(s.debug_size, 48640);
	/* 8 * (355 * 65536 + 48640) is 4096 bytes less. */
	TEST_EQ(s.buffer_size, 2846 * 65536);
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

TEST_SUITE(kfdtrap_wave_sizes, TEST(packet_slots_become_dispatch_ids),
	   TEST(lanes_become_work_items), TEST(area_sizes_follow_the_formulas), TEST(area_sizes_end_at_pages),
	   TEST(area_sizes_refuse_nonsense), TEST(scratch_follows_the_ring),
	   TEST(waves_without_scratch_are_named), TEST(private_addresses_are_interleaved));
