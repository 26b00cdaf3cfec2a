/* SPDX-License-Identifier: MIT */
/* Script commands that put values into warps, registers, memory and call stacks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "command.h"

/* Bytes of the largest region of memory. */
#define REGION_MAX ((uint64_t)16 << 20)

/* The warp that words 1 to 3 name; NULL if none is resident there. */
static struct sim_warp *warp_arg(struct sim_process *p, const struct args *a, uint64_t at[4])
{
	struct sim_warp *w;

	if (arg_place(p, a, 1, 3, at))
		return NULL;
	w = sim_warp_at(p, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2]);
	return w->grid ? w : NULL;
}

/* Change one warp. */
static int plant_warp(struct sim_process *p, const struct args *a, uint32_t dev, uint32_t sm, struct sim_warp *w)
{
	uint64_t pc, idle, apart, active, valid, syscall, barrier, base = w->grid->function->address;
	const char *in = arg_value(a, "in");
	struct sim_module *module;
	const struct sim_function *function = in ? sim_function_find(p, 0, in, &module) : NULL;
	struct sim_dim target = { 0 };

	/* Called by the kernel: its own function need not be the one that it is in. */
	if (in && !function)
		return -ENOENT;
	if (function)
		base = w->pc = w->idle_pc = function->address;
	if (arg_key(a, "pc", w->pc - base, UINT32_MAX, &pc) ||
	    arg_key(a, "idle", w->idle_pc - base, UINT32_MAX, &idle) ||
	    arg_key(a, "apart", w->apart, 4096, &apart) ||
	    arg_key(a, "active", w->active, UINT32_MAX, &active) ||
	    arg_key(a, "valid", w->valid, UINT32_MAX, &valid) ||
	    arg_key(a, "syscall", w->in_syscall, UINT32_MAX, &syscall) ||
	    arg_key(a, "barrier", w->barrier, 5, &barrier) || arg_dim(a, "target", &target))
		return -EINVAL;
	w->pc = base + pc;
	w->idle_pc = base + idle;
	w->apart = apart;
	w->valid = (uint32_t)valid;
	w->active = (uint32_t)active & w->valid;
	w->in_syscall = (uint32_t)syscall;
	w->barrier = (uint32_t)barrier;
	if (arg_value(a, "target")) {
		w->target_block = target;
		w->target_valid = true;
	}
	/* Without lanes it has exited. */
	if (!valid)
		memset(w, 0, sizeof(*w));
	sim_warp_touch(p, dev, sm, w);
	return 0;
}

/* One warp, or so many of so many SMs from there on, as far as they are resident. */
static int cmd_warp(struct sim_process *p, const struct args *a)
{
	uint64_t at[4], sms, warps;
	int r = warp_arg(p, a, at) ? 0 : -ENOENT;
	const struct sim_device *d = r ? NULL : &p->devices[at[0]];

	if (!r && (arg_key(a, "sms", 1, d->n_sms - at[1], &sms) || arg_key(a, "warps", 1, d->n_warps - at[2], &warps)))
		r = -EINVAL;
	for (uint64_t sm = 0; !r && sm < sms; sm++)
		for (uint64_t i = 0; !r && i < warps; i++) {
			uint32_t dev = (uint32_t)at[0], on = (uint32_t)(at[1] + sm);
			struct sim_warp *w = sim_warp_at(p, dev, on, (uint32_t)(at[2] + i));

			if (w->grid)
				r = plant_warp(p, a, dev, on, w);
		}
	return r;
}

/* ---- convergence barriers ---- */

/* A list of LANES:STATE; lanes that no pair names have exited. */
static int lane_states(const struct args *a, struct cudbgabi_cbu_warp_state *s)
{
	for (int i = 4; i < a->n && !strchr(a->word[i], '='); i++) {
		char *end;
		unsigned long long lanes = strtoull(a->word[i], &end, 0), state;

		if (end == a->word[i] || *end != ':' || lanes > UINT32_MAX)
			return -EINVAL;
		state = strtoull(end + 1, &end, 0);
		if (*end || state > UINT32_MAX)
			return -EINVAL;
		for (uint32_t lane = 0; lane < SIM_LANES; lane++)
			if (lanes >> lane & 1)
				s->thread_state[lane] = (uint32_t)state;
	}
	return 0;
}

