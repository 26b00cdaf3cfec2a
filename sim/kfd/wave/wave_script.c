/* SPDX-License-Identifier: MIT */
/* Parses the text of waves.h: each line is a kind of wave with changes, and makes so many waves. */
#include "wave_script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Most waves of a script, and registers chosen by a line. */
#define WAVES_MAX  100000u
#define PLANTS_MAX 64
#define DEFAULT_PC UINT64_C(0x7f0000001000)
#define FLAG(m)	   (UINT64_C(1) << (m))
#define DIVIDE_BY_ZERO 4u

/* ---- kinds ---- */

struct line;

/* A kind of wave: what its word stands for. */
struct kind {
	const char *name;
	uint32_t loop;
	bool stopped, behind_trap, finishes;
	uint32_t trap_id, math;
	uint64_t flags;
	/* Makes waves of a kind differ from each other. */
	void (*vary)(const struct line *l, struct wave_actor *a);
};

/* All but the last wave of each workgroup wait; that one has not arrived. */
static void vary_barrier(const struct line *l, struct wave_actor *a);

/* Waves of a workgroup have different lanes active, each at a position of its own. */
static void vary_divergence(const struct line *l, struct wave_actor *a)
{
	static const uint64_t masks[] = { UINT64_C(0x5555555555555555),
					  UINT64_C(0xaaaaaaaaaaaaaaaa), UINT64_C(0xff), 1 };

	a->desc.exec &= masks[a->desc.wave_in_group % ARRAY_SIZE(masks)];
	a->pc += 16 * (a->desc.wave_in_group % ARRAY_SIZE(masks));
}

static const struct kind kinds[] = {
	{ "spin", .loop = 32 },
	{ "progress", .loop = 4096, .finishes = true },
	{ "memory", .stopped = true, .flags = FLAG(WAVE_XNACK_ERROR) | FLAG(WAVE_MEM_VIOL) },
	{ "address", .stopped = true, .flags = FLAG(WAVE_MEM_VIOL) },
	{ "illegal", .stopped = true, .flags = FLAG(WAVE_ILLEGAL) },
	{ "math", .stopped = true, .math = DIVIDE_BY_ZERO },
	{ "watch", .stopped = true, .flags = FLAG(WAVE_WATCH_ENABLE) | FLAG(WAVE_WATCH0) },
	{ "breakpoint", .stopped = true, .behind_trap = true, .trap_id = 1 },
	{ "assert", .stopped = true, .behind_trap = true, .trap_id = 2 },
	{ "debugtrap", .stopped = true, .behind_trap = true, .trap_id = 3 },
	{ "stopped", .stopped = true },
	{ "halted", .flags = FLAG(WAVE_HALT) },
	{ "barrier", .flags = FLAG(WAVE_IN_BARRIER), .vary = vary_barrier },
	{ "divergence", .vary = vary_divergence },
};

static const struct kind *kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

/* ---- one line ---- */

/* A line as it was parsed; UNSET where a default depends on other values. */
struct line {
	const struct kind *kind;
	/* Of a barrier: what the last wave of each workgroup is, and where; which wave is not there. */
	const struct kind *last;
	uint64_t late, early, late_loop, wave, gone, behind, bit, signals, through;
	uint64_t n, group, xcc, pc, loop, exec, packet;
	uint64_t wave32, vgprs, acc, shared, sgprs, lds;
	uint64_t scratch;
	uint64_t trap, halt, m0, mode, vcc, flat, xnack, junk, banks;
	struct wave_barrier cluster, named[WAVE_NAMED_BARRIERS];
	uint32_t workgroup[3], grid[3];
	uint32_t size[3], items[3]; /* Of a workgroup, and of all; a size of 0: not told. */
	struct wave_plant plants[PLANTS_MAX];
	size_t n_plants;
};

#define UNSET UINT64_MAX

