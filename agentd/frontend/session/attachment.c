/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/attachment.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct attachment *attachment_find(struct conn *c, const char *id)
{
	struct attachment *a;

	LIST_FOREACH(a, &c->attachments, in_conn)
		if (!strcmp(a->session->id, id) && !a->session->over && !a->session->closing)
			return a;
	return NULL;
}

struct attachment *attachment_of(struct session *s, const struct conn *c)
{
	struct attachment *a;

	LIST_FOREACH(a, &s->attachments, in_session)
		if (a->conn == c)
			return a;
	return NULL;
}

struct attachment *attachment_create(struct session *s, struct conn *conn, enum ipc_right rights)
{
	struct attachment *a = attachment_of(s, conn);

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->conn = conn;
	a->session = s;
	a->rights = rights;
	a->number = ++s->last_client;
	a->asked_ns = a->judged_ns = clock_now_ns();
	notices_init(&a->notices);
	LIST_INSERT_HEAD(&s->attachments, a, in_session);
	LIST_INSERT_HEAD(&conn->attachments, a, in_conn);
	return a;
}

void attachment_free(struct attachment *a)
{
	LIST_REMOVE(a, in_session);
	LIST_REMOVE(a, in_conn);
	notices_deinit(&a->notices);
	free(a);
}

static void tell_left(struct session *s, uint64_t client, bool was_writer)
{
	session_tell(s, &(struct ipc_head){ .type = IPC_CLIENT_LEFT, .client = client });
	if (was_writer)
		session_lease_lost(s, RPC_RESUME_REASON_CLIENT_LOST);
}

void attachment_leave(struct attachment *a)
{
	struct session *s = a->session;
	bool was_writer = s->writer == a->conn;
	uint64_t client = a->conn->id;

	attachment_free(a);
	if (was_writer)
		s->writer = NULL;
	if (s->closing || s->over)
		return;
	if (LIST_EMPTY(&s->attachments) && !s->rule[0])
		session_close(s);
	else
		tell_left(s, client, was_writer);
}

int attachment_check_control(const struct attachment *a, struct agent_err *err)
{
	if (a->rights >= IPC_RIGHT_CONTROL)
		return 0;
	return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, 0, NULL,
			     "ask the owner of the process or an administrator",
			     "you may look at process %u, but not control it", a->session->pid);
}
