/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_LOCATIONS_H
#define WORKER_SNAPSHOT_LOCATIONS_H

/**
 * @file locations.h
 * Where waves are, as small numbers: thousands of waves stand at a few places.
 *
 * A *site* is a distinct address of an instruction.  Groups are made by *place*: a source line
 * reached through one chain of inlined calls, or a site where no line is known.  Each site is
 * looked up once, however many waves there are.
 */

#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/target/waves.h"

/** Most bytes of text of all places together: hostile names must not fill memory. */
#define LOCATIONS_TEXT_MAX ((size_t)8 << 20)

/** One place. */
struct location {
	struct rpc_frame *frames; /**< The frames of the first site found there, innermost first. */
	size_t n_frames;	  /**< 0: nothing is known. */
};

/** One kernel that waves run. */
struct location_kernel {
	uint64_t address; /**< The kernel's name in dispatches, see code_kernel(). */
	const char *name, *raw; /**< As in struct code_symbol; NULL: no known object has it. */
};

/** All places and kernels of the waves of one capture. */
struct locations {
	struct location *places;
	size_t n_places;
	struct location_kernel *kernels; /**< Number 0 stands for an unknown kernel. */
	size_t n_kernels;
	size_t n_sites;
	size_t n_unknown; /**< How many sites are in no known code object. */
	bool cut;         /**< Text was left out because of LOCATIONS_TEXT_MAX. */
};

/**
 * Set site, place and kernel of each wave and of its parts, and the frames of their stacks.
 * @param s    Its arena holds the text.
 * @param ret  Release with locations_deinit() in any case.
 * @return 0, -ENOMEM.
 */
int locations_find(struct code_set *s, struct wave *waves, size_t n, struct locations *ret);
/** Free the lists; accepts a zeroed object. */
void locations_deinit(struct locations *p);

/**
 * Find the frames of calls by the addresses that the calls return to.
 * @param text  Bytes of text that there is room for; shrinks by what is used.
 * @return false if text was left out.
 */
bool locations_find_callers(struct code_set *s, struct rpc_caller *callers, size_t n, size_t *text);

/** Convert the frames of a location for replies.  @return NULL when the arena is exhausted. */
struct rpc_frame *locations_convert_frames(struct rpc_arena *a, const struct symbols_location *l);

#endif /* WORKER_SNAPSHOT_LOCATIONS_H */
