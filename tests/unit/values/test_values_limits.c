/* SPDX-License-Identifier: MIT */
/* Functions that are made to keep whoever lists their variables busy. */
#include <elf.h>

#include "base/out.h"
#include "symbols/image.h"
#include "testlib.h"
#include "values/scope.h"

#define EM_AMDGPU_NUMBER 224
#define CODE_START	 0x1000u
#define CODE_SIZE	 0x1000u
#define HEADER_SIZE	 11u /* Of a unit in DWARF 4. */
/* The time for all of a request is 3 s. */
#define CPU_NS_MAX UINT64_C(1500000000)

static const char section_names[] = "\0.shstrtab\0.debug_abbrev\0.debug_info";

/*
 * 1: compile unit with low_pc, high_pc; 2: an abstract function; 3: an instance of one, with low_pc, high_pc;
 * 4: a variable of which nothing is said; 5: an instance of one; 6: a variable with many attributes.
 */
static const uint8_t abbreviations[] = {
	1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0,
	2, 0x2e, 1, 0x20, 0x0b, 0, 0,
	3, 0x2e, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0,
	4, 0x34, 0, 0, 0,
	5, 0x34, 0, 0x31, 0x13, 0, 0,
	6, 0x34, 0,
};

/* An attribute of a producer's own that is just there. */
static const uint8_t attribute[] = { 0x81, 0x40, 0x19 };

struct instance {
	uint8_t code;
	uint32_t origin;
} __attribute__((packed));

struct function {
	struct instance of;
	uint64_t low, size;
} __attribute__((packed));

static Elf64_Shdr section(uint32_t name, uint64_t offset, uint64_t size)
{
	return (Elf64_Shdr){ .sh_name = name, .sh_type = SHT_PROGBITS, .sh_offset = offset, .sh_size = size,
			     .sh_addralign = 1 };
}

static struct symbols_image *make_image(const struct out *abbrev, const struct out *info)
{
	Elf64_Ehdr h = { .e_ident = ELFMAG, .e_type = ET_DYN, .e_machine = EM_AMDGPU_NUMBER, .e_version = EV_CURRENT,
			 .e_shoff = sizeof(h), .e_ehsize = sizeof(h), .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 5,
			 .e_shstrndx = 1 };
	Elf64_Shdr s[5] = { 0 };
	auto_out struct out file = { 0 };
	struct symbols_image *image = NULL;

	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	s[1] = section(1, sizeof(h) + sizeof(s), sizeof(section_names));
	s[1].sh_type = SHT_STRTAB;
	s[2] = section(11, s[1].sh_offset + s[1].sh_size, abbrev->size);
	s[3] = section(25, s[2].sh_offset + s[2].sh_size, info->size);
	s[4] = section(0, 0, 64);
	s[4].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s[4].sh_addr = CODE_START;
	out_bytes(&file, &h, sizeof(h));
	out_bytes(&file, s, sizeof(s));
	out_bytes(&file, section_names, sizeof(section_names));
	out_bytes(&file, abbrev->data, abbrev->size);
	out_bytes(&file, info->data, info->size);
	TEST_EQ_FATAL(symbols_image_create(file.data, file.size, &image), 0);
	return image;
}

static void begin_unit(struct out *info)
{
	const uint64_t code[2] = { CODE_START, CODE_SIZE };
	const struct {
		uint32_t length;
		uint16_t version;
		uint32_t abbreviations;
		uint8_t address_size, code;
	} __attribute__((packed)) header = { 0, 4, 0, 8, 1 };

	out_bytes(info, &header, sizeof(header));
	out_bytes(info, code, sizeof(code));
}

static void add_function(struct out *info, uint32_t origin)
{
	const struct function f = { { 3, origin }, CODE_START, CODE_SIZE };

	out_bytes(info, &f, sizeof(f));
}

static void add_variables(struct out *info, uint8_t code, uint32_t origin, size_t n)
{
	const struct instance v = { code, origin };

	for (size_t i = 0; i < n; i++)
		out_bytes(info, &v, code == 5 ? sizeof(v) : 1);
}

/* @return how many variables there are, as far as they are listed. */
static size_t expect_quick(struct out *info, size_t attributes, bool is_cut)
{
	auto_out struct out abbrev = { 0 };
	uint32_t length = (uint32_t)(info->size - sizeof(length));
	struct symbols_image *image;
	struct values_image *v;
	struct values_scope s;
	uint64_t start_ns;
	size_t n;

	memcpy(info->data, &length, sizeof(length));
	out_bytes(&abbrev, abbreviations, sizeof(abbreviations));
	for (size_t i = 0; i < attributes; i++)
		out_bytes(&abbrev, attribute, sizeof(attribute));
	out_bytes(&abbrev, "\0\0", 3);
	image = make_image(&abbrev, info);
	TEST_EQ_FATAL(values_image_open(image, &v), 0);
	start_ns = test_cpu_ns();
	TEST_EQ(values_scope_find(v, CODE_START + 8, 0, &s), 0);
	CU_ASSERT(test_cpu_ns() - start_ns < CPU_NS_MAX);
	TEST_EQ(s.cut, is_cut);
	n = s.n;
	values_scope_deinit(&s);
	symbols_image_destroy(image);
	return n;
}

/* Each of those that the abstract function has is looked for among all that the instance has. */
static void many_variables_and_as_many_abstract_ones(void)
{
	auto_out struct out info = { 0 };
	uint32_t abstract;

	begin_unit(&info);
	abstract = (uint32_t)info.size;
	out_bytes(&info, "\2\1", 2);
	add_variables(&info, 4, 0, 190000);
	out_char(&info, '\0');
	add_function(&info, abstract);
	add_variables(&info, 5, abstract, 4000);
	out_bytes(&info, "\0", 2);
	TEST_EQ(expect_quick(&info, 1, true) >= 4000, true);
}

static void variables_with_very_many_attributes(void)
{
	auto_out struct out info = { 0 };

	begin_unit(&info);
	add_function(&info, HEADER_SIZE);
	add_variables(&info, 6, 0, 4000);
	out_bytes(&info, "\0", 2);
	TEST_EQ(expect_quick(&info, 1000000, false), 0);
}

static void instances_of_one_with_very_many_attributes(void)
{
	auto_out struct out info = { 0 };
	uint32_t wide;

	begin_unit(&info);
	wide = (uint32_t)(info.size + sizeof(struct function) + 4000 * sizeof(struct instance) + 1);
	add_function(&info, HEADER_SIZE);
	add_variables(&info, 5, wide, 4000);
	out_char(&info, '\0');
	add_variables(&info, 6, 0, 1);
	out_char(&info, '\0');
	TEST_EQ(expect_quick(&info, 1000000, true), 0);
}

/* As many as compilers write are no reason to leave one out. */
static void attributes_of_usual_number(void)
{
	auto_out struct out info = { 0 };

	begin_unit(&info);
	add_function(&info, HEADER_SIZE);
	add_variables(&info, 6, 0, 3);
	out_bytes(&info, "\0", 2);
	TEST_EQ(expect_quick(&info, 100, false), 3);
}

TEST_SUITE(values_limits, TEST(many_variables_and_as_many_abstract_ones), TEST(variables_with_very_many_attributes),
	   TEST(instances_of_one_with_very_many_attributes), TEST(attributes_of_usual_number));
