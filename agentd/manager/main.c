/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentd: what a service manager starts, and the parent of the agent's other processes.
 *
 * It has the rules process read the configuration, opens the socket, and starts the monitor, which starts
 * workers, with an heir behind it, and the judge and the frontend, which serve clients.  Then it gives up the
 * right to trace.  It never sees a byte of JSON, nor of the configuration's text.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/link.h"
#include "agentd/landlock.h"
#include "agentd/manager/heirs.h"
#include "agentd/manager/listen.h"
#include "agentd/manager/manager.h"
#include "agentd/manager/notify.h"
#include "agentd/manager/requests.h"
#include "agentd/options.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/ipc/undo_record.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define FDS_WANTED 8192
/* A rules process that has closed its socket has ended by then. */
#define RULES_END_MS 2000

/* ------------------------------------------------------------------ beginning ---------------- */

static int fail(const char *what, int r)
{
	log_error("%s: %s", what, strerror(-r));
	return 1;
}

/* Has a manager handed a listening socket over? */
static int take_listener(struct manager *s)
{
	int r = notify_listen_fd(&s->listen_fd);

	if (r < 0)
		log_error("LISTEN_FDS: expected exactly one listening Unix stream socket");
	return r;
}

static int open_listener(struct manager *s)
{
	char error[256];
	int r;

	if (s->listen_fd >= 0) {
		r = fd_refuse_rights(s->listen_fd);
		return r < 0 ? r : fd_set_nonblock(s->listen_fd, true);
	}
	r = listen_open(s->config.socket, s->ids.socket_gid, &s->listen_fd, error, sizeof(error));
	if (r < 0)
		log_error("%s", error);
	s->own_socket = r == 0;
	return r;
}

static int open_signals(struct manager *s)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* Ignored, as some parents leave it, the kernel would reap children without telling us. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd < 0 ? -errno : 0;
}

/* ------------------------------------------------------------------ the loop ----------------- */

static void judge_readable(struct manager *s, short events)
{
	int r = 0;

	/* Of one that is gone only this process would have what it sent. */
	if (events & (POLLHUP | POLLERR))
		r = -EPIPE;
	else if (events & POLLOUT)
		manager_flush_front(s);
	/* Others have their turn, however much it asks. */
	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_judge(s);
	if (r == 0 || r == -EAGAIN)
		return;
	/* One that breaks the protocol is not to go on with its rights. */
	if (r != -EPIPE && r != -ECONNRESET && s->front.judge_pid)
		privileges_kill(s->front.judge_pid, SIGKILL);
	if (!s->stop_at) {
		log_error("the judge is gone, or breaks the protocol (%s): stopping", strerror(-r));
		manager_fail(s);
	}
	manager_close_front(s);
}

static void monitor_readable(struct manager *s, short events)
{
	int r = events & POLLOUT ? ipc_link_flush(&s->monitor.link) : 0;

	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_monitor(s);
	if (r == 0 || r == -EAGAIN)
		return;
	/* At the end of file it ends, and is reaped.  Anything else it did wrong. */
	if (r == -EPIPE || r == -ECONNRESET) {
		ipc_link_deinit(&s->monitor.link);
		return;
	}
	log_error("the monitor breaks the protocol: killed: %s", strerror(-r));
	manager_kill_monitor(s);
}

static void rules_readable(struct manager *s, short events)
{
	int r = 0;

	if (events & POLLOUT)
		r = ipc_link_flush(&s->rules.link);
	/* Others have their turn, however much it asks. */
	for (int n = 0; n < IPC_TURN && r == 0; n++)
		r = requests_read_rules(s);
	if (r == 0 || r == -EAGAIN || s->rules.link.fd < 0)
		return;
	/* At the end of file the process ends, and is reaped.  Anything else it did wrong. */
	if (r != -EPIPE && r != -ECONNRESET)
		log_error("the rules process breaks the protocol: killed: %s", strerror(-r));
	rules_child_kill(&s->rules);
}

