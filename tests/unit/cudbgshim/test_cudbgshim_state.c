/* SPDX-License-Identifier: MIT */
/* The state of a device: batched and plain, whole and in updates, sane and not. */
#include "tests/unit/cudbgshim/cudbgshim_gpu.h"

DEFINE_AUTO(struct cudbgshim_state *, cudbgshim_state_destroy);
#define auto_state auto_call(cudbgshim_state_destroyp)
DEFINE_AUTO(struct cudbgshim_state_reader *, cudbgshim_state_reader_destroy);
#define auto_reader auto_call(cudbgshim_state_reader_destroyp)

static bool same_dim(struct cudbgshim_dim3 a, struct cudbgshim_dim3 b)
{
	return a.x == b.x && a.y == b.y && a.z == b.z;
}

static bool same_warp(const struct cudbgshim_warp *a, const struct cudbgshim_warp *b)
{
	return a->grid_id == b->grid_id && a->error_pc == b->error_pc &&
	       a->breakpoint == b->breakpoint && same_dim(a->block, b->block) &&
	       same_dim(a->base_thread, b->base_thread) &&
	       same_dim(a->cluster_idx, b->cluster_idx) &&
	       same_dim(a->cluster_dim, b->cluster_dim) &&
	       same_dim(a->cluster_target, b->cluster_target) && a->valid_lanes == b->valid_lanes &&
	       a->active_lanes == b->active_lanes && a->syscall_lanes == b->syscall_lanes &&
	       a->has == b->has;
}

static void expect_same(long long row, const struct cudbgshim_state *a,
			const struct cudbgshim_state *b)
{
	size_t all = (size_t)a->n_sms * a->n_warps;

	TEST_ROW_EQ(row, memcmp(a->exception_sms, b->exception_sms, sizeof(a->exception_sms)), 0);
	TEST_ROW_EQ(row, memcmp(a->valid_warps, b->valid_warps, a->n_sms * 8), 0);
	TEST_ROW_EQ(row, memcmp(a->broken_warps, b->broken_warps, a->n_sms * 8), 0);
	TEST_ROW_EQ(row, memcmp(a->lane_pc, b->lane_pc, all * a->n_lanes * 8), 0);
	TEST_ROW_EQ(row, memcmp(a->lane_exception, b->lane_exception, all * a->n_lanes * 4), 0);
	for (size_t i = 0; i < all; i++)
		if (!same_warp(&a->warps[i], &b->warps[i]))
			TEST_ROW_EQ(row, i, -1);
}

static bool is_empty(const struct cudbgshim_state *state)
{
	static const struct cudbgshim_warp none;

	for (uint32_t sm = 0; sm < state->n_sms; sm++)
		if (state->valid_warps[sm] || state->broken_warps[sm])
			return false;
	for (size_t i = 0; i < (size_t)state->n_sms * state->n_warps; i++)
		if (!same_warp(&state->warps[i], &none))
			return false;
	for (size_t i = 0; i < (size_t)state->n_sms * state->n_warps * state->n_lanes; i++)
		if (state->lane_pc[i] || state->lane_exception[i])
			return false;
	return true;
}

