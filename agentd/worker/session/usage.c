/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/usage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#define SECOND_NS UINT64_C(1000000000)
#define SHARE	    (IPC_USED_PER_SECOND / 3)
/* Of that so much is for what was not told lately. */
#define FIRST_SHARE (SHARE / 5)
/* After so long a reading that goes on is told again. */
#define READS_NS (10 * SECOND_NS)

_Static_assert(RPC_METHOD_COUNT <= 64, "each method has a bit");

/* ------------------------------------------------------------------ who ---------------------- */

void usage_deinit(struct usage *u)
{
	free(u->list);
	*u = (struct usage){ 0 };
}

struct usage_client *usage_find(struct usage *u, uint64_t id)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->list[i].id == id)
			return &u->list[i];
	return NULL;
}

static int grow(struct usage *u)
{
	size_t capacity = u->capacity ? 2 * u->capacity : 4;
	struct usage_client *list = realloc(u->list, capacity * sizeof(*list));

	if (!list)
		return -ENOMEM;
	u->list = list;
	u->capacity = capacity;
	return 0;
}

/* @return whether the monitor will hear it. */
static bool send_used(struct usage *u, struct ipc_used *m, enum rpc_method method)
{
	m->type = IPC_USED;
	str_copy(m->method, sizeof(m->method), rpc_methods[method].name);
	return fd_send(u->fd, m, sizeof(*m), NULL, 0) == (ssize_t)sizeof(*m);
}

static bool tell(struct usage *u, const struct usage_client *c, enum ipc_use use, enum rpc_method method)
{
	struct ipc_used m = { .kind = use, .client = c->id, .more = c->untold };

	return send_used(u, &m, method);
}

static void tell_untold(struct usage *u, struct usage_client *c)
{
	if (!c->untold)
		return;
	/* The last of them is the one that is named. */
	c->untold--;
	if (tell(u, c, c->last_use, c->last_method))
		c->untold = 0;
	else
		c->untold++;
}

/* The larger, the less is lost without it. */
static int dispensability(const struct usage_client *c)
{
	return c->has_left ? 2 : !c->has_called;
}

/*
 * Of those who have left, and else of those who have not called yet, the one who came first: nobody tells of
 * a client that closes its connection before its first call.
 * @return NULL: all others use the session.
 */
static struct usage_client *find_dispensable(struct usage *u)
{
	struct usage_client *found = &u->list[0];

	for (struct usage_client *c = u->list; c < u->list + u->n; c++) {
		const int more = dispensability(c) - dispensability(found);

		if (more ? more > 0 : c->order < found->order)
			found = c;
	}
	return dispensability(found) ? found : NULL;
}

int usage_let_in(struct usage *u, const struct ipc_let_in *m)
{
	struct usage_client *c = usage_find(u, m->client);

	if (!c && u->n < IPC_CLIENTS_MAX) {
		if (u->n == u->capacity && grow(u) < 0)
			return -ENOMEM;
		c = &u->list[u->n++];
		*c = (struct usage_client){ .id = m->client };
	} else if (!c) {
		u->has_forgotten = true;
		c = find_dispensable(u);
		if (!c)
			return 0;
		tell_untold(u, c);
		*c = (struct usage_client){ .id = m->client };
	}
	c->order = ++u->last_order;
	c->uid = m->uid;
	c->rights = (enum ipc_right)m->rights;
	c->admin = m->admin;
	c->has_left = false;
	return 0;
}

struct usage_client *usage_admit(struct usage *u, uint64_t id)
{
	struct usage_client *c = usage_find(u, id);

	if (!c)
		return NULL;
	c->has_left = false;
	c->has_called = true;
	return c;
}

/* ------------------------------------------------------------------ what --------------------- */

/* Nothing of what is in memory, registers or code, nor where they are. */
static bool tells_little(enum rpc_method method)
{
	return method == RPC_METHOD_RUNTIME_INFO || method == RPC_METHOD_GPU_DEVICES ||
	       method == RPC_METHOD_GPU_QUEUES || method == RPC_METHOD_WATCHPOINT_LIST;
}

