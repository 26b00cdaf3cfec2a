/* SPDX-License-Identifier: MIT */
#include "symbols/debug/die.h"

#include <dwarf.h>
#include <limits.h>
#include <string.h>

#include "base/reader.h"

/* Attributes of a DIE; compilers write some ten. */
#define ATTRIBUTES_MAX 256u
/* Abstract instances behind each other, as many as libdw follows. */
#define CHAIN_MAX 16u

/* The last attribute that has bytes of its own, of so many. */
struct last_attribute {
	const uint8_t *at;
	unsigned form, n;
};

static int note_attribute(Dwarf_Attribute *a, void *arg)
{
	struct last_attribute *last = arg;

	/* The value of an implicit constant lies in .debug_abbrev. */
	if (dwarf_whatform(a) != DW_FORM_implicit_const) {
		last->at = a->valp;
		last->form = dwarf_whatform(a);
	}
	return ++last->n < ATTRIBUTES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

struct unit_sizes {
	Dwarf_Half version;
	uint8_t address, offset;
};

#define NOT_FIXED SIZE_MAX

/* @return the size of a value (DWARF 5, section 7.5.6, and the GNU forms before it); NOT_FIXED. */
static size_t fixed_size(unsigned form, const struct unit_sizes *u)
{
	switch (form) {
	case DW_FORM_flag_present:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->address;
	case DW_FORM_ref_addr:
		return u->version < 3 ? u->address : u->offset;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->offset;
	default:
		return NOT_FIXED;
	}
}

/* Pass over a value.  The reader turns bad when the form is unknown or the value does not fit. */
static void skip_value(struct reader *r, unsigned form, const struct unit_sizes *u)
{
	size_t size = fixed_size(form, u);

	switch (form) {
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		(void)reader_uleb(r);
		return;
	case DW_FORM_string:
		(void)reader_string(r);
		return;
	case DW_FORM_block1:
		size = reader_u8(r);
		break;
	case DW_FORM_block2:
		size = reader_u16(r);
		break;
	case DW_FORM_block4:
		size = reader_u32(r);
		break;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		size = reader_uleb(r);
		break;
	}
	/* Nothing is as long as NOT_FIXED: DW_FORM_indirect fails here, because no compiler writes it. */
	reader_skip(r, size);
}

size_t die_size(Dwarf_Die *die, const uint8_t *end)
{
	const uint8_t *start = die->addr;
	struct last_attribute last = { 0 };
	struct unit_sizes sizes;
	struct reader r;

	if (!die->cu || start >= end ||
	    dwarf_cu_info(die->cu, &sizes.version, NULL, NULL, NULL, NULL, &sizes.address,
			  &sizes.offset) < 0 ||
	    dwarf_getattrs(die, note_attribute, &last, 0) != 1)
		return 0;
	reader_init(&r, start, (size_t)(end - start));
	if (last.at) {
		reader_seek(&r, (size_t)(last.at - start));
		skip_value(&r, last.form, &sizes);
	} else {
		(void)reader_uleb(&r);
	}
	return reader_is_bad(&r) ? 0 : r.pos;
}

bool die_is_small(Dwarf_Die *die)
{
	static const unsigned attributes[] = { DW_AT_abstract_origin, DW_AT_specification };
	Dwarf_Die at = *die;

	for (unsigned i = 0; i < CHAIN_MAX; i++) {
		struct last_attribute last = { 0 };
		Dwarf_Attribute a;

		if (dwarf_getattrs(&at, note_attribute, &last, 0) != 1)
			return false;
		if ((!dwarf_attr(&at, attributes[0], &a) && !dwarf_attr(&at, attributes[1], &a)) ||
		    !dwarf_formref_die(&a, &at))
			break;
	}
	return true;
}

const char *die_string(Dwarf_Die *die, unsigned attribute, const uint8_t *info, size_t info_size)
{
	Dwarf_Attribute a;
	const uint8_t *p;

	if (!dwarf_attr_integrate(die, attribute, &a))
		return NULL;
	if (dwarf_whatform(&a) != DW_FORM_string)
		return dwarf_formstring(&a);
	p = a.valp;
	if (p < info || p >= info + info_size ||
	    !memchr(p, '\0', info_size - (size_t)(p - info)))
		return NULL;
	return (const char *)p;
}

const char *die_function_name(Dwarf_Die *die, const uint8_t *info, size_t info_size)
{
	static const unsigned attributes[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name,
					       DW_AT_name };

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		const char *name = die_string(die, attributes[i], info, info_size);

		if (name && *name)
			return name;
	}
	return NULL;
}

const char *die_name(Dwarf_Die *die, const uint8_t *info, size_t info_size)
{
	return die_string(die, DW_AT_name, info, info_size);
}

int die_number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!dwarf_attr(die, attribute, &a) || dwarf_formudata(&a, &v) < 0 || v > INT_MAX)
		return 0;
	return (int)v;
}
