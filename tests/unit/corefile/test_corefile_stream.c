/* SPDX-License-Identifier: MIT */
/* A core between two processes: the same bytes, holes told instead of sent, and nothing that is no core is taken. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "corefile/stream.h"
#include "testlib.h"

#define MIB ((size_t)1 << 20)

struct way {
	int pair[2], file;
	struct corefile_stream_out *out;
	struct corefile_stream_in *in;
	struct corefile_sink *sink;
};

static void way_open(struct way *w, uint64_t total)
{
	static const struct corefile_sink_options plain;

	TEST_EQ_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, w->pair), 0);
	w->file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CU_ASSERT_TRUE_FATAL(w->file >= 0);
	TEST_EQ_FATAL(corefile_stream_out_create(w->pair[0], &w->out), 0);
	TEST_EQ_FATAL(corefile_stream_in_create(w->pair[1], total, &w->in), 0);
	TEST_EQ_FATAL(corefile_sink_create(w->file, &plain, &w->sink), 0);
}

static void way_close(struct way *w)
{
	corefile_sink_destroy(w->sink);
	corefile_stream_in_destroy(w->in);
	corefile_stream_out_destroy(w->out);
	if (w->pair[0] >= 0)
		close(w->pair[0]);
	close(w->pair[1]);
	close(w->file);
}

/* Send all that was given, the reader taking what has come whenever the socket is full. */
static int carry(struct way *w)
{
	int sent, r = 0;

	while ((sent = corefile_stream_out_send(w->out)) == 0 && r == 0)
		r = corefile_stream_in_read(w->in, w->sink);
	return sent < 0 ? sent : r;
}

static void compare_file(int fd, const uint8_t *want, size_t size)
{
	struct stat st;
	uint8_t *p;

	TEST_EQ_FATAL(fstat(fd, &st), 0);
	TEST_EQ_FATAL(st.st_size, size);
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	CU_ASSERT_TRUE_FATAL(p != MAP_FAILED);
	TEST_EQ(memcmp(p, want, size), 0);
	munmap(p, size);
}

/* Random runs of zeros and bytes, of page size, below and above it, in pieces of any length. */
static void what_was_given_arrives(void)
{
	static const size_t lengths[] = { 1, 100, 4095, 4096, 8192, 16384, 20480, 65536, 300000, 2 * MIB };
	auto_free uint8_t *all = malloc(16 * MIB);

	for (unsigned round = 0; round < 20; round++) {
		size_t size = 0;
		struct way w;
		struct stat st;
		int r = 0;

		while (size < 12 * MIB) {
			size_t n = lengths[test_random() % TEST_COUNT(lengths)];

			memset(all + size, test_random() % 2 ? (int)(test_random() & 0xff) : 0, n);
			size += n;
		}
		if (round & 1)
			memset(all + size - 1 * MIB, 0, 1 * MIB);
		way_open(&w, size);
		for (size_t at = 0, n; at < size && r == 0; at += n) {
			n = 1 + test_random() % CORE_STREAM_PIECE_MAX;
			n = size - at < n ? size - at : n;
			corefile_stream_out_data(w.out, all + at, n);
			r = carry(&w);
		}
		corefile_stream_out_end(w.out, 4711);
		r = r == 0 ? carry(&w) : r;
		while (r == 0)
			r = corefile_stream_in_read(w.in, w.sink);
		TEST_ROW_EQ(round, r, 1);
		TEST_EQ(corefile_stream_in_lost(w.in), 4711);
		TEST_EQ(corefile_sink_finish(w.sink), 0);
		/* Before it is compared: a page of tmpfs that is mapped and read is no hole any more. */
		TEST_EQ(fstat(w.file, &st), 0);
		CU_ASSERT_TRUE((uint64_t)st.st_blocks * 512 < size);
		compare_file(w.file, all, size);
		way_close(&w);
	}
}

/* A piece in which as many runs begin as can: every fifth page has a byte. */
static void most_runs_fit_into_a_piece(void)
{
	auto_free uint8_t *piece = calloc(1, CORE_STREAM_PIECE_MAX);
	struct way w;
	int r = 0;

	for (size_t at = 0; at < CORE_STREAM_PIECE_MAX; at += 5 * 4096)
		piece[at + 17] = 1;
	way_open(&w, 3 * CORE_STREAM_PIECE_MAX + 1);
	corefile_stream_out_data(w.out, piece + 18, 1);
	TEST_EQ(carry(&w), 0);
	for (unsigned i = 0; i < 3 && r == 0; i++) {
		corefile_stream_out_data(w.out, piece, CORE_STREAM_PIECE_MAX);
		r = carry(&w);
	}
	corefile_stream_out_end(w.out, 0);
	r = r == 0 ? carry(&w) : r;
	while (r == 0)
		r = corefile_stream_in_read(w.in, w.sink);
	TEST_EQ(r, 1);
	TEST_EQ(corefile_sink_position(w.sink), 3 * CORE_STREAM_PIECE_MAX + 1);
	way_close(&w);
}

