/* SPDX-License-Identifier: MIT */
/* wave.evaluate: what an expression over the variables of a lane is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/session/handlers.h"
#include "agentd/worker/value/frame.h"
#include "agentd/worker/value/registers.h"
#include "base/cleanup.h"
#include "values/expression/expression.h"

/* What one expression is evaluated in. */
struct evaluation {
	struct value_request k;
	const char *text;
	struct values_expression *parsed;
	struct values_error error;
	struct rpc_wave_evaluate_result *ret;
	struct value_frame *f;
	struct values_call call;
	bool invalid;	     /* The error says why. */
	bool read_failed;    /* The last read of memory, of this address. */
	bool inactive;	     /* Something is of a lane that does not execute. */
	uint64_t address;
	const char *reason;  /* Why a variable is not known. */
};

static int read_operand(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	struct evaluation *e = context;
	int r = value_memory_read(&e->k, e->k.lane, space, address, ret, size);

	e->read_failed = r < 0;
	e->address = address;
	return r;
}

/* The one of the innermost block hides others of its name. */
static const struct values_variable *pick_variable(const struct values_scope *s, const char *name)
{
	const struct values_variable *found = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct values_variable *v = &s->items[i];

		if (v->name && !strcmp(v->name, name) && (!found || v->block > found->block))
			found = v;
	}
	return found;
}

/* A variable that lies in memory as a whole is read when its value is needed. */
static bool is_in_memory(const struct values_place *place, uint64_t size)
{
	const struct values_piece *p = &place->pieces[place->first];

	return place->n == 1 && p->kind == VALUES_PIECE_MEMORY && p->offset % 8 == 0 &&
	       (p->bits == VALUES_REST || p->bits / 8 >= size);
}

static int read_variable(struct evaluation *e, const struct values_place *place, struct values_result *ret)
{
	const struct values_piece *p = &place->pieces[place->first];
	uint64_t size = values_type_size(ret->type);
	struct values_bytes b;

	if (is_in_memory(place, size)) {
		ret->has_address = true;
		ret->space = p->space;
		ret->address = p->number + p->offset / 8;
		return 0;
	}
	if (size > e->call.bytes_left)
		return -EDQUOT;
	e->call.bytes_left -= (uint32_t)size;
	ret->bytes = malloc(size + 1);
	ret->known = malloc(size + 1);
	ret->size = size;
	if (!ret->bytes || !ret->known) {
		values_result_deinit(ret);
		return -ENOMEM;
	}
	values_place_read(place, e->f->frame, size, ret->bytes, ret->known, &b);
	ret->lack = b.state;
	e->reason = b.reason;
	e->k.unreadable |= b.has_address;
	if (b.has_address) {
		e->ret->has_address = true;
		e->ret->address = b.address;
	}
	return 0;
}

static int find_variable(void *context, const char *name, struct values_result *ret)
{
	struct evaluation *e = context;
	const struct values_variable *v = pick_variable(e->f->scope, name);
	auto_free struct values_place *place = v ? calloc(1, sizeof(*place)) : NULL;
	auto_out struct out where = { 0 }, type = { 0 };

	if (!v)
		return -ENOENT;
	if (!place)
		return -ENOMEM;
	if (!e->call.reads_left)
		return -EDQUOT;
	e->call.reads_left--;
	e->inactive |= v->kind != VALUES_STATIC && !e->k.active;
	ret->type = values_type_of(e->f->types, (Dwarf_Die *)&v->die);
	values_variable_find(e->f->image, e->f->scope, v, e->f->frame, place);
	if (!strcmp(name, e->text)) {
		values_type_print(ret->type, &type);
		e->ret->type = rpc_arena_strdup(e->k.arena, type.data ? type.data : "");
		values_place_print(place, e->f->frame, &where);
		if (place->pieces[place->first].kind != VALUES_PIECE_HOLE || place->n > 1)
			e->ret->location = rpc_arena_strdup(e->k.arena, where.data);
	}
	return read_variable(e, place, ret);
}

static int find_register(void *context, const char *name, int64_t lane, struct values_result *ret)
{
	struct evaluation *e = context;
	struct values_frame f = *e->f->frame;
	enum values_file file;
	uint32_t number, words[2] = { 0 };
	bool is_wide, is_own;
	int r = 0;

	if (!value_registers_parse(name, &file, &number) || lane >= (int64_t)f.machine->lanes)
		return -ENOENT;
	is_own = value_registers_are_of_lanes(file);
	is_wide = file == VALUES_FILE_PC || file == VALUES_FILE_EXEC || file == VALUES_FILE_VCC;
	if (lane >= 0 && (!is_own || f.callee))
		return -ENOENT;
	if (lane >= 0)
		f.lane = (uint32_t)lane;
	if (file == VALUES_FILE_PC) {
		words[0] = (uint32_t)e->k.pc;
		words[1] = (uint32_t)(e->k.pc >> 32);
	} else {
		for (uint32_t i = 0; r == 0 && i < 1u + is_wide; i++)
			r = values_frame_register(&f, file, number + i, &words[i]);
	}
	if (r < 0)
		return r == -ENXIO ? -ENOENT : r;
	e->inactive |= is_own && !(e->k.registers.wave.exec >> f.lane & 1);
	ret->type = values_type_named(e->f->types, is_wide ? "unsigned long" : "unsigned int");
	ret->size = is_wide ? 8 : 4;
	ret->bytes = malloc(ret->size);
	if (!ret->bytes)
		return -ENOMEM;
	memcpy(ret->bytes, words, ret->size);
	return 0;
}

