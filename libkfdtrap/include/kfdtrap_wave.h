/* SPDX-License-Identifier: MIT */
#ifndef KFDTRAP_WAVE_H
#define KFDTRAP_WAVE_H

/**
 * @file kfdtrap_wave.h
 * Waves of a suspended queue: from the bytes of its context save area to layouts and registers.
 *
 * Pure functions over bytes that the caller has copied: no I/O, no allocation, no globals; any
 * number of threads.  The order of use:
 *
 *	arch = kfdtrap_wave_arch_find(device.gfx_target_version);
 *	for each XCC, at ctx_save_restore_address + xcc * ctx_save_restore_area_size:
 *		copy KFDTRAP_WAVE_HEADER_SIZE bytes, kfdtrap_wave_header_parse();
 *		copy the control stack, kfdtrap_wave_iter_init();
 *		while (kfdtrap_wave_next(&iter, &layout))
 *			copy KFDTRAP_WAVE_HOT_SIZE bytes at kfdtrap_wave_hot_offset(&layout);
 *			kfdtrap_wave_read_state();
 *	everything else of a wave: kfdtrap_wave_register_find(), then copy those bytes.
 *
 * Everything in the area can be written by the target process.  No content makes these functions
 * read outside the given buffers, run longer than the control stack is long, or return an offset
 * outside the wave data that the header describes.
 *
 * Units: every `_offset` counts bytes from the header of its XCC; sizes are bytes; registers are
 * counted in registers.  All values in the area are little endian.
 *
 * Errors: enum kfdtrap_wave_problem names the check that failed.  Layouts follow what the Linux
 * kernel's save routine writes and what AMD's debugger library reads.  gfx12.5 (gfx1250, gfx1251)
 * was taken from sources alone, no second decoder was available to compare with.
 */

#include "kfdtrap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ architectures ------------ */

/** Layout of one generation of GPUs. */
struct kfdtrap_wave_arch;

/**
 * Find the layout of a generation.
 * @param gfx_target_version  As in struct kfdtrap_device: 90402 for gfx942, 90010 for gfx90a.
 * @return NULL for an unknown one; static otherwise, never released.
 */
KFDTRAP_API const struct kfdtrap_wave_arch *kfdtrap_wave_arch_find(uint32_t gfx_target_version);

/* ------------------------------------------------------------------ problems ----------------- */

/** The check that failed, grouped by the function that makes it. */
enum kfdtrap_wave_problem {
	KFDTRAP_WAVE_OK = 0,

	/* kfdtrap_wave_header_parse() finds these. */
	KFDTRAP_WAVE_BOUNDARY,		  /**< The stack's end is not the wave data's start. */
	KFDTRAP_WAVE_CONTROL_STACK_SIZE,  /**< It is not a multiple of 4. */
	KFDTRAP_WAVE_CONTROL_STACK_RANGE, /**< It overlaps the header, or ends outside the area. */
	KFDTRAP_WAVE_DATA_RANGE,	  /**< Wave data begins or ends outside the area. */

	/* kfdtrap_wave_next() finds these. */
	KFDTRAP_WAVE_CONTROL_STACK_SHORT, /**< Fewer bytes given than the header announces. */
	KFDTRAP_WAVE_STATE_MISSING,	  /**< A wave comes before any state word. */
	KFDTRAP_WAVE_STATE_TRUNCATED,	  /**< The second state word is missing. */
	/** The state has more architectural than total vector registers. */
	KFDTRAP_WAVE_VGPR_COUNT,
	KFDTRAP_WAVE_GROUP_MISSING,	  /**< A wave lies outside any workgroup. */
	KFDTRAP_WAVE_DATA_EXHAUSTED,	  /**< A wave's record would begin below the wave data. */
	KFDTRAP_WAVE_DATA_LEFT,		  /**< Wave data remain after the last wave. */
	KFDTRAP_WAVE_TOO_MANY,		  /**< There are more waves than the caller allows. */

