/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/worker/cuda/cuda.h"
#include "agentd/worker/process/deadline.h"
#include "agentd/worker/process/facts.h"
#include "agentd/worker/process/yama.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define DETACH_MS 15000

static void cuda_destroy(struct target *t)
{
	struct target_cuda *c = cuda_of(t);

	cuda_core_end(t);
	for (size_t i = 0; i < c->n_devices; i++)
		cudbgshim_state_reader_destroy(c->devices[i].reader);
	cudbgshim_session_destroy(c->session);
	cuda_tracer_end(&c->tracer);
	cuda_connect_close(&c->connect);
	if (c->undo && c->undo != &c->own_undo)
		munmap(c->undo, IPC_UNDO_BYTES);
	if (c->mem_fd >= 0)
		close(c->mem_fd);
	if (c->proc_fd >= 0)
		close(c->proc_fd);
	if (c->timer_fd >= 0)
		close(c->timer_fd);
	free(c->devices);
	free(c->contexts);
	for (size_t i = 0; i < c->n_modules; i++)
		cuda_module_deinit(&c->modules[i]);
	free(c->modules);
	free(c->image);
	target_deinit(t);
	free(c);
}

/* Without the monitor, as in unit tests, no process would rescue the target. */
static void map_undo(struct target_cuda *c)
{
	char *p = mmap(NULL, IPC_UNDO_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, IPC_FD_UNDO, 0);

	c->undo = p == MAP_FAILED ? &c->own_undo : (void *)p;
	c->left_suspended = p == MAP_FAILED ? NULL : (void *)(p + IPC_UNDO_SUSPENDED);
}

/*
 * Calls in the target stop a thread of it, at attaching and at detaching.  Does the kernel let nobody do
 * that who has only the same user id?
 */
bool cuda_needs_tracer(const struct worker_options *o, const struct access_target *facts)
{
	return o->privileged && (yama_ptrace_scope() > 0 || !facts->dumpable || facts->permitted);
}

int cuda_confine(const struct access_target *facts, bool traces, bool permissive, int *ret_notify)
{
	int r = privileges_become(facts->uids[0], facts->gids[0]);

	return r < 0 ? r : sandbox_worker_driver(traces, permissive, ret_notify);
}

/* What the process wrote itself is parsed later, without rights. */
static int open_files(struct target_cuda *c, int *ret_environ_fd)
{
	int r = target_open(&c->t);

	c->mem_fd = r < 0 ? r : cuda_open_memory(c->proc_fd);
	*ret_environ_fd = openat(c->proc_fd, "environ", O_RDONLY | O_CLOEXEC);
	return c->mem_fd < 0 ? c->mem_fd : 0;
}

static int cannot_begin(const struct target_cuda *c, int r, const char *op, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_FAILED, -r, op, NULL, "cannot begin with process %d as user %u",
			     (int)c->t.options->pid, c->t.facts.uids[0]);
}

/*
 * Give up all rights.  Where the target's user may not look into the process, it is opened before, and
 * a tracer is started that keeps the right to stop threads; else the kernel judges that user.
 * @param ret_refused  0, or -errno of opening the memory.
 */
static int settle_in(struct target_cuda *c, int *ret_environ_fd, int *ret_refused, struct agent_err *err)
{
	const struct worker_options *o = c->t.options;
	bool needs_tracer = cuda_needs_tracer(o, &c->t.facts);
	uint64_t start;
	int notify, r = 0;

	*ret_refused = 0;
	if (needs_tracer) {
		*ret_refused = open_files(c, ret_environ_fd);
		r = process_facts_start(o->pid, &start);
		if (r == 0 && *ret_refused == 0)
			r = cuda_tracer_start(&c->t.facts, start, c->proc_fd, IPC_FD_TARGET, &c->tracer);
		if (r < 0)
			return cannot_begin(c, r, "start tracer", err);
	}
	cuda_connect_open(&c->connect, o->deadline_ns);
	r = cuda_confine(&c->t.facts, !needs_tracer, o->permissive, &notify);
	if (r < 0)
		return cannot_begin(c, r, "drop privileges", err);
	cuda_connect_hand_over(&c->connect, notify);
	c->t.is_confined = true;
	if (!needs_tracer)
		*ret_refused = open_files(c, ret_environ_fd);
	return 0;
}

static int no_nodes(const struct worker_options *o, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, ENOENT, "attach", CUDA_NODES_HINT,
			     "process %d uses /dev/nvidiactl, which is not there for the agent", (int)o->pid);
}

