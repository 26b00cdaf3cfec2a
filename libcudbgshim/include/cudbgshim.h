/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_H
#define CUDBGSHIM_H

/**
 * @file cudbgshim.h
 * NVIDIA's CUDA debugger API: a C function per call that we make, over a library that is found at run time.
 *
 * The API has no handle of its own, so one process holds one session, on one target, for its whole
 * life; all calls come from one thread.  Which slot of the vendor's table serves a call, and which
 * version of a struct it fills, is chosen here from what the driver says it has; callers see one
 * form of everything.  There is a function for each call that the agent makes, and not for others.
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
 * "0 or -errno" below means any of these, and a function whose comment names no results returns
 * that.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudbgshim_names.h"

/** Limits of the API: devices, SMs of a device, warps of an SM, lanes of a warp. */
#define CUDBGSHIM_MAX_DEVICES 64u
#define CUDBGSHIM_MAX_SMS     256u
#define CUDBGSHIM_MAX_WARPS   64u
#define CUDBGSHIM_MAX_LANES   32u
/** Words of a mask with one bit per SM. */
#define CUDBGSHIM_SM_WORDS (CUDBGSHIM_MAX_SMS / 64u)
/** Stands for a host thread that the driver does not name. */
#define CUDBGSHIM_NO_TID UINT32_C(0xffffffff)

/** A session. */
struct cudbgshim;

/* ------------------------------------------------------------------ session ------------------ */

/**
 * The functions by which this library reaches the dynamic loader and the clock; tests pass their
 * own.
 */
struct cudbgshim_sys {
	/** Does what dlopen() does; the library is never closed again. */
	void *(*open)(const char *path);
	void *(*symbol)(void *library, const char *name);
	const char *(*error)(void); /**< Does what dlerror() does. */
	uint64_t (*now_ns)(void);
};

/** One call of the vendor's table, as seen by cudbgshim_last() and by a trace. */
struct cudbgshim_call {
	uint32_t slot;
	const char *name; /**< The vendor's name; static. */
	bool called;      /**< False when the call was refused here. */
	uint32_t result;  /**< CUDBGResult; valid only when the call was made. */
	int error;        /**< 0 or -errno as in the table above. */
	uint64_t took_ns;
};

/** Watches calls: every call is shown twice, before it is made (it may hang) and afterwards. */
struct cudbgshim_trace {
	void (*enter)(void *user, uint32_t slot, const char *name); /**< May be NULL. */
	void (*leave)(void *user, const struct cudbgshim_call *call);
	void *user;
};

/** The options of cudbgshim_create(). */
struct cudbgshim_options {
	const char *path;   /**< Path of the library; NULL for `libcuda.so.1`. */
	/** Path of the engine for our side instead of libcudadebugger; NULL: none. */
	const char *engine;
	struct cudbgshim_trace trace;    /**< There is no trace when leave is NULL. */
	const struct cudbgshim_sys *sys; /**< NULL for the real functions. */
};

/** The step at which cudbgshim_create() failed. */
enum cudbgshim_step {
	CUDBGSHIM_STEP_NONE,
	CUDBGSHIM_STEP_LIBRARY, /**< The library cannot be opened; text is the loader's. */
	CUDBGSHIM_STEP_SYMBOLS, /**< It is no CUDA driver: text names what it lacks. */
	/** It does not tell its version; result 10 means that its engine is missing. */
	CUDBGSHIM_STEP_VERSION,
	CUDBGSHIM_STEP_RELEASE, /**< The version is older than anything we know. */
	CUDBGSHIM_STEP_TABLE,   /**< It does not hand out its table. */
};

