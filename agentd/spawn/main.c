/* SPDX-License-Identifier: MIT */
/*
 * gpu-agentd: the small privileged parent.
 *
 * Opens the socket, starts front (which serves it without privileges) and, on front's request, one
 * worker per target.  It decides who may debug whom, kills workers that pass their deadline, and
 * looks after the target of a worker that died.  It never sees a byte of JSON.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/child.h"
#include "agentd/ipc.h"
#include "agentd/privileges.h"
#include "agentd/spawn/authorise.h"
#include "agentd/spawn/closers.h"
#include "agentd/spawn/rules/check.h"
#include "agentd/spawn/config/config.h"
#include "agentd/spawn/recovery/recovery.h"
#include "agentd/spawn/hooks/hook_requests.h"
#include "agentd/spawn/listen.h"
#include "agentd/spawn/notify.h"
#include "agentd/spawn/rules/rule_hooks.h"
#include "agentd/spawn/rules/rules.h"
#include "agentd/spawn/rules_service.h"
#include "agentd/spawn/stores.h"
#include "agentd/spawn/rules/watch.h"
#include "agentd/spawn/watchdog.h"
#include "agentd/spawn/workers.h"
#include "base/argv.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/* Workers detach within this time of a SIGTERM, or the kernel does it for them. */
#define STOP_WORKERS_MS 5000
#define STOP_FRONT_MS 2000
/* What is killed is gone by then, unless the kernel cannot end it: that one is not waited for. */
#define STOP_KILLED_MS 1000
/* More than a rescue may take. */
#define STOP_RELEASES_MS 21000
#define FRONT_BUSY_MS 1000
#define FDS_WANTED 8192
#define LEFTOVERS_SECONDS_MAX 3
#define POLL_MAX 1100

static struct {
	const char *socket, *config, *kfd, *kfd_sysfs, *cuda_library, *idle_exit, *store;
	bool user, check_config, verbose, version, help;
} opt;

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

struct spawn {
	struct config config;
	struct access_rules rules;
	struct rules watch_rules;
	uint32_t rules_generation;
	struct watches watches;
	struct rules_service rules_service;
	struct workers workers;
	struct hooks hooks;
	struct hook_desk hook_desk;
	struct programs programs;
	char records[sizeof(((struct config *)0)->socket) + 8];
	uid_t front_uid;
	gid_t front_gid;
	int listen_fd;
	struct sockaddr_un address; /* of the listening socket */
	bool own_socket; /* we made the socket file */
	int front_sock;
	pid_t front_pid;
	int signal_fd;
	struct closers closers;
	struct watchdog watchdog;
	uint64_t stop_at;  /* stopping: SIGKILL comes then */
	bool left_workers; /* to the kernel, which does not end them */
	bool front_failed; /* front ended although nobody asked it to */
};

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

static int apply_option(const char *name, char *field, size_t size, const char *value)
{
	if (value && strlen(value) >= size) {
		log_error("--%s: too long", name);
		return -EINVAL;
	}
	if (value)
		str_copy(field, size, value);
	return 0;
}

/* As the XDG base directory specification has it; "" when there is no such place. */
static void user_store(char *ret, size_t size)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	ret[0] = '\0';
	if (state && state[0] == '/')
		snprintf(ret, size, "%s/gpu-agent/cores", state);
	else if (home && home[0] == '/')
		snprintf(ret, size, "%s/.local/state/gpu-agent/cores", home);
}

static void log_lines(char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")))
		log_error("%s", line);
}

