/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_WAVE_ARCH_H
#define KFDTRAP_WAVE_ARCH_H

/**
 * @file wave_arch.h
 * The differences between generations in a context save area, as data.
 *
 * To add a generation:
 * - its row in targets[] of wave_arch.c, and a struct kfdtrap_wave_arch if none fits; the parts
 *   that it shares with another generation are shared by pointer;
 * - one row in each table of tests/unit/kfdtrap/test_kfdtrap_wave.c, computed by hand;
 * - a new field here only if the generation decides something that no other one did.
 */

#include <endian.h>
#include <string.h>

#include "kfdtrap_wave.h"

/** Bits [shift + width - 1 : shift] of 32-bit word `word`; width 0: there is no such field. */
struct wave_field {
	uint8_t word;
	uint8_t shift;
	uint8_t width;
};

/** Blocks of a record, in the order of wave_arch.order. */
enum wave_block {
	WAVE_BLOCK_TTMP,
	WAVE_BLOCK_HWREG,
	WAVE_BLOCK_SGPR,
	WAVE_BLOCK_SHARED_VGPR,
	WAVE_BLOCK_ACC_VGPR,
	WAVE_BLOCK_VGPR,
	WAVE_BLOCK_COUNT,
};

/** The state word of a control stack; fields have word 0. */
struct wave_state_fields {
	struct wave_field vgprs;
	struct wave_field sgprs; /**< Absent when n_sgpr is fixed. */
	struct wave_field lds;
	struct wave_field takeover; /**< Absent before gfx12. */
	struct wave_field wave32;
	struct wave_field arch_vgprs; /**< If present, `vgprs` counts both kinds together. */
	struct wave_field shared_vgprs;
	uint8_t n_words;
};

/** The wave word of a control stack; fields have word 0. */
struct wave_word_fields {
	struct wave_field scratch_slot;
	struct wave_field shader_engine;
	struct wave_field scratch_enabled;
	struct wave_field first;
	struct wave_field last;
};

/**
 * The place of a special register: `n_words` words from slot `slot` on; 0 words: it is not saved
 * there.
 */
struct wave_slot {
	uint8_t slot;
	uint8_t n_words;
};

/** Fields of the trap temporaries; word n is TTMPn. */
struct wave_ttmp_fields {
	struct wave_field packet;
	struct wave_field workgroup[3];
	struct wave_field wave_in_group;
	struct wave_field trap_id;
	struct wave_field has_yz;	/**< Absent when y and z always mean something. */
	/** Absent when the launch of a wave has cleared stopped, halt and trap. */
	struct wave_field handler_ready;
	struct wave_field no_dispatch;	/**< The dispatch part is unusable, from r_version 10 on. */
	struct wave_field no_dispatch_if; /**< If present, it must be set as well. */
	struct wave_field parked_pc_lo; /**< Absent when stopped waves are not parked. */
	struct wave_field parked_pc_hi;
	uint32_t parks_from; /**< r_version from which on waves are parked. */
};

/** Bits of the status and exception registers, as masks; 0 where a generation lacks the bit. */
struct wave_bits {
	enum kfdtrap_wave_special halt_register;
	enum kfdtrap_wave_special flags_register; /**< Has every flag but the math ones. */
	enum kfdtrap_wave_special math_register;
	enum kfdtrap_wave_special enable_register;
	uint32_t halt;
	uint32_t hidden; /**< Bits of STATUS that belong to the trap handler. */
	uint8_t math_enable_shift;
	uint32_t watch_enable;
	uint32_t watch[4];
	uint32_t memory_violation;
	uint32_t xnack_error;
	uint32_t illegal_instruction;
	uint32_t begin_end; /**< Flags of wave begin and wave end. */
	uint32_t single_step;
};

/** kfdtrap_wave_read_state() of one generation. */
typedef enum kfdtrap_wave_problem wave_read_fn(const struct kfdtrap_wave_context *context,
					       const struct kfdtrap_wave_layout *layout,
					       const void *hot,
					       struct kfdtrap_wave_state *ret_state);

/** kfdtrap_wave_next() of one generation. */
typedef bool wave_next_fn(struct kfdtrap_wave_iter *iter, struct kfdtrap_wave_layout *ret_layout);

/** A generation. */
struct kfdtrap_wave_arch {
	wave_next_fn *next;
	wave_read_fn *read;
	const struct wave_state_fields *state;
	const struct wave_word_fields *wave;
	/** Slots in the HWREG block, by enum kfdtrap_wave_special. */
	const struct wave_slot *specials;
	const struct wave_ttmp_fields *ttmp;
	const struct wave_bits *bits;
	struct wave_slot barrier, cluster_barrier, named_barriers;
	/** enum wave_block of each block below the LDS, from high to low addresses. */
	uint8_t order[WAVE_BLOCK_COUNT];
	uint8_t pad;			 /**< Unused bytes on top of each record. */
	uint8_t lanes;			 /**< 0 when the state word tells. */
	uint8_t vgpr_granule[2];	 /**< Registers per block with 64 and with 32 lanes. */
	bool acc_like_vgpr;		 /**< There are as many accumulation registers as others. */
	uint16_t n_sgpr;		 /**< Used if the state word does not tell. */
	uint16_t n_hwreg;
	uint16_t lds_granule;
	uint8_t pc_bits;       /**< Above them the words of the pc hold something else; 0: nothing. */
	uint8_t n_plain_sgpr;  /**< Registers that can be called s0 and so on. */
	uint8_t n_alias_slots; /**< Slots behind them that hold something else. */
};

/** Bytes of a shared vector register, and how many of them the state word counts as one. */
#define WAVE_SHARED_VGPR_SIZE 128u
#define WAVE_SHARED_GRANULE   8u
#define WAVE_N_TTMP	      16u
/** Bytes of LDS of a workgroup whose state word has the takeover bit (gfx12). */
#define WAVE_TAKEOVER_LDS     131072u

/** Functions that are compiled once per generation, with its tables as constants. */
#define WAVE_INLINE static inline __attribute__((always_inline))

/** @return a little-endian word at any alignment. */
static inline uint32_t wave_load32(const uint8_t *p)
{
	uint32_t value;

	memcpy(&value, p, sizeof(value));
	return le32toh(value);
}

/*
 * @return whether a field of one bit is set; as a test it is cheaper than as a number made narrow.
 */
static inline bool wave_bit_of(uint32_t word, struct wave_field f)
{
	return (word & UINT32_C(1) << f.shift) != 0;
}

/** @return the value of a field of one word; 0 when there is no such field. */
static inline uint32_t wave_field_of(uint32_t word, struct wave_field f)
{
	return (uint32_t)((uint64_t)word >> f.shift & ((UINT64_C(1) << f.width) - 1));
}

/** @return the value of a field of several words, which lie at any alignment. */
static inline uint32_t wave_field_get(const uint8_t *words, struct wave_field f)
{
	return wave_field_of(wave_load32(words + 4 * f.word), f);
}

#endif /* KFDTRAP_WAVE_ARCH_H */
