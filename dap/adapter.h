/* SPDX-License-Identifier: MIT */
#ifndef DAP_ADAPTER_H
#define DAP_ADAPTER_H

/**
 * @file adapter.h
 * What the parts of the debug adapter know of each other.
 *
 *	alive.c       whether a person still uses the editor
 *	stream.c      bytes, framing, the loop, which request is next
 *	message.c     answers and events
 *	requests.c    table of requests; those about the session itself
 *	session.c     the agent: attach, snapshots, pause, what it reports
 *	threads.c     groups as threads, frames
 *	refs.c        numbers of frames, scopes and what is in them
 *	scopes.c      scopes of a frame
 *	exceptions.c  what the agent told of an exception
 *	holder.c      another client that keeps queues suspended
 *	host.c        threads on the processors
 *	registers.c   the wave of a thread and its registers, fetched once
 *	variables.c   what scopes hold
 *	values/       variables of a lane; see dap/values/values.h
 *	code/paths.c  paths, which may be URIs; where sources are
 *	code/memory.c  bytes
 *	code/instructions.c  instructions
 *	code/texts.c    what is shown in place of files
 *	code/listing.c  the code of a function as such a text
 *	code/embedded.c a source that the debug information has, as such a text
 *	breakpoints.c exception filters and watch points
 *	evaluate.c    what the user types
 *	console.c     the words of the console
 *	waves.c       waves of a thread, a page at a time
 *	custom.c      requests that no other adapter has
 *
 * Handlers may call the agent.  While they wait, stream.c reads on and runs requests that need
 * nothing but what is here: those must not touch what a handler is about to replace.
 *
 * Texts that a function gives live in the arena that it is given, and are NULL when that is
 * exhausted.  Functions with an @p err return 0, or negative with @p err, unless they say
 * otherwise.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "dap/dap.h"
#include "dap/json.h"
#include "protocol/rpc_wire.h"
#include "rpc_client_gen.h"

#define DAP_THREADS_DEFAULT 64u  /**< Threads shown unless the editor says otherwise. */
#define DAP_THREADS_MAX     512u /**< With the line for those that are not shown. */
#define DAP_COMMAND_MAX	    64	 /**< Room for the name of a request, with its NUL. */
#define DAP_PATH_MAX	    4096 /**< Room for a path, with its NUL. */
#define DAP_SOURCES_MAX	    16u	 /**< Most folders of each kind in which sources are looked for. */
#define DAP_LANE_ANY	    UINT32_MAX /**< The lane that the agent chooses. */
#define DAP_INDEXES	    1024u /**< Numbers that a scope takes whose references have an index. */
#define DAP_REGISTER_CHUNK  32u	 /**< Vector registers shown, and fetched, together. */
#define DAP_MEMORY_MAX	    ((size_t)1 << 20) /**< Bytes of one memory.read. */

/** A request of the editor's. */
struct dap_request {
	int64_t seq; /**< Its number, which the answer repeats. */
	char command[DAP_COMMAND_MAX];
	struct dap_json args;
};

/** What a handler answers. */
struct dap_answer {
	struct out body;      /**< JSON; empty for none. */
	struct agent_err err; /**< Why the request failed. */
};

/** A handler's result when it has sent the answer itself. */
#define DAP_ANSWERED 1

/** A request that waits for its turn; its text follows. */
struct dap_waiting;

/** One thread of the editor's; its id is its position plus one. */
struct dap_thread {
	struct rpc_group *group; /**< Sum of the groups that it stands for. */
	struct rpc_wave_name wave; /**< The wave shown: a representative, or one that was chosen. */
	uint32_t lane;		   /**< Its lane that is shown; DAP_LANE_ANY: the agent chooses. */
	uint64_t pc;		   /**< The pc of that wave, or of that lane. */
	const struct rpc_group *place; /**< The group of that wave, whose frames are shown. */
	uint32_t twice; /**< So often more its groups count waves of which each has a part. */
	size_t n_callers;	       /**< How many of its callers are those of that lane. */
	/** The same as they were before another lane was chosen. */
	const struct rpc_group *base;
	uint64_t base_pc;
	uint32_t base_lane;
};

/** A snapshot and the threads that the editor is shown for it. */
struct dap_snapshot {
	struct rpc_arena arena; /**< Holds the document and the threads. */
	struct rpc_gpu_snapshot_result doc;
	struct dap_thread *threads;
	size_t n_threads; /**< Threads that are shown. */
	size_t n_all;	  /**< Threads with those that are not shown. */
	uint32_t *thread_of; /**< For each group of the document, its position among all threads. */
	struct rpc_host_stacks_result host; /**< Without groups if nobody wants them. */
	uint32_t host_first, host_frames;   /**< The numbers of their frames: the first, and how many. */
};

