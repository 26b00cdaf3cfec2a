/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_WAVE_AREA_H
#define KFDTRAP_WAVE_AREA_H

/** @file kfdtrap_wave_area.h  Pieces of context save areas for the test_kfdtrap_wave*.c files. */

#include <stdint.h>
#include <string.h>

#include "kfdtrap_wave.h"
#include "testlib.h"

#define FIRST_LAST_GFX9 0x30000u
#define TOP		0x100000u
#define AREA_SIZE	0x200000u

/* Versions with something of their own in the tables. */
static const uint32_t generations[] = {
	90000,	90008,	90010,	90402,	90500,	100100,
	100300, 110000, 120000, 120500,
};

static inline void put32(uint8_t *p, uint32_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		p[i] = (uint8_t)(value >> 8 * i);
}

/* Words in memory order, ending at an unmapped page. */
static inline uint8_t *tail_words(const uint32_t *words, size_t n)
{
	uint8_t *p = test_tail_alloc(n * 4);

	for (size_t i = 0; i < n; i++)
		put32(p + 4 * i, words[i]);
	return p;
}

/* An area whose wave data end at TOP; the control stack lies right below the data. */
static inline struct kfdtrap_wave_header header_for(size_t n_words, uint32_t data_size)
{
	return (struct kfdtrap_wave_header){
		.control_stack_offset = TOP - data_size - (uint32_t)n_words * 4,
		.control_stack_size = (uint32_t)n_words * 4,
		.wave_state_offset = TOP,
		.wave_state_size = data_size,
	};
}

#endif /* KFDTRAP_WAVE_AREA_H */
