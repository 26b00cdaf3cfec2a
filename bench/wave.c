/* SPDX-License-Identifier: MIT */
/*
 * Wave decode beside memcpy over the same bytes: the control stack, and 128 bytes of each wave.
 *
 * usage: bench_wave WAVES ROUNDS
 * Prints one line per case: NAME BYTES DECODE-NS MEMCPY-NS, each time the median of the rounds,
 * taken in turns.  "packed": the 128 bytes lie one behind the other, as after the copy that is
 * made while a queue is stopped.  "in_place": they lie where the hardware saved them, inside an
 * area with all registers.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kfdtrap_wave.h"

#define GROUP	     4u /* Waves per workgroup. */
#define STATE_GFX942 0x81000b05u /* 48 total, 8 arch VGPRs, 80 SGPRs, 2560 bytes LDS: one group. */
#define PAGE	     4096u
#define AHEAD	     16u
#define ROUNDS_MAX   1001u

struct scene {
	const struct kfdtrap_wave_arch *arch;
	struct kfdtrap_wave_header header;
	uint8_t *area;
	uint8_t *packed; /* 128 bytes per wave. */
	uint8_t *copy;	 /* Where memcpy puts the same bytes. */
	uint32_t n_waves;
};

static const struct kfdtrap_wave_context context = { .ttmp_setup = 1, .r_version = 11 };
static volatile uint64_t sink;
static uint32_t *offset_list;

static void put32(uint8_t *p, uint32_t value)
{
	memcpy(p, &value, sizeof(value));
}

/* A new state per workgroup, as the hardware writes it for each dispatch at least. */
static uint32_t put_control_stack(uint8_t *p, uint32_t n_waves)
{
	uint8_t *start = p;

	p += 8;
	for (uint32_t i = 0; i < n_waves; i++) {
		bool first = i % GROUP == 0, last = i % GROUP == GROUP - 1 || i == n_waves - 1;

		if (first) {
			put32(p, STATE_GFX942);
			p += 4;
		}
		put32(p, (uint32_t)first << 17 | (uint32_t)last << 16 | i % 512);
		p += 4;
	}
	return (uint32_t)(p - start);
}

/* One wave in eight has trapped, the others run. */
static void put_wave(uint8_t *area, const struct kfdtrap_wave_layout *l)
{
	uint8_t *ttmp = area + l->ttmp_offset, *hwreg = area + l->hwreg_offset;

	put32(hwreg + 4, 0x1000 + l->index % 7 * 4);
	put32(hwreg + 8, 0x7f12);
	put32(hwreg + 12, 0xffffffff);
	put32(hwreg + 20, 0x10041);
	put32(hwreg + 36, 0xc03f0);
	put32(ttmp + 4 * 6, l->index % 8 == 0 ? 0x44000000 : 0);
	put32(ttmp + 4 * 8, l->leader / GROUP);
	put32(ttmp + 4 * 11, 0x80000140 | l->index % GROUP);
}

static void walk_all(struct scene *s,
		     void (*visit)(struct scene *, const struct kfdtrap_wave_layout *))
{
	struct kfdtrap_wave_iter iter;
	struct kfdtrap_wave_layout layout;

	kfdtrap_wave_iter_init(&iter, s->arch, &s->header,
			       s->area + s->header.control_stack_offset,
			       s->header.control_stack_size, UINT32_MAX);
	while (kfdtrap_wave_next(&iter, &layout))
		visit(s, &layout);
	/* While the size of the data is not known yet, some are left. */
	if (iter.n_waves != s->n_waves)
		abort();
	s->header.wave_state_size = s->header.wave_state_offset - iter.top;
}

static void visit_nothing(struct scene *s, const struct kfdtrap_wave_layout *l)
{
}

static void visit_fill(struct scene *s, const struct kfdtrap_wave_layout *l)
{
	put_wave(s->area, l);
	memcpy(s->packed + (size_t)l->index * KFDTRAP_WAVE_HOT_SIZE,
	       s->area + kfdtrap_wave_hot_offset(l), KFDTRAP_WAVE_HOT_SIZE);
}

/* As the hardware leaves it: wave data begin at a page, the control stack ends there. */
static void build(struct scene *s, uint32_t n_waves)
{
	uint32_t boundary = (KFDTRAP_WAVE_HEADER_SIZE + 8 + n_waves * 8 + PAGE - 1) / PAGE * PAGE;
	struct kfdtrap_wave_header *h = &s->header;
	uint8_t *stack = calloc(1, boundary);

	s->arch = kfdtrap_wave_arch_find(90402);
	s->n_waves = n_waves;
	h->control_stack_size = put_control_stack(stack, n_waves);
	h->control_stack_offset = boundary - h->control_stack_size;
	s->area = calloc(1, boundary);
	memcpy(s->area + h->control_stack_offset, stack, h->control_stack_size);
	free(stack);
	/* How much data these waves need: walk with more than enough, then say what was used. */
	h->wave_state_size = UINT32_C(1) << 31;
	h->wave_state_offset = boundary + h->wave_state_size;
	walk_all(s, visit_nothing);
	h->wave_state_offset = boundary + h->wave_state_size;
	stack = s->area;
	s->area = aligned_alloc(PAGE, (h->wave_state_offset + PAGE - 1) / PAGE * PAGE);
	memcpy(s->area, stack, boundary);
	free(stack);
	memset(s->area + boundary, 0x5a, h->wave_state_size);
	s->packed = calloc(n_waves, KFDTRAP_WAVE_HOT_SIZE);
	s->copy = calloc(1, (size_t)n_waves * KFDTRAP_WAVE_HOT_SIZE + h->control_stack_size);
	walk_all(s, visit_fill);
}

