/* SPDX-License-Identifier: MIT */
/*
 * Warps of NVIDIA's devices that wait at barriers of their block, or for other lanes of their own.  No register says
 * that a warp waits: it is known by the instruction that its lanes are at.  Of lanes that wait for others of their warp
 * the hardware says more, where the driver tells it (waits/cbu.h).
 */
#include "agentd/worker/snapshot/hash.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "agentd/worker/wait/look.h"
#include "agentd/worker/wait/wait.h"
#include "agentd/worker/wait/warps.h"
#include "base/bit_list.h"
#include "base/out.h"
#include "waits/cbu.h"

/* Code of a kernel that is searched for a barrier at which nobody waits. */
#define SEARCH_BYTES (UINT64_C(1) << 20)
#define SEARCH_STEP  4096u
#define WARP_LANES   32u
/* Twice as many as a block may have. */
#define WARPS_NUMBERED 64u

/* ------------------------------------------------------------------ what lanes do ------------ */

static const struct look_code *code_at(struct look *l, const struct wave *w)
{
	struct look_code *c = &l->sites[w->site];

	if (!c->known)
		c->n = code_bytes(&l->code, w->pc, c->bytes, WAITS_SASS_BYTES) == 0 ? WAITS_SASS_BYTES : 0;
	c->known = true;
	return c;
}

_Static_assert(WAITS_CBU_WORDS == TARGET_CONVERGENCE_WORDS, "what is read is all of it");

/*
 * @param ret_hash  Of all of its words.
 * @return 0, -ENOENT (it was not read), -EBADMSG (it contradicts itself).
 */
static int find_convergence(const struct look *l, const struct wave *warp, struct waits_cbu *ret, uint64_t *ret_hash)
{
	const struct target_waves *t = &l->seen->waves;
	const size_t wave = (size_t)(warp - t->waves);
	size_t low = 0, high = t->n_convergences;
	uint32_t lanes = 0;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (t->convergences[middle].wave < wave)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == t->n_convergences || t->convergences[low].wave != wave)
		return -ENOENT;
	for (uint32_t i = 0; i < wave_n_parts(warp); i++)
		lanes |= (uint32_t)warp->parts->list[i].exec;
	*ret_hash = hash_bytes(hash_secret(), t->convergences[low].words, sizeof(t->convergences[low].words)) | 1;
	return waits_cbu_read(t->convergences[low].words, TARGET_CONVERGENCE_WORDS, lanes, ret);
}

/* Does a WARPSYNC say itself which lanes have to come? */
static bool has_mask(const struct unit *u)
{
	return u->at.op == WAITS_SASS_WARP_SYNC && u->at.mask_register == WAITS_SASS_NO_REGISTER &&
	       !u->at.mask_is_constant;
}

/*
 * Whoever may go on was let go, or has not come yet.  No device has shown the states of lanes there: a place of which
 * none is blocked is told as if nothing were known of them.
 */
static void classify_warp_sync(struct unit *u, int known, const struct waits_cbu *c, uint64_t hash)
{
	/* To read registers takes so many calls that devices would stand still for long. */
	u->does = DOES_WAIT;
	u->ready = known == 0 ? u->lanes & c->ready : 0;
	if (u->ready == u->lanes)
		return;
	u->lanes &= ~u->ready;
	/* Whoever waits for lanes that do not take part waits for nobody that is known. */
	if (known == -EBADMSG || (known == 0 && has_mask(u) && u->at.mask & c->lanes & ~c->collective))
		u->told = LANES_DOUBTFUL;
	if (u->told == LANES_DOUBTFUL || known < 0 || u->lanes & ~c->in_collective)
		return;
	u->told = LANES_BLOCKED;
	u->awaited = c->collective;
	u->all_came = c->collective & ~c->in_collective ? 0 : hash;
}

static void classify_converge(struct unit *u, int known, const struct waits_cbu *c)
{
	/* Blocked at another barrier than the instruction names, they contradict it. */
	if (known < 0 || waits_cbu_barrier_of(c, u->lanes) != u->at.id || !c->missing[u->at.id])
		return;
	u->does = DOES_WAIT;
	u->told = LANES_BLOCKED;
	u->awaited = c->missing[u->at.id];
}

static void classify_lanes(const struct look *l, struct unit *u)
{
	struct waits_cbu c;
	uint64_t hash = 0;
	int known;

	if (!u->w->is_part || !u->lanes)
		return;
	known = find_convergence(l, u->warp, &c, &hash);
	if (u->at.op == WAITS_SASS_WARP_SYNC)
		classify_warp_sync(u, known, &c, hash);
	else
		classify_converge(u, known, &c);
}

bool look_is_at_barrier(struct look *l, const struct wave *w)
{
	const struct look_code *c = code_at(l, w);
	struct waits_sass s;

	return waits_sass_read(look_arch(l, w), c->bytes, c->n, &s) == 0 &&
	       (s.op == WAITS_SASS_BARRIER || s.op == WAITS_SASS_CLUSTER_WAIT || s.op == WAITS_SASS_WARP_SYNC);
}

