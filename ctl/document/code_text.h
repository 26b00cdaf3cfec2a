/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_CODE_TEXT_H
#define CTL_DOCUMENT_CODE_TEXT_H

/** @file code_text.h  Names of kernels and places, short enough for a row of a table. */

#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/** Longest name of a function in a row. */
#define CODE_TEXT_NAME_MAX 40

/**
 * A demangled name without result type and parameters, at most CODE_TEXT_NAME_MAX bytes.
 * @return NULL when the arena is exhausted.
 */
const char *code_text_name(struct rpc_arena *a, const char *name);
/** Its name, else its address.  NULL (unknown) gives NULL. */
const char *code_text_kernel(struct rpc_arena *a, const struct rpc_kernel *k);
/** `file.cl:8 inner <- middle <- outer`; the pc where the line is not known. */
const char *code_text_location(struct rpc_arena *a, const struct rpc_frame *frames, size_t n,
			       uint64_t pc);
/** The same of a group, and of what called there: `... <- file.cl:20 caller`. */
const char *code_text_stack(struct rpc_arena *a, const struct rpc_group *g);

#endif /* CTL_DOCUMENT_CODE_TEXT_H */
