/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_H
#define CUDBGSHIM_H

/**
 * @file cudbgshim.h
 * NVIDIA's CUDA debugger API: one C function per call, over a library that is found at run time.
 *
 * The API has no handle of its own, so one process holds one session, on one target, for its whole
 * life; all calls come from one thread.  Which slot of the vendor's table serves a call, and which
 * version of a struct it fills, is chosen here from what the driver says it has; callers see one
 * form of everything.
 *
 * No policy, no logging, no retry.  Functions return 0, a positive condition that their comment
 * names, or -errno; the vendor's own status stays beside it in cudbgshim_last().  ret_* parameters
 * are untouched on failure; plain buffers are zeroed before the driver sees them.  The errno for
 * each vendor result:
 *
 *	-ENOSYS      this driver has no such call (nothing was called)
 *	-ESHUTDOWN   an earlier failure ended the session (nothing was called)
 *	-EPIPE       COMMUNICATION_FAILURE: the engine or the target is gone; ends the session
 *	-EAGAIN      UNINITIALIZED, ATTACH_NOT_POSSIBLE: not now
 *	-EBUSY       RUNNING_DEVICE: suspend it first; also SUSPENDED_DEVICE,
 *	             WARP_RESUME_NOT_POSSIBLE, BREAKPOINT_STATE_CONFLICT where it is no condition
 *	-ENXIO       INVALID_DEVICE, _SM, _WARP, _LANE, _COORDINATES
 *	-ENOENT      INVALID_GRID, _CONTEXT, _MODULE, UNKNOWN_FUNCTION
 *	-EFAULT      an address or a memory segment that cannot be accessed
 *	-ENOTUNIQ    AMBIGUOUS_MEMORY_ADDRESS
 *	-EINVAL      INVALID_ARGS, _ATTRIBUTE, _WARP_MASK, _ENVVAR_ARGS
 *	-ENODATA     MISSING_DATA, ZERO_CALL_DEPTH, INVALID_CALL_LEVEL, LANE_NOT_IN_SYSCALL,
 *	             MEMCHECK_NOT_ENABLED
 *	-ENOBUFS     BUFFER_TOO_SMALL
 *	-EOPNOTSUPP  NOT_SUPPORTED
 *	-ENODEV      NO_DEVICE_AVAILABLE
 *	-EACCES      SOME_, ALL_DEVICES_WATCHDOGGED
 *	-EPROTONOSUPPORT  INCOMPATIBLE_API, INCOMPATIBLE_DISPLAY_DRIVER
 *	-ENOMEM      OS_RESOURCES, FORK_FAILED, MEMORY_MAPPING_FAILED, _UNMAPPING_FAILED
 *	-EDEADLK     RECURSIVE_API_CALL
 *	-EIO         INTERNAL, INITIALIZATION_FAILURE, ERROR_UNKNOWN, and any other number
 *	-EPROTO      the driver's answer contradicts itself or the limits below
 *
 * "0 or -errno" below means: any of these.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudbgshim_names.h"

#define CUDBGSHIM_MAX_DEVICES 64u
#define CUDBGSHIM_MAX_SMS     256u
#define CUDBGSHIM_MAX_WARPS   64u
#define CUDBGSHIM_MAX_LANES   32u
/** Words of a mask with one bit per SM. */
#define CUDBGSHIM_SM_WORDS (CUDBGSHIM_MAX_SMS / 64u)
/** A host thread that the driver does not name. */
#define CUDBGSHIM_NO_TID UINT32_C(0xffffffff)

struct cudbgshim;

/* ------------------------------------------------------------------ session ------------------ */

/** How this library reaches the dynamic loader and the clock; tests pass their own. */
struct cudbgshim_sys {
	void *(*open)(const char *path); /**< dlopen(); never closed again. */
	void *(*symbol)(void *library, const char *name);
	const char *(*error)(void); /**< dlerror() */
	uint64_t (*now_ns)(void);
};

