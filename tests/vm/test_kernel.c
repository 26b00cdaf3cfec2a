/* SPDX-License-Identifier: MIT */
/*
 * libkfdtrap on the real driver, without a GPU: every command, on a target of its own.
 *
 * TEST_BREAK=thread issues each command from a helper thread, as a library might that hides a
 * worker thread inside: this program must then fail (tests/vm/in-guest).
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kfdtrap.h"
#include "testlib.h"

#define RUNTIME_MASK KFDTRAP_EC_MASK(KFDTRAP_EC_PROCESS_RUNTIME)
#define ANSWER_MS    10000
#define SILENT_MS 300
#define UNKNOWN_GPU  4711u

DEFINE_AUTO(struct kfdtrap_topology *, kfdtrap_topology_destroy);
DEFINE_AUTO(struct kfdtrap_process_list *, kfdtrap_process_list_destroy);

/* ------------------------------------------------------------------ the broken library ------- */

struct call {
	int fd, ret, err;
	unsigned long request;
	void *arg;
};

static void *call_run(void *data)
{
	struct call *c = data;

	c->ret = ioctl(c->fd, c->request, c->arg);
	c->err = errno;
	return NULL;
}

static int ioctl_in_thread(int fd, unsigned long request, void *arg)
{
	struct call c = { .fd = fd, .request = request, .arg = arg };
	pthread_t t;

	if (pthread_create(&t, NULL, call_run, &c) || pthread_join(t, NULL))
		return -1;
	errno = c.err;
	return c.ret;
}

static const struct kfdtrap_sys broken_sys = { .ioctl = ioctl_in_thread };

static const struct kfdtrap_sys *sys_under_test(void)
{
	return getenv("TEST_BREAK") ? &broken_sys : NULL;
}

/* ------------------------------------------------------------------ the target --------------- */

struct scene {
	pid_t pid;
	FILE *in, *out;
	uint64_t r_debug;
	int kfd, events;
	struct kfdtrap *kt;
	struct kfdtrap_runtime_info info;
};

/* One line "WORD RESULT" of the target; false after ANSWER_MS. */
static bool answer(struct scene *s, const char *word, int base, long long *ret)
{
	struct pollfd p = { .fd = fileno(s->out), .events = POLLIN };
	char line[80], *space;

	if (poll(&p, 1, test_slow_ms(ANSWER_MS)) != 1 || !fgets(line, sizeof(line), s->out))
		return false;
	space = strchr(line, ' ');
	if (!space)
		return false;
	*space = '\0';
	*ret = strtoll(space + 1, NULL, base);
	return !strcmp(line, word);
}

/* For as long as it would take a program that does not wait many times over. */
static bool is_silent(struct scene *s)
{
	struct pollfd p = { .fd = fileno(s->out), .events = POLLIN };

	return poll(&p, 1, test_slow_ms(SILENT_MS)) == 0;
}

static void say(struct scene *s, const char *word)
{
	fprintf(s->in, "%s\n", word);
	fflush(s->in);
}

static long long ask(struct scene *s, const char *word)
{
	long long r;

	say(s, word);
	return answer(s, word, 10, &r) ? r : -ETIMEDOUT;
}

static void exec_target(int in, int out)
{
	const char *program = getenv("VM_TARGET");

	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (program)
		execl(program, program, NULL);
	_exit(127);
}

static bool scene_start(struct scene *s)
{
	int in[2], out[2];
	long long r_debug = 0;

	*s = (struct scene){ .events = -1 };
	if (!getenv("VM_TARGET") || access("/dev/kfd", R_OK | W_OK) < 0) {
		test_skip("needs VM_TARGET and /dev/kfd");
		return false;
	}
	s->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	TEST_EQ(pipe2(in, O_CLOEXEC), 0);
	TEST_EQ(pipe2(out, O_CLOEXEC), 0);
	s->pid = fork();
	if (s->pid == 0)
		exec_target(in[0], out[1]);
	close(in[0]);
	close(out[1]);
	s->in = fdopen(in[1], "w");
	s->out = fdopen(out[0], "r");
	CU_ASSERT(answer(s, "ready", 16, &r_debug));
	s->r_debug = (uint64_t)r_debug;
	TEST_EQ(kfdtrap_create(s->kfd, (uint32_t)s->pid, sys_under_test(), &s->kt), 0);
	return s->kt;
}

