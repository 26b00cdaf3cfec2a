/* SPDX-License-Identifier: MIT */
/* Answers and events of the Debug Adapter Protocol, and the members that they are made of. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "dap/adapter.h"

/* The id of all errors (DebugProtocol.Message.id), which are told apart by their texts. */
#define ERROR_ID 1

/* Frame a message and queue it; stream.c writes it. */
static void send(struct dap *d, const struct out *message)
{
	if (out_error(message)) {
		d->failed = out_error(message);
		return;
	}
	rpc_wire_write(&d->out, RPC_WIRE_HEADERS, message->data, message->size);
	if (out_error(&d->out))
		d->failed = out_error(&d->out);
}

/* Begin a message with its number and type. */
static void begin(struct dap *d, struct out *o, const char *type)
{
	out_init(o, 0);
	out_json_fmt(o, "{'seq':%" PRId64 ",'type':%s", ++d->seq, type);
}

static void begin_response(struct dap *d, struct out *o, const struct dap_request *q, bool success)
{
	begin(d, o, "response");
	out_json_fmt(o, ",'request_seq':%" PRId64 ",'success':%i,'command':%s", q->seq, success,
		     q->command);
}

/* Append the body, unless it is empty; a body that lacks memory spoils the message. */
static void put_body(struct out *o, const struct out *body)
{
	if (body && out_error(body))
		o->error = out_error(body);
	if (!body || !body->size)
		return;
	out_str(o, ",\"body\":");
	out_bytes(o, body->data, body->size);
}

void dap_respond(struct dap *d, const struct dap_request *q, const struct out *body)
{
	auto_out struct out o;

	begin_response(d, &o, q, true);
	put_body(&o, body);
	out_char(&o, '}');
	send(d, &o);
}

/*
 * Whether the editor is to show an error in a window of its own.  Errors are shown where a person
 * waits for the answer and nothing else shows it: not those of what an editor asks for by itself,
 * such as watches, not what the console shows already, and not what only says once more that the
 * session has ended.
 */
static bool is_shown(const struct dap *d, const struct dap_request *q)
{
	const struct dap_handler *h = dap_find_handler(q->command);

	return h && h->by_hand && !(d->state == DAP_OVER && h->from == DAP_ATTACHED);
}

const char *dap_plain(const char *message)
{
	const char *text = message;

	if (!str_starts_with(text, "params."))
		return message;
	text += strlen("params.");
	text += strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789.[]");
	return str_starts_with(text, ": ") ? text + 2 : message;
}

void dap_respond_error(struct dap *d, const struct dap_request *q, const struct agent_err *err)
{
	auto_out struct out o;
	char text[sizeof(err->message) + sizeof(err->hint) + 4];

	snprintf(text, sizeof(text), "%s%s%s%s",
		 err->message[0] ? dap_plain(err->message) : "out of memory",
		 err->hint[0] ? " (" : "", err->hint, err->hint[0] ? ")" : "");
	begin_response(d, &o, q, false);
	/* The text is given as a variable: braces in a format are taken for names of variables. */
	out_json_fmt(&o, ",'message':%s,'body':{'error':{'id':%d,'format':'{text}','showUser':%i,"
		     "'variables':{'text':%s}}}}", text, ERROR_ID, is_shown(d, q), text);
	send(d, &o);
}

void dap_respond_cancelled(struct dap *d, const struct dap_request *q)
{
	auto_out struct out o;

	begin_response(d, &o, q, false);
	out_json_fmt(&o, ",'message':'cancelled','body':{}}");
	send(d, &o);
}

void dap_event(struct dap *d, const char *event, const struct out *body)
{
	auto_out struct out o;

	dap_alive_event(&d->alive, event, clock_now_ns());
	begin(d, &o, "event");
	out_json_fmt(&o, ",'event':%s", event);
	put_body(&o, body);
	out_char(&o, '}');
	send(d, &o);
}

void dap_output(struct dap *d, const char *category, const char *fmt, ...)
{
	auto_out struct out body = { 0 }, text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	out_vfmt(&text, fmt, ap);
	va_end(ap);
	out_char(&text, '\n');
	out_json_fmt(&body, "{'category':%s,'output':%s}", category, text.data);
	dap_event(d, "output", &body);
}

static void put_progress_id(const struct dap *d, struct out *o)
{
	out_json_fmt(o, "{'progressId':'%" PRIu64 "'", d->progress);
}

void dap_progress_begin(struct dap *d, const char *title, bool cancellable)
{
	auto_out struct out body = { 0 };

	if (!d->client_progress)
		return;
	dap_progress_end(d, NULL);
	d->progressing = true;
	d->progress++;
	put_progress_id(d, &body);
	out_json_fmt(&body, ",'title':%s,'cancellable':%i", title, cancellable);
	/* An editor can cancel the request whose progress it shows. */
	if (d->running)
		out_json_fmt(&body, ",'requestId':%" PRId64, d->running->seq);
	out_char(&body, '}');
	dap_event(d, "progressStart", &body);
}

void dap_progress_update(struct dap *d, const char *message)
{
	auto_out struct out body = { 0 };

	if (!d->progressing)
		return;
	put_progress_id(d, &body);
	out_json_fmt(&body, ",'message':%s}", message);
	dap_event(d, "progressUpdate", &body);
}

void dap_progress_end(struct dap *d, const char *message)
{
	auto_out struct out body = { 0 };

	if (!d->progressing)
		return;
	d->progressing = false;
	put_progress_id(d, &body);
	if (message)
		out_json_fmt(&body, ",'message':%s", message);
	out_char(&body, '}');
	dap_event(d, "progressEnd", &body);
}

void dap_invalidated(struct dap *d)
{
	auto_out struct out body = { 0 };

	if (!d->client_invalidated)
		return;
	out_str(&body, "{\"areas\":[\"all\"]}");
	dap_event(d, "invalidated", &body);
}

int dap_invalid(struct agent_err *err, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL, "%s", text);
}
