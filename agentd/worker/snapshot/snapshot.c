/* SPDX-License-Identifier: MIT */
#include "agentd/worker/snapshot/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agentd/worker/process/facts.h"
#include "agentd/worker/snapshot/arguments.h"
#include "agentd/worker/snapshot/convert.h"
#include "agentd/worker/snapshot/exited.h"
#include "agentd/worker/snapshot/locations.h"
#include "agentd/worker/snapshot/queue_waves.h"
#include "agentd/worker/snapshot/wave_convert.h"
#include "base/cleanup.h"
#include "base/clock.h"

/* The sentences about what the document lacks. */
struct missing {
	struct rpc_arena *arena;
	const char **list;
	size_t n, capacity;
	size_t n_known; /* The first so many are those of the target's origin. */
};

static void add_missing(struct missing *m, const char *text)
{
	/* What was missing when a core was written is mostly missing in the core as well. */
	for (size_t i = 0; text && i < m->n_known; i++)
		if (strcmp(m->list[i], text) == 0)
			return;
	if (text && m->n < m->capacity)
		m->list[m->n++] = text;
}

static void find_missing(struct missing *m, struct target *t, const struct target_device *d,
			 size_t n_d, const struct rpc_queue *q, size_t n_q)
{
	/* No core has a topology; the head of a core has what the agent knew of it. */
	for (size_t i = 0; i < n_d && !t->origin; i++)
		if (d[i].no_topology)
			add_missing(m, rpc_arena_printf(m->arena, "device %u: not in the topology that the agent may read",
							d[i].rpc.gpu_id));
	if (t->ops->hidden_queues)
		add_missing(m, t->ops->hidden_queues(t, m->arena));
	for (size_t i = 0; i < n_q; i++) {
		if (q[i].has_read_pointer && !q[i].has_read_index)
			add_missing(m,
				    rpc_arena_printf(
					    m->arena,
					    "queue %u: read index at 0x%llx is not readable",
					    q[i].queue_id, (unsigned long long)q[i].read_pointer));
		if (q[i].has_write_pointer && !q[i].has_write_index)
			add_missing(m,
				    rpc_arena_printf(
					    m->arena,
					    "queue %u: write index at 0x%llx is not readable",
					    q[i].queue_id, (unsigned long long)q[i].write_pointer));
	}
}

static bool is_of(const struct rpc_wave_registers *r, const struct wave *w)
{
	const struct rpc_wave_ref *ref = &r->wave.ref;

	return ref->queue_id == w->queue_id && ref->unit == w->unit && ref->index == w->index;
}

static bool is_shown(const struct rpc_gpu_snapshot_result *r, const struct wave *w)
{
	for (size_t i = 0; i < r->n_registers; i++)
		if (is_of(&r->registers[i], w))
			return true;
	return false;
}

/*
 * Show the registers of the representatives in the order of the groups, each once: a wave whose
 * lanes are at different places may represent several.  The capture has registers of one wave at
 * each pc, and so of more waves than there are groups.
 */
static void fill_registers(struct rpc_arena *a, const struct target_waves *w,
			   const struct group *groups, size_t n_groups,
			   struct rpc_gpu_snapshot_result *ret)
{
	ret->has_registers = true;
	ret->registers = rpc_arena_array(a, w->n_registers, sizeof(*ret->registers));
	for (size_t g = 0; ret->registers && g < n_groups; g++) {
		const struct wave *wave = &w->waves[groups[g].representative];

		for (size_t i = 0; i < w->n_registers && !is_shown(ret, wave); i++)
			if (is_of(&w->registers[i], wave))
				ret->registers[ret->n_registers++] = w->registers[i];
	}
}

/*
 * Mark the groups whose waves are to be listed.
 * @return how many waves these groups have; one that is in several of them counts in each.
 */
static uint64_t mark_groups(const struct rpc_wave_select *s, const struct rpc_group *groups,
			    size_t n_groups, bool *is_chosen)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_groups; i++) {
		uint32_t g = s->groups[i];

		if (g >= n_groups || is_chosen[g])
			continue;
		is_chosen[g] = true;
		n += groups[g].waves;
	}
	return n;
}

