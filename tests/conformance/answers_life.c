/* SPDX-License-Identifier: MIT */
/* Answers when processes change: the runtime's handshake, threads, forks, execs, namespaces, deaths. */
#include "answers.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define STACK_SIZE (256u << 10)

static bool opened(struct actor *a)
{
	return actor_start(a) && PLAY(a, play_open, 0) == 0;
}

static void let_go(struct actor *a)
{
	target_kill(&(struct target){ .pid = a->pid });
	close(a->fd);
}

/* ---- the runtime, with nobody and with somebody ---- */

ANSWERS(runtime)
{
	static const uint64_t modes[] = { 0, 1, 2, 3, 4, 5, 0xfffffffc, UINT32_MAX };
	struct kfdabi_runtime_info info;
	struct actor a;
	struct dbg d;

	for (size_t i = 0; i < TEST_COUNT(modes); i++) {
		if (!opened(&a))
			return;
		answer(PLAY(&a, play_runtime, modes[i], 0x1001), "mode_%llx", (unsigned long long)modes[i]);
		answer(PLAY(&a, play_runtime, modes[i], 0x2000), "mode_%llx.again",
		       (unsigned long long)modes[i]);
		answer(dbg_attach(&d, a.pid, RUNTIME_MASK), "mode_%llx.attach", (unsigned long long)modes[i]);
		answer_with("%llx %u", (unsigned long long)d.info.r_debug, d.info.ttmp_setup);
		answer((int)d.info.runtime_state, "mode_%llx.info", (unsigned long long)modes[i]);
		answer(dbg_bytes(&d), "mode_%llx.bytes", (unsigned long long)modes[i]);
		answer(dbg_query(&d, 0), "mode_%llx.query", (unsigned long long)modes[i]);
		actor_send(&a, &(struct part){ play_runtime, { 0, 0 } });
		answer(dbg_byte_comes(&d), "mode_%llx.off.byte", (unsigned long long)modes[i]);
		answer(actor_waits(&a), "mode_%llx.off.waits", (unsigned long long)modes[i]);
		answer(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &info, sizeof(info), true),
		       "mode_%llx.off.info", (unsigned long long)modes[i]);
		answer_with("%llx %u", (unsigned long long)info.r_debug, info.ttmp_setup);
		answer((int)info.runtime_state, "mode_%llx.off.info.state", (unsigned long long)modes[i]);
		answer(dbg_mode(&d, 0), "mode_%llx.off.launch_mode", (unsigned long long)modes[i]);
		answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "mode_%llx.off.send", (unsigned long long)modes[i]);
		answer(actor_reply(&a, PATIENCE_MS), "mode_%llx.off", (unsigned long long)modes[i]);
		let_go(&a);
	}
}

/* ---- the handshake, gone wrong ---- */

/* A target that waits in RUNTIME_ENABLE; its part repeats an interrupted call. */
static bool waiting(struct actor *a, struct dbg *d, uint64_t mask, const char *name)
{
	if (!opened(a))
		return false;
	dbg_attach(d, a->pid, mask);
	actor_send(a, &(struct part){ play_runtime, { 1, 0x1000 } });
	answer(EVENTUALLY(dbg_info(d, KFDABI_EC_PROCESS_RUNTIME, 0, &d->info, 16, false) == 0),
	       "%s.told", name);
	answer(actor_waits(a), "%s.waits", name);
	return true;
}

static void handshake_without_subscription(void)
{
	struct actor a;
	struct dbg d;

	if (!waiting(&a, &d, 0, "unsubscribed"))
		return;
	answer(dbg_bytes(&d), "unsubscribed.bytes");
	answer(dbg_query(&d, 0), "unsubscribed.query");
	answer(dbg_exceptions(&d, RUNTIME_MASK), "unsubscribed.subscribe");
	answer(dbg_byte_comes(&d), "unsubscribed.subscribed.byte");
	answer(dbg_query(&d, RUNTIME_MASK), "unsubscribed.subscribed.query");
	answer(dbg_query(&d, 0), "unsubscribed.subscribed.query_again");
	answer(dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &d.info, 16, false), "unsubscribed.cleared.info");
	answer(dbg_send(&d, RUNTIME_MASK, UINT32_MAX, UINT32_MAX), "unsubscribed.send");
	answer(actor_reply(&a, PATIENCE_MS), "unsubscribed.released");
	let_go(&a);
}

