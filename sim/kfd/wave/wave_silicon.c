/* SPDX-License-Identifier: MIT */
/* The generations, for the encoder: where the fields of their words are. */
#include "wave_encode.h"

/* Register slots of the saved block. */
enum { STATUS = 5, TRAPSTS = 6, MODE9 = 9, MODE10 = 8 };
enum { STATE_PRIV = 5, EXCP_PRIV = 6, EXCP_USER = 11, TRAP_CTRL = 12, STATUS12 = 13 };

#define STATUS_COMMON                                                                              \
	[WAVE_SCC] = { STATUS, 0 }, [WAVE_PRIV] = { STATUS, 5 }, [WAVE_TRAP_EN] = { STATUS, 6 },   \
	[WAVE_EXECZ] = { STATUS, 9 }, [WAVE_VCCZ] = { STATUS, 10 },                                \
	[WAVE_IN_GROUP] = { STATUS, 11 }, [WAVE_IN_BARRIER] = { STATUS, 12 },                      \
	[WAVE_HALT] = { STATUS, 13 }, [WAVE_IN_TRAP] = { STATUS, 14 },                             \
	[WAVE_VALID] = { STATUS, 16 }, [WAVE_SKIP_EXPORT] = { STATUS, 18 },                        \
	[WAVE_FATAL_HALT] = { STATUS, 23 }

#define TRAPSTS_COMMON                                                                             \
	[WAVE_MATH_FLAG] = { TRAPSTS, 0 }, [WAVE_WATCH0] = { TRAPSTS, 7 },                         \
	[WAVE_MEM_VIOL] = { TRAPSTS, 8 }, [WAVE_SAVECTX] = { TRAPSTS, 10 },                        \
	[WAVE_ILLEGAL] = { TRAPSTS, 11 }, [WAVE_WATCH1] = { TRAPSTS, 12 },                         \
	[WAVE_WATCH2] = { TRAPSTS, 13 }, [WAVE_WATCH3] = { TRAPSTS, 14 },                          \
	[WAVE_XNACK_ERROR] = { TRAPSTS, 28 }

#define MODE_COMMON(slot)                                                                          \
	[WAVE_SINGLE_STEP] = { slot, 11 }, [WAVE_MATH_ENABLE] = { slot, 12 },                      \
	[WAVE_WATCH_ENABLE] = { slot, 19 }

