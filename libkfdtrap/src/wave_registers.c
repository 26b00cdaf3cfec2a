/* SPDX-License-Identifier: MIT */
/* Finds where a register of a wave is saved, and what it is called. */
#include <stdio.h>

#include "wave_arch.h"

/* The place of a register. */
struct place {
	uint32_t offset;
	uint32_t size; /* 0 when it is not saved. */
};

/* @return the end of the scalar slots that mean something, aliased ones included. */
static uint32_t sgpr_end(const struct kfdtrap_wave_arch *arch,
			 const struct kfdtrap_wave_layout *layout)
{
	uint32_t most = (uint32_t)arch->n_plain_sgpr + arch->n_alias_slots;

	return layout->n_sgpr < most ? layout->n_sgpr : most;
}

static struct place find_sgpr(const struct kfdtrap_wave_arch *arch,
			      const struct kfdtrap_wave_layout *layout, uint32_t number)
{
	uint32_t end = sgpr_end(arch, layout);

	if (end < arch->n_alias_slots || number >= end - arch->n_alias_slots)
		return (struct place){ 0 };
	return (struct place){ layout->sgpr_offset + number * 4, 4 };
}

/* @return the place of a register pair that occupies scalar slots, @p from_end before their end. */
static struct place find_alias(const struct kfdtrap_wave_arch *arch,
			       const struct kfdtrap_wave_layout *layout, uint32_t from_end,
			       uint32_t size)
{
	uint32_t end = sgpr_end(arch, layout);

	if (end < arch->n_alias_slots || from_end > arch->n_alias_slots)
		return (struct place){ 0 };
	return (struct place){ layout->sgpr_offset + (end - from_end) * 4, size };
}

static struct place find_special(const struct kfdtrap_wave_arch *arch,
				 const struct kfdtrap_wave_layout *layout, uint32_t number)
{
	uint32_t mask_size = layout->lanes == 32 ? 4 : 8;
	struct wave_slot s;

	if (number >= KFDTRAP_WAVE_SPECIAL_COUNT)
		return (struct place){ 0 };
	s = arch->specials[number];
	if (number == KFDTRAP_WAVE_VCC)
		return find_alias(arch, layout, 2, mask_size);
	if (number == KFDTRAP_WAVE_FLAT_SCRATCH && s.n_words == 0)
		return find_alias(arch, layout, 6, 8);
	if (number == KFDTRAP_WAVE_EXEC)
		return (struct place){ layout->hwreg_offset + s.slot * 4u, mask_size };
	return (struct place){ layout->hwreg_offset + s.slot * 4u, s.n_words * 4u };
}

static struct place find_vgpr(const struct kfdtrap_wave_layout *layout, uint32_t number)
{
	uint32_t size = layout->lanes * 4u;

	if (number < layout->n_vgpr)
		return (struct place){ layout->vgpr_offset + number * size, size };
	number -= layout->n_vgpr;
	if (number < layout->n_shared_vgpr)
		return (struct place){ layout->shared_vgpr_offset + number * WAVE_SHARED_VGPR_SIZE,
				       WAVE_SHARED_VGPR_SIZE };
	return (struct place){ 0 };
}

static struct place find(const struct kfdtrap_wave_arch *arch,
			 const struct kfdtrap_wave_layout *layout, enum kfdtrap_wave_bank bank,
			 uint32_t number)
{
	uint32_t size = layout->lanes * 4u;

	switch (bank) {
	case KFDTRAP_WAVE_BANK_SGPR:
		return find_sgpr(arch, layout, number);
	case KFDTRAP_WAVE_BANK_VGPR:
		return find_vgpr(layout, number);
	case KFDTRAP_WAVE_BANK_ACC_VGPR:
		if (number < layout->n_acc_vgpr)
			return (struct place){ layout->acc_vgpr_offset + number * size, size };
		break;
	case KFDTRAP_WAVE_BANK_TTMP:
		if (number < WAVE_N_TTMP)
			return (struct place){ layout->ttmp_offset + number * 4, 4 };
		break;
	case KFDTRAP_WAVE_BANK_SPECIAL:
		return find_special(arch, layout, number);
	case KFDTRAP_WAVE_BANK_COUNT:
		break;
	}
	return (struct place){ 0 };
}

bool kfdtrap_wave_register_find(const struct kfdtrap_wave_arch *arch,
				const struct kfdtrap_wave_layout *layout,
				enum kfdtrap_wave_bank bank, uint32_t number, uint32_t *ret_offset,
				uint32_t *ret_size)
{
	struct place p = find(arch, layout, bank, number);

	if (p.size == 0)
		return false;
	*ret_offset = p.offset;
	*ret_size = p.size;
	return true;
}

void kfdtrap_wave_register_name(enum kfdtrap_wave_bank bank, uint32_t number, char *buf,
				size_t size)
{
	static const char *const prefixes[KFDTRAP_WAVE_BANK_COUNT] = {
		[KFDTRAP_WAVE_BANK_SGPR] = "s",
		[KFDTRAP_WAVE_BANK_VGPR] = "v",
		[KFDTRAP_WAVE_BANK_ACC_VGPR] = "a",
		[KFDTRAP_WAVE_BANK_TTMP] = "ttmp",
	};
	static const char *const specials[KFDTRAP_WAVE_SPECIAL_COUNT] = {
		[KFDTRAP_WAVE_M0] = "m0",
		[KFDTRAP_WAVE_PC] = "pc",
		[KFDTRAP_WAVE_EXEC] = "exec",
		[KFDTRAP_WAVE_VCC] = "vcc",
		[KFDTRAP_WAVE_FLAT_SCRATCH] = "flat_scratch",
		[KFDTRAP_WAVE_XNACK_MASK] = "xnack_mask",
		[KFDTRAP_WAVE_STATUS] = "status",
		[KFDTRAP_WAVE_MODE] = "mode",
		[KFDTRAP_WAVE_TRAPSTS] = "trapsts",
		[KFDTRAP_WAVE_STATE_PRIV] = "state_priv",
		[KFDTRAP_WAVE_EXCP_FLAG_PRIV] = "excp_flag_priv",
		[KFDTRAP_WAVE_EXCP_FLAG_USER] = "excp_flag_user",
		[KFDTRAP_WAVE_TRAP_CTRL] = "trap_ctrl",
	};

	if (bank == KFDTRAP_WAVE_BANK_SPECIAL && number < KFDTRAP_WAVE_SPECIAL_COUNT)
		snprintf(buf, size, "%s", specials[number]);
	else if ((unsigned int)bank < KFDTRAP_WAVE_BANK_COUNT && prefixes[bank])
		snprintf(buf, size, "%s%u", prefixes[bank], number);
	else
		snprintf(buf, size, "%s", "");
}
