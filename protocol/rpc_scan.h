/* SPDX-License-Identifier: MIT */
#ifndef RPC_SCAN_H
#define RPC_SCAN_H

/**
 * @file rpc_scan.h
 * JSON text, token by token: exactly the grammar of RFC 8259, valid UTF-8, bounded nesting.
 *
 * Nothing is copied or allocated, and the text needs no NUL behind it.  This runs in front of
 * json-c, which alone would accept NaN, raw control characters and over-long integers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RPC_SCAN_DEPTH_MAX 256

enum rpc_token {
	RPC_TOKEN_BAD, /**< rpc_scan.problem and .pos say what and where; stays so. */
	RPC_TOKEN_END, /**< The one value and the text are over. */
	RPC_TOKEN_OBJECT,
	RPC_TOKEN_OBJECT_END,
	RPC_TOKEN_ARRAY,
	RPC_TOKEN_ARRAY_END,
	RPC_TOKEN_NAME, /**< Name of a member, with its quotes; the value follows. */
	RPC_TOKEN_STRING,
	RPC_TOKEN_NUMBER,
	RPC_TOKEN_TRUE,
	RPC_TOKEN_FALSE,
	RPC_TOKEN_NULL,
};

struct rpc_scan {
	const char *data;
	size_t size;
	size_t pos;
	size_t start;	     /**< Of the token just read; it ends at pos. */
	const char *problem; /**< After RPC_TOKEN_BAD. */
	unsigned depth;
	unsigned max_depth;
	uint64_t in_object[RPC_SCAN_DEPTH_MAX / 64];
	uint8_t expect; /**< Private. */
};

/** @param max_depth At most RPC_SCAN_DEPTH_MAX. */
void rpc_scan_init(struct rpc_scan *s, const char *data, size_t size, unsigned max_depth);
enum rpc_token rpc_scan_next(struct rpc_scan *s);
/**
 * Read one whole value, of which @p first is the token just read, and give its text.
 * @return false if it is bad.
 */
bool rpc_scan_rest(struct rpc_scan *s, enum rpc_token first, const char **ret_text,
		   size_t *ret_size);

/** Whether a number token is an integer that fits neither int64_t nor uint64_t. */
bool rpc_scan_is_huge_integer(const char *text, size_t size);

/**
 * Content of a string token, escapes resolved, truncated to fit and NUL-terminated.
 * @return false if it was truncated or has a NUL character inside.
 */
bool rpc_scan_string(const char *text, size_t text_size, char *ret, size_t ret_size);

#endif /* RPC_SCAN_H */
