/* SPDX-License-Identifier: MIT */
#include "symbols/debug/die_type.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "symbols/debug/die.h"

/* Most types behind each other: a hostile chain leads back into itself. */
#define CHAIN_MAX 64u

int die_type_of(Dwarf_Die *die, struct die_type *ret)
{
	Dwarf_Attribute a;
	Dwarf_Die at;
	unsigned tries = 0;

	if (!dwarf_attr_integrate(die, DW_AT_type, &a) || !dwarf_formref_die(&a, &ret->die))
		return -ENOENT;
	ret->size = 0;
	/* dwarf_aggregate_size() would follow a chain of typedefs for as long as it is. */
	at = ret->die;
	while (tries++ < CHAIN_MAX) {
		int tag = dwarf_tag(&at);

		if (dwarf_hasattr(&at, DW_AT_byte_size)) {
			ret->size = (uint64_t)die_number(&at, DW_AT_byte_size);
			break;
		}
		/* A pointer into LDS has 4 bytes, and clang does not say so. */
		if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
		    tag == DW_TAG_rvalue_reference_type || tag == DW_TAG_array_type ||
		    !dwarf_attr(&at, DW_AT_type, &a) || !dwarf_formref_die(&a, &at))
			break;
	}
	return 0;
}

/* What stands behind a type that is not the innermost one; NULL: it adds no such thing. */
static const char *suffix_of(int tag)
{
	switch (tag) {
	case DW_TAG_pointer_type:
		return "*";
	case DW_TAG_reference_type:
		return "&";
	case DW_TAG_rvalue_reference_type:
		return "&&";
	default:
		return NULL;
	}
}

static const char *qualifier_of(int tag)
{
	switch (tag) {
	case DW_TAG_const_type:
		return "const";
	case DW_TAG_volatile_type:
		return "volatile";
	case DW_TAG_restrict_type:
		return "restrict";
	default:
		return NULL;
	}
}

/* What to call a type that has no name. */
static const char *unnamed(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return "{struct}";
	case DW_TAG_class_type:
		return "{class}";
	case DW_TAG_union_type:
		return "{union}";
	case DW_TAG_enumeration_type:
		return "{enum}";
	case DW_TAG_array_type:
		return "{array}";
	case DW_TAG_subroutine_type:
		return "{function}";
	default:
		return "{?}";
	}
}

/* The integer that an enumeration is. */
static const char *integer_of(Dwarf_Die *type)
{
	switch (die_number(type, DW_AT_byte_size)) {
	case 1:
		return "signed char";
	case 2:
		return "short";
	case 8:
		return "long";
	default:
		return "int";
	}
}

/* Pointers and what qualifies them, from the outside to the inside. */
struct layers {
	const char *words[CHAIN_MAX];
	size_t n;
};

/* @return whether the type behind this one goes on with the text. */
static bool is_passed(int tag, bool base, struct layers *l)
{
	const char *qualifier = qualifier_of(tag), *suffix = suffix_of(tag);

	if (tag == DW_TAG_atomic_type || (tag == DW_TAG_typedef && base))
		return true;
	/* Of the value itself, qualifiers are of no interest. */
	if (qualifier && base && !l->n)
		return true;
	if (qualifier || suffix)
		l->words[l->n++] = qualifier ? qualifier : suffix;
	return qualifier || suffix;
}

/* A qualifier of the innermost type stands in front of it, that of a pointer behind it. */
static void put_text(struct out *o, const char *name, const struct layers *l)
{
	size_t n = l->n;

	for (; n && *l->words[n - 1] != '*' && *l->words[n - 1] != '&'; n--)
		out_fmt(o, "%s ", l->words[n - 1]);
	out_str(o, name);
	for (const char *before = " "; n; n--) {
		bool is_word = *l->words[n - 1] != '*' && *l->words[n - 1] != '&';

		out_fmt(o, "%s%s", is_word || *before == ' ' ? " " : "", l->words[n - 1]);
		before = is_word ? " " : "";
	}
}

void die_type_text(Dwarf_Die *type, const uint8_t *info, size_t info_size, bool base, char *buf,
		   size_t size)
{
	auto_out struct out o = { 0 };
	struct layers l = { .n = 0 };
	const char *name = "void";
	Dwarf_Die at = *type;
	Dwarf_Attribute a;

	for (unsigned tries = 0; tries < CHAIN_MAX; tries++) {
		int tag = dwarf_tag(&at);

		if (!is_passed(tag, base, &l)) {
			name = die_name(&at, info, info_size);
			name = str_is_empty(name) ? unnamed(tag) : name;
			if (base && !l.n && tag == DW_TAG_enumeration_type)
				name = integer_of(&at);
			break;
		}
		if (!dwarf_attr(&at, DW_AT_type, &a)) {
			name = "void";
			break;
		}
		if (!dwarf_formref_die(&a, &at))
			break;
	}
	put_text(&o, name, &l);
	str_copy(buf, size, out_error(&o) ? "" : o.data);
	if (!out_error(&o) && o.size >= size && size > 4)
		str_copy(buf + size - 4, 4, "...");
}
