/* SPDX-License-Identifier: MIT */
/* Encodes waves as the hardware and its trap handler save them. */
#include "wave_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of one block of words. */
#define BLOCK_BYTES (WAVE_SLOTS * 4u)

/* ---- contents ---- */

/* A hash of all parameters. */
uint32_t wave_pattern(uint64_t seed, enum wave_kind kind, uint32_t index, uint32_t lane)
{
	uint64_t x = seed + (((uint64_t)kind << 40) + ((uint64_t)index << 8) + lane + 1) *
				    UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 32);
}

/* Whether a plant is of that register and lane. */
static bool plant_fits(const struct wave_plant *p, enum wave_kind kind, uint32_t index,
		       uint32_t lane)
{
	if (p->kind != kind || p->index != index)
		return false;
	return kind == WAVE_SGPR || kind == WAVE_LDS || p->lane == lane ||
	       p->lane == WAVE_ALL_LANES;
}

uint32_t wave_value(const struct wave_desc *w, enum wave_kind kind, uint32_t index, uint32_t lane)
{
	/* The last plant wins. */
	for (size_t i = w->n_plants; i-- > 0;)
		if (plant_fits(&w->plants[i], kind, index, lane))
			return w->plants[i].value;
	return wave_pattern(w->seed, kind, index, lane);
}

/* What the hardware leaves undefined, a different word for each use. */
static uint32_t junk(const struct wave_desc *w, uint32_t index)
{
	return wave_pattern(w->seed, WAVE_NOISE, index, 0);
}

uint32_t wave_lanes(const struct wave_silicon *g, const struct wave_desc *w)
{
	return w->wave32 && g->vgpr_granule32 ? 32 : 64;
}

/* ---- the two blocks of named words ---- */

/* A value at the place of a field. */
static uint32_t bits_put(struct wave_bits b, uint32_t value)
{
	return (value & ((UINT32_C(1) << b.width) - 1)) << b.at;
}

static uint32_t bits_mask(struct wave_bits b)
{
	return bits_put(b, UINT32_MAX);
}

bool wave_is_parked(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version)
{
	return w->stopped && g->parks_from && r_version >= g->parks_from;
}

/* The flags of a wave as the handler leaves them. */
static uint64_t hardware_flags(const struct wave_desc *w, uint32_t r_version)
{
	uint64_t flags = w->flags;

	if (!w->stopped)
		return flags;
	flags |= UINT64_C(1) << WAVE_HALT;
	if (r_version >= 10)
		flags |= UINT64_C(1) << WAVE_SKIP_EXPORT;
	return flags;
}

/* The bits of a slot that mean something. */
static uint32_t known_bits(const struct wave_silicon *g, uint32_t slot)
{
	uint32_t known = 0;

	for (int i = 0; i < WAVE_MEANING_COUNT; i++) {
		bool seven = i == WAVE_MATH_ENABLE || i == WAVE_MATH_FLAG;

		if (g->flags[i].slot == slot)
			known |= (seven ? UINT32_C(0x7f) : UINT32_C(1)) << g->flags[i].bit;
	}
	return known;
}

/* Put the seven bits of arithmetic exceptions. */
static void put_seven(uint32_t *hwreg, struct wave_flag f, uint32_t bits)
{
	hwreg[f.slot] |= (bits & 0x7f) << f.bit;
}

static void put_flags(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version,
		      uint32_t *hwreg)
{
	uint64_t flags = hardware_flags(w, r_version);

	for (int i = 0; i < WAVE_MEANING_COUNT; i++) {
		bool seven = i == WAVE_MATH_ENABLE || i == WAVE_MATH_FLAG;

		if (g->flags[i].slot && !seven && (flags >> i & 1))
			hwreg[g->flags[i].slot] |= UINT32_C(1) << g->flags[i].bit;
	}
	put_seven(hwreg, g->flags[WAVE_MATH_FLAG], w->math);
	put_seven(hwreg, g->flags[WAVE_MATH_ENABLE], w->math_enable);
}

