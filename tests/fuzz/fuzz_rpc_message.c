/* SPDX-License-Identifier: MIT */
#include "fuzzlib.h"

#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "protocol/rpc_editor.h"
#include "protocol/rpc_message.h"

/* The reply to a request is itself a message that a client can read. */
static void answer(const struct rpc_request *q)
{
	auto_out struct out o;
	struct rpc_reply reply;
	struct agent_err err;

	out_init(&o, 0);
	if (q->code) {
		rpc_request_error(q, &err);
		rpc_message_error(&o, q->id, q->id_size, &err);
	} else {
		rpc_message_result(&o, q->id, q->id_size, q->params ? q->params : "{}",
				   q->params ? q->params_size : 2);
	}
	if (rpc_reply_parse(o.data, o.size, &reply) < 0 ||
	    reply.kind != (q->code ? RPC_REPLY_ERROR : RPC_REPLY_RESULT) || !reply.value_size)
		abort();
	if (q->id && (reply.id_size != q->id_size || memcmp(reply.id, q->id, q->id_size)))
		abort();
}

/* A message of the other protocol is none of this one. */
static void tell_apart(const char *text, size_t size, const struct rpc_message *m)
{
	struct rpc_editor_request q;

	if (!rpc_editor_request_parse(text, size, &q))
		return;
	if (q.seq < text || q.seq + q.seq_size > text + size || q.command < text ||
	    q.command + q.command_size > text + size || !q.seq_size || q.command_size < 2)
		abort();
	for (size_t i = 0; m && i < m->n; i++)
		if (!m->requests[i].code)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct agent_err err = { 0 };
	struct rpc_message m;
	struct rpc_reply reply;

	if (rpc_message_parse((const char *)data, size, &m, &err) < 0) {
		if (!err.code)
			abort();
		tell_apart((const char *)data, size, NULL);
	} else {
		tell_apart((const char *)data, size, &m);
		for (size_t i = 0; i < m.n; i++)
			if (rpc_request_wants_reply(&m.requests[i]))
				answer(&m.requests[i]);
	}
	rpc_message_deinit(&m);
	if (!rpc_reply_parse((const char *)data, size, &reply) && reply.kind == RPC_REPLY_ERROR)
		(void)agent_err_decode_text(reply.value, reply.value_size, &err);
	return 0;
}
