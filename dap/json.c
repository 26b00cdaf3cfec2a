/* SPDX-License-Identifier: MIT */
/*
 * Values out of a message, found by scanning it anew each time: messages are short, and nothing
 * needs to be freed.
 */
#include "dap/json.h"

#include <string.h>

#include "base/str.h"
#include "protocol/rpc_scan.h"

/* Levels of nesting in a message; what is deeper is refused as a whole. */
#define DEPTH_MAX 32
/* Room for a member's name, and for a number; longer ones match nothing. */
#define NAME_MAX_BYTES 64
#define NUMBER_SIZE 32

bool dap_json_parse(const char *text, size_t size, struct dap_json *ret)
{
	struct rpc_scan s;
	enum rpc_token t;

	rpc_scan_init(&s, text, size, DEPTH_MAX);
	t = rpc_scan_next(&s);
	if (t != RPC_TOKEN_OBJECT)
		return false;
	do
		t = rpc_scan_next(&s);
	while (t != RPC_TOKEN_BAD && t != RPC_TOKEN_END);
	*ret = (struct dap_json){ text, size };
	return t == RPC_TOKEN_END;
}

static bool is_null(struct dap_json v)
{
	return v.size == 4 && !memcmp(v.text, "null", 4);
}

struct dap_json dap_json_get(struct dap_json v, const char *name)
{
	struct dap_json found = { 0 }, value;
	char key[NAME_MAX_BYTES];
	struct rpc_scan s;

	if (!v.text)
		return found;
	rpc_scan_init(&s, v.text, v.size, DEPTH_MAX);
	if (rpc_scan_next(&s) != RPC_TOKEN_OBJECT)
		return found;
	while (rpc_scan_next(&s) == RPC_TOKEN_NAME) {
		/* Of a name that is given twice, the last one counts. */
		bool match = rpc_scan_string(s.data + s.start, s.pos - s.start, key, sizeof(key)) &&
			     !strcmp(key, name);

		if (!rpc_scan_rest(&s, rpc_scan_next(&s), &value.text, &value.size))
			break;
		if (match)
			found = is_null(value) ? (struct dap_json){ 0 } : value;
	}
	return found;
}

struct dap_json dap_json_item(struct dap_json v, size_t i)
{
	struct dap_json value = { 0 };
	struct rpc_scan s;
	enum rpc_token t;

	if (!v.text || i >= DAP_JSON_ITEMS_MAX)
		return value;
	rpc_scan_init(&s, v.text, v.size, DEPTH_MAX);
	if (rpc_scan_next(&s) != RPC_TOKEN_ARRAY)
		return value;
	do {
		t = rpc_scan_next(&s);
		if (t == RPC_TOKEN_ARRAY_END || !rpc_scan_rest(&s, t, &value.text, &value.size))
			return (struct dap_json){ 0 };
	} while (i--);
	return value;
}

bool dap_json_str(struct dap_json v, char *ret, size_t size)
{
	return v.text && v.text[0] == '"' && rpc_scan_string(v.text, v.size, ret, size);
}

/* The text of a number, or of a string that holds one; false if it is too long for either. */
static bool number_text(struct dap_json v, char text[NUMBER_SIZE])
{
	if (!v.text || v.text[0] == '"')
		return dap_json_str(v, text, NUMBER_SIZE);
	if (v.size >= NUMBER_SIZE)
		return false;
	memcpy(text, v.text, v.size);
	text[v.size] = '\0';
	return true;
}

bool dap_json_u64(struct dap_json v, uint64_t *ret)
{
	char text[NUMBER_SIZE];

	return number_text(v, text) && str_to_u64_any(text, ret) == 0;
}

bool dap_json_i64(struct dap_json v, int64_t *ret)
{
	char text[NUMBER_SIZE];
	bool minus;
	uint64_t u;

	if (!number_text(v, text))
		return false;
	minus = text[0] == '-';
	if (str_to_u64_any(text + minus, &u) < 0 || u > INT64_MAX)
		return false;
	*ret = minus ? -(int64_t)u : (int64_t)u;
	return true;
}

bool dap_json_is_true(struct dap_json v)
{
	return v.size == 4 && !memcmp(v.text, "true", 4);
}
