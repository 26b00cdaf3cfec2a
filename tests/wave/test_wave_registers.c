/* SPDX-License-Identifier: MIT */
/* Registers of random waves of every generation, from the encoder's bytes to what a reply says. */
#include "agentd/worker/kfd/registers.h"
#include "population.h"
#include "testlib.h"

#define SEEDS 40

static const struct target_registers_wanted all = { .banks = UINT32_MAX, .count = UINT32_MAX };

/* One wave of a population as the worker finds it. */
struct scene {
	struct population p;
	struct target_device device;
	struct rpc_queue queue;
	struct queue_capture capture;
	struct save_area area;
	struct saved_wave record;
	struct rpc_arena arena;
};

static const struct rpc_scalar_register *named(const struct rpc_scalar_register *list, size_t n,
					       const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static void check_special(long long row, const struct scene *s, const struct wave_desc *w,
			  const struct rpc_wave_registers *r)
{
	const struct {
		const char *name;
		uint64_t want;
	} rows[] = { { "pc", w->pc }, { "m0", w->m0 } };
	bool wave32 = s->record.layout.lanes == 32;
	const struct rpc_scalar_register *exec = named(r->special, r->n_special, "exec");
	const struct rpc_scalar_register *vcc = named(r->special, r->n_special, "vcc");

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		const struct rpc_scalar_register *reg = named(r->special, r->n_special, rows[i].name);

		CU_ASSERT_PTR_NOT_NULL_FATAL(reg);
		TEST_ROW_EQ(row, reg->value, rows[i].want);
	}
	CU_ASSERT_PTR_NOT_NULL_FATAL(exec);
	TEST_ROW_EQ(row, exec->value, wave32 ? w->exec & UINT32_MAX : w->exec);
	TEST_ROW_EQ(row, exec->bits, wave32 ? 32 : 64);
	if (vcc)
		TEST_ROW_EQ(row, vcc->value, wave32 ? w->vcc & UINT32_MAX : w->vcc);
}

static void check_scalar(long long row, const struct wave_desc *w, const struct rpc_wave_registers *r)
{
	char name[16];

	for (uint32_t i = 0; i < r->n_scalar; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		TEST_ROW_STR(row, r->scalar[i].name, name);
		TEST_ROW_EQ(row, r->scalar[i].value, wave_value(w, WAVE_SGPR, i, 0));
	}
}

/* @param first  Number of the first of this kind in the bank. */
static void check_vector(long long row, const struct wave_desc *w, enum wave_kind kind,
			 const char *prefix, const struct rpc_vector_register *list, uint32_t n,
			 uint32_t first)
{
	char name[16];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%u", prefix, first + i);
		TEST_ROW_STR(row, list[i].name, name);
		for (uint32_t lane = 0; lane < list[i].n_lanes; lane++)
			if (list[i].lanes[lane] != wave_value(w, kind, i, lane)) {
				TEST_ROW_EQ(row, list[i].lanes[lane], wave_value(w, kind, i, lane));
				return;
			}
	}
}

static void check_wave(long long row, struct scene *s, const struct wave_desc *w)
{
	struct rpc_wave_registers r = { 0 };

	rpc_arena_reset(&s->arena);
	saved_wave_fill(&s->arena, &s->record, &all, &r);
	TEST_ROW_EQ(row, rpc_arena_error(&s->arena), 0);
	TEST_ROW_EQ(row, r.vector_count, w->vgprs + w->shared_vgprs);
	TEST_ROW_EQ(row, r.n_vector, r.vector_count);
	TEST_ROW_EQ(row, r.n_accumulator, w->acc_vgprs);
	TEST_ROW_EQ(row, r.accumulator_count, w->acc_vgprs);
	TEST_ROW_EQ(row, r.n_trap, 9);
	CU_ASSERT(r.n_scalar > 0 && r.n_scalar <= 106);
	check_special(row, s, w, &r);
	check_scalar(row, w, &r);
	check_vector(row, w, WAVE_VGPR, "v", r.vector, w->vgprs, 0);
	check_vector(row, w, WAVE_SHARED, "v", r.vector + w->vgprs, w->shared_vgprs, w->vgprs);
	check_vector(row, w, WAVE_ACC, "a", r.accumulator, w->acc_vgprs, 0);
}

static void check_population(long long row, struct scene *s)
{
	const struct wave_save *save = &s->p.save;
	const struct kfdtrap_wave_context context = { s->p.ttmp_setup, s->p.debug_prop, s->p.r_version };
	uint8_t header[KFDTRAP_WAVE_HEADER_SIZE] = { 0 };
	struct kfdtrap_wave_iter iter;
	struct saved_wave *r = &s->record;

	memcpy(header, save->header, sizeof(save->header));
	TEST_EQ_FATAL(kfdtrap_wave_header_parse(header, save->header[2], &s->area.header), 0);
	kfdtrap_wave_iter_init(&iter, s->capture.arch, &s->area.header, save->bytes, save->header[1],
			       POPULATION_WAVES_MAX);
	while (kfdtrap_wave_next(&iter, &r->layout)) {
		const struct kfdtrap_wave_layout *l = &r->layout;
		uint32_t end = l->first && l->lds_size ? l->lds_offset : l->top_offset;
		auto_free uint8_t *bytes = malloc(end - l->vgpr_offset);

		/* Of exactly this size, so that the sanitizer sees a byte too many. */
		r->size = end - l->vgpr_offset;
		memcpy(bytes, save->bytes + (l->vgpr_offset - save->header[0]), r->size);
		r->bytes = bytes;
		kfdtrap_wave_read_state(s->capture.arch, &context, l,
					save->bytes + (kfdtrap_wave_hot_offset(l) - save->header[0]),
					&r->state);
		check_wave(row, s, &s->p.waves[l->index]);
	}
	TEST_ROW_EQ(row, iter.n_waves, s->p.n);
}

static void every_register_of_every_generation(void)
{
	const struct wave_silicon *g;

	for (size_t i = 0; (g = wave_silicon_at(i)); i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			struct scene s = { .capture.arch = kfdtrap_wave_arch_find(g->gfx_target_version) };

			s.capture.device = &s.device;
			s.capture.queue = &s.queue;
			s.area.capture = &s.capture;
			s.record.area = &s.area;
			rpc_arena_init(&s.arena, (size_t)64 << 20);
			TEST_EQ_FATAL(population_create(g, seed, &s.p), 0);
			check_population((long long)(i * 1000 + seed), &s);
			population_destroy(&s.p);
			rpc_arena_deinit(&s.arena);
		}
}

TEST_SUITE(wave_registers, TEST(every_register_of_every_generation));
