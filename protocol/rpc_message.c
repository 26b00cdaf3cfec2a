/* SPDX-License-Identifier: MIT */
/*
 * The envelopes of JSON-RPC 2.0.  The scanner finds the members of each message; their values stay
 * pieces of the body, so that a front can hand params and results on without building a tree.
 */
#include "protocol/rpc_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "protocol/rpc_codec.h"
#include "protocol/rpc_scan.h"
#include "rpc_gen.h"

/* The value of one member, as a piece of the body. */
struct span {
	enum rpc_token token; /* The value's first token; RPC_TOKEN_BAD: the member is absent. */
	const char *text;
	size_t size;
};

enum member {
	MEMBER_JSONRPC,
	MEMBER_ID,
	MEMBER_METHOD,
	MEMBER_PARAMS,
	MEMBER_RESULT,
	MEMBER_ERROR,
	MEMBER_COUNT
};

static const char *const member_names[] = {
	"jsonrpc", "id", "method", "params", "result", "error"
};

struct envelope {
	struct span members[MEMBER_COUNT];
	bool twice; /* Some member of these names is given twice. */
};

/* The enum member of the name just read; MEMBER_COUNT for other names. */
static void find_slot(const struct rpc_scan *s, size_t *ret_slot)
{
	char name[16];

	*ret_slot = MEMBER_COUNT;
	if (!rpc_scan_string(s->data + s->start, s->pos - s->start, name, sizeof(name)))
		return;
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if (!strcmp(name, member_names[i]))
			*ret_slot = i;
}

/* Read an object whose brace was just read.  Members of other names are allowed and skipped. */
static bool read_envelope(struct rpc_scan *s, struct envelope *ret)
{
	enum rpc_token t;

	*ret = (struct envelope){ 0 };
	while ((t = rpc_scan_next(s)) == RPC_TOKEN_NAME) {
		struct span value;
		size_t slot;

		find_slot(s, &slot);
		value.token = rpc_scan_next(s);
		if (value.token == RPC_TOKEN_BAD ||
		    !rpc_scan_rest(s, value.token, &value.text, &value.size))
			return false;
		if (slot == MEMBER_COUNT)
			continue;
		if (ret->members[slot].token != RPC_TOKEN_BAD)
			ret->twice = true;
		ret->members[slot] = value;
	}
	return t == RPC_TOKEN_OBJECT_END;
}

static void bad_request(struct rpc_request *r, int32_t code, const char *problem, const char *hint)
{
	r->code = code;
	r->problem = problem;
	r->hint = hint;
}

static bool is_version_2(const struct span *s)
{
	char text[8];

	return s->token == RPC_TOKEN_STRING &&
	       rpc_scan_string(s->text, s->size, text, sizeof(text)) && !strcmp(text, "2.0");
}

static bool is_id(const struct span *s)
{
	return (s->token == RPC_TOKEN_STRING || s->token == RPC_TOKEN_NUMBER ||
		s->token == RPC_TOKEN_NULL) &&
	       s->size <= RPC_ID_MAX;
}

static bool is_empty_array(const struct span *s)
{
	struct rpc_scan scan;

	rpc_scan_init(&scan, s->text, s->size, RPC_DEPTH_MAX);
	return rpc_scan_next(&scan) == RPC_TOKEN_ARRAY &&
	       rpc_scan_next(&scan) == RPC_TOKEN_ARRAY_END;
}

/* Take the params of a request: an object, or nothing, for which null and [] count as well. */
static void read_params(const struct span *s, struct rpc_request *ret)
{
	switch (s->token) {
	case RPC_TOKEN_OBJECT:
		ret->params = s->text;
		ret->params_size = s->size;
		return;
	case RPC_TOKEN_BAD:
	case RPC_TOKEN_NULL:
		return;
	case RPC_TOKEN_ARRAY:
		if (!is_empty_array(s))
			bad_request(ret, RPC_ERROR_INVALID_PARAMS,
				    "params: positional parameters are not supported",
				    "send an object with the names of the parameters");
		return;
	default:
		bad_request(ret, RPC_ERROR_INVALID_REQUEST, "params must be an object", NULL);
	}
}

