/* SPDX-License-Identifier: MIT */
/* The tables of wave_arch.h, one part per difference between generations. */
#include "wave_read.h"
#include "wave_walk.h"

/* Bits [high:low] of word `w`. */
#define BITS(w, high, low)  { (w), (low), (high) - (low) + 1 }
#define BIT(w, n)	    { (w), (n), 1 }
#define MASK(n)		    (UINT32_C(1) << (n))

/* ------------------------------------------------------------------ state word --------------- */

static const struct wave_state_fields state_gfx9 = {
	.vgprs = BITS(0, 5, 0),
	.sgprs = BITS(0, 8, 6),
	.lds = BITS(0, 17, 9),
	.n_words = 1,
};

static const struct wave_state_fields state_gfx90a = {
	.vgprs = BITS(0, 5, 0),
	.sgprs = BITS(0, 8, 6),
	.lds = BITS(0, 16, 9),
	.arch_vgprs = BITS(0, 29, 24),
	.n_words = 1,
};

static const struct wave_state_fields state_gfx10 = {
	.vgprs = BITS(0, 5, 0),
	.lds = BITS(0, 17, 10),
	.wave32 = BIT(0, 24),
	.shared_vgprs = BITS(0, 29, 26),
	.n_words = 2,
};

static const struct wave_state_fields state_gfx12 = {
	.vgprs = BITS(0, 5, 0),
	.lds = BITS(0, 17, 10),
	.takeover = BIT(0, 6),
	.wave32 = BIT(0, 24),
	.shared_vgprs = BITS(0, 29, 26),
	.n_words = 2,
};

static const struct wave_state_fields state_gfx1250 = {
	.vgprs = BITS(0, 5, 0),
	.lds = BITS(0, 18, 10),
	.wave32 = BIT(0, 24),
	.n_words = 2,
};

/* ------------------------------------------------------------------ wave word ---------------- */

#define WAVE_WORD_GFX9(se_high, se_low)                                                            \
	{                                                                                          \
		.scratch_slot = BITS(0, 8, 0), .shader_engine = BITS(0, se_high, se_low),          \
		.scratch_enabled = BIT(0, 15), .last = BIT(0, 16), .first = BIT(0, 17),            \
	}
#define WAVE_WORD_GFX10(se_high, last_bit)                                                         \
	{                                                                                          \
		.scratch_slot = BITS(0, 9, 0), .scratch_enabled = BIT(0, 11), .first = BIT(0, 12), \
		.shader_engine = BITS(0, se_high, 24), .last = BIT(0, last_bit),                   \
	}

static const struct wave_word_fields wave_gfx900 = WAVE_WORD_GFX9(12, 11);
static const struct wave_word_fields wave_gfx908 = WAVE_WORD_GFX9(13, 11);
static const struct wave_word_fields wave_gfx90a = WAVE_WORD_GFX9(11, 9);
static const struct wave_word_fields wave_gfx940 = WAVE_WORD_GFX9(10, 9);
static const struct wave_word_fields wave_gfx10 = WAVE_WORD_GFX10(25, 29);
static const struct wave_word_fields wave_gfx11 = WAVE_WORD_GFX10(26, 29);
static const struct wave_word_fields wave_gfx1250 = WAVE_WORD_GFX10(26, 13);

/* ------------------------------------------------------------------ hardware registers ------- */

/* VCC is saved among the scalar registers, and on gfx9 FLAT_SCRATCH is as well. */
static const struct wave_slot specials_gfx9[KFDTRAP_WAVE_SPECIAL_COUNT] = {
	[KFDTRAP_WAVE_M0] = { 0, 1 },
	[KFDTRAP_WAVE_PC] = { 1, 2 },
	[KFDTRAP_WAVE_EXEC] = { 3, 2 },
	[KFDTRAP_WAVE_STATUS] = { 5, 1 },
	[KFDTRAP_WAVE_TRAPSTS] = { 6, 1 },
	[KFDTRAP_WAVE_XNACK_MASK] = { 7, 2 },
	[KFDTRAP_WAVE_MODE] = { 9, 1 },
};

