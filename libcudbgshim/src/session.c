/* SPDX-License-Identifier: MIT */
/* Walks through the steps of attach.c and detach.c. */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cudbg_abi.h"

#define ALL_DEVICES UINT64_MAX

static const struct {
	const char *name, *hint;
} outcomes[CUDBGSHIM_OUTCOME_COUNT] = {
	[CUDBGSHIM_OUTCOME_NONE] = { "none", NULL },
	[CUDBGSHIM_OUTCOME_ATTACHED] = { "attached", NULL },
	[CUDBGSHIM_OUTCOME_NO_LIBCUDA] = { "no_libcuda", "the process has not loaded libcuda.so" },
	[CUDBGSHIM_OUTCOME_ARMED] = { "armed", "the session begins when the process calls cuInit" },
	[CUDBGSHIM_OUTCOME_DETACHED] = { "detached", NULL },
	[CUDBGSHIM_OUTCOME_TOO_OLD] = { "too_old",
					"the process needs an NVIDIA driver of release 520 or later" },
	[CUDBGSHIM_OUTCOME_BAD_LIBRARY] = { "bad_library",
					    "the process does not use NVIDIA's own libcuda.so" },
	[CUDBGSHIM_OUTCOME_DEBUGGED] = { "debugged", "let the other debugger or profiler detach; "
					 "a program that one left behind must be started again" },
	[CUDBGSHIM_OUTCOME_PREEMPTION] = { "preemption",
					   "start the program without CUDA_DEBUGGER_SOFTWARE_PREEMPTION" },
	[CUDBGSHIM_OUTCOME_NOT_POSSIBLE] = { "not_possible",
					     "a client of MPS cannot be attached to; otherwise try again" },
	[CUDBGSHIM_OUTCOME_ENGINE] = { "engine", "libcudadebugger.so.1 of the same driver must be "
				       "where the target can load it; containers often lack it" },
	[CUDBGSHIM_OUTCOME_OUR_DRIVER] = { "our_driver", "libcuda.so.1 and libcudadebugger.so.1 must be "
					   "installed where the agent runs" },
	[CUDBGSHIM_OUTCOME_NAMESPACE] = { "namespace", "run the container with the host's network, or the "
					  "agent inside it; the manual page gpu-agent-connect(8) says more" },
	[CUDBGSHIM_OUTCOME_NAME] = { "name", "try again; ss -xlp shows whose sockets there are" },
	[CUDBGSHIM_OUTCOME_CONNECT] = { "connect", "start gpu-agent-connect.socket, and see the manual page "
					"gpu-agent-connect(8)" },
	[CUDBGSHIM_OUTCOME_NO_DEVICE] = { "no_device",
					  "nvidia-smi shows the GPUs that the driver knows" },
	[CUDBGSHIM_OUTCOME_API] = { "api", NULL },
	[CUDBGSHIM_OUTCOME_CALL] = { "call", NULL },
	[CUDBGSHIM_OUTCOME_GONE] = { "gone", NULL },
	[CUDBGSHIM_OUTCOME_TIMEOUT] = { "timeout", "try again; --debug shows where the time went" },
	[CUDBGSHIM_OUTCOME_SYSTEM] = { "system", NULL },
};

const char *cudbgshim_outcome_name(enum cudbgshim_outcome outcome)
{
	return outcome < CUDBGSHIM_OUTCOME_COUNT ? outcomes[outcome].name : NULL;
}

const char *cudbgshim_outcome_hint(enum cudbgshim_outcome outcome)
{
	return outcome < CUDBGSHIM_OUTCOME_COUNT ? outcomes[outcome].hint : NULL;
}

/* Who died may have left a record that says nothing of the program that the process runs now. */
static int take_record(struct cudbgshim_session *s)
{
	int rc;

	if (s->undo->phase != CUDBGSHIM_PHASE_NONE || s->undo->n_writes)
		return -EBUSY;
	rc = s->o.is_left_suspended ? flags_check_program(&s->o.memory, s->undo) : 0;
	/* Without it no rescue would know the process again. */
	return rc < 0 ? rc : flags_start_time(s->o.proc_fd, &s->undo->start_time);
}