/* What a test planted, against what came out. */
static void expect_planted(long long row, const struct cudbgshim_state *state)
{
	for (uint32_t sm = 0; sm < gpu.n_sms; sm++) {
		TEST_ROW_EQ(row, state->valid_warps[sm], gpu.valid[sm]);
		TEST_ROW_EQ(row, state->broken_warps[sm], gpu.broken[sm]);
		for (uint32_t warp = 0; warp < gpu.n_warps; warp++) {
			size_t i = cudbgshim_state_index(state, sm, warp);
			const struct gpu_warp *w = &gpu.warps[i];

			if (!(gpu.valid[sm] >> warp & 1))
				continue;
			TEST_ROW_EQ(row, state->warps[i].grid_id, w->grid);
			TEST_ROW_EQ(row, state->warps[i].block.x, w->block.x);
			TEST_ROW_EQ(row, state->warps[i].base_thread.x, w->base.x);
			TEST_ROW_EQ(row, state->warps[i].base_thread.y, w->base.y);
			TEST_ROW_EQ(row, state->warps[i].active_lanes, w->active);
			TEST_ROW_EQ(row, state->warps[i].error_pc, w->error_pc);
			for (uint32_t lane = 0; lane < gpu.n_lanes; lane++) {
				bool is_valid = w->valid >> lane & 1;

				TEST_ROW_EQ(row, state->lane_pc[i * gpu.n_lanes + lane],
					    is_valid ? w->pc[lane] : 0);
				TEST_ROW_EQ(row, state->lane_exception[i * gpu.n_lanes + lane],
					    is_valid ? w->exception : 0);
			}
		}
	}
}

/* A breakpoint is told only of broken warps; the batch tells it of whoever has one. */
static void break_warps_with_breakpoints(void)
{
	for (uint32_t sm = 0; sm < gpu.n_sms; sm++)
		for (uint32_t warp = 0; warp < gpu.n_warps; warp++)
			if (!(gpu.broken[sm] >> warp & 1))
				gpu.warps[sm * gpu.n_warps + warp].breakpoint = 0;
}

static const struct {
	uint32_t major, minor, n_slots, n_known;
} batched_releases[] = {
	{ 12, 4, 133, 4 }, { 12, 5, 136, 4 }, { 12, 7, 141, 6 },
	{ 12, 9, 146, 7 }, { 13, 2, 159, 8 }, { 13, 4, 164, 8 },
};

/* The property that the back end relies on: both ways give the same, after every change. */
static void batches_equal_plain_calls(void)
{
	for (size_t i = 0; i < TEST_COUNT(batched_releases); i++) {
		auto_shim struct cudbgshim *s =
			fake_open(batched_releases[i].major, batched_releases[i].minor, 1,
				  batched_releases[i].n_slots);
		auto_state struct cudbgshim_state *plain = NULL;
		auto_reader struct cudbgshim_state_reader *reader = NULL;
		const struct cudbgshim_state *batched = NULL;

		gpu_reset(70, 20 + (uint32_t)i, i == 2 ? 16 : 32);
		gpu.n_known = batched_releases[i].n_known;
		gpu.extras = i % 2;
		gpu.padding = i % 2 ? 8 : 0;
		gpu_fill();
		gpu_install();
		TEST_EQ_FATAL(cudbgshim_state_create(gpu.n_sms, gpu.n_warps, gpu.n_lanes, &plain),
			      0);
		TEST_EQ_FATAL(cudbgshim_state_reader_create(s, 0, &reader), 0);
		CU_ASSERT_TRUE(cudbgshim_state_reader_is_batched(reader));
		for (uint32_t round = 0; round < 25; round++) {
			long long row = (long long)(i * 100 + round);

			break_warps_with_breakpoints();
			TEST_ROW_EQ(row, cudbgshim_state_reader_read(reader, &batched), 0);
			TEST_ROW_EQ(row, cudbgshim_state_read_plain(s, 0, plain), 0);
			expect_same(row, batched, plain);
			expect_planted(row, batched);
			for (uint32_t n = 0; n < round; n++)
				gpu_change();
		}
		TEST_ROW_EQ(i, gpu.n_full, 1);
		TEST_ROW_EQ(i, gpu.n_update, 24);
		CU_ASSERT_TRUE(cudbgshim_state_reader_is_batched(reader));
	}
}

