/* SPDX-License-Identifier: MIT */
#include "ctl/job/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/program.h"
#include "base/str.h"

/* Descriptors that poll() looks at for each program. */
#define FDS   3
#define PIECE 65536
/* Bytes of standard error in which the line that says why is looked for. */
#define NOTES_MAX (2 * (size_t)PIECE)
/* Time that killed programs have to be gone. */
#define END_MS 100

/* One program that runs. */
struct running {
	struct collect_task *task; /* NULL: the place is free. */
	pid_t pid;
	int pidfd, out_fd, err_fd;
	struct out text, note;
};

struct collection {
	const struct collect_options *o;
	struct collect_task *tasks;
	size_t n, next;
	struct running list[COLLECT_WINDOW_MAX];
};

/* ------------------------------------------------------------------ one program -------------- */

static void close_all(struct running *r)
{
	const int fds[] = { r->pidfd, r->out_fd, r->err_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	out_deinit(&r->text);
	out_deinit(&r->note);
	*r = (struct running){ .pidfd = -1, .out_fd = -1, .err_fd = -1 };
}

/* The program and its children: it has no group of its own before it has become one. */
static void kill_all(const struct running *r)
{
	kill(-r->pid, SIGKILL);
	kill(r->pid, SIGKILL);
}

/* @return 0, -errno. */
static int start(struct running *r, struct collect_task *task, size_t size_max)
{
	struct program program = { .path = task->argv[0], .argv = task->argv, .n_fds = STDERR_FILENO + 1, .prefix = "" };
	int out[2], err[2], e;

	*r = (struct running){ .pidfd = -1, .out_fd = -1, .err_fd = -1 };
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(err, O_CLOEXEC) < 0) {
		e = -errno;
		close(out[0]);
		close(out[1]);
		return e;
	}
	r->out_fd = out[0];
	r->err_fd = err[0];
	out_init(&r->text, size_max);
	out_init(&r->note, NOTES_MAX);
	program.fds[STDIN_FILENO] = -1;
	program.fds[STDOUT_FILENO] = out[1];
	program.fds[STDERR_FILENO] = err[1];
	r->pid = program_start(&program);
	e = r->pid < 0 ? r->pid : 0;
	close(out[1]);
	close(err[1]);
	if (e == 0) {
		fd_set_nonblock(r->out_fd, true);
		fd_set_nonblock(r->err_fd, true);
		r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0);
		e = r->pidfd < 0 ? -errno : 0;
	}
	if (e < 0 && r->pid > 0) {
		kill_all(r);
		waitpid(r->pid, NULL, 0);
	}
	if (e < 0)
		close_all(r);
	else
		r->task = task;
	return e;
}

