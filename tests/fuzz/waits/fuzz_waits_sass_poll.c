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

static void look_at_word(const char *arch, const uint8_t *data, size_t size, const struct waits_sass_poll *p)
{
	struct waits_word w;

	if (waits_sass_poll_word(p, get, NULL, &w) < 0)
		return;
	check((w.bytes == 1 || w.bytes == 2 || w.bytes == 4 || w.bytes == 8) && w.op < WAITS_COMPARE_COUNT);
	check(w.bytes == 8 || !(w.mask >> 8 * w.bytes));
	(void)waits_word_holds(&w, w.with);
	/* Such a loop waits for the highest bit of 32. */
	if (waits_grid_is_loop(arch, data, size, p))
		check(w.bytes == 4 && w.op == WAITS_COMPARE_NE && w.mask == UINT32_C(1) << 31);
}

static void search(const char *arch, const uint8_t *data, size_t size)
{
	struct waits_sass_polls all;
	size_t last = 0, to;

	for (size_t at = 0; waits_sass_back_find(arch, data, size, &at, &to) == 0; at += WAITS_SASS_BYTES)
		check(at % WAITS_SASS_BYTES == 0 && to <= at && size - at >= WAITS_SASS_BYTES);
	for (size_t at = 0; waits_sass_poll_find(arch, data, size, &at, &all) == 0; at += WAITS_SASS_BYTES) {
		const size_t begin = all.any[0].begin, end = all.any[0].end;

		check(at % WAITS_SASS_BYTES == 0 && end > at && end - at <= 2 * WAITS_SASS_BYTES && end <= size);
		check(end - begin <= WAITS_SASS_POLL_REACH && all.n && all.n <= WAITS_SASS_WORDS);
		/* No loop lies in another one. */
		check(begin >= last);
		last = end;
		for (uint8_t i = 0; i < all.n; i++) {
			const struct waits_sass_poll *p = &all.any[i];

			check(p->begin == begin && p->end == end && begin <= p->load && p->load < at);
			look_at_word(arch, data, size, p);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const archs[] = { "sm_80", "sm_90", "sm_121", "sm_75", "sm_70", "" };

	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++)
		search(archs[i], data, size);
	return 0;
}