/* One that the agent needs has ended. */
static void lost(struct manager *s, const char *what, int status)
{
	if (s->stop_at)
		return;
	log_error("%s died (status 0x%x): stopping", what, (unsigned)status);
	manager_fail(s);
}

static void reap(struct manager *s)
{
	int status;
	int64_t uid;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->front.pid) {
			s->front.pid = 0;
			lost(s, "front", status);
		} else if (pid == s->front.judge_pid) {
			s->front.judge_pid = 0;
			lost(s, "the judge", status);
		} else if (pid == s->monitor.pid) {
			s->monitor.pid = 0;
			lost(s, "the monitor", status);
		} else if (pid == s->heir_pid) {
			s->heir_pid = 0;
		} else if (pid == s->rules.pid) {
			manager_rules_ended(s, status);
		} else {
			closers_reaped(&s->closers, pid, &uid);
			continue;
		}
		manager_tell_agent(s);
	}
}

static void signals_readable(struct manager *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(s);
		else if (si.ssi_signo == SIGHUP)
			manager_reload(s);
		else
			manager_stop(s);
	}
}

static void look_at_programs(struct manager *s)
{
	if (programs_are_replaced(&s->programs))
		manager_were_replaced(s);
}

static void programs_changed(struct manager *s)
{
	programs_watched(s->programs_fd);
	look_at_programs(s);
}

static void give_up_stuck(struct manager *s)
{
	if (s->front_pong == s->watchdog.number) {
		log_error("the monitor does not answer: killed");
		manager_kill_monitor(s);
	} else {
		log_error("front does not answer, or the judge does not pass it on: both are killed");
		privileges_kill(s->front.pid, SIGKILL);
		if (s->front.judge_pid)
			privileges_kill(s->front.judge_pid, SIGKILL);
	}
	manager_fail(s);
}

static void look_at_watchdog(struct manager *s)
{
	const struct ipc_ping ping = { .type = IPC_PING, .number = s->watchdog.number + 1 };

	if (s->stop_at)
		return;
	switch (watchdog_due(&s->watchdog, clock_now_ns())) {
	case WATCHDOG_ASK:
		/* One that takes no messages is as silent as any. */
		(void)fd_send(s->front.box.sock, &ping, sizeof(ping), NULL, 0);
		break;
	case WATCHDOG_STUCK:
		give_up_stuck(s);
		break;
	case WATCHDOG_WAIT:
		break;
	}
}

static uint64_t look_at_rules(struct manager *s)
{
	uint64_t next;
	bool started;

	if (rules_child_is_due(&s->rules)) {
		look_at_programs(s);
		if (s->replaced)
			manager_rules_stay_ended(s);
	}
	next = rules_child_deadlines(&s->rules, &started);
	if (started)
		manager_tell_agent(s);
	return next;
}

static int poll_timeout(struct manager *s)
{
	uint64_t next = s->stop_at ? 0 : look_at_rules(s);

	look_at_watchdog(s);
	next = clock_earlier(next, manager_front_deadline(s));
	if (!s->stop_at)
		next = clock_earlier(next, s->watchdog.at);
	if (s->stop_at && (!next || s->stop_at < next))
		next = clock_left_ms(s->stop_at) ? s->stop_at : clock_deadline_ms(50);
	return next ? clock_left_ms(next) : -1;
}

/* Sessions do not end because poll() failed once.  @param n  How often it has, one time after the other. */
static void poll_failed(struct manager *s, int error, unsigned n)
{
	if (n == 1 && error != EINTR)
		log_warning("poll: %s", strerror(error));
	if (fd_poll_again(error, n))
		return;
	log_error("poll: %s, for %d ms: stopping", strerror(error), FD_POLL_MS_MAX);
	manager_fail(s);
}

