/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/keep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void drop_oldest(struct keep *k)
{
	k->bytes -= k->items[0].size;
	free(k->items[0].text);
	k->n--;
	memmove(k->items, k->items + 1, k->n * sizeof(k->items[0]));
}

static void drop_late(struct keep *k, uint64_t now_ns)
{
	while (k->n && k->items[0].until_ns <= now_ns)
		drop_oldest(k);
}

const struct kept *keep_add(struct keep *k, const struct kept *item, uint64_t now_ns)
{
	struct kept *kept;

	if (item->size > KEEP_BYTES_MAX) {
		free(item->text);
		return NULL;
	}
	drop_late(k, now_ns);
	while (k->n == KEEP_ITEMS || k->bytes + item->size > KEEP_BYTES_MAX)
		drop_oldest(k);
	kept = &k->items[k->n++];
	*kept = *item;
	kept->until_ns = now_ns + KEEP_MS * UINT64_C(1000000);
	snprintf(kept->name, sizeof(kept->name), "%c%" PRIu64, kept->tool ? 'c' : 's', ++k->last);
	k->bytes += kept->size;
	return kept;
}

const struct kept *keep_find(struct keep *k, const char *name, uint64_t now_ns)
{
	drop_late(k, now_ns);
	for (size_t i = 0; i < k->n; i++)
		if (!strcmp(k->items[i].name, name))
			return &k->items[i];
	return NULL;
}

void keep_deinit(struct keep *k)
{
	while (k->n)
		drop_oldest(k);
}
