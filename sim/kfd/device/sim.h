/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_SIM_H
#define KFDSIM_SIM_H

/**
 * @file sim.h
 * The simulated driver: processes, GPUs, queues, events, debug sessions.
 *
 * A state machine without threads and without I/O of its own.  A front end submits calls and gets
 * each of them completed exactly once, at once or later; time and process deaths are reported from
 * outside.  Behaviour follows the real driver including its oddities; comments name the surprising
 * ones.  Kernel profiles say which release is imitated.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "libkfdtrap/src/kfd_abi.h"
#include "os.h"
#include "profile.h"

#define SIM_GPUS_MAX 64
/** Result of an operation whose call completes later. */
#define SIM_LATER  (1 << 28)
/** The kernel-internal "restart this system call after the signal". */
#define SIM_RESTART 512

struct sim;
struct sim_process;
struct sim_queue;
struct sim_waves;
struct sim_memory;

/** One watch point of a GPU. */
struct sim_watch {
	struct sim_process *owner; /**< NULL: free. */
	uint64_t address;
	uint32_t mode, mask;
};

/** One GPU, for all processes. */
struct sim_gpu {
	const struct gpu_profile *profile;
	uint32_t gpu_id, node, location_id, drm_minor;
	struct sim_watch watch[KFDABI_WATCH_IDS];
	struct sim_process *debug_owner; /**< Holder of the device-global debug registers. */
	bool properties_read;		 /**< Watch bits appear after the first sysfs read. */
	bool resetting, lost;
	uint32_t fail_suspend, fail_resume; /**< HWS preemptions still to fail. */
	uint32_t fail_activate;		    /**< Runtime state that activation yields, or 0. */
};

/** What a process has of a GPU ("pdd" in the driver). */
struct sim_device {
	struct sim_gpu *gpu;
	uint64_t latched;
	bool has_fault;
	struct kfdabi_memory_exception_data fault;
	uint32_t override, launch_mode;
	bool evicted; /**< Queues taken off the hardware by an unhandled fault. */
	bool gws;
	bool holds_dispatches; /**< Kernels do not end; see work.h. */
};

/** One queue of a process. */
struct sim_queue {
	TAILQ_ENTRY(sim_queue) link;
	uint32_t id, type;
	struct sim_device *device;
	struct kfdabi_create_queue_args args;
	uint64_t latched;
	bool suspended, destroying, has_cu_mask;
	uint32_t fail_suspend, fail_resume; /**< MES removals or additions still to fail. */
	uint64_t suspended_ns, since_ns;    /**< Of suspensions that are over; begin of the one that is not. */
	bool held;			    /**< Its oldest packet is a dispatch that does not end. */
	bool broken;			    /**< Stopped for good by a packet. */
	uint64_t packets;		    /**< Packets processed since creation. */
	struct sim_waves *waves;	    /**< Planted waves, see waves.h; or NULL. */
};

/** One event of a process. */
struct sim_event {
	TAILQ_ENTRY(sim_event) link;
	uint32_t id, type;
	bool auto_reset, signaled;
	uint64_t age; /**< 1, and how often it was signaled. */
	struct kfdabi_memory_exception_data memory;
};

/** One of the events that a call waits for. */
struct sim_waiter {
	struct sim_event *event; /**< NULL: it was destroyed. */
	bool is_queued;		 /**< A signal wakes it. */
	bool is_activated;	 /**< It was then, or is since. */
	bool has_age;		 /**< The caller wants to know its age. */
};

/** Not the number of any secondary context: KFD_CONTEXT_ID_PRIMARY of the kernel's kfd_priv.h (Linux 7.0). */
#define SIM_CONTEXT_PRIMARY UINT16_MAX