static void a_writer_does_not_wait(void)
{
	auto_free uint8_t *piece = malloc(CORE_STREAM_PIECE_MAX);
	struct way w;
	int r;

	memset(piece, 1, CORE_STREAM_PIECE_MAX);
	way_open(&w, 64 * CORE_STREAM_PIECE_MAX);
	do {
		corefile_stream_out_data(w.out, piece, CORE_STREAM_PIECE_MAX);
		r = corefile_stream_out_send(w.out);
	} while (r == 1);
	TEST_EQ(r, 0);
	TEST_EQ(corefile_stream_out_send(w.out), 0);
	shutdown(w.pair[1], SHUT_RDWR);
	TEST_EQ(corefile_stream_out_send(w.out), -EPIPE);
	way_close(&w);
}

static void a_failure_is_told(void)
{
	size_t size;
	struct way w;

	way_open(&w, 100);
	corefile_stream_out_data(w.out, "ab", 2);
	TEST_EQ(carry(&w), 0);
	corefile_stream_out_error(w.out, "{\"code\":1}", 10);
	TEST_EQ(corefile_stream_out_send(w.out), 1);
	TEST_EQ(corefile_stream_in_read(w.in, w.sink), -EREMOTEIO);
	TEST_EQ(memcmp(corefile_stream_in_error(w.in, &size), "{\"code\":1}", 10), 0);
	TEST_EQ(size, 10);
	way_close(&w);
}

struct bad_row {
	const char *what;
	struct corefile_stream_record r[3];
	size_t n;
	int want;
};

static const struct bad_row bad_rows[] = {
	{ "nothing", { { 0 } }, 0, -EPIPE },
	{ "a hole to the end, without an end", { { CORE_STREAM_HOLE, 0, 100 } }, 1, -EPIPE },
	{ "a hole beyond the end", { { CORE_STREAM_HOLE, 0, 101 } }, 1, -EPROTO },
	{ "holes beyond the end", { { CORE_STREAM_HOLE, 0, 60 }, { CORE_STREAM_HOLE, 0, 41 } }, 2, -EPROTO },
	{ "a hole that wraps", { { CORE_STREAM_HOLE, 0, 60 }, { CORE_STREAM_HOLE, 0, UINT64_MAX - 10 } }, 2, -EPROTO },
	{ "bytes beyond the end", { { CORE_STREAM_DATA, 0, UINT64_MAX } }, 1, -EPROTO },
	{ "an end too early", { { CORE_STREAM_HOLE, 0, 99 }, { CORE_STREAM_END, 0, 0 } }, 2, -EPROTO },
	{ "a kind that is none", { { 5, 0, 1 } }, 1, -EPROTO },
	{ "no kind", { { 0, 0, 0 } }, 1, -EPROTO },
	{ "an error without end", { { CORE_STREAM_ERROR, 0, CORE_STREAM_TEXT_MAX + 1 } }, 1, -EPROTO },
	{ "an error cut short", { { CORE_STREAM_ERROR, 0, 10 } }, 1, -EPIPE },
	{ "bytes cut short", { { CORE_STREAM_DATA, 0, 100 } }, 1, -EPIPE },
	{ "all of it", { { CORE_STREAM_HOLE, 0, 100 }, { CORE_STREAM_END, 0, 0 } }, 2, 1 },
};

static void what_is_no_core_is_refused(void)
{
	for (size_t i = 0; i < TEST_COUNT(bad_rows); i++) {
		const struct bad_row *row = &bad_rows[i];
		struct way w;
		int r = 0;

		way_open(&w, 100);
		if (row->n)
			TEST_EQ(write(w.pair[0], row->r, row->n * sizeof(row->r[0])),
				row->n * sizeof(row->r[0]));
		close(w.pair[0]);
		w.pair[0] = -1;
		while (r == 0)
			r = corefile_stream_in_read(w.in, w.sink);
		TEST_ROW_EQ(i, r, row->want);
		way_close(&w);
	}
}

/* Byte by byte: a record and a page may come in any parts. */
static void parts_of_any_size_are_put_together(void)
{
	struct corefile_stream_record r[] = { { CORE_STREAM_DATA, 0, 5000 }, { CORE_STREAM_END, 0, 7 } };
	uint8_t bytes[sizeof(r) + 5000];
	struct way w;
	int got = 0;

	memcpy(bytes, &r[0], sizeof(r[0]));
	for (size_t i = 0; i < 5000; i++)
		bytes[sizeof(r[0]) + i] = (uint8_t)(i * 7 + 1);
	memcpy(bytes + sizeof(r[0]) + 5000, &r[1], sizeof(r[1]));
	way_open(&w, 5000);
	for (size_t i = 0; i < sizeof(bytes) && got == 0; i++) {
		TEST_EQ(write(w.pair[0], bytes + i, 1), 1);
		got = corefile_stream_in_read(w.in, w.sink);
	}
	TEST_EQ(got, 1);
	TEST_EQ(corefile_stream_in_lost(w.in), 7);
	TEST_EQ(corefile_sink_finish(w.sink), 0);
	compare_file(w.file, bytes + sizeof(r[0]), 5000);
	way_close(&w);
}

TEST_SUITE(corefile_stream, TEST(what_was_given_arrives), TEST(most_runs_fit_into_a_piece),
	   TEST(a_writer_does_not_wait), TEST(a_failure_is_told), TEST(what_is_no_core_is_refused),
	   TEST(parts_of_any_size_are_put_together));
