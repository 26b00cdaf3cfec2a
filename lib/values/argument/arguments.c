/* SPDX-License-Identifier: MIT */
#include "values/argument/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "symbols/image.h"
#include "values/argument/signature.h"

/* What a source of names and types has for the arguments, in order. */
struct texts {
	struct {
		char name[VALUES_ARGUMENT_NAME_MAX];
		char type[VALUES_ARGUMENT_TYPE_MAX], base[VALUES_ARGUMENT_TYPE_MAX];
		uint64_t size; /* 0: not known. */
	} list[VALUES_ARGUMENTS_MAX];
	size_t n; /* Also those that have no room. */
};

/* Copy a text that need not be terminated. */
static void copy_text(char *to, size_t room, const char *from, size_t size)
{
	snprintf(to, room, "%.*s", (int)(size < room ? size : room - 1), from);
	str_make_printable(to);
}

/* ------------------------------------------------------------------ AMD ---------------------- */

struct noted {
	struct values_arguments *to;
	bool hidden; /* Wanted, too. */
};

static struct values_scalar scalar_of(const struct symbols_argument *a)
{
	struct values_scalar s = { VALUES_RAW, a->size, NULL };

	if ((a->kind == SYMBOLS_ARGUMENT_BUFFER || a->kind == SYMBOLS_ARGUMENT_OBJECT) &&
	    a->size == 8)
		s.encoding = VALUES_POINTER;
	if (a->kind == SYMBOLS_ARGUMENT_LDS && a->size == 4) {
		s.encoding = VALUES_POINTER;
		s.space = "lds";
	}
	/* Counts, sizes and offsets of the grid; the others are addresses. */
	if (a->kind == SYMBOLS_ARGUMENT_HIDDEN)
		s.encoding = a->size == 8 ? VALUES_POINTER : VALUES_UNSIGNED;
	return s;
}

static int add_noted(void *arg, const struct symbols_argument *a)
{
	const struct noted *noted = arg;
	struct values_arguments *to = noted->to;
	bool hidden = a->kind == SYMBOLS_ARGUMENT_HIDDEN;
	struct values_argument *v;

	if ((hidden && !noted->hidden) || a->size == UINT32_MAX || a->offset == UINT32_MAX)
		return 0;
	if (to->n_all++ >= VALUES_ARGUMENTS_MAX)
		return 0;
	v = &to->list[to->n++];
	*v = (struct values_argument){ .offset = a->offset,
				       .hidden = hidden,
				       .scalar = scalar_of(a) };
	copy_text(v->type, sizeof(v->type), a->type, a->type_size);
	if (hidden)
		copy_text(v->name, sizeof(v->name), a->value_kind, a->value_kind_size);
	else
		copy_text(v->name, sizeof(v->name), a->name, a->name_size);
	return 0;
}

static int find_noted(const struct symbols_image *i, uint64_t kernel, bool hidden,
		      struct values_arguments *ret)
{
	struct noted noted = { ret, hidden };
	struct symbols_kernel k;
	int r = symbols_image_metadata(i, kernel, &k);

	if (r == 0)
		r = symbols_metadata_arguments(&k, add_noted, &noted);
	if (r < 0)
		return r;
	ret->size = k.kernarg_segment_bytes;
	return 0;
}

/* ------------------------------------------------------------------ NVIDIA ------------------- */

struct wanted {
	uint64_t kernel;
	struct symbols_nv_info *info;
};

static int take_nv_info(void *arg, uint64_t kernel, const void *info, size_t size)
{
	const struct wanted *w = arg;

	if (kernel != w->kernel)
		return 0;
	return symbols_nv_info_read(info, size, w->info) < 0 ? -EBADMSG : 1;
}

static int find_nv(const struct symbols_image *i, uint64_t kernel, struct values_arguments *ret)
{
	struct symbols_nv_info info;
	struct wanted w = { kernel, &info };
	int r = symbols_image_each_nv_info(i, take_nv_info, &w);

	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	ret->size = info.size;
	ret->n_all = info.n;
	for (size_t k = 0; k < info.n && k < VALUES_ARGUMENTS_MAX; k++) {
		const struct symbols_nv_parameter *p = &info.parameters[k];

		/* All that is behind a gap would bear the name of another. */
		if (!p->is_known)
			return -EBADMSG;
		ret->list[ret->n++] = (struct values_argument){
			.offset = p->offset,
			.scalar = { VALUES_RAW, p->size, NULL },
		};
	}
	return 0;
}

/* ------------------------------------------------------------------ names and types ---------- */

static int add_parameter(void *arg, const struct symbols_parameter *p)
{
	struct texts *t = arg;

	if (t->n < VALUES_ARGUMENTS_MAX) {
		copy_text(t->list[t->n].name, sizeof(t->list[0].name), p->name, strlen(p->name));
		copy_text(t->list[t->n].type, sizeof(t->list[0].type), p->type, strlen(p->type));
		copy_text(t->list[t->n].base, sizeof(t->list[0].base), p->base, strlen(p->base));
		t->list[t->n].size = p->size;
	}
	t->n++;
	return 0;
}

