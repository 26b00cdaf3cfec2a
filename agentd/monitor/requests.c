/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/requests.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "agentd/closers.h"
#include "agentd/ipc/monitor_judge.h"
#include "agentd/monitor/authorise.h"
#include "agentd/monitor/brokers.h"
#include "agentd/monitor/stores.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/*
 * Do what a message asks for.
 * @param k       Who asks; NULL: the judge or the manager.
 * @param number  Of the head of a message of the manager; else 0.
 * @param fds     What came along, -1 behind the last; what is left there is closed.  Where the judge's were
 *                lost, because no descriptor was free, all are -1.
 * @return 0, -EPROTO.
 */
typedef int request_fn(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[]);

static request_fn on_config, on_agent, on_ping, on_stop, on_look, on_let_go, on_start, on_watch, on_kill, on_store,
	on_threads, on_broker, on_found, on_hook, on_used, on_record_used, on_arm, on_disarm;

#define SECOND_NS UINT64_C(1000000000)
/* Most messages that wait for the judge where another one about the use of sessions may join them. */
#define USED_WAITING_MAX (OUTBOX_WAITING_MAX / 4)

/* Who asks, as a bit. */
#define MANAGER	1u
#define JUDGE	(1u << 31)
#define OF(kind) (1u << (kind))
#define SESSION OF(IPC_KIND_SESSION)
#define LOOK	OF(IPC_KIND_LOOK)
#define REPAIR	OF(IPC_KIND_REPAIR)
/* Whoever has a guard socket. */
#define GUARDED (SESSION | LOOK | REPAIR | OF(IPC_KIND_INSPECT) | OF(IPC_KIND_HOST) | OF(IPC_KIND_STORE) | \
		 OF(IPC_KIND_ADAPTER))

