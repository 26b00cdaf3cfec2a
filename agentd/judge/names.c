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

void names_add(struct names *n, const struct clients *all, const struct client *k, uint32_t worker)
{
	if (names_find(n, k->id, worker))
		return;
	forget_gone(n, all);
	if (n->n == n->capacity && !grow(n)) {
		log_error("no memory: what pid %d (uid %u) does in a session is told without its name", (int)k->peer.pid,
			  k->peer.uid);
		return;
	}
	n->list[n->n++] = (struct name){ .client = k->id, .worker = worker, .pid = k->peer.pid, .uid = k->peer.uid,
					 .charge = k->peer.charge };
}

void names_worker_ended(struct names *n, uint32_t worker)
{
	for (size_t i = n->n; i-- > 0;)
		if (n->list[i].worker == worker)
			forget(n, i);
}
