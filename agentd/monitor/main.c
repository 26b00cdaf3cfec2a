/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentd: the small privileged parent.
 *
 * It has the rules process read the configuration, opens the socket, and starts the frontend, which
 * serves that socket without privileges, and, when the frontend or a rule wants it, one worker per
 * target.  It decides who may debug whom, kills workers that pass their deadline, and looks after
 * the target of a worker that died.  It never sees a byte of JSON, nor of the configuration's text.
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
#include <time.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/link.h"
#include "agentd/landlock.h"
#include "agentd/options.h"
#include "agentd/privileges.h"
#include "agentd/sandbox.h"
#include "agentd/monitor/listen.h"
#include "agentd/monitor/notify.h"
#include "agentd/monitor/programs.h"
#include "agentd/monitor/recovery/recovery.h"
#include "agentd/monitor/requests.h"
#include "agentd/monitor/monitor.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define FDS_WANTED 8192
/* A rules process that has closed its socket has ended by then. */
#define RULES_END_MS 2000
#define LEFTOVERS_SECONDS_MAX 3
#define POLL_MAX 1100
/* The kernel may have no memory for a moment: so often, and this long, the loop tries again. */
#define POLL_FAILURES_MAX 100
#define POLL_PAUSE_MS	  50

/* ------------------------------------------------------------------ beginning ---------------- */

static int fail(const char *what, int r)
{
	log_error("%s: %s", what, strerror(-r));
	return 1;
}

/* Has a manager handed a listening socket over? */
static int take_listener(struct monitor *s)
{
	int r = notify_listen_fd(&s->listen_fd);

	if (r < 0)
		log_error("LISTEN_FDS: expected exactly one listening Unix stream socket");
	return r;
}

static int open_listener(struct monitor *s)
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

/* In a child, because it may wait; workers are not ours yet, so it cannot meet one. */
static void release_leftovers_of_others(struct monitor *s)
{
	if (fork() != 0)
		return; /* a failed fork costs a target its wait for the next attach, no more */
	close_range(STDERR_FILENO + 1, ~0u, 0);
	alarm(LEFTOVERS_SECONDS_MAX);
	recovery_release_leftovers(&s->workers.rescue_host, s->config.kfd_sysfs);
	_exit(0);
}

static int open_signals(struct monitor *s)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	/* Ignored, as some parents leave it, the kernel would reap workers without telling us. */
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

/* ------------------------------------------------------------------ for front ---------------- */

static void tell_note(struct monitor *s, enum ipc_note_kind kind)
{
	const struct ipc_note m = { .type = IPC_NOTE, .kind = kind };

	if (s->front.box.sock >= 0)
		monitor_tell_front(s, &m, sizeof(m), -1);
}

static void left_owed(void *ctx)
{
	tell_note(ctx, IPC_NOTE_OWED);
}

static void were_replaced(void *ctx)
{
	tell_note(ctx, IPC_NOTE_REPLACED);
}

/* ------------------------------------------------------------------ the loop ----------------- */

static void judge_readable(struct monitor *s, short events)
{
	int r = 0;

	/* Of one that is gone only the monitor would have what it sent. */
	if (events & (POLLHUP | POLLERR))
		r = -EPIPE;
	else if (events & POLLOUT)
		monitor_flush_front(s);
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
		monitor_front_failed(s);
	}
	monitor_close_front(s);
}

static void tell_rules_ended(struct monitor *s, const struct ipc_ended *ended)
{
	const struct rules_ended m = { .worker = ended->worker, .clean = ended->how == IPC_HOW_CLEAN };

	rules_child_tell(&s->rules, RULES_ENDED, 0, &m, sizeof(m), -1);
}

static void rules_readable(struct monitor *s, short events)
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

static void reap(struct monitor *s)
{
	struct ipc_ended ended;
	int status;
	int64_t uid;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0) {
		if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
			workers_paused(&s->workers, pid, status);
			continue;
		}
		if (pid == s->front.pid) {
			s->front.pid = s->workers.front_pid = 0;
			if (!s->stop_at) {
				log_error("front died (status 0x%x): stopping", (unsigned)status);
				monitor_front_failed(s);
			}
		} else if (pid == s->recovery_pid) {
			s->recovery_pid = 0;
		} else if (pid == s->front.judge_pid) {
			s->front.judge_pid = s->workers.judge_pid = 0;
			if (!s->stop_at) {
				log_error("the judge died (status 0x%x): stopping", (unsigned)status);
				monitor_front_failed(s);
			}
		} else if (pid == s->rules.pid) {
			s->workers.rules_pid = 0;
			monitor_rules_ended(s, status);
		} else if (closers_reaped(&s->closers, pid, &uid)) {
			continue;
		} else if (workers_reaped(&s->workers, pid, status, &ended)) {
			tell_rules_ended(s, &ended);
			if (s->front.box.sock >= 0)
				monitor_tell_front(s, &ended, sizeof(ended), -1);
		}
	}
}

static void signals_readable(struct monitor *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(s);
		else if (si.ssi_signo == SIGHUP)
			monitor_reload(s);
		else
			monitor_stop(s);
	}
}

static void programs_changed(struct monitor *s)
{
	programs_watched(s->programs_fd);
	workers_are_replaced(&s->workers);
}

static void look_at_watchdog(struct monitor *s)
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
		log_error("front does not answer, or the judge does not pass it on: both are killed");
		privileges_kill(s->front.pid, SIGKILL);
		if (s->front.judge_pid)
			privileges_kill(s->front.judge_pid, SIGKILL);
		monitor_front_failed(s);
		break;
	case WATCHDOG_WAIT:
		break;
	}
}