/* @param rules  What it says of those; the caller's also after a failure. */
static int load_config(struct spawn *s, struct rules *rules)
{
	struct config *c = &s->config;
	char error[CONFIG_ERROR_SIZE] = "";
	uint64_t ms;
	int r = 0, e;

	config_init(c);
	c->names_must_exist = opt.check_config;
	c->rules = rules;
	c->rules_need_root = !opt.user;
	if (opt.user) {
		const char *dir = getenv("XDG_RUNTIME_DIR");

		if (dir)
			snprintf(c->socket, sizeof(c->socket), "%s/gpu-agent/agentd.sock", dir);
		else
			c->socket[0] = '\0';
	}
	if (opt.config)
		r = config_read_file(c, opt.config, error, sizeof(error));
	else if (!opt.user)
		r = config_read_default(c, error, sizeof(error));
	e = rules_check(rules, error, sizeof(error));
	r = r ? r : e;
	if (r < 0) {
		log_lines(error);
		return r;
	}
	if (opt.user && !opt.config)
		user_store(c->store_directory, sizeof(c->store_directory));
	if (apply_option("store", c->store_directory, sizeof(c->store_directory), opt.store) < 0 ||
	    apply_option("socket", c->socket, sizeof(c->socket), opt.socket) < 0 ||
	    apply_option("kfd", c->kfd_device, sizeof(c->kfd_device), opt.kfd) < 0 ||
	    apply_option("kfd-sysfs", c->kfd_sysfs, sizeof(c->kfd_sysfs), opt.kfd_sysfs) < 0 ||
	    apply_option("cuda-library", c->cuda_library, sizeof(c->cuda_library),
			 opt.cuda_library) < 0)
		return -EINVAL;
	if (opt.idle_exit) {
		if (str_to_ms(opt.idle_exit, &ms) < 0) {
			log_error("--idle-exit %s: not a duration such as 90s", opt.idle_exit);
			return -EINVAL;
		}
		c->idle_exit_ms = (uint32_t)ms;
	}
	if (!c->socket[0]) {
		log_error("no socket path: set XDG_RUNTIME_DIR or give --socket");
		return -EINVAL;
	}
	return 0;
}

/* A group that does not exist gives nobody any right. */
static gid_t group_id(const char *name)
{
	const struct group *g = name[0] ? getgrnam(name) : NULL;

	if (name[0] && !g)
		log_warning("group %s does not exist: ignored", name);
	return g ? g->gr_gid : ACCESS_NO_GROUP;
}

static int resolve_names(struct spawn *s)
{
	const struct passwd *pw;

	s->rules = (struct access_rules){ ACCESS_NO_GROUP, ACCESS_NO_GROUP };
	s->front_uid = getuid();
	s->front_gid = getgid();
	if (opt.user)
		return 0;
	s->rules.admin_gid = group_id(s->config.admin_group);
	s->rules.observer_gid = group_id(s->config.observer_group);
	if (geteuid() != 0)
		return 0;
	pw = getpwnam(s->config.user);
	if (!pw)
		pw = getpwnam("nobody");
	if (!pw || pw->pw_uid == 0) {
		log_error("user %s does not exist (systemd-sysusers makes it)", s->config.user);
		return -ENOENT;
	}
	s->front_uid = pw->pw_uid;
	s->front_gid = pw->pw_gid;
	return 0;
}

static int find_listener(struct spawn *s)
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
		gid = group_id(s->config.socket_group);
	r = listen_open(s->config.socket, gid, &s->listen_fd, error, sizeof(error));
	if (r < 0)
		log_error("%s", error);
	s->own_socket = r == 0;
	return r;
}

static int open_listener(struct spawn *s)
{
	socklen_t size = sizeof(s->address);
	int r = find_listener(s);

	if (r < 0)
		return r;
	return getsockname(s->listen_fd, (struct sockaddr *)&s->address, &size) < 0 ? -errno : 0;
}

static _Noreturn void front_exec(const struct spawn *s, int sock)
{
	char uid[12], gid[12], admin[12], connections[12], per_user[12], sessions[12], idle[12];
	char silent[12];
	const char *argv[] = { s->programs.front, "--uid", uid, "--gid", gid, "--admin-gid", admin,
			       "--connections", connections, "--connections-per-user", per_user,
			       "--sessions-per-user", sessions, "--idle-ms", idle,
			       "--silent-holder-ms", silent, NULL, NULL, NULL };
	static const int to[] = { IPC_FD_LISTEN, IPC_FD_SPAWN };
	const int from[] = { s->listen_fd, sock };
	size_t n = 17;

	snprintf(uid, sizeof(uid), "%u", s->front_uid);
	snprintf(gid, sizeof(gid), "%u", s->front_gid);
	snprintf(admin, sizeof(admin), "%u", s->rules.admin_gid);
	snprintf(connections, sizeof(connections), "%u", s->config.connections);
	snprintf(per_user, sizeof(per_user), "%u", s->config.connections_per_user);
	snprintf(sessions, sizeof(sessions), "%u", s->config.sessions_per_user);
	snprintf(idle, sizeof(idle), "%u", s->config.idle_exit_ms);
	snprintf(silent, sizeof(silent), "%u", s->config.silent_holder_ms);
	if (opt.user)
		argv[n++] = "--user";
	if (opt.verbose)
		argv[n++] = "--verbose";
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(s->programs.front, argv, 0);
}

