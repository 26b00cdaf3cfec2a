/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_SIM_H
#define CUDASIM_SIM_H

/**
 * @file sim.h
 * The simulated GPUs as one process sees them: devices, contexts, modules, grids, warps, and the
 * debug session on top.
 *
 * Everything is touched by one thread.  Handles and device addresses are invented here; registers
 * that nobody planted have a value that is computed from where they are (sim_register_default()),
 * so that 8,448 warps of 32 lanes need no table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "libcudbgshim/src/cudbg_abi.h"
#include "wire.h"

#define SIM_DEVICES_MAX 8u
#define SIM_SMS_MAX     CUDBGABI_MAX_SMS
#define SIM_WARPS_MAX   CUDBGABI_MAX_WARPS
#define SIM_LANES       32u
#define SIM_INSTRUCTION 16u /* bytes, Volta and later */
#define SIM_STACK_MAX   16u
#define SIM_EVENT_SIZE  92u
#define SIM_EVENTS_MAX  65536u
#define SIM_NAME_MAX    64u
#define SIM_PREDICATES  7u
#define SIM_UREGISTERS  63u
#define SIM_SHARED_BASE UINT64_C(0x7e0000000000) /* generic windows */
#define SIM_LOCAL_BASE  UINT64_C(0x7d0000000000)
#define SIM_WINDOW_SIZE UINT64_C(0x1000000)
#define SIM_CODE_BASE   UINT64_C(0x7f0a00000000)
#define SIM_ALLOC_BASE  UINT64_C(0x7f1000000000)

struct sim_dim {
	uint32_t x, y, z;
};

struct sim_function {
	char *name; /**< As in the cubin: mangled. */
	uint64_t handle, address, size, file_offset;
	uint32_t section, symbol; /**< Numbers in its ELF file. */
	uint32_t registers;
	bool entry; /**< May be launched. */
};

struct sim_module {
	struct sim_module *next;
	uint64_t handle, image_handle, context;
	uint32_t dev;
	uint8_t *image, *relocated;
	size_t size;
	struct sim_function *functions;
	size_t n_functions;
	bool system;
};

struct sim_context {
	struct sim_context *next;
	uint64_t handle;
	uint32_t dev, tid;
};

struct sim_grid {
	struct sim_grid *next;
	uint64_t id, context, parent;
	struct sim_module *module;
	struct sim_function *function;
	uint32_t dev, tid;
	struct sim_dim grid, block, cluster;
	uint32_t shared, type, origin, status;
	uint64_t progress; /**< Instructions per millisecond of running; 0: spins in place. */
};

struct sim_warp {
	struct sim_grid *grid; /**< NULL: not resident. */
	struct sim_dim block, cluster, target_block;
	uint32_t base_thread; /**< Linear number of lane 0. */
	uint32_t valid, active, in_syscall;
	uint32_t exception, exception_lanes;
	uint64_t pc, idle_pc; /**< Of active and of other lanes; virtual. */
	uint64_t error_pc, breakpoint;
	bool error_pc_valid, target_valid, broken, changed;
	uint32_t barrier; /**< enum CUDBGBarrierScope of waiting lanes. */
};

struct sim_device {
	uint32_t n_sms, n_warps, n_registers;
	uint32_t pci_bus, pci_device;
	char name[SIM_NAME_MAX], chip[SIM_NAME_MAX], sm[SIM_NAME_MAX];
	struct sim_warp *warps; /**< n_sms * n_warps */
	bool suspended;
	bool told; /**< getDeviceInfo(FULL) was answered: UPDATE may follow. */
	uint64_t resumed_ns;
	uint32_t exception, sm_exception[SIM_SMS_MAX];
	uint64_t sm_error_pc[SIM_SMS_MAX];
	bool sm_changed[SIM_SMS_MAX];
};

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

enum sim_register {
	REG_NORMAL,
	REG_UNIFORM,
	REG_PREDICATES,
	REG_UNIFORM_PREDICATES,
	REG_CC,
	REG_RPC
};

