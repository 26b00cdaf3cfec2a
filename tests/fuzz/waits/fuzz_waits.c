/* SPDX-License-Identifier: MIT */
/* Packets, code and saved registers, all of which the target writes. */
#include <string.h>

#include "fuzzlib.h"
#include "waits/barrier.h"
#include "waits/grid.h"
#include "waits/packet.h"
#include "waits/poll.h"

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

static void look_at_packet(const uint8_t *data, size_t size)
{
	struct waits_signal s[SYMBOLS_AQL_DEPENDENCIES] = { 0 };
	struct symbols_aql_packet p;
	enum waits_packet state;
	uint32_t open;

	if (symbols_aql_decode(data, size, &p) < 0)
		return;
	for (size_t i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++)
		s[i] = (struct waits_signal){ (int64_t)(data[i] & 3), data[i + 5] & 1 };
	state = waits_packet_state(&p, s, &open);
	check(open < 1u << SYMBOLS_AQL_DEPENDENCIES);
	check((open != 0) == (state == WAITS_PACKET_ALL || state == WAITS_PACKET_ANY || state == WAITS_PACKET_VALUE));
	for (unsigned i = 0; i < SYMBOLS_AQL_DEPENDENCIES; i++)
		check(!(open >> i & 1) || (p.dependencies[i] && s[i].known));
}

static bool any_register(void *ctx, bool is_vector, unsigned int reg, unsigned int lane, uint32_t *ret)
{
	(void)ctx;
	check(reg < (is_vector ? 257 : 129));
	*ret = reg * 0x01010101u + lane;
	return reg < (is_vector ? 256 : 128);
}

/* Code at which a wave is, all offsets within it. */
static void look_at_code(const uint8_t *data, size_t size)
{
	for (int f = 0; f <= WAITS_FAMILY_COUNT; f++)
		for (size_t at = 0; at < size && at < 64; at++) {
			struct waits_poll p;
			struct waits_word w;

			if (waits_poll_find((enum waits_family)f, data, size, at, &p) < 0)
				continue;
			check(p.begin <= at && at < p.end && p.end <= size && p.load >= p.begin && p.load < p.end);
			check(p.end - p.begin <= 2 * WAITS_POLL_REACH && (p.bytes == 4 || p.bytes == 8));
			check(p.op < WAITS_COMPARE_COUNT && p.with.kind != WAITS_OPERAND_NONE);
			if (waits_poll_word(&p, any_register, NULL, 5, &w) == 0)
				check(w.op < WAITS_COMPARE_COUNT && w.bytes == p.bytes);
		}
}

/* The states of 16 named barriers. */
static void look_at_named(const uint8_t *data, size_t size)
{
	struct waits_barrier_state s = { 0 };
	uint32_t words[WAITS_NAMED_BARRIERS], number = 0;

	if (size < sizeof(words))
		return;
	memcpy(words, data, sizeof(words));
	if (waits_named_find(words, &number, &s) == 0)
		check(number && number <= WAITS_NAMED_BARRIERS && s.valid && s.members > s.signals);
}

/* At a named barrier as many are missing as its counts say, be they elsewhere, waiting or ended; without them, one. */
static bool is_missing_sound(const struct waits_block *b, const struct waits_missing *m)
{
	const struct waits_barrier_state *s = &b->state;

	if (b->which != WAITS_BARRIER_NAMED)
		return m->missing && m->missing <= b->seen - b->waiting;
	return m->missing == (b->same_words && s->valid && s->signals < s->members ? s->members - s->signals : 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct waits_block block = { 0 };
	struct waits_at_barrier b;
	struct waits_missing m;
	struct waits_saved s = { 0 };
	struct waits_grid g;

	look_at_packet(data, size);
	look_at_named(data, size);
	look_at_code(data, size);
	if (waits_grid_read(data, size, &g) == 0)
		check(size >= WAITS_GRID_BYTES && g.expects && g.has <= g.expects && g.expects <= WAITS_GRID_MAX &&
		      g.generation <= 0xffff);
	for (int f = 0; f <= WAITS_FAMILY_COUNT; f++) {
		struct waits_instruction i;

		if (waits_instruction_read((enum waits_family)f, data, size, &i) == 0)
			check(i.op < WAITS_OP_COUNT && (!i.op || waits_op_name(i.op)) && !i.name == !i.op);
		if (size < sizeof(s) + sizeof(block))
			continue;
		memcpy(&s, data, sizeof(s));
		s.n_code &= 12;
		if (waits_at_barrier((enum waits_family)f, &s, &b) == 0)
			check(b.which < WAITS_BARRIER_COUNT && (!b.found || b.op));
		block.family = (enum waits_family)f;
		memcpy(&block.expects, data + sizeof(s), 12);
		block.state = waits_barrier_state_read(s.barrier);
		block.same_words = data[0] & 1;
		block.which = data[0] >> 1 & 1 ? WAITS_BARRIER_NAMED : WAITS_BARRIER_BLOCK;
		if (waits_block_missing(&block, &m) == 0)
			check(is_missing_sound(&block, &m));
	}
	return 0;
}
