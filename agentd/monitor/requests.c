/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/requests.h"

#include <errno.h>
#include <string.h>

#include "agentd/access.h"
#include "agentd/monitor/authorise.h"
#include "agentd/monitor/notify.h"
#include "agentd/rules/engine/rule_hooks.h"
#include "agentd/monitor/stores.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

/*
 * Do what a message asks for.
 * @param k    Who asks; NULL: front.
 * @param fds  What came along, -1 behind the last; what is left there is closed.  Where the frontend's were
 *             lost, because no descriptor was free, all are -1.
 * @return 0, -EPROTO.
 */
typedef int request_fn(struct monitor *s, struct worker *k, const void *msg, int fds[]);

static request_fn on_start, on_note, on_hooks, on_drop, on_store, on_found, on_hook, on_arm, on_disarm;

/* Who asks, as a bit. */
#define FRONT	1u
#define OF(kind) (1u << (kind))
#define SESSION OF(IPC_KIND_SESSION)
#define LOOK	OF(IPC_KIND_LOOK)
/* Whoever has a guard socket. */
#define GUARDED (SESSION | LOOK | OF(IPC_KIND_INSPECT) | OF(IPC_KIND_STORE) | OF(IPC_KIND_ADAPTER))

/* What is not here breaks the protocol: whoever sends it is killed. */
static const struct request {
	uint32_t type;
	unsigned who;
	size_t size;
	size_t fds_min, fds_max;
	request_fn *take;
} requests[] = {
	{ IPC_START,  FRONT,   sizeof(struct ipc_start), 1, 2, on_start },
	{ IPC_NOTE,   FRONT,   sizeof(struct ipc_note),	 0, 0, on_note },
	{ IPC_HOOKS,  FRONT,   sizeof(struct ipc_hooks), 1, 2, on_hooks },
	{ IPC_DROP,   FRONT,   sizeof(struct ipc_drop),	 1, 1, on_drop },
	{ IPC_STORE,  SESSION, sizeof(struct ipc_guard), 1, 1, on_store },
	{ IPC_HOOK,   SESSION, sizeof(struct ipc_guard), 1, 1, on_hook },
	{ IPC_FOUND,  LOOK,    sizeof(struct ipc_guard), 0, 1, on_found },
	{ IPC_ARM,    GUARDED, sizeof(struct ipc_guard), 0, 1, on_arm },
	{ IPC_DISARM, GUARDED, sizeof(struct ipc_guard), 0, 1, on_disarm },
};

static const struct request *find_request(uint32_t type, unsigned who)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++)
		if (requests[i].type == type && requests[i].who & who)
			return &requests[i];
	return NULL;
}

/* ------------------------------------------------------------------ of front ----------------- */

static int on_start(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_start *m = msg;
	struct ipc_started answer;
	auto_close int channel = -1;

	if (s->stop_at)
		return 0;
	if (fds[0] < 0)
		authorise_refuse(m, -EMFILE, &answer);
	else
		authorise_start(&s->workers, &s->ids.groups, m, fds[0], fds[1], &answer, &channel);
	monitor_tell_front(s, &answer, sizeof(answer), channel);
	if (m->kind != IPC_KIND_STORE && m->kind != IPC_KIND_ADAPTER)
		watches_hint(&s->watches);
	return 0;
}

/* Not before the last hook has said how it went, and not when a reload meanwhile is against it. */
static void front_is_idle(struct monitor *s)
{
	if (s->stop_at)
		return;
	if (hooks_is_busy(&s->hooks) || s->watch_rules.n || !s->config.idle_exit_ms) {
		monitor_tell_limits(s, true);
		return;
	}
	log_info("idle: exiting");
	monitor_stop(s);
}

static void front_is_ready(struct monitor *s)
{
	watchdog_begin(&s->watchdog, notify_watchdog_ms(), clock_now_ns());
	notify_send("READY=1\nSTATUS=Serving %s", s->config.socket);
	log_info("ready on %s", s->config.socket);
}

