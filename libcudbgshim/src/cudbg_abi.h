/* SPDX-License-Identifier: MIT */
#ifndef CUDBG_ABI_H
#define CUDBG_ABI_H

/**
 * @file cudbg_abi.h
 * NVIDIA's CUDA debugger API as it looks in memory: numbers, layouts, slots, names of symbols.
 *
 * It is written in our own words so that nothing of NVIDIA's is needed to build; test_cudbg_abi.py
 * compares it with every cudadebugger.h that can be had.  It is for 64-bit little-endian hosts
 * only.  "13.2" and the like in a remark is the CUDA release that brought the item.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDBGABI_PACKED __attribute__((packed))

/* ------------------------------------------------------------------ results ------------------ */

enum cudbgabi_result {
	CUDBGABI_SUCCESS = 0,
	CUDBGABI_ERROR_UNKNOWN = 1,
	CUDBGABI_ERROR_BUFFER_TOO_SMALL = 2,
	CUDBGABI_ERROR_UNKNOWN_FUNCTION = 3,
	CUDBGABI_ERROR_INVALID_ARGS = 4,
	CUDBGABI_ERROR_UNINITIALIZED = 5,
	CUDBGABI_ERROR_INVALID_COORDINATES = 6,
	CUDBGABI_ERROR_INVALID_MEMORY_SEGMENT = 7,
	CUDBGABI_ERROR_INVALID_MEMORY_ACCESS = 8,
	CUDBGABI_ERROR_MEMORY_MAPPING_FAILED = 9,
	CUDBGABI_ERROR_INTERNAL = 10,
	CUDBGABI_ERROR_INVALID_DEVICE = 11,
	CUDBGABI_ERROR_INVALID_SM = 12,
	CUDBGABI_ERROR_INVALID_WARP = 13,
	CUDBGABI_ERROR_INVALID_LANE = 14,
	CUDBGABI_ERROR_SUSPENDED_DEVICE = 15,
	CUDBGABI_ERROR_RUNNING_DEVICE = 16,
	CUDBGABI_ERROR_RESERVED_0 = 17,
	CUDBGABI_ERROR_INVALID_ADDRESS = 18,
	CUDBGABI_ERROR_INCOMPATIBLE_API = 19,
	CUDBGABI_ERROR_INITIALIZATION_FAILURE = 20,
	CUDBGABI_ERROR_INVALID_GRID = 21,
	CUDBGABI_ERROR_NO_EVENT_AVAILABLE = 22,
	CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED = 23,
	CUDBGABI_ERROR_ALL_DEVICES_WATCHDOGGED = 24,
	CUDBGABI_ERROR_INVALID_ATTRIBUTE = 25,
	CUDBGABI_ERROR_ZERO_CALL_DEPTH = 26,
	CUDBGABI_ERROR_INVALID_CALL_LEVEL = 27,
	CUDBGABI_ERROR_COMMUNICATION_FAILURE = 28,
	CUDBGABI_ERROR_INVALID_CONTEXT = 29,
	CUDBGABI_ERROR_ADDRESS_NOT_IN_DEVICE_MEM = 30,
	CUDBGABI_ERROR_MEMORY_UNMAPPING_FAILED = 31,
	CUDBGABI_ERROR_INCOMPATIBLE_DISPLAY_DRIVER = 32,
	CUDBGABI_ERROR_INVALID_MODULE = 33,
	CUDBGABI_ERROR_LANE_NOT_IN_SYSCALL = 34,
	CUDBGABI_ERROR_MEMCHECK_NOT_ENABLED = 35, /**< RESERVED_1 since 13.1. */
	CUDBGABI_ERROR_INVALID_ENVVAR_ARGS = 36,
	CUDBGABI_ERROR_OS_RESOURCES = 37,
	CUDBGABI_ERROR_FORK_FAILED = 38,
	CUDBGABI_ERROR_NO_DEVICE_AVAILABLE = 39,
	CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE = 40,
	CUDBGABI_ERROR_WARP_RESUME_NOT_POSSIBLE = 41,
	CUDBGABI_ERROR_INVALID_WARP_MASK = 42,
	CUDBGABI_ERROR_AMBIGUOUS_MEMORY_ADDRESS = 43,
	CUDBGABI_ERROR_RECURSIVE_API_CALL = 44,
	CUDBGABI_ERROR_MISSING_DATA = 45,
	CUDBGABI_ERROR_NOT_SUPPORTED = 46,
	CUDBGABI_ERROR_BREAKPOINT_STATE_CONFLICT = 47, /**< 13.2. */
	CUDBGABI_RESULT_COUNT
};

