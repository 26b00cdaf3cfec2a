/* SPDX-License-Identifier: MIT */
/*
 * The script language: one command a line, words and KEY=VALUE pairs.  This file has the commands
 * for devices, contexts, modules and grids.
 */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "tests/lib/passed.h"

/* Bytes of the largest script file. */
#define TEXT_MAX (1 << 20)

int arg_number(const struct args *a, int i, uint64_t max, uint64_t *ret)
{
	if (i >= a->n || str_to_u64_any(a->word[i], ret))
		return -EINVAL;
	return *ret > max ? -ERANGE : 0;
}

const char *arg_value(const struct args *a, const char *key)
{
	size_t n = strlen(key);

	for (int i = 1; i < a->n; i++)
		if (!strncmp(a->word[i], key, n) && a->word[i][n] == '=')
			return a->word[i] + n + 1;
	return NULL;
}

int arg_key(const struct args *a, const char *key, uint64_t fallback, uint64_t max, uint64_t *ret)
{
	const char *v = arg_value(a, key);

	*ret = fallback;
	if (!v)
		return 0;
	if (str_to_u64_any(v, ret))
		return -EINVAL;
	return *ret > max ? -ERANGE : 0;
}

/* The form is X[,Y[,Z]]; what is not said is 1. */
int arg_dim(const struct args *a, const char *key, struct sim_dim *dim)
{
	const char *v = arg_value(a, key);
	uint32_t *const parts[] = { &dim->x, &dim->y, &dim->z };
	auto_free char *copy = v ? strdup(v) : NULL;
	char *save = NULL;
	size_t i = 0;
	uint64_t n;

	if (!v)
		return 0;
	if (!copy)
		return -ENOMEM;
	*dim = (struct sim_dim){ 1, 1, 1 };
	for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (i == 3 || str_to_u64(t, 0, INT32_MAX, &n))
			return -EINVAL;
		*parts[i++] = (uint32_t)n;
	}
	return i ? 0 : -EINVAL;
}

int arg_place(struct sim_process *p, const struct args *a, int first, int depth, uint64_t at[4])
{
	memset(at, 0, 4 * sizeof(at[0]));
	for (int i = 0; i < depth; i++)
		if (arg_number(a, first + i, 4096, &at[i]))
			return -EINVAL;
	if (at[0] >= p->n_devices)
		return -ENODEV;
	if ((depth > 1 && at[1] >= p->devices[at[0]].n_sms) ||
	    (depth > 2 && at[2] >= p->devices[at[0]].n_warps) || (depth > 3 && at[3] >= SIM_LANES))
		return -ERANGE;
	return 0;
}

/* ---- devices, contexts, modules, grids ---- */

/* Read a text; without the key, it stays as it is. */
static int text_key(const struct args *a, const char *key, char *to)
{
	const char *v = arg_value(a, key);

	if (v && strlen(v) >= SIM_NAME_MAX)
		return -ERANGE;
	if (v)
		strcpy(to, v);
	return 0;
}

/* A line has no blanks in its words, and names of devices have no underscores. */
static void blanks(char *name)
{
	for (; *name; name++)
		if (*name == '_')
			*name = ' ';
}

static int cmd_devices(struct sim_process *p, const struct args *a)
{
	struct sim_device d = { .name = "Simulated GPU", .chip = "GH100", .sm = "sm_90" };
	uint64_t n, sms, warps, registers;

	if (arg_number(a, 1, SIM_DEVICES_MAX, &n) || arg_key(a, "sms", 132, SIM_SMS_MAX, &sms) ||
	    arg_key(a, "warps", 64, SIM_WARPS_MAX, &warps) ||
	    arg_key(a, "registers", 255, 255, &registers) || text_key(a, "name", d.name) ||
	    text_key(a, "chip", d.chip) || text_key(a, "sm", d.sm) || !sms || !warps)
		return -EINVAL;
	d.n_sms = (uint32_t)sms;
	d.n_warps = (uint32_t)warps;
	d.n_registers = (uint32_t)registers;
	blanks(d.name);
	return sim_devices_set(p, (uint32_t)n, &d);
}