/** One call of the vendor's table, as seen by cudbgshim_last() and by a trace. */
struct cudbgshim_call {
	uint32_t slot;
	const char *name; /**< The vendor's, static. */
	bool called;      /**< False when the call was refused here. */
	uint32_t result;  /**< CUDBGResult; only when called. */
	int error;        /**< 0 or -errno as in the table above. */
	uint64_t took_ns;
};

/** Every call is shown twice: before it is made (it may hang) and afterwards. */
struct cudbgshim_trace {
	void (*enter)(void *user, uint32_t slot, const char *name); /**< May be NULL. */
	void (*leave)(void *user, const struct cudbgshim_call *call);
	void *user;
};

struct cudbgshim_options {
	const char *path;   /**< Library; NULL for `libcuda.so.1`. */
	const char *engine; /**< Engine for our side instead of libcudadebugger; NULL: none. */
	struct cudbgshim_trace trace;    /**< No trace when leave is NULL. */
	const struct cudbgshim_sys *sys; /**< NULL for the real ones. */
};

/** Where cudbgshim_create() failed. */
enum cudbgshim_step {
	CUDBGSHIM_STEP_NONE,
	CUDBGSHIM_STEP_LIBRARY, /**< The library cannot be opened; text is the loader's. */
	CUDBGSHIM_STEP_SYMBOLS, /**< It is no CUDA driver: text names what it lacks. */
	CUDBGSHIM_STEP_VERSION, /**< It does not tell its version; 10: its engine is missing. */
	CUDBGSHIM_STEP_RELEASE, /**< The version is older than anything we know. */
	CUDBGSHIM_STEP_TABLE,   /**< It does not hand out its table. */
};

struct cudbgshim_failure {
	enum cudbgshim_step step;
	uint32_t result; /**< CUDBGResult of the last two steps that call the driver. */
	uint32_t major, minor, revision;
	char text[256]; /**< Empty where the result says all. */
};

/**
 * Load the driver, ask for its version, fetch its table.
 *
 * The version is asked first and the table is asked for with exactly that version: drivers hand out
 * the same table whatever they are asked for, and it ends where their own release ends.  The
 * library stays loaded for ever; a process gets one only.  Nothing in the target is touched and no
 * device is opened yet.
 *
 * @param ret_failure  Filled on failure; may be NULL.
 * @return 0, -EALREADY (a library was loaded before in this process), -ENOENT (library), -ENOEXEC
 *         (symbols), -EPROTONOSUPPORT (release), -ENAMETOOLONG (engine), -ENOMEM, or the driver's
 *         -errno (version, table).
 */
int cudbgshim_create(const struct cudbgshim_options *options, struct cudbgshim **ret_shim,
		     struct cudbgshim_failure *ret_failure);

/**
 * Forget the session; NULL is allowed.  Calls nothing: see cudbgshim_finalize().  Notifications
 * that come later are dropped.
 */
void cudbgshim_destroy(struct cudbgshim *s);

struct cudbgshim_version {
	uint32_t major, minor, revision;
	uint32_t n_slots; /**< Calls that the driver has and we know. */
};

struct cudbgshim_version cudbgshim_get_version(const struct cudbgshim *s);

/** The call that happened last. */
const struct cudbgshim_call *cudbgshim_last(const struct cudbgshim *s);

/** No further call will be made: the engine is gone or unusable. */
bool cudbgshim_is_over(const struct cudbgshim *s);

/** Does this driver have the call? */
bool cudbgshim_has_slot(const struct cudbgshim *s, uint32_t slot);

/**
 * Say in our own image of the driver who we are; before cudbgshim_initialize().
 * The same numbers have to stand in the target, and must be unique in its network namespace.
 * @param label  Non-zero; by convention our pid.
 * @return 0, -EINVAL (label 0), -ENOEXEC (the library lacks the variables).
 */
int cudbgshim_set_client(struct cudbgshim *s, uint32_t label, uint32_t session);

