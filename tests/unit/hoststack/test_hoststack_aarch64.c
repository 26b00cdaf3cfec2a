/* SPDX-License-Identifier: MIT */
/* Unwinding on aarch64: a program, a stack and a frame of a signal that the test makes, by the word. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hoststack/native/aarch64.h"
#include "hoststack/native/leaf.h"
#include "hoststack/native/recovery.h"
#include "hoststack/native/symbols.h"
#include "tests/unit/hoststack/image.h"
#include "testlib.h"

#define HOLDS(condition) TEST_EQ(!!(condition), 1)

#define BASE  UINT64_C(0x10000)
#define STACK (BASE + 0x2000)
/* A signature above 48 bits of address. */
#define SIGNED(address) ((address) | UINT64_C(0x5a) << 48)

/* Functions of 0x40 bytes each, by where they begin. */
#define LEAF   0x100 /* Keeps its return address in x30. */
#define CALLER 0x200 /* Has x29 and x30 at the end of its 32 bytes of stack. */
#define OTHER  0x300 /* Has 48 bytes of stack, and x30 at their beginning. */
#define OUTER  0x400 /* Nobody has called it. */
#define SIGNAL 0x500 /* What the kernel lets a handler return to. */
#define ALLOCA 0x600 /* Finds its stack by x29. */
#define JUMP   0x700 /* No function: a jump to the leaf. */
#define STACKED 0x740 /* A leaf with 32 bytes of stack. */
#define BY_X29 0x780 /* A leaf that finds its stack by x29. */
#define TABLE  0x800
#define SLOT   0xfd8 /* Where the jump finds it. */
/* Functions as large as are looked through, whose code is zeros: more than one search may read. */
#define LARGE	    0x10000
#define LARGE_BYTES 0x10000
#define N_LARGE	    20

/* Version 1, code by 4, data by -8, return address 30, pcrel sdata4; CFA is sp. */
#define COMMON_OF(...) { 0, 0, 0, 0, 1, 'z', __VA_ARGS__, 0x0c, 31, 0 }

static const uint8_t common[] = COMMON_OF('R', 0, 4, 0x78, 30, 1, 0x1b);
static const uint8_t signal_common[] = COMMON_OF('R', 'S', 0, 4, 0x78, 30, 1, 0x1b);

struct program {
	uint8_t bytes[0x4000];
	size_t n;
	struct hoststack_memory memory;
	struct native_module module;
	struct native_unwinder unwinder;
	struct native_walk walk;
	struct native_registers registers;
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

static void put_function(struct program *p, uint64_t begin, uint64_t entry_of_kind, const uint8_t *code, size_t size)
{
	const uint64_t at = TABLE + 0x180 + 0x40 * p->n;

	put(p, TABLE + 12 + 8 * p->n, begin - TABLE, 4);
	put(p, TABLE + 16 + 8 * p->n, at - TABLE, 4);
	put(p, at, 13 + size, 4);
	put(p, at + 4, at + 4 - entry_of_kind, 4);
	put(p, at + 8, begin - (at + 8), 4);
	put(p, at + 12, 0x40, 4);
	if (size)
		memcpy(p->bytes + at + 17, code, size);
	p->module.n_entries = ++p->n;
}

static struct program *make_program(void)
{
	/* After the first instruction; a signature (0x2d) has no operand. */
	static const uint8_t framed[] = { 0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3 };
	static const uint8_t other[] = { 0x41, 0x0e, 48, 0x9e, 1 };
	static const uint8_t outer[] = { 0x07, 30 }, by_x29[] = { 0x41, 0x0c, 29, 16, 0x9d, 2, 0x9e, 1 };
	static const uint8_t stacked[] = { 0x41, 0x0e, 32 }, leaf_by_x29[] = { 0x41, 0x0c, 29, 16 };
	struct program *p = calloc(1, sizeof(*p));

