/* SPDX-License-Identifier: MIT */
/*
 * One wave in full: its registers, its workgroup's LDS, the private memory of its lanes.  Bytes are
 * copied while its queue stands still, and become registers when that runs again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/target_kfd_waves.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "symbols/aql.h"

/* Of amd_queue_t, behind the read counter, which is its read_dispatch_id (cwsr.md section 6). */
#define QUEUE_TMPRING	     12u
#define QUEUE_SCRATCH_BASE   32u
#define QUEUE_SCRATCH_BYTES  40u
/* Up to this version of the runtime the last one is there. */
#define SCRATCH_BYTES_UNTIL 10u

#define CHUNK ((size_t)64 << 10)
/* All registers that the fields of a control stack can announce are less than half of it. */
#define RECORD_MAX ((size_t)512 << 10)

/* The saved bytes of one wave, without its LDS. */
struct record {
	const struct area *area; /* NULL: no such wave */
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_state state;
	uint8_t *bytes; /* RECORD_MAX; from layout.vgpr_offset on */
	uint32_t size;
	bool tried, got; /* all of them */
	uint8_t packet[SYMBOLS_AQL_PACKET_SIZE];
	bool has_packet;
};

/* ------------------------------------------------------------------ which wave --------------- */

/* Does it stay the same wave wherever it is saved? */
static bool is_lasting(const struct rpc_wave_name *n)
{
	return n->has_dispatch && n->n_workgroup == 3 && n->has_wave_in_group;
}

static bool dispatch_of(const struct look *l, const struct kfdtrap_wave_state *s, uint64_t *ret)
{
	return s->valid & KFDTRAP_WAVE_HAS_PACKET && l->has_read && l->has_write &&
	       !kfdtrap_wave_dispatch_id(l->read, l->write, l->queue->ring_bytes, s->packet, ret);
}

static bool is_that(const struct rpc_wave_name *n, const struct look *l,
		    const struct kfdtrap_wave_layout *layout, const struct kfdtrap_wave_state *s)
{
	uint64_t dispatch;

	if (!is_lasting(n) && layout->index != n->index)
		return false;
	if (n->has_dispatch && (!dispatch_of(l, s, &dispatch) || dispatch != n->dispatch))
		return false;
	if (n->n_workgroup && !(s->valid & KFDTRAP_WAVE_HAS_WORKGROUP_X))
		return false;
	for (size_t i = 0; i < n->n_workgroup; i++)
		if (n->workgroup[i] != s->workgroup[i])
			return false;
	return !n->has_wave_in_group || (s->valid & KFDTRAP_WAVE_HAS_WAVE_IN_GROUP &&
					 s->wave_in_group == n->wave_in_group);
}

/* @return whether it is in this area. */
static bool find_in(const struct work *w, const struct area *a, const struct rpc_wave_name *n,
		    struct record *r)
{
	const struct kfdtrap_wave_context context = work_context(w, a);
	struct kfdtrap_wave_iter iter;
	size_t at = a->first;

	work_walk(w, a, &iter);
	for (; kfdtrap_wave_next(&iter, &r->layout); at++) {
		if (!w->copied[at])
			continue;
		kfdtrap_wave_read_state(a->look->arch, &context, &r->layout,
					w->hot + at * KFDTRAP_WAVE_HOT_SIZE, &r->state);
		if (is_that(n, a->look, &r->layout, &r->state)) {
			r->area = a;
			return true;
		}
	}
	return false;
}

static bool find_wave(const struct work *w, const struct rpc_wave_name *n, struct record *r)
{
	for (size_t i = 0; i < w->n_areas; i++)
		if (w->areas[i].state == AREA_READ && w->areas[i].xcc == (n->has_xcc ? n->xcc : 0) &&
		    find_in(w, &w->areas[i], n, r))
			return true;
	return false;
}

/* ------------------------------------------------------------------ while it stands still ---- */

static bool is_late(struct work *w)
{
	w->late = w->late || clock_now_ns() >= w->deadline_ns;
	return w->late;
}

