/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "agentd/worker/rule/store_link.h"
#include "agentd/worker/session/handlers.h"
#include "agentd/worker/session/last_look.h"
#include "agentd/worker/snapshot/convert.h"
#include "agentd/worker/snapshot/snapshot.h"
#include "base/clock.h"

#define LEASE_MS_DEFAULT 5000
/* Time for the store to write a record to the disk. */
#define RECORD_MS	  4000

static int unsupported(struct agent_err *err, const char *what)
{
	return agent_err_set(err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
			     "devices of this vendor have no %s", what);
}

static int done(struct rpc_arena *a, struct agent_err *err)
{
	return rpc_arena_error(a) ? agent_err_no_memory(err, NULL) : 0;
}

static struct target *target_of(void *ctx)
{
	return ((struct session *)ctx)->target;
}

/* ------------------------------------------------------------------ looking ------------------ */

static int do_runtime_info(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			   const struct rpc_runtime_info_params *params,
			   struct rpc_runtime_info_result *ret, struct agent_err *err)
{
	const struct target *t = target_of(ctx);

	ret->runtime = t->runtime;
	ret->interface_version = t->version;
	return 0;
}

static int do_devices(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		      const struct rpc_gpu_devices_params *params,
		      struct rpc_gpu_devices_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);
	struct target_device *devices;
	int r = t->ops->devices(t, arena, &devices, &ret->n_devices, err);

	if (r < 0)
		return r;
	ret->devices = snapshot_devices(arena, devices, ret->n_devices);
	return done(arena, err);
}

static int do_queues(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_gpu_queues_params *params, struct rpc_gpu_queues_result *ret,
		     struct agent_err *err)
{
	struct target *t = target_of(ctx);
	size_t n;
	int r = t->ops->queues(t, arena, &ret->queues, &n, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!params->has_gpu_id || ret->queues[i].gpu_id == params->gpu_id)
			ret->queues[ret->n_queues++] = ret->queues[i];
	return 0;
}

/*
 * Store the snapshot as a record.  A failure does not spoil it; the record is then told as missing.
 */
static int keep_record(struct session *s, struct rpc_arena *a, uint32_t timeout_ms,
		       struct rpc_gpu_snapshot_result *ret, struct agent_err *err)
{
	char id[STORE_ID_SIZE];
	int r = store_link_snapshot(&s->deadline, &s->store_fd, ret, "requested", timeout_ms, id);

	if (r == 0) {
		ret->record = rpc_arena_strdup(a, id);
		return done(a, err);
	}
	r = snapshot_miss(a, ret, rpc_arena_printf(a, "record: %s", store_error_text(r)));
	return r < 0 ? agent_err_no_memory(err, NULL) : done(a, err);
}

static int check_select(const struct rpc_gpu_snapshot_params *p, struct agent_err *err)
{
	const struct rpc_wave_select *s = &p->select;

	if (!p->has_select)
		return 0;
	if (!p->waves || !s->n_groups)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL, "params.%s",
				     p->waves ? "select.groups: must have at least one item" :
						"select: only together with waves");
	return s->has_wave ? wave_name_check(&s->wave, "params.select.wave", err) : 0;
}

static int check_snapshot(const struct session *s, const struct rpc_gpu_snapshot_params *p,
			  const struct snapshot_options *o, struct agent_err *err)
{
	if (p->record && !(s->call.flags & IPC_FLAG_CONTROL))
		return agent_err_set(err, RPC_ERROR_NOT_PERMITTED, 0, NULL,
				     "ask the owner of the process or an administrator",
				     "you may look at the process, but store no record of it");
	if ((o->each_wave || o->registers || o->all_arguments || p->why) && !o->waves)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.%s: not together with queues_only",
				     o->each_wave ? "waves" : o->registers ? "registers" : o->all_arguments ? "arguments" :
															      "why");
	if (p->has_since && !p->why)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
				     "params.since: only together with why");
	return check_select(p, err);
}

