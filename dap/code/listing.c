/* SPDX-License-Identifier: MIT */
/*
 * The code of a function as a text, which an editor shows where the source is not on this machine: a line for each
 * instruction, and one that names the source line where that changes.
 *
 * A reference stands for the function of a code object as long as the session lasts.  The text is made when it is
 * first needed, and again when it had to make room for others.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dap/code/instructions.h"
#include "disasm/disasm.h"

/* Functions that have a reference, and bytes that their texts take together. */
#define LISTINGS_MAX 256u
#define TEXTS_MAX    ((size_t)4 << 20)
/* Bytes of code in one listing; of code that no symbol names, where it may be anything; and of its text. */
#define CODE_MAX     (UINT64_C(32) << 10)
#define UNNAMED_MAX  1024u
#define TEXT_MAX     ((size_t)1 << 20)
/* Longest name, and most addresses of one call to the agent. */
#define NAME_MAX_SHOWN 200u
#define ADDRESSES_MAX  4096u

/* Code that is shown as a text. */
struct dap_listing {
	char *key;  /* Code object, symbol and address. */
	char *name; /* Of the source, for the editor. */
	char cpu[32];
	uint64_t start, size;
	bool whole;	/* It begins where its function does. */
	bool failed;	/* The text says why there is no code. */
	uint64_t used;	/* When it was used last, counted in uses. */
	struct out text;
	uint64_t *addresses; /* Of each line; 0 for one without an instruction. */
	size_t n_lines, room;
};

static size_t bytes_of(const struct dap_listing *l)
{
	return l->text.size + l->room * sizeof(*l->addresses);
}

static void forget_text(struct dap_listing *l)
{
	out_deinit(&l->text);
	free(l->addresses);
	l->addresses = NULL;
	l->n_lines = l->room = 0;
}

void dap_listings_deinit(struct dap *d)
{
	for (size_t i = 0; i < d->n_listings; i++) {
		forget_text(&d->listings[i]);
		free(d->listings[i].key);
		free(d->listings[i].name);
	}
	free(d->listings);
	d->listings = NULL;
	d->n_listings = 0;
}

/* Make room for a text by forgetting those that were not used for the longest time. */
static void keep_within_bounds(struct dap *d, const struct dap_listing *used)
{
	for (;;) {
		struct dap_listing *oldest = NULL;
		size_t bytes = 0;

		for (size_t i = 0; i < d->n_listings; i++) {
			struct dap_listing *l = &d->listings[i];

			bytes += bytes_of(l);
			if (l != used && bytes_of(l) && (!oldest || l->used < oldest->used))
				oldest = l;
		}
		if (bytes <= TEXTS_MAX || !oldest)
			return;
		forget_text(oldest);
	}
}

/* ------------------------------------------------------------------ text --------------------- */

/* Append a name that somebody else has chosen: it must not make a line of its own. */
static void put_name(struct out *o, const char *name)
{
	for (size_t i = 0; name[i] && i < NAME_MAX_SHOWN; i++)
		out_char(o, (unsigned char)name[i] < ' ' || name[i] == '\x7f' ? '?' : name[i]);
}

/* End a line.  @param address  That of its instruction, or 0. */
static void end_line(struct dap_listing *l, uint64_t address)
{
	out_char(&l->text, '\n');
	if (l->n_lines < l->room)
		l->addresses[l->n_lines++] = address;
}

/* Begin the text, with room for so many lines.  @return false without memory. */
static bool begin_text(struct dap_listing *l, size_t n_lines)
{
	forget_text(l);
	out_init(&l->text, 0);
	l->addresses = calloc(n_lines, sizeof(*l->addresses));
	l->room = l->addresses ? n_lines : 0;
	return l->addresses;
}

/* Append the place in the source where it is another than that of the line above. */
static void put_place(struct dap_listing *l, const struct rpc_code_place *p, const struct rpc_frame **above)
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
static void put_some(struct dap *d, struct dap_listing *l, const struct disasm_line *lines, size_t n)
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
static int put_failure(struct dap_listing *l, const char *why)
{
	l->failed = true;
	if (!begin_text(l, 1))
		return -ENOMEM;
	out_fmt(&l->text, "; no code can be read at 0x%" PRIx64 ": ", l->start);
	put_name(&l->text, why);
	end_line(l, l->start);
	return out_error(&l->text);
}

/* Write the text of code that was read. */
static int put_code(struct dap *d, struct dap_listing *l, const uint8_t *code, size_t size)
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

