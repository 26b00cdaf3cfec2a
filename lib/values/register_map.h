/* SPDX-License-Identifier: MIT */
#ifndef VALUES_REGISTER_MAP_H
#define VALUES_REGISTER_MAP_H

/**
 * @file register_map.h
 * Reads .nv_debug_info_reg_sass of a cubin: in which registers of the machine one of PTX is, and
 * from where to where in a function.  DWARF of CUDA names registers of PTX.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct register_map;

/** What holds a part of a PTX register; the numbers are the file's. */
enum register_map_kind {
	REGISTER_MAP_PREDICATE = 2,
	REGISTER_MAP_HALF = 4, /**< Operand / 2 is the register, operand % 2 its upper half. */
	REGISTER_MAP_FULL = 5, /**< 255 is always 0. */
	REGISTER_MAP_LOCAL = 6, /**< At an offset of local memory. */
	REGISTER_MAP_STACK = 7, /**< At register (operand >> 16) + (operand & 0xffff) there. */
	REGISTER_MAP_UNIFORM_PREDICATE = 9,
	REGISTER_MAP_UNIFORM_HALF = 10,
	REGISTER_MAP_UNIFORM = 11, /**< 63 is always 0. */
};

struct register_map_part {
	uint8_t kind, part; /**< Part: 32 bits each, 0 is the lowest. */
	uint32_t operand;
};

/**
 * Read a section.
 * @param data  Borrowed as long as the map lives: names stay there.
 * @param ret   Release with register_map_destroy().
 * @return 0, -EBADMSG, -EFBIG, -ENOMEM.
 */
int register_map_create(const void *data, size_t size, struct register_map **ret);
/** Release a map; NULL is allowed. */
void register_map_destroy(struct register_map *m);

/** @return the memory that a map takes; NULL takes none. */
size_t register_map_bytes(const struct register_map *m);

/** Most places that a register is in at once. */
#define REGISTER_MAP_PARTS_MAX 16u
/**
 * Find where a PTX register is.
 * @param function    Linkage name.
 * @param name        As in the number that DWARF has: letters from the highest byte to the lowest.
 * @param offset      From the start of the function.
 * @param ret         REGISTER_MAP_PARTS_MAX places.
 * @param ret_n       How many; a part may be in several places.
 * @param ret_parts   How many parts the register ever has in the function.
 * @return 0, -ENOENT (the register, or all of it here, is nowhere), -E2BIG (more places than fit).
 */
int register_map_find(const struct register_map *m, const char *function, uint64_t name,
		      uint64_t offset, struct register_map_part *ret, size_t *ret_n,
		      unsigned *ret_parts);

#endif /* VALUES_REGISTER_MAP_H */