/** What a variablesReference or a frameId stands for. */
enum dap_scope {
	DAP_SCOPE_NONE,
	DAP_SCOPE_FRAME, /**< The index is the level in the chain of frames. */
	/* The index of these is the level of the frame, too. */
	DAP_SCOPE_WAVE,
	DAP_SCOPE_ARGUMENTS,
	DAP_SCOPE_LOCALS,
	DAP_SCOPE_STATICS,
	DAP_SCOPE_BUILT_INS,
	DAP_SCOPE_ALL_LANES,
	DAP_SCOPE_SCALAR,
	DAP_SCOPE_VECTOR,
	DAP_SCOPE_VECTOR_CHUNK, /**< The index is the number of the chunk. */
	DAP_SCOPE_VECTOR_LANES, /**< The index is the number of the register. */
	DAP_SCOPE_PREDICATES,
	DAP_SCOPE_ACC_CHUNK, /**< The index is the number of the chunk. */
	DAP_SCOPE_ACC_LANES, /**< The index is the number of the register. */
	DAP_SCOPE_LANES,
	DAP_SCOPE_LDS,
	DAP_SCOPE_LDS_CHUNK, /**< The index is the number of the chunk. */
	DAP_SCOPE_STATISTICS,
	DAP_SCOPE_WHY,
	DAP_SCOPE_COUNT,
	DAP_SCOPE_VALUE, /**< The index is the position among the nodes. */
};

/** What is in a value. */
enum dap_node_kind {
	DAP_NODE_MEMBERS, /**< Its members, or elements if its type is an array. */
	DAP_NODE_TARGET,  /**< What it points to. */
	DAP_NODE_LANES,	  /**< What it is in other lanes. */
};

/** A value that can be opened. */
struct dap_node {
	enum dap_node_kind kind;
	uint32_t number; /**< Its reference. */
	uint32_t thread, frame, lane;
	uint32_t queue_id, unit, index; /**< The wave. */
	uint32_t first; /**< The first of its members; the position among the frame's variables. */
	uint32_t hash;	/**< Of the text. */
	char *text;	/**< Expression, or name. */
};

/** The numbers of references that were handed out of one snapshot. */
struct dap_refs {
	uint32_t generation; /**< Number of the snapshot. */
	uint32_t first[DAP_THREADS_MAX][DAP_SCOPE_COUNT]; /**< 0: none was handed out. */
	struct dap_node *nodes;
	size_t n_nodes, nodes_room;
};

/** Registers of one wave, as they were fetched. */
struct dap_registers {
	bool valid;
	uint32_t generation, thread, first; /**< Whose they are; first of vector registers. */
	struct rpc_arena arena; /**< Holds regs. */
	struct rpc_wave_registers regs;
};

/** What the agent told of a frame's variables, or of an expression. */
struct dap_told;
/** What is shown in place of a file. */
struct dap_text;
/** What the agent said about a source in the debug information. */
struct dap_embedded;
struct disasm;

/** Signs that a person uses the editor; times are monotonic. */
struct dap_alive {
	uint64_t proof_ns; /**< When the last sign came. */
	uint64_t event_ns; /**< When the editor was told something that it reacts to by itself. */
	uint64_t stop_ns;  /**< When the queues were stopped last. */
	bool left;	   /**< A stop has ended for want of signs, and none has come since. */
};

/** Where to look for sources; absolute paths that do not end in a slash. */
struct dap_sources {
	struct {
		char *from, *to;
	} map[DAP_SOURCES_MAX];
	char *folders[DAP_SOURCES_MAX];
	size_t n_map, n_folders;
};

/** How far the conversation with the editor is.  The order counts, see dap_check_order(). */
enum dap_state {
	DAP_NEW,	 /**< Nothing but initialize is understood. */
	DAP_INITIALIZED, /**< attach may come. */
	DAP_ATTACHING,	 /**< attach has come; the agent was not asked yet, or has not answered. */
	DAP_ATTACHED,	 /**< There is a session and a snapshot. */
	DAP_OVER,	 /**< attach failed, or the session ended; disconnect is left. */
};

/** The adapter of one editor. */
struct dap {
	const struct dap_options *options;
	struct agent_err *err; /**< Why the loop ends. */

