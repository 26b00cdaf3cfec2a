/* SPDX-License-Identifier: MIT */
/* gpu-agentctl why: what waits, for whom, and who does not come.  The first line is the cause. */
#include <inttypes.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/document/vendor_words.h"
#include "ctl/nccl/awaited.h"
#include "ctl/verbs/wait/told.h"
#include "protocol/wait_kind.h"

#define REPLY_MEMORY_MAX ((size_t)128 << 20)
#define TWICE_MS	 1000
#define TWICE_MAX_MS	 600000
/* How much is shown without --verbose. */
#define CAUSES_SHOWN 4
#define WAITS_SHOWN  8
#define CHAIN_MAX    8

static const char *twice;
static bool ras;

static const struct argv_option options[] = {
	{ "twice", 0, ARGV_OPTIONAL, &twice, "MS",
	  "take another sample after so many milliseconds (default 1000): what has moved is accused of nothing" },
	{ "ras", 0, ARGV_FLAG, &ras, NULL, "also ask NCCL's own status socket what its ranks have launched" },
	{ 0 },
};

static const char *confidence_of(struct ctl *c, enum rpc_confidence value)
{
	return show_name(&c->arena, &rpc_confidence_enum, value);
}

/* ------------------------------------------------------------------ chains ------------------- */

/* The edge by which most of the waits that end in a node come there: the first one, as the agent tells them by size. */
static const struct rpc_wait_edge *edge_to(const struct rpc_why_get_result *r, uint32_t node)
{
	const struct rpc_wait_edge *best = NULL;
	uint32_t most = 0;

	for (size_t i = 0; i < r->n_edges; i++) {
		const struct rpc_wait_edge *e = &r->edges[i];
		uint32_t waves = 0;

		if (e->to != node || e->from >= r->n_nodes || e->any)
			continue;
		if (r->nodes[e->from].has_wait && r->nodes[e->from].wait < r->n_waits)
			waves = r->waits[r->nodes[e->from].wait].waves;
		if (best && waves <= most)
			continue;
		best = e;
		most = waves;
	}
	return best;
}

static const struct rpc_wait *wait_of(const struct rpc_why_get_result *r, uint32_t node)
{
	const struct rpc_wait_node *n = &r->nodes[node];

	return n->has_wait && n->wait < r->n_waits ? &r->waits[n->wait] : NULL;
}

static const char *place_of(struct ctl *c, const struct rpc_wait_at *at)
{
	return at->place ? at->place : rpc_arena_printf(&c->arena, "0x%" PRIx64, at->pc);
}

static const char *kind_text(struct ctl *c, enum rpc_wait_kind kind)
{
	const char *words = wait_kind_words(kind);

	return words ? words : show_name(&c->arena, &rpc_wait_kind_enum, kind);
}

/* What a node of a chain says. */
static const char *link_text(struct ctl *c, const struct rpc_why_get_result *r, uint32_t node)
{
	const struct rpc_wait *w = wait_of(r, node);

	/* Of a packet, no matter whether signals keep it or the packets before it. */
	if (r->nodes[node].kind == RPC_WAIT_NODE_KIND_PACKET)
		return rpc_arena_printf(&c->arena, "%s waits", w ? w->who : r->nodes[node].text);
	if (!w)
		return r->nodes[node].text;
	if (wait_kind_is_told_by_name(w->kind))
		return w->who;
	return rpc_arena_printf(&c->arena, "%s wait%s at a %s%s%s", w->who,
				w->waves == 1 && !str_starts_with(w->who, "lanes ") ? "s" : "",
				kind_text(c, w->kind), w->has_at ? ", at " : "",
				w->has_at ? place_of(c, &w->at) : "");
}

static bool is_seen(const uint32_t *seen, unsigned n, uint32_t node)
{
	for (unsigned i = 0; i < n; i++)
		if (seen[i] == node)
			return true;
	return false;
}

/*
 * Who waits for the node, and who waits for those: from the end of a chain to its beginning, and of a circle once
 * around.
 * @return how many waits are in it.
 */
static uint32_t print_chain(struct ctl *c, const struct rpc_why_get_result *r, uint32_t node)
{
	const struct rpc_wait_edge *e = node < r->n_nodes ? edge_to(r, node) : NULL;
	uint32_t alike = 0, waits = 0, seen[CHAIN_MAX];

	for (unsigned i = 0; e && i < CHAIN_MAX && !is_seen(seen, i, e->from); i++) {
		const struct rpc_wait *w = wait_of(r, e->from);

		seen[i] = e->from;

		told_line(c, "", rpc_arena_printf(&c->arena, "<- %s", link_text(c, r, e->from)),
			 confidence_of(c, e->confidence));
		waits += w != NULL;
		if (w && w->alike > alike)
			alike = w->alike;
		e = edge_to(r, e->from);
	}
	if (alike > 1)
		told_line(c, "", rpc_arena_printf(&c->arena, "%u %s are in this state", alike,
						 vendor_word(r->vendor, "workgroups")), NULL);
	return waits;
}

