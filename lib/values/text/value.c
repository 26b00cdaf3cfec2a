/* SPDX-License-Identifier: MIT */
#include "values/text/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"
#include "values/text/value_internal.h"

#define NAME_MAX_BYTES 256u

void values_call_init(struct values_call *c,
		      int (*read)(void *context, enum values_space space, uint64_t address, void *ret,
				  size_t size),
		      void *context)
{
	*c = (struct values_call){ .read = read, .context = context, .nodes_left = VALUES_NODES_MAX,
				   .reads_left = VALUES_READS_MAX, .bytes_left = VALUES_BYTES_MAX,
				   .levels = VALUES_LEVELS_MAX };
}

int values_call_read(struct values_call *c, enum values_space space, uint64_t address, void *ret,
		     size_t size)
{
	if (!c->read)
		return -ENXIO;
	if (!c->reads_left || size > c->bytes_left) {
		c->cut = true;
		return -EDQUOT;
	}
	c->reads_left--;
	c->bytes_left -= (uint32_t)size;
	return c->read(c->context, space, address, ret, size);
}

void values_node_deinit(struct values_node *n)
{
	for (size_t i = 0; i < n->n_children; i++)
		values_node_deinit(&n->children[i]);
	free(n->children);
	free(n->name);
	free(n->text);
	*n = (struct values_node){ 0 };
}

/* Where a value lies in the bytes: a bit field need not begin with a byte. */
struct slice {
	const struct values_data *data;
	uint64_t bit; /**< The first bit. */
	uint32_t bit_size; /**< Of a bit field; 0: as its type wants it. */
	unsigned level;
};

static bool are_known(const struct values_data *d, uint64_t first, uint64_t size)
{
	if (first > d->size || size > d->size - first)
		return false;
	for (uint64_t i = 0; d->known && i < size; i++)
		if (!d->known[first + i])
			return false;
	return true;
}

static bool are_unknown(const struct values_data *d, uint64_t first, uint64_t size)
{
	for (uint64_t i = first; i - first < size && i < d->size; i++)
		if (!d->known || d->known[i])
			return false;
	return true;
}

static int take_text(struct out *o, struct values_node *n)
{
	size_t size;

	if (out_error(o) == -EFBIG)
		n->cut = true;
	if (out_error(o) == -ENOMEM)
		return -ENOMEM;
	o->error = 0;
	return out_steal(o, &n->text, &size);
}