static int start_front(struct spawn *s)
{
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	if (r < 0)
		return r;
	s->front_pid = fork();
	if (s->front_pid == 0)
		front_exec(s, pair[1]);
	close(pair[1]);
	if (s->front_pid < 0) {
		close(pair[0]);
		return -errno;
	}
	s->front_sock = pair[0];
	s->workers.front_pid = s->front_pid;
	return 0;
}

/* In a child, because it may wait; workers are not ours yet, so it cannot meet one. */
static void release_leftovers_of_others(struct spawn *s)
{
	if (fork() != 0)
		return; /* a failed fork costs a target its wait for the next attach, no more */
	close_range(STDERR_FILENO + 1, ~0u, 0);
	alarm(LEFTOVERS_SECONDS_MAX);
	recovery_release_leftovers(&s->workers.rescue_host, s->config.kfd_sysfs);
	_exit(0);
}

static int open_signals(struct spawn *s)
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

static void stop(struct spawn *s)
{
	if (s->stop_at)
		return;
	notify_send("STOPPING=1\nSTATUS=Releasing all targets");
	s->stop_at = clock_deadline_ms(STOP_WORKERS_MS);
	workers_signal(&s->workers, SIGTERM);
	hooks_stop(&s->hooks);
}

static void send_front(struct spawn *s, const void *msg, size_t size, int fd)
{
	struct pollfd p = { .fd = s->front_sock, .events = POLLOUT };
	ssize_t n = s->front_sock < 0 ? -EPIPE : fd_send(s->front_sock, msg, size, &fd, fd >= 0);

	/* It never waits for us, so waiting for it cannot last for ever. */
	if (n == -EAGAIN && poll(&p, 1, FRONT_BUSY_MS) > 0)
		n = fd_send(s->front_sock, msg, size, &fd, fd >= 0);
	/* front always reads; when it does not, it is broken, and its clients' targets go free. */
	if (n < 0 && !s->stop_at) {
		log_error("front does not take messages (%s): stopping", strerror((int)-n));
		s->front_failed = true;
		stop(s);
	}
}

static void tell_limits(struct spawn *s, bool serve_on)
{
	const struct ipc_limits m = { .type = IPC_LIMITS,
				      .connections = s->config.connections,
				      .connections_per_user = s->config.connections_per_user,
				      .sessions_per_user = s->config.sessions_per_user,
				      .idle_ms = s->config.idle_exit_ms,
				      .silent_holder_ms = s->config.silent_holder_ms,
				      .admin_gid = s->rules.admin_gid,
				      .serve_on = serve_on };

	send_front(s, &m, sizeof(m), -1);
}

/* Not before the last hook has said how it went, and not when a reload meanwhile is against it. */
static void front_idle(struct spawn *s)
{
	if (s->stop_at)
		return;
	if (hooks_is_busy(&s->hooks) || s->watch_rules.n || !s->config.idle_exit_ms) {
		tell_limits(s, true);
		return;
	}
	log_info("idle: exiting");
	stop(s);
}

static void front_note(struct spawn *s, const struct ipc_note *m)
{
	switch (m->kind) {
	case IPC_NOTE_READY:
		watchdog_begin(&s->watchdog, notify_watchdog_ms(), clock_now_ns());
		notify_send("READY=1\nSTATUS=Serving %s", s->config.socket);
		log_info("ready on %s", s->config.socket);
		break;
	case IPC_NOTE_IDLE:
		front_idle(s);
		break;
	case IPC_NOTE_STATUS:
		notify_send("STATUS=%u sessions, %u connections", m->value >> 16,
			    m->value & 0xffff);
		break;
	case IPC_NOTE_KILL:
		workers_kill(&s->workers, m->value);
		break;
	case IPC_NOTE_RELEASE:
		watches_release(&s->watches, m->value);
		break;
	case IPC_NOTE_DROPPED:
		closers_go(&s->closers);
		break;
	case IPC_NOTE_PONG:
		if (watchdog_answered(&s->watchdog, m->value, clock_now_ns()))
			notify_send("WATCHDOG=1");
		break;
	}
}

