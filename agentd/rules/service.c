/* SPDX-License-Identifier: MIT */
#include "agentd/rules/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/rules/engine/rule_hooks.h"
#include "agentd/rules/saved.h"
#include "agentd/rules/settings.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

_Static_assert(RULES_MAX <= RULES_NAMES_MAX, "all rules can be named to the monitor");

/* ------------------------------------------------------------------ configuration ------------ */

static void tell_config(struct service *s, int status)
{
	auto_free struct rules_config *m = calloc(1, sizeof(*m));
	auto_close int state = -1;

	if (!m) {
		s->host.is_gone = true;
		return;
	}
	m->status = status;
	if (status == 0)
		m->status = saved_write(&s->config, &s->ids, &s->rules, &state);
	m->ids = s->ids;
	m->config = s->config;
	m->n_rules = (uint32_t)s->rules.n;
	for (size_t i = 0; i < s->rules.n; i++)
		str_copy(m->names[i], sizeof(m->names[i]), s->rules.list[i].name);
	host_tell(&s->host, RULES_CONFIG, 0, m, sizeof(*m), state);
}

void service_configure(struct service *s, const struct config *config, const struct rules_ids *ids,
		       struct rules *take)
{
	rules_deinit(&s->rules);
	s->config = *config;
	s->ids = *ids;
	s->rules = *take;
	*take = (struct rules){ 0 };
	rule_hooks_configure(&s->hooks, &s->rules);
	/* The monitor, and behind it the frontend, know the names before they hear of watches. */
	tell_config(s, 0);
	watches_configure(&s->watches);
}

static void reload(struct service *s)
{
	struct rules rules = { 0 };
	struct rules_ids ids;
	struct config config;
	int r = settings_load(s->options, &config, &rules, NULL);

	if (r == 0)
		r = settings_resolve(s->options, &config, false, &ids);
	if (r == 0)
		service_configure(s, &config, &ids, &rules);
	else
		tell_config(s, r);
	rules_deinit(&rules);
}

/* ------------------------------------------------------------------ what the monitor says ---- */

static void on_reload(struct service *s, const struct ipc_message *m)
{
	if (!s->is_stopping)
		reload(s);
}

static void on_hint(struct service *s, const struct ipc_message *m)
{
	if (!s->is_stopping)
		watches_hint(&s->watches);
}

static void on_found(struct service *s, const struct ipc_message *m)
{
	const struct rules_found *f = (const void *)m->text;

	if (s->is_stopping)
		return;
	if (f->vendor == IPC_VENDOR_ANY)
		watches_cut(&s->watches, (pid_t)f->pid);
	else
		watches_found(&s->watches, (pid_t)f->pid, (enum ipc_vendor)f->vendor);
}

/* What our predecessor had watched; if no rule has it now, nobody else would ever let it go. */
static void on_held(struct service *s, const struct ipc_message *m)
{
	const struct rules_found *f = (const void *)m->text;

	if (!s->is_stopping && !watches_found(&s->watches, (pid_t)f->pid, (enum ipc_vendor)f->vendor))
		host_tell(&s->host, RULES_LET_GO, f->worker, NULL, 0, -1);
}

static void on_ended(struct service *s, const struct ipc_message *m)
{
	const struct rules_ended *e = (const void *)m->text;

	if (!s->is_stopping)
		watches_worker_ended(&s->watches, e->worker, e->clean);
}

static void on_release(struct service *s, const struct ipc_message *m)
{
	if (!s->is_stopping)
		watches_release(&s->watches, m->head.number);
}

static void on_fault(struct service *s, const struct ipc_message *m)
{
	struct rules_fault f = *(const struct rules_fault *)(const void *)m->text;

	f.rule[sizeof(f.rule) - 1] = '\0';
	rule_hooks_run(&s->hooks, &f, m->fd);
}

static void on_hooks(struct service *s, const struct ipc_message *m)
{
	struct rules_hooks q = *(const struct rules_hooks *)(const void *)m->text;
	const struct access_peer client = { .pid = q.pid, .uid = q.uid, .gid = q.gid,
					    .admin = q.admin, .pidfd = -1 };

	q.asked.rule[sizeof(q.asked.rule) - 1] = '\0';
	hook_requests_take(&s->desk, &q.asked, &client, m->fd);
}

static void on_idle(struct service *s, const struct ipc_message *m)
{
	host_tell(&s->host, RULES_BUSY, hooks_is_busy(&s->hooks), NULL, 0, -1);
}

static void on_stop(struct service *s, const struct ipc_message *m)
{
	s->is_stopping = true;
	watches_deinit(&s->watches);
	hooks_stop(&s->hooks);
}

