/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_H
#define WORKER_KFD_H

/** @file kfd.h  AMD back end: shared by the files of kfd/, for nobody else. */

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
/** What the kernel would have told the runtime, had nobody subscribed (kfd_debug.c). */
#define KFD_FORWARD_QUEUE                                                                          \
	(KFDTRAP_EC_MASK_WAVES | KFDTRAP_EC_MASK_PACKETS |                                         \
	 KFDTRAP_EC_MASK(KFDTRAP_EC_QUEUE_PREEMPTION_ERROR))
#define KFD_FORWARD_DEVICE KFD_VIOLATION_MASK
/** How often a command is tried on which the target depends. */
#define KFD_TRIES 3
#define KFD_NEW_MASK KFDTRAP_EC_MASK(KFDTRAP_EC_QUEUE_NEW)

/** A source of exceptions while a subscription holds them. */
struct kfd_held {
	bool is_queue;
	uint32_t id;	   /**< queue_id or gpu_id. */
	uint64_t reported; /**< Announced and still latched. */
	uint64_t held;	   /**< Withheld from the application. */
};

/** The file of a code object that was asked for last. */
struct kfd_code_file {
	char *path; /**< As the target sees it. */
	int fd;	    /**< -1: none. */
	struct stat st;
};

struct kfd_watch {
	struct target_watch w;
	uint32_t ticket; /**< Undo entry; UNDO_NONE: slot is free. */
	bool set;	 /**< The kernel has it, as w.id. */
};

struct target_kfd {
	struct target t;
	int fd; /**< The KFD device. */
	struct kfdtrap *kt;
	struct kfdtrap_topology *topology;
	bool handshake_open; /**< The target waits for our answer to PROCESS_RUNTIME. */
	bool send_fails; /**< SEND_RUNTIME_EVENT, as often as it was tried last. */
	unsigned n_left; /**< Threads that another debugger left waiting for it, before our session. */

	uint64_t subscribed; /**< Without PROCESS_RUNTIME, which is always on. */
	bool hold;
	uint32_t subscribe_ticket;
	struct kfd_held *held;
	size_t n_held, held_capacity;
	uint32_t stale[KFD_GPUS_MAX]; /**< Devices with the record of a memory violation of before. */
	size_t n_stale;
	struct kfd_journal *journal; /**< NULL until something is subscribed to. */

	uint32_t suspended[KFDTRAP_QUEUES_MAX]; /**< t.n_suspended of them. */
	bool suspend_failed[KFDTRAP_QUEUES_MAX]; /**< suspended[i] may run all the same. */
	uint32_t suspend_ticket;

	uint32_t stopped[KFDTRAP_QUEUES_MAX]; /**< For the copy of waves under way. */
	size_t n_stopped;
	/** Copies; from the first look on that may be large.  NULL: nobody. */
	struct thread_pool *pool;
	size_t n_seen; /**< Waves of the last look, 0 before the first. */

	enum rpc_launch_mode launch_mode;
	uint32_t launch_mode_ticket;
	uint32_t flags_before;
	uint32_t flags_ticket;
	uint32_t override_before;  /**< Traps before the first change. */
	uint32_t override_changed; /**< Traps that were ever asked to change. */
	uint32_t override_ticket;
	struct kfd_code_file code_file;
	struct kfd_core *core; /**< That a client is fetching; NULL: none. */
	bool watch_trap; /**< The address-watch trap is on because of watches[]. */
	struct kfd_watch watches[KFD_WATCHES_MAX];
};

static inline struct target_kfd *kfd_of(struct target *t)
{
	return (struct target_kfd *)t;
}

/* errors.c */

/** How one errno of a debug command reads.  @return false: no particular meaning. */
bool kfd_errno_meaning(int err_no, int32_t *ret_code, const char **ret_text, const char **ret_hint);
/** Turn a failed command into an error; finds out whether the session is lost. */
int kfd_error(struct target_kfd *k, int r, const char *op, struct agent_err *err);
/** The same for hardware commands, which can fail in more ways. */
int kfd_hw_error(struct target_kfd *k, int r, const char *op, struct agent_err *err);
/**
 * What the target waits for failed as often as it was tried: end the session as lost, for that is the
 * stronger way to let it go.
 * @param op  For kfd_error(); NULL: @p err tells already what failed.
 * @return r.
 */
