/* SPDX-License-Identifier: MIT */
#include "agentd/judge/budgets.h"

#define SECOND_NS  UINT64_C(1000000000)
#define PRICE_NS   (SECOND_NS / 5)
#define BURST	   20
#define SUMMARY_NS (10 * SECOND_NS)

/* The last entry is nobody's own: however many users there are, all together they get no more. */
static struct budgets_user *user_of(struct budgets *b, uid_t uid, uint64_t now)
{
	struct budgets_user *spare = &b->users[BUDGETS_USERS - 1];

	for (struct budgets_user *u = b->users; u < &b->users[BUDGETS_USERS - 1]; u++) {
		const bool is_free = u->full_ns <= now && !u->n;

		if (u->uid == uid && !is_free)
			return u;
		if (is_free && spare == &b->users[BUDGETS_USERS - 1])
			spare = u;
	}
	if (spare == &b->users[BUDGETS_USERS - 1])
		uid = (uid_t)-1;
	spare->uid = uid;
	return spare;
}

bool budgets_add(struct budgets *b, uid_t uid, uint32_t n, uint64_t now)
{
	struct budgets_user *u = user_of(b, uid, now);

	if (u->full_ns < now)
		u->full_ns = now;
	if (u->full_ns + PRICE_NS <= now + BURST * PRICE_NS) {
		u->full_ns += PRICE_NS;
		return true;
	}
	if (!u->n)
		u->since_ns = now;
	u->n = n < UINT32_MAX - u->n ? u->n + n : UINT32_MAX;
	return false;
}

uint64_t budgets_due(struct budgets *b, uint64_t now, bool all,
		     void (*tell)(uid_t uid, uint32_t n, uint32_t seconds))
{
	uint64_t next = 0;

	for (struct budgets_user *u = b->users; u < &b->users[BUDGETS_USERS]; u++) {
		if (u->n && (all || now - u->since_ns >= SUMMARY_NS)) {
			tell(u->uid, u->n, (uint32_t)((now - u->since_ns + SECOND_NS - 1) / SECOND_NS));
			u->n = 0;
		}
		if (u->n && (!next || u->since_ns + SUMMARY_NS < next))
			next = u->since_ns + SUMMARY_NS;
	}
	return next;
}
