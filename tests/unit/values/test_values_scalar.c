/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>

#include "testlib.h"
#include "values/scalar.h"

static struct out text;

static const char *printed(enum values_encoding e, uint32_t size, enum values_format f, const void *bytes)
{
	const struct values_scalar s = { e, size, NULL };

	out_reset(&text);
	values_scalar_print(&s, f, bytes, &text);
	return text.data ? text.data : "";
}

/* What gdb 13 printed of the same bytes, but for raw ones. */
static void prints_as_gdb(void)
{
	static const struct {
		enum values_encoding encoding;
		uint32_t size;
		uint64_t low, high;
		const char *want;
	} rows[] = {
		{ VALUES_BOOL, 1, 0, 0, "false" },
		{ VALUES_BOOL, 1, 1, 0, "true" },
		{ VALUES_BOOL, 1, 7, 0, "7" },
		{ VALUES_SIGNED, 1, 0xff, 0, "-1" },
		{ VALUES_SIGNED, 2, 0x8000, 0, "-32768" },
		{ VALUES_SIGNED, 4, 0x80000000, 0, "-2147483648" },
		{ VALUES_SIGNED, 4, 0x7fffffff, 0, "2147483647" },
		{ VALUES_SIGNED, 8, UINT64_C(1) << 63, 0, "-9223372036854775808" },
		{ VALUES_SIGNED, 16, 0, UINT64_C(1) << 63, "-170141183460469231731687303715884105728" },
		{ VALUES_SIGNED, 16, (uint64_t)-5, UINT64_MAX, "-5" },
		{ VALUES_SIGNED, 3, 0x800000, 0, "-8388608" },
		{ VALUES_UNSIGNED, 1, 0xff, 0, "255" },
		{ VALUES_UNSIGNED, 4, 0xffffffff, 0, "4294967295" },
		{ VALUES_UNSIGNED, 8, UINT64_MAX, 0, "18446744073709551615" },
		{ VALUES_UNSIGNED, 16, UINT64_MAX, UINT64_MAX, "340282366920938463463374607431768211455" },
		{ VALUES_UNSIGNED, 16, 0, 0, "0" },
		{ VALUES_SIGNED_CHAR, 1, 'a', 0, "97 'a'" },
		{ VALUES_SIGNED_CHAR, 1, 0xff, 0, "-1 '\\377'" },
		{ VALUES_SIGNED_CHAR, 1, 0, 0, "0 '\\000'" },
		{ VALUES_SIGNED_CHAR, 1, 7, 0, "7 '\\a'" },
		{ VALUES_SIGNED_CHAR, 1, 13, 0, "13 '\\r'" },
		{ VALUES_SIGNED_CHAR, 1, 14, 0, "14 '\\016'" },
		{ VALUES_SIGNED_CHAR, 1, 27, 0, "27 '\\033'" },
		{ VALUES_SIGNED_CHAR, 1, '\'', 0, "39 '\\''" },
		{ VALUES_SIGNED_CHAR, 1, '"', 0, "34 '\"'" },
		{ VALUES_SIGNED_CHAR, 1, '\\', 0, "92 '\\\\'" },
		{ VALUES_SIGNED_CHAR, 1, 127, 0, "127 '\\177'" },
		{ VALUES_UNSIGNED_CHAR, 1, 200, 0, "200 '\\310'" },
		{ VALUES_UTF, 1, 'a', 0, "97 u8'a'" },
		{ VALUES_UTF, 1, 0xc3, 0, "195 u8'\\303'" },
		{ VALUES_UTF, 2, 0xe9, 0, "233 u'\303\251'" },
		{ VALUES_UTF, 2, 0xd800, 0, "55296 u'\\xd800'" },
		{ VALUES_UTF, 2, 0x2028, 0, "8232 u'\\x2028'" },
		{ VALUES_UTF, 2, 0x20ac, 0, "8364 u'\342\202\254'" },
		{ VALUES_UTF, 2, 0x85, 0, "133 u'\\205'" },
		{ VALUES_UTF, 2, 0xffff, 0, "65535 u'\\xffff'" },
		{ VALUES_UTF, 4, 0x1f600, 0, "128512 U'\360\237\230\200'" },
		{ VALUES_UTF, 4, 0x110000, 0, "1114112 U'\\x110000'" },
		{ VALUES_UTF, 4, 0xffffffff, 0, "4294967295 U'\\xffffffff'" },
		{ VALUES_FLOAT, 4, 0x3dcccccd, 0, "0.100000001" },
		{ VALUES_FLOAT, 4, 0x501502f9, 0, "1e+10" },
		{ VALUES_FLOAT, 4, 0x80000000, 0, "-0" },
		{ VALUES_FLOAT, 4, 1, 0, "1.40129846e-45" },
		{ VALUES_FLOAT, 4, 0x7fc00000, 0, "nan(0x400000)" },
		{ VALUES_FLOAT, 4, 0xffc00001, 0, "-nan(0x400001)" },
		{ VALUES_FLOAT, 4, 0x7f800001, 0, "nan(0x1)" },
		{ VALUES_FLOAT, 4, 0x7f800000, 0, "inf" },
		{ VALUES_FLOAT, 4, 0xff800000, 0, "-inf" },
		{ VALUES_FLOAT, 8, 0x3fb999999999999a, 0, "0.10000000000000001" },
		{ VALUES_FLOAT, 8, 0x7ff8000000000000, 0, "nan(0x8000000000000)" },
		{ VALUES_FLOAT, 8, 0xfff0000000000001, 0, "-nan(0x000000001)" },
		{ VALUES_FLOAT, 8, 1, 0, "4.9406564584124654e-324" },
		{ VALUES_FLOAT, 2, 0x3c00, 0, "1" },
		{ VALUES_FLOAT, 2, 0x2e66, 0, "0.099976" },
		{ VALUES_FLOAT, 2, 0x7bff, 0, "65504" },
		{ VALUES_FLOAT, 2, 1, 0, "5.9605e-08" },
		{ VALUES_FLOAT, 2, 0x7f7c, 0, "nan(0x37c)" },
		{ VALUES_FLOAT, 2, 0xfc00, 0, "-inf" },
		{ VALUES_FLOAT, 16, 1, 0, "0x1" },
		{ VALUES_BFLOAT, 2, 0x3f80, 0, "1" },
		{ VALUES_BFLOAT, 2, 0x4049, 0, "3.1406" },
		{ VALUES_BFLOAT, 2, 0x7f7f, 0, "3.3895e+38" },
		{ VALUES_BFLOAT, 2, 0xffc0, 0, "-nan(0x40)" },
		{ VALUES_BFLOAT, 4, 0x3f800000, 0, "0x3f800000" },
		{ VALUES_POINTER, 8, 0x7fe24b201000, 0, "0x7fe24b201000" },
		{ VALUES_POINTER, 4, 0, 0, "0x0" },
		{ VALUES_RAW, 2, 0x1ff, 0, "0x1ff" },
		{ VALUES_RAW, 16, 0x10, 0xab, "0xab0000000000000010" },
		{ VALUES_RAW, 0, 0, 0, "" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const uint64_t bytes[2] = { rows[i].low, rows[i].high };

		TEST_ROW_STR(i, printed(rows[i].encoding, rows[i].size, VALUES_NATURAL,
					test_tail_dup(bytes, rows[i].size)), rows[i].want);
	}
}

/* gdb's answers, but for the half in two bytes, which gdb does not look for. */
static void obeys_formats(void)
{
	static const struct {
		enum values_encoding encoding;
		uint32_t size;
		uint64_t bytes;
		enum values_format format;
		const char *want;
	} rows[] = {
		{ VALUES_SIGNED, 4, 0xffffffff, VALUES_HEX, "0xffffffff" },
		{ VALUES_FLOAT, 4, 0x3f800000, VALUES_HEX, "0x3f800000" },
		{ VALUES_FLOAT, 4, 0x3f800000, VALUES_DECIMAL, "1065353216" },
		{ VALUES_UNSIGNED_CHAR, 1, 0xff, VALUES_DECIMAL, "-1" },
		{ VALUES_UNSIGNED, 4, 0x7fc00000, VALUES_FLOATING, "nan(0x400000)" },
		{ VALUES_SIGNED, 4, 3, VALUES_FLOATING, "4.20389539e-45" },
		{ VALUES_SIGNED_CHAR, 1, 97, VALUES_FLOATING, "97 'a'" },
		{ VALUES_UNSIGNED, 2, 0x3c00, VALUES_FLOATING, "1" },
		{ VALUES_SIGNED, 4, 353, VALUES_CHARACTER, "97 'a'" },
		{ VALUES_UNSIGNED, 4, 0x1ff, VALUES_CHARACTER, "255 '\\377'" },
		{ VALUES_SIGNED, 4, 0x1ff, VALUES_CHARACTER, "-1 '\\377'" },
		{ VALUES_FLOAT, 4, 0x3f800000, VALUES_CHARACTER, "1 '\\001'" },
		{ VALUES_FLOAT, 4, 0x7f800000, VALUES_CHARACTER, "0 '\\000'" },
		{ VALUES_POINTER, 8, 0x1234, VALUES_CHARACTER, "52 '4'" },
		{ VALUES_POINTER, 8, 0x1234, VALUES_HEX, "0x1234" },
		{ VALUES_BOOL, 1, 1, VALUES_DECIMAL, "1" },
		{ VALUES_UNSIGNED, 2, 0x3c00, VALUES_HALF, "1" },
		{ VALUES_UNSIGNED, 4, 0xc0003555, VALUES_HALF, "{0.33325, -2}" },
		{ VALUES_FLOAT, 4, 0x7c000001, VALUES_HALF, "{5.9605e-08, inf}" },
		{ VALUES_UNSIGNED, 2, 0x3f80, VALUES_BFLOAT16, "1" },
		{ VALUES_RAW, 4, 0x7fc0c049, VALUES_BFLOAT16, "{-3.1406, nan(0x40)}" },
		{ VALUES_UNSIGNED, 8, 0x4040400040003f80, VALUES_BFLOAT16, "{1, 2, 2, 3}" },
		{ VALUES_UNSIGNED, 1, 0x41, VALUES_HALF, "65" },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_STR(i, printed(rows[i].encoding, rows[i].size, rows[i].format, &rows[i].bytes),
			     rows[i].want);
}

static void names_the_space_of_a_pointer(void)
{
	const struct values_scalar shared = { VALUES_POINTER, 8, "shared" };
	const uint64_t address = 0x400;

	out_reset(&text);
	values_scalar_print(&shared, VALUES_NATURAL, &address, &text);
	TEST_STR(text.data, "@shared 0x400");
}

/* What is printed is read back as the same number, for all of the small types. */
static void is_round_trip_safe(void)
{
	for (uint32_t bits = 0; bits < 0x10000; bits++) {
		static const enum values_encoding encodings[] = { VALUES_FLOAT, VALUES_BFLOAT };

		for (size_t i = 0; i < TEST_COUNT(encodings); i++) {
			const struct values_scalar s = { encodings[i], 2, NULL };
			double v, back, unit;

			values_scalar_float(&s, &bits, &v);
			if (!isfinite(v) || v == 0)
				continue;
			back = strtod(printed(encodings[i], 2, VALUES_NATURAL, &bits), NULL);
			/* Half the distance to the next number of that precision. */
			unit = i ? ldexp(1, ilogb(v) - 8) : fmax(ldexp(1, ilogb(v) - 11), 0x1p-25);
			if (!(fabs(back - v) < unit))
				TEST_ROW_EQ(bits, 0, 1);
		}
	}
	for (int i = 0; i < 100000; i++) {
		uint64_t bits = test_random();
		double d;
		float f;

		memcpy(&d, &bits, sizeof(d));
		memcpy(&f, &bits, sizeof(f));
		if (isfinite(d) && strtod(printed(VALUES_FLOAT, 8, VALUES_NATURAL, &bits), NULL) != d)
			TEST_ROW_EQ(i, 8, 0);
		if (isfinite(f) && strtof(printed(VALUES_FLOAT, 4, VALUES_NATURAL, &bits), NULL) != f)
			TEST_ROW_EQ(i, 4, 0);
	}
}

static void bounds_the_text(void)
{
	uint8_t bytes[200];
	static const enum values_format formats[] = { VALUES_NATURAL, VALUES_HEX, VALUES_DECIMAL,
						      VALUES_CHARACTER, VALUES_FLOATING, VALUES_HALF,
						      VALUES_BFLOAT16 };

	memset(bytes, 0xab, sizeof(bytes));
	TEST_STR(printed(VALUES_RAW, 17, VALUES_NATURAL, bytes),
		 "abababababababab abababababababab ab");
	for (int e = VALUES_RAW; e <= VALUES_POINTER; e++)
		for (uint32_t size = 0; size <= sizeof(bytes); size++)
			for (size_t f = 0; f < TEST_COUNT(formats); f++)
				if (strlen(printed(e, size, formats[f], bytes)) > VALUES_SCALAR_TEXT_MAX)
					TEST_ROW_EQ(size, e, -1);
}

static void gives_numbers(void)
{
	static const struct {
		struct values_scalar s;
		uint64_t bytes, want;
	} rows[] = {
		{ { VALUES_SIGNED, 2, NULL }, 0xffff, UINT64_MAX },
		{ { VALUES_SIGNED_CHAR, 1, NULL }, 0x80, (uint64_t)-128 },
		{ { VALUES_UNSIGNED_CHAR, 1, NULL }, 0x80, 0x80 },
		{ { VALUES_POINTER, 8, NULL }, UINT64_MAX, UINT64_MAX },
		{ { VALUES_FLOAT, 4, NULL }, 0x3f800000, 0 },
		{ { VALUES_UNSIGNED, 0, NULL }, 1, 0 },
		{ { VALUES_UNSIGNED, 16, NULL }, 1, 0 },
	};
	const struct values_scalar single = { VALUES_FLOAT, 4, NULL }, extended = { VALUES_FLOAT, 16, NULL };
	const uint32_t one = 0x3f800000;
	double v;

	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_EQ(i, values_scalar_integer(&rows[i].s, &rows[i].bytes), rows[i].want);
	TEST_EQ(values_scalar_float(&single, &one, &v), true);
	TEST_EQ(v == 1.0, true);
	TEST_EQ(values_scalar_float(&extended, &one, &v), false);
	TEST_EQ(values_scalar_float(&rows[0].s, &one, &v), false);
}

static void knows_names(void)
{
	static const struct {
		const char *name;
		enum values_encoding encoding;
		uint32_t size;
	} rows[] = {
		{ "int", VALUES_SIGNED, 4 },
		{ "unsigned", VALUES_UNSIGNED, 4 },
		{ "unsigned int", VALUES_UNSIGNED, 4 },
		{ "int unsigned", VALUES_UNSIGNED, 4 },
		{ "long", VALUES_SIGNED, 8 },
		{ "long long", VALUES_SIGNED, 8 },
		{ "long int long unsigned", VALUES_UNSIGNED, 8 },
		{ "short", VALUES_SIGNED, 2 },
		{ "unsigned short", VALUES_UNSIGNED, 2 },
		{ "short unsigned int", VALUES_UNSIGNED, 2 },
		{ "char", VALUES_SIGNED_CHAR, 1 },
		{ "signed char", VALUES_SIGNED_CHAR, 1 },
		{ "unsigned char", VALUES_UNSIGNED_CHAR, 1 },
		{ "__int128", VALUES_SIGNED, 16 },
		{ "unsigned __int128", VALUES_UNSIGNED, 16 },
		{ "bool", VALUES_BOOL, 1 },
		{ "const bool", VALUES_BOOL, 1 },
		{ "float", VALUES_FLOAT, 4 },
		{ "  double  ", VALUES_FLOAT, 8 },
		{ "long double", VALUES_FLOAT, 8 },
		{ "__half", VALUES_FLOAT, 2 },
		{ "half", VALUES_FLOAT, 2 },
		{ "_Float16", VALUES_FLOAT, 2 },
		{ "__nv_bfloat16", VALUES_BFLOAT, 2 },
		{ "uint", VALUES_UNSIGNED, 4 },
		{ "size_t const", VALUES_UNSIGNED, 8 },
		{ "char16_t", VALUES_UTF, 2 },
		{ "int*", VALUES_POINTER, 8 },
		{ "int const*", VALUES_POINTER, 8 },
		{ "float *restrict", VALUES_POINTER, 8 },
		{ "std::pair<int, int> const&", VALUES_POINTER, 8 },
		{ "void (*)(int)", VALUES_POINTER, 8 },
		{ "char const* const*", VALUES_POINTER, 8 },
		{ "int* const __restrict__", VALUES_POINTER, 8 },
	};
	static const char *const unknown[] = {
		"", " ", "void", "const", "*", "long long long", "signed unsigned", "int int", "long short",
		"char int", "float int", "int float", "unsigned float", "unsigned bool", "long float",
		"short double", "unsigned double", "long long double", "dim3", "std::pair<int, int>", "ints",
		"signed unsigned long long int int int int int", "intconst", "float4", "thing_const",
	};
	struct values_scalar s;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		s = (struct values_scalar){ 0 };
		TEST_ROW_EQ(i, values_scalar_parse(rows[i].name, &s), 0);
		TEST_ROW_EQ(i, s.encoding, rows[i].encoding);
		TEST_ROW_EQ(i, s.size, rows[i].size);
	}
	for (size_t i = 0; i < TEST_COUNT(unknown); i++)
		TEST_ROW_EQ(i, values_scalar_parse(unknown[i], &s), -ENOENT);
}

TEST_SUITE(values_scalar, TEST(prints_as_gdb), TEST(obeys_formats), TEST(names_the_space_of_a_pointer),
	   TEST(is_round_trip_safe), TEST(bounds_the_text), TEST(gives_numbers), TEST(knows_names));
