/* SPDX-License-Identifier: MIT */
/*
 * Copies tokens and puts its own white space between them: numbers and strings keep their spelling,
 * and the memory used does not grow with the text.
 */
#include "protocol/rpc_format.h"

#include <errno.h>
#include <stdbool.h>

#include "base/out.h"
#include "protocol/rpc_scan.h"

static void new_line(struct out *o, unsigned depth)
{
	out_char(o, '\n');
	while (depth--)
		out_bytes(o, "  ", 2);
}

/* Append what goes between the previous token and this one; RPC_TOKEN_END stands for no token. */
static void separate(struct out *o, bool pretty, enum rpc_token before, enum rpc_token t,
		     unsigned depth)
{
	bool opened = before == RPC_TOKEN_OBJECT || before == RPC_TOKEN_ARRAY;
	bool closes = t == RPC_TOKEN_OBJECT_END || t == RPC_TOKEN_ARRAY_END;

	if (before == RPC_TOKEN_END)
		return;
	if (before == RPC_TOKEN_NAME) {
		out_str(o, pretty ? ": " : ":");
		return;
	}
	if (opened && closes)
		return;
	if (!opened && !closes)
		out_char(o, ',');
	if (pretty)
		new_line(o, depth);
}

int rpc_format(struct out *o, const char *text, size_t size, enum rpc_format format)
{
	enum rpc_token t, before = RPC_TOKEN_END;
	struct rpc_scan s;

	rpc_scan_init(&s, text, size, RPC_SCAN_DEPTH_MAX);
	while ((t = rpc_scan_next(&s)) != RPC_TOKEN_END) {
		unsigned inside = s.depth;

		if (t == RPC_TOKEN_BAD)
			return -EINVAL;
		/* The scanner counts a container as open already; its brace stands one level up. */
		if (t == RPC_TOKEN_OBJECT || t == RPC_TOKEN_ARRAY)
			inside--;
		separate(o, format == RPC_FORMAT_PRETTY, before, t, inside);
		out_bytes(o, text + s.start, s.pos - s.start);
		before = t;
		if (out_error(o))
			return out_error(o);
	}
	return out_error(o);
}
