/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentd: the small privileged parent.
 *
 * Opens the socket, starts the frontend (which serves it without privileges) and, on the frontend's request, one
 * worker per target.  It decides who may debug whom, kills workers that pass their deadline, and
 * looks after the target of a worker that died.  It never sees a byte of JSON.
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

#include "agentd/privileges.h"
#include "agentd/monitor/listen.h"
#include "agentd/monitor/notify.h"
#include "agentd/monitor/recovery/recovery.h"
#include "agentd/monitor/requests.h"
#include "agentd/rules/engine/check.h"
#include "agentd/monitor/monitor.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

#define FDS_WANTED 8192
#define LEFTOVERS_SECONDS_MAX 3
#define POLL_MAX 1100

static struct options opt;

static const struct argv_option options[] = {
	{ "user", 0, ARGV_FLAG, &opt.user, NULL, "run without privileges, for this user's processes" },
	{ "socket", 0, ARGV_STRING, &opt.socket, "PATH", "listen there" },
	{ "config", 0, ARGV_STRING, &opt.config, "FILE", "read only this configuration file" },
	{ "check-config", 0, ARGV_FLAG, &opt.check_config, NULL, "check the configuration and exit" },
	{ "kfd", 0, ARGV_STRING, &opt.kfd, "PATH", "KFD device (default /dev/kfd)" },
	{ "kfd-sysfs", 0, ARGV_STRING, &opt.kfd_sysfs, "DIR", "KFD topology (default /sys/class/kfd/kfd)" },
	{ "cuda-library", 0, ARGV_STRING, &opt.cuda_library, "PATH", "CUDA driver (default libcuda.so.1)" },
	{ "store", 0, ARGV_STRING, &opt.store, "DIR", "keep records there" },
	{ "idle-exit", 0, ARGV_STRING, &opt.idle_exit, "TIME", "exit after TIME without a connection" },
	{ "verbose", 'v', ARGV_FLAG, &opt.verbose, NULL, "log more" },
	{ "version", 0, ARGV_FLAG, &opt.version, NULL, "print the version and exit" },
	{ "help", 'h', ARGV_FLAG, &opt.help, NULL, "print this help and exit" },
	{ 0 },
};

/* ------------------------------------------------------------------ beginning ---------------- */

static int fail(const char *what, int r)
{
	log_error("%s: %s", what, strerror(-r));
	return 1;
}

/* Our programs lie side by side, in the build tree as after installation. */
static int find_programs(struct programs *p)
{
	char self[PATH_MAX - 32];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	snprintf(p->front, sizeof(p->front), "%s/gpu-agent-front", self);
	snprintf(p->worker, sizeof(p->worker), "%s/gpu-agent-worker", self);
	snprintf(p->store, sizeof(p->store), "%s/gpu-agent-store", self);
	snprintf(p->hook, sizeof(p->hook), "%s/gpu-agent-hook", self);
	snprintf(p->adapter, sizeof(p->adapter), "%s/gpu-agent-adapter", self);
	if (access(p->front, X_OK) < 0 || access(p->worker, X_OK) < 0 || access(p->store, X_OK) < 0 ||
	    access(p->hook, X_OK) < 0 || access(p->adapter, X_OK) < 0)
		return -errno;
	return 0;
}

static int find_listener(struct monitor *s)
{
	char error[256];
	gid_t gid = ACCESS_NO_GROUP;
	int r = notify_listen_fd(&s->listen_fd);

	if (r < 0) {
		log_error("LISTEN_FDS: expected exactly one listening Unix stream socket");
		return r;
	}
	if (s->listen_fd >= 0) {
		r = fd_refuse_rights(s->listen_fd);
		return r < 0 ? r : fd_set_nonblock(s->listen_fd, true);
	}
	if (!opt.user)
		gid = settings_group(s->config.socket_group);
	r = listen_open(s->config.socket, gid, &s->listen_fd, error, sizeof(error));
	if (r < 0)
		log_error("%s", error);
	s->own_socket = r == 0;
	return r;
}

