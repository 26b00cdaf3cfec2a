/* SPDX-License-Identifier: MIT */
/* Arguments of the kernels of real code objects: of Debian's clang, of nvcc. */
#include "base/fd.h"
#include "sim.h"
#include "symbols/image.h"
#include "testlib.h"
#include "values/argument/arguments.h"
#include "values/argument/kernels.h"

#define AMD	 "tests/data/codeobj/"
#define CUBINS	 "tests/data/cubin/"
#define BASE	 UINT64_C(0x7f0a00000000)
/* Of e_machine and st_other. */
#define MACHINE_AT 18
#define EM_CUDA_LOW 190

DEFINE_AUTO(struct symbols_image *, symbols_image_destroy);
/* Load an object; a cubin as its driver does. */
static struct symbols_image *load(const char *path)
{
	struct symbols_image *i = NULL;
	auto_free char *bytes = NULL;
	size_t size = 0;

	if (fd_read_file(path, 1 << 24, &bytes, &size) < 0)
		return NULL;
	if ((uint8_t)bytes[MACHINE_AT] == EM_CUDA_LOW) {
		struct sim_module m = { 0 };
		uint64_t end;

		if (cubin_load((const uint8_t *)bytes, size, BASE, &m, &end) == 0)
			(void)symbols_image_create(m.relocated, size, &i);
		cubin_unload(&m);
		return i;
	}
	(void)symbols_image_create(bytes, size, &i);
	return i;
}

/* All arguments as text: `int *data@0+8, int n@8+4`. */
static void write_text(const struct values_arguments *a, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t k = 0; k < a->n && n < size; k++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s%s%s@%u+%u", k ? ", " : "", a->list[k].type,
				      a->list[k].type[0] ? " " : "", a->list[k].name, a->list[k].offset,
				      a->list[k].scalar.size);
}

static const struct {
	const char *file, *kernel, *text;
} rows[] = {
	{ AMD "spin-gfx90a.co", "scale", "int * data@0+8, int n@8+4" },
	{ AMD "spin-gfx1030-z.co", "scale", "int * data@0+8, int n@8+4" },
	{ AMD "spin-gfx90a.co", "spin", "volatile int * flag@0+8" },
	{ AMD "shapes-gfx90a.co", "_ZN3app5shapeIiEEvNS_3vecIT_EEi", "vec<int> v@0+16, int k@16+4" },
	{ CUBINS "spin-sm_90-g.cubin", "spin", "volatile int * stop@0+8, float * out@8+8" },
	{ CUBINS "spin-sm_90-g.cubin", "_Z7divergeIfEvPT_i", "float * out@0+8, int rounds@8+4" },
	{ CUBINS "spin-sm_80.cubin", "spin", "arg0@0+8, arg1@8+8" },
	{ CUBINS "spin-sm_80.cubin", "_Z7divergeIfEvPT_i", "float* arg0@0+8, int arg1@8+4" },
	{ CUBINS "spin-sm_90.cubin", "fault", "arg0@0+8" },
};

static void tells_names_types_and_places(void)
{
	for (size_t k = 0; k < TEST_COUNT(rows); k++) {
		auto_call(symbols_image_destroyp) struct symbols_image *i = load(rows[k].file);
		struct values_arguments a = { 0 };
		struct symbols_symbol kernel;
		char text[1024];

		TEST_ROW_EQ(k, i != NULL, true);
		if (!i)
			continue;
		TEST_ROW_EQ(k, symbols_image_kernel_of(i, rows[k].kernel, &kernel), 0);
		TEST_ROW_EQ(k, values_arguments_find(i, kernel.address, false, &a), 0);
		write_text(&a, text, sizeof(text));
		TEST_ROW_STR(k, text, rows[k].text);
		TEST_ROW_EQ(k, a.n_all, a.n);
		values_arguments_deinit(&a);
		TEST_ROW_EQ(k, values_arguments_find(i, kernel.address + 4, false, &a), -ENOENT);
		values_arguments_deinit(&a);
	}
}

static void prints_values(void)
{
	static const struct {
		struct values_argument argument;
		const char *bytes, *text;
	} values[] = {
		{ { .scalar = { VALUES_RAW, 4, NULL } }, "\xa0\0\0\0", "160" },
		{ { .scalar = { VALUES_RAW, 4, NULL } }, "\xff\xff\xff\xff", "-1" },
		{ { .scalar = { VALUES_RAW, 4, NULL } }, "\0\0\xc0\x3f", "1069547520 (1.5f)" },
		{ { .scalar = { VALUES_RAW, 8, NULL } }, "\0\x10\0\0\0\x7f\0\0", "0x7f0000001000" },
		{ { .scalar = { VALUES_RAW, 1, NULL } }, "\x41", "0x41" },
		{ { .scalar = { VALUES_RAW, 4, NULL }, .type = "pair" }, "\1\0\2\0", "0x20001" },
		{ { .scalar = { VALUES_POINTER, 8, NULL } }, "\0\0\0\0\0\0\0\0", "0x0" },
		{ { .scalar = { VALUES_POINTER, 4, "lds" } }, "\0\4\0\0", "@lds 0x400" },
		{ { .scalar = { VALUES_RAW, 20, NULL } }, "abcdefghijklmnopqrst",
		  "6162636465666768 696a6b6c6d6e6f70 71727374" },
	};

	for (size_t k = 0; k < TEST_COUNT(values); k++) {
		const struct values_argument *a = &values[k].argument;
		auto_out struct out o = { 0 };

		values_argument_print(a, test_tail_dup(values[k].bytes, a->scalar.size), &o);
		TEST_ROW_STR(k, o.data, values[k].text);
	}
}

/* What only a stop can copy: where the parameters of each kernel of a cubin lie. */
static void finds_kernels_of_a_cubin(void)
{
	auto_call(symbols_image_destroyp) struct symbols_image *i = load(CUBINS "spin-sm_90.cubin");
	auto_call(symbols_image_destroyp) struct symbols_image *old = load(CUBINS "spin-sm_80.cubin");
	struct values_kernels k = { 0 }, l = { 0 };
	struct symbols_symbol fault;

	CU_ASSERT_TRUE_FATAL(i && old);
	TEST_EQ(values_kernels_find(i, &k), 0);
	TEST_EQ_FATAL(k.n, 3);
	TEST_EQ_FATAL(symbols_image_kernel_of(i, "fault", &fault), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(values_kernels_at(&k, fault.address));
	TEST_EQ(values_kernels_at(&k, fault.address)->base, 0x210);
	TEST_EQ(values_kernels_at(&k, fault.address)->size, 8);
	CU_ASSERT_PTR_NULL(values_kernels_at(&k, fault.address + 16));
	TEST_EQ(values_kernels_find(old, &l), 0);
	TEST_EQ_FATAL(l.n, 3);
	TEST_EQ(l.list[0].base, 0x160);
	values_kernels_deinit(&k);
	values_kernels_deinit(&l);
	CU_ASSERT_PTR_NULL(values_kernels_at(&k, fault.address));
}

TEST_SUITE(values_arguments, TEST(tells_names_types_and_places), TEST(prints_values),
	   TEST(finds_kernels_of_a_cubin));