	/* kfdtrap_wave_read_state() and kfdtrap_wave_check_group() find these. */
	KFDTRAP_WAVE_PC_ALIGNMENT, /**< The pc is not a multiple of 4. */
	KFDTRAP_WAVE_GROUP_ID,	   /**< It has another workgroup id than the group's first wave. */

	/* kfdtrap_wave_dispatch_id() finds these. */
	KFDTRAP_WAVE_RING_SIZE,	  /**< It is not a power of two of 1 to 2^25 packets. */
	KFDTRAP_WAVE_PACKET_SLOT, /**< It is outside the ring. */
	KFDTRAP_WAVE_PACKET_ID,	  /**< It is not between the read and the write counter. */

	/* kfdtrap_wave_scratch_find() finds these. */
	KFDTRAP_WAVE_NO_SCRATCH,   /**< The wave, its queue or its generation has none. */
	KFDTRAP_WAVE_SCRATCH_RING, /**< The wave's slot is not one of the ring's. */

	KFDTRAP_WAVE_PROBLEM_COUNT,
};

/** @return one line of text without a full stop; "ok" for 0, "unknown problem" outside the enum. */
KFDTRAP_API const char *kfdtrap_wave_problem_text(enum kfdtrap_wave_problem problem);

/* ------------------------------------------------------------------ header ------------------- */

#define KFDTRAP_WAVE_HEADER_SIZE 40u

/** The header in front of each XCC's area, see the kernel's kfd_context_save_area_header. */
struct kfdtrap_wave_header {
	uint32_t control_stack_offset;
	uint32_t control_stack_size; /**< 0 when there are no saved waves. */
	uint32_t wave_state_offset;  /**< End of the wave data, which grow downwards. */
	uint32_t wave_state_size;
	/** Scratch memory of the debugger; the target writes this, and it is unchecked. */
	uint32_t debug_offset;
	uint32_t debug_size;
	uint64_t err_payload_addr; /**< Address of the queue's error reason word. */
	uint32_t err_event_id;
	uint32_t reserved;
};

/**
 * Decode and check a header.
 * @param bytes      KFDTRAP_WAVE_HEADER_SIZE bytes, any alignment.
 * @param area_size  ctx_save_restore_area_size of the queue, which is per XCC.
 * @param ret_header Filled in whatever the answer, so that it can be shown.
 * @return KFDTRAP_WAVE_OK or one of the first group of problems.
 */
KFDTRAP_API enum kfdtrap_wave_problem
kfdtrap_wave_header_parse(const void *bytes, uint64_t area_size,
			  struct kfdtrap_wave_header *ret_header);

/* ------------------------------------------------------------------ the walk ----------------- */

/**
 * The places of one wave's registers.  A block whose count or size is 0 has a meaningless offset.
 * The whole record is [vgpr_offset, top_offset); the next wave's record ends at vgpr_offset.
 */
struct kfdtrap_wave_layout {
	uint32_t index;	     /**< 0 for the first wave of the control stack. */
	uint32_t leader;     /**< Index of the workgroup's first wave. */
	uint32_t state_word; /**< As saved: the (first) state word and the wave word. */
	uint32_t wave_word;

	uint32_t top_offset;
	uint32_t lds_offset; /**< The workgroup's LDS, inside the leader's record. */
	uint32_t lds_size;
	uint32_t ttmp_offset;  /**< 16 trap temporaries of 4 bytes; 0 to 3, 12, 14, 15 are junk. */
	uint32_t hwreg_offset; /**< 16 hardware registers of 4 bytes; 128 on gfx12.5. */
	uint32_t sgpr_offset;  /**< n_sgpr slots of 4 bytes, aliased ones included. */
	uint32_t shared_vgpr_offset; /**< n_shared_vgpr registers of 32 lanes. */
	uint32_t acc_vgpr_offset;    /**< n_acc_vgpr registers of `lanes` lanes. */
	/** n_vgpr registers of `lanes` lanes of 4 bytes each, lane 0 first. */
	uint32_t vgpr_offset;

