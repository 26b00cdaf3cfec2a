/* SPDX-License-Identifier: MIT */
/* Registers and memory of one warp. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentd/worker/convergence/convergence.h"
#include "agentd/worker/cuda/cuda.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* ------------------------------------------------------------------ finding it --------------- */

/* One stop, for one warp. */
struct one {
	struct cuda_device *d;
	struct cuda_parts parts;
	struct wave wave;
	uint64_t began_ns, deadline_ns;
};

static void fill_wave(struct target_cuda *c, uint32_t sm, uint32_t warp, struct one *o)
{
	const struct cuda_device *d = o->d;
	size_t at = cudbgshim_state_index(d->state, sm, warp);
	struct cuda_asked asked;
	struct cudbgshim_grid g;
	bool known =
		cudbgshim_get_grid(c->shim, d->d.gpu_id, d->state->warps[at].grid_id, &g) == 0;

	/* Where lanes are missing, the registers say so. */
	(void)cuda_fill_wave(c, d, sm, warp, known ? &g : NULL, o->deadline_ns, &asked, &o->wave);
	cuda_wave_add_parts(d, &asked, &o->parts, &o->wave);
}

/* Search for a warp by what it works on, wherever that is. */
static bool search(struct target_cuda *c, const struct rpc_wave_name *n, struct one *o)
{
	const struct cudbgshim_state *s = o->d->state;

	for (uint32_t sm = 0; sm < s->n_sms; sm++)
		for (uint64_t left = s->valid_warps[sm]; left; left &= left - 1) {
			uint32_t warp = (uint32_t)__builtin_ctzll(left);
			const struct cudbgshim_warp *w =
				&s->warps[cudbgshim_state_index(s, sm, warp)];

			if (w->grid_id != n->dispatch ||
			    memcmp(n->workgroup, &w->block, sizeof(w->block)) != 0)
				continue;
			fill_wave(c, sm, warp, o);
			if (wave_is_named(&o->wave, n))
				return true;
		}
	return false;
}

static int no_such_wave(const struct rpc_wave_name *n, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, "find the wave",
			     "gpu.snapshot with waves lists those there are",
			     "queue %u, unit %u has no such wave now", n->queue_id, n->unit);
}

static int find_wave(struct target_cuda *c, const struct rpc_wave_name *n, struct one *o,
		     struct agent_err *err)
{
	const struct cudbgshim_state *s = o->d->state;

	if (wave_name_check(n, "params.wave", err) < 0)
		return -EINVAL;
	if (wave_name_lasts(n))
		return search(c, n, o) ? 0 : no_such_wave(n, err);
	if (n->unit >= s->n_sms || n->index >= s->n_warps ||
	    !(s->valid_warps[n->unit] >> n->index & 1))
		return no_such_wave(n, err);
	fill_wave(c, n->unit, n->index, o);
	return wave_is_named(&o->wave, n) ? 0 : no_such_wave(n, err);
}

/* ------------------------------------------------------------------ registers ---------------- */

struct live_warp {
	struct target_cuda *c;
	struct cudbgshim_place at;
	struct cudbgshim_dim3 base_thread, block_dim;
};

static int read_words(const void *ctx, enum cuda_words what, uint32_t lane, uint32_t first,
		      uint32_t n, uint32_t *words)
{
	const struct live_warp *l = ctx;
	struct cudbgshim_place at = l->at;
	struct cudbgshim_dim3 thread;
	uint32_t got = n;
	int r = 0;

	at.lane = lane;
	switch (what) {
	case CUDA_WORDS_REGISTERS:
		r = cudbgshim_read_registers(l->c->shim, &at, first, n, words, &got);
		break;
	case CUDA_WORDS_PREDICATES:
		r = cudbgshim_read_predicates(l->c->shim, &at, n, words);
		break;
	case CUDA_WORDS_UNIFORM_REGISTERS:
		r = cudbgshim_read_uniform_registers(l->c->shim, &at, first, n, words);
		break;
	case CUDA_WORDS_UNIFORM_PREDICATES:
		r = cudbgshim_read_uniform_predicates(l->c->shim, &at, n, words);
		break;
	case CUDA_WORDS_CC:
		r = cudbgshim_read_cc(l->c->shim, &at, words);
		break;
	case CUDA_WORDS_THREAD:
		thread = cudbgshim_thread_of_lane(l->base_thread, lane, l->block_dim);
		memcpy(words, (uint32_t[]){ thread.x, thread.y, thread.z }, sizeof(thread));
		break;
	}
	return r < 0 ? r : (int)got;
}