static void front_start(struct spawn *s, const struct ipc_start *m, int client_sock, int early_fd)
{
	struct ipc_started answer;
	auto_close int channel = -1;

	if (s->stop_at)
		return;
	if (client_sock < 0)
		authorise_refuse(m, -EMFILE, &answer);
	else
		authorise_start(&s->workers, &s->rules, m, client_sock, early_fd, &answer, &channel);
	send_front(s, &answer, sizeof(answer), channel);
	if (m->kind != IPC_KIND_STORE && m->kind != IPC_KIND_ADAPTER)
		watches_hint(&s->watches);
}

static void tell_watch(void *ctx, const struct ipc_watch *m, int channel)
{
	send_front(ctx, m, sizeof(*m), channel);
}

static void found(struct spawn *s, pid_t pid, enum ipc_vendor vendor)
{
	if (!s->stop_at && !workers_is_own(&s->workers, pid))
		watches_found(&s->watches, pid, vendor);
}

static void left_owed(void *ctx)
{
	struct spawn *s = ctx;
	const struct ipc_note m = { .type = IPC_NOTE, .kind = IPC_NOTE_OWED };

	if (s->front_sock >= 0)
		send_front(s, &m, sizeof(m), -1);
}

static void hook_asked(struct spawn *s, const struct worker *k, const struct ipc_fault *fault,
		       int document_fd)
{
	struct rules_fault f = { .pid = k->target, .uid = k->target_uid, .gid = k->target_gid,
				 .fault = *fault };

	str_copy(f.rule, sizeof(f.rule), k->rule);
	rule_hooks_run(&s->hooks, &f, document_fd);
}

static int worker_asks(void *ctx, struct worker *k, const struct ipc_guard *m, int *take_fd)
{
	struct spawn *s = ctx;

	switch (m->type) {
	case IPC_STORE:
		if (*take_fd < 0 || k->kind != IPC_KIND_SESSION)
			return -EPROTO;
		stores_start_producer(&s->workers, k, TAKE_FD(*take_fd));
		return 0;
	case IPC_HOOK:
		if (*take_fd < 0 || k->kind != IPC_KIND_SESSION)
			return -EPROTO;
		hook_asked(s, k, &m->fault, *take_fd);
		return 0;
	case IPC_FOUND:
		if (k->kind != IPC_KIND_LOOK || !m->pid || m->pid > INT32_MAX)
			return -EPROTO;
		found(s, (pid_t)m->pid, (enum ipc_vendor)m->vendor);
		return 0;
	case IPC_ARM:
		return workers_arm(k, m->ms) ? 0 : -EPROTO;
	case IPC_DISARM:
		workers_disarm(k);
		return 0;
	}
	return -EPROTO;
}

/* Rules were read: first front knows their names, then processes get theirs. */
static void apply_rules(struct spawn *s)
{
	struct ipc_rule_name m = { .type = IPC_RULE_NAME, .generation = ++s->rules_generation };

	s->config.rules = NULL;
	rule_hooks_configure(&s->hooks, &s->watch_rules);
	for (size_t i = 0; i < s->watch_rules.n; i++) {
		str_copy(m.name, sizeof(m.name), s->watch_rules.list[i].name);
		m.last = i + 1 == s->watch_rules.n;
		send_front(s, &m, sizeof(m), -1);
	}
	m.last = 1;
	if (!s->watch_rules.n)
		send_front(s, &m, sizeof(m), -1);
	watches_configure(&s->watches);
}

static void send_hooked(void *ctx, const struct ipc_hooked *m, int fd)
{
	send_front(ctx, m, sizeof(*m), fd);
}

static void front_hooks(struct spawn *s, struct ipc_hooks *m, int client_sock, int document_fd)
{
	struct access_peer client;
	int r = client_sock < 0 ? -EMFILE : access_peer_read(client_sock, &s->rules, &client);

	m->rule[sizeof(m->rule) - 1] = '\0';
	if (r < 0) {
		hook_requests_refuse(&s->hook_desk, m, r);
		return;
	}
	access_peer_look(&client);
	hook_requests_take(&s->hook_desk, m, &client, document_fd);
	access_peer_deinit(&client);
}

