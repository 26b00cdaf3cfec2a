/* SPDX-License-Identifier: MIT */
#include "corefile/stream.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "corefile/runs.h"

/* ------------------------------------------------------------------ writing ------------------ */

/*
 * Most runs of data in a piece, between two of which lies a hole.  Each has two records, its own
 * and that of the hole before it, and two parts to send, the records and the data.
 */
#define RUNS_MAX (CORE_STREAM_PIECE_MAX / (CORE_HOLE_MIN + CORE_PAGE_BYTES) + 4)

struct corefile_stream_out {
	int fd;
	uint64_t position; /* Bytes of the core that were given so far. */
	uint64_t hole;	   /* Zeros at the end of what was given that are not told yet. */
	size_t n_iov, at;  /* Parts to send; those before `at` are sent. */
	size_t n_records;
	struct iovec iov[2 * RUNS_MAX];
	struct corefile_stream_record records[2 * RUNS_MAX];
};

int corefile_stream_out_create(int fd, struct corefile_stream_out **ret)
{
	struct corefile_stream_out *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->fd = fd;
	*ret = o;
	return 0;
}

void corefile_stream_out_destroy(struct corefile_stream_out *o)
{
	free(o);
}

static void put_part(struct corefile_stream_out *o, const void *data, size_t size)
{
	struct iovec *last = o->n_iov ? &o->iov[o->n_iov - 1] : NULL;

	/* The records of a hole and of what follows it lie side by side and become one part. */
	if (last && (const char *)last->iov_base + last->iov_len == data)
		last->iov_len += size;
	else
		o->iov[o->n_iov++] = (struct iovec){ (void *)data, size };
}

static void put_record(struct corefile_stream_out *o, enum corefile_stream_kind kind, uint64_t size)
{
	struct corefile_stream_record *r = &o->records[o->n_records++];

	*r = (struct corefile_stream_record){ .kind = kind, .size = size };
	put_part(o, r, sizeof(*r));
}

static void put_hole(struct corefile_stream_out *o)
{
	if (o->hole)
		put_record(o, CORE_STREAM_HOLE, o->hole);
	o->hole = 0;
}

static void put_data(struct corefile_stream_out *o, const uint8_t *p, size_t size)
{
	put_hole(o);
	put_record(o, CORE_STREAM_DATA, size);
	put_part(o, p, size);
}

void corefile_stream_out_data(struct corefile_stream_out *o, const void *data, size_t size)
{
	const uint8_t *p = data, *end = p + size;
	size_t to_page = -o->position % CORE_PAGE_BYTES, n;
	bool zero;

	o->position += size;
	if (to_page && size) {
		n = size < to_page ? size : to_page;
		put_data(o, p, n);
		p += n;
	}
	for (; p < end; p += n) {
		n = core_run(p, (size_t)(end - p), o->hole != 0, &zero);
		if (zero)
			o->hole += n;
		else
			put_data(o, p, n);
	}
}

void corefile_stream_out_end(struct corefile_stream_out *o, uint64_t lost)
{
	put_hole(o);
	put_record(o, CORE_STREAM_END, lost);
}

void corefile_stream_out_error(struct corefile_stream_out *o, const char *text, size_t size)
{
	size = size < CORE_STREAM_TEXT_MAX ? size : CORE_STREAM_TEXT_MAX;
	put_record(o, CORE_STREAM_ERROR, size);
	put_part(o, text, size);
}

static void sent(struct corefile_stream_out *o, size_t n)
{
	while (n) {
		struct iovec *v = &o->iov[o->at];
		size_t part = n < v->iov_len ? n : v->iov_len;

		v->iov_base = (char *)v->iov_base + part;
		v->iov_len -= part;
		n -= part;
		o->at += !v->iov_len;
	}
}

