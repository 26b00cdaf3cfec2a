/* SPDX-License-Identifier: MIT */
/* Queues that are read while they run: what has moved between two reads is not told.  What is said of warps. */
#include <endian.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "agentd/ipc/frontend_worker.h"
#include "agentd/worker/convergence/convergence.h"
#include "agentd/worker/mbarrier/mbarrier.h"
#include "agentd/worker/rule/threads.h"
#include "agentd/worker/spin/spin.h"
#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "agentd/worker/wait/warps.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/out.h"
#include "symbols/cache.h"
#include "testlib.h"

enum { READ = 0x1000, WRITE = 0x2000, RING = 0x10000, SIGNAL = 0x20000, RING_SIZE = 4096 };

/* The program's memory, which changes when a place has been read so often. */
static struct {
	uint64_t read, write, value;
	uint8_t ring[RING_SIZE];
	uint64_t moves_at; /* Which place moves on, and after how many reads of it. */
	bool signals_end;  /* Signals cannot be read any more once threads were. */
	unsigned int after, n;
} program;

/* What a reader of threads says: these wait for a packet. */
static struct {
	bool fails;
	uint32_t tids[3], queue_id;
	uint64_t dispatch;
	size_t n_asked, n_missing;
	const char *missing[4];
} reader;

static ssize_t read_program(const void *source, uint64_t address, void *buf, size_t size)
{
	uint64_t *word = address == READ ? &program.read : address == WRITE ? &program.write : &program.value;

	(void)source;
	if (address >= RING && address + size <= RING + RING_SIZE) {
		memcpy(buf, program.ring + (address - RING), size);
		return (ssize_t)size;
	}
	if (size != 8 || (address == SIGNAL && program.signals_end && reader.n_asked))
		return -EFAULT;
	if (address == program.moves_at && program.n++ == program.after)
		++*word;
	memcpy(buf, word, size);
	return (ssize_t)size;
}

/* What was told of the last look. */
static struct {
	size_t n_threads, n_edges, n_missing, n_threads_missing;
	char threads_missing[2][128];
	uint32_t confidence;
} latest;

static const char *read_threads(void *ctx, struct rpc_arena *a, const struct rpc_host_stacks_params *p,
				struct rpc_host_stacks_result *ret)
{
	TEST_EQ(p->has_frames && !p->frames && p->n_queues == 1 && p->queues[0].queue_id == 3, true);
	reader.n_asked++;
	ret->groups = rpc_arena_array(a, 2, sizeof(*ret->groups));
	ret->n_groups = 2;
	ret->groups[0] = (struct rpc_thread_group){ .threads = 7 };
	ret->groups[1] = (struct rpc_thread_group){
		.threads = 3, .tids = reader.tids, .n_tids = 3, .has_waits_for = true,
		.waits_for = { .has_queue_id = true, .queue_id = reader.queue_id, .has_gpu_id = true,
			       .has_dispatch = true, .dispatch = reader.dispatch },
	};
	ret->missing = reader.missing;
	ret->n_missing = reader.n_missing;
	return reader.fails ? "no answer" : NULL;
}

/* Completion signals of the packets of that queue; 0: none. */
static uint64_t completions[2];
/* Value of their signal, and whether it is gone once threads were read. */
static uint64_t signal_value = 1;
static bool signals_end;

