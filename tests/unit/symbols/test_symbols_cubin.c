/* SPDX-License-Identifier: MIT */
/* Source lines of cubins, against what NVIDIA's disassembler says of every instruction. */
#include <elf.h>
#include <inttypes.h>

#include "base/fd.h"
#include "symbols/image.h"
#include "sim.h"
#include "testlib.h"

#define CUBIN_DATA "tests/data/cubin/"
#define CORE_DATA  "tests/data/cudacore/"
#define BASE	   UINT64_C(0x7f0a00000000)
#define STEP	   16 /* bytes of an instruction */
#define R_CUDA_64  2

static const char *const with_debug[] = {
	CUBIN_DATA "spin-sm_90-g", CUBIN_DATA "linked-sm_90-g", CUBIN_DATA "clang-sm_80-g",
	CORE_DATA "plant-sm90", CORE_DATA "plant-sm90-13",
};
static const char *const with_lines[] = {
	CUBIN_DATA "spin-sm_80", CUBIN_DATA "spin-sm_90", CUBIN_DATA "mixed-sm_90",
};

DEFINE_AUTO(struct symbols_image *, symbols_image_destroy);

static struct symbols_location location;

/* How far the addresses of an image have come. */
enum stage {
	AS_COMPILED,
	PLACED,	   /* sections have their addresses, and nothing else */
	NAMED,	   /* symbols as well */
	RELOCATED, /* debug information as well: what a driver hands out */
};

struct cubin {
	uint8_t *bytes;
	size_t size;
	Elf64_Ehdr header;
};

static Elf64_Shdr section_of(const struct cubin *c, size_t i)
{
	Elf64_Shdr s;

	memcpy(&s, c->bytes + c->header.e_shoff + i * sizeof(s), sizeof(s));
	return s;
}

static const char *section_name(const struct cubin *c, size_t i)
{
	Elf64_Shdr names = section_of(c, c->header.e_shstrndx);

	return (const char *)c->bytes + names.sh_offset + section_of(c, i).sh_name;
}

static bool is_code(const struct cubin *c, size_t i)
{
	Elf64_Shdr s = section_of(c, i);

	return s.sh_type == SHT_PROGBITS && s.sh_flags & SHF_EXECINSTR;
}

/* Section headers, symbols, or both, of the relocated image over those of the compiled one. */
static void take_over(struct cubin *c, const uint8_t *relocated, enum stage stage)
{
	for (size_t i = 1; i < c->header.e_shnum; i++) {
		Elf64_Shdr s = section_of(c, i);
		size_t at = c->header.e_shoff + i * sizeof(s);

		memcpy(c->bytes + at, relocated + at, sizeof(s));
		if (s.sh_type == SHT_SYMTAB && stage >= NAMED)
			memcpy(c->bytes + s.sh_offset, relocated + s.sh_offset, s.sh_size);
	}
}

/* Relocated by the loader of the simulated GPUs, which shares no code with what is tested. */
static struct cubin load(const char *name, enum stage stage)
{
	struct sim_module module = { 0 };
	struct cubin c = { 0 };
	char path[512], *data;
	uint64_t end;

	snprintf(path, sizeof(path), "%s.cubin", name);
	TEST_EQ_FATAL(fd_read_file(path, SYMBOLS_IMAGE_BYTES_MAX, &data, &c.size), 0);
	c.bytes = (uint8_t *)data;
	memcpy(&c.header, c.bytes, sizeof(c.header));
	TEST_EQ_FATAL(cubin_load(c.bytes, c.size, BASE, &module, &end), 0);
	if (stage == RELOCATED)
		memcpy(c.bytes, module.relocated, c.size);
	else if (stage != AS_COMPILED)
		take_over(&c, module.relocated, stage);
	cubin_unload(&module);
	return c;
}

static struct symbols_image *open_image(const struct cubin *c)
{
	struct symbols_image *image = NULL;

	TEST_EQ_FATAL(symbols_image_create(test_tail_dup(c->bytes, c->size), c->size, &image), 0);
	return image;
}