bool cuda_warp_resources(struct target_cuda *c, const struct cudbgshim_place *at,
			 struct cudbgshim_resources *ret)
{
	*ret = (struct cudbgshim_resources){ 0 };
	if (cudbgshim_read_resources(c->shim, at, ret) == 0 && ret->n_registers)
		return true;
	ret->n_registers = c->devices[at->dev].facts.n_registers;
	return false;
}

int cuda_registers_read(struct target_cuda *c, struct cuda_device *d, uint32_t sm, uint32_t warp,
			const struct target_registers_wanted *what, const struct wave *wave,
			struct rpc_arena *a, struct rpc_wave_registers *ret)
{
	struct live_warp l = { .c = c, .at = { .dev = d->d.gpu_id, .sm = sm, .warp = warp } };
	struct cudbgshim_resources resources;
	struct cudbgshim_lanes lanes;
	struct cudbgshim_grid g;
	struct cuda_warp w;
	struct cuda_registers_source from = {
		.warp = &w,
		.n = { [CUDA_WORDS_PREDICATES] = d->facts.n_predicates,
		       [CUDA_WORDS_UNIFORM_REGISTERS] = d->facts.n_uniform_registers,
		       [CUDA_WORDS_UNIFORM_PREDICATES] = d->facts.n_uniform_predicates },
		.read = read_words,
		.ctx = &l,
	};

	cuda_warp_of(d, sm, warp, &w);
	from.no_lanes = !cuda_warp_ask_exceptions(c, &w, &lanes);
	from.is_counted = cuda_warp_resources(c, &l.at, &resources);
	from.n[CUDA_WORDS_REGISTERS] = resources.n_registers;
	from.shared_bytes = resources.shared_size;
	if (cudbgshim_get_grid(c->shim, d->d.gpu_id, w.whole->grid_id, &g) == 0) {
		from.grid = &g;
		l.base_thread = w.whole->base_thread;
		l.block_dim = g.block_dim;
	}
	return cuda_warp_fill_registers(&from, wave, what, a, ret);
}

/* ------------------------------------------------------------------ what warps wait for ------ */

struct waiting_warp {
	struct live_warp warp;
	/* The grid that was asked for last. */
	struct last_grid {
		struct cudbgshim_grid facts;
		uint64_t id;
		uint32_t dev;
		bool known;
	} *last;
};

static bool read_some(const void *ctx, bool is_uniform, uint32_t lane, uint32_t first, uint32_t n, uint32_t *ret)
{
	const enum cuda_words what = is_uniform ? CUDA_WORDS_UNIFORM_REGISTERS : CUDA_WORDS_REGISTERS;

	return read_words(&((const struct waiting_warp *)ctx)->warp, what, lane, first, n, ret) == (int)n;
}

static bool read_shared(const void *ctx, uint32_t lane, uint32_t address, void *buf, uint32_t size)
{
	const struct live_warp *l = &((const struct waiting_warp *)ctx)->warp;
	struct cudbgshim_place at = l->at;

	at.lane = lane;
	return cudbgshim_read_memory(l->c->shim, CUDBGSHIM_SPACE_SHARED, &at, address, buf, size) == 0;
}

static bool read_cluster(const void *ctx, uint32_t ret[3])
{
	const struct waiting_warp *waiting = ctx;
	const struct live_warp *l = &waiting->warp;
	struct last_grid *g = waiting->last;
	struct cuda_warp w;

	cuda_warp_of(&l->c->devices[l->at.dev], l->at.sm, l->at.warp, &w);
	if (!g->known || g->dev != l->at.dev || g->id != w.whole->grid_id) {
		g->dev = l->at.dev;
		g->id = w.whole->grid_id;
		g->known = cudbgshim_get_grid(l->c->shim, g->dev, g->id, &g->facts) == 0;
	}
	return g->known && cuda_warp_cluster(&w, &g->facts, ret);
}

