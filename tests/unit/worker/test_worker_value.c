/* SPDX-License-Identifier: MIT */
/* Values of lanes, with memory that is made up: lane n has text that begins with the letter n. */
#include <string.h>
#include <time.h>

#include "agentd/worker/value/groups.h"
#include "base/clock.h"
#include "testlib.h"

static struct {
	struct target target;
	struct target_ops ops;
	struct rpc_arena arena;
	struct value_request k;
	struct values_types *types;
	unsigned stops;
} fake;

static const struct rpc_queue queue;

static uint32_t allow(void *context, uint32_t ms, uint32_t *ret_retry_ms)
{
	(void)context, (void)ret_retry_ms;
	return ms;
}

static void end_stop(void *context, int64_t stopped_us)
{
	(void)context, (void)stopped_us;
}

static int all_of_it(struct target *t, const struct target_waves_from *from, const struct target_wave_memory *what,
		     struct rpc_arena *a, struct agent_err *err)
{
	(void)t, (void)from, (void)a, (void)err;
	fake.stops++;
	memset(what->buf, 0, what->size);
	for (uint32_t i = 0; i < what->size; i += 16)
		((char *)what->buf)[i] = (char)('a' + what->lane);
	return (int)what->size;
}

static void begin(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.ops.wave_memory = all_of_it;
	fake.ops.wave_spaces = TARGET_SPACE_BIT(RPC_MEMORY_SPACE_GENERIC) | TARGET_SPACE_BIT(RPC_MEMORY_SPACE_LDS) |
			       TARGET_SPACE_BIT(RPC_MEMORY_SPACE_SCRATCH);
	fake.target.ops = &fake.ops;
	rpc_arena_init(&fake.arena, 0);
	fake.k.target = &fake.target;
	fake.k.arena = &fake.arena;
	fake.k.stops = (struct value_stops){ .begin = allow, .end = end_stop };
	fake.k.from.queues = &queue;
	fake.k.max_stop_ms = 10;
	fake.k.deadline_ns = clock_deadline_ms(60000);
	fake.k.told.text_left = VALUE_TEXT_MAX;
	TEST_EQ_FATAL(value_memory_init(&fake.k.memory), 0);
	TEST_EQ_FATAL(values_types_create(NULL, &fake.types), 0);
}

static void end(void)
{
	values_types_destroy(fake.types);
	value_request_deinit(&fake.k);
	rpc_arena_deinit(&fake.arena);
}

static void add(struct value_groups *g, uint32_t lane, enum values_space space)
{
	static const uint64_t address = 0x40;
	struct value_reading r = { .state = RPC_VALUE_STATE_OK };

	r.result.type = values_type_pointer(fake.types, values_type_named(fake.types, "char"), space);
	r.result.size = sizeof(address);
	r.result.bytes = malloc(sizeof(address));
	memcpy(r.result.bytes, &address, sizeof(address));
	TEST_EQ_FATAL(value_groups_add(g, lane, &r), 0);
}

static void one_pointer_may_lead_each_lane_elsewhere(void)
{
	static const enum values_space spaces[] = { VALUES_SPACE_GENERIC, VALUES_SPACE_PRIVATE, VALUES_SPACE_SHARED };

	for (size_t i = 0; i < TEST_COUNT(spaces); i++) {
		struct rpc_lane_value *told;
		struct value_groups g;
		size_t n;

		begin();
		value_groups_init(&g, &fake.k, VALUES_NATURAL);
		add(&g, 0, spaces[i]);
		TEST_ROW_EQ(i, value_groups_repeat(&g, 1), spaces[i] == VALUES_SPACE_SHARED);
		if (spaces[i] != VALUES_SPACE_SHARED)
			add(&g, 1, spaces[i]);
		TEST_EQ_FATAL(value_groups_tell(&g, &told, &n), 0);
		TEST_ROW_EQ(i, n, spaces[i] == VALUES_SPACE_SHARED ? 1 : 2);
		TEST_ROW_EQ(i, !!strstr(told[0].value, "0x40 \"a\""), true);
		TEST_ROW_EQ(i, n < 2 || strstr(told[1].value, "0x40 \"b\""), true);
		value_groups_deinit(&g);
		end();
	}
}

