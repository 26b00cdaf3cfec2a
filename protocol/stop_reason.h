/* SPDX-License-Identifier: MIT */
#ifndef PROTOCOL_STOP_REASON_H
#define PROTOCOL_STOP_REASON_H

/**
 * @file stop_reason.h
 * Why waves are stopped, in words, and which reasons are faults of the program: for all code that
 * shows, sorts or colours groups.
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

/**
 * Why waves are stopped: what the vendor calls it, or else the reasons joined by commas; "" without
 * one.
 * @param exception  The vendor's name, or NULL.
 * @return a text in the arena, NULL when that is exhausted.
 */
static inline const char *stop_reason_text(struct rpc_arena *a, const char *exception,
					   const enum rpc_stop_reason *reasons, size_t n)
{
	return exception ? rpc_arena_strdup(a, exception) :
			   rpc_enum_join(a, &rpc_stop_reason_enum, reasons, n);
}

#endif /* PROTOCOL_STOP_REASON_H */
