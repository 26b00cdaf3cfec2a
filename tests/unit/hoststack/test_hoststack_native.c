/* SPDX-License-Identifier: MIT */
/* Unwind entries, expressions, notes and a stack that the test makes, by the byte. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "hoststack/native/debug_link.h"
#include "hoststack/native/expression.h"
#include "hoststack/native/recovery.h"
#include "hoststack/native/x86_64.h"
#include "tests/unit/hoststack/image.h"
#include "testlib.h"

#define HOLDS(condition) TEST_EQ(!!(condition), 1)

/* Version 1, "zR", code by 1, data by -8, return address 16, pcrel sdata4; CFA is rsp + 8, return address at CFA - 8. */
#define COMMON 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1

static const uint8_t common_bytes[] = { COMMON };
static const struct native_entry common = { common_bytes, sizeof(common_bytes), 0x1000 };

/* A function at 0x2100 of 0x40 bytes, whose entry lies at 0x2000; its address stands 4 bytes further. */
#define FUNCTION 0xff, 0, 0, 0, 0xfc, 0, 0, 0, 0x40, 0, 0, 0, 0

static int rules_at(const uint8_t *bytes, size_t size, uint64_t pc, struct native_rules *ret)
{
	const struct native_entry function = { bytes, size, 0x2000 };

	return native_rules_read(&native_x86_64, &common, &function, pc, ret);
}

static void rules_change_with_the_instruction(void)
{
	/* push %rbp; mov %rsp, %rbp; ...; leave */
	static const uint8_t bytes[] = { FUNCTION, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6,
					 0x0a, 0x60, 0x0c, 7, 8, 0x4f, 0x0b };
	struct native_rules r;

	HOLDS(rules_at(bytes, sizeof(bytes), 0x2100, &r) == 0);
	HOLDS(r.begin == 0x2100 && r.end == 0x2140 && !r.is_signal);
	HOLDS(r.cfa_register == NATIVE_RSP && r.cfa.value == 8 && r.registers[NATIVE_RBP].rule == NATIVE_UNSAID);
	HOLDS(r.registers[NATIVE_RIP].rule == NATIVE_AT_OFFSET && r.registers[NATIVE_RIP].value == -8);
	HOLDS(rules_at(bytes, sizeof(bytes), 0x2101, &r) == 0);
	HOLDS(r.cfa_register == NATIVE_RSP && r.cfa.value == 16 && r.registers[NATIVE_RBP].value == -16);
	HOLDS(rules_at(bytes, sizeof(bytes), 0x2104, &r) == 0);
	HOLDS(r.cfa_register == NATIVE_RBP && r.cfa.value == 16);
	HOLDS(rules_at(bytes, sizeof(bytes), 0x2124, &r) == 0);
	HOLDS(r.cfa_register == NATIVE_RSP && r.cfa.value == 8);
	/* What was remembered before. */
	HOLDS(rules_at(bytes, sizeof(bytes), 0x2133, &r) == 0);
	HOLDS(r.cfa_register == NATIVE_RBP && r.cfa.value == 16);
	HOLDS(rules_at(bytes, sizeof(bytes), 0x2140, &r) == -ENOENT);
	HOLDS(rules_at(bytes, sizeof(bytes), 0x20ff, &r) == -ENOENT);
}

static void rules_that_make_no_sense(void)
{
	static const uint8_t restores[] = { FUNCTION, 0x0b }, unknown[] = { FUNCTION, 0x3f };
	static const uint8_t endless[] = { FUNCTION, 0x0f, 0x80 }, large[] = { FUNCTION, 0x16, 7, 100, 0x30 };
	struct native_rules r;

	HOLDS(rules_at(restores, sizeof(restores), 0x2100, &r) == -EBADMSG);
	HOLDS(rules_at(unknown, sizeof(unknown), 0x2100, &r) == -EBADMSG);
	HOLDS(rules_at(endless, sizeof(endless), 0x2100, &r) == -EBADMSG);
	HOLDS(rules_at(large, sizeof(large), 0x2100, &r) == -EBADMSG);
	for (size_t size = 0; size < 13; size++)
		HOLDS(rules_at(restores, size, 0x2100, &r) == -EBADMSG);
	for (size_t size = 0; size < sizeof(common_bytes); size++) {
		const struct native_entry cut = { common_bytes, size, 0x1000 }, function = { restores, 13, 0x2000 };
		int e = native_rules_read(&native_x86_64, &cut, &function, 0x2100, &r);

		/* Without its last instruction it still is one. */
		HOLDS(e == -EBADMSG || size == 16);
	}
}

