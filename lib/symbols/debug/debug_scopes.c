/* SPDX-License-Identifier: MIT */
/* Which functions and blocks are around an address. */
#include "symbols/debug/debug_internal.h"

#include <stdlib.h>

#include "base/vec.h"
#include "symbols/debug/die.h"

#define SCOPES_MAX (1u << 22) /* Of one image. */
#define AROUND_MAX 1024u	  /* Scopes of a unit around one address. */
static bool is_scope_tag(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
	       tag == DW_TAG_lexical_block;
}

/*
 * Add the pieces of code of a function or block.
 * @return false when there is no room or no time.
 */
static bool add_scopes(struct debug_info *d, struct debug_unit *u, Dwarf_Die *die, const struct debug_area *s)
{
	struct debug_ranges w = { .die = die };

	while (debug_next_range(d, &w)) {
		struct debug_area *scope;

		if (d->n_scopes == SCOPES_MAX ||
		    vec_reserve(&u->scopes, u->n_scopes, 1, &u->capacity, sizeof(*scope)) < 0)
			return false;
		scope = &u->scopes[u->n_scopes++];
		*scope = *s;
		scope->piece = (struct piece){ w.low, w.high, 0 };
		d->n_scopes++;
	}
	return !d->budget.spent;
}

/* The state of a walk through the DIEs of a unit. */
struct die_walk {
	Dwarf_Off at;
	Dwarf_Off parents[DEPTH_MAX + 1]; /**< Enclosing scope at each depth. */
	size_t depth;
};

/*
 * Visit one DIE.
 * @return false when the walk has to end: the DIE is broken, or a limit was hit.
 */
static bool walk_die(struct debug_info *d, struct debug_unit *u, struct die_walk *w)
{
	Dwarf_Off inside = w->parents[w->depth];
	Dwarf_Die die;
	size_t size;
	int tag;

	if (!dwarf_offdie(d->dw, w->at, &die))
		return false;
	tag = dwarf_tag(&die);
	size = tag == DW_TAG_invalid ? 0 : die_size(&die, d->info + u->end);
	if (!size)
		return false;
	if (is_scope_tag(tag)) {
		struct debug_area s = { .die = w->at, .parent = inside, .tag = tag };

		if (!add_scopes(d, u, &die, &s))
			return false;
		inside = w->at;
	}
	w->at += size;
	if (dwarf_haschildren(&die) > 0) {
		if (w->depth == DEPTH_MAX)
			return false;
		w->parents[++w->depth] = inside;
	}
	return true;
}

static void walk_unit(struct debug_info *d, struct debug_unit *u)
{
	struct die_walk w = { .at = u->die };

	do {
		if (!debug_spend(d))
			return;
		if (!d->info[w.at]) { /* The end of a list of children. */
			w.at++;
			w.depth--;
		} else if (!walk_die(d, u, &w)) {
			return;
		}
	} while (w.depth && w.at < u->end);
}

/* Read the scopes of a unit, once. */
void debug_read_scopes(struct debug_info *d, struct debug_unit *u)
{
	if (u->tried_scopes)
		return;
	u->tried_scopes = true;
	walk_unit(d, u);
	u->is_cut = d->budget.spent;
	pieces_sort(u->scopes, u->n_scopes, sizeof(*u->scopes));
}

/* The tightest span so far; of equal ones that of the first unit. */
struct tightest {
	struct debug_info *d;
	bool found;
	uint64_t size;
	size_t unit;
};

static bool is_tighter(const struct tightest *t, const struct debug_span *s)
{
	uint64_t size = s->piece.high - s->piece.low;

	return !t->found || size < t->size || (size == t->size && s->unit < t->unit);
}

static void set_tightest(struct tightest *t, const struct debug_span *s)
{
	t->found = true;
	t->size = s->piece.high - s->piece.low;
	t->unit = s->unit;
}

static bool keep_tightest(void *arg, const void *item)
{
	struct tightest *t = arg;

	if (is_tighter(t, item))
		set_tightest(t, item);
	return debug_spend(t->d);
}

/*
 * Find the unit of an address.  A removed function may leave a piece at address 0, so the tightest
 * piece is taken.
 */
struct debug_unit *debug_find_unit(struct debug_info *d, uint64_t address)
{
	struct tightest t = { .d = d };

	pieces_around(d->spans.items, d->spans.n, sizeof(*d->spans.items), address, keep_tightest, &t);
	return t.found ? &d->units[t.unit] : NULL;
}

struct around {
	const struct debug_area *items[AROUND_MAX];
	size_t n;
};

