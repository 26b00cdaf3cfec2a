/* SPDX-License-Identifier: MIT */
/* What one wave is doing: trap temporaries and hardware registers. */
#include "wave_arch.h"

/* Words of the trap temporaries with the same place and bits in every generation. */
#define TTMP_WAVE_ID  4
#define TTMP6_STOPPED (UINT32_C(1) << 30)
#define TTMP6_HALT    (UINT32_C(1) << 29)

#define R_VERSION_NO_DISPATCH 10

static const char *const stop_names[KFDTRAP_WAVE_STOP_COUNT] = {
	"fp_invalid",
	"fp_input_denormal",
	"fp_divide_by_zero",
	"fp_overflow",
	"fp_underflow",
	"fp_inexact",
	"int_divide_by_zero",
	"watch_0",
	"watch_1",
	"watch_2",
	"watch_3",
	"memory_violation",
	"address_error",
	"illegal_instruction",
	"single_step",
	"breakpoint",
	"assert",
	"debug_trap",
	"trap",
};

const char *kfdtrap_wave_stop_name(unsigned int bit)
{
	return bit < KFDTRAP_WAVE_STOP_COUNT ? stop_names[bit] : NULL;
}

uint64_t kfdtrap_wave_stop_exceptions(uint32_t stop_reasons)
{
	static const struct {
		uint32_t reasons;
		enum kfdtrap_exception code;
	} rows[] = {
		{ KFDTRAP_WAVE_STOP_ASSERT, KFDTRAP_EC_QUEUE_WAVE_ABORT },
		{ KFDTRAP_WAVE_STOP_WATCH | KFDTRAP_WAVE_STOP_SINGLE_STEP |
			  KFDTRAP_WAVE_STOP_BREAKPOINT | KFDTRAP_WAVE_STOP_DEBUG_TRAP |
			  KFDTRAP_WAVE_STOP_TRAP,
		  KFDTRAP_EC_QUEUE_WAVE_TRAP },
		{ KFDTRAP_WAVE_STOP_MATH, KFDTRAP_EC_QUEUE_WAVE_MATH_ERROR },
		{ KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION,
		  KFDTRAP_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION },
		{ KFDTRAP_WAVE_STOP_MEMORY_VIOLATION, KFDTRAP_EC_QUEUE_WAVE_MEMORY_VIOLATION },
		{ KFDTRAP_WAVE_STOP_ADDRESS_ERROR, KFDTRAP_EC_QUEUE_WAVE_APERTURE_VIOLATION },
	};
	uint64_t mask = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (stop_reasons & rows[i].reasons)
			mask |= KFDTRAP_EC_MASK(rows[i].code);
	return mask;
}

/* A special register of the HWREG block, or its low word; 0 where there is none. */
static uint32_t special32(const struct kfdtrap_wave_arch *arch, const uint8_t *hwregs,
			  enum kfdtrap_wave_special special)
{
	struct wave_slot s = arch->specials[special];

	return s.n_words ? wave_load32(hwregs + 4 * s.slot) : 0;
}

static uint64_t pair(const uint8_t *words)
{
	return wave_load32(words) | (uint64_t)wave_load32(words + 4) << 32;
}

static uint32_t trap_reason(uint32_t trap_id)
{
	static const uint32_t reasons[] = {
		0,
		KFDTRAP_WAVE_STOP_BREAKPOINT,
		KFDTRAP_WAVE_STOP_ASSERT,
		KFDTRAP_WAVE_STOP_DEBUG_TRAP,
	};

	return trap_id < sizeof(reasons) / sizeof(reasons[0]) ? reasons[trap_id] :
								KFDTRAP_WAVE_STOP_TRAP;
}

