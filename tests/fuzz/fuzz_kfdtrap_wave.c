/* SPDX-License-Identifier: MIT */
/*
 * A whole context save area: which generation, the rules' inputs, header, control stack, and the
 * bytes of every wave's trap temporaries and hardware registers.
 *
 * Layout of an input: generation, ttmp_setup, debug_prop >> 8, r_version, 40 bytes of header, the
 * rest is the save area behind the header.
 */
#include "fuzzlib.h"
#include "kfdtrap_wave.h"

#define PREFIX 4u

static const uint32_t versions[] = {
	90000,	90006,	90008,	90010,	90402,	90500,	100100,
	100300, 110000, 110501, 120000, 120001, 120500,
};

static void check(bool holds)
{
	if (!holds)
		__builtin_trap();
}

static void read_wave(const struct kfdtrap_wave_arch *arch, const struct kfdtrap_wave_context *context,
		      const struct kfdtrap_wave_layout *l, const uint8_t *area, size_t size,
		      struct kfdtrap_wave_state *leader)
{
	uint32_t hot = kfdtrap_wave_hot_offset(l), in_group[3], global[3];
	struct kfdtrap_wave_grid grid;
	struct kfdtrap_wave_state s;
	uint64_t id;

	check(hot >= l->vgpr_offset && hot + KFDTRAP_WAVE_HOT_SIZE <= l->top_offset);
	if (hot > size || size - hot < KFDTRAP_WAVE_HOT_SIZE)
		return;
	kfdtrap_wave_read_state(arch, context, l, area + hot, &s);
	check(s.stopped || (s.stop_reasons == 0 && !s.parked));
	check(s.stop_reasons >> KFDTRAP_WAVE_STOP_COUNT == 0);
	check(l->lanes == 64 || s.exec <= UINT32_MAX);
	if (l->first)
		*leader = s;
	kfdtrap_wave_check_group(leader, &s);
	kfdtrap_wave_stop_exceptions(s.stop_reasons);
	if (kfdtrap_wave_dispatch_id(s.pc, s.exec, UINT64_C(1) << (s.mode % 64), s.packet, &id) == 0)
		check(id >= s.pc && id < s.exec);
	grid = (struct kfdtrap_wave_grid){ { s.m0, s.mode % 70, s.trap_id },
					   { s.status, s.excp_flags, (uint32_t)s.exec } };
	if (kfdtrap_wave_work_item(&grid, s.workgroup, s.wave_in_group, l->lanes, s.trap_id, in_group,
				   global))
		check(global[0] < grid.grid[0] && in_group[0] < grid.group[0]);
}

static void find_registers(const struct kfdtrap_wave_arch *arch, const struct kfdtrap_wave_layout *l)
{
	uint32_t offset, size;
	char name[16];

	if (kfdtrap_wave_named_barriers_find(arch, l, &offset))
		check(offset >= l->hwreg_offset && offset + KFDTRAP_WAVE_NAMED_BARRIERS * 4 <= l->top_offset);
	for (unsigned int bank = 0; bank <= KFDTRAP_WAVE_BANK_COUNT; bank++)
		for (uint32_t n = 0; n < 0x10000; n = n < 130 ? n + 1 : n * 5)
			if (kfdtrap_wave_register_find(arch, l, bank, n, &offset, &size)) {
				check(offset >= l->vgpr_offset && size != 0);
				check(offset + size <= l->top_offset);
				kfdtrap_wave_register_name(bank, n, name, sizeof(name));
				check(name[0] != 0);
			}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kfdtrap_wave_arch *arch;
	struct kfdtrap_wave_context context;
	struct kfdtrap_wave_header header;
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;
	struct kfdtrap_wave_state leader = { 0 };
	const uint8_t *area = data + PREFIX;
	uint32_t top;

	if (size < PREFIX + KFDTRAP_WAVE_HEADER_SIZE)
		return 0;
	arch = kfdtrap_wave_arch_find(versions[data[0] % (sizeof(versions) / sizeof(versions[0]))]);
	context = (struct kfdtrap_wave_context){ data[1], (uint32_t)data[2] << 8, data[3] };
	size -= PREFIX;
	/* Wave data may lie beyond what the input holds: only hot bytes inside are read. */
	if (kfdtrap_wave_header_parse(area, UINT64_C(1) << 32, &header) != KFDTRAP_WAVE_OK)
		size = KFDTRAP_WAVE_HEADER_SIZE;
	if (header.control_stack_offset > size)
		header.control_stack_offset = (uint32_t)size;
	top = header.wave_state_offset;
	kfdtrap_wave_iter_init(&iter, arch, &header, area + header.control_stack_offset,
			       size - header.control_stack_offset, 4096);
	while (kfdtrap_wave_next(&iter, &layout)) {
		check(layout.top_offset == top && layout.vgpr_offset < top);
		check(layout.vgpr_offset >= header.wave_state_offset - header.wave_state_size);
		check(layout.lds_size == 0 ||
		      (layout.lds_offset >= layout.vgpr_offset &&
		       layout.lds_offset + layout.lds_size <= header.wave_state_offset));
		top = layout.vgpr_offset;
		find_registers(arch, &layout);
		read_wave(arch, &context, &layout, area, size, &leader);
	}
	check(iter.n_waves <= 4096);
	check(kfdtrap_wave_problem_text(iter.problem) != NULL);
	return 0;
}
