/* SPDX-License-Identifier: MIT */
/* What the planted waves do, and their way into the target's memory. */
#include "waves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wave_script.h"

#define DEFAULT_R_VERSION 10u
#define DISPATCH_INFO_ALWAYS 0x400u
/* A parked wave stands at the s_trap that ends a chunk of the debugger's memory. */
#define PARK_OFFSET 0x18u

struct sim_waves {
	struct wave_script script;
	bool saved;
	uint32_t (*headers)[4]; /**< Per XCC, of the last save. */
};

static uint32_t xccs(const struct sim_queue *q)
{
	return q->device->gpu->profile->num_xcc;
}

static void waves_destroy(struct sim_waves *w)
{
	if (!w)
		return;
	wave_script_deinit(&w->script);
	free(w->headers);
	free(w);
}

/* ---- saving ---- */

static struct wave_save_options options_of(const struct sim_queue *q, uint32_t r_version)
{
	uint32_t room = gpu_profile_cwsr_size(q->device->gpu->profile);

	/* What the application claims beyond the driver's own figure does not count. */
	if (q->args.ctx_save_restore_size < room)
		room = q->args.ctx_save_restore_size;
	return (struct wave_save_options){
		.r_version = r_version,
		.boundary = q->args.ctl_stack_size & ~UINT32_C(3),
		.area_size = room,
	};
}

static int save_create(const struct sim_waves *w, const struct wave_save_options *o, uint32_t xcc,
		       struct wave_save *ret)
{
	struct wave_desc *of_xcc = calloc(w->script.n + 1, sizeof(*of_xcc));
	size_t n = 0;
	int r;

	if (!of_xcc)
		return -ENOMEM;
	for (size_t i = 0; i < w->script.n; i++)
		if (w->script.waves[i].xcc == xcc)
			of_xcc[n++] = w->script.waves[i].desc;
	r = wave_save_create(w->script.silicon, o, of_xcc, n, ret);
	free(of_xcc);
	return r;
}

static uint32_t runtime_version(struct sim *s, const struct sim_process *p)
{
	uint32_t version;

	if (!p->runtime.r_debug ||
	    s->os->mem_read(p->tgid, p->runtime.r_debug, &version, sizeof(version)))
		return DEFAULT_R_VERSION;
	return version;
}

static uint32_t oldest_packet(struct sim *s, const struct sim_process *p, const struct sim_queue *q)
{
	uint32_t packets = q->args.ring_size / 64;
	uint64_t rd = 0;

	if (q->args.read_pointer_address)
		s->os->mem_read(p->tgid, q->args.read_pointer_address, &rd, sizeof(rd));
	return packets ? (uint32_t)(rd % packets) : 0;
}

/* What the population cannot know: packet, runtime, place to park. */
static void complete_waves(struct sim *s, struct sim_process *p, struct sim_queue *q,
			   uint32_t r_version)
{
	struct sim_waves *w = q->waves;
	uint32_t packet = oldest_packet(s, p, q), debug_offset = 0;
	bool told = p->runtime.ttmp_setup ||
		    (q->device->gpu->profile->debug_prop & DISPATCH_INFO_ALWAYS);

	s->os->mem_read(p->tgid,
			q->args.ctx_save_restore_address +
				offsetof(struct kfdabi_save_area_header, debug_offset),
			&debug_offset, sizeof(debug_offset));
	for (size_t i = 0; i < w->script.n; i++) {
		struct wave_actor *a = &w->script.waves[i];

		a->desc.launch_written = told;
		a->desc.debugger_attached = p->debugged;
		a->desc.park_pc = q->args.ctx_save_restore_address + debug_offset + PARK_OFFSET;
		if (!a->has_packet)
			a->desc.packet_slot = packet;
		a->desc.pc = wave_actor_pc(a, r_version);
	}
}

static void write_xcc(struct sim *s, struct sim_process *p, struct sim_queue *q, uint32_t xcc,
		      const struct wave_save *save)
{
	uint64_t area = q->args.ctx_save_restore_address +
			(uint64_t)xcc * q->args.ctx_save_restore_size;

	/* Errors are swallowed: the area belongs to the application. */
	if (save->size)
		s->os->mem_write(p->tgid, area + save->header[0], save->bytes, save->size);
}