static void copy_packet(struct work *w, struct record *r)
{
	const struct target_queue *q = r->area->look->queue;
	uint64_t id;

	/* Also checks that the slot is in the ring. */
	if (dispatch_of(r->area->look, &r->state, &id))
		r->has_packet = memory_read_exact(&w->k->t.memory,
						  q->ring_base + (uint64_t)r->state.packet *
									 SYMBOLS_AQL_PACKET_SIZE,
						  r->packet, sizeof(r->packet)) == 0;
}

/* The leader's LDS lies on top of its registers. */
static void copy_record(struct work *w, struct record *r)
{
	const struct kfdtrap_wave_layout *l = &r->layout;
	uint32_t end = l->first && l->lds_size ? l->lds_offset : l->top_offset;

	if (is_late(w))
		return;
	r->size = end - l->vgpr_offset;
	r->tried = true;
	r->got = r->size <= RECORD_MAX &&
		 memory_read_exact(&w->k->t.memory, r->area->address + l->vgpr_offset, r->bytes,
				   r->size) == 0;
	copy_packet(w, r);
}

/* A look at one queue, for one of its waves. */
struct one {
	const struct rpc_wave_name *name;
	struct record record;
};

static void copy_one(struct work *w, uint32_t round)
{
	struct one *one = w->more_ctx;

	(void)round;
	if (!one->record.area && find_wave(w, one->name, &one->record))
		copy_record(w, &one->record);
}

/* ------------------------------------------------------------------ what went wrong ---------- */

static int no_memory(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_INTERNAL, ENOMEM, NULL, NULL, "out of memory");
}

static int too_late(const struct work *w, struct agent_err *err)
{
	int r = agent_err_set(err, RPC_ERROR_TIMEOUT, ETIME, NULL,
			      "allow a longer stop, or suspend the queue first",
			      "the stop budget of %u ms was used up", w->from->max_stop_ms);

	agent_err_set_resumed(err, true);
	return r;
}

static uint32_t count_waves(const struct work *w, const struct area *a)
{
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;

	if (a->state != AREA_READ)
		return 0;
	work_walk(w, a, &iter);
	while (kfdtrap_wave_next(&iter, &layout))
		;
	return iter.n_waves;
}

static int no_such_wave(const struct work *w, const struct rpc_wave_name *n, struct agent_err *err)
{
	static const char op[] = "find the wave";
	static const char hint[] = "positions change whenever the queue ran: take one from a new snapshot, "
				   "or suspend the queue first";
	uint32_t xcc = n->has_xcc ? n->xcc : 0;

	if (is_lasting(n))
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, NULL,
				     "queue %u, die %u: wave %u of workgroup %u,%u,%u of dispatch %llu is not there (any more)",
				     n->queue_id, xcc, n->wave_in_group, n->workgroup[0],
				     n->workgroup[1], n->workgroup[2],
				     (unsigned long long)n->dispatch);
	for (size_t i = 0; i < w->n_areas; i++) {
		uint32_t n_waves = count_waves(w, &w->areas[i]);

		if (w->areas[i].xcc != xcc)
			continue;
		if (n_waves <= n->index)
			return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, hint,
					     "queue %u, die %u: there is no wave %u, only %u waves",
					     n->queue_id, xcc, n->index, n_waves);
		return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, hint,
				     "queue %u, die %u: wave %u is another one now", n->queue_id,
				     xcc, n->index);
	}
	return agent_err_set(err, RPC_ERROR_NO_SUCH_WAVE, ENOENT, op, NULL,
			     "queue %u has no die %u", n->queue_id, xcc);
}

static int judge(const struct work *w, const struct target_waves *waves, const struct one *one,
		 struct agent_err *err)
{
	if (w->late && !one->record.area)
		return too_late(w, err);
	if (!one->record.area && waves->n_missing)
		return agent_err_set(err, RPC_ERROR_FAILED, EIO, "find the wave", NULL, "%s",
				     waves->missing[0]);
	return one->record.area ? 0 : no_such_wave(w, one->name, err);
}

static int check_name(const struct rpc_wave_name *n, struct agent_err *err)
{
	if (!n->has_index && !is_lasting(n))
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.wave: needs index, or dispatch, workgroup and wave_in_group");
	return 0;
}

