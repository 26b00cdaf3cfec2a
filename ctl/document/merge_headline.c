/* SPDX-License-Identifier: MIT */
/* What is wrong with a job, in sentences, from its merged document. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/merge.h"
#include "ctl/document/place.h"
#include "ctl/document/vendor_words.h"
#include "protocol/stop_reason.h"
#include "waits/collective/collective.h"

/* Most ranks that a sentence names; more are given as positions. */
#define NAMES_MAX 3
/* Most faults that are told. */
#define FAULTS_MAX 4

const char *merge_set_names(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *set)
{
	size_t n = merge_set_count(set), named = 0;
	auto_out struct out o = { 0 };

	if (n == set->n && n > 1)
		return "all";
	if (n > NAMES_MAX)
		return merge_set_print(a, set);
	for (size_t i = 0; i < set->n && named < n; i++)
		if (merge_set_has(set, i)) {
			out_fmt(&o, "%s%s", named ? "," : "", s->ranks[i].name);
			named++;
		}
	return o.size && !out_error(&o) ? rpc_arena_strndup(a, o.data, o.size) : NULL;
}

int merge_group_sets(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, struct merge_set **ret)
{
	struct merge_set *sets = rpc_arena_array(a, s->n_groups, sizeof(*sets));
	int r = sets ? 0 : rpc_arena_error(a);

	for (size_t i = 0; r == 0 && i < s->n_groups; i++) {
		r = merge_set_init(a, s->n_ranks, &sets[i]);
		if (r == 0)
			r = s->groups[i].ranks ? merge_set_parse(s->groups[i].ranks, &sets[i]) : -EINVAL;
	}
	if (r == 0)
		*ret = sets;
	return r;
}

/* A group that a fault has stopped, and in which ranks. */
static const char *fault_text(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct rpc_group *g,
			      const struct merge_set *set)
{
	const char *what = place_state(a, g), *ranks = merge_set_names(a, s, set);
	const char *place = place_of_kernel(a, g->has_kernel ? &g->kernel : NULL, g->frames, g->n_frames, g->pc);
	size_t n = merge_set_count(set);

	return rpc_arena_printf(a, "%s: %u %s %s %s, in %s%s%s", what ? what : "?", g->waves,
				vendor_word(s->process.vendor, g->waves == 1 ? "wave" : "waves"),
				g->has_kernel ? "of" : "at", place ? place : "?",
				n > NAMES_MAX && n < set->n ? "ranks " : "", ranks ? ranks : "?",
				n > 1 && n == set->n ? " ranks" : "");
}

/* What limits a statement about ranks: who or what was not seen may be otherwise. */
static const char *unseen(const struct rpc_gpu_snapshot_result *s)
{
	return s->complete ? "" : ", as far as could be seen";
}

/* Of two ranks, how they differ: which of them is right, nobody knows. */
static int none_odd(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
		    bool well, struct merge_line *ret)
{
	const char *differ = NULL;
	int r = s->n_ranks == 2 ? merge_compare_two(a, s, sets, &differ) : 0;

	*ret = (struct merge_line){
		.good = well && !differ && s->n_ranks > 1,
		.text = rpc_arena_printf(a, "%s%s",
					 differ		   ? differ
					 : s->n_ranks == 1 ? "One rank: there is no other to compare it with"
							   : "No rank is odd",
					 unseen(s)),
	};
	return r;
}

static size_t add_faults(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
			 struct merge_line *lines)
{
	size_t n = 0, faults = 0;

	for (size_t i = 0; i < s->n_groups; i++)
		if (stop_reason_is_faulting(&s->groups[i]) && faults++ < FAULTS_MAX)
			lines[n++] = (struct merge_line){ "FAULT", false, fault_text(a, s, &s->groups[i], &sets[i]) };
	/* A row has no room for all names of the ranks: their positions. */
	for (size_t i = 0; i < s->n_exited; i++) {
		const struct rpc_exited_exception *e = &s->exited[i];
		const char *place = place_exited(a, e);

		lines[n++] = (struct merge_line){ "FAULT", false,
						  rpc_arena_printf(a, "%s  %s  (rank %s)", e->exception,
								   place ? place : "?", e->ranks) };
	}
	if (faults > FAULTS_MAX)
		lines[n++] = (struct merge_line){ "", false,
						  rpc_arena_printf(a, "%zu more; see the tree", faults - FAULTS_MAX) };
	return n;
}

