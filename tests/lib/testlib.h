/* SPDX-License-Identifier: MIT */
#ifndef TESTLIB_H
#define TESTLIB_H

/**
 * @file testlib.h
 * What every unit test includes: CUnit, row assertions, guarded buffers, and one runner.
 *
 *	TEST_SUITE(module_topic, TEST(does_this), TEST(refuses_that));
 *
 * defines main().  The program prints `PASS|FAIL|SKIP suite.test` lines and exits 1 when any
 * assertion failed (from CU_get_number_of_failures(): CU_get_error() stays 0 on failures).
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CUnit/CUnit.h>

#include "base/cleanup.h"

#define TEST_COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct test_case {
	const char *name;
	void (*run)(void);
};

#define TEST(fn) { #fn, fn }
#define TEST_SUITE(suite, ...)                                                                     \
	static const struct test_case test_cases_[] = { __VA_ARGS__ };                             \
	int main(int argc, char **argv)                                                            \
	{                                                                                          \
		return test_main(#suite, test_cases_, TEST_COUNT(test_cases_), argc, argv);        \
	}                                                                                          \
	struct test_semicolon

/** @param argv Optional names of the tests to run; all otherwise. */
int test_main(const char *suite, const struct test_case *cases, size_t n, int argc, char **argv);

/** Mark the running test as skipped, with a reason that says what was missing; then return. */
void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void test_assert_eq(bool fatal, long long row, long long got, long long want, const char *text,
		    const char *file, unsigned line);
void test_assert_str(long long row, const char *got, const char *want, const char *text,
		     const char *file, unsigned line);

/** Integer equality that prints both values. */
#define TEST_EQ(got, want)                                                                         \
	test_assert_eq(false, -1, (long long)(got), (long long)(want), #got " == " #want,          \
		       __FILE__, __LINE__)
#define TEST_EQ_FATAL(got, want)                                                                   \
	test_assert_eq(true, -1, (long long)(got), (long long)(want), #got " == " #want, __FILE__, \
		       __LINE__)
/** The same inside a table walk; prints the row. */
#define TEST_ROW_EQ(row, got, want)                                                                \
	test_assert_eq(false, (long long)(row), (long long)(got), (long long)(want),               \
		       #got " == " #want, __FILE__, __LINE__)
#define TEST_STR(got, want) test_assert_str(-1, got, want, #got, __FILE__, __LINE__)
#define TEST_ROW_STR(row, got, want)                                                               \
	test_assert_str((long long)(row), got, want, #got, __FILE__, __LINE__)

/**
 * Copy of @p size bytes that ends right at an unmapped page: one byte too far is a fault.
 * Released when the program ends.
 */
void *test_tail_dup(const void *data, size_t size);
void *test_tail_alloc(size_t size);

/** Deterministic pseudo random numbers; TEST_SEED in the environment changes the start. */
uint64_t test_random(void);

/**
 * A time that usual machines need, on this one: as many times longer as TEST_PATIENCE is than the
 * 20 seconds that tests in Python have where nobody sets it.  Never shorter.
 */
int test_slow_ms(int ms);

/** CPU time of this thread, for bounds: what other programs take is no part of it. */
uint64_t test_cpu_ns(void);

#endif /* TESTLIB_H */
