/* SPDX-License-Identifier: MIT */
#ifndef DAP_ADAPTER_H
#define DAP_ADAPTER_H

/**
 * @file adapter.h
 * The parts of the debug adapter among themselves.
 *
 *	alive.c       whether somebody still sits at the editor
 *	stream.c      bytes, framing, the loop, which request is next
 *	message.c     answers and events
 *	paths.c       paths, which may be URIs
 *	requests.c    table of requests; those about the session itself
 *	session.c     the agent: attach, snapshots, pause, what it reports
 *	threads.c     groups as threads, frames, scopes
 *	exceptions.c  what the agent told of an exception
 *	holder.c      another client that keeps queues suspended
 *	registers.c   the wave of a thread and its registers, fetched once
 *	variables.c   scopes opened
 *	memory.c      bytes
 *	instructions.c  instructions
 *	breakpoints.c exception filters and watch points
 *	evaluate.c    what the user types
 *	console.c     the words of it
 *	waves.c       waves of a thread, a page at a time
 *	custom.c      requests of our own
 *
 * Handlers may call the agent.  While they wait, stream.c reads on and runs requests that need
 * nothing but what is here: those must not touch what a handler is about to replace.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "dap/dap.h"
#include "dap/json.h"
#include "protocol/rpc_wire.h"
#include "rpc_client_gen.h"

#define DAP_THREADS_DEFAULT 64u
#define DAP_THREADS_MAX     512u /**< With the line for those that are not shown. */
#define DAP_COMMAND_MAX	    64
#define DAP_PATH_MAX	    4096
#define DAP_REGISTER_CHUNK  32u	 /**< Vector registers shown, and fetched, together. */
#define DAP_MEMORY_MAX	    ((size_t)1 << 20) /**< Bytes of one memory.read. */

struct dap_request {
	int64_t seq;
	char command[DAP_COMMAND_MAX];
	struct dap_json args;
};

/** A handler's result when it has sent the answer itself. */
#define DAP_ANSWERED 1

/** A request that waits for its turn; its text follows. */
struct dap_waiting;

/** One thread of the editor's; its id is its position plus one. */
struct dap_thread {
	struct rpc_group *group; /**< Sum of those that it stands for. */
	struct rpc_wave_name wave; /**< Shown for it: the representative, until another is chosen. */
	uint64_t pc;		   /**< Of that wave. */
	const struct rpc_group *place; /**< The same: the group whose frames are its. */
};

struct dap_snapshot {
	struct rpc_arena arena;
	struct rpc_gpu_snapshot_result doc;
	struct dap_thread *threads;
	size_t n_threads; /**< Shown. */
	size_t n_all;	  /**< With those that are not shown. */
	uint32_t *thread_of; /**< Of each group of the document, its position among all. */
};

/** Registers of one wave, as they were fetched. */
struct dap_registers {
	bool valid;
	uint32_t generation, thread, first; /**< What they are of; first of vector registers. */
	struct rpc_arena arena;
	struct rpc_wave_registers regs;
};

struct disasm;

/** Signs of somebody who uses the editor; times are monotonic. */
struct dap_alive {
	uint64_t proof_ns; /**< The last one. */
	uint64_t event_ns; /**< When the editor was told something that it reacts to by itself. */
	uint64_t stop_ns;  /**< When the queues were stopped last. */
	bool left;	   /**< A stop has ended for want of signs, and none has come since. */
};

enum dap_state {
	DAP_NEW,	 /**< Nothing but initialize is understood. */
	DAP_INITIALIZED, /**< attach may come. */
	DAP_ATTACHING,
	DAP_ATTACHED,
	DAP_OVER, /**< Failed, or the session ended; disconnect is left. */
};

struct dap {
	const struct dap_options *options;
	struct agent_err *err; /**< Why the loop ends. */

	/* stream.c */
	struct rpc_wire wire;
	struct out out;
	size_t sent; /**< Of out. */
	bool eof, leave;
	int failed;
	struct dap_waiting *first, **end;
	size_t n_waiting, waiting_bytes;
	const struct dap_request *running; /**< While it waits for the agent. */
	bool may_cancel, cancel;	   /**< The call under way. */
	int64_t seq;
	char *chunk;

