/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/rpc/start.h"

#include <errno.h>
#include <unistd.h>

#include "agentd/frontend/net/monitor_link.h"
#include "base/clock.h"

/* Beyond the method's own time: starting the worker, and the way back. */
#define START_GRACE_MS 1500

uint32_t start_wait(struct starts *s, struct request *r)
{
	r->start_id = ++s->last_id;
	request_own(r, &s->starting);
	return r->start_id;
}

struct request *start_find(struct starts *s, uint32_t id)
{
	struct request *r;

	LIST_FOREACH(r, &s->starting, in_owner)
		if (r->start_id == id)
			return r;
	return NULL;
}

static void start_expired(int fd, short what, void *user)
{
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, "start worker", "try again",
		      "the agent could not start a worker in time");
	agent_err_set_resumed(&err, true);
	request_fail(user, &err);
}

static void ask(struct starts *s, struct request *r)
{
	const int fds[] = { r->conn->peer_fd, r->early_fd };
	const struct ipc_start m = { .type = IPC_START,
				     .request = start_wait(s, r),
				     .client = r->conn->id,
				     .kind = r->start_kind,
				     .pid = r->pid,
				     .timeout_ms = r->start_ms,
				     .judge = r->start_judge,
				     .stops = r->start_stops };

	s->n_asked++;
	/* Only an adapter gets the client's socket. */
	monitor_link_send(s->monitor, &m, sizeof(m), fds, r->early_fd >= 0 ? 2 : 0);
}

static void ask_waiting(struct starts *s)
{
	while (s->n_asked < IPC_STARTS_MAX && !LIST_EMPTY(&s->waiting)) {
		struct request *r = LIST_FIRST(&s->waiting), *next;
		struct agent_err nobody_hears = { 0 };

		/* The oldest is the last. */
		while ((next = LIST_NEXT(r, in_owner)))
			r = next;
		if (r->conn)
			ask(s, r);
		else
			request_fail(r, &nobody_hears);
	}
}

void start_ask(struct starts *s, struct request *r, enum ipc_kind kind, uint32_t timeout_ms,
	       const struct start_ops *ops)
{
	r->start_ops = ops;
	r->start_kind = kind;
	r->start_ms = timeout_ms;
	r->start_end_ns = clock_deadline_ms(timeout_ms);
	request_own(r, &s->waiting);
	request_deadline(r, timeout_ms + START_GRACE_MS, start_expired);
	ask_waiting(s);
}

void start_judge(struct starts *s, struct request *r, uint32_t timeout_ms, const struct start_ops *ops)
{
	r->start_judge = true;
	request_wait(r);
	start_ask(s, r, IPC_KIND_SESSION, timeout_ms, ops);
}

void start_ask_again(struct starts *s, struct request *r)
{
	int left = clock_left_ms(r->start_end_ns);

	start_ask(s, r, r->start_kind, left > 0 ? (uint32_t)left : 1, r->start_ops);
}

