/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_SIM_H
#define CUDASIM_SIM_H

/**
 * @file sim.h
 * The simulated GPUs as one process sees them: devices, contexts, modules, grids, warps, and the
 * debug session on top.
 *
 * One thread touches all of this.  Handles and device addresses are invented here; registers that
 * were not planted have a value that is computed from where they are (sim_register_default()), so
 * that 8,448 warps of 32 lanes need no table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "libcudbgshim/src/cudbg_abi.h"
#include "sim/cuda/wire/wire.h"

#define SIM_DEVICES_MAX 8u
#define SIM_SMS_MAX     CUDBGABI_MAX_SMS
#define SIM_WARPS_MAX   CUDBGABI_MAX_WARPS
#define SIM_LANES       32u
#define SIM_INSTRUCTION 16u /* Bytes, on Volta and later. */
#define SIM_STACK_MAX   16u
#define SIM_EVENT_SIZE  92u
#define SIM_EVENTS_MAX  65536u
#define SIM_NAME_MAX    64u
#define SIM_PREDICATES  7u
#define SIM_UREGISTERS  63u
#define SIM_SHARED_BASE UINT64_C(0x7e0000000000) /* Generic windows begin here. */
#define SIM_LOCAL_BASE  UINT64_C(0x7d0000000000)
#define SIM_WINDOW_SIZE UINT64_C(0x1000000)
#define SIM_CODE_BASE   UINT64_C(0x7f0a00000000)
#define SIM_ALLOC_BASE  UINT64_C(0x7f1000000000)

/** Coordinates or extents. */
struct sim_dim {
	uint32_t x, y, z;
};

/** A function of a module. */
struct sim_function {
	char *name; /**< Mangled, as in the cubin. */
	uint64_t handle, address, size, file_offset;
	uint32_t section, symbol; /**< Numbers in its ELF file. */
	uint32_t registers;
	uint32_t params_at, params_size; /**< Place of its parameters in their space. */
	bool entry; /**< May be launched. */
};

/** A loaded cubin, and its copy with addresses filled in. */
/** Device memory of a module: its variables. */
struct sim_data {
	struct sim_data *next;
	bool constant; /**< It is bank 3 of constant memory. */
	uint64_t address, size;
	uint8_t bytes[];
};

struct sim_module {
	struct sim_module *next;
	struct sim_data *data;
	uint64_t handle, image_handle, context;
	uint32_t dev;
	uint8_t *image, *relocated;
	size_t size;
	struct sim_function *functions;
	size_t n_functions;
	bool system;
};

/** A context of the process. */
struct sim_context {
	struct sim_context *next;
	uint64_t handle;
	uint32_t dev, tid;
};

/** What a kernel was launched with; it stays as long as the process. */
struct sim_params {
	struct sim_params *next;
	uint64_t address, size; /**< In the parameter space. */
	uint8_t bytes[];
};

/** A launched kernel. */
struct sim_grid {
	struct sim_grid *next;
	uint64_t id, context, parent;
	struct sim_module *module;
	struct sim_function *function;
	uint32_t dev, tid;
	struct sim_dim grid, block, cluster;
	uint32_t shared, type, origin, status;
	struct sim_params *params; /**< NULL: none were given. */
	uint64_t progress; /**< Instructions per millisecond of running; 0: spins in place. */
	uint64_t repeat_ns; /**< Running time after which it ends and is launched anew; 0: never. */
	uint64_t ran_ns;    /**< Running time, up to when its GPU was suspended last. */
	uint64_t launched_ns;
	uint64_t loop_at, loop_size; /**< Code that running warps stay in; size 0: the whole function. */
};

/** A slot for a warp on an SM. */
struct sim_warp {
	struct sim_grid *grid; /**< NULL: not resident. */
	struct sim_dim block, cluster, target_block;
	uint32_t base_thread; /**< Linear number of lane 0 in its block. */
	uint32_t valid, active, in_syscall;
	uint32_t exception, exception_lanes;
	uint64_t pc, idle_pc; /**< Virtual addresses of active and of other lanes. */
	uint64_t apart; /**< Each lane is so many bytes further than the one before. */
	uint64_t error_pc, breakpoint;
	bool error_pc_valid, target_valid, broken, changed;
	uint32_t barrier; /**< enum CUDBGBarrierScope of waiting lanes. */
};