static int look_at(struct target_cuda *c, int environ_fd, int refused, struct agent_err *err)
{
	const struct worker_options *o = c->t.options;
	int uses = cuda_maps_use(c->t.maps_fd);
	char mps[1024];

	if (uses == 0) {
		agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, 0, "look for CUDA user",
			      "gpu-agentctl list shows the processes that use a GPU",
			      "process %d (%s) has not loaded libcuda", (int)o->pid,
			      c->t.facts.comm);
		return TARGET_NOT_MINE;
	}
	if (uses < 0)
		return leader_cannot_open(o->pid, o->privileged, EACCES, "read /proc/PID/maps", err);
	if (refused < 0)
		return leader_cannot_open(o->pid, o->privileged, -refused, "open /proc/PID/mem", err);
	if (c->t.facts.tracer_pid)
		return leader_refusal(o->pid, "attach", err);
	c->is_near_mps = cuda_is_near_mps(environ_fd, c->t.root_fd, mps, sizeof(mps));
	return 0;
}

static int create_steps(struct target_cuda *c, struct agent_err *err)
{
	const struct worker_options *o = c->t.options;
	auto_close int environ_fd = -1;
	char path[32];
	bool has_nodes = !cuda_uses_nodes(o->pid) || cuda_has_nodes();
	int r, refused;

	map_undo(c);
	snprintf(path, sizeof(path), "/proc/%d", (int)o->pid);
	c->proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->proc_fd < 0)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, errno, "open /proc/PID", NULL,
				     "process %d is gone", (int)o->pid);
	r = settle_in(c, &environ_fd, &refused, err);
	if (r == 0)
		r = look_at(c, environ_fd, refused, err);
	return r || has_nodes ? r : no_nodes(o, err);
}

static bool cuda_is_here(const struct worker_options *o)
{
	return cuda_has_nodes() || (strchr(o->cuda_library, '/') && access(o->cuda_library, F_OK) == 0);
}

static int cuda_create(const struct worker_options *o, const struct access_target *facts,
		       struct target **ret, struct agent_err *err)
{
	struct target_cuda *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return cuda_no_memory("attach", err);
	target_init(&c->t, &target_cuda_ops, o, facts);
	c->mem_fd = c->proc_fd = c->timer_fd = -1;
	c->connect = (struct cuda_connect){ .channel = -1, .memory_fd = -1 };
	r = create_steps(c, err);
	if (r) {
		cuda_destroy(&c->t);
		return r;
	}
	*ret = &c->t;
	return 0;
}

/* ------------------------------------------------------------------ stepping ----------------- */

static void on_step(void *user, const char *step)
{
	const struct target_cuda *c = user;

	log_debug("session %u: %s", c->t.options->session, step);
}

static void sleep_for(struct target_cuda *c, const struct cudbgshim_wait *w)
{
	struct pollfd p = { .fd = cudbgshim_session_fd(c->session), .events = POLLIN };

	poll(&p, w->kind == CUDBGSHIM_WAIT_NOTIFY, clock_left_ms(w->until_ns));
}

static int undo_session(void *ctx, uint64_t arg, struct agent_err *err)
{
	const struct deadline deadline = { .fd = IPC_FD_MONITOR };
	struct target_cuda *c = ctx;
	struct cudbgshim_wait w;
	int r;

	(void)arg;
	deadline_arm(&deadline, DETACH_MS);
	c->shim = NULL;
	cudbgshim_session_detach(c->session);
	while ((r = cudbgshim_session_step(c->session, &w)) == CUDBGSHIM_SESSION_BUSY)
		sleep_for(c, &w);
	return r < 0 && !c->t.ended && r != -ESRCH ? cuda_attach_error(c, err) : 0;
}

static int not_possible(const struct target_cuda *c, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, EAGAIN, "attach",
			     cudbgshim_outcome_hint(CUDBGSHIM_OUTCOME_NOT_POSSIBLE),
			     "the driver in process %d says that it cannot be attached to%s",
			     (int)c->t.options->pid, c->is_near_mps ? ": it is a client of MPS" : "");
}

/* @return 0, or negative with @p err, and then the session has detached by itself. */
static int run_attach(struct target_cuda *c, struct agent_err *err)
{
	const struct worker_options *o = c->t.options;
	struct cudbgshim_wait w;
	bool late = false, refused = false;
	int r;

	while ((r = cudbgshim_session_step(c->session, &w)) == CUDBGSHIM_SESSION_BUSY) {
		/* The engine is asked again as long as there is time, where that may help. */
		refused = refused || (!late && strcmp(w.step, "ask again") == 0);
		late = late || clock_now_ns() >= o->deadline_ns || (refused && c->is_near_mps);
		if (late)
			cudbgshim_session_detach(c->session);
		sleep_for(c, &w);
	}
	if (late && refused)
		return not_possible(c, err);
	if (late)
		return agent_err_set(err, RPC_ERROR_TIMEOUT, ETIMEDOUT, w.step,
				     "allow more time: timeout_ms",
				     "attaching to process %d took longer than %u ms", (int)o->pid,
				     o->timeout_ms);
	return r < 0 ? cuda_attach_error(c, err) : 0;
}

