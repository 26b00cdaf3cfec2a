/* SPDX-License-Identifier: MIT */
#include "agentd/worker/rule/engine.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agentd/ipc/worker_store.h"
#include "agentd/worker/rule/store_link.h"
#include "agentd/worker/snapshot/convert.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/out.h"
#include "base/str.h"

#define LOOK_UP_MS 200
/* Time for the store's last answers; the target is free by then. */
#define SETTLE_MS  3000
/* Time for the reader of threads, which gives up by itself before. */
#define THREADS_MS 5000

/* A record while it is made, of one exception. */
struct making {
	struct rule_engine *w;
	const struct target_event *event;
	struct rpc_arena *a;
	struct exception_capture *seen; /* NULL: the record is about no single exception. */
	struct rpc_gpu_snapshot_result doc;
	struct store_meta meta;
	char key[RATE_LIMIT_KEY_SIZE];
};

static bool is_on(const struct rule_engine *w)
{
	return w->rule.name[0] != '\0';
}

static void tell_counts(struct rule_engine *w)
{
	w->host.ops->send_counts(w->host.session, &w->counts);
	w->counts = (struct ipc_counts){ 0 };
}

static void lose(struct rule_engine *w, const char *why)
{
	w->counts.lost++;
	log_warning("rule %s: an exception of process %d is not recorded: %s", w->rule.name,
		    (int)w->host.target->facts.pid, why);
}

/* ------------------------------------------------------------------ the store ---------------- */

static void drop_store(struct rule_engine *w)
{
	if (w->answered)
		event_free(w->answered);
	w->answered = NULL;
	if (w->store_fd >= 0)
		close(w->store_fd);
	w->store_fd = -1;
	for (size_t i = 0; i < w->n_pending; i++)
		if (w->hooks[i].fd >= 0)
			close(w->hooks[i].fd);
	w->n_pending = 0;
}

static struct rule_hook make_hook(const struct store_meta *m, int take_fd)
{
	struct rule_hook hook = { .fd = take_fd };
	struct ipc_fault *f = &hook.fault;

	str_copy(f->comm, sizeof(f->comm), m->comm);
	str_copy(f->exe, sizeof(f->exe), m->exe);
	str_copy(f->vendor, sizeof(f->vendor), m->vendor);
	str_copy(f->exception, sizeof(f->exception), m->exception);
	str_copy(f->kernel, sizeof(f->kernel), m->kernel);
	str_copy(f->location, sizeof(f->location), m->location);
	return hook;
}

static struct rule_hook take_hook(struct rule_engine *w)
{
	struct rule_hook hook = w->hooks[0];

	memmove(&w->hooks[0], &w->hooks[1], --w->n_pending * sizeof(w->hooks[0]));
	return hook;
}

/* Ask the frontend to run a hook.  @param hook  The callee takes its descriptor. */
static void run_hook(struct rule_engine *w, struct rule_hook hook, const char *id)
{
	auto_close int fd = hook.fd;
	struct ipc_hook m = { .type = IPC_HOOK, .fault = hook.fault };
	ssize_t n;

	if (fd < 0)
		return;
	str_copy(m.fault.record, sizeof(m.fault.record), id);
	n = fd_send(w->host.deadline->fd, &m, sizeof(m), &fd, 1);
	if (n < 0)
		log_warning("rule %s: its hook is not run: %s", w->rule.name,
			    strerror((int)-n));
}

/*
 * The store has answered a record, or there is no store.
 * @param hook  The callee takes its descriptor.
 */
static void stored(struct rule_engine *w, struct rule_hook hook, int status, const char *id)
{
	if (status < 0)
		lose(w, store_error_text(status));
	else
		w->counts.recorded++;
	run_hook(w, hook, status < 0 ? "" : id);
	tell_counts(w);
}

/* The store's process has ended: nothing is known of the records on their way. */
static void store_gone(struct rule_engine *w, int r)
{
	while (w->n_pending)
		stored(w, take_hook(w), r, "");
	drop_store(w);
}

static void on_answer(evutil_socket_t fd, short what, void *user)
{
	struct rule_engine *w = user;
	struct ipc_added added;
	int r;

	while ((r = w->n_pending ? store_link_receive(w->store_fd, &added) : -EAGAIN) == 0)
		stored(w, take_hook(w), added.status, added.id);
	/*
	 * With no record on its way the store's process may end; the next record gets another
	 * process.
	 */
	if (r != -EAGAIN || !w->n_pending)
		store_gone(w, r);
}

