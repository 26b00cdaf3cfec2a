/* SPDX-License-Identifier: MIT */
/* Registers and memory of one warp. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agentd/worker/cuda/cuda.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define REGISTERS_MAX  256u
#define PREDICATES_MAX 32u

/* ------------------------------------------------------------------ finding it --------------- */

/* As cuda_fill_wave(), with what its grid tells. */
static void fill_wave(struct target_cuda *c, const struct cuda_device *d, uint32_t sm,
		      uint32_t warp, struct wave *ret)
{
	const struct cudbgshim_warp *w =
		&d->state->warps[cudbgshim_state_index(d->state, sm, warp)];
	struct cudbgshim_grid g;
	bool known = cudbgshim_get_grid(c->shim, d->d.gpu_id, w->grid_id, &g) == 0;

	cuda_fill_wave(c, d, sm, warp, ret);
	if (known)
		cuda_add_grid(w, &g, d->state->n_lanes, ret);
	ret->queue_id = cuda_queue_of(c, d->d.gpu_id, known ? &g : NULL);
}

/* By what it works on, wherever that is. */
static bool search(struct target_cuda *c, const struct cuda_device *d,
		   const struct rpc_wave_name *n, struct wave *ret)
{
	const struct cudbgshim_state *s = d->state;

	for (uint32_t sm = 0; sm < s->n_sms; sm++)
		for (uint64_t left = s->valid_warps[sm]; left; left &= left - 1) {
			uint32_t warp = (uint32_t)__builtin_ctzll(left);

			cuda_fill_wave(c, d, sm, warp, ret);
			if (ret->dispatch != n->dispatch ||
			    memcmp(n->workgroup, ret->workgroup, sizeof(ret->workgroup)) != 0)
				continue;
			fill_wave(c, d, sm, warp, ret);
			if (wave_is_named(ret, n))
				return true;
		}
	return false;
}

static int no_such_wave(const struct rpc_wave_name *n, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, "find the wave",
			     "gpu-agentctl waves lists those there are",
			     "queue %u, unit %u has no such wave now", n->queue_id, n->unit);
}

static int find_wave(struct target_cuda *c, struct cuda_device *d, const struct rpc_wave_name *n,
		     struct wave *ret, struct agent_err *err)
{
	const struct cudbgshim_state *s = d->state;

	if (wave_name_check(n, "params.wave", err) < 0)
		return -EINVAL;
	if (wave_name_lasts(n))
		return search(c, d, n, ret) ? 0 : no_such_wave(n, err);
	if (n->unit >= s->n_sms || n->index >= s->n_warps ||
	    !(s->valid_warps[n->unit] >> n->index & 1))
		return no_such_wave(n, err);
	fill_wave(c, d, n->unit, n->index, ret);
	return wave_is_named(ret, n) ? 0 : no_such_wave(n, err);
}

/* ------------------------------------------------------------------ registers ---------------- */

struct filling {
	struct target_cuda *c;
	struct cuda_device *d;
	struct cudbgshim_place at;
	const struct cudbgshim_warp *warp;
	const uint64_t *pcs;
	const uint32_t *exceptions;
	const struct target_registers_wanted *what;
	struct rpc_arena *a;
	bool is_counted; /* The driver says how many registers the warp has. */
	uint32_t got[CUDBGSHIM_MAX_LANES]; /* Of those that were asked for, by lane. */
	int error;
};

static bool is_wanted(const struct filling *f, enum rpc_register_bank bank)
{
	return f->what->banks >> bank & 1;
}

static void add_scalar(struct filling *f, struct rpc_scalar_register *list, size_t *n,
		       const char *name, uint32_t bits, uint64_t value)
{
	if (list)
		list[(*n)++] = (struct rpc_scalar_register){ .name = name, .bits = bits,
							     .value = value };
}

static uint32_t first_lane(const struct filling *f)
{
	uint32_t mask = f->warp->active_lanes ? f->warp->active_lanes : f->warp->valid_lanes;

	return mask ? (uint32_t)__builtin_ctz(mask) : 0;
}

/* Where the exception was is a register of its own: pc is that of the lane which speaks for the warp. */
static uint64_t pc_of(const struct filling *f, const struct wave *w)
{
	uint32_t lane = first_lane(f);

	if (!(f->warp->has & CUDBGSHIM_WARP_ERROR_PC) || !w->exception)
		return w->pc;
	for (uint32_t left = f->warp->active_lanes; left; left &= left - 1)
		if (f->exceptions[__builtin_ctz(left)])
			return f->pcs[__builtin_ctz(left)];
	return f->pcs[lane];
}

