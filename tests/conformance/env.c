/* SPDX-License-Identifier: MIT */
#include "env.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define CHILDREN_MAX 32
#define MAPS_MAX     16

static struct {
	bool registered, real;
	char dir[128], kfd_path[160], status_text[262144];
	int kfd;
	pid_t sim;
	pid_t children[CHILDREN_MAX];
	size_t n_children;
	int fds[256];
	size_t n_fds;
	void *maps[MAPS_MAX];
	size_t n_maps;
	unsigned int serial;
} env = { .kfd = -1 };

static void keep_fd(int fd)
{
	if (fd >= 0 && env.n_fds < TEST_COUNT(env.fds))
		env.fds[env.n_fds++] = fd;
}

/* ---- begin and end ---- */

/* A traced child reports stops first; a dead one is gone for good. */
static void reap(pid_t pid)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	int status;

	while (clock_left_ms(deadline)) {
		pid_t r = waitpid(pid, &status, __WALL | WNOHANG);

		if (r < 0 || (r == pid && (WIFEXITED(status) || WIFSIGNALED(status))))
			return;
		if (!r)
			usleep(1000);
	}
	CU_FAIL("a killed child did not go away");
}

static void kill_children(void)
{
	for (size_t i = 0; i < env.n_children; i++)
		kill(env.children[i], SIGKILL);
	for (size_t i = 0; i < env.n_children; i++)
		reap(env.children[i]);
	env.n_children = 0;
}

/* @return the simulator's wait status, or -1 if it had to be killed. */
static int stop_sim(void)
{
	uint64_t deadline = clock_deadline_ms(PATIENCE_MS);
	int status = -1;

	if (env.sim <= 0)
		return 0;
	kill(env.sim, SIGTERM);
	while (waitpid(env.sim, &status, WNOHANG) != env.sim) {
		if (!clock_left_ms(deadline)) {
			kill(env.sim, SIGKILL);
			waitpid(env.sim, NULL, 0);
			status = -1;
			break;
		}
		usleep(1000);
	}
	env.sim = 0;
	umount2(env.dir, MNT_DETACH);
	rmdir(env.dir);
	return status;
}

static int env_stop(void)
{
	kill_children();
	for (size_t i = 0; i < env.n_fds; i++)
		close(env.fds[i]);
	env.n_fds = 0;
	for (size_t i = 0; i < env.n_maps; i++)
		munmap(env.maps[i], sizeof(struct simapp_status));
	env.n_maps = 0;
	if (env.kfd >= 0)
		close(env.kfd);
	env.kfd = -1;
	return stop_sim();
}

static void env_atexit(void)
{
	env_stop();
}

void env_begin(void)
{
	if (!env.registered) {
		env.registered = true;
		signal(SIGPIPE, SIG_IGN);
		atexit(env_atexit);
	}
	env_stop();
}

void env_end(void)
{
	/* A simulator that dies, or ends with a sanitizer's complaint, fails the test. */
	TEST_EQ(env_stop(), 0);
}

/* ---- the device ---- */

static void program_path(const char *name, const char *variable, char *ret, size_t size)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (getenv(variable)) {
		str_copy(ret, size, getenv(variable));
		return;
	}
	self[n < 0 ? 0 : n] = 0;
	snprintf(ret, size, "%s/../bin/%s", dirname(self), name);
}

static void child_setup(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	/* 0: the parent lives outside our pid namespace. */
	if (getppid() != parent && getppid() != 0)
		_exit(127);
}

static bool read_line(int fd, char *buf, size_t size, int timeout_ms)
{
	uint64_t deadline = clock_deadline_ms((uint64_t)timeout_ms);
	size_t n = 0;

	while (n + 1 < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, clock_left_ms(deadline)) != 1 || read(fd, buf + n, 1) != 1)
			return false;
		if (buf[n++] == '\n') {
			buf[n - 1] = 0;
			return true;
		}
	}
	return false;
}

