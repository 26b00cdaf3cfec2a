/* SPDX-License-Identifier: MIT */
#ifndef CTL_DOCUMENT_CODE_TEXT_H
#define CTL_DOCUMENT_CODE_TEXT_H

/**
 * @file code_text.h
 * Names of kernels and source locations, short enough for a row of a table.
 *
 * Texts live in the arena and may hold what the target process chose: escape them before printing.
 */

#include "base/out.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

/** Bytes of the longest name of a function in a row. */
#define CODE_TEXT_NAME_MAX 40

/**
 * A demangled name without result type and parameters, cut to CODE_TEXT_NAME_MAX bytes.
 * @return NULL when the arena is exhausted.
 */
const char *code_text_name(struct rpc_arena *a, const char *name);
/**
 * The name of a kernel, or else its address.
 * @return NULL when @p k is NULL (the kernel is unknown) or the arena is exhausted.
 */
const char *code_text_kernel(struct rpc_arena *a, const struct rpc_kernel *k);
/**
 * Append what a group's kernel was launched with: `(table=0x0, n=160)`; nothing where that is not
 * known.  Long values, and arguments behind the first ones, are cut.
 */
void code_text_arguments(struct out *o, const struct rpc_group *g);
/**
 * A location with what is inlined there: `file.cl:8 inner <- middle <- outer`.  The pc stands for
 * the line where that is not known.
 * @return NULL when the arena is exhausted.
 */
const char *code_text_location(struct rpc_arena *a, const struct rpc_frame *frames, size_t n,
			       uint64_t pc);
/** Append what called a group's example by calls that are not inlined: ` <- file.cl:20 caller`. */
void code_text_callers(struct out *o, struct rpc_arena *a, const struct rpc_group *g);

#endif /* CTL_DOCUMENT_CODE_TEXT_H */
