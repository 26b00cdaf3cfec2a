/* SPDX-License-Identifier: MIT */
/* What a failed debug command means for the client, the session and its undo entries. */
#include <errno.h>

#include "agentd/worker/kfd/kfd.h"
#include "base/cleanup.h"
#include "base/log.h"

static const struct {
	int err_no;
	int32_t code;
	const char *text, *hint;
} meanings[] = {
	{ EBUSY, RPC_ERROR_BUSY, "the device is being used in a way that excludes this",
	  "stop profilers (PC sampling) and cooperative launches on this GPU, then try again" },
	{ ENODEV, RPC_ERROR_NOT_DEBUGGABLE, "the device is not one of the target's, or cannot be debugged",
	  "gpu-agentctl doctor tells which device is in the way" },
	{ EOPNOTSUPP, RPC_ERROR_NOT_DEBUGGABLE, "the program uses a secondary KFD context",
	  "only primary contexts can be debugged" },
	{ ENOTTY, RPC_ERROR_NOT_DEBUGGABLE, "the driver has no debug interface",
	  "it came with kernel 6.5: use that or a newer one" },
	{ ETIME, RPC_ERROR_TIMEOUT, "the GPU's scheduler does not answer",
	  "the GPU may hang: look at the kernel log; a GPU reset may follow" },
	{ EIO, RPC_ERROR_FAILED, "the GPU did not do it",
	  "a GPU reset may be in progress: look at the kernel log and try again" },
	{ ENOMEM, RPC_ERROR_FAILED, "the kernel is out of memory", "free memory and try again" },
	{ EFAULT, RPC_ERROR_FAILED, "the kernel could not copy its answer", "try again" },
	{ EINTR, RPC_ERROR_FAILED, "signals kept interrupting it", "try again" },
	{ EAGAIN, RPC_ERROR_FAILED, "the program keeps creating queues", "try again" },
};

/*
 * Look up what one errno of a debug command means.
 * @return false: it has no particular meaning; the ret_* are untouched then.
 */
static bool kfd_errno_meaning(int err_no, int32_t *ret_code, const char **ret_text, const char **ret_hint)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++) {
		if (meanings[i].err_no != err_no)
			continue;
		*ret_code = meanings[i].code;
		*ret_text = meanings[i].text;
		*ret_hint = meanings[i].hint;
		return true;
	}
	return false;
}

/*
 * EINVAL and EPERM also mean that somebody else has ended the session.  A query for an event, which
 * needs nothing but a session, tells the two cases apart.
 */
static bool session_is_lost(struct target_kfd *k)
{
	struct kfdtrap_event e;
	int r = kfdtrap_query_debug_event(k->kt, 0, &e);

	return r == -EINVAL || r == -EPERM || r == -ESRCH;
}

static int explain(struct target_kfd *k, int r, bool hardware, const char *op,
		   struct agent_err *err)
{
	const char *text = "the kernel refused it", *hint = "the kernel log may say why";
	int32_t code = RPC_ERROR_FAILED;

	if (r == -ESRCH)
		return target_end(&k->t, target_why_gone(&k->t), op, err);
	if ((r == -EINVAL || r == -EPERM) && session_is_lost(k))
		return target_end(&k->t, RPC_END_REASON_LOST, op, err);
	if (r == -EPERM && hardware) {
		code = RPC_ERROR_NOT_DEBUGGABLE;
		text = "the program's GPU runtime is not enabled any more";
		hint = "try again when the program uses the GPU";
	} else {
		kfd_errno_meaning(-r, &code, &text, &hint);
	}
	/* A command that is no hardware command needs no device that can be debugged. */
	if (!hardware && code != RPC_ERROR_TIMEOUT)
		code = RPC_ERROR_FAILED;
	return agent_err_set(err, code, -r, op, hint, "%s: %s", op, text);
}

int kfd_error(struct target_kfd *k, int r, const char *op, struct agent_err *err)
{
	return explain(k, r, false, op, err);
}

int kfd_hw_error(struct target_kfd *k, int r, const char *op, struct agent_err *err)
{
	return explain(k, r, true, op, err);
}

static bool runtime_is_off(struct target_kfd *k)
{
	struct kfdtrap_runtime_info info;

	/* The event of the change is latched until it is read, and may not have been read yet. */
	return k->t.runtime.state != RPC_RUNTIME_STATE_ENABLED ||
	       (kfdtrap_query_runtime_info(k->kt, false, &info) == 0 &&
		info.state != KFDTRAP_RUNTIME_ENABLED);
}

