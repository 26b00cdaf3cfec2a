/* SPDX-License-Identifier: MIT */
/*
 * Framing.  A message that is too long is skipped rather than fatal, so that its sender can be
 * told; only where the next message begins must stay known.  A buffer grows by doubling to one
 * message and one feed, and is freed when it is empty: thousands of idle connections cost nothing.
 */
#include "protocol/rpc_wire.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/out.h"
#include "base/str.h"

/* A buffer of more bytes than this is freed as soon as it is empty. */
#define KEEP_CAPACITY 4096

enum state {
	STATE_START,  /* A line or a header block begins. */
	STATE_BODY,   /* The headers are read, w->body bytes are to come. */
	STATE_SKIP,   /* A body that is too large is being dropped. */
	STATE_FAILED, /* The stream cannot be followed any further. */
};

static const char length_name[] = "content-length";

void rpc_wire_init(struct rpc_wire *w, size_t body_max)
{
	*w = (struct rpc_wire){ .body_max = body_max ? body_max : RPC_WIRE_BODY_MAX };
}

void rpc_wire_deinit(struct rpc_wire *w)
{
	free(w->data);
	*w = (struct rpc_wire){ 0 };
}

static int fail(struct rpc_wire *w, const char *problem)
{
	w->state = STATE_FAILED;
	w->problem = problem;
	return -EPROTO;
}

const char *rpc_wire_problem(const struct rpc_wire *w)
{
	return w->problem ? w->problem : "";
}

/* Move past bytes; they stay in the buffer, so that a body that was handed out stays valid. */
static void consume(struct rpc_wire *w, size_t n)
{
	w->head += n;
	w->scanned = 0;
}

static void drop_empty(struct rpc_wire *w)
{
	if (w->head < w->size)
		return;
	w->head = w->size = 0;
	if (w->capacity > KEEP_CAPACITY) {
		free(w->data);
		w->data = NULL;
		w->capacity = 0;
	}
}

int rpc_wire_feed(struct rpc_wire *w, const void *data, size_t size)
{
	size_t left = w->size - w->head, want = left + size, capacity;
	char *grown;

	if (w->state == STATE_FAILED || !size)
		return 0;
	drop_empty(w);
	if (w->head && want <= w->capacity) {
		memmove(w->data, w->data + w->head, left);
		w->head = 0;
		w->size = left;
	}
	if (w->head + want > w->capacity) {
		capacity = w->capacity ? w->capacity : 1024;
		while (capacity < want)
			capacity *= 2;
		grown = malloc(capacity);
		if (!grown)
			return -ENOMEM;
		if (left)
			memcpy(grown, w->data + w->head, left);
		free(w->data);
		w->data = grown;
		w->capacity = capacity;
		w->head = 0;
		w->size = left;
	}
	memcpy(w->data + w->size, data, size);
	w->size += size;
	return 0;
}

/*
 * The length of the line at head without its line break, or -1 when its end has not arrived;
 * *ret_used counts the line break too.  Bytes that were searched once are not searched again.
 */
static ssize_t find_line(struct rpc_wire *w, size_t *ret_used)
{
	const char *start = w->data + w->head, *end;
	size_t left = w->size - w->head;

	end = left > w->scanned ? memchr(start + w->scanned, '\n', left - w->scanned) : NULL;
	if (!end) {
		w->scanned = left;
		return -1;
	}
	*ret_used = (size_t)(end - start) + 1;
	return end > start && end[-1] == '\r' ? end - start - 1 : end - start;
}

static bool is_blank(const char *s, size_t size)
{
	while (size && (*s == ' ' || *s == '\t' || *s == '\r'))
		s++, size--;
	return !size;
}

static int next_line(struct rpc_wire *w, const char **ret_body, size_t *ret_size)
{
	size_t used = 0;
	ssize_t n;

	for (;;) {
		const char *line = w->data ? w->data + w->head : NULL;

		n = line ? find_line(w, &used) : -1;
		if (n < 0)
			break;
		consume(w, used);
		if (is_blank(line, (size_t)n))
			continue;
		if ((size_t)n > w->body_max)
			return RPC_WIRE_TOO_LARGE;
		*ret_body = line;
		*ret_size = (size_t)n;
		return RPC_WIRE_BODY;
	}
	/* One byte more than a body may have: it could be the CR of the line break. */
	if (w->size - w->head <= w->body_max + 1)
		return 0;
	w->skip = w->size - w->head;
	consume(w, w->size - w->head);
	w->state = STATE_SKIP;
	return RPC_WIRE_TOO_LARGE;
}

/* Drop the rest of a line that is too long.  @return 1 when its end was found, 0, -EPROTO. */
static int skip_line(struct rpc_wire *w)
{
	size_t used = 0, left = w->size - w->head;
	bool found = left && find_line(w, &used) >= 0;

	if (!found)
		used = left;
	consume(w, used);
	w->skip += used;
	if (w->skip > RPC_WIRE_SKIP_MAX)
		return fail(w, "a line is longer than 64 MiB");
	if (found)
		w->state = STATE_START;
	return found;
}

/* Drop the rest of a body of known length.  @return 1 when its end was found, 0. */
static int skip_body(struct rpc_wire *w)
{
	size_t left = w->size - w->head, n = w->skip < left ? (size_t)w->skip : left;

	consume(w, n);
	w->skip -= n;
	if (w->skip)
		return 0;
	w->state = STATE_START;
	return 1;
}

