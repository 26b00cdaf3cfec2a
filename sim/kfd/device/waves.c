/* SPDX-License-Identifier: MIT */
/* What the planted waves do, and their way into the target's memory. */
#include "waves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/kfd/wave/wave_script.h"

/* Version of a runtime that does not tell its own. */
#define DEFAULT_R_VERSION 10u
/* Bit of debug_prop: waves know their dispatch without the runtime's help. */
#define DISPATCH_INFO_ALWAYS 0x400u
/*
 * A parked wave stands at the s_trap that ends a chunk of the debugger's memory: bytes from its
 * start.
 */
#define PARK_OFFSET 0x18u
/* Bytes of a loop that are looked through for an s_trap. */
#define CODE_MAX   4096u
/* The s_trap that the compiler makes of an abort. */
#define TRAP_ABORT 2u
/* Waves whose registers are read together. */
#define READ_WAVES 256u

/* A wave whose registers lie in the target's memory. */
struct sim_wave {
	uint64_t at; /**< Where its words are. */
	struct wave_words words;
	uint32_t packet_slot;
};

struct sim_waves {
	struct wave_script script;
	uint32_t n_xcc;
	bool saved;
	bool is_halted;		/**< At least one of them is halted, whatever halted it. */
	uint32_t (*headers)[4]; /**< Headers of the last save, one for each XCC. */
	uint32_t **stacks;	/**< Likewise control stacks, which the dispatcher keeps. */
	struct sim_wave *waves; /**< NULL before the first save. */
	uint32_t r_version;
};

/* The XCCs that a queue runs on. */
static uint32_t xccs(const struct sim_queue *q)
{
	return q->device->gpu->profile->num_xcc;
}

static void waves_destroy(struct sim_waves *w)
{
	if (!w)
		return;
	wave_script_deinit(&w->script);
	for (uint32_t xcc = 0; w->stacks && xcc < w->n_xcc; xcc++)
		free(w->stacks[xcc]);
	free(w->stacks);
	free(w->waves);
	free(w->headers);
	free(w);
}

/* ---- saving ---- */

/* Where the area of one XCC is, and how large. */
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

/* Encode the waves of one XCC. */
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

/* The version of the runtime, as the head of its code-object list has it. */
static uint32_t runtime_version(struct sim *s, const struct sim_process *p)
{
	uint32_t version;

	if (!p->runtime.r_debug ||
	    s->os->mem_read(p->tgid, p->runtime.r_debug, &version, sizeof(version)))
		return DEFAULT_R_VERSION;
	return version;
}

/* The slot of the oldest packet that is not done. */
static uint32_t oldest_packet(struct sim *s, const struct sim_process *p, const struct sim_queue *q)
{
	uint32_t packets = q->args.ring_size / 64;
	uint64_t rd = 0;

	if (q->args.read_pointer_address)
		s->os->mem_read(p->tgid, q->args.read_pointer_address, &rd, sizeof(rd));
	return packets ? (uint32_t)(rd % packets) : 0;
}

/*
 * Whether a wave that begins now is told its dispatch.  The driver switches that on where it is not
 * on anyway: for good when the runtime asked for it, and otherwise for as long as a debugger is
 * attached (runtime_enable(), kfd_dbg_trap_activate() and _deactivate(): the same enable_debug_trap()).
 * Waves that began earlier are not told later.
 */
static bool tells_dispatch(const struct sim_process *p, const struct sim_queue *q)
{
	return p->runtime.ttmp_setup || (q->device->gpu->profile->debug_prop & DISPATCH_INFO_ALWAYS) ||
	       (p->debugged && p->runtime.runtime_state == KFDABI_RUNTIME_STATE_ENABLED);
}

/* Fill in what the population cannot know: packet, runtime, address to park at. */
static void complete_waves(struct sim *s, struct sim_process *p, struct sim_queue *q,
			   uint32_t r_version)
{
	struct sim_waves *w = q->waves;
	uint32_t packet = oldest_packet(s, p, q), debug_offset = 0;

	s->os->mem_read(p->tgid,
			q->args.ctx_save_restore_address +
				offsetof(struct kfdabi_save_area_header, debug_offset),
			&debug_offset, sizeof(debug_offset));
	for (size_t i = 0; i < w->script.n; i++) {
		struct wave_actor *a = &w->script.waves[i];

		a->desc.debugger_attached = p->debugged;
		a->desc.park_pc = q->args.ctx_save_restore_address + debug_offset + PARK_OFFSET;
		if (!a->has_packet)
			a->desc.packet_slot = packet;
		a->desc.pc = wave_actor_pc(a, r_version);
	}
}

/* The address of the save area of one XCC. */
static uint64_t area_of(const struct sim_queue *q, uint32_t xcc)
{
	return q->args.ctx_save_restore_address + (uint64_t)xcc * q->args.ctx_save_restore_size;
}

