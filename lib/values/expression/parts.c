/* SPDX-License-Identifier: MIT */
#include "values/expression/parts.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "values/expression/expression_internal.h"
#include "values/text/value_internal.h"

/* Members that the search for one may pass: a hostile struct may contain itself many times. */
#define MEMBER_STEPS_MAX 65536u
#define NAME_MAX_BYTES	 256u

static struct values_type *follow(struct values_type *t)
{
	struct values_type *s = values_type_strip(t);

	if (s->kind == VALUES_TYPE_REFERENCE || s->kind == VALUES_TYPE_RVALUE_REFERENCE)
		return values_type_target(s);
	return t;
}

static bool has_members(const struct values_type *t)
{
	return t->kind == VALUES_TYPE_STRUCT || t->kind == VALUES_TYPE_UNION;
}

/* ------------------------------------------------------------------ searching ---------------- */

static bool find_in(struct values_type *t, const char *name, unsigned level, unsigned *steps,
		    struct values_member *ret);

/* Search what is in a member without a name, or in a class that the struct is derived from. */
static bool find_below(const struct values_member *m, const char *name, unsigned level, unsigned *steps,
		       struct values_member *ret)
{
	struct values_type *inside = values_type_strip(m->type);

	if (level == VALUES_LEVELS_MAX || !has_members(inside) || !find_in(inside, name, level + 1, steps, ret))
		return false;
	ret->bit_offset += m->bit_offset;
	return true;
}

/* What a struct itself has hides what is in the classes that it is derived from. */
static bool find_in(struct values_type *t, const char *name, unsigned level, unsigned *steps,
		    struct values_member *ret)
{
	size_t n;
	const struct values_member *m = values_type_members(t, &n);

	for (unsigned bases = 0; bases < 2; bases++)
		for (size_t i = 0; i < n && *steps; i++) {
			--*steps;
			if (!m[i].has_place || m[i].is_base != bases)
				continue;
			if (m[i].name && !m[i].is_base) {
				if (strcmp(m[i].name, name) != 0)
					continue;
				*ret = m[i];
				return true;
			}
			if (find_below(&m[i], name, level, steps, ret))
				return true;
		}
	return false;
}

bool values_member_find(struct values_type *t, const char *name, struct values_member *ret)
{
	unsigned steps = MEMBER_STEPS_MAX;

	return find_in(t, name, 0, &steps, ret);
}

/* ------------------------------------------------------------------ what there is ------------ */

static bool leads_to_parts(struct values_type *pointer)
{
	struct values_type *t = values_type_strip(values_type_target(pointer));

	return (has_members(t) && !t->is_declaration) || t->kind == VALUES_TYPE_ARRAY;
}

uint64_t values_parts_count(struct values_type *t)
{
	struct values_type *s = values_type_strip(follow(t));
	struct values_scalar number;
	size_t n;

	switch (s->kind) {
	case VALUES_TYPE_STRUCT:
	case VALUES_TYPE_UNION:
		if (s->is_declaration || values_wrapped_number(s, &number))
			return 0;
		(void)values_type_members(s, &n);
		return n;
	case VALUES_TYPE_ARRAY:
		return s->has_count && values_type_stride(s) ? s->count : 0;
	case VALUES_TYPE_POINTER:
		return leads_to_parts(s);
	default:
		return 0;
	}
}

struct values_type *values_part_type(struct values_type *t, uint64_t index)
{
	struct values_type *s = values_type_strip(follow(t));
	size_t n;

	if (has_members(s))
		return follow(values_type_members(s, &n)[index].type);
	return follow(values_type_target(s));
}

/* ------------------------------------------------------------------ names -------------------- */

static void print_printable(const char *name, struct out *o)
{
	char text[NAME_MAX_BYTES];

	str_copy(text, sizeof(text), name);
	str_make_printable(text);
	out_str(o, text);
}

static void print_member(const struct values_member *m, struct out *o)
{
	auto_out struct out base = { .limit = NAME_MAX_BYTES };

	if (m->is_base) {
		values_type_print(values_type_strip(m->type), &base);
		out_fmt(o, "<%s>", base.data ? base.data : "?");
	} else if (m->name) {
		print_printable(m->name, o);
	}
}

void values_part_print_name(const struct values_expression *whole, struct values_type *t, uint64_t index,
			    struct out *o)
{
	struct values_type *s = values_type_strip(follow(t));
	const struct values_term *root = &whole->terms[whole->root];
	size_t n;

