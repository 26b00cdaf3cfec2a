/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_WARPS_H
#define WORKER_WAIT_WARPS_H

/** @file warps.h  A block of an NVIDIA device, as warps.c, clusters.c and mbarriers.c share it. */

#include "agentd/worker/wait/look.h"
#include "waits/mbarrier.h"
#include "waits/sass.h"

/** Lanes at one place, of one block; a block has at most 32 warps, and few of them are apart. */
#define UNITS_MAX 256u
/** Waits of one block. */
#define WAITS_MAX 32u

enum does { DOES_RUN, DOES_STOP, DOES_WAIT, DOES_UNKNOWN };

/** Lanes of a warp that are at one place. */
struct unit {
	const struct wave *w;	 /**< The warp, or a part of it. */
	const struct wave *warp; /**< The warp. */
	enum does does;
	uint32_t lanes;
	struct waits_sass at; /**< What they wait at, if that is no object in memory. */
	const struct target_mbarrier *object; /**< What was read of such an object; NULL: they are at none. */
	struct waits_mbarrier state;	      /**< What it says, if they wait for it. */
	/** What the hardware says of lanes that wait for others of their warp. */
	enum { LANES_UNTOLD, LANES_DOUBTFUL, LANES_BLOCKED } told;
	uint32_t awaited; /**< Of those that are blocked: lanes that they wait for, as far as it is known. */
	uint32_t ready;	  /**< Lanes at a WARPSYNC that go on; @c lanes has them only if no other is there. */
	/** Of those at a WARPSYNC for which all have come: a hash of what the hardware says of their warp; else 0. */
	uint64_t all_came;
	bool goes_on; /**< Known only of a warp of which lanes wait where they meet: these do not, or for such alone. */
	uint32_t wait; /**< Which of the block's waits it is in; LOOK_NONE. */
};

/** Where units of a block wait. */
struct place {
	const struct unit *first;
	size_t wait; /**< In the look; LOOK_NONE where there was no room. */
};

struct block {
	const struct wave *waves;
	uint32_t n;
	struct unit units[UNITS_MAX];
	uint32_t n_units, undecoded, unread;
	struct place places[WAITS_MAX];
	uint32_t n_places;
	bool cut;
	/** Nobody is left who could come to the objects that are waited for: of the whole cluster. */
	bool is_over;
	bool is_old; /**< The same was so in the look before, and that long ago. */
	uint32_t stands; /**< Places, by bit, at WARPSYNC for which all had come so in the look before. */
};

/* warps.c */

/** Find what the warps of a block wait for.  @param b  With waves and n alone. */
void warps_read_block(struct look *l, struct block *b);
/** @return whether all of those who wait at a place wait for somebody. */
bool warps_is_closed(struct look *l, const struct block *b, uint32_t place);
/**
 * May code of the kernel come to a barrier, while nobody is seen to be on the way there?
 * @return true also where that is not known.
 */
bool warps_may_arrive(struct look *l, const struct unit *u);
/** A name for something of a block in history.h. */
uint64_t warps_name_of(const struct wave *w, uint64_t place);
/** All that is seen of the units of a block. */
uint64_t warps_state_of(const struct block *b);
/** @return "warps 1-4 and lanes 1-31 of warp 0": those at a place. */
const char *warps_text(struct look *l, const struct block *b, uint32_t place);
/** @return "warps 5-11 have exited"; NULL: none has, or that is not known. */
const char *warps_exited_text(struct look *l, const struct block *b);
/** Add one that has not come. */
void warps_add_party(struct look *l, const struct block *b, size_t wait, const struct unit *u, bool any);
/** Add those of the block that have exited, as one party, where it is known which have. */
void warps_add_exited(struct look *l, const struct block *b, size_t wait);
/** Add some of whom no more is known than that they are there, as one party. */
void warps_add_others(struct look *l, size_t wait, const char *what);
/** Add those who wait at another place of the block, as one party. */
void warps_add_waiting(struct look *l, const struct block *b, size_t wait, uint32_t place);

/* clusters.c */

/** @return whether two waves are of one cluster, of so many workgroups in each direction. */
bool clusters_is_same(const struct wave *a, const struct wave *b, const uint32_t size[3]);
/** All that is seen of the cluster of a block that waits for it; 0: it does not, or how large that is is not known. */
uint64_t clusters_state_of(struct look *l, const struct block *b);
/** Note a new wait for a cluster.  @param first  The first unit of the block in it.  @param wait  In the look. */
void clusters_note(struct look *l, const struct block *b, const struct unit *first, size_t wait);

/* mbarriers.c */

/** Find out of which blocks nobody is left who could come. */
void mbarriers_begin_look(struct look *l);
/** @return what was read of the object that these lanes stand at; NULL: they are at none. */
const struct target_mbarrier *mbarriers_find(const struct look *l, const struct wave *warp, uint64_t pc);
/** Tell what lanes at an object do. */
void mbarriers_classify(struct unit *u);
/** Fill in block.is_over and is_old. */
void mbarriers_judge(struct look *l, struct block *b);
/** Tell what one of the block's waits is for, if that is an object. */
void mbarriers_describe(struct look *l, const struct unit *first, struct rpc_wait *to);
/** Add who has not come to those of the block's waits that are for objects. */
void mbarriers_add_parties(struct look *l, struct block *b);
/** All blocks were looked at: say of how many the same is so. */
void mbarriers_end_look(struct look *l);

#endif /* WORKER_WAIT_WARPS_H */
