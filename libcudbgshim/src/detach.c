/* SPDX-License-Identifier: MIT */
/*
 * The steps of detaching, in the order of today's debuggers (cuda-gdb, and LLDB's NVIDIA plug-in).
 * Every step looks by itself whether it applies, so that the same list undoes an attach that got
 * half-way; an error is noted and the next step taken.
 */
#include <errno.h>

#include "base/clock.h"
#include "session.h"

#define POLL_MS 5u
#define CALL_TRIES 3
/* What fails for want of memory, as a page that is swapped in does, may work a moment later. */
#define WRITE_TRIES 2

static bool is_engaged(const struct cudbgshim_session *s)
{
	return s->undo->phase == CUDBGSHIM_PHASE_ENGAGED && !s->is_gone;
}

/* Calls to an engine whose target is gone would only wait. */
static bool may_call_api(const struct cudbgshim_session *s)
{
	return s->is_initialized && !s->is_gone && !cudbgshim_is_over(s->shim);
}

static int note_api(struct cudbgshim_session *s, int rc, const char *what)
{
	return rc < 0 && rc != -ENOSYS ? session_fail_api(s, rc, what) : 0;
}

static int note_memory(struct cudbgshim_session *s, int rc)
{
	if (rc >= 0)
		return 0;
	s->is_gone |= rc == -ESRCH;
	return session_fail(s, s->is_gone ? CUDBGSHIM_OUTCOME_GONE : CUDBGSHIM_OUTCOME_SYSTEM, rc, 0,
			    "cannot access the driver's variables in process %d", s->o.pid);
}

/*
 * Write 0 to a flag.  The flags for which this is used end as 0, whoever set them, so there is no
 * old value to record.
 */
static int zero_flag(struct cudbgshim_session *s, enum cudbgshim_symbol symbol)
{
	uint64_t addr = s->target.symbols.addr[symbol];
	uint32_t zero = 0;
	int rc = -EAGAIN;

	if (s->is_gone || s->is_left || s->undo->phase == CUDBGSHIM_PHASE_NONE || !addr)
		return 0;
	for (int n = 0; rc < 0 && n < WRITE_TRIES; n++)
		rc = s->o.memory.write(s->o.memory.ctx, addr, &zero, sizeof(zero));
	s->owes_flags |= rc < 0;
	return note_memory(s, rc);
}

/*
 * Find out whether the engine may still come: the driver was asked through its descriptor, and has
 * neither started its engine nor refused.
 */
static int look_for_late_engine(struct cudbgshim_session *s, bool *ret_late)
{
	uint32_t engaged = 0, result = 0;
	int rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER, &engaged);

	if (rc == 0)
		rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE,
				&result);
	*ret_late = rc == 0 && !engaged && !result;
	return note_memory(s, rc);
}

/* Did another process trace for us that has ended?  Then no call can be made any more. */
static bool has_lost_tracer(const struct cudbgshim_session *s)
{
	return s->o.tracer->look(s->o.tracer->ctx, s->o.pid).kind == CUDBGSHIM_STOP_LOST;
}

/*
 * Leave a target that is still busy: a call that did not end in time goes on in the target, and the
 * engine may come up when we have gone.  So nothing is changed under it, and the record stays as it
 * is.
 */
static int leave_late(struct cudbgshim_session *s)
{
	if (s->is_gone)
		return 0;
	s->is_left = s->undo->call.is_active || (is_engaged(s) && has_lost_tracer(s));
	if (s->is_left || !s->is_asked || !is_engaged(s))
		return 0;
	return look_for_late_engine(s, &s->is_left);
}

/*
 * A call that could not be made, and has left nothing in the target, is made again: that a thread cannot be
 * looked at or stopped may be over in a moment.
 */
static int call_again(struct cudbgshim_session *s)
{
	const struct cudbgshim_session_error before = s->err;
	int rc = session_call(s, CUDBGSHIM_SYM_API_DETACH, 0);

	s->owes_detach = rc != 0;
	if (rc >= 0 || s->is_gone || s->undo->call.is_active || ++s->n_tries == CALL_TRIES)
		return rc;
	s->err = before;
	return session_wait(s, CUDBGSHIM_WAIT_TIMER, POLL_MS);
}

/*
 * GPUs that are still suspended run before the engine is told to let go: what is told so afterwards resumes
 * nothing, if this process dies meanwhile.
 */
static int run_suspended(struct cudbgshim_session *s)
{
	if (!s->undo->suspended || !may_call_api(s))
		return 0;
	return note_api(s, cudbgshim_session_resume_all(s), "resume");
}

/* Tell the engine to let go, if there is one; a driver that was only armed has none yet. */
static int call_detach(struct cudbgshim_session *s)
{
	uint32_t engaged = 0;
	int rc;

	if (s->owes_detach)
		return call_again(s);
	/* The next attach would kill a target whose engine let go while a GPU was suspended: a rescue knows better. */
	s->is_left |= s->undo->suspended && is_engaged(s);
	if (s->is_left || !is_engaged(s) || !flags_has(&s->target, CUDBGSHIM_SYM_API_DETACH))
		return 0;
	s->owes_detach = true;
	rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER, &engaged);
	if (rc < 0)
		return note_memory(s, rc);
	s->owes_detach = engaged == 1;
	return s->owes_detach ? call_again(s) : 0;
}

