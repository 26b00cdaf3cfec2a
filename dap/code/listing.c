/* SPDX-License-Identifier: MIT */
/*
 * The code of a function as a text, which an editor shows where the source is not on this machine: a line for each
 * instruction, and one that names the source line where that changes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/code/instructions.h"
#include "dap/code/texts.h"
#include "disasm/disasm.h"

/* Bytes of code in one listing; of code that no symbol names, where it may be anything; and of its text. */
#define CODE_MAX     (UINT64_C(32) << 10)
#define UNNAMED_MAX  1024u
#define TEXT_MAX     ((size_t)1 << 20)
/* Longest name, and most addresses of one call to the agent. */
#define NAME_MAX_SHOWN 200u
#define ADDRESSES_MAX  4096u

/* Code as it was read, or why it could not be. */
struct code {
	uint8_t *bytes; /* NULL: it could not. */
	size_t size;
	const char *why;
};

/* ------------------------------------------------------------------ text --------------------- */

/* Append a name that somebody else has chosen: it must not make a line of its own. */
static void put_name(struct out *o, const char *name)
{
	for (size_t i = 0; name[i] && i < NAME_MAX_SHOWN; i++)
		out_char(o, (unsigned char)name[i] < ' ' || name[i] == '\x7f' ? '?' : name[i]);
}

/* End a line.  @param address  That of its instruction, or 0. */
static void end_line(struct dap_text *l, uint64_t address)
{
	out_char(&l->text, '\n');
	if (l->n_lines < l->room)
		l->addresses[l->n_lines++] = address;
}

/* Begin the text, with room for so many lines.  @return false without memory. */
static bool begin_text(struct dap_text *l, size_t n_lines)
{
	dap_text_clear(l);
	out_init(&l->text, 0);
	l->addresses = calloc(n_lines, sizeof(*l->addresses));
	l->room = l->addresses ? n_lines : 0;
	return l->addresses;
}

/* Append the place in the source where it is another than that of the line above. */
static void put_place(struct dap_text *l, const struct rpc_code_place *p, const struct rpc_frame **above)
{
	const struct rpc_frame *f = p->n_frames ? &p->frames[0] : NULL;

	if (!f || !f->file || !f->has_line)
		return;
	if (*above && (*above)->line == f->line && !strcmp((*above)->file, f->file))
		return;
	*above = f;
	out_str(&l->text, "; ");
	put_name(&l->text, f->file);
	out_fmt(&l->text, ":%u", f->line);
	end_line(l, 0);
}

/* Append instructions with their places, as many as one call to the agent takes. */
static void put_some(struct dap *d, struct dap_text *l, const struct disasm_line *lines, size_t n)
{
	struct rpc_arena arena;
	const struct rpc_code_place *places;
	const struct rpc_frame *above = NULL;
	uint64_t *addresses;

	rpc_arena_init(&arena, 0);
	addresses = rpc_arena_array(&arena, n, sizeof(*addresses));
	for (size_t i = 0; addresses && i < n; i++)
		addresses[i] = lines[i].address;
	places = addresses ? dap_locate(d, &arena, addresses, n) : NULL;
	for (size_t i = 0; i < n && l->text.size < TEXT_MAX; i++) {
		if (places)
			put_place(l, &places[i], &above);
		out_fmt(&l->text, "0x%012" PRIx64 "  ", lines[i].address);
		put_name(&l->text, lines[i].text);
		end_line(l, lines[i].address);
	}
	rpc_arena_deinit(&arena);
}

/* A text that says why there is none. */
static int put_failure(struct dap_text *l, const char *why)
{
	if (!begin_text(l, 1))
		return -ENOMEM;
	out_fmt(&l->text, "; no code can be read at 0x%" PRIx64 ": ", l->start);
	put_name(&l->text, why);
	end_line(l, l->start);
	return out_error(&l->text);
}

/* Write the text of code that was read. */
static int put_code(struct dap *d, struct dap_text *l, const uint8_t *code, size_t size)
{
	size_t room = size / disasm_word_size(d->disasm) + 1, at, n;
	const struct disasm_range range = { .start = l->start, .around = l->start, .count = room };
	auto_free struct disasm_line *lines = calloc(room, sizeof(*lines));
	ssize_t got;

	if (!lines || !begin_text(l, 2 * room + 2))
		return -ENOMEM;
	got = disasm_lines(d->disasm, code, size, &range, lines, &at);
	if (got < 0)
		return put_failure(l, strerror((int)-got));
	n = (size_t)got;
	dap_disasm_note(d);
	out_str(&l->text, "; ");
	put_name(&l->text, l->name);
	out_fmt(&l->text, ": %zu bytes at 0x%" PRIx64 ", %s%s", size, l->start, l->cpu,
		l->whole ? "" : "; the function begins before it");
	end_line(l, 0);
	for (size_t i = 0; i < n && l->text.size < TEXT_MAX; i += ADDRESSES_MAX)
		put_some(d, l, lines + i, n - i < ADDRESSES_MAX ? n - i : ADDRESSES_MAX);
	return out_error(&l->text);
}