/* What is not here breaks the protocol: a child that sends it is killed, and without the others this process ends. */
static const struct request {
	uint32_t type;
	unsigned who;
	size_t size;
	size_t fds_min, fds_max;
	request_fn *take;
} requests[] = {
	{ MONITOR_CONFIG, MANAGER, sizeof(struct monitor_config), 0, 0, on_config },
	{ MONITOR_AGENT,  MANAGER, sizeof(struct monitor_agent), 0, 0, on_agent },
	{ MONITOR_PING,	  MANAGER, 0, 0, 0, on_ping },
	{ MONITOR_STOP,	  MANAGER, 0, 0, 0, on_stop },
	{ RULES_LOOK,	  MANAGER, 0, 0, 0, on_look },
	{ RULES_LET_GO,	  MANAGER, 0, 0, 0, on_let_go },
	{ JUDGE_START, JUDGE,  sizeof(struct judge_start), 0, 2, on_start },
	{ JUDGE_WATCH, JUDGE,  sizeof(struct judge_watch), 0, 1, on_watch },
	{ IPC_NOTE,   JUDGE,   sizeof(struct ipc_note),	 0, 0, on_kill },
	{ IPC_STORE,  SESSION, sizeof(struct ipc_store), 1, 1, on_store },
	{ IPC_THREADS, SESSION, sizeof(struct ipc_threads), 1, 1, on_threads },
	{ IPC_BROKER, SESSION | REPAIR, sizeof(struct ipc_broker), 1, 1, on_broker },
	{ IPC_HOOK,   SESSION, sizeof(struct ipc_hook),	 1, 1, on_hook },
	{ IPC_USED,   SESSION, sizeof(struct ipc_used),	 0, 0, on_used },
	{ IPC_RECORD_USED, OF(IPC_KIND_STORE), sizeof(struct ipc_record_used), 0, 0, on_record_used },
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

/* ------------------------------------------------------------------ of the manager ----------- */

static int on_config(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	memcpy(&s->config, msg, sizeof(s->config));
	return 0;
}

static void tell_held(struct monitor *s)
{
	for (const struct worker *k = s->workers.first; k; k = k->next) {
		const struct rules_found m = { .pid = (uint32_t)k->target, .vendor = k->vendor, .worker = k->id };

		if (k->kind == IPC_KIND_SESSION && k->rule[0])
			monitor_tell_manager(s, RULES_HELD, s->run, &m, sizeof(m), -1);
	}
}

static int on_agent(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	const struct monitor_agent *m = msg;
	const bool is_new = m->run != s->run;

	memcpy(s->workers.others, m->others, sizeof(s->workers.others));
	s->run = m->run;
	/* It does not know yet what its predecessor had watched. */
	if (is_new)
		tell_held(s);
	return 0;
}

static int on_ping(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	monitor_tell_manager(s, MONITOR_PONG, number, NULL, 0, -1);
	return 0;
}

static int on_stop(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	monitor_stop(s);
	return 0;
}

static int on_look(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	struct rules_looking a = { .status = -ESHUTDOWN };

	if (!s->stop_at)
		a.status = workers_look(&s->workers, &a.worker);
	monitor_tell_manager(s, RULES_LOOKING, number, &a, sizeof(a), -1);
	return 0;
}

/* No rule holds that worker any more. */
static int on_let_go(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	const struct ipc_rule none = { .type = IPC_RULE };
	const struct ipc_watch m = { .type = IPC_WATCH, .worker = number };

	workers_tell_rule(&s->workers, number, &none);
	monitor_tell_judge(s, &m, sizeof(m), -1);
	return 0;
}

int requests_read_manager(struct monitor *s)
{
	int none[FD_RIGHTS_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	const struct request *request;
	struct ipc_message m;
	int n = ipc_link_recv(&s->manager, &m);

	if (n <= 0)
		return n == 0 ? -EPIPE : n;
	request = find_request(m.head.type, MANAGER);
	/* Nothing can be done before it is known how. */
	if (request && request->size == m.head.size && m.fd < 0 &&
	    (s->config.config.socket[0] || m.head.type == MONITOR_CONFIG))
		r = request->take(s, NULL, m.text, m.head.number, none);
	ipc_message_deinit(&m);
	return r;
}

/* ------------------------------------------------------------------ of the judge ------------- */

static int on_start(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	const struct judge_start *m = msg;
	struct ipc_started answer;
	auto_close int channel = -1;

	if (s->stop_at)
		return 0;
	authorise_start(&s->workers, m, fds, &answer, &channel);
	/* A pidfd, which the judge has opened. */
	if (IPC_KIND_HAS_TARGET(m->start.kind) && fds[0] >= 0)
		close(TAKE_FD(fds[0]));
	monitor_tell_judge(s, &answer, sizeof(answer), channel);
	if (m->start.kind != IPC_KIND_STORE && m->start.kind != IPC_KIND_ADAPTER)
		monitor_tell_manager(s, RULES_HINT, 0, NULL, 0, -1);
	return 0;
}

static int on_watch(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	const struct judge_watch *m = msg;
	struct rules_watched a = { .status = s->stop_at ? -ESHUTDOWN : m->status };
	auto_close int channel = -1;

	/* A later rules process would not know of the session, and of an earlier one nobody waits. */
	if (m->run != s->run)
		return 0;
	if (a.status == 0)
		a.status = fds[0] < 0 ? -EMFILE : authorise_watch(&s->workers, m, fds[0], &a.watch, &channel);
	if (fds[0] >= 0)
		close(TAKE_FD(fds[0]));
	if (a.status == 0)
		monitor_tell_judge(s, &a.watch, sizeof(a.watch), channel);
	monitor_tell_manager(s, RULES_WATCHED, m->run, &a, sizeof(a), -1);
	return 0;
}

static int on_kill(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	const struct ipc_note *m = msg;

	if (m->kind != IPC_NOTE_KILL)
		return -EPROTO;
	workers_kill(&s->workers, m->value);
	return 0;
}

/* Is that what the message needs?  Of one whose descriptors are lost the size is, too. */
static bool fits(const struct request *r, ssize_t size, size_t n_fds)
{
	if (size == -EMFILE)
		return r->fds_max > 0;
	return (size_t)size == r->size && n_fds >= r->fds_min && n_fds <= r->fds_max;
}

int requests_read_judge(struct monitor *s)
{
	union {
		uint32_t type;
		struct judge_start start;
		struct judge_watch watch;
		struct ipc_note note;
	} m = { 0 };
	int fds[FD_RIGHTS_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	const struct request *request;
	size_t n_fds;
	ssize_t n = fd_recv_foreign(s->judge.sock, &m, sizeof(m), fds, &n_fds);

	if (n <= 0 && n != -EMFILE) {
		r = n == 0 ? -EPIPE : (int)n;
	} else {
		request = find_request(m.type, JUDGE);
		if (request && fits(request, n, n_fds))
			r = request->take(s, NULL, &m, 0, fds);
	}
	for (size_t i = 0; i < n_fds; i++)
		closers_close_foreign(fds[i]);
	return r;
}

/* ------------------------------------------------------------------ of workers --------------- */

static int on_store(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	stores_start_producer(&s->workers, k, fds[0]);
	return 0;
}

/* Without somebody who reads, the end of the other side is closed with the message, and that says so. */
static int on_threads(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	int r = s->stop_at ? -ESHUTDOWN : workers_start_reader(&s->workers, k, fds[0]);

	/* Faults that follow closely upon each other have more readers than there may be; what lacks them says so. */
	if (r == -EBUSY)
		log_debug("the threads of process %d are being read already", (int)k->target);
	else if (r < 0)
		log_warning("the threads of process %d are not read: %s", (int)k->target, strerror(-r));
	return 0;
}

/* The rest is closed with the message. */
static int on_broker(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	return brokers_start(&s->workers, k, fds[0]);
}

static int on_hook(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	struct rules_fault f = { .pid = k->target, .uid = k->target_uid, .gid = k->target_gid,
				 .fault = ((const struct ipc_hook *)msg)->fault };

	/* Looking at another kind of file could hang the rules process, and with it everybody's hooks. */
	if (!fd_is_memfd(fds[0]))
		return -EPROTO;
	str_copy(f.rule, sizeof(f.rule), k->rule);
	monitor_tell_manager(s, RULES_FAULT, 0, &f, sizeof(f), fds[0]);
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

	monitor_tell_judge(s, &q, sizeof(q), -1);
}

/*
 * Several workers that are not themselves any more could say more than waits for a judge that stands still, and
 * that would end the agent.  What is left out is counted, and told with what the worker says next.
 */
static void tell_or_count_use(struct monitor *s, struct worker *k, const struct ipc_used *m)
{
	const bool has_room = s->judge.n_waiting < USED_WAITING_MAX;
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

static int on_used(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
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

/* What finds no room is counted, and told with what the store says next. */
static int on_record_used(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	struct judge_record_used q = { .type = JUDGE_RECORD_USED, .worker = k->id,
				       .used = *(const struct ipc_record_used *)msg };

	if (!is_method(q.used.method) || is_flood(k, clock_now_ns()))
		return -EPROTO;
	q.used.more = add(q.used.more, k->unsaid.more);
	k->unsaid.more = 0;
	if (s->judge.sock >= 0 && s->judge.n_waiting < USED_WAITING_MAX)
		monitor_tell_judge(s, &q, sizeof(q), -1);
	else
		k->unsaid.more = add(q.used.more, 1);
	return 0;
}

static int on_found(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	const struct ipc_found *m = msg;
	const struct rules_found found = { .pid = m->pid, .vendor = m->vendor };

	if (!m->pid || m->pid > INT32_MAX)
		return -EPROTO;
	if (!s->stop_at && !workers_is_own(&s->workers, (pid_t)m->pid))
		monitor_tell_manager(s, RULES_FOUND, 0, &found, sizeof(found), -1);
	return 0;
}

static int on_arm(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
{
	return workers_arm(k, ((const struct ipc_guard *)msg)->ms) ? 0 : -EPROTO;
}

static int on_disarm(struct monitor *s, struct worker *k, const void *msg, uint32_t number, int fds[])
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
	return r->take(ctx, k, m, 0, take_fd);
}