int kfd_give_up(struct target_kfd *k, int r, const char *op, struct agent_err *err);
int kfd_enable_error(struct target_kfd *k, int r, struct agent_err *err);
/** For hardware commands: the runtime must be enabled. */
int kfd_need_runtime(struct target_kfd *k, const char *op, struct agent_err *err);
/**
 * Of a command that undoes something: did it, or has the kernel done it by itself, and says so when
 * it is asked?  To be tried again otherwise: a refusal alone proves nothing.
 * @return 0, or negative with @p err.
 */
int kfd_undo_error(struct target_kfd *k, int r, const char *op, struct agent_err *err);

/* attach.c */

/** Does the process have the device open, or a context without it?  -1 when that is unknown. */
int kfd_process_uses(const struct worker_options *o, pid_t pid);
/** @return 0, -EOPNOTSUPP (older than the debug interface), -errno. */
int kfd_check_version(int fd, uint32_t *ret_major, uint32_t *ret_minor);
void kfd_set_runtime(struct target_kfd *k, const struct kfdtrap_runtime_info *info);

/* queues.c */

int kfd_devices(struct target *t, struct rpc_arena *a, struct target_device **ret, size_t *ret_n,
		struct agent_err *err);
int kfd_queues(struct target *t, struct rpc_arena *a, struct target_queue **ret, size_t *ret_n,
	       struct agent_err *err);
int kfd_suspend(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
		struct rpc_arena *a, struct target_queue_result **ret, size_t *ret_n,
		struct agent_err *err);
size_t kfd_suspended(const struct target *t, uint32_t *ids, size_t max);
int kfd_resume(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
	       struct target_queue_result **ret, size_t *ret_n, struct agent_err *err);
/**
 * Resume queues, once, and see what the kernel says of each.
 * @param ids  Out: KFDTRAP_QUEUE_HW_FAILED on those that may stand all the same, KFDTRAP_QUEUE_GONE
 *             on those that are there no more.
 * @return 0 when none stands, or negative with @p err.
 */
int kfd_let_run(struct target_kfd *k, uint32_t *ids, size_t n, struct agent_err *err);
/** What the kernel says of one, as others want it.  @param topology  NULL: nothing is known of it. */
void kfd_fill_device(struct target_device *d, const struct kfdtrap_device *s,
		     const struct kfdtrap_topology *topology);
void kfd_fill_queue(struct target_kfd *k, struct target_queue *q, const struct kfdtrap_queue *s);
/** Which exceptions a queue snapshot may clear without eating somebody's event. */
uint64_t kfd_snapshot_clear(const struct target_kfd *k);

/** Is a queue off the hardware because of a lease?  False also if its preemption failed. */
bool kfd_is_off(const struct target_kfd *k, uint32_t queue_id);

/* waves.c */

int kfd_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
	      struct target_waves *ret, struct agent_err *err);

/* registers.c */

int kfd_registers(struct target *t, const struct target_waves_from *from,
		  const struct target_registers_wanted *what, struct rpc_arena *a,
		  struct rpc_wave_registers *ret, uint64_t *ret_stopped_us, struct agent_err *err);

/* wave_memory.c */

int kfd_wave_memory(struct target *t, const struct target_waves_from *from,
		    const struct target_wave_memory *what, struct rpc_arena *a,
		    struct agent_err *err);

/* code.c */

int kfd_code_list(struct target *t, struct rpc_arena *a, struct code_list *ret);
int kfd_code_stat(struct target *t, const struct code_object *o, struct code_stat *ret);
ssize_t kfd_code_read(struct target *t, const struct code_object *o, uint64_t offset, void *buf,
		      size_t size);
void kfd_code_done(struct target *t);
/** Its bytes are on the disk and not in memory. */
bool kfd_code_is_file(const struct code_object *o);
/**
 * Is the object's file still the one that was loaded?  It may have been built again since; loaded
 * code begins with the headers of its file.
 * @return 0, KFD_CODE_UNSURE (what is loaded cannot be seen), -ESTALE, -errno of the file.
 */
int kfd_code_compare(struct target *t, const struct code_object *o, uint64_t size);
#define KFD_CODE_UNSURE 1
int kfd_code_check(struct target *t, const struct code_object *o, uint64_t size);
struct symbols_code_list;
/** The list itself; answers as symbols_code_list_read(), but waits for a change to end. */
int kfd_read_code_list(struct target *t, struct symbols_code_list *ret);
/** What of the list is missing after that answer, for people; NULL: nothing. */
const char *kfd_code_list_problem(int r, const struct symbols_code_list *l, struct rpc_arena *a);

