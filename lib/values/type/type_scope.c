/* SPDX-License-Identifier: MIT */
/*
 * The namespaces and classes that types are in.  A DIE does not know what it lies in, so a unit is
 * walked once, when the first of its types is wanted.
 */
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "values/type/type_internal.h"

/* DIEs that are looked at for all units together; what is beyond has no scope in its name. */
#define SCOPE_STEPS_MAX (1u << 18)
#define SCOPE_DEPTH_MAX 16u
#define SCOPE_NAME_MAX	512u

static int compare_offsets(const void *a, const void *b)
{
	const struct values_type_place *x = a, *y = b;

	return x->die < y->die ? -1 : x->die > y->die;
}

/* @return the name of a scope, which the table owns; NULL: no memory. */
static const char *add_name(struct values_types *ts, const char *outer, const char *name)
{
	char text[SCOPE_NAME_MAX];
	char *copy;

	(void)snprintf(text, sizeof(text), "%s%s%s", outer ? outer : "", outer ? "::" : "", name);
	if (vec_reserve(&ts->scope_names, ts->n_scope_names, 1, &ts->scope_name_capacity, sizeof(copy)) < 0 ||
	    !(copy = strdup(text)))
		return NULL;
	ts->scope_names[ts->n_scope_names++] = copy;
	return copy;
}

static void add_place(struct values_types *ts, Dwarf_Off die, const char *scope)
{
	if (vec_reserve(&ts->places, ts->n_places, 1, &ts->place_capacity, sizeof(*ts->places)) == 0)
		ts->places[ts->n_places++] = (struct values_type_place){ die, scope };
}

static void walk(struct values_types *ts, Dwarf_Die *parent, const char *scope, unsigned depth)
{
	struct debug_children c;
	Dwarf_Die child;

	debug_children_init(&c, ts->d, parent, ts->scope_steps);
	while (debug_children_next(&c, &child)) {
		int tag = dwarf_tag(&child);
		bool is_class = tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
		const char *name;

		ts->scope_steps = c.steps;
		if (scope && (is_class || tag == DW_TAG_enumeration_type || tag == DW_TAG_typedef))
			add_place(ts, dwarf_dieoffset(&child), scope);
		if ((!is_class && tag != DW_TAG_namespace) || depth == SCOPE_DEPTH_MAX ||
		    dwarf_haschildren(&child) <= 0)
			continue;
		name = debug_info_string(ts->d, &child, DW_AT_name);
		if (!name && is_class)
			continue;
		name = add_name(ts, scope, name ? name : "(anonymous namespace)");
		if (name)
			walk(ts, &child, name, depth + 1);
		c.steps = ts->scope_steps < c.steps ? ts->scope_steps : c.steps;
	}
	ts->scope_steps = c.steps;
}

const char *values_type_scope(struct values_types *ts, Dwarf_Off die, Dwarf_Die *cu)
{
	const struct values_type_place *found;
	Dwarf_Off unit = dwarf_dieoffset(cu);
	struct values_type_place key = { .die = die };
	size_t i = 0;

	while (i < ts->n_scope_units && ts->scope_units[i] != unit)
		i++;
	if (i == ts->n_scope_units) {
		if (vec_reserve(&ts->scope_units, i, 1, &ts->scope_unit_capacity, sizeof(unit)) < 0)
			return NULL;
		ts->scope_units[ts->n_scope_units++] = unit;
		if (i == 0)
			ts->scope_steps = SCOPE_STEPS_MAX;
		walk(ts, cu, NULL, 0);
		if (ts->n_places)
			qsort(ts->places, ts->n_places, sizeof(*ts->places), compare_offsets);
	}
	found = ts->n_places ? bsearch(&key, ts->places, ts->n_places, sizeof(key), compare_offsets) : NULL;
	return found ? found->scope : NULL;
}

void values_type_scopes_deinit(struct values_types *ts)
{
	for (size_t i = 0; i < ts->n_scope_names; i++)
		free(ts->scope_names[i]);
	free(ts->scope_names);
	free(ts->scope_units);
	free(ts->places);
}
