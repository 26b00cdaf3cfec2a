/* SPDX-License-Identifier: MIT */
/* DWARF 5, section 6.4, with the pointers and augmentations of .eh_frame (Linux Standard Base, Core, 10.6). */
#include "hoststack/native/rules.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/reader.h"
#include "hoststack/native/processor.h"

#define STATES_MAX 8
/* DWARF for the Arm 64-bit Architecture, 4.2: what is known of the return address's signature changes. */
#define DW_CFA_AARCH64_negate_ra_state_with_pc 0x2c
#define DW_CFA_AARCH64_negate_ra_state	       0x2d

/* What the entry of a kind of functions says. */
struct common {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t encoding; /* Of addresses (DW_EH_PE_*). */
	bool has_size;	  /* Entries have a size of what is no instruction. */
	bool is_signal;
	struct reader code;
};

/* What executes the instructions. */
struct machine {
	const struct native_processor *processor;
	const struct common *common;
	uint64_t address; /* Where the bytes lie in the process. */
	uint64_t at, pc;
	struct native_rules *now;
	const struct native_rules *first;
	struct native_rules states[STATES_MAX];
	size_t n_states;
};

/* ------------------------------------------------------------------ pointers ----------------- */

/* @param address  Where the reader's first byte lies. */
static uint64_t read_pointer(struct reader *r, uint8_t encoding, uint64_t address)
{
	const uint64_t from = address + r->pos;
	uint64_t v = 0;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		v = reader_u64(r);
		break;
	case DW_EH_PE_udata4:
		v = reader_u32(r);
		break;
	case DW_EH_PE_sdata4:
		v = (uint64_t)(int64_t)(int32_t)reader_u32(r);
		break;
	case DW_EH_PE_udata2:
		v = reader_u16(r);
		break;
	case DW_EH_PE_sdata2:
		v = (uint64_t)(int64_t)(int16_t)reader_u16(r);
		break;
	case DW_EH_PE_uleb128:
		v = reader_uleb(r);
		break;
	case DW_EH_PE_sleb128:
		v = (uint64_t)reader_sleb(r);
		break;
	default:
		reader_fail(r);
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		v += from;
	else if (encoding & 0x70)
		reader_fail(r);
	return v;
}

/* ------------------------------------------------------------------ entries ------------------ */

static void read_augmentation(struct reader *r, const char *letters, struct common *c)
{
	const size_t size = reader_uleb(r), begin = r->pos;

	for (; *letters && !reader_is_bad(r); letters++) {
		if (*letters == 'R')
			c->encoding = reader_u8(r);
		else if (*letters == 'S')
			c->is_signal = true;
		else if (*letters == 'L')
			reader_u8(r);
		else if (*letters == 'P')
			/* What the pointer means does not matter, its size does. */
			read_pointer(r, reader_u8(r) & 0x0f, 0);
		else if (*letters != 'B')
			break;
	}
	if (r->pos - begin > size)
		reader_fail(r);
	reader_seek(r, begin);
	reader_skip(r, size);
}

static int read_common(const struct native_processor *p, const struct native_entry *e, struct common *ret)
{
	struct common c = { .encoding = DW_EH_PE_absptr };
	const char *augmentation;
	uint64_t return_register;
	struct reader r;
	uint8_t version;

	reader_init(&r, e->bytes, e->size);
	if (reader_u32(&r) != 0)
		return -EBADMSG;
	version = reader_u8(&r);
	augmentation = reader_string(&r);
	if (!augmentation || (version != 1 && version != 3))
		return -EBADMSG;
	c.code_factor = reader_uleb(&r);
	c.data_factor = reader_sleb(&r);
	return_register = version == 1 ? reader_u8(&r) : reader_uleb(&r);
	c.has_size = augmentation[0] == 'z';
	if (c.has_size)
		read_augmentation(&r, augmentation + 1, &c);
	else if (augmentation[0])
		return -EBADMSG;
	c.code = r;
	*ret = c;
	return reader_is_bad(&r) || return_register != p->return_address ? -EBADMSG : 0;
}

