/* SPDX-License-Identifier: MIT */
#include "testlib.h"
#include "waits/barrier.h"
#include "waits/packet.h"

static enum waits_op op_of(uint32_t target, uint32_t word)
{
	struct waits_instruction i = { .op = WAITS_OP_COUNT };

	waits_instruction_read(waits_family_of(target), &word, sizeof(word), &i);
	return i.op;
}

/* The same words mean something else in another generation. */
static void words_need_their_target(void)
{
	static const struct {
		uint32_t target, word;
		enum waits_op op;
	} rows[] = {
		{ 90010, 0xbf8a0000, WAITS_OP_BARRIER },     { 90402, 0xbf8a0000, WAITS_OP_BARRIER },
		{ 100300, 0xbf8a0000, WAITS_OP_BARRIER },    { 110000, 0xbf8a0000, WAITS_OP_OTHER },
		{ 110000, 0xbfbd0000, WAITS_OP_BARRIER },    { 90010, 0xbfbd0000, WAITS_OP_OTHER },
		{ 120000, 0xbfbd0000, WAITS_OP_OTHER },	     { 120000, 0xbf94ffff, WAITS_OP_BARRIER_WAIT },
		{ 120000, 0xbe804ec1, WAITS_OP_BARRIER_SIGNAL }, { 120000, 0xbe804fc1, WAITS_OP_BARRIER_SIGNAL },
		{ 110000, 0xbf830001, WAITS_OP_SLEEP },	     { 90010, 0xbf8e0001, WAITS_OP_SLEEP },
		{ 90010, 0xbf890003, WAITS_OP_BRANCH_EXECNZ }, { 110000, 0xbf8903f7, WAITS_OP_WAIT_MEMORY },
		{ 90010, 0xbf820000, WAITS_OP_BRANCH },	     { 110000, 0xbf820000, WAITS_OP_HALT },
		{ 100100, 0xbbfd0000, WAITS_OP_WAIT_MEMORY }, { 90010, 0xbbfd0000, WAITS_OP_OTHER },
		{ 90010, 0x7e000280, WAITS_OP_OTHER },
	};
	struct waits_instruction i;

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
		TEST_ROW_EQ(k, op_of(rows[k].target, rows[k].word), rows[k].op);
	TEST_EQ(waits_family_of(80003), WAITS_FAMILY_COUNT);
	TEST_EQ(waits_family_of(130000), WAITS_FAMILY_COUNT);
	TEST_EQ(waits_instruction_read(WAITS_FAMILY_COUNT, &rows, 4, &i), -ENOTSUP);
	TEST_EQ(waits_instruction_read(WAITS_GFX9, &rows, 3, &i), -EINVAL);
}

/* Instructions that do the same have names of their own, and each generation its own ones. */
static void instructions_are_named(void)
{
	static const struct {
		uint32_t target, word;
		enum waits_op op;
		const char *name;
	} rows[] = {
		{ 120000, 0xbf830001, WAITS_OP_SLEEP, "s_sleep" },
		{ 120000, 0xbe805801, WAITS_OP_SLEEP, "s_sleep_var" },
		{ 120500, 0xbf840001, WAITS_OP_SLEEP, "s_monitor_sleep" },
		{ 90402, 0xbf8c0f70, WAITS_OP_WAIT_MEMORY, "s_waitcnt" },
		{ 100300, 0xbbfd0000, WAITS_OP_WAIT_MEMORY, "s_waitcnt_vscnt" },
		{ 120000, 0xbfc00000, WAITS_OP_WAIT_MEMORY, "s_wait_loadcnt" },
		{ 120000, 0xbfc20000, WAITS_OP_WAIT_MEMORY, "s_wait_samplecnt" },
		{ 120500, 0xbfcb0000, WAITS_OP_WAIT_MEMORY, "s_wait_tensorcnt" },
		{ 90010, 0xbf8a0000, WAITS_OP_BARRIER, "s_barrier" },
		{ 120500, 0xbfc20000, WAITS_OP_OTHER, NULL },
		{ 120000, 0xbf840001, WAITS_OP_OTHER, NULL },
		/* Exports are no loads. */
		{ 120000, 0xbfc40000, WAITS_OP_OTHER, NULL },
	};
	struct waits_instruction i;

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		waits_instruction_read(waits_family_of(rows[k].target), &rows[k].word, 4, &i);
		TEST_ROW_EQ(k, i.op, rows[k].op);
		TEST_ROW_EQ(k, i.name && rows[k].name ? !strcmp(i.name, rows[k].name) : i.name == rows[k].name, true);
	}
}

