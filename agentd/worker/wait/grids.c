/* SPDX-License-Identifier: MIT */
/*
 * Workgroups of a grid that wait for each other, as those of a cooperative launch do.  One work-item of each adds
 * itself to a word of memory and polls it until all have: who has come is seen by where waves are.
 */
#include <endian.h>
#include <stdlib.h>

#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "waits/grid.h"

/* In history.h. */
#define NAME_GRID 5u
/* How many of those that are not there are named, and of how many at most it is looked for. */
#define ABSENT_SHOWN 4u
#define ABSENT_MAX   65536u

/* ------------------------------------------------------------------ which waves -------------- */

bool look_is_of_grid(const struct look_grid *g, const struct wave *w)
{
	return w->has_dispatch && w->gpu_id == g->first->gpu_id && w->queue_id == g->first->queue_id &&
	       w->dispatch == g->first->dispatch;
}

static bool is_at_loop(const struct look_grid *g, uint64_t pc)
{
	for (uint32_t i = 0; i < g->n_loops; i++)
		if (pc >= g->loops[i].begin && pc < g->loops[i].end)
			return true;
	return false;
}

/* Its workgroup has come; the wave may have stopped since, and lanes of it may be elsewhere. */
static bool is_in_loop(const struct look_grid *g, const struct wave *w)
{
	bool any = false;

	if (!look_is_of_grid(g, w))
		return false;
	for (uint32_t i = 0; i < wave_n_parts(w); i++)
		any |= is_at_loop(g, w->parts->list[i].pc);
	return wave_n_parts(w) ? any : is_at_loop(g, w->pc);
}

static bool polls(const struct look_grid *g, const struct wave *w)
{
	return w->state == RPC_WAVE_STATE_RUNNING && is_in_loop(g, w);
}

static struct look_grid *grid_of_dispatch(const struct look *l, const struct wave *w)
{
	for (size_t i = 0; i < l->n_grids; i++)
		if (look_is_of_grid(&l->grids[i], w))
			return &l->grids[i];
	return NULL;
}

uint32_t look_grid_of(const struct look *l, const struct wave *w)
{
	const struct look_grid *g = grid_of_dispatch(l, w);

	return g && polls(g, w) ? (uint32_t)g->wait : LOOK_NONE;
}

/* The waves of a workgroup lie together.  @return the position behind its last wave. */
static size_t end_of_group(const struct target_waves *t, size_t i)
{
	const uint32_t leader = t->waves[i].leader;

	while (i < t->n_waves && t->waves[i].leader == leader)
		i++;
	return i;
}

uint32_t look_count_groups(const struct look *l, const struct look_grid *g)
{
	const struct target_waves *t = &l->seen->waves;
	uint32_t n = 0;

	for (size_t i = 0; i < t->n_waves; i = end_of_group(t, i))
		n += look_is_of_grid(g, &t->waves[i]);
	return n;
}

/* ------------------------------------------------------------------ the record --------------- */

/* @return how many workgroups the dispatch has; 0: its packet is not known, or says too much. */
static uint64_t groups_of(const struct rpc_wave_registers *r)
{
	const struct rpc_dispatch_packet *p = &r->packet;
	uint64_t n = 1;

	if (!r->has_packet || p->n_workgroup_size != 3 || p->n_grid_size != 3)
		return 0;
	for (unsigned i = 0; i < 3; i++) {
		uint64_t items = p->workgroup_size[i];

		n *= items ? (p->grid_size[i] + items - 1) / items : 0;
		if (n > WAITS_GRID_MAX)
			return 0;
	}
	return n;
}

/*
 * A kernel's argument leads to it.  All of it is what the process wrote, so that it counts only where it agrees with
 * the packet.
 * @return whether the word is that of a record.
 */