static void classify(struct look *l, struct block *b, struct unit *u)
{
	const struct look_code *c;

	if (u->w->state != RPC_WAVE_STATE_RUNNING) {
		u->does = DOES_STOP;
		return;
	}
	u->object = mbarriers_find(l, u->warp, u->w->pc);
	if (u->object) {
		mbarriers_classify(u);
		b->undecoded += u->does == DOES_UNKNOWN;
		b->unread += u->does == DOES_UNKNOWN;
		return;
	}
	c = code_at(l, u->w);
	if (waits_sass_read(look_arch(l, u->w), c->bytes, c->n, &u->at) < 0) {
		u->does = DOES_UNKNOWN;
		b->undecoded++;
		return;
	}
	if (u->at.op == WAITS_SASS_BARRIER) {
		bool is_known = u->at.id_register == WAITS_SASS_NO_REGISTER &&
				u->at.count_register == WAITS_SASS_NO_REGISTER;

		u->does = is_known ? DOES_WAIT : DOES_UNKNOWN;
		b->undecoded += !is_known;
	} else if (u->at.op == WAITS_SASS_CLUSTER_WAIT) {
		u->does = DOES_WAIT;
	} else if (u->at.op == WAITS_SASS_WARP_SYNC || u->at.op == WAITS_SASS_CONVERGE) {
		classify_lanes(l, u);
	}
}

static void add_unit(struct look *l, struct block *b, const struct wave *w, const struct wave *warp)
{
	struct unit *u;

	if (b->n_units == UNITS_MAX) {
		b->cut = true;
		return;
	}
	u = &b->units[b->n_units++];
	*u = (struct unit){ .w = w, .warp = warp, .lanes = (uint32_t)w->exec, .wait = LOOK_NONE };
	classify(l, b, u);
}

/* ------------------------------------------------------------------ where they wait ---------- */

static bool is_same_place(const struct unit *a, const struct unit *b)
{
	if (a->object || b->object)
		return a->object && b->object && a->object->address == b->object->address &&
		       a->state.phase == b->state.phase;
	if (a->at.op != b->at.op)
		return false;
	if (a->at.op == WAITS_SASS_WARP_SYNC)
		return a->warp == b->warp && a->w->pc == b->w->pc;
	if (a->at.op == WAITS_SASS_CONVERGE)
		return a->warp == b->warp && a->at.id == b->at.id;
	return a->at.id == b->at.id && a->at.count == b->at.count;
}

/* Lanes of the warp that are at the place. */
static uint32_t lanes_at(const struct block *b, const struct unit *first)
{
	uint32_t lanes = 0;

	for (uint32_t i = 0; i < b->n_units; i++)
		if (b->units[i].warp == first->warp && b->units[i].does == DOES_WAIT &&
		    is_same_place(&b->units[i], first))
			lanes |= b->units[i].lanes;
	return lanes;
}

/* Lanes of the warp that are left. */
static uint32_t lanes_left(const struct block *b, const struct wave *warp)
{
	uint32_t lanes = 0;

	for (uint32_t i = 0; i < b->n_units; i++)
		if (b->units[i].warp == warp)
			lanes |= b->units[i].lanes | b->units[i].ready;
	return lanes;
}

/* The same without those that are ready to go on from where others are blocked. */
static uint32_t lanes_of(const struct block *b, const struct wave *warp)
{
	uint32_t lanes = 0;

	for (uint32_t i = 0; i < b->n_units; i++)
		if (b->units[i].warp == warp)
			lanes |= b->units[i].lanes;
	return lanes;
}

/* Do they wait for lanes of their own warp? */
static bool is_for_lanes(const struct unit *u)
{
	return !u->object && (u->at.op == WAITS_SASS_WARP_SYNC || u->at.op == WAITS_SASS_CONVERGE);
}

/*
 * Is it known which lanes have to come?  The mask of collective operations is one for all of them: halves of a warp may
 * meet each for itself.
 */
static bool has_lanes(const struct unit *u)
{
	return u->told != LANES_DOUBTFUL && (u->at.op == WAITS_SASS_CONVERGE || has_mask(u));
}

/* Lanes that a place of a warp waits for, and which are there. */
static uint32_t lanes_missing(const struct block *b, const struct unit *first)
{
	uint32_t there = lanes_of(b, first->warp) & ~lanes_at(b, first);

	if (has_mask(first))
		there &= first->at.mask;
	return first->told == LANES_BLOCKED ? there & first->awaited : there;
}