static int cmd_count(struct sim_process *p, const struct args *a)
{
	out_u64(a->ret, p->n_devices);
	return p->n_devices ? 0 : -ENODEV;
}

static int cmd_context(struct sim_process *p, const struct args *a)
{
	struct sim_context *c;
	uint64_t at[4], tid;
	int r = arg_place(p, a, 1, 1, at);

	if (r || arg_key(a, "tid", (uint64_t)p->pid, UINT32_MAX, &tid))
		return r ? r : -EINVAL;
	c = sim_context_add(p, (uint32_t)at[0], (uint32_t)tid);
	if (!c)
		return -ENOMEM;
	out_hex(a->ret, c->handle);
	return 0;
}

static int cmd_context_destroy(struct sim_process *p, const struct args *a)
{
	uint64_t handle;

	return arg_number(a, 1, UINT64_MAX, &handle) ? -EINVAL : sim_context_remove(p, handle);
}

/* Read a context: its handle, or `last`. */
static int context_arg(struct sim_process *p, const struct args *a, uint64_t *ret)
{
	if (a->n < 2 || strcmp(a->word[1], "last"))
		return arg_number(a, 1, UINT64_MAX, ret);
	if (!p->contexts)
		return -EINVAL;
	for (const struct sim_context *c = p->contexts; c; c = c->next)
		*ret = c->handle;
	return 0;
}

/* Load a module.  The image comes behind the line or from a file. */
static int cmd_module(struct sim_process *p, const struct args *a)
{
	const char *path = arg_value(a, "file");
	auto_free char *data = NULL;
	const void *image = a->blob;
	size_t size = a->blob_size;
	struct sim_module *m;
	uint64_t context;
	int r;

	if (context_arg(p, a, &context))
		return -EINVAL;
	if (path) {
		r = fd_read_file(path, WIRE_FRAME_MAX, &data, &size);
		if (r)
			return r;
		image = data;
	}
	r = image ? sim_module_add(p, context, image, size, arg_value(a, "system"), &m) : -EINVAL;
	if (!r)
		out_hex(a->ret, m->handle);
	return r;
}

static int cmd_module_unload(struct sim_process *p, const struct args *a)
{
	uint64_t handle;

	return arg_number(a, 1, UINT64_MAX, &handle) ? -EINVAL : sim_module_remove(p, handle);
}

static int cmd_function(struct sim_process *p, const struct args *a)
{
	struct sim_function *f;
	struct sim_module *m;
	uint64_t handle;

	if (a->n != 3 || arg_number(a, 1, UINT64_MAX, &handle))
		return -EINVAL;
	f = sim_function_find(p, 0, a->word[2], &m);
	if (!f)
		return -ENOENT;
	out_hex(a->ret, f->handle);
	return 0;
}

/* Find a function of a device by its name. */
static struct sim_function *function_on(struct sim_process *p, uint64_t dev, const char *name,
					struct sim_module **ret)
{
	for (struct sim_module *m = p->modules; m; m = m->next)
		for (size_t i = 0; m->dev == dev && i < m->n_functions; i++)
			if (!strcmp(m->functions[i].name, name)) {
				*ret = m;
				return &m->functions[i];
			}
	return NULL;
}

/* Find a function by its handle; or by its name, on the device that is named or anywhere. */
static struct sim_function *function_arg(struct sim_process *p, const struct args *a,
					 struct sim_module **ret)
{
	uint64_t handle, dev;

	if (a->n < 2 || arg_key(a, "device", UINT64_MAX, UINT32_MAX, &dev))
		return NULL;
	if (!str_to_hex64(a->word[1], &handle))
		return sim_function_find(p, handle, NULL, ret);
	return arg_value(a, "device") ? function_on(p, dev, a->word[1], ret)
				      : sim_function_find(p, 0, a->word[1], ret);
}