static bool read_record(struct look *l, const struct wave *w, const struct rpc_wave_registers *r,
			const struct waits_word *word, struct waits_grid *ret)
{
	uint8_t record[WAITS_GRID_BYTES];
	uint32_t offset;
	uint64_t at;

	if (!waits_grid_is_word(word) || !w->has_dispatch || !w->arguments ||
	    code_hidden_argument(&l->code, w->kernel_handle, WAITS_GRID_ARGUMENT, &offset) < 0 ||
	    !look_read(l, w->arguments + offset, &at, sizeof(at)))
		return false;
	at = le64toh(at);
	return word->address == at + WAITS_GRID_WORD && look_read(l, at, record, sizeof(record)) &&
	       waits_grid_read(record, sizeof(record), ret) == 0 && ret->expects == groups_of(r);
}

static uint64_t name_of(const struct wave *w)
{
	const uint64_t words[] = { w->gpu_id, w->queue_id, w->dispatch, NAME_GRID };

	return hash_bytes(hash_secret(), words, sizeof(words));
}

static void add_evidence(struct look *l, struct rpc_wait *to, const struct waits_grid *g, uint64_t word)
{
	look_add_evidence(l, to, WAITS_GRID_ARGUMENT,
			  rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)(word - WAITS_GRID_WORD)));
	look_add_evidence(l, to, "how often all have come", rpc_arena_printf(l->arena, "%u", g->generation));
	look_add_evidence(l, to, "value", "read when the queues ran again");
}

/* @param at  Where it is: the grid's first wave, or the part of it that polls. */
static bool add_wait(struct look *l, struct look_grid *g, const struct wave *at, const struct waits_word *word,
		     bool is_known, uint32_t value)
{
	const uint64_t state = (uint64_t)value << 32 | look_count_groups(l, g);
	struct look_wait *w;

	g->wait = l->n_waits;
	w = look_add_wait(l, RPC_WAIT_KIND_GRID, RPC_WAIT_NODE_KIND_DISPATCH, "", name_of(g->first), state);
	if (!w)
		return false;
	w->rpc.confidence = is_known ? RPC_CONFIDENCE_INFERRED : RPC_CONFIDENCE_UNKNOWN;
	w->rpc.alike = 1;
	w->rpc.has_has = is_known;
	w->rpc.has_expects = true;
	w->rpc.has = g->has;
	w->rpc.expects = g->expects;
	look_tell_wave(l, &w->rpc, at);
	look_tell_word(&w->rpc, word, is_known, value);
	return true;
}

static bool add_loop(struct look_grid *g, uint64_t begin, uint64_t end)
{
	if (g->n_loops == sizeof(g->loops) / sizeof(g->loops[0]))
		return false;
	g->loops[g->n_loops++] = (struct look_loop){ begin, end };
	return true;
}

bool look_add_grid(struct look *l, const struct rpc_wave_registers *r, const struct wave *w, const struct look_code *c,
		   const struct waits_word *word)
{
	const uint64_t end = c->loop + c->poll.end - c->poll.begin;
	struct look_grid *g = grid_of_dispatch(l, w);
	struct waits_grid record;

	if (g && polls(g, w))
		return true;
	if (!read_record(l, w, r, word, &record))
		return false;
	if (g)
		return add_loop(g, c->loop, end);
	if (l->n_grids == LOOK_GRIDS_MAX)
		return false;
	g = &l->grids[l->n_grids];
	*g = (struct look_grid){ .first = w, .has = record.has, .expects = record.expects };
	if (!add_wait(l, g, w, word, true, record.generation << 16 | record.has))
		return false;
	add_evidence(l, &l->waits[g->wait].rpc, &record, word->address);
	l->n_grids++;
	return add_loop(g, c->loop, end);
}

/* ------------------------------------------------------------------ AMD's global wave sync --- */

#define GWS_BYTES 8u

static bool is_op(struct look *l, const struct wave *w, uint64_t pc, enum waits_op op)
{
	struct waits_instruction in;
	uint8_t word[4];

	return code_bytes(&l->code, pc, word, sizeof(word)) == 0 &&
	       waits_instruction_read(look_family(l, w), word, sizeof(word), &in) == 0 && in.op == op;
}

