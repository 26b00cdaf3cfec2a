/* SPDX-License-Identifier: MIT */
/* The saved bytes of one wave: copied while its queue stands still, and decoded later. */
#include <string.h>

#include "agentd/worker/kfd/registers.h"
#include "base/clock.h"

bool saved_wave_dispatch(const struct queue_capture *l, const struct kfdtrap_wave_state *s,
			 uint64_t *ret)
{
	return s->valid & KFDTRAP_WAVE_HAS_PACKET && l->has_read && l->has_write &&
	       !kfdtrap_wave_dispatch_id(l->read, l->write, l->queue->ring_bytes, s->packet, ret);
}

static void copy_packet(struct wave_capture *w, struct saved_wave *r)
{
	const struct target_queue *q = r->area->capture->queue;
	uint64_t id;

	/* This also checks that the packet's slot is in the ring. */
	if (saved_wave_dispatch(r->area->capture, &r->state, &id))
		r->has_packet = memory_read_exact(&w->k->t.memory,
						  q->ring_base + (uint64_t)r->state.packet *
									 SYMBOLS_AQL_PACKET_SIZE,
						  r->packet, sizeof(r->packet)) == 0;
}

/* The LDS of a workgroup lies above the registers of its first wave, and is left out. */
void saved_wave_copy(struct wave_capture *w, struct saved_wave *r)
{
	const struct kfdtrap_wave_layout *l = &r->layout;
	uint32_t end = l->first && l->lds_size ? l->lds_offset : l->top_offset;

	if (wave_capture_is_late(w))
		return;
	r->size = end - l->vgpr_offset;
	r->tried = true;
	r->got = r->size <= SAVED_WAVE_MAX &&
		 memory_read_exact(&w->k->t.memory, r->area->address + l->vgpr_offset, r->bytes,
				   r->size) == 0;
	copy_packet(w, r);
}

/* ------------------------------------------------------------------ registers ---------------- */

/* What the functions below need: the arena, the copied wave, and the registers wanted. */
struct filling {
	struct rpc_arena *a;
	const struct saved_wave *r;
	const struct target_registers_wanted *what;
};

/* @return whether the wave has this register and all of its bytes were copied. */
static bool find(const struct filling *f, enum kfdtrap_wave_bank bank, uint32_t number,
		 const uint8_t **ret, uint32_t *ret_size)
{
	const struct saved_wave *r = f->r;
	uint32_t offset;

	if (!kfdtrap_wave_register_find(r->area->capture->arch, &r->layout, bank, number, &offset,
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

/* The words of a save area are little endian, and so are all machines with such devices. */
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

/* Show the values that the program sees instead of those with which the trap handler runs. */
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
	/* The registers that people look for come first; they are the first four of the enum. */
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
	/* The trap handler saves no others (cwsr_trap_handler_gfx*.asm). */
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
		list[(*ret_n)++] = (struct rpc_vector_register){
			.name = name_of(f->a, bank, first + i), .n_lanes = size / 4, .lanes = lanes
		};
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
	/* The device may have marked the packet as done; a wave always comes from a dispatch. */
	memcpy(bytes, f->r->packet, sizeof(bytes));
	bytes[0] = SYMBOLS_AQL_KERNEL_DISPATCH;
	symbols_aql_decode(bytes, sizeof(bytes), &p);
	ret->has_packet = true;
	ret->packet = (struct rpc_dispatch_packet){
		.kernel_object = p.kernel_object,
		.kernarg_address = p.kernarg_address,
		.n_workgroup_size = 3,
		.workgroup_size =
			three(f->a, p.workgroup_size[0], p.workgroup_size[1], p.workgroup_size[2]),
		.n_grid_size = 3,
		.grid_size = three(f->a, p.grid_size[0], p.grid_size[1], p.grid_size[2]),
		.private_segment_bytes = p.private_segment_bytes,
		.group_segment_bytes = p.group_segment_bytes,
	};
	if (f->what->work_items && (f->r->state.valid & all) == all)
		fill_work_items(f, &p, ret);
}

void saved_wave_fill(struct rpc_arena *a, const struct saved_wave *r,
		     const struct target_registers_wanted *what, struct rpc_wave_registers *ret)
{
	const struct kfdtrap_wave_layout *l = &r->layout;
	const struct filling filling = { a, r, what }, *f = &filling;

	ret->vector_count = (uint32_t)l->n_vgpr + l->n_shared_vgpr;
	ret->accumulator_count = l->n_acc_vgpr;
	ret->lds_bytes = l->lds_size;
	ret->scratch = l->scratch_enabled;
	if (is_wanted(f, RPC_REGISTER_BANK_SPECIAL))
		fill_special(f, ret);
	if (is_wanted(f, RPC_REGISTER_BANK_SCALAR))
		fill_scalar(f, ret);
	if (is_wanted(f, RPC_REGISTER_BANK_VECTOR))
		ret->vector =
			fill_vector(f, KFDTRAP_WAVE_BANK_VGPR, ret->vector_count, &ret->n_vector);
	if (is_wanted(f, RPC_REGISTER_BANK_ACCUMULATOR))
		ret->accumulator = fill_vector(f, KFDTRAP_WAVE_BANK_ACC_VGPR,
					       ret->accumulator_count, &ret->n_accumulator);
	if (is_wanted(f, RPC_REGISTER_BANK_TRAP))
		fill_trap(f, ret);
	fill_packet(f, ret);
}

struct wave *saved_wave_wave(const struct target_waves *waves, const struct saved_wave *r)
{
	for (size_t i = 0; i < waves->n_waves; i++)
		if (waves->waves[i].unit == r->area->xcc &&
		    waves->waves[i].index == r->layout.index &&
		    waves->waves[i].queue_id == r->area->capture->queue->queue_id)
			return &waves->waves[i];
	return NULL;
}