/** Why cudbgshim_create() failed. */
struct cudbgshim_failure {
	enum cudbgshim_step step;
	uint32_t result; /**< CUDBGResult of the steps VERSION and TABLE, which call the driver. */
	uint32_t major, minor, revision;
	char text[256]; /**< Empty where the result tells all. */
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
 * Release the session; NULL is allowed.  It calls nothing of the driver, see cudbgshim_finalize().
 * Notifications that come later are dropped.
 */
void cudbgshim_destroy(struct cudbgshim *s);

/** The driver's version of the API. */
struct cudbgshim_version {
	uint32_t major, minor, revision;
	uint32_t n_slots; /**< Number of calls that the driver has and we know. */
};

/** @return the version that the driver told cudbgshim_create(). */
struct cudbgshim_version cudbgshim_get_version(const struct cudbgshim *s);

/** @return the call that was made, or refused here, last; it is overwritten by the next. */
const struct cudbgshim_call *cudbgshim_last(const struct cudbgshim *s);

/** Will no further call be made, because the engine is gone or unusable? */
bool cudbgshim_is_over(const struct cudbgshim *s);

/** Does this driver have the call? */
bool cudbgshim_has_slot(const struct cudbgshim *s, uint32_t slot);

/**
 * Tell our own image of the driver who we are; before cudbgshim_initialize().  The same numbers
 * have to stand in the target, and must be unique in its network namespace.
 * @param label  Non-zero; by convention our pid.
 * @return 0, -EINVAL (label 0), -ENOEXEC (the library lacks the variables).
 */
int cudbgshim_set_client(struct cudbgshim *s, uint32_t label, uint32_t session);

/** Positive conditions of the functions below. */
enum cudbgshim_condition {
	CUDBGSHIM_ALREADY = 1,          /**< It was in that state already. */
	CUDBGSHIM_SOME_WATCHDOGGED = 2, /**< The call worked, but some GPUs cannot be debugged. */
	CUDBGSHIM_NO_EVENT = 3,
	CUDBGSHIM_NONE = 4, /**< There is no such thing. */
};

/**
 * Open the session.
 * @return 0, CUDBGSHIM_SOME_WATCHDOGGED, or -errno; -EAGAIN: try again later.
 */
int cudbgshim_initialize(struct cudbgshim *s);
/** Close the session. */
int cudbgshim_finalize(struct cudbgshim *s);
/**
 * Suspend a device.
 * @return 0, CUDBGSHIM_ALREADY, or -errno.
 */
int cudbgshim_suspend_device(struct cudbgshim *s, uint32_t dev);
/**
 * Resume a device.
 * @return 0, CUDBGSHIM_ALREADY, or -errno.
 */
int cudbgshim_resume_device(struct cudbgshim *s, uint32_t dev);
/**
 * Suspend every device; with the newest drivers in one call.  Otherwise devices are taken one after
 * the other, all of them even when one fails; the first failure is returned.
 * @return 0 or -errno.
 */
int cudbgshim_suspend_all(struct cudbgshim *s);
/** Resume every device, as cudbgshim_suspend_all(). */
int cudbgshim_resume_all(struct cudbgshim *s);

/** Make the engine drop what it keeps from attaching. */
int cudbgshim_clear_attach_state(struct cudbgshim *s);
/** Make the classic engine's waiting stub become the engine. */
int cudbgshim_initialize_attach_stub(struct cudbgshim *s);
/**
 * Tell the engine to clean up before the target is left.
 * @param resume_flag  The target's cudbgResumeForAttachDetach word, unchanged.
 */
int cudbgshim_request_cleanup_on_detach(struct cudbgshim *s, uint32_t resume_flag);
/** Read the capability bits that the engine knows; this works before cudbgshim_initialize(). */
int cudbgshim_get_capabilities(struct cudbgshim *s, uint32_t *ret_bits);

/* ------------------------------------------------------------------ events ------------------- */

/** Three sizes or positions. */
struct cudbgshim_dim3 {
	uint32_t x, y, z;
};

/** CUDBGEvent.kind, as the vendor numbers it. */
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

/** An event.  Fields that a kind does not have are 0, tid CUDBGSHIM_NO_TID. */
struct cudbgshim_event {
	uint32_t kind; /**< enum cudbgshim_event_kind; also numbers beyond CUDBGSHIM_EVENT_COUNT. */
	uint32_t dev;  /**< Below CUDBGSHIM_MAX_DEVICES. */
	uint32_t tid;
	uint64_t context, module;
	union {
		struct {
			uint64_t handle, size;
			uint32_t properties; /**< Bit 0 marks the driver's own image. */
		} image;
		struct {
			uint64_t grid, function, entry, parent;
			struct cudbgshim_dim3 grid_dim, block_dim;
			uint32_t type, origin;
		} kernel;
		uint32_t internal_error; /**< CUDBGResult. */
		uint32_t n_functions;    /**< As the driver claims; check it before use. */
		struct {
			uint64_t broken_devices, faulted_devices;
			uint32_t sm; /**< SM of a finished single step. */
			uint64_t warps_before, warps_after;
		} stop;
		uint32_t log_ruleset;
	};
};

/**
 * Decode the bytes of a CUDBGEvent.  The function is pure, and any bytes are safe.
 * @return 0, -EINVAL (fewer than 92 bytes), -EPROTO (device number out of range).
 */
int cudbgshim_event_decode(const void *bytes, size_t size, struct cudbgshim_event *ret_event);

/**
 * Called on a thread of the engine when there are events; it may only wake another thread.
 * @param tid  Host thread that waits for the acknowledgement, or CUDBGSHIM_NO_TID.
 */
typedef void (*cudbgshim_notify_fn)(void *user, uint32_t tid);

/**
 * Set the function that is told of events; NULL removes it.  This is allowed before
 * cudbgshim_initialize().  A call that is under way on the engine's thread may still use @p user:
 * keep it until cudbgshim_finalize() has returned.
 */
int cudbgshim_set_notify(struct cudbgshim *s, cudbgshim_notify_fn notify, void *user);

/** Queues of events; host threads wait for those of the first. */
enum cudbgshim_queue { CUDBGSHIM_QUEUE_SYNC = 0, CUDBGSHIM_QUEUE_ASYNC = 1 };

/**
 * Take the next event of a queue.  After an INTERNAL_ERROR event the session is over.
 * @return 0, CUDBGSHIM_NO_EVENT, or -errno; -EPROTO: an event came but makes no sense.
 */
int cudbgshim_get_next_event(struct cudbgshim *s, enum cudbgshim_queue queue,
			     struct cudbgshim_event *ret_event);
/** Let the host threads go on that have waited since the synchronous events were read. */
int cudbgshim_acknowledge_sync_events(struct cudbgshim *s);

/* ------------------------------------------------------------------ devices ------------------ */

/**
 * Read the number of devices.
 * @return 0 or -errno; -EPROTO: more than CUDBGSHIM_MAX_DEVICES.
 */
int cudbgshim_get_n_devices(struct cudbgshim *s, uint32_t *ret_n);

/** Facts of a device. */
struct cudbgshim_device {
	char name[128];                   /**< Marketing name. */
	char chip[64];                    /**< Name of the chip in the driver: `GH100`. */
	char sm_type[32];                 /**< `sm_90`. */
	uint32_t n_sms, n_warps, n_lanes; /**< SMs, warps per SM, lanes per warp. */
	uint32_t n_registers, n_predicates, n_uniform_registers, n_uniform_predicates;
	uint32_t pci_bus, pci_device;
};

/**
 * Read the facts of a device.  It fails without SMs, warps, lanes and registers; everything else is
 * 0 or empty where the driver does not tell it.
 */
int cudbgshim_get_device(struct cudbgshim *s, uint32_t dev, struct cudbgshim_device *ret_device);

/** Read which SMs have an exception, one bit each. */
int cudbgshim_read_exception_sms(struct cudbgshim *s, uint32_t dev, uint32_t n_sms,
				 uint64_t ret_mask[CUDBGSHIM_SM_WORDS]);
/**
 * Read the exception of an SM.
 * @param ret_exception  CUDBGException_t.
 * @return 0 or -errno.
 */
int cudbgshim_read_sm_exception(struct cudbgshim *s, uint32_t dev, uint32_t sm,
				uint32_t *ret_exception, uint64_t *ret_error_pc,
				bool *ret_has_error_pc);

/* ------------------------------------------------------------------ grids -------------------- */

struct cudbgshim_grid {
	uint64_t id, context, module, function, entry;
	uint64_t parent; /**< 0 for none, and always since release 13.4. */
	uint32_t dev;
	uint32_t tid; /**< Host thread that launched it, or CUDBGSHIM_NO_TID. */
	uint32_t type, origin;
	struct cudbgshim_dim3 grid_dim, block_dim;
	/** All 0 when it has no clusters. */
	struct cudbgshim_dim3 cluster_dim, preferred_cluster_dim;
};

/** Read the facts of a grid. */
int cudbgshim_get_grid(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
		       struct cudbgshim_grid *ret_grid);
/** Read the status of a grid, a CUDBGGridStatus. */
int cudbgshim_get_grid_status(struct cudbgshim *s, uint32_t dev, uint64_t grid_id,
			      uint32_t *ret_status);

/* ------------------------------------------------------------------ warps and lanes ---------- */

/** A place on a GPU; functions that concern a whole warp ignore the lane. */
struct cudbgshim_place {
	uint32_t dev, sm, warp, lane;
};

/** Bits that tell which members of a warp are valid. */
#define CUDBGSHIM_WARP_ERROR_PC       (UINT32_C(1) << 0)
#define CUDBGSHIM_WARP_CLUSTER        (UINT32_C(1) << 1) /**< The member cluster_idx. */
#define CUDBGSHIM_WARP_CLUSTER_DIM    (UINT32_C(1) << 2)
#define CUDBGSHIM_WARP_CLUSTER_TARGET (UINT32_C(1) << 3)
#define CUDBGSHIM_WARP_SYSCALL_LANES  (UINT32_C(1) << 4)
#define CUDBGSHIM_WARP_BREAKPOINT     (UINT32_C(1) << 5)

/** The facts of a warp as a whole.  Members whose bit in @c has is clear are 0. */
struct cudbgshim_warp {
	uint64_t grid_id;
	uint64_t error_pc;
	uint64_t breakpoint; /**< Handle of the breakpoint that stopped it (since 13.2). */
	struct cudbgshim_dim3 block;
	struct cudbgshim_dim3 base_thread; /**< Thread of lane 0, whether it is valid or not. */
	struct cudbgshim_dim3 cluster_idx, cluster_dim;
	struct cudbgshim_dim3 cluster_target; /**< Block that a cluster exception points at. */
	uint32_t valid_lanes, active_lanes, syscall_lanes;
	uint32_t has; /**< A mask of CUDBGSHIM_WARP_*. */
};

/** Facts lane by lane; entries of lanes that are not valid are 0. */
struct cudbgshim_lanes {
	uint64_t pc[CUDBGSHIM_MAX_LANES];
	uint32_t exception[CUDBGSHIM_MAX_LANES];
};

/** Read which slots of an SM hold a warp, one bit each. */
int cudbgshim_read_valid_warps(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t *ret_mask);
/** Read which warps of an SM have hit a breakpoint, one bit each. */
int cudbgshim_read_broken_warps(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t *ret_mask);
/**
 * Read one warp and its lanes; with older drivers this takes more than one call.  Its breakpoint is
 * asked for with cudbgshim_get_hit_breakpoint().
 */
int cudbgshim_read_warp(struct cudbgshim *s, const struct cudbgshim_place *at,
			struct cudbgshim_warp *ret_warp, struct cudbgshim_lanes *ret_lanes);
/** Compute the thread index of a lane from that of lane 0: it carries from x to y, then to z. */
struct cudbgshim_dim3 cudbgshim_thread_of_lane(struct cudbgshim_dim3 base, uint32_t lane,
					       struct cudbgshim_dim3 block_dim);

/** A CUDBGCbuWarpState in 32-bit words. */
#define CUDBGSHIM_CONVERGENCE_WORDS 51u
/**
 * Read the state of the convergence barriers of some warps of an SM, in one call.
 * @param warps      One bit each.
 * @param ret_words  Of as many warps, in ascending order; what the driver leaves out is all ones.
 * @return 0, -ENOSYS (before 12.9), -errno.
 */
int cudbgshim_read_convergence(struct cudbgshim *s, uint32_t dev, uint32_t sm, uint64_t warps,
			       uint32_t (*ret_words)[CUDBGSHIM_CONVERGENCE_WORDS]);

/** Read the dimensions of a warp's block, in threads. */
int cudbgshim_get_block_dim(struct cudbgshim *s, const struct cudbgshim_place *at,
			    struct cudbgshim_dim3 *ret_dim);
/** Read the same as an offset from the start of the function. */
int cudbgshim_read_pc(struct cudbgshim *s, const struct cudbgshim_place *at, uint64_t *ret_pc);
/**
 * Read the handle of the breakpoint that stopped a warp.
 * @return 0, CUDBGSHIM_NONE (no breakpoint of ours stopped the warp), or -errno.
 */
int cudbgshim_get_hit_breakpoint(struct cudbgshim *s, const struct cudbgshim_place *at,
				 uint64_t *ret_handle);

/** The resources of its SM that a warp takes. */
struct cudbgshim_resources {
	uint32_t shared_size, n_registers; /**< Bytes per block; registers per lane. */
};
/** Read the resources of its SM that a warp takes. */
int cudbgshim_read_resources(struct cudbgshim *s, const struct cudbgshim_place *at,
			     struct cudbgshim_resources *ret_resources);

/** Scope of a barrier that the driver does not tell. */
#define CUDBGSHIM_BARRIER_SCOPE_UNKNOWN UINT32_C(0xffffffff)
/**
 * Read what a lane waits on.
 * @param ret_scope   CUDBGBarrierScope.
 * @param text, size  Gets the driver's words; always terminated.
 */
int cudbgshim_get_barrier(struct cudbgshim *s, const struct cudbgshim_place *at,
			  uint32_t *ret_scope, char *text, size_t size);

/* ------------------------------------------------------------------ registers ---------------- */

/**
 * Read @p n registers of a lane from @p first on.
 * @param ret_n  How many the driver gave: from 13.2 on it may be fewer.  The rest is 0.
 */
int cudbgshim_read_registers(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t first,
			     uint32_t n, uint32_t *values, uint32_t *ret_n);
/** Read @p n uniform registers of a warp from @p first on. */
int cudbgshim_read_uniform_registers(struct cudbgshim *s, const struct cudbgshim_place *at,
				     uint32_t first, uint32_t n, uint32_t *values);
/** Read @p n predicates of a lane, one 32-bit word each. */
int cudbgshim_read_predicates(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t n,
			      uint32_t *values);
/** Read @p n uniform predicates of a warp, one 32-bit word each. */
int cudbgshim_read_uniform_predicates(struct cudbgshim *s, const struct cudbgshim_place *at,
				      uint32_t n, uint32_t *values);
/** Read the condition codes of a lane; chips since 13.1 have none. */
int cudbgshim_read_cc(struct cudbgshim *s, const struct cudbgshim_place *at, uint32_t *ret_value);

/* ------------------------------------------------------------------ call stack --------------- */

/**
 * Read the return addresses of a lane, innermost first.
 * @param n    Room in @p addresses.
 * @param ret_depth          Whole depth, may exceed @p n.
 * @param ret_syscall_depth  Innermost levels that are inside a device system call.
 */
int cudbgshim_read_call_stack(struct cudbgshim *s, const struct cudbgshim_place *at,
			      uint64_t *addresses, uint32_t n, uint32_t *ret_depth,
			      uint32_t *ret_syscall_depth);

/* ------------------------------------------------------------------ memory ------------------- */

/** Memory spaces. */
enum cudbgshim_space {
	CUDBGSHIM_SPACE_GLOBAL,  /**< Global memory; the address tells the device. */
	CUDBGSHIM_SPACE_SHARED,  /**< Shared memory of the block of a warp. */
	CUDBGSHIM_SPACE_LOCAL,   /**< Local memory of a lane. */
	CUDBGSHIM_SPACE_PARAM,   /**< Parameters of the kernel of a warp. */
	CUDBGSHIM_SPACE_GENERIC, /**< An address of any space, as a lane sees it. */
	CUDBGSHIM_SPACE_CODE,    /**< Instructions of a device. */
	CUDBGSHIM_SPACE_PINNED,  /**< Host memory that CUDA pinned or mapped. */
	CUDBGSHIM_SPACE_COUNT
};

/**
 * Read memory.
 * @param at  Place, of which only the members count that the space needs; may be NULL for GLOBAL
 *            and PINNED.
 */
int cudbgshim_read_memory(struct cudbgshim *s, enum cudbgshim_space space,
			  const struct cudbgshim_place *at, uint64_t address, void *buf,
			  uint32_t size);

/**
 * Find where a constant bank lies; it can be read as global memory.
 * @param grid_id   Grid of the warp at @p at.
 * @param ret_size  Bytes; 0 where the driver does not tell (before 12.4).
 */
int cudbgshim_get_const_bank(struct cudbgshim *s, const struct cudbgshim_place *at,
			     uint64_t grid_id, uint32_t bank, uint64_t *ret_address,
			     uint32_t *ret_size);

/** A range of memory. */
struct cudbgshim_region {
	uint64_t start, size;
};
/**
 * List ranges of managed memory from @p start on.
 * @param n      Room in @p regions; at most 64 are filled.
 * @param ret_n  How many were filled.
 */
int cudbgshim_get_managed_regions(struct cudbgshim *s, uint64_t start,
				  struct cudbgshim_region *regions, uint32_t n, uint32_t *ret_n);

/* ------------------------------------------------------------------ code --------------------- */

/** Copy the ELF image that an event announced, of @p size bytes. */
int cudbgshim_get_elf_image(struct cudbgshim *s, uint32_t dev, uint64_t handle, bool relocated,
			    void *buf, uint64_t size);

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
	uint64_t *valid_warps;  /**< One mask per SM. */
	uint64_t *broken_warps; /**< One mask per SM. */
	struct cudbgshim_warp *warps;
	uint64_t *lane_pc;
	uint32_t *lane_exception;
	bool updatable; /**< Whether a batched update may be applied to it. */
};

