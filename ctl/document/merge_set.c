/* SPDX-License-Identifier: MIT */
/* Sets of ranks as arrays of bits, and as text. */
#include <errno.h>

#include "base/out.h"
#include "ctl/document/merge.h"

#define WORD_BITS 64

static size_t words(const struct merge_set *s)
{
	return (s->n + WORD_BITS - 1) / WORD_BITS;
}

int merge_set_init(struct rpc_arena *a, size_t n, struct merge_set *ret)
{
	*ret = (struct merge_set){ .n = n };
	ret->words = rpc_arena_array(a, words(ret), sizeof(*ret->words));
	return ret->words ? 0 : rpc_arena_error(a);
}

bool merge_set_has(const struct merge_set *s, size_t i)
{
	return s->words[i / WORD_BITS] >> i % WORD_BITS & 1;
}

void merge_set_add(struct merge_set *s, size_t i)
{
	s->words[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

void merge_set_remove(struct merge_set *s, size_t i)
{
	s->words[i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
}

void merge_set_join(struct merge_set *s, const struct merge_set *other)
{
	for (size_t i = 0; i < words(s); i++)
		s->words[i] |= other->words[i];
}

size_t merge_set_count(const struct merge_set *s)
{
	size_t n = 0;

	for (size_t i = 0; i < words(s); i++)
		n += (size_t)__builtin_popcountll(s->words[i]);
	return n;
}

const char *merge_set_print(struct rpc_arena *a, const struct merge_set *s)
{
	auto_out struct out o = { 0 };

	for (size_t i = 0, end; i < s->n; i = end) {
		end = i + 1;
		if (!merge_set_has(s, i))
			continue;
		while (end < s->n && merge_set_has(s, end))
			end++;
		out_fmt(&o, "%s%zu", o.size ? "," : "", i);
		if (end > i + 1)
			out_fmt(&o, "-%zu", end - 1);
	}
	return out_error(&o) ? NULL : rpc_arena_strndup(a, o.data ? o.data : "", o.size);
}

/* Read a decimal number that is less than a limit. */
static bool parse_number(const char **text, size_t below, size_t *ret)
{
	size_t v = 0;

	if (**text < '0' || **text > '9')
		return false;
	for (; **text >= '0' && **text <= '9'; ++*text) {
		v = 10 * v + (size_t)(**text - '0');
		if (v >= below)
			return false;
	}
	*ret = v;
	return true;
}

int merge_set_parse(const char *text, struct merge_set *s)
{
	size_t first, last, next = 0;

	for (;;) {
		/* Ranks must rise, so that each list has one spelling of what it holds. */
		if (!parse_number(&text, s->n, &first) || first < next)
			return -EINVAL;
		last = first;
		if (*text == '-' && (++text, !parse_number(&text, s->n, &last) || last <= first))
			return -EINVAL;
		for (next = first; next <= last; next++)
			merge_set_add(s, next);
		if (!*text)
			return 0;
		if (*text++ != ',')
			return -EINVAL;
	}
}