	uint16_t n_sgpr;
	uint16_t n_vgpr;
	uint16_t n_acc_vgpr;
	uint16_t n_shared_vgpr;
	uint16_t scratch_slot;
	uint8_t shader_engine;
	uint8_t lanes; /**< 32 or 64. */
	bool scratch_enabled;
	bool first; /**< It is the first wave of its workgroup, the leader. */
	bool last; /**< It is the last wave of its workgroup. */
};

/** A walk over one control stack.  Callers read only `problem`, `problem_offset`, `n_waves`. */
struct kfdtrap_wave_iter {
	enum kfdtrap_wave_problem problem; /**< Why the walk ended early; 0 at a proper end. */
	/** Offset of the control stack word that showed it, from the header. */
	uint32_t problem_offset;
	uint32_t n_waves;	 /**< Waves yielded so far. */

	/* The members from here on are private. */
	const struct kfdtrap_wave_arch *arch;
	const uint8_t *stack;
	uint32_t stack_offset;
	uint32_t n_words;
	uint32_t next_word;
	uint32_t max_waves;
	uint32_t top;
	uint32_t bottom;
	uint32_t leader_lds_offset;
	uint32_t leader_lds_size;
	uint32_t leader;
	bool has_state;
	bool has_leader;
	/** The shape that the state word gives to waves; offsets count down from the LDS. */
	struct kfdtrap_wave_layout shape;
};

/**
 * Begin a walk.  Problems show up as the first answer of kfdtrap_wave_next().
 * @param header     As kfdtrap_wave_header_parse() left it, with or without a problem.
 * @param stack      The control stack, borrowed as long as the walk lasts; any alignment.
 * @param size       Bytes in @p stack; those beyond header->control_stack_size are ignored.
 * @param max_waves  The walk ends with KFDTRAP_WAVE_TOO_MANY instead of yielding more.
 */
KFDTRAP_API void kfdtrap_wave_iter_init(struct kfdtrap_wave_iter *iter,
					const struct kfdtrap_wave_arch *arch,
					const struct kfdtrap_wave_header *header, const void *stack,
					size_t size, uint32_t max_waves);

/**
 * Find the next wave, from the highest addresses to the lowest.  Positions depend on all waves
 * before, so nothing can follow the first problem; waves yielded before it stay plausible, not
 * proven: only a proper end confirms them.
 * @return false at the end and at a problem; ret_layout is untouched then.
 */
KFDTRAP_API bool kfdtrap_wave_next(struct kfdtrap_wave_iter *iter,
				   struct kfdtrap_wave_layout *ret_layout);

/* ------------------------------------------------------------------ state -------------------- */

/** Bytes of the trap temporaries and the hardware registers of a wave, which lie side by side. */
#define KFDTRAP_WAVE_HOT_SIZE 128u

/** @return the offset of the KFDTRAP_WAVE_HOT_SIZE bytes that kfdtrap_wave_read_state() wants. */
static inline uint32_t kfdtrap_wave_hot_offset(const struct kfdtrap_wave_layout *layout)
{
	return layout->ttmp_offset < layout->hwreg_offset ? layout->ttmp_offset :
							     layout->hwreg_offset;
}

/** Facts that decide how far trap temporaries can be believed. */
struct kfdtrap_wave_context {
	uint32_t ttmp_setup; /**< As in struct kfdtrap_runtime_info. */
	/** As in struct kfdtrap_device; KFDTRAP_DEBUG_PROP_DISPATCH_INFO counts. */
	uint32_t debug_prop;
	uint32_t r_version;  /**< First word of the runtime's r_debug; rules change at 9 and 10. */
};