/** A GPU of the process. */
struct sim_device {
	uint32_t n_sms, n_warps, n_registers;
	uint32_t pci_bus, pci_device;
	char name[SIM_NAME_MAX], chip[SIM_NAME_MAX], sm[SIM_NAME_MAX];
	struct sim_warp *warps; /**< All slots: n_sms * n_warps. */
	bool suspended; /**< As the session's engine knows it. */
	bool left;	/**< It stands still since its debugger died, and the engine takes it for running. */
	bool told; /**< getDeviceInfo(FULL) was answered: UPDATE may follow. */
	uint64_t resumed_ns;
	uint32_t exception, sm_exception[SIM_SMS_MAX];
	uint64_t sm_error_pc[SIM_SMS_MAX];
	bool sm_changed[SIM_SMS_MAX];
};

/** Kinds of memory. */
enum sim_space {
	SPACE_GLOBAL,
	SPACE_SHARED,
	SPACE_LOCAL,
	SPACE_PARAM,
	SPACE_CONST,
	SPACE_PINNED,
	SPACE_COUNT
};

/** Planted memory.  Coordinates that do not matter for the space are 0. */
struct sim_region {
	struct sim_region *next;
	enum sim_space space;
	uint32_t dev, sm, warp, lane;
	uint64_t grid; /**< Shared and parameter memory. */
	struct sim_dim block;
	uint64_t address, size;
	bool managed;
	uint8_t *bytes;
};

/** Kinds of registers. */
enum sim_register {
	REG_NORMAL,
	REG_UNIFORM,
	REG_PREDICATES,
	REG_UNIFORM_PREDICATES,
	REG_CC,
	REG_RPC
};

/** A register that has another value than its default; the newest one counts. */
struct sim_planted {
	struct sim_planted *next;
	enum sim_register kind;
	uint32_t dev, sm, warp, lane, number, value;
	uint32_t sms, warps, lanes; /**< That have it, from there on: 1 or more. */
};

/** The call stack of some lanes. */
struct sim_stack {
	struct sim_stack *next;
	uint32_t dev, sm, warp, lanes, depth, syscall_depth;
	uint64_t address[SIM_STACK_MAX]; /**< Innermost first. */
};

/** The state of the convergence barriers of a warp, in place of what would follow from its lanes. */
struct sim_convergence {
	struct sim_convergence *next;
	uint32_t dev, sm, warp;
	struct cudbgabi_cbu_warp_state state;
};

/** A breakpoint of the debugger. */
struct sim_breakpoint {
	struct sim_breakpoint *next;
	uint64_t handle, address;
	uint32_t dev;
	bool enabled;
};

/** A log message that the debugger has not fetched. */
struct sim_log {
	struct sim_log *next;
	uint64_t time_ns;
	uint32_t tid, level;
	char text[CUDBGABI_MAX_LOG_LEN];
};

/** A queue of events, each SIM_EVENT_SIZE bytes; those from first on wait. */
struct sim_queue {
	uint8_t (*events)[SIM_EVENT_SIZE];
	size_t n, first, capacity;
};

/** What goes wrong with a debugger call. */
enum fault_kind {
	FAULT_RESULT,
	FAULT_DELAY,
	FAULT_HANG,
	FAULT_KILL_TARGET,
	FAULT_KILL_ENGINE,
	FAULT_TRUNCATE
};

/** A fault that the script wants for calls of a slot. */
struct sim_fault {
	struct sim_fault *next;
	enum fault_kind kind;
	uint32_t slot; /**< SLOT_COUNT: every one. */
	uint32_t value, from, count;
	uint32_t seen;
};

