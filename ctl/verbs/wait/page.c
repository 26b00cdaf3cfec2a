/* SPDX-License-Identifier: MIT */
/* What waits, in words: the first line is the cause, or says that none was found. */
#include "ctl/verbs/wait/page.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "ctl/document/vendor_words.h"
#include "ctl/nccl/awaited.h"
#include "ctl/terminal/text.h"
#include "protocol/wait_kind.h"

/* How much is shown without --verbose. */
#define CAUSES_SHOWN  4
#define WAITS_SHOWN   8
#define ALONE_SHOWN   4
#define THREADS_SHOWN 16
#define CHAIN_MAX     8

/* As show_name() of the program. */
static const char *name_of(struct ctl *c, const struct rpc_enum *e, int64_t value)
{
	const char *name = rpc_enum_name(e, value);

	return name ? name : rpc_arena_printf(&c->arena, "%" PRId64, value);
}

static const char *confidence_of(struct ctl *c, enum rpc_confidence value)
{
	return name_of(c, &rpc_confidence_enum, value);
}

void why_line(struct ctl *c, const char *head, const char *text, const char *confidence)
{
	auto_out struct out line = { 0 };

	out_fmt(&line, "%-*s", WHY_INDENT, head);
	text_put(&line, "", text ? text : "", "");
	if (confidence)
		out_fmt(&line, "  [%s]", confidence);
	if (line.data)
		text_wrap(&c->output.text, line.data, line.size, c->output.width, WHY_INDENT);
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

/* "" where memory ends. */
static const char *place_of(struct ctl *c, const struct rpc_wait_at *at)
{
	const char *text = at->place ? at->place : rpc_arena_printf(&c->arena, "0x%" PRIx64, at->pc);

	return text ? text : "";
}

static const char *kind_text(struct ctl *c, enum rpc_wait_kind kind)
{
	const char *words = wait_kind_words(kind), *name = words ? words : name_of(c, &rpc_wait_kind_enum, kind);

	return name ? name : "";
}

/* What a node of a chain says. */
static const char *link_text(struct ctl *c, const struct rpc_why_get_result *r, uint32_t node)
{
	const struct rpc_wait *w = wait_of(r, node);

	/* Of a packet, no matter whether signals keep it or the packets before it; and of who waits for one. */
	if (r->nodes[node].kind == RPC_WAIT_NODE_KIND_PACKET || r->nodes[node].kind == RPC_WAIT_NODE_KIND_THREAD)
		return rpc_arena_printf(&c->arena, "%s waits", w ? w->who : r->nodes[node].text);
	if (!w)
		return r->nodes[node].text;
	if (wait_kind_is_told_by_name(w->kind))
		return w->who;
	return rpc_arena_printf(&c->arena, "%s wait%s %s a %s%s%s", w->who,
				w->waves == 1 && !str_starts_with(w->who, "lanes ") ? "s" : "",
				wait_kind_joint(w->kind), kind_text(c, w->kind), w->has_at ? ", at " : "",
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
		const char *text = link_text(c, r, e->from);

		seen[i] = e->from;

		why_line(c, "", rpc_arena_printf(&c->arena, "<- %s", text ? text : ""), confidence_of(c, e->confidence));
		waits += w != NULL;
		if (w && w->alike > alike)
			alike = w->alike;
		e = edge_to(r, e->from);
	}
	if (alike > 1)
		why_line(c, "", rpc_arena_printf(&c->arena, "%u %s are in this state", alike,
						 vendor_word(r->vendor, "workgroups")), NULL);
	return waits;
}

static void print_cause(struct ctl *c, const struct rpc_why_get_result *r, const struct rpc_wait_cause *cause,
			const char *head)
{
	uint32_t shown, more;

	why_line(c, head, cause->text, confidence_of(c, cause->confidence));
	shown = print_chain(c, r, cause->node);
	more = cause->waits > shown ? cause->waits - shown : 0;
	/* A chain is one way to the cause, and has an end: other waits that lead there are among those below. */
	if (more)
		why_line(c, "", rpc_arena_printf(&c->arena, more == 1 ? "%u more wait leads there" : "%u more waits lead there",
						  more), NULL);
}

/* ------------------------------------------------------------------ the rest ----------------- */

static void print_wait(struct ctl *c, const struct rpc_wait *w)
{
	why_line(c, w->has_stuck ? w->stuck ? "STUCK" : "MOVES" : "WAITS", w->text, confidence_of(c, w->confidence));
}

/* What two samples show and do not prove. */
static bool is_candidate(const struct rpc_why_get_result *r, const struct rpc_wait_cause *cause)
{
	return r->samples > 1 && !cause->culprit &&
	       (cause->end == RPC_WAIT_END_CIRCLE ||
		(cause->end == RPC_WAIT_END_UNKNOWN && cause->node < r->n_nodes &&
		 r->nodes[cause->node].kind == RPC_WAIT_NODE_KIND_NOBODY));
}

/* Those of collective operations for other ranks are told by the first line and by lines of their own. */
static bool is_of_ranks(const struct rpc_wait *w)
{
	return w->kind == RPC_WAIT_KIND_COLLECTIVE;
}

static size_t count_waits(const struct rpc_why_get_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_waits; i++)
		n += !is_of_ranks(&r->waits[i]);
	return n;
}

static bool have_all_moved(const struct rpc_why_get_result *r)
{
	if (r->has_stuck)
		return !r->stuck;
	for (size_t i = 0; i < r->n_waits; i++)
		if (!is_of_ranks(&r->waits[i]) && (!r->waits[i].has_stuck || r->waits[i].stuck))
			return false;
	return true;
}

