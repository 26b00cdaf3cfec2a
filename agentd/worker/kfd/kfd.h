/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_H
#define WORKER_KFD_H

/**
 * @file kfd.h
 * The AMD back end: what the files of this directory share.  No other directory includes it.
 *
 * Functions that fill an entry of struct target_ops behave as target/target.h says; their comments
 * add only what is special to AMD.
 */

#include <errno.h>
#include <kfdtrap.h>
#include <sys/stat.h>

#include "agentd/worker/kfd/fault_journal.h"
#include "agentd/worker/process/thread_pool.h"
#include "agentd/worker/target/target.h"

#define KFD_GPUS_MAX	64
#define KFD_WATCHES_MAX (KFD_GPUS_MAX * KFDTRAP_WATCH_IDS)

#define KFD_RUNTIME_MASK KFDTRAP_EC_MASK(KFDTRAP_EC_PROCESS_RUNTIME)
#define KFD_VIOLATION_MASK KFDTRAP_EC_MASK(KFDTRAP_EC_DEVICE_MEMORY_VIOLATION)
/** Exceptions that the kernel sends to the runtime if no debugger has subscribed (kfd_debug.c). */
#define KFD_FORWARD_QUEUE                                                                          \
	(KFDTRAP_EC_MASK_WAVES | KFDTRAP_EC_MASK_PACKETS |                                         \
	 KFDTRAP_EC_MASK(KFDTRAP_EC_QUEUE_PREEMPTION_ERROR))
#define KFD_FORWARD_DEVICE KFD_VIOLATION_MASK
/** How often the worker tries a command on which the target depends. */
#define KFD_TRIES 3
#define KFD_NEW_MASK KFDTRAP_EC_MASK(KFDTRAP_EC_QUEUE_NEW)

/** A source of exceptions under a subscription that withholds them. */
struct kfd_held {
	bool is_queue;
	uint32_t id;	   /**< queue_id or gpu_id. */
	uint64_t reported; /**< Exceptions that were announced and are still latched. */
	uint64_t held;	   /**< Exceptions that are withheld from the application. */
};

/** The file of the code object that was asked for last; it stays open for the next question. */
struct kfd_code_file {
	char *path; /**< The path as the target sees it, owned. */
	int fd;	    /**< Owned; -1: there is no such file. */
	struct stat st;
};

/** One watchpoint, on one device. */
struct kfd_watch {
	struct rpc_watchpoint w;
	uint32_t ticket; /**< Undo entry; UNDO_NONE: the slot is free. */
	bool set;	 /**< The kernel has it, as w.id. */
};

/** The state of a session on an AMD process. */
struct target_kfd {
	struct target t; /**< The first member, so that kfd_of() may cast. */
	int fd; /**< The KFD device, owned. */
	uint64_t program; /**< target_read_program() of the target, before this worker gave up its rights. */
	struct kfdtrap *kt;
	struct kfdtrap_topology *topology;
	bool handshake_open; /**< The target waits for this session's answer to PROCESS_RUNTIME. */
	bool send_fails; /**< The last SEND_RUNTIME_EVENT failed, as often as it was tried. */
	/** Threads that another debugger, before this session, left waiting for that answer. */
	unsigned n_left;

	uint64_t subscribed; /**< Exceptions, without PROCESS_RUNTIME, which is always on. */
	bool hold;	     /**< The subscription withholds faults until they are forwarded. */
	uint32_t subscribe_ticket;
	struct kfd_held *held;
	size_t n_held, held_capacity;
	/** Devices whose exception report is that of an earlier memory violation. */
	uint32_t stale[KFD_GPUS_MAX];
	size_t n_stale;
	struct kfd_journal *journal; /**< NULL until something is subscribed to. */

	uint32_t suspended[KFDTRAP_QUEUES_MAX]; /**< Ids of t.n_suspended queues under a lease. */
	bool suspend_failed[KFDTRAP_QUEUES_MAX]; /**< suspended[i] may run all the same. */
	uint32_t suspend_ticket;

	uint32_t stopped[KFDTRAP_QUEUES_MAX]; /**< Queues stopped for the capture under way. */
	size_t n_stopped;
	/** Threads that copy, made for the first capture; NULL: one thread copies alone. */
	struct thread_pool *pool;
	size_t n_seen; /**< How many waves the last capture found; 0 before the first. */

	enum rpc_launch_mode launch_mode;
	uint32_t launch_mode_ticket;
	uint32_t flags_before; /**< Flags before the first change. */
	uint32_t flags_ticket;
	uint32_t override_before;  /**< Traps before the first change. */
	uint32_t override_changed; /**< Traps that a client ever asked to change. */
	uint32_t override_ticket;
	struct kfd_code_file code_file;
	struct kfd_core *core; /**< The core that a client is fetching; NULL: none. */
	bool watch_trap; /**< The address-watch trap is on because of watches[]. */
	struct kfd_watch watches[KFD_WATCHES_MAX];
};