/* Judge an envelope as a request.  The id is taken first, so that an error can be answered. */
static void read_request(const struct envelope *e, struct rpc_request *ret)
{
	const struct span *id = &e->members[MEMBER_ID], *method = &e->members[MEMBER_METHOD];
	bool has_id = id->token != RPC_TOKEN_BAD;

	*ret = (struct rpc_request){ 0 };
	if (has_id && is_id(id)) {
		ret->id = id->text;
		ret->id_size = id->size;
	}
	if (e->twice)
		bad_request(ret, RPC_ERROR_INVALID_REQUEST, "a member is given twice", NULL);
	else if (has_id && !ret->id)
		bad_request(ret, RPC_ERROR_INVALID_REQUEST,
			    "id must be a string of at most 256 bytes, a number or null", NULL);
	else if (!is_version_2(&e->members[MEMBER_JSONRPC]))
		bad_request(ret, RPC_ERROR_INVALID_REQUEST, "jsonrpc must be \"2.0\"",
			    "this agent speaks JSON-RPC 2.0");
	else if (method->token != RPC_TOKEN_STRING)
		bad_request(ret, RPC_ERROR_INVALID_REQUEST, "method must be a string", NULL);
	else if (!rpc_scan_string(method->text, method->size, ret->method, sizeof(ret->method)))
		bad_request(ret, RPC_ERROR_METHOD_NOT_FOUND,
			    "no method has a name longer than 63 bytes or with a NUL character",
			    NULL);
	else
		read_params(&e->members[MEMBER_PARAMS], ret);
}

/* Read one request whose first token was just read.  @return false if the text is not JSON. */
static bool read_element(struct rpc_scan *s, enum rpc_token first, struct rpc_request *ret)
{
	struct envelope e;
	const char *text;
	size_t size;

	if (first == RPC_TOKEN_OBJECT) {
		if (!read_envelope(s, &e))
			return false;
		read_request(&e, ret);
		return true;
	}
	if (first == RPC_TOKEN_BAD || !rpc_scan_rest(s, first, &text, &size))
		return false;
	*ret = (struct rpc_request){ 0 };
	bad_request(ret, RPC_ERROR_INVALID_REQUEST, "a request must be an object", NULL);
	return true;
}

static int parse_failure(const struct rpc_scan *s, struct agent_err *err)
{
	agent_err_set(err, RPC_ERROR_PARSE_ERROR, 0, NULL, NULL, "not valid JSON at byte %zu: %s",
		      s->pos, s->problem);
	return -EINVAL;
}

static int refuse_batch(struct agent_err *err, int32_t code, const char *problem)
{
	agent_err_set(err, code, 0, NULL, NULL, "%s", problem);
	return -EINVAL;
}

static int add_request(struct rpc_message *m, const struct rpc_request *r, struct agent_err *err)
{
	struct rpc_request *grown;

	/* The array has room for 1, 4, 16 or 64 requests, and is full at these numbers. */
	if (m->n == 0 || m->n == 1 || m->n == 4 || m->n == 16) {
		grown = realloc(m->requests, (m->n ? m->n * 4 : 1) * sizeof(*grown));
		if (!grown)
			return agent_err_no_memory(err, NULL);
		m->requests = grown;
	}
	m->requests[m->n++] = *r;
	return 0;
}

static int parse_batch(struct rpc_scan *s, struct rpc_message *ret, struct agent_err *err)
{
	enum rpc_token t;
	struct rpc_request one;
	int r;

	ret->batch = true;
	while ((t = rpc_scan_next(s)) != RPC_TOKEN_ARRAY_END) {
		if (!read_element(s, t, &one))
			return parse_failure(s, err);
		if (ret->n == RPC_BATCH_MAX)
			return refuse_batch(err, RPC_ERROR_INVALID_REQUEST,
					    "a batch may hold 64 requests");
		r = add_request(ret, &one, err);
		if (r < 0)
			return r;
	}
	if (!ret->n)
		return refuse_batch(err, RPC_ERROR_INVALID_REQUEST, "an empty batch");
	return 0;
}

int rpc_message_parse(const char *body, size_t size, struct rpc_message *ret,
		      struct agent_err *err)
{
	struct rpc_scan s;
	enum rpc_token t;
	int r = 0;

	*ret = (struct rpc_message){ 0 };
	rpc_scan_init(&s, body, size, RPC_DEPTH_MAX);
	t = rpc_scan_next(&s);
	if (t == RPC_TOKEN_ARRAY) {
		r = parse_batch(&s, ret, err);
	} else {
		if (!read_element(&s, t, &ret->one))
			return parse_failure(&s, err);
		ret->n = 1;
		ret->requests = &ret->one;
	}
	if (!r && rpc_scan_next(&s) != RPC_TOKEN_END)
		return parse_failure(&s, err);
	return r;
}

