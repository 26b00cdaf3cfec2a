/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/arguments.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "protocol/rpc_scan.h"

#define NAME_SIZE 40
#define DEPTH_MAX 32
#define PID_MAX	  UINT32_C(4194304) /* The kernel's limit, PID_MAX_LIMIT. */

const struct mcp_arg mcp_args_common[] = {
	{ MCP_ARG_CURSOR, MCP_ARG_TEXT, .max = 40 },
	{ MCP_ARG_BYTES, MCP_ARG_UINT, .min = MCP_BYTES_MIN, .max = MCP_BYTES_MAX, .preset = MCP_BYTES_PRESET },
	{ 0 },
};

/* ------------------------------------------------------------------ the schema --------------- */

static void put_choices(struct out *o, const char *values)
{
	out_str(o, ",\"enum\":[");
	for (const char *at = values; *at;) {
		size_t n = strcspn(at, "|");

		if (at != values)
			out_char(o, ',');
		out_json_str(o, at, n);
		at += n + (at[n] == '|');
	}
	out_char(o, ']');
}

static void put_type(struct out *o, const struct mcp_arg *a)
{
	static const char *const types[] = {
		[MCP_ARG_UINT] = "integer", [MCP_ARG_BOOL] = "boolean",	 [MCP_ARG_TEXT] = "string",
		[MCP_ARG_CHOICE] = "string", [MCP_ARG_ADDRESS] = "string", [MCP_ARG_PIDS] = "array",
	};

	out_fmt(o, "{\"type\":\"%s\"", types[a->kind]);
	switch (a->kind) {
	case MCP_ARG_UINT:
		out_fmt(o, ",\"minimum\":%u,\"maximum\":%u", a->min, a->max);
		if (a->preset)
			out_fmt(o, ",\"default\":%u", a->preset);
		break;
	case MCP_ARG_CHOICE:
		put_choices(o, a->values);
		break;
	case MCP_ARG_ADDRESS:
		out_str(o, ",\"pattern\":\"^0x[0-9a-fA-F]{1,16}$\"");
		break;
	case MCP_ARG_PIDS:
		out_fmt(o, ",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":%u", a->max);
		break;
	default:
		break;
	}
	if (a->text) {
		out_str(o, ",\"description\":");
		out_json_str(o, a->text, strlen(a->text));
	}
	out_char(o, '}');
}

static void put_properties(struct out *o, const struct mcp_arg *a, bool *first)
{
	for (; a->name; a++, *first = false) {
		out_fmt(o, "%s\"%s\":", *first ? "" : ",", a->name);
		put_type(o, a);
	}
}

void mcp_args_schema(struct out *o, const struct mcp_arg *args)
{
	bool first = true;

	out_str(o, "{\"type\":\"object\",\"properties\":{");
	put_properties(o, args, &first);
	put_properties(o, mcp_args_common, &first);
	out_char(o, '}');
	first = true;
	for (const struct mcp_arg *a = args; a->name; a++)
		if (a->required) {
			out_fmt(o, "%s\"%s\"", first ? ",\"required\":[" : ",", a->name);
			first = false;
		}
	out_str(o, first ? ",\"additionalProperties\":false}" : "],\"additionalProperties\":false}");
}

/* ------------------------------------------------------------------ values ------------------- */

static int wrong(struct out *why, const struct mcp_arg *a, const char *what)
{
	out_fmt(why, "argument \"%s\" must be %s", a->name, what);
	return -EINVAL;
}

/* A whole number; models write 5.0 and "5" as well, and mean 5. */
static bool read_whole(struct dap_json v, uint64_t *ret)
{
	char text[32];

	if (v.size >= sizeof(text))
		return false;
	if (v.text[0] == '"') {
		if (!dap_json_str(v, text, sizeof(text)))
			return false;
	} else {
		memcpy(text, v.text, v.size);
		text[v.size] = '\0';
	}
	if (strlen(text) > 2 && !strcmp(text + strlen(text) - 2, ".0"))
		text[strlen(text) - 2] = '\0';
	return str_to_u64(text, 0, UINT64_MAX, ret) == 0;
}

static int read_number(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	char what[80];

	if (read_whole(v, &ret->number) && ret->number >= a->min && ret->number <= a->max)
		return 0;
	snprintf(what, sizeof(what), "a whole number from %u to %u", a->min, a->max);
	return wrong(why, a, what);
}

static int read_bool(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	char text[8] = "";

	ret->number = dap_json_is_true(v) || (dap_json_str(v, text, sizeof(text)) && !strcmp(text, "true"));
	if (ret->number || (v.size == 5 && !memcmp(v.text, "false", 5)) || !strcmp(text, "false"))
		return 0;
	return wrong(why, a, "true or false");
}

static bool is_choice(const char *values, const char *text)
{
	size_t size = strlen(text);

	for (const char *at = values; *at;) {
		size_t n = strcspn(at, "|");

		if (n == size && !memcmp(at, text, n))
			return true;
		at += n + (at[n] == '|');
	}
	return false;
}

static int read_choice(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	if (dap_json_str(v, ret->text, sizeof(ret->text)) && is_choice(a->values, ret->text))
		return 0;
	out_fmt(why, "argument \"%s\" must be one of %s", a->name, a->values);
	return -EINVAL;
}

static int read_text(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	char what[80], copy[sizeof(ret->text)];
	bool good;

	/* A row's number is a wave, and an assistant may well write it as a number. */
	if (v.text[0] != '"' && v.size < sizeof(ret->text) && v.text[0] >= '0' && v.text[0] <= '9') {
		memcpy(ret->text, v.text, v.size);
		ret->text[v.size] = '\0';
		return 0;
	}
	good = dap_json_str(v, ret->text, sizeof(ret->text)) && ret->text[0] && strlen(ret->text) <= a->max;
	if (good) {
		strcpy(copy, ret->text);
		str_make_printable(copy);
		good = !strcmp(copy, ret->text);
	}
	snprintf(what, sizeof(what), "a string of 1 to %u printable bytes", a->max);
	return good ? 0 : wrong(why, a, what);
}

static int read_address(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	if (v.text[0] == '"' && dap_json_str(v, ret->text, sizeof(ret->text)) &&
	    str_to_hex64(ret->text, &ret->number) == 0)
		return 0;
	return wrong(why, a, "a string such as \"0x7f0000001000\"");
}

static int read_pids(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	struct dap_json item;
	size_t used = 0, n = 0;
	uint64_t pid;

	for (; v.text[0] == '[' && (item = dap_json_item(v, n)).text; n++) {
		if (n >= a->max || !read_whole(item, &pid) || !pid || pid > PID_MAX)
			break;
		used += (size_t)snprintf(ret->text + used, sizeof(ret->text) - used, "%s%" PRIu64, n ? "," : "", pid);
	}
	/* What stands behind the last good one is wrong, or too much. */
	if (n && v.text[0] == '[' && !dap_json_item(v, n).text)
		return 0;
	return wrong(why, a, "an array of 1 to 64 process ids");
}

static int read_value(const struct mcp_arg *a, struct dap_json v, struct mcp_value *ret, struct out *why)
{
	static int (*const readers[])(const struct mcp_arg *, struct dap_json, struct mcp_value *, struct out *) = {
		[MCP_ARG_UINT] = read_number,	[MCP_ARG_BOOL] = read_bool,	  [MCP_ARG_TEXT] = read_text,
		[MCP_ARG_CHOICE] = read_choice, [MCP_ARG_ADDRESS] = read_address, [MCP_ARG_PIDS] = read_pids,
	};

	ret->given = true;
	return readers[a->kind](a, v, ret, why);
}

/* The argument at a position: of the tool, then of every tool; NULL behind the last. */
static const struct mcp_arg *arg_at(const struct mcp_arg *args, size_t i)
{
	while (args->name && i) {
		args++;
		i--;
	}
	if (args->name)
		return args;
	for (args = mcp_args_common; args->name && i; i--)
		args++;
	return args->name ? args : NULL;
}

static void put_names(struct out *why, const struct mcp_arg *args)
{
	const struct mcp_arg *a;

	out_str(why, "; there are");
	for (size_t i = 0; (a = arg_at(args, i)); i++)
		out_fmt(why, "%s %s", i ? "," : "", a->name);
}

/* Whether every member has a name that the tool knows: a misspelt option must not be left out silently. */
static int check_names(const struct mcp_arg *args, struct dap_json given, struct out *why)
{
	char name[NAME_SIZE];
	struct rpc_scan s;
	struct dap_json value;

	rpc_scan_init(&s, given.text, given.size, DEPTH_MAX);
	rpc_scan_next(&s);
	while (rpc_scan_next(&s) == RPC_TOKEN_NAME) {
		const struct mcp_arg *a = NULL;

		rpc_scan_string(s.data + s.start, s.pos - s.start, name, sizeof(name));
		for (size_t i = 0; (a = arg_at(args, i)) && strcmp(a->name, name); i++)
			continue;
		if (!a) {
			str_make_printable(name);
			out_fmt(why, "unknown argument \"%s\"", name);
			put_names(why, args);
			return -EINVAL;
		}
		if (!rpc_scan_rest(&s, rpc_scan_next(&s), &value.text, &value.size))
			break;
	}
	return 0;
}

int mcp_args_read(const struct mcp_arg *args, struct dap_json given, struct mcp_value ret[MCP_ARGS_MAX],
		  struct out *why)
{
	const struct mcp_arg *a;
	bool goes_on;
	int r = 0;

	memset(ret, 0, MCP_ARGS_MAX * sizeof(ret[0]));
	if (given.text && given.text[0] != '{') {
		out_str(why, "arguments must be an object");
		return -EINVAL;
	}
	if (given.text)
		r = check_names(args, given, why);
	/* A call for the rest of an answer needs nothing else. */
	goes_on = dap_json_has(dap_json_get(given, MCP_ARG_CURSOR));
	for (size_t i = 0; r == 0 && i < MCP_ARGS_MAX && (a = arg_at(args, i)); i++) {
		struct dap_json v = dap_json_get(given, a->name);

		ret[i].number = a->preset;
		if (dap_json_has(v)) {
			r = read_value(a, v, &ret[i], why);
		} else if (a->required && !goes_on) {
			out_fmt(why, "argument \"%s\" is missing", a->name);
			r = -EINVAL;
		}
	}
	return r;
}

const struct mcp_value *mcp_arg_get(const struct mcp_arg *args, const struct mcp_value *values, const char *name)
{
	static const struct mcp_value none;
	const struct mcp_arg *a;

	for (size_t i = 0; i < MCP_ARGS_MAX && (a = arg_at(args, i)); i++)
		if (!strcmp(a->name, name))
			return &values[i];
	return &none;
}
