/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "disasm/disasm.h"
#include "testlib.h"

DEFINE_AUTO(struct disasm *, disasm_close);

static struct disasm *open_for(const char *cpu, uint32_t lanes, const char *library)
{
	const struct disasm_options o = { .cpu = cpu, .lanes = lanes, .library = library };
	struct disasm *d = NULL;

	TEST_EQ_FATAL(disasm_open(&o, &d), 0);
	return d;
}

/* ---- a library that misbehaves: this program itself, which "" names ---- */

#define EXPORT __attribute__((visibility("default")))
#define MISBEHAVING ""

EXPORT void LLVMInitializeAMDGPUTargetInfo(void);
EXPORT void LLVMInitializeAMDGPUTargetMC(void);
EXPORT void LLVMInitializeAMDGPUDisassembler(void);
EXPORT void *LLVMCreateDisasmCPUFeatures(const char *triple, const char *cpu, const char *features,
					 void *info, int tag_type, void *get_op, void *look_up);
EXPORT size_t LLVMDisasmInstruction(void *context, uint8_t *bytes, uint64_t size, uint64_t pc,
				    char *text, size_t text_size);

void LLVMInitializeAMDGPUTargetInfo(void)
{
}

void LLVMInitializeAMDGPUTargetMC(void)
{
}

void LLVMInitializeAMDGPUDisassembler(void)
{
}

void *LLVMCreateDisasmCPUFeatures(const char *triple, const char *cpu, const char *features,
				  void *info, int tag_type, void *get_op, void *look_up)
{
	if (!strcmp(cpu, "gfx666"))
		abort();
	if (!strcmp(cpu, "gfx942"))
		fprintf(stderr, "not a recognized processor\n");
	return (void *)(uintptr_t)1;
}

size_t LLVMDisasmInstruction(void *context, uint8_t *bytes, uint64_t size, uint64_t pc, char *text,
			     size_t text_size)
{
	size_t n = 4;

	switch (bytes[0]) {
	case 'A':
		abort();
	case 'B':
		n = 1000;
		break;
	case 'U':
		n = 3;
		break;
	case 'L':
		memset(text, 'x', text_size);
		return n;
	case 'E':
		snprintf(text, text_size, "\t\033[2Jv_x \t v0\n");
		return n;
	case 'O':
		snprintf(text, text_size, "open %d", open("/etc/passwd", O_RDONLY) < 0 ? errno : 0);
		return n;
	}
	snprintf(text, text_size, "v_good");
	return n;
}

static void text_of(struct disasm *d, const char *bytes, struct disasm_line *ret)
{
	disasm_one(d, bytes, strlen(bytes), 0, ret);
}

static void the_library_may_do_what_it_likes(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, MISBEHAVING);
	char open_text[32];
	struct disasm_line line;

	snprintf(open_text, sizeof(open_text), "open %d", EPERM);
	const struct {
		const char *bytes, *text;
	} rows[] = {
		{ "good", "v_good" },	{ "Big!", ".long 0x21676942" },
		{ "Uneven", ".long 0x76656e55" }, { "Esc!", "?[2Jv_x v0" },
		{ "Open", open_text },
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		text_of(d, rows[i].bytes, &line);
		TEST_ROW_STR(i, line.text, rows[i].text);
		TEST_ROW_EQ(i, line.size, 4);
	}
	text_of(d, "Long", &line);
	TEST_EQ(strlen(line.text), DISASM_TEXT_SIZE - 1);
}

/* Every crash costs one instruction, up to a limit; then it says so. */
static void crashes_are_survived(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, MISBEHAVING);
	struct disasm_line line;

	for (int i = 0; i < 20; i++) {
		text_of(d, "Abrt", &line);
		TEST_ROW_STR(i, line.text, ".long 0x74726241");
		text_of(d, "good", &line);
		TEST_ROW_STR(i, line.text, i < 8 ? "v_good" : ".long 0x646f6f67");
		TEST_ROW_EQ(i, disasm_note(d) != NULL, i >= 8);
	}
}

