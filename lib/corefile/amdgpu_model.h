/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_AMDGPU_MODEL_H
#define COREFILE_AMDGPU_MODEL_H

/**
 * @file amdgpu_model.h
 * What an AMDGPU core says: the kernel's tables, as they came from it, and memory.
 *
 * The format is ELF with one note of its own (LLVM, "AMDGPU Core Dump"; what the text leaves out is
 * in docs/COREFILES.md).  A split core is a file for the GPU alone, a unified one is the core of the
 * host process that has the note and the GPU's memory as well.
 */

#include <stdbool.h>

#include "corefile/corefile.h"

#define AMDCORE_OSABI	     0x40u /**< ELFOSABI_AMDGPU_HSA. */
#define AMDCORE_ABI_VERSION  3u
#define AMDCORE_MACHINE	     224u  /**< EM_AMDGPU. */
#define AMDCORE_NOTE_TYPE    33u   /**< NT_AMDGPU_KFD_CORE_STATE. */
#define AMDCORE_NOTE_VERSION 1u
#define AMDCORE_KFD_MAJOR    1u /* of the interface whose tables are known */

/* Bytes of an entry as kernels write it today. */
#define AMDCORE_RUNTIME_SIZE 16u
#define AMDCORE_DEVICE_SIZE  120u
/** Entries of devices that are as long have capability2. */
#define AMDCORE_DEVICE_CAPABILITY2_END 124u
#define AMDCORE_QUEUE_SIZE   64u

struct amdcore_runtime {
	uint64_t r_debug; /**< Where the list of code objects begins. */
	uint32_t state;	  /**< 0 off, 1 on, 2 busy, 3 failed. */
	uint32_t ttmp_setup;
};

/** struct kfd_dbg_device_info_entry. */
struct amdcore_device {
	uint64_t exceptions;
	uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, location_id, vendor_id, device_id, revision_id;
	uint32_t subsystem_vendor_id, subsystem_device_id, fw_version, gfx_target_version;
	uint32_t simd_count, max_waves_per_simd, array_count, simd_arrays_per_engine, num_xcc;
	uint32_t capability, debug_prop;
	uint32_t capability2; /**< Since Linux 7.0. */
};

/** struct kfd_queue_snapshot_entry. */
struct amdcore_queue {
	uint64_t exceptions, ring_base, write_pointer, read_pointer, save_area;
	uint32_t queue_id, gpu_id, ring_size, type, save_area_size;
};

/** Entries side by side; what a reader does not know at the end of one is kept. */
struct amdcore_table {
	const void *data; /**< Borrowed. */
	uint32_t n, entry_size;
};

struct amdcore_segment {
	uint64_t address;
	uint32_t flags;		    /**< PF_R and so on. */
	uint64_t size;		    /**< In memory. */
	struct corefile_blob bytes; /**< From the first on; of a file that was cut short, fewer. */
};

/** A note of the host's part. */
struct amdcore_note {
	const char *name;
	uint32_t type;
	const void *desc; /**< Borrowed. */
	uint32_t size;
};

struct amdcore {
	bool unified;
	uint32_t kfd_major, kfd_minor;
	struct amdcore_table runtime; /**< One entry. */
	struct amdcore_table devices, queues;
	struct amdcore_note *notes; /**< Without the one that has the tables. */
	uint32_t n_notes;
	struct amdcore_segment *segments; /**< By address. */
	uint32_t n_segments;
	struct corefile_problems problems; /**< Only in what was read. */
};

/** Frees the lists of a core that was read; accepts a zeroed object. */
void amdcore_deinit(struct amdcore *c);

/** Members that an entry is too short for are 0.  @param i  Below the table's n. */
void amdcore_get_runtime(const struct amdcore *c, struct amdcore_runtime *ret);
void amdcore_get_device(const struct amdcore *c, uint32_t i, struct amdcore_device *ret);
void amdcore_get_queue(const struct amdcore *c, uint32_t i, struct amdcore_queue *ret);

/** Entries of today's size.  @param b  AMDCORE_RUNTIME_SIZE bytes and so on. */
void amdcore_pack_runtime(uint8_t *b, const struct amdcore_runtime *r);
void amdcore_pack_device(uint8_t *b, const struct amdcore_device *d);
void amdcore_pack_queue(uint8_t *b, const struct amdcore_queue *q);

/**
 * Memory of a core that was read.
 * @return bytes copied, from the first on; 0 when the core does not have that address.
 */
size_t amdcore_read_memory(const struct amdcore *c, uint64_t address, void *buf, size_t size);

#endif /* COREFILE_AMDGPU_MODEL_H */