/* As of $lane(1, p) in lane 0. */
static void a_pointer_of_another_lane_leads_where_it_does_there(void)
{
	uint64_t address = 0x40;
	struct value_reading r = { .state = RPC_VALUE_STATE_OK };
	const char *text = NULL;

	begin();
	r.result = (struct values_result){ .size = sizeof(address), .bytes = (uint8_t *)&address,
					   .has_lane = true, .lane = 1 };
	r.result.type = values_type_pointer(fake.types, values_type_named(fake.types, "char"), VALUES_SPACE_PRIVATE);
	TEST_EQ_FATAL(value_reading_print(&fake.k, 0, VALUES_NATURAL, &r, &text), 0);
	TEST_EQ(!!strstr(text, "0x40 \"b\""), true);
	end();
}

static void a_large_value_is_partial_where_that_shows(void)
{
	static const struct {
		bool is_equal; /* Many equal elements are one part, so that the last ones are shown. */
		enum rpc_value_state want;
	} rows[] = {
		{ false, RPC_VALUE_STATE_OK },
		{ true, RPC_VALUE_STATE_PARTIAL },
	};
	static uint8_t bytes[32768];

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct value_reading r = { .state = RPC_VALUE_STATE_OK, .cut = true };
		const char *text = NULL;

		begin();
		for (size_t at = 0; at < sizeof(bytes); at++)
			bytes[at] = rows[i].is_equal ? 0 : (uint8_t)(at / 4 * (at % 4 + 1));
		r.result = (struct values_result){ .bytes = bytes, .size = sizeof(bytes),
						   .lack = VALUES_UNAVAILABLE };
		r.result.type = values_type_array(fake.types, values_type_named(fake.types, "int"), 10000);
		TEST_EQ_FATAL(value_reading_print(&fake.k, 0, VALUES_NATURAL, &r, &text), 0);
		TEST_ROW_EQ(i, r.state, rows[i].want);
		TEST_ROW_EQ(i, !r.reason, rows[i].want == RPC_VALUE_STATE_OK);
		TEST_ROW_EQ(i, fake.k.told.too_large, rows[i].want == RPC_VALUE_STATE_PARTIAL);
		end();
	}
}

static bool is_refused;

static uint32_t refuse(void *context, uint32_t ms, uint32_t *ret_retry_ms)
{
	(void)context;
	*ret_retry_ms = 5;
	return is_refused ? 0 : ms;
}

static int short_and_late(struct target *t, const struct target_waves_from *from,
			  const struct target_wave_memory *what, struct rpc_arena *a, struct agent_err *err)
{
	const struct timespec wait = { .tv_nsec = 2000000 };

	(void)nanosleep(&wait, NULL);
	(void)all_of_it(t, from, what, a, err);
	return 64;
}

static int too_late(struct target *t, const struct target_waves_from *from, const struct target_wave_memory *what,
		    struct rpc_arena *a, struct agent_err *err)
{
	(void)t, (void)from, (void)what, (void)a, (void)err;
	fake.stops++;
	return -ETIME;
}

static int read_byte(uint64_t address)
{
	char c;

	return value_memory_read(&fake.k, 1, VALUES_SPACE_PRIVATE, address, &c, 1);
}

static bool misses(const char *what)
{
	for (size_t i = 0; i < fake.k.n_missing; i++)
		if (strstr(fake.k.missing[i], what))
			return true;
	return false;
}

static void what_is_busy_or_late_is_not_unreadable(void)
{
	begin();
	fake.k.stops.begin = refuse;
	is_refused = true;
	for (int i = 0; i < 100; i++)
		TEST_EQ(read_byte(0x40), -EBUSY);
	value_request_end(&fake.k);
	TEST_EQ(misses("may not be stopped now"), true);
	/* Refusals cost no try. */
	is_refused = false;
	TEST_EQ(read_byte(0x40), 0);
	end();

	begin();
	fake.k.max_stop_ms = 1;
	fake.ops.wave_memory = short_and_late;
	TEST_EQ(read_byte(0x10), 0);
	/* From there on it is tried once more. */
	TEST_EQ(read_byte(0x50), 0);
	TEST_EQ(fake.stops, 2);
	end();

	begin();
	fake.ops.wave_memory = too_late;
	TEST_EQ(read_byte(0x40), -ETIMEDOUT);
	value_request_end(&fake.k);
	TEST_EQ(misses("in the time that a stop may take"), true);
	end();
}