/* ------------------------------------------------------------------ exceptions --------------- */

/** CUDBGException_t.  Lane and memcheck exceptions are no longer reported since 13.1. */
enum cudbgabi_exception {
	CUDBGABI_EXCEPTION_UNKNOWN = 0xffffffff,
	CUDBGABI_EXCEPTION_NONE = 0,
	CUDBGABI_EXCEPTION_LANE_ILLEGAL_ADDRESS = 1, /**< RESERVED_0 since 13.1. */
	CUDBGABI_EXCEPTION_LANE_USER_STACK_OVERFLOW = 2, /**< RESERVED_1 since 13.1. */
	CUDBGABI_EXCEPTION_DEVICE_HARDWARE_STACK_OVERFLOW = 3, /**< RESERVED_2 since 13.1. */
	CUDBGABI_EXCEPTION_WARP_ILLEGAL_INSTRUCTION = 4,
	CUDBGABI_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS = 5,
	CUDBGABI_EXCEPTION_WARP_MISALIGNED_ADDRESS = 6,
	CUDBGABI_EXCEPTION_WARP_INVALID_ADDRESS_SPACE = 7,
	CUDBGABI_EXCEPTION_WARP_INVALID_PC = 8,
	CUDBGABI_EXCEPTION_WARP_HARDWARE_STACK_OVERFLOW = 9,
	CUDBGABI_EXCEPTION_DEVICE_ILLEGAL_ADDRESS = 10,
	CUDBGABI_EXCEPTION_LANE_MISALIGNED_ADDRESS = 11, /**< RESERVED_3 since 13.1. */
	CUDBGABI_EXCEPTION_WARP_ASSERT = 12,
	CUDBGABI_EXCEPTION_LANE_SYSCALL_ERROR = 13, /**< RESERVED_4 since 13.1. */
	CUDBGABI_EXCEPTION_WARP_ILLEGAL_ADDRESS = 14,
	CUDBGABI_EXCEPTION_LANE_NONMIGRATABLE_ATOMSYS = 15, /**< RESERVED_5 since 13.1. */
	CUDBGABI_EXCEPTION_LANE_INVALID_ATOMSYS = 16, /**< RESERVED_6 since 13.1. */
	CUDBGABI_EXCEPTION_CLUSTER_OUT_OF_RANGE_ADDRESS = 17,
	CUDBGABI_EXCEPTION_CLUSTER_BLOCK_NOT_PRESENT = 18,
	CUDBGABI_EXCEPTION_WARP_STACK_CANARY = 19,
	CUDBGABI_EXCEPTION_WARP_TMEM_ACCESS_CHECK = 20,
	CUDBGABI_EXCEPTION_WARP_TMEM_LEAK = 21,
	CUDBGABI_EXCEPTION_WARP_CALL_REQUIRES_NEWER_DRIVER = 22,
	CUDBGABI_EXCEPTION_WARP_MISALIGNED_PC = 23,
	CUDBGABI_EXCEPTION_WARP_PC_OVERFLOW = 24,
	CUDBGABI_EXCEPTION_WARP_MISALIGNED_REG = 25,
	CUDBGABI_EXCEPTION_WARP_ILLEGAL_INSTR_ENCODING = 26,
	CUDBGABI_EXCEPTION_WARP_ILLEGAL_INSTR_PARAM = 27,
	CUDBGABI_EXCEPTION_WARP_OUT_OF_RANGE_REGISTER = 28,
	CUDBGABI_EXCEPTION_WARP_INVALID_CONST_ADDR_LDC = 29,
	CUDBGABI_EXCEPTION_WARP_MMU_FAULT = 30,
	CUDBGABI_EXCEPTION_WARP_ARRIVE = 31,
	CUDBGABI_EXCEPTION_CLUSTER_POISON = 32,
	CUDBGABI_EXCEPTION_WARP_API_STACK_ERROR = 33,
	CUDBGABI_EXCEPTION_WARP_BLOCK_NOT_PRESENT = 34,
	CUDBGABI_EXCEPTION_WARP_USER_STACK_OVERFLOW = 35,
	CUDBGABI_EXCEPTION_TMA_SYSCALL = 36,
	CUDBGABI_EXCEPTION_COUNT
};

/* ------------------------------------------------------------------ capabilities ------------- */