/* Read what a launch says of its grid. */
static int grid_keys(struct sim_process *p, const struct args *a, struct sim_grid *g)
{
	uint64_t tid, shared, parent, progress, repeat;
	const char *type = arg_value(a, "type"), *origin = arg_value(a, "origin");

	if (arg_dim(a, "grid", &g->grid) || arg_dim(a, "block", &g->block) ||
	    arg_dim(a, "cluster", &g->cluster) ||
	    arg_key(a, "tid", (uint64_t)p->pid, UINT32_MAX, &tid) ||
	    arg_key(a, "shared", 0, UINT32_MAX, &shared) ||
	    arg_key(a, "parent", 0, UINT64_MAX, &parent) ||
	    arg_key(a, "progress", 0, 1000000, &progress) ||
	    arg_key(a, "repeat", 0, UINT32_MAX, &repeat))
		return -EINVAL;
	g->tid = (uint32_t)tid;
	g->shared = (uint32_t)shared;
	g->parent = parent;
	g->progress = progress;
	g->repeat_ns = repeat * 1000000;
	g->type = type && !strcmp(type, "system") ? CUDBGABI_KNL_TYPE_SYSTEM
						  : CUDBGABI_KNL_TYPE_APPLICATION;
	g->origin = origin && !strcmp(origin, "gpu") ? CUDBGABI_KNL_ORIGIN_GPU
						     : CUDBGABI_KNL_ORIGIN_CPU;
	return 0;
}

/* Set the program counters of the warps that a launch has just placed. */
static int grid_warps(struct sim_process *p, const struct args *a, uint64_t id)
{
	struct sim_grid *g = sim_grid_find(p, id);
	struct sim_device *d = &p->devices[g->dev];
	uint64_t pc, idle, active, spread, loop, n = 0;

	if (arg_key(a, "pc", 0, g->function->size, &pc) ||
	    arg_key(a, "idle", pc, g->function->size, &idle) ||
	    arg_key(a, "active", UINT32_MAX, UINT32_MAX, &active) ||
	    arg_key(a, "spread", 1, 1 << 20, &spread) || !spread ||
	    arg_key(a, "loop", 0, g->function->size - pc, &loop))
		return -EINVAL;
	g->loop_at = g->function->address + pc;
	g->loop_size = loop;
	for (size_t i = 0; i < (size_t)d->n_sms * d->n_warps; i++) {
		struct sim_warp *w = &d->warps[i];

		if (w->grid != g)
			continue;
		w->active &= (uint32_t)active;
		w->pc = g->function->address + pc + n++ % spread * SIM_INSTRUCTION;
		w->idle_pc = g->function->address + idle;
	}
	return 0;
}

/* Lay out what a kernel is launched with, where its cubin says; zeros if the script does not say it. */
static int grid_params(struct sim_process *p, const struct args *a, struct sim_grid *g)
{
	static uint8_t bytes[PASSED_MAX];
	const char *text = arg_value(a, "args");
	size_t size = 0;
	int r = text ? passed_encode(text, bytes, &size) : 0;

	if (r)
		return r;
	if (size > g->function->params_size)
		return -E2BIG;
	if (!g->function->params_size)
		return 0;
	g->params = calloc(1, sizeof(*g->params) + g->function->params_size);
	if (!g->params)
		return -ENOMEM;
	*g->params = (struct sim_params){ .next = p->params, .address = g->function->params_at,
					  .size = g->function->params_size };
	memcpy(g->params->bytes, bytes, size);
	p->params = g->params;
	return 0;
}

static int cmd_launch(struct sim_process *p, const struct args *a)
{
	struct sim_grid g = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	uint64_t sm, id;
	int r;

	g.function = function_arg(p, a, &g.module);
	if (!g.function)
		return -ENOENT;
	g.dev = g.module->dev;
	g.context = g.module->context;
	if (grid_keys(p, a, &g) || arg_key(a, "at", 0, SIM_SMS_MAX, &sm))
		return -EINVAL;
	r = grid_params(p, a, &g);
	if (!r)
		r = sim_grid_launch(p, &g, (uint32_t)sm, &id);
	if (!r)
		r = grid_warps(p, a, id);
	if (!r)
		out_u64(a->ret, id);
	return r;
}

static int cmd_finish(struct sim_process *p, const struct args *a)
{
	uint64_t id;

	return arg_number(a, 1, UINT64_MAX, &id) ? -EINVAL : sim_grid_finish(p, id);
}

