/* SPDX-License-Identifier: MIT */
#include "agentd/worker/wait/look.h"

#include <stdlib.h>
#include <string.h>

#include "agentd/worker/wait/wait.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "base/vec.h"

#define CAUSES_MAX   64u
#define EVIDENCE_MAX 16u
/* Of a graph; what is larger than it was written by somebody who wants it to be. */
#define NODES_MAX 8192u
#define EDGES_MAX 32768u

static const char TOO_LARGE[] = "waits: what depends on what is too much to be followed";

/* ------------------------------------------------------------------ lists -------------------- */

uint32_t look_add_node(struct look *l, enum rpc_wait_node_kind kind, enum waits_end end, const char *text)
{
	struct look_node n = { .node = { .end = end }, .rpc = { .kind = kind, .text = text ? text : "" } };

	if (l->n_nodes >= NODES_MAX) {
		look_missing(l, TOO_LARGE);
		return LOOK_NONE;
	}
	if (vec_reserve(&l->nodes, l->n_nodes, 1, &l->nodes_capacity, sizeof(n)) < 0) {
		l->failed = true;
		return LOOK_NONE;
	}
	l->nodes[l->n_nodes] = n;
	return (uint32_t)l->n_nodes++;
}

void look_add_edge(struct look *l, uint32_t from, uint32_t to, enum waits_confidence c, bool any)
{
	if (from == LOOK_NONE || to == LOOK_NONE)
		return;
	if (l->n_edges >= EDGES_MAX) {
		look_missing(l, TOO_LARGE);
		return;
	}
	if (vec_reserve(&l->edges, l->n_edges, 1, &l->edges_capacity, sizeof(*l->edges)) < 0) {
		l->failed = true;
		return;
	}
	l->edges[l->n_edges++] = (struct waits_edge){ from, to, c, any };
}

struct look_wait *look_add_wait(struct look *l, enum rpc_wait_kind kind, enum rpc_wait_node_kind node,
				const char *who, uint64_t name, uint64_t state)
{
	struct look_wait *w;

	if (l->n_waits == LOOK_WAITS_MAX) {
		look_missing(l, "waits: there are more than 256 different ones");
		return NULL;
	}
	if (vec_reserve(&l->waits, l->n_waits, 1, &l->waits_capacity, sizeof(*l->waits)) < 0) {
		l->failed = true;
		return NULL;
	}
	w = &l->waits[l->n_waits];
	*w = (struct look_wait){ .rpc = { .kind = kind, .who = who,
					  .id = rpc_arena_printf(l->arena, "w%016llx", (unsigned long long)name) } };
	w->node = look_add_node(l, node, WAITS_END_UNKNOWN, who);
	if (w->node == LOOK_NONE)
		return NULL;
	w->changed = !look_is_same(l, name, state) && l->before;
	l->nodes[w->node].node.is_wait = true;
	l->nodes[w->node].rpc.has_wait = true;
	l->nodes[w->node].rpc.wait = (uint32_t)l->n_waits++;
	return w;
}

void look_add_evidence(struct look *l, struct rpc_wait *w, const char *what, const char *value)
{
	if (!w->evidence)
		w->evidence = rpc_arena_array(l->arena, EVIDENCE_MAX, sizeof(*w->evidence));
	if (w->evidence && w->n_evidence < EVIDENCE_MAX && value)
		w->evidence[w->n_evidence++] = (struct rpc_wait_evidence){ what, value };
}

void look_undecoded(struct look *l, const char *reason, uint32_t waves)
{
	size_t i = 0;

	while (i < l->n_undecoded && l->undecoded[i].reason != reason)
		i++;
	if (i == sizeof(l->undecoded) / sizeof(l->undecoded[0]))
		return;
	if (i == l->n_undecoded)
		l->undecoded[l->n_undecoded++] = (struct rpc_wait_undecoded){ .reason = reason };
	l->undecoded[i].waves += waves;
}

void look_missing(struct look *l, const char *text)
{
	for (size_t i = 0; i < l->n_missing; i++)
		if (l->missing[i] == text)
			return;
	if (text && l->n_missing < LOOK_MISSING_MAX)
		l->missing[l->n_missing++] = text;
}

