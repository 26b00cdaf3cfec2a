/* SPDX-License-Identifier: MIT */
/*
 * A control stack alone, over wave data without end: the input is spent on state and wave words.
 *
 * Layout of an input: generation, KiB of wave data (2 bytes), the words.
 */
#include "fuzzlib.h"
#include "kfdtrap_wave.h"

#define PREFIX	  3u
#define WAVES_MAX 512u

static const uint32_t versions[] = {
	90000,	90006,	90008,	90010,	90402,	90500,	100100,
	100300, 110000, 110501, 120000, 120001, 120500,
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

/* Blocks lie in the record, none is larger than what is left of it. */
static void check_record(const struct kfdtrap_wave_layout *l)
{
	const struct {
		uint32_t offset;
		uint64_t size;
	} blocks[] = {
		{ l->ttmp_offset, 64 },
		{ l->hwreg_offset, 64 },
		{ l->sgpr_offset, l->n_sgpr * 4u },
		{ l->shared_vgpr_offset, l->n_shared_vgpr * 128u },
		{ l->acc_vgpr_offset, l->n_acc_vgpr * l->lanes * 4u },
		{ l->vgpr_offset, l->n_vgpr * l->lanes * 4u },
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (blocks[i].size) {
			check(blocks[i].offset >= l->vgpr_offset);
			check(blocks[i].offset + blocks[i].size <= l->top_offset);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kfdtrap_wave_header header = { .control_stack_offset = KFDTRAP_WAVE_HEADER_SIZE };
	const struct kfdtrap_wave_arch *arch;
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;
	uint32_t leader = 0, top;

	if (size < PREFIX)
		return 0;
	arch = kfdtrap_wave_arch_find(versions[data[0] % (sizeof(versions) / sizeof(versions[0]))]);
	header.control_stack_size = (uint32_t)(size - PREFIX) & ~3u;
	header.wave_state_size = ((uint32_t)data[1] << 8 | data[2]) << 10;
	header.wave_state_offset = header.control_stack_offset + header.control_stack_size +
				   header.wave_state_size;
	top = header.wave_state_offset;
	kfdtrap_wave_iter_init(&iter, arch, &header, data + PREFIX, size - PREFIX, WAVES_MAX);
	for (uint32_t n = 0; kfdtrap_wave_next(&iter, &layout); n++) {
		check(layout.index == n && layout.top_offset == top);
		check_record(&layout);
		if (layout.first)
			leader = n;
		check(layout.leader == leader && (n || layout.first));
		top = layout.vgpr_offset;
	}
	check(iter.n_waves <= WAVES_MAX);
	check(iter.problem || top == header.wave_state_offset - header.wave_state_size);
	check(kfdtrap_wave_problem_text(iter.problem) != NULL);
	return 0;
}
