/* SPDX-License-Identifier: MIT */
/* Every warp of the process, as waves: stop the devices, read their state, let them run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/cuda/cuda.h"
#include "agentd/worker/snapshot/registers.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"

#define GRIDS_MAX    4096u
#define MISSING_MAX  (2 * CUDBGSHIM_MAX_DEVICES + 8 + SPINS_MISSING_MAX)

/* A grid that has warps on a device; several thousand warps are of a few grids. */
struct grid {
	uint32_t dev;
	uint64_t id;
	bool known;
	struct cudbgshim_grid facts;
};

/* What a look leaves behind when the devices run again. */
struct look {
	struct target_cuda *c;
	const struct target_waves_from *from;
	struct rpc_arena *a;
	struct target_waves *ret;
	struct grid *grids;
	size_t n_grids, grids_capacity;
	uint64_t deadline_ns;
	uint64_t read; /* Devices whose state is at hand, one bit each. */
	struct cuda_asked **asked; /* Where the next one belongs. */
	uint32_t unknown, late; /* Warps that are apart, and of whose lanes exceptions are not known. */
};

static void add_missing(struct look *l, const char *text)
{
	if (text && l->ret->missing && l->ret->n_missing < MISSING_MAX)
		l->ret->missing[l->ret->n_missing++] = text;
}

int cuda_read_state(struct target_cuda *c, struct cuda_device *d)
{
	int r = 0;

	d->state = NULL;
	if (!d->reader)
		r = cudbgshim_state_reader_create(c->shim, d->d.gpu_id, &d->reader);
	return r < 0 ? r : cudbgshim_state_reader_read(d->reader, &d->state);
}

/* ------------------------------------------------------------------ one warp ----------------- */

void cuda_warp_of(const struct cuda_device *d, uint32_t sm, uint32_t warp, struct cuda_warp *ret)
{
	const struct cudbgshim_state *s = d->state;
	size_t at = cudbgshim_state_index(s, sm, warp);

	*ret = (struct cuda_warp){
		.whole = &s->warps[at],
		.pcs = &s->lane_pc[at * s->n_lanes],
		.exceptions = &s->lane_exception[at * s->n_lanes],
		.gpu_id = d->d.gpu_id,
		.sm = sm,
		.index = warp,
		.n_lanes = s->n_lanes,
		.lanes = s->warps[at].valid_lanes,
		.broken = s->broken_warps[sm] >> warp & 1,
	};
}

/* A batched answer has the same exception for all lanes; some lane has one. */
static bool is_shared(const struct cuda_warp *w)
{
	for (uint32_t left = w->lanes; left; left &= left - 1)
		if (!w->exceptions[__builtin_ctz(left)])
			return false;
	return w->lanes;
}

/* What only some lane of a warp that is apart raised must not be told of all of its parts. */
static void take_first(struct cuda_warp *w, struct cudbgshim_lanes *lanes)
{
	uint32_t first = cuda_warp_first_lane(w), code = w->exceptions[first];

	if (!cuda_warp_is_apart(w))
		return;
	*lanes = (struct cudbgshim_lanes){ 0 };
	lanes->exception[first] = code;
	w->exceptions = lanes->exception;
}

bool cuda_warp_ask_exceptions(struct target_cuda *c, struct cuda_warp *w,
			      struct cudbgshim_lanes *lanes)
{
	const struct cudbgshim_place at = { .dev = w->gpu_id, .sm = w->sm, .warp = w->index };
	struct cudbgshim_warp plain;

	if (!is_shared(w))
		return true;
	if (cudbgshim_read_warp(c->shim, &at, &plain, lanes) < 0) {
		take_first(w, lanes);
		return false;
	}
	w->exceptions = lanes->exception;
	return true;
}

/*
 * Which lanes raised the exception of a warp that is apart?  The address of the exception does not
 * say it either.
 */
static bool find_lanes(struct target_cuda *c, uint64_t until, struct cuda_warp *w,
		       struct cudbgshim_lanes *lanes)
{
	if (!is_shared(w) || !cuda_warp_is_apart(w))
		return true;
	if (clock_now_ns() < until)
		return cuda_warp_ask_exceptions(c, w, lanes);
	take_first(w, lanes);
	return false;
}

