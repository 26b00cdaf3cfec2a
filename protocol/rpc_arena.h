/* SPDX-License-Identifier: MIT */
#ifndef RPC_ARENA_H
#define RPC_ARENA_H

/**
 * @file rpc_arena.h
 * Memory of one call: many small pieces, one limit, freed together.
 *
 * Everything is zero-filled and aligned to 16 bytes.  A failed allocation gives NULL and is
 * remembered, so that code which builds a large result may check rpc_arena_error() once.  Pieces
 * are never freed one by one, and pointers to them stay valid until the reset or deinit.
 */

#include <stdarg.h>
#include <stddef.h>

/** Bytes that an arena hands out when its owner sets no limit. */
#define RPC_ARENA_LIMIT_DEFAULT ((size_t)16 << 20)

struct rpc_arena_block;

struct rpc_arena {
	struct rpc_arena_block *head; /**< Pieces are taken from this block; full ones follow. */
	size_t used;  /**< Bytes handed out, with padding. */
	size_t limit; /**< Most bytes that may be handed out between two resets. */
	int error;    /**< First failure since the reset: 0, -ENOMEM, -EFBIG (limit). */
};

/**
 * Make an empty arena; nothing is allocated yet.
 * @param limit  Most bytes handed out between two resets; 0 means RPC_ARENA_LIMIT_DEFAULT.
 */
void rpc_arena_init(struct rpc_arena *a, size_t limit);
/** Free everything; a zeroed object is accepted. */
void rpc_arena_deinit(struct rpc_arena *a);
/** Free everything but one block, and forget errors.  The limit stays. */
void rpc_arena_reset(struct rpc_arena *a);

/**
 * Hand out @p size zeroed bytes.
 * @return a valid pointer also for size 0; NULL after -ENOMEM or -EFBIG, see rpc_arena_error().
 */
void *rpc_arena_alloc(struct rpc_arena *a, size_t size);
/**
 * Hand out n * size zeroed bytes.
 * @return as rpc_arena_alloc(); a product that overflows counts as -EFBIG.
 */
void *rpc_arena_array(struct rpc_arena *a, size_t n, size_t size);
/** Copy @p size bytes and put a NUL behind them.  @return NULL as rpc_arena_alloc(). */
char *rpc_arena_strndup(struct rpc_arena *a, const char *s, size_t size);
/** Copy a string; NULL stays NULL.  @return NULL also as rpc_arena_alloc(). */
char *rpc_arena_strdup(struct rpc_arena *a, const char *s);
/** Format a string into the arena.  @return NULL as rpc_arena_alloc(). */
char *rpc_arena_printf(struct rpc_arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/** The same with the arguments as a list. */
char *rpc_arena_vprintf(struct rpc_arena *a, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/** Encode bytes as a base64 string with padding.  @return NULL as rpc_arena_alloc(). */
char *rpc_arena_base64(struct rpc_arena *a, const void *data, size_t size);

/** The first failure since the last reset.  @return 0, -ENOMEM, -EFBIG (the limit). */
static inline int rpc_arena_error(const struct rpc_arena *a)
{
	return a->error;
}

/** A local arena that is freed where its scope ends; initialize it before any return. */
#define auto_rpc_arena __attribute__((cleanup(rpc_arena_deinit)))

#endif /* RPC_ARENA_H */
