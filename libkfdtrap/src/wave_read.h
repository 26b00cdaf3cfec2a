/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_WAVE_READ_H
#define KFDTRAP_WAVE_READ_H

/**
 * @file wave_read.h
 * Finds out what one wave is doing, from its trap temporaries and hardware registers.
 *
 * wave_arch.c compiles wave_read() once per generation, with that generation's tables as constants.
 * That takes half the time per wave of the same code with tables that it has to look into.
 */

#include "wave_arch.h"

/* These are the same in every generation. */
#define WAVE_TTMP_WAVE_ID  4
#define WAVE_TTMP6_STOPPED (UINT32_C(1) << 30)
#define WAVE_TTMP6_HALT	   (UINT32_C(1) << 29)

/**
 * r_version from which on waves whose dispatch part is unusable are marked, and those that the trap
 * handler has halted.
 */
#define WAVE_R_VERSION_MARKS	 10
#define WAVE_STATUS_SKIP_EXPORT	 (UINT32_C(1) << 18)

/** @return two little-endian words at any alignment as one number. */
WAVE_INLINE uint64_t wave_load_pair(const uint8_t *words)
{
	return wave_load32(words) | (uint64_t)wave_load32(words + 4) << 32;
}

/* @return the word of a slot among the first 16 of the HWREG block; 0: it is not saved. */
WAVE_INLINE uint32_t wave_slot_read(const uint8_t *hwregs, struct wave_slot s)
{
	return s.n_words ? wave_load32(hwregs + 4 * s.slot) : 0;
}

/* @return a special register of the HWREG block, or its low word; 0 where there is none. */
WAVE_INLINE uint32_t wave_special(const struct kfdtrap_wave_arch *arch, const uint8_t *hwregs,
				  enum kfdtrap_wave_special special)
{
	return wave_slot_read(hwregs, arch->specials[special]);
}

/** @return the stop reason of an s_trap. */
WAVE_INLINE uint32_t wave_trap_reason(uint32_t trap_id)
{
	switch (trap_id) {
	case 0:
		return 0;
	case 1:
		return KFDTRAP_WAVE_STOP_BREAKPOINT;
	case 2:
		return KFDTRAP_WAVE_STOP_ASSERT;
	case 3:
		return KFDTRAP_WAVE_STOP_DEBUG_TRAP;
	default:
		return KFDTRAP_WAVE_STOP_TRAP;
	}
}

/**
 * @return KFDTRAP_WAVE_STOP_* of a stopped wave.  A flag of a math exception or watch point counts
 *         only when its trap is enabled.
 */
WAVE_INLINE uint32_t wave_stop_reasons(const struct wave_bits *b,
				       const struct kfdtrap_wave_arch *arch, const uint8_t *hwregs,
				       uint32_t trap_id)
{
	uint32_t flags = wave_special(arch, hwregs, b->flags_register);
	uint32_t enable = wave_special(arch, hwregs, b->enable_register);
	uint32_t math = wave_special(arch, hwregs, b->math_register);
	uint32_t reasons = wave_trap_reason(trap_id);

	reasons |= math & enable >> b->math_enable_shift & KFDTRAP_WAVE_STOP_MATH;
	if (enable & b->watch_enable)
		for (unsigned int i = 0; i < 4; i++)
			if (flags & b->watch[i])
				reasons |= KFDTRAP_WAVE_STOP_WATCH_0 << i;
	if (flags & b->xnack_error)
		reasons |= KFDTRAP_WAVE_STOP_MEMORY_VIOLATION;
	else if (flags & b->memory_violation)
		reasons |= KFDTRAP_WAVE_STOP_ADDRESS_ERROR;
	if (flags & b->illegal_instruction)
		reasons |= KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION;
	if (flags & b->single_step)
		reasons |= KFDTRAP_WAVE_STOP_SINGLE_STEP;
	if (flags & b->begin_end)
		reasons |= KFDTRAP_WAVE_STOP_TRAP;
	return reasons;
}