/* Is the wave, or a part of it, in one of the chosen groups? */
static bool is_chosen_wave(const struct wave *w, uint32_t group, const bool *is_chosen)
{
	bool found = is_chosen[group];

	for (uint32_t i = 0; !found && i < wave_n_parts(w); i++)
		found = is_chosen[w->parts->list[i].group];
	return found;
}

/* Only the chosen waves are copied: a page of them must not cost as much as all of them. */
static int list_chosen(struct rpc_arena *a, const struct target_waves *w, const uint32_t *group_of,
		       const struct rpc_wave_select *s, struct rpc_gpu_snapshot_result *ret)
{
	auto_free bool *is_chosen = calloc(ret->n_groups + 1, sizeof(*is_chosen));
	auto_free uint32_t *groups = NULL;
	struct wave *waves;
	uint64_t most, left_out = 0;

	if (!is_chosen)
		return -ENOMEM;
	most = mark_groups(s, ret->groups, ret->n_groups, is_chosen);
	most = most > s->first ? most - s->first : 0;
	if (s->has_max && most > s->max)
		most = s->max;
	if (s->has_wave && most)
		most = 1;
	waves = rpc_arena_array(a, most, sizeof(*waves));
	groups = calloc(most + 1, sizeof(*groups));
	if (!waves || !groups)
		return -ENOMEM;
	for (size_t i = 0; i < w->n_waves && ret->n_waves < most; i++) {
		if (!is_chosen_wave(&w->waves[i], group_of[i], is_chosen) ||
		    (s->has_wave && !wave_is_named(&w->waves[i], &s->wave)) ||
		    left_out++ < s->first)
			continue;
		groups[ret->n_waves] = group_of[i];
		waves[ret->n_waves++] = w->waves[i];
	}
	ret->waves = waves_convert(a, waves, groups, ret->n_waves);
	return ret->waves ? 0 : -ENOMEM;
}

/* Fill in the groups, and the waves themselves and registers if they were asked for. */
static int fill_waves(struct code_set *code, const struct snapshot *s, const struct snapshot_options *o,
		      const struct locations *places, struct arguments_missing *missing,
		      struct rpc_gpu_snapshot_result *ret)
{
	const struct target_waves *w = &s->waves;
	const struct arguments_from from = { w, s->queues, s->n_queues, o->all_arguments };
	struct rpc_arena *a = code->arena;
	auto_free struct group *groups = NULL;
	auto_free uint32_t *group_of = NULL;
	struct group *kept;
	int r = group_waves(w->waves, w->n_waves, &groups, &ret->n_groups, &group_of);

