/* SPDX-License-Identifier: MIT */
/* Variables outside of functions in real code objects: which one a name means, by the line that it is declared in. */
#include <dwarf.h>
#include <errno.h>

#include "base/fd.h"
#include "sim.h"
#include "symbols/image.h"
#include "testlib.h"
#include "values/global.h"

#define AMD  "tests/data/codeobj/globals-gfx90a.co"
#define CUDA "tests/data/cubin/globals-sm_90-g.cubin"
#define BASE UINT64_C(0x7f0a00000000)

DEFINE_AUTO(struct symbols_image *, symbols_image_destroy);

/* Load an object; a cubin as its driver does. */
static struct symbols_image *load(const char *path)
{
	struct symbols_image *i = NULL;
	struct sim_module m = { 0 };
	auto_free char *bytes = NULL;
	uint64_t end;
	size_t size = 0;

	if (fd_read_file(path, 1 << 24, &bytes, &size) < 0)
		return NULL;
	if (strstr(path, ".cubin") && cubin_load((const uint8_t *)bytes, size, BASE, &m, &end) == 0)
		(void)symbols_image_create(m.relocated, size, &i);
	else
		(void)symbols_image_create(bytes, size, &i);
	cubin_unload(&m);
	return i;
}

/* Where the code of a function begins; 0: there is none. */
static uint64_t address_of(struct symbols_image *i, const char *function)
{
	uint64_t at, end;

	symbols_image_range(i, &at, &end);
	for (; at < end; at += 4) {
		struct symbols_symbol s;

		if (symbols_image_function(i, at, &s) == 0 && !strcmp(s.raw, function))
			return at;
	}
	return 0;
}

/* Find a variable as the function around the address of a symbol sees it. */
static int find(const char *path, const char *function, const char *name, int *ret_line)
{
	auto_call(symbols_image_destroyp) struct symbols_image *i = load(path);
	struct values_image *values = NULL;
	struct values_scope s = { 0 };
	struct values_variable v;
	Dwarf_Attribute a;
	Dwarf_Word line = 0;
	int r;

	CU_ASSERT_PTR_NOT_NULL_FATAL(i);
	TEST_EQ_FATAL(values_image_open(i, &values), 0);
	if (function)
		TEST_EQ_FATAL(values_scope_find(values, address_of(i, function), 0, &s), 0);
	r = values_global_find(symbols_image_debug_info(i), &s, name, &v);
	if (r == 0) {
		CU_ASSERT_TRUE(v.has_type && dwarf_attr_integrate(&v.die, DW_AT_decl_line, &a) &&
			       dwarf_formudata(&a, &line) == 0);
		TEST_EQ(v.kind, VALUES_STATIC);
	}
	*ret_line = (int)line;
	values_scope_deinit(&s);
	return r;
}

static const struct {
	const char *path, *function, *name;
	int r, line;
} rows[] = {
	{ AMD, "globals", "twice", 0, 7 },
	{ AMD, "globals", "ns::twice", 0, 17 },
	{ AMD, "globals", "ns::table", 0, 16 },
	{ AMD, "globals", "ns::in::scale", 0, 24 },
	{ AMD, "globals", "ns::counter::total", 0, 19 },
	{ AMD, "globals", "counter::total", -ENOENT, 0 },
	{ AMD, "globals", "own", 0, 8 },
	{ AMD, "globals", "fixed", 0, 9 },
	{ AMD, "globals", "nameless", 0, 12 },
	{ AMD, "globals", "scale", -ENOENT, 0 },
	{ AMD, "globals", "table", -ENOENT, 0 },
	{ AMD, "globals", "wice", -ENOENT, 0 },
	{ AMD, "globals", "", -ENOENT, 0 },
	{ AMD, "globals", "::", -ENOENT, 0 },
	{ AMD, NULL, "ns::twice", 0, 17 },
	{ CUDA, "globals_a", "shared_by_both", 0, 3 },
	{ CUDA, "globals_a", "own", 0, 4 },
	{ CUDA, "globals_b", "own", 0, 3 },
	{ CUDA, NULL, "own", -ENOTUNIQ, 0 },
	{ CUDA, "globals_c", "own", -ENOTUNIQ, 0 },
	{ CUDA, "globals_c", "of_a", 0, 5 },
	{ CUDA, "globals_c", "shared_by_both", 0, 2 },
	{ CUDA, NULL, "shared_by_both", 0, 2 },
	{ CUDA, "globals_a", "ns::shared_by_both", 0, 15 },
	{ CUDA, "globals_b", "ns::table", 0, 14 },
	{ CUDA, "globals_b", "of_a", 0, 5 },
	{ CUDA, "globals_a", "nameless", 0, 10 },
	{ CUDA, "globals_a", "banked", 0, 6 },
	{ CUDA, "globals_a", "block_wide", 0, 7 },
	{ CUDA, "globals_a", "ns::in::scale", 0, 18 },
};

