/* SPDX-License-Identifier: MIT */
/* process.list: the processes that use a GPU, and whether the client may debug them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/child.h"
#include "agentd/worker/inspect/inspect.h"
#include "agentd/worker/process/facts.h"
#include "agentd/worker/process/yama.h"
#include "base/cleanup.h"

/* What /proc/PID/comm has of `gpu-agent-worker`: TASK_COMM_LEN bytes with the NUL. */
#define WORKER_COMM "gpu-agent-worke"

/* A process that a back end has found. */
struct found {
	struct target_user user;
	struct access_target facts;
	enum rpc_vendor vendor;
};

/* A process with a session of this agent is debuggable: a further client joins that session. */
static void judge(const struct worker_options *o, struct rpc_arena *a,
		  const struct access_target *facts, struct rpc_process *p)
{
	const char *tracer = inspect_tracer(a, facts, &p->session);
	int scope = yama_ptrace_scope();

	p->reason = inspect_refusal(o, facts, NULL);
	if (!p->reason && tracer && !p->session)
		p->reason = tracer;
	if (!p->reason && !yama_allows(o, scope))
		p->reason = rpc_arena_printf(a, "kernel.yama.ptrace_scope is %d", scope);
	p->debuggable = !p->reason;
}

static void fill(const struct worker_options *o, struct rpc_arena *a, const struct found *f,
		 struct rpc_process *p)
{
	process_facts_fill(a, &f->facts, p);
	p->vendor = f->vendor;
	p->gpu_ids = f->user.gpu_ids;
	p->n_gpu_ids = f->user.n_gpu_ids;
	p->queues = f->user.n_queues;
	judge(o, a, &f->facts, p);
}

static int add_users(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
		     const struct target_ops *ops, struct found **list, size_t *n,
		     struct agent_err *err)
{
	struct target_user *users;
	struct found *grown;
	size_t n_users;
	int r = ops->users(o, seen, a, &users, &n_users, err);

	if (r < 0)
		return r;
	grown = rpc_arena_array(a, *n + n_users, sizeof(*grown));
	if (!grown)
		return agent_err_no_memory(err, NULL);
	for (size_t i = 0; i < *n; i++)
		grown[i] = (*list)[i];
	for (size_t i = 0; i < n_users; i++) {
		struct found *f = &grown[*n];

		f->user = users[i];
		f->vendor = ops->vendor;
		/* It may be gone, or be in a pid namespace that the agent does not see. */
		if (access_target_read(users[i].pid, &f->facts) == 0)
			(*n)++;
	}
	*list = grown;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct rpc_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/*
 * Workers hold the devices of their targets.  Whose file the client may not see, it may not debug either: there the
 * name will do, which anybody can give himself.
 */
static bool is_worker(const struct access_target *facts)
{
	auto_free char *exe = process_facts_exe(facts->pid);

	return exe ? child_is_worker(exe) : !strcmp(facts->comm, WORKER_COMM);
}

static bool is_wanted(const struct worker_options *o, const struct rpc_process_list_params *params,
		      const struct access_target *facts)
{
	if (params->mine && facts->uids[0] != o->peer_uid)
		return false;
	return !is_worker(facts);
}

/* Say what the list lacks: of processes that are read in part only, and of those that are in it. */
static void tell_missing(const struct seen *seen, struct rpc_arena *a, const struct found *list, size_t n,
			 const struct worker_options *o, const struct rpc_process_list_params *params,
			 struct rpc_process_list_result *ret)
{
	ret->missing = rpc_arena_array(a, n + 1, sizeof(*ret->missing));
	if (!ret->missing)
		return;
	/* Strangers choose how much they map. */
	if (seen->n_cut)
		ret->missing[ret->n_missing++] = rpc_arena_printf(
			a, "processes: %u of other users have mapped so much that it was not read to the end, and may use a GPU",
			seen->n_cut);
	for (size_t i = 0; i < n; i++)
		if (list[i].user.hidden && is_wanted(o, params, &list[i].facts))
			ret->missing[ret->n_missing++] = rpc_arena_printf(
				a, "process %d: %s", (int)list[i].user.pid, list[i].user.hidden);
	ret->has_complete = ret->has_missing = ret->n_missing > 0;
}

int inspect_list(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
		 const struct rpc_process_list_params *params, struct rpc_process_list_result *ret,
		 struct agent_err *err)
{
	struct agent_err first = { 0 };
	struct found *list = NULL;
	bool any = false;
	size_t n = 0;

	for (size_t i = 0; target_list[i]; i++) {
		struct agent_err e = { 0 };

		if (!target_list[i]->users)
			continue;
		if (add_users(o, seen, a, target_list[i], &list, &n, &e) == 0)
			any = true;
		else if (!first.code)
			first = e;
	}
	if (!any) {
		*err = first;
		return -ENODEV;
	}
	ret->processes = rpc_arena_array(a, n, sizeof(*ret->processes));
	for (size_t i = 0; ret->processes && i < n; i++)
		if (is_wanted(o, params, &list[i].facts))
			fill(o, a, &list[i], &ret->processes[ret->n_processes++]);
	tell_missing(seen, a, list, n, o, params, ret);
	if (rpc_arena_error(a))
		return agent_err_no_memory(err, NULL);
	qsort(ret->processes, ret->n_processes, sizeof(*ret->processes), by_pid);
	return 0;
}