struct sim_planted {
	struct sim_planted *next;
	enum sim_register kind;
	uint32_t dev, sm, warp, lane, number, value;
};

struct sim_stack {
	struct sim_stack *next;
	uint32_t dev, sm, warp, lanes, depth, syscall_depth;
	uint64_t address[SIM_STACK_MAX]; /**< Innermost first. */
};

struct sim_breakpoint {
	struct sim_breakpoint *next;
	uint64_t handle, address;
	uint32_t dev;
	bool enabled;
};

struct sim_log {
	struct sim_log *next;
	uint64_t time_ns;
	uint32_t tid, level;
	char text[CUDBGABI_MAX_LOG_LEN];
};

struct sim_queue {
	uint8_t (*events)[SIM_EVENT_SIZE];
	size_t n, first, capacity;
};

enum fault_kind {
	FAULT_RESULT,
	FAULT_DELAY,
	FAULT_HANG,
	FAULT_KILL_TARGET,
	FAULT_KILL_ENGINE,
	FAULT_TRUNCATE
};

struct sim_fault {
	struct sim_fault *next;
	enum fault_kind kind;
	uint32_t slot; /**< SLOT_COUNT: every one. */
	uint32_t value, from, count;
	uint32_t seen;
};

enum sim_phase { PHASE_NONE, PHASE_ENGINE, PHASE_REPLAY, PHASE_ATTACHED, PHASE_DETACHING };
enum sim_replay { REPLAY_AUTO, REPLAY_NONE, REPLAY_HANG, REPLAY_ENDLESS };
enum sim_second { SECOND_OK, SECOND_INACTIVE, SECOND_REFUSED };

/** Wishes of the script that are no state of a GPU. */
struct sim_script {
	enum sim_replay replay;
	bool replay_reverse, keep_suspended, no_complete;
	uint32_t replay_batch; /**< Events per round; 0: all. */
	uint32_t replay_extra; /**< Meaningless but legal events mixed in. */
	enum sim_second second;
	uint32_t attach_result, attach_times;
	uint32_t attach_delay_ms;
	bool attach_kill; /**< The target dies when the engine comes up. */
	bool mps;
	bool same_regions; /**< Lists of managed memory begin with the first region, whatever is asked. */
	uint32_t few_registers; /**< readRegisterRange gives no more; 0: all. */
	uint32_t grow_device, grow_sm, grow_warp, grow_lane;
	uint32_t unknown_attr; /**< Bytes of a warp attribute that nobody knows yet. */
	bool always_full;
};

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
	struct sim_planted *planted;
	struct sim_stack *stacks;
	struct sim_breakpoint *breakpoints;
	struct sim_log *logs;
	struct sim_fault *faults;
	struct sim_script script;
	uint64_t next_handle, next_grid, next_code, next_alloc;

	/* the debug session */
	enum sim_phase phase;
	uint32_t label, session, capabilities, release;
	uint32_t engagements;
	bool ipc_flag, initialized, broken_api;
	struct sim_queue sync, async, replay;
	bool owes_ack, ask_pending, launch_defer;
	uint64_t asked_ns;
	bool launched; /**< cudbgIpcFlag was set before cuInit: events are kept for initialize(). */
	uint32_t calls; /**< Debugger calls answered. */
	uint32_t calls_of[SLOT_COUNT]; /**< The same, each kind by itself. */
	uint32_t app_resume_flag;
};

/** What the core asks of whoever owns the connections; the fuzzer has its own. */
struct sim_os {
	void (*notify)(struct sim_process *p, uint32_t tid, uint32_t timeout);
	void (*ask_engine)(struct sim_process *p, enum wire_ask ask, uint32_t initialized,
			   uint32_t resume);
	void (*release_app)(struct sim_process *p); /**< Sync events were acknowledged. */
	void (*kill_target)(struct sim_process *p);
	uint64_t (*now_ns)(void);
};

struct sim {
	const struct sim_os *os;
	struct sim_process *processes;
	char *script; /**< Run for every new process; NULL: none. */
};

