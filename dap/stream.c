/* SPDX-License-Identifier: MIT */
/*
 * Bytes of the editor, and which of its requests is next.
 *
 * A request that needs the agent waits for its turn in a queue.  While one waits for the agent's
 * answer, everything else is still read, and answered if it needs no agent.  Leaving and cancelling
 * give up the call under way.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "dap/adapter.h"
#include "disasm/disasm.h"

/* Bytes read at once, and the most requests, and bytes of them, that wait for their turn. */
#define CHUNK		  ((size_t)64 << 10)
#define WAITING_MAX	  256u
#define WAITING_BYTES_MAX ((size_t)4 << 20)
/* Bytes that an editor may leave unread before nothing more is read from it. */
#define BACKLOG_MAX	  ((size_t)1 << 20)
/* Milliseconds for the last words to an editor that does not read. */
#define FAREWELL_MS	  1000
/* Milliseconds of a wait that nothing limits. */
#define FOREVER_MS	  60000
/* The longest stop that the agent accepts. */
#define STOP_MAX_MS	  60000u

struct dap_waiting {
	struct dap_waiting *next;
	struct dap_request q; /* Its arguments are in text. */
	size_t size;
	char text[];
};

/* Bytes that the editor has not taken yet. */
static size_t backlog(const struct dap *d)
{
	return d->out.size - d->sent;
}

/* ------------------------------------------------------------------ output ------------------- */

/* Write as much as the editor takes. */
static void flush(struct dap *d)
{
	while (backlog(d) && !d->failed) {
		ssize_t n = write(d->options->out_fd, d->out.data + d->sent, backlog(d));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			d->failed = -errno;
			return;
		}
		d->sent += (size_t)n;
	}
	out_reset(&d->out);
	d->sent = 0;
}

/* ------------------------------------------------------------------ requests in turn --------- */

/* Run a handler if the state allows it, and send the answer that it left to send. */
static void run(struct dap *d, const struct dap_handler *h, const struct dap_request *q)
{
	struct dap_answer answer = { 0 };
	int r = dap_check_order(d, h, &answer.err);

	if (r == 0)
		r = h->run(d, q, &answer);
	if (r < 0)
		dap_explain(d, &answer.err);
	if (r < 0 && answer.err.err == ECANCELED)
		dap_respond_cancelled(d, q);
	else if (r < 0)
		dap_respond_error(d, q, &answer.err);
	else if (r != DAP_ANSWERED)
		dap_respond(d, q, &answer.body);
	out_deinit(&answer.body);
}

static void put_in_queue(struct dap *d, struct dap_waiting *w)
{
	*d->end = w;
	d->end = &w->next;
	d->n_waiting++;
	d->waiting_bytes += w->size;
}

static struct dap_waiting *take_from_queue(struct dap *d, struct dap_waiting **at)
{
	struct dap_waiting *w = *at;

	*at = w->next;
	if (!w->next)
		d->end = at;
	d->n_waiting--;
	d->waiting_bytes -= w->size;
	return w;
}

/*
 * Run the first request that waits.  Its object stays until the handler is done: a progress and a
 * cancellation name it by its number.
 */
static void run_next(struct dap *d)
{
	auto_free struct dap_waiting *w = take_from_queue(d, &d->first);
	const struct dap_handler *h = dap_find_handler(w->q.command);

	d->running = &w->q;
	d->may_cancel = h->may_cancel;
	d->cancel = false;
	rpc_arena_reset(&d->arena);
	run(d, h, &w->q);
	d->running = NULL;
	d->may_cancel = d->cancel = false;
}

/* Answer waiting requests as cancelled: all of them, or the one of that number. */
static void cancel_waiting(struct dap *d, bool all, int64_t seq)
{
	for (struct dap_waiting **at = &d->first; *at;) {
		struct dap_waiting *w;

		if (!all && (*at)->q.seq != seq) {
			at = &(*at)->next;
			continue;
		}
		w = take_from_queue(d, at);
		dap_respond_cancelled(d, &w->q);
		free(w);
	}
}

