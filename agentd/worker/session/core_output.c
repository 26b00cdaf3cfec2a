/* SPDX-License-Identifier: MIT */
#include "agentd/worker/session/core_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/session/session.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/out.h"
#include "corefile/stream.h"

#define PIECE_BYTES (UINT32_C(256) << 10)
/* One slice of sending takes so long; then calls and events get their turn. */
#define SLICE_MS 10

struct core_output {
	struct corefile_stream_out *stream;
	struct event *writable;
	int fd;
	uint32_t undo_ticket;
	uint64_t position, bytes, lost;
	struct out error; /* Why the core ends early. */
	bool ended;	  /* The last record was given to the stream. */
	uint8_t piece[PIECE_BYTES];
};

static void output_free(struct core_output *o)
{
	if (o->writable)
		event_free(o->writable);
	corefile_stream_out_destroy(o->stream);
	out_deinit(&o->error);
	close(o->fd);
	free(o);
}

/* The core's client has left, or wants no more of it. */
static int undo_output(void *ctx, uint64_t arg, struct agent_err *err)
{
	struct session *s = ctx;

	output_free(s->output);
	s->output = NULL;
	return 0;
}

void core_output_stop(struct session *s)
{
	if (!s->output)
		return;
	undo_drop(&s->target->undo, s->output->undo_ticket);
	undo_output(s, 0, NULL);
}

/* Send bytes from where the target has them, without a copy if that is possible. */
static int give_piece(struct core_output *o, struct target *t, struct agent_err *err)
{
	uint64_t left = o->bytes - o->position, size;
	const void *data = t->ops->core_at ? t->ops->core_at(t, o->position, &size) : NULL;
	int n;

	if (!data) {
		size = left < PIECE_BYTES ? left : PIECE_BYTES;
		n = t->ops->core_read(t, o->position, o->piece, (uint32_t)size, &o->lost, err);
		if (n < 0)
			return n;
		if ((uint64_t)n != size)
			return agent_err_set(err, RPC_ERROR_INTERNAL, EIO, "core.write", NULL,
					     "the core is shorter than it was");
		data = o->piece;
	}
	size = size < CORE_STREAM_PIECE_MAX ? size : CORE_STREAM_PIECE_MAX;
	corefile_stream_out_data(o->stream, data, (size_t)size);
	o->position += size;
	return 0;
}

static void give_more(struct core_output *o, struct target *t)
{
	struct agent_err err = { 0 };

	if (o->position == o->bytes) {
		corefile_stream_out_end(o->stream, o->lost);
		o->ended = true;
	} else if (give_piece(o, t, &err) < 0) {
		agent_err_encode(&o->error, &err);
		corefile_stream_out_error(o->stream, o->error.data, o->error.size);
		o->ended = true;
	}
}

/* @return 1 when all is sent, 0 when there is more to do later, negative. */
static int send_slice(struct core_output *o, struct target *t)
{
	uint64_t deadline = clock_deadline_ms(SLICE_MS);
	int r;

	do {
		r = corefile_stream_out_send(o->stream);
		if (r <= 0 || o->ended)
			return r;
		give_more(o, t);
	} while (clock_now_ns() < deadline);
	return 0;
}

static void on_writable(evutil_socket_t fd, short what, void *user)
{
	struct session *s = user;
	int r = -ETIMEDOUT;

	if (what & EV_WRITE) {
		session_work_begin(s);
		r = send_slice(s->output, s->target);
		session_work_end(s);
	}
	if (r < 0)
		log_info("session %u: its core is not sent to the end, at byte %" PRIu64 ": %s",
			 s->options->session, s->output->position, strerror(-r));
	if (r)
		core_output_stop(s);
}

static int setup(struct session *s, struct core_output *o, uint32_t stall_ms)
{
	const struct timeval stall = { .tv_sec = stall_ms / 1000,
				       .tv_usec = stall_ms % 1000 * 1000 };

	if (corefile_stream_out_create(o->fd, &o->stream) < 0)
		return -ENOMEM;
	o->writable = event_new(s->base, o->fd, EV_WRITE | EV_PERSIST, on_writable, s);
	return o->writable && event_add(o->writable, &stall) == 0 ? 0 : -ENOMEM;
}

int core_output_start(struct session *s, int take_fd, uint32_t stall_ms, struct agent_err *err)
{
	struct core_output *o = malloc(sizeof(*o));
	int r = o ? 0 : -ENOMEM;

	core_output_stop(s);
	if (!o)
		close(take_fd);
	else
		*o = (struct core_output){ .fd = take_fd, .bytes = s->core_bytes };
	if (r == 0)
		out_init(&o->error, 0);
	if (r == 0)
		r = setup(s, o, stall_ms);
	if (r < 0)
		agent_err_no_memory(err, "core.write");
	else
		r = undo_push(&s->target->undo, "stop sending a core", undo_output, s, 0,
			      &o->undo_ticket, err);
	if (r == 0)
		s->output = o;
	else if (o)
		output_free(o);
	return r;
}
