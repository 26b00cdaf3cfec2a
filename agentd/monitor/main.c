/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-monitor: the process that starts and supervises workers, which debug.
 *
 * It has the right to trace, and gives it to one worker for each target, when the judge says that a client
 * may have the target or that a rule is to watch it.  It kills workers that pass their deadline, and has
 * somebody look after the target of a worker that died.  It reads nothing that a client or a target wrote.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/monitor/monitor.h"
#include "agentd/monitor/repairs.h"
#include "agentd/monitor/requests.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define POLL_MAX 1100
/* The manager has it before it starts this process. */
#define CONFIG_MS 10000

/* ------------------------------------------------------------------ the loop ----------------- */

static void judge_readable(struct monitor *s, short events)
{
	int r = 0;

	/* Of one that is gone only this process would have what it sent. */
	if (events & (POLLHUP | POLLERR))
		r = -EPIPE;
	else if (events & POLLOUT)
		monitor_flush_judge(s);
	/* Others have their turn, however much it asks. */
	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_judge(s);
	if (r == 0 || r == -EAGAIN)
		return;
	if (r != -EPIPE && r != -ECONNRESET)
		log_error("the judge breaks the protocol (%s): stopping", strerror(-r));
	monitor_close_judge(s);
	monitor_stop(s);
}

static void manager_readable(struct monitor *s, short events)
{
	int r = events & POLLOUT ? ipc_link_flush(&s->manager) : 0;

	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_manager(s);
	if (r != 0 && r != -EAGAIN)
		monitor_manager_gone(s, r);
}

static void reap(struct monitor *s)
{
	struct ipc_ended ended;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			workers_paused(&s->workers, pid, status);
		} else if (workers_reaped(&s->workers, pid, status, &ended)) {
			const struct rules_ended m = { .worker = ended.worker, .clean = ended.how == IPC_HOW_CLEAN };

			monitor_tell_manager(s, RULES_ENDED, 0, &m, sizeof(m), -1);
			monitor_tell_judge(s, &ended, sizeof(ended), -1);
		}
	}
}

static void signals_readable(struct monitor *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(s);
		else
			monitor_stop(s);
	}
}

static int poll_timeout(struct monitor *s)
{
	uint64_t next = monitor_judge_deadline(s);

	next = clock_earlier(next, workers_deadlines(&s->workers));
	if (!s->stop_at)
		next = clock_earlier(next, repairs_deadline(&s->workers));
	if (s->stop_at && (!next || s->stop_at < next))
		next = clock_left_ms(s->stop_at) ? s->stop_at : clock_deadline_ms(50);
	return next ? clock_left_ms(next) : -1;
}

/* Sessions do not end because poll() failed once.  @param n  How often it has, one time after the other. */
static void poll_failed(struct monitor *s, int error, unsigned n)
{
	if (n == 1 && error != EINTR)
		log_warning("poll: %s", strerror(error));
	if (fd_poll_again(error, n))
		return;
	log_error("poll: %s, for %d ms: stopping", strerror(error), FD_POLL_MS_MAX);
	monitor_stop(s);
}

/* What is polled; behind these come the sockets of workers. */
enum { SIGNALS, MANAGER, JUDGE, FIXED };

/* @param of  Whose socket each is.  @return their number. */
static size_t list_fds(const struct monitor *s, struct pollfd fds[POLL_MAX], struct worker *of[POLL_MAX])
{
	size_t n = FIXED;

	fds[SIGNALS] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[MANAGER] = (struct pollfd){ .fd = s->manager.fd, .events = POLLIN };
	if (ipc_link_has_queued(&s->manager))
		fds[MANAGER].events |= POLLOUT;
	fds[JUDGE] = (struct pollfd){ .fd = s->judge.sock, .events = outbox_events(&s->judge) };
	for (struct worker *w = s->workers.first; w && n < POLL_MAX; w = w->next) {
		/* Connect brokers say nothing. */
		if (w->guard_fd < 0)
			continue;
		of[n] = w;
		fds[n++] = (struct pollfd){ .fd = w->guard_fd, .events = POLLIN };
	}
	return n;
}