/* "FILE:LINE FILE:LINE": innermost first, as the disassembler's rows have it. */
static void print_chain(char *text, size_t size)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < location.n_frames && n < size; i++) {
		const struct symbols_frame *f = &location.frames[i];

		if (f->file)
			n += (size_t)snprintf(text + n, size - n, "%s%s:%u", n ? " " : "", f->file,
					      f->line);
	}
}

/* Every instruction from one row up to the next.  @return how many. */
static size_t compare_rows(struct symbols_image *image, uint64_t from, uint64_t to, const char *want)
{
	size_t n = 0;

	for (uint64_t at = from; at < to; at += STEP, n++) {
		struct symbols_symbol symbol;
		char ours[4096];

		symbols_image_locate(image, at, &location);
		print_chain(ours, sizeof(ours));
		TEST_ROW_STR(at, ours, want);
		TEST_ROW_EQ(at, location.cut, false);
		if (symbols_image_function(image, at, &symbol) < 0 || !location.n_frames)
			continue;
		TEST_ROW_STR(at, location.frames[location.n_frames - 1].raw, symbol.raw);
		for (size_t k = 0; k < location.n_frames; k++)
			TEST_ROW_EQ(at, location.frames[k].inlined, k + 1 < location.n_frames);
	}
	return n;
}

static size_t compare_section(const struct cubin *c, struct symbols_image *image, size_t i, FILE *f)
{
	Elf64_Shdr code = section_of(c, i);
	char line[4096], want[4096] = "";
	uint64_t from = 0;
	size_t n = 0;
	long start = ftell(f);

	while (fgets(line, sizeof(line), f) && line[0] != '.') {
		char *chain;
		uint64_t at = strtoull(line, &chain, 16);

		n += compare_rows(image, code.sh_addr + from, code.sh_addr + at, want);
		chain[strcspn(chain, "\n")] = '\0';
		snprintf(want, sizeof(want), "%s", chain + strspn(chain, " "));
		from = at;
		start = ftell(f);
	}
	fseek(f, start, SEEK_SET);
	return n + compare_rows(image, code.sh_addr + from, code.sh_addr + code.sh_size, want);
}

/* @return instructions compared. */
static size_t compare_with_peer(const char *name, const struct cubin *c)
{
	auto_call(symbols_image_destroyp) struct symbols_image *image = open_image(c);
	char path[512], line[4096];
	size_t n = 0, sections = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s.expect", name);
	f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f)) {
		size_t i = 1;

		line[strcspn(line, "\n")] = '\0';
		while (i < c->header.e_shnum && strcmp(section_name(c, i), line))
			i++;
		CU_ASSERT_TRUE_FATAL(i < c->header.e_shnum);
		n += compare_section(c, image, i, f);
		sections++;
	}
	fclose(f);
	for (size_t i = 1; i < c->header.e_shnum; i++)
		sections -= is_code(c, i);
	TEST_EQ(sections, 0);
	TEST_EQ(symbols_image_has_lines(image), true);
	TEST_EQ(symbols_image_debug_state(image), 0);
	return n;
}

static void compare_all(const char *const *names, size_t n_names, enum stage stage)
{
	for (size_t i = 0; i < n_names; i++) {
		struct cubin c = load(names[i], stage);

		CU_ASSERT_TRUE(compare_with_peer(names[i], &c) > 60);
		free(c.bytes);
	}
}

/* nvcc's units say nothing of their extent, clang's say something wrong. */
static void locates_code_with_full_debug_information(void)
{
	compare_all(with_debug, TEST_COUNT(with_debug), RELOCATED);
}

/* mixed-sm_90: also where code with full debug information was linked to it. */
static void locates_code_with_lines_only(void)
{
	compare_all(with_lines, TEST_COUNT(with_lines), RELOCATED);
}

/* Relocations with and without addends: those of sm_80 are without for lines. */
static void relocates_what_was_not(void)
{
	for (enum stage stage = PLACED; stage <= NAMED; stage++) {
		compare_all(with_debug, TEST_COUNT(with_debug), stage);
		compare_all(with_lines, TEST_COUNT(with_lines), stage);
	}
}