/* Remember what is in the area of one XCC from now on. */
static void keep_xcc(struct sim_queue *q, uint32_t xcc, const struct wave_save *save)
{
	struct sim_waves *w = q->waves;
	size_t n = 0;

	memcpy(w->headers[xcc], save->header, sizeof(save->header));
	free(w->stacks[xcc]);
	w->stacks[xcc] = malloc(save->header[1] + 1);
	if (w->stacks[xcc] && save->size)
		memcpy(w->stacks[xcc], save->bytes, save->header[1]);
	for (size_t i = 0; i < w->script.n; i++) {
		struct sim_wave *x = &w->waves[i];
		const struct wave_actor *a = &w->script.waves[i];
		uint32_t offset;

		if (a->xcc != xcc)
			continue;
		offset = save->base[n++] + wave_words_offset(w->script.silicon, &a->desc);
		x->at = area_of(q, xcc) + offset;
		x->packet_slot = a->desc.packet_slot;
		memcpy(&x->words, save->bytes + (offset - save->header[0]), sizeof(x->words));
		x->words = wave_words_turn(w->script.silicon, &x->words);
	}
}

/* Write the whole area, and remember where each wave is. */
static void save_first(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	struct sim_waves *w = q->waves;
	struct wave_save_options o = options_of(q, w->r_version);
	struct wave_save save;

	complete_waves(s, p, q, w->r_version);
	w->waves = calloc(w->script.n + 1, sizeof(*w->waves));
	for (uint32_t xcc = 0; w->waves && xcc < w->n_xcc; xcc++) {
		if (save_create(w, &o, xcc, &save))
			continue;
		/* Errors are swallowed, since the area is the application's. */
		if (save.size)
			s->os->mem_write(p->tgid, area_of(q, xcc) + save.header[0], save.bytes, save.size);
		keep_xcc(q, xcc, &save);
		wave_save_destroy(&save);
	}
}

/*
 * Write the area anew: registers are where they were, but a wave of another packet is another wave.
 */
static void save_again(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	struct sim_waves *w = q->waves;

	complete_waves(s, p, q, w->r_version);
	for (size_t i = 0; i < w->script.n; i++) {
		struct sim_wave *x = &w->waves[i];
		struct wave_desc *desc = &w->script.waves[i].desc;
		struct wave_words words;

		if (x->packet_slot != desc->packet_slot) {
			desc->launch_written = tells_dispatch(p, q);
			wave_words_make(w->script.silicon, desc, w->r_version, &x->words);
		}
		x->packet_slot = desc->packet_slot;
		words = wave_words_turn(w->script.silicon, &x->words);
		s->os->mem_write(p->tgid, x->at, &words, sizeof(words));
	}
	for (uint32_t xcc = 0; xcc < w->n_xcc; xcc++)
		if (w->stacks[xcc])
			s->os->mem_write(p->tgid, area_of(q, xcc) + w->headers[xcc][0], w->stacks[xcc],
					 w->headers[xcc][1]);
}

static void save_all(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	if (!q->waves->waves) {
		q->waves->r_version = runtime_version(s, p);
		save_first(s, p, q);
	} else {
		save_again(s, p, q);
	}
	q->waves->saved = true;
}

