/* SPDX-License-Identifier: MIT */
/* Values as one line of text: structs, arrays, and strings. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "values/text/value.h"
#include "values/text/value_internal.h"

static uint32_t element(const uint8_t *text, size_t i, size_t size)
{
	uint32_t v = 0;

	memcpy(&v, text + i * size, size);
	return v;
}

/* Half of a UTF-16 pair that has its other half behind it. */
static bool is_pair(const struct values_scalar *s, const uint8_t *text, size_t i, size_t n)
{
	return s->encoding == VALUES_UTF && s->size == 2 && i + 1 < n &&
	       (element(text, i, 2) & 0xfc00) == 0xd800 && (element(text, i + 1, 2) & 0xfc00) == 0xdc00;
}

/* Could a digit be taken for one more of the escape that the text ends with? */
static bool ends_in_hex(const struct out *o, size_t before)
{
	return o->size > before + 2 && !memcmp(o->data + before, "\\x", 2);
}

/* Also between single quotes, " is escaped and ' is not: as gdb does it. */
static void print_element(const struct values_scalar *s, uint32_t v, size_t before, struct out *o)
{
	if ((s->size == 1 && v >= 0x80) || (v < 0x80 && isxdigit((int)v) && ends_in_hex(o, before)))
		out_fmt(o, "\\%03o", v);
	else
		values_character_print(v, '"', o);
}

static size_t run_of(const uint8_t *text, size_t i, size_t n, size_t size)
{
	size_t run = 1;

	while (i + run < n && element(text, i + run, size) == element(text, i, size))
		run++;
	return run;
}

void values_string_print(const struct values_scalar *s, const uint8_t *text, size_t n, bool has_more,
			 struct out *o)
{
	const char *prefix = s->encoding != VALUES_UTF ? "" : s->size == 1 ? "u8" : s->size == 2 ? "u" : "U";
	bool is_open = false, is_first = true;
	size_t i = 0, before = o->size, start;

	if (!n)
		out_fmt(o, "%s\"\"", prefix);
	while (i < n && i < VALUES_ELEMENTS_MAX) {
		size_t run = run_of(text, i, n, s->size);
		uint32_t v = element(text, i, s->size);

		if (run > VALUES_REPEATS_MIN) {
			out_fmt(o, "%s%s%s'", is_open ? "\"" : "", is_first ? "" : ", ", prefix);
			print_element(s, v, o->size, o);
			out_fmt(o, "' <repeats %zu times>", run);
			is_open = false;
			i += run;
		} else {
			if (!is_open)
				out_fmt(o, "%s%s\"", is_first ? "" : ", ", prefix);
			is_open = true;
			if (is_pair(s, text, i, n))
				v = 0x10000 + ((v & 0x3ff) << 10) + (element(text, ++i, 2) & 0x3ff);
			start = o->size;
			print_element(s, v, before, o);
			before = start;
			i++;
		}
		is_first = false;
	}
	out_str(o, is_open ? "\"" : "");
	if (has_more || i < n)
		out_str(o, "...");
}

size_t values_string_length(const struct values_scalar *s, const uint8_t *text, size_t n)
{
	return n && !element(text, n - 1, s->size) ? n - 1 : n;
}

static void print_printable(const char *name, struct out *o)
{
	char text[256];

	str_copy(text, sizeof(text), name ? name : "?");
	str_make_printable(text);
	out_str(o, text);
}

void values_enumerator_print(const struct values_type *t, const struct values_enumerator *e, struct out *o)
{
	if (t->scope) {
		print_printable(t->scope, o);
		out_str(o, "::");
	}
	if (t->is_scoped && t->name) {
		print_printable(t->name, o);
		out_str(o, "::");
	}
	print_printable(e->name, o);
}

/* ------------------------------------------------------------------ trees -------------------- */

static void print_node(const struct values_node *n, struct out *o);

static void print_children(const struct values_node *n, struct out *o)
{
	size_t n_bases = 0;

	for (size_t i = 0; i < n->n_children; i++) {
		const struct values_node *child = &n->children[i];

		out_str(o, i ? ", " : "");
		if (child->is_base)
			out_fmt(o, "<%s> = ", child->name ? child->name : "?");
		else if (child->name)
			out_fmt(o, "%s = ", child->name);
		print_node(child, o);
		if (child->repeats > 1)
			out_fmt(o, " <repeats %llu times>", (unsigned long long)child->repeats);
		n_bases += child->is_base;
	}
	if (values_type_strip(n->type)->kind != VALUES_TYPE_ARRAY && n_bases == n->n_children && !n->cut)
		out_str(o, n_bases ? ", <No data fields>" : "<No data fields>");
}

static void print_node(const struct values_node *n, struct out *o)
{
	if (n->text) {
		out_str(o, n->text);
		return;
	}
	out_char(o, '{');
	print_children(n, o);
	out_str(o, n->cut ? "...}" : "}");
}

void values_node_print(const struct values_node *n, struct out *o)
{
	static const char dots[] = "...";
	auto_out struct out text = { .limit = VALUES_TEXT_MAX - (sizeof(dots) - 1) };

	print_node(n, &text);
	if (text.data)
		out_bytes(o, text.data, text.size);
	if (out_error(&text) == -EFBIG)
		out_str(o, dots);
	else if (out_error(&text))
		o->error = out_error(&text);
}
