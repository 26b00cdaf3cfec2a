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
 * goes on after errors and always reaches its end.  What it leaves to cudbgshim_rescue() is a target
 * whose driver is still at work on what it was asked for: then it ends with -ETIMEDOUT, and with a
 * record that is not all zero.
 *
 * No thread of the target is stopped for longer than one function call in it needs
 * (cudbgshim_target.h), and everything that is changed in the target is recorded first, in memory
 * that may outlive this process, so that cudbgshim_rescue() can put it right after our death.
 *
 * All calls from one thread: ptrace and the vendor's API want that.  SIGPIPE must be ignored.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cudbgshim.h"
#include "cudbgshim_target.h"

/* ------------------------------------------------------------------ what was changed --------- */

#define CUDBGSHIM_UNDO_VERSION 1u
#define CUDBGSHIM_UNDO_WRITES  16u

/** One variable of the target before we wrote to it. */
struct cudbgshim_undo_write {
	uint64_t addr;
	uint64_t old;	 /**< Its value; 0 for anything longer than 8 bytes, which was all zero. */
	uint32_t size;
	uint32_t symbol; /**< enum cudbgshim_symbol */
};

/** How deep the target is involved. */
enum cudbgshim_phase {
	CUDBGSHIM_PHASE_NONE,	  /**< As if never debugged. */
	CUDBGSHIM_PHASE_FLAGS,	  /**< Variables were written that nobody has read yet. */
	CUDBGSHIM_PHASE_ENGAGED,  /**< Its driver was asked to start the debug engine. */
	CUDBGSHIM_PHASE_RELEASED, /**< The engine has been told to let go. */
};

/** Everything needed to clean up after us.  All zero to begin with; fixed size, no pointers. */
struct cudbgshim_undo {
	uint32_t version;
	int32_t pid;
	uint64_t start_time; /**< Field 22 of /proc/PID/stat, against reused numbers. */
	uint32_t phase;	     /**< enum cudbgshim_phase */
	uint32_t n_writes;
	struct cudbgshim_undo_write writes[CUDBGSHIM_UNDO_WRITES];
	struct cudbgshim_inferior_record call;
};

/* ------------------------------------------------------------------ session ------------------ */

/** Why there is no session, or what kind of session there is. */
enum cudbgshim_outcome {
	CUDBGSHIM_OUTCOME_NONE,	     /**< Still under way. */
	CUDBGSHIM_OUTCOME_ATTACHED,  /**< With GPU state. */
	CUDBGSHIM_OUTCOME_NO_LIBCUDA, /**< Attached; the process does not use CUDA (yet). */
	CUDBGSHIM_OUTCOME_ARMED,     /**< Attached; the session begins when it calls cuInit. */
	CUDBGSHIM_OUTCOME_DETACHED,
	/* Failures. */
	CUDBGSHIM_OUTCOME_TOO_OLD,	/**< Its driver has no unified debugger. */
	CUDBGSHIM_OUTCOME_BAD_LIBRARY,	/**< Its libcuda is no driver that we understand. */
	CUDBGSHIM_OUTCOME_DEBUGGED,	/**< Another debugger or profiler is, or was, at it. */
	CUDBGSHIM_OUTCOME_PREEMPTION,	/**< Software preemption is on. */
	CUDBGSHIM_OUTCOME_NOT_POSSIBLE,	/**< The driver says that it cannot be attached to. */
	CUDBGSHIM_OUTCOME_ENGINE,	/**< The debug engine does not start in the target. */
	CUDBGSHIM_OUTCOME_OUR_DRIVER,	/**< The driver cannot be loaded on our side. */
	CUDBGSHIM_OUTCOME_NAMESPACE,	/**< Its network namespace cannot be entered. */
	CUDBGSHIM_OUTCOME_NO_DEVICE,	/**< No GPU that can be debugged. */
	CUDBGSHIM_OUTCOME_API,		/**< The debugger API failed otherwise. */
	CUDBGSHIM_OUTCOME_CALL,		/**< No function could be called in the target. */
	CUDBGSHIM_OUTCOME_GONE,		/**< The target has ended. */
	CUDBGSHIM_OUTCOME_TIMEOUT,	/**< A step took too long. */
	CUDBGSHIM_OUTCOME_SYSTEM,	/**< The operating system refused something. */
	CUDBGSHIM_OUTCOME_COUNT
};

/** `no_libcuda`, `debugged`: for logs and programs. */
const char *cudbgshim_outcome_name(enum cudbgshim_outcome outcome);
/** What a user can do; NULL where there is nothing to say. */
const char *cudbgshim_outcome_hint(enum cudbgshim_outcome outcome);

