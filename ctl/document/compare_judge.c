/* SPDX-License-Identifier: MIT */
/*
 * From what changed to a verdict on each queue, and from those to one on the process.  Evidence is
 * a sentence for people; every function named find_... or describe_... appends to it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/document/compare.h"
#include "ctl/document/place.h"
#include "ctl/terminal/text.h"
#include "protocol/stop_reason.h"

/* Most lines, or bytes of code, of a loop that waits for something; the numbers are experience. */
#define LOOP_LINES 8
#define LOOP_BYTES 256
/*
 * Beyond so many names, which are more than a person would read, locations are no longer compared.
 */
#define PLACES_MAX 64
/* How many queues the process's evidence quotes, and how many it names. */
#define TOLD_MAX  3
#define NAMED_MAX 8

/* What is said of queues without work; packets of CUDA contexts are not known to anybody. */
static const char *nothing_to_do(enum rpc_vendor vendor)
{
	return vendor == RPC_VENDOR_NVIDIA ? "no waves" : "no waves, and no packets waiting";
}

/* What the judgement of one comparison works on. */
struct judge {
	struct rpc_arena *arena;
	const struct rpc_gpu_snapshot_result *before, *after;
	struct rpc_comparison *c;
	struct out evidence;
	/*
	 * The queue that is judged: as it was, NULL if it was not there, as it is, and what
	 * changed.
	 */
	const struct rpc_queue *was, *is;
	const struct rpc_queue_change *q;
};

static void evidence_waves(struct judge *j, uint64_t n)
{
	out_fmt(&j->evidence, "%" PRIu64 " wave%s", n, n == 1 ? "" : "s");
}

static void evidence_interval(struct judge *j)
{
	text_duration(&j->evidence, j->c->interval_us / 1000);
}

static bool is_too_short(const struct judge *j)
{
	return j->c->interval_us < COMPARE_INTERVAL_MIN_US;
}

/* Copy engines have no waves. */
static bool can_have_waves(const struct rpc_queue *q)
{
	return q->type == RPC_QUEUE_TYPE_COMPUTE || q->type == RPC_QUEUE_TYPE_COMPUTE_AQL ||
	       q->type == RPC_QUEUE_TYPE_CONTEXT;
}

/* Whether a group has waves of the queue. */
static bool is_of_queue(const struct rpc_group *g, const struct rpc_queue *q)
{
	if (g->gpu_id != q->gpu_id)
		return false;
	for (size_t i = 0; i < g->n_queues; i++)
		if (g->queues[i] == q->queue_id)
			return true;
	return false;
}

/* Whether the representative of a group is a wave of the queue, and its dispatch is known. */
static bool tells_dispatch(const struct rpc_group *g, const struct rpc_queue *q)
{
	return g->gpu_id == q->gpu_id && g->representative.queue_id == q->queue_id &&
	       g->representative.has_dispatch;
}

/* ------------------------------------------------------------------ packets ------------------ */

/* Whether the device took packets of the queue. */
static bool find_packets(struct judge *j)
{
	const struct rpc_queue_change *q = j->q;
	uint64_t taken = q->read_after - q->read_before;

	if (!q->has_read_before || !q->has_read_after || !taken)
		return false;
	/*
	 * An AQL index only rises.  Other queues count words or bytes from the beginning of their
	 * ring, and start again there.
	 */
	if (j->is->type == RPC_QUEUE_TYPE_COMPUTE_AQL && q->read_after < q->read_before)
		return false;
	if (j->is->type == RPC_QUEUE_TYPE_COMPUTE_AQL)
		out_fmt(&j->evidence, "queue %u took %" PRIu64 " packet%s in ", j->is->queue_id, taken,
			taken == 1 ? "" : "s");
	else
		out_fmt(&j->evidence, "queue %u moved on in ", j->is->queue_id);
	evidence_interval(j);
	return true;
}

/* ------------------------------------------------------------------ what is not known -------- */

/* Whether an entry of `missing` leaves waves and packets known all the same. */
static bool is_harmless(const char *missing)
{
	static const char *const harmless[] = { "runtime", "code object", "call stacks", "registers" };

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (str_starts_with(missing, harmless[i]))
			return true;
	return str_starts_with(missing, "device ") && strstr(missing, ": not in the topology");
}

/*
 * Whether an entry of `missing` concerns the queue.  Entries start with what they are about; those
 * of another queue or device do not count.
 */