static int set_unknown(struct values_node *n, enum values_state state)
{
	static const char *const texts[] = {
		[VALUES_OPTIMISED_OUT] = "<optimized out>", [VALUES_NOT_SAVED] = "<not saved>",
		[VALUES_UNREADABLE] = "<unreadable>",
	};
	bool is_known = state < sizeof(texts) / sizeof(texts[0]) && texts[state];

	n->state = state;
	n->text = strdup(is_known ? texts[state] : "<unavailable>");
	return n->text ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ scalars ------------------ */

void values_bits_extract(const uint8_t *from, uint64_t bit, uint32_t size, bool is_signed, uint8_t *bytes)
{
	bool negative = false;

	memset(bytes, 0, 16);
	for (uint32_t i = 0; i < size && i < 128; i++) {
		negative = from[(bit + i) / 8] >> ((bit + i) % 8) & 1;
		bytes[i / 8] |= (uint8_t)(negative << (i % 8));
	}
	for (uint32_t i = size; is_signed && negative && i < 128; i++)
		bytes[i / 8] |= (uint8_t)(1 << (i % 8));
}

/* A flag of an enumeration for each bit, as gdb shows them; else the number. */
static void print_enumeration(struct values_type *t, uint64_t v, struct out *o)
{
	size_t n, printed = 0;
	const struct values_enumerator *e = values_type_enumerators(t, &n);

	for (size_t i = 0; i < n; i++)
		if (e[i].value == v) {
			values_enumerator_print(t, &e[i], o);
			return;
		}
	if (!t->is_flags || !n) {
		if (t->scalar.encoding == VALUES_SIGNED)
			out_i64(o, (int64_t)v);
		else
			out_u64(o, v);
		return;
	}
	if (t->size < 8)
		v &= (UINT64_C(1) << 8 * t->size) - 1;
	for (size_t i = 0; i < n; i++)
		if (v & e[i].value) {
			out_str(o, printed++ ? " | " : "(");
			values_enumerator_print(t, &e[i], o);
			v &= ~e[i].value;
		}
	if (v)
		out_fmt(o, "%sunknown: 0x%llx)", printed ? " | " : "(", (unsigned long long)v);
	else
		out_str(o, printed ? ")" : "0");
}

static void print_scalar(struct values_type *t, const struct values_scalar *s, const uint8_t *bytes,
			 enum values_format format, struct out *o)
{
	if (t->kind == VALUES_TYPE_ENUM && !format)
		print_enumeration(t, values_scalar_integer(&t->scalar, bytes), o);
	else
		values_scalar_print(s, format, bytes, o);
}

/* Note the number that a value is, for those who compare values. */
static void set_number(struct values_node *n, const struct values_scalar *s, const uint8_t *bytes)
{
	n->has_number = s->encoding != VALUES_RAW && s->size <= 8;
	n->number.size = (uint8_t)s->size;
	n->number.is_real = values_scalar_float(s, bytes, &n->number.real);
	if (!n->number.is_real)
		n->number.integer = values_scalar_integer(s, bytes);
	n->number.is_signed = s->encoding == VALUES_SIGNED || s->encoding == VALUES_SIGNED_CHAR;
	if (s->encoding == VALUES_FLOAT || s->encoding == VALUES_BFLOAT)
		n->has_number = n->number.is_real;
}

static int add_scalar(struct values_node *n, const struct values_scalar *s, const struct slice *at,
		      struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);
	uint64_t bits = at->bit_size ? at->bit_size : 8 * (uint64_t)s->size;
	uint64_t first = at->bit / 8;
	uint8_t bytes[16];
	size_t unused;
	auto_out struct out o = { .limit = VALUES_TEXT_MAX };

	if (t->kind == VALUES_TYPE_ENUM) /* Only its enumerators tell whether it is signed. */
		(void)values_type_enumerators(t, &unused);
	if (!are_known(at->data, first, (at->bit + bits + 7) / 8 - first))
		return set_unknown(n, at->data->lack);
	if (!at->bit_size && at->bit % 8 == 0) {
		set_number(n, s, at->data->bytes + first);
		print_scalar(t, s, at->data->bytes + first, c->format, &o);
	} else if (s->size > sizeof(bytes) || at->bit_size > 128) {
		return set_unknown(n, VALUES_UNAVAILABLE);
	} else {
		values_bits_extract(at->data->bytes, at->bit, (uint32_t)bits,
				    s->encoding == VALUES_SIGNED || s->encoding == VALUES_SIGNED_CHAR, bytes);
		set_number(n, s, bytes);
		print_scalar(t, s, bytes, c->format, &o);
	}
	return take_text(&o, n);
}

/* ------------------------------------------------------------------ text --------------------- */

static bool is_character(struct values_type *t)
{
	return t->kind == VALUES_TYPE_SCALAR &&
	       (t->scalar.encoding == VALUES_SIGNED_CHAR || t->scalar.encoding == VALUES_UNSIGNED_CHAR ||
		t->scalar.encoding == VALUES_UTF) &&
	       (t->size == 1 || t->size == 2 || t->size == 4);
}

/*
 * Read elements of a string: as many as lie before a round address, behind which there may be
 * nothing, and fewer where that is not to be had.
 * @return how many; 0: nothing can be read.
 */
static size_t read_some(struct values_type *pointer, uint64_t address, size_t size, uint8_t *text, size_t room,
			struct values_call *c)
{
	size_t n = (size_t)(256 - address % 256) / size;

