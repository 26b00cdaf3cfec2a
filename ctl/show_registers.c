/* SPDX-License-Identifier: MIT */
/* Registers of a wave as text: one line of facts, then blocks of hexadecimal words. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctl/cli_words.h"
#include "ctl/ctl.h"
#include "ctl/document/code_text.h"
#include "ctl/terminal/text.h"

/* Registers or lanes of 32 bits in a line, and the columns in front of them: 80 in all at most. */
#define WORDS_A_LINE  8u
#define NAME_COLUMNS  15
#define ALIKE_COLUMNS 7
#define LANES_COLUMNS 5

/* Begin a block with a title; the caller ends the line. */
static struct out *title(struct ctl *c, const char *text)
{
	bool color = c->output.color;

	out_fmt(&c->output.text, "%s%s%s", color_begin(COLOR_HEADER, color), text,
		color_end(COLOR_HEADER, color));
	return &c->output.text;
}

/* Append a name and blanks up to a column, at least one. */
static void name_column(struct out *o, const char *name, size_t columns)
{
	text_put(o, "", name, "");
	out_fmt(o, "%*s", (int)(strlen(name) < columns ? columns - strlen(name) : 1), "");
}

/* Append `NAME VALUE` lines, for registers that each mean something else. */
static void print_named(struct ctl *c, const char *what, const struct rpc_scalar_register *list,
			size_t n)
{
	struct out *o = &c->output.text;

	if (!n)
		return;
	out_char(title(c, what), '\n');
	for (size_t i = 0; i < n; i++) {
		name_column(o, list[i].name, NAME_COLUMNS);
		out_fmt(o, "%0*" PRIx64 "\n", (int)list[i].bits / 4, list[i].value);
	}
}

/* Whether two names differ in their numbers only. */
static bool is_alike(const char *a, const char *b)
{
	size_t n = strcspn(a, "0123456789");

	return n == strcspn(b, "0123456789") && memcmp(a, b, n) == 0;
}

/*
 * Append several values to a line, with the name of the first one: for registers that are all
 * alike.
 */
static void print_alike(struct ctl *c, const char *what, const struct rpc_scalar_register *list,
			size_t n)
{
	struct out *o = &c->output.text;

	if (!n)
		return;
	out_char(title(c, what), '\n');
	for (size_t i = 0, in_line = 0; i < n; i++) {
		bool ends = i + 1 == n || !is_alike(list[i].name, list[i + 1].name);

		if (in_line == 0)
			name_column(o, list[i].name, ALIKE_COLUMNS);
		in_line = ends || in_line + 1 == WORDS_A_LINE ? 0 : in_line + 1;
		out_fmt(o, "%08" PRIx64 "%c", list[i].value, in_line ? ' ' : '\n');
	}
}

/* Append a vector register of some lanes, as far as the wave has them. */
static void print_lanes(struct out *o, const struct rpc_vector_register *v, uint64_t lanes)
{
	uint32_t in_line = 0;
	bool is_first = true;

	for (uint32_t lane = 0; lane < v->n_lanes && lane < 64; lane++) {
		bool goes_on = lane + 1 < v->n_lanes && lane < 63 && lanes >> (lane + 1) & 1;

		if (!(lanes >> lane & 1))
			continue;
		if (!in_line)
			name_column(o, is_first ? v->name : "", LANES_COLUMNS);
		if (!in_line)
			out_fmt(o, "%2u: ", lane);
		is_first = false;
		in_line = goes_on && in_line + 1 < WORDS_A_LINE ? in_line + 1 : 0;
		out_fmt(o, "%08" PRIx64 "%c", v->lanes[lane], in_line ? ' ' : '\n');
	}
}

static void print_vectors(struct ctl *c, const char *what, const struct rpc_vector_register *list, size_t n,
			  uint64_t lanes)
{
	if (!n)
		return;
	out_char(title(c, what), '\n');
	for (size_t i = 0; i < n; i++)
		print_lanes(&c->output.text, &list[i], lanes);
}

/* Append the functions that led to where the wave is, the innermost one first. */
static void print_callers(struct ctl *c, const struct rpc_caller *callers, size_t n)
{
	struct out *o = &c->output.text;

	if (!n)
		return;
	out_char(title(c, "callers"), '\n');
	for (size_t i = 0; i < n; i++) {
		const char *place = code_text_location(&c->arena, callers[i].frames,
						       callers[i].n_frames, callers[i].address);

		name_column(o, rpc_arena_printf(&c->arena, "%zu", i), NAME_COLUMNS);
		out_fmt(o, "%016" PRIx64 "  ", callers[i].address);
		text_put(o, "", place ? place : "", "\n");
	}
}

