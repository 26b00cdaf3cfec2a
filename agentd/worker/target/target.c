/* SPDX-License-Identifier: MIT */
#include "agentd/worker/target/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/worker/process/code_file.h"
#include "agentd/worker/process/facts.h"
#include "agentd/worker/process/mappings.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/elf_view.h"
#include "base/fd.h"
#include "base/str.h"

#define AUXV_MAX 4096
/* Time that target_why_gone() waits for the answer, and between two questions. */
#define WHY_GONE_MS 300
#define WHY_GONE_STEP_MS 10

const struct target_ops *const target_list[] = { &target_kfd_ops, &target_cuda_ops, NULL };

void target_init(struct target *t, const struct target_ops *ops, const struct worker_options *o,
		 const struct access_target *facts)
{
	*t = (struct target){ .ops = ops,
			      .options = o,
			      .facts = *facts,
			      .memory = MEMORY_NULL,
			      .maps_fd = -1,
			      .root_fd = -1,
			      .leader_sys = &leader_real_sys,
			      .undo = UNDO_NULL,
			      .event_fd = -1 };
}

void target_deinit(struct target *t)
{
	memory_close(&t->memory);
	symbols_cache_destroy(t->code_cache);
	t->code_cache = NULL;
	if (t->maps_fd >= 0)
		close(t->maps_fd);
	t->maps_fd = -1;
	if (t->root_fd >= 0)
		close(t->root_fd);
	t->root_fd = -1;
	free(t->exe);
	undo_deinit(&t->undo);
	if (t->event_fd >= 0)
		close(t->event_fd);
	t->event_fd = -1;
}

void target_destroy(struct target *t)
{
	if (t)
		t->ops->destroy(t);
}

/* @return false as soon as the target has ended, true after @p ms or a signal to this process. */
static bool is_running(int ms)
{
	struct pollfd p = { .fd = IPC_FD_TARGET, .events = POLLIN };

	return poll(&p, 1, ms) <= 0;
}

/* Nobody told of an exec where no thread is traced; but the memory that was opened is gone with it. */
static bool has_other_memory(const struct target *t)
{
	char byte;

	return memory_read(&t->memory, 0, &byte, 1) == -ESRCH;
}

/*
 * Exit and exec both drop the address space, and with it the session, some time before the pidfd
 * or ptrace tell which of them it is.
 */
enum rpc_end_reason target_why_gone(struct target *t)
{
	uint64_t deadline = clock_deadline_ms(WHY_GONE_MS);
	struct access_target now;

	do {
		enum leader_state state = leader_poll(&t->leader, t->leader_sys);

		if (!is_running(0))
			return RPC_END_REASON_EXITED;
		/* The leader is gone, yet the process lives: another of its threads called exec. */
		if (state == LEADER_EXEC || state == LEADER_GONE)
			return RPC_END_REASON_EXEC;
	} while (is_running(WHY_GONE_STEP_MS) && clock_left_ms(deadline));
	if (!is_running(0) || access_target_read(t->facts.pid, &now) < 0)
		return RPC_END_REASON_EXITED;
	/* A process without memory is ending, even if it is not dead: that may take long. */
	if (now.kernel_thread)
		return RPC_END_REASON_EXITED;
	return has_other_memory(t) ? RPC_END_REASON_EXEC : RPC_END_REASON_LOST;
}

bool target_is_gone(void)
{
	return !is_running(0);
}

int target_end(struct target *t, enum rpc_end_reason reason, const char *op, struct agent_err *err)
{
	static const char *const texts[] = {
		[RPC_END_REASON_EXITED] = "the process has ended",
		[RPC_END_REASON_EXEC] = "the process executed another program",
		[RPC_END_REASON_LOST] =
			"the session was ended from outside, or the main thread has finished",
	};

	if (!t->ended) {
		t->ended = true;
		t->end_reason = reason;
	}
	agent_err_set(err, RPC_ERROR_SESSION_ENDED, ESRCH, op,
		      t->end_reason == RPC_END_REASON_EXITED ? NULL : "attach again", "%s",
		      texts[t->end_reason]);
	return -ESRCH;
}

