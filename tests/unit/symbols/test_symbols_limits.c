/* SPDX-License-Identifier: MIT */
/* Debug information made to keep its reader busy. */
#include <elf.h>
#include <errno.h>

#include "symbols/debug_info.h"
#include "symbols/image.h"
#include "testlib.h"

#define EM_AMDGPU_NUMBER 224
#define EM_CUDA_NUMBER	 190
#define CODE_START	 0x1000u
#define CODE_SIZE	 0x1000u

static const char section_names[] = "\0.shstrtab\0.debug_abbrev\0.debug_info\0.debug_line";

/*
 * 1: compile unit with low_pc, high_pc; 2: an empty block; 3: a block with a sibling;
 * 4: a function with low_pc, high_pc, both addresses; 5: as 1, with stmt_list.
 */
static const uint8_t abbreviations[] = {
	1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0,
	2, 0x0b, 0, 0, 0,
	3, 0x0b, 1, 0x01, 0x13, 0, 0,
	4, 0x2e, 0, 0x11, 0x01, 0x12, 0x01, 0, 0,
	5, 0x11, 1, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0,
	0,
};

struct unit_header {
	uint32_t length;
	uint16_t version;
	uint32_t abbreviations;
	uint8_t address_size, code;
	uint64_t low, size;
} __attribute__((packed));

struct unit_with_lines {
	uint32_t length;
	uint16_t version;
	uint32_t abbreviations;
	uint8_t address_size, code;
	uint32_t lines;
	uint64_t low, size;
} __attribute__((packed));

struct function {
	uint8_t code;
	uint64_t low, high;
} __attribute__((packed));

static Elf64_Shdr section(uint32_t name, uint64_t offset, uint64_t size)
{
	return (Elf64_Shdr){ .sh_name = name, .sh_type = SHT_PROGBITS, .sh_offset = offset,
			     .sh_size = size, .sh_addralign = 1 };
}

/* An image with these sections. */
static char *make_file(uint16_t machine, const void *info, size_t info_size, const void *lines,
		       size_t lines_size, size_t *ret_size)
{
	size_t abbreviations_at = sizeof(Elf64_Ehdr) + 6 * sizeof(Elf64_Shdr) + sizeof(section_names);
	size_t info_at = abbreviations_at + sizeof(abbreviations), lines_at = info_at + info_size;
	size_t total = lines_at + lines_size;
	char *bytes = calloc(1, total);
	Elf64_Ehdr h = { .e_ident = ELFMAG, .e_type = ET_DYN, .e_machine = machine,
			 .e_version = EV_CURRENT, .e_shoff = sizeof(h), .e_ehsize = sizeof(h),
			 .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 6, .e_shstrndx = 1 };
	Elf64_Shdr s[6] = { [1] = section(1, sizeof(h) + sizeof(s), sizeof(section_names)),
			    [2] = section(11, abbreviations_at, sizeof(abbreviations)),
			    [3] = section(info_size ? 25 : 0, info_at, info_size),
			    [4] = section(0, 0, 64),
			    [5] = section(lines_size ? 37 : 0, lines_at, lines_size) };

	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	s[1].sh_type = SHT_STRTAB;
	s[4].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s[4].sh_addr = CODE_START;
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), s, sizeof(s));
	memcpy(bytes + sizeof(h) + sizeof(s), section_names, sizeof(section_names));
	memcpy(bytes + abbreviations_at, abbreviations, sizeof(abbreviations));
	if (info_size)
		memcpy(bytes + info_at, info, info_size);
	if (lines_size)
		memcpy(bytes + lines_at, lines, lines_size);
	*ret_size = total;
	return bytes;
}

