/* SPDX-License-Identifier: MIT */
/*
 * What opened scopes hold.  Large scopes are opened in chunks, so that only what is looked at is
 * read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "dap/values/values.h"

/* Bytes of LDS in a chunk, and in a row of it. */
#define LDS_CHUNK 1024u
#define LDS_ROW	  16u

/* Append one variable; see struct dap_row. */
static void put_full(struct dap_page *p, const char *name, const char *value, const char *type,
		     uint32_t ref, const char *memory)
{
	const struct dap_row row = { .name = name, .value = value, .type = type, .ref = ref,
				     .memory = memory };

	dap_put_row(p, &row);
}

/* Append a variable that is a text. */
static void put(struct dap_page *p, const char *name, const char *value)
{
	put_full(p, name, value, NULL, 0, NULL);
}

__attribute__((format(printf, 3, 4))) static void put_fmt(struct dap_page *p, const char *name,
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
static void put_scalars(struct dap_page *p, const struct rpc_scalar_register *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *value = rpc_arena_printf(&p->d->arena, "0x%0*" PRIx64,
						     list[i].bits == 64 ? 16 : 8, list[i].value);

		put_full(p, list[i].name, value, list[i].bits == 64 ? "u64" : "u32", 0,
			 list[i].bits == 64 ? value : NULL);
	}
}

/* ------------------------------------------------------------------ wave --------------------- */

/* What is in the wave's variables in all lanes, or why none are known. */
static void put_variables(struct dap_page *p, const struct dap_ref *ref)
{
	struct agent_err err = { 0 };
	const struct rpc_wave_variables_result *r = dap_frame_variables(p->d, ref, false, &err);

	for (size_t i = 0; r && i < r->n_missing; i++)
		put(p, "missing", r->missing[i]);
	if (!r)
		put(p, "missing", rpc_arena_printf(&p->d->arena, "variables: %s", dap_plain(err.message)));
	if (r && r->n_variables)
		put_full(p, "variables of all lanes", "", NULL,
			 dap_ref_within(p->d, ref, DAP_SCOPE_ALL_LANES, ref->index), NULL);
}

/* What the wave does and works on. */
static int wave(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	struct dap *d = p->d;
	const struct dap_thread *t = &ref->snap->threads[ref->thread];
	const struct rpc_wave_registers *r = dap_registers_shared(d, ref, err);
	const struct rpc_wave *w;

	if (!r)
		return -EIO;
	w = &r->wave;
	put(p, "wave", dap_wave_text(&d->arena, &t->wave));
	put_fmt(p, "lane", "%u", dap_lane_shown(t, r));
	put_variables(p, ref);
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

static int scalar(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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
static void put_chunks(struct dap_page *p, const struct dap_ref *ref, enum dap_scope scope,
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

static int vector(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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

static int chunk(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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

static int vector_lanes(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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
static int predicates(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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

static int lanes(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	struct rpc_arena *a = &p->d->arena;
	const struct rpc_wave_registers *r = dap_registers_shared(p->d, ref, err);
	const struct rpc_wave_part *part;
	uint32_t shown;

	if (!r)
		return -EIO;
	shown = dap_lane_shown(&ref->snap->threads[ref->thread], r);
	part = dap_lane_part(r, shown);
	for (uint32_t i = 0; i < r->wave.width && i < 64; i++) {
		const struct rpc_work_item *w = dap_work_item(r, i);
		const char *text = r->wave.exec >> i & 1 ? "active" : "inactive";

		if (w)
			text = rpc_arena_printf(a, "%s, work-item %s, global %s", text,
						triple(a, w->in_group, w->n_in_group),
						triple(a, w->global, w->n_global));
		if (w && w->has_pc)
			text = rpc_arena_printf(a, "%s, pc 0x%" PRIx64, text ? text : "", w->pc);
		if (w && w->exception)
			text = rpc_arena_printf(a, "%s, %s", text ? text : "", w->exception);
		if (part && part->exec >> i & 1)
			text = rpc_arena_printf(a, "%s, of this part", text ? text : "");
		if (i == shown)
			text = rpc_arena_printf(a, "%s, shown", text ? text : "");
		put(p, rpc_arena_printf(a, "lane %u", i), text);
	}
	return 0;
}

static int lds(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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

static int lds_chunk(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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
static int statistics(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
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

static int unknown(struct dap_page *p, const struct dap_ref *ref, struct agent_err *err)
{
	return dap_invalid(err, "variablesReference: stands for nothing that can be opened");
}

int dap_variables(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	static int (*const open[])(struct dap_page *, const struct dap_ref *, struct agent_err *) = {
		[DAP_SCOPE_NONE] = unknown,	     [DAP_SCOPE_FRAME] = unknown,
		[DAP_SCOPE_WAVE] = wave,	     [DAP_SCOPE_ARGUMENTS] = dap_open_arguments,
		[DAP_SCOPE_LOCALS] = dap_open_variables, [DAP_SCOPE_STATICS] = dap_open_variables,
		[DAP_SCOPE_BUILT_INS] = dap_open_variables, [DAP_SCOPE_ALL_LANES] = dap_open_all_lanes,
		[DAP_SCOPE_VALUE] = dap_open_value,  [DAP_SCOPE_SCALAR] = scalar,
		[DAP_SCOPE_VECTOR] = vector,	     [DAP_SCOPE_VECTOR_CHUNK] = chunk,
		[DAP_SCOPE_ACC_CHUNK] = chunk,	     [DAP_SCOPE_VECTOR_LANES] = vector_lanes,
		[DAP_SCOPE_ACC_LANES] = vector_lanes, [DAP_SCOPE_LANES] = lanes,
		[DAP_SCOPE_PREDICATES] = predicates,
		[DAP_SCOPE_LDS] = lds,		     [DAP_SCOPE_LDS_CHUNK] = lds_chunk,
		[DAP_SCOPE_STATISTICS] = statistics, [DAP_SCOPE_WHY] = dap_open_why,
	};
	struct dap_page p = { .d = d, .o = &ret->body };
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
	r = (open[ref.scope] ? open[ref.scope] : unknown)(&p, &ref, &ret->err);
	out_str(&ret->body, "]}");
	return r;
}