static const struct wave_flag flags_gfx9[WAVE_MEANING_COUNT] = {
	STATUS_COMMON, TRAPSTS_COMMON, MODE_COMMON(MODE9)
};
static const struct wave_flag flags_gfx94[WAVE_MEANING_COUNT] = {
	STATUS_COMMON, TRAPSTS_COMMON, MODE_COMMON(MODE9),
	[WAVE_HOST_TRAP] = { TRAPSTS, 22 }, [WAVE_BEGIN] = { TRAPSTS, 23 },
	[WAVE_END] = { TRAPSTS, 24 }, [WAVE_STEP_DONE] = { TRAPSTS, 25 },
};
static const struct wave_flag flags_gfx10[WAVE_MEANING_COUNT] = {
	STATUS_COMMON, TRAPSTS_COMMON, MODE_COMMON(MODE10)
};
static const struct wave_flag flags_gfx11[WAVE_MEANING_COUNT] = {
	STATUS_COMMON, TRAPSTS_COMMON, MODE_COMMON(MODE10),
	[WAVE_NO_VGPRS] = { STATUS, 24 }, [WAVE_HOST_TRAP] = { TRAPSTS, 16 },
	[WAVE_BEGIN] = { TRAPSTS, 17 }, [WAVE_END] = { TRAPSTS, 18 },
	[WAVE_STEP_DONE] = { TRAPSTS, 20 },
};
#define FLAGS_GFX12                                                                                \
	[WAVE_SCC] = { STATE_PRIV, 9 }, [WAVE_HALT] = { STATE_PRIV, 14 },                          \
	[WAVE_BARRIER_COMPLETE] = { STATE_PRIV, 2 },                                               \
	[WAVE_PRIV] = { STATUS12, 5 }, [WAVE_TRAP_EN] = { STATUS12, 6 },                           \
	[WAVE_EXECZ] = { STATUS12, 9 }, [WAVE_VCCZ] = { STATUS12, 10 },                            \
	[WAVE_IN_GROUP] = { STATUS12, 11 }, [WAVE_IN_TRAP] = { STATUS12, 14 },                     \
	[WAVE_VALID] = { STATUS12, 16 }, [WAVE_FATAL_HALT] = { STATUS12, 23 },                     \
	[WAVE_NO_VGPRS] = { STATUS12, 24 },                                                        \
	[WAVE_SINGLE_STEP] = { TRAP_CTRL, 9 }, [WAVE_MATH_ENABLE] = { TRAP_CTRL, 0 },              \
	[WAVE_WATCH_ENABLE] = { TRAP_CTRL, 7 }, [WAVE_MATH_FLAG] = { EXCP_USER, 0 },               \
	[WAVE_WATCH0] = { EXCP_PRIV, 0 }, [WAVE_WATCH1] = { EXCP_PRIV, 1 },                        \
	[WAVE_WATCH2] = { EXCP_PRIV, 2 }, [WAVE_WATCH3] = { EXCP_PRIV, 3 },                        \
	[WAVE_MEM_VIOL] = { EXCP_PRIV, 4 }, [WAVE_SAVECTX] = { EXCP_PRIV, 5 },                     \
	[WAVE_ILLEGAL] = { EXCP_PRIV, 6 }, [WAVE_HOST_TRAP] = { EXCP_PRIV, 7 },                    \
	[WAVE_BEGIN] = { EXCP_PRIV, 8 }, [WAVE_END] = { EXCP_PRIV, 9 },                            \
	[WAVE_STEP_DONE] = { EXCP_PRIV, 11 }, [WAVE_XNACK_ERROR] = { EXCP_PRIV, 12 }

static const struct wave_flag flags_gfx12[WAVE_MEANING_COUNT] = { FLAGS_GFX12 };
/* SQ_WAVE_STATE_PRIV_ALL_BARRIER_COMPLETE_MASK of Linux's cwsr_trap_handler_gfx12.asm. */
static const struct wave_flag flags_gfx1250[WAVE_MEANING_COUNT] = {
	FLAGS_GFX12, [WAVE_NAMED_COMPLETE] = { STATE_PRIV, 3 }, [WAVE_CLUSTER_COMPLETE] = { STATE_PRIV, 16 },
};

#define BLOCKS_COMMON .hwreg_bytes = 64, .pc_bits = 48, .vgprs_max = 256

#define GFX9_COMMON                                                                                \
	.state_words = 1, .vgpr_blocks = { 0, 6 }, .sgpr_blocks = { 6, 3 },                        \
	.scratch_slot = { 0, 9 }, .scratch_enabled = { 15, 1 }, .first = { 17, 1 },                \
	.last = { 16, 1 }, .vgpr_granule = 4, .ttmps_count_as_sgprs = true,                        \
	.hwregs = WAVE_HWREGS_GFX9, .has_xnack_mask = true, BLOCKS_COMMON

#define GFX90X                                                                                     \
	GFX9_COMMON, .lds_units = { 9, 9 }, .lds_unit = 512, .flags = flags_gfx9,                  \
		.ttmps = WAVE_TTMPS_CLASSIC, .parks_from = 1

#define GFX94X                                                                                     \
	GFX9_COMMON, .lds_units = { 9, 8 }, .arch_blocks = { 24, 6 }, .engine = { 9, 2 },          \
		.acc = WAVE_ACC_OWN, .flags = flags_gfx94, .ttmps = WAVE_TTMPS_GFX94

#define RDNA_COMMON                                                                                \
	.state_words = 2, .vgpr_blocks = { 0, 6 }, .lds_units = { 10, 8 }, .wave32 = { 24, 1 },    \
	.shared_blocks = { 26, 4 }, .scratch_slot = { 0, 10 }, .scratch_enabled = { 11, 1 },       \
	.first = { 12, 1 }, .last = { 29, 1 }, .vgpr_granule = 4, .vgpr_granule32 = 8,             \
	.lds_unit = 512, .sgprs = 128, BLOCKS_COMMON

