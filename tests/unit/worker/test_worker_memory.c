/* SPDX-License-Identifier: MIT */
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/worker/process/memory.h"
#include "base/page.h"
#include "testlib.h"

#define PAGE ((uint64_t)page_bytes())

/* Pages [from, to) are readable; a read that goes beyond fails as a whole, as amdgpu's does. */
static struct {
	uint64_t from, to;
	int err;
	unsigned calls;
} fake;

static ssize_t fake_pread(int fd, void *buf, size_t size, off_t offset)
{
	uint64_t at = (uint64_t)offset;

	TEST_EQ(fd, 5);
	fake.calls++;
	if (at < fake.from || at + size > fake.to) {
		errno = fake.err;
		return fake.err ? -1 : 0;
	}
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = (uint8_t)((at + i) * 7 + ((at + i) >> 12));
	return (ssize_t)size;
}

static bool right_bytes(const uint8_t *buf, uint64_t at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (buf[i] != (uint8_t)((at + i) * 7 + ((at + i) >> 12)))
			return false;
	return true;
}

/* Short at the end of what is mapped, at whatever offset and size it is asked. */
static void reads_are_split_and_short(void)
{
	const struct {
		uint64_t at;
		size_t size;
		ssize_t want;
	} rows[] = {
		{ 16 * PAGE, 100, 100 },
		{ 16 * PAGE + 4090, 10, 10 },
		{ 16 * PAGE, 64 * PAGE, 64 * PAGE },
		{ 16 * PAGE + 1, 100 * PAGE, 84 * PAGE - 1 },
		{ 100 * PAGE - 1, PAGE, 1 },
		{ 99 * PAGE, 3 * PAGE, PAGE },
		{ 100 * PAGE, 1, -EFAULT },
		{ 15 * PAGE, 2 * PAGE, -EFAULT },
		{ UINT64_MAX - 10, 100, -EFAULT },
		{ UINT64_MAX, 1, -EFAULT },
		{ (uint64_t)INT64_MAX, 1, -EFAULT },
		{ 16 * PAGE, 0, 0 },
	};
	const struct memory m = { .fd = 5, .pread = fake_pread };

	fake = (typeof(fake)){ .from = 16 * PAGE, .to = 100 * PAGE, .err = EIO };
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint8_t *buf = test_tail_alloc(rows[i].size ? rows[i].size : 1);
		ssize_t n = memory_read(&m, rows[i].at, buf, rows[i].size);

		TEST_ROW_EQ(i, n, rows[i].want);
		if (n > 0)
			TEST_ROW_EQ(i, right_bytes(buf, rows[i].at, (size_t)n), true);
	}
}

/* A hole costs one try for each piece, not one for each page behind it. */
static void a_hole_ends_the_read(void)
{
	const struct memory m = { .fd = 5, .pread = fake_pread };
	uint8_t *buf = test_tail_alloc(256 * PAGE);

	fake = (typeof(fake)){ .from = 0, .to = 20 * PAGE, .err = EIO };
	TEST_EQ(memory_read(&m, 0, buf, 256 * PAGE), 20 * PAGE);
	CU_ASSERT_TRUE(fake.calls < 24);
}

static void errors_keep_their_meaning(void)
{
	static const struct {
		int err, want;
	} rows[] = { { EIO, -EFAULT }, { 0, -ESRCH }, { EPERM, -EPERM }, { EFAULT, -EFAULT } };
	const struct memory m = { .fd = 5, .pread = fake_pread };
	const struct memory closed = MEMORY_NULL;
	uint64_t v = 1;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		fake = (typeof(fake)){ .err = rows[i].err };
		TEST_ROW_EQ(i, memory_read(&m, PAGE, &v, sizeof(v)), rows[i].want);
		TEST_ROW_EQ(i, memory_read_exact(&m, PAGE, &v, sizeof(v)), rows[i].want);
	}
	TEST_EQ(memory_read(&closed, 0, &v, sizeof(v)), -EBADF);
	fake = (typeof(fake)){ .from = 0, .to = PAGE, .err = EIO };
	TEST_EQ(memory_read_exact(&m, PAGE - 4, &v, sizeof(v)), -EFAULT);
}

