/* SPDX-License-Identifier: MIT */
#ifndef RPC_ARENA_H
#define RPC_ARENA_H

/**
 * @file rpc_arena.h
 * Memory of one call: many small pieces, one limit, freed together.
 *
 * Everything is zero-filled.  A failed allocation gives NULL and is remembered, so that code which
 * builds a large result may check rpc_arena_error() once.
 */

#include <stddef.h>

#define RPC_ARENA_LIMIT_DEFAULT ((size_t)16 << 20)

struct rpc_arena_block;

struct rpc_arena {
	struct rpc_arena_block *head;
	size_t used;  /**< Bytes handed out, with padding. */
	size_t limit;
	int error;    /**< 0, -ENOMEM, -EFBIG (limit). */
};

/** @param limit Most bytes handed out between two resets; 0 means RPC_ARENA_LIMIT_DEFAULT. */
void rpc_arena_init(struct rpc_arena *a, size_t limit);
/** Accepts a zeroed object. */
void rpc_arena_deinit(struct rpc_arena *a);
/** Free everything but one block, and forget errors. */
void rpc_arena_reset(struct rpc_arena *a);

void *rpc_arena_alloc(struct rpc_arena *a, size_t size);
/** n * size bytes; an overflow counts as -EFBIG.  n 0 gives a valid pointer. */
void *rpc_arena_array(struct rpc_arena *a, size_t n, size_t size);
/** NUL-terminated copy. */
char *rpc_arena_strndup(struct rpc_arena *a, const char *s, size_t size);
/** NULL stays NULL. */
char *rpc_arena_strdup(struct rpc_arena *a, const char *s);
char *rpc_arena_printf(struct rpc_arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/** Base64 with padding. */
char *rpc_arena_base64(struct rpc_arena *a, const void *data, size_t size);

static inline int rpc_arena_error(const struct rpc_arena *a)
{
	return a->error;
}

#define auto_rpc_arena __attribute__((cleanup(rpc_arena_deinit)))

#endif /* RPC_ARENA_H */
