/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "ctl/record/budget.h"
#include "ctl/record/recording.h"
#include "testlib.h"

#define MS  UINT64_C(1000000)
#define SEC (1000 * MS)

/* ------------------------------------------------------------------ budget ------------------- */

/* A recording on a clock of its own. */
struct run {
	struct budget b;
	uint64_t now, end, captures;
	uint64_t worst_ns; /* The most that the captures so far have stopped beyond what was allowed by then. */
};

static void begin_run(struct run *r, uint32_t share_ppm, uint64_t duration_ns)
{
	*r = (struct run){ .now = 5 * SEC, .end = 5 * SEC + duration_ns };
	budget_init(&r->b, share_ppm, MS, r->now);
}

/* Wait as a recorder does, and take a capture that stops for so long; late: how much later than that it begins. */
static bool take(struct run *r, uint64_t stopped_ns, uint64_t late_ns)
{
	uint64_t due = budget_due(&r->b, (uint32_t)test_random()), allowed;

	if (due >= r->end || !budget_has_room(&r->b, r->end))
		return false;
	r->now = (due > r->now ? due : r->now) + late_ns;
	/* What was stopped before this capture has been paid for. */
	allowed = (uint64_t)((double)(r->now - r->b.begin_ns) * r->b.share_ppm / BUDGET_WHOLE);
	if (r->b.stopped_ns > allowed && r->b.stopped_ns - allowed > r->worst_ns)
		r->worst_ns = r->b.stopped_ns - allowed;
	r->now += stopped_ns + MS / 4;
	budget_pay(&r->b, stopped_ns, r->now);
	r->captures++;
	return true;
}

/* From 40 us to 4 ms, in long stretches and from one capture to the next. */
static uint64_t changing_cost(uint64_t captures)
{
	static const uint64_t stretch_us[] = { 40, 4000, 400, 40 };

	if (captures / 100 % 2)
		return 1000 * (40 + test_random() % 3960);
	return 1000 * stretch_us[captures / 25 % 4];
}

static void keeps_the_share_whatever_captures_cost(void)
{
	static const uint32_t shares[] = { 1000, 10000, 50000, 200000 };

	for (size_t i = 0; i < TEST_COUNT(shares); i++) {
		struct run r;
		uint32_t measured;

		begin_run(&r, shares[i], 200 * SEC);
		while (take(&r, changing_cost(r.captures), test_random() % (MS / 5)))
			;
		measured = budget_share_ppm(r.b.stopped_ns, r.end - r.b.begin_ns);
		CU_ASSERT(r.captures > 100);
		TEST_ROW_EQ(i, r.worst_ns / 1000, 0);
		/* The last capture may cost more than the one before, from which its cost was guessed. */
		TEST_ROW_EQ(i, measured * 100ull <= shares[i] * 103ull, true);
		TEST_ROW_EQ(i, measured * 10 >= shares[i] * 8ull, true);
	}
}

/* One that stops for ten times what is allowed in all is the only one. */
static void takes_no_capture_that_time_cannot_pay_for(void)
{
	struct run r;

	begin_run(&r, 10000, 10 * SEC);
	CU_ASSERT(take(&r, SEC, 0));
	CU_ASSERT(!take(&r, SEC, 0));
	/* Half of it may be repeated where there is time, and not where there is none. */
	begin_run(&r, 10000, 10 * SEC);
	CU_ASSERT(take(&r, 40 * MS, 0));
	CU_ASSERT(take(&r, 40 * MS, 0));
	CU_ASSERT(!take(&r, 40 * MS, 0));
	CU_ASSERT(budget_share_ppm(r.b.stopped_ns, r.end - r.b.begin_ns) <= 10000);
}

/* Who has slept for a minute may make up for a second of it, and not for more by a burst. */
static void saves_no_time_for_a_burst(void)
{
	struct run r;
	uint64_t woken;

	begin_run(&r, 10000, 100 * SEC);
	CU_ASSERT(take(&r, MS, 60 * SEC));
	woken = r.now;
	for (int i = 0; i < 20; i++)
		CU_ASSERT(take(&r, MS, 0));
	CU_ASSERT(r.now >= woken + 800 * MS && r.now <= woken + 1200 * MS);
}

