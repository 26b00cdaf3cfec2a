/* SPDX-License-Identifier: MIT */
#include "symbols/cache.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

struct entry {
	struct symbols_key key;
	char *uri; /**< Text that key.uri points to; owned. */
	struct symbols_image *image;
	size_t users;
	uint64_t used_at;
};

struct symbols_cache {
	struct entry *entries;
	size_t n, capacity, budget;
	uint64_t clock; /**< Number of uses so far. */
};

int symbols_cache_create(size_t budget_bytes, struct symbols_cache **ret)
{
	struct symbols_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->budget = budget_bytes;
	*ret = c;
	return 0;
}

static void drop(struct symbols_cache *c, size_t i)
{
	assert(!c->entries[i].users);
	symbols_image_destroy(c->entries[i].image);
	free(c->entries[i].uri);
	c->entries[i] = c->entries[--c->n];
}

void symbols_cache_destroy(struct symbols_cache *c)
{
	if (!c)
		return;
	while (c->n)
		drop(c, c->n - 1);
	free(c->entries);
	free(c);
}

/* Compilers do not always write a build-id; only if neither image has one does the place count. */
static bool is_same(const struct symbols_key *a, const struct symbols_key *b)
{
	if (a->build_id_size || b->build_id_size)
		return a->build_id_size == b->build_id_size &&
		       !memcmp(a->build_id, b->build_id, a->build_id_size);
	return a->size == b->size && a->stamp == b->stamp &&
	       !strcmp(a->uri ? a->uri : "", b->uri ? b->uri : "");
}

struct symbols_image *symbols_cache_get(struct symbols_cache *c, const struct symbols_key *key)
{
	for (size_t i = 0; i < c->n; i++) {
		struct entry *e = &c->entries[i];

		if (!is_same(&e->key, key))
			continue;
		e->users++;
		e->used_at = ++c->clock;
		return e->image;
	}
	return NULL;
}

size_t symbols_cache_bytes(const struct symbols_cache *c)
{
	size_t bytes = 0;

	for (size_t i = 0; i < c->n; i++)
		bytes += symbols_image_bytes(c->entries[i].image);
	return bytes;
}

size_t symbols_cache_count(const struct symbols_cache *c)
{
	return c->n;
}

/* @return the image that was not used for the longest time; c->n when all are in use. */
static size_t find_oldest(const struct symbols_cache *c)
{
	size_t oldest = c->n;

	for (size_t i = 0; i < c->n; i++)
		if (!c->entries[i].users &&
		    (oldest == c->n || c->entries[i].used_at < c->entries[oldest].used_at))
			oldest = i;
	return oldest;
}

static void trim(struct symbols_cache *c)
{
	while (symbols_cache_bytes(c) > c->budget) {
		size_t oldest = find_oldest(c);

		if (oldest == c->n)
			return;
		drop(c, oldest);
	}
}

int symbols_cache_add(struct symbols_cache *c, const struct symbols_key *key, const void *bytes,
		      size_t size, struct symbols_image **ret)
{
	auto_free char *uri = strdup(key->uri ? key->uri : "");
	struct entry e = { .key = *key, .users = 1, .used_at = ++c->clock };
	int r;

	if (!uri || vec_reserve(&c->entries, c->n, 1, &c->capacity, sizeof(*c->entries)) < 0)
		return -ENOMEM;
	r = symbols_image_create(bytes, size, &e.image);
	if (r < 0)
		return r;
	e.key.uri = uri;
	e.uri = TAKE_PTR(uri);
	c->entries[c->n++] = e;
	trim(c);
	*ret = e.image;
	return 0;
}

void symbols_cache_put(struct symbols_cache *c, struct symbols_image *image)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->entries[i].image != image)
			continue;
		assert(c->entries[i].users);
		c->entries[i].users--;
		/* Lookups may have made it larger. */
		trim(c);
		return;
	}
	assert(!image);
}