static int read_word(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (pieces[i].address != 0x5000 || pieces[i].size > 8)
			return -EFAULT;
		memcpy(pieces[i].buf, ctx, pieces[i].size);
	}
	return 0;
}

static int evaluate(const uint8_t *bytes, size_t size, uint64_t *ret, unsigned *ret_missing)
{
	uint64_t word = 0x1122334455667788;
	struct hoststack_memory m = { .read = read_word, .ctx = &word, .bytes_left = 1 << 20 };
	struct native_stack_copy stack = { .memory = &m, .begin = 0x6000 };
	struct native_registers r = { .known = 0 };

	native_registers_set(&r, NATIVE_RSP, 0x4ff8);
	native_registers_set(&r, NATIVE_RIP, 0x100b);
	return native_expression(bytes, size, &r, &stack, NULL, ret, ret_missing);
}

static void expressions(void)
{
	/* A procedure linkage table: rsp + 8 + ((rip & 15) >= 11) << 3. */
	static const uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	static const uint8_t memory[] = { 0x77, 8, 0x06 }, by_rbp[] = { 0x76, 0x78, 0x06 };
	static const uint8_t loop[] = { 0x2f, 0xfd, 0xff };
	static const uint8_t half[] = { 0x77, 8, 0x94, 4 }, empty[] = { 0x22 }, backwards[] = { 0x2f, 0, 0x80 };
	unsigned missing = 0;
	uint64_t v;

	HOLDS(evaluate(plt, sizeof(plt), &v, &missing) == 0 && v == 0x5008);
	HOLDS(evaluate(memory, sizeof(memory), &v, &missing) == 0 && v == 0x1122334455667788);
	HOLDS(evaluate(half, sizeof(half), &v, &missing) == 0 && v == 0x55667788);
	HOLDS(evaluate(by_rbp, sizeof(by_rbp), &v, &missing) == -ENODATA && missing == NATIVE_RBP);
	HOLDS(evaluate(loop, sizeof(loop), &v, &missing) == -EBADMSG);
	HOLDS(evaluate(empty, sizeof(empty), &v, &missing) == -EBADMSG);
	HOLDS(evaluate(backwards, sizeof(backwards), &v, &missing) == -EBADMSG);
	HOLDS(evaluate((const uint8_t[]){ 0x30, 0x06 }, 2, &v, &missing) == -EFAULT);
}

static void build_ids(void)
{
	static const uint8_t notes[] = { 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 'G', 'N', 'U', 0, 9, 9, 0, 0,
					 4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0x01, 0xff };
	char id[2 * NATIVE_BUILD_ID_MAX + 1];

	native_build_id(notes, sizeof(notes), id);
	TEST_STR(id, "ab01ff");
	for (size_t size = 0; size < sizeof(notes); size++) {
		native_build_id(notes, size, id);
		TEST_STR(id, "");
	}
}

static int parse_link(const char *bytes, size_t size, struct native_debug_link *ret)
{
	/* What is read behind its end, a sanitizer sees. */
	auto_free uint8_t *copy = malloc(size + !size);

	memcpy(copy, bytes, size);
	return native_debug_link_parse(copy, size, ret);
}

static void links_to_debug_files(void)
{
	static const char section[] = "libm.debug\0\0\x78\x56\x34\x12", full[] = "abc\0\4\3\2\1";
	static const char *const elsewhere[] = { "../a", "a/b", "/a", ".", "..", "" };
	struct native_debug_link link = { .name = "old", .checksum = 7 };
	char bytes[NATIVE_LINK_NAME_MAX + 10];

	for (size_t size = 0; size < sizeof(section) - 1; size++)
		HOLDS(parse_link(section, size, &link) == -EBADMSG);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, elsewhere[i], strlen(elsewhere[i]));
		HOLDS(parse_link(bytes, 12, &link) == -EBADMSG);
	}
	TEST_STR(link.name, "old");
	TEST_EQ(parse_link(section, sizeof(section) - 1, &link), 0);
	TEST_STR(link.name, "libm.debug");
	HOLDS(link.checksum == 0x12345678);
	TEST_EQ(parse_link(full, sizeof(full) - 1, &link), 0);
	HOLDS(link.checksum == 0x01020304);
	memset(bytes, 'a', sizeof(bytes));
	memset(bytes + NATIVE_LINK_NAME_MAX, 0, 10);
	TEST_EQ(parse_link(bytes, NATIVE_LINK_NAME_MAX + 1 + 4, &link), 0);
	TEST_EQ(strlen(link.name), NATIVE_LINK_NAME_MAX);
	bytes[NATIVE_LINK_NAME_MAX] = 'a';
	HOLDS(parse_link(bytes, sizeof(bytes), &link) == -EBADMSG);
}