void look_missing_thread(struct look *l, const char *text)
{
	const char *told = !text || str_starts_with(text, "threads: ") ? text :
									 rpc_arena_printf(l->arena, "threads: %s", text);

	for (size_t i = 0; told && i < l->n_threads_missing; i++)
		if (!strcmp(l->threads_missing[i], told))
			return;
	if (told && l->n_threads_missing < LOOK_MISSING_MAX)
		l->threads_missing[l->n_threads_missing++] = told;
}

void look_note(struct look *l, const struct wave *w, size_t wait)
{
	l->of_wave[w - l->seen->waves.waves] = (uint32_t)wait;
}

bool look_is_same(struct look *l, uint64_t name, uint64_t state)
{
	if (past_add(l->now, name, state) < 0)
		look_missing(l, "comparison: there is too much to remember for the next sample");
	return l->before && past_has(l->before, name, state);
}

/* ------------------------------------------------------------------ names -------------------- */

const char *look_kernel(const struct look *l, const struct wave *w)
{
	const char *name = w->kernel < l->places.n_kernels ? l->places.kernels[w->kernel].name : NULL;

	return name ? name : "an unknown kernel";
}

struct rpc_wait_at look_at(struct look *l, const struct wave *w)
{
	struct rpc_wait_at at = { .pc = w->pc };
	struct code_symbol f;

	if (w->place < l->places.n_places) {
		at.frames = l->places.places[w->place].frames;
		at.n_frames = l->places.places[w->place].n_frames;
	}
	if (code_function(&l->code, w->pc, &f) == 0)
		at.place = rpc_arena_printf(l->arena, "%s+0x%llx", f.name, (unsigned long long)(w->pc - f.address));
	return at;
}

void look_tell_wave(struct look *l, struct rpc_wait *to, const struct wave *w)
{
	to->gpu_id = w->gpu_id;
	to->queue_id = w->queue_id;
	to->has_dispatch = w->has_dispatch;
	to->dispatch = w->dispatch;
	to->kernel = w->kernel ? look_kernel(l, w) : NULL;
	to->workgroup = (uint32_t *)w->workgroup;
	to->n_workgroup = w->has_workgroup ? 3 : 0;
	to->has_at = true;
	to->at = look_at(l, w);
}

static const char *base_name(const char *path)
{
	const char *slash = path;

	for (const char *p = path; *p; p++)
		if (*p == '/')
			slash = p + 1;
	return slash;
}

const char *look_place(struct look *l, const struct rpc_wait_at *at)
{
	const struct rpc_frame *f = at->n_frames ? &at->frames[0] : NULL;
	const char *place = at->place ? at->place :
					rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)at->pc);

	if (!f || !f->file || !f->has_line)
		return place ? place : "?";
	return rpc_arena_printf(l->arena, "%s (%s:%u)", place, base_name(f->file), f->line);
}

bool look_is_nvidia(const struct look *l)
{
	return l->target->ops->vendor == RPC_VENDOR_NVIDIA;
}

/* What is missing of registers does not make waves absent. */
bool look_has_all_waves(const struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_missing; i++)
		if (!str_starts_with(t->missing[i], "registers: "))
			return false;
	return true;
}

const char *look_arch(const struct look *l, const struct wave *w)
{
	for (size_t i = 0; i < l->seen->n_devices; i++)
		if (l->seen->devices[i].rpc.gpu_id == w->gpu_id)
			return l->seen->devices[i].rpc.arch;
	return NULL;
}

enum waits_family look_family(const struct look *l, const struct wave *w)
{
	for (size_t i = 0; i < l->seen->n_devices; i++) {
		const struct rpc_device *d = &l->seen->devices[i].rpc;

		if (d->gpu_id == w->gpu_id && d->has_gfx_target_version)
			return waits_family_of((uint32_t)d->gfx_target_version);
	}
	return WAITS_FAMILY_COUNT;
}

/* ------------------------------------------------------------------ what it comes to --------- */

/* Who has moved waits no more, or for something new: it accuses nobody. */
static void let_go(struct look *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n_waits; i++)
		if (l->waits[i].changed)
			l->nodes[l->waits[i].node].node.end = WAITS_END_RUNS;
	for (size_t i = 0; i < l->n_edges; i++) {
		const struct look_node *n = &l->nodes[l->edges[i].from];

		if (!n->rpc.has_wait || !l->waits[n->rpc.wait].changed)
			l->edges[kept++] = l->edges[i];
	}
	l->n_edges = kept;
}

