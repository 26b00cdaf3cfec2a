/* SPDX-License-Identifier: MIT */
/*
 * What opened scopes hold.  Large scopes are opened in chunks, so that only what is looked at is
 * read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "dap/adapter.h"

/* Bytes of LDS in a chunk, and in a row of it. */
#define LDS_CHUNK 1024u
#define LDS_ROW	  16u
/* Most arguments in the name of a frame. */
#define ARGUMENTS_IN_NAME 16u

/* Which of a scope's variables are wanted, and how many were seen. */
struct page {
	struct dap *d;
	struct out *o;
	uint64_t start, count; /* A count of 0 stands for all. */
	uint64_t at;
};

/*
 * Append one variable, if it is wanted.
 * @param type    NULL for none.
 * @param ref     Reference to what is in it; 0: it cannot be opened.
 * @param memory  Address of the memory to show for it; NULL for none.
 */
static void put_full(struct page *p, const char *name, const char *value, const char *type,
		     uint32_t ref, const char *memory)
{
	uint64_t at = p->at++;
	struct out *o = p->o;

	if (at < p->start || (p->count && at - p->start >= p->count))
		return;
	out_json_fmt(o, ",{'name':%s,'value':%s", name, value);
	if (type && p->d->client_type)
		out_json_fmt(o, ",'type':%s", type);
	out_json_fmt(o, ",'variablesReference':%u", ref);
	if (memory)
		out_json_fmt(o, ",'memoryReference':%s", memory);
	out_char(o, '}');
}

/* Append a variable that can never be set. */
static void put_read_only(struct page *p, const char *name, const char *value, const char *type)
{
	uint64_t at = p->at++;
	struct out *o = p->o;

	if (at < p->start || (p->count && at - p->start >= p->count))
		return;
	out_json_fmt(o, ",{'name':%s,'value':%s", name, value);
	if (type && p->d->client_type)
		out_json_fmt(o, ",'type':%s", type);
	out_json_fmt(o, ",'variablesReference':0,'presentationHint':{'attributes':['readOnly']}}");
}

/* Append a variable that is a text. */
static void put(struct page *p, const char *name, const char *value)
{
	put_full(p, name, value, NULL, 0, NULL);
}

__attribute__((format(printf, 3, 4))) static void put_fmt(struct page *p, const char *name,
							   const char *fmt, ...)
{
	auto_out struct out o = { 0 };
	va_list ap;

	va_start(ap, fmt);
	out_vfmt(&o, fmt, ap);
	va_end(ap);
	put(p, name, o.data ? o.data : "");
}

/* Three coordinates as text. */
static const char *triple(struct rpc_arena *a, const uint32_t *v, size_t n)
{
	return n == 3 ? rpc_arena_printf(a, "(%u, %u, %u)", v[0], v[1], v[2]) : "unknown";
}

/* Append scalar registers; one of 64 bits may be an address, which can be opened as memory. */
static void put_scalars(struct page *p, const struct rpc_scalar_register *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = rpc_arena_printf(&p->d->arena, "0x%0*" PRIx64,
						     list[i].bits == 64 ? 16 : 8, list[i].value);

		put_full(p, list[i].name, value, list[i].bits == 64 ? "u64" : "u32", 0,
			 list[i].bits == 64 ? value : NULL);
	}
}

/* ------------------------------------------------------------------ arguments ---------------- */

/* The value, or why it is not known. */
static const char *value_text(struct rpc_arena *a, const struct rpc_argument *v)
{
	const char *state = rpc_enum_name(&rpc_value_state_enum, v->state);

	return v->value ? v->value : rpc_arena_printf(a, "<%s>", state ? state : "unknown");
}

bool dap_has_arguments(const struct dap_thread *t)
{
	const struct rpc_wave_ref *r = &t->place->representative;

	return t->place->has_arguments && r->queue_id == t->wave.queue_id &&
	       r->has_dispatch && t->wave.has_dispatch && r->dispatch == t->wave.dispatch;
}

void dap_put_arguments(struct out *o, const struct rpc_group *g)
{
	out_char(o, '(');
	for (size_t i = 0; i < g->n_arguments && i < ARGUMENTS_IN_NAME; i++) {
		const struct rpc_argument *v = &g->arguments[i];
		const char *state = rpc_enum_name(&rpc_value_state_enum, v->state);

		out_fmt(o, "%s%s=", i ? ", " : "", v->name);
		if (v->value)
			out_str(o, v->value);
		else
			out_fmt(o, "<%s>", state ? state : "unknown");
	}
	out_str(o, g->n_arguments > ARGUMENTS_IN_NAME ? ", ...)" : ")");
}

