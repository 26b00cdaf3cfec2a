/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_KFD_ABI_H
#define KFDTRAP_KFD_ABI_H

/**
 * @file kfd_abi.h
 * The binary interface of /dev/kfd: command numbers, argument layouts, enumerations.
 *
 * They are declared here because Debian 12's <linux/kfd_ioctl.h> predates the debug interface, and
 * because some of the kernel's constants are signed shifts.  test_kfdtrap_abi compares all of it
 * with an installed header that is new enough.  Only for 64-bit little-endian hosts, as the driver
 * itself.
 */

#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------ command numbers ---------- */

/** The dispatcher selects by number alone; the size in the word says how much is copied. */
#define KFDABI_NR(word)	  ((unsigned int)((word) & 0xff))
#define KFDABI_SIZE(word) ((unsigned int)(((word) >> 16) & 0x3fff))

#define KFDABI_DIR_NONE UINT32_C(0x00000000)
#define KFDABI_DIR_W	UINT32_C(0x40000000) /**< The kernel reads the argument. */
#define KFDABI_DIR_R	UINT32_C(0x80000000) /**< The kernel writes the argument. */
#define KFDABI_DIR_RW	UINT32_C(0xc0000000)

#define KFDABI_IOC(dir, nr, size) ((uint32_t)((dir) | ((uint32_t)(size) << 16) | 0x4b00u | (nr)))

#define KFDABI_NR_GET_VERSION		     0x01u
#define KFDABI_NR_CREATE_QUEUE		     0x02u
#define KFDABI_NR_DESTROY_QUEUE		     0x03u
#define KFDABI_NR_SET_MEMORY_POLICY	     0x04u
#define KFDABI_NR_GET_CLOCK_COUNTERS	     0x05u
#define KFDABI_NR_GET_PROCESS_APERTURES	     0x06u
#define KFDABI_NR_UPDATE_QUEUE		     0x07u
#define KFDABI_NR_CREATE_EVENT		     0x08u
#define KFDABI_NR_DESTROY_EVENT		     0x09u
#define KFDABI_NR_SET_EVENT		     0x0au
#define KFDABI_NR_RESET_EVENT		     0x0bu
#define KFDABI_NR_WAIT_EVENTS		     0x0cu
#define KFDABI_NR_DBG_REGISTER		     0x0du
#define KFDABI_NR_DBG_UNREGISTER	     0x0eu
#define KFDABI_NR_DBG_ADDRESS_WATCH	     0x0fu
#define KFDABI_NR_DBG_WAVE_CONTROL	     0x10u
#define KFDABI_NR_SET_SCRATCH_BACKING_VA     0x11u
#define KFDABI_NR_GET_TILE_CONFIG	     0x12u
#define KFDABI_NR_SET_TRAP_HANDLER	     0x13u
#define KFDABI_NR_GET_PROCESS_APERTURES_NEW  0x14u
#define KFDABI_NR_ACQUIRE_VM		     0x15u
#define KFDABI_NR_ALLOC_MEMORY_OF_GPU	     0x16u
#define KFDABI_NR_FREE_MEMORY_OF_GPU	     0x17u
#define KFDABI_NR_MAP_MEMORY_TO_GPU	     0x18u
#define KFDABI_NR_UNMAP_MEMORY_FROM_GPU	     0x19u
#define KFDABI_NR_SET_CU_MASK		     0x1au
#define KFDABI_NR_GET_QUEUE_WAVE_STATE	     0x1bu
#define KFDABI_NR_GET_DMABUF_INFO	     0x1cu
#define KFDABI_NR_IMPORT_DMABUF		     0x1du
#define KFDABI_NR_ALLOC_QUEUE_GWS	     0x1eu
#define KFDABI_NR_SMI_EVENTS		     0x1fu
#define KFDABI_NR_SVM			     0x20u
#define KFDABI_NR_SET_XNACK_MODE	     0x21u
#define KFDABI_NR_CRIU_OP		     0x22u
#define KFDABI_NR_AVAILABLE_MEMORY	     0x23u
#define KFDABI_NR_EXPORT_DMABUF		     0x24u
#define KFDABI_NR_RUNTIME_ENABLE	     0x25u
#define KFDABI_NR_DBG_TRAP		     0x26u
#define KFDABI_NR_CREATE_PROCESS	     0x27u
#define KFDABI_NR_PROFILER		     0x28u

/** Debugging is possible from this minor on (major is 1 throughout). */
#define KFDABI_VERSION_MAJOR	   1u
#define KFDABI_VERSION_MINOR_DEBUG 13u

/* ------------------------------------------------------------------ general arguments -------- */

struct kfdabi_get_version_args {
	uint32_t major_version;
	uint32_t minor_version;
};

/** 96 bytes from interface 1.17 on; up to 1.16 the argument ends before sdma_engine_id. */
struct kfdabi_create_queue_args {
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t doorbell_offset; /**< Set by the kernel. */
	uint32_t ring_size;
	uint32_t gpu_id;
	uint32_t queue_type;
	uint32_t queue_percentage;
	uint32_t queue_priority;
	uint32_t queue_id; /**< Set by the kernel. */
	uint64_t eop_buffer_address;
	uint64_t eop_buffer_size;
	uint64_t ctx_save_restore_address;
	uint32_t ctx_save_restore_size;
	uint32_t ctl_stack_size;
	uint32_t sdma_engine_id;
	uint32_t reserved;
};
#define KFDABI_CREATE_QUEUE_SIZE_V1_16 88u

struct kfdabi_destroy_queue_args {
	uint32_t queue_id;
	uint32_t reserved;
};

