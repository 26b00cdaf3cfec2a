/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bit_list.h"

#define GROUPS_MAX 64u
/* Members that are passed to tell whether a text needs memory: each step nests. */
#define STEPS_MAX 1000u
/* So often values are read again for what pointers lead to, each time one pointer further. */
#define ROUNDS_MAX 4u

struct value_group {
	uint64_t lanes;
	uint32_t lane; /* The first one. */
	struct value_reading r;
	const char *text; /* NULL: not made yet, or none. */
	bool printed;
	struct out trail; /* What was read of memory for the text, where it needs any. */
	bool trail_cut;
	bool is_own; /* Some of that is memory that each lane has its own of. */
};

void value_groups_init(struct value_groups *g, struct value_request *k, enum values_format format)
{
	*g = (struct value_groups){ .request = k, .format = format };
}

static void deinit_group(struct value_group *x)
{
	values_result_deinit(&x->r.result);
	out_deinit(&x->trail);
}

void value_groups_deinit(struct value_groups *g)
{
	for (size_t i = 0; i < g->n; i++)
		deinit_group(&g->list[i]);
	free(g->list);
	*g = (struct value_groups){ 0 };
}

/* ------------------------------------------------------------------ texts -------------------- */

/* Memory that a text leads to, as a lane reads it. */
struct text_reader {
	struct value_request *k;
	uint32_t lane;
	struct out *trail;
	bool is_own;
};

static int read_target(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	struct text_reader *o = context;
	int r = value_memory_read(o->k, o->lane, space, address, ret, size);

	o->is_own |= value_memory_is_own(o->k, space);
	/* Without these, what was read could be taken for a read that failed, or for several. */
	out_bytes(o->trail, &r, sizeof(r));
	out_bytes(o->trail, &size, sizeof(size));
	if (r == 0)
		out_bytes(o->trail, ret, size);
	return r;
}

static bool has_text(const struct value_reading *r)
{
	return r->result.bytes && (r->state == RPC_VALUE_STATE_OK || r->state == RPC_VALUE_STATE_INACTIVE ||
				   r->state == RPC_VALUE_STATE_PARTIAL);
}

/* A large value is whole as long as nothing of what was not read would be shown. */
static void tell_cut(struct value_request *k, struct value_reading *r, const struct values_node *node)
{
	if (!r->cut || node->state != VALUES_PARTIAL)
		return;
	k->told.too_large = true;
	if (r->state != RPC_VALUE_STATE_PARTIAL) {
		r->state = RPC_VALUE_STATE_PARTIAL;
		r->reason = "it is too large to be read as a whole";
	}
}

static int print_reading(struct text_reader *o, enum values_format format, struct value_reading *r, struct out *text,
			 bool *ret_cut)
{
	struct values_node node = { 0 };
	struct values_call call;

	if (r->result.has_lane)
		o->lane = r->result.lane;
	values_call_init(&call, read_target, o);
	if (values_result_node(format, &r->result, &call, &node) < 0)
		return -ENOMEM;
	tell_cut(o->k, r, &node);
	values_node_print(&node, text);
	values_node_deinit(&node);
	*ret_cut = call.cut;
	o->k->told.cut |= call.cut;
	return out_error(text) || out_error(o->trail) ? -ENOMEM : 0;
}

int value_reading_print(struct value_request *k, uint32_t lane, enum values_format format,
			struct value_reading *r, const char **ret)
{
	auto_out struct out text = { 0 }, trail = { 0 };
	struct text_reader o = { k, lane, &trail, false };
	bool cut;

	if (!has_text(r))
		return 0;
	if (print_reading(&o, format, r, &text, &cut) < 0)
		return -ENOMEM;
	*ret = rpc_arena_strdup(k->arena, text.data ? text.data : "");
	return *ret ? 0 : -ENOMEM;
}