/** Positive conditions of the functions below. */
enum cudbgshim_condition {
	CUDBGSHIM_ALREADY = 1,          /**< It was in that state before. */
	CUDBGSHIM_SOME_WATCHDOGGED = 2, /**< Works, but some GPUs cannot be debugged. */
	CUDBGSHIM_NO_EVENT = 3,
	CUDBGSHIM_NONE = 4, /**< There is no such thing to report. */
};

/** @return 0, CUDBGSHIM_SOME_WATCHDOGGED, or -errno; -EAGAIN: try again later. */
int cudbgshim_initialize(struct cudbgshim *s);
int cudbgshim_finalize(struct cudbgshim *s);
/** @return 0, CUDBGSHIM_ALREADY, or -errno. */
int cudbgshim_suspend_device(struct cudbgshim *s, uint32_t dev);
int cudbgshim_resume_device(struct cudbgshim *s, uint32_t dev);
/**
 * Suspend every device; with the newest drivers in one call.  Devices are taken one after the other
 * otherwise, all of them even when one fails; the first failure is returned.
 * @return 0 or -errno.
 */
int cudbgshim_suspend_all(struct cudbgshim *s);
int cudbgshim_resume_all(struct cudbgshim *s);

/** Drop what the engine keeps from attaching. */
int cudbgshim_clear_attach_state(struct cudbgshim *s);
/** Let the classic engine's waiting stub become the engine. */
int cudbgshim_initialize_attach_stub(struct cudbgshim *s);
/** @param resume_flag  The target's cudbgResumeForAttachDetach word, unchanged. */
int cudbgshim_request_cleanup_on_detach(struct cudbgshim *s, uint32_t resume_flag);
/** Capability bits that the engine knows; works before cudbgshim_initialize(). */
int cudbgshim_get_capabilities(struct cudbgshim *s, uint32_t *ret_bits);
/** Text of the engine about the last failed call. @p size > 0; always terminated. */
int cudbgshim_get_error_text(struct cudbgshim *s, char *text, size_t size);
/** Write a CUDA core file; CUDBG_COREDUMP_* bits that the release lacks give -EINVAL. */
int cudbgshim_generate_coredump(struct cudbgshim *s, const char *path, uint32_t flags);
enum cudbgshim_launch_notify { CUDBGSHIM_LAUNCH_EVENT = 0, CUDBGSHIM_LAUNCH_DEFER = 1 };
int cudbgshim_set_launch_notification(struct cudbgshim *s, enum cudbgshim_launch_notify mode);

/* ------------------------------------------------------------------ events ------------------- */

struct cudbgshim_dim3 {
	uint32_t x, y, z;
};

/** CUDBGEvent.kind as the vendor numbers it. */
enum cudbgshim_event_kind {
	CUDBGSHIM_EVENT_INVALID,
	CUDBGSHIM_EVENT_ELF_IMAGE_LOADED,
	CUDBGSHIM_EVENT_KERNEL_READY,
	CUDBGSHIM_EVENT_KERNEL_FINISHED,
	CUDBGSHIM_EVENT_INTERNAL_ERROR,
	CUDBGSHIM_EVENT_CTX_PUSH,
	CUDBGSHIM_EVENT_CTX_POP,
	CUDBGSHIM_EVENT_CTX_CREATE,
	CUDBGSHIM_EVENT_CTX_DESTROY,
	CUDBGSHIM_EVENT_TIMEOUT,
	CUDBGSHIM_EVENT_ATTACH_COMPLETE,
	CUDBGSHIM_EVENT_DETACH_COMPLETE,
	CUDBGSHIM_EVENT_ELF_IMAGE_UNLOADED,
	CUDBGSHIM_EVENT_FUNCTIONS_LOADED,
	CUDBGSHIM_EVENT_ALL_DEVICES_SUSPENDED,
	CUDBGSHIM_EVENT_CUDA_LOGS_AVAILABLE,
	CUDBGSHIM_EVENT_CUDA_LOGS_THRESHOLD_REACHED,
	CUDBGSHIM_EVENT_SINGLE_STEP_COMPLETE,
	CUDBGSHIM_EVENT_CUDA_LOGS_RULESET_CHANGED,
	CUDBGSHIM_EVENT_COUNT
};