/**
 * Why a wave stopped; several reasons can hold.  Without any the debugger stopped it; on gfx9
 * before gfx940 and on gfx10 that may also be a finished single step.
 */
#define KFDTRAP_WAVE_STOP_FP_INVALID	      UINT32_C(0x1)
#define KFDTRAP_WAVE_STOP_FP_INPUT_DENORMAL   UINT32_C(0x2)
#define KFDTRAP_WAVE_STOP_FP_DIVIDE_BY_ZERO   UINT32_C(0x4)
#define KFDTRAP_WAVE_STOP_FP_OVERFLOW	      UINT32_C(0x8)
#define KFDTRAP_WAVE_STOP_FP_UNDERFLOW	      UINT32_C(0x10)
#define KFDTRAP_WAVE_STOP_FP_INEXACT	      UINT32_C(0x20)
#define KFDTRAP_WAVE_STOP_INT_DIVIDE_BY_ZERO  UINT32_C(0x40)
#define KFDTRAP_WAVE_STOP_MATH		      UINT32_C(0x7f) /**< All of the above. */
/** Watch point 0; shifted left by n it is watch point n, up to 3. */
#define KFDTRAP_WAVE_STOP_WATCH_0	      UINT32_C(0x80)
#define KFDTRAP_WAVE_STOP_WATCH		      UINT32_C(0x780)
#define KFDTRAP_WAVE_STOP_MEMORY_VIOLATION    UINT32_C(0x800)
#define KFDTRAP_WAVE_STOP_ADDRESS_ERROR	      UINT32_C(0x1000) /**< Aperture violation. */
#define KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION UINT32_C(0x2000)
#define KFDTRAP_WAVE_STOP_SINGLE_STEP	      UINT32_C(0x4000)
#define KFDTRAP_WAVE_STOP_BREAKPOINT	      UINT32_C(0x8000)	/**< Trap 1. */
#define KFDTRAP_WAVE_STOP_ASSERT	      UINT32_C(0x10000) /**< Trap 2. */
#define KFDTRAP_WAVE_STOP_DEBUG_TRAP	      UINT32_C(0x20000) /**< Trap 3. */
/** Any other trap; wave begin or end. */
#define KFDTRAP_WAVE_STOP_TRAP		      UINT32_C(0x40000)
#define KFDTRAP_WAVE_STOP_COUNT		      19u

/**
 * @return the name of one reason, such as "illegal_instruction"; NULL from KFDTRAP_WAVE_STOP_COUNT
 *         on.
 */
KFDTRAP_API const char *kfdtrap_wave_stop_name(unsigned int bit);

/** @return the queue exceptions (KFDTRAP_EC_MASK()) that these reasons raise. */
KFDTRAP_API uint64_t kfdtrap_wave_stop_exceptions(uint32_t stop_reasons);

/** Bits that tell which dispatch fields of a state mean something; the others are 0. */
#define KFDTRAP_WAVE_HAS_WORKGROUP_X   UINT8_C(0x1)
#define KFDTRAP_WAVE_HAS_WORKGROUP_YZ  UINT8_C(0x2)
#define KFDTRAP_WAVE_HAS_WAVE_IN_GROUP UINT8_C(0x4)
#define KFDTRAP_WAVE_HAS_PACKET	       UINT8_C(0x8)
#define KFDTRAP_WAVE_HAS_WAVE_ID       UINT8_C(0x10)

struct kfdtrap_wave_state {
	uint64_t pc;	/**< The program's; for a parked wave its own, not that of the trap loop. */
	uint64_t exec;	/**< One bit per active lane; the upper half is 0 with 32 lanes. */
	uint64_t wave_id; /**< Id that a debugger wrote; 0 without KFDTRAP_WAVE_HAS_WAVE_ID. */