static bool concerns(const char *missing, const struct rpc_queue *q)
{
	if (is_harmless(missing))
		return false;
	if (str_starts_with(missing, "queue ") && strstr(missing, ": the dispatch of "))
		return false;
	if (str_starts_with(missing, "queue "))
		return strtoul(missing + strlen("queue "), NULL, 10) == q->queue_id;
	if (str_starts_with(missing, "device "))
		return strtoul(missing + strlen("device "), NULL, 10) == q->gpu_id;
	return true;
}

/*
 * The first entry of `missing` that makes a verdict impossible, or NULL.
 * @param q  The queue; NULL for a process without queues.
 */
static const char *decisive_missing(const struct rpc_gpu_snapshot_result *s, const struct rpc_queue *q)
{
	for (size_t i = 0; i < s->n_missing; i++)
		if (q ? concerns(s->missing[i], q) : !is_harmless(s->missing[i]))
			return s->missing[i];
	/*
	 * What the budget did not suffice for has an entry of its own, which the loop has judged.
	 */
	return s->budget_exceeded && !s->n_missing ? "the stop budget was used up" : NULL;
}

static void tell_incomplete(struct judge *j, const char *first, const char *second)
{
	out_fmt(&j->evidence, "the %s snapshot is not complete: %s", first ? "earlier" : "later",
		first ? first : second);
}

static bool find_incomplete(struct judge *j)
{
	const char *first = decisive_missing(j->before, j->is);
	const char *second = decisive_missing(j->after, j->is);

	if (first || second)
		tell_incomplete(j, first, second);
	return first || second;
}

/* Whether a snapshot did not look at the queue's waves, which only matters if it can have any. */
static bool is_unseen(const struct rpc_queue *q)
{
	return q && can_have_waves(q) && !q->has_waves_digest;
}

static bool find_unknown(struct judge *j)
{
	if (find_incomplete(j))
		return true;
	if (!is_unseen(j->was) && !is_unseen(j->is))
		return false;
	out_fmt(&j->evidence, "the %s snapshot did not look at the waves of queue %u%s",
		is_unseen(j->was) ? "earlier" : "later", j->is->queue_id,
		j->is->type == RPC_QUEUE_TYPE_CONTEXT ? "" : ", and it took no packet");
	return true;
}

/*
 * Whether a debugger explains that the queue stands still.  A queue that is held is not hung; nor
 * is one that was let go only just now.
 */
static bool find_suspended(struct judge *j)
{
	bool was = j->was && j->was->suspended;

	if (!can_have_waves(j->is) || (!was && !j->is->suspended))
		return false;
	out_fmt(&j->evidence, "queue %u %s suspended under a lease and %s move", j->is->queue_id,
		j->is->suspended ? "is" : "was", j->is->suspended ? "cannot" : "could not");
	return true;
}

/* Whether the queue surely had no waves in the earlier snapshot. */
static bool had_no_waves(const struct judge *j)
{
	if (!j->was)
		return true;
	return j->was->has_waves_digest && !j->was->waves && !decisive_missing(j->before, j->was);
}

/*
 * Whether a dispatch is new.  Only the representative of each group tells its dispatch, so a number
 * that was not seen before may have run all the time.  One whose packet was not written then cannot
 * have run.
 */
static bool find_dispatch(struct judge *j)
{
	bool had_none = had_no_waves(j);

	for (size_t i = 0; i < j->after->n_groups; i++) {
		const struct rpc_group *g = &j->after->groups[i];

		if (!tells_dispatch(g, j->is))
			continue;
		if (!had_none && !(j->q->has_write_before &&
				   g->representative.dispatch >= j->q->write_before))
			continue;
		out_fmt(&j->evidence, "dispatch %" PRIu64 " of queue %u is new",
			g->representative.dispatch, j->is->queue_id);
		return true;
	}
	return false;
}

/* Devices that launch grids themselves may give them negative numbers, which tell nothing. */
static bool has_dispatches(const struct rpc_queue *q)
{
	return q && q->has_first_dispatch && q->has_last_dispatch && q->first_dispatch <= INT64_MAX &&
	       q->last_dispatch <= INT64_MAX;
}

static void evidence_dispatches(struct judge *j, const struct rpc_queue *q)
{
	if (q->first_dispatch == q->last_dispatch)
		out_fmt(&j->evidence, "dispatch %" PRIu64, q->last_dispatch);
	else
		out_fmt(&j->evidence, "dispatches %" PRIu64 " to %" PRIu64, q->first_dispatch, q->last_dispatch);
}

