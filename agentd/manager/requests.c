/* SPDX-License-Identifier: MIT */
#include "agentd/manager/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/manager/notify.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

/* ------------------------------------------------------------------ of the judge ------------- */

/*
 * Do what a message asks for.
 * @param fd  What came along, or -1; closed by the caller.  Where it was lost, because no descriptor was free, -1.
 * @return 0, -EPROTO.
 */
typedef int judge_request_fn(struct manager *s, const void *msg, int fd);

static int on_fallen(struct manager *s, const void *msg, int fd)
{
	manager_front_gone(s, ((const struct judge_fallen *)msg)->status);
	return 0;
}

/* The rules process remembers that, and lets the worker go; while there is none somebody must. */
static void release(struct manager *s, uint32_t worker)
{
	if (rules_child_tell(&s->rules, RULES_RELEASE, worker, NULL, 0, -1) < 0)
		manager_tell_monitor(s, RULES_LET_GO, worker, NULL, 0);
}

static int on_note(struct manager *s, const void *msg, int fd)
{
	const struct ipc_note *m = msg;

	switch (m->kind) {
	case IPC_NOTE_READY:
		manager_front_is_ready(s);
		break;
	case IPC_NOTE_IDLE:
		manager_idle(s);
		break;
	case IPC_NOTE_STATUS:
		notify_send("STATUS=%u sessions, %u connections", m->value >> 16,
			    m->value & 0xffff);
		break;
	case IPC_NOTE_RELEASE:
		release(s, m->value);
		break;
	case IPC_NOTE_PONG:
		s->front_pong = m->value;
		manager_tell_monitor(s, MONITOR_PING, m->value, NULL, 0);
		break;
	}
	return 0;
}

static void refuse_hooks(struct manager *s, uint32_t request, int status)
{
	const struct ipc_hooked m = { .type = IPC_HOOKED, .request = request, .status = status };

	manager_tell_front(s, &m, sizeof(m), -1);
}

static int ask_rules(struct manager *s, const struct judge_hooks *m, int document_fd)
{
	const struct rules_hooks asked = { .asked = m->asked, .pid = m->client.pid, .uid = m->client.uid,
					   .gid = m->client.gid, .admin = m->client.admin };
	int r;

	if (s->rules.stays_ended)
		return -ESTALE;
	if (!rules_child_add_request(&s->rules, m->asked.request))
		return -ENOBUFS;
	r = rules_child_tell(&s->rules, RULES_HOOKS, 0, &asked, sizeof(asked), document_fd);
	if (r < 0)
		rules_child_take_request(&s->rules, m->asked.request);
	return r == -EPIPE ? -ECONNRESET : r;
}

static int on_hooks(struct manager *s, const void *msg, int fd)
{
	const struct judge_hooks *m = msg;
	int r;

	/* The sample of a test was lost, for want of a free descriptor. */
	r = m->asked.rule[0] && fd < 0 ? -EMFILE : ask_rules(s, m, fd);
	if (r < 0)
		refuse_hooks(s, m->asked.request, r);
	return 0;
}

/* Is that for the rules process that runs now?  It has asked nothing before it has said what it has read. */
static bool is_for_rules(const struct manager *s, uint32_t run)
{
	return run == s->rules.run && s->rules.link.fd >= 0 && !s->rules.is_fresh;
}

static int on_facts(struct manager *s, const void *msg, int fd)
{
	const struct judge_facts *m = msg;
	size_t cgroup = m->facts.has_cgroup ? strnlen(m->cgroup, sizeof(m->cgroup) - 1) + 1 : 0;

	if (is_for_rules(s, m->run))
		rules_child_tell(&s->rules, RULES_FACTS, 0, &m->facts, sizeof(m->facts) + cgroup, -1);
	return 0;
}

/* What is not here breaks the protocol: whoever sends it is killed. */
static const struct judge_request {
	uint32_t type;
	size_t size; /* 0: at least its own head, and no more than fits. */
	size_t fds_max;
	judge_request_fn *take;
} judge_requests[] = {
	{ JUDGE_HOOKS, sizeof(struct judge_hooks), 1, on_hooks },
	{ JUDGE_FACTS, 0, 0, on_facts },
	{ JUDGE_FALLEN, sizeof(struct judge_fallen), 0, on_fallen },
	{ IPC_NOTE, sizeof(struct ipc_note), 0, on_note },
};

