/* SPDX-License-Identifier: MIT */
/*
 * The parts of a call that do not depend on its method: the text of the parameters becomes the
 * method's structure, and the structure of the result becomes the text of the reply.
 */
#include "protocol/rpc_dispatch.h"

#include <errno.h>
#include <string.h>

#include "base/out.h"
#include "protocol/rpc_message.h"

const struct rpc_error_info *rpc_error_find(int32_t code)
{
	for (size_t i = 0; i < RPC_ERROR_COUNT; i++)
		if (rpc_errors[i].code == code)
			return &rpc_errors[i];
	return NULL;
}

const struct rpc_notification_info *rpc_notification_find(const char *name)
{
	for (size_t i = 0; i < RPC_NOTIFICATION_COUNT; i++)
		if (!strcmp(rpc_notifications[i].name, name))
			return &rpc_notifications[i];
	return NULL;
}

/* Say why the arena is exhausted: a client that asked for too much is told so. */
static int no_memory(const struct rpc_arena *arena, struct agent_err *err)
{
	if (rpc_arena_error(arena) == -EFBIG)
		agent_err_set(err, RPC_ERROR_TOO_LARGE, 0, NULL, NULL,
			      "the call needs more memory than one call may use");
	else
		agent_err_no_memory(err, NULL);
	return rpc_arena_error(arena);
}

static int decode(enum rpc_method m, struct json_object *obj, struct rpc_arena *arena, void **ret,
		  struct agent_err *err)
{
	const struct rpc_struct *structure = rpc_methods[m].params;
	struct rpc_decoder d;
	void *p = rpc_arena_alloc(arena, structure->size);
	int r;

	if (!p)
		return no_memory(arena, err);
	rpc_decoder_init_strict(&d, arena, err);
	r = rpc_decode_struct(&d, structure, obj, p);
	if (!r)
		*ret = p;
	return r;
}

int rpc_params_decode(enum rpc_method m, const char *text, size_t size, struct rpc_arena *arena,
		      void **ret, struct agent_err *err)
{
	struct json_object *obj = NULL;
	int r;

	if (size) {
		r = rpc_json_parse(text, size, &obj, err);
		/* The envelope was valid JSON: only its parameters are wrong. */
		if (r == -EINVAL)
			agent_err_set(err, RPC_ERROR_INVALID_PARAMS, 0, NULL, NULL,
				      "params: %.200s", err ? err->message : "");
		if (r < 0)
			return r;
	}
	r = decode(m, obj, arena, ret, err);
	rpc_json_put(obj);
	return r;
}

const char *rpc_params_session(enum rpc_method m, const void *params)
{
	size_t offset = rpc_methods[m].session_offset;

	return offset == SIZE_MAX ? NULL : *(const char *const *)((const char *)params + offset);
}

int rpc_dispatch_begin(struct rpc_dispatch *d, bool handled)
{
	int r;

	if (!handled) {
		agent_err_set(d->err, RPC_ERROR_UNSUPPORTED, 0, NULL, NULL,
			      "%s is not available here", rpc_methods[d->method].name);
		return -EOPNOTSUPP;
	}
	r = rpc_params_decode(d->method, d->params_text, d->params_size, d->arena, &d->params,
			      d->err);
	if (r < 0)
		return r;
	d->result = rpc_arena_alloc(d->arena, rpc_methods[d->method].result->size);
	return d->result ? 0 : no_memory(d->arena, d->err);
}

int rpc_dispatch_end(struct rpc_dispatch *d, int r)
{
	if (r > 0)
		return r;
	if (!r) {
		const struct rpc_struct *structure = rpc_methods[d->method].result;

		if (rpc_struct_is_bare(structure))
			out_str(d->reply, *(const char **)d->result);
		else
			rpc_encode_struct(d->reply, structure, d->result);
		r = out_error(d->reply);
		if (r == -EFBIG)
			agent_err_set(d->err, RPC_ERROR_TOO_LARGE, 0, NULL, "ask for less",
				      "the reply is longer than a reply may be");
	}
	if (r < 0 && !d->err->code)
		agent_err_set(d->err, RPC_ERROR_INTERNAL, -r, NULL, NULL, "%s failed",
			      rpc_methods[d->method].name);
	return r;
}

void rpc_notification_encode(struct out *o, enum rpc_notification n,
			     const struct rpc_struct *structure, const void *params)
{
	rpc_message_notification_begin(o, rpc_notifications[n].name);
	rpc_encode_struct(o, structure, params);
	out_char(o, '}');
}