/* Whether none of the dispatches that the earlier snapshot saw is in the later one: those there are newer. */
static bool find_ended(struct judge *j)
{
	const struct rpc_queue *was = j->was, *is = j->is;

	if (!has_dispatches(was) || !has_dispatches(is) || is->first_dispatch <= was->last_dispatch)
		return false;
	/* Waves that were not seen may be of a dispatch that runs all the time. */
	if (decisive_missing(j->before, was) || decisive_missing(j->after, is))
		return false;
	out_fmt(&j->evidence, "queue %u: ", is->queue_id);
	evidence_dispatches(j, is);
	out_str(&j->evidence, is->first_dispatch == is->last_dispatch ? " runs in place of " : " run in place of ");
	evidence_dispatches(j, was);
	out_str(&j->evidence, " after ");
	evidence_interval(j);
	return true;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* The locations where waves of the queue are, in one snapshot or both. */
struct extent {
	size_t places;
	uint64_t low, high; /* Lowest and highest pc. */
	bool lines;	    /* Each of them is a source line. */
	const char *names[PLACES_MAX];
	size_t n_names;
};

static bool is_new_place(struct extent *e, const char *name)
{
	if (!name || e->n_names == PLACES_MAX)
		return true;
	for (size_t i = 0; i < e->n_names; i++)
		if (!strcmp(e->names[i], name))
			return false;
	e->names[e->n_names++] = name;
	return true;
}

static void extend(struct judge *j, struct extent *e, const struct rpc_gpu_snapshot_result *s)
{
	for (size_t i = 0; i < s->n_groups; i++) {
		const struct rpc_group *g = &s->groups[i];

		if (!is_of_queue(g, j->is))
			continue;
		e->places += is_new_place(e, place_name(j->arena, g));
		e->low = g->pc < e->low ? g->pc : e->low;
		e->high = g->pc > e->high ? g->pc : e->high;
		e->lines = e->lines && place_is_line(g);
	}
}

/* The extent of the later snapshot, or of both. */
static struct extent extent_of(struct judge *j, bool only_later)
{
	struct extent e = { .low = UINT64_MAX, .lines = true };

	extend(j, &e, j->after);
	if (!only_later)
		extend(j, &e, j->before);
	return e;
}

static const char *place_word(const struct extent *e)
{
	if (e->lines)
		return e->places == 1 ? "line" : "lines";
	return e->places == 1 ? "place" : "places";
}

/*
 * Find the last workgroup of the queue in the order in which workgroups start.
 * @return false when a group does not tell.
 */
static bool last_workgroup(const struct judge *j, const struct rpc_gpu_snapshot_result *s, uint32_t ret[3])
{
	memset(ret, 0, 3 * sizeof(*ret));
	for (size_t i = 0; i < s->n_groups; i++) {
		const uint32_t *g = s->groups[i].last_workgroup;
		size_t axis = 3;

		if (!is_of_queue(&s->groups[i], j->is))
			continue;
		/*
		 * The last workgroup of a group that has other queues as well may be one of theirs.
		 */
		if (s->groups[i].n_last_workgroup != 3 || s->groups[i].n_queues != 1)
			return false;
		while (axis > 1 && g[axis - 1] == ret[axis - 1])
			axis--;
		if (g[axis - 1] > ret[axis - 1])
			memcpy(ret, g, 3 * sizeof(*ret));
	}
	return true;
}

/* Say whether new workgroups started, where that is known. */
static void describe_workgroups(struct judge *j)
{
	uint32_t b[3], a[3];
	bool more;

	if (!last_workgroup(j, j->before, b) || !last_workgroup(j, j->after, a))
		return;
	more = a[2] != b[2] ? a[2] > b[2] : a[1] != b[1] ? a[1] > b[1] : a[0] > b[0];
	out_str(&j->evidence, more ? ", new workgroups started" : ", no new workgroup");
}

/* Say how far the waves moved: a small loop looks like waiting. */
static void describe_extent(struct judge *j)
{
	struct extent e = extent_of(j, false);

	if (e.lines && e.places <= LOOP_LINES)
		out_fmt(&j->evidence, ", but within %zu %s", e.places, place_word(&e));
	else if (e.high - e.low < LOOP_BYTES)
		out_fmt(&j->evidence, ", but within %" PRIu64 " bytes of code", e.high - e.low + 4);
	else
		out_fmt(&j->evidence, " over %zu %s", e.places, place_word(&e));
}

static uint32_t waves_before(const struct judge *j)
{
	return j->was ? j->was->waves : 0;
}

static void describe_movement(struct judge *j)
{
	uint32_t was = waves_before(j), is = j->is->waves;

	out_fmt(&j->evidence, "queue %u: ", j->is->queue_id);
	evidence_waves(j, was == is ? is : is < was ? was - is : is - was);
	if (was != is) {
		out_str(&j->evidence, is < was ? " ended" : " started");
	} else {
		out_str(&j->evidence, " moving");
		describe_extent(j);
		describe_workgroups(j);
	}
	/* Not every device tells of packets. */
	out_str(&j->evidence, j->q->has_read_after ? "; no packet was done in " : " in ");
	evidence_interval(j);
}

/*
 * Whether waves came, went, moved or changed their state; the digest tells what the number does
 * not.
 */
static bool waves_moved(const struct judge *j)
{
	if (waves_before(j) != j->is->waves)
		return true;
	return j->was && j->was->waves_digest != j->is->waves_digest;
}

/*
 * Find the largest group of the queue whose dispatch its representative tells.
 * @return whether all waves of the queue are of that dispatch, as far as representatives tell.
 */
static bool find_largest(const struct judge *j, const struct rpc_group **ret)
{
	bool all = true;

	*ret = NULL;
	for (size_t i = 0; i < j->after->n_groups; i++) {
		const struct rpc_group *g = &j->after->groups[i];

		if (!is_of_queue(g, j->is))
			continue;
		if (!tells_dispatch(g, j->is)) {
			all = false;
			continue;
		}
		all = all && (!*ret || (*ret)->representative.dispatch == g->representative.dispatch);
		if (!*ret || g->waves > (*ret)->waves)
			*ret = g;
	}
	return all && *ret;
}

static void describe_standstill(struct judge *j)
{
	struct extent e = extent_of(j, true);
	const struct rpc_group *largest;
	bool sure = find_largest(j, &largest);

	if (sure)
		out_fmt(&j->evidence, "dispatch %" PRIu64 " of queue %u: ",
			largest->representative.dispatch, j->is->queue_id);
	else
		out_fmt(&j->evidence, "queue %u: ", j->is->queue_id);
	evidence_waves(j, j->is->waves);
	if (largest && !sure)
		out_fmt(&j->evidence, ", some of dispatch %" PRIu64 ",",
			largest->representative.dispatch);
	out_str(&j->evidence, " at the same ");
	if (e.places > 1)
		out_fmt(&j->evidence, "%zu ", e.places);
	out_fmt(&j->evidence, "%s for ", place_word(&e));
	evidence_interval(j);
}

/* Describe the waves of the queue that a fault has stopped: they never move again by themselves. */
static void describe_faults(struct judge *j)
{
	const struct rpc_group *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < j->after->n_groups; i++) {
		const struct rpc_group *g = &j->after->groups[i];

		if (!stop_reason_is_faulting(g) || !is_of_queue(g, j->is))
			continue;
		n++;
		first = first ? first : g;
	}
	if (!first)
		return;
	evidence_waves(j, first->waves < j->is->faulting_waves ? first->waves : j->is->faulting_waves);
	out_fmt(&j->evidence, " stopped by %s at %s", place_reasons(j->arena, first),
		place_name(j->arena, first));
	if (n > 1)
		out_fmt(&j->evidence, ", faults at %zu more places", n - 1);
}

