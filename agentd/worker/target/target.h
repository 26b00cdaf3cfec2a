/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TARGET_H
#define WORKER_TARGET_H

/**
 * @file target.h
 * One process under debug, whatever the vendor: what is common, and the table of what is not.
 *
 * Masks: `exceptions` has bit (code - 1) for each enum rpc_exception; traps and flags are the
 * values of enum rpc_trap and enum rpc_flag or-ed together.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agentd/access.h"
#include "agentd/worker/process/leader.h"
#include "agentd/worker/process/memory.h"
#include "agentd/worker/process/options.h"
#include "agentd/worker/process/undo.h"
#include "agentd/worker/target/code_object.h"
#include "agentd/worker/target/seen.h"
#include "agentd/worker/target/waves.h"
#include "protocol/agent_err.h"
#include "protocol/rpc_arena.h"
#include "rpc_gen.h"

struct out;

/** Room for a flat list of the most waves that a back end gives, with what it is made from. */
#define TARGET_ARENA_MAX ((size_t)128 << 20)
/**
 * Memory of applications ends here on aarch64, and at half of it on x86-64; AMD's apertures for a workgroup's and
 * a lane's own memory begin here (drivers/gpu/drm/amd/amdkfd/kfd_flat_memory.c).
 */
#define TARGET_GLOBAL_END (UINT64_C(1) << 48)

/** A device of the target. */
struct target_device {
	struct rpc_device rpc;	 /**< What it points to lasts as long as the arena and the target. */
	bool no_topology;	 /**< AMD: node, pci domain and memory are unknown. */
	uint32_t shader_engines; /**< AMD: of each compute die. */
};

/** What target_ops.waves works on: facts that were read while the queues ran. */
struct target_waves_from {
	const struct target_device *devices;
	size_t n_devices;
	const struct rpc_queue *queues;
	size_t n_queues;
	uint32_t max_stop_ms;
	bool registers; /**< Of one wave at each place, too. */
	bool all_arguments; /**< Of all dispatches, not only of the first few. */
	bool mbarriers; /**< NVIDIA: what is waited for and polled in memory, sizes of clusters, and what NCCL's
			 * kernels do, too. */
};

/** What a look at the waves meant for one queue. */
struct target_queue_stop {
	bool has_stopped_us;  /**< It was stopped for this and runs again. */
	uint64_t stopped_us;
	bool has_not_stopped; /**< Its waves are unknown. */
	enum rpc_not_stopped not_stopped;
};

/** What was passed to a dispatch, copied while its waves stood still. */
struct target_arguments {
	uint32_t gpu_id, queue_id;
	uint64_t dispatch;
	/** From the first argument on, perhaps not all; NULL: they cannot be read. */
	const uint8_t *bytes;
	uint32_t size;
};

/** NVIDIA: lanes of a wave that stand at an instruction that waits for a barrier object in shared memory. */
struct target_mbarrier {
	uint32_t wave;	 /**< Position of the wave. */
	uint64_t pc, at; /**< Where the lanes are, and the instruction. */
	bool is_read;	 /**< The members below were, all of them. */
	uint32_t address, phase_register;
	uint64_t word;	 /**< The object. */
	uint32_t cluster[3]; /**< Size of the cluster that the workgroup is in; 0: it is in none. */
	bool has_unknown_cluster; /**< It may be in one, and the size is not known. */
};

/** NVIDIA: a workgroup of which a wave stands at the barrier of its cluster. */
struct target_cluster {
	uint32_t wave;	  /**< Position of the first one that does. */
	uint32_t size[3]; /**< Workgroups of its cluster in each direction; 0: it is in none. */
	bool is_unknown;  /**< The size is not known. */
};

/** Words of CUDBGCbuWarpState, which waits/cbu.h reads. */
#define TARGET_CONVERGENCE_WORDS    51u
#define TARGET_CONVERGENCE_BARRIERS 16u /**< Of them masks, behind the first three. */

/** NVIDIA: the state of the convergence barriers of a wave whose lanes are at different places. */
struct target_convergence {
	uint32_t wave; /**< Position of the wave. */
	uint32_t words[TARGET_CONVERGENCE_WORDS];
};

