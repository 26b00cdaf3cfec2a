/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_ID_MAP_H
#define WORKER_SNAPSHOT_ID_MAP_H

/** @file id_map.h  Small consecutive numbers for distinct 64-bit keys, in the order they came. */

#include <stddef.h>
#include <stdint.h>

struct intern {
	uint64_t *keys; /**< By number. */
	size_t n, capacity;
	uint32_t *slots; /**< Number of a key plus 1. */
	uint32_t mask;
	uint64_t secret;
};

/** @return 0, -ENOMEM.  Release with intern_deinit(). */
int intern_init(struct intern *t);
/** Accepts a zeroed object. */
void intern_deinit(struct intern *t);

/** Number of a key, which is new when it equals the former n.  @return -ENOMEM. */
int64_t intern_put(struct intern *t, uint64_t key);

#endif /* WORKER_SNAPSHOT_ID_MAP_H */