/* What the kernel was launched with: the program may have changed it, but nobody can now. */
static int arguments(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct dap_thread *t = &ref->snap->threads[ref->thread];
	const struct rpc_group *g = t->place;

	(void)err;
	for (size_t i = 0; dap_has_arguments(t) && i < g->n_arguments; i++) {
		const struct rpc_argument *v = &g->arguments[i];
		const char *value = value_text(&p->d->arena, v);

		put_read_only(p, v->name, value ? value : "", v->type);
	}
	return 0;
}

/* ------------------------------------------------------------------ wave --------------------- */

/* What the wave does and works on. */
static int wave(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	struct dap *d = p->d;
	const struct dap_thread *t = &ref->snap->threads[ref->thread];
	const struct rpc_wave_registers *r = dap_registers_shared(d, ref, err);
	const struct rpc_wave *w;

	if (!r)
		return -EIO;
	w = &r->wave;
	put(p, "wave", dap_wave_text(&d->arena, &t->wave));
	put(p, "state", rpc_enum_name(&rpc_wave_state_enum, w->state));
	put(p, "reasons", dap_group_reasons(&d->arena, t->group));
	put(p, "device", dap_device_text(&d->arena, d, w->gpu_id));
	if (w->ref.has_dispatch)
		put_fmt(p, "dispatch", "%" PRIu64, w->ref.dispatch);
	put(p, "workgroup", triple(&d->arena, w->ref.workgroup, w->ref.n_workgroup));
	if (w->ref.has_wave_in_group)
		put_fmt(p, "wave in workgroup", "%u", w->ref.wave_in_group);
	put_fmt(p, "active lanes", "%u of %u", w->lanes, w->width);
	if (r->has_packet) {
		put(p, "workgroup size",
		    triple(&d->arena, r->packet.workgroup_size, r->packet.n_workgroup_size));
		put(p, "grid size", triple(&d->arena, r->packet.grid_size, r->packet.n_grid_size));
		put_full(p, "kernel arguments",
			 rpc_arena_printf(&d->arena, "0x%" PRIx64, r->packet.kernarg_address), NULL,
			 0,
			 rpc_arena_printf(&d->arena, "0x%" PRIx64, r->packet.kernarg_address));
	}
	put_scalars(p, r->special, r->n_special);
	return 0;
}

static int scalar(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_wave_registers *r = dap_registers_shared(p->d, ref, err);

	if (!r)
		return -EIO;
	put_scalars(p, r->scalar, r->n_scalar);
	put_scalars(p, r->trap, r->n_trap);
	return 0;
}

/* ------------------------------------------------------------------ vector registers --------- */

/* Append the chunks of vector registers, named by their first and last one. */
static void put_chunks(struct page *p, const struct dap_ref *ref, enum dap_scope scope,
		       const char *letter, uint32_t count)
{
	for (uint32_t first = 0; first < count; first += DAP_REGISTER_CHUNK) {
		uint32_t last = first + DAP_REGISTER_CHUNK < count ? first + DAP_REGISTER_CHUNK : count;
		const char *name = rpc_arena_printf(&p->d->arena, "%s%u\u2013%s%u", letter, first,
						    letter, last - 1);

		put_full(p, name, "", NULL,
			 dap_ref_within(p->d, ref, scope, first / DAP_REGISTER_CHUNK), NULL);
	}
}

static int vector(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_wave_registers *r = dap_registers_shared(p->d, ref, err);
	bool nvidia = p->d->snap->doc.process.vendor == RPC_VENDOR_NVIDIA;

	if (!r)
		return -EIO;
	put_chunks(p, ref, DAP_SCOPE_VECTOR_CHUNK, nvidia ? "R" : "v", r->vector_count);
	put_chunks(p, ref, DAP_SCOPE_ACC_CHUNK, "a", r->accumulator_count);
	if (nvidia)
		put_full(p, "predicates", "", NULL,
			 dap_ref_within(p->d, ref, DAP_SCOPE_PREDICATES, 0), NULL);
	return 0;
}

/* The first lanes in one line, as many as a row of a view shows. */
static const char *lanes_text(struct rpc_arena *a, const struct rpc_vector_register *v)
{
	auto_out struct out o = { 0 };

	for (size_t i = 0; i < v->n_lanes && i < 8; i++)
		out_fmt(&o, "%s%08" PRIx64, i ? " " : "", v->lanes[i]);
	if (v->n_lanes > 8)
		out_str(&o, " ...");
	return rpc_arena_strdup(a, o.data ? o.data : "");
}

