/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_CUDA_MODEL_H
#define COREFILE_CUDA_MODEL_H

/**
 * @file cuda_model.h
 * The content of a CUDA core: devices, contexts, modules, grids, and what every lane on every SM
 * does.
 *
 * Rows live in one flat array per table.  A row knows its parent (a position in the parent's array)
 * and where its children are; the children of one parent lie together.  Strings and blobs are
 * borrowed: from the file that was read (no string is NULL then), or from the caller who fills a
 * core to write it.
 *
 * Fields are those of the driver's format; names of its header are in brackets where they differ
 * much.  A full GPU has 270,336 lanes: keep the lane small.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "corefile/corefile.h"

/**
 * The age of a record, named after the driver branch that first wrote it.  Records only ever grew;
 * a row of a core that was read has the fields of its age and zeros in place of younger ones.
 */
enum cudacore_layout {
	CUDACORE_LAYOUT_DEFAULT, /**< Stands for R575 when a core is written. */
	CUDACORE_LAYOUT_R346,
	CUDACORE_LAYOUT_R400, /**< Added uniform registers and predicates. */
	CUDACORE_LAYOUT_R525, /**< Added clusters, registers per warp. */
	CUDACORE_LAYOUT_R550, /**< Added constant banks. */
	CUDACORE_LAYOUT_R555, /**< Added exceptions of SMs. */
	CUDACORE_LAYOUT_R565, /**< Added preferred clusters, cluster targets, metadata. */
	CUDACORE_LAYOUT_R570, /**< Added the shared memory size of a warp. */
	CUDACORE_LAYOUT_R575, /**< Added convergence barriers. */
	CUDACORE_LAYOUT_R580, /**< Added exception strings of SMs. */
	CUDACORE_LAYOUT_R590, /**< Added what a warp waits for. */
	CUDACORE_LAYOUT_R615, /**< Added the reconvergence pc of lanes. */
	CUDACORE_LAYOUT_COUNT,
};

/** The children of a row: positions [first, first + n) in their table's array. */
struct cudacore_range {
	uint32_t first, n;
};

/** The program and driver that made the dump; a core has at most one such row. */
struct cudacore_meta {
	const char *generator;
	uint32_t gpu_driver[2], cuda_driver[2]; /**< Major, minor. */
	/** Generation flags, which say what was left out. */
	uint32_t flags;
	uint32_t time_s;			/**< Seconds since 1970. */
	uint8_t age;
};

/** A GPU. */
struct cudacore_device {
	const char *name, *type, *sm_type; /**< `NVIDIA H200`, `GH100`, `sm_90`. */
	struct cudacore_range contexts, sms, grids;
	uint32_t id; /**< Debuggers want it to be the position of the row. */
	uint32_t pci_bus, pci_device;
	uint32_t sm_count, warps_per_sm, lanes_per_warp, registers_per_lane, predicates_per_lane;
	uint32_t sm_major, sm_minor, instruction_bytes;
	uint32_t status; /**< CUDBGResult. */
	uint32_t uniform_registers, uniform_predicates; /**< Per warp; since R400. */
	uint32_t barriers;				/**< Per warp; since R575. */
	uint8_t age;
};

/** A context, which is NVIDIA's counterpart of a queue. */
struct cudacore_context {
	uint64_t id, shared_window, local_window, global_window;
	struct cudacore_range modules;
	uint32_t device;     /**< Parent. */
	uint32_t device_row; /**< Parent as the record itself says; the same in a sound core. */
	uint32_t tid;	     /**< Host thread that owns the context; 0 if unknown. */
	uint8_t age;
};

/** A module: code that was loaded into a context. */
struct cudacore_module {
	uint64_t handle;
	struct corefile_blob image;	/**< The cubin as compiled [elfimg]; may be empty. */
	/** The cubin as loaded [relfimg]; symbols and lines come from it. */
	struct corefile_blob relocated;
	uint32_t context;		/**< Parent. */
	uint8_t age;
};

struct cudacore_grid {
	uint64_t id, context_id, function, function_entry, module_handle, parent_id;
	uint64_t params_offset; /**< Address of byte 0 of @c params in the parameter space. */
	struct corefile_blob params;
	struct cudacore_range banks;
	uint32_t device; /**< Parent. */
	uint32_t kernel_type, origin, status, n_registers;
	uint32_t grid_dim[3], block_dim[3];
	uint32_t launch_blocking, host_tid;
	uint32_t cluster_dim[3];	   /**< Since R525. */
	uint32_t preferred_cluster_dim[3]; /**< Since R565. */
	uint8_t age;
};

/** The place of a grid's constant bank; its bytes are global memory. */
struct cudacore_bank {
	uint64_t address;
	uint32_t size, id;
	uint32_t grid; /**< Parent. */
	uint8_t age;
};

/** A streaming multiprocessor. */
struct cudacore_sm {
	uint64_t error_pc;
	const char *exception_text; /**< Since R580; NULL or empty when there is none. */
	struct cudacore_range blocks;
	uint32_t device; /**< Parent. */
	uint32_t id;
	uint32_t exception, error_pc_valid;			    /**< Since R555. */
	uint32_t cluster_target_valid, cluster_target[3]; /**< Since R565. */
	uint8_t age;
};

/** A block that is resident on an SM. */
struct cudacore_block {
	uint64_t grid_id;
	struct corefile_blob shared; /**< Shared memory, whose byte 0 has the shared address 0. */
	struct cudacore_range warps;
	uint32_t sm; /**< Parent. */
	uint32_t index[3];
	uint32_t cluster_index[3]; /**< Since R525. */
	uint32_t cluster_dim[3];   /**< Since R565. */
	uint8_t age;
};