/** @return the back end's view of a target whose ops are target_kfd_ops or those of its cores. */
static inline struct target_kfd *kfd_of(struct target *t)
{
	return (struct target_kfd *)t;
}

/* errors.c */

/** Turn a failed command into an error, and end the session if it is lost.  @return negative. */
int kfd_error(struct target_kfd *k, int r, const char *op, struct agent_err *err);
/** As kfd_error(), for a hardware command, which can fail in more ways.  @return negative. */
int kfd_hw_error(struct target_kfd *k, int r, const char *op, struct agent_err *err);
/**
 * Give up a command that the target depends on, after it failed as often as it was tried: end the
 * session as lost, which is the stronger way to let the target go.
 * @param op  For kfd_error(); NULL: @p err tells already what failed.
 * @return r.
 */
int kfd_give_up(struct target_kfd *k, int r, const char *op, struct agent_err *err);
/** Turn a failed ENABLE into an error.  @return negative. */
int kfd_enable_error(struct target_kfd *k, int r, struct agent_err *err);
/** Check that the runtime is enabled, as hardware commands need it.  @return 0 or negative. */
int kfd_need_runtime(struct target_kfd *k, const char *op, struct agent_err *err);
/**
 * Judge the result of a command that undoes something.  The undo is done if the command succeeded,
 * or if the kernel undid it by itself and says so when it is asked.  Otherwise the command is to be
 * tried again: a refusal alone proves nothing.
 * @return 0 (it is undone), or negative with @p err.
 */
int kfd_undo_error(struct target_kfd *k, int r, const char *op, struct agent_err *err);

/* attach.c */

/**
 * Does the process have the device open, or a KFD context although it has closed the device?
 * @return 1, 0, -1 (that is not known).
 */
int kfd_process_uses(const struct worker_options *o, pid_t pid);
/**
 * Say how many secondary contexts a process has: no debugger sees their queues.
 * @return a sentence in @p a; NULL if there are none.
 */
const char *kfd_hidden_contexts(struct rpc_arena *a, uint32_t n);
/** target_ops.hidden_queues: those of secondary contexts, as KFD lists them now. */
const char *kfd_hidden_queues(struct target *t, struct rpc_arena *a);
/** Read the version of KFD's interface.  @return 0, -EOPNOTSUPP (too old to debug), -errno. */
int kfd_check_version(int fd, uint32_t *ret_major, uint32_t *ret_minor);
/** Note the state of the target's runtime, and forget what the kernel reset if it is off. */
void kfd_set_runtime(struct target_kfd *k, const struct kfdtrap_runtime_info *info);

/* queues.c */

/** target_ops.devices: the kernel's device snapshot, completed from the topology. */
int kfd_devices(struct target *t, struct rpc_arena *a, struct target_device **ret, size_t *ret_n,
		struct agent_err *err);
/** target_ops.queues: the kernel's queue snapshot, with the packet counters. */
int kfd_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret, size_t *ret_n,
	       struct agent_err *err);
/** target_ops.suspend.  Queues whose preemption failed count as suspended, as for the kernel. */
int kfd_suspend(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
		struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
		struct agent_err *err);
/** target_ops.suspended: the ids of the queues under a lease. */
size_t kfd_suspended(const struct target *t, uint32_t *ids, size_t max);
/** target_ops.resume.  A queue that cannot be resumed ends the session. */
int kfd_resume(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
	       struct rpc_queue_result **ret, size_t *ret_n, struct agent_err *err);
/**
 * Resume queues, once, and see what the kernel says of each.
 * @param ids  Out: KFDTRAP_QUEUE_HW_FAILED is set in the ids of queues that may stand all the same,
 *             KFDTRAP_QUEUE_GONE in those of queues that are gone.
 * @return 0 when none stands, or negative with @p err.
 */
int kfd_let_run(struct target_kfd *k, uint32_t *ids, size_t n, struct agent_err *err);
/**
 * Convert one device of the kernel's snapshot.
 * @param a         Holds its texts and the list of its exceptions, which are NULL when the arena is
 *                  exhausted.
 * @param topology  NULL: none is known.
 */
void kfd_fill_device(struct target_device *ret, struct rpc_arena *a, const struct kfdtrap_device *s,
		     const struct kfdtrap_topology *topology);
/**
 * The name of a device by its PCI ids, out of libdrm's table.
 * @return in @p a; NULL if the table is not there or does not have it.
 */
