/* SPDX-License-Identifier: MIT */
/* From what changed to a verdict with its evidence. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/compare.h"
#include "ctl/place.h"
#include "ctl/text.h"
#include "protocol/stop_reason.h"

/* A loop that waits for something has this size at most, by experience. */
#define LOOP_LINES 8
#define LOOP_BYTES 256
#define CODE_OBJECT "code object"

struct judge {
	struct rpc_arena *arena;
	const struct rpc_gpu_snapshot_result *before, *after;
	struct rpc_comparison *c;
	struct out evidence;
};

static void evidence_waves(struct judge *j, uint64_t n)
{
	out_fmt(&j->evidence, "%" PRIu64 " wave%s", n, n == 1 ? "" : "s");
}

static void evidence_interval(struct judge *j)
{
	text_duration(&j->evidence, j->c->interval_us / 1000);
}

/* ------------------------------------------------------------------ packets ------------------ */

static bool took_packets(const struct rpc_queue_change *q)
{
	return q->has_read_before && q->has_read_after && q->read_after > q->read_before;
}

/* Other queues count words or bytes. */
static bool counts_packets(const struct judge *j, const struct rpc_queue_change *c)
{
	for (size_t i = 0; i < j->after->n_queues; i++) {
		const struct rpc_queue *q = &j->after->queues[i];

		if (q->queue_id == c->queue_id && q->gpu_id == c->gpu_id)
			return q->type == RPC_QUEUE_TYPE_COMPUTE_AQL;
	}
	return false;
}

static bool took_more(const struct judge *j, const struct rpc_queue_change *q,
		      const struct rpc_queue_change *than)
{
	bool packets = counts_packets(j, q);

	if (packets != counts_packets(j, than))
		return packets;
	return q->read_after - q->read_before > than->read_after - than->read_before;
}

static bool find_packets(struct judge *j)
{
	const struct rpc_queue_change *most = NULL;
	uint64_t taken;
	size_t n = 0;

	for (size_t i = 0; i < j->c->n_queues; i++) {
		const struct rpc_queue_change *q = &j->c->queues[i];

		if (!took_packets(q))
			continue;
		n++;
		if (!most || took_more(j, q, most))
			most = q;
	}
	if (!most)
		return false;
	taken = most->read_after - most->read_before;
	if (counts_packets(j, most))
		out_fmt(&j->evidence, "queue %u took %" PRIu64 " packet%s in ", most->queue_id,
			taken, taken == 1 ? "" : "s");
	else
		out_fmt(&j->evidence, "queue %u moved on in ", most->queue_id);
	evidence_interval(j);
	if (n > 1)
		out_fmt(&j->evidence, ", %zu other queue%s as well", n - 1, n == 2 ? "" : "s");
	return true;
}

/* ------------------------------------------------------------------ what is not known -------- */

/* Entries start with what they are about; without these, waves and packets are known all the same. */
static bool is_harmless(const char *missing)
{
	static const char *const harmless[] = { "device ", "runtime", CODE_OBJECT };

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (str_starts_with(missing, harmless[i]))
			return true;
	return false;
}

static const char *decisive_missing(const struct rpc_gpu_snapshot_result *s)
{
	for (size_t i = 0; i < s->n_missing; i++)
		if (!is_harmless(s->missing[i]))
			return s->missing[i];
	return s->budget_exceeded ? "the stop budget was used up" : NULL;
}

static bool is_compute(const struct rpc_queue *q)
{
	return q->type == RPC_QUEUE_TYPE_COMPUTE || q->type == RPC_QUEUE_TYPE_COMPUTE_AQL;
}

/* Queues that could have waves were neither stopped for this snapshot nor before it. */
static bool left_waves_out(const struct rpc_gpu_snapshot_result *s)
{
	bool any = false;

	for (size_t i = 0; i < s->n_queues; i++)
		any = any || (is_compute(&s->queues[i]) && !s->queues[i].suspended);
	return any && !s->wave_count && !s->stopped_us;
}

static bool had_no_waves(const struct rpc_gpu_snapshot_result *s)
{
	return !s->wave_count && !left_waves_out(s) && !decisive_missing(s);
}