/** Fields that a kind does not have are 0, tid CUDBGSHIM_NO_TID. */
struct cudbgshim_event {
	uint32_t kind; /**< Also numbers beyond CUDBGSHIM_EVENT_COUNT. */
	uint32_t dev;  /**< < CUDBGSHIM_MAX_DEVICES. */
	uint32_t tid;
	uint64_t context, module;
	union {
		struct {
			uint64_t handle, size;
			uint32_t properties; /**< Bit 0: the driver's own image. */
		} image;
		struct {
			uint64_t grid, function, entry, parent;
			struct cudbgshim_dim3 grid_dim, block_dim;
			uint32_t type, origin;
		} kernel;
		uint32_t internal_error; /**< CUDBGResult. */
		uint32_t n_functions;    /**< As claimed; check before use. */
		struct {
			uint64_t broken_devices, faulted_devices;
			uint32_t sm; /**< Of a finished single step. */
			uint64_t warps_before, warps_after;
		} stop;
		uint32_t log_ruleset;
	};
};

/**
 * Decode the bytes of a CUDBGEvent.  Pure; any bytes are safe.
 * @return 0, -EINVAL (fewer than 92 bytes), -EPROTO (device number out of range).
 */
int cudbgshim_event_decode(const void *bytes, size_t size, struct cudbgshim_event *ret_event);

/**
 * Called on a thread of the engine; may only signal somebody.
 * @param tid  Host thread that waits for the acknowledgement, or CUDBGSHIM_NO_TID.
 */
typedef void (*cudbgshim_notify_fn)(void *user, uint32_t tid);

/**
 * NULL @p notify unregisters.  Allowed before cudbgshim_initialize().  A call that is under way on
 * the engine's thread may still use @p user: keep it until cudbgshim_finalize() has returned.
 */
int cudbgshim_set_notify(struct cudbgshim *s, cudbgshim_notify_fn notify, void *user);

enum cudbgshim_queue { CUDBGSHIM_QUEUE_SYNC = 0, CUDBGSHIM_QUEUE_ASYNC = 1 };

/**
 * Next event of a queue.  After an INTERNAL_ERROR event the session is over.
 * @return 0, CUDBGSHIM_NO_EVENT, or -errno; -EPROTO: an event came but makes no sense.
 */
int cudbgshim_get_next_event(struct cudbgshim *s, enum cudbgshim_queue queue,
			     struct cudbgshim_event *ret_event);
/** Let the host threads go on that wait since the synchronous events were read. */
int cudbgshim_acknowledge_sync_events(struct cudbgshim *s);

/* ------------------------------------------------------------------ devices ------------------ */

int cudbgshim_get_n_devices(struct cudbgshim *s, uint32_t *ret_n);

struct cudbgshim_device {
	char name[128];                   /**< Marketing name. */
	char chip[64];                    /**< As the driver calls it: `GH100`. */
	char sm_type[32];                 /**< `sm_90`. */
	uint32_t n_sms, n_warps, n_lanes; /**< Warps per SM, lanes per warp. */
	uint32_t n_registers, n_predicates, n_uniform_registers, n_uniform_predicates;
	uint32_t pci_bus, pci_device;
};

/**
 * Facts of a device.  Without SMs, warps, lanes and registers it is no use; everything else is 0 or
 * empty where the driver does not tell it.
 */
int cudbgshim_get_device(struct cudbgshim *s, uint32_t dev, struct cudbgshim_device *ret_device);

/** SMs with an exception, one bit each. */
int cudbgshim_read_exception_sms(struct cudbgshim *s, uint32_t dev, uint32_t n_sms,
				 uint64_t ret_mask[CUDBGSHIM_SM_WORDS]);
/** @return 0 or -errno; *ret_exception is a CUDBGException_t. */
int cudbgshim_read_sm_exception(struct cudbgshim *s, uint32_t dev, uint32_t sm,
				uint32_t *ret_exception, uint64_t *ret_error_pc,
				bool *ret_has_error_pc);

