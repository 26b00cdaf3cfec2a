/* SPDX-License-Identifier: MIT */
/* Types from DIEs. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/vec.h"
#include "values/type/type_internal.h"

/* DIEs that one list of members may pass, those inside of its functions included. */
#define STEPS_MAX (1u << 18)

static bool number(Dwarf_Die *die, unsigned attribute, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!dwarf_attr(die, attribute, &a) || dwarf_formudata(&a, &v) < 0)
		return false;
	*ret = v;
	return true;
}

static bool flag(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	bool is_set;

	return dwarf_attr(die, attribute, &a) && dwarf_formflag(&a, &is_set) == 0 && is_set;
}

/* The offset of the DIE that an attribute leads to; 0: none that can be followed. */
static Dwarf_Off reference(struct values_types *ts, Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	Dwarf_Die to;

	if (!dwarf_attr(die, attribute, &a))
		return 0;
	if (dwarf_whatform(&a) == DW_FORM_ref_sig8)
		return 0;
	return dwarf_formref_die(&a, &to) ? dwarf_dieoffset(&to) : 0;
}

struct values_type *values_type_of(struct values_types *ts, Dwarf_Die *die)
{
	Dwarf_Die holder = *die;

	/* The instance of an inlined variable has its type at the abstract one. */
	for (unsigned i = 0; i < VALUES_TYPE_DEPTH_MAX; i++) {
		static const unsigned origins[] = { DW_AT_abstract_origin, DW_AT_specification };
		Dwarf_Off next = 0;

		if (dwarf_hasattr(&holder, DW_AT_type)) {
			Dwarf_Off off = reference(ts, &holder, DW_AT_type);

			return off ? values_type_at(ts, off) : &ts->unknown;
		}
		for (size_t k = 0; k < 2 && !next; k++)
			next = reference(ts, &holder, origins[k]);
		if (!next)
			return &ts->nothing;
		if (!debug_info_die(ts->d, next, &holder))
			break;
	}
	return &ts->unknown;
}

/* ------------------------------------------------------------------ each kind ---------------- */

static enum values_encoding encoding_of(uint64_t dw_ate, const char *name)
{
	struct values_scalar by_name = { 0 };

	if (name)
		(void)values_scalar_parse(name, &by_name);
	switch (dw_ate) {
	case DW_ATE_boolean:
		return VALUES_BOOL;
	case DW_ATE_float:
		return by_name.encoding == VALUES_BFLOAT ? VALUES_BFLOAT : VALUES_FLOAT;
	case DW_ATE_signed:
		return VALUES_SIGNED;
	case DW_ATE_signed_char:
		return VALUES_SIGNED_CHAR;
	case DW_ATE_unsigned: /* DWARF 2 has nothing for characters of Unicode. */
		return by_name.encoding == VALUES_UTF ? VALUES_UTF : VALUES_UNSIGNED;
	case DW_ATE_unsigned_char:
		return VALUES_UNSIGNED_CHAR;
	case DW_ATE_UTF:
		return VALUES_UTF;
	case DW_ATE_address:
		return VALUES_POINTER;
	default:
		return VALUES_RAW;
	}
}

/* GCC's names of C's integer types, as everybody else writes them. */
static const char *usual_name(const char *name)
{
	static const char *const names[][2] = {
		{ "short int", "short" }, { "short unsigned int", "unsigned short" },
		{ "long int", "long" }, { "long unsigned int", "unsigned long" },
		{ "long long int", "long long" }, { "long long unsigned int", "unsigned long long" },
		{ "__int128 unsigned", "unsigned __int128" },
	};

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], name))
			return names[i][1];
	return name;
}

static void read_base(struct values_type *t, Dwarf_Die *die)
{
	uint64_t encoding = 0;

	t->name = usual_name(t->name);

	(void)number(die, DW_AT_encoding, &encoding);
	t->kind = VALUES_TYPE_SCALAR;
	t->scalar = (struct values_scalar){ encoding_of(encoding, t->name), (uint32_t)t->size, NULL };
	/* A base type that is larger than any is broken. */
	if (t->size > 64)
		t->kind = VALUES_TYPE_UNKNOWN;
}