static void what_ends_is_unreadable(void)
{
	begin();
	fake.k.max_stop_ms = 60000;
	fake.ops.wave_memory = short_and_late;
	TEST_EQ(read_byte(0x10), 0);
	TEST_EQ(read_byte(0x50), -EFAULT);
	TEST_EQ(fake.stops, 1);
	TEST_EQ(fake.k.memory.busy || fake.k.memory.late, false);
	end();
}

/* ------------------------------------------------------------------ all lanes at once -------- */

#define FAR 0x10000u

/* Memory at FAR times the lane begins with a pointer further on, which has the lane there. */
static int one_by_lane(uint64_t address, uint32_t lane, uint8_t *to, uint32_t size)
{
	memset(to, 0, size);
	for (uint32_t i = 0; i + 8 <= size; i += 8) {
		uint64_t at = address + i, word = at % FAR ? 100 + lane : at + 0x1000;

		memcpy(to + i, &word, sizeof(word));
	}
	return (int)size;
}

static int by_lane(struct target *t, const struct target_waves_from *from, const struct target_wave_memory *what,
		   struct rpc_arena *a, struct agent_err *err)
{
	(void)t, (void)from, (void)a, (void)err;
	fake.stops++;
	if (!what->lanes)
		return one_by_lane(what->address, what->lane, what->buf, what->size);
	for (uint32_t i = 0; i < 64; i++)
		if (what->lanes >> i & 1)
			what->got[i] = (uint32_t)one_by_lane(what->addresses[i], i,
							     (uint8_t *)what->buf + (size_t)i * what->size, what->size);
	return (int)what->size;
}

static int nothing(struct target *t, const struct target_waves_from *from, const struct target_wave_memory *what,
		   struct rpc_arena *a, struct agent_err *err)
{
	(void)t, (void)from, (void)a, (void)err;
	fake.stops++;
	for (uint32_t i = 0; i < 64; i++)
		if (what->lanes >> i & 1)
			what->got[i] = 0;
	return -EFAULT;
}

static unsigned steps; /* So many pointers are followed. */

static int follow(void *context, uint32_t lane, struct value_groups *g)
{
	struct value_reading r = { .state = RPC_VALUE_STATE_OK };
	uint64_t address = FAR * (lane + 1), word = 0;
	int failed = 0;

	(void)context;
	for (unsigned i = 0; i < steps && !failed; i++) {
		failed = value_memory_read(&fake.k, lane, VALUES_SPACE_GENERIC, address, &word, sizeof(word));
		address = word;
	}
	if (failed) {
		r.state = failed == -EBUSY ? RPC_VALUE_STATE_UNAVAILABLE : RPC_VALUE_STATE_UNREADABLE;
		return value_groups_add(g, lane, &r);
	}
	r.result.type = values_type_named(fake.types, "long");
	r.result.size = sizeof(word);
	r.result.bytes = malloc(sizeof(word));
	memcpy(r.result.bytes, &word, sizeof(word));
	return value_groups_add(g, lane, &r);
}

