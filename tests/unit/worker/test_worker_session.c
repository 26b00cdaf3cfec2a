/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/worker/session/session.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "testlib.h"

/*
 * The session loop in a child, with the frontend and the monitor played by the test and a target that does
 * nothing but write letters into a pipe: S suspend, R resume, U undo, D destroy.
 */

#define PATIENCE_MS 60000
/* Two who may use the session: one who may change the target, and one who may not. */
#define OWNER	 77
#define OBSERVER 78

static int letters[2] = { -1, -1 };
static int events[2] = { -1, -1 };
static bool attach_fails;

static void letter(char c)
{
	TEST_EQ(write(letters[1], &c, 1), 1);
}

static int fake_undo(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct target *t = ctx;

	t->n_suspended = 0;
	letter('U');
	return 0;
}

static int fake_suspend(struct target *t, const uint32_t *ids, size_t n, uint32_t grace,
			struct rpc_arena *a, struct rpc_queue_result **ret, size_t *ret_n,
			struct agent_err *err)
{
	uint32_t ticket;

	*ret = rpc_arena_array(a, 2, sizeof(**ret));
	*ret_n = 2;
	(*ret)[1] = (struct rpc_queue_result){ .queue_id = 9,
						  .verdict = RPC_QUEUE_VERDICT_SKIPPED };
	t->n_suspended = 1;
	t->suspended_since_ns = clock_now_ns();
	letter('S');
	return undo_push(&t->undo, "resume", fake_undo, t, 0, &ticket, err);
}

static int fake_resume(struct target *t, const uint32_t *ids, size_t n, struct rpc_arena *a,
		       struct rpc_queue_result **ret, size_t *ret_n, struct agent_err *err)
{
	*ret_n = t->n_suspended;
	*ret = rpc_arena_array(a, *ret_n, sizeof(**ret));
	for (size_t i = 0; i < *ret_n; i++)
		(*ret)[i].verdict = RPC_QUEUE_VERDICT_RESUMED;
	t->n_suspended = 0;
	undo_run(&t->undo, t->lease_mark, NULL);
	letter('R');
	return 0;
}

/* Each byte on the event channel is one event: r runtime, x exception, l lost session. */
static char pending;

static int fake_drain(struct target *t)
{
	return read(t->event_fd, &pending, 1) == 0 ? -EPIPE : 0;
}

static int fake_next(struct target *t, struct target_event *ret, struct agent_err *err)
{
	char c = pending;

	pending = 0;
	if (c == 'l')
		return target_end(t, RPC_END_REASON_LOST, "query", err);
	*ret = (struct target_event){
		.kind = c == 'r' ? TARGET_EVENT_RUNTIME : TARGET_EVENT_EXCEPTION,
		.source = { .exceptions = 2, .has_queue = true, .queue_id = 3, .has_gpu = true, .gpu_id = 5 },
		.forwarded = true,
	};
	return c != 0;
}

static int fake_done(struct target *t, const struct target_event *e, struct agent_err *err)
{
	letter(e->kind == TARGET_EVENT_RUNTIME ? 'h' : 'f');
	return 0;
}

static void fake_destroy(struct target *t)
{
	letter('D');
	target_deinit(t);
	free(t);
}

static const struct target_ops fake_ops = {
	.vendor = RPC_VENDOR_AMD,
	.destroy = fake_destroy,
	.event_drain = fake_drain,
	.event_next = fake_next,
	.event_done = fake_done,
	.suspend = fake_suspend,
	.resume = fake_resume,
};

/* In place of target.c: an attach that finds this target, or nothing. */
void target_init(struct target *t, const struct target_ops *ops, const struct worker_options *o,
		 const struct access_target *facts)
{
	*t = (struct target){ .ops = ops, .options = o, .facts = *facts, .memory = MEMORY_NULL,
			      .leader_sys = &leader_real_sys, .event_fd = -1 };
}

void target_deinit(struct target *t)
{
	undo_deinit(&t->undo);
	if (t->event_fd >= 0)
		close(t->event_fd);
}

int target_attach(const struct worker_options *o, struct target **ret, bool *ret_look,
		  struct agent_err *err)
{
	const struct access_target facts = { .pid = o->pid, .uids = { 12 }, .comm = "prog" };
	struct target *t;

