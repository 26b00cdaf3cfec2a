/* SPDX-License-Identifier: MIT */
#include "corefile/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "corefile/compress.h"
#include "corefile/runs.h"

#define BUFFER_SIZE ((size_t)1 << 20)
#define PAGE_BYTES  CORE_PAGE_BYTES
/* Shorter pieces are copied, so that one system call takes many bytes. */
#define DIRECT_MIN ((size_t)64 << 10)
/* From this size on a file system allocates space at once faster than page by page. */
#define RESERVE_MIN ((size_t)256 << 10)

struct corefile_sink {
	struct corefile_sink_options options;
	struct corefile_compress *compress;
	int fd, error;
	/* Offset behind the last byte of a file that may have holes; negative if it may not. */
	off_t end;
	uint64_t flushed; /* Bytes that went to the file, or to the compressor. */
	uint64_t hole;	  /* Zeros at the end of them that are not in the file yet. */
	size_t fill;
	uint8_t buf[];
};

/*
 * Holes need a regular file that is written at its end.
 * @return the end of the file, -1 if it can have none.
 */
static off_t end_of(int fd)
{
	struct stat st;
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_APPEND) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       lseek(fd, 0, SEEK_CUR) == st.st_size ? st.st_size : -1;
}

int corefile_sink_create(int fd, const struct corefile_sink_options *o, struct corefile_sink **ret)
{
	struct corefile_sink *s = malloc(sizeof(*s) + BUFFER_SIZE);
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct corefile_sink){ .options = *o, .fd = fd, .end = o->zstd ? -1 : end_of(fd) };
	if (o->zstd) {
		r = corefile_compress_create(fd, o->total, &s->compress);
		if (r < 0) {
			corefile_sink_destroy(s);
			return r;
		}
	}
	*ret = s;
	return 0;
}

void corefile_sink_destroy(struct corefile_sink *s)
{
	if (!s)
		return;
	corefile_compress_destroy(s->compress);
	free(s);
}

static int write_data(struct corefile_sink *s, const uint8_t *p, size_t size)
{
	if (s->hole) {
		s->end = lseek(s->fd, (off_t)s->hole, SEEK_CUR);
		if (s->end < 0)
			return -errno;
		s->hole = 0;
	}
	/* Where space cannot be reserved, the write finds out. */
	if (size >= RESERVE_MIN)
		(void)fallocate(s->fd, FALLOC_FL_KEEP_SIZE, s->end, (off_t)size);
	s->end += (off_t)size;
	return fd_write_all(s->fd, p, size);
}

static int write_sparse(struct corefile_sink *s, const uint8_t *p, size_t size)
{
	bool zero;
	int r;

	for (size_t n; size; p += n, size -= n) {
		n = core_run(p, size, s->hole != 0, &zero);
		r = zero ? 0 : write_data(s, p, n);
		if (r < 0)
			return r;
		s->hole += zero ? n : 0;
	}
	return 0;
}

static void advance(struct corefile_sink *s, size_t size)
{
	const struct corefile_sink_options *o = &s->options;

	s->flushed += size;
	if (!s->error && o->progress && !o->progress(o->arg, s->flushed, o->total))
		s->error = -ECANCELED;
}

static void emit(struct corefile_sink *s, const uint8_t *p, size_t size)
{
	if (s->error || !size)
		return;
	if (s->compress)
		s->error = corefile_compress_write(s->compress, p, size);
	else if (s->end >= 0)
		s->error = write_sparse(s, p, size);
	else
		s->error = fd_write_all(s->fd, p, size);
	advance(s, size);
}

static void flush(struct corefile_sink *s)
{
	emit(s, s->buf, s->fill);
	s->fill = 0;
}

static size_t buffer(struct corefile_sink *s, const uint8_t *p, size_t size)
{
	size_t n = BUFFER_SIZE - s->fill;

	n = size < n ? size : n;
	memcpy(s->buf + s->fill, p, n);
	s->fill += n;
	if (s->fill == BUFFER_SIZE)
		flush(s);
	return n;
}

/* Pass whole pages of the core on from where they lie, without a copy. */
static size_t pass_on(struct corefile_sink *s, const uint8_t *p, size_t size)
{
	size_t done = 0, n;

	flush(s);
	for (; size - done >= PAGE_BYTES && !s->error; done += n) {
		n = (size - done) & ~(size_t)(PAGE_BYTES - 1);
		n = n < BUFFER_SIZE ? n : BUFFER_SIZE;
		emit(s, p + done, n);
	}
	return done;
}

void corefile_sink_write(struct corefile_sink *s, const void *data, size_t size)
{
	const uint8_t *p = data;

	while (size && !s->error) {
		size_t to_page = -corefile_sink_position(s) % PAGE_BYTES, n;

		if (size < DIRECT_MIN)
			n = buffer(s, p, size);
		else
			n = to_page ? buffer(s, p, to_page) : pass_on(s, p, size);
		p += n;
		size -= n;
	}
}

static size_t pad_buffer(struct corefile_sink *s, uint64_t size)
{
	size_t n = BUFFER_SIZE - s->fill;

	n = size < n ? (size_t)size : n;
	memset(s->buf + s->fill, 0, n);
	s->fill += n;
	if (s->fill == BUFFER_SIZE)
		flush(s);
	return n;
}

/* Whole pages that are to become a hole are not looked at. */
static size_t pad_pages(struct corefile_sink *s, uint64_t size)
{
	size_t n = size < BUFFER_SIZE ? (size_t)size & ~(size_t)(PAGE_BYTES - 1) : BUFFER_SIZE;

	flush(s);
	if (s->error)
		return n;
	s->hole += n;
	advance(s, n);
	return n;
}

void corefile_sink_pad(struct corefile_sink *s, uint64_t position)
{
	while (!s->error && corefile_sink_position(s) < position) {
		uint64_t left = position - corefile_sink_position(s);
		size_t to_page = -corefile_sink_position(s) % PAGE_BYTES;

		if (s->end < 0 || left < CORE_HOLE_MIN + to_page)
			pad_buffer(s, left);
		else if (to_page)
			pad_buffer(s, to_page);
		else
			pad_pages(s, left);
	}
}

uint64_t corefile_sink_position(const struct corefile_sink *s)
{
	return s->flushed + s->fill;
}

bool corefile_sink_failed(const struct corefile_sink *s)
{
	return s->error < 0;
}

int corefile_sink_finish(struct corefile_sink *s)
{
	flush(s);
	if (!s->error && s->compress)
		s->error = corefile_compress_finish(s->compress);
	if (!s->error && s->hole) {
		/* A file that ends in a hole gets its length without a write. */
		off_t end = lseek(s->fd, (off_t)s->hole, SEEK_CUR);

		if (end < 0 || ftruncate(s->fd, end) < 0)
			s->error = -errno;
		s->hole = 0;
	}
	return s->error;
}
