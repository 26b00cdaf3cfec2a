/* SPDX-License-Identifier: MIT */
#include "agentd/worker/inspect/inspect.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/frontend_worker.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/worker/process/network.h"
#include "agentd/worker/target/relay.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"

/* The worker and what it has learned. */
struct inspect {
	const struct worker_options *o;
	struct seen seen;
};

static int do_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		   const struct rpc_process_list_params *params,
		   struct rpc_process_list_result *ret, struct agent_err *err)
{
	struct inspect *i = ctx;

	return inspect_list(i->o, &i->seen, arena, params, ret, err);
}

static int do_doctor(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_process_doctor_params *params,
		     struct rpc_process_doctor_result *ret, struct agent_err *err)
{
	const struct inspect *i = ctx;

	return inspect_doctor(i->o, arena, (pid_t)params->pid, ret, err);
}

static const struct rpc_inspect_handlers handlers = {
	.process_list = do_list,
	.process_doctor = do_doctor,
};

/* Leave the next look what this one has learned. */
static int send_looked(const struct seen *seen, struct ipc_link *link)
{
	const struct ipc_head head = { .type = IPC_LOOKED, .size = seen->n * sizeof(*seen->list) };

	return seen->n ? ipc_link_send(link, &head, (const char *)seen->list) : 0;
}

static int serve(struct inspect *i, struct ipc_link *link, const struct ipc_message *m)
{
	struct ipc_head head = { .type = IPC_REPLY, .number = m->head.number, .id = m->head.id };
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out text;
	struct agent_err err = { 0 };

	rpc_arena_init(&arena, 0);
	out_init(&text, 0);
	if (rpc_inspect_dispatch(&handlers, i, NULL, &arena,
				 (enum rpc_method)m->head.number, m->text, (size_t)m->head.size,
				 &text, &err) < 0 ||
	    out_error(&text)) {
		head.type = IPC_ERROR;
		out_reset(&text);
		agent_err_encode(&text, &err);
	}
	if (send_looked(&i->seen, link) < 0)
		return -EIO;
	head.size = text.size;
	return out_error(&text) ? out_error(&text) : ipc_link_send(link, &head, text.data);
}

static int learn(struct inspect *i, const struct ipc_message *m)
{
	seen_learn(&i->seen, m->text, (size_t)m->head.size);
	return 0;
}

/* Serve until the frontend closes the channel, the monitor dies, or the time is up.  @return exit status. */
static int loop(struct inspect *i, struct ipc_link *link)
{
	const struct worker_options *o = i->o;

	while (clock_left_ms(o->deadline_ns)) {
		struct pollfd p[] = {
			{ .fd = link->fd,
			  .events = (short)(POLLIN | (ipc_link_has_queued(link) ? POLLOUT : 0)) },
			{ .fd = IPC_FD_MONITOR, .events = POLLIN },
		};
		struct ipc_message m;
		int r = poll(p, 2, clock_left_ms(o->deadline_ns));

		if (r < 0 && errno != EINTR)
			return 1;
		if (r <= 0)
			continue;
		if (p[1].revents)
			return 0;
		if (p[0].revents & POLLOUT && ipc_link_flush(link) < 0)
			return 0;
		if (!(p[0].revents & ~POLLOUT))
			continue;
		r = ipc_link_recv(link, &m);
		if (r == -EAGAIN)
			continue;
		if (r != 1)
			return r == 0 ? 0 : 1;
		r = -EPROTO;
		if (m.head.type == IPC_CALL)
			r = serve(i, link, &m);
		else if (m.head.type == IPC_LOOKED)
			r = learn(i, &m);
		ipc_message_deinit(&m);
		if (r < 0)
			return 1;
	}
	return 0;
}

int inspect_run(const struct worker_options *o)
{
	struct inspect i = { .o = o };
	struct ipc_link link;
	sigset_t none;
	int r, status = 1;

	/* The monitor blocked SIGTERM, which may end this worker: there is nothing to undo. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ipc_link_init(&link, IPC_FD_FRONT);
	network_look();
	seen_init(&i.seen, o->peer_uid);
	/* If root asks a daemon that serves one user, it gets the answers of that user. */
	if (o->peer_uid == 0 && getuid() != 0)
		r = privileges_become(getuid(), getgid());
	else if (o->peer_admin || o->peer_observer)
		/* A client that may attach to every process may also see what each has mapped. */
		r = privileges_become_tracer(o->peer_uid, o->peer_gid);
	else
		r = privileges_become(o->peer_uid, o->peer_gid);
	if (r == 0)
		r = sandbox_look();
	if (r < 0)
		log_error("cannot give up rights: %s", strerror(-r));
	else
		status = loop(&i, &link);
	seen_deinit(&i.seen);
	ipc_link_deinit(&link);
	/* A thread that waits for a locked memory ends with the process, but nothing may wait for it. */
	if (relay_is_stuck())
		_exit(status);
	return status;
}