struct kfdabi_update_queue_args {
	uint64_t ring_base_address;
	uint32_t queue_id;
	uint32_t ring_size;
	uint32_t queue_percentage;
	uint32_t queue_priority;
};

struct kfdabi_set_memory_policy_args {
	uint64_t alternate_aperture_base;
	uint64_t alternate_aperture_size;
	uint32_t gpu_id;
	uint32_t default_policy;
	uint32_t alternate_policy;
	uint32_t misc_process_flag; /**< Padding before interface 1.18. */
};

struct kfdabi_get_clock_counters_args {
	uint64_t gpu_clock_counter;
	uint64_t cpu_clock_counter;
	uint64_t system_clock_counter;
	uint64_t system_clock_freq;
	uint32_t gpu_id; /**< 0 is allowed. */
	uint32_t reserved;
};

struct kfdabi_process_apertures {
	uint64_t lds_base;
	uint64_t lds_limit;
	uint64_t scratch_base;
	uint64_t scratch_limit;
	uint64_t gpuvm_base;
	uint64_t gpuvm_limit;
	uint32_t gpu_id;
	uint32_t reserved;
};

/** At most seven nodes; the newer command has no such limit. */
struct kfdabi_get_process_apertures_args {
	struct kfdabi_process_apertures apertures[7];
	uint32_t num_of_nodes;
	uint32_t reserved;
};

struct kfdabi_get_process_apertures_new_args {
	uint64_t apertures_ptr;
	uint32_t num_of_nodes; /**< Read and set by the kernel. */
	uint32_t reserved;
};

struct kfdabi_acquire_vm_args {
	uint32_t drm_fd;
	uint32_t gpu_id;
};

struct kfdabi_alloc_memory_args {
	uint64_t va_addr;
	uint64_t size;
	uint64_t handle;      /**< Set by the kernel. */
	uint64_t mmap_offset; /**< Read for user pointers, else set by the kernel. */
	uint32_t gpu_id;
	uint32_t flags;
};

/* What an object is made of; further bits say how it may be used. */
#define KFDABI_ALLOC_VRAM	UINT32_C(0x1)
#define KFDABI_ALLOC_GTT	UINT32_C(0x2)
#define KFDABI_ALLOC_USERPTR	UINT32_C(0x4)
#define KFDABI_ALLOC_DOORBELL	UINT32_C(0x8)
#define KFDABI_ALLOC_MMIO_REMAP UINT32_C(0x10)

struct kfdabi_free_memory_args {
	uint64_t handle;
};

/** Mapping and unmapping share one layout. */
struct kfdabi_map_memory_args {
	uint64_t handle;
	uint64_t device_ids_ptr;
	uint32_t n_devices;
	uint32_t n_success; /**< Read and set by the kernel. */
};

struct kfdabi_set_scratch_args {
	uint64_t va_addr;
	uint32_t gpu_id;
	uint32_t reserved;
};

struct kfdabi_get_tile_config_args {
	uint64_t tile_config_ptr;
	uint64_t macro_tile_config_ptr;
	uint32_t num_tile_configs;
	uint32_t num_macro_tile_configs;
	uint32_t gpu_id;
	uint32_t gb_addr_config;
	uint32_t num_banks;
	uint32_t num_ranks;
};

struct kfdabi_set_trap_handler_args {
	uint64_t tba_addr;
	uint64_t tma_addr;
	uint32_t gpu_id;
	uint32_t reserved;
};

struct kfdabi_set_cu_mask_args {
	uint32_t queue_id;
	uint32_t num_cu_mask;
	uint64_t cu_mask_ptr;
};

struct kfdabi_get_queue_wave_state_args {
	uint64_t ctl_stack_address;
	uint32_t ctl_stack_used_size;
	uint32_t save_area_used_size;
	uint32_t queue_id;
	uint32_t reserved;
};

struct kfdabi_smi_events_args {
	uint32_t gpu_id;
	uint32_t anon_fd; /**< Set by the kernel. */
};

/** Followed by nattr attributes of 8 bytes each. */
struct kfdabi_svm_args {
	uint64_t start_addr;
	uint64_t size;
	uint32_t op;
	uint32_t nattr;
};

struct kfdabi_set_xnack_mode_args {
	int32_t xnack_enabled; /**< A negative value only asks. */
};

struct kfdabi_criu_args {
	uint64_t devices_ptr;
	uint64_t bos_ptr;
	uint64_t priv_data_ptr;
	uint64_t priv_data_size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint32_t pid;
	uint32_t op;
	uint32_t reserved; /**< Tail padding of the kernel's declaration. */
};

struct kfdabi_available_memory_args {
	uint64_t available; /**< Set by the kernel. */
	uint32_t gpu_id;
	uint32_t reserved;
};

struct kfdabi_runtime_enable_args {
	uint64_t r_debug;
	uint32_t mode_mask;
	uint32_t capabilities_mask; /**< To be set by the kernel; upstream kernels never do. */
};

#define KFDABI_RUNTIME_ENABLE_MODE_ENABLE    UINT32_C(0x1)
#define KFDABI_RUNTIME_ENABLE_MODE_TTMP_SAVE UINT32_C(0x2)

/* Every kernel that has DBG_TRAP answers these deprecated debug commands with an error. */
struct kfdabi_dbg_register_args {
	uint32_t gpu_id;
	uint32_t reserved;
};

struct kfdabi_dbg_buffer_args {
	uint64_t content_ptr;
	uint32_t gpu_id;
	uint32_t buf_size;
};

/* ------------------------------------------------------------------ events ------------------- */