/* It aborts on one processor, and only complains about another, where a relative will do. */
static void processors_that_the_library_lacks(void)
{
	auto_call(disasm_closep) struct disasm *a = open_for("gfx666", 64, MISBEHAVING);
	auto_call(disasm_closep) struct disasm *b = open_for("gfx942", 64, MISBEHAVING);

	CU_ASSERT_PTR_NULL(disasm_source(a));
	CU_ASSERT_PTR_NOT_NULL(strstr(disasm_note(a), "does not know gfx666"));
	CU_ASSERT_PTR_NOT_NULL(disasm_source(b));
	CU_ASSERT_PTR_NOT_NULL(strstr(disasm_note(b), "instructions of gfx940"));
}

/* ---- the real one ---- */

/* NULL when this machine has no LLVM that knows the processor; then the test is skipped. */
static struct disasm *open_llvm(const char *cpu, uint32_t lanes)
{
	struct disasm *d = open_for(cpu, lanes, NULL);

	if (disasm_source(d))
		return d;
	test_skip("%s", disasm_note(d));
	disasm_close(d);
	return NULL;
}

/* clang -mcpu=gfx90a: s_nop 0; s_load_dwordx2 s[0:1], s[4:5], 0x0; s_branch -3; s_endpgm */
static const uint32_t gfx90a_code[] = { 0xbf800000, 0xc0060002, 0x00000000, 0xbf82fffc,
					0xbf810000 };

static void instructions_of_gfx9(void)
{
	auto_call(disasm_closep) struct disasm *d = open_llvm("gfx90a", 64);
	struct disasm_line line;

	if (!d)
		return;
	CU_ASSERT_PTR_NULL(disasm_note(d));
	disasm_one(d, gfx90a_code, sizeof(gfx90a_code), 0x1000, &line);
	TEST_STR(line.text, "s_nop 0");
	TEST_EQ(line.size, 4);
	CU_ASSERT(line.decoded && !line.has_target);
	disasm_one(d, gfx90a_code + 1, sizeof(gfx90a_code) - 4, 0x1004, &line);
	TEST_STR(line.text, "s_load_dwordx2 s[0:1], s[4:5], 0x0");
	TEST_EQ(line.size, 8);
	disasm_one(d, gfx90a_code + 3, 8, 0x100c, &line);
	TEST_EQ(strncmp(line.text, "s_branch ", 9), 0);
	CU_ASSERT(line.has_target);
	TEST_EQ(line.target, 0x1000);
}

/* The number of lanes decides what the mask register is called. */
static void lanes_matter_on_gfx10(void)
{
	/* v_cmp_eq_u32 vcc, v0, v1 */
	static const uint32_t code = 0x7d840300;
	static const struct {
		uint32_t lanes;
		const char *text;
	} rows[] = { { 32, "v_cmp_eq_u32_e32 vcc_lo, v0, v1" }, { 64, "v_cmp_eq_u32_e32 vcc, v0, v1" } };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_call(disasm_closep) struct disasm *d = open_llvm("gfx1030", rows[i].lanes);
		struct disasm_line line;

		if (!d)
			return;
		disasm_one(d, &code, sizeof(code), 0, &line);
		TEST_STR(line.text, rows[i].text);
	}
}

/* Never more than there is: an instruction that is cut off is shown as words. */
static void never_reads_beyond_the_end(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, NULL);
	struct disasm_line line;

	for (size_t size = 1; size < 8; size++) {
		const uint8_t *bytes = test_tail_dup(gfx90a_code + 1, size);

		disasm_one(d, bytes, size, 0, &line);
		TEST_ROW_EQ(size, line.decoded, false);
		TEST_ROW_EQ(size, line.size, size < 4 ? size : 4);
		if (size == 3)
			TEST_STR(line.text, ".byte 0x02, 0x00, 0x06");
		if (size == 4)
			TEST_STR(line.text, ".long 0xc0060002");
	}
}

