/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/evaluate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/value/built_in.h"
#include "agentd/worker/value/registers.h"
#include "base/cleanup.h"

/* What one expression is evaluated in. */
struct evaluation {
	struct value_frame *f;
	struct value_lanes *lanes; /* NULL: other lanes cannot be asked. */
	const char *text;
	const struct values_expression *parsed;
	struct value_outcome *ret;
	struct values_call call;
	int read_failed; /* Why the last read of memory did, of this address; 0: it did not. */
	bool inactive;	  /* Something is of a lane that does not execute. */
	uint64_t address;
	const char *reason; /* Why a variable is not known. */
};

static int read_operand(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	struct evaluation *e = context;
	int r = value_memory_read(e->f->request, e->f->frame->lane, space, address, ret, size);

	e->read_failed = r;
	e->address = address;
	return r;
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
	e->f->request->memory.passing = 0;
	values_place_read(place, e->f->frame, size, ret->bytes, ret->known, &b);
	value_memory_excuse(&e->f->request->memory, &b);
	ret->lack = b.state;
	e->reason = b.reason;
	e->f->request->told.unreadable |= b.has_address;
	if (b.has_address) {
		e->ret->has_address = true;
		e->ret->address = b.address;
	}
	return 0;
}

/* A variable of the program with its name hides it. */
static int find_built_in(struct evaluation *e, const char *name, struct values_result *ret)
{
	enum value_built_in what = value_built_in_find(name);
	const char *reason;
	int r;

	if (what == VALUE_BUILT_IN_COUNT)
		return -ENOENT;
	r = value_built_in_read(e->f->request, what, e->f->frame->lane, e->f->types, ret, &reason);
	e->reason = reason ? reason : e->reason;
	return r;
}

static int find_variable(void *context, const char *name, struct values_result *ret)
{
	struct evaluation *e = context;
	const struct values_variable *v = value_frame_pick(e->f, name);
	auto_free struct values_place *place = calloc(1, sizeof(*place));
	auto_out struct out where = { 0 }, type = { 0 };
	struct values_variable global;
	int r = v ? 0 : value_frame_find_global(e->f, name, &global);

	if (r == -ENOENT)
		return find_built_in(e, name, ret);
	if (r < 0)
		return r;
	v = v ? v : &global;
	if (!place)
		return -ENOMEM;
	if (!e->call.reads_left)
		return -EDQUOT;
	e->call.reads_left--;
	e->inactive |= v->kind != VALUES_STATIC && !value_frame_is_active(e->f);
	ret->type = values_type_of(e->f->types, (Dwarf_Die *)&v->die);
	values_variable_find(e->f->image, e->f->scope, v, e->f->frame, place);
	if (!strcmp(name, e->text)) {
		values_type_print(ret->type, &type);
		e->ret->type = rpc_arena_strdup(e->f->request->arena, type.data ? type.data : "");
		values_place_print(place, e->f->frame, &where);
		if (place->pieces[place->first].kind != VALUES_PIECE_HOLE || place->n > 1)
			e->ret->location = rpc_arena_strdup(e->f->request->arena, where.data);
	}
	return read_variable(e, place, ret);
}

static int set_words(struct evaluation *e, const uint32_t *words, size_t n, struct values_result *ret)
{
	ret->type = values_type_named(e->f->types, n == 2 ? "unsigned long" : "unsigned int");
	ret->size = n * sizeof(*words);
	ret->bytes = malloc(ret->size);
	if (!ret->bytes)
		return -ENOMEM;
	memcpy(ret->bytes, words, ret->size);
	return 0;
}

