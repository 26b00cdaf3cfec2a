/* SPDX-License-Identifier: MIT */
/* Values of types that are made up; tests/peers compares those that compilers make with gdb. */
#include "testlib.h"
#include "values/text/summary.h"
#include "values/text/value.h"

static struct values_types *types;

static const char *shown(struct values_type *t, const void *bytes, const uint8_t *known, size_t size,
			 enum values_state lack, enum values_state want)
{
	static char text[VALUES_TEXT_MAX + 1];
	const struct values_data data = { bytes, known, size, lack };
	struct values_node node;
	struct values_call call;
	auto_out struct out o = { 0 };

	values_call_init(&call, NULL, NULL);
	TEST_EQ_FATAL(values_node_init(&node, NULL, t, &data, &call), 0);
	TEST_EQ(node.state, want);
	values_node_print(&node, &o);
	snprintf(text, sizeof(text), "%s", o.data ? o.data : "");
	values_node_deinit(&node);
	return text;
}

static void shows_what_is_known(void)
{
	const uint32_t v[3] = { 7, 8, 9 };
	uint8_t known[12];
	struct values_type *dim3;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	dim3 = values_type_named(types, "dim3");
	TEST_STR(shown(dim3, v, NULL, 12, VALUES_OK, VALUES_OK), "{x = 7, y = 8, z = 9}");
	memset(known, 1, sizeof(known));
	known[5] = 0;
	TEST_STR(shown(dim3, v, known, 12, VALUES_NOT_SAVED, VALUES_PARTIAL), "{x = 7, y = <not saved>, z = 9}");
	TEST_STR(shown(dim3, test_tail_dup(v, 10), NULL, 10, VALUES_UNREADABLE, VALUES_PARTIAL),
		 "{x = 7, y = 8, z = <unreadable>}");
	memset(known, 0, sizeof(known));
	TEST_STR(shown(dim3, v, known, 12, VALUES_OPTIMISED_OUT, VALUES_OPTIMISED_OUT), "<optimized out>");
	TEST_STR(shown(dim3, NULL, NULL, 0, VALUES_UNAVAILABLE, VALUES_UNAVAILABLE), "<unavailable>");
	values_types_destroy(types);
}

static void shortens_arrays(void)
{
	int32_t v[300];
	struct values_type *integer;
	const char *text;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	integer = values_type_named(types, "int");
	for (int i = 0; i < 300; i++)
		v[i] = i < 20 ? 5 : i;
	TEST_STR(shown(values_type_array(types, integer, 22), v, NULL, sizeof(v), VALUES_OK, VALUES_OK),
		 "{5 <repeats 20 times>, 20, 21}");
	TEST_STR(shown(values_type_array(types, integer, 10), v, NULL, sizeof(v), VALUES_OK, VALUES_OK),
		 "{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}");
	text = shown(values_type_array(types, integer, 300), v, NULL, sizeof(v), VALUES_OK, VALUES_OK);
	/* As gdb counts, the repeated ones are 10 of 200. */
	TEST_STR(text + strlen(text) - 12, "208, 209...}");
	TEST_STR(shown(values_type_array(types, values_type_named(types, "char"), 5), "ab\0\0", NULL, 5, VALUES_OK,
		       VALUES_OK), "\"ab\\000\\000\"");
	values_types_destroy(types);
}

static void bounds_text_and_nodes(void)
{
	static double v[200 * 40];
	struct values_type *t;
	const char *text;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	for (size_t i = 0; i < TEST_COUNT(v); i++)
		v[i] = (double)i / 3;
	t = values_type_array(types, values_type_array(types, values_type_named(types, "double"), 40), 200);
	text = shown(t, v, NULL, sizeof(v), VALUES_OK, VALUES_OK);
	TEST_EQ(strlen(text) <= VALUES_TEXT_MAX, true);
	TEST_STR(text + strlen(text) - 3, "...");
	for (int i = 0; i < 100; i++)
		t = values_type_array(types, i ? t : values_type_named(types, "int"), 1);
	/* Types may be nested deeper than values are shown. */
	TEST_STR(shown(t, v, NULL, sizeof(v), VALUES_UNAVAILABLE, VALUES_OK), "{{{{{{{{{...}}}}}}}}}");
	values_types_destroy(types);
}

