/* SPDX-License-Identifier: MIT */
/*
 * The GPUs and kernels that the simulator can pretend to be, and the arithmetic of their save
 * areas.
 */
#include "profile.h"

#include <string.h>

#include "base/page.h"

/* The word debug_prop: bits of a watch mask, and whether the dispatch is always known. */
#define DEBUG_PROP(lo, hi, always) ((lo) | ((hi) << 4) | ((always) ? 1u << 10 : 0u))
#define GIB			   (UINT64_C(1) << 30)

/*
 * Masks of traps that can be forced on: of the first generations, of the middle ones, of those that
 * trap at the edges of waves.
 */
#define TRAP_OLD   UINT32_C(0x80)
#define TRAP_NINE  UINT32_C(0x1ff)
#define TRAP_EDGES UINT32_C(0xc00001ff)

static const struct gpu_profile gpus[] = {
	{ .name = "gfx906", .marketing_name = "vega20", .gfx_target_version = 90006,
	  .override_or_only = true, .trap_mask = TRAP_OLD, .debug_prop = DEBUG_PROP(6u, 29u, true),
	  .device_id = 0x66a1, .revision_id = 0x02, .fw_version = 472, .simd_count = 240, .simd_per_cu = 4,
	  .cu_per_simd_array = 16, .max_waves_per_simd = 10, .array_count = 4,
	  .simd_arrays_per_engine = 1, .num_xcc = 1, .wave_size = 64, .lds_kb = 64,
	  .vgpr_bytes_per_cu = 0x40000, .vram_size = 32 * GIB },
	{ .name = "gfx90a", .marketing_name = "aldebaran", .gfx_target_version = 90010,
	  .per_vmid = true, .precise_memory = true, .trap_mask = TRAP_NINE,
	  .debug_prop = DEBUG_PROP(6u, 29u, false), .device_id = 0x740f, .revision_id = 0x02, .fw_version = 78,
	  .simd_count = 416, .simd_per_cu = 4, .cu_per_simd_array = 14, .max_waves_per_simd = 8,
	  .array_count = 8, .simd_arrays_per_engine = 1, .num_xcc = 1, .wave_size = 64,
	  .lds_kb = 64, .vgpr_bytes_per_cu = 0x80000, .vram_size = 64 * GIB },
	{ .name = "gfx942", .marketing_name = "ip discovery", .gfx_target_version = 90402,
	  .per_vmid = true, .precise_memory = true, .trap_mask = TRAP_EDGES,
	  .debug_prop = DEBUG_PROP(7u, 30u, true), .device_id = 0x74a1, .fw_version = 166,
	  .simd_count = 1216, .simd_per_cu = 4, .cu_per_simd_array = 10, .max_waves_per_simd = 8,
	  .array_count = 4, .simd_arrays_per_engine = 1, .num_xcc = 8, .wave_size = 64,
	  .lds_kb = 64, .vgpr_bytes_per_cu = 0x80000, .vram_size = 192 * GIB },
	{ .name = "gfx950", .marketing_name = "ip discovery", .gfx_target_version = 90500,
	  .per_vmid = true, .precise_memory = true, .trap_mask = TRAP_EDGES,
	  .debug_prop = DEBUG_PROP(6u, 29u, true), .device_id = 0x75a0, .fw_version = 32,
	  .simd_count = 1024, .simd_per_cu = 4, .cu_per_simd_array = 8, .max_waves_per_simd = 8,
	  .array_count = 4, .simd_arrays_per_engine = 1, .num_xcc = 8, .wave_size = 64,
	  .lds_kb = 160, .vgpr_bytes_per_cu = 0x80000, .vram_size = 288 * GIB },
	{ .name = "gfx1030", .marketing_name = "ip discovery", .gfx_target_version = 100300,
	  .override_or_only = true, .trap_mask = TRAP_OLD, .debug_prop = DEBUG_PROP(7u, 29u, true),
	  .device_id = 0x73bf, .revision_id = 0xc0, .fw_version = 118, .simd_count = 160, .simd_per_cu = 2,
	  .cu_per_simd_array = 10, .max_waves_per_simd = 16, .array_count = 8,
	  .simd_arrays_per_engine = 2, .num_xcc = 1, .wave_size = 32, .lds_kb = 64,
	  .vgpr_bytes_per_cu = 0x40000, .vram_size = 16 * GIB },
	{ .name = "gfx1100", .marketing_name = "ip discovery", .gfx_target_version = 110000,
	  .mes = true, .per_vmid = true, .cu_mask_excludes_debug = true, .trap_mask = TRAP_NINE,
	  .debug_prop = DEBUG_PROP(7u, 29u, true), .device_id = 0x744c, .revision_id = 0xc8, .fw_version = 550,
	  .simd_count = 192, .simd_per_cu = 2, .cu_per_simd_array = 8, .max_waves_per_simd = 16,
	  .array_count = 12, .simd_arrays_per_engine = 2, .num_xcc = 1, .wave_size = 32,
	  .lds_kb = 64, .vgpr_bytes_per_cu = 0x60000, .vram_size = 24 * GIB },
	{ .name = "gfx1201", .marketing_name = "ip discovery", .gfx_target_version = 120001,
	  .mes = true, .per_vmid = true, .precise_alu = true, .trap_mask = TRAP_EDGES,
	  .debug_prop = DEBUG_PROP(7u, 29u, true), .device_id = 0x7550, .revision_id = 0xc0, .fw_version = 3080,
	  .simd_count = 128, .simd_per_cu = 2, .cu_per_simd_array = 8, .max_waves_per_simd = 16,
	  .array_count = 8, .simd_arrays_per_engine = 2, .num_xcc = 1, .wave_size = 32,
	  .lds_kb = 64, .vgpr_bytes_per_cu = 0x60000, .vram_size = 16 * GIB },
	/* No such device was seen: what the sources do not say of the generation is made up. */
	{ .name = "gfx1250", .marketing_name = "ip discovery", .gfx_target_version = 120500,
	  .mes = true, .per_vmid = true, .precise_memory = true, .precise_alu = true, .trap_mask = TRAP_EDGES,
	  .debug_prop = DEBUG_PROP(7u, 29u, true), .device_id = 0x75c0, .fw_version = 32,
	  .simd_count = 128, .simd_per_cu = 4, .cu_per_simd_array = 8, .max_waves_per_simd = 16,
	  .array_count = 4, .simd_arrays_per_engine = 1, .num_xcc = 1, .wave_size = 32,
	  .lds_kb = 320, .vgpr_bytes_per_cu = 0x80000, .vram_size = 32 * GIB },
	{ .name = "gfx803", .marketing_name = "fiji", .gfx_target_version = 80003,
	  .too_old = true, .device_id = 0x7300, .revision_id = 0xc8, .fw_version = 727, .simd_count = 256,
	  .simd_per_cu = 4, .cu_per_simd_array = 16, .max_waves_per_simd = 10, .array_count = 4,
	  .simd_arrays_per_engine = 1, .num_xcc = 1, .wave_size = 64, .lds_kb = 64,
	  .vgpr_bytes_per_cu = 0x40000, .vram_size = 4 * GIB },
};