/* Read one header line; only Content-Length matters.  @return 0 or -EPROTO. */
static int read_header(struct rpc_wire *w, const char *line, size_t size, uint64_t *length,
		       bool *has_length)
{
	const char *colon = memchr(line, ':', size);
	char digits[24];
	size_t name, n;

	if (!colon || colon == line)
		return fail(w, "a header line has no name and colon");
	name = (size_t)(colon - line);
	if (name != sizeof(length_name) - 1 || strncasecmp(line, length_name, name))
		return 0;
	if (*has_length)
		return fail(w, "Content-Length is given twice");
	for (line = colon + 1, n = size - name - 1; n && (*line == ' ' || *line == '\t'); n--)
		line++;
	while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
		n--;
	if (!n || n >= sizeof(digits))
		return fail(w, "Content-Length is not a number");
	memcpy(digits, line, n);
	digits[n] = '\0';
	if (strlen(digits) != n || str_to_u64(digits, 0, UINT64_MAX, length))
		return fail(w, "Content-Length is not a number");
	*has_length = true;
	return 0;
}

/* The size of a header block with its empty line, 0 when it is incomplete, or -EPROTO. */
static ssize_t find_block(struct rpc_wire *w)
{
	const char *start = w->data + w->head;
	size_t left = w->size - w->head, max = left, at = 0;

	if (max > RPC_WIRE_HEADER_MAX)
		max = RPC_WIRE_HEADER_MAX;
	while (at < max) {
		const char *end = memchr(start + at, '\n', max - at);

		if (!end)
			break;
		if (end == start + at || (end == start + at + 1 && end[-1] == '\r'))
			return end - start + 1;
		at = (size_t)(end - start) + 1;
	}
	return left >= RPC_WIRE_HEADER_MAX ? fail(w, "the headers are longer than 4096 bytes") : 0;
}

static int read_headers(struct rpc_wire *w)
{
	ssize_t block = w->size > w->head ? find_block(w) : 0;
	size_t at = 0;
	uint64_t length = 0;
	bool has_length = false;

	if (block <= 0)
		return (int)block;
	while (at < (size_t)block) {
		const char *line = w->data + w->head + at;
		size_t n = (size_t)((char *)memchr(line, '\n', (size_t)block - at) - line);
		size_t text = n && line[n - 1] == '\r' ? n - 1 : n;

		at += n + 1;
		if (text && read_header(w, line, text, &length, &has_length) < 0)
			return -EPROTO;
	}
	if (!has_length)
		return fail(w, "Content-Length is missing");
	if (length > RPC_WIRE_SKIP_MAX && length > w->body_max)
		return fail(w, "Content-Length is larger than 64 MiB");
	consume(w, (size_t)block);
	w->state = length > w->body_max ? STATE_SKIP : STATE_BODY;
	w->body = (size_t)length;
	w->skip = length;
	return w->state == STATE_SKIP ? RPC_WIRE_TOO_LARGE : RPC_WIRE_BODY;
}

static int next_by_headers(struct rpc_wire *w, const char **ret_body, size_t *ret_size)
{
	int r;

	if (w->state == STATE_START) {
		r = read_headers(w);
		if (r != RPC_WIRE_BODY)
			return r;
	}
	if (w->size - w->head < w->body)
		return 0;
	*ret_body = w->data + w->head;
	*ret_size = w->body;
	consume(w, w->body);
	w->state = STATE_START;
	return RPC_WIRE_BODY;
}

int rpc_wire_next(struct rpc_wire *w, const char **ret_body, size_t *ret_size)
{
	int r;

	if (w->state == STATE_FAILED)
		return -EPROTO;
	if (w->mode == RPC_WIRE_UNKNOWN) {
		if (w->head == w->size)
			return 0;
		w->mode = (w->data[w->head] | 0x20) == 'c' ? RPC_WIRE_HEADERS : RPC_WIRE_LINES;
	}
	if (w->state == STATE_SKIP) {
		r = w->mode == RPC_WIRE_LINES ? skip_line(w) : skip_body(w);
		if (r <= 0) {
			drop_empty(w);
			return r;
		}
	}
	r = w->mode == RPC_WIRE_LINES ? next_line(w, ret_body, ret_size) :
					next_by_headers(w, ret_body, ret_size);
	if (r != RPC_WIRE_BODY)
		drop_empty(w);
	return r;
}

int rpc_wire_finish(struct rpc_wire *w, const char **ret_body, size_t *ret_size)
{
	size_t left = w->size - w->head;
	const char *rest = left ? w->data + w->head : NULL;

	if (w->state == STATE_FAILED)
		return -EPROTO;
	if (w->state == STATE_SKIP)
		return w->mode == RPC_WIRE_LINES ? 0 : fail(w, "the connection ended inside a body");
	if (w->mode == RPC_WIRE_HEADERS) {
		if (w->state == STATE_BODY)
			return fail(w, "the connection ended inside a body");
		return left ? fail(w, "the connection ended inside a header") : 0;
	}
	if (!left || is_blank(rest, left))
		return 0;
	consume(w, left);
	*ret_body = rest;
	*ret_size = left;
	return RPC_WIRE_BODY;
}

void rpc_wire_begin(struct out *o, enum rpc_wire_mode mode, size_t size)
{
	if (mode == RPC_WIRE_HEADERS)
		out_fmt(o, "Content-Length: %zu\r\n\r\n", size);
}

void rpc_wire_end(struct out *o, enum rpc_wire_mode mode)
{
	if (mode != RPC_WIRE_HEADERS)
		out_char(o, '\n');
}

void rpc_wire_write(struct out *o, enum rpc_wire_mode mode, const char *text, size_t size)
{
	rpc_wire_begin(o, mode, size);
	out_bytes(o, text, size);
	rpc_wire_end(o, mode);
}
