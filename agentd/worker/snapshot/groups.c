/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/groups.h"

#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/target/waves.h"
#include "base/cleanup.h"

#define LANES_MAX 64u

/* ------------------------------------------------------------------ which group -------------- */

/* The groups, and an open-addressed hash table of their keys. */
struct table {
	uint32_t *slots; /* Each is empty, 0, or the number of a group plus 1. */
	uint32_t mask;
	uint64_t secret;
	struct group *groups;
	size_t n, capacity;
};

static int table_init(struct table *t, size_t n_waves)
{
	uint32_t size = 16;

	while (size < 2 * n_waves)
		size *= 2;
	t->slots = calloc(size, sizeof(*t->slots));
	t->mask = size - 1;
	t->capacity = 64;
	t->groups = malloc(t->capacity * sizeof(*t->groups));
	t->secret = hash_secret();
	return t->slots && t->groups ? 0 : -ENOMEM;
}

static bool is_of(const struct group *g, const struct wave *w)
{
	return g->place == w->place && g->kernel == w->kernel && g->gpu_id == w->gpu_id &&
	       g->state == w->state && g->reasons == w->reasons && g->exception == w->exception;
}

static int add_group(struct table *t, const struct wave *w, uint32_t position)
{
	if (t->n == t->capacity) {
		size_t capacity = 2 * t->capacity;
		struct group *groups = realloc(t->groups, capacity * sizeof(*groups));

		if (!groups)
			return -ENOMEM;
		t->groups = groups;
		t->capacity = capacity;
	}
	t->groups[t->n++] = (struct group){ .gpu_id = w->gpu_id, .state = w->state,
					    .reasons = w->reasons, .exception = w->exception,
					    .kernel = w->kernel,
					    .place = w->place, .pc = w->pc,
					    .representative = position };
	return 0;
}

/* Find or make the wave's group.  @return its number, or -ENOMEM. */
static int64_t find_group(struct table *t, const struct wave *w, uint32_t position)
{
	/* The exception is hashed and compared by its address: equal names are one string. */
	uint64_t h = hash_mix(((uint64_t)w->place << 32 | w->kernel) ^ t->secret);
	uint32_t slot;

	h = hash_mix(h ^ (uintptr_t)w->exception);
	h = hash_mix(h ^ ((uint64_t)w->gpu_id << 32 | w->reasons << 2 | w->state));
	slot = (uint32_t)h & t->mask;
	while (t->slots[slot] && !is_of(&t->groups[t->slots[slot] - 1], w))
		slot = (slot + 1) & t->mask;
	if (!t->slots[slot]) {
		if (add_group(t, w, position) < 0)
			return -ENOMEM;
		t->slots[slot] = (uint32_t)t->n;
	}
	return t->slots[slot] - 1;
}

/* ------------------------------------------------------------------ what is in it ------------ */

/*
 * Sort the positions of the waves by group: those of group g are order[starts[g]] and the following
 * ones, groups[g].waves of them.
 */
static void sort_by_group(const uint32_t *of, size_t n, const struct group *groups, size_t n_groups,
			  uint32_t *starts, uint32_t *order)
{
	uint32_t next = 0;

	for (size_t g = 0; g < n_groups; g++) {
		starts[g] = next;
		next += groups[g].waves;
	}
	for (size_t i = 0; i < n; i++)
		order[starts[of[i]]++] = (uint32_t)i;
	/* Each start has become the end of its group, which is the start of the next. */
	for (size_t g = 0; g < n_groups; g++)
		starts[g] -= groups[g].waves;
}

static bool is_before(const uint32_t *a, const uint32_t *b)
{
	for (int i = 2; i > 0; i--)
		if (a[i] != b[i])
			return a[i] < b[i];
	return a[0] < b[0];
}

static void add_workgroup(struct group *g, const struct wave *w)
{
	if (!w->has_workgroup)
		return;
	if (!g->has_range || is_before(w->workgroup, g->first_workgroup))
		memcpy(g->first_workgroup, w->workgroup, sizeof(w->workgroup));
	if (!g->has_range || is_before(g->last_workgroup, w->workgroup))
		memcpy(g->last_workgroup, w->workgroup, sizeof(w->workgroup));
	g->has_range = true;
}

/* The counters of one group.  They are allocated once and serve one group after the other. */
struct tally {
	/* For each leader and site, the last group, plus 1, that it was counted for. */
	uint32_t *leaders, *sites;
	/* How many waves have so many active lanes; all are zero between two groups. */
	uint32_t lanes[LANES_MAX + 1];
};

/* Take the lower median of the active lanes, and set the counters of lanes back to zero. */
static uint32_t take_median(struct tally *t, const struct group *g)
{
	uint32_t below = 0, median = g->lanes_min;

	while (below + t->lanes[median] <= (g->waves - 1) / 2)
		below += t->lanes[median++];
	memset(&t->lanes[g->lanes_min], 0, (g->lanes_max - g->lanes_min + 1) * sizeof(t->lanes[0]));
	return median;
}

