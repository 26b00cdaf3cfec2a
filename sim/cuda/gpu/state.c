/* SPDX-License-Identifier: MIT */
/* The simulator's own view, as JSON: tests compare it with what a debugger says. */
#include <string.h>

#include "sim.h"

/* How many warps are resident, or broken. */
static uint32_t warps_count(const struct sim_device *d, bool broken)
{
	uint32_t n = 0;

	for (size_t i = 0; i < (size_t)d->n_sms * d->n_warps; i++)
		n += d->warps[i].grid && (!broken || d->warps[i].broken);
	return n;
}

static void device_json(const struct sim_device *d, struct out *o)
{
	out_fmt(o, "{\"sms\":%u,\"warps_per_sm\":%u,\"suspended\":%s,\"warps\":%u,\"broken\":%u}",
		d->n_sms, d->n_warps, d->suspended || d->left ? "true" : "false", warps_count(d, false),
		warps_count(d, true));
}

static void module_json(const struct sim_module *m, struct out *o)
{
	const char *sep = "";

	out_fmt(o, "{\"handle\":\"0x%llx\",\"dev\":%u,\"size\":%zu,\"functions\":[",
		(unsigned long long)m->handle, m->dev, m->size);
	for (size_t i = 0; i < m->n_functions; i++) {
		out_fmt(o, "%s{\"name\":", sep);
		out_json_str(o, m->functions[i].name, strlen(m->functions[i].name));
		out_fmt(o, ",\"address\":\"0x%llx\",\"size\":%llu}",
			(unsigned long long)m->functions[i].address,
			(unsigned long long)m->functions[i].size);
		sep = ",";
	}
	out_str(o, "]}");
}

static void lists_json(const struct sim_process *p, struct out *o)
{
	const char *sep = "";

	out_str(o, ",\"devices\":[");
	for (uint32_t i = 0; i < p->n_devices; i++) {
		out_str(o, i ? "," : "");
		device_json(&p->devices[i], o);
	}
	out_str(o, "],\"contexts\":[");
	for (const struct sim_context *c = p->contexts; c; c = c->next, sep = ",")
		out_fmt(o, "%s{\"handle\":\"0x%llx\",\"dev\":%u,\"tid\":%u}", sep,
			(unsigned long long)c->handle, c->dev, c->tid);
	out_str(o, "],\"modules\":[");
	sep = "";
	for (const struct sim_module *m = p->modules; m; m = m->next, sep = ",") {
		out_str(o, sep);
		module_json(m, o);
	}
	out_str(o, "],\"grids\":[");
	sep = "";
	for (const struct sim_grid *g = p->grids; g; g = g->next, sep = ",")
		out_fmt(o, "%s{\"id\":%llu,\"dev\":%u,\"status\":%u}", sep,
			(unsigned long long)g->id, g->dev, g->status);
	out_str(o, "]");
}

static uint32_t breakpoints_count(const struct sim_process *p)
{
	uint32_t n = 0;

	for (const struct sim_breakpoint *b = p->breakpoints; b; b = b->next)
		n++;
	return n;
}

/* How many calls of each kind were answered. */
static void calls_json(const struct sim_process *p, struct out *o)
{
	const char *sep = "";

	out_str(o, ",\"calls_of\":{");
	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		if (!p->calls_of[i])
			continue;
		out_fmt(o, "%s\"%s\":%u", sep, slot_table[i].name, p->calls_of[i]);
		sep = ",";
	}
	out_char(o, '}');
}

static void process_json(const struct sim_process *p, struct out *o)
{
	static const char *const phases[] = { "none", "engine", "replay", "attached", "detaching" };

	out_fmt(o, "{\"pid\":%d,\"phase\":\"%s\",\"label\":%u,\"session\":%u,\"capabilities\":%u,",
		p->pid, phases[p->phase], p->label, p->session, p->capabilities);
	out_fmt(o,
		"\"ipc_flag\":%s,\"owes_ack\":%s,\"engagements\":%u,\"calls\":%u,\"breakpoints\":%"
		"u,",
		p->ipc_flag ? "true" : "false", p->owes_ack ? "true" : "false", p->engagements,
		p->calls, breakpoints_count(p));
	out_fmt(o, "\"sync_events\":%zu,\"async_events\":%zu", p->sync.n - p->sync.first,
		p->async.n - p->async.first);
	calls_json(p, o);
	lists_json(p, o);
	out_str(o, "}");
}

void state_json(const struct sim *s, struct out *o)
{
	const char *sep = "";

	out_str(o, "{\"processes\":[");
	for (const struct sim_process *p = s->processes; p; p = p->next, sep = ",") {
		out_str(o, sep);
		process_json(p, o);
	}
	out_str(o, "]}\n");
}