/**
 * Make an empty state.
 * @param ret_state  Release with cudbgshim_state_destroy().
 * @return 0, -EINVAL (a count is 0 or above CUDBGSHIM_MAX_*), -ENOMEM.
 */
int cudbgshim_state_create(uint32_t n_sms, uint32_t n_warps, uint32_t n_lanes,
			   struct cudbgshim_state **ret_state);
/** Release a state; NULL is allowed. */
void cudbgshim_state_destroy(struct cudbgshim_state *state);
/** Make a state empty again. */
void cudbgshim_state_clear(struct cudbgshim_state *state);

/** @return the index of a warp in the arrays that have one entry per warp. */
static inline size_t cudbgshim_state_index(const struct cudbgshim_state *state, uint32_t sm,
					   uint32_t warp)
{
	return (size_t)sm * state->n_warps + warp;
}

/**
 * Strides of the driver's batched answer, in bytes: per level, and per attribute bit of a level.
 */
struct cudbgshim_layout {
	uint32_t buffer_size;
	struct cudbgshim_layout_level {
		uint32_t size;
		uint32_t attribute[32];
	} device, sm, warp, lane;
};

/**
 * Apply a batched answer to a state.  The function is pure, and any bytes are safe.  What the
 * answer does not send stays.
 * @param ret_bad_at  Offset of the first byte that made no sense; may be NULL.
 * @return 0, or -EPROTO; the state is cleared then and wants a full answer next.
 */
