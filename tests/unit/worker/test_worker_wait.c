/* SPDX-License-Identifier: MIT */
/* Queues that are read while they run: what has moved between two reads is not told.  What is said of warps. */
#include <stdlib.h>

#include "agentd/worker/spin/spin.h"
#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "agentd/worker/wait/warps.h"
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

/* ------------------------------------------------------------------ no memory ---------------- */

static unsigned int n_refused;

static ssize_t read_nothing(const void *source, uint64_t address, void *buf, size_t size)
{
	(void)source;
	(void)address;
	(void)buf;
	(void)size;
	n_refused++;
	return -EIO;
}

static bool is_missing(const struct rpc_why_get_result *why, const char *text)
{
	for (size_t i = 0; i < why->n_missing; i++)
		if (strstr(why->missing[i], text))
			return true;
	return false;
}

/*
 * A workgroup of four waves, three of which wait at its barrier as their saved STATUS says, and a queue with a packet.
 * All that is read beyond that fails, and so does the list of code objects.
 */
static void with_every_read_failing_the_kinds_are_told(void)
{
	static const struct target_ops ops = { .vendor = RPC_VENDOR_AMD };
	struct target t = { .ops = &ops, .memory = { .fd = -1, .read = read_nothing } };
	struct target_device device = { .rpc = { .gpu_id = 7, .has_gfx_target_version = true,
						 .gfx_target_version = 90010 } };
	struct rpc_queue queue = { .queue_id = 3, .gpu_id = 7, .type = RPC_QUEUE_TYPE_COMPUTE_AQL,
				   .has_ring_base = true, .ring_base = RING, .ring_bytes = RING_SIZE,
				   .has_read_pointer = true, .read_pointer = READ, .has_write_pointer = true,
				   .write_pointer = WRITE };
	struct wave waves[4];
	struct snapshot seen = { .devices = &device, .n_devices = 1, .queues = &queue, .n_queues = 1,
				 .waves = { .waves = waves, .n_waves = 4 } };
	const struct wait_options o = { .look_up_ms = 1000 };
	struct rpc_why_get_result why = { 0 };
	struct history *history = NULL;
	struct agent_err err = { 0 };
	struct rpc_arena arena;

	for (uint32_t i = 0; i < 4; i++)
		waves[i] = (struct wave){ .pc = 0x7f0000001040 + (i == 3 ? 64 : 0), .gpu_id = 7, .queue_id = 3,
					  .index = i, .arguments = 0x30000, .kernel_handle = 0x40000, .group_waves = 4,
					  .state = RPC_WAVE_STATE_RUNNING, .wave_in_group = (uint8_t)i,
					  .has_dispatch = true, .has_workgroup = true, .has_wave_in_group = true,
					  .saved = { .status = i < 3 ? 1u << 12 | 1u << 11 : 1u << 11 } };
	rpc_arena_init(&arena, 1 << 20);
	n_refused = 0;
	TEST_EQ_FATAL(wait_tell(&t, &arena, &o, &seen, &history, &why, &err), 0);
	TEST_EQ_FATAL(why.n_waits, 1);
	TEST_EQ(why.waits[0].kind, RPC_WAIT_KIND_BARRIER);
	TEST_EQ(why.waits[0].confidence, RPC_CONFIDENCE_INFERRED);
	TEST_EQ(why.waits[0].waves, 3);
	TEST_EQ(n_refused > 0, true);
	/* What it lacks is named, and nobody is accused. */
	TEST_EQ(!why.complete && is_missing(&why, "queue 3: its packets are not readable"), true);
	for (size_t i = 0; i < why.n_causes; i++)
		TEST_EQ(why.causes[i].culprit, false);
	wait_history_free(history);
	rpc_arena_deinit(&arena);
}

/* ------------------------------------------------------------------ warps -------------------- */

