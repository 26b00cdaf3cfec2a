/* SPDX-License-Identifier: MIT */
#include "agentd/worker/cuda/exception.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "protocol/stop_reason.h"

#define MEMORY                                                                                     \
	STOP_REASON_BIT(RPC_STOP_REASON_MEMORY_VIOLATION), RPC_EXCEPTION_WAVE_MEMORY_VIOLATION
#define ADDRESS STOP_REASON_BIT(RPC_STOP_REASON_ADDRESS_ERROR), RPC_EXCEPTION_WAVE_ADDRESS_ERROR
#define ILLEGAL                                                                                    \
	STOP_REASON_BIT(RPC_STOP_REASON_ILLEGAL_INSTRUCTION), RPC_EXCEPTION_WAVE_ILLEGAL_INSTRUCTION
#define ASSERT	STOP_REASON_BIT(RPC_STOP_REASON_ASSERT), RPC_EXCEPTION_WAVE_ABORT
#define OTHER	STOP_REASON_BIT(RPC_STOP_REASON_FAULT), RPC_EXCEPTION_WAVE_FAULT

/* What the numbers mean is in docs/reference/cudbg.md, section 6. */
static const struct cuda_exception exceptions[] = {
	[1] = { "CUDA_EXCEPTION_1: lane illegal address", MEMORY },
	[2] = { "CUDA_EXCEPTION_2: lane user stack overflow", OTHER },
	[3] = { "CUDA_EXCEPTION_3: device hardware stack overflow", OTHER },
	[4] = { "CUDA_EXCEPTION_4: warp illegal instruction", ILLEGAL },
	[5] = { "CUDA_EXCEPTION_5: warp out of range address", ADDRESS },
	[6] = { "CUDA_EXCEPTION_6: warp misaligned address", ADDRESS },
	[7] = { "CUDA_EXCEPTION_7: warp invalid address space", ADDRESS },
	[8] = { "CUDA_EXCEPTION_8: warp invalid pc", ILLEGAL },
	[9] = { "CUDA_EXCEPTION_9: warp hardware stack overflow", OTHER },
	[10] = { "CUDA_EXCEPTION_10: device illegal address", MEMORY },
	[11] = { "CUDA_EXCEPTION_11: lane misaligned address", ADDRESS },
	[12] = { "CUDA_EXCEPTION_12: warp assert", ASSERT },
	[13] = { "CUDA_EXCEPTION_13: lane syscall error", OTHER },
	[14] = { "CUDA_EXCEPTION_14: warp illegal address", MEMORY },
	[15] = { "CUDA_EXCEPTION_15: lane nonmigratable atomsys", OTHER },
	[16] = { "CUDA_EXCEPTION_16: lane invalid atomsys", OTHER },
	[17] = { "CUDA_EXCEPTION_17: cluster out of range address", ADDRESS },
	[18] = { "CUDA_EXCEPTION_18: cluster block not present", OTHER },
	[19] = { "CUDA_EXCEPTION_19: warp stack canary", OTHER },
	[20] = { "CUDA_EXCEPTION_20: warp tmem access check", MEMORY },
	[21] = { "CUDA_EXCEPTION_21: warp tmem leak", OTHER },
	[22] = { "CUDA_EXCEPTION_22: warp call requires newer driver", OTHER },
	[23] = { "CUDA_EXCEPTION_23: warp misaligned pc", ILLEGAL },
	[24] = { "CUDA_EXCEPTION_24: warp pc overflow", ILLEGAL },
	[25] = { "CUDA_EXCEPTION_25: warp misaligned register", ILLEGAL },
	[26] = { "CUDA_EXCEPTION_26: warp illegal instruction encoding", ILLEGAL },
	[27] = { "CUDA_EXCEPTION_27: warp illegal instruction parameter", ILLEGAL },
	[28] = { "CUDA_EXCEPTION_28: warp out of range register", ILLEGAL },
	[29] = { "CUDA_EXCEPTION_29: warp invalid constant address", ADDRESS },
	[30] = { "CUDA_EXCEPTION_30: warp mmu fault", MEMORY },
	[31] = { "CUDA_EXCEPTION_31: warp arrive error", OTHER },
	[32] = { "CUDA_EXCEPTION_32: cluster poison", OTHER },
	[33] = { "CUDA_EXCEPTION_33: warp api stack error", OTHER },
	[34] = { "CUDA_EXCEPTION_34: warp block not present", OTHER },
	[35] = { "CUDA_EXCEPTION_35: warp user stack overflow", OTHER },
	[36] = { "CUDA_EXCEPTION_36: tma syscall error", OTHER },
};

/*
 * Exceptions of newer drivers: a name for each number that came up, as long as this process lives.
 */
#define UNKNOWN_MAX 32

static const struct cuda_exception *unknown_exception(uint32_t code)
{
	static const struct cuda_exception others = {
		"CUDA_EXCEPTION: one that this agent does not know", OTHER
	};
	static struct {
		uint32_t code;
		char text[64];
		struct cuda_exception e;
	} known[UNKNOWN_MAX];
	static size_t n;

	for (size_t i = 0; i < n; i++)
		if (known[i].code == code)
			return &known[i].e;
	/* The driver's own word for what it does not know is no number of an exception. */
	if (n == UNKNOWN_MAX || code == UINT32_MAX)
		return &others;
	known[n].code = code;
	snprintf(known[n].text, sizeof(known[n].text),
		 "CUDA_EXCEPTION_%u: one that this agent does not know", code);
	known[n].e = (struct cuda_exception){ known[n].text, OTHER };
	return &known[n++].e;
}

const struct cuda_exception *cuda_exception(uint32_t code)
{
	if (!code)
		return NULL;
	return code < ARRAY_SIZE(exceptions) ? &exceptions[code] : unknown_exception(code);
}

struct wave cuda_exception_exited(uint32_t dev, uint32_t sm, uint32_t code, uint64_t pc)
{
	const struct cuda_exception *e = cuda_exception(code);

	return (struct wave){ .pc = pc, .gpu_id = dev, .unit = sm, .reasons = e->reason,
			      .exception = e->text, .state = RPC_WAVE_STATE_STOPPED };
}