static void handshake_interrupted(void)
{
	struct actor a;
	struct dbg d;

	if (!waiting(&a, &d, RUNTIME_MASK, "interrupted"))
		return;
	dbg_bytes(&d);
	dbg_query(&d, RUNTIME_MASK);
	answer(actor_stop(a.pid), "interrupted.stop");
	answer((int)ptrace(PTRACE_CONT, a.pid, NULL, NULL), "interrupted.continue");
	answer(actor_waits(&a), "interrupted.waits_again");
	answer(dbg_bytes(&d), "interrupted.bytes");
	answer(dbg_query(&d, 0), "interrupted.query");
	answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "interrupted.send");
	answer(actor_reply(&a, PATIENCE_MS), "interrupted.released");
	let_go(&a);
	/* A program that does not repeat it. */
	if (!opened(&a))
		return;
	dbg_attach(&d, a.pid, RUNTIME_MASK);
	actor_send(&a, &(struct part){ play_runtime_once, { 1, 0x1000 } });
	dbg_byte_comes(&d);
	answer(actor_stop(a.pid), "given_up.stop");
	answer((int)ptrace(PTRACE_CONT, a.pid, NULL, NULL), "given_up.continue");
	answer(actor_reply(&a, PATIENCE_MS), "given_up.result");
	answer(dbg_query(&d, 0), "given_up.query");
	answer(dbg_mode(&d, 0), "given_up.launch_mode");
	actor_send(&a, &(struct part){ play_runtime_once, { 0, 0 } });
	answer(actor_waits(&a), "given_up.off.waits");
	answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "given_up.off.send");
	answer(actor_reply(&a, PATIENCE_MS), "given_up.off");
	let_go(&a);
}

/* What the end of the session does to one that waits. */
static void handshake_after_disable(void)
{
	struct actor a;
	struct dbg d;

	if (!waiting(&a, &d, RUNTIME_MASK, "disabled"))
		return;
	answer(dbg_disable(&d), "disabled.disable");
	answer(actor_waits(&a), "disabled.waits_on");
	answer(dbg_closed(&d), "disabled.closed");
	dbg_init(&d, a.pid);
	answer(dbg_enable(&d, RUNTIME_MASK), "disabled.enable");
	answer((int)d.info.runtime_state, "disabled.enable.state");
	answer(dbg_query(&d, 0), "disabled.query");
	answer(actor_waits(&a), "disabled.enabled.waits_on");
	answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "disabled.send");
	answer(actor_reply(&a, PATIENCE_MS), "disabled.released");
	let_go(&a);
	if (!waiting(&a, &d, RUNTIME_MASK, "stopped"))
		return;
	answer(dbg_disable(&d), "stopped.disable");
	answer(actor_stop(a.pid), "stopped.stop");
	answer((int)ptrace(PTRACE_DETACH, a.pid, NULL, NULL), "stopped.detach");
	answer(actor_reply(&a, PATIENCE_MS), "stopped.released");
	let_go(&a);
	if (!waiting(&a, &d, RUNTIME_MASK, "left"))
		return;
	answer(actor_stop(a.pid), "left.stop");
	answer((int)ptrace(PTRACE_DETACH, a.pid, NULL, NULL), "left.detach");
	answer(actor_waits(&a), "left.waits_on");
	answer(dbg_query(&d, 0), "left.query");
	answer(dbg_send(&d, 0, 0, 0), "left.send_nothing");
	answer(dbg_disable(&d), "left.disable");
	answer(actor_waits(&a), "left.disabled.waits_on");
	kill(a.pid, SIGSTOP);
	kill(a.pid, SIGCONT);
	answer(actor_reply(&a, PATIENCE_MS), "left.continued");
	let_go(&a);
}

