/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_CONVERT_H
#define WORKER_SNAPSHOT_CONVERT_H

/** @file convert.h  From what back ends fill in (target/target.h) to what the wire carries (rpc_gen.h). */

#include "agentd/worker/target/target.h"

/** NULL when the arena is exhausted; values the schema lacks are left out. */
enum rpc_exception *convert_exceptions(struct rpc_arena *a, uint64_t mask, size_t *ret_n);
/** The descriptions of these exceptions, in the arena. */
const char *convert_exception_words(struct rpc_arena *a, const enum rpc_exception *list, size_t n);
enum rpc_trap *convert_traps(struct rpc_arena *a, uint32_t mask, size_t *ret_n);
enum rpc_flag *convert_flags(struct rpc_arena *a, uint32_t mask, size_t *ret_n);

uint64_t convert_exception_mask(const enum rpc_exception *list, size_t n);
uint32_t convert_trap_mask(const enum rpc_trap *list, size_t n);
uint32_t convert_flag_mask(const enum rpc_flag *list, size_t n);

struct rpc_runtime convert_runtime(const struct target_runtime *r);
struct rpc_device *convert_devices(struct rpc_arena *a, const struct target_device *d, size_t n);
/** @param gpu_id NULL: all.  @param ret_n Queues kept. */
struct rpc_queue *convert_queues(struct rpc_arena *a, const struct target_queue *q, size_t n,
				 const uint32_t *gpu_id, size_t *ret_n);
/** Add what a look at the waves meant for each queue; NULL adds nothing. */
void convert_queue_stops(struct rpc_queue *queues, const struct target_queue_stop *stops, size_t n);
struct rpc_queue_result *convert_results(struct rpc_arena *a, const struct target_queue_result *r,
					 size_t n, enum rpc_queue_verdict count,
					 uint32_t *ret_count);
struct rpc_watchpoint *convert_watches(struct rpc_arena *a, const struct target_watch *w, size_t n);

#endif /* WORKER_SNAPSHOT_CONVERT_H */
