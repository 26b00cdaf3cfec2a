/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/core.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/ipc/worker_store.h"
#include "agentd/worker/rule/store_link.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"

#define PIECE_BYTES (UINT32_C(256) << 10)
/* One slice of reading takes so long; then calls and events get their turn. */
#define SLICE_MS 10

/* ------------------------------------------------------------------ its end ------------------ */

static void drop_event(struct event **e)
{
	if (*e)
		event_free(*e);
	*e = NULL;
}

void rule_core_init(struct rule_core *b, const struct rule_host *host, const struct ipc_rule *rule,
		    struct rule_hold *hold, rule_stored_fn stored, struct rule_engine *engine)
{
	*b = (struct rule_core)RULE_CORE_NULL;
	b->host = host;
	b->rule = rule;
	b->hold = hold;
	b->stored = stored;
	b->engine = engine;
}

void rule_core_deinit(struct rule_core *b)
{
	drop_event(&b->answered);
	drop_event(&b->writable);
	if (b->fd >= 0)
		close(b->fd);
	if (b->store_fd >= 0)
		close(b->store_fd);
	if (b->store_fd >= 0 && b->hook.fd >= 0)
		close(b->hook.fd);
	free(b->piece);
	rule_core_init(b, b->host, b->rule, b->hold, b->stored, b->engine);
}

void rule_core_let_go(struct rule_core *b)
{
	rule_hold_end(b->hold, RULE_HOLD_CORE);
}

static void end_core(struct rule_core *b)
{
	b->host->ops->core_end(b->host->session);
}

void rule_core_stop(struct rule_core *b)
{
	rule_core_let_go(b);
	end_core(b);
	b->is_taken = false;
	drop_event(&b->writable);
	if (b->fd >= 0)
		close(TAKE_FD(b->fd));
	free(b->piece);
	b->piece = NULL;
}

static void finish(struct rule_core *b, int status, const char *id)
{
	rule_core_stop(b);
	/* The callback has taken the hook's descriptor. */
	b->stored(b->engine, b->hook, status, id);
	b->hook.fd = -1;
	rule_core_deinit(b);
}

void rule_core_answered(struct rule_core *b)
{
	struct ipc_added added = { 0 };
	int r = store_link_receive(b->store_fd, &added);

	if (r == -EAGAIN)
		return;
	if (r == 0 && added.status == 0 && added.body_status < 0)
		log_warning("record %s: its core is not kept: %s", added.id,
			    strerror(-added.body_status));
	finish(b, r < 0 ? r : added.status, added.id);
}

void rule_core_give_up(struct rule_core *b)
{
	finish(b, -ETIMEDOUT, "");
}

/* ------------------------------------------------------------------ writing ------------------ */

static int read_piece(struct rule_core *b, struct agent_err *err)
{
	uint64_t left = b->bytes - b->position;
	uint32_t size = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
	struct target *t = b->host->target;
	int n = t->ops->core_read(t, b->position, b->piece, size, &b->lost_bytes, err);

	if (n == 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, EIO, "core", NULL,
				     "it is shorter than it was");
	b->piece_at = 0;
	b->piece_size = n < 0 ? 0 : (size_t)n;
	return n < 0 ? n : 0;
}

/* @return 1 when all is written, 0 when there is more to do later, negative. */
static int write_slice(struct rule_core *b, struct agent_err *err)
{
	uint64_t deadline = clock_deadline_ms(SLICE_MS);

	while (b->position < b->bytes) {
		int r = b->piece_at == b->piece_size ? read_piece(b, err) : 0;
		ssize_t n = r < 0 ? -1 : send(b->fd, b->piece + b->piece_at, b->piece_size - b->piece_at, MSG_NOSIGNAL);

		if (r < 0)
			return r;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return agent_err_set(err, RPC_ERROR_FAILED, errno, "core", NULL,
					     "the store takes no more of it");
		if (n < 0)
			return 0;
		b->piece_at += (size_t)n;
		b->position += (uint64_t)n;
		if (clock_now_ns() >= deadline)
			break;
	}
	return b->position == b->bytes;
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
	struct rule_core *b = user;
	struct agent_err err = { 0 };
	int r;

	b->host->ops->work_begin(b->host->session);
	r = write_slice(b, &err);
	/* A store that has no room says so in its answer. */
	if (r < 0 && r != -EPIPE)
		log_warning("rule %s: process %d: %s", b->rule->name,
			    (int)b->host->target->facts.pid, err.message);
	else if (r && b->lost_bytes)
		log_warning("rule %s: process %d: %" PRIu64 " bytes of its core could not be read",
			    b->rule->name, (int)b->host->target->facts.pid, b->lost_bytes);
	if (r)
		rule_core_stop(b);
	b->host->ops->work_end(b->host->session);
}

static void on_answered(evutil_socket_t fd, short what, void *user)
{
	struct rule_core *b = user;

	b->host->ops->work_begin(b->host->session);
	rule_core_answered(b);
	b->host->ops->work_end(b->host->session);
}

/* ------------------------------------------------------------------ its beginning ------------ */

bool rule_core_is_free(const struct rule_core *b)
{
	return b->store_fd < 0 && !b->is_taken && b->host->target->ops->core_begin;
}

void rule_core_take(struct rule_core *b, const struct target_core *core)
{
	b->bytes = core->bytes;
	b->is_taken = true;
}

static int open_body(struct rule_core *b, int *ret_theirs)
{
	int pair[2], r = store_link_open(b->host->deadline, &b->store_fd);

	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	b->fd = pair[0];
	*ret_theirs = pair[1];
	r = fd_set_nonblock(b->fd, true);
	b->piece = malloc(PIECE_BYTES);
	b->piece_at = b->piece_size = 0;
	b->answered = event_new(b->host->base, b->store_fd, EV_READ | EV_PERSIST, on_answered, b);
	b->writable = event_new(b->host->base, b->fd, EV_WRITE | EV_PERSIST, on_writable, b);
	if (r == 0 && (!b->piece || !b->answered || !b->writable || event_add(b->answered, NULL) < 0 ||
		       event_add(b->writable, NULL) < 0))
		r = -ENOMEM;
	return r;
}

int rule_core_send(struct rule_core *b, const struct store_meta *m, const struct out *json,
		   struct rule_hook hook)
{
	auto_close int theirs = -1;
	int r;

	b->is_taken = false;
	b->position = b->lost_bytes = 0;
	b->hook = hook;
	r = open_body(b, &theirs);
	if (r == 0)
		r = store_link_send(b->store_fd, m, json->data, json->size, theirs, b->bytes);
	if (r < 0) {
		end_core(b);
		if (b->store_fd < 0 && hook.fd >= 0)
			close(hook.fd);
		rule_core_deinit(b);
		return r;
	}
	if (b->rule->hold_ms)
		rule_hold_begin(b->hold, RULE_HOLD_CORE);
	return 0;
}
