/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_EXCEPTION_CAPTURE_H
#define WORKER_SNAPSHOT_EXCEPTION_CAPTURE_H

/**
 * @file exception_capture.h
 * What waves did when an exception was raised: queues stop once, for all who want to know.
 *
 * The notification, a rule's record and its core are made of the same copy.  The application waits for
 * its fault meanwhile, and a burst of faults may not stop it for good: captures take one part in
 * ten of the time, whoever wants them.
 */

#include "agentd/worker/snapshot/snapshot.h"

/** Of one session; starts zeroed. */
struct exception_throttle {
	uint64_t rest_until; /**< Monotonic; no capture before. */
};

/** What all who share it want together. */
struct exception_capture_wanted {
	uint32_t max_stop_ms;
	bool registers;	 /**< Those of the places where waves are, too. */
	bool mbarriers;	 /**< What waves of NVIDIA's devices wait for in shared memory, too. */
	bool all_queues; /**< Not only those that the exception concerns. */
	const struct target_core_wanted *core; /**< NULL: none. */
};

/** Starts with exception_capture_init(). */
struct exception_capture {
	struct rpc_arena arena; /**< Holds what the others point to. */
	uint64_t begun_ns;	/**< 0: nobody wanted anything. */
	struct snapshot seen;	/**< Devices and queues, and the waves of these queues. */
	bool has_waves;
	bool has_core; /**< One is begun.  Who takes it clears this, and ends it (target_ops.core_end). */
	struct target_core core;
	/** Why it is not there; nothing set: nobody wanted it. */
	struct agent_err begin_err, waves_err, core_err;
};

/** May queues stop for another one now? */
bool exception_throttle_allows(const struct exception_throttle *throttle);

void exception_capture_init(struct exception_capture *c);
/** Release memory; not the core. */
void exception_capture_deinit(struct exception_capture *c);
/** Devices and queues, while they run.  @return 0, or negative with begin_err. */
int exception_capture_begin(struct exception_capture *c, struct target *t);
/**
 * After that: the waves, and a core of the same moment.  Errors are in waves_err and core_err.  The
 * caller has asked the throttle, or has a good reason, and armed the deadline.
 */
void exception_capture_take(struct exception_capture *c, struct exception_throttle *throttle,
			    struct target *t, const struct target_source *source,
			    const struct exception_capture_wanted *what);

/** Can an exception from there concern that queue? */
bool exception_concerns(const struct target_source *source, uint32_t gpu_id, uint32_t queue_id);

#endif /* WORKER_SNAPSHOT_EXCEPTION_CAPTURE_H */
