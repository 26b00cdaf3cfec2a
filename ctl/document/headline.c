/* SPDX-License-Identifier: MIT */
/*
 * The headline is built from the worst kind of line to the best; each function named add_... appends
 * the lines of one kind.  Sentences use the vendor's words.
 */
#include "ctl/document/headline.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/document/code_text.h"
#include "ctl/document/compare.h"
#include "ctl/document/place.h"
#include "ctl/document/vendor_words.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* Most lines of one kind; there must be room for the others. */
#define KIND_MAX 4
/* Most queues that a line names. */
#define QUEUES_NAMED 4

struct builder {
	struct rpc_arena *arena;
	const struct headline_input *in;
	const struct rpc_gpu_snapshot_result *s;
	const struct gpu_names *gpus;
	struct headline *ret;
	size_t of_kind[HEADLINE_FINE + 1];
	struct out text; /* The line that is being written. */
};

const char *headline_tag(enum headline_kind kind)
{
	static const char *const tags[] = {
		[HEADLINE_FAULT] = "FAULT", [HEADLINE_CAUSE] = "CAUSE", [HEADLINE_ALSO] = "ALSO",
		[HEADLINE_HUNG] = "HUNG", [HEADLINE_HELD] = "HELD",
		[HEADLINE_UNSURE] = "UNSURE", [HEADLINE_SLOW] = "SLOW", [HEADLINE_WAITS] = "WAITS",
		[HEADLINE_FINE] = "",
	};

	return tags[kind];
}

const char *headline_more_causes(struct rpc_arena *a, const struct headline *h)
{
	if (!h->more_causes)
		return NULL;
	return rpc_arena_printf(a, "%zu more cause%s; see gpu-agentctl why, or why.causes in the document (-j)",
				h->more_causes, h->more_causes == 1 ? "" : "s");
}

/* ------------------------------------------------------------------ words -------------------- */

static const char *word(const struct builder *b, const char *neutral)
{
	return vendor_word(b->s->process.vendor, neutral);
}

/* Append `1 wave`, `3 waves`. */
static void put_count(struct builder *b, uint64_t n, const char *one, const char *many)
{
	out_fmt(&b->text, "%" PRIu64 " %s", n, word(b, n == 1 ? one : many));
}

static void put_waves(struct builder *b, uint64_t n)
{
	put_count(b, n, "wave", "waves");
}

static void put_gpu(struct builder *b, uint32_t gpu_id)
{
	const char *gpu = gpu_names_text(b->gpus, b->arena, gpu_id);

	out_fmt(&b->text, "GPU %s", gpu ? gpu : "?");
}

/* Append `, 3 of 64 waves have diverged`, where any have. */
static void put_diverged(struct builder *b)
{
	const struct rpc_gpu_snapshot_result *s = b->s;

	if (!s->has_diverged_waves || !s->diverged_waves)
		return;
	out_fmt(&b->text, ", %u of ", s->diverged_waves);
	put_waves(b, s->wave_count);
	out_str(&b->text, s->diverged_waves == 1 ? " has diverged" : " have diverged");
}

/* Append `queue 2`, `queues 0, 3`, `7 queues`. */
static void put_queues(struct builder *b, const uint32_t *queues, size_t n)
{
	if (n > QUEUES_NAMED) {
		put_count(b, n, "queue", "queues");
		return;
	}
	out_str(&b->text, word(b, n == 1 ? "queue" : "queues"));
	for (size_t i = 0; i < n; i++)
		out_fmt(&b->text, "%s%u", i ? ", " : " ", queues[i]);
}

/* @param arguments  Those of the kernel, too, where something is wrong with it. */
static void put_group_place(struct builder *b, const struct rpc_group *g, bool arguments)
{
	const char *place = arguments ? place_of_group(b->arena, g) :
					place_of_kernel(b->arena, g->has_kernel ? &g->kernel : NULL,
							g->frames, g->n_frames, g->pc);

	out_str(&b->text, place ? place : "?");
}

