/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/groups.h"

#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/target/waves.h"
#include "base/cleanup.h"
#include "base/vec.h"

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

static int add_group(struct table *t, const struct wave *w)
{
	if (vec_reserve(&t->groups, t->n, 1, &t->capacity, sizeof(*t->groups)) < 0)
		return -ENOMEM;
	t->groups[t->n++] = (struct group){ .gpu_id = w->gpu_id, .state = w->state,
					    .reasons = w->reasons, .exception = w->exception,
					    .kernel = w->kernel,
					    .place = w->place };
	return 0;
}

/* Find or make the wave's group.  @return its number, or -ENOMEM. */
static int64_t find_group(struct table *t, const struct wave *w)
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
		if (add_group(t, w) < 0)
			return -ENOMEM;
		t->slots[slot] = (uint32_t)t->n;
	}
	return t->slots[slot] - 1;
}

/* ------------------------------------------------------------------ what is counted ---------- */

/* A part of a wave, or a wave that has none. */
struct spot {
	const struct wave *at;
	uint32_t wave; /* Position of the wave. */
	bool again;    /* Its wave is counted in that group already. */
};

/* What is counted.  Mostly all waves are whole, and then no list of spots is needed. */
struct spots {
	const struct wave *waves;
	struct spot *list; /* NULL: the waves themselves. */
	uint32_t *of;	   /* The group of each. */
	size_t n;
};

static void list_parts(struct spots *s, size_t n_waves)
{
	s->n = 0;
	for (size_t i = 0; i < n_waves; i++) {
		const struct wave *w = &s->waves[i];
		uint32_t parts = wave_n_parts(w);

		if (!parts)
			s->list[s->n++] = (struct spot){ .at = w, .wave = (uint32_t)i };
		for (uint32_t k = 0; k < parts; k++)
			s->list[s->n++] =
				(struct spot){ .at = &w->parts->list[k], .wave = (uint32_t)i };
	}
}

static int make_spots(const struct wave *waves, size_t n, struct spots *ret)
{
	bool apart = false;

	*ret = (struct spots){ .waves = waves, .n = n };
	for (size_t i = 0; i < n; i++) {
		uint32_t parts = wave_n_parts(&waves[i]);

		ret->n += parts ? parts - 1 : 0;
		apart |= waves[i].parts != NULL;
	}
	if (ret->n > UINT32_MAX / 4)
		return -EFBIG;
	ret->of = malloc((ret->n + 1) * sizeof(*ret->of));
	if (!apart)
		return ret->of ? 0 : -ENOMEM;
	ret->list = malloc((ret->n + 1) * sizeof(*ret->list));
	if (!ret->of || !ret->list)
		return -ENOMEM;
	list_parts(ret, n);
	return 0;
}

static void spots_deinit(struct spots *s)
{
	free(s->list);
	free(s->of);
}

static const struct wave *wave_at(const struct spots *s, size_t i)
{
	return s->list ? s->list[i].at : &s->waves[i];
}

static uint32_t position_at(const struct spots *s, size_t i)
{
	return s->list ? s->list[i].wave : (uint32_t)i;
}

static bool is_again(const struct spots *s, size_t i)
{
	return s->list && s->list[i].again;
}

/* The parts of a wave stand one behind the other. */
static bool is_same_wave(const struct spots *s, size_t i, size_t k)
{
	const struct wave *a = wave_at(s, i);

	return a->is_part && a->parts == wave_at(s, k)->parts;
}

static bool was_counted(const struct spots *s, size_t i)
{
	for (size_t k = i; s->list && k-- > 0 && is_same_wave(s, i, k);)
		if (s->of[k] == s->of[i])
			return true;
	return false;
}

static void represent(struct group *g, const struct spots *s, size_t i)
{
	g->representative = position_at(s, i);
	g->pc = wave_at(s, i)->pc;
	g->speaks = wave_speaks(wave_at(s, i));
}

static int collect(struct table *t, struct spots *s)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct wave *w = wave_at(s, i);
		int64_t number = find_group(t, w);
		struct group *g;

		if (number < 0)
			return (int)number;
		g = &t->groups[number];
		s->of[i] = (uint32_t)number;
		if (!g->waves || (!g->speaks && wave_speaks(w)))
			represent(g, s, i);
		if (was_counted(s, i))
			s->list[i].again = true;
		else
			g->waves++;
	}
	return 0;
}

/* ------------------------------------------------------------------ what is in it ------------ */

/*
 * Sort the positions of the spots by group: those of group g are order[starts[g]] and the following
 * ones, groups[g].waves of them.
 */
