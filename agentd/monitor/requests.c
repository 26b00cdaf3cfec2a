/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/requests.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/ipc/monitor_judge.h"
#include "agentd/monitor/authorise.h"
#include "agentd/monitor/broker/brokers.h"
#include "agentd/monitor/notify.h"
#include "agentd/monitor/stores.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/*
 * Do what a message asks for.
 * @param k    Who asks; NULL: the judge.
 * @param fds  What came along, -1 behind the last; what is left there is closed.  Where the judge's were
 *             lost, because no descriptor was free, all are -1.
 * @return 0, -EPROTO.
 */
typedef int request_fn(struct monitor *s, struct worker *k, const void *msg, int fds[]);

static request_fn on_start, on_note, on_hooks, on_facts, on_watched, on_fallen, on_store, on_broker, on_found,
	on_hook, on_used, on_arm, on_disarm;

#define SECOND_NS UINT64_C(1000000000)
/* Most messages that wait for the judge where another one about the use of sessions may join them. */
#define USED_WAITING_MAX (OUTBOX_WAITING_MAX / 4)

/* Who asks, as a bit. */
#define JUDGE	1u
#define OF(kind) (1u << (kind))
#define SESSION OF(IPC_KIND_SESSION)
#define LOOK	OF(IPC_KIND_LOOK)
/* Whoever has a guard socket. */
#define GUARDED (SESSION | LOOK | OF(IPC_KIND_INSPECT) | OF(IPC_KIND_STORE) | OF(IPC_KIND_ADAPTER))

/* What is not here breaks the protocol: whoever sends it is killed. */
static const struct request {
	uint32_t type;
	unsigned who;
	size_t size; /* 0: at least its own head, and no more than fits. */
	size_t fds_min, fds_max;
	request_fn *take;
} requests[] = {
	{ JUDGE_START, JUDGE,  sizeof(struct judge_start), 0, 2, on_start },
	{ JUDGE_HOOKS, JUDGE,  sizeof(struct judge_hooks), 0, 1, on_hooks },
	{ JUDGE_FACTS, JUDGE,  0, 0, 0, on_facts },
	{ JUDGE_WATCH, JUDGE,  sizeof(struct judge_watch), 0, 1, on_watched },
	{ JUDGE_FALLEN, JUDGE, sizeof(struct judge_fallen), 0, 0, on_fallen },
	{ IPC_NOTE,   JUDGE,   sizeof(struct ipc_note),	 0, 0, on_note },
	{ IPC_STORE,  SESSION, sizeof(struct ipc_store), 1, 1, on_store },
	{ IPC_BROKER, SESSION, sizeof(struct ipc_broker), 1, 1, on_broker },
	{ IPC_HOOK,   SESSION, sizeof(struct ipc_hook),	 1, 1, on_hook },
	{ IPC_USED,   SESSION, sizeof(struct ipc_used),	 0, 0, on_used },
	{ IPC_FOUND,  LOOK,    sizeof(struct ipc_found), 0, 0, on_found },
	{ IPC_ARM,    GUARDED, sizeof(struct ipc_guard), 0, 0, on_arm },
	{ IPC_DISARM, GUARDED, sizeof(struct ipc_guard), 0, 0, on_disarm },
};

static const struct request *find_request(uint32_t type, unsigned who)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].type == type && requests[i].who & who)
			return &requests[i];
	return NULL;
}

/* ------------------------------------------------------------------ of the judge ------------- */

static int on_start(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct judge_start *m = msg;
	struct ipc_started answer;
	auto_close int channel = -1;

	if (s->stop_at)
		return 0;
	authorise_start(&s->workers, m, fds, &answer, &channel);
	/* A pidfd, which the judge has opened. */
	if (m->start.kind == IPC_KIND_SESSION && fds[0] >= 0)
		close(TAKE_FD(fds[0]));
	monitor_tell_front(s, &answer, sizeof(answer), channel);
	if (m->start.kind != IPC_KIND_STORE && m->start.kind != IPC_KIND_ADAPTER)
		rules_child_tell(&s->rules, RULES_HINT, 0, NULL, 0, -1);
	return 0;
}

static int on_fallen(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	monitor_front_gone(s, ((const struct judge_fallen *)msg)->status);
	return 0;
}

static void front_is_ready(struct monitor *s)
{
	watchdog_begin(&s->watchdog, notify_watchdog_ms(), clock_now_ns());
	notify_send("READY=1\nSTATUS=Serving %s", s->config.socket);
	log_info("ready on %s", s->config.socket);
}