/* Give up the request, or what the progress shows.  A call under way ends in dap_wait(). */
static void on_cancel(struct dap *d, struct dap_json args)
{
	int64_t id;

	if (dap_json_i64(dap_json_get(args, "requestId"), &id)) {
		if ((d->running && d->running->seq == id) ||
		    (d->attach_waits && d->attach_seq == id))
			d->cancel = true;
		else
			cancel_waiting(d, false, id);
	}
	if (dap_json_i64(dap_json_get(args, "progressId"), &id) && d->progressing &&
	    (uint64_t)id == d->progress)
		d->cancel = true;
}

/* Whether a request ends the conversation, and comes at a time when it may. */
static bool is_leaving(const struct dap *d, const struct dap_handler *h)
{
	struct agent_err too_early;

	return (!strcmp(h->command, "disconnect") || !strcmp(h->command, "terminate")) &&
	       dap_check_order(d, h, &too_early) == 0;
}

/* ------------------------------------------------------------------ input -------------------- */

/*
 * Take a message apart.
 * @return 0, -EAGAIN (nothing is to be done), -EINVAL with the reason.
 */
static int parse(const char *body, size_t size, struct dap_request *q, const char **ret_why)
{
	struct dap_json message;
	char type[16];

	*ret_why = "the message is not a JSON object";
	*q = (struct dap_request){ 0 };
	if (!dap_json_parse(body, size, &message))
		return -EINVAL;
	(void)dap_json_i64(dap_json_get(message, "seq"), &q->seq);
	if (!dap_json_str(dap_json_get(message, "type"), type, sizeof(type)))
		type[0] = '\0';
	/* The adapter asks an editor nothing: what that answers is of no use. */
	if (!strcmp(type, "response") || !strcmp(type, "event"))
		return -EAGAIN;
	*ret_why = "the message has no type \"request\"";
	if (strcmp(type, "request") != 0)
		return -EINVAL;
	*ret_why = "the request has no command, or a long one";
	if (!dap_json_str(dap_json_get(message, "command"), q->command, sizeof(q->command)))
		return -EINVAL;
	q->args = dap_json_get(message, "arguments");
	return 0;
}

static void refuse(struct dap *d, const struct dap_request *q, const char *why)
{
	struct agent_err err;

	agent_err_set(&err, RPC_ERROR_INVALID_REQUEST, 0, NULL, NULL, "%s", why);
	/* Requests are counted from one: what has no number cannot be answered. */
	if (q->seq < 1)
		dap_output(d, "important", "A message of the editor was refused: %s", why);
	else
		dap_respond_error(d, q, &err);
}

/* Copy a request into the queue; its message is gone when the next bytes come. */
static void wait_for_turn(struct dap *d, const struct dap_request *q)
{
	struct dap_waiting *w;

	if (d->n_waiting >= WAITING_MAX || d->waiting_bytes + q->args.size > WAITING_BYTES_MAX) {
		refuse(d, q, "too many requests wait for an answer");
		return;
	}
	w = malloc(sizeof(*w) + q->args.size);
	if (!w) {
		d->failed = -ENOMEM;
		return;
	}
	*w = (struct dap_waiting){ .q = *q, .size = q->args.size };
	if (w->size) {
		memcpy(w->text, q->args.text, w->size);
		w->q.args.text = w->text;
	}
	put_in_queue(d, w);
}

/* Note a sign that the editor is used; see alive.c. */
static void note_life(struct dap *d, const struct dap_request *q)
{
	char context[16] = "";

	/* A view that looks again says so. */
	if (dap_json_is_true(dap_json_get(q->args, "automatic")))
		return;
	if (!strcmp(q->command, "evaluate"))
		(void)dap_json_str(dap_json_get(q->args, "context"), context, sizeof(context));
	dap_alive_request(&d->alive, q->command, context, clock_now_ns());
}

static void on_request(struct dap *d, const struct dap_request *q)
{
	const struct dap_handler *h = dap_find_handler(q->command);

	note_life(d, q);
	/* A running handler has its results in the arena. */
	if (!d->running)
		rpc_arena_reset(&d->arena);
	if (!strcmp(q->command, "cancel")) {
		on_cancel(d, q->args);
		dap_respond(d, q, NULL);
	} else if (!h) {
		char why[DAP_COMMAND_MAX + 40];

		snprintf(why, sizeof(why), "unknown request \"%s\"", q->command);
		refuse(d, q, why);
	} else if (h->when == DAP_WHEN_ALWAYS || (h->when == DAP_WHEN_SEEN && d->snap)) {
		run(d, h, q);
	} else {
		/* Nothing that waits is of use any more, nor is the call under way. */
		if (is_leaving(d, h)) {
			cancel_waiting(d, true, 0);
			d->leave = d->cancel = true;
		}
		wait_for_turn(d, q);
	}
}

