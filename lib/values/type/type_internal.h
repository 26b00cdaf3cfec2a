/* SPDX-License-Identifier: MIT */
#ifndef VALUES_TYPE_INTERNAL_H
#define VALUES_TYPE_INTERNAL_H

/** @file type_internal.h  The table of types; internal. */

#include "values/type/type.h"

/** The scope of a type that is in one. */
struct values_type_place {
	Dwarf_Off die;
	const char *scope;
};

struct values_types {
	struct debug_info *d;
	bool is_cuda, cut;
	struct values_type **list; /**< All of them, each allocated. */
	size_t n, capacity;
	/** Those of the debug information by their offset, open addressing; the size is a power of 2. */
	struct values_type **by_die;
	size_t n_by_die, slots;
	struct values_type *named[64]; /**< Those made up by their names. */
	size_t n_named;
	size_t n_members; /**< Of all types together. */
	/* Scopes of the units that were walked for them (type_scope.c). */
	struct values_type_place *places; /**< By their offsets. */
	char **scope_names;
	Dwarf_Off *scope_units;
	size_t n_places, place_capacity, n_scope_names, scope_name_capacity, n_scope_units, scope_unit_capacity;
	uint32_t scope_steps;
	struct values_type unknown, nothing; /**< What is beyond a limit; void. */
};

/** @return a new type of the table; the unknown one when there is no room. */
struct values_type *values_type_new(struct values_types *ts, enum values_type_kind kind);
/** Fill in a type from its DIE. */
void values_type_read(struct values_type *t, Dwarf_Die *die);
/** Read the members, enumerators or parameters of a type from its DIE. */
void values_type_read_members(struct values_type *t);
/**
 * Find the namespaces and classes around a type.
 * @param cu  Its compile unit.
 * @return as "a::b", owned by the table; NULL: none.
 */
const char *values_type_scope(struct values_types *ts, Dwarf_Off die, Dwarf_Die *cu);
/** Release what is known of scopes. */
void values_type_scopes_deinit(struct values_types *ts);
/** @return the class that a pointer to a member points into. */
struct values_type *values_type_container(struct values_type *t);
/** Add a member.  @return NULL when there is no room. */
struct values_member *values_type_add_member(struct values_type *t, size_t *capacity);

#endif /* VALUES_TYPE_INTERNAL_H */