/* The real file of this very process. */
static void reads_a_real_process(void)
{
	struct memory m = MEMORY_NULL;
	uint64_t value = UINT64_C(0x1122334455667788), got = 0;

	TEST_EQ_FATAL(memory_open(&m, getpid()), 0);
	TEST_EQ(memory_read_exact(&m, (uint64_t)(uintptr_t)&value, &got, sizeof(got)), 0);
	TEST_EQ(got, value);
	TEST_EQ(memory_read_exact(&m, 16, &got, sizeof(got)), -EFAULT);
	memory_close(&m);
	memory_close(&m);
	TEST_EQ(memory_open(&m, -1), -ENOENT);
}

/* Of more than one call's worth of pieces, those around a hole: each is whole or not there. */
static void pieces_are_read_around_holes(void)
{
	static const struct {
		bool through_file, downwards;
		size_t n_empty;
	} rows[] = { { false, false, 0 }, { true, false, 0 }, { false, true, 0 }, { true, true, 0 },
		     { false, true, MEMORY_PIECES_MAX + 300 } };
	const size_t n = MEMORY_PIECES_MAX + 500, page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_FATAL(at != MAP_FAILED);
	for (size_t i = 0; i < 3 * page; i++)
		at[i] = (uint8_t)(i * 7 + i / page);
	TEST_EQ_FATAL(munmap(at + page, page), 0);
	for (size_t row = 0; row < TEST_COUNT(rows); row++) {
		auto_free struct memory_piece *pieces = calloc(n, sizeof(*pieces));
		uint8_t *buf = test_tail_alloc(n * 8);
		struct memory m = MEMORY_NULL;

		TEST_EQ_FATAL(memory_open(&m, getpid()), 0);
		if (rows[row].through_file)
			m.pid = 0;
		for (size_t i = 0; i < n; i++) {
			size_t place = rows[row].downwards ? n - 1 - i : i;

			pieces[i] = (struct memory_piece){
				.address = (uint64_t)(uintptr_t)at + place * 3 * page / n,
				.buf = buf + i * 8,
				.size = i < rows[row].n_empty ? 0 : (uint32_t)(i % 9),
			};
		}
		memory_read_pieces(&m, pieces, n);
		for (size_t i = 0; i < n; i++) {
			size_t from = pieces[i].address - (uintptr_t)at, to = from + pieces[i].size;
			bool there = to <= page || (from >= 2 * page && to <= 3 * page) || from == to;

			TEST_ROW_EQ(i, pieces[i].ok, there);
			if (there && from != to)
				TEST_ROW_EQ(i, memcmp(buf + i * 8, at + from, to - from), 0);
		}
		memory_close(&m);
	}
	munmap(at, page);
	munmap(at + 2 * page, page);
}

/* A process that may not be read directly, or is gone: the file decides. */
static void pieces_fall_back_to_the_file(void)
{
	const struct memory m = { .fd = 5, .pid = INT32_MAX, .pread = fake_pread };
	uint32_t values[3];
	struct memory_piece pieces[3];

	fake = (typeof(fake)){ .from = 0, .to = PAGE, .err = EIO };
	for (size_t i = 0; i < TEST_COUNT(pieces); i++)
		pieces[i] = (struct memory_piece){ .address = i * (PAGE - 4), .buf = &values[i],
						   .size = sizeof(values[i]) };
	memory_read_pieces(&m, pieces, TEST_COUNT(pieces));
	TEST_EQ(pieces[0].ok, true);
	TEST_EQ(pieces[1].ok, true);
	TEST_EQ(pieces[2].ok, false);
}

TEST_SUITE(worker_memory, TEST(reads_are_split_and_short), TEST(a_hole_ends_the_read),
	   TEST(errors_keep_their_meaning), TEST(reads_a_real_process),
	   TEST(pieces_are_read_around_holes), TEST(pieces_fall_back_to_the_file));