/* Stop, copy, let go.  On success there is the wave, not always all of it. */
static int take(struct work *w, struct one *one, struct target_waves *waves, struct agent_err *err)
{
	int r = check_name(one->name, err);

	if (r == 0)
		r = kfd_need_runtime(w->k, "wave.registers", err);
	if (r == 0)
		r = work_run(w, waves, err);
	return r < 0 ? r : judge(w, waves, one, err);
}

/* ------------------------------------------------------------------ registers ---------------- */

/* What a record becomes. */
struct filling {
	struct rpc_arena *a;
	const struct record *r;
	const struct target_registers_wanted *what;
};

static bool find(const struct filling *f, enum kfdtrap_wave_bank bank, uint32_t number,
		 const uint8_t **ret, uint32_t *ret_size)
{
	const struct record *r = f->r;
	uint32_t offset;

	if (!kfdtrap_wave_register_find(r->area->look->arch, &r->layout, bank, number, &offset,
					ret_size))
		return false;
	offset -= r->layout.vgpr_offset;
	*ret = r->bytes + offset;
	return offset <= r->size && *ret_size <= r->size - offset;
}

static const char *name_of(struct rpc_arena *a, enum kfdtrap_wave_bank bank, uint32_t number)
{
	char name[16];

	kfdtrap_wave_register_name(bank, number, name, sizeof(name));
	return rpc_arena_strdup(a, name);
}

/* Words of the area are little endian, and so are all machines with such devices. */
static uint64_t value_of(const uint8_t *bytes, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, bytes, size);
	return v;
}

static bool is_wanted(const struct filling *f, enum rpc_register_bank bank)
{
	return f->what->banks >> bank & 1;
}

static void add_scalar(const struct filling *f, enum kfdtrap_wave_bank bank, uint32_t number,
		       struct rpc_scalar_register *list, size_t *n)
{
	const uint8_t *bytes;
	uint32_t size;

	if (!find(f, bank, number, &bytes, &size))
		return;
	list[(*n)++] = (struct rpc_scalar_register){ .name = name_of(f->a, bank, number),
						     .bits = size * 8,
						     .value = value_of(bytes, size) };
}

/* A stopped wave's own registers are not those that the trap handler runs with. */
static void show_programs_view(const struct kfdtrap_wave_state *s, uint32_t number,
			       struct rpc_scalar_register *reg)
{
	switch (number) {
	case KFDTRAP_WAVE_PC:
		reg->value = s->pc;
		break;
	case KFDTRAP_WAVE_STATUS:
		reg->value = s->status_user;
		break;
	case KFDTRAP_WAVE_STATE_PRIV:
		reg->value = s->state_priv_user;
		break;
	default:
		break;
	}
}

static void fill_special(const struct filling *f, struct rpc_wave_registers *ret)
{
	/* What everybody looks for comes first; these are the first four of the enum as well. */
	static const uint8_t first[] = { KFDTRAP_WAVE_PC, KFDTRAP_WAVE_EXEC, KFDTRAP_WAVE_VCC,
					 KFDTRAP_WAVE_M0 };

	ret->special = rpc_arena_array(f->a, KFDTRAP_WAVE_SPECIAL_COUNT, sizeof(*ret->special));
	for (uint32_t i = 0; ret->special && i < KFDTRAP_WAVE_SPECIAL_COUNT; i++) {
		uint32_t number = i < sizeof(first) ? first[i] : i;
		size_t n = ret->n_special;

		add_scalar(f, KFDTRAP_WAVE_BANK_SPECIAL, number, ret->special, &ret->n_special);
		if (ret->n_special > n)
			show_programs_view(&f->r->state, number, &ret->special[n]);
	}
}

static void fill_scalar(const struct filling *f, struct rpc_wave_registers *ret)
{
	size_t n_sgpr = f->r->layout.n_sgpr;

	ret->scalar = rpc_arena_array(f->a, n_sgpr, sizeof(*ret->scalar));
	for (uint32_t i = 0; ret->scalar && i < n_sgpr; i++)
		add_scalar(f, KFDTRAP_WAVE_BANK_SGPR, i, ret->scalar, &ret->n_scalar);
}