/* How many waits are found, of a queue whose next packet is a barrier-AND for one signal. */
static size_t waits_of(uint64_t moves_at, unsigned int after)
{
	static const struct wait_threads threads = { .read = read_threads };
	static const struct target_ops ops;
	struct target t = { .ops = &ops, .memory = { .fd = -1, .read = read_program } };
	struct rpc_queue queue = { .queue_id = 3, .type = RPC_QUEUE_TYPE_COMPUTE_AQL, .has_ring_base = true,
				   .ring_base = RING, .has_ring_bytes = true, .ring_bytes = RING_SIZE,
				   .has_read_pointer = true, .read_pointer = READ, .has_write_pointer = true,
				   .write_pointer = WRITE };
	struct snapshot seen = { .queues = &queue, .n_queues = 1 };
	struct rpc_arena arena;
	struct history *history = NULL;
	struct look l = { .target = &t, .arena = &arena, .seen = &seen, .threads = &threads };
	struct rpc_why_get_result why = { 0 };
	uint64_t signal = SIGNAL - 8;
	uint32_t number;
	size_t n;

	rpc_arena_init(&arena, 1 << 20);
	memset(&program, 0, sizeof(program));
	program.signals_end = signals_end;
	program.write = 2;
	program.value = signal_value;
	program.ring[0] = program.ring[64] = 3;
	memcpy(program.ring + 8, &signal, 8);
	memcpy(program.ring + 56, &completions[0], 8);
	memcpy(program.ring + 64 + 56, &completions[1], 8);
	program.moves_at = moves_at;
	program.after = after;
	l.now = history_begin(&history, 1, 0, &number);
	l.missing = rpc_arena_array(&arena, LOOK_MISSING_MAX, sizeof(*l.missing));
	l.threads_missing = rpc_arena_array(&arena, LOOK_MISSING_MAX, sizeof(*l.threads_missing));
	look_at_threads(look_at_queues(&l), &why);
	n = l.n_waits;
	latest.n_threads = why.n_threads;
	latest.n_edges = l.n_edges;
	latest.n_missing = l.n_missing;
	latest.n_threads_missing = l.n_threads_missing;
	for (size_t i = 0; i < l.n_threads_missing && i < ARRAY_SIZE(latest.threads_missing); i++)
		snprintf(latest.threads_missing[i], sizeof(latest.threads_missing[i]), "%s", l.threads_missing[i]);
	latest.confidence = why.n_threads ? (uint32_t)why.threads[0].confidence : UINT32_MAX;
	for (size_t i = 0; i < why.n_threads; i++) {
		TEST_EQ(why.threads[i].tid, reader.tids[i]);
		TEST_EQ(l.nodes[why.threads[i].node].rpc.kind, RPC_WAIT_NODE_KIND_THREAD);
		TEST_EQ(l.nodes[why.threads[i].node].rpc.tid, reader.tids[i]);
		TEST_EQ(l.nodes[why.threads[i].node].node.is_wait, false);
	}
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

/* ------------------------------------------------------------------ threads ------------------ */

static void expect_threads(size_t asked, size_t threads, uint32_t confidence)
{
	reader.n_asked = 0;
	TEST_EQ(waits_of(0, 0), 1);
	TEST_EQ(reader.n_asked, asked);
	TEST_EQ(latest.n_threads, threads);
	TEST_EQ(latest.confidence, confidence);
}

static void threads_stand_in_front_of_the_packet_that_they_wait_for(void)
{
	size_t edges;

	memset(&reader, 0, sizeof(reader));
	memcpy(reader.tids, ((uint32_t[]){ 11, 12, 13 }), sizeof(reader.tids));
	reader.queue_id = 3;
	completions[0] = completions[1] = 0;
	/* Nobody can wait for packets that give no signal. */
	expect_threads(0, 0, UINT32_MAX);
	edges = latest.n_edges;
	completions[0] = SIGNAL - 8;
	expect_threads(1, 3, RPC_CONFIDENCE_PROVEN);
	/* The packet gives its own signal, too. */
	TEST_EQ(latest.n_edges > edges, true);
	TEST_EQ(latest.n_missing, 0);
	completions[1] = SIGNAL - 8;
	expect_threads(1, 3, RPC_CONFIDENCE_INFERRED);
	completions[1] = 0;
	/* Somebody else has to give it as well. */
	signal_value = 2;
	expect_threads(1, 3, RPC_CONFIDENCE_INFERRED);
	signal_value = 1;
}

static void a_signal_that_cannot_be_read_is_told(void)
{
	completions[0] = SIGNAL - 8;
	completions[1] = 0;
	reader.dispatch = 0;
	signals_end = true;
	expect_threads(1, 0, UINT32_MAX);
	signals_end = false;
	TEST_EQ(latest.n_missing, 0);
	TEST_EQ(latest.n_threads_missing, 1);
	TEST_STR(latest.threads_missing[0], "threads: whether packets that 3 wait for are done is not readable");
}

static void what_a_reader_misses_is_told_once(void)
{
	static const char *const missing[] = { "queue 3 of GPU 1: its packets cannot be read", "threads: more than 4096",
					       "queue 3 of GPU 1: its packets cannot be read", "threads: more than 4096" };

	completions[0] = SIGNAL - 8;
	memcpy(reader.missing, missing, sizeof(missing));
	reader.n_missing = ARRAY_SIZE(missing);
	expect_threads(1, 3, RPC_CONFIDENCE_PROVEN);
	reader.n_missing = 0;
	TEST_EQ(latest.n_missing, 0);
	TEST_EQ(latest.n_threads_missing, 2);
	TEST_STR(latest.threads_missing[0], "threads: queue 3 of GPU 1: its packets cannot be read");
	TEST_STR(latest.threads_missing[1], "threads: more than 4096");
}

/* @param text  What the reader has sent; NULL: nothing.  @return why there is no answer. */
static const char *answer(struct rpc_arena *a, uint32_t type, const char *text, size_t size, bool closes,
			  struct rpc_host_stacks_result *ret)
{
	const struct ipc_head head = { .type = type, .id = 1, .size = (uint32_t)size };
	struct ipc_link link, peer;
	const char *why;
	int pair[2];

	TEST_EQ_FATAL(fd_socketpair(SOCK_NONBLOCK, pair), 0);
	ipc_link_init(&link, pair[0]);
	ipc_link_init(&peer, pair[1]);
	if (text)
		TEST_EQ(ipc_link_send(&peer, &head, text), 0);
	if (closes)
		ipc_link_deinit(&peer);
	/* What has come already is read, and nothing is waited for. */
	why = rule_threads_receive(&link, clock_now_ns(), a, ret);
	ipc_link_deinit(&link);
	ipc_link_deinit(&peer);
	return why;
}

static void a_reader_of_threads_may_answer_anything(void)
{
	static const char garbage[] = "{\"groups\": 7}", broken[] = "{";
	struct rpc_host_stacks_result told = { 0 };
	auto_out struct out text = { 0 };
	struct agent_err err = { 0 };
	struct rpc_arena a;

	rpc_arena_init(&a, 0);
	TEST_STR(answer(&a, 0, NULL, 0, false, &told), "they were not read in time");
	TEST_STR(answer(&a, 0, NULL, 0, true, &told), "their reader ended without an answer, or there is none");
	TEST_STR(answer(&a, IPC_REPLY, garbage, strlen(garbage), false, &told),
		 "the answer makes no sense, or does not fit into memory");
	TEST_STR(answer(&a, IPC_REPLY, broken, strlen(broken), false, &told),
		 "the answer makes no sense, or does not fit into memory");
	TEST_STR(answer(&a, IPC_CALL, broken, strlen(broken), false, &told),
		 "the answer makes no sense, or does not fit into memory");
	TEST_STR(answer(&a, IPC_ERROR, broken, strlen(broken), false, &told),
		 "the answer makes no sense, or does not fit into memory");
	agent_err_set(&err, RPC_ERROR_INTERNAL, EPERM, NULL, NULL, "process 7: it may not be read");
	agent_err_encode(&text, &err);
	TEST_STR(answer(&a, IPC_ERROR, text.data, text.size, true, &told), "process 7: it may not be read");
	rpc_arena_deinit(&a);
}

static void threads_that_are_told_of_other_packets_are_left_out(void)
{
	/* One without a signal, one that is not written, and one that was taken. */
	static const uint64_t others[] = { 1, 2, UINT64_MAX };

	completions[0] = SIGNAL - 8;
	completions[1] = 0;
	reader.queue_id = 4;
	expect_threads(1, 0, UINT32_MAX);
	reader.queue_id = 3;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		reader.dispatch = others[i];
		expect_threads(1, 0, UINT32_MAX);
	}
	reader.dispatch = 0;
	/* The queue goes on while threads are read. */
	TEST_EQ(waits_of(READ, 3), 1);
	TEST_EQ(latest.n_threads, 0);
}

static void without_an_answer_threads_are_missing(void)
{
	completions[0] = SIGNAL - 8;
	reader.fails = true;
	expect_threads(1, 0, UINT32_MAX);
	TEST_EQ(latest.n_missing, 0);
	TEST_EQ(latest.n_threads_missing, 1);
	TEST_STR(latest.threads_missing[0], "threads: which of them wait for packets: no answer");
	reader.fails = false;
	completions[0] = 0;
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

/* ------------------------------------------------------------------ barriers of gfx12.5 ------ */

/* How far ahead of the real clock this program is. */
static uint64_t ahead_ns;

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void)
{
	return __real_clock_now_ns() + ahead_ns;
}

enum { BIAS = 0x7f000000, TEXT = 0x1800, TEXT_AT = 0x800, NAMED_AT = 0x40, BLOCK_AT = 0x80, CLUSTER_AT = 0xc0 };

/* A code object with an instruction that waits in each of three places. */
static struct {
	char *bytes;
	size_t size;
} object;

static int list_object(struct target *t, struct rpc_arena *a, struct code_list *ret)
{
	(void)t;
	ret->objects = rpc_arena_array(a, 1, sizeof(*ret->objects));
	ret->n_objects = 1;
	if (!ret->objects)
		return -ENOMEM;
	ret->objects[0] = (struct code_object){ .uri = "0", .bias = BIAS };
	return 0;
}

static int stat_object(struct target *t, const struct code_object *o, struct code_stat *ret)
{
	(void)t;
	(void)o;
	*ret = (struct code_stat){ .size = object.size };
	return 0;
}

static ssize_t read_object(struct target *t, const struct code_object *o, uint64_t offset, void *buf, size_t size)
{
	(void)t;
	(void)o;
	if (offset > object.size || size > object.size - offset)
		size = offset > object.size ? 0 : object.size - (size_t)offset;
	memcpy(buf, object.bytes + offset, size);
	return (ssize_t)size;
}

static void object_done(struct target *t)
{
	(void)t;
}

static const struct target_ops gfx12_5 = { .vendor = RPC_VENDOR_AMD, .code_list = list_object,
					   .code_stat = stat_object, .code_read = read_object,
					   .code_done = object_done };

