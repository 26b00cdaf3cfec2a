/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_SESSION_H
#define CUDBGSHIM_SESSION_H

/**
 * @file cudbgshim_session.h
 * Attaching to a CUDA process and detaching from it, as two lists of named steps.
 *
 * The machine never waits by itself: cudbgshim_session_step() does what can be done now and says
 * what it waits for and until when.  The only thing that may block is the vendor's code; the step
 * before it announces that, so that somebody else can watch the clock.  A failed attach goes
 * through the steps of detaching, as far as they apply, before it reports its failure; detaching
 * goes on after errors and always reaches its end.  Only one kind of target is left to
 * cudbgshim_rescue(): one whose driver is still at work on what it was asked for.  Detaching then
 * ends with -ETIMEDOUT, and with a record that is not all zero.
 *
 * No thread of the target is stopped for longer than one function call in it needs
 * (cudbgshim_target.h), and everything that is changed in the target is recorded first, in memory
 * that may outlive this process, so that cudbgshim_rescue() can put it right after our death.
 *
 * All calls must come from one thread: ptrace and the vendor's API want that.  SIGPIPE must be
 * ignored.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudbgshim.h"
#include "cudbgshim_target.h"

/* ------------------------------------------------------------------ what was changed --------- */

/** Version of the record, and most writes that it holds. */
#define CUDBGSHIM_UNDO_VERSION 2u
#define CUDBGSHIM_UNDO_WRITES  16u

/** A variable of the target as it was before we wrote to it. */
struct cudbgshim_undo_write {
	uint64_t addr;
	/** Its value; 0 for a variable longer than 8 bytes, which was all zero. */
	uint64_t old;
	uint32_t size;
	uint32_t symbol; /**< enum cudbgshim_symbol. */
};

/** How deep the target is involved in the session. */
enum cudbgshim_phase {
	CUDBGSHIM_PHASE_NONE,	  /**< The target is as if it had never been debugged. */
	CUDBGSHIM_PHASE_FLAGS,	  /**< Variables were written that nobody has read yet. */
	CUDBGSHIM_PHASE_ENGAGED,  /**< Its driver was asked to start the debug engine. */
	CUDBGSHIM_PHASE_RELEASED, /**< The engine has been told to let go. */
};

/**
 * Everything that is needed to clean up after us.  It is all zero to begin with, has a fixed size
 * and no pointers.
 */
struct cudbgshim_undo {
	uint32_t version;
	int32_t pid;
	uint64_t start_time; /**< Field 22 of /proc/PID/stat, by which a reused pid is noticed. */
	uint32_t phase;	     /**< enum cudbgshim_phase. */
	uint32_t n_writes;
	struct cudbgshim_undo_write writes[CUDBGSHIM_UNDO_WRITES];
	struct cudbgshim_inferior_record call;
	/**
	 * The random bytes that the kernel gave the program when it started (AT_RANDOM), by which
	 * another one in the same process is noticed; address 0: they are not known.
	 */
	uint64_t random_addr;
	uint8_t random[16];
	/**
	 * The GPUs that may be suspended, one bit each: noted before they are, and until they run
	 * again.  Only the session writes it.
	 */
	uint64_t suspended;
};

/* ------------------------------------------------------------------ session ------------------ */