static bool is_culprit(const struct look *l, const struct waits_cause *c)
{
	switch (c->end) {
	case WAITS_END_STOPPED:
	case WAITS_END_GONE:
		return true;
	case WAITS_END_CIRCLE:
		/* Warps that go through the same barriers again and again look alike whenever they are looked at. */
		if (look_is_nvidia(l))
			return c->confidence == WAITS_PROVEN && l->before && l->apart_ns >= LOOK_STILL_NS;
		return c->confidence == WAITS_PROVEN || (l->before && l->apart_ns >= LOOK_STILL_NS);
	case WAITS_END_STILL:
	case WAITS_END_HOST:
		return l->before && l->apart_ns >= LOOK_STILL_NS;
	default:
		return false;
	}
}

static const char *circle_text(struct look *l, const struct waits_solution *s, const struct waits_cause *c)
{
	auto_out struct out text = { 0 };

	out_str(&text, "a circle: ");
	for (uint32_t i = 0; i < c->n && i < 8; i++) {
		const char *named = l->nodes[s->nodes[c->first + i]].rpc.text;
		/* There is none where memory ends, which is told by the arena. */
		const char *who = named ? named : "";
		const size_t n = strlen(who);
		/* Those that are at a place have a comma behind it. */
		const char *joint = !i ? "" : n && who[n - 1] == ',' ? " which" : ", which";

		out_fmt(&text, "%s%s %s for ", who, joint, look_verb(who));
	}
	out_str(&text, c->n > 8 ? "others" : "the first");
	return rpc_arena_strdup(l->arena, text.data ? text.data : "");
}

/* Edges that count, by where they lead. */
struct ways {
	uint32_t *begin; /* Of each node, and one more: places in `from`. */
	uint32_t *from;
	uint32_t *n_out; /* Of each node: how many begin there. */
	uint32_t *left, *queue;
};

static int ways_init(const struct look *l, struct ways *w)
{
	const size_t n = l->n_nodes;
	uint32_t *words = calloc(4 * n + l->n_edges + 2, sizeof(*words));

	if (!words)
		return -ENOMEM;
	*w = (struct ways){ .begin = words, .n_out = words + n + 2, .left = words + 2 * n + 2,
			    .queue = words + 3 * n + 2, .from = words + 4 * n + 2 };
	/* One place further than they end up: each is moved on by as many as it gets. */
	for (size_t i = 0; i < l->n_edges; i++)
		if (!l->edges[i].any)
			w->begin[l->edges[i].to + 2]++;
	for (size_t i = 2; i < n + 2; i++)
		w->begin[i] += w->begin[i - 1];
	for (size_t i = 0; i < l->n_edges; i++) {
		const struct waits_edge *e = &l->edges[i];

		if (e->any)
			continue;
		w->from[w->begin[e->to + 1]++] = e->from;
		w->n_out[e->from]++;
	}
	return 0;
}

static void ways_deinit(struct ways *w)
{
	free(w->begin);
}

/* Mark all nodes from which one that is marked can be reached; with all, those that lead to no other one. */
static void spread(const struct look *l, const struct ways *w, bool *marks, bool all)
{
	size_t n = 0;

	memcpy(w->left, w->n_out, l->n_nodes * sizeof(*w->left));
	for (size_t i = 0; i < l->n_nodes; i++)
		if (marks[i])
			w->queue[n++] = (uint32_t)i;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = w->begin[w->queue[i]]; k < w->begin[w->queue[i] + 1]; k++) {
			const uint32_t from = w->from[k], left = --w->left[from];

			if (marks[from] || (all && left))
				continue;
			marks[from] = true;
			w->queue[n++] = from;
		}
}

/*
 * Mark who waits only for those who may come, or run.  What is not known of somebody excuses nobody: who else is waited
 * for, and does not run, keeps others as if those had come.
 */
