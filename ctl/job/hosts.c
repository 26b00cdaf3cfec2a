/* SPDX-License-Identifier: MIT */
#include "ctl/job/hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/vec.h"

/* Brackets of one name: each multiplies. */
#define BRACKETS_MAX 4
#define DIGITS_MAX   9

/* What is being read, and why it cannot be. */
struct reading {
	struct hosts *hosts;
	const char *why;
};

static int refuse(struct reading *r, const char *why)
{
	r->why = why;
	return -EINVAL;
}

/* A name that another program gets as an argument must not look like an option or hold anything odd. */
static bool is_name(const char *name)
{
	if (!isalnum((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._:@-", *c))
			return false;
	return true;
}

static int add(struct reading *r, const char *name)
{
	struct hosts *h = r->hosts;

	if (!is_name(name))
		return refuse(r, "a name has letters, digits and . _ - : @ only, and begins with a letter or digit");
	for (size_t i = 0; i < h->n; i++)
		if (!strcmp(h->list[i], name))
			return 0;
	if (h->n == HOSTS_MAX) {
		r->why = "too many hosts";
		return -EFBIG;
	}
	if (vec_reserve(&h->list, h->n, 1, &h->capacity, sizeof(*h->list)) < 0)
		return -ENOMEM;
	h->list[h->n] = strdup(name);
	if (!h->list[h->n])
		return -ENOMEM;
	h->n++;
	return 0;
}

static int expand(struct reading *r, const char *text, unsigned depth);

/* Read digits of a range.  @return how many there are, 0 for none or too many. */
static size_t read_number(const char *s, unsigned long *ret)
{
	size_t n = strspn(s, "0123456789");

	if (!n || n > DIGITS_MAX)
		return 0;
	*ret = strtoul(s, NULL, 10);
	return n;
}

/* Expand one item of a bracket, `7` or `01-16`, between what is in front of it and behind. */
static int expand_item(struct reading *r, const char **at, const char *text, size_t front, const char *behind,
		       unsigned depth)
{
	unsigned long first = 0, last;
	size_t width = read_number(*at, &first), digits = width;
	char name[HOSTS_NAME_MAX + 1];
	int e = 0;

	*at += digits;
	last = first;
	if (digits && **at == '-') {
		digits = read_number(*at + 1, &last);
		*at += 1 + digits;
	}
	if (!digits || last < first)
		return refuse(r, "a bracket has rising numbers and ranges, as [1-3,7]");
	if (last - first >= HOSTS_MAX) {
		r->why = "too many hosts";
		return -EFBIG;
	}
	for (unsigned long i = first; e == 0 && i <= last; i++) {
		int n = snprintf(name, sizeof(name), "%.*s%0*lu%s", (int)front, text, (int)width, i, behind);

		e = n < (int)sizeof(name) ? expand(r, name, depth + 1) : refuse(r, "a name is too long");
	}
	return e;
}

/* Add a name, or all that its brackets stand for. */
static int expand(struct reading *r, const char *text, unsigned depth)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL, *at;
	int e = 0;

	if (!open)
		return add(r, text);
	if (!close)
		return refuse(r, "a bracket is not closed");
	if (depth == BRACKETS_MAX)
		return refuse(r, "too many brackets");
	for (at = open; e == 0 && at < close;) {
		at++;
		e = expand_item(r, &at, text, (size_t)(open - text), close + 1, depth);
		if (e == 0 && *at != ',' && at != close)
			return refuse(r, "a bracket has rising numbers and ranges, as [1-3,7]");
	}
	return e;
}

/* Read a word: names joined by commas that are in no bracket. */
static int read_word(struct reading *r, const char *word, size_t size)
{
	size_t from = 0, depth = 0;
	int e = 0;

	for (size_t i = 0; e == 0 && i <= size; i++) {
		char name[HOSTS_NAME_MAX + 1];

		depth += i < size && word[i] == '[';
		depth -= i < size && word[i] == ']' && depth;
		if (i < size && (word[i] != ',' || depth))
			continue;
		if (i - from > HOSTS_NAME_MAX)
			return refuse(r, "a name is too long");
		memcpy(name, word + from, i - from);
		name[i - from] = 0;
		e = expand(r, name, 0);
		from = i + 1;
	}
	return e;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Read a line: its first word. */
static int read_line(struct reading *r, const char *line, size_t size)
{
	size_t from = 0, to;

	while (from < size && is_blank(line[from]))
		from++;
	for (to = from; to < size && !is_blank(line[to]) && line[to] != '#'; to++)
		if (!line[to])
			return refuse(r, "there is a zero byte");
	return to == from ? 0 : read_word(r, line + from, to - from);
}

int hosts_parse(const char *text, size_t size, struct hosts *ret, size_t *ret_line, const char **ret_why)
{
	struct reading r = { .hosts = ret };
	size_t line = 0;
	int e = 0;

	*ret = (struct hosts){ 0 };
	for (size_t from = 0; e == 0 && from < size;) {
		const char *end = memchr(text + from, '\n', size - from);
		size_t to = end ? (size_t)(end - text) : size;

		line++;
		e = read_line(&r, text + from, to - from);
		from = to + 1;
	}
	if (e < 0) {
		hosts_deinit(ret);
		*ret_line = line;
		*ret_why = r.why ? r.why : "out of memory";
	}
	return e;
}

void hosts_deinit(struct hosts *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->list[i]);
	free(h->list);
	*h = (struct hosts){ 0 };
}

const char *hosts_split_port(char *name)
{
	char *colon = strchr(name, ':');
	uint64_t port;

	/* Several colons are an address of IPv6. */
	if (!colon || strchr(colon + 1, ':') || str_to_u64(colon + 1, 1, UINT16_MAX, &port) < 0)
		return NULL;
	*colon = 0;
	return colon + 1;
}
