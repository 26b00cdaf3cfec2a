/* SPDX-License-Identifier: MIT */
/* Any bytes are code with loops that poll memory, or without, and of a barrier of the grid or of something else. */
#include <errno.h>

#include "fuzzlib.h"
#include "waits/grid.h"
#include "waits/sass.h"
#include "waits/sass_poll.h"

static void check(bool good)
{
	if (!good)
		__builtin_trap();
}

/* Operands hold what makes the most of them. */
static bool get(const void *ctx, const struct waits_sass_operand *o, uint32_t *ret)
{
	(void)ctx;
	check(o->kind == WAITS_SASS_REGISTER ? o->value < 255 : o->kind == WAITS_SASS_UNIFORM ? o->value < 63 :
	      o->kind == WAITS_SASS_BANK && o->value < 1 << 16);
	*ret = o->value * 0x9e3779b9;
	return true;
}

static void search(const char *arch, const uint8_t *data, size_t size)
{
	struct waits_sass_poll p;
	size_t last = 0;

	for (size_t at = 0; waits_sass_poll_find(arch, data, size, &at, &p) == 0; at += WAITS_SASS_BYTES) {
		struct waits_word w;

		check(at % WAITS_SASS_BYTES == 0 && p.end > at && p.end - at <= 2 * WAITS_SASS_BYTES && p.end <= size);
		check(p.begin <= p.load && p.load < at && p.end - p.begin <= WAITS_SASS_POLL_REACH);
		/* No loop lies in another one. */
		check(p.begin >= last);
		last = p.end;
		if (waits_sass_poll_word(&p, get, NULL, &w) < 0)
			continue;
		check((w.bytes == 1 || w.bytes == 2 || w.bytes == 4 || w.bytes == 8) && w.op < WAITS_COMPARE_COUNT);
		check(w.bytes == 8 || !(w.mask >> 8 * w.bytes));
		(void)waits_word_holds(&w, w.with);
		/* Such a loop waits for the highest bit of 32. */
		if (waits_grid_is_loop(arch, data, size, &p))
			check(w.bytes == 4 && w.op == WAITS_COMPARE_NE && w.mask == UINT32_C(1) << 31);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const archs[] = { "sm_80", "sm_90", "sm_121", "sm_75", "sm_70", "" };

	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		search(archs[i], data, size);
	return 0;
}