static int open_listener(struct monitor *s)
{
	socklen_t size = sizeof(s->address);
	int r = find_listener(s);

	if (r < 0)
		return r;
	return getsockname(s->listen_fd, (struct sockaddr *)&s->address, &size) < 0 ? -errno : 0;
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

static void tell_watch(void *ctx, const struct ipc_watch *m, int channel)
{
	monitor_tell_front(ctx, m, sizeof(*m), channel);
}

static void send_hooked(void *ctx, const struct ipc_hooked *m, int fd)
{
	monitor_tell_front(ctx, m, sizeof(*m), fd);
}

static void left_owed(void *ctx)
{
	struct monitor *s = ctx;
	const struct ipc_note m = { .type = IPC_NOTE, .kind = IPC_NOTE_OWED };

	if (s->front.sock >= 0)
		monitor_tell_front(s, &m, sizeof(m), -1);
}

/* ------------------------------------------------------------------ the loop ----------------- */

static void front_gone(struct monitor *s, const char *why)
{
	if (!s->stop_at) {
		log_error("front is gone (%s): stopping", why);
		monitor_front_failed(s);
	}
	monitor_close_front(s);
}

static void front_readable(struct monitor *s, short events)
{
	int r;

	/* Of one that is gone only the monitor would have what it sent. */
	if (events & (POLLHUP | POLLERR)) {
		front_gone(s, strerror(EPIPE));
		return;
	}
	if (events & POLLOUT)
		monitor_flush_front(s);
	while ((r = requests_read_front(s)) == 0)
		;
	if (r == -EAGAIN)
		return;
	if (r == -EPROTO && s->front.pid) {
		log_error("front breaks the protocol: killed");
		kill(s->front.pid, SIGKILL);
	}
	front_gone(s, strerror(-r));
}

static void closer_ended(struct monitor *s, int64_t uid)
{
	const struct ipc_closer m = { .type = IPC_CLOSER, .kind = IPC_CLOSER_ENDED,
				      .uid = (uint32_t)uid };

	if (uid != CLOSERS_NOBODY && s->front.sock >= 0)
		monitor_tell_front(s, &m, sizeof(m), -1);
}

static void reap(struct monitor *s)
{
	struct ipc_ended ended;
	int status;
	int64_t uid;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->front.pid) {
			s->front.pid = s->workers.front_pid = 0;
			if (!s->stop_at) {
				log_error("front died (status 0x%x): stopping", (unsigned)status);
				monitor_front_failed(s);
			}
		} else if (hooks_reaped(&s->hooks, pid, status)) {
			continue;
		} else if (closers_reaped(&s->closers, pid, &uid)) {
			closer_ended(s, uid);
		} else if (workers_reaped(&s->workers, pid, status, &ended)) {
			watches_worker_ended(&s->watches, ended.worker,
					     ended.how == IPC_HOW_CLEAN);
			if (s->front.sock >= 0)
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

static void look_at_watchdog(struct monitor *s)
{
	const struct ipc_ping ping = { .type = IPC_PING, .number = s->watchdog.number + 1 };

	if (s->stop_at)
		return;
	switch (watchdog_due(&s->watchdog, clock_now_ns())) {
	case WATCHDOG_ASK:
		/* One that takes no messages is as silent as any. */
		(void)fd_send(s->front.sock, &ping, sizeof(ping), NULL, 0);
		break;
	case WATCHDOG_STUCK:
		log_error("front does not answer: killed");
		kill(s->front.pid, SIGKILL);
		monitor_front_failed(s);
		break;
	case WATCHDOG_WAIT:
		break;
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static int poll_timeout(struct monitor *s)
{
	uint64_t next = workers_deadlines(&s->workers), hooks = hooks_deadlines(&s->hooks);
	uint64_t look = s->stop_at ? 0 : watches_deadlines(&s->watches);

	look_at_watchdog(s);
	next = earlier(earlier(next, hooks), earlier(look, monitor_front_deadline(s)));
	if (!s->stop_at)
		next = earlier(next, s->watchdog.at);
	if (s->stop_at && (!next || s->stop_at < next))
		next = clock_left_ms(s->stop_at) ? s->stop_at : clock_deadline_ms(50);
	return next ? clock_left_ms(next) : -1;
}

static void serve(struct monitor *s)
{
	struct pollfd fds[POLL_MAX + HOOKS_RUNNING_MAX + 1];
	struct worker *of[POLL_MAX];

	while (!s->stop_at || monitor_stop_step(s)) {
		size_t n = 0, n_workers;
		int timeout = poll_timeout(s); /* it may start a worker */

		fds[n++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = s->front.sock, .events = front_events(&s->front) };
		fds[n++] = (struct pollfd){ .fd = s->watches.discover.fd, .events = POLLIN };
		for (struct worker *w = s->workers.first; w && n < POLL_MAX; w = w->next) {
			of[n] = w;
			fds[n++] = (struct pollfd){ .fd = w->guard_fd, .events = POLLIN };
		}
		n_workers = n;
		n += hooks_poll(&s->hooks, fds + n);
		if (poll(fds, n, timeout) < 0 && errno != EINTR) {
			log_error("poll: %s", strerror(errno));
			monitor_stop(s);
			continue;
		}
		/* Guards first: the others may remove workers from the list. */
		for (size_t i = 3; i < n_workers; i++)
			if (fds[i].revents)
				workers_guard(&s->workers, of[i]);
		for (size_t i = n_workers; i < n; i++)
			if (fds[i].revents)
				hooks_readable(&s->hooks, fds[i].fd);
		if (fds[2].revents)
			watches_readable(&s->watches);
		if (fds[1].revents)
			front_readable(s, fds[1].revents);
		if (fds[0].revents)
			signals_readable(s);
	}
}

/* ------------------------------------------------------------------ run ---------------------- */

/* A worker takes two descriptors here, a client or a session one in front, which inherits this. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FDS_WANTED)
		return;
	limit.rlim_cur = limit.rlim_max < FDS_WANTED ? limit.rlim_max : FDS_WANTED;
	/* Refused by some units' filters: then the frontend takes fewer clients. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* What reads the configuration and runs hooks has said what is wrong. */
static int check(struct monitor *s)
{
	if (check_hooks(&s->watch_rules, s->programs.hook, opt.user) < 0)
		return 1;
	puts("configuration is valid");
	rules_deinit(&s->watch_rules);
	return 0;
}

/* Each module knows what it needs of the others; nothing happens yet. */
static void connect_modules(struct monitor *s)
{
	const struct workers_setup setup = { .config = &s->config, .programs = &s->programs,
					     .records = s->records,
					     .store_uid = s->ids.front_uid, .store_gid = s->ids.front_gid,
					     .user_mode = opt.user, .verbose = opt.verbose,
					     .ask = requests_take, .on_owed = left_owed, .ctx = s };

	/* Beside the socket: alone in its namespace, and gone after a restart of the machine. */
	snprintf(s->records, sizeof(s->records), "%s.undo", s->config.socket);
	workers_init(&s->workers, &setup);
	hooks_init(&s->hooks, s->programs.hook);
	s->hook_desk = (struct hook_desk){ .hooks = &s->hooks, .user_mode = opt.user,
					   .send = send_hooked, .ctx = s };
	s->rules_service = (struct rules_service){ .workers = &s->workers, .tell = tell_watch, .ctx = s };
	watches_init(&s->watches, &s->watch_rules, s->config.kfd_device, &rules_service,
		     &s->rules_service);
	s->closers = (struct closers){ .gate_fd = -1, .uid = s->ids.front_uid, .gid = s->ids.front_gid };
}

static int start_front(struct monitor *s)
{
	const struct front_setup setup = { .program = s->programs.front, .config = &s->config,
					   .uid = s->ids.front_uid, .gid = s->ids.front_gid,
					   .admin_gid = s->ids.groups.admin_gid,
					   .user_mode = opt.user, .verbose = opt.verbose,
					   .listen_fd = s->listen_fd };
	int r = front_start(&s->front, &setup);

	s->workers.front_pid = s->front.pid;
	return r;
}

static void finish(struct monitor *s)
{
	hooks_deinit(&s->hooks);
	watches_deinit(&s->watches);
	if (s->own_socket)
		unlink(s->config.socket);
	workers_deinit(&s->workers);
	closers_deinit(&s->closers);
	rmdir(s->records);
	rules_deinit(&s->watch_rules);
}

static int run(struct monitor *s)
{
	int r;

	s->listen_fd = -1;
	s->options = &opt;
	s->front = (struct front)FRONT_NULL;
	if (settings_load(&opt, &s->config, &s->watch_rules) < 0)
		return 1;
	r = find_programs(&s->programs);
	if (r < 0)
		return fail("gpu-agent-front, -worker, -store, -hook and -adapter must lie beside gpu-agentd", r);
	if (opt.check_config)
		return check(s);
	if (settings_resolve(&opt, &s->config, &s->ids) < 0 || open_listener(s) < 0)
		return 1;
	if (!opt.user)
		r = privileges_keep_attach();
	if (r == 0)
		r = open_signals(s);
	if (r < 0)
		return fail("cannot start", r);
	raise_fd_limit();
	connect_modules(s);
	recovery_take_over(&s->workers.rescue_host);
	r = start_front(s);
	if (r < 0)
		return fail("front", r);
	close(TAKE_FD(s->listen_fd));
	release_leftovers_of_others(s);
	recovery_start(&s->workers.rescue_host);
	monitor_apply_rules(s);
	serve(s);
	finish(s);
	return s->front_failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
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
	if (opt.help) {
		puts("Usage: gpu-agentd [OPTION...]\nLive GPU debug agent (see gpu-agentd(8)).\n");
		argv_print_options(options);
		return 0;
	}
	if (opt.version) {
		puts("gpu-agentd " GPU_AGENT_VERSION);
		return 0;
	}
	log_init("gpu-agentd", opt.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	notify_init();
	return run(&s);
}
