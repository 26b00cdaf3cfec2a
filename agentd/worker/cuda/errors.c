/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "agentd/worker/cuda/cuda.h"

int cuda_no_memory(const char *op, struct agent_err *err)
{
	return agent_err_no_memory(err, op);
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
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, -r, op,
				     "a newer driver may have it",
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
		[CUDBGSHIM_OUTCOME_NAME] = RPC_ERROR_BUSY,
		[CUDBGSHIM_OUTCOME_CONNECT] = RPC_ERROR_NOT_DEBUGGABLE,
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
	return agent_err_set(err, code, -e->error, e->step,
			     e->outcome == CUDBGSHIM_OUTCOME_NO_DEVICE && !cuda_has_nodes() ?
				     CUDA_NODES_HINT : cudbgshim_outcome_hint(e->outcome),
			     "%s", e->text);
}