static void branches_lead_back(void)
{
	uint32_t word = 0xbf87fffb; /* s_cbranch_vccnz -5 */
	struct waits_instruction i;

	TEST_EQ_FATAL(waits_instruction_read(WAITS_GFX9, &word, 4, &i), 0);
	TEST_EQ(i.op, WAITS_OP_BRANCH_VCCNZ);
	TEST_EQ(waits_op_branches(i.op), true);
	TEST_EQ(waits_branch_target(&i, 0x1000), 0x1000 + 4 - 20);
	TEST_EQ(strcmp(waits_op_name(i.op), "s_cbranch_vccnz"), 0);
}

static struct waits_saved saved(uint32_t status, uint32_t before, uint32_t at)
{
	struct waits_saved s = { .status = status, .n_code = 8 };

	memcpy(s.code, &before, 4);
	memcpy(s.code + 4, &at, 4);
	return s;
}

/* STATUS[12] and the instruction, at pc or in front of it, prove it; one of them alone does not. */
static void the_bit_and_the_instruction_prove_it(void)
{
	static const struct {
		enum waits_family family;
		uint32_t barrier;
	} rows[] = { { WAITS_GFX9, 0xbf8a0000 }, { WAITS_GFX10, 0xbf8a0000 }, { WAITS_GFX11, 0xbfbd0000 } };
	struct waits_at_barrier b;
	struct waits_saved s;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s = saved(1 << 12, 0xbf800000, rows[i].barrier);
		TEST_EQ_FATAL(waits_at_barrier(rows[i].family, &s, &b), 0);
		TEST_ROW_EQ(i, b.waits && b.found && b.at_pc, true);
		TEST_ROW_EQ(i, b.confidence, WAITS_PROVEN);
		s = saved(1 << 12, rows[i].barrier, 0xbf800000);
		waits_at_barrier(rows[i].family, &s, &b);
		TEST_ROW_EQ(i, b.waits && b.found && !b.at_pc, true);
		TEST_ROW_EQ(i, b.confidence, WAITS_PROVEN);
		s = saved(1 << 12, 0xbf800000, 0xbf800000);
		waits_at_barrier(rows[i].family, &s, &b);
		TEST_ROW_EQ(i, b.waits && !b.found, true);
		TEST_ROW_EQ(i, b.confidence, WAITS_INFERRED);
		s = saved(0, 0xbf800000, rows[i].barrier);
		waits_at_barrier(rows[i].family, &s, &b);
		TEST_ROW_EQ(i, b.waits, true);
		TEST_ROW_EQ(i, b.confidence, WAITS_INFERRED);
		s = saved(0, rows[i].barrier, 0xbf800000);
		waits_at_barrier(rows[i].family, &s, &b);
		TEST_ROW_EQ(i, b.waits, false);
		s = saved(1 << 12, 0, 0);
		s.n_code = 0;
		waits_at_barrier(rows[i].family, &s, &b);
		TEST_ROW_EQ(i, b.waits, true);
		TEST_ROW_EQ(i, b.confidence, WAITS_INFERRED);
	}
	TEST_EQ(waits_at_barrier(WAITS_FAMILY_COUNT, &s, &b), -ENOTSUP);
}