static int open_store(struct rule_engine *w)
{
	int r;

	if (w->store_fd >= 0)
		return 0;
	r = store_link_open(w->host.deadline, &w->store_fd);
	if (r < 0)
		return r;
	w->answered = event_new(w->host.base, w->store_fd, EV_READ | EV_PERSIST, on_answer, w);
	if (w->answered && event_add(w->answered, NULL) == 0)
		return 0;
	drop_store(w);
	return -ENOMEM;
}

/* @param take_hook_fd  The hook's document, for when the record is stored, or cannot be; or -1. */
static void send_record(struct rule_engine *w, const struct store_meta *m, const struct out *json,
		       int take_hook_fd)
{
	auto_close int hook = take_hook_fd;
	int r = w->n_pending == RULE_ENGINE_PENDING_MAX ? -EBUSY : open_store(w);

	if (r == 0)
		r = store_link_send(w->store_fd, m, json->data, json->size, -1, 0);
	if (r == 0)
		w->hooks[w->n_pending++] = make_hook(m, TAKE_FD(hook));
	else
		stored(w, make_hook(m, TAKE_FD(hook)), r, "");
	/* The next record gets another process of the store. */
	if (r == -EPIPE)
		store_gone(w, r);
}

/* ------------------------------------------------------------------ the document ------------- */

static void fill_fault(const struct making *k, struct rpc_fault *ret)
{
	const struct target_event *e = k->event;

	*ret = (struct rpc_fault){
		.rule = k->w->rule.name,
		.has_gpu_id = e->source.has_gpu,
		.gpu_id = e->source.gpu_id,
		.has_queue_id = e->source.has_queue,
		.queue_id = e->source.queue_id,
		.has_address = e->has_address,
		.address = e->address,
		.has_not_present = e->has_access,
		.not_present = e->not_present,
		.has_read_only = e->has_access,
		.read_only = e->read_only,
		.has_no_execute = e->has_access,
		.no_execute = e->no_execute,
	};
	ret->exceptions = convert_exceptions(k->a, e->source.exceptions, &ret->n_exceptions);
	ret->text = convert_exception_words(k->a, ret->exceptions, ret->exceptions ? ret->n_exceptions : 0);
}

/* Join the names of the exceptions by commas. */
static void name_exceptions(char *ret, size_t size, uint64_t exceptions)
{
	size_t at = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < rpc_exception_enum.n && at < size; i++)
		if (exceptions >> (rpc_exception_enum.values[i].value - 1) & 1)
			at += (size_t)snprintf(ret + at, size - at, "%s%s", at ? "," : "",
					       rpc_exception_enum.values[i].name);
}

/*
 * @return the group of waves that stands still for this exception; NULL if none does, or none is
 *         known.
 */
static const struct rpc_group *find_group(const struct making *k)
{
	const struct target_source *source = &k->event->source;

	if (!(source->exceptions & TARGET_EXCEPTIONS_OF_WAVES))
		return NULL;
	for (size_t i = 0; i < k->doc.n_groups; i++) {
		const struct rpc_group *g = &k->doc.groups[i];

		if ((g->n_reasons || g->exception) &&
		    exception_concerns(source, g->gpu_id, g->representative.queue_id))
			return g;
	}
	return NULL;
}

/* Make the key of what the rule takes for the same. @g is NULL where the group is not known. */
static void make_key(const struct rule_engine *w, const struct target_event *e,
		     const struct rpc_group *g, char ret[RATE_LIMIT_KEY_SIZE])
{
	const uint32_t parts = w->rule.key_parts;
	const char *kernel = g && g->has_kernel && g->kernel.name ? g->kernel.name : "";

	snprintf(ret, RATE_LIMIT_KEY_SIZE, "%" PRIx64 " %" PRIx64 " %.200s",
		 parts & IPC_KEY_CODE ? e->source.exceptions & w->rule.exceptions : 0,
		 parts & IPC_KEY_PC && g ? g->pc : 0, parts & IPC_KEY_KERNEL ? kernel : "");
}

static void describe(struct making *k, const char *reason)
{
	struct store_meta *m = &k->meta;
	const struct rpc_group *g = find_group(k);

	str_copy(m->reason, sizeof(m->reason), reason);
	str_copy(m->rule, sizeof(m->rule), k->w->rule.name);
	store_link_describe(m, &k->doc, g);
	name_exceptions(m->exception, sizeof(m->exception), k->event->source.exceptions);
	snprintf(m->key, sizeof(m->key), "%.80s %.80s %.80s", m->exception, m->kernel, m->location);
}

