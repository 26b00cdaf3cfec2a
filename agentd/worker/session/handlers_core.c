/* SPDX-License-Identifier: MIT */
/* core.begin, core.read, core.write and core.end: a core file that the client keeps. */
#include <errno.h>
#include <string.h>

#include "agentd/worker/session/core_output.h"
#include "agentd/worker/session/handlers.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/out.h"

#define STALL_MS_DEFAULT 30000

static int unsupported(struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
			     "core files of processes on devices of this vendor are not written");
}

static int busy(const struct session *s, struct agent_err *err)
{
	return agent_err_set(err, RPC_ERROR_BUSY, EBUSY, NULL, "try again in a moment",
			     "rule %s is writing a core of the process", s->rule.rule.name);
}

/*
 * Make the head of a core, which says of the process what a core cannot: a snapshot without waves.
 */
static int make_head(struct session *s, const struct target_waves_from *from, struct rpc_arena *a,
		     struct out *ret, struct agent_err *err)
{
	const struct snapshot_options o = {
		.holder_uid = s->call.flags & IPC_FLAG_HOLDER ? &s->call.holder_uid : NULL,
	};
	const struct snapshot seen = { .time_us = clock_wall_us(),
				       .devices = from->devices,
				       .n_devices = from->n_devices,
				       .queues = from->queues,
				       .n_queues = from->n_queues };
	struct rpc_gpu_snapshot_result head = { 0 };
	int r = snapshot_tell(s->target, a, &o, &seen, &head, err);

	if (r < 0)
		return r;
	rpc_gpu_snapshot_result_encode(ret, &head);
	return out_error(ret) ? agent_err_no_memory(err, NULL) : 0;
}

int handlers_core_begin(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_core_begin_params *params,
			struct rpc_core_begin_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct target *t = s->target;
	auto_out struct out head;
	const struct target_core_wanted what = { .full = params->has_full && params->full,
						 .unified = params->has_unified && params->unified,
						 .estimate = params->has_estimate && params->estimate,
						 .count = params->has_count && params->count,
						 .has_layout = params->has_layout,
						 .layout = params->layout,
						 .head = &head };
	struct target_device *devices;
	struct rpc_queue *queues;
	struct target_waves_from from = { 0 };
	struct target_core core;
	int r;

	out_init(&head, 0);
	if (!t->ops->core_begin)
		return unsupported(err);
	if (s->core_user == CORE_RULE)
		return busy(s, err);
	core_output_stop(s);
	arena->limit = TARGET_ARENA_MAX;
	r = t->ops->devices(t, arena, &devices, &from.n_devices, err);
	if (r == 0)
		r = t->ops->queues(t, arena, &queues, &from.n_queues, err);
	if (r < 0)
		return r;
	from.devices = devices;
	from.queues = queues;
	r = make_head(s, &from, arena, &head, err);
	if (r < 0)
		return r;
	r = session_core_begin(s, &from, &what, params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS,
			       arena, &core, err);
	s->core_user = r == 0 && !what.estimate ? CORE_CLIENT : CORE_NOBODY;
	if (r < 0)
		return r;
	s->core_bytes = core.bytes;
	*ret = (struct rpc_core_begin_result){
		.bytes = core.bytes,
		.copied_bytes = core.copied_bytes,
		.segments = (uint32_t)core.n_segments,
		.wave_count = (uint32_t)core.n_waves,
		.thread_count = core.n_threads,
		.thread_stopped_us = core.thread_stopped_us,
		.stopped_us = core.stopped_us,
		.agent_us = core.agent_us,
		.budget_exceeded = core.budget_exceeded,
		.complete = core.n_missing == 0 && !core.budget_exceeded,
		.missing = core.missing,
		.n_missing = core.n_missing,
		.has_at_most = core.at_most,
		.at_most = core.at_most,
	};
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

static bool is_zero(const uint8_t *p, uint32_t size)
{
	return size && p[0] == 0 && memcmp(p, p + 1, size - 1) == 0;
}

int handlers_core_read(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_core_read_params *params, struct rpc_core_read_result *ret,
		       struct agent_err *err)
{
	struct session *s = ctx;
	struct target *t = s->target;
	uint8_t *buf;
	int n;

	if (!t->ops->core_read)
		return unsupported(err);
	if (s->core_user == CORE_RULE)
		return busy(s, err);
	arena->limit = TARGET_ARENA_MAX;
	buf = rpc_arena_alloc(arena, params->size);
	if (!buf)
		return agent_err_no_memory(err, NULL);
	n = t->ops->core_read(t, params->offset, buf, params->size, &ret->lost_bytes, err);
	if (n < 0)
		return n;
	ret->size = (uint32_t)n;
	ret->data = is_zero(buf, (uint32_t)n) ? "" : rpc_arena_base64(arena, buf, (size_t)n);
	return rpc_arena_error(arena) ? agent_err_no_memory(err, NULL) : 0;
}

int handlers_core_write(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_core_write_params *params,
			struct rpc_core_write_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	uint32_t stall_ms = params->has_stall_ms ? params->stall_ms : STALL_MS_DEFAULT;

	if (!s->target->ops->core_read)
		return unsupported(err);
	if (s->core_user == CORE_RULE)
		return busy(s, err);
	if (s->core_user != CORE_CLIENT)
		return agent_err_set(err, RPC_ERROR_FAILED, ENOENT, "core.write",
				     "call core.begin first", "no core is being read");
	if (s->call_fd < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, EBADF, "core.write", NULL,
				     "front has made no socket for the core");
	ret->bytes = s->core_bytes;
	return core_output_start(s, TAKE_FD(s->call_fd), stall_ms, err);
}

int handlers_core_end(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		      const struct rpc_core_end_params *params, struct rpc_core_end_result *ret,
		      struct agent_err *err)
{
	struct session *s = ctx;

	if (!s->target->ops->core_end)
		return unsupported(err);
	core_output_stop(s);
	if (s->core_user != CORE_CLIENT)
		return 0;
	s->target->ops->core_end(s->target);
	s->core_user = CORE_NOBODY;
	return 0;
}
