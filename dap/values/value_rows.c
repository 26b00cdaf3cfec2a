/* SPDX-License-Identifier: MIT */
/* Rows for values: what they are in words, what is in them, and what they are in other lanes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/values/values.h"

/* Most rows that an editor is told of at once: its numbers have 31 bits. */
#define ROWS_MAX ((uint64_t)INT32_MAX)
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"
/* Most different values of lanes in one line. */
#define LANES_IN_LINE 4u

/* ------------------------------------------------------------------ rows --------------------- */

void dap_put_row(struct dap_page *p, const struct dap_row *row)
{
	uint64_t at = p->at++;
	struct out *o = p->o;

	if (at < p->start || (p->count && at - p->start >= p->count))
		return;
	out_json_fmt(o, ",{'name':%s,'value':%s", row->name, row->value);
	if (row->type && p->d->client_type)
		out_json_fmt(o, ",'type':%s", row->type);
	out_json_fmt(o, ",'variablesReference':%u", row->ref);
	if (row->n_named)
		out_json_fmt(o, ",'namedVariables':%" PRIu64, row->n_named);
	if (row->n_indexed)
		out_json_fmt(o, ",'indexedVariables':%" PRIu64, row->n_indexed);
	if (row->evaluate)
		out_json_fmt(o, ",'evaluateName':%s", row->evaluate);
	if (row->memory)
		out_json_fmt(o, ",'memoryReference':%s", row->memory);
	if (row->read_only)
		out_json_fmt(o, ",'presentationHint':{'attributes':['readOnly']}");
	out_char(o, '}');
}

/* ------------------------------------------------------------------ values ------------------- */

const char *dap_value_text(struct rpc_arena *a, const struct dap_value *v)
{
	const char *state = rpc_enum_name(&rpc_value_state_enum, v->state);
	char words[32];
	size_t n;

	if (v->state == RPC_VALUE_STATE_OK && v->value)
		return v->reason ? rpc_arena_printf(a, "%s (%s)", v->value, v->reason) : v->value;
	str_copy(words, sizeof(words), state ? state : "unknown");
	n = strlen(words);
	for (size_t i = 0; i < n; i++)
		if (words[i] == '_')
			words[i] = ' ';
	if (!v->reason && v->has_address)
		return rpc_arena_printf(a, "<%s at 0x%" PRIx64 ">%s%s", words, v->address,
					v->value ? " " : "", v->value ? v->value : "");
	return rpc_arena_printf(a, "<%s%s%s>%s%s", words, v->reason ? ": " : "",
				v->reason ? v->reason : "", v->value ? " " : "",
				v->value ? v->value : "");
}

static bool ends_with(const char *s, char c)
{
	size_t n = s ? strlen(s) : 0;

	return n && s[n - 1] == c;
}

/* An address in a text that begins with it; NULL for none, and for 0. */
static const char *address_at(struct rpc_arena *a, const char *text)
{
	size_t n = strspn(text, "0123456789abcdefx");
	uint64_t address;
	char number[24];

	if (strncmp(text, "0x", 2) || n >= sizeof(number))
		return NULL;
	memcpy(number, text, n);
	number[n] = '\0';
	if (str_to_u64_any(number, &address) < 0 || !address)
		return NULL;
	return rpc_arena_strdup(a, number);
}

/*
 * The memory to show for a value: what a pointer leads to, or where the value itself lies.  Only
 * memory of the process is read by an address alone.
 */
static const char *memory_of(struct rpc_arena *a, const struct dap_value *v)
{
	/* Generic addresses are those of the process, but for two windows that nothing is mapped in. */
	static const char *const spaces[] = { "global ", "generic " };

	if (ends_with(v->type, '*') && v->state == RPC_VALUE_STATE_OK && v->value)
		return address_at(a, v->value);
	for (size_t i = 0; v->location && i < ARRAY_SIZE(spaces); i++)
		if (str_starts_with(v->location, spaces[i]))
			return address_at(a, v->location + strlen(spaces[i]));
	return NULL;
}