static void fill_trap(const struct filling *f, struct rpc_wave_registers *ret)
{
	/* The handler saves no others (cwsr.md section 3). */
	static const uint8_t saved[] = { 4, 5, 6, 7, 8, 9, 10, 11, 13 };

	ret->trap = rpc_arena_array(f->a, sizeof(saved), sizeof(*ret->trap));
	for (size_t i = 0; ret->trap && i < sizeof(saved); i++)
		add_scalar(f, KFDTRAP_WAVE_BANK_TTMP, saved[i], ret->trap, &ret->n_trap);
}

static struct rpc_vector_register *fill_vector(const struct filling *f, enum kfdtrap_wave_bank bank,
					       uint32_t total, size_t *ret_n)
{
	uint32_t first = f->what->first < total ? f->what->first : total;
	uint32_t n = total - first < f->what->count ? total - first : f->what->count;
	struct rpc_vector_register *list = rpc_arena_array(f->a, n, sizeof(*list));

	for (uint32_t i = 0; list && i < n; i++) {
		const uint8_t *bytes;
		uint32_t size;
		uint64_t *lanes;

		if (!find(f, bank, first + i, &bytes, &size))
			break;
		lanes = rpc_arena_array(f->a, size / 4, sizeof(*lanes));
		for (uint32_t lane = 0; lanes && lane < size / 4; lane++)
			lanes[lane] = value_of(bytes + (size_t)lane * 4, 4);
		list[(*ret_n)++] = (struct rpc_vector_register){ .name = name_of(f->a, bank, first + i),
								 .n_lanes = size / 4,
								 .lanes = lanes };
	}
	return list;
}

static uint32_t *three(struct rpc_arena *a, uint32_t x, uint32_t y, uint32_t z)
{
	uint32_t *list = rpc_arena_array(a, 3, sizeof(*list));

	if (list) {
		list[0] = x;
		list[1] = y;
		list[2] = z;
	}
	return list;
}

static void fill_work_items(const struct filling *f, const struct symbols_aql_packet *p,
			    struct rpc_wave_registers *ret)
{
	const struct kfdtrap_wave_state *s = &f->r->state;
	const struct kfdtrap_wave_grid grid = {
		.group = { p->workgroup_size[0], p->workgroup_size[1], p->workgroup_size[2] },
		.grid = { p->grid_size[0], p->grid_size[1], p->grid_size[2] },
	};
	uint32_t lanes = f->r->layout.lanes;

	ret->work_items = rpc_arena_array(f->a, lanes, sizeof(*ret->work_items));
	ret->has_work_items = true;
	for (uint32_t lane = 0; ret->work_items && lane < lanes; lane++) {
		uint32_t in[3], all[3];

		if (!kfdtrap_wave_work_item(&grid, s->workgroup, s->wave_in_group, lanes, lane, in,
					    all))
			continue;
		ret->work_items[ret->n_work_items++] = (struct rpc_work_item){
			.lane = lane,
			.n_in_group = 3,
			.in_group = three(f->a, in[0], in[1], in[2]),
			.n_global = 3,
			.global = three(f->a, all[0], all[1], all[2]),
		};
	}
}

static void fill_packet(const struct filling *f, struct rpc_wave_registers *ret)
{
	const uint8_t all = KFDTRAP_WAVE_HAS_WORKGROUP_X | KFDTRAP_WAVE_HAS_WORKGROUP_YZ |
			    KFDTRAP_WAVE_HAS_WAVE_IN_GROUP;
	uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];
	struct symbols_aql_packet p;

	if (!f->r->has_packet)
		return;
	/* The device may have marked it as done with; a wave comes from nothing but a dispatch. */
	memcpy(bytes, f->r->packet, sizeof(bytes));
	bytes[0] = SYMBOLS_AQL_KERNEL_DISPATCH;
	symbols_aql_decode(bytes, sizeof(bytes), &p);
	ret->has_packet = true;
	ret->packet = (struct rpc_dispatch_packet){
		.kernel_object = p.kernel_object,
		.kernarg_address = p.kernarg_address,
		.n_workgroup_size = 3,
		.workgroup_size = three(f->a, p.workgroup_size[0], p.workgroup_size[1],
					p.workgroup_size[2]),
		.n_grid_size = 3,
		.grid_size = three(f->a, p.grid_size[0], p.grid_size[1], p.grid_size[2]),
		.private_segment_bytes = p.private_segment_bytes,
		.group_segment_bytes = p.group_segment_bytes,
	};
	if (f->what->work_items && (f->r->state.valid & all) == all)
		fill_work_items(f, &p, ret);
}