/* Only for gfx10.1: later the slot of XNACK_MASK is unused. */
static const struct wave_slot specials_gfx101[KFDTRAP_WAVE_SPECIAL_COUNT] = {
	[KFDTRAP_WAVE_M0] = { 0, 1 },
	[KFDTRAP_WAVE_PC] = { 1, 2 },
	[KFDTRAP_WAVE_EXEC] = { 3, 2 },
	[KFDTRAP_WAVE_STATUS] = { 5, 1 },
	[KFDTRAP_WAVE_TRAPSTS] = { 6, 1 },
	[KFDTRAP_WAVE_XNACK_MASK] = { 7, 1 },
	[KFDTRAP_WAVE_MODE] = { 8, 1 },
	[KFDTRAP_WAVE_FLAT_SCRATCH] = { 9, 2 },
};

static const struct wave_slot specials_gfx103[KFDTRAP_WAVE_SPECIAL_COUNT] = {
	[KFDTRAP_WAVE_M0] = { 0, 1 },
	[KFDTRAP_WAVE_PC] = { 1, 2 },
	[KFDTRAP_WAVE_EXEC] = { 3, 2 },
	[KFDTRAP_WAVE_STATUS] = { 5, 1 },
	[KFDTRAP_WAVE_TRAPSTS] = { 6, 1 },
	[KFDTRAP_WAVE_MODE] = { 8, 1 },
	[KFDTRAP_WAVE_FLAT_SCRATCH] = { 9, 2 },
};

static const struct wave_slot specials_gfx12[KFDTRAP_WAVE_SPECIAL_COUNT] = {
	[KFDTRAP_WAVE_M0] = { 0, 1 },
	[KFDTRAP_WAVE_PC] = { 1, 2 },
	[KFDTRAP_WAVE_EXEC] = { 3, 2 },
	[KFDTRAP_WAVE_STATE_PRIV] = { 5, 1 },
	[KFDTRAP_WAVE_EXCP_FLAG_PRIV] = { 6, 1 },
	[KFDTRAP_WAVE_MODE] = { 8, 1 },
	[KFDTRAP_WAVE_FLAT_SCRATCH] = { 9, 2 },
	[KFDTRAP_WAVE_EXCP_FLAG_USER] = { 11, 1 },
	[KFDTRAP_WAVE_TRAP_CTRL] = { 12, 1 },
	[KFDTRAP_WAVE_STATUS] = { 13, 1 },
};

static const struct wave_slot specials_gfx1250[KFDTRAP_WAVE_SPECIAL_COUNT] = {
	[KFDTRAP_WAVE_M0] = { 0, 1 },
	[KFDTRAP_WAVE_PC] = { 1, 2 },
	[KFDTRAP_WAVE_EXEC] = { 3, 2 },
	[KFDTRAP_WAVE_STATE_PRIV] = { 5, 1 },
	[KFDTRAP_WAVE_EXCP_FLAG_PRIV] = { 6, 1 },
	[KFDTRAP_WAVE_XNACK_MASK] = { 7, 1 },
	[KFDTRAP_WAVE_MODE] = { 8, 1 },
	[KFDTRAP_WAVE_FLAT_SCRATCH] = { 9, 2 },
	[KFDTRAP_WAVE_EXCP_FLAG_USER] = { 11, 1 },
	[KFDTRAP_WAVE_TRAP_CTRL] = { 12, 1 },
	[KFDTRAP_WAVE_STATUS] = { 13, 1 },
};

/* ------------------------------------------------------------------ trap temporaries --------- */

/* These are the same up to gfx11, except on gfx94x and for when a stopped wave is parked. */
#define TTMP_GFX9                                                                                  \
	.packet = BITS(6, 24, 0), .trap_id = BITS(6, 28, 25), .wave_in_group = BITS(11, 5, 0),     \
	.workgroup = { BITS(8, 31, 0), BITS(9, 31, 0), BITS(10, 31, 0) }, .no_dispatch = BIT(6, 31)

static const struct wave_ttmp_fields ttmp_gfx9 = {
	TTMP_GFX9,
	.parked_pc_lo = BITS(7, 31, 0),
	.parked_pc_hi = BITS(11, 22, 7),
};

static const struct wave_ttmp_fields ttmp_gfx103 = { TTMP_GFX9 };

