/* SPDX-License-Identifier: MIT */
/* The table of types, and what is asked of one. */
#include "values/type/type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "values/type/type_internal.h"

int values_types_create(struct debug_info *d, struct values_types **ret)
{
	struct values_types *ts = calloc(1, sizeof(*ts));

	if (!ts)
		return -ENOMEM;
	ts->d = d;
	ts->is_cuda = d && debug_info_is_cuda(d);
	ts->unknown = (struct values_type){ .kind = VALUES_TYPE_UNKNOWN, .types = ts,
					    .tried_target = true, .tried_members = true };
	ts->nothing = ts->unknown;
	ts->nothing.kind = VALUES_TYPE_VOID;
	ts->unknown.target = ts->nothing.target = &ts->unknown;
	*ret = ts;
	return 0;
}

void values_types_destroy(struct values_types *ts)
{
	if (!ts)
		return;
	for (size_t i = 0; i < ts->n; i++) {
		free(ts->list[i]->members);
		free(ts->list[i]->enumerators);
		free(ts->list[i]->own_name);
		free(ts->list[i]);
	}
	free(ts->list);
	free(ts->by_die);
	values_type_scopes_deinit(ts);
	free(ts);
}

bool values_types_is_cut(const struct values_types *ts)
{
	return ts->cut;
}

struct values_type *values_type_new(struct values_types *ts, enum values_type_kind kind)
{
	struct values_type *t;

	if (ts->n == VALUES_TYPES_MAX || vec_reserve(&ts->list, ts->n, 1, &ts->capacity, sizeof(t)) < 0 ||
	    !(t = calloc(1, sizeof(*t)))) {
		ts->cut = true;
		return &ts->unknown;
	}
	t->kind = kind;
	t->types = ts;
	ts->list[ts->n++] = t;
	return t;
}

struct values_member *values_type_add_member(struct values_type *t, size_t *capacity)
{
	struct values_types *ts = t->types;

	if (ts->n_members == VALUES_MEMBERS_MAX ||
	    vec_reserve(&t->members, t->n_members, 1, capacity, sizeof(*t->members)) < 0) {
		ts->cut = true;
		return NULL;
	}
	ts->n_members++;
	t->members[t->n_members] = (struct values_member){ .type = &ts->unknown };
	return &t->members[t->n_members++];
}

/* ------------------------------------------------------------------ by DIE ------------------- */

static struct values_type **find_slot(struct values_type **slots, size_t n, Dwarf_Off die)
{
	size_t i = (size_t)(die * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (n - 1);

	while (slots[i] && slots[i]->die != die)
		i = (i + 1) & (n - 1);
	return &slots[i];
}

static int grow_slots(struct values_types *ts)
{
	size_t n = ts->slots ? 2 * ts->slots : 64;
	struct values_type **slots;

	if (2 * ts->n_by_die < ts->slots)
		return 0;
	slots = calloc(n, sizeof(struct values_type *));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < ts->slots; i++)
		if (ts->by_die[i])
			*find_slot(slots, n, ts->by_die[i]->die) = ts->by_die[i];
	free(ts->by_die);
	ts->by_die = slots;
	ts->slots = n;
	return 0;
}

struct values_type *values_type_at(struct values_types *ts, Dwarf_Off off)
{
	struct values_type **slot, *t;
	Dwarf_Die die;

	if (!ts->d || !off || grow_slots(ts) < 0 || !debug_info_die(ts->d, off, &die))
		return &ts->unknown;
	slot = find_slot(ts->by_die, ts->slots, off);
	if (*slot)
		return *slot;
	t = values_type_new(ts, VALUES_TYPE_UNKNOWN);
	if (t == &ts->unknown)
		return t;
	t->die = off;
	*slot = t;
	ts->n_by_die++;
	values_type_read(t, &die);
	return t;
}

/* ------------------------------------------------------------------ made up ------------------ */

const char *values_type_space_word(const struct values_types *ts, enum values_space space)
{
	if (space == VALUES_SPACE_GENERIC || space == VALUES_SPACE_GLOBAL)
		return NULL;
	if (space == VALUES_SPACE_PRIVATE && ts->is_cuda)
		return "local";
	return values_space_name(space);
}

struct values_type *values_type_void(struct values_types *ts)
{
	return &ts->nothing;
}