/** Bits of cudbgDebuggerCapabilities and of what slot 134 returns. */
#define CUDBGABI_CAPABILITY_LAZY_FUNCTION_LOADING	UINT32_C(0x01) /**< Needed for attach. */
#define CUDBGABI_CAPABILITY_SUSPEND_EVENTS		UINT32_C(0x02) /**< 12.5. */
#define CUDBGABI_CAPABILITY_EXCEPTIONS_IN_EXITED_WARPS	UINT32_C(0x04) /**< 12.5. */
#define CUDBGABI_CAPABILITY_NO_CONTEXT_PUSH_POP_EVENTS	UINT32_C(0x08) /**< 12.9. */
#define CUDBGABI_CAPABILITY_CUDA_LOGS			UINT32_C(0x10) /**< 13.0. */
#define CUDBGABI_CAPABILITY_CPU_CALL_STACKS		UINT32_C(0x20) /**< 13.0. */
#define CUDBGABI_CAPABILITY_FLUSH_PRINTF_ON_SUSPEND	UINT32_C(0x40) /**< 13.1. */
#define CUDBGABI_CAPABILITY_BREAK_ON_LAUNCH		UINT32_C(0x80) /**< 13.2. */

/* ------------------------------------------------------------------ events ------------------- */

enum cudbgabi_event_kind {
	CUDBGABI_EVENT_INVALID = 0,
	CUDBGABI_EVENT_ELF_IMAGE_LOADED = 1,
	CUDBGABI_EVENT_KERNEL_READY = 2,
	CUDBGABI_EVENT_KERNEL_FINISHED = 3,
	CUDBGABI_EVENT_INTERNAL_ERROR = 4,
	CUDBGABI_EVENT_CTX_PUSH = 5,
	CUDBGABI_EVENT_CTX_POP = 6,
	CUDBGABI_EVENT_CTX_CREATE = 7,
	CUDBGABI_EVENT_CTX_DESTROY = 8,
	CUDBGABI_EVENT_TIMEOUT = 9,
	CUDBGABI_EVENT_ATTACH_COMPLETE = 10,
	CUDBGABI_EVENT_DETACH_COMPLETE = 11,
	CUDBGABI_EVENT_ELF_IMAGE_UNLOADED = 12,
	CUDBGABI_EVENT_FUNCTIONS_LOADED = 13,
	CUDBGABI_EVENT_ALL_DEVICES_SUSPENDED = 14,
	CUDBGABI_EVENT_CUDA_LOGS_AVAILABLE = 15,
	CUDBGABI_EVENT_CUDA_LOGS_THRESHOLD_REACHED = 16,
	CUDBGABI_EVENT_SINGLE_STEP_COMPLETE = 17,
	CUDBGABI_EVENT_CUDA_LOGS_RULESET_CHANGED = 18,
	CUDBGABI_EVENT_KIND_COUNT
};

enum cudbgabi_event_queue {
	CUDBGABI_EVENT_QUEUE_SYNC = 0,
	CUDBGABI_EVENT_QUEUE_ASYNC = 1,
};

/* ------------------------------------------------------------------ small enumerations ------- */

enum cudbgabi_grid_status {
	CUDBGABI_GRID_STATUS_INVALID = 0,
	CUDBGABI_GRID_STATUS_PENDING = 1,
	CUDBGABI_GRID_STATUS_ACTIVE = 2,
	CUDBGABI_GRID_STATUS_SLEEPING = 3,
	CUDBGABI_GRID_STATUS_TERMINATED = 4,
	CUDBGABI_GRID_STATUS_UNDETERMINED = 5,
	CUDBGABI_GRID_STATUS_COUNT
};

enum cudbgabi_kernel_type {
	CUDBGABI_KNL_TYPE_UNKNOWN = 0,
	CUDBGABI_KNL_TYPE_SYSTEM = 1,
	CUDBGABI_KNL_TYPE_APPLICATION = 2,
};

enum cudbgabi_kernel_origin {
	CUDBGABI_KNL_ORIGIN_CPU = 0,
	CUDBGABI_KNL_ORIGIN_GPU = 1,
};

enum cudbgabi_launch_notify {
	CUDBGABI_KNL_LAUNCH_NOTIFY_EVENT = 0,
	CUDBGABI_KNL_LAUNCH_NOTIFY_DEFER = 1,
};

enum cudbgabi_elf_image_type {
	CUDBGABI_ELF_IMAGE_TYPE_NONRELOCATED = 0,
	CUDBGABI_ELF_IMAGE_TYPE_RELOCATED = 1,
};

#define CUDBGABI_ELF_IMAGE_PROPERTIES_SYSTEM UINT32_C(1)