/* ---- process.c ---- */
struct sim_process *sim_process_create(struct sim *s, int pid);
void sim_process_destroy(struct sim_process *p);
struct sim_process *sim_process_find(struct sim *s, int pid);
/** The process with that debug session, or NULL. */
struct sim_process *sim_process_find_session(struct sim *s, uint32_t label, uint32_t session);

int sim_devices_set(struct sim_process *p, uint32_t n, const struct sim_device *model);
struct sim_warp *sim_warp_at(struct sim_process *p, uint32_t dev, uint32_t sm, uint32_t warp);
uint64_t sim_lane_pc(const struct sim_warp *w, uint32_t lane);
struct sim_dim sim_thread_idx(const struct sim_warp *w, uint32_t lane);
/** Exception that one lane reports. */
uint32_t sim_lane_exception(const struct sim_warp *w, uint32_t lane);
void sim_warp_touch(struct sim_process *p, uint32_t dev, uint32_t sm, struct sim_warp *w);
/** Bit of every device with a broken, or with a faulted, warp. */
uint64_t sim_devices_broken(const struct sim_process *p);
uint64_t sim_devices_faulted(const struct sim_process *p);
uint64_t sim_sm_exceptions(const struct sim_process *p, uint32_t dev, uint32_t word);

/* ---- registers and memory: memory.c ---- */
uint32_t sim_register_default(enum sim_register kind, uint32_t dev, uint32_t sm, uint32_t warp,
			      uint32_t lane, uint32_t number);
uint32_t sim_register_get(const struct sim_process *p, enum sim_register kind, const uint64_t at[4],
			  uint32_t number);
int sim_register_set(struct sim_process *p, enum sim_register kind, const uint64_t at[4],
		     uint32_t number, uint32_t value);
int sim_region_add(struct sim_process *p, const struct sim_region *model);
/** Region of that space that holds [address, address + size) and belongs to the place, or NULL. */
struct sim_region *sim_region_find(struct sim_process *p, enum sim_space space,
				   const uint64_t at[4], uint64_t address, uint64_t size);
void sim_regions_free(struct sim_process *p);
/** Bytes of a generic or global address as that lane sees it, writable; NULL if not mapped. */
uint8_t *sim_generic(struct sim_process *p, const uint64_t at[4], uint64_t address, uint64_t size);
/** Code bytes of loaded modules. */
const uint8_t *sim_code(const struct sim_process *p, uint32_t dev, uint64_t address, uint64_t size);

/* ---- cubin.c ---- */
/** Functions of an ELF image; fails on anything that is no little-endian 64-bit ELF file. */
int cubin_load(const uint8_t *image, size_t size, uint64_t base, struct sim_module *m,
	       uint64_t *ret_end);

/* ---- place.c: contexts, modules, grids, running ---- */
struct sim_context *sim_context_add(struct sim_process *p, uint32_t dev, uint32_t tid);
int sim_context_remove(struct sim_process *p, uint64_t handle);
int sim_module_add(struct sim_process *p, uint64_t context, const void *image, size_t size,
		   bool system, struct sim_module **ret);
void sim_modules_free(struct sim_process *p);
int sim_module_remove(struct sim_process *p, uint64_t handle);
struct sim_function *sim_function_find(struct sim_process *p, uint64_t handle, const char *name,
				       struct sim_module **ret_module);
/** Function that holds an address. */
struct sim_function *sim_function_at(struct sim_process *p, uint64_t address,
				     struct sim_module **ret_module);
/** Put the blocks of a grid on the SMs until they are full. */
int sim_grid_launch(struct sim_process *p, const struct sim_grid *model, uint32_t first_sm,
		    uint64_t *ret_id);
int sim_grid_finish(struct sim_process *p, uint64_t id);
struct sim_grid *sim_grid_find(struct sim_process *p, uint64_t id);