/* Neighbours mostly execute the same image. */
static const struct cuda_module *module_at(const struct target_cuda *c, uint32_t dev, uint64_t pc,
					   const struct cuda_module *last)
{
	if (last && last->dev == dev && pc >= last->start && pc < last->end)
		return last;
	for (size_t i = 0; i < c->n_modules; i++)
		if (c->modules[i].dev == dev && pc >= c->modules[i].start && pc < c->modules[i].end)
			return &c->modules[i];
	return NULL;
}

const char *cuda_mbarriers_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a,
				struct target_waves *ret)
{
	const struct cuda_module *module = NULL;
	struct last_grid last = { .known = false };
	struct mbarriers m;

	if (mbarriers_begin(&m, a, ret) < 0)
		return NULL;
	for (uint32_t i = 0; i < ret->n_waves; i++) {
		const struct wave *w = &ret->waves[i];
		const struct waiting_warp one = {
			.warp = { .c = c, .at = { .dev = w->gpu_id, .sm = w->unit, .warp = w->index } },
			.last = &last,
		};
		const struct mbarrier_source from = { read_some, read_shared, read_cluster, &one };
		struct cuda_warp view;

		module = module_at(c, w->gpu_id, w->pc, module);
		if (!module || !module->mbarriers.n)
			continue;
		cuda_warp_of(&c->devices[w->gpu_id], w->unit, w->index, &view);
		mbarriers_add(&m, i, view.pcs, view.lanes, &module->mbarriers, &from, clock_now_ns() >= deadline_ns);
	}
	return mbarriers_missing(&m, a);
}

/* ------------------------------------------------------------------ for which lanes ---------- */

struct apart {
	struct target_cuda *c;
	const struct target_waves *waves;
};

/* Who executes is at one place: only those who do not can wait for others of their warp. */
static bool is_apart(const void *ctx, uint32_t wave)
{
	const struct apart *p = ctx;
	const struct wave *w = &p->waves->waves[wave];
	struct cuda_warp view;

	cuda_warp_of(&p->c->devices[w->gpu_id], w->unit, w->index, &view);
	return view.lanes & ~view.whole->active_lanes && cuda_warp_is_apart(&view);
}

static int read_convergence(const void *ctx, struct target_convergence *to, uint32_t n)
{
	const struct apart *p = ctx;
	const struct wave *first = &p->waves->waves[to[0].wave];
	uint32_t words[CUDBGSHIM_MAX_WARPS][CUDBGSHIM_CONVERGENCE_WORDS];
	uint64_t warps = 0;
	int r;

	for (uint32_t i = 0; i < n; i++)
		warps |= UINT64_C(1) << p->waves->waves[to[i].wave].index;
	r = cudbgshim_read_convergence(p->c->shim, first->gpu_id, first->unit, warps, words);
	for (uint32_t i = 0; r == 0 && i < n; i++)
		memcpy(to[i].words, words[i], sizeof(to[i].words));
	return r;
}

const char *cuda_convergence_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a,
				  struct target_waves *ret)
{
	const struct apart apart = { .c = c, .waves = ret };
	const struct convergence_source from = { is_apart, read_convergence, &apart };

	return convergence_read(&from, deadline_ns, a, ret);
}

/* ------------------------------------------------------------------ what they poll ----------- */

struct polling_warp {
	struct live_warp warp;
	uint64_t grid;
};

static bool read_one(const void *ctx, bool is_uniform, uint32_t lane, uint32_t number, uint32_t *ret)
{
	const enum cuda_words what = is_uniform ? CUDA_WORDS_UNIFORM_REGISTERS : CUDA_WORDS_REGISTERS;

	return read_words(&((const struct polling_warp *)ctx)->warp, what, lane, number, 1, ret) == 1;
}