static uint32_t stop_reasons(const struct kfdtrap_wave_arch *arch, const uint8_t *hwregs,
			     uint32_t trap_id)
{
	const struct wave_bits *b = arch->bits;
	uint32_t flags = special32(arch, hwregs, b->flags_register);
	uint32_t enable = special32(arch, hwregs, b->enable_register);
	uint32_t reasons = trap_reason(trap_id);

	reasons |= special32(arch, hwregs, b->math_register) & enable >> b->math_enable_shift &
		   KFDTRAP_WAVE_STOP_MATH;
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

static bool may_have_dispatch(const struct wave_ttmp_fields *f,
			      const struct kfdtrap_wave_context *context, const uint8_t *ttmps)
{
	if (!context->ttmp_setup && !(context->debug_prop & KFDTRAP_DEBUG_PROP_DISPATCH_INFO))
		return false;
	return context->r_version < R_VERSION_NO_DISPATCH ||
	       !wave_field_get(ttmps, f->no_dispatch) ||
	       (f->no_dispatch_if.width && !wave_field_get(ttmps, f->no_dispatch_if));
}

static void read_dispatch(const struct wave_ttmp_fields *f, const uint8_t *ttmps,
			  struct kfdtrap_wave_state *s)
{
	s->packet = wave_field_get(ttmps, f->packet);
	s->wave_in_group = (uint8_t)wave_field_get(ttmps, f->wave_in_group);
	s->workgroup[0] = wave_field_get(ttmps, f->workgroup[0]);
	s->valid |= KFDTRAP_WAVE_HAS_PACKET | KFDTRAP_WAVE_HAS_WAVE_IN_GROUP |
		    KFDTRAP_WAVE_HAS_WORKGROUP_X;
	if (f->has_yz.width && !wave_field_get(ttmps, f->has_yz))
		return;
	s->workgroup[1] = wave_field_get(ttmps, f->workgroup[1]);
	s->workgroup[2] = wave_field_get(ttmps, f->workgroup[2]);
	s->valid |= KFDTRAP_WAVE_HAS_WORKGROUP_YZ;
}

/* The part that the trap handler keeps; nothing of it holds before the handler has set it up. */
static void read_handler(const struct kfdtrap_wave_arch *arch, uint32_t r_version,
			 const uint8_t *ttmps, const uint8_t *hwregs, struct kfdtrap_wave_state *s)
{
	const struct wave_ttmp_fields *f = arch->ttmp;
	uint32_t ttmp6;

	if (f->handler_ready.width && !wave_field_get(ttmps, f->handler_ready))
		return;
	ttmp6 = wave_load32(ttmps + 4 * 6);
	s->wave_id = pair(ttmps + 4 * TTMP_WAVE_ID);
	s->valid |= KFDTRAP_WAVE_HAS_WAVE_ID;
	s->trap_id = (uint8_t)wave_field_get(ttmps, f->trap_id);
	if (!(ttmp6 & TTMP6_STOPPED))
		return;
	s->stopped = true;
	s->halted = ttmp6 & TTMP6_HALT;
	s->stop_reasons = stop_reasons(arch, hwregs, s->trap_id);
	if (f->parked_pc_lo.width && r_version >= f->parks_from) {
		s->parked = true;
		s->pc = wave_field_get(ttmps, f->parked_pc_lo) |
			(uint64_t)wave_field_get(ttmps, f->parked_pc_hi) << 32;
	}
}

static void read_registers(const struct kfdtrap_wave_arch *arch, const uint8_t *hwregs,
			   struct kfdtrap_wave_state *s)
{
	s->pc = pair(hwregs + 4 * arch->specials[KFDTRAP_WAVE_PC].slot);
	s->exec = pair(hwregs + 4 * arch->specials[KFDTRAP_WAVE_EXEC].slot);
	s->m0 = special32(arch, hwregs, KFDTRAP_WAVE_M0);
	s->mode = special32(arch, hwregs, KFDTRAP_WAVE_MODE);
	s->status = special32(arch, hwregs, KFDTRAP_WAVE_STATUS);
	s->state_priv = special32(arch, hwregs, KFDTRAP_WAVE_STATE_PRIV);
	s->excp_flags = special32(arch, hwregs, arch->bits->flags_register);
	s->excp_flags_user = special32(arch, hwregs, KFDTRAP_WAVE_EXCP_FLAG_USER);
	s->trap_ctrl = special32(arch, hwregs, KFDTRAP_WAVE_TRAP_CTRL);
	s->halted = special32(arch, hwregs, arch->bits->halt_register) & arch->bits->halt;
}

/* The words as the program would see them without a trap handler. */
static void clean_status(const struct wave_bits *b, struct kfdtrap_wave_state *s)
{
	uint32_t halt = s->halted ? b->halt : 0;

	s->status_user = s->status & ~b->hidden;
	s->state_priv_user = s->state_priv;
	if (b->halt_register == KFDTRAP_WAVE_STATUS)
		s->status_user = (s->status_user & ~b->halt) | halt;
	else
		s->state_priv_user = (s->state_priv & ~b->halt) | halt;
}

enum kfdtrap_wave_problem kfdtrap_wave_read_state(const struct kfdtrap_wave_arch *arch,
						  const struct kfdtrap_wave_context *context,
						  const struct kfdtrap_wave_layout *layout,
						  const void *hot,
						  struct kfdtrap_wave_state *ret_state)
{
	uint32_t hot_offset = kfdtrap_wave_hot_offset(layout);
	bool ttmp_first = layout->ttmp_offset == hot_offset;
	const uint8_t *ttmps = (const uint8_t *)hot + (ttmp_first ? 0 : KFDTRAP_WAVE_HOT_SIZE / 2);
	const uint8_t *hwregs = (const uint8_t *)hot + (ttmp_first ? KFDTRAP_WAVE_HOT_SIZE / 2 : 0);

	*ret_state = (struct kfdtrap_wave_state){ 0 };
	read_registers(arch, hwregs, ret_state);
	if (layout->lanes == 32)
		ret_state->exec &= UINT32_MAX;
	if (may_have_dispatch(arch->ttmp, context, ttmps))
		read_dispatch(arch->ttmp, ttmps, ret_state);
	read_handler(arch, context->r_version, ttmps, hwregs, ret_state);
	clean_status(arch->bits, ret_state);
	return ret_state->pc % 4 == 0 ? KFDTRAP_WAVE_OK : KFDTRAP_WAVE_PC_ALIGNMENT;
}

enum kfdtrap_wave_problem kfdtrap_wave_check_group(const struct kfdtrap_wave_state *leader,
						   const struct kfdtrap_wave_state *wave)
{
	const uint8_t both = leader->valid & wave->valid;

	if (both & KFDTRAP_WAVE_HAS_WORKGROUP_X && leader->workgroup[0] != wave->workgroup[0])
		return KFDTRAP_WAVE_GROUP_ID;
	if (both & KFDTRAP_WAVE_HAS_WORKGROUP_YZ && (leader->workgroup[1] != wave->workgroup[1] ||
						     leader->workgroup[2] != wave->workgroup[2]))
		return KFDTRAP_WAVE_GROUP_ID;
	return KFDTRAP_WAVE_OK;
}
