/* SPDX-License-Identifier: MIT */
#include "values/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORD	 4u
#define WORD_MAX 64u /* Words of a register: that of all lanes has one each. */
/* Bits that are moved one by one; more of them lie at whole bytes in every file. */
#define LOOSE_BITS_MAX 4096u

void values_place_set_hole(struct values_place *p, enum values_state state, const char *reason)
{
	p->first = 0;
	p->n = p->used = 1;
	p->pieces[0] = (struct values_piece){ .kind = VALUES_PIECE_HOLE, .bits = VALUES_REST,
					      .state = state, .reason = reason };
}

/* A reading: where bytes go, and the first thing that went wrong. */
struct reading {
	const struct values_frame *f;
	bool rows;
	struct values_bytes *problem;
};

static void tell(struct reading *g, enum values_state state, const char *reason)
{
	if (g->problem->state != VALUES_OK)
		return;
	g->problem->state = state;
	g->problem->reason = reason;
}

/* ------------------------------------------------------------------ AMD's registers ---------- */

struct amd_register {
	enum values_file file;
	char letter; /* As disassemblers write it; 0: by its name. */
	const char *name;
	uint32_t number, words;
	bool by_lane;
};

/* LLVM's AMDGPUUsage, "DWARF Register Identifier". */
static const struct amd_range {
	uint32_t first, n, number, words, lanes;
	enum values_file file;
	char letter;
	const char *name;
} amd_ranges[] = {
	{ 0, 1, 0, 1, 0, VALUES_FILE_PC, 0, "pc" },
	{ 16, 1, 0, 2, 0, VALUES_FILE_PC, 0, "pc" },
	{ 1, 1, 0, 1, 32, VALUES_FILE_EXEC, 0, "exec" },
	{ 17, 1, 0, 2, 64, VALUES_FILE_EXEC, 0, "exec" },
	{ 32, 64, 0, 1, 0, VALUES_FILE_SCALAR, 's', NULL },
	{ 1088, 42, 64, 1, 0, VALUES_FILE_SCALAR, 's', NULL },
	{ 128, 1, 0, 1, 0, VALUES_FILE_STATUS, 0, "status" },
	{ 512, 1, 0, 1, 32, VALUES_FILE_VCC, 0, "vcc" },
	{ 768, 1, 0, 2, 64, VALUES_FILE_VCC, 0, "vcc" },
	{ 1536, 256, 0, 1, 32, VALUES_FILE_VECTOR, 'v', NULL },
	{ 2560, 256, 0, 1, 64, VALUES_FILE_VECTOR, 'v', NULL },
	{ 2048, 256, 0, 1, 32, VALUES_FILE_ACCUMULATION, 'a', NULL },
	{ 3072, 256, 0, 1, 64, VALUES_FILE_ACCUMULATION, 'a', NULL },
};

static bool find_amd(uint64_t number, uint32_t lanes, struct amd_register *ret)
{
	for (size_t i = 0; i < sizeof(amd_ranges) / sizeof(amd_ranges[0]); i++) {
		const struct amd_range *a = &amd_ranges[i];

		if (number < a->first || number - a->first >= a->n || (a->lanes && a->lanes != lanes))
			continue;
		*ret = (struct amd_register){
			.file = a->file, .letter = a->letter, .name = a->name, .words = a->words,
			.number = (uint32_t)number - a->first + a->number,
			.by_lane = a->file == VALUES_FILE_VECTOR || a->file == VALUES_FILE_ACCUMULATION,
		};
		return true;
	}
	return false;
}

static bool read_word(struct reading *g, enum values_file file, uint32_t number, uint32_t lane,
		      uint32_t *ret)
{
	int r;

	if (lane != g->f->lane)
		r = g->f->machine->read_register(g->f->machine->context, lane, file, number, ret);
	else
		r = values_frame_register(g->f, file, number, ret);
	if (r == -ENODATA)
		tell(g, VALUES_NOT_SAVED, NULL);
	else if (r < 0)
		tell(g, VALUES_UNAVAILABLE, "its register is not known");
	return r == 0;
}

static void put_word(uint8_t *to, uint32_t v)
{
	for (unsigned i = 0; i < WORD; i++)
		to[i] = (uint8_t)(v >> i * 8);
}

/* @return how many bytes there are; 0 and a problem when they could not be read. */
static size_t read_amd(struct reading *g, uint64_t number, uint8_t *ret)
{
	uint32_t lanes = g->f->machine->lanes, word;
	struct amd_register a;

	if (!find_amd(number, lanes, &a)) {
		tell(g, VALUES_UNAVAILABLE, "its register is of a kind that is not known");
		return 0;
	}
	if (a.by_lane && g->rows)
		a.words = lanes;
	for (uint32_t i = 0; i < a.words && i < WORD_MAX; i++) {
		bool row = a.by_lane && g->rows;

		if (!read_word(g, a.file, row ? a.number : a.number + i, row ? i : g->f->lane, &word))
			return 0;
		put_word(ret + i * WORD, word);
	}
	return a.words * WORD;
}

