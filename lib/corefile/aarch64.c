/* SPDX-License-Identifier: MIT */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "corefile/processor.h"

/* Words of the kernel's struct user_pt_regs: x0 to x30, and: */
#define SP    31
#define PC    32
#define WORDS 34

/* Not all are in the elf.h of Debian 12: include/uapi/linux/elf.h. */
#ifndef NT_ARM_SVE
#define NT_ARM_SVE 0x405
#endif
#ifndef NT_ARM_PAC_MASK
#define NT_ARM_PAC_MASK 0x406
#endif

/* DWARF for the Arm 64-bit Architecture, 4.1. */
static const uint8_t dwarf[] = {
	0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15, 16,
	17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, SP, PC,
};

static bool is_call(const uint8_t *code)
{
	static const uint8_t svc[] = { 0x01, 0x00, 0x00, 0xd4 };

	return memcmp(code, svc, sizeof(svc)) == 0;
}

/*
 * Before a thread stops, the kernel lets it make its call anew (arch/arm64/kernel/signal.c, do_signal()): it is in
 * front of the instruction, and its first argument is back.  A call that is not made anew was interrupted (EINTR), and
 * the thread is behind the instruction; then the first argument is lost.
 */
static bool has_waited(const uint64_t *words, const uint8_t *code, struct corefile_call *ret)
{
	const bool ended = words[0] == (uint64_t)-EINTR;

	if (!code || !is_call(ended ? code : code + 4))
		return false;
	*ret = (struct corefile_call){ .number = (int64_t)(words[8] & UINT32_MAX),
				       .arguments = { ended ? 0 : words[0], words[1], words[2] } };
	return true;
}

const struct corefile_processor corefile_aarch64 = {
	.elf = EM_AARCH64,
	.elf_32 = EM_ARM,
	.tested = "tested on emulated machines, without a GPU",
	.n_words = WORDS,
	.stack_pointer = SP,
	.instruction = PC,
	.dwarf = dwarf,
	.n_dwarf = sizeof(dwarf),
	.sets = { NT_ARM_TLS, NT_ARM_SYSTEM_CALL, NT_ARM_SVE, NT_ARM_PAC_MASK },
	.n_sets = 4,
	.needs_code = true,
	.has_waited = has_waited,
};
