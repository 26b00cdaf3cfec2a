/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_SESSION_INTERNAL_H
#define CUDBGSHIM_SESSION_INTERNAL_H

/**
 * @file session.h
 * What the steps of attaching and detaching share.
 */

#include "cudbgshim_session.h"

struct cudbgshim_session;

/**
 * Runs a step, or looks again at one that waits.
 * @return 0: go on with the next step, or with the one that session_goto() chose;
 *         CUDBGSHIM_SESSION_BUSY: look again after session_wait(); -errno after session_fail().
 */
typedef int session_run_fn(struct cudbgshim_session *s);

/** A step; lists of them end with a NULL name. */
struct session_step {
	const char *name;
	session_run_fn *run;
	unsigned timeout_ms; /**< 0: it has no limit. */
	bool is_vendor;	     /**< It enters vendor code, which may block. */
};

/** The two lists, in attach.c and detach.c. */
extern const struct session_step session_attach_steps[];
extern const struct session_step session_detach_steps[];

/** The driver's library and its symbols in the target. */
struct session_target {
	struct cudbgshim_library library;
	struct cudbgshim_symbols symbols;
};

struct cudbgshim_session {
	struct cudbgshim_session_options o;
	struct cudbgshim_undo *undo, own_undo;
	const struct session_step *step; /**< The present step; NULL when there is nothing to do. */
	const struct session_step *next; /**< Chosen by session_goto(); NULL: the one behind. */
	bool is_begun;	   /**< The step's name and deadline have been given out. */
	bool is_announced; /**< The caller knows that vendor code comes. */
	bool is_detaching;
	uint64_t deadline;
	struct cudbgshim_wait wait;
	enum cudbgshim_outcome outcome;
	struct cudbgshim_session_error err;
	enum cudbgshim_path path;
	struct session_target target;
	struct cudbgshim *shim;
	struct cudbgshim_inferior *call;
	bool is_initialized; /**< cudbgshim_initialize() succeeded. */
	bool is_complete;    /**< ATTACH_COMPLETE or DETACH_COMPLETE came. */
	bool is_gone;	     /**< The target has ended. */
	/** The driver was asked through its descriptor, and there is no engine yet. */
	bool is_asked;
	/** The target is left to a rescue: what the driver was asked for may still come. */
	bool is_left;
	bool owes_detach; /**< Nobody has told the engine yet to let go. */
	bool owes_flags;  /**< A flag that is to be 0 could not be written. */
	unsigned n_tries; /**< Calls that would have, and could not be made. */
	uint32_t resume_word;
	uint64_t not_before, give_up; /**< Times within the present step. */
	uint64_t retry_until;	      /**< End of the time for steps that are repeated. */
	unsigned pause_ms;
	int event_fd;
};

/* ---- session.c ---- */

/** Choose the step that comes next, by its name, which must be in the list. */
void session_goto(struct cudbgshim_session *s, const struct session_step *steps,
		  const char *name);
/**
 * Fill in what to wait for, and for @p ms at most.
 * @return CUDBGSHIM_SESSION_BUSY.
 */
int session_wait(struct cudbgshim_session *s, enum cudbgshim_wait_kind kind, unsigned ms);
/**
 * Note an error unless there is one already.
 * @return @p rc.
 */
int session_fail(struct cudbgshim_session *s, enum cudbgshim_outcome outcome, int rc,
		 uint32_t result, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/**
 * The same for the API call that failed last.
 * @return @p rc.
 */
int session_fail_api(struct cudbgshim_session *s, int rc, const char *what);
/** Note which GPUs may be suspended from now on; the one place where that is written. */
void session_note_suspended(struct cudbgshim_session *s, uint64_t devices);
/**
 * Call a function in the target; the step that does so runs this until it is over.
 * @return as session_run_fn.
 */
int session_call(struct cudbgshim_session *s, enum cudbgshim_symbol function, uint64_t argument);

/* ---- label.c ---- */

/** A step: choose the label, unless the caller has, so that nobody has the name yet. */
session_run_fn label_choose;
/** A step: is the target in the network namespace in which our side is connected? */
session_run_fn label_check_namespace;
/** Note why our side cannot be connected.  @return @p rc, as of struct cudbgshim_connector. */
int label_fail(struct cudbgshim_session *s, int rc);

/* ---- flags.c ---- */

/**
 * Look libcuda up in the target.
 * @return 0, -ENOENT (it is not mapped), -errno with @p err.
 */
int flags_find(const struct cudbgshim_memory *memory, const struct cudbgshim_tracer *tracer, int proc_fd,
	       struct session_target *ret, struct cudbgshim_session_error *err);
/** Does this driver have the symbol? */
bool flags_has(const struct session_target *t, enum cudbgshim_symbol symbol);
/**
 * Read the low 32 bits of a variable; 0 when this driver lacks it.
 * @return 0, -errno.
 */
int flags_read(const struct cudbgshim_memory *memory, const struct session_target *t,
	       enum cudbgshim_symbol symbol, uint32_t *ret_value);
/**
 * Record the old value of a variable, then write it; a symbol that this driver lacks is passed
 * over.
 * @return 0, -ENOSPC (the record is full), -errno.
 */
int flags_write(const struct cudbgshim_memory *memory, const struct session_target *t,
		struct cudbgshim_undo *undo, enum cudbgshim_symbol symbol, uint64_t value);
/**
 * Write the path of the engine into an empty variable.  Its first byte is written last, so that the
 * variable stays empty until the path is whole.
 * @return 0, -EBUSY (there is a path already), -EOPNOTSUPP, -ENAMETOOLONG, -errno.
 */
int flags_write_path(const struct cudbgshim_memory *memory, const struct session_target *t,
		     struct cudbgshim_undo *undo, const char *path);
/**
 * Put back everything that is recorded, newest first, and take it off the record.
 * @return 0, or the first -errno: the rest was put back nevertheless, and the record still has what failed.
 */
int flags_restore(const struct cudbgshim_memory *memory, struct cudbgshim_undo *undo);
/** Record how deep the target is involved; a rescuer may read it at any time. */
void flags_set_phase(struct cudbgshim_undo *undo, enum cudbgshim_phase phase);
/**
 * Read field 22 of /proc/PID/stat, the time at which the process started.
 * @return 0, -ESRCH.
 */
int flags_start_time(int proc_fd, uint64_t *ret);
/**
 * Note by which bytes the program is known, or leave that as it is where they cannot be read.
 */
void flags_note_program(const struct cudbgshim_memory *memory, const struct cudbgshim_tracer *tracer,
			int proc_fd, struct cudbgshim_undo *undo);
/**
 * Is @p memory that of the program in the record?
 * @return 0: it is, or none was noted; -ESTALE: it is another one's; -ENOMEM, -EAGAIN, -EINTR: ask again.
 */
int flags_check_program(const struct cudbgshim_memory *memory, const struct cudbgshim_undo *undo);

#endif /* CUDBGSHIM_SESSION_INTERNAL_H */