static int find_register(void *context, const char *name, int64_t lane, struct values_result *ret)
{
	struct evaluation *e = context;
	struct values_frame f = *e->f->frame;
	enum values_file file;
	uint32_t number, words[2] = { 0 };
	bool is_wide, is_own;
	int r = 0;

	if (!strcmp(name, "lane") && lane < 0) {
		words[0] = f.lane;
		return set_words(e, words, 1, ret);
	}
	if (!value_registers_parse(name, &file, &number) || lane >= (int64_t)f.machine->lanes)
		return -ENOENT;
	is_own = value_registers_are_of_lanes(file);
	is_wide = file == VALUES_FILE_PC || file == VALUES_FILE_EXEC || file == VALUES_FILE_VCC;
	if (lane >= 0 && (!is_own || f.callee))
		return -ENOENT;
	if (lane >= 0)
		f.lane = (uint32_t)lane;
	if (file == VALUES_FILE_PC) {
		words[0] = (uint32_t)e->f->address;
		words[1] = (uint32_t)(e->f->address >> 32);
	} else {
		for (uint32_t i = 0; r == 0 && i < 1u + is_wide; i++)
			r = values_frame_register(&f, file, number + i, &words[i]);
	}
	if (r < 0)
		return r == -ENXIO ? -ENOENT : r;
	e->inactive |= is_own && !(e->f->request->registers.wave.exec >> f.lane & 1);
	return set_words(e, words, 1u + is_wide, ret);
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

static void fill_result(struct evaluation *e, const struct values_result *v)
{
	struct value_outcome *ret = e->ret;
	struct rpc_arena *a = e->f->request->arena;
	auto_out struct out type = { 0 };
	enum values_state state = state_of(e, v);

	values_type_print(v->type, &type);
	ret->type = rpc_arena_strdup(a, type.data ? type.data : "");
	ret->of = v->type;
	ret->state = (enum rpc_value_state)state;
	ret->reason = state == VALUES_OK || state == VALUES_INACTIVE ? NULL : e->reason;
	if (v->cut && state == VALUES_PARTIAL)
		ret->reason = "it is too large to be read as a whole";
	if (v->has_address && !ret->location)
		ret->location = rpc_arena_printf(a, "%s 0x%llx", values_space_name(v->space),
						 (unsigned long long)v->address);
}

/* Memory that cannot be read is no fault of the expression. */
static void fill_unreadable(struct evaluation *e)
{
	const char *passing = value_memory_passing(e->read_failed);

	if (passing) {
		e->ret->state = RPC_VALUE_STATE_UNAVAILABLE;
		e->ret->reason = passing;
		return;
	}
	e->ret->state = RPC_VALUE_STATE_UNREADABLE;
	e->ret->reason = rpc_arena_strdup(e->f->request->arena, e->ret->error.text);
	e->ret->has_address = true;
	e->ret->address = e->address;
	e->f->request->told.unreadable = true;
}

/* Look at another lane for a part of the expression. */
static int select_lane(void *context, uint64_t lane, uint32_t *ret_before)
{
	struct evaluation *e = context;
	struct value_frame *f;
	const char *ignored;
	size_t place;

	f = e->lanes && lane < VALUE_LANES_MAX ? value_lanes_frame(e->lanes, (uint32_t)lane, &place, &ignored) : NULL;
	if (!f)
		return -ENOENT;
	*ret_before = e->f->frame->lane;
	e->f = f;
	return 0;
}

/* As value_evaluate(), with the bytes in place of a text: the result of @p ret_reading is released in any case. */
static int evaluate(struct value_frame *f, struct value_lanes *lanes, const struct values_expression *parsed,
		    const char *text, struct value_outcome *ret, struct value_reading *ret_reading)
{
	struct evaluation e = { .f = f, .lanes = lanes, .text = text, .parsed = parsed, .ret = ret };
	const struct values_names names = { .context = &e, .variable = find_variable, .reg = find_register,
					    .lane = select_lane };
	struct values_result *v = &ret_reading->result;
	int r;

	*ret = (struct value_outcome){ .type = "" };
	*ret_reading = (struct value_reading){ 0 };
	values_call_init(&e.call, read_operand, &e);
	r = values_expression_evaluate(parsed, f->types, &names, &e.call, v, &ret->error);
	f->request->told.cut |= e.call.cut;
	if (r == 0) {
		fill_result(&e, v);
	} else if (r == -EINVAL && e.read_failed) {
		fill_unreadable(&e);
		r = 0;
	} else if (r == -EINVAL) {
		ret->invalid = true;
		r = 0;
	}
	ret_reading->state = ret->state;
	ret_reading->reason = ret->reason;
	ret_reading->has_address = ret->has_address;
	ret_reading->address = ret->address;
	ret_reading->cut = v->cut;
	return r;
}

int value_evaluate(struct value_frame *f, struct value_lanes *lanes, const struct values_expression *parsed,
		   const char *text, struct value_outcome *ret)
{
	struct value_reading reading;
	int r = evaluate(f, lanes, parsed, text, ret, &reading);

	if (r == 0 && !ret->invalid)
		r = value_reading_print(f->request, f->frame->lane, values_expression_format(parsed), &reading,
					&ret->value);
	ret->state = reading.state;
	ret->reason = reading.reason;
	values_result_deinit(&reading.result);
	return r;
}

/* An expression in many lanes. */
struct lane_spread {
	struct value_lanes *lanes;
	const struct values_expression *parsed;
	const char *text;
};

static int group_lane(void *context, uint32_t lane, struct value_groups *g)
{
	const struct lane_spread *s = context;
	struct value_reading reading = { 0 };
	struct value_outcome o;
	struct value_frame *f;
	const char *reason;
	size_t place;
	int r;

	f = value_lanes_frame(s->lanes, lane, &place, &reason);
	if (!f)
		return value_groups_add_unknown(g, UINT64_C(1) << lane, reason);
	r = evaluate(f, s->lanes, s->parsed, s->text, &o, &reading);
	if (r == 0 && o.invalid)
		r = value_groups_add_unknown(g, UINT64_C(1) << lane,
					     f->is_elsewhere ? VALUE_ELSEWHERE :
							       rpc_arena_strdup(g->request->arena, o.error.text));
	else if (r == 0)
		r = value_groups_add(g, lane, &reading);
	values_result_deinit(&reading.result);
	return r;
}

int value_evaluate_lanes(struct value_lanes *lanes, const struct values_expression *parsed, const char *text,
			 struct rpc_lane_value **ret, size_t *ret_n)
{
	struct lane_spread s = { lanes, parsed, text };

	return value_groups_read(lanes->reference->request, values_expression_format(parsed), group_lane, &s, ret,
				 ret_n);
}