/* ------------------------------------------------------------------ one exception ------------ */

static void say_missing(struct making *k, const char *text)
{
	(void)snapshot_miss(k->a, &k->doc, text);
}

/* @return a descriptor of the document for the hook to read; -1 without a hook. */
static int hook_text(const struct rule_engine *w, const struct out *json)
{
	int fd = -1, r;

	if (!w->rule.has_hook)
		return -1;
	r = fd_memfd_sealed("gpu-agent-hook", json->data, json->size, &fd);
	if (r < 0)
		log_warning("rule %s: its hook is not run: %s", w->rule.name, strerror(-r));
	return fd;
}

static int encode(const struct making *k, struct out *ret)
{
	rpc_gpu_snapshot_result_encode(ret, &k->doc);
	return rpc_arena_error(k->a) ? rpc_arena_error(k->a) : out_error(ret);
}

static bool is_said(const struct making *k, const char *text)
{
	for (size_t i = 0; i < k->doc.n_missing; i++)
		if (strcmp(k->doc.missing[i], text) == 0)
			return true;
	return false;
}

static const char *why_no_core(const struct making *k)
{
	if (k->seen->core_err.code)
		return k->seen->core_err.message;
	return k->w->host.target->ops->core_begin ? "another one is being written" :
						    "not written for devices of this vendor";
}

/* @return whether the record has a core; the record says why not. */
static bool take_core(struct making *k)
{
	struct exception_capture *c = k->seen;

	if (!c->has_core) {
		say_missing(k, rpc_arena_printf(k->a, "core: %s", why_no_core(k)));
		return false;
	}
	c->has_core = false;
	rule_core_take(&k->w->core, &c->core);
	/* What the core lacks of the waves, the record lacks as well. */
	for (size_t i = 0; i < c->core.n_missing; i++)
		if (!is_said(k, c->core.missing[i]))
			say_missing(k, rpc_arena_printf(k->a, "core: %s", c->core.missing[i]));
	return true;
}

/* Send a record on its way, with the core that was begun for it.  @param r  Whether there is a document. */
static void deliver(struct rule_engine *w, const struct store_meta *m, const struct out *json, int r, bool core)
{
	const int hook = r == 0 ? hook_text(w, json) : -1;

	if (r == 0 && !core && w->rule.keep == IPC_KEEP_NOTHING) {
		w->counts.recorded++;
		run_hook(w, make_hook(m, hook), "");
		return;
	}
	if (r == 0 && core)
		r = rule_core_send(&w->core, m, json, make_hook(m, hook));
	else if (r == 0)
		send_record(w, m, json, hook);
	else if (core)
		rule_core_stop(&w->core);
	if (r < 0)
		lose(w, store_error_text(r));
}

/* @return whether the record goes on its way when its threads are known; else it says why it has none. */
static bool wait_for_threads(struct making *k, bool core)
{
	struct rule_engine *w = k->w;
	const uint32_t hold = w->rule.hold_ms, ms = hold && hold < THREADS_MS ? hold : THREADS_MS;
	int r;

	if (w->rule.frames == IPC_FRAMES_OFF || !k->seen)
		return false;
	if (rule_threads_are_asked(&w->threads)) {
		say_missing(k, "host: threads are being read for another record");
		return false;
	}
	out_init(&w->waiting.json, STORE_JSON_MAX);
	r = encode(k, &w->waiting.json);
	if (r == 0)
		r = rule_threads_ask(&w->threads, &k->doc, w->rule.frames == IPC_FRAMES_NATIVE, ms);
	if (r < 0) {
		out_deinit(&w->waiting.json);
		say_missing(k, rpc_arena_printf(k->a, "host: %s", strerror(-r)));
		return false;
	}
	w->waiting.meta = k->meta;
	w->waiting.core = core;
	if (hold)
		rule_hold_begin(&w->hold, RULE_HOLD_THREADS);
	return true;
}

static void keep(struct making *k)
{
	struct rule_engine *w = k->w;
	auto_out struct out json;
	bool core;

	k->doc.has_fault = true;
	fill_fault(k, &k->doc.fault);
	k->doc.fault.count = k->meta.count;
	core = k->seen && w->rule.keep > IPC_KEEP_JSON && take_core(k);
	out_init(&json, STORE_JSON_MAX);
	if (!wait_for_threads(k, core))
		deliver(w, &k->meta, &json, encode(k, &json), core);
}

