/* SPDX-License-Identifier: MIT */
#include "agentd/judge/judge.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

void judge_close_front(struct judge *j)
{
	outbox_forget(&j->front);
	if (j->front.sock >= 0)
		closers_close(&j->closers, TAKE_FD(j->front.sock));
}

void judge_front_fell(struct judge *j, int error)
{
	const struct judge_fallen m = { .type = JUDGE_FALLEN, .status = error };

	if (j->front.sock < 0)
		return;
	judge_close_front(j);
	judge_tell_manager(j, &m, sizeof(m), -1);
}

/* The frontend always reads; when it does not, it is broken, and its clients' targets go free. */
static void check_front(struct judge *j, int r)
{
	if (r < 0)
		judge_front_fell(j, r);
}

/* The manager, too.  Without it nobody can do anything: this process ends, and with it the frontend. */
static void check_manager(struct judge *j, int r)
{
	if (r == 0)
		return;
	if (!j->is_over && !j->is_stopping)
		log_error("gpu-agentd does not take messages: %s", strerror(-r));
	outbox_forget(&j->manager);
	j->is_over = true;
}

void judge_monitor_gone(struct judge *j)
{
	outbox_forget(&j->monitor);
	if (j->monitor.sock >= 0)
		closers_close(&j->closers, TAKE_FD(j->monitor.sock));
	/* Who is being judged stays: this is known when something is sent, perhaps about one of them. */
	j->is_stopping = true;
}

/* And the monitor, without which nothing is started. */
static void check_monitor(struct judge *j, int r)
{
	if (r == 0)
		return;
	if (r != -EPIPE && r != -ECONNRESET)
		log_error("the monitor does not take messages: %s", strerror(-r));
	judge_monitor_gone(j);
}

void judge_tell_front(struct judge *j, const void *msg, size_t size, int fd)
{
	if (j->front.sock >= 0)
		check_front(j, outbox_send(&j->front, msg, size, fd));
}

void judge_tell_manager(struct judge *j, const void *msg, size_t size, int fd)
{
	check_manager(j, outbox_send(&j->manager, msg, size, fd));
}

void judge_tell_monitor(struct judge *j, const void *msg, size_t size, int fd)
{
	if (j->monitor.sock >= 0)
		check_monitor(j, outbox_send(&j->monitor, msg, size, fd));
}

uint64_t judge_flush(struct judge *j)
{
	if (j->front.sock >= 0)
		check_front(j, outbox_flush(&j->front));
	if (j->monitor.sock >= 0)
		check_monitor(j, outbox_flush(&j->monitor));
	check_manager(j, outbox_flush(&j->manager));
	return clock_earlier(clock_earlier(j->front.give_up_at, j->monitor.give_up_at), j->manager.give_up_at);
}

void judge_tell_client(void *ctx, const struct ipc_client *m)
{
	judge_tell_front(ctx, m, sizeof(*m), -1);
}

struct ipc_identity judge_identity(const struct access_peer *peer)
{
	return (struct ipc_identity){ .user_ns = peer->user_ns,
				      .pid = peer->pid,
				      .uid = peer->uid,
				      .gid = peer->gid,
				      .charge = peer->charge,
				      .admin = peer->admin,
				      .observer = peer->observer,
				      .near = access_peer_is_near(peer) };
}