/* Append what devices recorded of waves that have exited. */
static void describe_exited(struct judge *j)
{
	size_t n = j->after->n_exited;
	const char *place = n ? place_exited(j->arena, &j->after->exited[0]) : NULL;

	if (!place)
		return;
	out_fmt(&j->evidence, "; %s %s", j->after->exited[0].exception, place);
	if (n > 1)
		out_fmt(&j->evidence, ", and %zu more", n - 1);
}

/* ------------------------------------------------------------------ one queue ---------------- */

/* How many packets wait; 0 where the indices are not known. */
static uint64_t waiting(bool has_read, uint64_t read, bool has_write, uint64_t write)
{
	return has_read && has_write && write > read ? write - read : 0;
}

/* Judge a queue that had no waves in either snapshot, and of which no packet was taken. */
static enum rpc_progress judge_quiet(struct judge *j)
{
	const struct rpc_queue_change *q = j->q;
	uint64_t old = waiting(q->has_read_before, q->read_before, q->has_write_before,
			       q->write_before);

	if (!waiting(q->has_read_after, q->read_after, q->has_write_after, q->write_after)) {
		out_str(&j->evidence, nothing_to_do(j->after->process.vendor));
		return RPC_PROGRESS_IDLE;
	}
	if (!old) {
		out_fmt(&j->evidence,
			"queue %u got packets between the snapshots and has taken none yet",
			q->queue_id);
		return RPC_PROGRESS_UNKNOWN;
	}
	out_fmt(&j->evidence, "%" PRIu64 " packet%s of queue %u waited for ", old, old == 1 ? "" : "s",
		q->queue_id);
	evidence_interval(j);
	out_str(&j->evidence, " and no wave ran");
	return RPC_PROGRESS_HUNG;
}