	uint32_t m0;
	uint32_t mode;
	uint32_t status;      /**< STATUS as saved. */
	/** STATUS to show: PRIV and SKIP_EXPORT are cleared, HALT is the program's own. */
	uint32_t status_user;
	uint32_t state_priv;  /**< gfx12: STATE_PRIV as saved; else 0. */
	uint32_t state_priv_user; /**< gfx12: HALT replaced by the program's own; else 0. */
	uint32_t excp_flags;	  /**< TRAPSTS; gfx12: EXCP_FLAG_PRIV. */
	uint32_t excp_flags_user; /**< gfx12: EXCP_FLAG_USER; else 0. */
	uint32_t trap_ctrl;	  /**< gfx12: TRAP_CTRL; else 0. */
	uint32_t barrier;	  /**< gfx12: the state of the workgroup's barrier; else 0. */
	uint32_t cluster_barrier; /**< gfx12.5: the state of the cluster's barrier; else 0. */

	uint32_t stop_reasons; /**< KFDTRAP_WAVE_STOP_*; 0 unless stopped. */
	uint32_t workgroup[3]; /**< x, y, z. */
	uint32_t packet;       /**< Ring slot of the dispatch, see kfdtrap_wave_dispatch_id(). */
	uint8_t wave_in_group;
	uint8_t trap_id; /**< Id of the last s_trap; 15 means 15 or more, 0 none. */
	uint8_t valid;	 /**< KFDTRAP_WAVE_HAS_*. */
	bool stopped;	 /**< The trap handler or a debugger stopped it. */
	bool halted;	 /**< The program's own HALT bit; a stopped wave has it saved elsewhere. */
	bool parked;	 /**< The saved PC register points at a trap loop; pc is right. */
};

/**
 * Decode what a wave is doing.
 * @param layout     From kfdtrap_wave_next() with the same @p arch.
 * @param hot        KFDTRAP_WAVE_HOT_SIZE bytes from kfdtrap_wave_hot_offset(), any alignment.
 * @param ret_state  Filled in whatever the answer; must not overlap @p hot.
 * @return KFDTRAP_WAVE_OK, KFDTRAP_WAVE_PC_ALIGNMENT.
 */
KFDTRAP_API enum kfdtrap_wave_problem
kfdtrap_wave_read_state(const struct kfdtrap_wave_arch *arch,
			const struct kfdtrap_wave_context *context,
			const struct kfdtrap_wave_layout *layout, const void *hot,
			struct kfdtrap_wave_state *ret_state);

/**
 * Does a wave name the same workgroup as the leader of its group?
 * @return KFDTRAP_WAVE_OK, also when one of the two has no workgroup; KFDTRAP_WAVE_GROUP_ID.
 */
KFDTRAP_API enum kfdtrap_wave_problem
kfdtrap_wave_check_group(const struct kfdtrap_wave_state *leader,
			 const struct kfdtrap_wave_state *wave);

/** Named barriers of a workgroup whose states gfx12.5 saves, numbers 1 to 16. */
#define KFDTRAP_WAVE_NAMED_BARRIERS 16u

/**
 * Find the states of the named barriers of a wave's workgroup: KFDTRAP_WAVE_NAMED_BARRIERS words of 4 bytes, that of
 * number 1 first, as s_get_barrier_state tells them.  All waves of a workgroup save the same.
 * @return false where none are saved, before gfx12.5; ret_offset is untouched then.
 */
KFDTRAP_API bool kfdtrap_wave_named_barriers_find(const struct kfdtrap_wave_arch *arch,
						  const struct kfdtrap_wave_layout *layout,
						  uint32_t *ret_offset);

/* ------------------------------------------------------------------ registers ---------------- */

/** Banks of registers. */
enum kfdtrap_wave_bank {
	KFDTRAP_WAVE_BANK_SGPR, /**< s0 to s101 (gfx9) or s105; fewer if fewer are allocated. */
	KFDTRAP_WAVE_BANK_VGPR, /**< Behind v[n_vgpr - 1] the shared ones follow, 32 lanes each. */
	KFDTRAP_WAVE_BANK_ACC_VGPR,
	KFDTRAP_WAVE_BANK_TTMP,	   /**< 0 to 15. */
	KFDTRAP_WAVE_BANK_SPECIAL, /**< enum kfdtrap_wave_special. */
	KFDTRAP_WAVE_BANK_COUNT,
};