/* ------------------------------------------------------------------ collectives -------------- */

/* Most collective operations that are told apart. */
#define COLLECTIVES_MAX 8

/* Ranks by the collective operation that their devices execute. */
struct collectives {
	struct merge_set in; /* Those with waves in any. */
	struct waits_word_of_name names[COLLECTIVES_MAX];
	struct merge_set sets[COLLECTIVES_MAX];
	size_t n;
};

static bool is_collective(const char *mangled, const char *name, struct waits_collective *ret)
{
	return (mangled && waits_collective_read(mangled, ret) == 0) || (name && waits_collective_read(name, ret) == 0);
}

/* Is a group in such an operation?  What it is the device function says, and the kernel does not. */
static bool find_collective(const struct rpc_group *g, struct waits_collective *ret)
{
	for (size_t i = 0; i < g->n_frames; i++)
		if (is_collective(g->frames[i].raw, g->frames[i].function, ret) && ret->is_function)
			return true;
	for (size_t i = 0; i < g->n_callers; i++)
		for (size_t k = 0; k < g->callers[i].n_frames; k++) {
			const struct rpc_frame *f = &g->callers[i].frames[k];

			if (is_collective(f->raw, f->function, ret) && ret->is_function)
				return true;
		}
	return g->has_kernel && is_collective(g->kernel.raw, g->kernel.name, ret);
}

static int add_collective(struct rpc_arena *a, const struct waits_word_of_name *name, const struct merge_set *ranks,
			  struct collectives *c)
{
	size_t i = 0;
	int r = 0;

	while (i < c->n && (c->names[i].size != name->size || memcmp(c->names[i].text, name->text, name->size) != 0))
		i++;
	if (i == COLLECTIVES_MAX)
		return 0;
	if (i == c->n) {
		c->names[i] = *name;
		r = merge_set_init(a, ranks->n, &c->sets[c->n++]);
	}
	if (r == 0)
		merge_set_join(&c->sets[i], ranks);
	return r;
}

static int find_collectives(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
			    struct collectives *ret)
{
	int r = merge_set_init(a, s->n_ranks, &ret->in);

	for (size_t i = 0; r == 0 && i < s->n_groups; i++) {
		struct waits_collective c;

		if (!find_collective(&s->groups[i], &c))
			continue;
		merge_set_join(&ret->in, &sets[i]);
		if (c.is_function && c.operation.text)
			r = add_collective(a, &c.operation, &sets[i], ret);
	}
	return r;
}

/* "ranks 0-5" or "rank0,rank1" */
const char *merge_ranks_text(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *set)
{
	const char *names = merge_set_names(a, s, set);

	return rpc_arena_printf(a, "%s%s", merge_set_count(set) > NAMES_MAX ? "ranks " : "", names ? names : "?");
}

/* Ranks that are in different operations. */
static const char *different_text(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s,
				  const struct collectives *c)
{
	auto_out struct out o = { 0 };

	out_str(&o, "Ranks are in different collective operations: ");
	for (size_t i = 0; i < c->n; i++) {
		const char *ranks = merge_ranks_text(a, s, &c->sets[i]);

		out_fmt(&o, "%s%.*s: %s", i ? "; " : "", (int)c->names[i].size, c->names[i].text, ranks ? ranks : "?");
	}
	out_str(&o, unseen(s));
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

/* Do two operations at least have ranks that are in no other one? */
static bool is_split(const struct collectives *c)
{
	size_t alone = 0;

	for (size_t i = 0; i < c->n; i++) {
		bool found = false;

		for (size_t r = 0; r < c->sets[i].n && !found; r++) {
			found = merge_set_has(&c->sets[i], r);
			for (size_t k = 0; k < c->n && found; k++)
				found = k == i || !merge_set_has(&c->sets[k], r);
		}
		alone += found;
	}
	return alone > 1;
}

/* What ranks do in collective operations, where they do not do the same.  @return whether there is such a line. */
static int add_collectives(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
			   struct merge_line *ret)
{
	struct collectives c = { 0 };
	struct merge_set out;
	int r = find_collectives(a, s, sets, &c);
	size_t n;

	if (r == 0)
		r = merge_set_init(a, s->n_ranks, &out);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->n_ranks; i++)
		if (!merge_set_has(&c.in, i))
			merge_set_add(&out, i);
	n = merge_set_count(&c.in);
	/* All of them are in this one, and in no other. */
	const bool is_named = c.n == 1 && merge_set_count(&c.sets[0]) == n;
	*ret = (struct merge_line){ .tag = "" };
	if (is_split(&c))
		ret->text = different_text(a, s, &c);
	else if (n && n < s->n_ranks)
		ret->text = rpc_arena_printf(a, "In a collective operation%s%.*s%s: %s; in none that is known: %s%s",
					     is_named ? " (" : "", is_named ? (int)c.names[0].size : 0,
					     is_named ? c.names[0].text : "", is_named ? ")" : "",
					     merge_ranks_text(a, s, &c.in), merge_ranks_text(a, s, &out), unseen(s));
	else
		return 0;
	return 1;
}