/** Most words of which any one ends a loop. */
#define TARGET_SPIN_WORDS 4u

/** NVIDIA: a word that a loop polls. */
struct target_word {
	uint64_t load;	/**< Where the loop loads it. */
	uint64_t address;
	bool is_shared; /**< The address is one of memory of the workgroup. */
	bool is_host;	/**< It is one of memory of the host. */
	uint8_t bytes, op; /**< Of the word; enum waits_compare. */
	bool is_signed;
	uint64_t with, mask; /**< The loop ends when (word & mask) compares so with it. */
	bool has_value;
	uint64_t value; /**< The word, of the same stop. */
};

/** NVIDIA: lanes of a wave that are in a loop which polls memory, the first of those who are in it. */
struct target_spin {
	uint32_t wave;	 /**< Position of the wave. */
	uint64_t pc;	 /**< Of the lane. */
	uint64_t begin, end; /**< The loop. */
	uint32_t lane, lanes; /**< The lane that was looked at, and all of the wave that are in the loop. */
	uint32_t warps; /**< In the loop, of the same dispatch. */
	bool is_lock, sleeps; /**< The load is a compare and swap; the loop sleeps. */
	bool is_grid;	/**< The word is that by which workgroups of a cooperative launch wait for each other. */
	/** It asks for what others of the device, or of the workgroup, write, of all words; and not of the system. */
	bool of_device;
	uint32_t grid[3]; /**< Workgroups of the launch in each direction; 0: not known. */
	bool is_read;	/**< What the words are was. */
	uint8_t n_words;
	struct target_word words[TARGET_SPIN_WORDS]; /**< One of them ends the loop, in the order of its compares. */
	bool has_last; /**< Of a loop with one word, of several lanes. */
	struct target_word last; /**< The word of the last of the lanes. */
};

/** NVIDIA: a block of a kernel of NCCL that receives of a rank, which has sent nothing since the kernel began. */
struct target_receive {
	uint32_t block, from;
	uint32_t connection; /**< Which one of those with that rank. */
	uint64_t arrived, taken; /**< Steps by that connection; where flags say so, arrived is the same as taken. */
	uint64_t word; /**< Where arrived was read; 0: flags say so. */
};

/** NVIDIA: a dispatch of a kernel of NCCL. */
struct target_collective {
	uint32_t wave;	/**< Position of its first wave. */
	uint64_t communicator; /**< Its address; 0: what the kernel was given was not read. */
	bool is_read;	/**< The members below were. */
	bool is_other;	/**< They were not, as the communicator is not laid out as known. */
	uint32_t rank, ranks, previous, next;
	/** Of blocks that are where they receive, those that have received nothing. */
	struct target_receive *receives;
	uint32_t n_receives;
	/**
	 * Blocks that are there, and of which it is not known, a bit each: memory does not say, or it was not read for
	 * lack of time, or the release may have given them nothing to receive, or keeps what they execute otherwise, or
	 * they stand where they may as well have received all.
	 */
	uint64_t unread, left, empty, old, between;
};

struct target_waves {
	struct wave *waves; /**< Those of a queue and die together, workgroup by workgroup. */
	size_t n_waves;
	struct wave *exited; /**< Exceptions of waves that are gone: see snapshot/exited.h. */
	size_t n_exited;
	struct rpc_wave_registers *registers; /**< Of some, the first at each place among them. */
	size_t n_registers;
	struct target_mbarrier *mbarriers; /**< In the order of the waves. */
	size_t n_mbarriers;
	struct target_cluster *clusters; /**< In the order of the waves. */
	size_t n_clusters;
	struct target_convergence *convergences; /**< In the order of the waves; of some, where a release tells them. */
	size_t n_convergences;
	struct target_spin *spins; /**< In the order of the waves. */
	size_t n_spins;
	bool polls_left_out; /**< Of NVIDIA's warps some may wait for mbarriers or poll without being among these. */
	struct target_collective *collectives; /**< In the order of the waves. */
	size_t n_collectives;
	uint64_t collectives_us; /**< Wall clock in front of the first of these reads. */
	/** Of some dispatches.  Those of others may still be where the waves say. */
	struct target_arguments *arguments;
	size_t n_arguments;
	const char **missing; /**< What could not be read, and why. */
	size_t n_missing;
	struct target_queue_stop *stops; /**< Of each of target_waves_from.queues; NULL: none. */
	uint64_t stopped_us;  /**< The longest of them. */
	uint64_t agent_us;    /**< Of that, what was not spent in the kernel's suspend and resume. */
	bool budget_exceeded; /**< The copy ended early, for lack of time. */
};

