/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_LOCATIONS_H
#define WORKER_SNAPSHOT_LOCATIONS_H

/**
 * @file locations.h
 * Where waves are, as small numbers: thousands of waves stand at a few places.
 *
 * A *site* is a distinct address of an instruction; a *place* is what groups are made by: a source
 * line reached through one chain of inlined calls, or a site where no line is known.  Each is
 * looked up once, whatever the number of waves.
 */

#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/target/waves.h"

/** Text of all places together; hostile names must not fill memory. */
#define LOCATIONS_TEXT_MAX ((size_t)8 << 20)

struct location {
	struct rpc_frame *frames; /**< Innermost first; of the first site found there. */
	size_t n_frames;	  /**< 0: nothing known. */
};

struct location_kernel {
	uint64_t address; /**< What dispatches call it. */
	const char *name, *raw; /**< NULL: not in any code object that we know. */
};

struct locations {
	struct location *places;
	size_t n_places;
	struct location_kernel *kernels; /**< Number 0 stands for unknown. */
	size_t n_kernels;
	size_t n_sites;
	size_t n_unknown; /**< Sites in no code object that we know. */
	bool cut;         /**< Text was left out, see LOCATIONS_TEXT_MAX. */
};

/**
 * Set site, place and kernel of each wave, and the frames of their stacks.
 * @param s    Its arena holds the text.
 * @param ret  Release with locations_deinit() in any case.
 * @return 0, -ENOMEM.
 */
int locations_find(struct code_set *s, struct wave *waves, size_t n, struct locations *ret);
/** Accepts a zeroed object. */
void locations_deinit(struct locations *p);

/**
 * Frames of calls, by the addresses that they return to.
 * @param text  Bytes of text that there is room for; shrinks.
 * @return false when text was left out.
 */
bool locations_find_callers(struct code_set *s, struct rpc_caller *callers, size_t n, size_t *text);

/** For replies.  @return NULL when the arena is exhausted. */
struct rpc_frame *locations_convert_frames(struct rpc_arena *a, const struct symbols_location *l);

#endif /* WORKER_SNAPSHOT_LOCATIONS_H */