/* core_write.c */

int kfd_core_begin(struct target *t, const struct target_waves_from *from,
		   const struct target_core_wanted *what, struct rpc_arena *a,
		   struct target_core *ret, struct agent_err *err);
int kfd_core_read(struct target *t, uint64_t offset, void *buf, uint32_t size, uint64_t *ret_lost,
		  struct agent_err *err);
void kfd_core_end(struct target *t);

/* launch.c */

int kfd_launch_override(struct target *t, enum rpc_override_mode mode, uint32_t enable,
			uint32_t request, uint32_t *ret_previous, uint32_t *ret_supported,
			struct agent_err *err);
int kfd_launch_mode(struct target *t, enum rpc_launch_mode mode,
		    enum rpc_launch_mode *ret_previous, struct agent_err *err);
int kfd_flags(struct target *t, uint32_t flags, uint32_t *ret_previous, struct agent_err *err);
/** The runtime went off: the kernel has reset launch mode, flags, override, watches, suspends. */
void kfd_forget_hardware(struct target_kfd *k);

/* watchpoints.c */

int kfd_watch_set(struct target *t, const uint32_t *gpu_id, uint64_t address, uint64_t size,
		  enum rpc_watch_mode mode, struct rpc_arena *a, struct target_watch **ret,
		  size_t *ret_n, struct agent_err *err);
int kfd_watch_clear(struct target *t, const uint32_t *gpu_id, const uint32_t *id, uint32_t *ret_n,
		    struct agent_err *err);
int kfd_watch_list(struct target *t, struct rpc_arena *a, struct target_watch **ret, size_t *ret_n,
		   struct agent_err *err);
/** Can a device with these debug properties watch so?  @return 0 or negative with @p err. */
int kfd_watch_check(uint32_t gpu_id, uint32_t debug_prop, uint64_t address, uint64_t size,
		    struct agent_err *err);

/* events.c */

int kfd_event_drain(struct target *t);
int kfd_event_next(struct target *t, struct target_event *ret, struct agent_err *err);
int kfd_event_done(struct target *t, const struct target_event *e, struct agent_err *err);
int kfd_subscribe(struct target *t, uint64_t exceptions, bool hold, struct agent_err *err);
int kfd_query(struct target *t, uint64_t clear, struct target_source *ret, struct agent_err *err);
int kfd_info(struct target *t, enum rpc_exception code, uint32_t source_id, bool clear,
	     struct target_exception_info *ret, struct agent_err *err);
int kfd_forward(struct target *t, const struct target_source *what, struct agent_err *err);
/**
 * Send faults of one source on to the application.  Those that could not be sent stay noted: the end
 * of the subscription, and after that a rescue worker, try again.
 */
int kfd_send(struct target_kfd *k, bool is_queue, uint32_t id, uint64_t exceptions);
/** One answer to RUNTIME_ENABLE, tried more than once. */
int kfd_send_handshake(struct target_kfd *k, struct agent_err *err);
/** Let go a target that waits in its runtime handshake, also when we have not read that yet. */
int kfd_answer_handshake(struct target_kfd *k, struct agent_err *err);

/** The record of a memory violation that the kernel has is, or is not, one of before. */
void kfd_set_stale(struct target_kfd *k, uint32_t gpu_id, bool stale);

/* latched.c */

/**
 * Enable exceptions, and forget those of @p more that were raised before and reached the runtime.
 * Wake-ups may be swallowed: target.event_swallowed says so.
 * @param mask    All that is enabled from now on.
 * @param ret_op  What failed, if it did.
 */
int kfd_subscribe_afresh(struct target_kfd *k, uint64_t mask, uint64_t more, const char **ret_op);

/* rescue.c */

int kfd_rescue(const struct worker_options *o);

/* probe.c */

int kfd_users(const struct worker_options *o, struct rpc_arena *a, struct target_user **ret,
	      size_t *ret_n, struct agent_err *err);
int kfd_checks(const struct worker_options *o, const struct access_target *facts,
	       struct rpc_arena *a, struct rpc_check *checks, size_t capacity, size_t *ret_n);

#endif /* WORKER_KFD_H */
