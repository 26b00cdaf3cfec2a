/* SPDX-License-Identifier: MIT */
#include "agentd/worker/undo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc_gen.h"

void undo_deinit(struct undo *u)
{
	free(u->entries);
	*u = (struct undo)UNDO_NULL;
}

int undo_push(struct undo *u, const char *what, undo_fn fn, void *ctx, uint64_t arg,
	      uint32_t *ret_ticket, struct agent_err *err)
{
	if (u->n == u->capacity) {
		size_t capacity = u->capacity ? u->capacity * 2 : 16;
		struct undo_entry *grown = realloc(u->entries, capacity * sizeof(*grown));

		if (!grown)
			return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, what, NULL,
					     "out of memory, nothing was changed");
		u->entries = grown;
		u->capacity = capacity;
	}
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

void undo_drop(struct undo *u, uint32_t ticket)
{
	size_t i = find(u, ticket);

	if (i < u->n)
		remove_at(u, i);
}

/* The entry goes first: one that fails must not be run twice. */
static int run_at(struct undo *u, size_t i, struct agent_err *err)
{
	struct undo_entry e = u->entries[i];
	int r;

	remove_at(u, i);
	r = e.fn(e.ctx, e.arg, err);
	if (r < 0)
		agent_err_prepend(err, "%s", e.what);
	return r;
}

int undo_run_one(struct undo *u, uint32_t ticket, struct agent_err *err)
{
	size_t i = find(u, ticket);

	return i < u->n ? run_at(u, i, err) : 0;
}

int undo_run(struct undo *u, uint32_t mark, struct agent_err *err)
{
	int first = 0;

	while (u->n && u->entries[u->n - 1].ticket > mark) {
		struct agent_err later = { 0 };
		int r = run_at(u, u->n - 1, first ? &later : err);

		if (r < 0 && !first)
			first = r;
	}
	return first;
}
