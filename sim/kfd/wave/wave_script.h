/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_WAVE_SCRIPT_H
#define KFDSIM_WAVE_SCRIPT_H

/**
 * @file wave_script.h
 * Turns the text of waves.h into waves, and knows how they move.
 */

#include "wave_encode.h"

/** One wave and what it does while its queue runs. */
struct wave_actor {
	struct wave_desc desc;
	uint32_t xcc;
	uint64_t pc;	    /**< Start of its loop, or its only position. */
	uint32_t loop, at;  /**< Bytes of the loop, and position in it; 0: it stays. */
	bool behind_trap;   /**< Stopped by an s_trap at pc. */
	bool has_packet;    /**< A packet was named; otherwise it is the oldest one. */
	bool finishes;	    /**< Its packet can be done. */
};

/** What a script is for: one queue. */
struct wave_script_place {
	const struct wave_silicon *silicon;
	uint32_t n_xcc;
	bool wave32;
	uint64_t seed;
};

/** Registers chosen by one line. */
struct wave_plants {
	struct wave_plants *next;
	size_t n;
	struct wave_plant plants[];
};

/** The waves of a script. */
struct wave_script {
	const struct wave_silicon *silicon;
	struct wave_actor *waves;
	size_t n, n_groups;
	struct wave_plants *plants;
};

/**
 * Parse a script.
 * @return 0, -EINVAL, -ENOMEM; @p ret can be released in any case.
 */
int wave_script_parse(const struct wave_script_place *place, const char *text,
		      struct wave_script *ret);
/** Free the waves of a script; a zeroed object is accepted. */
void wave_script_deinit(struct wave_script *s);

/** The position of a wave as its pc register has it. */
uint64_t wave_actor_pc(const struct wave_actor *a, uint32_t r_version);
/** Move a wave, since its queue ran for a while. */
void wave_actor_run(struct wave_actor *a);

#endif /* KFDSIM_WAVE_SCRIPT_H */
