/* SPDX-License-Identifier: MIT */
/*
 * Variables of cubins of which one byte is another: whatever is read of them, a value that was certain does not
 * become another one, unless the byte says in which register or at which place it is.
 *
 * Each 13th byte is tried; with GPU_AGENT_MUTATE=1 all of them are.
 */
#include <stdlib.h>

#include "base/elf_view.h"
#include "base/fd.h"
#include "base/reader.h"
#include "sim.h"
#include "testlib.h"
#include "values/scope.h"
#include "values/type/type.h"

#define BASE	     UINT64_C(0x7f0a00000000)
#define PLACES	     6u
#define VARIABLES    64u
#define BYTES	     64u
#define STEP_OF_SOME 13u

/* What is known of one variable at one place. */
struct fact {
	const char *name;
	enum values_state state;
	size_t size;
	uint8_t bytes[BYTES];
};

/* Of all of them; names lie in an image that lives as long. */
struct facts {
	struct fact at[PLACES][VARIABLES];
	size_t n[PLACES];
};

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number, uint32_t *ret)
{
	(void)context, (void)lane;
	*ret = (number + 1) * 2654435761u + (uint32_t)file;
	return 0;
}

static int read_memory(void *context, uint32_t lane, enum values_space space, uint64_t address, void *ret, size_t size)
{
	(void)context, (void)lane;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)ret)[i] = (uint8_t)((address + i) * 151 + (unsigned)space);
	return 0;
}

static void note(struct values_image *v, struct values_types *types, const struct values_scope *s,
		 const struct values_frame *f, const struct values_variable *x, struct fact *ret)
{
	static uint8_t known[BYTES];
	static struct values_place place;
	uint64_t size = values_type_size(values_type_of(types, (Dwarf_Die *)&x->die));
	struct values_bytes b;

	*ret = (struct fact){ .name = x->name ? x->name : "", .size = size < BYTES ? (size_t)size : BYTES };
	values_variable_find(v, s, x, f, &place);
	values_place_read(&place, f, ret->size, ret->bytes, known, &b);
	ret->state = b.state;
}

static void look(struct symbols_image *image, uint64_t low, uint64_t high, struct facts *ret)
{
	const struct values_machine m = { .read_register = read_register, .read_memory = read_memory, .lanes = 32 };
	struct values_types *types;
	struct values_image *v;

	memset(ret->n, 0, sizeof(ret->n));
	if (values_image_open(image, &v) < 0)
		return;
	TEST_EQ_FATAL(values_types_create(symbols_image_debug_info(image), &types), 0);
	for (size_t p = 0; p < PLACES; p++) {
		uint64_t at = (high - low) / (PLACES + 1) * (p + 1);
		struct values_frame f = { .machine = &m, .pc = low + (at & ~UINT64_C(15)) };
		struct values_scope s;

		if (values_scope_find(v, f.pc, 0, &s) == 0) {
			values_image_enter(v, &s, &f);
			for (; ret->n[p] < s.n && ret->n[p] < VARIABLES; ret->n[p]++)
				note(v, types, &s, &f, &s.items[ret->n[p]], &ret->at[p][ret->n[p]]);
		}
		values_scope_deinit(&s);
	}
	values_types_destroy(types);
}

/* @return how many values that were certain are others now. */
static unsigned differences(const struct facts *was, const struct facts *is)
{
	unsigned n = 0;

	for (size_t p = 0; p < PLACES; p++)
		for (size_t i = 0; i < was->n[p]; i++)
			for (size_t k = 0; k < is->n[p]; k++) {
				const struct fact *a = &was->at[p][i], *b = &is->at[p][k];

				n += !strcmp(a->name, b->name) && a->state == VALUES_OK && b->state == VALUES_OK &&
				     a->size == b->size && memcmp(a->bytes, b->bytes, a->size);
			}
	return n;
}