static void print_cause(struct ctl *c, const struct rpc_why_get_result *r, const struct rpc_wait_cause *cause,
			const char *head)
{
	uint32_t shown, more;

	told_line(c, head, cause->text, confidence_of(c, cause->confidence));
	shown = print_chain(c, r, cause->node);
	more = cause->waits > shown ? cause->waits - shown : 0;
	/* A chain is one way to the cause, and has an end: other waits that lead there are among those below. */
	if (more)
		told_line(c, "", rpc_arena_printf(&c->arena, more == 1 ? "%u more wait leads there" : "%u more waits lead there",
						  more), NULL);
}

/* ------------------------------------------------------------------ the rest ----------------- */

static void print_wait(struct ctl *c, const struct rpc_wait *w)
{
	told_line(c, w->has_stuck ? w->stuck ? "STUCK" : "MOVES" : "WAITS", w->text, confidence_of(c, w->confidence));
}

/* What two samples show and do not prove. */
static bool is_candidate(const struct rpc_why_get_result *r, const struct rpc_wait_cause *cause)
{
	return r->samples > 1 && !cause->culprit &&
	       (cause->end == RPC_WAIT_END_CIRCLE ||
		(cause->end == RPC_WAIT_END_UNKNOWN && cause->node < r->n_nodes &&
		 r->nodes[cause->node].kind == RPC_WAIT_NODE_KIND_NOBODY));
}

/* What is known of the waits, where that is no culprit. */
static const char *waits_text(struct ctl *c, const struct rpc_why_get_result *r)
{
	if (!r->n_waits)
		return "nothing waits";
	if (r->has_stuck && !r->stuck)
		return rpc_arena_printf(&c->arena, "%zu waits, all of which have moved", r->n_waits);
	if (r->has_stuck)
		return rpc_arena_printf(&c->arena, "%zu waits, of which some do not move", r->n_waits);
	if (r->samples == 1)
		return rpc_arena_printf(&c->arena, "%zu waits, and one sample does not tell for how long%s", r->n_waits,
					c->core ? "" : " (--twice)");
	for (size_t i = 0; i < r->n_causes; i++)
		if (r->causes[i].end != RPC_WAIT_END_RUNS)
			return rpc_arena_printf(&c->arena, "%zu waits, and it is not known whether they last",
						r->n_waits);
	return rpc_arena_printf(&c->arena, "%zu waits for what runs", r->n_waits);
}

/* The same with the ranks that wait for others: whoever keeps those is not told by their own process. */
static const char *rest_text(struct ctl *c, const struct rpc_why_get_result *r)
{
	const char *ranks = awaited_text(&c->arena, r);

	if (!ranks || !r->n_waits)
		return ranks ? ranks : waits_text(c, r);
	return rpc_arena_printf(&c->arena, "%s; %s", ranks, waits_text(c, r));
}

static const char *no_culprit(struct ctl *c, const struct rpc_why_get_result *r)
{
	const char *where = awaited_text(&c->arena, r) ? " in this process" : "";

	return rpc_arena_printf(&c->arena, "no culprit found%s: %s", where, rest_text(c, r));
}

/* What may be the cause, if nothing else may be it as well; never beside a culprit. */
static const struct rpc_wait_cause *only_candidate(const struct rpc_why_get_result *r)
{
	const struct rpc_wait_cause *found = NULL;

	for (size_t i = 0; i < r->n_causes; i++) {
		if (r->causes[i].culprit)
			return NULL;
		if (!is_candidate(r, &r->causes[i]))
			continue;
		if (found)
			return NULL;
		found = &r->causes[i];
	}
	return found && found->confidence != RPC_CONFIDENCE_UNKNOWN ? found : NULL;
}

/* The first line, and what belongs to it. */
static void print_causes(struct ctl *c, const struct rpc_why_get_result *r)
{
	/* Ranks that were not looked at may be the cause as well. */
	const struct rpc_wait_cause *only = awaited_text(&c->arena, r) ? NULL : only_candidate(r);
	size_t causes = c->verbose ? r->n_causes : CAUSES_SHOWN, n = 0;

	if (only) {
		print_cause(c, r, only, "MAYBE");
		told_line(c, "", rpc_arena_printf(&c->arena, "it need not be the cause: %s", waits_text(c, r)), NULL);
		return;
	}
	for (; n < r->n_causes && r->causes[n].culprit && n < causes; n++)
		print_cause(c, r, &r->causes[n], n ? "ALSO" : "CAUSE");
	if (!n)
		told_line(c, "", no_culprit(c, r), NULL);
	for (size_t i = n; i < r->n_causes && i < causes; i++)
		if (is_candidate(r, &r->causes[i]))
			print_cause(c, r, &r->causes[i], "MAYBE");
}

