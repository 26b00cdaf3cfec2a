/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/worker/inspect/inspect.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

/* Whatever the client may do: a daemon without privileges reaches its own user's processes. */
static const char *agent_refusal(const struct worker_options *o, const struct access_target *facts,
				 const char **ret_fix)
{
	if (o->privileged || facts->uids[0] == getuid())
		return NULL;
	*ret_fix = "ask the system-wide gpu-agentd";
	return "it belongs to another user than the agent, which has no privileges";
}

const char *inspect_refusal(const struct worker_options *o, const struct access_target *facts,
			    const char **ret_fix)
{
	/*
	 * The worker runs as the client's user: what the kernel lets it see, it lets him see.  A client
	 * in a namespace below the agent's is judged too kindly here; spawn, which knows, decides.
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

/* What a session worker's command line says, arguments separated by NUL. */
static bool read_worker(pid_t worker, uint64_t *ret_target, uint64_t *ret_session)
{
	auto_free char *line = NULL;
	uint64_t target = 0, session = 0;
	bool is_session = false;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)worker);
	if (fd_read_file(path, 16 * 1024, &line, &size) < 0)
		return false;
	for (const char *p = line; p < line + size; p += strlen(p) + 1) {
		const char *value = p + strlen(p) + 1;

		if (value >= line + size)
			break;
		if (strcmp(p, "--kind") == 0)
			is_session = strcmp(value, "session") == 0;
		else if (strcmp(p, "--pid") == 0 && str_to_u64(value, 1, INT32_MAX, &target) < 0)
			return false;
		else if (strcmp(p, "--session") == 0 &&
			 str_to_u64(value, 1, UINT32_MAX, &session) < 0)
			return false;
	}
	*ret_target = target;
	*ret_session = session;
	return is_session && target && session;
}

/*
 * The first of spawn's children that is the session worker of @p target, or is @p worker; 0: any.
 * Nobody else can pass for one of those.
 */
static const char *find_worker(struct rpc_arena *a, pid_t worker, pid_t target)
{
	auto_free char *children = NULL;
	struct ucred spawn; /* it made our socket */
	socklen_t spawn_size = sizeof(spawn);
	uint64_t of, session;
	char path[64], *end;
	size_t size;

	if (getsockopt(IPC_FD_SPAWN, SOL_SOCKET, SO_PEERCRED, &spawn, &spawn_size) < 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)spawn.pid, (int)spawn.pid);
	if (fd_read_file(path, 64 * 1024, &children, &size) < 0)
		return NULL;
	for (char *p = children; *p; p = end) {
		pid_t pid = (pid_t)strtol(p, &end, 10);

		if (end == p)
			break;
		if ((!worker || pid == worker) && read_worker(pid, &of, &session) &&
		    (!target || of == (uint64_t)target))
			return rpc_arena_printf(a, "s%llu", (unsigned long long)session);
	}
	return NULL;
}

bool inspect_is_own_worker(struct rpc_arena *a, pid_t pid)
{
	return find_worker(a, pid, 0);
}

const char *inspect_session(struct rpc_arena *a, pid_t target)
{
	return find_worker(a, 0, target);
}

const char *inspect_tracer(struct rpc_arena *a, const struct access_target *facts,
			   const char **ret_session)
{
	struct access_target tracer;

	*ret_session = find_worker(a, facts->tracer_pid, facts->pid);
	if (!facts->tracer_pid)
		return NULL;
	if (access_target_read(facts->tracer_pid, &tracer) < 0)
		return rpc_arena_printf(a, "traced by process %d", (int)facts->tracer_pid);
	return rpc_arena_printf(a, "traced by process %d (%s)", (int)tracer.pid, tracer.comm);
}

int inspect_ptrace_scope(void)
{
	auto_free char *text = NULL;
	size_t size;
	int r = fd_read_file("/proc/sys/kernel/yama/ptrace_scope", 64, &text, &size);

	if (r < 0)
		return access("/proc/sys/kernel/yama", F_OK) < 0 ? 0 : -1;
	return atoi(text);
}

bool inspect_scope_allows(const struct worker_options *o, int scope)
{
	return scope <= 0 || (scope < 3 && o->privileged);
}