static bool is_of_queue(const struct rpc_group *g, const struct rpc_queue_change *q)
{
	return g->gpu_id == q->gpu_id && g->representative.queue_id == q->queue_id &&
	       g->representative.has_dispatch;
}

/*
 * Only one wave of each group tells its dispatch, so a number not seen before may have run all the
 * time; one whose packet was not written then cannot.
 */
static bool is_new_dispatch(const struct judge *j, const struct rpc_queue_change *q,
			    const struct rpc_group *g)
{
	return is_of_queue(g, q) &&
	       (had_no_waves(j->before) ||
		(q->has_write_before && g->representative.dispatch >= q->write_before));
}

static bool find_dispatch(struct judge *j)
{
	for (size_t i = 0; i < j->c->n_groups; i++) {
		const struct rpc_group_change *g = &j->c->groups[i];

		for (size_t k = 0; g->waves_after && k < j->c->n_queues; k++)
			if (is_new_dispatch(j, &j->c->queues[k], &g->group)) {
				out_fmt(&j->evidence, "dispatch %" PRIu64 " of queue %u is new",
					g->group.representative.dispatch,
					g->group.representative.queue_id);
				return true;
			}
	}
	return false;
}

static bool lists_waves(const struct judge *j)
{
	return j->before->has_waves && j->after->has_waves;
}

/* The next entry about code objects, from @i on. */
static const char *next_symbols(const struct rpc_gpu_snapshot_result *s, size_t *i)
{
	while (*i < s->n_missing)
		if (str_starts_with(s->missing[(*i)++], CODE_OBJECT))
			return s->missing[*i - 1];
	return NULL;
}

/* Then a group of one snapshot may be several groups of the other. */
static bool symbols_differ(const struct judge *j)
{
	size_t i = 0, k = 0;
	const char *b, *a;

	do {
		b = next_symbols(j->before, &i);
		a = next_symbols(j->after, &k);
	} while (b && a && !strcmp(b, a));
	return b || a;
}

static bool find_unknown(struct judge *j)
{
	const char *first = decisive_missing(j->before), *second = decisive_missing(j->after);

	if (!j->c->interval_us)
		out_str(&j->evidence, "both snapshots are of the same moment");
	else if (first || second)
		out_fmt(&j->evidence, "the %s snapshot is not complete: %s",
			first ? "earlier" : "later", first ? first : second);
	else if (left_waves_out(j->before) || left_waves_out(j->after))
		out_fmt(&j->evidence,
			"the %s snapshot did not look at waves, and no packet was taken",
			left_waves_out(j->before) ? "earlier" : "later");
	else if (!lists_waves(j) && symbols_differ(j))
		out_str(&j->evidence,
			"the source lines of some code are known in one snapshot only");
	else
		return false;
	return true;
}

/* What stands still because a debugger holds it is not hung. */
static bool find_suspended(struct judge *j)
{
	for (size_t i = 0; i < j->after->n_queues; i++)
		if (j->after->queues[i].suspended && is_compute(&j->after->queues[i])) {
			out_fmt(&j->evidence, "queue %u is suspended under a lease and cannot move",
				j->after->queues[i].queue_id);
			return true;
		}
	return false;
}

/* ------------------------------------------------------------------ waves -------------------- */

/* Places where waves are in either snapshot. */
struct extent {
	size_t places;
	uint64_t low, high; /* pc */
	bool lines;	    /* each place is a source line */
};

static bool is_first_of_place(struct judge *j, size_t i, const char *name)
{
	for (size_t k = 0; k < i; k++) {
		const char *other = place_name(j->arena, &j->c->groups[k].group);

		if (other && !strcmp(other, name))
			return false;
	}
	return true;
}

/* Beyond a number that anybody would list, places are counted as they come. */
static struct extent extent_of(struct judge *j, bool only_later)
{
	struct extent e = { .low = UINT64_MAX, .lines = true };

	for (size_t i = 0; i < j->c->n_groups; i++) {
		const struct rpc_group_change *g = &j->c->groups[i];
		const char *name = place_name(j->arena, &g->group);

		if (only_later && !g->waves_after)
			continue;
		if (i > 64 || !name || is_first_of_place(j, i, name))
			e.places++;
		e.low = g->group.pc < e.low ? g->group.pc : e.low;
		e.high = g->group.pc > e.high ? g->group.pc : e.high;
		e.lines = e.lines && place_is_line(&g->group);
	}
	return e;
}

