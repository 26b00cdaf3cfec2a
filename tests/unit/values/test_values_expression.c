/* SPDX-License-Identifier: MIT */
#include "testlib.h"
#include "values/expression/expression.h"
#include "values/expression/parts.h"

/* A lane with a few variables, over 256 bytes of memory at 0x1000 of each space. */
static uint8_t memory[VALUES_SPACE_COUNT][256];
static struct values_types *types;
static uint32_t lane;
static unsigned reads;

static int read_memory(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	reads++;
	if (address < 0x1000 || address > 0x1100 || size > 0x1100 - address)
		return -EFAULT;
	memcpy(ret, memory[space] + (address - 0x1000), size);
	/* Each lane has private memory of its own. */
	if (space == VALUES_SPACE_PRIVATE)
		*(uint8_t *)ret = (uint8_t)(*(uint8_t *)ret + lane - 5);
	return 0;
}

static int in_register(struct values_result *ret, const char *type, const void *bytes, size_t size)
{
	*ret = (struct values_result){ .type = values_type_named(types, type), .bytes = malloc(size), .size = size };
	memcpy(ret->bytes, bytes, size);
	return 0;
}

static int in_memory(struct values_result *ret, struct values_type *type, enum values_space space, uint64_t address)
{
	*ret = (struct values_result){ .type = type, .has_address = true, .space = space, .address = address };
	return 0;
}

static int find_variable(void *context, const char *name, struct values_result *ret)
{
	const uint32_t block[3] = { 64, 2, 1 }, idx = 10 + lane;
	struct values_type *integer = values_type_named(types, "int");
	const float half = 0.5f;
	const uint64_t at = 0x1010, start = 0x1000;

	if (!strcmp(name, "idx"))
		return in_register(ret, "int", &idx, sizeof(idx));
	if (!strcmp(name, "half"))
		return in_register(ret, "float", &half, sizeof(half));
	if (!strcmp(name, "blockDim"))
		return in_register(ret, "dim3", block, sizeof(block));
	if (!strcmp(name, "tile") || !strcmp(name, "k.cu::ns::tile"))
		return in_memory(ret, values_type_array(types, integer, 4), VALUES_SPACE_SHARED, 0x1000);
	if (!strcmp(name, "point"))
		return in_memory(ret, values_type_named(types, "float4"), VALUES_SPACE_GLOBAL, 0x1040);
	if (!strcmp(name, "text"))
		return in_register(ret, "char*", &at, sizeof(at));
	if (!strcmp(name, "own")) {
		(void)in_register(ret, "char*", &start, sizeof(start));
		ret->type = values_type_pointer(types, integer, VALUES_SPACE_PRIVATE);
		return 0;
	}
	if (!strcmp(name, "far"))
		return in_memory(ret, integer, VALUES_SPACE_GLOBAL, 0x9000);
	if (!strcmp(name, "gone")) {
		(void)in_register(ret, "int", &idx, sizeof(idx));
		ret->known = calloc(1, sizeof(idx));
		ret->lack = VALUES_OPTIMISED_OUT;
		return 0;
	}
	return !strcmp(name, "denied") ? -EACCES : -ENOENT;
}

static int read_register(void *context, const char *name, int64_t which, struct values_result *ret)
{
	const uint32_t v = 100 + (which < 0 ? lane : (uint32_t)which);

	return strcmp(name, "v0") || which > 63 ? -ENOENT : in_register(ret, "unsigned int", &v, sizeof(v));
}

static int select_lane(void *context, uint64_t which, uint32_t *ret_before)
{
	*ret_before = lane;
	if (which > 63)
		return -ENOENT;
	lane = (uint32_t)which;
	return 0;
}

static void set_up(void)
{
	const int32_t tile[4] = { 7, -8, 9, 10 };
	const float point[4] = { 1, 2.5f, -3, 0 };

	memset(memory, 0, sizeof(memory));
	memcpy(memory[VALUES_SPACE_SHARED], tile, sizeof(tile));
	memcpy(memory[VALUES_SPACE_GLOBAL] + 0x40, point, sizeof(point));
	memcpy(memory[VALUES_SPACE_GENERIC] + 0x10, "abc", 4);
	memory[VALUES_SPACE_PRIVATE][0] = 42;
	lane = 5;
}

static char answer[8192];