/* Append a sentence of a comparison, which has the protocol's words and ids, with the reader's. */
static void put_evidence(struct builder *b, const char *evidence)
{
	auto_out struct out o = { 0 };

	for (const char *s = evidence; *s;) {
		size_t n = s == evidence || s[-1] == ' ' ? gpu_names_put(b->gpus, &o, s) : 0;

		if (!n)
			out_char(&o, *s);
		s += n ? n : 1;
	}
	vendor_sentence(&b->text, b->s->process.vendor, out_error(&o) || !o.size ? evidence : o.data);
}

static void count_more(struct headline *h, enum headline_kind kind)
{
	if (kind == HEADLINE_CAUSE || kind == HEADLINE_ALSO)
		h->more_causes++;
	else
		h->more++;
}

/* Make a line of what was written.  What has no room is counted. */
static void end_line(struct builder *b, enum headline_kind kind)
{
	struct headline *h = b->ret;
	const char *text = rpc_arena_strndup(b->arena, b->text.data ? b->text.data : "", b->text.size);

	out_reset(&b->text);
	/* What keeps the verdict on one queue from being known often does so for all. */
	if (text && h->n && h->lines[h->n - 1].kind == kind && !strcmp(h->lines[h->n - 1].text, text))
		return;
	if (h->n == HEADLINE_MAX || b->of_kind[kind]++ >= KIND_MAX)
		count_more(h, kind);
	else
		h->lines[h->n++] = (struct headline_line){ kind, text ? text : "" };
}

/* Whether the text of another line of this kind would be thrown away. */
static bool is_full(struct builder *b, enum headline_kind kind)
{
	if (b->ret->n < HEADLINE_MAX && b->of_kind[kind] < KIND_MAX)
		return false;
	count_more(b->ret, kind);
	return true;
}

/* ------------------------------------------------------------------ queues ------------------- */

static bool is_of_queue(const struct rpc_group *g, uint32_t gpu_id, uint32_t queue_id)
{
	if (g->gpu_id != gpu_id)
		return false;
	for (size_t i = 0; i < g->n_queues; i++)
		if (g->queues[i] == queue_id)
			return true;
	return false;
}

/* Packets that wait: the device has taken those in front of them. */
static uint64_t waiting(const struct rpc_queue *q)
{
	bool aql = q->type == RPC_QUEUE_TYPE_COMPUTE_AQL;

	if (!aql || !q->has_read_index || !q->has_write_index || q->write_index < q->read_index)
		return 0;
	return q->write_index - q->read_index;
}

/* Append where the waves of a queue are, if that is known: `BEFORE spin, spin.cl:33 and 3 more places`. */
static void put_queue_place(struct builder *b, const char *before, const struct rpc_queue *q, bool arguments)
{
	const struct rpc_group *largest = NULL;
	size_t n = 0;

	for (size_t i = 0; i < b->s->n_groups; i++) {
		const struct rpc_group *g = &b->s->groups[i];

		if (!is_of_queue(g, q->gpu_id, q->queue_id))
			continue;
		n++;
		if (!largest || g->waves > largest->waves)
			largest = g;
	}
	if (!largest)
		return;
	out_str(&b->text, before);
	put_group_place(b, largest, arguments);
	if (n > 1)
		out_fmt(&b->text, " and %zu more place%s", n - 1, n == 2 ? "" : "s");
}

/*
 * Append `504 packets wait behind spin, spin.cl:33 (384 waves)` of a queue that may be well, or
 * `504 wait behind spin(n=160), ...` of one that hangs.
 */
static void put_waiting(struct builder *b, const struct rpc_queue *q, bool packets)
{
	uint64_t n = waiting(q);

	out_fmt(&b->text, "%" PRIu64 "%s%s wait%s", n, packets ? " packet" : "",
		packets && n != 1 ? "s" : "", n == 1 ? "s" : "");
	if (q->has_waves && q->waves) {
		put_queue_place(b, " behind ", q, !packets);
		out_str(&b->text, " (");
		put_waves(b, q->waves);
		out_char(&b->text, ')');
	} else if (q->has_waves) {
		out_fmt(&b->text, " and no %s runs", word(b, "wave"));
	}
}

