/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_COMMAND_H
#define CUDASIM_COMMAND_H

/** @file command.h  What the files with script commands share. */

#include "sim.h"

#define ARGS_MAX 32

/** One command, cut into words. */
struct args {
	char *word[ARGS_MAX]; /**< word[0] is the command. */
	int n;
	const void *blob;
	size_t blob_size;
	struct out *ret; /**< Never NULL. */
};

/** One command of the script language. */
struct command {
	const char *name; /**< NULL ends a table. */
	int (*run)(struct sim_process *p, const struct args *a);
	const char *help;
};

/**
 * command.c has devices to grids, command_plant.c warps, registers and memory, command_wish.c
 * mischief.
 */
extern const struct command plant_commands[], wish_commands[];

/* The functions below return 0, -EINVAL (not understood) or -ERANGE (too large). */
/** Read word i as a number of at most max. */
int arg_number(const struct args *a, int i, uint64_t max, uint64_t *ret);
/** The value of KEY=VALUE; NULL if the key is not there. */
const char *arg_value(const struct args *a, const char *key);
/** Read the number of KEY=VALUE; the fallback if the key is not there. */
int arg_key(const struct args *a, const char *key, uint64_t fallback, uint64_t max, uint64_t *ret);
/** Read KEY=X[,Y[,Z]]; without the key, *dim stays as it is. */
int arg_dim(const struct args *a, const char *key, struct sim_dim *dim);
/**
 * Read a place: words from first on are device, SM, warp, lane, as many as @p depth; the others
 * become 0.  Also -ENODEV.
 */
int arg_place(struct sim_process *p, const struct args *a, int first, int depth, uint64_t at[4]);

#endif /* CUDASIM_COMMAND_H */