/* An image whose unit has @p size bytes of DIEs, all @p pattern again and again. */
static char *make_image(uint16_t machine, const void *pattern, size_t pattern_size, size_t size,
			size_t *ret_size)
{
	struct unit_header u = { (uint32_t)(sizeof(u) - 4 + size), 4, 0, 8, 1, CODE_START, CODE_SIZE };
	char *info = calloc(1, sizeof(u) + size), *bytes;

	CU_ASSERT_PTR_NOT_NULL_FATAL(info);
	memcpy(info, &u, sizeof(u));
	for (size_t i = 0; i + pattern_size <= size; i += pattern_size)
		memcpy(info + sizeof(u) + i, pattern, pattern_size);
	bytes = make_file(machine, info, sizeof(u) + size, NULL, 0, ret_size);
	free(info);
	return bytes;
}

/* The limit is 5 s of CPU time for an image, and 0.1 s for each question more. */
static void expect_quick_of(uint16_t machine, const void *pattern, size_t pattern_size, size_t size,
			    size_t frames)
{
	static struct symbols_location location;
	struct symbols_image *image = NULL;
	uint64_t start_ns = test_cpu_ns();
	size_t total;
	char *bytes = make_image(machine, pattern, pattern_size, size, &total);

	TEST_EQ_FATAL(symbols_image_create(bytes, total, &image), 0);
	free(bytes);
	TEST_EQ(symbols_image_facts(image)->has_dwarf, true);
	for (uint64_t at = 0; at < 64; at++) {
		symbols_image_locate(image, CODE_START + at, &location);
		TEST_EQ(location.n_frames, frames);
	}
	TEST_EQ(symbols_image_has_lines(image), false);
	symbols_image_destroy(image);
	CU_ASSERT_TRUE(test_cpu_ns() - start_ns < UINT64_C(20000000000));
}

static void expect_quick(const void *pattern, size_t pattern_size, size_t size)
{
	expect_quick_of(EM_AMDGPU_NUMBER, pattern, pattern_size, size, 0);
}

static void gives_up_on_forty_million_dies(void)
{
	expect_quick("\x02", 1, (size_t)40 << 20);
}

/* dwarf_siblingof() would not come back from either of them. */
static void is_not_caught_by_siblings(void)
{
	expect_quick("\x03\x1c\x00\x00\x00", 5, 5);
	expect_quick("\x03\x1c\x00\x00\x00\x00", 6, 6000);
}

/* Each block lies inside the one before. */
static void gives_up_on_deep_nesting(void)
{
	expect_quick("\x03\x00\x00\x00\x00", 5, 5000);
}

/* Each of them claims the address, and none has a line for it. */
static void gives_up_on_functions_on_top_of_each_other(void)
{
	uint8_t function[17] = { 4 };
	uint64_t low = CODE_START, high = CODE_START + CODE_SIZE;

	memcpy(function + 1, &low, sizeof(low));
	memcpy(function + 9, &high, sizeof(high));
	expect_quick_of(EM_CUDA_NUMBER, function, sizeof(function), (size_t)40 << 20, 1);
}

#define FUNCTIONS     256u
#define FUNCTION_SIZE 256u
#define LINES_SIZE    (FUNCTIONS * FUNCTION_SIZE)

/*
 * A line program with @p n rows of a byte each behind the first one, which is line 1 at @p low.
 * @param row  19: each is one address and one line further; 1: each is the same again.
 */
static size_t make_lines(uint8_t *to, uint64_t low, uint8_t row, size_t n)
{
	static const uint8_t header[] = {
		0, 0, 0, 0, 4, 0, 27, 0, 0, 0, /* Length, version, bytes of the header from here. */
		1, 1, 1, 0xff, 4, 13,	       /* line_base -1, line_range 4, opcode_base 13 */
		0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1,
		0, 'a', '.', 'c', 0, 0, 0, 0, 0,
	};
	static const uint8_t end[] = { 2, 1, 0, 1, 1 }; /* advance_pc 1; end_sequence */
	uint32_t length;
	uint8_t *at = to + sizeof(header);

	memcpy(to, header, sizeof(header));
	memcpy(at, "\0\x09\x02", 3); /* set_address */
	memcpy(at + 3, &low, sizeof(low));
	at += 11;
	*at++ = 1; /* copy: the first row */
	memset(at, row, n);
	at += n;
	memcpy(at, end, sizeof(end));
	at += sizeof(end);
	length = (uint32_t)(at - to) - 4;
	memcpy(to, &length, sizeof(length));
	return (size_t)(at - to);
}

