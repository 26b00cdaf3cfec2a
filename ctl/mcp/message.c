/* SPDX-License-Identifier: MIT */
#include "ctl/mcp/message.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/rpc_scan.h"

/* Levels of nesting in a message; what is deeper is refused as a whole. */
#define DEPTH_MAX 32
#define NAME_SIZE 16

/* The members of a message that mean something; text is NULL where there is none. */
struct members {
	struct dap_json jsonrpc, id, method, params, result, error;
};

__attribute__((format(printf, 3, 4)))
static int problem_set(struct mcp_problem *problem, int code, const char *fmt, ...)
{
	va_list ap;

	problem->code = code;
	va_start(ap, fmt);
	vsnprintf(problem->text, sizeof(problem->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Whether all of the text is one value. */
static int check(const char *text, size_t size, enum rpc_token *ret_first, struct mcp_problem *problem)
{
	struct rpc_scan s;
	enum rpc_token t;

	rpc_scan_init(&s, text, size, DEPTH_MAX);
	*ret_first = t = rpc_scan_next(&s);
	while (t != RPC_TOKEN_BAD && t != RPC_TOKEN_END)
		t = rpc_scan_next(&s);
	if (t == RPC_TOKEN_END)
		return 0;
	return problem_set(problem, MCP_PARSE_ERROR, "the line is not JSON: byte %zu: %s", s.pos, s.problem);
}

/* Where to put a member; NULL for one that means nothing. */
static struct dap_json *place_of(struct members *m, const char *name)
{
	const struct {
		const char *name;
		struct dap_json *place;
	} table[] = {
		{ "jsonrpc", &m->jsonrpc }, { "id", &m->id },	      { "method", &m->method },
		{ "params", &m->params },   { "result", &m->result }, { "error", &m->error },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].name, name))
			return table[i].place;
	return NULL;
}

/* Of a text that check() has accepted, and that is an object.  Of a member that is given twice, the last one counts. */
static void collect_members(const char *text, size_t size, struct members *ret)
{
	char name[NAME_SIZE];
	struct dap_json value;
	struct rpc_scan s;

	rpc_scan_init(&s, text, size, DEPTH_MAX);
	rpc_scan_next(&s);
	while (rpc_scan_next(&s) == RPC_TOKEN_NAME) {
		bool whole = rpc_scan_string(s.data + s.start, s.pos - s.start, name, sizeof(name));
		struct dap_json *place = whole ? place_of(ret, name) : NULL;

		if (!rpc_scan_rest(&s, rpc_scan_next(&s), &value.text, &value.size))
			return;
		if (place)
			*place = value;
	}
}

static int read_id(struct dap_json v, struct mcp_message *ret, struct mcp_problem *problem)
{
	if (!v.text)
		return 0;
	if (v.text[0] != '"' && v.text[0] != '-' && (v.text[0] < '0' || v.text[0] > '9'))
		return problem_set(problem, MCP_INVALID_REQUEST, "id must be a string or a number");
	if (v.size >= sizeof(ret->id))
		return problem_set(problem, MCP_INVALID_REQUEST, "id is longer than %zu bytes", sizeof(ret->id) - 1);
	memcpy(ret->id, v.text, v.size);
	ret->id[v.size] = '\0';
	return 0;
}

int mcp_message_parse(const char *text, size_t size, struct mcp_message *ret, struct mcp_problem *problem)
{
	struct members m = { 0 };
	enum rpc_token first;
	char version[8];
	int r;

	*ret = (struct mcp_message){ 0 };
	r = check(text, size, &first, problem);
	if (r < 0)
		return r;
	if (first == RPC_TOKEN_ARRAY)
		return problem_set(problem, MCP_INVALID_REQUEST,
				       "no revision of the protocol that is spoken here has batches: send each message "
				       "as a line of its own");
	if (first != RPC_TOKEN_OBJECT)
		return problem_set(problem, MCP_INVALID_REQUEST, "a message is a JSON object");
	collect_members(text, size, &m);
	r = read_id(m.id, ret, problem);
	if (r < 0)
		return r;
	if (!dap_json_str(m.jsonrpc, version, sizeof(version)) || strcmp(version, "2.0") != 0)
		return problem_set(problem, MCP_INVALID_REQUEST, "jsonrpc must be \"2.0\"");
	/* Nothing is asked of clients, so that what they answer is of no use. */
	if (!m.method.text && (m.result.text || m.error.text)) {
		ret->kind = MCP_RESPONSE;
		return 0;
	}
	if (!dap_json_str(m.method, ret->method, sizeof(ret->method)))
		return problem_set(problem, MCP_INVALID_REQUEST, "method must be a string of at most %zu bytes",
				       sizeof(ret->method) - 1);
	if (m.params.text && m.params.text[0] != '{')
		return problem_set(problem, MCP_INVALID_PARAMS, "params must be an object");
	ret->params = m.params;
	ret->kind = m.id.text ? MCP_REQUEST : MCP_NOTIFICATION;
	return 0;
}