#define KFDABI_EVENT_SIGNAL	  UINT32_C(0)
#define KFDABI_EVENT_HW_EXCEPTION UINT32_C(3)
#define KFDABI_EVENT_DEBUG	  UINT32_C(5)
#define KFDABI_EVENT_MEMORY	  UINT32_C(8)

#define KFDABI_WAIT_COMPLETE UINT32_C(0)
#define KFDABI_WAIT_TIMEOUT  UINT32_C(1)
#define KFDABI_WAIT_FAIL     UINT32_C(2)

#define KFDABI_SIGNAL_EVENT_LIMIT 4096u

struct kfdabi_create_event_args {
	uint64_t event_page_offset;  /**< Read and set by the kernel. */
	uint32_t event_trigger_data; /**< Set by the kernel. */
	uint32_t event_type;
	uint32_t auto_reset;
	uint32_t node_id;
	uint32_t event_id;	   /**< Set by the kernel. */
	uint32_t event_slot_index; /**< Set by the kernel. */
};

/** DESTROY_EVENT, SET_EVENT and RESET_EVENT share one layout. */
struct kfdabi_event_args {
	uint32_t event_id;
	uint32_t reserved;
};

struct kfdabi_memory_exception_data {
	uint32_t not_present;
	uint32_t read_only;
	uint32_t no_execute;
	uint32_t imprecise;
	uint64_t va;
	uint32_t gpu_id;
	uint32_t error_type;
};

#define KFDABI_MEM_ERROR_NONE	       UINT32_C(0)
#define KFDABI_MEM_ERROR_SRAM_ECC      UINT32_C(1)
#define KFDABI_MEM_ERROR_POISON	       UINT32_C(2)
#define KFDABI_MEM_ERROR_GPU_HANG      UINT32_C(3)

struct kfdabi_hw_exception_data {
	uint32_t reset_type;
	uint32_t reset_cause;
	uint32_t memory_lost;
	uint32_t gpu_id;
};

struct kfdabi_event_data {
	union {
		struct kfdabi_memory_exception_data memory;
		struct kfdabi_hw_exception_data hw;
		uint64_t last_event_age; /**< Of signal events, since interface 1.14. */
	} u;
	uint64_t ext;
	uint32_t event_id;
	uint32_t reserved;
};

struct kfdabi_wait_events_args {
	uint64_t events_ptr;
	uint32_t num_events;
	uint32_t wait_for_all;
	uint32_t timeout_ms;
	uint32_t wait_result; /**< Set by the kernel. */
};

/* ------------------------------------------------------------------ queues ------------------- */

#define KFDABI_QUEUE_TYPE_COMPUTE	    UINT32_C(0)
#define KFDABI_QUEUE_TYPE_SDMA		    UINT32_C(1)
#define KFDABI_QUEUE_TYPE_COMPUTE_AQL	    UINT32_C(2)
#define KFDABI_QUEUE_TYPE_SDMA_XGMI	    UINT32_C(3)
#define KFDABI_QUEUE_TYPE_SDMA_BY_ENGINE_ID UINT32_C(4) /**< Only when a queue is created. */
#define KFDABI_QUEUE_TYPE_UNKNOWN	    UINT32_C(0xffffffff)

#define KFDABI_MAX_QUEUES_PER_PROCESS 1024u

/** The start of a save area; there is one per XCC. */
struct kfdabi_save_area_header {
	/* Written by the kernel when the queue is suspended. */
	uint32_t control_stack_offset;
	uint32_t control_stack_size;
	uint32_t wave_state_offset; /**< End of the wave state, not its begin. */
	uint32_t wave_state_size;
	/* Written by user mode when the queue is created. */
	uint32_t debug_offset;
	uint32_t debug_size;
	uint64_t err_payload_addr;
	uint32_t err_event_id;
	uint32_t reserved;
};

/* ------------------------------------------------------------------ DBG_TRAP ----------------- */

#define KFDABI_DBG_ENABLE		    UINT32_C(0)
#define KFDABI_DBG_DISABLE		    UINT32_C(1)
#define KFDABI_DBG_SEND_RUNTIME_EVENT	    UINT32_C(2)
#define KFDABI_DBG_SET_EXCEPTIONS_ENABLED   UINT32_C(3)
#define KFDABI_DBG_SET_WAVE_LAUNCH_OVERRIDE UINT32_C(4)
#define KFDABI_DBG_SET_WAVE_LAUNCH_MODE	    UINT32_C(5)
#define KFDABI_DBG_SUSPEND_QUEUES	    UINT32_C(6)
#define KFDABI_DBG_RESUME_QUEUES	    UINT32_C(7)
#define KFDABI_DBG_SET_NODE_ADDRESS_WATCH   UINT32_C(8)
#define KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH UINT32_C(9)
#define KFDABI_DBG_SET_FLAGS		    UINT32_C(10)
#define KFDABI_DBG_QUERY_DEBUG_EVENT	    UINT32_C(11)
#define KFDABI_DBG_QUERY_EXCEPTION_INFO	    UINT32_C(12)
#define KFDABI_DBG_GET_QUEUE_SNAPSHOT	    UINT32_C(13)
#define KFDABI_DBG_GET_DEVICE_SNAPSHOT	    UINT32_C(14)
#define KFDABI_DBG_OP_COUNT		    15u