/* Is that what the message needs?  Of one whose descriptors are lost the size is, too. */
static bool fits(const struct judge_request *r, ssize_t size, size_t n_fds)
{
	if (size == -EMFILE)
		return r->fds_max > 0;
	if (!r->size)
		return (size_t)size >= offsetof(struct judge_facts, cgroup) && n_fds == 0;
	return (size_t)size == r->size && n_fds <= r->fds_max;
}

int requests_read_judge(struct manager *s)
{
	/* The largest is rare, so that no more than what came is cleared behind it. */
	static union {
		uint32_t type;
		struct judge_hooks hooks;
		struct judge_facts facts;
		struct judge_fallen fallen;
		struct ipc_note note;
	} m;
	int fds[FD_RIGHTS_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	size_t n_fds;
	ssize_t n = fd_recv_foreign(s->front.box.sock, &m, sizeof(m), fds, &n_fds);

	if (n <= 0 && n != -EMFILE) {
		r = n == 0 ? -EPIPE : (int)n;
	} else {
		if (n > 0 && (size_t)n < sizeof(m))
			((char *)&m)[n] = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(judge_requests); i++)
			if (judge_requests[i].type == m.type && fits(&judge_requests[i], n, n_fds))
				r = judge_requests[i].take(s, &m, fds[0]);
	}
	for (size_t i = 0; i < n_fds; i++)
		closers_close_foreign(fds[i]);
	return r;
}

/* ------------------------------------------------------------------ of the rules process ----- */

/* @param take_fd  What came along, or -1; what is left in it is closed.  @return 0, -EPROTO, -ENOMEM. */
typedef int rules_request_fn(struct manager *s, const struct ipc_message *m, int *take_fd);

