/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_H
#define KFDTRAP_H

/**
 * @file kfdtrap.h
 * The AMD KFD debug interface: one C function per debug-trap command, in the kernel's own order,
 * and above it the GPU topology that the kernel publishes in sysfs.
 *
 * No policy, no logging, no exit: what needs two commands belongs to the caller.  The exceptions
 * are named where they are: kfdtrap_enable() cleans up after one kernel bug, kfdtrap_attach() asks
 * first, and the `_alloc` snapshots repeat until everything fits.
 *
 * Context: every command of a session must be issued by the one thread that did the ptrace attach
 * (or seize) on the target's thread-group leader, through a /dev/kfd opened by its own process.
 * Later kernels are more generous, earlier ones are not.  One handle, one thread.  Handles do not
 * survive fork().
 *
 * Errors: 0 (or a named positive answer) on success, -errno on failure.  ret_* parameters are
 * untouched on failure unless the function says otherwise.  A command interrupted by a signal is
 * repeated.  Every command can fail with the common codes:
 *
 *   -EBADF       kfd_fd is closed, or was opened by another process (also before a fork)
 *   -ENOTTY      the kernel has no debug interface (before Linux 6.5)
 *   -EOPNOTSUPP  a secondary KFD context is involved (Linux 7.0 and later)
 *   -ESRCH       no such process in the caller's pid namespace; or it is dead, or its main thread
 *                has finished, or it called exec, or it never opened /dev/kfd
 *   -EPERM       not the ptrace parent of the target's leader; for the commands marked "hardware"
 *                also: the target's runtime is not enabled.  The header comment of the kernel
 *                promises EACCES for the second meaning; no kernel does that.
 *   -EINVAL      no session is enabled on the target, or the scheduler cannot debug
 *   -EBUSY       AMD's out-of-tree driver only: the target is being PC sampled
 *   -EFAULT      the kernel could not read its argument
 *   -ENOMEM      the kernel is out of memory
 *   -EINTR       a signal kept interrupting the command
 *   -EIO         the kernel answered EIO (GPU reset in progress), or an errno that is not listed
 *
 * Each function lists only what it adds.  "DIFF" marks where the kernel's behaviour differs from
 * the comments in its own header.  Hardware commands pass -EACCES and -ENODEV through as well: that
 * header promises them, and a kernel may keep the promise one day.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KFDTRAP_API __attribute__((visibility("default")))

/* ------------------------------------------------------------------ constants ---------------- */

/** Debugging needs KFD interface 1.13 or later. */
#define KFDTRAP_VERSION_MAJOR	    UINT32_C(1)
#define KFDTRAP_VERSION_MINOR_DEBUG UINT32_C(13)

/** An id that does not apply (kfdtrap_send_runtime_event()). */
#define KFDTRAP_ID_NONE UINT32_C(0xffffffff)

/** Most queues one process can have, and the longest id array a command accepts. */
#define KFDTRAP_QUEUES_MAX 1024u

/**
 * Exception codes.  The sources: a queue (1 to 31), a device (32 to 36), the process (48, 49).
 * Codes marked "never" are raised by no upstream kernel up to 7.3.
 */
enum kfdtrap_exception {
	KFDTRAP_EC_NONE = 0,
	KFDTRAP_EC_QUEUE_WAVE_ABORT = 1,
	KFDTRAP_EC_QUEUE_WAVE_TRAP = 2,
	KFDTRAP_EC_QUEUE_WAVE_MATH_ERROR = 3,
	KFDTRAP_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4,
	KFDTRAP_EC_QUEUE_WAVE_MEMORY_VIOLATION = 5,
	KFDTRAP_EC_QUEUE_WAVE_APERTURE_VIOLATION = 6,
	KFDTRAP_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID = 16,
	KFDTRAP_EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 17,
	KFDTRAP_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID = 18,
	KFDTRAP_EC_QUEUE_PACKET_RESERVED = 19,
	KFDTRAP_EC_QUEUE_PACKET_UNSUPPORTED = 20,
	KFDTRAP_EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 21,
	KFDTRAP_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 22,
	KFDTRAP_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED = 23,
	KFDTRAP_EC_QUEUE_PREEMPTION_ERROR = 30, /**< Never. */
	KFDTRAP_EC_QUEUE_NEW = 31,
	KFDTRAP_EC_DEVICE_QUEUE_DELETE = 32, /**< It says on which device, not which queue. */
	KFDTRAP_EC_DEVICE_MEMORY_VIOLATION = 33,
	KFDTRAP_EC_DEVICE_RAS_ERROR = 34,  /**< Never. */
	KFDTRAP_EC_DEVICE_FATAL_HALT = 35, /**< Never. */
	KFDTRAP_EC_DEVICE_NEW = 36,	   /**< Never. */
	KFDTRAP_EC_PROCESS_RUNTIME = 48,
	KFDTRAP_EC_PROCESS_DEVICE_REMOVE = 49, /**< Never. */
	KFDTRAP_EC_COUNT = 50,
};

