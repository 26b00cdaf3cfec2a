/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_AMDGPU_MODEL_H
#define COREFILE_AMDGPU_MODEL_H

/**
 * @file amdgpu_model.h
 * The content of an AMDGPU core: the kernel's tables, as they came from it, and memory.
 *
 * The format is ELF with one note of its own (LLVM, "AMDGPU Core Dump"; docs/COREFILES.md has what
 * that text leaves out).  A split core is a file for the GPU alone; a unified one is the core of
 * the host process that has the note and the GPU's memory as well.
 */

#include <stdbool.h>

#include "corefile/corefile.h"

#define AMDCORE_OSABI	     0x40u /**< ELFOSABI_AMDGPU_HSA. */
#define AMDCORE_ABI_VERSION  3u
#define AMDCORE_MACHINE	     224u  /**< EM_AMDGPU. */
#define AMDCORE_NOTE_TYPE    33u   /**< NT_AMDGPU_KFD_CORE_STATE. */
#define AMDCORE_NOTE_VERSION 1u
#define AMDCORE_KFD_MAJOR    1u /* Major version of the kernel interface whose tables are known. */

/* Bytes of an entry as kernels write it today. */
#define AMDCORE_RUNTIME_SIZE 16u
#define AMDCORE_DEVICE_SIZE  120u
/** Entries of devices that are at least this long have capability2. */
#define AMDCORE_DEVICE_CAPABILITY2_END 124u
#define AMDCORE_QUEUE_SIZE   64u

/** The state of the runtime, as in struct kfd_runtime_info. */
struct amdcore_runtime {
	uint64_t r_debug; /**< Address of the runtime's list of code objects. */
	uint32_t state;	  /**< 0 off, 1 on, 2 busy, 3 failed. */
	uint32_t ttmp_setup;
};

/** A device, as in struct kfd_dbg_device_info_entry. */
struct amdcore_device {
	uint64_t exceptions;
	uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, location_id, vendor_id, device_id, revision_id;
	uint32_t subsystem_vendor_id, subsystem_device_id, fw_version, gfx_target_version;
	uint32_t simd_count, max_waves_per_simd, array_count, simd_arrays_per_engine, num_xcc;
	uint32_t capability, debug_prop;
	uint32_t capability2; /**< Since Linux 7.0. */
};

/** A queue, as in struct kfd_queue_snapshot_entry. */
struct amdcore_queue {
	uint64_t exceptions, ring_base, write_pointer, read_pointer, save_area;
	uint32_t queue_id, gpu_id, ring_size, type, save_area_size;
};

/**
 * A table of the note: entries side by side.  Bytes at the end of an entry that a reader does not
 * know are kept.
 */
struct amdcore_table {
	const void *data; /**< Borrowed. */
	uint32_t n, entry_size;
};

/** A range of memory. */
struct amdcore_segment {
	uint64_t address;
	uint32_t flags;		    /**< PF_R, PF_W, PF_X. */
	uint64_t size;		    /**< Bytes in memory. */
	/** Content from the first byte on; of a file that was cut short, fewer than @c size. */
	struct corefile_blob bytes;
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
	uint16_t machine; /**< Of a unified one: EM_... of the process. */
	uint32_t kfd_major, kfd_minor;
	struct amdcore_table runtime; /**< One entry. */
	struct amdcore_table devices, queues;
	struct amdcore_note *notes; /**< Owned; without the note that has the tables. */
	uint32_t n_notes;
	struct amdcore_segment *segments; /**< Owned; in the order of their addresses. */
	uint32_t n_segments;
	/** The file's problems; only in a core that was read. */
	struct corefile_problems problems;
};

/** Free the lists of a core that was read.  Accepts a zeroed object. */
void amdcore_deinit(struct amdcore *c);

/** Decode the runtime's entry.  Members that the entry is too short for are 0. */
void amdcore_get_runtime(const struct amdcore *c, struct amdcore_runtime *ret);
/**
 * The same for a device.
 * @param i  Below devices.n.
 */
void amdcore_get_device(const struct amdcore *c, uint32_t i, struct amdcore_device *ret);
/**
 * The same for a queue.
 * @param i  Below queues.n.
 */
void amdcore_get_queue(const struct amdcore *c, uint32_t i, struct amdcore_queue *ret);

/**
 * Encode the runtime's entry with its size of today.
 * @param b  AMDCORE_RUNTIME_SIZE bytes.
 */
void amdcore_pack_runtime(uint8_t *b, const struct amdcore_runtime *r);
/**
 * The same for a device, without capability2.
 * @param b  AMDCORE_DEVICE_SIZE bytes.
 */
void amdcore_pack_device(uint8_t *b, const struct amdcore_device *d);
/**
 * The same for a queue.
 * @param b  AMDCORE_QUEUE_SIZE bytes.
 */
void amdcore_pack_queue(uint8_t *b, const struct amdcore_queue *q);

/**
 * Read the memory of a core that was read.
 * @return bytes copied, from the first on; 0 when the core does not have that address.
 */
size_t amdcore_read_memory(const struct amdcore *c, uint64_t address, void *buf, size_t size);

#endif /* COREFILE_AMDGPU_MODEL_H */