	n = n == 0 ? 1 : n > room ? room : n;
	while (n && values_call_read(c, pointer->space, address, text, n * size) < 0)
		n /= 2;
	return n;
}

/* Append the text that a pointer to characters leads to, as far as it can be read. */
static void print_pointed(struct values_type *pointer, uint64_t address, struct values_call *c,
			  struct out *o)
{
	struct values_type *t = values_type_strip(values_type_target(pointer));
	uint8_t text[VALUES_ELEMENTS_MAX * 4];
	size_t size = t->size, n = 0, end;

	while (n < VALUES_ELEMENTS_MAX) {
		end = n + read_some(pointer, address + n * size, size, text + n * size,
				    VALUES_ELEMENTS_MAX - n, c);
		if (end == n)
			break;
		for (; n < end; n++)
			if (!memcmp(text + n * size, "\0\0\0", size)) {
				out_char(o, ' ');
				values_string_print(&t->scalar, text, n, false, o);
				return;
			}
	}
	if (!n) {
		out_fmt(o, " <error: Cannot access memory at address 0x%llx>", (unsigned long long)address);
		return;
	}
	out_char(o, ' ');
	values_string_print(&t->scalar, text, n, true, o);
}

static int add_pointer(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);
	auto_out struct out o = { .limit = VALUES_TEXT_MAX };
	uint64_t address;

	if (!are_known(at->data, at->bit / 8, t->size))
		return set_unknown(n, at->data->lack);
	values_scalar_print(&t->scalar, c->format, at->data->bytes + at->bit / 8, &o);
	set_number(n, &t->scalar, at->data->bytes + at->bit / 8);
	address = n->number.integer;
	if (address && !c->format && is_character(values_type_strip(values_type_target(t))))
		print_pointed(t, address, c, &o);
	return take_text(&o, n);
}

static int add_node(struct values_node *n, const struct slice *at, struct values_call *c);

/* A reference is shown as where it leads and what is there. */
static int add_reference(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type), *target = values_type_target(t);
	uint64_t size = values_type_size(target), address;
	auto_out struct out o = { .limit = VALUES_TEXT_MAX };
	struct values_node there = { .type = target };
	struct values_data data = { .size = (size_t)size, .lack = VALUES_UNREADABLE };
	struct slice inside = { .data = &data, .level = at->level + 1 };
	uint8_t *bytes;
	int r;

	if (!are_known(at->data, at->bit / 8, t->size))
		return set_unknown(n, at->data->lack);
	address = values_scalar_integer(&t->scalar, at->data->bytes + at->bit / 8);
	out_char(&o, '@');
	values_scalar_print(&t->scalar, VALUES_HEX, at->data->bytes + at->bit / 8, &o);
	bytes = size && size <= c->bytes_left ? calloc(1, (size_t)size) : NULL;
	if (!bytes || at->level >= c->levels)
		c->cut = true;
	else if (values_call_read(c, t->space, address, bytes, (size_t)size) < 0)
		out_fmt(&o, ": <error: Cannot access memory at address 0x%llx>", (unsigned long long)address);
	else {
		data.bytes = bytes;
		r = add_node(&there, &inside, c);
		out_str(&o, ": ");
		if (r == 0)
			values_node_print(&there, &o);
		values_node_deinit(&there);
	}
	free(bytes);
	return take_text(&o, n);
}

/* ------------------------------------------------------------------ structs and arrays ------- */

static char *printable_copy(const char *name)
{
	char text[NAME_MAX_BYTES];

	str_copy(text, sizeof(text), name);
	str_make_printable(text);
	return strdup(text);
}