static void handshake_ahead(void)
{
	struct actor a;
	struct dbg d;

	if (!opened(&a))
		return;
	dbg_attach(&d, a.pid, RUNTIME_MASK);
	for (int i = 0; i < 3; i++)
		answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "ahead.send_%d", i);
	for (int i = 0; i < 3; i++) {
		answer(PLAY(&a, play_runtime, i % 2 ? 0 : 1, 0x1000), "ahead.call_%d", i);
		answer(dbg_byte_comes(&d), "ahead.call_%d.byte", i);
		answer(dbg_query(&d, RUNTIME_MASK), "ahead.call_%d.query", i);
	}
	actor_send(&a, &(struct part){ play_runtime, { 0, 0 } });
	answer(actor_waits(&a), "ahead.call_3.waits");
	answer(dbg_send(&d, RUNTIME_MASK, 0, 0), "ahead.call_3.send");
	answer(actor_reply(&a, PATIENCE_MS), "ahead.call_3");
	answer(PLAY(&a, play_close, 0), "ahead.close");
	answer(dbg_query(&d, 0), "ahead.closed.query");
	answer(PLAY(&a, play_open, 0), "ahead.open");
	answer(dbg_query(&d, 0), "ahead.opened.query");
	let_go(&a);
}

ANSWERS(handshake)
{
	handshake_without_subscription();
	handshake_interrupted();
	handshake_after_disable();
	handshake_ahead();
}

/* ---- threads ---- */

static volatile pid_t second_tid;
static volatile bool second_ends;

static void *second_run(void *arg)
{
	second_tid = (pid_t)syscall(SYS_gettid);
	while (!second_ends)
		usleep(1000);
	return NULL;
}

static int play_second_thread(const uint64_t *with)
{
	pthread_t t;

	second_tid = 0;
	if (pthread_create(&t, NULL, second_run, NULL))
		return -EAGAIN;
	pthread_detach(t);
	while (!second_tid)
		usleep(1000);
	return second_tid;
}

static int play_end_second(const uint64_t *with)
{
	second_ends = true;
	return 0;
}

static int seize_it(void *data)
{
	return seize(*(pid_t *)data);
}

static void wait_untraced(pid_t pid)
{
	char path[64], text[4096] = "";

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	for (int i = 0; i < 10000 && !strstr(text, "TracerPid:\t0\n"); i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);

		close(fd);
		text[n > 0 ? n : 0] = '\0';
		usleep(1000);
	}
}

ANSWERS(threads)
{
	struct actor a;
	struct dbg d;
	pid_t tid;

	if (!opened(&a))
		return;
	tid = PLAY(&a, play_second_thread, 0);
	dbg_init(&d, tid);
	answer(dbg_enable(&d, 0), "untraced.by_thread");
	answer(seize(tid), "second.seize");
	answer(dbg_enable(&d, 0), "second_traced.by_thread");
	d.pid = a.pid;
	answer(dbg_enable(&d, 0), "second_traced.by_leader");
	answer(dbg_query(&d, 0), "second_traced.query");
	answer(dbg_disable(&d), "second_traced.disable");
	answer(seize(a.pid), "leader.seize");
	d.pid = tid;
	answer(dbg_enable(&d, RUNTIME_MASK), "both_traced.by_thread");
	answer(dbg_query(&d, 0), "both_traced.query.by_thread");
	d.pid = a.pid;
	answer(dbg_query(&d, 0), "both_traced.query.by_leader");
	answer(dbg_enable(&d, 0), "both_traced.again");
	answer(PLAY(&a, play_end_second, 0), "second.ends");
	answer(waitpid(tid, NULL, __WALL) == tid, "second.reaped");
	d.pid = tid;
	answer(dbg_query(&d, 0), "second_gone.query.by_thread");
	d.pid = a.pid;
	answer(dbg_query(&d, 0), "second_gone.query.by_leader");
	answer(dbg_disable(&d), "second_gone.disable");
	/* A tracer that is a thread of its own: only it may ask, where the rule is about threads. */
	let_go(&a);
	if (!opened(&a))
		return;
	dbg_init(&d, a.pid);
	answer(env_in_thread(seize_it, &a.pid), "tracer_thread.seize");
	/* A thread that was joined lets go of whom it traces a moment later. */
	wait_untraced(a.pid);
	answer(dbg_enable(&d, 0), "tracer_thread_gone.enable");
}

/* ---- forks ---- */