void sim_waves_save(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	uint32_t empty[4] = { q->args.ctl_stack_size, 0, q->args.ctl_stack_size, 0 };

	if (q->waves && !q->waves->saved && !sim_queue_is_running(q))
		save_all(s, p, q);
	for (uint32_t xcc = 0; xcc < xccs(q); xcc++)
		s->os->mem_write(p->tgid, area_of(q, xcc),
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

/* Find out now whether a suspend would go wrong. */
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
	w->n_xcc = xccs(q);
	w->headers = calloc(w->n_xcc, sizeof(*w->headers));
	w->stacks = calloc(w->n_xcc, sizeof(*w->stacks));
	r = w->headers && w->stacks ? wave_script_parse(&place, text, &w->script) : -ENOMEM;
	if (!r)
		r = try_save(w, q);
	if (r) {
		waves_destroy(w);
		return r;
	}
	for (uint32_t xcc = 0; xcc < xccs(q); xcc++)
		w->headers[xcc][0] = w->headers[xcc][2] = q->args.ctl_stack_size;
	for (size_t i = 0; i < w->script.n; i++)
		w->script.waves[i].desc.launch_written = tells_dispatch(p, q);
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

/* ---- running ---- */

/* Code that waves run through; most of them run through the same. */
struct code {
	uint64_t address;
	uint32_t size;
	bool is_there;
	uint32_t words[CODE_MAX / 4];
};

static bool code_read(struct sim *s, struct sim_process *p, struct code *c, uint64_t address,
		      uint32_t size)
{
	size = size < CODE_MAX ? size : CODE_MAX;
	if (c->size != size || c->address != address) {
		c->address = address;
		c->size = size;
		c->is_there = s->os->mem_read(p->tgid, address, c->words, size) == 0;
	}
	return c->is_there;
}

/*
 * The number of an s_trap, which has one encoding up to gfx10 and another one since.
 * @return 0 for another instruction.
 */
static uint32_t trap_of(const struct wave_silicon *g, uint32_t word)
{
	uint32_t opcode = g->gfx_target_version < 110000 ? 0xbf920000 : 0xbf900000;

	return (word & 0xffffff00) == opcode ? word & 0xff : 0;
}

/* What one run of a queue works on. */
struct run {
	struct sim *s;
	struct sim_process *p;
	struct sim_queue *q;
	struct code code;
	uint64_t raised;
};

/* Stop a wave as its trap handler does. */
static void stop_wave(struct run *r, const struct wave_actor *a, struct sim_wave *x,
		      uint32_t trap_id, bool after_step)
{
	struct sim_waves *w = r->q->waves;

	wave_words_stop(w->script.silicon,
			&(struct wave_trap){ .r_version = w->r_version,
					     .trap_id = trap_id,
					     .after_step = after_step,
					     .park_pc = a->desc.park_pc },
			&x->words);
	w->is_halted = true;
	r->raised |= KFDABI_EC_MASK(trap_id == TRAP_ABORT ? KFDABI_EC_QUEUE_WAVE_ABORT :
							    KFDABI_EC_QUEUE_WAVE_TRAP);
}

/*
 * Look for an s_trap on the wave's way.
 * @return whether there is one, where the wave is stopped then.
 */
static bool meets_trap(struct run *r, const struct wave_actor *a, struct sim_wave *x, uint64_t from,
		       uint32_t size, uint64_t first)
{
	const struct sim_waves *w = r->q->waves;

	if (!r->p->debugged || !code_read(r->s, r->p, &r->code, from, size))
		return false;
	for (uint32_t i = 0; i < r->code.size / 4; i++) {
		uint64_t pc = from + (first - from + i * 4) % r->code.size;
		uint32_t trap = trap_of(w->script.silicon, r->code.words[(pc - from) / 4]);

		if (!trap)
			continue;
		wave_words_set_pc(w->script.silicon, &x->words, pc + (w->r_version < 12 ? 4 : 0));
		stop_wave(r, a, x, trap, false);
		return true;
	}
	return false;
}

/*
 * Let a wave go on, with the registers that are in the area now: a debugger may have changed them.
 */
static void run_wave(struct run *r, struct wave_actor *a, struct sim_wave *x)
{
	struct sim_waves *w = r->q->waves;
	const struct wave_silicon *g = w->script.silicon;
	bool step, loops;
	uint64_t pc;

	if (wave_words_flag(g, &x->words, WAVE_HALT)) {
		w->is_halted = true;
		return;
	}
	step = wave_words_flag(g, &x->words, WAVE_SINGLE_STEP);
	pc = wave_words_pc(g, &x->words);
	loops = a->loop && pc - a->pc < a->loop;
	if (meets_trap(r, a, x, loops && !step ? a->pc : pc, loops && !step ? a->loop : 4, pc))
		return;
	if (loops) {
		a->at = (uint32_t)(pc - a->pc);
		wave_actor_run(a);
	}
	wave_words_set_pc(g, &x->words, step ? pc + 4 : loops ? a->pc + a->at : pc);
	if (step)
		stop_wave(r, a, x, 0, true);
}

/* Read the registers of waves, and let those go on whose registers can be read. */
static void run_waves(struct run *r, struct wave_actor *actors, struct sim_wave *waves, size_t n)
{
	struct sim_piece pieces[READ_WAVES];

	for (size_t i = 0; i < n; i++)
		pieces[i] = (struct sim_piece){ .addr = waves[i].at, .buf = &waves[i].words };
	r->s->os->mem_read_pieces(r->p->tgid, pieces, n, sizeof(waves->words));
	for (size_t i = 0; i < n; i++) {
		if (!pieces[i].is_read)
			continue;
		waves[i].words = wave_words_turn(r->q->waves->script.silicon, &waves[i].words);
		run_wave(r, &actors[i], &waves[i]);
	}
}

void sim_waves_run(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	struct run r = { .s = s, .p = p, .q = q };
	struct sim_waves *w = q->waves;

	if (!w || !w->saved || p->gone)
		return;
	w->saved = w->is_halted = false;
	for (size_t i = 0, n; w->waves && i < w->script.n; i += n) {
		n = w->script.n - i < READ_WAVES ? w->script.n - i : READ_WAVES;
		run_waves(&r, &w->script.waves[i], &w->waves[i], n);
	}
	if (r.raised)
		sim_interrupt_queue(s, p, q, r.raised);
}

bool sim_waves_hold_packet(const struct sim_queue *q)
{
	if (q->waves && q->waves->is_halted)
		return true;
	for (size_t i = 0; i < sim_waves_count(q); i++)
		if (!q->waves->script.waves[i].finishes)
			return true;
	return false;
}