/** One process that opened the device, or one secondary context of it. */
struct sim_process {
	TAILQ_ENTRY(sim_process) link;
	int tgid;
	struct sim_hold hold;
	uint32_t pasid;
	uint16_t context; /**< SIM_CONTEXT_PRIMARY, or the number of a secondary one. */
	bool gone;	  /**< Address space ended; kept only for open files. */
	uint64_t checked; /**< The last round of sim_check_processes() that has looked at it. */
	size_t n_files;
	size_t n_devices;
	struct sim_device devices[SIM_GPUS_MAX];
	TAILQ_HEAD(, sim_queue) queues;
	TAILQ_HEAD(, sim_event) events;
	uint32_t next_event;
	uint64_t event_page; /**< Handle of the memory where signals are; 0: none yet. */
	TAILQ_HEAD(, sim_memory) memory;
	uint32_t next_handle;
	bool has_memory; /**< It has made memory objects: its packets are read. */

	bool debugged;
	struct sim_process *debugger; /**< The process recorded; another one may have enabled. */
	uint32_t enabled_as; /**< The number that the last ENABLE named it by: its own, or that of a thread. */
	size_t n_debugging; /**< Sessions counted here; with 0, its end ends none. */
	int dbg_fd;
	uint64_t enabled_mask, latched;
	struct kfdabi_runtime_info runtime;
	uint32_t handshake; /**< Counting semaphore: surplus sends are remembered. */
	bool runtime_retry; /**< An interrupted handshake; its repetition raises nothing. */
	uint32_t flags;
	struct sim_call *busy; /**< Holder of the process lock across a delay. */
	uint64_t notifications;
	uint64_t suspends; /**< SUSPEND_QUEUES that named a queue. */
};

/** One open file of the device. */
struct sim_file {
	struct sim_process *process;
	int tgid;
};

/** What a pending call waits for. */
enum sim_wait {
	SIM_WAIT_NONE,
	SIM_WAIT_TURN,	  /**< Another call holds the target. */
	SIM_WAIT_RUNTIME, /**< The debugger's half of the handshake. */
	SIM_WAIT_DESTROY, /**< The queue's end of suspension. */
	SIM_WAIT_EVENTS,
	SIM_WAIT_DELAY, /**< Result known, reply due at the deadline. */
	SIM_WAIT_BLOCK, /**< The control file must release it. */
};

/** One ioctl in flight; allocated by the front end, which embeds it. */
struct sim_call {
	TAILQ_ENTRY(sim_call) link; /**< Used by the core only. */
	struct sim_file *file;
	int tid, tgid;
	uint32_t command;
	void *arg;	 /**< At least as large as the driver's own argument, zero-filled. */
	size_t arg_size; /**< Bytes the caller's command word covers. */
	void (*complete)(struct sim_call *call, int result);

	enum sim_wait wait;
	struct sim_process *target;
	uint32_t queue_id;
	struct sim_waiter *waiters; /**< SIM_WAIT_EVENTS: what for; NULL. */
	uint32_t n_waiters;
	uint64_t deadline_ns; /**< 0: none. */
	int result;
	bool again;    /**< It has waited, and begins once more. */
	bool finished; /**< SIM_WAIT_BLOCK: effects are done, only the reply is missing. */
	bool injected, hard;
	const char *op;
};

/** What tests want done to the next calls of an operation. */
struct sim_injection {
	TAILQ_ENTRY(sim_injection) link;
	char op[24];
	uint32_t count;
	uint32_t skip; /**< Calls of the operation that are let through first. */
	uint32_t delay_ms;
	int error; /**< Positive errno or 0. */
	bool block_before, block_after, hard;
	bool has_partial, silent, late;
	uint32_t partial;
};

/** The whole state. */
struct sim {
	const struct sim_os *os;
	const struct kernel_profile *kernel;
	bool process_bound, enable_unwinds;
	bool memory_info_fixed; /**< Hand out 32 bytes of fault data; real kernels give 0. */
	bool allow_never;	/**< Codes may be raised that no kernel raises. */
	bool no_hws;
	bool has_store;	     /**< Processes can map memory of GPUs, see os.h. */
	uint64_t store_next; /**< Where the next memory object is put. */
	size_t n_gpus;
	struct sim_gpu gpus[SIM_GPUS_MAX];
	TAILQ_HEAD(, sim_process) processes;
	TAILQ_HEAD(, sim_call) pending;
	TAILQ_HEAD(, sim_injection) injections;
	uint32_t next_pasid;
	uint32_t progress_ms; /**< 0: queues do not advance. */
	uint64_t next_progress_ns, next_check_ns;
	uint64_t check_round;
	uint64_t crowd_until_ns; /**< Until then calls look at no others than those they are about; 0. */
	uint32_t partial;
	bool has_partial, silent; /**< Injections of the operation that is being executed. */
	/** Called when a process appears or its pidfd must no longer be watched. */
	void (*on_process)(void *data, struct sim_process *p, bool added);
	void *on_process_data;
};

