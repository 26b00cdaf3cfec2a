/* SPDX-License-Identifier: MIT */
/*
 * The cores.* methods for one client.  An administrator and an observer see all records, any other
 * client those of its own user.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/frontend_worker.h"
#include "agentd/store/service.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "protocol/rpc_arena.h"
#include "protocol/rpc_format.h"
#include "rpc_gen.h"

/* Most memory for a reply with a document. */
#define REPLY_MEMORY_MAX ((size_t)128 << 20)

/* The client is told only now that there is no store: the process serves all the same. */
static int no_store(const struct service *s, struct agent_err *err)
{
	const char *hint = "see [store] in agentd.conf(5) and the agent's log";

	if (s->status == -ENOENT)
		hint = "systemd-tmpfiles --create makes it; [store] directory in agentd.conf names another";
	else if (s->status == -EPERM)
		hint = "it must belong to the agent's user, and nobody else may write into it";
	return agent_err_set(err, RPC_ERROR_FAILED, -s->status, "open store", hint,
			     "the record store %.200s cannot be opened: %s", s->directory,
			     strerror(-s->status));
}

/* The limits cannot be kept in a directory that cannot be listed, so a person has to mend it. */
static int too_many_files(const struct service *s, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_LIMIT, EOVERFLOW, "list",
			     "remove the oldest with rm, and set max_records in [store] of agentd.conf",
			     "the record store %.200s has more than %u files", s->directory,
			     s->store.limits.max_files);
}

static int store_failed(int r, const char *op, const char *id, struct agent_err *err)
{
	switch (r) {
	case -ENOMEM:
		return agent_err_no_memory(err, NULL);
	case -ENOENT:
		return agent_err_set(err, RPC_ERROR_NO_SUCH_RECORD, ENOENT, op,
				     "cores.list shows all", "there is no record %.40s", id);
	case -ENOTUNIQ:
		return agent_err_set(err, RPC_ERROR_NO_SUCH_RECORD, ENOTUNIQ, op,
				     "give more of the id", "several records begin with %.40s", id);
	case -EBADMSG:
		return agent_err_set(err, RPC_ERROR_FAILED, EBADMSG, op,
				     "its core file, if it has one, can still be exported",
				     "record %.40s is broken", id);
	case -EROFS:
		return agent_err_set(err, RPC_ERROR_FAILED, EROFS, op, NULL,
				     "the record store is on a file system that cannot be written");
	default:
		return agent_err_set(err, RPC_ERROR_FAILED, -r, op, NULL, "record %.40s: %s", id,
				     store_error_text(r));
	}
}

/* ------------------------------------------------------------------ choosing ----------------- */

static bool may_see(const struct service *s, const struct store_item *i)
{
	return s->admin || s->observer || i->uid == s->client_uid;
}

/* List the records that the client may see; all others are as if they did not exist. */
static int list_visible(struct service *s, struct store_list *ret, struct agent_err *err)
{
	size_t n = 0;
	int r;

	if (s->status < 0)
		return no_store(s, err);
	r = store_list(&s->store, ret);
	if (r == -EOVERFLOW)
		return too_many_files(s, err);
	if (r < 0)
		return store_failed(r, "list", "", err);
	for (size_t i = 0; i < ret->n; i++)
		if (may_see(s, &ret->items[i]))
			ret->items[n++] = ret->items[i];
	ret->n = n;
	return 0;
}

/* Find a record by its id or the beginning of it.  @param l  Holds *ret; the caller frees it. */
static int find(struct service *s, const char *id, struct store_list *l,
		const struct store_item **ret, struct agent_err *err)
{
	int r = list_visible(s, l, err);

	if (r < 0)
		return r;
	r = store_list_find(l, id, ret);
	return r < 0 ? store_failed(r, "find", id, err) : 0;
}

/* Find a record that the client may change: an observer changes only those of its own user. */
static int find_own(struct service *s, const char *id, struct store_list *l,
		    const struct store_item **ret, struct agent_err *err)
{
	int r = find(s, id, l, ret, err);

	if (r == 0 && !s->admin && (*ret)->uid != s->client_uid)
		return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, 0, NULL,
				     "ask its owner or an administrator",
				     "record %s belongs to another user", (*ret)->id);
	return r;
}

/* Whoever reads or changes what is not its own is written down. */
static void note_use(struct service *s, enum ipc_use use, enum rpc_method method, const char *record, uid_t owner)
{
	if (owner != s->client_uid)
		record_uses_tell(&s->uses, use, rpc_methods[method].name, record, owner, clock_now_ns());
}

/* An empty text means that nothing is known, which the protocol says by leaving it out. */
static const char *text(struct rpc_arena *a, const char *s)
{
	return s[0] ? rpc_arena_strdup(a, s) : NULL;
}