static const struct wave_ttmp_fields ttmp_gfx11 = {
	TTMP_GFX9,
	.parked_pc_lo = BITS(7, 31, 0),
	.parked_pc_hi = BITS(11, 22, 7),
	.parks_from = 9,
};

static const struct wave_ttmp_fields ttmp_gfx940 = {
	.packet = BITS(11, 30, 6),
	.trap_id = BITS(6, 28, 25),
	.wave_in_group = BITS(11, 5, 0),
	.workgroup = { BITS(8, 31, 0), BITS(9, 31, 0), BITS(10, 31, 0) },
	.handler_ready = BIT(11, 31),
	.no_dispatch = BIT(6, 31),
	.no_dispatch_if = BIT(11, 31),
};

#define TTMP_GFX12                                                                                 \
	.packet = BITS(8, 24, 0), .wave_in_group = BITS(8, 29, 25),                                \
	.workgroup = { BITS(9, 31, 0), BITS(7, 15, 0), BITS(7, 31, 16) }, .has_yz = BIT(8, 30),    \
	.handler_ready = BIT(8, 31)

static const struct wave_ttmp_fields ttmp_gfx12 = {
	TTMP_GFX12,
	.trap_id = BITS(6, 28, 25),
	.parked_pc_lo = BITS(10, 31, 0),
	.parked_pc_hi = BITS(11, 22, 7),
};

static const struct wave_ttmp_fields ttmp_gfx1250 = {
	TTMP_GFX12,
	.trap_id = BITS(11, 31, 28),
};

/* ------------------------------------------------------------------ status and exceptions ---- */

/* These hold up to gfx11; PRIV is bit 5, SKIP_EXPORT bit 18. */
#define BITS_GFX9                                                                                  \
	.halt_register = KFDTRAP_WAVE_STATUS, .flags_register = KFDTRAP_WAVE_TRAPSTS,              \
	.math_register = KFDTRAP_WAVE_TRAPSTS, .enable_register = KFDTRAP_WAVE_MODE,               \
	.halt = MASK(13), .hidden = MASK(5) | MASK(18), .math_enable_shift = 12,                   \
	.watch_enable = MASK(19), .watch = { MASK(7), MASK(12), MASK(13), MASK(14) },              \
	.memory_violation = MASK(8), .xnack_error = MASK(28), .illegal_instruction = MASK(11)

static const struct wave_bits bits_gfx9 = { BITS_GFX9 };

static const struct wave_bits bits_gfx940 = {
	BITS_GFX9,
	.begin_end = MASK(23) | MASK(24),
	.single_step = MASK(25),
};

static const struct wave_bits bits_gfx11 = {
	BITS_GFX9,
	.begin_end = MASK(17) | MASK(18),
	.single_step = MASK(20),
};

static const struct wave_bits bits_gfx12 = {
	.halt_register = KFDTRAP_WAVE_STATE_PRIV,
	.flags_register = KFDTRAP_WAVE_EXCP_FLAG_PRIV,
	.math_register = KFDTRAP_WAVE_EXCP_FLAG_USER,
	.enable_register = KFDTRAP_WAVE_TRAP_CTRL,
	.halt = MASK(14),
	.hidden = MASK(5),
	.math_enable_shift = 0,
	.watch_enable = MASK(7),
	.watch = { MASK(0), MASK(1), MASK(2), MASK(3) },
	.memory_violation = MASK(4),
	.xnack_error = MASK(12),
	.illegal_instruction = MASK(6),
	.begin_end = MASK(8) | MASK(9),
	.single_step = MASK(11),
};

/* ------------------------------------------------------------------ generations -------------- */

#define ORDER_TTMP_FIRST                                                                           \
	{                                                                                          \
		WAVE_BLOCK_TTMP, WAVE_BLOCK_HWREG, WAVE_BLOCK_SGPR, WAVE_BLOCK_SHARED_VGPR,        \
		WAVE_BLOCK_ACC_VGPR, WAVE_BLOCK_VGPR                                               \
	}
#define ORDER_HWREG_FIRST                                                                          \
	{                                                                                          \
		WAVE_BLOCK_HWREG, WAVE_BLOCK_TTMP, WAVE_BLOCK_SGPR, WAVE_BLOCK_SHARED_VGPR,        \
		WAVE_BLOCK_ACC_VGPR, WAVE_BLOCK_VGPR                                               \
	}

