/* SPDX-License-Identifier: MIT */
/* First byte: which parser of the store; the rest is its text. */
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "fuzzlib.h"
#include "store/internal.h"

static void meta(const char *text, size_t size)
{
	struct store_meta m, back;
	struct out o;

	if (store_meta_decode(text, size, &m) < 0)
		return;
	/* What was understood can be said again. */
	out_init(&o, 0);
	store_meta_encode(&o, &m);
	if (o.size <= STORE_META_MAX && store_meta_decode(o.data, o.size, &back) < 0)
		abort();
	out_deinit(&o);
}

static void name(const char *text)
{
	struct name n;
	char file[NAME_MAX + 1];

	name_parse(text, &n);
	if (n.kind == NAME_FOREIGN)
		return;
	name_file(n.facts.name, n.kind, n.unfinished, file);
	if (strcmp(file, text))
		abort();
}

static void match(const char *text)
{
	const struct store_meta m = { .pid = 1, .comm = "a" };
	const struct store_filter f = { .matches = &text, .n_matches = 1 };

	if (store_match_check(text) == 0)
		(void)store_match(&f, &m);
}

static void find_in_index(char *text, size_t size)
{
	static const struct store_item item = {
		.name = "20240229T235959-00c0ffee.u0.p1.a..0000000000000000.", .record_size = 1
	};
	const struct store_list l = { .index = text, .index_size = size };
	struct store_meta m;

	(void)index_find(&l, &item, &m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		meta(text, size - 1);
		break;
	case 1:
		name(text);
		break;
	case 2:
		match(text);
		break;
	default:
		find_in_index(text, size - 1);
	}
	free(text);
	return 0;
}
