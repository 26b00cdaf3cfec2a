/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_PROFILE_H
#define KFDSIM_PROFILE_H

/**
 * @file profile.h
 * What the simulator can pretend to be: a table of GPUs and a table of kernels.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One GPU model.  Counts are of a device unless they say otherwise. */
struct gpu_profile {
	const char *name;	    /**< LLVM name, what `--gpus` takes. */
	const char *marketing_name; /**< Content of the sysfs `name` file. */
	uint32_t gfx_target_version;
	bool mes;	   /**< Scheduled by MES firmware; otherwise by the HWS runlist. */
	bool per_vmid;	   /**< Debug settings per process; otherwise one debugged process. */
	bool override_or_only;
	bool precise_memory, precise_alu;
	bool cu_mask_excludes_debug; /**< gfx11.0.0 to gfx11.0.3. */
	bool too_old;		     /**< Before GC 9.0.1: spoils every session. */
	uint32_t trap_mask;
	uint32_t debug_prop;
	uint32_t device_id, revision_id, fw_version;
	uint32_t simd_count, simd_per_cu, cu_per_simd_array, max_waves_per_simd;
	uint32_t array_count; /**< Per XCC. */
	uint32_t simd_arrays_per_engine, num_xcc;
	uint32_t wave_size, lds_kb;
	uint32_t vgpr_bytes_per_cu;
	uint64_t vram_size;
};

/** One kernel release. */
struct kernel_profile {
	const char *name; /**< What `--kernel` takes. */
	uint32_t minor;
	uint32_t device_entry_size;
	bool has_debug;
	bool process_bound;    /**< Permission follows the recorded debugger process. */
	bool enable_unwinds;   /**< A failed ENABLE leaves nothing behind. */
	bool destroy_restarts; /**< Second DESTROY is EBUSY, a signal restarts cleanly. */
	bool contexts;	       /**< CREATE_PROCESS; open without a GPU fails. */
	bool lds_flag;	       /**< Flag 4 is checked against capability2. */
};

/** Find a GPU by its LLVM name, which need not end with a NUL.  @return NULL if it is unknown. */
const struct gpu_profile *gpu_profile_find(const char *name, size_t name_size);
/** The GPU of that position. */
const struct gpu_profile *gpu_profile_at(size_t i); /**< NULL behind the last. */
/** Find a kernel by its name.  @return NULL if it is unknown. */
const struct kernel_profile *kernel_profile_find(const char *name);
/** The kernel of that position; NULL behind the last. */
const struct kernel_profile *kernel_profile_at(size_t i);

/** How many waves one XCC can have, as the kernel computes it for the size of the save area. */
uint32_t gpu_profile_waves(const struct gpu_profile *g);
/** Bytes of the control stack of one XCC, as the kernel tells them in `ctl_stack_size`. */
uint32_t gpu_profile_ctl_stack_size(const struct gpu_profile *g);
/** Bytes of the save area of one XCC, as the kernel tells them in `cwsr_size`. */
uint32_t gpu_profile_cwsr_size(const struct gpu_profile *g);
/** The `capability` word without the bits that only a sysfs read adds. */
uint32_t gpu_profile_capability(const struct gpu_profile *g);

/** Watch-point bits 7 to 11 of `capability`. */
#define GPU_CAPABILITY_WATCH UINT32_C(0x280)

#endif /* KFDSIM_PROFILE_H */