/* Nothing may be stopped for this client now: it gets what is known without. */
static void tell_no_stop(struct session *s, struct rpc_arena *a, uint32_t retry_ms,
			 struct rpc_gpu_snapshot_result *ret)
{
	ret->has_no_stop = ret->no_stop = true;
	ret->has_retry_ms = retry_ms != 0;
	ret->retry_ms = retry_ms;
	ret->budget_exceeded = true;
	ret->has_last_look = last_look_tell(s->last_look, a, &ret->last_look);
}

/* Time to look up code, in what a lease or the call leaves. */
static uint32_t look_up_ms(uint64_t end_ns)
{
	const uint32_t left_ms = (uint32_t)clock_left_ms(end_ns);

	return left_ms < HANDLERS_LOOK_UP_MS ? left_ms : HANDLERS_LOOK_UP_MS;
}

static int do_snapshot(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		       const struct rpc_gpu_snapshot_params *params,
		       struct rpc_gpu_snapshot_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct snapshot_options o = {
		.waves = !(params->has_queues_only && params->queues_only),
		.each_wave = params->has_waves && params->waves,
		.select = params->has_select ? &params->select : NULL,
		.registers = params->has_registers && params->registers,
		.all_arguments = params->has_arguments && params->arguments,
		.holder_uid = s->call.flags & IPC_FLAG_HOLDER ? &s->call.holder_uid : NULL,
	};
	struct snapshot_options look = o;
	struct snapshot seen;
	uint32_t max_stop_ms, left_ms, retry_ms, *group_of = NULL;
	uint64_t end_ns;
	int r = check_snapshot(s, params, &o, err);

	if (r < 0)
		return r;
	arena->limit = TARGET_ARENA_MAX;
	max_stop_ms = params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS;
	if (o.waves)
		max_stop_ms = readers_stop_begin(s, max_stop_ms, &retry_ms);
	o.no_stop = o.waves && !max_stop_ms;
	o.waves = o.waves && !o.no_stop;
	max_stop_ms = session_stop_begin(s, max_stop_ms ? max_stop_ms : HANDLERS_STOP_MS);
	look.waves = o.waves;
	look.mbarriers = params->why;
	look.registers = o.registers || (params->why && s->target->ops->vendor == RPC_VENDOR_AMD);
	r = snapshot_look(s->target, arena, &look, max_stop_ms, &seen, err);
	left_ms = session_stop_end(s);
	readers_stop_end(s, r < 0 ? -1 : (int64_t)seen.waves.stopped_us);
	if (r == 0)
		session_note_stop(s, seen.waves.stopped_us);
	end_ns = clock_deadline_ms(left_ms);
	o.look_up_ms = look_up_ms(end_ns);
	o.ret_group_of = params->why ? &group_of : NULL;
	if (r == 0)
		r = snapshot_tell(s->target, arena, &o, &seen, ret, err);
	if (r == 0 && params->why && o.waves)
		r = handlers_tell_waits(s, arena, &seen, group_of, look_up_ms(end_ns),
					params->has_since ? &params->since : NULL, true, ret, err);
	if (r < 0)
		return r;
	if (o.no_stop)
		tell_no_stop(s, arena, retry_ms, ret);
	else if (o.waves && readers_is_one(s))
		last_look_keep(&s->last_look, ret);
	if (!params->record)
		return 0;
	return keep_record(s, arena, left_ms < RECORD_MS ? left_ms : RECORD_MS, ret, err);
}

/* ------------------------------------------------------------------ suspend, resume ---------- */

static uint32_t count_verdicts(const struct rpc_queue_result *queues, size_t n,
			       enum rpc_queue_verdict verdict)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += queues[i].verdict == verdict;
	return count;
}