/* @return 0: nobody wants to know. */
static enum ipc_use use_of(const struct usage *u, const struct usage_client *c, enum rpc_method method)
{
	const struct rpc_method_info *info = &rpc_methods[method];

	if (info->place != RPC_PLACE_SESSION)
		return 0;
	if (info->right == RPC_RIGHT_CONTROL)
		return IPC_USE_CONTROL;
	return c->uid == u->owner || tells_little(method) ? 0 : IPC_USE_READ;
}

static bool was_told(struct usage_client *c, enum rpc_method method, uint64_t now)
{
	if (now - c->told_ns >= READS_NS) {
		c->told_ns = now;
		c->told = 0;
	}
	return c->told & UINT64_C(1) << method;
}

/*
 * What others do is told, however much the target's user does, and what they change, however much they read.
 * @param again  The same was told of that client lately.
 */
static bool has_room(struct usage *u, const struct usage_client *c, enum ipc_use use, bool again, uint64_t now)
{
	struct usage_second *second = c->uid == u->owner   ? &u->own :
				      use == IPC_USE_READ ? &u->others_read : &u->others_changed;

	if (now - second->since_ns >= SECOND_NS)
		*second = (struct usage_second){ .since_ns = now };
	if (second->n >= (again ? SHARE - FIRST_SHARE : SHARE))
		return false;
	second->n++;
	return true;
}

void usage_called(struct usage *u, uint64_t id, enum rpc_method method, uint64_t now)
{
	struct usage_client *c = usage_find(u, id);
	enum ipc_use use = c && method < RPC_METHOD_COUNT ? use_of(u, c, method) : 0;
	bool again;

	if (c && u->holder.id == id && method != RPC_METHOD_GPU_RENEW)
		u->holder.asked_ns = now;
	if (!use)
		return;
	again = was_told(c, method, now);
	if ((use == IPC_USE_READ && again) || !has_room(u, c, use, again, now) || !tell(u, c, use, method)) {
		c->last_use = use;
		c->last_method = method;
		c->untold++;
		return;
	}
	c->untold = 0;
	c->told |= UINT64_C(1) << method;
}

static bool tell_taken(struct usage *u, const struct usage_client *c, enum rpc_method method, bool forced, uint64_t now)
{
	const struct usage_holder *h = &u->holder;
	struct ipc_used m = { .kind = h->has_left ? IPC_USE_TAKEN_LEFT :
				      forced	  ? IPC_USE_TAKEN_FORCED : IPC_USE_TAKEN_SILENT,
			      .client = c->id,
			      .from = h->id,
			      .idle_ms = (now - h->asked_ns) / 1000000 };

	return has_room(u, c, IPC_USE_CONTROL, false, now) && send_used(u, &m, method);
}

void usage_takes(struct usage *u, uint64_t id, enum rpc_method method, bool forced, uint64_t now)
{
	const struct usage_client *c = usage_find(u, id);

	if (!c || c->rights < IPC_RIGHT_CONTROL)
		return;
	/* What cannot be told now is told of its next call. */
	if (u->holder.id && u->holder.id != id && !tell_taken(u, c, method, forced, now))
		return;
	u->holder = (struct usage_holder){ .id = id, .asked_ns = now };
}

void usage_gives_back(struct usage *u, uint64_t id)
{
	if (u->holder.id == id)
		u->holder = (struct usage_holder){ 0 };
}

void usage_left(struct usage *u, uint64_t id, uint64_t now)
{
	struct usage_client *c = usage_find(u, id);

	if (u->holder.id == id)
		u->holder.has_left = true;
	if (!c)
		return;
	c->has_left = true;
	c->has_called = false;
	if (c->untold && has_room(u, c, c->last_use, false, now))
		tell_untold(u, c);
}

void usage_end(struct usage *u)
{
	uint64_t lost = 0;

	for (struct usage_client *c = u->list; c < u->list + u->n; c++) {
		tell_untold(u, c);
		lost += c->untold;
	}
	if (lost)
		log_warning("who has called %llu methods is not in the log: the monitor takes no more messages",
			    (unsigned long long)lost);
}