/** The bit of one code, which must not be 0; and the bits of groups of codes. */
#define KFDTRAP_EC_MASK(code)	 (UINT64_C(1) << ((unsigned int)(code) - 1u))
#define KFDTRAP_EC_MASK_WAVES	 UINT64_C(0x3f)	    /**< Codes 1 to 6. */
#define KFDTRAP_EC_MASK_PACKETS	 UINT64_C(0x7f8000) /**< Codes 16 to 23. */
#define KFDTRAP_EC_MASK_QUEUE	 UINT64_C(0x607f803f)
#define KFDTRAP_EC_MASK_DEVICE	 UINT64_C(0xf80000000)
#define KFDTRAP_EC_MASK_PROCESS	 UINT64_C(0x1800000000000)
#define KFDTRAP_EC_MASK_ALL                                                                        \
	(KFDTRAP_EC_MASK_QUEUE | KFDTRAP_EC_MASK_DEVICE | KFDTRAP_EC_MASK_PROCESS)

/** The kind of source that raised an event. */
enum kfdtrap_source {
	KFDTRAP_SOURCE_NONE,
	KFDTRAP_SOURCE_QUEUE,
	KFDTRAP_SOURCE_DEVICE,
	KFDTRAP_SOURCE_PROCESS,
	KFDTRAP_SOURCE_COUNT,
};

/** State of the target's runtime as the debugger sees it. */
enum kfdtrap_runtime_state {
	KFDTRAP_RUNTIME_DISABLED = 0,
	KFDTRAP_RUNTIME_ENABLED = 1,
	/** Another process debugs a GPU: only snapshots work. */
	KFDTRAP_RUNTIME_ENABLED_BUSY = 2,
	KFDTRAP_RUNTIME_ENABLED_ERROR = 3, /**< Activation failed: only snapshots work. */
	KFDTRAP_RUNTIME_COUNT,
};

/**
 * The effect of the enable mask of kfdtrap_set_wave_launch_override() on the traps that a program
 * enables: it is added to them, or replaces them.
 */
enum kfdtrap_override_mode {
	KFDTRAP_OVERRIDE_OR = 0,
	KFDTRAP_OVERRIDE_REPLACE = 1,
	KFDTRAP_OVERRIDE_COUNT,
};

/** Traps that can be forced on for waves launched later. */
#define KFDTRAP_TRAP_FP_INVALID		UINT32_C(0x1)
#define KFDTRAP_TRAP_FP_INPUT_DENORMAL	UINT32_C(0x2)
#define KFDTRAP_TRAP_FP_DIVIDE_BY_ZERO	UINT32_C(0x4)
#define KFDTRAP_TRAP_FP_OVERFLOW	UINT32_C(0x8)
#define KFDTRAP_TRAP_FP_UNDERFLOW	UINT32_C(0x10)
#define KFDTRAP_TRAP_FP_INEXACT		UINT32_C(0x20)
#define KFDTRAP_TRAP_INT_DIVIDE_BY_ZERO UINT32_C(0x40)
#define KFDTRAP_TRAP_ADDRESS_WATCH	UINT32_C(0x80)
#define KFDTRAP_TRAP_MEMORY_VIOLATION	UINT32_C(0x100)
#define KFDTRAP_TRAP_WAVE_START		(UINT32_C(1) << 30)
#define KFDTRAP_TRAP_WAVE_END		(UINT32_C(1) << 31)

/** How waves that are launched later start; the kernel refuses every other value. */
enum kfdtrap_launch_mode {
	KFDTRAP_LAUNCH_NORMAL = 0,
	KFDTRAP_LAUNCH_HALT = 1,
	KFDTRAP_LAUNCH_DEBUG = 3, /**< They single-step. */
};

/** Accesses that a watch point reports. */
enum kfdtrap_watch_mode {
	KFDTRAP_WATCH_READ = 0,
	KFDTRAP_WATCH_NONREAD = 1, /**< Writes and atomics. */
	KFDTRAP_WATCH_ATOMIC = 2,
	KFDTRAP_WATCH_ALL = 3,
	KFDTRAP_WATCH_COUNT,
};

/** Watch points of one GPU, shared by all processes that use it. */
#define KFDTRAP_WATCH_IDS 4u

/** Flags of a session. */
#define KFDTRAP_FLAG_SINGLE_MEM_OP	   UINT32_C(0x1) /**< Precise memory faults. */
#define KFDTRAP_FLAG_SINGLE_ALU_OP	   UINT32_C(0x2) /**< Precise ALU exceptions. */
/** Interface 1.21; older kernels ignore it. */
#define KFDTRAP_FLAG_LDS_OUT_OF_ADDR_RANGE UINT32_C(0x4)

/**
 * Verdict bits that suspend and resume leave in a queue id.  GONE alone: the queue is unknown, new,
 * being destroyed, listed twice, or was not reached.  HW_FAILED: taking it off (or putting it on)
 * the hardware failed; it is marked suspended all the same.
 */
#define KFDTRAP_QUEUE_HW_FAILED	   (UINT32_C(1) << 30)
#define KFDTRAP_QUEUE_GONE	   (UINT32_C(1) << 31)
#define KFDTRAP_QUEUE_VERDICT_MASK (KFDTRAP_QUEUE_HW_FAILED | KFDTRAP_QUEUE_GONE)

