/* SPDX-License-Identifier: MIT */
#include "agentd/hook/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/hook/file.h"
#include "base/cleanup.h"
#include "base/fd.h"

/* Limits of every hook: the size of a file that it writes, and how many it has open. */
#define FILE_BYTES_MAX ((rlim_t)64 << 20)
#define FILES_MAX      256
/* The interpreter of a script finds the script under this number; see start(). */
#define FD_FILE	 3
#define FD_ERROR 4

/*
 * The fixed variables come first; those of the job follow, which have other names, each once.  No
 * variable of a job is shorter than 12 bytes.
 */
#define ENV_FIXED 6
#define ENV_MAX	  (ENV_FIXED + HOOK_ENV_MAX / 12)

/* The hook's whole environment. */
struct environment {
	char home[HOOK_PATH_MAX + 8], user[HOOK_USER_MAX + 8], logname[HOOK_USER_MAX + 8];
	char hook[HOOK_PATH_MAX + 16];
	char *list[ENV_MAX + 1];
};

_Noreturn static void tell(int fd, const struct hook_child_error *e)
{
	/* The write cannot be partial: it is less than PIPE_BUF, and the pipe is empty. */
	if (write(fd, e, sizeof(*e)) < 0)
		_exit(126);
	_exit(127);
}

__attribute__((format(printf, 3, 4))) _Noreturn static void give_up(int fd, enum hook_end end,
								    const char *fmt, ...)
{
	struct hook_child_error e = { .end = end };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e.why, sizeof(e.why), fmt, ap);
	va_end(ap);
	tell(fd, &e);
}

/* Move the error pipe to FD_ERROR, and close all descriptors but that one and 0 to 2. */
static int place(int *error_fd)
{
	int high = fcntl(*error_fd, F_DUPFD_CLOEXEC, 32);

	if (high < 0 || dup3(high, FD_ERROR, O_CLOEXEC) < 0 ||
	    close_range(FD_ERROR + 1, ~0u, 0) < 0)
		return -errno;
	*error_fd = FD_ERROR;
	close(FD_FILE);
	return 0;
}

static int place_stdio(int output_fd)
{
	/* The document is opened again: all who have the same open file share its offset. */
	auto_close int document = open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC);

	if (document < 0)
		return -errno;
	if (dup2(document, STDIN_FILENO) < 0 || dup2(output_fd, STDOUT_FILENO) < 0 ||
	    dup2(output_fd, STDERR_FILENO) < 0)
		return -errno;
	return 0;
}

static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL); /* SIGKILL and SIGSTOP refuse, and are at it already. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * The service asks the kernel to spare the agent when memory runs out (OOMScoreAdjust=), which no hook is to have from
 * it.  Everybody may give that up.  The file is root's, for the runner hides: an agent of one user cannot write it, and
 * is not spared either, unless somebody has arranged that for all processes of the user.
 */
static void give_up_oom_favour(void)
{
	static const char path[] = "/proc/self/oom_score_adj";
	auto_free char *text = NULL;
	auto_close int fd = -1;
	size_t size;

	if (fd_read_file(path, 32, &text, &size) < 0 || text[0] != '-')
		return;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		fd_write_all(fd, "0", 1);
}

static int become(const struct hook_child *c)
{
	int r = hook_user_become(c->user);

	if (r < 0)
		return r;
	/*
	 * The hook dies with its runner.  The change of user resets this, so it comes after that;
	 * the runner may have died before, which only getppid() shows.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	return getppid() == c->runner ? 0 : -ESRCH;
}

/* No limit is raised above the one that the runner has. */
static int set_limits(const struct hook_child *c)
{
	const struct hook_limits *l = &c->job->limits;
	const rlim_t cpu_s = l->timeout_ms / 1000 + 1;
	const struct {
		int what;
		rlim_t soft, hard;
	} limits[] = {
		{ RLIMIT_CORE, 0, 0 },
		{ RLIMIT_CPU, cpu_s, cpu_s + 1 },
		{ RLIMIT_FSIZE, FILE_BYTES_MAX, FILE_BYTES_MAX },
		{ RLIMIT_NOFILE, FILES_MAX, FILES_MAX },
		{ RLIMIT_NPROC, c->processes, c->processes },
		{ RLIMIT_AS, l->memory_bytes, l->memory_bytes },
	};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct rlimit now, want = { limits[i].soft, limits[i].hard };

		if (getrlimit(limits[i].what, &now) < 0)
			return -errno;
		if (want.rlim_max > now.rlim_max)
			want.rlim_max = now.rlim_max;
		if (want.rlim_cur > want.rlim_max)
			want.rlim_cur = want.rlim_max;
		if (setrlimit(limits[i].what, &want) < 0)
			return -errno;
	}
	return 0;
}