static uint64_t look_at_rules(struct monitor *s)
{
	uint64_t next;
	bool started;

	if (rules_child_is_due(&s->rules) && workers_are_replaced(&s->workers))
		monitor_rules_stay_ended(s);
	next = rules_child_deadlines(&s->rules, &started);
	s->workers.rules_pid = s->rules.pid;
	if (started)
		monitor_tell_held(s);
	return next;
}

static int poll_timeout(struct monitor *s)
{
	uint64_t next = s->stop_at ? 0 : look_at_rules(s);

	look_at_watchdog(s);
	next = clock_earlier(next, monitor_front_deadline(s));
	/* Behind what may have started a worker. */
	next = clock_earlier(next, workers_deadlines(&s->workers));
	if (!s->stop_at)
		next = clock_earlier(next, s->watchdog.at);
	if (s->stop_at && (!next || s->stop_at < next))
		next = clock_left_ms(s->stop_at) ? s->stop_at : clock_deadline_ms(50);
	return next ? clock_left_ms(next) : -1;
}

/* Sessions do not end because poll() failed once.  @param n  How often it has, one time after the other. */
static void poll_failed(struct monitor *s, int error, unsigned n)
{
	const struct timespec pause = { 0, POLL_PAUSE_MS * 1000000L };

	if (error == EINTR)
		return;
	if (n == 1)
		log_warning("poll: %s", strerror(error));
	if (n < POLL_FAILURES_MAX) {
		nanosleep(&pause, NULL);
		return;
	}
	log_error("poll: %s, for %u ms: stopping", strerror(error), n * POLL_PAUSE_MS);
	monitor_front_failed(s);
}

/* What is polled; behind these come the sockets of workers. */
enum { SIGNALS, JUDGE, RULES, PROGRAMS, FIXED };

/* @param of  Whose socket each is.  @return their number. */
static size_t list_fds(const struct monitor *s, struct pollfd fds[POLL_MAX], struct worker *of[POLL_MAX])
{
	size_t n = FIXED;

	fds[SIGNALS] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[JUDGE] = (struct pollfd){ .fd = s->front.box.sock, .events = outbox_events(&s->front.box) };
	fds[RULES] = (struct pollfd){ .fd = s->rules.link.fd, .events = rules_child_events(&s->rules) };
	fds[PROGRAMS] = (struct pollfd){ .fd = s->programs_fd, .events = POLLIN };
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
		if (fds[PROGRAMS].revents)
			programs_changed(s);
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
static int check(const struct monitor *s, char **argv)
{
	execv(s->programs.rules, argv);
	return fail("gpu-agent-rules", -errno);
}

static int take_from_rules(void *ctx)
{
	return requests_read_rules(ctx);
}

/* It has closed its socket. */
static void tell_rules_end(struct monitor *s)
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

static void give_up_rules(struct monitor *s, int r)
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
static int start_rules(struct monitor *s, char **argv)
{
	int r;

	rules_child_init(&s->rules, s->programs.rules, argv);
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

/* Each module knows what it needs of the others; nothing happens yet. */
static void connect_modules(struct monitor *s)
{
	const struct workers_setup setup = { .config = &s->config, .programs = &s->programs,
					     .records = s->records,
					     .store_uid = s->ids.front_uid, .store_gid = s->ids.front_gid,
					     .user_mode = options.user, .verbose = options.verbose,
					     .ask = requests_take, .on_owed = left_owed,
					     .on_replaced = were_replaced, .ctx = s };

	/* Beside the socket: alone in its namespace, and gone after a restart of the machine. */
	snprintf(s->records, sizeof(s->records), "%s.undo", s->config.socket);
	workers_init(&s->workers, &setup);
	s->workers.rules_pid = s->rules.pid;
	s->closers = (struct closers){ .gate_fd = -1, .uid = s->ids.front_uid, .gid = s->ids.front_gid };
}

static int start_front(struct monitor *s)
{
	const struct front_setup setup = { .program = s->programs.front, .judge = s->programs.judge,
					   .config = &s->config, .listen_fd = s->listen_fd,
					   .uid = s->ids.front_uid, .gid = s->ids.front_gid,
					   .user_mode = options.user, .verbose = options.verbose };
	int r = front_start(&s->front, &setup);

	s->workers.front_pid = s->front.pid;
	s->workers.judge_pid = s->front.judge_pid;
	return r;
}

static void finish(struct monitor *s)
{
	rules_child_deinit(&s->rules);
	if (s->own_socket)
		unlink(s->config.socket);
	workers_deinit(&s->workers);
	closers_deinit(&s->closers);
	/* Where records are left, so is somebody to whom they matter. */
	if (rmdir(s->records) == 0 || errno == ENOENT)
		recovery_end(s->recovery_pid);
}

static int run(struct monitor *s, char **argv)
{
	int r;

	s->listen_fd = -1;
	s->front = (struct front)FRONT_NULL;
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
	if (!options.user)
		r = privileges_keep_attach();
	if (r < 0)
		return fail("cannot start", r);
	if (!landlock_version())
		log_info("this kernel has no Landlock: the store, adapters and readers of core files may open what "
			 "their users may");
	connect_modules(s);
	recovery_take_over(&s->workers.rescue_host);
	r = start_front(s);
	if (r < 0)
		return fail("front", r);
	release_leftovers_of_others(s);
	r = options.user ? 0 : privileges_lower();
	if (r < 0)
		return fail("cannot lay down capabilities", r);
	s->recovery_pid = recovery_start(&s->workers.rescue_host);
	monitor_tell_config(s);
	/* Where that fails, it is known when something is to be started. */
	s->programs_fd = programs_watch(&s->programs);
	workers_are_replaced(&s->workers);
	serve(s);
	finish(s);
	return s->front_failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options_table, NULL };
	static struct monitor s;
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