enum cudbgabi_attribute {
	CUDBGABI_ATTR_GRID_LAUNCH_BLOCKING = 0,
	CUDBGABI_ATTR_GRID_TID = 1,
};

enum cudbgabi_adjust {
	CUDBGABI_ADJ_PREVIOUS_ADDRESS = 0,
	CUDBGABI_ADJ_CURRENT_ADDRESS = 1,
	CUDBGABI_ADJ_NEXT_ADDRESS = 2,
};

/** Where a DWARF register is; the low byte of the number remains after DW_OP_regx is decoded. */
enum cudbgabi_reg_class {
	CUDBGABI_REG_CLASS_INVALID = 0x000,
	CUDBGABI_REG_CLASS_REG_CC = 0x001,
	CUDBGABI_REG_CLASS_REG_PRED = 0x002,
	CUDBGABI_REG_CLASS_REG_ADDR = 0x003,
	CUDBGABI_REG_CLASS_REG_HALF = 0x004,
	CUDBGABI_REG_CLASS_REG_FULL = 0x005,
	CUDBGABI_REG_CLASS_MEM_LOCAL = 0x006,
	CUDBGABI_REG_CLASS_LMEM_REG_OFFSET = 0x007,
	CUDBGABI_REG_CLASS_UREG_PRED = 0x009,
	CUDBGABI_REG_CLASS_UREG_HALF = 0x00a,
	CUDBGABI_REG_CLASS_UREG_FULL = 0x00b,
	CUDBGABI_REG_CLASS_TEMP_REG_SPILL = 0x00c, /**< 13.4. */
};

/** Address classes: ptxStorageKind, also the DW_AT_address_class of device DWARF. */
enum cudbgabi_storage {
	CUDBGABI_STORAGE_UNSPECIFIED = 0,
	CUDBGABI_STORAGE_CODE = 1,
	CUDBGABI_STORAGE_REG = 2,
	CUDBGABI_STORAGE_SREG = 3,
	CUDBGABI_STORAGE_CONST = 4,
	CUDBGABI_STORAGE_GLOBAL = 5,
	CUDBGABI_STORAGE_LOCAL = 6,
	CUDBGABI_STORAGE_PARAM = 7,
	CUDBGABI_STORAGE_SHARED = 8,
	CUDBGABI_STORAGE_SURF = 9,
	CUDBGABI_STORAGE_TEX = 10,
	CUDBGABI_STORAGE_TEX_SAMPLER = 11,
	CUDBGABI_STORAGE_GENERIC = 12,
	CUDBGABI_STORAGE_IPARAM = 13,
	CUDBGABI_STORAGE_OPARAM = 14,
	CUDBGABI_STORAGE_FRAME = 15,
	CUDBGABI_STORAGE_UREG = 16,
};

enum cudbgabi_device_info_query {
	CUDBGABI_DEVICE_INFO_FULL = 0,
	CUDBGABI_DEVICE_INFO_UPDATE = 1,
};

/** The source of a reported driver error, in cudbgReportedDriverApiErrorSource. */
enum cudbgabi_api_error_source {
	CUDBGABI_API_ERROR_SOURCE_NONE = 0,
	CUDBGABI_API_ERROR_SOURCE_DRIVER = 1,
	CUDBGABI_API_ERROR_SOURCE_RUNTIME = 2,
};

/**
 * Words of the attach protocol.  cudbgApiInit() takes the first three; the agent's argument list
 * carries 0 (launch), 1 or 2.
 */
enum cudbgabi_attach_state {
	CUDBGABI_ATTACH_LAUNCHED = 0,
	CUDBGABI_ATTACH_FULL = 1,
	CUDBGABI_ATTACH_STUB = 2,
};

/** Flags of slot 127: parts that are left out of a core dump, and how it is written. */
#define CUDBGABI_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES UINT32_C(0x01)
#define CUDBGABI_COREDUMP_SKIP_GLOBAL_MEMORY	       UINT32_C(0x02)
#define CUDBGABI_COREDUMP_SKIP_SHARED_MEMORY	       UINT32_C(0x04)
#define CUDBGABI_COREDUMP_SKIP_LOCAL_MEMORY	       UINT32_C(0x08)
#define CUDBGABI_COREDUMP_SKIP_ABORT		       UINT32_C(0x10) /**< Refused since 12.5. */
#define CUDBGABI_COREDUMP_SKIP_CONSTBANK_MEMORY	       UINT32_C(0x20) /**< 12.6. */
#define CUDBGABI_COREDUMP_GZIP_COMPRESS		       UINT32_C(0x40) /**< 13.1. */
#define CUDBGABI_COREDUMP_FAULTED_CONTEXTS_ONLY	       UINT32_C(0x80) /**< 13.3. */