static void on_message(struct dap *d, const char *body, size_t size)
{
	struct dap_request q;
	const char *why;
	int r = parse(body, size, &q, &why);

	if (r == 0)
		on_request(d, &q);
	else if (r == -EINVAL)
		refuse(d, &q, why);
}

/* End the conversation: the next message cannot be found in the stream. */
static void lose_track(struct dap *d)
{
	agent_err_set(d->err, RPC_ERROR_PARSE_ERROR, EPROTO, "read from the editor", NULL,
		      "the editor's messages cannot be followed: %s", rpc_wire_problem(&d->wire));
	d->failed = -EPROTO;
}

static void take(struct dap *d, const void *data, size_t n)
{
	const char *body;
	size_t size;
	int r;

	if (rpc_wire_feed(&d->wire, data, n) < 0) {
		d->failed = -ENOMEM;
		return;
	}
	while ((r = rpc_wire_next(&d->wire, &body, &size)) > 0) {
		/* The request that was too long is not known: its answer names none. */
		static const struct dap_request nobody = { .command = "?" };

		if (r == RPC_WIRE_BODY)
			on_message(d, body, size);
		else
			refuse(d, &nobody, "a message is longer than 1 MiB");
	}
	if (r < 0)
		lose_track(d);
}

/* Read what has arrived.  An editor sends no descriptors: one ends the conversation. */
static ssize_t receive(struct dap *d)
{
	ssize_t n = fd_recv_plain(d->options->in_fd, d->chunk, CHUNK);

	/* The editor may be at a socket or at a pipe. */
	if (n != -ENOTSOCK)
		return n;
	n = read(d->options->in_fd, d->chunk, CHUNK);
	return n < 0 ? -errno : n;
}

/* Read what the editor has sent, or note that it has closed its end. */
static void read_some(struct dap *d)
{
	ssize_t n = receive(d);
	const char *body;
	size_t size;

	if (n == -EINTR || n == -EAGAIN)
		return;
	if (n <= 0) {
		d->eof = true;
		if (rpc_wire_finish(&d->wire, &body, &size) < 0)
			lose_track(d);
		return;
	}
	take(d, d->chunk, (size_t)n);
}

/*
 * Wait for a descriptor and serve the editor meanwhile; nothing is read from an editor that does
 * not take its answers.
 * @return 0 (something happened, perhaps with the editor only), -ETIMEDOUT.
 */
static int serve(struct dap *d, int fd, short events, uint64_t deadline_ns)
{
	bool listen = !d->eof && !d->failed && backlog(d) < BACKLOG_MAX;
	struct pollfd p[] = {
		{ .fd = fd, .events = events },
		{ .fd = listen ? d->options->in_fd : -1, .events = POLLIN },
		{ .fd = -1, .events = POLLOUT },
	};
	int n;

	flush(d);
	if (backlog(d) && !d->failed)
		p[2].fd = d->options->out_fd;
	n = poll(p, ARRAY_SIZE(p), clock_left_ms(deadline_ns));
	if (n < 0 && errno != EINTR)
		d->failed = -errno;
	if (n <= 0)
		return n ? 0 : -ETIMEDOUT;
	if (p[2].revents)
		flush(d);
	if (p[1].revents)
		read_some(d);
	return 0;
}

/* Whether the call under way is to be given up. */
static bool is_given_up(const struct dap *d)
{
	return d->failed || d->eof || (d->cancel && (d->may_cancel || d->leave));
}

