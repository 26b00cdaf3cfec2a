/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/readers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"

/* As many as sessions can be configured.  With more, the one that changed first is forgotten. */
#define TARGETS_MAX 1024

struct reader_target {
	uint32_t pid;
	struct ipc_readers last;
	uint64_t noted_ns; /* 0: free. */
};

/* @return the place of that process, or one that is free or was noted first. */
static struct reader_target *find_place(const struct sessions *all, uint32_t pid)
{
	struct reader_target *found = all->readers;

	for (size_t i = 0; i < TARGETS_MAX; i++) {
		struct reader_target *t = &all->readers[i];

		if (t->noted_ns && t->pid == pid)
			return t;
		if (t->noted_ns < found->noted_ns)
			found = t;
	}
	return found;
}

void readers_note(struct session *s, const struct ipc_message *m)
{
	struct sessions *all = s->all;
	struct reader_target *t;

	if (m->head.size != sizeof(t->last)) {
		log_error("session %s: a message of its worker is malformed", s->id);
		return;
	}
	if (!all->readers)
		all->readers = calloc(TARGETS_MAX, sizeof(*all->readers));
	if (!all->readers)
		return;
	t = find_place(all, s->pid);
	t->pid = s->pid;
	t->noted_ns = clock_now_ns();
	memcpy(&t->last, m->text, sizeof(t->last));
}

void readers_hand_over(struct session *s)
{
	const struct reader_target *t = s->all->readers ? find_place(s->all, s->pid) : NULL;
	const struct ipc_head head = { .type = IPC_READERS, .size = sizeof(t->last) };

	if (!t || !t->noted_ns || t->pid != s->pid ||
	    clock_now_ns() - t->noted_ns > READERS_KEEP_S * UINT64_C(1000000000))
		return;
	if (session_send(s, &head, (const char *)&t->last, -1) < 0)
		session_kill(s);
}

void readers_deinit(struct sessions *all)
{
	free(all->readers);
}