/** Of which wave, and what of it. */
struct target_registers_wanted {
	const struct rpc_wave_name *wave;
	uint32_t banks;	       /**< Bit (1 << bank) for each enum rpc_register_bank. */
	uint32_t first, count; /**< Of vector and accumulation registers. */
	bool work_items;
};

struct target_wave_memory {
	const struct rpc_wave_name *wave;
	enum rpc_memory_space space; /**< Not global. */
	uint32_t lane;		     /**< Of scratch and generic. */
	uint32_t bank;		     /**< Of constant. */
	uint64_t address;	     /**< From 0 on, or flat. */
	const uint64_t *addresses;   /**< Of generic, with @c lanes: that of each, by lane. */
	void *buf;
	uint32_t size;
	/**
	 * Of scratch and generic: lanes whose memory is wanted instead of that of one, in the same stop; 0: only
	 * that one.
	 * The bytes of lane n are @p size from buf + n * size on, and got[n] says how many they are;
	 * it stays as it is where there was no time to read any.
	 */
	uint64_t lanes;
	uint32_t *got;
};

struct target_core_wanted {
	bool full;     /**< All memory of the process, not only what explains its waves. */
	bool unified;  /**< The host's half, too: threads stop for a moment each. */
	bool estimate; /**< Stop nothing, keep nothing: only say how large it would be. */
	bool count;    /**< With estimate: stop the devices while waves are counted, where nothing else tells. */
	bool ours;     /**< The agent's own: no writer that leaves takes it along, only core_end does. */
	bool waves;    /**< Tell what they do, too (target_core.waves). */
	bool has_layout;
	enum rpc_core_layout layout; /**< Of the records, where there are several. */
	const struct out *head; /**< Goes into it for whoever reads it (COREFILE_AGENT_NOTE). */
};

/** A core that is to be fetched. */
struct target_core {
	uint64_t bytes;	       /**< Of the whole file. */
	bool at_most;	       /**< Of an estimate: devices that were not counted are taken for full. */
	uint64_t copied_bytes; /**< Of them, copied while queues stood still. */
	size_t n_segments, n_waves;
	uint64_t stopped_us, agent_us; /**< As in struct target_waves. */
	uint32_t n_threads, n_missed_threads;
	uint64_t thread_stopped_us; /**< The longest stop of one of them. */
	bool budget_exceeded;
	const char **missing;
	size_t n_missing;
	bool has_waves; /**< They were wanted and seen; also where there is no core after all. */
	struct target_waves waves; /**< As waves() gives them, of the core's own stop. */
};

struct target_source {
	uint64_t exceptions; /**< All bits latched at the source. */
	bool has_gpu, has_queue;
	uint32_t gpu_id, queue_id;
};

struct target_event {
	enum { TARGET_EVENT_RUNTIME, TARGET_EVENT_EXCEPTION } kind;
	struct target_source source; /**< Of an exception. */
	bool has_address;
	uint64_t address; /**< Faulting page. */
	bool has_access;  /**< How it was touched is known. */
	bool not_present, read_only, no_execute;
	uint64_t withheld; /**< From the application; target_ops.event_done will send it on. */
	bool forwarded;	  /**< It hears of it from event_done on. */
	bool held;	  /**< It hears of it when a client says so. */
};

struct target_exception_info {
	bool latched, details;
	bool not_present, read_only, no_execute;
	uint64_t address;
};

