/* SPDX-License-Identifier: MIT */
/* wave.variables: what can be seen from where a lane is. */
#include <errno.h>
#include <stdlib.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/value/evaluate.h"
#include "base/cleanup.h"
#include "values/text/value.h"

/* Longest text of a type. */
#define TYPE_TEXT_MAX 1024u
#define VALUE_MAX     65536u

/* One call, in the frame that it is about. */
struct listing {
	struct value_request k;
	const struct rpc_wave_variables_params *p;
	struct rpc_wave_variables_result *ret;
	struct value_frame *f;
};

/* What pointers lead to, as text. */
static int read_target(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	struct value_request *k = context;

	return value_memory_read(k, k->lane, space, address, ret, size);
}

static void fill_value(struct listing *l, const struct values_bytes *b, const uint8_t *data, const uint8_t *known,
		       size_t size, struct values_type *type, struct rpc_variable *to)
{
	struct values_data d = { .bytes = data, .known = known, .size = size, .lack = b->state };
	struct values_node node = { 0 };
	auto_out struct out text = { 0 };
	struct values_call call;

	values_call_init(&call, read_target, &l->k);
	if (values_node_init(&node, NULL, type, &d, &call) == 0) {
		values_node_print(&node, &text);
		if (!out_error(&text))
			to->value = rpc_arena_strdup(l->k.arena, text.data ? text.data : "");
	}
	values_node_deinit(&node);
}

static void fill_variable(struct listing *l, const struct values_variable *v, struct rpc_variable *to)
{
	auto_free struct values_place *place = calloc(1, sizeof(*place));
	struct values_type *type = values_type_of(l->f->types, (Dwarf_Die *)&v->die);
	const struct values_frame *f = l->f->frame;
	struct rpc_arena *a = l->k.arena;
	uint64_t size = values_type_size(type);
	auto_free uint8_t *data = NULL, *known = NULL;
	auto_out struct out text = { .limit = TYPE_TEXT_MAX }, where = { 0 };
	struct values_bytes b;

	if (size > VALUE_MAX)
		size = VALUE_MAX;
	data = malloc(size + 1);
	known = malloc(size + 1);
	to->name = rpc_arena_strdup(a, v->name ? v->name : "");
	to->scope = (enum rpc_variable_scope)v->kind;
	to->block = v->block;
	to->expression = value_frame_is_named(l->f, v) ? to->name : NULL;
	values_type_print(type, &text);
	to->type = rpc_arena_strdup(a, text.data ? text.data : "");
	if (!place || !data || !known) {
		to->state = RPC_VALUE_STATE_UNAVAILABLE;
		to->reason = "memory ran out";
		return;
	}
	values_variable_find(l->f->image, l->f->scope, v, f, place);
	values_place_read(place, f, size, data, known, &b);
	to->state = (enum rpc_value_state)b.state;
	to->reason = b.reason;
	to->has_address = b.has_address;
	to->address = b.address;
	l->k.unreadable |= b.has_address;
	values_place_print(place, f, &where);
	if (place->pieces[place->first].kind != VALUES_PIECE_HOLE || place->n > 1)
		to->location = rpc_arena_strdup(a, where.data);
	if (b.state != VALUES_OK && b.state != VALUES_PARTIAL)
		return;
	fill_value(l, &b, data, known, size, type, to);
	to->members = value_members_count(type);
	to->has_members = to->members;
	if (!l->k.active && b.state == VALUES_OK && v->kind != VALUES_STATIC)
		to->state = RPC_VALUE_STATE_INACTIVE;
}

static bool is_wanted(const struct rpc_wave_variables_params *p, enum values_kind kind)
{
	for (size_t i = 0; i < p->n_scopes; i++)
		if (p->scopes[i] == (enum rpc_variable_scope)kind)
			return true;
	return !p->has_scopes;
}

static int fill_variables(void *context, struct value_frame *f)
{
	struct listing *l = context;
	const struct values_scope *s = f->scope;
	struct rpc_variable *list = rpc_arena_array(l->k.arena, s->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	l->f = f;
	l->ret->variables = list;
	for (size_t i = 0; i < s->n && !l->k.target->ended && !value_request_is_late(&l->k); i++)
		if (is_wanted(l->p, s->items[i].kind))
			fill_variable(l, &s->items[i], &list[l->ret->n_variables++]);
	return 0;
}

static int list_variables(struct listing *l, struct agent_err *err)
{
	struct value_request *k = &l->k;
	bool unknown;
	int r = handlers_find_queue(k->target, k->arena, k->wave, &k->from, err);

	if (r == 0)
		r = value_request_begin(k, err);
	if (r == 0)
		r = value_frame_find(k, HANDLERS_LOOK_UP_MS, fill_variables, l, &unknown, err);
	if (r == 0)
		value_request_end(k);
	value_request_deinit(k);
	return r;
}

int handlers_wave_variables(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			    const struct rpc_wave_variables_params *params,
			    struct rpc_wave_variables_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct listing l = { .p = params, .ret = ret };
	struct value_request *k = &l.k;
	int r;

	handlers_value_request(s, arena, &params->wave, params->has_max_stop_ms, params->max_stop_ms, k);
	k->has_lane = params->has_lane;
	k->lane = params->lane;
	k->frame = params->frame;
	r = list_variables(&l, err);
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
