/* SPDX-License-Identifier: MIT */
/* Every kind of planted wave, on every generation, as the decoder sees it. */
#include "kfdtrap_wave.h"
#include "testlib.h"
#include "sim/kfd/wave/wave_script.h"

#define AREA_SIZE (1u << 20)
#define BOUNDARY  4096u
#define PC	  UINT64_C(0x7f1122330000)

struct decoded {
	size_t n;
	struct kfdtrap_wave_layout layouts[64];
	struct kfdtrap_wave_state states[64];
};

static void decode(const struct wave_script *s, uint32_t r_version, struct decoded *ret)
{
	const struct wave_save_options o = { r_version, BOUNDARY, AREA_SIZE };
	const struct kfdtrap_wave_context context = { 1, 0, r_version };
	const struct kfdtrap_wave_arch *arch =
		kfdtrap_wave_arch_find(s->silicon->gfx_target_version);
	uint8_t bytes[KFDTRAP_WAVE_HEADER_SIZE] = { 0 };
	struct kfdtrap_wave_header header;
	struct kfdtrap_wave_iter iter;
	struct wave_desc waves[64];
	struct wave_save save;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < s->n; i++) {
		waves[i] = s->waves[i].desc;
		waves[i].launch_written = true;
		waves[i].pc = wave_actor_pc(&s->waves[i], r_version);
	}
	TEST_EQ_FATAL(wave_save_create(s->silicon, &o, waves, s->n, &save), 0);
	memcpy(bytes, save.header, sizeof(save.header));
	TEST_EQ(kfdtrap_wave_header_parse(bytes, AREA_SIZE, &header), KFDTRAP_WAVE_OK);
	kfdtrap_wave_iter_init(&iter, arch, &header, save.bytes, save.header[1], 64);
	while (kfdtrap_wave_next(&iter, &ret->layouts[ret->n])) {
		uint32_t hot = kfdtrap_wave_hot_offset(&ret->layouts[ret->n]);

		TEST_EQ(kfdtrap_wave_read_state(arch, &context, &ret->layouts[ret->n],
						save.bytes + (hot - save.header[0]),
						&ret->states[ret->n]),
			KFDTRAP_WAVE_OK);
		ret->n++;
	}
	TEST_EQ(iter.problem, KFDTRAP_WAVE_OK);
	TEST_EQ(ret->n, s->n);
	wave_save_destroy(&save);
}

static void parse(const struct wave_silicon *g, const char *text, struct wave_script *ret)
{
	const struct wave_script_place place = { .silicon = g, .n_xcc = 1, .seed = 1,
						 .wave32 = g->vgpr_granule32 != 0 };

	TEST_EQ_FATAL(wave_script_parse(&place, text, ret), 0);
}

static void every_kind_gives_its_reason(void)
{
	static const struct {
		const char *text;
		bool stopped, halted;
		uint32_t pc_moves, reasons;
	} rows[] = {
		{ "spin pc=0x7f1122330000", false, false, 0, 0 },
		{ "spin pc=0x7f1122330000 halt=1", false, true, 0, 0 },
		{ "progress pc=0x7f1122330000", false, false, 0, 0 },
		{ "memory pc=0x7f1122330000", true, false, 0, KFDTRAP_WAVE_STOP_MEMORY_VIOLATION },
		{ "address pc=0x7f1122330000", true, false, 0, KFDTRAP_WAVE_STOP_ADDRESS_ERROR },
		{ "illegal pc=0x7f1122330000 halt=1", true, true, 0,
		  KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION },
		{ "math pc=0x7f1122330000", true, false, 0, KFDTRAP_WAVE_STOP_FP_DIVIDE_BY_ZERO },
		{ "breakpoint pc=0x7f1122330000", true, false, 4, KFDTRAP_WAVE_STOP_BREAKPOINT },
		{ "assert pc=0x7f1122330000 junk=1", true, false, 4, KFDTRAP_WAVE_STOP_ASSERT },
		{ "debugtrap pc=0x7f1122330000", true, false, 4, KFDTRAP_WAVE_STOP_DEBUG_TRAP },
		{ "stopped pc=0x7f1122330000 trap=77", true, false, 0, KFDTRAP_WAVE_STOP_TRAP },
		{ "stopped pc=0x7f1122330000", true, false, 0, 0 },
		{ "halted pc=0x7f1122330000", false, true, 0, 0 },
	};
	static struct decoded d;
	const struct wave_silicon *g;
	struct wave_script s;

	for (size_t k = 0; (g = wave_silicon_at(k)); k++) {
		for (size_t i = 0; i < TEST_COUNT(rows); i++) {
			parse(g, rows[i].text, &s);
			decode(&s, 10, &d);
			TEST_ROW_EQ(i, d.states[0].stopped, rows[i].stopped);
			TEST_ROW_EQ(i, d.states[0].halted, rows[i].halted);
			TEST_ROW_EQ(i, d.states[0].stop_reasons, rows[i].reasons);
			TEST_ROW_EQ(i, d.states[0].pc, PC + rows[i].pc_moves);
			wave_script_deinit(&s);
		}
	}
}

