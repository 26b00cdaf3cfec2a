/* SPDX-License-Identifier: MIT */
/*
 * Threads of the process that wait for packets of its queues.  What a thread is blocked in, the kernel tells only who
 * may trace it, and a worker that has become the target's user may not where Yama forbids it, or the target has
 * capabilities.  So a reader of threads is asked, who looks before it gives up its rights (agentd/worker/host); it
 * brings threads and packets together by the events of both.
 */
#include <stdio.h>
#include <string.h>

#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "protocol/rpc_queue_place.h"

#define WAITERS_MAX 256u
/* The kernel has 16 bytes for it. */
#define NAME_MAX_   64u

/* Any user may read that, and the process chooses it. */
static const char *name_of(struct look *l, uint32_t tid)
{
	auto_free char *name = NULL;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)l->target->facts.pid, tid);
	if (fd_read_file(path, NAME_MAX_, &name, &size) < 0)
		return NULL;
	if (size && name[size - 1] == '\n')
		name[size - 1] = '\0';
	str_make_printable(name);
	return rpc_arena_strdup(l->arena, name);
}

/* Whoever serves the runtime waits for one of many things, and so for no packet. */
static bool is_waiting(const struct rpc_thread_group *g)
{
	return g->has_waits_for && g->waits_for.has_queue_id && g->waits_for.has_gpu_id && g->waits_for.has_dispatch;
}

static size_t take(struct look *l, const struct rpc_host_stacks_result *from, struct look_waiter *ret)
{
	size_t n = 0, all = 0;

	for (size_t i = 0; i < from->n_groups; i++) {
		const struct rpc_thread_group *g = &from->groups[i];

		if (!is_waiting(g))
			continue;
		all += g->threads;
		for (size_t k = 0; k < g->n_tids && n < WAITERS_MAX; k++)
			ret[n++] = (struct look_waiter){ .tid = g->tids[k], .name = name_of(l, g->tids[k]),
							 .queue_id = g->waits_for.queue_id,
							 .gpu_id = g->waits_for.gpu_id,
							 .dispatch = g->waits_for.dispatch };
	}
	if (all > n)
		look_missing_thread(l, rpc_arena_printf(l->arena, "threads: %zu of %zu that wait for packets", all - n, all));
	return n;
}

size_t look_find_waiters(struct look *l, const struct rpc_queue *queues, size_t n, struct look_waiter **ret)
{
	struct rpc_host_stacks_params p = { .pid = (uint32_t)l->target->facts.pid, .has_frames = true };
	struct rpc_host_stacks_result told = { 0 };
	const char *why;

	/* A core's threads do not wait any more. */
	if (!l->threads)
		return 0;
	*ret = rpc_arena_array(l->arena, WAITERS_MAX, sizeof(**ret));
	if (!*ret || rpc_queue_places(l->arena, queues, n, &p) < 0) {
		l->failed = true;
		return 0;
	}
	why = l->threads->read(l->threads->ctx, l->arena, &p, &told);
	if (why) {
		look_missing_thread(l, rpc_arena_printf(l->arena, "threads: which of them wait for packets: %s", why));
		return 0;
	}
	for (size_t i = 0; i < told.n_missing; i++)
		look_missing_thread(l, told.missing[i]);
	return take(l, &told, *ret);
}