/* What a grouping reader needs of a wave goes into a sum, so that nothing is optimised away. */
static uint64_t read_wave(const struct scene *s, const struct kfdtrap_wave_layout *l, bool packed)
{
	const uint8_t *hot = packed ? s->packed + (size_t)l->index * KFDTRAP_WAVE_HOT_SIZE
				    : s->area + kfdtrap_wave_hot_offset(l);
	struct kfdtrap_wave_state state;

	if (kfdtrap_wave_read_state(s->arch, &context, l, hot, &state) != 0)
		abort();
	return state.pc + state.stop_reasons + state.workgroup[0] + state.packet;
}

/* Walking a few waves ahead lets their bytes arrive before they are read. */
static void decode(const struct scene *s, bool packed)
{
	struct kfdtrap_wave_layout layouts[AHEAD];
	struct kfdtrap_wave_iter iter;
	uint64_t sum = 0;
	uint32_t n = 0;

	kfdtrap_wave_iter_init(&iter, s->arch, &s->header,
			       s->area + s->header.control_stack_offset,
			       s->header.control_stack_size, UINT32_MAX);
	while (kfdtrap_wave_next(&iter, &layouts[n % AHEAD])) {
		if (!packed) {
			__builtin_prefetch(s->area + layouts[n % AHEAD].hwreg_offset);
			__builtin_prefetch(s->area + layouts[n % AHEAD].ttmp_offset);
		}
		n++;
		if (n >= AHEAD)
			sum += read_wave(s, &layouts[n % AHEAD], packed);
	}
	for (uint32_t i = n < AHEAD ? 0 : n - AHEAD + 1; i < n; i++)
		sum += read_wave(s, &layouts[i % AHEAD], packed);
	if (iter.problem != KFDTRAP_WAVE_OK || n != s->n_waves)
		abort();
	sink = sum;
}

/* The peer is told where the bytes are; finding that out is part of the decoder's work. */
static void copy(struct scene *s, bool packed, const uint32_t *offsets)
{
	size_t hot_size = (size_t)s->n_waves * KFDTRAP_WAVE_HOT_SIZE;

	memcpy(s->copy + hot_size, s->area + s->header.control_stack_offset,
	       s->header.control_stack_size);
	if (packed)
		memcpy(s->copy, s->packed, hot_size);
	else
		for (uint32_t i = 0; i < s->n_waves; i++)
			memcpy(s->copy + (size_t)i * KFDTRAP_WAVE_HOT_SIZE, s->area + offsets[i],
			       KFDTRAP_WAVE_HOT_SIZE);
	sink = s->copy[hot_size / 2];
}

/* Time of this thread alone: other load on the machine is not the decoder's. */
static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void measure(struct scene *s, const char *name, bool packed, const uint32_t *offsets,
		    uint32_t rounds)
{
	static uint64_t ours[ROUNDS_MAX], peer[ROUNDS_MAX];

	for (uint32_t i = 0; i < rounds; i++) {
		uint64_t start = now_ns(), middle;

		decode(s, packed);
		middle = now_ns();
		copy(s, packed, offsets);
		ours[i] = middle - start;
		peer[i] = now_ns() - middle;
	}
	qsort(ours, rounds, sizeof(ours[0]), by_value);
	qsort(peer, rounds, sizeof(peer[0]), by_value);
	printf("%s %zu %llu %llu\n", name,
	       (size_t)s->n_waves * KFDTRAP_WAVE_HOT_SIZE + s->header.control_stack_size,
	       (unsigned long long)ours[rounds / 2], (unsigned long long)peer[rounds / 2]);
}

static void visit_offset(struct scene *s, const struct kfdtrap_wave_layout *l)
{
	offset_list[l->index] = kfdtrap_wave_hot_offset(l);
}

int main(int argc, char **argv)
{
	unsigned long n_waves = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long rounds = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	struct scene s = { 0 };

	if (n_waves == 0 || n_waves > 100000 || rounds == 0 || rounds > ROUNDS_MAX) {
		fputs("usage: bench_wave WAVES (to 100000) ROUNDS (to 1001)\n", stderr);
		return 2;
	}
	build(&s, (uint32_t)n_waves);
	offset_list = calloc(n_waves, sizeof(*offset_list));
	walk_all(&s, visit_offset);
	measure(&s, "packed", true, offset_list, (uint32_t)rounds);
	measure(&s, "in_place", false, offset_list, (uint32_t)rounds);
	free(offset_list);
	free(s.area);
	free(s.packed);
	free(s.copy);
	return 0;
}
