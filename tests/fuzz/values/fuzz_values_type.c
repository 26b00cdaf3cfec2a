/* SPDX-License-Identifier: MIT */
/* Types of hostile DWARF: their names, and values of them. */
#include <string.h>

#include "fuzzlib.h"
#include "symbols/image.h"
#include "values/text/value.h"

#define TYPES_MAX 200u

static int read_memory(void *context, enum values_space space, uint64_t address, void *ret, size_t size)
{
	memset(ret, (int)(address & 0x7f), size);
	return address % 7 ? 0 : -1;
}

static void show(struct values_type *t)
{
	static uint8_t bytes[4096], known[sizeof(bytes)];
	const struct values_data data = { bytes, known, sizeof(bytes), VALUES_UNAVAILABLE };
	struct values_node node;
	struct values_call call;
	auto_out struct out o = { .limit = 1 << 20 };

	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i * 37 >> 3);
		known[i] = i % 61 != 0;
	}
	values_type_print(t, &o);
	(void)values_type_size(t);
	values_call_init(&call, read_memory, NULL);
	if (values_node_init(&node, "v", t, &data, &call) < 0)
		return;
	out_reset(&o);
	values_node_print(&node, &o);
	if (o.size > VALUES_TEXT_MAX)
		__builtin_trap();
	values_node_deinit(&node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct values_types *types;
	struct symbols_image *image;
	struct debug_info *d;
	size_t info_size = 0;

	if (symbols_image_create(data, size, &image) < 0)
		return 0;
	d = symbols_image_debug_info(image);
	if (d && values_types_create(d, &types) == 0) {
		(void)debug_info_section(d, "info", &info_size);
		/* Most of these offsets are in the middle of something. */
		for (size_t at = 0; at < info_size && at < 4 * TYPES_MAX; at += 3)
			show(values_type_at(types, at));
		values_types_destroy(types);
	}
	symbols_image_destroy(image);
	return 0;
}
