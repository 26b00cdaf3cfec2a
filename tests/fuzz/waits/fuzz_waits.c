/* SPDX-License-Identifier: MIT */
/* Packets, code and saved registers, all of which the target writes. */
#include <string.h>

#include "fuzzlib.h"
#include "waits/barrier.h"
#include "waits/packet.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct waits_block block = { 0 };
	struct waits_at_barrier b;
	struct waits_missing m;
	struct waits_saved s = { 0 };

	look_at_packet(data, size);
	for (int f = 0; f <= WAITS_FAMILY_COUNT; f++) {
		struct waits_instruction i;

		if (waits_instruction_read((enum waits_family)f, data, size, &i) == 0)
			check(i.op < WAITS_OP_COUNT && (!i.op || waits_op_name(i.op)));
		if (size < sizeof(s) + sizeof(block))
			continue;
		memcpy(&s, data, sizeof(s));
		s.n_code &= 12;
		if (waits_at_barrier((enum waits_family)f, &s, &b) == 0)
			check(!(b.waits && b.other) && (!b.found || b.op));
		block.family = (enum waits_family)f;
		memcpy(&block.expects, data + sizeof(s), 12);
		block.state = waits_barrier_state_read(s.barrier);
		block.same_words = data[0] & 1;
		if (waits_block_missing(&block, &m) == 0)
			check(m.missing && m.missing <= block.seen - block.waiting);
	}
	return 0;
}