/** Are waves told at their launch what they are of, whenever they began? */
WAVE_INLINE bool wave_is_set_up(const struct kfdtrap_wave_context *context)
{
	return context->ttmp_setup || (context->debug_prop & KFDTRAP_DEBUG_PROP_DISPATCH_INFO);
}

/** Do the trap temporaries tell of the dispatch? */
WAVE_INLINE bool wave_may_have_dispatch(const struct wave_ttmp_fields *f,
					const struct kfdtrap_wave_context *context,
					const uint8_t *ttmps)
{
	if (!wave_is_set_up(context))
		return false;
	return context->r_version < WAVE_R_VERSION_MARKS ||
	       !wave_field_get(ttmps, f->no_dispatch) ||
	       (f->no_dispatch_if.width && !wave_field_get(ttmps, f->no_dispatch_if));
}

/** Decode the part of the trap temporaries that tells of the dispatch. */
WAVE_INLINE void wave_read_dispatch(const struct wave_ttmp_fields *f,
				    const struct kfdtrap_wave_context *context,
				    const uint8_t *ttmps, struct kfdtrap_wave_state *s)
{
	bool has = wave_may_have_dispatch(f, context, ttmps);
	bool has_yz = has && (!f->has_yz.width || wave_field_get(ttmps, f->has_yz));

	s->packet = has ? wave_field_get(ttmps, f->packet) : 0;
	s->wave_in_group = has ? (uint8_t)wave_field_get(ttmps, f->wave_in_group) : 0;
	s->workgroup[0] = has ? wave_field_get(ttmps, f->workgroup[0]) : 0;
	s->workgroup[1] = has_yz ? wave_field_get(ttmps, f->workgroup[1]) : 0;
	s->workgroup[2] = has_yz ? wave_field_get(ttmps, f->workgroup[2]) : 0;
	s->valid = (has ? KFDTRAP_WAVE_HAS_PACKET | KFDTRAP_WAVE_HAS_WAVE_IN_GROUP |
				  KFDTRAP_WAVE_HAS_WORKGROUP_X :
			  0) |
		   (has_yz ? KFDTRAP_WAVE_HAS_WORKGROUP_YZ : 0);
}

/*
 * Does the part that the trap handler keeps mean something?  Generations that have no bit for that
 * rely on the launch to clear it: where it does not, it is left over from other waves until the
 * handler stops the wave.  That one is halted, from some version on with a mark.
 */
WAVE_INLINE bool wave_has_handler(const struct wave_ttmp_fields *f,
				  const struct kfdtrap_wave_context *context, const uint8_t *ttmps,
				  const struct kfdtrap_wave_state *s)
{
	if (f->handler_ready.width)
		return wave_field_get(ttmps, f->handler_ready);
	if (wave_is_set_up(context))
		return true;
	return (wave_load32(ttmps + 4 * 6) & WAVE_TTMP6_STOPPED) && s->halted &&
	       (context->r_version < WAVE_R_VERSION_MARKS || (s->status & WAVE_STATUS_SKIP_EXPORT));
}

/* Decode the part that the trap handler keeps. */
WAVE_INLINE void wave_read_handler(const struct kfdtrap_wave_arch *arch,
				   const struct wave_ttmp_fields *f,
				   const struct kfdtrap_wave_context *context,
				   const uint8_t *ttmps, const uint8_t *hwregs,
				   struct kfdtrap_wave_state *s)
{
	bool ready = wave_has_handler(f, context, ttmps, s);
	bool has_id = ready && (f->handler_ready.width || wave_is_set_up(context));
	uint32_t ttmp6 = ready ? wave_load32(ttmps + 4 * 6) : 0;

	s->wave_id = has_id ? wave_load_pair(ttmps + 4 * WAVE_TTMP_WAVE_ID) : 0;
	s->valid |= has_id ? KFDTRAP_WAVE_HAS_WAVE_ID : 0;
	s->stopped = ttmp6 & WAVE_TTMP6_STOPPED;
	s->trap_id = ready ? (uint8_t)wave_field_get(ttmps, f->trap_id) : 0;
	s->stop_reasons = 0;
	s->parked = s->stopped && f->parked_pc_lo.width &&
		    context->r_version >= f->parks_from;
	if (!s->stopped)
		return;
	s->halted = ttmp6 & WAVE_TTMP6_HALT;
	s->stop_reasons = wave_stop_reasons(arch->bits, arch, hwregs, s->trap_id);
	if (s->parked)
		s->pc = wave_field_get(ttmps, f->parked_pc_lo) |
			(uint64_t)wave_field_get(ttmps, f->parked_pc_hi) << 32;
}

