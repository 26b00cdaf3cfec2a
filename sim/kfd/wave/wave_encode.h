/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_WAVE_ENCODE_H
#define KFDSIM_WAVE_ENCODE_H

/**
 * @file wave_encode.h
 * Context save areas as the hardware and its trap handler leave them.
 *
 * The encoder is written from the side of the save routine: each wave is one record that is filled
 * from its lowest address upwards, records and control stack grow away from a common boundary, the
 * wave that is saved last is the first one to be restored.  Nothing here is shared with the decoder
 * that reads such areas; the two are compared in tests/wave.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAVE_SLOTS	16 /**< Words of the HWREG block and of the TTMP block. */
#define WAVE_HEADER_SIZE 40u
#define WAVE_NAMED_BARRIERS 16 /**< Of a workgroup of gfx12.5. */

/** The place of a field in a word; width 0: this generation has no such field. */
struct wave_bits {
	uint8_t at, width;
};

/** One bit of a saved hardware register; slot 0, which is M0: this generation has no such bit. */
struct wave_flag {
	uint8_t slot, bit;
};

/** What bits of the saved hardware registers mean. */
enum wave_meaning {
	WAVE_SCC,
	WAVE_PRIV,
	WAVE_TRAP_EN,
	WAVE_EXECZ,
	WAVE_VCCZ,
	WAVE_IN_GROUP,
	WAVE_IN_BARRIER, /* Before gfx12. */
	WAVE_BARRIER_COMPLETE, /* From gfx12 on: the wave need not wait any more. */
	WAVE_NAMED_COMPLETE, /* gfx12.5, as the next one: likewise at the named barrier that it has joined. */
	WAVE_CLUSTER_COMPLETE,
	WAVE_HALT,
	WAVE_IN_TRAP,
	WAVE_VALID,
	WAVE_SKIP_EXPORT,
	WAVE_FATAL_HALT,
	WAVE_NO_VGPRS,
	WAVE_SINGLE_STEP,
	WAVE_MATH_ENABLE, /**< First of seven. */
	WAVE_WATCH_ENABLE,
	WAVE_MATH_FLAG, /**< First of seven. */
	WAVE_MEM_VIOL,
	WAVE_XNACK_ERROR,
	WAVE_ILLEGAL,
	WAVE_WATCH0,
	WAVE_WATCH1,
	WAVE_WATCH2,
	WAVE_WATCH3,
	WAVE_SAVECTX,
	WAVE_HOST_TRAP,
	WAVE_BEGIN,
	WAVE_END,
	WAVE_STEP_DONE,
	WAVE_MEANING_COUNT
};

/** Accumulation registers: none, as many as vector registers, or a number of their own. */
enum wave_acc { WAVE_ACC_NONE, WAVE_ACC_AS_ARCH, WAVE_ACC_OWN };
/** Layouts of the block of hardware registers. */
enum wave_hwregs { WAVE_HWREGS_GFX9, WAVE_HWREGS_GFX10, WAVE_HWREGS_GFX12, WAVE_HWREGS_GFX1250 };
/** Layouts of the block of trap temporaries. */
enum wave_ttmps { WAVE_TTMPS_CLASSIC, WAVE_TTMPS_GFX94, WAVE_TTMPS_GFX12, WAVE_TTMPS_GFX1250 };

/** One generation.  Adding one: an entry in wave_silicon.c, nothing else. */
struct wave_silicon {
	const char *name;
	uint32_t gfx_target_version;

	unsigned int state_words;
	struct wave_bits vgpr_blocks, sgpr_blocks, lds_units, wgp_takeover, wave32, arch_blocks,
		shared_blocks;
	struct wave_bits scratch_slot, engine, scratch_enabled, first, last;

	uint32_t vgpr_granule, vgpr_granule32; /**< Registers per block; 0: no wave64, no wave32. */
	uint32_t vgprs_max;
	uint32_t sgprs; /**< How many are saved, without TTMPs; 0: the state word says it. */
	enum wave_acc acc;
	uint32_t lds_unit;
	bool ttmps_count_as_sgprs;
	bool ttmps_first; /**< They are the end of the block of SGPRs, in front of the hardware registers. */

	enum wave_hwregs hwregs;
	uint32_t hwreg_bytes; /**< Of their block. */
	unsigned int pc_bits;
	bool has_xnack_mask;
	const struct wave_flag *flags; /**< By enum wave_meaning. */
	enum wave_ttmps ttmps;
	uint32_t parks_from; /**< r_version from which stopped waves are parked; 0: never. */
};

/** Find a generation by its target version.  @return NULL if it is unknown. */
const struct wave_silicon *wave_silicon_find(uint32_t gfx_target_version);
/** The generation of that position. */
const struct wave_silicon *wave_silicon_at(size_t i); /**< NULL behind the last. */

/** What a value is of; WAVE_NOISE is what the hardware leaves undefined. */
enum wave_kind { WAVE_VGPR, WAVE_ACC, WAVE_SHARED, WAVE_SGPR, WAVE_LDS, WAVE_NOISE };
#define WAVE_ALL_LANES UINT32_MAX

/** A register that holds something chosen; all others hold wave_pattern(). */
struct wave_plant {
	enum wave_kind kind;
	uint32_t index; /**< Number of the register; of a word in the LDS. */
	uint32_t lane;	/**< WAVE_ALL_LANES, and ignored for SGPRs and LDS. */
	uint32_t value;
};

/** What s_get_barrier_state tells of a barrier; without members it is not valid. */
struct wave_barrier {
	uint32_t members, signals; /**< Seven bits each. */
};