#define CUDBGABI_MAX_DEVICES	   64u /**< 32 up to 11.8. */
#define CUDBGABI_MAX_SMS	   256u
#define CUDBGABI_MAX_WARPS	   64u
#define CUDBGABI_MAX_LANES	   32u
#define CUDBGABI_MAX_WARP_BARRIERS 16u
#define CUDBGABI_MAX_LOG_LEN	   256u
/** Host thread of an event that has none. */
#define CUDBGABI_NO_TID UINT32_C(0xffffffff)

/** Breakpoint handles that stand for no breakpoint of ours (13.2). */
#define CUDBGABI_BREAKPOINT_INVALID	    UINT64_C(0)
#define CUDBGABI_BREAKPOINT_TRAP	    UINT64_C(0xffffffffffffffff)
#define CUDBGABI_BREAKPOINT_LEGACY	    UINT64_C(0xfffffffffffffffe)
#define CUDBGABI_BREAKPOINT_INTERNAL	    UINT64_C(0xfffffffffffffffd)
#define CUDBGABI_BREAKPOINT_BREAK_ON_LAUNCH UINT64_C(0xfffffffffffffffc)
#define CUDBGABI_BREAKPOINT_ALL_USER	    UINT64_C(0xfffffffffffffffb)

/* ------------------------------------------------------------------ structs ------------------ */

struct cudbgabi_dim2 {
	uint32_t x, y;
};
_Static_assert(sizeof(struct cudbgabi_dim2) == 8, "dim2");

struct cudbgabi_dim3 {
	uint32_t x, y, z;
};
_Static_assert(sizeof(struct cudbgabi_dim3) == 12, "dim3");

/** Asserts the offset of a member, and the size of a struct. */
#define CUDBGABI_AT(type, field, offset)                                                           \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field)
#define CUDBGABI_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)

struct CUDBGABI_PACKED cudbgabi_event_elf_image_loaded {
	uint32_t dev;
	uint64_t context;
	uint64_t module;
	uint64_t size;
	uint64_t handle;
	uint32_t properties; /**< Not in an unload event. */
};

struct CUDBGABI_PACKED cudbgabi_event_kernel_ready {
	uint32_t dev;
	uint32_t tid;
	uint64_t grid_id;
	uint64_t context;
	uint64_t module;
	uint64_t function;
	uint64_t function_entry;
	struct cudbgabi_dim3 grid_dim;
	struct cudbgabi_dim3 block_dim;
	uint32_t type;
	uint64_t parent_grid_id; /**< Reserved in 13.4. */
	uint32_t origin;
};

struct CUDBGABI_PACKED cudbgabi_event_kernel_finished {
	uint32_t dev;
	uint32_t tid;
	uint64_t context;
	uint64_t module;
	uint64_t function;
	uint64_t function_entry;
	uint64_t grid_id;
};

struct CUDBGABI_PACKED cudbgabi_event_context {
	uint32_t dev;
	uint32_t tid;
	uint64_t context;
};

struct CUDBGABI_PACKED cudbgabi_event_functions_loaded {
	uint32_t dev;
	uint32_t count;
	uint64_t context;
	uint64_t module;
};

struct CUDBGABI_PACKED cudbgabi_event_all_devices_suspended {
	uint64_t broken_devices_mask;
	uint64_t faulted_devices_mask;
};

struct CUDBGABI_PACKED cudbgabi_event_single_step_complete {
	uint32_t dev;
	uint32_t sm;
	uint64_t context;
	uint64_t original_warp_mask;
	uint64_t final_warp_mask;
	uint64_t broken_devices_mask;
	uint64_t faulted_devices_mask;
	uint32_t type;
};