/** How far the debug session is. */
enum sim_phase { PHASE_NONE, PHASE_ENGINE, PHASE_REPLAY, PHASE_ATTACHED, PHASE_DETACHING };
/** What comes of the events at attach. */
enum sim_replay { REPLAY_AUTO, REPLAY_NONE, REPLAY_HANG, REPLAY_ENDLESS };
/** What comes of attaching again after a detach. */
enum sim_second { SECOND_OK, SECOND_INACTIVE, SECOND_REFUSED };

/** Wishes of the script that are no state of a GPU. */
struct sim_script {
	enum sim_replay replay;
	bool replay_reverse, let_go, no_complete;
	uint32_t replay_batch; /**< Events per round; 0: all. */
	uint32_t replay_extra; /**< Meaningless but legal events mixed in. */
	enum sim_second second;
	uint32_t attach_result, attach_times;
	uint32_t attach_delay_ms;
	bool attach_kill; /**< The target dies when the engine comes up. */
	bool mps;
	bool same_regions; /**< Lists of managed memory begin with the first region. */
	uint32_t few_registers; /**< readRegisterRange gives no more; 0: all. */
	uint32_t grow_device, grow_sm, grow_warp, grow_lane;
	uint32_t unknown_attr; /**< Bytes of a warp attribute that no client knows yet. */
	bool always_full;
};

/** A process that uses GPUs, and the debug session on it. */
struct sim_process {
	struct sim_process *next;
	struct sim *sim;
	int pid;
	struct sim_device devices[SIM_DEVICES_MAX];
	uint32_t n_devices;
	struct sim_context *contexts;
	struct sim_module *modules;
	struct sim_grid *grids;
	struct sim_region *regions;
	struct sim_params *params;
	struct sim_planted *planted;
	struct sim_stack *stacks;
	struct sim_convergence *convergences; /**< The newest one counts. */
	struct sim_breakpoint *breakpoints;
	struct sim_log *logs;
	struct sim_fault *faults;
	struct sim_script script;
	uint64_t next_handle, next_grid, next_code, next_alloc;

	/* The debug session. */
	enum sim_phase phase;
	uint32_t label, session, capabilities, release;
	uint32_t engagements;
	bool ipc_flag, initialized, broken_api;
	struct sim_queue sync, async, replay;
	bool owes_ack, ask_pending, launch_defer;
	bool let_go; /**< The engine was told that the detach is complete. */
	uint64_t asked_ns;
	bool launched; /**< cudbgIpcFlag was set before cuInit: events are kept for initialize(). */
	uint32_t calls; /**< How many debugger calls were answered. */
	uint32_t calls_of[SLOT_COUNT]; /**< The same, each kind by itself. */
	uint32_t app_resume_flag;
};

/** What the core asks of the owner of the connections; the fuzzer has its own. */
struct sim_os {
	void (*notify)(struct sim_process *p, uint32_t tid, uint32_t timeout);
	void (*ask_engine)(struct sim_process *p, enum wire_ask ask, uint32_t initialized,
			   uint32_t resume);
	void (*release_app)(struct sim_process *p); /**< Sync events were acknowledged. */
	void (*kill_target)(struct sim_process *p);
	uint64_t (*now_ns)(void);
};

/** All processes. */
struct sim {
	const struct sim_os *os;
	struct sim_process *processes;
	char *script; /**< Run for every new process; NULL: none. */
};

/* ---- process.c ---- */
/** Make a process with one GPU, and run the script for it.  @return NULL if that fails. */
struct sim_process *sim_process_create(struct sim *s, int pid);
/** Free a process and everything in it; NULL is allowed. */
void sim_process_destroy(struct sim_process *p);
/** Find a process by its number; NULL if there is none. */
struct sim_process *sim_process_find(struct sim *s, int pid);
/** Find the process with that debug session; NULL if there is none. */
struct sim_process *sim_process_find_session(struct sim *s, uint32_t label, uint32_t session);

/**
 * Give a process n GPUs like the model, before any launch.  @return 0, -EBUSY, -ERANGE, -ENOMEM.
 */