/* Where the random bytes lie.  @return 0: that cannot be read. */
static uint64_t find_random(pid_t pid)
{
	char path[64];
	auto_free char *text = NULL;
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	if (fd_read_file(path, AUXV_MAX, &text, &size) < 0)
		return 0;
	return elf_auxv_find(text, size, AT_RANDOM);
}

uint64_t target_read_program(pid_t pid)
{
	uint64_t at = find_random(pid), random[2];
	auto_close int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = at ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	/* They guard the program's stack: neither half is written down. */
	return fd >= 0 && pread(fd, random, sizeof(random), (off_t)at) == sizeof(random) ? random[0] ^ random[1] : 0;
}

static int gone(const struct worker_options *o, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, "attach",
			     "gpu-agentctl list shows the processes that use a GPU",
			     "there is no process %d", (int)o->pid);
}

static int read_facts(const struct worker_options *o, struct access_target *facts, uint64_t *start,
		      struct agent_err *err)
{
	int r = access_target_read(o->pid, facts);

	if (r == 0)
		r = process_facts_start(o->pid, start);
	if (r == -ESRCH || r == -ENOENT || !is_running(0) || (r == 0 && facts->state == 'Z'))
		return gone(o, err);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "read /proc", NULL,
				     "cannot read the facts about process %d", (int)o->pid);
	return 0;
}

/* @param step  What was just done.  @return 0, or negative with @p err after the deadline. */
static int in_time(const struct worker_options *o, const char *step, struct agent_err *err)
{
	if (clock_now_ns() < o->deadline_ns)
		return 0;
	return agent_err_set(err, RPC_ERROR_TIMEOUT, ETIMEDOUT, step, "allow more time: timeout_ms",
			     "attaching to process %d took longer than %u ms", (int)o->pid,
			     o->timeout_ms);
}

/*
 * the monitor judged the client's rights by facts that may have changed before the seize, for example by
 * exec of a set-user-id program.  Once the target is seized, they cannot change unseen: exec stops
 * at PTRACE_O_TRACEEXEC and ends the session.
 */
static int recheck(struct target *t, struct agent_err *err)
{
	const struct worker_options *o = t->options;
	struct access_target now;
	bool same, owner = true;
	uint64_t start;
	int r = read_facts(o, &now, &start, err);

	if (r < 0)
		return r;
	same = start == t->start_ticks && memcmp(now.uids, t->facts.uids, sizeof(now.uids)) == 0 &&
	       memcmp(now.gids, t->facts.gids, sizeof(now.gids)) == 0 &&
	       now.dumpable == t->facts.dumpable;
	for (size_t i = 0; i < ARRAY_SIZE(now.uids); i++)
		owner &= now.uids[i] == o->peer_uid;
	/* If the process was seized as its own user, the kernel itself has permitted that user. */
	if (same && (o->peer_admin || o->peer_observer || (owner && (now.dumpable || t->is_own))))
		return 0;
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, EPERM, "attach",
			     "try again; an administrator may attach to every process",
			     "process %d changed its user or program meanwhile", (int)o->pid);
}

static int confine(const struct target *t)
{
	int r = privileges_become(t->facts.uids[0], t->facts.gids[0]);

	return r < 0 ? r : sandbox_worker(t->is_own);
}

static int drop_rights(struct target *t, struct agent_err *err)
{
	int r = t->is_confined ? 0 : confine(t);

	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "drop privileges", NULL,
				     "cannot become user %u in a sandbox", t->facts.uids[0]);
	t->is_confined = true;
	return 0;
}

/*
 * A tracer that seizes with CAP_SYS_PTRACE keeps that right over whatever the target executes later
 * (kernel/ptrace.c, ptracer_capable()).  So the capability is used only where the kernel would keep
 * the target's own user out.
 */
static int seize(struct target *t, struct agent_err *err)
{
	const struct worker_options *o = t->options;
	struct agent_err as_user = { 0 };
	int r = 0;

	if (privileges_may_become())
		r = privileges_lay_down_tracer(t->facts.uids[0], t->facts.gids[0]);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "drop privileges", NULL,
				     "cannot become user %u", t->facts.uids[0]);
	t->is_own = !privileges_may_trace();
	r = leader_seize(&t->leader, t->leader_sys, o->pid, &as_user);
	if (r == 0)
		return 0;
	if (!t->is_own || privileges_take_up_tracer() < 0) {
		*err = as_user;
		return r;
	}
	t->is_own = false;
	return leader_seize(&t->leader, t->leader_sys, o->pid, err);
}