static bool sim_start(const char *kernel, const char *gpus, const char *extra)
{
	char path[PATH_MAX], line[256];
	const char *argv[] = { path, "--kernel", kernel, "--gpus", gpus, extra, NULL };
	pid_t parent = getpid();
	int p[2];

	program_path("gpu-agent-sim", "GPU_AGENT_SIM", path, sizeof(path));
	if (pipe2(p, O_CLOEXEC))
		return false;
	env.sim = fork();
	if (env.sim == 0) {
		/* Not SIGKILL: it shall unmount when we die. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(127);
		dup2(p[1], 1);
		execv(path, (char *const *)argv);
		_exit(127);
	}
	close(p[1]);
	if (!read_line(p[0], line, sizeof(line), PATIENCE_MS) || !str_starts_with(line, "ready ")) {
		close(p[0]);
		return false;
	}
	close(p[0]);
	str_copy(env.dir, sizeof(env.dir), line + 6);
	snprintf(env.kfd_path, sizeof(env.kfd_path), "%s/kfd", env.dir);
	return true;
}

static bool device_open(void)
{
	env.kfd = open(env.kfd_path, O_RDWR | O_CLOEXEC);
	CU_ASSERT(env.kfd >= 0);
	return env.kfd >= 0;
}

bool env_sim(const char *kernel, const char *gpus, const char *extra)
{
	if (getenv("GPU_AGENT_KFD")) {
		test_skip("needs simulated GPUs, not %s", getenv("GPU_AGENT_KFD"));
		return false;
	}
	if (access("/dev/fuse", R_OK | W_OK) || geteuid()) {
		test_skip("needs root and /dev/fuse");
		return false;
	}
	env.real = false;
	if (!sim_start(kernel, gpus, extra)) {
		CU_FAIL("the simulator did not start");
		return false;
	}
	return device_open();
}

bool env_next(const char *kernel, const char *gpus, const char *extra)
{
	TEST_EQ(env_stop(), 0);
	return env_sim(kernel, gpus, extra);
}

bool env_plain(const char *permissions)
{
	const char *path = getenv("GPU_AGENT_KFD"), *rule = getenv("GPU_AGENT_KFD_PERMISSIONS");
	char option[40];

	snprintf(option, sizeof(option), "--permissions=%s", permissions ? permissions : "process");
	if (!path)
		return env_sim(env_efault_leaves_session() ? "1.17" : "1.17+", "none", option);
	if (permissions && (!rule || strcmp(rule, permissions))) {
		test_skip("%s follows another permission rule, or GPU_AGENT_KFD_PERMISSIONS "
			  "does not say which",
			  path);
		return false;
	}
	env.real = true;
	str_copy(env.kfd_path, sizeof(env.kfd_path), path);
	return device_open();
}

bool env_efault_leaves_session(void)
{
	const char *v = getenv("GPU_AGENT_KFD_EFAULT");

	return !v || strcmp(v, "new");
}

int env_kfd(void)
{
	return env.kfd;
}

const char *env_kfd_path(void)
{
	return env.kfd_path;
}

const char *env_dir(void)
{
	return env.dir;
}

pid_t env_sim_lost(void)
{
	pid_t pid = env.sim;

	env.sim = 0;
	return pid;
}

int env_control_try(const char *line)
{
	char path[160];
	ssize_t n;
	int fd, saved;

	snprintf(path, sizeof(path), "%s/control", env.dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, line, strlen(line));
	saved = errno;
	close(fd);
	return n < 0 ? -saved : 0;
}

void env_control(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	TEST_EQ(env_control_try(line), 0);
}

const char *env_status(void)
{
	char path[160];
	char *data = NULL;
	size_t size;

	snprintf(path, sizeof(path), "%s/control", env.dir);
	env.status_text[0] = 0;
	if (!fd_read_file(path, sizeof(env.status_text) - 1, &data, &size))
		memcpy(env.status_text, data, size + 1);
	free(data);
	return env.status_text;
}

/* ---- processes ---- */

static void keep_child(pid_t pid)
{
	if (pid > 0 && env.n_children < CHILDREN_MAX)
		env.children[env.n_children++] = pid;
}

void env_reaped(pid_t pid)
{
	for (size_t i = 0; i < env.n_children; i++)
		if (env.children[i] == pid)
			env.children[i] = env.children[--env.n_children];
}

static struct simapp_status *map_status(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p;

	unlink(path);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, sizeof(struct simapp_status), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED || env.n_maps == MAPS_MAX)
		return NULL;
	env.maps[env.n_maps++] = p;
	return p;
}

static void simapp_exec(int in, int out, const char *status, const char *script)
{
	char path[PATH_MAX], full[1024];

	program_path("gpu-agent-simapp", "GPU_AGENT_SIMAPP", path, sizeof(path));
	snprintf(full, sizeof(full), "%s; listen", script);
	dup2(in, 0);
	dup2(out, 1);
	execl(path, "gpu-agent-simapp", "--kfd", env.kfd_path, "--status-file", status,
	      "--realtime", "-e", full, NULL);
	_exit(127);
}

bool target_start(struct target *t, const char *script)
{
	char status[64], line[512];
	int in[2], out[2];
	pid_t parent = getpid();

	snprintf(status, sizeof(status), "/tmp/conformance.%d.%u", getpid(), env.serial++);
	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return false;
	t->pid = fork();
	if (t->pid == 0) {
		child_setup(parent);
		simapp_exec(in[0], out[1], status, script);
	}
	close(in[0]);
	close(out[1]);
	t->in = in[1];
	t->out = out[0];
	keep_fd(t->in);
	keep_fd(t->out);
	keep_child(t->pid);
	if (!read_line(t->out, line, sizeof(line), PATIENCE_MS) ||
	    !str_starts_with(line, "ready ")) {
		CU_FAIL("simapp did not get ready");
		unlink(status);
		return false;
	}
	t->status = map_status(status);
	CU_ASSERT_PTR_NOT_NULL(t->status);
	return t->status;
}

static void bare_run(void *data)
{
	for (;;)
		pause();
}

bool target_start_bare(struct target *t)
{
	*t = (struct target){ .pid = env_monitor(bare_run, NULL), .in = -1, .out = -1 };
	return t->pid > 0;
}

void target_send(struct target *t, const char *command)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s\n", command);

	TEST_EQ(write(t->in, line, (size_t)n), n);
}