/* Are they in a loop that is told to poll, be it for other warps? */
static bool polls(const struct look *l, const struct unit *u)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_spins; i++) {
		const struct target_spin *s = &t->spins[i];
		const struct wave *first = &t->waves[s->wave];

		if (u->w->pc >= s->begin && u->w->pc < s->end && first->gpu_id == u->w->gpu_id &&
		    first->dispatch == u->w->dispatch && l->of_wave[s->wave] != WAIT_NONE)
			return true;
	}
	return false;
}

static bool is_converging(const struct unit *u)
{
	return u->does == DOES_WAIT && !u->object && u->at.op == WAITS_SASS_CONVERGE;
}

/*
 * Lanes come to where they meet one after the other, which is no trouble as long as those that lack go on, or wait for
 * such themselves.
 * @param units  Of one warp.
 */
static void find_going_on(const struct look *l, struct unit *units, uint32_t n)
{
	uint32_t on = 0, before;
	bool any = false;

	for (uint32_t i = 0; i < n; i++)
		any |= is_converging(&units[i]);
	for (uint32_t i = 0; any && i < n; i++) {
		on |= units[i].does == DOES_RUN && !polls(l, &units[i]) ? units[i].lanes : 0;
		on |= units[i].ready;
	}
	do {
		before = on;
		for (uint32_t i = 0; i < n; i++)
			on |= is_converging(&units[i]) && !(units[i].awaited & ~on) ? units[i].lanes : 0;
	} while (on != before);
	for (uint32_t i = 0; i < n; i++)
		units[i].goes_on = units[i].lanes & on;
}

static void find_place(struct block *b, struct unit *u)
{
	uint32_t i = 0;

	if (u->does != DOES_WAIT)
		return;
	if (is_for_lanes(u) && !lanes_missing(b, u))
		return;
	if (is_converging(u) && u->goes_on)
		return;
	while (i < b->n_places && !is_same_place(b->places[i].first, u))
		i++;
	if (i == WAITS_MAX) {
		b->cut = true;
		return;
	}
	if (i == b->n_places)
		b->places[b->n_places++] = (struct place){ .first = u, .wait = LOOK_NONE };
	u->wait = i;
}

/* ------------------------------------------------------------------ who may come ------------- */

static bool waits_for_cluster(const struct unit *u)
{
	return !u->object && u->at.op == WAITS_SASS_CLUSTER_WAIT;
}

/*
 * May an instruction of a kernel come to a barrier without waiting, or lead to code that is not searched?  Who comes to
 * the barrier of the cluster waits by the next instruction, or by one that is further away.
 */
static bool may_arrive_by(const struct waits_sass *s, const struct waits_sass *before, const struct code_symbol *kernel,
			  uint64_t pc, const struct unit *u)
{
	uint64_t to = pc + (uint64_t)s->target;

	if (waits_for_cluster(u) && before->op == WAITS_SASS_CLUSTER_ARRIVE && s->op != WAITS_SASS_CLUSTER_WAIT)
		return true;
	if (s->op == WAITS_SASS_COPY_ARRIVES)
		return u->object;
	if (s->op == WAITS_SASS_ARRIVE)
		return u->at.op == WAITS_SASS_BARRIER && !u->object &&
		       (s->id_register != WAITS_SASS_NO_REGISTER || s->id == u->at.id);
	return s->op == WAITS_SASS_TRANSFER &&
	       (!s->has_target || to < kernel->address || to - kernel->address >= kernel->size);
}

static bool may_arrive_in(struct look *l, const struct unit *u, const struct code_symbol *kernel)
{
	const char *arch = look_arch(l, u->w);
	struct waits_sass before = { 0 };
	uint8_t code[SEARCH_STEP];

	for (uint64_t at = 0, n; at < kernel->size; at += n) {
		n = kernel->size - at < SEARCH_STEP ? kernel->size - at : SEARCH_STEP;
		if (code_bytes(&l->code, kernel->address + at, code, n) < 0)
			return true;
		for (uint64_t k = 0; k + WAITS_SASS_BYTES <= n; k += WAITS_SASS_BYTES) {
			struct waits_sass s;

			if (waits_sass_read(arch, code + k, WAITS_SASS_BYTES, &s) < 0 ||
			    may_arrive_by(&s, &before, kernel, kernel->address + at + k, u))
				return true;
			before = s;
		}
	}
	return false;
}

/* The answer for a place of the code is kept: blocks that wait there are many. */
bool warps_may_arrive(struct look *l, const struct unit *u)
{
	struct look_code *c = &l->sites[u->w->site];
	struct code_symbol kernel;

	if (c->is_judged)
		return c->may_arrive;
	c->is_judged = true;
	c->may_arrive = true;
	if (u->w->kernel < l->places.n_kernels &&
	    code_function(&l->code, l->places.kernels[u->w->kernel].address, &kernel) == 0 && kernel.size &&
	    kernel.size <= SEARCH_BYTES && u->w->pc >= kernel.address && u->w->pc - kernel.address < kernel.size)
		c->may_arrive = may_arrive_in(l, u, &kernel);
	return c->may_arrive;
}