/*
 * @return where the instruction is at which the wave waits, or behind which it waits for its own memory, as it has to;
 *         0: at none.
 */
static uint64_t gws_at(struct look *l, const struct wave *w)
{
	if (is_op(l, w, w->pc, WAITS_OP_GWS_BARRIER))
		return w->pc;
	if (is_op(l, w, w->pc, WAITS_OP_WAIT_MEMORY) && is_op(l, w, w->pc - GWS_BYTES, WAITS_OP_GWS_BARRIER))
		return w->pc - GWS_BYTES;
	return 0;
}

bool look_is_at_gws(struct look *l, const struct wave *w)
{
	return gws_at(l, w) != 0;
}

/* A wave behind the instruction, at the wait for its own memory, is told as one at it. */
static bool add_gws_place(struct look_grid *g, uint64_t at)
{
	return add_loop(g, at, at + GWS_BYTES + 1);
}

static bool add_gws_wait(struct look *l, struct look_grid *g, const struct wave *w, uint64_t at)
{
	struct look_wait *wait;

	g->wait = l->n_waits;
	wait = look_add_wait(l, RPC_WAIT_KIND_GRID, RPC_WAIT_NODE_KIND_DISPATCH, "", name_of(g->first),
			     look_count_groups(l, g));
	if (!wait)
		return false;
	wait->rpc.confidence = RPC_CONFIDENCE_INFERRED;
	wait->rpc.alike = 1;
	wait->rpc.has_expects = g->expects > 0;
	wait->rpc.expects = g->expects;
	look_tell_wave(l, &wait->rpc, w);
	wait->rpc.at.instruction = waits_op_name(WAITS_OP_GWS_BARRIER);
	look_add_evidence(l, &wait->rpc, wait->rpc.at.instruction,
			  rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)at));
	look_add_evidence(l, &wait->rpc, "how many have come", "not known: the device counts them, where nobody can read it");
	return true;
}

/*
 * What it counts to was written by another kernel before: that it is the workgroups of the grid is what AMD's runtime
 * does (RunGwsInit() of its virtual GPU).
 */
bool look_add_gws(struct look *l, const struct rpc_wave_registers *r, const struct wave *w)
{
	struct look_grid *g = grid_of_dispatch(l, w);
	const uint64_t at = w->has_dispatch ? gws_at(l, w) : 0;

	if (!at)
		return false;
	if (g)
		return polls(g, w) || (g->is_uncounted && add_gws_place(g, at));
	if (l->n_grids == LOOK_GRIDS_MAX)
		return false;
	g = &l->grids[l->n_grids];
	*g = (struct look_grid){ .first = w, .expects = (uint32_t)groups_of(r), .is_uncounted = true };
	if (!add_gws_wait(l, g, w, at))
		return false;
	l->n_grids++;
	return add_gws_place(g, at);
}

/* ------------------------------------------------------------------ NVIDIA's word ------------ */

/* @return how many blocks the grid has; 0: that is not known, or more than the word counts. */
static uint64_t blocks_of(const struct target_spin *s)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < 3; i++) {
		n *= s->grid[i];
		if (n > WAITS_GRID_BLOCKS_MAX)
			return 0;
	}
	return n;
}

static void add_evidence_of_blocks(struct look *l, struct rpc_wait *to, const struct target_spin *s,
				   const struct waits_grid_blocks *n)
{
	const uint64_t workspace = s->words[0].address - WAITS_GRID_WORKSPACE_WORD;

	look_add_evidence(l, to, "loop", rpc_arena_printf(l->arena, "0x%llx to 0x%llx", (unsigned long long)s->begin,
							  (unsigned long long)s->end));
	look_add_evidence(l, to, "workspace of the launch",
			  rpc_arena_printf(l->arena, "0x%llx", (unsigned long long)workspace));
	look_add_evidence(l, to, "blocks of the grid",
			  rpc_arena_printf(l->arena, "%u x %u x %u", s->grid[0], s->grid[1], s->grid[2]));
	if (s->words[0].has_value)
		look_add_evidence(l, to, "block (0,0,0), by the word", n->has_first ? "has come" : "has not come");
	look_add_evidence(l, to, "value", s->words[0].has_value ? "read in the same stop" : "not readable");
}