int start_refusal(const struct ipc_started *m, uint32_t pid, struct agent_err *err)
{
	static const struct {
		int32_t code;
		const char *message, *hint;
	} verdicts[IPC_VERDICT_COUNT] = {
		[IPC_VERDICT_NO_PROCESS] = { RPC_ERROR_NO_SUCH_PROCESS, "there is no process %u",
					     "check the number: a thread id, a pid of another pid namespace and a process whose main thread has ended do not count" },
		[IPC_VERDICT_KERNEL_THREAD] = { RPC_ERROR_NOT_DEBUGGABLE,
						"process %u is a kernel thread", "choose a user process" },
		[IPC_VERDICT_OTHER_USER] = { RPC_ERROR_NOT_PERMITTED,
					     "process %u belongs to another user",
					     "run as its owner or root, or become a member of the agent's admin group" },
		[IPC_VERDICT_NOT_DUMPABLE] = { RPC_ERROR_NOT_PERMITTED,
					       "process %u does not let itself be debugged (not dumpable)",
					       "run as root, or let the program call prctl(PR_SET_DUMPABLE, 1)" },
		[IPC_VERDICT_USER_NAMESPACE] = { RPC_ERROR_NOT_PERMITTED,
						 "process %u lives in a user namespace that is not yours",
						 "ask as root of the host" },
		[IPC_VERDICT_PID_NAMESPACE] = { RPC_ERROR_NOT_PERMITTED,
						"process %u is none that you can see: it lives outside your pid namespace",
						"ask as its owner outside, or as root of the host" },
		[IPC_VERDICT_CAPABILITIES] = { RPC_ERROR_NOT_PERMITTED,
					       "process %u has capabilities that you have not",
					       "ask as root, or become a member of the agent's admin group" },
		[IPC_VERDICT_OTHER_GROUP] = { RPC_ERROR_NOT_PERMITTED,
					      "process %u runs with other group ids than you",
					      "connect with its group (newgrp), or ask as root" },
		[IPC_VERDICT_KERNEL] = { RPC_ERROR_NOT_PERMITTED,
					 "the kernel does not let you look into process %u",
					 "ask as root; the policy of a security module may say more" },
		[IPC_VERDICT_UNKNOWN_PEER] = { RPC_ERROR_NOT_PERMITTED,
					       "who asks about process %u is not known: whoever connected has ended, or is not visible from here",
					       "connect from the process that asks" },
		[IPC_VERDICT_OWN_PROCESS] = { RPC_ERROR_NOT_PERMITTED,
					      "process %u is part of the agent", "choose another process" },
		[IPC_VERDICT_LIMIT] = { RPC_ERROR_LIMIT, "too many sessions are open (process %u)",
					"detach from another process, or raise [limits] in agentd.conf" },
		[IPC_VERDICT_RESCUE] = { RPC_ERROR_BUSY,
					 "the agent is still undoing what an earlier session did to process %u",
					 "try again in a second; if it stays so, the driver hangs: see the agent's log, or end the process" },
		[IPC_VERDICT_LOOK_ONLY] = { RPC_ERROR_NOT_PERMITTED,
					    "you may look at process %u, and not stop its threads",
					    "ask without stops; its owner, root and the agent's admin group may stop them" },
		[IPC_VERDICT_FAILED] = { RPC_ERROR_FAILED, "cannot start a worker for process %u",
					 "see the agent's log" },
	};

	if (m->verdict == IPC_VERDICT_OK)
		return 0;
	if (m->verdict >= IPC_VERDICT_COUNT || !verdicts[m->verdict].code)
		return agent_err_set(err, RPC_ERROR_INTERNAL, 0, NULL, NULL, "unknown verdict %u",
				     m->verdict);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return agent_err_set(err, verdicts[m->verdict].code, -m->status, "authorise",
			     verdicts[m->verdict].hint, verdicts[m->verdict].message, pid);
#pragma GCC diagnostic pop
}

int start_refuse_replaced(const char *op, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_FAILED, ESTALE, op,
			     "an administrator restarts it: systemctl restart gpu-agentd",
			     "the agent was upgraded while it ran, and starts nothing before it is restarted");
}

static int why_not(const struct ipc_started *m, const struct request *r, struct agent_err *err)
{
	if (m->verdict == IPC_VERDICT_FAILED && m->status == -ESTALE)
		return start_refuse_replaced("start worker", err);
	return r->start_ops->refused ? r->start_ops->refused(m, err) : start_refusal(m, r->pid, err);
}

static void take_answer(struct starts *s, const struct ipc_started *m, int take_channel)
{
	struct request *r = start_find(s, m->request);
	struct agent_err err = { 0 };
	int e;

	if (r && r->start_judge) {
		r->start_judge = false;
		request_own(r, NULL);
		r->start_ops->judged(r, m);
		return;
	}
	e = r ? why_not(m, r, &err) : -ETIMEDOUT;

	if (e == 0 && !m->joined && take_channel < 0)
		e = agent_err_set(&err, RPC_ERROR_LIMIT, EMFILE, "start worker",
				  "close connections you no longer need",
				  "the agent has no descriptor left");
	/* Refused after all, or answered with a timeout already: the worker is sent away. */
	if (e < 0 && m->worker && !m->joined)
		s->unwanted(s->owner, m, take_channel);
	else if (e < 0 && take_channel >= 0)
		close(take_channel);
	if (e < 0 && r)
		request_fail(r, &err);
	if (e == 0)
		r->start_ops->started(r, m, take_channel);
}

void start_answered(struct starts *s, const struct ipc_started *m, int take_channel)
{
	s->n_asked--;
	take_answer(s, m, take_channel);
	ask_waiting(s);
}

static void drop_all(struct request_list *list)
{
	struct agent_err nobody_hears = { 0 };

	while (!LIST_EMPTY(list))
		request_fail(LIST_FIRST(list), &nobody_hears);
}

void start_deinit(struct starts *s)
{
	drop_all(&s->starting);
	drop_all(&s->waiting);
}