static void groups_share_a_packet_and_count_their_waves(void)
{
	static struct decoded d;
	const struct wave_silicon *g;
	struct wave_script s;

	for (size_t k = 0; (g = wave_silicon_at(k)); k++) {
		parse(g, "spin n=7 group=3 workgroup=5,6,7 packet=9; barrier n=4", &s);
		decode(&s, 10, &d);
		for (uint32_t i = 0; i < 7; i++) {
			TEST_ROW_EQ(i, d.layouts[i].leader, i / 3 * 3);
			TEST_ROW_EQ(i, d.layouts[i].last, i % 3 == 2 || i == 6);
			TEST_ROW_EQ(i, d.states[i].wave_in_group, i % 3);
			TEST_ROW_EQ(i, d.states[i].workgroup[0], 5 + i / 3);
			TEST_ROW_EQ(i, d.states[i].workgroup[1], 6);
			TEST_ROW_EQ(i, d.states[i].workgroup[2], 7);
			TEST_ROW_EQ(i, d.states[i].packet, 9);
		}
		TEST_EQ(d.layouts[10].leader, 7);
		wave_script_deinit(&s);
	}
}

/* Of 70 by 3 items in workgroups of 40 by 2, the last ones have 30 by 2, 40 by 1 and 30 by 1. */
static void groups_at_the_edge_of_a_grid_have_fewer_lanes(void)
{
	static const struct {
		uint32_t x, y, in_group;
		uint64_t exec;
	} want[] = {
		{ 0, 0, 0, UINT64_MAX }, { 0, 0, 1, UINT64_MAX >> 48 }, { 1, 0, 0, UINT64_MAX >> 4 },
		{ 0, 1, 0, UINT64_MAX >> 24 }, { 1, 1, 0, UINT64_MAX >> 34 },
	};
	struct wave_script s;

	parse(wave_silicon_find(90402), "spin n=8 group=2 grid=2,2,1 size=40,2,1 items=70,3,1", &s);
	TEST_EQ_FATAL(s.n, TEST_COUNT(want));
	for (uint32_t i = 0; i < TEST_COUNT(want); i++) {
		const struct wave_desc *w = &s.waves[i].desc;

		TEST_ROW_EQ(i, w->group[0], want[i].x);
		TEST_ROW_EQ(i, w->group[1], want[i].y);
		TEST_ROW_EQ(i, w->wave_in_group, want[i].in_group);
		TEST_ROW_EQ(i, w->exec, want[i].exec);
		TEST_ROW_EQ(i, w->first, !want[i].in_group);
		TEST_ROW_EQ(i, w->last, i != 0);
	}
	wave_script_deinit(&s);
}

static void groups_of_a_grid_fill_one_axis_after_the_other(void)
{
	static const uint32_t want[][3] = { { 5, 6, 7 }, { 6, 6, 7 }, { 5, 7, 7 }, { 6, 7, 7 },
					    { 5, 8, 7 }, { 6, 8, 7 }, { 5, 6, 8 } };
	static struct decoded d;
	struct wave_script s;

	parse(wave_silicon_find(90402), "spin n=14 group=2 workgroup=5,6,7 grid=2,3,9", &s);
	decode(&s, 10, &d);
	for (size_t i = 0; i < 14; i++)
		for (size_t k = 0; k < 3; k++)
			TEST_ROW_EQ(i, d.states[i].workgroup[k], want[i / 2][k]);
	wave_script_deinit(&s);
}

static void some_waves_diverge_and_one_misses_the_barrier(void)
{
	static struct decoded d;
	const struct wave_silicon *g;
	struct wave_script s;

	for (size_t k = 0; (g = wave_silicon_at(k)); k++) {
		uint64_t all = g->vgpr_granule32 ? UINT32_MAX : UINT64_MAX;

		parse(g, "divergence n=4; barrier n=4", &s);
		decode(&s, 10, &d);
		TEST_EQ(d.states[0].exec, UINT64_C(0x5555555555555555) & all);
		TEST_EQ(d.states[1].exec, UINT64_C(0xaaaaaaaaaaaaaaaa) & all);
		TEST_EQ(d.states[2].exec, 0xff);
		TEST_EQ(d.states[3].exec, 1);
		TEST_EQ(d.states[4].pc, d.states[6].pc);
		TEST_EQ(d.states[7].pc != d.states[6].pc, true);
		wave_script_deinit(&s);
	}
}

