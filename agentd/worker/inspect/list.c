/* SPDX-License-Identifier: MIT */
/* process.list: the processes that use a GPU, and whether the client may debug them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/child.h"
#include "agentd/worker/inspect/command_line.h"
#include "agentd/worker/inspect/inspect.h"
#include "agentd/worker/process/facts.h"
#include "agentd/worker/process/rank.h"
#include "agentd/worker/process/yama.h"
#include "agentd/worker/target/relay.h"
#include "base/cleanup.h"

/* What processes may write into a list, of which the largest that can be sent has room. */
#define TEXTS_MAX ((size_t)4 << 20)
/* What /proc/PID/comm has of `gpu-agent-worker`: TASK_COMM_LEN bytes with the NUL. */
#define WORKER_COMM "gpu-agent-worke"

/* A process that a back end has found. */
struct found {
	struct target_user user;
	struct access_target facts;
	enum rpc_vendor vendor;
	bool may_look;		 /* So may the client, and this worker, which cannot open others' files. */
	bool is_lost, is_asked;	 /* What must be read in its memory was not. */
	struct rpc_process *row; /* NULL: it is not in the list. */
};

/* A process with a session of this agent is debuggable: a further client joins that session. */
static void judge(const struct worker_options *o, struct rpc_arena *a, struct found *f, struct rpc_process *p)
{
	const char *tracer = inspect_tracer(a, &f->facts, &p->session);
	int scope = yama_ptrace_scope();

	p->reason = inspect_refusal(o, &f->facts, NULL);
	f->may_look = !p->reason && f->facts.uids[0] == o->peer_uid;
	if (!p->reason && tracer && !p->session)
		p->reason = tracer;
	if (!p->reason && !yama_allows(o, scope))
		p->reason = rpc_arena_printf(a, "kernel.yama.ptrace_scope is %d", scope);
	p->debuggable = !p->reason;
}

static void fill(const struct worker_options *o, struct rpc_arena *a, struct found *f, struct rpc_process *p)
{
	f->row = p;
	process_facts_fill(a, &f->facts, p);
	p->has_start_ticks = process_facts_start(f->user.pid, &p->start_ticks) == 0;
	p->vendor = f->vendor;
	p->gpu_ids = f->user.gpu_ids;
	p->n_gpu_ids = f->user.n_gpu_ids;
	p->queues = f->user.n_queues;
	judge(o, a, f, p);
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

		*f = (struct found){ .user = users[i], .vendor = ops->vendor };
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

/* ------------------------------------------------------------------ what memory tells -------- */

/* The rows of a list, those of the client's own user first. */
struct telling {
	struct rpc_arena *a;
	struct found **rows;
	size_t n;
	size_t left;	   /* Bytes of TEXTS_MAX. */
	uint32_t n_silent; /* Processes for whose texts they are too few. */
};

static void put_rank(struct rpc_arena *a, const struct rank *r, struct rpc_process *p)
{
	p->has_rank = r->from != NULL;
	if (!r->from)
		return;
	p->rank = (struct rpc_process_rank){ .rank = r->rank,
					     .from = r->from,
					     .has_local_rank = r->has_local,
					     .local_rank = r->local_rank,
					     .has_world_size = r->has_world,
					     .world_size = r->world_size,
					     .job = r->job[0] ? rpc_arena_strdup(a, r->job) : NULL };
}

/*
 * Linux shows everybody the arguments of a process, but the environment only to whom it shows the memory.  The agent
 * may refuse a client what the kernel would show this worker, so it has to agree as well.
 */
static void tell(void *ctx, struct relay_turn *turn, size_t i)
{
	struct telling *t = ctx;
	struct found *f = t->rows[i];
	const bool may_look = f->may_look;
	const pid_t pid = f->user.pid;
	auto_close int fd = -1;
	struct command_line line;
	struct rank rank = { 0 };
	uint64_t start;
	size_t size;
	int r;

	relay_leave(turn);
	r = command_line_read(pid, &line);
	fd = may_look ? rank_open(pid) : -1;
	if (fd >= 0 && rank_read(fd, &rank) < 0)
		rank.from = NULL;
	if (!relay_enter(turn))
		return;
	/* Its number may be another one's by now. */
	if (!f->row->has_start_ticks || process_facts_start(pid, &start) < 0 || start != f->row->start_ticks)
		return;
	size = (r == 0 ? strlen(line.text) : 0) + (rank.from ? strlen(rank.job) : 0);
	if (size > t->left) {
		t->n_silent++;
		return;
	}
	t->left -= size;
	if (r == 0 && line.text[0]) {
		f->row->command_line = rpc_arena_strdup(t->a, line.text);
		f->row->command_line_cut = f->row->has_command_line_cut = line.is_cut;
	}
	put_rank(t->a, &rank, f->row);
}

static void tell_nothing(void *ctx, size_t i, bool asked)
{
	const struct telling *t = ctx;

	t->rows[i]->is_lost = true;
	t->rows[i]->is_asked = asked;
}

/*
 * In a namespace of its own the client would not see these processes, nor their arguments.
 * @return processes whose texts are left out because there are too many.
 */
static uint32_t tell_of_memory(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
			       struct found *list, size_t n)
{
	struct telling t = { .a = a, .rows = rpc_arena_array(a, n, sizeof(*t.rows)), .left = TEXTS_MAX };
	const struct relay_work work = { &t, tell, tell_nothing };

	if (!t.rows || !o->peer_near)
		return 0;
	for (int others = 0; others < 2; others++)
		for (size_t i = 0; i < n; i++)
			if (list[i].row && (list[i].facts.uids[0] != o->peer_uid) == others)
				t.rows[t.n++] = &list[i];
	relay_run(&seen->budget, &work, t.n);
	return t.n_silent;
}

/* ------------------------------------------------------------------ what is missing ---------- */

static const struct found *find(const struct found *list, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].user.pid == pid)
			return &list[i];
	return NULL;
}

