/* SPDX-License-Identifier: MIT */
/*
 * References: the numbers by which an editor names frames, scopes and what is in these.  Editors keep
 * numbers of 31 bits for as long as they like, so none is given twice: a scope of a thread gets the
 * next ones when the first of its references is handed out, and each value that can be opened gets one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dap/values/values.h"

/* Most values of one snapshot that can be opened; those behind them are shown all the same. */
#define NODES_MAX 16384u

static uint32_t numbers_of(enum dap_scope scope)
{
	switch (scope) {
	case DAP_SCOPE_FRAME:
	case DAP_SCOPE_WAVE:
	case DAP_SCOPE_ARGUMENTS:
	case DAP_SCOPE_LOCALS:
	case DAP_SCOPE_STATICS:
	case DAP_SCOPE_BUILT_INS:
	case DAP_SCOPE_ALL_LANES:
	case DAP_SCOPE_VECTOR_CHUNK:
	case DAP_SCOPE_VECTOR_LANES:
	case DAP_SCOPE_ACC_CHUNK:
	case DAP_SCOPE_ACC_LANES:
	case DAP_SCOPE_LDS_CHUNK:
		return DAP_INDEXES;
	default:
		return 1;
	}
}

uint32_t dap_ref_within(struct dap *d, const struct dap_ref *of, enum dap_scope scope,
			uint32_t index)
{
	uint32_t *first = &of->refs->first[of->thread][scope], n = numbers_of(scope);

	if (index >= n || (!*first && d->n_refs > INT32_MAX - n))
		return 0;
	if (!*first) {
		*first = d->n_refs + 1;
		d->n_refs += n;
	}
	return *first + index;
}

static void free_nodes(struct dap_refs *refs)
{
	for (size_t i = 0; i < refs->n_nodes; i++)
		free(refs->nodes[i].text);
	free(refs->nodes);
	refs->nodes = NULL;
	refs->n_nodes = refs->nodes_room = 0;
}

void dap_refs_renew(struct dap *d)
{
	/* What an editor still holds is from the last two: numbers of ages ago may be given again. */
	if (d->n_refs > INT32_MAX / 2)
		d->n_refs = 0;
	free_nodes(&d->refs_before);
	d->refs_before = d->refs;
	d->refs = (struct dap_refs){ .generation = d->refs_before.generation + 1 };
}

void dap_refs_deinit(struct dap *d)
{
	free_nodes(&d->refs_before);
	free_nodes(&d->refs);
}

struct dap_ref dap_ref_focus(struct dap *d)
{
	struct dap_ref ref = { .scope = DAP_SCOPE_FRAME, .thread = d->focus, .refs = &d->refs,
			       .snap = d->snap, .lane = DAP_LANE_ANY };

	if (d->focus < d->snap->n_threads)
		ref.lane = d->snap->threads[d->focus].lane;
	return ref;
}

/* ------------------------------------------------------------------ values ------------------- */

static bool is_same_node(const struct dap_node *a, const struct dap_node *b)
{
	return a->hash == b->hash && a->thread == b->thread && a->frame == b->frame &&
	       a->lane == b->lane && a->queue_id == b->queue_id && a->unit == b->unit &&
	       a->index == b->index && a->kind == b->kind && a->first == b->first &&
	       !strcmp(a->text, b->text);
}

static uint32_t hash_of(const char *text)
{
	uint32_t hash = 5381;

	while (*text)
		hash = hash * 33 + (unsigned char)*text++;
	return hash;
}

/* Make room for one more; false when there is none. */
static bool reserve(struct dap_refs *refs)
{
	size_t room = refs->nodes_room ? refs->nodes_room * 2 : 64;
	struct dap_node *list;

	if (refs->n_nodes < refs->nodes_room)
		return true;
	list = room <= NODES_MAX ? realloc(refs->nodes, room * sizeof(*list)) : NULL;
	if (!list)
		return false;
	refs->nodes = list;
	refs->nodes_room = room;
	return true;
}