	if (attach_fails)
		return agent_err_set(err, RPC_ERROR_BUSY, EALREADY, "enable", "wait", "taken");
	t = calloc(1, sizeof(*t));
	target_init(t, &fake_ops, o, &facts);
	t->event_fd = events[0];
	t->leader = (struct leader){ .pid = o->pid, .state = LEADER_SEIZED };
	*ret = t;
	return leader_seize(&t->leader, t->leader_sys, o->pid, err);
}

void target_destroy(struct target *t)
{
	if (t)
		t->ops->destroy(t);
}

bool target_needs_nudge(struct target *t)
{
	return false;
}

int target_end(struct target *t, enum rpc_end_reason reason, const char *op, struct agent_err *err)
{
	t->ended = true;
	t->end_reason = reason;
	return agent_err_set(err, RPC_ERROR_SESSION_ENDED, ESRCH, op, NULL, "over");
}

enum rpc_end_reason target_why_gone(struct target *t)
{
	return leader_poll(&t->leader, t->leader_sys) == LEADER_SEIZED ? RPC_END_REASON_LOST :
									 RPC_END_REASON_EXITED;
}

/* ------------------------------------------------------------------ front and the monitor ---------- */

struct scene {
	pid_t target, worker;
	int deadline;
	struct ipc_link front;
	uint64_t last_id;
};

static pid_t start_target(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void let_in(int guard, uint64_t client, enum ipc_right rights)
{
	const struct ipc_let_in m = { .type = IPC_LET_IN, .client = client, .rights = rights, .uid = (uint32_t)client };

	TEST_EQ(fd_send(guard, &m, sizeof(m), NULL, 0), (ssize_t)sizeof(m));
}

static void start(struct scene *s, bool fails)
{
	int guard[2], channel[2], pidfd;

	*s = (struct scene){ .target = start_target() };
	attach_fails = fails;
	TEST_EQ_FATAL(pipe2(letters, O_CLOEXEC), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, events), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, guard), 0);
	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, channel), 0);
	pidfd = (int)syscall(SYS_pidfd_open, s->target, 0);
	s->worker = fork();
	if (s->worker == 0) {
		const struct worker_options o = { .kind = IPC_KIND_SESSION, .pid = s->target,
						  .session = 7, .timeout_ms = PATIENCE_MS };
		int at[] = { guard[1], channel[1], pidfd, letters[1], events[0] };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < TEST_COUNT(at); i++)
			at[i] = fcntl(at[i], F_DUPFD_CLOEXEC, 64);
		close(letters[0]);
		close(events[1]);
		close(guard[0]);
		close(channel[0]);
		for (int i = 0; i < 3; i++)
			dup2(at[i], IPC_FD_MONITOR + i);
		for (int i = 0; i < 3; i++)
			close(at[i]);
		letters[1] = at[3];
		events[0] = at[4];
		_exit(session_run(&o));
	}
	close(guard[1]);
	close(channel[1]);
	close(pidfd);
	close(letters[1]);
	close(events[0]);
	s->deadline = guard[0];
	ipc_link_init(&s->front, channel[0]);
	let_in(s->deadline, OWNER, IPC_RIGHT_CONTROL);
	let_in(s->deadline, OBSERVER, IPC_RIGHT_READ);
}

/* Let go; checks the exit status and the letters written since the last look. */
static void finish(struct scene *s, int want_status, const char *want_letters)
{
	char got[64] = "";
	int status = -1;
	size_t n = 0;
	ssize_t r;

	ipc_link_deinit(&s->front);
	TEST_EQ(waitpid(s->worker, &status, 0), s->worker);
	TEST_EQ(status, want_status << 8);
	while (n < sizeof(got) - 1 && (r = read(letters[0], got + n, sizeof(got) - 1 - n)) > 0)
		n += (size_t)r;
	TEST_STR(got, want_letters);
	kill(s->target, SIGKILL);
	waitpid(s->target, NULL, 0);
	close(s->deadline);
	close(letters[0]);
	close(events[1]);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, PATIENCE_MS) == 1;
}