/* Begin a slot: fixed bits, and junk where bits have no meaning. */
static void slot_start(const struct wave_silicon *g, const struct wave_desc *w, uint32_t *hwreg,
		       uint32_t slot, uint32_t fixed)
{
	hwreg[slot] = fixed;
	if (w->is_noisy)
		hwreg[slot] |= junk(w, 100 + slot) & ~known_bits(g, slot);
}

/* Put 64 bits into two words, the lower half first. */
static void put64(uint32_t *words, uint32_t slot, uint64_t value)
{
	words[slot] = (uint32_t)value;
	words[slot + 1] = (uint32_t)(value >> 32);
}

/* The word of s_get_barrier_state. */
static uint32_t barrier_word(struct wave_barrier b)
{
	return b.members ? UINT32_C(1) | b.members << 4 | b.signals << 16 : 0;
}

/* Where the pc is, and what else its upper word has: gfx12.5 keeps the banks there while it saves, and leaves them. */
static void put_pc(const struct wave_silicon *g, uint64_t pc, uint32_t *hwreg)
{
	uint64_t mask = (UINT64_C(1) << g->pc_bits) - 1;

	put64(hwreg, 1, (pc & mask) | ((uint64_t)hwreg[2] << 32 & ~mask));
}

static void hwregs_gfx12(const struct wave_silicon *g, const struct wave_desc *w, uint32_t *hwreg)
{
	hwreg[7] = g->has_xnack_mask ? (uint32_t)w->xnack_mask : 0;
	hwreg[8] = w->mode;
	put64(hwreg, 9, w->flat_scratch);
	slot_start(g, w, hwreg, 11, 0);
	slot_start(g, w, hwreg, 12, 0);
	slot_start(g, w, hwreg, 13, 0);
	hwreg[14] = barrier_word(w->barrier);
	if (g->hwregs != WAVE_HWREGS_GFX1250)
		return;
	hwreg[2] |= w->vgpr_banks << 25;
	hwreg[4] = 0;
	hwreg[8] = (w->mode & ~(UINT32_C(0x3f) << 12)) | w->vgpr_banks << 12;
	hwreg[15] = barrier_word(w->cluster);
}

/* Make the first words of the block of hardware registers. */
static void hwregs_make(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version,
			uint32_t *hwreg)
{
	uint64_t pc = wave_is_parked(g, w, r_version) ? w->park_pc : w->pc;

	for (uint32_t i = 0; i < WAVE_SLOTS; i++)
		hwreg[i] = junk(w, i);
	hwreg[0] = w->m0;
	hwreg[2] = 0;
	put_pc(g, pc, hwreg);
	hwreg[3] = (uint32_t)w->exec;
	if (wave_lanes(g, w) == 64)
		hwreg[4] = (uint32_t)(w->exec >> 32);
	slot_start(g, w, hwreg, 5, 0);
	slot_start(g, w, hwreg, 6, 0);
	switch (g->hwregs) {
	case WAVE_HWREGS_GFX9:
		put64(hwreg, 7, w->xnack_mask);
		slot_start(g, w, hwreg, 9, w->mode & 0x7ff);
		break;
	case WAVE_HWREGS_GFX10:
		if (g->has_xnack_mask)
			hwreg[7] = (uint32_t)w->xnack_mask;
		slot_start(g, w, hwreg, 8, w->mode & 0x7ff);
		put64(hwreg, 9, w->flat_scratch);
		break;
	case WAVE_HWREGS_GFX12:
	case WAVE_HWREGS_GFX1250:
		hwregs_gfx12(g, w, hwreg);
		break;
	}
	put_flags(g, w, r_version, hwreg);
}

#define NOTE_TRAP_ID (UINT32_C(0xf) << 25)