static void finds_what_a_name_means(void)
{
	for (size_t k = 0; k < TEST_COUNT(rows); k++) {
		int line;

		TEST_ROW_EQ(k, find(rows[k].path, rows[k].function, rows[k].name, &line), rows[k].r);
		TEST_ROW_EQ(k, line, rows[k].line);
	}
}

/* A function sees what is in the namespaces around it, the innermost first. */
static void looks_around_the_function(void)
{
	auto_call(symbols_image_destroyp) struct symbols_image *i = load(AMD);
	static const struct {
		const char *function, *name;
		int r, line;
	} around[] = {
		{ "_ZN2ns2in5innerEi", "twice", 0, 17 },
		{ "_ZN2ns2in5innerEi", "scale", 0, 24 },
		{ "_ZN2ns2in5innerEi", "counter::total", 0, 19 },
		{ "_ZN2ns2in5innerEi", "own", 0, 8 },
		{ "_ZN2ns5innerIiEEvRKNS_1xE", "twice", 0, 17 },
		{ "_ZN2ns5innerIiEEvRKNS_1xE", "scale", -ENOENT, 0 },
		{ "_ZN12_GLOBAL__N_12ns1fEv", "twice", 0, 7 },
		{ "_ZN1n5innerEi", "twice", 0, 7 },
		{ "broken(", "twice", 0, 7 },
	};

	for (size_t k = 0; k < TEST_COUNT(around); k++) {
		struct values_scope s = { .function = around[k].function };
		struct values_variable v = { 0 };
		Dwarf_Attribute a;
		Dwarf_Word line = 0;

		TEST_ROW_EQ(k, values_global_find(symbols_image_debug_info(i), &s, around[k].name, &v), around[k].r);
		if (v.name && dwarf_attr_integrate(&v.die, DW_AT_decl_line, &a))
			(void)dwarf_formudata(&a, &line);
		TEST_ROW_EQ(k, (int)line, around[k].line);
	}
}

/* Where variables of constant memory are is what their symbols say. */
static void finds_constant_memory(void)
{
	static const struct {
		const char *name;
		uint64_t offset;
	} constants[] = { { "banked", 4 }, { "ns::in::scale", 0 } };
	auto_call(symbols_image_destroyp) struct symbols_image *i = load(CUDA);
	struct values_machine m = { .lanes = 32 };
	struct values_frame f = { .machine = &m, .is_cuda = true };
	struct values_image *values;
	struct values_scope s;
	struct values_place p;

	TEST_EQ_FATAL(values_image_open(i, &values), 0);
	f.pc = address_of(i, "globals_b");
	TEST_EQ_FATAL(values_scope_find(values, f.pc, 0, &s), 0);
	for (size_t k = 0; k < TEST_COUNT(constants); k++) {
		struct values_variable v;

		TEST_ROW_EQ(k, values_global_find(symbols_image_debug_info(i), &s, constants[k].name, &v), 0);
		values_variable_find(values, &s, &v, &f, &p);
		TEST_ROW_EQ(k, p.n, 1);
		TEST_ROW_EQ(k, p.pieces[p.first].kind, VALUES_PIECE_MEMORY);
		TEST_ROW_EQ(k, p.pieces[p.first].space, VALUES_SPACE_CONSTANT);
		TEST_ROW_EQ(k, p.pieces[p.first].number, constants[k].offset);
	}
	values_scope_deinit(&s);
}

static void refuses_long_names(void)
{
	char name[VALUES_GLOBAL_NAME_MAX + 1];
	int line;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	TEST_EQ(find(AMD, "globals", name, &line), -ENAMETOOLONG);
}

TEST_SUITE(values_global, TEST(finds_what_a_name_means), TEST(looks_around_the_function),
	   TEST(finds_constant_memory), TEST(refuses_long_names));
