/* SPDX-License-Identifier: MIT */
#ifndef WORKER_KFD_REGISTERS_H
#define WORKER_KFD_REGISTERS_H

/** @file registers.h  One wave in full: shared by its files, for nobody else. */

#include "agentd/worker/kfd/waves.h"
#include "symbols/aql.h"

/* All registers that the fields of a control stack can announce are less than half of it. */
#define SAVED_WAVE_MAX ((size_t)512 << 10)

/* The saved bytes of one wave, without its LDS. */
struct saved_wave {
	const struct save_area *area; /* NULL: no such wave */
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_state state;
	uint8_t *bytes; /* SAVED_WAVE_MAX; from layout.vgpr_offset on */
	uint32_t size;
	bool tried, got; /* all of them */
	uint8_t packet[SYMBOLS_AQL_PACKET_SIZE];
	bool has_packet;
};

/* A look at one queue, for one of its waves. */
struct one_wave {
	const struct rpc_wave_name *name;
	struct saved_wave record;
};

/* saved_wave.c */

/** Which dispatch a wave belongs to; false when unknown. */
bool saved_wave_dispatch(const struct queue_capture *l, const struct kfdtrap_wave_state *s,
			 uint64_t *ret);
/** While its queue stands still, unless it is late: registers and packet of a wave found. */
void saved_wave_copy(struct wave_capture *w, struct saved_wave *r);
/** Later: what was copied becomes registers.  The arena remembers when it is exhausted. */
void saved_wave_fill(struct rpc_arena *a, const struct saved_wave *r,
		     const struct target_registers_wanted *what, struct rpc_wave_registers *ret);
/** @return NULL if decoding left the wave out, which is told in missing. */
struct wave *saved_wave_wave(const struct target_waves *waves, const struct saved_wave *r);

/* registers.c */

/** While the queue stands still.  @return whether there is such a wave, which is noted then. */
bool one_wave_find(const struct wave_capture *w, struct one_wave *one);
/** Stop, copy, let go.  On success there is the wave, not always all of it. */
int one_wave_take(struct wave_capture *w, struct one_wave *one, struct target_waves *waves,
		  struct agent_err *err);
int one_wave_is_late(const struct wave_capture *w, struct agent_err *err);

/* representatives.c */

/** wave_capture_run() with registers of the first wave at each place. */
int kfd_representatives(struct wave_capture *w, struct target_waves *ret, struct agent_err *err);

#endif /* WORKER_KFD_REGISTERS_H */