static void call_as(struct scene *s, uint64_t client, enum rpc_method m, const char *params)
{
	const struct ipc_head head = { .type = IPC_CALL, .number = m, .id = ++s->last_id, .client = client,
				       .flags = IPC_FLAG_CONTROL, .size = strlen(params) };

	TEST_EQ(ipc_link_send(&s->front, &head, params), 0);
}

static void call(struct scene *s, enum rpc_method m, const char *params)
{
	call_as(s, OWNER, m, params);
}

/* What the worker told last about suspended queues. */
static struct ipc_suspension told;

/* The next message to a client; what the frontend is told for itself is remembered. */
static void receive(struct scene *s, struct ipc_message *ret)
{
	for (;;) {
		TEST_EQ_FATAL(readable(s->front.fd), true);
		TEST_EQ_FATAL(ipc_link_recv(&s->front, ret), 1);
		if (ret->head.type != IPC_SUSPENSION)
			return;
		TEST_EQ_FATAL(ret->head.size <= sizeof(told), true);
		memset(&told, 0, sizeof(told));
		memcpy(&told, ret->text, ret->head.size);
		ipc_message_deinit(ret);
	}
}

/* The next message must be of this type and its text contain these words. */
static void expect(struct scene *s, enum ipc_frontend_worker_type type, uint32_t number, const char *words)
{
	struct ipc_message m;
	char text[4096] = "";

	receive(s, &m);
	TEST_EQ(m.head.type, type);
	TEST_EQ(m.head.number, number);
	if (m.head.size < sizeof(text))
		memcpy(text, m.text, m.head.size);
	if (words && !strstr(text, words))
		test_assert_str(-1, text, words, "text contains", __FILE__, __LINE__);
	ipc_message_deinit(&m);
}

/* The next guard message. */
static uint32_t guard(struct scene *s, uint32_t type)
{
	union ipc_child_message m = { 0 };
	int fds[FD_MESSAGE_MAX];
	size_t n_fds;

	/* Who uses the session is told in between. */
	do {
		TEST_EQ_FATAL(readable(s->deadline), true);
		CU_ASSERT_TRUE_FATAL(fd_recv(s->deadline, &m, sizeof(m), fds, &n_fds) > 0);
	} while (m.type == IPC_USED);
	TEST_EQ(m.type, type);
	return m.guard.ms;
}

static void attach(struct scene *s)
{
	start(s, false);
	call(s, RPC_METHOD_SESSION_ATTACH, "{}");
	expect(s, IPC_TARGET, RPC_VENDOR_AMD, NULL);
	expect(s, IPC_REPLY, RPC_METHOD_SESSION_ATTACH, "\"session\":\"s7\"");
}

/* ------------------------------------------------------------------ tests -------------------- */

/* The channel closes with queues suspended: undone, then gone, without being told anything else. */
static void end_of_file_undoes_everything(void)
{
	struct scene s;

	attach(&s);
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, "\"suspended\":1,\"lease_ms\":5000");
	finish(&s, 0, "SUD");
}

/* So they are when the monitor dies, and at SIGTERM; the frontend hears why. */
static void death_of_the_monitor_and_sigterm(void)
{
	for (int i = 0; i < 2; i++) {
		struct scene s;

		attach(&s);
		call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":60000}");
		expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
		if (i) {
			kill(s.worker, SIGTERM);
		} else {
			close(s.deadline);
			s.deadline = -1;
		}
		expect(&s, IPC_OVER, RPC_END_REASON_STOPPED, NULL);
		finish(&s, 0, "SUD");
	}
}

static void lease_expires(void)
{
	uint64_t start_ns;
	struct scene s;

	attach(&s);
	start_ns = clock_now_ns();
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":50}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, "\"lease_ms\":50");
	expect(&s, IPC_NOTIFY, RPC_NOTIFICATION_GPU_RESUMED, "\"reason\":\"lease_expired\",\"queues\":1");
	CU_ASSERT_TRUE(clock_now_ns() - start_ns > 45000000);
	/* A later lease of the same session counts from its own start. */
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":60000}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
	call(&s, RPC_METHOD_GPU_RESUME, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_RESUME, "\"resumed\":1");
	finish(&s, 0, "SURSURD");
}

