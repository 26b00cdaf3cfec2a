/* SPDX-License-Identifier: MIT */
#include "waits/grid.h"

#include <errno.h>

#include "base/reader.h"

/* Behind the word that is polled there is another one, and then the number of workgroups. */
#define GROUPS 40u

bool waits_grid_is_word(const struct waits_word *w)
{
	return w->bytes == 4 && w->op == WAITS_COMPARE_NE && w->mask == 0xffff0000;
}

int waits_grid_read(const void *record, size_t size, struct waits_grid *ret)
{
	struct reader r;
	uint32_t word;

	reader_init(&r, record, size);
	reader_skip(&r, WAITS_GRID_WORD);
	word = reader_u32(&r);
	reader_skip(&r, GROUPS - WAITS_GRID_WORD - 4);
	*ret = (struct waits_grid){ .has = word & 0xffff, .expects = reader_u32(&r), .generation = word >> 16 };
	if (reader_is_bad(&r) || !ret->expects || ret->expects > WAITS_GRID_MAX || ret->has > ret->expects)
		return -EINVAL;
	return 0;
}
