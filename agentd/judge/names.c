/* SPDX-License-Identifier: MIT */
#include "agentd/judge/names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/judge/clients.h"
#include "base/log.h"

void names_deinit(struct names *n)
{
	free(n->list);
	*n = (struct names){ 0 };
}

const struct name *names_find(const struct names *n, uint64_t client, uint32_t worker)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->list[i].client == client && n->list[i].worker == worker)
			return &n->list[i];
	return NULL;
}

const struct name *names_of_store(const struct names *n, uint32_t worker)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->list[i].worker == worker)
			return &n->list[i];
	return NULL;
}

void names_judged(struct names *n, uint64_t client, pid_t target, enum ipc_right rights)
{
	for (size_t i = 0; i < n->n; i++)
		if (n->list[i].client == client && n->list[i].target == target)
			n->list[i].rights = rights;
}

static void forget(struct names *n, size_t i)
{
	memmove(&n->list[i], &n->list[i + 1], (--n->n - i) * sizeof(*n->list));
}

/* Whoever is connected stays known, however many come and go. */
static void forget_gone(struct names *n, const struct clients *all)
{
	size_t gone = 0;

	for (size_t i = n->n; i-- > 0;)
		if (!clients_find(all, n->list[i].client) && ++gone > NAMES_GONE)
			forget(n, i);
}

static bool grow(struct names *n)
{
	size_t capacity = n->capacity ? 2 * n->capacity : 16;
	struct name *list = realloc(n->list, capacity * sizeof(*list));

	if (!list)
		return false;
	n->list = list;
	n->capacity = capacity;
	return true;
}

void names_add(struct names *n, const struct clients *all, const struct client *k, const struct ipc_started *m,
	       pid_t target)
{
	if (names_find(n, k->id, m->worker)) {
		names_judged(n, k->id, target, (enum ipc_right)m->rights);
		return;
	}
	forget_gone(n, all);
	if (n->n == n->capacity && !grow(n)) {
		log_error("no memory: what pid %d (uid %u) does in a session is told without its name", (int)k->peer.pid,
			  k->peer.uid);
		return;
	}
	n->list[n->n++] = (struct name){ .client = k->id, .worker = m->worker, .pid = k->peer.pid, .uid = k->peer.uid,
					 .charge = k->peer.charge, .rights = (enum ipc_right)m->rights,
					 .session = m->session, .target = target, .target_uid = m->target_uid };
}

void names_worker_ended(struct names *n, uint32_t worker)
{
	n->n_ended++;
	for (size_t i = n->n; i-- > 0;) {
		struct name *name = &n->list[i];

		if (name->worker == worker && !name->ended)
			name->ended = n->n_ended;
		if (name->ended && n->n_ended - name->ended >= NAMES_ENDED)
			forget(n, i);
	}
}
