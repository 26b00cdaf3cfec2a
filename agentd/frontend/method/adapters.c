/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/adapters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/frontend/method/frontend.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "protocol/rpc_editor.h"

#define START_MS 10000

/* Keep what was read for the adapter, from the first byte on. */
static int keep_early(const struct conn *c, const char *body, size_t size, int *ret_fd)
{
	auto_out struct out o;

	out_init(&o, 0);
	rpc_wire_write(&o, c->wire.mode, body, size);
	out_bytes(&o, c->wire.data + c->wire.head, c->wire.size - c->wire.head);
	return out_error(&o) ? out_error(&o) : fd_memfd_sealed("editor", o.data, o.size, ret_fd);
}

/*
 * Write a failure as an adapter does that is there (dap/message.c).  The connection closes when it is
 * sent.
 */
static void put_failure(struct request *r, const struct agent_err *err, struct out *text)
{
	auto_out struct out why;

	out_init(&why, 0);
	out_fmt(&why, "%s%s%s%s", err->message, err->hint[0] ? " (" : "", err->hint, err->hint[0] ? ")" : "");
	out_fmt(text, "{\"seq\":1,\"type\":\"response\",\"request_seq\":%s,\"success\":false,\"command\":%s,\"message\":",
		r->id, r->params ? r->params : "\"\"");
	out_json_str(text, why.data ? why.data : "", why.size);
	out_str(text, ",\"body\":{\"error\":{\"id\":1,\"format\":\"{text}\",\"showUser\":true,\"variables\":{\"text\":");
	out_json_str(text, why.data ? why.data : "", why.size);
	out_str(text, "}}}}");
	if (r->conn)
		r->conn->closing = true;
}

/* Give the connection to the adapter, which calls the agent by its channel. */
static void adapter_started(struct request *r, const struct ipc_started *m, int take_channel)
{
	struct conn *c = r->conn;

	request_drop(r);
	/* An adapter leaves when its channel is closed; that of an editor that is gone shall. */
	if (!c)
		close(take_channel);
	else if (conn_hand_over(c, take_channel) < 0)
		conn_close(c);
}

static int adapter_refused(const struct ipc_started *m, struct agent_err *err)
{
	switch (m->verdict) {
	case IPC_VERDICT_OK:
		return 0;
	case IPC_VERDICT_LIMIT:
		return agent_err_set(err, RPC_ERROR_LIMIT, 0, "start adapter",
				     "end another one, or raise [limits] in agentd.conf",
				     "your user has too many debug adapters on the agent's socket");
	case IPC_VERDICT_USER_NAMESPACE:
		return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, EPERM, "start adapter",
				     "run gpu-agentctl dap there",
				     "the editor lives in another user namespace than the agent");
	default:
		return agent_err_set(err, RPC_ERROR_FAILED, -m->status, "start adapter",
				     "see the agent's log",
				     "the agent cannot start a debug adapter");
	}
}

bool adapters_begin(struct frontend *f, struct conn *c, const char *body, size_t size)
{
	static const struct start_ops ops = { .started = adapter_started, .refused = adapter_refused };
	struct agent_err err = { 0 };
	struct rpc_editor_request q;
	struct request *r;
	int e;

	if (c->wire.mode != RPC_WIRE_HEADERS || !rpc_editor_request_parse(body, size, &q))
		return false;
	conn_hold(c);
	r = request_begin(&f->requests, c, q.seq, q.seq_size, put_failure);
	if (!r) {
		c->closing = true;
		conn_request_begun(c);
		conn_request_done(c);
		return true;
	}
	r->params = strndup(q.command, q.command_size);
	e = r->params ? keep_early(c, body, size, &r->early_fd) : -ENOMEM;
	if (e == 0) {
		start_ask(&f->starts, r, IPC_KIND_ADAPTER, START_MS, &ops);
		return true;
	}
	agent_err_set(&err, RPC_ERROR_FAILED, -e, "memfd", NULL,
		      "cannot hand the connection to a debug adapter");
	request_fail(r, &err);
	return true;
}
