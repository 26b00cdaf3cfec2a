/* SPDX-License-Identifier: MIT */
/* why.get: what waits, for whom, and who does not come. */
#include <string.h>

#include "agentd/worker/process/late_memory.h"
#include "agentd/worker/rule/threads.h"
#include "agentd/worker/session/handlers.h"
#include "agentd/worker/wait/wait.h"
#include "base/clock.h"

/*
 * A core's memory answers, and words of NVIDIA's devices were read in the stop, by their driver; of a process, only a
 * thread that may be late reads at addresses that the process names.
 */
static struct late_memory *memory_of(struct session *s)
{
	if (!s->late_memory && !s->target->memory.read && s->target->ops->vendor == RPC_VENDOR_AMD)
		s->late_memory = late_memory_create(&s->target->memory);
	return s->late_memory;
}

/* ------------------------------------------------------------------ threads ------------------ */

/* Most answers take some ten milliseconds, of which a new process takes most; with less than the second, none comes. */
#define THREADS_MS     1000u
#define THREADS_MS_MIN 50u

/* Who asks, and until when a call may wait for what it reads. */
struct threads {
	const struct session *session;
	uint64_t late_ns;
	struct wait_threads how;
};

/* A signal that ends the session waits until then, as it does for all else that a call reads. */
static const char *read_threads(void *ctx, struct rpc_arena *a, const struct rpc_host_stacks_params *p,
				struct rpc_host_stacks_result *ret)
{
	const struct threads *t = ctx;
	const uint32_t left = (uint32_t)clock_left_ms(t->late_ns);
	uint32_t ms = left / 2 < THREADS_MS ? left / 2 : THREADS_MS;
	struct ipc_link link = IPC_LINK_NULL;
	const char *why;
	int r;

	/* The answer has to be told in what is left. */
	if (left < THREADS_MS_MIN)
		return "no time was left to read them";
	if (ms < THREADS_MS_MIN)
		ms = THREADS_MS_MIN;
	r = rule_threads_send(t->session->deadline.fd, p, &link);
	if (r == 0)
		why = rule_threads_receive(&link, clock_deadline_ms(ms), a, ret);
	else
		why = rpc_arena_printf(a, "their reader could not be asked: %s", strerror(-r));
	ipc_link_deinit(&link);
	return why ? why : r < 0 ? "their reader could not be asked" : NULL;
}

/* Whoever serves a core file has no threads that wait. */
static const struct wait_threads *threads_of(const struct session *s, uint32_t ms, struct threads *room)
{
	*room = (struct threads){ .session = s, .late_ns = clock_deadline_ms(ms),
				  .how = { .read = read_threads, .ctx = room } };
	return s->target->memory.read || s->target->origin ? NULL : &room->how;
}

/* For how long queues have stood still so far: clients kept them suspended, or the agent looked or wrote a core. */
static uint64_t stood_ns(const struct session *s)
{
	uint64_t now = s->target->n_suspended ? clock_now_ns() - s->target->suspended_since_ns : 0;

	return s->suspension.total_ns + s->looks_ns + now;
}

/* ------------------------------------------------------------------ in a snapshot ------------ */

static bool is_listed(const struct rpc_gpu_snapshot_result *doc, const char *text)
{
	for (size_t i = 0; i < doc->n_missing; i++)
		if (!strcmp(doc->missing[i], text))
			return true;
	return false;
}

int handlers_tell_waits(struct session *s, struct rpc_arena *a, const struct snapshot *seen, const uint32_t *group_of,
			uint32_t look_up_ms, const uint32_t *since, bool threads, struct rpc_gpu_snapshot_result *doc,
			struct agent_err *err)
{
	struct threads room;
	struct wait_options o = { .look_up_ms = look_up_ms, .memory = memory_of(s),
				  .threads = threads ? threads_of(s, look_up_ms, &room) : NULL, .stood_ns = stood_ns(s),
				  .has_since = since != NULL, .since = since ? *since : 0 };
	int r;

	o.of_wave = rpc_arena_array(a, seen->waves.n_waves, sizeof(*o.of_wave));
	if (!o.of_wave)
		return agent_err_no_memory(err, NULL);
	r = wait_tell(s->target, a, &o, seen, &s->looks, &doc->why, err);
	if (r < 0)
		return r;
	doc->has_why = true;
	if (group_of)
		wait_tell_groups(o.of_wave, group_of, seen->waves.n_waves, doc->groups, doc->n_groups);
	for (size_t i = 0; r == 0 && i < doc->why.n_missing; i++)
		if (!is_listed(doc, doc->why.missing[i]))
			r = snapshot_miss(a, doc, rpc_arena_printf(a, "why: %s", doc->why.missing[i]));
	return r < 0 ? agent_err_no_memory(err, NULL) : 0;
}

/* ------------------------------------------------------------------ by itself ---------------- */

int handlers_why_get(void *ctx, struct rpc_call *call, struct rpc_arena *arena,
		     const struct rpc_why_get_params *params, struct rpc_why_get_result *ret, struct agent_err *err)
{
	struct session *s = ctx;
	/* Those of NVIDIA's devices take a call for each: only those by which warps wait are read. */
	const struct snapshot_options look = { .waves = true, .mbarriers = true,
					       .registers = s->target->ops->vendor == RPC_VENDOR_AMD };
	struct wait_options o = { .has_since = params->has_since, .since = params->since };
	uint32_t retry_ms, left_ms, ms = params->has_max_stop_ms ? params->max_stop_ms : HANDLERS_STOP_MS;
	struct threads threads;
	struct snapshot seen;
	int r;

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
	o.memory = memory_of(s);
	o.stood_ns = stood_ns(s);
	o.look_up_ms = left_ms < HANDLERS_LOOK_UP_MS ? left_ms : HANDLERS_LOOK_UP_MS;
	o.threads = threads_of(s, o.look_up_ms, &threads);
	return wait_tell(s->target, arena, &o, &seen, &s->looks, ret, err);
}