/** Queue types in a snapshot. */
#define KFDTRAP_QUEUE_TYPE_COMPUTE     UINT32_C(0)
#define KFDTRAP_QUEUE_TYPE_SDMA	       UINT32_C(1)
#define KFDTRAP_QUEUE_TYPE_COMPUTE_AQL UINT32_C(2)
#define KFDTRAP_QUEUE_TYPE_SDMA_XGMI   UINT32_C(3)
#define KFDTRAP_QUEUE_TYPE_UNKNOWN     UINT32_C(0xffffffff)

/** Capability bits of a device. */
#define KFDTRAP_CAP_WATCH_POINTS	  UINT32_C(0x80)
#define KFDTRAP_CAP_WATCH_COUNT_LOG2_MASK UINT32_C(0xf00)
#define KFDTRAP_CAP_WATCH_COUNT_SHIFT	  8u
#define KFDTRAP_CAP_DEBUG		  UINT32_C(0x8000)
#define KFDTRAP_CAP_TRAP_OVERRIDE	  UINT32_C(0x10000)
#define KFDTRAP_CAP_LAUNCH_MODE		  UINT32_C(0x20000)
#define KFDTRAP_CAP_PRECISE_MEMORY	  UINT32_C(0x40000)
#define KFDTRAP_CAP_ASIC_REVISION_MASK	  UINT32_C(0x3c00000)
#define KFDTRAP_CAP_ASIC_REVISION_SHIFT	  22u
#define KFDTRAP_CAP_DEBUG_FIRMWARE	  UINT32_C(0x20000000)
#define KFDTRAP_CAP_PRECISE_ALU		  UINT32_C(0x40000000)
#define KFDTRAP_CAP_PER_QUEUE_RESET	  UINT32_C(0x80000000)
#define KFDTRAP_CAP2_PER_SDMA_QUEUE_RESET UINT32_C(0x1)
#define KFDTRAP_CAP2_LDS_OUT_OF_RANGE	  UINT32_C(0x2)

/** Parts of debug_prop: lowest and highest programmable bit of a watch mask, and two facts. */
#define KFDTRAP_DEBUG_PROP_WATCH_LO_MASK   UINT32_C(0xf)
#define KFDTRAP_DEBUG_PROP_WATCH_HI_MASK   UINT32_C(0x3f0)
#define KFDTRAP_DEBUG_PROP_WATCH_HI_SHIFT  4u
/** Trap temporaries always have the dispatch. */
#define KFDTRAP_DEBUG_PROP_DISPATCH_INFO   UINT32_C(0x400)
#define KFDTRAP_DEBUG_PROP_WATCH_EXCLUSIVE UINT32_C(0x800)

/* ------------------------------------------------------------------ records ------------------ */

/** The runtime of the target. */
struct kfdtrap_runtime_info {
	uint64_t r_debug; /**< Address of the runtime's code-object list in the target. */
	uint32_t state;	  /**< enum kfdtrap_runtime_state. */
	/** Not 0 when the runtime has asked the kernel to set trap temporaries up. */
	uint32_t ttmp_setup;
};

/** An event, which stands for all exceptions of one source. */
struct kfdtrap_event {
	/** All latched bits of the source, also those that are not enabled. */
	uint64_t exceptions;
	uint32_t gpu_id;     /**< GPU; 0 for process events. */
	uint32_t queue_id;   /**< Only valid for queue events; 0 is a valid queue id. */
};

struct kfdtrap_memory_violation {
	uint32_t not_present;
	uint32_t read_only;
	uint32_t no_execute;
	uint32_t imprecise;
	uint64_t va; /**< Address of the page. */
	uint32_t gpu_id;
	uint32_t error_type; /**< 0 none, 1 SRAM ECC, 2 poison consumed, 3 GPU hang. */
};

/** One queue as the kernel lays it out. */
struct kfdtrap_queue {
	uint64_t exceptions; /**< Latched bits before this call cleared any. */
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t ctx_save_restore_address;
	uint32_t queue_id; /**< 0 is a valid id; ids are reused. */
	uint32_t gpu_id;
	uint32_t ring_size; /**< Bytes, cut to 32 bits by the kernel. */
	uint32_t type;	    /**< KFDTRAP_QUEUE_TYPE_*. */
	uint32_t ctx_save_restore_area_size; /**< Bytes per XCC. */
	uint32_t reserved;
};

/** One GPU of the target; the kernel's layout, followed by what this library knows about it. */
struct kfdtrap_device {
	uint64_t exceptions; /**< Latched bits before this call cleared any. */
	uint64_t lds_base;
	uint64_t lds_limit;
	uint64_t scratch_base;
	uint64_t scratch_limit;
	uint64_t gpuvm_base;
	uint64_t gpuvm_limit;
	uint32_t gpu_id;
	uint32_t location_id; /**< As kfdtrap_node.location_id; there is no PCI domain here. */
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t revision_id;
	uint32_t subsystem_vendor_id;
	uint32_t subsystem_device_id;
	uint32_t fw_version;
	uint32_t gfx_target_version;
	uint32_t simd_count;
	uint32_t max_waves_per_simd;
	uint32_t array_count; /**< Per XCC, unlike in sysfs. */
	uint32_t simd_arrays_per_engine;
	uint32_t num_xcc;
	uint32_t capability; /**< KFDTRAP_CAP_*. */
	uint32_t debug_prop; /**< Low half of the property, KFDTRAP_DEBUG_PROP_*. */
	uint32_t capability2;
	uint32_t reserved;
	bool has_capability2; /**< The kernel wrote capability2 (Linux 7.0); else it is 0. */
};