static bool is_place_of_entry(struct reader *r, size_t at)
{
	size_t place;

	(void)reader_u32(r);
	(void)reader_string(r);
	place = r->pos;
	reader_skip(r, 3 * sizeof(uint32_t));
	return at >= place && at < place + sizeof(uint32_t);
}

/* Does a byte of the register map say in which register something is? */
static bool is_place(const uint8_t *map, size_t size, size_t at)
{
	bool found = false;
	struct reader r;

	reader_init(&r, map, size);
	while (reader_left(&r) && !reader_is_bad(&r)) {
		(void)reader_string(&r);
		for (uint32_t n = reader_u32(&r); n && !reader_is_bad(&r); n--)
			found |= is_place_of_entry(&r, at);
	}
	return found;
}

struct subject {
	uint8_t *bytes;
	size_t size;
	uint64_t low, high; /* The kernel that is looked at. */
	struct symbols_image *image;
	struct facts facts;
};

static void mutate(struct subject *s, size_t first, size_t size, bool is_map)
{
	const size_t step = getenv("GPU_AGENT_MUTATE") ? 1 : STEP_OF_SOME;
	static struct facts now;

	for (size_t at = 0; at < size; at += step) {
		uint8_t was = s->bytes[first + at];
		struct symbols_image *image;

		s->bytes[first + at] = (uint8_t)(was ^ (at / step % 2 ? 1 << at % 8 : 0xff));
		if (symbols_image_create(s->bytes, s->size, &image) == 0) {
			look(image, s->low, s->high, &now);
			s->bytes[first + at] = was;
			if (is_map && !is_place(s->bytes + first, size, at))
				TEST_ROW_EQ(at, differences(&s->facts, &now), 0);
			symbols_image_destroy(image);
		}
		s->bytes[first + at] = was;
	}
}

static void mutate_sections(struct subject *s)
{
	static const char *const names[] = { ".nv_debug_info_reg_sass", ".debug_frame", ".debug_loc", ".debug_info" };
	struct elf_view v;

	TEST_EQ_FATAL(elf_view_init(&v, s->bytes, s->size), 0);
	for (size_t i = 1; i < v.n_sections; i++) {
		Elf64_Shdr h = elf_view_section(&v, i);

		for (size_t k = 0; k < TEST_COUNT(names); k++)
			if (!strcmp(elf_view_section_name(&v, &h), names[k]))
				mutate(s, h.sh_offset, h.sh_size, k == 0);
	}
}

static void check(const char *path, const char *kernel)
{
	static struct subject s;
	struct sim_module m = { 0 };
	auto_free char *bytes = NULL;
	struct symbols_symbol symbol;
	unsigned certain = 0;
	uint64_t end;

	TEST_EQ_FATAL(fd_read_file(path, 1 << 24, &bytes, &s.size), 0);
	TEST_EQ_FATAL(cubin_load((const uint8_t *)bytes, s.size, BASE, &m, &end), 0);
	s.bytes = m.relocated;
	TEST_EQ_FATAL(symbols_image_create(s.bytes, s.size, &s.image), 0);
	symbols_image_range(s.image, &s.low, &end);
	while (symbols_image_function(s.image, s.low, &symbol) < 0 || strcmp(symbol.raw, kernel) != 0)
		CU_ASSERT_FATAL((s.low += 16) < end);
	s.high = symbol.address + symbol.size;
	look(s.image, s.low, s.high, &s.facts);
	for (size_t p = 0; p < PLACES; p++)
		for (size_t i = 0; i < s.facts.n[p]; i++)
			certain += s.facts.at[p][i].state == VALUES_OK;
	TEST_EQ(certain > 4, true);
	mutate_sections(&s);
	symbols_image_destroy(s.image);
	cubin_unload(&m);
}

static void no_value_becomes_another(void)
{
	check("tests/data/cubin/many-sm_90-g.cubin", "many");
	check("tests/data/cubin/linked-sm_90-g.cubin", "first");
	check("tests/data/cubin/clang-sm_80-g.cubin", "one");
}

TEST_SUITE(values_mutate, TEST(no_value_becomes_another));
