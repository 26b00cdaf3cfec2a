/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/hold.h"

#include <event2/event.h>

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

	rule_hold_deinit(h);
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

static void on_patience(evutil_socket_t fd, short what, void *user)
{
	struct rule_hold *h = user;
	const struct rule_host *host = h->host;

	log_info("rule %s: process %d gets its fault before its %s", h->rule->name, (int)host->target->facts.pid,
		 h->reasons & RULE_HOLD_CORE ? "core is written" : "threads are read");
	host->ops->work_begin(host->session);
	rule_hold_let_go(h);
	host->ops->work_end(host->session);
	/* If this has found the session over, the session looks at that itself. */
	if (host->target->ended)
		host->ops->target_ended(host->session);
}

static bool begin_patience(struct rule_hold *h)
{
	const struct timeval hold = { .tv_sec = h->rule->hold_ms / 1000, .tv_usec = h->rule->hold_ms % 1000 * 1000 };

	h->patience = event_new(h->host->base, -1, 0, on_patience, h);
	if (h->patience && event_add(h->patience, &hold) == 0)
		return true;
	rule_hold_deinit(h);
	return false;
}

bool rule_hold_keep(struct rule_hold *h, const struct target_event *e)
{
	if (h->n == ARRAY_SIZE(h->events))
		rule_hold_let_go(h);
	if (!h->reasons || !e->forwarded || (!h->n && !begin_patience(h)))
		return false;
	h->events[h->n++] = *e;
	return true;
}

void rule_hold_deinit(struct rule_hold *h)
{
	if (h->patience)
		event_free(h->patience);
	h->patience = NULL;
}