	put(p, TABLE + 0x100, sizeof(common), 4);
	memcpy(p->bytes + TABLE + 0x104, common, sizeof(common));
	put(p, TABLE + 0x140, sizeof(signal_common), 4);
	memcpy(p->bytes + TABLE + 0x144, signal_common, sizeof(signal_common));
	p->module = (struct native_module){ .base = BASE, .processor = &native_aarch64, .is_open = true, .is_elf = true,
					    .begin = BASE, .end = STACK, .code = { { BASE + 0x100, BASE + 0x800 } },
					    .n_code = 1, .table = BASE + TABLE };
	put_function(p, LEAF, TABLE + 0x100, NULL, 0);
	put_function(p, CALLER, TABLE + 0x100, framed, sizeof(framed));
	put_function(p, OTHER, TABLE + 0x100, other, sizeof(other));
	put_function(p, OUTER, TABLE + 0x100, outer, sizeof(outer));
	put_function(p, SIGNAL, TABLE + 0x140, NULL, 0);
	put_function(p, ALLOCA, TABLE + 0x100, by_x29, sizeof(by_x29));
	put_function(p, STACKED, TABLE + 0x100, stacked, sizeof(stacked));
	put_function(p, BY_X29, TABLE + 0x100, leaf_by_x29, sizeof(leaf_by_x29));
	p->memory = (struct hoststack_memory){ .read = read_program, .ctx = p, .bytes_left = 1 << 20 };
	p->unwinder = (struct native_unwinder){ .processor = &native_aarch64, .modules = &p->module, .n_modules = 1,
						.stack = { .memory = &p->memory } };
	return p;
}

/* bl */
static void put_call(struct program *p, uint64_t at, uint64_t called)
{
	put(p, at, 0x94000000 | ((called - at) >> 2 & 0x03ffffff), 4);
}

/* A return address in the stack, behind a direct call of a function; behind blr x0 if that is 0. */
static void put_return(struct program *p, uint64_t at, uint64_t address, uint64_t called)
{
	put(p, STACK - BASE + at, SIGNED(BASE + address), 8);
	if (called)
		put_call(p, address - 4, called);
	else
		put(p, address - 4, 0xd63f0000, 4);
}

static void set(struct program *p, unsigned number, uint64_t value)
{
	native_registers_set(&p->registers, number, value);
}

static void walk(struct program *p, uint64_t pc)
{
	set(p, NATIVE_SP, STACK);
	set(p, NATIVE_PC, BASE + pc);
	native_stack_copy_begin(&p->unwinder.stack, STACK);
	native_walk_begin(&p->walk, BASE + pc);
	TEST_EQ(native_walk_on(&p->unwinder, &p->walk, &p->registers), 0);
	TEST_EQ(native_leaf_recover(&p->unwinder, &p->walk, &p->registers), 0);
	TEST_EQ(native_recover(&p->unwinder, &p->walk, &p->registers), 0);
	native_unwinder_deinit(&p->unwinder);
}

static bool is_walk(const struct program *p, size_t n, uint64_t second, uint64_t third)
{
	return p->walk.end == NATIVE_END_OUTERMOST && p->walk.n == n && p->walk.frames[1].pc == BASE + second &&
	       (n < 3 || p->walk.frames[2].pc == BASE + third);
}

static void all_registers_are_known(void)
{
	auto_free struct program *p = make_program(), *twice = make_program();

	put_return(p, 8, OUTER + 0x20, CALLER);
	set(p, NATIVE_X30, SIGNED(BASE + CALLER + 0x14));
	walk(p, LEAF + 8);
	HOLDS(is_walk(p, 3, CALLER + 0x14, OUTER + 0x20));
	HOLDS(!p->walk.frames[1].is_guessed && !p->walk.frames[1].is_exact);
	/* A function that has called another one has its return address no longer in x30. */
	set(twice, NATIVE_X30, BASE + LEAF + 0x14);
	walk(twice, LEAF + 8);
	HOLDS(twice->walk.n == 2 && twice->walk.end == NATIVE_END_REGISTER && twice->walk.missing == NATIVE_X30);
}

static void the_caller_of_a_leaf_is_found(void)
{
	auto_free struct program *p = make_program(), *two = make_program(), *jump = make_program();
	auto_free struct program *by_x29 = make_program(), *keeps = make_program();

	put_return(p, 8, OUTER + 0x20, CALLER);
	put_call(p, CALLER + 0x10, LEAF);
	walk(p, LEAF + 8);
	HOLDS(is_walk(p, 3, CALLER + 0x14, OUTER + 0x20) && !p->walk.frames[1].is_guessed);
	/* It calls the leaf twice: that it is the caller is certain, where it is not. */
	put_return(two, 8, OUTER + 0x20, CALLER);
	put_call(two, CALLER + 0x10, LEAF);
	put_call(two, CALLER + 0x20, LEAF);
	walk(two, LEAF + 8);
	HOLDS(is_walk(two, 3, CALLER + 0x14, OUTER + 0x20));
	HOLDS(two->walk.frames[1].is_guessed);
	/* By a jump: bti c; adrp x16, SLOT; ldr x17, [x16, SLOT]. */
	put_return(jump, 8, OUTER + 0x20, CALLER);
	put_call(jump, CALLER + 0x10, JUMP);
	put(jump, JUMP, 0xd503245f, 4);
	put(jump, JUMP + 4, 0x90000010, 4);
	put(jump, JUMP + 8, 0xf9400211 | SLOT / 8 << 10, 4);
	put(jump, SLOT, BASE + LEAF, 8);
	walk(jump, LEAF + 8);
	HOLDS(is_walk(jump, 3, CALLER + 0x14, OUTER + 0x20));
	/* It does not save x29, which is a caller's, and not known. */
	put_return(keeps, 40, OUTER + 0x20, OTHER);
	put_call(keeps, OTHER + 0x10, LEAF);
	walk(keeps, LEAF + 8);
	HOLDS(is_walk(keeps, 3, OTHER + 0x14, OUTER + 0x20) && !native_registers_has(&keeps->registers, NATIVE_X29));
	/* Somewhere in the stack. */
	put(by_x29, STACK - BASE + 0x50, STACK + 0x90, 8);
	put_return(by_x29, 0x58, OUTER + 0x20, ALLOCA);
	put_call(by_x29, ALLOCA + 0x10, LEAF);
	walk(by_x29, LEAF + 8);
	HOLDS(is_walk(by_x29, 3, ALLOCA + 0x14, OUTER + 0x20));
}

static void the_caller_of_a_leaf_is_not_guessed(void)
{
	auto_free struct program *elsewhere = make_program(), *other = make_program(), *pointer = make_program();
	auto_free struct program *two = make_program();

	/* Its return address would be 8 bytes lower. */
	put_return(elsewhere, 16, OUTER + 0x20, CALLER);
	put_call(elsewhere, CALLER + 0x10, LEAF);
	walk(elsewhere, LEAF + 8);
	HOLDS(elsewhere->walk.n == 1 && elsewhere->walk.end == NATIVE_END_REGISTER);
	/* It calls another function. */
	put_return(other, 8, OUTER + 0x20, CALLER);
	put_call(other, CALLER + 0x10, OTHER);
	walk(other, LEAF + 8);
	HOLDS(other->walk.n == 1 && other->walk.end == NATIVE_END_REGISTER);
	put_return(pointer, 8, OUTER + 0x20, 0);
	put_call(pointer, CALLER + 0x10, LEAF);
	walk(pointer, LEAF + 8);
	HOLDS(pointer->walk.n == 1 && pointer->walk.end == NATIVE_END_REGISTER);
	/* Two may have called it. */
	put_return(two, 8, OUTER + 0x20, CALLER);
	put_call(two, CALLER + 0x10, LEAF);
	put_return(two, 40, OUTER + 0x30, OTHER);
	put_call(two, OTHER + 0x10, LEAF);
	walk(two, LEAF + 8);
	HOLDS(two->walk.n == 1 && two->walk.end == NATIVE_END_AMBIGUOUS);
}

/* Its caller's stack is above its own 32 bytes. */
static void a_leaf_has_a_stack(void)
{
	auto_free struct program *p = make_program(), *by_x29 = make_program();

	put_return(p, 32 + 8, OUTER + 0x20, CALLER);
	put_call(p, CALLER + 0x10, STACKED);
	walk(p, STACKED + 8);
	HOLDS(is_walk(p, 3, CALLER + 0x14, OUTER + 0x20));
	TEST_EQ(p->registers.values[NATIVE_SP], STACK + 64);
	/* Nothing tells where its own ends. */
	put_return(by_x29, 8, OUTER + 0x20, CALLER);
	put_call(by_x29, CALLER + 0x10, BY_X29);
	walk(by_x29, BY_X29 + 8);
	HOLDS(by_x29->walk.n == 1 && by_x29->walk.end == NATIVE_END_REGISTER);
}

/* A stack full of calls of one function, which is looked through once. */
static void a_search_is_bounded(void)
{
	auto_free struct program *p = make_program();
	const uint64_t begin = p->memory.bytes_left;

	for (uint64_t at = 0; at < 0x1800; at += 8)
		put_return(p, at, OUTER + 0x20, CALLER);
	put_call(p, CALLER + 0x10, OTHER);
	walk(p, LEAF + 8);
	HOLDS(p->walk.n == 1 && p->walk.end == NATIVE_END_REGISTER);
	HOLDS(begin - p->memory.bytes_left < 65536);
}

/* Pieces are read one by one. */
static int read_large(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const uint64_t begin = BASE + LARGE;

	if (n != 1 || pieces->address < begin || pieces->address - begin >= N_LARGE * LARGE_BYTES)
		return read_program(ctx, pieces, n);
	memset(pieces->buf, 0, pieces->size);
	return 0;
}

static void put_large_functions(struct program *p)
{
	for (uint64_t i = 0; i < N_LARGE; i++) {
		put_function(p, LARGE + i * LARGE_BYTES, TABLE + 0x100, NULL, 0);
		put(p, TABLE + 0x180 + 0x40 * (p->n - 1) + 12, LARGE_BYTES, 4);
	}
	p->memory.read = read_large;
	p->module.code[p->module.n_code].begin = BASE + LARGE;
	p->module.code[p->module.n_code++].end = p->module.end = BASE + LARGE + N_LARGE * LARGE_BYTES;
}

/* Of what comes behind what may be read nobody knows, and another one may have called the leaf. */
static void a_search_ends_when_it_has_read_much(void)
{
	auto_free struct program *p = make_program();
	const uint64_t begin = p->memory.bytes_left = 8 << 20;

	put_large_functions(p);
	put_return(p, 8, OUTER + 4, CALLER);
	put_call(p, CALLER + 0x10, LEAF);
	for (uint64_t i = 0; i < N_LARGE; i++)
		put_return(p, 16 + 8 * i, OUTER + 8 + 4 * i, LARGE + i * LARGE_BYTES);
	walk(p, LEAF + 8);
	HOLDS(p->walk.n == 1 && p->walk.end == NATIVE_END_REGISTER && p->walk.missing == NATIVE_X30);
	HOLDS(begin - p->memory.bytes_left > 1 << 20 && begin - p->memory.bytes_left < (1 << 20) + 65536);
}

static void a_frame_pointer_is_found(void)
{
	auto_free struct program *p = make_program();

	put_return(p, 0x28, OUTER + 0x20, ALLOCA);
	walk(p, ALLOCA + 0x20);
	HOLDS(is_walk(p, 2, OUTER + 0x20, 0) && !p->walk.frames[1].is_guessed);
}

/* What the interrupted function has in x30 is where it goes back to, and not where it was. */
static void a_signal_is_taken(void)
{
	auto_free struct program *p = make_program();
	const uint64_t frame = STACK - BASE + 32;

	/* The handler, which returns to the kernel's code: mov x8, #139; svc #0, behind an instruction of its table. */
	put(p, STACK - BASE + 8, BASE + SIGNAL + 4, 8);
	put(p, SIGNAL + 4, 0xd4000001d2801168, 8);
	put(p, frame + 312 + 8 * 30, SIGNED(BASE + OUTER + 0x20), 8);
	put(p, frame + 312 + 8 * 31, STACK + 0x1800, 8);
	put(p, frame + 312 + 8 * 32, BASE + LEAF + 0x10, 8);
	walk(p, CALLER + 0x20);
	HOLDS(p->walk.end == NATIVE_END_OUTERMOST && p->walk.n == 4);
	HOLDS(p->walk.frames[2].pc == BASE + LEAF + 0x10 && p->walk.frames[2].is_exact);
	HOLDS(p->walk.frames[3].pc == BASE + OUTER + 0x20);
	TEST_EQ(p->registers.values[NATIVE_SP], STACK + 0x1800);
}

static void signatures_are_of_this_processor(void)
{
	static const uint8_t bytes[] = { 0xff, 0, 0, 0, 0xfc, 0, 0, 0, 0x40, 0, 0, 0, 0, 0x2d };
	static const uint8_t of_x86[] = { 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8 };
	const struct native_entry function = { bytes, sizeof(bytes), 0x2000 };
	const struct native_entry ours = { common, sizeof(common), 0x1000 };
	const struct native_entry theirs = { of_x86, sizeof(of_x86), 0x1000 };
	struct native_rules r;

	TEST_EQ(native_rules_read(&native_aarch64, &ours, &function, 0x2100, &r), 0);
	TEST_EQ(native_rules_read(&native_x86_64, &theirs, &function, 0x2100, &r), -EBADMSG);
	/* The return address is in another register. */
	TEST_EQ(native_rules_read(&native_x86_64, &ours, &function, 0x2100, &r), -EBADMSG);
}

static void put_symbol(struct program *p, Elf64_Sym *list, size_t *n, const char *name, unsigned char info, Elf64_Sym s)
{
	/* Names of up to 7 letters. */
	s.st_name = (Elf64_Word)(8 * *n);
	s.st_info = info;
	s.st_shndx = 1;
	strcpy((char *)p->bytes + 0x1800 + s.st_name, name);
	list[(*n)++] = s;
}

/* `$x` and `$d` mark code and data, also where a function begins, and often within it. */
static void marks_are_no_names(void)
{
	const unsigned char mark = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE), function = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	auto_free struct program *p = make_program();
	struct native_symbols symbols = { 0 };
	struct hoststack_elf elf = { .bias = BASE, .symbols = BASE + 0x1000, .strings = BASE + 0x1800 };
	Elf64_Sym list[32];
	const char *name;
	uint64_t begin = 0;
	size_t n = 0;

