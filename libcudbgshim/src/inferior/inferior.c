/* SPDX-License-Identifier: MIT */
/*
 * Makes one function call in a thread of the debuggee; see cudbgshim_inferior in
 * cudbgshim_target.h.
 *
 * Whatever the moment of our death, the kernel lets the thread run with the registers it has then:
 * its own, or those of the function on top of a frame that restores them.  Two rules keep that true
 * in between.  Registers change in one ptrace call, after everything they point to is in place and
 * before everything else (mask, vector state) that the frame puts back.  And no stop is consumed
 * (WNOWAIT): the kernel forgets a signal whose stop was waited for by a tracer that then dies.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "libcudbgshim/src/inferior/inferior.h"

#define TIMEOUT_MS     5000u
/* Part of the time that is for finding a thread and getting it to stop. */
#define CHOOSE_MS      2000u
#define STOP_MS	       500u
/* How often and how long it is looked whether one waits, at least, while all that could be used run. */
#define RUNNING_LOOKS  20u
#define RUNNING_MS     10u
#define STRAYS_MS      3000u
#define SKIP_MAX       64u
#define STRAYS_MAX     (SKIP_MAX + 1)

/* PTRACE_GET_RSEQ_CONFIGURATION of linux/ptrace.h. */
struct rseq_configuration {
	uint64_t addr;
	uint32_t size, signature, flags, pad;
};

enum state {
	CHOOSING,  /* No thread is touched. */
	STOPPING,  /* One is seized and asked to stop. */
	RUNNING,   /* It runs the function. */
	RETURNING, /* The function has returned; the thread comes to a stop that restarts calls. */
	OVER,
};

struct cudbgshim_inferior {
	struct cudbgshim_inferior_options o;
	const struct cudbgshim_tracer *t;
	enum state state;
	int result;
	uint64_t deadline, choose_deadline, stop_deadline;
	uint64_t running_deadline;
	uint32_t running_looks;
	struct cudbgshim_inferior_error err;
	char *maps;
	size_t maps_size;
	uint64_t restorer, cookie, call_mask;
	/* The function made a call that cleared the kernel's memory of how to go on. */
	bool forgot_restart;
	pid_t tid; /* The thread that is seized; 0: none. */
	struct inferior_thread seen; /* The same, as it was before it was seized. */
	pid_t skip[SKIP_MAX];
	size_t n_skip;
	/* Seized threads that have not stopped yet and are to be let go. */
	struct inferior_thread strays[STRAYS_MAX];
	size_t n_strays;
	struct cudbgshim_inferior_record *record, own_record;
	struct inferior_saved saved;
	struct inferior_frame frame;
};

static void step_name(struct cudbgshim_inferior *c, const char *name)
{
	if (c->o.trace)
		c->o.trace(c->o.trace_ctx, name);
}

static int fail(struct cudbgshim_inferior *c, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int fail(struct cudbgshim_inferior *c, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->err.what, sizeof(c->err.what), fmt, ap);
	va_end(ap);
	if (c->tid)
		c->err.tid = c->tid;
	return rc;
}

int cudbgshim_inferior_create(const struct cudbgshim_inferior_options *options,
			  struct cudbgshim_inferior **ret_call)
{
	struct cudbgshim_inferior *c = calloc(1, sizeof(*c));
	uint64_t timeout_ms = options->timeout_ms ? options->timeout_ms : TIMEOUT_MS;

	if (!c)
		return -ENOMEM;
	c->o = *options;
	if (!c->o.tracer)
		c->o.tracer = &cudbgshim_tracer_direct;
	c->t = c->o.tracer;
	c->record = options->record ? options->record : &c->own_record;
	c->deadline = clock_deadline_ms(timeout_ms);
	c->choose_deadline = clock_deadline_ms(timeout_ms / 2 < CHOOSE_MS ? timeout_ms / 2 : CHOOSE_MS);
	c->running_deadline = clock_deadline_ms(RUNNING_MS);
	if (getrandom(&c->cookie, sizeof(c->cookie), 0) != sizeof(c->cookie))
		c->cookie = clock_now_ns();
	*ret_call = c;
	return 0;
}

static struct cudbgshim_stop look(struct cudbgshim_inferior *c)
{
	return c->t->look(c->t->ctx, c->tid);
}