/** Why there is no session, or what kind of session there is. */
enum cudbgshim_outcome {
	CUDBGSHIM_OUTCOME_NONE,	     /**< It is still under way. */
	CUDBGSHIM_OUTCOME_ATTACHED,  /**< Attached, with GPU state. */
	CUDBGSHIM_OUTCOME_NO_LIBCUDA, /**< Attached; the process does not use CUDA (yet). */
	CUDBGSHIM_OUTCOME_ARMED,     /**< Attached; the session begins when it calls cuInit. */
	CUDBGSHIM_OUTCOME_DETACHED,
	/* The failures follow. */
	CUDBGSHIM_OUTCOME_TOO_OLD,	/**< Its driver has no unified debugger. */
	CUDBGSHIM_OUTCOME_BAD_LIBRARY,	/**< Its libcuda is no driver that we understand. */
	CUDBGSHIM_OUTCOME_DEBUGGED,	/**< Another debugger or profiler is, or was, at it. */
	CUDBGSHIM_OUTCOME_PREEMPTION,	/**< Software preemption is on. */
	CUDBGSHIM_OUTCOME_NOT_POSSIBLE,	/**< The driver says that it cannot be attached to. */
	CUDBGSHIM_OUTCOME_ENGINE,	/**< The debug engine does not start in the target. */
	CUDBGSHIM_OUTCOME_OUR_DRIVER,	/**< The driver cannot be loaded on our side. */
	CUDBGSHIM_OUTCOME_NAMESPACE,	/**< It is in another network namespace. */
	CUDBGSHIM_OUTCOME_NAME,		/**< Somebody else has the name of the engine's socket. */
	CUDBGSHIM_OUTCOME_CONNECT,	/**< Our side is not connected to the engine's socket. */
	CUDBGSHIM_OUTCOME_NO_DEVICE,	/**< There is no GPU that can be debugged. */
	CUDBGSHIM_OUTCOME_API,		/**< The debugger API failed otherwise. */
	CUDBGSHIM_OUTCOME_CALL,		/**< No function could be called in the target. */
	CUDBGSHIM_OUTCOME_GONE,		/**< The target has ended. */
	CUDBGSHIM_OUTCOME_TIMEOUT,	/**< A step took too long. */
	CUDBGSHIM_OUTCOME_SYSTEM,	/**< The operating system refused something. */
	CUDBGSHIM_OUTCOME_COUNT
};

/** @return the name of an outcome for logs and programs, such as `no_libcuda` or `debugged`. */
const char *cudbgshim_outcome_name(enum cudbgshim_outcome outcome);
/** @return what a user can do about an outcome; NULL where there is nothing to say. */
const char *cudbgshim_outcome_hint(enum cudbgshim_outcome outcome);

/** Ways to bring the engine up in the target. */
enum cudbgshim_path {
	CUDBGSHIM_PATH_AUTO,
	/** One byte is written to the driver's descriptor (13.1 and later). */
	CUDBGSHIM_PATH_FD,
	CUDBGSHIM_PATH_CALL,   /**< cudbgApiAttach() is called in a thread of the target. */
	/** cudbgApiInit(2) and initializeAttachStub, as documented up to release 6.5. */
	CUDBGSHIM_PATH_LEGACY,
	CUDBGSHIM_PATH_LAUNCH, /**< Flags are set that cuInit will read. */
};

/** Format of the abstract name of the engine's socket, for a label; the session in it is 0. */
#define CUDBGSHIM_SOCKET_NAME "nv_target_process_%u_0"

/**
 * Whoever connects our side to the engine's socket, where this process may not do that.  Both
 * functions answer 0; -EADDRINUSE: another process has the name; -ENOTCONN: nobody connects us any
 * more; or another -errno.
 */
struct cudbgshim_connector {
	/** Our side will connect to the socket of @p label.  Is the name still free? */
	int (*claim)(void *user, uint32_t label);
	/** Why did our side fail to connect?  0: it did not, as far as is known. */
	int (*why)(void *user);
	uint64_t net_dev, net_ino; /**< The network namespace, as of stat(2) of /proc/PID/ns/net. */
	void *user;
};

