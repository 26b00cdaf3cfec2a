/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_CODE_OBJECT_H
#define WORKER_TARGET_CODE_OBJECT_H

/** @file code_object.h  One code object of a target, as its back end and snapshot/code.h know it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cache.h"

struct code_object {
	/* From the back end; strings are in the arena of the call. */
	const char *uri;      /**< As the runtime names it; never NULL. */
	uint64_t bias;	      /**< Address in memory = address in ELF + bias. */
	uint64_t tag;	      /**< For the back end alone. */
	/** First loaded address, one past the last; both 0: its headers tell. */
	uint64_t start, end;
	/* Found out here. */
	const char *problem;  /**< Why nothing, or not all, is known of it; static; NULL: none. */
	uint64_t size, stamp; /**< As in struct code_stat. */
	bool is_asked;	      /**< Somebody wanted to know what is in it. */
	bool is_read;	      /**< The members behind are valid. */
	bool has_dwarf;
	bool has_lines; /**< Only after code_examine(). */
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t build_id_size;
	size_t n_symbols;
};

/** About the bytes of an object. */
struct code_stat {
	uint64_t size;
	/** Differs when the contents may differ; 0: only the contents tell. */
	uint64_t stamp;
};

/** What a back end answers to code_list. */
struct code_list {
	struct code_object *objects;
	size_t n_objects;
	const char *problem; /**< Why the list may not be all; NULL: it is.  In the arena. */
};

#endif /* WORKER_TARGET_CODE_OBJECT_H */