const char *kfd_marketing_name(struct rpc_arena *a, uint32_t device_id, uint32_t revision_id);
/** The same, out of the text of such a table. */
const char *kfd_name_in_table(struct rpc_arena *a, const char *table, uint32_t device_id, uint32_t revision_id);
/**
 * Convert one queue of the kernel's snapshot, and read its packet counters from the target.
 * @param a  Holds the list of its exceptions, which is NULL when the arena is exhausted.
 */
void kfd_fill_queue(struct target_kfd *k, struct rpc_arena *a, struct rpc_queue *q,
		    const struct kfdtrap_queue *s);
/** @return the exceptions that a queue snapshot may clear because no client waits for them. */
uint64_t kfd_snapshot_clear(const struct target_kfd *k);

/** Is a queue off the hardware because of a lease?  False also if its preemption failed. */
bool kfd_is_off(const struct target_kfd *k, uint32_t queue_id);

/* waves.c */

/** target_ops.waves: stop the compute queues, copy their save areas' waves, resume, decode. */
int kfd_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
	      struct target_waves *ret, struct agent_err *err);

/* registers.c */

/** target_ops.registers: a capture of one queue, with all saved bytes of one wave. */
int kfd_registers(struct target *t, const struct target_waves_from *from,
		  const struct target_registers_wanted *what, struct rpc_arena *a,
		  struct rpc_wave_registers *ret, uint64_t *ret_stopped_us, struct agent_err *err);

/* wave_memory.c */

/** target_ops.wave_memory: LDS and scratch. */
int kfd_wave_memory(struct target *t, const struct target_waves_from *from,
		    const struct target_wave_memory *what, struct rpc_arena *a,
		    struct agent_err *err);

/* code.c */

/** target_ops.code_list: the list that the target's runtime keeps for debuggers. */
int kfd_code_list(struct target *t, struct rpc_arena *a, struct code_list *ret);
/** target_ops.code_stat.  The file of the object stays open until another one is asked for. */
int kfd_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret);
/** target_ops.code_read: from the object's file or from the target's memory, as its URI says. */
ssize_t kfd_code_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
		      size_t size);
/** target_ops.code_done: close the file. */
void kfd_code_done(struct target *t);
/** @return whether the object's bytes are in a file and not in the target's memory. */
bool kfd_code_is_file(const struct code_object *o);
/**
 * Is the object's file still the one that was loaded?  The file may have been built again since;
 * loaded code begins with the headers of its file.
 * @return 0 (it is), KFD_CODE_UNSURE (the loaded code cannot be read), -ESTALE, -errno of the file.
 */
int kfd_code_compare(struct target *t, const struct code_object *o, uint64_t size);
#define KFD_CODE_UNSURE 1
/** target_ops.code_check: as kfd_code_compare(), but code that cannot be read is believed. */
int kfd_code_check(struct target *t, const struct code_object *o, uint64_t size);
struct symbols_code_list;
/** Read the runtime's list; answers as symbols_code_list_read(), but waits for a change to end. */
int kfd_read_code_list(struct target *t, struct symbols_code_list *ret);
/** @return what the list lacks after that answer @p r, for people; NULL: nothing. */
const char *kfd_code_list_problem(int r, const struct symbols_code_list *l, struct rpc_arena *a);

/* core_write.c */

/** target_ops.core_begin: a capture whose saved waves are copied whole. */
int kfd_core_begin(struct target *t, const struct target_waves_from *from,
		   const struct target_core_wanted *what, struct rpc_arena *a,
		   struct target_core *ret, struct agent_err *err);
/** target_ops.core_read.  Memory that was not copied is read from the running target. */
int kfd_core_read(struct target *t, uint64_t offset, void *buf, uint32_t size, uint64_t *ret_lost,
		  struct agent_err *err);
/** target_ops.core_end: free the core and its copies; without a core it does nothing. */
void kfd_core_end(struct target *t);

/* launch.c */

/** target_ops.launch_override: which traps waves launched from now on take. */
int kfd_launch_override(struct target *t, enum rpc_override_mode mode, uint32_t enable,
			uint32_t request, uint32_t *ret_previous, uint32_t *ret_supported,
			struct agent_err *err);
/** target_ops.launch_mode: how waves launched from now on start. */
int kfd_launch_mode(struct target *t, enum rpc_launch_mode mode,
		    enum rpc_launch_mode *ret_previous, struct agent_err *err);
/** target_ops.flags: KFDTRAP_FLAG_* for all devices of the target; all or nothing. */
int kfd_flags(struct target *t, uint32_t flags, uint32_t *ret_previous, struct agent_err *err);
/**
 * Forget launch mode, flags, override, watchpoints and suspended queues, with their undo entries:
 * the kernel has reset all of them when the runtime went off.
 */
