/* SPDX-License-Identifier: MIT */
/*
 * What the agent told of variables and expressions, kept as long as it is true: an editor asks for the
 * same again with each click, and each question may stop the queues.  What has failed is kept, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "dap/values/values.h"

/* Bytes that one answer may need, and all that are kept together; and how many these may be. */
#define TOLD_BYTES     ((size_t)8 << 20)
#define TOLD_BYTES_ALL ((size_t)16 << 20)
#define TOLD_MAX       512u

/* Most levels that the agent can be asked for. */
#define LEVEL_MAX 1000u

/* What was asked for; the wave as what it stands for in its snapshot. */
struct key {
	uint32_t generation, queue_id, unit, index, lane, frame;
	bool all_lanes;
	uint32_t first, max;
	const char *expression; /* NULL: variables. */
};

struct dap_told {
	struct dap_told *next;
	struct key key;
	struct rpc_arena arena;
	int status;
	struct agent_err err;
	union {
		struct rpc_wave_variables_result variables;
		struct rpc_wave_evaluate_result value;
	};
};

static void destroy(struct dap_told *t)
{
	rpc_arena_deinit(&t->arena);
	free(t);
}

void dap_values_forget(struct dap *d)
{
	while (d->told) {
		struct dap_told *t = d->told;

		d->told = t->next;
		destroy(t);
	}
}

/* Forget what was asked for long ago; what came last stays. */
static void limit(struct dap *d)
{
	struct dap_told **at = &d->told;
	size_t n = 0, bytes = 0;

	for (; *at; at = &(*at)->next) {
		bytes += (*at)->arena.used;
		if (n++ && (n > TOLD_MAX || bytes > TOLD_BYTES_ALL))
			break;
	}
	while (*at) {
		struct dap_told *t = *at;

		*at = t->next;
		destroy(t);
	}
}

static bool is_same(const struct key *a, const struct key *b)
{
	return a->generation == b->generation && a->queue_id == b->queue_id && a->unit == b->unit &&
	       a->index == b->index && a->lane == b->lane && a->frame == b->frame &&
	       a->all_lanes == b->all_lanes && a->first == b->first && a->max == b->max &&
	       !a->expression == !b->expression &&
	       (!a->expression || !strcmp(a->expression, b->expression));
}

/* Find an answer, which becomes the last one. */
static struct dap_told *find(struct dap *d, const struct key *key)
{
	for (struct dap_told **at = &d->told; *at; at = &(*at)->next) {
		struct dap_told *t = *at;

		if (!is_same(&t->key, key))
			continue;
		*at = t->next;
		t->next = d->told;
		d->told = t;
		return t;
	}
	return NULL;
}

static struct key key_of(const struct dap_ref *of)
{
	const struct rpc_wave_name *w = &of->snap->threads[of->thread].wave;

	return (struct key){ .generation = of->refs->generation, .queue_id = w->queue_id,
			     .unit = w->unit, .index = w->index, .lane = of->lane,
			     .frame = of->index };
}

/* ------------------------------------------------------------------ questions ---------------- */

static int ask_variables(struct dap *d, const struct dap_ref *of, struct dap_told *t)
{
	const struct dap_thread *thread = &of->snap->threads[of->thread];
	/* A thread that is a part of its waves stands for the lanes of that. */
	const char *lanes = thread->base_lane == DAP_LANE_ANY ? "all" : "part";
	const struct rpc_wave_variables_params p = {
		.session = d->session, .wave = thread->wave,
		.has_lane = of->lane != DAP_LANE_ANY, .lane = of->lane,
		.lanes = t->key.all_lanes ? lanes : NULL,
		.has_frame = of->index, .frame = of->index,
		.has_max_stop_ms = d->max_stop_ms, .max_stop_ms = d->max_stop_ms,
	};

	return rpc_client_wave_variables(d->client, &p, &t->arena, &t->variables, &t->err);
}