/* What the handler notes in TTMP6, without the packet; on gfx12.5 the number of the trap is elsewhere. */
static uint32_t stop_note(const struct wave_desc *w)
{
	uint32_t t = (w->trap_id < 15 ? w->trap_id : 15) << 25;

	if (w->stopped)
		t |= (uint32_t)w->saved_halt << 29 | UINT32_C(1) << 30;
	return t;
}

/* Note the pc of a parked wave, whose own pc register points elsewhere. */
static void note_pc(uint64_t pc, uint32_t *ttmp, uint32_t low_slot)
{
	ttmp[low_slot] = (uint32_t)pc;
	ttmp[11] &= ~(UINT32_C(0xffff) << 7);
	ttmp[11] |= (uint32_t)(pc >> 32 & 0xffff) << 7;
}

static void set_bit(uint32_t *word, unsigned int bit, bool value)
{
	*word = (*word & ~(UINT32_C(1) << bit)) | (uint32_t)value << bit;
}

/*
 * The layout up to gfx11, but for gfx9.4.  What is told at the launch includes that the handler has
 * noted nothing yet; without it all is left from waves before (inferred: AMD's debugger library
 * takes it for undefined, and the handler of ROCr writes no more than what it needs).
 */
static void ttmps_classic(const struct wave_desc *w, bool parked, uint32_t *t)
{
	if (w->launch_written) {
		put64(t, 4, w->wave_id);
		t[6] = w->packet_slot & 0x1ffffff;
		memcpy(&t[8], w->group, sizeof(w->group));
		t[11] = (t[11] & ~UINT32_C(0x3f)) | (w->wave_in_group & 0x3f);
		set_bit(&t[6], 31, w->launch_meaningless);
	}
	if (w->launch_written || w->stopped)
		t[6] = (t[6] & UINT32_C(0x81ffffff)) | stop_note(w);
	if (parked)
		note_pc(w->pc, t, 7);
	set_bit(&t[11], 23, w->debugger_attached);
}

/* The layout of gfx9.4: a bit says whether the handler has written. */
static void ttmps_gfx94(const struct wave_desc *w, uint32_t *t)
{
	if (w->launch_written) {
		memcpy(&t[8], w->group, sizeof(w->group));
		t[11] = (w->wave_in_group & 0x3f) | (w->packet_slot & 0x1ffffff) << 6;
	}
	set_bit(&t[11], 31, w->handler_written);
	if (!w->handler_written)
		return;
	put64(t, 4, w->wave_id);
	t[6] = (t[6] & 0x1ffffff) | stop_note(w);
	set_bit(&t[6], 31, w->launch_meaningless);
	set_bit(&t[13], 23, w->debugger_attached);
}

/* Note that a wave stops, where a bit says whether the handler has written. */
static void note_stop(const struct wave_silicon *g, const struct wave_desc *w, uint32_t *t)
{
	uint32_t note = stop_note(w), mine = UINT32_C(0x7e000000);

	if (g->ttmps == WAVE_TTMPS_GFX1250) {
		t[11] = (t[11] & UINT32_C(0x0fffffff)) | (note & NOTE_TRAP_ID) << 3;
		mine &= ~NOTE_TRAP_ID;
	}
	t[6] = (t[6] & ~mine) | (note & mine);
}

/* The layout of gfx12: a bit says whether the handler has written. */
static void ttmps_gfx12(const struct wave_silicon *g, const struct wave_desc *w, bool parked, uint32_t *t)
{
	if (w->launch_written) {
		t[9] = w->group[0];
		t[8] = (w->packet_slot & 0x1ffffff) | (w->wave_in_group & 0x1f) << 25;
		set_bit(&t[8], 30, w->group_yz);
		if (w->group_yz)
			t[7] = (w->group[1] & 0xffff) | w->group[2] << 16;
	}
	set_bit(&t[8], 31, w->handler_written);
	if (!w->handler_written)
		return;
	put64(t, 4, w->wave_id);
	note_stop(g, w, t);
	if (parked)
		note_pc(w->pc, t, 10);
	set_bit(&t[11], 23, w->debugger_attached);
}