/* Make the text of a listing, which says so where there is no code.  @return 0, -ENOMEM. */
static int make_text(struct dap *d, struct dap_listing *l)
{
	const struct rpc_memory_read_params p = { .session = d->session, .address = l->start,
						  .size = (uint32_t)l->size };
	struct agent_err err = { 0 };
	uint8_t *code;
	size_t size;
	int r = dap_disasm_for(d, l->cpu, &err);

	l->failed = false;
	if (r == 0)
		r = dap_memory_get(d, &p, &code, &size, &err);
	if (r == 0 && !size)
		r = dap_invalid(&err, "there is no memory");
	r = r == 0 ? put_code(d, l, code, size) : put_failure(l, dap_plain(err.message));
	if (r < 0)
		forget_text(l);
	keep_within_bounds(d, l);
	return r;
}

/* ------------------------------------------------------------------ references --------------- */

/* Fill in what is shown around an address. */
static void choose_code(struct dap_listing *l, const struct rpc_code_place *place, uint64_t pc)
{
	const struct rpc_symbol *s = place && place->has_symbol && place->symbol.address <= pc ? &place->symbol : NULL;

	*l = (struct dap_listing){ .start = pc, .size = UNNAMED_MAX, .whole = true };
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

/* Add a listing.  @return its position; -ENOMEM, -ENOSPC. */
static int add_listing(struct dap *d, const struct dap_listing *l)
{
	if (d->n_listings == LISTINGS_MAX)
		return -ENOSPC;
	if (!d->listings)
		d->listings = calloc(LISTINGS_MAX, sizeof(*d->listings));
	if (!d->listings || !l->key || !l->name)
		return -ENOMEM;
	d->listings[d->n_listings] = *l;
	return (int)d->n_listings++;
}

/* Find the listing around an address, or add it.  @return its position, negative for none. */
static int find_listing(struct dap *d, const char *cpu, uint64_t pc)
{
	const struct rpc_code_place *place = dap_locate(d, &d->arena, &pc, 1);
	const char *symbol = place && place->has_symbol ? place->symbol.name : NULL;
	struct dap_listing l;
	const char *key;
	int r;

	choose_code(&l, place, pc);
	key = rpc_arena_printf(&d->arena, "%s %s 0x%" PRIx64 " %s", place && place->uri ? place->uri : "",
			       symbol ? symbol : "", l.start, cpu);
	for (size_t i = 0; key && i < d->n_listings; i++)
		if (!strcmp(d->listings[i].key, key))
			return (int)i;
	str_copy(l.cpu, sizeof(l.cpu), cpu);
	l.key = key ? strdup(key) : NULL;
	l.name = source_name(symbol, l.start);
	r = add_listing(d, &l);
	if (r < 0) {
		free(l.key);
		free(l.name);
	}
	return r;
}

uint32_t dap_listing_at(struct dap *d, uint32_t gpu_id, uint64_t pc, const char **ret_name, uint32_t *ret_line)
{
	const struct rpc_device *device = dap_device(d, gpu_id);
	int at = device ? find_listing(d, device->arch, pc) : -ENODEV;
	struct dap_listing *l = at >= 0 ? &d->listings[at] : NULL;
	size_t line = 0;

	if (!l)
		return 0;
	l->used = ++d->listing_uses;
	/* Code that could not be read may have come meanwhile. */
	if ((!l->text.size || l->failed) && make_text(d, l) < 0)
		return 0;
	/* The instruction that an address is in: lines without one stand in front of theirs. */
	for (size_t i = 0; i < l->n_lines; i++)
		if (l->addresses[i] && l->addresses[i] <= pc)
			line = i;
	*ret_name = l->name;
	*ret_line = (uint32_t)line + 1;
	return (uint32_t)at + 1;
}

int dap_source(struct dap *d, const struct dap_request *q, struct dap_answer *ret)
{
	struct dap_json v = dap_json_get(q->args, "sourceReference");
	struct dap_listing *l;
	int64_t reference = 0;

	if (dap_json_has(v) && !dap_json_i64(v, &reference))
		reference = -1;
	if (!reference)
		return agent_err_set(&ret->err, RPC_ERROR_UNSUPPORTED, EOPNOTSUPP, NULL, NULL,
				     "source: the editor reads files of this machine itself");
	if (reference < 0 || (uint64_t)reference > d->n_listings)
		return dap_invalid(&ret->err, "sourceReference: no frame of this session has had it");
	l = &d->listings[reference - 1];
	l->used = ++d->listing_uses;
	if ((!l->text.size || l->failed) && make_text(d, l) < 0)
		return agent_err_no_memory(&ret->err, NULL);
	out_json_fmt(&ret->body, "{'content':%s,'mimeType':'text/x-asm'}", l->text.data);
	return 0;
}