/* Nothing stays: whoever read the output would wait for it. */
static void wait_for_the_end(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		pause();
	_exit(0);
}

static int play_fork(const uint64_t *with)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid)
		wait_for_the_end(parent);
	return pid;
}

ANSWERS(forks)
{
	struct actor a;
	struct dbg d;
	pid_t child;

	if (!opened(&a))
		return;
	PLAY(&a, play_runtime, 1, 0x1000);
	child = PLAY(&a, play_fork, 0);
	dbg_init(&d, child);
	answer(dbg_enable(&d, 0), "child.enable");
	answer(dbg_disable(&d), "child.disable");
	answer(seize(child), "child.seize");
	answer(dbg_query(&d, 0), "child.traced.query");
	answer(dbg_enable(&d, 0), "child.traced.enable");
	answer((int)d.info.runtime_state, "child.traced.state");
	answer(dbg_query(&d, 0), "child.session.query");
	d.pid = a.pid;
	answer(dbg_query(&d, 0), "parent.query");
	answer(seize(a.pid), "parent.seize");
	answer(dbg_query(&d, 0), "parent.traced.query");
	answer(dbg_enable(&d, RUNTIME_MASK), "parent.traced.enable");
	answer((int)d.info.runtime_state, "parent.traced.state");
	child = PLAY(&a, play_fork, 0);
	d.pid = child;
	answer(dbg_query(&d, 0), "child_of_session.query");
	answer(dbg_disable(&d), "child_of_session.disable");
	d.pid = a.pid;
	answer(dbg_query(&d, 0), "parent.session.query");
	answer(dbg_disable(&d), "parent.disable");
}

/* ---- exec ---- */

static int play_exec(const uint64_t *with)
{
	execl("/bin/sleep", "sleep", "1000", NULL);
	return -errno;
}

static bool executed(pid_t pid)
{
	int status = 0;

	return waitpid(pid, &status, __WALL) == pid && status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

ANSWERS(execs)
{
	struct actor a;
	struct dbg d;

	if (!opened(&a))
		return;
	dbg_init(&d, a.pid);
	answer((int)ptrace(PTRACE_SEIZE, a.pid, NULL, (void *)PTRACE_O_TRACEEXEC), "seize");
	answer(dbg_enable(&d, RUNTIME_MASK), "enable");
	actor_send(&a, &(struct part){ play_exec, { 0 } });
	answer(executed(a.pid), "stop");
	answer(dbg_closed(&d), "closed");
	answer(dbg_query(&d, 0), "query");
	answer(dbg_mode(&d, 0), "launch_mode");
	answer(dbg_disable(&d), "disable");
	dbg_init(&d, a.pid);
	answer(dbg_enable(&d, RUNTIME_MASK), "enable_again");
	answer((int)d.info.runtime_state, "enable_again.state");
	answer((int)ptrace(PTRACE_CONT, a.pid, NULL, NULL), "continue");
	answer(dbg_query(&d, 0), "query_again");
	answer(dbg_disable(&d), "disable_again");
	answer(dbg_disable(&d), "disable_twice");
}

/* ---- processes that share their memory ---- */

static int sharer_run(void *arg)
{
	wait_for_the_end((pid_t)(intptr_t)arg);
	return 0;
}

static int play_sharer(const uint64_t *with)
{
	static char stack[STACK_SIZE];
	int pid = clone(sharer_run, stack + sizeof(stack) - 64, CLONE_VM | SIGCHLD,
			(void *)(intptr_t)getpid());

	return pid < 0 ? -errno : pid;
}

struct vfork_job {
	int opened, version;
};

/* Its parent waits meanwhile, as that of vfork() does: they share even errno. */
static int vforked_run(void *arg)
{
	struct vfork_job *job = arg;
	struct kfdabi_get_version_args v;
	int fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);

	job->opened = fd < 0 ? -errno : 0;
	job->version = device_call(fd, KFDABI_IOC_GET_VERSION, &v);
	close(fd);
	return 0;
}

static int play_vforked(const uint64_t *with)
{
	static char stack[STACK_SIZE];
	struct vfork_job job = { 0 };
	int pid = clone(vforked_run, stack + sizeof(stack) - 64, CLONE_VM | CLONE_VFORK | SIGCHLD, &job);

	waitpid(pid, NULL, 0);
	return with[0] ? job.version : job.opened;
}