/* ------------------------------------------------------------------ faults ------------------- */

/* Append the name of an exception, with the vendor's number of it. */
static void put_exception(struct builder *b, const char *name)
{
	const char *words = place_words(b->arena, name);
	const char *colon = strstr(name, ": ");

	out_str(&b->text, words ? words : name);
	if (str_starts_with(name, "CUDA_EXCEPTION_") && colon)
		out_fmt(&b->text, " (%.*s)", (int)(colon - name), name);
}

static bool is_example(const struct rpc_wave *w, const struct rpc_group *g)
{
	const struct rpc_wave_ref *r = &g->representative, *q = &w->ref;

	return w->gpu_id == g->gpu_id && q->queue_id == r->queue_id && q->unit == r->unit &&
	       q->index == r->index;
}

/* Append the lane of the group's example that raised the exception, where that is known. */
static void put_lane(struct builder *b, const struct rpc_group *g)
{
	const struct rpc_wave_registers *w = b->in->faulted;

	if (!w || !is_example(&w->wave, g))
		return;
	for (size_t i = 0; i < w->n_work_items; i++) {
		const struct rpc_work_item *item = &w->work_items[i];

		/* Another part of the warp may have one of its own. */
		if (!item->exception || (g->has_lane && item->lane != g->lane))
			continue;
		out_fmt(&b->text, ", lane %u", item->lane);
		if (item->n_in_group == 3)
			out_fmt(&b->text, ", thread (%u,%u,%u)", item->in_group[0],
				item->in_group[1], item->in_group[2]);
		return;
	}
}

static void add_faulting_group(struct builder *b, const struct rpc_group *g)
{
	const char *reasons = place_reasons(b->arena, g);

	if (is_full(b, HEADLINE_FAULT))
		return;
	put_exception(b, g->exception ? g->exception : reasons ? reasons : "?");
	out_str(&b->text, ": ");
	put_waves(b, g->waves);
	out_fmt(&b->text, " %s ", g->has_kernel ? "of" : "at");
	put_group_place(b, g, true);
	put_lane(b, g);
	out_str(&b->text, ", ");
	put_gpu(b, g->gpu_id);
	if (g->n_queues) {
		out_str(&b->text, ", ");
		put_queues(b, g->queues, g->n_queues);
	}
	end_line(b, HEADLINE_FAULT);
}

/* What multiprocessors recorded of waves that have exited. */
static void add_exited(struct builder *b, const struct rpc_exited_exception *e)
{
	if (is_full(b, HEADLINE_FAULT))
		return;
	put_exception(b, e->exception);
	out_fmt(&b->text, ": %s that have exited", word(b, "waves"));
	if (e->has_pc) {
		const char *place = place_of_kernel(b->arena, e->has_kernel ? &e->kernel : NULL,
						    e->frames, e->n_frames, e->pc);

		out_fmt(&b->text, " %s %s", e->has_kernel ? "of" : "at", place ? place : "?");
	}
	out_fmt(&b->text, ", %s %u", word(b, "unit"), e->unit);
	if (e->units > 1)
		out_fmt(&b->text, " and %u more", e->units - 1);
	out_str(&b->text, " of ");
	put_gpu(b, e->gpu_id);
	end_line(b, HEADLINE_FAULT);
}

/* Whether an exception is no fault: these tell that something has begun or changed. */
static bool is_news(enum rpc_exception e)
{
	return e == RPC_EXCEPTION_QUEUE_NEW || e == RPC_EXCEPTION_DEVICE_NEW ||
	       e == RPC_EXCEPTION_PROCESS_RUNTIME || e == RPC_EXCEPTION_WAVE_TRAP;
}

/* Whether it was raised by waves. */
static bool is_of_waves(enum rpc_exception e)
{
	const char *name = rpc_enum_name(&rpc_exception_enum, e);

	return name && str_starts_with(name, "wave_");
}

/*
 * Exceptions that are latched on a queue or a device.  Those that waves have raised are not told
 * again where the waves themselves were.
 */