static int on_config(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	struct rules_config *c = malloc(sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	if (*take_fd >= 0 && !fd_is_memfd(*take_fd)) {
		free(c);
		return -EPROTO;
	}
	memcpy(c, m->text, sizeof(*c));
	r = manager_take_config(s, c, TAKE_FD(*take_fd));
	free(c);
	return r;
}

static int on_look(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	static const struct rules_looking none = { .status = -ESHUTDOWN };

	if (!s->stop_at)
		manager_tell_monitor(s, RULES_LOOK, s->rules.run, NULL, 0);
	else /* There may be no monitor any more, and the rules process waits for an answer. */
		rules_child_tell(&s->rules, RULES_LOOKING, 0, &none, sizeof(none), -1);
	return 0;
}

static int on_read(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	static const struct rules_facts none = { .status = -ESHUTDOWN };
	const struct judge_read q = { .type = JUDGE_READ, .pid = m->head.number, .run = s->rules.run };

	if (!q.pid || q.pid > INT32_MAX)
		return -EPROTO;
	if (!s->stop_at)
		manager_tell_front(s, &q, sizeof(q), -1);
	else
		rules_child_tell(&s->rules, RULES_FACTS, 0, &none, sizeof(none), -1);
	return 0;
}

static int on_watch(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	static const struct rules_watched none = { .status = -ESHUTDOWN };
	struct judge_watch q = { .type = JUDGE_WATCH_ASKED, .run = s->rules.run,
				 .asked = *(const struct rules_watch *)(const void *)m->text };

	if (!q.asked.pid || q.asked.pid > INT32_MAX || q.asked.rule.n_devices > IPC_RULE_DEVICES_MAX)
		return -EPROTO;
	if (!s->stop_at)
		manager_tell_front(s, &q, sizeof(q), -1);
	else
		rules_child_tell(&s->rules, RULES_WATCHED, 0, &none, sizeof(none), -1);
	return 0;
}

static int on_let_go(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	manager_tell_monitor(s, RULES_LET_GO, m->head.number, NULL, 0);
	return 0;
}

static int on_hooked(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	struct ipc_hooked a = *(const struct ipc_hooked *)(const void *)m->text;

	a.type = IPC_HOOKED;
	if (!rules_child_take_request(&s->rules, a.request) || (*take_fd >= 0 && !fd_is_memfd(*take_fd)))
		return -EPROTO;
	manager_tell_front(s, &a, sizeof(a), *take_fd);
	return 0;
}

static int on_busy(struct manager *s, const struct ipc_message *m, int *take_fd)
{
	return manager_take_busy(s, m->head.number != 0);
}

/* What is not here breaks the protocol, as does what comes in front of the first configuration. */
static const struct {
	uint32_t type;
	size_t size;
	bool may_have_fd;
	rules_request_fn *take;
} rules_requests[] = {
	{ RULES_CONFIG, sizeof(struct rules_config), true, on_config },
	{ RULES_LOOK, 0, false, on_look },
	{ RULES_READ, 0, false, on_read },
	{ RULES_WATCH, sizeof(struct rules_watch), false, on_watch },
	{ RULES_LET_GO, 0, false, on_let_go },
	{ RULES_HOOKED, sizeof(struct ipc_hooked), true, on_hooked },
	{ RULES_BUSY, 0, false, on_busy },
};

static int take_rules_request(struct manager *s, struct ipc_message *m)
{
	int fd = TAKE_FD(m->fd), r = -EPROTO;

	if (s->rules.is_fresh && m->head.type != RULES_CONFIG)
		goto out;
	for (size_t i = 0; i < ARRAY_SIZE(rules_requests); i++)
		if (rules_requests[i].type == m->head.type && rules_requests[i].size == m->head.size &&
		    (fd < 0 || rules_requests[i].may_have_fd))
			r = rules_requests[i].take(s, m, &fd);
out:
	closers_close_foreign(fd);
	return r;
}

int requests_read_rules(struct manager *s)
{
	struct ipc_message m;
	int r = ipc_link_recv(&s->rules.link, &m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	r = take_rules_request(s, &m);
	ipc_message_deinit(&m);
	return r;
}

/* ------------------------------------------------------------------ of the monitor ----------- */

typedef int monitor_request_fn(struct manager *s, const struct ipc_message *m);

static int on_ready(struct manager *s, const struct ipc_message *m)
{
	manager_monitor_is_ready(s);
	return 0;
}

static int on_pong(struct manager *s, const struct ipc_message *m)
{
	if (watchdog_answered(&s->watchdog, m->head.number, clock_now_ns()))
		notify_send("WATCHDOG=1");
	return 0;
}

static int on_owed(struct manager *s, const struct ipc_message *m)
{
	const struct ipc_note owed = { .type = IPC_NOTE, .kind = IPC_NOTE_OWED };

	manager_tell_front(s, &owed, sizeof(owed), -1);
	return 0;
}

static int on_replaced(struct manager *s, const struct ipc_message *m)
{
	manager_were_replaced(s);
	return 0;
}

static int pass_on(struct manager *s, const struct ipc_message *m)
{
	rules_child_tell(&s->rules, (enum rules_type)m->head.type, 0, m->head.size ? m->text : NULL, m->head.size, -1);
	return 0;
}

static int on_held(struct manager *s, const struct ipc_message *m)
{
	return m->head.number == s->rules.run ? pass_on(s, m) : 0;
}

static int on_answer(struct manager *s, const struct ipc_message *m)
{
	return is_for_rules(s, m->head.number) ? pass_on(s, m) : 0;
}

static int on_fault(struct manager *s, const struct ipc_message *m)
{
	const struct rules_fault *f = (const void *)m->text;
	int r = rules_child_is_behind(&s->rules) ? -ENOBUFS : m->fd < 0 ? -EPROTO : 0;

	if (r == 0)
		r = rules_child_tell(&s->rules, RULES_FAULT, 0, f, sizeof(*f), m->fd);
	if (r < 0)
		log_warning("rule %s: its hook is not run for process %d: %s", f->rule, (int)f->pid,
			    s->rules.stays_ended ? "gpu-agentd is to be restarted" :
			    r == -EPIPE		 ? "the rules process is being started again" : strerror(-r));
	return 0;
}

/* What is not here breaks the protocol. */
static const struct {
	uint32_t type;
	size_t size;
	monitor_request_fn *take;
} monitor_requests[] = {
	{ MONITOR_READY, 0, on_ready },
	{ MONITOR_PONG, 0, on_pong },
	{ MONITOR_OWED, 0, on_owed },
	{ MONITOR_REPLACED, 0, on_replaced },
	{ RULES_HINT, 0, pass_on },
	{ RULES_FOUND, sizeof(struct rules_found), pass_on },
	{ RULES_ENDED, sizeof(struct rules_ended), pass_on },
	{ RULES_HELD, sizeof(struct rules_found), on_held },
	{ RULES_LOOKING, sizeof(struct rules_looking), on_answer },
	{ RULES_WATCHED, sizeof(struct rules_watched), on_answer },
	{ RULES_FAULT, sizeof(struct rules_fault), on_fault },
};

int requests_read_monitor(struct manager *s)
{
	struct ipc_message m;
	int r = ipc_link_recv(&s->monitor.link, &m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	r = -EPROTO;
	for (size_t i = 0; i < ARRAY_SIZE(monitor_requests); i++)
		if (monitor_requests[i].type == m.head.type && monitor_requests[i].size == m.head.size)
			r = monitor_requests[i].take(s, &m);
	ipc_message_deinit(&m);
	return r;
}