int cudbgshim_session_create(const struct cudbgshim_session_options *options,
			     struct cudbgshim_session **ret_session)
{
	struct cudbgshim_session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return -ENOMEM;
	s->o = *options;
	if (!s->o.tracer)
		s->o.tracer = &cudbgshim_tracer_direct;
	s->undo = options->undo ? options->undo : &s->own_undo;
	s->o.capabilities = options->capabilities ? options->capabilities : 0xf;
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = s->event_fd < 0 ? -errno : take_record(s);
	if (rc < 0) {
		cudbgshim_session_destroy(s);
		return rc;
	}
	s->undo->pid = options->pid;
	flags_note_program(&s->o.memory, s->o.tracer, s->o.proc_fd, s->undo);
	session_note_suspended(s, options->is_left_suspended ? ALL_DEVICES : 0);
	s->undo->version = CUDBGSHIM_UNDO_VERSION;
	s->step = session_attach_steps;
	*ret_session = s;
	return 0;
}

void cudbgshim_session_destroy(struct cudbgshim_session *s)
{
	if (!s)
		return;
	cudbgshim_inferior_destroy(s->call);
	/*
	 * The engine's thread may still notify; it would write to a file that is somebody else's by
	 * then.
	 */
	if (s->shim)
		cudbgshim_set_notify(s->shim, NULL, NULL);
	cudbgshim_destroy(s->shim);
	if (s->event_fd >= 0)
		close(s->event_fd);
	free(s);
}

void session_goto(struct cudbgshim_session *s, const struct session_step *steps, const char *name)
{
	while (strcmp(steps->name, name))
		steps++;
	s->next = steps;
}

int session_wait(struct cudbgshim_session *s, enum cudbgshim_wait_kind kind, unsigned ms)
{
	s->wait.kind = kind;
	s->wait.until_ns = clock_deadline_ms(ms);
	return CUDBGSHIM_SESSION_BUSY;
}

int session_fail(struct cudbgshim_session *s, enum cudbgshim_outcome outcome, int rc,
		 uint32_t result, const char *fmt, ...)
{
	va_list ap;

	if (s->err.error)
		return rc;
	s->err.outcome = outcome;
	s->err.error = rc;
	s->err.result = result;
	s->err.step = s->step ? s->step->name : "";
	va_start(ap, fmt);
	vsnprintf(s->err.text, sizeof(s->err.text), fmt, ap);
	va_end(ap);
	return rc;
}

static enum cudbgshim_outcome outcome_of(uint32_t result)
{
	switch (result) {
	case CUDBGABI_ERROR_NO_DEVICE_AVAILABLE:
	case CUDBGABI_ERROR_ALL_DEVICES_WATCHDOGGED:
	case CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED:
	case CUDBGABI_ERROR_INVALID_DEVICE:
		return CUDBGSHIM_OUTCOME_NO_DEVICE;
	case CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE:
	case CUDBGABI_ERROR_UNINITIALIZED:
		return CUDBGSHIM_OUTCOME_NOT_POSSIBLE;
	case CUDBGABI_ERROR_INCOMPATIBLE_API:
	case CUDBGABI_ERROR_INCOMPATIBLE_DISPLAY_DRIVER:
		return CUDBGSHIM_OUTCOME_OUR_DRIVER;
	default:
		return CUDBGSHIM_OUTCOME_API;
	}
}

int session_fail_api(struct cudbgshim_session *s, int rc, const char *what)
{
	const struct cudbgshim_call *last = cudbgshim_last(s->shim);
	const char *words = cudbgshim_result_words(last->result);

	return session_fail(s, outcome_of(last->result), rc, last->result, "%s: %s (%s)", what,
			    words ? words : "unknown result", last->name ? last->name : "no call");
}

/* ------------------------------------------------------------------ calls -------------------- */

static bool has_ended(struct cudbgshim_session *s)
{
	struct pollfd p = { .fd = s->o.pidfd, .events = POLLIN };

	if (!s->is_gone && p.fd >= 0 && poll(&p, 1, 0) > 0)
		s->is_gone = true;
	return s->is_gone;
}

static int call_failed(struct cudbgshim_session *s, int rc)
{
	const struct cudbgshim_inferior_error *e = cudbgshim_inferior_error(s->call);
	enum cudbgshim_outcome outcome;

	/* One thread that is gone is not the process. */
	if (rc == -ESRCH && s->o.pidfd < 0)
		s->is_gone = true;
	outcome = has_ended(s)	   ? CUDBGSHIM_OUTCOME_GONE :
		  rc == -ETIMEDOUT ? CUDBGSHIM_OUTCOME_TIMEOUT :
				     CUDBGSHIM_OUTCOME_CALL;
	return session_fail(s, outcome, rc, 0, "%s", e->what);
}