/* No rule holds that worker any more. */
static void let_go(struct monitor *s, uint32_t worker)
{
	const struct ipc_rule none = { .type = IPC_RULE };
	const struct ipc_watch m = { .type = IPC_WATCH, .worker = worker };

	workers_tell_rule(&s->workers, worker, &none);
	monitor_tell_front(s, &m, sizeof(m), -1);
}

/* The rules process remembers that, and lets the worker go; while there is none somebody must. */
static void release(struct monitor *s, uint32_t worker)
{
	if (rules_child_tell(&s->rules, RULES_RELEASE, worker, NULL, 0, -1) < 0)
		let_go(s, worker);
}

static int on_note(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_note *m = msg;

	switch (m->kind) {
	case IPC_NOTE_READY:
		front_is_ready(s);
		break;
	case IPC_NOTE_IDLE:
		monitor_idle(s);
		break;
	case IPC_NOTE_STATUS:
		notify_send("STATUS=%u sessions, %u connections", m->value >> 16,
			    m->value & 0xffff);
		break;
	case IPC_NOTE_KILL:
		workers_kill(&s->workers, m->value);
		break;
	case IPC_NOTE_RELEASE:
		release(s, m->value);
		break;
	case IPC_NOTE_PONG:
		if (watchdog_answered(&s->watchdog, m->value, clock_now_ns()))
			notify_send("WATCHDOG=1");
		break;
	}
	return 0;
}

static void refuse_hooks(struct monitor *s, uint32_t request, int status)
{
	const struct ipc_hooked m = { .type = IPC_HOOKED, .request = request, .status = status };

	monitor_tell_front(s, &m, sizeof(m), -1);
}

static int ask_rules(struct monitor *s, const struct judge_hooks *m, int document_fd)
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

static int on_hooks(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct judge_hooks *m = msg;
	int r;

	/* The sample of a test was lost, for want of a free descriptor. */
	r = m->asked.rule[0] && fds[0] < 0 ? -EMFILE : ask_rules(s, m, fds[0]);
	if (r < 0)
		refuse_hooks(s, m->asked.request, r);
	return 0;
}

/* Is that for the rules process that runs now?  It has asked nothing before it has said what it has read. */
static bool is_for_rules(const struct monitor *s, uint32_t run)
{
	return run == s->rules.run && s->rules.link.fd >= 0 && !s->rules.is_fresh;
}

static int on_facts(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct judge_facts *m = msg;
	size_t cgroup = m->facts.has_cgroup ? strnlen(m->cgroup, sizeof(m->cgroup) - 1) + 1 : 0;

	if (is_for_rules(s, m->run))
		rules_child_tell(&s->rules, RULES_FACTS, 0, &m->facts, sizeof(m->facts) + cgroup, -1);
	return 0;
}

static int on_watched(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct judge_watch *m = msg;
	struct rules_watched a = { .status = s->stop_at ? -ESHUTDOWN : m->status };
	auto_close int channel = -1;

	if (!is_for_rules(s, m->run))
		return 0;
	if (a.status == 0)
		a.status = fds[0] < 0 ? -EMFILE : authorise_watch(&s->workers, m, fds[0], &a.watch, &channel);
	if (fds[0] >= 0)
		close(TAKE_FD(fds[0]));
	if (a.status == 0)
		monitor_tell_front(s, &a.watch, sizeof(a.watch), channel);
	rules_child_tell(&s->rules, RULES_WATCHED, 0, &a, sizeof(a), -1);
	return 0;
}

/* ------------------------------------------------------------------ of workers --------------- */

static int on_store(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	stores_start_producer(&s->workers, k, fds[0]);
	return 0;
}

/* The rest is closed with the message. */
static int on_broker(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	return brokers_start(&s->workers, k, fds[0]);
}

static int on_hook(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	struct rules_fault f = { .pid = k->target, .uid = k->target_uid, .gid = k->target_gid,
				 .fault = ((const struct ipc_hook *)msg)->fault };
	int r = rules_child_is_behind(&s->rules) ? -ENOBUFS : 0;

	/* Looking at another kind of file could hang the rules process, and with it everybody's hooks. */
	if (!fd_is_memfd(fds[0]))
		return -EPROTO;

	str_copy(f.rule, sizeof(f.rule), k->rule);
	if (r == 0)
		r = rules_child_tell(&s->rules, RULES_FAULT, 0, &f, sizeof(f), fds[0]);
	if (r < 0)
		log_warning("rule %s: its hook is not run for process %d: %s", f.rule, (int)f.pid,
			    s->rules.stays_ended ? "gpu-agentd is to be restarted" :
			    r == -EPIPE		 ? "the rules process is being started again" : strerror(-r));
	return 0;
}

