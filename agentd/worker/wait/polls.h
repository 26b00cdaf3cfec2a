/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_POLLS_H
#define WORKER_WAIT_POLLS_H

/** @file polls.h  Waits for a word of memory, as polls.c of AMD's and spins.c of NVIDIA's devices share them. */

#include "agentd/worker/wait/look.h"

/** A word, and how many lanes of the wave poll it. */
struct polled {
	struct waits_word word;
	uint64_t value;
	bool is_known;
	bool is_shared; /**< The address is one of memory of the block. */
	uint32_t lanes;
};

/** A loop. */
struct poll_loop {
	uint64_t begin, load, end;
	bool is_lock, sleeps;
	uint32_t here; /**< Waves there. */
	const char *read; /**< When the word was read. */
	const char *more; /**< Words of other lanes, as text; or "". */
};

/**
 * Add a wait for a word.
 * @param w      The wave that was looked at: of its parts, the one that is in the loop.
 * @param whole  The wave.
 */
void polls_add(struct look *l, const struct wave *w, const struct wave *whole, const struct poll_loop *loop,
	       const struct polled *p);

#endif /* WORKER_WAIT_POLLS_H */