void wave_words_make(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version,
		     struct wave_words *ret)
{
	bool parked = wave_is_parked(g, w, r_version);

	hwregs_make(g, w, r_version, ret->hwreg);
	for (uint32_t i = 0; i < WAVE_SLOTS; i++)
		ret->ttmp[i] = junk(w, WAVE_SLOTS + i);
	switch (g->ttmps) {
	case WAVE_TTMPS_CLASSIC:
		ttmps_classic(w, parked, ret->ttmp);
		break;
	case WAVE_TTMPS_GFX94:
		ttmps_gfx94(w, ret->ttmp);
		break;
	case WAVE_TTMPS_GFX12:
	case WAVE_TTMPS_GFX1250:
		ttmps_gfx12(g, w, parked, ret->ttmp);
		break;
	}
}

/* ---- words that the hardware has taken back ---- */

bool wave_words_flag(const struct wave_silicon *g, const struct wave_words *w, enum wave_meaning m)
{
	return g->flags[m].slot && w->hwreg[g->flags[m].slot] >> g->flags[m].bit & 1;
}

static void set_flag(const struct wave_silicon *g, struct wave_words *w, enum wave_meaning m)
{
	if (g->flags[m].slot)
		set_bit(&w->hwreg[g->flags[m].slot], g->flags[m].bit, true);
}

uint64_t wave_words_pc(const struct wave_silicon *g, const struct wave_words *w)
{
	return ((uint64_t)w->hwreg[2] << 32 | w->hwreg[1]) & ((UINT64_C(1) << g->pc_bits) - 1);
}

void wave_words_set_pc(const struct wave_silicon *g, struct wave_words *w, uint64_t pc)
{
	put_pc(g, pc, w->hwreg);
}

struct wave_words wave_words_turn(const struct wave_silicon *g, const struct wave_words *w)
{
	struct wave_words ret = *w;

	if (g->ttmps_first) {
		memcpy(ret.hwreg, w->ttmp, sizeof(ret.hwreg));
		memcpy(ret.ttmp, w->hwreg, sizeof(ret.ttmp));
	}
	return ret;
}

/* The handler begins to use its TTMPs, which are no junk from here on. */
static void handler_begins(const struct wave_silicon *g, struct wave_words *w)
{
	uint32_t slot = g->ttmps == WAVE_TTMPS_GFX94 ? 11 : 8;

	if (g->ttmps == WAVE_TTMPS_CLASSIC || w->ttmp[slot] >> 31)
		return;
	set_bit(&w->ttmp[slot], 31, true);
	put64(w->ttmp, 4, 0);
	if (g->ttmps == WAVE_TTMPS_GFX94)
		set_bit(&w->ttmp[6], 31, false);
}

void wave_words_stop(const struct wave_silicon *g, const struct wave_trap *trap, struct wave_words *w)
{
	const struct wave_desc note = { .stopped = true,
					.saved_halt = wave_words_flag(g, w, WAVE_HALT),
					.trap_id = trap->trap_id };

	handler_begins(g, w);
	note_stop(g, &note, w->ttmp);
	set_flag(g, w, WAVE_HALT);
	if (trap->r_version >= 10)
		set_flag(g, w, WAVE_SKIP_EXPORT);
	if (trap->after_step)
		set_flag(g, w, WAVE_STEP_DONE);
	if (!wave_is_parked(g, &note, trap->r_version))
		return;
	note_pc(wave_words_pc(g, w), w->ttmp, g->ttmps == WAVE_TTMPS_GFX12 ? 10 : 7);
	wave_words_set_pc(g, w, trap->park_pc);
}

/* ---- one wave's record ---- */

/* Offsets from the lowest address of a record, in the order in which the save routine fills it. */
struct record {
	uint32_t acc, shared, sgpr, words, lds, size; /* Words: the first hardware registers, and TTMPs. */
};