/* front keeps its own copy until the answer has come, so that ours is not the last. */
static void front_drop(struct spawn *s, const struct ipc_drop *m, int *take_fd)
{
	struct ipc_closer answer = { .type = IPC_CLOSER, .kind = IPC_CLOSER_FAILED, .uid = m->uid };

	if (*take_fd >= 0 && closers_start(&s->closers, *take_fd, m->uid) == 0) {
		*take_fd = -1;
		answer.kind = IPC_CLOSER_HOLDS;
	}
	send_front(s, &answer, sizeof(answer), -1);
}

union front_message {
	uint32_t type;
	struct ipc_start start;
	struct ipc_hooks hooks;
	struct ipc_note note;
	struct ipc_drop drop;
};

/*
 * A client's socket and, perhaps, a text in memory: closing those does not block, front has them too.
 * Who the client is comes from this socket alone; front itself may be anybody's by now.
 */
static bool are_front_fds(const struct spawn *s, const int *fds, size_t n)
{
	if (n && !access_is_client(fds[0], &s->address))
		return false;
	return n < 2 || (n == 2 && fd_is_memfd(fds[1]));
}

/* All messages of front start with their type; the sizes differ.  @param lost  Its descriptors are. */
static int take_message(struct spawn *s, union front_message *m, size_t n, int *fds, size_t n_fds,
			bool lost)
{
	if (n == sizeof(m->start) && m->type == IPC_START && (n_fds || lost))
		front_start(s, &m->start, fds[0], fds[1]);
	else if (n == sizeof(m->hooks) && m->type == IPC_HOOKS && (n_fds || lost))
		front_hooks(s, &m->hooks, fds[0], fds[1]);
	else if (n == sizeof(m->drop) && m->type == IPC_DROP && (n_fds == 1 || lost))
		front_drop(s, &m->drop, &fds[0]);
	else if (n == sizeof(m->note) && m->type == IPC_NOTE && !n_fds)
		front_note(s, &m->note);
	else
		return -EPROTO;
	return 0;
}

static int front_message(struct spawn *s)
{
	union front_message m;
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 }, r;
	size_t n_fds;
	ssize_t n;
	bool lost;

	memset(&m, 0, sizeof(m));
	n = fd_recv(s->front_sock, &m, sizeof(m), fds, &n_fds);
	/* Of those that bring a descriptor. */
	lost = n == -EMFILE;
	if (lost)
		n = m.type == IPC_START ? sizeof(m.start) :
		    m.type == IPC_DROP	? sizeof(m.drop) : sizeof(m.hooks);
	if (n <= 0)
		return n == 0 ? -EPIPE : (int)n;
	if (!are_front_fds(s, fds, n_fds)) {
		for (size_t i = 0; i < n_fds; i++)
			closers_close_foreign(fds[i]);
		return -EPROTO;
	}
	r = take_message(s, &m, (size_t)n, fds, n_fds, lost);
	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return r;
}

/* Clients' sockets may be in what nobody has received. */
static void close_front(struct spawn *s)
{
	if (s->front_sock >= 0)
		closers_close(&s->closers, TAKE_FD(s->front_sock));
}

static void front_gone(struct spawn *s, const char *why)
{
	if (!s->stop_at) {
		log_error("front is gone (%s): stopping", why);
		s->front_failed = true;
		stop(s);
	}
	close_front(s);
}

static void front_readable(struct spawn *s, short events)
{
	int r;

	/* Of one that is gone only spawn would have what it sent. */
	if (events & (POLLHUP | POLLERR)) {
		front_gone(s, strerror(EPIPE));
		return;
	}
	while ((r = front_message(s)) == 0)
		;
	if (r == -EAGAIN)
		return;
	if (r == -EPROTO && s->front_pid) {
		log_error("front breaks the protocol: killed");
		kill(s->front_pid, SIGKILL);
	}
	front_gone(s, strerror(-r));
}

static void closer_ended(struct spawn *s, int64_t uid)
{
	const struct ipc_closer m = { .type = IPC_CLOSER, .kind = IPC_CLOSER_ENDED,
				      .uid = (uint32_t)uid };

	if (uid != CLOSERS_NOBODY && s->front_sock >= 0)
		send_front(s, &m, sizeof(m), -1);
}

