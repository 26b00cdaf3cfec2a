/* SPDX-License-Identifier: MIT */
/* What a wave is doing, from its trap temporaries and hardware registers. */
#include "tests/unit/kfdtrap/kfdtrap_wave_area.h"

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
		TEST_ROW_EQ(i, s.barrier, rows[i].version >= 120000 ? 0xee : 0);
		TEST_ROW_EQ(i, s.cluster_barrier, rows[i].version >= 120500 ? 0xff : 0);
		TEST_ROW_EQ(i, s.stopped, rows[i].stopped);
		TEST_ROW_EQ(i, s.trap_id, rows[i].trap_id);
		TEST_ROW_EQ(i, read_planted(rows[i].version, &c, &plant, 32, &s), 0);
		TEST_ROW_EQ(i, s.exec, 0x33333333);
	}
}

/* Byte 0x80 of the block of hardware registers, on gfx12.5; others have no room for them. */
static void only_gfx12_5_has_named_barriers(void)
{
	const struct kfdtrap_wave_layout l = { .hwreg_offset = 4096 };

	for (size_t i = 0; i < TEST_COUNT(generations); i++) {
		uint32_t offset = 7;
		bool has = generations[i] == 120500;

		TEST_ROW_EQ(i, kfdtrap_wave_named_barriers_find(kfdtrap_wave_arch_find(generations[i]), &l, &offset),
			    has);
		TEST_ROW_EQ(i, offset, has ? 4096 + 0x80 : 7);
	}
}

/* Six bits of MODE are saved above the 57 bits of the address. */
static void gfx12_5_has_banks_above_its_pc(void)
{
	const struct plant p = { .hwreg = { [1] = 0x2220, [2] = 0x7fff1111 } };
	struct kfdtrap_wave_state s;

	TEST_EQ(read_planted(120500, &all_valid, &p, 32, &s), KFDTRAP_WAVE_OK);
	TEST_EQ(s.pc, 0x1ff111100002220);
	TEST_EQ(read_planted(120000, &all_valid, &p, 32, &s), KFDTRAP_WAVE_OK);
	TEST_EQ(s.pc, 0x7fff111100002220);
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

/* Where no launch clears what other waves left, only a halted wave was stopped. */
static void what_other_waves_left_is_not_believed(void)
{
	static const struct {
		uint32_t r_version, status, ttmp6;
		bool stopped;
		uint32_t trap_id;
	} rows[] = {
		{ 9, 0x10041, 0x42000000, false, 0 },  { 9, 0x12041, 0x42000000, true, 1 },
		{ 9, 0x12041, 0x82000000, false, 0 },  { 10, 0x10041, 0x42000000, false, 0 },
		{ 10, 0x12041, 0x42000000, false, 0 }, { 10, 0x52041, 0xc2000000, true, 1 },
		{ 10, 0x52041, 0x82000000, false, 0 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct kfdtrap_wave_context c = { .r_version = rows[i].r_version };
		struct plant p = { .hwreg = { [1] = 0x1000, [5] = rows[i].status },
				   .ttmp = { [4] = 7, [6] = rows[i].ttmp6, [7] = 0x2000 } };
		struct kfdtrap_wave_state s;

		TEST_ROW_EQ(i, read_planted(90010, &c, &p, 64, &s), 0);
		TEST_ROW_EQ(i, s.stopped, rows[i].stopped);
		TEST_ROW_EQ(i, s.trap_id, rows[i].trap_id);
		TEST_ROW_EQ(i, s.pc, rows[i].stopped ? 0x2000 : 0x1000);
		TEST_ROW_EQ(i, s.halted, !rows[i].stopped && rows[i].status & 0x2000);
		TEST_ROW_EQ(i, s.valid, 0);
		TEST_ROW_EQ(i, s.wave_id, 0);
	}
}

/* Which of packet and workgroup can be believed: row by row of the rules in the header. */
static void dispatch_fields_need_setup(void)
{
	static const struct {
		uint32_t version, ttmp_setup, debug_prop, r_version, ttmp6, ttmp8, ttmp11;
		uint32_t valid;
	} rows[] = {
		{ 90000, 0, 0, 11, 0, 0, 0, 0 },
		{ 90000, 1, 0, 11, 0, 0, 0, 0x1f },
		{ 90000, 0, 0x400, 11, 0, 0, 0, 0x1f },
		{ 90000, 0, 0xbff, 11, 0, 0, 0, 0 },
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

TEST_SUITE(kfdtrap_wave_state, TEST(each_generation_has_its_state),
	   TEST(only_gfx12_5_has_named_barriers), TEST(gfx12_5_has_banks_above_its_pc), TEST(gfx12_reads_ttmp8),
	   TEST(halt_is_the_programs_own), TEST(dispatch_fields_need_setup),
	   TEST(what_other_waves_left_is_not_believed),
	   TEST(flags_become_stop_reasons), TEST(traps_become_stop_reasons),
	   TEST(crooked_pc_and_foreign_group_are_named));