/* The metadata name the body that a record had; whether it is still there is another question. */
static enum rpc_record_body body_of(const struct store_item *i, const struct store_meta *m)
{
	if (i->body == STORE_BODY_PRESENT)
		return RPC_RECORD_BODY_PRESENT;
	return m->body[0] ? RPC_RECORD_BODY_GONE : RPC_RECORD_BODY_NONE;
}

static void describe(struct rpc_arena *a, const struct store_item *i, const struct store_meta *m,
		     struct rpc_record *ret)
{
	*ret = (struct rpc_record){
		.record = rpc_arena_strdup(a, i->id),
		.time_us = m->time_us,
		.count = m->count,
		.pid = i->pid,
		.uid = i->uid,
		.boot_id = text(a, m->boot_id),
		.comm = text(a, m->comm),
		.exe = text(a, m->exe),
		.vendor = text(a, m->vendor),
		.reason = text(a, m->reason),
		.rule = text(a, m->rule),
		.exception = text(a, m->exception),
		.kernel = text(a, m->kernel),
		.location = text(a, m->location),
		.key = text(a, m->key),
		.body = body_of(i, m),
		.body_bytes = i->body_size,
		.zstd = i->zstd,
		.disk_bytes = i->record_disk + i->body_disk,
		.pinned = i->pinned,
	};
}

/* Read the metadata; if they cannot be read, the facts in the record's file name stand in. */
static void read_meta(struct service *s, struct store_list *l, const struct store_item *i,
		      struct store_meta *ret, const char **ret_broken)
{
	int r = store_list_meta(&s->store, l, i, ret);

	*ret_broken = r == 0	    ? NULL :
		      r == -ENOENT  ? "the metadata are missing" :
		      r == -EBADMSG ? "the metadata are damaged" :
				      strerror(-r);
	if (r < 0)
		*ret = (struct store_meta){ .time_us = i->time_s * 1000000, .count = 1, .pid = i->pid, .uid = i->uid };
	memcpy(ret->id, i->id, sizeof(ret->id));
}

/* Check that each match is FIELD=VALUE with a field that records have. */
static int check_filter(const struct store_filter *f, struct agent_err *err)
{
	for (size_t i = 0; i < f->n_matches; i++)
		if (store_match_check(f->matches[i]) < 0)
			return agent_err_set(
				err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL,
				"for example PID=42, UID=1000, NAME=python3, RULE=nightly",
				"params.matches[%zu]: \"%.60s\" is no FIELD=VALUE of a record", i,
				f->matches[i]);
	return 0;
}

/* A list tells what others' processes did, so that it is a use of their records. */
static void note_list(struct service *s, const struct rpc_record *records, size_t n)
{
	bool has_others = false;
	uid_t owner = s->client_uid;

	for (size_t i = 0; i < n; i++) {
		if (records[i].uid == s->client_uid)
			continue;
		owner = has_others && owner != records[i].uid ? (uid_t)-1 : records[i].uid;
		has_others = true;
	}
	note_use(s, IPC_USE_READ, RPC_METHOD_CORES_LIST, NULL, owner);
}

static int do_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		   const struct rpc_cores_list_params *p, struct rpc_cores_list_result *ret,
		   struct agent_err *err)
{
	const struct store_filter f = { .matches = p->matches,
					.n_matches = p->n_matches,
					.since_us = p->has_since_us ? p->since_us : 0,
					.until_us = p->until_us,
					.has_until = p->has_until_us };
	auto_store_list struct store_list l = { 0 };
	struct service *s = ctx;
	size_t n = 0, most;
	int r = check_filter(&f, err);

	if (r == 0)
		r = list_visible(s, &l, err);
	if (r < 0)
		return r;
	most = p->has_limit && p->limit < l.n ? p->limit : l.n;
	ret->records = rpc_arena_array(arena, l.n, sizeof(*ret->records));
	if (!ret->records)
		return agent_err_no_memory(err, NULL);
	/* The array is filled from its end, from the newest record on: the oldest is first. */
	for (size_t i = l.n; i-- && n < most;) {
		struct store_meta m;
		const char *broken;

		read_meta(s, &l, &l.items[i], &m, &broken);
		if (!store_match(&f, &m))
			continue;
		n++;
		describe(arena, &l.items[i], &m, &ret->records[l.n - n]);
		ret->records[l.n - n].broken = broken ? rpc_arena_strdup(arena, broken) : NULL;
	}
	ret->records += l.n - n;
	ret->n_records = n;
	note_list(s, ret->records, n);
	/* The index has all records, so it can be written only from a list of all of them. */
	if (s->admin || s->observer)
		store_list_keep_index(&s->store, &l);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

static int do_info(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		   const struct rpc_cores_info_params *p, struct rpc_cores_info_result *ret,
		   struct agent_err *err)
{
	auto_store_list struct store_list l = { 0 };
	auto_out struct out document = { 0 };
	auto_free char *json = NULL;
	struct service *s = ctx;
	const struct store_item *i;
	struct store_meta m;
	size_t size;
	int r = find(s, p->record, &l, &i, err);