int target_reply(struct target *t, int timeout_ms)
{
	struct pollfd p = { .fd = t->out, .events = POLLIN };
	char line[256];

	if (poll(&p, 1, timeout_ms) != 1)
		return -ETIMEDOUT;
	if (!read_line(t->out, line, sizeof(line), PATIENCE_MS))
		return -EPIPE;
	if (!strcmp(line, "ok"))
		return 0;
	for (int e = 1; e < 134; e++) {
		const char *name = strerrorname_np(e);

		if (name && str_starts_with(line, "error ") && !strcmp(line + 6, name))
			return -e;
	}
	return -EPROTO;
}

int target_command(struct target *t, const char *command)
{
	target_send(t, command);
	return target_reply(t, PATIENCE_MS);
}

void target_kill(struct target *t)
{
	kill(t->pid, SIGKILL);
	reap(t->pid);
	env_reaped(t->pid);
}

const struct simapp_queue *target_queue(const struct target *t, uint32_t i)
{
	return &t->status->queues[i];
}

uint64_t target_read_index(const struct target *t, uint32_t i)
{
	uint64_t v = UINT64_MAX;
	struct iovec local = { &v, sizeof(v) };
	struct iovec remote = { (void *)(uintptr_t)target_queue(t, i)->read_index_addr, sizeof(v) };

	CU_ASSERT(process_vm_readv(t->pid, &local, 1, &remote, 1, 0) == sizeof(v));
	return v;
}

static bool queue_moves(const struct target *t, uint32_t i, uint64_t within_ms)
{
	uint64_t first = target_read_index(t, i), deadline = clock_deadline_ms(within_ms);

	while (clock_left_ms(deadline)) {
		if (target_read_index(t, i) != first)
			return true;
		usleep(2000);
	}
	return false;
}

bool target_queue_runs(const struct target *t, uint32_t i)
{
	return queue_moves(t, i, PATIENCE_MS);
}

bool target_queue_stands(const struct target *t, uint32_t i)
{
	return !queue_moves(t, i, 500);
}

struct thread_job {
	int (*run)(void *data);
	void *data;
	int result;
};

int env_in_child(int (*run)(void *data), void *data)
{
	int p[2], result = -EPIPE;
	pid_t parent = getpid(), pid;

	if (pipe2(p, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid == 0) {
		child_setup(parent);
		result = run(data);
		_exit(write(p[1], &result, sizeof(result)) != sizeof(result));
	}
	close(p[1]);
	if (read(p[0], &result, sizeof(result)) != sizeof(result))
		result = -EPIPE;
	close(p[0]);
	waitpid(pid, NULL, 0);
	return result;
}

static void *thread_run(void *arg)
{
	struct thread_job *job = arg;

	job->result = job->run(job->data);
	return NULL;
}

int env_in_thread(int (*run)(void *data), void *data)
{
	struct thread_job job = { run, data, 0 };
	pthread_t t;

	if (pthread_create(&t, NULL, thread_run, &job))
		return -EAGAIN;
	pthread_join(t, NULL);
	return job.result;
}

pid_t env_monitor(void (*run)(void *data), void *data)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		child_setup(parent);
		run(data);
		_exit(0);
	}
	keep_child(pid);
	return pid;
}