/* ------------------------------------------------------------------ CUDA's registers --------- */

static bool read_local(struct reading *g, uint32_t address, uint32_t *ret)
{
	const struct values_machine *m = g->f->machine;
	uint8_t b[WORD];

	if (m->read_memory(m->context, g->f->lane, VALUES_SPACE_PRIVATE, address, b, sizeof(b)) < 0) {
		tell(g, VALUES_UNREADABLE, NULL);
		g->problem->has_address = true;
		g->problem->address = address;
		return false;
	}
	*ret = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
	return true;
}

static bool read_part(struct reading *g, const struct register_map_part *p, uint32_t *ret)
{
	uint32_t n = p->operand;

	switch (p->kind) {
	case REGISTER_MAP_PREDICATE:
	case REGISTER_MAP_UNIFORM_PREDICATE:
		return read_word(g,
				 p->kind == REGISTER_MAP_PREDICATE ? VALUES_FILE_PREDICATE :
								     VALUES_FILE_UNIFORM_PREDICATE,
				 n, g->f->lane, ret);
	case REGISTER_MAP_HALF:
	case REGISTER_MAP_UNIFORM_HALF:
		if (!read_word(g,
			       p->kind == REGISTER_MAP_HALF ? VALUES_FILE_REGISTER :
							      VALUES_FILE_UNIFORM,
			       n / 2, g->f->lane, ret))
			return false;
		*ret = n & 1 ? *ret >> 16 : *ret & 0xffff;
		return true;
	case REGISTER_MAP_FULL:
		return read_word(g, VALUES_FILE_REGISTER, n, g->f->lane, ret);
	case REGISTER_MAP_UNIFORM:
		*ret = 0;
		return n == 63 || read_word(g, VALUES_FILE_UNIFORM, n, g->f->lane, ret);
	case REGISTER_MAP_LOCAL:
		return read_local(g, n, ret);
	case REGISTER_MAP_STACK:
		return read_word(g, VALUES_FILE_REGISTER, n >> 16 & 0xff, g->f->lane, ret) &&
		       read_local(g, *ret + (n & 0xffff), ret);
	default:
		tell(g, VALUES_UNAVAILABLE, "its register is of a kind that is not known");
		return false;
	}
}

/* NVIDIA's newer compilers name registers of the machine: "R4". */
static bool is_physical(uint64_t name, uint32_t *ret)
{
	unsigned shift = 56;
	uint32_t n = 0;

	while (shift && !(name >> shift & 0xff))
		shift -= 8;
	if ((name >> shift & 0xff) != 'R' || !shift)
		return false;
	while (shift) {
		uint64_t c = name >> (shift -= 8) & 0xff;

		if (c < '0' || c > '9' || n > 255)
			return false;
		n = n * 10 + (uint32_t)(c - '0');
	}
	*ret = n;
	return n <= 255;
}

/* Has a register of PTX 64 bits, as %rd4 and %fd4 have?  A map that lacks its upper half lacks a part of it. */
static bool is_wide(uint64_t name)
{
	while (name && !(name >> 56))
		name <<= 8;
	name >>= 40;
	return name == ('%' << 16 | 'r' << 8 | 'd') || name == ('%' << 16 | 'f' << 8 | 'd');
}

static int find_parts(const struct values_frame *f, uint64_t name, struct register_map_part *parts,
		      size_t *ret_n, unsigned *ret_parts)
{
	uint32_t number;

	if (is_physical(name, &number)) {
		parts[0] = (struct register_map_part){ REGISTER_MAP_FULL, 0, number };
		*ret_n = *ret_parts = 1;
		return 0;
	}
	*ret_n = 0;
	if (!f->function)
		return -ENOENT;
	/* Unlike everything else, the map is asked with the return address itself. */
	return register_map_find(f->registers, f->function, name, f->pc - f->function_start, parts,
				 ret_n, ret_parts);
}