/* @return the value, or "COLUMN: error". */
static const char *evaluate(const char *text)
{
	static const struct values_names names = { NULL, find_variable, read_register, NULL, select_lane };
	struct values_expression *e = NULL;
	struct values_error error;
	struct values_result v = { 0 };
	struct values_call call;
	struct values_node node;
	auto_out struct out o = { 0 };
	int r = values_expression_parse(text, &e, &error);

	values_call_init(&call, read_memory, NULL);
	if (r == 0)
		r = values_expression_evaluate(e, types, &names, &call, &v, &error);
	if (r == 0) {
		TEST_EQ_FATAL(values_result_node(values_expression_format(e), &v, &call, &node), 0);
		values_node_print(&node, &o);
		snprintf(answer, sizeof(answer), "%s", o.data);
		values_node_deinit(&node);
	} else {
		TEST_EQ(r, -EINVAL);
		snprintf(answer, sizeof(answer), "%u: %s", error.column, error.text);
	}
	values_result_deinit(&v);
	values_expression_destroy(e);
	return answer;
}

static void check(const char *const (*rows)[2], size_t n)
{
	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	set_up();
	for (size_t i = 0; i < n; i++)
		TEST_ROW_STR(i, evaluate(rows[i][0]), rows[i][1]);
	TEST_EQ(lane, 5);
	values_types_destroy(types);
}

/* Results of a C compiler, where C defines them. */
static void calculates_as_c(void)
{
	static const char *const rows[][2] = {
		{ "1 + 2 * 3", "7" }, { "(1 + 2) * 3", "9" }, { "10 - 4 - 3", "3" }, { "-7 / 2", "-3" },
		{ "-7 % 3", "-1" }, { "1 << 4 >> 2", "4" }, { "-8 >> 1", "-4" }, { "0x80000000 >> 31", "1" },
		{ "2147483647 + 1", "-2147483648" }, { "2147483648", "2147483648" }, { "-1 < 0u", "false" },
		{ "-1L < 0u", "true" }, { "-1 == 0xffffffffu", "true" }, { "~0u", "4294967295" }, { "~0", "-1" },
		{ "!3", "false" }, { "!0.0", "true" }, { "- - 3", "3" }, { "5 & 6 ^ 1 | 8", "13" },
		{ "1 ? 2 : 3", "2" }, { "0 ? 1 : 0 ? 2 : 3", "3" }, { "1 || 1 / 0", "true" },
		{ "0 && 1 / 0", "false" }, { "7 / 2.0", "3.5" }, { "1.0f / 3", "0.333333343" },
		{ "1.0 / 3", "0.33333333333333331" }, { "'a' + 1", "98" }, { "'\\n'", "10 '\\n'" },
		{ "'\\x41'", "65 'A'" }, { "0b101", "5" }, { "010", "8" }, { "1e3", "1000" }, { ".5 + 0x10", "16.5" },
		{ "(char)353", "97 'a'" }, { "(unsigned char)-1", "255 '\\377'" }, { "(int)-2.7", "-2" },
		{ "(float)1 / 3", "0.333333343" }, { "(bool)256", "true" }, { "(long long)1 << 40", "1099511627776" },
		{ "sizeof(int)", "4" }, { "sizeof(double *)", "8" }, { "sizeof blockDim", "12" },
		{ "sizeof tile", "16" }, { "18446744073709551615", "18446744073709551615" },
		{ "-9223372036854775807 - 1", "-9223372036854775808" },
		{ "(-9223372036854775807 - 1) / -1", "-9223372036854775808" },
		{ "(-9223372036854775807 - 1) % -1", "0" }, { "(-2147483647 - 1) / -1", "-2147483648" },
	};

	check(rows, TEST_COUNT(rows));
}

/* Whose pointers a result has, which tell where their texts are read. */
static void says_whose_pointers_they_are(void)
{
	static const struct values_names names = { NULL, find_variable, read_register, NULL, select_lane };
	static const struct {
		const char *text;
		bool has_lane;
		uint32_t lane;
	} rows[] = {
		{ "idx", false, 0 },
		{ "$lane(7, idx)", true, 7 },
		{ "$lane(1, $lane(2, idx))", true, 2 },
		{ "$lane(7, idx) + 1", false, 0 },
		{ "$lane(3, blockDim).x", true, 3 },
		{ "$lane(3, own) + 1", true, 3 },
		{ "*$lane(3, own)", true, 3 },
	};

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	set_up();
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct values_expression *e;
		struct values_error error;
		struct values_result v;
		struct values_call call;

		TEST_EQ_FATAL(values_expression_parse(rows[i].text, &e, &error), 0);
		values_call_init(&call, read_memory, NULL);
		TEST_EQ_FATAL(values_expression_evaluate(e, types, &names, &call, &v, &error), 0);
		TEST_ROW_EQ(i, v.has_lane, rows[i].has_lane);
		TEST_ROW_EQ(i, v.lane, rows[i].lane);
		values_result_deinit(&v);
		values_expression_destroy(e);
	}
	values_types_destroy(types);
}

