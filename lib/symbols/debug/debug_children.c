/* SPDX-License-Identifier: MIT */
/* What is inside a DIE: its children, the parameters of a function. */
#include "symbols/debug/debug_internal.h"

#include <errno.h>

#include "symbols/debug/die.h"
#include "symbols/debug/die_type.h"

#define TYPE_TEXT_MAX 256 /* Bytes of the text of a type; a longer one ends in "...". */

/* Find the function around an address, not what is inlined into it. */
static bool find_subprogram(struct debug_info *d, struct debug_unit *u, uint64_t address, Dwarf_Die *ret)
{
	const struct debug_area *chain[DEPTH_MAX];

	if (!u)
		return false;
	debug_read_scopes(d, u);
	return debug_find_chain(u, address, chain) && dwarf_offdie(d->dw, chain[0]->die, ret);
}

static int visit_parameter(struct debug_info *d, Dwarf_Die *die,
			   int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	const char *name = die_name(die, d->info, d->info_size);
	char type[TYPE_TEXT_MAX], base[TYPE_TEXT_MAX];
	struct symbols_parameter p = { .name = name ? name : "", .type = type, .base = base };
	struct die_type t;

	if (die_type_of(die, &t) < 0) {
		type[0] = base[0] = '\0';
	} else {
		die_type_text(&t.die, d->info, d->info_size, false, type, sizeof(type));
		die_type_text(&t.die, d->info, d->info_size, true, base, sizeof(base));
		p.size = t.size;
	}
	return visit(arg, &p);
}

/* Walk DIE by DIE: parameters are children of the function, but not of what is inside of it. */
static int walk_parameters(struct debug_info *d, Dwarf_Die *function, const uint8_t *end,
			   int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	const uint8_t *at = (const uint8_t *)function->addr;
	Dwarf_Die die = *function;
	size_t depth = 0;
	int r = 0;

	do {
		size_t size;

		if (!debug_spend(d))
			return -EBADMSG;
		if (depth && !*at) {
			at++;
			depth--;
			continue;
		}
		size = dwarf_offdie(d->dw, (Dwarf_Off)(at - d->info), &die) ? die_size(&die, end) : 0;
		if (!size)
			return -EBADMSG;
		if (depth == 1 && dwarf_tag(&die) == DW_TAG_formal_parameter)
			r = visit_parameter(d, &die, visit, arg);
		at += size;
		depth += dwarf_haschildren(&die) > 0;
	} while (r == 0 && depth && at < end);
	return r;
}

int debug_info_parameters(struct debug_info *d, uint64_t address,
			  int (*visit)(void *arg, const struct symbols_parameter *p), void *arg)
{
	struct debug_unit *u = d->is_cuda ? NULL : debug_find_unit(d, address);
	Dwarf_Die die;
	bool found;
	int r = -ENOENT;

	debug_enter(d);
	if (!find_subprogram(d, u, address, &die)) {
		u = debug_search(d, address, &found);
		if (!find_subprogram(d, u, address, &die))
			u = NULL;
	}
	if (u)
		r = walk_parameters(d, &die, d->info + u->end, visit, arg);
	debug_leave(d);
	return r;
}

/* Pass over a DIE.  @return false when it is broken. */
static bool pass_die(struct debug_children *c, Dwarf_Die *die)
{
	size_t size = dwarf_tag(die) == DW_TAG_invalid ?
			      0 :
			      die_size(die, c->d->info + c->end);

	c->at += size;
	if (size && dwarf_haschildren(die) > 0)
		c->depth++;
	return size;
}

/* Units are in the order of the file. */
static const struct debug_unit *unit_with(const struct debug_info *d, Dwarf_Off die)
{
	size_t low = 0, high = d->n_units;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->units[middle].end <= die)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->n_units && die >= d->units[low].die ? &d->units[low] : NULL;
}

void debug_children_init(struct debug_children *c, struct debug_info *d, Dwarf_Die *parent,
			 uint32_t steps)
{
	const struct debug_unit *u;

	*c = (struct debug_children){ .d = d, .at = dwarf_dieoffset(parent), .steps = steps };
	u = unit_with(d, c->at);
	if (u)
		c->end = u->end;
	if (!pass_die(c, parent))
		c->depth = 0;
}

bool debug_children_next(struct debug_children *c, Dwarf_Die *ret)
{
	while (c->depth && c->at < c->end && c->steps) {
		size_t depth = c->depth;

		c->steps--;
		if (!c->d->info[c->at]) { /* The end of a list of children. */
			c->at++;
			c->depth--;
			continue;
		}
		if (!dwarf_offdie(c->d->dw, c->at, ret) || !pass_die(c, ret) ||
		    c->depth > DEPTH_MAX)
			break;
		if (depth == 1)
			return true;
	}
	c->depth = 0;
	return false;
}
