/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_ID_MAP_H
#define WORKER_SNAPSHOT_ID_MAP_H

/** @file id_map.h  Small consecutive numbers for distinct 64-bit keys, in the order they came. */

#include <stddef.h>
#include <stdint.h>

struct id_map {
	uint64_t *keys; /**< By number. */
	size_t n, capacity;
	uint32_t *slots; /**< Number of a key plus 1. */
	uint32_t mask;
	uint64_t secret;
};

/** @return 0, -ENOMEM.  Release with id_map_deinit(). */
int id_map_init(struct id_map *t);
/** Accepts a zeroed object. */
void id_map_deinit(struct id_map *t);

/** Number of a key, which is new when it equals the former n.  @return -ENOMEM. */
int64_t id_map_put(struct id_map *t, uint64_t key);

#endif /* WORKER_SNAPSHOT_ID_MAP_H */