static int chunk(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	bool acc = ref->scope == DAP_SCOPE_ACC_CHUNK;
	const struct rpc_wave_registers *r =
		dap_registers_vector(p->d, ref, ref->index, err);
	const struct rpc_vector_register *list;
	size_t n;

	if (!r)
		return -EIO;
	list = acc ? r->accumulator : r->vector;
	n = acc ? r->n_accumulator : dap_registers_in_chunk(r, ref->index);
	for (size_t i = 0; i < n && i < DAP_REGISTER_CHUNK; i++)
		put_full(p, list[i].name, lanes_text(&p->d->arena, &list[i]), "u32[]",
			 dap_ref_within(p->d, ref, acc ? DAP_SCOPE_ACC_LANES : DAP_SCOPE_VECTOR_LANES,
					ref->index * DAP_REGISTER_CHUNK + (uint32_t)i),
			 NULL);
	return 0;
}

static int vector_lanes(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	bool acc = ref->scope == DAP_SCOPE_ACC_LANES;
	uint32_t i = ref->index % DAP_REGISTER_CHUNK;
	const struct rpc_wave_registers *r =
		dap_registers_vector(p->d, ref, ref->index / DAP_REGISTER_CHUNK, err);
	const struct rpc_vector_register *v;
	size_t n;

	if (!r)
		return -EIO;
	n = acc ? r->n_accumulator : dap_registers_in_chunk(r, ref->index / DAP_REGISTER_CHUNK);
	if (i >= n)
		return dap_invalid(err, "the wave has no such register");
	v = acc ? &r->accumulator[i] : &r->vector[i];
	for (size_t k = 0; k < v->n_lanes; k++)
		put_full(p, rpc_arena_printf(&p->d->arena, "[%zu]", k),
			 rpc_arena_printf(&p->d->arena, "0x%08" PRIx64, v->lanes[k]), "u32", 0,
			 NULL);
	return 0;
}

/* Predicates have one bit for each lane: each is shown as a mask. */
static int predicates(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_wave_registers *r = dap_registers_vector(p->d, ref, 0, err);

	if (!r)
		return -EIO;
	for (size_t i = dap_registers_in_chunk(r, 0); i < r->n_vector; i++) {
		const struct rpc_vector_register *v = &r->vector[i];
		uint64_t mask = 0;

		for (size_t k = 0; k < v->n_lanes && k < 64; k++)
			mask |= (uint64_t)(v->lanes[k] & 1) << k;
		put_full(p, v->name, rpc_arena_printf(&p->d->arena, "0x%08" PRIx64, mask), NULL, 0,
			 NULL);
	}
	return 0;
}

/* ------------------------------------------------------------------ lanes, LDS --------------- */

/* The work-item of a lane; NULL when it is not known. */
static const struct rpc_work_item *item_of(const struct rpc_wave_registers *r, uint32_t lane)
{
	for (size_t i = 0; i < r->n_work_items; i++)
		if (r->work_items[i].lane == lane)
			return &r->work_items[i];
	return NULL;
}

static int lanes(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	struct rpc_arena *a = &p->d->arena;
	const struct rpc_wave_registers *r = dap_registers_shared(p->d, ref, err);

	if (!r)
		return -EIO;
	for (uint32_t i = 0; i < r->wave.width && i < 64; i++) {
		const struct rpc_work_item *w = item_of(r, i);
		const char *text = r->wave.exec >> i & 1 ? "active" : "inactive";

		if (w)
			text = rpc_arena_printf(a, "%s, work-item %s, global %s", text,
						triple(a, w->in_group, w->n_in_group),
						triple(a, w->global, w->n_global));
		if (w && w->has_pc)
			text = rpc_arena_printf(a, "%s, pc 0x%" PRIx64, text ? text : "", w->pc);
		if (w && w->exception)
			text = rpc_arena_printf(a, "%s, %s", text ? text : "", w->exception);
		put(p, rpc_arena_printf(a, "lane %u", i), text);
	}
	return 0;
}

static int lds(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_wave_registers *r = dap_registers_shared(p->d, ref, err);

	if (!r)
		return -EIO;
	/* A reference has room for 1024 chunks. */
	for (uint32_t at = 0; at < r->lds_bytes && at / LDS_CHUNK < 1024; at += LDS_CHUNK) {
		uint32_t end = at + LDS_CHUNK < r->lds_bytes ? at + LDS_CHUNK : r->lds_bytes;
		const char *name =
			rpc_arena_printf(&p->d->arena, "0x%04x\u20130x%04x", at, end - 1);

		put_full(p, name, "", NULL,
			 dap_ref_within(p->d, ref, DAP_SCOPE_LDS_CHUNK, at / LDS_CHUNK), NULL);
	}
	return 0;
}