/* @return the queue_id of the grid's context, or else of the device's first. */
static uint32_t queue_of(struct target_cuda *c, uint32_t dev, const struct cudbgshim_grid *g)
{
	struct cuda_context *x = g ? cuda_context_get(c, g->context, dev) : NULL;

	for (size_t i = 0; !x && i < c->n_contexts; i++)
		if (c->contexts[i].dev == dev)
			x = &c->contexts[i];
	return x ? x->number : UINT32_MAX;
}

bool cuda_fill_wave(struct target_cuda *c, const struct cuda_device *d, uint32_t sm, uint32_t warp,
		    const struct cudbgshim_grid *g, uint64_t until, struct cuda_asked *asked,
		    struct wave *ret)
{
	struct cudbgshim_lanes lanes;
	struct cuda_warp w;
	bool known;

	cuda_warp_of(d, sm, warp, &w);
	known = find_lanes(c, until, &w, &lanes);
	asked->has = w.exceptions == lanes.exception;
	if (asked->has)
		memcpy(asked->exceptions, lanes.exception, sizeof(asked->exceptions));
	cuda_warp_fill_wave(&w, cuda_warp_speaker(&w), ret);
	ret->queue_id = queue_of(c, w.gpu_id, g);
	if (g) {
		ret->kernel_handle = g->entry;
		cuda_warp_add_number(w.n_lanes, g->block_dim, 0, w.whole->base_thread, ret);
	}
	return known;
}

void cuda_wave_add_parts(const struct cuda_device *d, const struct cuda_asked *asked,
			 struct cuda_parts *parts, struct wave *wave)
{
	struct cuda_warp w;

	cuda_warp_of(d, wave->unit, wave->index, &w);
	if (asked && asked->has)
		w.exceptions = asked->exceptions;
	cuda_warp_add_parts(&w, cuda_warp_speaker(&w), parts, wave);
}

uint64_t cuda_warps_of_block(const struct cudbgshim_warp *warps, uint64_t left)
{
	const struct cudbgshim_warp *first = &warps[__builtin_ctzll(left)];
	uint64_t found = 0;

	for (; left; left &= left - 1) {
		const struct cudbgshim_warp *w = &warps[__builtin_ctzll(left)];

		if (w->grid_id == first->grid_id &&
		    memcmp(&w->block, &first->block, sizeof(w->block)) == 0)
			found |= UINT64_C(1) << __builtin_ctzll(left);
	}
	return found;
}

/* ------------------------------------------------------------------ while all stand still ---- */

static struct grid *find_grid(struct look *l, uint32_t dev, uint64_t id)
{
	for (size_t i = l->n_grids; i--;)
		if (l->grids[i].id == id && l->grids[i].dev == dev)
			return &l->grids[i];
	return NULL;
}

static void ask_grid(struct look *l, uint32_t dev, uint64_t id)
{
	struct grid *g;

	if (find_grid(l, dev, id) || l->n_grids == GRIDS_MAX ||
	    vec_reserve(&l->grids, l->n_grids, 1, &l->grids_capacity, sizeof(*l->grids)) < 0)
		return;
	g = &l->grids[l->n_grids++];
	*g = (struct grid){ .dev = dev, .id = id };
	g->known = cudbgshim_get_grid(l->c->shim, dev, id, &g->facts) == 0;
}

static void ask_grids(struct look *l, const struct cuda_device *d)
{
	const struct cudbgshim_state *s = d->state;
	uint64_t last = 0;
	bool has_last = false;

	for (uint32_t sm = 0; sm < s->n_sms; sm++)
		for (uint64_t left = s->valid_warps[sm]; left; left &= left - 1) {
			uint32_t warp = (uint32_t)__builtin_ctzll(left);
			uint64_t id = s->warps[cudbgshim_state_index(s, sm, warp)].grid_id;

			/* Neighbours are mostly of the same grid. */
			if (!has_last || id != last)
				ask_grid(l, d->d.gpu_id, id);
			has_last = true;
			last = id;
		}
}