/* ------------------------------------------------------------------ threads ------------------ */

static int read_snapshot(struct rpc_arena *a, const struct out *text, struct rpc_gpu_snapshot_result *ret)
{
	struct json_object *obj = NULL;
	struct rpc_decoder d;
	int r = rpc_json_parse(text->data, text->size, &obj, NULL);

	rpc_decoder_init_lenient(&d, "record", a, NULL);
	if (r == 0)
		r = rpc_gpu_snapshot_result_decode(&d, obj, ret);
	rpc_json_put(obj);
	return r;
}

static int read_threads(struct rpc_arena *a, const char *text, size_t size, struct rpc_host_stacks_result *ret)
{
	struct json_object *obj = NULL;
	struct rpc_decoder d;
	int r = rpc_json_parse(text, size, &obj, NULL);

	rpc_decoder_init_lenient(&d, "threads", a, NULL);
	if (r == 0)
		r = rpc_host_stacks_result_decode(&d, obj, ret);
	rpc_json_put(obj);
	return r;
}

static void add_threads(struct making *k, const char *text, size_t size, const char *why)
{
	const struct rpc_host_stacks_result *h = &k->doc.host;

	if (text && read_threads(k->a, text, size, &k->doc.host) < 0)
		why = "what was read of threads makes no sense, or does not fit into memory";
	k->doc.has_host = !why;
	if (why)
		say_missing(k, rpc_arena_printf(k->a, "host: %s", why));
	for (size_t i = 0; !why && i < h->n_missing; i++)
		say_missing(k, rpc_arena_printf(k->a, "host: %s", h->missing[i]));
}

/* A record that is too long with its threads is made without them. */
static int encode_with_threads(struct making *k, struct out *ret)
{
	int r = encode(k, ret);

	if (r == 0 || !k->doc.has_host)
		return r;
	out_reset(ret);
	k->doc.has_host = false;
	say_missing(k, "host: the record would be too long");
	return encode(k, ret);
}

static void threads_done(struct rule_engine *w, const char *text, size_t size, const char *why)
{
	struct rule_waiting *waiting = &w->waiting;
	auto_rpc_arena struct rpc_arena arena;
	auto_out struct out json;
	struct making k = { .w = w, .a = &arena, .meta = waiting->meta };
	int r;

	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	out_init(&json, STORE_JSON_MAX);
	r = read_snapshot(&arena, &waiting->json, &k.doc);
	if (r == 0) {
		add_threads(&k, text, size, why);
		r = encode_with_threads(&k, &json);
	}
	out_deinit(&waiting->json);
	deliver(w, &k.meta, &json, r, waiting->core);
	rule_hold_end(&w->hold, RULE_HOLD_THREADS);
	tell_counts(w);
}

static int tell_document(struct making *k, bool waves, struct agent_err *err)
{
	const struct rule_host *h = &k->w->host;
	uint32_t *group_of = NULL;
	const struct snapshot_options o = { .waves = waves, .look_up_ms = LOOK_UP_MS, .ret_group_of = &group_of };
	int r = snapshot_tell(h->target, k->a, &o, &k->seen->seen, &k->doc, err);

	if (r == 0 && waves && k->w->rule.why)
		r = h->ops->tell_waits(h->session, k->a, &k->seen->seen, group_of, LOOK_UP_MS, &k->doc, err);
	return r;
}

/* snapshot_tell() fails for memory alone; waves that do not fit must not cost their exception's record. */
static int tell_without_waves(struct making *k, struct agent_err *err)
{
	int r;

	rpc_arena_reset(k->a);
	k->doc = (struct rpc_gpu_snapshot_result){ 0 };
	r = tell_document(k, false, err);
	if (r == 0)
		say_missing(k, "waves: they do not fit into memory");
	return r;
}

/* Make the document of what was seen.  @return 0, or negative. */
static int tell_seen(struct making *k)
{
	const struct exception_capture *c = k->seen;
	const struct target *t = k->w->host.target;
	struct agent_err err = c->begin_err;
	int r = -1;

	if (!err.code)
		r = tell_document(k, c->has_waves, &err);
	if (r < 0 && !c->begin_err.code && c->has_waves)
		r = tell_without_waves(k, &err);
	else if (r == 0 && c->waves_err.code)
		say_missing(k, rpc_arena_printf(k->a, "waves: %s", c->waves_err.message));
	else if (r == 0 && !c->has_waves)
		say_missing(k, "waves: not looked at, because a look was a moment ago");
	if (err.code || c->waves_err.code)
		log_warning("rule %s: process %d: %s", k->w->rule.name, (int)t->facts.pid,
			    err.code ? err.message : c->waves_err.message);
	return r;
}

