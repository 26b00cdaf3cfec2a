/* SPDX-License-Identifier: MIT */
/* Members and elements: each is what its own expression means, so that both say the same. */
#include <errno.h>

#include "agentd/worker/value/evaluate.h"
#include "values/expression/parts.h"

/* Longest text of a type. */
#define TYPE_TEXT_MAX 1024u

uint32_t value_members_count(struct values_type *t)
{
	uint64_t n = values_parts_count(t);

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static const char *keep(struct value_frame *f, const struct out *o)
{
	return rpc_arena_strdup(f->request->arena, o->data ? o->data : "");
}

static void fill_type(struct value_frame *f, struct values_type *t, struct rpc_value_member *to)
{
	auto_out struct out type = { .limit = TYPE_TEXT_MAX };

	values_type_print(t, &type);
	to->type = keep(f, &type);
}

static void fill_outcome(struct value_frame *f, const struct value_outcome *o, struct values_type *t,
			 struct rpc_value_member *to)
{
	if (o->of)
		to->type = o->type;
	else
		fill_type(f, t, to);
	to->state = o->invalid ? RPC_VALUE_STATE_UNAVAILABLE : o->state;
	to->reason = o->invalid ? rpc_arena_strdup(f->request->arena, o->error.text) : o->reason;
	to->value = o->value;
	to->location = o->location;
	to->has_address = o->has_address;
	to->address = o->address;
}

static int fill_value(struct value_frame *f, struct value_lanes *lanes, struct values_type *t,
		      struct rpc_value_member *to)
{
	struct values_expression *parsed = NULL;
	struct value_outcome o;
	struct values_error error;
	int r = values_expression_parse(to->expression, &parsed, &error);

	if (r == 0)
		r = value_evaluate(f, lanes, parsed, to->expression, &o);
	if (r == 0)
		fill_outcome(f, &o, t, to);
	values_expression_destroy(parsed);
	return r;
}

static int fill_member(struct value_frame *f, struct value_lanes *lanes, const struct values_expression *whole,
		       struct values_type *t, uint64_t index, struct rpc_value_member *to)
{
	auto_out struct out name = { 0 }, expression = { 0 };
	struct values_type *type = values_part_type(t, index);
	uint32_t members = value_members_count(type);

	values_part_print_name(whole, t, index, &name);
	to->name = keep(f, &name);
	to->has_members = members;
	to->members = members;
	if (values_part_print_expression(whole, t, index, &expression)) {
		to->expression = keep(f, &expression);
		return to->expression ? fill_value(f, lanes, type, to) : -ENOMEM;
	}
	fill_type(f, type, to);
	to->state = RPC_VALUE_STATE_UNAVAILABLE;
	to->reason = "no expression means it";
	return 0;
}

int value_members_list(struct value_frame *f, struct value_lanes *lanes, const struct values_expression *whole,
		       struct values_type *t, const struct value_members_wanted *what, struct rpc_value_member **ret,
		       size_t *ret_n)
{
	uint64_t n = values_parts_count(t), left = what->first < n ? n - what->first : 0;
	size_t wanted = left < what->max ? (size_t)left : what->max;
	int r = 0;

	*ret_n = 0;
	*ret = rpc_arena_array(f->request->arena, wanted + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	while (r == 0 && *ret_n < wanted && !f->request->target->ended && !value_request_is_late(f->request)) {
		r = fill_member(f, lanes, whole, t, what->first + *ret_n, &(*ret)[*ret_n]);
		++*ret_n;
	}
	return r;
}
