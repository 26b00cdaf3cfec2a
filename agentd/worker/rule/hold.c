/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/hold.h"

#include "base/cleanup.h"
#include "base/log.h"

void rule_hold_begin(struct rule_hold *h, enum rule_hold_reason reason)
{
	h->reasons |= reason;
}

void rule_hold_let_go(struct rule_hold *h)
{
	struct target *t = h->host->target;
	struct agent_err err = { 0 };

	h->reasons = 0;
	if (!h->n)
		return;
	for (size_t i = 0; i < h->n; i++) {
		h->host->ops->undo_begin(h->host->session);
		if (t->ops->event_done(t, &h->events[i], &err) < 0 && !t->ended)
			log_warning("session %u: %s", h->host->number, err.message);
	}
	h->n = 0;
	h->host->ops->undo_end(h->host->session);
}

void rule_hold_end(struct rule_hold *h, enum rule_hold_reason reason)
{
	h->reasons &= ~(uint32_t)reason;
	if (!h->reasons)
		rule_hold_let_go(h);
}

bool rule_hold_keep(struct rule_hold *h, const struct target_event *e)
{
	if (h->n == ARRAY_SIZE(h->events))
		rule_hold_let_go(h);
	if (!h->reasons || !e->forwarded)
		return false;
	h->events[h->n++] = *e;
	return true;
}
