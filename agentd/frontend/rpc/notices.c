/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/rpc/notices.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/frontend/net/conn.h"
#include "base/out.h"
#include "protocol/rpc_message.h"
#include "rpc_gen.h"

/* With more unsent than this a client is behind.  The socket's own buffer comes on top. */
#define BEHIND_BYTES ((size_t)64 << 10)

void notices_init(struct notices *n)
{
	*n = (struct notices){ 0 };
	STAILQ_INIT(&n->waiting);
}

static void drop_filter(struct notices *n)
{
	for (size_t i = 0; i < n->n_kernels; i++)
		free(n->kernels[i]);
	free(n->kernels);
	n->kernels = NULL;
	n->n_kernels = 0;
	n->exceptions = 0;
}

static void drop_first(struct notices *n)
{
	struct notice *first = STAILQ_FIRST(&n->waiting);

	STAILQ_REMOVE_HEAD(&n->waiting, link);
	n->n--;
	n->bytes -= first->size;
	free(first);
}

void notices_deinit(struct notices *n)
{
	while (n->n)
		drop_first(n);
	drop_filter(n);
}

/* ------------------------------------------------------------------ filter ------------------- */

int notices_filter(struct notices *n, const struct rpc_exception_filter_params *p)
{
	struct notices fresh = { .kernels = calloc(p->n_kernels + 1, sizeof(*fresh.kernels)) };

	if (!fresh.kernels)
		return -ENOMEM;
	for (; fresh.n_kernels < p->n_kernels; fresh.n_kernels++) {
		fresh.kernels[fresh.n_kernels] = strdup(p->kernels[fresh.n_kernels]);
		if (!fresh.kernels[fresh.n_kernels]) {
			drop_filter(&fresh);
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < p->n_exceptions; i++)
		fresh.exceptions |= UINT64_C(1) << ((unsigned)p->exceptions[i] - 1);
	drop_filter(n);
	n->exceptions = fresh.exceptions;
	n->kernels = fresh.kernels;
	n->n_kernels = fresh.n_kernels;
	return 0;
}

static bool matches(const struct notices *n, const char *name)
{
	for (size_t i = 0; name && i < n->n_kernels; i++)
		if (fnmatch(n->kernels[i], name, 0) == 0)
			return true;
	return false;
}

static bool wants_kernel(const struct notices *n, const struct rpc_exception_raised_params *p)
{
	bool known = false;

	for (size_t i = 0; i < p->n_groups; i++) {
		const struct rpc_group *g = &p->groups[i];

		if (!g->has_kernel || !(g->kernel.name || g->kernel.raw))
			continue;
		known = true;
		if (matches(n, g->kernel.name) || matches(n, g->kernel.raw))
			return true;
	}
	return !known;
}

bool notices_wants(const struct notices *n, const struct rpc_exception_raised_params *p)
{
	uint64_t raised = 0;

	for (size_t i = 0; i < p->n_exceptions; i++)
		raised |= UINT64_C(1) << ((unsigned)p->exceptions[i] - 1);
	return (!n->exceptions || n->exceptions & raised) &&
	       (!n->n_kernels || wants_kernel(n, p));
}

/* ------------------------------------------------------------------ sending ------------------ */

static void send_one(struct notices *n, struct conn *c, const char *params, size_t size)
{
	const char *name = rpc_notifications[RPC_NOTIFICATION_EXCEPTION_RAISED].name;
	auto_out struct out text = { 0 }, told = { 0 };

	out_init(&text, 0);
	out_init(&told, 0);
	if (n->lost && size > 2 && params[0] == '{') {
		out_fmt(&told, "{\"lost\":%llu,", (unsigned long long)n->lost);
		out_bytes(&told, params + 1, size - 1);
		params = told.data;
		size = told.size;
	}
	n->lost = 0;
	rpc_message_notification(&text, name, params, size);
	conn_send(c, &text);
}

static void wait_with(struct notices *n, const char *params, size_t size)
{
	struct notice *last = malloc(sizeof(*last) + size);

	while (n->n && (n->n >= NOTICES_MAX || n->bytes + size > NOTICES_BYTES_MAX || !last)) {
		drop_first(n);
		n->lost++;
		if (!last)
			last = malloc(sizeof(*last) + size);
	}
	if (!last) {
		n->lost++;
		return;
	}
	last->size = size;
	memcpy(last->params, params, size);
	STAILQ_INSERT_TAIL(&n->waiting, last, link);
	n->n++;
	n->bytes += size;
}

void notices_flush(struct notices *n, struct conn *c, bool everything)
{
	while (n->n && (everything || conn_unsent(c) < BEHIND_BYTES)) {
		struct notice *first = STAILQ_FIRST(&n->waiting);

		send_one(n, c, first->params, first->size);
		drop_first(n);
	}
}

void notices_send(struct notices *n, struct conn *c, const char *params, size_t size)
{
	notices_flush(n, c, false);
	if (n->n || conn_unsent(c) >= BEHIND_BYTES)
		wait_with(n, params, size);
	else
		send_one(n, c, params, size);
}