static void spread_may_come(const struct look *l, const struct ways *w, bool *runs)
{
	for (size_t i = 0; i < l->n_nodes; i++)
		runs[i] |= l->nodes[i].may_come;
	spread(l, w, runs, true);
}

static void fill_causes(struct look *l, const struct waits_solution *s, bool *guilty, bool *runs,
			struct rpc_why_get_result *ret)
{
	ret->causes = rpc_arena_array(l->arena, CAUSES_MAX, sizeof(*ret->causes));
	for (int culprits = 1; ret->causes && culprits >= 0; culprits--)
		for (size_t i = 0; i < s->n_causes; i++) {
			const struct waits_cause *c = &s->causes[i];
			uint32_t node = s->nodes[c->first];

			if (is_culprit(l, c) != culprits)
				continue;
			(culprits ? guilty : runs)[node] |= culprits || c->end == WAITS_END_RUNS;
			if (ret->n_causes == CAUSES_MAX)
				continue;
			ret->causes[ret->n_causes++] = (struct rpc_wait_cause){
				.text = c->end == WAITS_END_CIRCLE ? circle_text(l, s, c) : l->nodes[node].rpc.text,
				.node = node,
				.end = (enum rpc_wait_end)c->end,
				.culprit = culprits,
				.confidence = (enum rpc_confidence)c->confidence,
				.waits = c->waits,
			};
		}
}

/* Is it known of a wait for whom it waits, and not only who may come? */
static bool is_firm(const struct look *l, const struct look_wait *w)
{
	for (size_t i = 0; i < l->n_edges; i++)
		if (l->edges[i].from == w->node && !l->edges[i].any)
			return w->rpc.confidence != RPC_CONFIDENCE_UNKNOWN;
	return false;
}

/* What is stuck: what leads to a culprit; not what has moved; of the rest it is not known. */
static void judge(struct look *l, const bool *guilty, const bool *runs, struct rpc_why_get_result *ret)
{
	bool any = false, stuck = false, open = false;

	for (size_t i = 0; i < l->n_waits; i++) {
		struct look_wait *w = &l->waits[i];

		any |= guilty[w->node];
		w->rpc.has_stuck = guilty[w->node] || w->changed;
		w->rpc.stuck = guilty[w->node];
		if (w->rpc.has_stuck)
			continue;
		open = true;
		stuck |= !look_is_nvidia(l) && l->before && l->apart_ns >= LOOK_STILL_NS && !runs[w->node] &&
			 is_firm(l, w);
	}
	ret->has_stuck = any || stuck || !open;
	ret->stuck = any || stuck;
}

static int by_waves(const void *x, const void *y)
{
	const struct rpc_wait *a = *(const struct rpc_wait *const *)x, *b = *(const struct rpc_wait *const *)y;

	if (a->waves != b->waves)
		return a->waves > b->waves ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* The waits in their order, and the nodes' positions of them. */
static int fill_waits(struct look *l, struct rpc_why_get_result *ret)
{
	auto_free const struct rpc_wait **order = calloc(l->n_waits + 1, sizeof(*order));
	auto_free uint32_t *place = calloc(l->n_waits + 1, sizeof(*place));

	ret->waits = rpc_arena_array(l->arena, l->n_waits, sizeof(*ret->waits));
	if (!order || !place || !ret->waits)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_waits; i++)
		order[i] = &l->waits[i].rpc;
	qsort(order, l->n_waits, sizeof(*order), by_waves);
	for (size_t i = 0; i < l->n_waits; i++) {
		const struct look_wait *w = (const struct look_wait *)(const void *)order[i];

		ret->waits[i] = w->rpc;
		ret->waits[i].text = look_wait_text(l, &w->rpc);
		place[w - l->waits] = (uint32_t)i;
	}
	ret->n_waits = l->n_waits;
	for (size_t i = 0; i < l->n_nodes; i++)
		if (l->nodes[i].rpc.has_wait)
			l->nodes[i].rpc.wait = place[l->nodes[i].rpc.wait];
	for (size_t i = 0; i < l->seen->waves.n_waves; i++)
		if (l->of_wave[i] != WAIT_NONE)
			l->of_wave[i] = place[l->of_wave[i]];
	return 0;
}