/* Drivers without batches, with each version of the warp struct. */
static void old_drivers_are_read_warp_by_warp(void)
{
	static const struct {
		uint32_t major, minor, n_slots, has;
	} rows[] = {
		{ 8, 0, 120, 0 },
		{ 11, 8, 121, 0 },
		{ 12, 0, 125, CUDBGSHIM_WARP_CLUSTER },
		{ 12, 2, 126, CUDBGSHIM_WARP_CLUSTER },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_shim struct cudbgshim *s =
			fake_open(rows[i].major, rows[i].minor, 1, rows[i].n_slots);
		auto_reader struct cudbgshim_state_reader *reader = NULL;
		const struct cudbgshim_state *state = NULL;
		uint32_t has = 0;

		gpu_reset(40, 8, 32);
		gpu_fill();
		gpu_install();
		TEST_EQ_FATAL(cudbgshim_state_reader_create(s, 0, &reader), 0);
		CU_ASSERT_FALSE(cudbgshim_state_reader_is_batched(reader));
		TEST_ROW_EQ(i, cudbgshim_state_reader_read(reader, &state), 0);
		expect_planted((long long)i, state);
		TEST_ROW_EQ(i, state->exception_sms[0], gpu.exception_sms[0]);
		for (uint32_t k = 0; k < 40 * 8; k++)
			has |= state->warps[k].has;
		TEST_ROW_EQ(i, has & ~CUDBGSHIM_WARP_ERROR_PC, rows[i].has);
	}
}

/* The largest GPU of today fits, with room, into what a session may use. */
static void a_whole_h200_fits(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);
	auto_reader struct cudbgshim_state_reader *reader = NULL;
	const struct cudbgshim_state *state = NULL;
	size_t n_warps = 132 * 64;

	gpu_reset(132, 64, 32);
	gpu_fill();
	for (uint32_t sm = 0; sm < 132; sm++)
		gpu.valid[sm] = UINT64_MAX;
	gpu_install();
	TEST_EQ_FATAL(cudbgshim_state_reader_create(s, 0, &reader), 0);
	TEST_EQ(cudbgshim_state_reader_read(reader, &state), 0);
	expect_planted(0, state);
	CU_ASSERT_TRUE(n_warps * (sizeof(*state->warps) +
				  32 * (sizeof(*state->lane_pc) + sizeof(*state->lane_exception))) <
		       5u << 20);
}

/* ------------------------------------------------------------------ nonsense ----------------- */

static uint8_t encoded[4 << 20];

/* Cut anywhere, or one byte longer: refused, no byte read behind the end, nothing kept. */
static void every_truncation_is_refused(void)
{
	auto_state struct cudbgshim_state *state = NULL;
	struct cudbgshim_layout layout;
	size_t size, bad_at = 0;

	gpu_reset(3, 4, 8);
	gpu.extras = true;
	gpu_fill();
	for (uint32_t sm = 0; sm < 3; sm++) {
		gpu.valid[sm] = 5;
		gpu.broken[sm] = 4;
	}
	layout = gpu_layout();
	size = gpu_encode(true, encoded, sizeof(encoded));
	TEST_EQ_FATAL(cudbgshim_state_create(3, 4, 8, &state), 0);
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *bytes = malloc(cut ? cut : 1);

		memcpy(bytes, encoded, cut);
		TEST_ROW_EQ(cut, cudbgshim_state_decode(state, &layout, bytes, cut, &bad_at),
			    -EPROTO);
		TEST_ROW_EQ(cut, bad_at <= cut, true);
		TEST_ROW_EQ(cut, is_empty(state), true);
		TEST_ROW_EQ(cut, state->updatable, false);
		free(bytes);
	}
	TEST_EQ(cudbgshim_state_decode(state, &layout, encoded, size + 1, &bad_at), -EPROTO);
	TEST_EQ(bad_at, size);
	TEST_EQ(cudbgshim_state_decode(state, &layout, encoded, size, NULL), 0);
	expect_planted(0, state);
}

