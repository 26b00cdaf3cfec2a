/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot.h"

#include <errno.h>
#include <sys/utsname.h>

#include "agentd/worker/convert.h"
#include "agentd/worker/process_facts.h"
#include "base/cleanup.h"
#include "base/clock.h"

struct missing {
	struct rpc_arena *arena;
	const char **list;
	size_t n, capacity;
};

static void add_missing(struct missing *m, const char *text)
{
	if (text && m->n < m->capacity)
		m->list[m->n++] = text;
}

static void find_missing(struct missing *m, const struct target *t, const struct target_device *d,
			 size_t n_d, const struct target_queue *q, size_t n_q)
{
	for (size_t i = 0; i < n_d; i++)
		if (!d[i].has_node)
			add_missing(m, rpc_arena_printf(m->arena, "device %u: not in the topology that the agent may read",
							d[i].gpu_id));
	for (size_t i = 0; i < n_q; i++) {
		if (!q[i].has_read_index)
			add_missing(m, rpc_arena_printf(m->arena, "queue %u: read index at 0x%llx is not readable",
							q[i].queue_id,
							(unsigned long long)q[i].read_pointer));
		if (!q[i].has_write_index)
			add_missing(m, rpc_arena_printf(m->arena, "queue %u: write index at 0x%llx is not readable",
							q[i].queue_id,
							(unsigned long long)q[i].write_pointer));
	}
	if (t->runtime.r_debug && !t->runtime.has_r_version)
		add_missing(m, "runtime: the code object list is not readable");
}

static bool is_of(const struct rpc_wave_registers *r, const struct wave *w)
{
	const struct rpc_wave_ref *ref = &r->wave.ref;

	return ref->queue_id == w->queue_id && ref->xcc == w->xcc && ref->index == w->index;
}

/* In the order of the groups; there can be more places than groups. */
static void fill_registers(struct rpc_arena *a, const struct target_waves *w,
			   const struct group *groups, size_t n_groups,
			   struct rpc_gpu_snapshot_result *ret)
{
	ret->has_registers = true;
	ret->registers = rpc_arena_array(a, w->n_registers, sizeof(*ret->registers));
	for (size_t g = 0; ret->registers && g < n_groups; g++)
		for (size_t i = 0; i < w->n_registers; i++)
			if (is_of(&w->registers[i], &w->waves[groups[g].representative])) {
				ret->registers[ret->n_registers++] = w->registers[i];
				break;
			}
}

/* Groups, and the waves themselves and registers if asked for. */
static int fill_waves(struct rpc_arena *a, const struct target_waves *w,
		      const struct snapshot_options *o, struct rpc_gpu_snapshot_result *ret)
{
	auto_free struct group *groups = NULL;
	int r = group_waves(w->waves, w->n_waves, &groups, &ret->n_groups);

	if (r < 0)
		return r;
	ret->wave_count = (uint32_t)w->n_waves;
	ret->groups = waves_convert_groups(a, w->waves, groups, ret->n_groups);
	if (o->registers)
		fill_registers(a, w, groups, ret->n_groups, ret);
	ret->has_waves = o->each_wave;
	if (o->each_wave) {
		ret->waves = waves_convert(a, w->waves, w->n_waves);
		ret->n_waves = w->n_waves;
	}
	ret->stopped_us = w->stopped_us;
	ret->has_agent_us = w->stopped_us > 0;
	ret->agent_us = w->agent_us;
	ret->budget_exceeded = w->budget_exceeded;
	return 0;
}

/* Devices that have queues, without doubles, in the order of the queues. */
static void fill_gpu_ids(struct rpc_arena *a, struct rpc_process *p, const struct target_queue *q,
			 size_t n)
{
	p->gpu_ids = rpc_arena_array(a, n, sizeof(*p->gpu_ids));
	for (size_t i = 0; p->gpu_ids && i < n; i++) {
		size_t j = 0;

		while (j < p->n_gpu_ids && p->gpu_ids[j] != q[i].gpu_id)
			j++;
		if (j == p->n_gpu_ids)
			p->gpu_ids[p->n_gpu_ids++] = q[i].gpu_id;
	}
}

static int look_at_waves(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
			 const struct target_waves_from *from, struct target_waves *ret,
			 struct agent_err *err)
{
	static const char *const unsupported[] = { "waves: devices of this vendor do not show them" };

	if (!o->waves)
		return 0;
	if (t->ops->waves)
		return t->ops->waves(t, from, a, ret, err);
	ret->missing = (const char **)unsupported;
	ret->n_missing = 1;
	return 0;
}

int snapshot_take(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  struct rpc_gpu_snapshot_result *ret, struct agent_err *err)
{
	struct target_device *devices;
	struct target_queue *queues;
	size_t n_devices, n_queues;
	struct target_waves waves = { 0 };
	struct missing missing;
	struct utsname host;
	int r;

	ret->time_us = clock_wall_us();
	r = t->ops->devices(t, a, &devices, &n_devices, err);
	if (r == 0)
		r = t->ops->queues(t, a, &queues, &n_queues, err);
	if (r == 0)
		r = look_at_waves(t, a, o,
				  &(struct target_waves_from){ .devices = devices,
							       .n_devices = n_devices,
							       .queues = queues,
							       .n_queues = n_queues,
							       .max_stop_ms = o->max_stop_ms,
							       .registers = o->registers },
				  &waves, err);
	if (r < 0)
		return r;
	r = fill_waves(a, &waves, o, ret);
	missing = (struct missing){ .arena = a,
				    .capacity = n_devices + 2 * n_queues + 1 + waves.n_missing };
	missing.list = rpc_arena_array(a, missing.capacity, sizeof(*missing.list));
	if (missing.list)
		find_missing(&missing, t, devices, n_devices, queues, n_queues);
	for (size_t i = 0; missing.list && i < waves.n_missing; i++)
		add_missing(&missing, waves.missing[i]);
	ret->schema = SNAPSHOT_SCHEMA;
	ret->source = (struct rpc_snapshot_source){
		.kind = "live",
		.host = uname(&host) == 0 ? rpc_arena_strdup(a, host.nodename) : "unknown",
		.agent = GPU_AGENT_VERSION,
	};
	process_facts_fill(a, &t->facts, &ret->process);
	if (t->exe)
		ret->process.exe = t->exe;
	fill_gpu_ids(a, &ret->process, queues, n_queues);
	ret->process.vendor = t->ops->vendor;
	ret->process.queues = (uint32_t)n_queues;
	ret->process.session = rpc_arena_printf(a, "s%u", t->options->session);
	ret->process.has_start_ticks = true;
	ret->process.start_ticks = t->start_ticks;
	ret->process.debuggable = true;
	ret->kfd_version = t->version;
	ret->runtime = convert_runtime(&t->runtime);
	ret->devices = convert_devices(a, devices, n_devices);
	ret->n_devices = n_devices;
	ret->queues = convert_queues(a, queues, n_queues, NULL, &ret->n_queues);
	convert_queue_stops(ret->queues, waves.stops, ret->n_queues);
	ret->has_holder_uid = o->holder_uid != NULL;
	ret->holder_uid = o->holder_uid ? *o->holder_uid : 0;
	ret->missing = missing.list;
	ret->n_missing = missing.n;
	ret->complete = missing.n == 0;
	if (rpc_arena_error(a) < 0)
		r = rpc_arena_error(a);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, -r, "gpu.snapshot",
				     NULL, "the document does not fit into memory");
	return 0;
}