int sim_devices_set(struct sim_process *p, uint32_t n, const struct sim_device *model);
/** The slot of a warp; the coordinates must be valid. */
struct sim_warp *sim_warp_at(struct sim_process *p, uint32_t dev, uint32_t sm, uint32_t warp);
/** The pc of a lane. */
uint64_t sim_lane_pc(const struct sim_warp *w, uint32_t lane);
/** The index of a lane's thread in its block. */
struct sim_dim sim_thread_idx(const struct sim_warp *w, uint32_t lane);
/** The exception that one lane reports. */
uint32_t sim_lane_exception(const struct sim_warp *w, uint32_t lane);
/** Note that a warp has changed, for getDeviceInfo. */
void sim_warp_touch(struct sim_process *p, uint32_t dev, uint32_t sm, struct sim_warp *w);
/** One bit for every device that has a broken warp. */
uint64_t sim_devices_broken(const struct sim_process *p);
/** One bit for every device that has an exception. */
uint64_t sim_devices_faulted(const struct sim_process *p);
/** One bit for every SM that has an exception, 64 of them in a word. */
uint64_t sim_sm_exceptions(const struct sim_process *p, uint32_t dev, uint32_t word);

/* ---- registers and memory: memory.c ---- */
/** The value of a register that was not planted: a number that tells registers apart. */
uint32_t sim_register_default(enum sim_register kind, uint32_t dev, uint32_t sm, uint32_t warp,
			      uint32_t lane, uint32_t number);
/** The value of a register; @p at is device, SM, warp, lane. */
uint32_t sim_register_get(const struct sim_process *p, enum sim_register kind, const uint64_t at[4],
			  uint32_t number);
/** Plant the value of a register.  @return 0, -ENOMEM. */
int sim_register_set(struct sim_process *p, enum sim_register kind, const uint64_t at[4],
		     uint32_t number, uint32_t value);
/** The same of all lanes of @p model, of which @c next does not count.  @return 0, -ENOMEM. */
int sim_registers_plant(struct sim_process *p, const struct sim_planted *model);
/** Plant memory; its bytes belong to the process after success.  @return 0, -ENOMEM. */
int sim_region_add(struct sim_process *p, const struct sim_region *model);
/**
 * Find the region of that space that holds [address, address + size) and belongs to the place; NULL
 * if there is none.
 */
struct sim_region *sim_region_find(struct sim_process *p, enum sim_space space,
				   const uint64_t at[4], uint64_t address, uint64_t size);
/** Free all planted memory. */
void sim_regions_free(struct sim_process *p);
/** The bytes of a generic or global address as that lane sees it, writable; NULL if not mapped. */
uint8_t *sim_generic(struct sim_process *p, const uint64_t at[4], uint64_t address, uint64_t size);
/** The bytes of variables of loaded modules, writable; NULL where none is. */
uint8_t *sim_data_find(const struct sim_process *p, uint64_t address, uint64_t size);
/** The bytes of code of loaded modules; NULL where none is loaded. */
const uint8_t *sim_code(const struct sim_process *p, uint32_t dev, uint64_t address, uint64_t size);

/* ---- cubin.c ---- */
/**
 * Load an ELF image, and list its functions and its variables' memory.  It fails on anything that is
 * no little-endian 64-bit ELF file.
 * @param base     Address of the first section with code.
 * @param ret_end  First address behind them and the variables.
 * @return 0, -EBADMSG, -ENOMEM; @p m owns what was allocated in any case: cubin_unload().
 */
int cubin_load(const uint8_t *image, size_t size, uint64_t base, struct sim_module *m,
	       uint64_t *ret_end);
/** Free what was allocated. */
void cubin_unload(struct sim_module *m);

/* ---- place.c: contexts, modules, grids, running ---- */
/** Make a context; the debugger hears of it.  @return NULL without memory. */
struct sim_context *sim_context_add(struct sim_process *p, uint32_t dev, uint32_t tid);
/** Destroy a context with its modules.  @return 0, -ENOENT. */
int sim_context_remove(struct sim_process *p, uint64_t handle);
/** Load a cubin into a context.  @return 0, -ENOENT, or what cubin_load() says. */
int sim_module_add(struct sim_process *p, uint64_t context, const void *image, size_t size,
		   bool system, struct sim_module **ret);
