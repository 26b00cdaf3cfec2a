/* SPDX-License-Identifier: MIT */
/* Names of what a wave is doing; wave_read.h finds it out. */
#include "wave_arch.h"

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

enum kfdtrap_wave_problem kfdtrap_wave_read_state(const struct kfdtrap_wave_arch *arch,
						  const struct kfdtrap_wave_context *context,
						  const struct kfdtrap_wave_layout *layout,
						  const void *hot,
						  struct kfdtrap_wave_state *ret_state)
{
	return arch->read(context, layout, hot, ret_state);
}

bool kfdtrap_wave_named_barriers_find(const struct kfdtrap_wave_arch *arch,
				      const struct kfdtrap_wave_layout *layout, uint32_t *ret_offset)
{
	struct wave_slot s = arch->named_barriers;

	if (!s.n_words)
		return false;
	*ret_offset = layout->hwreg_offset + s.slot * 4u;
	return true;
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