/*
 * The process may write the word, so that it is one only where it agrees with the grid: who polls has come.  Where it
 * cannot be read, nothing says who has, besides those who poll.
 */
bool look_add_blocks(struct look *l, const struct target_spin *s, const struct wave *w, const struct waits_word *word)
{
	const struct wave *whole = &l->seen->waves.waves[s->wave];
	struct look_grid *g = grid_of_dispatch(l, whole);
	const uint64_t blocks = blocks_of(s);
	struct waits_grid_blocks n = { 0 };

	if (!s->is_grid || !blocks || !whole->has_dispatch)
		return false;
	if (s->words[0].has_value && (waits_grid_count((uint32_t)s->words[0].value, blocks, &n) < 0 || !n.has))
		return false;
	if (g)
		return l->waits[g->wait].rpc.object.address == word->address && add_loop(g, s->begin, s->end);
	if (l->n_grids == LOOK_GRIDS_MAX)
		return false;
	g = &l->grids[l->n_grids];
	*g = (struct look_grid){ .first = whole, .has = n.has, .expects = (uint32_t)blocks,
				 .size = { s->grid[0], s->grid[1], s->grid[2] } };
	if (!add_wait(l, g, w, word, s->words[0].has_value, (uint32_t)s->words[0].value))
		return false;
	add_evidence_of_blocks(l, &l->waits[g->wait].rpc, s, &n);
	l->n_grids++;
	return add_loop(g, s->begin, s->end);
}

/* ------------------------------------------------------------------ who has come ------------- */

/* One workgroup. */
struct workgroup {
	const struct wave *waves;
	size_t n;
	bool has_come, has_stopped;
};

static struct workgroup group_at(const struct look *l, const struct look_grid *g, size_t i)
{
	const struct target_waves *t = &l->seen->waves;
	struct workgroup x = { .waves = &t->waves[i], .n = end_of_group(t, i) - i };

	for (size_t k = 0; k < x.n; k++) {
		x.has_come |= is_in_loop(g, &x.waves[k]);
		x.has_stopped |= x.waves[k].state != RPC_WAVE_STATE_RUNNING;
	}
	return x;
}

static void note_waves(struct look *l, const struct look_grid *g, const struct workgroup *x)
{
	for (size_t k = 0; k < x->n; k++)
		if (polls(g, &x->waves[k])) {
			look_note(l, &x->waves[k], g->wait);
			l->waits[g->wait].rpc.waves++;
		}
}

static void name_those_who_wait(struct look *l, const struct look_grid *g, uint32_t come)
{
	struct rpc_wait *to = &l->waits[g->wait].rpc;
	struct look_node *node = &l->nodes[l->waits[g->wait].node];
	const char *first = look_workgroup_text(l, g->first);

	to->who = come > 1 ? rpc_arena_printf(l->arena, "%s and %u more", first, come - 1) : first;
	node->rpc.text = rpc_arena_printf(l->arena, "%s, at %s,", to->who, look_place(l, &to->at));
}

/* ------------------------------------------------------------------ who has not -------------- */

/* The work-item that comes for a workgroup is of its first wave, if that is there. */
static const struct wave *speaker_of(const struct workgroup *x)
{
	for (size_t k = 0; k < x->n; k++)
		if (x->waves[k].state != RPC_WAVE_STATE_RUNNING)
			return &x->waves[k];
	for (size_t k = 0; k < x->n; k++)
		if (x->waves[k].has_wave_in_group && !x->waves[k].wave_in_group)
			return &x->waves[k];
	return x->waves;
}