/* ------------------------------------------------------------------ grids -------------------- */

struct cudbgshim_grid {
	uint64_t id, context, module, function, entry;
	uint64_t parent; /**< 0 for none, and always since 13.4. */
	uint32_t dev;
	uint32_t tid; /**< Host thread that launched it, or CUDBGSHIM_NO_TID. */
	uint32_t type, origin;
	struct cudbgshim_dim3 grid_dim, block_dim;
	struct cudbgshim_dim3 cluster_dim, preferred_cluster_dim; /**< All 0: no clusters. */
};

int cudbgshim_get_grid(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
		       struct cudbgshim_grid *ret_grid);
int cudbgshim_get_grid_status(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
			      uint32_t *ret_status);
/** Host call stack of the launch; needs capability bit 5.  *ret_n is the whole depth. */
int cudbgshim_read_cpu_call_stack(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
				  uint64_t *addresses, uint32_t n, uint32_t *ret_n);

/* ------------------------------------------------------------------ warps and lanes ---------- */

/** A place on a GPU; functions that concern a whole warp ignore the lane. */
struct cudbgshim_place {
	uint32_t dev, sm, warp, lane;
};

#define CUDBGSHIM_WARP_ERROR_PC       (UINT32_C(1) << 0)
#define CUDBGSHIM_WARP_CLUSTER        (UINT32_C(1) << 1) /**< cluster_idx */
#define CUDBGSHIM_WARP_CLUSTER_DIM    (UINT32_C(1) << 2)
#define CUDBGSHIM_WARP_CLUSTER_TARGET (UINT32_C(1) << 3)
#define CUDBGSHIM_WARP_SYSCALL_LANES  (UINT32_C(1) << 4)
#define CUDBGSHIM_WARP_BREAKPOINT     (UINT32_C(1) << 5)

/** What belongs to a warp as a whole.  Fields whose bit in @c has is clear are 0. */
struct cudbgshim_warp {
	uint64_t grid_id;
	uint64_t error_pc;
	uint64_t breakpoint; /**< Handle of the breakpoint that stopped it (13.2). */
	struct cudbgshim_dim3 block;
	struct cudbgshim_dim3 base_thread; /**< Thread of lane 0, valid or not. */
	struct cudbgshim_dim3 cluster_idx, cluster_dim;
	struct cudbgshim_dim3 cluster_target; /**< Block at which a cluster exception points. */
	uint32_t valid_lanes, active_lanes, syscall_lanes;
	uint32_t has; /**< CUDBGSHIM_WARP_* */
};

/** Lane by lane; entries of lanes that are not valid are 0. */
struct cudbgshim_lanes {
	uint64_t pc[CUDBGSHIM_MAX_LANES];
	uint32_t exception[CUDBGSHIM_MAX_LANES];
};

int cudbgshim_read_valid_warps(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t *ret_mask);
int cudbgshim_read_broken_warps(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t *ret_mask);
/**
 * One warp and its lanes; with older drivers this takes more than one call.  Its breakpoint is
 * asked for with cudbgshim_get_hit_breakpoint().
 */
int cudbgshim_read_warp(struct cudbgshim *s, const struct cudbgshim_place *at,
			struct cudbgshim_warp *ret_warp, struct cudbgshim_lanes *ret_lanes);
/** Thread index of a lane from that of lane 0: carries through x, then y, then z. */
struct cudbgshim_dim3 cudbgshim_thread_of_lane(struct cudbgshim_dim3 base, uint32_t lane,
					       struct cudbgshim_dim3 block_dim);

int cudbgshim_read_valid_lanes(struct cudbgshim *s, const struct cudbgshim_place *at,
			       uint32_t *ret_mask);
int cudbgshim_read_active_lanes(struct cudbgshim *s, const struct cudbgshim_place *at,
				uint32_t *ret_mask);
int cudbgshim_read_grid_id(struct cudbgshim *s, const struct cudbgshim_place *at,
			   uint64_t *ret_grid_id);