static void fill_special(struct filling *f, const struct wave *w, struct rpc_wave_registers *ret)
{
	struct rpc_scalar_register *list = rpc_arena_array(f->a, 8, sizeof(*list));
	size_t *n = &ret->n_special;
	uint32_t cc;

	ret->special = list;
	add_scalar(f, list, n, "pc", 64, pc_of(f, w));
	add_scalar(f, list, n, "active_lanes", 32, f->warp->active_lanes);
	add_scalar(f, list, n, "valid_lanes", 32, f->warp->valid_lanes);
	if (f->warp->has & CUDBGSHIM_WARP_ERROR_PC)
		add_scalar(f, list, n, "error_pc", 64, f->warp->error_pc);
	if (f->warp->has & CUDBGSHIM_WARP_SYSCALL_LANES)
		add_scalar(f, list, n, "syscall_lanes", 32, f->warp->syscall_lanes);
	f->at.lane = first_lane(f);
	if (cudbgshim_read_cc(f->c->shim, &f->at, &cc) == 0)
		add_scalar(f, list, n, "cc", 32, cc);
}

/* Uniform registers and predicates: one value for the warp. */
static void fill_scalar(struct filling *f, struct rpc_wave_registers *ret)
{
	uint32_t n = f->d->facts.n_uniform_registers, n_p = f->d->facts.n_uniform_predicates;
	uint32_t values[REGISTERS_MAX], predicates[PREDICATES_MAX];

	n = n < REGISTERS_MAX ? n : REGISTERS_MAX;
	n_p = n_p < PREDICATES_MAX ? n_p : PREDICATES_MAX;
	if (n && cudbgshim_read_uniform_registers(f->c->shim, &f->at, 0, n, values) < 0)
		n = 0;
	if (n_p && cudbgshim_read_uniform_predicates(f->c->shim, &f->at, n_p, predicates) < 0)
		n_p = 0;
	ret->scalar = rpc_arena_array(f->a, n + n_p, sizeof(*ret->scalar));
	for (uint32_t i = 0; i < n; i++)
		add_scalar(f, ret->scalar, &ret->n_scalar, rpc_arena_printf(f->a, "UR%u", i), 32,
			   values[i]);
	for (uint32_t i = 0; i < n_p; i++)
		add_scalar(f, ret->scalar, &ret->n_scalar, rpc_arena_printf(f->a, "UP%u", i), 32,
			   predicates[i]);
}

static struct rpc_vector_register *make_vectors(struct filling *f, const char *letter,
						uint32_t first, uint32_t n)
{
	struct rpc_vector_register *list = rpc_arena_array(f->a, n, sizeof(*list));

	for (uint32_t i = 0; list && i < n; i++) {
		list[i].name = rpc_arena_printf(f->a, "%s%u", letter, first + i);
		list[i].lanes = rpc_arena_array(f->a, f->d->facts.n_lanes, sizeof(*list[i].lanes));
		list[i].n_lanes = list[i].lanes ? f->d->facts.n_lanes : 0;
		if (!list[i].lanes)
			return NULL;
	}
	return list;
}

/* From 13.2 on the driver may give fewer than were asked for, also for some lanes only. */
static void drop_unread(struct filling *f, uint32_t first, uint32_t n_p,
			struct rpc_wave_registers *ret)
{
	uint32_t n = (uint32_t)ret->n_vector - n_p, most = 0, fewest = n, lanes = 0;
	const char **text;

	for (uint32_t left = f->warp->valid_lanes; left; left &= left - 1) {
		uint32_t got = f->got[__builtin_ctz(left)];

		most = got > most ? got : most;
	}
	if (most < n) {
		memmove(ret->vector + most, ret->vector + n, n_p * sizeof(*ret->vector));
		ret->n_vector = most + n_p;
	}
	if (!f->is_counted && most < n) {
		n = fewest = most;
		ret->vector_count = first + n;
	}
	for (uint32_t left = f->warp->valid_lanes; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctz(left);

		lanes |= f->got[lane] < n ? UINT32_C(1) << lane : 0;
		fewest = f->got[lane] < fewest ? f->got[lane] : fewest;
	}
	text = lanes ? rpc_arena_array(f->a, 1, sizeof(*text)) : NULL;
	if (!text)
		return;
	*text = rpc_arena_printf(f->a, "vector registers from R%u on, of lanes 0x%x: the driver does "
				 "not give them", first + fewest, lanes);
	ret->has_missing = true;
	ret->missing = text;
	ret->n_missing = 1;
}

