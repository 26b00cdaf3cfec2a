/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/session/session.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "agentd/frontend/net/monitor_link.h"
#include "base/cleanup.h"
#include "base/log.h"

/* More than undoing takes, less than the client of session.detach waits. */
#define END_MS 7000

struct session *session_find_worker(struct sessions *all, uint32_t worker)
{
	struct session *s;

	LIST_FOREACH(s, &all->list, link)
		if (s->worker == worker)
			return s;
	return NULL;
}

void session_kill(struct session *s)
{
	if (!s->killed)
		monitor_link_note(s->all->monitor, IPC_NOTE_KILL, s->worker);
	s->killed = true;
}

/* The worker sees end of file, undoes everything and exits; the monitor then tells us. */
void session_close(struct session *s)
{
	const struct timeval tv = { .tv_sec = END_MS / 1000, .tv_usec = END_MS % 1000 * 1000 };

	if (s->closing)
		return;
	s->closing = true;
	if (s->client)
		s->client->store = NULL;
	s->client = NULL;
	event_del(s->read_event);
	event_del(s->write_event);
	ipc_link_deinit(&s->channel);
	event_add(s->end_timer, &tv);
}

void session_check_needed(struct session *s)
{
	if (LIST_EMPTY(&s->attachments) && !s->rule[0] && !s->closing && !s->over)
		session_close(s);
}

int session_send(struct session *s, const struct ipc_head *head, const char *text, int take_fd)
{
	auto_close int fd = take_fd;
	int r = s->closing ? -EPIPE :
		fd < 0	   ? ipc_link_send(&s->channel, head, text) :
			     ipc_link_send_fd(&s->channel, head, text, TAKE_FD(fd));

	if (r == 0 && ipc_link_has_queued(&s->channel))
		event_add(s->write_event, NULL);
	return r == -EPIPE ? 0 : r;
}

void session_tell(struct session *s, const struct ipc_head *head)
{
	int r = session_send(s, head, NULL, -1);

	if (r < 0) {
		log_warning("session %s: worker takes no messages (%s): killed", s->id,
			    strerror(-r));
		session_kill(s);
	}
}

const char *session_end_words(const struct session *s, char buf[SESSION_END_WORDS])
{
	const char *reason = rpc_end_reason_name(s->reason), *name = sigabbrev_np(s->end_signal);

	if (s->end_signal)
		snprintf(buf, SESSION_END_WORDS, "%s: signal %s%s from outside; a process of user %u may have sent it",
			 reason, name ? "SIG" : "", name ? name : "", s->end_uid);
	else
		snprintf(buf, SESSION_END_WORDS, "%s", reason);
	return buf;
}

void session_lease_lost(struct session *s, enum rpc_resume_reason why)
{
	session_tell(s, &(struct ipc_head){ .type = IPC_LEASE_LOST, .number = why });
}
