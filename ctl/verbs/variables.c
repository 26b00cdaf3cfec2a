/* SPDX-License-Identifier: MIT */
/* gpu-agentctl variables, print, lanes: what variables and expressions of a wave are, for its lanes. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/terminal/table.h"
#include "ctl/terminal/text.h"

/* As many as the methods take. */
#define SCOPES_MAX  4u
#define COLUMNS_MAX 16

/* Values of the options. */
static const char *lane_option, *lanes_option, *frame_option, *scope_option;

#define LANE_OPTION { "lane", 0, ARGV_STRING, &lane_option, "N", "whose variables (default the first active one)", "thread" }
#define LANES_OPTION                                                                               \
	{ "lanes", 0, ARGV_STRING, &lanes_option, "LANES", "show values of these: a list such as 0-3,8, or all, active, or part", "threads" }
#define FRAME_OPTION                                                                               \
	{ "frame", 0, ARGV_STRING, &frame_option, "N", "0 is the innermost function (default), 1 the one that called it" }

static const struct argv_option print_options[] = {
	LANE_OPTION,
	LANES_OPTION,
	FRAME_OPTION,
	{ 0 },
};

static const struct argv_option lanes_options[] = {
	{ "lane", 0, ARGV_STRING, &lane_option, "N", "whose function says what names mean (default the first active one)", "thread" },
	{ "lanes", 0, ARGV_STRING, &lanes_option, "LANES", "which: a list such as 0-3,8, or all, active, or part", "threads" },
	FRAME_OPTION,
	{ 0 },
};

static const struct argv_option options[] = {
	LANE_OPTION,
	LANES_OPTION,
	FRAME_OPTION,
	{ "scope", 0, ARGV_STRING, &scope_option, "SCOPE,...", "of argument, local, static, built_in (default all)" },
	{ 0 },
};