static void fill_vector(struct filling *f, struct rpc_wave_registers *ret)
{
	uint32_t total = ret->vector_count, n_p = f->d->facts.n_predicates;
	uint32_t first = f->what->first < total ? f->what->first : total;
	uint32_t n = total - first < f->what->count ? total - first : f->what->count;
	struct rpc_vector_register *list, *predicates;

	n_p = f->what->first ? 0 : n_p < PREDICATES_MAX ? n_p : PREDICATES_MAX;
	list = make_vectors(f, "R", first, n + n_p);
	predicates = list ? list + n : NULL;
	for (uint32_t i = 0; predicates && i < n_p; i++)
		predicates[i].name = rpc_arena_printf(f->a, "P%u", i);
	for (f->at.lane = 0; list && f->at.lane < f->d->facts.n_lanes; f->at.lane++) {
		uint32_t values[REGISTERS_MAX], bits[PREDICATES_MAX];

		if (!(f->warp->valid_lanes >> f->at.lane & 1))
			continue;
		if (n)
			f->error = cudbgshim_read_registers(f->c->shim, &f->at, first, n, values,
							    &f->got[f->at.lane]);
		if (f->error == 0 && n_p)
			f->error = cudbgshim_read_predicates(f->c->shim, &f->at, n_p, bits);
		if (f->error < 0)
			return;
		for (uint32_t i = 0; i < n; i++)
			list[i].lanes[f->at.lane] = values[i];
		for (uint32_t i = 0; i < n_p; i++)
			predicates[i].lanes[f->at.lane] = bits[i];
	}
	ret->vector = list;
	ret->n_vector = list ? n + n_p : 0;
	if (list && n)
		drop_unread(f, first, n_p, ret);
}

static uint32_t *three(struct rpc_arena *a, struct cudbgshim_dim3 d)
{
	uint32_t *list = rpc_arena_array(a, 3, sizeof(*list));

	if (list) {
		list[0] = d.x;
		list[1] = d.y;
		list[2] = d.z;
	}
	return list;
}

static void fill_work_items(struct filling *f, const struct cudbgshim_grid *g,
			    struct rpc_wave_registers *ret)
{
	const struct cudbgshim_warp *w = f->warp;

	ret->has_work_items = true;
	ret->work_items = rpc_arena_array(f->a, f->d->facts.n_lanes, sizeof(*ret->work_items));
	for (uint32_t lane = 0; ret->work_items && lane < f->d->facts.n_lanes; lane++) {
		struct cudbgshim_dim3 in = cudbgshim_thread_of_lane(w->base_thread, lane,
								    g->block_dim);
		const struct cudbgshim_dim3 all = { w->block.x * g->block_dim.x + in.x,
						    w->block.y * g->block_dim.y + in.y,
						    w->block.z * g->block_dim.z + in.z };
		const struct cuda_exception *e = cuda_exception(f->exceptions[lane]);

		if (!(w->valid_lanes >> lane & 1))
			continue;
		ret->work_items[ret->n_work_items++] = (struct rpc_work_item){
			.lane = lane,
			.n_in_group = 3,
			.in_group = three(f->a, in),
			.n_global = 3,
			.global = three(f->a, all),
			.has_pc = true,
			.pc = f->pcs[lane],
			.exception = e ? e->text : NULL,
		};
	}
}

static void fill_packet(struct filling *f, struct rpc_wave_registers *ret)
{
	struct cudbgshim_grid g;
	struct cudbgshim_dim3 size;

	if (cudbgshim_get_grid(f->c->shim, f->at.dev, f->warp->grid_id, &g) < 0)
		return;
	size = (struct cudbgshim_dim3){ g.grid_dim.x * g.block_dim.x, g.grid_dim.y * g.block_dim.y,
					g.grid_dim.z * g.block_dim.z };
	ret->has_packet = true;
	ret->packet = (struct rpc_dispatch_packet){
		.kernel_object = g.entry,
		.n_workgroup_size = 3,
		.workgroup_size = three(f->a, g.block_dim),
		.n_grid_size = 3,
		.grid_size = three(f->a, size),
		.group_segment_bytes = ret->lds_bytes,
	};
	if (f->what->work_items)
		fill_work_items(f, &g, ret);
}

