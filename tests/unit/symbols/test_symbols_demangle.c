/* SPDX-License-Identifier: MIT */
#include "symbols/demangle.h"
#include "testlib.h"

static void demangles(void)
{
	static const struct {
		const char *raw, *want;
		bool mangled;
	} rows[] = {
		{ "_Z3foov", "foo()", true },
		{ "_ZN3app5shapeIiEEvNS_3vecIT_EEi",
		  "void app::shape<int>(app::vec<int>, int)", true },
		{ "scale", "scale", false },
		{ "", "", false },
		{ "_Z", "_Z", false },
		{ "_Znonsense", "_Znonsense", false },
		{ "_RNvC1a1b", "_RNvC1a1b", false },
		/* Copies that nvcc makes of a function for one kernel. */
		{ "$_Z7plantedPi$_Z6calleePii", "callee(int*, int)", true },
		{ "$planted$_Z6calleePii", "callee(int*, int)", true },
		{ "$_Z7plantedPi$_Z6calleePii.clone.0", "callee(int*, int) [clone .clone.0]", true },
		{ "$_Z7plantedPi$_Z6calleePii$_Z5innerv", "inner()", true },
		{ "$_Z7plantedPi$_Z6calleePii$local", "callee(int*, int) [clone $local]", true },
		/* Clones: those that the demangler knows, and others. */
		{ "_Z3foov.clone.0", "foo() [clone .clone.0]", true },
		{ "_Z3foov.isra.0.constprop.2", "foo() [clone .isra.0] [clone .constprop.2]", true },
		{ "_Z3foov.static.0123abcd", "foo() [clone .static.0123abcd]", true },
		{ "_Z3foov$local", "foo() [clone $local]", true },
		{ "_Z5a$b.cv.intern.01ab", "a$b.c() [clone .intern.01ab]", true },
		{ "_Znonsense.clone.0$a", "_Znonsense.clone.0$a", false },
		{ "foo.clone.0", "foo.clone.0", false },
		{ "$planted$callee", "$planted$callee", false },
		{ "$planted$", "$planted$", false },
		{ "$", "$", false },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		char buf[64];

		TEST_ROW_EQ(i, symbols_demangle(rows[i].raw, buf, sizeof(buf)), rows[i].mangled);
		TEST_ROW_STR(i, buf, rows[i].want);
	}
}

static void fits_any_buffer(void)
{
	for (size_t size = 1; size < 80; size++) {
		char *buf = test_tail_alloc(size);
		bool mangled = symbols_demangle("_ZN3app5shapeIiEEvNS_3vecIT_EEi", buf, size);

		TEST_ROW_EQ(size, mangled, true);
		TEST_ROW_EQ(size, strlen(buf), size <= 40 ? size - 1 : 40);
		if (size > 4 && size <= 40)
			TEST_ROW_STR(size, buf + size - 4, "...");
	}
}

/* A few hundred bytes that stand for 2^36 ones, and nesting that would use up the stack. */
static void bounds_time_and_stack(void)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char raw[SYMBOLS_MANGLED_MAX + 16], buf[1024];
	uint64_t start_ns = test_cpu_ns();
	int n = snprintf(raw, sizeof(raw), "_Z1fSt4pairIiiE");

	/* Each argument is a pair of the one before, which has a number: S0_ to SZ_. */
	for (size_t i = 0; digits[i]; i++)
		n += snprintf(raw + n, sizeof(raw) - (size_t)n, "S_IS%c_S%c_E", digits[i], digits[i]);
	TEST_EQ(symbols_demangle(raw, buf, sizeof(buf)), true);
	TEST_EQ(strlen(buf), sizeof(buf) - 1);
	TEST_STR(buf + sizeof(buf) - 4, "...");
	CU_ASSERT_TRUE(!strncmp(buf, "f(std::pair<int, int>, std::pair<std::pair<int, int>, ", 54));
	memset(raw, 'P', SYMBOLS_MANGLED_MAX);
	memcpy(raw, "_Z1f", 4);
	raw[SYMBOLS_MANGLED_MAX - 1] = 'i';
	raw[SYMBOLS_MANGLED_MAX] = '\0';
	(void)symbols_demangle(raw, buf, sizeof(buf));
	raw[SYMBOLS_MANGLED_MAX] = 'i';
	raw[SYMBOLS_MANGLED_MAX + 1] = '\0';
	TEST_EQ(symbols_demangle(raw, buf, sizeof(buf)), false);
	TEST_EQ(strlen(buf), sizeof(buf) - 1);
	CU_ASSERT_TRUE(test_cpu_ns() - start_ns < UINT64_C(5000000000));
}

TEST_SUITE(symbols_demangle, TEST(demangles), TEST(fits_any_buffer), TEST(bounds_time_and_stack));
