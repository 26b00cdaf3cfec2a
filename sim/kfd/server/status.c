/* SPDX-License-Identifier: MIT */
/* The state as JSON, for tests and for people. */
#include "control.h"
#include "sim/kfd/device/memory.h"
#include "sim/kfd/device/waves.h"

#include <inttypes.h>
#include <string.h>

/* Append a member's name, with a comma unless it is the first one. */
static void key(struct out *o, const char *name)
{
	if (o->size && o->data[o->size - 1] != '{' && o->data[o->size - 1] != '[')
		out_char(o, ',');
	out_fmt(o, "\"%s\":", name);
}

static void number(struct out *o, const char *name, uint64_t v)
{
	key(o, name);
	out_u64(o, v);
}

static void hex(struct out *o, const char *name, uint64_t v)
{
	key(o, name);
	out_fmt(o, "\"0x%" PRIx64 "\"", v);
}

static void boolean(struct out *o, const char *name, bool v)
{
	key(o, name);
	out_str(o, v ? "true" : "false");
}

static void text(struct out *o, const char *name, const char *v)
{
	key(o, name);
	out_json_str(o, v, strlen(v));
}

/* Begin an object of an array. */
static void open_element(struct out *o)
{
	if (o->data[o->size - 1] != '[')
		out_char(o, ',');
	out_char(o, '{');
}

static void status_gpu(const struct sim_gpu *g, struct out *o)
{
	open_element(o);
	text(o, "name", g->profile->name);
	number(o, "gpu_id", g->gpu_id);
	number(o, "node", g->node);
	boolean(o, "mes", g->profile->mes);
	boolean(o, "resetting", g->resetting);
	boolean(o, "lost", g->lost);
	number(o, "debug_owner", g->debug_owner ? (uint64_t)g->debug_owner->tgid : 0);
	key(o, "watch");
	out_char(o, '[');
	for (size_t i = 0; i < KFDABI_WATCH_IDS; i++) {
		if (!g->watch[i].owner)
			continue;
		open_element(o);
		number(o, "id", i);
		number(o, "pid", (uint64_t)g->watch[i].owner->tgid);
		hex(o, "address", g->watch[i].address);
		number(o, "mode", g->watch[i].mode);
		hex(o, "mask", g->watch[i].mask);
		out_char(o, '}');
	}
	out_str(o, "]}");
}

static void status_device(const struct sim_device *d, struct out *o)
{
	open_element(o);
	number(o, "gpu_id", d->gpu->gpu_id);
	hex(o, "latched", d->latched);
	boolean(o, "fault_recorded", d->has_fault);
	hex(o, "override", d->override);
	number(o, "launch_mode", d->launch_mode);
	boolean(o, "evicted", d->evicted);
	out_char(o, '}');
}

static void status_queue(const struct sim *s, const struct sim_queue *q, struct out *o)
{
	open_element(o);
	number(o, "id", q->id);
	number(o, "gpu_id", q->device->gpu->gpu_id);
	number(o, "type", q->type);
	hex(o, "latched", q->latched);
	boolean(o, "suspended", q->suspended);
	number(o, "suspended_us", sim_queue_suspended_ns(s, q) / 1000);
	boolean(o, "destroying", q->destroying);
	boolean(o, "running", sim_queue_is_running(q));
	number(o, "packets", q->packets);
	number(o, "waves", sim_waves_count(q));
	boolean(o, "held", q->held);
	boolean(o, "broken", q->broken);
	out_char(o, '}');
}

static void status_session(const struct sim_process *p, struct out *o)
{
	boolean(o, "debugged", p->debugged);
	number(o, "debugger", p->debugger ? (uint64_t)p->debugger->tgid : 0);
	number(o, "enabled_as", p->enabled_as);
	boolean(o, "dbg_fd_open", p->dbg_fd >= 0);
	number(o, "notifications", p->notifications);
	hex(o, "enabled_mask", p->enabled_mask);
	hex(o, "latched", p->latched);
	number(o, "runtime_state", p->runtime.runtime_state);
	hex(o, "r_debug", p->runtime.r_debug);
	number(o, "ttmp_setup", p->runtime.ttmp_setup);
	number(o, "handshake_surplus", p->handshake);
	boolean(o, "runtime_retry", p->runtime_retry);
	number(o, "flags", p->flags);
	number(o, "suspends", p->suspends);
}

static void status_process(const struct sim *s, const struct sim_process *p, struct out *o)
{
	const struct sim_queue *q;

	open_element(o);
	number(o, "pid", (uint64_t)p->tgid);
	number(o, "context", p->context);
	number(o, "pasid", p->pasid);
	number(o, "memory_bytes", sim_memory_of(p));
	number(o, "open_files", p->n_files);
	status_session(p, o);
	key(o, "devices");
	out_char(o, '[');
	for (size_t i = 0; i < p->n_devices; i++)
		status_device(&p->devices[i], o);
	out_char(o, ']');
	key(o, "queues");
	out_char(o, '[');
	TAILQ_FOREACH(q, &p->queues, link)
		status_queue(s, q, o);
	out_str(o, "]}");
}

static void status_pending(const struct sim_call *call, struct out *o)
{
	static const char *const names[] = {
		[SIM_WAIT_NONE] = "none",	[SIM_WAIT_TURN] = "turn",
		[SIM_WAIT_RUNTIME] = "runtime", [SIM_WAIT_DESTROY] = "destroy",
		[SIM_WAIT_EVENTS] = "events",	[SIM_WAIT_DELAY] = "delay",
		[SIM_WAIT_BLOCK] = "block",
	};

	open_element(o);
	number(o, "tid", (uint64_t)call->tid);
	number(o, "command", KFDABI_NR(call->command));
	text(o, "wait", names[call->wait]);
	text(o, "op", call->op ? call->op : "");
	number(o, "target", call->target ? (uint64_t)call->target->tgid : 0);
	out_char(o, '}');
}

static void status_settings(const struct sim *s, struct out *o)
{
	text(o, "kernel", s->kernel->name);
	number(o, "minor", s->kernel->minor);
	text(o, "permissions", s->process_bound ? "process" : "thread");
	text(o, "efault", s->enable_unwinds ? "new" : "old");
	text(o, "memory_info", s->memory_info_fixed ? "fixed" : "real");
	boolean(o, "never", s->allow_never);
	boolean(o, "memory", s->has_store);
	number(o, "memory_touched", s->has_store ? s->os->store_used() : 0);
	number(o, "progress_ms", s->progress_ms);
}

void control_status(const struct sim *s, struct out *o)
{
	const struct sim_process *p;
	const struct sim_call *call;

	out_char(o, '{');
	status_settings(s, o);
	key(o, "gpus");
	out_char(o, '[');
	for (size_t i = 0; i < s->n_gpus; i++)
		status_gpu(&s->gpus[i], o);
	out_char(o, ']');
	key(o, "processes");
	out_char(o, '[');
	TAILQ_FOREACH(p, &s->processes, link)
		if (!p->gone)
			status_process(s, p, o);
	out_char(o, ']');
	key(o, "pending");
	out_char(o, '[');
	TAILQ_FOREACH(call, &s->pending, link)
		status_pending(call, o);
	out_str(o, "]}\n");
}