/** Ways to bring the engine up in the target. */
enum cudbgshim_path {
	CUDBGSHIM_PATH_AUTO,
	CUDBGSHIM_PATH_FD,     /**< Through the driver's descriptor (13.1 and later). */
	CUDBGSHIM_PATH_CALL,   /**< cudbgApiAttach() called in a thread of the target. */
	CUDBGSHIM_PATH_LEGACY, /**< cudbgApiInit(2) and initializeAttachStub, as documented to 6.5. */
	CUDBGSHIM_PATH_LAUNCH, /**< Flags that cuInit will read. */
};

struct cudbgshim_session_options {
	int pid;
	int proc_fd; /**< Borrowed: /proc/PID, open. */
	int pidfd;   /**< Borrowed; -1: none. */
	struct cudbgshim_memory memory;
	struct cudbgshim_options driver; /**< For our side; `engine` is used on both sides. */
	uint32_t label;	      /**< Unique among debuggers in the network namespace; 0: our pid. */
	uint32_t capabilities; /**< Bits to ask for; 0: 0xf. */
	enum cudbgshim_path path;
	struct cudbgshim_undo *undo; /**< Borrowed, shared with whoever rescues; NULL: nobody does. */
	/** Each event of the driver, also those of the replay; NULL: dropped. */
	void (*on_event)(void *user, const struct cudbgshim_event *event);
	/** Each step as it begins. */
	void (*trace)(void *user, const char *step);
	void *user;
};

enum cudbgshim_wait_kind {
	CUDBGSHIM_WAIT_TIMER,  /**< Nothing but until_ns. */
	CUDBGSHIM_WAIT_STOP,   /**< SIGCHLD, or until_ns. */
	CUDBGSHIM_WAIT_NOTIFY, /**< cudbgshim_session_fd() is readable, or until_ns. */
	CUDBGSHIM_WAIT_CALL,   /**< Nothing: the next step enters vendor code, which may block. */
};

struct cudbgshim_wait {
	enum cudbgshim_wait_kind kind;
	uint64_t until_ns;    /**< Step again now at the latest (CLOCK_MONOTONIC). */
	uint64_t deadline_ns; /**< When this step gives up; UINT64_MAX: never. */
	const char *step;     /**< Name of the step that is under way; static. */
};

struct cudbgshim_session_error {
	enum cudbgshim_outcome outcome;
	int error;	  /**< -errno */
	uint32_t result;  /**< CUDBGResult, ours or the target's; 0: none. */
	const char *step; /**< Where it happened; static. */
	char text[256];
};

struct cudbgshim_session;

/** @return 0, -ENOMEM, -EMFILE, -EBUSY (the undo record still needs a rescue). */
int cudbgshim_session_create(const struct cudbgshim_session_options *options,
			     struct cudbgshim_session **ret_session);
/** Forgets the session; it should be detached.  What is left to undo stays in the record. */
void cudbgshim_session_destroy(struct cudbgshim_session *session);

/** cudbgshim_session_step() has more to do. */
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
/** Step and sleep until there is nothing more to do; for tests and small tools. */
int cudbgshim_session_run(struct cudbgshim_session *session);

enum cudbgshim_outcome cudbgshim_session_outcome(const struct cudbgshim_session *session);
/** The first error; valid after a failure. */
const struct cudbgshim_session_error *
cudbgshim_session_error(const struct cudbgshim_session *session);
/** The API; NULL unless the outcome is ATTACHED. */
struct cudbgshim *cudbgshim_session_shim(struct cudbgshim_session *session);
enum cudbgshim_path cudbgshim_session_path(const struct cudbgshim_session *session);
/** Readable when the engine has something to say; drain it with cudbgshim_session_drain(). */
int cudbgshim_session_fd(const struct cudbgshim_session *session);
/**
 * Take all events, hand them out, acknowledge.
 * @return their number, or -errno of the API.
 */
int cudbgshim_session_drain(struct cudbgshim_session *session);

/* ------------------------------------------------------------------ after our death ---------- */

struct cudbgshim_rescue_options {
	int pid;
	int proc_fd; /**< Borrowed: /proc/PID, open. */
	struct cudbgshim_memory memory;
	unsigned timeout_ms; /**< 0: 5000. */
};

/**
 * Bring a target whose debugger died, at whatever step, or left a record behind, to where it would
 * be without it: wait for what is still under way, let the engine go, put the variables back.
 * Blocks; run it in a process of its own.  May be repeated, also after the rescuer itself died.
 *
 * @param ret_error  Filled in on failure; NULL allowed.
 * @return 0 (also when there was nothing to do), -ESRCH (the process is gone), -EINVAL (record of
 *         another version), -ETIMEDOUT (the call does not end), or what calling a function or
 *         writing memory gave; the rest was done nevertheless.
 */
int cudbgshim_rescue(const struct cudbgshim_rescue_options *options, struct cudbgshim_undo *undo,
		     struct cudbgshim_session_error *ret_error);

#endif /* CUDBGSHIM_SESSION_H */