static void fill(const struct filling *f, struct rpc_wave_registers *ret)
{
	const struct kfdtrap_wave_layout *l = &f->r->layout;

	ret->vector_count = (uint32_t)l->n_vgpr + l->n_shared_vgpr;
	ret->accumulator_count = l->n_acc_vgpr;
	ret->lds_bytes = l->lds_size;
	ret->scratch = l->scratch_enabled;
	if (is_wanted(f, RPC_REGISTER_BANK_SPECIAL))
		fill_special(f, ret);
	if (is_wanted(f, RPC_REGISTER_BANK_SCALAR))
		fill_scalar(f, ret);
	if (is_wanted(f, RPC_REGISTER_BANK_VECTOR))
		ret->vector = fill_vector(f, KFDTRAP_WAVE_BANK_VGPR, ret->vector_count, &ret->n_vector);
	if (is_wanted(f, RPC_REGISTER_BANK_ACCUMULATOR))
		ret->accumulator = fill_vector(f, KFDTRAP_WAVE_BANK_ACC_VGPR, ret->accumulator_count,
					       &ret->n_accumulator);
	if (is_wanted(f, RPC_REGISTER_BANK_TRAP))
		fill_trap(f, ret);
	fill_packet(f, ret);
}

/* @return NULL if decoding left it out, which is told in missing. */
static struct wave *wave_of(const struct target_waves *waves, const struct record *r)
{
	for (size_t i = 0; i < waves->n_waves; i++)
		if (waves->waves[i].xcc == r->area->xcc && waves->waves[i].index == r->layout.index &&
		    waves->waves[i].queue_id == r->area->look->queue->queue_id)
			return &waves->waves[i];
	return NULL;
}

static int answer(const struct work *w, const struct filling *f, const struct target_waves *waves,
		  struct rpc_wave_registers *ret, struct agent_err *err)
{
	struct wave *wave = wave_of(waves, f->r);
	struct rpc_wave *converted = wave ? waves_convert(f->a, wave, 1) : NULL;

	if (!f->r->tried)
		return too_late(w, err);
	if (!wave || !f->r->got)
		return agent_err_set(err, RPC_ERROR_FAILED, EIO, "read the save area", NULL,
				     "queue %u, die %u: wave %u is %s",
				     f->r->area->look->queue->queue_id, f->r->area->xcc,
				     f->r->layout.index, wave ? "not readable" : "corrupt");
	fill(f, ret);
	if (!converted || rpc_arena_error(f->a))
		return no_memory(err);
	ret->wave = *converted;
	return 0;
}

int kfd_registers(struct target *t, const struct target_waves_from *from,
		  const struct target_registers_wanted *what, struct rpc_arena *a,
		  struct rpc_wave_registers *ret, uint64_t *ret_stopped_us, struct agent_err *err)
{
	auto_free uint8_t *bytes = malloc(RECORD_MAX);
	struct one one = { .name = what->wave, .record.bytes = bytes };
	struct work w = {
		.k = kfd_of(t), .arena = a, .from = from, .more = copy_one, .more_ctx = &one
	};
	struct target_waves waves = { 0 };
	int r = bytes ? take(&w, &one, &waves, err) : no_memory(err);

	*ret_stopped_us = waves.stopped_us;
	*ret = (struct rpc_wave_registers){ 0 };
	if (r == 0)
		r = answer(&w, &(struct filling){ a, &one.record, what }, &waves, ret, err);
	work_deinit(&w);
	return r;
}

