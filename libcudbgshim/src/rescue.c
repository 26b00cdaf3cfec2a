/* SPDX-License-Identifier: MIT */
/*
 * Puts a target right whose debugger was killed; with ptrace and memory alone, without vendor code.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "session.h"

#define TIMEOUT_MS 5000u
/* Time for an engine that was asked for before the death. */
#define LATE_MS	   500u
/* Part of the time that is left for letting the engine go. */
#define RELEASE_MS 2000u

struct rescue {
	const struct cudbgshim_rescue_options *o;
	const struct cudbgshim_tracer *tracer;
	struct cudbgshim_undo *undo;
	struct session_target target;
	struct cudbgshim_session_error err;
	uint64_t deadline;
};

static void note(struct rescue *r, enum cudbgshim_outcome outcome, int rc, const char *text)
{
	if (r->err.error)
		return;
	r->err.error = rc;
	r->err.outcome = outcome;
	snprintf(r->err.text, sizeof(r->err.text), "%s", text);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/*
 * Wait for a call that is under way: it finishes by itself, and nothing should be changed under it.
 * After its time the driver's variables are put back all the same: nobody else would do it.
 */
static void wait_for_call(struct rescue *r)
{
	struct cudbgshim_inferior_record call = r->undo->call;
	struct stat st;
	char path[32];
	int rc;

	/* A thread of another process is none of our business, whatever the record says. */
	snprintf(path, sizeof(path), "task/%d", call.tid);
	/*
	 * fstatat() is used because the sandbox forbids faccessat(), and what is forbidden is not
	 * gone.
	 */
	if (fstatat(r->o->proc_fd, path, &st, 0) < 0 && (errno == ENOENT || errno == ESRCH))
		call.is_active = 0;
	while ((rc = cudbgshim_inferior_is_running(&call, &r->o->memory, r->tracer)) == 1 &&
	       clock_left_ms(r->deadline))
		nap();
	if (rc == 1)
		note(r, CUDBGSHIM_OUTCOME_TIMEOUT, -ETIMEDOUT,
		     "the call that the debugger made does not end");
	else if (rc < 0)
		note(r, CUDBGSHIM_OUTCOME_SYSTEM, rc, "the calling thread cannot be looked at");
	else
		r->undo->call.is_active = 0;
}

static uint32_t value_of(struct rescue *r, enum cudbgshim_symbol symbol)
{
	uint32_t value = 0;

	if (flags_read(&r->o->memory, &r->target, symbol, &value) < 0)
		return 0;
	return value;
}

/*
 * @return until when to wait for an engine.  A call has ended by now; only what was asked for
 *         through the descriptor takes its time unseen.
 */
static uint64_t patience(struct rescue *r)
{
	int left = clock_left_ms(r->deadline) - (int)RELEASE_MS;

	if (r->undo->call.function || left <= (int)LATE_MS ||
	    !flags_has(&r->target, CUDBGSHIM_SYM_ATTACH_FD) ||
	    (int32_t)value_of(r, CUDBGSHIM_SYM_ATTACH_FD) < 0)
		return clock_deadline_ms(LATE_MS);
	return clock_deadline_ms((uint64_t)left);
}

/* Is there an engine?  One that was asked for and has neither come nor refused may still come. */
static bool has_engine(struct rescue *r)
{
	uint64_t late = patience(r);

	while (r->undo->phase == CUDBGSHIM_PHASE_ENGAGED && clock_left_ms(late) &&
	       !value_of(r, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER) &&
	       !value_of(r, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE))
		nap();
	return value_of(r, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER) == 1;
}

static void call_detach(struct rescue *r)
{
	struct cudbgshim_inferior_options o = {
		.pid = r->o->pid,
		.proc_fd = r->o->proc_fd,
		.memory = r->o->memory,
		.tracer = r->tracer,
		.function = r->target.symbols.addr[CUDBGSHIM_SYM_API_DETACH],
		.avoid_start = r->target.library.base,
		.avoid_end = r->target.library.end,
		.timeout_ms = (unsigned)clock_left_ms(r->deadline) + 1,
		.record = &r->undo->call,
	};
	struct cudbgshim_inferior *call;
	int rc = o.function ? cudbgshim_inferior_create(&o, &call) : -ENOENT;

	if (rc < 0) {
		note(r, CUDBGSHIM_OUTCOME_SYSTEM, rc, "cudbgApiDetach cannot be called");
		return;
	}
	rc = cudbgshim_inferior_run(call);
	if (rc < 0)
		note(r, CUDBGSHIM_OUTCOME_CALL, rc, cudbgshim_inferior_error(call)->what);
	cudbgshim_inferior_destroy(call);
}

/*
 * Clear the flags in the order of detaching; old values, where we changed any, are put back
 * afterwards.  The last one says that there is an engine: without a debugger that hears it out, the driver
 * leaves it set (measured with 580 on an H200), and refuses every attach from then on.
 */
static void clear_flags(struct rescue *r, bool is_engine_done)
{
	static const enum cudbgshim_symbol flags[] = { CUDBGSHIM_SYM_CAPABILITIES,
						       CUDBGSHIM_SYM_INITIALIZED,
						       CUDBGSHIM_SYM_IPC_FLAG,
						       CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER };
	size_t n = sizeof(flags) / sizeof(flags[0]) - !is_engine_done;
	uint32_t zero = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t addr = r->target.symbols.addr[flags[i]];

		if (addr)
			r->o->memory.write(r->o->memory.ctx, addr, &zero, sizeof(zero));
	}
}

