/* SPDX-License-Identifier: MIT */
/* Decodes the header and control stack of a context save area. */
#include "wave_walk.h"

/* Words at the start of the control stack that hold the end of a packet. */
#define N_PACKET_REMAINS 2u

static const char *const problem_texts[KFDTRAP_WAVE_PROBLEM_COUNT] = {
	[KFDTRAP_WAVE_OK] = "ok",
	[KFDTRAP_WAVE_BOUNDARY] = "control stack and wave data do not meet",
	[KFDTRAP_WAVE_CONTROL_STACK_SIZE] = "control stack size is not a multiple of 4",
	[KFDTRAP_WAVE_CONTROL_STACK_RANGE] = "control stack lies outside the save area",
	[KFDTRAP_WAVE_DATA_RANGE] = "wave data lie outside the save area",
	[KFDTRAP_WAVE_CONTROL_STACK_SHORT] = "control stack is shorter than announced",
	[KFDTRAP_WAVE_STATE_MISSING] = "wave before any state word",
	[KFDTRAP_WAVE_STATE_TRUNCATED] = "control stack ends inside a state",
	[KFDTRAP_WAVE_VGPR_COUNT] = "more architectural than total vector registers",
	[KFDTRAP_WAVE_GROUP_MISSING] = "wave outside any workgroup",
	[KFDTRAP_WAVE_DATA_EXHAUSTED] = "wave data end before the control stack",
	[KFDTRAP_WAVE_DATA_LEFT] = "wave data left at the end of the control stack",
	[KFDTRAP_WAVE_TOO_MANY] = "too many waves",
	[KFDTRAP_WAVE_PC_ALIGNMENT] = "program counter is not a multiple of 4",
	[KFDTRAP_WAVE_GROUP_ID] = "workgroup id differs from the first wave's",
	[KFDTRAP_WAVE_RING_SIZE] = "impossible ring size",
	[KFDTRAP_WAVE_PACKET_SLOT] = "packet slot outside the ring",
	[KFDTRAP_WAVE_PACKET_ID] = "packet is not between read and write counter",
	[KFDTRAP_WAVE_NO_SCRATCH] = "wave has no scratch memory",
	[KFDTRAP_WAVE_SCRATCH_RING] = "scratch slot is outside of the queue's ring",
};

const char *kfdtrap_wave_problem_text(enum kfdtrap_wave_problem problem)
{
	return (unsigned int)problem < KFDTRAP_WAVE_PROBLEM_COUNT ? problem_texts[problem]
								  : "unknown problem";
}

static enum kfdtrap_wave_problem header_check(const struct kfdtrap_wave_header *h,
					      uint64_t area_size)
{
	uint64_t stack_end = (uint64_t)h->control_stack_offset + h->control_stack_size;

	if (h->control_stack_size % WAVE_WORD_SIZE != 0)
		return KFDTRAP_WAVE_CONTROL_STACK_SIZE;
	if (stack_end > area_size ||
	    (h->control_stack_size != 0 && h->control_stack_offset < KFDTRAP_WAVE_HEADER_SIZE))
		return KFDTRAP_WAVE_CONTROL_STACK_RANGE;
	if (h->wave_state_offset > area_size || h->wave_state_size > h->wave_state_offset)
		return KFDTRAP_WAVE_DATA_RANGE;
	if (stack_end != h->wave_state_offset - h->wave_state_size)
		return KFDTRAP_WAVE_BOUNDARY;
	return KFDTRAP_WAVE_OK;
}

enum kfdtrap_wave_problem kfdtrap_wave_header_parse(const void *bytes, uint64_t area_size,
						    struct kfdtrap_wave_header *ret_header)
{
	const uint8_t *p = bytes;

	*ret_header = (struct kfdtrap_wave_header){
		.control_stack_offset = wave_load32(p),
		.control_stack_size = wave_load32(p + 4),
		.wave_state_offset = wave_load32(p + 8),
		.wave_state_size = wave_load32(p + 12),
		.debug_offset = wave_load32(p + 16),
		.debug_size = wave_load32(p + 20),
		.err_payload_addr = wave_load32(p + 24) | (uint64_t)wave_load32(p + 28) << 32,
		.err_event_id = wave_load32(p + 32),
		.reserved = wave_load32(p + 36),
	};
	return header_check(ret_header, area_size);
}

