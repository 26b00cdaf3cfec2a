/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_H
#define WORKER_CUDA_H

/**
 * @file cuda.h
 * The NVIDIA back end: struct target_ops over libcudbgshim.  Included in this directory only.
 *
 * The driver library is loaded when a session is enabled, after rights are dropped, once in the life
 * of the process.  A device is what the driver numbers, a queue is a context, a dispatch a grid, a
 * workgroup a block, a wave a warp, its unit a streaming multiprocessor.
 */

#include <stddef.h>
#include <stdint.h>

#include "agentd/worker/cuda/connect.h"
#include "agentd/worker/cuda/exception.h"
#include "agentd/worker/cuda/tracer.h"
#include "agentd/worker/cuda/warp.h"
#include "agentd/worker/mbarrier/mbarrier.h"
#include "agentd/worker/nccl/nccl.h"
#include "agentd/worker/spin/spin.h"
#include "agentd/worker/target/target.h"
#include "cudbgshim.h"
#include "cudbgshim_session.h"
#include "values/argument/kernels.h"

struct cuda_context {
	uint64_t handle;
	uint32_t dev;
	uint32_t number; /**< queue_id, in the order of the announcements. */
	uint32_t exceptions; /**< STOP_REASON_BIT() of those seen last. */
};

/** A loaded image of device code. */
struct cuda_module {
	uint64_t module, handle, context;
	uint64_t size;
	uint32_t dev;
	uint32_t number;     /**< As they were announced, from 1: the driver uses its handles again. */
	uint32_t version;    /**< Grows when functions in it were loaded. */
	uint32_t seen;	     /**< Version that start and end are of; 0: none. */
	uint64_t start, end; /**< Addresses of its code. */
	struct values_kernels kernels; /**< Of the same version. */
	struct mbarrier_sites mbarriers; /**< Likewise. */
	struct spin_sites spins; /**< Likewise. */
	struct nccl_functions nccl; /**< Likewise. */
	int error;	     /**< Why it could not be read. */
};

struct cuda_device {
	struct rpc_device d; /**< Without its exceptions; it points into the members behind. */
	uint64_t exceptions; /**< Exceptions that were announced. */
	struct cudbgshim_device facts;
	char pci[24];
	struct cudbgshim_state_reader *reader; /**< NULL until the first look. */
	const struct cudbgshim_state *state;   /**< State of the last look, borrowed. */
	bool suspended;			       /**< A client has suspended it. */
	bool stopped;			       /**< A look that is under way has stopped it. */
	bool faulted;			       /**< The engine stopped it; somebody has to be told. */
	bool blamed;			       /**< The engine named this device, for a fault. */
};

struct target_cuda {
	struct target t; /**< First: a struct target pointer is one of these. */
	struct cudbgshim_session *session;
	struct cudbgshim *shim; /**< NULL while the process has no GPU state. */
	struct cudbgshim_undo *undo; /**< Memory that the monitor holds, or own_undo. */
	struct cudbgshim_undo own_undo;
	uint64_t *left_suspended; /**< What is at IPC_UNDO_SUSPENDED; NULL: own_undo has no such word. */
	struct cuda_connect connect; /**< Open from the change of user on. */
	int mem_fd, proc_fd;
	struct cuda_tracer tracer; /**< Where the target's user may not trace it. */
	int timer_fd; /**< In event_fd, as is the session's; -1: none. */
	struct cuda_device *devices;
	size_t n_devices;
	struct cuda_context *contexts;
	size_t n_contexts, contexts_capacity;
	uint32_t last_context;
	struct cuda_asked *asked; /**< Of the waves read last, in their order; see cuda_waves_add_parts(). */
	struct cuda_module *modules;
	size_t n_modules, modules_capacity;
	uint32_t last_module;
	bool lost_news;	   /**< Memory ran out for a context or a module. */
	bool is_near_mps;  /**< It may be a client of MPS, which cannot be attached to. */
	bool wants_resume; /**< The engine has stopped the devices by itself. */
	uint64_t subscribed;
	uint32_t suspend_ticket; /**< While a device is suspended. */
	struct cuda_core *core; /**< The core that is being fetched, or NULL. */
	/* The image that code_read works on. */
	uint8_t *image;
	size_t image_size;
	uint32_t image_number, image_version; /**< Number and version of the image's module. */
};

/** @return the NVIDIA target that @p t is the first member of. */
static inline struct target_cuda *cuda_of(struct target *t)
{
	return (struct target_cuda *)(void *)t;
}

/* ------------------------------------------------------------------ errors.c ------------------ */

