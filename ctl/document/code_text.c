/* SPDX-License-Identifier: MIT */
/*
 * Shortens demangled names and writes chains of frames.  Names come from a target's code objects
 * and may be anything: every scan is bounded by the name.
 */
#include "ctl/document/code_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"

/* Most callers in a row. */
#define CALLERS_SHOWN 8
/* Most arguments of a kernel in a row, and bytes of each of their names and values, which are one word. */
#define ARGUMENTS_SHOWN 16
#define ARGUMENT_NAME_MAX 24
#define ARGUMENT_VALUE_MAX 32

/* The offset of the parameters that end a name; the end of the name when there are none. */
static size_t parameters_at(const char *name)
{
	size_t n = strlen(name), at = n;
	int depth = 0;

	if (!n || name[n - 1] != ')')
		return n;
	while (at--) {
		depth += name[at] == ')';
		depth -= name[at] == '(';
		if (!depth)
			return at ? at : n;
	}
	return n;
}

/* The offset behind the last blank outside of brackets: what is before it is a result type. */
static size_t name_at(const char *name, size_t end)
{
	size_t at = end;
	int depth = 0;

	while (at--) {
		depth += name[at] == ')' || name[at] == '>';
		depth -= name[at] == '(' || name[at] == '<';
		if (name[at] == ' ' && depth <= 0)
			break;
	}
	at++;
	/* "operator new" and "operator bool" are one name, and operators may be brackets. */
	return at < end && !memmem(name, end, "operator", 8) ? at : 0;
}

const char *code_text_name(struct rpc_arena *a, const char *name)
{
	size_t end = parameters_at(name), start = name_at(name, end);
	char text[CODE_TEXT_NAME_MAX + 1];
	auto_out struct out whole = { 0 };

	out_bytes(&whole, name + start, end - start);
	if (out_error(&whole))
		return NULL;
	if (whole.size < sizeof(text))
		return rpc_arena_strdup(a, whole.size ? whole.data : name);
	str_copy(text, sizeof(text) - 3, whole.data);
	return rpc_arena_printf(a, "%s...", text);
}

const char *code_text_kernel(struct rpc_arena *a, const struct rpc_kernel *k)
{
	if (!k)
		return NULL;
	return k->name ? code_text_name(a, k->name) :
			 rpc_arena_printf(a, "0x%" PRIx64, k->address);
}

/* @param most  At most ARGUMENT_VALUE_MAX. */
static void put_cut(struct out *o, const char *text, size_t most)
{
	char cut[ARGUMENT_VALUE_MAX + 1];

	str_copy(cut, most + 1, text);
	out_fmt(o, "%s%s", cut, strlen(text) > most ? "..." : "");
}

void code_text_arguments(struct out *o, const struct rpc_group *g)
{
	if (!g->has_arguments)
		return;
	out_char(o, '(');
	for (size_t i = 0; i < g->n_arguments && i < ARGUMENTS_SHOWN; i++) {
		const struct rpc_argument *a = &g->arguments[i];
		const char *state = rpc_enum_name(&rpc_value_state_enum, a->state);

		out_str(o, i ? ", " : "");
		put_cut(o, a->name, ARGUMENT_NAME_MAX);
		out_char(o, '=');
		if (a->value)
			put_cut(o, a->value, ARGUMENT_VALUE_MAX);
		else
			out_fmt(o, "<%s>", state ? state : "unknown");
	}
	out_str(o, g->n_arguments > ARGUMENTS_SHOWN ? ", ...)" : ")");
}

/* Append one location: a line or an address, then the functions from the inside out. */
static void put_location(struct out *o, struct rpc_arena *a, const struct rpc_frame *frames,
			 size_t n, uint64_t pc)
{
	if (n && frames[0].file && frames[0].has_line)
		out_fmt(o, "%s:%u", str_base_name(frames[0].file), frames[0].line);
	else
		out_hex(o, pc);
	for (size_t i = 0; i < n; i++) {
		const char *name = frames[i].function ? code_text_name(a, frames[i].function) : NULL;

		/* A line says enough where no function is known. */
		if (name)
			out_fmt(o, "%s%s", i ? " <- " : " ", name);
	}
}

const char *code_text_location(struct rpc_arena *a, const struct rpc_frame *frames, size_t n,
			       uint64_t pc)
{
	auto_out struct out o = { 0 };

	put_location(&o, a, frames, n, pc);
	return out_error(&o) ? NULL : rpc_arena_strdup(a, o.data);
}

void code_text_callers(struct out *o, struct rpc_arena *a, const struct rpc_group *g)
{
	for (size_t i = 0; i < g->n_callers && i < CALLERS_SHOWN; i++) {
		out_str(o, " <- ");
		put_location(o, a, g->callers[i].frames, g->callers[i].n_frames,
			     g->callers[i].address);
	}
	if (g->n_callers > CALLERS_SHOWN)
		out_str(o, " <- ...");
}