struct kfdabi_dbg_args {
	uint32_t pid;
	uint32_t op;
	union {
		struct {
			uint64_t exception_mask;
			uint64_t rinfo_ptr;
			uint32_t rinfo_size; /**< Read and set by the kernel. */
			uint32_t dbg_fd;
		} enable;
		struct {
			uint64_t exception_mask;
			uint32_t gpu_id;
			uint32_t queue_id;
		} send_runtime_event;
		struct {
			uint64_t exception_mask;
		} set_exceptions_enabled;
		struct {
			uint32_t override_mode;
			uint32_t enable_mask;	       /**< Read and set by the kernel. */
			uint32_t support_request_mask; /**< Read and set by the kernel. */
			uint32_t reserved;
		} launch_override;
		struct {
			uint32_t launch_mode;
			uint32_t reserved;
		} launch_mode;
		struct {
			uint64_t exception_mask;
			uint64_t queue_array_ptr;
			uint32_t num_queues;
			uint32_t grace_period;
		} suspend;
		struct {
			uint64_t queue_array_ptr;
			uint32_t num_queues;
			uint32_t reserved;
		} resume;
		struct {
			uint64_t address;
			uint32_t mode;
			uint32_t mask;
			uint32_t gpu_id;
			uint32_t id; /**< Set by the kernel. */
		} set_watch;
		struct {
			uint32_t gpu_id;
			uint32_t id;
		} clear_watch;
		struct {
			uint32_t flags; /**< Read and set by the kernel. */
			uint32_t reserved;
		} set_flags;
		struct {
			uint64_t exception_mask; /**< Read and set by the kernel. */
			uint32_t gpu_id;	 /**< Set by the kernel. */
			uint32_t queue_id;	 /**< Set by the kernel. */
		} query_event;
		struct {
			uint64_t info_ptr;
			uint32_t info_size; /**< Read and set by the kernel. */
			uint32_t source_id;
			uint32_t exception_code;
			uint32_t clear_exception;
		} query_info;
		struct {
			uint64_t exception_mask;
			uint64_t snapshot_buf_ptr;
			uint32_t num_queues; /**< Read and set by the kernel. */
			uint32_t entry_size; /**< Read and set by the kernel. */
		} queue_snapshot;
		struct {
			uint64_t exception_mask;
			uint64_t snapshot_buf_ptr;
			uint32_t num_devices; /**< Read and set by the kernel. */
			uint32_t entry_size;  /**< Read and set by the kernel. */
		} device_snapshot;
	};
};

struct kfdabi_runtime_info {
	uint64_t r_debug;
	uint32_t runtime_state;
	uint32_t ttmp_setup;
};

struct kfdabi_queue_entry {
	uint64_t exception_status;
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t ctx_save_restore_address;
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t ring_size;
	uint32_t queue_type;
	uint32_t ctx_save_restore_area_size; /**< Per XCC. */
	uint32_t reserved;
};

/** The entry has 128 bytes from Linux 7.0 on; before, it ends in front of capability2. */
struct kfdabi_device_entry {
	uint64_t exception_status;
	uint64_t lds_base;
	uint64_t lds_limit;
	uint64_t scratch_base;
	uint64_t scratch_limit;
	uint64_t gpuvm_base;
	uint64_t gpuvm_limit;
	uint32_t gpu_id;
	uint32_t location_id;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t revision_id;
	uint32_t subsystem_vendor_id;
	uint32_t subsystem_device_id;
	uint32_t fw_version;
	uint32_t gfx_target_version;
	uint32_t simd_count;
	uint32_t max_waves_per_simd;
	uint32_t array_count;
	uint32_t simd_arrays_per_engine;
	uint32_t num_xcc;
	uint32_t capability;
	uint32_t debug_prop;
	uint32_t capability2;
	uint32_t reserved;
};
#define KFDABI_DEVICE_ENTRY_SIZE_V1 120u /**< Linux 6.5 to 6.19, and some with interface 1.22. */

#define KFDABI_RUNTIME_STATE_DISABLED	   UINT32_C(0)
#define KFDABI_RUNTIME_STATE_ENABLED	   UINT32_C(1)
#define KFDABI_RUNTIME_STATE_ENABLED_BUSY  UINT32_C(2)
#define KFDABI_RUNTIME_STATE_ENABLED_ERROR UINT32_C(3)

#define KFDABI_OVERRIDE_OR	UINT32_C(0)
#define KFDABI_OVERRIDE_REPLACE UINT32_C(1)

#define KFDABI_TRAP_FP_INVALID	       UINT32_C(0x1)
#define KFDABI_TRAP_FP_INPUT_DENORMAL  UINT32_C(0x2)
#define KFDABI_TRAP_FP_DIVIDE_BY_ZERO  UINT32_C(0x4)
#define KFDABI_TRAP_FP_OVERFLOW	       UINT32_C(0x8)
#define KFDABI_TRAP_FP_UNDERFLOW       UINT32_C(0x10)
#define KFDABI_TRAP_FP_INEXACT	       UINT32_C(0x20)
#define KFDABI_TRAP_INT_DIVIDE_BY_ZERO UINT32_C(0x40)
#define KFDABI_TRAP_ADDRESS_WATCH      UINT32_C(0x80)
#define KFDABI_TRAP_MEMORY_VIOLATION   UINT32_C(0x100)
#define KFDABI_TRAP_WAVE_START	       UINT32_C(0x40000000)
#define KFDABI_TRAP_WAVE_END	       UINT32_C(0x80000000)

#define KFDABI_LAUNCH_MODE_NORMAL UINT32_C(0)
#define KFDABI_LAUNCH_MODE_HALT	  UINT32_C(1)
#define KFDABI_LAUNCH_MODE_DEBUG  UINT32_C(3)

#define KFDABI_WATCH_MODE_READ	  UINT32_C(0)
#define KFDABI_WATCH_MODE_NONREAD UINT32_C(1)
#define KFDABI_WATCH_MODE_ATOMIC  UINT32_C(2)
#define KFDABI_WATCH_MODE_ALL	  UINT32_C(3)
#define KFDABI_WATCH_IDS	  4u
#define KFDABI_WATCH_ID_NONE	  UINT32_C(0xffffffff)

