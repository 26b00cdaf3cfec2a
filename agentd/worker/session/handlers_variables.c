/* SPDX-License-Identifier: MIT */
/* wave.variables: what can be seen from where a lane is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/value/built_in.h"
#include "agentd/worker/value/evaluate.h"
#include "base/cleanup.h"

/* Longest text of a type. */
#define TYPE_TEXT_MAX 1024u
#define VALUE_MAX     65536u

/* One call, in the frame that it is about. */
struct listing {
	struct value_request k;
	const struct rpc_wave_variables_params *p;
	struct rpc_wave_variables_result *ret;
	struct value_frame *f;
	struct value_lanes lanes;
	struct spread *spread; /* NULL: not used yet. */
};

/* ------------------------------------------------------------------ one lane ----------------- */

/* Read the bytes of a place. */
static int read_place(struct listing *l, const struct value_frame *f, const struct values_variable *v,
		      struct values_type *type, const struct values_place *place, struct value_reading *ret)
{
	bool had_pieces = !l->k.memory.out_of_pieces;
	uint64_t size = values_type_size(type);
	struct values_bytes b;

	*ret = (struct value_reading){ .cut = size > VALUE_MAX, .result.type = type };
	size = size < VALUE_MAX ? size : VALUE_MAX;
	ret->result.size = (size_t)size;
	ret->result.bytes = malloc(size + 1);
	ret->result.known = malloc(size + 1);
	if (!ret->result.bytes || !ret->result.known)
		return -ENOMEM;
	l->k.memory.passing = 0;
	values_place_read(place, f->frame, size, ret->result.bytes, ret->result.known, &b);
	value_memory_excuse(&l->k.memory, &b);
	ret->result.lack = b.state;
	ret->state = (enum rpc_value_state)b.state;
	ret->reason = b.reason;
	ret->has_address = b.has_address;
	ret->address = b.address;
	l->k.told.unreadable |= b.has_address;
	if (b.has_address && had_pieces && l->k.memory.out_of_pieces)
		ret->reason = "more memory of the wave was asked for than one request reads";
	if (!value_frame_is_active(f) && b.state == VALUES_OK && v->kind != VALUES_STATIC)
		ret->state = RPC_VALUE_STATE_INACTIVE;
	return 0;
}

static int fill_reading(struct listing *l, const struct values_variable *v, struct values_type *type,
			const struct values_place *place, struct rpc_variable *to)
{
	auto_out struct out where = { 0 };
	struct value_reading r;
	int made = read_place(l, l->f, v, type, place, &r);

	if (made == 0)
		made = value_reading_print(&l->k, l->k.lane, VALUES_NATURAL, &r, &to->value);
	values_result_deinit(&r.result);
	if (made < 0)
		return made;
	to->state = r.state;
	to->reason = r.reason;
	to->has_address = r.has_address;
	to->address = r.address;
	values_place_print(place, l->f->frame, &where);
	if (place->pieces[place->first].kind != VALUES_PIECE_HOLE || place->n > 1)
		to->location = rpc_arena_strdup(l->k.arena, where.data);
	to->members = to->value ? value_members_count(type) : 0;
	to->has_members = to->members;
	return 0;
}

/* ------------------------------------------------------------------ many lanes --------------- */

/* A variable at each of the places that lanes are at. */
struct spread {
	const struct values_variable *v;
	struct values_type *type;
	struct values_locator locators[VALUE_PLACES_MAX];
	bool tried[VALUE_PLACES_MAX], is_seen[VALUE_PLACES_MAX];
	struct values_place place[2], *now, *before; /* Those of this lane and of the one before. */
	const struct value_frame *frame_before;	     /* NULL: its value is not known. */
	struct listing *l;
};

/* @return whether the variable can be seen from where the lane is. */
static bool locate(struct spread *s, struct value_frame *f, size_t place)
{
	const struct values_variable *v;

	if (!s->tried[place]) {
		s->tried[place] = true;
		v = value_lanes_variable(f, s->v);
		s->is_seen[place] = v;
		if (v)
			values_locator_init(&s->locators[place], f->image, f->scope, v, f->frame);
	}
	return s->is_seen[place];
}

/* What lies in memory that lanes share is read once. */
static bool is_repeated(struct listing *l, const struct spread *s, const struct value_frame *f,
			const struct value_groups *g)
{
	bool generic = s->v->kind == VALUES_STATIC ||
		       !(l->k.target->ops->wave_spaces & TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC));

	return s->frame_before && g->n && value_frame_is_active(s->frame_before) == value_frame_is_active(f) &&
	       values_place_is_shared(s->before, s->now, generic);
}

static int read_lane(void *context, uint32_t lane, struct value_groups *g)
{
	struct spread *s = context;
	struct listing *l = s->l;
	struct values_place *now = s->now;
	struct value_reading reading;
	struct value_frame *f;
	const char *reason;
	size_t place;
	int r;

	f = value_lanes_frame(&l->lanes, lane, &place, &reason);
	if (f && !locate(s, f, place))
		reason = f->is_elsewhere ? VALUE_ELSEWHERE : "it cannot be seen from where the lane is";
	if (reason) {
		s->frame_before = NULL;
		return value_groups_add_unknown(g, UINT64_C(1) << lane, reason);
	}
	values_locator_find(&s->locators[place], f->frame, now);
	if (is_repeated(l, s, f, g) && value_groups_repeat(g, lane))
		return 0;
	r = read_place(l, f, s->v, s->type, now, &reading);
	if (r == 0)
		r = value_groups_add(g, lane, &reading);
	values_result_deinit(&reading.result);
	s->now = s->before;
	s->before = now;
	s->frame_before = f;
	return r;
}

