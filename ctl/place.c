/* SPDX-License-Identifier: MIT */
#include "ctl/place.h"

#include "base/out.h"

/* No text of a document contains it: rpc_json_parse() keeps NUL out, the schema all else. */
#define SEPARATOR '\n'

const char *place_reasons(struct rpc_arena *a, const struct rpc_group *g)
{
	auto_out struct out o;

	out_init(&o, 0);
	for (size_t i = 0; i < g->n_reasons; i++) {
		out_str(&o, i ? "," : "");
		out_str(&o, rpc_enum_name(&rpc_stop_reason_enum, g->reasons[i]));
	}
	return out_error(&o) ? NULL : rpc_arena_strndup(a, o.data ? o.data : "", o.size);
}

bool place_is_faulting(const struct rpc_group *g)
{
	for (size_t i = 0; i < g->n_reasons; i++)
		switch (g->reasons[i]) {
		case RPC_STOP_REASON_MEMORY_VIOLATION:
		case RPC_STOP_REASON_ADDRESS_ERROR:
		case RPC_STOP_REASON_ILLEGAL_INSTRUCTION:
		case RPC_STOP_REASON_MATH_ERROR:
		case RPC_STOP_REASON_ASSERT:
			return true;
		default:
			break;
		}
	return false;
}

const char *place_name(struct rpc_arena *a, const struct rpc_group *g)
{
	return rpc_arena_printf(a, "0x%llx", (unsigned long long)g->pc);
}

bool place_is_line(const struct rpc_group *g)
{
	return false;
}

size_t place_path(struct rpc_arena *a, const struct rpc_group *g, const char *const **ret)
{
	const char **path = rpc_arena_array(a, 1, sizeof(*path));

	if (!path || !(path[0] = place_name(a, g)))
		return 0;
	*ret = path;
	return 1;
}

const char *place_key(struct rpc_arena *a, const struct rpc_group *g, bool device)
{
	const char *const *path;
	size_t n = place_path(a, g, &path);
	auto_out struct out o;

	out_init(&o, 0);
	for (size_t i = 0; i < n; i++) {
		out_str(&o, path[i]);
		out_char(&o, SEPARATOR);
	}
	out_fmt(&o, "%u", g->state);
	for (size_t i = 0; i < g->n_reasons; i++)
		out_fmt(&o, ",%u", g->reasons[i]);
	if (device)
		out_fmt(&o, " on %u", g->gpu_id);
	return !n || out_error(&o) ? NULL : rpc_arena_strndup(a, o.data, o.size);
}

const char *place_kernel_key(struct rpc_arena *a, const struct rpc_group *g)
{
	return place_reasons(a, g);
}