static void costs_nothing_and_keeps_the_rate(void)
{
	struct run r;

	begin_run(&r, 10000, SEC);
	while (take(&r, 0, 0))
		;
	CU_ASSERT(r.captures >= 990 && r.captures <= 1000);
	TEST_EQ(budget_share_ppm(r.b.stopped_ns, r.end - r.b.begin_ns), 0);
	/* Somebody else says when. */
	budget_delay(&r.b, r.end + SEC);
	CU_ASSERT(budget_due(&r.b, 0) == r.end + SEC);
	budget_delay(&r.b, r.end);
	CU_ASSERT(budget_due(&r.b, 0) == r.end + SEC);
	/* No cost is too high to be counted. */
	budget_pay(&r.b, UINT64_MAX / 4, r.end);
	CU_ASSERT(budget_due(&r.b, UINT32_MAX) > r.end);
}

/*
 * A loop that is as long as a slot, and is in its first part for a third of the time: captures at equal distances would
 * see one part only.
 */
static void sees_every_part_of_a_loop_of_the_same_length(void)
{
	struct run r;
	uint64_t first = 0;
	struct interval seen;

	begin_run(&r, 10000, 100 * SEC);
	while (take(&r, MS, 0))
		first += (r.now - MS - MS / 4) % (100 * MS) < 33 * MS;
	seen = interval_of((double)first / (double)r.captures, (double)r.captures);
	CU_ASSERT(r.captures > 900);
	CU_ASSERT(seen.low < 0.33 && seen.high > 0.33);
}

/* ------------------------------------------------------------------ interval ----------------- */