/*
 * Named by interface version; 1.17+ is that of Linux 6.12.111 and later, 1.22+ is 1.22 with a longer
 * device entry.
 */
static const struct kernel_profile kernels[] = {
	{ .name = "1.11", .minor = 11, .device_entry_size = 120 },
	{ .name = "1.13", .minor = 13, .device_entry_size = 120, .has_debug = true },
	{ .name = "1.17", .minor = 17, .device_entry_size = 120, .has_debug = true,
	  .process_bound = true },
	{ .name = "1.17+", .minor = 17, .device_entry_size = 120, .has_debug = true,
	  .process_bound = true, .enable_unwinds = true },
	{ .name = "1.18", .minor = 18, .device_entry_size = 120, .has_debug = true },
	{ .name = "1.22", .minor = 22, .device_entry_size = 120, .has_debug = true,
	  .contexts = true, .lds_flag = true },
	{ .name = "1.22+", .minor = 22, .device_entry_size = 128, .has_debug = true,
	  .contexts = true, .lds_flag = true },
	{ .name = "1.23", .minor = 23, .device_entry_size = 128, .has_debug = true,
	  .process_bound = true, .enable_unwinds = true, .destroy_restarts = true,
	  .contexts = true, .lds_flag = true },
};

const struct gpu_profile *gpu_profile_at(size_t i)
{
	return i < sizeof(gpus) / sizeof(gpus[0]) ? &gpus[i] : NULL;
}