/* The same line program in the 64-bit format. */
static size_t widen_lines(uint8_t *to, const uint8_t *program, size_t n)
{
	uint64_t length = n, header_length = program[6];

	memset(to, 0xff, 4);
	memcpy(to + 4, &length, sizeof(length));
	memcpy(to + 12, program + 4, 2);
	memcpy(to + 14, &header_length, sizeof(header_length));
	memcpy(to + 22, program + 10, n - 10);
	return 12 + n;
}

/* Each byte of code has a line of its own, numbered from 1 on. */
static char *make_large_code(size_t *ret_size)
{
	static uint8_t lines[LINES_SIZE + 128];
	static struct {
		struct unit_with_lines unit;
		struct function functions[FUNCTIONS];
		uint8_t end;
	} __attribute__((packed)) info;

	info.unit = (struct unit_with_lines){ sizeof(info) - 4, 4, 0, 8, 5, 0, CODE_START, LINES_SIZE };
	for (size_t i = 0; i < FUNCTIONS; i++) {
		uint64_t low = CODE_START + i * FUNCTION_SIZE;

		info.functions[i] = (struct function){ 4, low, low + FUNCTION_SIZE };
	}
	return make_file(EM_AMDGPU_NUMBER, &info, sizeof(info), lines,
			 make_lines(lines, CODE_START, 19, LINES_SIZE - 1), ret_size);
}

/* The answer to one question may not depend on how many there were. */
static void answers_any_number_of_questions(void)
{
	static struct symbols_location location;
	struct symbols_image *image = NULL;
	struct debug_info *d;
	uint64_t start_ns = test_cpu_ns();
	unsigned wrong = 0;
	size_t total;
	char *bytes = make_large_code(&total);

	TEST_EQ_FATAL(symbols_image_create(bytes, total, &image), 0);
	free(bytes);
	d = symbols_image_debug_info(image);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	for (unsigned i = 0; i < 10000; i++) {
		uint64_t low = CODE_START + i * 7 % FUNCTIONS * FUNCTION_SIZE, at = low + i % FUNCTION_SIZE;
		struct debug_scope scope;

		symbols_image_locate(image, at, &location);
		wrong += debug_info_scopes(d, at, &scope, 1) != 1 || scope.low != low ||
			 debug_info_body(d, low, low + FUNCTION_SIZE) != low + 1 ||
			 location.n_frames != 1 || location.cut ||
			 location.frames[0].line != at - CODE_START + 1;
	}
	TEST_EQ(wrong, 0);
	TEST_EQ(symbols_image_debug_state(image), 0);
	symbols_image_destroy(image);
	CU_ASSERT_TRUE(test_cpu_ns() - start_ns < UINT64_C(5000000000));
}

#define UNITS	      6u
#define PROGRAM_BYTES ((uint32_t)1 << 20)

/* Units with line programs of these sizes, one behind the other, each with a page of code. */
static struct symbols_image *make_units(const uint32_t *program_bytes)
{
	struct unit_with_lines info[UNITS];
	struct symbols_image *image = NULL;
	size_t lines = 0, total, room = 0;
	uint8_t *program;
	char *bytes;

	for (size_t i = 0; i < UNITS; i++)
		room += program_bytes[i] + 128;
	program = calloc(1, room);
	CU_ASSERT_PTR_NOT_NULL_FATAL(program);
	for (size_t i = 0; i < UNITS; i++) {
		uint64_t low = CODE_START + i * CODE_SIZE;

		info[i] = (struct unit_with_lines){ sizeof(info[i]) - 4, 4, 0, 8, 5, (uint32_t)lines, low, CODE_SIZE };
		lines += make_lines(program + lines, low, 1, program_bytes[i]);
	}
	bytes = make_file(EM_AMDGPU_NUMBER, info, sizeof(info), program, lines, &total);
	TEST_EQ_FATAL(symbols_image_create(bytes, total, &image), 0);
	free(bytes);
	free(program);
	return image;
}

