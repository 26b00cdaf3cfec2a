/* SPDX-License-Identifier: MIT */
#include "agentd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"

/* Above all places, so that none is overwritten before it is copied. */
#define HIGH_FD 32
/* Between two looks at a child that poll() cannot wait for. */
#define NAP_MS	5

bool child_is_worker(const char *exe)
{
	static const char worker[] = "gpu-agent-worker";
	const char *name = str_base_name(exe);

	return str_starts_with(name, worker) &&
	       (!name[sizeof(worker) - 1] || strcmp(name + sizeof(worker) - 1, " (deleted)") == 0);
}

int child_find_directory(char *ret, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", ret, size - 1);
	char *slash;

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

void child_place_fds(const int from[], const int to[], size_t n)
{
	int high[4];

	for (size_t i = 0; i < n; i++) {
		high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, HIGH_FD);
		if (from[i] >= 0 && high[i] < 0)
			_exit(127);
	}
	for (size_t i = 0; i < n; i++)
		if (high[i] >= 0 && dup2(high[i], to[i]) < 0)
			_exit(127);
}

static bool is_for_programs(const char *variable)
{
	static const char *const prefixes[] = { "CUDA", "CUDBG", "NVIDIA", "NVLOG", "NV_", "__NV", "__GL" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts_with(variable, prefixes[i]))
			return true;
	return false;
}

void child_clean_environment(void)
{
	char **kept = environ;

	for (char **e = environ; *e; e++)
		if (!is_for_programs(*e))
			*kept++ = *e;
	*kept = NULL;
}

void child_die_first(void)
{
	static const char score[] = "500";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Where it cannot be written, the kernel chooses by size alone. */
	if (fd >= 0 && write(fd, score, sizeof(score) - 1) < 0)
		errno = 0;
	if (fd >= 0)
		close(fd);
}

_Noreturn void child_exec(const char *program, const char *const argv[], int blocked)
{
	sigset_t set;

	sigemptyset(&set);
	if (blocked)
		sigaddset(&set, blocked);
	sigprocmask(SIG_SETMASK, &set, NULL);
	setsid();
	execv(program, (char *const *)argv);
	_exit(127);
}

int child_wait(pid_t pid, uint64_t deadline_ns, int *ret_status)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	pid_t got;
	int left;

	while ((got = waitpid(pid, ret_status, WNOHANG)) == 0) {
		left = clock_left_ms(deadline_ns);
		if (!left)
			return -ETIMEDOUT;
		/* One that has ended while a stranger traces it is not to be reaped yet. */
		if (poll(&p, 1, p.fd < 0 && left > NAP_MS ? NAP_MS : left) > 0)
			p.fd = -1;
	}
	return got < 0 ? -errno : 0;
}
