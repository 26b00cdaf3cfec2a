/* SPDX-License-Identifier: MIT */
/*
 * Says what the variables of a code object are, in a wave whose registers and memory have numbers
 * made up from where they are, so that each value tells where it was read.
 *
 * usage: values_probe FILE LANES GFX_TARGET_VERSION     requests on stdin: PC LANE INLINED
 * A row for each variable: name, kind, block, state, bytes, place, reason; then a line with a dot.
 * Unknown bytes are "--".
 */
#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "symbols/debug_info.h"
#include "tests/values/state_names.h"
#include "values/scope.h"

#define SIZE_MAX_HERE 65536u

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "values_probe: %s\n", what);
	exit(1);
}

/* The finaliser of SplitMix64. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number,
			 uint32_t *ret)
{
	bool by_lane = file == VALUES_FILE_VECTOR || file == VALUES_FILE_ACCUMULATION;

	*ret = (uint32_t)mix((uint64_t)file << 48 | (uint64_t)(by_lane ? lane + 1 : 0) << 32 | number);
	return 0;
}

static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address,
		       void *ret, size_t size)
{
	uint64_t salt = (uint64_t)space << 8 | (space == VALUES_SPACE_PRIVATE ? lane + 1 : 0);
	uint8_t *to = ret;

	for (size_t i = 0; i < size; i++)
		to[i] = (uint8_t)mix(mix(salt) ^ (address + i));
	return 0;
}

static uint64_t number(Dwarf_Die *d, unsigned attribute, uint64_t otherwise)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	return dwarf_attr(d, attribute, &a) && dwarf_formudata(&a, &v) == 0 ? v : otherwise;
}

static uint64_t size_of(struct debug_info *d, Dwarf_Die type)
{
	uint64_t n = 1;

	for (unsigned depth = 0; depth < 64; depth++) {
		struct debug_children c;
		Dwarf_Attribute a;
		Dwarf_Die child;

		if (dwarf_hasattr(&type, DW_AT_byte_size))
			return n * number(&type, DW_AT_byte_size, 0);
		if (dwarf_tag(&type) == DW_TAG_pointer_type ||
		    dwarf_tag(&type) == DW_TAG_reference_type)
			return n * 8;
		debug_children_init(&c, d, &type, 100);
		while (dwarf_tag(&type) == DW_TAG_array_type && debug_children_next(&c, &child))
			n *= number(&child, DW_AT_count, number(&child, DW_AT_upper_bound, 0) + 1);
		if (!dwarf_attr(&type, DW_AT_type, &a) || !dwarf_formref_die(&a, &type))
			break;
	}
	return 0;
}

static void show(struct values_image *i, struct debug_info *d, const struct values_scope *s,
		 const struct values_variable *v, const struct values_frame *f)
{
	static const char *const kinds[] = { "argument", "local", "static" };
	static uint8_t data[SIZE_MAX_HERE], known[SIZE_MAX_HERE];
	static struct values_place p;
	auto_out struct out place = { 0 };
	struct values_bytes b;
	uint64_t size = v->has_type ? size_of(d, v->type) : 0;

	if (size > SIZE_MAX_HERE)
		size = SIZE_MAX_HERE;
	values_variable_find(i, s, v, f, &p);
	values_place_read(&p, f, size, data, known, &b);
	values_place_print(&p, f, &place);
	printf("%s\t%s\t%u\t%s\t", v->name ? v->name : "", kinds[v->kind], v->block,
	       state_name(b.state));
	for (uint64_t k = 0; k < size; k++)
		if (known[k])
			printf("%02x", data[k]);
		else
			printf("--");
	printf("\t%s\t%s\n", place.data ? place.data : "", b.reason ? b.reason : "");
}

static void answer(struct values_image *i, struct debug_info *d, const struct values_machine *m,
		   uint64_t pc, uint32_t lane, unsigned inlined)
{
	struct values_frame f = { .machine = m, .lane = lane, .pc = pc };
	struct values_scope s;

	if (values_scope_find(i, pc, inlined, &s) == 0) {
		values_image_enter(i, &s, &f);
		for (size_t k = 0; k < s.n; k++)
			show(i, d, &s, &s.items[k], &f);
		if (s.cut)
			puts("cut");
	}
	values_scope_deinit(&s);
	puts(".");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct values_machine m = { .read_register = read_register, .read_memory = read_memory };
	uint64_t lanes, version, pc;
	struct symbols_image *image;
	struct values_image *values;
	unsigned lane, inlined;
	char *data;
	size_t size;

	if (argc != 4 || str_to_u64(argv[2], 1, 64, &lanes) < 0 ||
	    str_to_u64(argv[3], 0, UINT32_MAX, &version) < 0)
		die("usage: values_probe FILE LANES GFX_TARGET_VERSION");
	m.lanes = (uint32_t)lanes;
	m.stack_counts_waves = values_stack_counts_waves((uint32_t)version);
	if (fd_read_file(argv[1], SYMBOLS_IMAGE_BYTES_MAX, &data, &size) < 0 ||
	    symbols_image_create(data, size, &image) < 0)
		die("no image");
	if (values_image_open(image, &values) < 0)
		die("no debug information");
	while (scanf("%" SCNx64 " %u %u", &pc, &lane, &inlined) == 3)
		answer(values, symbols_image_debug_info(image), &m, pc, lane, inlined);
	symbols_image_destroy(image);
	free(data);
	return 0;
}