static int on_note(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_note *m = msg;

	switch (m->kind) {
	case IPC_NOTE_READY:
		front_is_ready(s);
		break;
	case IPC_NOTE_IDLE:
		front_is_idle(s);
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
	return 0;
}

static int on_hooks(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	struct ipc_hooks m = *(const struct ipc_hooks *)msg;
	struct access_peer client;
	int r = fds[0] < 0 ? -EMFILE : access_peer_read(fds[0], &s->ids.groups, &client);

	m.rule[sizeof(m.rule) - 1] = '\0';
	if (r < 0) {
		hook_requests_refuse(&s->hook_desk, &m, r);
		return 0;
	}
	access_peer_look(&client);
	hook_requests_take(&s->hook_desk, &m, &client, fds[1]);
	access_peer_deinit(&client);
	return 0;
}

/* The frontend keeps its own copy until the answer has come, so that ours is not the last. */
static int on_drop(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_drop *m = msg;
	struct ipc_closer answer = { .type = IPC_CLOSER, .kind = IPC_CLOSER_FAILED, .uid = m->uid };

	if (fds[0] >= 0 && closers_start(&s->closers, fds[0], m->uid) == 0) {
		fds[0] = -1;
		answer.kind = IPC_CLOSER_HOLDS;
	}
	monitor_tell_front(s, &answer, sizeof(answer), -1);
	return 0;
}

/* ------------------------------------------------------------------ of workers --------------- */

static int on_store(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	stores_start_producer(&s->workers, k, TAKE_FD(fds[0]));
	return 0;
}

static int on_hook(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	struct rules_fault f = { .pid = k->target, .uid = k->target_uid, .gid = k->target_gid,
				 .fault = ((const struct ipc_guard *)msg)->fault };

	str_copy(f.rule, sizeof(f.rule), k->rule);
	rule_hooks_run(&s->hooks, &f, fds[0]);
	return 0;
}

static int on_found(struct monitor *s, struct worker *k, const void *msg, int fds[])
{
	const struct ipc_guard *m = msg;

	if (!m->pid || m->pid > INT32_MAX)
		return -EPROTO;
	if (!s->stop_at && !workers_is_own(&s->workers, (pid_t)m->pid))
		watches_found(&s->watches, (pid_t)m->pid, (enum ipc_vendor)m->vendor);
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

int requests_take(void *ctx, struct worker *k, const struct ipc_guard *m, int *take_fd)
{
	const struct request *r = find_request(m->type, OF(k->kind));
	size_t n_fds = *take_fd >= 0;

	if (!r || r->size != sizeof(*m) || n_fds < r->fds_min || n_fds > r->fds_max)
		return -EPROTO;
	return r->take(ctx, k, m, take_fd);
}

/* ------------------------------------------------------------------ reading front ------------ */

/* All messages of the frontend start with their type; the sizes differ. */
union message {
	uint32_t type;
	struct ipc_start start;
	struct ipc_hooks hooks;
	struct ipc_note note;
	struct ipc_drop drop;
};

/*
 * A client's socket and, perhaps, a text in memory: closing those does not block, the frontend has them too.
 * Who the client is comes from this socket alone; the frontend itself may be anybody's by now.
 */
static bool are_front_fds(const struct monitor *s, const int *fds, size_t n)
{
	if (n && !access_is_client(fds[0], &s->address))
		return false;
	return n < 2 || (n == 2 && fd_is_memfd(fds[1]));
}

/* Is that what the message needs?  Of one whose descriptors are lost the size is, too. */
static bool fits(const struct request *r, ssize_t size, size_t n_fds)
{
	if (size == -EMFILE)
		return r->fds_min > 0;
	return (size_t)size == r->size && n_fds >= r->fds_min && n_fds <= r->fds_max;
}

int requests_read_front(struct monitor *s)
{
	int fds[FD_MESSAGE_MAX] = { -1, -1, -1, -1 }, r = -EPROTO;
	const struct request *request;
	union message m;
	size_t n_fds;
	ssize_t n;

	memset(&m, 0, sizeof(m));
	n = fd_recv(s->front.sock, &m, sizeof(m), fds, &n_fds);
	if (n <= 0 && n != -EMFILE)
		return n == 0 ? -EPIPE : (int)n;
	if (!are_front_fds(s, fds, n_fds)) {
		for (size_t i = 0; i < n_fds; i++)
			closers_close_foreign(fds[i]);
		return -EPROTO;
	}
	request = find_request(m.type, FRONT);
	if (request && fits(request, n, n_fds))
		r = request->take(s, NULL, &m, fds);
	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return r;
}
