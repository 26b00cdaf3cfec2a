/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_ID_MAP_H
#define WORKER_SNAPSHOT_ID_MAP_H

/**
 * @file id_map.h
 * Consecutive numbers, from 0 on, for distinct 64-bit keys, in the order in which the keys came.
 */

#include <stddef.h>
#include <stdint.h>

/** The keys, and an open-addressed hash table of their numbers. */
struct id_map {
	uint64_t *keys; /**< The key of each number. */
	size_t n, capacity;
	uint32_t *slots; /**< Each is empty, 0, or the number of a key plus 1. */
	uint32_t mask;
	uint64_t secret;
};

/** Begin with no keys.  @return 0, -ENOMEM.  Release with id_map_deinit() in any case. */
int id_map_init(struct id_map *t);
/** Free the map; accepts a zeroed object. */
void id_map_deinit(struct id_map *t);

/**
 * Find or add a key.
 * @return the number of the key, which is new if it equals the former n; -ENOMEM.
 */
int64_t id_map_put(struct id_map *t, uint64_t key);

#endif /* WORKER_SNAPSHOT_ID_MAP_H */
