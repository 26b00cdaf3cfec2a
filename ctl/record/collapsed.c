/* SPDX-License-Identifier: MIT */
/* The text that flame graph tools read: a line for each stack, frames joined by semicolons, and a count. */
#include <inttypes.h>
#include <string.h>

#include "ctl/record/recording.h"
#include "ctl/terminal/text.h"

/* What a capture counts in this file, where numbers are whole. */
#define COUNT 1000

/* A semicolon would begin another frame. */
static void put_name(struct out *o, const char *name)
{
	size_t from = o->size;

	text_escape(o, name, strlen(name));
	for (size_t i = from; !out_error(o) && i < o->size; i++)
		if (o->data[i] == ';')
			o->data[i] = ',';
}

int recording_write_collapsed(struct out *o, const struct recording *r)
{
	struct rpc_arena a;
	const struct recording_stack *const *list;
	int k;

	rpc_arena_init(&a, 0);
	k = recording_sorted(r, &a, &list);
	for (size_t i = 0; k == 0 && i < r->n_stacks; i++) {
		uint64_t count = (list[i]->weight * COUNT + RECORDING_CAPTURE / 2) / RECORDING_CAPTURE;

		for (size_t f = 0; count && f < list[i]->depth; f++) {
			out_str(o, f ? ";" : "");
			put_name(o, list[i]->frames[f]->name);
		}
		if (count)
			out_fmt(o, " %" PRIu64 "\n", count);
	}
	rpc_arena_deinit(&a);
	return k < 0 ? k : out_error(o);
}