/** A process that uses a GPU, seen without touching it. */
struct target_user {
	pid_t pid;
	uint32_t n_queues;
	uint32_t *gpu_ids; /**< Without doubles, ascending. */
	size_t n_gpu_ids;
	const char *hidden; /**< Which queues of it no debugger sees; NULL: none. */
};

/** Of a target that is a core file: where it comes from, and what its waves do not tell. */
struct target_origin {
	struct rpc_snapshot_source source;
	uint64_t time_us;
	struct rpc_process process; /**< Without what is counted in its queues. */
	bool has_holder_uid;
	uint32_t holder_uid; /**< Of the writer lease at that time. */
	const char **missing; /**< What the file lacks, or whoever wrote it could not read. */
	size_t n_missing;
};

struct target {
	const struct target_ops *ops;
	const struct worker_options *options;
	const struct target_origin *origin; /**< NULL: it is a process. */
	struct access_target facts;
	char *exe;	      /**< Program file; NULL when it could not be read. */
	uint64_t start_ticks; /**< Field 22 of /proc/PID/stat: tells a reused pid. */
	struct memory memory;
	int maps_fd; /**< Its mappings (process/mappings.h); -1 when they could not be opened. */
	int root_fd; /**< Its root directory (process/code_file.h); -1 when it could not be opened. */
	struct symbols_cache *code_cache; /**< NULL until somebody asks (snapshot/code.h). */
	struct leader leader;
	const struct leader_sys *leader_sys;
	bool is_own; /**< Seized with no more rights than the target's user has. */
	bool is_confined; /**< The worker has given up its rights and is in its sandbox. */
	struct undo undo;
	uint32_t lease_mark; /**< Above it in undo: what a writer has set. */
	struct rpc_runtime runtime;
	char version[16]; /**< Of the kernel interface. */
	int event_fd;	  /**< Readable when something happened; -1 if there is none. */
	bool event_swallowed; /**< It was, and is not any more: ask. */
	size_t n_suspended;
	uint64_t suspended_since_ns; /**< Monotonic; valid while n_suspended. */
	bool memory_no_stop; /**< target_ops.memory may stop nothing now. */
	uint64_t memory_stopped_us; /**< For how long it has. */
	bool ended;
	enum rpc_end_reason end_reason;
};

/**
 * Operations of one vendor back end.
 *
 * To add a back end:
 *  - agentd/worker/foo/ with `const struct target_ops target_foo_ops`, listed in target_list[];
 *  - create, enable, destroy, devices and queues are mandatory; any other entry may be NULL, which
 *    callers turn into the `unsupported` error;
 *  - push an undo entry before every change of state (process/undo.h);
 *  - an operation that finds the session gone calls target_end() and returns its error;
 *  - tests/unit/test_worker_target_foo.c driven by a fake device.
 *
 * None stops the CPU side of the target, and all run on the thread that seized it.  Functions with
 * an `err` return 0 (or a named positive answer), or negative with err filled in.
 */
struct target_ops {
	enum rpc_vendor vendor;
	/** The main thread of the target is not seized: enable stops what it needs by itself. */
	bool no_seize;
	/** event_next looks at the devices: it may take as long as a call. */
	bool slow_events;
	/** Memories that wave_memory shows, TARGET_SPACE_BIT(). */
	uint32_t wave_spaces;

	/**
	 * Has this machine, as far as the agent sees, this vendor's devices or the library for them?  What the
	 * others say of a process that is nobody's then matters less.
	 */
	bool (*is_here)(const struct worker_options *o);
	/**
	 * First half of attaching, with the worker's privileges: check, open devices.  The last one in
	 * target_list[] may give those up (is_confined), after target_open().
	 * @return 0, negative, or TARGET_NOT_MINE with @p err: not a user of this vendor's devices.
	 */
	int (*create)(const struct worker_options *o, const struct access_target *facts,
		      struct target **ret, struct agent_err *err);
	/** Not seized yet, and for the last time with the worker's privileges: look at what needs them. */
	void (*look)(struct target *t);
	/** Second half, seized and without privileges; may block for some milliseconds. */
	int (*enable)(struct target *t, struct agent_err *err);
	/** Ids of the queues that suspend has stopped: t->n_suspended, or fewer where @p max is less. */
	size_t (*suspended)(const struct target *t, uint32_t *ids, size_t max);
	/** Release memory and descriptors; undoes nothing. */
	void (*destroy)(struct target *t);
	/**
	 * After undo: may the target have slipped into a state that our exit leaves it in (a wait for
	 * an answer that nobody gives)?  The monitor, which may look at all of it, then does.
	 */
	bool (*needs_nudge)(struct target *t);

