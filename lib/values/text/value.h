/* SPDX-License-Identifier: MIT */
#ifndef VALUES_VALUE_H
#define VALUES_VALUE_H

/**
 * @file value.h
 * A value as a tree: a type and bytes become nodes with a name, a text and children; and the tree
 * as one line of text, which is that of gdb and cuda-gdb:
 * `{x = 4, y = 0, next = 0x0, name = "ab"}`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "values/place.h"
#include "values/scalar.h"
#include "values/type/type.h"

/** Limits: bytes of text of one value, and levels below it. */
#define VALUES_TEXT_MAX	 4096u
#define VALUES_LEVELS_MAX 8u
/** Elements of an array or string that are shown, as in gdb. */
#define VALUES_ELEMENTS_MAX 200u
/** More equal elements in a row than this are one node. */
#define VALUES_REPEATS_MIN 10u

/** What the values of one call may take together, and how memory is read for them. */
struct values_call {
	/**
	 * Read all @p size bytes.
	 * @return 0, or a negative errno.
	 */
	int (*read)(void *context, enum values_space space, uint64_t address, void *ret, size_t size);
	void *context;
	enum values_format format; /**< Of all scalars. */
	uint32_t nodes_left, reads_left, bytes_left;
	unsigned levels; /**< Below a value. */
	bool cut; /**< Something was left out because nothing was left. */
};
#define VALUES_NODES_MAX 1024u
#define VALUES_READS_MAX 256u
#define VALUES_BYTES_MAX (64u << 10)

/** Begin a call with all of its limits. @param read  May be NULL: nothing can be read. */
void values_call_init(struct values_call *c,
		      int (*read)(void *context, enum values_space space, uint64_t address, void *ret,
				  size_t size),
		      void *context);
/** Read memory at the call's expense.  @return 0, -EDQUOT (a limit), or what the callback says. */
int values_call_read(struct values_call *c, enum values_space space, uint64_t address, void *ret,
		     size_t size);

/** Bytes of a value of which not all may be known. */
struct values_data {
	const uint8_t *bytes;
	const uint8_t *known; /**< One for each byte, 0 where it is unknown; NULL: all are known. */
	size_t size; /**< Fewer than the type's: those behind are unknown. */
	enum values_state lack; /**< What an unknown byte is. */
};

/** A number in the widest of its kind. */
struct values_number {
	bool is_real, is_signed;
	uint8_t size; /**< Bytes of the value. */
	uint64_t integer; /**< Extended by its sign, if it has one. */
	double real;
};

struct values_node {
	char *name; /**< Of a member; NULL: none, as of an element. */
	struct values_type *type;
	enum values_state state;
	char *text; /**< NULL of a struct, union, or array that is no string, whose value is its children. */
	bool has_number; /**< It is a number, character, pointer or flag. */
	struct values_number number;
	uint64_t index; /**< Of an element. */
	uint64_t repeats; /**< So many elements in a row are equal; else 1. */
	bool is_base; /**< What the struct is derived from. */
	bool cut; /**< Children were left out. */
	struct values_node *children;
	size_t n_children;
};

/**
 * Read a value.
 * @param name  Copied, and made printable; may be NULL.
 * @param ret   Release with values_node_deinit().
 * @return 0, -ENOMEM.
 */
int values_node_init(struct values_node *ret, const char *name, struct values_type *type,
		     const struct values_data *data, struct values_call *c);
/** Release a value.  A zeroed one is accepted. */
void values_node_deinit(struct values_node *n);
/** Append the value as text, at most VALUES_TEXT_MAX bytes, which then end in "...". */
void values_node_print(const struct values_node *n, struct out *o);

#endif /* VALUES_VALUE_H */