/* What is said of place 0, where lane 1 of warp 0 is, and one lane of another warp. */
static void who_is_at(const struct wave *other, uint32_t lanes, const char *wanted)
{
	static struct block b;
	const struct wave zero = { .has_wave_in_group = true };
	struct rpc_arena arena;
	struct look l = { .arena = &arena };

	rpc_arena_init(&arena, 1 << 20);
	b = (struct block){ .n_units = 3, .n_places = 1, .units = {
		{ .w = &zero, .warp = &zero, .does = DOES_WAIT, .lanes = 1 << 1, .wait = 0 },
		{ .w = &zero, .warp = &zero, .does = DOES_RUN, .lanes = 1 << 0, .wait = LOOK_NONE },
		{ .w = other, .warp = other, .does = DOES_WAIT, .lanes = lanes, .wait = 0 },
	} };
	TEST_STR(warps_text(&l, &b, 0), wanted);
	rpc_arena_deinit(&arena);
}

static void lanes_are_told_of_their_own_warp(void)
{
	who_is_at(&(struct wave){ .has_wave_in_group = true, .wave_in_group = 1 }, 1 << 5,
		  "warp 1 and lane 1 of warp 0");
	/* Where two warps are apart, it is not said whose lanes. */
	who_is_at(&(struct wave){ .has_wave_in_group = true }, 1 << 5, "lanes 1,5 of warp 0");
}

/* No block has warp 64, but a core says what it likes: in a mask of 64 bits it must not become warp 0. */
static void warps_beyond_the_mask_are_not_told_as_others(void)
{
	static const uint8_t numbers[] = { 64, 65, 128, 192, 255 };

	for (size_t i = 0; i < sizeof(numbers); i++)
		who_is_at(&(struct wave){ .has_wave_in_group = true, .wave_in_group = numbers[i] }, 1 << 5,
			  "lane 1 of warp 0");
}

static void warps_without_a_number_are_not_warp_0(void)
{
	who_is_at(&(struct wave){ .has_wave_in_group = false }, 1 << 5, "lane 1 of warp 0");
}

/* ------------------------------------------------------------------ polled words ------------- */

/* How many things are missing, and whether all that is not said is NULL. */
static size_t count_missing(const struct spins *s, const char *first, const char *last)
{
	const char *missing[SPINS_MISSING_MAX];
	const char *told[SPINS_MISSING_MAX] = { NULL };
	struct rpc_arena arena;
	size_t n = 0;

	rpc_arena_init(&arena, 1 << 20);
	spins_missing(s, &arena, missing);
	for (size_t i = 0; i < SPINS_MISSING_MAX; i++)
		if (missing[i])
			told[n++] = missing[i];
	if (n) {
		TEST_EQ(strstr(told[0], first) == told[0], true);
		TEST_EQ(strstr(told[n - 1], last) == told[n - 1], true);
	}
	rpc_arena_deinit(&arena);
	return n;
}

static void one_thing_that_is_missing_hides_no_other(void)
{
	static const char warps[] = "words that are polled: 3 warps", loops[] = "words that are polled: loops",
			  grids[] = "barriers of grids: 5 warps";

	TEST_EQ(count_missing(&(struct spins){ 0 }, "", ""), 0);
	TEST_EQ(count_missing(&(struct spins){ .untraced = 5 }, grids, grids), 1);
	TEST_EQ(count_missing(&(struct spins){ .left_out = 3, .untraced = 5 }, warps, grids), 2);
	TEST_EQ(count_missing(&(struct spins){ .cut = 1, .untraced = 5 }, loops, grids), 2);
	TEST_EQ(count_missing(&(struct spins){ .left_out = 3, .cut = 1 }, warps, loops), 2);
	TEST_EQ(count_missing(&(struct spins){ .left_out = 3, .cut = 1, .untraced = 5 }, warps, grids), 3);
}

TEST_SUITE(worker_wait, TEST(what_stands_still_is_told), TEST(with_every_read_failing_the_kinds_are_told),
	   TEST(a_signal_that_moves_between_both_passes_is_left_out),
	   TEST(a_queue_that_goes_on_between_both_passes_is_left_out),
	   TEST(lanes_are_told_of_their_own_warp), TEST(warps_beyond_the_mask_are_not_told_as_others),
	   TEST(warps_without_a_number_are_not_warp_0), TEST(one_thing_that_is_missing_hides_no_other));