	if (r < 0)
		return r;
	kept = rpc_arena_array(a, ret->n_groups, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	memcpy(kept, groups, ret->n_groups * sizeof(*kept));
	if (o->ret_group_of) {
		*o->ret_group_of = rpc_arena_array(a, w->n_waves, sizeof(**o->ret_group_of));
		if (!*o->ret_group_of)
			return -ENOMEM;
		memcpy(*o->ret_group_of, group_of, w->n_waves * sizeof(**o->ret_group_of));
	}
	ret->wave_count = (uint32_t)w->n_waves;
	for (size_t i = 0; i < w->n_waves; i++)
		ret->diverged_waves += w->waves[i].parts != NULL;
	ret->has_diverged_waves = ret->diverged_waves;
	ret->groups = waves_convert_groups(a, w->waves, kept, ret->n_groups, places);
	if (!ret->groups)
		return -ENOMEM;
	r = arguments_fill(code, &from, groups, ret->groups, ret->n_groups, missing);
	if (r < 0)
		return r;
	r = queue_waves_fill(a, w->waves, group_of, w->n_waves, ret->groups, ret->n_groups, ret->queues,
			     ret->n_queues);
	if (r < 0)
		return r;
	if (o->registers)
		fill_registers(a, w, groups, ret->n_groups, ret);
	ret->has_waves = o->each_wave;
	if (o->each_wave && o->select) {
		r = list_chosen(a, w, group_of, o->select, ret);
		if (r < 0)
			return r;
	} else if (o->each_wave) {
		ret->waves = waves_convert(a, w->waves, group_of, w->n_waves);
		ret->n_waves = w->n_waves;
	}
	ret->stopped_us = w->stopped_us;
	ret->has_agent_us = w->stopped_us > 0;
	ret->agent_us = w->agent_us;
	ret->budget_exceeded = w->budget_exceeded;
	return 0;
}

/* List the devices that have queues, each once, in the order of the queues. */
static void fill_gpu_ids(struct rpc_arena *a, struct rpc_process *p, const struct rpc_queue *q,
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
			 uint32_t max_stop_ms, struct snapshot *s, struct agent_err *err)
{
	static const char *const unsupported[] = {
		"waves: devices of this vendor do not show them"
	};
	const struct target_waves_from from = { .devices = s->devices,
						.n_devices = s->n_devices,
						.queues = s->queues,
						.n_queues = s->n_queues,
						.max_stop_ms = max_stop_ms,
						.registers = o->registers,
						.mbarriers = o->mbarriers,
						.all_arguments = o->all_arguments };

	if (t->ops->waves)
		return t->ops->waves(t, &from, a, &s->waves, err);
	s->waves.missing = (const char **)unsupported;
	s->waves.n_missing = 1;
	return 0;
}

int snapshot_look(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  uint32_t max_stop_ms, struct snapshot *ret, struct agent_err *err)
{
	struct target_device *devices;
	struct rpc_queue *queues;
	int r;

	*ret = (struct snapshot){ .time_us = t->origin ? t->origin->time_us : clock_wall_us() };
	r = t->ops->devices(t, a, &devices, &ret->n_devices, err);
	if (r == 0)
		r = t->ops->queues(t, a, &queues, &ret->n_queues, err);
	if (r < 0)
		return r;
	ret->devices = devices;
	ret->queues = queues;
	return o->waves ? look_at_waves(t, a, o, max_stop_ms, ret, err) : 0;
}

/* ------------------------------------------------------------------ the document ------------- */

static void fill_process(struct target *t, struct rpc_arena *a, const struct snapshot *s,
			 struct rpc_process *ret)
{
	if (t->origin) {
		*ret = t->origin->process;
	} else {
		process_facts_fill(a, &t->facts, ret);
		if (t->exe)
			ret->exe = t->exe;
		ret->session = rpc_arena_printf(a, "s%u", t->options->session);
		ret->has_start_ticks = true;
		ret->start_ticks = t->start_ticks;
		ret->debuggable = true;
	}
	fill_gpu_ids(a, ret, s->queues, s->n_queues);
	ret->vendor = t->ops->vendor;
	ret->queues = (uint32_t)s->n_queues;
}

static void fill_source(const struct target *t, struct rpc_arena *a,
			struct rpc_snapshot_source *ret)
{
	struct utsname host;

	if (t->origin) {
		*ret = t->origin->source;
		return;
	}
	*ret = (struct rpc_snapshot_source){
		.kind = "live",
		.host = uname(&host) == 0 ? rpc_arena_strdup(a, host.nodename) : "unknown",
		.agent = GPU_AGENT_VERSION,
	};
}

/* Find out where the waves are, fill in the groups, and list what is missing of that. */
static int fill_places(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		       const struct snapshot *s, struct missing *m,
		       struct rpc_gpu_snapshot_result *ret)
{
	const char *texts[CODE_MISSING_MAX];
	struct arguments_missing arguments = { .n = 0 };
	struct locations places = { 0 };
	struct code_set code = { .target = t, .arena = a };
	bool unknown = false;
	size_t n = 0;
	int r = 0;

	/* Without waves there is nothing to look up, so the code objects are not listed. */
	if (s->waves.n_waves || s->waves.n_exited)
		r = code_set_init(&code, t, a, o->look_up_ms);
	if (r == 0)
		r = locations_find(&code, s->waves.waves, s->waves.n_waves, &places);
	if (r == 0)
		r = fill_waves(&code, s, o, &places, &arguments, ret);
	if (r == 0)
		r = exited_convert(&code, s->waves.exited, s->waves.n_exited, &ret->exited,
				   &ret->n_exited, &unknown);
	ret->has_exited = ret->n_exited > 0;
	if (r == 0)
		n = code_missing(&code, places.n_unknown > 0 || unknown, texts);
	for (size_t i = 0; i < n; i++)
		add_missing(m, texts[i]);
	for (size_t i = 0; i < arguments.n; i++)
		add_missing(m, arguments.list[i]);
	if (places.cut)
		add_missing(m,
			    "code objects: names of functions and files are too long to show all");
	locations_deinit(&places);
	code_set_deinit(&code);
	return r;
}

int snapshot_miss(struct rpc_arena *a, struct rpc_gpu_snapshot_result *doc, const char *text)
{
	const char **list = rpc_arena_array(a, doc->n_missing + 1, sizeof(*list));

	if (!list || !text)
		return -ENOMEM;
	if (doc->n_missing)
		memcpy(list, doc->missing, doc->n_missing * sizeof(*list));
	list[doc->n_missing++] = text;
	doc->missing = list;
	doc->complete = false;
	return 0;
}

struct rpc_device *snapshot_devices(struct rpc_arena *a, const struct target_device *d, size_t n)
{
	struct rpc_device *list = rpc_arena_array(a, n, sizeof(*list));