static int go(struct cudbgshim_inferior *c, enum cudbgshim_go how, int sig)
{
	return c->t->go(c->t->ctx, c->tid, how, sig);
}

static int interrupt(struct cudbgshim_inferior *c)
{
	return c->t->interrupt(c->t->ctx, c->tid);
}

static int set_mask(struct cudbgshim_inferior *c, uint64_t mask)
{
	return c->t->set(c->t->ctx, c->tid, CUDBGSHIM_PART_MASK, &mask, sizeof(mask));
}

static int set_vectors(struct cudbgshim_inferior *c, const uint8_t *xstate)
{
	return c->t->set(c->t->ctx, c->tid, CUDBGSHIM_PART_VECTORS, xstate, c->saved.xstate_size);
}

/* ------------------------------------------------------------------ letting go --------------- */

static void pump_strays(struct cudbgshim_inferior *c)
{
	for (size_t i = 0; i < c->n_strays;)
		if (inferior_let_go(c->t, &c->strays[i]))
			c->strays[i] = c->strays[--c->n_strays];
		else
			i++;
}

static void make_stray(struct cudbgshim_inferior *c, const struct inferior_thread *seen)
{
	if (!inferior_let_go(c->t, seen) && c->n_strays < STRAYS_MAX)
		c->strays[c->n_strays++] = *seen;
}

/* What its registers are now is the function's, not what it was seen with. */
static void leave_thread(struct cudbgshim_inferior *c)
{
	make_stray(c, c->err.is_entered ? &(struct inferior_thread){ .tid = c->tid, .nr = -1 } : &c->seen);
}

static bool is_lost(const struct cudbgshim_stop *s)
{
	return s->kind == CUDBGSHIM_STOP_GONE || s->kind == CUDBGSHIM_STOP_EXEC || s->kind == CUDBGSHIM_STOP_LOST;
}

/*
 * Note that the thread's number is gone: it ended, or called exec and goes on as the leader.  If only
 * its tracer is gone, it runs on as after our own death, and the record tells of that.
 */
static int lost(struct cudbgshim_inferior *c, const struct cudbgshim_stop *s)
{
	if (s->kind == CUDBGSHIM_STOP_LOST) {
		fail(c, -EIO, "the tracer of thread %d has ended", (int)c->tid);
		c->tid = 0;
		return -EIO;
	}
	if (s->kind == CUDBGSHIM_STOP_EXEC)
		go(c, CUDBGSHIM_GO_FREE, 0);
	else if (c->tid != c->o.pid)
		make_stray(c, &(struct inferior_thread){ .tid = c->o.pid, .nr = -1 });
	c->record->is_active = 0;
	fail(c, -ESRCH, "thread %d ended during the call", (int)c->tid);
	c->tid = 0;
	return -ESRCH;
}

/* ------------------------------------------------------------------ choosing ----------------- */

static int read_maps(struct cudbgshim_inferior *c)
{
	int rc;

	free(c->maps);
	c->maps = NULL;
	rc = c->t->read_file(c->t->ctx, c->o.proc_fd, "maps", CUDBGSHIM_MAPS_MAX, &c->maps, &c->maps_size);
	if (rc < 0)
		return fail(c, rc == -ENOENT ? -ESRCH : rc, "cannot read the mappings of process %d",
			    c->o.pid);
	if (!c->maps_size)
		return fail(c, -ESRCH, "process %d has ended", c->o.pid);
	if (c->restorer)
		return 0;
	rc = inferior_find_restorer(&c->o.memory, c->maps, c->maps_size, &c->restorer);
	if (rc < 0)
		return fail(c, rc == -ENOENT ? -EOPNOTSUPP : rc,
			    "process %d has no code that calls rt_sigreturn", c->o.pid);
	return 0;
}

static int seize(struct cudbgshim_inferior *c, const struct inferior_thread *seen)
{
	const pid_t tid = seen->tid;
	int rc;

	step_name(c, "seize");
	rc = c->t->seize(c->t->ctx, tid);
	if (rc < 0) {
		c->err.tid = tid;
		/* Of one that ends the kernel says EPERM as well (kernel/ptrace.c, ptrace_attach(): exit_state). */
		if (rc == -ESRCH || (rc == -EPERM && inferior_thread_has_ended(c->o.proc_fd, tid)))
			return CUDBGSHIM_INFERIOR_WAIT;
		return fail(c, rc, "the kernel refuses to trace thread %d", (int)tid);
	}
	c->tid = tid;
	c->seen = *seen;
	step_name(c, "interrupt");
	interrupt(c);
	c->stop_deadline = clock_deadline_ms(STOP_MS);
	c->state = STOPPING;
	return 0;
}