/* Warps whose lanes are all at the barrier. */
static uint32_t warps_at(const struct block *b, const struct unit *first)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];
		bool is_first = !i || u[-1].warp != u->warp, all = true;

		for (uint32_t k = i; is_first && all && k < b->n_units && b->units[k].warp == u->warp; k++)
			all = b->units[k].does == DOES_WAIT && is_same_place(&b->units[k], first);
		n += is_first && all;
	}
	return n;
}

static enum waits_sass_missing missing_of(struct look *l, const struct block *b, const struct unit *first,
					  uint32_t waiting)
{
	struct waits_sass_barrier s = { .count = first->at.count, .waiting = waiting };
	enum waits_sass_missing m;

	s.others = b->n - s.waiting;
	s.may_arrive = s.count && (b->undecoded || b->cut || warps_may_arrive(l, first));
	m = waits_sass_missing(&s);
	return m == WAITS_SASS_MISSING_ALL && (b->undecoded || b->cut) ? WAITS_SASS_MISSING_SOME : m;
}

bool warps_is_closed(struct look *l, const struct block *b, uint32_t place)
{
	const struct unit *first = b->places[place].first;

	if (first->object || is_for_lanes(first))
		return true;
	/* Blocks of the cluster decide, which are not looked at here. */
	if (first->at.op == WAITS_SASS_CLUSTER_WAIT)
		return false;
	return missing_of(l, b, first, warps_at(b, first)) != WAITS_SASS_MISSING_NOBODY;
}

/* ------------------------------------------------------------------ in words ----------------- */

/* Which warps are at a place, by their numbers. */
struct numbers {
	uint64_t here;	/* With some lanes at least. */
	uint64_t apart; /* Of them, those of which other lanes are elsewhere. */
	uint32_t lanes; /* Of the only such warp, those that are here; 0: there are several. */
};

static bool has_number(const struct wave *warp)
{
	return warp->has_wave_in_group && warp->wave_in_group < WARPS_NUMBERED;
}

static struct numbers numbers_at(const struct block *b, uint32_t place)
{
	struct numbers n = { 0 };
	uint64_t elsewhere = 0;

	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];
		uint64_t bit;

		if (!has_number(u->warp))
			continue;
		bit = UINT64_C(1) << u->warp->wave_in_group;
		n.here |= u->wait == place ? bit : 0;
		elsewhere |= u->wait == place ? 0 : bit;
	}
	n.apart = n.here & elsewhere;
	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];

		if (has_number(u->warp) && u->wait == place && n.apart == UINT64_C(1) << u->warp->wave_in_group)
			n.lanes |= u->lanes;
	}
	return n;
}

static void put_warps(struct out *o, uint64_t numbers)
{
	out_str(o, numbers & (numbers - 1) ? "warps " : "warp ");
	bit_list_print(numbers, o);
}

const char *warps_text(struct look *l, const struct block *b, uint32_t place)
{
	const struct numbers n = numbers_at(b, place);
	const uint64_t whole = n.here & ~n.apart;
	auto_out struct out o = { 0 };

	if (whole)
		put_warps(&o, whole);
	if (n.apart) {
		out_str(&o, whole ? " and " : "");
		out_str(&o, n.lanes & (n.lanes - 1) ? "lanes " : n.lanes ? "lane " : "lanes");
		bit_list_print(n.lanes, &o);
		out_str(&o, " of ");
		put_warps(&o, n.apart);
	}
	return n.here ? rpc_arena_strdup(l->arena, o.data ? o.data : "") : "warps";
}

/* Of the warps that the block was launched with, those that are not there.  @return whether that is known. */
static bool find_gone(const struct block *b, uint64_t *ret)
{
	uint32_t launched = b->waves->group_waves;

	if (!launched || launched > WARPS_NUMBERED)
		return false;
	*ret = UINT64_MAX >> (WARPS_NUMBERED - launched);
	for (uint32_t i = 0; i < b->n; i++) {
		if (!has_number(&b->waves[i]))
			return false;
		*ret &= ~(UINT64_C(1) << b->waves[i].wave_in_group);
	}
	return true;
}

/* @param link  Between the warps and what is said of them.  @return NULL: none has exited, or that is not known. */
static const char *exited_text(struct look *l, const struct block *b, const char *link)
{
	auto_out struct out o = { 0 };
	uint64_t gone;

	if (!find_gone(b, &gone) || !gone)
		return NULL;
	put_warps(&o, gone);
	out_fmt(&o, "%s %s exited", link, gone & (gone - 1) ? "have" : "has");
	return rpc_arena_strdup(l->arena, o.data ? o.data : "");
}

const char *warps_exited_text(struct look *l, const struct block *b)
{
	return exited_text(l, b, "");
}