/* ------------------------------------------------------------------ session ------------------ */

/** A handle for one target. */
struct kfdtrap;

/** System calls that this library makes; tests pass their own table. */
struct kfdtrap_sys {
	int (*ioctl)(int fd, unsigned long req, void *arg);
};

/**
 * Ask for the version of the KFD interface.  This is the one command that needs no session, and
 * also the test for support: do not probe with another command, because the kernel logs every
 * refusal.
 * @param sys  NULL for the real system calls.
 * @return 0, -EBADF, -ENOTTY (not a KFD), -EFAULT, -EINTR, -EIO.
 */
KFDTRAP_API int kfdtrap_get_version(int kfd_fd, const struct kfdtrap_sys *sys, uint32_t *ret_major,
				    uint32_t *ret_minor);

/**
 * Make a handle for one target.  This asks the kernel nothing.
 * @param kfd_fd  Open /dev/kfd; borrowed, the caller still closes it.
 * @param pid     The target in the caller's pid namespace; a thread id names its process.
 * @param sys     NULL for the real system calls; borrowed as long as the handle lives.
 * @param ret_kt  Release with kfdtrap_destroy().
 * @return 0, -EBADF (negative fd), -EINVAL (pid 0), -ENOMEM.
 */
KFDTRAP_API int kfdtrap_create(int kfd_fd, uint32_t pid, const struct kfdtrap_sys *sys,
			       struct kfdtrap **ret_kt);

/** Release a handle; NULL is allowed.  This does not resume or disable anything. */
KFDTRAP_API void kfdtrap_destroy(struct kfdtrap *kt);

/**
 * Let command 0 name the target by another of its threads, which names the process as well.
 *
 * For a thread that the caller traces, as its main thread, the kernel makes a context where it finds none, and crashes
 * where the process is just being killed (6.12.117, kfd_process.c:kfd_create_process()).  For one that nobody traces it
 * only looks.  All other commands go on to name the process, whose number no other process gets while it is traced.
 * @param tid  -ESRCH of command 0 may mean that this thread has ended.  0: by the process.
 */
KFDTRAP_API void kfdtrap_enable_by(struct kfdtrap *kt, uint32_t tid);

/**
 * Command 0: begin debugging.
 *
 * Success alone says little: look at ret_info->state.  0 means that the target's runtime is off (it
 * will raise PROCESS_RUNTIME and wait for kfdtrap_send_runtime_event()); 2 and 3 mean that only
 * snapshots will work.  Already latched events write nothing to dbg_fd: query once.
 *
 * Only for a target that is known to have no session: an ENABLE that is answered with EALREADY
 * makes the caller the recorded debugger all the same, and the debugger that has the session gets
 * EPERM from then on.  Worse, when the target's descriptor of the device has survived an exec, or
 * its old context a second open, the end of a session that was begun so has been seen to end in a
 * general protection fault of the kernel (6.12.107, kfd_process.c:kfd_process_wq_release()).
 * kfdtrap_attach() asks first.
 *
 * @param exceptions  Codes that wake dbg_fd and that kfdtrap_query_debug_event() reports.
 * @param dbg_fd      Gets one byte per event; the kernel keeps its own reference.  It must be
 *                    writable and non-blocking, best one end of an AF_UNIX SOCK_SEQPACKET pair: the
 *                    kernel checks nothing, and a pipe without reader can kill the target.
 * @return 0;
 *         -EALREADY (DIFF: EINVAL promised) a session is on already, maybe the target's own,
 *         -ENODEV a GPU of the target is too old, which spoils the whole session,
 *         -EBUSY a GPU shares work groups in a way that excludes debugging,
 *         -EBADF also: dbg_fd is not open, -EINVAL also: no GPU, GPU reset;
 *         -EFAULT and -EPROTO (the kernel's runtime info is shorter than ours): kernels before
 *         6.12.111 leave the session on after EFAULT; it has been disabled again here.
 */
KFDTRAP_API int kfdtrap_enable(struct kfdtrap *kt, uint64_t exceptions, int dbg_fd,
			       struct kfdtrap_runtime_info *ret_info);

/**
 * Commands 11 and 0: begin debugging, unless another debugger does so already, or the target does
 * not use the device (ENABLE would make it a user of it).
 *
 * A session that begins between the two has been taken from who began it, and is ended: it would stay with the target
 * when this process ends, and its own end would then write into freed memory of the kernel.
 * @return as kfdtrap_enable(), but -EALREADY leaves a session alone that was there before; -EAGAIN: one had begun
 *         meanwhile, and was ended; -ESRCH comes from either command.
 */
KFDTRAP_API int kfdtrap_attach(struct kfdtrap *kt, uint64_t exceptions, int dbg_fd,
			       struct kfdtrap_runtime_info *ret_info);