ANSWERS(shared_memory)
{
	struct actor a;
	struct dbg d;
	pid_t sharer;

	if (!opened(&a))
		return;
	answer(PLAY(&a, play_vforked, 0), "vforked.open");
	answer(PLAY(&a, play_vforked, 1), "vforked.version");
	sharer = PLAY(&a, play_sharer, 0);
	dbg_init(&d, sharer);
	answer(dbg_enable(&d, 0), "untraced.by_sharer");
	answer(seize(sharer), "sharer.seize");
	answer(dbg_enable(&d, 0), "sharer_traced.by_sharer");
	answer(seize(a.pid), "owner.seize");
	answer(dbg_enable(&d, 0), "both_traced.by_sharer");
	answer(dbg_query(&d, 0), "both_traced.query.by_sharer");
	d.pid = a.pid;
	answer(dbg_query(&d, 0), "both_traced.query.by_owner");
	answer(dbg_enable(&d, 0), "both_traced.by_owner");
	answer(dbg_disable(&d), "both_traced.disable.by_owner");
	answer(dbg_disable(&d), "both_traced.disable_again.by_owner");
	kill(sharer, SIGKILL);
	answer(waitpid(sharer, NULL, __WALL) == sharer, "sharer.reaped");
	d.pid = a.pid;
	answer(dbg_enable(&d, 0), "sharer_gone.by_owner");
	answer(dbg_disable(&d), "sharer_gone.disable");
}

/* ---- tables of descriptors ---- */

struct table_job {
	struct dbg *d;
	int result, own;
};

/* In a table of its own: what it opens there exists nowhere else, what it closes exists elsewhere. */
static void *own_table(void *data)
{
	struct table_job *job = data;
	int sv[2];

	if (unshare(CLONE_FILES) || fd_socketpair(SOCK_NONBLOCK, sv))
		return NULL;
	close(job->d->wr);
	answer(dbg_enable(job->d, 0), "thread.closed_here");
	answer(dbg_disable(job->d), "thread.closed_here.disable");
	job->own = sv[1];
	job->result = 1;
	return NULL;
}

ANSWERS(descriptor_tables)
{
	struct table_job job = { 0 };
	struct actor a;
	pthread_t t;
	struct dbg d;

	if (!opened(&a))
		return;
	/* Its own process is what a thread may debug without a tracer. */
	dbg_init(&d, getpid());
	job.d = &d;
	if (pthread_create(&t, NULL, own_table, &job) || pthread_join(t, NULL))
		return;
	answer(job.result, "thread.done");
	answer(dbg_enable(&d, 0), "process.open_here");
	answer(dbg_disable(&d), "process.disable");
	answer(fcntl(d.wr, F_GETFD) >= 0, "process.still_open");
}

/* ---- namespaces ---- */

static int inner_run(void *data)
{
	pid_t inner = fork();
	struct dbg d;

	if (!inner)
		for (;;)
			pause();
	dbg_init(&d, *(pid_t *)data);
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	answer(dbg_enable(&d, 0), "inside.outer_number");
	answer(dbg_disable(&d), "inside.outer_number.disable");
	d.pid = inner;
	answer(dbg_enable(&d, 0), "inside.untraced");
	answer(seize(inner), "inside.seize");
	answer(dbg_enable(&d, 0), "inside.traced");
	answer(dbg_query(&d, 0), "inside.query");
	answer(dbg_disable(&d), "inside.disable");
	d.pid = 1;
	answer(dbg_enable(&d, 0), "inside.itself");
	answer(dbg_disable(&d), "inside.itself.disable");
	kill(inner, SIGKILL);
	waitpid(inner, NULL, __WALL);
	d.pid = inner;
	answer(dbg_query(&d, 0), "inside.gone");
	return 0;
}

static int new_namespace(void *data)
{
	return unshare(CLONE_NEWPID) ? -errno : env_in_child(inner_run, data);
}