/* A wave of the workgroup may wait for others of it: what leads on from there is known. */
static uint32_t node_of(struct look *l, const struct workgroup *x, const struct wave *speaker,
			const struct rpc_wait_at *at)
{
	for (size_t k = 0; k < x->n; k++) {
		uint32_t wait = l->of_wave[&x->waves[k] - l->seen->waves.waves];

		if (wait != WAIT_NONE)
			return l->waits[wait].node;
	}
	return look_add_wave(l, speaker, at);
}

static bool has_edge(const struct look *l, uint32_t from, uint32_t to)
{
	for (size_t i = l->n_edges; i-- > 0 && l->edges[i].from == from;)
		if (l->edges[i].to == to)
			return true;
	return false;
}

static void add_party(struct look *l, const struct look_grid *g, const struct workgroup *x)
{
	const struct wave *w = speaker_of(x);
	struct rpc_wait_at at = look_at(l, w);
	uint32_t node = node_of(l, x, w, &at), from = l->waits[g->wait].node;
	struct rpc_wait *to = &l->waits[g->wait].rpc;

	if (node == LOOK_NONE || to->n_missing == LOOK_PARTIES_MAX)
		return;
	/* Workgroups that are alike are one wait. */
	if (!has_edge(l, from, node))
		look_add_edge(l, from, node, WAITS_INFERRED, g->is_open);
	to->missing[to->n_missing++] = (struct rpc_wait_party){
		.what = l->nodes[node].rpc.has_wait ? look_workgroup_text(l, w) : l->nodes[node].rpc.text,
		.has_ref = true,
		.ref = wave_ref((struct wave *)w),
		.state = (enum rpc_wait_end)l->nodes[node].node.end,
		.has_at = true,
		.at = at,
	};
}

bool look_has_others(const struct look *l, const struct look_grid *g)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_waves; i++)
		if (t->waves[i].gpu_id == g->first->gpu_id && !look_is_of_grid(g, &t->waves[i]))
			return true;
	return false;
}

bool *look_seen_groups(const struct look *l, const struct look_grid *g)
{
	const struct target_waves *t = &l->seen->waves;
	bool *seen = g->size[0] && g->expects <= ABSENT_MAX ? calloc(g->expects, sizeof(*seen)) : NULL;

	for (size_t i = 0; seen && i < t->n_waves; i++) {
		const uint32_t *at = t->waves[i].workgroup;

		if (look_is_of_grid(g, &t->waves[i]) && t->waves[i].has_workgroup && at[0] < g->size[0] &&
		    at[1] < g->size[1] && at[2] < g->size[2])
			seen[(at[2] * g->size[1] + at[1]) * g->size[0] + at[0]] = true;
	}
	return seen;
}

const char *look_absent_text(struct look *l, const struct look_grid *g, uint32_t n)
{
	auto_free bool *seen = look_seen_groups(l, g);
	auto_out struct out o = { 0 };
	uint32_t shown = 0;
	const char *text;

	if (!seen)
		return "";
	for (uint32_t i = 0; i < g->expects && shown < ABSENT_SHOWN; i++)
		if (!seen[i])
			out_fmt(&o, "%s (%u,%u,%u)", shown++ ? "," : "", i % g->size[0], i / g->size[0] % g->size[1],
				i / g->size[0] / g->size[1]);
	if (n > shown)
		out_fmt(&o, " and %u more", n - shown);
	out_str(&o, ";");
	text = out_error(&o) ? NULL : rpc_arena_strdup(l->arena, o.data);
	return text ? text : "";
}

/*
 * Those of which no wave is there: whether they have ended without coming, or were never started since the grid is
 * larger than the device, nothing tells.  Neither comes any more, but one that is about to start looks the same.  So
 * both samples have to show a device without others, and a count in memory that agrees with what was seen.
 */
