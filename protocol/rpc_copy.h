/* SPDX-License-Identifier: MIT */
#ifndef RPC_COPY_H
#define RPC_COPY_H

/** @file rpc_copy.h  Copies of structures of the schema, by the tables that the codec has. */

#include "protocol/rpc_codec.h"

/**
 * Make a deep copy of a filled structure, as encoding and decoding would: members that are not there are zero, and a
 * required string that is NULL is "".  Nothing is checked: the source has been decoded, or was filled by this program.
 * @param a    Strings and arrays go there.
 * @param ret  structure->size bytes, other than those of @p from; contents unspecified on failure.
 * @return 0, -ENOMEM or -EFBIG (arena).
 */
int rpc_copy_struct(struct rpc_arena *a, const struct rpc_struct *structure, const void *from, void *ret);

#endif /* RPC_COPY_H */