/* Who of its warps is not there.  @return NULL: that is not known. */
static const char *left_text(struct look *l, const struct block *b)
{
	uint64_t gone;

	if (find_gone(b, &gone) && !gone)
		return "it has no more warps than these";
	return warps_exited_text(l, b);
}

/* Those of a part that wait, as others of it may go on. */
static const char *lanes_text(struct look *l, const struct unit *u)
{
	struct wave w = *u->w;

	w.exec = u->lanes;
	w.lanes = (uint32_t)__builtin_popcount(u->lanes);
	return look_wave_text(l, &w);
}

static const char *who_text(struct look *l, const struct block *b, uint32_t place)
{
	const struct unit *first = b->places[place].first;

	if (is_for_lanes(first))
		return lanes_text(l, first);
	return rpc_arena_printf(l->arena, "%s of %s", warps_text(l, b, place), look_workgroup_text(l, first->warp));
}

/* Threads of a block that have not exited; its last warp need not have 32. */
static uint32_t threads_left(const struct block *b)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		uint32_t lanes = lanes_left(b, &b->waves[i]);

		n += lanes ? (uint32_t)__builtin_popcount(lanes) : WARP_LANES;
	}
	return n;
}

/* Of one that is missing, and waits itself. */
static const char *waits_text(struct look *l, const struct unit *u, const struct rpc_wait_at *at)
{
	const char *who = lanes_text(l, u);

	return rpc_arena_printf(l->arena, "%s, which %s at %s", who, look_verb(who), look_place(l, at));
}

static const char *gone_text(struct look *l, const struct block *b, const struct unit *first, bool may_have_come)
{
	const char *exited = left_text(l, b);
	const uint32_t left = threads_left(b);
	struct rpc_wait_at at = look_at(l, first->w);

	return rpc_arena_printf(l->arena, "%s: named barrier %u, at %s, needs %u threads, and only %u %s left%s%s%s",
				look_workgroup_text(l, first->warp), first->at.id, look_place(l, &at), first->at.count,
				left, left == 1 ? "is" : "are", exited ? ": " : "", exited ? exited : "",
				may_have_come ? ", unless some came without waiting and exited then" : "");
}

/* ------------------------------------------------------------------ names and states --------- */

uint64_t warps_name_of(const struct wave *w, uint64_t place)
{
	const uint64_t words[] = { w->gpu_id,	    w->queue_id,     w->has_dispatch ? w->dispatch + 1 : 0,
				   w->workgroup[0], w->workgroup[1], w->workgroup[2], place, 3 };

	return hash_bytes(hash_secret(), words, sizeof(words));
}

/* All that is seen of the units of a block that wait, or of all of them, and which of its warps are left. */
static uint64_t state_of(const struct block *b, bool all)
{
	uint64_t h = 1;

	for (uint32_t i = 0; i < b->n; i++)
		h = hash_mix(h ^ ((uint64_t)b->waves[i].has_wave_in_group << 32 | b->waves[i].wave_in_group));
	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];

		if (!all && u->does != DOES_WAIT)
			continue;
		h = hash_mix(h ^ (u->w->pc + u->warp->wave_in_group)) ^ u->lanes;
		h = hash_mix(h ^ u->does ^ (uint64_t)u->w->reasons << 8);
		h = hash_mix(h ^ u->told ^ (uint64_t)u->awaited << 8) ^ u->ready;
		if (u->object)
			h = hash_mix(h ^ u->object->word) ^ u->object->address;
	}
	return h;
}

uint64_t warps_state_of(const struct block *b)
{
	return state_of(b, true);
}

/* Blocks of one grid that are alike are told as one. */
static uint64_t shape_of(struct look *l, const struct block *b)
{
	const struct wave *w = b->waves;
	const uint64_t words[] = { w->gpu_id, w->queue_id, w->has_dispatch ? w->dispatch + 1 : 0, b->n,
				   state_of(b, true), b->is_over, b->is_old, b->stands, clusters_state_of(l, b) };

	return hash_bytes(hash_secret(), words, sizeof(words)) | 1;
}

/*
 * Between the last lane that comes to a WARPSYNC and the release of all, a warp that is well looks like one that is
 * stuck: PTX has lanes wait for the same mask, and not for the same instruction.  Only time tells the two apart.
 */
static void find_standing(struct look *l, struct block *b)
{
	const uint64_t state = state_of(b, false);

	for (uint32_t i = 0; i < b->n_places; i++) {
		const struct unit *first = b->places[i].first;

		if (first->all_came &&
		    look_is_same(l, hash_mix(warps_name_of(b->waves, i)), hash_mix(state ^ first->all_came)) &&
		    l->apart_ns >= LOOK_STILL_NS)
			b->stands |= UINT32_C(1) << i;
	}
}

_Static_assert(WAITS_MAX <= 32, "each place of a block has a bit");

/* ------------------------------------------------------------------ waits -------------------- */

