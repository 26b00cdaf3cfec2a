/* SPDX-License-Identifier: MIT */
/*
 * gpu-agent-judge: accepts clients, and judges what they may do.
 *
 * It stands between the frontend, which strangers talk to, and the monitor, which starts what has
 * rights.  A request reaches the monitor only with the name of a client that this process has
 * accepted itself, and if that client may have what it asks for.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/ipc/link.h"
#include "agentd/judge/judge.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

/* The frontend has this long to take what it was told last. */
#define LAST_WORDS_MS 1000

enum { SIGNALS, MANAGER, MONITOR, FRONT, LISTENER, N_FDS };

static bool user_mode, verbose;

static const struct argv_option options[] = {
	{ "user", 0, ARGV_FLAG, &user_mode, NULL, "unprivileged mode" },
	{ "verbose", 0, ARGV_FLAG, &verbose, NULL, "log more" },
	{ 0 },
};

static void front_readable(struct judge *j, short events)
{
	int r = events & (POLLHUP | POLLERR) ? -EPIPE : 0;

	/* Others have their turn, however much it asks. */
	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_front(j);
	if (r != 0 && r != -EAGAIN)
		judge_front_fell(j, r);
}

static void monitor_readable(struct judge *j, int turns)
{
	int r = 0;

	for (int n = 0; n < turns && r == 0 && j->monitor.sock >= 0; n++)
		r = requests_read_monitor(j);
	if (r == 0 || r == -EAGAIN)
		return;
	if (r != -EPIPE && r != -ECONNRESET)
		log_error("message from the monitor: %s", strerror(-r));
	judge_monitor_gone(j);
}

static void manager_readable(struct judge *j)
{
	int r = 0;

	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_manager(j);
	if (r == 0 || r == -EAGAIN)
		return;
	/* End of file is how the manager asks us to leave; what the monitor has said before is for the frontend. */
	if (r != -EPIPE && r != -ECONNRESET)
		log_error("message from gpu-agentd: %s", strerror(-r));
	monitor_readable(j, OUTBOX_WAITING_MAX);
	j->is_over = true;
}

static void closer_ended(struct judge *j, int64_t uid)
{
	const struct ipc_closer m = { .type = IPC_CLOSER, .kind = IPC_CLOSER_ENDED, .uid = (uint32_t)uid };

	if (uid != CLOSERS_NOBODY)
		judge_tell_front(j, &m, sizeof(m), -1);
}

static void children_ended(struct judge *j)
{
	struct signalfd_siginfo si;
	int64_t uid;
	int status;
	pid_t pid;

	while (read(j->signal_fd, &si, sizeof(si)) == sizeof(si))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (closers_reaped(&j->closers, pid, &uid))
			closer_ended(j, uid);
		else
			candidates_reaped(j, pid, status);
}

static int poll_timeout(struct judge *j)
{
	uint64_t next = uses_due(&j->uses, clock_now_ns(), false);

	if (!j->is_stopping)
		next = clock_earlier(next, candidates_deadlines(j));
	if (j->accept_at && !clock_left_ms(j->accept_at))
		j->accept_at = 0;
	next = clock_earlier(next, j->accept_at);
	/* Behind what may have told them something. */
	next = clock_earlier(next, judge_flush(j));
	return next ? clock_left_ms(next) : -1;
}

static void serve(struct judge *j)
{
	while (!j->is_over) {
		int timeout = poll_timeout(j);
		struct pollfd fds[N_FDS] = {
			[SIGNALS] = { .fd = j->signal_fd, .events = POLLIN },
			[MANAGER] = { .fd = j->manager.sock, .events = outbox_events(&j->manager) },
			[MONITOR] = { .fd = j->monitor.sock, .events = outbox_events(&j->monitor) },
			[FRONT] = { .fd = j->front.sock, .events = outbox_events(&j->front) },
			[LISTENER] = { .fd = accept_wanted(j) ? j->listen_fd : -1, .events = POLLIN },
		};

		if (poll(fds, N_FDS, timeout) < 0) {
			/* The kernel may have no memory for a moment. */
			if (errno != EINTR)
				usleep(50000);
			continue;
		}
		if (fds[MONITOR].revents & (POLLIN | POLLHUP | POLLERR))
			monitor_readable(j, IPC_TURN);
		if (fds[MANAGER].revents & (POLLIN | POLLHUP | POLLERR))
			manager_readable(j);
		if (fds[FRONT].revents & (POLLIN | POLLHUP | POLLERR) && j->front.sock >= 0)
			front_readable(j, fds[FRONT].revents);
		/* Behind the frontend's messages: a connection that it has closed counts no more. */
		if (fds[LISTENER].revents)
			accept_clients(j);
		if (fds[SIGNALS].revents)
			children_ended(j);
	}
}

/* What the others said last is for the frontend, which takes it, or is not there any more. */
static void say_the_rest(struct judge *j)
{
	const uint64_t until = clock_deadline_ms(LAST_WORDS_MS);
	struct pollfd p = { .fd = j->front.sock, .events = POLLOUT };

	while (j->front.first && clock_left_ms(until) && poll(&p, 1, clock_left_ms(until)) == 1 &&
	       outbox_flush(&j->front) == 0)
		;
}

static int begin(struct judge *j)
{
	sigset_t set;
	int r;

	signal(SIGPIPE, SIG_IGN);
	/* It ends with the manager, which stops in its own time. */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	j->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (j->signal_fd < 0)
		return -errno;
	for (int fd = IPC_FD_MONITOR; fd <= JUDGE_FD_MANAGER; fd++)
		if (fd_set_cloexec(fd, true) < 0)
			return -errno;
	r = user_mode ? 0 : privileges_keep_judge();
	if (r == 0)
		r = sandbox_judge();
	return r < 0 || user_mode ? r : privileges_lower();
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	static struct judge j = { .groups = { ACCESS_NO_GROUP, ACCESS_NO_GROUP },
				  .front = { .sock = JUDGE_FD_FRONT },
				  .manager = { .sock = JUDGE_FD_MANAGER },
				  .monitor = { .sock = IPC_FD_MONITOR },
				  .listen_fd = JUDGE_FD_LISTEN,
				  .closers = { .gate_fd = -1 } };
	char error[160];
	int r;

	if (fd_reserve_stdio() < 0)
		return 1;
	r = argv_parse(argc, argv, tables, error, sizeof(error));
	if (r != 0) {
		fprintf(stderr, "gpu-agent-judge: %s; it is started by gpu-agentd\n", r < 0 ? error : "takes no arguments");
		return 2;
	}
	log_init("gpu-agentd", verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	j.user_mode = user_mode;
	r = begin(&j);
	if (r < 0) {
		log_error("cannot start: %s", strerror(-r));
		return 1;
	}
	serve(&j);
	candidates_cancel(&j);
	uses_due(&j.uses, clock_now_ns(), true);
	say_the_rest(&j);
	judge_close_front(&j);
	closers_deinit(&j.closers);
	names_deinit(&j.names);
	clients_deinit(&j.clients);
	return 0;
}