static void is_the_interval_of_the_textbook(void)
{
	static const struct {
		double share, samples, low, high;
	} rows[] = {
		/* Solutions of (share - t)^2 = 1.959964^2 t (1 - t) / samples, found by bisection. */
		{ 0.5, 10, 0.2365931, 0.7634069 }, { 0, 10, 0, 0.2775328 },	  { 1, 10, 0.7224672, 1 },
		{ 0.7, 100, 0.6041515, 0.7810511 }, { 0.01, 1000, 0.0054408, 0.0183095 }, { 0.3, 0, 0, 1 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct interval is = interval_of(rows[i].share, rows[i].samples);

		TEST_ROW_EQ(i, lround(is.low * 1e5), lround(rows[i].low * 1e5));
		TEST_ROW_EQ(i, lround(is.high * 1e5), lround(rows[i].high * 1e5));
	}
}

/* Of many recordings with few captures, in about 95 of 100 the interval has the share that is. */
static void covers_the_share_that_is(void)
{
	static const unsigned shares[] = { 10, 30, 70 };

	for (size_t i = 0; i < TEST_COUNT(shares); i++) {
		unsigned covered = 0;

		for (unsigned n = 0; n < 2000; n++) {
			unsigned seen = 0;
			struct interval is;

			for (unsigned k = 0; k < 80; k++)
				seen += test_random() % 100 < shares[i];
			is = interval_of(seen / 80.0, 80);
			covered += is.low <= shares[i] / 100.0 && is.high >= shares[i] / 100.0;
		}
		CU_ASSERT(covered >= 2000 * 92 / 100 && covered <= 2000 * 98 / 100);
	}
}

/* ------------------------------------------------------------------ recording ---------------- */

static struct rpc_frame load = { .function = "load<a;b>", .file = "/src/k.hip", .has_line = true, .line = 7 };
static struct rpc_frame step[] = {
	{ .function = "add", .file = "/src/k.hip", .has_line = true, .line = 41, .inlined = true },
	{ .function = "sum", .file = "/src/k.hip", .has_line = true, .line = 50 },
};
static struct rpc_caller called = { .address = 0x1234, .frames = &step[1], .n_frames = 1 };

/* Three places: a function of a kernel, inlined in it, and called by it; and one without a line. */
static struct rpc_group groups[] = {
	{ .has_kernel = true, .kernel = { .name = "sum" }, .frames = step, .n_frames = 2, .waves = 6 },
	{ .has_kernel = true, .kernel = { .name = "sum" }, .frames = &load, .n_frames = 1, .has_callers = true,
	  .callers = &called, .n_callers = 1, .waves = 1 },
	{ .pc = 0x7f10, .waves = 3 },
};
static struct rpc_gpu_snapshot_result three = { .groups = groups, .n_groups = 3, .wave_count = 10 };
static struct rpc_gpu_snapshot_result idle;

static struct rpc_thread_frame python[] = {
	{ .function = "step", .file = "/src/train.py", .has_line = true, .line = 12 },
	{ .function = "main", .file = "/src/train.py", .has_line = true, .line = 90 },
};
static struct rpc_native_frame native[] = {
	{ .function = "ioctl", .module = "/lib/libc.so.6" },
	{ .module = "/lib/libhsa.so" },
	{ .function = "_PyEval_EvalFrameDefault", .has_python_frames = true, .python_frames = 2 },
	{ .function = "main" },
};
static struct rpc_thread_group thread_groups[] = {
	{ .threads = 1, .state = RPC_THREAD_STATE_BLOCKED, .waits_in = "ioctl", .frames = python, .n_frames = 2,
	  .native_frames = native, .n_native_frames = 4 },
	{ .threads = 3, .state = RPC_THREAD_STATE_RUNNING },
};
static struct rpc_host_stacks_result threads = { .threads = 4, .groups = thread_groups, .n_groups = 2 };

static void make_recording(struct recording *r)
{
	CU_ASSERT_EQUAL_FATAL(recording_init(r, "train.py 42"), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(recording_add_waves(r, &three), 0);
	CU_ASSERT_EQUAL_FATAL(recording_add_waves(r, &idle), 0);
}

static void divides_a_capture_among_its_places(void)
{
	struct recording r;
	struct recording_share *shares;
	struct rpc_arena a;
	uint64_t sum = 0;

	make_recording(&r);
	rpc_arena_init(&a, 0);
	TEST_EQ(recording_shares(&r, &a, &shares), 0);
	TEST_EQ(r.captures, 4);
	TEST_EQ_FATAL(r.n_stacks, 4);
	TEST_EQ(lround(shares[0].share * 1000), 450);
	CU_ASSERT(shares[0].interval.low < 0.45 && shares[0].interval.high > 0.45);
	TEST_STR(shares[1].stack->frames[1]->name, "(no waves)");
	TEST_EQ(lround(shares[1].share * 1000), 250);
	for (size_t i = 0; i < r.n_stacks; i++)
		sum += r.stacks[i]->weight;
	TEST_EQ(sum, 4 * RECORDING_CAPTURE);
	rpc_arena_deinit(&a);
	TEST_EQ(recording_reset(&r), 0);
	TEST_EQ(r.captures + r.n_stacks, 0);
	TEST_STR(r.process, "train.py 42");
	recording_deinit(&r);
}

static void writes_collapsed_stacks(void)
{
	struct recording r;
	auto_out struct out o = { 0 };

	make_recording(&r);
	TEST_EQ(recording_add_threads(&r, &threads), 0);
	TEST_EQ(recording_write_collapsed(&o, &r), 0);
	TEST_STR(o.data, "train.py 42;(no waves) 1000\n"
			 "train.py 42;(unknown kernel);0x7f10 900\n"
			 "train.py 42;sum;add;k.hip:41 1800\n"
			 "train.py 42;sum;load<a,b>;k.hip:7 300\n"
			 "train.py 42, threads;(running) 750\n"
			 "train.py 42, threads;main;step;train.py:12;ioctl;(blocked in ioctl) 250\n");
	recording_deinit(&r);
}

/* How often a text is in another. */
static unsigned count(const char *in, const char *what)
{
	unsigned n = 0;

	for (; (in = strstr(in, what)); in += strlen(what))
		n++;
	return n;
}

static const struct recording_facts facts = { .begin_us = 1700000000000000, .duration_us = 10000000,
					      .stopped_us = 98000, .budget_ppm = 10000, .measured_ppm = 9800 };

static void draws_a_flame_graph(void)
{
	struct recording r;
	auto_out struct out o = { 0 };

	make_recording(&r);
	TEST_EQ(recording_add_threads(&r, &threads), 0);
	TEST_EQ(recording_write_flame(&o, &r, &facts), 0);
	/* Roots, (no waves), (unknown kernel) and its place, sum, add, load, and their places; seven of threads. */
	TEST_EQ(count(o.data, "<g><title>"), 16);
	TEST_EQ(count(o.data, "<g><title>sum: 52.5 % (95 % interval: "), 1);
	TEST_EQ(count(o.data, "load&lt;a;b&gt;, /src/k.hip: 7.5 %"), 1);
	TEST_EQ(count(o.data, "4 captures in 10.0 s, 0.4 a second; queues stood still for 0.98 % of the time, "
			      "of 1.00 % allowed"), 2);
	TEST_EQ(count(o.data, "<script") + count(o.data, "href"), 0);
	recording_deinit(&r);
}

static void writes_a_file_for_speedscope(void)
{
	static struct rpc_gpu_snapshot_result one = { .groups = groups, .n_groups = 1, .wave_count = 6 };
	struct recording r;
	auto_out struct out o = { 0 };

	CU_ASSERT_EQUAL_FATAL(recording_init(&r, "p \"\n\xff"), 0);
	TEST_EQ(recording_add_waves(&r, &one), 0);
	TEST_EQ(recording_add_waves(&r, &three), 0);
	TEST_EQ(recording_write_speedscope(&o, &r, &facts), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o.data);
	TEST_EQ(count(o.data, "{\"name\":\"p \\\"\\n\xef\xbf\xbd\"}"), 1);
	TEST_EQ(count(o.data, "{\"name\":\"k.hip:41\",\"file\":\"/src/k.hip\",\"line\":41}"), 1);
	/* The unknown kernel, add, and load, in the numbers of their frames: the first capture had those of add. */
	TEST_EQ(count(o.data, "\"samples\":[[0,6,7],[0,1,2,3],[0,1,4,5]]"), 1);
	TEST_EQ(count(o.data, "\"weights\":[0.300000,1.600000,0.100000],\"endValue\":2.000000}]}"), 1);
	TEST_EQ(count(o.data, "\"type\":\"sampled\""), 1);
	recording_deinit(&r);
}

/* The next field of a message in protocol buffers.  @return the key; 0 at the end, or where it is none. */
static unsigned next_field(const uint8_t **at, const uint8_t *end, uint64_t *ret_value, const uint8_t **ret_bytes)
{
	uint64_t numbers[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		int shift = 0;

		do {
			if (*at == end || shift > 63)
				return 0;
			numbers[i] |= (uint64_t)(**at & 0x7f) << shift;
			shift += 7;
		} while (*(*at)++ & 0x80);
	}
	*ret_value = numbers[1];
	*ret_bytes = *at;
	if ((numbers[0] & 7) == 2) {
		if (numbers[1] > (size_t)(end - *at))
			return 0;
		*at += numbers[1];
	}
	return (unsigned)numbers[0] >> 3;
}

/* It is made of whole fields; a line and its function are one frame, and functions are there once. */
static void writes_a_file_for_pprof(void)
{
	struct recording r;
	auto_out struct out o = { 0 };
	unsigned fields[16] = { 0 }, field;
	const uint8_t *at, *end, *bytes;
	uint64_t value;

	make_recording(&r);
	TEST_EQ(recording_write_pprof(&o, &r, &facts), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(o.data);
	for (at = (uint8_t *)o.data, end = at + o.size; (field = next_field(&at, end, &value, &bytes)) != 0;) {
		CU_ASSERT_FATAL(field < TEST_COUNT(fields));
		/* The first text is empty. */
		CU_ASSERT(field != 6 || fields[6] || value == 0);
		fields[field]++;
	}
	CU_ASSERT(at == end);
	TEST_EQ(fields[1], 2);
	TEST_EQ(fields[2], 4);
	/* The process, (no waves), the unknown kernel and its address, sum, add with its line, load with its line. */
	TEST_EQ(fields[4], 7);
	TEST_EQ(fields[5], 7);
	recording_deinit(&r);
}

/* Memory has an end, and no capture is lost for it. */
static void has_room_for_only_so_many_places(void)
{
	struct rpc_group many[1000];
	struct rpc_gpu_snapshot_result s = { .groups = many, .n_groups = TEST_COUNT(many) };
	static char name[5000];
	struct recording r;
	uint64_t sum = 0;

	memset(name, 'x', sizeof(name) - 1);
	CU_ASSERT_EQUAL_FATAL(recording_init(&r, "p"), 0);
	for (uint64_t i = 0; i < 80; i++) {
		for (size_t k = 0; k < TEST_COUNT(many); k++)
			many[k] = (struct rpc_group){ .pc = i * 1000 + k, .waves = 1, .has_kernel = true,
						      .kernel = { .name = name } };
		TEST_EQ(recording_add_waves(&r, &s), 0);
	}
	CU_ASSERT(r.full);
	CU_ASSERT(r.n_stacks <= RECORDING_STACKS_MAX + 1);
	for (size_t i = 0; i < r.n_stacks; i++)
		sum += r.stacks[i]->weight;
	TEST_EQ(sum, 80 * RECORDING_CAPTURE);
	recording_deinit(&r);
}

TEST_SUITE(ctl_record, TEST(keeps_the_share_whatever_captures_cost), TEST(takes_no_capture_that_time_cannot_pay_for),
	   TEST(saves_no_time_for_a_burst), TEST(costs_nothing_and_keeps_the_rate),
	   TEST(sees_every_part_of_a_loop_of_the_same_length), TEST(is_the_interval_of_the_textbook),
	   TEST(covers_the_share_that_is), TEST(divides_a_capture_among_its_places), TEST(writes_collapsed_stacks),
	   TEST(draws_a_flame_graph), TEST(writes_a_file_for_speedscope), TEST(writes_a_file_for_pprof),
	   TEST(has_room_for_only_so_many_places));