#define GFX10X                                                                                     \
	RDNA_COMMON, .engine = { 24, 2 }, .hwregs = WAVE_HWREGS_GFX10, .flags = flags_gfx10,       \
		.ttmps = WAVE_TTMPS_CLASSIC

#define GFX11X                                                                                     \
	RDNA_COMMON, .engine = { 24, 3 }, .hwregs = WAVE_HWREGS_GFX10, .flags = flags_gfx11,       \
		.ttmps = WAVE_TTMPS_CLASSIC, .parks_from = 9

#define GFX12X                                                                                     \
	RDNA_COMMON, .wgp_takeover = { 6, 1 }, .engine = { 24, 3 },                                \
		.hwregs = WAVE_HWREGS_GFX12, .flags = flags_gfx12, .ttmps = WAVE_TTMPS_GFX12,      \
		.parks_from = 1

/* CHIP_GC_12_0_3 of the same file, and the other words as ROCdbgapi has them. */
#define GFX125X                                                                                    \
	.state_words = 2, .vgpr_blocks = { 0, 6 }, .lds_units = { 10, 9 }, .wave32 = { 24, 1 },    \
	.scratch_slot = { 0, 10 }, .engine = { 24, 3 }, .scratch_enabled = { 11, 1 },              \
	.first = { 12, 1 }, .last = { 13, 1 }, .vgpr_granule32 = 16, .vgprs_max = 1024,            \
	.sgprs = 112, .lds_unit = 1024, .ttmps_first = true, .hwregs = WAVE_HWREGS_GFX1250,        \
	.hwreg_bytes = 512, .pc_bits = 57, .has_xnack_mask = true, .flags = flags_gfx1250,         \
	.ttmps = WAVE_TTMPS_GFX1250

static const struct wave_silicon table[] = {
	{ .name = "gfx900", .gfx_target_version = 90000, GFX90X, .engine = { 11, 2 } },
	{ .name = "gfx906", .gfx_target_version = 90006, GFX90X, .engine = { 11, 2 } },
	{ .name = "gfx908", .gfx_target_version = 90008, GFX90X, .engine = { 11, 3 },
	  .acc = WAVE_ACC_AS_ARCH },
	{ .name = "gfx90a", .gfx_target_version = 90010, GFX9_COMMON, .lds_units = { 9, 8 },
	  .lds_unit = 512, .arch_blocks = { 24, 6 }, .engine = { 9, 3 }, .acc = WAVE_ACC_OWN,
	  .flags = flags_gfx9, .ttmps = WAVE_TTMPS_CLASSIC, .parks_from = 1 },
	{ .name = "gfx940", .gfx_target_version = 90400, GFX94X, .lds_unit = 512 },
	{ .name = "gfx941", .gfx_target_version = 90401, GFX94X, .lds_unit = 512 },
	{ .name = "gfx942", .gfx_target_version = 90402, GFX94X, .lds_unit = 512 },
	{ .name = "gfx950", .gfx_target_version = 90500, GFX94X, .lds_unit = 1280 },
	{ .name = "gfx1010", .gfx_target_version = 100100, GFX10X, .has_xnack_mask = true,
	  .parks_from = 1 },
	{ .name = "gfx1030", .gfx_target_version = 100300, GFX10X },
	{ .name = "gfx1100", .gfx_target_version = 110000, GFX11X },
	{ .name = "gfx1200", .gfx_target_version = 120000, GFX12X },
	{ .name = "gfx1201", .gfx_target_version = 120001, GFX12X },
	{ .name = "gfx1250", .gfx_target_version = 120500, GFX125X },
};

const struct wave_silicon *wave_silicon_at(size_t i)
{
	return i < sizeof(table) / sizeof(table[0]) ? &table[i] : NULL;
}

const struct wave_silicon *wave_silicon_find(uint32_t gfx_target_version)
{
	const struct wave_silicon *g;

	for (size_t i = 0; (g = wave_silicon_at(i)); i++)
		if (g->gfx_target_version == gfx_target_version)
			return g;
	return NULL;
}