/* Whatever the clock of timers says, whose steps are coarse. */
static void no_lease_ends_early(void)
{
	uint64_t before_ns = 0;
	struct scene s;

	attach(&s);
	for (int i = 0; i < 10; i++) {
		call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":6}");
		expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
		expect(&s, IPC_NOTIFY, RPC_NOTIFICATION_GPU_RESUMED, "\"reason\":\"lease_expired\"");
		CU_ASSERT_TRUE(told.total_ns - before_ns >= UINT64_C(6000000));
		before_ns = told.total_ns;
	}
	finish(&s, 0, "SURSURSURSURSURSURSURSURSURSURD");
}

/* Renewed, the lease counts from then; the hardware is not asked; when it is over there is nothing to renew. */
static void lease_is_renewed(void)
{
	uint64_t first_ns, end_ns;
	struct scene s;

	attach(&s);
	call(&s, RPC_METHOD_GPU_RENEW, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_RENEW, "\"suspended\":0,\"lease_ms\":0");
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":60000}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
	TEST_EQ(told.count, 1);
	TEST_EQ(told.total_ns, 0);
	first_ns = told.since_ns;
	end_ns = told.lease_end_ns;
	CU_ASSERT_TRUE(first_ns && first_ns <= clock_now_ns() && end_ns > clock_now_ns());
	call(&s, RPC_METHOD_GPU_RENEW, "{\"session\":\"s7\",\"lease_ms\":50}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_RENEW, "\"suspended\":1,\"lease_ms\":50");
	TEST_EQ(told.since_ns, first_ns);
	CU_ASSERT_TRUE(told.lease_end_ns < end_ns);
	expect(&s, IPC_NOTIFY, RPC_NOTIFICATION_GPU_RESUMED, "\"reason\":\"lease_expired\",\"queues\":1");
	TEST_EQ(told.since_ns, 0);
	TEST_EQ(told.lease_end_ns, 0);
	CU_ASSERT_TRUE(told.total_ns >= UINT64_C(49000000));
	call(&s, RPC_METHOD_GPU_RENEW, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_RENEW, "\"suspended\":0,\"lease_ms\":0");
	finish(&s, 0, "SURD");
}

static void lost_writer(void)
{
	const struct ipc_head lost = { .type = IPC_LEASE_LOST,
				       .number = RPC_RESUME_REASON_CLIENT_LOST };
	struct scene s;

	attach(&s);
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":60000}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
	TEST_EQ(ipc_link_send(&s.front, &lost, NULL), 0);
	expect(&s, IPC_NOTIFY, RPC_NOTIFICATION_GPU_RESUMED, "\"reason\":\"client_lost\"");
	/* Nothing to resume: nothing to say. */
	TEST_EQ(ipc_link_send(&s.front, &lost, NULL), 0);
	call(&s, RPC_METHOD_SESSION_ATTACH, "");
	expect(&s, IPC_REPLY, RPC_METHOD_SESSION_ATTACH, NULL);
	finish(&s, 0, "SUD");
}

/* The monitor is told before what may block, and keeps its hand on the worker while a lease is open. */
static void guard_is_armed(void)
{
	struct scene s;

	attach(&s);
	guard(&s, IPC_DISARM);
	TEST_EQ(guard(&s, IPC_ARM), DEADLINE_UNDO_MS); /* the first look for events */
	guard(&s, IPC_DISARM);
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":8000}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
	TEST_EQ(guard(&s, IPC_ARM), DEADLINE_CALL_MS);
	CU_ASSERT_TRUE(guard(&s, IPC_ARM) <= 9000);
	CU_ASSERT_TRUE(guard(&s, IPC_ARM) <= 9000);
	call(&s, RPC_METHOD_GPU_RESUME, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_RESUME, NULL);
	CU_ASSERT_TRUE(guard(&s, IPC_ARM) <= 9000);
	TEST_EQ(guard(&s, IPC_ARM), DEADLINE_UNDO_MS);
	CU_ASSERT_TRUE(guard(&s, IPC_ARM) <= 9000);
	guard(&s, IPC_DISARM);
	finish(&s, 0, "SURD");
}