/*
 * The padding is there because the hardware counts 16 trap temporaries as scalar registers and the
 * save routine stores them elsewhere.
 */
#define ARCH_GFX9                                                                                  \
	.order = ORDER_TTMP_FIRST, .pad = 64, .lanes = 64, .vgpr_granule = { 4, 4 },               \
	.n_hwreg = 16, .specials = specials_gfx9, .n_plain_sgpr = 102, .n_alias_slots = 6

#define ARCH_GFX10                                                                                 \
	.order = ORDER_TTMP_FIRST, .vgpr_granule = { 4, 8 }, .n_hwreg = 16, .n_sgpr = 128,         \
	.lds_granule = 512, .n_plain_sgpr = 106, .n_alias_slots = 2

static wave_next_fn next_gfx900;
static wave_read_fn read_gfx900;
static const struct kfdtrap_wave_arch gfx900 = {
	.next = next_gfx900,
	.read = read_gfx900,
	ARCH_GFX9,
	.state = &state_gfx9,
	.wave = &wave_gfx900,
	.ttmp = &ttmp_gfx9,
	.bits = &bits_gfx9,
	.lds_granule = 512,
};

static wave_next_fn next_gfx908;
static wave_read_fn read_gfx908;
static const struct kfdtrap_wave_arch gfx908 = {
	.next = next_gfx908,
	.read = read_gfx908,
	ARCH_GFX9,
	.state = &state_gfx9,
	.wave = &wave_gfx908,
	.ttmp = &ttmp_gfx9,
	.bits = &bits_gfx9,
	.lds_granule = 512,
	.acc_like_vgpr = true,
};

static wave_next_fn next_gfx90a;
static wave_read_fn read_gfx90a;
static const struct kfdtrap_wave_arch gfx90a = {
	.next = next_gfx90a,
	.read = read_gfx90a,
	ARCH_GFX9,
	.state = &state_gfx90a,
	.wave = &wave_gfx90a,
	.ttmp = &ttmp_gfx9,
	.bits = &bits_gfx9,
	.lds_granule = 512,
};

static wave_next_fn next_gfx940;
static wave_read_fn read_gfx940;
static const struct kfdtrap_wave_arch gfx940 = {
	.next = next_gfx940,
	.read = read_gfx940,
	ARCH_GFX9,
	.state = &state_gfx90a,
	.wave = &wave_gfx940,
	.ttmp = &ttmp_gfx940,
	.bits = &bits_gfx940,
	.lds_granule = 512,
};

static wave_next_fn next_gfx950;
static wave_read_fn read_gfx950;
static const struct kfdtrap_wave_arch gfx950 = {
	.next = next_gfx950,
	.read = read_gfx950,
	ARCH_GFX9,
	.state = &state_gfx90a,
	.wave = &wave_gfx940,
	.ttmp = &ttmp_gfx940,
	.bits = &bits_gfx940,
	.lds_granule = 1280,
};

static wave_next_fn next_gfx101;
static wave_read_fn read_gfx101;
static const struct kfdtrap_wave_arch gfx101 = {
	.next = next_gfx101,
	.read = read_gfx101,
	ARCH_GFX10,
	.state = &state_gfx10,
	.wave = &wave_gfx10,
	.specials = specials_gfx101,
	.ttmp = &ttmp_gfx9,
	.bits = &bits_gfx9,
};

static wave_next_fn next_gfx103;
static wave_read_fn read_gfx103;
static const struct kfdtrap_wave_arch gfx103 = {
	.next = next_gfx103,
	.read = read_gfx103,
	ARCH_GFX10,
	.state = &state_gfx10,
	.wave = &wave_gfx10,
	.specials = specials_gfx103,
	.ttmp = &ttmp_gfx103,
	.bits = &bits_gfx9,
};

static wave_next_fn next_gfx11;
static wave_read_fn read_gfx11;
static const struct kfdtrap_wave_arch gfx11 = {
	.next = next_gfx11,
	.read = read_gfx11,
	ARCH_GFX10,
	.state = &state_gfx10,
	.wave = &wave_gfx11,
	.specials = specials_gfx103,
	.ttmp = &ttmp_gfx11,
	.bits = &bits_gfx11,
};

