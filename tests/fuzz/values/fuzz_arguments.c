/* SPDX-License-Identifier: MIT */
/* The arguments of all kernels of an image, by its notes, its debug information and its names. */
#include <string.h>

#include "fuzzlib.h"
#include "symbols/image.h"
#include "values/argument/arguments.h"
#include "values/argument/kernels.h"

static void look(struct symbols_image *i, uint64_t kernel)
{
	static const uint8_t bytes[VALUES_ARGUMENT_BYTES_MAX];
	struct values_arguments a = { 0 };

	(void)values_arguments_find(i, kernel, true, &a);
	if (a.n > a.n_all || a.n > VALUES_ARGUMENTS_MAX)
		__builtin_trap();
	for (size_t k = 0; k < a.n; k++) {
		auto_out struct out o = { 0 };

		values_argument_print(&a.list[k], bytes, &o);
		if (strlen(a.list[k].name) >= sizeof(a.list[k].name) || !a.list[k].name[0])
			__builtin_trap();
	}
	values_arguments_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct values_kernels kernels = { 0 };
	static struct symbols_symbol symbol;
	struct symbols_image *i;
	uint64_t start, end;

	if (symbols_image_create(data, size, &i) < 0)
		return 0;
	symbols_image_range(i, &start, &end);
	(void)values_kernels_find(i, &kernels);
	for (size_t k = 0; k < kernels.n && k < 16; k++)
		look(i, kernels.list[k].entry);
	/* Descriptors of 64 bytes, of which an object of this size has few. */
	for (uint64_t at = start; at < end && at - start < 0x2000; at += 8)
		if (symbols_image_kernel(i, at, &symbol) == 0)
			look(i, at);
	values_kernels_deinit(&kernels);
	symbols_image_destroy(i);
	return 0;
}