	for (size_t i = 0; list && i < n; i++)
		list[i] = d[i].rpc;
	return list;
}

/* A list of its own: what the waves mean for a queue is added to it, for this document alone. */
static void fill_queues(struct rpc_arena *a, const struct snapshot *s,
			struct rpc_gpu_snapshot_result *ret)
{
	const struct target_queue_stop *stops = s->waves.stops;

	ret->queues = rpc_arena_array(a, s->n_queues, sizeof(*ret->queues));
	ret->n_queues = ret->queues ? s->n_queues : 0;
	for (size_t i = 0; i < ret->n_queues; i++) {
		ret->queues[i] = s->queues[i];
		if (!stops)
			continue;
		ret->queues[i].has_stopped_us = stops[i].has_stopped_us;
		ret->queues[i].stopped_us = stops[i].stopped_us;
		ret->queues[i].has_not_stopped = stops[i].has_not_stopped;
		ret->queues[i].not_stopped = stops[i].not_stopped;
	}
}

static int fill_missing(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
			const struct snapshot *s, struct rpc_gpu_snapshot_result *ret)
{
	struct missing m = { .arena = a,
			     .capacity = s->n_devices + 2 * s->n_queues + 4 + s->waves.n_missing +
					 CODE_MISSING_MAX + ARGUMENTS_MISSING_MAX +
					 (t->origin ? t->origin->n_missing : 0) };
	int r = 0;

	m.list = rpc_arena_array(a, m.capacity, sizeof(*m.list));
	if (!m.list)
		return -ENOMEM;
	for (size_t i = 0; t->origin && i < t->origin->n_missing; i++)
		add_missing(&m, t->origin->missing[i]);
	m.n_known = m.n;
	find_missing(&m, t, s->devices, s->n_devices, s->queues, s->n_queues);
	for (size_t i = 0; i < s->waves.n_missing; i++)
		add_missing(&m, s->waves.missing[i]);
	if (o->no_stop)
		add_missing(&m, "waves: nothing was stopped, as those who may only look have stopped the queues of this process for as long as they may");
	if (o->waves)
		r = fill_places(t, a, o, s, &m, ret);
	else if (t->runtime.r_debug && !t->runtime.has_r_version)
		add_missing(&m, "runtime: the code object list is not readable");
	ret->missing = m.list;
	ret->n_missing = m.n;
	ret->complete = m.n == 0;
	return r;
}

int snapshot_tell(struct target *t, struct rpc_arena *a, const struct snapshot_options *o,
		  const struct snapshot *s, struct rpc_gpu_snapshot_result *ret,
		  struct agent_err *err)
{
	const uint32_t *holder = o->holder_uid;
	int r;

	if (t->origin && t->origin->has_holder_uid)
		holder = &t->origin->holder_uid;
	ret->schema = SNAPSHOT_SCHEMA;
	ret->time_us = s->time_us;
	fill_source(t, a, &ret->source);
	fill_process(t, a, s, &ret->process);
	ret->interface_version = t->version;
	ret->runtime = t->runtime;
	ret->devices = snapshot_devices(a, s->devices, s->n_devices);
	ret->n_devices = s->n_devices;
	fill_queues(a, s, ret);
	ret->has_holder_uid = holder != NULL;
	ret->holder_uid = holder ? *holder : 0;
	r = fill_missing(t, a, o, s, ret);
	if (rpc_arena_error(a) < 0)
		r = rpc_arena_error(a);
	if (r < 0)
		return agent_err_set(err, RPC_ERROR_INTERNAL, -r, "gpu.snapshot",
				     NULL, "the document does not fit into memory");
	return 0;
}