/* Bytes of LDS that are saved with the first wave of a workgroup. */
static uint32_t lds_bytes(const struct wave_desc *w)
{
	return w->wgp_takeover ? 131072 : w->lds_size;
}

/* Lay out the record of a wave. */
static void record_plan(const struct wave_silicon *g, const struct wave_desc *w, struct record *r)
{
	uint32_t row = wave_lanes(g, w) * 4;

	r->acc = w->vgprs * row;
	r->shared = r->acc + w->acc_vgprs * row;
	r->sgpr = r->shared + w->shared_vgprs * 32 * 4;
	r->words = r->sgpr + w->sgprs * 4;
	r->lds = r->words + BLOCK_BYTES + g->hwreg_bytes;
	r->size = r->lds + (w->first ? lds_bytes(w) : 0);
	/* The hardware makes room for the TTMPs as SGPRs although they are stored elsewhere. */
	if (g->ttmps_count_as_sgprs)
		r->size += BLOCK_BYTES;
}

uint32_t wave_words_offset(const struct wave_silicon *g, const struct wave_desc *w)
{
	struct record r;

	record_plan(g, w, &r);
	return r.words;
}

/* Fill registers with patterns, one row of lanes after the other. */
static void rows_fill(const struct wave_desc *w, enum wave_kind kind, uint32_t n, uint32_t lanes,
		      uint8_t *at)
{
	uint32_t row[64];

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t l = 0; l < lanes; l++)
			row[l] = wave_pattern(w->seed, kind, i, l);
		memcpy(at + (size_t)i * lanes * 4, row, lanes * 4);
	}
}

/* Fill the scalar registers; the last ones of those that a program can use are aliases. */
static void sgprs_fill(const struct wave_silicon *g, const struct wave_desc *w, uint8_t *at)
{
	uint32_t s[128], end = w->sgprs < 108 ? w->sgprs : 108;

	for (uint32_t i = 0; i < w->sgprs; i++)
		s[i] = wave_value(w, i < end ? WAVE_SGPR : WAVE_NOISE, i, 0);
	if (g->hwregs == WAVE_HWREGS_GFX9) {
		put64(s, end - 6, w->flat_scratch);
		s[end - 4] = junk(w, 200);
		s[end - 3] = junk(w, 201);
	}
	s[end - 2] = (uint32_t)w->vcc;
	s[end - 1] = wave_lanes(g, w) == 64 ? (uint32_t)(w->vcc >> 32) : junk(w, 202);
	memcpy(at, s, (size_t)w->sgprs * 4);
}

/* Put a chosen value into a block of registers. */
static void plant(uint8_t *block, uint32_t n, uint32_t lanes, const struct wave_plant *p)
{
	uint32_t from = p->lane == WAVE_ALL_LANES ? 0 : p->lane;
	uint32_t to = p->lane == WAVE_ALL_LANES ? lanes : p->lane + 1;

	if (p->index >= n || to > lanes)
		return;
	for (uint32_t l = from; l < to; l++)
		memcpy(block + ((size_t)p->index * lanes + l) * 4, &p->value, 4);
}

static void plants_set(const struct wave_silicon *g, const struct wave_desc *w,
		       const struct record *r, uint8_t *at)
{
	uint32_t lanes = wave_lanes(g, w);

	for (size_t i = 0; i < w->n_plants; i++) {
		struct wave_plant p = w->plants[i];

		if (p.kind == WAVE_VGPR) {
			plant(at, w->vgprs, lanes, &p);
		} else if (p.kind == WAVE_ACC) {
			plant(at + r->acc, w->acc_vgprs, lanes, &p);
		} else if (p.kind == WAVE_SHARED) {
			plant(at + r->shared, w->shared_vgprs, 32, &p);
		} else if (p.kind == WAVE_LDS && w->first) {
			p.lane = 0;
			plant(at + r->lds, lds_bytes(w) / 4, 1, &p);
		}
	}
}