/* From gfx12 on no register has the bit: the place, and that the barrier is not complete. */
static void split_barriers_are_told_by_their_place(void)
{
	struct waits_saved s = saved(1 << 12, 0xbe804ec1, 0xbf94ffff);
	struct waits_at_barrier b;

	TEST_EQ_FATAL(waits_at_barrier(WAITS_GFX12, &s, &b), 0);
	TEST_EQ(b.waits && b.id == -1, true);
	TEST_EQ(b.confidence, WAITS_PROVEN);
	s.state_priv = 4;
	waits_at_barrier(WAITS_GFX12, &s, &b);
	TEST_EQ(b.waits, false);
	s = saved(0, 0xbf94ffff, 0xbf800000);
	waits_at_barrier(WAITS_GFX12, &s, &b);
	TEST_EQ(b.waits, false);
	s.n_code = 0;
	waits_at_barrier(WAITS_GFX12, &s, &b);
	TEST_EQ(b.confidence, WAITS_UNKNOWN);
}

/* gfx12.5 has more of them, each with a bit of its own that says that the wave is through. */
static void barriers_are_told_apart(void)
{
	static const struct {
		uint32_t code, complete;
		enum waits_barrier which;
		enum waits_confidence confidence;
	} rows[] = {
		{ 0xbf94ffff, 1 << 2, WAITS_BARRIER_BLOCK, WAITS_PROVEN },
		{ 0xbf940001, 1 << 3, WAITS_BARRIER_NAMED, WAITS_INFERRED },
		{ 0xbf940010, 1 << 3, WAITS_BARRIER_NAMED, WAITS_INFERRED },
		{ 0xbf94fffd, 1 << 16, WAITS_BARRIER_CLUSTER, WAITS_PROVEN },
	};
	/* Number 0 is no barrier, 17 there is none, and those of the trap handler are not for the program. */
	static const uint32_t never[] = { 0xbf940000, 0xbf940011, 0xbf94fffe, 0xbf94fffc, 0xbf948000, 0xbf947fff };
	struct waits_at_barrier b;
	struct waits_saved s;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		s = saved(0, 0xbf800000, rows[i].code);
		s.state_priv = ~rows[i].complete;
		/* Outside of a cluster there is none. */
		waits_at_barrier(WAITS_GFX12_5, &s, &b);
		TEST_ROW_EQ(i, b.waits, rows[i].which != WAITS_BARRIER_CLUSTER);
		s.cluster = 1;
		TEST_EQ_FATAL(waits_at_barrier(WAITS_GFX12_5, &s, &b), 0);
		TEST_ROW_EQ(i, b.waits, true);
		TEST_ROW_EQ(i, b.which, rows[i].which);
		TEST_ROW_EQ(i, b.confidence, rows[i].confidence);
		s.state_priv = rows[i].complete;
		waits_at_barrier(WAITS_GFX12_5, &s, &b);
		TEST_ROW_EQ(i, b.waits, false);
		s = saved(0, rows[i].code, 0xbf800000);
		waits_at_barrier(WAITS_GFX12_5, &s, &b);
		TEST_ROW_EQ(i, b.waits, false);
		s = saved(0, 0xbf800000, rows[i].code);
		waits_at_barrier(WAITS_GFX12, &s, &b);
		TEST_ROW_EQ(i, b.waits, rows[i].which == WAITS_BARRIER_BLOCK);
	}
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		s = saved(0, 0xbf800000, never[i]);
		waits_at_barrier(WAITS_GFX12_5, &s, &b);
		TEST_ROW_EQ(i, b.waits, false);
	}
}

#define STATE(members, signals) (1 | (members) << 4 | (signals) << 16)

