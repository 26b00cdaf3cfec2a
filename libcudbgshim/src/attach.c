/* SPDX-License-Identifier: MIT */
/*
 * The steps of attaching.  Their order is that of today's debuggers (cuda-gdb, and LLDB's NVIDIA
 * plug-in); it contains the steps that NVIDIA's documentation of the debugger API names.
 *
 * Where those debuggers put a breakpoint on cudbgReportAttachProcedureFinished, these steps look at
 * the variable that the engine sets: a breakpoint that outlives us kills the target.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cudbg_abi.h"
#include "session.h"

#define RETRY_MS     100u  /* Time between two attempts, when the driver says "not now". */
#define GIVE_UP_MS   4000u /* Time for all attempts: there is an answer within 5 s. */
#define ENGINE_MS    500u  /* Time for the engine to show after the call returned. */
#define POLL_MS	     2u
#define ARMED_MS     20u
#define RESULT_NONE  0u

static int goto_step(struct cudbgshim_session *s, const char *name)
{
	session_goto(s, session_attach_steps, name);
	return 0;
}

static int finish(struct cudbgshim_session *s, enum cudbgshim_outcome outcome)
{
	s->outcome = outcome;
	return goto_step(s, "attached");
}

/* Reading or writing a variable failed. */
static int fail_memory(struct cudbgshim_session *s, int rc)
{
	s->is_gone |= rc == -ESRCH;
	return session_fail(s, rc == -ESRCH ? CUDBGSHIM_OUTCOME_GONE : CUDBGSHIM_OUTCOME_SYSTEM, rc,
			    RESULT_NONE, "cannot access the driver's variables in process %d",
			    s->o.pid);
}

/* ------------------------------------------------------------------ looking ------------------ */

static int find_library(struct cudbgshim_session *s)
{
	struct cudbgshim_session_error why = { .text = "" };
	int rc = flags_find(&s->o.memory, s->o.tracer, s->o.proc_fd, &s->target, &why);

	if (rc == -ENOENT)
		return finish(s, CUDBGSHIM_OUTCOME_NO_LIBCUDA);
	if (rc == -ESRCH)
		return session_fail(s, CUDBGSHIM_OUTCOME_GONE, rc, RESULT_NONE,
				    "process %d has ended", s->o.pid);
	if (rc < 0)
		return session_fail(s, rc == -ENOEXEC || rc == -EBADMSG || rc == -EPROTO ?
				    CUDBGSHIM_OUTCOME_BAD_LIBRARY : CUDBGSHIM_OUTCOME_SYSTEM,
				    rc, RESULT_NONE, "%s", why.text);
	return 0;
}

static int choose_path(struct cudbgshim_session *s, uint32_t fd_value)
{
	const struct session_target *t = &s->target;

	s->path = s->o.path;
	if (s->path != CUDBGSHIM_PATH_AUTO)
		return 0;
	if (flags_has(t, CUDBGSHIM_SYM_ATTACH_FD))
		s->path = (int32_t)fd_value < 0 ? CUDBGSHIM_PATH_LAUNCH : CUDBGSHIM_PATH_FD;
	else if (flags_has(t, CUDBGSHIM_SYM_API_ATTACH))
		s->path = CUDBGSHIM_PATH_CALL;
	else if (flags_has(t, CUDBGSHIM_SYM_API_INIT))
		s->path = CUDBGSHIM_PATH_LEGACY;
	else
		return session_fail(s, CUDBGSHIM_OUTCOME_BAD_LIBRARY, -ENOEXEC, RESULT_NONE,
				    "%.120s: no way to attach", t->library.path);
	return 0;
}

static int check_flags(struct cudbgshim_session *s)
{
	const struct session_target *t = &s->target;
	uint32_t engaged = 0, initialized = 0, preemption = 0, fd_value = 0;
	int rc = flags_read(&s->o.memory, t, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER, &engaged);

	if (rc == 0)
		rc = flags_read(&s->o.memory, t, CUDBGSHIM_SYM_INITIALIZED, &initialized);
	if (rc == 0)
		rc = flags_read(&s->o.memory, t, CUDBGSHIM_SYM_PREEMPTION, &preemption);
	if (rc == 0)
		rc = flags_read(&s->o.memory, t, CUDBGSHIM_SYM_ATTACH_FD, &fd_value);
	if (rc < 0)
		return fail_memory(s, rc);
	if (!flags_has(t, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER))
		return session_fail(s, CUDBGSHIM_OUTCOME_TOO_OLD, -EOPNOTSUPP, RESULT_NONE,
				    "%.120s has no unified debugger", t->library.path);
	if (engaged || initialized)
		return session_fail(s, CUDBGSHIM_OUTCOME_DEBUGGED, -EBUSY, RESULT_NONE,
				    "process %d is used by another debugger already", s->o.pid);
	if (preemption)
		return session_fail(s, CUDBGSHIM_OUTCOME_PREEMPTION, -EBUSY, RESULT_NONE,
				    "process %d uses software preemption", s->o.pid);
	return choose_path(s, fd_value);
}

