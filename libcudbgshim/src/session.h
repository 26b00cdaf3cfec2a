/* SPDX-License-Identifier: MIT */
#ifndef CUDBGSHIM_SESSION_INTERNAL_H
#define CUDBGSHIM_SESSION_INTERNAL_H

/** @file session.h  What the steps of attaching and detaching share. */

#include "cudbgshim_session.h"

struct cudbgshim_session;

/**
 * @return 0: go on with the next step, or with the one that session_goto() chose;
 *         CUDBGSHIM_SESSION_BUSY: look again after session_wait(); -errno after session_fail().
 */
typedef int session_run_fn(struct cudbgshim_session *s);

struct session_step {
	const char *name;
	session_run_fn *run;
	unsigned timeout_ms; /**< 0: none. */
	bool is_vendor;	     /**< Enters vendor code. */
};

extern const struct session_step session_attach_steps[];
extern const struct session_step session_detach_steps[];

/** Where in the target. */
struct session_target {
	struct cudbgshim_library library;
	struct cudbgshim_symbols symbols;
};

struct cudbgshim_session {
	struct cudbgshim_session_options o;
	struct cudbgshim_undo *undo, own_undo;
	const struct session_step *step; /**< NULL: nothing to do. */
	const struct session_step *next;
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
	bool is_asked;	     /**< Through its descriptor, and there is no engine yet. */
	bool is_left;	     /**< To a rescue: what the driver was asked for may still come. */
	uint32_t resume_word;
	uint64_t not_before, give_up; /**< Within a step. */
	uint64_t retry_until;	      /**< Of steps that are repeated. */
	unsigned pause_ms;
	int event_fd;
};

/* ---- session.c ---- */

void session_goto(struct cudbgshim_session *s, const struct session_step *steps,
		  const char *name);
/** Fill in what to wait for.  @return CUDBGSHIM_SESSION_BUSY. */
int session_wait(struct cudbgshim_session *s, enum cudbgshim_wait_kind kind, unsigned ms);
/** Note the first error.  @return @p rc. */
int session_fail(struct cudbgshim_session *s, enum cudbgshim_outcome outcome, int rc,
		 uint32_t result, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/** The same for the API call that failed last. */
int session_fail_api(struct cudbgshim_session *s, int rc, const char *what);
/** A call of @p function in the target; to be stepped.  @return like session_run_fn. */
int session_call(struct cudbgshim_session *s, enum cudbgshim_symbol function, uint64_t argument);

/* ---- flags.c ---- */

/** Look libcuda up.  @return 0, -ENOENT, -errno with @p err. */
int flags_find(const struct cudbgshim_memory *memory, int proc_fd, struct session_target *ret,
	       struct cudbgshim_session_error *err);
bool flags_has(const struct session_target *t, enum cudbgshim_symbol symbol);
/** Low 32 bits of a variable. */
int flags_read(const struct cudbgshim_memory *memory, const struct session_target *t,
	       enum cudbgshim_symbol symbol, uint32_t *ret_value);
/** Record the old value, then write; a symbol that this driver lacks is passed over. */
int flags_write(const struct cudbgshim_memory *memory, const struct session_target *t,
		struct cudbgshim_undo *undo, enum cudbgshim_symbol symbol, uint64_t value);
/** The path of the engine, all but its first byte first.  @return -EBUSY: there is one already. */
int flags_write_path(const struct cudbgshim_memory *memory, const struct session_target *t,
		     struct cudbgshim_undo *undo, const char *path);
/** Put back everything that is recorded, newest first, and empty the record. */
int flags_restore(const struct cudbgshim_memory *memory, struct cudbgshim_undo *undo);
void flags_set_phase(struct cudbgshim_undo *undo, enum cudbgshim_phase phase);
/** Field 22 of /proc/PID/stat.  @return 0, -ESRCH. */
int flags_start_time(int proc_fd, uint64_t *ret);

#endif /* CUDBGSHIM_SESSION_INTERNAL_H */
