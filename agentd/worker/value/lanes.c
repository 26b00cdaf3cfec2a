/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/lanes.h"

#include <stdlib.h>
#include <string.h>

#define LEVELS_MAX 64u /* Of functions that are inlined into each other. */

/* A place in the code at which lanes are. */
struct value_lane_place {
	uint64_t address;
	bool is_there; /* In the function. */
	struct values_scope scope; /* Unless it is the reference's place. */
	struct values_frame frame; /* Of some lane. */
};

struct value_lane {
	bool is_set;
	struct values_frame frame;
	struct value_frame found;
};

static uint64_t bit_of(uint32_t lane)
{
	return UINT64_C(1) << lane;
}

void value_lanes_init(struct value_lanes *l, struct value_frame *reference)
{
	const struct rpc_wave_registers *r = &reference->request->registers;

	*l = (struct value_lanes){ .reference = reference, .there = value_request_lanes_there(reference->request) };
	for (uint32_t i = 0; i < VALUE_LANES_MAX; i++)
		l->addresses[i] = r->wave.pc;
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].has_pc)
			l->addresses[r->work_items[i].lane % VALUE_LANES_MAX] = r->work_items[i].pc;
}

void value_lanes_deinit(struct value_lanes *l)
{
	for (size_t i = 0; i < l->n; i++)
		values_scope_deinit(&l->places[i].scope);
	free(l->places);
	free(l->lanes);
	*l = (struct value_lanes){ 0 };
}

/* Find the reference's function at another address. */
static bool find_function(const struct value_lanes *l, struct value_lane_place *p)
{
	for (unsigned inlined = 0; inlined < LEVELS_MAX; inlined++) {
		if (values_scope_find(l->reference->image, values_frame_lookup(&p->frame), inlined, &p->scope) < 0)
			break;
		if (!inlined)
			values_image_enter(l->reference->image, &p->scope, &p->frame);
		if (p->scope.die == l->reference->scope->die)
			return true;
		values_scope_deinit(&p->scope);
	}
	values_scope_deinit(&p->scope);
	return false;
}

static void enter_place(const struct value_lanes *l, struct value_lane_place *p)
{
	const struct values_frame *f = l->reference->frame;

	p->frame = *f;
	p->is_there = true;
	if (p->address == l->reference->address)
		return;
	p->frame.pc = p->address - f->load_bias;
	p->is_there = l->reference->image && find_function(l, p);
	if (p->is_there)
		return;
	p->frame.registers = NULL;
	p->frame.function = NULL;
	p->frame.has_row = false;
}

static struct value_lane_place *find_place(struct value_lanes *l, uint64_t address)
{
	struct value_lane_place *p;

	for (size_t i = 0; i < l->n; i++)
		if (l->places[i].address == address)
			return &l->places[i];
	p = &l->places[l->n++];
	p->address = address;
	enter_place(l, p);
	return p;
}

static void set_lane(struct value_lanes *l, uint32_t lane, struct value_lane *ret)
{
	struct value_lane_place *p = find_place(l, l->addresses[lane]);

	ret->is_set = true;
	ret->frame = p->frame;
	ret->found = *l->reference;
	ret->found.frame = &ret->frame;
	ret->found.place = (size_t)(p - l->places);
	ret->found.address = p->address;
	ret->found.is_elsewhere = !p->is_there;
	if (p->address != l->reference->address)
		ret->found.scope = &p->scope;
	values_frame_move(&ret->frame, lane);
}

static const char *find_lane(struct value_lanes *l, uint32_t lane)
{
	if (l->reference->frame->callee)
		return "callers are known of one lane only";
	if (lane >= VALUE_LANES_MAX || !(l->there & bit_of(lane)))
		return "nothing runs in the lane";
	if (!l->lanes)
		l->lanes = calloc(VALUE_LANES_MAX, sizeof(*l->lanes));
	if (!l->places)
		l->places = calloc(VALUE_LANES_MAX, sizeof(*l->places));
	if (!l->lanes || !l->places)
		return "memory ran out";
	if (!l->lanes[lane].is_set)
		set_lane(l, lane, &l->lanes[lane]);
	return NULL;
}

struct value_frame *value_lanes_frame(struct value_lanes *l, uint32_t lane, size_t *ret_place,
				      const char **ret_reason)
{
	*ret_place = VALUE_LANES_MAX;
	*ret_reason = NULL;
	if (lane == l->reference->request->lane && l->reference->frame->callee)
		return l->reference;
	*ret_reason = find_lane(l, lane);
	if (*ret_reason)
		return NULL;
	*ret_place = l->lanes[lane].found.place;
	return &l->lanes[lane].found;
}

const struct values_variable *value_lanes_variable(const struct value_frame *f, const struct values_variable *v)
{
	Dwarf_Off die = dwarf_dieoffset((Dwarf_Die *)&v->die);

	for (size_t i = 0; i < f->scope->n; i++)
		if (dwarf_dieoffset(&f->scope->items[i].die) == die)
			return &f->scope->items[i];
	return NULL;
}
