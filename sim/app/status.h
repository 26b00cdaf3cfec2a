/* SPDX-License-Identifier: MIT */
#ifndef SIMAPP_STATUS_H
#define SIMAPP_STATUS_H

/**
 * @file status.h
 * What `simapp --status-file PATH` shows: this structure, mapped shared.
 *
 * All counters only grow, except max_gap_ns, which a reader may set back to 0.  The layout is fixed
 * (natural alignment, little endian), so that Python's struct module can read it as well.
 */

#include <stdint.h>

#define SIMAPP_MAGIC	   UINT32_C(0x50414753) /* "SGAP" */
#define SIMAPP_VERSION	   1u
#define SIMAPP_THREADS_MAX 64u
#define SIMAPP_QUEUES_MAX  256u

/** One CPU thread's heartbeat. */
struct simapp_thread {
	uint64_t beats;
	uint64_t max_gap_ns; /**< Largest time between two beats; includes the pause of --beat-us. */
	int32_t tid;
	uint32_t reserved;
};

/** One queue; a slot is not used again when its queue has gone. */
struct simapp_queue {
	uint32_t alive;
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t queue_type;
	uint64_t ring, ring_size;
	uint64_t write_index_addr, read_index_addr;
	uint64_t area, area_size; /**< Context save area; size per XCC. */
	uint32_t num_xcc, error_event;
	uint64_t error_word; /**< Last error reasons delivered for this queue. */
};

/** The whole file. */
struct simapp_status {
	uint32_t magic, version;
	int32_t pid;
	uint32_t n_threads;
	uint32_t n_queues;	/**< Slots in use in queues[], dead ones included. */
	uint32_t runtime_on;	/**< 1 after RUNTIME_ENABLE returned 0; 0 after switching off. */
	uint32_t runtime_calls; /**< RUNTIME_ENABLE calls that returned. */
	uint32_t eintr_repeats; /**< RUNTIME_ENABLE calls repeated after a signal. */
	uint64_t r_debug;
	uint64_t queue_faults;	/**< Deliveries of a queue error event with a reason. */
	uint64_t memory_faults; /**< Deliveries of the memory event. */
	uint64_t memory_fault_va;
	uint64_t signals; /**< Real-time signals handled. */
	uint64_t commands; /**< Script commands finished. */
	struct simapp_thread threads[SIMAPP_THREADS_MAX];
	struct simapp_queue queues[SIMAPP_QUEUES_MAX];
};

#endif /* SIMAPP_STATUS_H */