/* Fill what of the larger block of gfx12.5 is behind the first words. Earlier drivers write 32, from byte 0x80 on. */
static void named_fill(const struct wave_silicon *g, const struct wave_desc *w, uint8_t *hwreg)
{
	uint32_t states[32] = { 0 };

	rows_fill(w, WAVE_NOISE, (g->hwreg_bytes - BLOCK_BYTES) / 4, 1, hwreg + BLOCK_BYTES);
	for (size_t i = 0; i < WAVE_NAMED_BARRIERS; i++)
		states[i] = barrier_word(w->named[i]);
	memcpy(hwreg + 0x80, states, sizeof(states));
}

/* Fill the record of a wave. */
static void record_fill(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version,
			const struct record *r, uint8_t *at)
{
	uint32_t lanes = wave_lanes(g, w), top = r->size;
	struct wave_words words;

	rows_fill(w, WAVE_VGPR, w->vgprs, lanes, at);
	rows_fill(w, WAVE_ACC, w->acc_vgprs, lanes, at + r->acc);
	rows_fill(w, WAVE_SHARED, w->shared_vgprs, 32, at + r->shared);
	sgprs_fill(g, w, at + r->sgpr);
	wave_words_make(g, w, r_version, &words);
	words = wave_words_turn(g, &words);
	memcpy(at + r->words, &words, sizeof(words));
	if (g->hwregs == WAVE_HWREGS_GFX1250)
		named_fill(g, w, at + r->words + BLOCK_BYTES);
	if (g->ttmps_count_as_sgprs) {
		top -= BLOCK_BYTES;
		rows_fill(w, WAVE_NOISE, WAVE_SLOTS, 1, at + top);
	}
	if (w->first)
		rows_fill(w, WAVE_LDS, lds_bytes(w) / 4, 1, at + r->lds);
	plants_set(g, w, r, at);
}

/* ---- what the dispatcher remembers of a wave ---- */

/* The word that says what resources a wave has. */
static uint32_t state_word(const struct wave_silicon *g, const struct wave_desc *w)
{
	uint32_t granule = wave_lanes(g, w) == 32 ? g->vgpr_granule32 : g->vgpr_granule;
	uint32_t blocks = w->vgprs / granule - 1;
	uint32_t state;

	if (g->acc == WAVE_ACC_OWN)
		blocks = (w->vgprs + w->acc_vgprs) / 8 - 1;
	state = UINT32_C(1) << 31 | bits_put(g->vgpr_blocks, blocks) |
		bits_put(g->sgpr_blocks, (w->sgprs + WAVE_SLOTS) / 16 - 1) |
		bits_put(g->lds_units, w->lds_size / g->lds_unit) |
		bits_put(g->wgp_takeover, w->wgp_takeover) | bits_put(g->wave32, w->wave32) |
		bits_put(g->arch_blocks, w->vgprs / 4 - 1) |
		bits_put(g->shared_blocks, w->shared_vgprs / 8);
	if (w->is_noisy)
		state |= junk(w, 300) &
			 ~(bits_mask(g->vgpr_blocks) | bits_mask(g->sgpr_blocks) |
			   bits_mask(g->lds_units) | bits_mask(g->wgp_takeover) |
			   bits_mask(g->wave32) | bits_mask(g->arch_blocks) |
			   bits_mask(g->shared_blocks) | UINT32_C(3) << 30);
	return state;
}

/* The word that says where a wave ran. */
static uint32_t wave_word(const struct wave_silicon *g, const struct wave_desc *w)
{
	uint32_t word = bits_put(g->scratch_slot, w->scratch_slot) |
			bits_put(g->engine, w->engine) |
			bits_put(g->scratch_enabled, w->scratch_enabled) |
			bits_put(g->first, w->first) | bits_put(g->last, w->last);

	if (w->is_noisy)
		word |= junk(w, 301) &
			~(bits_mask(g->scratch_slot) | bits_mask(g->engine) |
			  bits_mask(g->scratch_enabled) | bits_mask(g->first) | bits_mask(g->last) |
			  UINT32_C(3) << 30);
	return word;
}