static bool is_like(struct rule_engine *w, const char *key)
{
	return rate_limit_is_repeat(&w->state, &w->rule, key, clock_now_ns());
}

/* Judge by the waves whether the exception is a repeat; without a look this is judged already. */
static bool is_repeat(struct making *k, const struct rule_verdict *v)
{
	struct rule_engine *w = k->w;

	make_key(w, k->event, v->unseen ? NULL : find_group(k), k->key);
	if (v->unseen)
		return false;
	if (k->seen->has_waves) {
		w->seen = k->event->source;
		str_copy(w->seen_key, sizeof(w->seen_key), k->key);
	}
	return is_like(w, k->key);
}

static void make_record(struct making *k, const struct rule_verdict *v)
{
	struct rule_engine *w = k->w;

	if (tell_seen(k) < 0) {
		lose(w, "the process cannot be looked at");
		return;
	}
	if (is_repeat(k, v)) {
		w->counts.duplicates++;
		return;
	}
	describe(k, "exception");
	k->meta.count = rate_limit_recorded(&w->state, &w->rule, k->key, clock_now_ns());
	keep(k);
}

/* While no look is allowed, the same exceptions of the same place count as the same. */
static bool is_seen(const struct rule_engine *w, const struct target_source *b)
{
	const struct target_source *a = &w->seen;

	return a->exceptions == b->exceptions && a->has_queue == b->has_queue &&
	       a->queue_id == b->queue_id && a->has_gpu == b->has_gpu && a->gpu_id == b->gpu_id;
}

/* Judge what can be judged without a look.  @return whether nothing is left to judge. */
static bool is_settled(struct rule_engine *w, const struct target_event *e, bool may_look)
{
	const bool cheap = !(w->rule.key_parts & ~IPC_KEY_CODE);
	char key[RATE_LIMIT_KEY_SIZE];

	make_key(w, e, NULL, key);
	if (cheap && is_like(w, key)) {
		w->counts.duplicates++;
	} else if (!rate_limit_allows(&w->state, &w->rule, clock_now_ns())) {
		w->counts.limited++;
	} else if (w->rule.keep == IPC_KEEP_NOTHING && !w->rule.has_hook) {
		rate_limit_recorded(&w->state, &w->rule, key, clock_now_ns());
		w->counts.recorded++;
	} else if (!may_look && ((is_seen(w, &e->source) && is_like(w, w->seen_key)) ||
				 (!cheap && is_like(w, key)))) {
		w->counts.duplicates++;
	} else {
		return false;
	}
	return true;
}

static bool is_for(const struct rule_engine *w, const struct target_event *e)
{
	if (!is_on(w) || !(e->source.exceptions & w->rule.exceptions))
		return false;
	for (uint32_t i = 0; i < w->rule.n_devices && i < IPC_RULE_DEVICES_MAX; i++)
		if (w->rule.devices[i] == e->source.gpu_id)
			return true;
	return !w->rule.n_devices || !e->source.has_gpu;
}

struct rule_verdict rule_engine_judge(struct rule_engine *w, const struct target_event *e,
				      bool may_look)
{
	struct rule_verdict v = { .unseen = !may_look };

	if (!is_for(w, e))
		return v;
	w->counts.begun++;
	tell_counts(w);
	w->counts.exceptions++;
	w->exceptions |= e->source.exceptions;
	v.records = !is_settled(w, e, may_look);
	v.core = v.records && w->rule.keep > IPC_KEEP_JSON && rule_core_is_free(&w->core);
	v.full = w->rule.keep == IPC_KEEP_FULL;
	v.why = w->rule.why;
	if (!v.records)
		tell_counts(w);
	return v;
}

int rule_engine_head(struct rule_engine *w, const struct target_event *e,
		     const struct snapshot *seen, struct rpc_arena *a, struct out *ret,
		     struct agent_err *err)
{
	const struct snapshot_options without_waves = { 0 };
	struct making k = { .w = w, .event = e, .a = a };
	int r = snapshot_tell(w->host.target, a, &without_waves, seen, &k.doc, err);

	if (r < 0)
		return r;
	k.doc.has_fault = true;
	fill_fault(&k, &k.doc.fault);
	k.doc.fault.count = 1;
	r = encode(&k, ret);
	return r < 0 ? agent_err_set(err, RPC_ERROR_INTERNAL, -r, NULL, NULL, "out of memory") : 0;
}