static void add_latched(struct builder *b, const enum rpc_exception *list, size_t n, bool faulting,
			uint32_t gpu_id, const uint32_t *queue)
{
	size_t told = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = rpc_enum_name(&rpc_exception_enum, list[i]);
		const char *words = place_words(b->arena, name ? name : "unknown");

		if (is_news(list[i]) || (faulting && is_of_waves(list[i])))
			continue;
		out_fmt(&b->text, "%s%s", told++ ? ", " : "", words ? words : "?");
	}
	if (!told)
		return;
	out_str(&b->text, ": latched on ");
	if (queue) {
		put_queues(b, queue, 1);
		out_str(&b->text, " of ");
	}
	put_gpu(b, gpu_id);
	end_line(b, HEADLINE_FAULT);
}

/* Add what a watch rule kept the record for. */
static void add_record(struct builder *b, const struct rpc_fault *f)
{
	for (size_t i = 0; i < f->n_exceptions; i++) {
		const char *name = rpc_enum_name(&rpc_exception_enum, f->exceptions[i]);
		const char *words = place_words(b->arena, name ? name : "unknown");

		out_fmt(&b->text, "%s%s", i ? ", " : "", words ? words : "?");
	}
	if (f->has_address)
		out_fmt(&b->text, " at 0x%" PRIx64, f->address);
	if (f->has_gpu_id) {
		out_str(&b->text, ", ");
		put_gpu(b, f->gpu_id);
	}
	if (f->has_queue_id) {
		out_str(&b->text, ", ");
		put_queues(b, &f->queue_id, 1);
	}
	if (f->count > 1)
		out_fmt(&b->text, ", one of %" PRIu64, f->count);
	out_fmt(&b->text, " (rule %s)", f->rule);
	end_line(b, HEADLINE_FAULT);
}

static void add_faults(struct builder *b)
{
	const struct rpc_gpu_snapshot_result *s = b->s;
	bool faulting = false;

	if (s->has_fault)
		add_record(b, &s->fault);
	for (size_t i = 0; i < s->n_groups; i++)
		if (stop_reason_is_faulting(&s->groups[i])) {
			add_faulting_group(b, &s->groups[i]);
			faulting = true;
		}
	for (size_t i = 0; i < s->n_exited; i++)
		add_exited(b, &s->exited[i]);
	for (size_t i = 0; i < s->n_queues; i++)
		add_latched(b, s->queues[i].exceptions, s->queues[i].n_exceptions, faulting,
			    s->queues[i].gpu_id, &s->queues[i].queue_id);
	for (size_t i = 0; i < s->n_devices; i++)
		add_latched(b, s->devices[i].exceptions, s->devices[i].n_exceptions, faulting,
			    s->devices[i].gpu_id, NULL);
}

/* Who keeps others from going on, where it was asked what they wait for: culprits come first. */
static void add_causes(struct builder *b)
{
	const struct rpc_why_get_result *y = &b->s->why;
	const size_t n = b->s->has_why ? y->n_causes : 0;

	for (size_t i = 0; i < n && y->causes[i].culprit; i++) {
		const enum headline_kind kind = i ? HEADLINE_ALSO : HEADLINE_CAUSE;
		const char *confidence = rpc_enum_name(&rpc_confidence_enum, y->causes[i].confidence);

		if (is_full(b, kind))
			continue;
		out_fmt(&b->text, "%s  [%s]", y->causes[i].text, confidence ? confidence : "?");
		end_line(b, kind);
	}
}

/* ------------------------------------------------------------------ one snapshot ------------- */

static void add_held(struct builder *b)
{
	uint32_t *held = rpc_arena_array(b->arena, b->s->n_queues, sizeof(*held));
	size_t n = 0;

	for (size_t i = 0; held && i < b->s->n_queues; i++)
		if (b->s->queues[i].suspended)
			held[n++] = b->s->queues[i].queue_id;
	if (!n)
		return;
	put_queues(b, held, n);
	out_str(&b->text, ": suspended under a lease, and cannot move");
	end_line(b, HEADLINE_HELD);
}