/* One field made impossible at a time, in a batch of one SM, one warp, one lane. */
static void impossible_values_are_refused(void)
{
	static const struct {
		size_t at;
		uint32_t value;
	} rows[] = {
		{ 0, 2 },      /* neither whole nor update */
		{ 0, 1 },      /* an update of nothing */
		{ 4, 4 },      /* no active mask */
		{ 4, 0xff },   /* bits without a size take no bytes: misread from there */
		{ 8, 0x3 },    /* an SM that is not there */
		{ 24, 0x3 },   /* a warp too many: its record is missing */
		{ 24, 0x10 },  /* a warp that is not there */
		{ 28, 1 },     /* the same, in the upper half */
		{ 40, 1 },     /* an update mask that is not there */
		{ 76, 0x100 }, /* a lane that is not there */
		{ 76, 0x3 },   /* a lane too many */
		{ 84, 1u << CUDBGABI_WARP_ATTR_EXCEPTION },
		{ 84, 1u << CUDBGABI_WARP_ATTR_LANE_ATTRIBUTES },
	};
	auto_state struct cudbgshim_state *state = NULL;
	struct cudbgshim_layout layout;
	size_t size;

	gpu_reset(1, 4, 8);
	gpu.n_known = 4;
	gpu.valid[0] = 1;
	gpu.warps[0] = (struct gpu_warp){ .grid = 2, .valid = 1, .pc = { 0x1234 } };
	layout = gpu_layout();
	size = gpu_encode(true, encoded, sizeof(encoded));
	TEST_EQ_FATAL(size, 96);
	TEST_EQ_FATAL(cudbgshim_state_create(1, 4, 8, &state), 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		uint8_t *bytes = test_tail_dup(encoded, size);

		TEST_ROW_EQ(i, cudbgshim_state_decode(state, &layout, bytes, size, NULL), 0);
		cudbgshim_state_clear(state);
		memcpy(bytes + rows[i].at, &rows[i].value, 4);
		TEST_ROW_EQ(i, cudbgshim_state_decode(state, &layout, bytes, size, NULL), -EPROTO);
		TEST_ROW_EQ(i, is_empty(state), true);
	}
}

/* An update that leaves out a warp or a lane which was never told. */
static void updates_of_the_unknown_are_refused(void)
{
	auto_state struct cudbgshim_state *state = NULL;
	struct cudbgshim_layout layout;
	size_t size;

	gpu_reset(1, 4, 8);
	gpu.valid[0] = 1;
	gpu.warps[0] = (struct gpu_warp){ .grid = 2, .valid = 1, .pc = { 0x1234 } };
	layout = gpu_layout();
	TEST_EQ_FATAL(cudbgshim_state_create(1, 4, 8, &state), 0);
	for (uint32_t what = 0; what < 2; what++) {
		gpu.valid[0] = 1;
		gpu.warps[0].valid = 1;
		size = gpu_encode(true, encoded, sizeof(encoded));
		TEST_EQ(cudbgshim_state_decode(state, &layout, encoded, size, NULL), 0);
		if (what == 0)
			gpu.sent->valid[0] = gpu.valid[0] = 3; /* as if it had been sent */
		else
			gpu.warps[0].valid = gpu.sent->warps[0].valid = 3;
		gpu.warps[0].active ^= 1;
		size = gpu_encode(false, encoded, sizeof(encoded));
		TEST_ROW_EQ(what, cudbgshim_state_decode(state, &layout, encoded, size, NULL),
			    -EPROTO);
		TEST_ROW_EQ(what, state->updatable, false);
	}
}

static void layouts_are_checked(void)
{
	gpu_reset(4, 4, 8);
	for (uint32_t i = 0; i < 12; i++) {
		struct cudbgshim_layout layout = gpu_layout();
		uint32_t *const fields[] = { &layout.device.size, &layout.sm.size,
					     &layout.warp.size, &layout.lane.size };
		const uint32_t least[] = { 8, 20, 44, 8 };

		TEST_EQ(cudbgshim_layout_check(&layout), 0);
		if (i < 4)
			*fields[i] = least[i] - 1;
		else if (i < 8)
			*fields[i - 4] = 4097;
		else if (i == 8)
			layout.warp.attribute[31] = 4097;
		else if (i == 9)
			layout.device.attribute[0] = UINT32_MAX;
		else
			layout.buffer_size = i == 10 ? 7 : UINT32_MAX;
		TEST_ROW_EQ(i, cudbgshim_layout_check(&layout), -EPROTO);
	}
}