/* The driver shows arguments as a space of their own, or else as part of constant bank 0. */
static bool read_argument(const void *ctx, uint32_t offset, uint32_t *ret)
{
	const struct polling_warp *p = ctx;
	struct cudbgshim *shim = p->warp.c->shim;
	uint64_t bank;
	uint32_t size;
	bool good = cudbgshim_read_memory(shim, CUDBGSHIM_SPACE_PARAM, &p->warp.at, offset, ret, sizeof(*ret)) == 0 ||
		    (cudbgshim_get_const_bank(shim, &p->warp.at, p->grid, 0, &bank, &size) == 0 &&
		     (uint64_t)offset + sizeof(*ret) <= size &&
		     cudbgshim_read_memory(shim, CUDBGSHIM_SPACE_GLOBAL, &p->warp.at, bank + offset, ret,
					   sizeof(*ret)) == 0);

	*ret = le32toh(*ret);
	return good;
}

static bool read_polled(const void *ctx, enum waits_sass_space space, uint32_t lane, uint64_t address, void *buf,
			uint32_t size, bool *ret_is_host)
{
	static const enum cudbgshim_space spaces[] = { [WAITS_SASS_GLOBAL] = CUDBGSHIM_SPACE_GLOBAL,
						       [WAITS_SASS_GENERIC] = CUDBGSHIM_SPACE_GENERIC,
						       [WAITS_SASS_SHARED] = CUDBGSHIM_SPACE_SHARED };
	const struct live_warp *l = &((const struct polling_warp *)ctx)->warp;
	struct cudbgshim_place at = l->at;

	at.lane = lane;
	/* A flag that the host sets is mostly in memory of the host, which the driver reads by another call. */
	*ret_is_host = false;
	if (cudbgshim_read_memory(l->c->shim, spaces[space], &at, address, buf, size) == 0)
		return true;
	*ret_is_host = space != WAITS_SASS_SHARED &&
		       cudbgshim_read_memory(l->c->shim, CUDBGSHIM_SPACE_PINNED, &at, address, buf, size) == 0;
	return *ret_is_host;
}

static bool read_grid(const void *ctx, uint32_t ret[3])
{
	const struct polling_warp *p = ctx;
	struct cudbgshim_grid g;

	if (cudbgshim_get_grid(p->warp.c->shim, p->warp.at.dev, p->grid, &g) < 0)
		return false;
	memcpy(ret, (uint32_t[]){ g.grid_dim.x, g.grid_dim.y, g.grid_dim.z }, 3 * sizeof(*ret));
	return true;
}

void cuda_spins_read(struct target_cuda *c, uint64_t deadline_ns, struct rpc_arena *a, struct target_waves *ret,
		     const char *ret_missing[SPINS_MISSING_MAX])
{
	const struct cuda_module *module = NULL;
	struct spins s;

	memset(ret_missing, 0, SPINS_MISSING_MAX * sizeof(*ret_missing));
	if (spins_begin(&s, a, ret) < 0)
		return;
	for (uint32_t i = 0; i < ret->n_waves; i++) {
		const struct wave *w = &ret->waves[i];
		const struct polling_warp one = {
			.warp = { .c = c, .at = { .dev = w->gpu_id, .sm = w->unit, .warp = w->index } },
			.grid = w->dispatch,
		};
		const struct spin_source from = { read_one, read_argument, read_polled, read_grid, &one };
		struct cuda_warp view;

		module = module_at(c, w->gpu_id, w->pc, module);
		if (!module || !module->spins.n)
			continue;
		cuda_warp_of(&c->devices[w->gpu_id], w->unit, w->index, &view);
		spins_add(&s, i, view.pcs, view.lanes, &module->spins, &from, clock_now_ns() >= deadline_ns);
	}
	spins_missing(&s, a, ret_missing);
}

/* ------------------------------------------------------------------ one stop ----------------- */

static int one_begin(struct target_cuda *c, const struct target_waves_from *from,
		     const struct rpc_wave_name *name, struct rpc_arena *a, struct one *o,
		     struct agent_err *err)
{
	int r;

	if (!c->shim)
		return no_such_wave(name, err);
	o->d = &c->devices[from->queues[0].gpu_id];
	o->parts.arena = a;
	o->began_ns = clock_now_ns();
	o->deadline_ns = o->began_ns + (uint64_t)from->max_stop_ms * 1000000;
	r = cuda_stop(c, cuda_devices_of(from), err);
	if (r < 0)
		return r;
	r = cuda_read_state(c, o->d);
	r = r < 0 ? cuda_error(c, r, "read the state", err) :
		    find_wave(c, name, o, err);
	if (r == 0 && clock_now_ns() >= o->deadline_ns)
		r = agent_err_set(err, RPC_ERROR_TIMEOUT, ETIMEDOUT, "read the state",
				  "allow a longer stop: max_stop_ms",
				  "the stop budget was used up");
	if (r < 0)
		cuda_go(c, NULL);
	return r;
}