	put_symbol(p, list, &n, "leaf", function, (Elf64_Sym){ .st_value = LEAF, .st_size = 0x60 });
	put_symbol(p, list, &n, "$x", mark, (Elf64_Sym){ .st_value = LEAF });
	for (uint64_t i = 1; i <= 20; i++)
		put_symbol(p, list, &n, i % 2 ? "$d" : "$x", mark, (Elf64_Sym){ .st_value = LEAF + 4 * i });
	put_symbol(p, list, &n, "$x", mark, (Elf64_Sym){ .st_value = OTHER });
	elf.n_symbols = (uint32_t)n;
	memcpy(p->bytes + 0x1000, list, n * sizeof(*list));
	name = native_symbols_name(&symbols, &p->memory, &elf, BASE + LEAF + 4, BASE + LEAF, &begin);
	HOLDS(name && !strcmp(name, "leaf") && begin == BASE + LEAF);
	name = native_symbols_name(&symbols, &p->memory, &elf, BASE + LEAF + 0x58, BASE + LEAF, &begin);
	HOLDS(name && !strcmp(name, "leaf") && begin == BASE + LEAF);
	HOLDS(!native_symbols_name(&symbols, &p->memory, &elf, BASE + OTHER + 4, BASE + OTHER, &begin));
	native_symbols_free(&symbols);
}

TEST_SUITE(hoststack_aarch64, TEST(marks_are_no_names), TEST(all_registers_are_known),
	   TEST(the_caller_of_a_leaf_is_found), TEST(the_caller_of_a_leaf_is_not_guessed), TEST(a_leaf_has_a_stack),
	   TEST(a_search_is_bounded), TEST(a_search_ends_when_it_has_read_much), TEST(a_frame_pointer_is_found),
	   TEST(a_signal_is_taken), TEST(signatures_are_of_this_processor));