static int do_suspend(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		      const struct rpc_gpu_suspend_params *params,
		      struct rpc_gpu_suspend_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	struct target *t = s->target;
	uint32_t lease_ms = params->has_lease_ms ? params->lease_ms : LEASE_MS_DEFAULT;
	int r;

	if (!t->ops->suspend || !t->ops->resume)
		return unsupported(err, "suspend");
	/*
	 * The lease begins before the queues stop, so that nothing stands between a stop and its
	 * end.
	 */
	lease_ms = suspension_lease(s, lease_ms);
	r = t->ops->suspend(t, params->has_queues ? params->queues : NULL, params->n_queues,
			    params->has_grace ? params->grace : 0, arena, &ret->queues,
			    &ret->n_queues, err);
	if (!t->n_suspended)
		session_set_lease(s, 0);
	if (r < 0)
		return r;
	ret->suspended = count_verdicts(ret->queues, ret->n_queues, RPC_QUEUE_VERDICT_SUSPENDED);
	ret->lease_ms = lease_ms;
	return done(arena, err);
}

/*
 * Suspended queues stay suspended; asking the hardware again would cost time and say nothing new.
 */
static int do_renew(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		    const struct rpc_gpu_renew_params *params, struct rpc_gpu_renew_result *ret,
		    struct agent_err *err)
{
	struct session *s = ctx;

	/* The lease may have run out a moment ago: the timer resumes, and then there is none. */
	if (!s->lease_end_ns || !clock_left_ms(s->lease_end_ns) || !s->target->n_suspended)
		return 0;
	ret->lease_ms = params->has_lease_ms ? params->lease_ms : LEASE_MS_DEFAULT;
	ret->suspended = (uint32_t)s->target->n_suspended;
	ret->lease_ms = suspension_lease(s, ret->lease_ms);
	return 0;
}

static int do_resume(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_gpu_resume_params *params, struct rpc_gpu_resume_result *ret,
		     struct agent_err *err)
{
	struct session *s = ctx;
	struct target *t = s->target;
	uint64_t since_ns = t->n_suspended ? t->suspended_since_ns : 0;
	int r;

	if (!t->ops->resume)
		return unsupported(err, "suspend");
	session_undo_begin(s);
	r = t->ops->resume(t, params->has_queues ? params->queues : NULL, params->n_queues, arena,
			   &ret->queues, &ret->n_queues, err);
	session_undo_end(s);
	if (!t->n_suspended)
		session_set_lease(s, 0);
	if (r < 0)
		return r;
	ret->stopped_us = since_ns ? (clock_now_ns() - since_ns) / 1000 : 0;
	ret->resumed = count_verdicts(ret->queues, ret->n_queues, RPC_QUEUE_VERDICT_RESUMED);
	return done(arena, err);
}

/* ------------------------------------------------------------------ watch points ------------- */

static int do_watch_set(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_watchpoint_set_params *params,
			struct rpc_watchpoint_set_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);

	if (!t->ops->watch_set)
		return unsupported(err, "watch points");
	return t->ops->watch_set(t, params->has_gpu_id ? &params->gpu_id : NULL, params->address,
				 params->size, params->has_mode ? params->mode : RPC_WATCH_MODE_ALL,
				 arena, &ret->watchpoints, &ret->n_watchpoints, err);
}

/*
 * Begin a change of what the target runs with, or the end of one, which the caller takes for done:
 * a worker that hangs in it is killed as early as in an undo, and the kernel takes back all that
 * the worker changed.
 */
static void change_begin(struct session *s)
{
	if (!s->target->ops->slow_events)
		session_undo_begin(s);
}

static int do_watch_clear(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			  const struct rpc_watchpoint_clear_params *params,
			  struct rpc_watchpoint_clear_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);

	if (!t->ops->watch_clear)
		return unsupported(err, "watch points");
	change_begin(ctx);
	return t->ops->watch_clear(t, params->has_gpu_id ? &params->gpu_id : NULL,
				   params->has_id ? &params->id : NULL, &ret->cleared, err);
}