/* ------------------------------------------------------------------ LDS, private memory ------ */

enum shortfall {
	NO_SHORTFALL,
	OUTSIDE,      /* of what there is */
	NO_MEMORY_OF_ITS_OWN, /* see problem */
	NO_LANE,
	QUEUE_UNREADABLE,
	BASE_DIFFERS, /* the wave's register says otherwise */
	UNREADABLE,
};

struct transfer {
	struct one one;
	const struct target_wave_memory *what;
	uint64_t address; /* from 0 on */
	uint64_t end;	  /* bytes that there are */
	uint8_t *chunk;	  /* CHUNK */
	uint32_t done;
	enum shortfall shortfall;
	enum kfdtrap_wave_problem problem;
};

static uint32_t bytes_left(const struct transfer *t)
{
	uint64_t left = t->address < t->end ? t->end - t->address : 0;

	return left < t->what->size ? (uint32_t)left : t->what->size;
}

static enum shortfall copy_lds(struct work *w, struct transfer *t)
{
	const struct record *r = &t->one.record;
	ssize_t n;

	t->end = r->layout.lds_size;
	if (!bytes_left(t))
		return OUTSIDE;
	n = memory_read(&w->k->t.memory, r->area->address + r->layout.lds_offset + t->address,
			t->what->buf, bytes_left(t));
	t->done = n > 0 ? (uint32_t)n : 0;
	return n > 0 ? NO_SHORTFALL : UNREADABLE;
}

static enum shortfall find_scratch(struct work *w, struct transfer *t,
				   struct kfdtrap_wave_scratch_place *place)
{
	const struct record *r = &t->one.record;
	const struct look *l = r->area->look;
	const struct memory *m = &w->k->t.memory;
	struct kfdtrap_wave_scratch s = { .gfx_target_version = l->device->gfx_target_version,
					  .shader_engines = l->device->shader_engines };
	uint32_t offset, size;
	uint64_t base = 0;

	if (l->queue->type != RPC_QUEUE_TYPE_COMPUTE_AQL ||
	    memory_read_exact(m, l->queue->read_pointer + QUEUE_TMPRING, &s.tmpring, 4) < 0 ||
	    memory_read_exact(m, l->queue->read_pointer + QUEUE_SCRATCH_BASE, &s.base, 8) < 0)
		return QUEUE_UNREADABLE;
	if (work_context(w, r->area).r_version <= SCRATCH_BYTES_UNTIL &&
	    memory_read_exact(m, l->queue->read_pointer + QUEUE_SCRATCH_BYTES, &s.xcc_bytes, 8) < 0)
		return QUEUE_UNREADABLE;
	t->problem = kfdtrap_wave_scratch_find(&s, &r->layout, r->area->xcc, place);
	if (t->problem)
		return NO_MEMORY_OF_ITS_OWN;
	if (!place->in_register)
		return NO_SHORTFALL;
	if (!kfdtrap_wave_register_find(l->arch, &r->layout, KFDTRAP_WAVE_BANK_SPECIAL,
					KFDTRAP_WAVE_FLAT_SCRATCH, &offset, &size) ||
	    memory_read_exact(m, r->area->address + offset, &base, size) < 0)
		return UNREADABLE;
	return base == place->address ? NO_SHORTFALL : BASE_DIFFERS;
}

/* Of the words of all lanes side by side, those of one. */
static void copy_lane(struct work *w, struct transfer *t, uint64_t base)
{
	const uint32_t lanes = t->one.record.layout.lanes;
	const uint32_t words_at_once = (uint32_t)(CHUNK / 4 / lanes);
	const uint32_t want = bytes_left(t);

	while (t->done < want && !is_late(w)) {
		uint64_t at = t->address + t->done;
		uint32_t word = (uint32_t)(at / 4), skip = (uint32_t)(at % 4);
		uint32_t left = want - t->done, n = (skip + left + 3) / 4;

		n = n < words_at_once ? n : words_at_once;
		if (memory_read_exact(&w->k->t.memory,
				      base + kfdtrap_wave_scratch_offset(lanes, 0, word * 4),
				      t->chunk, (size_t)n * lanes * 4) < 0)
			break;
		for (uint32_t i = skip; i < n * 4 && t->done < want; i++)
			((uint8_t *)t->what->buf)[t->done++] =
				t->chunk[kfdtrap_wave_scratch_offset(lanes, t->what->lane, i)];
	}
	if (!t->done && !w->late)
		t->shortfall = UNREADABLE;
}