/** Free all modules, without events. */
void sim_modules_free(struct sim_process *p);
/** Unload a module; its grids end.  @return 0, -ENOENT. */
int sim_module_remove(struct sim_process *p, uint64_t handle);
/** Find a function by its name, or by its handle if the name is NULL. */
struct sim_function *sim_function_find(struct sim_process *p, uint64_t handle, const char *name,
				       struct sim_module **ret_module);
/** Find the function that holds an address; NULL if there is none. */
struct sim_function *sim_function_at(struct sim_process *p, uint64_t address,
				     struct sim_module **ret_module);
/**
 * Launch a grid: its blocks are put on the SMs until these are full, beginning with first_sm.
 * @return 0, -ENODEV, -EINVAL, -ENOMEM.
 */
int sim_grid_launch(struct sim_process *p, const struct sim_grid *model, uint32_t first_sm,
		    uint64_t *ret_id);
/** Put a block that had no room on an SM, the nth of the grid.  @return 0, -ENOENT, -EINVAL, -EBUSY (no room). */
int sim_grid_place(struct sim_process *p, uint64_t id, uint64_t block, uint32_t sm);
/** End a grid; its warps leave the SMs.  @return 0, -ENOENT. */
int sim_grid_finish(struct sim_process *p, uint64_t id);
/** Find a grid by its id; NULL if there is none. */
struct sim_grid *sim_grid_find(struct sim_process *p, uint64_t id);

/* ---- run.c: suspended and running ---- */
/** Suspend a GPU; warps have moved on by then. */
void sim_device_suspend(struct sim_process *p, uint32_t dev);
/** The debugger has died: a GPU that is suspended stays so, and the next session's engine does not know. */
void sim_device_leave(struct sim_process *p, uint32_t dev);
/** Let a GPU run; warps leave their breakpoints.  One that is not known to be suspended stays as it is. */
void sim_device_resume(struct sim_process *p, uint32_t dev);
/** Whether all GPUs are suspended. */
bool sim_all_suspended(const struct sim_process *p);
/**
 * Stop everything since a warp broke or faulted by itself, and tell the debugger, if there is one.
 */
void sim_stop(struct sim_process *p);
/** Raise an exception in lanes of a warp; @p at is device, SM, warp.  @return 0, -ENOENT. */
int sim_raise(struct sim_process *p, const uint64_t at[3], uint32_t lanes, uint32_t exception,
	      uint64_t error_pc);
/** Let running warps reach breakpoints.  It is called now and then. */
void sim_run(struct sim_process *p);
/** Step a warp by n instructions.  @return 0, -EBUSY (it has an exception). */
int sim_step(struct sim_process *p, const uint64_t at[3], uint32_t n);
/** Set a breakpoint.  @return 0, -ENOENT (no code there), -ENOMEM. */
int sim_breakpoint_set(struct sim_process *p, uint32_t dev, uint64_t address, uint64_t *ret_handle);
/** Remove a breakpoint.  @return 0, -ENOENT. */
int sim_breakpoint_unset(struct sim_process *p, uint32_t dev, uint64_t address);
/** End the session of a debugger that closed its connection. */
void sim_debugger_gone(struct sim_process *p);

/* ---- event.c ---- */
/** Free a queue, which is empty then. */
void sim_queue_deinit(struct sim_queue *q);
/** The oldest event that waits; NULL if none does. */
const uint8_t *sim_queue_peek(const struct sim_queue *q);
/** Drop the oldest event. */
void sim_queue_pop(struct sim_queue *q);
/** Append one event with that payload.  @return 0, -ENOSPC, -ENOMEM. */
int sim_queue_push(struct sim_queue *q, uint32_t kind, const void *payload, size_t size);
/** Append an event about a context. */
void event_context(struct sim_queue *q, uint32_t kind, const struct sim_context *c);
/** Append an event about a module. */
void event_module(struct sim_queue *q, uint32_t kind, const struct sim_module *m);
/** Append the event that functions of a module were loaded. */
void event_functions(struct sim_queue *q, const struct sim_module *m);
/** Append an event about a grid. */
void event_grid(struct sim_queue *q, uint32_t kind, const struct sim_grid *g);
/** Whether a debugger is attached that said so with cudbgIpcFlag. */
bool sim_events_wanted(const struct sim_process *p);
/** Call the debugger's callback; a sync event keeps the caller waiting until it is acknowledged. */
void sim_events_announce(struct sim_process *p, uint32_t tid);