static wave_next_fn next_gfx12;
static wave_read_fn read_gfx12;
static const struct kfdtrap_wave_arch gfx12 = {
	.next = next_gfx12,
	.read = read_gfx12,
	ARCH_GFX10,
	.state = &state_gfx12,
	.wave = &wave_gfx11,
	.specials = specials_gfx12,
	.ttmp = &ttmp_gfx12,
	.bits = &bits_gfx12,
	.barrier = { 14, 1 },
};

/*
 * The block of 128 scalar registers includes the trap temporaries: 112 are left below them.  Linux's save routine
 * keeps what MODE selects among more than 256 vector registers above the pc, and before January 2026 stored it with
 * it (cwsr_trap_handler_gfx12.asm, S_SAVE_PC_HI_DST_SRC0_SRC1_VGPR_MSB_SHIFT; its restore masks it away).
 */
static wave_next_fn next_gfx1250;
static wave_read_fn read_gfx1250;
static const struct kfdtrap_wave_arch gfx1250 = {
	.next = next_gfx1250,
	.read = read_gfx1250,
	.state = &state_gfx1250,
	.wave = &wave_gfx1250,
	.specials = specials_gfx1250,
	.ttmp = &ttmp_gfx1250,
	.bits = &bits_gfx12,
	.barrier = { 14, 1 },
	.cluster_barrier = { 15, 1 },
	.named_barriers = { 32, KFDTRAP_WAVE_NAMED_BARRIERS },
	.order = ORDER_HWREG_FIRST,
	.lanes = 32,
	.vgpr_granule = { 16, 16 },
	.n_sgpr = 112,
	.n_hwreg = 128,
	.lds_granule = 1024,
	.pc_bits = 57,
	.n_plain_sgpr = 106,
	.n_alias_slots = 2,
};

/* ------------------------------------------------------------------ functions ---------------- */

#define FUNCTIONS(name)                                                                            \
	static bool next_##name(struct kfdtrap_wave_iter *iter,                                    \
				struct kfdtrap_wave_layout *ret_layout)                            \
	{                                                                                          \
		return wave_walk_next(&name, iter, ret_layout);                                    \
	}                                                                                          \
	static enum kfdtrap_wave_problem read_##name(const struct kfdtrap_wave_context *context,   \
						     const struct kfdtrap_wave_layout *layout,     \
						     const void *hot,                              \
						     struct kfdtrap_wave_state *ret_state)         \
	{                                                                                          \
		return wave_read(&name, context, layout, hot, ret_state);                          \
	}

FUNCTIONS(gfx900)
FUNCTIONS(gfx908)
FUNCTIONS(gfx90a)
FUNCTIONS(gfx940)
FUNCTIONS(gfx950)
FUNCTIONS(gfx101)
FUNCTIONS(gfx103)
FUNCTIONS(gfx11)
FUNCTIONS(gfx12)
FUNCTIONS(gfx1250)

/* ------------------------------------------------------------------ targets ------------------ */

static const struct {
	uint32_t first, last; /**< Range of gfx_target_version. */
	const struct kfdtrap_wave_arch *arch;
} targets[] = {
	{ 90000, 90000, &gfx900 },
	{ 90002, 90002, &gfx900 },
	{ 90004, 90004, &gfx900 },
	{ 90006, 90006, &gfx900 },
	{ 90008, 90008, &gfx908 },
	{ 90009, 90009, &gfx900 },
	{ 90010, 90010, &gfx90a },
	{ 90012, 90012, &gfx900 },
	{ 90400, 90402, &gfx940 },
	{ 90500, 90500, &gfx950 },
	{ 100100, 100103, &gfx101 },
	{ 100300, 100306, &gfx103 },
	{ 110000, 110003, &gfx11 },
	{ 110500, 110503, &gfx11 },
	{ 120000, 120001, &gfx12 },
	{ 120500, 120501, &gfx1250 },
};

const struct kfdtrap_wave_arch *kfdtrap_wave_arch_find(uint32_t gfx_target_version)
{
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (gfx_target_version >= targets[i].first && gfx_target_version <= targets[i].last)
			return targets[i].arch;
	return NULL;
}