/* ---- life (sim.c) ---- */
/** Make an empty machine that behaves as @p kernel. */
void sim_init(struct sim *s, const struct sim_os *os, const struct kernel_profile *kernel);
/** Add a GPU; only before the first open.  @return 0, -ENOSPC. */
int sim_gpu_add(struct sim *s, const struct gpu_profile *profile);
/** Complete every pending call with -EINTR: the device is about to go. */
void sim_interrupt_all(struct sim *s);
/**
 * End every process and free everything.  No call may be pending, no file open.  A zeroed object is
 * accepted.
 */
void sim_deinit(struct sim *s);

/**
 * Do what open(2) of the device does.
 * @return 0, -EINVAL (reset running, no GPU), -errno.
 */
int sim_open(struct sim *s, int tgid, struct sim_file *ret_file);
/** Do what the last close(2) of a file does; a file that is closed already is accepted. */
void sim_close(struct sim *s, struct sim_file *file);
/** Execute a call; call->complete runs exactly once, maybe before this returns. */
void sim_submit(struct sim *s, struct sim_call *call);
/** Tell that the caller of a pending call received a signal. */
void sim_interrupt(struct sim *s, struct sim_call *call);
/** How many bytes the driver itself wants for a command; 0 for unknown ones. */
size_t sim_command_size(const struct sim *s, uint32_t command);

/** Notice ends of address spaces (exec, exit) and act as the driver would. */
void sim_check_processes(struct sim *s);
/** The same for the process that has this grip. */
void sim_check_process(struct sim *s, int pidfd);
/** The same for one context, or NULL; it may be freed. */
void sim_check_context(struct sim *s, struct sim_process *p);
/** The same for the context of a process, and of whoever has its session. */
void sim_check_target(struct sim *s, int tgid);
/**
 * The same, unless there are very many processes and they were looked at just now: each costs a system call, and all
 * together much more than the call of one of them that begins with this.
 */
void sim_check_crowd(struct sim *s);
/** When sim_tick() wants to be called next; UINT64_MAX for never. */
uint64_t sim_next_deadline(const struct sim *s);
/** Do what time has made due: deadlines, progress of queues, a look at the processes. */
void sim_tick(struct sim *s);

/** CREATE_PROCESS: the file leaves the primary context and gets one of its own. */
int sim_context_create(struct sim *s, struct sim_call *call);
/** Find a living context, primary or not, by its PASID; NULL if there is none. */
struct sim_process *sim_context_find(struct sim *s, uint32_t pasid);
/**
 * Find the primary context of a living process, or of one that it shares its memory with; NULL if there is none.
 */
struct sim_process *sim_process_find(struct sim *s, int tgid);
/** Make the primary context of a process.  @return NULL with *ret_error. */
struct sim_process *sim_process_create(struct sim *s, int tgid, int *ret_error);
/** Find a GPU of a process; NULL if there is none. */
struct sim_device *sim_device_find(struct sim_process *p, uint32_t gpu_id);
/** Find a queue of a process; NULL if there is none. */
struct sim_queue *sim_queue_find(struct sim_process *p, uint32_t id);
/** Find a GPU; NULL if there is none. */
struct sim_gpu *sim_gpu_find(struct sim *s, uint32_t gpu_id);

/* ---- waiting (call.c) ---- */
/** Park a call; the caller then returns SIM_LATER. */
int sim_call_park(struct sim *s, struct sim_call *call, enum sim_wait wait,
		  struct sim_process *target);
