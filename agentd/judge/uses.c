/* SPDX-License-Identifier: MIT */
#include "agentd/judge/uses.h"

#include <string.h>

#include "agentd/access.h"
#include "agentd/audit.h"
#include "agentd/judge/clients.h"
#include "agentd/judge/names.h"
#include "base/clock.h"

/* It has no name if it has long gone, or if who speaks of it lies. */
static struct audit_client who(const struct name *name)
{
	return (struct audit_client){ .pid = name ? name->pid : 0, .uid = name ? name->uid : ACCESS_NOBODY };
}

/* @return whether the record is written; if not, it is counted. */
static bool is_written(struct uses *u, const struct name *name, uid_t owner, bool changes, const char *method,
		       uint32_t n, uint64_t now)
{
	struct budgets *b = who(name).uid == owner ? &u->own : changes ? &u->others_changed : &u->others_read;

	return budgets_add(b, name ? name->charge : ACCESS_NOBODY, method, n, now);
}

static uint32_t plus_one(uint32_t n)
{
	return n < UINT32_MAX ? n + 1 : n;
}

void uses_record(struct uses *u, const struct names *names, const struct clients *all, const struct judge_used *m,
		 uint64_t now)
{
	const struct ipc_used *used = &m->used;
	const struct name *name = names_find(names, used->client, m->worker);
	const struct audit_client client = who(name), from = who(names_find(names, used->from, m->worker));
	const struct audit_use use = { .method = used->method, .session = m->session, .pid = m->pid, .uid = m->uid,
				       .n = plus_one(used->more) };

	/* Who has closed its connection has left. */
	if (used->kind == IPC_USE_TAKEN_LEFT && !clients_find(all, used->from))
		return;
	if (!is_written(u, name, m->uid, used->kind != IPC_USE_READ, used->method, use.n, now))
		return;
	if (ipc_use_is_taken(used->kind))
		audit_taken(&client, &from, &use, (enum ipc_use)used->kind, used->idle_ms);
	else if (used->kind == IPC_USE_CONTROL)
		audit_control(name ? &client : NULL, &use);
	else
		audit_read(name ? &client : NULL, &use);
}

/* Another character could forge a line of the log. */
static const char *record_id(const char id[IPC_RECORD_SIZE])
{
	const size_t n = strnlen(id, IPC_RECORD_SIZE);

	return n < IPC_RECORD_SIZE && strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.") == n ?
		       id : "?";
}

void uses_record_store(struct uses *u, const struct names *names, const struct judge_record_used *m, uint64_t now)
{
	const struct name *name = names_of_store(names, m->worker);
	const struct audit_client client = who(name);
	const bool changes = m->used.kind == IPC_USE_CONTROL;
	const uint32_t n = plus_one(m->used.more);

	if (is_written(u, name, m->used.uid, changes, m->used.method, n, now))
		audit_record_use(&client, m->used.method, record_id(m->used.record), m->used.uid, n);
}

void uses_release(struct uses *u, const struct name *client, uint64_t now)
{
	static const char method[] = "session.detach";
	const struct audit_client by = who(client);
	const struct audit_use use = { .method = method, .session = client->session, .pid = (uint32_t)client->target,
				       .uid = client->target_uid, .n = 1 };

	if (is_written(u, client, client->target_uid, true, method, 1, now))
		audit_control(&by, &use);
}

uint64_t uses_due(struct uses *u, uint64_t now, bool all)
{
	return clock_earlier(budgets_due(&u->own, now, all, audit_own_uses),
			     clock_earlier(budgets_due(&u->others_changed, now, all, audit_other_uses),
					   budgets_due(&u->others_read, now, all, audit_other_uses)));
}