static void without_library_there_are_words(void)
{
	static const char *const libraries[] = { "/nonexistent/libLLVM.so", "libc.so.6" };
	struct disasm_line line;

	for (size_t i = 0; i < TEST_COUNT(libraries); i++) {
		auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, libraries[i]);

		CU_ASSERT_PTR_NULL(disasm_source(d));
		CU_ASSERT_PTR_NOT_NULL_FATAL(disasm_note(d));
		CU_ASSERT_PTR_NOT_NULL(strstr(disasm_note(d), "words"));
		disasm_one(d, gfx90a_code, sizeof(gfx90a_code), 0x1000, &line);
		TEST_STR(line.text, ".long 0xbf800000");
		CU_ASSERT_FALSE(line.decoded);
	}
}

/* LLVM aborts on it: that costs a child, not this process. */
static void unknown_processors_are_named(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx9999", 64, NULL);

	CU_ASSERT_PTR_NULL(disasm_source(d));
	CU_ASSERT_PTR_NOT_NULL_FATAL(disasm_note(d));
}

/* Of NVIDIA's, the length is known: lines can be counted, and asked for in front of an address. */
static void words_of_their_length(void)
{
	static const struct { const char *cpu; uint32_t size; const char *text; } rows[] = {
		{ "sm_52", 8, ".quad 0x0706050403020100" },
		{ "sm_90a", 16, ".quad 0x0706050403020100, 0x0f0e0d0c0b0a0908" },
	};
	uint8_t *code = test_tail_dup((uint8_t[40]){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, 40);
	const struct disasm_range range = { .start = 0x1000, .around = 0x1010, .before = 9, .count = 9 };

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		auto_call(disasm_closep) struct disasm *d = open_for(rows[i].cpu, 0, NULL);
		struct disasm_line lines[18];
		size_t at = 0;
		ssize_t n = disasm_lines(d, code, 40, &range, lines, &at);

		CU_ASSERT_PTR_NULL(disasm_source(d));
		CU_ASSERT_PTR_NOT_NULL_FATAL(disasm_note(d));
		TEST_ROW_EQ(i, at, 16 / rows[i].size);
		TEST_ROW_EQ(i, n, 40 / rows[i].size + (40 % rows[i].size != 0));
		TEST_STR(lines[0].text, rows[i].text);
		TEST_ROW_EQ(i, lines[n - 1].size, 8);
		CU_ASSERT_FALSE(lines[0].decoded);
	}
}

static void names_that_no_processor_has(void)
{
	static const char *const names[] = { "", "gfx", "x86-64", "gfx90a:xnack+", "gfx/../x",
					     "gfx0123456789012345678901", "sm_", "sm_9", "sm_90x",
					     "sm_1234567", "sm_90a/../x" };

	for (size_t i = 0; i < TEST_COUNT(names); i++) {
		const struct disasm_options o = { .cpu = names[i] };
		struct disasm *d = NULL;

		TEST_ROW_EQ(i, disasm_open(&o, &d), -EINVAL);
		CU_ASSERT_PTR_NULL(d);
	}
}

/* Junk of every kind: each line lies in the bytes, and lines join without holes. */
static void hostile_bytes(void)
{
	static const char *const cpus[] = { "gfx90a", "gfx942", "gfx1030", "gfx1100" };

	for (size_t i = 0; i < TEST_COUNT(cpus); i++) {
		auto_call(disasm_closep) struct disasm *d = open_for(cpus[i], 0, NULL);
		uint8_t junk[4099], *bytes;
		uint32_t x = 12345;
		size_t at = 0;

		for (size_t j = 0; j < sizeof(junk); j++) {
			x = x * 1664525u + 1013904223u;
			junk[j] = (uint8_t)(x >> 24);
		}
		bytes = test_tail_dup(junk, sizeof(junk));
		while (at < sizeof(junk)) {
			struct disasm_line line;

			disasm_one(d, bytes + at, sizeof(junk) - at, at, &line);
			CU_ASSERT_FATAL(line.size > 0 && line.size <= sizeof(junk) - at);
			CU_ASSERT_FATAL(strlen(line.text) > 0);
			at += line.size;
		}
	}
}