/* Read what is listed. */
static struct code read_code(struct dap *d, const struct dap_text *l)
{
	const struct rpc_memory_read_params p = { .session = d->session, .address = l->start,
						  .size = (uint32_t)l->size };
	struct agent_err err = { 0 };
	struct code c = { 0 };
	int r = dap_disasm_for(d, l->cpu, &err);

	if (r == 0)
		r = dap_memory_get(d, &p, &c.bytes, &c.size, &err);
	if (r == 0 && !c.size)
		r = dap_invalid(&err, "there is no memory");
	if (r < 0)
		c = (struct code){ .why = rpc_arena_printf(&d->arena, "%s", dap_plain(err.message)) };
	return c;
}

static uint64_t digest_of(const struct code *c)
{
	const char *why = c->why ? c->why : "";

	return c->bytes ? dap_text_digest(c->bytes, c->size) : dap_text_digest(why, strlen(why));
}

/* Make the text of what was read, which says so where there is no code.  @return 0, -ENOMEM. */
static int put_text(struct dap *d, struct dap_text *l, const struct code *c)
{
	int r = c->bytes ? put_code(d, l, c->bytes, c->size) : put_failure(l, c->why ? c->why : "");

	if (r < 0)
		dap_text_clear(l);
	dap_text_keep(d, l);
	return r;
}

/* See dap_text.make. */
static int make_again(struct dap *d, struct dap_text *l, struct agent_err *err)
{
	const struct code c = read_code(d, l);

	if (digest_of(&c) != l->digest)
		return dap_invalid(err, "sourceReference: other code is at 0x%" PRIx64 " now", l->start);
	return put_text(d, l, &c) < 0 ? agent_err_no_memory(err, NULL) : 0;
}

/* ------------------------------------------------------------------ references --------------- */

/* Fill in what is shown around an address. */
static void choose_code(struct dap_text *l, const struct rpc_code_place *place, uint64_t pc)
{
	const struct rpc_symbol *s = place && place->has_symbol && place->symbol.address <= pc ? &place->symbol : NULL;

	*l = (struct dap_text){ .start = pc, .size = UNNAMED_MAX, .whole = true };
	if (!s)
		return;
	/* What is too long is shown from the address on. */
	l->whole = pc - s->address < CODE_MAX;
	l->start = l->whole ? s->address : pc;
	l->size = s->size > l->start - s->address ? s->size - (l->start - s->address) : UNNAMED_MAX;
	if (l->size > CODE_MAX)
		l->size = CODE_MAX;
	/* The size of a symbol may be wrong, and the address that is looked for must be there. */
	if (l->size <= pc - l->start)
		l->size = pc - l->start + UNNAMED_MAX;
}

/* The name of the source: no path, and another one for each reference. */
static char *source_name(const char *symbol, uint64_t start)
{
	auto_out struct out o = { 0 };
	char *at;

	if (symbol)
		put_name(&o, symbol);
	out_fmt(&o, "%s0x%" PRIx64 ".s", symbol ? "@" : "", start);
	if (out_error(&o))
		return NULL;
	while ((at = strchr(o.data, '/')))
		*at = '_';
	return strdup(o.data);
}

/* Make a new text one of the code that was chosen. */
static bool name_text(struct dap_text *t, const struct dap_text *chosen, const char *symbol)
{
	t->name = source_name(symbol, chosen->start);
	t->mime_type = "text/x-asm";
	t->make = make_again;
	str_copy(t->cpu, sizeof(t->cpu), chosen->cpu);
	t->start = chosen->start;
	t->size = chosen->size;
	t->whole = chosen->whole;
	return t->name;
}

/* Find the text of the code around an address, as it is now.  @return NULL: it cannot be had. */
static struct dap_text *find_text(struct dap *d, const char *cpu, const struct rpc_code_place *place, uint64_t pc)
{
	const char *symbol = place && place->has_symbol ? place->symbol.name : NULL, *what;
	struct dap_text chosen, *t;
	struct code c;

	choose_code(&chosen, place, pc);
	str_copy(chosen.cpu, sizeof(chosen.cpu), cpu);
	what = rpc_arena_printf(&d->arena, "code %s %s 0x%" PRIx64 " %s", place && place->uri ? place->uri : "",
				symbol ? symbol : "", chosen.start, cpu);
	t = what ? dap_text_current(d, what) : NULL;
	if (!what || (t && t->text.size))
		return t;
	c = read_code(d, &chosen);
	t = dap_text_take(d, what, digest_of(&c));
	if (!t || (!t->name && !name_text(t, &chosen, symbol)))
		return NULL;
	return t->text.size || put_text(d, t, &c) == 0 ? t : NULL;
}

uint32_t dap_listing_at(struct dap *d, uint32_t gpu_id, const struct rpc_code_place *place, uint64_t pc,
			const char **ret_name, uint32_t *ret_line)
{
	const struct rpc_device *device = dap_device(d, gpu_id);
	const struct dap_text *t = device ? find_text(d, device->arch, place, pc) : NULL;
	size_t line = 0;

	if (!t)
		return 0;
	/* The instruction that an address is in: lines without one stand in front of theirs. */
	for (size_t i = 0; i < t->n_lines; i++)
		if (t->addresses[i] && t->addresses[i] <= pc)
			line = i;
	*ret_name = t->name;
	*ret_line = (uint32_t)line + 1;
	return t->reference;
}