static int lds_chunk(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_memory_read_params params = {
		.session = p->d->session, .address = (uint64_t)ref->index * LDS_CHUNK,
		.size = LDS_CHUNK, .has_space = true, .space = RPC_MEMORY_SPACE_LDS,
		.has_wave = true, .wave = ref->snap->threads[ref->thread].wave
	};
	uint8_t *data;
	size_t size;
	int r = dap_memory_get(p->d, &params, &data, &size, err);

	if (r < 0)
		return r;
	for (size_t at = 0; at < size; at += LDS_ROW) {
		auto_out struct out o;
		char name[16];

		out_init(&o, 0);
		for (size_t i = at; i < size && i < at + LDS_ROW; i++)
			out_fmt(&o, "%s%02x", i > at ? " " : "", data[i]);
		snprintf(name, sizeof(name), "0x%04zx", (size_t)params.address + at);
		put(p, name, o.data ? o.data : "");
	}
	return 0;
}

/* ------------------------------------------------------------------ statistics --------------- */

/* What is known of all waves of the group. */
static int statistics(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	const struct rpc_group *g = ref->snap->threads[ref->thread].group;
	const struct rpc_device *device = dap_device(p->d, g->gpu_id);
	struct rpc_arena *a = &p->d->arena;

	put_fmt(p, "waves", "%u", g->waves);
	put_fmt(p, "lanes active", "%u min, %u median, %u max", g->lanes_min, g->lanes_median,
		g->lanes_max);
	if (g->has_workgroups)
		put_fmt(p, "workgroups", "%u", g->workgroups);
	put(p, "first workgroup", triple(a, g->first_workgroup, g->n_first_workgroup));
	put(p, "last workgroup", triple(a, g->last_workgroup, g->n_last_workgroup));
	put_fmt(p, "addresses", "%u", g->pcs);
	put_fmt(p, "device", "%s%s%s", dap_device_text(a, p->d, g->gpu_id), device ? " " : "",
		device ? device->name : "");
	put(p, "state", rpc_enum_name(&rpc_wave_state_enum, g->state));
	return 0;
}

/* ------------------------------------------------------------------ request ------------------ */

static int unknown(struct page *p, const struct dap_ref *ref, struct agent_err *err)
{
	return dap_invalid(err, "variablesReference: stands for nothing that can be opened");
}

int dap_variables(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	static int (*const open[])(struct page *, const struct dap_ref *, struct agent_err *) = {
		[DAP_SCOPE_NONE] = unknown,	     [DAP_SCOPE_FRAME] = unknown,
		[DAP_SCOPE_ARGUMENTS] = arguments,
		[DAP_SCOPE_WAVE] = wave,	     [DAP_SCOPE_SCALAR] = scalar,
		[DAP_SCOPE_VECTOR] = vector,	     [DAP_SCOPE_VECTOR_CHUNK] = chunk,
		[DAP_SCOPE_ACC_CHUNK] = chunk,	     [DAP_SCOPE_VECTOR_LANES] = vector_lanes,
		[DAP_SCOPE_ACC_LANES] = vector_lanes, [DAP_SCOPE_LANES] = lanes,
		[DAP_SCOPE_PREDICATES] = predicates,
		[DAP_SCOPE_LDS] = lds,		     [DAP_SCOPE_LDS_CHUNK] = lds_chunk,
		[DAP_SCOPE_STATISTICS] = statistics,
	};
	struct page p = { .d = d, .o = &ret->body };
	struct dap_ref ref;
	int64_t n;
	int r = dap_ref_parse(d, dap_json_get(q->args, "variablesReference"), &ref, &ret->err);

	if (r < 0)
		return r;
	if (dap_json_i64(dap_json_get(q->args, "start"), &n) && n > 0)
		p.start = (uint64_t)n;
	if (dap_json_i64(dap_json_get(q->args, "count"), &n) && n > 0)
		p.count = (uint64_t)n;
	out_json_fmt(&ret->body, "{'variables':[");
	r = (ref.scope < sizeof(open) / sizeof(open[0]) ? open[ref.scope] : unknown)(&p, &ref, &ret->err);
	out_str(&ret->body, "]}");
	return r;
}
