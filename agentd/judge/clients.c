/* SPDX-License-Identifier: MIT */
#include "agentd/judge/clients.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/ipc/monitor_judge.h"
#include "base/cleanup.h"
#include "base/fd.h"

/* Whoever is refused so often in a second does not read the answers. */
#define REFUSED_MAX 100
#define SECOND_NS   UINT64_C(1000000000)

/* ------------------------------------------------------------------ the table ---------------- */

static struct client **bucket_of(const struct clients *c, uint64_t id)
{
	return (struct client **)&c->buckets[id % CLIENTS_BUCKETS];
}

struct client *clients_find(const struct clients *c, uint64_t id)
{
	struct client *k = *bucket_of(c, id);

	while (k && k->id != id)
		k = k->next;
	return k;
}

struct client *clients_hold(struct client *k)
{
	k->n_holders++;
	return k;
}

void clients_release(struct client *k)
{
	if (--k->n_holders)
		return;
	access_peer_deinit(&k->peer);
	free(k);
}

static void add(struct clients *c, struct client *k)
{
	struct client **bucket = bucket_of(c, k->id);

	k->next = *bucket;
	*bucket = clients_hold(k);
	c->n++;
}

void clients_close(struct clients *c, struct client *k)
{
	struct client **link = bucket_of(c, k->id);

	while (*link && *link != k)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = k->next;
	c->n--;
	clients_release(k);
}

bool clients_told(struct clients *c, const struct ipc_clients *m)
{
	if (m->taken > c->n_untold || m->n_closed > IPC_CLIENTS_CLOSED)
		return false;
	c->n_untold -= m->taken;
	for (size_t i = 0; i < m->n_closed; i++) {
		struct client *k = clients_find(c, m->closed[i]);

		if (!k)
			return false;
		clients_close(c, k);
	}
	return true;
}

void clients_deinit(struct clients *c)
{
	for (size_t i = 0; i < CLIENTS_BUCKETS; i++)
		while (c->buckets[i])
			clients_close(c, c->buckets[i]);
}

/* ------------------------------------------------------------------ accepting ---------------- */

/* Administrators have a count of their own: a container that root has made counts for root. */
static uint32_t count_user(const struct clients *c, const struct access_peer *peer)
{
	uint32_t n = 0;

	for (size_t i = 0; i < CLIENTS_BUCKETS; i++)
		for (const struct client *k = c->buckets[i]; k; k = k->next)
			n += k->peer.charge == peer->charge && k->peer.admin == peer->admin;
	return n;
}

static enum ipc_class judge(const struct clients *c, const struct access_peer *peer,
			    const struct clients_limits *limits)
{
	const uint32_t all = peer->admin || !limits->has_reserve ? limits->all : ipc_common_part(limits->all);

	if (c->n >= all || c->n >= IPC_CLIENTS_MAX)
		return IPC_CLASS_TOO_MANY;
	return count_user(c, peer) >= limits->of_user ? IPC_CLASS_TOO_MANY_OF_USER : IPC_CLASS_SERVED;
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) < 0 ? 0 : cookie;
}

bool clients_is_socket_of(const struct client *k, int fd)
{
	return cookie_of(fd) == k->id;
}

static int identify(int fd, const struct access_rules *rules, struct client *k)
{
	int r = fd_refuse_rights(fd);

	k->id = cookie_of(fd);
	if (r == 0 && !k->id)
		r = -ENOTSUP;
	if (r == 0)
		r = access_peer_read(fd, rules, &k->peer);
	if (r == 0)
		access_peer_look(&k->peer);
	return r;
}

static void describe(const struct client *k, enum ipc_class class, struct ipc_client *ret)
{
	*ret = (struct ipc_client){ .type = IPC_CLIENT,
				    .class = class,
				    .id = k->id,
				    .pid = (uint32_t)k->peer.pid,
				    .uid = k->peer.uid,
				    .charge = k->peer.charge,
				    .admin = k->peer.admin,
				    .near = access_peer_is_near(&k->peer) };
}

int clients_accept(struct clients *c, int listen_fd, const struct access_rules *rules,
		   const struct clients_limits *limits, struct ipc_client *ret, int *ret_fd)
{
	struct client *k = calloc(1, sizeof(*k));
	enum ipc_class class = IPC_CLASS_UNKNOWN;
	int fd;

	if (!k)
		return -ENOMEM;
	*k = (struct client){ .peer = { .uid = ACCESS_NOBODY, .charge = ACCESS_NOBODY, .pidfd = -1 }, .n_holders = 1 };
	fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		/* Whoever has left already is nobody. */
		int r = errno == ECONNABORTED || errno == EINTR ? -EAGAIN : -errno;

		clients_release(k);
		return r;
	}
	if (identify(fd, rules, k) == 0)
		class = judge(c, &k->peer, limits);
	describe(k, class, ret);
	if (class == IPC_CLASS_SERVED)
		add(c, k);
	else
		ret->id = 0;
	clients_release(k);
	*ret_fd = fd;
	return 0;
}

/* ------------------------------------------------------------------ later -------------------- */

void clients_judge(struct clients *c, const struct access_rules *rules,
		   void (*changed)(void *ctx, const struct ipc_client *m), void *ctx)
{
	for (size_t i = 0; i < CLIENTS_BUCKETS; i++)
		for (struct client *k = c->buckets[i]; k; k = k->next) {
			const bool was_admin = k->peer.admin;
			struct ipc_client m;

			access_peer_set_rights(rules, &k->peer);
			describe(k, IPC_CLASS_CHANGED, &m);
			if (k->peer.admin != was_admin)
				changed(ctx, &m);
		}
}

bool clients_check(struct client *k, struct ipc_client *ret)
{
	const bool was_admin = k->peer.admin;

	access_peer_check(&k->peer);
	describe(k, IPC_CLASS_CHANGED, ret);
	return k->peer.admin != was_admin;
}

bool clients_refused(struct client *k, uint64_t now)
{
	if (!k->n_refused || now - k->refused_ns >= SECOND_NS) {
		k->refused_ns = now;
		k->n_refused = 0;
	}
	if (++k->n_refused <= REFUSED_MAX || k->is_over)
		return false;
	k->is_over = true;
	return true;
}