/** The options of a session. */
struct cudbgshim_session_options {
	int pid;
	int proc_fd; /**< The directory /proc/PID, open; borrowed. */
	int pidfd;   /**< Borrowed; -1 if there is none. */
	struct cudbgshim_memory memory;
	const struct cudbgshim_tracer *tracer; /**< Borrowed; NULL: cudbgshim_tracer_direct. */
	/** Options for our side; `engine` is used on both sides. */
	struct cudbgshim_options driver;
	/** Must be unique among debuggers in the network namespace; 0: a random one. */
	uint32_t label;
	const struct cudbgshim_connector *connector; /**< Borrowed; NULL: this process connects. */
	uint32_t capabilities; /**< Capability bits to ask for; 0: 0xf. */
	/**
	 * A debugger that died has left the GPUs suspended: attaching suspends and resumes them.  The random bytes in
	 * the undo record, where they are known, are of the program that it was left in.
	 */
	bool is_left_suspended;
	enum cudbgshim_path path;
	/** Borrowed, and shared with the process that rescues; NULL: nobody does. */
	struct cudbgshim_undo *undo;
	/**
	 * Called for each event of the driver, also those of the replay; NULL: they are dropped.
	 */
	void (*on_event)(void *user, const struct cudbgshim_event *event);
	/** Called for each step as it begins; may be NULL. */
	void (*trace)(void *user, const char *step);
	void *user;
};

/** The kinds of things that the machine waits for. */
enum cudbgshim_wait_kind {
	CUDBGSHIM_WAIT_TIMER,  /**< It waits for until_ns only. */
	CUDBGSHIM_WAIT_STOP,   /**< SIGCHLD, or until_ns. */
	CUDBGSHIM_WAIT_NOTIFY, /**< cudbgshim_session_fd() is readable, or until_ns. */
	CUDBGSHIM_WAIT_CALL,   /**< Nothing; the next step enters vendor code, which may block. */
};

/** The thing to wait for, and for how long. */
struct cudbgshim_wait {
	enum cudbgshim_wait_kind kind;
	uint64_t until_ns;    /**< Time at which to step again at the latest (CLOCK_MONOTONIC). */
	uint64_t deadline_ns; /**< Time at which this step gives up; UINT64_MAX: never. */
	const char *step;     /**< Name of the step that is under way; static. */
};

/** Why attaching or detaching failed. */
struct cudbgshim_session_error {
	enum cudbgshim_outcome outcome;
	int error;	  /**< The -errno of the failure. */
	uint32_t result;  /**< CUDBGResult of our side or the target's; 0: none. */
	const char *step; /**< Name of the step at which it happened; static. */
	char text[256];
};

/** A session, while it attaches, is attached and detaches. */
struct cudbgshim_session;

/**
 * Make a session; cudbgshim_session_step() then begins to attach.
 * @param ret_session  Release with cudbgshim_session_destroy().
 * @return 0, -ENOMEM, -EMFILE, -EBUSY (the undo record still needs a rescue), -ESTALE (is_left_suspended, but its undo
 *         record is of another program than the process runs now), or why the process cannot be told by its start time.
 */
int cudbgshim_session_create(const struct cudbgshim_session_options *options,
			     struct cudbgshim_session **ret_session);
/**
 * Release a session, which should be detached; NULL is allowed.  What is left to undo stays in the
 * record.
 */
void cudbgshim_session_destroy(struct cudbgshim_session *session);

/** Result of cudbgshim_session_step(): there is more to do. */
#define CUDBGSHIM_SESSION_BUSY 1

/**
 * Go on with attaching, or with detaching after cudbgshim_session_detach().
 *
 * An armed session is polled with this as well; it becomes busy when cuInit is called.
 *
 * @param ret_wait  Filled in for CUDBGSHIM_SESSION_BUSY, and for an armed session.
 * @return CUDBGSHIM_SESSION_BUSY; 0: at the end, see cudbgshim_session_outcome(); -errno: attach or
 *         detach failed, and all steps of detaching were taken.
 */
int cudbgshim_session_step(struct cudbgshim_session *session, struct cudbgshim_wait *ret_wait);
/** Begin to detach, from wherever the session is.  Remove breakpoints before. */
void cudbgshim_session_detach(struct cudbgshim_session *session);
/**
 * Step and sleep until there is nothing more to do; for tests and small tools.
 * @return as cudbgshim_session_step().
 */