int cuda_registers_read(struct target_cuda *c, struct cuda_device *d, uint32_t sm, uint32_t warp,
			const struct target_registers_wanted *what, const struct wave *wave,
			struct rpc_arena *a, struct rpc_wave_registers *ret)
{
	size_t at = cudbgshim_state_index(d->state, sm, warp);
	struct filling f = { .c = c, .d = d, .at = { d->d.gpu_id, sm, warp, 0 },
			     .warp = &d->state->warps[at],
			     .pcs = &d->state->lane_pc[at * d->state->n_lanes],
			     .exceptions = &d->state->lane_exception[at * d->state->n_lanes],
			     .what = what, .a = a };
	/* The reply points into it. */
	struct wave *kept = rpc_arena_array(a, 1, sizeof(*kept));
	struct cudbgshim_resources resources = { 0 };
	struct rpc_wave *converted;
	struct cudbgshim_warp plain;
	struct cudbgshim_lanes lanes;

	if (!kept)
		return -ENOMEM;
	*kept = *wave;
	converted = waves_convert(a, kept, NULL, 1);
	if (!converted)
		return -ENOMEM;
	/* A batched answer has one exception for all lanes of a warp. */
	if (cudbgshim_read_warp(c->shim, &f.at, &plain, &lanes) == 0)
		f.exceptions = lanes.exception;
	/* Before 12.8 the driver does not tell how many the kernel uses. */
	f.is_counted = cudbgshim_read_resources(c->shim, &f.at, &resources) == 0 &&
		       resources.n_registers;
	if (!f.is_counted)
		resources.n_registers = d->facts.n_registers;
	*ret = (struct rpc_wave_registers){
		.wave = *converted,
		.vector_count = resources.n_registers < REGISTERS_MAX ? resources.n_registers :
									 REGISTERS_MAX,
		.lds_bytes = resources.shared_size,
		.scratch = true,
	};
	if (is_wanted(&f, RPC_REGISTER_BANK_SPECIAL))
		fill_special(&f, wave, ret);
	if (is_wanted(&f, RPC_REGISTER_BANK_SCALAR))
		fill_scalar(&f, ret);
	if (is_wanted(&f, RPC_REGISTER_BANK_VECTOR))
		fill_vector(&f, ret);
	fill_packet(&f, ret);
	return f.error < 0 ? f.error : rpc_arena_error(a);
}

/* ------------------------------------------------------------------ one stop ----------------- */

struct one {
	struct cuda_device *d;
	struct wave wave;
	uint64_t began_ns, deadline_ns;
};

static int one_begin(struct target_cuda *c, const struct target_waves_from *from,
		     const struct rpc_wave_name *name, struct one *o, struct agent_err *err)
{
	int r;

	if (!c->shim)
		return no_such_wave(name, err);
	o->d = &c->devices[from->queues[0].gpu_id];
	o->began_ns = clock_now_ns();
	o->deadline_ns = o->began_ns + (uint64_t)from->max_stop_ms * 1000000;
	r = cuda_stop(c, cuda_devices_of(from), err);
	if (r < 0)
		return r;
	r = cuda_read_state(c, o->d);
	r = r < 0 ? cuda_error(c, r, "read the state", err) :
		    find_wave(c, o->d, name, &o->wave, err);
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
	int r = one_begin(c, from, what->wave, &o, err), go;

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
#define SMALLEST 16u

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

/* Instructions are no memory to the driver. */
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
	/* As other global memory, it may be read only when all devices stand still. */
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

int cuda_wave_memory(struct target *t, const struct target_waves_from *from,
		     const struct target_wave_memory *what, struct rpc_arena *a,
		     struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	struct one o = { 0 };
	struct cudbgshim_place at;
	ssize_t n;
	int r = one_begin(c, from, what->wave, &o, err), go;

	if (r < 0)
		return r;
	at = (struct cudbgshim_place){ o.d->d.gpu_id, o.wave.unit, o.wave.index, what->lane };
	n = what->space == RPC_MEMORY_SPACE_CONSTANT
		    ? read_constant(c, &at, o.wave.dispatch, what)
		    : read_chunks(c, space_of(what->space), &at, what->address, what->buf,
				  what->size);
	go = cuda_go(c, n < 0 ? NULL : err);
	if (n < 0)
		return unreadable(c, (int)n, what->address, err);
	return go < 0 ? go : (int)n;
}

ssize_t cuda_memory(struct target *t, uint64_t address, void *buf, uint32_t size,
		    struct agent_err *err)
{
	struct target_cuda *c = cuda_of(t);
	ssize_t n;
	int r;

	if (!c->shim)
		return -EFAULT;
	n = read_global(c, address, buf, size);
	/* Some drivers read only what stands still. */
	if (n == -EBUSY) {
		r = cuda_stop(c, UINT64_MAX, err);
		if (r < 0)
			return r;
		n = read_global(c, address, buf, size);
		r = cuda_go(c, err);
		if (r < 0)
			return r;
	}
	return n < 0 ? unreadable(c, (int)n, address, err) : n;
}