static const struct {
	enum rules_type type;
	size_t size;
	void (*take)(struct service *s, const struct ipc_message *m);
} news[] = {
	{ RULES_RELOAD, 0, on_reload },
	{ RULES_HINT, 0, on_hint },
	{ RULES_FOUND, sizeof(struct rules_found), on_found },
	{ RULES_HELD, sizeof(struct rules_found), on_held },
	{ RULES_ENDED, sizeof(struct rules_ended), on_ended },
	{ RULES_RELEASE, 0, on_release },
	{ RULES_FAULT, sizeof(struct rules_fault), on_fault },
	{ RULES_HOOKS, sizeof(struct rules_hooks), on_hooks },
	{ RULES_IDLE, 0, on_idle },
	{ RULES_STOP, 0, on_stop },
};

static void take_message(struct service *s, const struct ipc_message *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(news); i++)
		if (news[i].type == m->head.type && news[i].size == m->head.size) {
			news[i].take(s, m);
			return;
		}
	log_error("the monitor says what is not known here: %u", m->head.type);
}

static void monitor_readable(struct service *s)
{
	struct ipc_message m;

	while (host_take(&s->host, &m)) {
		take_message(s, &m);
		ipc_message_deinit(&m);
	}
}

/* ------------------------------------------------------------------ the loop ----------------- */

static void reap(struct service *s)
{
	struct signalfd_siginfo si;
	int status;
	pid_t pid;

	while (read(s->signal_fd, &si, sizeof(si)) == sizeof(si))
		;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		hooks_reaped(&s->hooks, pid, status);
}

static int poll_timeout(struct service *s)
{
	uint64_t next = hooks_deadlines(&s->hooks);
	uint64_t look = s->is_stopping ? 0 : watches_deadlines(&s->watches);

	if (!next || (look && look < next))
		next = look;
	/* Watching may have asked the monitor something, which had news as well. */
	if (host_has_news(&s->host) || s->host.is_gone)
		return 0;
	return next ? clock_left_ms(next) : -1;
}

static void tell_that_hooks_ended(struct service *s)
{
	if (!s->is_stopping || s->has_stopped || hooks_is_busy(&s->hooks))
		return;
	s->has_stopped = true;
	host_tell(&s->host, RULES_BUSY, 0, NULL, 0, -1);
}

static void serve_once(struct service *s)
{
	struct pollfd fds[HOOKS_RUNNING_MAX + 1 + 3];
	int timeout = poll_timeout(s);
	size_t n;

	fds[0] = (struct pollfd){ .fd = s->host.link.fd,
				  .events = (short)(POLLIN | (ipc_link_has_queued(&s->host.link) ? POLLOUT : 0)) };
	fds[1] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = s->watches.discover.fd, .events = POLLIN };
	n = 3 + hooks_poll(&s->hooks, fds + 3);
	if (poll(fds, n, timeout) < 0)
		return;
	for (size_t i = 3; i < n; i++)
		if (fds[i].revents)
			hooks_readable(&s->hooks, fds[i].fd);
	if (fds[2].revents)
		watches_readable(&s->watches);
	if (fds[1].revents)
		reap(s);
	if (fds[0].revents & POLLOUT && ipc_link_flush(&s->host.link) < 0)
		s->host.is_gone = true;
	monitor_readable(s);
}

void service_run(struct service *s)
{
	while (!s->host.is_gone) {
		serve_once(s);
		tell_that_hooks_ended(s);
	}
}

/* ------------------------------------------------------------------ begin and end ------------ */

static void send_hooked(void *ctx, const struct ipc_hooked *m, int fd)
{
	struct service *s = ctx;

	host_tell(&s->host, RULES_HOOKED, 0, m, sizeof(*m), fd);
}

static int open_signals(void)
{
	sigset_t set;
	int fd;

	/* Ignored, as some parents leave it, the kernel would reap runners without telling us. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int service_init(struct service *s, const struct options *o, int take_link, const char *program)
{
	*s = (struct service){ .options = o };
	host_init(&s->host, take_link);
	s->signal_fd = open_signals();
	hooks_init(&s->hooks, program);
	s->desk = (struct hook_desk){ .hooks = &s->hooks, .user_mode = o->user,
				      .send = send_hooked, .ctx = s };
	watches_init(&s->watches, &s->rules, s->config.kfd_device, &host_monitor, &s->host);
	return s->signal_fd < 0 ? s->signal_fd : 0;
}

void service_deinit(struct service *s)
{
	hooks_deinit(&s->hooks);
	watches_deinit(&s->watches);
	rules_deinit(&s->rules);
	host_deinit(&s->host);
	if (s->signal_fd >= 0)
		close(s->signal_fd);
}