/* ------------------------------------------------------------------ operations by number ----- */

/*
 * Ranks of one communicator that execute different operations under one number, from what `why` says of each process.
 *
 * A communicator has no name.  Dispatches count as of one when they have the same number of ranks, when each rank is
 * there exactly once, and when the ranks agree on who is beside whom.  A process that is in two communicators of that
 * size is left out with them.  Two communicators of the same ranks still look alike, so that what is said is inferred.
 */

/* Most operations that one sentence tells apart. */
#define OPERATIONS_MAX 8

/* What a process executes of a communicator. */
struct member {
	const struct rpc_collective *of;
	size_t process;
};

static int compare_members(const void *x, const void *y)
{
	const struct member *a = x, *b = y;

	if (a->of->ranks != b->of->ranks)
		return a->of->ranks < b->of->ranks ? -1 : 1;
	if (a->of->number != b->of->number)
		return a->of->number < b->of->number ? -1 : 1;
	if (a->of->rank != b->of->rank)
		return a->of->rank < b->of->rank ? -1 : 1;
	return a->process < b->process ? -1 : a->process > b->process;
}

/*
 * Is a process in another communicator of that size as well?  Then it is not known which of them is
 * that of the others.
 */
static bool is_ambiguous(const struct rpc_rank *process, const struct rpc_collective *c)
{
	for (size_t i = 0; i < process->n_collectives; i++)
		if (process->collectives[i].ranks == c->ranks &&
		    process->collectives[i].communicator != c->communicator)
			return true;
	return false;
}

/* All that tell an operation and its number, in the order of communicators. */
static struct member *list_members(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, size_t *ret_n)
{
	struct member *list;
	size_t n = 0;

	for (size_t i = 0; i < s->n_ranks; i++)
		n += s->ranks[i].n_collectives;
	list = rpc_arena_array(a, n, sizeof(*list));
	*ret_n = 0;
	for (size_t i = 0; list && i < s->n_ranks; i++)
		for (size_t k = 0; k < s->ranks[i].n_collectives; k++) {
			const struct rpc_collective *c = &s->ranks[i].collectives[k];

			if (c->operation && c->has_number && !is_ambiguous(&s->ranks[i], c))
				list[(*ret_n)++] = (struct member){ c, i };
		}
	if (list)
		qsort(list, *ret_n, sizeof(*list), compare_members);
	return list;
}

/* Is each rank there once, beside those that say so too? */
static bool is_communicator(const struct member *list, size_t n)
{
	if (n < 2 || n != list[0].of->ranks)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct rpc_collective *c = list[i].of;

		if (c->rank != i || c->next >= n || c->previous >= n || list[c->next].of->previous != i ||
		    list[c->previous].of->next != i)
			return false;
	}
	return true;
}

static bool is_one_operation(const struct member *list, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (strcmp(list[i].of->operation, list[0].of->operation) != 0)
			return false;
	return true;
}

/* The operations with their ranks; those with the fewest ranks come first. */
struct operations {
	const char *names[OPERATIONS_MAX];
	struct merge_set sets[OPERATIONS_MAX];
	size_t n;
	bool more;
};