static void failed_attach_is_reported(void)
{
	struct scene s;

	start(&s, true);
	call(&s, RPC_METHOD_SESSION_ATTACH, "{}");
	expect(&s, IPC_ERROR, RPC_METHOD_SESSION_ATTACH, "\"message\":\"taken\"");
	finish(&s, 0, "");
}

/* Missing operations, unknown methods and wrong parameters are errors, not the end. */
static void wrong_calls_are_refused(void)
{
	static const struct {
		enum rpc_method m;
		const char *params, *words;
	} rows[] = {
		{ RPC_METHOD_LAUNCH_MODE, "{\"session\":\"s7\",\"mode\":\"halt\"}", "-32008" },
		{ RPC_METHOD_LAUNCH_MODE, "{\"session\":\"s7\",\"mode\":\"sideways\"}", "-32602" },
		{ RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"lease_ms\":0}", "-32602" },
		{ RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\",\"nope\":0}", "-32602" },
		{ RPC_METHOD_AGENT_HELLO, "{}", "error" },
		{ RPC_METHOD_COUNT, "{}", "error" },
	};
	struct scene s;

	attach(&s);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		call(&s, rows[i].m, rows[i].params);
		expect(&s, IPC_ERROR, rows[i].m, strcmp(rows[i].words, "error") ? rows[i].words : NULL);
	}
	finish(&s, 0, "D");
}

/* @return what the monitor is told next of who uses the session; 0 in `type`: nothing more. */
static struct ipc_used used(struct scene *s)
{
	union ipc_child_message m = { 0 };
	int fds[FD_MESSAGE_MAX];
	size_t n_fds;

	while (fd_recv(s->deadline, &m, sizeof(m), fds, &n_fds) > 0)
		if (m.type == IPC_USED)
			return m.used;
	return (struct ipc_used){ 0 };
}