static size_t read_cuda(struct reading *g, uint64_t name, uint8_t *ret)
{
	struct register_map_part parts[REGISTER_MAP_PARTS_MAX];
	uint32_t words[2] = { 0 };
	bool found[2] = { false, false };
	unsigned n_parts;
	size_t n;

	if (find_parts(g->f, name, parts, &n, &n_parts) < 0) {
		tell(g, VALUES_UNAVAILABLE,
		     g->f->broken_registers ? "the table that tells its register is broken" :
					      "it is in no register here");
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t word;

		if (!read_part(g, &parts[i], &word))
			return 0;
		if (found[parts[i].part] && words[parts[i].part] != word) {
			tell(g, VALUES_UNAVAILABLE, "it is in two registers that differ");
			return 0;
		}
		words[parts[i].part] = word;
		found[parts[i].part] = true;
	}
	if (is_wide(name))
		n_parts = 2;
	for (unsigned i = 0; i < n_parts; i++)
		if (!found[i]) {
			tell(g, VALUES_UNAVAILABLE, "only a part of it is in a register here");
			return 0;
		}
	put_word(ret, words[0]);
	put_word(ret + WORD, words[1]);
	return sizeof(words);
}

/* ------------------------------------------------------------------ pieces ------------------- */

/* Copy what there is behind an offset; the rest is unknown. */
static void copy_bytes(struct reading *g, const uint8_t *from, size_t n_from, size_t offset,
		       size_t size, uint8_t *data, uint8_t *known)
{
	size_t n = offset < n_from ? n_from - offset : 0;

	if (n > size)
		n = size;
	memcpy(data, from + (n ? offset : 0), n);
	memset(known, 0xff, n);
	if (n < size)
		tell(g, VALUES_UNAVAILABLE, "its place is shorter than it");
}

static void read_memory(struct reading *g, enum values_space space, uint64_t address, size_t size,
			uint8_t *data, uint8_t *known)
{
	const struct values_machine *m = g->f->machine;

	if (m->read_memory(m->context, g->f->lane, space, address, data, size) == 0) {
		memset(known, 0xff, size);
		return;
	}
	memset(data, 0, size);
	if (g->problem->state == VALUES_OK) {
		g->problem->has_address = true;
		g->problem->address = address;
	}
	tell(g, VALUES_UNREADABLE, NULL);
}

/* Read whole bytes of a piece. */
static void read_bytes(struct reading *g, const struct values_piece *p, size_t offset, size_t size,
		       uint8_t *data, uint8_t *known)
{
	uint8_t small[WORD_MAX * WORD] = { 0 };
	size_t n;

	switch (p->kind) {
	case VALUES_PIECE_MEMORY:
		read_memory(g, p->space, p->number + offset, size, data, known);
		return;
	case VALUES_PIECE_REGISTER:
		n = g->f->is_cuda ? read_cuda(g, p->number, small) : read_amd(g, p->number, small);
		copy_bytes(g, small, n, offset, size, data, known);
		return;
	case VALUES_PIECE_BYTES:
		if (!p->bytes) {
			put_word(small, (uint32_t)p->number);
			put_word(small + WORD, (uint32_t)(p->number >> 32));
		}
		copy_bytes(g, p->bytes ? p->bytes : small, p->n_bytes, offset, size, data, known);
		return;
	default:
		tell(g, p->state, p->reason);
	}
}

static void read_bits(struct reading *g, const struct values_piece *p, uint64_t at, uint64_t bits,
		      uint8_t *data, uint8_t *known)
{
	uint8_t loose[LOOSE_BITS_MAX / 8 + 2] = { 0 }, loose_known[sizeof(loose)] = { 0 };
	uint64_t first = p->offset / 8, n = (p->offset % 8 + bits + 7) / 8;

	if (p->offset % 8 == 0 && at % 8 == 0 && bits % 8 == 0) {
		read_bytes(g, p, first, bits / 8, data + at / 8, known + at / 8);
		return;
	}
	if (bits > LOOSE_BITS_MAX) {
		tell(g, VALUES_UNAVAILABLE, "it lies at no whole byte");
		return;
	}
	read_bytes(g, p, first, n, loose, loose_known);
	for (uint64_t i = 0; i < bits; i++) {
		uint64_t from = p->offset % 8 + i, to = at + i;

		data[to / 8] |= (uint8_t)((loose[from / 8] >> from % 8 & 1) << to % 8);
		known[to / 8] |= (uint8_t)((loose_known[from / 8] >> from % 8 & 1) << to % 8);
	}
}