/** What a wave was doing when it was saved. */
struct wave_desc {
	/* Resources. */
	bool wave32, wgp_takeover;
	uint32_t vgprs, acc_vgprs, shared_vgprs;
	uint32_t sgprs; /**< Saved ones, with the aliased ones, without TTMPs. */
	uint32_t lds_size;

	/* Where it ran. */
	bool first, last; /**< The first or last wave of its workgroup. */
	uint32_t engine, scratch_slot;
	bool scratch_enabled;

	/* What the dispatcher told it. */
	bool launch_written;	 /**< False: TTMPs were never set up, and all of this is junk. */
	bool launch_meaningless; /**< Marked so by the trap handler. */
	bool group_yz;		 /**< gfx12: y and z are there. */
	uint32_t packet_slot, group[3], wave_in_group;

	/* What the trap handler noted. */
	bool handler_written; /**< False: its TTMPs are junk (gfx9.4, gfx12). */
	bool stopped, saved_halt, debugger_attached;
	uint32_t trap_id;
	uint64_t wave_id;

	/* The program. */
	uint64_t pc, park_pc, exec, vcc, flat_scratch, xnack_mask;
	uint32_t m0;
	uint32_t mode;	/**< Below the enables: rounding, denormals, clamp, IEEE. */
	uint64_t flags; /**< 1 << enum wave_meaning; what the generation lacks is left out. */
	uint32_t math, math_enable; /**< Seven bits each. */
	struct wave_barrier barrier; /**< gfx12: the workgroup's. */
	struct wave_barrier cluster, named[WAVE_NAMED_BARRIERS]; /**< gfx12.5; the first one has the number 1. */
	uint32_t vgpr_banks; /**< gfx12.5: six bits that select among more than 256 vector registers. */
	bool is_noisy;	/**< Bits without a meaning are random. */

	uint64_t seed;
	const struct wave_plant *plants;
	size_t n_plants;

	/* The control stack around it. */
	bool restate; /**< Repeat the state words although they are the same. */
	unsigned int events;
};

/** Words of the two register blocks; what the hardware leaves undefined is filled with junk. */
struct wave_words {
	uint32_t hwreg[WAVE_SLOTS], ttmp[WAVE_SLOTS];
};

/** Where an area is, and for which runtime it is written. */
struct wave_save_options {
	uint32_t r_version; /**< Version of the runtime, which brings the trap handler. */
	uint32_t boundary;  /**< Bytes from the header to where stack and waves meet. */
	uint32_t area_size;
};

/** One saved area (one XCC). */
struct wave_save {
	uint32_t header[4];
	uint8_t *bytes; /**< Content of the area from header[0] on. */
	size_t size;
	uint32_t *base; /**< For each wave, the offset of its record (v0) from the header. */
};

/**
 * The content of a register that nothing was planted in: a number that tells registers and lanes
 * apart.
 */
uint32_t wave_pattern(uint64_t seed, enum wave_kind kind, uint32_t index, uint32_t lane);
/** The content of a register, with what was planted. */
uint32_t wave_value(const struct wave_desc *w, enum wave_kind kind, uint32_t index, uint32_t lane);
/** How many lanes a wave has. */
uint32_t wave_lanes(const struct wave_silicon *g, const struct wave_desc *w);
/** Whether the trap handler of that runtime has parked a stopped wave at a pc of its own. */
bool wave_is_parked(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version);
/** Make the two blocks of a wave as the hardware and the handler leave them. */
void wave_words_make(const struct wave_silicon *g, const struct wave_desc *w, uint32_t r_version,
		     struct wave_words *ret);

/**
 * Where the two blocks lie, one behind the other: bytes from the lowest address of the wave's
 * record.
 */
uint32_t wave_words_offset(const struct wave_silicon *g, const struct wave_desc *w);
/** Whether a bit is set in the saved registers. */
bool wave_words_flag(const struct wave_silicon *g, const struct wave_words *w, enum wave_meaning m);
/** The pc in the saved registers. */
uint64_t wave_words_pc(const struct wave_silicon *g, const struct wave_words *w);
/** Set the pc in the saved registers. */
void wave_words_set_pc(const struct wave_silicon *g, struct wave_words *w, uint64_t pc);
/** Change words from their order here to that of a record, or back: it is the same. */
struct wave_words wave_words_turn(const struct wave_silicon *g, const struct wave_words *w);

/** What the trap handler does with a wave that got into it. */
struct wave_trap {
	uint32_t r_version, trap_id; /**< Number of the s_trap; 0: there was none. */
	bool after_step;
	uint64_t park_pc;
};
/** Change the words of a wave as the trap handler does when the wave stops. */
void wave_words_stop(const struct wave_silicon *g, const struct wave_trap *trap, struct wave_words *w);

/** Whether the hardware can have such a wave. */
bool wave_is_possible(const struct wave_silicon *g, const struct wave_desc *w);

/**
 * Write the area of one XCC.
 * @param waves  In the order in which they are restored; groups are runs of `first` .. `last`.
 * @param ret    Release with wave_save_destroy() after success.
 * @return 0, -EINVAL (impossible wave), -ENOSPC (area too small), -ENOMEM.
 */
int wave_save_create(const struct wave_silicon *g, const struct wave_save_options *o,
		     const struct wave_desc *waves, size_t n, struct wave_save *ret);
/** Free an area; a zeroed object is accepted. */
void wave_save_destroy(struct wave_save *s);

#endif /* KFDSIM_WAVE_ENCODE_H */
