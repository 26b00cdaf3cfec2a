/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_WAVE_WALK_H
#define KFDTRAP_WAVE_WALK_H

/**
 * @file wave_walk.h
 * Walks over a control stack.  It is compiled once per generation, as wave_read.h says.
 */

#include "wave_arch.h"

/** Words of a control stack, and the bits that tell their kinds apart. */
#define WAVE_WORD_SIZE  4u
#define WAVE_WORD_EVENT (UINT32_C(1) << 30)
#define WAVE_WORD_STATE (UINT32_C(1) << 31)

/** Work out what the waves behind a state word look like (wave.c). */
enum kfdtrap_wave_problem wave_set_shape(struct kfdtrap_wave_iter *iter, uint32_t word);

/* Take a state word.  Most state words repeat the one before, for which the shape is kept. */
WAVE_INLINE enum kfdtrap_wave_problem wave_take_state(const struct kfdtrap_wave_arch *arch,
						      struct kfdtrap_wave_iter *iter, uint32_t word)
{
	if (iter->n_words - iter->next_word < arch->state->n_words - 1u)
		return KFDTRAP_WAVE_STATE_TRUNCATED;
	iter->next_word += arch->state->n_words - 1u;
	if (iter->has_state && word == iter->shape.state_word)
		return KFDTRAP_WAVE_OK;
	return wave_set_shape(iter, word);
}

/**
 * Take a wave word: place the wave below those before it.  Checks come before anything is changed.
 */
WAVE_INLINE enum kfdtrap_wave_problem wave_take_wave(const struct kfdtrap_wave_arch *arch,
						     struct kfdtrap_wave_iter *iter, uint32_t word,
						     struct kfdtrap_wave_layout *restrict ret)
{
	const struct wave_word_fields *f = arch->wave;
	const struct kfdtrap_wave_layout *shape = &iter->shape;
	bool first = wave_bit_of(word, f->first);
	uint32_t lds = first ? shape->lds_size : 0;
	bool last = wave_bit_of(word, f->last);
	uint32_t base, end;

	if (!iter->has_state)
		return KFDTRAP_WAVE_STATE_MISSING;
	if (!first && !iter->has_leader)
		return KFDTRAP_WAVE_GROUP_MISSING;
	/** The sum cannot wrap around: register counts and LDS bound it far below 2^32. */
	if (iter->top - iter->bottom < arch->pad + lds + shape->vgpr_offset)
		return KFDTRAP_WAVE_DATA_EXHAUSTED;
	if (iter->n_waves >= iter->max_waves)
		return KFDTRAP_WAVE_TOO_MANY;

	base = iter->top - arch->pad - lds;
	end = base - shape->vgpr_offset;
	if (first) {
		iter->leader = iter->n_waves;
		iter->leader_lds_offset = base;
		iter->leader_lds_size = lds;
	}
	*ret = *shape;
	ret->index = iter->n_waves;
	ret->leader = iter->leader;
	ret->wave_word = word;
	ret->top_offset = iter->top;
	ret->lds_offset = iter->leader_lds_offset;
	ret->lds_size = iter->leader_lds_size;
	ret->ttmp_offset = base - shape->ttmp_offset;
	ret->hwreg_offset = base - shape->hwreg_offset;
	ret->sgpr_offset = base - shape->sgpr_offset;
	ret->shared_vgpr_offset = base - shape->shared_vgpr_offset;
	ret->acc_vgpr_offset = base - shape->acc_vgpr_offset;
	ret->vgpr_offset = end;
	ret->scratch_slot = (uint16_t)wave_field_of(word, f->scratch_slot);
	ret->shader_engine = (uint8_t)wave_field_of(word, f->shader_engine);
	ret->scratch_enabled = wave_bit_of(word, f->scratch_enabled);
	ret->first = first;
	ret->last = last;
	iter->n_waves++;
	iter->top = end;
	iter->has_leader = !last;
	return KFDTRAP_WAVE_OK;
}

/** End the walk with a problem; always false. */
WAVE_INLINE bool wave_stop_at(struct kfdtrap_wave_iter *iter, uint32_t word_index,
			      enum kfdtrap_wave_problem problem)
{
	iter->problem = problem;
	iter->problem_offset = iter->stack_offset + word_index * WAVE_WORD_SIZE;
	return false;
}

/** Does what kfdtrap_wave_next() does, for one generation. */
WAVE_INLINE bool wave_walk_next(const struct kfdtrap_wave_arch *arch,
				struct kfdtrap_wave_iter *iter,
				struct kfdtrap_wave_layout *restrict ret_layout)
{
	if (iter->problem != KFDTRAP_WAVE_OK)
		return false;
	while (iter->next_word < iter->n_words) {
		uint32_t at = iter->next_word++;
		uint32_t word = wave_load32(iter->stack + (size_t)at * WAVE_WORD_SIZE);
		enum kfdtrap_wave_problem problem;

		if (word & WAVE_WORD_EVENT)
			continue;
		problem = word & WAVE_WORD_STATE ? wave_take_state(arch, iter, word)
						 : wave_take_wave(arch, iter, word, ret_layout);
		if (problem != KFDTRAP_WAVE_OK)
			return wave_stop_at(iter, at, problem);
		if (!(word & WAVE_WORD_STATE))
			return true;
	}
	if (iter->top != iter->bottom)
		return wave_stop_at(iter, iter->n_words, KFDTRAP_WAVE_DATA_LEFT);
	return false;
}

#endif /* KFDTRAP_WAVE_WALK_H */
