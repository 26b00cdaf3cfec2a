/* SPDX-License-Identifier: MIT */
#ifndef VALUES_TYPE_H
#define VALUES_TYPE_H

/**
 * @file type.h
 * Types of a program's variables, from debug information or made up.
 *
 * A type is read when it is asked for, one level at a time, so that a list that leads to half of a
 * program costs nothing.  No function fails: what is broken, or beyond a limit, is a type of kind
 * VALUES_TYPE_UNKNOWN, whose values are bytes.  Types that contain themselves are possible in a
 * hostile file; whoever walks them bounds the depth.
 */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "symbols/debug_info.h"
#include "values/machine.h"
#include "values/scalar.h"

enum values_type_kind {
	VALUES_TYPE_UNKNOWN,
	VALUES_TYPE_VOID,
	VALUES_TYPE_SCALAR, /**< A base type. */
	VALUES_TYPE_POINTER,
	VALUES_TYPE_REFERENCE,
	VALUES_TYPE_RVALUE_REFERENCE,
	VALUES_TYPE_MEMBER_POINTER,
	VALUES_TYPE_ARRAY,
	VALUES_TYPE_STRUCT, /**< A class is one, too. */
	VALUES_TYPE_UNION,
	VALUES_TYPE_ENUM,
	VALUES_TYPE_FUNCTION,
	/* Other names for what they lead to: */
	VALUES_TYPE_TYPEDEF,
	VALUES_TYPE_CONST,
	VALUES_TYPE_VOLATILE,
	VALUES_TYPE_RESTRICT,
	VALUES_TYPE_ATOMIC,
};

struct values_type;

/** A member of a struct or union, or a class that it is derived from. */
struct values_member {
	const char *name; /**< NULL: it has none, as an anonymous union. */
	struct values_type *type;
	uint64_t bit_offset; /**< From the first bit of the struct; little endian. */
	uint32_t bit_size; /**< Of a bit field; 0: the size of its type. */
	bool is_base; /**< The struct is derived from it. */
	bool has_place; /**< Not so for a virtual base, whose place only the object knows. */
};

struct values_enumerator {
	const char *name;
	uint64_t value; /**< Sign extended if the enumeration is signed. */
};

struct values_type {
	enum values_type_kind kind;
	const char *name; /**< NULL: none.  Borrowed from the debug information. */
	const char *scope; /**< Name of the struct or namespace around it, such as "a::b"; or NULL. */
	uint64_t size; /**< Bytes; 0 also when unknown. */
	/** How a scalar, pointer or enumeration is read. */
	struct values_scalar scalar;
	enum values_space space; /**< Of a pointer: where it leads, VALUES_SPACE_GENERIC if unsaid. */
	bool has_count;
	bool is_vector; /**< An array that is a vector of OpenCL. */
	bool is_declaration; /**< Its definition is not here. */
	bool is_c; /**< Of a language where a struct is named with its tag. */
	bool is_flags; /**< Of an enumeration: each value is a bit of its own. */
	bool is_scoped; /**< Of an enumeration: its values are named with it. */
	bool is_prototyped; /**< Of a function. */
	uint64_t count; /**< Of an array: elements, if has_count. */
	uint64_t stride; /**< Of an array: bytes from one element to the next; 0: the size of one. */
	/* What follows is filled on demand: see the functions. */
	struct values_types *types;
	Dwarf_Off die;
	char *own_name;
	bool tried_target, tried_members;
	struct values_type *target;
	struct values_member *members;
	struct values_enumerator *enumerators;
	size_t n_members;
	struct values_type *pointers[VALUES_SPACE_COUNT], *array, *constant; /**< Those made up of it. */
};

/** The types of one image that were asked for, or made up for it. */
struct values_types;

/** A name of a type and a chain of typedefs are no longer than this. */
#define VALUES_TYPE_DEPTH_MAX 64u
/** Elements of all lists together, and types, that one table may have. */
#define VALUES_TYPES_MAX   (1u << 16)
#define VALUES_MEMBERS_MAX (1u << 18)

/**
 * Make an empty table.
 * @param d    Outlives the table; NULL: all types will be made up.
 * @param ret  Release with values_types_destroy().
 * @return 0, -ENOMEM.
 */
int values_types_create(struct debug_info *d, struct values_types **ret);
/** Release a table with its types.  NULL is allowed. */
void values_types_destroy(struct values_types *ts);
/** Was anything left out because of a limit? */
bool values_types_is_cut(const struct values_types *ts);

/** @return the type that a variable, parameter or function has, by its DW_AT_type; void without. */
struct values_type *values_type_of(struct values_types *ts, Dwarf_Die *die);
/** @return the type that a DIE is. */
struct values_type *values_type_at(struct values_types *ts, Dwarf_Off die);

/* Types that are made up.  One that is asked for again, as for each lane of a wave, is the same. */
/** @return void. */
struct values_type *values_type_void(struct values_types *ts);
/** @return a pointer to a type. */
struct values_type *values_type_pointer(struct values_types *ts, struct values_type *target,
					enum values_space space);
/** @return an array of a type. */
struct values_type *values_type_array(struct values_types *ts, struct values_type *element,
				      uint64_t count);
/**
 * @return a type by the name that a demangled kernel, a cast or OpenCL's metadata gives it: scalars
 *         (values_scalar_parse()), pointers to them, dim3, and CUDA's and OpenCL's vectors such as
 *         float4; NULL for others.
 */
struct values_type *values_type_named(struct values_types *ts, const char *name);

/** @return what a pointer, array, function, or other name leads to; never NULL. */
struct values_type *values_type_target(struct values_type *t);
/** @return the type behind typedefs and qualifiers; unknown when there are too many. */
struct values_type *values_type_strip(struct values_type *t);
/** @return bytes of a value, also of arrays and typedefs; 0 when unknown. */
uint64_t values_type_size(struct values_type *t);
/** @return bytes from one element of an array to the next. */
uint64_t values_type_stride(struct values_type *array);
/** Find the members of a struct or union; enumerators likewise are in n_members of t->enumerators. */
const struct values_member *values_type_members(struct values_type *t, size_t *ret_n);
const struct values_enumerator *values_type_enumerators(struct values_type *t, size_t *ret_n);

/**
 * @return the word for a space in front of a pointer's type and value: "shared", CUDA's "local" or
 *         AMD's "private"; NULL for generic and global memory, where all other pointers lead.
 */
const char *values_type_space_word(const struct values_types *ts, enum values_space space);
/** Append the name of a type as gdb and cuda-gdb print it: `const int *`, `@shared float (*)[4]`. */
void values_type_print(struct values_type *t, struct out *o);

#endif /* VALUES_TYPE_H */
