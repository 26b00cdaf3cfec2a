/* SPDX-License-Identifier: MIT */
/*
 * Lines of a listing: which bytes are decoded, by which back end, and what is shown where that
 * fails.
 */
#include "disasm/disasm.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "disasm/backend.h"

/* Instructions of AMD's processors are multiples of this many bytes. */
#define WORD 4u

struct disasm {
	const struct disasm_backend *backend;
	void *ctx;
	uint32_t word; /* Bytes that are shown as one where the instruction is not known. */
};

/*
 * @return the bytes of a word of a processor's instructions, 0 if no processor can have that name.
 */
static uint32_t word_of(const char *cpu)
{
	size_t n = strlen(cpu);

	if (str_starts_with(cpu, "sm_"))
		return disasm_nvidia_size(cpu);
	if (n < 4 || n > 24 || !str_starts_with(cpu, "gfx"))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)cpu[i]) && cpu[i] != '-')
			return 0;
	return WORD;
}

int disasm_open(const struct disasm_options *o, struct disasm **ret)
{
	bool is_nvidia = str_starts_with(o->cpu, "sm_");
	uint32_t word = word_of(o->cpu);
	struct disasm *d;
	int r;

	if (!word)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->word = word;
	d->backend = is_nvidia ? &disasm_nvidia : &disasm_child;
	r = is_nvidia ? disasm_nvidia_open(o, &d->ctx) : disasm_child_open(o, &d->ctx);
	if (r < 0)
		free(d);
	else
		*ret = d;
	return r;
}

void disasm_close(struct disasm *d)
{
	if (!d)
		return;
	d->backend->close(d->ctx);
	free(d);
}

const char *disasm_source(const struct disasm *d)
{
	return d->backend->source(d->ctx);
}

const char *disasm_note(const struct disasm *d)
{
	return d->backend->note(d->ctx);
}

uint32_t disasm_word_size(const struct disasm *d)
{
	return d->word;
}

/* ------------------------------------------------------------------ one line ----------------- */

/* Show one word, or as much of it as there is. */
static void words(const struct disasm *d, const uint8_t *bytes, uint32_t size, uint64_t address,
		  struct disasm_line *ret)
{
	uint32_t piece = size < d->word ? 1 : d->word < 8 ? d->word : 8;
	const char *name = piece == 1 ? ".byte" : piece == 4 ? ".long" : ".quad";
	size_t used = (size_t)snprintf(ret->text, sizeof(ret->text), "%s", name);

	ret->address = address;
	ret->size = size < d->word ? size : d->word;
	ret->decoded = ret->has_target = false;
	ret->target = 0;
	for (uint32_t i = 0; i < ret->size; i += piece) {
		uint64_t value = 0;

		memcpy(&value, bytes + i, piece);
		used += (size_t)snprintf(ret->text + used, sizeof(ret->text) - used,
					 "%s0x%0*" PRIx64, i ? ", " : " ", (int)piece * 2, value);
	}
}

/*
 * Put one space in the place of tabs and several spaces, and '?' in that of what a terminal obeys.
 */
static void tidy(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		bool space = *from == ' ' || *from == '\t' || *from == '\n';

		if (space && (to == text || to[-1] == ' '))
			continue;
		*to++ = space ? ' ' : isprint((unsigned char)*from) ? *from : '?';
	}
	while (to > text && to[-1] == ' ')
		to--;
	*to = '\0';
}

/*
 * Find the target of a branch: SOPP instructions have a signed offset of 16 bits, counted in words
 * from the next instruction (ISA documents, "Program Control").
 */
static void find_target(const uint8_t *bytes, struct disasm_line *line)
{
	const char *operand = strchr(line->text, ' ');
	uint16_t low;

	if (!str_starts_with(line->text, "s_branch ") && !str_starts_with(line->text, "s_cbranch_"))
		return;
	if (line->size != WORD || !operand || !isdigit((unsigned char)operand[1]) ||
	    strchr(operand, ','))
		return;
	memcpy(&low, bytes, sizeof(low));
	line->has_target = true;
	line->target = line->address + WORD + (uint64_t)((int64_t)(int16_t)low * WORD);
}

/* Make a line of bytes that the back end was prepared for. */
static void line_of(struct disasm *d, const void *bytes, size_t size, uint64_t address,
		    struct disasm_line *ret)
{
	uint32_t most = size < DISASM_LONGEST ? (uint32_t)size : DISASM_LONGEST, n;

