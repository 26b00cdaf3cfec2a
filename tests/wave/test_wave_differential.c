/* SPDX-License-Identifier: MIT */
/*
 * Encoder against decoder: random waves are saved as the hardware does, read back with the library,
 * and every field must be what went in.  A failure names the population; the same TEST_SEED repeats
 * all of them, WAVE_POPULATION=GFX:SEED only that one.
 */
#include <inttypes.h>

#include "kfdtrap_wave.h"
#include "population.h"
#include "testlib.h"

#define POPULATIONS 2000 /* per generation */

static struct {
	const char *gfx;
	uint64_t population;
	long wave;
	unsigned int failures;
} now;

static bool same(uint64_t got, uint64_t want, const char *field, long index)
{
	if (got == want)
		return true;
	now.failures++;
	if (now.failures <= 20)
		printf("  WAVE_POPULATION=%s:0x%" PRIx64 " wave %ld %s[%ld]: got 0x%" PRIx64
		       ", want 0x%" PRIx64 "\n",
		       now.gfx, now.population, now.wave, field, index, got, want);
	return false;
}

#define SAME(got, want)	       same((uint64_t)(got), (uint64_t)(want), #got, 0)
#define SAME_AT(i, got, want)  same((uint64_t)(got), (uint64_t)(want), #got, (long)(i))

/* ---- what the decoder works on ---- */

struct reading {
	const struct population *p;
	const struct kfdtrap_wave_arch *arch;
	struct kfdtrap_wave_context context;
	struct kfdtrap_wave_header header;
	struct kfdtrap_wave_layout layouts[POPULATION_WAVES_MAX];
	struct kfdtrap_wave_state states[POPULATION_WAVES_MAX];
	size_t n;
};

/* Bytes at an offset that the decoder gave; it must not leave what was saved. */
static const uint8_t *at(const struct reading *r, uint32_t offset, uint32_t size)
{
	const struct wave_save *s = &r->p->save;
	uint64_t end = (uint64_t)s->header[0] + s->size;

	if (!SAME(offset >= s->header[0], true) || !SAME((uint64_t)offset + size <= end, true))
		return NULL;
	return s->bytes + (offset - s->header[0]);
}

static uint64_t number_at(const uint8_t *bytes, uint32_t size)
{
	uint64_t v = 0;

	memcpy(&v, bytes, size < 8 ? size : 8);
	return v;
}

static bool has(const struct reading *r, const struct wave_desc *w, enum wave_meaning m)
{
	return r->p->silicon->flags[m].slot && (w->flags >> m & 1);
}

/* ---- layouts ---- */

static void check_layout(const struct reading *r, size_t i, size_t leader)
{
	const struct wave_desc *w = &r->p->waves[i];
	const struct kfdtrap_wave_layout *l = &r->layouts[i];
	const struct wave_save *s = &r->p->save;

	SAME(l->index, i);
	SAME(l->leader, leader);
	SAME(l->first, w->first);
	SAME(l->last, w->last);
	SAME(l->lanes, wave_lanes(r->p->silicon, w));
	SAME(l->n_vgpr, w->vgprs);
	SAME(l->n_acc_vgpr, w->acc_vgprs);
	SAME(l->n_shared_vgpr, w->shared_vgprs);
	SAME(l->n_sgpr, w->sgprs);
	SAME(l->lds_size, w->wgp_takeover ? 131072 : w->lds_size);
	SAME(l->scratch_slot, w->scratch_slot);
	SAME(l->shader_engine, w->engine);
	SAME(l->scratch_enabled, w->scratch_enabled);
	SAME(l->vgpr_offset, s->base[i]);
	SAME(l->top_offset, i ? s->base[i - 1] : s->header[2]);
	if (l->lds_size)
		SAME(l->lds_offset, r->layouts[leader].lds_offset);
}