static int print(struct value_groups *g, struct value_group *x)
{
	struct text_reader o = { g->request, x->lane, &x->trail, false };
	auto_out struct out text = { 0 };

	x->printed = true;
	if (!has_text(&x->r))
		return 0;
	if (print_reading(&o, g->format, &x->r, &text, &x->trail_cut) < 0)
		return -ENOMEM;
	x->is_own = o.is_own;
	x->trail_cut &= x->trail.size > 0;
	if (text.size > g->request->told.text_left) {
		g->request->told.out_of_text = true;
		x->r.state = RPC_VALUE_STATE_UNAVAILABLE;
		x->r.reason = "the answer would become too long";
		return 0;
	}
	g->request->told.text_left -= (uint32_t)text.size;
	x->text = rpc_arena_strdup(g->request->arena, text.data ? text.data : "");
	return x->text ? 0 : -ENOMEM;
}

static bool is_character(struct values_type *t)
{
	struct values_type *s = values_type_strip(t);

	return s->kind == VALUES_TYPE_SCALAR &&
	       (s->scalar.encoding == VALUES_SIGNED_CHAR || s->scalar.encoding == VALUES_UNSIGNED_CHAR ||
		s->scalar.encoding == VALUES_UTF);
}

/*
 * A text may depend on memory that a pointer or a reference leads to, which a lane may have its own of.
 * What cannot be told in so many steps counts as such.
 */
static bool needs_memory(struct values_type *t, unsigned *steps)
{
	struct values_type *s = values_type_strip(t);
	const struct values_member *m;
	size_t n;

	if (!*steps)
		return true;
	--*steps;
	switch (s->kind) {
	case VALUES_TYPE_REFERENCE:
	case VALUES_TYPE_RVALUE_REFERENCE:
		return true;
	case VALUES_TYPE_POINTER:
		return is_character(values_type_target(s));
	case VALUES_TYPE_ARRAY:
		return needs_memory(values_type_target(s), steps);
	case VALUES_TYPE_STRUCT:
	case VALUES_TYPE_UNION:
		m = values_type_members(s, &n);
		for (size_t i = 0; i < n; i++)
			if (needs_memory(m[i].type, steps))
				return true;
		return false;
	default:
		return false;
	}
}

static bool has_own_text(struct value_groups *g, struct values_type *t)
{
	unsigned steps = STEPS_MAX;

	if (t && t != g->checked) {
		g->checked = t;
		g->needs_memory = needs_memory(t, &steps);
	}
	return t && g->needs_memory;
}

/* ------------------------------------------------------------------ equality ----------------- */

static bool are_same_bytes(const uint8_t *a, const uint8_t *b, size_t n)
{
	return a == b || (a && b && !memcmp(a, b, n));
}

/* What was not read is equal where both lie in the same memory that lanes share. */
static bool have_equal_rest(const struct value_reading *x, const struct value_reading *y)
{
	const struct values_result *a = &x->result, *b = &y->result;

	if (!x->cut && !y->cut)
		return true;
	return a->has_address && b->has_address && a->address == b->address && a->space == b->space &&
	       a->space != VALUES_SPACE_PRIVATE && a->space != VALUES_SPACE_GENERIC;
}

static bool are_equal(const struct value_group *x, const struct value_group *y)
{
	const struct values_result *a = &x->r.result, *b = &y->r.result;

	return x->r.state == y->r.state && have_equal_rest(&x->r, &y->r) && a->type == b->type && a->size == b->size &&
	       a->bit == b->bit && a->bit_size == b->bit_size && x->r.has_address == y->r.has_address &&
	       x->r.address == y->r.address && !x->r.reason == !y->r.reason &&
	       (!x->r.reason || !strcmp(x->r.reason, y->r.reason)) && !a->bytes == !b->bytes &&
	       !a->known == !b->known && (!a->bytes || are_same_bytes(a->bytes, b->bytes, a->size)) &&
	       (!a->known || are_same_bytes(a->known, b->known, a->size)) && !x->trail_cut && !y->trail_cut &&
	       x->trail.size == y->trail.size && are_same_bytes((const uint8_t *)x->trail.data,
								(const uint8_t *)y->trail.data, x->trail.size);
}

