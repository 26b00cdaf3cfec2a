/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_H
#define WORKER_SNAPSHOT_H

/** @file snapshot.h  gpu.snapshot: devices, queues, runtime and waves in one document. */

#include "agentd/worker/target/target.h"

/** Version of the document. */
#define SNAPSHOT_SCHEMA "gpu-agent.snapshot/1"

/** What the client asked for, and what the session knows. */
struct snapshot_options {
	bool waves;	/**< Stop queues to see what their waves do. */
	bool each_wave; /**< List the waves besides the groups. */
	const struct rpc_wave_select *select; /**< The waves to list; NULL: all. */
	bool registers; /**< Show the registers of the groups' representatives. */
	bool mbarriers; /**< Read what waves of NVIDIA's devices wait for in shared memory, and poll. */
	bool all_arguments; /**< Show those of all kernels, and hidden ones. */
	uint32_t **ret_group_of; /**< Gets the position of each wave's group, in the arena; NULL: nobody asks. */
	bool no_stop;	 /**< Waves are wanted, but nothing may be stopped: only say so. */
	uint32_t look_up_ms; /**< Time to look up kernels and source lines. */
	const uint32_t *holder_uid; /**< The user who holds the writer lease; NULL: nobody does. */
};

/** What was captured; snapshot_tell() makes the document of it. */
struct snapshot {
	uint64_t time_us;
	const struct target_device *devices;
	size_t n_devices;
	const struct rpc_queue *queues;
	size_t n_queues;
	struct target_waves waves;
};

/**
 * Capture devices, queues and waves: the part that stops queues.
 * @param a            Holds what @p ret points to; its limit should be TARGET_ARENA_MAX.
 * @param max_stop_ms  The stop budget.
 * @return 0, or negative with @p err.
 */
int snapshot_look(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  uint32_t max_stop_ms, struct snapshot *ret, struct agent_err *err);
/**
 * Make the document, while the queues run: find kernels and source lines, and count groups.
 * @param a    Holds the document.
 * @param s    Borrowed as long as the document.
 * @param ret  Zeroed by the caller.
 * @return 0, or negative with @p err.
 */
int snapshot_tell(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  const struct snapshot *s, struct rpc_gpu_snapshot_result *ret,
		  struct agent_err *err);

/** Note that something is missing of a document.  @return 0, -ENOMEM. */
int snapshot_miss(struct rpc_arena *a, struct rpc_gpu_snapshot_result *doc, const char *text);

/** List @p n devices as documents do.  @return a list in the arena; NULL when that is exhausted. */
struct rpc_device *snapshot_devices(struct rpc_arena *a, const struct target_device *d, size_t n);

#endif /* WORKER_SNAPSHOT_H */