int cudbgshim_read_block(struct cudbgshim *s, const struct cudbgshim_place *at,
			 struct cudbgshim_dim3 *ret_block);
int cudbgshim_read_thread(struct cudbgshim *s, const struct cudbgshim_place *at,
			  struct cudbgshim_dim3 *ret_thread);
int cudbgshim_get_grid_dim(struct cudbgshim *s, const struct cudbgshim_place *at,
			   struct cudbgshim_dim3 *ret_dim);
int cudbgshim_get_block_dim(struct cudbgshim *s, const struct cudbgshim_place *at,
			    struct cudbgshim_dim3 *ret_dim);
/** @param grid_id  Of that warp; older drivers ask by grid. @return -ENOSYS before 12.0. */
int cudbgshim_get_cluster_dim(struct cudbgshim *s, const struct cudbgshim_place *at,
			      uint64_t grid_id, struct cudbgshim_dim3 *ret_dim);
/** Virtual address that the lane executes. */
int cudbgshim_read_virtual_pc(struct cudbgshim *s, const struct cudbgshim_place *at,
			      uint64_t *ret_pc);
/** The same as offset from the start of the function. */
int cudbgshim_read_pc(struct cudbgshim *s, const struct cudbgshim_place *at, uint64_t *ret_pc);
int cudbgshim_read_lane_exception(struct cudbgshim *s, const struct cudbgshim_place *at,
				  uint32_t *ret_exception);
/** @return 0, CUDBGSHIM_NONE (no error address is known), or -errno. */
int cudbgshim_read_error_pc(struct cudbgshim *s, const struct cudbgshim_place *at,
			    uint64_t *ret_pc);
/** Text of an exception in the driver's words; always terminated. */
int cudbgshim_get_exception_text(struct cudbgshim *s, const struct cudbgshim_place *at, char *text,
				 size_t size);
/** @return 0, CUDBGSHIM_NONE (no breakpoint of ours stopped the warp), or -errno. */
int cudbgshim_get_hit_breakpoint(struct cudbgshim *s, const struct cudbgshim_place *at,
				 uint64_t *ret_handle);

struct cudbgshim_resources {
	uint32_t shared_size, n_registers; /**< Bytes per block; registers per lane. */
};
int cudbgshim_read_resources(struct cudbgshim *s, const struct cudbgshim_place *at,
			     struct cudbgshim_resources *ret_resources);

#define CUDBGSHIM_BARRIER_SCOPE_UNKNOWN UINT32_C(0xffffffff)
/** What a lane waits on: *ret_scope is a CUDBGBarrierScope; text always terminated. */
int cudbgshim_get_barrier(struct cudbgshim *s, const struct cudbgshim_place *at,
			  uint32_t *ret_scope, char *text, size_t size);

/* ------------------------------------------------------------------ registers ---------------- */

/**
 * @p n values from register @p first on.
 * @param ret_n  How many the driver gave: from 13.2 on it may be fewer.  The rest is 0.
 */
int cudbgshim_read_registers(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t first,
			     uint32_t n, uint32_t *values, uint32_t *ret_n);
int cudbgshim_read_uniform_registers(struct cudbgshim *s, const struct cudbgshim_place *at,
				     uint32_t first, uint32_t n, uint32_t *values);
/** One 32-bit word per predicate. */
int cudbgshim_read_predicates(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t n,
			      uint32_t *values);
int cudbgshim_read_uniform_predicates(struct cudbgshim *s, const struct cudbgshim_place *at,
				      uint32_t n, uint32_t *values);
/** Condition codes; chips since 13.1 have none. */
int cudbgshim_read_cc(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t *ret_value);

/* ------------------------------------------------------------------ call stack --------------- */

/**
 * Return addresses, innermost first.
 * @param n    Room in @p addresses.
 * @param ret_depth          Whole depth, may exceed @p n.
 * @param ret_syscall_depth  Innermost levels that are inside a device system call.
 */
