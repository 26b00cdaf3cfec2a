/* SPDX-License-Identifier: MIT */
/* DWARF 2, section 6.4.1, with the numbers that NVIDIA's compilers use. */
#include "values/call_frame.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "base/vec.h"

#define ENTRIES_MAX (1u << 20)
#define STEPS_MAX   100000u /* Instructions for one address. */
#define STATES_MAX  4u

/* Common facts of functions. */
struct common {
	uint64_t at; /* Offset in the section. */
	uint64_t code_factor;
	int64_t data_factor;
	size_t first, size; /* Instructions. */
};

struct entry {
	uint64_t low, high;
	size_t common;
	size_t first, size;
};

struct call_frame_table {
	const uint8_t *data;
	struct common *commons;
	struct entry *entries;
	size_t n_commons, n_entries, common_capacity, entry_capacity;
};

static int add_common(struct call_frame_table *t, struct reader *r, uint64_t at)
{
	struct common c = { .at = at };
	uint8_t version = reader_u8(r);
	const char *augmentation = reader_string(r);

	if (version >= 4) {
		(void)reader_u8(r); /* Address and segment sizes. */
		(void)reader_u8(r);
	}
	c.code_factor = reader_uleb(r);
	c.data_factor = reader_sleb(r);
	if (version == 1)
		(void)reader_u8(r);
	else
		(void)reader_uleb(r);
	if (reader_is_bad(r) || *augmentation || !version || version > 4)
		return -EBADMSG;
	c.first = r->pos;
	c.size = reader_left(r);
	if (vec_reserve(&t->commons, t->n_commons, 1, &t->common_capacity, sizeof(c)) < 0)
		return -ENOMEM;
	t->commons[t->n_commons++] = c;
	return 0;
}

/* They are in the order of the section. */
static const struct common *find_common(const struct call_frame_table *t, uint64_t at)
{
	size_t low = 0, high = t->n_commons;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->commons[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < t->n_commons && t->commons[low].at == at ? &t->commons[low] : NULL;
}

static int add_entry(struct call_frame_table *t, struct reader *r, uint64_t common)
{
	const struct common *c = find_common(t, common);
	struct entry e = { .low = reader_u64(r) };

	if (__builtin_add_overflow(e.low, reader_u64(r), &e.high) || !c || reader_is_bad(r))
		return -EBADMSG;
	e.common = (size_t)(c - t->commons);
	e.first = r->pos;
	e.size = reader_left(r);
	if (vec_reserve(&t->entries, t->n_entries, 1, &t->entry_capacity, sizeof(e)) < 0)
		return -ENOMEM;
	t->entries[t->n_entries++] = e;
	return 0;
}

/* Read one entry; a broken one is passed over. */
static int read_entry(struct call_frame_table *t, struct reader *r)
{
	uint64_t at = r->pos, length = reader_u32(r), id;
	uint8_t offset_size = 4;
	struct reader inside;
	int error;

	if (length == UINT32_MAX) {
		length = reader_u64(r);
		offset_size = 8;
	}
	if (reader_is_bad(r) || length > reader_left(r))
		return -EBADMSG;
	/* Positions count from the start of the section. */
	reader_init(&inside, r->data, r->pos + length);
	reader_seek(&inside, r->pos);
	reader_skip(r, length);
	if (length < offset_size)
		return 0;
	id = offset_size == 8 ? reader_u64(&inside) : reader_u32(&inside);
	if (id == (offset_size == 8 ? UINT64_MAX : UINT32_MAX))
		error = add_common(t, &inside, at);
	else
		error = add_entry(t, &inside, id);
	return error == -EBADMSG ? 0 : error;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->low > y->low) - (x->low < y->low);
}