/* Each lane has memory of its own behind the same address. */
static void follows_pointers_of_another_lane_there(void)
{
	static const char *const rows[][2] = {
		{ "*own", "42" }, { "$lane(7, *own)", "44" }, { "*$lane(7, own)", "44" }, { "$lane(7, own)[0]", "44" },
		{ "*($lane(7, own) + 0)", "44" }, { "*(0 + $lane(7, own))", "44" }, { "*(unsigned int *)$lane(7, own)", "44" },
		{ "{int} $lane(7, own)", "44" }, { "*&*$lane(7, own)", "44" }, { "*$lane(7, own) + *own", "86" },
		{ "$lane(3, *$lane(7, own))", "44" }, { "*$lane(3, $lane(7, own))", "44" },
		{ "1 ? *$lane(7, own) : 0", "44" }, { "*$lane(7, own) @ 2", "{44, 0}" },
	};

	check(rows, TEST_COUNT(rows));
}

static void knows_a_lane(void)
{
	static const char *const rows[][2] = {
		{ "idx", "15" }, { "idx * half", "7.5" }, { "blockDim", "{x = 64, y = 2, z = 1}" },
		{ "blockDim.y", "2" }, { "tile", "{7, -8, 9, 10}" }, { "tile[1]", "-8" }, { "tile[idx - 13]", "9" },
		{ "*tile", "7" }, { "*(tile + 3)", "10" }, { "&tile[2]", "@shared 0x1008" },
		{ "&tile[2] - tile", "2" }, { "k.cu::ns::tile[0]", "7" }, { "point", "{x = 1, y = 2.5, z = -3, w = 0}" },
		{ "point.y", "2.5" }, { "(&point)->z", "-3" }, { "&point", "0x1040" }, { "text", "0x1010 \"abc\"" },
		{ "text[2]", "99 'c'" }, { "*text", "97 'a'" }, { "tile[1] @ 2", "{-8, 9}" },
		{ "point.x @ 3", "{1, 2.5, -3}" }, { "idx, x", "0xf" }, { "idx, /x", "0xf" }, { "/x tile", "{0x7, 0xfffffff8, 0x9, 0xa}" },
		{ "half, x", "0x3f000000" }, { "1056964608, f", "0.5" }, { "97, c", "97 'a'" }, { "255u, d", "255" },
		{ "(shared int *)0x1004", "@shared 0x1004" }, { "*(shared int *)0x1004", "-8" },
		{ "*(@local int *)0x1000", "42" }, { "{shared int} 0x1008", "9" }, { "*(int *)&tile[3]", "10" },
		{ "((float4 *)&point)->x", "1" }, { "$v0", "105" }, { "$v0[3]", "103" }, { "$v0 - $v0[0]", "5" },
		{ "$lane(7, idx)", "17" }, { "$lane(7, $v0) + idx", "122" }, { "$lane(1, $lane(2, idx)) + idx", "27" },
		{ "point.<1>", "2.5" }, { "(&point)->< 2 >", "-3" }, { "blockDim.<2> + 1", "2" },
		{ "gone", "<optimized out>" }, { "tile == &tile[0]", "true" }, { "text != 0", "true" },
	};

	check(rows, TEST_COUNT(rows));
}

