/* SPDX-License-Identifier: MIT */
/* May the client debug a process, and who traces it? */
#include <unistd.h>

#include "agentd/worker/inspect/inspect.h"
#include "agentd/worker/process/own_workers.h"

/* A daemon without privileges reaches only its own user's processes, whatever the client may. */
static const char *agent_refusal(const struct worker_options *o, const struct access_target *facts,
				 const char **ret_fix)
{
	if (o->privileged || facts->uids[0] == getuid())
		return NULL;
	*ret_fix = "ask the system-wide gpu-agentd; if this is it, it needs CAP_SYS_PTRACE";
	return "it belongs to another user than the agent, which has no privileges";
}

const char *inspect_refusal(const struct worker_options *o, const struct access_target *facts,
			    const char **ret_fix)
{
	/*
	 * The worker runs as the client's user: what the kernel shows the worker, it shows the
	 * client.  Only a client in a namespace below the agent's is judged too kindly here; when
	 * it attaches, the monitor decides, which knows the client's namespaces.
	 */
	const struct access_peer peer = { .pid = getpid(),
					  .uid = o->peer_uid,
					  .gid = o->peer_gid,
					  .admin = o->peer_admin,
					  .observer = o->peer_observer,
					  .pidfd = -1,
					  .known = true,
					  .near_user = true,
					  .near_pid = true };
	enum ipc_right rights;
	const char *unused;

	if (!ret_fix)
		ret_fix = &unused;
	*ret_fix = NULL;
	switch (access_decide(&peer, facts, &rights)) {
	case IPC_VERDICT_OK:
		return agent_refusal(o, facts, ret_fix);
	case IPC_VERDICT_NO_PROCESS:
		*ret_fix = "choose another process: gpu-agentctl list";
		return "it has ended and waits for its parent";
	case IPC_VERDICT_KERNEL_THREAD:
		*ret_fix = "choose another process: gpu-agentctl list";
		return "it is a kernel thread";
	case IPC_VERDICT_OTHER_USER:
		*ret_fix = "ask its owner or an administrator, or join the agent's admin group";
		return "it belongs to another user, or runs with changed user ids";
	case IPC_VERDICT_NOT_DUMPABLE:
		*ret_fix = "an administrator may attach; or let the program call prctl(PR_SET_DUMPABLE, 1)";
		return "it is not dumpable: it protects itself from its own user";
	case IPC_VERDICT_USER_NAMESPACE:
		*ret_fix = "ask an administrator, or call the agent from inside that namespace";
		return "it lives in a user namespace that is not the client's";
	case IPC_VERDICT_CAPABILITIES:
		*ret_fix = "ask an administrator";
		return "it has capabilities that the client has not";
	case IPC_VERDICT_OTHER_GROUP:
		*ret_fix = "ask with its group (newgrp), or an administrator";
		return "it runs with other group ids than the client";
	case IPC_VERDICT_KERNEL:
		*ret_fix = "ask an administrator; the policy of a security module may say more";
		return "the kernel does not let the client look into it";
	default:
		return "it may not be debugged";
	}
}

const char *inspect_tracer(struct rpc_arena *a, const struct access_target *facts,
			   const char **ret_session)
{
	struct access_target tracer;

	*ret_session = own_workers_find(a, facts->tracer_pid, facts->pid);
	if (!facts->tracer_pid)
		return NULL;
	if (access_target_read(facts->tracer_pid, &tracer) < 0)
		return rpc_arena_printf(a, "traced by process %d", (int)facts->tracer_pid);
	return rpc_arena_printf(a, "traced by process %d (%s)", (int)tracer.pid, tracer.comm);
}