int call_frame_create(const void *data, size_t size, struct call_frame_table **ret)
{
	struct call_frame_table *t = calloc(1, sizeof(*t));
	struct reader r;
	int error = 0;

	if (!t)
		return -ENOMEM;
	t->data = data;
	reader_init(&r, data, size);
	while (!error && reader_left(&r)) {
		error = read_entry(t, &r);
		if (t->n_entries + t->n_commons > ENTRIES_MAX)
			error = -EFBIG;
	}
	/* What lies before a broken length is as good as ever. */
	if (error == -EBADMSG && t->n_entries)
		error = 0;
	if (error) {
		call_frame_destroy(t);
		return error;
	}
	if (t->n_entries)
		qsort(t->entries, t->n_entries, sizeof(*t->entries), compare_entries);
	*ret = t;
	return 0;
}

void call_frame_destroy(struct call_frame_table *t)
{
	if (!t)
		return;
	free(t->commons);
	free(t->entries);
	free(t);
}

/* ------------------------------------------------------------------ rules -------------------- */

struct run {
	const struct common *c;
	struct call_frame_row *row;
	const struct call_frame_row *initial; /* Rules of the common part; NULL while it runs. */
	struct call_frame_row states[STATES_MAX];
	size_t n_states;
	uint64_t at, pc;
	uint32_t *steps;
};

static void set_rule(struct run *run, uint64_t number, enum call_frame_rule rule, int64_t offset)
{
	uint64_t i = number & 0xffffff;

	if (number >> 24 != CALL_FRAME_KIND || i >= CALL_FRAME_REGISTERS)
		return; /* Of predicates and others nothing is asked. */
	if (offset < INT32_MIN || offset > INT32_MAX)
		rule = CALL_FRAME_UNKNOWN;
	run->row->registers[i].rule = (uint8_t)rule;
	run->row->registers[i].offset = rule == CALL_FRAME_SAVED ? (int32_t)offset : 0;
}

static void restore(struct run *run, uint64_t number)
{
	uint64_t i = number & 0xffffff;

	if (number >> 24 != CALL_FRAME_KIND || i >= CALL_FRAME_REGISTERS)
		return;
	if (run->initial)
		run->row->registers[i] = run->initial->registers[i];
	else
		memset(&run->row->registers[i], 0, sizeof(run->row->registers[i]));
}

static void set_moved(struct run *run, uint64_t number, uint64_t to)
{
	if (to >> 24 != CALL_FRAME_KIND || (to & 0xffffff) >= CALL_FRAME_REGISTERS) {
		set_rule(run, number, CALL_FRAME_UNKNOWN, 0);
		return;
	}
	set_rule(run, number, CALL_FRAME_MOVED, 0);
	if (number >> 24 == CALL_FRAME_KIND && (number & 0xffffff) < CALL_FRAME_REGISTERS)
		run->row->registers[number & 0xffffff].moved_to = (uint8_t)to;
}

static void set_cfa_register(struct run *run, uint64_t number)
{
	run->row->has_cfa = number >> 24 == CALL_FRAME_KIND &&
			    (number & 0xffffff) < CALL_FRAME_REGISTERS;
	run->row->cfa_register = (uint32_t)(number & 0xff);
}

static int64_t factored(const struct run *run, uint64_t offset)
{
	int64_t v;

	return __builtin_mul_overflow((int64_t)offset, run->c->data_factor, &v) ? INT64_MAX : v;
}

static bool remember(struct run *run)
{
	if (run->n_states == STATES_MAX)
		return false;
	run->states[run->n_states++] = *run->row;
	return true;
}

static bool recall(struct run *run)
{
	if (!run->n_states)
		return false;
	*run->row = run->states[--run->n_states];
	return true;
}

static void advance(struct run *run, uint64_t delta)
{
	uint64_t by;

	if (__builtin_mul_overflow(delta, run->c->code_factor, &by) ||
	    __builtin_add_overflow(run->at, by, &run->at))
		run->at = UINT64_MAX;
}

