/* SPDX-License-Identifier: MIT */
#include "agentd/rules/hooks/hook_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* Of a user that the database does not know. */
#define NO_GROUP 65534

struct asked {
	struct hook_desk *desk;
	uint32_t request;
};

static void answer(struct hook_desk *d, uint32_t request, int status, const void *data, size_t size)
{
	struct ipc_hooked m = { .type = IPC_HOOKED, .request = request, .status = status };
	auto_close int fd = -1;

	if (status == 0 && size)
		m.status = fd_memfd_sealed("gpu-agent-hooks", data, size, &fd);
	d->send(d->ctx, &m, fd);
}

static void on_listed(void *ctx, const struct hook_info *list, size_t n)
{
	struct asked *a = ctx;

	answer(a->desk, a->request, 0, list, n * sizeof(*list));
	free(a);
}

static void on_done(void *ctx, const struct hook_report *report)
{
	struct asked *a = ctx;

	answer(a->desk, a->request, 0, report, sizeof(*report));
	free(a);
}

static void audit(const struct access_peer *peer, const char *rule, int result)
{
	char uid[12], pid[12];
	const struct log_field fields[] = { { "GPU_AGENT_PEER_UID", uid },
					    { "GPU_AGENT_PEER_PID", pid },
					    { "GPU_AGENT_METHOD", "hooks.test" },
					    { "GPU_AGENT_RULE", rule },
					    { NULL, NULL } };

	snprintf(uid, sizeof(uid), "%u", peer->uid);
	snprintf(pid, sizeof(pid), "%d", (int)peer->pid);
	log_record(LOG_LEVEL_INFO, LOG_MESSAGE_CONTROL, fields,
		   "test of rule %s by uid %s (pid %s): %s", rule, uid, pid,
		   result < 0 ? strerror(-result) : "allowed");
}

/* Administrators run what root has configured, as its user or as themselves; root, as anybody. */
static int test(struct hook_desk *d, const struct ipc_hooks *m, const struct access_peer *peer,
		int document_fd, struct asked *a)
{
	const struct log_field fields[] = { { "GPU_AGENT_TEST", "1" },
					    { "GPU_AGENT_COMM", "sample" },
					    { "GPU_AGENT_EXCEPTION", "memory_violation" },
					    { "GPU_AGENT_KERNEL", "sample_kernel" },
					    { NULL, NULL } };
	uid_t uid = m->uid == IPC_HOOKS_CALLER ? peer->uid : m->uid;
	const struct hook_event e = { .rule = m->rule,
				      .uid = uid,
				      .gid = uid == peer->uid ? peer->gid : NO_GROUP,
				      .fields = fields,
				      .document_fd = document_fd };

	if (!peer->admin && !(d->user_mode && peer->uid == getuid()))
		return -EACCES;
	if (uid != peer->uid && !(peer->admin && peer->uid == 0))
		return -EACCES;
	return hooks_run(d->hooks, &e, on_done, a);
}

static int list(struct hook_desk *d, const struct access_peer *peer, struct asked *a)
{
	bool root = peer->admin && peer->uid == 0;

	/* Hooks never run as root for that reason alone: root wants to know about others. */
	return hooks_list(d->hooks, root ? NO_GROUP : peer->uid, root ? NO_GROUP : peer->gid, root, on_listed, a);
}

static void answer_counts(struct hook_desk *d, uint32_t request)
{
	const size_t n = d->hooks->rules.n;
	auto_free struct hook_info *list = calloc(n ? n : 1, sizeof(*list));

	if (list)
		hooks_count(d->hooks, list);
	answer(d, request, list ? 0 : -ENOMEM, list, n * sizeof(*list));
}

void hook_requests_take(struct hook_desk *d, const struct ipc_hooks *m,
			const struct access_peer *client, int document_fd)
{
	struct asked *a;
	int r;

	if (!m->rule[0] && m->uid == IPC_HOOKS_COUNTS) {
		answer_counts(d, m->request);
		return;
	}
	a = malloc(sizeof(*a));
	if (!a) {
		answer(d, m->request, -ENOMEM, NULL, 0);
		return;
	}
	*a = (struct asked){ .desk = d, .request = m->request };
	r = m->rule[0] ? test(d, m, client, document_fd, a) : list(d, client, a);
	if (m->rule[0])
		audit(client, m->rule, r);
	if (r == 0)
		return;
	/* A list of none is an answer. */
	answer(d, m->request, !m->rule[0] && r == -ENOENT ? 0 : r, NULL, 0);
	free(a);
}