static void sum_up(struct group *g, uint32_t number, const struct wave *waves,
		   const uint32_t *order, struct tally *t)
{
	g->lanes_min = LANES_MAX;
	for (uint32_t i = 0; i < g->waves; i++) {
		const struct wave *w = &waves[order[i]];
		uint32_t active = w->lanes < LANES_MAX ? w->lanes : LANES_MAX;

		t->lanes[active]++;
		if (active < g->lanes_min)
			g->lanes_min = active;
		if (active > g->lanes_max)
			g->lanes_max = active;
		if (t->leaders[w->leader] != number + 1) {
			t->leaders[w->leader] = number + 1;
			g->workgroups++;
			add_workgroup(g, w);
		}
		if (t->sites[w->site] != number + 1) {
			t->sites[w->site] = number + 1;
			g->sites++;
		}
	}
	g->lanes_median = take_median(t, g);
}

/* ------------------------------------------------------------------ in which order ----------- */

/* A sort of these moves a third of the bytes that a sort of the groups would move. */
struct rank {
	uint64_t first; /* Smaller for faulting groups; among those, smaller for larger groups. */
	uint64_t pc;
	const struct group *group;
};

static int compare(const void *x, const void *y)
{
	const struct rank *r = x, *s = y;
	const struct group *a = r->group, *b = s->group;

	if (r->first != s->first)
		return r->first < s->first ? -1 : 1;
	if (r->pc != s->pc)
		return r->pc < s->pc ? -1 : 1;
	/* The rest serves only to make the same document of the same waves, always. */
	if (a->gpu_id != b->gpu_id)
		return a->gpu_id < b->gpu_id ? -1 : 1;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	if (a->reasons != b->reasons)
		return a->reasons < b->reasons ? -1 : 1;
	if (a->exception != b->exception)
		return strcmp(a->exception ? a->exception : "", b->exception ? b->exception : "");
	return a->representative < b->representative ? -1 : a->representative > b->representative;
}

/* Move each group to its position in place: a second list's pages cost more than the swaps. */
static void permute(struct group *groups, uint32_t *position, size_t n)
{
	for (size_t i = 0; i < n; i++)
		while (position[i] != i) {
			uint32_t to = position[i];
			struct group displaced = groups[to];

			groups[to] = groups[i];
			groups[i] = displaced;
			position[i] = position[to];
			position[to] = to;
		}
}

/* @param of  The group of each wave; follows the groups to their new positions. */
static int sort(struct group *groups, size_t n, uint32_t *of, size_t n_waves)
{
	auto_free uint32_t *position = malloc((n + 1) * sizeof(*position));
	auto_free struct rank *ranks = malloc((n + 1) * sizeof(*ranks));

	if (!position || !ranks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ranks[i] = (struct rank){
			.first = (uint64_t)!(groups[i].reasons & STOP_REASONS_FAULT) << 32 |
				 (UINT32_MAX - groups[i].waves),
			.pc = groups[i].pc,
			.group = &groups[i],
		};
	qsort(ranks, n, sizeof(*ranks), compare);
	for (size_t i = 0; i < n; i++)
		position[ranks[i].group - groups] = (uint32_t)i;
	for (size_t i = 0; i < n_waves; i++)
		of[i] = position[of[i]];
	permute(groups, position, n);
	return 0;
}

static int collect(struct table *t, const struct wave *waves, size_t n, uint32_t *of)
{
	for (size_t i = 0; i < n; i++) {
		int64_t g = find_group(t, &waves[i], (uint32_t)i);

		if (g < 0)
			return (int)g;
		t->groups[g].waves++;
		of[i] = (uint32_t)g;
	}
	return 0;
}

int group_waves(const struct wave *waves, size_t n, struct group **ret, size_t *ret_n,
		uint32_t **ret_of)
{
	struct table t = { 0 };
	struct tally tally = { 0 };
	auto_free uint32_t *slots = NULL, *of = NULL, *order = NULL, *starts = NULL;
	auto_free uint32_t *leaders = NULL, *sites = NULL;
	auto_free struct group *groups = NULL;
	int r;

	if (n > UINT32_MAX / 4)
		return -EFBIG;
	r = table_init(&t, n);
	slots = t.slots;
	groups = t.groups;
	of = malloc((n + 1) * sizeof(*of));
	order = malloc((n + 1) * sizeof(*order));
	/* There are no more sites than waves, and a leader is the position of a wave. */
	tally.leaders = leaders = calloc(n + 1, sizeof(*leaders));
	tally.sites = sites = calloc(n + 1, sizeof(*sites));
	if (r < 0 || !of || !order || !leaders || !sites)
		return -ENOMEM;
	r = collect(&t, waves, n, of);
	groups = t.groups;
	starts = malloc((t.n + 1) * sizeof(*starts));
	if (r < 0 || !starts)
		return -ENOMEM;
	sort_by_group(of, n, groups, t.n, starts, order);
	for (size_t g = 0; g < t.n; g++)
		sum_up(&groups[g], (uint32_t)g, waves, order + starts[g], &tally);
	if (sort(groups, t.n, of, n) < 0)
		return -ENOMEM;
	*ret = TAKE_PTR(groups);
	*ret_n = t.n;
	*ret_of = TAKE_PTR(of);
	return 0;
}