/* Take what is there.  @return whether more may come. */
static bool take(int fd, struct out *o)
{
	char piece[PIECE];
	ssize_t n;

	do {
		n = read(fd, piece, sizeof(piece));
		if (n > 0)
			out_bytes(o, piece, (size_t)n);
	} while ((n > 0 && !out_error(o)) || (n < 0 && errno == EINTR));
	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* Close at the end, which poll() would tell again and again, and where there is no room for more. */
static void take_or_close(int *fd, struct out *o)
{
	if (*fd >= 0 && (!take(*fd, o) || out_error(o))) {
		close(*fd);
		*fd = -1;
	}
}

/* What says why: our own error, before that of a program that has started us, as srun's of our exit status. */
static unsigned weight_of(const char *line)
{
	return str_starts_with(line, "gpu-agentctl: error: ") ? 2 : strstr(line, "error: ") ? 1 : 0;
}

/* Keep the first line of the most weight, or else the last one: banners and warnings come first. */
static void keep_note(struct collect_task *task, const struct out *note)
{
	char line[COLLECT_NOTE_MAX], found[COLLECT_NOTE_MAX] = "";
	unsigned most = 0;

	for (const char *at = note->data ? note->data : ""; *at;) {
		size_t n = strcspn(at, "\n"), kept = n < sizeof(line) ? n : sizeof(line) - 1;

		memcpy(line, at, kept);
		line[kept] = 0;
		if (n && (!most || weight_of(line) > most)) {
			most = weight_of(line);
			str_copy(found, sizeof(found), line);
		}
		at += n + (at[n] == '\n');
	}
	str_make_printable(found);
	str_copy(task->note, sizeof(task->note), found);
}

/* The program ends, or has ended: tell it, and free its place. */
static int finish(struct collection *c, struct running *r, enum collect_end end, uint64_t deadline_ns)
{
	struct collect_task *task = r->task;
	int e;

	/* Its children go with it, as ssh's way over another host. */
	kill_all(r);
	/* A killed process that hangs in the kernel stays for init: nobody waits for it here. */
	while (waitpid(r->pid, &task->status, WNOHANG) == 0 && clock_left_ms(deadline_ns) > 0)
		poll(NULL, 0, 2);
	take_or_close(&r->out_fd, &r->text);
	take_or_close(&r->err_fd, &r->note);
	task->end = out_error(&r->text) == -EFBIG ? COLLECT_TOO_LARGE : end;
	task->text = out_error(&r->text) || !r->text.data ? "" : r->text.data;
	task->size = out_error(&r->text) ? 0 : r->text.size;
	keep_note(task, &r->note);
	e = c->o->done(c->o->data, task);
	task->text = NULL;
	close_all(r);
	return e;
}

/* ------------------------------------------------------------------ all of them -------------- */

static int start_more(struct collection *c)
{
	int e = 0;

	for (unsigned i = 0; e == 0 && i < c->o->window && c->next < c->n; i++) {
		struct collect_task *task = &c->tasks[c->next];

		if (c->list[i].task)
			continue;
		c->next++;
		e = c->o->begin ? c->o->begin(c->o->data, task) : 0;
		if (e < 0)
			return e;
		e = start(&c->list[i], task, c->o->size_max);
		if (e < 0) {
			task->end = COLLECT_FAILED;
			task->status = -e;
			task->text = "";
			e = c->o->done(c->o->data, task);
		}
	}
	return e;
}

/* @return how many programs run. */
static unsigned list_fds(const struct collection *c, struct pollfd *fds)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->o->window; i++) {
		const struct running *r = &c->list[i];

		fds[FDS * i] = (struct pollfd){ .fd = r->task ? r->pidfd : -1, .events = POLLIN };
		fds[FDS * i + 1] = (struct pollfd){ .fd = r->task ? r->out_fd : -1, .events = POLLIN };
		fds[FDS * i + 2] = (struct pollfd){ .fd = r->task ? r->err_fd : -1, .events = POLLIN };
		n += r->task != NULL;
	}
	return n;
}

static int look(struct collection *c, const struct pollfd *fds)
{
	int e = 0;

	for (unsigned i = 0; e == 0 && i < c->o->window; i++) {
		struct running *r = &c->list[i];

		if (!r->task)
			continue;
		if (fds[FDS * i + 1].revents)
			take_or_close(&r->out_fd, &r->text);
		if (fds[FDS * i + 2].revents)
			take_or_close(&r->err_fd, &r->note);
		if (fds[FDS * i].revents || out_error(&r->text))
			e = finish(c, r, COLLECT_ENDED, clock_deadline_ms(END_MS));
	}
	return e;
}

static int run(struct collection *c)
{
	struct pollfd fds[FDS * COLLECT_WINDOW_MAX];
	unsigned failed = 0;
	int e = start_more(c), left;

	while (e == 0 && list_fds(c, fds) && (left = clock_left_ms(c->o->deadline_ns)) > 0) {
		if (poll(fds, FDS * c->o->window, left) < 0) {
			if (errno != EINTR && !fd_poll_again(errno, failed++))
				return -errno;
			continue;
		}
		e = look(c, fds);
		if (e == 0)
			e = start_more(c);
	}
	return e;
}

/* End what runs still, all at once, and tell what was not started. */
static int end_all(struct collection *c, int e)
{
	uint64_t deadline_ns = clock_deadline_ms(END_MS);

	for (unsigned i = 0; i < c->o->window; i++)
		if (c->list[i].task)
			kill_all(&c->list[i]);
	for (unsigned i = 0; i < c->o->window; i++)
		if (c->list[i].task) {
			int last = finish(c, &c->list[i], COLLECT_LATE, deadline_ns);

			e = e ? e : last;
		}
	for (; e == 0 && c->next < c->n; c->next++) {
		c->tasks[c->next].end = COLLECT_NOT_STARTED;
		c->tasks[c->next].text = "";
		e = c->o->done(c->o->data, &c->tasks[c->next]);
	}
	return e;
}

int collect(struct collect_task *tasks, size_t n, const struct collect_options *o)
{
	struct collection c = { .o = o, .tasks = tasks, .n = n };
	struct sigaction own = { .sa_handler = SIG_DFL }, before;
	int e;

	/* Where whoever has started us ignores the ends of children, waitpid() would not tell how they ended. */
	sigaction(SIGCHLD, &own, &before);
	e = run(&c);
	e = end_all(&c, e);
	sigaction(SIGCHLD, &before, NULL);
	return e;
}
