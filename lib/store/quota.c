/* SPDX-License-Identifier: MIT */
/*
 * Decides what is deleted.  Bodies and records past their age go first; then, while there is too
 * much, the oldest body or record of the user who has most; bodies before metadata, and the newest
 * body of each key last.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "store/internal.h"

enum tier {
	TIER_OLD_BODIES, /* Bodies that have a newer one of the same key. */
	TIER_BODIES,
	TIER_RECORDS,
	TIER_COUNT,
};

/* The share of one user in the store. */
struct user {
	uint32_t uid;
	uint64_t bytes, records;
};

struct vacuum {
	struct store *s;
	struct store_list list;
	struct user *users;
	size_t n_users;
	uint64_t reserve;
	uint32_t adds; /* Records that are about to be written. */
	int fd; /* File that gets the space from @c from to @c to reserved; -1: none does. */
	uint64_t from, to;
	const char *keep;
	uint64_t now_s;
	bool only_bodies;
};

static struct user *user_of(struct vacuum *v, uint32_t uid)
{
	for (size_t i = 0; i < v->n_users; i++)
		if (v->users[i].uid == uid)
			return &v->users[i];
	v->users[v->n_users] = (struct user){ .uid = uid };
	return &v->users[v->n_users++];
}

/* Round up to whole pages, in which disks give out space. */
static uint64_t whole_pages(uint64_t bytes)
{
	return (bytes + 4095) & ~UINT64_C(4095);
}

static int count_users(struct vacuum *v)
{
	v->users = calloc(v->list.n + 1, sizeof(*v->users));
	if (!v->users)
		return -ENOMEM;
	for (size_t i = 0; i < v->list.n; i++) {
		struct user *u = user_of(v, v->list.items[i].uid);

		u->bytes += v->list.items[i].record_disk + v->list.items[i].body_disk;
		u->records++;
	}
	return 0;
}

static bool is_there(const struct store_item *i)
{
	return i->has_record || i->body == STORE_BODY_PRESENT;
}

static bool may_go(const struct vacuum *v, const struct store_item *i)
{
	return is_there(i) && !i->pinned && !i->busy && !(v->keep && !strcmp(v->keep, i->name));
}

static bool in_tier(const struct store_item *i, enum tier tier)
{
	switch (tier) {
	case TIER_OLD_BODIES:
		return i->body == STORE_BODY_PRESENT && !i->newest;
	case TIER_BODIES:
		return i->body == STORE_BODY_PRESENT;
	default:
		return i->body != STORE_BODY_PRESENT;
	}
}

/*
 * Delete the body of an item, or all of it, and correct the counts.
 * @return 0, -EBUSY when nothing was deleted because it is being read, other -errno.
 */
static int delete(struct vacuum *v, struct store_item *i, bool record)
{
	struct user *u = user_of(v, i->uid);
	uint64_t freed = i->body_disk;
	int r = store_delete(v->s, i, record);

	if (r < 0) {
		i->busy = true;
		return r;
	}
	if (record) {
		freed += i->record_disk;
		i->has_record = false;
		u->records--;
		v->list.usage.n_records--;
		i->record_disk = 0;
	}
	i->body = STORE_BODY_NONE;
	i->body_disk = 0;
	u->bytes -= freed;
	v->list.usage.disk_bytes -= freed;
	v->list.usage.free_bytes += freed;
	return 0;
}

static int delete_aged(struct vacuum *v)
{
	const struct store_limits *l = &v->s->limits;
	int r = 0;

	for (size_t i = 0; i < v->list.n; i++) {
		struct store_item *item = &v->list.items[i];
		uint64_t age = v->now_s > item->time_s ? v->now_s - item->time_s : 0;
		bool record = l->record_age_s && age > l->record_age_s;
		bool body =
			l->body_age_s && age > l->body_age_s && item->body == STORE_BODY_PRESENT;
		int e = may_go(v, item) && (record || body) ? delete(v, item, record) : 0;

		if (e < 0 && e != -EBUSY && r == 0)
			r = e;
	}
	return r;
}

