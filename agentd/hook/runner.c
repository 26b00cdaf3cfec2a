/* SPDX-License-Identifier: MIT */
#include "agentd/hook/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/hook/child.h"
#include "agentd/hook/tree.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

/* Time between SIGTERM and SIGKILL. */
#define GRACE_MS 1000
/* The report waits this long for processes to die of SIGKILL, and then goes out without them. */
#define KILL_MS	   2000
/* Time between two rounds of SIGKILL. */
#define ROUND_MS   5
/* Time for the checks of all files. */
#define CHECK_MS   3000
/* Most processes of the hook itself, beyond those that its user runs already. */
#define PROCESSES_MAX 64

/* The run of one hook. */
struct runner {
	const struct hook_job *job;
	struct hook_user user;
	pid_t hook; /* 0: it was reaped, or was not started. */
	int output_fd, error_fd, signal_fd;
	uint64_t started_ns;
	bool stopped; /* The rules process is gone, or does not want the hook any more. */
	bool ending;  /* The runner ends the hook, whose children may end before it does. */
	struct hook_report report;
};

static void send_report(const struct hook_report *r)
{
	/* An error does not matter: the rules process takes the report, or is gone. */
	fd_send(HOOK_FD_LINK, r, sizeof(*r), NULL, 0);
}

__attribute__((format(printf, 3, 4))) static void fail(struct hook_report *r, enum hook_end end,
						       const char *fmt, ...)
{
	va_list ap;

	r->end = end;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
}

/* ------------------------------------------------------------------ output ------------------- */

static void keep_output(struct runner *r, const char *data, size_t size)
{
	uint32_t limit = r->job->limits.output_bytes, *have = &r->report.output_size;
	size_t room = limit > *have ? limit - *have : 0;

	r->report.output_total += size;
	if (size > room)
		size = room;
	memcpy(r->report.output + *have, data, size);
	*have += (uint32_t)size;
}

/* Read some output.  Bytes above the limit are read as well, so that the writer does not block. */
static void drain_output(struct runner *r)
{
	static char data[65536];
	ssize_t n;

	/* One read only: a flood of output must not keep the runner from looking at the clock. */
	do
		n = read(r->output_fd, data, sizeof(data));
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		keep_output(r, data, (size_t)n);
	} else if (n == 0) {
		close(r->output_fd);
		r->output_fd = -1;
	}
}

/* Read what is left in the pipe when the writers are dead. */
static void drain_rest(struct runner *r)
{
	uint64_t before;

	do {
		before = r->report.output_total;
		if (r->output_fd >= 0)
			drain_output(r);
	} while (r->report.output_total != before && r->report.output_total < UINT64_MAX / 2);
}

/* ------------------------------------------------------------------ children ----------------- */

/* If the child has written why there is no hook, that is the outcome; else its exit status is. */
static void hook_ended(struct runner *r, int status)
{
	struct hook_child_error e;

	r->hook = 0;
	r->report.end = WIFEXITED(status) ? HOOK_END_EXIT : HOOK_END_SIGNAL;
	r->report.status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
	if (read(r->error_fd, &e, sizeof(e)) != sizeof(e))
		return;
	e.why[sizeof(e.why) - 1] = '\0';
	r->report.end = e.end;
	r->report.status = 0;
	str_copy(r->report.why, sizeof(r->report.why), e.why);
}

/* Reap all children that have ended.  @return false when there is no child left. */
static bool reap(struct runner *r)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == r->hook)
			hook_ended(r, status);
		else if (!r->hook || r->ending)
			r->report.left++;
	}
	return pid == 0;
}

/* Wait for output, the end of a child, or a word of the rules process.  @return false at the deadline. */
static bool wait_event(struct runner *r, uint64_t deadline_ns)
{
	struct pollfd fds[] = { { .fd = r->signal_fd, .events = POLLIN },
				{ .fd = r->output_fd, .events = POLLIN },
				/* The rules process sends nothing: only the end of the link matters, once. */
				{ .fd = r->stopped ? -1 : HOOK_FD_LINK, .events = POLLIN } };
	struct signalfd_siginfo si;
	int left = clock_left_ms(deadline_ns);

	if (left == 0)
		return false;
	if (poll(fds, ARRAY_SIZE(fds), left) <= 0)
		return true;
	if (fds[1].revents)
		drain_output(r);
	if (fds[2].revents)
		r->stopped = true;
	if (fds[0].revents && read(r->signal_fd, &si, sizeof(si)) < 0)
		return true; /* The signal only says that there is something to reap. */
	return true;
}

/* ------------------------------------------------------------------ one run ------------------ */

/* Wait until the hook ends, and end it at its deadline or when the rules process wants that. */
static void run_hook(struct runner *r)
{
	uint64_t deadline = r->started_ns + r->job->limits.timeout_ms * UINT64_C(1000000);
	bool in_time = true;

	while (r->hook && in_time && !r->stopped) {
		in_time = wait_event(r, deadline);
		reap(r);
	}
	if (!r->hook)
		return;
	r->ending = true;
	tree_signal(SIGTERM);
	for (deadline = clock_deadline_ms(GRACE_MS); r->hook && wait_event(r, deadline);)
		reap(r);
	if (r->hook) {
		kill(r->hook, SIGKILL);
		for (deadline = clock_deadline_ms(KILL_MS); r->hook && wait_event(r, deadline);)
			reap(r);
	}
	/* The hook did not end by itself, even if it answered SIGTERM by an exit. */
	if (r->report.end <= HOOK_END_SIGNAL)
		r->report.end = r->stopped ? HOOK_END_STOPPED : HOOK_END_TIMEOUT;
}