/* The values of a line that says nothing but the kind. */
static void line_init(const struct wave_script_place *place, const struct kind *kind,
		      struct line *l)
{
	memset(l, 0, sizeof(*l));
	l->kind = kind;
	l->n = 1;
	l->group = 4;
	l->xcc = l->packet = l->acc = l->wave = l->gone = l->signals = UNSET;
	l->late = 64;
	l->late_loop = 32;
	l->bit = 1;
	l->pc = DEFAULT_PC;
	l->loop = kind->loop;
	l->exec = UINT64_MAX;
	l->wave32 = place->wave32;
	l->vgprs = place->silicon->vgpr_granule32 > 8 ? place->silicon->vgpr_granule32 : 8;
	l->sgprs = place->silicon->sgprs ? place->silicon->sgprs : 64;
	l->lds = place->silicon->lds_unit;
	l->trap = kind->trap_id;
	l->mode = 0x3f0;
	l->vcc = 0x10;
	l->grid[0] = UINT32_MAX;
	l->grid[1] = l->grid[2] = UINT16_MAX;
}

/* Read the name of a register or of a word of LDS: "v3.7", "s4", "lds12". */
static int parse_register(struct line *l, const char *name, uint64_t value)
{
	static const struct {
		const char *prefix;
		enum wave_kind kind;
	} banks[] = { { "lds", WAVE_LDS }, { "s", WAVE_SGPR }, { "v", WAVE_VGPR },
		      { "a", WAVE_ACC },   { "h", WAVE_SHARED } };
	struct wave_plant p = { .lane = WAVE_ALL_LANES, .value = (uint32_t)value };
	char digits[16];
	const char *dot;
	size_t i = 0;
	uint64_t n;

	while (i < ARRAY_SIZE(banks) && !str_starts_with(name, banks[i].prefix))
		i++;
	if (i == ARRAY_SIZE(banks) || l->n_plants == PLANTS_MAX || value > UINT32_MAX)
		return -EINVAL;
	name += strlen(banks[i].prefix);
	dot = strchrnul(name, '.');
	if (dot - name >= (ptrdiff_t)sizeof(digits))
		return -EINVAL;
	memcpy(digits, name, (size_t)(dot - name));
	digits[dot - name] = '\0';
	if (str_to_u64(digits, 0, UINT32_MAX, &n))
		return -EINVAL;
	p.kind = banks[i].kind;
	p.index = (uint32_t)n;
	if (*dot && str_to_u64(dot + 1, 0, 63, &n))
		return -EINVAL;
	if (*dot)
		p.lane = (uint32_t)n;
	l->plants[l->n_plants++] = p;
	return 0;
}

/* Read X[,Y[,Z]].  @param max  Of Y and Z. */
static int parse_triple(uint32_t triple[3], uint32_t max, char *value)
{
	char *save = NULL;
	uint64_t n;
	int i = 0;

	for (char *t = strtok_r(value, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (i == 3 || str_to_u64(t, 0, i ? max : UINT32_MAX, &n))
			return -EINVAL;
		triple[i++] = (uint32_t)n;
	}
	return 0;
}

/* Read MEMBERS,SIGNALS of a barrier. */
static int parse_barrier(struct wave_barrier *b, char *value)
{
	uint32_t numbers[3] = { 0 };

	if (parse_triple(numbers, 127, value) || numbers[0] > 127 || numbers[2])
		return -EINVAL;
	*b = (struct wave_barrier){ .members = numbers[0], .signals = numbers[1] };
	return 0;
}

/* Read NUMBER,MEMBERS,SIGNALS of a named barrier. */
static int parse_named(struct line *l, char *value)
{
	uint32_t numbers[3] = { 0 };

	if (parse_triple(numbers, 127, value) || !numbers[0] || numbers[0] > WAVE_NAMED_BARRIERS)
		return -EINVAL;
	l->named[numbers[0] - 1] = (struct wave_barrier){ .members = numbers[1], .signals = numbers[2] };
	return 0;
}

/* Read KEY=VALUE. */
static int parse_pair(struct line *l, char *pair)
{
	const struct {
		const char *name;
		uint64_t *value, max;
	} keys[] = {
		{ "n", &l->n, WAVES_MAX },	    { "group", &l->group, 32 },
		{ "xcc", &l->xcc, 63 },		    { "pc", &l->pc, UINT64_MAX >> 16 },
		{ "loop", &l->loop, 1u << 20 },	    { "exec", &l->exec, UINT64_MAX },
		{ "packet", &l->packet, 1u << 25 }, { "wave32", &l->wave32, 1 },
		{ "vgprs", &l->vgprs, 1024 },	    { "acc", &l->acc, 512 },
		{ "shared", &l->shared, 120 },	    { "sgprs", &l->sgprs, 128 },
		{ "lds", &l->lds, 1u << 20 },	    { "trap", &l->trap, 255 },
		{ "halt", &l->halt, 1 },	    { "m0", &l->m0, UINT32_MAX },
		{ "mode", &l->mode, 0x7ff },	    { "vcc", &l->vcc, UINT64_MAX },
		{ "flat", &l->flat, UINT64_MAX },   { "xnack", &l->xnack, UINT64_MAX },
		{ "junk", &l->junk, 1 },	    { "scratch", &l->scratch, 1 },
		{ "late", &l->late, 1u << 20 },	    { "late-loop", &l->late_loop, 1u << 20 },
		{ "wave", &l->wave, 31 },	    { "gone", &l->gone, 31 },
		{ "behind", &l->behind, 1 },
		{ "early", &l->early, 1u << 20 },  { "bit", &l->bit, 1 },
		{ "signals", &l->signals, 127 },   { "banks", &l->banks, 63 },
		{ "through", &l->through, 1 },
	};
	char *value = strchr(pair, '=');
	uint64_t n;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(pair, "last")) {
		l->last = kind_find(value);
		return l->last ? 0 : -EINVAL;
	}
	if (!strcmp(pair, "cluster"))
		return parse_barrier(&l->cluster, value);
	if (!strcmp(pair, "named"))
		return parse_named(l, value);
	if (!strcmp(pair, "workgroup"))
		return parse_triple(l->workgroup, UINT16_MAX, value);
	if (!strcmp(pair, "grid"))
		return parse_triple(l->grid, UINT16_MAX, value);
	if (!strcmp(pair, "size"))
		return parse_triple(l->size, UINT16_MAX, value);
	if (!strcmp(pair, "items"))
		return parse_triple(l->items, UINT32_MAX, value);
	if (str_to_u64_any(value, &n))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcmp(keys[i].name, pair))
			continue;
		*keys[i].value = n;
		return n <= keys[i].max ? 0 : -EINVAL;
	}
	return parse_register(l, pair, n);
}