/* Whether two waves need only one state word. */
static bool same_state(const struct wave_desc *a, const struct wave_desc *b)
{
	return a->wave32 == b->wave32 && a->wgp_takeover == b->wgp_takeover &&
	       a->vgprs == b->vgprs && a->acc_vgprs == b->acc_vgprs &&
	       a->shared_vgprs == b->shared_vgprs && a->sgprs == b->sgprs &&
	       a->lds_size == b->lds_size;
}

/* Whether a value can be stored in a field, in units of granule and less bias. */
static bool fits(uint32_t value, uint32_t granule, struct wave_bits b, uint32_t bias)
{
	return granule && value % granule == 0 && value / granule >= bias &&
	       value / granule - bias < UINT32_C(1) << b.width;
}

/* Whether the hardware can give a wave so many vector registers. */
static bool registers_are_possible(const struct wave_silicon *g, const struct wave_desc *w)
{
	uint32_t granule = wave_lanes(g, w) == 32 ? g->vgpr_granule32 : g->vgpr_granule;

	if (!fits(w->shared_vgprs, 8, g->shared_blocks, 0) || w->vgprs > g->vgprs_max)
		return false;
	switch (g->acc) {
	case WAVE_ACC_NONE:
		return !w->acc_vgprs && fits(w->vgprs, granule, g->vgpr_blocks, 1);
	case WAVE_ACC_AS_ARCH:
		return w->acc_vgprs == w->vgprs && fits(w->vgprs, granule, g->vgpr_blocks, 1);
	case WAVE_ACC_OWN:
		return fits(w->vgprs, 4, g->arch_blocks, 1) &&
		       fits(w->vgprs + w->acc_vgprs, 8, g->vgpr_blocks, 1);
	}
	return false;
}

static bool barrier_fits(struct wave_barrier b)
{
	return b.members < 128 && b.signals < 128;
}

static bool barriers_are_possible(const struct wave_silicon *g, const struct wave_desc *w)
{
	bool fits = barrier_fits(w->barrier) && barrier_fits(w->cluster), has = w->cluster.members;

	for (size_t i = 0; i < WAVE_NAMED_BARRIERS; i++) {
		fits &= barrier_fits(w->named[i]);
		has |= w->named[i].members;
	}
	return fits && (!has || g->hwregs == WAVE_HWREGS_GFX1250);
}

bool wave_is_possible(const struct wave_silicon *g, const struct wave_desc *w)
{
	if ((w->wave32 && !g->vgpr_granule32) || (w->wgp_takeover && !g->wgp_takeover.width) ||
	    (w->stopped && !w->handler_written) || w->pc % 4 || w->pc >> g->pc_bits)
		return false;
	if (g->sgpr_blocks.width ? w->sgprs < 16 || w->sgprs % 16 || w->sgprs > 112
				 : w->sgprs != g->sgprs)
		return false;
	if (!barriers_are_possible(g, w) || w->vgpr_banks >= (g->hwregs == WAVE_HWREGS_GFX1250 ? 64 : 1))
		return false;
	return registers_are_possible(g, w) && fits(w->lds_size, g->lds_unit, g->lds_units, 0) &&
	       w->scratch_slot < UINT32_C(1) << g->scratch_slot.width &&
	       w->engine < UINT32_C(1) << g->engine.width;
}

/* ---- the area ---- */

/* The control stack, which grows down: the newest word has the lowest address. */
struct stack {
	uint32_t *words; /**< The end of the room. */
	size_t n;
};

static void push(struct stack *s, uint32_t word)
{
	s->words[-(ptrdiff_t)++s->n] = word;
}