static int read_device(struct look *l, struct cuda_device *d)
{
	int r;

	if (clock_now_ns() >= l->deadline_ns) {
		l->ret->budget_exceeded = true;
		add_missing(l, rpc_arena_printf(l->a, "device %u: the stop budget was used up",
						d->d.gpu_id));
		return 0;
	}
	r = cuda_read_state(l->c, d);
	if (r < 0 && (r == -ENOMEM || cudbgshim_is_over(l->c->shim)))
		return r;
	if (r < 0) {
		const struct cudbgshim_call *last = cudbgshim_last(l->c->shim);
		const char *words = cudbgshim_result_words(last->result);

		add_missing(l, rpc_arena_printf(l->a, "device %u: %s: %s", d->d.gpu_id,
						last->name ? last->name : "state",
						words ? words : "the driver's answer makes no sense"));
		return 0;
	}
	l->read |= UINT64_C(1) << d->d.gpu_id;
	ask_grids(l, d);
	return 0;
}

/* ------------------------------------------------------------------ afterwards ---------------- */

/* The parts are made when the devices run again; whoever lacks one is told as it is known then. */
static void keep_asked(struct look *l, const struct cuda_asked *asked)
{
	struct cuda_asked *kept = rpc_arena_array(l->a, 1, sizeof(*kept));

	if (!kept)
		return;
	*kept = *asked;
	kept->next = NULL;
	kept->wave = (uint32_t)l->ret->n_waves - 1;
	*l->asked = kept;
	l->asked = &kept->next;
}

static void add_wave(struct look *l, const struct cuda_device *d, uint32_t sm, uint32_t warp,
		     uint32_t leader)
{
	size_t at = cudbgshim_state_index(d->state, sm, warp);
	const struct grid *g = find_grid(l, d->d.gpu_id, d->state->warps[at].grid_id);
	struct wave *to = &l->ret->waves[l->ret->n_waves++];

	struct cuda_asked asked;

	if (!cuda_fill_wave(l->c, d, sm, warp, g && g->known ? &g->facts : NULL, l->deadline_ns,
			    &asked, to)) {
		l->unknown++;
		l->late += clock_now_ns() >= l->deadline_ns;
	}
	to->leader = leader;
	if (asked.has)
		keep_asked(l, &asked);
}

static void add_missing_lanes(struct look *l)
{
	if (l->unknown)
		add_missing(l, rpc_arena_printf(
				       l->a,
				       "exceptions of %u %s: which lanes raised them: %s",
				       l->unknown, l->unknown == 1 ? "wave" : "waves",
				       l->late ? "the stop budget was used up" :
						 "the driver does not say"));
	l->ret->budget_exceeded |= l->late > 0;
}

/* All warps of a block are on the same multiprocessor; they come one behind the other. */
static void add_sm(struct look *l, const struct cuda_device *d, uint32_t sm)
{
	const struct cudbgshim_warp *warps =
		&d->state->warps[cudbgshim_state_index(d->state, sm, 0)];
	uint64_t left = d->state->valid_warps[sm];

	while (left) {
		uint32_t leader = (uint32_t)l->ret->n_waves;
		uint64_t block = cuda_warps_of_block(warps, left);

		left &= ~block;
		for (; block; block &= block - 1)
			add_wave(l, d, sm, (uint32_t)__builtin_ctzll(block), leader);
	}
}

static int make_waves(struct look *l)
{
	struct target_cuda *c = l->c;
	size_t n = 0;

	for (size_t i = 0; i < c->n_devices; i++)
		for (uint32_t sm = 0; l->read >> i & 1 && sm < c->devices[i].state->n_sms; sm++)
			n += (size_t)__builtin_popcountll(c->devices[i].state->valid_warps[sm]);
	l->ret->waves = rpc_arena_array(l->a, n, sizeof(*l->ret->waves));
	if (!l->ret->waves)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_devices; i++)
		for (uint32_t sm = 0; l->read >> i & 1 && sm < c->devices[i].state->n_sms; sm++)
			add_sm(l, &c->devices[i], sm);
	add_missing_lanes(l);
	for (size_t i = 0; i < l->n_grids; i++)
		if (!l->grids[i].known)
			add_missing(l,
				    rpc_arena_printf(
					    l->a, "device %u: grid %llu is not known to the driver",
					    l->grids[i].dev, (unsigned long long)l->grids[i].id));
	return 0;
}