/**
 * Command 1: end debugging.  The kernel resumes all queues, clears watch points, launch mode,
 * override and flags, and forgets latched events.  It does not release a target that waits in
 * its runtime handshake: answer that first.
 * @return 0; nothing added.  -EINVAL: there was no session (it can vanish at any time).
 */
KFDTRAP_API int kfdtrap_disable(struct kfdtrap *kt);

/**
 * Command 2: pass exceptions on to the target's runtime.
 *
 * PROCESS_RUNTIME releases the handshake and is counted: send exactly once per event received.
 * DEVICE_MEMORY_VIOLATION evicts the target's queues on @p gpu_id and signals its memory event.
 * All other bits go to the error word of queue @p queue_id; an unknown queue is silently ignored.
 *
 * @param gpu_id, queue_id  KFDTRAP_ID_NONE where it does not apply.
 * @return 0; -ENODEV memory violation for a GPU that is not the target's; nothing was done.
 */
KFDTRAP_API int kfdtrap_send_runtime_event(struct kfdtrap *kt, uint64_t exceptions, uint32_t gpu_id,
					   uint32_t queue_id);

/**
 * Command 3: replace the set of reported exceptions.  Writes to dbg_fd if any of the new set is
 * latched already, every time.  A subscribed wave or memory exception is withheld from the
 * target's runtime until kfdtrap_send_runtime_event() passes it on.
 * @return 0; nothing added.
 */
KFDTRAP_API int kfdtrap_set_exceptions_enabled(struct kfdtrap *kt, uint64_t exceptions);

/**
 * Command 4 (hardware): force traps on for waves launched later.
 * New setting = (enable & request) | (previous & ~request); request 0 only asks.
 *
 * @param mode          enum kfdtrap_override_mode; older GPUs know OR only, newer ones both.
 * @param ret_previous  Setting before, of the last GPU; NULL allowed.
 * @param ret_supported Traps every GPU supports; NULL allowed.  Also written with -EACCES.
 * @return 0;
 *         -EACCES request is not a subset of what all GPUs support (DIFF: the comment speaks of
 *         the enable mask, which is never checked),
 *         -EINVAL mode unsupported by an older GPU, -EPERM mode unsupported by a newer GPU
 *         (DIFF: EINVAL promised), -ENODEV, -ETIME (scheduler hang): after a hardware
 *         failure some GPUs keep the new setting.
 */
KFDTRAP_API int kfdtrap_set_wave_launch_override(struct kfdtrap *kt, uint32_t mode, uint32_t enable,
						 uint32_t request, uint32_t *ret_previous,
						 uint32_t *ret_supported);

/**
 * Command 5 (hardware): set how waves that are launched later start.
 * @param mode  enum kfdtrap_launch_mode.  The kernel looks at the low eight bits only.
 * @return 0; -EINVAL also: unknown mode; -EACCES, -ENODEV, -ETIME: GPUs before the failing one keep
 *         the new mode.
 */
KFDTRAP_API int kfdtrap_set_wave_launch_mode(struct kfdtrap *kt, uint32_t mode);

/**
 * Command 6 (hardware): suspend queues so that their saved wave state can be read.
 *
 * A suspended queue cannot be destroyed by its owner until resumed: pair every success with
 * kfdtrap_resume_queues(), error paths included.  A queue whose QUEUE_NEW is still latched is not
 * suspended (KFDTRAP_QUEUE_GONE): clear that bit with a queue snapshot first.
 *
 * @param clear      Exception bits to clear on these queues.
 * @param ids        In: queue ids; verdict bits of an earlier call are ignored.  Out, on success:
 *                   the same ids, failed ones with KFDTRAP_QUEUE_* set.
 * @param n_ids      0 only checks the rights.
 * @param grace_kclk Time given to waves before preemption, in about 1000 GPU clocks; at most 255,
 *                   0 acts as 1, 0xffffffff is the device's default.
 * @param ret_n      Queues now suspended, counting those that were before; NULL allowed.
 * @return 0, also when some queues failed; -EINVAL also: ids NULL or n_ids above
 *         KFDTRAP_QUEUES_MAX (refused here: old kernels overflow); -EACCES,
 *         -ENODEV (DIFF: promised for undebuggable GPUs, but only kfdtrap_enable() checks), -ETIME.
 */
KFDTRAP_API int kfdtrap_suspend_queues(struct kfdtrap *kt, uint64_t clear, uint32_t *ids,
				       size_t n_ids, uint32_t grace_kclk, uint32_t *ret_n);

/**
 * Command 7 (hardware): resume queues.  A queue that runs already counts as resumed.
 * @param ids    As for kfdtrap_suspend_queues(); NULL with n_ids 0 resumes all of the target.
 * @param ret_n  Queues resumed; NULL allowed.
 * @return 0, also when some queues failed; errors as kfdtrap_suspend_queues().
 */
KFDTRAP_API int kfdtrap_resume_queues(struct kfdtrap *kt, uint32_t *ids, size_t n_ids,
				      uint32_t *ret_n);