static bool has_line(struct symbols_image *image, size_t unit)
{
	static struct symbols_location location;

	symbols_image_locate(image, CODE_START + unit * CODE_SIZE, &location);
	return location.n_frames == 1 && location.frames[0].line == 1;
}

/* Only the programs that are needed count, and together. */
static void reads_the_lines_that_are_asked_for(void)
{
	static const uint32_t sizes[UNITS] = { 5 * PROGRAM_BYTES, PROGRAM_BYTES, PROGRAM_BYTES, PROGRAM_BYTES,
					       PROGRAM_BYTES, 16 };
	struct symbols_image *image = make_units(sizes);

	for (size_t i = 1; i < 4; i++)
		TEST_EQ(has_line(image, i), true);
	TEST_EQ(symbols_image_debug_state(image), 0);
	TEST_EQ(has_line(image, 0), false);
	TEST_EQ(symbols_image_debug_state(image), -EFBIG);
	/* One that is too large does not take the others' place. */
	TEST_EQ(has_line(image, 5), true);
	TEST_EQ(has_line(image, 4), false);
	TEST_EQ(has_line(image, 5), true);
	symbols_image_destroy(image);
}

/* The length in front of it is that of 64 bits. */
static void bounds_lines_of_the_wide_format(void)
{
	static const uint32_t sizes[] = { 16, 5 * PROGRAM_BYTES };
	uint8_t *program = malloc(sizes[1] + 128), *wide = malloc(sizes[1] + 256);
	struct symbols_image *image = NULL;
	size_t n, total;
	char *bytes;

	CU_ASSERT_FATAL(program && wide);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct unit_with_lines info = { sizeof(info) - 4, 4, 0, 8, 5, 0, CODE_START, CODE_SIZE };

		n = widen_lines(wide, program, make_lines(program, CODE_START, 1, sizes[i]));
		bytes = make_file(EM_AMDGPU_NUMBER, &info, sizeof(info), wide, n, &total);
		TEST_EQ_FATAL(symbols_image_create(bytes, total, &image), 0);
		free(bytes);
		TEST_EQ(has_line(image, 0), i == 0);
		TEST_EQ(symbols_image_debug_state(image), i == 0 ? 0 : -EFBIG);
		symbols_image_destroy(image);
	}
	free(program);
	free(wide);
}

/* As nvcc makes it with -lineinfo: without units, all tables are read, as many as there may be. */
static void bounds_lines_without_units(void)
{
	uint8_t *programs = malloc(UNITS * (PROGRAM_BYTES + 128));
	struct symbols_image *image = NULL;
	size_t n = 0, total;
	char *bytes;

	CU_ASSERT_PTR_NOT_NULL_FATAL(programs);
	for (size_t i = 0; i < UNITS; i++)
		n += make_lines(programs + n, CODE_START + i * CODE_SIZE, 1, PROGRAM_BYTES);
	bytes = make_file(EM_CUDA_NUMBER, NULL, 0, programs, n, &total);
	TEST_EQ_FATAL(symbols_image_create(bytes, total, &image), 0);
	free(bytes);
	free(programs);
	TEST_EQ(has_line(image, 0), true);
	TEST_EQ(has_line(image, UNITS - 1), false);
	TEST_EQ(symbols_image_debug_state(image), -EFBIG);
	symbols_image_destroy(image);
}

TEST_SUITE(symbols_limits, TEST(reads_the_lines_that_are_asked_for), TEST(bounds_lines_of_the_wide_format),
	   TEST(bounds_lines_without_units), TEST(answers_any_number_of_questions),
	   TEST(gives_up_on_forty_million_dies), TEST(is_not_caught_by_siblings),
	   TEST(gives_up_on_deep_nesting), TEST(gives_up_on_functions_on_top_of_each_other));