/** CUDBGEvent, which has had the same 92 bytes since 6.0. */
struct CUDBGABI_PACKED cudbgabi_event {
	uint32_t kind;
	union {
		struct cudbgabi_event_elf_image_loaded elf_image; /**< Loaded and unloaded. */
		struct cudbgabi_event_kernel_ready kernel_ready;
		struct cudbgabi_event_kernel_finished kernel_finished;
		struct cudbgabi_event_context context; /**< Push, pop, create, destroy. */
		uint32_t internal_error;	       /**< enum cudbgabi_result. */
		struct cudbgabi_event_functions_loaded functions_loaded;
		struct cudbgabi_event_all_devices_suspended all_devices_suspended;
		struct cudbgabi_event_single_step_complete single_step_complete;
		uint32_t log_ruleset;
	};
};
CUDBGABI_SIZE(cudbgabi_event, 92);
CUDBGABI_AT(cudbgabi_event, elf_image.context, 8);
CUDBGABI_AT(cudbgabi_event, elf_image.handle, 32);
CUDBGABI_AT(cudbgabi_event, elf_image.properties, 40);
CUDBGABI_AT(cudbgabi_event, kernel_ready.grid_id, 12);
CUDBGABI_AT(cudbgabi_event, kernel_ready.function_entry, 44);
CUDBGABI_AT(cudbgabi_event, kernel_ready.block_dim, 64);
CUDBGABI_AT(cudbgabi_event, kernel_ready.type, 76);
CUDBGABI_AT(cudbgabi_event, kernel_ready.origin, 88);
CUDBGABI_AT(cudbgabi_event, kernel_finished.context, 12);
CUDBGABI_AT(cudbgabi_event, kernel_finished.grid_id, 44);
CUDBGABI_AT(cudbgabi_event, context.context, 12);
CUDBGABI_AT(cudbgabi_event, internal_error, 4);
CUDBGABI_AT(cudbgabi_event, functions_loaded.count, 8);
CUDBGABI_AT(cudbgabi_event, functions_loaded.module, 20);
CUDBGABI_AT(cudbgabi_event, all_devices_suspended.faulted_devices_mask, 12);
CUDBGABI_AT(cudbgabi_event, single_step_complete.type, 52);

/**
 * Arguments of the callbacks; the first two depend on the slot with which a callback was
 * registered.
 */
struct cudbgabi_notify_40 {
	uint32_t tid;
};
CUDBGABI_SIZE(cudbgabi_notify_40, 4);
struct cudbgabi_notify_41 {
	uint32_t tid;
	uint32_t timeout;
};
CUDBGABI_SIZE(cudbgabi_notify_41, 8);
struct cudbgabi_notify {
	void *user_data;
	uint32_t tid;
};
CUDBGABI_SIZE(cudbgabi_notify, 16);
CUDBGABI_AT(cudbgabi_notify, tid, 8);

typedef void cudbgabi_notify_31_fn(void *user_data);
typedef void cudbgabi_notify_40_fn(struct cudbgabi_notify_40 *data);
typedef void cudbgabi_notify_41_fn(struct cudbgabi_notify_41 *data);
typedef void cudbgabi_notify_fn(struct cudbgabi_notify *data);

/** CUDBGGridInfo.  Older slots fill a prefix of it. */
struct CUDBGABI_PACKED cudbgabi_grid_info {
	uint32_t dev;
	uint64_t grid_id;
	uint32_t tid;
	uint64_t context;
	uint64_t module;
	uint64_t function;
	uint64_t function_entry;
	struct cudbgabi_dim3 grid_dim;
	struct cudbgabi_dim3 block_dim;
	uint32_t type;
	uint64_t parent_grid_id; /**< Reserved in 13.4. */
	uint32_t origin;
	struct cudbgabi_dim3 cluster_dim;	    /**< Slots 121 and 137. */
	struct cudbgabi_dim3 preferred_cluster_dim; /**< Slot 137. */
};
#define CUDBGABI_GRID_INFO_SIZE_55  88u	 /**< Slot 86. */
#define CUDBGABI_GRID_INFO_SIZE_120 100u /**< Slot 121. */
CUDBGABI_SIZE(cudbgabi_grid_info, 112);
CUDBGABI_AT(cudbgabi_grid_info, context, 16);
CUDBGABI_AT(cudbgabi_grid_info, grid_dim, 48);
CUDBGABI_AT(cudbgabi_grid_info, type, 72);
CUDBGABI_AT(cudbgabi_grid_info, origin, 84);
CUDBGABI_AT(cudbgabi_grid_info, cluster_dim, CUDBGABI_GRID_INFO_SIZE_55);
CUDBGABI_AT(cudbgabi_grid_info, preferred_cluster_dim, CUDBGABI_GRID_INFO_SIZE_120);

struct CUDBGABI_PACKED cudbgabi_lane_state {
	uint64_t virtual_pc;
	struct cudbgabi_dim3 thread_idx;
	uint32_t exception;
};
CUDBGABI_SIZE(cudbgabi_lane_state, 24);