static void reap(struct spawn *s)
{
	struct ipc_ended ended;
	int status;
	int64_t uid;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->front_pid) {
			s->front_pid = s->workers.front_pid = 0;
			if (!s->stop_at) {
				log_error("front died (status 0x%x): stopping", (unsigned)status);
				s->front_failed = true;
				stop(s);
			}
		} else if (hooks_reaped(&s->hooks, pid, status)) {
			continue;
		} else if (closers_reaped(&s->closers, pid, &uid)) {
			closer_ended(s, uid);
		} else if (workers_reaped(&s->workers, pid, status, &ended)) {
			watches_worker_ended(&s->watches, ended.worker,
					     ended.how == IPC_HOW_CLEAN);
			if (s->front_sock >= 0)
				send_front(s, &ended, sizeof(ended), -1);
		}
	}
}

static void reload(struct spawn *s)
{
	struct config old = s->config;
	struct access_rules old_rules = s->rules;
	struct rules fresh = { 0 }, swap;

	notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
		    (unsigned long long)(clock_now_ns() / 1000));
	if (load_config(s, &fresh) < 0 || resolve_names(s) < 0) {
		log_error("configuration not changed");
		s->config = old;
		s->rules = old_rules;
	} else {
		/* The socket is open and front has become its user: both stay as they were. */
		str_copy(s->config.socket, sizeof(s->config.socket), old.socket);
		swap = fresh;
		fresh = s->watch_rules;
		s->watch_rules = swap;
		tell_limits(s, false);
		apply_rules(s);
		log_info("configuration read again");
	}
	rules_deinit(&fresh);
	notify_send("READY=1");
}

static void signals_readable(struct spawn *s)
{
	struct signalfd_siginfo si;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			reap(s);
		else if (si.ssi_signo == SIGHUP)
			reload(s);
		else
			stop(s);
	}
}

/* So long after what was begun at `stop_at`? */
static bool is_over(const struct spawn *s, uint32_t ms)
{
	return clock_left_ms(s->stop_at + ms * UINT64_C(1000000)) == 0;
}

static bool wait_for_workers(struct spawn *s)
{
	if (!s->workers.first || s->left_workers)
		return false;
	if (is_over(s, 0))
		workers_signal(&s->workers, SIGKILL);
	if (!is_over(s, STOP_KILLED_MS))
		return true;
	log_error("a worker cannot be killed: it is left to the kernel");
	workers_leave(&s->workers);
	s->left_workers = true;
	return false;
}

static bool wait_for_front(struct spawn *s)
{
	if (s->front_sock >= 0) {
		close_front(s); /* front leaves at end of file */
		s->stop_at = clock_deadline_ms(STOP_FRONT_MS);
	}
	if (!s->front_pid)
		return false;
	if (is_over(s, 0))
		kill(s->front_pid, SIGKILL);
	if (!is_over(s, STOP_KILLED_MS))
		return true;
	log_error("front cannot be killed: it is left to the kernel");
	return false;
}

/* Escalate while stopping.  @return false when nothing is left to wait for. */
static bool stop_step(struct spawn *s)
{
	if (wait_for_workers(s))
		return true;
	/* A manager would kill them with us; they end by themselves. */
	if ((s->workers.rescues.first && !is_over(s, STOP_RELEASES_MS)) ||
	    (hooks_is_busy(&s->hooks) && !is_over(s, 0)))
		return true;
	return wait_for_front(s);
}