static void serve(struct monitor *s)
{
	struct pollfd fds[POLL_MAX];
	struct worker *of[POLL_MAX];
	unsigned failures = 0;

	while (!s->stop_at || monitor_stop_step(s)) {
		int timeout = poll_timeout(s);
		size_t n = list_fds(s, fds, of);

		if (poll(fds, n, timeout) < 0) {
			poll_failed(s, errno, ++failures);
			continue;
		}
		failures = 0;
		/* Workers first: the others may remove some from the list. */
		for (size_t i = FIXED; i < n; i++)
			if (fds[i].revents)
				workers_guard(&s->workers, of[i]);
		if (fds[MANAGER].revents)
			manager_readable(s, fds[MANAGER].revents);
		if (fds[JUDGE].revents)
			judge_readable(s, fds[JUDGE].revents);
		if (fds[SIGNALS].revents)
			signals_readable(s);
	}
}

/* ------------------------------------------------------------------ beginning ---------------- */

static int open_signals(struct monitor *s)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* It ends with the manager, which reads its configuration again by itself. */
	signal(SIGHUP, SIG_IGN);
	/* Ignored, as some parents leave it, the kernel would reap workers without telling us. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

/* The manager's first message, without which there is nothing to do. */
static int await_config(struct monitor *s)
{
	const uint64_t until = clock_deadline_ms(CONFIG_MS);
	struct pollfd p = { .fd = s->manager.fd, .events = POLLIN };
	int r = -EAGAIN, left;

	while (r == -EAGAIN) {
		left = clock_left_ms(until);
		if (!left)
			return -ETIMEDOUT;
		r = poll(&p, 1, left) < 0 && errno != EINTR ? -errno : requests_read_manager(s);
	}
	return r;
}

static void left_owed(void *ctx)
{
	monitor_tell_manager(ctx, MONITOR_OWED, 0, NULL, 0, -1);
}

static void were_replaced(void *ctx)
{
	monitor_tell_manager(ctx, MONITOR_REPLACED, 0, NULL, 0, -1);
}

/* Each module knows what it needs of the others; nothing happens yet. */
static void connect_modules(struct monitor *s)
{
	const struct monitor_config *c = &s->config;
	const struct workers_setup setup = { .config = &c->config, .programs = &s->programs,
					     .records = s->records,
					     .store_uid = c->front_uid, .store_gid = c->front_gid,
					     .user_mode = c->user_mode, .permissive = c->permissive,
					     .verbose = c->verbose, .ask = requests_take, .on_owed = left_owed,
					     .on_replaced = were_replaced, .ctx = s };

	undo_record_place(c->config.socket, s->records, sizeof(s->records));
	workers_init(&s->workers, &setup);
}

static int begin(struct monitor *s)
{
	int r = open_signals(s);

	for (int fd = MONITOR_FD_MANAGER; r == 0 && fd <= MONITOR_FD_JUDGE; fd++)
		r = fd_set_cloexec(fd, true);
	if (r == 0)
		r = programs_find(&s->programs);
	if (r == 0)
		r = await_config(s);
	if (r < 0)
		return r;
	child_clean_environment();
	connect_modules(s);
	if (s->config.user_mode)
		return 0;
	r = privileges_keep_attach();
	return r < 0 ? r : privileges_lower();
}

static bool is_started_by_manager(void)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(MONITOR_FD_MANAGER, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
	static struct monitor s = { .judge = { .sock = MONITOR_FD_JUDGE } };
	int r;

	if (fd_reserve_stdio() < 0)
		return 1;
	if (argc > 1 || !is_started_by_manager()) {
		fputs("gpu-agent-monitor is started by gpu-agentd\n", stderr);
		return 2;
	}
	/* To administrators this is gpu-agentd. */
	log_init("gpu-agentd", LOG_LEVEL_INFO);
	ipc_link_init(&s.manager, MONITOR_FD_MANAGER);
	r = begin(&s);
	if (r < 0) {
		/* A manager that has gone already has had nothing done. */
		if (r != -EPIPE)
			log_error("the monitor cannot start: %s", strerror(-r));
		return 1;
	}
	if (s.config.verbose)
		log_init("gpu-agentd", LOG_LEVEL_DEBUG);
	monitor_tell_manager(&s, MONITOR_READY, 0, NULL, 0, -1);
	repairs_begin(&s.workers);
	serve(&s);
	workers_deinit(&s.workers);
	monitor_close_judge(&s);
	ipc_link_deinit(&s.manager);
	rmdir(s.records);
	return 0;
}