static void make_environment(const struct hook_child *c, struct environment *e)
{
	static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
	static char lang[] = "LANG=C.UTF-8";
	const struct hook_job *job = c->job;
	size_t n = 0;

	e->list[n++] = path;
	e->list[n++] = lang;
	snprintf(e->hook, sizeof(e->hook), "GPU_AGENT_HOOK=%s", job->path);
	e->list[n++] = e->hook;
	if (c->user->name[0]) {
		snprintf(e->home, sizeof(e->home), "HOME=%s", c->user->home);
		snprintf(e->user, sizeof(e->user), "USER=%s", c->user->name);
		snprintf(e->logname, sizeof(e->logname), "LOGNAME=%s", c->user->name);
		e->list[n++] = e->home;
		e->list[n++] = e->user;
		e->list[n++] = e->logname;
	}
	for (const char *p = job->env, *end = p + job->env_size; p < end && n < ENV_MAX;
	     p += strlen(p) + 1)
		e->list[n++] = (char *)p;
	e->list[n] = NULL;
}

/* Execute the file that was judged, by its descriptor.  @return -errno, only if that fails. */
static int start(const struct hook_child *c, int file_fd)
{
	char *const argv[] = { (char *)c->job->path, NULL };
	struct environment env;
	int fd = file_fd == FD_FILE ? file_fd : dup3(file_fd, FD_FILE, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	make_environment(c, &env);
	syscall(SYS_execveat, fd, "", argv, env.list, AT_EMPTY_PATH);
	/*
	 * For a script whose descriptor closes on exec the kernel answers ENOENT, because the
	 * interpreter could not open the script (execveat(2), BUGS).  Only then this descriptor is
	 * left open in the hook.
	 */
	if (errno == ENOENT && fcntl(fd, F_SETFD, 0) == 0)
		syscall(SYS_execveat, fd, "", argv, env.list, AT_EMPTY_PATH);
	return -errno;
}

void hook_child_run(const struct hook_child *c)
{
	int error_fd = c->error_fd, file_fd = -1, r;
	char why[HOOK_WHY_MAX] = "";

	setsid();
	umask(077);
	reset_signals();
	give_up_oom_favour();
	r = place_stdio(c->output_fd);
	if (r == 0)
		r = place(&error_fd);
	if (r == 0 && chdir("/") < 0)
		r = -errno;
	if (r == 0)
		r = become(c);
	if (r < 0)
		give_up(error_fd, HOOK_END_FAILED, "cannot prepare for it: %s", strerror(-r));
	r = hook_file_open(c->job->path, c->user->uid, why, sizeof(why), &file_fd);
	if (r < 0)
		give_up(error_fd, HOOK_END_REFUSED, "%s", why);
	r = set_limits(c);
	if (r < 0)
		give_up(error_fd, HOOK_END_FAILED, "cannot limit it: %s", strerror(-r));
	r = start(c, file_fd);
	give_up(error_fd, HOOK_END_FAILED, "%s: %s%s", c->job->path, strerror(-r),
		r == -ENOENT ? " (the interpreter of its first line)" :
		r == -ENOEXEC ? " (a script needs a first line such as #!/bin/sh)" : "");
}

void hook_child_check(const struct hook_child *c)
{
	struct hook_child_error e = { .end = HOOK_END_EXIT };
	int file_fd, r = become(c);

	if (r < 0)
		give_up(c->error_fd, HOOK_END_FAILED, "cannot become uid %u: %s", c->user->uid,
			strerror(-r));
	if (hook_file_open(c->job->path, c->user->uid, e.why, sizeof(e.why), &file_fd) < 0)
		e.end = HOOK_END_REFUSED;
	tell(c->error_fd, &e);
}