int session_call(struct cudbgshim_session *s, enum cudbgshim_symbol function, uint64_t argument)
{
	struct cudbgshim_inferior_options o = {
		.pid = s->o.pid,
		.proc_fd = s->o.proc_fd,
		.memory = s->o.memory,
		.tracer = s->o.tracer,
		.function = s->target.symbols.addr[function],
		.argument = argument,
		.avoid_start = s->target.library.base,
		.avoid_end = s->target.library.end,
		.record = &s->undo->call,
		.trace = s->o.trace,
		.trace_ctx = s->o.user,
	};
	int rc = 0;

	if (!s->call)
		rc = cudbgshim_inferior_create(&o, &s->call);
	if (rc < 0)
		return session_fail(s, CUDBGSHIM_OUTCOME_SYSTEM, rc, 0, "out of memory");
	rc = cudbgshim_inferior_step(s->call);
	if (rc == CUDBGSHIM_INFERIOR_WAIT)
		return session_wait(s, CUDBGSHIM_WAIT_STOP, 1);
	if (rc < 0)
		call_failed(s, rc);
	cudbgshim_inferior_destroy(TAKE_PTR(s->call));
	return rc;
}

/* ------------------------------------------------------------------ suspended GPUs ------------ */

void session_note_suspended(struct cudbgshim_session *s, uint64_t devices)
{
	__atomic_store_n(&s->undo->suspended, devices, __ATOMIC_RELEASE);
}

static uint64_t bit_of(uint32_t dev)
{
	return dev < 64 ? UINT64_C(1) << dev : 0;
}

/* A suspend that fails may have suspended it: the note stays until it is resumed. */
int cudbgshim_session_suspend(struct cudbgshim_session *s, uint32_t dev)
{
	session_note_suspended(s, s->undo->suspended | bit_of(dev));
	return cudbgshim_suspend_device(s->shim, dev);
}

int cudbgshim_session_resume(struct cudbgshim_session *s, uint32_t dev)
{
	int rc = cudbgshim_resume_device(s->shim, dev);

	if (rc >= 0)
		session_note_suspended(s, s->undo->suspended & ~bit_of(dev));
	return rc;
}

bool cudbgshim_session_runs(const struct cudbgshim_session *s)
{
	return !s->undo->suspended;
}

/* What the devices are; where that cannot be told, all that can be. */
static uint64_t devices_of(struct cudbgshim_session *s)
{
	uint32_t n = 0;

	return cudbgshim_get_n_devices(s->shim, &n) < 0 || n >= 64 ? ALL_DEVICES : bit_of(n) - 1;
}

int cudbgshim_session_suspend_all(struct cudbgshim_session *s)
{
	session_note_suspended(s, s->undo->suspended | devices_of(s));
	return cudbgshim_suspend_all(s->shim);
}

int cudbgshim_session_resume_all(struct cudbgshim_session *s)
{
	int rc = s->o.is_left_suspended ? cudbgshim_suspend_all(s->shim) : 0;

	if (rc >= 0)
		rc = cudbgshim_resume_all(s->shim);
	if (rc < 0)
		return rc;
	s->o.is_left_suspended = false;
	session_note_suspended(s, 0);
	return 0;
}

/* ------------------------------------------------------------------ walking ------------------ */

static void enter(struct cudbgshim_session *s, const struct session_step *step)
{
	s->step = step->run ? step : NULL;
	s->next = NULL;
	s->is_begun = s->is_announced = false;
}

void cudbgshim_session_detach(struct cudbgshim_session *s)
{
	if (s->is_detaching)
		return;
	s->is_detaching = true;
	s->outcome = CUDBGSHIM_OUTCOME_NONE;
	cudbgshim_inferior_destroy(TAKE_PTR(s->call));
	enter(s, session_detach_steps);
}

static void begin(struct cudbgshim_session *s)
{
	s->is_begun = true;
	s->deadline = s->step->timeout_ms ? clock_deadline_ms(s->step->timeout_ms) : UINT64_MAX;
	s->not_before = s->give_up = 0;
	s->pause_ms = 0;
	s->wait = (struct cudbgshim_wait){ .step = s->step->name, .deadline_ns = s->deadline };
	if (s->o.trace)
		s->o.trace(s->o.user, s->step->name);
}

