/* SPDX-License-Identifier: MIT */
/* Barriers of NVIDIA's devices: words that ptxas made, and who is missing. */
#include <errno.h>

#include "testlib.h"
#include "waits/sass.h"

#define NONE WAITS_SASS_NO_REGISTER

static struct waits_sass sass(const char *arch, uint64_t low, uint64_t high)
{
	uint64_t words[2] = { low, high };
	struct waits_sass s = { 0 };

	TEST_EQ(waits_sass_read(arch, words, sizeof(words), &s), 0);
	return s;
}

/* As ptxas 13.0 encodes bar.sync, bar.arrive and bar.red with constants and registers. */
static void barriers_are_told_with_number_and_count(void)
{
	static const struct {
		const char *arch;
		uint64_t low, high;
		enum waits_sass_op op;
		uint8_t id_register, id, count_register;
		uint16_t count;
	} rows[] = {
		{ "sm_90", 0x0046000000007b1d, 0x000fe20000010000, WAITS_SASS_BARRIER, NONE, 1, NONE, 384 },
		{ "sm_75", 0x0046000000007b1d, 0x000fea0000000000, WAITS_SASS_BARRIER, NONE, 1, NONE, 384 },
		{ "sm_75", 0x0080000000007b1d, 0x000fea0000000000, WAITS_SASS_BARRIER, NONE, 2, NONE, 0 },
		{ "sm_80", 0x00c1000000007b1d, 0x000fec0000002000, WAITS_SASS_ARRIVE, NONE, 3, NONE, 64 },
		{ "sm_90", 0x0000000000007b1d, 0x000fec0000014800, WAITS_SASS_BARRIER, NONE, 0, NONE, 0 },
		{ "sm_120", 0x014000090000791d, 0x0005f00000010000, WAITS_SASS_BARRIER, NONE, 5, 9, 0 },
		{ "sm_100", 0x000100080000751d, 0x000ff00000010000, WAITS_SASS_BARRIER, 8, 0, NONE, 64 },
		{ "sm_86", 0x000000050000731d, 0x0001ec0000010000, WAITS_SASS_BARRIER, 5, 0, 5, 0 },
		{ "sm_86", 0x000000060000731d, 0x000fec0000002000, WAITS_SASS_ARRIVE, 6, 0, 6, 0 },
		/* EXIT, and a return. */
		{ "sm_90", 0x000000000000794d, 0x000fea0003800000, WAITS_SASS_OTHER, NONE, 0, NONE, 0 },
		{ "sm_90", 0x0000000000007950, 0x000fea0003800000, WAITS_SASS_OTHER, NONE, 0, NONE, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waits_sass s = sass(rows[i].arch, rows[i].low, rows[i].high);

		TEST_ROW_EQ(i, s.op, rows[i].op);
		TEST_ROW_EQ(i, s.id_register, rows[i].id_register);
		TEST_ROW_EQ(i, s.id, rows[i].id);
		TEST_ROW_EQ(i, s.count_register, rows[i].count_register);
		TEST_ROW_EQ(i, s.count, rows[i].count);
	}
}

static void lanes_of_a_warp_are_told_by_their_mask(void)
{
	struct waits_sass s = sass("sm_75", 0xffffffff00007948, 0x000fea0003800000);

	TEST_EQ(s.op == WAITS_SASS_WARP_SYNC && s.mask == UINT32_MAX && s.mask_register == NONE, true);
	s = sass("sm_90", 0x0000000000007948, 0x000fea0003800000); /* WARPSYNC.ALL */
	TEST_EQ(s.op == WAITS_SASS_WARP_SYNC && s.mask == UINT32_MAX && s.mask_register == NONE, true);
	s = sass("sm_75", 0x000000ff00007948, 0x000fea0003800000);
	TEST_EQ(s.mask, 0xff);
	s = sass("sm_75", 0x0000000300007348, 0x000fe80003800000);
	TEST_EQ(s.op == WAITS_SASS_WARP_SYNC && s.mask_register == 3, true);
	s = sass("sm_80", 0x0000580000007b48, 0x000fe80003800000); /* WARPSYNC c[0x0][0x160] */
	TEST_EQ(s.op == WAITS_SASS_WARP_SYNC && s.mask_is_constant && !s.mask && s.mask_register == NONE, true);
	s = sass("sm_90", 0x0000000004087348, 0x021fea0003c00000); /* WARPSYNC.COLLECTIVE */
	TEST_EQ(s.op == WAITS_SASS_WARP_SYNC && s.mask_register == 4, true);
}

static void convergence_barriers_are_told_by_their_number(void)
{
	static const char *const archs[] = { "sm_75", "sm_90", "sm_100", "sm_120" };

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		for (uint64_t n = 0; n < 10; n++) {
			/* BSYNC B0 to B9; BSSY in front of it makes the barrier, and waits for nobody. */
			struct waits_sass s = sass(archs[i], 0x0000000000007941 | n << 16, 0x000fea0003800000);

			TEST_ROW_EQ(i, s.op, WAITS_SASS_CONVERGE);
			TEST_ROW_EQ(i, s.id, n);
			s = sass(archs[i], 0x000000d000007945 | n << 16, 0x000fe20003800000);
			TEST_ROW_EQ(i, s.op, WAITS_SASS_OTHER);
		}
	TEST_STR(waits_sass_name(WAITS_SASS_CONVERGE), "BSYNC");
}

static void copies_that_arrive_are_told(void)
{
	/* ARRIVES.LDGSTSBAR.64.ARVCNT, and one that only some lanes execute. */
	TEST_EQ(sass("sm_90", 0x00000800ff0079b0, 0x000fe80008000a44).op, WAITS_SASS_COPY_ARRIVES);
	TEST_EQ(sass("sm_80", 0x00000000ff0099b0, 0x002fe20008000a06).op, WAITS_SASS_COPY_ARRIVES);
	TEST_STR(waits_sass_name(WAITS_SASS_COPY_ARRIVES), "ARRIVES.LDGSTSBAR");
}

/* As ptxas 13.0 encodes barrier.cluster for sm_90 to sm_121, which are the same. */
static void barriers_of_clusters_are_told(void)
{
	static const char *const archs[] = { "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121" };

	for (size_t i = 0; i < ARRAY_SIZE(archs); i++) {
		TEST_ROW_EQ(i, sass(archs[i], 0x00000000000079c7, 0x000fec0008000000).op, WAITS_SASS_CLUSTER_ARRIVE);
		TEST_ROW_EQ(i, sass(archs[i], 0x0000000000007dc7, 0x000fe20008000000).op, WAITS_SASS_CLUSTER_WAIT);
	}
	TEST_STR(waits_sass_name(WAITS_SASS_CLUSTER_WAIT), "UCGABAR_WAIT");
}

/* As ptxas 12.4 encodes nanosleep.u32 of a constant, a register and an argument, for sm_70 to sm_90. */
static void sleeps_are_told_if_they_are_executed(void)
{
	TEST_EQ(sass("sm_90", 0x000000640000795d, 0x000fea0003800000).op, WAITS_SASS_SLEEP);
	TEST_EQ(sass("sm_90", 0x000000040000735d, 0x004fea0003800000).op, WAITS_SASS_SLEEP);
	TEST_EQ(sass("sm_80", 0x0000580000007b5d, 0x000fe20003800000).op, WAITS_SASS_SLEEP);
	TEST_EQ(sass("sm_70", 0x000000640000795d, 0x000fe20003a00000).op, WAITS_SASS_SLEEP); /* NANOSLEEP.WARP */
	/* @P0, and @!PT. */
	TEST_EQ(sass("sm_90", 0x000000640000095d, 0x000fea0003800000).op, WAITS_SASS_OTHER);
	TEST_EQ(sass("sm_90", 0x000000640000f95d, 0x000fea0003800000).op, WAITS_SASS_OTHER);
	/* Of later devices it was not measured. */
	TEST_EQ(sass("sm_100", 0x000000640000795d, 0x000fea0003800000).op, WAITS_SASS_OTHER);
	TEST_STR(waits_sass_name(WAITS_SASS_SLEEP), "NANOSLEEP");
}

static void calls_are_told_with_their_target(void)
{
	struct waits_sass s = sass("sm_75", 0x000000e000007944, 0x000fea0003c00000);

	TEST_EQ(s.op == WAITS_SASS_TRANSFER && s.has_target && s.target == 0xf0, true);
	s = sass("sm_75", 0xffffffe000007944, 0x000fea0003c00000);
	TEST_EQ(s.has_target && s.target == -16, true);
	/* A branch of sm_90 to itself has this distance. */
	s = sass("sm_90", 0xfffffffc00fc7944, 0x000fc0000383ffff);
	TEST_EQ(s.has_target && s.target == 0, true);
	s = sass("sm_90", 0xfffffffc00fc7947, 0x000fc0000383ffff);
	TEST_EQ(s.op == WAITS_SASS_TRANSFER && s.has_target && s.target == 0 && !waits_sass_name(s.op), true);
}

/* nvdisasm 13.0 has these names for the forms; those of uniform registers are what is left of the odd ones. */
static void what_leads_to_an_unknown_place_has_no_target(void)
{
	static const struct {
		uint16_t form;
		enum waits_sass_op op;
	} rows[] = {
		{ 0x343, WAITS_SASS_TRANSFER }, /* CALL.ABS R0 */
		{ 0x943, WAITS_SASS_TRANSFER }, /* CALL.ABS 0x0 */
		{ 0xb43, WAITS_SASS_TRANSFER }, /* CALL.ABS c[0x0][0x0] */
		{ 0xd43, WAITS_SASS_TRANSFER },
		{ 0x344, WAITS_SASS_TRANSFER }, /* CALL.REL R0 0x10 */
		{ 0xd44, WAITS_SASS_TRANSFER },
		{ 0x949, WAITS_SASS_TRANSFER }, /* BRX R0 */
		{ 0x94a, WAITS_SASS_TRANSFER }, /* JMP 0x0 */
		{ 0xb4a, WAITS_SASS_TRANSFER }, /* JMP c[0x0][0x0] */
		{ 0x94c, WAITS_SASS_TRANSFER }, /* JMX R0 */
		{ 0x958, WAITS_SASS_TRANSFER }, /* BRXU */
		{ 0x959, WAITS_SASS_TRANSFER }, /* JMXU */
		{ 0x843, WAITS_SASS_OTHER }, /* F2IP.U8.F32 R0, R0, 0, R0 */
		{ 0x844, WAITS_SASS_OTHER }, /* STSM.16.M88 [R0], R0 */
		{ 0x941, WAITS_SASS_CONVERGE }, /* BSYNC B0 */
		{ 0x945, WAITS_SASS_OTHER }, /* BSSY B0, 0x10 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waits_sass s = sass("sm_90", rows[i].form | 0x7000, 0x000fea0003800000);

		TEST_ROW_EQ(i, s.op, rows[i].op);
		TEST_ROW_EQ(i, s.has_target, false);
	}
}

static void unknown_devices_are_refused(void)
{
	uint64_t words[2] = { 0x0046000000007b1d, 0 };
	struct waits_sass s;

	TEST_EQ(waits_sass_read("sm_130", words, sizeof(words), &s), -ENOTSUP);
	TEST_EQ(waits_sass_read("sm_61", words, sizeof(words), &s), -ENOTSUP);
	TEST_EQ(waits_sass_read("gfx90a", words, sizeof(words), &s), -ENOTSUP);
	TEST_EQ(waits_sass_read(NULL, words, sizeof(words), &s), -ENOTSUP);
	TEST_EQ(waits_sass_read("sm_90", words, 15, &s), -EINVAL);
	TEST_EQ(waits_sass_known("sm_90") && !waits_sass_known("sm_9"), true);
}

static void who_is_missing_follows_from_the_counts(void)
{
	static const struct {
		struct waits_sass_barrier b;
		enum waits_sass_missing missing;
	} rows[] = {
		/* The whole block: those that exited are not counted. */
		{ { 0, 3, 1, false }, WAITS_SASS_MISSING_ALL },
		{ { 0, 3, 1, true }, WAITS_SASS_MISSING_ALL },
		{ { 0, 4, 0, false }, WAITS_SASS_MISSING_NOBODY },
		/* A count: those that exited are. */
		{ { 384, 4, 8, false }, WAITS_SASS_MISSING_ALL },
		{ { 384, 4, 9, false }, WAITS_SASS_MISSING_SOME },
		{ { 384, 4, 8, true }, WAITS_SASS_MISSING_SOME },
		{ { 384, 4, 0, false }, WAITS_SASS_MISSING_EXITED },
		{ { 384, 4, 7, false }, WAITS_SASS_MISSING_EXITED },
		{ { 353, 4, 7, false }, WAITS_SASS_MISSING_EXITED },
		{ { 352, 4, 7, false }, WAITS_SASS_MISSING_ALL },
		/* Who came without waiting may have exited: only if nobody is left to come, it is over. */
		{ { 384, 4, 7, true }, WAITS_SASS_MISSING_SOME },
		{ { 384, 4, 0, true }, WAITS_SASS_MISSING_MAY_EXITED },
		/* As many as are needed: it is about to open. */
		{ { 64, 2, 2, false }, WAITS_SASS_MISSING_NOBODY },
		{ { 64, 3, 0, false }, WAITS_SASS_MISSING_NOBODY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		TEST_ROW_EQ(i, waits_sass_missing(&rows[i].b), rows[i].missing);
}

TEST_SUITE(waits_sass, TEST(barriers_are_told_with_number_and_count), TEST(lanes_of_a_warp_are_told_by_their_mask),
	   TEST(convergence_barriers_are_told_by_their_number),
	   TEST(copies_that_arrive_are_told), TEST(barriers_of_clusters_are_told),
	   TEST(sleeps_are_told_if_they_are_executed), TEST(calls_are_told_with_their_target),
	   TEST(what_leads_to_an_unknown_place_has_no_target),
	   TEST(unknown_devices_are_refused),
	   TEST(who_is_missing_follows_from_the_counts));