/* What a driver cannot do in a batch is read warp by warp, from then on. */
static void unusable_batches_are_left_alone(void)
{
	for (uint32_t how = 0; how < 5; how++) {
		auto_shim struct cudbgshim *s = fake_open(12, 4, 142, 133);
		auto_reader struct cudbgshim_state_reader *reader = NULL;
		const struct cudbgshim_state *state = NULL;

		gpu_reset(5, 6, 32);
		gpu.n_known = 4;
		gpu_fill();
		gpu_install();
		gpu.layout_result = how == 0 ? CUDBGABI_ERROR_NOT_SUPPORTED : 0;
		gpu.batch_result = how == 1 ? CUDBGABI_ERROR_NOT_SUPPORTED : 0;
		gpu.skew = how == 2 ? 1 : how == 3 ? 64 << 20 : 0;
		gpu.padding = how == 4 ? 5000 : 0;
		TEST_EQ_FATAL(cudbgshim_state_reader_create(s, 0, &reader), 0);
		TEST_ROW_EQ(how, cudbgshim_state_reader_read(reader, &state), 0);
		expect_planted(how, state);
		CU_ASSERT_FALSE(cudbgshim_state_reader_is_batched(reader));
		gpu_change();
		TEST_ROW_EQ(how, cudbgshim_state_reader_read(reader, &state), 0);
		expect_planted(how, state);
	}
}

/* A damaged update is asked for again as a whole. */
static void damaged_updates_are_repaired(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);
	auto_reader struct cudbgshim_state_reader *reader = NULL;
	const struct cudbgshim_state *state = NULL;

	gpu_reset(5, 6, 32);
	gpu_fill();
	/* There is at least one that the update will leave out. */
	gpu.valid[0] &= ~UINT64_C(2);
	gpu.broken[0] &= gpu.valid[0];
	gpu_install();
	TEST_EQ_FATAL(cudbgshim_state_reader_create(s, 0, &reader), 0);
	TEST_EQ(cudbgshim_state_reader_read(reader, &state), 0);
	gpu.sent->valid[0] = gpu.valid[0] = ~gpu.valid[0] & 0x3f;
	gpu.sent->broken[0] = gpu.broken[0] = 0;
	gpu.exception_sms[0] ^= 1;
	gpu.warps[6].block.x++;
	for (uint32_t warp = 0; warp < 6; warp += 5)
		gpu.warps[warp].block.x++;
	TEST_EQ(cudbgshim_state_reader_read(reader, &state), 0);
	expect_planted(0, state);
	CU_ASSERT_TRUE(cudbgshim_state_reader_is_batched(reader));
	TEST_EQ(gpu.n_full, 2);
}

/* A failure that is no property of batches stays a failure. */
static void failures_of_the_device_are_told(void)
{
	auto_shim struct cudbgshim *s = fake_open(13, 4, 193, 164);
	auto_reader struct cudbgshim_state_reader *reader = NULL;
	const struct cudbgshim_state *state = NULL;

	gpu_reset(5, 6, 32);
	gpu_install();
	TEST_EQ_FATAL(cudbgshim_state_reader_create(s, 0, &reader), 0);
	gpu.batch_result = CUDBGABI_ERROR_RUNNING_DEVICE;
	TEST_EQ(cudbgshim_state_reader_read(reader, &state), -EBUSY);
	CU_ASSERT_PTR_NULL(state);
	CU_ASSERT_TRUE(cudbgshim_state_reader_is_batched(reader));
	gpu.batch_result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	TEST_EQ(cudbgshim_state_reader_read(reader, &state), -EPIPE);
	CU_ASSERT_TRUE(cudbgshim_is_over(s));
	TEST_EQ(cudbgshim_state_reader_read(reader, &state), -ESHUTDOWN);

	struct cudbgshim_state_reader *none = NULL;

	TEST_EQ(cudbgshim_state_reader_create(s, 0, &none), -ESHUTDOWN);
	CU_ASSERT_PTR_NULL(none);
}