void values_place_read(const struct values_place *p, const struct values_frame *f, size_t size,
		       uint8_t *data, uint8_t *known, struct values_bytes *ret)
{
	struct reading g = { .f = f, .rows = p->rows, .problem = ret };
	uint64_t at = 0, total = (uint64_t)size * 8;
	size_t n_known = 0;

	*ret = (struct values_bytes){ 0 };
	memset(data, 0, size);
	memset(known, 0, size);
	for (size_t i = 0; i < p->n && at < total; i++) {
		const struct values_piece *piece = &p->pieces[p->first + i];
		uint64_t bits = piece->bits < total - at ? piece->bits : total - at;

		if (bits)
			read_bits(&g, piece, at, bits, data, known);
		at += bits;
	}
	if (at < total)
		tell(&g, VALUES_UNAVAILABLE, "its place is shorter than it");
	for (size_t i = 0; i < size; i++) {
		known[i] = known[i] == 0xff;
		n_known += known[i];
		if (!known[i])
			data[i] = 0;
	}
	/* Of what has no known size, the place alone tells. */
	if (!size && p->n && p->pieces[p->first].kind == VALUES_PIECE_HOLE)
		tell(&g, p->pieces[p->first].state, p->pieces[p->first].reason);
	else if (n_known == size)
		*ret = (struct values_bytes){ 0 };
	else if (n_known)
		ret->state = VALUES_PARTIAL;
}

/* ------------------------------------------------------------------ several lanes ------------ */

static bool is_shared(const struct values_piece *a, const struct values_piece *b, bool generic)
{
	if (a->kind != b->kind || a->bits != b->bits || a->offset != b->offset)
		return false;
	switch (a->kind) {
	case VALUES_PIECE_HOLE:
		return a->state == b->state && a->reason == b->reason;
	case VALUES_PIECE_BYTES:
		return a->bytes == b->bytes && a->n_bytes == b->n_bytes && a->number == b->number;
	case VALUES_PIECE_MEMORY:
		return a->space == b->space && a->number == b->number && a->space != VALUES_SPACE_PRIVATE &&
		       (generic || a->space != VALUES_SPACE_GENERIC);
	default:
		return false;
	}
}

bool values_place_is_shared(const struct values_place *a, const struct values_place *b, bool generic)
{
	if (a->n != b->n || a->rows != b->rows)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!is_shared(&a->pieces[a->first + i], &b->pieces[b->first + i], generic))
			return false;
	return true;
}

/* ------------------------------------------------------------------ text --------------------- */

static void print_part(const struct register_map_part *p, struct out *o)
{
	switch (p->kind) {
	case REGISTER_MAP_PREDICATE:
		out_fmt(o, "P%u", p->operand);
		break;
	case REGISTER_MAP_UNIFORM_PREDICATE:
		out_fmt(o, "UP%u", p->operand);
		break;
	case REGISTER_MAP_HALF:
	case REGISTER_MAP_UNIFORM_HALF:
		out_fmt(o, "%s%u.%s", p->kind == REGISTER_MAP_HALF ? "R" : "UR", p->operand / 2,
			   p->operand & 1 ? "H1" : "H0");
		break;
	case REGISTER_MAP_LOCAL:
		out_fmt(o, "private 0x%x", p->operand);
		break;
	case REGISTER_MAP_STACK:
		out_fmt(o, "private [R%u+0x%x]", p->operand >> 16 & 0xff, p->operand & 0xffff);
		break;
	default:
		out_fmt(o, "%s%u", p->kind == REGISTER_MAP_FULL ? "R" : "UR", p->operand);
	}
}

/* The first register of each part; others hold the same. */
static void print_cuda(const struct values_frame *f, uint64_t name, struct out *o)
{
	struct register_map_part parts[REGISTER_MAP_PARTS_MAX];
	unsigned n_parts, next = 0;
	size_t n;

	if (find_parts(f, name, parts, &n, &n_parts) < 0) {
		out_str(o, "?");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (parts[i].part != next)
			continue;
		if (next++)
			out_str(o, ":");
		print_part(&parts[i], o);
	}
}

static void print_register(const struct values_frame *f, uint64_t number, struct out *o)
{
	struct amd_register a;

	if (f->is_cuda)
		print_cuda(f, number, o);
	else if (!find_amd(number, f->machine->lanes, &a))
		out_str(o, "?");
	else if (a.letter)
		out_fmt(o, "%c%u", a.letter, a.number);
	else
		out_str(o, a.name);
}

void values_place_print(const struct values_place *p, const struct values_frame *f, struct out *o)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct values_piece *piece = &p->pieces[p->first + i];

		if (i)
			out_str(o, ":");
		switch (piece->kind) {
		case VALUES_PIECE_REGISTER:
			print_register(f, piece->number, o);
			break;
		case VALUES_PIECE_MEMORY:
			out_fmt(o, "%s 0x%llx", values_space_name(piece->space),
				   (unsigned long long)(piece->number + piece->offset / 8));
			break;
		case VALUES_PIECE_BYTES:
			out_str(o, "constant");
			break;
		default:
			out_str(o, "-");
		}
	}
}