	/** Empty event_fd.  @return 0, -EPIPE when the other side closed it. */
	int (*event_drain)(struct target *t);
	/** @return 1 and an event, 0 when there is none. */
	int (*event_next)(struct target *t, struct target_event *ret, struct agent_err *err);
	/** The event has been announced: let the target have it. */
	int (*event_done)(struct target *t, const struct target_event *e, struct agent_err *err);

	int (*devices)(struct target *t, struct rpc_arena *a, struct target_device **ret,
		       size_t *ret_n, struct agent_err *err);
	int (*queues)(struct target *t, struct rpc_arena *a, struct rpc_queue **ret,
		      size_t *ret_n, struct agent_err *err);
	/** Which queues of the target no debugger sees, for `missing`.  @return NULL: none. */
	const char *(*hidden_queues)(struct target *t, struct rpc_arena *a);

	/** May block for the preemption time.  @param ids NULL: all.  Some may fail: see results. */
	int (*suspend)(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
		       struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
		       struct agent_err *err);
	/** Only queues that this session suspended.  @param ids NULL: all of those. */
	int (*resume)(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
		      struct rpc_queue_result **ret, size_t *ret_n, struct agent_err *err);

	/**
	 * What every wave is doing: stop the queues that run, copy, let exactly those run again.
	 * Queues are never stopped longer than the budget plus what the kernel takes; when it is
	 * used up, what was copied until then is the answer.  Writes nothing into the target.  Must
	 * have let go all that it stopped, failures included; when that is impossible it ends the
	 * session (target_end()).  The caller has armed the deadline.
	 */
	int (*waves)(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
		     struct target_waves *ret, struct agent_err *err);

	/**
	 * Registers of one wave; what is said of waves() holds here too.
	 * @param from  With the queue of that wave alone.
	 * @param ret_stopped_us  Set on failure too.
	 */
	int (*registers)(struct target *t, const struct target_waves_from *from,
			 const struct target_registers_wanted *what, struct rpc_arena *a,
			 struct rpc_wave_registers *ret, uint64_t *ret_stopped_us,
			 struct agent_err *err);
	/**
	 * Memory that a wave sees, in one of wave_spaces, likewise.
	 * @return bytes read, of one of the lanes at least 1.
	 */
	int (*wave_memory)(struct target *t, const struct target_waves_from *from,
			   const struct target_wave_memory *what, struct rpc_arena *a,
			   struct agent_err *err);

	/**
	 * Memory of the process as its devices see it; NULL, or negative without the end of the
	 * session: /proc/PID/mem shows it.  Devices may stop for some milliseconds, which is told in
	 * memory_stopped_us; with memory_no_stop they do not, and -EBUSY means that they would have to.
	 */
	ssize_t (*memory)(struct target *t, uint64_t address, void *buf, uint32_t size,
			  struct agent_err *err);

	/**
	 * Code objects that are loaded now; only the first members of each are filled.  Either all
	 * entries of these or none.  Reads, stops nothing.
	 * @return 0, also when the list cannot be had or is not whole (problem); -ENOMEM.
	 */
	int (*code_list)(struct target *t, struct rpc_arena *a, struct code_list *ret);
	/**
	 * @return 0; -EADDRNOTAVAIL, with @p ret filled in, where its code has no addresses yet;
	 *         -errno, of which snapshot/code.c knows those that say something.
	 */
	int (*code_stat)(struct target *t, const struct code_object *o, struct code_stat *ret);
	/**
	 * Of one that is looked into: are its bytes those that were loaded?  @p size: of code_stat.
	 * NULL although the others are there: always.  @return 0, -ESTALE, -errno.
	 */
	int (*code_check)(struct target *t, const struct code_object *o, uint64_t size);
	/** @return bytes from the offset on, fewer where it ends; -errno. */
	ssize_t (*code_read)(struct target *t, const struct code_object *o, uint64_t offset,
			     void *buf, size_t size);
	/** Nothing more is asked for now: let go what the questions have opened. */
	void (*code_done)(struct target *t);