/** Numbers of registers in KFDTRAP_WAVE_BANK_SPECIAL. */
enum kfdtrap_wave_special {
	KFDTRAP_WAVE_M0,
	KFDTRAP_WAVE_PC, /**< As saved, on gfx12.5 maybe with more above its 57 bits; see kfdtrap_wave_state. */
	KFDTRAP_WAVE_EXEC,
	KFDTRAP_WAVE_VCC,
	KFDTRAP_WAVE_FLAT_SCRATCH, /**< SCRATCH_BASE on gfx12. */
	KFDTRAP_WAVE_XNACK_MASK,
	KFDTRAP_WAVE_STATUS,
	KFDTRAP_WAVE_MODE,
	KFDTRAP_WAVE_TRAPSTS,	     /**< Only before gfx12. */
	KFDTRAP_WAVE_STATE_PRIV,     /**< This and the following only on gfx12. */
	KFDTRAP_WAVE_EXCP_FLAG_PRIV,
	KFDTRAP_WAVE_EXCP_FLAG_USER,
	KFDTRAP_WAVE_TRAP_CTRL,
	KFDTRAP_WAVE_SPECIAL_COUNT,
};

/**
 * Find a register.
 * @param number      Number within the bank.
 * @param ret_offset  Offset from the header.
 * @param ret_size    Bytes: 4, 8, or 4 per lane.  With 32 lanes EXEC and VCC have 4.
 * @return false if this wave has no such register.
 */
KFDTRAP_API bool kfdtrap_wave_register_find(const struct kfdtrap_wave_arch *arch,
					    const struct kfdtrap_wave_layout *layout,
					    enum kfdtrap_wave_bank bank, uint32_t number,
					    uint32_t *ret_offset, uint32_t *ret_size);

/**
 * Write the assembler's name of a register, such as "s4", "v0", "a17", "ttmp6", "vcc".
 * @param size  At least 16; always terminated.  Empty if the bank or the special is unknown.
 */
KFDTRAP_API void kfdtrap_wave_register_name(enum kfdtrap_wave_bank bank, uint32_t number, char *buf,
					    size_t size);

/* ------------------------------------------------------------------ dispatch ----------------- */

/**
 * Find the dispatch that a packet slot belongs to.
 * @param read, write  Packet counters of the queue, which never wrap.
 * @param ring_size    Bytes of the ring.
 * @param packet       As in struct kfdtrap_wave_state; the packet lies at ring base + packet * 64.
 * @param ret_id       Packet counter of the dispatch: read <= id < write.
 * @return KFDTRAP_WAVE_OK, KFDTRAP_WAVE_RING_SIZE, KFDTRAP_WAVE_PACKET_SLOT,
 *         KFDTRAP_WAVE_PACKET_ID.
 */
KFDTRAP_API enum kfdtrap_wave_problem kfdtrap_wave_dispatch_id(uint64_t read, uint64_t write,
							       uint64_t ring_size, uint32_t packet,
							       uint64_t *ret_id);

/** Sizes in work-items along x, y, z, as in the AQL packet. */
struct kfdtrap_wave_grid {
	uint32_t group[3];
	uint32_t grid[3];
};

/**
 * Find the work-item that a lane is.  Groups at the grid's edge can be partial.
 * @param lanes         Lanes of the wave: 32 or 64.
 * @param ret_in_group  Position in the workgroup; x, y, z.
 * @param ret_global    Position in the grid.
 * @return false if there is no such work-item: beyond the group, or the group beyond the grid.
 */