/* Whether a value leads somewhere; what is there is read when somebody opens it. */
static bool is_pointer(const struct dap_value *v)
{
	const char *end = ends_with(v->type, '*') ? strrchr(v->type, '*') : NULL;

	return end && v->state == RPC_VALUE_STATE_OK && v->value && strcmp(v->value, "0x0") &&
	       !(end - v->type >= 5 && str_starts_with(end - 5, "void "));
}

struct dap_row dap_value_row(struct dap *d, const struct dap_ref *of, const struct dap_value *v)
{
	struct rpc_arena *a = &d->arena;
	uint64_t n = v->members < ROWS_MAX ? v->members : ROWS_MAX;
	struct dap_row row = { .name = v->name && v->name[0] ? v->name : "(anonymous)",
			       .value = dap_value_text(a, v),
			       .type = v->type && v->type[0] ? v->type : NULL,
			       .memory = memory_of(a, v), .evaluate = v->expression,
			       .read_only = true };

	if (!v->expression)
		return row;
	if (!n) {
		if (is_pointer(v))
			row.ref = dap_node_ref(d, of, DAP_NODE_TARGET, v->expression, 0);
		return row;
	}
	row.ref = dap_node_ref(d, of, DAP_NODE_MEMBERS, v->expression, 0);
	if (row.ref && ends_with(v->type, ']'))
		row.n_indexed = n;
	else if (row.ref)
		row.n_named = n;
	return row;
}

struct dap_value dap_value_of(const struct rpc_wave_evaluate_result *r, const char *expression)
{
	return (struct dap_value){ .type = r->type, .state = r->state, .reason = r->reason,
				   .value = r->value, .location = r->location,
				   .expression = expression, .has_address = r->has_address,
				   .address = r->address, .members = r->members };
}

static struct dap_value value_of_member(const struct rpc_value_member *m)
{
	return (struct dap_value){ .name = m->name, .type = m->type, .state = m->state,
				   .reason = m->reason, .value = m->value, .location = m->location,
				   .expression = m->expression, .has_address = m->has_address,
				   .address = m->address, .members = m->members };
}

struct dap_value dap_value_of_variable(const struct rpc_variable *v)
{
	return (struct dap_value){ .name = v->name, .type = v->type, .state = v->state,
				   .reason = v->reason, .value = v->value, .location = v->location,
				   .expression = v->expression, .has_address = v->has_address,
				   .address = v->address, .members = v->members };
}

static struct dap_value value_of_lane(const struct rpc_lane_value *v)
{
	return (struct dap_value){ .state = v->state, .reason = v->reason, .value = v->value,
				   .has_address = v->has_address, .address = v->address };
}

const char *dap_lane_text(struct rpc_arena *a, const struct rpc_lane_value *v)
{
	const struct dap_value one = value_of_lane(v);

	return dap_value_text(a, &one);
}

/* Say that a list goes on.  @param ref  What the row opens, or 0. */
static void put_more(struct dap_page *p, uint64_t n, uint32_t ref, const char *why)
{
	struct rpc_arena *a = &p->d->arena;
	const char *value = n ? rpc_arena_printf(a, "%" PRIu64 " more%s%s", n, why ? ": " : "",
						 why ? why : "") :
				why;
	const struct dap_row row = { .name = "(more)", .value = value ? value : "", .ref = ref };

	dap_put_row(p, &row);
}

/* ------------------------------------------------------------------ variables ---------------- */

static enum rpc_variable_scope kind_of(enum dap_scope scope)
{
	switch (scope) {
	case DAP_SCOPE_ARGUMENTS:
		return RPC_VARIABLE_SCOPE_ARGUMENT;
	case DAP_SCOPE_STATICS:
		return RPC_VARIABLE_SCOPE_STATIC;
	case DAP_SCOPE_BUILT_INS:
		return RPC_VARIABLE_SCOPE_BUILT_IN;
	default:
		return RPC_VARIABLE_SCOPE_LOCAL;
	}
}