/* ---- run.c: suspended and running ---- */
void sim_device_suspend(struct sim_process *p, uint32_t dev);
void sim_device_resume(struct sim_process *p, uint32_t dev);
bool sim_all_suspended(const struct sim_process *p);
/** A warp broke or faulted by itself: everything stops and the debugger hears of it. */
void sim_stop(struct sim_process *p);
int sim_raise(struct sim_process *p, const uint64_t at[3], uint32_t lanes, uint32_t exception,
	      uint64_t error_pc);
/** Breakpoints that running warps reach.  Called now and then. */
void sim_run(struct sim_process *p);
int sim_step(struct sim_process *p, const uint64_t at[3], uint32_t n);
int sim_breakpoint_set(struct sim_process *p, uint32_t dev, uint64_t address, uint64_t *ret_handle);
int sim_breakpoint_unset(struct sim_process *p, uint32_t dev, uint64_t address);
void sim_debugger_gone(struct sim_process *p);

/* ---- event.c ---- */
void sim_queue_deinit(struct sim_queue *q);
const uint8_t *sim_queue_peek(const struct sim_queue *q);
void sim_queue_pop(struct sim_queue *q);
/** Append one event with that payload. */
int sim_queue_push(struct sim_queue *q, uint32_t kind, const void *payload, size_t size);
void event_context(struct sim_queue *q, uint32_t kind, const struct sim_context *c);
void event_module(struct sim_queue *q, uint32_t kind, const struct sim_module *m);
void event_functions(struct sim_queue *q, const struct sim_module *m);
void event_grid(struct sim_queue *q, uint32_t kind, const struct sim_grid *g);
/** Is a debugger attached that said so with cudbgIpcFlag? */
bool sim_events_wanted(const struct sim_process *p);
/** Call the debugger's callback; a sync event keeps the caller waiting until it is acknowledged. */
void sim_events_announce(struct sim_process *p, uint32_t tid);

/* ---- session.c: attach, replay, detach ---- */
/** An engine came up in the process.  @return CUDBGResult, or RESULT_INACTIVE. */
uint32_t session_engine(struct sim_process *p, uint32_t label, uint32_t session,
			uint32_t capabilities, uint32_t *ret_resume);
#define SESSION_INACTIVE UINT32_C(0x10000)
/** initialize() of the debugger. */
uint32_t session_initialize(struct sim_process *p);
void session_acknowledge(struct sim_process *p);
void session_cleanup(struct sim_process *p, uint32_t flag);
void session_finalize(struct sim_process *p);
/** The engine thread answered: it runs, and this is its cudbgIpcFlag. */
void session_engine_answer(struct sim_process *p, bool ipc_flag);
/** Every few milliseconds: ask again what was not answered well, let warps reach breakpoints. */
void session_tick(struct sim_process *p);

/* ---- call.c ---- */
struct call {
	struct sim_process *p;
	const struct slot_request *q;
	const uint64_t *in;
	struct sim_device *dev; /**< Set when the slot names a device; the others likewise. */
	struct sim_warp *warp;
	struct out *out;
	size_t n_out; /**< Outputs written. */
};
typedef uint32_t call_fn(struct call *c);

/** Next output, in the order of the prototype. */
void call_out(struct call *c, const void *data, size_t size);
void call_u32(struct call *c, uint32_t v);
void call_u64(struct call *c, uint64_t v);
void call_u8(struct call *c, uint8_t v);
void call_dim(struct call *c, const struct sim_dim *d);
void call_text(struct call *c, const char *text);
/** Room of buffer i in bytes. */
size_t call_room(const struct call *c, size_t i);

/** What else the scripted faults want done with the answer. */
struct call_fate {
	uint32_t delay_ms;
	bool hang, kill_engine, kill_target;
};
/** Answer one request.  @return CUDBGResult; outputs go to @p out. */
uint32_t call_answer(struct sim_process *p, const struct slot_request *q, struct out *out,
		     struct call_fate *ret_fate);
/** Functions of the other files, one table each, by slot; NULL entries belong to somebody else. */
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
void command_help(void);

/* ---- state.c ---- */
void state_json(const struct sim *s, struct out *o);

#endif /* CUDASIM_SIM_H */