static void check_walk(struct reading *r)
{
	const struct wave_save *s = &r->p->save;
	struct kfdtrap_wave_layout layout;
	struct kfdtrap_wave_iter iter;
	/* Of exactly this size, so that the sanitizer sees a byte too many. */
	auto_free uint8_t *stack = malloc(s->header[1]);
	size_t leader = 0;

	memcpy(stack, s->bytes, s->header[1]);
	kfdtrap_wave_iter_init(&iter, r->arch, &r->header, stack, s->header[1],
			       POPULATION_WAVES_MAX);
	while (r->n < POPULATION_WAVES_MAX && kfdtrap_wave_next(&iter, &layout))
		r->layouts[r->n++] = layout;
	now.wave = -1;
	SAME(iter.problem, KFDTRAP_WAVE_OK);
	SAME(iter.n_waves, r->p->n);
	SAME(r->n, r->p->n);
	for (size_t i = 0; i < r->n && i < r->p->n; i++) {
		now.wave = (long)i;
		if (r->p->waves[i].first)
			leader = i;
		check_layout(r, i, leader);
	}
}

static void check_header(struct reading *r)
{
	const struct wave_save *s = &r->p->save;
	uint8_t bytes[KFDTRAP_WAVE_HEADER_SIZE] = { 0 };

	memcpy(bytes, s->header, sizeof(s->header));
	now.wave = -1;
	SAME(kfdtrap_wave_header_parse(bytes, s->header[2], &r->header), KFDTRAP_WAVE_OK);
	SAME(r->header.control_stack_offset, s->header[0]);
	SAME(r->header.control_stack_size, s->header[1]);
	SAME(r->header.wave_state_offset, s->header[2]);
	SAME(r->header.wave_state_size, s->header[3]);
}

/* ---- state ---- */

static uint32_t want_reasons(const struct reading *r, const struct wave_desc *w)
{
	static const struct {
		enum wave_meaning meaning;
		uint32_t reason;
	} simple[] = {
		{ WAVE_XNACK_ERROR, KFDTRAP_WAVE_STOP_MEMORY_VIOLATION },
		{ WAVE_ILLEGAL, KFDTRAP_WAVE_STOP_ILLEGAL_INSTRUCTION },
		{ WAVE_STEP_DONE, KFDTRAP_WAVE_STOP_SINGLE_STEP },
		{ WAVE_BEGIN, KFDTRAP_WAVE_STOP_TRAP },
		{ WAVE_END, KFDTRAP_WAVE_STOP_TRAP },
	};
	static const uint32_t traps[] = { 0, KFDTRAP_WAVE_STOP_BREAKPOINT, KFDTRAP_WAVE_STOP_ASSERT,
					  KFDTRAP_WAVE_STOP_DEBUG_TRAP };
	uint32_t reasons = w->math & w->math_enable;

	if (!w->stopped)
		return 0;
	for (size_t i = 0; i < TEST_COUNT(simple); i++)
		if (has(r, w, simple[i].meaning))
			reasons |= simple[i].reason;
	if (has(r, w, WAVE_MEM_VIOL) && !has(r, w, WAVE_XNACK_ERROR))
		reasons |= KFDTRAP_WAVE_STOP_ADDRESS_ERROR;
	for (unsigned int i = 0; i < 4 && has(r, w, WAVE_WATCH_ENABLE); i++)
		if (has(r, w, WAVE_WATCH0 + i))
			reasons |= KFDTRAP_WAVE_STOP_WATCH_0 << i;
	return reasons | (w->trap_id < 4 ? traps[w->trap_id] : KFDTRAP_WAVE_STOP_TRAP);
}

static void check_launch(const struct reading *r, const struct wave_desc *w,
			 const struct kfdtrap_wave_state *st)
{
	enum wave_ttmps ttmps = r->p->silicon->ttmps;
	bool marked = w->launch_meaningless && r->p->r_version >= 10 && w->handler_written &&
		      ttmps < WAVE_TTMPS_GFX12;
	bool known = population_has_launch_info(r->p) && !marked;
	bool yz = known && (ttmps < WAVE_TTMPS_GFX12 || w->group_yz);

	SAME(!!(st->valid & KFDTRAP_WAVE_HAS_WORKGROUP_X), known);
	SAME(!!(st->valid & KFDTRAP_WAVE_HAS_WORKGROUP_YZ), yz);
	SAME(!!(st->valid & KFDTRAP_WAVE_HAS_WAVE_IN_GROUP), known);
	SAME(!!(st->valid & KFDTRAP_WAVE_HAS_PACKET), known);
	SAME(st->packet, known ? w->packet_slot : 0);
	SAME(st->wave_in_group, known ? w->wave_in_group : 0);
	SAME(st->workgroup[0], known ? w->group[0] : 0);
	SAME(st->workgroup[1], yz ? w->group[1] : 0);
	SAME(st->workgroup[2], yz ? w->group[2] : 0);
}

