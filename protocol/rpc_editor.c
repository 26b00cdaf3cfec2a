/* SPDX-License-Identifier: MIT */
/* Looks for the members that requests of the Debug Adapter Protocol have; copies nothing. */
#include "protocol/rpc_editor.h"

#include <string.h>

#include "base/cleanup.h"
#include "protocol/rpc_scan.h"

/* The value of a member; its text is NULL where the object lacks it. */
struct piece {
	const char *text;
	size_t size;
	enum rpc_token token;
};

static bool is_string(const char *text, size_t size, const char *value)
{
	char got[16];

	return rpc_scan_string(text, size, got, sizeof(got)) && !strcmp(got, value);
}

/*
 * Find the members of these names in an object; of a name that is given twice, the last one counts.
 * @return false if the text is not one object.
 */
static bool find_members(const char *text, size_t size, const char *const names[],
			 struct piece *ret, size_t n)
{
	struct rpc_scan s;
	enum rpc_token t;

	rpc_scan_init(&s, text, size, RPC_SCAN_DEPTH_MAX);
	if (rpc_scan_next(&s) != RPC_TOKEN_OBJECT)
		return false;
	while ((t = rpc_scan_next(&s)) == RPC_TOKEN_NAME) {
		size_t name = s.start, name_size = s.pos - s.start;
		struct piece value = { .token = rpc_scan_next(&s) };

		if (!rpc_scan_rest(&s, value.token, &value.text, &value.size))
			return false;
		for (size_t i = 0; i < n; i++)
			if (is_string(text + name, name_size, names[i]))
				ret[i] = value;
	}
	return t == RPC_TOKEN_OBJECT_END && rpc_scan_next(&s) == RPC_TOKEN_END;
}

bool rpc_editor_request_parse(const char *text, size_t size, struct rpc_editor_request *ret)
{
	enum { TYPE, SEQ, COMMAND, JSONRPC };
	static const char *const names[] = { "type", "seq", "command", "jsonrpc" };
	struct piece m[ARRAY_SIZE(names)] = { 0 };

	if (!find_members(text, size, names, m, ARRAY_SIZE(m)) || m[JSONRPC].text ||
	    m[TYPE].token != RPC_TOKEN_STRING ||
	    !is_string(m[TYPE].text, m[TYPE].size, "request") || m[SEQ].token != RPC_TOKEN_NUMBER ||
	    m[COMMAND].token != RPC_TOKEN_STRING)
		return false;
	*ret = (struct rpc_editor_request){ .seq = m[SEQ].text, .seq_size = m[SEQ].size,
					    .command = m[COMMAND].text, .command_size = m[COMMAND].size };
	return true;
}