/* Whether a variable further in has the same name. */
static bool is_hidden(const struct rpc_wave_variables_result *r, size_t i)
{
	const struct rpc_variable *v = &r->variables[i];

	for (size_t k = 0; k < i; k++)
		if (r->variables[k].scope == v->scope && r->variables[k].block > v->block &&
		    v->name[0] && !strcmp(r->variables[k].name, v->name))
			return true;
	return false;
}

static void put_variable(struct dap_page *p, const struct dap_ref *of,
			 const struct rpc_wave_variables_result *r, size_t i)
{
	const struct dap_value v = dap_value_of_variable(&r->variables[i]);
	struct dap_row row = dap_value_row(p->d, of, &v);

	/* Some editors show only one of several rows of a name. */
	if (is_hidden(r, i))
		row.name = rpc_arena_printf(&p->d->arena, "%s (outer block)", row.name);
	dap_put_row(p, &row);
}

int dap_open_variables(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_wave_variables_result *r = dap_frame_variables(p->d, ref, false, err);
	enum rpc_variable_scope kind = kind_of(ref->scope);

	if (!r)
		return -EIO;
	for (size_t i = 0; i < r->n_variables; i++)
		if (r->variables[i].scope == kind)
			put_variable(p, ref, r, i);
	for (size_t i = 0; kind == RPC_VARIABLE_SCOPE_LOCAL && i < r->n_missing; i++)
		if (str_starts_with(r->missing[i], "variables:"))
			put_more(p, 0, 0, r->missing[i]);
	return 0;
}

/* ------------------------------------------------------------------ members ------------------ */

/* Append members from one on, as many as are wanted and told; without any, what has none. */
static int open_members(struct dap_page *p, const struct dap_ref *of, const struct dap_node *node,
			struct agent_err *err)
{
	struct dap_expression e = { .text = node->text };
	const struct rpc_wave_evaluate_result *r;
	uint64_t first = node->first + p->start, end;
	struct dap_value whole;
	struct dap_row row;

	/* Nothing is behind these numbers. */
	if (first > UINT32_MAX)
		return 0;
	e.first = (uint32_t)first;
	e.max = p->count && p->count < DAP_MEMBERS_MAX ? (uint32_t)p->count : DAP_MEMBERS_MAX;
	r = dap_frame_value(p->d, of, &e, err);
	if (!r)
		return -EIO;
	if (!r->members) {
		whole = dap_value_of(r, node->text);
		whole.name = node->text;
		row = dap_value_row(p->d, of, &whole);
		dap_put_row(p, &row);
		return 0;
	}
	p->at = p->start;
	for (size_t i = 0; i < r->n_list; i++) {
		const struct dap_value v = value_of_member(&r->list[i]);

		row = dap_value_row(p->d, of, &v);
		dap_put_row(p, &row);
	}
	/* An editor that asks for a page knows how many there are. */
	end = first + r->n_list;
	if (end >= r->members || (p->count && r->n_list >= p->count))
		return 0;
	p->count = 0;
	put_more(p, r->members - end,
		 r->n_list && end <= UINT32_MAX ? dap_node_ref(p->d, of, DAP_NODE_MEMBERS,
							       node->text, (uint32_t)end) :
						  0,
		 r->n_list || !r->n_missing ? NULL : r->missing[0]);
	return 0;
}

/* The expression for what one points to; a format stays behind. */
static const char *target_text(struct rpc_arena *a, const char *text)
{
	size_t n = strlen(text), end = n;
	const char *format = strrchr(text, ',');

	if (format && strspn(format + 1, " ") + 2 == strlen(format) && strchr("xdfchb", text[n - 1]))
		end = (size_t)(format - text);
	if (end == n && strspn(text, NAME_LETTERS) == n)
		return rpc_arena_printf(a, "*%s", text);
	return rpc_arena_printf(a, "*(%.*s)%s", (int)end, text, text + end);
}

