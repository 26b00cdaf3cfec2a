/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentctl detach: make sure that no session is open on a process.
 *
 * A session belongs to the connections that hold it, and no client can throw out another; only a
 * watch rule lets go when it is asked.  So this verb joins, leaves, and says whether the session is
 * over or who keeps it.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ctl/ctl.h"

/* Find a session by its id or by its process; no process has the id 0. */
static const struct rpc_session_info *find(const struct rpc_session_list_result *list,
					   const char *what)
{
	uint64_t pid = 0;

	if (str_to_u64(what, 1, UINT32_MAX, &pid) < 0)
		pid = 0;
	for (size_t i = 0; i < list->n_sessions; i++)
		if (!strcmp(list->sessions[i].session, what) || list->sessions[i].pid == pid)
			return &list->sessions[i];
	return NULL;
}

/* Say who keeps the session. */
static int still_held(struct ctl *c, const struct rpc_session_info *s)
{
	char writer[96] = "";

	if (s->has_writer_pid)
		snprintf(writer, sizeof(writer), ", the writer lease by process %u", s->writer_pid);
	return agent_err_set(
		&c->err, RPC_ERROR_BUSY, 0, "detach",
		"a session ends when its last client detaches or closes its connection: "
		"end those clients, for example with Ctrl-C",
		"session %s of process %u is still held by %u other client%s%s", s->session, s->pid,
		s->readers, s->readers == 1 ? "" : "s", writer);
}

/* Leave the session, and ask a rule that watches the process to do so too. */
static int leave(struct ctl *c, const struct rpc_session_info *s)
{
	struct rpc_session_detach_params p = { .session = c->session.session,
					       .has_release = s->rule != NULL,
					       .release = true };
	struct rpc_session_detach_result result;
	int r = ctl_called(c,
			   rpc_client_session_detach(c->client, &p, &c->arena, &result, &c->err));

	if (r < 0)
		return r;
	c->attached = false;
	if (!result.ended)
		return still_held(c, s);
	if (s->rule)
		ctl_note(c, "process %u is released; rule %.32s comes back to it when gpu-agentd reloads",
			 s->pid, s->rule);
	else
		ctl_note(c, "process %u is released", s->pid);
	return ctl_is_json(c) ? ctl_print_result(c) : 0;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_session_list_result list;
	const struct rpc_session_info *s;
	char pid[16];
	int r = ctl_connect(c);

	if (r == 0)
		r = ctl_called(c,
			       rpc_client_session_list(c->client, NULL, &c->arena, &list, &c->err));
	if (r < 0)
		return r;
	s = find(&list, argv[0]);
	if (!s)
		return agent_err_set(&c->err, RPC_ERROR_NO_SUCH_SESSION, 0, "detach",
				     "`gpu-agentctl status` lists the sessions you may see",
				     "no open session or attached process \"%.40s\"", argv[0]);
	snprintf(pid, sizeof(pid), "%u", s->pid);
	r = ctl_attach(c, pid, false);
	return r < 0 ? r : leave(c, s);
}

const struct ctl_verb ctl_verb_detach = {
	.name = "detach",
	.args = "PID|SESSION",
	.summary = "End a session that no other client holds, or say who does; watch rules let go",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
