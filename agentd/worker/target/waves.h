/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_WAVES_H
#define WORKER_TARGET_WAVES_H

/** @file waves.h  What one wave is doing, whatever the vendor, and how a wave is named. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/agent_err.h"
#include "protocol/stop_reason.h"
#include "rpc_gen.h"

/** Calls that are not inlined, innermost first. */
struct wave_stack {
	struct rpc_caller *callers; /**< Their frames by locations_find(). */
	size_t n;
};

#define WAVE_REASONS_COUNT 12u /**< Values of enum rpc_stop_reason, from 0 on. */

struct wave {
	uint64_t pc, exec;
	uint64_t dispatch;
	uint64_t kernel_handle; /**< What its dispatch calls the kernel (snapshot/code.h); 0: not known. */
	uint32_t site, place, kernel; /**< By locations_find(). */
	uint32_t gpu_id, queue_id;
	uint32_t unit;	 /**< Compute die, streaming multiprocessor. */
	uint32_t index;	 /**< Within its queue and unit. */
	uint32_t leader; /**< Position, in the same array, of the first wave of its workgroup. */
	uint32_t workgroup[3];
	uint32_t reasons;     /**< STOP_REASON_BIT() of each. */
	const char *exception; /**< The vendor's name of them, static, one string for each; or NULL. */
	struct wave_stack *stack; /**< NULL: it is in its kernel, or nobody asked. */
	uint8_t state;	      /**< enum rpc_wave_state. */
	uint8_t lanes, width; /**< Active lanes, all lanes. */
	uint8_t wave_in_group, trap_id;
	uint8_t behind; /**< Bytes that pc is behind the start of the instruction it stopped in. */
	bool has_dispatch, has_workgroup, has_wave_in_group;
};

/** Does it name what the wave works on, so that the position is not looked at? */
static inline bool wave_name_lasts(const struct rpc_wave_name *n)
{
	return n->has_dispatch && n->n_workgroup == 3 && n->has_wave_in_group;
}
/** @param param  Where the name was.  @return 0, or negative with @p err when it names no wave at all. */
int wave_name_check(const struct rpc_wave_name *n, const char *param, struct agent_err *err);
bool wave_is_named(const struct wave *w, const struct rpc_wave_name *n);

/** Of how many waves a snapshot shows registers. */
#define WAVES_REPRESENTATIVES_MAX 64u
/**
 * The first wave of each kind (place, state, why it stopped), those that stopped for a reason before
 * others.
 * @return how many are in @p ret.
 */
size_t waves_choose_representatives(struct wave *waves, size_t n, struct wave *ret[WAVES_REPRESENTATIVES_MAX]);

#endif /* WORKER_TARGET_WAVES_H */