static void append_party(struct look *l, struct rpc_wait *to, const struct rpc_wait_party *party)
{
	if (!to->missing)
		to->missing = rpc_arena_array(l->arena, LOOK_PARTIES_MAX, sizeof(*to->missing));
	if (to->missing && to->n_missing < LOOK_PARTIES_MAX)
		to->missing[to->n_missing++] = *party;
}

static void add_party(struct look *l, const struct block *b, size_t wait, const struct unit *u,
		      enum waits_confidence confidence, bool any)
{
	struct rpc_wait *to = &l->waits[wait].rpc;
	struct rpc_wait_at at = look_at(l, u->w);
	size_t other = u->wait == LOOK_NONE ? LOOK_NONE : b->places[u->wait].wait;
	uint32_t node = other == LOOK_NONE ? look_add_wave(l, u->w, &at) : l->waits[other].node;
	const bool waits = other != LOOK_NONE || look_grid_of(l, u->w) != LOOK_NONE;

	if (node == LOOK_NONE)
		return;
	look_add_edge(l, l->waits[wait].node, node, confidence, any);
	to->missing_count++;
	append_party(l, to, &(struct rpc_wait_party){
		.what = waits ? waits_text(l, u, &at) : l->nodes[node].rpc.text,
		.has_ref = true,
		.ref = wave_ref((struct wave *)u->warp),
		.state = waits ? RPC_WAIT_END_UNKNOWN : (enum rpc_wait_end)l->nodes[node].node.end,
		.has_at = true,
		.at = at,
	});
}

/* By the place alone it is not proven that lanes wait: those that were let go are there until they execute again. */
void warps_add_party(struct look *l, const struct block *b, size_t wait, const struct unit *u, bool any)
{
	add_party(l, b, wait, u, WAITS_INFERRED, any);
}

void warps_add_exited(struct look *l, const struct block *b, size_t wait)
{
	const char *what = exited_text(l, b, ", which");

	if (what)
		append_party(l, &l->waits[wait].rpc,
			     &(struct rpc_wait_party){ .what = what, .state = RPC_WAIT_END_GONE });
}

void warps_add_others(struct look *l, size_t wait, const char *what)
{
	append_party(l, &l->waits[wait].rpc, &(struct rpc_wait_party){ .what = what, .state = RPC_WAIT_END_UNKNOWN });
}

void warps_add_waiting(struct look *l, const struct block *b, size_t wait, uint32_t place)
{
	struct rpc_wait_at at = look_at(l, b->places[place].first->w);
	const char *who = warps_text(l, b, place);

	if (!who)
		return;
	append_party(l, &l->waits[wait].rpc, &(struct rpc_wait_party){
		.what = rpc_arena_printf(l->arena, "%s, which %s at %s", who, look_verb(who), look_place(l, &at)),
		.state = RPC_WAIT_END_UNKNOWN,
		.has_at = true,
		.at = at,
	});
}

/*
 * Nobody can come any more.  A warp that was let go is still at its barrier until it executes again, and those that
 * came last may have exited meanwhile: only time tells.
 * @return whether it has.
 */
static bool add_nobody(struct look *l, const struct block *b, size_t wait, const struct unit *first, bool may_have_come)
{
	bool is_old = !may_have_come && l->before && !l->waits[wait].changed && l->apart_ns >= LOOK_STILL_NS;
	uint32_t node = look_add_node(l, RPC_WAIT_NODE_KIND_NOBODY, is_old ? WAITS_END_GONE : WAITS_END_UNKNOWN,
				      gone_text(l, b, first, may_have_come));

	look_add_edge(l, l->waits[wait].node, node, WAITS_INFERRED, false);
	return is_old;
}

/* A barrier may need more warps than its block was given: nobody can be those. */
static void add_never_launched(struct look *l, const struct block *b, struct rpc_wait *to)
{
	const uint32_t launched = b->waves->group_waves;
	const uint32_t n = launched && launched < to->expects ? to->expects - launched : 0;

	if (n)
		append_party(l, to, &(struct rpc_wait_party){
			.what = rpc_arena_printf(l->arena, "%u %s, which its block was not launched with", n,
						 n == 1 ? "warp" : "warps"),
			.state = RPC_WAIT_END_NOT_STARTED,
		});
}

/* Of a barrier for which too few are left: who would have been enough. */
static void add_those_gone(struct look *l, const struct block *b, uint32_t place, enum waits_sass_missing m)
{
	const uint32_t launched = b->waves->group_waves;
	size_t wait = b->places[place].wait;
	struct rpc_wait *to = &l->waits[wait].rpc;

	/* Of a block with more warps than have to come, some of those that exited had nothing to do with it. */
	to->candidates = !add_nobody(l, b, wait, b->places[place].first, m == WAITS_SASS_MISSING_MAY_EXITED) ||
			 !launched || launched > to->expects;
	warps_add_exited(l, b, wait);
	/* It does not open whatever becomes of these: none of them is its cause. */
	for (uint32_t i = 0; i < b->n_units; i++)
		if (b->units[i].wait != place)
			warps_add_party(l, b, wait, &b->units[i], true);
	add_never_launched(l, b, to);
}

