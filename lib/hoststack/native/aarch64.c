/* SPDX-License-Identifier: MIT */
/* Instructions are as the Arm Architecture Reference Manual for A-profile (DDI 0487) has them, section C6.2. */
#include "hoststack/native/aarch64.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "hoststack/native/processor.h"

#define BITS(from, to) ((UINT64_C(2) << (to)) - (UINT64_C(1) << (from)))
/* A program's addresses end here unless it asks for others by number (Linux, Documentation/arch/arm64/memory.rst). */
#define ADDRESS_BITS 48
/* What a table of jumps has for one function begins with bti c, which may be left out, adrp and ldr. */
#define JUMP_WORDS 3
/* In the kernel's struct rt_sigframe: registers, then the stack pointer and the instruction. */
#define FRAME_REGISTERS 312
#define FRAME_WORDS	33

static uint32_t instruction_at(const uint8_t *bytes)
{
	uint32_t i;

	memcpy(&i, bytes, sizeof(i));
	return i;
}

static uint64_t sign_extend(uint64_t v, unsigned bits)
{
	return (uint64_t)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

static enum native_call calls(const uint8_t *end, uint64_t address, uint64_t *ret)
{
	const uint32_t i = instruction_at(end - 4);

	/* BL */
	if ((i & 0xfc000000) == 0x94000000) {
		*ret = address - 4 + sign_extend((uint64_t)(i & 0x03ffffff) << 2, 28);
		return NATIVE_CALLS_ADDRESS;
	}
	/* BLR, and those of its kind that check a signature. */
	return (i & 0xfefff000) == 0xd63f0000 ? NATIVE_CALLS_POINTER : NATIVE_CALLS_NOTHING;
}

static uint64_t follow(struct hoststack_memory *m, uint64_t address)
{
	uint8_t bytes[4 * JUMP_WORDS];
	uint64_t page, offset, target;
	uint32_t adrp, load;

	if (hoststack_read(m, address, bytes, sizeof(bytes)) < 0)
		return address;
	/* BTI c may come first. */
	const uint8_t *first = bytes + (instruction_at(bytes) == 0xd503245f ? 4 : 0);
	adrp = instruction_at(first);
	load = instruction_at(first + 4);
	/* ADRP x16, page; LDR x17, [x16, #offset] */
	if ((adrp & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
		return address;
	page = (uint64_t)(adrp >> 29 & 3) | (uint64_t)(adrp >> 5 & 0x7ffff) << 2;
	offset = (uint64_t)(load >> 10 & 0xfff) * 8;
	page = ((address + (uint64_t)(first - bytes)) & ~UINT64_C(0xfff)) + sign_extend(page << 12, 33);
	return hoststack_read(m, page + offset, &target, sizeof(target)) < 0 ? address : target;
}

/*
 * The table of the kernel's own code for this leads to the function that was called last, by x29 and x30, and not to
 * the instruction that was interrupted (Linux, arch/arm64/kernel/vdso/sigreturn.S and signal.c).
 */
static int interrupted(struct native_stack_copy *stack, const struct native_registers *r, struct native_registers *ret)
{
	/* mov x8, #139; svc #0 */
	static const uint8_t returns[8] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
	uint64_t words[FRAME_WORDS];
	uint8_t code[sizeof(returns)];
	int e = hoststack_read(stack->memory, r->values[NATIVE_PC], code, sizeof(code));

	if (e < 0 || memcmp(code, returns, sizeof(code)) != 0)
		return e < 0 ? e : -ENOENT;
	e = native_stack_copy_read(stack, r->values[NATIVE_SP] + FRAME_REGISTERS, words, sizeof(words));
	for (unsigned i = 0; e == 0 && i < FRAME_WORDS; i++)
		native_registers_set(ret, i, words[i]);
	return e;
}

const struct native_processor native_aarch64 = {
	.elf = EM_AARCH64,
	.n_registers = NATIVE_PC + 1,
	.stack_pointer = NATIVE_SP,
	.frame_pointer = NATIVE_X29,
	.instruction = NATIVE_PC,
	.return_address = NATIVE_X30,
	.kept = BITS(NATIVE_X19, NATIVE_X30),
	.address_bits = BITS(0, ADDRESS_BITS - 1),
	.signs_addresses = true,
	.call_size = 4,
	.calls = calls,
	.follow = follow,
	.interrupted = interrupted,
};