/* How much of a result is known. */
static enum values_state state_of(const struct evaluation *e, const struct values_result *v)
{
	size_t n = 0;

	for (size_t i = 0; v->known && i < v->size; i++)
		n += v->known[i] != 0;
	if (v->bytes && (!v->known || n == v->size) && (v->size || v->lack == VALUES_OK))
		return e->inactive ? VALUES_INACTIVE : VALUES_OK;
	if (n)
		return VALUES_PARTIAL;
	return v->lack == VALUES_OK || v->lack == VALUES_PARTIAL ? VALUES_UNAVAILABLE : v->lack;
}

static int fill_result(struct evaluation *e, const struct values_result *v)
{
	struct rpc_wave_evaluate_result *ret = e->ret;
	struct rpc_arena *a = e->k.arena;
	auto_out struct out type = { 0 }, text = { 0 };
	struct values_node node = { 0 };
	enum values_state state = state_of(e, v);

	values_type_print(v->type, &type);
	ret->type = rpc_arena_strdup(a, type.data ? type.data : "");
	ret->state = (enum rpc_value_state)state;
	ret->reason = state == VALUES_OK || state == VALUES_INACTIVE ? NULL : e->reason;
	if (v->has_address && !ret->location)
		ret->location = rpc_arena_printf(a, "%s 0x%llx", values_space_name(v->space),
						 (unsigned long long)v->address);
	if (state == VALUES_OK || state == VALUES_INACTIVE || state == VALUES_PARTIAL) {
		if (values_result_node(e->parsed, v, &e->call, &node) < 0)
			return -ENOMEM;
		values_node_print(&node, &text);
		values_node_deinit(&node);
		ret->value = rpc_arena_strdup(a, text.data ? text.data : "");
	}
	if (e->call.cut)
		value_request_miss(&e->k, "value: it leads to more memory than one request reads");
	return 0;
}

/* Memory that cannot be read is no fault of the expression. */
static void fill_unreadable(struct evaluation *e)
{
	e->ret->state = RPC_VALUE_STATE_UNREADABLE;
	e->ret->reason = rpc_arena_strdup(e->k.arena, e->error.text);
	e->ret->has_address = true;
	e->ret->address = e->address;
	e->k.unreadable = true;
}

static int evaluate(void *context, struct value_frame *f)
{
	struct evaluation *e = context;
	const struct values_names names = { .context = e, .variable = find_variable, .reg = find_register };
	struct values_result v = { 0 };
	int r;

	e->f = f;
	values_call_init(&e->call, read_operand, e);
	r = values_expression_evaluate(e->parsed, e->f->types, &names, &e->call, &v, &e->error);
	if (r == 0) {
		r = fill_result(e, &v);
	} else if (r == -EINVAL && e->read_failed) {
		fill_unreadable(e);
		r = 0;
	} else if (r == -EINVAL) {
		e->invalid = true;
		r = 0;
	}
	values_result_deinit(&v);
	return r;
}

static int refuse_expression(const struct evaluation *e, bool no_names, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "params.expression: column %u: %s%s", e->error.column, e->error.text,
			     no_names ? " (there is no debug information that names variables of this code)" : "");
}

static int evaluate_parsed(struct evaluation *e, struct agent_err *err)
{
	struct value_request *k = &e->k;
	bool unknown = false;
	int r = handlers_find_queue(k->target, k->arena, k->wave, &k->from, err);

	if (r == 0)
		r = value_request_begin(k, err);
	if (r == 0)
		r = value_frame_find(k, HANDLERS_LOOK_UP_MS, evaluate, e, &unknown, err);
	/* Numbers, registers and addresses mean something where no debug information is, too. */
	if (r == 0 && unknown && value_frame_make(k, evaluate, e) < 0)
		r = agent_err_no_memory(err, NULL);
	if (r == 0 && e->invalid)
		r = refuse_expression(e, unknown, err);
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
	struct evaluation e = { .text = params->expression, .ret = ret };
	struct value_request *k = &e.k;
	int r = values_expression_parse(params->expression, &e.parsed, &e.error);

	ret->type = "";
	if (r == -EINVAL)
		return refuse_expression(&e, false, err);
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
