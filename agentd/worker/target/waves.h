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

/** The calls that led to a wave's pc and are not inlined, innermost first. */
struct wave_stack {
	struct rpc_caller *callers; /**< locations_find() fills in their frames. */
	size_t n;
};

/** The parts of a wave whose lanes are at different places. */
struct wave_parts {
	/**
	 * Each is as the wave, with pc, exec, lanes, reasons and exception of its own, and no stack.
	 * That of the wave's pc is the first.
	 */
	struct wave *list;
	uint32_t n;
};

#define WAVE_REASONS_COUNT 12u /**< Values of enum rpc_stop_reason, from 0 on. */

/** AMD: what was saved of a wave and tells whether it waits (waits/barrier.h). */
struct wave_saved {
	uint32_t status;     /**< STATUS, before gfx12. */
	uint32_t state_priv; /**< From gfx12 on, as the next. */
	uint32_t barrier;    /**< What s_get_barrier_state told of the workgroup's barrier. */
	uint32_t cluster;    /**< From gfx12.5 on: the same of the cluster's. */
	/** gfx12.5, of the first wave of a workgroup: the same of WAITS_NAMED_BARRIERS; NULL: they were not read. */
	const uint32_t *named;
};

/** One wave as it stood when it was captured. */
struct wave {
	uint64_t pc, exec;
	uint64_t dispatch;
	/** The name of the kernel in the wave's dispatch (code_kernel()); 0: not known. */
	uint64_t kernel_handle;
	/** AMD: the address of the arguments of its dispatch; 0: not known. */
	uint64_t arguments;
	uint32_t site, place, kernel; /**< Set by locations_find(); see struct locations. */
	uint32_t gpu_id, queue_id;
	uint32_t unit;	 /**< Compute die or streaming multiprocessor. */
	uint32_t index;	 /**< Position within its queue and unit. */
	uint32_t leader; /**< Position, in the same array, of the first wave of its workgroup. */
	uint32_t workgroup[3];
	uint32_t reasons;     /**< STOP_REASON_BIT() of each reason why it stopped. */
	/** The vendor's name of the exception, or NULL; static, and compared by address. */
	const char *exception;
	struct wave_stack *stack; /**< NULL: the wave is in its kernel, or nobody asked. */
	/** Of the wave and of each of its parts; NULL: all lanes are at one place. */
	struct wave_parts *parts;
	struct wave_saved saved;
	uint16_t group_waves; /**< How many waves its workgroup was launched with; 0: not known. */
	uint32_t group;	      /**< Of a part: set by group_waves(). */
	uint8_t state;	      /**< enum rpc_wave_state. */
	uint8_t lanes, width; /**< Active lanes, all lanes. */
	uint8_t wave_in_group, trap_id;
	uint8_t behind; /**< Bytes that pc is behind the start of the instruction it stopped in. */
	uint8_t lane;	      /**< Of a part: one of its lanes, that with the exception. */
	bool has_dispatch, has_workgroup, has_wave_in_group;
	bool is_part, waits;  /**< It is a part; its lanes wait for others of the wave. */
};

/** Most parts of all waves of a capture: the lanes of a whole device may all be somewhere else. */
#define WAVES_PARTS_MAX 131072u

/** @return how many parts there are in place of the wave, 0 where it is whole or itself a part. */
static inline uint32_t wave_n_parts(const struct wave *w)
{
	return w->parts && !w->is_part ? w->parts->n : 0;
}
/** Is the lane that speaks for the wave there?  Only that one's callers are known. */
static inline bool wave_speaks(const struct wave *w)
{
	return !w->is_part || w->lane == w->parts->list[0].lane;
}

/**
 * @return whether the name says what the wave works on, by dispatch, workgroup and wave in group.
 *         Such a name stays right when the wave moves, so unit and index are not looked at.
 */
static inline bool wave_name_lasts(const struct rpc_wave_name *n)
{
	return n->has_dispatch && n->n_workgroup == 3 && n->has_wave_in_group;
}
/**
 * Check that a name can name a wave at all.
 * @param param  The parameter that the name was in.
 * @return 0, or negative with @p err.
 */
int wave_name_check(const struct rpc_wave_name *n, const char *param, struct agent_err *err);
/** @return whether this is the wave that is named; all that the name says must be right. */
bool wave_is_named(const struct wave *w, const struct rpc_wave_name *n);

/** Most waves whose registers a snapshot shows. */
#define WAVES_REPRESENTATIVES_MAX 64u
/**
 * Choose the first wave of each kind: of those at one pc, in one state, stopped for the same
 * reasons.  Waves that stopped for a reason come before the others.
 * @param ret  Pointers into @p waves.
 * @return how many were chosen.
 */
size_t waves_choose_representatives(struct wave *waves, size_t n,
				    struct wave *ret[WAVES_REPRESENTATIVES_MAX]);

#endif /* WORKER_TARGET_WAVES_H */
