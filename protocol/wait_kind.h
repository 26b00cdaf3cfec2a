/* SPDX-License-Identifier: MIT */
#ifndef PROTOCOL_WAIT_KIND_H
#define PROTOCOL_WAIT_KIND_H

/** @file wait_kind.h  What waves wait for, in words: for all code that shows it. */

#include <stdbool.h>
#include <stddef.h>

#include "rpc_gen.h"

/** Of one wave that polls memory, and of calls of the host, rpc_wait.who says all: what for, too. */
static inline bool wait_kind_is_told_by_name(enum rpc_wait_kind kind)
{
	return kind == RPC_WAIT_KIND_SPIN || kind == RPC_WAIT_KIND_LOCK || kind == RPC_WAIT_KIND_HOST;
}

/** @return what stands for a kind in a sentence; NULL: its own name. */
static inline const char *wait_kind_words(enum rpc_wait_kind kind)
{
	switch (kind) {
	case RPC_WAIT_KIND_GRID:
		return "barrier of the grid";
	case RPC_WAIT_KIND_MBARRIER:
		return "barrier in shared memory";
	case RPC_WAIT_KIND_NAMED_BARRIER:
		return "named barrier";
	case RPC_WAIT_KIND_CLUSTER:
		return "barrier of the cluster";
	case RPC_WAIT_KIND_WARP_SYNC:
		return "barrier of its warp";
	case RPC_WAIT_KIND_COLLECTIVE:
		return "collective operation";
	default:
		return NULL;
	}
}

/** @return what stands in front of those words: they wait at a barrier, and in an operation. */
static inline const char *wait_kind_joint(enum rpc_wait_kind kind)
{
	return kind == RPC_WAIT_KIND_COLLECTIVE ? "in" : "at";
}

#endif /* PROTOCOL_WAIT_KIND_H */