static void add_waiting(struct builder *b)
{
	for (size_t i = 0; i < b->s->n_queues; i++) {
		const struct rpc_queue *q = &b->s->queues[i];

		/* Why nothing moves behind a fault is clear. */
		if (q->suspended || q->faulting_waves || !waiting(q) || is_full(b, HEADLINE_WAITS))
			continue;
		put_queues(b, &q->queue_id, 1);
		out_str(&b->text, ": ");
		put_waiting(b, q, true);
		end_line(b, HEADLINE_WAITS);
	}
}

/* What limits a statement that nothing is wrong. */
static const char *unseen(bool complete)
{
	return complete ? "" : ", as far as could be seen";
}

/* Whether waves of any queue were looked at: a saved document does not say that nobody wanted to. */
static bool any_counted(const struct rpc_gpu_snapshot_result *s)
{
	bool any = !s->n_queues;

	for (size_t i = 0; i < s->n_queues; i++)
		any = any || s->queues[i].has_waves;
	return any;
}

/* Append how much there is. */
static void put_extent(struct builder *b)
{
	const struct rpc_gpu_snapshot_result *s = b->s;

	if (b->in->queues_only) {
		out_fmt(&b->text, "No look at the %s, as asked: ", word(b, "waves"));
		put_count(b, s->n_queues, "queue", "queues");
	} else if (s->no_stop) {
		out_fmt(&b->text, "Nothing was stopped for you, so what the %s do is not known: ", word(b, "waves"));
		put_count(b, s->n_queues, "queue", "queues");
	} else if (!s->wave_count && !any_counted(s)) {
		out_fmt(&b->text, "No %s were read: ", word(b, "waves"));
		put_count(b, s->n_queues, "queue", "queues");
	} else if (!s->wave_count) {
		out_fmt(&b->text, "No %s on any GPU%s: ", word(b, "waves"), unseen(s->complete));
		put_count(b, s->n_queues, "queue", "queues");
	} else {
		out_fmt(&b->text, "No fault%s: ", unseen(s->complete));
		put_waves(b, s->wave_count);
		out_str(&b->text, " of ");
		put_count(b, s->n_queues, "queue", "queues");
		put_diverged(b);
	}
}

static bool any_waiting(const struct rpc_gpu_snapshot_result *s)
{
	for (size_t i = 0; i < s->n_queues; i++)
		if (waiting(&s->queues[i]))
			return true;
	return false;
}

/* Whether there are queues of packets, and all of them tell how many wait. */
static bool has_packets(const struct rpc_gpu_snapshot_result *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_queues; i++) {
		const struct rpc_queue *q = &s->queues[i];

		if (q->type != RPC_QUEUE_TYPE_COMPUTE_AQL)
			continue;
		if (!q->has_read_index || !q->has_write_index)
			return false;
		n++;
	}
	return n > 0;
}

/* One snapshot cannot tell that all is well: that needs a second one. */
static void add_fine(struct builder *b)
{
	put_extent(b);
	if (!any_waiting(b->s) && has_packets(b->s))
		out_str(&b->text, ", no packet waits");
	end_line(b, HEADLINE_FINE);
}

static void make_single(struct builder *b)
{
	add_faults(b);
	add_causes(b);
	if (!b->ret->n)
		add_fine(b);
	add_held(b);
	add_waiting(b);
}

/* ------------------------------------------------------------------ two snapshots ------------ */

/* The queue of the later snapshot; queues of a comparison are in its order, then those that are gone. */
static const struct rpc_queue *later_queue(const struct builder *b, size_t i)
{
	return i < b->s->n_queues ? &b->s->queues[i] : NULL;
}

/* Append `for 2.0 s`. */
static void put_time(struct builder *b, size_t i, const char *before)
{
	uint64_t us = b->in->still_us ? b->in->still_us[i] : b->in->comparison->interval_us;

	out_str(&b->text, before);
	text_duration(&b->text, us / 1000);
}

