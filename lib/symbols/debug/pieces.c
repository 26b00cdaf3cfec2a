/* SPDX-License-Identifier: MIT */
/*
 * The sorted array is also a balanced tree: the item in the middle of a part of it is the root of
 * that part.  Each knows how far the pieces of its part reach.
 */
#include "symbols/debug/pieces.h"

#include <stdlib.h>

struct list {
	const char *items;
	size_t size;
	uint64_t address;
	bool (*visit)(void *arg, const void *item);
	void *arg;
};

static int compare(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return (x->high < y->high) - (x->high > y->high);
}

static uint64_t set_reach(char *items, size_t first, size_t end, size_t size)
{
	size_t middle = first + (end - first) / 2;
	struct piece *p;
	uint64_t part;

	if (first == end)
		return 0;
	p = (struct piece *)(void *)(items + middle * size);
	p->reach = p->high;
	part = set_reach(items, first, middle, size);
	if (part > p->reach)
		p->reach = part;
	part = set_reach(items, middle + 1, end, size);
	if (part > p->reach)
		p->reach = part;
	return p->reach;
}

void pieces_sort(void *items, size_t n, size_t size)
{
	if (!n)
		return;
	qsort(items, n, size, compare);
	(void)set_reach(items, 0, n, size);
}

/* @return false when the visitor has enough. */
static bool search(const struct list *l, size_t first, size_t end)
{
	size_t middle = first + (end - first) / 2;
	const struct piece *p;

	if (first == end)
		return true;
	p = (const struct piece *)(const void *)(l->items + middle * l->size);
	if (p->reach <= l->address)
		return true;
	if (p->low <= l->address &&
	    (!search(l, middle + 1, end) || (l->address < p->high && !l->visit(l->arg, p))))
		return false;
	return search(l, first, middle);
}

void pieces_around(const void *items, size_t n, size_t size, uint64_t address,
		   bool (*visit)(void *arg, const void *item), void *arg)
{
	struct list l = { items, size, address, visit, arg };

	(void)search(&l, 0, n);
}