/* Registers were read during the stop, with what was known of their waves by then. */
static void tell_registers(struct rpc_arena *a, struct target_waves *ret)
{
	for (size_t i = 0; i < ret->n_registers; i++) {
		struct rpc_wave *to = &ret->registers[i].wave;
		size_t k = 0;

		while (k < ret->n_waves && (ret->waves[k].gpu_id != to->gpu_id ||
					    ret->waves[k].unit != to->ref.unit ||
					    ret->waves[k].index != to->ref.index))
			k++;
		if (k < ret->n_waves)
			waves_convert_parts(a, &ret->waves[k], false, to);
	}
}

void cuda_waves_add_parts(struct target_cuda *c, struct rpc_arena *a, struct target_waves *ret)
{
	struct cuda_parts parts = { .arena = a };
	const struct cuda_asked *asked = c->asked;
	const char *missing;

	for (size_t i = 0; i < ret->n_waves; i++) {
		struct wave *w = &ret->waves[i];
		bool is_its = asked && asked->wave == i;

		cuda_wave_add_parts(&c->devices[w->gpu_id], is_its ? asked : NULL, &parts, w);
		asked = is_its ? asked->next : asked;
	}
	c->asked = NULL;
	tell_registers(a, ret);
	missing = cuda_parts_missing(&parts);
	if (missing && ret->missing && ret->n_missing < MISSING_MAX)
		ret->missing[ret->n_missing++] = missing;
}

void cuda_waves_stopped(const struct target_waves_from *from, uint64_t stopped_us,
			uint64_t agent_us, struct rpc_arena *a, struct target_waves *ret)
{
	ret->stopped_us = stopped_us;
	ret->agent_us = agent_us;
	ret->stops = rpc_arena_array(a, from->n_queues, sizeof(*ret->stops));
	for (size_t i = 0; ret->stops && i < from->n_queues; i++) {
		ret->stops[i].has_stopped_us = !from->queues[i].suspended;
		ret->stops[i].stopped_us = stopped_us;
	}
}

/* ------------------------------------------------------------------ examples ----------------- */

void cuda_read_callers(struct target_cuda *c, const struct cuda_device *d, uint32_t sm,
		       uint32_t warp, struct rpc_arena *a, struct rpc_caller **ret, size_t *ret_n)
{
	struct cudbgshim_place lane = { .dev = d->d.gpu_id, .sm = sm, .warp = warp };
	uint64_t addresses[CUDA_CALLERS_MAX];
	struct cudbgshim_lanes lanes;
	uint32_t depth, in_syscall;
	struct cuda_warp w;

	*ret_n = 0;
	cuda_warp_of(d, sm, warp, &w);
	cuda_warp_ask_exceptions(c, &w, &lanes);
	lane.lane = cuda_warp_speaker(&w);
	if (cudbgshim_read_call_stack(c->shim, &lane, addresses, CUDA_CALLERS_MAX, &depth,
				      &in_syscall) < 0)
		return;
	depth = depth < CUDA_CALLERS_MAX ? depth : CUDA_CALLERS_MAX;
	*ret = rpc_arena_array(a, depth, sizeof(**ret));
	for (; *ret && *ret_n < depth; (*ret_n)++)
		(*ret)[*ret_n] = (struct rpc_caller){ .address = addresses[*ret_n] };
}

static void add_stack(struct look *l, struct wave *w)
{
	struct wave_stack stack = { 0 };

	cuda_read_callers(l->c, &l->c->devices[w->gpu_id], w->unit, w->index, l->a, &stack.callers,
			  &stack.n);
	w->stack = stack.n ? rpc_arena_array(l->a, 1, sizeof(stack)) : NULL;
	if (w->stack)
		*w->stack = stack;
}

static void read_stacks(struct look *l)
{
	struct wave *waves[WAVES_REPRESENTATIVES_MAX];
	size_t n = waves_choose_representatives(l->ret->waves, l->ret->n_waves, waves);

	for (size_t i = 0; i < n; i++) {
		if (clock_now_ns() >= l->deadline_ns) {
			l->ret->budget_exceeded = true;
			add_missing(l, "call stacks: the stop budget was used up");
			return;
		}
		add_stack(l, waves[i]);
	}
}

