/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/id_map.h"

#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"

#define FIRST_CAPACITY 64u
#define CAPACITY_MAX   (UINT32_C(1) << 30)

/* There are twice as many slots as keys, so that a search ends after a few steps. */
static int grow(struct id_map *t, size_t capacity)
{
	uint64_t *keys = realloc(t->keys, capacity * sizeof(*keys));
	uint32_t *slots;

	if (!keys)
		return -ENOMEM;
	t->keys = keys;
	slots = capacity > CAPACITY_MAX ? NULL : calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->mask = (uint32_t)(2 * capacity - 1);
	t->capacity = capacity;
	for (size_t i = 0; i < t->n; i++) {
		uint32_t slot = (uint32_t)hash_mix(t->keys[i] ^ t->secret) & t->mask;

		while (t->slots[slot])
			slot = (slot + 1) & t->mask;
		t->slots[slot] = (uint32_t)i + 1;
	}
	return 0;
}

int id_map_init(struct id_map *t)
{
	*t = (struct id_map){ .secret = hash_secret() };
	return grow(t, FIRST_CAPACITY);
}

void id_map_deinit(struct id_map *t)
{
	free(t->keys);
	free(t->slots);
	*t = (struct id_map){ 0 };
}

int64_t id_map_put(struct id_map *t, uint64_t key)
{
	uint32_t slot = (uint32_t)hash_mix(key ^ t->secret) & t->mask;

	while (t->slots[slot]) {
		if (t->keys[t->slots[slot] - 1] == key)
			return t->slots[slot] - 1;
		slot = (slot + 1) & t->mask;
	}
	if (t->n == t->capacity) {
		int r = grow(t, 2 * t->capacity);

		return r < 0 ? r : id_map_put(t, key);
	}
	t->keys[t->n++] = key;
	t->slots[slot] = (uint32_t)t->n;
	return (int64_t)t->n - 1;
}