static void make_object(void)
{
	static const struct {
		uint32_t at, word;
	} rows[] = { { NAMED_AT, 0xbf940001 }, { BLOCK_AT, 0xbf94ffff }, { CLUSTER_AT, 0xbf94fffd } };

	TEST_EQ_FATAL(fd_read_file("tests/data/codeobj/spin-gfx90a.co", 1 << 20, &object.bytes, &object.size), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		memcpy(object.bytes + TEXT_AT + rows[i].at, &rows[i].word, sizeof(rows[i].word));
}

/* What is told of a workgroup of four waves, each of which is at a place of the code; release with forget(). */
struct told {
	struct rpc_arena arena;
	struct history *history;
	struct rpc_why_get_result why;
};

/* The place of a wave that has ended, in waves that come last. */
#define ENDED UINT32_MAX
/* A place that is in no code object. */
#define NO_CODE 0x100000u
/* What is missing of the waves; NULL: all were read. */
static const char *unread;

static int try_next(struct told *to, const uint32_t at[4], const struct wave_saved *saved, bool has_since)
{
	struct target t = { .ops = &gfx12_5, .memory = { .fd = -1, .read = read_nothing } };
	struct target_device device = { .rpc = { .gpu_id = 7, .has_gfx_target_version = true,
						 .gfx_target_version = 120500 } };
	const struct wait_options o = { .look_up_ms = 10000, .has_since = has_since, .since = to->why.sample };
	struct wave waves[4];
	struct snapshot seen = { .devices = &device, .n_devices = 1, .waves = { .waves = waves, .n_waves = 4 } };
	struct agent_err err = { 0 };
	int r;

	to->why = (struct rpc_why_get_result){ 0 };
	seen.waves.missing = &unread;
	seen.waves.n_missing = unread != NULL;
	for (uint32_t i = 0; i < 4; i++) {
		seen.waves.n_waves -= at[i] == ENDED;
		waves[i] = (struct wave){ .pc = BIAS + TEXT + at[i], .gpu_id = 7, .queue_id = 3, .index = i,
					  .group_waves = 4, .state = RPC_WAVE_STATE_RUNNING, .has_dispatch = true,
					  .has_workgroup = true, .has_wave_in_group = true,
					  .wave_in_group = (uint8_t)i, .saved = *saved };
		waves[i].saved.named = i ? NULL : saved->named;
	}
	r = wait_tell(&t, &to->arena, &o, &seen, &to->history, &to->why, &err);
	symbols_cache_destroy(t.code_cache);
	return r;
}

static void tell_next(struct told *to, const uint32_t at[4], const struct wave_saved *saved, bool has_since)
{
	TEST_EQ(try_next(to, at, saved, has_since), 0);
}

static size_t culprits_of(const struct told *to)
{
	size_t n = 0;

	for (size_t i = 0; i < to->why.n_causes; i++)
		n += to->why.causes[i].culprit;
	return n;
}

static void tell(struct told *to, const uint32_t at[4], const struct wave_saved *saved)
{
	*to = (struct told){ 0 };
	make_object();
	rpc_arena_init(&to->arena, 1 << 22);
	tell_next(to, at, saved, false);
	/* One sample accuses nobody: all of these are inferred. */
	TEST_EQ(culprits_of(to), 0);
}

static void forget(struct told *to)
{
	wait_history_free(to->history);
	rpc_arena_deinit(&to->arena);
	free(object.bytes);
}

static const char *evidence_of(const struct rpc_wait *w, const char *name)
{
	for (size_t i = 0; i < w->n_evidence; i++)
		if (strcmp(w->evidence[i].what, name) == 0)
			return w->evidence[i].value;
	return "";
}

#define STATE(members, signals) (1 | (members) << 4 | (signals) << 16)

static void named_barriers_are_told_with_their_number(void)
{
	static const uint32_t at[4] = { NAMED_AT, NAMED_AT, NAMED_AT, 0 };
	uint32_t named[WAITS_NAMED_BARRIERS] = { [2] = STATE(4, 3) };
	const struct wave_saved saved = { .named = named };
	const struct rpc_wait *w;
	struct told to;

	tell(&to, at, &saved);
	TEST_EQ_FATAL(to.why.n_waits, 1);
	w = &to.why.waits[0];
	TEST_EQ(w->kind, RPC_WAIT_KIND_NAMED_BARRIER);
	TEST_EQ(w->confidence, RPC_CONFIDENCE_INFERRED);
	TEST_EQ(w->has_expects && w->expects == 4 && w->has_has && w->has == 3, true);
	TEST_STR(evidence_of(w, "barrier"), "3");
	TEST_STR(evidence_of(w, "barrier state"), "0x30041");
	TEST_EQ(w->waves == 3 && w->missing_count == 1 && !w->candidates, true);
	TEST_EQ_FATAL(w->n_missing, 1);
	TEST_EQ(w->missing[0].ref.index, 3);
	forget(&to);
	/* Two that are not complete: which of them it is, is not said, nor how many have come. */
	named[7] = STATE(2, 0);
	tell(&to, at, &saved);
	w = &to.why.waits[0];
	TEST_EQ(w->kind == RPC_WAIT_KIND_NAMED_BARRIER && !w->has_expects && !w->has_has, true);
	TEST_STR(evidence_of(w, "barrier"), "");
	forget(&to);
}

/* They have not left the barrier; and where not all waves were read, nobody is said to have ended. */
static void waves_that_have_ended_lack_at_named_barriers(void)
{
	static const uint32_t at[4] = { NAMED_AT, NAMED_AT, ENDED, ENDED };
	const uint32_t named[WAITS_NAMED_BARRIERS] = { STATE(4, 2) };
	const struct wave_saved saved = { .named = named };
	const struct rpc_wait *w;
	struct told to;

	tell(&to, at, &saved);
	TEST_EQ_FATAL(to.why.n_waits, 1);
	w = &to.why.waits[0];
	TEST_EQ(w->has_expects && w->expects == 4 && w->has == 2 && w->missing_count == 2 && !w->candidates, true);
	TEST_EQ_FATAL(w->n_missing, 1);
	TEST_STR(w->missing[0].what, "waves 2-3, which have ended");
	TEST_EQ(w->missing[0].state == RPC_WAIT_END_GONE && !w->missing[0].has_ref, true);
	TEST_EQ_FATAL(to.why.n_edges == 1 && to.why.n_causes == 1, true);
	TEST_EQ(to.why.nodes[to.why.edges[0].to].kind, RPC_WAIT_NODE_KIND_NOBODY);
	TEST_EQ(to.why.nodes[to.why.edges[0].from].has_wait && !to.why.edges[0].any, true);
	TEST_EQ(to.why.causes[0].end, RPC_WAIT_END_UNKNOWN);
	forget(&to);
	unread = "queue 3: lost";
	tell(&to, at, &saved);
	unread = NULL;
	TEST_EQ(to.why.n_waits == 1 && !to.why.waits[0].n_missing, true);
	forget(&to);
}

/* Two samples show that nobody else comes: then those that have ended are the cause, which is inferred. */
static void who_has_ended_is_the_cause_where_nobody_comes(void)
{
	static const struct {
		uint32_t at[4], word, then;
		bool cut, culprit;
	} rows[] = {
		{ { NAMED_AT, NAMED_AT, ENDED, ENDED }, STATE(4, 2), STATE(4, 2), false, true },
		/* One has come meanwhile, and a wave that is elsewhere may. */
		{ { NAMED_AT, NAMED_AT, ENDED, ENDED }, STATE(4, 2), STATE(5, 3), false, false },
		{ { NAMED_AT, NAMED_AT, 0, ENDED }, STATE(4, 3), STATE(4, 3), false, false },
		/* It has just opened, and those who wait go on. */
		{ { NAMED_AT, NAMED_AT, ENDED, ENDED }, STATE(2, 0), STATE(2, 0), false, false },
		/* The waves may be there, and were not read. */
		{ { NAMED_AT, NAMED_AT, ENDED, ENDED }, STATE(4, 2), STATE(4, 2), true, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t named[WAITS_NAMED_BARRIERS] = { rows[i].word };
		const struct wave_saved saved = { .named = named };
		struct told to;

		unread = rows[i].cut ? "queue 3: lost" : NULL;
		tell(&to, rows[i].at, &saved);
		named[0] = rows[i].then;
		ahead_ns += 2 * LOOK_STILL_NS;
		tell_next(&to, rows[i].at, &saved, true);
		unread = NULL;
		TEST_ROW_EQ(i, culprits_of(&to), rows[i].culprit);
		if (rows[i].culprit) {
			TEST_STR(to.why.causes[0].text, "waves 2-3 of workgroup (0,0,0) of an unknown kernel, which have ended");
			TEST_EQ(to.why.causes[0].end == RPC_WAIT_END_GONE && to.why.stuck, true);
			TEST_EQ(to.why.causes[0].confidence, RPC_CONFIDENCE_INFERRED);
		}
		forget(&to);
	}
}

/* No other barrier waits for them: what has to come, has come and lacks agree. */
static void waves_that_have_ended_are_not_expected(void)
{
	static const struct {
		uint32_t at[4], word;
		const char *unread;
		bool counts;
		uint32_t expects, has, missing;
	} rows[] = {
		{ { BLOCK_AT, BLOCK_AT, 0, ENDED }, STATE(3, 2), NULL, true, 3, 2, 1 },
		{ { BLOCK_AT, BLOCK_AT, 0, ENDED }, 0, NULL, true, 3, 2, 1 },
		/* One has come without waiting yet. */
		{ { BLOCK_AT, BLOCK_AT, 0, 0 }, STATE(4, 3), NULL, true, 4, 3, 1 },
		{ { BLOCK_AT, BLOCK_AT, BLOCK_AT, ENDED }, STATE(4, 3), NULL, true, 3, 3, 0 },
		/* It may be there all the same. */
		{ { BLOCK_AT, BLOCK_AT, 0, ENDED }, STATE(3, 2), "queue 3: lost", false, 0, 0, 1 },
		/* Of the last two it is not known whether they have come. */
		{ { BLOCK_AT, BLOCK_AT, NO_CODE, NO_CODE }, 0, NULL, false, 0, 0, 2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct wave_saved saved = { .barrier = rows[i].word };
		const struct rpc_wait *w;
		struct told to;

		unread = rows[i].unread;
		tell(&to, rows[i].at, &saved);
		unread = NULL;
		TEST_EQ_FATAL(to.why.n_waits, 1);
		w = &to.why.waits[0];
		TEST_ROW_EQ(i, w->has_expects && w->has_has, rows[i].counts);
		TEST_ROW_EQ(i, w->missing_count, rows[i].missing);
		if (rows[i].counts)
			TEST_ROW_EQ(i, w->expects == rows[i].expects && w->has == rows[i].has, true);
		forget(&to);
	}
}

/* Words that nobody could read are no reason to say less of who waits. */
static void without_their_states_waves_may_be_missing(void)
{
	static const uint32_t at[4] = { NAMED_AT, NAMED_AT, 0, 0 };
	const struct wave_saved saved = { 0 };
	const struct rpc_wait *w;
	struct told to;

	tell(&to, at, &saved);
	TEST_EQ_FATAL(to.why.n_waits, 1);
	w = &to.why.waits[0];
	TEST_STR(evidence_of(w, "barrier state"), "not read");
	TEST_EQ(w->candidates && w->n_missing == 2 && w->missing_count == 1, true);
	forget(&to);
}

static void workgroups_of_a_cluster_are_counted(void)
{
	static const uint32_t at[4] = { CLUSTER_AT, CLUSTER_AT, CLUSTER_AT, CLUSTER_AT };
	const struct wave_saved saved = { .cluster = STATE(2, 1) };
	const struct rpc_wait *w;
	struct told to;

	tell(&to, at, &saved);
	TEST_EQ_FATAL(to.why.n_waits, 1);
	w = &to.why.waits[0];
	TEST_EQ(w->kind, RPC_WAIT_KIND_CLUSTER);
	TEST_EQ(w->has_expects && w->expects == 2 && w->has_has && w->has == 1, true);
	TEST_EQ(w->confidence == RPC_CONFIDENCE_UNKNOWN && !w->n_missing && w->missing_count == 1, true);
	forget(&to);
}

/* Each half of a workgroup waits for the other, at another barrier. */
static void who_waits_at_another_barrier_is_no_end(void)
{
	static const uint32_t at[4] = { NAMED_AT, NAMED_AT, BLOCK_AT, BLOCK_AT };
	const uint32_t named[WAITS_NAMED_BARRIERS] = { STATE(4, 2) };
	const struct wave_saved saved = { .named = named, .barrier = STATE(4, 2) };
	struct told to;

	tell(&to, at, &saved);
	TEST_EQ_FATAL(to.why.n_waits, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct rpc_wait *w = &to.why.waits[i];

		TEST_EQ_FATAL(w->n_missing, 2);
		for (size_t k = 0; k < 2; k++)
			TEST_EQ(strstr(w->missing[k].what, "waits at another barrier") != NULL, true);
	}
	/* No wave is a node of its own. */
	TEST_EQ(to.why.n_nodes, 2);
	forget(&to);
}

/* The same in two samples, they wait for each other; where somebody has come meanwhile, they do not. */
static void a_circle_that_moves_accuses_nobody(void)
{
	static const uint32_t at[4] = { NAMED_AT, NAMED_AT, BLOCK_AT, BLOCK_AT };
	uint32_t named[WAITS_NAMED_BARRIERS] = { STATE(4, 2) };
	const struct wave_saved saved = { .named = named, .barrier = STATE(4, 2) };
	struct told to;

	tell(&to, at, &saved);
	ahead_ns += 2 * LOOK_STILL_NS;
	tell_next(&to, at, &saved, true);
	TEST_EQ(culprits_of(&to), 1);
	ahead_ns += 2 * LOOK_STILL_NS;
	/* One more has come, and as many lack: who joins may raise how many are members. */
	named[0] = STATE(5, 3);
	tell_next(&to, at, &saved, true);
	TEST_EQ(to.why.n_waits, 2);
	TEST_EQ(culprits_of(&to), 0);
	forget(&to);
}

/* ------------------------------------------------------------------ memory ------------------- */

/* Which piece of memory is not there, counted down; 0: all are. */
static unsigned int lacking;

static bool lacks(struct rpc_arena *a)
{
	if (!lacking || --lacking)
		return false;
	a->error = -ENOMEM;
	return true;
}

char *__real_rpc_arena_strdup(struct rpc_arena *a, const char *text);
char *__wrap_rpc_arena_strdup(struct rpc_arena *a, const char *text);
char *__wrap_rpc_arena_strdup(struct rpc_arena *a, const char *text)
{
	return lacks(a) ? NULL : __real_rpc_arena_strdup(a, text);
}

void *__real_rpc_arena_array(struct rpc_arena *a, size_t n, size_t size);
void *__wrap_rpc_arena_array(struct rpc_arena *a, size_t n, size_t size);
void *__wrap_rpc_arena_array(struct rpc_arena *a, size_t n, size_t size)
{
	return lacks(a) ? NULL : __real_rpc_arena_array(a, n, size);
}

char *__wrap_rpc_arena_printf(struct rpc_arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *__wrap_rpc_arena_printf(struct rpc_arena *a, const char *format, ...)
{
	va_list list;
	char *text;

	if (lacks(a))
		return NULL;
	va_start(list, format);
	text = rpc_arena_vprintf(a, format, list);
	va_end(list);
	return text;
}

/*
 * Texts are made of others, any of which may be the one that has no room, while a shorter one has.
 * @return how many pieces of memory it took.
 */
static unsigned int tell_without_each(const uint32_t at[4], const struct wave_saved *saved)
{
	unsigned int n = 0;
	int r = -1;

	while (r < 0 && n < 10000) {
		struct told to = { 0 };

		make_object();
		rpc_arena_init(&to.arena, 1 << 22);
		lacking = ++n;
		r = try_next(&to, at, saved, false);
		TEST_ROW_EQ(n, r < 0, rpc_arena_error(&to.arena) != 0);
		forget(&to);
	}
	TEST_EQ(lacking != 0, true);
	lacking = 0;
	return n - 1;
}

/* One or several, also where memory has ended and nobody is named. */
static void who_waits_has_a_verb(void)
{
	static const struct {
		const char *who, *verb;
	} rows[] = { { NULL, "waits" }, { "", "waits" }, { "wave 3 of gemm", "waits" }, { "waves 0-2 of gemm", "wait" },
		     { "lanes 1-31 of warp 0", "wait" }, { "warp 1 and lanes 2-31 of warp 0", "wait" },
		     { "warp 1 of block (0,0,0) of this and that", "waits" } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		TEST_ROW_STR(i, look_verb(rows[i].who), rows[i].verb);
}

static void any_piece_of_memory_may_lack(void)
{
	static const uint32_t circle[4] = { NAMED_AT, NAMED_AT, BLOCK_AT, BLOCK_AT },
			      late[4] = { NAMED_AT, NAMED_AT, NAMED_AT, 0 };
	const uint32_t named[WAITS_NAMED_BARRIERS] = { STATE(4, 2) };
	const struct wave_saved saved = { .named = named, .barrier = STATE(4, 2) };

	TEST_EQ(tell_without_each(circle, &saved) > 20, true);
	TEST_EQ(tell_without_each(late, &saved) > 20, true);
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

/* Who is told to have exited of a block of which warps 2 and 3 are left; "": nobody. */
static void who_has_exited(uint32_t launched, bool has_numbers, const char *wanted)
{
	static struct block b;
	const struct wave waves[] = {
		{ .group_waves = launched, .has_wave_in_group = true, .wave_in_group = 2 },
		{ .group_waves = launched, .has_wave_in_group = has_numbers, .wave_in_group = 3 },
	};
	struct look_wait wait = { .node = 0 };
	struct rpc_arena arena;
	struct look l = { .arena = &arena, .waits = &wait, .n_waits = 1 };

	rpc_arena_init(&arena, 1 << 20);
	b = (struct block){ .waves = waves, .n = ARRAY_SIZE(waves) };
	warps_add_exited(&l, &b, 0);
	TEST_EQ(wait.rpc.n_missing, *wanted ? 1 : 0);
	if (wait.rpc.n_missing) {
		TEST_STR(wait.rpc.missing[0].what, wanted);
		TEST_EQ(wait.rpc.missing[0].state, RPC_WAIT_END_GONE);
		TEST_EQ(wait.rpc.missing[0].has_ref, false);
	}
	rpc_arena_deinit(&arena);
}

static void only_who_is_known_to_have_exited_is_told_so(void)
{
	who_has_exited(4, true, "warps 0-1, which have exited");
	who_has_exited(5, true, "warps 0-1,4, which have exited");
	/* Not how many there were, or not which these are. */
	who_has_exited(0, true, "");
	who_has_exited(65, true, "");
	who_has_exited(4, false, "");
}

/* ------------------------------------------------------------------ convergence barriers ----- */

/* A device of which so many warps of each multiprocessor are apart. */
struct apart {
	struct target_waves waves;
	int answer;	      /* Of multiprocessor 1. */
	uint32_t calls, wrong; /* Reads, and those that are not of one multiprocessor, ascending. */
};

static bool all_are_apart(const void *ctx, uint32_t wave)
{
	return ((const struct apart *)ctx)->waves.waves[wave].exec;
}

static int read_apart(const void *ctx, struct target_convergence *to, uint32_t n)
{
	struct apart *a = (struct apart *)(uintptr_t)ctx;
	const struct wave *waves = a->waves.waves;

	a->calls++;
	for (uint32_t i = 0; i < n; i++) {
		a->wrong += waves[to[i].wave].unit != waves[to[0].wave].unit ||
			    (i && waves[to[i].wave].index <= waves[to[i - 1].wave].index);
		to[i].words[0] = to[i].wave;
	}
	return waves[to[0].wave].unit == 1 ? a->answer : 0;
}

/* @return what is missing.  @param units, each  Multiprocessors, and warps of each, which lie there in disorder. */
static const char *read_convergence(struct apart *a, struct rpc_arena *arena, uint32_t units, uint32_t each,
				    uint64_t deadline)
{
	const struct convergence_source from = { all_are_apart, read_apart, a };
	const char *missing;

	a->waves.waves = calloc((size_t)units * each, sizeof(*a->waves.waves));
	a->waves.n_waves = (size_t)units * each;
	for (uint32_t i = 0; a->waves.waves && i < units * each; i++)
		a->waves.waves[i] = (struct wave){ .unit = i / each, .index = each - 1 - i % each, .exec = i % 3 };
	missing = a->waves.waves ? convergence_read(&from, deadline, arena, &a->waves) : NULL;
	for (size_t i = 0; i < a->waves.n_convergences; i++) {
		const struct target_convergence *c = &a->waves.convergences[i];

		a->wrong += c->words[0] != c->wave || (i && c->wave <= c[-1].wave);
	}
	free(a->waves.waves);
	return missing;
}

static void warps_that_are_apart_are_read_in_one_call_for_each_multiprocessor(void)
{
	struct rpc_arena arena;
	struct apart good = { 0 }, late = { 0 }, many = { 0 };
	struct apart refused = { .answer = -EIO }, older = { .answer = -ENOSYS };

	rpc_arena_init(&arena, 4 << 20);
	TEST_EQ(read_convergence(&good, &arena, 3, 6, UINT64_MAX) == NULL, true);
	TEST_EQ(good.waves.n_convergences, 12);
	TEST_EQ(good.calls, 3);
	/* One that refuses is not asked again, and hides nothing that was read. */
	TEST_STR(read_convergence(&refused, &arena, 3, 6, UINT64_MAX),
		 "convergence barriers of 4 warps: the driver does not tell their state, and was not asked for that of 4 others");
	TEST_EQ(refused.waves.n_convergences, 4);
	TEST_EQ(refused.calls, 2);
	/* A release without the call: nothing is missing, and it is not asked again. */
	TEST_EQ(read_convergence(&older, &arena, 3, 6, UINT64_MAX) == NULL, true);
	TEST_EQ(older.calls, 2);
	TEST_STR(read_convergence(&late, &arena, 3, 6, 0),
		 "convergence barriers of 12 warps: their state was not read, for lack of time, or because there are too many");
	TEST_EQ(late.calls, 0);
	TEST_STR(read_convergence(&many, &arena, 100, 63, UINT64_MAX),
		 "convergence barriers of 104 warps: their state was not read, for lack of time, or because there are too many");
	TEST_EQ(many.waves.n_convergences, CONVERGENCES_MAX);
	TEST_EQ(good.wrong + refused.wrong + many.wrong, 0);
	rpc_arena_deinit(&arena);
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

/* A core may say anything of its lanes. */
static void lanes_may_be_at_any_address(void)
{
	static struct spin_site site = { .begin = 0x100, .end = 0x140 };
	static const uint64_t places[] = { UINT64_MAX, UINT64_MAX - 1, 0, 0x140 };
	const struct spin_sites sites = { .list = &site, .n = 1 };
	struct target_waves waves = { 0 };
	struct spins s = { .waves = &waves };
	uint64_t pcs[32];

	for (size_t i = 0; i < ARRAY_SIZE(pcs); i++)
		pcs[i] = places[i % ARRAY_SIZE(places)];
	spins_add(&s, 0, pcs, UINT32_MAX, &sites, &(struct spin_source){ 0 }, false);
	TEST_EQ(waves.n_spins, 0);
}

/* Nobody who sleeps is then said to wait for nobody. */
static void who_was_not_looked_at_may_poll(void)
{
	static struct spin_site site = { .begin = 0x100, .end = 0x140 };
	static struct mbarrier_site stop = { .pc = 0x100 };
	static const uint64_t pcs[32] = { 0x100 };
	static struct wave wave;

	for (int late = 0; late < 2; late++)
		for (int cut = 0; cut < 2; cut++) {
			const struct spin_sites loops = { .list = &site, .n = late, .is_cut = cut };
			const struct mbarrier_sites objects = { .list = &stop, .n = late, .is_cut = cut };
			struct target_waves polls = { .waves = &wave, .n_waves = 1 }, waits = polls;
			struct spins s = { .waves = &polls };
			struct mbarriers m = { .waves = &waits };

			spins_add(&s, 0, pcs, 1, &loops, &(struct spin_source){ 0 }, late);
			mbarriers_add(&m, 0, pcs, 1, &objects, &(struct mbarrier_source){ 0 }, late);
			TEST_EQ(polls.polls_left_out, late || cut);
			TEST_EQ(waits.polls_left_out, late || cut);
		}
}

/* ------------------------------------------------------------------ ranks -------------------- */

enum { COMMUNICATOR = 0x5000, WORD = 0x6000 };

/* A dispatch of 8 warps of rank 0, which awaits ranks 3 and 5 by a word each. */
struct ranks {
	struct target target;
	struct snapshot seen;
	struct rpc_arena arena;
	struct history *history;
	struct look l;
	struct wave first;
	struct look_awaited list[3];
	uint32_t waits_for[2];
};

static void begin_ranks(struct ranks *r)
{
	static const struct target_ops ops = { .vendor = RPC_VENDOR_NVIDIA };
	uint32_t number;

	*r = (struct ranks){ .target = { .ops = &ops },
			     .first = { .queue_id = 1, .has_dispatch = true, .dispatch = 7 },
			     .list = { { .workgroup = 0, .from = 3, .word = WORD, .arrived = 4, .taken = 4 },
				       { .workgroup = 1, .from = 5, .word = WORD + 8, .arrived = 4, .taken = 4 },
				       { .workgroup = 2, .from = 5, .word = WORD + 8, .arrived = 4, .taken = 4 } },
			     .waits_for = { 3, 5 } };
	rpc_arena_init(&r->arena, 1 << 20);
	r->l = (struct look){ .target = &r->target, .arena = &r->arena, .seen = &r->seen };
	r->l.now = history_begin(&r->history, 1, 0, &number);
	r->l.missing = rpc_arena_array(&r->arena, LOOK_MISSING_MAX, sizeof(*r->l.missing));
}

/* A warp that polls a word. */
static void add_spin(struct ranks *r, uint64_t dispatch, uint64_t word, bool any)
{
	const size_t at = r->l.n_waits;
	uint32_t node;

	TEST_EQ_FATAL(look_add_wait(&r->l, RPC_WAIT_KIND_SPIN, RPC_WAIT_NODE_KIND_WAVE, "warp 0", at, 0) != NULL, true);
	r->l.waits[at].rpc.queue_id = 1;
	r->l.waits[at].rpc.has_dispatch = true;
	r->l.waits[at].rpc.dispatch = dispatch;
	node = look_add_node(&r->l, RPC_WAIT_NODE_KIND_WORD, WAITS_END_UNKNOWN, "whoever writes it");
	r->l.nodes[node].word = word;
	look_add_edge(&r->l, r->l.waits[at].node, node, WAITS_INFERRED, any);
}

static void add_ranks(struct ranks *r)
{
	const struct look_awaits a = { .list = r->list, .n = ARRAY_SIZE(r->list) };
	const struct rpc_collective of = { .communicator = COMMUNICATOR, .ranks = 8, .queue_id = 1, .dispatch = 7,
					   .waves = 8, .has_waits_for = true, .waits_for = r->waits_for,
					   .n_waits_for = ARRAY_SIZE(r->waits_for) };

	look_add_ranks(&r->l, &r->first, &a, &of);
	TEST_EQ(r->l.failed, false);
}

static size_t count_kind(const struct ranks *r, enum rpc_wait_node_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < r->l.n_nodes; i++)
		n += r->l.nodes[i].rpc.kind == kind;
	return n;
}

/* From whom edges lead to ranks. */
static size_t count_ways(const struct ranks *r, enum rpc_wait_node_kind from)
{
	size_t n = 0;

	for (size_t i = 0; i < r->l.n_edges; i++)
		n += r->l.nodes[r->l.edges[i].from].rpc.kind == from &&
		     r->l.nodes[r->l.edges[i].to].rpc.kind == RPC_WAIT_NODE_KIND_RANK;
	return n;
}

static void end_ranks(struct ranks *r)
{
	free(r->l.waits);
	free(r->l.nodes);
	free(r->l.edges);
	history_free(r->history);
	rpc_arena_deinit(&r->arena);
}

static void a_collective_operation_waits_for_ranks(void)
{
	struct ranks r;

	begin_ranks(&r);
	/* Waves of another dispatch poll the word for something else. */
	add_spin(&r, 8, WORD, false);
	add_ranks(&r);
	TEST_EQ_FATAL(r.l.n_waits, 2);
	TEST_EQ(r.l.waits[1].rpc.kind, RPC_WAIT_KIND_COLLECTIVE);
	TEST_STR(r.l.waits[1].rpc.who, "8 warps of an unknown kernel (rank 0 of communicator 0x5000)");
	TEST_EQ(r.l.waits[1].rpc.n_missing == 2 && r.l.waits[1].rpc.missing_count == 2, true);
	TEST_STR(r.l.waits[1].rpc.missing[1].what, "rank 5 of communicator 0x5000");
	TEST_EQ(count_kind(&r, RPC_WAIT_NODE_KIND_RANK), 2);
	TEST_EQ(count_ways(&r, RPC_WAIT_NODE_KIND_WAVES), 2);
	TEST_EQ(count_ways(&r, RPC_WAIT_NODE_KIND_WORD), 0);
	end_ranks(&r);
}

static void who_polls_the_very_words_waits_once(void)
{
	struct ranks r;

	begin_ranks(&r);
	add_spin(&r, 7, WORD, false);
	add_spin(&r, 7, WORD + 8, false);
	add_ranks(&r);
	TEST_EQ(r.l.n_waits, 2);
	TEST_EQ(r.l.waits[0].rpc.kind == RPC_WAIT_KIND_SPIN && r.l.waits[1].rpc.kind == RPC_WAIT_KIND_SPIN, true);
	TEST_EQ(count_kind(&r, RPC_WAIT_NODE_KIND_RANK), 2);
	TEST_EQ(count_ways(&r, RPC_WAIT_NODE_KIND_WORD), 2);
	end_ranks(&r);
}

/* One word says nothing of the other rank, and a loop that another word ends as well does not wait for a rank alone. */
static void polls_that_do_not_say_all_are_not_all(void)
{
	for (int any = 0; any < 2; any++) {
		struct ranks r;

		begin_ranks(&r);
		add_spin(&r, 7, WORD, any);
		if (any)
			add_spin(&r, 7, WORD + 8, any);
		add_ranks(&r);
		TEST_EQ_FATAL(r.l.n_waits, 2 + (size_t)any);
		TEST_EQ(r.l.waits[1 + any].rpc.kind, RPC_WAIT_KIND_COLLECTIVE);
		TEST_EQ(r.l.waits[1 + any].rpc.missing_count, 2);
		TEST_EQ(count_kind(&r, RPC_WAIT_NODE_KIND_RANK), 2);
		TEST_EQ(count_ways(&r, RPC_WAIT_NODE_KIND_WORD), 1 + (size_t)any);
		end_ranks(&r);
	}
}

/* Two waves poll one word, and a third one the same by another node: each leads to the rank once. */
static void a_word_leads_to_its_rank_once(void)
{
	struct ranks r;
	uint32_t word;

	begin_ranks(&r);
	add_spin(&r, 7, WORD, false);
	add_spin(&r, 7, WORD + 8, false);
	word = (uint32_t)r.l.n_nodes - 1;
	add_spin(&r, 7, WORD + 8, false);
	TEST_EQ_FATAL(look_add_wait(&r.l, RPC_WAIT_KIND_SPIN, RPC_WAIT_NODE_KIND_WAVE, "warp 3", 3, 0) != NULL, true);
	r.l.waits[3].rpc.queue_id = 1;
	r.l.waits[3].rpc.has_dispatch = true;
	r.l.waits[3].rpc.dispatch = 7;
	look_add_edge(&r.l, r.l.waits[3].node, word, WAITS_INFERRED, false);
	add_ranks(&r);
	TEST_EQ(r.l.n_waits, 4);
	TEST_EQ(count_kind(&r, RPC_WAIT_NODE_KIND_RANK), 2);
	TEST_EQ(count_ways(&r, RPC_WAIT_NODE_KIND_WORD), 3);
	end_ranks(&r);
}

/* ------------------------------------------------------------------ who sleeps --------------- */

#define SLEEPERS 258u
#define S_SLEEP	 0xbf830001u

/* AMD waves that sleep, each at a place of its own. */
struct sleepers {
	struct target target;
	struct target_device device;
	struct snapshot seen;
	struct rpc_arena arena;
	struct history *history;
	struct look l;
	struct wave waves[SLEEPERS];
	struct look_code sites[SLEEPERS];
	uint32_t of_wave[SLEEPERS];
	bool is_collective[SLEEPERS];
	struct location_kernel kernels[2];
	struct rpc_why_get_result why;
};

static struct sleepers *begin_sleepers(uint32_t n, bool are_searched)
{
	const uint32_t word = htole32(S_SLEEP);
	struct sleepers *s = calloc(1, sizeof(*s));
	uint32_t number;

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	rpc_arena_init(&s->arena, 1 << 22);
	s->target = (struct target){ .ops = &gfx12_5, .memory = { .fd = -1, .read = read_nothing } };
	s->device.rpc = (struct rpc_device){ .gpu_id = 7, .has_gfx_target_version = true,
					     .gfx_target_version = 120500 };
	s->seen = (struct snapshot){ .devices = &s->device, .n_devices = 1,
				     .waves = { .waves = s->waves, .n_waves = n } };
	for (uint32_t i = 0; i < n; i++) {
		s->waves[i] = (struct wave){ .pc = 0x1000 + 8 * i, .gpu_id = 7, .queue_id = 3, .site = i, .index = i,
					     .state = RPC_WAVE_STATE_RUNNING, .has_dispatch = true };
		s->sites[i] = (struct look_code){ .n = 8, .known = true, .is_searched = are_searched };
		memcpy(s->sites[i].bytes + 4, &word, sizeof(word));
		s->of_wave[i] = LOOK_NONE;
	}
	s->l = (struct look){ .target = &s->target, .arena = &s->arena, .seen = &s->seen, .sites = s->sites,
			      .of_wave = s->of_wave, .is_collective = s->is_collective };
	s->l.places.kernels = s->kernels;
	s->l.places.n_kernels = ARRAY_SIZE(s->kernels);
	s->l.now = history_begin(&s->history, 1, 0, &number);
	s->l.missing = rpc_arena_array(&s->arena, LOOK_MISSING_MAX, sizeof(*s->l.missing));
	make_object();
	TEST_EQ_FATAL(code_set_init(&s->l.code, &s->target, &s->arena, 10000), 0);
	return s;
}

static bool lacks_text(const struct sleepers *s, const char *text)
{
	for (size_t i = 0; i < s->l.n_missing; i++)
		if (strstr(s->l.missing[i], text))
			return true;
	return false;
}

static void end_sleepers(struct sleepers *s)
{
	code_set_deinit(&s->l.code);
	symbols_cache_destroy(s->target.code_cache);
	history_free(s->history);
	rpc_arena_deinit(&s->arena);
	free(object.bytes);
	free(s);
}

static void sleepers_have_limits_and_it_is_said(void)
{
	static const struct {
		uint32_t n;
		bool are_searched, many_places, many_searches;
		size_t told;
	} rows[] = {
		{ 64, true, false, false, 64 },	     { 65, true, true, false, 64 },
		{ SLEEPERS, true, true, false, 64 }, { 64, false, false, false, 64 },
		{ 256, false, true, false, 64 },     { 257, false, true, true, 64 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct sleepers *s = begin_sleepers(rows[i].n, rows[i].are_searched);

		look_at_alone(&s->l, &s->why);
		TEST_ROW_EQ(i, s->why.n_alone, rows[i].told);
		TEST_ROW_EQ(i, lacks_text(s, "those at more than 64 places"), rows[i].many_places);
		TEST_ROW_EQ(i, lacks_text(s, "those at more than 256 places"), rows[i].many_searches);
		end_sleepers(s);
	}
}

/* Collective operations beyond the sixteen that are looked at wait for their ranks as well. */
static void launches_that_are_not_told_do_not_sleep(void)
{
	struct sleepers *s = begin_sleepers(19, true);

	s->kernels[1].raw = "_Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork";
	for (uint32_t i = 0; i < 19; i++) {
		s->waves[i].dispatch = i;
		s->waves[i].kernel = i < 18;
	}
	look_at_collectives(&s->l, &s->why);
	TEST_EQ(lacks_text(s, "those of more than 16 dispatches"), true);
	for (uint32_t i = 0; i < 19; i++)
		TEST_ROW_EQ(i, s->is_collective[i], i < 18);
	look_at_alone(&s->l, &s->why);
	TEST_EQ_FATAL(s->why.n_alone, 1);
	TEST_EQ(s->why.alone[0].dispatch, 18);
	end_sleepers(s);
}

/* ------------------------------------------------------------------ what it comes to --------- */

/* A packet behind a dispatch, which waits for ranks, and of which a wave may wait for one of several. */
static void is_packet_stuck(bool for_ranks, bool for_any, bool *ret_known, bool *ret_stuck)
{
	static const struct target_ops ops = { .vendor = RPC_VENDOR_AMD };
	struct rpc_why_get_result why = { 0 };
	struct ranks r;
	uint32_t packet, dispatch, other, number;

	begin_ranks(&r);
	r.target.ops = &ops;
	r.l.before = r.l.now;
	r.l.now = history_begin(&r.history, 1 + LOOK_STILL_NS, 0, &number);
	r.l.apart_ns = LOOK_STILL_NS;
	dispatch = look_add_node(&r.l, RPC_WAIT_NODE_KIND_DISPATCH, WAITS_END_RUNS, "a dispatch");
	other = look_add_node(&r.l, RPC_WAIT_NODE_KIND_WAVE, WAITS_END_UNKNOWN, "a wave");
	TEST_EQ_FATAL(look_add_wait(&r.l, RPC_WAIT_KIND_QUEUE, RPC_WAIT_NODE_KIND_PACKET, "packet 1", 0, 0) != NULL, true);
	packet = r.l.waits[0].node;
	look_add_edge(&r.l, packet, dispatch, WAITS_PROVEN, false);
	if (for_any) {
		add_spin(&r, 9, WORD + 64, true);
		r.l.waits[1].rpc.confidence = RPC_CONFIDENCE_UNKNOWN;
		look_add_edge(&r.l, dispatch, r.l.waits[1].node, WAITS_PROVEN, false);
		look_add_edge(&r.l, r.l.waits[1].node, other, WAITS_UNKNOWN, true);
	}
	if (for_ranks) {
		add_ranks(&r);
		look_add_edge(&r.l, dispatch, r.l.waits[r.l.n_waits - 1].node, WAITS_PROVEN, false);
	}
	for (size_t i = 0; i < r.l.n_waits; i++)
		r.l.waits[i].changed = false;
	TEST_EQ(look_solve(&r.l, &why), 0);
	*ret_known = why.has_stuck;
	*ret_stuck = why.stuck;
	end_ranks(&r);
}

/* What waits for ranks alone is stuck or not, and has moved or not: the one is never known, the other is no verdict. */
static void whether_ranks_last_is_not_known(void)
{
	for (int moved = 0; moved < 2; moved++) {
		static const struct target_ops ops = { .vendor = RPC_VENDOR_AMD };
		struct rpc_why_get_result why = { 0 };
		struct ranks r;

		begin_ranks(&r);
		r.target.ops = &ops;
		r.l.before = r.l.now;
		r.l.apart_ns = LOOK_STILL_NS;
		add_ranks(&r);
		r.l.waits[0].changed = moved;
		TEST_EQ(look_solve(&r.l, &why), 0);
		TEST_ROW_EQ(moved, why.has_stuck, moved);
		TEST_ROW_EQ(moved, why.stuck, false);
		TEST_ROW_EQ(moved, why.waits[0].has_stuck, moved);
		TEST_ROW_EQ(moved, why.n_causes && why.causes[0].culprit, false);
		end_ranks(&r);
	}
}

/* That ranks were not looked at is no reason to say less of what waits beside them. */
static void ranks_do_not_excuse_who_else_is_waited_for(void)
{
	bool known, stuck;

	is_packet_stuck(true, false, &known, &stuck);
	TEST_EQ(known, false);
	is_packet_stuck(false, true, &known, &stuck);
	TEST_EQ(known && stuck, true);
	is_packet_stuck(true, true, &known, &stuck);
	TEST_EQ(known && stuck, true);
	is_packet_stuck(false, false, &known, &stuck);
	TEST_EQ(known, false);
}

TEST_SUITE(worker_wait, TEST(warps_that_are_apart_are_read_in_one_call_for_each_multiprocessor),
	   TEST(lanes_may_be_at_any_address), TEST(what_stands_still_is_told),
	   TEST(with_every_read_failing_the_kinds_are_told),
	   TEST(a_signal_that_moves_between_both_passes_is_left_out),
	   TEST(a_queue_that_goes_on_between_both_passes_is_left_out),
	   TEST(threads_stand_in_front_of_the_packet_that_they_wait_for),
	   TEST(a_signal_that_cannot_be_read_is_told), TEST(what_a_reader_misses_is_told_once),
	   TEST(a_reader_of_threads_may_answer_anything),
	   TEST(threads_that_are_told_of_other_packets_are_left_out), TEST(without_an_answer_threads_are_missing),
	   TEST(named_barriers_are_told_with_their_number), TEST(without_their_states_waves_may_be_missing),
	   TEST(waves_that_have_ended_lack_at_named_barriers),
	   TEST(who_has_ended_is_the_cause_where_nobody_comes), TEST(waves_that_have_ended_are_not_expected),
	   TEST(workgroups_of_a_cluster_are_counted), TEST(who_waits_at_another_barrier_is_no_end),
	   TEST(a_circle_that_moves_accuses_nobody), TEST(any_piece_of_memory_may_lack), TEST(who_waits_has_a_verb),
	   TEST(lanes_are_told_of_their_own_warp), TEST(warps_beyond_the_mask_are_not_told_as_others),
	   TEST(warps_without_a_number_are_not_warp_0), TEST(only_who_is_known_to_have_exited_is_told_so),
	   TEST(who_was_not_looked_at_may_poll),
	   TEST(one_thing_that_is_missing_hides_no_other), TEST(a_collective_operation_waits_for_ranks),
	   TEST(who_polls_the_very_words_waits_once), TEST(polls_that_do_not_say_all_are_not_all),
	   TEST(whether_ranks_last_is_not_known),
	   TEST(a_word_leads_to_its_rank_once), TEST(sleepers_have_limits_and_it_is_said),
	   TEST(launches_that_are_not_told_do_not_sleep), TEST(ranks_do_not_excuse_who_else_is_waited_for));