static uint32_t without(uint32_t word, struct wave_flag f)
{
	return f.slot ? word & ~(UINT32_C(1) << f.bit) : word;
}

static uint32_t own_halt(const struct reading *r, uint32_t word, bool halted)
{
	struct wave_flag f = r->p->silicon->flags[WAVE_HALT];

	return without(word, f) | (uint32_t)halted << f.bit;
}

/* Raw words: noise included, so taken from the encoder's own answer. */
static void check_words(const struct reading *r, const struct wave_desc *w,
			const struct kfdtrap_wave_state *st)
{
	const struct wave_flag *flags = r->p->silicon->flags;
	bool gfx12 = r->p->silicon->hwregs >= WAVE_HWREGS_GFX12;
	bool halted = w->stopped ? w->saved_halt : has(r, w, WAVE_HALT);
	struct wave_words words;
	uint32_t status, user;

	wave_words_make(r->p->silicon, w, r->p->r_version, &words);
	status = words.hwreg[gfx12 ? 13 : 5];
	user = without(without(status, flags[WAVE_PRIV]), flags[WAVE_SKIP_EXPORT]);
	SAME(st->status, status);
	SAME(st->status_user, gfx12 ? user : own_halt(r, user, halted));
	SAME(st->state_priv, gfx12 ? words.hwreg[5] : 0);
	SAME(st->state_priv_user, gfx12 ? own_halt(r, words.hwreg[5], halted) : 0);
	SAME(st->excp_flags, words.hwreg[6]);
	SAME(st->excp_flags_user, gfx12 ? words.hwreg[11] : 0);
	SAME(st->trap_ctrl, gfx12 ? words.hwreg[12] : 0);
	SAME(st->mode, words.hwreg[r->p->silicon->hwregs == WAVE_HWREGS_GFX9 ? 9 : 8]);
	SAME(st->halted, halted);
}

static uint32_t barrier_word(struct wave_barrier b)
{
	return b.members ? 1 + b.members * 0x10 + b.signals * 0x10000 : 0;
}

static void check_barriers(const struct reading *r, size_t i)
{
	const struct wave_desc *w = &r->p->waves[i];
	bool named = r->p->silicon->hwregs == WAVE_HWREGS_GFX1250;
	uint32_t offset;
	const uint8_t *in;

	SAME(r->states[i].barrier, r->p->silicon->hwregs >= WAVE_HWREGS_GFX12 ? barrier_word(w->barrier) : 0);
	SAME(r->states[i].cluster_barrier, barrier_word(w->cluster));
	SAME(kfdtrap_wave_named_barriers_find(r->arch, &r->layouts[i], &offset), named);
	in = named ? at(r, offset, 4 * KFDTRAP_WAVE_NAMED_BARRIERS) : NULL;
	for (uint32_t k = 0; in && k < KFDTRAP_WAVE_NAMED_BARRIERS; k++)
		SAME_AT(k, number_at(in + (size_t)k * 4, 4), barrier_word(w->named[k]));
	if (named) {
		SAME(r->states[i].mode >> 12 & 0x3f, w->vgpr_banks);
		SAME(r->states[i].state_priv >> 2 & 1, has(r, w, WAVE_BARRIER_COMPLETE));
		SAME(r->states[i].state_priv >> 3 & 1, has(r, w, WAVE_NAMED_COMPLETE));
		SAME(r->states[i].state_priv >> 16 & 1, has(r, w, WAVE_CLUSTER_COMPLETE));
	}
}

/* Whether the handler's part is there: what other waves left is not taken for it. */
static bool has_handler(const struct reading *r, const struct wave_desc *w)
{
	if (r->p->silicon->ttmps != WAVE_TTMPS_CLASSIC)
		return w->handler_written;
	return population_has_launch_info(r->p) || w->stopped;
}