int cudbgshim_read_call_stack(struct cudbgshim *s, const struct cudbgshim_place *at,
			      uint64_t *addresses, uint32_t n, uint32_t *ret_depth,
			      uint32_t *ret_syscall_depth);

/* ------------------------------------------------------------------ memory ------------------- */

enum cudbgshim_space {
	CUDBGSHIM_SPACE_GLOBAL,  /**< Device picked by the address. */
	CUDBGSHIM_SPACE_SHARED,  /**< Of the block of a warp. */
	CUDBGSHIM_SPACE_LOCAL,   /**< Of a lane. */
	CUDBGSHIM_SPACE_PARAM,   /**< Kernel parameters, by warp. */
	CUDBGSHIM_SPACE_GENERIC, /**< Any address as a lane sees it. */
	CUDBGSHIM_SPACE_CODE,    /**< Instructions, by device. */
	CUDBGSHIM_SPACE_PINNED,  /**< Host memory that CUDA pinned or mapped. */
	CUDBGSHIM_SPACE_COUNT
};

/** @param at  Those of its members that the space needs; may be NULL for GLOBAL and PINNED. */
int cudbgshim_read_memory(struct cudbgshim *s, enum cudbgshim_space space,
			  const struct cudbgshim_place *at, uint64_t address, void *buf,
			  uint32_t size);

/**
 * Where a constant bank lives; read it as global memory.
 * @param grid_id   Of the warp at @p at.
 * @param ret_size  0 where the driver does not tell (before 12.4).
 */
int cudbgshim_get_const_bank(struct cudbgshim *s, const struct cudbgshim_place *at,
			     uint64_t grid_id, uint32_t bank, uint64_t *ret_address,
			     uint32_t *ret_size);

struct cudbgshim_region {
	uint64_t start, size;
};
/** Managed memory from @p start on; *ret_n entries were filled. */
int cudbgshim_get_managed_regions(struct cudbgshim *s, uint64_t start,
				  struct cudbgshim_region *regions, uint32_t n, uint32_t *ret_n);
int cudbgshim_get_host_address(struct cudbgshim *s, uint32_t dev, uint64_t device_address,
			       uint64_t *ret_host_address);

/* ------------------------------------------------------------------ code --------------------- */

/** Copy the ELF image that an event announced. */
int cudbgshim_get_elf_image(struct cudbgshim *s, uint32_t dev, uint64_t handle, bool relocated,
			    void *buf, uint64_t size);

struct cudbgshim_function {
	uint64_t section, address; /**< Index of its ELF section; 0 while it is not loaded. */
};
/**
 * Lazily loaded functions of a module.
 * @param first  Index to start at; a driver before 12.3 can start at 0 only (-ENOSYS otherwise).
 */
int cudbgshim_get_loaded_functions(struct cudbgshim *s, uint32_t dev, uint64_t handle,
				   uint32_t first, struct cudbgshim_function *functions,
				   uint32_t n);
int cudbgshim_is_device_code(struct cudbgshim *s, uint64_t address, bool *ret_is_code);

enum cudbgshim_adjust {
	CUDBGSHIM_ADJUST_PREVIOUS,
	CUDBGSHIM_ADJUST_CURRENT,
	CUDBGSHIM_ADJUST_NEXT,
};
/** Instruction boundary near @p address. */
int cudbgshim_adjust_code_address(struct cudbgshim *s, uint32_t dev, uint64_t address,
				  enum cudbgshim_adjust adjust, uint64_t *ret_address);

/**
 * Breakpoint at a device address.
 * @param ret_handle  With it remove the breakpoint; 0 for drivers that know addresses only.
 */
int cudbgshim_set_breakpoint(struct cudbgshim *s, uint32_t dev, uint64_t address,
			     uint64_t *ret_handle);
int cudbgshim_unset_breakpoint(struct cudbgshim *s, uint32_t dev, uint64_t address,
			       uint64_t handle);

/* ------------------------------------------------------------------ state of a device -------- */

