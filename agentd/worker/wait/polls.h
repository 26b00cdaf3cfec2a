/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_POLLS_H
#define WORKER_WAIT_POLLS_H

/** @file polls.h  Waits for a word of memory, as polls.c of AMD's and spins.c of NVIDIA's devices share them. */

#include "agentd/worker/wait/look.h"

/** Most words of which any one ends a loop. */
#define POLLED_MAX 4u

/** A word. */
struct polled {
	struct waits_word word;
	uint64_t value;
	bool is_known;
	bool is_shared; /**< The address is one of memory of the block. */
	uint64_t load;	/**< Where the loop loads it. */
};

/** What a lane polls, and how many lanes of the wave do: the loop ends when any of the words is as it should be. */
struct polled_any {
	struct polled list[POLLED_MAX];
	uint32_t n, lanes;
};

/** A loop. */
struct poll_loop {
	uint64_t begin, end;
	bool is_lock, sleeps;
	uint32_t here; /**< Waves there. */
	const char *read; /**< When the word was read. */
	const char *more; /**< Words of other lanes, as text; or "". */
};

/** @return whether a word is known to be as it should be: the loop ends in this round. */
bool polls_end(const struct polled_any *p);
/**
 * Add a wait for words.
 * @param w      The wave that was looked at: of its parts, the one that is in the loop.
 * @param whole  The wave.
 */
void polls_add(struct look *l, const struct wave *w, const struct wave *whole, const struct poll_loop *loop,
	       const struct polled_any *p);

#endif /* WORKER_WAIT_POLLS_H */