static int cmd_place(struct sim_process *p, const struct args *a)
{
	uint64_t id, block, sm;

	if (arg_number(a, 1, UINT64_MAX, &id) || arg_number(a, 2, UINT64_MAX, &block) ||
	    arg_number(a, 3, SIM_SMS_MAX, &sm))
		return -EINVAL;
	return sim_grid_place(p, id, block, (uint32_t)sm);
}

static int cmd_nothing(struct sim_process *p, const struct args *a)
{
	return 0;
}

static int cmd_run(struct sim_process *p, const struct args *a);

static const struct command place_commands[] = {
	{ "devices", cmd_devices, "N [sms=] [warps=] [registers=] [name=] [chip=] [sm=]" },
	{ "count", cmd_count, "devices; the answer is the number" },
	{ "context", cmd_context, "DEVICE [tid=]: answers its handle" },
	{ "context-destroy", cmd_context_destroy, "CONTEXT" },
	{ "module", cmd_module, "CONTEXT|last file=PATH [system=1]: answers its handle" },
	{ "module-unload", cmd_module_unload, "MODULE" },
	{ "function", cmd_function, "MODULE NAME: answers its handle" },
	{ "launch", cmd_launch,
	  "FUNCTION [device=N] [grid=X,Y,Z] [block=] [cluster=] [tid=] [shared=] [at=SM] [pc=] "
	  "[idle=]\n"
	  "             [active=MASK] [spread=N] [progress=N] [loop=BYTES] [repeat=MS]\n"
	  "             [args=p:ADDRESS,i:N,f:N,...]\n"
	  "             [parent=] [type=system] [origin=gpu]" },
	{ "place", cmd_place, "GRID BLOCK SM: one that had no room" },
	{ "finish", cmd_finish, "GRID" },
	{ "nothing", cmd_nothing, "" },
	{ "run", cmd_run, "FILE: commands from a file" },
	{ NULL },
};

/* ---- running lines ---- */

static const struct command *const tables[] = { place_commands, plant_commands, wish_commands };

/* Run one command, from whichever table has it. */
static int run_line(struct sim_process *p, char *line, const void *blob, size_t size,
		    struct out *ret)
{
	struct args a = { .blob = blob, .blob_size = size, .ret = ret };
	char *save = NULL;

	for (char *t = strtok_r(line, " \t", &save); t; t = strtok_r(NULL, " \t", &save)) {
		if (a.n == ARGS_MAX)
			return -E2BIG;
		a.word[a.n++] = t;
	}
	if (!a.n || *a.word[0] == '#')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct command *c = tables[i]; c->name; c++)
			if (!strcmp(c->name, a.word[0]))
				return c->run(p, &a);
	return -EINVAL;
}

int command_run(struct sim_process *p, const char *text, const void *blob, size_t size,
		struct out *ret)
{
	auto_free char *copy = strdup(text);
	auto_out struct out own = { 0 };
	char *save = NULL;
	int r = 0;

	if (!copy)
		return -ENOMEM;
	out_init(&own, 4096);
	if (!ret)
		ret = &own;
	for (char *l = strtok_r(copy, ";\n", &save); l && !r; l = strtok_r(NULL, ";\n", &save)) {
		char shown[128];

		str_copy(shown, sizeof(shown), l);
		out_reset(ret);
		r = run_line(p, l, blob, size, ret);
		if (r) {
			out_reset(ret);
			out_fmt(ret, "'%s': %s", shown, strerror(-r));
		}
	}
	return r;
}

static int cmd_run(struct sim_process *p, const struct args *a)
{
	auto_free char *text = NULL;
	static int depth;
	size_t size;
	int r;

	/* Scripts may run scripts, but not themselves for ever. */
	if (a->n != 2 || depth == 4)
		return -EINVAL;
	r = fd_read_file(a->word[1], TEXT_MAX, &text, &size);
	if (r)
		return r;
	depth++;
	r = command_run(p, text, NULL, 0, a->ret);
	depth--;
	return r;
}

void command_help(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct command *c = tables[i]; c->name; c++)
			printf("  %-16s %s\n", c->name, c->help);
}
