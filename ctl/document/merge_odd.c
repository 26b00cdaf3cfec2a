/* SPDX-License-Identifier: MIT */
/*
 * Which ranks differ from the others, and how.  Ranks are compared by where their waves are, at two
 * levels of detail, and by how many packets their devices have taken.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/merge.h"
#include "ctl/document/place.h"

/* What the search works on. */
struct work {
	struct rpc_arena *arena;
	const struct rpc_gpu_snapshot_result *s;
	const struct merge_set *groups; /* The ranks of each group. */

	/*
	 * Classes of groups that count as one at the present level of detail: the ranks of each,
	 * and one of its groups.
	 */
	struct merge_set *classes;
	const struct rpc_group **of_class; /* One group of each class. */
	size_t n_classes;
};

/* Mix a number into a hash; only equality within one run matters. */
static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

/* ------------------------------------------------------------------ where they are ----------- */

/* The finer level: every group is a class. */
static int by_group(struct work *w)
{
	w->n_classes = w->s->n_groups;
	for (size_t i = 0; i < w->n_classes; i++) {
		w->classes[i] = w->groups[i];
		w->of_class[i] = &w->s->groups[i];
	}
	return 0;
}

/* A group and its key at the coarser level. */
struct named {
	const char *key;
	size_t group;
};

static int compare_named(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	int c = strcmp(a->key, b->key);

	return c ? c : a->group < b->group ? -1 : 1;
}

/*
 * The coarser level: groups of one kernel are one class.  Waves that run are somewhere else in each
 * rank; which kernels they run is the same.
 */
static int by_kernel(struct work *w)
{
	struct named *list = rpc_arena_array(w->arena, w->s->n_groups, sizeof(*list));
	int r = list ? 0 : rpc_arena_error(w->arena);

	for (size_t i = 0; r == 0 && i < w->s->n_groups; i++) {
		list[i] = (struct named){ place_kernel_key(w->arena, &w->s->groups[i]), i };
		r = list[i].key ? 0 : rpc_arena_error(w->arena);
	}
	if (r < 0)
		return r;
	qsort(list, w->s->n_groups, sizeof(*list), compare_named);
	w->n_classes = 0;
	for (size_t i = 0; r == 0 && i < w->s->n_groups; i++) {
		if (!i || strcmp(list[i].key, list[i - 1].key)) {
			w->of_class[w->n_classes] = &w->s->groups[list[i].group];
			r = merge_set_init(w->arena, w->s->n_ranks, &w->classes[w->n_classes++]);
		}
		if (r == 0)
			merge_set_join(&w->classes[w->n_classes - 1], &w->groups[list[i].group]);
	}
	return r;
}

/* A hash of the classes that a rank is in. */
struct signature {
	uint64_t hash;
	size_t rank;
};

static int compare_signatures(const void *x, const void *y)
{
	const struct signature *a = x, *b = y;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return a->rank < b->rank ? -1 : 1;
}

/*
 * Find the first rank of more than half of all that are in the same classes.
 * @return false if there is no such majority.
 */
static bool find_majority(const struct signature *list, size_t n, struct signature *ret)
{
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && list[end].hash == list[i].hash; end++)
			;
		if (end - i > 1 && 2 * (end - i) > n) {
			*ret = list[i];
			return true;
		}
	}
	return false;
}

/* Where a group is, and why it is stopped there. */
static const char *place_and_reason(struct rpc_arena *a, const struct rpc_group *g)
{
	const char *name = place_name(a, g), *reasons = place_reasons(a, g);

	if (!name || !reasons || !reasons[0])
		return name;
	return rpc_arena_printf(a, "%s (%s)", name, reasons);
}

/*
 * Say how a rank differs from a typical one: the first class that it is in and the typical one is
 * not, or else the first that it lacks.
 */