/* ------------------------------------------------------------------ the search for %rbp ------ */

#define BASE  UINT64_C(0x10000)
#define STACK (BASE + 0x1000)

/* f() has a frame pointer; g() and h() are outermost.  The sorted table is at 0x800, entries are behind it. */
struct program {
	uint8_t bytes[0x2000];
	struct hoststack_memory memory;
	struct native_module module;
	struct native_unwinder unwinder;
	struct native_walk walk;
};

static int read_program(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const struct program *p = ctx;

	return image_read(p->bytes, sizeof(p->bytes), BASE, pieces, n);
}

static void put(struct program *p, uint64_t at, uint64_t value, size_t width)
{
	memcpy(p->bytes + at, &value, width);
}

static void put_function(struct program *p, size_t index, uint64_t begin, const uint8_t *code, size_t size)
{
	const uint64_t at = 0x940 + 0x40 * index;

	put(p, 0x80c + 8 * index, begin - 0x800, 4);
	put(p, 0x810 + 8 * index, at - 0x800, 4);
	put(p, at, 13 + size, 4);
	put(p, at + 4, at + 4 - 0x900, 4);
	put(p, at + 8, begin - (at + 8), 4);
	put(p, at + 12, 0x40, 4);
	memcpy(p->bytes + at + 17, code, size);
}

static struct program *make_program(void)
{
	static const uint8_t framed[] = { 0x0c, 6, 16, 0x86, 2 }, outermost[] = { 0x07, 16 };
	struct program *p = calloc(1, sizeof(*p));

	put(p, 0x900, sizeof(common_bytes), 4);
	memcpy(p->bytes + 0x904, common_bytes, sizeof(common_bytes));
	put_function(p, 0, 0x100, framed, sizeof(framed));
	put_function(p, 1, 0x200, outermost, sizeof(outermost));
	put_function(p, 2, 0x300, outermost, sizeof(outermost));
	p->memory = (struct hoststack_memory){ .read = read_program, .ctx = p, .bytes_left = 1 << 20 };
	p->module = (struct native_module){ .base = BASE, .processor = &native_x86_64, .is_open = true,
					    .is_elf = true, .begin = BASE, .end = STACK,
					    .code = { { BASE + 0x100, BASE + 0x400 } }, .n_code = 1,
					    .table = BASE + 0x800, .n_entries = 3 };
	p->unwinder = (struct native_unwinder){ .processor = &native_x86_64, .modules = &p->module, .n_modules = 1,
						.stack = { .memory = &p->memory } };
	return p;
}

/* A return address in the stack, behind a direct call of a function; behind one through %rax if that is 0. */
static void put_return(struct program *p, size_t slot, uint64_t address, uint64_t called)
{
	put(p, 0x1000 + 16 * slot + 8, BASE + address, 8);
	if (called) {
		p->bytes[address - 5] = 0xe8;
		put(p, address - 4, called - address, 4);
	} else {
		put(p, address - 2, 0xd0ff, 2);
	}
}

/* Walk from f() on, of which %rbp is not known. */
static void search(struct program *p)
{
	struct native_registers registers = { .known = 0 };

	native_registers_set(&registers, NATIVE_RSP, STACK);
	native_registers_set(&registers, NATIVE_RIP, BASE + 0x120);
	native_stack_copy_begin(&p->unwinder.stack, STACK);
	native_walk_begin(&p->walk, BASE + 0x120);
	TEST_EQ(native_walk_on(&p->unwinder, &p->walk, &registers), 0);
	HOLDS(p->walk.n == 1 && p->walk.end == NATIVE_END_REGISTER && p->walk.missing == NATIVE_RBP);
	TEST_EQ(native_recover(&p->unwinder, &p->walk, &registers), 0);
	native_unwinder_deinit(&p->unwinder);
}