enum { SIGNALS, MONITOR, JUDGE, RULES, PROGRAMS, N_FDS };

static void serve(struct manager *s)
{
	unsigned failures = 0;

	while (!s->stop_at || manager_stop_step(s)) {
		int timeout = poll_timeout(s);
		struct pollfd fds[N_FDS] = {
			[SIGNALS] = { .fd = s->signal_fd, .events = POLLIN },
			[MONITOR] = { .fd = s->monitor.link.fd,
				      .events = POLLIN | (ipc_link_has_queued(&s->monitor.link) ? POLLOUT : 0) },
			[JUDGE] = { .fd = s->front.box.sock, .events = outbox_events(&s->front.box) },
			[RULES] = { .fd = s->rules.link.fd, .events = rules_child_events(&s->rules) },
			[PROGRAMS] = { .fd = s->programs_fd, .events = POLLIN },
		};

		if (poll(fds, N_FDS, timeout) < 0) {
			poll_failed(s, errno, ++failures);
			continue;
		}
		failures = 0;
		if (fds[PROGRAMS].revents)
			programs_changed(s);
		if (fds[MONITOR].revents)
			monitor_readable(s, fds[MONITOR].revents);
		if (fds[RULES].revents)
			rules_readable(s, fds[RULES].revents);
		if (fds[JUDGE].revents)
			judge_readable(s, fds[JUDGE].revents);
		if (fds[SIGNALS].revents)
			signals_readable(s);
	}
}

/* ------------------------------------------------------------------ run ---------------------- */

/* A worker takes three descriptors here, a client one, and one in front, which inherits this. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FDS_WANTED)
		return;
	limit.rlim_cur = limit.rlim_max < FDS_WANTED ? limit.rlim_max : FDS_WANTED;
	/* Refused by some units' filters: then the frontend takes fewer clients. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* The rules process reads the configuration, and says what is wrong. */
static int check(const struct manager *s, char **argv)
{
	execv(s->programs.path[PROGRAM_RULES], argv);
	return fail("gpu-agent-rules", -errno);
}

static int take_from_rules(void *ctx)
{
	return requests_read_rules(ctx);
}

/* It has closed its socket. */
static void tell_rules_end(struct manager *s)
{
	int status;

	if (child_wait(s->rules.pid, clock_deadline_ms(RULES_END_MS), &status) < 0) {
		log_error("gpu-agent-rules says nothing any more, and does not end: killed");
		return;
	}
	s->rules.pid = 0;
	/* A process that exits has said why. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
		log_error("the rules process died (status 0x%x)", (unsigned)status);
}

static void give_up_rules(struct manager *s, int r)
{
	if (r == -EPIPE || r == -ECONNRESET)
		tell_rules_end(s);
	else if (r == -ETIMEDOUT)
		log_error("gpu-agent-rules has not read the configuration within %d s: killed", RULES_ANSWER_MS / 1000);
	else if (r != -EINTR)
		log_error("what gpu-agent-rules says is not understood: %s", strerror(-r));
	/* One that hangs would stay behind. */
	rules_child_kill(&s->rules);
}

/* @return 0, -EINTR: the agent is to stop; other -errno: who knows why has logged it. */
static int start_rules(struct manager *s, char **argv)
{
	int r;

	rules_child_init(&s->rules, s->programs.path[PROGRAM_RULES], argv);
	s->rules.own_socket = s->listen_fd < 0;
	r = rules_child_start(&s->rules);
	if (r < 0)
		log_error("gpu-agent-rules: %s", strerror(-r));
	if (r < 0)
		return r;
	r = rules_child_await(&s->rules, s->signal_fd, take_from_rules, s);
	if (r < 0)
		give_up_rules(s, r);
	return r;
}