	/* What the editor is and wants. */
	enum dap_state state;
	bool attach_waits; /**< For the answer to attach. */
	int64_t attach_seq;
	uint64_t attach_ns; /**< When it comes at the latest. */
	bool stop_on_attach, stop_pending;
	bool configured, announced, terminated; /* the last two: said to it */
	bool client_progress, client_type, client_invalidated;
	bool uris; /**< Paths are file:// URIs. */
	uint32_t lines_from, columns_from; /**< The first one is 0 or 1. */
	uint32_t pid, max_stop_ms, max_threads;
	char core_file[DAP_PATH_MAX]; /**< Instead of a process; "": a process. */
	bool by_kernel;
	uint64_t progress; /**< Number of the one shown. */
	bool progressing;

	/* session.c */
	struct rpc_client *client;
	struct rpc_arena arena; /**< Of one request; reset before each. */
	char session[65];
	bool control;
	char why_no_control[240];
	bool paused;
	bool held; /**< By another client, and shown as paused. */
	char held_by[80];
	uint64_t ask_ns; /**< When to ask for that again. */
	uint64_t renew_ns, stop_end_ns;
	struct dap_alive alive;
	uint32_t stop_idle_ms; /**< Queues run again so long after the last sign; 0: never for that. */
	struct dap_snapshot *snap;
	struct dap_snapshot *before; /**< The one that snap has replaced while the GPU ran; NULL for none. */
	uint32_t generation; /**< Of snap; part of every reference handed out. */
	bool exception_pending;
	struct rpc_arena exception_arena;
	struct rpc_exception_raised_params exception;
	bool has_exception;

	uint32_t focus; /**< Thread that the console and disassembly speak of. */
	struct dap_registers shared, vector;
	struct disasm *disasm;
	char disasm_cpu[32];
	bool disasm_noted; /**< What there is to say about it was said. */

	uint64_t filters; /**< Exception filters that are on. */
	bool watching;	  /**< Watch points are set. */
	bool subscribed;
};

/* alive.c */

#define DAP_STOP_IDLE_MS     60000u
#define DAP_STOP_IDLE_MAX_MS 600000u

/** An event goes to the editor. */
void dap_alive_event(struct dap_alive *a, const char *event, uint64_t now_ns);
/** A request came from it.  @param context  Of `evaluate`, or "". */
void dap_alive_request(struct dap_alive *a, const char *command, const char *context,
		       uint64_t now_ns);
/** When it will have been idle for @p idle_ms, in this stop; UINT64_MAX for 0. */
uint64_t dap_alive_end_ns(const struct dap_alive *a, uint32_t idle_ms);

/* stream.c */

/** For the client's calls: serves the editor meanwhile. */
int dap_wait(void *data, int fd, short events, uint64_t deadline_ns);

/* message.c */