static void names_types_as_gdb(void)
{
	static const struct {
		const char *name, *want;
		uint64_t size;
	} rows[] = {
		{ "int", "int", 4 }, { "float const*", "const float *", 8 }, { "char**", "char **", 8 },
		{ "float4", "float4", 16 }, { "dim3", "dim3", 12 }, { "ulonglong2", "ulonglong2", 16 },
		{ "std::vector<int>*", "void *", 8 }, { "int&", "int *", 8 },
	};
	auto_out struct out o = { 0 };
	struct values_type *t;

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		t = values_type_named(types, rows[i].name);
		CU_ASSERT_PTR_NOT_NULL_FATAL(t);
		out_reset(&o);
		values_type_print(t, &o);
		TEST_ROW_STR(i, o.data, rows[i].want);
		TEST_ROW_EQ(i, values_type_size(t), rows[i].size);
	}
	TEST_EQ(values_type_named(types, "std::vector<int>") == NULL, true);
	t = values_type_array(types, values_type_named(types, "int"), 4);
	t = values_type_pointer(types, t, VALUES_SPACE_SHARED);
	out_reset(&o);
	values_type_print(t, &o);
	TEST_STR(o.data, "@shared int (*)[4]");
	values_types_destroy(types);
}

/* ------------------------------------------------------------------ summaries ---------------- */

#define LANES 8

static const char *summary(const char *type, const void *bytes, size_t size, const uint8_t *known, bool want_same)
{
	static char text[512];
	struct values_node nodes[LANES];
	const struct values_node *lanes[LANES];
	struct values_call call;
	auto_out struct out o = { 0 };

	TEST_EQ_FATAL(values_types_create(NULL, &types), 0);
	values_call_init(&call, NULL, NULL);
	for (size_t i = 0; i < LANES; i++) {
		const struct values_data data = { (const uint8_t *)bytes + i * size, NULL,
						  known && !known[i] ? 0 : size, VALUES_UNAVAILABLE };

		TEST_EQ_FATAL(values_node_init(&nodes[i], NULL, values_type_named(types, type), &data, &call), 0);
		lanes[i] = &nodes[i];
	}
	TEST_EQ(values_summary_print(lanes, LANES, &o), want_same);
	snprintf(text, sizeof(text), "%s", o.data);
	for (size_t i = 0; i < LANES; i++)
		values_node_deinit(&nodes[i]);
	values_types_destroy(types);
	return text;
}

static void summarises_lanes(void)
{
	static const int32_t same[LANES] = { 3, 3, 3, 3, 3, 3, 3, 3 };
	static const int32_t sequence[LANES] = { 4, 5, 6, 7, 8, 9, 10, 11 };
	static const int32_t down[LANES] = { 4, 0, -4, -8, -12, -16, -20, -24 };
	static const int32_t any[LANES] = { 5, -3, 5, 90, 7, 7, 5, 1 };
	static const uint64_t pointers[LANES] = { 0x1000, 0x1010, 0x1020, 0x1030, 0x1040, 0x1050, 0x1060, 0x1070 };
	static const float reals[LANES] = { 1, 2, 3, 4, 5, 6, 7, 0.5f };
	static const uint8_t half[LANES] = { 1, 1, 1, 1, 0, 0, 0, 0 }, none[LANES] = { 0 };
	uint32_t index[LANES][3];

	for (uint32_t i = 0; i < LANES; i++)
		memcpy(index[i], (uint32_t[3]){ i, 3, i * i }, sizeof(index[i]));
	TEST_STR(summary("int", same, 4, NULL, true), "3");
	TEST_STR(summary("int", sequence, 4, NULL, false), "4..11");
	TEST_STR(summary("int", down, 4, NULL, false), "4..-24 step -4");
	TEST_STR(summary("int", any, 4, NULL, false), "-3..90 (5 different)");
	TEST_STR(summary("int*", pointers, 8, NULL, false), "0x1000..0x1070 step 0x10");
	TEST_STR(summary("float", reals, 4, NULL, false), "0.5..7 (8 different)");
	TEST_STR(summary("dim3", index, 12, NULL, false), "{x = 0..7, y = 3, z = 0..49 (8 different)}");
	TEST_STR(summary("int", sequence, 4, half, false), "4..7, <unavailable> in 4 lanes");
	TEST_STR(summary("int", sequence, 4, none, true), "<unavailable>");
}

TEST_SUITE(values_value, TEST(shows_what_is_known), TEST(shortens_arrays), TEST(bounds_text_and_nodes),
	   TEST(names_types_as_gdb), TEST(summarises_lanes));
