/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agentd/worker/target_cuda.h"
#include "base/cleanup.h"

int cuda_no_memory(const char *op, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, op, NULL, "out of memory");
}

int cuda_error(struct target_cuda *c, int r, const char *op, struct agent_err *err)
{
	const struct cudbgshim_call *last = cudbgshim_last(c->shim);
	const char *words = last->called ? cudbgshim_result_words(last->result) : NULL;
	const char *hint = last->called ? cudbgshim_result_hint(last->result) : NULL;

	if (r == -ENOMEM)
		return cuda_no_memory(op, err);
	if (cudbgshim_is_over(c->shim))
		return target_end(&c->t, target_why_gone(&c->t), op, err);
	if (r == -ENOSYS || r == -EOPNOTSUPP)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, -r, op, "a newer driver may have it",
				     "the driver's debugger API has no such call");
	return agent_err_set(err, RPC_ERROR_FAILED, -r, op, hint, "%s: %s", last->name ? last->name : op,
			     words ? words : "the driver's answer makes no sense");
}

int cuda_attach_error(struct target_cuda *c, struct agent_err *err)
{
	static const int codes[CUDBGSHIM_OUTCOME_COUNT] = {
		[CUDBGSHIM_OUTCOME_TOO_OLD] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_BAD_LIBRARY] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_DEBUGGED] = RPC_ERROR_BUSY,
		[CUDBGSHIM_OUTCOME_PREEMPTION] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_NOT_POSSIBLE] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_ENGINE] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_OUR_DRIVER] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_NAMESPACE] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_NO_DEVICE] = RPC_ERROR_NOT_DEBUGGABLE,
		[CUDBGSHIM_OUTCOME_GONE] = RPC_ERROR_NO_SUCH_PROCESS,
		[CUDBGSHIM_OUTCOME_TIMEOUT] = RPC_ERROR_TIMEOUT,
	};
	const struct cudbgshim_session_error *e = cudbgshim_session_error(c->session);
	int code = codes[e->outcome] ? codes[e->outcome] : RPC_ERROR_FAILED;

	/* Calls fail some time before the process counts as dead. */
	if (code == RPC_ERROR_FAILED && target_why_gone(&c->t) == RPC_END_REASON_EXITED)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, e->step, NULL,
				     "process %d ended while it was being attached to",
				     (int)c->t.options->pid);
	if (e->outcome == CUDBGSHIM_OUTCOME_CALL && (e->error == -EBUSY || e->error == -EPERM))
		return leader_refusal(c->t.options->pid, e->step, err);
	return agent_err_set(err, code, -e->error, e->step, cudbgshim_outcome_hint(e->outcome), "%s",
			     e->text);
}

/* ------------------------------------------------------------------ exceptions --------------- */

#define MEMORY                                                                                     \
	STOP_REASON_BIT(RPC_STOP_REASON_MEMORY_VIOLATION), RPC_EXCEPTION_WAVE_MEMORY_VIOLATION
#define ADDRESS STOP_REASON_BIT(RPC_STOP_REASON_ADDRESS_ERROR), RPC_EXCEPTION_WAVE_ADDRESS_ERROR
#define ILLEGAL                                                                                    \
	STOP_REASON_BIT(RPC_STOP_REASON_ILLEGAL_INSTRUCTION), RPC_EXCEPTION_WAVE_ILLEGAL_INSTRUCTION
#define ASSERT	STOP_REASON_BIT(RPC_STOP_REASON_ASSERT), RPC_EXCEPTION_WAVE_ABORT
#define OTHER	STOP_REASON_BIT(RPC_STOP_REASON_FAULT), RPC_EXCEPTION_WAVE_FAULT

/* Numbers and what they mean: reference sheet 9.4. */
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

static const struct cuda_exception unknown = { "CUDA_EXCEPTION: one that this agent does not know",
					       OTHER };

const struct cuda_exception *cuda_exception(uint32_t code)
{
	if (!code)
		return NULL;
	return code < ARRAY_SIZE(exceptions) ? &exceptions[code] : &unknown;
}