/* ------------------------------------------------------------------ instructions ------------- */

static void set(struct machine *m, uint64_t number, uint8_t rule, int64_t value)
{
	if (number < m->processor->n_registers)
		m->now->registers[number] = (struct native_cell){ .rule = rule, .value = value };
}

static void set_factored(struct machine *m, uint64_t number, uint8_t rule, uint64_t factor)
{
	set(m, number, rule, (int64_t)(factor * (uint64_t)m->common->data_factor));
}

static struct native_cell read_expression(struct reader *r, uint8_t rule)
{
	struct native_cell c = { .rule = rule };

	c.size = reader_uleb(r);
	c.expression = reader_bytes(r, c.size);
	return c;
}

static void set_expression(struct machine *m, struct reader *r, uint8_t rule)
{
	const uint64_t number = reader_uleb(r);
	const struct native_cell c = read_expression(r, rule);

	if (number < m->processor->n_registers)
		m->now->registers[number] = c;
}

static void restore(struct machine *m, struct reader *r, uint64_t number)
{
	if (!m->first)
		reader_fail(r);
	else if (number < m->processor->n_registers)
		m->now->registers[number] = m->first->registers[number];
}

static void restore_state(struct machine *m, struct reader *r)
{
	if (m->n_states)
		*m->now = m->states[--m->n_states];
	else
		reader_fail(r);
}

static void remember_state(struct machine *m, struct reader *r)
{
	if (m->n_states < STATES_MAX)
		m->states[m->n_states++] = *m->now;
	else
		reader_fail(r);
}

static void advance(struct machine *m, uint64_t units)
{
	m->at += units * m->common->code_factor;
}

/* The frame's address. @return whether it was one of these instructions. */
static bool execute_cfa(struct machine *m, struct reader *r, uint8_t op)
{
	struct native_cell *cfa = &m->now->cfa;

	switch (op) {
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
		m->now->cfa_register = reader_uleb(r);
		*cfa = (struct native_cell){ .rule = NATIVE_IS_OFFSET };
		cfa->value = op == DW_CFA_def_cfa ? (int64_t)reader_uleb(r) :
						    (int64_t)((uint64_t)reader_sleb(r) *
							      (uint64_t)m->common->data_factor);
		return true;
	case DW_CFA_def_cfa_register:
		m->now->cfa_register = reader_uleb(r);
		return true;
	case DW_CFA_def_cfa_offset:
		cfa->value = (int64_t)reader_uleb(r);
		return true;
	case DW_CFA_def_cfa_offset_sf:
		cfa->value = (int64_t)((uint64_t)reader_sleb(r) * (uint64_t)m->common->data_factor);
		return true;
	case DW_CFA_def_cfa_expression:
		*cfa = read_expression(r, NATIVE_IS_EXPRESSION);
		return true;
	default:
		return false;
	}
}