static void check_state(struct reading *r, size_t i)
{
	const struct wave_desc *w = &r->p->waves[i];
	struct kfdtrap_wave_state *st = &r->states[i];
	const uint8_t *in = at(r, kfdtrap_wave_hot_offset(&r->layouts[i]), KFDTRAP_WAVE_HOT_SIZE);
	bool wide = wave_lanes(r->p->silicon, w) == 64;
	bool has_id = has_handler(r, w) &&
		      (r->p->silicon->ttmps != WAVE_TTMPS_CLASSIC || population_has_launch_info(r->p));
	uint8_t hot[KFDTRAP_WAVE_HOT_SIZE];

	if (!in)
		return;
	memcpy(hot, in, sizeof(hot));
	SAME(kfdtrap_wave_read_state(r->arch, &r->context, &r->layouts[i], hot, st),
	     KFDTRAP_WAVE_OK);
	SAME(st->pc, w->pc);
	SAME(st->exec, wide ? w->exec : (uint32_t)w->exec);
	SAME(st->m0, w->m0);
	SAME(st->stopped, w->stopped);
	SAME(st->parked, wave_is_parked(r->p->silicon, w, r->p->r_version));
	SAME(st->trap_id, has_handler(r, w) ? w->trap_id < 15 ? w->trap_id : 15 : 0);
	SAME(st->stop_reasons, want_reasons(r, w));
	SAME(!!(st->valid & KFDTRAP_WAVE_HAS_WAVE_ID), has_id);
	SAME(st->wave_id, has_id ? w->wave_id : 0);
	check_words(r, w, st);
	check_launch(r, w, st);
	SAME(kfdtrap_wave_check_group(&r->states[r->layouts[i].leader], st), KFDTRAP_WAVE_OK);
}

/* ---- registers ---- */

static const uint8_t *find(const struct reading *r, size_t i, enum kfdtrap_wave_bank bank,
			   uint32_t number, uint32_t want_size)
{
	uint32_t offset, size;

	if (!SAME_AT(number, kfdtrap_wave_register_find(r->arch, &r->layouts[i], bank, number,
							&offset, &size), true) ||
	    !SAME_AT(number, size, want_size))
		return NULL;
	return at(r, offset, size);
}

static void absent(const struct reading *r, size_t i, enum kfdtrap_wave_bank bank, uint32_t number)
{
	uint32_t offset, size;

	SAME_AT(number, kfdtrap_wave_register_find(r->arch, &r->layouts[i], bank, number, &offset,
						   &size), false);
}

static void check_vector(const struct reading *r, size_t i, enum kfdtrap_wave_bank bank,
			 uint32_t number, enum wave_kind kind, uint32_t index, uint32_t lanes)
{
	const struct wave_desc *w = &r->p->waves[i];
	const uint8_t *in = find(r, i, bank, number, lanes * 4);

	for (uint32_t l = 0; in && l < lanes; l++)
		if (!same(number_at(in + (size_t)l * 4, 4), wave_value(w, kind, index, l),
			  kind == WAVE_ACC ? "acc" : kind == WAVE_SHARED ? "shared" : "vgpr",
			  (long)number * 100 + l))
			return;
}

static void check_vectors(const struct reading *r, size_t i)
{
	const struct wave_desc *w = &r->p->waves[i];
	uint32_t lanes = wave_lanes(r->p->silicon, w);

	for (uint32_t k = 0; k < w->vgprs; k++)
		check_vector(r, i, KFDTRAP_WAVE_BANK_VGPR, k, WAVE_VGPR, k, lanes);
	for (uint32_t k = 0; k < w->shared_vgprs; k++)
		check_vector(r, i, KFDTRAP_WAVE_BANK_VGPR, w->vgprs + k, WAVE_SHARED, k, 32);
	for (uint32_t k = 0; k < w->acc_vgprs; k++)
		check_vector(r, i, KFDTRAP_WAVE_BANK_ACC_VGPR, k, WAVE_ACC, k, lanes);
	absent(r, i, KFDTRAP_WAVE_BANK_VGPR, w->vgprs + w->shared_vgprs);
	absent(r, i, KFDTRAP_WAVE_BANK_ACC_VGPR, w->acc_vgprs);
}

