/* SPDX-License-Identifier: MIT */
#ifndef WORKER_WAIT_H
#define WORKER_WAIT_H

/** @file wait.h  why.get: who waits, for whom, and who does not come. */

#include "agentd/worker/snapshot/snapshot.h"

struct history;
struct late_memory;

/** The wave is in no wait that is known. */
#define WAIT_NONE UINT32_MAX

/** Somebody who reads what threads of the process wait for. */
struct wait_threads {
	/**
	 * Ask, and wait for the answer, which may take a second.
	 * @param a  Holds the answer.
	 * @return NULL, or why there is none.
	 */
	const char *(*read)(void *ctx, struct rpc_arena *a, const struct rpc_host_stacks_params *p,
			    struct rpc_host_stacks_result *ret);
	void *ctx;
};

/** What is wanted, beside what was seen. */
struct wait_options {
	uint32_t look_up_ms; /**< Time to look up code and read memory. */
	struct late_memory *memory; /**< The target's; NULL: of a core. */
	const struct wait_threads *threads; /**< Of the target; NULL: of a core, or of NVIDIA's devices. */
	uint64_t stood_ns; /**< For how long queues have stood still so far: nothing moves meanwhile. */
	bool has_since;
	uint32_t since; /**< The look to compare with. */
	uint32_t *of_wave; /**< Gets the position of each wave's wait in the reply, or WAIT_NONE; NULL: nobody asks. */
};

/** Looks of one session, for comparison; NULL: none as yet. */
void wait_history_free(struct history *h);

/**
 * Tell what waits.
 * @param a        Holds the reply.
 * @param seen     With registers; its waves get their places.
 * @param history  Remembers this look.
 * @param ret      Zeroed.
 * @return 0, or negative with @p err.
 */
int wait_tell(struct target *t, struct rpc_arena *a, const struct wait_options *o, const struct snapshot *seen,
	      struct history **history, struct rpc_why_get_result *ret, struct agent_err *err);

/**
 * Tell the groups of a snapshot which wait their waves are in.
 * @param of_wave   As wait_tell() has filled it.
 * @param group_of  The group of each wave.
 */
void wait_tell_groups(const uint32_t *of_wave, const uint32_t *group_of, size_t n_waves, struct rpc_group *groups,
		      size_t n_groups);

#endif /* WORKER_WAIT_H */