#define KFDABI_FLAG_SINGLE_MEM_OP	  UINT32_C(0x1)
#define KFDABI_FLAG_SINGLE_ALU_OP	  UINT32_C(0x2)
#define KFDABI_FLAG_LDS_OUT_OF_ADDR_RANGE UINT32_C(0x4) /**< Since interface 1.21. */

#define KFDABI_QUEUE_ERROR   UINT32_C(0x40000000)
#define KFDABI_QUEUE_INVALID UINT32_C(0x80000000)

/* Exception codes; the mask of code N is 1 << (N - 1). */
#define KFDABI_EC_NONE					   0u
#define KFDABI_EC_QUEUE_WAVE_ABORT			   1u
#define KFDABI_EC_QUEUE_WAVE_TRAP			   2u
#define KFDABI_EC_QUEUE_WAVE_MATH_ERROR			   3u
#define KFDABI_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION	   4u
#define KFDABI_EC_QUEUE_WAVE_MEMORY_VIOLATION		   5u
#define KFDABI_EC_QUEUE_WAVE_APERTURE_VIOLATION		   6u
#define KFDABI_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID	   16u
#define KFDABI_EC_QUEUE_PACKET_DISPATCH_GROUP_SIZE_INVALID 17u
#define KFDABI_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID	   18u
#define KFDABI_EC_QUEUE_PACKET_RESERVED			   19u
#define KFDABI_EC_QUEUE_PACKET_UNSUPPORTED		   20u
#define KFDABI_EC_QUEUE_PACKET_DISPATCH_WORKGROUP_INVALID  21u
#define KFDABI_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID   22u
#define KFDABI_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED	   23u
#define KFDABI_EC_QUEUE_PREEMPTION_ERROR		   30u
#define KFDABI_EC_QUEUE_NEW				   31u
#define KFDABI_EC_DEVICE_QUEUE_DELETE			   32u
#define KFDABI_EC_DEVICE_MEMORY_VIOLATION		   33u
#define KFDABI_EC_DEVICE_RAS_ERROR			   34u
#define KFDABI_EC_DEVICE_FATAL_HALT			   35u
#define KFDABI_EC_DEVICE_NEW				   36u
#define KFDABI_EC_PROCESS_RUNTIME			   48u
#define KFDABI_EC_PROCESS_DEVICE_REMOVE			   49u
#define KFDABI_EC_MAX					   50u

#define KFDABI_EC_MASK(code)	(UINT64_C(1) << ((code) - 1u))
#define KFDABI_EC_MASK_QUEUE	UINT64_C(0x607f803f)
#define KFDABI_EC_MASK_DEVICE	UINT64_C(0xf80000000)
#define KFDABI_EC_MASK_PROCESS	UINT64_C(0x1800000000000)
#define KFDABI_EC_MASK_PACKET	UINT64_C(0x7f8000)

/* ------------------------------------------------------------------ full command words ------- */

#define KFDABI_IOC_GET_VERSION                                                                     \
	KFDABI_IOC(KFDABI_DIR_R, KFDABI_NR_GET_VERSION, sizeof(struct kfdabi_get_version_args))
#define KFDABI_IOC_CREATE_QUEUE                                                                    \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_CREATE_QUEUE, sizeof(struct kfdabi_create_queue_args))
#define KFDABI_IOC_CREATE_QUEUE_V1_16                                                              \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_CREATE_QUEUE, KFDABI_CREATE_QUEUE_SIZE_V1_16)
#define KFDABI_IOC_DESTROY_QUEUE                                                                   \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_DESTROY_QUEUE, sizeof(struct kfdabi_destroy_queue_args))
#define KFDABI_IOC_SET_MEMORY_POLICY                                                               \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_SET_MEMORY_POLICY,                                      \
		   sizeof(struct kfdabi_set_memory_policy_args))
#define KFDABI_IOC_GET_CLOCK_COUNTERS                                                              \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_GET_CLOCK_COUNTERS,                                    \
		   sizeof(struct kfdabi_get_clock_counters_args))
#define KFDABI_IOC_GET_PROCESS_APERTURES                                                           \
	KFDABI_IOC(KFDABI_DIR_R, KFDABI_NR_GET_PROCESS_APERTURES,                                  \
		   sizeof(struct kfdabi_get_process_apertures_args))
#define KFDABI_IOC_UPDATE_QUEUE                                                                    \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_UPDATE_QUEUE, sizeof(struct kfdabi_update_queue_args))
#define KFDABI_IOC_CREATE_EVENT                                                                    \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_CREATE_EVENT, sizeof(struct kfdabi_create_event_args))
#define KFDABI_IOC_DESTROY_EVENT                                                                   \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_DESTROY_EVENT, sizeof(struct kfdabi_event_args))
#define KFDABI_IOC_SET_EVENT                                                                       \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_SET_EVENT, sizeof(struct kfdabi_event_args))
#define KFDABI_IOC_RESET_EVENT                                                                     \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_RESET_EVENT, sizeof(struct kfdabi_event_args))
#define KFDABI_IOC_WAIT_EVENTS                                                                     \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_WAIT_EVENTS, sizeof(struct kfdabi_wait_events_args))
#define KFDABI_IOC_DBG_REGISTER                                                                    \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_DBG_REGISTER, sizeof(struct kfdabi_dbg_register_args))
#define KFDABI_IOC_DBG_UNREGISTER                                                                  \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_DBG_UNREGISTER, sizeof(struct kfdabi_dbg_register_args))
#define KFDABI_IOC_DBG_ADDRESS_WATCH                                                               \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_DBG_ADDRESS_WATCH, sizeof(struct kfdabi_dbg_buffer_args))
#define KFDABI_IOC_DBG_WAVE_CONTROL                                                                \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_DBG_WAVE_CONTROL, sizeof(struct kfdabi_dbg_buffer_args))
#define KFDABI_IOC_SET_SCRATCH_BACKING_VA                                                          \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_SET_SCRATCH_BACKING_VA,                                \
		   sizeof(struct kfdabi_set_scratch_args))