static bool step_register(struct run *run, struct reader *r, uint8_t op)
{
	uint64_t number = reader_uleb(r);

	switch (op) {
	case DW_CFA_offset_extended:
		set_rule(run, number, CALL_FRAME_SAVED, factored(run, reader_uleb(r)));
		return true;
	case DW_CFA_offset_extended_sf:
		set_rule(run, number, CALL_FRAME_SAVED, factored(run, (uint64_t)reader_sleb(r)));
		return true;
	case DW_CFA_restore_extended:
		restore(run, number);
		return true;
	case DW_CFA_undefined:
		set_rule(run, number, CALL_FRAME_LOST, 0);
		return true;
	case DW_CFA_same_value:
		set_rule(run, number, CALL_FRAME_SAME, 0);
		return true;
	case DW_CFA_register:
		set_moved(run, number, reader_uleb(r));
		return true;
	case DW_CFA_def_cfa:
		set_cfa_register(run, number);
		run->row->cfa_offset = (int64_t)reader_uleb(r);
		return true;
	case DW_CFA_def_cfa_sf:
		set_cfa_register(run, number);
		run->row->cfa_offset = factored(run, (uint64_t)reader_sleb(r));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa_register(run, number);
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		(void)reader_uleb(r);
		set_rule(run, number, CALL_FRAME_UNKNOWN, 0);
		return true;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		reader_skip(r, reader_uleb(r));
		set_rule(run, number, CALL_FRAME_UNKNOWN, 0);
		return true;
	default:
		return false;
	}
}

static bool step(struct run *run, struct reader *r)
{
	uint8_t op = reader_u8(r);

	switch (op >> 6) {
	case 1:
		advance(run, op & 0x3f);
		return true;
	case 2:
		set_rule(run, op & 0x3f, CALL_FRAME_SAVED, factored(run, reader_uleb(r)));
		return true;
	case 3:
		restore(run, op & 0x3f);
		return true;
	}
	switch (op) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		run->at = reader_u64(r);
		return true;
	case DW_CFA_advance_loc1:
		advance(run, reader_u8(r));
		return true;
	case DW_CFA_advance_loc2:
		advance(run, reader_u16(r));
		return true;
	case DW_CFA_advance_loc4:
		advance(run, reader_u32(r));
		return true;
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_def_cfa_offset:
		run->row->cfa_offset = (int64_t)reader_uleb(r);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		run->row->cfa_offset = factored(run, (uint64_t)reader_sleb(r));
		return true;
	case DW_CFA_def_cfa_expression:
		reader_skip(r, reader_uleb(r));
		run->row->has_cfa = false;
		return true;
	default:
		return step_register(run, r, op);
	}
}

static int run_program(const struct call_frame_table *t, struct run *run, size_t first, size_t size)
{
	struct reader r;

	reader_init(&r, t->data + first, size);
	while (reader_left(&r)) {
		if (++*run->steps > STEPS_MAX || !step(run, &r) || reader_is_bad(&r))
			return -EBADMSG;
		if (run->at > run->pc)
			break;
	}
	return 0;
}

static const struct entry *find_entry(const struct call_frame_table *t, uint64_t pc)
{
	size_t low = 0, high = t ? t->n_entries : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->entries[middle].low <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low && pc < t->entries[low - 1].high ? &t->entries[low - 1] : NULL;
}

size_t call_frame_bytes(const struct call_frame_table *t)
{
	if (!t)
		return 0;
	return sizeof(*t) + t->common_capacity * sizeof(*t->commons) + t->entry_capacity * sizeof(*t->entries);
}

int call_frame_find(const struct call_frame_table *t, uint64_t pc, struct call_frame_row *ret)
{
	const struct entry *e = find_entry(t, pc);
	struct call_frame_row *initial;
	uint32_t steps = 0;
	struct run *run;
	int error;

	memset(ret, 0, sizeof(*ret));
	if (!e)
		return -ENOENT;
	run = calloc(1, sizeof(*run) + sizeof(*initial));
	if (!run)
		return -ENOMEM;
	initial = (void *)(run + 1);
	run->c = &t->commons[e->common];
	run->row = ret;
	run->pc = UINT64_MAX; /* All of the common part applies. */
	run->steps = &steps;
	error = run_program(t, run, run->c->first, run->c->size);
	if (!error) {
		*initial = *ret;
		run->initial = initial;
		run->at = e->low;
		run->pc = pc;
		error = run_program(t, run, e->first, e->size);
	}
	free(run);
	return error;
}