static bool is_method(const char name[IPC_METHOD_SIZE])
{
	const size_t n = strnlen(name, IPC_METHOD_SIZE);

	return n && n < IPC_METHOD_SIZE && strspn(name, "abcdefghijklmnopqrstuvwxyz.") == n;
}

/* Its client has no part in what it says of others, but a worker may be its client's by now. */
static bool is_flood(struct worker *k, uint64_t now)
{
	if (now - k->used_ns >= SECOND_NS) {
		k->used_ns = now;
		k->n_used = 0;
	}
	return ++k->n_used > IPC_USED_MAX;
}

static uint32_t add(uint32_t a, uint32_t b)
{
	return a < UINT32_MAX - b ? a + b : UINT32_MAX;
}

static void tell_use(struct monitor *s, const struct worker *k, const struct ipc_used *m)
{
	const struct judge_used q = { .type = JUDGE_USED, .worker = k->id, .session = k->session,
				      .pid = (uint32_t)k->target, .uid = k->target_uid, .used = *m };

	if (s->front.box.sock >= 0)
		monitor_tell_front(s, &q, sizeof(q), -1);
}

/*
 * Several workers that are not themselves any more could say more than waits for a judge that stands still, and
 * that would end the agent.  What is left out is counted, and told with what the worker says next.
 */
static void tell_or_count_use(struct monitor *s, struct worker *k, const struct ipc_used *m)
{
	const bool has_room = s->front.box.n_waiting < USED_WAITING_MAX;
	const bool is_same = k->unsaid.client == m->client;
	struct ipc_used use = *m;

	if (k->unsaid.kind && (is_same || !has_room))
		use.more = add(use.more, add(k->unsaid.more, 1));
	else if (k->unsaid.kind)
		tell_use(s, k, &k->unsaid);
	if (has_room) {
		k->unsaid = (struct ipc_used){ 0 };
		tell_use(s, k, &use);
		return;
	}
	/* Nobody's is better than another one's. */
	if (k->unsaid.kind && !is_same)
		use.client = 0;
	k->unsaid = use;
}

static int on_used(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_used *m = msg;

	if (!m->kind || m->kind >= IPC_USE_COUNT || !is_method(m->method))
		return -EPROTO;
	if (is_flood(k, clock_now_ns())) {
		log_warning("worker %d for process %d says too often who uses it: killed, the kernel releases the target",
			    (int)k->pid, (int)k->target);
		return -EPROTO;
	}
	tell_or_count_use(s, k, m);
	return 0;
}

static int on_found(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_found *m = msg;
	const struct rules_found found = { .pid = m->pid, .vendor = m->vendor };

	if (!m->pid || m->pid > INT32_MAX)
		return -EPROTO;
	if (!s->stop_at && !workers_is_own(&s->workers, (pid_t)m->pid))
		rules_child_tell(&s->rules, RULES_FOUND, 0, &found, sizeof(found), -1);
	return 0;
}

static int on_arm(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	return workers_arm(k, ((const struct ipc_guard *)msg)->ms) ? 0 : -EPROTO;
}

static int on_disarm(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	workers_disarm(k);
	return 0;
}

int requests_take(void *ctx, struct worker *k, const union ipc_child_message *m, size_t size,
		  int *take_fd)
{
	const struct request *r = find_request(m->type, OF(k->kind));
	size_t n_fds = *take_fd >= 0;

	if (!r || r->size != size || n_fds < r->fds_min || n_fds > r->fds_max)
		return -EPROTO;
	return r->take(ctx, k, m, take_fd);
}

/* ------------------------------------------------------------------ of the rules process ----- */

/* @param take_fd  What came along, or -1; what is left in it is closed.  @return 0, -EPROTO, -ENOMEM. */
typedef int rules_request_fn(struct monitor *s, const struct ipc_message *m, int *take_fd);

static int on_config(struct monitor *s, const struct ipc_message *m, int *take_fd)
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
	r = monitor_take_config(s, c, TAKE_FD(*take_fd));
	free(c);
	return r;
}

