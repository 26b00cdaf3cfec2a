/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_REGISTERS_H
#define WORKER_SNAPSHOT_REGISTERS_H

/** @file registers.h  How the wire says the registers of one wave, whoever reads them. */

#include "agentd/worker/target/target.h"

/** Nothing is left out. */
extern const struct target_registers_wanted registers_all;

/** A reply under construction.  The arena remembers when it is exhausted. */
struct registers_builder {
	struct rpc_arena *arena;
	const struct target_registers_wanted *what;
	struct rpc_wave_registers *ret;
};

/** The wave as it is now, of which the reply keeps a copy.  @return 0, -ENOMEM. */
int registers_set_wave(const struct registers_builder *b, const struct wave *wave);

bool registers_is_wanted(const struct registers_builder *b, enum rpc_register_bank bank);
/**
 * Which of @p total vector or accumulation registers are wanted.
 * @param ret_first  Number of the first of them.
 * @return how many.
 */
uint32_t registers_wanted_range(const struct registers_builder *b, uint32_t total,
				uint32_t *ret_first);

/** One more in a list, which has room for it or is NULL. */
void registers_add(struct rpc_scalar_register *list, size_t *n, const char *name, uint32_t bits,
		   uint64_t value);
/** The same.  @return values of its lanes, 0 as yet; NULL without memory. */
uint64_t *registers_add_vector(const struct registers_builder *b, struct rpc_vector_register *list,
			       size_t *n, const char *name, uint32_t n_lanes);

/** What launched the wave.  Sizes are in work-items, as x, y, z. */
void registers_set_packet(const struct registers_builder *b, uint64_t kernel_object,
			  const uint32_t workgroup_size[3], const uint32_t grid_size[3]);
/** The cluster of its workgroup, as x, y, z; NULL for what is not told, both where it is in none. */
void registers_set_cluster(const struct registers_builder *b, const uint32_t size[3], const uint32_t index[3]);
/** Work-items are asked for and known, of @p n lanes at most. */
void registers_begin_work_items(const struct registers_builder *b, uint32_t n);
/** @return one more of them, NULL without memory. */
struct rpc_work_item *registers_add_work_item(const struct registers_builder *b, uint32_t lane,
					      const uint32_t in_group[3], const uint32_t global[3]);

#endif /* WORKER_SNAPSHOT_REGISTERS_H */