static const char *place_word(const struct extent *e)
{
	if (e->lines)
		return e->places == 1 ? "line" : "lines";
	return e->places == 1 ? "place" : "places";
}

/* The last workgroup in the order in which they start; false when a group does not tell. */
static bool last_workgroup(const struct rpc_gpu_snapshot_result *s, uint32_t ret[3])
{
	memset(ret, 0, 3 * sizeof(*ret));
	for (size_t i = 0; i < s->n_groups; i++) {
		const uint32_t *g = s->groups[i].last_workgroup;
		size_t axis = 3;

		if (s->groups[i].n_last_workgroup != 3)
			return false;
		while (axis > 1 && g[axis - 1] == ret[axis - 1])
			axis--;
		if (g[axis - 1] > ret[axis - 1])
			memcpy(ret, g, 3 * sizeof(*ret));
	}
	return true;
}

static void describe_workgroups(struct judge *j)
{
	uint32_t b[3], a[3];
	bool more;

	if (!last_workgroup(j->before, b) || !last_workgroup(j->after, a))
		return;
	more = a[2] != b[2] ? a[2] > b[2] : a[1] != b[1] ? a[1] > b[1] : a[0] > b[0];
	out_str(&j->evidence, more ? ", new workgroups started" : ", no new workgroup");
}

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

static void describe_movement(struct judge *j)
{
	uint32_t was = j->before->wave_count, is = j->after->wave_count;

	evidence_waves(j, was == is ? is : is < was ? was - is : is - was);
	if (was != is) {
		out_str(&j->evidence, is < was ? " ended" : " started");
	} else {
		out_str(&j->evidence, " moving");
		describe_extent(j);
		describe_workgroups(j);
	}
	out_str(&j->evidence, "; no packet was done in ");
	evidence_interval(j);
}

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0xd6e8feb86659fd93);
	return h ^ h >> 32;
}

/*
 * What every wave works on and where it is, in any order: hardware does not save waves in the same
 * order each time.
 */
static uint64_t population(const struct rpc_gpu_snapshot_result *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->n_waves; i++) {
		const struct rpc_wave *w = &s->waves[i];
		uint64_t h = mix(mix(w->ref.queue_id, w->ref.unit), w->ref.dispatch);

		for (size_t k = 0; k < w->ref.n_workgroup; k++)
			h = mix(h, w->ref.workgroup[k]);
		h = mix(mix(mix(h, w->ref.wave_in_group), w->pc), w->exec);
		sum += mix(mix(h, w->state), w->trap_id);
	}
	return sum;
}

static bool waves_moved(const struct judge *j)
{
	if (lists_waves(j))
		return j->before->n_waves != j->after->n_waves ||
		       population(j->before) != population(j->after);
	for (size_t i = 0; i < j->c->n_groups; i++)
		if (j->c->groups[i].change != RPC_CHANGE_SAME)
			return true;
	return j->before->wave_count != j->after->wave_count;
}

/* Dispatches that examples of groups belong to: the one with most waves, and how many there are. */
static size_t count_dispatches(const struct judge *j, const struct rpc_wave_ref **ret_largest)
{
	uint32_t most = 0;
	size_t n = 0;

	*ret_largest = NULL;
	for (size_t i = 0; i < j->after->n_groups; i++) {
		const struct rpc_group *g = &j->after->groups[i];
		const struct rpc_wave_ref *r = &g->representative;
		size_t k = 0;

		if (!r->has_dispatch)
			continue;
		while (k < i && k < 64 &&
		       (j->after->groups[k].representative.queue_id != r->queue_id ||
			!j->after->groups[k].representative.has_dispatch ||
			j->after->groups[k].representative.dispatch != r->dispatch))
			k++;
		n += k == i;
		if (g->waves > most) {
			most = g->waves;
			*ret_largest = r;
		}
	}
	return n;
}

static size_t count_compute_queues(const struct rpc_gpu_snapshot_result *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_queues; i++)
		n += is_compute(&s->queues[i]);
	return n;
}