KFDTRAP_API bool kfdtrap_wave_work_item(const struct kfdtrap_wave_grid *grid,
					const uint32_t workgroup[3], uint32_t wave_in_group,
					uint32_t lanes, uint32_t lane, uint32_t ret_in_group[3],
					uint32_t ret_global[3]);

/* ------------------------------------------------------------------ scratch ------------------ */

/** Facts that place the private memory of waves. */
struct kfdtrap_wave_scratch {
	uint32_t gfx_target_version;
	/** Shader engines of one XCC: array_count / simd_arrays_per_engine. */
	uint32_t shader_engines;
	uint32_t tmpring;	 /**< compute_tmpring_size, 12 bytes behind the read counter. */
	uint64_t base;		 /**< scratch_backing_memory_location, 32 bytes behind it. */
	/** scratch_backing_memory_byte_size, 40 bytes behind it, up to r_version 10; else 0. */
	uint64_t xcc_bytes;
};

/** The place of a wave's private memory. */
struct kfdtrap_wave_scratch_place {
	uint64_t address;
	uint32_t size;	  /**< Bytes of all lanes together. */
	bool in_register; /**< The wave's FLAT_SCRATCH must hold the address. */
};

/**
 * Find the private memory of a wave.
 * @param layout  That of a wave of the queue, on XCC @p xcc.
 * @return KFDTRAP_WAVE_OK, KFDTRAP_WAVE_NO_SCRATCH, KFDTRAP_WAVE_SCRATCH_RING.
 */
KFDTRAP_API enum kfdtrap_wave_problem
kfdtrap_wave_scratch_find(const struct kfdtrap_wave_scratch *scratch,
			  const struct kfdtrap_wave_layout *layout, uint32_t xcc,
			  struct kfdtrap_wave_scratch_place *ret_place);

/**
 * Turn a lane's private address into an offset in the wave's memory, where words of all lanes lie
 * side by side.
 * @param lanes  Lanes of the wave.
 */
static inline uint64_t kfdtrap_wave_scratch_offset(uint32_t lanes, uint32_t lane, uint32_t address)
{
	return (uint64_t)(address / 4) * lanes * 4 + (uint64_t)lane * 4 + address % 4;
}

/* ------------------------------------------------------------------ sizes -------------------- */

/** Facts about a device, from struct kfdtrap_node. */
struct kfdtrap_wave_device {
	uint32_t gfx_target_version;
	uint32_t simd_count; /**< SIMDs of all XCCs together. */
	uint32_t simd_per_cu;
	uint32_t num_xcc;
	uint32_t array_count; /**< Per XCC, as in struct kfdtrap_device and unlike sysfs. */
	uint32_t simd_arrays_per_engine;
	uint32_t lds_size; /**< Bytes per compute unit; matters on gfx950 and gfx12.5 only. */
};

/**
 * Bytes that the kernel expects a runtime to allocate for one queue.  Pages of this machine, which areas and the buffer
 * end at, may be larger than the 4 KiB of the GPU's; kernels up to 6.12 expect more where they are.
 */
struct kfdtrap_wave_area_sizes {
	uint64_t waves; /**< Most waves of one XCC; a count, not bytes. */
	uint64_t control_stack_size;
	uint64_t wave_data_size;
	uint64_t area_size; /**< The sum of both, up to the end of a page, for one XCC. */
	uint64_t debug_size; /**< One XCC's share of the debugger's memory, behind all areas. */
	uint64_t buffer_size; /**< The areas and the debugger's memory of all XCCs. */
};

/**
 * Compute the sizes of a queue's save area.
 * @return false for an unknown architecture or a count of 0.
 */
KFDTRAP_API bool kfdtrap_wave_area_sizes(const struct kfdtrap_wave_device *device,
					 struct kfdtrap_wave_area_sizes *ret_sizes);

#ifdef __cplusplus
}
#endif

#endif /* KFDTRAP_WAVE_H */