static void memory_of_all_lanes_is_fetched_in_one_stop(void)
{
	static const struct {
		unsigned steps;
		bool is_nothing, is_refused;
		unsigned stops;
		size_t groups;
		enum rpc_value_state state;
	} rows[] = {
		{ 1, false, false, 1, 64, RPC_VALUE_STATE_OK },
		{ 2, false, false, 2, 64, RPC_VALUE_STATE_OK },
		/* Each lane is tried where a piece begins, and where the pointer leads, which is the same here. */
		{ 1, true, false, 1, 1, RPC_VALUE_STATE_UNREADABLE },
		{ 1, false, true, 0, 1, RPC_VALUE_STATE_UNAVAILABLE },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct rpc_lane_value *told;
		size_t n;

		begin();
		steps = rows[i].steps;
		fake.ops.wave_memory = rows[i].is_nothing ? nothing : by_lane;
		fake.k.stops.begin = refuse;
		is_refused = rows[i].is_refused;
		fake.k.lanes = UINT64_MAX;
		TEST_EQ_FATAL(value_groups_read(&fake.k, VALUES_NATURAL, follow, NULL, &told, &n), 0);
		TEST_ROW_EQ(i, n, rows[i].groups);
		TEST_ROW_EQ(i, told[0].state, rows[i].state);
		TEST_ROW_EQ(i, fake.stops, rows[i].stops);
		if (n == 64 && steps == 2)
			TEST_STR(told[63].value, "163");
		is_refused = false;
		end();
	}
}

/* Beyond what one request may fetch, lanes say so. */
static void what_is_too_much_is_told(void)
{
	struct rpc_lane_value *told;
	size_t n;

	begin();
	steps = 1;
	fake.ops.wave_memory = by_lane;
	fake.k.lanes = 1;
	for (uint64_t i = 0; i < 16; i++)
		TEST_EQ(value_memory_read(&fake.k, 0, VALUES_SPACE_SHARED, i * FAR, &n, 1), 0);
	TEST_EQ(value_memory_read(&fake.k, 0, VALUES_SPACE_SHARED, 99 * FAR, &n, 1), -EDQUOT);
	fake.stops = 0;
	TEST_EQ_FATAL(value_groups_read(&fake.k, VALUES_NATURAL, follow, NULL, &told, &n), 0);
	TEST_EQ(told[0].state, RPC_VALUE_STATE_UNREADABLE);
	TEST_EQ(fake.stops, 0);
	value_request_end(&fake.k);
	TEST_EQ(misses("more of the wave's was asked for"), true);
	end();
}

/* Of two pointers, one leads nowhere in one lane, and the other one in the other. */
static int half(struct target *t, const struct target_waves_from *from, const struct target_wave_memory *what,
		struct rpc_arena *a, struct agent_err *err)
{
	(void)t, (void)from, (void)a, (void)err;
	memset(what->buf, 0, what->size);
	memset(what->buf, 'a', 2);
	return what->address / FAR == what->lane + 1 ? (int)what->size : -EFAULT;
}

static void reads_are_told_apart_where_their_bytes_are_equal(void)
{
	const uint64_t pointers[2] = { FAR, 2 * FAR };
	struct rpc_lane_value *told;
	struct value_groups g;
	size_t n;

	begin();
	fake.ops.wave_memory = half;
	value_groups_init(&g, &fake.k, VALUES_NATURAL);
	for (uint32_t lane = 0; lane < 2; lane++) {
		struct value_reading r = { .state = RPC_VALUE_STATE_OK };

		r.result.type = values_type_pointer(fake.types, values_type_named(fake.types, "char"), VALUES_SPACE_GENERIC);
		r.result.type = values_type_array(fake.types, r.result.type, 2);
		r.result.size = sizeof(pointers);
		r.result.bytes = malloc(sizeof(pointers));
		memcpy(r.result.bytes, pointers, sizeof(pointers));
		TEST_EQ_FATAL(value_groups_add(&g, lane, &r), 0);
	}
	TEST_EQ_FATAL(value_groups_tell(&g, &told, &n), 0);
	TEST_EQ(n, 2);
	value_groups_deinit(&g);
	end();
}

TEST_SUITE(worker_value, TEST(one_pointer_may_lead_each_lane_elsewhere),
	   TEST(a_pointer_of_another_lane_leads_where_it_does_there),
	   TEST(a_large_value_is_partial_where_that_shows),
	   TEST(what_is_busy_or_late_is_not_unreadable), TEST(what_ends_is_unreadable),
	   TEST(memory_of_all_lanes_is_fetched_in_one_stop), TEST(what_is_too_much_is_told),
	   TEST(reads_are_told_apart_where_their_bytes_are_equal));