int cuda_registers(struct target *t, const struct target_waves_from *from,
		   const struct target_registers_wanted *what, struct rpc_arena *a,
		   struct rpc_wave_registers *ret, uint64_t *ret_stopped_us, struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct one o = { 0 };
	int r = one_begin(c, from, what->wave, a, &o, err), go;

	*ret_stopped_us = o.began_ns ? (clock_now_ns() - o.began_ns) / 1000 : 0;
	if (r < 0)
		return r;
	r = cuda_registers_read(c, o.d, o.wave.unit, o.wave.index, what, &o.wave, a, ret);
	if (r == 0) {
		cuda_read_callers(c, o.d, o.wave.unit, o.wave.index, a, &ret->callers,
				  &ret->n_callers);
		ret->has_callers = ret->n_callers;
	}
	if (r < 0)
		r = cuda_error(c, r, "read registers", err);
	go = cuda_go(c, r < 0 ? NULL : err);
	*ret_stopped_us = (clock_now_ns() - o.began_ns) / 1000;
	return r < 0 ? r : go;
}

/* ------------------------------------------------------------------ memory ------------------- */

/* The driver reads all or nothing: the readable part of a range is found piece by piece. */
#define CHUNK	 4096u
#define SMALLEST 1u

static enum cudbgshim_space space_of(enum rpc_memory_space space)
{
	switch (space) {
	case RPC_MEMORY_SPACE_LDS:
		return CUDBGSHIM_SPACE_SHARED;
	case RPC_MEMORY_SPACE_SCRATCH:
		return CUDBGSHIM_SPACE_LOCAL;
	case RPC_MEMORY_SPACE_GENERIC:
		return CUDBGSHIM_SPACE_GENERIC;
	case RPC_MEMORY_SPACE_PARAM:
		return CUDBGSHIM_SPACE_PARAM;
	case RPC_MEMORY_SPACE_CODE:
		return CUDBGSHIM_SPACE_CODE;
	default:
		return CUDBGSHIM_SPACE_GLOBAL;
	}
}

static ssize_t read_chunks(struct target_cuda *c, enum cudbgshim_space space,
			   const struct cudbgshim_place *at, uint64_t address, uint8_t *buf,
			   uint32_t size)
{
	uint32_t done = 0, most = CHUNK;
	int r = 0;

	while (done < size) {
		uint32_t n = CHUNK - (uint32_t)((address + done) % CHUNK);

		n = n < size - done ? n : size - done;
		n = n < most ? n : most;
		r = cudbgshim_read_memory(c->shim, space, at, address + done, buf + done, n);
		if (r == 0)
			done += n;
		else if (r == -EBUSY || most == SMALLEST)
			break;
		else
			most /= 2;
	}
	return done ? (ssize_t)done : r;
}

/* Read global memory, or instructions, which are no memory to the driver. */
static ssize_t read_global(struct target_cuda *c, uint64_t address, uint8_t *buf, uint32_t size)
{
	ssize_t n = read_chunks(c, CUDBGSHIM_SPACE_GLOBAL, NULL, address, buf, size), code;

	for (size_t i = 0; n < 0 && n != -EBUSY && i < c->n_devices; i++) {
		const struct cudbgshim_place at = { .dev = c->devices[i].d.gpu_id };

		code = read_chunks(c, CUDBGSHIM_SPACE_CODE, &at, address, buf, size);
		n = code > 0 || code == -EBUSY ? code : n;
	}
	return n;
}