/* @return room for a child; NULL: none is left, or no memory (*r). */
static struct values_node *new_child(struct values_node *n, size_t *capacity, struct values_call *c, int *r)
{
	if (!c->nodes_left) {
		c->cut = n->cut = true;
		return NULL;
	}
	*r = vec_reserve(&n->children, n->n_children, 1, capacity, sizeof(*n->children));
	if (*r < 0)
		return NULL;
	c->nodes_left--;
	n->children[n->n_children] = (struct values_node){ .repeats = 1 };
	return &n->children[n->n_children++];
}

static void join_states(struct values_node *n)
{
	bool some = false, all = true;

	for (size_t i = 0; i < n->n_children; i++) {
		some = some || n->children[i].state != VALUES_OK;
		all = all && n->children[i].state == n->children[0].state;
	}
	if (some)
		n->state = all ? n->children[0].state : VALUES_PARTIAL;
}

/* That of a class which it is derived from is a type, with its namespaces. */
static int set_member_name(struct values_node *child, const struct values_member *m)
{
	auto_out struct out o = { .limit = NAME_MAX_BYTES };
	size_t size;

	if (m->is_base) {
		values_type_print(values_type_strip(m->type), &o);
		if (out_error(&o) == -EFBIG)
			o.error = 0;
		return out_steal(&o, &child->name, &size);
	}
	if (m->name)
		child->name = printable_copy(m->name);
	return m->name && !child->name ? -ENOMEM : 0;
}

static int add_members(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);
	size_t n_members, capacity = 0;
	const struct values_member *m = values_type_members(t, &n_members);
	int r = 0;

	for (size_t i = 0; i < n_members; i++) {
		struct values_node *child = new_child(n, &capacity, c, &r);
		struct slice inside = *at;

		if (!child)
			break;
		child->type = m[i].type;
		child->is_base = m[i].is_base;
		if (set_member_name(child, &m[i]) < 0)
			return -ENOMEM;
		inside.bit_size = m[i].bit_size;
		inside.level++;
		if (!m[i].has_place || __builtin_add_overflow(at->bit, m[i].bit_offset, &inside.bit))
			r = set_unknown(child, VALUES_UNAVAILABLE);
		else
			r = add_node(child, &inside, c);
		if (r < 0)
			break;
	}
	join_states(n);
	return r;
}

/* @return how many elements from here on are equal, as far as all is known of them. */
static uint64_t run_length(const struct values_data *d, uint64_t first, uint64_t stride, uint64_t left)
{
	uint64_t n = 1;

	if (!stride || !are_known(d, first, stride))
		return 1;
	while (n < left && are_known(d, first + n * stride, stride) &&
	       !memcmp(d->bytes + first, d->bytes + first + n * stride, stride))
		n++;
	return n;
}

static int add_elements(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);
	uint64_t stride = values_type_stride(t), count = t->has_count ? t->count : 0, i = 0;
	size_t capacity = 0, shown = 0;
	int r = 0;

	while (r == 0 && i < count && shown < VALUES_ELEMENTS_MAX) {
		uint64_t first = at->bit / 8 + i * stride;
		uint64_t run = run_length(at->data, first, stride, count - i);
		struct values_node *child = new_child(n, &capacity, c, &r);
		struct slice inside = { .data = at->data, .bit = 8 * first, .level = at->level + 1 };

		if (!child)
			break;
		child->type = values_type_target(t);
		child->index = i;
		child->repeats = run > VALUES_REPEATS_MIN ? run : 1;
		r = add_node(child, &inside, c);
		i += child->repeats;
		shown += child->repeats > 1 ? VALUES_REPEATS_MIN : 1;
	}
	if (i < count)
		n->cut = true;
	join_states(n);
	return r;
}

static bool is_string(struct values_type *array)
{
	struct values_type *element = values_type_strip(values_type_target(array));

	return !array->is_vector && array->has_count && array->count && is_character(element) &&
	       values_type_stride(array) == element->size;
}