static void says_what_is_wrong_and_where(void)
{
	static const char *const rows[][2] = {
		{ "", "1: the expression ends too early" }, { "1 +", "4: the expression ends too early" },
		{ "1 + nothing", "5: there is no nothing here" }, { "idx idx", "5: this does not belong here" },
		{ "1 / 0", "3: division by zero" }, { "1 % (idx - 15)", "3: division by zero" },
		{ "1.5 / 0", "5: division by zero" }, { "1 << 32", "3: a shift of 32 bits by 32" },
		{ "1 << -1", "3: a shift of 32 bits by -1" }, { "1L << 64", "4: a shift of 64 bits by 64" },
		{ "1.5 % 2", "5: this works on integers only" }, { "~1.5", "1: this works on integers only" },
		{ "idx = 3", "5: nothing can be assigned to" }, { "idx += 3", "6: nothing can be assigned to" },
		{ "f(1)", "2: functions cannot be called" }, { "(1", "3: ')' is missing" }, { "tile[1", "7: ']' is missing" },
		{ "1 ? 2", "6: ':' is missing" }, { "point.", "7: the name of a member is missing" },
		{ "point.q", "6: there is no member q" }, { "text.x", "5: this is a pointer: use ->" },
		{ "idx.x", "4: this has no members" }, { "*idx", "1: this is no pointer" },
		{ "&idx", "1: this lies in no memory" }, { "&1", "1: this lies in no memory" },
		{ "*(void *)0x1000", "1: a pointer to void leads to nothing that has a type" },
		{ "blockDim + 1", "1: this is no number" }, { "idx @ 2", "5: what is in front of @ lies in no memory" },
		{ "tile[0] @ 0", "9: the number behind @ is not from 1 to 16384" },
		{ "tile[0] @ 99999", "9: the number behind @ is not from 1 to 16384" },
		{ "far", "1: 4 bytes at 0x9000 of global memory cannot be read: Bad address" },
		{ "gone + 1", "1: its value is not known: optimised out" }, { "denied", "1: denied cannot be had: Permission denied" },
		{ "$", "2: the name of a register is missing" }, { "$v9", "1: there is no register v9 here" },
		{ "$lane(64, idx)", "1: there is no such lane" }, { "$lane(1)", "8: ',' is missing" },
		{ "(nonsense)idx", "1: there is no type nonsense here" }, { "(dim3)1", "1: a number cannot be cast to this type" },
		{ "08", "2: this does not belong to a number" }, { "0x", "1: this is no number" },
		{ "12ab", "3: this does not belong to a number" }, { "99999999999999999999", "1: the number is too large" },
		{ "'", "2: a character is missing" }, { "'ab'", "3: ' is missing" }, { "'\\q'", "3: there is no such escape" },
		{ "idx, q", "6: a format is x, d, f, c, h or b" }, { "text + text", "6: pointers cannot be combined so" },
		{ "text + 1.5", "6: a pointer and a number that is no integer" },
		{ "point.<>", "8: the number of a member is missing" }, { "point.<1", "9: '>' is missing" },
		{ "point.<4>", "6: there is no such member" }, { "idx.<0>", "4: this has no members" },
		{ "point-><0>", "6: this is no pointer" }, { "$lane", "1: there is no register lane here" },
	};

	check(rows, TEST_COUNT(rows));
}

/* @return the parts of what an expression means: "NAME EXPRESSION" of each, with blanks between. */
static const char *parts(const char *text)
{
	static const struct values_names names = { NULL, find_variable, read_register, NULL, select_lane };
	struct values_expression *e;
	struct values_error error;
	struct values_result v;
	struct values_call call;
	auto_out struct out o = { 0 };

	values_call_init(&call, read_memory, NULL);
	TEST_EQ_FATAL(values_expression_parse(text, &e, &error), 0);
	TEST_EQ_FATAL(values_expression_evaluate(e, types, &names, &call, &v, &error), 0);
	for (uint64_t i = 0; i < values_parts_count(v.type); i++) {
		out_str(&o, i ? " " : "");
		values_part_print_name(e, v.type, i, &o);
		out_char(&o, ' ');
		if (!values_part_print_expression(e, v.type, i, &o))
			out_char(&o, '-');
	}
	snprintf(answer, sizeof(answer), "%s", o.data ? o.data : "");
	values_result_deinit(&v);
	values_expression_destroy(e);
	return answer;
}

static void tells_parts(void)
{
	static const char *const rows[][2] = {
		{ "idx", "" }, { "text", "" }, { "blockDim", "x blockDim.x y blockDim.y z blockDim.z" },
		{ " /x  blockDim ", "x blockDim.x,x y blockDim.y,x z blockDim.z,x" },
		{ "tile[0] @ 2 , d", "[0] (&tile[0])[0],d [1] (&tile[0])[1],d" },
		{ "*text @ 2", "[0] text[0] [1] text[1]" }, { "&point", "* *&point" }, { "*&tile @ 1", "[0] (&tile)[0]" },
		{ "*(float4*)&point", "x ((float4*)&point)->x y ((float4*)&point)->y z ((float4*)&point)->z w ((float4*)&point)->w" },
		{ "{float4} 0x1040", "x ({float4} 0x1040).x y ({float4} 0x1040).y z ({float4} 0x1040).z w ({float4} 0x1040).w" },
		{ "$lane(3, blockDim)", "x $lane(3, blockDim).x y $lane(3, blockDim).y z $lane(3, blockDim).z" },
		{ "1 ? &tile : 0", "* *(1 ? &tile : 0)" },
	};
	char text[VALUES_EXPRESSION_MAX + 1];

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	set_up();
	for (size_t i = 0; i < TEST_COUNT(rows); i++)
		TEST_ROW_STR(i, parts(rows[i][0]), rows[i][1]);
	/* Nothing is told that could not be parsed. */
	memset(text, ' ', sizeof(text));
	memcpy(text, "(point", 6);
	memcpy(text + sizeof(text) - 2, ")", 2);
	TEST_STR(parts(text), "x - y - z - w -");
	values_types_destroy(types);
}