#define KFDABI_IOC_GET_TILE_CONFIG                                                                 \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_GET_TILE_CONFIG,                                       \
		   sizeof(struct kfdabi_get_tile_config_args))
#define KFDABI_IOC_SET_TRAP_HANDLER                                                                \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_SET_TRAP_HANDLER,                                       \
		   sizeof(struct kfdabi_set_trap_handler_args))
#define KFDABI_IOC_GET_PROCESS_APERTURES_NEW                                                       \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_GET_PROCESS_APERTURES_NEW,                             \
		   sizeof(struct kfdabi_get_process_apertures_new_args))
#define KFDABI_IOC_ACQUIRE_VM                                                                      \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_ACQUIRE_VM, sizeof(struct kfdabi_acquire_vm_args))
#define KFDABI_IOC_ALLOC_MEMORY_OF_GPU                                                             \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_ALLOC_MEMORY_OF_GPU,                                   \
		   sizeof(struct kfdabi_alloc_memory_args))
#define KFDABI_IOC_FREE_MEMORY_OF_GPU                                                              \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_FREE_MEMORY_OF_GPU,                                     \
		   sizeof(struct kfdabi_free_memory_args))
#define KFDABI_IOC_MAP_MEMORY_TO_GPU                                                               \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_MAP_MEMORY_TO_GPU,                                     \
		   sizeof(struct kfdabi_map_memory_args))
#define KFDABI_IOC_UNMAP_MEMORY_FROM_GPU                                                           \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_UNMAP_MEMORY_FROM_GPU,                                 \
		   sizeof(struct kfdabi_map_memory_args))
#define KFDABI_IOC_SET_CU_MASK                                                                     \
	KFDABI_IOC(KFDABI_DIR_W, KFDABI_NR_SET_CU_MASK, sizeof(struct kfdabi_set_cu_mask_args))
#define KFDABI_IOC_GET_QUEUE_WAVE_STATE                                                            \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_GET_QUEUE_WAVE_STATE,                                  \
		   sizeof(struct kfdabi_get_queue_wave_state_args))
#define KFDABI_IOC_SMI_EVENTS                                                                      \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_SMI_EVENTS, sizeof(struct kfdabi_smi_events_args))
#define KFDABI_IOC_SVM                                                                             \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_SVM, sizeof(struct kfdabi_svm_args))
#define KFDABI_IOC_SET_XNACK_MODE                                                                  \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_SET_XNACK_MODE,                                        \
		   sizeof(struct kfdabi_set_xnack_mode_args))
#define KFDABI_IOC_CRIU_OP                                                                         \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_CRIU_OP, sizeof(struct kfdabi_criu_args))
#define KFDABI_IOC_AVAILABLE_MEMORY                                                                \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_AVAILABLE_MEMORY,                                      \
		   sizeof(struct kfdabi_available_memory_args))
#define KFDABI_IOC_RUNTIME_ENABLE                                                                  \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_RUNTIME_ENABLE,                                        \
		   sizeof(struct kfdabi_runtime_enable_args))
#define KFDABI_IOC_DBG_TRAP                                                                        \
	KFDABI_IOC(KFDABI_DIR_RW, KFDABI_NR_DBG_TRAP, sizeof(struct kfdabi_dbg_args))
#define KFDABI_IOC_CREATE_PROCESS KFDABI_IOC(KFDABI_DIR_NONE, KFDABI_NR_CREATE_PROCESS, 0)

/* ------------------------------------------------------------------ compile-time proof ------- */