	if (has_members(s)) {
		print_member(&values_type_members(s, &n)[index], o);
	} else if (s->kind == VALUES_TYPE_ARRAY) {
		out_fmt(o, "[%llu]", (unsigned long long)index);
	} else {
		out_char(o, '*');
		if (root->op == OP_NAME || root->op == OP_MEMBER || root->op == OP_ARROW)
			print_printable(root->name, o);
	}
}

/* ------------------------------------------------------------------ expressions -------------- */

/* Operators that bind as tightly as those that are written behind an operand. */
static bool is_tight(enum values_op op)
{
	return op == OP_NAME || op == OP_REGISTER || op == OP_LANE || op == OP_INDEX || op == OP_MEMBER ||
	       op == OP_ARROW || op == OP_PART;
}

/* Does a pair of parentheses enclose all of it?  A character could be one as well: then there are two pairs. */
static bool is_enclosed(const char *text)
{
	unsigned depth = 0;

	if (*text != '(' || strchr(text, '\''))
		return false;
	for (; *text; text++) {
		depth += *text == '(';
		depth -= *text == ')';
		if (!depth)
			return !text[1];
	}
	return false;
}

/* An expression and what it is written with: `*p` is what p leads to. */
struct whole {
	const char *text;
	enum values_op op;
	bool is_target; /* The text is that of a pointer to it. */
};

/* Text of an operand, as another operator's. */
static void print_operand(const struct whole *w, struct out *o)
{
	out_fmt(o, is_tight(w->op) || is_enclosed(w->text) ? "%s" : "(%s)", w->text);
}

static struct whole whole_of(const struct values_expression *e)
{
	const struct values_term *root = &e->terms[e->root];
	struct whole w = { .text = e->body };

	if (root->op == OP_REPEAT)
		root = &e->terms[root->a];
	w.op = root->op;
	/* In parentheses it begins with one. */
	if (root->op != OP_DEREFERENCE || *w.text != '*')
		return w;
	w.is_target = true;
	w.op = e->terms[root->a].op;
	w.text += 1 + strspn(w.text + 1, " \t\n\r");
	return w;
}

static void print_element(const struct whole *w, bool is_repeat, uint64_t index, struct out *o)
{
	/* The pointer to a run's first element, or the array itself. */
	if (is_repeat == w->is_target) {
		print_operand(w, o);
	} else {
		out_str(o, is_repeat ? "(&" : "(*");
		print_operand(w, o);
		out_char(o, ')');
	}
	out_fmt(o, "[%llu]", (unsigned long long)index);
}

static bool is_name(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

/* Does the name of a member mean it?  That of a base class may be hidden. */
static bool is_meant(struct values_type *t, const struct values_member *m)
{
	struct values_member found;

	return m->name && !m->is_base && is_name(m->name) && values_member_find(t, m->name, &found) &&
	       found.bit_offset == m->bit_offset && found.bit_size == m->bit_size && found.type == m->type;
}

static bool print_part(const struct whole *w, struct values_type *t, uint64_t index, struct out *o)
{
	size_t n;
	const struct values_member *m = &values_type_members(t, &n)[index];

	if (!m->has_place)
		return false;
	print_operand(w, o);
	out_str(o, w->is_target ? "->" : ".");
	if (is_meant(t, m))
		out_str(o, m->name);
	else
		out_fmt(o, "<%llu>", (unsigned long long)index);
	return true;
}

/* Nothing is told that would not be parsed again. */
static bool is_parsed(const char *text)
{
	struct values_expression *e = NULL;
	struct values_error ignored;
	bool is_good = values_expression_parse(text, &e, &ignored) == 0;

	values_expression_destroy(e);
	return is_good;
}

bool values_part_print_expression(const struct values_expression *whole, struct values_type *t, uint64_t index,
				  struct out *o)
{
	struct values_type *s = values_type_strip(follow(t));
	struct whole w = whole_of(whole);
	auto_out struct out text = { .limit = VALUES_EXPRESSION_MAX };

	if (has_members(s)) {
		if (!print_part(&w, s, index, &text))
			return false;
	} else if (s->kind == VALUES_TYPE_ARRAY) {
		print_element(&w, whole->terms[whole->root].op == OP_REPEAT, index, &text);
	} else {
		out_fmt(&text, w.op < OP_CONDITIONAL ? "*%s" : "*(%s)", whole->body);
	}
	if (whole->format)
		out_fmt(&text, ",%c", (char)whole->format);
	if (out_error(&text) || !is_parsed(text.data))
		return false;
	out_bytes(o, text.data, text.size);
	return true;
}

bool values_expression_is_name(const char *text)
{
	return is_name(text) && is_parsed(text);
}