int corefile_stream_out_send(struct corefile_stream_out *o)
{
	while (o->at < o->n_iov) {
		const struct msghdr m = { .msg_iov = o->iov + o->at, .msg_iovlen = o->n_iov - o->at };
		ssize_t n = sendmsg(o->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			sent(o, (size_t)n);
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	}
	o->n_iov = o->at = o->n_records = 0;
	return 1;
}

/* ------------------------------------------------------------------ reading ------------------ */

#define BUFFER_SIZE ((size_t)1 << 20)

struct corefile_stream_in {
	int fd;
	uint64_t total, lost;
	uint64_t left; /* Bytes of a data record that are still to come. */
	/* Bytes that have arrived and are not passed on yet lie between the two. */
	size_t at, fill;
	bool whole;
	const char *error;
	size_t error_size;
	uint8_t buf[BUFFER_SIZE];
};

int corefile_stream_in_create(int fd, uint64_t total, struct corefile_stream_in **ret)
{
	struct corefile_stream_in *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	memset(s, 0, offsetof(struct corefile_stream_in, buf));
	s->fd = fd;
	s->total = total;
	*ret = s;
	return 0;
}

void corefile_stream_in_destroy(struct corefile_stream_in *s)
{
	free(s);
}

uint64_t corefile_stream_in_lost(const struct corefile_stream_in *s)
{
	return s->lost;
}

const char *corefile_stream_in_error(const struct corefile_stream_in *s, size_t *ret_size)
{
	*ret_size = s->error_size;
	return s->error;
}

static int receive(struct corefile_stream_in *s)
{
	ssize_t n;

	memmove(s->buf, s->buf + s->at, s->fill - s->at);
	s->fill -= s->at;
	s->at = 0;
	do
		n = recv(s->fd, s->buf + s->fill, BUFFER_SIZE - s->fill, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
	s->fill += (size_t)n;
	return 0;
}

/*
 * Pass on what has arrived of a data record.
 * @return 1 when something was taken, 0 when more has to come first.
 */
static int take_data(struct corefile_stream_in *s, struct corefile_sink *sink)
{
	uint64_t position = corefile_sink_position(sink);
	size_t n = s->fill - s->at;

	/* Stop at the end of a page, so that the sink need not copy what begins inside one. */
	if (n < s->left)
		n -= n > CORE_PAGE_BYTES ? (position + n) % CORE_PAGE_BYTES : n;
	else
		n = (size_t)s->left;
	corefile_sink_write(sink, s->buf + s->at, n);
	s->at += n;
	s->left -= n;
	return n != 0;
}

/*
 * Take the next record.
 * @return 1 when it was taken, 0 when more has to come first or the core is whole, negative as
 *         corefile_stream_in_read().
 */
static int take_record(struct corefile_stream_in *s, struct corefile_sink *sink)
{
	uint64_t position = corefile_sink_position(sink);
	struct corefile_stream_record r;
	size_t here = s->fill - s->at;

	if (here < sizeof(r))
		return 0;
	memcpy(&r, s->buf + s->at, sizeof(r));
	if (r.kind == CORE_STREAM_ERROR && r.size <= CORE_STREAM_TEXT_MAX) {
		if (here - sizeof(r) < r.size)
			return 0;
		s->error = (const char *)s->buf + s->at + sizeof(r);
		s->error_size = (size_t)r.size;
		return -EREMOTEIO;
	}
	s->at += sizeof(r);
	if (r.kind == CORE_STREAM_END && position == s->total) {
		s->lost = r.size;
		s->whole = true;
		return 0;
	}
	if ((r.kind != CORE_STREAM_DATA && r.kind != CORE_STREAM_HOLE) || r.size > s->total - position)
		return -EPROTO;
	if (r.kind == CORE_STREAM_DATA)
		s->left = r.size;
	else
		corefile_sink_pad(sink, position + r.size);
	return 1;
}

int corefile_stream_in_read(struct corefile_stream_in *s, struct corefile_sink *sink)
{
	int r = receive(s);

	if (r < 0)
		return r;
	do
		r = s->left ? take_data(s, sink) : take_record(s, sink);
	while (r > 0 && !corefile_sink_failed(sink));
	return r < 0 ? r : s->whole;
}