static int load_driver(struct cudbgshim_session *s)
{
	struct cudbgshim_failure f = { .text = "" };
	const char *words;
	int rc = cudbgshim_create(&s->o.driver, &s->shim, &f);

	if (rc == 0)
		return 0;
	words = cudbgshim_result_words(f.result);
	return session_fail(s, CUDBGSHIM_OUTCOME_OUR_DRIVER, rc, f.result,
			    "our own libcuda cannot be used: %s", *f.text ? f.text : words ? words : "");
}

/* ------------------------------------------------------------------ asking ------------------- */

/*
 * Write the variables.  The flag that makes cuInit look at them comes last, in a step of its own.
 */
static int write_flags(struct cudbgshim_session *s)
{
	struct cudbgshim_version v = cudbgshim_get_version(s->shim);
	const struct {
		enum cudbgshim_symbol symbol;
		uint64_t value;
	} writes[] = {
		{ CUDBGSHIM_SYM_INTERNAL_ERROR_CODE, 0 },
		{ CUDBGSHIM_SYM_CLIENT_PID, s->o.label },
		{ CUDBGSHIM_SYM_CLIENT_REVISION, v.revision },
		{ CUDBGSHIM_SYM_SESSION_ID, 0 },
		{ CUDBGSHIM_SYM_RPC_ENABLED, 0 },
		{ CUDBGSHIM_SYM_CAPABILITIES, s->o.capabilities },
	};
	int rc = 0;

	flags_set_phase(s->undo, CUDBGSHIM_PHASE_FLAGS);
	if (s->o.driver.engine)
		rc = flags_write_path(&s->o.memory, &s->target, s->undo, s->o.driver.engine);
	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(writes); i++)
		rc = flags_write(&s->o.memory, &s->target, s->undo, writes[i].symbol,
				 writes[i].value);
	if (rc < 0)
		return fail_memory(s, rc);
	switch (s->path) {
	case CUDBGSHIM_PATH_FD:
		return goto_step(s, "ask through the descriptor");
	case CUDBGSHIM_PATH_LAUNCH:
		return goto_step(s, "set the launch flag");
	case CUDBGSHIM_PATH_LEGACY:
		return goto_step(s, "call cudbgApiInit");
	default:
		return goto_step(s, "call cudbgApiAttach");
	}
}

static int call_attach(struct cudbgshim_session *s)
{
	int rc;

	flags_set_phase(s->undo, CUDBGSHIM_PHASE_ENGAGED);
	rc = s->path == CUDBGSHIM_PATH_LEGACY ?
		     session_call(s, CUDBGSHIM_SYM_API_INIT, CUDBGABI_ATTACH_STUB) :
		     session_call(s, CUDBGSHIM_SYM_API_ATTACH, 0);
	return rc == 0 ? goto_step(s, "wait for the engine") : rc;
}

/*
 * Get the write end of the driver's pipe.  Nothing else is written to, since the number comes from
 * the target and could name any file that it holds open for reading.
 */
static int open_attach_fd(struct cudbgshim_session *s, int number, int *ret_fd)
{
	const struct cudbgshim_tracer *t = s->o.tracer;
	auto_close int fd = t->descriptor(t->ctx, s->o.proc_fd, s->o.pidfd, number);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return -EBADF;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/*
 * The pipe is the target's, whose flags decide whether write(2) waits, and the target may have
 * filled it.  Any byte will do: cuda-gdb writes 0, LLDB 0xab.
 */
static int write_byte(int fd)
{
	struct pollfd pipe = { .fd = fd, .events = POLLOUT };
	int r = poll(&pipe, 1, 0);

	if (r == 0)
		return -EAGAIN;
	return r < 0 || write(fd, "", 1) < 0 ? -errno : 0;
}

static int ask_through_fd(struct cudbgshim_session *s)
{
	auto_close int fd = -1;
	uint32_t number;
	int rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_ATTACH_FD, &number);

	if (rc < 0)
		return fail_memory(s, rc);
	rc = open_attach_fd(s, (int32_t)number, &fd);
	if (rc < 0)
		return session_fail(s, CUDBGSHIM_OUTCOME_NOT_POSSIBLE, rc, RESULT_NONE,
				    "descriptor %d of process %d is not its driver's pipe",
				    (int32_t)number, s->o.pid);
	flags_set_phase(s->undo, CUDBGSHIM_PHASE_ENGAGED);
	rc = write_byte(fd);
	if (rc < 0)
		return session_fail(s, CUDBGSHIM_OUTCOME_NOT_POSSIBLE, rc, RESULT_NONE,
				    "the driver in process %d does not listen", s->o.pid);
	s->is_asked = true;
	return goto_step(s, "wait for the engine");
}

