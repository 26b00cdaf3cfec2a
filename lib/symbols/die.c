/* SPDX-License-Identifier: MIT */
#include "symbols/die.h"

#include <dwarf.h>
#include <limits.h>
#include <string.h>

/* The last attribute that has bytes of its own. */
struct last_attribute {
	const uint8_t *at;
	unsigned form;
};

static int note_attribute(Dwarf_Attribute *a, void *arg)
{
	struct last_attribute *last = arg;

	/* The value of an implicit constant lies in .debug_abbrev. */
	if (dwarf_whatform(a) != DW_FORM_implicit_const) {
		last->at = a->valp;
		last->form = dwarf_whatform(a);
	}
	return DWARF_CB_OK;
}

/*
 * Read an unsigned LEB128 number.
 * @return bytes of the number, 0 when it does not end.
 */
static size_t uleb(const uint8_t *p, size_t left, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 0; i < left && i < 10; i++) {
		v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*ret = v;
			return i + 1;
		}
	}
	return 0;
}

/* @return the size of a block with the length in front of it; SIZE_MAX when it does not fit. */
static size_t block_size(const uint8_t *p, size_t left, size_t length_size)
{
	uint64_t n = 0;

	if (length_size > left)
		return SIZE_MAX;
	memcpy(&n, p, length_size);
	return n > left - length_size ? SIZE_MAX : length_size + (size_t)n;
}

static size_t leb_block_size(const uint8_t *p, size_t left)
{
	uint64_t n;
	size_t head = uleb(p, left, &n);

	return !head || n > left - head ? SIZE_MAX : head + (size_t)n;
}

static size_t leb_size(const uint8_t *p, size_t left)
{
	uint64_t n;
	size_t size = uleb(p, left, &n);

	return size ? size : SIZE_MAX;
}

struct unit_sizes {
	Dwarf_Half version;
	uint8_t address, offset;
};

/*
 * @return the size of a value (DWARF 5, section 7.5.6, and the GNU forms before it); SIZE_MAX when
 *         the form is unknown or the value does not fit.
 */
static size_t form_size(unsigned form, const uint8_t *p, size_t left, const struct unit_sizes *u)
{
	const uint8_t *nul;

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
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return leb_size(p, left);
	case DW_FORM_block1:
		return block_size(p, left, 1);
	case DW_FORM_block2:
		return block_size(p, left, 2);
	case DW_FORM_block4:
		return block_size(p, left, 4);
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return leb_block_size(p, left);
	case DW_FORM_string:
		nul = memchr(p, '\0', left);
		return nul ? (size_t)(nul - p) + 1 : SIZE_MAX;
	default: /* DW_FORM_indirect is among them, because no compiler writes it. */
		return SIZE_MAX;
	}
}

size_t die_size(Dwarf_Die *die, const uint8_t *end)
{
	const uint8_t *start = die->addr;
	struct last_attribute last = { NULL, 0 };
	struct unit_sizes sizes;
	uint64_t code;
	size_t size, left;

	if (!die->cu || start >= end ||
	    dwarf_cu_info(die->cu, &sizes.version, NULL, NULL, NULL, NULL, &sizes.address,
			  &sizes.offset) < 0 ||
	    dwarf_getattrs(die, note_attribute, &last, 0) != 1)
		return 0;
	if (!last.at)
		return uleb(start, (size_t)(end - start), &code);
	if (last.at < start || last.at > end)
		return 0;
	left = (size_t)(end - last.at);
	size = form_size(last.form, last.at, left, &sizes);
	return size > left ? 0 : (size_t)(last.at - start) + size;
}

/*
 * Read a string attribute, also of the abstract instance behind the DIE.
 * @param info  The section that DIEs lie in: strings inside it are checked to end there.
 * @return NULL when there is none.
 */
static const char *die_string(Dwarf_Die *die, unsigned attribute, const uint8_t *info, size_t info_size)
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

int die_number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!dwarf_attr(die, attribute, &a) || dwarf_formudata(&a, &v) < 0 || v > INT_MAX)
		return 0;
	return (int)v;
}
