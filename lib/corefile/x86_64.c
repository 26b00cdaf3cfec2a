/* SPDX-License-Identifier: MIT */
#include "corefile/x86_64.h"

#include <elf.h>
#include <errno.h>

#include "corefile/processor.h"

/* System V ABI of x86-64, figure 3.36. */
static const uint8_t dwarf[] = {
	COREFILE_RAX, COREFILE_RDX, COREFILE_RCX, COREFILE_RBX, COREFILE_RSI, COREFILE_RDI, COREFILE_RBP, COREFILE_RSP,
	COREFILE_R8,  COREFILE_R9,  COREFILE_R10, COREFILE_R11, COREFILE_R12, COREFILE_R13, COREFILE_R14, COREFILE_R15,
	COREFILE_RIP,
};

/* A call that was done, or none, leaves other values. */
static bool has_waited(const uint64_t *words, const uint8_t *code, struct corefile_call *ret)
{
	(void)code;
	switch (0 - words[COREFILE_RAX]) {
	case EINTR:
	case COREFILE_ERESTARTSYS:
	case COREFILE_ERESTARTNOINTR:
	case COREFILE_ERESTARTNOHAND:
	case COREFILE_ERESTART_RESTARTBLOCK:
		break;
	default:
		return false;
	}
	ret->number = (int64_t)words[COREFILE_ORIG_RAX];
	ret->arguments[0] = words[COREFILE_RDI];
	ret->arguments[1] = words[COREFILE_RSI];
	ret->arguments[2] = words[COREFILE_RDX];
	return ret->number >= 0;
}

const struct corefile_processor corefile_x86_64 = {
	.elf = EM_X86_64,
	.elf_32 = EM_386,
	.n_words = COREFILE_X86_64_WORDS,
	.stack_pointer = COREFILE_RSP,
	.instruction = COREFILE_RIP,
	.dwarf = dwarf,
	.n_dwarf = sizeof(dwarf),
	.sets = { NT_X86_XSTATE },
	.n_sets = 1,
	.has_waited = has_waited,
};
