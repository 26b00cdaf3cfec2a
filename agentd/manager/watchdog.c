/* SPDX-License-Identifier: MIT */
#include "agentd/manager/watchdog.h"

#define NS_PER_MS UINT64_C(1000000)

/* Giving the frontend up must come before the manager's own limit, which is twice the interval. */
static uint64_t answer_ns(const struct watchdog *w)
{
	uint32_t ms = w->every_ms / (WATCHDOG_MISSES + 1);

	return (ms > WATCHDOG_ANSWER_MS ? WATCHDOG_ANSWER_MS : ms ? ms : 1) * NS_PER_MS;
}

void watchdog_begin(struct watchdog *w, uint32_t every_ms, uint64_t now)
{
	*w = (struct watchdog){ .every_ms = every_ms, .at = every_ms ? now : 0 };
}

enum watchdog_act watchdog_due(struct watchdog *w, uint64_t now)
{
	if (!w->at || now < w->at)
		return WATCHDOG_WAIT;
	if (w->asked && ++w->missed >= WATCHDOG_MISSES) {
		w->at = 0;
		return WATCHDOG_STUCK;
	}
	/* After a miss at once, and with a new number: an answer to the old one proves too little. */
	w->asked = true;
	w->asked_ns = now;
	w->at = now + answer_ns(w);
	w->number++;
	return WATCHDOG_ASK;
}

bool watchdog_answered(struct watchdog *w, uint32_t number, uint64_t now)
{
	if (!w->asked || number != w->number || now > w->at)
		return false;
	w->asked = false;
	w->missed = 0;
	w->at = w->asked_ns + w->every_ms * NS_PER_MS;
	return true;
}