static void barriers_of_gfx12_5_are_planted(void)
{
	static struct decoded d;
	struct wave_script s;

	parse(wave_silicon_find(120500), "barrier n=4 signals=2 named=1,12,4 named=16,3,2 cluster=8,5 banks=42; spin", &s);
	TEST_EQ(s.waves[3].desc.named[0].members, 12);
	TEST_EQ(s.waves[3].desc.named[0].signals, 4);
	TEST_EQ(s.waves[3].desc.named[15].members, 3);
	TEST_EQ(s.waves[3].desc.named[15].signals, 2);
	TEST_EQ(s.waves[4].desc.named[0].members, 0);
	decode(&s, 10, &d);
	TEST_EQ(d.states[3].barrier, 0x20041);
	TEST_EQ(d.states[3].cluster_barrier, 0x50081);
	TEST_EQ(d.states[3].mode >> 12 & 0x3f, 42);
	TEST_EQ(d.states[4].cluster_barrier, 0);
	wave_script_deinit(&s);
}

static void only_waves_in_a_loop_move(void)
{
	static const struct {
		const char *text;
		uint64_t loop;
	} rows[] = {
		{ "spin n=8 pc=0x1000", 32 },	{ "spin n=8 pc=0x1000 loop=256", 256 },
		{ "spin n=8 pc=0x1000 loop=0", 0 }, { "progress n=8 pc=0x1000", 4096 },
		{ "memory n=8 pc=0x1000", 0 },	{ "illegal n=8 pc=0x1000 loop=64", 0 },
		{ "halted n=8 pc=0x1000", 0 },
	};
	struct wave_script s;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		bool moved = false;

		parse(wave_silicon_find(90402), rows[i].text, &s);
		for (unsigned int k = 0; k < 50; k++) {
			uint64_t before = wave_actor_pc(&s.waves[k % 8], 10), after;

			wave_actor_run(&s.waves[k % 8]);
			after = wave_actor_pc(&s.waves[k % 8], 10);
			moved |= after != before;
			TEST_ROW_EQ(i, after >= 0x1000 && after <= 0x1000 + rows[i].loop, true);
			TEST_ROW_EQ(i, after % 4, 0);
		}
		TEST_ROW_EQ(i, moved, rows[i].loop != 0);
		wave_script_deinit(&s);
	}
}

static void refuses_bad_lines(void)
{
	static const char *const rows[] = {
		"dance",
		"spin 3",
		"spin n=",
		"spin n=0",
		"spin n=100001",
		"spin =1",
		"spin v=1",
		"spin v0.64=1",
		"spin v0.=1",
		"spin s1=0x100000000",
		"spin loop=2",
		"spin xcc=1",
		"spin group=33",
		"spin wave32=2",
		"spin workgroup=1,2,3,4",
		"spin workgroup=x",
		"spin grid=2,0",
		"spin size=64,1,1",
		"spin items=64,1,1",
		"spin; dance",
		"spin v123456789012345678=1",
		"spin named=0,1,1",
		"spin named=17,1,1",
		"spin named=1,128,1",
		"spin cluster=128,1",
		"spin cluster=1,2,3",
		"spin banks=64",
	};
	const struct wave_script_place place = { .silicon = wave_silicon_find(90402), .n_xcc = 1 };
	struct wave_script s;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		TEST_ROW_EQ(i, wave_script_parse(&place, rows[i], &s), -EINVAL);
		wave_script_deinit(&s);
	}
	TEST_EQ(wave_script_parse(&place, "# nothing\n\n;", &s), 0);
	TEST_EQ(s.n, 0);
	wave_script_deinit(&s);
}

TEST_SUITE(wave_script, TEST(every_kind_gives_its_reason),
	   TEST(groups_share_a_packet_and_count_their_waves),
	   TEST(groups_at_the_edge_of_a_grid_have_fewer_lanes),
	   TEST(groups_of_a_grid_fill_one_axis_after_the_other),
	   TEST(some_waves_diverge_and_one_misses_the_barrier), TEST(barriers_of_gfx12_5_are_planted),
	   TEST(only_waves_in_a_loop_move),
	   TEST(refuses_bad_lines));
