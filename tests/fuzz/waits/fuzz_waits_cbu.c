/* SPDX-License-Identifier: MIT */
/* Any words are the state of a warp, or none; and whoever is waited for is there, and not among those who wait. */
#include <errno.h>

#include "base/reader.h"
#include "fuzzlib.h"
#include "waits/cbu.h"

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t words[WAITS_CBU_WORDS] = { 0 }, lanes, blocked = 0;
	struct waits_cbu c;
	struct reader r;
	size_t n = 0;
	int read;

	reader_init(&r, data, size);
	lanes = reader_u32(&r);
	for (; n < WAITS_CBU_WORDS && reader_left(&r) >= sizeof(words[0]); n++)
		words[n] = reader_u32(&r);
	read = waits_cbu_read(words, n, lanes, &c);
	check((read == -EINVAL) == (n != WAITS_CBU_WORDS) && (read == 0 || read == -EINVAL || read == -EBADMSG));
	if (read < 0)
		return 0;
	for (uint32_t i = 0; i < WAITS_CBU_BARRIERS; i++) {
		check(!(c.blocked[i] & blocked) && !(c.blocked[i] & ~lanes));
		check(!(c.missing[i] & ~lanes) && !(c.missing[i] & c.blocked[i]) && (c.blocked[i] || !c.missing[i]));
		check(!c.blocked[i] || waits_cbu_barrier_of(&c, c.blocked[i]) == i);
		blocked |= c.blocked[i];
	}
	check(!(c.in_collective & blocked) && !(c.in_collective & ~c.collective) && !(c.in_collective & ~lanes));
	blocked |= c.in_collective;
	check(!(c.ready & blocked) && !((c.ready | blocked) & ~lanes) && c.lanes == lanes);
	return 0;
}
