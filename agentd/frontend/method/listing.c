/* SPDX-License-Identifier: MIT */
#include "agentd/frontend/method/listing.h"

#include <stdlib.h>
#include <string.h>

#include "agentd/access.h"
#include "agentd/frontend/method/frontend.h"
#include "agentd/frontend/session/calls.h"
#include "agentd/frontend/session/worker.h"
#include "base/clock.h"

#define LIST_MS 10000
/* For those that wait while one is made. */
#define WAIT_MS (2 * LIST_MS + 3000)
/* What lists of a user and his rights have in common is kept for so many of them, */
#define LISTINGS_MAX 32
/* for so long, */
#define KEEP_NS (UINT64_C(60) * 1000000000)
/* and is so large. */
#define SEEN_BYTES_MAX ((size_t)512 << 10)

/* Lists for clients that may see the same. */
struct listing {
	LIST_ENTRY(listing) link;
	bool mine, admin, near;
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t n_groups;
	struct request *running;     /* The one that is made; NULL: none is. */
	struct request_list sharing; /* These get the same answer, */
	struct request_list waiting; /* and these the next one. */
	/* What the last look has learned of processes, for the next (worker/process/seen.h). */
	char *seen;
	size_t seen_size;
	uint64_t used_ns;
};

static void begin(struct listing *l, struct request *r);

static void free_listing(struct listing *l)
{
	LIST_REMOVE(l, link);
	free(l->groups);
	free(l->seen);
	free(l);
}

/* ------------------------------------------------------------------ whose -------------------- */

static bool is_for(const struct listing *l, const struct access_peer *peer, const struct conn *c, bool mine)
{
	return l->mine == mine && l->admin == c->admin && l->near == c->near &&
	       l->uid == peer->uid && l->gid == peer->gid &&
	       l->n_groups == peer->n_groups &&
	       (!l->n_groups || !memcmp(l->groups, peer->groups, l->n_groups * sizeof(*l->groups)));
}

/* Forget what nobody has used for long, and what has been unused longest when there are many. */
static void make_room(struct listing_list *all)
{
	const uint64_t now = clock_now_ns();
	struct listing *l, *next, *oldest = NULL;
	size_t n = 0;

	for (l = LIST_FIRST(all); l; l = next) {
		next = LIST_NEXT(l, link);
		if (l->running)
			continue;
		if (now - l->used_ns > KEEP_NS) {
			free_listing(l);
			continue;
		}
		n++;
		if (!oldest || l->used_ns < oldest->used_ns)
			oldest = l;
	}
	if (n >= LISTINGS_MAX)
		free_listing(oldest);
}

static struct listing *find(struct listing_list *all, const struct conn *c, bool mine)
{
	const struct access_rules no_groups = { ACCESS_NO_GROUP, ACCESS_NO_GROUP };
	struct access_peer peer;
	struct listing *l;

	/* The gid and the groups decide, too, what the look sees. */
	if (access_peer_read(c->peer_fd, &no_groups, &peer) < 0)
		return NULL;
	make_room(all);
	LIST_FOREACH(l, all, link)
		if (is_for(l, &peer, c, mine))
			break;
	if (!l && (l = calloc(1, sizeof(*l)))) {
		l->mine = mine;
		l->admin = c->admin;
		l->near = c->near;
		l->uid = peer.uid;
		l->gid = peer.gid;
		l->groups = peer.groups;
		l->n_groups = peer.n_groups;
		peer.groups = NULL;
		LIST_INIT(&l->sharing);
		LIST_INIT(&l->waiting);
		LIST_INSERT_HEAD(all, l, link);
	}
	access_peer_deinit(&peer);
	return l;
}

/* ------------------------------------------------------------------ one list ----------------- */

/* @return the oldest one whose client is still there; NULL: there is none. */
static struct request *oldest_of(const struct request_list *list)
{
	struct request *r, *last = NULL;

	LIST_FOREACH(r, list, in_owner)
		if (r->conn)
			last = r;
	return last;
}

static void answer_all(struct request_list *list, const char *result, size_t size, const struct agent_err *err)
{
	struct request *r;

	while ((r = LIST_FIRST(list))) {
		if (err)
			request_fail(r, err);
		else
			request_reply(r, result, size);
	}
}

static void answered(struct request *r, const char *result, size_t size, const struct agent_err *err)
{
	const struct agent_err nobody_hears = { 0 };
	struct listing *l = r->listing;
	struct request *next;

	r->answered = NULL;
	l->running = NULL;
	l->used_ns = clock_now_ns();
	/* The client left before anything was begun for it: the others need another one. */
	next = err && !r->conn ? oldest_of(&l->sharing) : NULL;
	if (!next) {
		answer_all(&l->sharing, result, size, err);
		next = oldest_of(&l->waiting);
	}
	if (next)
		begin(l, next);
	else
		answer_all(&l->waiting, NULL, 0, &nobody_hears);
}

static void looked(struct request *r, const char *data, size_t size)
{
	struct listing *l = r->listing;
	char *copy = size && size <= SEEN_BYTES_MAX ? malloc(size) : NULL;

	free(l->seen);
	l->seen = copy;
	l->seen_size = copy ? size : 0;
	if (copy)
		memcpy(copy, data, size);
}

static void started(struct request *r, const struct ipc_started *m, int take_channel)
{
	const struct listing *l = r->listing;
	struct session *s = worker_create(&frontend_of(r)->sessions, m, IPC_KIND_INSPECT, 0, 0, take_channel);
	const struct ipc_head head = { .type = IPC_LOOKED, .size = l->seen_size };
	struct agent_err err = { 0 };

	if (s) {
		/* Without that the look takes longer, and no more. */
		if (l->seen)
			(void)session_send(s, &head, l->seen, -1);
		calls_send(s, r, r->params, r->params_size, 0, LIST_MS);
		return;
	}
	agent_err_no_memory(&err, NULL);
	request_fail(r, &err);
}

/* All that wait get what is found from now on. */
static void begin(struct listing *l, struct request *r)
{
	static const struct start_ops ops = { .started = started };
	struct request *other;

	l->running = r;
	r->listing = l;
	r->answered = answered;
	r->looked = looked;
	request_own(r, NULL);
	while ((other = LIST_FIRST(&l->waiting)))
		request_own(other, &l->sharing);
	start_ask(&frontend_of(r)->starts, r, IPC_KIND_INSPECT, LIST_MS, &ops);
}

static void wait_expired(int fd, short what, void *user)
{
	struct agent_err err = { 0 };

	agent_err_set(&err, RPC_ERROR_TIMEOUT, 0, "list processes", "ask less often",
		      "another list for your user took too long");
	request_fail(user, &err);
}

int listing_ask(struct request *r, const struct rpc_process_list_params *params, const char *text, size_t size,
		struct agent_err *err)
{
	struct listing *l = find(&frontend_of(r)->listings, r->conn, params->has_mine && params->mine);
	int e = l ? request_keep_params(r, text, size, err) : agent_err_no_memory(err, NULL);

	if (e < 0)
		return e;
	if (!l->running) {
		begin(l, r);
		return RPC_LATER;
	}
	request_own(r, &l->waiting);
	request_deadline(r, WAIT_MS, wait_expired);
	return RPC_LATER;
}

void listing_deinit(struct listing_list *all)
{
	struct agent_err nobody_hears = { 0 };
	struct listing *l;

	while ((l = LIST_FIRST(all))) {
		while (!LIST_EMPTY(&l->waiting))
			request_fail(LIST_FIRST(&l->waiting), &nobody_hears);
		if (l->running)
			request_fail(l->running, &nobody_hears);
		free_listing(l);
	}
}
