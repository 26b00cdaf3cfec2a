/* SPDX-License-Identifier: MIT */
/* process.doctor: what keeps a process from being debugged, and what to do about it. */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "agentd/worker/inspect/command_line.h"
#include "agentd/worker/inspect/inspect.h"
#include "agentd/worker/process/yama.h"
#include "agentd/worker/target/relay.h"
#include "base/elf_view.h"
#include "base/page.h"
#include "corefile/processor.h"

#define CHECKS_MAX 160

/* The checks made so far. */
struct sheet {
	struct rpc_arena *arena;
	struct rpc_check *checks;
	size_t n;
};

static void put(struct sheet *s, const char *name, enum rpc_verdict verdict, const char *detail,
		const char *fix)
{
	if (s->n < CHECKS_MAX && detail)
		s->checks[s->n++] = (struct rpc_check){
			.name = name, .verdict = verdict, .detail = detail, .fix = fix
		};
}

static void check_process(struct sheet *s, const struct access_target *t)
{
	bool dead = t->state == 'Z' || t->state == 'X';

	if (t->kernel_thread || dead)
		put(s, "process", RPC_VERDICT_FAIL,
		    t->kernel_thread ? "it is a kernel thread" : "it has ended and waits for its parent",
		    "choose another process: gpu-agentctl list");
	else
		put(s, "process", RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "%s, uid %u, state %c", t->comm, t->uids[0],
				     t->state),
		    NULL);
}

static void check_rights(struct sheet *s, const struct worker_options *o,
			 const struct access_target *t)
{
	const char *fix, *refusal = inspect_refusal(o, t, &fix);

	if (refusal)
		put(s, "rights", RPC_VERDICT_FAIL, refusal, fix);
	else
		put(s, "rights", RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "uid %u may attach%s", o->peer_uid,
				     o->peer_admin ? " (administrator)" : ""), NULL);
}

static void check_tracer(struct sheet *s, const struct access_target *t)
{
	const char *session, *tracer = inspect_tracer(s->arena, t, &session);

	if (session)
		put(s, "tracer", RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "session %s is open on it: attaching joins",
				     session),
		    NULL);
	else if (!tracer)
		put(s, "tracer", RPC_VERDICT_PASS, "nobody traces it", NULL);
	else
		put(s, "tracer", RPC_VERDICT_FAIL, tracer, "let that debugger detach first");
}

/* Whether a process answers to one who reads its memory. */
struct answer {
	pid_t pid;
	bool is_lost, is_asked;
};

static void read_arguments(void *ctx, struct relay_turn *turn, size_t i)
{
	const struct answer *answer = ctx;
	const pid_t pid = answer->pid;
	struct command_line line;

	(void)i;
	relay_leave(turn);
	command_line_read(pid, &line);
	relay_enter(turn);
}

static void give_up(void *ctx, size_t i, bool asked)
{
	struct answer *answer = ctx;

	(void)i;
	answer->is_lost = true;
	answer->is_asked = asked;
}

/*
 * A call that hangs in a driver or a file system may keep the memory locked for good (relay.h), and then whoever looks
 * at it hangs as well.  Nothing is said of memory that answers.
 * @return whether it does.
 */
static bool check_memory(struct sheet *s, pid_t pid)
{
	struct answer answer = { .pid = pid };
	const struct relay_work work = { &answer, read_arguments, give_up };
	struct relay_budget budget = { 0 };

	relay_run(&budget, &work, 1);
	if (answer.is_lost && answer.is_asked)
		put(s, "memory", RPC_VERDICT_FAIL,
		    "its memory is locked, as by a call that hangs in a driver or a file system: nothing else was looked at",
		    rpc_arena_printf(s->arena, "see where its threads in state D hang: ps -L -o tid,state,wchan:32 %d", (int)pid));
	else if (answer.is_lost)
		put(s, "memory", RPC_VERDICT_UNKNOWN, "no thread could be started to look at it: nothing else was looked at", NULL);
	return !answer.is_lost;
}