static void add_absent(struct look *l, const struct look_grid *g, uint32_t n, uint32_t come)
{
	struct look_wait *w = &l->waits[g->wait];
	bool is_firm = !g->is_uncounted && come == g->has && look_has_all_waves(l) && !look_has_others(l, g);
	bool was_firm = look_is_same(l, hash_mix(name_of(g->first)), is_firm);
	bool is_gone = is_firm && was_firm && !w->changed && l->apart_ns >= LOOK_STILL_NS;
	const enum waits_end end = is_gone ? WAITS_END_GONE : WAITS_END_UNKNOWN;
	struct rpc_wait *to = &w->rpc;
	const char *text = rpc_arena_printf(l->arena, "%u of %u %s of %s %s not there:%s ended without coming, or never started",
					    n, g->expects, look_is_nvidia(l) ? "blocks" : "workgroups",
					    look_kernel(l, g->first), n == 1 ? "is" : "are", look_absent_text(l, g, n));
	uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_NOBODY, end, text);

	if (node == LOOK_NONE)
		return;
	l->nodes[node].may_come = !is_gone;
	look_add_edge(l, w->node, node, WAITS_INFERRED, g->is_open);
	if (to->n_missing < LOOK_PARTIES_MAX)
		to->missing[to->n_missing++] = (struct rpc_wait_party){ .what = text, .state = (enum rpc_wait_end)end };
}

/* Those with a wave that has stopped come first: there may be more than are named. */
static void add_parties(struct look *l, const struct look_grid *g)
{
	const struct target_waves *t = &l->seen->waves;

	for (int stopped = 1; stopped >= 0; stopped--)
		for (size_t i = 0; i < t->n_waves; i = end_of_group(t, i)) {
			struct workgroup x;

			if (!look_is_of_grid(g, &t->waves[i]))
				continue;
			x = group_at(l, g, i);
			if (!x.has_come && x.has_stopped == stopped)
				add_party(l, g, &x);
		}
}

/*
 * May somebody have come who is not in a loop, or gone on who is?  Blocks of NVIDIA's may arrive and wait later, and
 * are in the loop a little longer than the word says.  Where nothing counts, the barrier may just have opened, unless
 * the same ones stood there a second before.
 */
static bool is_open(struct look *l, const struct look_grid *g, uint32_t come, uint64_t who)
{
	struct look_wait *w = &l->waits[g->wait];

	if (!g->is_uncounted)
		return look_is_nvidia(l) && come != g->has;
	w->changed |= !look_is_same(l, hash_mix(name_of(g->first) + 1), who) && l->before;
	return !l->before || w->changed || l->apart_ns < LOOK_STILL_NS;
}

static void look_at_grid(struct look *l, struct look_grid *g)
{
	const struct target_waves *t = &l->seen->waves;
	struct rpc_wait *to = &l->waits[g->wait].rpc;
	uint32_t seen = 0, come = 0;
	uint64_t who = 0;

	for (size_t i = 0; i < t->n_waves; i = end_of_group(t, i)) {
		struct workgroup x;

		if (!look_is_of_grid(g, &t->waves[i]))
			continue;
		x = group_at(l, g, i);
		seen++;
		come += x.has_come;
		/* In whatever order they were saved. */
		if (x.has_come)
			who += hash_bytes(hash_secret(), x.waves->workgroup, sizeof(x.waves->workgroup));
		note_waves(l, g, &x);
	}
	name_those_who_wait(l, g, come);
	g->is_open = is_open(l, g, come, who);
	to->has_candidates = to->candidates = g->is_open;
	to->missing_count = g->expects > come ? g->expects - come : g->expects ? 0 : seen - come;
	to->missing = rpc_arena_array(l->arena, LOOK_PARTIES_MAX, sizeof(*to->missing));
	if (!to->missing)
		return;
	add_parties(l, g);
	if (g->expects > seen)
		add_absent(l, g, g->expects - seen, come);
}

void look_at_grids(struct look *l)
{
	for (size_t i = 0; i < l->n_grids; i++)
		look_at_grid(l, &l->grids[i]);
}