void rpc_message_deinit(struct rpc_message *m)
{
	if (m->batch)
		free(m->requests);
	*m = (struct rpc_message){ 0 };
}

bool rpc_request_wants_reply(const struct rpc_request *r)
{
	return r->id || r->code == RPC_ERROR_INVALID_REQUEST;
}

void rpc_request_error(const struct rpc_request *r, struct agent_err *ret)
{
	agent_err_set(ret, r->code, 0, NULL, r->hint, "%s", r->problem);
}

int rpc_reply_parse(const char *body, size_t size, struct rpc_reply *ret)
{
	const struct span *result, *error, *method, *value;
	struct rpc_reply reply = { 0 };
	struct envelope e;
	struct rpc_scan s;

	rpc_scan_init(&s, body, size, RPC_DEPTH_MAX);
	if (rpc_scan_next(&s) != RPC_TOKEN_OBJECT || !read_envelope(&s, &e) ||
	    rpc_scan_next(&s) != RPC_TOKEN_END || e.twice ||
	    !is_version_2(&e.members[MEMBER_JSONRPC]))
		return -EINVAL;
	result = &e.members[MEMBER_RESULT];
	error = &e.members[MEMBER_ERROR];
	method = &e.members[MEMBER_METHOD];
	if (method->token == RPC_TOKEN_STRING && e.members[MEMBER_ID].token == RPC_TOKEN_BAD) {
		reply.kind = RPC_REPLY_NOTIFICATION;
		value = &e.members[MEMBER_PARAMS];
		rpc_scan_string(method->text, method->size, reply.method, sizeof(reply.method));
	} else {
		/* A reply has an id and either a result or an error, and never both. */
		if (method->token != RPC_TOKEN_BAD || !is_id(&e.members[MEMBER_ID]) ||
		    (result->token == RPC_TOKEN_BAD) == (error->token == RPC_TOKEN_BAD))
			return -EINVAL;
		reply.kind = result->token == RPC_TOKEN_BAD ? RPC_REPLY_ERROR : RPC_REPLY_RESULT;
		value = result->token == RPC_TOKEN_BAD ? error : result;
		reply.id = e.members[MEMBER_ID].text;
		reply.id_size = e.members[MEMBER_ID].size;
	}
	reply.value = value->text;
	reply.value_size = value->size;
	*ret = reply;
	return 0;
}

/* Append the start that results and errors share. */
static void begin(struct out *o, const char *id, size_t id_size)
{
	out_str(o, "{\"jsonrpc\":\"2.0\",\"id\":");
	out_bytes(o, id ? id : "null", id ? id_size : 4);
}

void rpc_message_request(struct out *o, uint64_t id, const char *method, const char *params,
			 size_t params_size)
{
	out_str(o, "{\"jsonrpc\":\"2.0\",\"id\":");
	out_u64(o, id);
	out_str(o, ",\"method\":");
	out_json_str(o, method, strlen(method));
	if (params_size) {
		out_str(o, ",\"params\":");
		out_bytes(o, params, params_size);
	}
	out_char(o, '}');
}

void rpc_message_result_begin(struct out *o, const char *id, size_t id_size)
{
	begin(o, id, id_size);
	out_str(o, ",\"result\":");
}

void rpc_message_result_end(struct out *o)
{
	out_char(o, '}');
}

void rpc_message_result(struct out *o, const char *id, size_t id_size, const char *result,
			size_t result_size)
{
	rpc_message_result_begin(o, id, id_size);
	out_bytes(o, result, result_size);
	rpc_message_result_end(o);
}

void rpc_message_error(struct out *o, const char *id, size_t id_size, const struct agent_err *err)
{
	begin(o, id, id_size);
	out_str(o, ",\"error\":");
	agent_err_encode(o, err);
	out_char(o, '}');
}

void rpc_message_notification_begin(struct out *o, const char *method)
{
	out_str(o, "{\"jsonrpc\":\"2.0\",\"method\":");
	out_json_str(o, method, strlen(method));
	out_str(o, ",\"params\":");
}

void rpc_message_notification(struct out *o, const char *method, const char *params,
			      size_t params_size)
{
	rpc_message_notification_begin(o, method);
	out_bytes(o, params_size ? params : "{}", params_size ? params_size : 2);
	out_char(o, '}');
}
