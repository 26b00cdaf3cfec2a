/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/exception_capture.h"

#include "base/clock.h"

#define REST_FACTOR 9 /* a capture of 1 ms, then 9 ms without */

bool exception_throttle_allows(const struct exception_throttle *throttle)
{
	return clock_now_ns() >= throttle->rest_until;
}

bool exception_concerns(const struct target_source *source, uint32_t gpu_id, uint32_t queue_id)
{
	if (source->has_queue)
		return queue_id == source->queue_id;
	return !source->has_gpu || gpu_id == source->gpu_id;
}

void exception_capture_init(struct exception_capture *c)
{
	*c = (struct exception_capture){ 0 };
	rpc_arena_init(&c->arena, TARGET_ARENA_MAX);
}

void exception_capture_deinit(struct exception_capture *c)
{
	rpc_arena_deinit(&c->arena);
}

int exception_capture_begin(struct exception_capture *c, struct target *t)
{
	const struct snapshot_options without_waves = { 0 };

	c->begun_ns = clock_now_ns();
	return snapshot_look(t, &c->arena, &without_waves, 0, &c->seen, &c->begin_err);
}

/* Only the queues that are concerned; the document has no others then. */
static int choose_queues(struct exception_capture *c, const struct target_source *source)
{
	struct rpc_queue *kept = rpc_arena_array(&c->arena, c->seen.n_queues, sizeof(*kept));
	size_t n = 0;

	if (!kept)
		return agent_err_no_memory(&c->waves_err, NULL);
	for (size_t i = 0; i < c->seen.n_queues; i++)
		if (exception_concerns(source, c->seen.queues[i].gpu_id, c->seen.queues[i].queue_id))
			kept[n++] = c->seen.queues[i];
	c->seen.queues = kept;
	c->seen.n_queues = n;
	return 0;
}

/* The stop for the core shows the waves, too. */
static void take_core(struct exception_capture *c, struct target *t,
		      const struct target_waves_from *from, const struct target_core_wanted *what)
{
	struct target_core_wanted both = *what;

	both.waves = true;
	c->has_core = t->ops->core_begin(t, from, &both, &c->arena, &c->core, &c->core_err) == 0;
	c->has_waves = c->core.has_waves;
	if (c->has_waves)
		c->seen.waves = c->core.waves;
	else if (t->ended)
		c->waves_err = c->core_err;
}

static void take_waves(struct exception_capture *c, struct target *t,
		       const struct target_waves_from *from)
{
	struct target_waves waves;

	c->has_waves = t->ops->waves(t, from, &c->arena, &waves, &c->waves_err) == 0;
	if (c->has_waves)
		c->seen.waves = waves;
}

void exception_capture_take(struct exception_capture *c, struct exception_throttle *throttle,
			    struct target *t, const struct target_source *source,
			    const struct exception_capture_wanted *what)
{
	struct target_waves_from from = { .devices = c->seen.devices,
					  .n_devices = c->seen.n_devices,
					  .max_stop_ms = what->max_stop_ms,
					  .registers = what->registers,
					  .mbarriers = what->mbarriers };

	if (!what->all_queues && choose_queues(c, source) < 0)
		return;
	from.queues = c->seen.queues;
	from.n_queues = c->seen.n_queues;
	if (what->core)
		take_core(c, t, &from, what->core);
	/* Nobody wants a core, or it came to nothing; one that fails after its stop costs a second stop. */
	if (!c->has_waves && !c->waves_err.code)
		take_waves(c, t, &from);
	throttle->rest_until = clock_now_ns() + (clock_now_ns() - c->begun_ns) * REST_FACTOR;
}
