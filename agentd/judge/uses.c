/* SPDX-License-Identifier: MIT */
#include "agentd/judge/uses.h"

#include "agentd/access.h"
#include "agentd/audit.h"
#include "agentd/judge/names.h"
#include "base/clock.h"

void uses_record(struct uses *u, const struct names *names, const struct judge_used *m, uint64_t now)
{
	/* It has no name if it has long gone, or if the worker lies. */
	const struct name *name = names_find(names, m->used.client, m->worker);
	const struct audit_client client = { .pid = name ? name->pid : 0, .uid = name ? name->uid : ACCESS_NOBODY };
	const uid_t charge = name ? name->charge : ACCESS_NOBODY;
	const uint32_t n = m->used.more < UINT32_MAX ? m->used.more + 1 : UINT32_MAX;
	const struct audit_use use = { .method = m->used.method, .session = m->session, .pid = m->pid, .uid = m->uid,
				       .n = n };

	if (!budgets_add(client.uid == m->uid ? &u->own : &u->others, charge, n, now))
		return;
	if (m->used.kind == IPC_USE_CONTROL)
		audit_control(name ? &client : NULL, &use);
	else
		audit_read(name ? &client : NULL, &use);
}

uint64_t uses_due(struct uses *u, uint64_t now, bool all)
{
	return clock_earlier(budgets_due(&u->own, now, all, audit_own_uses),
			     budgets_due(&u->others, now, all, audit_other_uses));
}