/* The driver tells where a bank lies in global memory, and, from 12.4 on, its size. */
static ssize_t read_constant(struct target_cuda *c, const struct cudbgshim_place *at, uint64_t grid,
			     const struct target_wave_memory *what)
{
	uint64_t address;
	uint32_t bank_size, size = what->size;
	int r = cudbgshim_get_const_bank(c->shim, at, grid, what->bank, &address, &bank_size);

	if (r < 0)
		return r;
	if (bank_size && what->address >= bank_size)
		return -EFAULT;
	if (bank_size && size > bank_size - what->address)
		size = (uint32_t)(bank_size - what->address);
	/* Like other global memory, the bank may be read only when all devices stand still. */
	r = cuda_stop(c, UINT64_MAX, NULL);
	if (r < 0)
		return r;
	return read_chunks(c, CUDBGSHIM_SPACE_GLOBAL, at, address + what->address, what->buf, size);
}

static int unreadable(struct target_cuda *c, int r, uint64_t address, struct agent_err *err)
{
	if (cudbgshim_is_over(c->shim) || r == -ENOSYS || r == -EOPNOTSUPP)
		return cuda_error(c, r, "read memory", err);
	return agent_err_set(err, RPC_ERROR_FAILED, -r, "read memory", NULL,
			     "nothing readable at 0x%llx", (unsigned long long)address);
}

/* Check that a warp has the lane whose memory is asked for. */
static int check_lane(const struct target_wave_memory *what, uint32_t n_lanes, struct agent_err *err)
{
	if (what->lane < n_lanes && (n_lanes >= 64 || !(what->lanes >> n_lanes)))
		return 0;
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, "read memory", NULL,
			     "params.lane: the wave has only %u lanes", n_lanes);
}

/* Read the same bytes of several lanes.  @return the most that one has, or why none has any. */
static ssize_t read_lanes(struct target_cuda *c, const struct one *o, struct cudbgshim_place at,
			  const struct target_wave_memory *what)
{
	ssize_t n, most = -EFAULT;

	for (uint64_t left = what->lanes; left && clock_now_ns() < o->deadline_ns; left &= left - 1) {
		at.lane = (uint32_t)__builtin_ctzll(left);
		n = read_chunks(c, space_of(what->space), &at,
				what->addresses ? what->addresses[at.lane] : what->address,
				(uint8_t *)what->buf + (size_t)at.lane * what->size, what->size);
		what->got[at.lane] = n > 0 ? (uint32_t)n : 0;
		most = n > most ? n : most;
	}
	return most;
}

int cuda_wave_memory(struct target *t, const struct target_waves_from *from,
		     const struct target_wave_memory *what, struct rpc_arena *a,
		     struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct one o = { 0 };
	struct cudbgshim_place at;
	ssize_t n;
	int r = one_begin(c, from, what->wave, a, &o, err), go;

	if (r < 0)
		return r;
	r = check_lane(what, o.d->state->n_lanes, err);
	if (r < 0) {
		cuda_go(c, NULL);
		return r;
	}
	at = (struct cudbgshim_place){ o.d->d.gpu_id, o.wave.unit, o.wave.index, what->lane };
	if (what->lanes)
		n = read_lanes(c, &o, at, what);
	else if (what->space == RPC_MEMORY_SPACE_CONSTANT)
		n = read_constant(c, &at, o.wave.dispatch, what);
	else
		n = read_chunks(c, space_of(what->space), &at, what->address, what->buf, what->size);
	go = cuda_go(c, n < 0 ? NULL : err);
	if (n < 0)
		return unreadable(c, (int)n, what->address, err);
	return go < 0 ? go : (int)n;
}

ssize_t cuda_memory(struct target *t, uint64_t address, void *buf, uint32_t size,
		    struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	uint64_t began_ns;
	ssize_t n;
	int r;

	if (!c->shim)
		return -EFAULT;
	n = read_global(c, address, buf, size);
	/* Some drivers read only what stands still. */
	if (n == -EBUSY && t->memory_no_stop)
		return -EBUSY;
	if (n == -EBUSY) {
		began_ns = clock_now_ns();
		r = cuda_stop(c, UINT64_MAX, err);
		if (r < 0)
			return r;
		n = read_global(c, address, buf, size);
		r = cuda_go(c, err);
		t->memory_stopped_us = (clock_now_ns() - began_ns) / 1000 + 1;
		if (r < 0)
			return r;
	}
	return n < 0 ? unreadable(c, (int)n, address, err) : n;
}