/*
 * One that runs may enter epoll_wait() before it stops, and then that fails with EINTR for all to see where the stop
 * does not tell its first argument.  One that does nothing but run does not wait later either.
 */
static bool may_lose_call(struct cudbgshim_inferior *c, const struct inferior_thread *seen)
{
	const bool is_early = c->running_looks++ < RUNNING_LOOKS || clock_left_ms(c->running_deadline);

	return (seen->is_running || seen->nr < 0) && !inferior_stop_tells_call() && is_early &&
	       clock_left_ms(c->choose_deadline);
}

static int choose(struct cudbgshim_inferior *c)
{
	const char *why = "has no thread";
	struct inferior_thread t;
	int rc;

	step_name(c, "choose");
	rc = read_maps(c);
	if (rc < 0)
		return rc;
	rc = inferior_thread_choose(&c->o, c->maps, c->maps_size, c->skip, c->n_skip, &t, &why);
	if (rc < 0)
		return fail(c, rc, "process %d: %s", c->o.pid, rc == -EBUSY || rc == -EOPNOTSUPP ?
			    why : "its threads cannot be read");
	if (t.tid)
		return may_lose_call(c, &t) ? CUDBGSHIM_INFERIOR_WAIT : seize(c, &t);
	/* All threads were asked; give them a moment to get somewhere else. */
	if (!c->n_skip)
		fail(c, 0, "no thread can be used; one %s", why);
	c->n_skip = 0;
	if (!clock_left_ms(c->choose_deadline))
		return -EAGAIN;
	return CUDBGSHIM_INFERIOR_WAIT;
}

/* Let a thread go that cannot be used, or not now, and choose another one. */
static int reject(struct cudbgshim_inferior *c, const char *why)
{
	fail(c, 0, "no thread can be used; thread %d %s", (int)c->tid, why);
	if (c->n_skip < SKIP_MAX)
		c->skip[c->n_skip++] = c->tid;
	leave_thread(c);
	c->tid = 0;
	c->state = CHOOSING;
	return clock_left_ms(c->choose_deadline) ? 0 : -EAGAIN;
}

/* ------------------------------------------------------------------ entering ----------------- */

/*
 * Is the thread in a restartable sequence?  The kernel aborts one when the thread next runs, but
 * only if it finds the thread's program counter there.
 */
static bool is_in_rseq(struct cudbgshim_inferior *c)
{
	struct rseq_configuration conf = { 0 };
	struct {
		uint32_t version, flags;
		uint64_t start, size, abort;
	} cs;
	uint64_t at;
	const struct cudbgshim_memory *m = &c->o.memory;
	size_t size = sizeof(conf);

	if (c->t->get(c->t->ctx, c->tid, CUDBGSHIM_PART_RSEQ, &conf, &size) < 0 || !conf.addr)
		return false;
	if (m->read(m->ctx, conf.addr + 8, &at, sizeof(at)) < 0 || !at)
		return false;
	if (m->read(m->ctx, at, &cs, sizeof(cs)) < 0)
		return true;
	return inferior_pc(&c->saved.regs) - cs.start < cs.size;
}

static int save(struct cudbgshim_inferior *c)
{
	size_t mask = sizeof(c->saved.mask);
	int rc = inferior_get_registers(c->t, c->tid, &c->saved.regs);

	c->saved.xstate_size = sizeof(c->saved.xstate);
	if (rc == 0)
		rc = c->t->get(c->t->ctx, c->tid, CUDBGSHIM_PART_VECTORS, c->saved.xstate, &c->saved.xstate_size);
	if (rc == 0)
		rc = c->t->get(c->t->ctx, c->tid, CUDBGSHIM_PART_MASK, &c->saved.mask, &mask);
	if (rc == 0)
		inferior_forgive_interruption(&c->saved.regs, &c->seen);
	return rc;
}