/* Judge by the strongest evidence first: packets, dispatches, what is unknown, waves. */
static enum rpc_progress judge_movement(struct judge *j)
{
	if (find_packets(j) || find_dispatch(j) || find_ended(j))
		return RPC_PROGRESS_PROGRESSING;
	if (find_unknown(j))
		return RPC_PROGRESS_UNKNOWN;
	if (waves_moved(j)) {
		describe_movement(j);
		return RPC_PROGRESS_SLOW;
	}
	if (find_suspended(j))
		return RPC_PROGRESS_UNKNOWN;
	if (!j->is->waves)
		return judge_quiet(j);
	describe_standstill(j);
	return RPC_PROGRESS_HUNG;
}

static enum rpc_progress judge_queue(struct judge *j)
{
	enum rpc_progress verdict = RPC_PROGRESS_UNKNOWN;

	if (is_too_short(j))
		out_fmt(&j->evidence, "queue %u: too short to tell", j->is->queue_id);
	else
		verdict = judge_movement(j);
	if (!j->is->faulting_waves)
		return verdict;
	out_str(&j->evidence, "; ");
	describe_faults(j);
	if (is_too_short(j) || (j->is->suspended && verdict == RPC_PROGRESS_UNKNOWN))
		return verdict;
	/* However well other waves do, the dispatch of the faulting ones does not end. */
	return RPC_PROGRESS_HUNG;
}

/* ------------------------------------------------------------------ the process -------------- */

/* Whether a queue is known to go on. */
static bool goes_on(const struct rpc_queue_change *q)
{
	return q->has_verdict && (q->verdict == RPC_PROGRESS_PROGRESSING || q->verdict == RPC_PROGRESS_SLOW);
}

/* Whether a queue may go on: its waves were not seen, or a debugger holds them. */
static bool may_go_on(const struct judge *j, size_t i)
{
	const struct rpc_queue_change *q = &j->c->queues[i];

	return i < j->after->n_queues && q->verdict == RPC_PROGRESS_UNKNOWN &&
	       (!q->has_waves_after || q->waves_after || j->after->queues[i].suspended);
}

/*
 * The queue that another one may wait for: one that goes on, or else one that may; NULL if there is
 * none.
 */
static const struct rpc_queue_change *find_other(const struct judge *j)
{
	const struct rpc_queue_change *other = NULL;

	for (size_t i = 0; i < j->c->n_queues; i++) {
		if (goes_on(&j->c->queues[i]))
			return &j->c->queues[i];
		if (!other && may_go_on(j, i))
			other = &j->c->queues[i];
	}
	return other;
}

/*
 * Take back the verdict `hung` where packets may wait for another queue, behind a barrier or for
 * room on the device: that is hung only when all others are known to stand still.
 */
static void pardon_waiting(struct judge *j)
{
	const struct rpc_queue_change *other = find_other(j);

	for (size_t i = 0; other && i < j->c->n_queues; i++) {
		struct rpc_queue_change *q = &j->c->queues[i];

		if (!q->has_verdict || q->verdict != RPC_PROGRESS_HUNG || q->waves_after)
			continue;
		q->verdict = RPC_PROGRESS_UNKNOWN;
		q->evidence = rpc_arena_printf(j->arena, "%s; they may wait for queue %u, which %s",
					       q->evidence, other->queue_id,
					       goes_on(other) ? "goes on" : "may go on");
	}
}

/* Verdicts from the best to the worst for a process. */
static const enum rpc_progress ranks[] = { RPC_PROGRESS_IDLE, RPC_PROGRESS_PROGRESSING, RPC_PROGRESS_SLOW,
					   RPC_PROGRESS_UNKNOWN, RPC_PROGRESS_HUNG };
/* The same where one queue that goes on is enough. */
static const enum rpc_progress any_ranks[] = { RPC_PROGRESS_IDLE, RPC_PROGRESS_HUNG, RPC_PROGRESS_SLOW,
					       RPC_PROGRESS_UNKNOWN, RPC_PROGRESS_PROGRESSING };

