/* SPDX-License-Identifier: MIT */
#include "values/text/summary.h"

#include <math.h>
#include <string.h>

/* The values of the lanes that have one, in their order. */
struct known {
	const struct values_node *at[VALUES_SUMMARY_LANES_MAX];
	size_t n;
};

static const struct values_number *number(const struct values_node *n)
{
	return &n->number;
}

static bool is_less(const struct values_number *a, const struct values_number *b)
{
	if (a->is_real)
		return a->real < b->real;
	return a->is_signed ? (int64_t)a->integer < (int64_t)b->integer : a->integer < b->integer;
}

static bool are_same(const struct values_node *a, const struct values_node *b)
{
	if (a->state != b->state || a->n_children != b->n_children || a->repeats != b->repeats || !a->text != !b->text)
		return false;
	if (a->text)
		return !strcmp(a->text, b->text);
	for (size_t i = 0; i < a->n_children; i++)
		if (!are_same(&a->children[i], &b->children[i]))
			return false;
	return true;
}

static bool are_all_same(const struct values_node *const *nodes, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!are_same(nodes[0], nodes[i]))
			return false;
	return true;
}

static bool are_numbers(const struct known *k)
{
	for (size_t i = 0; i < k->n; i++)
		if (!k->at[i]->has_number || (number(k->at[i])->is_real && isnan(number(k->at[i])->real)))
			return false;
	return true;
}

static size_t count_different(const struct known *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++) {
		size_t before = 0;

		while (before < i && !are_same(k->at[before], k->at[i]))
			before++;
		n += before == i;
	}
	return n;
}

/* @return the step of an arithmetic sequence; 0: it is none. */
static uint64_t step_of(const struct known *k)
{
	uint64_t step;

	if (k->n < 3 || number(k->at[0])->is_real)
		return 0;
	step = number(k->at[1])->integer - number(k->at[0])->integer;
	for (size_t i = 2; i < k->n; i++)
		if (number(k->at[i])->integer - number(k->at[i - 1])->integer != step)
			return 0;
	return step;
}

static void print_number(const struct values_node *n, struct out *o)
{
	const struct values_number *v = number(n);

	if (v->is_real)
		out_str(o, n->text);
	else if (values_type_strip(n->type)->kind == VALUES_TYPE_POINTER)
		out_hex(o, v->integer);
	else if (v->is_signed)
		out_i64(o, (int64_t)v->integer);
	else
		out_u64(o, v->integer);
}

static void print_sequence(const struct known *k, uint64_t step, struct out *o)
{
	print_number(k->at[0], o);
	out_str(o, "..");
	print_number(k->at[k->n - 1], o);
	if (step == 1)
		return;
	out_str(o, " step ");
	if (values_type_strip(k->at[0]->type)->kind == VALUES_TYPE_POINTER && (int64_t)step > 0)
		out_hex(o, step);
	else
		out_i64(o, (int64_t)step);
}

static void print_range(const struct known *k, struct out *o)
{
	const struct values_node *least = k->at[0], *greatest = k->at[0];

	for (size_t i = 1; i < k->n; i++) {
		if (is_less(number(k->at[i]), number(least)))
			least = k->at[i];
		if (is_less(number(greatest), number(k->at[i])))
			greatest = k->at[i];
	}
	print_number(least, o);
	out_str(o, "..");
	print_number(greatest, o);
	out_fmt(o, " (%zu different)", count_different(k));
}

/* Is it a struct, or an array, with the same parts in all lanes? */
static bool have_same_parts(const struct known *k)
{
	for (size_t i = 0; i < k->n; i++) {
		const struct values_node *n = k->at[i];

		if (n->text || n->cut || n->n_children != k->at[0]->n_children)
			return false;
		for (size_t c = 0; c < n->n_children; c++)
			if (n->children[c].repeats != k->at[0]->children[c].repeats)
				return false;
	}
	return true;
}

/* Nesting is that of the values, which is bounded. */
static void print_parts(const struct known *k, struct out *o)
{
	const struct values_node *first = k->at[0];

	out_char(o, '{');
	for (size_t c = 0; c < first->n_children; c++) {
		const struct values_node *parts[VALUES_SUMMARY_LANES_MAX];
		const struct values_node *child = &first->children[c];

		for (size_t i = 0; i < k->n; i++)
			parts[i] = &k->at[i]->children[c];
		out_str(o, c ? ", " : "");
		if (child->name)
			out_fmt(o, child->is_base ? "<%s> = " : "%s = ", child->name);
		(void)values_summary_print(parts, k->n, o);
		if (child->repeats > 1)
			out_fmt(o, " <repeats %llu times>", (unsigned long long)child->repeats);
	}
	out_char(o, '}');
}

static void print_known(const struct known *k, struct out *o)
{
	uint64_t step;

	if (are_all_same(k->at, k->n)) {
		values_node_print(k->at[0], o);
	} else if (are_numbers(k)) {
		step = step_of(k);
		if (step)
			print_sequence(k, step, o);
		else
			print_range(k, o);
	} else if (have_same_parts(k)) {
		print_parts(k, o);
	} else {
		out_fmt(o, "%zu different", count_different(k));
	}
}

bool values_summary_print(const struct values_node *const *lanes, size_t n, struct out *o)
{
	const struct values_node *unknown = NULL;
	struct known k = { .n = 0 };

	if (are_all_same(lanes, n)) {
		values_node_print(lanes[0], o);
		return true;
	}
	for (size_t i = 0; i < n && i < VALUES_SUMMARY_LANES_MAX; i++) {
		if (lanes[i]->state == VALUES_OK || lanes[i]->state == VALUES_PARTIAL)
			k.at[k.n++] = lanes[i];
		else
			unknown = lanes[i];
	}
	if (k.n)
		print_known(&k, o);
	if (!unknown)
		return false;
	out_str(o, k.n ? ", " : "");
	if (unknown->text)
		out_str(o, unknown->text);
	else
		out_str(o, "<unavailable>");
	out_fmt(o, " in %zu lane%s", n - k.n, n - k.n == 1 ? "" : "s");
	return false;
}
