/* SPDX-License-Identifier: MIT */
/* wave.evaluate: what an expression over the variables of a lane is. */
#include <errno.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/value/evaluate.h"

/* One call. */
struct evaluation {
	struct value_request k;
	const struct rpc_wave_evaluate_params *p;
	struct values_expression *parsed;
	struct value_outcome outcome;
	struct value_lanes lanes;
	struct rpc_wave_evaluate_result *ret;
};

static int list_members(struct evaluation *e, struct value_frame *f)
{
	const struct value_members_wanted what = { e->p->first_member, e->p->max_members };
	struct rpc_wave_evaluate_result *ret = e->ret;
	uint32_t n = e->outcome.of ? value_members_count(e->outcome.of) : 0;

	ret->has_members = n;
	ret->members = n;
	ret->has_list = n && e->p->max_members;
	if (!ret->has_list)
		return 0;
	return value_members_list(f, &e->lanes, e->parsed, e->outcome.of, &what, &ret->list, &ret->n_list);
}

static int evaluate(void *context, struct value_frame *f)
{
	struct evaluation *e = context;
	const struct value_outcome *o = &e->outcome;
	struct rpc_wave_evaluate_result *ret = e->ret;
	int r;

	value_lanes_init(&e->lanes, f);
	r = value_evaluate(f, &e->lanes, e->parsed, e->p->expression, &e->outcome);
	if (r < 0 || o->invalid)
		return r;
	ret->type = o->type;
	ret->state = o->state;
	ret->reason = o->reason;
	ret->value = o->value;
	ret->location = o->location;
	ret->has_address = o->has_address;
	ret->address = o->address;
	r = list_members(e, f);
	if (r == 0 && e->p->lanes)
		r = value_evaluate_lanes(&e->lanes, e->parsed, e->p->expression, &ret->lanes, &ret->n_lanes);
	ret->has_lanes = r == 0 && e->p->lanes;
	return r;
}

static int evaluate_in(void *context, struct value_frame *f)
{
	struct evaluation *e = context;
	int r = evaluate(e, f);

	value_lanes_deinit(&e->lanes);
	return r;
}

static int refuse_expression(const struct values_error *error, bool no_names, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "params.expression: column %u: %s%s", error->column, error->text,
			     no_names ? HANDLERS_NO_NAMES : "");
}

static int evaluate_parsed(struct evaluation *e, struct agent_err *err)
{
	struct value_request *k = &e->k;
	bool unknown = false;
	int r = handlers_value_begin(k, e->p->lanes, err);

	if (r == 0)
		r = handlers_value_frame(k, evaluate_in, e, &unknown, err);
	if (r == 0 && e->outcome.invalid)
		r = refuse_expression(&e->outcome.error, unknown, err);
	if (r == 0)
		value_request_end(k);
	value_request_deinit(k);
	return r;
}

int handlers_wave_evaluate(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			   const struct rpc_wave_evaluate_params *params,
			   struct rpc_wave_evaluate_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct evaluation e = { .p = params, .ret = ret };
	struct value_request *k = &e.k;
	struct values_error error;
	int r = values_expression_parse(params->expression, &e.parsed, &error);

	ret->type = "";
	if (r == -EINVAL)
		return refuse_expression(&error, false, err);
	if (r < 0)
		return agent_err_no_memory(err, NULL);
	handlers_value_request(s, arena, &params->wave, params->has_max_stop_ms, params->max_stop_ms, k);
	k->has_lane = params->has_lane;
	k->lane = params->lane;
	k->frame = params->frame;
	r = evaluate_parsed(&e, err);
	values_expression_destroy(e.parsed);
	if (r < 0)
		return r;
	ret->lane = k->lane;
	ret->active = k->active;
	ret->pc = k->pc;
	ret->function = k->function;
	ret->missing = k->missing;
	ret->n_missing = k->n_missing;
	ret->complete = !k->n_missing;
	ret->stopped_us = k->stopped_us;
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}
