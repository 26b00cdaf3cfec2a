/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/subscribers.h"

#include <errno.h>
#include <stdlib.h>

void subscribers_deinit(struct subscribers *s)
{
	free(s->list);
	*s = (struct subscribers){ 0 };
}

static struct subscriber *find(const struct subscribers *s, uint64_t client)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].client == client)
			return &s->list[i];
	return NULL;
}

struct subscriber subscribers_get(const struct subscribers *s, uint64_t client)
{
	const struct subscriber *who = find(s, client);

	return who ? *who : (struct subscriber){ .client = client };
}

bool subscribers_remove(struct subscribers *s, uint64_t client)
{
	struct subscriber *who = find(s, client);

	if (!who)
		return false;
	*who = s->list[--s->n];
	return true;
}

int subscribers_set(struct subscribers *s, const struct subscriber *who)
{
	struct subscriber *old = find(s, who->client);

	if (!who->exceptions) {
		subscribers_remove(s, who->client);
		return 0;
	}
	if (!old && s->n == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 4;
		struct subscriber *list = realloc(s->list, capacity * sizeof(*list));

		if (!list)
			return -ENOMEM;
		s->list = list;
		s->capacity = capacity;
	}
	if (!old)
		old = &s->list[s->n++];
	*old = *who;
	return 0;
}

void subscribers_release(struct subscribers *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->list[i].hold = false;
}

struct subscriber subscribers_sum(const struct subscribers *s)
{
	struct subscriber sum = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		sum.exceptions |= s->list[i].exceptions;
		sum.hold = sum.hold || s->list[i].hold;
		if (s->list[i].look_ms > sum.look_ms)
			sum.look_ms = s->list[i].look_ms;
	}
	return sum;
}