/* Address classes: CUDA's are ptxStorageKind (libcudbgshim/src/cudbg_abi.h); those of clang for AMD GPUs. */
static enum values_space space_of(const struct values_types *ts, uint64_t address_class)
{
	static const uint8_t cuda[] = { [1] = VALUES_SPACE_CODE, [4] = VALUES_SPACE_CONSTANT,
					[5] = VALUES_SPACE_GLOBAL, [6] = VALUES_SPACE_PRIVATE,
					[7] = VALUES_SPACE_PARAMETER, [8] = VALUES_SPACE_SHARED };
	static const uint8_t amd[] = { [1] = VALUES_SPACE_PRIVATE, [2] = VALUES_SPACE_SHARED,
				       [3] = VALUES_SPACE_SHARED, [5] = VALUES_SPACE_PRIVATE };
	const uint8_t *table = ts->is_cuda ? cuda : amd;
	size_t n = ts->is_cuda ? sizeof(cuda) : sizeof(amd);

	/* No class is code of AMD's, which is in global memory; 0 of a table is "not a class". */
	if (address_class >= n || (!table[address_class] && address_class != 5))
		return VALUES_SPACE_GENERIC;
	return (enum values_space)table[address_class];
}

static void read_pointer(struct values_type *t, Dwarf_Die *die, enum values_type_kind kind)
{
	uint64_t address_class = 0;

	t->kind = kind;
	(void)number(die, DW_AT_address_class, &address_class);
	t->space = space_of(t->types, address_class);
	if (!t->size)
		/* LLVM writes no size.  Offsets into LDS and scratch have 32 bits there. */
		t->size = !t->types->is_cuda && t->space != VALUES_SPACE_GENERIC ? 4 : 8;
	t->scalar = (struct values_scalar){ VALUES_POINTER, (uint32_t)t->size,
					    values_type_space_word(t->types, t->space) };
	if (t->size > 8)
		t->kind = VALUES_TYPE_UNKNOWN;
}

static bool count_of(Dwarf_Die *subrange, uint64_t *ret)
{
	uint64_t upper, lower = 0;

	if (number(subrange, DW_AT_count, ret))
		return true;
	if (!number(subrange, DW_AT_upper_bound, &upper))
		return false;
	(void)number(subrange, DW_AT_lower_bound, &lower);
	*ret = upper + 1 - lower;
	/* The bound of an array without elements is -1, sometimes of 32 bits. */
	if (upper == UINT32_MAX || upper + 1 < lower)
		*ret = 0;
	return true;
}

/* An array of several dimensions is one of arrays: t becomes the outermost. */
static void read_array(struct values_type *t, Dwarf_Die *die)
{
	struct values_type *inner = t;
	struct debug_children c;
	Dwarf_Die child;
	unsigned n = 0;

	t->kind = VALUES_TYPE_ARRAY;
	t->is_vector = flag(die, DW_AT_GNU_vector);
	debug_children_init(&c, t->types->d, die, STEPS_MAX);
	while (n < VALUES_TYPE_DEPTH_MAX && debug_children_next(&c, &child)) {
		if (dwarf_tag(&child) != DW_TAG_subrange_type)
			continue;
		if (n++) {
			struct values_type *next = values_type_new(t->types, VALUES_TYPE_ARRAY);

			if (next == &t->types->unknown)
				break;
			inner->target = next;
			inner->tried_target = true;
			next->die = t->die;
			inner = next;
		}
		inner->has_count = count_of(&child, &inner->count);
	}
	(void)number(die, DW_AT_byte_stride, &inner->stride);
}

static void read_enum(struct values_type *t, Dwarf_Die *die)
{
	t->kind = VALUES_TYPE_ENUM;
	t->is_scoped = flag(die, DW_AT_enum_class);
	if (!t->size || t->size > 8)
		t->size = 4;
	t->scalar = (struct values_scalar){ VALUES_UNSIGNED, (uint32_t)t->size, NULL };
}

static void read_member_pointer(struct values_type *t, Dwarf_Die *die)
{
	Dwarf_Off off = reference(t->types, die, DW_AT_type);
	Dwarf_Die to;

	t->kind = VALUES_TYPE_MEMBER_POINTER;
	/* The C++ ABI: an offset, or an address and an offset. */
	if (!t->size)
		t->size = off && debug_info_die(t->types->d, off, &to) &&
					  dwarf_tag(&to) == DW_TAG_subroutine_type ? 16 : 8;
	t->scalar = (struct values_scalar){ VALUES_RAW, (uint32_t)t->size, NULL };
	if (t->size > 64)
		t->kind = VALUES_TYPE_UNKNOWN;
}

static void read_composite(struct values_type *t, Dwarf_Die *die, enum values_type_kind kind)
{
	t->kind = kind;
	t->is_declaration = flag(die, DW_AT_declaration);
}