static void describe_standstill(struct judge *j)
{
	const struct rpc_wave_ref *largest;
	size_t n = count_dispatches(j, &largest);
	/* A group may have waves of several queues, and names a dispatch of one. */
	bool sure = largest && n == 1 && count_compute_queues(j->after) == 1;
	struct extent e = extent_of(j, true);

	if (sure)
		out_fmt(&j->evidence, "dispatch %" PRIu64 " of queue %u: ", largest->dispatch,
			largest->queue_id);
	evidence_waves(j, j->after->wave_count);
	if (largest && !sure)
		out_fmt(&j->evidence, ", some of dispatch %" PRIu64 " of queue %u,",
			largest->dispatch, largest->queue_id);
	out_str(&j->evidence, " at the same ");
	if (e.places > 1)
		out_fmt(&j->evidence, "%zu ", e.places);
	out_fmt(&j->evidence, "%s for ", place_word(&e));
	evidence_interval(j);
}

/* Waves that a fault has stopped never move again by themselves. */
static void describe_faults(struct judge *j)
{
	size_t n = 0;

	for (size_t i = 0; i < j->c->n_groups; i++) {
		const struct rpc_group_change *g = &j->c->groups[i];
		const char *reasons, *name;

		if (!g->waves_after || !stop_reason_is_faulting(&g->group))
			continue;
		if (n++)
			continue;
		reasons = place_reasons(j->arena, &g->group);
		name = place_name(j->arena, &g->group);
		out_str(&j->evidence, "; ");
		evidence_waves(j, g->waves_after);
		out_fmt(&j->evidence, " stopped by %s at %s", reasons ? reasons : "?",
			name ? name : "?");
	}
	if (n > 1)
		out_fmt(&j->evidence, ", faults at %zu more places", n - 1);
}

/* What the device recorded of waves that are gone. */
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

/* ------------------------------------------------------------------ without waves ------------ */

static uint64_t waiting(bool has_read, uint64_t read, bool has_write, uint64_t write)
{
	return has_read && has_write && write > read ? write - read : 0;
}

/* No waves in either snapshot, no packet taken. */
static enum rpc_progress judge_quiet(struct judge *j)
{
	const struct rpc_queue_change *fresh = NULL;

	for (size_t i = 0; i < j->c->n_queues; i++) {
		const struct rpc_queue_change *q = &j->c->queues[i];
		uint64_t old = waiting(q->has_read_before, q->read_before, q->has_write_before,
				       q->write_before);

		if (waiting(q->has_read_after, q->read_after, q->has_write_after, q->write_after))
			fresh = q;
		if (!old || !fresh || fresh != q)
			continue;
		out_fmt(&j->evidence, "%" PRIu64 " packet%s of queue %u waited for ", old,
			old == 1 ? "" : "s", q->queue_id);
		evidence_interval(j);
		out_str(&j->evidence, " and no wave ran");
		return RPC_PROGRESS_HUNG;
	}
	if (fresh) {
		out_fmt(&j->evidence,
			"queue %u got packets between the snapshots and has taken none yet",
			fresh->queue_id);
		return RPC_PROGRESS_UNKNOWN;
	}
	out_str(&j->evidence, "no waves, and no packets waiting");
	return RPC_PROGRESS_IDLE;
}

static enum rpc_progress judge(struct judge *j)
{
	if (find_packets(j) || find_dispatch(j))
		return RPC_PROGRESS_PROGRESSING;
	if (find_unknown(j))
		return RPC_PROGRESS_UNKNOWN;
	if (waves_moved(j)) {
		describe_movement(j);
		return RPC_PROGRESS_SLOW;
	}
	if (find_suspended(j))
		return RPC_PROGRESS_UNKNOWN;
	if (!j->after->wave_count)
		return judge_quiet(j);
	describe_standstill(j);
	return RPC_PROGRESS_HUNG;
}

void compare_judge(struct rpc_arena *a, const struct rpc_gpu_snapshot_result *before,
		   const struct rpc_gpu_snapshot_result *after, struct rpc_comparison *ret)
{
	struct judge j = { .arena = a, .before = before, .after = after, .c = ret };

	out_init(&j.evidence, 0);
	ret->verdict = judge(&j);
	describe_faults(&j);
	describe_exited(&j);
	ret->evidence = rpc_arena_strdup(a, j.evidence.data ? j.evidence.data : "");
	out_deinit(&j.evidence);
}