static void release(struct rescue *r)
{
	if (flags_find(&r->o->memory, r->tracer, r->o->proc_fd, &r->target, &r->err) < 0)
		return;
	/*
	 * Asked to let go while a GPU is suspended, the engine resumes nothing, and the next attach kills the target
	 * (measured with 580 on an H200).  With its flags taken back it can be attached to as it is.
	 */
	if (has_engine(r) && !r->undo->suspended)
		call_detach(r);
	clear_flags(r, !r->err.error);
	flags_set_phase(r->undo, CUDBGSHIM_PHASE_RELEASED);
}

static bool is_same_process(const struct rescue *r)
{
	uint64_t start;

	return r->o->pid == r->undo->pid && flags_start_time(r->o->proc_fd, &start) == 0 &&
	       start == r->undo->start_time;
}

int cudbgshim_rescue(const struct cudbgshim_rescue_options *options, struct cudbgshim_undo *undo,
		     struct cudbgshim_session_error *ret_error)
{
	struct rescue r = { .o = options, .undo = undo,
			    .tracer = options->tracer ? options->tracer : &cudbgshim_tracer_direct };
	int rc;

	if (!undo->version)
		return 0;
	if (undo->version != CUDBGSHIM_UNDO_VERSION || undo->n_writes > CUDBGSHIM_UNDO_WRITES)
		return -EINVAL;
	if (!is_same_process(&r))
		return -ESRCH;
	/* What was written lies in the memory of that program, which is gone with it. */
	rc = flags_check_program(&options->memory, undo);
	if (rc < 0)
		return rc;
	r.deadline = clock_deadline_ms(options->timeout_ms ? options->timeout_ms : TIMEOUT_MS);
	wait_for_call(&r);
	if (undo->phase >= CUDBGSHIM_PHASE_ENGAGED)
		release(&r);
	rc = flags_restore(&options->memory, undo);
	if (rc < 0)
		note(&r, rc == -ESRCH ? CUDBGSHIM_OUTCOME_GONE : CUDBGSHIM_OUTCOME_SYSTEM, rc,
		     "the driver's variables cannot be written");
	if (!r.err.error)
		flags_set_phase(undo, CUDBGSHIM_PHASE_NONE);
	if (ret_error && r.err.error)
		*ret_error = r.err;
	return r.err.error ? r.err.error : undo->suspended ? CUDBGSHIM_RESCUE_SUSPENDED : 0;
}
