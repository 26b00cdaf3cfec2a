/* SPDX-License-Identifier: MIT */
#ifndef FRONTEND_RPC_NOTICES_H
#define FRONTEND_RPC_NOTICES_H

/**
 * @file notices.h
 * Notifications of exceptions on their way to one client of a session: what it filters out, and
 * what waits because it does not read.
 *
 * A client that is behind loses the oldest; the next one it gets says how many.  Other
 * notifications are few and are never dropped; they keep their place in the order.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct conn;
struct out;
struct rpc_exception_filter_params;
struct rpc_exception_raised_params;

/** Most that wait for one client. */
#define NOTICES_MAX	  256
#define NOTICES_BYTES_MAX ((size_t)1 << 20)

struct notice {
	STAILQ_ENTRY(notice) link;
	size_t size;
	char params[];
};

struct notices {
	STAILQ_HEAD(, notice) waiting;
	size_t n, bytes;
	uint64_t lost; /**< Dropped since the last one that was sent. */
	uint64_t exceptions; /**< Filter: bit (code - 1); 0: all. */
	char **kernels;	     /**< Filter: patterns. */
	size_t n_kernels;
};

void notices_init(struct notices *n);
void notices_deinit(struct notices *n);

/** Replace the filter.  @return 0, -ENOMEM (it stays as it was). */
int notices_filter(struct notices *n, const struct rpc_exception_filter_params *p);
static inline bool notices_has_filter(const struct notices *n)
{
	return n->exceptions || n->n_kernels;
}
bool notices_wants(const struct notices *n, const struct rpc_exception_raised_params *p);

/** Send the params of an exception.raised, or let them wait. */
void notices_send(struct notices *n, struct conn *c, const char *params, size_t size);
/** Send what waits while the client keeps up; all of it if @p everything. */
void notices_flush(struct notices *n, struct conn *c, bool everything);

#endif /* FRONTEND_RPC_NOTICES_H */
