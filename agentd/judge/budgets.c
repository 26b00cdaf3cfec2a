/* SPDX-License-Identifier: MIT */
#include "agentd/judge/budgets.h"

#include <stdio.h>
#include <string.h>

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

static bool has_word(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	return false;
}

static void add_word(char list[BUDGETS_KINDS], const char *word)
{
	static const char more[] = " ...";
	const size_t used = strlen(list);

	if (has_word(list, word) || has_word(list, &more[1]))
		return;
	if (used + 1 + strlen(word) + strlen(more) >= BUDGETS_KINDS)
		word = &more[1];
	snprintf(list + used, BUDGETS_KINDS - used, "%s%s", used ? " " : "", word);
}

bool budgets_add(struct budgets *b, uid_t uid, const char *kind, uint32_t n, uint64_t now)
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
	add_word(u->kinds, kind);
	return false;
}

uint64_t budgets_due(struct budgets *b, uint64_t now, bool all, budgets_tell_fn *tell)
{
	uint64_t next = 0;

	for (struct budgets_user *u = b->users; u < &b->users[BUDGETS_USERS]; u++) {
		if (u->n && (all || now - u->since_ns >= SUMMARY_NS)) {
			tell(u->uid, u->n, u->kinds, (uint32_t)((now - u->since_ns + SECOND_NS - 1) / SECOND_NS));
			u->n = 0;
			u->kinds[0] = '\0';
		}
		if (u->n && (!next || u->since_ns + SUMMARY_NS < next))
			next = u->since_ns + SUMMARY_NS;
	}
	return next;
}