static int add_member(struct rpc_arena *a, size_t n_ranks, const struct member *m, struct operations *o)
{
	size_t i = 0;
	int r = 0;

	while (i < o->n && strcmp(o->names[i], m->of->operation) != 0)
		i++;
	if (i == OPERATIONS_MAX) {
		o->more = true;
		return 0;
	}
	if (i == o->n) {
		o->names[i] = m->of->operation;
		r = merge_set_init(a, n_ranks, &o->sets[o->n++]);
	}
	if (r == 0)
		merge_set_add(&o->sets[i], m->process);
	return r;
}

static size_t smallest(const struct operations *o, const bool *told)
{
	size_t best = o->n;

	for (size_t i = 0; i < o->n; i++)
		if (!told[i] && (best == o->n || merge_set_count(&o->sets[i]) < merge_set_count(&o->sets[best])))
			best = i;
	return best;
}

static int say_operations(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s,
			  const struct member *list, size_t n, const char **ret)
{
	auto_out struct out o = { 0 };
	struct operations ops = { 0 };
	bool told[OPERATIONS_MAX] = { false };

	for (size_t i = 0; i < n; i++) {
		int r = add_member(a, s->n_ranks, &list[i], &ops);

		if (r < 0)
			return r;
	}
	out_fmt(&o, "communicator of %zu ranks, operation 0x%llx: ", n, (unsigned long long)list[0].of->number);
	for (size_t i = 0; i < ops.n; i++) {
		size_t at = smallest(&ops, told);
		const char *ranks = merge_ranks_text(a, s, &ops.sets[at]);

		told[at] = true;
		out_fmt(&o, "%s%s %s in %s", i ? ", " : "", ranks ? ranks : "?",
			merge_set_count(&ops.sets[at]) == 1 ? "is" : "are", ops.names[at]);
	}
	out_fmt(&o, "%s  [inferred]", ops.more ? ", others in others" : "");
	*ret = out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
	return *ret ? 0 : rpc_arena_error(a);
}

static int different_operations(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const char **ret)
{
	size_t n;
	struct member *list = list_members(a, s, &n);

	*ret = NULL;
	if (!list)
		return rpc_arena_error(a);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && list[end].of->ranks == list[i].of->ranks &&
				  list[end].of->number == list[i].of->number; end++)
			;
		if (is_communicator(list + i, end - i) && !is_one_operation(list + i, end - i))
			return say_operations(a, s, list + i, end - i, ret);
	}
	return 0;
}

/* ------------------------------------------------------------------ all of it ----------------- */

int merge_headline(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
		   struct merge_line **ret, size_t *ret_n)
{
	struct merge_line *lines = rpc_arena_array(a, FAULTS_MAX + 6 + s->n_exited + s->n_ranks, sizeof(*lines));
	struct merge_waits waits = { 0 };
	const char *differ = NULL;
	size_t n, causes;
	int r = lines ? different_operations(a, s, &differ) : rpc_arena_error(a);

	if (r == 0)
		r = merge_circle(a, s, &waits);
	if (r < 0)
		return r;
	n = add_faults(a, s, sets, lines);
	if (differ)
		lines[n++] = (struct merge_line){ "MAYBE", false, differ };
	if (waits.circle)
		lines[n++] = (struct merge_line){ "MAYBE", false, waits.circle };
	if (waits.awaited)
		lines[n++] = (struct merge_line){ "WAITS", false, waits.awaited };
	causes = n;
	for (size_t i = 0; i < s->n_ranks; i++) {
		const struct rpc_rank *k = &s->ranks[i];

		if (k->odd)
			lines[n++] = (struct merge_line){
				"ODD", false,
				rpc_arena_printf(a, "%s  %s%s  (%s, process %u of %s)", k->name, k->odd, unseen(s),
						 k->comm, k->pid, k->host)
			};
	}
	if (n == causes && !differ && !waits.circle)
		r = none_odd(a, s, sets, !causes, &lines[n++]);
	/* What the names of functions tell is no more than that. */
	if (r == 0 && !differ && !waits.circle)
		r = add_collectives(a, s, sets, &lines[n]);
	if (r > 0)
		n++;
	if (r >= 0)
		r = rpc_arena_error(a);
	if (r < 0)
		return r;
	*ret = lines;
	*ret_n = n;
	return 0;
}