static int set_launch_flag(struct cudbgshim_session *s)
{
	int rc;

	flags_set_phase(s->undo, CUDBGSHIM_PHASE_ENGAGED);
	rc = flags_write(&s->o.memory, &s->target, s->undo, CUDBGSHIM_SYM_IPC_FLAG, 1);
	return rc < 0 ? fail_memory(s, rc) : 0;
}

/*
 * cuInit may have been under way already when the flag was set: then it offers its descriptor
 * instead.
 */
static int wait_for_init(struct cudbgshim_session *s)
{
	uint32_t engaged = 0, number = UINT32_MAX;
	int rc =
		flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER, &engaged);

	if (rc == 0 && flags_has(&s->target, CUDBGSHIM_SYM_ATTACH_FD))
		rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_ATTACH_FD, &number);
	if (rc < 0)
		return fail_memory(s, rc);
	if (!engaged && (int32_t)number < 0) {
		s->outcome = CUDBGSHIM_OUTCOME_ARMED;
		return session_wait(s, CUDBGSHIM_WAIT_TIMER, ARMED_MS);
	}
	s->outcome = CUDBGSHIM_OUTCOME_NONE;
	if (engaged)
		return goto_step(s, "introduce ourselves");
	s->path = CUDBGSHIM_PATH_FD;
	return goto_step(s, "ask through the descriptor");
}

/* ------------------------------------------------------------------ the engine ---------------- */

static int engine_refused(struct cudbgshim_session *s, uint32_t result)
{
	const char *words = cudbgshim_result_words(result);
	enum cudbgshim_outcome outcome = CUDBGSHIM_OUTCOME_ENGINE;

	if (result == CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE)
		outcome = CUDBGSHIM_OUTCOME_NOT_POSSIBLE;
	else if (result == CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED)
		outcome = CUDBGSHIM_OUTCOME_NO_DEVICE;
	return session_fail(s, outcome, -EIO, result, "the driver in process %d refuses: %s",
			    s->o.pid, words ? words : "unknown result");
}

/* The time is counted from the first attempt; the session keeps it across the repeated steps. */
static bool may_retry(struct cudbgshim_session *s)
{
	if (!s->retry_until)
		s->retry_until = clock_deadline_ms(GIVE_UP_MS);
	return clock_left_ms(s->retry_until);
}

static int wait_for_engine(struct cudbgshim_session *s)
{
	uint32_t result = 0, engaged = 0;
	int rc =
		flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_USE_EXTERNAL_DEBUGGER, &engaged);

	if (rc == 0)
		rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE,
				&result);
	if (rc < 0)
		return fail_memory(s, rc);
	if (result == CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE && s->path != CUDBGSHIM_PATH_FD &&
	    may_retry(s))
		return goto_step(s, "ask again");
	if (result)
		return engine_refused(s, result);
	if (engaged == 1) {
		s->is_asked = false;
		return goto_step(s, "introduce ourselves");
	}
	if (engaged)
		return session_fail(s, CUDBGSHIM_OUTCOME_BAD_LIBRARY, -EBADMSG, RESULT_NONE,
				    "cudbgUseExternalDebugger is %u in process %d", engaged,
				    s->o.pid);
	/* A call returns when the engine is there; the descriptor only passes the wish on. */
	if (!s->give_up)
		s->give_up = clock_deadline_ms(ENGINE_MS);
	if (s->path != CUDBGSHIM_PATH_FD && !clock_left_ms(s->give_up))
		return session_fail(s, CUDBGSHIM_OUTCOME_ENGINE, -EIO, RESULT_NONE,
				    "the driver in process %d does not start its debug engine",
				    s->o.pid);
	return session_wait(s, CUDBGSHIM_WAIT_TIMER, POLL_MS);
}

static int ask_again(struct cudbgshim_session *s)
{
	int rc;

	if (!s->not_before) {
		s->not_before = clock_deadline_ms(RETRY_MS);
		return session_wait(s, CUDBGSHIM_WAIT_TIMER, RETRY_MS);
	}
	if (clock_left_ms(s->not_before))
		return session_wait(s, CUDBGSHIM_WAIT_TIMER,
				    (unsigned)clock_left_ms(s->not_before));
	rc = flags_write(&s->o.memory, &s->target, s->undo, CUDBGSHIM_SYM_INTERNAL_ERROR_CODE, 0);
	if (rc < 0)
		return fail_memory(s, rc);
	return goto_step(s, s->path == CUDBGSHIM_PATH_LEGACY ? "call cudbgApiInit" :
							       "call cudbgApiAttach");
}