	if (r < 0)
		return r;
	note_use(s, IPC_USE_READ, RPC_METHOD_CORES_INFO, i->id, i->uid);
	/* A body may be listed that has no record beside it. */
	r = i->has_record ? store_list_meta(&s->store, &l, i, &m) : -EBADMSG;
	if (r == 0)
		r = store_read_json(&s->store, i, &json, &size);
	if (r < 0)
		return store_failed(r, "read", i->id, err);
	arena->limit = REPLY_MEMORY_MAX;
	describe(arena, i, &m, &ret->record);
	/*
	 * The document becomes a part of the reply as it is, so it must be one valid value, on one
	 * line.  Its writer parsed what strangers wrote, and is not trusted.
	 */
	out_init(&document, 0);
	if (rpc_format(&document, json, size, RPC_FORMAT_SHORT) < 0)
		return store_failed(-EBADMSG, "read", i->id, err);
	ret->snapshot = rpc_arena_strndup(arena, document.data, document.size);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

/* ------------------------------------------------------------------ the body ----------------- */

static void close_body(struct service *s)
{
	if (s->body_fd >= 0)
		close(s->body_fd);
	s->body_fd = -1;
	s->body_id[0] = '\0';
}

/* The body stays open between calls, since a client reads it in many pieces. */
static int open_body(struct service *s, const char *id, struct agent_err *err)
{
	auto_store_list struct store_list l = { 0 };
	const struct store_item *i;
	int r;

	if (s->body_fd >= 0 && !strcmp(s->body_id, id))
		return 0;
	r = find(s, id, &l, &i, err);
	if (r < 0)
		return r;
	if (i->body != STORE_BODY_PRESENT)
		return agent_err_set(err, RPC_ERROR_NO_SUCH_RECORD, ENOENT, "read core",
				     "cores.info shows whether there was one",
				     "record %s has no core file", i->id);
	close_body(s);
	r = store_open_body(&s->store, i, &s->body_fd);
	if (r < 0)
		return store_failed(r, "open core", i->id, err);
	memcpy(s->body_id, i->id, sizeof(s->body_id));
	s->body_uid = i->uid;
	s->body_zstd = i->zstd;
	return 0;
}

static int do_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		   const struct rpc_cores_read_params *p, struct rpc_cores_read_result *ret,
		   struct agent_err *err)
{
	auto_free void *buf = malloc(p->size);
	struct service *s = ctx;
	struct stat st;
	ssize_t n;
	int r = buf ? open_body(s, p->record, err) : agent_err_no_memory(err, NULL);

	if (r < 0)
		return r;
	note_use(s, IPC_USE_READ, RPC_METHOD_CORES_READ, s->body_id, s->body_uid);
	if (p->offset > (uint64_t)INT64_MAX - p->size)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.offset: larger than any file");
	n = fd_pread_all(s->body_fd, buf, p->size, p->offset);
	if (n < 0 || fstat(s->body_fd, &st) < 0)
		return store_failed(n < 0 ? (int)n : -errno, "read core", s->body_id, err);
	ret->data = rpc_arena_base64(arena, buf, (size_t)n);
	ret->size = (uint32_t)n;
	ret->body_bytes = (uint64_t)st.st_size;
	ret->zstd = s->body_zstd;
	return ret->data ? 0 : agent_err_no_memory(err, NULL);
}

/* ------------------------------------------------------------------ changing ----------------- */

static int do_pin(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		  const struct rpc_cores_pin_params *p, struct rpc_cores_pin_result *ret,
		  struct agent_err *err)
{
	auto_store_list struct store_list l = { 0 };
	struct service *s = ctx;
	const struct store_item *i;
	int r = find_own(s, p->record, &l, &i, err);

	if (r < 0)
		return r;
	note_use(s, IPC_USE_CONTROL, RPC_METHOD_CORES_PIN, i->id, i->uid);
	ret->pinned = !p->has_pinned || p->pinned;
	r = store_pin(&s->store, i, ret->pinned);
	if (r == -EDQUOT)
		return agent_err_set(err, RPC_ERROR_LIMIT, EDQUOT, "pin",
				     "unpin others, or raise max_use",
				     "half of the store would be pinned");
	ret->record = rpc_arena_strdup(arena, i->id);
	return r < 0 ? store_failed(r, "pin", i->id, err) : ret->record ? 0 : agent_err_no_memory(err, NULL);
}

static int do_remove(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_cores_remove_params *p, struct rpc_cores_remove_result *ret,
		     struct agent_err *err)
{
	auto_store_list struct store_list l = { 0 };
	struct service *s = ctx;
	const struct store_item *i;
	int r = find_own(s, p->record, &l, &i, err);