	/**
	 * Begin a core file: copy what the waves do, as waves() does, and keep it until core_end();
	 * one begun before is forgotten, and any is when the writer leaves.  All three or none.
	 */
	int (*core_begin)(struct target *t, const struct target_waves_from *from,
			  const struct target_core_wanted *what, struct rpc_arena *a,
			  struct target_core *ret, struct agent_err *err);
	/**
	 * Bytes of that file; stops nothing.
	 * @param ret_lost  Grows by the bytes of memory that cannot be read: they are zeros.
	 * @return bytes, fewer than asked for at its end only.
	 */
	int (*core_read)(struct target *t, uint64_t offset, void *buf, uint32_t size,
			 uint64_t *ret_lost, struct agent_err *err);
	/**
	 * Where the bytes of that file from @p offset on lie, as many as lie together, so that they
	 * need not be copied; good until it ends.  NULL: never.
	 * @return NULL when core_read() has to be asked for them.
	 */
	const void *(*core_at)(struct target *t, uint64_t offset, uint64_t *ret_size);
	void (*core_end)(struct target *t);

	/** @param gpu_id NULL: every device, all or nothing. */
	int (*watch_set)(struct target *t, const uint32_t *gpu_id, uint64_t address, uint64_t size,
			 enum rpc_watch_mode mode, struct rpc_arena *a, struct rpc_watchpoint **ret,
			 size_t *ret_n, struct agent_err *err);
	/** @param gpu_id, id NULL: every one. */
	int (*watch_clear)(struct target *t, const uint32_t *gpu_id, const uint32_t *id,
			   uint32_t *ret_n, struct agent_err *err);
	int (*watch_list)(struct target *t, struct rpc_arena *a, struct rpc_watchpoint **ret,
			  size_t *ret_n, struct agent_err *err);

	/** @param request 0 only asks. */
	int (*launch_override)(struct target *t, enum rpc_override_mode mode, uint32_t enable,
			       uint32_t request, uint32_t *ret_previous, uint32_t *ret_supported,
			       struct agent_err *err);
	int (*launch_mode)(struct target *t, enum rpc_launch_mode mode,
			   enum rpc_launch_mode *ret_previous, struct agent_err *err);
	int (*flags)(struct target *t, uint32_t flags, uint32_t *ret_previous,
		     struct agent_err *err);

	/** Replaces the subscription; 0 ends it and forwards what is held. */
	int (*subscribe)(struct target *t, uint64_t exceptions, bool hold, struct agent_err *err);
	/** @return 1 and a source, 0 when nothing is latched. */
	int (*query)(struct target *t, uint64_t clear, struct target_source *ret,
		     struct agent_err *err);
	int (*info)(struct target *t, enum rpc_exception code, uint32_t source_id, bool clear,
		    struct target_exception_info *ret, struct agent_err *err);
	int (*forward)(struct target *t, const struct target_source *what, struct agent_err *err);

	/**
	 * In a worker of its own (inspect/rescue.h), after that of a session died: undo what it left, by the
	 * record in IPC_FD_UNDO.  Needs no target.  May be NULL.
	 * @return 0 (also when the process is gone), TARGET_NOT_MINE (the record is another's),
	 *         -errno; says itself what happened.
	 */
	int (*rescue)(const struct worker_options *o);

	/**
	 * Processes that use this vendor's GPUs.  Needs no target.
	 * @param seen  Limits and remembers what is read of other processes.
	 */
	int (*users)(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
		     struct target_user **ret, size_t *ret_n, struct agent_err *err);
	/**
	 * Preconditions of this vendor for process.doctor.  Needs no target.
	 * @return 0, or TARGET_NOT_MINE: what was found matters only when no other vendor's is it.
	 */
	int (*checks)(const struct worker_options *o, const struct access_target *facts,
		      struct rpc_arena *a, struct rpc_check *checks, size_t capacity,
		      size_t *ret_n);
};