/*
 * @return the signal mask for the call.  A handler in the middle of the function could leave it
 *         with longjmp(), so signals are blocked.  Faults stay deliverable, or the kernel would
 *         kill; so do real-time signals, of which the C library needs some (and a thread that the
 *         function creates would inherit them blocked for ever).
 */
static uint64_t mask_for_call(uint64_t own)
{
	static const int open[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
	uint64_t mask = UINT64_C(0x7fffffff);

	for (size_t i = 0; i < ARRAY_SIZE(open); i++)
		mask &= ~(UINT64_C(1) << (open[i] - 1));
	return own | mask;
}

static void clean_vector_state(struct cudbgshim_inferior *c)
{
	_Alignas(64) uint8_t xstate[INFERIOR_XSTATE_MAX];

	memcpy(xstate, c->saved.xstate, c->saved.xstate_size);
	inferior_clean_vectors(xstate, c->saved.xstate_size);
	set_vectors(c, xstate);
}

static int enter(struct cudbgshim_inferior *c)
{
	struct inferior_registers regs = c->saved.regs;
	const struct cudbgshim_memory *m = &c->o.memory;
	int rc;

	step_name(c, "frame");
	rc = m->write(m->ctx, c->frame.addr, c->frame.bytes, c->frame.size);
	if (rc < 0)
		return fail(c, rc, "cannot write to the stack of thread %d", (int)c->tid);
	inferior_enter(&regs, c->o.function, c->o.argument, &c->frame, c->restorer);
	*c->record = (struct cudbgshim_inferior_record){ .tid = c->tid, .frame = c->frame.addr,
						     .cookie_addr = c->frame.cookie_addr,
						     .cookie = c->cookie,
						     .function = c->o.function };
	/* The record counts before the registers change, so that a rescuer never misses a call. */
	__atomic_store_n(&c->record->is_active, 1, __ATOMIC_RELEASE);
	step_name(c, "registers");
	rc = inferior_set_registers(c->t, c->tid, &regs);
	if (rc < 0) {
		c->record->is_active = 0;
		return fail(c, rc, "cannot set the registers of thread %d", (int)c->tid);
	}
	c->err.is_entered = true;
	step_name(c, "mask");
	c->call_mask = mask_for_call(c->saved.mask);
	set_mask(c, c->call_mask);
	clean_vector_state(c);
	step_name(c, "run");
	c->state = RUNNING;
	go(c, CUDBGSHIM_GO_TO_SYSCALL, 0);
	return 0;
}

static int prepare(struct cudbgshim_inferior *c)
{
	const char *why;
	uint64_t low;
	int rc;

	step_name(c, "stopped");
	rc = save(c);
	if (rc == -ESRCH)
		return 0; /* It was killed while stopped, and its end will be seen. */
	if (rc == -EOPNOTSUPP)
		return reject(c, "has a shadow stack or matrix registers, which no call could put back");
	if (rc < 0)
		return fail(c, rc, "cannot read the registers of thread %d", (int)c->tid);
	why = inferior_check_place(&c->saved.regs, &c->seen, c->maps, c->maps_size, &c->o, &low);
	if (!why && is_in_rseq(c))
		why = "is in a restartable sequence";
	if (why)
		return reject(c, why);
	rc = inferior_frame_build(&c->saved, c->restorer, c->cookie, low, &c->frame);
	if (rc == -ENOSPC)
		return reject(c, "has too little room on its stack");
	if (rc < 0)
		return fail(c, -EOPNOTSUPP,
			    "the vector registers of thread %d have an unknown shape", (int)c->tid);
	return enter(c);
}

static int stopping(struct cudbgshim_inferior *c)
{
	struct cudbgshim_stop s = look(c);

	if (s.kind == CUDBGSHIM_STOP_NONE)
		return clock_left_ms(c->stop_deadline) ? CUDBGSHIM_INFERIOR_WAIT :
							 reject(c, "does not stop");
	if (is_lost(&s))
		return lost(c, &s);
	if (s.kind == CUDBGSHIM_STOP_GROUP)
		return fail(c, -EBUSY, "process %d is stopped by job control", c->o.pid);
	if (s.kind == CUDBGSHIM_STOP_ASKED)
		return prepare(c);
	step_name(c, "pass signal");
	go(c, CUDBGSHIM_GO_ON, s.kind == CUDBGSHIM_STOP_SIGNAL ? s.sig : 0);
	return 0;
}

/* ------------------------------------------------------------------ coming back -------------- */

/*
 * Lead the thread to the end of the frame's life: whatever happens next, rt_sigreturn restores it.
 */
static void go_to_restorer(struct cudbgshim_inferior *c)
{
	struct inferior_registers regs;

	if (inferior_get_registers(c->t, c->tid, &regs) < 0)
		return;
	inferior_leave(&regs, &c->frame, c->restorer);
	if (inferior_set_registers(c->t, c->tid, &regs) == 0)
		inferior_skip_call(c->t, c->tid);
}

/*
 * Begin to put the thread back when it is about to call rt_sigreturn.  That call would do, but it
 * forgets a call in restart_syscall(), and a signal that came meanwhile would not interrupt the
 * call that waits for it.  So the thread is brought to a stop in which the kernel decides about
 * restarting, and all is put back there.
 */
static int begin_return(struct cudbgshim_inferior *c)
{
	step_name(c, "returned");
	go_to_restorer(c);
	interrupt(c);
	c->state = RETURNING;
	go(c, CUDBGSHIM_GO_ON, 0);
	return 0;
}

/* Is the entry or the exit of this system call the end of the function? */
static bool is_return(struct cudbgshim_inferior *c)
{
	struct inferior_registers regs;

	if (inferior_get_registers(c->t, c->tid, &regs) < 0)
		return false;
	if (inferior_is_returning(&regs, &c->frame))
		return true;
	/* The kernel has one memory per thread of how to go on, and these calls clear it. */
	switch (inferior_call_at_stop(&regs)) {
	case SYS_rt_sigreturn:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_restart_syscall:
		c->forgot_restart = true;
		break;
	default:
		break;
	}
	return false;
}

/* Would the program die of our call?  It did not ask for this signal. */
static bool is_fatal_fault(struct cudbgshim_inferior *c, int sig)
{
	auto_free char *status = NULL;
	const char *line;
	siginfo_t si;
	size_t size = sizeof(si);

	if (sig != SIGSEGV && sig != SIGBUS && sig != SIGILL && sig != SIGFPE && sig != SIGTRAP &&
	    sig != SIGABRT && sig != SIGSYS)
		return false;
	/*
	 * Only a fault of its own counts, or abort() of the function itself; not what another
	 * process sent.
	 */
	if (c->t->get(c->t->ctx, c->tid, CUDBGSHIM_PART_SIGNAL, &si, &size) < 0 ||
	    (si.si_code <= 0 && si.si_code != SI_TKILL))
		return false;
	if (fd_read_file_at(c->o.proc_fd, "status", 65536, &status, &size) < 0)
		return false;
	line = strstr(status, "\nSigCgt:");
	return line && !(strtoull(line + 8, NULL, 16) & UINT64_C(1) << (sig - 1));
}

static int running(struct cudbgshim_inferior *c)
{
	struct cudbgshim_stop s = look(c);

	switch (s.kind) {
	case CUDBGSHIM_STOP_NONE:
		return CUDBGSHIM_INFERIOR_WAIT;
	case CUDBGSHIM_STOP_GONE:
	case CUDBGSHIM_STOP_EXEC:
	case CUDBGSHIM_STOP_LOST:
		return lost(c, &s);
	case CUDBGSHIM_STOP_SYSCALL:
		if (is_return(c))
			return begin_return(c);
		break;
	case CUDBGSHIM_STOP_SIGNAL:
		if (is_fatal_fault(c, s.sig)) {
			fail(c, 0, "the function died of signal %d in thread %d", s.sig,
			     (int)c->tid);
			c->result = -EFAULT;
			return begin_return(c);
		}
		step_name(c, "pass signal");
		go(c, CUDBGSHIM_GO_TO_SYSCALL, s.sig);
		return 0;
	case CUDBGSHIM_STOP_GROUP:
		go(c, CUDBGSHIM_GO_LISTEN, 0);
		return 0;
	case CUDBGSHIM_STOP_ASKED:
		break;
	}
	go(c, CUDBGSHIM_GO_TO_SYSCALL, 0);
	return 0;
}

static int finish(struct cudbgshim_inferior *c)
{
	step_name(c, "restore");
	inferior_resume_waiting(&c->saved.regs, &c->seen, c->forgot_restart);
	set_mask(c, c->saved.mask);
	set_vectors(c, c->saved.xstate);
	/* Registers come last: up to here the frame would have restored everything. */
	inferior_set_registers(c->t, c->tid, &c->saved.regs);
	step_name(c, "detach");
	go(c, CUDBGSHIM_GO_FREE, 0);
	c->record->is_active = 0;
	c->tid = 0;
	return c->result;
}

static int returning(struct cudbgshim_inferior *c)
{
	struct cudbgshim_stop s = look(c);

	if (s.kind == CUDBGSHIM_STOP_NONE)
		return CUDBGSHIM_INFERIOR_WAIT;
	if (is_lost(&s))
		return lost(c, &s);
	if (s.kind == CUDBGSHIM_STOP_ASKED || s.kind == CUDBGSHIM_STOP_GROUP) {
		if (finish(c) < 0)
			return c->result;
		c->state = OVER;
		return 0;
	}
	/* A signal handler that runs first comes back to the restorer. */
	go(c, CUDBGSHIM_GO_ON, s.kind == CUDBGSHIM_STOP_SIGNAL ? s.sig : 0);
	return 0;
}

/* ------------------------------------------------------------------ leaving ------------------ */

/*
 * Leave the thread when the time is up: it keeps its frame and finds back alone, with its own
 * signal mask.
 */
static int leave(struct cudbgshim_inferior *c)
{
	uint64_t patience = clock_deadline_ms(100);

	step_name(c, "leave");
	interrupt(c);
	while (clock_left_ms(patience)) {
		struct cudbgshim_stop s = look(c);

		if (s.kind == CUDBGSHIM_STOP_NONE) {
			nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
			continue;
		}
		if (is_lost(&s)) {
			lost(c, &s);
			return -ETIMEDOUT;
		}
		set_mask(c, c->saved.mask);
		break;
	}
	leave_thread(c);
	fail(c, 0, "the function does not return in thread %d; it goes on and restores the thread",
	     (int)c->tid);
	c->tid = 0;
	return -ETIMEDOUT;
}

static int too_late(struct cudbgshim_inferior *c)
{
	if (c->state == STOPPING)
		return reject(c, "does not stop");
	return c->state == CHOOSING ? -EAGAIN : leave(c);
}

static int advance(struct cudbgshim_inferior *c)
{
	switch (c->state) {
	case CHOOSING:
		return choose(c);
	case STOPPING:
		return stopping(c);
	case RUNNING:
		return running(c);
	case RETURNING:
		return returning(c);
	case OVER:
		break;
	}
	return c->result;
}

int cudbgshim_inferior_step(struct cudbgshim_inferior *c)
{
	int rc = 0;

	pump_strays(c);
	while (c->state != OVER && rc == 0) {
		rc = advance(c);
		if (rc == CUDBGSHIM_INFERIOR_WAIT && !clock_left_ms(c->deadline))
			rc = too_late(c);
	}
	if (rc < 0) {
		if (c->tid)
			leave_thread(c);
		c->tid = 0;
		c->state = OVER;
		c->result = rc;
	}
	return c->state == OVER ? c->result : rc;
}

int cudbgshim_inferior_run(struct cudbgshim_inferior *c)
{
	int rc;

	while ((rc = cudbgshim_inferior_step(c)) == CUDBGSHIM_INFERIOR_WAIT)
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	return rc;
}

uint64_t cudbgshim_inferior_deadline_ns(const struct cudbgshim_inferior *c)
{
	return c->deadline;
}

const struct cudbgshim_inferior_error *cudbgshim_inferior_error(const struct cudbgshim_inferior *c)
{
	return &c->err;
}

void cudbgshim_inferior_destroy(struct cudbgshim_inferior *c)
{
	uint64_t patience = clock_deadline_ms(STRAYS_MS);

	if (!c)
		return;
	if (c->tid)
		leave(c);
	/* A thread that gets no processor now would stop later, and stay so as long as we live. */
	while (c->n_strays && clock_left_ms(patience)) {
		pump_strays(c);
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	}
	free(c->maps);
	free(c);
}