static void is_bounded(void)
{
	char text[VALUES_EXPRESSION_MAX + 2];
	size_t n;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	set_up();
	memset(text, '(', sizeof(text));
	text[VALUES_EXPRESSION_MAX] = '\0';
	CU_ASSERT_PTR_NOT_NULL(strstr(evaluate(text), "nested too deeply"));
	memset(text, '-', VALUES_EXPRESSION_MAX);
	CU_ASSERT_PTR_NOT_NULL(strstr(evaluate(text), "nested too deeply"));
	for (n = 0; n + 2 < VALUES_EXPRESSION_MAX; n += 2)
		memcpy(text + n, "1+", 2);
	memcpy(text + n, "1", 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(evaluate(text), "too many operators"));
	memset(text, ' ', sizeof(text));
	text[VALUES_EXPRESSION_MAX + 1] = '\0';
	TEST_STR(evaluate(text), "0: an expression has at most 4096 characters");
	/* 60 levels are fine. */
	memset(text, '(', 60);
	text[60] = '7';
	memset(text + 61, ')', 60);
	text[121] = '\0';
	TEST_STR(evaluate(text), "7");
	values_types_destroy(types);
}

/* The same expression for all lanes: no type is made twice. */
static void is_parsed_once_for_all_lanes(void)
{
	static const struct values_names names = { NULL, find_variable, read_register, NULL, select_lane };
	struct values_expression *e;
	struct values_error error;
	struct values_call call;
	struct values_type *first = NULL;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	set_up();
	TEST_EQ_FATAL(values_expression_parse("&tile[idx % 4] + 1", &e, &error), 0);
	for (lane = 0; lane < 64; lane++) {
		struct values_result v;
		uint64_t address = 0;

		values_call_init(&call, read_memory, NULL);
		TEST_ROW_EQ(lane, values_expression_evaluate(e, types, &names, &call, &v, &error), 0);
		memcpy(&address, v.bytes, v.size);
		TEST_ROW_EQ(lane, address, 0x1000 + 4 * ((10 + lane) % 4) + 4);
		if (lane == 0)
			first = v.type;
		CU_ASSERT_PTR_EQUAL(v.type, first);
		values_result_deinit(&v);
	}
	values_expression_destroy(e);
	values_types_destroy(types);
}

/* Memory is read once for each value that is needed, and not beyond the limits. */
static void reads_no_more_than_it_may(void)
{
	static const struct values_names names = { NULL, find_variable, read_register, NULL, select_lane };
	struct values_expression *e;
	struct values_error error;
	struct values_result v;
	struct values_call call;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	set_up();
	reads = 0;
	TEST_STR(evaluate("sizeof tile + (1 ? 1 : tile[0])"), "17");
	TEST_EQ(reads, 0);
	TEST_STR(evaluate("tile[0] + point.x"), "8");
	TEST_EQ(reads, 2);
	TEST_EQ_FATAL(values_expression_parse("tile[0] + tile[1]", &e, &error), 0);
	values_call_init(&call, read_memory, NULL);
	call.reads_left = 1;
	TEST_EQ(values_expression_evaluate(e, types, &names, &call, &v, &error), -EINVAL);
	TEST_STR(error.text, "the expression reads too much memory");
	TEST_EQ(call.cut, true);
	values_expression_destroy(e);
	values_types_destroy(types);
}

TEST_SUITE(values_expression, TEST(calculates_as_c), TEST(knows_a_lane),
	   TEST(says_whose_pointers_they_are), TEST(follows_pointers_of_another_lane_there),
	   TEST(says_what_is_wrong_and_where), TEST(tells_parts), TEST(is_bounded),
	   TEST(is_parsed_once_for_all_lanes), TEST(reads_no_more_than_it_may));
