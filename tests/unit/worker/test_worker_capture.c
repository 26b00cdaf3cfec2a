/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/exception_capture.h"

#include <time.h>

#include "base/clock.h"
#include "testlib.h"

/* A target that counts how often its queues stop, of two devices with two queues each. */

#define STOP_MS 10

enum core_end { CORE_WHOLE, CORE_FAILS_BEFORE, CORE_FAILS_AFTER, CORE_ENDS_ALL };

static enum core_end core_end;
static int waves_result;
static unsigned stops;
static size_t n_asked;

static int fake_devices(struct target *t, struct rpc_arena *a, struct target_device **ret,
			size_t *ret_n, struct agent_err *err)
{
	*ret = rpc_arena_array(a, 2, sizeof(**ret));
	*ret_n = 2;
	(*ret)[0].rpc.gpu_id = 1;
	(*ret)[1].rpc.gpu_id = 2;
	return 0;
}

static int fake_queues(struct target *t, struct rpc_arena *a, struct rpc_queue **ret,
		       size_t *ret_n, struct agent_err *err)
{
	*ret = rpc_arena_array(a, 4, sizeof(**ret));
	*ret_n = 4;
	for (uint32_t i = 0; i < 4; i++)
		(*ret)[i] = (struct rpc_queue){ .queue_id = 10 + i, .gpu_id = 1 + i / 2 };
	return 0;
}

static void stop(const struct target_waves_from *from, struct rpc_arena *a,
		 struct target_waves *ret)
{
	const struct timespec stop = { .tv_nsec = STOP_MS * 1000000L };

	stops++;
	n_asked = from->n_queues;
	nanosleep(&stop, NULL);
	*ret = (struct target_waves){ .waves = rpc_arena_array(a, from->n_queues, sizeof(struct wave)),
				      .n_waves = from->n_queues };
	for (size_t i = 0; i < from->n_queues; i++)
		ret->waves[i].queue_id = from->queues[i].queue_id;
}

static int fake_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
		      struct target_waves *ret, struct agent_err *err)
{
	if (waves_result < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -waves_result, NULL, NULL, "no waves");
	stop(from, a, ret);
	return 0;
}

static int fake_core_begin(struct target *t, const struct target_waves_from *from,
			   const struct target_core_wanted *what, struct rpc_arena *a,
			   struct target_core *ret, struct agent_err *err)
{
	*ret = (struct target_core){ 0 };
	CU_ASSERT_TRUE(what->waves);
	t->ended = core_end == CORE_ENDS_ALL;
	if (core_end == CORE_WHOLE || core_end == CORE_FAILS_AFTER) {
		stop(from, a, &ret->waves);
		ret->has_waves = true;
	}
	return core_end == CORE_WHOLE ? 0 : agent_err_set(err, RPC_ERROR_FAILED, EIO, NULL, NULL,
							  "no core");
}

static const struct target_ops fake_ops = {
	.devices = fake_devices,
	.queues = fake_queues,
	.waves = fake_waves,
	.core_begin = fake_core_begin,
};

static void capture(struct exception_capture *c, struct exception_throttle *throttle,
		    const struct target_source *source, const struct exception_capture_wanted *what)
{
	struct target t = { .ops = &fake_ops };

	stops = 0;
	exception_capture_init(c);
	TEST_EQ(exception_capture_begin(c, &t), 0);
	TEST_EQ(stops, 0);
	exception_capture_take(c, throttle, &t, source, what);
}

static const struct target_source of_queue = { .has_queue = true, .queue_id = 12, .has_gpu = true,
					       .gpu_id = 2 };

static void only_what_is_wanted_stops(void)
{
	const struct {
		struct target_source source;
		bool all;
		size_t want;
	} rows[] = {
		{ of_queue, false, 1 },
		{ { .has_gpu = true, .gpu_id = 2 }, false, 2 },
		{ { 0 }, false, 4 },
		{ of_queue, true, 4 },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct exception_capture_wanted what = { .all_queues = rows[i].all };
		struct exception_throttle throttle = { 0 };
		struct exception_capture c;

		capture(&c, &throttle, &rows[i].source, &what);
		TEST_ROW_EQ(i, stops, 1);
		TEST_ROW_EQ(i, n_asked, rows[i].want);
		/* The document's queues are those that target_waves.stops counts. */
		TEST_ROW_EQ(i, c.seen.n_queues, rows[i].want);
		CU_ASSERT_TRUE(c.has_waves && !c.waves_err.code);
		exception_capture_deinit(&c);
	}
}

static void a_core_stops_for_all(void)
{
	const struct {
		enum core_end core;
		unsigned stops;
		bool has_core, has_waves;
		const char *why; /* there are no waves */
	} rows[] = {
		{ CORE_WHOLE, 1, true, true, "" },
		{ CORE_FAILS_BEFORE, 1, false, true, "" },
		{ CORE_FAILS_AFTER, 1, false, true, "" },
		{ CORE_ENDS_ALL, 0, false, false, "no core" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct target_core_wanted core = { .ours = true };
		const struct exception_capture_wanted what = { .all_queues = true, .core = &core };
		struct exception_throttle throttle = { 0 };
		struct exception_capture c;

		core_end = rows[i].core;
		capture(&c, &throttle, &of_queue, &what);
		TEST_ROW_EQ(i, stops, rows[i].stops);
		TEST_ROW_EQ(i, c.has_core, rows[i].has_core);
		TEST_ROW_EQ(i, !c.core_err.code, rows[i].has_core);
		TEST_ROW_EQ(i, c.has_waves, rows[i].has_waves);
		TEST_ROW_EQ(i, c.seen.waves.n_waves, rows[i].has_waves ? 4 : 0);
		TEST_ROW_STR(i, c.waves_err.message, rows[i].why);
		exception_capture_deinit(&c);
	}
}

static void failures_are_told(void)
{
	const struct exception_capture_wanted what = { .all_queues = true };
	struct exception_throttle throttle = { 0 };
	struct exception_capture c;

	waves_result = -EIO;
	capture(&c, &throttle, &of_queue, &what);
	waves_result = 0;
	CU_ASSERT_FALSE(c.has_waves);
	TEST_STR(c.waves_err.message, "no waves");
	TEST_EQ(c.seen.waves.n_waves, 0);
	TEST_EQ(c.seen.n_queues, 4);
	exception_capture_deinit(&c);
}

static void captures_take_one_part_in_ten(void)
{
	const struct exception_capture_wanted what = { .all_queues = true };
	struct exception_throttle throttle = { 0 };
	struct exception_capture c;
	uint64_t begun, over;

	CU_ASSERT_TRUE(exception_throttle_allows(&throttle));
	begun = clock_now_ns();
	capture(&c, &throttle, &of_queue, &what);
	over = clock_now_ns();
	exception_capture_deinit(&c);
	CU_ASSERT_FALSE(exception_throttle_allows(&throttle));
	CU_ASSERT_TRUE(throttle.rest_until >= begun + STOP_MS * UINT64_C(10000000));
	CU_ASSERT_TRUE(throttle.rest_until <= over + (over - begun) * 9);
	throttle.rest_until = over;
	CU_ASSERT_TRUE(exception_throttle_allows(&throttle));
}

TEST_SUITE(worker_capture, TEST(only_what_is_wanted_stops), TEST(a_core_stops_for_all),
	   TEST(failures_are_told), TEST(captures_take_one_part_in_ten));
