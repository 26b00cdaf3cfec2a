/* SPDX-License-Identifier: MIT */
/*
 * Names of types, as C's declarations have them: what is in front of the name that is declared, and
 * what is behind it.
 */
#include <dwarf.h>
#include <string.h>

#include "base/str.h"
#include "values/type/type_internal.h"

/* Functions that are parameters of functions: each level could name all the others. */
#define NESTING_MAX 4u

static void print_type(struct values_type *t, unsigned nesting, struct out *o);

static bool is_qualifier(const struct values_type *t)
{
	return t->kind > VALUES_TYPE_TYPEDEF;
}

static bool is_declarator(const struct values_type *t)
{
	return t->kind == VALUES_TYPE_POINTER || t->kind == VALUES_TYPE_REFERENCE ||
	       t->kind == VALUES_TYPE_RVALUE_REFERENCE || t->kind == VALUES_TYPE_MEMBER_POINTER ||
	       t->kind == VALUES_TYPE_ARRAY || t->kind == VALUES_TYPE_FUNCTION;
}

static const char *qualifier(const struct values_type *t)
{
	switch (t->kind) {
	case VALUES_TYPE_CONST:
		return "const";
	case VALUES_TYPE_VOLATILE:
		return "volatile";
	case VALUES_TYPE_RESTRICT:
		return t->is_c ? "restrict" : "__restrict__";
	default:
		return "_Atomic";
	}
}

/* A name of the target's, which may end up on a terminal. */
static void print_name(const char *name, struct out *o)
{
	char text[1024];

	str_copy(text, sizeof(text), name);
	str_make_printable(text);
	out_str(o, text);
}

static void print_base(const struct values_type *t, struct out *o)
{
	const char *tag = t->kind == VALUES_TYPE_UNION ? "union" : t->kind == VALUES_TYPE_ENUM ? "enum" : "struct";
	bool is_tagged = t->kind == VALUES_TYPE_STRUCT || t->kind == VALUES_TYPE_UNION ||
			 t->kind == VALUES_TYPE_ENUM;

	if (t->kind == VALUES_TYPE_VOID)
		out_str(o, "void");
	else if (is_tagged && !t->name)
		out_fmt(o, "%s {...}", tag);
	else if (!t->name)
		out_str(o, "?");
	else {
		if (is_tagged && t->is_c)
			out_fmt(o, "%s ", tag);
		if (t->scope) {
			print_name(t->scope, o);
			out_str(o, "::");
		}
		print_name(t->name, o);
	}
}

/* The levels of a type, outermost first, down to what has a name. */
struct levels {
	struct values_type *at[VALUES_TYPE_DEPTH_MAX];
	unsigned n;
};

static void collect(struct values_type *t, struct levels *l)
{
	l->n = 0;
	while (l->n < VALUES_TYPE_DEPTH_MAX) {
		l->at[l->n++] = t;
		if (!is_qualifier(t) && !is_declarator(t))
			return;
		t = values_type_target(t);
	}
	/* Nobody writes such a name. */
	l->at[l->n - 1] = &t->types->unknown;
}

static void print_qualifiers(const struct levels *l, unsigned first, unsigned end, bool behind, struct out *o)
{
	for (unsigned kind = VALUES_TYPE_CONST; kind <= VALUES_TYPE_ATOMIC; kind++)
		for (unsigned i = first; i < end; i++)
			if (l->at[i]->kind == kind) {
				out_fmt(o, behind ? " %s" : "%s ", qualifier(l->at[i]));
				break;
			}
}

/* Needs what is declared parentheses, because its declarator comes before that of level i? */
static bool needs_parentheses(const struct levels *l, unsigned i)
{
	while (i-- > 0)
		if (!is_qualifier(l->at[i]))
			return l->at[i]->kind != VALUES_TYPE_ARRAY && l->at[i]->kind != VALUES_TYPE_FUNCTION;
	return false;
}

