/* SPDX-License-Identifier: MIT */
#ifndef WORKER_INSPECT_H
#define WORKER_INSPECT_H

/**
 * @file inspect.h
 * An inspect worker: it answers process.list and process.doctor with the rights of the client, so
 * that it cannot tell what the client could not find out.  It touches no process.
 */

#include "agentd/worker/target/target.h"

/** Give up rights, and serve until the frontend closes the channel.  @return exit status. */
int inspect_run(const struct worker_options *o);

/**
 * process.list: the processes that use a GPU, by pid, without the workers of agents.
 * @param seen  What an earlier look has left, and what this one leaves.
 * @param a  Holds the result.
 * @return 0, or negative with @p err: no back end can list any.
 */
int inspect_list(const struct worker_options *o, struct seen *seen, struct rpc_arena *a,
		 const struct rpc_process_list_params *params, struct rpc_process_list_result *ret,
		 struct agent_err *err);
/**
 * process.doctor: check what may keep the process from being debugged.
 * @param a  Holds the result.
 * @return 0, also if a check fails; negative with @p err if there is no such process.
 */
int inspect_doctor(const struct worker_options *o, struct rpc_arena *a, pid_t pid,
		   struct rpc_process_doctor_result *ret, struct agent_err *err);

/* Both of them use these functions of verdict.c. */

/**
 * Say why the client may not debug a process.
 * @param ret_fix  What the client can do about it, or NULL; the pointer itself may be NULL.
 * @return a static sentence; NULL: the client may.
 */
const char *inspect_refusal(const struct worker_options *o, const struct access_target *facts,
			    const char **ret_fix);
/**
 * Say which process traces a process.
 * @param ret_session  This agent's session on the process, in the arena, even if that session
 *                     traces nothing (NVIDIA); NULL: there is none.
 * @return a few words, in the arena; NULL: no process traces it.
 */
const char *inspect_tracer(struct rpc_arena *a, const struct access_target *facts,
			   const char **ret_session);

#endif /* WORKER_INSPECT_H */
