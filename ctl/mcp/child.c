/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/program.h"

_Static_assert(CHILD_EXTRA_MAX + STDERR_FILENO + 1 <= PROGRAM_FDS_MAX, "room for all descriptors");

#define PIECE	  65536
#define STDIO_FDS ((size_t)STDERR_FILENO + 1)
/* Time that a killed program has to be gone. */
#define END_MS 100

/* The pipes of a program, while it is started. */
struct pipes {
	int in[2], out[2], err[2];
};

static void close_pipes(struct pipes *p)
{
	int *const ends[] = { p->in, p->out, p->err };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (int k = 0; k < 2; k++)
			if (ends[i][k] >= 0)
				close(ends[i][k]);
}

static int open_pipes(struct pipes *p, bool has_input)
{
	int r = 0;

	*p = (struct pipes){ { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0)
		r = -errno;
	else if (has_input && pipe2(p->in, O_CLOEXEC) < 0)
		r = -errno;
	if (r < 0)
		close_pipes(p);
	return r;
}

int child_start(struct child *c, const struct child_options *o)
{
	struct program program = { .path = o->program, .argv = o->argv, .n_fds = STDIO_FDS + o->n_extra,
				   .prefix = "gpu-agentctl: error: " };
	struct pipes p;
	int r = open_pipes(&p, o->has_input);

	*c = (struct child){ .pidfd = -1, .in_fd = -1, .out_fd = -1, .err_fd = -1 };
	if (r < 0)
		return r;
	out_init(&c->text, CHILD_TEXT_MAX);
	out_init(&c->note, CHILD_NOTE_MAX);
	program.fds[STDIN_FILENO] = p.in[0];
	program.fds[STDOUT_FILENO] = p.out[1];
	program.fds[STDERR_FILENO] = p.err[1];
	for (size_t i = 0; i < o->n_extra; i++)
		program.fds[STDIO_FDS + i] = o->extra[i];
	c->pid = program_start(&program);
	if (c->pid < 0) {
		r = c->pid;
		c->pid = 0;
		close_pipes(&p);
		return r;
	}
	c->in_fd = p.in[1];
	c->out_fd = p.out[0];
	c->err_fd = p.err[0];
	p.in[1] = p.out[0] = p.err[0] = -1;
	close_pipes(&p);
	fd_set_nonblock(c->out_fd, true);
	fd_set_nonblock(c->err_fd, true);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	r = c->pidfd < 0 ? -errno : 0;
	if (r < 0)
		child_deinit(c);
	return r;
}

void child_list(const struct child *c, struct pollfd fds[CHILD_FDS])
{
	fds[0] = (struct pollfd){ .fd = c->pid ? c->pidfd : -1, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = c->pid ? c->out_fd : -1, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = c->pid ? c->err_fd : -1, .events = POLLIN };
}

/* Take what is there; the descriptor is closed at its end.  What does not fit is dropped, and noted in the buffer. */
static void take(int *fd, struct out *o)
{
	char piece[PIECE];
	ssize_t n = 1;

	while (*fd >= 0 && n > 0) {
		n = read(*fd, piece, sizeof(piece));
		if (n > 0)
			out_bytes(o, piece, (size_t)n);
		else if (n < 0 && errno == EINTR)
			n = 1;
		else if (n == 0 || errno != EAGAIN) {
			close(*fd);
			*fd = -1;
		}
		/* One that prints for ever must not keep the loop here. */
		if (out_error(o))
			return;
	}
}

bool child_serve(struct child *c, const struct pollfd fds[CHILD_FDS])
{
	pid_t pid;

	if (fds[1].revents)
		take(&c->out_fd, &c->text);
	if (fds[2].revents)
		take(&c->err_fd, &c->note);
	if (!fds[0].revents)
		return false;
	/*
	 * What it has started goes with it; then nobody writes into the pipes any more.  Once it was reaped, its number
	 * may be another's.
	 */
	kill(-c->pid, SIGKILL);
	do
		pid = waitpid(c->pid, &c->status, WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	take(&c->out_fd, &c->text);
	take(&c->err_fd, &c->note);
	c->pid = 0;
	return true;
}

void child_signal(const struct child *c, int signo)
{
	if (!c->pid)
		return;
	kill(-c->pid, signo);
	kill(c->pid, signo);
}

void child_deinit(struct child *c)
{
	int *const fds[] = { &c->pidfd, &c->in_fd, &c->out_fd, &c->err_fd };

	if (c->pid) {
		uint64_t deadline_ns = clock_deadline_ms(END_MS);

		child_signal(c, SIGKILL);
		/* One that hangs in the kernel stays for init. */
		while (waitpid(c->pid, &c->status, WNOHANG) == 0 && clock_left_ms(deadline_ns) > 0)
			poll(NULL, 0, 2);
		c->pid = 0;
	}
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (*fds[i] > 0) {
			close(*fds[i]);
			*fds[i] = -1;
		}
	out_deinit(&c->text);
	out_deinit(&c->note);
}