/* @return the oldest item that may go, of the user who has most; NULL if there is none. */
static struct store_item *pick(struct vacuum *v, enum tier tier, bool by_count)
{
	struct store_item *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < v->list.n; i++) {
		struct store_item *item = &v->list.items[i];
		const struct user *u;
		uint64_t has;

		if (!may_go(v, item) || (!by_count && !in_tier(item, tier)))
			continue;
		u = user_of(v, item->uid);
		has = by_count ? u->records : u->bytes;
		if (!best || has > most) {
			best = item;
			most = has;
		}
	}
	return best;
}

/*
 * Is too much in use?  Only bodies are given up for free space: others may have used it up, and
 * metadata are small.
 */
static bool too_full(const struct vacuum *v, bool bodies)
{
	const struct store_usage *u = &v->list.usage;
	const struct store_limits *l = &v->s->limits;

	return u->disk_bytes + v->reserve > l->max_use ||
	       (bodies && u->free_bytes < l->keep_free + v->reserve);
}

static bool too_many(const struct vacuum *v)
{
	uint32_t most = v->s->limits.max_records;

	return most && v->list.usage.n_records + v->adds > most;
}

static int delete_for_space(struct vacuum *v)
{
	int r = 0;

	for (int tier = 0; tier < (v->only_bodies ? TIER_RECORDS : TIER_COUNT); tier++) {
		bool record = tier == TIER_RECORDS;
		struct store_item *i;

		while (too_full(v, !record) && (i = pick(v, (enum tier)tier, false))) {
			int e = delete(v, i, record);

			if (e < 0 && e != -EBUSY && r == 0)
				r = e;
		}
	}
	return r;
}

static int delete_for_count(struct vacuum *v)
{
	struct store_item *i;
	int r = 0;

	while (too_many(v) && (i = pick(v, TIER_RECORDS, true))) {
		int e = delete(v, i, true);

		if (e < 0 && e != -EBUSY && r == 0)
			r = e;
	}
	return r;
}

static int vacuum_locked(struct vacuum *v)
{
	int r = store_list(v->s, &v->list);

	if (r == 0)
		r = count_users(v);
	if (r == 0)
		r = delete_aged(v);
	if (r == 0 && !v->only_bodies)
		r = delete_for_count(v);
	if (r == 0)
		r = delete_for_space(v);
	/*
	 * What was deleted is not synced: it may come back after a crash, and is then deleted
	 * again.
	 */
	if (r == 0 && (too_full(v, v->keep) || too_many(v)))
		r = -EDQUOT;
	return r;
}

static int vacuum(struct vacuum *v)
{
	int r;

	v->now_s = v->s->sys->now_us() / 1000000;
	r = store_lock(v->s);
	if (r < 0)
		return r;
	r = vacuum_locked(v);
	/* Where space cannot be reserved, or not all of it, the write finds out. */
	if (r == 0 && v->fd >= 0)
		fallocate(v->fd, 0, (off_t)v->from, (off_t)(v->to - v->from));
	store_unlock(v->s);
	free(v->users);
	store_list_deinit(&v->list);
	return r;
}

int store_vacuum(struct store *s, uint64_t reserve, const char *keep)
{
	struct vacuum v = { .s = s, .reserve = reserve, .fd = -1, .keep = keep };

	return vacuum(&v);
}

int store_reserve(struct store *s, int fd, uint64_t from, uint64_t to, const char *keep)
{
	struct vacuum v = { .s = s, .reserve = whole_pages(to) - from, .fd = fd, .from = from, .to = to,
			    .keep = keep, .adds = !keep };

	return vacuum(&v);
}

void store_drop_bodies(struct store *s, uint64_t reserve)
{
	struct vacuum v = { .s = s, .reserve = reserve, .fd = -1, .only_bodies = true };

	vacuum(&v);
}