static void scene_end(struct scene *s)
{
	if (!s->pid)
		return;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, __WALL);
	fclose(s->in);
	fclose(s->out);
	kfdtrap_destroy(s->kt);
	close(s->kfd);
	if (s->events >= 0)
		close(s->events);
}

/* Trace and enable; the session's own copy of the event socket is closed, as the agent does. */
static int scene_enable(struct scene *s)
{
	int pair[2], r;

	TEST_EQ(ptrace(PTRACE_SEIZE, s->pid, NULL, (void *)PTRACE_O_TRACEEXEC), 0);
	TEST_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	r = kfdtrap_enable(s->kt, RUNTIME_MASK, pair[1], &s->info);
	close(pair[1]);
	s->events = pair[0];
	return r;
}

/* 1: a byte came, 0: end of file, -1: neither in time. */
static int event_comes(struct scene *s)
{
	struct pollfd p = { .fd = s->events, .events = POLLIN };
	char byte;

	return poll(&p, 1, test_slow_ms(ANSWER_MS)) == 1 ? (int)read(s->events, &byte, 1) : -1;
}

#define SCENE(s)                                                                                   \
	auto_call(scene_end) struct scene s = { 0 };                                              \
	if (!scene_start(&s))                                                                      \
		return

/* ------------------------------------------------------------------ tests -------------------- */

static void device_and_version(void)
{
	uint32_t major = 0, minor = 0;
	struct stat st;

	SCENE(s);
	TEST_EQ(stat("/dev/kfd", &st), 0);
	CU_ASSERT(S_ISCHR(st.st_mode));
	TEST_EQ(kfdtrap_get_version(s.kfd, NULL, &major, &minor), 0);
	TEST_EQ(major, KFDTRAP_VERSION_MAJOR);
	TEST_EQ(minor, 17);
	TEST_EQ(kfdtrap_get_version(fileno(s.in), NULL, &major, &minor), -ENOTTY);
}

static const struct kfdtrap_process *find(const struct kfdtrap_process_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->n_processes; i++)
		if (list->processes[i].pid == (uint32_t)pid)
			return &list->processes[i];
	return NULL;
}

/* The CPU node, and a process as soon as it has the device open. */
static void topology_and_processes(void)
{
	auto_call(kfdtrap_topology_destroyp) struct kfdtrap_topology *topology = NULL;
	auto_call(kfdtrap_process_list_destroyp) struct kfdtrap_process_list *before = NULL;
	auto_call(kfdtrap_process_list_destroyp) struct kfdtrap_process_list *after = NULL;
	const struct kfdtrap_process *p;

	SCENE(s);
	TEST_EQ_FATAL(kfdtrap_topology_create(NULL, &topology), 0);
	TEST_EQ_FATAL(topology->n_nodes, 1);
	TEST_EQ(topology->generation, 1);
	TEST_EQ(topology->nodes[0].error, 0);
	TEST_EQ(topology->nodes[0].gpu_id, 0);
	TEST_EQ(topology->nodes[0].simd_count, 0);
	CU_ASSERT(topology->nodes[0].cpu_cores_count > 0);
	TEST_EQ_FATAL(kfdtrap_process_list_create(NULL, &before), 0);
	CU_ASSERT_PTR_NULL(find(before, s.pid));
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ_FATAL(kfdtrap_process_list_create(NULL, &after), 0);
	p = find(after, s.pid);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	TEST_EQ(p->n_queues, 0);
}