static int add_array(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);
	uint64_t size = values_type_size(t);
	struct values_type *element;
	auto_out struct out o = { .limit = VALUES_TEXT_MAX };

	if (!is_string(t) || c->format || !are_known(at->data, at->bit / 8, size))
		return add_elements(n, at, c);
	element = values_type_strip(values_type_target(t));
	values_string_print(&element->scalar, at->data->bytes + at->bit / 8,
			    values_string_length(&element->scalar, at->data->bytes + at->bit / 8, t->count),
			    false, &o);
	return take_text(&o, n);
}

/* ------------------------------------------------------------------ any value ---------------- */

bool values_wrapped_number(struct values_type *t, struct values_scalar *ret)
{
	return t->kind == VALUES_TYPE_STRUCT && t->name && t->size == 2 &&
	       values_scalar_parse(t->name, ret) == 0 && ret->size == 2;
}

static int add_bytes(struct values_node *n, const struct slice *at, uint64_t size)
{
	struct values_scalar raw = { VALUES_RAW, (uint32_t)(size > 256 ? 256 : size), NULL };
	auto_out struct out o = { .limit = VALUES_TEXT_MAX };

	if (!size || !are_known(at->data, at->bit / 8, raw.size))
		return set_unknown(n, size ? at->data->lack : VALUES_UNAVAILABLE);
	values_scalar_print(&raw, VALUES_NATURAL, at->data->bytes + at->bit / 8, &o);
	return take_text(&o, n);
}

static int set_text(struct values_node *n, const char *text)
{
	n->text = strdup(text);
	return n->text ? 0 : -ENOMEM;
}

static int add_composite(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);
	struct values_scalar number;

	if (t->is_declaration) {
		n->state = VALUES_UNAVAILABLE;
		return set_text(n, "<incomplete type>");
	}
	if (values_wrapped_number(t, &number))
		return add_scalar(n, &number, at, c);
	if (at->level >= c->levels) {
		c->cut = n->cut = true;
		return set_text(n, "{...}");
	}
	/* Whole values that are unknown have one word for it, as in gdb. */
	if (are_unknown(at->data, at->bit / 8, values_type_size(t)) && values_type_size(t))
		return set_unknown(n, at->data->lack);
	return t->kind == VALUES_TYPE_ARRAY ? add_array(n, at, c) : add_members(n, at, c);
}

static int add_node(struct values_node *n, const struct slice *at, struct values_call *c)
{
	struct values_type *t = values_type_strip(n->type);

	switch (t->kind) {
	case VALUES_TYPE_SCALAR:
	case VALUES_TYPE_ENUM:
	case VALUES_TYPE_MEMBER_POINTER:
		return add_scalar(n, &t->scalar, at, c);
	case VALUES_TYPE_POINTER:
		return add_pointer(n, at, c);
	case VALUES_TYPE_REFERENCE:
	case VALUES_TYPE_RVALUE_REFERENCE:
		return add_reference(n, at, c);
	case VALUES_TYPE_STRUCT:
	case VALUES_TYPE_UNION:
	case VALUES_TYPE_ARRAY:
		return add_composite(n, at, c);
	case VALUES_TYPE_VOID:
		return set_text(n, "void");
	default:
		return add_bytes(n, at, values_type_size(t));
	}
}

int values_node_init_field(struct values_node *ret, const char *name, struct values_type *type,
			   const struct values_data *data, uint32_t bit, uint32_t bit_size, struct values_call *c)
{
	const struct slice all = { .data = data, .bit = bit, .bit_size = bit_size };
	int r = 0;

	*ret = (struct values_node){ .type = type, .repeats = 1 };
	if (name && !(ret->name = printable_copy(name)))
		r = -ENOMEM;
	if (r == 0)
		r = add_node(ret, &all, c);
	if (r < 0)
		values_node_deinit(ret);
	return r;
}

int values_node_init(struct values_node *ret, const char *name, struct values_type *type,
		     const struct values_data *data, struct values_call *c)
{
	return values_node_init_field(ret, name, type, data, 0, 0, c);
}
