/* SPDX-License-Identifier: MIT */
#include "hoststack/native/symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Symbols of one file, 9.6 MB of them. */
#define SYMBOLS_MAX 400000
#define NAME_MAX_   1024
/* Bytes of a name that are read at once; no such piece crosses a page's end. */
#define PIECE	    64
/* Symbols that begin at one address, and those that may lie within another one. */
#define NEAR_MAX    16

struct native_symbol {
	uint64_t begin, size;
	uint32_t name;
	char *text; /* malloc'ed when it was asked for. */
};

/* ------------------------------------------------------------------ table -------------------- */

/* DT_HASH has a chain's link for each symbol. */
static int count_sysv(struct hoststack_memory *m, const struct hoststack_elf *e, uint32_t *ret)
{
	uint32_t head[2];
	int r = hoststack_read(m, e->hash, head, sizeof(head));

	*ret = head[1];
	return r;
}

/* DT_GNU_HASH: symbols of a bucket lie behind each other, and the last one has its lowest bit set. */
static int count_gnu(struct hoststack_memory *m, const struct hoststack_elf *e, uint32_t *ret)
{
	auto_free uint32_t *buckets = NULL;
	uint32_t head[4], last = 0, link = 0;
	uint64_t at;
	int r = hoststack_read(m, e->gnu_hash, head, sizeof(head));

	if (r < 0)
		return r;
	if (!head[0] || head[0] > SYMBOLS_MAX)
		return -EBADMSG;
	buckets = calloc(head[0], sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	at = e->gnu_hash + sizeof(head) + UINT64_C(8) * head[2];
	r = hoststack_read(m, at, buckets, head[0] * sizeof(*buckets));
	for (size_t i = 0; i < head[0]; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (r < 0 || last < head[1])
		return r < 0 ? r : -ENOENT;
	at += UINT64_C(4) * head[0];
	for (; r == 0 && !(link & 1) && last < SYMBOLS_MAX; last++)
		r = hoststack_read(m, at + UINT64_C(4) * (last - head[1]), &link, sizeof(link));
	*ret = last;
	return r;
}

static int by_address(const void *a, const void *b)
{
	const struct native_symbol *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static bool is_function(const Elf64_Sym *s)
{
	const int type = ELF64_ST_TYPE(s->st_info);

	/*
	 * Labels, and on aarch64 `$x` and `$d`, which mark where code and data begin, often within a function (ELF for
	 * the Arm 64-bit Architecture, "Mapping symbols").
	 */
	if (type == STT_NOTYPE && ELF64_ST_BIND(s->st_info) == STB_LOCAL && !s->st_size)
		return false;
	return (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) && s->st_shndx != SHN_UNDEF;
}

static int read_table(struct native_symbols *s, struct hoststack_memory *m, const struct hoststack_elf *e)
{
	auto_free Elf64_Sym *table = NULL;
	uint32_t n = e->n_symbols;
	int r = n ? 0 : e->hash ? count_sysv(m, e, &n) : count_gnu(m, e, &n);

	if (r < 0)
		return r;
	if (n > SYMBOLS_MAX)
		return -EBADMSG;
	table = calloc(n + 1, sizeof(*table));
	s->list = calloc(n + 1, sizeof(*s->list));
	if (!table || !s->list)
		return -ENOMEM;
	r = hoststack_read(m, e->symbols, table, n * sizeof(*table));
	for (uint32_t i = 0; r == 0 && i < n; i++)
		if (is_function(&table[i]))
			s->list[s->n++] = (struct native_symbol){ e->bias + table[i].st_value, table[i].st_size,
								  table[i].st_name, NULL };
	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), by_address);
	return r;
}

/* ------------------------------------------------------------------ names -------------------- */

static const char *text_of(struct native_symbol *s, struct hoststack_memory *m, const struct hoststack_elf *e)
{
	const uint64_t begin = e->strings + s->name;
	char text[NAME_MAX_ + PIECE];
	size_t used = 0;

	if (s->text)
		return s->text;
	while (used < NAME_MAX_) {
		const size_t room = PIECE - (begin + used) % PIECE;
		const char *end;

		if (hoststack_read(m, begin + used, text + used, room) < 0)
			return NULL;
		end = memchr(text + used, '\0', room);
		used = end ? (size_t)(end - text) : used + room;
		if (end)
			break;
	}
	if (!used)
		return NULL;
	text[used] = '\0';
	s->text = strdup(text);
	if (s->text)
		str_make_printable(s->text);
	return s->text;
}

/* Of several names of one function, the one for people: with the fewest underscores in front, then the shortest. */
static bool is_better(const char *a, const char *b)
{
	const size_t x = strspn(a, "_"), y = strspn(b, "_");

	return x != y ? x < y : strlen(a) < strlen(b);
}

/* @param i  A symbol; others that begin there stand before it. */
static const char *best_of(struct native_symbols *s, struct hoststack_memory *m, const struct hoststack_elf *e,
			   size_t i)
{
	const uint64_t begin = s->list[i].begin;
	const char *best = NULL;

	for (size_t k = 0; k < NEAR_MAX && k <= i && s->list[i - k].begin == begin; k++) {
		const char *text = text_of(&s->list[i - k], m, e);

		if (text && (!best || is_better(text, best)))
			best = text;
	}
	return best;
}

const char *native_symbols_name(struct native_symbols *s, struct hoststack_memory *m, const struct hoststack_elf *e,
				uint64_t address, uint64_t function, uint64_t *ret_begin)
{
	size_t low = 0, high;

	if (!s->is_read && read_table(s, m, e) < 0)
		native_symbols_free(s);
	s->is_read = true;
	high = s->n;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (s->list[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t k = 0; k < NEAR_MAX && k < low; k++) {
		const struct native_symbol *at = &s->list[low - 1 - k];

		if (at->size ? address - at->begin < at->size : at->begin == function) {
			*ret_begin = at->begin;
			return best_of(s, m, e, low - 1 - k);
		}
	}
	return NULL;
}

void native_symbols_free(struct native_symbols *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->list[i].text);
	free(s->list);
	*s = (struct native_symbols){ 0 };
}