static const char *describe(struct work *w, size_t rank, size_t typical)
{
	size_t only = SIZE_MAX, lacks = SIZE_MAX, at;

	for (size_t i = w->n_classes; i-- > 0;) {
		bool has = merge_set_has(&w->classes[i], rank);

		if (has && !merge_set_has(&w->classes[i], typical))
			only = i;
		else if (!has && merge_set_has(&w->classes[i], typical))
			lacks = i;
	}
	if (!w->s->ranks[rank].waves)
		return "no waves, unlike most";
	at = only != SIZE_MAX ? only : lacks;
	if (at == SIZE_MAX)
		return NULL;
	return rpc_arena_printf(w->arena, "%s at %s, where %zu of %zu are",
				only != SIZE_MAX ? "is" : "is not",
				place_and_reason(w->arena, w->of_class[at]),
				merge_set_count(&w->classes[at]), w->s->n_ranks);
}

/*
 * Compare ranks at the present level.
 * @return 1 (there is a majority, and the ranks that differ from it are named), 0, negative.
 */
static int find_at_level(struct work *w)
{
	size_t n = w->s->n_ranks;
	struct signature *list = rpc_arena_array(w->arena, n, sizeof(*list)), typical;

	if (!list)
		return rpc_arena_error(w->arena);
	for (size_t r = 0; r < n; r++)
		list[r].rank = r;
	for (size_t i = 0; i < w->n_classes; i++)
		for (size_t r = 0; r < n; r++)
			if (merge_set_has(&w->classes[i], r))
				list[r].hash = mix(list[r].hash, i + 1);
	qsort(list, n, sizeof(*list), compare_signatures);
	if (!find_majority(list, n, &typical))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (list[i].hash != typical.hash)
			w->s->ranks[list[i].rank].odd = describe(w, list[i].rank, typical.rank);
	return 1;
}

/* ------------------------------------------------------------------ how far they are --------- */

/* How far a rank is. */
struct distance {
	uint64_t packets;
	size_t rank;
};

static int compare_distances(const void *x, const void *y)
{
	const struct distance *a = x, *b = y;

	if (a->packets != b->packets)
		return a->packets < b->packets ? -1 : 1;
	return a->rank < b->rank ? -1 : 1;
}

/*
 * How many of the sorted ranks are behind the others.  Ranks are looked at a moment after each
 * other, so that running ones differ a little.  Those ranks are behind that a gap separates from
 * the others which is wider than the others are apart.
 */
static size_t count_behind(const struct distance *list, size_t n)
{
	uint64_t widest = 0;
	size_t behind = 0;

	for (size_t i = 1; 2 * i < n; i++)
		if (list[i].packets - list[i - 1].packets > widest) {
			widest = list[i].packets - list[i - 1].packets;
			behind = i;
		}
	return behind && widest > list[n - 1].packets - list[behind].packets ? behind : 0;
}

/* Name the ranks that are behind; a rank may be odd for where it is as well. */
static int find_behind(struct work *w)
{
	struct distance *list = rpc_arena_array(w->arena, w->s->n_ranks, sizeof(*list));
	struct rpc_rank *ranks = w->s->ranks;
	size_t n = 0, behind;

	if (!list)
		return rpc_arena_error(w->arena);
	for (size_t i = 0; i < w->s->n_ranks; i++)
		if (ranks[i].has_packets)
			list[n++] = (struct distance){ ranks[i].packets, i };
	qsort(list, n, sizeof(*list), compare_distances);
	behind = count_behind(list, n);
	for (size_t i = 0; i < behind; i++) {
		struct rpc_rank *r = &ranks[list[i].rank];

		r->odd = rpc_arena_printf(w->arena, "%s%sis at packet %" PRIu64
					  ", the others are at %" PRIu64 " or beyond",
					  r->odd ? r->odd : "", r->odd ? "; " : "",
					  list[i].packets, list[behind].packets);
	}
	return rpc_arena_error(w->arena);
}

/* Have room for classes. */
static int begin(struct work *w)
{
	w->classes = rpc_arena_array(w->arena, w->s->n_groups, sizeof(*w->classes));
	w->of_class = rpc_arena_array(w->arena, w->s->n_groups, sizeof(*w->of_class));
	return w->classes && w->of_class ? 0 : rpc_arena_error(w->arena);
}

