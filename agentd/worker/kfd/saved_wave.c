/* SPDX-License-Identifier: MIT */
/* The saved bytes of one wave: copied while its queue stands still, and decoded later. */
#include <string.h>

#include "agentd/worker/kfd/registers.h"
#include "agentd/worker/snapshot/registers.h"

bool saved_wave_dispatch(const struct queue_capture *l, const struct kfdtrap_wave_state *s,
			 uint64_t *ret)
{
	return s->valid & KFDTRAP_WAVE_HAS_PACKET && l->has_read && l->has_write &&
	       !kfdtrap_wave_dispatch_id(l->read, l->write, l->queue->ring_bytes, s->packet, ret);
}

/* Most packets were copied already: see add_packets() in waves_copy.c. */
static void add_packet(struct wave_batch *b, struct saved_wave *r)
{
	const struct queue_capture *l = r->area->capture;
	uint64_t id;

	/* This also checks that the packet's slot is in the ring. */
	if (!saved_wave_dispatch(l, &r->state, &id))
		return;
	r->has_packet = queue_capture_packet(l, id - l->read, r->packet);
	if (!r->has_packet)
		wave_batch_add(b, l->queue->ring_base + (uint64_t)r->state.packet * SYMBOLS_AQL_PACKET_SIZE, r->packet,
			       sizeof(r->packet), &r->has_packet);
}

/* The LDS of a workgroup lies above the registers of its first wave, and is left out. */
static void add_wave(struct wave_batch *b, struct saved_wave *r)
{
	const struct kfdtrap_wave_layout *l = &r->layout;
	uint32_t end = l->first && l->lds_size ? l->lds_offset : l->top_offset;

	r->size = end - l->vgpr_offset;
	r->tried = true;
	if (r->size <= SAVED_WAVE_MAX)
		wave_batch_add(b, r->area->address + l->vgpr_offset, r->bytes, r->size, &r->got);
	add_packet(b, r);
}

void saved_waves_copy(struct wave_capture *w, struct saved_wave *const *list, size_t n)
{
	struct wave_batch b = { .w = w, .memory = &w->k->t.memory };

	if (wave_capture_is_late(w))
		return;
	for (size_t i = 0; i < n; i++)
		add_wave(&b, list[i]);
	wave_batch_flush(&b);
}

/* ------------------------------------------------------------------ registers ---------------- */

/* What the functions below need: the arena, the copied wave, and the registers wanted. */
struct filling {
	struct registers_builder b;
	const struct saved_wave *r;
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

static const char *name_of(const struct filling *f, enum kfdtrap_wave_bank bank, uint32_t number)
{
	char name[16];

	kfdtrap_wave_register_name(bank, number, name, sizeof(name));
	return rpc_arena_strdup(f->b.arena, name);
}

/* The words of a save area are little endian, and so are all machines with such devices. */
static uint64_t value_of(const uint8_t *bytes, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, bytes, size);
	return v;
}

/* The value that the program sees, instead of the one that the trap handler runs with. */
static uint64_t programs_view(const struct kfdtrap_wave_state *s, uint32_t number, uint64_t saved)
{
	switch (number) {
	case KFDTRAP_WAVE_PC:
		return s->pc;
	case KFDTRAP_WAVE_STATUS:
		return s->status_user;
	case KFDTRAP_WAVE_STATE_PRIV:
		return s->state_priv_user;
	default:
		return saved;
	}
}

/* @param order  Numbers of the first of @p n registers; those behind them are in order. */
static struct rpc_scalar_register *fill_scalar(const struct filling *f, enum kfdtrap_wave_bank bank,
					       const uint8_t *order, uint32_t n_order, uint32_t n,
					       size_t *ret_n)
{
	struct rpc_scalar_register *list = rpc_arena_array(f->b.arena, n, sizeof(*list));

	for (uint32_t i = 0; i < n; i++) {
		uint32_t number = i < n_order ? order[i] : i, size;
		const uint8_t *bytes;
		uint64_t value;

		if (!find(f, bank, number, &bytes, &size))
			continue;
		value = value_of(bytes, size);
		if (bank == KFDTRAP_WAVE_BANK_SPECIAL)
			value = programs_view(&f->r->state, number, value);
		registers_add(list, ret_n, name_of(f, bank, number), size * 8, value);
	}
	return list;
}