bool rule_engine_exception(struct rule_engine *w, const struct target_event *e,
			   const struct rule_verdict *v, struct exception_capture *seen)
{
	auto_rpc_arena struct rpc_arena arena;
	struct making k = { .w = w, .event = e, .a = &arena, .seen = seen };

	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	if (v->records) {
		w->host.ops->work_begin(w->host.session);
		make_record(&k, v);
		tell_counts(w);
	}
	return rule_hold_keep(&w->hold, e);
}

/* ------------------------------------------------------------------ life --------------------- */

/* Make one record for all exceptions that are in none. */
static void summarise(struct rule_engine *w, uint64_t untold)
{
	const struct target_event all = { .source.exceptions = w->exceptions };
	auto_rpc_arena struct rpc_arena arena;
	struct making k = { .w = w, .event = &all, .a = &arena, .meta.count = untold };
	const struct snapshot_options nothing = { 0 };
	const struct snapshot unseen = { .time_us = clock_wall_us() };
	struct agent_err err = { 0 };

	rpc_arena_init(&arena, TARGET_ARENA_MAX);
	if (snapshot_tell(w->host.target, &arena, &nothing, &unseen, &k.doc, &err) < 0)
		return;
	w->rule.has_hook = 0;
	describe(&k, "repeats");
	keep(&k);
	log_info("rule %s: process %d: %" PRIu64 " exceptions without a record of their own",
		 w->rule.name, (int)w->host.target->facts.pid, untold);
}

static void tell_untold(struct rule_engine *w)
{
	uint64_t untold =
		is_on(w) && w->rule.keep != IPC_KEEP_NOTHING ? rate_limit_untold(&w->state) : 0;

	if (untold)
		summarise(w, untold);
}

void rule_engine_init(struct rule_engine *w, const struct rule_host *host)
{
	w->host = *host;
	w->hold = (struct rule_hold){ .host = &w->host, .rule = &w->rule };
	rule_core_init(&w->core, &w->host, &w->rule, &w->hold, stored, w);
	rule_threads_init(&w->threads, &w->host, threads_done, w);
}

int rule_engine_set(struct rule_engine *w, const struct ipc_rule *rule, struct agent_err *err)
{
	if (strcmp(w->rule.name, rule->name) != 0) {
		rule_threads_give_up(&w->threads, "the rule let the process go before threads were read");
		rule_core_let_go(&w->core);
		tell_untold(w);
		w->state = (struct rate_limit){ 0 };
		w->exceptions = 0;
	}
	w->rule = *rule;
	w->rule.name[sizeof(w->rule.name) - 1] = '\0';
	if (!w->host.target->ops->subscribe)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "devices of this vendor report no exceptions");
	return w->host.ops->subscribe(w->host.session, rule->exceptions, err);
}

void rule_engine_stop(struct rule_engine *w)
{
	/* The application first: a record has time. */
	rule_hold_let_go(&w->hold);
	rule_threads_give_up(&w->threads, "the watch ended before threads were read");
	rule_core_stop(&w->core);
}

/*
 * Records that are stored now are counted, and hooks hear of them, although the process may be
 * gone.
 */
void rule_engine_finish(struct rule_engine *w)
{
	uint64_t deadline = clock_deadline_ms(SETTLE_MS);

	tell_untold(w);
	while (w->n_pending || w->core.store_fd >= 0) {
		struct pollfd p[] = { { .fd = w->n_pending ? w->store_fd : -1, .events = POLLIN },
				      { .fd = w->core.store_fd, .events = POLLIN } };
		int r = poll(p, ARRAY_SIZE(p), clock_left_ms(deadline));

		if (r <= 0 && !(r < 0 && errno == EINTR && clock_left_ms(deadline)))
			break;
		if (r > 0 && p[0].revents)
			on_answer(w->store_fd, EV_READ, w);
		if (r > 0 && p[1].revents)
			rule_core_answered(&w->core);
	}
	if (w->n_pending)
		store_gone(w, -ETIMEDOUT);
	if (w->core.store_fd >= 0)
		rule_core_give_up(&w->core);
}

void rule_engine_deinit(struct rule_engine *w)
{
	drop_store(w);
	rule_hold_deinit(&w->hold);
	rule_core_deinit(&w->core);
	if (rule_threads_are_asked(&w->threads))
		out_deinit(&w->waiting.json);
	rule_threads_deinit(&w->threads);
}
