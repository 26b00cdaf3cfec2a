/* SPDX-License-Identifier: MIT */
#include "symbols/metadata/metadata.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbols/metadata/msgpack.h"

static const struct {
	const char *key;
	size_t offset;
} numbers[] = {
	{ ".group_segment_fixed_size", offsetof(struct symbols_kernel, group_segment_bytes) },
	{ ".private_segment_fixed_size", offsetof(struct symbols_kernel, private_segment_bytes) },
	{ ".kernarg_segment_size", offsetof(struct symbols_kernel, kernarg_segment_bytes) },
	{ ".sgpr_count", offsetof(struct symbols_kernel, sgprs) },
	{ ".vgpr_count", offsetof(struct symbols_kernel, vgprs) },
	{ ".agpr_count", offsetof(struct symbols_kernel, agprs) },
	{ ".wavefront_size", offsetof(struct symbols_kernel, wavefront_size) },
};

/* @param m  Stands behind the head of the value, in front of what is inside. */
static void set_member(const struct reader *m, struct symbols_kernel *k,
		       const struct msgpack_item *key, const struct msgpack_item *value)
{
	if (value->kind == MSGPACK_ARRAY && msgpack_is(key, ".args")) {
		k->arguments = m->data + m->pos;
		k->arguments_size = reader_left(m);
		k->n_arguments = value->n;
	}
	if (value->kind == MSGPACK_STRING && msgpack_is(key, ".name")) {
		k->name = (const char *)value->bytes;
		k->name_size = value->n;
	} else if (value->kind == MSGPACK_STRING && msgpack_is(key, ".symbol")) {
		k->symbol = (const char *)value->bytes;
		k->symbol_size = value->n;
	}
	/* UINT32_MAX itself stands for a number that is missing. */
	if (value->kind != MSGPACK_UINT || value->number >= UINT32_MAX)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (msgpack_is(key, numbers[i].key))
			*(uint32_t *)((char *)k + numbers[i].offset) = (uint32_t)value->number;
}

static bool next_pair(struct reader *m, struct msgpack_item *key, struct msgpack_item *value)
{
	if (!msgpack_next(m, key))
		return false;
	msgpack_skip_inside(m, key);
	return msgpack_next(m, value);
}

static bool read_kernel(struct reader *m, size_t n_pairs, struct symbols_kernel *k)
{
	struct msgpack_item key, value;

	*k = (struct symbols_kernel){
		.name = "",
		.symbol = "",
		.group_segment_bytes = UINT32_MAX,
		.private_segment_bytes = UINT32_MAX,
		.kernarg_segment_bytes = UINT32_MAX,
		.sgprs = UINT32_MAX,
		.vgprs = UINT32_MAX,
		.agprs = UINT32_MAX,
		.wavefront_size = UINT32_MAX,
	};
	while (n_pairs--) {
		if (!next_pair(m, &key, &value))
			return false;
		set_member(m, k, &key, &value);
		msgpack_skip_inside(m, &value);
	}
	return !reader_is_bad(m);
}

static int visit_kernels(struct reader *m, size_t n,
			 int (*visit)(void *arg, const struct symbols_kernel *k), void *arg)
{
	while (n--) {
		struct msgpack_item item;
		struct symbols_kernel k;
		int r;

		if (!msgpack_next(m, &item) || item.kind != MSGPACK_MAP ||
		    !read_kernel(m, item.n, &k))
			return -EBADMSG;
		r = visit(arg, &k);
		if (r)
			return r;
	}
	return 0;
}

int symbols_metadata_each(const void *note, size_t size,
			  int (*visit)(void *arg, const struct symbols_kernel *k), void *arg)
{
	struct msgpack_item root, key, value;
	struct reader m;

	reader_init(&m, note, size);
	if (!msgpack_next(&m, &root) || root.kind != MSGPACK_MAP)
		return -EBADMSG;
	for (size_t i = 0; i < root.n; i++) {
		if (!next_pair(&m, &key, &value))
			return -EBADMSG;
		if (value.kind == MSGPACK_ARRAY && msgpack_is(&key, "amdhsa.kernels"))
			return visit_kernels(&m, value.n, visit, arg);
		msgpack_skip_inside(&m, &value);
	}
	return reader_is_bad(&m) ? -EBADMSG : 0;
}

