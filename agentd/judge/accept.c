/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agentd/judge/judge.h"
#include "base/clock.h"
#include "base/log.h"

#define RETRY_MS 50

bool accept_wanted(const struct judge *j)
{
	/* Before the limits come the groups, without which nobody would be an administrator. */
	const bool is_ready = j->front_serves && j->limits.type && j->front.sock >= 0;

	return is_ready && !j->is_stopping && !j->is_front_idle && !j->accept_at &&
	       j->clients.n_untold < IPC_CLIENTS_UNTOLD;
}

static int accept_one(struct judge *j)
{
	const struct clients_limits limits = { .all = j->limits.connections,
					       .of_user = j->limits.connections_per_user,
					       .has_reserve = !j->user_mode };
	struct client *k;
	struct ipc_client m;
	int fd, r;

	if (!outbox_has_room(&j->front))
		return -EBUSY;
	r = clients_accept(&j->clients, j->listen_fd, &j->groups, &limits, &m, &fd);
	if (r < 0)
		return r;
	r = outbox_pass(&j->front, &m, sizeof(m), &fd, 1);
	if (r == 0) {
		j->clients.n_untold++;
		/*
		 * Not the last one: the message has it, then the frontend.  One that was taken over could
		 * be faster, which matters only before Linux 6.16: later nobody can send descriptors here.
		 */
		close(fd);
		return 0;
	}
	k = clients_find(&j->clients, m.id);
	if (k)
		clients_close(&j->clients, k);
	closers_close(&j->closers, fd);
	return r;
}

void accept_clients(struct judge *j)
{
	int r = 0;

	while (r == 0 && accept_wanted(j))
		r = accept_one(j);
	if (r == 0 || r == -EAGAIN)
		return;
	j->accept_at = clock_deadline_ms(RETRY_MS);
	if (r != -EBUSY)
		log_warning("cannot accept: %s; waiting", strerror(-r));
}