static void sort_by_group(const struct spots *s, const struct group *groups, size_t n_groups,
			  uint32_t *starts, uint32_t *order)
{
	uint32_t next = 0;

	for (size_t g = 0; g < n_groups; g++) {
		starts[g] = next;
		next += groups[g].waves;
	}
	for (size_t i = 0; i < s->n; i++)
		if (!is_again(s, i))
			order[starts[s->of[i]]++] = (uint32_t)i;
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

static void add_site(struct group *g, uint32_t number, const struct wave *w, struct tally *t)
{
	if (t->sites[w->site] == number + 1)
		return;
	t->sites[w->site] = number + 1;
	g->sites++;
}

/* Add the other parts of a wave that are in the group, too.  @return how many lanes these have. */
static uint32_t add_parts(struct group *g, uint32_t number, const struct spots *s, size_t i,
			  struct tally *t)
{
	const struct wave *first = wave_at(s, i);
	uint32_t lanes = 0, parts = 1;

	for (size_t k = i + 1; k < s->n && is_same_wave(s, i, k); k++) {
		if (s->of[k] != s->of[i])
			continue;
		add_site(g, number, wave_at(s, k), t);
		lanes += wave_at(s, k)->lanes;
		parts++;
	}
	if (parts == first->parts->n)
		return lanes;
	g->parts++;
	if (position_at(s, i) == g->representative) {
		g->has_lane = true;
		g->lane = first->lane;
	}
	return lanes;
}

static void sum_up(struct group *g, uint32_t number, const struct spots *s, const uint32_t *order,
		   struct tally *t)
{
	g->lanes_min = LANES_MAX;
	for (uint32_t i = 0; i < g->waves; i++) {
		const struct wave *w = wave_at(s, order[i]);
		uint32_t lanes = w->lanes;

		add_site(g, number, w, t);
		if (w->is_part)
			lanes += add_parts(g, number, s, order[i], t);
		lanes = lanes < LANES_MAX ? lanes : LANES_MAX;
		t->lanes[lanes]++;
		if (lanes < g->lanes_min)
			g->lanes_min = lanes;
		if (lanes > g->lanes_max)
			g->lanes_max = lanes;
		if (t->leaders[w->leader] != number + 1) {
			t->leaders[w->leader] = number + 1;
			g->workgroups++;
			add_workgroup(g, w);
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

/* The groups of the spots follow the groups to their new positions. */
static int sort(struct group *groups, size_t n, struct spots *s)
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
	for (size_t i = 0; i < s->n; i++)
		s->of[i] = position[s->of[i]];
	permute(groups, position, n);
	return 0;
}

/* ------------------------------------------------------------------ all together ------------- */

/* @return the group of each wave, or of its first part; parts are told theirs. */
static uint32_t *take_of(struct spots *s, size_t n_waves)
{
	uint32_t *of;

	if (!s->list)
		return TAKE_PTR(s->of);
	of = malloc((n_waves + 1) * sizeof(*of));
	for (size_t i = s->n; of && i-- > 0;) {
		const struct spot *spot = &s->list[i];
		const struct wave *w = &s->waves[spot->wave];

		of[spot->wave] = s->of[i];
		if (wave_n_parts(w))
			w->parts->list[spot->at - w->parts->list].group = s->of[i];
	}
	return of;
}

static int count(const struct spots *s, size_t n_waves, struct table *t)
{
	struct tally tally = { 0 };
	auto_free uint32_t *order = malloc((s->n + 1) * sizeof(*order));
	auto_free uint32_t *starts = malloc((t->n + 1) * sizeof(*starts));
	/* There are no more sites than spots, and a leader is the position of a wave. */
	auto_free uint32_t *leaders = calloc(n_waves + 1, sizeof(*leaders));
	auto_free uint32_t *sites = calloc(s->n + 1, sizeof(*sites));

	if (!order || !starts || !leaders || !sites)
		return -ENOMEM;
	tally.leaders = leaders;
	tally.sites = sites;
	sort_by_group(s, t->groups, t->n, starts, order);
	for (size_t g = 0; g < t->n; g++)
		sum_up(&t->groups[g], (uint32_t)g, s, order + starts[g], &tally);
	return 0;
}

static int group_spots(struct spots *s, size_t n_waves, struct group **ret, size_t *ret_n)
{
	struct table t = { 0 };
	int r = table_init(&t, s->n);

	if (r == 0)
		r = collect(&t, s);
	if (r == 0)
		r = count(s, n_waves, &t);
	if (r == 0)
		r = sort(t.groups, t.n, s);
	free(t.slots);
	if (r < 0) {
		free(t.groups);
		return r;
	}
	*ret = t.groups;
	*ret_n = t.n;
	return 0;
}

int group_waves(const struct wave *waves, size_t n, struct group **ret, size_t *ret_n,
		uint32_t **ret_of)
{
	auto_free struct group *groups = NULL;
	struct spots spots = { 0 };
	uint32_t *of = NULL;
	int r = n > UINT32_MAX / 4 ? -EFBIG : make_spots(waves, n, &spots);

	if (r == 0)
		r = group_spots(&spots, n, &groups, ret_n);
	if (r == 0)
		of = take_of(&spots, n);
	spots_deinit(&spots);
	if (r < 0 || !of)
		return r < 0 ? r : -ENOMEM;
	*ret = TAKE_PTR(groups);
	*ret_of = of;
	return 0;
}