static bool is_c(Dwarf_Die *cu)
{
	switch (dwarf_srclang(cu)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_OpenCL:
		return true;
	}
	return false;
}

/* What the language of its unit tells of a type: in C a struct has its tag, in C++ a scope. */
static void read_language(struct values_type *t, Dwarf_Die *die)
{
	int tag = dwarf_tag(die);
	Dwarf_Off declaration;
	Dwarf_Die cu;

	if (!dwarf_diecu(die, &cu, NULL, NULL))
		return;
	t->is_c = is_c(&cu);
	if (t->is_c || (tag != DW_TAG_structure_type && tag != DW_TAG_class_type && tag != DW_TAG_union_type &&
			tag != DW_TAG_enumeration_type && tag != DW_TAG_typedef))
		return;
	declaration = reference(t->types, die, DW_AT_specification);
	t->scope = values_type_scope(t->types, declaration ? declaration : t->die, &cu);
}

void values_type_read(struct values_type *t, Dwarf_Die *die)
{
	Dwarf_Off definition = 0;

	if (dwarf_hasattr(die, DW_AT_signature) &&
	    (definition = reference(t->types, die, DW_AT_signature)) && definition != t->die &&
	    !debug_info_die(t->types->d, definition, die))
		return;
	if (definition)
		t->die = definition;
	t->name = debug_info_string(t->types->d, die, DW_AT_name);
	read_language(t, die);
	(void)number(die, DW_AT_byte_size, &t->size);
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		read_base(t, die);
		break;
	case DW_TAG_pointer_type:
		read_pointer(t, die, VALUES_TYPE_POINTER);
		break;
	case DW_TAG_reference_type:
		read_pointer(t, die, VALUES_TYPE_REFERENCE);
		break;
	case DW_TAG_rvalue_reference_type:
		read_pointer(t, die, VALUES_TYPE_RVALUE_REFERENCE);
		break;
	case DW_TAG_ptr_to_member_type:
		read_member_pointer(t, die);
		break;
	case DW_TAG_unspecified_type: /* That of nullptr. */
		t->kind = VALUES_TYPE_SCALAR;
		t->size = 8;
		t->scalar = (struct values_scalar){ VALUES_POINTER, 8, NULL };
		break;
	case DW_TAG_array_type:
		read_array(t, die);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		read_composite(t, die, VALUES_TYPE_STRUCT);
		break;
	case DW_TAG_union_type:
		read_composite(t, die, VALUES_TYPE_UNION);
		break;
	case DW_TAG_enumeration_type:
		read_enum(t, die);
		break;
	case DW_TAG_subroutine_type:
	case DW_TAG_subprogram:
		t->kind = VALUES_TYPE_FUNCTION;
		t->is_prototyped = flag(die, DW_AT_prototyped);
		break;
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
		t->kind = VALUES_TYPE_TYPEDEF;
		break;
	case DW_TAG_const_type:
		t->kind = VALUES_TYPE_CONST;
		break;
	case DW_TAG_volatile_type:
		t->kind = VALUES_TYPE_VOLATILE;
		break;
	case DW_TAG_restrict_type:
		t->kind = VALUES_TYPE_RESTRICT;
		break;
	case DW_TAG_atomic_type:
		t->kind = VALUES_TYPE_ATOMIC;
		break;
	}
}

/* ------------------------------------------------------------------ members ------------------ */

/* The bytes before a member: a number, or DW_OP_plus_uconst and a number (DWARF 2). */
static bool location_of(Dwarf_Die *die, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Block b;
	struct reader r;

	if (number(die, DW_AT_data_member_location, ret))
		return true;
	if (!dwarf_attr(die, DW_AT_data_member_location, &a) || dwarf_formblock(&a, &b) < 0)
		return false;
	reader_init(&r, b.data, b.length);
	if (reader_u8(&r) != DW_OP_plus_uconst)
		return false;
	*ret = reader_uleb(&r);
	return !reader_is_bad(&r) && !reader_left(&r);
}

static void place_bit_field(struct values_member *m, Dwarf_Die *die, uint64_t bytes)
{
	uint64_t size = 0, from_top, storage = 0;

	m->bit_offset = 8 * bytes;
	(void)number(die, DW_AT_bit_size, &size);
	if (size > 128)
		m->has_place = false;
	m->bit_size = (uint32_t)size;
	if (number(die, DW_AT_data_bit_offset, &m->bit_offset) || !number(die, DW_AT_bit_offset, &from_top))
		return;
	/* Before DWARF 4 bits are counted from the most significant one of a piece of memory. */
	if (!number(die, DW_AT_byte_size, &storage))
		storage = values_type_size(m->type);
	m->bit_offset = 8 * (bytes + storage) - from_top - size;
}

