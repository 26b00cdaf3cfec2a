/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/rpc/request.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/out.h"
#include "protocol/rpc_message.h"

/* Replies of a batch are collected and sent as one array. */
struct batch {
	struct out text;
	unsigned pending;
	bool any;
};

static struct batch *batch_create(void)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (b)
		out_init(&b->text, 0);
	return b;
}

/* Nothing of it waits any more. */
static void batch_release(const struct batch *b, struct conn *c)
{
	c->batched -= b->text.size;
}

static void batch_append(struct batch *b, struct conn *c, const struct out *text)
{
	batch_release(b, c);
	out_char(&b->text, b->any ? ',' : '[');
	out_bytes(&b->text, text->data, text->size);
	c->batched += b->text.size;
	b->any = true;
}

static void batch_refuse(struct batch *b, struct conn *c, const char *id, size_t id_size)
{
	auto_out struct out text = { 0 };
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TOO_LARGE, 0, NULL, "ask for less in one batch",
		      "too much waits for the rest of its batch");
	out_init(&text, 0);
	rpc_message_error(&text, id, id_size, &err);
	batch_append(b, c, &text);
}

/* One reply less to wait for.  @text is NULL for a notification. */
static void batch_add(struct batch *b, struct conn *c, const char *id, size_t id_size,
		      const struct out *text)
{
	if (c && text && conn_may_keep(c, text->size))
		batch_append(b, c, text);
	else if (c && text)
		batch_refuse(b, c, id, id_size);
	if (--b->pending)
		return;
	if (c)
		batch_release(b, c);
	out_char(&b->text, ']');
	if (c && b->any)
		conn_send(c, &b->text);
	out_deinit(&b->text);
	free(b);
}

static struct request *request_create(struct requests *all, struct conn *c, struct batch *b,
				      const struct rpc_request *rq)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r || (rq->id && !(r->id = strndup(rq->id, rq->id_size)))) {
		free(r);
		return NULL;
	}
	r->all = all;
	r->conn = c;
	r->batch = b;
	r->since_ns = clock_now_ns();
	r->early_fd = r->answer_fd = -1;
	LIST_INSERT_HEAD(&c->requests, r, in_conn);
	conn_request_begun(c);
	return r;
}

struct request *request_begin(struct requests *all, struct conn *c, const char *id, size_t id_size,
			      request_put_error *put_error)
{
	const struct rpc_request rq = { .id = id, .id_size = id_size };
	struct request *r = request_create(all, c, NULL, &rq);

	if (r)
		r->put_error = put_error;
	return r;
}

bool request_brings_fd(const struct conn *c)
{
	const struct request *r;

	LIST_FOREACH(r, &c->requests, in_conn)
		if (r->answer_fd >= 0)
			return true;
	return false;
}

int request_keep_params(struct request *r, const char *params, size_t size, struct agent_err *err)
{
	if (size && !(r->params = malloc(size)))
		return agent_err_no_memory(err, NULL);
	if (size)
		memcpy(r->params, params, size);
	r->params_size = size;
	return 0;
}

void request_own(struct request *r, struct request_list *owner)
{
	if (r->has_owner)
		LIST_REMOVE(r, in_owner);
	r->has_owner = owner != NULL;
	r->owner = NULL;
	if (owner)
		LIST_INSERT_HEAD(owner, r, in_owner);
}

int request_deadline(struct request *r, uint32_t ms, void (*expired)(int, short, void *))
{
	const struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	if (r->timer)
		event_free(r->timer);
	r->timer = event_new(r->all->base, -1, 0, expired, r);
	return r->timer && event_add(r->timer, &tv) == 0 ? 0 : -ENOMEM;
}

void request_orphan(struct request *r)
{
	LIST_REMOVE(r, in_conn);
	/* Nobody will have it. */
	if (r->batch)
		out_deinit(&r->batch->text);
	r->conn = NULL;
}

static size_t id_size(const struct request *r)
{
	return r->id ? strlen(r->id) : 0;
}

static void count_error(struct request_count *count, int32_t code)
{
	for (size_t i = 0; i < RPC_ERROR_COUNT; i++)
		count->failed[i] += rpc_errors[i].code == code;
}

/* Count an answer.  The request of an editor has no method.  @err NULL: it is a result. */
static void count_answer(const struct request *r, const struct agent_err *err)
{
	struct request_count *count = &r->all->counts[r->method];

	if (r->put_error)
		return;
	count->total_ns += clock_now_ns() - r->since_ns;
	if (err)
		count_error(count, err->code);
	else
		count->ok++;
}

void request_wait(struct request *r)
{
	r->is_first = r->conn != NULL;
	if (r->conn)
		conn_wait(r->conn);
}

void request_go_on(struct request *r)
{
	if (r->is_first && r->conn)
		conn_go_on(r->conn);
	r->is_first = false;
}