/* Most words that the waves need. */
static size_t stack_room(const struct wave_silicon *g, const struct wave_desc *waves, size_t n)
{
	size_t room = 2;

	for (size_t i = 0; i < n; i++)
		room += 1 + g->state_words + waves[i].events;
	return room;
}

/*
 * Write the control stack.  It is read from its lowest address: the wave that is restored first was
 * pushed last.
 */
static void stack_fill(const struct wave_silicon *g, const struct wave_desc *waves, size_t n,
		       struct stack *s)
{
	for (size_t i = n; i-- > 0;) {
		const struct wave_desc *w = &waves[i];

		push(s, wave_word(g, w));
		for (unsigned int k = 0; k < w->events; k++)
			push(s, junk(w, 310 + k) | UINT32_C(1) << 30);
		if (i && !w->restate && same_state(w, &waves[i - 1]))
			continue;
		for (unsigned int k = g->state_words; k-- > 1;)
			push(s, junk(w, 400 + k));
		push(s, state_word(g, w));
	}
	push(s, junk(&waves[0], 401));
	push(s, junk(&waves[0], 402));
}

/* Find the place of each record. */
static int area_plan(const struct wave_silicon *g, const struct wave_save_options *o,
		     const struct wave_desc *waves, size_t n, struct wave_save *ret)
{
	uint64_t at = o->boundary;
	struct record r;

	for (size_t i = n; i-- > 0;) {
		if (!wave_is_possible(g, &waves[i]))
			return -EINVAL;
		record_plan(g, &waves[i], &r);
		ret->base[i] = (uint32_t)at;
		at += r.size;
		if (at > o->area_size)
			return -ENOSPC;
	}
	ret->header[2] = (uint32_t)at;
	ret->header[3] = (uint32_t)at - o->boundary;
	return 0;
}

/* Write stack and records, which lie next to each other. */
static int save_waves(const struct wave_silicon *g, const struct wave_save_options *o,
		      const struct wave_desc *waves, size_t n, struct stack *s,
		      struct wave_save *ret)
{
	size_t stack_size;
	struct record r;
	int e = area_plan(g, o, waves, n, ret);

	if (e)
		return e;
	stack_fill(g, waves, n, s);
	stack_size = s->n * 4;
	if (o->boundary < WAVE_HEADER_SIZE + stack_size)
		return -ENOSPC;
	ret->header[0] = o->boundary - (uint32_t)stack_size;
	ret->header[1] = (uint32_t)stack_size;
	ret->size = stack_size + ret->header[3];
	ret->bytes = malloc(ret->size);
	if (!ret->bytes)
		return -ENOMEM;
	memcpy(ret->bytes, s->words - s->n, stack_size);
	for (size_t i = 0; i < n; i++) {
		record_plan(g, &waves[i], &r);
		record_fill(g, &waves[i], o->r_version, &r,
			    ret->bytes + (ret->base[i] - ret->header[0]));
	}
	return 0;
}

int wave_save_create(const struct wave_silicon *g, const struct wave_save_options *o,
		     const struct wave_desc *waves, size_t n, struct wave_save *ret)
{
	struct wave_save save = { .header = { o->boundary, 0, o->boundary, 0 } };
	size_t room = stack_room(g, waves, n);
	uint32_t *words;
	int r;

	if (o->boundary % 4 || o->boundary > o->area_size)
		return -EINVAL;
	if (!n) {
		*ret = save;
		return 0;
	}
	words = malloc(room * sizeof(*words));
	save.base = calloc(n, sizeof(*save.base));
	if (!words || !save.base) {
		r = -ENOMEM;
	} else {
		struct stack s = { .words = words + room };

		r = save_waves(g, o, waves, n, &s, &save);
	}
	free(words);
	if (r)
		wave_save_destroy(&save);
	else
		*ret = save;
	return r;
}

void wave_save_destroy(struct wave_save *s)
{
	free(s->bytes);
	free(s->base);
	memset(s, 0, sizeof(*s));
}
