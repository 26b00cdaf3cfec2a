/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_CODE_OBJECT_H
#define WORKER_TARGET_CODE_OBJECT_H

/**
 * @file code_object.h
 * One code object of a target, as its back end and snapshot/code.h know it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cache.h"

/** One code object; its addresses are those of the target's memory. */
struct code_object {
	/* The back end fills in these members; their strings are in the arena of the call. */
	const char *uri;      /**< The name that the runtime gives it; never NULL. */
	uint64_t bias;	      /**< Address in memory = address in ELF + bias. */
	uint64_t tag;	      /**< Means something to the back end alone. */
	/** First loaded address, and one past the last; both 0: its ELF headers tell. */
	uint64_t start, end;
	/* snapshot/code.c finds out these. */
	const char *problem;  /**< Why nothing, or not all, is known of it; static; NULL: none. */
	uint64_t size, stamp; /**< As in struct code_stat. */
	bool is_asked;	      /**< A question about its contents was asked. */
	bool is_read;	      /**< The members behind are valid. */
	bool has_dwarf;
	bool has_lines; /**< Known only after code_examine(). */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t build_id_size;
	size_t n_symbols;
};

/** Facts about the bytes of an object. */
struct code_stat {
	uint64_t size;
	/** Two objects whose contents may differ have other stamps; 0: only the contents tell. */
	uint64_t stamp;
};

/** What a back end answers to target_ops.code_list. */
struct code_list {
	struct code_object *objects; /**< In the arena. */
	size_t n_objects;
	const char *problem; /**< Why objects may be missing, in the arena; NULL: none is. */
};

#endif /* WORKER_TARGET_CODE_OBJECT_H */