static struct values_type *find_made(struct values_types *ts, const char *name, enum values_type_kind kind)
{
	for (size_t i = 0; i < ts->n_named; i++)
		if (ts->named[i]->kind == kind && ts->named[i]->name && !strcmp(ts->named[i]->name, name))
			return ts->named[i];
	return NULL;
}

static void set_name(struct values_type *t, const char *name)
{
	struct values_types *ts = t->types;

	t->own_name = strdup(name);
	t->name = t->own_name;
	if (ts->n_named < sizeof(ts->named) / sizeof(ts->named[0]))
		ts->named[ts->n_named++] = t;
}

static struct values_type *make_scalar(struct values_types *ts, const char *name,
				       enum values_encoding encoding, uint32_t size)
{
	struct values_type *t = find_made(ts, name, VALUES_TYPE_SCALAR);

	if (t && t->scalar.encoding == encoding && t->size == size)
		return t;
	t = values_type_new(ts, VALUES_TYPE_SCALAR);
	if (t == &ts->unknown)
		return t;
	set_name(t, name);
	t->size = size;
	t->scalar = (struct values_scalar){ encoding, size, NULL };
	return t;
}

struct values_type *values_type_pointer(struct values_types *ts, struct values_type *target,
					enum values_space space)
{
	struct values_type *t = target->pointers[space];

	if (t)
		return t;
	t = values_type_new(ts, VALUES_TYPE_POINTER);
	if (t == &ts->unknown)
		return t;
	target->pointers[space] = t;
	t->size = 8;
	t->scalar = (struct values_scalar){ VALUES_POINTER, 8, values_type_space_word(ts, space) };
	t->space = space;
	t->target = target;
	t->tried_target = true;
	return t;
}

struct values_type *values_type_array(struct values_types *ts, struct values_type *element,
				      uint64_t count)
{
	struct values_type *t = element->array;

	if (t && t->count == count)
		return t;
	t = values_type_new(ts, VALUES_TYPE_ARRAY);
	if (t == &ts->unknown)
		return t;
	element->array = t;
	t->has_count = true;
	t->count = count;
	t->target = element;
	t->tried_target = true;
	return t;
}

/*
 * Make a struct whose members are of one type and lie one behind the other, as dim3 and float4.
 * @param members  Their names, separated by NUL, with an empty one at the end; they are borrowed.
 */
static struct values_type *make_struct(struct values_types *ts, const char *name,
				       struct values_type *member, const char *members)
{
	struct values_type *t = find_made(ts, name, VALUES_TYPE_STRUCT);
	size_t capacity = 0;

	if (t)
		return t;
	t = values_type_new(ts, VALUES_TYPE_STRUCT);
	if (t == &ts->unknown)
		return t;
	set_name(t, name);
	t->tried_members = true;
	for (; *members; members += strlen(members) + 1) {
		struct values_member *m = values_type_add_member(t, &capacity);

		if (!m)
			break;
		*m = (struct values_member){ .name = members, .type = member, .bit_offset = 8 * t->size,
					     .has_place = true };
		t->size += values_type_size(member);
	}
	return t;
}

/* Vectors of CUDA and OpenCL: a scalar's short name and a number of elements. */
static struct values_type *vector_named(struct values_types *ts, const char *name)
{
	static const char *const short_names[][2] = {
		{ "char", "signed char" }, { "uchar", "unsigned char" }, { "short", "short" },
		{ "ushort", "unsigned short" }, { "int", "int" }, { "uint", "unsigned int" },
		{ "long", "long" }, { "ulong", "unsigned long" }, { "longlong", "long long" },
		{ "ulonglong", "unsigned long long" }, { "float", "float" }, { "double", "double" },
	};
	static const char *const members[] = { "x\0", "x\0y\0", "x\0y\0z\0", "x\0y\0z\0w\0" };
	size_t size = strcspn(name, "1234");

	if (!name[size] || name[size + 1])
		return NULL;
	for (size_t i = 0; i < sizeof(short_names) / sizeof(short_names[0]); i++)
		if (strlen(short_names[i][0]) == size && !memcmp(short_names[i][0], name, size))
			return make_struct(ts, name, values_type_named(ts, short_names[i][1]),
						  members[name[size] - '1']);
	return NULL;
}