static void check_snapshots(struct scene *s)
{
	auto_free struct kfdtrap_queue *queues = NULL;
	auto_free struct kfdtrap_device *devices = NULL;
	struct kfdtrap_event event;
	size_t n = 77;

	TEST_EQ(kfdtrap_queue_snapshot_alloc(s->kt, 0, &queues, &n), 0);
	TEST_EQ(n, 0);
	n = 77;
	TEST_EQ(kfdtrap_device_snapshot_alloc(s->kt, 0, &devices, &n), 0);
	TEST_EQ(n, 0);
	TEST_EQ(kfdtrap_query_debug_event(s->kt, 0, &event), 0);
	TEST_EQ(kfdtrap_set_exceptions_enabled(s->kt, RUNTIME_MASK), 0);
	TEST_EQ(kfdtrap_query_runtime_info(s->kt, false, &s->info), -ENODATA);
	TEST_EQ(kfdtrap_send_runtime_event(s->kt, 0, KFDTRAP_ID_NONE, KFDTRAP_ID_NONE), 0);
	TEST_EQ(kfdtrap_send_runtime_event(s->kt,
					   KFDTRAP_EC_MASK(KFDTRAP_EC_DEVICE_MEMORY_VIOLATION),
					   UNKNOWN_GPU, KFDTRAP_ID_NONE),
		-ENODEV);
}

/* What hardware commands answer; @p refused is their errno with the runtime off, 0 when on. */
static void check_hardware(struct scene *s, int refused)
{
	uint32_t ids[] = { 5, 6 }, n = 77, id, previous, supported;

	TEST_EQ(kfdtrap_suspend_queues(s->kt, 0, ids, 2, 0, &n), refused);
	TEST_EQ(n, refused ? 77 : 0);
	TEST_EQ(ids[1], refused ? 6 : (6 | KFDTRAP_QUEUE_GONE));
	TEST_EQ(kfdtrap_resume_queues(s->kt, ids, 2, &n), refused);
	TEST_EQ(kfdtrap_resume_queues(s->kt, NULL, 0, &n), refused);
	TEST_EQ(kfdtrap_set_wave_launch_mode(s->kt, KFDTRAP_LAUNCH_NORMAL), refused);
	TEST_EQ(kfdtrap_set_wave_launch_mode(s->kt, 77), refused ? refused : -EINVAL);
	TEST_EQ(kfdtrap_set_wave_launch_override(s->kt, KFDTRAP_OVERRIDE_OR, 0, 0, &previous,
						 &supported),
		refused);
	if (!refused)
		TEST_EQ(supported, UINT32_MAX);
	TEST_EQ(kfdtrap_set_flags(s->kt, KFDTRAP_FLAG_SINGLE_MEM_OP, &previous), refused);
	TEST_EQ(kfdtrap_set_flags(s->kt, 0, &previous), refused);
	if (!refused)
		TEST_EQ(previous, KFDTRAP_FLAG_SINGLE_MEM_OP);
	TEST_EQ(kfdtrap_set_node_address_watch(s->kt, UNKNOWN_GPU, 0, 0, KFDTRAP_WATCH_ALL, &id),
		refused ? refused : -ENODEV);
	TEST_EQ(kfdtrap_clear_node_address_watch(s->kt, UNKNOWN_GPU, 0),
		refused ? refused : -ENODEV);
}

static void session_before_the_runtime(void)
{
	SCENE(s);
	TEST_EQ(kfdtrap_enable(s.kt, 0, s.kfd, &s.info), -ESRCH);
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ(kfdtrap_enable(s.kt, 0, s.kfd, &s.info), -EPERM);
	TEST_EQ_FATAL(scene_enable(&s), 0);
	TEST_EQ(s.info.state, KFDTRAP_RUNTIME_DISABLED);
	TEST_EQ(s.info.r_debug, 0);
	TEST_EQ(kfdtrap_enable(s.kt, 0, s.events, &s.info), -EALREADY);
	check_snapshots(&s);
	check_hardware(&s, -EPERM);
	TEST_EQ(kfdtrap_disable(s.kt), 0);
	TEST_EQ(kfdtrap_disable(s.kt), -EINVAL);
}

static void session_with_the_runtime(void)
{
	SCENE(s);
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ(ask(&s, "on"), 0);
	TEST_EQ_FATAL(scene_enable(&s), 0);
	TEST_EQ(s.info.state, KFDTRAP_RUNTIME_ENABLED);
	TEST_EQ(s.info.r_debug, s.r_debug);
	TEST_EQ(s.info.ttmp_setup, 0);
	check_snapshots(&s);
	check_hardware(&s, 0);
	TEST_EQ(kfdtrap_disable(s.kt), 0);
}