void dap_respond(struct dap *d, const struct dap_request *q, const struct out *body);
void dap_respond_error(struct dap *d, const struct dap_request *q, const struct agent_err *err);
void dap_respond_cancelled(struct dap *d, const struct dap_request *q);
/** @param body NULL for none. */
void dap_event(struct dap *d, const char *event, const struct out *body);
/** A line in the console.  @param category `console`, `important`, `stderr`. */
void dap_output(struct dap *d, const char *category, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void dap_progress_begin(struct dap *d, const char *title, bool cancellable);
void dap_progress_update(struct dap *d, const char *message);
void dap_progress_end(struct dap *d, const char *message);
/** What was shown is out of date. */
void dap_invalidated(struct dap *d);
/** `"name":` and a string; a comma in front unless an object has just begun. */
void dap_put_str(struct out *o, const char *name, const char *value);
void dap_put_hex(struct out *o, const char *name, uint64_t value);
void dap_put_u64(struct out *o, const char *name, uint64_t value);
void dap_put_bool(struct out *o, const char *name, bool value);
/** A bad argument: fills err.  @return -EINVAL */
int dap_invalid(struct agent_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* paths.c */

/** `"path":` of a file of this machine. */
void dap_put_path(const struct dap *d, struct out *o, const char *path);
/** A path of the client's, in place.  @return false for a URI that is none of a file of this machine. */
bool dap_take_path(const struct dap *d, char *path);

/* requests.c */

enum dap_when {
	DAP_WHEN_ALWAYS, /**< Needs nothing: runs at once, also while another waits. */
	DAP_WHEN_SEEN,	 /**< The same, once there is a snapshot. */
	DAP_WHEN_TURN,	 /**< Calls the agent. */
};

struct dap_handler {
	const char *command;
	/** @return 0 (@p body is the answer's), DAP_ANSWERED, negative with @p err. */
	int (*run)(struct dap *d, const struct dap_request *q, struct out *body,
		   struct agent_err *err);
	enum dap_when when;
	bool may_cancel;
	enum dap_state from; /**< First state in which it is allowed. */
	bool by_hand; /**< Somebody has asked for it, and waits; an editor asks for others by itself. */
};

/** @return NULL if there is none. */
const struct dap_handler *dap_find_handler(const char *command);
/** Whether a handler may run now.  @return 0, negative with @p err. */
int dap_check_order(const struct dap *d, const struct dap_handler *h, struct agent_err *err);

/* session.c */

/** What attach left to do: connect, attach, first snapshot, stop at faults.  Answers it. */
void dap_session_begin(struct dap *d);
/** Answer attach, if it waits for that: with a failure, or NULL.  @return false if it was answered before. */
bool dap_session_answer(struct dap *d, const struct agent_err *err);
void dap_session_end(struct dap *d);
/** Tell the editor that the session is over, unless it knows. */
void dap_terminated(struct dap *d);
/** A call failed because what answers for a core file is gone: say how that ended. */
void dap_explain(struct dap *d, struct agent_err *err);
/** Notifications that have arrived, then what they call for. */
void dap_session_notifications(struct dap *d);
/** Keep queues suspended, if they are. */
void dap_session_renew(struct dap *d);
/** Tell the editor where it is, once it is configured and the session is there. */
void dap_session_announce(struct dap *d);
int dap_session_snapshot(struct dap *d, struct agent_err *err);
/**
 * A fresh one that the editor did not ask to stop for; it is told if what it shows is out of date.
 * @param select  Waves that it lists; NULL: none.
 */
int dap_session_look(struct dap *d, const struct rpc_wave_select *select, struct agent_err *err);
/** One beside the present one; dap_snapshot_free(). */
int dap_session_ask(struct dap *d, const struct rpc_wave_select *select, struct dap_snapshot **ret,
		    struct agent_err *err);
int dap_session_pause(struct dap *d, const char *reason, struct agent_err *err);
int dap_session_continue(struct dap *d, struct agent_err *err);
/** Tell the editor that the queues run again. */
void dap_continued(struct dap *d);
int dap_need_control(struct dap *d, struct agent_err *err);
/** From whoever has it. */
int dap_session_take_control(struct dap *d, struct agent_err *err);
/** It is a core file: nothing in it runs. */
static inline bool dap_is_core(const struct dap *d)
{
	return d->core_file[0];
}
/** Whether what is shown stays true: nothing moves. */
static inline bool dap_is_still(const struct dap *d)
{
	return d->paused || dap_is_core(d);
}

/** Another client has stopped the queues: what stands still now. */
void dap_session_show_held(struct dap *d);

/* holder.c */

/** Whether another client keeps queues suspended: d->held, d->held_by.  @return 0, negative with @p err. */
int dap_holder_ask(struct dap *d, struct agent_err *err);
/** Whether the session has to ask for that, from time to time. */
bool dap_holder_asks(const struct dap *d);
/** Asks when it is time, and tells the editor what has changed. */
void dap_holder_watch(struct dap *d);

/* threads.c */

/** Threads out of a fresh document.  @return false without memory. */
bool dap_snapshot_index(const struct dap *d, struct dap_snapshot *s);
void dap_snapshot_free(struct dap_snapshot *s);
/** The `threadId` of @p args, or the focus.  @return NULL with @p err. */
struct dap_thread *dap_thread_arg(struct dap *d, struct dap_json args, struct agent_err *err);
/** The device's position among those of the process, as `GPU 1`; lives in @p a. */
const char *dap_device_text(struct rpc_arena *a, const struct dap *d, uint32_t gpu_id);
/** Kernel and place, behind the device where there are several; lives in @p a. */
const char *dap_thread_name(struct rpc_arena *a, const struct dap *d, size_t i);
const char *dap_group_reasons(struct rpc_arena *a, const struct rpc_group *g);
struct rpc_wave_name dap_wave_of(const struct rpc_wave_ref *ref);
const char *dap_wave_text(struct rpc_arena *a, const struct rpc_wave_name *w);
/** An exception of waves that have exited, in a line. */
const char *dap_exited_text(struct rpc_arena *a, const struct rpc_exited_exception *e);
const struct rpc_device *dap_device(const struct dap *d, uint32_t gpu_id);
/** Is it a file of this machine?  Paths are as the compiler wrote them, maybe on another one. */
bool dap_is_file(const char *path);
int dap_threads(struct dap *d, const struct dap_request *q, struct out *body,
		struct agent_err *err);
int dap_stack_trace(struct dap *d, const struct dap_request *q, struct out *body,
		    struct agent_err *err);
int dap_scopes(struct dap *d, const struct dap_request *q, struct out *body, struct agent_err *err);

/** What a variablesReference or a frameId stands for. */
enum dap_scope {
	DAP_SCOPE_NONE,
	DAP_SCOPE_FRAME, /**< index: level of inlining */
	DAP_SCOPE_WAVE,
	DAP_SCOPE_SCALAR,
	DAP_SCOPE_VECTOR,
	DAP_SCOPE_VECTOR_CHUNK, /**< index: number of the chunk */
	DAP_SCOPE_VECTOR_LANES, /**< index: number of the register */
	DAP_SCOPE_PREDICATES,
	DAP_SCOPE_ACC_CHUNK,
	DAP_SCOPE_ACC_LANES,
	DAP_SCOPE_LANES,
	DAP_SCOPE_LDS,
	DAP_SCOPE_LDS_CHUNK, /**< index: number of the chunk */
	DAP_SCOPE_STATISTICS,
};
struct dap_ref {
	enum dap_scope scope;
	uint32_t thread, index;
	uint32_t generation;
	struct dap_snapshot *snap; /**< That the thread is of: the present one, or the one before. */
};
/** The number for one: of the present snapshot, or of the same as @p of. */
uint32_t dap_ref_make(const struct dap *d, enum dap_scope scope, uint32_t thread, uint32_t index);
uint32_t dap_ref_within(const struct dap_ref *of, enum dap_scope scope, uint32_t index);
/** The thread that the console speaks of. */
struct dap_ref dap_ref_focus(const struct dap *d);
/**
 * An editor asks once more for what it has shown before it hears that this is out of date: references
 * stay true for one more snapshot.
 * @return 0, -EINVAL with @p err (also for references that are older).
 */
int dap_ref_parse(const struct dap *d, struct dap_json v, struct dap_ref *ret,
		  struct agent_err *err);

/* exceptions.c */

/** The exception in one line, with its device, queue and address; lives in @p a. */
const char *dap_exception_text(struct rpc_arena *a, const struct dap *d);
/** Position of the thread to look at for it: one that it concerns, or else one of its device. */
size_t dap_exception_thread(const struct dap *d);
/** Why a thread stopped: its waves' reasons, or the exception that they do not show; "" for nothing. */
const char *dap_stop_text(struct rpc_arena *a, const struct dap *d, size_t thread);
/** A fault of a device or queue that the snapshot shows, from before the session, becomes the exception. */
bool dap_exception_latched(struct dap *d);
int dap_exception_info(struct dap *d, const struct dap_request *q, struct out *body,
		       struct agent_err *err);

/* registers.c */

/** All but vector registers, and what the lanes work on. */
const struct rpc_wave_registers *dap_registers_shared(struct dap *d, const struct dap_ref *of,
						      struct agent_err *err);
/** Vector and accumulation registers of one chunk; behind those of the first one, predicates. */
const struct rpc_wave_registers *dap_registers_vector(struct dap *d, const struct dap_ref *of,
						      uint32_t chunk, struct agent_err *err);
/** Vector registers among what was fetched for a chunk. */
size_t dap_registers_in_chunk(const struct rpc_wave_registers *r, uint32_t chunk);
void dap_registers_forget(struct dap *d);

/* variables.c */

int dap_variables(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err);

/* memory.c */

/**
 * Bytes of the process, or of the LDS of the thread's wave.
 * @param ret_data Decoded, in d->arena.
 */
int dap_memory_get(struct dap *d, const struct rpc_memory_read_params *p, uint8_t **ret_data,
		   size_t *ret_size, struct agent_err *err);
int dap_read_memory(struct dap *d, const struct dap_request *q, struct out *body,
		    struct agent_err *err);
/** The `memoryReference` of @p args, moved by its `offset`.  @return 0, -EINVAL with @p err. */
int dap_memory_reference(struct dap_json args, uint64_t *ret, struct agent_err *err);
/** A number that must be there.  @return 0, -EINVAL with @p err. */
int dap_count_arg(struct dap_json args, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct agent_err *err);

/* instructions.c */

int dap_disassemble(struct dap *d, const struct dap_request *q, struct out *body,
		    struct agent_err *err);

/** Lines around an address as text. */
int dap_show_instructions(struct dap *d, uint64_t address, uint32_t before, uint32_t count,
			  struct out *o, struct agent_err *err);

/* breakpoints.c */

void dap_put_filters(struct out *o);
int dap_set_exception_breakpoints(struct dap *d, const struct dap_request *q, struct out *body,
				  struct agent_err *err);
int dap_data_breakpoint_info(struct dap *d, const struct dap_request *q, struct out *body,
			     struct agent_err *err);
int dap_set_data_breakpoints(struct dap *d, const struct dap_request *q, struct out *body,
			     struct agent_err *err);
struct dap_words;
/** The console's `watchpoint`. */
int dap_word_watchpoint(struct dap *d, const struct dap_words *w, struct out *o,
			struct agent_err *err);

/* evaluate.c */

#define DAP_LINE_MAX  256
#define DAP_WORDS_MAX 6

struct dap_words {
	char text[DAP_LINE_MAX];
	char *w[DAP_WORDS_MAX];
	size_t n;
};

int dap_evaluate(struct dap *d, const struct dap_request *q, struct out *body,
		 struct agent_err *err);
/** Is there a wave to look at?  @return 0, -EINVAL with @p err. */
int dap_need_wave(const struct dap *d, struct agent_err *err);

/* console.c */

typedef int (*dap_word_fn)(struct dap *d, const struct dap_words *w, struct out *o,
			   struct agent_err *err);
/** @return NULL if the console has no such word. */
dap_word_fn dap_find_word(const char *word);

/* waves.c */

struct dap_waves {
	const struct rpc_wave *waves;
	size_t n;
	uint64_t total; /**< Of the thread, at the same moment. */
	struct dap_snapshot *beside; /**< What they are in, when it is not the present snapshot. */
};
/**
 * Some waves of a thread.  While the GPU runs, the snapshot that they are in becomes the present one.
 * @param which  All but the groups.
 * @return 0; dap_waves_free() then.  Negative with @p err.
 */
int dap_waves_get(struct dap *d, uint32_t thread, const struct rpc_wave_select *which,
		  struct dap_waves *ret, struct agent_err *err);
void dap_waves_free(struct dap_waves *w);

/* custom.c */

int dap_gpu_groups(struct dap *d, const struct dap_request *q, struct out *body,
		   struct agent_err *err);
int dap_gpu_waves(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err);
int dap_gpu_focus(struct dap *d, const struct dap_request *q, struct out *body,
		  struct agent_err *err);
int dap_gpu_take_control(struct dap *d, const struct dap_request *q, struct out *body,
			 struct agent_err *err);

#endif /* DAP_ADAPTER_H */
