/* SPDX-License-Identifier: MIT */
#ifndef PROTOCOL_STOP_REASON_H
#define PROTOCOL_STOP_REASON_H

/**
 * @file stop_reason.h
 * Which reasons to stop are faults of the program, for all code that sorts or colours groups.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc_gen.h"

/** Bit of one enum rpc_stop_reason in a set. */
#define STOP_REASON_BIT(reason) (UINT32_C(1) << (reason))

/** The reasons that are faults.  The others are traps, and stops that a debugger asked for. */
#define STOP_REASONS_FAULT                                                                         \
	(STOP_REASON_BIT(RPC_STOP_REASON_MEMORY_VIOLATION) |                                       \
	 STOP_REASON_BIT(RPC_STOP_REASON_ADDRESS_ERROR) |                                          \
	 STOP_REASON_BIT(RPC_STOP_REASON_ILLEGAL_INSTRUCTION) |                                    \
	 STOP_REASON_BIT(RPC_STOP_REASON_MATH_ERROR) | STOP_REASON_BIT(RPC_STOP_REASON_ASSERT) |   \
	 STOP_REASON_BIT(RPC_STOP_REASON_FAULT))

/** Whether one of the reasons of this group is a fault. */
static inline bool stop_reason_is_faulting(const struct rpc_group *g)
{
	for (size_t i = 0; i < g->n_reasons; i++)
		if (STOP_REASONS_FAULT & STOP_REASON_BIT(g->reasons[i]))
			return true;
	return false;
}

#endif /* PROTOCOL_STOP_REASON_H */