static void read_examples(struct look *l)
{
	struct wave *waves[WAVES_REPRESENTATIVES_MAX];
	size_t n = waves_choose_representatives(l->ret->waves, l->ret->n_waves, waves);

	l->ret->registers = rpc_arena_array(l->a, n, sizeof(*l->ret->registers));
	for (size_t i = 0; l->ret->registers && i < n; i++) {
		if (clock_now_ns() >= l->deadline_ns) {
			l->ret->budget_exceeded = true;
			add_missing(l, "registers: the stop budget was used up");
			return;
		}
		struct rpc_wave_registers *r = &l->ret->registers[l->ret->n_registers];

		if (cuda_registers_read(l->c, &l->c->devices[waves[i]->gpu_id], waves[i]->unit,
					waves[i]->index, &registers_all, waves[i], l->a, r) < 0) {
			add_missing(l, "registers of a wave: the driver does not give them");
			continue;
		}
		if (r->n_missing)
			add_missing(l, r->missing[0]);
		l->ret->n_registers++;
	}
}

/* ------------------------------------------------------------------ all together ------------- */

static void read_spins(struct look *l)
{
	const char *missing[SPINS_MISSING_MAX];

	cuda_spins_read(l->c, l->deadline_ns, l->a, l->ret, missing);
	for (size_t i = 0; i < SPINS_MISSING_MAX; i++)
		add_missing(l, missing[i]);
}

static int read_all(struct look *l)
{
	struct target_cuda *c = l->c;
	uint64_t devices = cuda_devices_of(l->from);
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_devices; i++)
		if (devices >> i & 1)
			r = read_device(l, &c->devices[i]);
	/* What is read of examples must be of this stop. */
	if (r == 0)
		r = make_waves(l);
	if (r == 0)
		add_missing(l, cuda_exited_add(c, l->read, l->a, l->ret));
	if (r == 0)
		read_stacks(l);
	if (r == 0)
		cuda_arguments_copy(c, l->from, l->deadline_ns, l->a, l->ret);
	if (r == 0 && l->from->registers)
		read_examples(l);
	if (r == 0 && l->from->mbarriers)
		add_missing(l, cuda_mbarriers_read(c, l->deadline_ns, l->a, l->ret));
	if (r == 0 && l->from->mbarriers)
		read_spins(l);
	if (r == 0 && l->from->mbarriers)
		cuda_nccl_read(c, l->deadline_ns, l->a, l->ret);
	/* The last, as it helps in the fewest cases: time may lack for it. */
	if (r == 0 && l->from->mbarriers)
		add_missing(l, cuda_convergence_read(c, l->deadline_ns, l->a, l->ret));
	return r;
}

int cuda_waves_read(struct target_cuda *c, const struct target_waves_from *from,
		    uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret,
		    uint64_t *ret_devices)
{
	struct look l = { .c = c, .from = from, .a = a, .ret = ret, .deadline_ns = deadline_ns,
			  .asked = &c->asked };
	int r;

	c->asked = NULL;
	*ret = (struct target_waves){ .missing = rpc_arena_array(a, MISSING_MAX, sizeof(*ret->missing)) };
	r = read_all(&l);
	if (c->lost_news)
		add_missing(&l, "contexts or code: more than the agent keeps");
	*ret_devices = l.read;
	free(l.grids);
	return r;
}

int cuda_waves(struct target *t, const struct target_waves_from *from, struct rpc_arena *a,
	       struct target_waves *ret, struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	uint64_t began, stopped, read_at, read_devices;
	int r, go;

	*ret = (struct target_waves){ 0 };
	if (!c->shim)
		return 0;
	cuda_arguments_prepare(c);
	began = clock_now_ns();
	r = cuda_stop(c, cuda_devices_of(from), err);
	if (r < 0)
		return r;
	stopped = clock_now_ns();
	r = cuda_waves_read(c, from, began + (uint64_t)from->max_stop_ms * 1000000, a, ret,
			    &read_devices);
	read_at = clock_now_ns();
	if (r < 0)
		cuda_error(c, r, "gpu.snapshot", err);
	go = cuda_go(c, r < 0 ? NULL : err);
	cuda_waves_stopped(from, (clock_now_ns() - began) / 1000, (read_at - stopped) / 1000, a,
			   ret);
	if (r == 0)
		cuda_waves_add_parts(c, a, ret);
	return r < 0 ? r : go;
}
