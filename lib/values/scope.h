/* SPDX-License-Identifier: MIT */
#ifndef VALUES_SCOPE_H
#define VALUES_SCOPE_H

/**
 * @file scope.h
 * The variables that can be seen from an address, and where each of them is.
 */

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/image.h"
#include "values/evaluate.h"
#include "values/frame.h"
#include "values/place.h"

/** What is read of an image for its values; the image keeps it. */
struct values_image;
/**
 * Read the tables of an image, unless that was done.
 * @param ret  Borrowed from the image.
 * @return 0, -ENOENT (no debug information that names variables), -ENOMEM.
 */
int values_image_open(struct symbols_image *i, struct values_image **ret);
/** @return the debug information that it was read from. */
struct debug_info *values_image_debug_info(const struct values_image *i);

enum values_kind {
	VALUES_ARGUMENT,
	VALUES_LOCAL,
	VALUES_STATIC, /**< It is at one address for all workgroups. */
};

struct values_variable {
	const char *name; /**< NULL: none.  Borrowed from the image. */
	enum values_kind kind;
	unsigned block; /**< 0: the function itself; more: a block within it. */
	Dwarf_Die die, type;
	bool has_type;
	Dwarf_Off origin; /**< Of its abstract instance; 0: it is none's. */
};

/** A function, inlined or not, at an address. */
struct values_scope {
	const char *function; /**< Linkage name of the function whose code it is; NULL: unknown. */
	uint64_t low, high;   /**< Its code; addresses of the image. */
	uint64_t body;	      /**< AMD: where its stack frame is set up; else @p low. */
	Dwarf_Die subprogram; /**< It, with the frame base. */
	Dwarf_Off die;	      /**< The function, which may be inlined. */
	/** Arguments in order, then those of the innermost block first. */
	struct values_variable *items;
	size_t n, capacity;
	bool cut; /**< There are more: a limit was hit. */
};

/**
 * Find what can be seen from an address.
 * @param lookup   values_frame_lookup().
 * @param inlined  0 for the innermost function of the inline chain, 1 for the one that it is
 *                 inlined into...
 * @param ret      Release with values_scope_deinit(), also on failure.
 * @return 0, -ENOENT (no function, or no such level), -ENOMEM.
 */
int values_scope_find(struct values_image *i, uint64_t lookup, unsigned inlined,
		      struct values_scope *ret);
/** Release; a zeroed object is accepted. */
void values_scope_deinit(struct values_scope *s);

/**
 * Begin with a frame: fill in what an image tells of its address.
 * @param f  machine, lane, pc, load_bias and callee are set.
 */
void values_image_enter(struct values_image *i, const struct values_scope *s,
			struct values_frame *f);
/** What is told of a variable's place at an address, whatever the lane. */
struct values_locator {
	struct values_image *image;
	const struct values_scope *scope;
	bool is_fixed; /**< The place is @p fixed, in all lanes. */
	struct values_piece fixed;
	struct values_operations operations, frame_base;
	Dwarf_Off unit; /**< Of its header. */
	const uint8_t *addresses;
	size_t n_addresses;
	uint64_t address_class;
	bool is_marked;
};
/** Find out what is told of a variable's place, in a frame of any lane at the address. */
void values_locator_init(struct values_locator *l, struct values_image *i, const struct values_scope *s,
			 const struct values_variable *v, const struct values_frame *f);
/** Find where the variable is in a frame at the address. */
void values_locator_find(const struct values_locator *l, const struct values_frame *f, struct values_place *ret);
/** The same in one step. */
void values_variable_find(struct values_image *i, const struct values_scope *s,
			  const struct values_variable *v, const struct values_frame *f,
			  struct values_place *ret);

#endif /* VALUES_SCOPE_H */