static void check_scalars(const struct reading *r, size_t i)
{
	const struct wave_desc *w = &r->p->waves[i];
	bool gfx9 = r->p->silicon->hwregs == WAVE_HWREGS_GFX9;
	/* Six aliased slots at the end on gfx9, two on later generations. */
	uint32_t plain = gfx9 ? (w->sgprs < 108 ? w->sgprs : 108) - 6 : 106;
	struct wave_words words;
	const uint8_t *in;

	for (uint32_t k = 0; k < plain; k++) {
		in = find(r, i, KFDTRAP_WAVE_BANK_SGPR, k, 4);
		if (in)
			SAME_AT(k, number_at(in, 4), wave_value(w, WAVE_SGPR, k, 0));
	}
	absent(r, i, KFDTRAP_WAVE_BANK_SGPR, plain);
	wave_words_make(r->p->silicon, w, r->p->r_version, &words);
	for (uint32_t k = 0; k < WAVE_SLOTS; k++) {
		in = find(r, i, KFDTRAP_WAVE_BANK_TTMP, k, 4);
		if (in)
			SAME_AT(k, number_at(in, 4), words.ttmp[k]);
	}
	absent(r, i, KFDTRAP_WAVE_BANK_TTMP, WAVE_SLOTS);
}

static void special(const struct reading *r, size_t i, enum kfdtrap_wave_special s, uint32_t size,
		    uint64_t want)
{
	const uint8_t *in;

	if (!size) {
		absent(r, i, KFDTRAP_WAVE_BANK_SPECIAL, s);
		return;
	}
	in = find(r, i, KFDTRAP_WAVE_BANK_SPECIAL, s, size);
	if (in)
		SAME_AT(s, number_at(in, size), size == 4 ? (uint32_t)want : want);
}

static void check_specials(const struct reading *r, size_t i)
{
	const struct wave_silicon *g = r->p->silicon;
	const struct wave_desc *w = &r->p->waves[i];
	uint32_t mask = wave_lanes(g, w) / 8;
	bool gfx9 = g->hwregs == WAVE_HWREGS_GFX9, gfx12 = g->hwregs >= WAVE_HWREGS_GFX12;
	struct wave_words words;

	wave_words_make(g, w, r->p->r_version, &words);
	special(r, i, KFDTRAP_WAVE_M0, 4, w->m0);
	special(r, i, KFDTRAP_WAVE_PC, 8,
		wave_is_parked(g, w, r->p->r_version) ? w->park_pc : w->pc | (uint64_t)w->vgpr_banks << 57);
	special(r, i, KFDTRAP_WAVE_EXEC, mask, w->exec);
	special(r, i, KFDTRAP_WAVE_VCC, mask, w->vcc);
	special(r, i, KFDTRAP_WAVE_FLAT_SCRATCH, 8, w->flat_scratch);
	special(r, i, KFDTRAP_WAVE_XNACK_MASK, gfx9 ? 8 : g->has_xnack_mask ? 4 : 0,
		w->xnack_mask);
	special(r, i, KFDTRAP_WAVE_STATUS, 4, words.hwreg[gfx12 ? 13 : 5]);
	special(r, i, KFDTRAP_WAVE_MODE, 4, words.hwreg[gfx9 ? 9 : 8]);
	special(r, i, KFDTRAP_WAVE_TRAPSTS, gfx12 ? 0 : 4, words.hwreg[6]);
	special(r, i, KFDTRAP_WAVE_STATE_PRIV, gfx12 ? 4 : 0, words.hwreg[5]);
	special(r, i, KFDTRAP_WAVE_EXCP_FLAG_PRIV, gfx12 ? 4 : 0, words.hwreg[6]);
	special(r, i, KFDTRAP_WAVE_EXCP_FLAG_USER, gfx12 ? 4 : 0, words.hwreg[11]);
	special(r, i, KFDTRAP_WAVE_TRAP_CTRL, gfx12 ? 4 : 0, words.hwreg[12]);
	special(r, i, KFDTRAP_WAVE_SPECIAL_COUNT, 0, 0);
}