/**
 * Open the target's memory, mappings, root directory and program, with the rights that this process
 * has now.  Only the memory has to be there: without the rest, something is missing in what is told.
 * @return 0, or -errno of opening /proc/PID/mem.
 */
int target_open(struct target *t);

/** Every back end, NULL at the end. */
extern const struct target_ops *const target_list[];
extern const struct target_ops target_kfd_ops;
extern const struct target_ops target_cuda_ops;

/** target_ops.create: another back end may know the process. */
#define TARGET_NOT_MINE 1

#define TARGET_SPACE_BIT(space) (UINT32_C(1) << (unsigned)(space))
/** Memories that devices of all vendors have. */
#define TARGET_SPACES_COMMON                                                                       \
	(TARGET_SPACE_BIT(RPC_MEMORY_SPACE_LDS) | TARGET_SPACE_BIT(RPC_MEMORY_SPACE_SCRATCH))

#define TARGET_EXCEPTION_BIT(code) (UINT64_C(1) << ((unsigned)(code) - 1u))
/** Raised by waves, which then stand still. */
#define TARGET_EXCEPTIONS_OF_WAVES                                                                 \
	(TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_ABORT) |                                          \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_TRAP) |                                           \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_MATH_ERROR) |                                     \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_ILLEGAL_INSTRUCTION) |                            \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_MEMORY_VIOLATION) |                               \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_FAULT) |                                          \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_WAVE_ADDRESS_ERROR) |                                  \
	 TARGET_EXCEPTION_BIT(RPC_EXCEPTION_DEVICE_MEMORY_VIOLATION))

/**
 * Attach: everything from reading facts to the enabled session.
 * Drops privileges and enters the sandbox on the way, on failure maybe not.
 * @param ret       Release with target_destroy(); run its undo list first.
 * @param ret_look  On failure: what target_needs_nudge() would have said.
 */
int target_attach(const struct worker_options *o, struct target **ret, bool *ret_look,
		  struct agent_err *err);
/** Its undo list was run.  @return true when the monitor has to look at it (IPC_EXIT_LOOK). */
bool target_needs_nudge(struct target *t);
/**
 * Is what this vendor's back end says of a process that it does not know worth telling?  Not where the machine has
 * devices of other vendors only.
 */
bool target_vendor_matters(const struct worker_options *o, const struct target_ops *ops);
void target_destroy(struct target *t);

/**
 * What tells the program that a process executes from those that it executes later, whose pid and start
 * are the same: made of the random bytes that the kernel hands to each.
 * @return 0: this process may not read them.
 */
uint64_t target_read_program(pid_t pid);

/** For back ends: what all have in common. */
void target_init(struct target *t, const struct target_ops *ops, const struct worker_options *o,
		 const struct access_target *facts);
void target_deinit(struct target *t);

/** Note that the session is over, and why: the first reason stays.  @return -ESRCH with @p err. */
int target_end(struct target *t, enum rpc_end_reason reason, const char *op,
	       struct agent_err *err);
/** The kernel says that the process or its address space is gone: which of the two? */
enum rpc_end_reason target_why_gone(struct target *t);
/** Has the process ended?  Does not wait. */
bool target_is_gone(void);

/**
 * What could not be undone after several tries: the session is over, for all of its clients and its
 * rule, and the end of this process makes the kernel undo it.
 * @param r   What the last try returned.
 * @return r.
 */
static inline int target_undo_failed(struct target *t, int r)
{
	target_end(t, r == -ESRCH ? target_why_gone(t) : RPC_END_REASON_LOST, "undo", NULL);
	return r;
}
/** undo_run(), and the end of the session where that fails.  @return as undo_run(). */
static inline int target_undo(struct target *t, uint32_t mark, struct agent_err *err)
{
	int r = undo_run(&t->undo, mark, err);

	return r < 0 ? target_undo_failed(t, r) : r;
}

#endif /* WORKER_TARGET_H */