int cudbgshim_session_run(struct cudbgshim_session *session);

/** @return what kind of session there is; CUDBGSHIM_OUTCOME_NONE while it is under way. */
enum cudbgshim_outcome cudbgshim_session_outcome(const struct cudbgshim_session *session);
/** @return the first error; valid after a failure. */
const struct cudbgshim_session_error *
cudbgshim_session_error(const struct cudbgshim_session *session);
/** @return the API; NULL unless the outcome is ATTACHED. */
struct cudbgshim *cudbgshim_session_shim(struct cudbgshim_session *session);
/** @return the way that was chosen; valid once the flags of the target were looked at. */
enum cudbgshim_path cudbgshim_session_path(const struct cudbgshim_session *session);
/**
 * @return a descriptor that is readable when the engine has something to say;
 *         cudbgshim_session_drain() drains it.
 */
int cudbgshim_session_fd(const struct cudbgshim_session *session);
/**
 * Suspend a device of an attached session, and note before that it may be.
 * @return as cudbgshim_suspend_device().
 */
int cudbgshim_session_suspend(struct cudbgshim_session *session, uint32_t dev);
/**
 * Resume a device of an attached session, and note that it runs.
 * @return as cudbgshim_resume_device().
 */
int cudbgshim_session_resume(struct cudbgshim_session *session, uint32_t dev);
/** Suspend all devices, and note it before.  @return as cudbgshim_suspend_all(). */
int cudbgshim_session_suspend_all(struct cudbgshim_session *session);
/**
 * Let all devices run, and note that.  Those that a dead debugger has left suspended are suspended
 * first: the engine takes them for running, and would do nothing.
 * @return as cudbgshim_resume_all().
 */
int cudbgshim_session_resume_all(struct cudbgshim_session *session);
/** @return whether all devices run, as far as the session knows. */
bool cudbgshim_session_runs(const struct cudbgshim_session *session);
/**
 * Take all events, hand them out, acknowledge them.
 * @return their number, or -errno of the API.
 */
int cudbgshim_session_drain(struct cudbgshim_session *session);

/* ------------------------------------------------------------------ after our death ---------- */

/** The target of a rescue. */
struct cudbgshim_rescue_options {
	int pid;
	int proc_fd; /**< The directory /proc/PID, open; borrowed. */
	struct cudbgshim_memory memory;
	const struct cudbgshim_tracer *tracer; /**< Borrowed; NULL: cudbgshim_tracer_direct. */
	unsigned timeout_ms; /**< 0 stands for 5000. */
};

/** Result of cudbgshim_rescue(): all is done but that the GPUs are left suspended. */
#define CUDBGSHIM_RESCUE_SUSPENDED 1

/**
 * Put a target right whose debugger died, at whatever step, or left a record behind: wait for what
 * is still under way, let the engine go, put the variables back.  It blocks, so run it in a process
 * of its own.  It may be repeated, also after the rescuer itself died.
 *
 * The engine of a debugger that died while a GPU was suspended is not told to let go: that resumes
 * nothing, and the next attach would kill the target.  Only a new session can resume the GPU, by
 * suspending it first (is_left_suspended).
 *
 * @param ret_error  Filled in on failure; NULL allowed.
 * @return 0 (also when there was nothing to do), CUDBGSHIM_RESCUE_SUSPENDED, -ESRCH (the process is
 *         gone), -ESTALE (it runs another program, which has nothing of ours: nothing was changed), -EINVAL (record of
 *         another version), -ETIMEDOUT (the call does not end), or the error of calling a function
 *         or writing memory; the rest was done nevertheless.
 */
int cudbgshim_rescue(const struct cudbgshim_rescue_options *options, struct cudbgshim_undo *undo,
		     struct cudbgshim_session_error *ret_error);

#endif /* CUDBGSHIM_SESSION_H */