int merge_find_odd(struct rpc_arena *a, struct rpc_gpu_snapshot_result *s,
		   const struct merge_set *sets)
{
	static int (*const levels[])(struct work *) = { by_group, by_kernel };
	struct work w = { .arena = a, .s = s, .groups = sets };
	int r = begin(&w);

	/* The coarser level is asked only if the finer one has no majority. */
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(levels); i++) {
		r = levels[i](&w);
		if (r == 0)
			r = find_at_level(&w);
	}
	return r < 0 ? r : find_behind(&w);
}

/* ------------------------------------------------------------------ one beside another -------- */

/* Say where a rank is and the other one is not. */
static const char *where_alone(struct work *w, size_t rank, size_t other)
{
	const struct rpc_rank *r = &w->s->ranks[rank];
	size_t at = 0;

	if (!r->waves)
		return rpc_arena_printf(w->arena, "%s has no waves", r->name);
	while (at < w->n_classes && (!merge_set_has(&w->classes[at], rank) || merge_set_has(&w->classes[at], other)))
		at++;
	if (at == w->n_classes)
		return NULL;
	return rpc_arena_printf(w->arena, "%s is at %s", r->name, place_and_reason(w->arena, w->of_class[at]));
}

int merge_compare_two(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
		      const char **ret_text)
{
	struct work w = { .arena = a, .s = s, .groups = sets };
	const char *first, *second;
	int r = begin(&w);

	if (r == 0)
		r = by_kernel(&w);
	if (r < 0)
		return r;
	first = where_alone(&w, 0, 1);
	second = where_alone(&w, 1, 0);
	*ret_text = NULL;
	/* Without waves they do not differ. */
	if (!s->ranks[0].waves && !s->ranks[1].waves)
		return 0;
	if (first && second)
		*ret_text = rpc_arena_printf(a, "The two ranks differ: %s, %s", first, second);
	else if (first || second)
		*ret_text = rpc_arena_printf(a, "The two ranks differ: %s, %s is not", first ? first : second,
					     s->ranks[first ? 1 : 0].name);
	return rpc_arena_error(a);
}

/* ------------------------------------------------------------------ ranks that are absent ---- */

/* One that has died is not there to be odd. */
bool merge_is_same_job(const struct rpc_process_rank *a, const struct rpc_process_rank *b)
{
	if (!a->has_world_size || !b->has_world_size || a->world_size != b->world_size)
		return false;
	return !a->job == !b->job && (!a->job || !strcmp(a->job, b->job));
}

/* @return how many ranks are absent; 0 also where the ranks do not agree on one job. */
static size_t find(const struct rpc_gpu_snapshot_result *s, struct merge_set *absent)
{
	for (size_t i = 0; i < s->n_ranks; i++) {
		const struct rpc_rank *r = &s->ranks[i];

		/* A number that is there twice is of two jobs without a name. */
		if (!r->has_rank || !merge_is_same_job(&s->ranks[0].rank, &r->rank) || r->rank.rank >= absent->n ||
		    !merge_set_has(absent, r->rank.rank))
			return 0;
		merge_set_remove(absent, r->rank.rank);
	}
	return merge_set_count(absent);
}

const char *merge_absent(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s)
{
	const struct rpc_rank *first = s->n_ranks ? &s->ranks[0] : NULL;
	uint32_t world = first && first->has_rank && first->rank.has_world_size ? first->rank.world_size : 0;
	struct merge_set absent;
	const char *list;
	size_t n;

	if (!world || world > MERGE_RANKS_MAX)
		return "";
	if (merge_set_init(a, world, &absent) < 0)
		return NULL;
	for (size_t i = 0; i < world; i++)
		merge_set_add(&absent, i);
	n = find(s, &absent);
	if (!n)
		return "";
	list = merge_set_print(a, &absent);
	return list ? rpc_arena_printf(a, "%zu of %u ranks %s seen; rank%s %s %s not", world - n, world,
				       world - n == 1 ? "was" : "were", n == 1 ? "" : "s", list,
				       n == 1 ? "was" : "were")
		    : NULL;
}
