/* SPDX-License-Identifier: MIT */
/* Finds the private memory of a wave, from what the runtime wrote into the queue structure. */
#include "kfdtrap_wave.h"

/* Layout of COMPUTE_TMPRING_SIZE: bits [11:0] count waves, the next ones give the size of each. */
struct ring {
	uint32_t from;	      /* First gfx_target_version. */
	uint8_t size_bits;
	uint16_t size_unit;
	bool per_engine;      /* The number of waves is that of one shader engine. */
};

static const struct ring rings[] = {
	{ 120000, 18, 256, true },
	{ 110000, 15, 256, true },
	{ 90000, 13, 1024, false },
};

static const struct ring *ring_of(uint32_t gfx_target_version)
{
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		if (gfx_target_version >= rings[i].from)
			return &rings[i];
	return NULL;
}

enum kfdtrap_wave_problem kfdtrap_wave_scratch_find(const struct kfdtrap_wave_scratch *s,
						    const struct kfdtrap_wave_layout *layout,
						    uint32_t xcc,
						    struct kfdtrap_wave_scratch_place *ret_place)
{
	const struct ring *ring = ring_of(s->gfx_target_version);
	const uint32_t engines = s->shader_engines, version = s->gfx_target_version;
	uint32_t waves = s->tmpring & 0xfff;
	uint64_t size, per_xcc, index;

	if (!ring || !layout->scratch_enabled || !s->base || !engines)
		return KFDTRAP_WAVE_NO_SCRATCH;
	size = s->tmpring >> 12 & ((UINT32_C(1) << ring->size_bits) - 1);
	size *= ring->size_unit;
	if (!size || !waves)
		return KFDTRAP_WAVE_NO_SCRATCH;
	if (!ring->per_engine && waves % engines)
		return KFDTRAP_WAVE_SCRATCH_RING;
	waves = ring->per_engine ? waves : waves / engines;
	if (layout->scratch_slot >= waves || layout->shader_engine >= engines)
		return KFDTRAP_WAVE_SCRATCH_RING;
	index = (uint64_t)waves * layout->shader_engine + layout->scratch_slot;
	per_xcc = s->xcc_bytes ? s->xcc_bytes : (uint64_t)waves * engines * size;
	*ret_place = (struct kfdtrap_wave_scratch_place){
		.address = s->base + xcc * per_xcc + index * size,
		.size = (uint32_t)size,
		.in_register = (version >= 90400 && version < 100000) || version >= 110000,
	};
	return KFDTRAP_WAVE_OK;
}