static int do_watch_list(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			 const struct rpc_watchpoint_list_params *params,
			 struct rpc_watchpoint_list_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);

	if (!t->ops->watch_list)
		return unsupported(err, "watch points");
	return t->ops->watch_list(t, arena, &ret->watchpoints, &ret->n_watchpoints, err);
}

/* ------------------------------------------------------------------ launch, flags ------------ */

static int do_launch_override(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			      const struct rpc_launch_override_params *params,
			      struct rpc_launch_override_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);
	uint32_t enable = convert_trap_mask(params->enable, params->n_enable);
	uint32_t request = convert_trap_mask(params->request, params->n_request);
	uint32_t previous, supported;
	int r;

	if (!t->ops->launch_override)
		return unsupported(err, "trap override");
	change_begin(ctx);
	r = t->ops->launch_override(t, params->has_mode ? params->mode : RPC_OVERRIDE_MODE_OR,
				    enable, request, &previous, &supported, err);
	if (r < 0)
		return r;
	ret->previous = convert_traps(arena, previous, &ret->n_previous);
	ret->supported = convert_traps(arena, supported, &ret->n_supported);
	return done(arena, err);
}

static int do_launch_mode(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			  const struct rpc_launch_mode_params *params,
			  struct rpc_launch_mode_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);

	if (!t->ops->launch_mode)
		return unsupported(err, "launch mode");
	change_begin(ctx);
	return t->ops->launch_mode(t, params->mode, &ret->previous, err);
}

static int do_flags(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		    const struct rpc_gpu_flags_params *params, struct rpc_gpu_flags_result *ret,
		    struct agent_err *err)
{
	struct target *t = target_of(ctx);
	uint32_t previous;
	int r;

	if (!t->ops->flags)
		return unsupported(err, "debug flags");
	change_begin(ctx);
	r = t->ops->flags(t, convert_flag_mask(params->flags, params->n_flags), &previous, err);
	if (r < 0)
		return r;
	ret->previous = convert_flags(arena, previous, &ret->n_previous);
	return done(arena, err);
}

/* ------------------------------------------------------------------ exceptions --------------- */

static int do_subscribe(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
			const struct rpc_exception_subscribe_params *params,
			struct rpc_exception_subscribe_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	const struct subscriber who = {
		.client = s->call.client,
		.exceptions = convert_exception_mask(params->exceptions, params->n_exceptions),
		.look_ms = params->has_look_ms ? params->look_ms : EXCEPTION_REPORT_LOOK_MS,
		.hold = params->has_hold && params->hold,
	};
	struct subscriber before = subscribers_get(&s->subscribers, who.client);
	int r;

	if (!s->target->ops->subscribe)
		return unsupported(err, "exceptions");
	if (who.hold && !(s->call.flags & IPC_FLAG_WRITER))
		return agent_err_set(
			err, RPC_ERROR_BUSY, 0, NULL,
			"take the writer lease first: session.attach with control",
			"params.hold: who holds exceptions back needs the writer lease");
	if (subscribers_set(&s->subscribers, &who) < 0)
		return agent_err_no_memory(err, NULL);
	change_begin(s);
	r = session_subscribe(s, err);
	if (r < 0) {
		/* What the client had goes on.  There was room for its entry a moment ago. */
		(void)subscribers_set(&s->subscribers, &before);
		session_subscribe_again(s);
		return r;
	}
	ret->exceptions = convert_exceptions(arena, who.exceptions, &ret->n_exceptions);
	return done(arena, err);
}

static int do_query(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		    const struct rpc_exception_query_params *params,
		    struct rpc_exception_query_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);
	struct target_source source = { 0 };
	int r;

	if (!t->ops->query)
		return unsupported(err, "exceptions");
	r = t->ops->query(t, convert_exception_mask(params->clear, params->n_clear), &source, err);
	if (r < 0)
		return r;
	ret->found = r == 1;
	ret->exceptions = convert_exceptions(arena, source.exceptions, &ret->n_exceptions);
	ret->has_gpu_id = source.has_gpu;
	ret->gpu_id = source.gpu_id;
	ret->has_queue_id = source.has_queue;
	ret->queue_id = source.queue_id;
	return done(arena, err);
}

