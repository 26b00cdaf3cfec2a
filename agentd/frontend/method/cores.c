/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/cores.h"

#include <errno.h>

#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/session/calls.h"
#include "agentd/frontend/session/worker.h"

#define START_MS 10000
#define CALL_MS	 20000

static void store_started(struct request *r, const struct ipc_started *m, int take_channel)
{
	struct sessions *all = &frontend_of(r)->sessions;
	struct conn *c = r->conn;
	struct agent_err err = { 0 };

	/* The client has gone, or sent several requests at once. */
	if (!c || c->store)
		worker_create_orphan(all, m, take_channel);
	else if ((c->store = worker_create(all, m, IPC_KIND_STORE, 0, 0, take_channel)))
		c->store->client = c;
	if (c && c->store) {
		calls_send(c->store, r, r->params, r->params_size, 0, CALL_MS);
		return;
	}
	agent_err_no_memory(&err, NULL);
	request_fail(r, &err);
}

int cores_call(struct request *r, const char *params, size_t size, struct agent_err *err)
{
	static const struct start_ops ops = { .started = store_started };
	int e;

	if (r->conn->store) {
		calls_send(r->conn->store, r, params, size, 0, CALL_MS);
		return RPC_LATER;
	}
	e = request_keep_params(r, params, size, err);
	if (e < 0)
		return e;
	start_ask(&frontend_of(r)->starts, r, IPC_KIND_STORE, START_MS, &ops);
	return RPC_LATER;
}