/* The number in the instruction says nothing: one barrier has to be the only one that is not complete. */
static void the_named_barrier_is_the_one_that_is_open(void)
{
	uint32_t words[WAITS_NAMED_BARRIERS] = { [2] = STATE(4, 3) }, number = 0;
	struct waits_barrier_state s;

	TEST_EQ_FATAL(waits_named_find(words, &number, &s), 0);
	TEST_EQ(number, 3);
	TEST_EQ(s.members == 4 && s.signals == 3, true);
	/* Complete, or without members: nobody waits there. */
	words[0] = STATE(2, 2);
	words[1] = STATE(0, 0);
	words[3] = STATE(4, 0) & ~1u;
	TEST_EQ(waits_named_find(words, &number, &s), 0);
	/* Where there are four, higher numbers are the same barriers. */
	for (uint32_t i = 4; i < WAITS_NAMED_BARRIERS; i++)
		words[i] = words[i - 4];
	TEST_EQ(waits_named_find(words, &number, &s), 0);
	TEST_EQ(number, 3);
	/* Two that are alike are no copies of each other where others are not. */
	words[7] = 0;
	TEST_EQ(waits_named_find(words, &number, &s), -ENOTUNIQ);
	words[7] = words[3];
	words[10] = STATE(4, 2);
	TEST_EQ(waits_named_find(words, &number, &s), -ENOTUNIQ);
	words[10] = words[2];
	words[8] = words[2];
	TEST_EQ(waits_named_find(words, &number, &s), -ENOTUNIQ);
	TEST_EQ(number, 3);
	memset(words, 0, sizeof(words));
	TEST_EQ(waits_named_find(words, &number, &s), -ENODATA);
	memset(words, 0xff, sizeof(words));
	TEST_EQ(waits_named_find(words, &number, &s), -ENODATA);
}

/* Any wave may come to a named barrier: all is inferred, and with more elsewhere than lack, they may be it. */
static void named_barriers_have_candidates(void)
{
	struct waits_block b = { .family = WAITS_GFX12_5, .which = WAITS_BARRIER_NAMED, .expects = 8, .seen = 8,
				 .waiting = 6, .same_words = true, .state = waits_barrier_state_read(STATE(8, 6)) };
	struct waits_missing m;

	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 2 && !m.candidates, true);
	TEST_EQ(m.confidence, WAITS_INFERRED);
	/* Waves that only wait: more of them than have come. */
	b.state = waits_barrier_state_read(STATE(1, 0));
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && m.candidates, true);
	/* More lack than were ever there, or fewer than are left with those that have ended: it may be any of them. */
	b.state = waits_barrier_state_read(STATE(10, 6));
	b.seen = 7;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 4 && m.candidates && m.ended == 1, true);
	b.state = waits_barrier_state_read(STATE(7, 6));
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && m.candidates && m.ended == 1, true);
	/* Those that have ended have not left it: with whoever is there, they are all. */
	b.state = waits_barrier_state_read(STATE(8, 6));
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 2 && !m.candidates && m.ended == 1, true);
	b.seen = 6;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 2 && !m.candidates && m.ended == 2, true);
	b.seen = 8;
	b.same_words = false;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && m.candidates, true);
	TEST_EQ(m.confidence, WAITS_INFERRED);
	b.waiting = 7;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && m.candidates, true);
	b.waiting = 8;
	TEST_EQ(waits_block_missing(&b, &m), -ENODATA);
}

static void counts_who_is_missing(void)
{
	struct waits_block b = { .family = WAITS_GFX9, .expects = 4, .seen = 4, .waiting = 3 };
	struct waits_missing m;

	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && !m.candidates && !m.ended, true);
	TEST_EQ(m.confidence, WAITS_PROVEN);
	/* A wave that has ended is not waited for: the one that is elsewhere is. */
	b.seen = 3;
	b.waiting = 2;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && m.ended == 1, true);
	b.waiting = 3;
	TEST_EQ(waits_block_missing(&b, &m), -ENODATA);
	b.waiting = 9;
	TEST_EQ(waits_block_missing(&b, &m), -ENODATA);
}