/* ------------------------------------------------------------------ our side ----------------- */

static void notify(void *user, uint32_t tid)
{
	uint64_t one = 1;

	(void)tid;
	/* A full counter is as good, because it is readable. */
	if (write(((struct cudbgshim_session *)user)->event_fd, &one, sizeof(one)) < 0)
		return;
}

static int introduce(struct cudbgshim_session *s)
{
	int rc = cudbgshim_set_client(s->shim, s->o.label, 0);

	if (rc < 0)
		return session_fail(s, CUDBGSHIM_OUTCOME_OUR_DRIVER, rc, RESULT_NONE,
				    "our own libcuda lacks the variables of a debugger");
	rc = cudbgshim_set_notify(s->shim, notify, s);
	return rc < 0 ? session_fail_api(s, rc, "cannot register for events") : 0;
}

static int initialize(struct cudbgshim_session *s)
{
	const struct cudbgshim_connector *c = s->o.connector;
	int rc = cudbgshim_initialize(s->shim), why;

	if (rc >= 0) {
		s->is_initialized = true;
		return 0;
	}
	why = c ? c->why(c->user) : 0;
	if (why < 0)
		return label_fail(s, why);
	if (rc != -EAGAIN)
		return session_fail_api(s, rc, "the session cannot be opened");
	if (!clock_left_ms(s->deadline))
		return session_fail_api(s, rc, "the session cannot be opened in time");
	s->is_announced = false;
	s->pause_ms = s->pause_ms ? s->pause_ms * 2 : 1;
	if (s->pause_ms > RETRY_MS)
		s->pause_ms = RETRY_MS;
	return session_wait(s, CUDBGSHIM_WAIT_TIMER, s->pause_ms);
}

static int promote_stub(struct cudbgshim_session *s)
{
	int rc = 0;

	if (s->path == CUDBGSHIM_PATH_LEGACY)
		rc = cudbgshim_initialize_attach_stub(s->shim);
	return rc < 0 && rc != -ENOSYS ? session_fail_api(s, rc, "initializeAttachStub") : 0;
}

/* The flag lets the engine send events, so it is set before anything is waited for. */
static int read_resume_word(struct cudbgshim_session *s)
{
	int rc = flags_write(&s->o.memory, &s->target, s->undo, CUDBGSHIM_SYM_IPC_FLAG, 1);

	if (rc == 0)
		rc = flags_read(&s->o.memory, &s->target, CUDBGSHIM_SYM_RESUME_FLAG,
				&s->resume_word);
	if (rc < 0)
		return fail_memory(s, rc);
	s->is_complete = false;
	return s->resume_word ? 0 : goto_step(s, "let the GPUs run");
}

static int replay(struct cudbgshim_session *s)
{
	int rc = cudbgshim_session_drain(s);

	if (rc < 0)
		return session_fail_api(s, rc, "the driver's state cannot be read");
	if (s->is_complete)
		return 0;
	s->is_announced = false;
	return session_wait(s, CUDBGSHIM_WAIT_NOTIFY, POLL_MS * 5);
}

static int let_run(struct cudbgshim_session *s)
{
	int rc = cudbgshim_session_resume_all(s);

	if (rc < 0)
		return session_fail_api(s, rc, "the GPUs do not run on");
	return finish(s, CUDBGSHIM_OUTCOME_ATTACHED);
}

static int nothing(struct cudbgshim_session *s)
{
	return 0;
}

const struct session_step session_attach_steps[] = {
	{ "find libcuda", find_library, 2000, false },
	{ "check the flags", check_flags, 2000, false },
	{ "check its network namespace", label_check_namespace, 2000, false },
	{ "load our driver", load_driver, 5000, true },
	{ "choose a label", label_choose, 8000, false },
	{ "write the flags", write_flags, 2000, false },
	{ "call cudbgApiAttach", call_attach, 6000, false },
	{ "call cudbgApiInit", call_attach, 6000, false },
	{ "ask through the descriptor", ask_through_fd, 2000, false },
	{ "wait for the engine", wait_for_engine, 30000, false },
	{ "ask again", ask_again, 2000, false },
	{ "set the launch flag", set_launch_flag, 2000, false },
	{ "wait for cuInit", wait_for_init, 0, false },
	{ "introduce ourselves", introduce, 2000, true },
	{ "initialize", initialize, 5000, true },
	{ "initializeAttachStub", promote_stub, 2000, true },
	{ "read the resume word", read_resume_word, 2000, false },
	{ "replay", replay, 30000, true },
	{ "let the GPUs run", let_run, 5000, true },
	{ "attached", nothing, 2000, false },
	{ NULL, NULL, 0, false },
};