static void copy_scratch(struct work *w, struct transfer *t)
{
	struct kfdtrap_wave_scratch_place place = { 0 };

	if (t->what->lane >= t->one.record.layout.lanes)
		t->shortfall = NO_LANE;
	else
		t->shortfall = find_scratch(w, t, &place);
	if (t->shortfall)
		return;
	t->end = place.size / t->one.record.layout.lanes / 4 * 4;
	if (bytes_left(t))
		copy_lane(w, t, place.address);
	else
		t->shortfall = OUTSIDE;
}

/* A flat address within the aperture means the same as its offset. */
static uint64_t offset_of(const struct transfer *t, const struct target_device *d)
{
	bool lds = t->what->space == RPC_MEMORY_SPACE_LDS;
	uint64_t base = lds ? d->lds_base : d->scratch_base;
	uint64_t limit = lds ? d->lds_limit : d->scratch_limit;
	uint64_t a = t->what->address;

	return base && a >= base && a <= limit ? a - base : a;
}

static void copy_memory(struct work *w, uint32_t round)
{
	struct transfer *t = w->more_ctx;

	(void)round;
	if (is_late(w) || t->one.record.area || !find_wave(w, t->one.name, &t->one.record))
		return;
	t->address = offset_of(t, t->one.record.area->look->device);
	if (t->what->space == RPC_MEMORY_SPACE_SCRATCH)
		copy_scratch(w, t);
	else
		t->shortfall = copy_lds(w, t);
}

static int explain(const struct transfer *t, struct agent_err *err)
{
	const char *space = rpc_memory_space_name(t->what->space);
	static const char op[] = "read memory of a wave";

	switch (t->shortfall) {
	case OUTSIDE:
		return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, op, NULL,
				     "0x%llx is outside: there are 0x%llx bytes of %s",
				     (unsigned long long)t->address, (unsigned long long)t->end,
				     space);
	case NO_MEMORY_OF_ITS_OWN:
		return agent_err_set(err, RPC_ERROR_FAILED, ENXIO, op, NULL, "%s",
				     kfdtrap_wave_problem_text(t->problem));
	case NO_LANE:
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, op, NULL,
				     "params.lane: the wave has only %u lanes",
				     t->one.record.layout.lanes);
	case QUEUE_UNREADABLE:
		return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, op, NULL,
				     "what the runtime says of the queue's scratch memory is not readable");
	case BASE_DIFFERS:
		return agent_err_set(err, RPC_ERROR_FAILED, EINVAL, op, NULL,
				     "the wave's flat_scratch register does not hold the address that its queue says");
	case UNREADABLE:
	case NO_SHORTFALL:
		break;
	}
	return agent_err_set(err, RPC_ERROR_FAILED, EFAULT, op, NULL, "%s at 0x%llx is not readable",
			     space, (unsigned long long)t->address);
}

int kfd_wave_memory(struct target *t, const struct target_waves_from *from,
		    const struct target_wave_memory *what, struct rpc_arena *a,
		    struct agent_err *err)
{
	auto_free uint8_t *chunk = malloc(CHUNK);
	struct transfer transfer = { .one = { .name = what->wave }, .what = what, .chunk = chunk };
	struct work w = {
		.k = kfd_of(t), .arena = a, .from = from, .more = copy_memory, .more_ctx = &transfer
	};
	struct target_waves waves = { 0 };
	int r = chunk ? take(&w, &transfer.one, &waves, err) : no_memory(err);

	if (r == 0 && !transfer.done)
		r = w.late ? too_late(&w, err) : explain(&transfer, err);
	work_deinit(&w);
	return r < 0 ? r : (int)transfer.done;
}