static int on_look(struct monitor *s, const struct ipc_message *m, int *take_fd)
{
	struct rules_looking a = { .status = -ESHUTDOWN };

	if (!s->stop_at)
		a.status = workers_look(&s->workers, &a.worker);
	rules_child_tell(&s->rules, RULES_LOOKING, 0, &a, sizeof(a), -1);
	return 0;
}

static int on_read(struct monitor *s, const struct ipc_message *m, int *take_fd)
{
	static const struct rules_facts none = { .status = -ESHUTDOWN };
	const struct judge_read q = { .type = JUDGE_READ, .pid = m->head.number, .run = s->rules.run };

	if (!q.pid || q.pid > INT32_MAX)
		return -EPROTO;
	if (!s->stop_at)
		monitor_tell_front(s, &q, sizeof(q), -1);
	else /* There may be no judge any more, and the rules process waits for an answer. */
		rules_child_tell(&s->rules, RULES_FACTS, 0, &none, sizeof(none), -1);
	return 0;
}

static int on_watch(struct monitor *s, const struct ipc_message *m, int *take_fd)
{
	static const struct rules_watched none = { .status = -ESHUTDOWN };
	struct judge_watch q = { .type = JUDGE_WATCH_ASKED, .run = s->rules.run,
				 .asked = *(const struct rules_watch *)(const void *)m->text };

	if (!q.asked.pid || q.asked.pid > INT32_MAX || q.asked.rule.n_devices > IPC_RULE_DEVICES_MAX)
		return -EPROTO;
	if (!s->stop_at)
		monitor_tell_front(s, &q, sizeof(q), -1);
	else
		rules_child_tell(&s->rules, RULES_WATCHED, 0, &none, sizeof(none), -1);
	return 0;
}

static int on_let_go(struct monitor *s, const struct ipc_message *m, int *take_fd)
{
	let_go(s, m->head.number);
	return 0;
}

static int on_hooked(struct monitor *s, const struct ipc_message *m, int *take_fd)
{
	struct ipc_hooked a = *(const struct ipc_hooked *)(const void *)m->text;

	a.type = IPC_HOOKED;
	if (!rules_child_take_request(&s->rules, a.request) || (*take_fd >= 0 && !fd_is_memfd(*take_fd)))
		return -EPROTO;
	if (s->front.box.sock >= 0)
		monitor_tell_front(s, &a, sizeof(a), *take_fd);
	return 0;
}

static int on_busy(struct monitor *s, const struct ipc_message *m, int *take_fd)
{
	return monitor_take_busy(s, m->head.number != 0);
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

static int take_rules_request(struct monitor *s, struct ipc_message *m)
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

int requests_read_rules(struct monitor *s)
{
	struct ipc_message m;
	int r = ipc_link_recv(&s->rules.link, &m);

	if (r <= 0)
		return r == 0 ? -EPIPE : r;
	r = take_rules_request(s, &m);
	ipc_message_deinit(&m);
	return r;
}

/* ------------------------------------------------------------------ reading ------------------ */

/* Is that what the message needs?  Of one whose descriptors are lost the size is, too. */
static bool fits(const struct request *r, ssize_t size, size_t n_fds)
{
	if (size == -EMFILE)
		return r->fds_max > 0;
	if (!r->size)
		return (size_t)size >= offsetof(struct judge_facts, cgroup);
	return (size_t)size == r->size && n_fds >= r->fds_min && n_fds <= r->fds_max;
}

int requests_read_judge(struct monitor *s)
{
	/* The largest is rare, so that no more than what came is cleared behind it. */
	static union {
		uint32_t type;
		struct judge_start start;
		struct judge_hooks hooks;
		struct judge_facts facts;
		struct judge_watch watch;
		struct judge_fallen fallen;
		struct ipc_note note;
	} m;
	int fds[FD_RIGHTS_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	const struct request *request;
	size_t n_fds;
	ssize_t n = fd_recv_foreign(s->front.box.sock, &m, sizeof(m), fds, &n_fds);

	if (n <= 0 && n != -EMFILE) {
		r = n == 0 ? -EPIPE : (int)n;
	} else {
		if (n > 0 && (size_t)n < sizeof(m))
			((char *)&m)[n] = '\0';
		request = find_request(m.type, JUDGE);
		if (request && fits(request, n, n_fds))
			r = request->take(s, NULL, &m, fds);
	}
	for (size_t i = 0; i < n_fds; i++)
		closers_close_foreign(fds[i]);
	return r;
}