struct cudacore_warp {
	uint64_t error_pc;
	uint64_t barrier_info; /**< Since R590. */
	/** Arrays of 32-bit words; since R400, those of the convergence barriers since R575. */
	struct corefile_blob uniform_registers, uniform_predicates, barriers;
	struct cudacore_range lanes;
	uint32_t block; /**< Parent. */
	uint32_t id;	/**< Its slot on the SM. */
	uint32_t valid_lanes, active_lanes;
	uint32_t broken; /**< Not 0 when the warp has hit a breakpoint. */
	uint32_t error_pc_valid;
	uint32_t n_registers;	  /**< Since R525. */
	uint32_t shared_bytes;	  /**< Since R570. */
	uint32_t syscall_lanes;	  /**< Since R575, as the next three. */
	uint32_t cbu_active, cbu_exited, cbu_collective;
	uint32_t barrier_scope; /**< Since R590. */
	uint8_t age;
};

struct cudacore_lane {
	uint64_t virtual_pc; /**< Address of the instruction. */
	uint64_t physical_pc; /**< Offset of the instruction in its function. */
	uint64_t local_address; /**< Address of byte 0 of @c local in the local space. */
	struct corefile_blob registers;	 /**< 32-bit words, R0 first. */
	struct corefile_blob predicates; /**< 32-bit words. */
	struct corefile_blob local;
	struct cudacore_range frames;
	uint32_t warp; /**< Parent. */
	uint32_t number, thread[3];
	uint32_t exception;	/**< CUDBGException_t. */
	uint32_t call_depth;	/**< Number of callers; the lane has as many frames. */
	/** Number of callers, the innermost ones, that belong to the driver. */
	uint32_t syscall_depth;
	uint32_t cc_register;	/**< Before Volta. */
	uint32_t cbu_state;	/**< Since R575. */
	uint32_t rpc[2];	/**< Low and high half of the reconvergence pc; since R615. */
	uint8_t age;
};

/** A caller of the function that a lane is in. */
struct cudacore_frame {
	uint64_t return_offset;	 /**< Offset in the calling function. */
	uint64_t return_address;
	uint32_t level; /**< 0 is the innermost caller. */
	uint32_t lane;	/**< Parent. */
	uint8_t age;
};

/** A range of device memory.  A managed one is marked, because debuggers treat it differently. */
struct cudacore_memory {
	uint64_t address;
	struct corefile_blob blob;
	bool managed; /**< cuda-gdb 12.4 lists such ranges and reads nothing from them. */
};

/** The tables, parents before children. */
enum cudacore_table {
	CUDACORE_META,
	CUDACORE_DEVICES,
	CUDACORE_CONTEXTS,
	CUDACORE_MODULES,
	CUDACORE_GRIDS,
	CUDACORE_BANKS,
	CUDACORE_SMS,
	CUDACORE_BLOCKS,
	CUDACORE_WARPS,
	CUDACORE_LANES,
	CUDACORE_FRAMES,
	CUDACORE_TABLE_COUNT,
};

/** A CUDA core.  An empty one is a zeroed object. */
struct cudacore {
	struct cudacore_meta *meta;
	struct cudacore_device *devices;
	struct cudacore_context *contexts;
	struct cudacore_module *modules;
	struct cudacore_grid *grids;
	struct cudacore_bank *banks;
	struct cudacore_sm *sms;
	struct cudacore_block *blocks;
	struct cudacore_warp *warps;
	struct cudacore_lane *lanes;
	struct cudacore_frame *frames;
	uint32_t n[CUDACORE_TABLE_COUNT]; /**< Rows of each table. */
	struct corefile_blob agent; /**< The agent's own note (corefile.h); may be empty. */
	/** Memory ranges; those of a core that was read are in the order of their addresses. */
	struct cudacore_memory *memory;
	uint32_t n_memory;
	/** The file's problems; only in a core that was read. */
	struct corefile_problems problems;

	uint32_t capacity[CUDACORE_TABLE_COUNT], memory_capacity; /**< Private. */
};

/** Free all rows and lists.  Accepts a zeroed object. */
void cudacore_deinit(struct cudacore *c);

/**
 * Make room for @p n more rows.
 * @return 0, -ENOMEM.
 */
int cudacore_reserve(struct cudacore *c, enum cudacore_table table, uint32_t n);
/**
 * Add a zeroed row below row @p parent of the table above it (0 for meta and devices).  All
 * children of one parent must be added before those of the next.
 * @return NULL without memory; valid until the next row of the same table.
 */
void *cudacore_add(struct cudacore *c, enum cudacore_table table, uint32_t parent);
/**
 * Add an empty memory range.
 * @return NULL without memory; valid until the next range is added.
 */
struct cudacore_memory *cudacore_add_memory(struct cudacore *c);

/**
 * Read the device memory of a core that was read (constant banks and code lie there too).
 * @return bytes read, from the first on; 0 when there is nothing at @p address.
 */
size_t cudacore_read_memory(const struct cudacore *c, uint64_t address, void *buf, size_t size);
/**
 * Tell the exception of a lane: its own; or, in a warp that has an error pc but no lane with an
 * exception, that of the SM for the lanes that are active.
 * @return CUDBGException_t; 0 if there is none.
 */
uint32_t cudacore_lane_exception(const struct cudacore *c, uint32_t lane);

#endif /* COREFILE_CUDA_MODEL_H */
