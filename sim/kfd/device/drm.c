/* SPDX-License-Identifier: MIT */
/* The render node: who is asked, which driver it is, what the GPU is. */
#include "drm.h"
#include "memory.h"

#include <errno.h>
#include <libdrm/amdgpu_drm.h>
#include <string.h>

#include "base/page.h"

/* Interface versions below this lack what the runtime asks for. */
#define DRM_MAJOR 3
#define DRM_MINOR 61
/* Where a process may have memory of GPUs (amdgpu_vm.h). */
#define VA_START     UINT64_C(0x200000)
#define HIGH_VA_BASE UINT64_C(0xffff800000000000)
/* The register GB_ADDR_CONFIG of gfx9 and later, which is asked for before images are used. */
#define GB_ADDR_CONFIG 0x263eu

static uint64_t min_size(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint32_t family_of(const struct gpu_profile *g)
{
	switch (g->gfx_target_version / 10000) {
	case 8: return AMDGPU_FAMILY_VI;
	case 9: return AMDGPU_FAMILY_AI;
	case 10: return AMDGPU_FAMILY_NV;
	case 11: return 145; /* AMDGPU_FAMILY_GC_11_0_0, which older headers do not have. */
	default: return 152; /* AMDGPU_FAMILY_GC_12_0_0 */
	}
}

/* Copy a text as far as there is room, and tell its whole length. */
static int put_text(struct sim *s, int tid, const char *text, const char *to, __kernel_size_t *length)
{
	size_t part = (size_t)min_size(*length, strlen(text));

	*length = strlen(text);
	return part && to ? s->os->mem_write(tid, (uint64_t)(uintptr_t)to, text, part) : 0;
}

static int get_version(struct sim *s, int tid, struct drm_version *v)
{
	v->version_major = DRM_MAJOR;
	v->version_minor = DRM_MINOR;
	v->version_patchlevel = 0;
	if (put_text(s, tid, "amdgpu", v->name, &v->name_len) ||
	    put_text(s, tid, "20150101", v->date, &v->date_len) ||
	    put_text(s, tid, "AMD GPU", v->desc, &v->desc_len))
		return -EFAULT;
	return 0;
}

static void fill_device(const struct sim_gpu *gpu, struct drm_amdgpu_info_device *ret)
{
	const struct gpu_profile *g = gpu->profile;
	/* The driver's own are never smaller (amdgpu_kms.c). */
	const uint32_t page = (uint32_t)page_bytes();

	*ret = (struct drm_amdgpu_info_device){
		.device_id = g->device_id,
		.pci_rev = g->revision_id,
		.family = family_of(g),
		.num_shader_engines = g->array_count / g->simd_arrays_per_engine,
		.num_shader_arrays_per_engine = g->simd_arrays_per_engine,
		.gpu_counter_freq = 100000,
		.max_engine_clock = 2100000,
		.max_memory_clock = 1600000,
		.cu_active_number = g->simd_count / g->simd_per_cu,
		.virtual_address_offset = VA_START,
		.virtual_address_max = sim_user_end(),
		.virtual_address_alignment = page,
		.pte_fragment_size = 1u << 21,
		.gart_page_size = page,
		.high_va_offset = HIGH_VA_BASE,
		.high_va_max = UINT64_MAX - page + 1,
		.wave_front_size = g->wave_size,
	};
}

static int get_info(struct sim *s, const struct sim_gpu *gpu, int tid, const struct drm_amdgpu_info *a)
{
	struct drm_amdgpu_info_device device;
	const uint32_t one = 1, registers = 0;
	const void *data;
	size_t size;

	switch (a->query) {
	case AMDGPU_INFO_ACCEL_WORKING:
		data = &one;
		size = sizeof(one);
		break;
	case AMDGPU_INFO_READ_MMR_REG:
		if (a->read_mmr_reg.dword_offset != GB_ADDR_CONFIG || a->read_mmr_reg.count != 1)
			return -EINVAL;
		data = &registers;
		size = sizeof(registers);
		break;
	case AMDGPU_INFO_DEV_INFO:
		fill_device(gpu, &device);
		data = &device;
		size = sizeof(device);
		break;
	default:
		return -EINVAL;
	}
	if (!a->return_size || !a->return_pointer)
		return -EINVAL;
	return s->os->mem_write(tid, a->return_pointer, data, (size_t)min_size(size, a->return_size));
}

int sim_drm_ioctl(struct sim *s, const struct sim_gpu *gpu, int tid, uint32_t command,
		  uint8_t arg[SIM_DRM_ARG_MAX], size_t size)
{
	union {
		uint8_t bytes[SIM_DRM_ARG_MAX];
		struct drm_client client;
		struct drm_version version;
		struct drm_amdgpu_info info;
	} a;
	int r;

	memcpy(a.bytes, arg, sizeof(a.bytes));
	if (command == DRM_IOCTL_GET_CLIENT) {
		a.client.auth = 1;
		r = a.client.idx ? -EINVAL : 0;
	} else if (command == DRM_IOCTL_VERSION) {
		r = get_version(s, tid, &a.version);
	} else if (command == DRM_IOCTL_AMDGPU_INFO) {
		r = get_info(s, gpu, tid, &a.info);
	} else {
		r = -ENOTTY;
	}
	memcpy(arg, a.bytes, size);
	return r;
}