/* Kill until no process of the hook is left, and send the report on the way. */
static void end_all(struct runner *r)
{
	uint64_t give_up = clock_deadline_ms(KILL_MS);
	bool reported = false, more = reap(r);

	while (more || !reported) {
		if (!reported && (!more || clock_left_ms(give_up) == 0)) {
			drain_rest(r);
			send_report(&r->report);
			reported = true;
		}
		if (!more)
			break;
		tree_signal(SIGKILL);
		wait_event(r, clock_deadline_ms(ROUND_MS));
		more = reap(r);
	}
}

static int open_all(struct runner *r, struct hook_child *c)
{
	sigset_t set;
	int output[2], error[2];

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	/*
	 * Only the runner's end of the output is made non-blocking: programs expect theirs to
	 * block.
	 */
	if (r->signal_fd < 0 || pipe2(output, O_CLOEXEC) < 0)
		return -errno;
	r->output_fd = output[0];
	c->output_fd = output[1];
	if (pipe2(error, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	r->error_fd = error[0];
	c->error_fd = error[1];
	return fd_set_nonblock(r->output_fd, true);
}

static int start(struct runner *r)
{
	struct hook_child c = { .job = r->job,
				.user = &r->user,
				.processes = tree_count_user(r->user.uid) + PROCESSES_MAX,
				.runner = getpid() };
	int e = open_all(r, &c);

	if (e < 0)
		return e;
	r->started_ns = clock_now_ns();
	r->hook = fork();
	if (r->hook == 0)
		hook_child_run(&c);
	close(c.output_fd);
	close(c.error_fd);
	if (r->hook < 0) {
		r->hook = 0;
		return -errno;
	}
	/* From here on the runner needs only the right to kill processes of another user. */
	return privileges_keep_kill();
}

void runner_run(const struct hook_job *job)
{
	static struct runner r;
	struct hook_report *report = &r.report;
	int e;

	r.job = job;
	r.output_fd = r.error_fd = r.signal_fd = -1;
	report->uid = job->uid;
	e = hook_user_find(job, report->why, sizeof(report->why), &r.user);
	if (e < 0) {
		report->end = HOOK_END_REFUSED;
	} else if (!tree_is_known()) {
		fail(report, HOOK_END_FAILED, "the kernel does not tell whose children there are "
					      "(CONFIG_PROC_CHILDREN)");
	} else {
		report->uid = r.user.uid;
		e = start(&r);
		if (e == 0) {
			run_hook(&r);
		} else {
			r.hook = 0; /* If it was started, end_all() ends it as one left behind. */
			fail(report, HOOK_END_FAILED, "cannot start it: %s", strerror(-e));
		}
	}
	report->duration_us = r.started_ns ? (clock_now_ns() - r.started_ns) / 1000 : 0;
	end_all(&r);
	hook_user_deinit(&r.user);
}

/* ------------------------------------------------------------------ a look at the files ------ */

/* Check one file, in a child that has become the user. */
static void look(const struct hook_job *job, uint64_t deadline_ns, struct hook_report *report)
{
	struct hook_child_error e;
	struct hook_user user = { 0 };
	struct hook_child c = { .job = job, .user = &user, .runner = getpid(), .output_fd = -1 };
	auto_close int answer = -1, theirs = -1;
	struct pollfd p;
	int fds[2];
	pid_t pid;

	report->uid = job->uid;
	report->end = HOOK_END_REFUSED;
	if (hook_user_find(job, report->why, sizeof(report->why), &user) < 0)
		return;
	report->uid = user.uid;
	if (pipe2(fds, O_CLOEXEC) < 0) {
		fail(report, HOOK_END_FAILED, "pipe: %s", strerror(errno));
		goto out;
	}
	answer = fds[0];
	c.error_fd = theirs = fds[1];
	pid = fork();
	if (pid == 0)
		hook_child_check(&c);
	close(TAKE_FD(theirs));
	p = (struct pollfd){ .fd = answer, .events = POLLIN };
	/* The file may be on a slow network: the child then hangs, and dies with this process. */
	if (pid < 0 || poll(&p, 1, clock_left_ms(deadline_ns)) <= 0 ||
	    read(answer, &e, sizeof(e)) != sizeof(e)) {
		fail(report, HOOK_END_FAILED, "no answer in time about %.100s", job->path);
		goto out;
	}
	e.why[sizeof(e.why) - 1] = '\0';
	report->end = e.end;
	str_copy(report->why, sizeof(report->why), e.why);
out:
	hook_user_deinit(&user);
}

void runner_check(const struct hook_job *jobs, size_t n)
{
	uint64_t deadline = clock_deadline_ms(CHECK_MS);
	static struct hook_report report;

	for (size_t i = 0; i < n; i++) {
		memset(&report, 0, sizeof(report));
		look(&jobs[i], deadline, &report);
		send_report(&report);
	}
}
