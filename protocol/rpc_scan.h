/* SPDX-License-Identifier: MIT */
#ifndef RPC_SCAN_H
#define RPC_SCAN_H

/**
 * @file rpc_scan.h
 * JSON text, token by token: exactly the grammar of RFC 8259, valid UTF-8, bounded nesting.
 *
 * Nothing is copied or allocated, and the text needs no NUL behind it.  The scanner checks each
 * text before json-c sees it, since json-c alone would accept NaN, raw control characters and
 * over-long integers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Most levels of nesting that a scanner can follow. */
#define RPC_SCAN_DEPTH_MAX 256

enum rpc_token {
	RPC_TOKEN_BAD, /**< Not JSON: rpc_scan.problem and .pos say why and where.  Final. */
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

/** A scanner on one text; users may read data, pos, start, problem and depth. */
struct rpc_scan {
	const char *data; /**< The text; borrowed. */
	size_t size;
	size_t pos;	     /**< Bytes read so far. */
	size_t start;	     /**< First byte of the token just read, which ends at pos. */
	const char *problem; /**< Why the text is bad, after RPC_TOKEN_BAD; a constant. */
	unsigned depth;	     /**< Objects and arrays that are open. */
	unsigned max_depth;
	uint64_t in_object[RPC_SCAN_DEPTH_MAX / 64]; /**< One bit a level: object, not array. */
	uint8_t expect;				     /**< Private. */
};

/**
 * Begin to read a text.
 * @param data       Borrowed while the scanner is used.
 * @param max_depth  Most levels of nesting; at most RPC_SCAN_DEPTH_MAX.
 */
void rpc_scan_init(struct rpc_scan *s, const char *data, size_t size, unsigned max_depth);
/** Read the next token.  @return RPC_TOKEN_BAD or RPC_TOKEN_END again once it was given. */
enum rpc_token rpc_scan_next(struct rpc_scan *s);
/**
 * Read the rest of a value and give the text of all of it.
 * @param first  The token just read, with which the value begins; RPC_TOKEN_BAD must be handled
 *               by the caller.
 * @return false if the value is bad.
 */
bool rpc_scan_rest(struct rpc_scan *s, enum rpc_token first, const char **ret_text,
		   size_t *ret_size);

/** Whether a number token is an integer that fits neither int64_t nor uint64_t. */
bool rpc_scan_is_huge_integer(const char *text, size_t size);

/**
 * Give the content of a string token: escapes resolved, truncated to fit and NUL-terminated.
 * @param text  A token that rpc_scan_next() gave, with its quotes.
 * @return false if it was truncated or has a NUL character inside.
 */
bool rpc_scan_string(const char *text, size_t text_size, char *ret, size_t ret_size);

#endif /* RPC_SCAN_H */
