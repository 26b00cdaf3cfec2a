/* SPDX-License-Identifier: MIT */
#ifndef CUDASIM_COMMAND_H
#define CUDASIM_COMMAND_H

/** @file command.h  What the files with script commands share. */

#include "sim.h"

#define ARGS_MAX 32

struct args {
	char *word[ARGS_MAX]; /**< word[0] is the command. */
	int n;
	const void *blob;
	size_t blob_size;
	struct out *ret; /**< Never NULL. */
};

struct command {
	const char *name; /**< NULL ends a table. */
	int (*run)(struct sim_process *p, const struct args *a);
	const char *help;
};

/** command.c: devices to grids; command_plant.c: warps, registers, memory; command_wish.c:
 * mischief. */
extern const struct command plant_commands[], wish_commands[];

/* All return 0, -EINVAL or -ERANGE. */
int arg_number(const struct args *a, int i, uint64_t max, uint64_t *ret);
/** Value of KEY=VALUE, or NULL. */
const char *arg_value(const struct args *a, const char *key);
int arg_key(const struct args *a, const char *key, uint64_t fallback, uint64_t max, uint64_t *ret);
int arg_dim(const struct args *a, const char *key, struct sim_dim *dim);
/** Words first.. are device, SM, warp, lane, as many as @p depth; the others become 0. */
int arg_place(struct sim_process *p, const struct args *a, int first, int depth, uint64_t at[4]);

#endif /* CUDASIM_COMMAND_H */