int dap_wait(void *data, int fd, short events, uint64_t deadline_ns)
{
	struct dap *d = data;
	bool sooner = d->attach_waits && d->attach_ns < deadline_ns;
	int r;

	/* The request may have been cancelled before this call began. */
	if (is_given_up(d))
		return -ECANCELED;
	r = serve(d, fd, events, sooner ? d->attach_ns : deadline_ns);
	if (is_given_up(d))
		return -ECANCELED;
	/* attach has waited long enough: it is answered while the agent still works on it. */
	if (sooner && r == -ETIMEDOUT) {
		(void)dap_session_answer(d, NULL);
		return 0;
	}
	return r;
}

/* ------------------------------------------------------------------ the loop ----------------- */

/* When the loop has something to do although nothing arrives. */
static uint64_t next_wake(const struct dap *d)
{
	uint64_t idle_ns = dap_alive_end_ns(&d->alive, d->stop_idle_ms);

	if (dap_holder_asks(d))
		return d->ask_ns;
	if (!d->paused)
		return clock_deadline_ms(FOREVER_MS);
	return idle_ns < d->renew_ns ? idle_ns : d->renew_ns;
}

static void loop(struct dap *d)
{
	while (!d->failed && !d->eof) {
		bool left = d->leave;

		/*
		 * Requests that came behind attach may wait for the session, but leaving may not.
		 */
		if (d->state == DAP_ATTACHING && !left)
			dap_session_begin(d);
		else if (d->first)
			run_next(d);
		else if (left)
			return;
		else
			serve(d, d->client ? rpc_client_fd(d->client) : -1, POLLIN, next_wake(d));
		if (d->client && !d->leave)
			dap_session_notifications(d);
		/*
		 * An editor that does not read shows nobody that the queues are stopped: they run
		 * again when the lease ends.
		 */
		if (d->paused && !backlog(d) && !d->leave)
			dap_session_renew(d);
		else if (dap_holder_asks(d) && !d->leave)
			dap_holder_watch(d);
	}
}

static void deinit(struct dap *d)
{
	uint64_t deadline_ns = clock_deadline_ms(FAREWELL_MS);

	dap_session_end(d);
	d->eof = true;
	if (d->failed == -EPROTO)
		d->failed = 0; /* It may still hear what was answered before. */
	flush(d);
	while (backlog(d) && !d->failed && serve(d, -1, 0, deadline_ns) == 0)
		continue;
	while (d->first)
		free(take_from_queue(d, &d->first));
	disasm_close(d->disasm);
	dap_refs_deinit(d);
	dap_sources_deinit(&d->sources);
	rpc_wire_deinit(&d->wire);
	out_deinit(&d->out);
	rpc_arena_deinit(&d->arena);
	rpc_arena_deinit(&d->exception_arena);
	rpc_arena_deinit(&d->shared.arena);
	rpc_arena_deinit(&d->vector.arena);
	free(d->chunk);
}

int dap_run(const struct dap_options *o, struct agent_err *err)
{
	struct dap d = { .options = o, .err = err, .max_threads = DAP_THREADS_DEFAULT,
			 .max_stop_ms = o->max_stop_ms < STOP_MAX_MS ? o->max_stop_ms : STOP_MAX_MS,
			 .stop_idle_ms = DAP_STOP_IDLE_MS,
			 .lines_from = 1, .columns_from = 1 };
	int r = fd_set_nonblock(o->out_fd, true);

	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "fcntl", NULL,
				     "cannot write to the editor");
	d.end = &d.first;
	d.chunk = malloc(CHUNK);
	d.failed = d.chunk ? 0 : -ENOMEM;
	rpc_wire_init(&d.wire, 0);
	d.wire.mode = RPC_WIRE_HEADERS;
	out_init(&d.out, 0);
	rpc_arena_init(&d.arena, 0);
	rpc_arena_init(&d.exception_arena, 0);
	rpc_arena_init(&d.shared.arena, 0);
	rpc_arena_init(&d.vector.arena, 0);
	if (o->early_size && !d.failed)
		take(&d, o->early, o->early_size);
	loop(&d);
	r = d.failed;
	deinit(&d);
	fd_set_nonblock(o->out_fd, false);
	/* An editor that has gone without a word has left as well; that is no failure. */
	if (r == -EPIPE)
		return 0;
	if (r < 0 && !err->code)
		agent_err_set(err, RPC_ERROR_FAILED, -r, "serve the editor", NULL,
			      "cannot talk to the editor: %s", strerror(-r));
	return r;
}