/* Nothing is said of the machines on which all was tested. */
static void check_machine(struct sheet *s)
{
	const struct corefile_processor *p = corefile_processor_find(elf_own_machine());
	struct utsname u;

	if (uname(&u) < 0 || (p && !p->tested))
		return;
	put(s, "machine", p ? RPC_VERDICT_PASS : RPC_VERDICT_UNKNOWN,
	    rpc_arena_printf(s->arena, "%s, pages of %u KiB: %s", u.machine, (unsigned)(page_bytes() >> 10),
			     p ? p->tested : "never tried; no native frames, no threads in cores"), NULL);
}

static void check_scope(struct sheet *s, const struct worker_options *o)
{
	int scope = yama_ptrace_scope();

	if (scope < 0)
		put(s, "ptrace_scope", RPC_VERDICT_UNKNOWN,
		    "kernel.yama.ptrace_scope is not readable", NULL);
	else if (yama_allows(o, scope))
		put(s, "ptrace_scope", RPC_VERDICT_PASS,
		    rpc_arena_printf(s->arena, "kernel.yama.ptrace_scope is %d%s", scope,
				     scope ? "; the agent has CAP_SYS_PTRACE" : ""), NULL);
	else
		put(s, "ptrace_scope", RPC_VERDICT_FAIL,
		    rpc_arena_printf(s->arena, "kernel.yama.ptrace_scope is %d", scope),
		    scope >= 3 ? "restart the machine with a lower value; it cannot be lowered" :
				 "run gpu-agentd as a system service, or set it to 0");
}

/*
 * Add the checks of the vendor whose devices the process uses; if it uses none, those of the vendors that the
 * machine has devices of.
 */
static void check_vendors(struct sheet *s, const struct worker_options *o,
			  const struct access_target *t)
{
	size_t others = s->n;
	bool mine = false;

	for (size_t i = 0; target_list[i]; i++) {
		size_t n = 0;
		int r = target_list[i]->checks(o, t, s->arena, s->checks + s->n, CHECKS_MAX - s->n,
					       &n);

		if (r == TARGET_NOT_MINE && (mine || !target_vendor_matters(o, target_list[i])))
			continue;
		/* This vendor knows the process, so the checks of the other vendors are dropped. */
		if (r == 0 && !mine) {
			memmove(s->checks + others, s->checks + s->n, n * sizeof(*s->checks));
			s->n = others;
			mine = true;
		}
		s->n += n;
	}
}

int inspect_doctor(const struct worker_options *o, struct rpc_arena *a, pid_t pid,
		   struct rpc_process_doctor_result *ret, struct agent_err *err)
{
	struct sheet s = { .arena = a };
	struct access_target t;
	int r = access_target_read(pid, &t);

	if (r == -ESRCH)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, NULL,
				     "gpu-agentctl list shows the processes that use a GPU",
				     "there is no process %d", (int)pid);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "read /proc", NULL,
				     "cannot read the facts about process %d", (int)pid);
	s.checks = rpc_arena_array(a, CHECKS_MAX, sizeof(*s.checks));
	if (!s.checks)
		return agent_err_no_memory(err, NULL);
	check_process(&s, &t);
	check_rights(&s, o, &t);
	if (check_memory(&s, pid))
		check_vendors(&s, o, &t);
	check_tracer(&s, &t);
	check_scope(&s, o);
	check_machine(&s);
	put(&s, "runtime", RPC_VERDICT_UNKNOWN,
	    "only attaching tells whether the program has enabled its GPU runtime", NULL);
	ret->pid = (uint32_t)pid;
	ret->checks = s.checks;
	ret->n_checks = s.n;
	ret->ok = true;
	for (size_t i = 0; i < s.n; i++)
		ret->ok &= s.checks[i].verdict != RPC_VERDICT_FAIL;
	if (rpc_arena_error(a))
		return agent_err_no_memory(err, NULL);
	return 0;
}