/* A pointer's name without its star, as far as it names anything. */
static struct values_type *pointee_named(struct values_types *ts, const char *name)
{
	char inner[128];
	size_t size = strlen(name);
	struct values_type *t;

	while (size && (name[size - 1] == ' ' || name[size - 1] == '*' || name[size - 1] == '&')) {
		if (name[--size] == ' ')
			continue;
		if (size >= sizeof(inner))
			break;
		memcpy(inner, name, size);
		inner[size] = '\0';
		t = values_type_named(ts, inner);
		return t ? t : &ts->nothing;
	}
	return &ts->nothing;
}

/* Take const out of a scalar's name, and make it a type of its own. */
static struct values_type *scalar_named(struct values_types *ts, const char *name, const struct values_scalar *s)
{
	struct values_type *t, *constant;
	char plain[64] = "";
	bool is_const = false;
	size_t used = 0, n;

	for (; *(name += strspn(name, " ")); name += n) {
		n = strcspn(name, " ");
		if (n == 5 && !memcmp(name, "const", n))
			is_const = true;
		else if (used + n + 2 <= sizeof(plain))
			used += (size_t)snprintf(plain + used, sizeof(plain) - used, "%s%.*s", used ? " " : "", (int)n, name);
	}
	t = make_scalar(ts, plain, s->encoding, s->size);
	if (!is_const || t->constant)
		return is_const ? t->constant : t;
	constant = values_type_new(ts, VALUES_TYPE_CONST);
	if (constant == &ts->unknown)
		return t;
	constant->target = t;
	constant->tried_target = true;
	t->constant = constant;
	return constant;
}

struct values_type *values_type_named(struct values_types *ts, const char *name)
{
	struct values_scalar s;

	if (!strcmp(name, "dim3"))
		return make_struct(ts, "dim3", values_type_named(ts, "unsigned int"), "x\0y\0z\0");
	if (values_scalar_parse(name, &s) < 0)
		return vector_named(ts, name);
	if (s.encoding == VALUES_POINTER)
		return values_type_pointer(ts, pointee_named(ts, name), VALUES_SPACE_GENERIC);
	return scalar_named(ts, name, &s);
}

/* ------------------------------------------------------------------ questions ---------------- */

struct values_type *values_type_target(struct values_type *t)
{
	Dwarf_Die die;

	if (t->tried_target)
		return t->target ? t->target : &t->types->nothing;
	t->tried_target = true;
	t->target = debug_info_die(t->types->d, t->die, &die) ? values_type_of(t->types, &die) :
								&t->types->unknown;
	return t->target;
}

struct values_type *values_type_strip(struct values_type *t)
{
	struct values_types *ts = t->types;

	for (unsigned i = 0; i < VALUES_TYPE_DEPTH_MAX; i++) {
		if (t->kind < VALUES_TYPE_TYPEDEF)
			return t;
		t = values_type_target(t);
	}
	ts->cut = true;
	return &ts->unknown;
}

/* The size of nested arrays, by a limited number of steps. */
static uint64_t array_size(struct values_type *t)
{
	uint64_t size = 1;

	for (unsigned i = 0; i < VALUES_TYPE_DEPTH_MAX; i++) {
		if (t->kind != VALUES_TYPE_ARRAY || t->size)
			return __builtin_mul_overflow(size, t->size, &size) ? 0 : size;
		if (!t->has_count || __builtin_mul_overflow(size, t->count, &size))
			return 0;
		if (t->stride)
			return __builtin_mul_overflow(size, t->stride, &size) ? 0 : size;
		t = values_type_strip(values_type_target(t));
	}
	return 0;
}

uint64_t values_type_size(struct values_type *t)
{
	return array_size(values_type_strip(t));
}

uint64_t values_type_stride(struct values_type *array)
{
	return array->stride ? array->stride : values_type_size(values_type_target(array));
}

const struct values_member *values_type_members(struct values_type *t, size_t *ret_n)
{
	if (!t->tried_members) {
		t->tried_members = true;
		values_type_read_members(t);
	}
	*ret_n = t->n_members;
	return t->members;
}

const struct values_enumerator *values_type_enumerators(struct values_type *t, size_t *ret_n)
{
	(void)values_type_members(t, ret_n);
	return t->enumerators;
}