const struct gpu_profile *gpu_profile_find(const char *name, size_t name_size)
{
	const struct gpu_profile *g;

	for (size_t i = 0; (g = gpu_profile_at(i)); i++)
		if (strlen(g->name) == name_size && !memcmp(g->name, name, name_size))
			return g;
	return NULL;
}

const struct kernel_profile *kernel_profile_at(size_t i)
{
	return i < sizeof(kernels) / sizeof(kernels[0]) ? &kernels[i] : NULL;
}

const struct kernel_profile *kernel_profile_find(const char *name)
{
	const struct kernel_profile *k;

	for (size_t i = 0; (k = kernel_profile_at(i)); i++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

/* Compute units of one XCC. */
static uint32_t cus_per_xcc(const struct gpu_profile *g)
{
	return g->simd_count / g->simd_per_cu / g->num_xcc;
}

/* Up to the end of a page of the GPU, which has 4 KiB whatever those of the machine have. */
static uint32_t gpu_page_up(uint32_t n)
{
	return (n + 4095) & ~UINT32_C(4095);
}

static bool is_gfx12_5(const struct gpu_profile *g)
{
	return g->gfx_target_version / 100 == 1205;
}

/* The arithmetic is that of kfd_queue.c:kfd_queue_ctx_save_restore_size. */
uint32_t gpu_profile_waves(const struct gpu_profile *g)
{
	uint32_t cus = cus_per_xcc(g), by_array;

	if (is_gfx12_5(g))
		return cus * 64;
	if (g->gfx_target_version >= 100100)
		return cus * 32;
	by_array = g->array_count / g->simd_arrays_per_engine * 512;
	return cus * 40 < by_array ? cus * 40 : by_array;
}

uint32_t gpu_profile_ctl_stack_size(const struct gpu_profile *g)
{
	uint32_t per_wave = g->gfx_target_version < 100100 ? 8 : 12;
	uint32_t size = gpu_page_up(40 + gpu_profile_waves(g) * per_wave + 8);

	/* gfx10 hardware has no room for a longer control stack. */
	if (g->gfx_target_version / 10000 == 10 && size > 0x7000)
		size = 0x7000;
	return size;
}

uint32_t gpu_profile_cwsr_size(const struct gpu_profile *g)
{
	bool own_lds = g->gfx_target_version == 90500 || is_gfx12_5(g);
	uint32_t lds = own_lds ? g->lds_kb * 1024 : 0x10000;
	uint32_t scalar = is_gfx12_5(g) ? 0x8000 + 0x8000 : 0x4000 + 0x1000;
	uint32_t per_cu = g->vgpr_bytes_per_cu + scalar + lds;

	return (uint32_t)page_up(gpu_profile_ctl_stack_size(g) + gpu_page_up(cus_per_xcc(g) * per_cu));
}

uint32_t gpu_profile_capability(const struct gpu_profile *g)
{
	uint32_t cap = UINT32_C(0x2000); /* The type of doorbells. */

	if (g->too_old)
		return cap;
	cap |= 0x8000 | 0x10000 | 0x20000 | UINT32_C(0x20000000);
	if (g->precise_memory)
		cap |= 0x40000;
	if (g->precise_alu)
		cap |= UINT32_C(0x40000000);
	return cap;
}