/**
 * Command 8 (hardware): set a watch point on one GPU.  A set bit in @p mask is compared; usable
 * bits come from debug_prop.  The kernel checks neither address nor mask, and reports some late
 * hardware failures as success.
 * @param mode    enum kfdtrap_watch_mode; others are refused here (the kernel does not).
 * @param ret_id  0 to KFDTRAP_WATCH_IDS - 1, needed to clear it.
 * @return 0; -ENODEV not a GPU of the target; -ENOMEM all watch points of that GPU are taken,
 *         maybe by other processes; -EINVAL also: mode; -EACCES, -ETIME.
 */
KFDTRAP_API int kfdtrap_set_node_address_watch(struct kfdtrap *kt, uint32_t gpu_id,
					       uint64_t address, uint32_t mask, uint32_t mode,
					       uint32_t *ret_id);

/**
 * Command 9 (hardware): clear a watch point.
 * @return 0; -ENODEV not a GPU of the target; -EINVAL also: not a watch point of this target, or
 *         id out of range (refused here: kernels before 6.12.75 did not check); -EACCES, -ETIME.
 */
KFDTRAP_API int kfdtrap_clear_node_address_watch(struct kfdtrap *kt, uint32_t gpu_id, uint32_t id);

/**
 * Command 10 (hardware): replace the session's flags.  Bits the kernel does not know are stored.
 * @param ret_previous  Flags before; NULL allowed.  Also written with -EACCES (they still hold).
 * @return 0; -EACCES a GPU of the target cannot do it; -ENODEV, -ETIME: the old flags were
 *         restored; -EINVAL also: a GPU vanished.
 */
KFDTRAP_API int kfdtrap_set_flags(struct kfdtrap *kt, uint32_t flags, uint32_t *ret_previous);

/**
 * Command 11: ask for the next source with a latched exception that is enabled.
 *
 * Drain dbg_fd first, then repeat this until 0: the other order can lose a wake-up.  If @p clear
 * clears none of the enabled bits, the same event comes back for ever.  Leave PROCESS_RUNTIME and
 * DEVICE_MEMORY_VIOLATION out of @p clear to be able to ask for their details.
 *
 * @param clear      Bits to clear on the reported source.
 * @param ret_event  Decide the kind of source with kfdtrap_exceptions_source(), never from the ids.
 * @return 1 and an event; 0 when there is none (the kernel's EAGAIN), ret_event is untouched then.
 */
KFDTRAP_API int kfdtrap_query_debug_event(struct kfdtrap *kt, uint64_t clear,
					  struct kfdtrap_event *ret_event);

/**
 * Command 12: ask for the details of one latched exception.
 * @param code       enum kfdtrap_exception.
 * @param source_id  Queue id or gpu_id, by the class of @p code; ignored for the process.
 * @param clear      Clear the bit as well.
 * @param buf, size  Gets at most @p size bytes; NULL and 0 only ask or clear.
 * @param ret_size   Size of the kernel's record, may exceed @p size; 0 = no details.  NULL allowed.
 * @return 0; -ENODATA the exception is not latched; -EINVAL also: unknown queue, GPU or code, or
 *         NULL buf with a size; -EFAULT nothing was cleared.
 */
KFDTRAP_API int kfdtrap_query_exception_info(struct kfdtrap *kt, uint32_t code, uint32_t source_id,
					     bool clear, void *buf, size_t size, size_t *ret_size);

/**
 * Command 12 for PROCESS_RUNTIME.
 * @return as kfdtrap_query_exception_info(); -EPROTO the kernel's record is shorter than ours.
 */
KFDTRAP_API int kfdtrap_query_runtime_info(struct kfdtrap *kt, bool clear,
					   struct kfdtrap_runtime_info *ret_info);

/**
 * Command 12 for DEVICE_MEMORY_VIOLATION.
 * @return 1 and the details; 0 when the fault is latched but has no details, which is what all
 *         kernels read so far answer (6.12 to 7.3 forget to set the length); errors as
 *         kfdtrap_query_exception_info().
 */
KFDTRAP_API int kfdtrap_query_memory_violation(struct kfdtrap *kt, uint32_t gpu_id, bool clear,
					       struct kfdtrap_memory_violation *ret_violation);

/**
 * Command 13 as the kernel has it: entries at stride @p entry_size, each with at most
 * *ret_entry_size valid bytes; bytes between the two are left as they were.
 * Works with the runtime off.  Lists SDMA queues too.
 *
 * @param clear           Cleared on the queues written, and only there.
 * @param buf             Room for capacity * entry_size bytes; NULL with capacity 0 counts.
 * @param entry_size      Stride, not 0.
 * @param ret_n           Queues that exist, may exceed @p capacity.
 * @param ret_entry_size  min(entry_size, the kernel's own size); NULL allowed.
 * @return 0; -EINVAL also: entry_size 0, or NULL buf with a capacity; -EFAULT some entries are
 *         written and cleared.
 */
KFDTRAP_API int kfdtrap_get_queue_snapshot(struct kfdtrap *kt, uint64_t clear, void *buf,
					   size_t capacity, uint32_t entry_size, size_t *ret_n,
					   uint32_t *ret_entry_size);

/**
 * Command 14 as the kernel has it; like kfdtrap_get_queue_snapshot(), but the kernel refuses a NULL
 * buffer: capacity 0 with any other one counts, and writes and clears nothing.
 *
 * Read each node's sysfs `properties` once before (kfdtrap_topology_create() does): the kernel
 * fills in the watch-point bits of `capability` only when somebody reads that file.
 *
 * @return 0; -EINVAL also: NULL buf, entry_size 0 (refused here), or a GPU vanished half-way;
 *         -EFAULT.
 */