static int open_target(struct dap_page *p, const struct dap_ref *of, const struct dap_node *node,
		       struct agent_err *err)
{
	struct dap_node target = *node;

	target.text = (char *)target_text(&p->d->arena, node->text);
	return target.text ? open_members(p, of, &target, err) : agent_err_no_memory(err, NULL);
}

/* ------------------------------------------------------------------ lanes -------------------- */

/* What a variable is in all lanes, in a line. */
static const char *lanes_text(struct rpc_arena *a, const struct rpc_variable *v)
{
	auto_out struct out o = { .limit = 4096 };

	for (size_t i = 0; i < v->n_lanes && i < LANES_IN_LINE; i++) {
		const struct dap_value one = value_of_lane(&v->lanes[i]);
		const char *text = dap_value_text(a, &one);

		if (v->n_lanes == 1)
			return text;
		out_fmt(&o, "%s%s: %s", i ? "; " : "", v->lanes[i].lanes, text ? text : "");
	}
	if (v->n_lanes > LANES_IN_LINE)
		out_fmt(&o, "; ... (%zu different)", v->n_lanes);
	return rpc_arena_strdup(a, o.data ? o.data : "");
}

int dap_open_all_lanes(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_wave_variables_result *r = dap_frame_variables(p->d, ref, true, err);

	if (!r)
		return -EIO;
	for (size_t i = 0; i < r->n_variables; i++) {
		const struct rpc_variable *v = &r->variables[i];
		const struct dap_value value = dap_value_of_variable(v);
		struct dap_row row = { .name = v->name[0] ? v->name : "(anonymous)",
				       .type = v->type[0] ? v->type : NULL,
				       .evaluate = v->expression, .read_only = true };

		row.value = v->n_lanes ? lanes_text(&p->d->arena, v) : dap_value_text(&p->d->arena, &value);
		if (v->n_lanes > 1) {
			row.ref = dap_node_ref(p->d, ref, DAP_NODE_LANES, v->name, (uint32_t)i);
			row.n_named = row.ref ? v->n_lanes : 0;
		}
		dap_put_row(p, &row);
	}
	return 0;
}

static int open_lanes(struct dap_page *p, const struct dap_ref *of, const struct dap_node *node,
		      struct agent_err *err)
{
	const struct rpc_wave_variables_result *r = dap_frame_variables(p->d, of, true, err);
	const struct rpc_variable *v;

	if (!r)
		return -EIO;
	v = node->first < r->n_variables ? &r->variables[node->first] : NULL;
	/* While the GPU runs, other variables may have come. */
	if (!v || strcmp(v->name, node->text))
		return dap_invalid(err, "this variable is not there any more");
	for (size_t i = 0; i < v->n_lanes; i++) {
		const struct dap_value one = value_of_lane(&v->lanes[i]);
		const char *which = v->lanes[i].lanes;
		struct dap_row row = { .value = dap_value_text(&p->d->arena, &one),
				       .type = v->type[0] ? v->type : NULL, .read_only = true };

		row.name = rpc_arena_printf(&p->d->arena, "lane%s %s",
					    which[strcspn(which, "-,")] ? "s" : "", which);
		dap_put_row(p, &row);
	}
	return 0;
}

int dap_open_value(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	/* A copy: rows that can be opened may move the list that it is in. */
	const struct dap_node node = ref->refs->nodes[ref->index];
	const struct dap_ref of = { .scope = DAP_SCOPE_FRAME, .thread = ref->thread,
				    .index = node.frame, .lane = ref->lane, .refs = ref->refs,
				    .snap = ref->snap };

	switch (node.kind) {
	case DAP_NODE_LANES:
		return open_lanes(p, &of, &node, err);
	case DAP_NODE_TARGET:
		return open_target(p, &of, &node, err);
	default:
		return open_members(p, &of, &node, err);
	}
}