/**
 * All warps and lanes of one suspended device.
 *
 * Arrays are indexed by SM, by sm * n_warps + warp, and by (sm * n_warps + warp) * n_lanes + lane;
 * entries of what is not valid are 0.  132 SMs of 64 warps take less than 5 MiB.
 */
struct cudbgshim_state {
	uint32_t n_sms, n_warps, n_lanes;
	uint64_t exception_sms[CUDBGSHIM_SM_WORDS];
	uint64_t *valid_warps;  /**< [n_sms] */
	uint64_t *broken_warps; /**< [n_sms] */
	struct cudbgshim_warp *warps;
	uint64_t *lane_pc;
	uint32_t *lane_exception;
	bool updatable; /**< A batched update may be applied to it. */
};

/** @return 0, -EINVAL (a count is 0 or above CUDBGSHIM_MAX_*), -ENOMEM. */
int cudbgshim_state_create(uint32_t n_sms, uint32_t n_warps, uint32_t n_lanes,
			   struct cudbgshim_state **ret_state);
void cudbgshim_state_destroy(struct cudbgshim_state *state);
/** Forget everything. */
void cudbgshim_state_clear(struct cudbgshim_state *state);

static inline size_t cudbgshim_state_index(const struct cudbgshim_state *state, uint32_t sm,
					   uint32_t warp)
{
	return (size_t)sm * state->n_warps + warp;
}

/** Strides of the driver's batched answer, in bytes: per level, and per attribute bit. */
struct cudbgshim_layout {
	uint32_t buffer_size;
	struct cudbgshim_layout_level {
		uint32_t size;
		uint32_t attribute[32];
	} device, sm, warp, lane;
};

/**
 * Apply a batched answer.  Pure; any bytes are safe.  What the answer does not send stays.
 * @param ret_bad_at  Offset of the first byte that made no sense; may be NULL.
 * @return 0, or -EPROTO; the state is cleared then and wants a full answer next.
 */
int cudbgshim_state_decode(struct cudbgshim_state *state, const struct cudbgshim_layout *layout,
			   const void *bytes, size_t size, size_t *ret_bad_at);

/** Is the layout usable for this decoder?  @return 0 or -EPROTO. */
int cudbgshim_layout_check(const struct cudbgshim_layout *layout);

/** @return 0, -EPROTO (nonsense), or -errno; -ENOSYS, -EOPNOTSUPP: no batched calls here. */
int cudbgshim_get_layout(struct cudbgshim *s, uint32_t dev, struct cudbgshim_layout *ret_layout);

/**
 * One batched call.
 * @param full    Otherwise only what changed; the driver may send everything all the same.
 * @param ret_used  Bytes of @p buf that count.
 */
int cudbgshim_read_batch(struct cudbgshim *s, uint32_t dev, bool full, void *buf, uint32_t size,
			 uint32_t *ret_used);

/** Fill @p state warp by warp: the same as the batched calls, slower, with any driver. */
int cudbgshim_state_read_plain(struct cudbgshim *s, uint32_t dev, struct cudbgshim_state *state);

/** One device's reader: keeps the layout and the buffer between snapshots. */
struct cudbgshim_state_reader;

/**
 * Ask for the device's size and layout.  Works on a running device.
 * @return 0 or -errno.
 */
int cudbgshim_state_reader_create(struct cudbgshim *s, uint32_t dev,
				  struct cudbgshim_state_reader **ret_reader);
void cudbgshim_state_reader_destroy(struct cudbgshim_state_reader *reader);
/** Are snapshots read in a batch?  Turns false when the driver's batches make no sense. */
bool cudbgshim_state_reader_is_batched(const struct cudbgshim_state_reader *reader);
/**
 * Bring the state up to date, in a batch where the driver has that.  On a suspended device.
 * @param ret_state  Borrowed; valid until the next call on this reader.
 * @return 0 or -errno.
 */
int cudbgshim_state_reader_read(struct cudbgshim_state_reader *reader,
				const struct cudbgshim_state **ret_state);

#endif /* CUDBGSHIM_H */