#define KFDABI_WORD_IS(name, value)                                                                \
	_Static_assert(KFDABI_IOC_##name == UINT32_C(value), "command word " #name)
#define KFDABI_SIZE_IS(type, size) _Static_assert(sizeof(struct kfdabi_##type) == (size), #type)
#define KFDABI_AT(type, member, offset)                                                            \
	_Static_assert(offsetof(struct kfdabi_##type, member) == (offset), #type "." #member)

KFDABI_WORD_IS(GET_VERSION, 0x80084b01);
KFDABI_WORD_IS(CREATE_QUEUE, 0xc0604b02);
KFDABI_WORD_IS(CREATE_QUEUE_V1_16, 0xc0584b02);
KFDABI_WORD_IS(DESTROY_QUEUE, 0xc0084b03);
KFDABI_WORD_IS(SET_MEMORY_POLICY, 0x40204b04);
KFDABI_WORD_IS(GET_CLOCK_COUNTERS, 0xc0284b05);
KFDABI_WORD_IS(GET_PROCESS_APERTURES, 0x81904b06);
KFDABI_WORD_IS(UPDATE_QUEUE, 0x40184b07);
KFDABI_WORD_IS(CREATE_EVENT, 0xc0204b08);
KFDABI_WORD_IS(DESTROY_EVENT, 0x40084b09);
KFDABI_WORD_IS(SET_EVENT, 0x40084b0a);
KFDABI_WORD_IS(RESET_EVENT, 0x40084b0b);
KFDABI_WORD_IS(WAIT_EVENTS, 0xc0184b0c);
KFDABI_WORD_IS(DBG_REGISTER, 0x40084b0d);
KFDABI_WORD_IS(DBG_UNREGISTER, 0x40084b0e);
KFDABI_WORD_IS(DBG_ADDRESS_WATCH, 0x40104b0f);
KFDABI_WORD_IS(DBG_WAVE_CONTROL, 0x40104b10);
KFDABI_WORD_IS(SET_SCRATCH_BACKING_VA, 0xc0104b11);
KFDABI_WORD_IS(GET_TILE_CONFIG, 0xc0284b12);
KFDABI_WORD_IS(SET_TRAP_HANDLER, 0x40184b13);
KFDABI_WORD_IS(GET_PROCESS_APERTURES_NEW, 0xc0104b14);
KFDABI_WORD_IS(ACQUIRE_VM, 0x40084b15);
KFDABI_WORD_IS(ALLOC_MEMORY_OF_GPU, 0xc0284b16);
KFDABI_WORD_IS(FREE_MEMORY_OF_GPU, 0x40084b17);
KFDABI_WORD_IS(MAP_MEMORY_TO_GPU, 0xc0184b18);
KFDABI_WORD_IS(UNMAP_MEMORY_FROM_GPU, 0xc0184b19);
KFDABI_WORD_IS(SET_CU_MASK, 0x40104b1a);
KFDABI_WORD_IS(GET_QUEUE_WAVE_STATE, 0xc0184b1b);
KFDABI_WORD_IS(SMI_EVENTS, 0xc0084b1f);
KFDABI_WORD_IS(SVM, 0xc0184b20);
KFDABI_WORD_IS(SET_XNACK_MODE, 0xc0044b21);
KFDABI_WORD_IS(CRIU_OP, 0xc0384b22);
KFDABI_WORD_IS(AVAILABLE_MEMORY, 0xc0104b23);
KFDABI_WORD_IS(RUNTIME_ENABLE, 0xc0104b25);
KFDABI_WORD_IS(DBG_TRAP, 0xc0204b26);
KFDABI_WORD_IS(CREATE_PROCESS, 0x00004b27);

KFDABI_SIZE_IS(save_area_header, 40);
KFDABI_SIZE_IS(memory_exception_data, 32);
KFDABI_SIZE_IS(runtime_info, 16);
KFDABI_SIZE_IS(queue_entry, 64);
KFDABI_SIZE_IS(device_entry, 128);
KFDABI_SIZE_IS(dbg_args, 32);
KFDABI_SIZE_IS(process_apertures, 56);
KFDABI_SIZE_IS(event_data, 48);

KFDABI_AT(create_queue_args, doorbell_offset, 24);
KFDABI_AT(create_queue_args, queue_id, 52);
KFDABI_AT(create_queue_args, ctx_save_restore_address, 72);
KFDABI_AT(create_queue_args, sdma_engine_id, 88);

KFDABI_AT(destroy_queue_args, queue_id, 0);

KFDABI_AT(update_queue_args, queue_id, 8);
KFDABI_AT(update_queue_args, queue_priority, 20);

KFDABI_AT(get_clock_counters_args, system_clock_freq, 24);
KFDABI_AT(get_clock_counters_args, gpu_id, 32);

KFDABI_AT(get_process_apertures_new_args, num_of_nodes, 8);

KFDABI_AT(alloc_memory_args, handle, 16);
KFDABI_AT(alloc_memory_args, gpu_id, 32);
KFDABI_AT(alloc_memory_args, flags, 36);

KFDABI_AT(map_memory_args, n_devices, 16);
KFDABI_AT(map_memory_args, n_success, 20);

KFDABI_AT(create_event_args, event_type, 12);
KFDABI_AT(create_event_args, event_id, 24);

KFDABI_AT(event_data, ext, 32);
KFDABI_AT(event_data, event_id, 40);

KFDABI_AT(wait_events_args, num_events, 8);
KFDABI_AT(wait_events_args, timeout_ms, 16);
KFDABI_AT(wait_events_args, wait_result, 20);

KFDABI_AT(set_trap_handler_args, tma_addr, 8);
KFDABI_AT(set_trap_handler_args, gpu_id, 16);

KFDABI_AT(runtime_enable_args, mode_mask, 8);
KFDABI_AT(runtime_enable_args, capabilities_mask, 12);

KFDABI_AT(criu_args, priv_data_size, 24);
KFDABI_AT(criu_args, op, 48);

KFDABI_AT(save_area_header, control_stack_offset, 0);
KFDABI_AT(save_area_header, control_stack_size, 4);
KFDABI_AT(save_area_header, wave_state_offset, 8);
KFDABI_AT(save_area_header, wave_state_size, 12);
KFDABI_AT(save_area_header, debug_offset, 16);
KFDABI_AT(save_area_header, debug_size, 20);
KFDABI_AT(save_area_header, err_payload_addr, 24);
KFDABI_AT(save_area_header, err_event_id, 32);

KFDABI_AT(memory_exception_data, not_present, 0);
KFDABI_AT(memory_exception_data, read_only, 4);
KFDABI_AT(memory_exception_data, no_execute, 8);
KFDABI_AT(memory_exception_data, imprecise, 12);
KFDABI_AT(memory_exception_data, va, 16);
KFDABI_AT(memory_exception_data, gpu_id, 24);
KFDABI_AT(memory_exception_data, error_type, 28);

KFDABI_AT(runtime_info, r_debug, 0);
KFDABI_AT(runtime_info, runtime_state, 8);
KFDABI_AT(runtime_info, ttmp_setup, 12);

KFDABI_AT(queue_entry, exception_status, 0);
KFDABI_AT(queue_entry, ring_base_address, 8);
KFDABI_AT(queue_entry, write_pointer_address, 16);
KFDABI_AT(queue_entry, read_pointer_address, 24);
KFDABI_AT(queue_entry, ctx_save_restore_address, 32);
KFDABI_AT(queue_entry, queue_id, 40);
KFDABI_AT(queue_entry, gpu_id, 44);
KFDABI_AT(queue_entry, ring_size, 48);
KFDABI_AT(queue_entry, queue_type, 52);
KFDABI_AT(queue_entry, ctx_save_restore_area_size, 56);

KFDABI_AT(device_entry, exception_status, 0);
KFDABI_AT(device_entry, lds_base, 8);
KFDABI_AT(device_entry, lds_limit, 16);
KFDABI_AT(device_entry, scratch_base, 24);
KFDABI_AT(device_entry, scratch_limit, 32);
KFDABI_AT(device_entry, gpuvm_base, 40);
KFDABI_AT(device_entry, gpuvm_limit, 48);
KFDABI_AT(device_entry, gpu_id, 56);
KFDABI_AT(device_entry, location_id, 60);
KFDABI_AT(device_entry, vendor_id, 64);
KFDABI_AT(device_entry, device_id, 68);
KFDABI_AT(device_entry, revision_id, 72);
KFDABI_AT(device_entry, subsystem_vendor_id, 76);
KFDABI_AT(device_entry, subsystem_device_id, 80);
KFDABI_AT(device_entry, fw_version, 84);
KFDABI_AT(device_entry, gfx_target_version, 88);
KFDABI_AT(device_entry, simd_count, 92);
KFDABI_AT(device_entry, max_waves_per_simd, 96);
KFDABI_AT(device_entry, array_count, 100);
KFDABI_AT(device_entry, simd_arrays_per_engine, 104);
KFDABI_AT(device_entry, num_xcc, 108);
KFDABI_AT(device_entry, capability, 112);
KFDABI_AT(device_entry, debug_prop, 116);
KFDABI_AT(device_entry, capability2, 120);

KFDABI_AT(dbg_args, pid, 0);
KFDABI_AT(dbg_args, op, 4);
KFDABI_AT(dbg_args, enable.exception_mask, 8);
KFDABI_AT(dbg_args, enable.rinfo_ptr, 16);
KFDABI_AT(dbg_args, enable.rinfo_size, 24);
KFDABI_AT(dbg_args, enable.dbg_fd, 28);
KFDABI_AT(dbg_args, send_runtime_event.exception_mask, 8);
KFDABI_AT(dbg_args, send_runtime_event.gpu_id, 16);
KFDABI_AT(dbg_args, send_runtime_event.queue_id, 20);
KFDABI_AT(dbg_args, set_exceptions_enabled.exception_mask, 8);
KFDABI_AT(dbg_args, launch_override.override_mode, 8);
KFDABI_AT(dbg_args, launch_override.enable_mask, 12);
KFDABI_AT(dbg_args, launch_override.support_request_mask, 16);
KFDABI_AT(dbg_args, launch_mode.launch_mode, 8);
KFDABI_AT(dbg_args, suspend.exception_mask, 8);
KFDABI_AT(dbg_args, suspend.queue_array_ptr, 16);
KFDABI_AT(dbg_args, suspend.num_queues, 24);
KFDABI_AT(dbg_args, suspend.grace_period, 28);
KFDABI_AT(dbg_args, resume.queue_array_ptr, 8);
KFDABI_AT(dbg_args, resume.num_queues, 16);
KFDABI_AT(dbg_args, set_watch.address, 8);
KFDABI_AT(dbg_args, set_watch.mode, 16);
KFDABI_AT(dbg_args, set_watch.mask, 20);
KFDABI_AT(dbg_args, set_watch.gpu_id, 24);
KFDABI_AT(dbg_args, set_watch.id, 28);
KFDABI_AT(dbg_args, clear_watch.gpu_id, 8);
KFDABI_AT(dbg_args, clear_watch.id, 12);
KFDABI_AT(dbg_args, set_flags.flags, 8);
KFDABI_AT(dbg_args, query_event.exception_mask, 8);
KFDABI_AT(dbg_args, query_event.gpu_id, 16);
KFDABI_AT(dbg_args, query_event.queue_id, 20);
KFDABI_AT(dbg_args, query_info.info_ptr, 8);
KFDABI_AT(dbg_args, query_info.info_size, 16);
KFDABI_AT(dbg_args, query_info.source_id, 20);
KFDABI_AT(dbg_args, query_info.exception_code, 24);
KFDABI_AT(dbg_args, query_info.clear_exception, 28);
KFDABI_AT(dbg_args, queue_snapshot.exception_mask, 8);
KFDABI_AT(dbg_args, queue_snapshot.snapshot_buf_ptr, 16);
KFDABI_AT(dbg_args, queue_snapshot.num_queues, 24);
KFDABI_AT(dbg_args, queue_snapshot.entry_size, 28);
KFDABI_AT(dbg_args, device_snapshot.exception_mask, 8);
KFDABI_AT(dbg_args, device_snapshot.snapshot_buf_ptr, 16);
KFDABI_AT(dbg_args, device_snapshot.num_devices, 24);
KFDABI_AT(dbg_args, device_snapshot.entry_size, 28);

#undef KFDABI_WORD_IS
#undef KFDABI_SIZE_IS
#undef KFDABI_AT

#endif /* KFDTRAP_KFD_ABI_H */