	*ret = (struct disasm_line){ .address = address };
	n = d->backend->decode(d->ctx, bytes, most, address, ret->text);
	if (n == 0 || n > most || n % WORD) {
		words(d, bytes, most, address, ret);
		return;
	}
	ret->size = n;
	ret->decoded = true;
	tidy(ret->text);
	find_target(bytes, ret);
}

static void prepare(struct disasm *d, const uint8_t *bytes, uint64_t address, size_t from, size_t end)
{
	if (d->backend->prepare)
		d->backend->prepare(d->ctx, bytes, address, from, end);
}

void disasm_one(struct disasm *d, const void *bytes, size_t size, uint64_t address,
		struct disasm_line *ret)
{
	prepare(d, bytes, address, 0, size < d->word ? size : d->word);
	line_of(d, bytes, size, address, ret);
}

/* ------------------------------------------------------------------ several ------------------ */

/* The offsets at which the lines in front of an address begin. */
struct starts {
	uint32_t *at;
	size_t n;
	size_t cut; /* From this offset on they are words. */
};

static size_t length_of(struct disasm *d, const uint8_t *bytes, size_t size, uint64_t address)
{
	struct disasm_line line;

	line_of(d, bytes, size, address, &line);
	return line.size;
}

/*
 * Collect the starts of instructions.
 * @return where the first instruction ends that reaches up to @p end or beyond.
 */
static size_t walk(struct disasm *d, const uint8_t *bytes, size_t size, uint64_t start, size_t end,
		   struct starts *s)
{
	uint8_t sizes[1024];
	size_t at = 0;

	while (at < end) {
		size_t n = d->backend->measure(d->ctx, bytes + at, size - at, start + at, sizes,
					       sizeof(sizes));

		for (size_t i = 0; i < n && at < end; i++) {
			bool whole = sizes[i] && sizes[i] % WORD == 0 && sizes[i] <= size - at;

			s->at[s->n++] = (uint32_t)at;
			at += whole ? sizes[i] : d->word;
		}
		if (n == 0) {
			s->at[s->n++] = (uint32_t)at;
			at += length_of(d, bytes + at, size - at, start + at);
		}
	}
	return at;
}

static int find_starts(struct disasm *d, const uint8_t *bytes, size_t size, uint64_t start,
		       size_t end, struct starts *ret)
{
	ret->cut = end;
	ret->at = malloc((end / d->word + 2) * sizeof(*ret->at));
	if (!ret->at)
		return -ENOMEM;
	/*
	 * If the last instruction does not end at the address, it was none, or the address is
	 * inside of it.
	 */
	if (walk(d, bytes, size, start, end, ret) > end) {
		ret->cut = ret->at[--ret->n];
		for (size_t at = ret->cut; at < end; at += d->word)
			ret->at[ret->n++] = (uint32_t)at;
	}
	return 0;
}

ssize_t disasm_lines(struct disasm *d, const void *bytes, size_t size, const struct disasm_range *r,
		     struct disasm_line *ret, size_t *ret_at)
{
	auto_free uint32_t *release = NULL;
	struct starts starts = { 0 };
	size_t at, first = 0, n = 0;
	int e;

	if (r->around < r->start || r->around - r->start >= size || size > UINT32_MAX / 2)
		return -EINVAL;
	at = (size_t)(r->around - r->start);
	if (r->before) {
		e = find_starts(d, bytes, size, r->start, at, &starts);
		release = starts.at;
		if (e < 0)
			return e;
		first = starts.n > r->before ? starts.n - r->before : 0;
	}
	prepare(d, bytes, r->start, first < starts.n ? starts.at[first] : at,
		r->count < (size - at) / d->word ? at + r->count * d->word : size);
	for (size_t i = first; i < starts.n; i++) {
		size_t from = starts.at[i];

		if (from < starts.cut)
			line_of(d, (const uint8_t *)bytes + from, at - from, r->start + from,
				&ret[n++]);
		else
			words(d, (const uint8_t *)bytes + from, (uint32_t)(at - from), r->start + from,
			      &ret[n++]);
	}
	*ret_at = n;
	for (size_t i = 0; i < r->count && at < size; i++) {
		line_of(d, (const uint8_t *)bytes + at, size - at, r->start + at, &ret[n]);
		at += ret[n++].size;
	}
	return (ssize_t)n;
}
