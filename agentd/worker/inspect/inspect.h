/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_H
#define WORKER_INSPECT_H

/**
 * @file inspect.h
 * An inspect worker: answers process.list and process.doctor with the rights of the client, so that
 * it cannot tell what the client could not find out.  It touches no process.
 */

#include "agentd/worker/target/target.h"

/** @return exit status. */
int inspect_run(const struct worker_options *o);

int inspect_list(const struct worker_options *o, struct rpc_arena *a,
		 struct rpc_process_list_result *ret, struct agent_err *err);
int inspect_doctor(const struct worker_options *o, struct rpc_arena *a, pid_t pid,
		   struct rpc_process_doctor_result *ret, struct agent_err *err);

/* verdict.c: what both ask. */

/** Why the client may not debug it, NULL if he may.  @param ret_fix  What he can do; NULL allowed. */
const char *inspect_refusal(const struct worker_options *o, const struct access_target *facts,
			    const char **ret_fix);
/**
 * Who traces it?  @return NULL nobody; otherwise a few words, in the arena.
 * @param ret_session  Our own session on it, in the arena, also where that traces nobody (NVIDIA);
 *                     NULL: none.
 */
const char *inspect_tracer(struct rpc_arena *a, const struct access_target *facts,
			   const char **ret_session);

#endif /* WORKER_INSPECT_H */
