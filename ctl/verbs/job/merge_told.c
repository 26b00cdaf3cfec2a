/* SPDX-License-Identifier: MIT */
#include "ctl/verbs/job/merge_told.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "ctl/nccl/report.h"
#include "ctl/verbs/wait/page.h"

/* How many communicators are shown without --verbose. */
#define SHOWN 4

struct told {
	const struct rpc_nccl_communicator *of;
	const struct rpc_rank *by;
};

/*
 * By communicator.  Who was told of ranks that differ comes first: others may have been told something else, as in a
 * network that fell apart.  Then who was told last, and the first rank.
 */
static int compare(const void *x, const void *y)
{
	const struct told *a = x, *b = y;

	if (a->of->hash != b->of->hash)
		return a->of->hash < b->of->hash ? -1 : 1;
	if ((a->of->odd_count > 0) != (b->of->odd_count > 0))
		return a->of->odd_count > 0 ? -1 : 1;
	if (a->by->time_us != b->by->time_us)
		return a->by->time_us > b->by->time_us ? -1 : 1;
	return a->by < b->by ? -1 : a->by > b->by;
}

/* One for each communicator.  @return NULL: there is no memory. */
static struct told *find(struct ctl *c, const struct rpc_gpu_snapshot_result *s, size_t *ret_n, size_t *ret_left)
{
	struct told *list;
	size_t n = 0, kept = 0;

	*ret_left = 0;
	for (size_t i = 0; i < s->n_ranks; i++) {
		const struct rpc_nccl_told *told = &s->ranks[i].told_by_nccl;

		n += told->n_communicators;
		*ret_left += told->communicators_count > told->n_communicators ?
				     told->communicators_count - told->n_communicators :
				     0;
	}
	list = rpc_arena_array(&c->arena, n, sizeof(*list));
	if (!list)
		return NULL;
	n = 0;
	for (size_t i = 0; i < s->n_ranks; i++)
		for (size_t k = 0; k < s->ranks[i].told_by_nccl.n_communicators; k++)
			list[n++] = (struct told){ &s->ranks[i].told_by_nccl.communicators[k], &s->ranks[i] };
	qsort(list, n, sizeof(*list), compare);
	for (size_t i = 0; i < n; i++)
		if (!i || list[i].of->hash != list[kept - 1].of->hash)
			list[kept++] = list[i];
	*ret_n = kept;
	return list;
}

static void put(struct ctl *c, const struct told *t)
{
	auto_out struct out text = { 0 };

	out_fmt(&text, "%s was told of communicator 0x%" PRIx64 " of %u: ", t->by->name, t->of->hash, t->of->ranks);
	nccl_report_put(&text, t->of);
	why_line(c, "NCCL", text.data, show_name(&c->arena, &rpc_confidence_enum, t->by->told_by_nccl.confidence));
}

/* @param is_odd  Those with ranks that differ, or the others.  @return how many were shown, with those before. */
static size_t put_some(struct ctl *c, const struct told *list, size_t n, bool is_odd, size_t shown)
{
	for (size_t i = 0; i < n && (c->verbose || shown < SHOWN); i++)
		if ((list[i].of->odd_count > 0) == is_odd) {
			put(c, &list[i]);
			shown++;
		}
	return shown;
}

int merge_told_show(struct ctl *c, const struct rpc_gpu_snapshot_result *s)
{
	size_t n, left, shown;
	const struct told *list = find(c, s, &n, &left);

	if (!list)
		return ctl_fail(c, ENOMEM, "what NCCL says");
	shown = put_some(c, list, n, true, 0);
	shown = put_some(c, list, n, false, shown);
	if (n > shown)
		why_line(c, "", rpc_arena_printf(&c->arena, "(%zu more communicator%s of NCCL: --verbose)", n - shown,
						  n - shown == 1 ? "" : "s"),
			  NULL);
	if (left)
		why_line(c, "", rpc_arena_printf(&c->arena, "(%zu more %s in no document: one keeps the first)", left,
						  left == 1 ? "is" : "are"),
			  NULL);
	return 0;
}