KFDTRAP_API int kfdtrap_get_device_snapshot(struct kfdtrap *kt, uint64_t clear, void *buf,
					    size_t capacity, uint32_t entry_size, size_t *ret_n,
					    uint32_t *ret_entry_size);

/**
 * Command 13 into records.  What an older kernel does not report is 0.
 * @param queues  Written up to min(capacity, *ret_n); contents undefined on failure.
 * @param ret_n   Queues that exist, may exceed @p capacity.
 * @return as kfdtrap_get_queue_snapshot().
 */
KFDTRAP_API int kfdtrap_queue_snapshot(struct kfdtrap *kt, uint64_t clear,
				       struct kfdtrap_queue *queues, size_t capacity,
				       size_t *ret_n);

/** Command 14 into records, as kfdtrap_queue_snapshot(); @p devices must not be NULL. */
KFDTRAP_API int kfdtrap_device_snapshot(struct kfdtrap *kt, uint64_t clear,
					struct kfdtrap_device *devices, size_t capacity,
					size_t *ret_n);

/**
 * Read all queues, with room for 16 more than the last count known, repeated until everything fits.
 * Bits that an earlier round cleared are still reported in `exceptions` of the same queue.
 * @param ret_queues  Release with free(); never NULL on success.
 * @return as kfdtrap_queue_snapshot(); -ENOMEM also here; -EAGAIN new queues kept coming; -EPROTO
 *         the kernel claims an absurd number.  Exceptions may have been cleared by then.
 */
KFDTRAP_API int kfdtrap_queue_snapshot_alloc(struct kfdtrap *kt, uint64_t clear,
					     struct kfdtrap_queue **ret_queues, size_t *ret_n);
/** Read all devices, as kfdtrap_queue_snapshot_alloc(). */
KFDTRAP_API int kfdtrap_device_snapshot_alloc(struct kfdtrap *kt, uint64_t clear,
					      struct kfdtrap_device **ret_devices, size_t *ret_n);

/* ------------------------------------------------------------------ names -------------------- */

/**
 * @return the name without prefix, such as "QUEUE_WAVE_TRAP"; NULL for 0, gaps and unknown codes.
 */
KFDTRAP_API const char *kfdtrap_exception_name(uint32_t code);

/** @return the class of the source that reported these bits. */
KFDTRAP_API enum kfdtrap_source kfdtrap_exceptions_source(uint64_t exceptions);

/**
 * Write the compiler's name of an architecture, such as "gfx90a" for 90010.
 * @param size  At least 16; always terminated.
 */
KFDTRAP_API void kfdtrap_gfx_name(uint32_t gfx_target_version, char *buf, size_t size);

/* ------------------------------------------------------------------ topology ----------------- */

/** Directory in which the kernel publishes the topology. */
#define KFDTRAP_SYSFS_ROOT "/sys/class/kfd/kfd"

/** Kinds of memory banks (heap_type). */
#define KFDTRAP_HEAP_SYSTEM	 UINT32_C(0)
#define KFDTRAP_HEAP_FB_PUBLIC	 UINT32_C(1) /**< Device memory that the host can map. */
#define KFDTRAP_HEAP_FB_PRIVATE	 UINT32_C(2)
#define KFDTRAP_HEAP_GPU_GDS	 UINT32_C(3)
#define KFDTRAP_HEAP_GPU_LDS	 UINT32_C(4)
#define KFDTRAP_HEAP_GPU_SCRATCH UINT32_C(5)

/** Address of a PCI function. */
struct kfdtrap_pci_address {
	uint32_t domain;
	uint8_t bus;
	uint8_t device;
	uint8_t function;
};

/** One topology node.  A property that the kernel does not list is 0. */
struct kfdtrap_node {
	uint32_t node_id;
	/**
	 * 0, or -errno of the first file that could not be read: -EPERM for a GPU outside the
	 * reader's device cgroup.  Nothing but node_id is valid then.
	 */
	int error;
	uint32_t gpu_id;   /**< 0 for a CPU; the same number as in snapshots and events. */
	char name[64];	   /**< The kernel's ASIC name; empty for a CPU. */

	uint32_t cpu_cores_count;
	uint32_t simd_count; /**< 0 for a CPU. */
	uint32_t max_waves_per_simd;
	uint32_t simd_per_cu;
	uint32_t cu_per_simd_array;
	uint32_t simd_arrays_per_engine;
	uint32_t array_count; /**< For all XCCs together, unlike a snapshot's. */
	uint32_t num_xcc;
	uint32_t wave_front_size;
	uint32_t lds_size_in_kb;
	uint32_t max_slots_scratch_cu;
	uint32_t num_cp_queues;
	uint32_t num_sdma_engines;
	uint32_t num_sdma_xgmi_engines;
	uint32_t num_gws;
	uint32_t cwsr_size;
	uint32_t ctl_stack_size;
	uint32_t gfx_target_version;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t location_id; /**< As the kernel wrote it, partition bits included. */
	uint32_t drm_render_minor;
	uint32_t fw_version;
	uint32_t sdma_fw_version;
	uint32_t capability; /**< KFDTRAP_CAP_*. */
	uint32_t capability2;
	bool has_capability2;
	uint64_t debug_prop; /**< KFDTRAP_DEBUG_PROP_*. */
	uint64_t unique_id;
	uint64_t hive_id;