/** Take a call off the list if it waits, and complete it; it is gone then. */
void sim_call_finish(struct sim *s, struct sim_call *call, int result);
/** Events or a handshake of @p target changed: complete the calls that waited for it. */
void sim_call_wake(struct sim *s, enum sim_wait wait, const struct sim_process *target);
/** Let go of the target that @p call was holding, and run the calls that waited for it. */
void sim_call_unlock(struct sim *s, struct sim_call *call);
/** Run @p run on the target under its lock, with the injections that were asked for @p op. */
int sim_call_locked(struct sim *s, struct sim_call *call, struct sim_process *target,
		    const char *op, int (*run)(struct sim *, struct sim_call *,
					       struct sim_process *));
/** Find what is asked for an operation, or begin it.  @return NULL without memory. */
struct sim_injection *sim_injection_get(struct sim *s, const char *op);
/** Release blocked calls of one operation (NULL: all) and forget their injections. */
void sim_injection_release(struct sim *s, const char *op);
/** Whether an operation has that name. */
bool sim_op_is_known(const char *op);
/** Run a call.  @return its result, or SIM_LATER. */
int sim_dispatch(struct sim *s, struct sim_call *call);
/** Complete or repeat what concerns a process whose address space ended. */
void sim_call_process_gone(struct sim *s, struct sim_process *p);
/** Complete the calls whose deadline has come. */
void sim_call_tick(struct sim *s, uint64_t now);

/* ---- debug operations (trap.c, snapshot.c) ---- */
/** The command DBG_TRAP: checks, then one of the operations. */
int sim_trap(struct sim *s, struct sim_call *call);
/** Do what DISABLE does; the death of the debugger does it as well. */
void sim_trap_disable(struct sim *s, struct sim_process *target);
/** Switch GPUs into debug mode; sets runtime_state on failure. */
void sim_trap_activate(struct sim *s, struct sim_process *target);
/** Take the GPUs out of debug mode, and let all queues run. */
void sim_trap_deactivate(struct sim *s, struct sim_process *target);
/** The operation GET_QUEUE_SNAPSHOT. */
int sim_queue_snapshot(struct sim *s, struct sim_call *call, struct sim_process *target);
/** The operation GET_DEVICE_SNAPSHOT. */
int sim_device_snapshot(struct sim *s, struct sim_call *call, struct sim_process *target);

/* ---- exceptions (event.c) ---- */
/**
 * Latch exceptions of a process, or of one of its queues or GPUs, and notify the debugger.  At most
 * one of @p q and @p d is set.
 * @return whether the debugger subscribed to any of them.
 */
bool sim_raise(struct sim *s, struct sim_process *p, struct sim_queue *q, struct sim_device *d,
	       uint64_t mask, bool in_target_context);
/**
 * Do what an interrupt of the hardware does: raise, and give to the runtime what the debugger did
 * not subscribe to.
 */
void sim_interrupt_queue(struct sim *s, struct sim_process *p, struct sim_queue *q, uint64_t mask);
/** Do the same for a memory fault, whose first record is kept. */
void sim_interrupt_fault(struct sim *s, struct sim_process *p, struct sim_device *d,
			 const struct kfdabi_memory_exception_data *fault);
/** Tell the runtime of a queue's exceptions: its error word, then its event. */
void sim_forward_queue_error(struct sim *s, struct sim_process *p, struct sim_queue *q,
			     uint64_t mask);
/** Tell the runtime of a memory fault; the queues stay off the hardware. */
void sim_forward_fault(struct sim *s, struct sim_process *p, struct sim_device *d);
/**
 * Write the byte to the debugger's descriptor.
 * @param writer  As in struct sim_os.
 */
void sim_notify(struct sim *s, struct sim_process *p, int writer);
/** The operation QUERY_DEBUG_EVENT. */
int sim_query_event(struct sim *s, struct sim_call *call, struct sim_process *target);
/** The operation QUERY_EXCEPTION_INFO. */
int sim_query_info(struct sim *s, struct sim_call *call, struct sim_process *target);

