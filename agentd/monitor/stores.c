/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/stores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/child.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"

/* To open the directory and clean up what others left in it. */
#define START_MS 20000
#define NO_USER ((uid_t)-2)
/* A worker has one; others may be on their way out. */
#define PRODUCERS_MAX 4

/* For whom a process works; this goes onto its command line. */
struct for_whom {
	uid_t uid, charge;
	pid_t pid; /* target of a producer; 0 for clients */
	bool admin, observer;
};

struct place {
	const struct for_whom *client;
	int channel;
};

static void store_exec(const struct workers *w, const void *data, int guard)
{
	static const int to[] = { IPC_FD_MONITOR, IPC_FD_FRONT };
	const struct place *place = data;
	const struct for_whom *c = place->client;
	const int from[] = { guard, place->channel };
	const struct config *config = w->setup.config;
	char uid[12], gid[12], client[12], pid[12];
	const char *argv[] = { w->setup.programs->path[PROGRAM_STORE], "--uid", uid, "--gid", gid, "--client-uid", client,
			       "--pid", pid, "--directory", config->store_directory,
			       "--max-use", config->store_max_use, "--keep-free", config->store_keep_free,
			       "--max-body", config->store_max_body, "--max-age", config->store_max_age,
			       "--max-record-age", config->store_max_record_age,
			       "--max-records", config->store_max_records,
			       NULL, NULL, NULL, NULL, NULL };
	size_t n = 23;

	snprintf(uid, sizeof(uid), "%u", w->setup.store_uid);
	snprintf(gid, sizeof(gid), "%u", w->setup.store_gid);
	snprintf(client, sizeof(client), "%u", c->uid);
	snprintf(pid, sizeof(pid), "%d", (int)c->pid);
	if (c->admin)
		argv[n++] = "--admin";
	if (c->observer)
		argv[n++] = "--observer";
	if (w->setup.user_mode)
		argv[n++] = "--make-directory";
	if (w->setup.verbose)
		argv[n++] = "--verbose";
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(w->setup.programs->path[PROGRAM_STORE], argv, 0);
}

/* @param channel  Borrowed. */
static int fork_store(struct workers *w, const struct for_whom *c, int channel, struct worker **ret)
{
	const struct worker like = { .kind = IPC_KIND_STORE, .owner = c->uid, .charge = c->charge,
				     .by_admin = c->admin };
	const struct place place = { c, channel };

	return workers_fork(w, &like, START_MS, store_exec, &place, ret);
}

/* Root of a container is not the root whose records lie here: no record is its own. */
static uid_t owner_of_records(const struct ipc_identity *client)
{
	return client->uid == 0 && !client->admin ? NO_USER : client->uid;
}

int stores_start(struct workers *w, const struct ipc_identity *client, struct worker **ret,
		 int *ret_channel)
{
	const struct for_whom c = { .uid = owner_of_records(client),
				  .charge = client->charge,
				  .admin = client->admin,
				  .observer = client->observer };
	auto_close int front = -1, store = -1;
	int pair[2], r = fd_socketpair(SOCK_NONBLOCK, pair);

	if (r < 0)
		return r;
	front = pair[0];
	store = pair[1];
	r = fork_store(w, &c, store, ret);
	if (r < 0)
		return r;
	(*ret)->owner = client->uid;
	*ret_channel = TAKE_FD(front);
	return 0;
}

static unsigned count_producers(const struct workers *w, uint32_t worker)
{
	unsigned n = 0;

	for (const struct worker *i = w->first; i; i = i->next)
		n += i->kind == IPC_KIND_STORE && i->producer == worker;
	return n;
}

void stores_start_producer(struct workers *w, const struct worker *worker, int channel)
{
	const struct for_whom c = { .uid = worker->target_uid, .pid = worker->target };
	struct worker *k;
	int r = count_producers(w, worker->id) >= PRODUCERS_MAX ? -EBUSY : fork_store(w, &c, channel, &k);

	if (r == 0)
		k->producer = worker->id;
	else
		log_warning("no store for the worker on process %d: %s", (int)worker->target,
			    strerror(-r));
}
