/* SPDX-License-Identifier: MIT */
/* Variables of whole images: scopes, attributes, lists, and places, at addresses of the corpus. */
#include <errno.h>
#include <string.h>

#include "fuzzlib.h"
#include "values/global.h"
#include "values/scope.h"

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	*ret = number;
	return 0;
}

static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address,
		       void *ret, size_t size)
{
	memset(ret, 1, size);
	return 0;
}

static void try_globals(struct symbols_image *image, struct values_image *i, const struct values_frame *f)
{
	static const char *const names[] = { "own", "ns::twice", "scale", "banked", "nameless", "ns::counter::total" };
	static const struct values_scope inner = { .function = "_ZN2ns2in5innerEi" };
	static struct values_place p;
	struct values_variable v;

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
		if (values_global_find(symbols_image_debug_info(image), &inner, names[k], &v) == 0)
			values_variable_find(i, &inner, &v, f, &p);
}

static void try_frame(struct values_image *i, struct values_frame *f, unsigned inlined)
{
	static uint8_t data[64], known[64];
	static struct values_place p;
	struct values_scope s;
	struct values_bytes b;

	if (values_scope_find(i, values_frame_lookup(f), inlined, &s) == 0) {
		values_image_enter(i, &s, f);
		for (size_t k = 0; k < s.n; k++) {
			if (s.items[k].name && strlen(s.items[k].name) > 1 << 20)
				__builtin_trap();
			values_variable_find(i, &s, &s.items[k], f, &p);
			values_place_read(&p, f, sizeof(data), data, known, &b);
		}
	}
	values_scope_deinit(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct values_frame inner, outer;
	struct values_machine m = { .read_register = read_register, .read_memory = read_memory,
				    .lanes = 64, .stack_counts_waves = true };
	struct symbols_image *image;
	struct values_image *i;
	uint64_t start, end;

	if (symbols_image_create(data, size, &image) < 0)
		return 0;
	symbols_image_range(image, &start, &end);
	if (values_image_open(image, &i) == 0) {
		for (uint64_t k = 0; k < 24; k++) {
			uint64_t at = k < 12 ? 0x1600 + k * 0x48 : start + (k - 12) * 0x70;

			inner = (struct values_frame){ .machine = &m, .lane = 3, .pc = at };
			try_frame(i, &inner, 0);
			try_frame(i, &inner, 1);
			outer = (struct values_frame){ .machine = &m, .lane = 3, .pc = at + 0x40,
						       .callee = &inner };
			try_frame(i, &outer, 0);
		}
		try_globals(image, i, &inner);
	}
	symbols_image_destroy(image);
	return 0;
}