/** CUDBGWarpState.  Older slots fill a prefix of it. */
struct CUDBGABI_PACKED cudbgabi_warp_state {
	uint64_t grid_id;
	uint64_t error_pc;
	struct cudbgabi_dim3 block_idx;
	uint32_t valid_lanes;
	uint32_t active_lanes;
	uint32_t error_pc_valid;
	struct cudbgabi_lane_state lane[CUDBGABI_MAX_LANES];
	struct cudbgabi_dim3 cluster_idx; /**< Slots 123, 139, 143. */
	struct cudbgabi_dim3 cluster_dim; /**< Slots 139, 143. */
	uint32_t cluster_exception_target_block_idx_valid;
	struct cudbgabi_dim3 cluster_exception_target_block_idx;
	uint32_t in_syscall_lanes; /**< Slot 143. */
};
#define CUDBGABI_WARP_STATE_SIZE_60  808u /**< Slot 97. */
#define CUDBGABI_WARP_STATE_SIZE_120 820u /**< Slot 123. */
#define CUDBGABI_WARP_STATE_SIZE_127 848u /**< Slot 139. */
CUDBGABI_SIZE(cudbgabi_warp_state, 852);
CUDBGABI_AT(cudbgabi_warp_state, block_idx, 16);
CUDBGABI_AT(cudbgabi_warp_state, error_pc_valid, 36);
CUDBGABI_AT(cudbgabi_warp_state, lane, 40);
CUDBGABI_AT(cudbgabi_warp_state, cluster_idx, CUDBGABI_WARP_STATE_SIZE_60);
CUDBGABI_AT(cudbgabi_warp_state, cluster_dim, CUDBGABI_WARP_STATE_SIZE_120);
CUDBGABI_AT(cudbgabi_warp_state, cluster_exception_target_block_idx, 836);
CUDBGABI_AT(cudbgabi_warp_state, in_syscall_lanes, CUDBGABI_WARP_STATE_SIZE_127);

struct CUDBGABI_PACKED cudbgabi_function_info {
	uint64_t section_index;
	uint64_t address;
};
CUDBGABI_SIZE(cudbgabi_function_info, 16);

struct CUDBGABI_PACKED cudbgabi_memory_info {
	uint64_t start;
	uint64_t size;
};
CUDBGABI_SIZE(cudbgabi_memory_info, 16);

struct CUDBGABI_PACKED cudbgabi_warp_resources {
	uint32_t shared_mem_size;
	uint32_t num_registers;
};
CUDBGABI_SIZE(cudbgabi_warp_resources, 8);

struct CUDBGABI_PACKED cudbgabi_cbu_warp_state {
	uint32_t active;
	uint32_t exited;
	uint32_t collective;
	uint32_t barrier_masks[CUDBGABI_MAX_WARP_BARRIERS];
	uint32_t thread_state[CUDBGABI_MAX_LANES];
};
CUDBGABI_SIZE(cudbgabi_cbu_warp_state, 204);
CUDBGABI_AT(cudbgabi_cbu_warp_state, thread_state, 76);

struct CUDBGABI_PACKED cudbgabi_log_message_129 {
	uint64_t time_ns;
	uint32_t tid;
	uint32_t level;
	char text[CUDBGABI_MAX_LOG_LEN];
};
CUDBGABI_SIZE(cudbgabi_log_message_129, 272);

struct CUDBGABI_PACKED cudbgabi_log_message {
	uint64_t time_ns;
	uint64_t tid;
	uint32_t level;
	uint32_t ruleset;
	uint32_t rule;
	char text[CUDBGABI_MAX_LOG_LEN];
};
CUDBGABI_SIZE(cudbgabi_log_message, 284);

struct cudbgabi_log_rule {
	uint32_t action;
	uint32_t level_filter;
	uint64_t tid_filter;
	const char *regex;
};
CUDBGABI_SIZE(cudbgabi_log_rule, 24);

struct cudbgabi_attribute_value {
	uint32_t attribute;
	uint64_t value;
};
CUDBGABI_SIZE(cudbgabi_attribute_value, 16);

/* ------------------------------------------------------------------ batched state ------------ */

#define CUDBGABI_MAX_ATTRIBUTES 32u

