/* SPDX-License-Identifier: MIT */
#ifndef RPC_FORMAT_H
#define RPC_FORMAT_H

/**
 * @file rpc_format.h
 * Re-indent JSON text in one pass, without building it up in memory.
 */

#include <stddef.h>

struct out;

enum rpc_format {
	RPC_FORMAT_SHORT,  /**< No white space at all. */
	RPC_FORMAT_PRETTY, /**< Two spaces a level, one member a line; no line break at the end. */
};

/**
 * Append JSON text with other white space.
 * @return 0, -EINVAL (not JSON, or deeper than 256 levels; @p o then holds the part before the
 *         mistake), -ENOMEM or -EFBIG (from @p o).
 */
int rpc_format(struct out *o, const char *text, size_t size, enum rpc_format format);

#endif /* RPC_FORMAT_H */