static void look_at_watchdog(struct spawn *s)
{
	const struct ipc_ping ping = { .type = IPC_PING, .number = s->watchdog.number + 1 };

	if (s->stop_at)
		return;
	switch (watchdog_due(&s->watchdog, clock_now_ns())) {
	case WATCHDOG_ASK:
		/* One that takes no messages is as silent as any. */
		(void)fd_send(s->front_sock, &ping, sizeof(ping), NULL, 0);
		break;
	case WATCHDOG_STUCK:
		log_error("front does not answer: killed");
		s->front_failed = true;
		kill(s->front_pid, SIGKILL);
		stop(s);
		break;
	case WATCHDOG_WAIT:
		break;
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static int poll_timeout(struct spawn *s)
{
	uint64_t next = workers_deadlines(&s->workers), hooks = hooks_deadlines(&s->hooks);
	uint64_t look = s->stop_at ? 0 : watches_deadlines(&s->watches);

	look_at_watchdog(s);
	next = earlier(earlier(next, hooks), look);
	if (!s->stop_at)
		next = earlier(next, s->watchdog.at);
	if (s->stop_at && (!next || s->stop_at < next))
		next = clock_left_ms(s->stop_at) ? s->stop_at : clock_deadline_ms(50);
	return next ? clock_left_ms(next) : -1;
}

static void serve(struct spawn *s)
{
	struct pollfd fds[POLL_MAX + HOOKS_RUNNING_MAX + 1];
	struct worker *of[POLL_MAX];

	while (!s->stop_at || stop_step(s)) {
		size_t n = 0, n_workers;
		int timeout = poll_timeout(s); /* it may start a worker */

		fds[n++] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = s->front_sock, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = s->watches.discover.fd, .events = POLLIN };
		for (struct worker *w = s->workers.first; w && n < POLL_MAX; w = w->next) {
			of[n] = w;
			fds[n++] = (struct pollfd){ .fd = w->guard_fd, .events = POLLIN };
		}
		n_workers = n;
		n += hooks_poll(&s->hooks, fds + n);
		if (poll(fds, n, timeout) < 0 && errno != EINTR) {
			log_error("poll: %s", strerror(errno));
			stop(s);
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

/* A worker takes two descriptors here, a client or a session one in front, which inherits this. */
static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FDS_WANTED)
		return;
	limit.rlim_cur = limit.rlim_max < FDS_WANTED ? limit.rlim_max : FDS_WANTED;
	/* Refused by some units' filters: then front takes fewer clients. */
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* What reads the configuration and runs hooks has said what is wrong. */
static int check(struct spawn *s)
{
	if (check_hooks(&s->watch_rules, s->programs.hook, opt.user) < 0)
		return 1;
	puts("configuration is valid");
	rules_deinit(&s->watch_rules);
	return 0;
}

static int run(struct spawn *s)
{
	int r;

	s->front_sock = s->listen_fd = -1;
	r = load_config(s, &s->watch_rules);
	if (r < 0)
		return 1;
	r = find_programs(&s->programs);
	if (r < 0)
		return fail("gpu-agent-front, -worker, -store, -hook and -adapter must lie beside gpu-agentd", r);
	if (opt.check_config)
		return check(s);
	if (resolve_names(s) < 0 || open_listener(s) < 0)
		return 1;
	if (!opt.user)
		r = privileges_keep_attach();
	if (r == 0)
		r = open_signals(s);
	if (r < 0)
		return fail("cannot start", r);
	raise_fd_limit();
	/* Beside the socket: alone in its namespace, and gone after a restart of the machine. */
	snprintf(s->records, sizeof(s->records), "%s.undo", s->config.socket);
	workers_init(&s->workers, &(struct workers_setup){ .config = &s->config,
							   .programs = &s->programs,
							   .records = s->records,
							   .store_uid = s->front_uid,
							   .store_gid = s->front_gid,
							   .user_mode = opt.user,
							   .verbose = opt.verbose,
							   .ask = worker_asks,
							   .on_owed = left_owed,
							   .ctx = s });
	hooks_init(&s->hooks, s->programs.hook);
	s->hook_desk = (struct hook_desk){ .hooks = &s->hooks, .user_mode = opt.user,
					   .send = send_hooked, .ctx = s };
	s->rules_service = (struct rules_service){ .workers = &s->workers, .tell = tell_watch, .ctx = s };
	watches_init(&s->watches, &s->watch_rules, s->config.kfd_device, &rules_service,
		     &s->rules_service);
	s->closers = (struct closers){ .gate_fd = -1, .uid = s->front_uid, .gid = s->front_gid };
	recovery_take_over(&s->workers.rescue_host);
	r = start_front(s);
	if (r < 0)
		return fail("front", r);
	close(TAKE_FD(s->listen_fd));
	release_leftovers_of_others(s);
	recovery_start(&s->workers.rescue_host);
	apply_rules(s);
	serve(s);
	hooks_deinit(&s->hooks);
	watches_deinit(&s->watches);
	if (s->own_socket)
		unlink(s->config.socket);
	workers_deinit(&s->workers);
	closers_deinit(&s->closers);
	rmdir(s->records);
	rules_deinit(&s->watch_rules);
	return s->front_failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct argv_option *const tables[] = { options, NULL };
	static struct spawn s;
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