static int ask_value(struct dap *d, const struct dap_ref *of, struct dap_told *t)
{
	const struct rpc_wave_evaluate_params p = {
		.session = d->session, .wave = of->snap->threads[of->thread].wave,
		.expression = t->key.expression,
		.has_lane = of->lane != DAP_LANE_ANY, .lane = of->lane,
		.has_frame = of->index, .frame = of->index,
		.has_first_member = t->key.first, .first_member = t->key.first,
		.has_max_members = t->key.max, .max_members = t->key.max,
		.has_max_stop_ms = d->max_stop_ms, .max_stop_ms = d->max_stop_ms,
	};

	return rpc_client_wave_evaluate(d->client, &p, &t->arena, &t->value, &t->err);
}

/* Whether an answer stays true: a failure of the connection says nothing, nor does a lack of time. */
static bool is_kept(int status, const struct agent_err *err)
{
	return status == 0 || err->code == RPC_ERROR_INVALID_PARAMS ||
	       err->code == RPC_ERROR_UNSUPPORTED || err->code == RPC_ERROR_NO_SUCH_WAVE;
}

/* Ask the agent unless it was asked before.  @return NULL with @p err, also for what has failed. */
static struct dap_told *ask(struct dap *d, const struct dap_ref *of, const struct key *key,
			    struct agent_err *err)
{
	struct dap_told *t = find(d, key);

	if (of->index > LEVEL_MAX) {
		dap_invalid(err, "frameId: variables of so many calls are not known");
		return NULL;
	}
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t) {
			agent_err_no_memory(err, NULL);
			return NULL;
		}
		rpc_arena_init(&t->arena, TOLD_BYTES);
		t->key = *key;
		if (key->expression)
			t->key.expression = rpc_arena_strdup(&t->arena, key->expression);
		if (key->expression && !t->key.expression)
			t->status = agent_err_no_memory(&t->err, NULL);
		else
			t->status = key->expression ? ask_value(d, of, t) : ask_variables(d, of, t);
		t->next = d->told;
		d->told = t;
		limit(d);
	}
	if (t->status == 0)
		return t;
	*err = t->err;
	if (!is_kept(t->status, &t->err)) {
		d->told = t->next;
		destroy(t);
	}
	return NULL;
}

int dap_check_place(const struct dap *d, const struct dap_ref *of, uint64_t pc,
		    struct agent_err *err)
{
	const struct dap_thread *t = &of->snap->threads[of->thread];

	return dap_check_thread(d, t, dap_frame_pc(t, of->index), pc, err);
}

int dap_check_thread(const struct dap *d, const struct dap_thread *t, uint64_t shown, uint64_t pc,
		     struct agent_err *err)
{
	/* What a fault or another client has stopped stands still although queues run. */
	if (dap_is_still(d) || d->held || t->place->state != RPC_WAVE_STATE_RUNNING || pc == shown)
		return 0;
	return agent_err_set(err, RPC_ERROR_FAILED, ESTALE, NULL, "pause it first",
			     "the GPU runs, and this wave is no longer where it is shown");
}

const struct rpc_wave_variables_result *dap_frame_variables(struct dap *d, const struct dap_ref *of,
							    bool all_lanes, struct agent_err *err)
{
	struct key key = key_of(of);
	struct dap_told *t;

	key.all_lanes = all_lanes;
	t = ask(d, of, &key, err);
	if (!t || dap_check_place(d, of, t->variables.pc, err) < 0)
		return NULL;
	return &t->variables;
}

const struct rpc_wave_evaluate_result *dap_frame_value(struct dap *d, const struct dap_ref *of,
						       const struct dap_expression *e,
						       struct agent_err *err)
{
	struct key key = key_of(of);
	struct dap_told *t;

	key.expression = e->text;
	key.first = e->first;
	key.max = e->max;
	t = ask(d, of, &key, err);
	if (!t || dap_check_place(d, of, t->value.pc, err) < 0)
		return NULL;
	return &t->value;
}