static void a_frame_pointer_is_found_or_guessed(void)
{
	auto_free struct program *none = make_program(), *direct = make_program(), *guess = make_program();
	auto_free struct program *both = make_program(), *two = make_program(), *inner = make_program();
	auto_free struct program *other = make_program();

	/* Nothing is called in front of it. */
	put(none, 0x1018, BASE + 0x220, 8);
	search(none);
	HOLDS(none->walk.n == 1 && none->walk.end == NATIVE_END_REGISTER);
	/* f() is. */
	put_return(direct, 2, 0x220, 0x100);
	search(direct);
	HOLDS(direct->walk.n == 2 && direct->walk.end == NATIVE_END_OUTERMOST);
	HOLDS(direct->walk.frames[1].pc == BASE + 0x220 && !direct->walk.frames[1].is_guessed);
	/* Another one is. */
	put_return(other, 2, 0x220, 0x300);
	search(other);
	HOLDS(other->walk.n == 2 && other->walk.frames[1].is_guessed);
	/* Somebody is. */
	put_return(guess, 2, 0x220, 0);
	search(guess);
	HOLDS(guess->walk.n == 2 && guess->walk.frames[1].is_guessed && !guess->walk.frames[0].is_guessed);
	/* The direct call counts, wherever the others are. */
	put_return(both, 1, 0x320, 0);
	put_return(both, 3, 0x220, 0x100);
	search(both);
	HOLDS(both->walk.n == 2 && both->walk.frames[1].pc == BASE + 0x220 && !both->walk.frames[1].is_guessed);
	/* Two that contradict each other. */
	put_return(two, 1, 0x320, 0);
	put_return(two, 3, 0x220, 0);
	search(two);
	HOLDS(two->walk.n == 1 && two->walk.end == NATIVE_END_AMBIGUOUS);
	/* f() called f(): the outer call leads outwards as well, and skips a frame. */
	put(inner, 0x1010, STACK + 0x30, 8);
	put_return(inner, 1, 0x130, 0);
	put_return(inner, 3, 0x220, 0);
	search(inner);
	HOLDS(inner->walk.n == 3 && inner->walk.end == NATIVE_END_OUTERMOST && inner->walk.frames[1].is_guessed);
}

/* Each walk that is kept has reached the outermost frame. */
static void a_guess_that_leads_nowhere_is_none(void)
{
	auto_free struct program *p = make_program();

	/* Into f() again, whose saved %rbp is none. */
	put_return(p, 1, 0x130, 0x100);
	search(p);
	HOLDS(p->walk.n == 1 && p->walk.end == NATIVE_END_REGISTER);
}

/* What a stopped thread's stack was copied from may have changed since: nothing beyond the copy is asked for. */
static void a_copy_is_all_there_is(void)
{
	static const uint64_t words[] = { 1, 2, 3 };
	struct native_stack_copy c = { .memory = NULL };
	uint64_t value = 0;

	HOLDS(native_stack_copy_take(&c, 0x7000, words, sizeof(words)) == 0);
	HOLDS(native_stack_copy_read(&c, 0x7010, &value, sizeof(value)) == 0 && value == 3 && !c.was_left);
	HOLDS(native_stack_copy_read(&c, 0x7011, &value, sizeof(value)) == -EFAULT && c.was_left);
	HOLDS(native_stack_copy_read(&c, 0x6ff8, &value, sizeof(value)) == -EFAULT);
	HOLDS(native_stack_copy_read(&c, 0x7000, &value, SIZE_MAX) == -EFAULT);
	HOLDS(native_stack_copy_read(&c, UINT64_MAX, &value, sizeof(value)) == -EFAULT && value == 3);
	HOLDS(native_stack_copy_take(&c, UINT64_MAX - 7, words, 8) == 0 && !c.was_left);
	HOLDS(native_stack_copy_read(&c, UINT64_MAX - 7, &value, sizeof(value)) == 0 && value == 1);
	HOLDS(native_stack_copy_read(&c, 0, &value, sizeof(value)) == -EFAULT);
	native_stack_copy_free(&c);
}

TEST_SUITE(hoststack_native, TEST(rules_change_with_the_instruction), TEST(rules_that_make_no_sense), TEST(expressions),
	   TEST(build_ids), TEST(links_to_debug_files), TEST(a_copy_is_all_there_is),
	   TEST(a_frame_pointer_is_found_or_guessed), TEST(a_guess_that_leads_nowhere_is_none));