static int read_resume_word(struct cudbgshim_session *s)
{
	/* A rescue calls it, which has more patience. */
	s->is_left |= s->owes_detach && !s->is_gone;
	s->resume_word = 0;
	s->is_complete = false;
	if (!is_engaged(s) || s->undo->suspended)
		return 0;
	return note_memory(s, flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_RESUME_FLAG,
					 &s->resume_word));
}

static int request_cleanup(struct cudbgshim_session *s)
{
	if (!s->resume_word || !may_call_api(s))
		return 0;
	return note_api(s, cudbgshim_request_cleanup_on_detach(s->shim, s->resume_word),
			"requestCleanupOnDetach");
}

static int clear_flags(struct cudbgshim_session *s)
{
	int rc = zero_flag(s, CUDBGSHIM_SYM_CAPABILITIES);
	int rc2 = zero_flag(s, CUDBGSHIM_SYM_INITIALIZED);

	return rc < 0 ? rc : rc2;
}

static int let_run(struct cudbgshim_session *s)
{
	return may_call_api(s) ? note_api(s, cudbgshim_session_resume_all(s), "resume") : 0;
}

static int wait_for_complete(struct cudbgshim_session *s)
{
	int rc;

	if (!s->resume_word || !may_call_api(s) || s->is_complete)
		return 0;
	rc = cudbgshim_session_drain(s);
	if (rc < 0)
		return note_api(s, rc, "the driver does not finish detaching");
	if (s->is_complete)
		return 0;
	s->is_announced = false;
	return session_wait(s, CUDBGSHIM_WAIT_NOTIFY, POLL_MS);
}

static int clear_attach_state(struct cudbgshim_session *s)
{
	return may_call_api(s) ? note_api(s, cudbgshim_clear_attach_state(s->shim),
					  "clearAttachState") : 0;
}

/* Clear the flag as late as this, because it lets the engine say that it has finished. */
static int clear_ipc_flag(struct cudbgshim_session *s)
{
	int rc = zero_flag(s, CUDBGSHIM_SYM_IPC_FLAG);

	/*
	 * The driver clears it with DETACH_COMPLETE.  Without a client, as of an attach that failed half-way, it stays
	 * (measured with 580 on an H200), and every later attach would be refused.
	 */
	if (rc == 0 && s->undo->phase == CUDBGSHIM_PHASE_ENGAGED)
		rc = zero_flag(s, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER);
	if (rc == 0 && !s->is_left && s->undo->phase == CUDBGSHIM_PHASE_ENGAGED)
		flags_set_phase(s->undo, CUDBGSHIM_PHASE_RELEASED);
	return rc;
}

static int finalize(struct cudbgshim_session *s)
{
	int rc = 0;

	if (s->shim && s->is_initialized && !cudbgshim_is_over(s->shim))
		rc = cudbgshim_finalize(s->shim);
	s->is_initialized = false;
	return s->is_gone ? 0 : note_api(s, rc, "finalize");
}

static int restore(struct cudbgshim_session *s)
{
	int rc = 0, n = 0;

	s->outcome = CUDBGSHIM_OUTCOME_DETACHED;
	if (!s->is_gone && (s->is_left || s->undo->call.is_active))
		return session_fail(s, CUDBGSHIM_OUTCOME_TIMEOUT, -ETIMEDOUT, 0,
				    s->undo->suspended ? "a GPU of process %d may be suspended; it is put right later" :
				    "the driver in process %d is still busy; it is put right later", s->o.pid);
	while (!s->is_gone && n++ < WRITE_TRIES && (rc = flags_restore(&s->o.memory, s->undo)) < 0);
	rc = note_memory(s, rc);
	/* A rescue goes on from the record. */
	if (!s->is_gone && (rc < 0 || s->owes_flags))
		return rc;
	*s->undo = (struct cudbgshim_undo){ .phase = CUDBGSHIM_PHASE_NONE };
	return rc;
}

const struct session_step session_detach_steps[] = {
	{ "leave what is late", leave_late, 2000, false },
	{ "let suspended GPUs run", run_suspended, 5000, true },
	{ "call cudbgApiDetach", call_detach, 6000, false },
	{ "read the resume word", read_resume_word, 2000, false },
	{ "requestCleanupOnDetach", request_cleanup, 5000, true },
	{ "clear the flags", clear_flags, 2000, false },
	{ "let the GPUs run", let_run, 5000, true },
	{ "wait for the end", wait_for_complete, 10000, true },
	{ "clearAttachState", clear_attach_state, 2000, true },
	{ "clear cudbgIpcFlag", clear_ipc_flag, 2000, false },
	{ "finalize", finalize, 5000, true },
	{ "restore the variables", restore, 2000, false },
	{ NULL, NULL, 0, false },
};