/* Send the finished text, or drop it, and free the request.  @text NULL: it was sent. */
static void request_finish(struct request *r, struct out *text)
{
	struct conn *c = r->conn;

	r->all->n++;
	request_own(r, NULL);
	if (r->timer)
		event_free(r->timer);
	if (r->early_fd >= 0)
		close(r->early_fd);
	if (c)
		LIST_REMOVE(r, in_conn);
	if (r->batch)
		batch_add(r->batch, c, r->id, id_size(r), r->id ? text : NULL);
	else if (c && r->id && text && r->answer_fd >= 0)
		conn_send_fd(c, text, TAKE_FD(r->answer_fd));
	else if (c && r->id && text)
		conn_send(c, text);
	if (r->answer_fd >= 0)
		close(r->answer_fd);
	request_go_on(r);
	free(r->id);
	free(r->params);
	free(r);
	if (c)
		conn_request_done(c);
}

void request_drop(struct request *r)
{
	request_finish(r, NULL);
}

void request_reply(struct request *r, const char *result, size_t size)
{
	auto_out struct out text = { 0 };

	if (r->answered)
		r->answered(r, result, size, NULL);
	count_answer(r, NULL);
	out_init(&text, 0);
	rpc_message_result(&text, r->id, id_size(r), result, size);
	request_finish(r, &text);
}

/* As request_reply(), but the text goes from the memfd to the client. */
static void reply_from_memfd(struct request *r, struct ipc_message *m)
{
	auto_out struct out begin = { 0 }, end = { 0 };

	count_answer(r, NULL);
	out_init(&begin, 0);
	out_init(&end, 0);
	rpc_message_result_begin(&begin, r->id, id_size(r));
	rpc_message_result_end(&end);
	conn_send_around(r->conn, &begin, m, &end);
	request_finish(r, NULL);
}

void request_reply_message(struct request *r, struct ipc_message *m)
{
	/* The answers of a batch are one message, which is made of copies. */
	if (m->mapped && r->conn && r->id && !r->batch && r->answer_fd < 0 && !r->answered)
		reply_from_memfd(r, m);
	else
		request_reply(r, m->text, (size_t)m->head.size);
}

void request_fail(struct request *r, const struct agent_err *err)
{
	auto_out struct out text = { 0 };

	if (r->answered)
		r->answered(r, NULL, 0, err);
	count_answer(r, err);
	/* Only a result has it. */
	if (r->answer_fd >= 0)
		close(TAKE_FD(r->answer_fd));
	out_init(&text, 0);
	if (r->put_error)
		r->put_error(r, err, &text);
	else
		rpc_message_error(&text, r->id, id_size(r), err);
	request_finish(r, &text);
}

void request_fail_text(struct request *r, const char *error, size_t size)
{
	struct agent_err err;

	/* What a worker says is taken apart and written again, so that it is an error for sure. */
	if (agent_err_decode_text(error, size, &err) < 0) {
		err = (struct agent_err){ 0 };
		agent_err_set(&err, RPC_ERROR_INTERNAL, 0, NULL, NULL,
			      "malformed error from a worker");
	}
	request_fail(r, &err);
}

void request_refuse(struct requests *all, struct conn *c, const struct agent_err *err)
{
	auto_out struct out text = { 0 };

	all->n++;
	count_error(&all->counts[RPC_METHOD_COUNT], err->code);
	out_init(&text, 0);
	rpc_message_error(&text, NULL, 0, err);
	conn_send(c, &text);
}

static void refuse_bad(struct requests *all, struct conn *c, struct batch *b,
		       const struct rpc_request *rq, const struct agent_err *err)
{
	auto_out struct out text = { 0 };

	all->n++;
	count_error(&all->counts[RPC_METHOD_COUNT], err->code);
	out_init(&text, 0);
	rpc_message_error(&text, rq->id, rq->id_size, err);
	if (b)
		batch_add(b, c, rq->id, rq->id_size, rpc_request_wants_reply(rq) ? &text : NULL);
	else if (rpc_request_wants_reply(rq))
		conn_send(c, &text);
}

static void receive_one(struct requests *all, struct conn *c, struct batch *b,
			const struct rpc_request *rq)
{
	struct agent_err err = { 0 };
	struct request *r = NULL;
	int m;

	if (rq->code) {
		rpc_request_error(rq, &err);
		refuse_bad(all, c, b, rq, &err);
		return;
	}
	m = rpc_method_find(rq->method);
	if (m < 0)
		agent_err_set(&err, RPC_ERROR_METHOD_NOT_FOUND, 0, NULL,
			      "rpc.discover lists all methods", "no method %s", rq->method);
	else if (!(r = request_create(all, c, b, rq)))
		agent_err_no_memory(&err, NULL);
	if (!r) {
		refuse_bad(all, c, b, rq, &err);
		return;
	}
	r->method = (enum rpc_method)m;
	all->run(r, rq->params, rq->params_size);
}

void request_receive(struct requests *all, struct conn *c, const char *body, size_t size)
{
	struct rpc_message message;
	struct agent_err err = { 0 };
	struct batch *b = NULL;
	int r = rpc_message_parse(body, size, &message, &err);

	if (r == 0 && message.batch && !(b = batch_create()))
		r = agent_err_no_memory(&err, NULL);
	if (r < 0) {
		request_refuse(all, c, &err);
		rpc_message_deinit(&message);
		return;
	}
	/* One extra, so that the batch lives until its last request has been started. */
	if (b)
		b->pending = (unsigned)message.n + 1;
	for (size_t i = 0; i < message.n; i++)
		receive_one(all, c, b, &message.requests[i]);
	if (b)
		batch_add(b, c, NULL, 0, NULL);
	rpc_message_deinit(&message);
}
