// SPDX-License-Identifier: MIT
/** Threads on the processors beside the waves of a snapshot. */
import type { GpuSnapshotResult, HostStacksResult, Queue, QueuePlace } from "./protocol";

const QUEUES_MAX = 1024;

/** What hostStacks({ queues }) needs to tell which packet a thread waits for; empty where no queue has it. */
export function queuePlaces(queues: Iterable<Queue>): QueuePlace[] {
	const found: QueuePlace[] = [];
	for (const { queue_id, gpu_id, type, ring_base, ring_bytes, read_pointer, write_pointer } of queues)
		if (type === "compute_aql" && ring_base !== undefined && ring_bytes !== undefined && read_pointer !== undefined &&
			write_pointer !== undefined && found.length < QUEUES_MAX)
			found.push({ queue_id, gpu_id, ring_base, ring_bytes, read_pointer, write_pointer });
	return found;
}

/** Make both one document, as `gpu-agentctl snapshot --host` does: what the threads lack, it lacks then. */
export function addThreads(snapshot: GpuSnapshotResult, threads: HostStacksResult): void {
	snapshot.host = threads;
	snapshot.missing = [...snapshot.missing, ...threads.missing.map((what) => `host: ${what}`)];
	snapshot.complete = snapshot.complete && threads.complete;
}