/**
 * Make an error of a failure of the API at @p op; end the session if it is over.
 * @return negative.
 */
int cuda_error(struct target_cuda *c, int r, const char *op, struct agent_err *err);
/** Make an error of the reason why attaching failed.  @return negative. */
int cuda_attach_error(struct target_cuda *c, struct agent_err *err);
/** Make an error of exhausted memory at @p op.  @return -ENOMEM. */
int cuda_no_memory(const char *op, struct agent_err *err);

/* ------------------------------------------------------------------ events.c ------------------ */

/** Take an event of the driver, as cudbgshim calls back.  @param user  The struct target_cuda. */
void cuda_on_event(void *user, const struct cudbgshim_event *e);
/** target_ops.event_drain. */
int cuda_event_drain(struct target *t);
/** target_ops.event_next. */
int cuda_event_next(struct target *t, struct target_event *ret, struct agent_err *err);
/** target_ops.event_done. */
int cuda_event_done(struct target *t, const struct target_event *e, struct agent_err *err);
/** target_ops.subscribe. */
int cuda_subscribe(struct target *t, uint64_t exceptions, bool hold, struct agent_err *err);
/**
 * @return the context with that handle, which is made if it was not announced; NULL without memory.
 */
struct cuda_context *cuda_context_get(struct target_cuda *c, uint64_t handle, uint32_t dev);
/** Wait for whatever an armed session waits for; no-op otherwise. */
void cuda_events_arm(struct target_cuda *c);

/* ------------------------------------------------------------------ attach.c ------------------ */

/**
 * Become the target's user in the sandbox for a vendor's library.
 * @param traces      As for sandbox_worker_driver(),
 * @param ret_notify  as is this.
 * @return 0 or -errno.
 */
int cuda_confine(const struct access_target *facts, bool traces, bool permissive, int *ret_notify);
/** Does it take a tracer (tracer.h) to call functions in the target? */
bool cuda_needs_tracer(const struct worker_options *o, const struct access_target *facts);
/**
 * Read the facts about the devices once, after the session came up.
 * @return 0, or negative with @p err.
 */
int cuda_begin(struct target_cuda *c, struct agent_err *err);

/* ------------------------------------------------------------------ devices.c ----------------- */

/** Read the facts about all devices.  @return 0, or negative with @p err. */
int cuda_devices_read(struct target_cuda *c, struct agent_err *err);
/** target_ops.devices. */
int cuda_devices(struct target *t, struct rpc_arena *a, struct target_device **ret, size_t *ret_n,
		 struct agent_err *err);
/** target_ops.queues: the contexts. */
int cuda_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret, size_t *ret_n,
		struct agent_err *err);
/** target_ops.suspended. */
size_t cuda_suspended(const struct target *t, uint32_t *ids, size_t max);
/** target_ops.suspend.  A context is suspended by suspending its device. */
int cuda_suspend(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
		 struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
		 struct agent_err *err);
/** target_ops.resume. */
int cuda_resume(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
		struct rpc_queue_result **ret, size_t *ret_n, struct agent_err *err);
/**
 * Stop the devices of a bit mask that are not suspended, for one look.
 * @return 0, or negative with @p err.
 */
int cuda_stop(struct target_cuda *c, uint64_t devices, struct agent_err *err);
/**
 * Let the devices that cuda_stop() has stopped run again.
 * @return 0, or negative after target_end().
 */
int cuda_go(struct target_cuda *c, struct agent_err *err);
/** @return a bit mask of the devices that queues of @p from belong to. */
uint64_t cuda_devices_of(const struct target_waves_from *from);

/* ------------------------------------------------------------------ waves.c ------------------- */

/** target_ops.waves. */
int cuda_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
	       struct target_waves *ret, struct agent_err *err);
/**
 * Do the part of cuda_waves() for which the devices have to stand still.
 * @param ret  Filled in but for what the stop took.
 * @param ret_devices  Devices whose state was read, one bit each.
 * @return 0, or -errno of the API.
 */
int cuda_waves_read(struct target_cuda *c, const struct target_waves_from *from,
		    uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret,
		    uint64_t *ret_devices);
/**
 * Add the parts of the waves that cuda_waves_read() has filled in.  Nothing has to stand still for
 * this, but nothing of the devices may have been read since, and the arena must be the same.
 */
void cuda_waves_add_parts(struct target_cuda *c, struct rpc_arena *a, struct target_waves *ret);
/** Add to the waves how long the devices stood. */
void cuda_waves_stopped(const struct target_waves_from *from, uint64_t stopped_us,
			uint64_t agent_us, struct rpc_arena *a, struct target_waves *ret);