	/* stream.c */
	struct rpc_wire wire; /**< What the editor sends. */
	struct out out;	      /**< What the editor is to get, from the byte `sent` on. */
	size_t sent;
	bool eof, leave; /**< The editor has closed its end; it has asked to disconnect. */
	int failed;	 /**< -errno that ends the loop, or 0. */
	struct dap_waiting *first, **end; /**< Requests that wait for their turn. */
	size_t n_waiting, waiting_bytes;
	const struct dap_request *running; /**< The request whose handler runs; NULL for none. */
	bool may_cancel, cancel; /**< The call under way may be given up; it is to be. */
	int64_t seq;		 /**< Number of the last message that was sent. */
	char *chunk;		 /**< Buffer for what is read. */

	/* What the editor is and wants. */
	enum dap_state state;
	bool attach_waits;  /**< attach was not answered yet. */
	int64_t attach_seq; /**< The number of that request. */
	uint64_t attach_ns; /**< When it is answered at the latest. */
	bool stop_on_attach, stop_pending; /**< The editor asked for it; it is still to be done. */
	bool configured, announced, terminated; /**< The last two: the editor was told so. */
	bool client_progress, client_type, client_invalidated; /**< What the editor can show. */
	bool uris; /**< Paths are file:// URIs. */
	uint32_t lines_from, columns_from; /**< Number of the first one: 0 or 1. */
	uint32_t pid, max_stop_ms, max_threads;
	char core_file[DAP_PATH_MAX]; /**< The core file; "" for a process. */
	struct dap_sources sources;
	bool host_threads; /**< Threads on the processors are shown, too. */
	bool by_kernel;	   /**< One thread for all groups of a kernel, instead of one for each. */
	uint64_t progress; /**< Number of the progress shown last. */
	bool progressing;  /**< It is shown still. */

	/* session.c */
	struct rpc_client *client;
	struct rpc_arena arena; /**< Memory of one request; reset before each. */
	char session[65];	/**< Id of the session; "" without one. */
	bool control;		/**< The session may stop queues: it has the writer lease. */
	char why_no_control[240];
	bool paused; /**< This session has suspended the queues. */
	bool held; /**< Another client has, which is shown as paused. */
	char held_by[80]; /**< A sentence about that client. */
	uint64_t ask_ns; /**< When to ask for that client again. */
	uint64_t renew_ns, stop_end_ns; /**< When to renew the stop; when it must end, or 0. */
	struct dap_alive alive;
	uint32_t stop_idle_ms; /**< A stop ends so long after the last sign of use; 0: never. */
	struct dap_snapshot *snap; /**< What the editor is shown. */
	struct dap_snapshot *before; /**< What snap has replaced while the GPU ran, or NULL. */
	struct dap_refs refs, refs_before; /**< What was handed out of snap, and of before. */
	uint32_t n_refs; /**< How many numbers of references were given, in this conversation. */
	bool exception_pending; /**< One has come that may have to stop the GPU, and has not yet. */
	struct rpc_arena exception_arena;
	struct rpc_exception_raised_params exception; /**< In exception_arena. */
	bool has_exception; /**< It explains the present stop. */

	uint32_t focus; /**< Thread that the console and disassembly speak of. */
	struct dap_registers shared, vector; /**< All but vector registers; one chunk of those. */
	struct dap_told *told; /**< The last one first. */
	struct disasm *disasm; /**< For the architecture disasm_cpu; NULL until it is needed. */
	char disasm_cpu[32];
	bool disasm_noted; /**< What there is to say about the disassembler was said. */
	struct dap_text *texts; /**< Shown in place of files. */
	size_t n_texts;
	uint64_t text_uses;    /**< How often one was used. */
	uint32_t n_references; /**< How many were given to texts. */
	struct dap_embedded *embedded;
	size_t n_embedded;
	uint32_t embedded_generation; /**< Number of the snapshot that they are of. */

	uint64_t filters; /**< Exception filters that are on, one bit each. */
	bool watching;	  /**< Watch points are set. */
};

/* alive.c */

#define DAP_STOP_IDLE_MS     60000u  /**< stop_idle_ms unless the editor says otherwise. */
#define DAP_STOP_IDLE_MAX_MS 600000u /**< The longest that an editor may ask for. */

/** Note that an event goes to the editor, which may ask for things by itself then. */
void dap_alive_event(struct dap_alive *a, const char *event, uint64_t now_ns);
/**
 * Note that a request came from the editor.
 * @param context  The member `context` of `evaluate`, or "".
 */
