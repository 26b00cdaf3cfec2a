/* SPDX-License-Identifier: MIT */
#include "hoststack/native/x86_64.h"

#include <elf.h>
#include <string.h>

#include "hoststack/native/processor.h"

#define BIT(number) (UINT64_C(1) << (number))
/* The longest one that is looked for. */
#define CALL_SIZE 7

static enum native_call calls(const uint8_t *end, uint64_t address, uint64_t *ret)
{
	int32_t distance;

	if (end[-5] == 0xe8) {
		memcpy(&distance, end - 4, sizeof(distance));
		*ret = address + (uint64_t)(int64_t)distance;
		return NATIVE_CALLS_ADDRESS;
	}
	/* ff /2: through a register or memory, without or with a displacement. */
	for (size_t i = 2; i <= CALL_SIZE; i++)
		if ((i <= 3 || i >= 6) && end[-(ptrdiff_t)i] == 0xff && (end[1 - (ptrdiff_t)i] >> 3 & 7) == 2)
			return NATIVE_CALLS_POINTER;
	return NATIVE_CALLS_NOTHING;
}

const struct native_processor native_x86_64 = {
	.elf = EM_X86_64,
	.n_registers = NATIVE_RIP + 1,
	.stack_pointer = NATIVE_RSP,
	.frame_pointer = NATIVE_RBP,
	.instruction = NATIVE_RIP,
	.return_address = NATIVE_RIP,
	.kept = BIT(NATIVE_RBX) | BIT(NATIVE_RBP) | BIT(NATIVE_R12) | BIT(13) | BIT(14) | BIT(NATIVE_R15),
	.address_bits = UINT64_MAX,
	.call_size = CALL_SIZE,
	.calls = calls,
};