int value_groups_add(struct value_groups *g, uint32_t lane, struct value_reading *r)
{
	struct value_group x = { .lanes = UINT64_C(1) << lane, .lane = lane, .r = *r };
	int made = 0;

	r->result = (struct values_result){ 0 };
	if (!g->list)
		g->list = calloc(GROUPS_MAX, sizeof(*g->list));
	if (g->list && has_own_text(g, x.r.result.type))
		made = print(g, &x);
	for (size_t i = 0; g->list && made == 0 && i < g->n; i++) {
		size_t at = i ? (i <= g->last ? i - 1 : i) : g->last;

		if (!are_equal(&g->list[at], &x))
			continue;
		g->list[at].lanes |= x.lanes;
		g->last = at;
		deinit_group(&x);
		return 0;
	}
	if (!g->list || made < 0 || g->n == GROUPS_MAX) {
		deinit_group(&x);
		return -ENOMEM;
	}
	g->last = g->n;
	g->list[g->n++] = x;
	return 0;
}

bool value_groups_repeat(struct value_groups *g, uint32_t lane)
{
	if (g->list[g->last].is_own)
		return false;
	g->list[g->last].lanes |= UINT64_C(1) << lane;
	return true;
}

int value_groups_add_unknown(struct value_groups *g, uint64_t lanes, const char *reason)
{
	int r = 0;

	for (; r == 0 && lanes; lanes &= lanes - 1) {
		struct value_reading none = { .state = RPC_VALUE_STATE_UNAVAILABLE, .reason = reason };

		r = value_groups_add(g, (uint32_t)__builtin_ctzll(lanes), &none);
	}
	return r;
}

int value_groups_tell(struct value_groups *g, struct rpc_lane_value **ret, size_t *ret_n)
{
	struct rpc_arena *a = g->request->arena;
	struct rpc_lane_value *list = rpc_arena_array(a, g->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++) {
		struct value_group *x = &g->list[i];
		auto_out struct out lanes = { 0 };

		if (!x->printed && print(g, x) < 0)
			return -ENOMEM;
		bit_list_print(x->lanes, &lanes);
		list[i] = (struct rpc_lane_value){ .lanes = rpc_arena_strdup(a, lanes.data ? lanes.data : ""),
						   .state = x->r.state, .reason = x->r.reason, .value = x->text,
						   .has_address = x->r.has_address, .address = x->r.address };
	}
	*ret = list;
	*ret_n = g->n;
	return 0;
}

static int read_lanes(struct value_groups *g, value_read_lane *read, void *context, struct rpc_lane_value **ret,
		      size_t *ret_n)
{
	struct value_request *k = g->request;
	uint64_t left = k->lanes;
	int r = 0;

	for (; r == 0 && left && !k->target->ended && !value_request_is_late(k); left &= left - 1)
		r = read(context, (uint32_t)__builtin_ctzll(left), g);
	/* They are read again. */
	if (r < 0 || (k->memory.noting && k->memory.noted))
		return r;
	r = value_groups_add_unknown(g, left, VALUE_NO_TIME);
	return r == 0 ? value_groups_tell(g, ret, ret_n) : r;
}

int value_groups_read(struct value_request *k, enum values_format format, value_read_lane *read, void *context,
		      struct rpc_lane_value **ret, size_t *ret_n)
{
	struct value_told before = k->told;
	bool again = true;
	int r = 0;

	for (unsigned rounds = 0; r == 0 && again; rounds++) {
		struct value_groups g;

		k->told = before;
		if (rounds < ROUNDS_MAX)
			value_memory_note(k);
		value_groups_init(&g, k, format);
		r = read_lanes(&g, read, context, ret, ret_n);
		value_groups_deinit(&g);
		/* What was noted is missing from what was made. */
		again = k->memory.noting && k->memory.noted;
		if (!value_memory_fetch_noted(k))
			rounds = ROUNDS_MAX;
	}
	return r;
}