	if (r < 0)
		return r;
	note_use(s, IPC_USE_CONTROL, RPC_METHOD_CORES_REMOVE, i->id, i->uid);
	/* The store refuses to remove a body that is open, and this process may have it open. */
	if (!strcmp(s->body_id, i->id))
		close_body(s);
	r = store_remove(&s->store, i);
	if (r == -EPERM && i->pinned)
		return agent_err_set(err, RPC_ERROR_FAILED, EPERM, "remove", "unpin it first",
				     "record %s is pinned", i->id);
	if (r == -EBUSY)
		return agent_err_set(err, RPC_ERROR_BUSY, EBUSY, "remove", "try again in a minute",
				     "somebody reads the core file of record %s", i->id);
	ret->disk_bytes = i->record_disk + i->body_disk;
	ret->record = rpc_arena_strdup(arena, i->id);
	return r < 0 ? store_failed(r, "remove", i->id, err) : ret->record ? 0 : agent_err_no_memory(err, NULL);
}

static int do_usage(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		    const struct rpc_cores_usage_params *p, struct rpc_cores_usage_result *ret,
		    struct agent_err *err)
{
	auto_store_list struct store_list l = { 0 };
	struct service *s = ctx;
	const struct store_usage *u = &l.usage;
	int r = list_visible(s, &l, err);

	if (r < 0)
		return r;
	*ret = (struct rpc_cores_usage_result){
		.disk_bytes = u->disk_bytes,
		.body_bytes = u->body_bytes,
		.unfinished_bytes = u->unfinished_bytes,
		.pinned_bytes = u->pinned_bytes,
		.free_bytes = u->free_bytes,
		.records = u->n_records,
		.bodies = u->n_bodies,
		.pinned = u->n_pinned,
		.foreign = u->n_foreign,
		.max_use_bytes = s->store.limits.max_use,
		.keep_free_bytes = s->store.limits.keep_free,
		.max_body_bytes = store_max_body(&s->store),
		.max_age_s = s->store.limits.body_age_s,
		.max_record_age_s = s->store.limits.record_age_s,
		.max_records = s->store.limits.max_records,
	};
	return 0;
}

/* ------------------------------------------------------------------ serving ------------------ */

static const struct rpc_store_handlers handlers = {
	.cores_list = do_list,
	.cores_info = do_info,
	.cores_read = do_read,
	.cores_pin = do_pin,
	.cores_remove = do_remove,
	.cores_usage = do_usage,
};

static int serve(struct service *s, const struct ipc_message *m)
{
	struct ipc_head head = { .type = IPC_REPLY, .number = m->head.number, .id = m->head.id };
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out reply;
	struct agent_err err = { 0 };

	rpc_arena_init(&arena, 0);
	out_init(&reply, 0);
	if (rpc_store_dispatch(&handlers, s, NULL, &arena, (enum rpc_method)m->head.number, m->text,
			       (size_t)m->head.size, &reply, &err) < 0 ||
	    out_error(&reply)) {
		head.type = IPC_ERROR;
		out_reset(&reply);
		agent_err_encode(&reply, &err);
	}
	head.size = reply.size;
	return out_error(&reply) ? out_error(&reply) : ipc_link_send(&s->link, &head, reply.data);
}

/* Answer one call.  @return 0 to go on, -EPIPE at the end of the channel, other -errno. */
static int receive(struct service *s)
{
	struct ipc_message m;
	int r = ipc_link_recv(&s->link, &m);

	if (r == -EAGAIN)
		return 0;
	if (r != 1)
		return r == 0 ? -EPIPE : r;
	r = m.head.type == IPC_CALL ? serve(s, &m) : -EPROTO;
	ipc_message_deinit(&m);
	return r;
}

int client_run(struct service *s)
{
	int r = 0;

	ipc_link_init(&s->link, IPC_FD_FRONT);
	while (r == 0) {
		struct pollfd p[] = {
			{ .fd = s->link.fd,
			  .events = (short)(POLLIN | (ipc_link_has_queued(&s->link) ? POLLOUT : 0)) },
			{ .fd = IPC_FD_MONITOR, .events = POLLIN },
		};

		if (poll(p, 2, -1) < 0)
			r = errno == EINTR ? 0 : -errno;
		else if (p[1].revents)
			r = -EPIPE;
		else if (p[0].revents & POLLOUT)
			r = ipc_link_flush(&s->link);
		else
			r = receive(s);
	}
	if (r != -EPIPE)
		log_error("channel of the store: %s", strerror(-r));
	record_uses_end(&s->uses);
	close_body(s);
	ipc_link_deinit(&s->link);
	return r == -EPIPE ? 0 : 1;
}