int cudbgshim_state_decode(struct cudbgshim_state *state, const struct cudbgshim_layout *layout,
			   const void *bytes, size_t size, size_t *ret_bad_at);

/**
 * Can this decoder use the layout?
 * @return 0 or -EPROTO.
 */
int cudbgshim_layout_check(const struct cudbgshim_layout *layout);

/**
 * Ask for the layout of batched answers.
 * @return 0, -EPROTO (nonsense), or -errno; -ENOSYS, -EOPNOTSUPP: this driver has no batched calls.
 */
int cudbgshim_get_layout(struct cudbgshim *s, uint32_t dev, struct cudbgshim_layout *ret_layout);

/**
 * Make one batched call.
 * @param full    Ask for everything instead of what changed; the driver may always send everything.
 * @param ret_used  Bytes of @p buf that count.
 */
int cudbgshim_read_batch(struct cudbgshim *s, uint32_t dev, bool full, void *buf, uint32_t size,
			 uint32_t *ret_used);

/** Fill a state warp by warp: the result is that of the batched calls, slower, with any driver. */
int cudbgshim_state_read_plain(struct cudbgshim *s, uint32_t dev, struct cudbgshim_state *state);

/** Reads the state of one device; it keeps the layout and the buffer between snapshots. */
struct cudbgshim_state_reader;

/**
 * Make a reader, which asks for the device's size and layout.  This works on a running device.
 * @param ret_reader  Release with cudbgshim_state_reader_destroy().
 * @return 0 or -errno.
 */
int cudbgshim_state_reader_create(struct cudbgshim *s, uint32_t dev,
				  struct cudbgshim_state_reader **ret_reader);
/** Release a reader with its state; NULL is allowed. */
void cudbgshim_state_reader_destroy(struct cudbgshim_state_reader *reader);
/** Are snapshots read in a batch?  This turns false when the driver's batches make no sense. */
bool cudbgshim_state_reader_is_batched(const struct cudbgshim_state_reader *reader);
/**
 * Bring the state of a suspended device up to date, in a batch where the driver has that.
 * @param ret_state  Borrowed; valid until the next call on this reader.
 * @return 0 or -errno.
 */
int cudbgshim_state_reader_read(struct cudbgshim_state_reader *reader,
				const struct cudbgshim_state **ret_state);

#endif /* CUDBGSHIM_H */