uint32_t dap_node_ref(struct dap *d, const struct dap_ref *of, enum dap_node_kind kind,
		      const char *text, uint32_t first)
{
	const struct rpc_wave_name *wave = &of->snap->threads[of->thread].wave;
	struct dap_refs *refs = of->refs;
	struct dap_node node = { .kind = kind, .thread = of->thread, .frame = of->index,
				 .lane = of->lane, .queue_id = wave->queue_id, .unit = wave->unit,
				 .index = wave->index, .first = first, .text = (char *)text,
				 .hash = hash_of(text) };

	/* What was opened before keeps its number, and editors keep it open. */
	for (size_t i = 0; i < refs->n_nodes; i++)
		if (is_same_node(&refs->nodes[i], &node))
			return refs->nodes[i].number;
	if (d->n_refs == INT32_MAX || !reserve(refs))
		return 0;
	node.text = strdup(text);
	if (!node.text)
		return 0;
	node.number = ++d->n_refs;
	refs->nodes[refs->n_nodes++] = node;
	return node.number;
}

/* Find the value that a number was given to. */
static bool find_node(struct dap_refs *refs, struct dap_snapshot *snap, uint32_t n,
		      struct dap_ref *ret)
{
	for (size_t i = 0; i < refs->n_nodes; i++) {
		const struct dap_node *node = &refs->nodes[i];
		const struct rpc_wave_name *wave;

		if (node->number != n || node->thread >= snap->n_threads)
			continue;
		wave = &snap->threads[node->thread].wave;
		/* Another wave may have been chosen for the thread since. */
		if (wave->queue_id != node->queue_id || wave->unit != node->unit ||
		    wave->index != node->index)
			return false;
		*ret = (struct dap_ref){ .scope = DAP_SCOPE_VALUE, .thread = node->thread,
					 .index = (uint32_t)i, .lane = node->lane, .refs = refs,
					 .snap = snap };
		return true;
	}
	return false;
}

/* ------------------------------------------------------------------ numbers ------------------ */

/* Find what a number was given to; false if it is none of these references. */
static bool find_ref(struct dap_refs *refs, struct dap_snapshot *snap, uint32_t n,
		     struct dap_ref *ret)
{
	for (uint32_t t = 0; snap && t < snap->n_threads; t++)
		for (enum dap_scope s = 0; s < DAP_SCOPE_COUNT; s++) {
			uint32_t first = refs->first[t][s];

			if (!first || n < first || n - first >= numbers_of(s))
				continue;
			*ret = (struct dap_ref){ .scope = s, .thread = t, .index = n - first,
						 .lane = snap->threads[t].lane, .refs = refs,
						 .snap = snap };
			return true;
		}
	return snap && find_node(refs, snap, n, ret);
}

int dap_ref_parse(struct dap *d, struct dap_json v, struct dap_ref *ret, struct agent_err *err)
{
	int64_t n;

	if (!dap_json_i64(v, &n) || n <= 0 || n > INT32_MAX)
		return dap_invalid(err, "a reference must be a number that an answer held");
	if (find_ref(&d->refs, d->snap, (uint32_t)n, ret) ||
	    find_ref(&d->refs_before, d->before, (uint32_t)n, ret))
		return 0;
	if (dap_host_is_frame(d, v))
		return dap_invalid(err, "this thread runs on a processor: it has no waves");
	return dap_invalid(err, "reference %" PRId64 " is out of date", n);
}

int dap_frame_arg(struct dap *d, struct dap_json args, struct dap_ref *ret, struct agent_err *err)
{
	int r = dap_ref_parse(d, dap_json_get(args, "frameId"), ret, err);

	if (r == 0 && ret->scope != DAP_SCOPE_FRAME)
		r = dap_invalid(err, "frameId: not the id of a frame");
	return r;
}