/* A wave that has signalled may still work: the hardware's counts say how many have not. */
static void split_barriers_have_candidates(void)
{
	struct waits_block b = { .family = WAITS_GFX12, .expects = 4, .seen = 4, .waiting = 2, .same_words = true,
				 .state = waits_barrier_state_read(1 | 4 << 4 | 2 << 16) };
	struct waits_missing m;

	TEST_EQ(b.state.members == 4 && b.state.signals == 2, true);
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 2 && !m.candidates, true);
	TEST_EQ(m.confidence, WAITS_PROVEN);
	b.state.signals = 3;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing == 1 && m.candidates, true);
	TEST_EQ(m.confidence, WAITS_INFERRED);
	b.same_words = false;
	TEST_EQ_FATAL(waits_block_missing(&b, &m), 0);
	TEST_EQ(m.missing, 2);
	TEST_EQ(m.confidence, WAITS_INFERRED);
}

static void packets_wait_for_signals(void)
{
	struct symbols_aql_packet p = { .type = SYMBOLS_AQL_BARRIER_AND, .dependencies = { 8, 0, 16 } };
	struct waits_signal s[SYMBOLS_AQL_DEPENDENCIES] = { { 0, true }, { 7, true }, { 1, true } };
	uint32_t open;

	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_ALL);
	TEST_EQ(open, 4);
	s[2].value = 0;
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_GOES_ON);
	s[2].known = false;
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_UNKNOWN);
	s[0].value = -1;
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_ALL);
	TEST_EQ(open, 1);
	p.type = SYMBOLS_AQL_BARRIER_OR;
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_UNKNOWN);
	s[2] = (struct waits_signal){ 2, true };
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_ANY);
	TEST_EQ(open, 5);
	s[2].value = 0;
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_GOES_ON);
	p.type = SYMBOLS_AQL_KERNEL_DISPATCH;
	TEST_EQ(waits_packet_state(&p, s, &open), WAITS_PACKET_GOES_ON);
}

static void packets_wait_for_a_value(void)
{
	static const struct {
		enum symbols_aql_condition condition;
		int64_t value;
		enum waits_packet state;
	} rows[] = {
		{ SYMBOLS_AQL_EQ, 5, WAITS_PACKET_GOES_ON },  { SYMBOLS_AQL_EQ, 4, WAITS_PACKET_VALUE },
		{ SYMBOLS_AQL_NE, 5, WAITS_PACKET_VALUE },    { SYMBOLS_AQL_NE, 4, WAITS_PACKET_GOES_ON },
		{ SYMBOLS_AQL_LT, 6, WAITS_PACKET_VALUE },    { SYMBOLS_AQL_LT, 4, WAITS_PACKET_GOES_ON },
		{ SYMBOLS_AQL_GTE, 4, WAITS_PACKET_VALUE },   { SYMBOLS_AQL_GTE, 5, WAITS_PACKET_GOES_ON },
		{ SYMBOLS_AQL_CONDITION_COUNT, 5, WAITS_PACKET_UNKNOWN },
		/* Masked: 0x105 is 5. */
		{ SYMBOLS_AQL_EQ, 0x105, WAITS_PACKET_GOES_ON },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct symbols_aql_packet p = { .type = SYMBOLS_AQL_BARRIER_VALUE, .dependencies = { 8 }, .value = 5,
						.mask = 0xff, .condition = rows[i].condition };
		struct waits_signal s[SYMBOLS_AQL_DEPENDENCIES] = { { rows[i].value, true } };
		uint32_t open;

		TEST_ROW_EQ(i, waits_packet_state(&p, s, &open), rows[i].state);
		TEST_ROW_EQ(i, open, rows[i].state == WAITS_PACKET_VALUE);
	}
}

TEST_SUITE(waits, TEST(words_need_their_target), TEST(instructions_are_named), TEST(branches_lead_back),
	  TEST(the_bit_and_the_instruction_prove_it),
	  TEST(split_barriers_are_told_by_their_place), TEST(barriers_are_told_apart),
	  TEST(the_named_barrier_is_the_one_that_is_open), TEST(counts_who_is_missing),
	  TEST(split_barriers_have_candidates), TEST(named_barriers_have_candidates),
	  TEST(packets_wait_for_signals), TEST(packets_wait_for_a_value));
