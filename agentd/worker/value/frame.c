/* SPDX-License-Identifier: MIT */
#include "agentd/worker/value/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/worker/snapshot/code.h"
#include "agentd/worker/value/registers.h"
#include "base/cleanup.h"
#include "symbols/debug_info.h"
#include "values/expression/expression.h"
#include "values/global.h"

#define DEPTH_MAX 66u /* Callers and the innermost frame. */

/* The one of the innermost block hides others of its name. */
const struct values_variable *value_frame_pick(const struct value_frame *f, const char *name)
{
	const struct values_scope *s = f->scope;
	const struct values_variable *found = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct values_variable *v = &s->items[i];

		if (v->name && !strcmp(v->name, name) && (!found || v->block > found->block))
			found = v;
	}
	return found;
}

/* A name outside of functions that was looked for, and what came of it. */
struct global_name {
	struct global_name *next;
	const char *name;
	size_t place; /* Lanes that are elsewhere are in other functions, which see others. */
	int result;
	struct values_variable variable;
};

/* Each search reads much, and lanes and members ask for the same names.  All of it is in the arena. */
struct value_globals {
	struct global_name *list;
};

static int search_global(struct value_frame *f, const char *name, struct values_variable *ret)
{
	int r;

	if (value_request_is_late(f->request))
		return -ETIMEDOUT;
	r = values_global_find(values_image_debug_info(f->image), f->scope, name, ret);
	if (r == -E2BIG)
		value_request_miss(f->request, "variables: there are too many outside of functions to know all "
					       "their names");
	return r == 0 || r == -ENOTUNIQ ? r : -ENOENT;
}

int value_frame_find_global(struct value_frame *f, const char *name, struct values_variable *ret)
{
	struct rpc_arena *a = f->request->arena;
	struct global_name *g = f->globals ? f->globals->list : NULL;

	if (!f->image || !f->globals)
		return -ENOENT;
	while (g && (g->place != f->place || strcmp(g->name, name)))
		g = g->next;
	if (!g) {
		g = rpc_arena_alloc(a, sizeof(*g));
		if (!g)
			return -ENOMEM;
		*g = (struct global_name){ .name = rpc_arena_strdup(a, name), .place = f->place };
		if (!g->name)
			return -ENOMEM;
		g->result = search_global(f, name, &g->variable);
		g->next = f->globals->list;
		f->globals->list = g;
	}
	*ret = g->variable;
	return g->result;
}

bool value_frame_is_named(struct value_frame *f, const struct values_variable *v)
{
	if (!v->name || !values_expression_is_name(v->name) || f->request->names_left < f->scope->n)
		return false;
	f->request->names_left -= (uint32_t)f->scope->n;
	return value_frame_pick(f, v->name) == v;
}

bool value_frame_is_active(const struct value_frame *f)
{
	return f->request->registers.wave.exec >> f->frame->lane & 1;
}

/* The walk from the innermost frame to the wanted one. */
struct walk {
	struct value_request *k;
	struct value_frame found;
	struct code_set code;
	struct values_frame *frames; /* DEPTH_MAX of them, by calls. */
	uint32_t left;		     /* Levels that are still to be passed. */
	value_use_frame *use;
	void *context;
};

static int read_register(void *context, uint32_t lane, enum values_file file, uint32_t number, uint32_t *ret)
{
	const struct value_request *k = context;

	return value_registers_read(&k->registers, lane, file, number, ret);
}

static void machine_init(struct values_machine *m, struct value_request *k)
{
	*m = (struct values_machine){ .context = k, .read_register = read_register, .read_memory = value_memory_read,
				      .lanes = k->registers.wave.width };
	for (size_t i = 0; i < k->from.n_devices; i++)
		if (k->from.devices[i].rpc.gpu_id == k->registers.wave.gpu_id &&
		    k->from.devices[i].rpc.has_gfx_target_version)
			m->stack_counts_waves =
				values_stack_counts_waves(k->from.devices[i].rpc.gfx_target_version);
}

static int use_frame(struct value_frame *f, struct symbols_image *symbols, value_use_frame *use, void *context)
{
	int r = values_types_create(symbols ? symbols_image_debug_info(symbols) : NULL, &f->types);

	if (r < 0)
		return r;
	r = use(context, f);
	if (f->scope->cut || values_types_is_cut(f->types))
		value_request_miss(f->request, "variables: there are more, or parts of their types, than are looked at");
	values_types_destroy(f->types);
	f->types = NULL;
	return r;
}

