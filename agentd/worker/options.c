/* SPDX-License-Identifier: MIT */
#include "agentd/worker/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentd/privileges.h"
#include "base/argv.h"
#include "base/clock.h"
#include "base/str.h"

struct texts {
	const char *kind, *pid, *session, *timeout, *uid, *gid;
};

static int number(const char *name, const char *text, uint64_t max, uint64_t *ret, char *error,
		  size_t error_size)
{
	if (text && str_to_u64(text, 0, max, ret) == 0)
		return 0;
	snprintf(error, error_size, "--%s needs a number up to %llu", name,
		 (unsigned long long)max);
	return -EINVAL;
}

static int convert(const struct texts *t, struct worker_options *o, char *error, size_t error_size)
{
	uint64_t pid, session, timeout, uid, gid;

	if (number("pid", t->pid, INT32_MAX, &pid, error, error_size) < 0 ||
	    number("session", t->session, UINT32_MAX, &session, error, error_size) < 0 ||
	    number("timeout-ms", t->timeout, UINT32_MAX, &timeout, error, error_size) < 0 ||
	    number("peer-uid", t->uid, UINT32_MAX - 1, &uid, error, error_size) < 0 ||
	    number("peer-gid", t->gid, UINT32_MAX - 1, &gid, error, error_size) < 0)
		return -EINVAL;
	o->pid = (pid_t)pid;
	o->session = (uint32_t)session;
	o->timeout_ms = (uint32_t)timeout;
	o->deadline_ns = clock_deadline_ms(timeout);
	o->peer_uid = (uid_t)uid;
	o->peer_gid = (gid_t)gid;
	if (t->kind && strcmp(t->kind, "session") == 0 && o->pid) {
		o->kind = IPC_KIND_SESSION;
	} else if (t->kind && strcmp(t->kind, "inspect") == 0) {
		o->kind = IPC_KIND_INSPECT;
	} else if (t->kind && strcmp(t->kind, "rescue") == 0 && o->pid) {
		o->kind = IPC_KIND_RESCUE;
	} else {
		snprintf(error, error_size,
			 "--kind needs `session` or `rescue` (with --pid), or `inspect`");
		return -EINVAL;
	}
	return 0;
}

int worker_options_parse(int argc, char **argv, struct worker_options *ret, char *error,
			 size_t error_size)
{
	struct texts t = { 0 };
	struct worker_options o = { 0 };
	const struct argv_option options[] = {
		{ "kind", 0, ARGV_STRING, &t.kind, "KIND", "session or inspect" },
		{ "pid", 0, ARGV_STRING, &t.pid, "PID", "target" },
		{ "session", 0, ARGV_STRING, &t.session, "N", "number of the session" },
		{ "timeout-ms", 0, ARGV_STRING, &t.timeout, "MS", "time to attach" },
		{ "peer-uid", 0, ARGV_STRING, &t.uid, "UID", "user of the client" },
		{ "peer-gid", 0, ARGV_STRING, &t.gid, "GID", "group of the client" },
		{ "kfd", 0, ARGV_STRING, &o.kfd_device, "PATH", "KFD device" },
		{ "kfd-sysfs", 0, ARGV_STRING, &o.kfd_sysfs, "DIR", "KFD topology" },
		{ "cuda-library", 0, ARGV_STRING, &o.cuda_library, "PATH", "CUDA driver library" },
		{ "admin", 0, ARGV_FLAG, &o.peer_admin, NULL, "the client is an administrator" },
		{ "observer", 0, ARGV_FLAG, &o.peer_observer, NULL, "the client may look at all" },
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
	if (convert(&t, &o, error, error_size) < 0)
		return -EINVAL;
	o.privileged = privileges_may_trace();
	*ret = o;
	return 0;
}