void kfd_forget_hardware(struct target_kfd *k);

/* watchpoints.c */

/** target_ops.watch_set.  It turns on the address-watch trap, which waves launched later take. */
int kfd_watch_set(struct target *t, const uint32_t *gpu_id, uint64_t address, uint64_t size,
		  enum rpc_watch_mode mode, struct rpc_arena *a, struct rpc_watchpoint **ret,
		  size_t *ret_n, struct agent_err *err);
/** target_ops.watch_clear.  The end of the last watchpoint turns the trap off again. */
int kfd_watch_clear(struct target *t, const uint32_t *gpu_id, const uint32_t *id, uint32_t *ret_n,
		    struct agent_err *err);
/** target_ops.watch_list: this session's watchpoints, in the order of their creation. */
int kfd_watch_list(struct target *t, struct rpc_arena *a, struct rpc_watchpoint **ret,
		   size_t *ret_n, struct agent_err *err);
/** Can a device with these debug properties watch so?  @return 0 or negative with @p err. */
int kfd_watch_check(uint32_t gpu_id, uint32_t debug_prop, uint64_t address, uint64_t size,
		    struct agent_err *err);

/* events.c */

/** target_ops.event_drain: read the bytes that the kernel wrote as wake-ups. */
int kfd_event_drain(struct target *t);
/** target_ops.event_next.  A failure that lasts ends the session, since nothing would wake it. */
int kfd_event_next(struct target *t, struct target_event *ret, struct agent_err *err);
/** target_ops.event_done: answer the runtime's handshake, or send the withheld faults on. */
int kfd_event_done(struct target *t, const struct target_event *e, struct agent_err *err);
/** target_ops.subscribe.  PROCESS_RUNTIME stays subscribed in any case. */
int kfd_subscribe(struct target *t, uint64_t exceptions, bool hold, struct agent_err *err);
/** target_ops.query.  PROCESS_RUNTIME is never cleared: the worker itself answers it. */
int kfd_query(struct target *t, uint64_t clear, struct target_source *ret, struct agent_err *err);
/** target_ops.info.  Only a memory violation and the runtime have details. */
int kfd_info(struct target *t, enum rpc_exception code, uint32_t source_id, bool clear,
	     struct target_exception_info *ret, struct agent_err *err);
/** target_ops.forward: send a client's choice of withheld faults of one source on. */
int kfd_forward(struct target *t, const struct target_source *what, struct agent_err *err);
/**
 * Forward faults of one source to the application.  Faults that could not be sent stay in the
 * journal: the end of the subscription, and after that a rescue worker, try again.
 * @return 0, also when the device is gone; -errno.
 */
int kfd_send(struct target_kfd *k, bool is_queue, uint32_t id, uint64_t exceptions);
/** Send one answer to RUNTIME_ENABLE, trying more than once.  @return 0 or negative. */
int kfd_send_handshake(struct target_kfd *k, struct agent_err *err);
/**
 * Answer a target that waits in its runtime handshake, also if the event of that has not been read
 * yet.
 * @return 0 or negative with @p err.
 */
int kfd_answer_handshake(struct target_kfd *k, struct agent_err *err);

/**
 * Note whether the exception report that the kernel keeps for a device is that of an earlier memory
 * violation, and so must not be taken for that of the next one.
 */
void kfd_set_stale(struct target_kfd *k, uint32_t gpu_id, bool stale);

/* latched.c */

/**
 * Enable exceptions, and forget those of @p more that were raised before: they have reached the
 * runtime already.  The call may swallow wake-ups; target.event_swallowed says so.
 * @param mask    All exceptions that are enabled from now on.
 * @param ret_op  The command that failed, if one did.
 * @return 0 or -errno.
 */
int kfd_subscribe_afresh(struct target_kfd *k, uint64_t mask, uint64_t more, const char **ret_op);

/* rescue.c */

/** target_ops.rescue: give the answer and send the faults that a dead worker owed the target. */
int kfd_rescue(const struct worker_options *o);

/* probe.c */

/** target_ops.users: the processes that KFD lists in sysfs. */
int kfd_users(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
	      struct target_user **ret, size_t *ret_n, struct agent_err *err);
/** target_ops.checks: the device, KFD's version, the process's use of a GPU, and each GPU. */
int kfd_checks(const struct worker_options *o, const struct access_target *facts,
	       struct rpc_arena *a, struct rpc_check *checks, size_t capacity, size_t *ret_n);

#endif /* WORKER_KFD_H */
