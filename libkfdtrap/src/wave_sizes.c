/* SPDX-License-Identifier: MIT */
/* Arithmetic around waves: dispatches, work-items, and how large a save area has to be. */
#include "wave_arch.h"

#include "base/page.h"

#define PACKET_SIZE      64u
#define RING_PACKETS_MAX (UINT64_C(1) << 25)
/*
 * A page of the GPU, whatever those of the machine have.  Linux 6.12 rounds each part of an area to the machine's
 * instead, and wastes what is behind it where they are larger; later ones round the parts so, and the area and the
 * buffer to pages of the machine (kfd_queue.c, kfd_queue_ctx_save_restore_size(): AMDGPU_GPU_PAGE_SIZE).
 */
#define GPU_PAGE_BYTES   4096u

enum kfdtrap_wave_problem kfdtrap_wave_dispatch_id(uint64_t read, uint64_t write,
						   uint64_t ring_size, uint32_t packet,
						   uint64_t *ret_id)
{
	uint64_t n = ring_size / PACKET_SIZE;
	uint64_t id;

	if (n == 0 || n > RING_PACKETS_MAX || (n & (n - 1)) != 0 || ring_size % PACKET_SIZE != 0)
		return KFDTRAP_WAVE_RING_SIZE;
	if (packet >= n)
		return KFDTRAP_WAVE_PACKET_SLOT;
	/*
	 * The first id of this slot that is not below the read counter; the addition may wrap
	 * around.
	 */
	id = read / n * n + packet;
	if (id < read)
		id += n;
	if (id < read || id >= write)
		return KFDTRAP_WAVE_PACKET_ID;
	*ret_id = id;
	return KFDTRAP_WAVE_OK;
}

bool kfdtrap_wave_work_item(const struct kfdtrap_wave_grid *grid, const uint32_t workgroup[3],
			    uint32_t wave_in_group, uint32_t lanes, uint32_t lane,
			    uint32_t ret_in_group[3], uint32_t ret_global[3])
{
	uint64_t flat = (uint64_t)wave_in_group * lanes + lane;
	uint64_t origin[3], part[3];

	if (lane >= lanes)
		return false;
	for (unsigned int i = 0; i < 3; i++) {
		origin[i] = (uint64_t)workgroup[i] * grid->group[i];
		if (grid->group[i] == 0 || origin[i] >= grid->grid[i])
			return false;
		part[i] = grid->grid[i] - origin[i];
		if (part[i] > grid->group[i])
			part[i] = grid->group[i];
	}
	/* Two quotients replace a product of three sizes, which need not fit. */
	if (flat / part[0] / part[1] >= part[2])
		return false;
	ret_in_group[0] = (uint32_t)(flat % part[0]);
	ret_in_group[1] = (uint32_t)(flat / part[0] % part[1]);
	ret_in_group[2] = (uint32_t)(flat / part[0] / part[1]);
	for (unsigned int i = 0; i < 3; i++)
		ret_global[i] = (uint32_t)origin[i] + ret_in_group[i];
	return true;
}

/* ------------------------------------------------------------------ area sizes --------------- */

/* Bytes of one compute unit; waves_per_engine and stack_max are 0 when there is no limit. */
struct sizes {
	uint32_t first, last; /* Range of gfx_target_version. */
	uint32_t vgpr;
	uint32_t sgpr;
	uint32_t lds; /* 0: as much as the device has. */
	uint32_t hwreg;
	uint16_t waves;
	uint16_t waves_per_engine;
	uint16_t stack_bytes_per_wave;
	uint16_t stack_max;
};

/* The first row that matches counts; only versions that kfdtrap_wave_arch_find() knows get here. */
static const struct sizes size_rows[] = {
	{ 90008, 90008, 0x80000, 0x4000, 0x10000, 0x1000, 40, 512, 8, 0 },
	{ 90010, 90010, 0x80000, 0x4000, 0x10000, 0x1000, 40, 512, 8, 0 },
	{ 90400, 90402, 0x80000, 0x4000, 0x10000, 0x1000, 40, 512, 8, 0 },
	{ 90500, 90500, 0x80000, 0x4000, 0, 0x1000, 40, 512, 8, 0 },
	{ 90000, 99999, 0x40000, 0x4000, 0x10000, 0x1000, 40, 512, 8, 0 },
	{ 100000, 109999, 0x40000, 0x4000, 0x10000, 0x1000, 32, 0, 12, 0x7000 },
	{ 110000, 110001, 0x60000, 0x4000, 0x10000, 0x1000, 32, 0, 12, 0 },
	{ 110501, 110501, 0x60000, 0x4000, 0x10000, 0x1000, 32, 0, 12, 0 },
	{ 120000, 120001, 0x60000, 0x4000, 0x10000, 0x1000, 32, 0, 12, 0 },
	{ 120500, 120501, 0x80000, 0x8000, 0, 0x8000, 64, 0, 12, 0 },
	{ 110000, 129999, 0x40000, 0x4000, 0x10000, 0x1000, 32, 0, 12, 0 },
};

static const struct sizes *find_sizes(uint32_t version)
{
	if (!kfdtrap_wave_arch_find(version))
		return NULL;
	for (size_t i = 0; i < sizeof(size_rows) / sizeof(size_rows[0]); i++)
		if (version >= size_rows[i].first && version <= size_rows[i].last)
			return &size_rows[i];
	return NULL;
}

static uint64_t align(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static struct kfdtrap_wave_area_sizes compute(const struct sizes *row,
					      const struct kfdtrap_wave_device *d)
{
	uint64_t units = d->simd_count / d->simd_per_cu / d->num_xcc;
	uint64_t lds = row->lds ? row->lds : d->lds_size;
	struct kfdtrap_wave_area_sizes s = { .waves = units * row->waves };

	if (row->waves_per_engine)
		s.waves = min_u64(s.waves, (uint64_t)(d->array_count / d->simd_arrays_per_engine) *
						   row->waves_per_engine);
	s.control_stack_size = align(
		KFDTRAP_WAVE_HEADER_SIZE + s.waves * row->stack_bytes_per_wave + 8, GPU_PAGE_BYTES);
	if (row->stack_max)
		s.control_stack_size = min_u64(s.control_stack_size, row->stack_max);
	s.wave_data_size = align(units * (row->vgpr + row->sgpr + lds + row->hwreg), GPU_PAGE_BYTES);
	s.area_size = page_up(s.control_stack_size + s.wave_data_size);
	s.debug_size = align(s.waves * 32, 64);
	s.buffer_size = page_up((s.area_size + s.debug_size) * d->num_xcc);
	return s;
}

bool kfdtrap_wave_area_sizes(const struct kfdtrap_wave_device *device,
			     struct kfdtrap_wave_area_sizes *ret_sizes)
{
	const struct sizes *row = find_sizes(device->gfx_target_version);

	if (!row || device->simd_count == 0 || device->simd_per_cu == 0 || device->num_xcc == 0 ||
	    device->array_count == 0 || device->simd_arrays_per_engine == 0)
		return false;
	*ret_sizes = compute(row, device);
	return true;
}