/** CUDBGDeviceInfoSizes: strides of the buffer that slot 130 fills, all in bytes. */
struct CUDBGABI_PACKED cudbgabi_device_info_sizes {
	uint32_t required_buffer_size;
	uint32_t device_size;
	uint32_t device_attr[CUDBGABI_MAX_ATTRIBUTES];
	uint32_t sm_size;
	uint32_t sm_attr[CUDBGABI_MAX_ATTRIBUTES];
	uint32_t warp_size;
	uint32_t warp_attr[CUDBGABI_MAX_ATTRIBUTES];
	uint32_t lane_size;
	uint32_t lane_attr[CUDBGABI_MAX_ATTRIBUTES];
};
CUDBGABI_SIZE(cudbgabi_device_info_sizes, 532);
CUDBGABI_AT(cudbgabi_device_info_sizes, sm_size, 136);
CUDBGABI_AT(cudbgabi_device_info_sizes, warp_size, 268);
CUDBGABI_AT(cudbgabi_device_info_sizes, lane_size, 400);

struct CUDBGABI_PACKED cudbgabi_device_info {
	uint32_t response_type; /**< enum cudbgabi_device_info_query. */
	uint32_t attributes;
};
CUDBGABI_SIZE(cudbgabi_device_info, 8);

struct CUDBGABI_PACKED cudbgabi_sm_info {
	uint64_t warp_valid_mask;
	uint64_t warp_broken_mask;
	uint32_t attributes;
};
CUDBGABI_SIZE(cudbgabi_sm_info, 20);

struct CUDBGABI_PACKED cudbgabi_warp_info {
	uint64_t grid_id;
	struct cudbgabi_dim3 block_idx;
	struct cudbgabi_dim3 base_thread_idx;
	uint32_t valid_lanes;
	uint32_t active_lanes;
	uint32_t attributes;
};
CUDBGABI_SIZE(cudbgabi_warp_info, 44);
CUDBGABI_AT(cudbgabi_warp_info, attributes, 40);

struct CUDBGABI_PACKED cudbgabi_lane_info {
	uint64_t virtual_pc;
};
CUDBGABI_SIZE(cudbgabi_lane_info, 8);

/** Bit numbers of the flag words, which are also indices of the size arrays. */
enum cudbgabi_device_attr {
	CUDBGABI_DEVICE_ATTR_SM_UPDATE_MASK = 0,
	CUDBGABI_DEVICE_ATTR_SM_ACTIVE_MASK = 1,
	CUDBGABI_DEVICE_ATTR_SM_EXCEPTION_MASK = 2,
};
enum cudbgabi_sm_attr {
	CUDBGABI_SM_ATTR_WARP_UPDATE_MASK = 0,
};
enum cudbgabi_warp_attr {
	CUDBGABI_WARP_ATTR_LANE_UPDATE_MASK = 0,
	CUDBGABI_WARP_ATTR_LANE_ATTRIBUTES = 1, /**< Each lane has a flag word behind it. */
	CUDBGABI_WARP_ATTR_EXCEPTION = 2,
	CUDBGABI_WARP_ATTR_ERROR_PC = 3,
	CUDBGABI_WARP_ATTR_CLUSTER_IDX = 4,
	CUDBGABI_WARP_ATTR_CLUSTER_DIM = 5,
	CUDBGABI_WARP_ATTR_CLUSTER_EXCEPTION_TARGET_BLOCK_IDX = 6,
	CUDBGABI_WARP_ATTR_IN_SYSCALL_LANES = 7,      /**< 12.9. */
	CUDBGABI_WARP_ATTR_HIT_BREAKPOINT_HANDLE = 8, /**< 13.2. */
};

/* ------------------------------------------------------------------ the table ---------------- */

#include "cudbg_slots.h"
#include "cudbg_symbols.h"

/**
 * Types such as `cudbgabi_getGridInfo_fn`, in the vendor's spelling, so that both can be searched
 * for.
 */
#define CUDBGABI_SLOT_TYPE(nr, vendor_name, args)                                                  \
	typedef uint32_t cudbgabi_##vendor_name##_fn args;
CUDBGABI_SLOTS(CUDBGABI_SLOT_TYPE)
#undef CUDBGABI_SLOT_TYPE

/** A slot before it is cast to its own type. */
typedef void cudbgabi_any_fn(void);

/** Exports of libcuda.so.1 in our own process; the table is an array of code pointers. */
#define CUDBGABI_SYM_GET_API	     "cudbgGetAPI"
#define CUDBGABI_SYM_GET_API_VERSION "cudbgGetAPIVersion"
typedef uint32_t cudbgabi_get_api_fn(uint32_t major, uint32_t minor, uint32_t revision,
				     cudbgabi_any_fn *const **ret_table);
typedef uint32_t cudbgabi_get_api_version_fn(uint32_t *major, uint32_t *minor, uint32_t *revision);

#endif /* CUDBG_ABI_H */