static bool is_static(Dwarf_Die *die)
{
	return flag(die, DW_AT_external) || flag(die, DW_AT_declaration);
}

static void read_member(struct values_type *t, Dwarf_Die *die, size_t *capacity)
{
	uint64_t bytes = 0;
	struct values_type *type = values_type_of(t->types, die);
	struct values_member *m = values_type_add_member(t, capacity);

	if (!m)
		return;
	m->is_base = dwarf_tag(die) == DW_TAG_inheritance;
	m->name = debug_info_string(t->types->d, die, DW_AT_name);
	m->type = type;
	m->has_place = !dwarf_hasattr(die, DW_AT_data_member_location) || location_of(die, &bytes);
	if (bytes > UINT64_MAX / 16)
		m->has_place = false;
	if (m->has_place)
		place_bit_field(m, die, bytes);
}

static void read_parameter(struct values_type *t, Dwarf_Die *die, size_t *capacity)
{
	bool has_more = dwarf_tag(die) == DW_TAG_unspecified_parameters;
	struct values_type *type = has_more ? NULL : values_type_of(t->types, die);
	struct values_member *m = values_type_add_member(t, capacity);

	if (m)
		m->type = type;
}

static void read_list(struct values_type *t, Dwarf_Die *die)
{
	bool is_function = t->kind == VALUES_TYPE_FUNCTION;
	struct debug_children c;
	size_t capacity = 0;
	Dwarf_Die child;

	debug_children_init(&c, t->types->d, die, STEPS_MAX);
	while (!t->types->cut && debug_children_next(&c, &child)) {
		int tag = dwarf_tag(&child);

		if (is_function && (tag == DW_TAG_formal_parameter || tag == DW_TAG_unspecified_parameters))
			read_parameter(t, &child, &capacity);
		else if (!is_function && (tag == DW_TAG_inheritance ||
					  (tag == DW_TAG_member && !is_static(&child))))
			read_member(t, &child, &capacity);
	}
	if (!c.steps)
		t->types->cut = true;
}

static bool add_enumerator(struct values_type *t, struct values_enumerator e, size_t *capacity)
{
	if (t->types->n_members == VALUES_MEMBERS_MAX ||
	    vec_reserve(&t->enumerators, t->n_members, 1, capacity, sizeof(e)) < 0) {
		t->types->cut = true;
		return false;
	}
	t->types->n_members++;
	t->enumerators[t->n_members++] = e;
	return true;
}

/* Signed if a value is negative, whatever the integer type below is: gdb's rule. */
static void read_enumerators(struct values_type *t, Dwarf_Die *die)
{
	bool is_negative = false, is_flags = true;
	struct values_enumerator e;
	struct debug_children c;
	size_t capacity = 0;
	Dwarf_Die child;

	debug_children_init(&c, t->types->d, die, STEPS_MAX);
	while (debug_children_next(&c, &child)) {
		if (dwarf_tag(&child) != DW_TAG_enumerator || !number(&child, DW_AT_const_value, &e.value))
			continue;
		e.name = debug_info_string(t->types->d, &child, DW_AT_name);
		if ((int64_t)e.value < 0)
			is_negative = true;
		if (e.value & (e.value - 1))
			is_flags = false;
		if (!add_enumerator(t, e, &capacity))
			break;
	}
	t->is_flags = is_flags && !is_negative;
	if (is_negative)
		t->scalar.encoding = VALUES_SIGNED;
}

void values_type_read_members(struct values_type *t)
{
	Dwarf_Die die;

	if (!t->die || !debug_info_die(t->types->d, t->die, &die))
		return;
	if (t->kind == VALUES_TYPE_ENUM)
		read_enumerators(t, &die);
	else if (t->kind == VALUES_TYPE_STRUCT || t->kind == VALUES_TYPE_UNION ||
		 t->kind == VALUES_TYPE_FUNCTION)
		read_list(t, &die);
}

struct values_type *values_type_container(struct values_type *t)
{
	Dwarf_Off off = 0;
	Dwarf_Die die;

	if (t->die && debug_info_die(t->types->d, t->die, &die))
		off = reference(t->types, &die, DW_AT_containing_type);
	return off ? values_type_at(t->types, off) : &t->types->unknown;
}