/* All functions begin at 0 then, and any answer could be another function's. */
static void tells_nothing_of_code_without_addresses(void)
{
	for (size_t i = 0; i < TEST_COUNT(with_debug); i++) {
		struct cubin c = load(with_debug[i], AS_COMPILED);
		auto_call(symbols_image_destroyp) struct symbols_image *image = open_image(&c);

		for (uint64_t at = 0; at < 0x400; at += STEP) {
			symbols_image_locate(image, at, &location);
			TEST_ROW_EQ(at, location.n_frames, 0);
		}
		TEST_EQ(symbols_image_has_lines(image), false);
		TEST_EQ(symbols_image_facts(image)->has_dwarf, true);
		free(c.bytes);
	}
}

static size_t find_section(const struct cubin *c, const char *name)
{
	size_t i = 1;

	while (i < c->header.e_shnum && strcmp(section_name(c, i), name))
		i++;
	CU_ASSERT_TRUE_FATAL(i < c->header.e_shnum);
	return i;
}

/* Functions are known and their lines are gone: that is not "has lines". */
static void knows_that_lines_are_missing(void)
{
	struct cubin c = load(with_debug[0], RELOCATED);
	auto_call(symbols_image_destroyp) struct symbols_image *image = NULL;
	size_t i = find_section(&c, ".debug_line");
	Elf64_Shdr s = section_of(&c, i);

	memset(c.bytes + s.sh_offset, 0, s.sh_size);
	image = open_image(&c);
	TEST_EQ(symbols_image_facts(image)->has_dwarf, true);
	TEST_EQ(symbols_image_has_lines(image), false);
	symbols_image_locate(image, BASE + 0x40, &location);
	TEST_EQ(location.n_frames, 1);
	TEST_EQ(location.frames[0].line, 0);
	TEST_STR(location.frames[0].function, "polish(float, int)");
	free(c.bytes);
}

/* Relocations into something that only calls itself debug information. */
static void relocates_nothing_but_debug_information(void)
{
	struct cubin c = load(with_debug[0], NAMED);
	auto_call(symbols_image_destroyp) struct symbols_image *image = NULL;
	size_t line = find_section(&c, ".debug_line");
	Elf64_Shdr s = section_of(&c, line), strings = section_of(&c, find_section(&c, ".strtab"));
	Elf64_Shdr r = section_of(&c, find_section(&c, ".rela.debug_line"));
	const uint8_t *names = c.bytes + strings.sh_offset;
	const uint8_t *name = memmem(names, strings.sh_size, "\0_Z6polishfi", 13);
	struct symbols_symbol symbol;
	Elf64_Rela e;

	CU_ASSERT_PTR_NOT_NULL_FATAL(name);
	s.sh_offset = strings.sh_offset;
	s.sh_size = strings.sh_size;
	memcpy(c.bytes + c.header.e_shoff + line * sizeof(s), &s, sizeof(s));
	for (uint64_t k = 0; k < r.sh_size / sizeof(e); k++) {
		memcpy(&e, c.bytes + r.sh_offset + k * sizeof(e), sizeof(e));
		e.r_offset = (uint64_t)(name + 1 - names);
		memcpy(c.bytes + r.sh_offset + k * sizeof(e), &e, sizeof(e));
	}
	image = open_image(&c);
	for (uint64_t pc = BASE; pc < BASE + 0x2000; pc += STEP)
		symbols_image_locate(image, pc, &location);
	TEST_EQ_FATAL(symbols_image_function(image, BASE, &symbol), 0);
	TEST_STR(symbol.raw, "_Z6polishfi");
	free(c.bytes);
}

TEST_SUITE(symbols_cubin, TEST(locates_code_with_full_debug_information),
	   TEST(locates_code_with_lines_only), TEST(relocates_what_was_not),
	   TEST(tells_nothing_of_code_without_addresses), TEST(knows_that_lines_are_missing),
	   TEST(relocates_nothing_but_debug_information));