/* Look once at the present step. */
static int look(struct cudbgshim_session *s)
{
	int rc;

	if (!s->is_begun)
		begin(s);
	if (has_ended(s) && !s->is_detaching)
		return session_fail(s, CUDBGSHIM_OUTCOME_GONE, -ESRCH, 0, "process %d has ended",
				    s->o.pid);
	if (s->step->is_vendor && !s->is_announced) {
		s->is_announced = true;
		return session_wait(s, CUDBGSHIM_WAIT_CALL, 0);
	}
	rc = s->step->run(s);
	if (rc == CUDBGSHIM_SESSION_BUSY && s->deadline != UINT64_MAX &&
	    !clock_left_ms(s->deadline))
		rc = session_fail(s, CUDBGSHIM_OUTCOME_TIMEOUT, -ETIMEDOUT, 0,
				  "%s: not within %u ms", s->step->name, s->step->timeout_ms);
	return rc;
}

int cudbgshim_session_step(struct cudbgshim_session *s, struct cudbgshim_wait *ret_wait)
{
	while (s->step) {
		int rc = look(s);

		if (rc == CUDBGSHIM_SESSION_BUSY) {
			*ret_wait = s->wait;
			/*
			 * An armed session is at rest, although it goes on when it is stepped
			 * again.
			 */
			return s->outcome == CUDBGSHIM_OUTCOME_ARMED ? 0 : rc;
		}
		if (rc < 0 && !s->is_detaching)
			cudbgshim_session_detach(s);
		else
			enter(s, s->next ? s->next : s->step + 1);
	}
	return s->err.error;
}

int cudbgshim_session_run(struct cudbgshim_session *s)
{
	struct cudbgshim_wait w;
	int rc;

	while ((rc = cudbgshim_session_step(s, &w)) == CUDBGSHIM_SESSION_BUSY) {
		struct pollfd p = { .fd = s->event_fd, .events = POLLIN };

		poll(&p, w.kind == CUDBGSHIM_WAIT_NOTIFY, clock_left_ms(w.until_ns));
	}
	return rc;
}

/* ------------------------------------------------------------------ events ------------------- */

static int drain_queue(struct cudbgshim_session *s, enum cudbgshim_queue queue, int *n)
{
	struct cudbgshim_event e;
	int rc;

	/*
	 * An event that makes no sense is gone from the queue, too, and its thread waits as others
	 * do.
	 */
	while ((rc = cudbgshim_get_next_event(s->shim, queue, &e)) == 0 || rc == -EPROTO) {
		++*n;
		if (rc < 0)
			continue;
		if (e.kind == CUDBGSHIM_EVENT_ALL_DEVICES_SUSPENDED)
			session_note_suspended(s, devices_of(s));
		s->is_complete |= e.kind == (s->is_detaching ? CUDBGSHIM_EVENT_DETACH_COMPLETE :
							       CUDBGSHIM_EVENT_ATTACH_COMPLETE);
		if (s->o.on_event)
			s->o.on_event(s->o.user, &e);
	}
	return rc == CUDBGSHIM_NO_EVENT ? 0 : rc;
}

int cudbgshim_session_drain(struct cudbgshim_session *s)
{
	int n_async = 0, n_sync = 0, rc, ack = 0;
	uint64_t count;

	/* The counter is read before the queues: what comes after this is notified again. */
	if (read(s->event_fd, &count, sizeof(count)) < 0)
		count = 0;
	rc = drain_queue(s, CUDBGSHIM_QUEUE_ASYNC, &n_async);
	if (rc == 0)
		rc = drain_queue(s, CUDBGSHIM_QUEUE_SYNC, &n_sync);
	/* A stop may be announced by the notification alone. */
	if (rc == 0 && count && !n_async && !n_sync && s->outcome == CUDBGSHIM_OUTCOME_ATTACHED)
		session_note_suspended(s, devices_of(s));
	/* The threads of the target that caused the events wait for this. */
	if (n_sync && !cudbgshim_is_over(s->shim))
		ack = cudbgshim_acknowledge_sync_events(s->shim);
	return rc < 0 ? rc : ack < 0 ? ack : n_async + n_sync;
}

/* ------------------------------------------------------------------ facts -------------------- */

enum cudbgshim_outcome cudbgshim_session_outcome(const struct cudbgshim_session *s)
{
	return s->outcome;
}

const struct cudbgshim_session_error *cudbgshim_session_error(const struct cudbgshim_session *s)
{
	return &s->err;
}

struct cudbgshim *cudbgshim_session_shim(struct cudbgshim_session *s)
{
	return s->outcome == CUDBGSHIM_OUTCOME_ATTACHED ? s->shim : NULL;
}

enum cudbgshim_path cudbgshim_session_path(const struct cudbgshim_session *s)
{
	return s->path;
}

int cudbgshim_session_fd(const struct cudbgshim_session *s)
{
	return s->event_fd;
}
