/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/convert.h"

#include "base/out.h"

enum rpc_exception *convert_exceptions(struct rpc_arena *a, uint64_t mask, size_t *ret_n)
{
	enum rpc_exception *list = rpc_arena_array(a, 64, sizeof(*list));
	size_t n = 0;

	for (int code = 1; list && code <= 64; code++)
		if (mask >> (code - 1) & 1 && rpc_exception_name(code))
			list[n++] = (enum rpc_exception)code;
	*ret_n = n;
	return list;
}

const char *convert_exception_words(struct rpc_arena *a, const enum rpc_exception *list, size_t n)
{
	auto_out struct out text;

	out_init(&text, 0);
	for (size_t i = 0; i < n; i++)
		for (size_t v = 0; v < rpc_exception_enum.n; v++)
			if (rpc_exception_enum.values[v].value == (int64_t)list[i])
				out_fmt(&text, "%s%s", text.size ? " " : "",
					rpc_exception_enum.values[v].doc);
	return rpc_arena_strdup(a, text.data ? text.data : "");
}

enum rpc_trap *convert_traps(struct rpc_arena *a, uint32_t mask, size_t *ret_n)
{
	enum rpc_trap *list = rpc_arena_array(a, 32, sizeof(*list));
	size_t n = 0;

	for (int bit = 0; list && bit < 32; bit++)
		if (mask >> bit & 1 && rpc_trap_name(INT64_C(1) << bit))
			list[n++] = (enum rpc_trap)(UINT32_C(1) << bit);
	*ret_n = n;
	return list;
}

enum rpc_flag *convert_flags(struct rpc_arena *a, uint32_t mask, size_t *ret_n)
{
	enum rpc_flag *list = rpc_arena_array(a, 32, sizeof(*list));
	size_t n = 0;

	for (int bit = 0; list && bit < 32; bit++)
		if (mask >> bit & 1 && rpc_flag_name(INT64_C(1) << bit))
			list[n++] = (enum rpc_flag)(UINT32_C(1) << bit);
	*ret_n = n;
	return list;
}

uint64_t convert_exception_mask(const enum rpc_exception *list, size_t n)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= TARGET_EXCEPTION_BIT(list[i]);
	return mask;
}

uint32_t convert_trap_mask(const enum rpc_trap *list, size_t n)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint32_t)list[i];
	return mask;
}

uint32_t convert_flag_mask(const enum rpc_flag *list, size_t n)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint32_t)list[i];
	return mask;
}
