/* SPDX-License-Identifier: MIT */
/* How answers are printed, and the actors that ask. */
#include "answers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

/* Far longer than a call that does not wait takes, also in an emulated machine. */
#define SILENCE_MS 250
/* For a part that does not wait for anybody. */
#define PLAY_MS 10000

#define ANSWER_GROUPS(X)                                                                           \
	X(device)                                                                                  \
	X(arguments)                                                                               \
	X(events)                                                                                  \
	X(event_waits)                                                                             \
	X(rights)                                                                                  \
	X(enable)                                                                                  \
	X(event_fds)                                                                               \
	X(snapshots)                                                                               \
	X(exceptions)                                                                              \
	X(settings)                                                                                \
	X(runtime)                                                                                 \
	X(handshake)                                                                               \
	X(threads)                                                                                 \
	X(forks)                                                                                   \
	X(execs)                                                                                   \
	X(shared_memory)                                                                           \
	X(descriptor_tables)                                                                       \
	X(namespaces)                                                                              \
	X(deaths)

static struct {
	const char *group;
	char words[160];
} now;

int actor_kfd = -1;

bool answers_begin(const char *group)
{
	now.group = group;
	return env_plain(getenv("GPU_AGENT_KFD_PERMISSIONS"));
}

void answer_with(const char *fmt, ...)
{
	size_t n = strlen(now.words);
	va_list ap;

	va_start(ap, fmt);
	now.words[n] = ' ';
	vsnprintf(now.words + n + 1, sizeof(now.words) - n - 1, fmt, ap);
	va_end(ap);
}

void answer(int result, const char *name, ...)
{
	const char *error = result < 0 ? strerrorname_np(-result) : NULL;
	va_list ap;

	printf("ANSWER %s.", now.group);
	va_start(ap, name);
	vprintf(name, ap);
	va_end(ap);
	if (error)
		printf(" %s%s\n", error, now.words);
	else
		printf(" %d%s\n", result, now.words);
	fflush(stdout);
	now.words[0] = '\0';
}

/* ---- actors ---- */

static void actor_run(void *data)
{
	int fd = *(int *)data, r;
	struct part p;
	sigset_t set;

	/* The end of its own child would bring a traced actor to a stop. */
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (read(fd, &p, sizeof(p)) == sizeof(p)) {
		r = p.play(p.with);
		if (write(fd, &r, sizeof(r)) != sizeof(r))
			return;
	}
}

bool actor_start(struct actor *a)
{
	int sv[2] = { -1, -1 };

	TEST_EQ_FATAL(fd_socketpair(0, sv), 0);
	actor_kfd = -1;
	a->pid = env_monitor(actor_run, &sv[1]);
	a->fd = sv[0];
	close(sv[1]);
	return a->pid > 0;
}

void actor_send(const struct actor *a, const struct part *p)
{
	TEST_EQ(write(a->fd, p, sizeof(*p)), sizeof(*p));
}

int actor_reply(const struct actor *a, int timeout_ms)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };
	int r = 0;

	if (poll(&p, 1, timeout_ms) != 1)
		return -ETIMEDOUT;
	return read(a->fd, &r, sizeof(r)) == sizeof(r) ? r : -EPIPE;
}

int actor_plays(const struct actor *a, const struct part *p)
{
	actor_send(a, p);
	return actor_reply(a, test_slow_ms(PLAY_MS));
}

bool actor_waits(const struct actor *a)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };

	return poll(&p, 1, test_slow_ms(SILENCE_MS)) == 0;
}

int play_open(const uint64_t *with)
{
	actor_kfd = open(env_kfd_path(), O_RDWR | O_CLOEXEC);
	return actor_kfd < 0 ? -errno : 0;
}

int play_close(const uint64_t *with)
{
	return close(TAKE_FD(actor_kfd)) ? -errno : 0;
}

int play_runtime_once(const uint64_t *with)
{
	struct kfdabi_runtime_enable_args a = { .r_debug = with[1], .mode_mask = (uint32_t)with[0] };

	return device_call(actor_kfd, KFDABI_IOC_RUNTIME_ENABLE, &a);
}

int play_runtime(const uint64_t *with)
{
	int r;

	do
		r = play_runtime_once(with);
	while (r == -EINTR);
	return r;
}

int device_call(int fd, uint32_t word, void *arg)
{
	int r = ioctl(fd, (unsigned long)word, arg);

	return r < 0 ? -errno : r;
}

/* ---- operations ---- */

static const char *const op_names[] = {
	"enable", "disable", "send", "exceptions", "override", "launch_mode", "suspend", "resume",
	"watch", "unwatch", "flags", "query", "info", "queues", "devices",
};

const char *op_name(uint32_t op)
{
	return op < TEST_COUNT(op_names) ? op_names[op] : op == 15 ? "op15" : "op_max";
}

int harmless_op(int fd, pid_t pid, uint32_t op)
{
	struct kfdabi_runtime_info info;
	uint8_t buf[128];
	uint32_t ids[] = { 5, 6 };
	struct dbg d = { .pid = pid, .fd = fd, .rd = -1 };
	int r;

	switch (op) {
	case KFDABI_DBG_ENABLE:
		d.wr = open("/dev/null", O_WRONLY | O_CLOEXEC);
		r = dbg_enable(&d, 0);
		close(d.wr);
		return r;
	case KFDABI_DBG_SUSPEND_QUEUES:
		return dbg_suspend(&d, 0, ids, 2);
	case KFDABI_DBG_RESUME_QUEUES:
		return dbg_resume(&d, ids, 2);
	case KFDABI_DBG_SET_NODE_ADDRESS_WATCH:
		return dbg_watch(&d, 4711, 0);
	case KFDABI_DBG_CLEAR_NODE_ADDRESS_WATCH:
		return dbg_unwatch(&d, 4711, 0);
	case KFDABI_DBG_QUERY_EXCEPTION_INFO:
		return dbg_info(&d, KFDABI_EC_PROCESS_RUNTIME, 0, &info, sizeof(info), false);
	case KFDABI_DBG_GET_QUEUE_SNAPSHOT:
		return dbg_queues(&d, 0, buf, 0, 64);
	case KFDABI_DBG_GET_DEVICE_SNAPSHOT:
		return dbg_devices(&d, 0, buf, 0, 120);
	default:
		return dbg_op(&d, op);
	}
}

bool actor_stop(pid_t pid)
{
	return !ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) && waitpid(pid, NULL, __WALL) == pid;
}

#define DECLARE(name) void name(void);
#define LIST(name)    TEST(name),

ANSWER_GROUPS(DECLARE)

TEST_SUITE(answers, ANSWER_GROUPS(LIST));