/**
 * Decode the hardware registers; wave_read_handler() corrects pc and halt of a stopped wave
 * afterwards.
 */
WAVE_INLINE void wave_read_registers(const struct kfdtrap_wave_arch *arch, const uint8_t *hwregs,
				     uint8_t lanes, struct kfdtrap_wave_state *s)
{
	uint64_t exec = wave_load_pair(hwregs + 4 * arch->specials[KFDTRAP_WAVE_EXEC].slot);

	s->pc = wave_load_pair(hwregs + 4 * arch->specials[KFDTRAP_WAVE_PC].slot);
	if (arch->pc_bits)
		s->pc &= (UINT64_C(1) << arch->pc_bits) - 1;
	s->exec = lanes == 32 ? (uint32_t)exec : exec;
	s->m0 = wave_special(arch, hwregs, KFDTRAP_WAVE_M0);
	s->mode = wave_special(arch, hwregs, KFDTRAP_WAVE_MODE);
	s->status = wave_special(arch, hwregs, KFDTRAP_WAVE_STATUS);
	s->state_priv = wave_special(arch, hwregs, KFDTRAP_WAVE_STATE_PRIV);
	s->excp_flags = wave_special(arch, hwregs, arch->bits->flags_register);
	s->excp_flags_user = wave_special(arch, hwregs, KFDTRAP_WAVE_EXCP_FLAG_USER);
	s->trap_ctrl = wave_special(arch, hwregs, KFDTRAP_WAVE_TRAP_CTRL);
	s->barrier = wave_slot_read(hwregs, arch->barrier);
	s->cluster_barrier = wave_slot_read(hwregs, arch->cluster_barrier);
	s->halted = wave_special(arch, hwregs, arch->bits->halt_register) & arch->bits->halt;
}

/* Make the status words as the program would see them without a trap handler. */
WAVE_INLINE void wave_clean_status(const struct wave_bits *b, struct kfdtrap_wave_state *s)
{
	uint32_t halt = s->halted ? b->halt : 0;

	s->status_user = s->status & ~b->hidden;
	s->state_priv_user = s->state_priv;
	if (b->halt_register == KFDTRAP_WAVE_STATUS)
		s->status_user = (s->status_user & ~b->halt) | halt;
	else
		s->state_priv_user = (s->state_priv & ~b->halt) | halt;
}

/* Decode a wave.  Every member of @p s is written. */
WAVE_INLINE enum kfdtrap_wave_problem wave_read(const struct kfdtrap_wave_arch *arch,
						const struct kfdtrap_wave_context *context,
						const struct kfdtrap_wave_layout *layout,
						const uint8_t *hot,
						struct kfdtrap_wave_state *restrict s)
{
	/**
	 * Blocks are listed from high to low addresses, so the one that is listed second is first
	 * in the bytes.
	 */
	bool ttmp_first = arch->order[0] != WAVE_BLOCK_TTMP;
	const uint8_t *ttmps = hot + (ttmp_first ? 0 : KFDTRAP_WAVE_HOT_SIZE / 2);
	const uint8_t *hwregs = hot + (ttmp_first ? KFDTRAP_WAVE_HOT_SIZE / 2 : 0);

	wave_read_registers(arch, hwregs, layout->lanes, s);
	wave_read_dispatch(arch->ttmp, context, ttmps, s);
	wave_read_handler(arch, arch->ttmp, context, ttmps, hwregs, s);
	wave_clean_status(arch->bits, s);
	return s->pc % 4 == 0 ? KFDTRAP_WAVE_OK : KFDTRAP_WAVE_PC_ALIGNMENT;
}

#endif /* KFDTRAP_WAVE_READ_H */
