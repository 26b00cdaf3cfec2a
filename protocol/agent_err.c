/* SPDX-License-Identifier: MIT */
/*
 * An error as a C object and as JSON-RPC's error object: `code`, `message` and, in `data`, the name
 * of the code, the errno by its name, the operation and the hint.
 */
#include "protocol/agent_err.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "base/str.h"
#include "rpc_gen.h"

/* Linux has no errno above this (MAX_ERRNO in include/linux/err.h). */
#define ERRNO_MAX 4095

int agent_err_set(struct agent_err *err, int32_t code, int err_no, const char *op, const char *hint,
		  const char *fmt, ...)
{
	struct agent_err fresh = { .code = code, .err = err_no };
	char message[2 * sizeof(err->message)];
	va_list ap;

	if (err) {
		/* The new error is built aside: op, hint and arguments may point into *err. */
		if (op)
			str_copy(fresh.op, sizeof(fresh.op), op);
		if (hint)
			str_copy(fresh.hint, sizeof(fresh.hint), hint);
		va_start(ap, fmt);
		vsnprintf(message, sizeof(message), fmt, ap);
		va_end(ap);
		str_copy(fresh.message, sizeof(fresh.message), message);
		*err = fresh;
	}
	return err_no ? -err_no : -EPROTO;
}

int agent_err_no_memory(struct agent_err *err, const char *op)
{
	return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, op, NULL, "out of memory");
}

void agent_err_prepend(struct agent_err *err, const char *fmt, ...)
{
	char message[2 * sizeof(err->message)];
	va_list ap;
	size_t n;

	if (!err || !err->code)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof(err->message), fmt, ap);
	va_end(ap);
	n = strlen(message);
	snprintf(message + n, sizeof(message) - n, ": %s", err->message);
	str_copy(err->message, sizeof(err->message), message);
}

void agent_err_set_resumed(struct agent_err *err, bool resumed)
{
	if (!err)
		return;
	err->has_resumed = true;
	err->resumed = resumed;
}

const char *agent_err_name(const struct agent_err *err)
{
	const struct rpc_error_info *info = rpc_error_find(err->code);

	if (err->code == AGENT_ERR_UNREACHABLE)
		return "unreachable";
	return info ? info->name : "error";
}

int agent_err_exit(const struct agent_err *err)
{
	const struct rpc_error_info *info = rpc_error_find(err->code);

	if (err->code == AGENT_ERR_UNREACHABLE)
		return 9;
	return info ? info->exit : 1;
}

static void encode_text(struct out *o, const char *name, const char *text)
{
	if (!*text)
		return;
	out_fmt(o, ",\"%s\":", name);
	out_json_str(o, text, strlen(text));
}

void agent_err_encode(struct out *o, const struct agent_err *err)
{
	static const struct agent_err internal = {
		.code = RPC_ERROR_INTERNAL,
		.message = "the agent did not say what went wrong",
	};
	const char *errno_name;

	if (!err || !err->code)
		err = &internal;
	out_str(o, "{\"code\":");
	out_i64(o, err->code);
	out_str(o, ",\"message\":");
	out_json_str(o, err->message, strlen(err->message));
	out_fmt(o, ",\"data\":{\"name\":\"%s\"", agent_err_name(err));
	errno_name = err->err ? strerrorname_np(err->err) : NULL;
	if (errno_name)
		encode_text(o, "errno", errno_name);
	else if (err->err)
		out_fmt(o, ",\"errno\":\"E%d\"", err->err);
	encode_text(o, "op", err->op);
	encode_text(o, "hint", err->hint);
	if (err->vendor) {
		out_str(o, ",\"vendor\":");
		out_i64(o, err->vendor);
	}
	if (err->has_resumed)
		out_fmt(o, ",\"resumed\":%s", err->resumed ? "true" : "false");
	if (err->retry_ms)
		out_fmt(o, ",\"retry_ms\":%u", err->retry_ms);
	out_str(o, "}}");
}

/*
 * The errno of this machine that a name stands for; 0 for none.  Numbers of an errno differ between
 * architectures, which is why the name travels.
 */
static int errno_from_name(const char *name)
{
	const char *known;
	uint64_t v;

	for (int i = 1; i <= ERRNO_MAX; i++) {
		known = strerrorname_np(i);
		if (known && !strcmp(known, name))
			return i;
	}
	/* The encoder writes "E" and the number for an errno that the C library has no name for. */
	if (name[0] == 'E' && !str_to_u64(name + 1, 1, ERRNO_MAX, &v))
		return (int)v;
	return 0;
}

/* The string member of that name; "" if there is none or it is no string. */
static const char *text_of(struct json_object *obj, const char *name)
{
	struct json_object *v;

	if (!json_object_object_get_ex(obj, name, &v) || !json_object_is_type(v, json_type_string))
		return "";
	return json_object_get_string(v);
}

static void decode_data(struct json_object *data, struct agent_err *ret)
{
	struct json_object *v;

	ret->err = errno_from_name(text_of(data, "errno"));
	str_copy(ret->op, sizeof(ret->op), text_of(data, "op"));
	str_copy(ret->hint, sizeof(ret->hint), text_of(data, "hint"));
	if (json_object_object_get_ex(data, "vendor", &v) && json_object_is_type(v, json_type_int))
		ret->vendor = json_object_get_int64(v);
	if (json_object_object_get_ex(data, "resumed", &v) &&
	    json_object_is_type(v, json_type_boolean))
		agent_err_set_resumed(ret, json_object_get_boolean(v));
	if (json_object_object_get_ex(data, "retry_ms", &v) && json_object_is_type(v, json_type_int) &&
	    json_object_get_int64(v) > 0 && json_object_get_int64(v) <= UINT32_MAX)
		ret->retry_ms = (uint32_t)json_object_get_int64(v);
}

/*
 * Read a JSON-RPC error object.
 * @return 0, -EINVAL (@p obj is no error object; @p ret is untouched).
 */
static int agent_err_decode(struct json_object *obj, struct agent_err *ret)
{
	struct json_object *code, *data;
	struct agent_err err = { 0 };
	const char *message;

	if (!json_object_is_type(obj, json_type_object) ||
	    !json_object_object_get_ex(obj, "code", &code) ||
	    !json_object_is_type(code, json_type_int) || !json_object_get_int(code))
		return -EINVAL;
	err.code = json_object_get_int(code);
	message = text_of(obj, "message");
	str_copy(err.message, sizeof(err.message), *message ? message : agent_err_name(&err));
	if (json_object_object_get_ex(obj, "data", &data) &&
	    json_object_is_type(data, json_type_object))
		decode_data(data, &err);
	*ret = err;
	return 0;
}

int agent_err_decode_text(const char *text, size_t size, struct agent_err *ret)
{
	struct json_object *obj;
	int r;

	r = rpc_json_parse(text, size, &obj, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	r = agent_err_decode(obj, ret);
	rpc_json_put(obj);
	return r;
}