/* ---- queues (queue.c) ---- */
/** The command CREATE_QUEUE. */
int sim_queue_create(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command DESTROY_QUEUE, which waits while the queue is suspended. */
int sim_queue_destroy(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command UPDATE_QUEUE. */
int sim_queue_update(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command SET_CU_MASK. */
int sim_queue_set_cu_mask(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command GET_QUEUE_WAVE_STATE. */
int sim_queue_wave_state(struct sim *s, struct sim_call *call, struct sim_process *p);
/** @return for how long the queue was suspended since its creation, by whomever. */
uint64_t sim_queue_suspended_ns(const struct sim *s, const struct sim_queue *q);
/** The operation SUSPEND_QUEUES.  @return how many queues were suspended, -errno. */
int sim_queues_suspend(struct sim *s, struct sim_call *call, struct sim_process *target);
/** The operation RESUME_QUEUES.  @return how many queues were resumed, -errno. */
int sim_queues_resume(struct sim *s, struct sim_call *call, struct sim_process *target);
/** Let all queues of a process run, as the end of a session does. */
void sim_queues_resume_all(struct sim *s, struct sim_process *p);
/** Free all queues of a process, without any event. */
void sim_queues_free(struct sim *s, struct sim_process *p);
/** Whether a queue is on the hardware. */
bool sim_queue_is_running(const struct sim_queue *q);
/** Whether a queue can have waves. */
static inline bool sim_queue_is_compute(const struct sim_queue *q)
{
	return q->type == KFDABI_QUEUE_TYPE_COMPUTE || q->type == KFDABI_QUEUE_TYPE_COMPUTE_AQL;
}
/** Let running queues consume a packet each. */
void sim_queues_progress(struct sim *s);

/* ---- save areas (save_area.c) ---- */
/**
 * Write what the driver stores at SUSPEND: headers of all compute queues of the process, and waves
 * of those that are off the hardware.
 */
void sim_save_areas_write(struct sim *s, struct sim_process *p);

/* ---- the application's side (runtime.c, app_event.c) ---- */
/** The command RUNTIME_ENABLE, which waits for a debugger. */
int sim_runtime_enable(struct sim *s, struct sim_call *call, struct sim_process *p);
/** Take one answer of a debugger: a call that switches the runtime on or off is done. */
void sim_runtime_answered(struct sim_process *p);
/** The command CREATE_EVENT. */
int sim_event_create(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command DESTROY_EVENT. */
int sim_event_destroy(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command SET_EVENT. */
int sim_event_set(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command RESET_EVENT. */
int sim_event_reset(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command WAIT_EVENTS. */
int sim_events_wait(struct sim *s, struct sim_call *call, struct sim_process *p);
/** Signal an event, and complete the calls that waited for it. */
void sim_event_signal(struct sim *s, struct sim_process *p, struct sim_event *e);
/** Signal all memory events of a process, with what they carry. */
void sim_events_signal_memory(struct sim *s, struct sim_process *p,
			      const struct kfdabi_memory_exception_data *data);
/** Find an event of a process; NULL if there is none. */
struct sim_event *sim_event_find(struct sim_process *p, uint32_t id);
/** Whether a parked WAIT_EVENTS call is satisfied; fills its argument. */
bool sim_events_ready(struct sim *s, struct sim_call *call, int *ret_result);
/** End a parked WAIT_EVENTS call, as a signal does. */
void sim_events_interrupt(struct sim *s, struct sim_call *call);
/** Forget what a call waits for. */
void sim_waiters_free(struct sim_call *call);
/** Free all events of a process. */
void sim_events_free(struct sim_process *p);

/** The command GET_PROCESS_APERTURES, for up to seven GPUs. */
int sim_apertures(struct sim *s, struct sim_call *call, struct sim_process *p);
/** The command GET_PROCESS_APERTURES_NEW. */
int sim_apertures_new(struct sim *s, struct sim_call *call, struct sim_process *p);
/** Fill in the apertures of a GPU. */
void sim_aperture_fill(struct sim_gpu *gpu, struct kfdabi_process_apertures *ret);

#endif /* KFDSIM_SIM_H */
