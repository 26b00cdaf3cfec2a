/* SPDX-License-Identifier: MIT */
/* Debug information made to keep its reader busy. */
#include <elf.h>

#include "symbols/image.h"
#include "testlib.h"

#define EM_AMDGPU_NUMBER 224
#define EM_CUDA_NUMBER	 190
#define CODE_START	 0x1000u
#define CODE_SIZE	 0x1000u

static const char section_names[] = "\0.shstrtab\0.debug_abbrev\0.debug_info";

/*
 * 1: compile unit with low_pc, high_pc; 2: an empty block; 3: a block with a sibling;
 * 4: a function with low_pc, high_pc, both addresses.
 */
static const uint8_t abbreviations[] = {
	1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0,
	2, 0x0b, 0, 0, 0,
	3, 0x0b, 1, 0x01, 0x13, 0, 0,
	4, 0x2e, 0, 0x11, 0x01, 0x12, 0x01, 0, 0,
	0,
};

struct unit_header {
	uint32_t length;
	uint16_t version;
	uint32_t abbreviations;
	uint8_t address_size, code;
	uint64_t low, size;
} __attribute__((packed));

static Elf64_Shdr section(uint32_t name, uint64_t offset, uint64_t size)
{
	return (Elf64_Shdr){ .sh_name = name, .sh_type = SHT_PROGBITS, .sh_offset = offset,
			     .sh_size = size, .sh_addralign = 1 };
}

/* An image whose unit has @p size bytes of DIEs, all @p pattern again and again. */
static char *make_image(uint16_t machine, const void *pattern, size_t pattern_size, size_t size,
			size_t *ret_size)
{
	size_t abbreviations_at = sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Shdr) + sizeof(section_names);
	size_t info_at = abbreviations_at + sizeof(abbreviations);
	size_t total = info_at + sizeof(struct unit_header) + size;
	char *bytes = calloc(1, total);
	Elf64_Ehdr h = { .e_ident = ELFMAG, .e_type = ET_DYN, .e_machine = machine,
			 .e_version = EV_CURRENT, .e_shoff = sizeof(h), .e_ehsize = sizeof(h),
			 .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 5, .e_shstrndx = 1 };
	Elf64_Shdr s[5] = { [1] = section(1, sizeof(h) + sizeof(s), sizeof(section_names)),
			    [2] = section(11, abbreviations_at, sizeof(abbreviations)),
			    [3] = section(25, info_at, sizeof(struct unit_header) + size),
			    [4] = section(0, 0, 64) };
	struct unit_header u = { (uint32_t)(sizeof(u) - 4 + size), 4, 0, 8, 1, CODE_START, CODE_SIZE };

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
	memcpy(bytes + info_at, &u, sizeof(u));
	for (size_t i = 0; i + pattern_size <= size; i += pattern_size)
		memcpy(bytes + total - size + i, pattern, pattern_size);
	*ret_size = total;
	return bytes;
}

/* The limit is 5 s of CPU time for an image, however often it is asked. */
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

TEST_SUITE(symbols_limits, TEST(gives_up_on_forty_million_dies), TEST(is_not_caught_by_siblings),
	   TEST(gives_up_on_deep_nesting), TEST(gives_up_on_functions_on_top_of_each_other));