/** Read the state of a stopped device.  @return 0 or -errno of the API. */
int cuda_read_state(struct target_cuda *c, struct cuda_device *d);
/** Look at a warp of a device whose state was read.  @param ret  Points into that state. */
void cuda_warp_of(const struct cuda_device *d, uint32_t sm, uint32_t warp, struct cuda_warp *ret);
/**
 * Ask for the exception of each lane: a batched answer has one for all lanes of a warp, whichever
 * lane caused it.  This costs a call, if all lanes have one.
 * @param lanes  Where the exceptions lie from then on.
 * @return false: the driver does not say.  Of lanes at different places the first that executes
 *         then stands for those that raised it.
 */
bool cuda_warp_ask_exceptions(struct target_cuda *c, struct cuda_warp *w,
			      struct cudbgshim_lanes *lanes);
/** Exceptions of the lanes of a warp that is apart, where the state of its device has one for all. */
struct cuda_asked {
	struct cuda_asked *next;
	uint32_t wave; /**< Position of the wave. */
	bool has;      /**< Else the state has them. */
	uint32_t exceptions[CUDBGSHIM_MAX_LANES];
};
/**
 * Describe one warp as a wave; leader and parts are left alone.
 * @param g      NULL: its grid is not known.
 * @param until  Monotonic, in ns: the driver is not asked for exceptions of lanes after that.
 * @return false: the lanes are at different places, and which of them raised the exception of the
 *         warp is not known: see cuda_warp_ask_exceptions().
 */
bool cuda_fill_wave(struct target_cuda *c, const struct cuda_device *d, uint32_t sm, uint32_t warp,
		    const struct cudbgshim_grid *g, uint64_t until, struct cuda_asked *asked,
		    struct wave *ret);
/** Add the parts of a warp that was described.  The device may run again.  @param asked  May be NULL. */
void cuda_wave_add_parts(const struct cuda_device *d, const struct cuda_asked *asked,
			 struct cuda_parts *parts, struct wave *w);
/**
 * @return of the warps @p left of a multiprocessor, as bits, those in the block of the first one.
 */
uint64_t cuda_warps_of_block(const struct cudbgshim_warp *warps, uint64_t left);

/* ------------------------------------------------------------------ exited.c ------------------ */

/**
 * Find the exception that a multiprocessor of a stopped device has recorded, and no warp on it
 * shows.
 * @param ret_pc  0: not recorded.
 * @return 1, 0 (there is none), -errno (there is one, and the driver does not say which).
 */
int cuda_exited_of(struct target_cuda *c, const struct cuda_device *d, uint32_t sm,
		   uint32_t *ret_code, uint64_t *ret_pc);
/**
 * Add those of all multiprocessors of the devices whose state is at hand.
 * @return what is missing of them, NULL for nothing.
 */
const char *cuda_exited_add(struct target_cuda *c, uint64_t devices, struct rpc_arena *a,
			    struct target_waves *ret);

/* ------------------------------------------------------------------ registers.c --------------- */

/** target_ops.registers. */
int cuda_registers(struct target *t, const struct target_waves_from *from,
		   const struct target_registers_wanted *what, struct rpc_arena *a,
		   struct rpc_wave_registers *ret, uint64_t *ret_stopped_us, struct agent_err *err);
/** target_ops.wave_memory. */
int cuda_wave_memory(struct target *t, const struct target_waves_from *from,
		     const struct target_wave_memory *what, struct rpc_arena *a,
		     struct agent_err *err);
/** target_ops.memory; the devices stop for it if they have to. */
ssize_t cuda_memory(struct target *t, uint64_t address, void *buf, uint32_t size,
		    struct agent_err *err);
/** List the return addresses of the lane that speaks for a warp; the list is empty on failure. */
void cuda_read_callers(struct target_cuda *c, const struct cuda_device *d, uint32_t sm,
		       uint32_t warp, struct rpc_arena *a, struct rpc_caller **ret, size_t *ret_n);
/**
 * Find out what a warp uses.
 * @return whether the driver says how many registers, as it does from 12.8 on; else @p ret has all
 *         that there are.
 */
bool cuda_warp_resources(struct target_cuda *c, const struct cudbgshim_place *at,
			 struct cudbgshim_resources *ret);
/** Read the registers of one warp of a stopped device.  @return 0, or -errno. */
int cuda_registers_read(struct target_cuda *c, struct cuda_device *d, uint32_t sm, uint32_t warp,
			const struct target_registers_wanted *what, const struct wave *wave,
			struct rpc_arena *a, struct rpc_wave_registers *ret);