void dap_alive_request(struct dap_alive *a, const char *command, const char *context,
		       uint64_t now_ns);
/** When the editor will have been idle for @p idle_ms in this stop; UINT64_MAX if that is 0. */
uint64_t dap_alive_end_ns(const struct dap_alive *a, uint32_t idle_ms);

/* stream.c */

/**
 * Wait for the agent's answer, and serve the editor meanwhile; see rpc_client_wait_fn.
 * @param data  The struct dap.
 */
int dap_wait(void *data, int fd, short events, uint64_t deadline_ns);

/* message.c: nothing here fails; a lack of memory sets dap.failed, which ends the loop. */

/** Answer a request.  @param body  NULL or empty for none. */
void dap_respond(struct dap *d, const struct dap_request *q, const struct out *body);
/** Answer a request with a failure, which the editor shows if it should be shown. */
void dap_respond_error(struct dap *d, const struct dap_request *q, const struct agent_err *err);
/**
 * An error of the agent's without the name of the parameter that it begins with: the user has not
 * chosen that.
 */
const char *dap_plain(const char *message);
/** Answer a request that was given up. */
void dap_respond_cancelled(struct dap *d, const struct dap_request *q);
/** Send an event.  @param body  NULL for none. */
void dap_event(struct dap *d, const char *event, const struct out *body);
/** Show a line in the console.  @param category  `console`, `important`, `stderr`. */
void dap_output(struct dap *d, const char *category, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** Show that something takes time, if the editor can; an earlier progress ends. */
void dap_progress_begin(struct dap *d, const char *title, bool cancellable);
/** Show how far it is. */
void dap_progress_update(struct dap *d, const char *message);
/** End the progress, if one is shown.  @param message  NULL for none. */
void dap_progress_end(struct dap *d, const char *message);
/** Tell the editor that what it shows is out of date, if it understands that. */
void dap_invalidated(struct dap *d);
/** Fill @p err for a bad argument.  @return -EINVAL. */
int dap_invalid(struct agent_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* code/paths.c */

/** Append the member `path` for a file of this machine, in the form that the editor wants. */
void dap_put_path(const struct dap *d, struct out *o, const char *path);
/**
 * Turn a path of the editor's into a path, in place.
 * @return false for a URI that is not one of a file of this machine.
 */
bool dap_take_path(const struct dap *d, char *path);

/** Read the arguments of attach that say where sources are, in place of earlier ones. */
int dap_sources_arg(struct dap *d, struct dap_json args, struct agent_err *err);
/** Free what they take. */
void dap_sources_deinit(struct dap_sources *s);
/**
 * Find a source on this machine.
 * @param file  Its path as the compiler wrote it, maybe on another one.
 * @return NULL if it is not here.
 */
const char *dap_source_path(const struct dap *d, struct rpc_arena *a, const char *file);

/* requests.c */

/** When a request may run. */
enum dap_when {
	DAP_WHEN_ALWAYS, /**< Needs nothing: runs at once, also while another waits. */
	DAP_WHEN_SEEN,	 /**< The same, once there is a snapshot. */
	DAP_WHEN_TURN,	 /**< Calls the agent. */
};

/** One kind of request. */
struct dap_handler {
	const char *command;
	/** @return 0 (the body is in @p ret), DAP_ANSWERED, negative with the error in @p ret. */
	int (*run)(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
	enum dap_when when;
	bool may_cancel;     /**< Its calls may be given up half way. */
	enum dap_state from; /**< First state in which it is allowed. */
	bool by_hand; /**< A person waits for it; an editor asks for the others by itself. */
};

/** Find the handler of a request.  @return NULL if there is none. */
const struct dap_handler *dap_find_handler(const char *command);
/** Check whether a handler may run in the present state.  @return 0, negative with @p err. */
int dap_check_order(const struct dap *d, const struct dap_handler *h, struct agent_err *err);

/* session.c */

/**
 * Do what attach left to do: connect, attach, take the first snapshot, show faults.
 * The request is answered, and a failure ends the session.
 */
void dap_session_begin(struct dap *d);
/**
 * Answer attach, if that was not done yet.
 * @param err  Why it failed; NULL if it did not.
 * @return false if it was answered before.
 */
bool dap_session_answer(struct dap *d, const struct agent_err *err);
/**
 * Detach, close the connection, and forget everything about the process.  It may be called twice.
 */
void dap_session_end(struct dap *d);
/** Tell the editor that the session is over, unless it was told so. */
void dap_terminated(struct dap *d);
/** Improve the error of a failed call if the program that reads the core file is gone. */
void dap_explain(struct dap *d, struct agent_err *err);
/** Handle the notifications that have arrived, then do what they call for. */
void dap_session_notifications(struct dap *d);
/** Keep the queues suspended, or let them go when nobody has used the editor for long. */
void dap_session_renew(struct dap *d);
/**
 * Have the editor go to a thread, which must stand still.
 * @return false when it does not, and the editor was told nothing.
 */
bool dap_session_reveal(struct dap *d, uint32_t thread);
/** Tell the editor what it sees, once it is configured and the session is there. */
void dap_session_announce(struct dap *d);
/** Take a snapshot in place of the present one; all references that were handed out end. */
int dap_session_snapshot(struct dap *d, struct agent_err *err);
/**
 * Take a snapshot that the editor did not ask to stop for; it is told if what it shows is out of
 * date.  References that were handed out stay true for one more snapshot.
 * @param select  Waves that the snapshot lists; NULL: none.
 */
int dap_session_look(struct dap *d, const struct rpc_wave_select *select, struct agent_err *err);
/**
 * Take a snapshot beside the present one.
 * @param ret  Release with dap_snapshot_free().
 */
int dap_session_ask(struct dap *d, const struct rpc_wave_select *select, struct dap_snapshot **ret,
		    struct agent_err *err);
/**
 * Suspend the queues, take a snapshot and tell the editor that it stopped.
 * When there is no snapshot, the queues run again.
 * @param reason  Reason of the event `stopped`, unless the waves know a better one.
 */
int dap_session_pause(struct dap *d, const char *reason, struct agent_err *err);
/** Let the queues run; the caller tells the editor.  It fails while another client holds them. */
int dap_session_continue(struct dap *d, struct agent_err *err);
/** Forget registers and values of waves, which may move now. */
void dap_forget(struct dap *d);
/** Tell the editor that the queues run again. */
void dap_continued(struct dap *d);
/** Get control of the process unless this session has it; it is not taken from another client. */
int dap_need_control(struct dap *d, struct agent_err *err);
/**
 * Get control of the process, and take it from the client that has it, as far as that is allowed.
 */
int dap_session_take_control(struct dap *d, struct agent_err *err);
/** Whether this is a core file, in which nothing runs. */
static inline bool dap_is_core(const struct dap *d)
{
	return d->core_file[0];
}
/** Whether what is shown stays true, because nothing moves. */
static inline bool dap_is_still(const struct dap *d)
{
	return d->paused || dap_is_core(d);
}

/** Another client has stopped the queues: take a snapshot and show what stands still now. */
void dap_session_show_held(struct dap *d);

/* holder.c */

/** Ask whether another client keeps queues suspended; sets d->held and d->held_by. */
int dap_holder_ask(struct dap *d, struct agent_err *err);
/** Whether the session has to ask for that from time to time, since the agent does not tell it. */
bool dap_holder_asks(const struct dap *d);
/** Ask for it when it is time, and tell the editor what has changed. */
void dap_holder_watch(struct dap *d);

/* host.c */

/** Look at the threads on the processors, if the editor wants them, for a fresh snapshot; says what is missing. */
void dap_host_look(struct dap *d, struct dap_snapshot *s);
/** Append them to the list of threads. */
void dap_host_threads(struct dap *d, struct out *o);
/** Whether the `threadId` of @p args is one of these. */
bool dap_host_is_thread(const struct dap *d, struct dap_json args);
/** Whether a number is that of a frame of theirs, in what was handed out and is true still. */
bool dap_host_is_frame(const struct dap *d, struct dap_json v);
/** Answer stackTrace for one of them.  @param levels  0: all. */
int dap_host_stack(struct dap *d, const struct dap_request *q, uint64_t start, uint64_t levels, struct dap_answer *ret);

/* threads.c */

/** Make the threads of a fresh document.  @return false without memory. */
bool dap_snapshot_index(const struct dap *d, struct dap_snapshot *s);
/** Free a snapshot; NULL is allowed. */
void dap_snapshot_free(struct dap_snapshot *s);
/** Find the `threadId` of @p args, or the focus if there is none.  @return NULL with @p err. */
struct dap_thread *dap_thread_arg(struct dap *d, struct dap_json args, struct agent_err *err);
/** The device's position among those of the process, as `GPU 1`. */
const char *dap_device_text(struct rpc_arena *a, const struct dap *d, uint32_t gpu_id);
/** Waves, kernel and location of a thread, behind the device where there are several. */
const char *dap_thread_name(struct rpc_arena *a, const struct dap *d, size_t i);
/** Why the waves of a group are stopped, joined by commas; "" without a reason. */
const char *dap_group_reasons(struct rpc_arena *a, const struct rpc_group *g);
/** The name of a wave, to ask the agent for it; the workgroup is borrowed from @p ref. */
struct rpc_wave_name dap_wave_of(const struct rpc_wave_ref *ref);
/** The name of a wave as text: `QUEUE:UNIT:INDEX`. */
const char *dap_wave_text(struct rpc_arena *a, const struct rpc_wave_name *w);
/** An exception of waves that have exited, in a line. */
const char *dap_exited_text(struct rpc_arena *a, const struct rpc_exited_exception *e);
/** Find a device in the snapshot; NULL if it is not there. */
const struct rpc_device *dap_device(const struct dap *d, uint32_t gpu_id);
/** Handler of `threads`. */
int dap_threads(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Handler of `stackTrace`; its thread becomes the focus. */
int dap_stack_trace(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** The pc of a frame: where its thread is, or will return to. */
uint64_t dap_frame_pc(const struct dap_thread *t, size_t level);
/** Whether a frame is the outermost one, and that of the kernel. */
bool dap_is_kernel_frame(const struct dap_thread *t, size_t level);

/* scopes.c */

/** Handler of `scopes`. */
int dap_scopes(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/**
 * @return whether it is known what the kernel of a thread's wave was launched with.  A group knows that of its
 *         representative's dispatch, and another wave that is shown may be of another one.
 */
bool dap_has_arguments(const struct dap_thread *t);
/** Append those arguments: `(table=0x0, n=160)`. */
void dap_put_arguments(struct out *o, const struct rpc_group *g);

/* refs.c */

/** A reference taken apart. */
struct dap_ref {
	enum dap_scope scope;
	uint32_t thread, index;
	uint32_t lane; /**< The lane whose values are meant, or DAP_LANE_ANY. */
	struct dap_refs *refs; /**< Those of the same snapshot: dap.refs or dap.refs_before. */
	struct dap_snapshot *snap; /**< Snapshot of the thread: dap.snap or dap.before. */
};
/**
 * The number for a reference to the same thread of the same snapshot as @p of.
 * @return 0, which no reference has, for an index that is too high, or when all are used up.
 */
uint32_t dap_ref_within(struct dap *d, const struct dap_ref *of, enum dap_scope scope,
			uint32_t index);
/**
 * The number for what is in a value of the frame @p of, whose index is its level.
 * @param text   Expression, or name; copied.
 * @param first  See struct dap_node.
 * @return 0 when all are used up.
 */
uint32_t dap_node_ref(struct dap *d, const struct dap_ref *of, enum dap_node_kind kind,
		      const char *text, uint32_t first);
/** Begin the references of another snapshot; the present ones become dap.refs_before. */
void dap_refs_renew(struct dap *d);
/** Free what references take. */
void dap_refs_deinit(struct dap *d);
/** A reference to the thread that the console speaks of. */
struct dap_ref dap_ref_focus(struct dap *d);
/**
 * Take a reference apart.  An editor asks once more for what it has shown before it hears that this
 * is out of date: references stay true for one more snapshot.
 * @return 0, -EINVAL with @p err (also for references that are older).
 */
int dap_ref_parse(struct dap *d, struct dap_json v, struct dap_ref *ret, struct agent_err *err);
/** The same for the `frameId` of @p args, which must be that of a frame. */
int dap_frame_arg(struct dap *d, struct dap_json args, struct dap_ref *ret, struct agent_err *err);

/* exceptions.c */

/** Whether an exception is a fault: news are not, nor what the program chose to raise. */
bool dap_exception_is_fault(enum rpc_exception e);
/** An exception in one line, with its device, queue and address. */
const char *dap_exception_text(struct rpc_arena *a, const struct dap *d,
			       const struct rpc_exception_raised_params *e);
/**
 * Which thread to show for the exception: one that it concerns, or else one of its device.
 * @return its position.
 */
size_t dap_exception_thread(const struct dap *d);
/**
 * Why a thread stopped: its waves' reasons, or the exception that they do not show; "" for nothing.
 */
const char *dap_stop_text(struct rpc_arena *a, const struct dap *d, size_t thread);
/**
 * Make a fault the exception that a device or queue has in the snapshot from before the session.
 * @return false if there is none.
 */
bool dap_exception_latched(struct dap *d);
/** Handler of `exceptionInfo`. */
int dap_exception_info(struct dap *d, const struct dap_request *q, struct dap_answer *ret);

/* registers.c: what they return is valid until the next call for another wave or chunk. */

/** Special registers of a wave that is named, and what its lanes work on, in the arena of the request. */
int dap_registers_of(struct dap *d, const struct rpc_wave_name *wave,
		     struct rpc_wave_registers_result *ret, struct agent_err *err);
/** All but vector registers, and what the lanes work on.  @return NULL with @p err. */
const struct rpc_wave_registers *dap_registers_shared(struct dap *d, const struct dap_ref *of,
						      struct agent_err *err);
/**
 * Vector and accumulation registers of one chunk; behind those of the first chunk, predicates.
 * @return NULL with @p err.
 */
const struct rpc_wave_registers *dap_registers_vector(struct dap *d, const struct dap_ref *of,
						      uint32_t chunk, struct agent_err *err);
/** How many vector registers there are in what was fetched for a chunk. */
size_t dap_registers_in_chunk(const struct rpc_wave_registers *r, uint32_t chunk);
/** Forget what was fetched. */
void dap_registers_forget(struct dap *d);

/* variables.c */

/** Handler of `variables`: what a scope, or something in it, holds. */
int dap_variables(struct dap *d, const struct dap_request *q, struct dap_answer *ret);

/* code/memory.c */

/**
 * Read bytes of the process, or of the LDS of a wave.
 * @param ret_data Decoded, in d->arena.
 */
int dap_memory_get(struct dap *d, const struct rpc_memory_read_params *p, uint8_t **ret_data,
		   size_t *ret_size, struct agent_err *err);
/** Whether a failed memory.read only says that there is no memory at that address. */
bool dap_is_unreadable(const struct agent_err *err);
/** Handler of `readMemory`. */
int dap_read_memory(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/**
 * Read the `memoryReference` of @p args, moved by its `offset`.
 * @return 0, -EINVAL with @p err.
 */
int dap_memory_reference(struct dap_json args, uint64_t *ret, struct agent_err *err);
/** Read a number that must be there, from @p min to @p max.  @return 0, -EINVAL with @p err. */
int dap_count_arg(struct dap_json args, const char *name, int64_t min, int64_t max, int64_t *ret,
		  struct agent_err *err);

/* code/instructions.c */

/** Handler of `disassemble`. */
int dap_disassemble(struct dap *d, const struct dap_request *q, struct dap_answer *ret);

/** Append lines around an address as text: @p before of them in front, and @p count from it on. */
int dap_show_instructions(struct dap *d, uint64_t address, uint32_t before, uint32_t count,
			  struct out *o, struct agent_err *err);

/* code/texts.c */

/** Forget all texts. */
void dap_texts_deinit(struct dap *d);
/** Handler of `source`. */
int dap_source(struct dap *d, const struct dap_request *q, struct dap_answer *ret);

/* code/listing.c */

/**
 * Find the code around an address as a source.
 * @param place     What the agent knows of the address; NULL for nothing.
 * @param ret_name  Name of the source, valid as long as the request.
 * @param ret_line  Line of the instruction, counted from 1.
 * @return its sourceReference, the same for each address of a function while its code is the same; 0, which is none,
 *         when it cannot be had.
 */
uint32_t dap_listing_at(struct dap *d, uint32_t gpu_id, const struct rpc_code_place *place, uint64_t pc,
			const char **ret_name, uint32_t *ret_line);

/* code/embedded.c */

/**
 * Find a source in the debug information of a code object.
 * @param place  What the agent knows of an address whose code was made of the source; NULL for nothing.
 * @param file   The source, as the frames of the place name it.
 * @return its sourceReference; 0: it is not there.
 */
uint32_t dap_embedded_at(struct dap *d, const struct rpc_code_place *place, const char *file);
/** Forget what is known of them. */
void dap_embedded_forget(struct dap *d);

/* breakpoints.c */

/** Append the list of exception filters, for the capabilities. */
void dap_put_filters(struct out *o);
/** Append the answer that none of a list of breakpoints is set, and why. */
void dap_put_refused(struct out *body, struct dap_json list, const char *why);
/**
 * Ask the agent of the present session for faults and for what the filters name; a failure is told
 * in the console.
 */
void dap_exceptions_begin(struct dap *d);
/** Whether an exception is to stop the GPU, because a filter names it or watch points are set. */
bool dap_exception_is_wanted(const struct dap *d, const struct rpc_exception_raised_params *e);
/** Handler of `setExceptionBreakpoints`. */
int dap_set_exception_breakpoints(struct dap *d, const struct dap_request *q,
				  struct dap_answer *ret);
/** Handler of `dataBreakpointInfo`: whether something can be watched, and under which id. */
int dap_data_breakpoint_info(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Handler of `setDataBreakpoints`, which replaces all watch points. */
int dap_set_data_breakpoints(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
struct dap_words;
/** The console's `watchpoint`; see dap_word_fn. */
int dap_word_watchpoint(struct dap *d, const struct dap_words *w, struct out *o,
			struct agent_err *err);

/* evaluate.c */

#define DAP_EXPRESSION_MAX 4096 /**< Room for an expression, with its NUL. */
#define DAP_LINE_MAX  256 /**< Room for a line of words, with its NUL. */
#define DAP_WORDS_MAX 6	  /**< Most words in it. */

/** A line that was typed, cut into words. */
struct dap_words {
	char text[DAP_LINE_MAX];
	char *w[DAP_WORDS_MAX]; /**< Pieces of text. */
	size_t n;
};

/** Handler of `evaluate`: a word of the console, an expression, or the name of a register. */
int dap_evaluate(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Check that there is a wave to look at.  @return 0, -EINVAL with @p err. */
int dap_need_wave(const struct dap *d, struct agent_err *err);

/* console.c */

/** A word of the console: does what it says and appends text for the user, without a line break. */
typedef int (*dap_word_fn)(struct dap *d, const struct dap_words *w, struct out *o,
			   struct agent_err *err);
/** Find the function of a word.  @return NULL if the console has no such word. */
dap_word_fn dap_find_word(const char *word);
/** Handler of `completions`: words that begin as what was typed. */
int dap_completions(struct dap *d, const struct dap_request *q, struct dap_answer *ret);

/* waves.c */

/** A page of a thread's waves. */
struct dap_waves {
	const struct rpc_wave *waves; /**< In `beside`, or in the present snapshot. */
	size_t n;
	uint64_t total; /**< Waves of the thread at the same moment. */
	struct dap_snapshot *beside; /**< Their snapshot, when it is not the present one; owned. */
};
/**
 * Get some waves of a thread.  While the GPU runs, the snapshot that they are in becomes the
 * present one.
 * @param which  Which waves; the groups are filled in here.
 * @param ret    Release with dap_waves_free() after success.
 */
int dap_waves_get(struct dap *d, uint32_t thread, const struct rpc_wave_select *which,
		  struct dap_waves *ret, struct agent_err *err);
/** Release a page. */
void dap_waves_free(struct dap_waves *w);
/**
 * Choose the groups that have parts of the same waves, maybe, and are one thread.
 * @param ret  The list to ask for, to count their waves.  @return false if there are none.
 */
bool dap_snapshot_apart(struct dap_snapshot *s, struct rpc_wave_select *ret);
/**
 * Count waves once that are at several places of their thread.
 * @param listed  Has those waves; NULL, or not all of them: there may be more of them than counted.
 */
void dap_snapshot_count(struct dap_snapshot *s, const struct rpc_wave_select *which,
			const struct rpc_gpu_snapshot_result *listed);

/* custom.c */

/** Handler of `gpuAgent/groups`: the groups as the agent describes them. */
int dap_gpu_groups(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Handler of `gpuAgent/waves`: a page of waves of one thread. */
int dap_gpu_waves(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Handler of `gpuAgent/lanes`: the lanes of a wave; shows one that is chosen. */
int dap_gpu_lanes(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Read a wave as `gpuAgent/waves` names it.  @param workgroup  Room that @p ret borrows. */
int dap_wave_arg(struct dap_json v, uint32_t workgroup[3], struct rpc_wave_name *ret,
		 struct agent_err *err);
/** Handler of `gpuAgent/focus`: show another wave, or another lane of it, for a thread. */
int dap_gpu_focus(struct dap *d, const struct dap_request *q, struct dap_answer *ret);
/** Handler of `gpuAgent/takeControl`: take control from the client that has it. */
int dap_gpu_take_control(struct dap *d, const struct dap_request *q, struct dap_answer *ret);

#endif /* DAP_ADAPTER_H */