/* Refuse what no queue can have. */
static int line_check(const struct wave_script_place *place, const struct line *l)
{
	if (!l->n || !l->group || l->loop % 4 || l->late % 4 || l->early % 4 || l->late_loop % 4)
		return -EINVAL;
	if ((l->xcc != UNSET && l->xcc >= place->n_xcc) || l->early > l->pc)
		return -EINVAL;
	if (!l->grid[0] || !l->grid[1] || !l->grid[2])
		return -EINVAL;
	/* Both are told, or neither. */
	return !l->size[0] != !l->items[0] ? -EINVAL : 0;
}

/* Fill in the defaults that depend on other values. */
static void line_complete(const struct wave_script_place *place, struct line *l)
{
	if (l->acc == UNSET)
		l->acc = place->silicon->acc == WAVE_ACC_NONE	   ? 0
			 : place->silicon->acc == WAVE_ACC_AS_ARCH ? l->vgprs
								   : 8 + l->vgprs % 8;
	if (l->wave32)
		l->exec &= UINT32_MAX;
	/* A stopped wave stays where it is. */
	if (l->kind->stopped || l->halt)
		l->loop = 0;
}

/* ---- waves ---- */

static void registers_set(const struct line *l, struct wave_desc *w)
{
	w->wave32 = l->wave32;
	w->vgprs = (uint32_t)l->vgprs;
	w->acc_vgprs = (uint32_t)l->acc;
	w->shared_vgprs = (uint32_t)l->shared;
	w->sgprs = (uint32_t)l->sgprs;
	w->lds_size = (uint32_t)l->lds;
	w->exec = l->exec;
	w->vcc = l->vcc;
	w->flat_scratch = l->flat;
	w->xnack_mask = l->xnack;
	w->m0 = (uint32_t)l->m0;
	w->mode = (uint32_t)l->mode;
	w->is_noisy = l->junk;
	w->vgpr_banks = (uint32_t)l->banks;
	w->cluster = l->cluster;
	memcpy(w->named, l->named, sizeof(w->named));
}