static int do_info(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		   const struct rpc_exception_info_params *params,
		   struct rpc_exception_info_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);
	struct target_exception_info info;
	int r;

	if (!t->ops->info)
		return unsupported(err, "exceptions");
	if (!params->has_source_id &&
	    convert_exception_mask(&params->exception, 1) < TARGET_EXCEPTION_BIT(48))
		return agent_err_set(
			err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			"params.source_id: missing; %s is raised by a queue or a device",
			rpc_exception_name(params->exception));
	r = t->ops->info(t, params->exception, params->source_id,
			 params->has_clear && params->clear, &info, err);
	if (r < 0)
		return r;
	ret->latched = info.latched;
	ret->details = info.details;
	if (params->exception == RPC_EXCEPTION_PROCESS_RUNTIME) {
		ret->has_runtime = true;
		ret->runtime = t->runtime;
	} else if (info.details) {
		ret->has_address = ret->has_not_present = true;
		ret->has_read_only = ret->has_no_execute = true;
		ret->address = info.address;
		ret->not_present = info.not_present;
		ret->read_only = info.read_only;
		ret->no_execute = info.no_execute;
	}
	return 0;
}

static int do_forward(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		      const struct rpc_exception_forward_params *params,
		      struct rpc_exception_forward_result *ret, struct agent_err *err)
{
	struct target *t = target_of(ctx);
	const struct target_source what = {
		.exceptions = convert_exception_mask(params->exceptions, params->n_exceptions),
		.has_gpu = params->has_gpu_id,
		.gpu_id = params->gpu_id,
		.has_queue = params->has_queue_id,
		.queue_id = params->queue_id,
	};

	if (!t->ops->forward)
		return unsupported(err, "exceptions");
	ret->sent = true;
	return t->ops->forward(t, &what, err);
}

/*
 * The frontend moves the writer lease, and has told this worker before if something was to be
 * undone: the answer says that this is done.
 */
static int do_control(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		      const struct rpc_session_control_params *params,
		      struct rpc_session_control_result *ret, struct agent_err *err)
{
	struct session *s = ctx;

	if (params->take)
		session_lease_taken(s);
	else
		usage_gives_back(&s->usage, s->call.client);
	ret->control = s->call.flags & IPC_FLAG_WRITER;
	return 0;
}

const struct rpc_session_handlers session_handlers = {
	.session_control = do_control,
	.runtime_info = do_runtime_info,
	.gpu_devices = do_devices,
	.gpu_queues = do_queues,
	.gpu_snapshot = do_snapshot,
	.code_list = handlers_code_list,
	.code_locate = handlers_code_locate,
	.code_source = handlers_code_source,
	.code_read = handlers_code_read,
	.gpu_suspend = do_suspend,
	.gpu_renew = do_renew,
	.gpu_resume = do_resume,
	.watchpoint_set = do_watch_set,
	.watchpoint_clear = do_watch_clear,
	.watchpoint_list = do_watch_list,
	.launch_override = do_launch_override,
	.launch_mode = do_launch_mode,
	.gpu_flags = do_flags,
	.exception_subscribe = do_subscribe,
	.exception_query = do_query,
	.exception_info = do_info,
	.exception_forward = do_forward,
	.why_get = handlers_why_get,
	.wave_registers = handlers_wave_registers,
	.wave_variables = handlers_wave_variables,
	.wave_evaluate = handlers_wave_evaluate,
	.wave_lanes = handlers_wave_lanes,
	.memory_read = handlers_memory_read,
	.core_begin = handlers_core_begin,
	.core_read = handlers_core_read,
	.core_write = handlers_core_write,
	.core_end = handlers_core_end,
};