static void add_hung_queue(struct builder *b, size_t i, const struct rpc_queue *q)
{
	if (is_full(b, HEADLINE_HUNG))
		return;
	put_queues(b, &q->queue_id, 1);
	out_str(&b->text, ": ");
	if (waiting(q)) {
		put_time(b, i, "no packet for ");
		out_str(&b->text, "; ");
		put_waiting(b, q, false);
	} else {
		put_waves(b, q->waves);
		put_time(b, i, " at the same place for ");
		put_queue_place(b, ": ", q, true);
	}
	put_diverged(b);
	end_line(b, HEADLINE_HUNG);
}

/* Add the queues of one verdict. */
static void add_queues(struct builder *b, enum rpc_progress verdict, enum headline_kind kind)
{
	const struct rpc_comparison *c = b->in->comparison;

	for (size_t i = 0; i < c->n_queues; i++) {
		const struct rpc_queue_change *change = &c->queues[i];
		const struct rpc_queue *q = later_queue(b, i);

		if (!q || !change->has_verdict || change->verdict != verdict)
			continue;
		/* The line of those that are held says why nothing is known of it. */
		if (verdict == RPC_PROGRESS_UNKNOWN && q->suspended)
			continue;
		/* Where a fault was told, it is clear why its queue stands still. */
		if (verdict == RPC_PROGRESS_HUNG && change->faulting_waves && b->of_kind[HEADLINE_FAULT])
			continue;
		if (verdict == RPC_PROGRESS_HUNG) {
			add_hung_queue(b, i, q);
		} else if (!is_full(b, kind)) {
			put_evidence(b, change->evidence);
			end_line(b, kind);
		}
	}
}

static size_t count_verdict(const struct rpc_comparison *c, enum rpc_progress verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_queues; i++)
		n += c->queues[i].has_verdict && c->queues[i].verdict == verdict;
	return n;
}

static void add_all_is_well(struct builder *b)
{
	const struct rpc_comparison *c = b->in->comparison;
	size_t idle = count_verdict(c, RPC_PROGRESS_IDLE), moving = count_verdict(c, RPC_PROGRESS_PROGRESSING);

	out_fmt(&b->text, "Nothing is wrong%s: ", unseen(c->complete));
	if (!moving) {
		out_fmt(&b->text, "no %s on any GPU%s", word(b, "waves"),
			has_packets(b->s) ? ", and no packet waits" : "");
	} else {
		put_waves(b, b->s->wave_count);
		if (!idle)
			out_fmt(&b->text, ", all %s moving", word(b, "queues"));
		else
			out_fmt(&b->text, ", %zu %s moving, %zu idle", moving,
				word(b, moving == 1 ? "queue" : "queues"), idle);
	}
	end_line(b, HEADLINE_FINE);
}

static void make_compared(struct builder *b)
{
	const struct rpc_comparison *c = b->in->comparison;
	size_t causes;

	add_faults(b);
	causes = b->ret->n;
	add_causes(b);
	causes = b->ret->n - causes;
	add_queues(b, RPC_PROGRESS_HUNG, HEADLINE_HUNG);
	add_held(b);
	/* A reason that holds for all queues is told once; a cause says nothing of it. */
	if (c->interval_us < COMPARE_INTERVAL_MIN_US || (c->verdict == RPC_PROGRESS_UNKNOWN && b->ret->n == causes)) {
		put_evidence(b, c->evidence);
		end_line(b, HEADLINE_UNSURE);
	} else {
		add_queues(b, RPC_PROGRESS_UNKNOWN, HEADLINE_UNSURE);
	}
	add_queues(b, RPC_PROGRESS_SLOW, HEADLINE_SLOW);
	if (!b->ret->n)
		add_all_is_well(b);
}

int headline_make(struct rpc_arena *a, const struct headline_input *in, const struct gpu_names *gpus,
		  struct headline *ret)
{
	struct builder b = { .arena = a, .in = in, .s = in->snapshot, .gpus = gpus, .ret = ret };
	int r;

	*ret = (struct headline){ 0 };
	out_init(&b.text, 0);
	if (in->comparison)
		make_compared(&b);
	else
		make_single(&b);
	r = out_error(&b.text) ? out_error(&b.text) : rpc_arena_error(a);
	out_deinit(&b.text);
	return r;
}