/* One register.  @return whether it was one of these instructions. */
static bool execute_register(struct machine *m, struct reader *r, uint8_t op)
{
	uint64_t number;

	switch (op) {
	case DW_CFA_undefined:
		set(m, reader_uleb(r), NATIVE_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set(m, reader_uleb(r), NATIVE_SAME, 0);
		return true;
	case DW_CFA_restore_extended:
		restore(m, r, reader_uleb(r));
		return true;
	case DW_CFA_offset_extended:
		number = reader_uleb(r);
		set_factored(m, number, NATIVE_AT_OFFSET, reader_uleb(r));
		return true;
	case DW_CFA_offset_extended_sf:
		number = reader_uleb(r);
		set_factored(m, number, NATIVE_AT_OFFSET, (uint64_t)reader_sleb(r));
		return true;
	case DW_CFA_val_offset:
		number = reader_uleb(r);
		set_factored(m, number, NATIVE_IS_OFFSET, reader_uleb(r));
		return true;
	case DW_CFA_val_offset_sf:
		number = reader_uleb(r);
		set_factored(m, number, NATIVE_IS_OFFSET, (uint64_t)reader_sleb(r));
		return true;
	case DW_CFA_register:
		number = reader_uleb(r);
		set(m, number, NATIVE_IN_REGISTER, (int64_t)reader_uleb(r));
		return true;
	case DW_CFA_expression:
		set_expression(m, r, NATIVE_AT_EXPRESSION);
		return true;
	case DW_CFA_val_expression:
		set_expression(m, r, NATIVE_IS_EXPRESSION);
		return true;
	default:
		return false;
	}
}

static void execute_other(struct machine *m, struct reader *r, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		m->at = read_pointer(r, m->common->encoding, m->address);
		break;
	case DW_CFA_advance_loc1:
		advance(m, reader_u8(r));
		break;
	case DW_CFA_advance_loc2:
		advance(m, reader_u16(r));
		break;
	case DW_CFA_advance_loc4:
		advance(m, reader_u32(r));
		break;
	case DW_CFA_remember_state:
		remember_state(m, r);
		break;
	case DW_CFA_restore_state:
		restore_state(m, r);
		break;
	case DW_CFA_GNU_args_size:
		reader_uleb(r);
		break;
	case DW_CFA_AARCH64_negate_ra_state_with_pc:
	case DW_CFA_AARCH64_negate_ra_state:
		/* A signature is removed from whatever may have one. */
		if (!m->processor->signs_addresses)
			reader_fail(r);
		break;
	default:
		reader_fail(r);
	}
}

/* Up to the instruction that is asked for.  Each step takes a byte at least, so they end. */
static int execute(struct machine *m, struct reader *r)
{
	while (reader_left(r)) {
		const uint8_t byte = reader_u8(r), low = byte & 0x3f;

		if ((byte & 0xc0) == DW_CFA_advance_loc)
			advance(m, low);
		else if ((byte & 0xc0) == DW_CFA_offset)
			set_factored(m, low, NATIVE_AT_OFFSET, reader_uleb(r));
		else if ((byte & 0xc0) == DW_CFA_restore)
			restore(m, r, low);
		else if (!execute_cfa(m, r, byte) && !execute_register(m, r, byte))
			execute_other(m, r, byte);
		if (m->at > m->pc)
			break;
	}
	return reader_is_bad(r) ? -EBADMSG : 0;
}

int native_rules_read(const struct native_processor *processor, const struct native_entry *common,
		      const struct native_entry *function, uint64_t pc, struct native_rules *ret)
{
	struct native_rules first = { 0 }, now;
	struct machine m = { .processor = processor, .now = &first, .pc = pc };
	struct common c;
	struct reader r;
	uint64_t size;
	int e = read_common(processor, common, &c);

	if (e < 0)
		return e;
	reader_init(&r, function->bytes, function->size);
	reader_u32(&r);
	first.begin = read_pointer(&r, c.encoding, function->address);
	size = read_pointer(&r, c.encoding & 0x0f, 0);
	if (c.has_size)
		reader_skip(&r, reader_uleb(&r));
	if (reader_is_bad(&r) || size > UINT64_MAX - first.begin)
		return -EBADMSG;
	first.end = first.begin + size;
	first.is_signal = c.is_signal;
	if (pc < first.begin || pc >= first.end)
		return -ENOENT;
	m.common = &c;
	m.address = common->address;
	/* Those of the common entry hold everywhere. */
	e = execute(&m, &c.code);
	now = first;
	m.now = &now;
	m.first = &first;
	m.at = first.begin;
	m.address = function->address;
	m.n_states = 0;
	if (e == 0)
		e = execute(&m, &r);
	if (e == 0 && now.cfa.rule == NATIVE_UNSAID)
		e = -EBADMSG;
	if (e == 0)
		*ret = now;
	return e;
}
