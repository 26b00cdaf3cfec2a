/* SPDX-License-Identifier: MIT */
/*
 * Runs NVIDIA's disassembler, a program of the CUDA toolkit.  The bytes may be anything that a
 * process has in its memory, so it runs confined, and with bounds on its time, memory and output.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "disasm/backend.h"
#include "disasm/confine.h"

#define CPU_S	   30
#define MEMORY_MAX ((rlim_t)4 << 30)
/*
 * Bounds the output: a word has at least eight bytes, and its line less than half of what that
 * allows.
 */
#define OUTPUT_PER_BYTE 64u
#define OUTPUT_MIN	65536u

/* ------------------------------------------------------------------ finding it --------------- */

/* May only root, or whoever runs this, change what is there?  In /tmp nobody replaces others' files. */
static bool is_safe(const struct stat *st)
{
	return (st->st_uid == 0 || st->st_uid == geteuid()) &&
	       (!(st->st_mode & (S_IWGRP | S_IWOTH)) || (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX));
}

/* Is that true of a file, and of each directory on the way to it?  The path has no links. */
static bool is_trusted(const char *path)
{
	char part[PATH_MAX];
	struct stat st;

	for (size_t i = 0; path[i]; i++) {
		if (path[i] != '/')
			continue;
		snprintf(part, sizeof(part), "%.*s", i ? (int)i : 1, path);
		if (lstat(part, &st) < 0 || !S_ISDIR(st.st_mode) || !is_safe(&st))
			return false;
	}
	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && is_safe(&st);
}

/* Judge a program by where it really is, and tell that. */
static bool is_program(char path[PATH_MAX])
{
	char real[PATH_MAX];

	if (path[0] != '/' || access(path, X_OK) < 0 || !realpath(path, real) || !is_trusted(real))
		return false;
	strcpy(path, real);
	return true;
}

static bool is_in(const char *directory, size_t length, const char *below, char *ret)
{
	int n = length && length < PATH_MAX ? snprintf(ret, PATH_MAX, "%.*s%s/nvdisasm", (int)length, directory,
					     below) :
				    PATH_MAX;

	return n < PATH_MAX && is_program(ret);
}

bool disasm_find_nvdisasm(char ret[PATH_MAX])
{
	const char *homes[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda" };
	const char *path = getenv("PATH");

	while (path) {
		const char *end = strchrnul(path, ':');

		if (is_in(path, (size_t)(end - path), "", ret))
			return true;
		path = *end ? end + 1 : NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(homes); i++)
		if (homes[i] && is_in(homes[i], strlen(homes[i]), "/bin", ret))
			return true;
	return false;
}

/* ------------------------------------------------------------------ running it --------------- */

struct run {
	char *const *argv;
	int fds[3];
	rlim_t output;
	pid_t parent;
};

static void child_main(const struct run *run)
{
	const struct rlimit memory = { MEMORY_MAX, MEMORY_MAX }, output = { run->output, run->output };
	int r = disasm_settle(run->fds, ARRAY_SIZE(run->fds), CPU_S, run->parent);
	const char *why;

	if (r == 0 && (setrlimit(RLIMIT_AS, &memory) < 0 || setrlimit(RLIMIT_FSIZE, &output) < 0))
		r = -errno;
	if (r == 0)
		r = disasm_confine_program();
	if (r == 0) {
		execv(run->argv[0], run->argv);
		r = -errno;
	}
	why = strerror(-r);
	(void)!write(STDERR_FILENO, why, strlen(why));
	_exit(127);
}

/*
 * Wait until the program ends, and kill it when the time is over.
 * @return 0 when it has ended, -ETIMEDOUT (it was killed), -errno.
 */
static int await(pid_t pid, uint32_t ms, int *ret_status)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t deadline_ns = clock_deadline_ms(ms);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int r;

	if (pidfd < 0)
		r = -errno;
	else
		do
			r = poll(&p, 1, clock_left_ms(deadline_ns));
		while (r < 0 && errno == EINTR);
	if (pidfd >= 0 && r < 0)
		r = -errno;
	if (r == 0)
		r = -ETIMEDOUT;
	if (r < 0)
		kill(pid, SIGKILL);
	/*
	 * A process that ignores SIGCHLD learns no status; then the program's output alone has to
	 * do.
	 */
	*ret_status = 0;
	while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
		;
	return r < 0 ? r : 0;
}

static int load(int fd, size_t max, char **ret, size_t *ret_size)
{
	struct stat st;
	size_t size;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size < max ? (size_t)st.st_size : max;
	*ret = malloc(size + 1);
	if (!*ret)
		return -ENOMEM;
	n = pread(fd, *ret, size, 0);
	if (n < 0)
		return -errno;
	(*ret)[n] = '\0';
	*ret_size = (size_t)n;
	return 0;
}

/* Take the first line of its standard error as the reason, or tell how it ended. */
static void explain(struct disasm_output *o, int status)
{
	size_t n = strcspn(o->err, "\n");

	if (n > sizeof(o->why) - 1)
		n = sizeof(o->why) - 1;
	if (WIFSIGNALED(status))
		snprintf(o->why, sizeof(o->why), "%s", strsignal(WTERMSIG(status)));
	else if (n)
		snprintf(o->why, sizeof(o->why), "%.*s", (int)n, o->err);
	else
		snprintf(o->why, sizeof(o->why), "exit status %d", WEXITSTATUS(status));
}

static int start(const struct run *run, pid_t *ret)
{
	*ret = fork();
	if (*ret == 0)
		child_main(run);
	return *ret < 0 ? -errno : 0;
}

static int run_with(char *const *argv, const void *bytes, size_t size, uint32_t ms,
		    struct disasm_output *o)
{
	const size_t most = size * OUTPUT_PER_BYTE + OUTPUT_MIN;
	auto_close int in = -1, out = memfd_create("nvdisasm-out", MFD_CLOEXEC),
		       err = memfd_create("nvdisasm-err", MFD_CLOEXEC);
	int r = fd_memfd_sealed("nvdisasm-in", bytes, size, &in);
	pid_t pid;

	if (r == 0 && (out < 0 || err < 0))
		r = -errno;
	if (r == 0)
		r = start(&(struct run){ argv, { in, out, err }, most, getpid() }, &pid);
	if (r == 0)
		r = await(pid, ms, &o->status);
	if (r == 0)
		r = load(out, most, &o->out, &o->out_size);
	if (r == 0)
		r = load(err, most, &o->err, &o->err_size);
	if (r == 0)
		explain(o, o->status);
	return r;
}

void disasm_nvdisasm_run(const char *program, const char *cpu, const void *bytes, size_t size,
			 uint64_t address, uint32_t ms, struct disasm_output *ret)
{
	char arch[32], base[19];
	const char *const argv[] = { program, "--binary",    arch,	      "--base-address",
				     base,    "--print-raw", "--no-dataflow", "/dev/stdin", NULL };

	*ret = (struct disasm_output){ 0 };
	/* nvdisasm calls "sm_90" SM90. */
	snprintf(arch, sizeof(arch), "SM%.20s", cpu + strlen("sm_"));
	snprintf(base, sizeof(base), "0x%" PRIx64, address);
	ret->error = run_with((char *const *)argv, bytes, size, ms, ret);
}

void disasm_output_free(struct disasm_output *o)
{
	free(o->out);
	free(o->err);
	*o = (struct disasm_output){ 0 };
}