static void lines_around_an_address(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, NULL);
	struct disasm_line lines[16];
	const struct disasm_range r = { .start = 0x1000, .around = 0x100c, .before = 2, .count = 9 };
	size_t at = 77;
	ssize_t n = disasm_lines(d, gfx90a_code, sizeof(gfx90a_code), &r, lines, &at);

	TEST_EQ(at, 2);
	TEST_EQ_FATAL(n, 4);
	TEST_EQ(lines[2].address, 0x100c);
	TEST_EQ(lines[3].address, 0x1010);
	if (!disasm_source(d))
		return;
	TEST_EQ(lines[0].address, 0x1000);
	TEST_EQ(lines[1].address, 0x1004);
	TEST_EQ(lines[1].size, 8);
}

/* Inside of an instruction: what is in front of it is no instruction then. */
static void around_the_middle_of_an_instruction(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, NULL);
	struct disasm_line lines[16];
	const struct disasm_range r = { .start = 0x1000, .around = 0x1008, .before = 9, .count = 1 };
	size_t at;
	ssize_t n = disasm_lines(d, gfx90a_code, sizeof(gfx90a_code), &r, lines, &at);

	TEST_EQ_FATAL(n, 3);
	TEST_EQ(at, 2);
	TEST_EQ(lines[1].address, 0x1004);
	TEST_EQ(lines[1].size, 4);
	TEST_STR(lines[1].text, ".long 0xc0060002");
	TEST_EQ(lines[2].address, 0x1008);
}

static void addresses_outside_are_refused(void)
{
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, "/nonexistent");
	static const uint64_t around[] = { 0, 0xfff, 0x1014, UINT64_MAX };
	struct disasm_line lines[4];
	size_t at = 77;

	for (size_t i = 0; i < TEST_COUNT(around); i++) {
		const struct disasm_range r = { 0x1000, around[i], 1, 1 };

		TEST_ROW_EQ(i, disasm_lines(d, gfx90a_code, sizeof(gfx90a_code), &r, lines, &at),
			    -EINVAL);
		TEST_ROW_EQ(i, at, 77);
	}
}

/* A long function: as many lines as asked for, the nearest ones, without holes. */
static void far_from_the_start(void)
{
	static uint32_t code[50000];
	auto_call(disasm_closep) struct disasm *d = open_for("gfx90a", 64, NULL);
	const struct disasm_range r = { 0, sizeof(code) - 8, 100, 100 };
	static struct disasm_line lines[200];
	size_t at;
	ssize_t n;

	for (size_t i = 0; i < TEST_COUNT(code); i++)
		code[i] = gfx90a_code[0];
	n = disasm_lines(d, code, sizeof(code), &r, lines, &at);
	TEST_EQ_FATAL(n, 102);
	TEST_EQ(at, 100);
	for (ssize_t i = 0; i < n; i++)
		TEST_EQ(lines[i].address, sizeof(code) - 8 - 400 + (uint64_t)i * 4);
}

TEST_SUITE(disasm, TEST(the_library_may_do_what_it_likes), TEST(crashes_are_survived),
	   TEST(processors_that_the_library_lacks), TEST(instructions_of_gfx9), TEST(lanes_matter_on_gfx10),
	   TEST(never_reads_beyond_the_end), TEST(without_library_there_are_words),
	   TEST(unknown_processors_are_named), TEST(words_of_their_length), TEST(names_that_no_processor_has),
	   TEST(hostile_bytes), TEST(lines_around_an_address),
	   TEST(around_the_middle_of_an_instruction), TEST(addresses_outside_are_refused),
	   TEST(far_from_the_start));
