/* SPDX-License-Identifier: MIT */
#ifndef KFDSIM_WAVE_SCRIPT_H
#define KFDSIM_WAVE_SCRIPT_H

/**
 * @file wave_script.h
 * From the text of waves.h to waves, and how they move.
 */

#include "wave_encode.h"

/** One wave and what it does while its queue runs. */
struct wave_actor {
	struct wave_desc desc;
	uint32_t xcc;
	uint64_t pc;	    /**< Start of its loop, or its only place. */
	uint32_t loop, at;  /**< Bytes; 0: does not move. */
	bool behind_trap;   /**< Stopped by an s_trap at pc. */
	bool has_packet;    /**< Otherwise the oldest one. */
	bool finishes;	    /**< Its packet can be done. */
};

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

struct wave_script {
	const struct wave_silicon *silicon;
	struct wave_actor *waves;
	size_t n, n_groups;
	struct wave_plants *plants;
};

/** @return 0, -EINVAL, -ENOMEM; @p ret can be released in any case. */
int wave_script_parse(const struct wave_script_place *place, const char *text,
		      struct wave_script *ret);
void wave_script_deinit(struct wave_script *s);

/** Where the wave is now, as its pc register says. */
uint64_t wave_actor_pc(const struct wave_actor *a, uint32_t r_version);
/** The queue ran for a while. */
void wave_actor_run(struct wave_actor *a);

#endif /* KFDSIM_WAVE_SCRIPT_H */
