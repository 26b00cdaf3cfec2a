/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "agentd/worker/process/late_memory.h"
#include "base/clock.h"
#include "testlib.h"

/* Reads below PAGE answer at once; others when a byte is in the pipe, as of a file that does not answer. */
#define PAGE 4096
static int gate[2];
static atomic_bool is_asked; /* Such a read has begun. */

static ssize_t fake_pread(int fd, void *buf, size_t size, off_t offset)
{
	char c;

	(void)fd;
	if (offset >= PAGE) {
		is_asked = true;
		if (read(gate[0], &c, 1) != 1)
			return -1;
	}
	memset(buf, (int)(offset & 0xff), size);
	return (ssize_t)size;
}

static struct late_memory *begin(void)
{
	struct memory m = { .fd = open("/dev/null", O_RDONLY | O_CLOEXEC), .pread = fake_pread };
	struct late_memory *l = late_memory_create(&m);

	TEST_EQ_FATAL(pipe2(gate, O_CLOEXEC), 0);
	/* It has a descriptor of its own. */
	memory_close(&m);
	return l;
}

static void what_answers_is_read(void)
{
	struct late_memory *l = begin();
	uint8_t buf[8] = { 0 };

	for (uint8_t at = 1; at < 100; at++) {
		TEST_EQ_FATAL(late_memory_read(l, at, buf, sizeof(buf), clock_deadline_ms(10000)), 0);
		TEST_EQ(buf[0] == at && buf[7] == at, true);
	}
	TEST_EQ(late_memory_read(l, UINT64_MAX, buf, sizeof(buf), clock_deadline_ms(10000)), -EFAULT);
	late_memory_destroy(l);
	late_memory_destroy(NULL);
}

static void what_does_not_answer_is_left(void)
{
	struct late_memory *l = begin();
	uint8_t buf[8] = { 0 };
	int r = -ETIMEDOUT;

	TEST_EQ(late_memory_read(l, PAGE, buf, sizeof(buf), clock_deadline_ms(1)), -ETIMEDOUT);
	/* The thread hangs, and nobody waits for it again: not even for what would answer. */
	TEST_EQ(late_memory_read(l, 7, buf, sizeof(buf), clock_deadline_ms(3600000)), -ETIMEDOUT);
	TEST_EQ(buf[0], 0);
	TEST_EQ_FATAL(write(gate[1], "x", 1), 1);
	/* What was asked first is no answer to what is asked now. */
	while (r == -ETIMEDOUT)
		r = late_memory_read(l, 7, buf, sizeof(buf), clock_deadline_ms(10000));
	TEST_EQ(r, 0);
	TEST_EQ(buf[0], 7);
	late_memory_destroy(l);
}

/* The end does not wait for a thread that hangs; that frees what it has when it is back. */
static void the_end_waits_for_nobody(void)
{
	struct late_memory *l = begin();
	uint8_t buf[8];

	is_asked = false;
	TEST_EQ(late_memory_read(l, PAGE, buf, sizeof(buf), clock_deadline_ms(1)), -ETIMEDOUT);
	/* A thread that the machine has not let run yet would end without a read. */
	while (!is_asked)
		usleep(1000);
	late_memory_destroy(l);
	TEST_EQ_FATAL(write(gate[1], "x", 1), 1);
	/* The byte is taken: the thread is back. */
	for (struct pollfd p = { gate[0], POLLIN, 0 }; poll(&p, 1, 0) == 1;)
		usleep(1000);
}

TEST_SUITE(worker_late_memory, TEST(what_answers_is_read), TEST(what_does_not_answer_is_left),
	   TEST(the_end_waits_for_nobody));