/* Masks that name warps and lanes beyond the device's own counts. */
static void impossible_plain_masks_are_refused(void)
{
	auto_shim struct cudbgshim *s = fake_open(12, 2, 134, 126);
	auto_state struct cudbgshim_state *state = NULL;

	gpu_reset(2, 4, 8);
	gpu_install();
	TEST_EQ_FATAL(cudbgshim_state_create(2, 4, 8, &state), 0);
	gpu.valid[1] = 0x10;
	TEST_EQ(cudbgshim_state_read_plain(s, 0, state), -EPROTO);
	gpu.valid[1] = 1;
	gpu.warps[4].valid = 0x100;
	TEST_EQ(cudbgshim_state_read_plain(s, 0, state), -EPROTO);
	CU_ASSERT_TRUE(is_empty(state));
}

static void states_have_limits(void)
{
	static const struct {
		uint32_t n_sms, n_warps, n_lanes;
	} rows[] = { { 0, 1, 1 },   { 1, 0, 1 },  { 1, 1, 0 },
		     { 257, 1, 1 }, { 1, 65, 1 }, { 1, 1, 33 } };
	struct cudbgshim_state *state = NULL;

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i,
			    cudbgshim_state_create(rows[i].n_sms, rows[i].n_warps, rows[i].n_lanes,
						   &state),
			    -EINVAL);
	CU_ASSERT_PTR_NULL(state);
	cudbgshim_state_destroy(NULL);
	cudbgshim_state_reader_destroy(NULL);
}

/* ------------------------------------------------------------------ threads ------------------ */

static void lanes_carry_through_the_block(void)
{
	static const struct {
		struct cudbgshim_dim3 base;
		uint32_t lane;
		struct cudbgshim_dim3 dim, want;
	} rows[] = {
		{ { 0, 0, 0 }, 31, { 128, 1, 1 }, { 31, 0, 0 } },
		{ { 96, 0, 0 }, 31, { 128, 1, 1 }, { 127, 0, 0 } },
		{ { 30, 1, 0 }, 5, { 32, 4, 2 }, { 3, 2, 0 } },
		{ { 30, 3, 0 }, 5, { 32, 4, 2 }, { 3, 0, 1 } },
		{ { 0, 0, 0 }, 7, { 2, 2, 2 }, { 1, 1, 1 } },
		{ { 0, 0, 5 }, 31, { 1, 1, 64 }, { 0, 0, 36 } },
		/* A driver that does not know the block: nothing to carry, nothing to divide by. */
		{ { 1, 2, 3 }, 4, { 0, 0, 0 }, { 5, 2, 3 } },
		{ { UINT32_MAX, 0, 0 }, 1, { 1, 0, 1 }, { 0, 0, 0 } },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct cudbgshim_dim3 got =
			cudbgshim_thread_of_lane(rows[i].base, rows[i].lane, rows[i].dim);

		TEST_ROW_EQ(i, same_dim(got, rows[i].want), true);
	}
}

TEST_SUITE(cudbgshim_state, TEST(batches_equal_plain_calls),
	   TEST(old_drivers_are_read_warp_by_warp), TEST(a_whole_h200_fits),
	   TEST(every_truncation_is_refused), TEST(impossible_values_are_refused),
	   TEST(updates_of_the_unknown_are_refused), TEST(layouts_are_checked),
	   TEST(unusable_batches_are_left_alone), TEST(damaged_updates_are_repaired),
	   TEST(failures_of_the_device_are_told), TEST(impossible_plain_masks_are_refused),
	   TEST(states_have_limits), TEST(lanes_carry_through_the_block));
