/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_CONVERT_H
#define WORKER_SNAPSHOT_CONVERT_H

/**
 * @file convert.h
 * Sets of exceptions, traps and flags: masks in the worker, lists of names on the wire.
 *
 * The lists that these functions return are in the arena, and NULL when the arena is exhausted.
 * Masks are those of target/target.h; bits that the schema does not know are left out.
 */

#include "agentd/worker/target/target.h"

/** List the exceptions of a mask, in ascending order. */
enum rpc_exception *convert_exceptions(struct rpc_arena *a, uint64_t mask, size_t *ret_n);
/** Join the schema's descriptions of these exceptions to one text, in the arena. */
const char *convert_exception_words(struct rpc_arena *a, const enum rpc_exception *list, size_t n);
/** List the traps of a mask, in ascending order. */
enum rpc_trap *convert_traps(struct rpc_arena *a, uint32_t mask, size_t *ret_n);
/** List the flags of a mask, in ascending order. */
enum rpc_flag *convert_flags(struct rpc_arena *a, uint32_t mask, size_t *ret_n);

/** @return the mask of a list of exceptions. */
uint64_t convert_exception_mask(const enum rpc_exception *list, size_t n);
/** @return the mask of a list of traps. */
uint32_t convert_trap_mask(const enum rpc_trap *list, size_t n);
/** @return the mask of a list of flags. */
uint32_t convert_flag_mask(const enum rpc_flag *list, size_t n);

#endif /* WORKER_SNAPSHOT_CONVERT_H */