static int fill_lanes(struct listing *l, const struct values_variable *v, struct values_type *type,
		      struct rpc_variable *to)
{
	struct spread *s = l->spread ? l->spread : malloc(sizeof(*s));
	int r;

	l->spread = s;
	if (!s)
		return -ENOMEM;
	s->l = l;
	s->v = v;
	s->type = type;
	s->now = &s->place[0];
	s->before = &s->place[1];
	s->frame_before = NULL;
	memset(s->tried, 0, sizeof(s->tried));
	r = value_groups_read(&l->k, VALUES_NATURAL, read_lane, s, &to->lanes, &to->n_lanes);
	to->has_lanes = r == 0;
	return r;
}

/* ------------------------------------------------------------------ all of them -------------- */

static int fill_variable(struct listing *l, const struct values_variable *v, struct rpc_variable *to)
{
	auto_free struct values_place *place = malloc(sizeof(*place));
	struct values_type *type = values_type_of(l->f->types, (Dwarf_Die *)&v->die);
	auto_out struct out text = { .limit = TYPE_TEXT_MAX };
	struct rpc_arena *a = l->k.arena;
	int r;

	if (!place)
		return -ENOMEM;
	to->name = rpc_arena_strdup(a, v->name ? v->name : "");
	to->scope = (enum rpc_variable_scope)v->kind;
	to->block = v->block;
	to->expression = value_frame_is_named(l->f, v) ? to->name : NULL;
	values_type_print(type, &text);
	to->type = rpc_arena_strdup(a, text.data ? text.data : "");
	values_variable_find(l->f->image, l->f->scope, v, l->f->frame, place);
	r = fill_reading(l, v, type, place, to);
	return r == 0 && l->p->lanes ? fill_lanes(l, v, type, to) : r;
}

static bool is_wanted(const struct rpc_wave_variables_params *p, enum rpc_variable_scope scope)
{
	for (size_t i = 0; i < p->n_scopes; i++)
		if (p->scopes[i] == scope)
			return true;
	return !p->has_scopes;
}

/* ------------------------------------------------------------------ built in ----------------- */

static int read_built_in(struct listing *l, enum value_built_in what, uint32_t lane, struct value_reading *ret)
{
	int r;

	*ret = (struct value_reading){ 0 };
	r = value_built_in_read(&l->k, what, lane, l->f->types, &ret->result, &ret->reason);
	ret->state = ret->reason ? RPC_VALUE_STATE_UNAVAILABLE : RPC_VALUE_STATE_OK;
	return r;
}

/* A variable that is built in, in lanes. */
struct built_in_lanes {
	struct listing *l;
	enum value_built_in what;
};

static int read_built_in_lane(void *context, uint32_t lane, struct value_groups *g)
{
	const struct built_in_lanes *b = context;
	struct value_reading reading;
	int r = read_built_in(b->l, b->what, lane, &reading);

	if (r == 0)
		r = value_groups_add(g, lane, &reading);
	values_result_deinit(&reading.result);
	return r;
}

static int fill_built_in(struct listing *l, enum value_built_in what, struct rpc_variable *to)
{
	struct values_type *type = value_built_in_type(what, l->f->types);
	const char *name = value_built_in_name(what);
	auto_out struct out text = { 0 };
	struct value_reading reading;
	int r = read_built_in(l, what, l->k.lane, &reading);

	values_type_print(type, &text);
	to->type = rpc_arena_strdup(l->k.arena, text.data ? text.data : "");
	to->name = name;
	to->scope = RPC_VARIABLE_SCOPE_BUILT_IN;
	to->expression = value_frame_pick(l->f, name) ? NULL : name;
	to->state = reading.state;
	to->reason = reading.reason;
	if (r == 0)
		r = value_reading_print(&l->k, l->k.lane, VALUES_NATURAL, &reading, &to->value);
	values_result_deinit(&reading.result);
	to->members = to->value ? value_members_count(type) : 0;
	to->has_members = to->members;
	if (r == 0 && l->p->lanes)
		r = value_groups_read(&l->k, VALUES_NATURAL, read_built_in_lane, &(struct built_in_lanes){ l, what },
				      &to->lanes, &to->n_lanes);
	to->has_lanes = r == 0 && l->p->lanes;
	return r;
}

static int fill_variables(void *context, struct value_frame *f)
{
	struct listing *l = context;
	const struct values_scope *s = f->scope;
	struct rpc_variable *list = rpc_arena_array(l->k.arena, s->n + VALUE_BUILT_IN_COUNT, sizeof(*list));
	int r = 0;

	if (!list)
		return -ENOMEM;
	l->f = f;
	l->ret->variables = list;
	value_lanes_init(&l->lanes, f);
	for (size_t i = 0; r == 0 && i < s->n && !l->k.target->ended && !value_request_is_late(&l->k); i++)
		if (is_wanted(l->p, (enum rpc_variable_scope)s->items[i].kind))
			r = fill_variable(l, &s->items[i], &list[l->ret->n_variables++]);
	for (unsigned i = 0; r == 0 && i < VALUE_BUILT_IN_COUNT && is_wanted(l->p, RPC_VARIABLE_SCOPE_BUILT_IN); i++)
		if (value_built_in_is_there(&l->k, (enum value_built_in)i))
			r = fill_built_in(l, (enum value_built_in)i, &list[l->ret->n_variables++]);
	value_lanes_deinit(&l->lanes);
	free(l->spread);
	l->spread = NULL;
	return r;
}

static int list_variables(struct listing *l, struct agent_err *err)
{
	struct value_request *k = &l->k;
	bool unknown = false;
	int r = handlers_value_begin(k, l->p->lanes, err);

	if (r == 0)
		r = handlers_value_frame(k, fill_variables, l, &unknown, err);
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