static void flags_set(const struct wave_script_place *place, const struct line *l, const struct kind *kind,
		      struct wave_desc *w)
{
	w->flags = kind->flags | FLAG(WAVE_VALID) | FLAG(WAVE_TRAP_EN);
	if (l->group > 1)
		w->flags |= FLAG(WAVE_IN_GROUP);
	if (l->through)
		w->flags |= FLAG(WAVE_BARRIER_COMPLETE) | FLAG(WAVE_NAMED_COMPLETE) | FLAG(WAVE_CLUSTER_COMPLETE);
	if (!w->exec)
		w->flags |= FLAG(WAVE_EXECZ);
	if (!w->vcc)
		w->flags |= FLAG(WAVE_VCCZ);
	w->math = w->math_enable = kind->math;
	w->stopped = kind->stopped;
	w->saved_halt = l->halt;
	if (l->halt && !w->stopped)
		w->flags |= FLAG(WAVE_HALT);
	w->trap_id = kind == l->kind ? (uint32_t)l->trap : kind->trap_id;
	w->handler_written = w->stopped || place->silicon->ttmps == WAVE_TTMPS_CLASSIC;
}

static bool is_late(const struct line *l, const struct wave_desc *w)
{
	return l->wave == UNSET ? w->last && !w->first : w->wave_in_group == l->wave;
}

static void vary_barrier(const struct line *l, struct wave_actor *a)
{
	if (!is_late(l, &a->desc)) {
		a->pc += l->behind ? 4 : 0;
		if (!l->bit)
			a->desc.flags &= ~FLAG(WAVE_IN_BARRIER);
		return;
	}
	a->desc.flags &= ~FLAG(WAVE_IN_BARRIER);
	a->pc = l->early ? a->pc - l->early : a->pc + l->late;
	a->loop = a->desc.stopped ? 0 : (uint32_t)l->late_loop;
	a->at = 0;
}

static void group_set(const struct line *l, uint32_t group, uint32_t ret[3])
{
	ret[0] = l->workgroup[0] + group % l->grid[0];
	ret[1] = l->workgroup[1] + group / l->grid[0] % l->grid[1];
	ret[2] = l->workgroup[2] + group / l->grid[0] / l->grid[1];
}

/*
 * How many work items a workgroup has.  At the far edges of a grid it is cut off, and its items are counted as those
 * of a smaller one (NUM_THREAD_PARTIAL of COMPUTE_NUM_THREAD_X to Z).
 */
static uint64_t items_of(const struct line *l, const uint32_t group[3])
{
	uint64_t n = 1;

	for (int i = 0; i < 3; i++) {
		uint64_t from = (uint64_t)group[i] * l->size[i];
		uint64_t left = l->items[i] > from ? l->items[i] - from : 0;

		n *= left < l->size[i] ? left : l->size[i];
	}
	return n;
}

/* How many lanes of a wave have a work item, by the number of the wave in its workgroup. */
static uint32_t lanes_of(const struct line *l, const uint32_t group[3], uint32_t in_group)
{
	uint32_t width = l->wave32 ? 32 : 64;
	uint64_t items, from = (uint64_t)in_group * width;

	if (!l->size[0])
		return width;
	items = items_of(l, group);
	return items <= from ? 0 : items - from < width ? (uint32_t)(items - from) : width;
}

/* Make wave number i of a line.  @return false: no work item is left for it. */
static bool actor_init(const struct wave_script_place *place, const struct line *l, uint32_t i,
		       size_t index, struct wave_actor *a)
{
	uint32_t group = i / (uint32_t)l->group, in_group = i % (uint32_t)l->group;
	struct wave_desc *w = &a->desc;
	const struct kind *kind;
	uint32_t lanes;

	memset(a, 0, sizeof(*a));
	group_set(l, group, w->group);
	lanes = lanes_of(l, w->group, in_group);
	if (!lanes)
		return false;
	registers_set(l, w);
	w->exec &= UINT64_MAX >> (64 - lanes);
	w->first = in_group == (l->gone == 0);
	w->last = in_group == l->group - 1 - (l->gone == l->group - 1) || i == l->n - 1 ||
		  !lanes_of(l, w->group, in_group + 1);
	w->wave_in_group = in_group;
	w->group_yz = true;
	w->engine = i % (UINT32_C(1) << (place->silicon->engine.width));
	w->scratch_slot = i % (UINT32_C(1) << (place->silicon->scratch_slot.width));
	w->scratch_enabled = l->scratch;
	w->seed = (place->seed ^ index) * UINT64_C(0x9e3779b97f4a7c15);
	a->xcc = (uint32_t)l->xcc;
	a->has_packet = l->packet != UNSET;
	w->packet_slot = a->has_packet ? (uint32_t)l->packet : 0;
	a->pc = l->pc;
	a->loop = (uint32_t)l->loop;
	a->at = a->loop ? i * 4 % a->loop : 0;
	kind = l->last && w->last && !w->first ? l->last : l->kind;
	a->finishes = kind->finishes;
	a->behind_trap = kind->behind_trap;
	flags_set(place, l, kind, w);
	if (l->group > 1) {
		w->barrier.members = (uint32_t)l->group - (l->gone < l->group);
		w->barrier.signals = l->signals != UNSET ? (uint32_t)l->signals : w->barrier.members - 1;
	}
	if (l->kind->vary)
		l->kind->vary(l, a);
	w->pc = a->pc;
	return true;
}