	struct kfdtrap_pci_address pci; /**< Address of the physical device; zero for a CPU. */
	uint32_t partition;		/**< Index of the node among those of one device. */

	uint64_t local_bytes;	     /**< Bytes of all banks of device memory. */
	uint64_t local_public_bytes; /**< The part of them that the host can map. */
	uint64_t system_bytes;

	/* kfdtrap_topology_add_drm() fills these in; they are empty or 0 when unknown. */
	char render_node[32]; /**< Such as "/dev/dri/renderD128". */
	char card_node[32];
	char marketing_name[128];
	uint64_t vram_bytes;
	uint64_t vram_visible_bytes;
	uint64_t vram_used_bytes;
	uint64_t gtt_bytes;
};

/** The nodes of the machine. */
struct kfdtrap_topology {
	uint32_t generation;
	uint64_t platform_oem;
	uint64_t platform_id;
	uint64_t platform_rev;
	struct kfdtrap_node *nodes; /**< In the order of node_id. */
	size_t n_nodes;
};

/**
 * Read the topology, as a copy during which generation_id did not change. Reading it also makes the
 * kernel complete the capability bits of later device snapshots.
 * @param sysfs_root    NULL for KFDTRAP_SYSFS_ROOT.
 * @param ret_topology  Release with kfdtrap_topology_destroy().
 * @return 0; -ENOENT no KFD (driver not loaded); -EAGAIN it kept changing; -EACCES, -EPERM the tree
 *         itself is not readable; -EINVAL generation_id is not a number; -ENOMEM, -EIO.
 */
KFDTRAP_API int kfdtrap_topology_create(const char *sysfs_root,
					struct kfdtrap_topology **ret_topology);
/** Release a topology; NULL is allowed. */
KFDTRAP_API void kfdtrap_topology_destroy(struct kfdtrap_topology *topology);

/** @return the node of a GPU, borrowed from the topology; NULL if there is none. */
KFDTRAP_API const struct kfdtrap_node *
kfdtrap_topology_find_gpu(const struct kfdtrap_topology *topology, uint32_t gpu_id);

/**
 * Add what libdrm knows: device nodes by PCI address, marketing name, memory sizes.  This opens the
 * render nodes; whatever cannot be found out stays empty.
 * @return number of GPU nodes for which a render node was found (0 without any GPU), -ENOMEM.
 */
KFDTRAP_API int kfdtrap_topology_add_drm(struct kfdtrap_topology *topology);

/* ------------------------------------------------------------------ processes ---------------- */

/** A queue as sysfs shows it. */
struct kfdtrap_process_queue {
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t type; /**< The driver's internal number, not a KFDTRAP_QUEUE_TYPE_*. */
	uint64_t size; /**< Bytes of the ring. */
};

/** Memory of a process on one GPU. */
struct kfdtrap_process_memory {
	uint32_t gpu_id;
	uint64_t vram_bytes;
};

/** A process that uses KFD. */
struct kfdtrap_process {
	uint32_t pid; /**< Process id in the initial pid namespace, whatever the reader's. */
	uint32_t pasid;
	/** Since Linux 7.0; no debugger sees the queues of these contexts. */
	uint32_t n_secondary_contexts;
	struct kfdtrap_process_queue *queues; /**< In the order of queue_id, then gpu_id. */
	size_t n_queues;
	struct kfdtrap_process_memory *memory; /**< In the order of gpu_id. */
	size_t n_memory;
};

/** The processes that use KFD. */
struct kfdtrap_process_list {
	struct kfdtrap_process *processes; /**< In the order of pid. */
	size_t n_processes;
};

/**
 * List the processes that have /dev/kfd open, including debuggers, without opening it.  Processes
 * and queues that vanish meanwhile are left out.
 * @param sysfs_root  NULL for KFDTRAP_SYSFS_ROOT.
 * @param ret_list    Release with kfdtrap_process_list_destroy().
 * @return 0; -ENOENT no KFD; -EACCES, -EPERM, -ENOMEM, -EIO.
 */
KFDTRAP_API int kfdtrap_process_list_create(const char *sysfs_root,
					    struct kfdtrap_process_list **ret_list);
/**
 * Count the secondary contexts of a process, without reading what else KFD says of it.
 * @param sysfs_root  NULL for KFDTRAP_SYSFS_ROOT.
 * @param pid         Process id in the initial pid namespace.
 * @return their number, 0 also where KFD does not list the process; -ENOENT no KFD; -EACCES, -EPERM,
 *         -ENOMEM, -EIO.
 */
KFDTRAP_API int kfdtrap_process_secondary_contexts(const char *sysfs_root, uint32_t pid);
/** Release a list of processes; NULL is allowed. */
KFDTRAP_API void kfdtrap_process_list_destroy(struct kfdtrap_process_list *list);

#ifdef __cplusplus
}
#endif

#endif /* KFDTRAP_H */
