/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SESSION_HANDLERS_H
#define WORKER_SESSION_HANDLERS_H

/**
 * @file handlers.h  Handlers of struct rpc_session_handlers that have files of their own, each with
 * the contract stated there; the table is in handlers.c.
 */

#include "agentd/worker/session/session.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "agentd/worker/value/frame.h"
#include "agentd/worker/value/request.h"

/** Stop budget of calls that look at waves, unless they name one. */
#define HANDLERS_STOP_MS 1000

/** Time to look up kernels and source lines; much debug information takes a second, once. */
#define HANDLERS_LOOK_UP_MS 3000

/* handlers_code.c */

int handlers_code_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_code_list_params *params, struct rpc_code_list_result *ret,
		       struct agent_err *err);
int handlers_code_source(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_code_source_params *params,
			 struct rpc_code_source_result *ret, struct agent_err *err);
int handlers_code_locate(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_code_locate_params *params,
			 struct rpc_code_locate_result *ret, struct agent_err *err);
int handlers_code_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_code_read_params *params, struct rpc_code_read_result *ret,
		       struct agent_err *err);

/* handlers_core.c */

int handlers_core_begin(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_core_begin_params *params,
			struct rpc_core_begin_result *ret, struct agent_err *err);
int handlers_core_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_core_read_params *params, struct rpc_core_read_result *ret,
		       struct agent_err *err);
int handlers_core_write(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_core_write_params *params,
			struct rpc_core_write_result *ret, struct agent_err *err);
int handlers_core_end(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		      const struct rpc_core_end_params *params, struct rpc_core_end_result *ret,
		      struct agent_err *err);

/* handlers_why.c */

int handlers_why_get(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_why_get_params *params, struct rpc_why_get_result *ret, struct agent_err *err);
/**
 * Put what waves and queues wait for into a snapshot that was told.
 * @param seen        With registers; it is the next sample of the session.
 * @param group_of    The group of each wave; NULL when there are no waves.
 * @param look_up_ms  Time to look up code.
 * @param since       The sample to compare with; NULL: none.
 * @param threads     Also ask which threads wait for packets, which takes a process, and up to a second.
 * @return 0, or negative with @p err.
 */
int handlers_tell_waits(struct session *s, struct rpc_arena *a, const struct snapshot *seen, const uint32_t *group_of,
			uint32_t look_up_ms, const uint32_t *since, bool threads, struct rpc_gpu_snapshot_result *doc,
			struct agent_err *err);

/* handlers_wave.c */

int handlers_wave_registers(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			    const struct rpc_wave_registers_params *params,
			    struct rpc_wave_registers_result *ret, struct agent_err *err);
int handlers_memory_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_memory_read_params *params,
			 struct rpc_memory_read_result *ret, struct agent_err *err);

/** Begin a request about values of a wave: what is asked for has still to be set. */
void handlers_value_request(struct session *s, struct rpc_arena *a, const struct rpc_wave_name *wave,
			    bool has_max_stop_ms, uint32_t max_stop_ms, struct value_request *ret);
/**
 * Copy the wave in one stop, and choose lanes: all that are in @p lanes, beside one; NULL: that one alone.
 * @return 0, or negative with @p err.  Release with value_request_deinit() in any case.
 */
int handlers_value_begin(struct value_request *k, const char *lanes, struct agent_err *err);
/**
 * Use the frame that a request names.  Where no debug information is, it is one in which no variable is known: numbers,
 * registers, addresses and what is built in mean something there, too.
 * @param ret_unknown  There was none.
 * @return 0, or negative with @p err.
 */
int handlers_value_frame(struct value_request *k, value_use_frame *use, void *context, bool *ret_unknown,
			 struct agent_err *err);

/* handlers_variables.c, handlers_evaluate.c, handlers_lanes.c */

int handlers_wave_variables(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			    const struct rpc_wave_variables_params *params,
			    struct rpc_wave_variables_result *ret, struct agent_err *err);
int handlers_wave_lanes(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_wave_lanes_params *params, struct rpc_wave_lanes_result *ret,
			struct agent_err *err);
/** What is added where an expression has names and nothing knows any. */
#define HANDLERS_NO_NAMES " (there is no debug information that names variables of this code)"
int handlers_wave_evaluate(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			   const struct rpc_wave_evaluate_params *params,
			   struct rpc_wave_evaluate_result *ret, struct agent_err *err);

#endif /* WORKER_SESSION_HANDLERS_H */
