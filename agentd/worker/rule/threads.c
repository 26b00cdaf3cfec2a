/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/threads.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <string.h>

#include "agentd/ipc/frontend_worker.h"
#include "agentd/ipc/monitor_worker.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/out.h"
#include "protocol/rpc_queue_place.h"

void rule_threads_init(struct rule_threads *t, const struct rule_host *host, rule_threads_fn done,
		       struct rule_engine *engine)
{
	*t = (struct rule_threads)RULE_THREADS_NULL;
	t->host = host;
	t->done = done;
	t->engine = engine;
}

void rule_threads_deinit(struct rule_threads *t)
{
	if (t->answered)
		event_free(t->answered);
	if (t->patience)
		event_free(t->patience);
	ipc_link_deinit(&t->link);
	rule_threads_init(t, t->host, t->done, t->engine);
}

bool rule_threads_are_asked(const struct rule_threads *t)
{
	return t->link.fd >= 0;
}

/* The question is over before its answer is told: who hears that may ask the next. */
static void finish(struct rule_threads *t, const char *text, size_t size, const char *why)
{
	rule_threads_deinit(t);
	t->done(t->engine, text, size, why);
}

void rule_threads_give_up(struct rule_threads *t, const char *why)
{
	if (rule_threads_are_asked(t))
		finish(t, NULL, 0, why);
}

static void take(struct rule_threads *t, const struct ipc_message *m)
{
	struct agent_err err = { 0 };

	if (m->head.type == IPC_REPLY)
		finish(t, m->text, m->head.size, NULL);
	else if (m->head.type == IPC_ERROR && agent_err_decode_text(m->text, m->head.size, &err) == 0)
		finish(t, NULL, 0, err.message);
	else
		finish(t, NULL, 0, "the reader of threads said what nobody understands");
}

static void read_answer(struct rule_threads *t)
{
	struct ipc_message m;
	int r = ipc_link_recv(&t->link, &m);

	if (r == -EAGAIN)
		return;
	if (r <= 0) {
		finish(t, NULL, 0, "the reader of threads ended without an answer, or there is none");
		return;
	}
	take(t, &m);
	ipc_message_deinit(&m);
}

static void on_answered(evutil_socket_t fd, short what, void *user)
{
	struct rule_threads *t = user;
	const struct rule_host host = *t->host;

	host.ops->work_begin(host.session);
	read_answer(t);
	host.ops->work_end(host.session);
	if (host.target->ended)
		host.ops->target_ended(host.session);
}

static void on_patience(evutil_socket_t fd, short what, void *user)
{
	struct rule_threads *t = user;
	const struct rule_host host = *t->host;

	host.ops->work_begin(host.session);
	rule_threads_give_up(t, "threads were not read in time");
	host.ops->work_end(host.session);
	if (host.target->ended)
		host.ops->target_ended(host.session);
}

/* ------------------------------------------------------------------ asking ------------------- */

int rule_threads_send(int monitor, const struct rpc_host_stacks_params *p, struct ipc_link *ret)
{
	const struct ipc_threads ask = { .type = IPC_THREADS };
	struct ipc_head head = { .type = IPC_CALL, .number = RPC_METHOD_HOST_STACKS, .id = 1 };
	auto_out struct out text;
	int fd, r;

	out_init(&text, IPC_TEXT_MAX);
	rpc_host_stacks_params_encode(&text, p);
	r = out_error(&text);
	if (r == 0)
		r = ipc_send_pair(monitor, &ask, sizeof(ask), &fd);
	if (r < 0)
		return r;
	ipc_link_init(ret, fd);
	head.size = text.size;
	r = ipc_link_send(ret, &head, text.data);
	/* Nothing is in the socket yet: it has room. */
	return r == 0 && ipc_link_has_queued(ret) ? -EAGAIN : r;
}

/* @return as ipc_link_recv(), and -ETIME. */
static int wait_for_answer(struct ipc_link *link, uint64_t late_ns, struct ipc_message *ret)
{
	int r;

	do {
		struct pollfd p = { .fd = link->fd, .events = POLLIN };

		if (poll(&p, 1, clock_left_ms(late_ns)) < 0 && errno != EINTR)
			return -errno;
		r = ipc_link_recv(link, ret);
	} while (r == -EAGAIN && clock_left_ms(late_ns));
	return r == -EAGAIN ? -ETIME : r;
}

static const char *decode_answer(struct rpc_arena *a, const struct ipc_message *m, struct rpc_host_stacks_result *ret)
{
	struct agent_err err = { 0 };
	struct json_object *obj = NULL;
	struct rpc_decoder d;
	int r;

	if (m->head.type == IPC_ERROR && agent_err_decode_text(m->text, m->head.size, &err) == 0)
		return rpc_arena_strdup(a, err.message);
	r = m->head.type == IPC_REPLY ? rpc_json_parse(m->text, m->head.size, &obj, NULL) : -EPROTO;
	rpc_decoder_init_lenient(&d, "threads", a, NULL);
	if (r == 0)
		r = rpc_host_stacks_result_decode(&d, obj, ret);
	rpc_json_put(obj);
	return r < 0 ? "the answer makes no sense, or does not fit into memory" : NULL;
}

const char *rule_threads_receive(struct ipc_link *link, uint64_t late_ns, struct rpc_arena *a,
				 struct rpc_host_stacks_result *ret)
{
	struct ipc_message m;
	const char *why;
	int r = wait_for_answer(link, late_ns, &m);

	if (r == -ETIME)
		return "they were not read in time";
	if (r == 0)
		return "their reader ended without an answer, or there is none";
	if (r < 0) {
		why = rpc_arena_printf(a, "their reader's answer: %s", strerror(-r));
		return why ? why : "their reader's answer cannot be read";
	}
	why = decode_answer(a, &m, ret);
	ipc_message_deinit(&m);
	return why;
}

static int listen_for(struct rule_threads *t, uint32_t ms)
{
	const struct timeval patience = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	t->answered = event_new(t->host->base, t->link.fd, EV_READ | EV_PERSIST, on_answered, t);
	t->patience = event_new(t->host->base, -1, 0, on_patience, t);
	if (!t->answered || !t->patience || event_add(t->answered, NULL) < 0 || event_add(t->patience, &patience) < 0)
		return -ENOMEM;
	return 0;
}

int rule_threads_ask(struct rule_threads *t, const struct rpc_gpu_snapshot_result *seen, bool native,
		     uint32_t timeout_ms)
{
	struct rpc_host_stacks_params p = { .pid = (uint32_t)t->host->target->facts.pid, .has_native = true,
					    .native = native };
	auto_rpc_arena struct rpc_arena arena;
	int r;

	if (rule_threads_are_asked(t))
		return -EBUSY;
	rpc_arena_init(&arena, 0);
	r = rpc_queue_places(&arena, seen->queues, seen->n_queues, &p);
	if (r == 0)
		r = rule_threads_send(t->host->deadline->fd, &p, &t->link);
	if (r == 0)
		r = listen_for(t, timeout_ms);
	if (r < 0)
		rule_threads_deinit(t);
	return r;
}