void kfdtrap_wave_iter_init(struct kfdtrap_wave_iter *iter, const struct kfdtrap_wave_arch *arch,
			    const struct kfdtrap_wave_header *header, const void *stack,
			    size_t size, uint32_t max_waves)
{
	*iter = (struct kfdtrap_wave_iter){
		.problem = header_check(header, UINT64_MAX),
		.problem_offset = header->control_stack_offset,
		.arch = arch,
		.stack = stack,
		.stack_offset = header->control_stack_offset,
		.n_words = header->control_stack_size / WAVE_WORD_SIZE,
		.next_word = N_PACKET_REMAINS,
		.max_waves = max_waves,
		.top = header->wave_state_offset,
		.bottom = header->wave_state_offset - header->wave_state_size,
	};
	if (iter->problem == KFDTRAP_WAVE_OK && size < header->control_stack_size)
		iter->problem = KFDTRAP_WAVE_CONTROL_STACK_SHORT;
}

bool kfdtrap_wave_next(struct kfdtrap_wave_iter *iter, struct kfdtrap_wave_layout *ret_layout)
{
	return iter->arch->next(iter, ret_layout);
}

/* ------------------------------------------------------------------ state words -------------- */

static uint32_t lds_size(const struct kfdtrap_wave_arch *arch, uint32_t word)
{
	if (wave_field_of(word, arch->state->takeover))
		return WAVE_TAKEOVER_LDS;
	return wave_field_of(word, arch->state->lds) * arch->lds_granule;
}

/*
 * Count the registers of a wave.
 * @return false when the state claims more architectural registers than there are in total.
 */
static bool count_registers(const struct kfdtrap_wave_arch *arch, uint32_t word,
			    struct kfdtrap_wave_layout *shape)
{
	const struct wave_state_fields *f = arch->state;
	uint32_t blocks = wave_field_of(word, f->vgprs) + 1;
	bool wave32 = wave_field_of(word, f->wave32);
	uint32_t n_vgpr = blocks * arch->vgpr_granule[wave32];
	uint32_t n_acc = arch->acc_like_vgpr ? n_vgpr : 0;

	if (f->arch_vgprs.width) {
		n_vgpr = (wave_field_of(word, f->arch_vgprs) + 1) * 4;
		if (n_vgpr > blocks * 8)
			return false;
		n_acc = blocks * 8 - n_vgpr;
	}
	shape->lanes = arch->lanes ? arch->lanes : wave32 ? 32 : 64;
	shape->n_vgpr = (uint16_t)n_vgpr;
	shape->n_acc_vgpr = (uint16_t)n_acc;
	shape->n_shared_vgpr =
		(uint16_t)(wave_field_of(word, f->shared_vgprs) * WAVE_SHARED_GRANULE);
	/* The field counts the 16 trap temporaries as well. */
	shape->n_sgpr =
		f->sgprs.width ? (uint16_t)(wave_field_of(word, f->sgprs) * 16) : arch->n_sgpr;
	return true;
}

static void place_blocks(const struct kfdtrap_wave_arch *arch, struct kfdtrap_wave_layout *shape)
{
	const struct {
		uint32_t size;
		uint32_t *ret_offset;
	} blocks[WAVE_BLOCK_COUNT] = {
		[WAVE_BLOCK_TTMP] = { WAVE_N_TTMP * 4, &shape->ttmp_offset },
		[WAVE_BLOCK_HWREG] = { arch->n_hwreg * 4u, &shape->hwreg_offset },
		[WAVE_BLOCK_SGPR] = { shape->n_sgpr * 4u, &shape->sgpr_offset },
		[WAVE_BLOCK_SHARED_VGPR] = { shape->n_shared_vgpr * WAVE_SHARED_VGPR_SIZE,
					     &shape->shared_vgpr_offset },
		[WAVE_BLOCK_ACC_VGPR] = { shape->n_acc_vgpr * shape->lanes * 4u,
					  &shape->acc_vgpr_offset },
		[WAVE_BLOCK_VGPR] = { shape->n_vgpr * shape->lanes * 4u, &shape->vgpr_offset },
	};
	uint32_t depth = 0;

	for (size_t i = 0; i < WAVE_BLOCK_COUNT; i++) {
		depth += blocks[arch->order[i]].size;
		*blocks[arch->order[i]].ret_offset = depth;
	}
}

enum kfdtrap_wave_problem wave_set_shape(struct kfdtrap_wave_iter *iter, uint32_t word)
{
	const struct kfdtrap_wave_arch *arch = iter->arch;

	iter->has_state = false;
	if (!count_registers(arch, word, &iter->shape))
		return KFDTRAP_WAVE_VGPR_COUNT;
	place_blocks(arch, &iter->shape);
	iter->shape.state_word = word;
	iter->shape.lds_size = lds_size(arch, word);
	iter->has_state = true;
	return KFDTRAP_WAVE_OK;
}