static int fill_graph(struct look *l, struct rpc_why_get_result *ret)
{
	ret->nodes = rpc_arena_array(l->arena, l->n_nodes, sizeof(*ret->nodes));
	ret->edges = rpc_arena_array(l->arena, l->n_edges, sizeof(*ret->edges));
	if (!ret->nodes || !ret->edges)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_nodes; i++) {
		ret->nodes[i] = l->nodes[i].rpc;
		ret->nodes[i].end = (enum rpc_wait_end)l->nodes[i].node.end;
		ret->nodes[i].has_end = true;
	}
	for (size_t i = 0; i < l->n_edges; i++) {
		const struct waits_edge *e = &l->edges[i];

		ret->nodes[e->from].has_end = false;
		ret->edges[i] = (struct rpc_wait_edge){ .from = e->from, .to = e->to,
							.confidence = (enum rpc_confidence)e->confidence,
							.has_any = e->any, .any = e->any };
	}
	ret->n_nodes = l->n_nodes;
	ret->n_edges = l->n_edges;
	return 0;
}

int look_solve(struct look *l, struct rpc_why_get_result *ret)
{
	auto_free struct waits_node *nodes = calloc(l->n_nodes + 1, sizeof(*nodes));
	auto_free bool *guilty = calloc(l->n_nodes + 1, sizeof(*guilty));
	auto_free bool *runs = calloc(l->n_nodes + 1, sizeof(*runs));
	struct waits_solution s = { 0 };
	struct ways ways = { 0 };
	int r;

	let_go(l);
	r = nodes && guilty && runs ? ways_init(l, &ways) : -ENOMEM;
	if (r < 0)
		return r;
	for (size_t i = 0; i < l->n_nodes; i++)
		nodes[i] = l->nodes[i].node;
	r = waits_graph_solve(nodes, l->n_nodes, l->edges, l->n_edges, &s);
	if (r == 0) {
		fill_causes(l, &s, guilty, runs, ret);
		spread(l, &ways, guilty, false);
		spread(l, &ways, runs, false);
		spread_may_come(l, &ways, runs);
		judge(l, guilty, runs, ret);
		r = fill_waits(l, ret);
	}
	if (r == 0)
		r = fill_graph(l, ret);
	waits_solution_deinit(&s);
	ways_deinit(&ways);
	return r;
}

/* ------------------------------------------------------------------ one look ----------------- */

static int find_places(struct look *l, const struct wait_options *o)
{
	const struct target_waves *t = &l->seen->waves;
	int r = code_set_init(&l->code, l->target, l->arena, o->look_up_ms);

	if (r == 0)
		r = locations_find(&l->code, t->waves, t->n_waves, &l->places);
	if (r == 0) {
		l->sites = calloc(l->places.n_sites + 1, sizeof(*l->sites));
		r = l->sites ? 0 : -ENOMEM;
	}
	return r;
}

/* Compare with an earlier look.  Nothing moves while queues stand still. */
static void compare(struct look *l, uint64_t now_ns, uint64_t stood_ns)
{
	const uint64_t passed = now_ns - past_time_ns(l->before), stood = stood_ns - past_stood_ns(l->before);

	/* A look at queues that a client keeps suspended is counted twice. */
	l->apart_ns = passed > stood ? passed - stood : 0;
	if (passed >= LOOK_STILL_NS && l->apart_ns < LOOK_STILL_NS)
		look_missing(l, "comparison: queues were suspended between the samples, and nothing moves meanwhile");
}

static int begin(struct look *l, const struct wait_options *o, struct history **history,
		 struct rpc_why_get_result *ret, struct agent_err *err)
{
	const uint64_t now = clock_now_ns();

	l->now = history_begin(history, now, o->stood_ns, &ret->sample);
	if (!l->now)
		return agent_err_no_memory(err, "why.get");
	if (o->has_since) {
		l->before = history_find(*history, o->since);
		if (!l->before)
			return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, ENOENT, NULL, "ask again without it",
					     "params.since: this session remembers no sample %u", o->since);
		compare(l, now, o->stood_ns);
		ret->has_interval_us = true;
		ret->interval_us = l->apart_ns / 1000;
	}
	ret->samples = l->before ? 2 : 1;
	return 0;
}