int target_open(struct target *t)
{
	int r = memory_open(&t->memory, t->facts.pid);

	/* If this fails, a core has only the memory that is found without the list of mappings. */
	t->maps_fd = mappings_open(t->facts.pid);
	/* If this fails, code objects in files cannot be read, which is no reason to refuse. */
	t->root_fd = code_file_root(t->facts.pid);
	/* The link is read now: later this worker may not read that of a privileged process. */
	t->exe = process_facts_exe(t->facts.pid);
	return r;
}

/*
 * The order matters: what needs the worker's privileges comes before the seize, which may give them
 * up; the facts are checked after the seize, when they cannot change; enable() runs in the sandbox.
 */
static int attach_steps(struct target *t, struct agent_err *err)
{
	const struct worker_options *o = t->options;
	int r = t->is_confined ? 0 : target_open(t);

	if (r < 0)
		return leader_cannot_open(o->pid, o->privileged, -r, "open /proc/PID/mem", err);
	r = in_time(o, "open devices", err);
	/* The seize as the target's user gives up the privileges that this needs. */
	if (r == 0 && t->ops->look)
		t->ops->look(t);
	if (r == 0 && !t->ops->no_seize)
		r = seize(t, err);
	if (r == 0)
		r = recheck(t, err);
	leader_poll(&t->leader, t->leader_sys);
	if (r == 0)
		r = drop_rights(t, err);
	leader_poll(&t->leader, t->leader_sys);
	if (r == 0)
		r = in_time(o, "seize", err);
	if (r == 0)
		r = t->ops->enable(t, err);
	leader_poll(&t->leader, t->leader_sys);
	t->lease_mark = undo_mark(&t->undo);
	return r < 0 ? r : in_time(o, "enable", err);
}

bool target_vendor_matters(const struct worker_options *o, const struct target_ops *ops)
{
	bool any = false;

	for (size_t i = 0; target_list[i]; i++)
		any = any || target_list[i]->is_here(o);
	return !any || ops->is_here(o);
}

/* Add what one more back end says to what others have said; the hint is that of the first one. */
static void add_answer(struct agent_err *all, const struct agent_err *one)
{
	size_t n = strlen(all->message);

	if (!all->code)
		*all = *one;
	else
		snprintf(all->message + n, sizeof(all->message) - n, "; %s", one->message);
}

/*
 * Ask the back ends one after the other; if none knows the process, @p err has what those say whose vendor has
 * devices here.
 */
static int find_back_end(const struct worker_options *o, const struct access_target *facts,
			 struct target **ret, struct agent_err *err)
{
	struct agent_err all = { 0 };
	bool any = false;

	for (size_t i = 0; target_list[i]; i++) {
		int r = target_list[i]->create(o, facts, ret, err);

		if (r != TARGET_NOT_MINE)
			return r;
		if (target_vendor_matters(o, target_list[i]))
			add_answer(&all, err);
		any = any || target_list[i]->is_here(o);
	}
	*err = all;
	if (!any)
		str_copy(err->hint, sizeof(err->hint),
			 "load the driver of the GPU, amdgpu or NVIDIA's; in a container, pass its device in");
	return -ENODEV;
}

bool target_needs_nudge(struct target *t)
{
	return leader_poll(&t->leader, t->leader_sys) == LEADER_SEIZED && t->ops->needs_nudge &&
	       t->ops->needs_nudge(t);
}

int target_attach(const struct worker_options *o, struct target **ret, bool *ret_look,
		  struct agent_err *err)
{
	struct access_target facts;
	struct target *t = NULL;
	uint64_t start = 0;
	int r = read_facts(o, &facts, &start, err);

	if (r == 0)
		r = find_back_end(o, &facts, &t, err);
	if (r < 0)
		return r;
	t->start_ticks = start;
	r = attach_steps(t, err);
	if (r < 0) {
		/* Without a session the target cannot wait for an answer of this worker. */
		bool had_session = t->undo.n != 0;

		undo_run(&t->undo, 0, NULL);
		*ret_look = had_session && target_needs_nudge(t);
		target_destroy(t);
		return r;
	}
	*ret = t;
	return 0;
}