static void save_all(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	uint32_t r_version = runtime_version(s, p);
	struct wave_save_options o = options_of(q, r_version);
	struct wave_save save;

	complete_waves(s, p, q, r_version);
	for (uint32_t xcc = 0; xcc < xccs(q); xcc++) {
		if (save_create(q->waves, &o, xcc, &save))
			continue;
		write_xcc(s, p, q, xcc, &save);
		memcpy(q->waves->headers[xcc], save.header, sizeof(save.header));
		wave_save_destroy(&save);
	}
	q->waves->saved = true;
}

void sim_waves_save(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	uint32_t empty[4] = { q->args.ctl_stack_size, 0, q->args.ctl_stack_size, 0 };

	if (q->waves && !q->waves->saved && !sim_queue_is_running(q))
		save_all(s, p, q);
	for (uint32_t xcc = 0; xcc < xccs(q); xcc++)
		s->os->mem_write(p->tgid,
				 q->args.ctx_save_restore_address +
					 (uint64_t)xcc * q->args.ctx_save_restore_size,
				 q->waves ? q->waves->headers[xcc] : empty, sizeof(empty));
}

void sim_waves_used(const struct sim_queue *q, uint32_t *ret_stack, uint32_t *ret_data)
{
	*ret_stack = *ret_data = 0;
	for (uint32_t xcc = 0; q->waves && xcc < xccs(q); xcc++) {
		*ret_stack += q->waves->headers[xcc][1];
		*ret_data += q->waves->headers[xcc][3];
	}
}

/* ---- life ---- */

/* Everything that would go wrong at a suspend goes wrong now. */
static int try_save(const struct sim_waves *w, const struct sim_queue *q)
{
	struct wave_save_options o = options_of(q, DEFAULT_R_VERSION);
	struct wave_save save;
	int r = 0;

	for (uint32_t xcc = 0; xcc < xccs(q) && !r; xcc++) {
		r = save_create(w, &o, xcc, &save);
		if (!r)
			wave_save_destroy(&save);
	}
	return r;
}

int sim_waves_plant(struct sim_process *p, struct sim_queue *q, const char *text)
{
	const struct gpu_profile *g = q->device->gpu->profile;
	struct wave_script_place place = {
		.silicon = wave_silicon_find(g->gfx_target_version),
		.n_xcc = xccs(q),
		.wave32 = g->wave_size == 32,
		.seed = (uint64_t)p->pasid << 32 | q->id,
	};
	struct sim_waves *w;
	int r;

	if (!place.silicon || !sim_queue_is_compute(q) || !q->args.ctx_save_restore_address)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->headers = calloc(xccs(q), sizeof(*w->headers));
	r = w->headers ? wave_script_parse(&place, text, &w->script) : -ENOMEM;
	if (!r)
		r = try_save(w, q);
	if (r) {
		waves_destroy(w);
		return r;
	}
	for (uint32_t xcc = 0; xcc < xccs(q); xcc++)
		w->headers[xcc][0] = w->headers[xcc][2] = q->args.ctl_stack_size;
	sim_waves_clear(q);
	q->waves = w;
	return 0;
}

void sim_waves_clear(struct sim_queue *q)
{
	waves_destroy(q->waves);
	q->waves = NULL;
}

size_t sim_waves_count(const struct sim_queue *q)
{
	return q->waves ? q->waves->script.n : 0;
}

void sim_waves_run(struct sim_queue *q)
{
	if (!q->waves || !q->waves->saved)
		return;
	q->waves->saved = false;
	for (size_t i = 0; i < q->waves->script.n; i++)
		wave_actor_run(&q->waves->script.waves[i]);
}

bool sim_waves_hold_packet(const struct sim_queue *q)
{
	for (size_t i = 0; i < sim_waves_count(q); i++)
		if (!q->waves->script.waves[i].finishes)
			return true;
	return false;
}