static void find_missing(struct look *l)
{
	const char *texts[CODE_MISSING_MAX];
	size_t n = code_missing(&l->code, l->places.n_unknown > 0, texts);

	/* Registers of waves that nobody waits for are not missed. */
	for (size_t i = 0; i < l->seen->waves.n_missing; i++)
		if (l->no_registers || !str_starts_with(l->seen->waves.missing[i], "registers: "))
			look_missing(l, l->seen->waves.missing[i]);
	for (size_t i = 0; i < n; i++)
		look_missing(l, texts[i]);
	for (size_t i = 0; i < l->n_undecoded; i++)
		look_missing(l, rpc_arena_printf(l->arena, "%u wave%s: %s", l->undecoded[i].waves,
						 l->undecoded[i].waves == 1 ? "" : "s", l->undecoded[i].reason));
}

static void find_waits(struct look *l, struct rpc_why_get_result *ret)
{
	struct look_lines *lines = NULL;

	if (look_is_nvidia(l)) {
		look_at_spins(l);
		look_at_warps(l);
		look_at_clusters(l);
		look_at_grids(l);
		look_at_collectives(l, ret);
		look_at_absent(l);
	} else {
		look_at_polls(l);
		look_at_blocks(l);
		look_at_grids(l);
		look_at_hostcalls(l);
		/* Packets wait for what waits for other ranks. */
		look_at_collectives(l, ret);
		lines = look_at_queues(l);
	}
	look_at_alone(l, ret);
	if (lines)
		look_at_threads(lines, ret);
}

int wait_tell(struct target *t, struct rpc_arena *a, const struct wait_options *o, const struct snapshot *seen,
	      struct history **history, struct rpc_why_get_result *ret, struct agent_err *err)
{
	struct look l = { .target = t, .arena = a, .seen = seen, .memory = o->memory,
			  .threads = o->threads };
	int r;

	l.missing = rpc_arena_array(a, LOOK_MISSING_MAX, sizeof(*l.missing));
	l.threads_missing = rpc_arena_array(a, LOOK_MISSING_MAX, sizeof(*l.threads_missing));
	l.grids = rpc_arena_array(a, LOOK_GRIDS_MAX, sizeof(*l.grids));
	l.of_wave = o->of_wave ? o->of_wave : rpc_arena_array(a, seen->waves.n_waves, sizeof(*l.of_wave));
	l.is_collective = rpc_arena_array(a, seen->waves.n_waves, sizeof(*l.is_collective));
	if (!l.missing || !l.threads_missing || !l.grids || !l.of_wave || !l.is_collective)
		return agent_err_no_memory(err, "why.get");
	r = begin(&l, o, history, ret, err);
	if (r < 0)
		return r;
	l.code.target = t;
	for (size_t i = 0; i < seen->waves.n_waves; i++)
		l.of_wave[i] = WAIT_NONE;
	r = find_places(&l, o);
	if (r == 0) {
		find_waits(&l, ret);
		past_finish(l.now, clock_now_ns());
		r = l.failed ? -ENOMEM : look_solve(&l, ret);
	}
	if (r == 0) {
		find_missing(&l);
		ret->vendor = t->ops->vendor;
		ret->wave_count = (uint32_t)seen->waves.n_waves;
		ret->stopped_us = seen->waves.stopped_us;
		ret->undecoded = rpc_arena_array(a, l.n_undecoded, sizeof(*ret->undecoded));
		for (size_t i = 0; ret->undecoded && i < l.n_undecoded; i++)
			ret->undecoded[ret->n_undecoded++] = l.undecoded[i];
		ret->missing = l.missing;
		ret->n_missing = l.n_missing;
		ret->complete = !l.n_missing;
		ret->threads_missing = l.threads_missing;
		ret->n_threads_missing = l.n_threads_missing;
		ret->has_threads_missing = l.n_threads_missing > 0;
	}
	locations_deinit(&l.places);
	code_set_deinit(&l.code);
	free(l.sites);
	free(l.waits);
	free(l.nodes);
	free(l.edges);
	free(l.ranges);
	if (r == 0)
		r = rpc_arena_error(a);
	return r < 0 ? agent_err_no_memory(err, "why.get") : 0;
}

void wait_history_free(struct history *h)
{
	history_free(h);
}