static void add_missing(struct rpc_process_list_result *ret, const char *text)
{
	if (text)
		ret->missing[ret->n_missing++] = text;
}

static const char *why_unasked(const struct seen *seen)
{
	return seen->budget.no_thread ? "no thread could be started" : "others did not answer";
}

/* Processes whose memory could not be read in time.  Those that are in the list say more themselves. */
static void tell_lost(const struct seen *seen, struct rpc_arena *a, const struct found *list, size_t n,
		      const struct worker_options *o, const struct rpc_process_list_params *params,
		      struct rpc_process_list_result *ret)
{
	struct access_target facts;

	for (uint32_t i = 0; i < seen->n_lost; i++) {
		const pid_t pid = seen->lost[i].pid;

		if (!find(list, n, pid) && access_target_read(pid, &facts) == 0 && is_wanted(o, params, &facts))
			add_missing(ret, rpc_arena_printf(a, "process %d: what it has mapped was not told in time; it may use a GPU",
							  (int)pid));
	}
	if (seen->n_unasked)
		add_missing(ret, rpc_arena_printf(a, "processes: %u were not looked at, because %s, and may use a GPU",
						  seen->n_unasked, why_unasked(seen)));
	for (size_t i = 0; i < n; i++)
		if (list[i].is_lost)
			add_missing(ret, rpc_arena_printf(a, "process %d: its command line and rank were not %s%s", (int)list[i].user.pid,
							  list[i].is_asked ? "told in time; its memory may be locked" :
									     "asked for, because ",
							  list[i].is_asked ? "" : why_unasked(seen)));
}

/* Say what the list lacks: of processes that are read in part only, and of those that are in it. */
static void tell_missing(const struct seen *seen, struct rpc_arena *a, const struct found *list, size_t n,
			 uint32_t n_silent, const struct worker_options *o,
			 const struct rpc_process_list_params *params, struct rpc_process_list_result *ret)
{
	ret->missing = rpc_arena_array(a, 2 * n + RELAY_STUCK_MAX + 3, sizeof(*ret->missing));
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
	tell_lost(seen, a, list, n, o, params, ret);
	if (n_silent)
		add_missing(ret, rpc_arena_printf(a, "processes: the command lines and ranks of %u are left out, because there are too many",
						  n_silent));
	ret->has_complete = ret->has_missing = ret->n_missing > 0;
}

int inspect_list(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
		 const struct rpc_process_list_params *params, struct rpc_process_list_result *ret,
		 struct agent_err *err)
{
	struct agent_err first = { 0 };
	struct found *list = NULL;
	bool any = false;
	uint32_t n_silent;
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
	n_silent = tell_of_memory(o, seen, a, list, n);
	tell_missing(seen, a, list, n, n_silent, o, params, ret);
	if (rpc_arena_error(a))
		return agent_err_no_memory(err, NULL);
	qsort(ret->processes, ret->n_processes, sizeof(*ret->processes), by_pid);
	return 0;
}
