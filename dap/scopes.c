/* SPDX-License-Identifier: MIT */
/*
 * Scopes of a frame, and what its kernel was launched with.  To know which kinds of variables there are
 * the agent is asked once; what it tells is what the scopes show when they are opened.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "dap/values/values.h"

/* Most arguments in the name of a frame. */
#define ARGUMENTS_IN_NAME 16u

/* ------------------------------------------------------------------ arguments ---------------- */

bool dap_has_arguments(const struct dap_thread *t)
{
	const struct rpc_wave_ref *r = &t->place->representative;

	return t->place->has_arguments && r->queue_id == t->wave.queue_id &&
	       r->has_dispatch && t->wave.has_dispatch && r->dispatch == t->wave.dispatch;
}

void dap_put_arguments(struct out *o, const struct rpc_group *g)
{
	out_char(o, '(');
	for (size_t i = 0; i < g->n_arguments && i < ARGUMENTS_IN_NAME; i++) {
		const struct rpc_argument *v = &g->arguments[i];
		const char *state = rpc_enum_name(&rpc_value_state_enum, v->state);

		out_fmt(o, "%s%s=", i ? ", " : "", v->name);
		if (v->value)
			out_str(o, v->value);
		else
			out_fmt(o, "<%s>", state ? state : "unknown");
	}
	out_str(o, g->n_arguments > ARGUMENTS_IN_NAME ? ", ...)" : ")");
}

/*
 * Append an argument as the kernel was launched with it, named as debuggers do: the kernel may have
 * changed its own copy.
 */
static void put_launched(struct dap_page *p, const struct rpc_argument *v)
{
	struct rpc_arena *a = &p->d->arena;
	const struct dap_value value = { .state = v->state, .value = v->value };
	const char *name = v->at == RPC_VALUE_MOMENT_LAUNCH ?
				   rpc_arena_printf(a, "%s@entry", v->name) : v->name;
	const struct dap_row row = { .name = name, .value = dap_value_text(a, &value),
				     .type = v->type, .read_only = true };

	dap_put_row(p, &row);
}

/* The argument of that name, if it is known what it was at the launch. */
static const struct rpc_argument *find_launched(const struct dap_thread *t, size_t level, const char *name)
{
	if (!dap_has_arguments(t) || !dap_is_kernel_frame(t, level))
		return NULL;
	for (size_t i = 0; i < t->place->n_arguments; i++)
		if (t->place->arguments[i].value && !strcmp(t->place->arguments[i].name, name))
			return &t->place->arguments[i];
	return NULL;
}

static void put_argument(struct dap_page *p, const struct dap_ref *ref, const struct rpc_variable *v)
{
	const struct dap_thread *t = &ref->snap->threads[ref->thread];
	const struct dap_value value = dap_value_of_variable(v);
	const struct rpc_argument *launched = v->value ? NULL : find_launched(t, ref->index, v->name);
	struct dap_row row;

	if (launched) {
		put_launched(p, launched);
		return;
	}
	row = dap_value_row(p->d, ref, &value);
	dap_put_row(p, &row);
}

/* Those of the function where it is known what they are, or else those that the kernel was launched with. */
int dap_open_arguments(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct dap_thread *t = &ref->snap->threads[ref->thread];
	const struct rpc_wave_variables_result *r = dap_frame_variables(p->d, ref, false, err);
	bool found = false;

	for (size_t i = 0; r && i < r->n_variables; i++)
		if (r->variables[i].scope == RPC_VARIABLE_SCOPE_ARGUMENT) {
			found = true;
			put_argument(p, ref, &r->variables[i]);
		}
	if (found)
		return 0;
	if (!r && !dap_has_arguments(t))
		return -EIO;
	for (size_t i = 0; dap_has_arguments(t) && i < t->place->n_arguments; i++)
		put_launched(p, &t->place->arguments[i]);
	return 0;
}

/* ------------------------------------------------------------------ scopes ------------------- */

/* How a scope is announced. */
struct scope {
	const char *name, *hint;
	enum dap_scope scope;
	bool expensive, by_frame; /* Each frame has its own. */
};

static const struct scope scopes[] = {
	{ "Wave", "locals", DAP_SCOPE_WAVE, false, true },
	{ "Arguments", "arguments", DAP_SCOPE_ARGUMENTS, false, true },
	{ "Locals", "locals", DAP_SCOPE_LOCALS, false, true },
	{ "Statics", "locals", DAP_SCOPE_STATICS, false, true },
	{ "Built-ins", NULL, DAP_SCOPE_BUILT_INS, false, true },
	{ "Scalar registers", "registers", DAP_SCOPE_SCALAR, true },
	{ "Vector registers", "registers", DAP_SCOPE_VECTOR, true },
	{ "Lanes", NULL, DAP_SCOPE_LANES, true },
	{ "LDS", NULL, DAP_SCOPE_LDS, true },
	{ "Group statistics", NULL, DAP_SCOPE_STATISTICS, false },
	{ "Why", NULL, DAP_SCOPE_WHY, true },
};

static bool has_variables(const struct rpc_wave_variables_result *r, enum rpc_variable_scope kind)
{
	for (size_t i = 0; r && i < r->n_variables; i++)
		if (r->variables[i].scope == kind)
			return true;
	return false;
}

/* @param r  NULL where the variables are not known. */
static bool is_there(const struct dap_ref *frame, const struct rpc_wave_variables_result *r,
		     enum dap_scope scope)
{
	switch (scope) {
	case DAP_SCOPE_ARGUMENTS:
		return has_variables(r, RPC_VARIABLE_SCOPE_ARGUMENT) ||
		       dap_has_arguments(&frame->snap->threads[frame->thread]);
	case DAP_SCOPE_LOCALS:
		return has_variables(r, RPC_VARIABLE_SCOPE_LOCAL);
	case DAP_SCOPE_STATICS:
		return has_variables(r, RPC_VARIABLE_SCOPE_STATIC);
	case DAP_SCOPE_BUILT_INS:
		return has_variables(r, RPC_VARIABLE_SCOPE_BUILT_IN);
	default:
		return true;
	}
}

int dap_scopes(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	const struct rpc_wave_variables_result *r;
	struct agent_err why = { 0 };
	struct dap_ref frame;

	/* No locals and no arguments of programs are read. */
	if (dap_host_is_frame(d, dap_json_get(q->args, "frameId"))) {
		out_json_fmt(&ret->body, "{'scopes':[]}");
		return 0;
	}
	if (dap_frame_arg(d, q->args, &frame, &ret->err) < 0)
		return -EINVAL;
	/* Without variables there are registers still; the scope of the wave says why. */
	r = dap_frame_variables(d, &frame, false, &why);
	if (!r && (why.err == ECANCELED || !d->client)) {
		ret->err = why;
		return -EIO;
	}
	out_json_fmt(&ret->body, "{'scopes':[");
	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		const struct scope *s = &scopes[i];

		if (!is_there(&frame, r, s->scope))
			continue;
		out_json_fmt(&ret->body, ",{'name':%s", s->name);
		if (s->hint)
			out_json_fmt(&ret->body, ",'presentationHint':%s", s->hint);
		out_json_fmt(&ret->body, ",'variablesReference':%u,'expensive':%i}",
			     dap_ref_within(d, &frame, s->scope, s->by_frame ? frame.index : 0),
			     s->expensive);
	}
	out_str(&ret->body, "]}");
	return 0;
}