struct search {
	const char *symbol;
	size_t symbol_size;
	struct symbols_kernel *found;
};

static int compare(void *arg, const struct symbols_kernel *k)
{
	struct search *s = arg;

	if (k->symbol_size != s->symbol_size || memcmp(k->symbol, s->symbol, s->symbol_size))
		return 0;
	*s->found = *k;
	return 1;
}

int symbols_metadata_find(const void *note, size_t size, const char *symbol,
			  struct symbols_kernel *ret)
{
	struct symbols_kernel k;
	struct search s = { symbol, strlen(symbol), &k };
	int r = symbols_metadata_each(note, size, compare, &s);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret = k;
	return 0;
}

/* ------------------------------------------------------------------ arguments ---------------- */

static enum symbols_argument_kind kind_of(const struct msgpack_item *value)
{
	static const struct {
		const char *text;
		enum symbols_argument_kind kind;
	} kinds[] = {
		{ "by_value", SYMBOLS_ARGUMENT_BY_VALUE },
		{ "global_buffer", SYMBOLS_ARGUMENT_BUFFER },
		{ "dynamic_shared_pointer", SYMBOLS_ARGUMENT_LDS },
		{ "sampler", SYMBOLS_ARGUMENT_OBJECT },
		{ "image", SYMBOLS_ARGUMENT_OBJECT },
		{ "pipe", SYMBOLS_ARGUMENT_OBJECT },
		{ "queue", SYMBOLS_ARGUMENT_OBJECT },
	};
	static const char hidden[] = "hidden_";

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (msgpack_is(value, kinds[i].text))
			return kinds[i].kind;
	if (value->n > sizeof(hidden) - 1 && !memcmp(value->bytes, hidden, sizeof(hidden) - 1))
		return SYMBOLS_ARGUMENT_HIDDEN;
	return SYMBOLS_ARGUMENT_OTHER;
}

static void set_text(const struct msgpack_item *value, const char **ret, size_t *ret_size)
{
	*ret = (const char *)value->bytes;
	*ret_size = value->n;
}

static void set_argument_member(struct symbols_argument *a, const struct msgpack_item *key,
				const struct msgpack_item *value)
{
	if (value->kind == MSGPACK_STRING && msgpack_is(key, ".name"))
		set_text(value, &a->name, &a->name_size);
	if (value->kind == MSGPACK_STRING && msgpack_is(key, ".type_name"))
		set_text(value, &a->type, &a->type_size);
	if (value->kind == MSGPACK_STRING && msgpack_is(key, ".value_kind")) {
		set_text(value, &a->value_kind, &a->value_kind_size);
		a->kind = kind_of(value);
	}
	if (value->kind != MSGPACK_UINT || value->number >= UINT32_MAX)
		return;
	if (msgpack_is(key, ".offset"))
		a->offset = (uint32_t)value->number;
	if (msgpack_is(key, ".size"))
		a->size = (uint32_t)value->number;
}

static bool read_argument(struct reader *m, size_t n_pairs, struct symbols_argument *a)
{
	struct msgpack_item key, value;

	*a = (struct symbols_argument){
		.name = "",
		.type = "",
		.value_kind = "",
		.kind = SYMBOLS_ARGUMENT_OTHER,
		.offset = UINT32_MAX,
		.size = UINT32_MAX,
	};
	while (n_pairs--) {
		if (!next_pair(m, &key, &value))
			return false;
		set_argument_member(a, &key, &value);
		msgpack_skip_inside(m, &value);
	}
	return !reader_is_bad(m);
}

int symbols_metadata_arguments(const struct symbols_kernel *k,
			       int (*visit)(void *arg, const struct symbols_argument *a), void *arg)
{
	struct reader m;

	reader_init(&m, k->arguments, k->arguments_size);
	for (size_t i = 0; i < k->n_arguments; i++) {
		struct symbols_argument a;
		struct msgpack_item item;
		int r;

		if (!msgpack_next(&m, &item) || item.kind != MSGPACK_MAP ||
		    !read_argument(&m, item.n, &a))
			return -EBADMSG;
		r = visit(arg, &a);
		if (r)
			return r;
	}
	return 0;
}