static void add_barrier_parties(struct look *l, const struct block *b, uint32_t place)
{
	const struct unit *first = b->places[place].first;
	const uint32_t there = warps_at(b, first);
	enum waits_sass_missing m = missing_of(l, b, first, there);
	size_t wait = b->places[place].wait;
	struct rpc_wait *to = &l->waits[wait].rpc;

	to->has = there;
	to->expects = first->at.count ? (first->at.count + WARP_LANES - 1) / WARP_LANES : b->n;
	/* Those that were let go stand there beside those that came since. */
	to->has_has = to->has_expects = to->has <= to->expects;
	to->confidence = m == WAITS_SASS_MISSING_NOBODY ? RPC_CONFIDENCE_UNKNOWN : RPC_CONFIDENCE_INFERRED;
	to->candidates = m == WAITS_SASS_MISSING_SOME;
	if (m == WAITS_SASS_MISSING_EXITED || m == WAITS_SASS_MISSING_MAY_EXITED)
		add_those_gone(l, b, place, m);
	for (uint32_t i = 0; (m == WAITS_SASS_MISSING_ALL || m == WAITS_SASS_MISSING_SOME) && i < b->n_units; i++)
		if (b->units[i].wait != place)
			warps_add_party(l, b, wait, &b->units[i], to->candidates);
	to->has_candidates = to->candidates;
	/* Lanes of one warp may be at several places, and those that have exited are one party. */
	if (to->has_has)
		to->missing_count = to->expects - to->has;
}

/*
 * That lanes at different instructions do not meet follows from no documentation: what proves it is that all of them
 * have come, as the hardware says, and stay.
 */
static enum waits_confidence lanes_confidence(const struct block *b, uint32_t place)
{
	const struct unit *first = b->places[place].first;

	if (first->told == LANES_DOUBTFUL)
		return WAITS_UNKNOWN;
	if (first->at.op == WAITS_SASS_CONVERGE)
		return first->told == LANES_BLOCKED ? WAITS_PROVEN : WAITS_INFERRED;
	return b->stands >> place & 1 ? WAITS_PROVEN : WAITS_INFERRED;
}

static void add_lane_parties(struct look *l, const struct block *b, uint32_t place)
{
	const enum waits_confidence known = lanes_confidence(b, place);
	const struct unit *first = b->places[place].first;
	struct rpc_wait *to = &l->waits[b->places[place].wait].rpc;
	uint32_t missing = lanes_missing(b, first);

	to->confidence = (enum rpc_confidence)known;
	to->candidates = to->has_candidates = !has_lanes(first);
	for (uint32_t i = 0; i < b->n_units; i++)
		if (b->units[i].warp == first->warp && b->units[i].lanes & missing)
			add_party(l, b, b->places[place].wait, &b->units[i], known, !has_lanes(first));
}

static void add_evidence(struct look *l, struct rpc_wait *to, const struct unit *first)
{
	const struct look_code *c = &l->sites[first->w->site];
	auto_out struct out o = { 0 };

	for (uint32_t i = 0; i < c->n; i++)
		out_fmt(&o, "%02x", c->bytes[i]);
	look_add_evidence(l, to, "instruction", rpc_arena_strdup(l->arena, o.data ? o.data : ""));
	if (first->at.op == WAITS_SASS_BARRIER)
		look_add_evidence(l, to, "barrier", rpc_arena_printf(l->arena, "%u", first->at.id));
	if (first->at.op == WAITS_SASS_BARRIER && first->at.count)
		look_add_evidence(l, to, "threads", rpc_arena_printf(l->arena, "%u", first->at.count));
	if (first->at.op == WAITS_SASS_WARP_SYNC && has_mask(first))
		look_add_evidence(l, to, "lanes", rpc_arena_printf(l->arena, "0x%x", first->at.mask));
	if (first->told == LANES_DOUBTFUL)
		look_add_evidence(l, to, "convergence barriers", "what the driver tells of them contradicts itself");
	else if (first->told == LANES_BLOCKED && first->at.op == WAITS_SASS_CONVERGE)
		look_add_evidence(l, to, "convergence barriers",
				  rpc_arena_printf(l->arena, "blocked at B%u for lanes 0x%x", first->at.id, first->awaited));
	else if (first->told == LANES_BLOCKED)
		look_add_evidence(l, to, "convergence barriers",
				  rpc_arena_printf(l->arena, "blocked with lanes 0x%x", first->awaited));
}

