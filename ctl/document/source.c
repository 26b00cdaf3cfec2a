/* SPDX-License-Identifier: MIT */
/*
 * Core files are read by gpu-agent-worker --core, in a sandbox: a core may come from anywhere.  The
 * worker has the core as standard input and the socket as standard output, and ends when the socket
 * closes.
 */
#include "ctl/document/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "corefile/compress.h"
#include "paths.h"

#define PROGRAM	    "gpu-agent-worker"
#define NOT_FOUND   127 /* Exit status of a child that could not run it. */
/* Milliseconds that the worker has to end by itself. */
#define GOODBYE_MS  2000
#define ELF_MAGIC   "\177ELF"

static int failed(struct agent_err *err, int err_no, const char *path)
{
	return agent_err_set(err, RPC_ERROR_FAILED, err_no, "open", NULL, "%.120s: %s", path,
			     strerror(err_no));
}

/* ------------------------------------------------------------------ the program -------------- */

/*
 * Find the worker: beside this program in the build tree, and with the daemon's programs after
 * installation.
 */
static void find_program(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(PROGRAM) - 1);
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash + 1, PROGRAM);
		if (access(path, X_OK) == 0)
			return;
	}
	snprintf(path, PATH_MAX, "%s", LIBEXECDIR "/gpu-agent/" PROGRAM);
}

/*
 * The child becomes the worker: standard input is the core, standard output the socket; nothing
 * else is handed down.
 */
__attribute__((noreturn)) static void become_program(const char *path, int core, int sock,
						     pid_t parent)
{
	char program[PATH_MAX];
	sigset_t none;

	find_program(program);
	/* Neither descriptor may be where the other is to go. */
	core = fcntl(core, F_DUPFD, STDERR_FILENO + 1);
	sock = fcntl(sock, F_DUPFD, STDERR_FILENO + 1);
	if (core < 0 || sock < 0 || dup2(core, STDIN_FILENO) < 0 || dup2(sock, STDOUT_FILENO) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(NOT_FOUND);
	close_range(STDERR_FILENO + 1, UINT_MAX, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* Ctrl-C is for gpu-agentctl, which then closes the socket. */
	execl(program, PROGRAM, "--core", path, NULL);
	_exit(NOT_FOUND);
}

/* Start the worker and connect to it. */
static int start(struct source_core *s, int core, struct agent_err *err)
{
	auto_close int theirs = -1;
	pid_t parent = getpid();
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return failed(err, errno, s->path);
	theirs = pair[1];
	s->pid = fork();
	if (s->pid == 0)
		become_program(s->path, core, theirs, parent);
	r = s->pid < 0 ? failed(err, errno, "fork") : rpc_client_open_fd(pair[0], &s->client, err);
	if (s->pid < 0)
		s->pid = 0;
	if (r < 0)
		close(pair[0]);
	return r;
}

int source_core_open(struct source_core *s, const char *path, struct agent_err *err)
{
	/* O_NONBLOCK keeps open() from waiting for the writer of a FIFO, which is refused below. */
	auto_close int core = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	*s = (struct source_core){ .path = path };
	if (core < 0 || fstat(core, &st) < 0)
		return failed(err, errno, path);
	if (!S_ISREG(st.st_mode))
		return agent_err_set(err, RPC_ERROR_FAILED, EINVAL, "open", NULL,
				     "%.120s: not a regular file", path);
	r = start(s, core, err);
	if (r < 0)
		source_core_close(s);
	return r;
}

/*
 * Wait for the worker to end.
 * @return whether it has ended within that time; *ret_status then says how, and it is reaped.
 */
static bool wait_for_end(struct source_core *s, int ms, int *ret_status)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		poll(&p, 1, ms);
	if (waitpid(s->pid, ret_status, WNOHANG) != s->pid)
		return false;
	s->pid = 0;
	return true;
}

void source_core_close(struct source_core *s)
{
	int status;

	rpc_client_close(s->client);
	s->client = NULL;
	if (!s->pid || wait_for_end(s, GOODBYE_MS, &status))
		return;
	kill(s->pid, SIGKILL);
	waitpid(s->pid, &status, 0);
	s->pid = 0;
}

void source_core_explain(struct source_core *s, struct agent_err *err)
{
	static const char op[] = "read the core";
	int status;

	if (err->code != AGENT_ERR_UNREACHABLE || !s->pid || !wait_for_end(s, GOODBYE_MS, &status))
		return;
	if (WIFSIGNALED(status))
		agent_err_set(
			err, RPC_ERROR_FAILED, EIO, op,
			"the file is broken in a way that it should have noticed, or was shortened "
			"meanwhile; please report it",
			"%.100s: the program that reads it was ended by signal %d (%s)", s->path,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) == NOT_FOUND)
		agent_err_set(err, RPC_ERROR_FAILED, ENOENT, op,
			      "is the agent installed as a whole?", "cannot run " PROGRAM);
	else
		agent_err_set(err, RPC_ERROR_FAILED, EIO, op, NULL,
			      "%.100s: the program that reads it ended early", s->path);
}

/* ------------------------------------------------------------------ documents ---------------- */

bool source_is_core(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t head[4];

	return fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) &&
	       (memcmp(head, ELF_MAGIC, sizeof(head)) == 0 ||
		corefile_is_zstd(head, sizeof(head)) || corefile_is_gzip(head, sizeof(head)));
}

static int take_snapshot(struct source_core *s, bool waves, uint32_t timeout_ms,
			 struct agent_err *err)
{
	const struct rpc_gpu_snapshot_params p = { .session = "core", /* Its only session. */
						   .has_waves = waves,
						   .waves = waves };
	auto_out struct out params = { 0 };
	int r;

	rpc_gpu_snapshot_params_encode(&params, &p);
	rpc_client_set_timeout(s->client, timeout_ms);
	r = rpc_client_call(s->client, rpc_methods[RPC_METHOD_GPU_SNAPSHOT].name, params.data,
			    params.size, err);
	if (r < 0)
		source_core_explain(s, err);
	return r;
}

int source_read(const char *path, bool waves, uint32_t timeout_ms, struct rpc_arena *arena,
		struct document *ret, struct agent_err *err)
{
	struct source_core s;
	const char *text;
	size_t size;
	int r;

	if (!strcmp(path, "-") || !source_is_core(path))
		return document_read(path, arena, ret, err);
	r = source_core_open(&s, path, err);
	if (r == 0)
		r = take_snapshot(&s, waves, timeout_ms, err);
	if (r == 0) {
		text = rpc_client_last_result(s.client, &size);
		r = document_parse(path, text ? text : "", text ? size : 0, arena, ret, err);
	}
	source_core_close(&s);
	return r;
}
