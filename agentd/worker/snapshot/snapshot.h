/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_H
#define WORKER_SNAPSHOT_H

/** @file snapshot.h  gpu.snapshot: devices, queues, runtime and waves in one document. */

#include "agentd/worker/target/target.h"

/** Version of the document. */
#define SNAPSHOT_SCHEMA "gpu-agent.snapshot/1"

struct snapshot_options {
	bool waves;	/**< Stop queues to see what their waves do. */
	bool each_wave; /**< List them besides the groups. */
	const struct rpc_wave_select *select; /**< Only these of them; NULL: all. */
	bool registers; /**< Of the groups' representatives. */
	uint32_t look_up_ms; /**< For kernels and source lines. */
	const uint32_t *holder_uid; /**< Of the writer lease, if somebody has it. */
};

/** What was seen, before it is put into words. */
struct snapshot {
	uint64_t time_us;
	const struct target_device *devices;
	size_t n_devices;
	const struct target_queue *queues;
	size_t n_queues;
	struct target_waves waves;
};

/** The part that stops queues.  @param a  Its limit should be TARGET_ARENA_MAX. */
int snapshot_look(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  uint32_t max_stop_ms, struct snapshot *ret, struct agent_err *err);
/** The rest, while they run: kernels, source lines, groups. */
int snapshot_tell(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  const struct snapshot *s, struct rpc_gpu_snapshot_result *ret,
		  struct agent_err *err);

#endif /* WORKER_SNAPSHOT_H */
