/* SPDX-License-Identifier: MIT */
/* What is wrong with a job, in sentences, from its merged document. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/document/merge.h"
#include "ctl/document/place.h"
#include "ctl/document/vendor_words.h"
#include "protocol/stop_reason.h"

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

int merge_headline(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *s, const struct merge_set *sets,
		   struct merge_line **ret, size_t *ret_n)
{
	struct merge_line *lines = rpc_arena_array(a, FAULTS_MAX + 2 + s->n_exited + s->n_ranks, sizeof(*lines));
	size_t n, faults;
	int r = 0;

	if (!lines)
		return rpc_arena_error(a);
	n = faults = add_faults(a, s, sets, lines);
	for (size_t i = 0; i < s->n_ranks; i++) {
		const struct rpc_rank *k = &s->ranks[i];

		if (k->odd)
			lines[n++] = (struct merge_line){
				"ODD", false,
				rpc_arena_printf(a, "%s  %s%s  (%s, process %u of %s)", k->name, k->odd, unseen(s),
						 k->comm, k->pid, k->host)
			};
	}
	if (n == faults)
		r = none_odd(a, s, sets, !faults, &lines[n++]);
	if (r == 0)
		r = rpc_arena_error(a);
	if (r < 0)
		return r;
	*ret = lines;
	*ret_n = n;
	return 0;
}
