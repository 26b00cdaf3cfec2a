/* SPDX-License-Identifier: MIT */
#include "testlib.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <CUnit/TestRun.h>

static struct {
	const char *suite;
	char skip_reason[256];
	bool skipped;
} run;

void test_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(run.skip_reason, sizeof(run.skip_reason), fmt, ap);
	va_end(ap);
	run.skipped = true;
}

static void report(bool ok, bool fatal, long long row, const char *detail, const char *file,
		   unsigned line)
{
	char text[512];

	if (ok) {
		CU_assertImplementation(CU_TRUE, line, "ok", file, "", fatal);
		return;
	}
	if (row >= 0)
		snprintf(text, sizeof(text), "row %lld: %s", row, detail);
	else
		snprintf(text, sizeof(text), "%s", detail);
	CU_assertImplementation(CU_FALSE, line, text, file, "", fatal);
}

void test_assert_eq(bool fatal, long long row, long long got, long long want, const char *text,
		    const char *file, unsigned line)
{
	char detail[384];

	snprintf(detail, sizeof(detail), "%s: got %lld (0x%llx), want %lld (0x%llx)", text, got,
		 (unsigned long long)got, want, (unsigned long long)want);
	report(got == want, fatal, row, detail, file, line);
}

void test_assert_str(long long row, const char *got, const char *want, const char *text,
		     const char *file, unsigned line)
{
	char detail[384];
	bool ok = got && want ? !strcmp(got, want) : got == want;

	snprintf(detail, sizeof(detail), "%s: got \"%s\", want \"%s\"", text, got ? got : "(null)",
		 want ? want : "(null)");
	report(ok, false, row, detail, file, line);
}

void *test_tail_alloc(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (size + page - 1) / page * page;
	char *p = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + body, page, PROT_NONE) < 0)
		abort();
	return p + body - size;
}

void *test_tail_dup(const void *data, size_t size)
{
	void *p = test_tail_alloc(size);

	if (size)
		memcpy(p, data, size);
	return p;
}

uint64_t test_random(void)
{
	static uint64_t state;

	if (!state) {
		const char *seed = getenv("TEST_SEED");

		state = seed ? strtoull(seed, NULL, 0) | 1 : UINT64_C(0x9e3779b97f4a7c15);
	}
	/* xorshift64* */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717);
}

int test_slow_ms(int ms)
{
	static const double usual = 20;
	const char *patience = getenv("TEST_PATIENCE");
	double factor = patience ? strtod(patience, NULL) / usual : 1;

	return factor > 1 ? (int)(ms * factor) : ms;
}

uint64_t test_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static void test_done(const CU_pTest test, const CU_pSuite suite, const CU_pFailureRecord failure)
{
	if (!failure) {
		if (run.skipped)
			printf("SKIP %s.%s: %s\n", run.suite, test->pName, run.skip_reason);
		else
			printf("PASS %s.%s\n", run.suite, test->pName);
	} else {
		printf("FAIL %s.%s\n", run.suite, test->pName);
		for (CU_pFailureRecord f = failure; f; f = f->pNext)
			printf("  %s:%u: %s\n", f->strFileName, f->uiLineNumber, f->strCondition);
	}
	run.skipped = false;
	fflush(stdout);
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return argc < 2;
}

int test_main(const char *suite, const struct test_case *cases, size_t n, int argc, char **argv)
{
	CU_pSuite s;
	int failures;

	run.suite = suite;
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	s = CU_add_suite(suite, NULL, NULL);
	if (!s)
		return 1;
	for (size_t i = 0; i < n; i++)
		if (wanted(cases[i].name, argc, argv) && !CU_add_test(s, cases[i].name, cases[i].run))
			return 1;
	CU_set_test_complete_handler(test_done);
	CU_set_error_action(CUEA_IGNORE);
	CU_run_all_tests();
	failures = (int)CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}
