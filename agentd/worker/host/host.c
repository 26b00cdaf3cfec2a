/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/ipc/frontend_worker.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/worker/host/answer.h"
#include "agentd/worker/host/stops.h"
#include "agentd/worker/process/code_file.h"
#include "agentd/worker/process/mappings.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"

/* All stops together, where the client does not say. */
#define STOPS_MS 10

/* The worker, and what it has of its target. */
struct host_worker {
	const struct worker_options *o;
	struct access_target facts;
	struct memory memory;
	struct tasks tasks;
	int maps_fd, environment_fd, root_fd;
	struct stops stops;
	int error; /* Why the target could not be opened; the call is answered with it. */
	struct agent_err err;
	struct reading *reading; /* Names in the answer are its own; NULL: nothing was read. */
	bool hangs; /* A thread does, and nothing may be waited for. */
};

/* ------------------------------------------------------------------ opening ------------------ */

static int gone(const struct host_worker *h, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, "read stacks",
			     "check the number: a thread id, a pid of another pid namespace and a process whose main thread has ended do not count",
			     "there is no process %d", (int)h->o->pid);
}

static int refuse(const struct host_worker *h, int error, const char *op, const char *hint, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, error, op, hint, "the kernel does not let process %d be read",
			     (int)h->o->pid);
}

/* What needs rights, and nothing that the process itself has written. */
static int open_files(struct host_worker *h, struct agent_err *err)
{
	const pid_t pid = h->o->pid;
	int r = tasks_open(&h->tasks, pid);

	if (r == 0)
		r = tasks_list(&h->tasks, h->facts.ns_pid != pid);
	if (r == -ENOENT || r == -ESRCH)
		return gone(h, err);
	if (r == 0)
		r = memory_open(&h->memory, pid);
	if (r == 0) {
		h->maps_fd = mappings_open(pid);
		r = h->maps_fd < 0 ? h->maps_fd : 0;
		h->environment_fd = rank_open(pid);
		/* Without it debug files are those of this machine alone. */
		h->root_fd = code_file_root(pid);
	}
	if (r == 0)
		return 0;
	return refuse(h, -r, "open /proc/PID/mem",
		      h->o->privileged ? "gpu-agentd needs CAP_DAC_READ_SEARCH as well" :
					 "ask the system-wide gpu-agentd; if this is it, it needs CAP_SYS_PTRACE", err);
}

/*
 * The judge's verdict is about what the process was.  Memory that was opened is that of the program of then: if
 * afterwards it is still the one that was judged, that memory is, too.
 */
static int check_again(const struct host_worker *h, struct agent_err *err)
{
	const struct worker_options *o = h->o;
	struct access_target now;
	bool is_same, is_owner = true;

	if (access_target_read(o->pid, &now) < 0 || !access_is_alive(IPC_FD_TARGET) || now.state == 'Z')
		return gone(h, err);
	is_same = !memcmp(now.uids, h->facts.uids, sizeof(now.uids)) &&
		  !memcmp(now.gids, h->facts.gids, sizeof(now.gids)) && now.dumpable == h->facts.dumpable;
	for (size_t i = 0; i < ARRAY_SIZE(now.uids); i++)
		is_owner &= now.uids[i] == o->peer_uid;
	if (is_same && (o->peer_admin || o->peer_observer || (is_owner && (now.dumpable || !o->peer_uid))))
		return 0;
	return refuse(h, EPERM, "read stacks", "try again; an administrator may look at every process", err);
}

/* The tracer looks itself whether the process is still the one that the facts are of. */
static int prepare_stops(struct host_worker *h, struct agent_err *err)
{
	int r = stops_open(&h->stops, &h->facts);

	return r < 0 ? agent_err_set(err, RPC_ERROR_FAILED, -r, "start gpu-agent-tracer", "ask again without stops",
				     "what stops threads of process %d cannot be started", (int)h->o->pid) : 0;
}

static int prepare(struct host_worker *h, struct agent_err *err)
{
	int r = access_target_read(h->o->pid, &h->facts);

	if (r < 0 || !access_is_alive(IPC_FD_TARGET))
		return gone(h, err);
	r = open_files(h, err);
	if (r == 0)
		r = check_again(h, err);
	return r == 0 && h->o->stops ? prepare_stops(h, err) : r;
}

/* ------------------------------------------------------------------ answering ---------------- */

static int over(const struct host_worker *h, struct agent_err *err)
{
	if (!access_is_alive(IPC_FD_TARGET))
		return gone(h, err);
	return agent_err_set(err, RPC_ERROR_FAILED, ESRCH, "read stacks", "try again",
			     "process %d executed another program, or is about to end", (int)h->o->pid);
}

/* @return 0: it was read, as far as that is possible. */
static int read_target(struct host_worker *h, const struct reading_from *from, struct agent_err *err)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r || reading_init(r, from) < 0) {
		free(r);
		return agent_err_no_memory(err, NULL);
	}
	h->reading = r;
	tasks_describe(&h->tasks);
	h->hangs = !reading_run(r);
	return !h->hangs && r->error ? over(h, err) : 0;
}

static int fill_from(struct host_worker *h, struct rpc_arena *a, const struct rpc_host_stacks_params *p,
		     struct reading_from *ret)
{
	*ret = (struct reading_from){ .memory = &h->memory, .maps_fd = h->maps_fd, .environment_fd = h->environment_fd,
				      .root_fd = h->root_fd,
				      .tasks = &h->tasks, .children = p->has_children && p->children };
	if (p->has_stop && p->stop && h->stops.pid) {
		h->stops.budget_us = 1000 * (p->has_max_stop_ms ? p->max_stop_ms : STOPS_MS);
		ret->stops = &h->stops;
	}
	return reading_take_params(ret, a, p);
}

