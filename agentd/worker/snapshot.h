/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_H
#define WORKER_SNAPSHOT_H

/** @file snapshot.h  gpu.snapshot: devices, queues and runtime in one document. */

#include "agentd/worker/target.h"

/** Version of the document. */
#define SNAPSHOT_SCHEMA "gpu-agent.snapshot/1"

int snapshot_take(struct target *t, struct rpc_arena *a, const uint32_t *holder_uid,
		  struct rpc_gpu_snapshot_result *ret, struct agent_err *err);

#endif /* WORKER_SNAPSHOT_H */
