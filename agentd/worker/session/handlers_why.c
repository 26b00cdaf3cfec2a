/* SPDX-License-Identifier: MIT */
/* why.get: what waits, for whom, and who does not come. */
#include <errno.h>

#include "agentd/worker/process/late_memory.h"
#include "agentd/worker/session/handlers.h"
#include "agentd/worker/wait/wait.h"

int handlers_why_get(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_why_get_params *params, struct rpc_why_get_result *ret, struct agent_err *err)
{
	const struct snapshot_options look = { .waves = true, .registers = true };
	struct session *s = ctx;
	struct wait_options o = { .has_since = params->has_since, .since = params->since };
	uint32_t retry_ms, left_ms, ms = params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS;
	struct snapshot seen;
	int r;

	if (s->target->ops->vendor != RPC_VENDOR_AMD)
		return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "what waves of this vendor's devices wait for is not known");
	arena->limit = TARGET_ARENA_MAX;
	ms = readers_stop_begin(s, ms, &retry_ms);
	if (!ms)
		return readers_refuse(retry_ms, err);
	ms = session_stop_begin(s, ms);
	r = snapshot_look(s->target, arena, &look, ms, &seen, err);
	left_ms = session_stop_end(s);
	readers_stop_end(s, r < 0 ? -1 : (int64_t)seen.waves.stopped_us);
	if (r < 0)
		return r;
	session_note_stop(s, seen.waves.stopped_us);
	/* A core's memory answers. */
	if (!s->late_memory && !s->target->memory.read)
		s->late_memory = late_memory_create(&s->target->memory);
	o.memory = s->late_memory;
	o.look_up_ms = left_ms < HANDLERS_LOOK_UP_MS ? left_ms : HANDLERS_LOOK_UP_MS;
	return wait_tell(s->target, arena, &o, &seen, &s->looks, ret, err);
}