static struct rpc_vector_register *fill_vector(const struct filling *f, enum kfdtrap_wave_bank bank,
					       uint32_t total, size_t *ret_n)
{
	uint32_t first, n = registers_wanted_range(&f->b, total, &first), size;
	struct rpc_vector_register *list = rpc_arena_array(f->b.arena, n, sizeof(*list));
	const uint8_t *bytes;

	for (uint32_t i = 0; i < n && find(f, bank, first + i, &bytes, &size); i++) {
		uint64_t *lanes = registers_add_vector(&f->b, list, ret_n,
						       name_of(f, bank, first + i), size / 4);

		for (uint32_t lane = 0; lanes && lane < size / 4; lane++)
			lanes[lane] = value_of(bytes + (size_t)lane * 4, 4);
	}
	return list;
}

static void fill_work_items(const struct filling *f, const struct kfdtrap_wave_grid *grid)
{
	const struct kfdtrap_wave_state *s = &f->r->state;
	uint32_t lanes = f->r->layout.lanes, in[3], all[3];

	registers_begin_work_items(&f->b, lanes);
	for (uint32_t lane = 0; lane < lanes; lane++)
		if (kfdtrap_wave_work_item(grid, s->workgroup, s->wave_in_group, lanes, lane, in,
					   all))
			registers_add_work_item(&f->b, lane, in, all);
}

static void fill_packet(const struct filling *f, struct rpc_wave_registers *ret)
{
	const uint8_t all = KFDTRAP_WAVE_HAS_WORKGROUP_X | KFDTRAP_WAVE_HAS_WORKGROUP_YZ |
			    KFDTRAP_WAVE_HAS_WAVE_IN_GROUP;
	uint8_t bytes[SYMBOLS_AQL_PACKET_SIZE];
	struct kfdtrap_wave_grid grid = { 0 };
	struct symbols_aql_packet p;

	if (!f->r->has_packet)
		return;
	/* The device may have marked the packet as done; a wave always comes from a dispatch. */
	memcpy(bytes, f->r->packet, sizeof(bytes));
	bytes[0] = SYMBOLS_AQL_KERNEL_DISPATCH;
	symbols_aql_decode(bytes, sizeof(bytes), &p);
	for (int i = 0; i < 3; i++) {
		grid.group[i] = p.workgroup_size[i];
		grid.grid[i] = p.grid_size[i];
	}
	registers_set_packet(&f->b, p.kernel_object, grid.group, grid.grid);
	ret->packet.kernarg_address = p.kernarg_address;
	ret->packet.private_segment_bytes = p.private_segment_bytes;
	ret->packet.group_segment_bytes = p.group_segment_bytes;
	if (f->b.what->work_items && (f->r->state.valid & all) == all)
		fill_work_items(f, &grid);
}

void saved_wave_fill(struct rpc_arena *a, const struct saved_wave *r,
		     const struct target_registers_wanted *what, struct rpc_wave_registers *ret)
{
	/* The registers that people look for come first; they are the first four of the enum. */
	static const uint8_t special[] = { KFDTRAP_WAVE_PC, KFDTRAP_WAVE_EXEC, KFDTRAP_WAVE_VCC,
					   KFDTRAP_WAVE_M0 };
	/* The trap handler saves no others (cwsr_trap_handler_gfx*.asm). */
	static const uint8_t trap[] = { 4, 5, 6, 7, 8, 9, 10, 11, 13 };
	const struct kfdtrap_wave_layout *l = &r->layout;
	const struct filling f = { .b = { a, what, ret }, .r = r };

	ret->vector_count = (uint32_t)l->n_vgpr + l->n_shared_vgpr;
	ret->accumulator_count = l->n_acc_vgpr;
	ret->lds_bytes = l->lds_size;
	ret->scratch = l->scratch_enabled;
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_SPECIAL))
		ret->special = fill_scalar(&f, KFDTRAP_WAVE_BANK_SPECIAL, special, sizeof(special),
					   KFDTRAP_WAVE_SPECIAL_COUNT, &ret->n_special);
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_SCALAR))
		ret->scalar = fill_scalar(&f, KFDTRAP_WAVE_BANK_SGPR, NULL, 0, l->n_sgpr,
					  &ret->n_scalar);
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_VECTOR))
		ret->vector = fill_vector(&f, KFDTRAP_WAVE_BANK_VGPR, ret->vector_count,
					  &ret->n_vector);
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_ACCUMULATOR))
		ret->accumulator = fill_vector(&f, KFDTRAP_WAVE_BANK_ACC_VGPR,
					       ret->accumulator_count, &ret->n_accumulator);
	if (registers_is_wanted(&f.b, RPC_REGISTER_BANK_TRAP))
		ret->trap = fill_scalar(&f, KFDTRAP_WAVE_BANK_TTMP, trap, sizeof(trap),
					sizeof(trap), &ret->n_trap);
	fill_packet(&f, ret);
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