/* A thread that uses the runtime's calls waits for the debugger each time. */
static void handshake(void)
{
	static const char *const words[] = { "on", "off", "on" };
	struct kfdtrap_event event;
	long long r = -1;

	SCENE(s);
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ_FATAL(scene_enable(&s), 0);
	for (size_t i = 0; i < TEST_COUNT(words); i++) {
		bool on = !strcmp(words[i], "on");

		say(&s, words[i]);
		TEST_ROW_EQ(i, event_comes(&s), 1);
		TEST_ROW_EQ(i, kfdtrap_query_debug_event(s.kt, 0, &event), 1);
		TEST_ROW_EQ(i, event.exceptions, RUNTIME_MASK);
		TEST_ROW_EQ(i, kfdtrap_query_runtime_info(s.kt, true, &s.info), 0);
		TEST_ROW_EQ(i, s.info.state, on);
		TEST_ROW_EQ(i, s.info.r_debug, on ? s.r_debug : 0);
		TEST_ROW_EQ(i, kfdtrap_query_debug_event(s.kt, 0, &event), 0);
		check_hardware(&s, on ? 0 : -EPERM);
		TEST_ROW_EQ(i, is_silent(&s), true);
		TEST_ROW_EQ(i, kfdtrap_send_runtime_event(s.kt, RUNTIME_MASK, KFDTRAP_ID_NONE,
							  KFDTRAP_ID_NONE),
			    0);
		CU_ASSERT_FATAL(answer(&s, words[i], 10, &r));
		TEST_ROW_EQ(i, r, 0);
	}
	TEST_EQ(kfdtrap_disable(s.kt), 0);
}

/* The device may be closed and opened again, by either side, and the session goes on. */
static void session_outlives_descriptors(void)
{
	struct kfdtrap_event event;

	SCENE(s);
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ_FATAL(scene_enable(&s), 0);
	TEST_EQ(ask(&s, "close"), 0);
	TEST_EQ(kfdtrap_query_debug_event(s.kt, 0, &event), 0);
	close(s.kfd);
	s.kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	kfdtrap_destroy(s.kt);
	TEST_EQ_FATAL(kfdtrap_create(s.kfd, (uint32_t)s.pid, sys_under_test(), &s.kt), 0);
	TEST_EQ(kfdtrap_query_debug_event(s.kt, 0, &event), 0);
	TEST_EQ(kfdtrap_disable(s.kt), 0);
}

/* exec drops the address space and with it the session. */
static void exec_ends_the_session(void)
{
	long long ignored;
	int status = 0;

	SCENE(s);
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ_FATAL(scene_enable(&s), 0);
	say(&s, "exec");
	TEST_EQ(waitpid(s.pid, &status, __WALL), s.pid);
	TEST_EQ(status >> 8, SIGTRAP | PTRACE_EVENT_EXEC << 8);
	TEST_EQ(event_comes(&s), 0);
	TEST_EQ(kfdtrap_disable(s.kt), -ESRCH);
	TEST_EQ(ptrace(PTRACE_CONT, s.pid, NULL, NULL), 0);
	CU_ASSERT(answer(&s, "ready", 16, &ignored));
	/* Still traced: a new session needs no more. */
	TEST_EQ(kfdtrap_enable(s.kt, 0, s.events, &s.info), 0);
}

static void exit_ends_the_session(void)
{
	SCENE(s);
	TEST_EQ(ask(&s, "open"), 0);
	TEST_EQ_FATAL(scene_enable(&s), 0);
	say(&s, "exit");
	TEST_EQ(event_comes(&s), 0);
	TEST_EQ(kfdtrap_disable(s.kt), -ESRCH);
}

TEST_SUITE(kernel, TEST(device_and_version), TEST(topology_and_processes),
	   TEST(session_before_the_runtime), TEST(session_with_the_runtime), TEST(handshake),
	   TEST(session_outlives_descriptors), TEST(exec_ends_the_session),
	   TEST(exit_ends_the_session));
