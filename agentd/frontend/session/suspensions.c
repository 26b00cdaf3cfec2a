/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/suspensions.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

struct suspended_target {
	uint32_t pid;
	uint64_t start_ticks;
	uid_t uid;
	char comm[16];
	uint64_t before_count, before_ns; /* Those of sessions that are over. */
	uint64_t count, total_ns, since_ns; /* Those of the session that is not over, if there is one. */
};

static uint64_t sum_ns(uint64_t now_ns, uint64_t total_ns, uint64_t since_ns)
{
	return total_ns + (since_ns ? now_ns - since_ns : 0);
}

static struct suspended_target *find(const struct sessions *all, uint32_t pid, uint64_t start_ticks)
{
	for (size_t i = 0; i < all->n_suspended; i++)
		if (all->suspended[i].pid == pid && all->suspended[i].start_ticks == start_ticks)
			return &all->suspended[i];
	return NULL;
}

/* Add a target at the end, where the latest are; the first one makes room. */
static struct suspended_target *add(struct sessions *all, const struct session *s, uint64_t start_ticks)
{
	struct suspended_target *t;

	if (!all->suspended)
		all->suspended = calloc(SUSPENSIONS_TARGETS_MAX, sizeof(*all->suspended));
	if (!all->suspended)
		return NULL;
	if (all->n_suspended == SUSPENSIONS_TARGETS_MAX)
		memmove(all->suspended, all->suspended + 1, --all->n_suspended * sizeof(*all->suspended));
	t = &all->suspended[all->n_suspended++];
	*t = (struct suspended_target){ .pid = s->pid, .start_ticks = start_ticks, .uid = s->uid };
	memcpy(t->comm, s->comm, sizeof(t->comm));
	return t;
}

static void note_target(const struct session *s, const struct ipc_suspension *m)
{
	struct suspended_target *t = find(s->all, s->pid, m->start_ticks);

	if (!t)
		t = add(s->all, s, m->start_ticks);
	/* Without memory the sums lack this session. */
	if (!t)
		return;
	t->count = m->count;
	t->total_ns = m->total_ns;
	t->since_ns = m->since_ns;
}

/* Count what is new.  A worker that was deceived by its target may say less than before. */
static void count(struct session_counts *c, const struct ipc_suspension *before, const struct ipc_suspension *now)
{
	c->suspensions += now->count > before->count ? now->count - before->count : 0;
	c->suspended_ns += now->total_ns > before->total_ns ? now->total_ns - before->total_ns : 0;
}

void suspensions_take(struct session *s, const struct ipc_message *m)
{
	const size_t head = offsetof(struct ipc_suspension, queues);
	const size_t size = (size_t)m->head.size;
	struct ipc_suspension before;

	if (!s->suspension)
		s->suspension = calloc(1, sizeof(*s->suspension));
	if (!s->suspension)
		return;
	if (size < head || size > sizeof(*s->suspension)) {
		log_error("session %s: a message of its worker is malformed", s->id);
		return;
	}
	memcpy(&before, s->suspension, head);
	memcpy(s->suspension, m->text, size);
	count(&s->all->counts, &before, s->suspension);
	if (s->suspension->since_ns != before.since_ns)
		s->renewals = 0;
	/* What the worker says comes from a process that parses strangers' memory. */
	if (s->suspension->n_queues > (size - head) / sizeof(s->suspension->queues[0]))
		s->suspension->n_queues =
			(uint32_t)((size - head) / sizeof(s->suspension->queues[0]));
	note_target(s, s->suspension);
}

void suspensions_over(struct session *s)
{
	struct ipc_suspension *u = s->suspension;
	struct suspended_target *t = u ? find(s->all, s->pid, u->start_ticks) : NULL;
	const uint64_t now = clock_now_ns();

	if (u && u->since_ns && u->since_ns < now)
		s->all->counts.suspended_ns += now - u->since_ns;
	if (!t)
		return;
	t->before_count += t->count;
	t->before_ns += sum_ns(now, t->total_ns, t->since_ns);
	t->count = t->total_ns = t->since_ns = 0;
	u->since_ns = 0;
}

void suspensions_describe(const struct session *s, struct rpc_session_info *ret)
{
	struct ipc_suspension *u = s->suspension;
	const uint64_t now = clock_now_ns();

	if (!u)
		return;
	ret->suspends = u->count;
	ret->suspended_us = sum_ns(now, u->total_ns, u->since_ns) / 1000;
	ret->has_suspension = u->since_ns != 0;
	if (!u->since_ns)
		return;
	ret->suspension = (struct rpc_suspension){
		.has_holder_pid = s->writer != NULL,
		.holder_pid = s->writer ? (uint32_t)s->writer->pid : 0,
		.has_holder_uid = s->writer != NULL,
		.holder_uid = s->writer ? s->writer->uid : 0,
		.queues = u->queues,
		.n_queues = u->n_queues,
		.lease_left_ms = u->lease_end_ns ? (uint32_t)clock_left_ms(u->lease_end_ns) : 0,
		.suspended_us = sum_ns(now, 0, u->since_ns) / 1000,
		.renewals = s->renewals,
	};
}

int suspensions_list(const struct sessions *all, const struct conn *c, struct rpc_arena *arena,
		     struct rpc_suspended_target **ret, size_t *ret_n)
{
	struct rpc_suspended_target *list = rpc_arena_array(arena, all->n_suspended, sizeof(*list));
	const uint64_t now = clock_now_ns();
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = all->n_suspended; i-- > 0;) {
		const struct suspended_target *t = &all->suspended[i];

		if (!c->admin && t->uid != c->uid)
			continue;
		list[n++] = (struct rpc_suspended_target){
			.pid = t->pid,
			.uid = t->uid,
			.comm = t->comm,
			.suspended = t->since_ns != 0,
			.suspends = t->before_count + t->count,
			.suspended_us = (t->before_ns + sum_ns(now, t->total_ns, t->since_ns)) / 1000,
		};
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

void suspensions_deinit(struct sessions *all)
{
	free(all->suspended);
}