/* What the driver says of the convergence barriers of a warp, however little of it fits together. */
static int cmd_convergence(struct sim_process *p, const struct args *a)
{
	uint64_t at[4], active, exited, collective, mask;
	const struct sim_warp *w = warp_arg(p, a, at);
	struct sim_convergence *s;
	char name[8];
	int r;

	if (!w)
		return -ENOENT;
	if (arg_key(a, "active", w->active, UINT32_MAX, &active) || arg_key(a, "exited", (uint32_t)~w->valid, UINT32_MAX, &exited) ||
	    arg_key(a, "collective", 0, UINT32_MAX, &collective))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct sim_convergence){ .dev = (uint32_t)at[0], .sm = (uint32_t)at[1], .warp = (uint32_t)at[2],
				       .state = { .active = (uint32_t)active, .exited = (uint32_t)exited,
						  .collective = (uint32_t)collective } };
	r = lane_states(a, &s->state);
	for (uint32_t i = 0; !r && i < CUDBGABI_MAX_WARP_BARRIERS; i++) {
		snprintf(name, sizeof(name), "b%u", i);
		r = arg_key(a, name, 0, UINT32_MAX, &mask);
		s->state.barrier_masks[i] = (uint32_t)mask;
	}
	if (r) {
		free(s);
		return r;
	}
	s->next = p->convergences;
	p->convergences = s;
	return 0;
}

/* ---- registers ---- */

/* Plant a register: the place, its number and its value; of so many SMs, warps and lanes from there on. */
static int plant_register(struct sim_process *p, const struct args *a, enum sim_register kind,
			  int depth)
{
	uint64_t at[4] = { 0 }, number, value, sms, warps, lanes = 1;
	int r = arg_place(p, a, 1, depth, at);
	const struct sim_device *d = r ? NULL : &p->devices[at[0]];

	if (r)
		return r;
	if (arg_number(a, depth + 1, 255, &number) || arg_number(a, depth + 2, UINT32_MAX, &value) ||
	    arg_key(a, "sms", 1, d->n_sms - at[1], &sms) || arg_key(a, "warps", 1, d->n_warps - at[2], &warps) ||
	    (depth == 4 && arg_key(a, "lanes", 1, SIM_LANES - at[3], &lanes)))
		return -EINVAL;
	if (!sms || !warps || !lanes)
		return 0;
	if (sms * warps * lanes == 1)
		return sim_register_set(p, kind, at, (uint32_t)number, (uint32_t)value);
	return sim_registers_plant(p, &(struct sim_planted){
					      .kind = kind, .dev = (uint32_t)at[0], .sm = (uint32_t)at[1],
					      .warp = (uint32_t)at[2], .lane = (uint32_t)at[3],
					      .number = (uint32_t)number, .value = (uint32_t)value,
					      .sms = (uint32_t)sms, .warps = (uint32_t)warps,
					      .lanes = (uint32_t)lanes });
}

static int cmd_register(struct sim_process *p, const struct args *a)
{
	return plant_register(p, a, REG_NORMAL, 4);
}
static int cmd_uniform(struct sim_process *p, const struct args *a)
{
	return plant_register(p, a, REG_UNIFORM, 3);
}
static int cmd_predicate(struct sim_process *p, const struct args *a)
{
	return plant_register(p, a, REG_PREDICATES, 4);
}
static int cmd_uniform_predicate(struct sim_process *p, const struct args *a)
{
	return plant_register(p, a, REG_UNIFORM_PREDICATES, 3);
}

