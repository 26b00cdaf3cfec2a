/* SPDX-License-Identifier: MIT */
#ifndef VALUES_CALL_FRAME_H
#define VALUES_CALL_FRAME_H

/**
 * @file call_frame.h
 * Reads .debug_frame of a cubin: where a function has its stack frame and its caller's registers.
 *
 * libdw refuses these: entries have 64-bit lengths, and a register's number is its kind << 24 | its
 * number (0x5000001 is R1).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct call_frame_table;

/** What became of a register of the caller. */
enum call_frame_rule {
	CALL_FRAME_SAME, /**< Nobody has touched it; also where nothing is said. */
	CALL_FRAME_LOST,
	CALL_FRAME_SAVED,   /**< In private memory, at the frame's address + offset. */
	CALL_FRAME_MOVED,   /**< In another register. */
	CALL_FRAME_UNKNOWN, /**< By an expression, which is not evaluated. */
};

#define CALL_FRAME_REGISTERS 256u
#define CALL_FRAME_KIND	     5u /**< Kind of R0..R255 in the numbers. */

/** The rules at an address. */
struct call_frame_row {
	bool has_cfa;
	uint32_t cfa_register; /**< R number. */
	int64_t cfa_offset;
	struct {
		uint8_t rule; /**< enum call_frame_rule. */
		uint8_t moved_to;
		int32_t offset;
	} registers[CALL_FRAME_REGISTERS];
};

/**
 * Index the entries of a section.
 * @param data  Borrowed as long as the table lives.
 * @param ret   Release with call_frame_destroy().
 * @return 0, -EBADMSG (nothing sound in it), -EFBIG, -ENOMEM.
 */
int call_frame_create(const void *data, size_t size, struct call_frame_table **ret);
/** Release a table; NULL is allowed. */
void call_frame_destroy(struct call_frame_table *t);
/** @return the memory that a table takes; NULL takes none. */
size_t call_frame_bytes(const struct call_frame_table *t);
/**
 * Find the rules at an address.
 * @return 0, -ENOENT (no entry), -EBADMSG (a broken one), -ENOMEM.
 */
int call_frame_find(const struct call_frame_table *t, uint64_t pc, struct call_frame_row *ret);

#endif /* VALUES_CALL_FRAME_H */