static bool add_to_epoll(int epoll, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

static int open_events(struct target_cuda *c, struct agent_err *err)
{
	c->t.event_fd = epoll_create1(EPOLL_CLOEXEC);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->t.event_fd < 0 || c->timer_fd < 0 || !add_to_epoll(c->t.event_fd, c->timer_fd) ||
	    !add_to_epoll(c->t.event_fd, cudbgshim_session_fd(c->session)))
		return agent_err_set(err, RPC_ERROR_FAILED, errno, "epoll", NULL,
				     "cannot watch for events");
	return 0;
}

int cuda_begin(struct target_cuda *c, struct agent_err *err)
{
	enum cudbgshim_outcome outcome = cudbgshim_session_outcome(c->session);
	struct cudbgshim_version v;

	c->t.runtime.state = RPC_RUNTIME_STATE_DISABLED;
	if (outcome != CUDBGSHIM_OUTCOME_ATTACHED)
		return 0;
	c->shim = cudbgshim_session_shim(c->session);
	c->t.runtime.state = RPC_RUNTIME_STATE_ENABLED;
	v = cudbgshim_get_version(c->shim);
	snprintf(c->t.version, sizeof(c->t.version), "%u.%u.%u", v.major, v.minor, v.revision);
	return cuda_devices_read(c, err);
}

/* Before anything is changed in the target. */
static int no_broker(const struct target_cuda *c, struct agent_err *err)
{
	const int status = c->connect.status;

	return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, -status, "connect broker",
			     cudbgshim_outcome_hint(CUDBGSHIM_OUTCOME_CONNECT),
			     "the connect broker is not running%s",
			     status == -ETIMEDOUT ? ": it does not answer" : "");
}

/* @return 0, -ESTALE: a repair has nothing to do, or another error. */
static int create_session(struct target_cuda *c, struct cudbgshim_session_options *o)
{
	int r = cudbgshim_session_create(o, &c->session);

	if (r != -ESTALE)
		return r;
	/* The GPU of a program that another one has replaced is gone with it. */
	__atomic_store_n(c->left_suspended, 0, __ATOMIC_RELEASE);
	if (c->t.options->kind == IPC_KIND_REPAIR)
		return r;
	*c->undo = (struct cudbgshim_undo){ 0 };
	o->is_left_suspended = false;
	return cudbgshim_session_create(o, &c->session);
}

static int cuda_enable(struct target *t, struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct cudbgshim_session_options o = {
		.pid = (int)t->options->pid,
		.proc_fd = c->proc_fd,
		.pidfd = IPC_FD_TARGET,
		.memory = cudbgshim_memory_from_fd(c->mem_fd),
		.tracer = cuda_tracer_ops(&c->tracer),
		.driver = { .path = t->options->cuda_library },
		.connector = &c->connect.connector,
		.undo = c->undo,
		.is_left_suspended = c->left_suspended && *c->left_suspended == t->start_ticks,
		.on_event = cuda_on_event,
		.trace = on_step,
		.user = c,
	};
	uint32_t ticket;
	int r = c->connect.status < 0 ? no_broker(c, err) : 0;

	if (r < 0)
		return r;

	/* A thread of the driver asks for it when the thread that started it ends (sheet 12.2). */
	signal(SIGHUP, SIG_IGN);
	r = create_session(c, &o);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "attach", NULL,
				     "cannot prepare the session");
	r = undo_push(&t->undo, "end the session", undo_session, c, 0, &ticket, err);
	if (r == 0)
		r = open_events(c, err);
	if (r == 0)
		r = run_attach(c, err);
	/* Attaching has resumed what was left suspended. */
	if (r == 0 && c->left_suspended && cudbgshim_session_runs(c->session))
		__atomic_store_n(c->left_suspended, 0, __ATOMIC_RELEASE);
	if (r == 0)
		r = cuda_begin(c, err);
	if (r == 0)
		cuda_events_arm(c);
	return r;
}

const struct target_ops target_cuda_ops = {
	.vendor = RPC_VENDOR_NVIDIA,
	.no_seize = true,
	.slow_events = true,
	.is_here = cuda_is_here,
	.create = cuda_create,
	.enable = cuda_enable,
	.destroy = cuda_destroy,
	.event_drain = cuda_event_drain,
	.event_next = cuda_event_next,
	.event_done = cuda_event_done,
	.devices = cuda_devices,
	.queues = cuda_queues,
	.suspend = cuda_suspend,
	.suspended = cuda_suspended,
	.resume = cuda_resume,
	.waves = cuda_waves,
	.registers = cuda_registers,
	.wave_memory = cuda_wave_memory,
	.wave_spaces = CUDA_WAVE_SPACES,
	.memory = cuda_memory,
	.code_list = cuda_code_list,
	.code_stat = cuda_code_stat,
	.code_read = cuda_code_read,
	.code_done = cuda_code_done,
	.core_begin = cuda_core_begin,
	.core_read = cuda_core_read,
	.core_at = cuda_core_at,
	.core_end = cuda_core_end,
	.subscribe = cuda_subscribe,
	.rescue = cuda_rescue,
	.users = cuda_users,
	.checks = cuda_checks,
};