static void check_lds(const struct reading *r, size_t i)
{
	const struct kfdtrap_wave_layout *l = &r->layouts[i];
	const struct wave_desc *leader = &r->p->waves[l->leader];
	const uint8_t *in = l->lds_size ? at(r, l->lds_offset, l->lds_size) : NULL;

	for (uint32_t k = 0; in && k < l->lds_size / 4; k++)
		if (!SAME_AT(k, number_at(in + (size_t)k * 4, 4),
			     wave_value(leader, WAVE_LDS, k, 0)))
			return;
}

/* ---- one population ---- */

static void compare(const struct population *p)
{
	static struct reading r;

	memset(&r, 0, sizeof(r));
	r.p = p;
	r.arch = kfdtrap_wave_arch_find(p->silicon->gfx_target_version);
	r.context = (struct kfdtrap_wave_context){ p->ttmp_setup, p->debug_prop, p->r_version };
	if (!same(r.arch != NULL, true, "arch", 0))
		return;
	check_header(&r);
	check_walk(&r);
	for (size_t i = 0; i < r.n && i < p->n && !now.failures; i++) {
		now.wave = (long)i;
		check_state(&r, i);
		check_barriers(&r, i);
		check_scalars(&r, i);
		check_specials(&r, i);
		check_vectors(&r, i);
		if (r.layouts[i].first || i % 4 == 0)
			check_lds(&r, i);
	}
}

static bool run_population(const struct wave_silicon *g, uint64_t seed)
{
	struct population p;
	int r = population_create(g, seed, &p);

	now.gfx = g->name;
	now.population = seed;
	now.wave = -1;
	now.failures = 0;
	if (!r)
		compare(&p);
	else
		same((uint64_t)r, 0, "encoder's answer", 0);
	population_destroy(&p);
	return !now.failures;
}

/* WAVE_POPULATION=GFX:SEED, as a failure prints it. */
static bool is_wanted(const struct wave_silicon *g, uint64_t *ret_seed, bool *ret_only)
{
	const char *only = getenv("WAVE_POPULATION");
	size_t n = strlen(g->name);

	*ret_only = only != NULL;
	if (!only)
		return true;
	if (strncmp(only, g->name, n) || only[n] != ':')
		return false;
	*ret_seed = strtoull(only + n + 1, NULL, 0);
	return true;
}

static void run_generation(const struct wave_silicon *g)
{
	unsigned int n = 0, failed = 0;
	uint64_t seed;
	bool only;

	for (; n < POPULATIONS && failed < 5; n++) {
		seed = test_random();
		if (!is_wanted(g, &seed, &only))
			return;
		failed += !run_population(g, seed);
		if (only)
			break;
	}
	TEST_EQ(failed, 0);
}

static void decodes_what_was_encoded(void)
{
	const struct wave_silicon *g;

	for (size_t i = 0; (g = wave_silicon_at(i)); i++)
		run_generation(g);
}

/* ---- packets ---- */

static void finds_the_dispatch_of_a_packet(void)
{
	for (int row = 0; row < 20000; row++) {
		uint64_t packets = UINT64_C(1) << (test_random() % 26);
		uint64_t read = test_random() >> (8 + test_random() % 50);
		uint64_t write = read + 1 + test_random() % packets;
		uint64_t id = read + test_random() % (write - read), got = 0;

		TEST_ROW_EQ(row, kfdtrap_wave_dispatch_id(read, write, packets * 64,
							  (uint32_t)(id % packets), &got),
			    KFDTRAP_WAVE_OK);
		TEST_ROW_EQ(row, got, id);
		if (write == read + packets)
			continue;
		TEST_ROW_EQ(row, kfdtrap_wave_dispatch_id(read, write, packets * 64,
							  (uint32_t)(write % packets), &got),
			    KFDTRAP_WAVE_PACKET_ID);
	}
}

TEST_SUITE(wave_differential, TEST(decodes_what_was_encoded), TEST(finds_the_dispatch_of_a_packet));