/* Keep the registers of a line, which all its waves share. */
static int plants_add(struct wave_script *s, const struct line *l, struct wave_plants **ret)
{
	struct wave_plants *p = malloc(sizeof(*p) + l->n_plants * sizeof(p->plants[0]));

	if (!p)
		return -ENOMEM;
	p->n = l->n_plants;
	memcpy(p->plants, l->plants, l->n_plants * sizeof(p->plants[0]));
	p->next = s->plants;
	s->plants = p;
	*ret = p;
	return 0;
}

/* Add the waves of a line; without an XCC, workgroups go around all of them. */
static int line_add(const struct wave_script_place *place, const struct line *l,
		    struct wave_script *s)
{
	struct wave_plants *plants;
	struct wave_actor *waves;

	if (s->n + l->n > WAVES_MAX)
		return -EINVAL;
	waves = realloc(s->waves, (s->n + l->n) * sizeof(*waves));
	if (!waves)
		return -ENOMEM;
	s->waves = waves;
	if (plants_add(s, l, &plants))
		return -ENOMEM;
	for (uint32_t i = 0; i < l->n; i++) {
		struct wave_actor *a = &s->waves[s->n];

		if (i % l->group == l->gone || !actor_init(place, l, i, s->n, a))
			continue;
		if (l->xcc == UNSET)
			a->xcc = (uint32_t)(s->n_groups % place->n_xcc);
		a->desc.plants = plants->plants;
		a->desc.n_plants = plants->n;
		s->n++;
		s->n_groups += a->desc.last;
	}
	return 0;
}

static int parse_line(const struct wave_script_place *place, char *text, struct wave_script *s)
{
	const struct kind *kind;
	char *save = NULL, *word = strtok_r(text, " \t", &save);
	struct line l;
	int r = 0;

	if (!word || *word == '#')
		return 0;
	kind = kind_find(word);
	if (!kind)
		return -EINVAL;
	line_init(place, kind, &l);
	while (!r && (word = strtok_r(NULL, " \t", &save)))
		r = parse_pair(&l, word);
	if (!r)
		r = line_check(place, &l);
	if (r)
		return r;
	line_complete(place, &l);
	return line_add(place, &l, s);
}

int wave_script_parse(const struct wave_script_place *place, const char *text,
		      struct wave_script *ret)
{
	auto_free char *copy = strdup(text);
	char *save = NULL;
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	ret->silicon = place->silicon;
	if (!copy)
		return -ENOMEM;
	for (char *t = strtok_r(copy, "\n;", &save); t && !r; t = strtok_r(NULL, "\n;", &save))
		r = parse_line(place, t, ret);
	return r;
}

void wave_script_deinit(struct wave_script *s)
{
	struct wave_plants *p;

	while ((p = s->plants)) {
		s->plants = p->next;
		free(p);
	}
	free(s->waves);
	memset(s, 0, sizeof(*s));
}

/* ---- movement ---- */

uint64_t wave_actor_pc(const struct wave_actor *a, uint32_t r_version)
{
	/* Up to version 11, the handler leaves the pc behind the s_trap. */
	if (a->behind_trap)
		return a->pc + (r_version < 12 ? 4 : 0);
	return a->pc + a->at;
}

void wave_actor_run(struct wave_actor *a)
{
	/* Steps of one to four instructions, a different one for each wave. */
	if (a->loop)
		a->at = (a->at + 4 + (uint32_t)(a->desc.seed >> 40) % 4 * 4) % a->loop;
}
