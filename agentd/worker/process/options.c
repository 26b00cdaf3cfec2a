/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentd/privileges.h"
#include "base/argv.h"
#include "base/clock.h"

#define NOBODY UINT32_MAX

static int kind_from_text(const char *text, const struct worker_options *o, enum ipc_kind *ret)
{
	if (text && strcmp(text, "session") == 0 && o->pid > 0)
		*ret = IPC_KIND_SESSION;
	else if (text && strcmp(text, "inspect") == 0)
		*ret = IPC_KIND_INSPECT;
	else if (text && strcmp(text, "look") == 0)
		*ret = IPC_KIND_LOOK;
	else if (text && strcmp(text, "host") == 0 && o->pid > 0)
		*ret = IPC_KIND_HOST;
	else if (text && strcmp(text, "rescue") == 0 && o->pid > 0)
		*ret = IPC_KIND_RESCUE;
	else if (text && strcmp(text, "repair") == 0 && o->pid > 0)
		*ret = IPC_KIND_REPAIR;
	else
		return -EINVAL;
	return 0;
}

int worker_options_parse(int argc, char **argv, struct worker_options *ret, char *error,
			 size_t error_size)
{
	struct worker_options o = { .peer_uid = NOBODY, .peer_gid = NOBODY };
	const char *kind = NULL;
	const struct argv_option options[] = {
		{ "kind", 0, ARGV_STRING, &kind, "KIND", "session, rescue, repair, host, inspect or look" },
		{ "pid", 0, ARGV_U32, &o.pid, "PID", "target" },
		{ "session", 0, ARGV_U32, &o.session, "N", "number of the session" },
		{ "timeout-ms", 0, ARGV_U32, &o.timeout_ms, "MS", "time to attach" },
		{ "max-suspended-ms", 0, ARGV_U32, &o.max_suspended_ms, "MS",
		  "longest stop of queues at once" },
		{ "observer-stops-ms", 0, ARGV_U32, &o.observer_stops_ms, "MS",
		  "stops for clients that may only look, at once" },
		{ "observer-stop-rate-ms", 0, ARGV_U32, &o.observer_stop_rate_ms, "MS",
		  "such stops in each second" },
		{ "peer-uid", 0, ARGV_U32, &o.peer_uid, "UID", "user of the client" },
		{ "peer-gid", 0, ARGV_U32, &o.peer_gid, "GID", "group of the client" },
		{ "kfd", 0, ARGV_STRING, &o.kfd_device, "PATH", "KFD device" },
		{ "kfd-sysfs", 0, ARGV_STRING, &o.kfd_sysfs, "DIR", "KFD topology" },
		{ "cuda-library", 0, ARGV_STRING, &o.cuda_library, "PATH", "CUDA driver library" },
		{ "admin", 0, ARGV_FLAG, &o.peer_admin, NULL, "the client is an administrator" },
		{ "observer", 0, ARGV_FLAG, &o.peer_observer, NULL, "the client may look at all" },
		{ "stops", 0, ARGV_FLAG, &o.stops, NULL, "threads may be stopped for the client" },
		{ "near", 0, ARGV_FLAG, &o.peer_near, NULL, "the client lives in the agent's namespaces" },
		{ "permissive", 0, ARGV_FLAG, &o.permissive, NULL, "refuse NVIDIA's library no calls" },
		{ "verbose", 0, ARGV_FLAG, &o.verbose, NULL, "log more" },
		{ 0 },
	};
	const struct argv_option *const tables[] = { options, NULL };
	int n = argv_parse(argc, argv, tables, error, error_size);

	if (n < 0)
		return n;
	if (n > 0 || !o.kfd_device || !o.kfd_sysfs || !o.cuda_library) {
		snprintf(error, error_size, "gpu-agent-worker is started by gpu-agentd only");
		return -EINVAL;
	}
	if (o.peer_uid == NOBODY || o.peer_gid == NOBODY) {
		snprintf(error, error_size, "--peer-uid and --peer-gid are missing");
		return -EINVAL;
	}
	if (kind_from_text(kind, &o, &o.kind) < 0) {
		snprintf(error, error_size,
			 "--kind needs `session`, `rescue`, `repair` or `host` (with --pid), `inspect` or `look`");
		return -EINVAL;
	}
	o.deadline_ns = clock_deadline_ms(o.timeout_ms);
	o.privileged = privileges_may_trace();
	*ret = o;
	return 0;
}