static int parse_scopes(struct ctl *c, struct rpc_wave_variables_params *p)
{
	char *copy = rpc_arena_strdup(&c->arena, scope_option), *save;

	p->scopes = rpc_arena_array(&c->arena, SCOPES_MAX, sizeof(*p->scopes));
	if (!copy || !p->scopes)
		return ctl_fail(c, ENOMEM, "--scope");
	p->has_scopes = true;
	for (char *w = strtok_r(copy, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		int64_t value;

		if (rpc_enum_value(&rpc_variable_scope_enum, w, &value) < 0 || p->n_scopes == SCOPES_MAX)
			return ctl_usage(c, "--scope: \"%.40s\" is none of argument, local, static, built_in", w);
		p->scopes[p->n_scopes++] = (enum rpc_variable_scope)value;
	}
	return p->n_scopes ? 0 : ctl_usage(c, "--scope: needs names separated by commas");
}

static int parse(struct ctl *c, char **argv, struct rpc_wave_variables_params *p)
{
	int r = args_wave(c, "WAVE", argv[1], &p->wave);

	if (r == 0 && lane_option)
		r = args_u32(c, "--lane", lane_option, 0, 63, &p->lane);
	p->has_lane = lane_option;
	p->lanes = lanes_option;
	if (r == 0 && frame_option)
		r = args_u32(c, "--frame", frame_option, 0, 1000, &p->frame);
	p->has_frame = frame_option;
	if (r == 0 && scope_option)
		r = parse_scopes(c, p);
	p->has_max_stop_ms = c->max_look_ms;
	p->max_stop_ms = c->max_look_ms;
	return r;
}

/* The value, or what is known instead of it. */
static const char *value_of(struct ctl *c, enum rpc_value_state state, const char *reason, const char *value)
{
	auto_out struct out o = { 0 };

	if (state == RPC_VALUE_STATE_OK)
		return value;
	out_fmt(&o, "<%s", show_name(&c->arena, &rpc_value_state_enum, state));
	if (reason)
		out_fmt(&o, ": %s", reason);
	out_char(&o, '>');
	if (value)
		out_fmt(&o, " %s", value);
	return o.data ? rpc_arena_strdup(&c->arena, o.data) : NULL;
}

static void add_value(struct ctl *c, struct table *t, enum rpc_value_state state, const char *reason, const char *value)
{
	table_style(t, state == RPC_VALUE_STATE_OK ? COLOR_PLAIN : COLOR_WARN, value_of(c, state, reason, value));
}

/* A row for each value, with the lanes that have it. */
static int show_lanes(struct ctl *c, const struct rpc_wave_variables_result *result)
{
	static const struct table_column columns[] = {
		{ .title = "VARIABLE" },
		{ .title = "LANES" },
		{ .title = "VALUE", .importance = 3, .min = 20 },
		{ .title = "TYPE", .importance = 2, .min = 8 },
		{ .title = "SCOPE", .importance = 1 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < result->n_variables; i++) {
		const struct rpc_variable *v = &result->variables[i];

		for (size_t k = 0; k < v->n_lanes; k++) {
			table_str(&t, v->name);
			table_str(&t, v->lanes[k].lanes);
			add_value(c, &t, v->lanes[k].state, v->lanes[k].reason, v->lanes[k].value);
			table_str(&t, v->type);
			table_str(&t, show_name(&c->arena, &rpc_variable_scope_enum, v->scope));
		}
	}
	return ctl_print_table(c, &t);
}

static int show(struct ctl *c, const struct rpc_wave_variables_result *result)
{
	static const struct table_column columns[] = {
		{ .title = "VARIABLE" },
		{ .title = "VALUE", .importance = 3, .min = 20 },
		{ .title = "TYPE", .importance = 2, .min = 8 },
		{ .title = "PLACE", .importance = 1 },
		{ .title = "SCOPE", .importance = 1 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < result->n_variables; i++) {
		const struct rpc_variable *v = &result->variables[i];

		table_str(&t, v->name);
		add_value(c, &t, v->state, v->reason, v->value);
		table_str(&t, v->type);
		table_str(&t, v->location);
		table_str(&t, show_name(&c->arena, &rpc_variable_scope_enum, v->scope));
	}
	return ctl_print_table(c, &t);
}

static int begin(struct ctl *c, char **argv, struct rpc_wave_variables_params *p)
{
	int r = parse(c, argv, p);

	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p->session = c->session.session;
	return args_find_wave_lane(c, &p->wave, &p->has_lane, &p->lane);
}

static int end(struct ctl *c, int r, const char **missing, size_t n)
{
	for (size_t i = 0; r == 0 && !ctl_is_json(c) && i < n; i++)
		ctl_note(c, "%s", cli_words(c, missing[i]));
	ctl_detach(c);
	return r;
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_wave_variables_params p = { 0 };
	struct rpc_wave_variables_result result = { 0 };
	int r = begin(c, argv, &p);

	if (r == 0)
		r = ctl_called(c, rpc_client_wave_variables(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) : lanes_option ? show_lanes(c, &result) : show(c, &result);
	return end(c, r, result.missing, result.n_missing);
}

const struct ctl_verb ctl_verb_variables = {
	.name = "variables",
	.args = "PID WAVE",
	.summary = "Show the variables of a wave, with their values",
	.options = options,
	.min_args = 2,
	.max_args = 2,
	.takes_core = true,
	.run = run,
};

static int show_value(struct ctl *c, const struct rpc_wave_evaluate_result *result)
{
	const char *value = value_of(c, result->state, result->reason, result->value);

	text_escape(&c->output.text, value ? value : "", value ? strlen(value) : 0);
	out_char(&c->output.text, '\n');
	return out_error(&c->output.text) ? ctl_fail(c, ENOMEM, "print") : 0;
}

static int show_value_of_lanes(struct ctl *c, const struct rpc_wave_evaluate_result *result)
{
	static const struct table_column columns[] = {
		{ .title = "LANES" },
		{ .title = "VALUE", .importance = 1, .min = 20 },
	};
	auto_table struct table t;

	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < result->n_lanes; i++) {
		table_str(&t, result->lanes[i].lanes);
		add_value(c, &t, result->lanes[i].state, result->lanes[i].reason, result->lanes[i].value);
	}
	return ctl_print_table(c, &t);
}

static int run_print(struct ctl *c, int argc, char **argv)
{
	struct rpc_wave_variables_params of = { 0 };
	struct rpc_wave_evaluate_result result = { 0 };
	int r = begin(c, argv, &of);
	const struct rpc_wave_evaluate_params p = {
		.session = of.session, .wave = of.wave, .expression = argv[2], .lanes = of.lanes,
		.has_lane = of.has_lane, .lane = of.lane, .has_frame = of.has_frame, .frame = of.frame,
		.has_max_stop_ms = of.has_max_stop_ms, .max_stop_ms = of.max_stop_ms,
	};

	if (r == 0)
		r = ctl_called(c, rpc_client_wave_evaluate(c->client, &p, &c->arena, &result, &c->err));
	if (r == 0)
		r = ctl_is_json(c) ? ctl_print_result(c) :
		    lanes_option   ? show_value_of_lanes(c, &result) : show_value(c, &result);
	return end(c, r, result.missing, result.n_missing);
}

const struct ctl_verb ctl_verb_print = {
	.name = "print",
	.args = "PID WAVE EXPRESSION",
	.summary = "Show the value of an expression over the variables of a wave",
	.options = print_options,
	.min_args = 3,
	.max_args = 3,
	.takes_core = true,
	.run = run_print,
};

/* ------------------------------------------------------------------ lanes -------------------- */

/* What is known of every lane, in front of what was asked for. */
enum { LANE, ITEM, ACTIVE, PART, PC, EXCEPTION, FACTS };

static void lane_row(struct ctl *c, struct table *t, const struct rpc_wave_lane *l)
{
	table_u64(t, l->lane);
	table_str(t, l->n_in_group == 3
			     ? rpc_arena_printf(&c->arena, "%u,%u,%u", l->in_group[0], l->in_group[1], l->in_group[2])
			     : NULL);
	table_str(t, l->active ? "yes" : "no");
	if (l->has_part)
		table_u64(t, l->part + 1);
	else
		table_str(t, NULL);
	table_hex(t, l->pc);
	table_style(t, COLOR_BAD, l->exception);
	for (size_t i = 0; i < l->n_values; i++)
		add_value(c, t, l->values[i].state, l->values[i].reason, l->values[i].value);
}

static void note_lanes(struct table *t, const struct rpc_wave_lanes_result *r, bool is_part)
{
	size_t parts = r->wave.n_parts ? r->wave.n_parts : 1, active = 0;

	for (size_t i = 0; i < r->n_lanes; i++)
		active += r->lanes[i].active;
	table_note(t, "%zu of %zu lanes active; %zu part%s: lanes that are at one place in one state", active, r->n_lanes,
		   parts, parts == 1 ? "" : "s");
	if (is_part && parts > 1)
		table_note(t, "these are the lanes of the row's part; --lanes=all shows the others as well");
}

static int show_wave_lanes(struct ctl *c, const struct rpc_wave_lanes_result *r, bool is_part)
{
	struct table_column columns[FACTS + COLUMNS_MAX] = {
		[LANE] = { "LANE", true },
		[ITEM] = { c->vendor == RPC_VENDOR_NVIDIA ? "THREAD" : "WORK-ITEM", .optional = true },
		[ACTIVE] = { "ACTIVE" },
		[PART] = { "PART", true, .optional = true },
		[PC] = { "PC" },
		[EXCEPTION] = { "EXCEPTION", .optional = true, .importance = 1, .min = 12 },
	};
	auto_table struct table t;
	int e = show_waves(c, &r->wave, 1);

	for (size_t i = 0; i < r->n_columns && i < COLUMNS_MAX; i++)
		columns[FACTS + i] = (struct table_column){ r->columns[i].expression, .importance = 2, .min = 8 };
	out_char(&c->output.text, '\n');
	table_init(&t, columns, FACTS + r->n_columns);
	for (size_t i = 0; i < r->n_lanes; i++)
		lane_row(c, &t, &r->lanes[i]);
	note_lanes(&t, r, is_part);
	return e < 0 ? e : ctl_print_table(c, &t);
}

static int parse_lanes(struct ctl *c, int argc, char **argv, struct rpc_wave_lanes_params *p)
{
	struct rpc_wave_variables_params same = { 0 };
	int r = parse(c, argv, &same);

	p->wave = same.wave;
	p->has_lane = same.has_lane;
	p->lane = same.lane;
	p->lanes = same.lanes;
	p->has_frame = same.has_frame;
	p->frame = same.frame;
	p->has_max_stop_ms = same.has_max_stop_ms;
	p->max_stop_ms = same.max_stop_ms;
	p->columns = (const char **)argv + 2;
	p->n_columns = argc > 2 ? (size_t)argc - 2 : 0;
	p->has_columns = p->n_columns;
	return r;
}

static int ask_lanes(struct ctl *c, struct rpc_wave_lanes_params *p)
{
	struct rpc_wave_lanes_result result;
	bool is_part;
	int r;

	ctl_name_gpus_for_text(c);
	r = args_find_wave_lane(c, &p->wave, &p->has_lane, &p->lane);
	/* A row that is about a part of a wave stands for the lanes of that. */
	is_part = !p->lanes && !lane_option && p->has_lane;
	p->lanes = is_part ? "part" : p->lanes;
	if (r == 0)
		r = ctl_called(c, rpc_client_wave_lanes(c->client, p, &c->arena, &result, &c->err));
	if (r < 0 || ctl_is_json(c))
		return r < 0 ? r : ctl_print_result(c);
	r = show_wave_lanes(c, &result, is_part);
	for (size_t i = 0; r == 0 && i < result.n_missing; i++)
		ctl_note(c, "%s", cli_words(c, result.missing[i]));
	return r;
}

static int run_lanes(struct ctl *c, int argc, char **argv)
{
	struct rpc_wave_lanes_params p = { 0 };
	int r = parse_lanes(c, argc, argv, &p);

	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	r = ask_lanes(c, &p);
	ctl_detach(c);
	return r;
}

const struct ctl_verb ctl_verb_lanes = {
	.name = "lanes",
	.args = "PID WAVE [EXPRESSION...]",
	.summary = "Show what each lane of a wave works on, where it is, and values",
	.options = lanes_options,
	.min_args = 2,
	.max_args = 2 + COLUMNS_MAX,
	.takes_core = true,
	.run = run_lanes,
};