/* Do only such waits lead to the rank that is the cause? */
static bool is_only_of_ranks(const struct rpc_why_get_result *r, const struct rpc_wait_cause *cause)
{
	uint32_t n = 0;

	if (cause->node >= r->n_nodes || r->nodes[cause->node].kind != RPC_WAIT_NODE_KIND_RANK)
		return false;
	for (size_t i = 0; i < r->n_edges; i++) {
		const struct rpc_wait_edge *e = &r->edges[i];
		const struct rpc_wait *w = e->to == cause->node && e->from < r->n_nodes ? wait_of(r, e->from) : NULL;

		n += w && is_of_ranks(w);
	}
	return cause->waits <= n;
}

/* What is known of the waits, where that is no culprit. */
static const char *waits_text(struct ctl *c, const struct rpc_why_get_result *r)
{
	const size_t n = count_waits(r);
	const bool one = n == 1;
	const char *what = " for what runs";

	if (!n)
		return "nothing waits";
	for (size_t i = 0; i < r->n_causes; i++)
		if (r->causes[i].end != RPC_WAIT_END_RUNS && !is_only_of_ranks(r, &r->causes[i]))
			what = one ? ", and it is not known whether it lasts" : ", and it is not known whether they last";
	if (r->samples == 1)
		what = c->core ? ", and one sample does not tell for how long" :
				 ", and one sample does not tell for how long (--twice)";
	if (have_all_moved(r))
		what = one ? ", which has moved" : ", all of which have moved";
	else if (r->has_stuck)
		what = one ? ", which does not move" : ", of which some do not move";
	return rpc_arena_printf(&c->arena, "%zu wait%s%s", n, one ? "" : "s", what);
}

/*
 * @param ranks  Those that wait for others, or NULL: there are none.  Whoever keeps those is not told by their own
 *               process.
 */
static const char *no_culprit(struct ctl *c, const struct rpc_why_get_result *r, const char *ranks)
{
	const char *waits = !ranks || count_waits(r) ? waits_text(c, r) : NULL;

	return rpc_arena_printf(&c->arena, "no culprit found%s: %s%s%s", ranks ? " in this process" : "",
				ranks ? ranks : "", ranks && waits ? "; " : "", waits ? waits : "");
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

void why_page_causes(struct ctl *c, const struct rpc_why_get_result *r)
{
	const char *ranks = awaited_text(&c->arena, r);
	/* Ranks that were not looked at may be the cause as well. */
	const struct rpc_wait_cause *only = ranks ? NULL : only_candidate(r);
	size_t causes = c->verbose ? r->n_causes : CAUSES_SHOWN, n = 0;

	if (only) {
		const char *waits = waits_text(c, r);

		print_cause(c, r, only, "MAYBE");
		why_line(c, "", rpc_arena_printf(&c->arena, "it need not be the cause: %s", waits ? waits : ""), NULL);
		return;
	}
	for (; n < r->n_causes && r->causes[n].culprit && n < causes; n++)
		print_cause(c, r, &r->causes[n], n ? "ALSO" : "CAUSE");
	if (!n)
		why_line(c, "", no_culprit(c, r, ranks), NULL);
	for (size_t i = n; i < r->n_causes && i < causes; i++)
		if (is_candidate(r, &r->causes[i]))
			print_cause(c, r, &r->causes[i], "MAYBE");
}

static void print_more(struct ctl *c, const char *what, size_t n, size_t shown)
{
	if (n > shown)
		out_fmt(&c->output.text, "%*s(%zu more %s%s: --verbose)\n", WHY_INDENT, "", n - shown, what,
			n - shown == 1 ? "" : "s");
}

void why_page_alone(struct ctl *c, const struct rpc_why_get_result *r)
{
	size_t shown = c->verbose ? r->n_alone : ALONE_SHOWN;

	for (size_t i = 0; i < r->n_alone && i < shown; i++)
		why_line(c, "NOTE", r->alone[i].text, confidence_of(c, r->alone[i].confidence));
	print_more(c, "note", r->n_alone, shown);
}

/* Where nothing waits, they wait for work that goes on. */
static void print_threads(struct ctl *c, const struct rpc_why_get_result *r)
{
	const size_t n = c->verbose || r->n_waits ? r->n_threads : 0;
	const size_t shown = c->verbose || n < THREADS_SHOWN ? n : THREADS_SHOWN;

	for (size_t i = 0; i < shown; i++) {
		const char *text = r->threads[i].text;

		if (str_starts_with(text, "thread "))
			text += strlen("thread ");
		why_line(c, "THREAD", text, confidence_of(c, r->threads[i].confidence));
	}
	print_more(c, "thread", n, shown);
	for (size_t i = 0; (c->verbose || r->n_waits) && i < r->n_threads_missing; i++)
		why_line(c, "", r->threads_missing[i], NULL);
}

void why_page_waits(struct ctl *c, const struct rpc_why_get_result *r)
{
	const size_t n = count_waits(r), shown = c->verbose || n < WAITS_SHOWN ? n : WAITS_SHOWN;
	size_t left = shown;

	for (size_t i = 0; i < r->n_waits && left; i++) {
		if (is_of_ranks(&r->waits[i]))
			continue;
		print_wait(c, &r->waits[i]);
		left--;
	}
	print_more(c, "wait", n, shown);
	print_threads(c, r);
	for (size_t i = 0; i < r->n_collectives; i++)
		why_line(c, "RANK", awaited_rank_text(&c->arena, r, &r->collectives[i]),
			 confidence_of(c, r->collectives[i].confidence));
	why_page_alone(c, r);
}