/* The kernel undoes everything at the end of the session, of the process, and of its runtime. */
static bool is_undone(struct target_kfd *k, int r)
{
	switch (-r) {
	case ESRCH:
		/* If only the main thread has ended, the process and its changes live on. */
		return target_is_gone();
	case EINVAL:
		return session_is_lost(k);
	case EPERM:
		return session_is_lost(k) || runtime_is_off(k);
	}
	return r >= 0;
}

int kfd_undo_error(struct target_kfd *k, int r, const char *op, struct agent_err *err)
{
	if (is_undone(k, r))
		return 0;
	/* To find out how the target ended takes time, so that is not done for each try. */
	if (r == -ESRCH)
		return agent_err_set(err, RPC_ERROR_SESSION_ENDED, ESRCH, op, NULL,
				     "%s: the kernel does not find the process", op);
	return kfd_hw_error(k, r, op, err);
}

int kfd_give_up(struct target_kfd *k, int r, const char *op, struct agent_err *err)
{
	struct agent_err unread = { 0 };

	if (!err)
		err = &unread;
	if (op)
		kfd_error(k, r, op, err);
	if (k->t.ended)
		return r;
	log_error("process %d: %s, %d times: the session ends, so that the kernel lets it go",
		  (int)k->t.facts.pid, err->message, KFD_TRIES);
	return target_undo_failed(&k->t, r);
}

int kfd_enable_error(struct target_kfd *k, int r, struct agent_err *err)
{
	static const char op[] = "KFD ENABLE";
	int pid = (int)k->t.facts.pid;

	switch (-r) {
	case EALREADY:
		return agent_err_set(
			err, RPC_ERROR_BUSY, EALREADY, op,
			"let the other debugger detach; a program can also debug itself",
			"a GPU debug session is open on process %d already", pid);
	case EAGAIN:
		log_warning("process %d: another debugger began a session while this one was begun: it was ended", pid);
		return agent_err_set(err, RPC_ERROR_BUSY, EAGAIN, op, "try again",
				     "another debugger began a session on process %d at the same time, and it was ended",
				     pid);
	case ESRCH:
		if (target_why_gone(&k->t) == RPC_END_REASON_EXITED)
			return agent_err_set(err, RPC_ERROR_NO_SUCH_PROCESS, ESRCH, op,
					     "gpu-agentctl list shows the processes that use a GPU",
					     "process %d is gone", pid);
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, ESRCH, op,
				     "it has not opened the GPU, it just executed another program, or its main thread has finished",
				     "process %d has no GPU context", pid);
	case ENODEV:
		return agent_err_set(
			err, RPC_ERROR_NOT_DEBUGGABLE, ENODEV, op,
			"hide that GPU from the program (device cgroup), or use gfx9 and newer",
			"process %d can use a GPU that is too old to be debugged", pid);
	case EBUSY:
		return agent_err_set(
			err, RPC_ERROR_BUSY, EBUSY, op,
			"wait until cooperative launches or PC sampling end, then try again",
			"a GPU of process %d is used in a way that excludes debugging", pid);
	case EINVAL:
		return agent_err_set(
			err, RPC_ERROR_NOT_DEBUGGABLE, EINVAL, op,
			"a GPU reset may be in progress: look at the kernel log and try again",
			"the driver cannot debug process %d now", pid);
	case EPERM:
		return agent_err_set(
			err, RPC_ERROR_NOT_PERMITTED, EPERM, op,
			"another process may trace it, or a security module interferes",
			"the driver does not accept the agent as debugger of process %d", pid);
	default:
		return kfd_hw_error(k, r, op, err);
	}
}

int kfd_need_runtime(struct target_kfd *k, const char *op, struct agent_err *err)
{
	switch (k->t.runtime.state) {
	case RPC_RUNTIME_STATE_ENABLED:
		return 0;
	case RPC_RUNTIME_STATE_BUSY:
		return agent_err_set(
			err, RPC_ERROR_BUSY, EBUSY, op,
			"this GPU can debug one process at a time: end the other session",
			"another debugged process holds a device of this one");
	case RPC_RUNTIME_STATE_ERROR:
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, EIO, op,
				     "the kernel log has details; only gpu.devices, gpu.queues and gpu.snapshot work",
				     "the driver could not set up debugging on the devices");
	default:
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, EPERM, op,
				     "wait for the program to initialise ROCm (hsa_init); if it has queues, its ROCm is too old (5.2 is, 6.1 is not), or it uses the GPU without ROCm; every GPU must have debug firmware",
				     "the program has not enabled its GPU runtime");
	}
}
