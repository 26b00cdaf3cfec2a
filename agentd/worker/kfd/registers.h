/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_REGISTERS_H
#define WORKER_KFD_REGISTERS_H

/**
 * @file registers.h
 * The saved bytes of single waves, for registers, wave memory and representatives.  No other
 * directory includes it.
 */

#include "agentd/worker/kfd/waves.h"
#include "symbols/aql.h"

/*
 * Most bytes of a saved wave: all registers that the fields of a control stack can announce take
 * less than half of it.
 */
#define SAVED_WAVE_MAX ((size_t)512 << 10)

/* The saved bytes of one wave, without its LDS. */
struct saved_wave {
	const struct save_area *area; /* NULL: there is no such wave. */
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_state state;
	uint8_t *bytes; /* Room for SAVED_WAVE_MAX bytes; they begin at layout.vgpr_offset. */
	uint32_t size;
	bool tried, got; /* The copy was begun in time; all bytes were read. */
	uint8_t packet[SYMBOLS_AQL_PACKET_SIZE];
	bool has_packet;
};

/* The wave that a capture of one queue is for. */
struct one_wave {
	const struct rpc_wave_name *name;
	struct saved_wave record;
};

/* saved_wave.c */

/** Find the dispatch that a wave belongs to.  @return false if it is not known. */
bool saved_wave_dispatch(const struct queue_capture *l, const struct kfdtrap_wave_state *s,
			 uint64_t *ret);
/**
 * Copy registers and packets of waves that were found, while their queues stand still; do nothing if
 * it is late.  A few waves take one system call.
 */
void saved_waves_copy(struct wave_capture *w, struct saved_wave *const *list, size_t n);
/** Make registers of the copied bytes, later.  The arena remembers whether it was exhausted. */
void saved_wave_fill(struct rpc_arena *a, const struct saved_wave *r,
		     const struct target_registers_wanted *what, struct rpc_wave_registers *ret);
/** @return the decoded wave; NULL if decoding left it out, as `missing` then says. */
struct wave *saved_wave_wave(const struct target_waves *waves, const struct saved_wave *r);

/* registers.c */

/** Find the wave while its queue stands still.  @return whether it is there; noted in @p one. */
bool one_wave_find(const struct wave_capture *w, struct one_wave *one);
/**
 * Run a capture for one wave.
 * @return 0: the wave is there, but not always all of its bytes; or negative with @p err.
 */
int one_wave_take(struct wave_capture *w, struct one_wave *one, struct target_waves *waves,
		  struct agent_err *err);
/** Say that the stop budget was used up.  @return negative with @p err. */
int one_wave_is_late(const struct wave_capture *w, struct agent_err *err);

/* representatives.c */

/** As wave_capture_run(), with the registers of the first wave at each place. */
int kfd_representatives(struct wave_capture *w, struct target_waves *ret, struct agent_err *err);

#endif /* WORKER_KFD_REGISTERS_H */