/* ---- session.c: attach, replay, detach ---- */
/**
 * An engine came up in the process.
 * @return CUDBGResult, SESSION_INACTIVE, or SESSION_FATAL: the vendor's engine crashes then.
 */
uint32_t session_engine(struct sim_process *p, uint32_t label, uint32_t session,
			uint32_t capabilities, uint32_t *ret_resume);
#define SESSION_INACTIVE UINT32_C(0x10000)
#define SESSION_FATAL	 UINT32_C(0x10001)
/** initialize() of the debugger.  @return CUDBGResult. */
uint32_t session_initialize(struct sim_process *p);
/** The debugger acknowledged the sync events. */
void session_acknowledge(struct sim_process *p);
/** The debugger requested the cleanup before a detach. */
void session_cleanup(struct sim_process *p, uint32_t flag);
/** finalize() of the debugger. */
void session_finalize(struct sim_process *p);
/** The engine thread answered: it runs, and this is its cudbgIpcFlag. */
void session_engine_answer(struct sim_process *p, bool ipc_flag);
/**
 * Do what is due every few milliseconds: ask again what was not answered well, let warps reach
 * breakpoints.
 */
void session_tick(struct sim_process *p);

/* ---- call.c ---- */
/** A debugger call that is being answered. */
struct call {
	struct sim_process *p;
	const struct slot_request *q;
	const uint64_t *in;
	struct sim_device *dev; /**< Set when the slot names a device; the others likewise. */
	struct sim_warp *warp;
	struct out *out;
	size_t n_out; /**< Outputs written. */
};
/** Answers a call.  @return CUDBGResult. */
typedef uint32_t call_fn(struct call *c);

/** Append the next output, in the order of the prototype; it is cut to the caller's room. */
void call_out(struct call *c, const void *data, size_t size);
/** Append an output of 32 bits. */
void call_u32(struct call *c, uint32_t v);
/** Append an output of 64 bits. */
void call_u64(struct call *c, uint64_t v);
/** Append an output of one byte. */
void call_u8(struct call *c, uint8_t v);
/** Append three coordinates. */
void call_dim(struct call *c, const struct sim_dim *d);
/** Append a text with its NUL. */
void call_text(struct call *c, const char *text);
/** How many bytes buffer i has room for. */
size_t call_room(const struct call *c, size_t i);

/** What else the scripted faults want done with the answer. */
struct call_fate {
	uint32_t delay_ms;
	bool hang, kill_engine, kill_target;
};
/** Answer one request.  @return CUDBGResult; outputs go to @p out. */
uint32_t call_answer(struct sim_process *p, const struct slot_request *q, struct out *out,
		     struct call_fate *ret_fate);
/**
 * Functions of the other files, one table each, by slot; a call is in one of them, the others have
 * NULL.
 */
extern call_fn *const calls_state[SLOT_COUNT];
extern call_fn *const calls_memory[SLOT_COUNT];
extern call_fn *const calls_session[SLOT_COUNT];
extern call_fn *const calls_batch[SLOT_COUNT];

/* ---- command.c ---- */
/**
 * Run one script line, or several separated by ';' or newlines.
 * @param blob  Bytes behind the line (module images); NULL, 0 otherwise.
 * @param ret   Answer of the last command.
 * @return 0 or -errno: -EINVAL (syntax), -ENODEV, -ENOENT (no such thing), ...
 */
int command_run(struct sim_process *p, const char *text, const void *blob, size_t size,
		struct out *ret);
/** Print all commands. */
void command_help(void);

/* ---- state.c ---- */
/** Append the whole state as one JSON document with a final newline. */
void state_json(const struct sim *s, struct out *o);

#endif /* CUDASIM_SIM_H */