static int add_type(void *arg, const char *type, size_t size)
{
	struct texts *t = arg;

	if (t->n < VALUES_ARGUMENTS_MAX) {
		t->list[t->n].name[0] = '\0';
		copy_text(t->list[t->n].type, sizeof(t->list[0].type), type, size);
		copy_text(t->list[t->n].base, sizeof(t->list[0].base), type, size);
		t->list[t->n].size = 0;
	}
	t->n++;
	return 0;
}

/* Hidden arguments are in no source; they come behind all others. */
static size_t count_visible(const struct values_arguments *a)
{
	size_t n = a->n_all;

	for (size_t k = 0; k < a->n; k++)
		n -= a->list[k].hidden;
	return n;
}

/* Are these texts about these arguments?  A compiler may have taken some of them away. */
static bool is_about(const struct texts *t, const struct values_arguments *a)
{
	if (t->n != count_visible(a))
		return false;
	for (size_t k = 0, i = 0; k < a->n && i < t->n; k++) {
		if (a->list[k].hidden)
			continue;
		if (t->list[i].size && t->list[i].size != a->list[k].scalar.size)
			return false;
		i++;
	}
	return true;
}

static void take_type(struct values_argument *v, const char *type, const char *base)
{
	struct values_scalar s;

	if (!*type)
		return;
	str_copy(v->type, sizeof(v->type), type);
	if (values_scalar_parse(base, &s) == 0 && s.size == v->scalar.size)
		v->scalar = s;
}

static void take_texts(const struct texts *t, struct values_arguments *a)
{
	for (size_t k = 0, i = 0; k < a->n && i < t->n; k++) {
		struct values_argument *v = &a->list[k];

		if (v->hidden)
			continue;
		if (t->list[i].name[0])
			str_copy(v->name, sizeof(v->name), t->list[i].name);
		take_type(v, t->list[i].type, t->list[i].base);
		i++;
	}
}

static int find_texts(struct symbols_image *i, uint64_t kernel, struct values_arguments *a)
{
	auto_free struct texts *t = malloc(sizeof(*t));
	struct symbols_symbol symbol;

	if (!t)
		return -ENOMEM;
	t->n = 0;
	if (symbols_image_parameters(i, kernel, add_parameter, t) == 0 && is_about(t, a)) {
		take_texts(t, a);
		return 0;
	}
	t->n = 0;
	if (symbols_image_kernel(i, kernel, &symbol) == 0 &&
	    values_signature_each(symbol.name, add_type, t) == 0 && is_about(t, a))
		take_texts(t, a);
	return 0;
}

/* ------------------------------------------------------------------ all together ------------- */

static void complete(struct values_arguments *a)
{
	uint64_t end = 0;

	for (size_t k = 0; k < a->n; k++) {
		struct values_argument *v = &a->list[k];

		if (!v->name[0])
			snprintf(v->name, sizeof(v->name), "arg%zu", k);
		/* OpenCL's notes have types, too. */
		take_type(v, v->type, v->type);
		if ((uint64_t)v->offset + v->scalar.size > end)
			end = (uint64_t)v->offset + v->scalar.size;
	}
	if (a->size == UINT32_MAX)
		a->size = end < UINT32_MAX ? (uint32_t)end : UINT32_MAX - 1;
}

int values_arguments_find(struct symbols_image *i, uint64_t kernel, bool hidden,
			  struct values_arguments *ret)
{
	int r;

	*ret = (struct values_arguments){ .list = calloc(VALUES_ARGUMENTS_MAX,
							 sizeof(*ret->list)) };
	if (!ret->list)
		return -ENOMEM;
	r = symbols_image_facts(i)->machine == SYMBOLS_MACHINE_CUDA
		    ? find_nv(i, kernel, ret)
		    : find_noted(i, kernel, hidden, ret);
	if (r < 0) {
		ret->n = ret->n_all = 0;
		return r;
	}
	complete(ret);
	return find_texts(i, kernel, ret);
}

void values_arguments_deinit(struct values_arguments *a)
{
	free(a->list);
	*a = (struct values_arguments){ 0 };
}

/* ------------------------------------------------------------------ values ------------------- */

/* Four bytes of unknown type are an int or a float: where the int is large, it may be the other. */
static void print_word(const void *bytes, struct out *o)
{
	float f;
	int32_t n;

	memcpy(&n, bytes, sizeof(n));
	memcpy(&f, bytes, sizeof(f));
	out_fmt(o, "%" PRId32, n);
	if (isnormal(f) && fabsf(f) > 1e-9f && fabsf(f) < 1e9f)
		out_fmt(o, " (%.9gf)", (double)f);
}

void values_argument_print(const struct values_argument *a, const void *bytes, struct out *o)
{
	if (a->scalar.encoding == VALUES_RAW && a->scalar.size == 4 && !a->type[0])
		print_word(bytes, o);
	else
		values_scalar_print(&a->scalar, VALUES_NATURAL, bytes, o);
}
