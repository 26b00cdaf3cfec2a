/* SPDX-License-Identifier: MIT */
/* Queues that are read while they run: what has moved between two reads is not told. */
#include <stdlib.h>

#include "agentd/worker/wait/look.h"
#include "testlib.h"

enum { READ = 0x1000, WRITE = 0x2000, RING = 0x10000, SIGNAL = 0x20000, RING_SIZE = 4096 };

/* The program's memory, which changes when a place has been read so often. */
static struct {
	uint64_t read, write, value;
	uint8_t ring[RING_SIZE];
	uint64_t moves_at; /* Which place moves on, and after how many reads of it. */
	unsigned int after, n;
} program;

static ssize_t read_program(const void *source, uint64_t address, void *buf, size_t size)
{
	uint64_t *word = address == READ ? &program.read : address == WRITE ? &program.write : &program.value;

	(void)source;
	if (address >= RING && address + size <= RING + RING_SIZE) {
		memcpy(buf, program.ring + (address - RING), size);
		return (ssize_t)size;
	}
	if (size != 8)
		return -EFAULT;
	if (address == program.moves_at && program.n++ == program.after)
		++*word;
	memcpy(buf, word, size);
	return (ssize_t)size;
}

/* How many waits are found, of a queue whose next packet is a barrier-AND for one signal. */
static size_t waits_of(uint64_t moves_at, unsigned int after)
{
	static const struct target_ops ops;
	struct target t = { .ops = &ops, .memory = { .fd = -1, .read = read_program } };
	struct rpc_queue queue = { .queue_id = 3, .type = RPC_QUEUE_TYPE_COMPUTE_AQL, .has_ring_base = true,
				   .ring_base = RING, .ring_bytes = RING_SIZE, .has_read_pointer = true,
				   .read_pointer = READ, .has_write_pointer = true, .write_pointer = WRITE };
	struct snapshot seen = { .queues = &queue, .n_queues = 1 };
	struct rpc_arena arena;
	struct history *history = NULL;
	struct look l = { .target = &t, .arena = &arena, .seen = &seen };
	uint64_t signal = SIGNAL - 8;
	uint32_t number;
	size_t n;

	rpc_arena_init(&arena, 1 << 20);
	memset(&program, 0, sizeof(program));
	program.write = 2;
	program.value = 1;
	program.ring[0] = 3;
	memcpy(program.ring + 8, &signal, 8);
	program.moves_at = moves_at;
	program.after = after;
	l.now = history_begin(&history, 1, 0, &number);
	l.missing = rpc_arena_array(&arena, LOOK_MISSING_MAX, sizeof(*l.missing));
	look_at_queues(&l);
	n = l.n_waits;
	TEST_EQ(l.failed, false);
	free(l.waits);
	free(l.nodes);
	free(l.edges);
	history_free(history);
	rpc_arena_deinit(&arena);
	return n;
}

static void what_stands_still_is_told(void)
{
	TEST_EQ(waits_of(0, 0), 1);
}

static void a_signal_that_moves_between_both_passes_is_left_out(void)
{
	/* The first read of the signal is that of the first pass, the second that of the other. */
	TEST_EQ(waits_of(SIGNAL, 0), 1);
	TEST_EQ(waits_of(SIGNAL, 1), 0);
	TEST_EQ(waits_of(SIGNAL, 2), 1);
}

static void a_queue_that_goes_on_between_both_passes_is_left_out(void)
{
	/* The reads of the first pass are two, and the third is that of the second pass. */
	TEST_EQ(waits_of(READ, 2), 0);
	TEST_EQ(waits_of(READ, 3), 1);
}

TEST_SUITE(worker_wait, TEST(what_stands_still_is_told),
	   TEST(a_signal_that_moves_between_both_passes_is_left_out),
	   TEST(a_queue_that_goes_on_between_both_passes_is_left_out));
