/* SPDX-License-Identifier: MIT */
#include "agentd/worker/process/undo.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "rpc_gen.h"

void undo_deinit(struct undo *u)
{
	free(u->entries);
	*u = (struct undo)UNDO_NULL;
}

int undo_push(struct undo *u, const char *what, undo_fn fn, void *ctx, uint64_t arg,
	      uint32_t *ret_ticket, struct agent_err *err)
{
	if (vec_reserve(&u->entries, u->n, 1, &u->capacity, sizeof(*u->entries)) < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, what, NULL,
				     "out of memory, nothing was changed");
	u->entries[u->n++] = (struct undo_entry){
		.ticket = ++u->last_ticket, .what = what, .fn = fn, .ctx = ctx, .arg = arg
	};
	*ret_ticket = u->last_ticket;
	return 0;
}

static size_t find(const struct undo *u, uint32_t ticket)
{
	size_t i = 0;

	while (i < u->n && u->entries[i].ticket != ticket)
		i++;
	return i;
}

static void remove_at(struct undo *u, size_t i)
{
	memmove(&u->entries[i], &u->entries[i + 1], (u->n - i - 1) * sizeof(*u->entries));
	u->n--;
}

void undo_keep(struct undo *u, uint32_t ticket)
{
	size_t i = find(u, ticket);

	if (i < u->n)
		u->entries[i].stays = true;
}

void undo_drop(struct undo *u, uint32_t ticket)
{
	size_t i = find(u, ticket);

	if (i < u->n)
		remove_at(u, i);
}

bool undo_again(unsigned *tries)
{
	/* The target waits meanwhile, and a failure that passes at all passes soon. */
	static const int pauses_ms[] = { 1, 8, 32 };

	if (*tries == ARRAY_SIZE(pauses_ms))
		return false;
	poll(NULL, 0, pauses_ms[(*tries)++]);
	return true;
}

/* The entry is a copy: its function may drop entries, its own among them. */
static int run(struct undo *u, struct undo_entry e, unsigned *tries, struct agent_err *err)
{
	struct agent_err why = { 0 };
	int r;

	do
		r = e.fn(e.ctx, e.arg, &why);
	while (r < 0 && undo_again(tries));
	if (r >= 0) {
		undo_drop(u, e.ticket);
		return r;
	}
	agent_err_prepend(&why, "%s", e.what);
	if (err)
		*err = why;
	return r;
}

int undo_run_one(struct undo *u, uint32_t ticket, struct agent_err *err)
{
	size_t i = find(u, ticket);
	unsigned tries = 0;

	return i < u->n ? run(u, u->entries[i], &tries, err) : 0;
}

/* Find the newest entry after @p mark and before @p before.  @return its index; u->n: none. */
static size_t newest_between(const struct undo *u, uint32_t mark, uint32_t before)
{
	for (size_t i = u->n; i-- > 0 && u->entries[i].ticket > mark;)
		if (u->entries[i].ticket < before && !(mark && u->entries[i].stays))
			return i;
	return u->n;
}

/*
 * All entries together are tried again as often as one may be: if many fail, more tries only cost
 * time.  An entry may drop others, so each step looks for the newest one that is left.
 */
int undo_run(struct undo *u, uint32_t mark, struct agent_err *err)
{
	uint32_t before = UINT32_MAX;
	unsigned tries = 0;
	int first = 0;
	size_t i;

	while ((i = newest_between(u, mark, before)) < u->n) {
		int r;

		before = u->entries[i].ticket;
		r = run(u, u->entries[i], &tries, first ? NULL : err);
		if (r < 0 && !first)
			first = r;
	}
	return first;
}