/* The monitor hears of it before the client does. */
static void uses_are_told(void)
{
	struct ipc_used m;
	struct scene s;

	attach(&s);
	call(&s, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_SUSPEND, NULL);
	m = used(&s);
	TEST_EQ(m.kind, IPC_USE_CONTROL);
	TEST_EQ(m.client, OWNER);
	TEST_STR(m.method, "gpu.suspend");
	call(&s, RPC_METHOD_GPU_RESUME, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_GPU_RESUME, NULL);
	TEST_STR(used(&s).method, "gpu.resume");
	/* The target is nobody's of these two. */
	for (int i = 0; i < 3; i++) {
		call_as(&s, OBSERVER, RPC_METHOD_CODE_LIST, "{\"session\":\"s7\",\"nope\":1}");
		expect(&s, IPC_ERROR, RPC_METHOD_CODE_LIST, NULL);
	}
	m = used(&s);
	TEST_EQ(m.kind, IPC_USE_READ);
	TEST_EQ(m.client, OBSERVER);
	TEST_STR(m.method, "code.list");
	TEST_EQ(used(&s).type, 0);
	ipc_link_deinit(&s.front);
	TEST_EQ(waitid(P_PID, (id_t)s.worker, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	m = used(&s);
	TEST_STR(m.method, "code.list");
	TEST_EQ(m.client, OBSERVER);
	TEST_EQ(m.more, 1);
	finish(&s, 0, "SURD");
}

/* Whatever the frontend says that they may. */
static void observers_control_nothing(void)
{
	struct scene s;

	attach(&s);
	call_as(&s, OBSERVER, RPC_METHOD_RUNTIME_INFO, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_RUNTIME_INFO, NULL);
	call_as(&s, OBSERVER, RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\"}");
	expect(&s, IPC_ERROR, RPC_METHOD_GPU_SUSPEND, "but not control it");
	finish(&s, 0, "D");
}

/* A frontend that names one is not itself any more: nothing is done for it. */
static void strangers_end_the_session(void)
{
	static const uint64_t strangers[] = { 0, 79, UINT64_MAX };

	for (size_t i = 0; i < TEST_COUNT(strangers); i++) {
		struct scene s;

		attach(&s);
		call(&s, RPC_METHOD_RUNTIME_INFO, "{\"session\":\"s7\"}");
		expect(&s, IPC_REPLY, RPC_METHOD_RUNTIME_INFO, NULL);
		call_as(&s, strangers[i], RPC_METHOD_GPU_SUSPEND, "{\"session\":\"s7\"}");
		expect(&s, IPC_OVER, RPC_END_REASON_STOPPED, NULL);
		finish(&s, 0, "D");
	}
}

/* So many connections are let in and closed: the first is forgotten, which is its own matter alone. */
static void forgotten_clients_are_refused(void)
{
	enum { FIRST = 1000, CALLS_EACH = 16 };
	struct scene s;

	attach(&s);
	for (uint64_t i = 0; i <= IPC_CLIENTS_MAX; i++) {
		let_in(s.deadline, FIRST + i, IPC_RIGHT_READ);
		if (i % CALLS_EACH)
			continue;
		/* The worker reads what it is told before it serves somebody whom it does not know. */
		call_as(&s, FIRST + i, RPC_METHOD_RUNTIME_INFO, "{\"session\":\"s7\"}");
		expect(&s, IPC_REPLY, RPC_METHOD_RUNTIME_INFO, NULL);
	}
	call_as(&s, FIRST + 1, RPC_METHOD_SESSION_ATTACH, "{}");
	expect(&s, IPC_ERROR, RPC_METHOD_SESSION_ATTACH, "too many clients");
	call(&s, RPC_METHOD_RUNTIME_INFO, "{\"session\":\"s7\"}");
	expect(&s, IPC_REPLY, RPC_METHOD_RUNTIME_INFO, NULL);
	finish(&s, 0, "D");
}

/* The handshake is answered first; an exception is announced and then forwarded. */
static void events_are_announced(void)
{
	struct scene s;

	attach(&s);
	TEST_EQ(write(events[1], "x", 1), 1);
	expect(&s, IPC_NOTIFY, RPC_NOTIFICATION_EXCEPTION_RAISED, "\"exceptions\":[\"wave_trap\"]");
	TEST_EQ(write(events[1], "r", 1), 1);
	expect(&s, IPC_NOTIFY, RPC_NOTIFICATION_RUNTIME_CHANGED, "\"state\":\"disabled\"");
	finish(&s, 0, "fhD");
}

static void lost_session_ends(void)
{
	struct scene s;

	attach(&s);
	TEST_EQ(write(events[1], "l", 1), 1);
	expect(&s, IPC_OVER, RPC_END_REASON_LOST, NULL);
	finish(&s, 0, "D");
	/* End of file without a word of the kernel. */
	attach(&s);
	shutdown(events[1], SHUT_WR);
	expect(&s, IPC_OVER, RPC_END_REASON_LOST, NULL);
	finish(&s, 0, "D");
}

static void exit_of_the_target_ends(void)
{
	struct scene s;

	attach(&s);
	kill(s.target, SIGKILL);
	expect(&s, IPC_OVER, RPC_END_REASON_EXITED, NULL);
	finish(&s, 0, "D");
}

/* A signal to the target passes while the worker has other things to do. */
static void target_keeps_its_signals(void)
{
	struct scene s;

	attach(&s);
	for (int i = 0; i < 100; i++) {
		kill(s.target, SIGWINCH);
		call(&s, RPC_METHOD_SESSION_ATTACH, "");
		expect(&s, IPC_REPLY, RPC_METHOD_SESSION_ATTACH, NULL);
	}
	kill(s.target, SIGTERM);
	expect(&s, IPC_OVER, RPC_END_REASON_EXITED, NULL);
	finish(&s, 0, "D");
}

TEST_SUITE(worker_session, TEST(end_of_file_undoes_everything), TEST(death_of_the_monitor_and_sigterm),
	   TEST(lease_expires), TEST(no_lease_ends_early),
	   TEST(lease_is_renewed), TEST(lost_writer), TEST(guard_is_armed),
	   TEST(failed_attach_is_reported), TEST(wrong_calls_are_refused), TEST(uses_are_told),
	   TEST(observers_control_nothing), TEST(strangers_end_the_session),
	   TEST(forgotten_clients_are_refused), TEST(events_are_announced),
	   TEST(lost_session_ends), TEST(exit_of_the_target_ends), TEST(target_keeps_its_signals));