/* It is found: do what was asked for in it. */
static int arrive(struct walk *w, struct values_image *image, const struct values_scope *s,
		  const struct values_frame *f, uint64_t address)
{
	struct value_request *k = w->k;
	int r;

	k->pc = address;
	k->function = s->function ? rpc_arena_strdup(k->arena, s->function) : NULL;
	w->found.image = image;
	w->found.globals = rpc_arena_array(w->k->arena, 1, sizeof(*w->found.globals));
	if (!w->found.globals)
		return -ENOMEM;
	w->found.globals->list = NULL;
	w->found.scope = s;
	w->found.frame = f;
	w->found.address = address;
	r = use_frame(&w->found, w->code.image, w->use, w->context);
	return r < 0 ? r : 1;
}

/* @return 1 when the wanted level was found there, 0 when it is further out, negative at the end. */
static int enter_frame(struct walk *w, uint32_t call)
{
	struct value_request *k = w->k;
	struct values_frame *f = &w->frames[call];
	uint64_t address = value_request_address(k, k->lane, call), lookup = address - !!call;
	struct code_object *o = code_find(&w->code, lookup);
	struct values_image *image;
	struct values_scope s;
	int r = -ENOENT;

	if (!o || code_open(&w->code, o) < 0 || values_image_open(w->code.image, &image) < 0)
		return -ENOENT;
	*f = (struct values_frame){ .machine = &w->found.machine, .lane = k->lane, .pc = address - o->bias,
				    .load_bias = o->bias, .callee = call ? &w->frames[call - 1] : NULL };
	for (uint32_t inlined = 0;; inlined++, w->left--) {
		r = values_scope_find(image, values_frame_lookup(f), inlined, &s);
		if (r < 0)
			break;
		if (!inlined)
			values_image_enter(image, &s, f);
		if (!w->left) {
			r = arrive(w, image, &s, f, address);
			values_scope_deinit(&s);
			break;
		}
		values_scope_deinit(&s);
	}
	values_scope_deinit(&s);
	/* Names of the frame lie in the image. */
	f->registers = NULL;
	f->function = NULL;
	return r == -ENOENT && f->is_cuda ? 0 : r;
}

static int find_frame(struct walk *w)
{
	int r = 0;

	for (uint32_t calls = 0; r == 0; calls++) {
		if (calls > w->k->registers.n_callers || calls == DEPTH_MAX)
			return -ENOENT;
		r = enter_frame(w, calls);
	}
	return r < 0 ? r : 0;
}

int value_frame_find(struct value_request *k, uint32_t look_up_ms, value_use_frame *use, void *context,
		     bool *ret_unknown, struct agent_err *err)
{
	auto_free struct values_frame *frames = calloc(DEPTH_MAX, sizeof(*frames));
	struct walk w = { .k = k, .frames = frames, .left = k->frame, .use = use, .context = context,
			  .found = { .request = k } };
	int r = frames ? code_set_init(&w.code, k->target, k->arena, look_up_ms) : -ENOMEM;

	machine_init(&w.found.machine, k);
	if (r == 0)
		r = find_frame(&w);
	code_set_deinit(&w.code);
	*ret_unknown = r == -ENOENT;
	if (r == -ENOENT && k->frame)
		return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, ENOENT, NULL, NULL,
				     "params.frame: nothing is known of that many frames of this lane");
	if (r == -ENOENT) {
		value_request_miss(k, "variables: there is no debug information that names those of this code");
		k->pc = value_request_address(k, k->lane, 0);
		return 0;
	}
	return r < 0 ? agent_err_no_memory(err, NULL) : 0;
}

int value_frame_make(struct value_request *k, value_use_frame *use, void *context)
{
	const struct values_scope none = { 0 };
	struct value_frame found = { .request = k, .scope = &none };
	const struct values_frame f = { .machine = &found.machine, .lane = k->lane };

	machine_init(&found.machine, k);
	found.frame = &f;
	found.address = k->pc;
	return use_frame(&found, NULL, use, context);
}