static enum rpc_wait_kind kind_of(const struct unit *u)
{
	if (u->object)
		return RPC_WAIT_KIND_MBARRIER;
	if (is_for_lanes(u))
		return RPC_WAIT_KIND_WARP_SYNC;
	if (u->at.op == WAITS_SASS_CLUSTER_WAIT)
		return RPC_WAIT_KIND_CLUSTER;
	return u->at.count || u->at.id ? RPC_WAIT_KIND_NAMED_BARRIER : RPC_WAIT_KIND_BARRIER;
}

static void note(struct look *l, const struct block *b, uint32_t place, size_t wait)
{
	struct rpc_wait *to = &l->waits[wait].rpc;
	const struct wave *last = NULL;

	for (uint32_t i = 0; i < b->n_units; i++) {
		const struct unit *u = &b->units[i];

		if (u->wait != place)
			continue;
		look_note(l, u->warp, wait);
		to->waves += u->warp != last;
		last = u->warp;
	}
	to->alike++;
}

static void add_wait(struct look *l, struct block *b, uint32_t place, uint64_t shape)
{
	const struct unit *first = b->places[place].first;
	size_t wait = l->n_waits;
	struct look_wait *w = look_add_wait(l, kind_of(first),
					    is_for_lanes(first) ? RPC_WAIT_NODE_KIND_LANES :
								  RPC_WAIT_NODE_KIND_WORKGROUP,
					    who_text(l, b, place), warps_name_of(b->waves, place), state_of(b, false));
	const char *text;

	if (!w)
		return;
	b->places[place].wait = wait;
	w->first = b->waves;
	w->shape = shape;
	look_tell_wave(l, &w->rpc, first->w);
	text = rpc_arena_printf(l->arena, "%s, at %s,", w->rpc.who, look_place(l, &w->rpc.at));
	if (text)
		l->nodes[w->node].rpc.text = text;
	if (first->object) {
		mbarriers_describe(l, first, &w->rpc);
	} else {
		w->rpc.at.instruction = waits_sass_name(first->at.op);
		add_evidence(l, &w->rpc, first);
	}
	note(l, b, place, wait);
	if (waits_for_cluster(first))
		clusters_note(l, b, first, wait);
}

/* ------------------------------------------------------------------ all of them -------------- */

/* @return whether a block like this one was told. */
static bool is_told(struct look *l, const struct block *b, uint64_t shape)
{
	uint32_t place = 0;

	for (size_t i = 0; i < l->n_waits && place < b->n_places; i++) {
		struct look_wait *w = &l->waits[i];

		if (!w->first || w->shape != shape)
			continue;
		note(l, b, place, i);
		/* One of them that has moved shows that all of them may. */
		w->changed |= !look_is_same(l, warps_name_of(b->waves, place), state_of(b, false)) && l->before;
		place++;
	}
	return place;
}

void warps_read_block(struct look *l, struct block *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const struct wave *w = &b->waves[i];
		const uint32_t first = b->n_units;

		for (uint32_t k = 0; k < wave_n_parts(w); k++)
			add_unit(l, b, &w->parts->list[k], w);
		if (!wave_n_parts(w))
			add_unit(l, b, w, w);
		find_going_on(l, &b->units[first], b->n_units - first);
	}
	for (uint32_t i = 0; i < b->n_units; i++)
		find_place(b, &b->units[i]);
}

static void look_at_block(struct look *l, struct block *b)
{
	uint64_t shape;

	warps_read_block(l, b);
	if (b->undecoded > b->unread)
		look_undecoded(l, "their code could not be read, or their barrier is in a register",
			       b->undecoded - b->unread);
	if (b->unread)
		look_undecoded(l, "the mbarrier that they wait for could not be read, or is none", b->unread);
	if (b->cut)
		look_undecoded(l, "lanes of their block are at more places than are looked at", b->n);
	mbarriers_judge(l, b);
	find_standing(l, b);
	shape = shape_of(l, b);
	if (!b->n_places || is_told(l, b, shape))
		return;
	for (uint32_t i = 0; i < b->n_places; i++)
		add_wait(l, b, i, shape);
	for (uint32_t i = 0; i < b->n_places; i++) {
		const struct unit *first = b->places[i].first;

		if (b->places[i].wait == LOOK_NONE || first->object || waits_for_cluster(first))
			continue;
		if (is_for_lanes(first))
			add_lane_parties(l, b, i);
		else
			add_barrier_parties(l, b, i);
	}
	mbarriers_add_parties(l, b);
}

void look_at_warps(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	mbarriers_begin_look(l);
	for (size_t i = 0, end; i < t->n_waves; i = end) {
		struct block b = { .waves = &t->waves[i] };

		end = i + 1;
		while (end < t->n_waves && t->waves[end].leader == t->waves[i].leader)
			end++;
		b.n = (uint32_t)(end - i);
		if (waits_sass_known(look_arch(l, b.waves)))
			look_at_block(l, &b);
		else
			look_undecoded(l, "the instructions of their device are not known", b.n);
	}
	mbarriers_end_look(l);
}
