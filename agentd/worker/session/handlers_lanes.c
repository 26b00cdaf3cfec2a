/* SPDX-License-Identifier: MIT */
/* wave.lanes: what each lane works on and where it is, and values of expressions in each. */
#include <errno.h>
#include <string.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/value/evaluate.h"
#include "base/bit_list.h"

/* Most columns; the schema has the same. */
#define COLUMNS_MAX 16u

/* One call. */
struct table {
	struct value_request k;
	const struct rpc_wave_lanes_params *p;
	struct values_expression *parsed[COLUMNS_MAX];
	struct rpc_lane_value *values[COLUMNS_MAX];
	size_t n_values[COLUMNS_MAX];
	struct value_outcome outcome; /* Of the last column. */
	size_t column;		      /* The last one. */
	struct rpc_wave_lanes_result *ret;
};

/* ------------------------------------------------------------------ columns ------------------ */

static int refuse_column(size_t column, const struct values_error *error, bool no_names, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "params.columns: the expression at position %zu: column %u: %s%s", column + 1, error->column,
			     error->text, no_names ? HANDLERS_NO_NAMES : "");
}

static int parse_columns(struct table *t, struct agent_err *err)
{
	for (size_t i = 0; i < t->p->n_columns; i++) {
		struct values_error error;
		int r = values_expression_parse(t->p->columns[i], &t->parsed[i], &error);

		if (r == -EINVAL)
			return refuse_column(i, &error, false, err);
		if (r < 0)
			return agent_err_no_memory(err, NULL);
	}
	return 0;
}

/* What an expression is said to be is what it is in the lane that is looked at. */
static int fill_column(struct table *t, struct value_frame *f, struct value_lanes *lanes)
{
	struct rpc_lane_column *to = &t->ret->columns[t->column];
	size_t i = t->column;
	int r;

	to->expression = t->p->columns[i];
	to->type = "";
	r = value_evaluate(f, lanes, t->parsed[i], to->expression, &t->outcome);
	if (r < 0 || t->outcome.invalid)
		return r;
	to->type = t->outcome.type;
	return value_evaluate_lanes(lanes, t->parsed[i], to->expression, &t->values[i], &t->n_values[i]);
}

static int fill_columns(void *context, struct value_frame *f)
{
	struct table *t = context;
	struct value_lanes lanes;
	int r = 0;

	value_lanes_init(&lanes, f);
	for (t->column = 0; r == 0 && t->column < t->p->n_columns; t->column++) {
		r = fill_column(t, f, &lanes);
		if (t->outcome.invalid)
			break;
	}
	value_lanes_deinit(&lanes);
	return r;
}

/* ------------------------------------------------------------------ rows --------------------- */

static const struct rpc_work_item *item_of(const struct rpc_wave_registers *r, uint32_t lane)
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].lane == lane)
			return &r->work_items[i];
	return NULL;
}

static const struct rpc_lane_value *value_of(const struct rpc_lane_value *list, size_t n, uint32_t lane)
{
	uint64_t lanes;

	for (size_t i = 0; i < n; i++)
		if (bit_list_parse(list[i].lanes, &lanes) == 0 && lanes >> lane & 1)
			return &list[i];
	return NULL;
}

static int fill_values(struct table *t, uint32_t lane, struct rpc_wave_lane *to)
{
	to->values = rpc_arena_array(t->k.arena, t->p->n_columns + 1, sizeof(*to->values));
	if (!to->values)
		return -ENOMEM;
	for (size_t i = 0; i < t->p->n_columns; i++) {
		const struct rpc_lane_value *v = value_of(t->values[i], t->n_values[i], lane);

		to->values[to->n_values++] = v ? *v : (struct rpc_lane_value){
			.lanes = "", .state = RPC_VALUE_STATE_UNAVAILABLE, .reason = VALUE_NO_TIME };
	}
	return 0;
}

static int fill_row(struct table *t, uint32_t lane, struct rpc_wave_lane *to)
{
	const struct rpc_wave_registers *r = &t->k.registers;
	const struct rpc_work_item *item = item_of(r, lane);
	const struct rpc_wave_part *part = value_request_part(&t->k, lane);

	*to = (struct rpc_wave_lane){ .lane = lane, .active = r->wave.exec >> lane & 1, .pc = r->wave.pc };
	if (part) {
		to->has_part = true;
		to->part = (uint32_t)(part - r->wave.parts);
	}
	if (item) {
		to->has_in_group = to->has_global = true;
		to->in_group = item->in_group;
		to->n_in_group = item->n_in_group;
		to->global = item->global;
		to->n_global = item->n_global;
		to->exception = item->exception;
		to->pc = item->has_pc ? item->pc : to->pc;
	}
	return fill_values(t, lane, to);
}

static int fill_rows(struct table *t)
{
	struct rpc_wave_lane *list = rpc_arena_array(t->k.arena, VALUE_LANES_MAX, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	t->ret->lanes = list;
	for (uint64_t left = t->k.lanes; r == 0 && left; left &= left - 1)
		r = fill_row(t, (uint32_t)__builtin_ctzll(left), &list[t->ret->n_lanes++]);
	return r;
}

/* ------------------------------------------------------------------ call --------------------- */

static int fill(struct table *t, struct agent_err *err)
{
	struct value_request *k = &t->k;
	bool unknown = false;
	int r = handlers_value_begin(k, t->p->lanes ? t->p->lanes : "all", err);

	if (r == 0 && t->p->n_columns)
		r = handlers_value_frame(k, fill_columns, t, &unknown, err);
	if (r == 0 && t->outcome.invalid)
		r = refuse_column(t->column, &t->outcome.error, unknown, err);
	if (r == 0 && fill_rows(t) < 0)
		r = agent_err_no_memory(err, NULL);
	if (r == 0)
		value_request_end(k);
	return r;
}

static int make_table(struct table *t, struct agent_err *err)
{
	struct rpc_wave_lanes_result *ret = t->ret;
	struct value_request *k = &t->k;
	int r;

	ret->columns = rpc_arena_array(k->arena, COLUMNS_MAX, sizeof(*ret->columns));
	if (!ret->columns)
		return agent_err_no_memory(err, NULL);
	ret->n_columns = t->p->n_columns;
	r = fill(t, err);
	value_request_deinit(k);
	if (r < 0)
		return r;
	ret->wave = k->registers.wave;
	ret->lane = k->lane;
	ret->missing = k->missing;
	ret->n_missing = k->n_missing;
	ret->complete = !k->n_missing;
	ret->stopped_us = k->stopped_us;
	return rpc_arena_error(k->arena) ? agent_err_no_memory(err, NULL) : 0;
}

int handlers_wave_lanes(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_wave_lanes_params *params, struct rpc_wave_lanes_result *ret,
			struct agent_err *err)
{
	struct table t = { .p = params, .ret = ret };
	int r;

	handlers_value_request(ctx, arena, &params->wave, params->has_max_stop_ms, params->max_stop_ms, &t.k);
	t.k.has_lane = params->has_lane;
	t.k.lane = params->lane;
	t.k.frame = params->frame;
	t.k.no_values = !params->n_columns;
	r = parse_columns(&t, err);
	if (r == 0)
		r = make_table(&t, err);
	for (size_t i = 0; i < params->n_columns; i++)
		values_expression_destroy(t.parsed[i]);
	return r;
}