static int print_text(struct ctl *c, const struct rpc_why_get_result *r)
{
	size_t waits = c->verbose ? r->n_waits : WAITS_SHOWN;

	print_causes(c, r);
	told_show(c, r);
	for (size_t i = 0; i < r->n_waits && i < waits; i++)
		print_wait(c, &r->waits[i]);
	for (size_t i = 0; i < r->n_collectives; i++)
		told_line(c, "RANK", awaited_rank_text(&c->arena, &r->collectives[i]),
			  confidence_of(c, r->collectives[i].confidence));
	if (r->n_waits > waits)
		out_fmt(&c->output.text, "%*s(%zu more: --verbose)\n", TOLD_INDENT, "", r->n_waits - waits);
	return 0;
}

/* ------------------------------------------------------------------ the verb ----------------- */

static int print_document(struct ctl *c, const struct rpc_why_get_result *r)
{
	auto_out struct out text = { 0 };

	if (!ras)
		return ctl_print_result(c);
	rpc_why_get_result_encode(&text, r);
	return ctl_print_json(c, &text);
}

/* Ask NCCL, and say in the document what it says, or that this is missing. */
static int add_told(struct ctl *c, const struct told_by *t, struct rpc_why_get_result *r)
{
	const char *why, **list;
	int e = told_ask(c, t, r, &why);

	if (e < 0 || !why)
		return e;
	list = rpc_arena_array(&c->arena, r->n_missing + 1, sizeof(*list));
	if (!list)
		return ctl_fail(c, ENOMEM, "the document");
	for (size_t i = 0; i < r->n_missing; i++)
		list[i] = r->missing[i];
	list[r->n_missing++] = rpc_arena_printf(&c->arena, TOLD_WHAT ": %s", why);
	r->missing = list;
	r->complete = false;
	return rpc_arena_error(&c->arena) ? ctl_fail(c, ENOMEM, "the document") : 0;
}

static int look(struct ctl *c, struct rpc_why_get_params *p, struct rpc_why_get_result *ret)
{
	return ctl_called(c, rpc_client_why_get(c->client, p, &c->arena, ret, &c->err));
}

static int look_twice(struct ctl *c, struct rpc_why_get_params *p, uint32_t pause_ms, struct rpc_why_get_result *ret)
{
	struct timespec ts = { pause_ms / 1000, pause_ms % 1000 * 1000000L };
	int r = look(c, p, ret);

	if (r < 0)
		return r;
	ctl_note(c, "the second sample follows in %u ms", pause_ms);
	/* Signals that come meanwhile end the program, so that the sleep is never cut short. */
	nanosleep(&ts, NULL);
	p->has_since = true;
	p->since = ret->sample;
	return look(c, p, ret);
}

static int status_of(struct ctl *c, const struct rpc_why_get_result *r)
{
	for (size_t i = 0; i < r->n_missing; i++)
		ctl_note(c, "missing: %s", cli_words(c, r->missing[i]));
	if (r->has_stuck && r->stuck)
		return r->n_causes && r->causes[0].culprit ? CTL_EXIT_NO_PROGRESS : CTL_EXIT_NO_CAUSE;
	return ctl_status(r->complete, false);
}

static int run(struct ctl *c, int argc, char **argv)
{
	struct rpc_why_get_params p = { .has_max_stop_ms = c->max_look_ms, .max_stop_ms = c->max_look_ms };
	struct rpc_why_get_result result;
	uint32_t pause_ms = TWICE_MS;
	struct told_by told;
	int r = 0;

	if (c->core && (twice || ras))
		return ctl_usage(c, twice ? "--twice needs a process: a core does not change" :
					    "--ras needs a process: nobody answers for a core");
	if (twice && *twice)
		r = args_ms(c, "--twice", twice, TWICE_MAX_MS, &pause_ms);
	c->arena.limit = REPLY_MEMORY_MAX;
	if (r == 0)
		r = ctl_attach(c, argv[0], false);
	if (r < 0)
		return r;
	p.session = c->session.session;
	if (ras)
		told_open(c, &told);
	r = twice ? look_twice(c, &p, pause_ms, &result) : look(c, &p, &result);
	if (ras) {
		r = r == 0 ? add_told(c, &told, &result) : r;
		told_close(&told);
	}
	if (r == 0)
		r = ctl_is_json(c) ? print_document(c, &result) : print_text(c, &result);
	ctl_detach(c);
	return r < 0 ? r : status_of(c, &result);
}

const struct ctl_verb ctl_verb_why = {
	.name = "why",
	.args = "PID",
	.summary = "Show what waits on the GPUs, for whom, and who does not come",
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.takes_core = true,
	.run = run,
};
