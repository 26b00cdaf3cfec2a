/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/rate_limit.h"

#include <string.h>

#include "base/str.h"

static uint64_t ns_of(uint32_t ms)
{
	return (uint64_t)ms * 1000000;
}

bool rate_limit_allows(struct rate_limit *s, const struct ipc_rule *r, uint64_t now_ns)
{
	if (!r->rate_events)
		return true;
	if (!s->period_ns || now_ns - s->period_ns >= ns_of(r->rate_ms)) {
		s->period_ns = now_ns;
		s->n_recorded = 0;
	}
	if (s->n_recorded < r->rate_events)
		return true;
	s->untold++;
	return false;
}

static struct rate_limit_key *find(struct rate_limit *s, const char *key)
{
	for (size_t i = 0; i < s->n_keys; i++)
		if (!strcmp(s->keys[i].text, key))
			return &s->keys[i];
	return NULL;
}

bool rate_limit_is_repeat(struct rate_limit *s, const struct ipc_rule *r, const char *key,
			  uint64_t now_ns)
{
	struct rate_limit_key *k = r->key_parts ? find(s, key) : NULL;

	if (!k || now_ns - k->since_ns >= ns_of(r->key_ms))
		return false;
	k->repeats++;
	return true;
}

/* @return a free place, or that of the key with the oldest record. */
static struct rate_limit_key *place_for(struct rate_limit *s)
{
	struct rate_limit_key *oldest = &s->keys[0];

	if (s->n_keys < RATE_LIMIT_KEYS_MAX)
		return &s->keys[s->n_keys++];
	for (size_t i = 1; i < s->n_keys; i++)
		if (s->keys[i].since_ns < oldest->since_ns)
			oldest = &s->keys[i];
	s->untold += oldest->repeats;
	return oldest;
}

uint64_t rate_limit_recorded(struct rate_limit *s, const struct ipc_rule *r, const char *key,
			     uint64_t now_ns)
{
	struct rate_limit_key *k;
	uint64_t count;

	s->n_recorded++;
	if (!r->key_parts)
		return 1;
	k = find(s, key);
	if (!k) {
		k = place_for(s);
		*k = (struct rate_limit_key){ 0 };
		str_copy(k->text, sizeof(k->text), key);
	}
	count = k->repeats + 1;
	k->repeats = 0;
	k->since_ns = now_ns;
	return count;
}

uint64_t rate_limit_untold(const struct rate_limit *s)
{
	uint64_t n = s->untold;

	for (size_t i = 0; i < s->n_keys; i++)
		n += s->keys[i].repeats;
	return n;
}