static int do_stacks(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_host_stacks_params *params, struct rpc_host_stacks_result *ret,
		     struct agent_err *err)
{
	struct host_worker *h = ctx;
	const uint64_t begin = clock_now_ns();
	struct reading_from from;
	int r;

	if (h->error < 0) {
		*err = h->err;
		return h->error;
	}
	/* The frontend asks for the process that was judged, and once. */
	if (params->pid != (uint32_t)h->o->pid || h->reading)
		return gone(h, err);
	ret->time_us = clock_wall_us();
	if (fill_from(h, arena, params, &from) < 0)
		return agent_err_no_memory(err, NULL);
	r = read_target(h, &from, err);
	if (r < 0)
		return r;
	ret->pid = params->pid;
	ret->comm = h->facts.comm;
	ret->uid = h->facts.uids[0];
	ret->duration_us = (clock_now_ns() - begin) / 1000;
	answer_fill(arena, h->reading, h->o->pid, ret);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

static const struct rpc_inspect_handlers handlers = { .host_stacks = do_stacks };

static int answer(struct host_worker *h, struct ipc_link *link, const struct ipc_message *m)
{
	struct ipc_head head = { .type = IPC_REPLY, .number = m->head.number, .id = m->head.id };
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out text = { 0 };
	struct agent_err err = { 0 };

	rpc_arena_init(&arena, 0);
	if (rpc_inspect_dispatch(&handlers, h, NULL, &arena, (enum rpc_method)m->head.number, m->text,
				 (size_t)m->head.size, &text, &err) < 0 ||
	    out_error(&text)) {
		head.type = IPC_ERROR;
		out_reset(&text);
		agent_err_encode(&text, &err);
	}
	head.size = text.size;
	return out_error(&text) ? out_error(&text) : ipc_link_send(link, &head, text.data);
}

/* @return 1: the call was answered; 0: there was nothing to read; -errno: the channel is closed, or broken. */
static int take_call(struct host_worker *h, struct ipc_link *link)
{
	struct ipc_message m;
	int r = ipc_link_recv(link, &m);

	if (r != 1)
		return r == 0 ? -EPIPE : r == -EAGAIN ? 0 : r;
	r = m.head.type == IPC_CALL ? answer(h, link, &m) : -EPROTO;
	ipc_message_deinit(&m);
	return r < 0 ? r : 1;
}

/* Until the answer is sent, the monitor dies, or the time is up.  @return exit status. */
static int serve(struct host_worker *h, struct ipc_link *link)
{
	bool is_answered = false;
	int r = 0;

	while (clock_left_ms(h->o->deadline_ns) && !(is_answered && !ipc_link_has_queued(link))) {
		struct pollfd p[] = {
			{ .fd = link->fd, .events = (short)(POLLIN | (ipc_link_has_queued(link) ? POLLOUT : 0)) },
			{ .fd = IPC_FD_MONITOR, .events = POLLIN },
		};

		r = poll(p, ARRAY_SIZE(p), clock_left_ms(h->o->deadline_ns));
		if (r < 0 && errno != EINTR)
			return 1;
		if (r <= 0)
			continue;
		if (p[1].revents || (p[0].revents & POLLOUT && ipc_link_flush(link) < 0))
			return 0;
		if (!(p[0].revents & ~POLLOUT))
			continue;
		r = take_call(h, link);
		if (r < 0)
			return r == -EPIPE ? 0 : 1;
		is_answered |= r > 0;
	}
	return 0;
}

/* ------------------------------------------------------------------ life --------------------- */

static int give_up_rights(const struct host_worker *h)
{
	const struct worker_options *o = h->o;
	int r;

	/* Without a target nothing is read, and the user who asked will do. */
	if (h->error == 0)
		r = privileges_become(h->facts.uids[0], h->facts.gids[0]);
	else
		r = privileges_become(privileges_may_become() ? o->peer_uid : getuid(), o->peer_gid);
	return r < 0 ? r : sandbox_host();
}

static void cleanup(struct host_worker *h)
{
	if (h->reading) {
		reading_deinit(h->reading);
		free(h->reading);
	}
	stops_close(&h->stops);
	tasks_close(&h->tasks);
	memory_close(&h->memory);
	if (h->maps_fd >= 0)
		close(h->maps_fd);
	if (h->environment_fd >= 0)
		close(h->environment_fd);
	if (h->root_fd >= 0)
		close(h->root_fd);
}

int host_run(const struct worker_options *o)
{
	struct host_worker h = { .o = o, .memory = MEMORY_NULL, .tasks = { .fd = -1 }, .stops = { .sock = -1 },
				 .maps_fd = -1, .environment_fd = -1, .root_fd = -1 };
	struct ipc_link link;
	sigset_t none;
	int r, status = 1;

	/* The monitor blocked SIGTERM, which may end this worker: there is nothing to undo. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ipc_link_init(&link, IPC_FD_FRONT);
	h.error = prepare(&h, &h.err);
	r = give_up_rights(&h);
	if (r < 0)
		log_error("cannot give up rights: %s", strerror(-r));
	else
		status = serve(&h, &link);
	/* The end of the process is the end of the thread, too. */
	if (h.hangs)
		_exit(status);
	cleanup(&h);
	ipc_link_deinit(&link);
	return status;
}