/**
 * Read which barrier objects warps wait for, while the devices stand still.
 * @param deadline_ns  Of the stop.
 * @return what is missing of them, in the arena; NULL for nothing.
 */
const char *cuda_mbarriers_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a,
				struct target_waves *ret);
/** Read the convergence barriers of warps whose lanes are at different places, likewise. */
const char *cuda_convergence_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a,
				  struct target_waves *ret);
/** Read which words warps poll, likewise.  @param ret_missing  What is missing of them: see spins_missing(). */
void cuda_spins_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret,
		     const char *ret_missing[SPINS_MISSING_MAX]);

/* ------------------------------------------------------------------ arguments.c --------------- */

/** Read the images that are new, before the devices stop: some time, not more. */
void cuda_arguments_prepare(struct target_cuda *c);
/** @return where the parameters of a grid lie; NULL: nothing is known of its kernel. */
const struct values_kernel *cuda_arguments_of(struct target_cuda *c, uint32_t dev,
					      const struct cudbgshim_grid *g);
/**
 * Read all parameters of a grid while its device stands still.
 * @param at   A warp of it.
 * @param buf  Room for k->size bytes.
 * @return false when the driver does not show them.
 */
bool cuda_arguments_read(struct target_cuda *c, const struct cudbgshim_place *at, uint64_t grid,
			 const struct values_kernel *k, uint8_t *buf);
/** Read the communicators of NCCL's kernels, while the devices stand still; their parameters were copied. */
void cuda_nccl_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret);
/**
 * Copy the parameters of dispatches that the waves are of, while the devices stand still.
 * @param deadline_ns  Of the stop; what is not copied until then is not in the list.
 */
void cuda_arguments_copy(struct target_cuda *c, const struct target_waves_from *from,
			 uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret);

/* ------------------------------------------------------------------ code.c -------------------- */

/** Find out what is asked often of a module, if that was not done yet. */
void cuda_code_look(struct target_cuda *c, struct cuda_module *m);
/** Free what was found out of a module. */
void cuda_module_deinit(struct cuda_module *m);

/** target_ops.code_list. */
int cuda_code_list(struct target *t, struct rpc_arena *a, struct code_list *ret);
/** target_ops.code_stat. */
int cuda_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret);
/** target_ops.code_read. */
ssize_t cuda_code_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
		       size_t size);
/** target_ops.code_done. */
void cuda_code_done(struct target *t);

/* ------------------------------------------------------------------ core_write.c -------------- */

/** target_ops.core_begin. */
int cuda_core_begin(struct target *t, const struct target_waves_from *from,
		    const struct target_core_wanted *what, struct rpc_arena *a,
		    struct target_core *ret, struct agent_err *err);
/** target_ops.core_read. */
int cuda_core_read(struct target *t, uint64_t offset, void *buf, uint32_t size, uint64_t *ret_lost,
		   struct agent_err *err);
/** target_ops.core_at. */
const void *cuda_core_at(struct target *t, uint64_t offset, uint64_t *ret_size);
/** target_ops.core_end. */
void cuda_core_end(struct target *t);

/* ------------------------------------------------------------------ probe.c ------------------- */

/**
 * Does a process map libcuda?
 * @param maps_fd  Its open list of mappings; -1: it cannot be read.
 * @return 1, 0, -1 when the list cannot be read.
 */
int cuda_maps_use(int maps_fd);
/** @return whether there is a device node of the driver's kernel part. */
bool cuda_has_nodes(void);
/** @return whether the process has that node open, wherever it got it from. */
bool cuda_uses_nodes(pid_t pid);
#define CUDA_CONTROL_NODE "/dev/nvidiactl"
#define CUDA_NODES_HINT "load the nvidia module; in a container, pass the devices in"
/**
 * @return whether an MPS daemon is where the process would look for one.
 * @param environ_fd  Its /proc/PID/environ; -1: it has no say.
 * @param root_fd     Its root directory.
 * @param ret_path    The daemon's pipe.
 */
bool cuda_is_near_mps(int environ_fd, int root_fd, char *ret_path, size_t size);
/** target_ops.rescue. */
int cuda_rescue(const struct worker_options *o);
/** target_ops.users. */
int cuda_users(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
	       struct target_user **ret, size_t *ret_n, struct agent_err *err);
/** target_ops.checks. */
int cuda_checks(const struct worker_options *o, const struct access_target *facts,
		struct rpc_arena *a, struct rpc_check *checks, size_t capacity, size_t *ret_n);

#endif /* WORKER_CUDA_H */