/* Append a line of facts, broken where the terminal is too narrow for it. */
static void print_facts(struct ctl *c, const char *name, const char *facts)
{
	auto_out struct out line = { 0 }, wrapped = { 0 };

	/* Broken as a whole, and printed in two parts: a colour takes no columns. */
	name_column(&line, name, NAME_COLUMNS);
	out_str(&line, facts ? facts : "");
	if (out_error(&line))
		return;
	text_wrap(&wrapped, line.data, line.size, c->output.width, NAME_COLUMNS);
	if (!out_error(&wrapped))
		out_str(title(c, name), wrapped.data + strlen(name));
}

/* Append what the packet of the wave's dispatch says. */
static void print_packet(struct ctl *c, const struct rpc_dispatch_packet *p)
{
	const uint32_t *w = p->workgroup_size, *g = p->grid_size;
	struct rpc_arena *a = &c->arena;
	const char *sizes = "";

	if (p->n_workgroup_size == 3 && p->n_grid_size == 3)
		sizes = rpc_arena_printf(a, ", %u,%u,%u %s in %s of %u,%u,%u", g[0], g[1], g[2],
					 vendor_word(c->vendor, "lanes"),
					 vendor_word(c->vendor, "workgroups"), w[0], w[1], w[2]);
	print_facts(c, vendor_word(c->vendor, "dispatch"),
		    c->vendor == RPC_VENDOR_NVIDIA
			    ? rpc_arena_printf(a, "kernel at 0x%" PRIx64 "%s", p->kernel_object, sizes ? sizes : "")
			    : rpc_arena_printf(a, "kernel object 0x%" PRIx64 ", arguments 0x%" PRIx64 "%s",
					       p->kernel_object, p->kernarg_address, sizes ? sizes : ""));
}

static const char *three(struct ctl *c, const uint32_t *v)
{
	return rpc_arena_printf(&c->arena, "%u,%u,%u", v[0], v[1], v[2]);
}

/* Append which cluster the wave's workgroup is in. */
static void print_cluster(struct ctl *c, const struct rpc_cluster *k)
{
	const char *index = k->n_index == 3 ? three(c, k->index) : "?";

	print_facts(c, "cluster",
		    k->n_size == 3 ? rpc_arena_printf(&c->arena, "%s, %s %s", index ? index : "", three(c, k->size),
						      vendor_word(c->vendor, "workgroups")) :
				     index);
}

/* Append what memory a wave has besides that of the process. */
static void print_memory(struct ctl *c, const struct rpc_wave_registers *r)
{
	bool nvidia = c->vendor == RPC_VENDOR_NVIDIA;

	print_facts(c, "memory",
		    rpc_arena_printf(&c->arena, "%s %u bytes, %s%s", nvidia ? "shared" : "lds", r->lds_bytes,
				     r->scratch ? "" : "no ", nvidia ? "local memory" : "private memory"));
}

/* What registers of a bank are called: NVIDIA's have one value for a warp, or one for each thread. */
static const char *bank_title(const struct ctl *c, enum rpc_register_bank bank)
{
	if (c->vendor != RPC_VENDOR_NVIDIA)
		return rpc_enum_name(&rpc_register_bank_enum, bank);
	return bank == RPC_REGISTER_BANK_SCALAR	  ? "uniform"
	       : bank == RPC_REGISTER_BANK_VECTOR ? "of each thread"
						  : rpc_enum_name(&rpc_register_bank_enum, bank);
}

int show_registers(struct ctl *c, const struct rpc_wave_registers *r, uint64_t lanes)
{
	struct out *o = &c->output.text;
	int e = show_waves(c, &r->wave, 1);

	if (e < 0)
		return e;
	if (r->has_packet)
		print_packet(c, &r->packet);
	if (r->has_cluster)
		print_cluster(c, &r->cluster);
	print_memory(c, r);
	out_char(o, '\n');
	print_callers(c, r->callers, r->n_callers);
	print_named(c, "special", r->special, r->n_special);
	print_alike(c, bank_title(c, RPC_REGISTER_BANK_SCALAR), r->scalar, r->n_scalar);
	print_vectors(c, bank_title(c, RPC_REGISTER_BANK_VECTOR), r->vector, r->n_vector, lanes);
	print_vectors(c, "accumulator", r->accumulator, r->n_accumulator, lanes);
	print_named(c, "trap", r->trap, r->n_trap);
	for (size_t i = 0; i < r->n_missing; i++) {
		out_str(title(c, "missing"), "  ");
		text_put(o, "", cli_words(c, r->missing[i]), "\n");
	}
	return 0;
}