/* How many queues have a verdict. */
static size_t count(const struct rpc_comparison *c, enum rpc_progress verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_queues; i++)
		n += c->queues[i].has_verdict && c->queues[i].verdict == verdict;
	return n;
}

/* Append why the queues of a verdict have it. */
static void tell_queues(struct judge *j, enum rpc_progress verdict)
{
	size_t n = 0;

	for (size_t i = 0; i < j->c->n_queues && n < TOLD_MAX; i++)
		if (j->c->queues[i].has_verdict && j->c->queues[i].verdict == verdict)
			out_fmt(&j->evidence, "%s%s", n++ ? "; " : "", j->c->queues[i].evidence);
	if (count(j->c, verdict) > n)
		out_fmt(&j->evidence, "; %zu more queue%s %s", count(j->c, verdict) - n,
			count(j->c, verdict) == n + 1 ? "" : "s", rpc_enum_name(&rpc_progress_enum, verdict));
}

/* Append the queues of a verdict by number, as `; progressing: queue 2, 3`. */
static void name_queues(struct judge *j, enum rpc_progress verdict)
{
	size_t all = count(j->c, verdict), n = 0;

	if (!all)
		return;
	out_fmt(&j->evidence, "; %s: queue ", rpc_enum_name(&rpc_progress_enum, verdict));
	for (size_t i = 0; i < j->c->n_queues && n < NAMED_MAX; i++)
		if (j->c->queues[i].has_verdict && j->c->queues[i].verdict == verdict)
			out_fmt(&j->evidence, "%s%u", n++ ? ", " : "", j->c->queues[i].queue_id);
	if (all > n)
		out_fmt(&j->evidence, " and %zu more", all - n);
}

/* The verdict of the worst queue, with its evidence; the others are only named. */
static enum rpc_progress judge_process(struct judge *j, bool any_progress)
{
	const enum rpc_progress *rank = any_progress ? any_ranks : ranks;
	size_t worst = ARRAY_SIZE(ranks) - 1;

	while (worst > 0 && !count(j->c, rank[worst]))
		worst--;
	if (rank[worst] == RPC_PROGRESS_IDLE) {
		out_str(&j->evidence, nothing_to_do(j->after->process.vendor));
		return RPC_PROGRESS_IDLE;
	}
	tell_queues(j, rank[worst]);
	for (size_t i = ARRAY_SIZE(ranks) - 1; i > 0; i--)
		if (ranks[i] != rank[worst])
			name_queues(j, ranks[i]);
	return rank[worst];
}

/* Whether the snapshots are of no use at all, or the process has no queue to judge. */
static bool find_useless(struct judge *j)
{
	const char *first = decisive_missing(j->before, NULL), *second = decisive_missing(j->after, NULL);

	if (is_too_short(j)) {
		out_fmt(&j->evidence, "too short to tell: the snapshots are %" PRIu64
			" ms apart, and must be %u", j->c->interval_us / 1000,
			COMPARE_INTERVAL_MIN_US / 1000);
		return true;
	}
	if (j->after->n_queues || (!first && !second))
		return false;
	tell_incomplete(j, first, second);
	return true;
}

/* Hand over the sentence that was built, and begin the next one. */
static char *take_evidence(struct judge *j)
{
	char *text = rpc_arena_strndup(j->arena, j->evidence.data ? j->evidence.data : "", j->evidence.size);

	out_reset(&j->evidence);
	return text;
}

void compare_judge(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		   const struct rpc_gpu_snapshot_result *after, const struct rpc_queue *const *earlier,
		   bool any_progress, struct rpc_comparison *ret)
{
	struct judge j = { .arena = a, .before = before, .after = after, .c = ret };

	out_init(&j.evidence, 0);
	/* The queues of the later snapshot come first. */
	for (size_t i = 0; i < after->n_queues; i++) {
		j.was = earlier[i];
		j.is = &after->queues[i];
		j.q = &ret->queues[i];
		ret->queues[i].has_verdict = true;
		ret->queues[i].verdict = judge_queue(&j);
		ret->queues[i].evidence = take_evidence(&j);
	}
	pardon_waiting(&j);
	ret->verdict = find_useless(&j) ? RPC_PROGRESS_UNKNOWN : judge_process(&j, any_progress);
	describe_exited(&j);
	ret->evidence = take_evidence(&j);
	out_deinit(&j.evidence);
}