static void print_star(struct values_type *t, struct out *o)
{
	switch (t->kind) {
	case VALUES_TYPE_REFERENCE:
		out_char(o, '&');
		break;
	case VALUES_TYPE_RVALUE_REFERENCE:
		out_str(o, "&&");
		break;
	case VALUES_TYPE_MEMBER_POINTER:
		print_base(values_type_container(t), o);
		out_str(o, "::*");
		break;
	default:
		out_char(o, '*');
	}
}

/* The first of the qualifiers of level i, which may stand in front of arrays of it. */
static unsigned first_qualifier(const struct levels *l, unsigned i)
{
	while (i > 0 && (is_qualifier(l->at[i - 1]) || l->at[i - 1]->kind == VALUES_TYPE_ARRAY))
		i--;
	return i;
}

/* Is a blank wanted between what was printed and a declarator? */
static bool wants_space(const struct out *o)
{
	char last = o->size ? o->data[o->size - 1] : ' ';

	return last != ' ' && last != '*' && last != '&' && last != '(';
}

static void print_before(struct levels *l, struct out *o)
{
	for (unsigned i = l->n - 1; i-- > 0;) {
		struct values_type *t = l->at[i];

		if (is_qualifier(t))
			continue;
		if (t->kind == VALUES_TYPE_ARRAY || t->kind == VALUES_TYPE_FUNCTION) {
			if (needs_parentheses(l, i))
				out_str(o, wants_space(o) ? " (" : "(");
			continue;
		}
		if (wants_space(o))
			out_char(o, ' ');
		print_star(t, o);
		print_qualifiers(l, first_qualifier(l, i), i, true, o);
	}
}

static void print_parameters(struct values_type *t, unsigned nesting, struct out *o)
{
	size_t n;
	const struct values_member *m = values_type_members(t, &n);

	out_char(o, '(');
	if (!n && (!t->is_c || t->is_prototyped))
		out_str(o, "void");
	/* Types that have each other as parameters are as many as one likes: the limit of the text ends them. */
	for (size_t i = 0; i < n && !out_error(o); i++) {
		out_str(o, i ? ", " : "");
		if (!m[i].type)
			out_str(o, "...");
		else
			print_type(m[i].type, nesting + 1, o);
	}
	out_char(o, ')');
}

static void print_behind(struct levels *l, unsigned nesting, struct out *o)
{
	bool is_first = true;

	for (unsigned i = 0; i + 1 < l->n; i++) {
		struct values_type *t = l->at[i];

		if (t->kind != VALUES_TYPE_ARRAY && t->kind != VALUES_TYPE_FUNCTION)
			continue;
		if (needs_parentheses(l, i))
			out_char(o, ')');
		else if (is_first && wants_space(o))
			out_char(o, ' ');
		is_first = false;
		if (t->kind == VALUES_TYPE_FUNCTION)
			print_parameters(t, nesting, o);
		else if (t->is_vector)
			out_fmt(o, "__attribute__ ((vector_size(%llu)))", (unsigned long long)t->count);
		else if (t->has_count)
			out_fmt(o, "[%llu]", (unsigned long long)t->count);
		else
			out_str(o, "[]");
	}
}

/* cuda-gdb writes the space of the innermost pointer first of all. */
static void print_space(const struct levels *l, struct out *o)
{
	for (unsigned i = l->n; i-- > 0;)
		if (l->at[i]->kind == VALUES_TYPE_POINTER && l->at[i]->scalar.space) {
			out_fmt(o, "@%s ", l->at[i]->scalar.space);
			return;
		}
}

static void print_type(struct values_type *t, unsigned nesting, struct out *o)
{
	struct levels l;

	if (nesting > NESTING_MAX) {
		out_str(o, "...");
		return;
	}
	collect(t, &l);
	print_space(&l, o);
	print_qualifiers(&l, first_qualifier(&l, l.n - 1), l.n - 1, false, o);
	print_base(l.at[l.n - 1], o);
	print_before(&l, o);
	print_behind(&l, nesting, o);
}

void values_type_print(struct values_type *t, struct out *o)
{
	print_type(t, 0, o);
}