static bool keep_scope(void *arg, const void *item)
{
	struct around *a = arg;

	a->items[a->n++] = item;
	return a->n < AROUND_MAX;
}

static int compare_dies(const void *a, const void *b)
{
	const struct debug_area *const *x = a, *const *y = b;

	return (*x)->die < (*y)->die ? -1 : (*x)->die > (*y)->die;
}

size_t debug_find_chain(const struct debug_unit *u, uint64_t address, const struct debug_area **chain)
{
	struct around a;
	size_t n = 0;

	a.n = 0;
	pieces_around(u->scopes, u->n_scopes, sizeof(*u->scopes), address, keep_scope, &a);
	/* In the order of the file parents come before their children. */
	qsort(a.items, a.n, sizeof(a.items[0]), compare_dies);
	for (size_t i = 0; i < a.n; i++) {
		const struct debug_area *s = a.items[i];

		if (s->tag == DW_TAG_subprogram && (!n || s->parent == chain[n - 1]->die)) {
			n = 0;
			chain[n++] = s;
		} else if (n && n < DEPTH_MAX && s->parent == chain[n - 1]->die) {
			chain[n++] = s;
		}
	}
	return n;
}

/* ------------------------------------------------------------------ by function -------------- */

/*
 * What units tell of their extent may be nothing,
 * or not all.  Looking at the functions of all units takes time that other addresses need as well,
 * so it may take no more than half of the budget, except in a cubin; later questions go on.
 */
bool debug_may_search(struct debug_info *d)
{
	d->gave_up = false;
	if (d->n_searched == d->n_units || d->budget.spent)
		return false;
	d->gave_up = !d->is_cuda && !budget_has_half(&d->budget);
	return !d->gave_up;
}

void debug_search_unit(struct debug_info *d)
{
	size_t unit = d->n_searched++;
	struct debug_unit *u = &d->units[unit];

	debug_read_scopes(d, u);
	for (size_t i = 0; i < u->n_scopes && debug_spend(d); i++) {
		const struct debug_area *s = &u->scopes[i];

		if (s->tag == DW_TAG_subprogram &&
		    debug_add_span(&d->functions, (struct debug_span){ s->piece, unit }) < 0)
			d->budget.spent = true;
	}
}

/* A search for the function around an address. */
struct search {
	uint64_t address;
	struct tightest with_line; /**< Of those that have a line there. */
	bool found;
	size_t first; /**< The first unit that has one, if any was found. */
};

static bool consider(void *arg, const void *item)
{
	struct search *w = arg;
	struct debug_info *d = w->with_line.d;
	const struct debug_span *s = item;

	if (!w->found || s->unit < w->first)
		w->first = s->unit;
	w->found = true;
	if (debug_spend(d) && is_tighter(&w->with_line, s) && debug_has_line(d, &d->units[s->unit], w->address))
		set_tightest(&w->with_line, s);
	return !d->budget.spent;
}

struct debug_unit *debug_search(struct debug_info *d, uint64_t address, bool *ret_has_line)
{
	struct debug_span_list *l = &d->functions;
	struct search w = { .address = address, .with_line.d = d };

	debug_sort_spans(l);
	pieces_around(l->items, l->n, sizeof(*l->items), address, consider, &w);
	while (!w.with_line.found && debug_may_search(d)) {
		size_t known = l->n;

		debug_search_unit(d);
		for (size_t i = known; i < l->n; i++)
			if (address >= l->items[i].piece.low && address < l->items[i].piece.high)
				(void)consider(&w, &l->items[i]);
	}
	*ret_has_line = w.with_line.found;
	if (w.with_line.found)
		return &d->units[w.with_line.unit];
	return w.found ? &d->units[w.first] : NULL;
}

struct debug_unit *debug_unit_of(struct debug_info *d, uint64_t address)
{
	struct debug_unit *u = d->is_cuda ? NULL : debug_find_unit(d, address);
	bool found;

	return u ? u : debug_search(d, address, &found);
}

size_t debug_info_scopes(struct debug_info *d, uint64_t address, struct debug_scope *ret,
			 size_t max)
{
	const struct debug_area *chain[DEPTH_MAX];
	struct debug_unit *u;
	size_t n = 0;

	debug_enter(d);
	u = debug_unit_of(d, address);
	if (u) {
		debug_read_scopes(d, u);
		n = debug_find_chain(u, address, chain);
	}
	debug_leave(d);
	if (n > max)
		n = max;
	for (size_t i = 0; i < n; i++)
		ret[i] = (struct debug_scope){ chain[i]->piece.low, chain[i]->piece.high,
						 chain[i]->die, chain[i]->tag };
	return n;
}