ANSWERS(namespaces)
{
	struct actor a;
	struct dbg d;

	if (!opened(&a))
		return;
	answer(env_in_child(new_namespace, &a.pid), "done");
	dbg_init(&d, a.pid);
	answer(dbg_enable(&d, 0), "outside.untouched");
}

/* ---- deaths ---- */

struct debugger {
	pid_t target;
	bool kills_along;
	int ready;
};

static void debugger_run(void *data)
{
	const struct debugger *job = data;
	struct dbg d;
	int r;

	dbg_init(&d, job->target);
	d.fd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	r = (int)ptrace(PTRACE_SEIZE, job->target, NULL,
			job->kills_along ? (void *)PTRACE_O_EXITKILL : NULL);
	if (!r)
		r = dbg_enable(&d, RUNTIME_MASK);
	if (write(job->ready, &r, sizeof(r)) == sizeof(r))
		for (;;)
			pause();
}

static void debugger_dies(bool kills_along, const char *name)
{
	struct debugger job = { .kills_along = kills_along };
	struct actor a;
	struct dbg d;
	pid_t pid;
	int p[2], r = -1;

	if (!opened(&a) || pipe(p))
		return;
	PLAY(&a, play_runtime, 1, 0x1000);
	job.target = a.pid;
	job.ready = p[1];
	pid = env_monitor(debugger_run, &job);
	TEST_EQ(read(p[0], &r, sizeof(r)), sizeof(r));
	answer(r, "%s.enable", name);
	dbg_init(&d, a.pid);
	answer(dbg_enable(&d, 0), "%s.by_another", name);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	env_reaped(pid);
	if (kills_along) {
		answer(EVENTUALLY(dbg_enable(&d, 0) == -ESRCH), "%s.target_gone", name);
	} else {
		answer(PLAY(&a, play_close, 0), "%s.target_lives", name);
		answer(seize(a.pid), "%s.seize", name);
		answer(dbg_query(&d, 0), "%s.query", name);
		answer(dbg_enable(&d, RUNTIME_MASK), "%s.next_enable", name);
		answer((int)d.info.runtime_state, "%s.next_enable.state", name);
		answer(dbg_mode(&d, 0), "%s.next.launch_mode", name);
		answer(dbg_disable(&d), "%s.next_disable", name);
	}
	close(p[0]);
	close(p[1]);
}

/* A zombie has no memory any more; with threads, a leader that has ended has. */
static void target_dies(void)
{
	struct actor a;
	struct dbg d;
	siginfo_t info;

	if (!opened(&a))
		return;
	dbg_attach(&d, a.pid, RUNTIME_MASK);
	kill(a.pid, SIGKILL);
	answer(waitid(P_PID, (id_t)a.pid, &info, WEXITED | WNOWAIT), "zombie");
	answer(dbg_closed(&d), "zombie.closed");
	for (uint32_t op = 0; op <= KFDABI_DBG_OP_COUNT; op++)
		answer(harmless_op(env_kfd(), a.pid, op), "zombie.%s", op_name(op));
	waitpid(a.pid, NULL, __WALL);
	env_reaped(a.pid);
	for (uint32_t op = 0; op <= KFDABI_DBG_OP_COUNT; op++)
		answer(harmless_op(env_kfd(), a.pid, op), "reaped.%s", op_name(op));
}

static int play_leader_ends(const uint64_t *with)
{
	pthread_exit(NULL);
}

static void leader_dies(void)
{
	struct actor a;
	struct dbg d;

	if (!opened(&a))
		return;
	PLAY(&a, play_second_thread, 0);
	dbg_attach(&d, a.pid, RUNTIME_MASK);
	actor_send(&a, &(struct part){ play_leader_ends, { 0 } });
	/* Its state cannot be waited for: the leader's end is reported after its last thread. */
	usleep((useconds_t)test_slow_ms(200) * 1000);
	answer(dbg_query(&d, 0), "leader.query");
	answer(dbg_mode(&d, 0), "leader.launch_mode");
	answer(dbg_enable(&d, 0), "leader.enable_again");
	answer(dbg_disable(&d), "leader.disable");
}

ANSWERS(deaths)
{
	debugger_dies(false, "debugger");
	debugger_dies(true, "exitkill");
	target_dies();
	leader_dies();
}
