/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/watch.h"

#include <string.h>
#include <unistd.h>

#include "agentd/frontend/session/rules.h"
#include "agentd/frontend/session/worker.h"
#include "base/str.h"

void watch_received(struct sessions *all, const struct ipc_watch *m, int take_channel)
{
	const struct ipc_started started = { .worker = m->worker, .session = m->session,
					     .target_uid = m->target_uid };
	struct session *s = session_find_worker(all, m->worker);
	struct front_rule *r = m->rule[0] ? rules_find(all, m->rule) : NULL;
	struct ipc_started named = started;

	memcpy(named.comm, m->comm, sizeof(named.comm));
	if (!s && take_channel >= 0)
		s = worker_create(all, &named, IPC_KIND_SESSION, m->session, m->pid, take_channel);
	else if (take_channel >= 0)
		close(take_channel);
	if (!s || s->closing || s->over)
		return; /* It is ending: the monitor hears of that, and watches the process again. */
	if (r && strcmp(s->rule, m->rule) != 0)
		r->matched++;
	str_copy(s->rule, sizeof(s->rule), m->rule);
	session_check_needed(s);
}