static int start_front(struct manager *s, int monitor)
{
	const struct front_setup setup = { .program = s->programs.path[PROGRAM_FRONT],
					   .judge = s->programs.path[PROGRAM_JUDGE],
					   .config = &s->config, .listen_fd = s->listen_fd, .monitor = monitor,
					   .uid = s->ids.front_uid, .gid = s->ids.front_gid,
					   .user_mode = options.user, .verbose = options.verbose };

	return front_start(&s->front, &setup);
}

/* The heir watches over the monitor, and the judge talks to it. */
static int start_processes(struct manager *s)
{
	const struct heir_setup heir = { .program = s->programs.path[PROGRAM_HEIR], .records = s->records,
					 .config = &s->config, .verbose = options.verbose };
	auto_close int judge = -1, monitor = -1;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	if (r < 0)
		return r;
	judge = pair[0];
	monitor = pair[1];
	heir_take_over(&heir);
	r = monitor_child_start(&s->monitor, s->programs.path[PROGRAM_MONITOR], judge);
	if (r == 0)
		s->heir_pid = heir_start(&heir, s->monitor.pid);
	return r < 0 ? r : start_front(s, monitor);
}

/* What has that right has been started. */
static int give_up_tracing(void)
{
	int r = options.user ? 0 : privileges_keep_hooks();

	return r < 0 || options.user ? r : privileges_lower();
}

static void finish(struct manager *s)
{
	rules_child_deinit(&s->rules);
	ipc_link_deinit(&s->monitor.link);
	if (s->own_socket)
		unlink(s->config.socket);
	closers_deinit(&s->closers);
}

static int run(struct manager *s, char **argv)
{
	int r;

	s->listen_fd = -1;
	s->front = (struct front)FRONT_NULL;
	s->monitor = (struct monitor_child)MONITOR_CHILD_NULL;
	r = programs_find(&s->programs);
	if (r < 0)
		return fail("gpu-agent-front and the other programs of the agent must lie beside gpu-agentd", r);
	if (options.check_config || options.dump_config)
		return check(s, argv);
	r = open_signals(s);
	if (r == 0)
		r = sandbox_agent();
	if (r < 0)
		return fail("cannot start", r);
	raise_fd_limit();
	if (take_listener(s) < 0)
		return 1;
	r = start_rules(s, argv);
	if (r == -EINTR)
		return 0;
	if (r < 0 || open_listener(s) < 0)
		return 1;
	if (!landlock_version())
		log_info("this kernel has no Landlock: the store, adapters and readers of core files may open what "
			 "their users may");
	if (options.permissive)
		log_warning("--permissive: what NVIDIA's library is not expected to call is logged, and not refused");
	undo_record_place(s->config.socket, s->records, sizeof(s->records));
	s->closers = (struct closers){ .gate_fd = -1, .uid = s->ids.front_uid, .gid = s->ids.front_gid };
	r = start_processes(s);
	if (r < 0)
		return fail("the agent's processes", r);
	r = give_up_tracing();
	if (r < 0)
		return fail("cannot lay down capabilities", r);
	manager_tell_config(s);
	manager_tell_agent(s);
	/* Where that fails, it is known when something is to be started. */
	s->programs_fd = programs_watch();
	look_at_programs(s);
	serve(s);
	finish(s);
	return s->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options_table, NULL };
	static struct manager s;
	char error[160];
	int n;

	if (fd_reserve_stdio() < 0)
		return 1;
	n = argv_parse(argc, argv, tables, error, sizeof(error));
	if (n != 0) {
		fprintf(stderr, "gpu-agentd: %s; try --help\n",
			n < 0 ? error : "takes no arguments");
		return 2;
	}
	if (options.help) {
		puts("Usage: gpu-agentd [OPTION...]\nLive GPU debug agent (see gpu-agentd(8)).\n");
		argv_print_options(options_table);
		return 0;
	}
	if (options.version) {
		puts("gpu-agentd " GPU_AGENT_VERSION);
		return 0;
	}
	log_init("gpu-agentd", options.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	notify_init();
	return run(&s, argv);
}