/* ---- memory ---- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode pairs of hexadecimal digits. */
static int bytes_hex(const char *hex, uint8_t *to)
{
	for (; *hex; hex += 2) {
		int high = hex_digit(hex[0]), low = high < 0 ? -1 : hex_digit(hex[1]);

		if (low < 0)
			return -EINVAL;
		*to++ = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* Make the bytes of a region: hex=BYTES, or size=N [fill=BYTE]. */
static int region_bytes(const struct args *a, struct sim_region *g)
{
	const char *hex = arg_value(a, "hex");
	uint64_t fill;

	if (arg_key(a, "size", hex ? strlen(hex) / 2 : 0, REGION_MAX, &g->size) ||
	    arg_key(a, "fill", 0, 255, &fill) || !g->size || (hex && strlen(hex) > g->size * 2))
		return -EINVAL;
	g->bytes = malloc(g->size);
	if (!g->bytes)
		return -ENOMEM;
	memset(g->bytes, (int)fill, g->size);
	return hex ? bytes_hex(hex, g->bytes) : 0;
}

/* Read the place of a region, so many SMs further on; a warp there stands for its block or grid. */
static int region_place(struct sim_process *p, const struct args *a, int depth, uint64_t further,
			struct sim_region *g)
{
	uint64_t at[4];
	int r = arg_place(p, a, 2, depth, at);
	const struct sim_warp *w;

	if (!r && further >= p->devices[at[0]].n_sms - at[1])
		r = -ERANGE;
	if (r)
		return r;
	g->dev = (uint32_t)at[0];
	g->sm = (uint32_t)(at[1] + further);
	g->warp = (uint32_t)at[2];
	g->lane = (uint32_t)at[3];
	if (g->space != SPACE_SHARED && g->space != SPACE_PARAM)
		return 0;
	w = sim_warp_at(p, g->dev, g->sm, g->warp);
	if (!w->grid)
		return -ENOENT;
	g->grid = w->grid->id;
	g->block = w->block;
	return 0;
}

static int plant_region(struct sim_process *p, const struct args *a, int depth, uint64_t further, struct sim_region g)
{
	int r = depth ? region_place(p, a, depth, further, &g) : 0;

	if (!r)
		r = region_bytes(a, &g);
	if (!r)
		r = sim_region_add(p, &g);
	if (r)
		free(g.bytes);
	return r;
}

static int cmd_memory(struct sim_process *p, const struct args *a)
{
	static const struct {
		const char *name;
		int depth;
	} spaces[SPACE_COUNT] = { { "global", 0 }, { "shared", 3 }, { "local", 4 },
				  { "param", 3 },  { "const", 1 },  { "pinned", 0 } };
	struct sim_region g = { .space = SPACE_COUNT };
	uint64_t sms;
	int depth = 0, r = 0;

	for (size_t i = 0; a->n > 1 && i < SPACE_COUNT; i++)
		if (!strcmp(spaces[i].name, a->word[1])) {
			g.space = (enum sim_space)i;
			depth = spaces[i].depth;
		}
	if (g.space == SPACE_COUNT || arg_number(a, 2 + depth, UINT64_MAX - REGION_MAX, &g.address))
		return -EINVAL;
	g.managed = arg_value(a, "managed");
	if (arg_key(a, "sms", 1, g.space == SPACE_SHARED ? SIM_SMS_MAX : 1, &sms))
		return -EINVAL;
	for (uint64_t i = 0; !r && i < sms; i++)
		r = plant_region(p, a, depth, i, g);
	return r;
}

/* Allocate global memory as a program does: CONTEXT SIZE. */
static int cmd_alloc(struct sim_process *p, const struct args *a)
{
	struct sim_region g = { .space = SPACE_GLOBAL };
	uint64_t context;
	int r;

	if (arg_number(a, 1, UINT64_MAX, &context) || arg_number(a, 2, REGION_MAX, &g.size) ||
	    !g.size)
		return -EINVAL;
	g.bytes = calloc(1, g.size);
	if (!g.bytes)
		return -ENOMEM;
	g.address = p->next_alloc;
	r = sim_region_add(p, &g);
	if (r) {
		free(g.bytes);
		return r;
	}
	p->next_alloc += (g.size + 0xfff) & ~UINT64_C(0xfff);
	out_hex(a->ret, g.address);
	return 0;
}

static int cmd_free(struct sim_process *p, const struct args *a)
{
	uint64_t address;

	if (arg_number(a, 1, UINT64_MAX, &address))
		return -EINVAL;
	for (struct sim_region **at = &p->regions; *at; at = &(*at)->next) {
		struct sim_region *g = *at;

		if (g->space != SPACE_GLOBAL || g->address != address)
			continue;
		*at = g->next;
		free(g->bytes);
		free(g);
		return 0;
	}
	return -ENOENT;
}

static int cmd_write(struct sim_process *p, const struct args *a)
{
	static const uint64_t nowhere[4];
	struct sim_region *g;
	uint64_t address;

	if (arg_number(a, 1, UINT64_MAX, &address))
		return -EINVAL;
	g = sim_region_find(p, SPACE_GLOBAL, nowhere, address, a->blob_size);
	if (!g)
		return -ENOENT;
	if (a->blob_size)
		memcpy(g->bytes + (address - g->address), a->blob, a->blob_size);
	return 0;
}

/* ---- call stacks ---- */

/* Plant a call stack: offsets from the start of the warp's kernel, innermost first. */
static int cmd_stack(struct sim_process *p, const struct args *a)
{
	uint64_t at[4], lanes, syscall, offset;
	struct sim_warp *w = warp_arg(p, a, at);
	struct sim_stack *s;

	if (!w)
		return -ENOENT;
	if (arg_number(a, 4, UINT32_MAX, &lanes) ||
	    arg_key(a, "syscall", 0, SIM_STACK_MAX, &syscall))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct sim_stack){ p->stacks, (uint32_t)at[0], (uint32_t)at[1], (uint32_t)at[2],
				 (uint32_t)lanes };
	s->syscall_depth = (uint32_t)syscall;
	p->stacks = s;
	for (int i = 5; i < a->n && !strchr(a->word[i], '='); i++) {
		if (s->depth == SIM_STACK_MAX || arg_number(a, i, UINT32_MAX, &offset))
			return -EINVAL;
		s->address[s->depth++] = w->grid->function->address + offset;
	}
	return 0;
}

/* ---- exceptions ---- */

static int cmd_raise(struct sim_process *p, const struct args *a)
{
	uint64_t at[4], code, lanes, error_pc;
	struct sim_warp *w = warp_arg(p, a, at);

	if (!w)
		return -ENOENT;
	if (arg_number(a, 4, UINT32_MAX, &code) ||
	    arg_key(a, "lanes", UINT32_MAX, UINT32_MAX, &lanes) ||
	    arg_key(a, "errorpc", UINT32_MAX, UINT32_MAX, &error_pc))
		return -EINVAL;
	if (error_pc == UINT32_MAX)
		error_pc = 0;
	else
		error_pc += w->grid->function->address;
	return sim_raise(p, at, (uint32_t)lanes, (uint32_t)code, error_pc);
}

static int cmd_raise_sm(struct sim_process *p, const struct args *a)
{
	uint64_t at[4], code, error_pc;
	int r = arg_place(p, a, 1, 2, at);

	if (r || arg_number(a, 3, UINT32_MAX, &code) ||
	    arg_key(a, "errorpc", 0, UINT64_MAX, &error_pc))
		return r ? r : -EINVAL;
	p->devices[at[0]].sm_exception[at[1]] = (uint32_t)code;
	p->devices[at[0]].sm_error_pc[at[1]] = error_pc;
	p->devices[at[0]].sm_changed[at[1]] = true;
	sim_stop(p);
	return 0;
}

static int cmd_raise_device(struct sim_process *p, const struct args *a)
{
	uint64_t at[4], code;
	int r = arg_place(p, a, 1, 1, at);

	if (r || arg_number(a, 2, UINT32_MAX, &code))
		return r ? r : -EINVAL;
	p->devices[at[0]].exception = (uint32_t)code;
	sim_stop(p);
	return 0;
}

static int cmd_log(struct sim_process *p, const struct args *a)
{
	struct sim_log **at = &p->logs, *l;
	uint64_t level;

	if (a->n < 3 || arg_number(a, 1, 1, &level))
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->level = (uint32_t)level;
	l->tid = (uint32_t)p->pid;
	l->time_ns = p->sim->os->now_ns();
	str_copy(l->text, sizeof(l->text), a->word[2]);
	while (*at)
		at = &(*at)->next;
	*at = l;
	/* The debugger hears of messages if it said that it understands them. */
	if (sim_events_wanted(p) && p->capabilities & CUDBGABI_CAPABILITY_CUDA_LOGS) {
		sim_queue_push(&p->async, CUDBGABI_EVENT_CUDA_LOGS_AVAILABLE, NULL, 0);
		sim_events_announce(p, CUDBGABI_NO_TID);
	}
	return 0;
}

const struct command plant_commands[] = {
	{ "warp", cmd_warp,
	  "DEVICE SM WARP [sms=N] [warps=N] [in=FUNCTION] [pc=] [idle=] [apart=] [active=] "
	  "[valid=MASK; 0: exited] [syscall=MASK] [barrier=] "
	  "[target=X,Y,Z]" },
	{ "convergence", cmd_convergence,
	  "DEVICE SM WARP LANES:STATE... [active=MASK] [exited=MASK] [collective=MASK]\n"
	  "             [b0=MASK ... b15=MASK]: what getCbuWarpState says" },
	{ "register", cmd_register, "DEVICE SM WARP LANE NUMBER VALUE [sms=] [warps=] [lanes=]" },
	{ "uniform", cmd_uniform, "DEVICE SM WARP NUMBER VALUE [sms=] [warps=]" },
	{ "predicate", cmd_predicate, "DEVICE SM WARP LANE NUMBER VALUE" },
	{ "uniform-predicate", cmd_uniform_predicate, "DEVICE SM WARP NUMBER VALUE" },
	{ "memory", cmd_memory,
	  "global ADDRESS|shared D S W ADDRESS|local D S W L ADDRESS|param D S W ADDRESS|const D "
	  "ADDRESS|\n"
	  "             pinned ADDRESS, then hex=BYTES or size=N [fill=BYTE] [managed=1] [sms=N: shared]" },
	{ "alloc", cmd_alloc, "CONTEXT SIZE: answers the address" },
	{ "free", cmd_free, "ADDRESS" },
	{ "write", cmd_write, "ADDRESS: the bytes behind the line" },
	{ "stack", cmd_stack,
	  "DEVICE SM WARP LANES OFFSET... [syscall=N]: return addresses, innermost first" },
	{ "raise", cmd_raise, "DEVICE SM WARP CODE [lanes=MASK] [errorpc=OFFSET]" },
	{ "raise-sm", cmd_raise_sm, "DEVICE SM CODE [errorpc=ADDRESS]" },
	{ "raise-device", cmd_raise_device, "DEVICE CODE" },
	{ "log", cmd_log, "LEVEL WORD" },
	{ NULL },
};
